"""Takes JSON documents apart undecoded, and finds the line and column of a path such as `events`, 3, `t`.

Nothing is remembered while a document is decoded, which would cost every sound one. Members and items are taken
apart afterwards (`msgspec.Raw`): each gives its length, and the next one's place follows from it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from orchtrace_corpus.base.findings import Location, printable

if TYPE_CHECKING:
    from msgspec import Raw
    from msgspec.json import Decoder

Path: TypeAlias = tuple[str | int, ...]


@cache
def _decoders() -> "tuple[Decoder[dict[str, Raw]], Decoder[list[Raw]], Decoder[str]]":
    """Return the decoders of members, items and names; made where a place is asked for: msgspec imports slowly."""
    from msgspec import Raw
    from msgspec.json import Decoder

    return Decoder(dict[str, Raw]), Decoder(list[Raw]), Decoder(str)


def children(document: bytes, at: int, text: memoryview | bytes) -> Iterator[tuple[str | int, int, memoryview]]:
    """Return the values of an object or list: by name or number, the byte of its beginning and its text.

    A name that is given twice comes twice.

    Args:
        document: A well-formed document.
        at: The byte at which the object or list begins; there is nothing in any other value.
        text: Its text.

    Raises:
        msgspec.DecodeError: A number or name in it cannot be decoded.
        UnicodeDecodeError: A name is not UTF-8.
    """
    members_of, items_of, name_of = _decoders()
    opening = document[at : at + 1]
    between = re.compile(rb"[ \t\r\n]*+[,:]?[ \t\r\n]*+")
    at = _end_of(between, document, at + 1)
    if opening == b"[":
        for index, item in enumerate(items_of.decode(text)):
            value = memoryview(item)
            yield index, at, value
            at = _end_of(between, document, at + len(value))
    elif opening == b"{":
        members = members_of.decode(text)
        string = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
        while (end := _end_of(string, document, at)) > at:
            name = name_of.decode(memoryview(document)[at:end])
            at = _end_of(between, document, end)
            value = memoryview(members[name])
            after = document[at + len(value) : at + len(value) + 1]
            if not document.startswith(value, at) or after.isalnum() or after == b".":
                # A name given twice: only its last value is known, which may be the beginning of a longer number.
                value = memoryview(_text_at(document, at))
            yield name, at, value
            at = _end_of(between, document, at + len(value))


def _end_of(pattern: re.Pattern[bytes], document: bytes, at: int) -> int:
    found = pattern.match(document, at)
    return found.end() if found else at


def _text_at(document: bytes, at: int) -> bytes:
    """The text of the value that begins at a byte, found by counting brackets."""
    marks = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]|[^\s,:"\[\]{}]++')
    depth = 0
    for mark in marks.finditer(document, at):
        depth += (mark[0] in (b"[", b"{")) - (mark[0] in (b"]", b"}"))
        if depth == 0:
            return document[at : mark.end()]
    return document[at:]


class Places:
    """Finds places in one well-formed JSON document.

    Args:
        data: The document.
        path: The path of its file, to show.
        first_line: The line of the file on which the document begins.
    """

    def __init__(self, data: bytes, path: str, first_line: int = 1) -> None:
        self._data = data
        self._path = path
        self._first_line = first_line
        self._line_starts: list[int] = []
        self._children: dict[int, dict[str | int, int]] = {}
        self._texts: dict[int, memoryview] = {}

    def locate(self, path: Path) -> Location:
        """The place of a value; where the path goes further than the document, that of the last thing there is."""
        return self.location(self._at(path))

    def line(self, path: Path) -> int:
        """The line of a value, which takes no longer where lines are long."""
        return self._first_line + self._line_number(self._at(path))

    def _at(self, path: Path) -> int:
        at = _end_of(re.compile(rb"[ \t\r\n]*+"), self._data, 0)
        for step in path:
            if at not in self._children:
                found = list(children(self._data, at, self._texts.get(at, self._data)))
                self._children[at] = {name: begin for name, begin, _ in found}
                self._texts.update((begin, text) for _, begin, text in found)
            inner = self._children[at].get(step)
            if inner is None:
                break
            at = inner
        return at

    def _line_number(self, at: int) -> int:
        if not self._line_starts:
            self._line_starts = [0, *(match.end() for match in re.finditer(b"\n", self._data))]
        return bisect_right(self._line_starts, at) - 1

    def location(self, at: int) -> Location:
        """The line and column of a byte of the document; columns count characters."""
        line = self._line_number(at)
        before = self._data[self._line_starts[line] : at].decode("utf-8", "replace")
        return Location(self._path, self._first_line + line, len(before) + 1)


def json_path(path: Path) -> str:
    """A path as JSONPath, such as `$.events[3].t`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path)
