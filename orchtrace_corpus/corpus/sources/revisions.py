"""Read files as they are in a revision of a git repository, through the git program and without a network.

The name of a revision reaches git on standard input, and later calls use the id of the commit: no word that a user
writes can be taken for an option.

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
"""Variables that git sets for a hook; they would override the folder that is asked about."""

# A partial clone would ask its remote for missing objects: no transport is allowed.
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

_FULL_ID = "[0-9a-f]{40}|[0-9a-f]{64}"
_UNRESOLVED = ("symlink", "dangling", "loop", "notdir")
"""Git's answers for a path whose symbolic links lead to no file of the revision."""

_COMPARE_FOLDERS = "Compare two folders instead."


class Revision(NamedTuple):
    """A commit of the repository around a folder, by its id; paths are relative to the folder.

    `asked` is the name by which the commit was asked for.
    """

    folder: str
    commit: str
    asked: str

    def __str__(self) -> str:
        short = self.commit[:10]
        return short if self.commit.startswith(self.asked.lower()) else f"{printable(self.asked, limit=60)} ({short})"

    def read(self, *names: str) -> dict[str, bytes]:
        """Return the contents of files at the commit, without the missing ones; follow links inside the revision.

        Raises:
            DataFileError: A path is no file, or too large; its link leads out of the revision; or this clone lacks it.
        """
        objects = dict(zip(names, self._resolve(*names), strict=True))
        for folder in {name.partition("/")[0]: None for name, (kind, _, _) in objects.items() if kind == "missing"}:
            if _git(self.folder, "ls-tree", "-z", self.commit, "--", folder).split(b" ")[1:2] == [b"commit"]:
                raise DataFileError(f"{folder} of {self} is a submodule, whose files are in another repository")
        files = {name: content for name, (kind, content, size) in objects.items() if self._is_file(name, kind, size)}
        return dict(zip(files, self.blobs(list(files.values())), strict=True))

    def blobs(self, contents: Sequence[str]) -> list[bytes]:
        """Return the objects with these ids: the content of a file, the target of a link, the commit of a submodule."""
        answer = _git(self.folder, "cat-file", "--batch", question="\n".join(contents)) if contents else b""
        texts, start = [], 0
        for content in contents:
            head = answer[start : answer.index(b"\n", start)]
            start += len(head) + 1
            if head.endswith(b" missing"):
                texts.append(content.encode())
                continue
            size = int(head.split()[2])
            texts.append(answer[start : start + size])
            start += size + 1
        return texts

    def _is_file(self, name: str, kind: str, size: int) -> bool:
        """Return True if a path leads to a file; raise `DataFileError` if it leads to anything else that exists."""
        if kind == "dangling":  # also if nothing has that name: look into the folder
            folder, _, entry = name.rpartition("/")
            ((folder_kind, tree, _),) = self._resolve(folder)
            kind = "missing" if folder_kind == "tree" and entry not in self._list_tree(tree) else kind
        if kind == "missing":
            return False
        if kind in _UNRESOLVED:
            raise DataFileError(f"{name} of {self} is a symbolic link to no file of that revision", _COMPARE_FOLDERS)
        if kind != "blob":
            raise DataFileError(f"{name} of {self} is not a file")
        if size > MAX_BYTES:
            raise DataFileError(f"{name} of {self} is larger than {MAX_BYTES // 2**20} MiB")
        return True

    def contents(self, folder: str) -> dict[str, str]:
        """Return the files below a folder at the commit, each with the id of its content."""
        ((kind, tree, _),) = self._resolve(folder)
        if kind != "tree":
            return {}
        return {f"{folder}/{name}": content for name, content in self._list_tree(tree, "-r").items()}

    def _resolve(self, *paths: str) -> list[tuple[str, str, int]]:
        """Return kind, id and size of the objects of paths, links followed."""
        asked = "\n".join(f"{self.commit}:./{path}" for path in paths)
        rest = _git(self.folder, "cat-file", "--batch-check", "--follow-symlinks", question=asked)
        objects = []
        for _ in paths:
            head, _, rest = rest.partition(b"\n")
            words = head.decode("utf-8", "replace").split()
            if words[0] in _UNRESOLVED:
                rest = rest[int(words[1]) + 1 :]  # behind the target of the link
                objects.append((words[0], "", 0))
            else:
                objects.append(("missing", "", 0) if words[-1] == "missing" else (words[1], words[0], int(words[2])))
        return objects

    def _list_tree(self, tree: str, *options: str) -> dict[str, str]:
        """Return the entries of a tree: the id of each object by its name."""
        listed = _git(self.folder, "ls-tree", "-z", "--full-tree", *options, tree)
        lines = (line.partition(b"\t") for line in listed.split(b"\0")[:-1])
        return {os.fsdecode(name): about.split()[2].decode() for about, _, name in lines}


def file_changes(before: Revision, after: Revision) -> Iterator[tuple[str, str]]:
    """Yield the path of each file that differs between two commits, and its mode; a renamed file is two.

    Paths start at the top of the repository. The mode is that of git, zeros for a removed file.
    """
    words = ("-r", "-z", "--no-renames", "--ignore-submodules=none", before.commit, after.commit)
    fields = _git(before.folder, "diff-tree", *words).split(b"\0")
    for about, path in zip(fields[:-1:2], fields[1::2], strict=True):
        yield path.decode("utf-8", "backslashreplace"), about.split()[1].decode()


def data_prefix(folder: str) -> str:
    """Return the path of a corpus's data folder from the top of its repository, with a slash at its end."""
    return f"{_git(folder, 'rev-parse', '--show-prefix').decode('utf-8', 'backslashreplace').rstrip()}data/"


def find(folder: str, name: str) -> Revision:
    """Return the commit that a revision's name means in the repository around a folder.

    `A...B` means the last commit that both descend from; a missing end means HEAD.

    Raises:
        DataFileError: There is no git, no repository, or no such commit; the message says how to get the commit.
    """
    _git(folder, "rev-parse", "--git-dir")  # raises the error for a folder outside a repository
    first, dots, second = name.partition("...")
    if not dots:
        return _commit(folder, name)
    begin, end = _commit(folder, first or "HEAD"), _commit(folder, second or "HEAD")
    bases = _run_git(folder, "merge-base", begin.commit, end.commit).stdout.decode().split()
    if not bases:
        raise DataFileError(f"{begin} and {end} have no commit in common here", _unshallow(folder))
    return Revision(folder, bases[0], bases[0])


def unmerged(root: str) -> list[str]:
    """Return the data files of a corpus that an unfinished merge left undecided; errors as in `find`."""
    listed = _git(root, "ls-files", "--unmerged", "-z", "--", "data").split(b"\0")[:-1]
    return list(dict.fromkeys(os.fsdecode(line.partition(b"\t")[2]) for line in listed))


def merge_texts(ours: str, base: str, theirs: str) -> None:
    """Let git merge three texts into our file, with markers at conflicts; raise `DataFileError` without git."""
    _run_git("", "merge-file", "-Lours", "-Lbase", "-Ltheirs", *map(os.path.abspath, (ours, base, theirs)))


def _commit(folder: str, name: str) -> Revision:
    answer = ""
    if name and name.isprintable():
        output = _git(folder, "cat-file", "--batch-check", question=f"{name}^{{commit}}")
        answer = output.decode("utf-8", "replace").rstrip("\n")
    if answer.endswith(" ambiguous"):
        raise DataFileError(f"{quote(name)} is the beginning of several ids", "Write more of the id.")
    commit = re.match(f"({_FULL_ID}) commit ", answer)
    if commit is None:
        hint = unshallow = _unshallow(folder)
        if re.fullmatch(_FULL_ID, name.lower()):
            bring = "The clone is shallow; bring" if unshallow else "Bring"
            hint = f"{bring} the commit with: git fetch --depth=1 {_remote(folder)} {name}"
        elif not hint:
            hint = "Nor is it a folder that holds data/papers.yaml. See git log and git branch --all for what there is."
        raise DataFileError(f"there is no commit {quote(name)} in this clone", hint)
    return Revision(folder, commit[1], name)


def _unshallow(folder: str) -> str:
    """Return how to complete a shallow clone; empty for a complete one."""
    if _run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() != b"true":
        return ""
    return f"The clone is shallow; bring its history with: git fetch --unshallow {_remote(folder)}"


def _remote(folder: str) -> str:
    """Return the remote that a hint names: `origin`, unless there are only others."""
    remotes = _run_git(folder, "remote").stdout.decode("utf-8", "replace").split()
    return printable(remotes[0]) if remotes and "origin" not in remotes else "origin"


def _git(folder: str, *words: str, question: str = "") -> bytes:
    """Return the output of git; raise `DataFileError` if it fails."""
    done = _run_git(folder, *words, question=question)
    if done.returncode:
        complaint = done.stderr.decode("utf-8", "replace").strip()
        if "not a git repository" in complaint:
            raise DataFileError(f"{quote(folder or '.')} is in no git repository", _COMPARE_FOLDERS)
        if "promisor" in complaint:
            hint = f"Bring it with: git fetch --refetch {_remote(folder)}"
            raise DataFileError("this partial clone lacks a part of the revision", hint)
        raise DataFileError(f"git {words[0]}: {printable(complaint, limit=300)}")
    return done.stdout


def _run_git(folder: str, *words: str, question: str = "") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES} | _OFFLINE
    command = ["git", "-C", folder or ".", "--no-pager", "--literal-pathspecs", *words]
    asked = os.fsencode(f"{question}\n") if question else b""
    try:
        return subprocess.run(command, env=environment, input=asked, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise DataFileError("git is not installed", "Compare two folders instead, or install git.") from error
    except OSError as error:
        raise DataFileError(f"git cannot be run: {error.strerror}", _COMPARE_FOLDERS) from error
