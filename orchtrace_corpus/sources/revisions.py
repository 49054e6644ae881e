"""Reads files as they are in a revision of a git repository, through the git program; never asks a network."""

import os
import subprocess
from typing import NamedTuple

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.findings import printable, quote

_MISLEADING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")
"""What a hook's environment holds; the repository is the one around the folder asked about."""

_SYMLINK = "120000"


class Revision(NamedTuple):
    """A commit of the repository around a folder.

    Attributes:
        folder: The folder.
        commit: The commit's full name.
    """

    folder: str
    commit: str

    def read(self, name: str) -> bytes | None:
        """A file below the folder as it was at the commit; None if there was none.

        Raises:
            DataFileError: It was a symbolic link or a folder, or git cannot read it.
        """
        listed = _git(self.folder, "ls-tree", "-z", self.commit, "--", f"./{name}")
        if not listed:
            return None
        mode, kind, _ = listed.split(" ", 2)
        if mode == _SYMLINK or kind != "blob":
            raise DataFileError(f"{name} is no plain file in {self.commit[:12]}, and is not read through")
        return _run(self.folder, "cat-file", "blob", f"{self.commit}:./{name}")


def find(folder: str, name: str) -> Revision:
    """The commit that a revision's name means in the repository around a folder.

    `A...B` means the last commit that both descend from.

    Raises:
        DataFileError: There is no git, no repository, or no such commit in it; the message says how a
            clone that lacks it gets it.
    """
    first, dots, second = name.partition("...")
    if dots:
        ends = [find(folder, end or "HEAD").commit for end in (first, second)]
        try:
            return Revision(folder, _git(folder, "merge-base", *ends).strip())
        except DataFileError as error:
            raise DataFileError(
                f"{quote(first)} and {quote(second or 'HEAD')} have no common commit here", _bring(folder, first)
            ) from error
    try:
        commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except DataFileError as error:
        _git(folder, "rev-parse", "--git-dir")  # a folder outside a repository is said to be one
        raise DataFileError(f"there is no commit {quote(name)} in this clone", _bring(folder, name)) from error
    return Revision(folder, commit.strip())


def _bring(folder: str, name: str) -> str:
    """How a clone gets a commit that it lacks."""
    if _git(folder, "rev-parse", "--is-shallow-repository").strip() != "true":
        return "See git log and git branch --all for what there is."
    return f"The clone is shallow; bring the commit with: git fetch --depth=1 origin {printable(name)}"


def _git(folder: str, *words: str) -> str:
    return _run(folder, *words).decode("utf-8", "replace")


def _run(folder: str, *words: str) -> bytes:
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "-C", folder or ".", "--no-pager", "--literal-pathspecs", *words]
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise DataFileError("git is not installed", "Compare two folders instead, or install git.") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        if "not a git repository" in said:
            raise DataFileError(f"{quote(folder or '.')} is in no git repository", "Compare two folders instead.")
        raise DataFileError(f"git {words[0]}: {printable(said, limit=300)}")
    return done.stdout
