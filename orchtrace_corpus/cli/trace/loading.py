"""How commands come by traces that can be measured: decoded, and without errors."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.errors import CommandUseError, DataFileError
from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.decode import Document, decode, documents
from orchtrace_corpus.trace.model import Trace
from orchtrace_corpus.trace.store import sound, trace_files


def sound_traces(session: Session, paths: Sequence[str]) -> Iterator[Trace]:
    """The traces of files and folders, each checked; warnings are told in number.

    Raises:
        DataFileError: A file cannot be read, or not as JSON.
        InvalidTraceError: A trace has errors; the message shows the first of them.
    """
    for file in (file for path in paths for file in trace_files(path)):
        for document in documents(file):
            yield _sound(session, document)


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


def _sound(session: Session, document: Document) -> Trace:
    decoded = decode(document)
    findings = rules.check(decoded)
    trace = sound(decoded, findings)
    if findings:
        number = f"{len(findings)} {'warning' if len(findings) == 1 else 'warnings'}"
        session.output.note(f"corpus: {document.path}:{document.line}: {number}; see corpus trace validate")
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
