"""Reads YAML that is written as `corpus check --fix` writes it, line by line, and says so where it is not.

Importing PyYAML takes as long as the interpreter's start, and its parser twice as long as this. What is read here is a
part of YAML without choices: block mappings and lists with one value a line, which is plain, in quotes, in brackets, or
folded by `>-`. The nodes are those that the parser gives, places included. Of any other line, mistakes
included, nothing is decided here: the parser reads the file.

Lines are taken apart with the methods of texts: compiling patterns that say the same takes longer than reading
a hundred records.
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
    """A mapping from text to nodes, in file order. Each entry holds its key's place and its value."""

    entries: "dict[str, tuple[int, Node]]"
    at: int


Node: TypeAlias = Scalar | Sequence | Mapping

MAX_TEXT = 100_000
"""The bytes that a line, and the characters that a text, may have."""

_MAX_DEPTH = 6
"""In block form, and as much again in brackets: together less than the parser reads."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_IN_NAMES = f"{_LETTERS}_./=!-"
_MARKS = " ?:,[]{}#&*!|>'\"%@`-"
"""Characters that no plain text begins with, but for `-` before a letter or digit."""
_IN_BRACKETS = frozenset(",[]{}?")
"""Characters that no plain text within brackets holds."""

_new = tuple.__new__  # the constructors of nodes cost as much again


class UnclearError(Exception):
    """A line is written in another form, or wrong."""


class Lines:
    """The lines of a text, and the nodes that they hold; every character of the text is printable or a line feed."""

    def __init__(self, text: str) -> None:
        """Take a text; raises `UnclearError` if its last line has no end."""
        if text[-1:] != "\n":
            raise UnclearError
        self._text = text
        self._lines: list[str] = []
        self._index = 0
        self._at = 0
        self._column = -1
        self._names: dict[int, dict[str, str]] = {}  # by the column of a mapping: its keys, by what stands before ": "
        self._heads: dict[str, tuple[int, int, str]] = {}
        self._openings: dict[str, tuple[int, int, str]] = {}

    def root(self) -> Node:
        """Return the whole document; raises `UnclearError` if it is not written in this form."""
        self._take(0, len(self._text))
        node = self._block(0)
        if self._column >= 0:
            raise UnclearError
        return node

    def records(self) -> Iterator[Node]:
        """Yield the items of a list, of which only one is held; raises `UnclearError` where the form is another."""
        end, is_list = 0, False
        while end < len(self._text):
            start = end
            end = self._text.find("\n- ", start) + 1 or len(self._text)
            self._take(start, end)
            if self._column < 0 and not is_list:
                continue  # comments above the first item
            if not self._text.startswith("- ", self._at):
                raise UnclearError
            is_list = True
            yield self._item(0, 0)
            if self._column >= 0:
                raise UnclearError
        if not is_list:
            raise UnclearError

    def _take(self, start: int, end: int) -> None:
        """Begin with the first line of a part of the text."""
        self._lines = self._text[start:end].split("\n")
        self._index, self._at = 0, start
        self._skip_nothing()

    def _skip_nothing(self) -> None:
        """Go on to a line that is no comment and not blank, and take its column; -1 if there is none."""
        last = len(self._lines) - 1
        while True:
            line = self._lines[self._index]
            inner = line.lstrip(" ")
            if inner and inner[0] != "#":
                self._column = len(line) - len(inner)
                return
            if self._index == last:
                self._column = -1
                return
            self._at += len(line) + 1
            self._index += 1

    def _pass(self, line: str) -> None:
        """Go on behind the line that has been read."""
        self._at += len(line) + 1
        self._index += 1

    def _head(self, line: str) -> tuple[int, int, str] | None:
        """Return the columns where a line and its key begin, and the key; None where there is no plain key."""
        head, colon, _ = line.partition(": ")
        heads = self._heads if colon else self._openings
        if head in heads:
            return heads[head]
        inner = head.lstrip(" ")
        column = len(head) - len(inner)
        dash = inner.startswith("- ")
        name = inner[2:] if dash else inner
        if not colon:
            if name[-1:] != ":":
                return None
            name = name[:-1]
        names = [name]
        if name[:1] == '"':
            if len(name) < 2 or name[-1] != '"':
                return None
            names = [name[1:-1]]
        elif "," in name:
            names = name.split(",")
        if not all(map(_is_name, names)):
            return None
        heads[head] = known = (column, column + 2 * dash, ",".join(names))
        return known

    def _block(self, depth: int) -> Node:
        """Read the mapping or list that begins on this line."""
        column = self._column
        if depth > _MAX_DEPTH or column < 0:
            raise UnclearError
        line = self._lines[self._index]
        if not line.startswith("- ", column):
            if (head := self._head(line)) is None:
                raise UnclearError
            return self._mapping(head, depth)
        start, mark = self._at + column, " " * column + "- "
        items: list[Node] = []
        while self._column == column and line.startswith(mark):
            while _is_plain(text := line[column + 2 :]):
                items.append(_new(Scalar, (text, self._at + column + 2)))
                self._pass(line)
                if not (line := self._lines[self._index]).startswith(mark):
                    break
            else:
                items.append(self._item(column, depth))
                line = self._lines[self._index]
                continue
            self._skip_nothing()
            line = self._lines[self._index]
        if self._column >= column:
            raise UnclearError
        return _new(Sequence, (items, start))

    def _item(self, column: int, depth: int) -> Node:
        """Read the item that begins on this line, up to the line behind it."""
        line = self._lines[self._index]
        text = line[column + 2 :]
        if text[:1] not in ("[", "{") and (head := self._head(line)) is not None:
            return self._mapping(head, depth + 1)
        if _is_plain(text):
            node: Node = _new(Scalar, (text, self._at + column + 2))
            self._pass(line)
        else:
            node = self._value(text, self._at + column + 2, column)
        self._skip_nothing()
        if self._column > column:
            raise UnclearError
        return node

    def _mapping(self, known: tuple[int, int, str] | None, depth: int) -> Mapping:
        """Read the mapping that begins on this line, given with its head."""
        # The hot loop: plain texts, which are nearly all values, are taken in place.
        lines, new = self._lines, _new
        index, at = self._index, self._at
        line = lines[index]
        head, colon, value = line.partition(": ")
        if known is None or depth > _MAX_DEPTH:
            raise UnclearError
        _, column, name = known
        start = at + column
        names = self._names.setdefault(column, {})
        entries: dict[str, tuple[int, Node]] = {}
        while True:
            if name in entries:
                raise UnclearError
            key_at = at + column
            node: Node
            if value and value[0] not in _MARKS and ": " not in value and " #" not in value and value[-1] not in " :":
                node = new(Scalar, (value, at + len(head) + 2))
                at += len(line) + 1
                index += 1
            elif value[:1] == '"':
                node = new(Scalar, (_unquoted(value), at + len(head) + 2))
                at += len(line) + 1
                index += 1
            else:
                self._index, self._at = index, at
                node = self._value(value, at + len(head) + 2, column) if colon else self._below(line, column, depth)
                index, at = self._index, self._at
            entries[name] = (key_at, node)
            line = lines[index]
            head, colon, value = line.partition(": ")
            if colon and head in names:
                name = names[head]
                continue
            self._index, self._at = index, at
            self._skip_nothing()
            if self._column != column:
                break
            index, at = self._index, self._at
            line = lines[index]
            head, colon, value = line.partition(": ")
            known = self._head(line)
            if known is None or known[1] != column:
                raise UnclearError
            name = known[2]
            if colon:
                names[head] = name
        if self._column > column:
            raise UnclearError
        return new(Mapping, (entries, start))

    def _below(self, line: str, column: int, depth: int) -> Node:
        """Read the block below a key."""
        self._pass(line)
        self._skip_nothing()
        if self._column <= column:
            raise UnclearError
        return self._block(depth + 1)

    def _value(self, text: str, at: int, column: int) -> Node:
        """Read a value that is not plain, and go on behind its last line.

        Args:
            text: The value, as on its line.
            at: Its index in the file's text.
            column: The column of its block.
        """
        first = text[:1]
        line = self._lines[self._index]
        self._pass(line)
        if first == '"':
            return Scalar(_unquoted(text), at)
        if first in ("[", "{"):
            if plain := _plain_items(text, at):
                return plain
            node, end = _in_brackets(text, 0, at, 0)
            if end != len(text):
                raise UnclearError
            return node
        if text == ">-":
            return Scalar(self._folded(column), at)
        if first == "'" and len(text) > 1 and text[-1] == "'":
            inner = text[1:-1]
            if "'" not in inner.replace("''", ""):
                return Scalar(inner.replace("''", "'"), at)
        if first == "-" and _is_plain(text[1:]) and text[1] in _LETTERS:
            return Scalar(text, at)
        raise UnclearError

    def _folded(self, column: int) -> str:
        """Read a folded text without blank lines, which is set in further than its key at a column."""
        line = self._lines[self._index]
        width = len(line) - len(line.lstrip(" "))
        margin = " " * width
        texts = []
        while line.startswith(margin) and line[width : width + 1] not in ("", " "):
            texts.append(line[width:])
            self._pass(line)
            line = self._lines[self._index]
        text = " ".join(texts)
        behind = next((line for line in self._lines[self._index :] if line.strip(" ")), "")
        is_longer = len(behind) - len(behind.lstrip(" ")) > column
        if not text or width <= column or is_longer or len(text) > MAX_TEXT:
            raise UnclearError
        return text


def _is_plain(text: str) -> bool:
    """Return True if a text needs no quotes on its line; one that begins with `-` is not looked at."""
    return bool(text) and text[0] not in _MARKS and ": " not in text and " #" not in text and text[-1] not in " :"


@lru_cache(4096)
def _is_name(text: str) -> bool:
    """Return True if a text is a key of letters, digits and some marks."""
    return not text.strip(_IN_NAMES) and text[:1] not in "./=!-" and len(text) <= 100


def _unquoted(text: str) -> str:
    """Return the text in double quotes that a value is; a backslash may only stand before another, or a quote."""
    inner = text[1:-1]
    if len(text) < 2 or text[-1] != '"':
        raise UnclearError
    if "\\" not in inner and '"' not in inner:
        return inner
    rest = inner.replace("\\\\", "").replace('\\"', "")
    if "\\" in rest or '"' in rest:
        raise UnclearError
    return "\\".join([part.replace('\\"', '"') for part in inner.split("\\\\")])


def _plain_items(text: str, at: int) -> Node | None:
    """Return the list or mapping in brackets that a value is, if its texts are all plain, or all quoted; else None."""
    items: list[Node] = []
    if text[:2] == '["' and text[-2:] == '"]' and "\\" not in text:
        place = at + 1
        for part in text[2:-2].split('", "'):
            if '"' in part:
                return None
            items.append(_new(Scalar, (part, place)))
            place += len(part) + 4
        return _new(Sequence, (items, at))
    inner = text[1:-1]
    if "[" in inner or "{" in inner or "]" in inner or "}" in inner or "?" in inner or "#" in inner:
        return None
    if inner.count(",") > inner.count(", "):
        return None
    place = at + 1
    if text[0] == "[" and text[-1] == "]" and ": " not in inner and "::" not in inner:
        for part in inner.split(", "):
            if part[:1] in _MARKS or part[-1] in " :":
                return None
            items.append(_new(Scalar, (part, place)))
            place += len(part) + 2
        return _new(Sequence, (items, at))
    entries: dict[str, tuple[int, Node]] = {}
    for part in inner.split(", "):
        name, colon, value = part.partition(": ")
        if (
            not colon
            or name in entries
            or value[:1] in _MARKS
            or ":" in value
            or value[-1] == " "
            or not _is_name(name)
        ):
            return None
        entries[name] = (place, _new(Scalar, (value, place + len(name) + 2)))
        place += len(part) + 2
    return _new(Mapping, (entries, at)) if text[0] == "{" and text[-1] == "}" else None


def _in_brackets(text: str, here: int, at: int, depth: int) -> tuple[Node, int]:
    """Read the list or mapping in brackets that begins at an index of a value; return it, and where it ends.

    Args:
        text: The value, as on its line.
        here: The index of the opening bracket.
        at: The index of the value in the file's text.
        depth: In how many other brackets it stands.
    """
    start, is_list = at + here, text[here] == "["
    close = "]" if is_list else "}"
    items: list[Node] = []
    entries: dict[str, tuple[int, Node]] = {}
    here += 1
    if depth > _MAX_DEPTH:
        raise UnclearError
    while not (text.startswith(close, here) and not items):
        name, key_at = "", at + here
        if not is_list:
            colon = text.find(": ", here)
            name = text[here:colon]
            if len(name) > 2 and name[0] == name[-1] == '"' and '"' not in name[1:-1]:
                name = name[1:-1]
                is_name = "\\" not in name and len(name) < 100
            else:
                is_name = _is_name(name)
            if colon < 0 or not is_name or name in entries or name == "<<":
                raise UnclearError
            here = colon + 2
        node, here = _flow_value(text, here, at, close, depth)
        items.append(node)
        entries[name] = (key_at, node)
        if text.startswith(close, here):
            break
        if not text.startswith(", ", here):
            raise UnclearError
        here += 2
    return _new(Sequence, (items, start)) if is_list else _new(Mapping, (entries, start)), here + 1


def _flow_value(text: str, here: int, at: int, close: str, depth: int) -> tuple[Node, int]:
    """Read a value within brackets, up to a comma or the closing one; arguments and result as for `_in_brackets`."""
    first = text[here : here + 1]
    if first in ("[", "{"):
        return _in_brackets(text, here, at, depth + 1)
    if first == '"':
        end = text.find('"', here + 1)
        while end > 0 and _ends_escaped(text[here:end]):
            end = text.find('"', end + 1)
        return _new(Scalar, (_unquoted(text[here : end + 1]), at + here)), end + 1
    end, comma = text.find(close, here), text.find(",", here)
    if 0 <= comma < end:
        end = comma
    part = text[here:end]
    plain = part[1:] if first == "-" and part[1:2] in _LETTERS else part
    is_text = end >= 0 and _is_plain(plain) and _IN_BRACKETS.isdisjoint(part) and "::" not in part and ":#" not in part
    if not is_text:
        raise UnclearError
    return _new(Scalar, (part, at + here)), end


def _ends_escaped(text: str) -> bool:
    """Return True if a text ends with an odd number of backslashes."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1
