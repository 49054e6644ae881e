"""Find the line and column of a value in a JSON document by its path, such as `("events", 3, "t")`.

Recording all places while a document is decoded would slow down every document. Instead, a document with a problem is
decoded again, level by level, into members and items as raw text (`msgspec.Raw`): the length of each member or item
gives the place of the next one.
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


def children(document: bytes, offset: int, text: memoryview | bytes) -> Iterator[tuple[str | int, int, memoryview]]:
    """Yield the name or index, the offset in bytes, and the text of each value in an object or list.

    A repeated name is yielded twice. For a value that is no object or list, nothing is yielded.

    Args:
        document: A well-formed document.
        offset: The offset of the object or list in the document.
        text: The text of the object or list.

    Raises:
        msgspec.DecodeError: A number or name in it cannot be decoded.
        UnicodeDecodeError: A name is not UTF-8.
    """
    members_decoder, items_decoder, name_decoder = _decoders()
    opening = document[offset : offset + 1]
    separator = re.compile(rb"[ \t\r\n]*+[,:]?[ \t\r\n]*+")
    offset = _skip(separator, document, offset + 1)
    if opening == b"[":
        for index, item in enumerate(items_decoder.decode(text)):
            value = memoryview(item)
            yield index, offset, value
            offset = _skip(separator, document, offset + len(value))
    elif opening == b"{":
        members = members_decoder.decode(text)
        string = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
        while (name_end := _skip(string, document, offset)) > offset:
            name = name_decoder.decode(memoryview(document)[offset:name_end])
            offset = _skip(separator, document, name_end)
            value = memoryview(members[name])
            value_end = offset + len(value)
            following = document[value_end : value_end + 1]
            if not document.startswith(value, offset) or following.isalnum() or following == b".":
                # The name is repeated, and `value` is its last value. Here is another one. It can begin with the same
                # digits, as 12 begins with 1.
                value = memoryview(_text_at(document, offset))
            yield name, offset, value
            offset = _skip(separator, document, offset + len(value))


def _skip(pattern: re.Pattern[bytes], document: bytes, offset: int) -> int:
    """Return the offset after a match of a pattern, or the same offset if the pattern does not match there."""
    match = pattern.match(document, offset)
    return match.end() if match else offset


def _text_at(document: bytes, offset: int) -> bytes:
    """Return the text of the value at an offset, by counting brackets."""
    token_pattern = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]|[^\s,:"\[\]{}]++')
    depth = 0
    for token in token_pattern.finditer(document, offset):
        if token[0] in (b"[", b"{"):
            depth += 1
        elif token[0] in (b"]", b"}"):
            depth -= 1
        if depth == 0:
            return document[offset : token.end()]
    return document[offset:]


class Places:
    """Finds the places of values in a well-formed JSON document, which begins on the line `first_line` of a file."""

    def __init__(self, data: bytes, path: str, first_line: int = 1) -> None:
        self._data = data
        self._path = path
        self._first_line = first_line
        # Filled when needed: the offset of each line, and by the offset of an object or list, the offsets of its values
        # by name or index; then the texts of values by their offset.
        self._line_starts: list[int] = []
        self._child_offsets: dict[int, dict[str | int, int]] = {}
        self._texts: dict[int, memoryview] = {}

    def locate(self, path: Path) -> Location:
        """Return the place of a value. If the document has no such value, it is that of the nearest value above it."""
        return self.location(self._offset(path))

    def line(self, path: Path) -> int:
        """Return the line of a value; faster than `locate` if lines are long."""
        return self._first_line + self._line_index(self._offset(path))

    def _offset(self, path: Path) -> int:
        offset = _skip(re.compile(rb"[ \t\r\n]*+"), self._data, 0)
        for step in path:
            if offset not in self._child_offsets:
                text = self._texts.get(offset, self._data)
                values = list(children(self._data, offset, text))
                self._child_offsets[offset] = {name: child_offset for name, child_offset, _ in values}
                self._texts.update((child_offset, child_text) for _, child_offset, child_text in values)
            child = self._child_offsets[offset].get(step)
            if child is None:
                break
            offset = child
        return offset

    def _line_index(self, offset: int) -> int:
        if not self._line_starts:
            self._line_starts = [0, *(match.end() for match in re.finditer(b"\n", self._data))]
        return bisect_right(self._line_starts, offset) - 1

    def location(self, offset: int) -> Location:
        """Return the line and column of an offset in bytes; columns count characters."""
        line_index = self._line_index(offset)
        before = self._data[self._line_starts[line_index] : offset].decode("utf-8", "replace")
        return Location(self._path, self._first_line + line_index, len(before) + 1)


def json_path(path: Path) -> str:
    """Return a path as JSONPath, such as `$.events[3].t`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path)
    return "$" + "".join(steps)
