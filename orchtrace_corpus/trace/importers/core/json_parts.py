"""Takes a JSON document apart undecoded: each part is decoded alone, so that the whole is never held as objects.

Where a part begins follows from the length of what is in front of it, and so does its line.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANYTHING = msgspec.json.Decoder()
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_BETWEEN = rb"[\s,]*"
_NAME = rb'[\s,]*"(?:[^"\\]|\\.)*"\s*:\s*'


class Part:
    """A value of a JSON document.

    Args:
        document: The document.
        raw: The value in it.
        at: The byte at which it begins.
        line: The line on which it begins.
    """

    def __init__(self, document: bytes, raw: Any, at: int, line: int) -> None:
        self.line = line
        self._document = document
        self._raw = raw
        self._at = at

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return self._document[self._at : self._at + 1] == b"["

    def value(self, shape: Any = Any) -> Any:
        """The value decoded; None where it does not fit a shape."""
        return decoded(self._raw, shape)

    def elements(self) -> "Iterator[Part]":
        """The elements of an array; nothing for anything else."""
        try:
            found = _ELEMENTS.decode(self._raw)
        except _UNDECODABLE:
            return
        end, line = self._at + 1, self.line
        for raw in found:
            begin = self._behind(_BETWEEN, end)
            line += self._document.count(b"\n", end, begin)
            yield Part(self._document, raw, begin, line)
            end = begin + len(memoryview(raw))
            line += self._document.count(b"\n", begin, end)

    def members(self) -> "dict[str, Part]":
        """The members of an object by name; nothing for anything else.

        Of a name that is given twice the last value counts, and the lines of all members are that of the object.
        """
        try:
            found = _MEMBERS.decode(self._raw)
        except _UNDECODABLE:
            return {}
        members: dict[str, Part] = {}
        end, line = self._at + 1, self.line
        for name, raw in found.items():
            begin = self._behind(_NAME, end)
            line += self._document.count(b"\n", end, begin)
            members[name] = Part(self._document, raw, begin, line)
            end = begin + len(memoryview(raw))
            line += self._document.count(b"\n", begin, end)
        if self._behind(_BETWEEN, end) + 1 != self._at + len(memoryview(self._raw)):
            return {name: Part(bytes(raw), raw, 0, self.line) for name, raw in found.items()}
        return members

    def _behind(self, pattern: bytes, at: int) -> int:
        found = re.compile(pattern).match(self._document, at)
        return found.end() if found else at


def decoded(raw: Any, shape: Any = Any) -> Any:
    """The value that was left undecoded; None where there is none, or where it does not fit a shape.

    Bytes that are no UTF-8 are replaced.
    """
    try:
        return _ANYTHING.decode(raw) if shape is Any else msgspec.json.decode(raw, type=shape)
    except UnicodeDecodeError:
        return decoded(bytes(raw).decode("utf-8", "replace"), shape)
    except (msgspec.DecodeError, RecursionError):
        return None


def encoded(value: Any) -> bytes:
    """A decoded value as JSON again; `null` for one that is nested too deeply."""
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        return b"null"


def whole(document: bytes) -> Part:
    """A document as its own only part.

    Raises:
        msgspec.DecodeError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    begin = len(document) - len(document.lstrip())
    raw = msgspec.json.decode(document, type=msgspec.Raw)
    return Part(document, raw, begin, 1 + document.count(b"\n", 0, begin))
