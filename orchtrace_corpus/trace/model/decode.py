"""Decode traces from JSON, and report all errors of a trace that does not follow the schema.

A valid trace is decoded and checked in one pass, by the types of `model.trace`. Only if they reject a trace is
`model.refusal` imported, which reports each error and its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain

from orchtrace_corpus.base.annotations import TYPE_CHECKING, BinaryIO
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.base.findings import Finding, printable
from orchtrace_corpus.base.json_places import Path, Places
from orchtrace_corpus.base.named_tuples import NamedTuple

if TYPE_CHECKING:
    import msgspec

    from orchtrace_corpus.trace.model.trace import Trace

_TRACE_MEMBERS = frozenset(("trace_id", "task_id"))
_QUOTED_MEMBERS = tuple(f'"{name}"' for name in _TRACE_MEMBERS)
_HEAD_BYTES = 256 * 1024
_BUFFER_BYTES = 1 << 20  # a line may be a large trace
LINES = (".jsonl", ".ndjson")
"""The suffixes of files with a trace on each line."""
IMPORTED = " (imported)"
"""The suffix of a log's path in messages whose places refer to the trace that was imported from the log."""


class Document(NamedTuple):
    """One trace of a file, as text.

    Attributes:
        data: The JSON text of the trace.
        path: The path of the file, for messages.
        line: The line of the file on which the trace begins.
    """

    data: bytes
    path: str
    line: int = 1

    @property
    def file(self) -> str:
        """Return the path of the file: of the trace, or of the log that the trace was imported from."""
        return self.path.removesuffix(IMPORTED)

    @property
    def places(self) -> Places:
        """Return an index of the places of values in the document."""
        return Places(self.data, self.path, self.line)

    def size(self) -> int:
        """Return the size of the document in bytes."""
        return len(self.data)


class Decoded(NamedTuple):
    """A decoded document: a trace, or the errors that make it invalid."""

    document: Document
    trace: Trace | None
    findings: tuple[Finding, ...] = ()


class Problem(NamedTuple):
    """A violation of a graph rule.

    Attributes:
        code: The rule's code.
        message: The error, and how to correct it.
        path: The path of the wrong value, such as `("events", 3, "to")`.
    """

    code: str
    message: str
    path: Path


@cache
def _trace_decoder() -> msgspec.json.Decoder[Trace]:
    """Return the decoder of traces. msgspec is imported here because its import is slow, and `plain` often suffices."""
    import msgspec

    from orchtrace_corpus.trace.model.trace import Trace

    return msgspec.json.Decoder(Trace)


@cache
def _members_decoder() -> msgspec.json.Decoder[dict[str, msgspec.Raw]]:
    import msgspec

    return msgspec.json.Decoder(dict[str, msgspec.Raw])


def documents(path: str) -> Iterator[Document]:
    """Yield the traces of a file: one JSON document, or JSON Lines, read one line at a time.

    A file is JSON Lines if its suffix is one of `LINES`, or if its first line is a complete document.

    Raises:
        DataFileError: The file cannot be read.
    """
    printable_path = printable(path, limit=300)
    try:
        with open_regular(path, _BUFFER_BYTES) as file:
            yield from documents_in(file, printable_path, is_lines=path.lower().endswith(LINES))
    except OSError as error:
        raise DataFileError(f"cannot read {printable_path}: {error.strerror}") from error


def documents_in(file: BinaryIO, path: str, *, is_lines: bool = False) -> Iterator[Document]:
    """Yield the traces of an open file, such as standard input; see `documents`.

    Args:
        file: The file.
        path: The name of the file, for messages.
        is_lines: True if the file is JSON Lines even if its first line is not valid JSON.
    """
    line_number, first = 1, file.readline()
    while first and not first.strip():  # blank lines
        line_number, first = line_number + 1, file.readline()
    second = file.readline()
    if second and not is_lines and not _is_document(first):
        yield Document(first + second + file.read(), path, line_number)
        return
    yield Document(first, path, line_number)
    other_lines = chain((second,), file) if second else file
    for other_number, data in enumerate(other_lines, line_number + 1):
        if not data.isspace():
            yield Document(data, path, other_number)


def may_hold_traces(beginning: str) -> bool:
    """Return True if the beginning of a file contains the fields `trace_id` and `task_id`, as those of traces do."""
    return all(map(beginning.__contains__, _QUOTED_MEMBERS))


def holds_traces(path: str) -> bool:
    """Return True if a file holds traces, not logs: its first document has the fields `trace_id` and `task_id`.

    Return False if the file cannot be read, is not valid JSON, or has these fields only after `_HEAD_BYTES`.
    """
    try:
        with open_regular(path) as file:
            if not may_hold_traces(file.read(_HEAD_BYTES).decode("utf-8", "replace")):
                return False
            file.seek(0)
            first = file.readline()
            while first.isspace():
                first = file.readline()
            document = first if _is_document(first) else first + file.read()
            members = _members_decoder().decode(document)
    except (OSError, DataFileError, ValueError, RecursionError):
        return False
    return members.keys() >= _TRACE_MEMBERS


def name_of(document: Document) -> str:
    """Return the `trace_id` of a document, which may be invalid; empty if it has none."""
    import msgspec

    try:
        name = msgspec.json.decode(_members_decoder().decode(document.data)["trace_id"])
    except (ValueError, RecursionError, KeyError):
        return ""
    return name if isinstance(name, str) else ""


def _is_document(line: bytes) -> bool:
    """Return True if a line is a complete document."""
    try:
        _members_decoder().decode(line)
    except ValueError:
        return False
    except RecursionError:
        return line.rstrip().endswith(b"}")
    return True


def decode(document: Document) -> Decoded:
    """Decode one trace."""
    from orchtrace_corpus.base.json_syntax import exceeds_depth  # not needed to check small traces

    data = document.data
    try:
        if not data.isascii():
            data.decode("utf-8")
        trace = _trace_decoder().decode(data)
        if exceeds_depth(data):
            raise RecursionError
        return Decoded(document, trace)
    except (ValueError, RecursionError) as error:
        from orchtrace_corpus.trace.model.refusal import explain

        return Decoded(document, None, explain(data, document.places, error))
