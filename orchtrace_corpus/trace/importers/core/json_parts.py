"""Parts of a JSON document, each decoded alone, so that the whole is never in memory as objects.

The place and line of a part follow from the length of the text in front of it.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from orchtrace_corpus.base.json_places import children
from orchtrace_corpus.base.json_syntax import MAX_DEPTH, exceeds_depth

NOTHING = msgspec.Raw(b"null")
"""The value of a member that is absent."""

_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ANYTHING = msgspec.json.Decoder()
_Shape = TypeVar("_Shape", bound=msgspec.Struct)


class Part:
    """A value of a JSON document, which begins at a byte and on a line of it."""

    def __init__(self, document: bytes, raw: Any, at: int, line: int) -> None:
        self.line = line
        self._document = document
        self._raw = raw
        self._at = at

    @property
    def is_array(self) -> bool:
        """Return True if it is an array."""
        return self._document[self._at : self._at + 1] == b"["

    def value(self, shape: Any = Any) -> Any:
        """Return the value decoded; None if it does not fit a shape."""
        return decoded(self._raw, shape)

    def elements(self) -> "Iterator[Part]":
        """Yield the elements of an array; nothing for anything else."""
        if self.is_array:
            yield from (part for _, part in self._children())

    def members(self) -> "dict[str, Part]":
        """Return the members of an object by name, the last of each name; nothing for anything else."""
        return {} if self.is_array else {str(name): part for name, part in self._children()}

    def _children(self) -> "Iterator[tuple[str | int, Part]]":
        end, line = self._at, self.line
        try:
            for name, begin, text in children(self._document, self._at, self._raw):
                line += self._document.count(b"\n", end, begin)
                yield name, Part(self._document, text, begin, line)
                end = begin
        except _UNDECODABLE:
            return


def decoded(raw: Any, shape: Any = Any) -> Any:
    """Return the value of undecoded JSON; None if it is none or does not fit a shape. Bad UTF-8 is replaced."""
    try:
        return _ANYTHING.decode(raw) if shape is Any else msgspec.json.decode(raw, type=shape)
    except UnicodeDecodeError:
        return decoded(bytes(raw).decode("utf-8", "replace"), shape)
    except (msgspec.DecodeError, RecursionError):
        return None


def lenient(value: Any, shape: type[_Shape]) -> _Shape | None:
    """Return an object as a struct without the members of a wrong kind; None for anything but an object.

    Members may be spelled as in the JSON of the struct or as its fields are named.
    """
    if type(value) is not dict:
        return None
    members = {}
    for name, spelled, is_text, inner, is_list, takes_odd in _plan(shape):
        member = value.get(spelled)
        member = value.get(name) if member is None else member
        if is_text:
            member = member if type(member) is str else ""
        elif inner is msgspec.Raw:
            member = msgspec.Raw(encoded(member))
        elif is_list:
            parts = (lenient(element, inner) for element in member) if type(member) is list else ()
            member = [part for part in parts if part is not None]
        elif inner is not None and not (takes_odd and type(member) is not dict):
            member = lenient(member, inner)
        members[name] = member
    return shape(**members)


@cache
def _plan(shape: type[msgspec.Struct]) -> list[tuple[str, str, bool, Any, bool, bool]]:
    """Return for each field of a struct: name, name in JSON, is text, struct in it, is a list, takes other kinds."""
    plan = []
    for member in msgspec.structs.fields(shape):
        options = [member.type, *get_args(member.type)]
        lists = [
            inner for option in options for inner in get_args(option) if getattr(option, "__origin__", None) is list
        ]
        structs = [option for option in options if isinstance(option, type) and issubclass(option, msgspec.Struct)]
        inner = next(iter(lists or structs), msgspec.Raw if member.type is msgspec.Raw else None)
        plan.append((member.name, member.encode_name, member.type is str, inner, bool(lists), float in options))
    return plan


def encoded(value: Any) -> bytes:
    """Return a decoded value as JSON again; `null` for one that is nested too deeply."""
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        return b"null"


def whole(document: bytes) -> Part:
    """Return a document as its own only part.

    Raises:
        msgspec.DecodeError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    if exceeds_depth(document):
        raise RecursionError(f"nested too deeply; at most {MAX_DEPTH} levels are read")
    begin = len(document) - len(document.lstrip())
    raw = msgspec.json.decode(document, type=msgspec.Raw)
    return Part(document, raw, begin, 1 + document.count(b"\n", 0, begin))
