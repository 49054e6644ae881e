"""Loads sound traces for commands: reads documents, decodes and checks them, and reports those with errors."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError
from orchtrace_corpus.base.files import new_file
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more, pluralize
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.model.decode import (
    IMPORTED,
    LINES,
    Document,
    documents,
    documents_in,
    may_hold_traces,
    name_of,
)
from orchtrace_corpus.trace.model.store import refusal

if TYPE_CHECKING:  # commands that only read logs check no traces
    from orchtrace_corpus.trace.analysis.outcomes import Outcome, Outcomes
    from orchtrace_corpus.trace.rules import CheckedTrace
    from orchtrace_corpus.trace.view import TraceView

Derived = TypeVar("Derived")
Form = TypeVar("Form", bound=str)

STANDARD_INPUT, STANDARD_INPUT_NAME = "-", "<stdin>"
_LARGE_BYTES = 50_000_000
_RECOGNISED_BYTES = 1 << 20


class TextOrJson(StrEnum):
    """The output formats of reports that are not tables."""

    TEXT = "text"
    JSON = "json"


def sound_traces(
    session: Session, documents: Iterable[Document], *, is_all: bool = True
) -> Iterator[tuple[Document, "TraceView"]]:
    """Yield documents with their traces; traces with errors are left out and reported.

    With `is_all`, there is nothing else to show, so that it is an error if all traces have errors.
    """
    from orchtrace_corpus.trace import rules

    check = _Check(is_all=is_all)
    for document in documents:
        for view in check.sound(rules.check_and_derive(lambda view: view, document)):
            yield document, view
    check.report(session)


def documents_of(session: Session, paths: Sequence[str], name: str = "") -> Iterator[Document]:
    """Yield the traces of files, folders and standard input as documents; logs are imported first.

    With a name, only the trace of that name, as in `choose`.
    """
    documents = _documents(session, paths)
    if name:
        documents = iter([choose((Named(name_of(each), each.file, each) for each in documents), name)])
    yield from documents


def _documents(session: Session, paths: Sequence[str]) -> Iterator[Document]:
    if paths.count(STANDARD_INPUT) > 1:
        raise CommandUseError("standard input can be read only once")
    if STANDARD_INPUT in paths:
        if sys.stdin is None or sys.stdin.isatty():
            raise CommandUseError("there is nothing on standard input", "Name a file, or pipe a trace in.")
        piped = documents_in(sys.stdin.buffer, STANDARD_INPUT_NAME)
        first = next(piped)
        _refuse_log(first)
        yield from chain((first,), piped)
    inputs = logs.find_inputs(session, [path for path in paths if path != STANDARD_INPUT])
    yield from documents_in_files(session, inputs.traces)
    if not inputs.sessions:
        return
    from orchtrace_corpus.trace.importers.core.builder import as_data
    from orchtrace_corpus.trace.model.import_report import ImportReport, report_of
    from orchtrace_corpus.trace.model.json_text import text

    dropped: dict[str, tuple[int, str]] = {}  # by kind, how many records and where the first of them is
    for imported, trace in logs.read_sessions(session, inputs.sessions, logs.privacy(), is_all=not inputs.traces):
        for kind, drop in (report_of(trace) or ImportReport()).dropped.items():
            count, place = dropped.get(kind, (0, drop.for_example[0]))
            dropped[kind] = count + drop.number, place
        yield Document(text(as_data(trace)).encode(), f"{printable(imported.files[0], limit=300)}{IMPORTED}")
    for kind, (count, place) in dropped.items():
        session.output.note(f"corpus: left out: {count:,} x {kind} (such as {printable(place, limit=100)})")


def _refuse_log(document: Document) -> None:
    """Raise CommandUseError if standard input holds a log."""
    beginning = document.data[:_RECOGNISED_BYTES]
    if may_hold_traces(beginning.decode("utf-8", "replace")):
        return
    from orchtrace_corpus.trace import importers

    if form := importers.format_of(beginning):
        hint = "Logs are read from files and folders: name the file or folder that holds it."
        raise CommandUseError(f"standard input holds a log of {importers.title(form)}, not a trace", hint)


RunDocument: TypeAlias = "tuple[Document, Outcome | None]"
"""The trace of a run as a document, and the outcome of the run if the user gives it."""


def with_outcomes(documents: Iterable[Document], outcomes: "Outcomes | None") -> Iterator[RunDocument]:
    """Yield documents with the outcomes of their runs."""
    for document in documents:
        yield document, outcomes.take(name_of(document)) if outcomes else None


def documents_in_files(session: Session, files: Sequence[str]) -> Iterator[Document]:
    """Yield the documents of trace files; a large file is announced on a terminal."""
    for file in files:
        size = os.path.getsize(file) if os.path.isfile(file) else 0
        if size > _LARGE_BYTES and session.output.stderr_width is not None:
            session.output.note(f"corpus: reading {printable(file, limit=300)}, {size / 1e6:,.0f} MB")
        yield from documents(file)


class Named(NamedTuple, Generic[Derived]):
    """A session's name, the file that it begins in, empty if unknown, and a value of the session."""

    name: str
    file: str
    value: Derived


def choose(candidates: Iterable[Named[Derived]], name: str) -> Derived:
    """Return the value of the only session with a name: by its file, its exact name, or the beginning of its name."""
    from orchtrace_corpus.trace.diagnosis import match
    from orchtrace_corpus.trace.diagnosis.values import Match

    best, matches, names = Match.NONE, list[Named[Derived]](), list[str]()
    for candidate in candidates:
        fit = match(candidate.name, candidate.file, name)
        names.append(candidate.name)
        if fit > best:
            best, matches = fit, [candidate]
        elif fit and fit == best:
            matches.append(candidate._replace(value=matches[0].value))  # frees the value: no match is used any more
    if not matches:
        raise CommandUseError(f"no session begins with {quote(name)}", f"Sessions found: {_listed(names)}")
    if len(matches) == 1:
        return matches[0].value
    shown = [printable(each.name) for each in matches]
    hint = "Write more of the name."
    if len({each.name for each in matches}) < len(matches):
        files = [f" ({printable(each.file, limit=100)})" if each.file else "" for each in matches]
        shown = [text + file for text, file in zip(shown, files, strict=True)]
        hint = "Name the file of the one that you mean: --session FILE"
    verb = "begin with" if matches[0].name.startswith(name) else "are in"
    message = f"{len(matches)} sessions {verb} {quote(name)}: {first_names_and_more(shown, 5, ', …')}"
    raise CommandUseError(message, hint)


def _listed(names: Sequence[str]) -> str:
    return first_names_and_more([printable(name) for name in names], 5, ", …")


def one_trace(session: Session, path: str, name: str = "") -> tuple[Document, "TraceView"]:
    """Return the only trace of a file, folder, log or standard input, or the one with a name, as in `choose`."""
    documents = list(documents_of(session, [path], name))
    if len(documents) > 1:
        hint = f"Name one with --session: {_listed([name_of(document) for document in documents])}"
        raise CommandUseError(f"{quote_path(path)} holds {len(documents)} traces, and one is wanted", hint)
    ((document, view),) = sound_traces(session, documents)
    return document, view


def derive_each(
    session: Session, runs: Iterable[RunDocument], derive: Callable[["Outcome | None", "TraceView"], Derived]
) -> Iterator[Derived]:
    """Apply a function to each trace and its outcome, in several processes if there are many.

    The function must be importable by name, and its results must be picklable.
    """
    from orchtrace_corpus.base.workers import map_in_order

    check = _Check()
    for examined in map_in_order(partial(_examine, derive), runs, size_bytes=lambda run: run[0].size()):
        yield from check.sound(examined)
    check.report(session)


def _examine(derive: Callable[["Outcome | None", "TraceView"], Derived], run: RunDocument) -> "CheckedTrace[Derived]":
    from orchtrace_corpus.trace import rules

    document, outcome = run
    return rules.check_and_derive(partial(derive, outcome), document)


class _Check:
    """Counts the warnings of traces, and collects the traces with errors."""

    def __init__(self, *, is_all: bool = True) -> None:
        self._warnings = 0
        self._places: list[str] = []  # of traces with warnings
        self._refused: list[str] = []
        self._refusal: CorpusError | None = None
        self._has_any = not is_all

    def sound(self, examined: "CheckedTrace[Derived]") -> Iterator[Derived]:
        """Yield the value of a trace if it has no errors."""
        if examined.value is None:
            self._refusal = self._refusal or refusal(examined.findings)
            first, *more = examined.findings
            self._refused.append(f"{first}; and {len(more):,} more" if more else str(first))
            return
        if examined.findings:
            self._warnings += len(examined.findings)
            self._places.append(examined.place)
        self._has_any = True
        yield examined.value

    def report(self, session: Session) -> None:
        """Report the traces left out, and the number of warnings; raise the first refusal if no trace is left."""
        if self._refusal and not self._has_any:
            if not isinstance(self._refusal, DataFileError):
                raise self._refusal
            from orchtrace_corpus.trace import importers

            hint = f"Accepted: traces in JSON or JSON Lines, and logs in these formats: {', '.join(importers.names())}."
            raise DataFileError(str(self._refusal.args[0]), hint)
        logs.report_left_out(session, self._refused, "trace")
        if not self._places:
            return
        text = f"{self._places[0]}: {pluralize(self._warnings, 'warning')}"
        if len(self._places) > 1:
            text = f"{pluralize(self._warnings, 'warning')} in {len(self._places)} traces"
        session.output.note(f"corpus: {text}; see corpus trace validate")


def by_ending(path: str, endings: Mapping[str, Form], noun: str, option: str) -> Form:
    """Return the format for the ending of a file name, which is empty for standard output.

    `noun` and `option` name the output and the option for a format in messages.
    """
    ending = os.path.splitext(path.rstrip(os.sep))[1].lower()
    if ending not in endings:
        known, forms = ", ".join(filter(None, endings)), "|".join(dict.fromkeys(endings.values()))
        hint = f"Name a file in {known}, or say {option} {forms}."
        raise CommandUseError(f"no form of {noun} ends in {quote(ending)}", hint)
    return endings[ending]


def refuse_lines(path: str) -> None:
    """Raise CommandUseError if a trace of many lines is to get a name under which files are read line by line."""
    if path.lower().endswith(LINES):
        shown = quote_path(path)
        raise CommandUseError(f"{shown} would be read line by line, and a trace is laid out on many", "Name it .json.")


def deliver(session: Session, path: str, text: str) -> None:
    """Write a new file and report it; without a path, write to standard output."""
    if not path:
        session.output.write(text)
        return
    try:
        with new_file(path) as file:
            file.write(text)
    except OSError as error:
        raise cannot_write(path, error) from error
    session.output.note(f"wrote {printable(path, limit=300)}")


def cannot_write(path: str, error: OSError) -> DataFileError:
    """Return the error for a new file that cannot be written, or exists already."""
    if isinstance(error, FileExistsError):
        return DataFileError(f"{quote_path(path)} exists already", "Choose a new name, or remove it first.")
    return DataFileError(f"cannot write {quote_path(path)}: {error.strerror}")
