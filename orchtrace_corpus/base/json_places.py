"""Find the line and column of a path in a JSON document, such as `events`, 3, `t`.

Recording places while a document is decoded would slow down every valid one. Instead, members and items are split
afterwards (`msgspec.Raw`): the length of each gives the place of the next one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from orchtrace_corpus.base.annotations import TYPE_CHECKING, TypeAlias
from orchtrace_corpus.base.findings import Location, printable

if TYPE_CHECKING:
    from msgspec import Raw
    from msgspec.json import Decoder

Path: TypeAlias = tuple[str | int, ...]


@cache
def _decoders() -> "tuple[Decoder[dict[str, Raw]], Decoder[list[Raw]], Decoder[str]]":
    """Return the decoders of members, items and names. They are made on first use, because msgspec imports slowly."""
    from msgspec import Raw
    from msgspec.json import Decoder

    return Decoder(dict[str, Raw]), Decoder(list[Raw]), Decoder(str)


def children(document: bytes, at: int, text: memoryview | bytes) -> Iterator[tuple[str | int, int, memoryview]]:
    """Yield the values of an object or list: the name or index, the offset in bytes, and the text.

    A repeated name is yielded twice. Other values have no children.

    Args:
        document: A well-formed document.
        at: The offset of the object or list.
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
                # A repeated name: only its last value is known, which may be the beginning of a longer number.
                value = memoryview(_text_at(document, at))
            yield name, at, value
            at = _end_of(between, document, at + len(value))


def _end_of(pattern: re.Pattern[bytes], document: bytes, at: int) -> int:
    match = pattern.match(document, at)
    return match.end() if match else at


def _text_at(document: bytes, at: int) -> bytes:
    """Return the text of the value at an offset, by counting brackets."""
    marks = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]|[^\s,:"\[\]{}]++')
    depth = 0
    for mark in marks.finditer(document, at):
        depth += (mark[0] in (b"[", b"{")) - (mark[0] in (b"]", b"}"))
        if depth == 0:
            return document[at : mark.end()]
    return document[at:]


class Places:
    """Finds places in a well-formed JSON document, which begins on a line of a file."""

    def __init__(self, data: bytes, path: str, first_line: int = 1) -> None:
        self._data = data
        self._path = path
        self._first_line = first_line
        self._line_starts: list[int] = []
        self._children: dict[int, dict[str | int, int]] = {}
        self._texts: dict[int, memoryview] = {}

    def locate(self, path: Path) -> Location:
        """Return the place of a value; if the path leads out of the document, the place of its last existing part."""
        return self.location(self._at(path))

    def line(self, path: Path) -> int:
        """Return the line of a value, faster than `locate` if lines are long."""
        return self._first_line + self._line_number(self._at(path))

    def _at(self, path: Path) -> int:
        at = _end_of(re.compile(rb"[ \t\r\n]*+"), self._data, 0)
        for step in path:
            if at not in self._children:
                parts = list(children(self._data, at, self._texts.get(at, self._data)))
                self._children[at] = {name: begin for name, begin, _ in parts}
                self._texts.update((begin, text) for _, begin, text in parts)
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
        """Return the line and column of an offset in bytes; columns count characters."""
        line = self._line_number(at)
        before = self._data[self._line_starts[line] : at].decode("utf-8", "replace")
        return Location(self._path, self._first_line + line, len(before) + 1)


def json_path(path: Path) -> str:
    """Return a path as JSONPath, such as `$.events[3].t`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path)
