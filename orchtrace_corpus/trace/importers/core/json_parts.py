"""Decode parts of a JSON document one by one, so that the whole document is never in memory as objects."""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from orchtrace_corpus.base.json_places import children
from orchtrace_corpus.base.json_syntax import MAX_DEPTH, exceeds_depth
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.values import as_array, as_text

NOTHING = msgspec.Raw(b"null")
"""The value of a member that is absent."""

_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DECODER = msgspec.json.Decoder()
_Shape = TypeVar("_Shape", bound=msgspec.Struct)


class Part:
    """A value of a JSON document, undecoded."""

    def __init__(self, document: bytes, raw: Any, start: int, line: int) -> None:
        self.line = line  # the line on which it begins
        self._document = document
        self._raw = raw  # the value as JSON
        self._start = start  # the position of its first byte in the document

    @property
    def is_array(self) -> bool:
        """Return True if the value is an array."""
        return self._document[self._start : self._start + 1] == b"["

    def value(self, shape: Any = Any) -> Any:
        """Return the value decoded; None if it does not fit the shape."""
        return decoded(self._raw, shape)

    def elements(self) -> "Iterator[Part]":
        """Yield the elements of an array; nothing for another value."""
        if self.is_array:
            for _, part in self._children():
                yield part

    def members(self) -> "dict[str, Part]":
        """Return the members of an object by name, the last one of equal names; none for another value."""
        return {} if self.is_array else {str(name): part for name, part in self._children()}

    def _children(self) -> "Iterator[tuple[str | int, Part]]":
        """Yield the elements or members of the value, each with its index or name, up to the first invalid one."""
        counted_end, line = self._start, self.line  # lines are counted up to there
        try:
            for name, start, raw in children(self._document, self._start, self._raw):
                line += self._document.count(b"\n", counted_end, start)
                yield name, Part(self._document, raw, start, line)
                counted_end = start
        except _UNDECODABLE:
            return


def decoded(raw: Any, shape: Any = Any) -> Any:
    """Return JSON decoded; None if it is invalid or does not fit the shape. Bytes that are not UTF-8 are replaced."""
    try:
        return _DECODER.decode(raw) if shape is Any else msgspec.json.decode(raw, type=shape)
    except UnicodeDecodeError:
        return decoded(bytes(raw).decode("utf-8", "replace"), shape)
    except (msgspec.DecodeError, RecursionError):
        return None


def lenient(value: Any, shape: type[_Shape]) -> _Shape | None:
    """Return an object as a struct, without members of wrong types; None for a value that is no object."""
    if type(value) is not dict:
        return None
    members = {}
    for field in _fields(shape):
        member = value.get(field.json_name)
        if member is None:
            member = value.get(field.name)  # such as `span_id` for `spanId`
        if field.is_text:
            member = as_text(member)
        elif field.inner is msgspec.Raw:
            member = msgspec.Raw(encoded(member))
        elif field.is_list:
            structs = [lenient(element, field.inner) for element in as_array(member)]
            member = [struct for struct in structs if struct is not None]
        elif field.inner is not None and (type(member) is dict or not field.takes_numbers):
            member = lenient(member, field.inner)
        members[field.name] = member
    return shape(**members)


class _Field(NamedTuple):
    """The type of a struct's field, as far as `lenient` needs it."""

    name: str
    json_name: str
    is_text: bool
    is_list: bool  # True if it takes a list of structs
    takes_numbers: bool
    inner: Any  # the struct that it takes, alone or in a list; `Raw` for undecoded JSON; None for other values


@cache
def _fields(shape: type[msgspec.Struct]) -> list[_Field]:
    fields = []
    for field in msgspec.structs.fields(shape):
        options = [field.type, *get_args(field.type)]  # `A | B` has the arguments A and B
        inner: Any = msgspec.Raw if field.type is msgspec.Raw else None
        is_list = False
        for option in options:
            if getattr(option, "__origin__", None) is list:
                inner, is_list = get_args(option)[0], True
                break
            if inner is None and isinstance(option, type) and issubclass(option, msgspec.Struct):
                inner = option
        fields.append(_Field(field.name, field.encode_name, field.type is str, is_list, float in options, inner))
    return fields


def encoded(value: Any) -> bytes:
    """Return a value as JSON; `null` for a value that is nested too deeply."""
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        return b"null"


def whole(document: bytes) -> Part:
    """Return the value of a whole document; raise DecodeError if it is not JSON, RecursionError if it is too deep."""
    if exceeds_depth(document):
        raise RecursionError(f"nested too deeply; at most {MAX_DEPTH} levels are read")
    start = len(document) - len(document.lstrip())
    raw = msgspec.json.decode(document, type=msgspec.Raw)
    return Part(document, raw, start, line=1 + document.count(b"\n", 0, start))
