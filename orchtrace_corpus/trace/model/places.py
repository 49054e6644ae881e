"""Where a value stands in a JSON document: line and column for a path such as `events`, 3, `t`.

Nothing is remembered while a document is decoded, which would cost every sound one. A path is found
afterwards: the members of an object or array are taken apart undecoded (`msgspec.Raw`), and since each
gives its length, the next one's place follows from it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from orchtrace_corpus.base.findings import Location, printable

Path: TypeAlias = tuple[str | int, ...]

_BLANK = b" \t\n\r"
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_NAME = msgspec.json.Decoder(str)


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
        self._raws: dict[int, memoryview | bytes] = {}

    def locate(self, path: Path) -> Location:
        """The place of a value; where the path goes further than the document, that of the last thing there is."""
        return self.location(self._at(path))

    def line(self, path: Path) -> int:
        """The line of a value, which takes no longer where lines are long."""
        return self._first_line + self._line_number(self._at(path))

    def _at(self, path: Path) -> int:
        at = self._skip_blank(0)
        for step in path:
            inner = self._inside(at).get(step)
            if inner is None:
                break
            at = inner
        return at

    def _line_number(self, at: int) -> int:
        if not self._line_starts:
            self._line_starts = [0]
            found = self._data.find(b"\n")
            while found >= 0:
                self._line_starts.append(found + 1)
                found = self._data.find(b"\n", found + 1)
        return bisect_right(self._line_starts, at) - 1

    def location(self, at: int) -> Location:
        """The line and column of a byte of the document; columns count characters."""
        line = self._line_number(at)
        before = self._data[self._line_starts[line] : at].decode("utf-8", "replace")
        return Location(self._path, self._first_line + line, len(before) + 1)

    def _inside(self, at: int) -> dict[str | int, int]:
        """Where the members of the object or array that begins at a byte begin, by name or number."""
        if at not in self._children:
            opening = self._data[at : at + 1]
            members = self._members if opening == b"{" else self._items if opening == b"[" else None
            self._children[at] = dict(members(at)) if members else {}
        return self._children[at]

    def _members(self, at: int) -> Iterator[tuple[str | int, int]]:
        members = _MEMBERS.decode(self._raw(at))
        at = self._skip_blank(at + 1)
        while self._data[at : at + 1] == b'"':
            name, at = self._name(at)
            at = self._skip_blank(self._skip_blank(at) + 1)  # over the colon
            yield name, at
            raw: memoryview | bytes = memoryview(members[name])
            if self._data[at : at + len(raw)] != raw:  # a name given twice: only its last value is known
                raw = self._text(at)
            self._raws[at] = raw
            at = self._skip_blank(self._skip_blank(at + len(raw)) + 1)  # over the comma

    def _items(self, at: int) -> Iterator[tuple[str | int, int]]:
        items = _ITEMS.decode(self._raw(at))
        at = self._skip_blank(at + 1)
        for number, item in enumerate(items):
            yield number, at
            raw = memoryview(item)
            self._raws[at] = raw
            at = self._skip_blank(self._skip_blank(at + len(raw)) + 1)

    def _raw(self, at: int) -> memoryview | bytes:
        return self._raws.get(at, self._data)

    def _text(self, at: int) -> bytes:
        """The text of the value that begins at a byte, found by counting brackets."""
        depth, end = 0, at
        while True:
            character = self._data[end : end + 1]
            if character == b'"':
                end = self._name(end)[1]
            else:
                depth += (character in b"[{") - (character in b"]}")
                end += 1
            if depth == 0 and (character in b'"]}' or self._data[end : end + 1] in b",]} \t\r\n"):
                return self._data[at:end]

    def _name(self, at: int) -> tuple[str, int]:
        """The string that begins at a byte, and where it ends."""
        end = at + 1
        while True:
            end = self._data.index(b'"', end) + 1
            slashes = end - 1 - len(self._data[at : end - 1].rstrip(b"\\")) - at
            if slashes % 2 == 0:
                return _NAME.decode(self._data[at:end]), end

    def _skip_blank(self, at: int) -> int:
        while at < len(self._data) and self._data[at] in _BLANK:
            at += 1
        return at


def json_path(path: Path) -> str:
    """A path as JSONPath, such as `$.events[3].t`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path)
