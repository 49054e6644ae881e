"""JSON to traces, with everything that the schema finds wrong.

A sound trace is decoded and checked in one pass, by the types of `trace.model`. Only one that they refuse
is read again, to say all that is wrong with it and where: its events and edges one by one, and those that
are refused against `schema.json`.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, BinaryIO, NamedTuple

import msgspec

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.findings import Finding, printable
from orchtrace_corpus.trace.locate import Path, Places
from orchtrace_corpus.trace.model import Edge, Event, Trace
from orchtrace_corpus.trace.plain import loads
from orchtrace_corpus.trace.syntax import syntax_problem
from orchtrace_corpus.trace.wording import worded

MOST_PROBLEMS = 100
"""So many wrong events and wrong edges of one trace are described; of a log of another format, all would be."""


class _Named(msgspec.Struct):
    trace_id: str = ""


_ANY = msgspec.json.Decoder(msgspec.Raw)
_TRACE = msgspec.json.Decoder(Trace)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_PARTS: dict[str, msgspec.json.Decoder[Any]] = {
    "events": msgspec.json.Decoder(Event),
    "edges": msgspec.json.Decoder(Edge),
}
_NAMED = msgspec.json.Decoder(_Named)
_STANDING_IN: dict[str, list[dict[str, Any]]] = {
    "events": [{"id": "-", "t": 0, "type": "message", "agent": "-"}],
    "edges": [],
}


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
    def places(self) -> Places:
        """Finds places in it."""
        return Places(self.data, self.path, self.line)


class Decoded(NamedTuple):
    """What a document turned out to be: a trace, or none and the reasons why."""

    document: Document
    trace: Trace | None
    findings: tuple[Finding, ...] = ()


def documents(path: str) -> Iterator[Document]:
    """The traces of a file: one JSON document, or JSON Lines, of which one line at a time is held in memory.

    A file of which the first line is a whole document, and not the only line, is read as JSON Lines.

    Raises:
        DataFileError: The file cannot be read.
    """
    shown = printable(path, limit=300)
    try:
        with open(path, "rb") as file:
            yield from documents_in(file, shown)
    except OSError as error:
        raise DataFileError(f"cannot read {shown}: {error.strerror}") from error


def documents_in(file: BinaryIO, path: str) -> Iterator[Document]:
    """The traces of an open file, as those of `documents`.

    Args:
        file: The file, such as standard input.
        path: What it is called, to show.
    """
    number, first = 1, file.readline()
    while first and not first.strip():
        number, first = number + 1, file.readline()
    if not _is_whole(first):
        yield Document(first + file.read(), path, number)
        return
    yield Document(first, path, number)
    for later, line in enumerate(file, number + 1):
        if line.strip():
            yield Document(line, path, later)


def _is_whole(line: bytes) -> bool:
    """Whether a line is a document by itself."""
    try:
        _MEMBERS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def decode(document: Document) -> Decoded:
    """Decode one trace."""
    data = document.data
    try:
        if not data.isascii():
            data.decode("utf-8")
        return Decoded(document, _TRACE.decode(data))
    except UnicodeDecodeError as error:
        finding = Finding("T103", "not UTF-8; save the file in UTF-8", document.places.location(error.start))
        return Decoded(document, None, (finding,))
    except msgspec.ValidationError as error:
        problem = error
    except (msgspec.DecodeError, RecursionError) as error:
        return Decoded(document, None, (syntax_problem(data, document.places, error),))
    try:
        _ANY.decode(data)  # the types refused a value, and nothing behind it was read yet
        found = sorted(_problems(document), key=lambda finding: finding.location) or [_as_refused(document, problem)]
        record = _record(data)
        found = [finding._replace(record=record) for finding in found]
    except (msgspec.DecodeError, RecursionError) as error:
        found = [syntax_problem(data, document.places, error)]
    return Decoded(document, None, tuple(found))


def _record(data: bytes) -> str:
    """The name of a trace that is refused, if it has one."""
    try:
        return _NAMED.decode(data).trace_id
    except msgspec.ValidationError:
        return ""


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of traces."""
    from importlib.resources import files

    text = files("orchtrace_corpus.trace").joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


@cache
def _validator(part: str) -> Any:
    """A validator of a whole trace, or of one event or edge."""
    from jsonschema import Draft202012Validator

    whole = schema()
    return Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]} if part else whole)


def _problems(document: Document) -> Iterator[Finding]:
    """All that the schema finds wrong with a well-formed document."""
    places = document.places
    try:
        members = _MEMBERS.decode(document.data)
    except msgspec.ValidationError:
        yield Finding("T112", "a trace is an object, in braces", places.locate(()))
        return
    small: dict[str, Any] = {}
    for name, raw in members.items():
        small[name] = _STANDING_IN[name] if name in _STANDING_IN and _is_list(raw) else loads(bytes(raw))
    yield from _described("", small, (), places)
    for name, decoder in _PARTS.items():
        if name in members and _is_list(members[name]):
            items = _ITEMS.decode(members[name])
            if name == "events" and not items:
                yield Finding("T115", "events is empty; a trace has at least one", places.locate((name,)))
            yield from _wrong_items(name, items, decoder, places)


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def _wrong_items(
    name: str, items: list[msgspec.Raw], decoder: msgspec.json.Decoder[Any], places: Places
) -> Iterator[Finding]:
    wrong = 0
    for number, item in enumerate(items):
        try:
            decoder.decode(item)
        except msgspec.ValidationError:
            wrong += 1
            if wrong <= MOST_PROBLEMS:
                yield from _described(name.removesuffix("s"), loads(bytes(item)), (name, number), places)
    if wrong > MOST_PROBLEMS:
        message = f"{wrong} of {len(items)} {name} are wrong; the first {MOST_PROBLEMS} are described"
        yield Finding("T112", message, places.locate((name,)))


def _described(part: str, value: Any, path: Path, places: Places) -> Iterator[Finding]:
    """What is wrong with a value, in the order in which it stands in the text."""
    for error in sorted(_validator(part).iter_errors(value), key=lambda error: list(map(str, error.absolute_path))):
        inner = (*path, *error.absolute_path)
        code, message, step = worded(error)
        where = (*inner, step) if step else inner
        yield Finding(code, f"{json_path(inner)}: {message}", places.locate(where))


def json_path(path: Path) -> str:
    """A path as JSONPath, such as `$.events[3].t`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path)


def _as_refused(document: Document, error: msgspec.ValidationError) -> Finding:
    """A refusal that the schema does not share: an oversized number, or a wrong value whose name is given again.

    JSON does not say what a name means that is given twice. The last value counts, but all of them have to be right.
    """
    message, _, at = str(error).partition(" - at `$")
    path = tuple(int(step[1:-1]) if step[:1] == "[" else step for step in re.findall(r"\[\d+\]|[^.\[\]`]+", at))
    code = "T104" if message == "Number out of range" else "T115"
    hint = "" if code == "T104" else "; is the name given twice?"
    return Finding(code, f"{json_path(path)}: {message[:1].lower()}{message[1:]}{hint}", document.places.locate(path))
