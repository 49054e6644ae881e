"""What keeps a text from being JSON, in words and limits of our own: the same on every Python.

Decoders are fast and their messages follow their version, so they only say *that* a text is no JSON. The scanner
here then looks for the first fault and for its place (RFC 8259).
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any, NamedTuple

from orchtrace_corpus.base.findings import printable, quote

MAX_DEPTH = 500
"""So many lists and objects may lie inside each other. Every supported Python decodes as many."""

MAX_DIGITS = 4300
"""So many digits may a whole number have where it is read exactly."""

_TOKEN = (
    r'[ \t\r\n]*+(?:(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<word>true|false|null)|(?P<mark>[][{},:]))?"
)
_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_HALF_PAIR = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\."
_PIECE_BYTES = 1 << 20
_TOO_MANY = MAX_DEPTH + 1
_BRACES = bytes.maketrans(b"[]", b"{}")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_NEITHER_BRACKET_NOR_QUOTE = bytes(set(range(256)) - set(b'[]{}"'))


class Kind(Enum):
    """The kinds of faults that callers tell apart."""

    SYNTAX = auto()
    EMPTY = auto()
    BYTE_ORDER_MARK = auto()
    EXTRA_DATA = auto()
    TOO_DEEP = auto()
    NOT_FINITE = auto()
    HALF_PAIR = auto()
    REPEATED_NAME = auto()
    TOO_MANY_DIGITS = auto()


class Fault(NamedTuple):
    """What keeps a text from being JSON.

    Attributes:
        kind: Its kind.
        message: What is wrong, and what to do about it where that is clear.
        line: The line of the character at fault, counted from the given first one.
        column: Its column, which counts characters from 1.
        word: The word at fault, where the fault is one: `NaN`, or a name that is repeated.
    """

    kind: Kind
    message: str
    line: int
    column: int
    word: str = ""


class JsonError(ValueError):
    """A text is not JSON as data files have it. `line` and `column` count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def loads(text: str, first_line: int = 1) -> Any:
    """The value of a text, without what only Python takes for JSON: repeated names and `NaN`.

    Args:
        text: The text.
        first_line: The line of its file on which it begins.

    Raises:
        JsonError: It is not such JSON.
    """
    import json

    try:
        if not exceeds_depth(text.encode("utf-8", "surrogatepass")):
            return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        pass
    fault = first_fault(text, first_line=first_line, is_strict=True)
    fault = fault or Fault(Kind.SYNTAX, "it cannot be decoded", first_line, 1)
    message = fault.message if fault.kind is Kind.REPEATED_NAME else f"not valid JSON: {fault.message}"
    raise JsonError(message, fault.line, fault.column)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _refuse(_constant: str) -> None:
    raise ValueError


def exceeds_depth(data: bytes) -> bool:
    """Whether well-formed JSON is nested more than `MAX_DEPTH` levels deep.

    Nothing here runs in Python for each character. Mostly few brackets are opened, which `replace` sees soonest. Those
    in strings mostly come in pairs: strings are only taken out where brackets of any kind nest too deep or are left.

    Args:
        data: The text in UTF-8.
    """
    if len(data) <= 2 * MAX_DEPTH:
        return False
    if len(data) <= _PIECE_BYTES:
        if len(data) - len(data.replace(b"{", b"", _TOO_MANY).replace(b"[", b"", _TOO_MANY)) < _TOO_MANY:
            return False
        braces = data.translate(_BRACES, _NO_BRACKET)
    else:
        pieces = (data[begin : begin + _PIECE_BYTES] for begin in range(0, len(data), _PIECE_BYTES))
        braces = b"".join(piece.translate(_BRACES, _NO_BRACKET) for piece in pieces)
    if braces.count(b"{") <= MAX_DEPTH or not _nests_too_deep(braces):
        return False
    marks = b"".join(_marks(data)).replace(b'""', b"")
    return _nests_too_deep(re.sub(rb'"[^"]*+"?', b"", marks))


def _nests_too_deep(braces: bytes) -> bool:
    """Whether braces nest more than `MAX_DEPTH` deep, those counted in that have no partner."""
    if b"{" * (MAX_DEPTH + 1) in braces:
        return True
    for depth in range(MAX_DEPTH + 1):  # each round takes away the innermost level
        outer = braces.replace(b"{}", b"")
        if len(outer) == len(braces) or depth + len(braces) <= MAX_DEPTH:
            return depth + len(braces) > MAX_DEPTH
        braces = outer
    return True


def _marks(data: bytes) -> Iterator[bytes]:
    """The brackets, all as braces, and the quotes that begin or end a string; piece by piece, to save memory."""
    begin = 0
    while begin < len(data):
        end = begin + _PIECE_BYTES
        while data[end - 1 : end] == b"\\":  # no piece ends inside an escape
            end += 1
        piece = data[begin:end].replace(b"\\\\", b"__").replace(b'\\"', b"__")  # of equal length, which is faster
        yield piece.translate(_BRACES, _NEITHER_BRACKET_NOR_QUOTE)
        begin = end


def first_fault(text: str, *, first_line: int = 1, is_strict: bool = False) -> Fault | None:
    """The first thing that keeps a text from being JSON; None where nothing does.

    Args:
        text: The text.
        first_line: The line of its file on which it begins.
        is_strict: Whether names that are repeated in an object, and numbers of too many digits, are faults as well.
    """
    return _Scanner(text, first_line, is_strict).fault()


def _is_long(number: str) -> bool:
    digits = number.removeprefix("-")
    return digits.isdigit() and len(digits) > MAX_DIGITS


class _Scanner:
    """Reads a text token by token, with the brackets that are open kept in a list rather than on a stack of calls."""

    def __init__(self, text: str, first_line: int, is_strict: bool) -> None:
        self._text = text
        self._end = len(text.rstrip())
        self._first_line = first_line
        self._is_strict = is_strict
        self._opened: list[int] = []
        self._names: list[set[str]] = []

    def fault(self) -> Fault | None:
        """The first fault of the text."""
        if not self._end:
            return self._fault(Kind.EMPTY, 0, "there is nothing in it")
        if self._text[0] == "\ufeff":
            message = "begins with a byte order mark, which JSON does not have; save the file in UTF-8 without it"
            return self._fault(Kind.BYTE_ORDER_MARK, 0, message)
        fault = self._syntax_fault()
        if fault is None and not self._is_strict:
            for escape in re.finditer(_HALF_PAIR, self._text):
                if escape["half"]:
                    message = "half of a surrogate pair, which stands for no character"
                    return self._fault(Kind.HALF_PAIR, escape.start(), message)
        return fault

    def _syntax_fault(self) -> Fault | None:
        read = re.compile(_TOKEN).match
        text, opened = self._text, self._opened
        expected, at, is_first = "value", 0, False
        while token := read(text, at):
            kind, at = token.lastgroup, token.end()
            begin = token.start(kind) if kind else at
            mark = text[begin] if kind == "mark" else ""
            if at == len(text) and not kind and not opened and expected == "comma":
                return None
            if not kind and at >= self._end and (opened or expected == "value"):
                return self._fault_at_end()
            if opened and text[opened[-1]] + mark in ("[]", "{}") and (expected == "comma" or is_first):
                opened.pop()
                self._names.pop()
                expected, is_first = "comma", False
            elif expected == "value" and kind and mark in ("", "[", "{"):
                if mark:
                    opened.append(begin)
                    self._names.append(set())
                    if len(opened) > MAX_DEPTH:
                        return self._fault(Kind.TOO_DEEP, 0, f"nested too deeply; at most {MAX_DEPTH} levels are read")
                elif self._is_strict and kind == "number" and _is_long(token["number"]):
                    return self._fault(Kind.TOO_MANY_DIGITS, begin, f"a number of more than {MAX_DIGITS} digits")
                expected, is_first = {"[": ("value", True), "{": ("name", True)}.get(mark, ("comma", False))
            elif expected == "name" and kind == "string":
                if self._is_strict and (fault := self._repeated(token["string"], begin)):
                    return fault
                expected, is_first = "colon", False
            elif expected == "colon" and mark == ":":
                expected = "value"
            elif expected == "comma" and opened and mark == ",":
                expected = "name" if text[opened[-1]] == "{" else "value"
            else:
                return self._unexpected(expected, begin)
        return None

    def _repeated(self, string: str, at: int) -> Fault | None:
        import json

        name = str(json.loads(string))
        if name in self._names[-1]:
            return self._fault(Kind.REPEATED_NAME, at, f"{quote(name)} is given twice in one object", name)
        self._names[-1].add(name)
        return None

    def _unexpected(self, expected: str, at: int) -> Fault:
        """The fault of a character that does not continue what stands in front of it."""
        text = self._text
        before = len(text[:at].rstrip(" \t\r\n"))
        is_closing = text[at] in "]}"
        if is_closing and text[:before].endswith(","):
            return self._fault(Kind.SYNTAX, before - 1, "a comma with nothing behind it; remove it")
        if text[at] == "#" or text.startswith(("//", "/*"), at):
            return self._fault(Kind.SYNTAX, at, "a comment, which JSON does not have; remove it")
        if text[at] == '"' and expected in ("value", "name"):
            return self._in_string(at)
        if expected == "comma" and not self._opened:
            return self._fault(Kind.EXTRA_DATA, at, "the document has ended before this")
        if expected == "value" and (found := re.compile("-?Infinity|NaN").match(text, at)):
            return self._fault(Kind.NOT_FINITE, at, f"{quote(found[0])} is not a finite number", found[0])
        if expected == "comma" and (text[at] in '"{[' or (at > before and text[at].isalnum())):
            return self._fault(Kind.SYNTAX, before, "a comma is missing")
        found = re.compile(r"(?s)\w+|.").match(text, at)
        word = "a single quotation mark" if text[at] == "'" else quote(found[0] if found else text[at])
        wanted = {
            "value": "a value",
            "name": "a name in double quotes",
            "colon": "a colon",
            "comma": "a comma or a closing bracket",
        }[expected]
        return self._fault(Kind.SYNTAX, at, f"{wanted} is expected, not {word}")

    def _in_string(self, begin: int) -> Fault:
        """The fault of a string that does not end as one."""
        found = re.compile(_STRING).match(self._text, begin)
        at = found.end() if found else begin
        if at >= self._end:
            return self._fault(
                Kind.SYNTAX, self._end, f"the text ends in the middle of a string, which begins at {self._place(begin)}"
            )
        if self._text[at] != "\\":
            return self._fault(Kind.SYNTAX, at, "invalid control character")
        if self._text[at + 1 : at + 2] == "u":
            return self._fault(Kind.SYNTAX, at, r"invalid \u escape; four hexadecimal digits follow it")
        escape = printable(self._text[at : at + 2])
        return self._fault(Kind.SYNTAX, at, f"invalid escape {escape}; write two backslashes for one")

    def _fault_at_end(self) -> Fault:
        inside = "a value"
        if self._opened:
            noun = "an object" if self._text[self._opened[-1]] == "{" else "a list"
            inside = f"{noun}, which begins at {self._place(self._opened[-1])}"
        return self._fault(Kind.SYNTAX, self._end, f"the text ends in the middle of {inside}")

    def _fault(self, kind: Kind, at: int, message: str, word: str = "") -> Fault:
        return Fault(kind, message, *self._line_column(at), word)

    def _place(self, at: int) -> str:
        line, column = self._line_column(at)
        return f"{line}:{column}"

    def _line_column(self, at: int) -> tuple[int, int]:
        return self._first_line + self._text.count("\n", 0, at), at - self._text.rfind("\n", 0, at)
