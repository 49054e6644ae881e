"""Importers: logs that agent teams already write, as traces. One module for each format."""

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, quote_path, suggestion
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.identity import Answers
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.model.trace import Trace

FORMATS: Mapping[str, str] = {
    "claude_code": "Claude Code transcripts (JSON Lines)",
    "codex": "Codex CLI rollouts (JSON Lines)",
    "openai_agents": "OpenAI Agents SDK export (JSON)",
    "otlp": "OpenTelemetry GenAI or OpenInference spans (OTLP JSON)",
    "langsmith": "LangSmith or LangGraph run trees (JSON)",
}
"""Every format by its name. The first that recognises a file has it."""

_CONVERSATIONS = ("claude_code", "codex")


class Importer(Protocol):
    """What the module of a format offers."""

    def recognises(self, beginning: Head) -> bool:
        """Whether a file that begins like this is of the format."""

    def sessions(self, files: Sequence[LogFile]) -> Iterator[Sequence[LogFile]]:
        """Groups of files that make up one trace each, such as a session and its sub-agents."""

    def read(self, files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
        """The traces of one group of files; mostly one.

        Raises:
            DataFileError: A file cannot be read, or is no log of the format.
        """


class Session(NamedTuple):
    """Files that make up one trace or more, and the format that they are in; no format where they may not be read."""

    form: str
    files: tuple[LogFile, ...]


def importer(form: str) -> Importer:
    """The importer of a format.

    Raises:
        CommandUseError: There is no such format.
    """
    if form not in FORMATS:
        raise CommandUseError(f"there is no log format {quote(form)}{suggestion(form, list(FORMATS))}")
    family = "conversations" if form in _CONVERSATIONS else "spans"
    found: Importer = import_module(f"orchtrace_corpus.trace.importers.{family}.{form}")
    return found


def sessions(paths: str | Sequence[str], form: str = "") -> list[Session]:
    """What is to be imported from files and folders, session by session; one session may be in several of them.

    A file that may not be read is a session of no format, so that `read` says so, and the others are read.

    Args:
        paths: The file or folder, or several.
        form: The format; else each file's is recognised from how it begins, and files of none are passed over.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is no log there, or no file is a log of any format.
    """
    given = [paths] if isinstance(paths, str) else list(paths)
    once: dict[Hashable, LogFile] = {}
    for file in (file for path in given for file in logs.find(path)):
        once.setdefault(_identity(file.path), file)
    files = list(once.values())
    forbidden = dict.fromkeys(file for file in files if not os.access(file.path, os.R_OK))
    by_format: dict[str, list[LogFile]] = {}
    for file in (file for file in files if file not in forbidden):
        recognised = form or recognise(file)
        if recognised:
            by_format.setdefault(recognised, []).append(file)
    if not by_format and not forbidden:
        first = "it" if len(files) == 1 else f"of {len(files):,} files the first, {quote_path(files[0].name)},"
        message = f"{', '.join(map(quote_path, given[:3]))} is no log of a format that we know: {first}"
        hint = f"Formats: {', '.join(FORMATS)}; --from names one."
        raise DataFileError(f"{message} {_description(files[0])}", hint)
    found = [Session(name, tuple(group)) for name, of in by_format.items() for group in importer(name).sessions(of)]
    return [*found, *(Session("", (file,)) for file in forbidden)]


def _identity(path: str) -> Hashable:
    """By what a file is known under any name; its path where it has gone meanwhile."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return status.st_dev, status.st_ino


def recognise(file: LogFile) -> str:
    """The format of a file; empty where it is of none.

    Raises:
        DataFileError: The file cannot be read.
    """
    found = _format_of(logs.head(file, 1, logs.FIRST_BYTES))  # mostly enough, and the rest takes its time
    return found or _format_of(logs.head(file))


def _format_of(beginning: Head) -> str:
    return next((name for name in FORMATS if importer(name).recognises(beginning)), "")


def read(session: Session, privacy: Privacy, answers: Answers | None = None) -> Iterator[Trace]:
    """The traces of a session.

    Args:
        session: The session.
        privacy: How contents are referred to.
        answers: What sessions before it had, if they are parts of one import.

    Raises:
        DataFileError: A file cannot be read, or is no log of the format.
    """
    if not session.form:
        raise DataFileError(f"cannot read {quote_path(session.files[0].path)}: Permission denied")
    traces = importer(session.form).read(session.files, privacy)
    known = answers or Answers()
    while True:
        with privacy.names_apart(), known.remembered():
            trace = next(traces, None)
        if trace is None:
            return
        yield trace


def _description(file: LogFile) -> str:
    """What a file begins with, in a few words."""
    beginning = logs.head(file)
    if not beginning.text.strip():
        return "is empty"
    if beginning.is_utf16:
        return "is UTF-16; save it as UTF-8"
    if beginning.rows:
        return f"begins with an object of {', '.join(quote(masked(name)) for name in list(beginning.rows[0])[:5])}"
    return f"begins with {quote(masked(beginning.text)[:40])}"
