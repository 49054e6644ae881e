"""The errors that stop a command, each with its exit code.

An exception means "could not do it". Problems found *in* the data are values: see `findings`.
"""

import os
import sys
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit codes of `corpus`, stable from version to version."""

    DONE = 0
    FINDINGS = 1
    USAGE = 2
    UNREADABLE = 3
    UPSTREAM = 4
    BUG = 70
    INTERRUPTED = 130


class CorpusError(Exception):
    """Base of all errors that a user can act on.

    Attributes:
        hint: What to do about it, empty where the message already says so.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.UNREADABLE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n{self.hint}" if self.hint else message


class CommandUseError(CorpusError):
    """The words of the command line ask for something that does not exist."""

    exit_code = ExitCode.USAGE


class MissingLibraryError(CommandUseError):
    """Something needs a library that is not installed; the hint is the command that installs it here.

    Args:
        what: What needs it.
        library: The library.
        extra: The extra of our package that brings it.
    """

    def __init__(self, what: str, library: str, extra: str) -> None:
        import shlex

        tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        is_editable = os.path.isfile(os.path.join(tree, "pyproject.toml"))
        wanted = ["-e", f"{_shown(tree)}[{extra}]"] if is_editable else [f"orchtrace-corpus[{extra}]"]
        command = shlex.join([_shown(sys.executable) if sys.executable else "python", "-m", "pip", "install", *wanted])
        super().__init__(f"{what} needs {library}, which is not installed", f"Install it: {command}")


def need(what: str, module: str, extra: str = "scale") -> None:
    """See that an optional library is there.

    Args:
        what: What needs it.
        module: The library.
        extra: The extra of this package that brings it.

    Raises:
        MissingLibraryError: It is not installed.
    """
    from importlib import import_module

    try:
        import_module(module)
    except ImportError as error:
        raise MissingLibraryError(what, module, extra) from error


def _shown(path: str) -> str:
    """A path as seen from the working folder, if it is below it."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near


class DataFileError(CorpusError):
    """A data file is absent or cannot be read, so nothing can be said about it."""


class OutputError(CorpusError):
    """The output could not be written, for instance because the disk is full."""


class UpstreamError(CorpusError):
    """A service outside did not answer, or not with anything that can be used."""

    exit_code = ExitCode.UPSTREAM


class InvalidCorpusError(CorpusError):
    """The corpus has errors, so no count taken from it would be true."""

    exit_code = ExitCode.FINDINGS


class MalformedCorpusError(InvalidCorpusError):
    """The corpus has errors of syntax: parts of it could not even be read."""

    exit_code = ExitCode.UNREADABLE
