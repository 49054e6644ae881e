"""Find the first error that keeps a text from being JSON (RFC 8259), and its place.

Python's decoder finds syntax errors, and its messages are kept. Its place of a missing or extra comma, of an escape and
of a text that ends too early depends on its version, or is far from the mistake, and is corrected here. Python accepts
`NaN` and repeated names, which are found among the tokens.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple

MAX_DEPTH = 500
"""The levels of nested lists and objects. Every supported Python decodes as many."""

MAX_DIGITS = 4300
"""The digits of a whole number that is read exactly."""

_TOKEN = (
    r'(?P<name>"(?:[^"\\]++|\\.)*+")[ \t\r\n]*:|"(?:[^"\\]++|\\.)*+"?|(?P<mark>[][{}])|(?P<constant>NaN|-?Infinity)'
    rf"|(?<![0-9])-?(?P<digits>[0-9]{{{MAX_DIGITS + 1},}})(?![.eE0-9])|[-+.0-9eE]+"
)
_HALF_PAIR = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\."
_PIECE_BYTES = 1 << 20
_TOO_MANY = MAX_DEPTH + 1
_BRACES = bytes.maketrans(b"[]", b"{}")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_NEITHER_BRACKET_NOR_QUOTE = bytes(set(range(256)) - set(b'[]{}"'))


class Kind(Enum):
    """The kinds of faults that callers distinguish."""

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
    """An error that keeps a text from being JSON.

    Attributes:
        kind: Its kind.
        message: What is wrong, and what to do about it if that is clear.
        line: Its line, counted from that of the beginning of the text.
        column: Its column in characters, from 1.
        word: The word that is wrong: `NaN`, or a repeated name; empty for other faults.
    """

    kind: Kind
    message: str
    line: int
    column: int
    word: str = ""


class JsonError(ValueError):
    """A text is not JSON as data files need it. `line` and `column` count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def loads(text: str, first_line: int = 1) -> Any:
    """Return the value of a text that begins on a line of its file.

    Raises:
        JsonError: It is not JSON, or has what only Python accepts: repeated names and `NaN`.
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
    """Return True if well-formed JSON in UTF-8 is nested more than `MAX_DEPTH` levels deep.

    No Python code runs per character. Most documents open few brackets, which `replace` counts fastest. Strings, whose
    brackets mostly come in pairs, are only removed if all brackets together nest too deep.
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
    """Return True if braces nest more than `MAX_DEPTH` deep, braces without a partner included."""
    if b"{" * (MAX_DEPTH + 1) in braces:
        return True
    for depth in range(MAX_DEPTH + 1):  # each round removes the innermost level
        outer = braces.replace(b"{}", b"")
        if len(outer) == len(braces) or depth + len(braces) <= MAX_DEPTH:
            return depth + len(braces) > MAX_DEPTH
        braces = outer
    return True


def _marks(data: bytes) -> Iterator[bytes]:
    """Yield the brackets, all as braces, and the quotes of strings, piece by piece to save memory."""
    begin = 0
    while begin < len(data):
        end = begin + _PIECE_BYTES
        while data[end - 1 : end] == b"\\":  # no piece ends inside an escape
            end += 1
        piece = data[begin:end].replace(b"\\\\", b"__").replace(b'\\"', b"__")  # equal length is faster
        yield piece.translate(_BRACES, _NEITHER_BRACKET_NOR_QUOTE)
        begin = end


def first_fault(text: str, *, first_line: int = 1, is_strict: bool = False) -> Fault | None:
    """Return the first fault of a text that begins on a line of its file; None if it is valid JSON.

    Names that are repeated in an object, and numbers of too many digits, are faults if `is_strict`.
    """
    return _Scanner(text, first_line, is_strict).fault()


def _is_long(number: str) -> bool:
    digits = number.removeprefix("-")
    return digits.isdigit() and len(digits) > MAX_DIGITS


class _Scanner:
    """Finds the first fault of a text: the error of Python's decoder, or a wrong token before it."""

    def __init__(self, text: str, first_line: int, is_strict: bool) -> None:
        self._text = text
        self._end = len(text.rstrip())
        self._first_line = first_line
        self._is_strict = is_strict
        self._opened: list[int] = []

    def fault(self) -> Fault | None:
        """Return the first fault of the text."""
        import json

        if not self._end:
            return self._fault(Kind.EMPTY, 0, "there is nothing in it")
        if self._text[0] == "\ufeff":
            message = "begins with a byte order mark, which JSON does not have; save the file in UTF-8 without it"
            return self._fault(Kind.BYTE_ORDER_MARK, 0, message)
        try:
            json.loads(self._text, parse_int=len, parse_float=len)  # `int` refuses long numbers
        except json.JSONDecodeError as error:
            return self._token_fault(error.pos) or self._mistake(error.pos, error.msg)
        except RecursionError:
            return self._token_fault(len(self._text))
        if fault := self._token_fault(len(self._text)):
            return fault
        halves = (escape for escape in re.finditer(_HALF_PAIR, self._text) if escape["half"])
        if self._is_strict or (half := next(halves, None)) is None:
            return None
        return self._fault(Kind.HALF_PAIR, half.start(), "half of a surrogate pair, which stands for no character")

    def _token_fault(self, end: int) -> Fault | None:
        """Return the first fault that Python's decoder accepts, in the text up to the first error that it finds."""
        import json

        names: list[set[str]] = []
        for token in re.finditer(_TOKEN, self._text[:end]):
            word, start = token[0], token.start()
            if word in ("{", "["):
                self._opened.append(start)
                names.append(set())
                if len(names) > MAX_DEPTH:
                    return self._fault(Kind.TOO_DEEP, 0, f"nested too deeply; at most {MAX_DEPTH} levels are read")
            elif token["mark"]:
                self._opened.pop()
                names.pop()
            elif token["constant"]:
                return self._fault(Kind.NOT_FINITE, start, f"{quote(word)} is not a finite number", word)
            elif self._is_strict and token["digits"]:
                return self._fault(Kind.TOO_MANY_DIGITS, start, f"a number of more than {MAX_DIGITS} digits")
            elif self._is_strict and token["name"]:
                name = str(json.loads(token["name"]))
                if name in names[-1]:
                    message = f"{quote(name)} is given twice in one object"
                    return self._fault(Kind.REPEATED_NAME, start, message, name)
                names[-1].add(name)
        return None

    def _mistake(self, at: int, mistake: str) -> Fault:
        """Return the fault for an error of the decoder, by its place and message."""
        text, message = self._text, f"{mistake[:1].lower()}{mistake[1:]}".removesuffix(" at")
        before = len(text[:at].rstrip(" \t\r\n"))
        if text.startswith(("#", "//", "/*"), at):
            message = "a comment, which JSON does not have; remove it"
        elif mistake == "Extra data":
            return self._fault(Kind.EXTRA_DATA, at, message)
        elif mistake.startswith("Unterminated string"):
            message, at = f"the text ends in the middle of a string, which begins at {self._place(at)}", self._end
        elif "escape" in mistake:
            at = text.rindex("\\", 0, at + 1)
            if re.compile(r"\\u[0-9a-fA-F]{4}").fullmatch(text, at, self._end):  # a half pair, to be continued
                message, at = "the text ends in the middle of a string", self._end
        elif at >= self._end:
            message, at = "the text ends in the middle of a value", self._end
            if self._opened:
                noun = "an object" if text[self._opened[-1]] == "{" else "a list"
                message = f"the text ends in the middle of {noun}, which begins at {self._place(self._opened[-1])}"
        elif mistake.startswith("Illegal trailing comma"):  # from Python 3.13 on
            message = "a comma with nothing behind it; remove it"
        elif text[before - 1 : before] == "," and text[at] in "]}":
            message, at = "a comma with nothing behind it; remove it", before - 1
        elif "','" in mistake and (text[at] in '"{[' or (at > before and text[at].isalnum())):
            message, at = "a comma is missing", before
        return self._fault(Kind.SYNTAX, at, message)

    def _fault(self, kind: Kind, at: int, message: str, word: str = "") -> Fault:
        return Fault(kind, message, *self._line_column(at), word)

    def _place(self, at: int) -> str:
        line, column = self._line_column(at)
        return f"{line}:{column}"

    def _line_column(self, at: int) -> tuple[int, int]:
        return self._first_line + self._text.count("\n", 0, at), at - self._text.rfind("\n", 0, at)
