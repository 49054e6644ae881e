"""Reads YAML that is written as `corpus check --fix` writes it, line by line, and says so where it is not.

Importing PyYAML takes as long as the interpreter's start, and its parser twice as long as this. What is read here is a
part of YAML without choices: block mappings and lists with one value a line, which is plain, in quotes, in brackets, or
folded by `>-`. The nodes are those that the parser gives, places included. Of any other line, mistakes
included, nothing is decided here: the parser reads the file.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias


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

_FIRST = r"""(?:[^\s?:,\[\]{}#&*!|>'"%@`-]|-(?=[0-9A-Za-z]))"""
_NAME = "[A-Za-z0-9_][A-Za-z0-9_./=!-]{0,99}"
_QUOTED = r'"([^"\\\n]*(?:\\["\\][^"\\\n]*)*)"'
_BEFORE = rf"( *)(- )?(?:({_NAME}(?:,{_NAME})*|\"{_NAME}\"):(?: |(?=\n)))?"
_LINE = re.compile(
    _BEFORE + rf"(?:({_FIRST}[^:#\n]*(?:(?::(?=[^ \n])|(?<! )#)[^:#\n]*)*)(?<! )\n|{_QUOTED}\n|([\[{{])|(>-)\n|\n)"
)
_SINGLE_QUOTED = _BEFORE + r"(?:(?!)()()()()|'([^'\n]*(?:''[^'\n]*)*)')\n"
"""A line as `_LINE` has it, with a text in single quotes: what people write, and `corpus check --fix` does not."""
_FLOW = re.compile(
    rf"({_FIRST}[^,\[\]{{}}?:#\n]*(?:(?::[^\s,\[\]{{}}?:#]|(?<! )#)[^,\[\]{{}}?:#\n]*)*)(?<! )(?=[,\]}}])|{_QUOTED}"
)
_LIST = re.compile(rf"(?:(?:{_FLOW.pattern})(?:, |(?=\])))+\]\n")
_FLOW_NAME = re.compile(rf'(?:({_NAME})|"([^"\\\n]{{1,99}})"): ')
_PAIR = re.compile(rf"{_FLOW_NAME.pattern}(?:{_FLOW.pattern})(?:, |(?=\}}))")
_FOLDED = re.compile(r"( +)[^ \n][^\n]*\n(?:\1[^ \n][^\n]*\n)*")
_NOTHING = re.compile(r"(?: *(?:#[^\n]*)?\n)*")

_DASH, _KEY, _PLAIN, _QUOTE, _BRACKET, _FOLD, _SINGLE_QUOTE = range(2, 9)
_MOST_DEPTH = 6
"""In block form, and as much again in brackets: together less than the parser reads."""


class UnclearError(Exception):
    """A line is written in another form, or wrong."""


class Lines:
    """The lines of a text, and the nodes that they hold; every character of the text is printable or a line feed."""

    def __init__(self, text: str) -> None:
        """Begin with the first line; raises `UnclearError` if there is none, or the last one has no end."""
        self._text = text
        self._names: dict[str, str] = {}
        self._move(0)
        if self._column < 0 or text[-1] != "\n":
            raise UnclearError

    def root(self) -> Node:
        """The whole document; raises `UnclearError` if it is not written in this form."""
        node = self._block(0)
        if self._column >= 0:
            raise UnclearError
        return node

    def records(self) -> Iterator[Node]:
        """The items of a document that is a list; raises `UnclearError` where it is not written in this form."""
        while self._column == 0 and self._line[_DASH]:
            yield self._item(0)
        if self._column >= 0:
            raise UnclearError

    def _move(self, at: int) -> None:
        """Take the first line with anything on it from an index on, where a line begins; column -1 if there is none."""
        line = _LINE.match(self._text, at)
        if line is None or line.lastindex == 1:  # a comment, or nothing
            at = self._behind_nothing(at)
            line = _LINE.match(self._text, at) or re.compile(_SINGLE_QUOTED).match(self._text, at)
        if line is not None and (line.lastindex or 0) > _DASH:
            self._line, self._column = line, line.end(1) - at
        elif at == len(self._text):
            self._column = -1
        else:
            raise UnclearError

    def _behind_nothing(self, at: int) -> int:
        """Where blank lines and comments end that begin at an index."""
        match = _NOTHING.match(self._text, at)
        return match.end() if match else at

    def _block(self, depth: int) -> Node:
        """The mapping or list that begins on this line."""
        if depth > _MOST_DEPTH or self._column < 0:
            raise UnclearError
        if not self._line[_DASH]:
            return self._mapping(self._column, depth)
        column, at = self._column, self._line.start(_DASH)
        items = []
        while self._column == column and self._line[_DASH]:
            items.append(self._item(depth))
        if self._column >= column:
            raise UnclearError
        return Sequence(items, at)

    def _item(self, depth: int) -> Node:
        line, column = self._line, self._column
        if line[_KEY]:
            return self._mapping(column + 2, depth + 1)
        node, end = self._value(line, column)
        self._move(end)
        if self._column > column:
            raise UnclearError
        return node

    def _mapping(self, column: int, depth: int) -> Mapping:
        # The hot loop: plain texts, which are nearly all values, are taken in place.
        text, match, new, names = self._text, _LINE.match, tuple.__new__, self._names
        line: re.Match[str] = self._line
        at = line.start(_KEY)
        entries: dict[str, tuple[int, Node]] = {}
        while True:
            dash, key, plain = line.group(_DASH, _KEY, _PLAIN)
            name = names.get(key) or names.setdefault(key, key.strip('"') if key else "")
            if not name or name in entries or (dash and entries):
                raise UnclearError
            value: Node
            if plain is not None:
                value, end = new(Scalar, (plain, line.start(_PLAIN))), line.end()
            elif line.lastindex != _KEY:
                value, end = self._value(line, column)
            else:
                self._move(line.end())
                if self._column <= column:
                    raise UnclearError
                value, end = self._block(depth + 1), -1
            entries[name] = (line.start(_KEY), value)
            if end >= 0:
                following = match(text, end)
                if following is not None and following.lastindex != 1 and following.end(1) - end == column:
                    line = following
                    continue
                self._move(end)
            if self._column != column:
                break
            line = self._line
        if self._column > column:
            raise UnclearError
        return Mapping(entries, at)

    def _value(self, line: re.Match[str], column: int) -> tuple[Node, int]:
        """The value on a line of a block at a column, and where the line ends."""
        kind = line.lastindex
        if kind == _PLAIN:
            return Scalar(line[_PLAIN], line.start(_PLAIN)), line.end()
        if kind == _QUOTE:
            return Scalar(_unescaped(line[_QUOTE]), line.start(_QUOTE) - 1), line.end()
        if kind == _SINGLE_QUOTE:
            return Scalar(line[_SINGLE_QUOTE].replace("''", "'"), line.start(_SINGLE_QUOTE) - 1), line.end()
        if kind == _BRACKET:
            node, end = self._flow(line.start(_BRACKET), 0)
            if self._text[end : end + 1] != "\n":
                raise UnclearError
            return node, end + 1
        folded = _FOLDED.match(self._text, line.end())
        if kind != _FOLD or folded is None or len(folded[1]) <= column:
            raise UnclearError
        text = " ".join(one[len(folded[1]) :] for one in folded[0].split("\n")[:-1])
        behind = _LINE.match(self._text, self._behind_nothing(folded.end()))
        if len(text) > MAX_TEXT or (behind is not None and len(behind[1]) > column):
            raise UnclearError
        return Scalar(text, line.start(_FOLD)), folded.end()

    def _flow(self, at: int, depth: int) -> tuple[Node, int]:
        """What begins with the bracket at an index, and where it ends."""
        text, here, new = self._text, at + 1, tuple.__new__
        is_list = text[at] == "["
        if depth > _MOST_DEPTH:
            raise UnclearError
        if is_list and (plain := _LIST.match(text, here)):
            found = _FLOW.finditer(text, here, plain.end())
            return Sequence([new(Scalar, (m[1] or _unescaped(m[2]), m.start())) for m in found], at), plain.end() - 1
        close = "]" if is_list else "}"
        items: list[Node] = []
        entries: dict[str, tuple[int, Node]] = {}
        while not is_list and (pair := _PAIR.match(text, here)):  # texts, as nearly all
            bare_name, quoted_name, bare, quoted = pair.groups()
            name = bare_name or quoted_name
            if name in entries or name == "<<":
                raise UnclearError
            value_at = pair.start(3) if bare else pair.start(4) - 1
            entries[name] = (here, new(Scalar, (bare or _unescaped(quoted), value_at)))
            here = pair.end()
        if entries and text[here] == close:
            return Mapping(entries, at), here + 1
        while text[here] != close or items or entries:
            place, name = here, ""
            if not is_list:
                key = _FLOW_NAME.match(text, here)
                name = (key[1] or key[2]) if key else ""
                if key is None or name in entries or name == "<<":
                    raise UnclearError
                here = key.end()
            if text[here] in "[{":
                value, here = self._flow(here, depth + 1)
            else:
                match = _FLOW.match(text, here)
                if match is None:
                    raise UnclearError
                value, here = Scalar(match[1] or _unescaped(match[2]), here), match.end()
            items.append(value)
            if not is_list:
                entries[name] = (place, value)
            if text[here] == close:
                break
            if text[here : here + 2] != ", ":
                raise UnclearError
            here += 2
        return (Sequence(items, at) if is_list else Mapping(entries, at)), here + 1


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text
