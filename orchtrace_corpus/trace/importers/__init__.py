"""Importers: logs that agent teams already write, as traces. One module for each format."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from orchtrace_corpus.errors import CommandUseError, DataFileError
from orchtrace_corpus.findings import quote, suggestion
from orchtrace_corpus.trace.importers import logs
from orchtrace_corpus.trace.importers.logs import Head, LogFile
from orchtrace_corpus.trace.importers.privacy import Privacy

FORMATS: Mapping[str, str] = {
    "claude_code": "Claude Code transcripts (JSON Lines)",
    "codex": "Codex CLI rollouts (JSON Lines)",
    "openai_agents": "OpenAI Agents SDK export (JSON)",
    "otlp": "OpenTelemetry GenAI or OpenInference spans (OTLP JSON)",
    "langsmith": "LangSmith or LangGraph run trees (JSON)",
}
"""Every format by its name; the module of that name reads it. The first that recognises a file has it."""


class Importer(Protocol):
    """What the module of a format offers."""

    def recognises(self, beginning: Head) -> bool:
        """Whether a file that begins like this is of the format."""

    def sessions(self, files: Sequence[LogFile]) -> Iterator[Sequence[LogFile]]:
        """Groups of files that make up one trace each, such as a session and its sub-agents."""

    def read(self, files: Sequence[LogFile], privacy: Privacy) -> Iterator[dict[str, Any]]:
        """The traces of one group of files, as JSON has them; mostly one.

        Raises:
            DataFileError: A file cannot be read, or is no log of the format.
        """


class Session(NamedTuple):
    """Files that make up one trace or more, and the format that they are in."""

    form: str
    files: tuple[LogFile, ...]


def importer(form: str) -> Importer:
    """The importer of a format.

    Raises:
        CommandUseError: There is no such format.
    """
    if form not in FORMATS:
        raise CommandUseError(f"there is no log format {quote(form)}{suggestion(form, list(FORMATS))}")
    found: Importer = import_module(f"orchtrace_corpus.trace.importers.{form}")
    return found


def sessions(path: str, form: str = "") -> list[Session]:
    """What is to be imported from a file or a folder, session by session.

    Args:
        path: The file or folder.
        form: The format; else each file's is recognised from how it begins, and files of none are passed over.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is no log there, or a single file is no log of any format.
    """
    files = logs.find(path)
    by_format: dict[str, list[LogFile]] = {}
    for file in files:
        recognised = form or recognise(file)
        if recognised:
            by_format.setdefault(recognised, []).append(file)
    if not by_format:
        raise DataFileError(
            f"{quote(path)} is no log of a format that we know: {_description(files[0])}",
            f"Formats: {', '.join(FORMATS)}; --from names one.",
        )
    return [
        Session(name, tuple(group)) for name, found in by_format.items() for group in importer(name).sessions(found)
    ]


def recognise(file: LogFile) -> str:
    """The format of a file; empty where it is of none.

    Raises:
        DataFileError: The file cannot be read.
    """
    beginning = logs.head(file)
    return next((name for name in FORMATS if importer(name).recognises(beginning)), "")


def read(session: Session, privacy: Privacy) -> Iterator[dict[str, Any]]:
    """The traces of a session, as JSON has them.

    Raises:
        DataFileError: A file cannot be read, or is no log of the format.
    """
    yield from importer(session.form).read(session.files, privacy)


def _description(file: LogFile) -> str:
    """What a file begins with, in a few words."""
    beginning = logs.head(file)
    if not beginning.text.strip():
        return "it is empty"
    if beginning.rows:
        return f"it begins with an object of {', '.join(quote(name) for name in list(beginning.rows[0])[:5])}"
    return f"it begins with {quote(beginning.text[:40])}"
