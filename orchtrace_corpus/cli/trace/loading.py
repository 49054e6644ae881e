"""How commands come by traces that can be measured: decoded, and without errors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.errors import CommandUseError, DataFileError
from orchtrace_corpus.findings import Finding, has_errors, quote
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.decode import Document, decode, documents
from orchtrace_corpus.trace.model import Trace
from orchtrace_corpus.trace.parallel import in_order
from orchtrace_corpus.trace.store import refusal, trace_files

Made = TypeVar("Made")


def sound_traces(session: Session, paths: Sequence[str]) -> Iterator[Trace]:
    """The traces of files and folders, each checked; warnings are told in number.

    Raises:
        DataFileError: A file cannot be read, or not as JSON.
        InvalidTraceError: A trace has errors; the message shows the first of them.
    """
    for document in documents_of(paths):
        yield _told(session, _outcome(_itself, document))


def documents_of(paths: Sequence[str]) -> Iterator[Document]:
    """The documents of files and folders, none of them decoded yet.

    Raises:
        DataFileError: A file cannot be read.
    """
    for file in (file for path in paths for file in trace_files(path)):
        yield from documents(file)


def one_trace(session: Session, path: str) -> Trace:
    """The only trace of a file.

    Raises:
        CommandUseError: The file holds several.
        DataFileError: It cannot be read, or not as JSON.
        InvalidTraceError: The trace has errors.
    """
    found = list(sound_traces(session, [path]))
    if len(found) > 1:
        raise CommandUseError(
            f"{quote(path)} holds {len(found)} traces, and one is wanted", "Take a line of it as a file of its own."
        )
    return found[0]


def derived(session: Session, given: Iterable[Document], derive: Callable[[Trace], Made]) -> Iterator[Made]:
    """What a function makes of each trace, in several processes where there are many.

    Args:
        session: Where warnings are told.
        given: The traces as documents.
        derive: A function that other processes can import; what it makes is sent from one to another.

    Raises:
        DataFileError: A file cannot be read, or not as JSON.
        InvalidTraceError: A trace has errors; the message shows the first of them.
    """
    for outcome in in_order(partial(_outcome, derive), given):
        yield _told(session, outcome)


class _Outcome(NamedTuple, Generic[Made]):
    place: str
    findings: tuple[Finding, ...]
    made: Made | None


def _outcome(derive: Callable[[Trace], Made], document: Document) -> _Outcome[Made]:
    decoded = decode(document)
    findings = rules.check(decoded)
    made = None if decoded.trace is None or has_errors(findings) else derive(decoded.trace)
    return _Outcome(f"{document.path}:{document.line}", findings, made)


def _told(session: Session, outcome: _Outcome[Made]) -> Made:
    if outcome.made is None:
        raise refusal(outcome.findings)
    if outcome.findings:
        number = f"{len(outcome.findings)} {'warning' if len(outcome.findings) == 1 else 'warnings'}"
        session.output.note(f"corpus: {outcome.place}: {number}; see corpus trace validate")
    return outcome.made


def _itself(trace: Trace) -> Trace:
    return trace


def write_new(path: str, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        DataFileError: It is there, or cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        raise DataFileError(f"{quote(path)} exists already", "Choose a new name, or remove it first.") from error
    except OSError as error:
        raise DataFileError(f"cannot write {quote(path)}: {error.strerror}") from error
