"""JSON to traces, with everything that the schema finds wrong.

A sound trace is decoded and checked in one pass, by the types of `model.trace`. Only for one that they refuse
is `model.refusal` imported, which says all that is wrong with it and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.base.findings import Finding, printable
from orchtrace_corpus.base.json_places import Path, Places
from orchtrace_corpus.base.named_tuples import NamedTuple

if TYPE_CHECKING:
    import msgspec

    from orchtrace_corpus.trace.model.trace import Trace

_NAMES = frozenset(("trace_id", "task_id"))
_QUOTED = tuple(f'"{name}"' for name in _NAMES)
_HEAD_BYTES = 256 * 1024
_BUFFER_BYTES = 1 << 20  # a line may be a large trace
LINES = (".jsonl", ".ndjson")
"""The suffixes of files with a trace on each line."""
IMPORTED = " (imported)"
"""Stands behind the name of a log where the places in a message are those of the trace that was made of it."""


class Document(NamedTuple):
    """One trace of a file, as text.

    Attributes:
        data: Its JSON.
        path: The path of the file, to show.
        line: The line of the file on which it begins.
    """

    data: bytes
    path: str
    line: int = 1

    @property
    def file(self) -> str:
        """The path of the file, also where it is a log that the trace was made of."""
        return self.path.removesuffix(IMPORTED)

    @property
    def places(self) -> Places:
        """Finds places in it."""
        return Places(self.data, self.path, self.line)

    def size(self) -> int:
        """Its bytes."""
        return len(self.data)


class Decoded(NamedTuple):
    """A decoded document: a trace, or the reasons why it is none."""

    document: Document
    trace: Trace | None
    findings: tuple[Finding, ...] = ()


class Problem(NamedTuple):
    """A violation of a graph rule.

    Attributes:
        code: The rule's code.
        message: What is wrong, and what would be right.
        path: The value concerned, such as `("events", 3, "to")`.
    """

    code: str
    message: str
    path: Path


@cache
def _traces() -> msgspec.json.Decoder[Trace]:
    """Return the decoder of traces; made where `plain` does not suffice, since msgspec takes long to import."""
    import msgspec

    from orchtrace_corpus.trace.model.trace import Trace

    return msgspec.json.Decoder(Trace)


@cache
def _members() -> msgspec.json.Decoder[dict[str, msgspec.Raw]]:
    import msgspec

    return msgspec.json.Decoder(dict[str, msgspec.Raw])


def documents(path: str) -> Iterator[Document]:
    """The traces of a file: one JSON document, or JSON Lines, of which one line at a time is held in memory.

    JSON Lines are a file whose name says so, and one of which the first line is a whole document.

    Raises:
        DataFileError: The file cannot be read.
    """
    shown = printable(path, limit=300)
    try:
        with open_regular(path, _BUFFER_BYTES) as file:
            yield from documents_in(file, shown, is_lines=path.lower().endswith(LINES))
    except OSError as error:
        raise DataFileError(f"cannot read {shown}: {error.strerror}") from error


def documents_in(file: BinaryIO, path: str, *, is_lines: bool = False) -> Iterator[Document]:
    """The traces of an open file, as those of `documents`.

    Args:
        file: The file, such as standard input.
        path: What it is called, to show.
        is_lines: Whether these are JSON Lines, even if the first of them is broken.
    """
    number, first = 1, file.readline()
    while first and not first.strip():
        number, first = number + 1, file.readline()
    second = file.readline()
    if second and not is_lines and not _is_whole(first):  # a line that is all there is, is a document in any case
        yield Document(first + second + file.read(), path, number)
        return
    yield Document(first, path, number)
    for later, line in enumerate(chain((second,) if second else (), file), number + 1):
        if not line.isspace():
            yield Document(line, path, later)


def may_hold_traces(beginning: str) -> bool:
    """Return True if a file that begins like this may hold traces: it has the fields that name a run and its task."""
    return all(map(beginning.__contains__, _QUOTED))


def holds_traces(path: str) -> bool:
    """Return True if a file holds traces, not logs: its first document has the fields that name a run and its task.

    False for a file that cannot be read, is broken, or names them only after `_HEAD_BYTES`.
    """
    try:
        with open_regular(path) as file:
            if not may_hold_traces(file.read(_HEAD_BYTES).decode("utf-8", "replace")):
                return False
            file.seek(0)
            first = file.readline()
            while first.isspace():
                first = file.readline()
            members = _members().decode(first if _is_whole(first) else first + file.read())
    except (OSError, DataFileError, ValueError, RecursionError):
        return False
    return members.keys() >= _NAMES


def name_of(document: Document) -> str:
    """The `trace_id` of a document that may have mistakes; empty where it gives none."""
    import msgspec

    try:
        name = msgspec.json.decode(_members().decode(document.data)["trace_id"])
    except (ValueError, RecursionError, KeyError):
        return ""
    return name if isinstance(name, str) else ""


def _is_whole(line: bytes) -> bool:
    """Return True if a line is a document by itself."""
    try:
        _members().decode(line)
    except ValueError:
        return False
    except RecursionError:
        return line.rstrip().endswith(b"}")
    return True


def decode(document: Document) -> Decoded:
    """Decode one trace."""
    from orchtrace_corpus.base.json_syntax import exceeds_depth  # which checking small traces does without

    data = document.data
    try:
        if not data.isascii():
            data.decode("utf-8")
        trace = _traces().decode(data)
        if exceeds_depth(data):
            raise RecursionError
        return Decoded(document, trace)
    except (ValueError, RecursionError) as error:
        from orchtrace_corpus.trace.model.refusal import explain

        return Decoded(document, None, explain(data, document.places, error))
