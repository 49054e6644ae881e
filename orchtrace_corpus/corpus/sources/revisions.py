"""Read files from a revision of a git repository, with the git program and without a network.

The name of a revision reaches git on standard input, and later calls use the id of the commit, so git never takes a
name for an option.

Reference: git-cat-file(1), git-diff-tree(1), git-ls-tree(1), git-merge-base(1), gitrevisions(7).
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple

MAX_BYTES = 512 * 1024 * 1024
"""The largest file that is read."""

_HOOK_VARIABLES = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_NAMESPACE "
    "GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_SHALLOW_FILE GIT_GRAFT_FILE".split()
)
"""Variables that git sets for a hook. In our calls they would name another repository than the folder's."""

# Without a protocol, a partial clone cannot fetch missing objects.
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

_FULL_ID = "[0-9a-f]{40}|[0-9a-f]{64}"
_BROKEN_LINKS = ("symlink", "dangling", "loop", "notdir")
"""The kinds that git reports for a path whose symbolic links lead to no file of the revision."""

_COMPARE_FOLDERS = "Compare two folders instead."


class _Object(NamedTuple):
    """A git object: `blob`, `tree`, `missing` or one of `_BROKEN_LINKS`, its id, and its size in bytes."""

    kind: str
    id: str = ""
    size: int = 0


class Revision(NamedTuple):
    """A commit of the repository around a folder, by its id; paths are relative to the folder.

    `name` is the name by which the user asked for the commit.
    """

    folder: str
    commit: str
    name: str

    def __str__(self) -> str:
        short_id = self.commit[:10]
        if self.commit.startswith(self.name.lower()):
            return short_id
        return f"{printable(self.name, limit=60)} ({short_id})"

    def read(self, *paths: str) -> dict[str, bytes]:
        """Return the contents of files at the commit by path, without the missing ones. Symbolic links are followed.

        Raises:
            DataFileError: A path is not a file, is too large, links out of the revision, or is not in this clone.
        """
        objects = dict(zip(paths, self._resolve(*paths), strict=True))
        missing = (path for path, found in objects.items() if found.kind == "missing")
        for folder in dict.fromkeys(path.partition("/")[0] for path in missing):
            if _git(self.folder, "ls-tree", "-z", self.commit, "--", folder).split(b" ")[1:2] == [b"commit"]:
                raise DataFileError(f"{folder} of {self} is a submodule, whose files are in another repository")
        files = {path: found.id for path, found in objects.items() if self._is_file(path, found)}
        return dict(zip(files, self.blobs(list(files.values())), strict=True))

    def blobs(self, ids: Sequence[str]) -> list[bytes]:
        """Return the objects with these ids: the content of a file, the target of a link, the commit of a submodule."""
        if not ids:
            return []
        answer = _git(self.folder, "cat-file", "--batch", stdin="\n".join(ids))
        contents = []
        start = 0
        for object_id in ids:  # each has a line such as `ID blob SIZE`, then its content and a line feed
            header = answer[start : answer.index(b"\n", start)]
            start += len(header) + 1
            if header.endswith(b" missing"):  # a submodule
                contents.append(object_id.encode())
                continue
            size = int(header.split()[2])
            contents.append(answer[start : start + size])
            start += size + 1
        return contents

    def _is_file(self, path: str, found: _Object) -> bool:
        """Return False if nothing has the path; raise `DataFileError` if it does not lead to a file."""
        kind = found.kind
        if kind == "dangling":  # git's answer for a missing path, too: look into the folder
            folder, _, name = path.rpartition("/")
            (parent,) = self._resolve(folder)
            if parent.kind == "tree" and name not in self._list_tree(parent.id):
                kind = "missing"
        if kind == "missing":
            return False
        if kind in _BROKEN_LINKS:
            raise DataFileError(f"{path} of {self} is a symbolic link to no file of that revision", _COMPARE_FOLDERS)
        if kind != "blob":
            raise DataFileError(f"{path} of {self} is not a file")
        if found.size > MAX_BYTES:
            raise DataFileError(f"{path} of {self} is larger than {MAX_BYTES // 2**20} MiB")
        return True

    def list_files(self, folder: str) -> dict[str, str]:
        """Return the ids of the contents of all files below a folder at the commit, by path."""
        (found,) = self._resolve(folder)
        if found.kind != "tree":
            return {}
        return {f"{folder}/{name}": content_id for name, content_id in self._list_tree(found.id, "-r").items()}

    def _resolve(self, *paths: str) -> list[_Object]:
        """Return the objects at paths, with symbolic links followed."""
        names = "\n".join(f"{self.commit}:./{path}" for path in paths)
        rest = _git(self.folder, "cat-file", "--batch-check", "--follow-symlinks", stdin=names)
        objects = []
        for _ in paths:
            line, _, rest = rest.partition(b"\n")
            words = line.decode("utf-8", "replace").split()
            if words[0] in _BROKEN_LINKS:  # `KIND LENGTH`, then the target of the link and a line feed
                rest = rest[int(words[1]) + 1 :]
                objects.append(_Object(words[0]))
            elif words[-1] == "missing":
                objects.append(_Object("missing"))
            else:  # `ID KIND SIZE`
                objects.append(_Object(words[1], words[0], int(words[2])))
        return objects

    def _list_tree(self, tree: str, *options: str) -> dict[str, str]:
        """Return the ids of the objects in a tree, by name."""
        output = _git(self.folder, "ls-tree", "-z", "--full-tree", *options, tree)
        entries = (entry.partition(b"\t") for entry in output.split(b"\0")[:-1])  # `MODE KIND ID`, a tab, the name
        return {os.fsdecode(name): details.split()[2].decode() for details, _, name in entries}


def file_changes(before: Revision, after: Revision) -> Iterator[tuple[str, str]]:
    """Yield the path and the new mode of each file that differs between two commits. A renamed file counts as two.

    Paths start at the top of the repository. The mode of a removed file is zeros, as git writes it.
    """
    words = ("-r", "-z", "--no-renames", "--ignore-submodules=none", before.commit, after.commit)
    fields = _git(before.folder, "diff-tree", *words).split(b"\0")
    # Details and paths in turn, and an empty text at the end.
    for details, path in zip(fields[:-1:2], fields[1::2], strict=True):
        yield path.decode("utf-8", "backslashreplace"), details.split()[1].decode()


def data_prefix(folder: str) -> str:
    """Return the path of a corpus's data folder from the top of its repository, with a slash at its end."""
    prefix = _git(folder, "rev-parse", "--show-prefix").decode("utf-8", "backslashreplace")
    return f"{prefix.rstrip()}data/"


def find_revision(folder: str, name: str) -> Revision:
    """Return the commit that a revision's name means in the repository around a folder.

    `A...B` means the last commit from which both A and B descend; if one of them is left out, it is HEAD.

    Raises:
        DataFileError: There is no git, no repository, or no such commit; the message says how to get the commit.
    """
    _git(folder, "rev-parse", "--git-dir")  # raises the error for a folder outside a repository
    first, dots, second = name.partition("...")
    if not dots:
        return _find_commit(folder, name)
    begin, end = _find_commit(folder, first or "HEAD"), _find_commit(folder, second or "HEAD")
    bases = _run_git(folder, "merge-base", begin.commit, end.commit).stdout.decode().split()
    if not bases:
        raise DataFileError(f"{begin} and {end} have no commit in common here", _unshallow_hint(folder))
    return Revision(folder, bases[0], bases[0])


def list_unmerged(root: str) -> list[str]:
    """Return the data files of a corpus with conflicts from an unfinished merge; errors as in `find_revision`."""
    entries = _git(root, "ls-files", "--unmerged", "-z", "--", "data").split(b"\0")[:-1]
    return list(dict.fromkeys(os.fsdecode(entry.partition(b"\t")[2]) for entry in entries))


def merge_texts(ours: str, base: str, theirs: str) -> None:
    """Let git merge three texts into our file, with markers at conflicts; raise `DataFileError` without git."""
    _run_git("", "merge-file", "-Lours", "-Lbase", "-Ltheirs", *map(os.path.abspath, (ours, base, theirs)))


def _find_commit(folder: str, name: str) -> Revision:
    answer = ""
    if name and name.isprintable():
        output = _git(folder, "cat-file", "--batch-check", stdin=f"{name}^{{commit}}")
        answer = output.decode("utf-8", "replace").rstrip("\n")
    if answer.endswith(" ambiguous"):
        raise DataFileError(f"{quote(name)} is the beginning of several ids", "Write more of the id.")
    commit = re.match(f"({_FULL_ID}) commit ", answer)
    if commit is None:
        hint = _unshallow_hint(folder)
        if re.fullmatch(_FULL_ID, name.lower()):
            start = "The clone is shallow; bring" if hint else "Bring"
            hint = f"{start} the commit with: git fetch --depth=1 {_remote(folder)} {name}"
        elif not hint:
            hint = "Nor is it a folder that holds data/papers.yaml. See git log and git branch --all for what there is."
        raise DataFileError(f"there is no commit {quote(name)} in this clone", hint)
    return Revision(folder, commit[1], name)


def _unshallow_hint(folder: str) -> str:
    """Return how to complete a shallow clone; empty for a complete one."""
    if _run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() != b"true":
        return ""
    return f"The clone is shallow; bring its history with: git fetch --unshallow {_remote(folder)}"


def _remote(folder: str) -> str:
    """Return the remote that a hint names: `origin`, unless there are only others."""
    remotes = _run_git(folder, "remote").stdout.decode("utf-8", "replace").split()
    return printable(remotes[0]) if remotes and "origin" not in remotes else "origin"


def _git(folder: str, *words: str, stdin: str = "") -> bytes:
    """Return the output of a git command; raise `DataFileError` if it fails."""
    process = _run_git(folder, *words, stdin=stdin)
    if process.returncode:
        stderr_text = process.stderr.decode("utf-8", "replace").strip()
        if "not a git repository" in stderr_text:
            raise DataFileError(f"{quote(folder or '.')} is in no git repository", _COMPARE_FOLDERS)
        if "promisor" in stderr_text:
            hint = f"Bring it with: git fetch --refetch {_remote(folder)}"
            raise DataFileError("this partial clone lacks a part of the revision", hint)
        raise DataFileError(f"git {words[0]}: {printable(stderr_text, limit=300)}")
    return process.stdout


def _run_git(folder: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES} | _OFFLINE
    command = ["git", "-C", folder or ".", "--no-pager", "--literal-pathspecs", *words]
    input_bytes = os.fsencode(f"{stdin}\n") if stdin else b""
    try:
        return subprocess.run(command, env=environment, input=input_bytes, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise DataFileError("git is not installed", "Compare two folders instead, or install git.") from error
    except OSError as error:
        raise DataFileError(f"git cannot be run: {error.strerror}", _COMPARE_FOLDERS) from error
