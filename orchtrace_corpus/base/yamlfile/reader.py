"""Reads a strict subset of YAML, as text, with the place of every value.

What is strict about it: one UTF-8 document without byte order mark or control characters; block or
flow mappings and sequences of text; no implicit types (`2504.16120` and `no` stay text); no
duplicate keys, anchors, aliases, tags, merge keys or directives. Whatever is refused is reported
with its line and column, and reading goes on wherever that makes sense.

Most files are written as `corpus check --fix` writes them: `lines` reads those. `parser` reads the others, and says
what is wrong.
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

_PLAIN_BYTES = b"\n" + bytes(range(0x20, 0x7F))
_FORBIDDEN = "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"


class YamlFile:
    """A file's text, read once, and the problems found while folding it.

    Attributes:
        path: The path as it is to be shown.
        text: The decoded text, line ends as in the file. Empty where it could not be decoded.
        refused: Where a value was refused and an empty one put in its place: nothing more is to be
            said about it.
        cut_off: Where the record begins behind which a syntax error ended the reading: its other
            fields may stand behind the error. -1 where there is none.
        is_printable: Whether every text read so far is: so is the file, and `lines` reads it, which knows no escapes.
        beyond_ascii: The different characters beyond printable ASCII.
        on_record: Called by `records` with each record before it is yielded; None for nothing.
        kept: The records, if `on_record` is its `append`.
        merge_command: The command that merges it again, by its records; empty where there is none.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._findings: list[Finding] = []
        self._first_more = Location(path, 1, 1)
        self._more = 0
        self.refused: set[int] = set()
        self.cut_off = -1
        self.on_record: Callable[[Node], None] | None = None
        self.merge_command = ""
        self.kept: list[Node] = []
        self.text = ""
        self._last_at, self._last_line = 0, 1
        self.is_printable = False
        self.beyond_ascii: frozenset[str] = frozenset()
        self._readable = self._decode(data)

    @property
    def findings(self) -> list[Finding]:
        """The problems met so far, in their order; of many, the first, and how many more there are."""
        if self._more:
            message = f"and {self._more:,} more problems in this file; fix those above first"
            self._findings[MAX_FINDINGS:] = [Finding("Y118", message, self._first_more)]
        return self._findings

    def location(self, at: int) -> Location:
        """The line and column, both from 1, of the character at an index of the text."""
        last, self._last_at = self._last_at, at  # places are asked for nearly in order: lines are counted from the last
        if at >= last:
            self._last_line += self.text.count("\n", last, at)
        else:
            self._last_line -= self.text.count("\n", at, last)
        return Location(self.path, self._last_line, at - self.text.rfind("\n", 0, at))

    def refuse(self, code: str, at: int, message: str, record: str = "") -> None:
        """Record a problem at an index of the text, in the record of that key."""
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(Finding(code, message, self.location(at), record))
            return
        if not self._more:
            self._first_more = self.location(at)
        self._more += 1

    def root(self) -> Node | None:
        """Fold the whole document into one node; None where there is none to be had."""
        if not self._readable:
            return None
        if self.is_printable:
            with suppress(UnclearError):
                return Lines(self.text).root()
        from orchtrace_corpus.base.yamlfile.parser import Parser

        self.is_printable = False
        return Parser(self).root()

    def records(self) -> Iterator[Node]:
        """Fold a document that is a list one item at a time, so that no more than one is held.

        Ends early, with a finding, at a syntax error or where there are too many problems to count; a document that
        is no list gives nothing.
        """
        for node in self._records() if self._readable else ():
            if self.on_record is not None:
                self.on_record(node)
            yield node
            if self._more >= MAX_COUNTED_FINDINGS:
                return

    def _records(self) -> Iterator[Node]:
        count = 0
        if self.is_printable:
            pending: Node | None = None  # the parser is to see the last record before what it refuses
            try:
                for node in Lines(self.text).records():
                    if pending is not None:
                        yield pending
                        count += 1
                    pending = node
            except UnclearError:
                pass
            else:
                if pending is not None:
                    yield pending
                return
        from itertools import islice

        from orchtrace_corpus.base.yamlfile.parser import Parser

        self.is_printable = False
        yield from islice(Parser(self).records(), count, None)

    def record_at(self, start: int, end: int) -> Node | None:
        """Fold again the one record whose mapping begins at `start` and ends before `end`.

        For places that are wanted only when something is wrong: keeping them all would double the
        memory of a large corpus.
        """
        column = self.location(start).column - 1
        excerpt = YamlFile(self.path, b"")
        excerpt.text = " " * column + self.text[start:end].rstrip(" -")
        excerpt._readable, excerpt.is_printable = True, self.is_printable
        node = excerpt.root()
        return None if node is None else _moved(node, start - column)

    def _decode(self, data: bytes) -> bool:
        if len(data) > MAX_BYTES:
            megabytes = MAX_BYTES // (1024 * 1024)
            self.refuse("Y112", 0, f"the file is larger than {megabytes} MiB; split it")
            return False
        start = 0
        while len(data) - start > MAX_TEXT:  # from the last line end within reach to the next, not line by line
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
            shown = data[error.start : error.start + 1].hex()
            self.refuse("Y101", len(self.text), f"byte 0x{shown} is not UTF-8; save the file as UTF-8")
            return False
        if self.text.startswith("\ufeff"):
            self.refuse("Y102", 0, "the file begins with a byte order mark; save it as UTF-8 without one")
            self.text, data = self.text[1:], data[3:]  # editors do not count it as a column, either
        others = data.translate(None, _PLAIN_BYTES).decode()
        self.beyond_ascii = frozenset(others)
        self.is_printable = others.isprintable()
        if self.is_printable:  # the common case, thirty times faster than the pattern
            return True
        forbidden = [match.start() for match in re.finditer(_FORBIDDEN, self.text)]
        advice = {"\r": ", or end the line with a line feed", "\x00": " (is this a text file?)"}
        for at in forbidden[:20]:
            c = self.text[at]
            self.refuse("Y103", at, f"forbidden character U+{ord(c):04X}; remove it{advice.get(c, '')}")
        if len(forbidden) > 20:
            self.refuse("Y103", forbidden[20], f"{len(forbidden) - 20} more forbidden characters from here on")
        return not forbidden


def read(path: str, shown_as: str) -> YamlFile:
    """Read a file's bytes and decode them.

    Args:
        path: Where the file is.
        shown_as: The path to show in messages.

    Raises:
        DataFileError: There is no such file, or it cannot be read.
    """
    return YamlFile(shown_as, read_bytes(path, shown_as))


def read_bytes(path: str, shown_as: str, limit: int = MAX_BYTES) -> bytes:
    """A file's bytes; of one that has more than the limit, no more than show that it has.

    Raises:
        DataFileError: There is no such file, or it cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            size = min(os.fstat(handle.fileno()).st_size, limit)
            data = handle.read(size + 1)  # memory is taken for as much as is asked for
            return data if len(data) <= size else data + handle.read(limit - size)
    except OSError as error:
        raise DataFileError(f"cannot read {printable(shown_as, limit=300)}: {error.strerror}") from error


def _moved(node: Node, by: int) -> Node:
    if type(node) is Mapping:
        return Mapping({k: (at + by, _moved(value, by)) for k, (at, value) in node.entries.items()}, node.at + by)
    if type(node) is Sequence:
        return Sequence([_moved(item, by) for item in node.items], node.at + by)
    return Scalar(node.text, node.at + by)  # type: ignore[union-attr]
