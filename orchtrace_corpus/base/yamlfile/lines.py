"""A fast reader of YAML in the form in which `corpus check --fix` writes it, line by line.

Importing PyYAML takes as long as the interpreter's start, and its parser takes twice as long as this reader. This
reader knows a part of YAML: block mappings and block lists with one value in a line, and the value is plain, in quotes,
in brackets, or folded by `>-`. Its nodes, with their places, are equal to those of `parser.Parser`. For any other line,
wrong or not, it raises `UnclearError`, and then `Parser` reads the file.

It splits lines with the methods of `str`: compiling patterns takes longer than reading a hundred records.
"""

from collections.abc import Iterator
from functools import lru_cache

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.named_tuples import NamedTuple


class Scalar(NamedTuple):
    """A text. `at` is the index of its first character (or opening quote) in the file's text."""

    text: str
    at: int


class Sequence(NamedTuple):
    """A list of nodes."""

    items: "list[Node]"
    at: int


class Mapping(NamedTuple):
    """A mapping from text to nodes, in file order. Each entry has the index of the key in the file, and the value."""

    entries: "dict[str, tuple[int, Node]]"
    at: int


Node: TypeAlias = Scalar | Sequence | Mapping

MAX_TEXT = 100_000
"""The largest number of bytes in a line, and of characters in a text."""

_MAX_DEPTH = 6
"""The levels of nested blocks, and also of nested brackets: together fewer than `Parser` reads."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_NAME_CHARACTERS = f"{_LETTERS}_./=!-"
_MARKS = " ?:,[]{}#&*!|>'\"%@`-"
"""Characters that no plain text begins with; only `-` can be first, before a letter or digit."""
_NOT_IN_BRACKETS = frozenset(",[]{}?")
"""Characters that no plain text inside brackets has."""

_new = tuple.__new__  # twice as fast as the constructors of nodes


class UnclearError(Exception):
    """A line is wrong, or written in another form than this reader knows."""


class _LineStart(NamedTuple):
    """The start of a line with a key.

    Attributes:
        column: The column of the first character that is not a blank: a dash, or the key.
        key_column: The column of the key; larger than `column` after a dash.
        key: The key.
    """

    column: int
    key_column: int
    key: str


class Lines:
    """Reads a text as nodes. Every character of the text must be printable or a line feed.

    The methods for parts of the text read from the current line on. At their end, the line after the part is the
    current line.
    """

    def __init__(self, text: str) -> None:
        """Take a text; raise `UnclearError` if no line feed ends it."""
        if text[-1:] != "\n":
            raise UnclearError
        self._text = text
        # The lines that are being read: all, or those of one record.
        self._lines: list[str] = []
        # The current line: its index in `_lines`, the index of its start in the text, and the column of its first
        # character that is not a blank. The column is -1 if all lines are read.
        self._line_index = 0
        self._line_at = 0
        self._column = -1
        # Caches, because the same keys come again in each record. By the column of a mapping, its keys by the text
        # before ": ".
        self._keys_by_column: dict[int, dict[str, str]] = {}
        # Line starts by the text before ": ", and by a text that ends with ":".
        self._starts_before_value: dict[str, _LineStart] = {}
        self._starts_before_block: dict[str, _LineStart] = {}

    def root(self) -> Node:
        """Return the whole document; raise `UnclearError` if it is written in another form."""
        self._start_part(0, len(self._text))
        node = self._read_block(0)
        if self._column >= 0:
            raise UnclearError
        return node

    def records(self) -> Iterator[Node]:
        """Yield the items of a list, one at a time to save memory; raise `UnclearError` at any other form."""
        end = 0
        is_list = False
        while end < len(self._text):
            start = end
            next_item = self._text.find("\n- ", start)
            end = len(self._text) if next_item < 0 else next_item + 1
            self._start_part(start, end)
            if self._column < 0 and not is_list:
                continue  # comments above the first item
            if not self._text.startswith("- ", self._line_at):
                raise UnclearError
            is_list = True
            yield self._read_item(0, 0)
            if self._column >= 0:
                raise UnclearError
        if not is_list:
            raise UnclearError

    def _start_part(self, start: int, end: int) -> None:
        """Make the first line of a part of the text the current line."""
        self._lines = self._text[start:end].split("\n")
        self._line_index = 0
        self._line_at = start
        self._skip_empty_lines()

    def _skip_empty_lines(self) -> None:
        """Go on to a line that is not blank and no comment, and set its column, or -1 if there is no such line."""
        last = len(self._lines) - 1
        while True:
            line = self._lines[self._line_index]
            content = line.lstrip(" ")
            if content and content[0] != "#":
                self._column = len(line) - len(content)
                return
            if self._line_index == last:
                self._column = -1
                return
            self._line_at += len(line) + 1
            self._line_index += 1

    def _next_line(self, line: str) -> None:
        """Go on to the line after the current one, which is given."""
        self._line_at += len(line) + 1
        self._line_index += 1

    def _line_start(self, line: str) -> _LineStart | None:
        """Return the start of a line up to its key; None if the line has no plain key."""
        before, colon, _ = line.partition(": ")
        cache = self._starts_before_value if colon else self._starts_before_block
        if before in cache:
            return cache[before]
        content = before.lstrip(" ")
        column = key_column = len(before) - len(content)
        name = content
        if content.startswith("- "):
            key_column += 2
            name = content[2:]
        if not colon:
            if name[-1:] != ":":
                return None
            name = name[:-1]
        parts = [name]
        if name[:1] == '"':
            if len(name) < 2 or name[-1] != '"':
                return None
            parts = [name[1:-1]]
        elif "," in name:
            parts = name.split(",")
        if not all(map(_is_name, parts)):
            return None
        start = _LineStart(column, key_column, ",".join(parts))
        cache[before] = start
        return start

    def _read_block(self, depth: int) -> Node:
        """Read the block mapping or block list that begins on the current line."""
        column = self._column
        if depth > _MAX_DEPTH or column < 0:
            raise UnclearError
        line = self._lines[self._line_index]
        if not line.startswith("- ", column):
            start = self._line_start(line)
            if start is None:
                raise UnclearError
            return self._read_mapping(start, depth)
        list_at = self._line_at + column
        mark = " " * column + "- "
        items: list[Node] = []
        while self._column == column and line.startswith(mark):
            text = line[column + 2 :]
            if _is_plain(text):
                items.append(_new(Scalar, (text, self._line_at + column + 2)))
                self._next_line(line)
                line = self._lines[self._line_index]
                if line.startswith(mark):  # as most lines: no line between the items has to be skipped
                    continue
                self._skip_empty_lines()
            else:
                items.append(self._read_item(column, depth))
            line = self._lines[self._line_index]
        if self._column >= column:
            raise UnclearError
        return _new(Sequence, (items, list_at))

    def _read_item(self, column: int, depth: int) -> Node:
        """Read the list item that begins on the current line; `column` is that of its dash."""
        line = self._lines[self._line_index]
        text = line[column + 2 :]
        if text[:1] not in ("[", "{"):
            start = self._line_start(line)
            if start is not None:
                return self._read_mapping(start, depth + 1)
        at = self._line_at + column + 2
        if _is_plain(text):
            node: Node = _new(Scalar, (text, at))
            self._next_line(line)
        else:
            node = self._read_value(text, at, column)
        self._skip_empty_lines()
        if self._column > column:
            raise UnclearError
        return node

    def _read_mapping(self, start: _LineStart, depth: int) -> Mapping:
        """Read the block mapping that begins on the current line, whose start is given."""
        if depth > _MAX_DEPTH:
            raise UnclearError
        # This is the hot loop. The current line is in local variables while no other method is called, and plain texts,
        # which are nearly all values, are read in place.
        lines = self._lines
        new = _new
        line_index = self._line_index
        line_at = self._line_at
        line = lines[line_index]
        before, colon, value = line.partition(": ")
        _, column, key = start
        mapping_at = line_at + column
        known_keys = self._keys_by_column.setdefault(column, {})
        entries: dict[str, tuple[int, Node]] = {}
        while True:
            if key in entries:
                raise UnclearError
            key_at = line_at + column
            node: Node
            # The condition is that of `_is_plain`.
            if value and value[0] not in _MARKS and ": " not in value and " #" not in value and value[-1] not in " :":
                node = new(Scalar, (value, line_at + len(before) + 2))
                line_at += len(line) + 1
                line_index += 1
            elif value[:1] == '"':
                node = new(Scalar, (_unquote(value), line_at + len(before) + 2))
                line_at += len(line) + 1
                line_index += 1
            else:
                self._line_index = line_index
                self._line_at = line_at
                if colon:
                    node = self._read_value(value, line_at + len(before) + 2, column)
                else:
                    node = self._read_block_below(line, column, depth)
                line_index = self._line_index
                line_at = self._line_at
            entries[key] = (key_at, node)
            line = lines[line_index]
            before, colon, value = line.partition(": ")
            if colon and before in known_keys:
                key = known_keys[before]
                continue
            self._line_index = line_index
            self._line_at = line_at
            self._skip_empty_lines()
            if self._column != column:
                break
            line_index = self._line_index
            line_at = self._line_at
            line = lines[line_index]
            before, colon, value = line.partition(": ")
            next_start = self._line_start(line)
            if next_start is None or next_start.key_column != column:
                raise UnclearError
            key = next_start.key
            if colon:
                known_keys[before] = key
        if self._column > column:
            raise UnclearError
        return new(Mapping, (entries, mapping_at))

    def _read_block_below(self, line: str, column: int, depth: int) -> Node:
        """Read the block below the current line, which is a key at a column without a value."""
        self._next_line(line)
        self._skip_empty_lines()
        if self._column <= column:
            raise UnclearError
        return self._read_block(depth + 1)

    def _read_value(self, text: str, at: int, column: int) -> Node:
        """Read a value on the current line that is not plain, with its further lines if it is folded.

        Args:
            text: The value as it is on the line.
            at: The index of the value in the text of the file.
            column: The column of the key, or of the dash of a list item.
        """
        first = text[:1]
        line = self._lines[self._line_index]
        self._next_line(line)
        if first == '"':
            return Scalar(_unquote(text), at)
        if first in ("[", "{"):
            collection = _simple_collection(text, at)
            if collection is not None:
                return collection
            node, end = _read_collection(text, 0, at, 0)
            if end != len(text):
                raise UnclearError
            return node
        if text == ">-":
            return Scalar(self._read_folded(column), at)
        if first == "'" and len(text) > 1 and text[-1] == "'":
            content = text[1:-1]
            if "'" not in content.replace("''", ""):
                return Scalar(content.replace("''", "'"), at)
        if first == "-" and _is_plain(text[1:]) and text[1] in _LETTERS:
            return Scalar(text, at)
        raise UnclearError

    def _read_folded(self, column: int) -> str:
        """Read a folded text without blank lines; it must be indented further than its key, which is at a column."""
        line = self._lines[self._line_index]
        indent = len(line) - len(line.lstrip(" "))
        margin = " " * indent
        texts = []
        while line.startswith(margin) and line[indent : indent + 1] not in ("", " "):
            texts.append(line[indent:])
            self._next_line(line)
            line = self._lines[self._line_index]
        text = " ".join(texts)
        if not text or indent <= column or len(text) > MAX_TEXT:
            raise UnclearError
        for line in self._lines[self._line_index :]:
            content = line.lstrip(" ")
            if content:
                if len(line) - len(content) > column:  # the text goes on after a blank line, or further indented
                    raise UnclearError
                break
        return text


def _is_plain(text: str) -> bool:
    """Return True if a text needs no quotes on its line. Texts that begin with `-` are for the caller to decide."""
    return bool(text) and text[0] not in _MARKS and ": " not in text and " #" not in text and text[-1] not in " :"


@lru_cache(4096)
def _is_name(text: str) -> bool:
    """Return True if a text is a key of letters, digits and some marks."""
    return not text.strip(_NAME_CHARACTERS) and text[:1] not in "./=!-" and len(text) <= 100


def _unquote(text: str) -> str:
    r"""Return the content of a text in double quotes; raise `UnclearError` at escapes other than `\\` and `\"`."""
    content = text[1:-1]
    if len(text) < 2 or text[-1] != '"':
        raise UnclearError
    if "\\" not in content and '"' not in content:
        return content
    without_escapes = content.replace("\\\\", "").replace('\\"', "")
    if "\\" in without_escapes or '"' in without_escapes:
        raise UnclearError
    return "\\".join([part.replace('\\"', '"') for part in content.split("\\\\")])


def _simple_collection(text: str, at: int) -> Node | None:
    """Return the list or mapping in brackets if it is simple, else None.

    Simple are a list whose texts are all plain or all in double quotes, and a mapping whose values are plain texts.
    Reading them takes less time than `_read_collection`.
    """
    items: list[Node] = []
    if text[:2] == '["' and text[-2:] == '"]' and "\\" not in text:
        item_at = at + 1
        for part in text[2:-2].split('", "'):
            if '"' in part:
                return None
            items.append(_new(Scalar, (part, item_at)))
            item_at += len(part) + len('"", ')
        return _new(Sequence, (items, at))
    content = text[1:-1]
    if "[" in content or "{" in content or "]" in content or "}" in content or "?" in content or "#" in content:
        return None
    if content.count(",") > content.count(", "):
        return None
    item_at = at + 1
    if text[0] == "[" and text[-1] == "]" and ": " not in content and "::" not in content:
        for part in content.split(", "):
            if part[:1] in _MARKS or part[-1] in " :":
                return None
            items.append(_new(Scalar, (part, item_at)))
            item_at += len(part) + len(", ")
        return _new(Sequence, (items, at))
    if text[0] != "{" or text[-1] != "}":
        return None
    entries: dict[str, tuple[int, Node]] = {}
    for part in content.split(", "):
        name, colon, value = part.partition(": ")
        if not colon or name in entries or not _is_name(name):
            return None
        if value[:1] in _MARKS or ":" in value or value[-1] == " ":
            return None
        entries[name] = (item_at, _new(Scalar, (value, item_at + len(name) + 2)))
        item_at += len(part) + len(", ")
    return _new(Mapping, (entries, at))


def _read_collection(text: str, index: int, at: int, depth: int) -> tuple[Node, int]:
    """Read a list or mapping in brackets; return it, and the index after its closing bracket.

    Args:
        text: The whole value as it is on its line.
        index: The index of the opening bracket in the value.
        at: The index of the value in the text of the file.
        depth: The number of other brackets around this collection.
    """
    if depth > _MAX_DEPTH:
        raise UnclearError
    start_at = at + index
    is_list = text[index] == "["
    closing = "]" if is_list else "}"
    items: list[Node] = []
    entries: dict[str, tuple[int, Node]] = {}
    index += 1
    is_empty = text.startswith(closing, index)
    while not is_empty:
        name = ""
        name_at = at + index
        if not is_list:
            colon = text.find(": ", index)
            name = text[index:colon]
            if len(name) > 2 and name[0] == name[-1] == '"' and '"' not in name[1:-1]:
                name = name[1:-1]
                is_name = "\\" not in name and len(name) < 100
            else:
                is_name = _is_name(name)
            if colon < 0 or not is_name or name in entries or name == "<<":
                raise UnclearError
            index = colon + 2
        node, index = _read_value_in_brackets(text, index, at, closing, depth)
        if is_list:
            items.append(node)
        else:
            entries[name] = (name_at, node)
        if text.startswith(closing, index):
            break
        if not text.startswith(", ", index):
            raise UnclearError
        index += 2
    if is_list:
        return _new(Sequence, (items, start_at)), index + 1
    return _new(Mapping, (entries, start_at)), index + 1


def _read_value_in_brackets(text: str, index: int, at: int, closing: str, depth: int) -> tuple[Node, int]:
    """Read a value inside brackets; return it, and the index of the comma or closing bracket after it.

    `closing` is the bracket that ends the collection; the other arguments are those of `_read_collection`.
    """
    first = text[index : index + 1]
    if first in ("[", "{"):
        return _read_collection(text, index, at, depth + 1)
    if first == '"':
        end = text.find('"', index + 1)
        while end > 0 and _ends_with_escape(text[index:end]):
            end = text.find('"', end + 1)
        return _new(Scalar, (_unquote(text[index : end + 1]), at + index)), end + 1
    end = text.find(closing, index)
    comma = text.find(",", index)
    if 0 <= comma < end:
        end = comma
    part = text[index:end]
    # A dash can begin a plain text before a letter or digit.
    without_dash = part[1:] if first == "-" and part[1:2] in _LETTERS else part
    if end < 0 or not _is_plain(without_dash) or "::" in part or ":#" in part:
        raise UnclearError
    if not _NOT_IN_BRACKETS.isdisjoint(part):
        raise UnclearError
    return _new(Scalar, (part, at + index)), end


def _ends_with_escape(text: str) -> bool:
    """Return True if a text ends with an odd number of backslashes: the next character is escaped."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1
