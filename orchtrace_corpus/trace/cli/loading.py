"""Loads traces that can be measured, decoded and without errors, and reports on the others."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.files import new_file
from orchtrace_corpus.base.findings import has_errors, printable, quote, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
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
from orchtrace_corpus.trace.model.store import is_unreadable, refusal

if TYPE_CHECKING:  # who only reads logs checks no traces
    from orchtrace_corpus.trace.analysis.outcomes import Outcome, Outcomes
    from orchtrace_corpus.trace.rules import Examined
    from orchtrace_corpus.trace.view import TraceView

Derived = TypeVar("Derived")
Form = TypeVar("Form", bound=str)


class TextOrJson(StrEnum):
    """The forms of what is no table: for people, or for programs."""

    TEXT = "text"
    JSON = "json"


_STANDARD_INPUT, _ITS_NAME = "-", "<stdin>"
_LARGE_BYTES = 50_000_000
_RECOGNISED_BYTES = 1 << 20


def sound_traces(
    session: Session, given: Iterable[Document], *, is_all: bool = True
) -> Iterator[tuple[Document, "TraceView"]]:
    """Documents with their traces as values, each checked; traces with errors are left out, and told.

    Args:
        session: Where warnings are reported, in number.
        given: The documents.
        is_all: Whether there is nothing else to show, so that it is an error if all of them have errors.

    Raises:
        DataFileError: A file cannot be read, or none as JSON.
        InvalidTraceError: All traces have errors; the message shows the first of them.
    """
    from orchtrace_corpus.trace import rules

    checked = _Checked(is_all=is_all)
    for document in given:
        yield from ((document, view) for view in checked.sound(rules.examine(itself, document)))
    checked.report(session)


def documents_of(session: Session, paths: Sequence[str], name: str = "") -> Iterator[Document]:
    """The traces of files, folders and standard input as documents, none of them decoded yet; logs are imported.

    Reading a large file is noted where somebody sits at a terminal.

    Args:
        session: Where remarks go.
        paths: The files and folders; `-` for standard input.
        name: Of several traces the only one wanted: its file, its name, or the beginning of that; all where empty.

    Raises:
        CommandUseError: Standard input is wanted twice, or it is a terminal; or no trace, or several, have the name.
        DataFileError: A file cannot be read.
    """
    given = _documents(session, paths)
    if name:
        named = (Named(name_of(one), one.file, one) for one in given)
        given = iter((choose(named, name),))
    yield from given


def _documents(session: Session, paths: Sequence[str]) -> Iterator[Document]:
    if paths.count(_STANDARD_INPUT) > 1:
        raise CommandUseError("standard input can be read only once")
    if _STANDARD_INPUT in paths:
        if sys.stdin is None or sys.stdin.isatty():
            raise CommandUseError("there is nothing on standard input", "Name a file, or pipe a trace in.")
        given = documents_in(sys.stdin.buffer, _ITS_NAME)
        first = next(given)
        _refuse_log(first)
        yield from chain((first,), given)
    found = logs.inputs(session, [path for path in paths if path != _STANDARD_INPUT])
    yield from in_files(session, found.traces)
    if not found.sessions:
        return
    from orchtrace_corpus.trace.importers.core.builder import as_data
    from orchtrace_corpus.trace.model.import_report import ImportReport, report_of
    from orchtrace_corpus.trace.model.json_text import text

    dropped: dict[str, tuple[int, str]] = {}
    for one, trace in logs.traces(session, found.sessions, logs.privacy(), is_all=not found.traces):
        for kind, noted in (report_of(trace) or ImportReport()).dropped.items():
            number, place = dropped.get(kind, (0, noted.for_example[0]))
            dropped[kind] = number + noted.number, place
        yield Document(text(as_data(trace)).encode(), f"{printable(one.files[0], limit=300)}{IMPORTED}")
    for kind, (number, place) in dropped.items():
        session.output.note(f"corpus: left out: {number:,} x {kind} (such as {printable(place, limit=100)})")


def _refuse_log(document: Document) -> None:
    """See that standard input holds no log.

    Raises:
        CommandUseError: It does; the message names the format.
    """
    beginning = document.data[:_RECOGNISED_BYTES]
    if may_hold_traces(beginning.decode("utf-8", "replace")):
        return
    from orchtrace_corpus.trace import importers

    if form := importers.format_of(beginning):
        hint = "Logs are read from files and folders: name the file or folder that holds it."
        raise CommandUseError(f"standard input holds a log of {importers.title(form)}, not a trace", hint)


Judged: TypeAlias = "tuple[Document, Outcome | None]"
"""A document, and how its run ended, if that is said elsewhere."""


def judged(given: Iterable[Document], outcomes: "Outcomes | None") -> Iterator[Judged]:
    """Documents with the outcomes of their runs.

    Raises:
        CommandUseError: One outcome would be of two runs.
    """
    for document in given:
        yield document, outcomes.take(name_of(document)) if outcomes else None


def in_files(session: Session, files: Sequence[str]) -> Iterator[Document]:
    """The documents of files of traces.

    Raises:
        DataFileError: A file cannot be read.
    """
    for file in files:
        size = os.path.getsize(file) if os.path.isfile(file) else 0
        if size > _LARGE_BYTES and session.output.talk_width is not None:
            session.output.note(f"corpus: reading {printable(file, limit=300)}, {size / 1e6:,.0f} MB")
        yield from documents(file)


class Named(NamedTuple, Generic[Derived]):
    """Something that has the name of a session.

    Attributes:
        name: The name.
        file: The file that the session begins in; empty where that is unknown.
        value: What has the name.
    """

    name: str
    file: str
    value: Derived


def choose(given: Iterable[Named[Derived]], name: str) -> Derived:
    """The only session that a name stands for, by its file, its very name, or the beginning of that.

    Raises:
        CommandUseError: There is none, or there are several.
    """
    from orchtrace_corpus.trace.diagnosis import match
    from orchtrace_corpus.trace.diagnosis.values import Match

    best, alike, others = Match.NONE, list[Named[Derived]](), list[str]()
    for one in given:
        fit = match(one.name, one.file, name)
        others.append(one.name)
        if fit > best:
            best, alike = fit, [one]
        elif fit and fit == best:
            alike.append(one._replace(value=alike[0].value))  # of two, none is wanted: no need to hold both
    if not alike:
        raise CommandUseError(f"no session begins with {quote(name)}", f"Sessions found: {listed(others)}")
    if len(alike) == 1:
        return alike[0].value
    are_namesakes = len({one.name for one in alike}) < len(alike)
    files = [f" ({printable(one.file, limit=100)})" if are_namesakes and one.file else "" for one in alike]
    shown = [printable(one.name) + file for one, file in zip(alike, files, strict=True)]
    verb = "begin with" if alike[0].name.startswith(name) else "are in"
    hint = "Name the file of the one that you mean: --session FILE" if are_namesakes else "Write more of the name."
    said = f"{len(alike)} sessions {verb} {quote(name)}: {first_names_and_more(shown, 5, ', …')}"
    raise CommandUseError(said, hint)


def listed(names: Sequence[str]) -> str:
    """The first of some names, as many as anybody would read."""
    return first_names_and_more([printable(name) for name in names], 5, ", …")


def one_trace(session: Session, path: str, name: str = "") -> tuple[Document, "TraceView"]:
    """The only trace of a file, folder or log, or of standard input, as text and as values.

    Args:
        session: Where remarks go.
        path: The file or folder.
        name: Of several, the one that is wanted, as in `documents_of`.

    Raises:
        CommandUseError: There are several, and no name, or one that says not which.
        DataFileError: It cannot be read, or not as JSON.
        InvalidTraceError: The trace has errors.
    """
    found = list(documents_of(session, [path], name))
    if len(found) > 1:
        hint = f"Name one with --session: {listed([name_of(one) for one in found])}"
        raise CommandUseError(f"{quote_path(path)} holds {len(found)} traces, and one is wanted", hint)
    ((_, view),) = sound_traces(session, found)
    return found[0], view


def derive_each(
    session: Session, judged_traces: Iterable[Judged], derive: Callable[["Outcome | None", "TraceView"], Derived]
) -> Iterator[Derived]:
    """Apply a function to each trace and its outcome, in several processes if there are many.

    Args:
        session: Where warnings are reported.
        judged_traces: The traces as documents, with their outcomes.
        derive: A function that other processes can import; what it returns is sent from one to another.

    Raises:
        DataFileError: A file cannot be read, or none as JSON.
        InvalidTraceError: All traces have errors; the message shows the first of them.
    """
    from orchtrace_corpus.base.workers import in_order

    checked = _Checked()
    for examined in in_order(partial(_examine, derive), judged_traces, size_bytes=lambda one: one[0].size()):
        yield from checked.sound(examined)
    checked.report(session)


def _examine(derive: Callable[["Outcome | None", "TraceView"], Derived], one: Judged) -> "Examined[Derived]":
    from orchtrace_corpus.trace import rules

    document, outcome = one
    return rules.examine(partial(derive, outcome), document)


class _Checked:
    """The count of warnings and of traces with them, and the traces with errors."""

    def __init__(self, *, is_all: bool = True) -> None:
        self._number = 0
        self._places: list[str] = []
        self._refused: list[str] = []
        self._refusal: CorpusError | None = None
        self._has_any = not is_all

    def sound(self, examined: "Examined[Derived]") -> Iterator[Derived]:
        """Return the value of a trace without errors, and count its warnings."""
        if examined.value is None:
            self._refusal = self._refusal or refusal(examined.findings)
            first, *more = examined.findings
            self._refused.append(f"{first}; and {len(more):,} more" if more else str(first))
            return
        if examined.findings:
            self._number += len(examined.findings)
            self._places.append(examined.place)
        self._has_any = True
        yield examined.value

    def report(self, session: Session) -> None:
        """Say what was left out, and how many warnings there were, and where if it is one trace.

        Raises:
            DataFileError: Nothing is left, and the first that was given is not JSON.
            InvalidTraceError: Nothing is left, and the first has errors.
        """
        if isinstance(self._refusal, DataFileError) and not self._has_any:
            from orchtrace_corpus.trace import importers

            hint = f"Accepted: traces in JSON or JSON Lines, and logs in these formats: {', '.join(importers.names())}."
            raise DataFileError(str(self._refusal.args[0]), hint)
        if self._refusal and not self._has_any:
            raise self._refusal
        logs.leave_out(session, self._refused, "trace")
        if self._places:
            where = f" in {len(self._places)} traces" if len(self._places) > 1 else ""
            place = "" if where else f"{self._places[0]}: "
            session.output.note(
                f"corpus: {place}{pluralize(self._number, 'warning')}{where}; see corpus trace validate"
            )


def itself(view: "TraceView") -> "TraceView":
    """The trace, of which nothing more is derived."""
    return view


def report(
    session: Session,
    paths: Sequence[str],
    form: FindingsFormat = FindingsFormat.TEXT,
    *,
    strict: bool = False,
    limit: int | None = None,
    name: str = "",
) -> ExitCode:
    """Show every mistake in traces, and return the exit code.

    Args:
        session: Where they are shown.
        paths: The traces.
        form: The form of the output.
        strict: Whether warnings fail, too.
        limit: How many are shown; None for all.
        name: Of several traces the only one wanted, as in `documents_of`.

    Raises:
        CommandUseError: Standard input is wanted twice, or it is a terminal.
        DataFileError: A file cannot be read.
    """
    from orchtrace_corpus.trace import rules

    found = rules.validate(documents_of(session, paths, name))
    session.show_findings(found.findings, form, limit)
    text = f"{render.summary(found.findings)} in {pluralize(found.traces, 'trace')}"
    if found.schema_only:
        where = "" if found.traces == 1 else f" in {found.schema_only} of them"
        mended = "it is" if len(found.findings) == 1 else "these are"
        text += f"; the rules of the graph are checked{where} once {mended} mended"
    session.output.note(text)
    if is_unreadable(found.findings):
        return ExitCode.UNREADABLE
    fails = has_errors(found.findings) or (strict and found.findings)
    return ExitCode.FINDINGS if fails else ExitCode.DONE


def by_ending(path: str, endings: Mapping[str, Form], noun: str, option: str) -> Form:
    """The form that the ending of a file's name stands for.

    Args:
        path: The file; empty for standard output.
        endings: The forms by ending, with the one for a name without.
        noun: What is written.
        option: The option that names a form.

    Raises:
        CommandUseError: The ending stands for none of them.
    """
    ending = os.path.splitext(path.rstrip(os.sep))[1].lower()
    if ending not in endings:
        known, forms = ", ".join(filter(None, endings)), "|".join(dict.fromkeys(endings.values()))
        hint = f"Name a file in {known}, or say {option} {forms}."
        raise CommandUseError(f"no form of {noun} ends in {quote(ending)}", hint)
    return endings[ending]


def refuse_lines(path: str) -> None:
    """See that a trace laid out on many lines gets no name under which it would be read line by line.

    Raises:
        CommandUseError: It would.
    """
    if path.lower().endswith(LINES):
        shown = quote_path(path)
        raise CommandUseError(f"{shown} would be read line by line, and a trace is laid out on many", "Name it .json.")


def deliver(session: Session, path: str, text: str) -> None:
    """Write a file that is not there yet, and say so; to standard output where no path is given.

    Raises:
        DataFileError: It is there, or cannot be written.
    """
    if not path:
        session.output.write(text)
        return
    try:
        with new_file(path) as file:
            file.write(text)
    except FileExistsError as error:
        raise DataFileError(f"{quote_path(path)} exists already", "Choose a new name, or remove it first.") from error
    except OSError as error:
        raise DataFileError(f"cannot write {quote_path(path)}: {error.strerror}") from error
    session.output.note(f"wrote {printable(path, limit=300)}")
