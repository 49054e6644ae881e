"""Read a strict subset of YAML, as text, with the place of every value.

A file is one UTF-8 document without byte order mark or control characters. It has block or flow mappings and sequences
of texts, without implicit types: `2504.16120` and `no` stay texts. Duplicate keys, anchors, aliases, tags, merge keys
and directives are refused. A problem is reported with its line and column, and if possible, reading goes on.

Most files have the form in which `corpus check --fix` writes them; `lines.Lines` reads them fast. `parser.Parser` reads
all others, and reports problems.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from orchtrace_corpus.base.budget import MAX_COUNTED_FINDINGS, MAX_FINDINGS
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import Finding, Location, printable
from orchtrace_corpus.base.yamlfile.lines import MAX_TEXT as MAX_TEXT
from orchtrace_corpus.base.yamlfile.lines import Lines, UnclearError
from orchtrace_corpus.base.yamlfile.lines import Mapping as Mapping
from orchtrace_corpus.base.yamlfile.lines import Node as Node
from orchtrace_corpus.base.yamlfile.lines import Scalar as Scalar
from orchtrace_corpus.base.yamlfile.lines import Sequence as Sequence

MAX_BYTES = 512 * 1024 * 1024

_MAX_LISTED = 20
"""The number of forbidden characters that are reported; further ones are only counted."""

_PRINTABLE_ASCII = b"\n" + bytes(range(0x20, 0x7F))
# All characters that YAML 1.2 does not call printable (section 5.1), and also the line and paragraph separators U+2028
# and U+2029, the byte order mark, and a carriage return without a line feed.
_FORBIDDEN = "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"


class YamlFile:
    """The text of a file, and the problems found while it is read as YAML.

    Attributes:
        path: The path for messages.
        text: The decoded text, with the line ends of the file; empty if it cannot be decoded.
        refused: The indices of values that were refused and are replaced by empty ones. Nothing more is reported about
            these values.
        cut_off: The index of the last record before a syntax error; its further fields may be after the error. -1 if
            there is no syntax error.
        is_simple: True if all characters are printable and `Lines` reads the file. Then every value is printable,
            because `Lines` reads no escapes but those of quotes and backslashes. False once `Parser` reads the file.
        beyond_ascii: The different characters of the file that are not printable ASCII.
        on_record: A function that `records` calls with each record before it yields the record; None for none.
        kept: The records, if `on_record` is the method `append` of this list; else empty.
        merge_command: The command that merges the file by records; empty if there is none.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._findings: list[Finding] = []
        # Problems beyond `MAX_FINDINGS`: their number, and the place of the first.
        self._unlisted_count = 0
        self._first_unlisted = Location(path, 1, 1)
        self.refused: set[int] = set()
        self.cut_off = -1
        self.on_record: Callable[[Node], None] | None = None
        self.merge_command = ""
        self.kept: list[Node] = []
        self.text = ""
        # The index and line of the last call of `location`.
        self._last_at = 0
        self._last_line = 1
        self.is_simple = False
        self.beyond_ascii: frozenset[str] = frozenset()
        self._is_readable = self._decode(data)

    @property
    def findings(self) -> list[Finding]:
        """The problems found so far, in order. If there are too many, the last one says how many are not listed."""
        if self._unlisted_count:
            message = f"and {self._unlisted_count:,} more problems in this file; fix those above first"
            self._findings[MAX_FINDINGS:] = [Finding("Y118", message, self._first_unlisted)]
        return self._findings

    def location(self, at: int) -> Location:
        """Return the line and column, both from 1, of the character at an index of the text."""
        # Callers ask for places nearly in order, so lines are counted from the last place.
        if at >= self._last_at:
            self._last_line += self.text.count("\n", self._last_at, at)
        else:
            self._last_line -= self.text.count("\n", at, self._last_at)
        self._last_at = at
        return Location(self.path, self._last_line, at - self.text.rfind("\n", 0, at))

    def refuse(self, code: str, at: int, message: str, record: str = "") -> None:
        """Report a problem at an index of the text; `record` is the key of its record, if it is in one."""
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(Finding(code, message, self.location(at), record))
            return
        if not self._unlisted_count:
            self._first_unlisted = self.location(at)
        self._unlisted_count += 1

    def root(self) -> Node | None:
        """Return the whole document as one node; None if it cannot be read."""
        if not self._is_readable:
            return None
        if self.is_simple:
            with suppress(UnclearError):
                return Lines(self.text).root()
        from orchtrace_corpus.base.yamlfile.parser import Parser

        self.is_simple = False
        return Parser(self).root()

    def records(self) -> Iterator[Node]:
        """Yield the items of a document that is a list, one at a time to save memory.

        A document that is no list has no records. Reading ends early at a syntax error, and if there are too many
        problems to count them.
        """
        if not self._is_readable:
            return
        for node in self._read_records():
            if self.on_record is not None:
                self.on_record(node)
            yield node
            if self._unlisted_count >= MAX_COUNTED_FINDINGS:
                return

    def _read_records(self) -> Iterator[Node]:
        yielded_count = 0
        if self.is_simple:
            # A record is yielded when the next one is read: if that fails, `Parser` reads both, so that it can report
            # an error that concerns the first one, too.
            pending: Node | None = None
            try:
                for node in Lines(self.text).records():
                    if pending is not None:
                        yield pending
                        yielded_count += 1
                    pending = node
            except UnclearError:
                pass
            else:
                if pending is not None:
                    yield pending
                return
        from itertools import islice

        from orchtrace_corpus.base.yamlfile.parser import Parser

        self.is_simple = False
        yield from islice(Parser(self).records(), yielded_count, None)

    def record_at(self, start: int, end: int) -> Node | None:
        """Read again the record whose mapping begins at `start` and ends before `end`.

        It gives the places in a record, which are only needed if something is wrong with it: keeping the places of all
        records would double the memory for a large corpus.
        """
        column = self.location(start).column - 1
        excerpt = YamlFile(self.path, b"")
        excerpt.text = " " * column + self.text[start:end].rstrip(" -")
        excerpt._is_readable = True
        excerpt.is_simple = self.is_simple
        node = excerpt.root()
        return None if node is None else _shift(node, start - column)

    def _decode(self, data: bytes) -> bool:
        """Set the text, and return True if it can be read as YAML."""
        if len(data) > MAX_BYTES:
            megabytes = MAX_BYTES // (1024 * 1024)
            self.refuse("Y112", 0, f"the file is larger than {megabytes} MiB; split it")
            return False
        start = 0
        while len(data) - start > MAX_TEXT:  # no line is too long if there is a line end in each stretch of this size
            end = data.rfind(b"\n", start, start + MAX_TEXT + 1) + 1
            if not end:
                self.text = data[:start].decode("utf-8", "replace")
                self.refuse("Y115", len(self.text), f"the line is longer than {MAX_TEXT // 1000} kB; shorten it")
                return False
            start = end
        try:
            self.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.text = data[: error.start].decode("utf-8")
            wrong_byte = data[error.start : error.start + 1].hex()
            self.refuse("Y101", len(self.text), f"byte 0x{wrong_byte} is not UTF-8; save the file as UTF-8")
            return False
        if self.text.startswith("\ufeff"):
            self.refuse("Y102", 0, "the file begins with a byte order mark; save it as UTF-8 without one")
            # Without the mark, columns are counted as editors count them.
            self.text = self.text[1:]
            data = data[3:]
        others = data.translate(None, _PRINTABLE_ASCII).decode()
        self.beyond_ascii = frozenset(others)
        self.is_simple = others.isprintable()
        if self.is_simple:  # as most files; this is thirty times faster than the pattern
            return True
        forbidden = [match.start() for match in re.finditer(_FORBIDDEN, self.text)]
        advice = {"\r": ", or end the line with a line feed", "\x00": " (is this a text file?)"}
        for at in forbidden[:_MAX_LISTED]:
            c = self.text[at]
            self.refuse("Y103", at, f"forbidden character U+{ord(c):04X}; remove it{advice.get(c, '')}")
        if len(forbidden) > _MAX_LISTED:
            message = f"{len(forbidden) - _MAX_LISTED} more forbidden characters from here on"
            self.refuse("Y103", forbidden[_MAX_LISTED], message)
        return not forbidden


def read(path: str, shown_as: str) -> YamlFile:
    """Read and decode a file.

    Args:
        path: The path of the file.
        shown_as: The path for messages.

    Raises:
        DataFileError: The file is missing or cannot be read.
    """
    return YamlFile(shown_as, read_bytes(path, shown_as))


def read_bytes(path: str, shown_as: str, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file; of a larger file the first `limit + 1`, so that callers can see that it is larger.

    Raises:
        DataFileError: The file is missing or cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            # `read` takes as much memory as its argument, so it is not called with the limit.
            size = min(os.fstat(handle.fileno()).st_size, limit)
            data = handle.read(size + 1)
            if len(data) > size:  # the file is larger than the limit, or has grown
                data += handle.read(limit - size)
            return data
    except OSError as error:
        raise DataFileError(f"cannot read {printable(shown_as, limit=300)}: {error.strerror}") from error


def _shift(node: Node, offset: int) -> Node:
    """Return a node with an offset added to all its places."""
    if type(node) is Mapping:
        entries = {key: (at + offset, _shift(value, offset)) for key, (at, value) in node.entries.items()}
        return Mapping(entries, node.at + offset)
    if type(node) is Sequence:
        return Sequence([_shift(item, offset) for item in node.items], node.at + offset)
    assert type(node) is Scalar
    return Scalar(node.text, node.at + offset)
