"""Load traces for commands: read documents, decode and check them, and report those with errors."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
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

STANDARD_INPUT = "-"
STANDARD_INPUT_NAME = "<stdin>"
_LARGE_BYTES = 50_000_000
_RECOGNISED_BYTES = 1 << 20
"""The size of the beginning of standard input in which the format of a log is recognised."""


class TextOrJson(StrEnum):
    """The output formats of reports that are not tables."""

    TEXT = "text"
    JSON = "json"


def sound_traces(
    session: Session, documents: Iterable[Document], *, is_only_input: bool = True
) -> Iterator[tuple[Document, "TraceView"]]:
    """Yield documents with their traces; traces with errors are left out and reported.

    `is_only_input` is True if there is nothing else to show: then it is an error if all traces have errors.
    """
    from orchtrace_corpus.trace import rules

    collector = _FindingCollector(is_only_input=is_only_input)
    for document in documents:
        for view in collector.sound_values(rules.check_and_derive(lambda view: view, document)):
            yield document, view
    collector.report(session)


def documents_of(session: Session, paths: Sequence[str], name: str = "") -> Iterator[Document]:
    """Yield the traces of files, folders and standard input as documents; logs are imported first.

    With a name, only one trace is yielded, that which `choose_by_name` finds.
    """
    documents = _documents(session, paths)
    if not name:
        yield from documents
        return
    candidates = (Candidate(name_of(document), document.file, document) for document in documents)
    yield choose_by_name(candidates, name)


def _documents(session: Session, paths: Sequence[str]) -> Iterator[Document]:
    if paths.count(STANDARD_INPUT) > 1:
        raise CommandUseError("standard input can be read only once")
    if STANDARD_INPUT in paths:
        if sys.stdin is None or sys.stdin.isatty():
            raise CommandUseError("there is nothing on standard input", "Name a file, or pipe a trace in.")
        piped = documents_in(sys.stdin.buffer, STANDARD_INPUT_NAME)
        first = next(piped)
        _refuse_log(first)
        yield first
        yield from piped
    inputs = logs.find_inputs(session, [path for path in paths if path != STANDARD_INPUT])
    yield from documents_in_files(session, inputs.traces)
    if not inputs.sessions:
        return
    from orchtrace_corpus.trace.importers.core.builder import as_data
    from orchtrace_corpus.trace.model.import_report import ImportReport, report_of
    from orchtrace_corpus.trace.model.json_text import text

    # The records of logs that are in no trace: their number by kind, and the place of the first one.
    dropped_counts: Counter[str] = Counter()
    first_places: dict[str, str] = {}
    is_only_input = not inputs.traces
    sessions = logs.read_sessions(session, inputs.sessions, logs.make_privacy(), is_only_input=is_only_input)
    for imported, trace in sessions:
        report = report_of(trace) or ImportReport()
        for kind, drop in report.dropped.items():
            dropped_counts[kind] += drop.number
            first_places.setdefault(kind, drop.for_example[0])
        yield Document(text(as_data(trace)).encode(), f"{printable(imported.files[0], limit=300)}{IMPORTED}")
    for kind, count in dropped_counts.items():
        example = printable(first_places[kind], limit=100)
        session.output.note(f"corpus: left out: {count:,} x {kind} (such as {example})")


def _refuse_log(document: Document) -> None:
    """Raise CommandUseError if the first document of standard input is a log."""
    beginning = document.data[:_RECOGNISED_BYTES]
    if may_hold_traces(beginning.decode("utf-8", "replace")):
        return
    from orchtrace_corpus.trace import importers

    if form := importers.format_of(beginning):
        hint = "Logs are read from files and folders: name the file or folder that holds it."
        raise CommandUseError(f"standard input holds a log of {importers.title(form)}, not a trace", hint)


RunDocument: TypeAlias = "tuple[Document, Outcome | None]"
"""The trace of a run as a document, and the outcome of the run, or None if the user gives none."""


def with_outcomes(documents: Iterable[Document], outcomes: "Outcomes | None") -> Iterator[RunDocument]:
    """Yield documents with the outcomes of their runs."""
    for document in documents:
        outcome = outcomes.take(name_of(document)) if outcomes else None
        yield document, outcome


def documents_in_files(session: Session, files: Sequence[str]) -> Iterator[Document]:
    """Yield the documents of trace files. Before a large file, a note is written to a terminal."""
    for file in files:
        size = os.path.getsize(file) if os.path.isfile(file) else 0
        if size > _LARGE_BYTES and session.output.stderr_width is not None:
            session.output.note(f"corpus: reading {printable(file, limit=300)}, {size / 1e6:,.0f} MB")
        yield from documents(file)


class Candidate(NamedTuple, Generic[Derived]):
    """A session that a user may mean.

    Attributes:
        name: The name of the session.
        file: The file in which the session begins; empty if unknown.
        value: What is needed of the session if it is chosen.
    """

    name: str
    file: str
    value: Derived


def choose_by_name(candidates: Iterable[Candidate[Derived]], name: str) -> Derived:
    """Return the value of the only session with a name: that of its file, its own name, or the beginning of its name.

    Raises:
        CommandUseError: No session has the name, or several have it.
    """
    from orchtrace_corpus.trace.diagnosis import match
    from orchtrace_corpus.trace.diagnosis.values import Match

    best_quality = Match.NONE
    best: list[Candidate[Derived]] = []
    names: list[str] = []
    for candidate in candidates:
        quality = match(candidate.name, candidate.file, name)
        names.append(candidate.name)
        if quality > best_quality:
            best_quality = quality
            best = [candidate]
        elif quality and quality == best_quality:
            # With several matches, only their names are needed: the value is replaced, so that its memory is freed.
            best.append(candidate._replace(value=best[0].value))
    if not best:
        raise CommandUseError(f"no session begins with {quote(name)}", f"Sessions found: {_first_names(names)}")
    if len(best) == 1:
        return best[0].value
    labels = [printable(candidate.name) for candidate in best]
    hint = "Write more of the name."
    if len(set(labels)) < len(labels):
        for index, candidate in enumerate(best):
            if candidate.file:
                labels[index] += f" ({printable(candidate.file, limit=100)})"
        hint = "Name the file of the one that you mean: --session FILE"
    verb = "begin with" if best[0].name.startswith(name) else "are in"
    message = f"{len(best)} sessions {verb} {quote(name)}: {first_names_and_more(labels, 5, ', …')}"
    raise CommandUseError(message, hint)


def _first_names(names: Sequence[str]) -> str:
    return first_names_and_more([printable(name) for name in names], 5, ", …")


def load_one_trace(session: Session, path: str, name: str = "") -> tuple[Document, "TraceView"]:
    """Return the only trace of a file, folder, log or standard input, or the one that `choose_by_name` finds."""
    documents = list(documents_of(session, [path], name))
    if len(documents) > 1:
        hint = f"Name one with --session: {_first_names([name_of(document) for document in documents])}"
        raise CommandUseError(f"{quote_path(path)} holds {len(documents)} traces, and one is wanted", hint)
    ((document, view),) = sound_traces(session, documents)
    return document, view


def derive_each(
    session: Session, runs: Iterable[RunDocument], derive: Callable[["Outcome | None", "TraceView"], Derived]
) -> Iterator[Derived]:
    """Yield the result of a function for each outcome and trace without errors, in several processes if there are many.

    The function must be importable by name, and its results must be picklable.
    """
    from orchtrace_corpus.base.workers import map_in_order

    collector = _FindingCollector()
    for examined in map_in_order(partial(_examine, derive), runs, size_bytes=lambda run: run[0].size()):
        yield from collector.sound_values(examined)
    collector.report(session)


def _examine(derive: Callable[["Outcome | None", "TraceView"], Derived], run: RunDocument) -> "CheckedTrace[Derived]":
    from orchtrace_corpus.trace import rules

    document, outcome = run
    return rules.check_and_derive(partial(derive, outcome), document)


class _FindingCollector:
    """Collects the findings of traces: the number of warnings, and the traces with errors."""

    def __init__(self, *, is_only_input: bool = True) -> None:
        self._warning_count = 0
        self._places_with_warnings: list[str] = []
        self._left_out: list[str] = []  # the first error of each trace with errors
        self._first_error: CorpusError | None = None
        self._has_output = not is_only_input

    def sound_values(self, examined: "CheckedTrace[Derived]") -> Iterator[Derived]:
        """Yield the value of a trace if the trace has no errors."""
        if examined.value is None:
            if self._first_error is None:
                self._first_error = refusal(examined.findings)
            first, *others = examined.findings
            self._left_out.append(f"{first}; and {len(others):,} more" if others else str(first))
            return
        if examined.findings:
            self._warning_count += len(examined.findings)
            self._places_with_warnings.append(examined.place)
        self._has_output = True
        yield examined.value

    def report(self, session: Session) -> None:
        """Report the traces left out, and the number of warnings; raise the first error if there is nothing to show."""
        if self._first_error and not self._has_output:
            if not isinstance(self._first_error, DataFileError):
                raise self._first_error
            from orchtrace_corpus.trace import importers

            hint = f"Accepted: traces in JSON or JSON Lines, and logs in these formats: {', '.join(importers.names())}."
            raise DataFileError(str(self._first_error.args[0]), hint)
        logs.report_left_out(session, self._left_out, "trace")
        places = self._places_with_warnings
        if not places:
            return
        text = pluralize(self._warning_count, "warning")
        text = f"{places[0]}: {text}" if len(places) == 1 else f"{text} in {len(places)} traces"
        session.output.note(f"corpus: {text}; see corpus trace validate")


def format_by_ending(path: str, formats_by_ending: Mapping[str, Form], noun: str, option: str) -> Form:
    """Return the format for the ending of a file name; the ending is empty for standard output.

    Args:
        path: The name of the file.
        formats_by_ending: The formats.
        noun: The noun for the output in the message of an error.
        option: The option that names a format, for the hint of an error.
    """
    ending = os.path.splitext(path.rstrip(os.sep))[1].lower()
    if ending not in formats_by_ending:
        endings = ", ".join(known for known in formats_by_ending if known)
        formats = "|".join(dict.fromkeys(formats_by_ending.values()))
        hint = f"Name a file in {endings}, or say {option} {formats}."
        raise CommandUseError(f"no form of {noun} ends in {quote(ending)}", hint)
    return formats_by_ending[ending]


def refuse_json_lines(path: str) -> None:
    """Raise CommandUseError if the name of a file ends like JSON Lines: a trace is written as one JSON document."""
    if path.lower().endswith(LINES):
        message = f"{quote_path(path)} would be read line by line, and a trace is laid out on many"
        raise CommandUseError(message, "Name it .json.")


def write_output(session: Session, path: str, text: str) -> None:
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
    """Return the error for a new file that exists already or cannot be written."""
    if isinstance(error, FileExistsError):
        return DataFileError(f"{quote_path(path)} exists already", "Choose a new name, or remove it first.")
    return DataFileError(f"cannot write {quote_path(path)}: {error.strerror}")
