"""How commands come by traces that can be measured: decoded, and without errors."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import Finding, has_errors, printable, quote, quote_path
from orchtrace_corpus.base.workers import in_order
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.model.decode import LINES, Document, decode, documents, documents_in
from orchtrace_corpus.trace.model.store import refusal, trace_files
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view.view import Subject

Made = TypeVar("Made")
Form = TypeVar("Form", bound=str)

FILES_HELP = "Traces as JSON or JSON Lines; folders; - for standard input."
"""What the traces of a command may be."""

FILE_HELP = "A trace as JSON; - for standard input."
"""What the only trace of a command may be."""

_STANDARD_INPUT, _ITS_NAME = "-", "<stdin>"
_LARGE_BYTES = 50_000_000


def sound_traces(session: Session, paths: Sequence[str]) -> Iterator[Trace]:
    """The traces of files and folders, each checked; warnings are told in number.

    Raises:
        DataFileError: A file cannot be read, or not as JSON.
        InvalidTraceError: A trace has errors; the message shows the first of them.
    """
    for _, trace in sound_documents(session, paths):
        yield trace


def sound_documents(session: Session, paths: Sequence[str]) -> Iterator[tuple[Document, Trace]]:
    """The traces of files and folders as text and as values; warnings and errors as for `sound_traces`."""
    warnings = _Warnings()
    for document in documents_of(session, paths):
        yield document, warnings.sound(_outcome(itself, document))
    warnings.tell(session)


def documents_of(session: Session, paths: Sequence[str]) -> Iterator[Document]:
    """The documents of files, folders and standard input, none of them decoded yet.

    Reading a large file is told where somebody sits at a terminal.

    Raises:
        CommandUseError: Standard input is wanted twice, or it is a terminal.
        DataFileError: A file cannot be read.
    """
    if paths.count(_STANDARD_INPUT) > 1:
        raise CommandUseError("standard input can be read only once")
    for path in paths:
        if path == _STANDARD_INPUT:
            if sys.stdin is None or sys.stdin.isatty():
                raise CommandUseError("there is nothing on standard input", "Name a file, or pipe a trace in.")
            yield from documents_in(sys.stdin.buffer, _ITS_NAME)
        else:
            for file in trace_files(path):
                _tell_of_large(session, file)
                yield from documents(file)


def _tell_of_large(session: Session, file: str) -> None:
    size = os.path.getsize(file) if os.path.isfile(file) else 0
    if size > _LARGE_BYTES and session.output.talk_width is not None:
        session.output.note(f"corpus: reading {printable(file, limit=300)}, {size / 1e6:,.0f} MB")


def one_trace(session: Session, path: str) -> Trace:
    """The only trace of a file, or of standard input; errors as for `one_document`."""
    return one_document(session, path)[1]


def one_document(session: Session, path: str) -> tuple[Document, Trace]:
    """The only trace of a file, or of standard input, as text and as values.

    Raises:
        CommandUseError: The file holds several.
        DataFileError: It cannot be read, or not as JSON.
        InvalidTraceError: The trace has errors.
    """
    found = list(documents_of(session, [path]))
    if len(found) > 1:
        raise CommandUseError(
            f"{quote_path(path)} holds {len(found)} traces, and one is wanted",
            "Take a line of it as a file of its own.",
        )
    warnings = _Warnings()
    trace = warnings.sound(_outcome(itself, found[0]))
    warnings.tell(session)
    return found[0], trace


def derived(session: Session, given: Iterable[Document], derive: Callable[[Subject], Made]) -> Iterator[Made]:
    """What a function makes of each trace, in several processes where there are many.

    Args:
        session: Where warnings are told.
        given: The traces as documents.
        derive: A function that other processes can import; what it makes is sent from one to another.

    Raises:
        DataFileError: A file cannot be read, or not as JSON.
        InvalidTraceError: A trace has errors; the message shows the first of them.
    """
    warnings = _Warnings()
    for outcome in in_order(partial(_outcome, derive), given, size_bytes=Document.size):
        yield warnings.sound(outcome)
    warnings.tell(session)


class _Outcome(NamedTuple, Generic[Made]):
    place: str
    findings: tuple[Finding, ...]
    made: Made | None


def _outcome(derive: Callable[[Subject], Made], document: Document) -> _Outcome[Made]:
    decoded = decode(document)
    place = f"{document.path}:{document.line}"
    if decoded.trace is None:
        return _Outcome(place, decoded.findings, None)
    subject = Subject(decoded.trace)
    findings = rules.findings(document, subject)
    return _Outcome(place, findings, None if has_errors(findings) else derive(subject))


class _Warnings:
    """How many warnings there were, in how many traces."""

    def __init__(self) -> None:
        self._number = 0
        self._places: list[str] = []

    def sound(self, outcome: _Outcome[Made]) -> Made:
        """What was made of a trace without errors; its warnings are counted."""
        if outcome.made is None:
            raise refusal(outcome.findings)
        if outcome.findings:
            self._number += len(outcome.findings)
            self._places.append(outcome.place)
        return outcome.made

    def tell(self, session: Session) -> None:
        """Say how many there were, and where if it is one trace."""
        if self._places:
            number = f"{self._number} {'warning' if self._number == 1 else 'warnings'}"
            where = f" in {len(self._places)} traces" if len(self._places) > 1 else ""
            place = "" if where else f"{self._places[0]}: "
            session.output.note(f"corpus: {place}{number}{where}; see corpus trace validate")


def itself(subject: Subject) -> Trace:
    """The trace that is under examination."""
    return subject.trace


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


def write_new(path: str, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        DataFileError: It is there, or cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        raise DataFileError(f"{quote_path(path)} exists already", "Choose a new name, or remove it first.") from error
    except OSError as error:
        raise DataFileError(f"cannot write {quote_path(path)}: {error.strerror}") from error
