"""The errors that stop a command, each with its exit code.

An exception means that the command could not do its work. Problems in the data are no exceptions but values: see
`findings.Finding`.
"""

import os
import sys
from enum import IntEnum

from orchtrace_corpus.base.annotations import ClassVar


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
        hint: What to do about it; empty if the message says so.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.UNREADABLE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n{self.hint}" if self.hint else message


class CommandUseError(CorpusError):
    """A command was used wrongly: an option, an argument or an answer is missing or unusable."""

    exit_code = ExitCode.USAGE


class MissingLibraryError(CommandUseError):
    """A feature needs a library that is not installed; the hint is the command that installs it.

    `extra` is the optional dependency group of this package that has the library.
    """

    def __init__(self, feature: str, library: str, extra: str) -> None:
        import shlex

        source_folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        if os.path.isfile(os.path.join(source_folder, "pyproject.toml")):
            requirement = ["-e", f"{_relative(source_folder)}[{extra}]"]
        else:
            requirement = [f"orchtrace-corpus[{extra}]"]
        python = _relative(sys.executable) if sys.executable else "python"
        command = shlex.join([python, "-m", "pip", "install", *requirement])
        super().__init__(f"{feature} needs {library}, which is not installed", f"Install it: {command}")


def require_library(feature: str, module: str, extra: str = "scale") -> None:
    """Raise `MissingLibraryError` if the library that a feature needs cannot be imported.

    Args:
        feature: The feature, for the message.
        module: The module to import.
        extra: The optional dependency group of this package that has the library.
    """
    from importlib import import_module

    try:
        import_module(module)
    except ImportError as error:
        raise MissingLibraryError(feature, module, extra) from error


def _relative(path: str) -> str:
    """Return a path relative to the working folder if the path is in this folder, else unchanged."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


class DataFileError(CorpusError):
    """A data file is missing or cannot be read."""


class OutputError(CorpusError):
    """The output could not be written, for example because the disk is full."""


class UpstreamError(CorpusError):
    """A web service did not answer, or its answer is of no use."""

    exit_code = ExitCode.UPSTREAM


class InvalidCorpusError(CorpusError):
    """The corpus has errors, so its counts would be wrong."""

    exit_code = ExitCode.FINDINGS


class MalformedCorpusError(InvalidCorpusError):
    """The corpus has syntax errors, so parts of it could not be read."""

    exit_code = ExitCode.UNREADABLE
