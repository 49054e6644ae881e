"""Find the first error that keeps a text from being JSON (RFC 8259), and its place.

Python's decoder finds syntax errors. Its messages are kept, but not all of its places: that of a missing or extra
comma, of an escape, and of a text that ends too early depends on the version of Python, or is far from the error.
Python's decoder accepts `NaN` and repeated names; a search of the tokens finds them.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple

MAX_DEPTH = 500
"""The largest number of nested lists and objects. Every supported Python decodes as many."""

MAX_DIGITS = 4300
"""The largest number of digits of a whole number: Python converts no longer ones."""

# A name with its colon, another string, a bracket, a constant that JSON lacks, a long whole number, or another number.
_TOKEN = (
    r'(?P<name>"(?:[^"\\]++|\\.)*+")[ \t\r\n]*:|"(?:[^"\\]++|\\.)*+"?|(?P<bracket>[][{}])|(?P<constant>NaN|-?Infinity)'
    rf"|(?<![0-9])-?(?P<digits>[0-9]{{{MAX_DIGITS + 1},}})(?![.eE0-9])|[-+.0-9eE]+"
)
# A surrogate pair, half of one, or another escape.
_ESCAPE = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\."
_PIECE_BYTES = 1 << 20
# For `bytes.translate`: brackets as braces, and the bytes to delete.
_BRACKETS_AS_BRACES = bytes.maketrans(b"[]", b"{}")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ALL_BUT_BRACKETS_AND_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))


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
        kind: The kind of fault.
        message: What is wrong, and what to do about it if that is clear.
        line: The line in the file that has the text.
        column: The column in characters, from 1.
        word: The word that is wrong: `NaN`, or a repeated name; empty for other kinds.
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
    """Return the value of a JSON text. It begins on the line `first_line` of its file.

    Raises:
        JsonError: The text is not JSON, or has something that only Python's decoder accepts: repeated names or `NaN`.
    """
    import json

    try:
        if not exceeds_depth(text.encode("utf-8", "surrogatepass")):
            return json.loads(text, object_pairs_hook=_members_without_repeats, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        pass
    fault = first_fault(text, first_line=first_line, is_strict=True)
    if fault is None:
        fault = Fault(Kind.SYNTAX, "it cannot be decoded", first_line, 1)
    message = fault.message if fault.kind is Kind.REPEATED_NAME else f"not valid JSON: {fault.message}"
    raise JsonError(message, fault.line, fault.column)


def _members_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _refuse_constant(_constant: str) -> None:
    raise ValueError


def exceeds_depth(data: bytes) -> bool:
    """Return True if well-formed JSON in UTF-8 is nested more than `MAX_DEPTH` levels deep.

    The search is fast, because no Python code runs per character, and the costly steps are rare: most documents have
    fewer brackets than levels are allowed. Strings may have brackets, too, but mostly in pairs. So strings are only
    removed from a document whose brackets nest too deep together with those in strings.
    """
    if len(data) <= 2 * MAX_DEPTH:
        return False
    if len(data) <= _PIECE_BYTES:
        # `replace` counts a few brackets fastest.
        without_braces = data.replace(b"{", b"", MAX_DEPTH + 1)
        without_brackets = without_braces.replace(b"[", b"", MAX_DEPTH + 1)
        if len(data) - len(without_brackets) <= MAX_DEPTH:
            return False
        braces = data.translate(_BRACKETS_AS_BRACES, _ALL_BUT_BRACKETS)
    else:  # piece by piece, to save memory
        pieces = (data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES))
        braces = b"".join(piece.translate(_BRACKETS_AS_BRACES, _ALL_BUT_BRACKETS) for piece in pieces)
    if braces.count(b"{") <= MAX_DEPTH or not _nests_too_deep(braces):
        return False
    marks = b"".join(_braces_and_quotes(data)).replace(b'""', b"")
    return _nests_too_deep(re.sub(rb'"[^"]*+"?', b"", marks))


def _nests_too_deep(braces: bytes) -> bool:
    """Return True if braces nest more than `MAX_DEPTH` deep. A brace without a partner counts as a level."""
    if b"{" * (MAX_DEPTH + 1) in braces:
        return True
    for removed_levels in range(MAX_DEPTH + 1):
        if removed_levels + len(braces) <= MAX_DEPTH:
            return False
        outer = braces.replace(b"{}", b"")  # without the innermost level
        if len(outer) == len(braces):  # only braces without a partner are left
            return True
        braces = outer
    return True


def _braces_and_quotes(data: bytes) -> Iterator[bytes]:
    """Yield the brackets, all as braces, and the quotes of strings, piece by piece to save memory."""
    start = 0
    while start < len(data):
        end = start + _PIECE_BYTES
        while data[end - 1 : end] == b"\\":  # no piece ends inside an escape
            end += 1
        # Remove escaped quotes; a replacement of equal length is faster.
        piece = data[start:end].replace(b"\\\\", b"__").replace(b'\\"', b"__")
        yield piece.translate(_BRACKETS_AS_BRACES, _ALL_BUT_BRACKETS_AND_QUOTES)
        start = end


def first_fault(text: str, *, first_line: int = 1, is_strict: bool = False) -> Fault | None:
    """Return the first fault of a text; None if it is valid JSON.

    Args:
        text: The text.
        first_line: The line of its file on which the text begins.
        is_strict: True if a name that is repeated in an object, and a number of too many digits, are faults. Then half
            of a surrogate pair is none.
    """
    return _FaultFinder(text, first_line, is_strict).find()


class _FaultFinder:
    """Finds the first fault of a text: the error of Python's decoder, or a wrong token before it."""

    def __init__(self, text: str, first_line: int, is_strict: bool) -> None:
        self._text = text
        self._end = len(text.rstrip())
        self._first_line = first_line
        self._is_strict = is_strict
        self._open_brackets: list[int] = []  # the indices of the brackets that are open where the search ended

    def find(self) -> Fault | None:
        """Return the first fault of the text."""
        import json

        if not self._end:
            return self._fault(Kind.EMPTY, 0, "there is nothing in it")
        if self._text[0] == "\ufeff":
            message = "begins with a byte order mark, which JSON does not have; save the file in UTF-8 without it"
            return self._fault(Kind.BYTE_ORDER_MARK, 0, message)
        try:
            # `len` in place of `int`, which refuses long numbers; the values are not used.
            json.loads(self._text, parse_int=len, parse_float=len)
        except json.JSONDecodeError as error:
            return self._find_wrong_token(error.pos) or self._syntax_fault(error.pos, error.msg)
        except RecursionError:
            return self._find_wrong_token(len(self._text))
        if fault := self._find_wrong_token(len(self._text)):
            return fault
        if not self._is_strict:
            for escape in re.finditer(_ESCAPE, self._text):
                if escape["half"]:
                    message = "half of a surrogate pair, which stands for no character"
                    return self._fault(Kind.HALF_PAIR, escape.start(), message)
        return None

    def _find_wrong_token(self, end: int) -> Fault | None:
        """Return the first fault before `end` that Python's decoder accepts."""
        import json

        names_by_level: list[set[str]] = []  # for each open object or list, its names so far
        for token in re.finditer(_TOKEN, self._text[:end]):
            word = token[0]
            start = token.start()
            if word in ("{", "["):
                self._open_brackets.append(start)
                names_by_level.append(set())
                if len(names_by_level) > MAX_DEPTH:
                    return self._fault(Kind.TOO_DEEP, 0, f"nested too deeply; at most {MAX_DEPTH} levels are read")
            elif token["bracket"]:
                self._open_brackets.pop()
                names_by_level.pop()
            elif token["constant"]:
                return self._fault(Kind.NOT_FINITE, start, f"{quote(word)} is not a finite number", word)
            elif self._is_strict and token["digits"]:
                return self._fault(Kind.TOO_MANY_DIGITS, start, f"a number of more than {MAX_DIGITS} digits")
            elif self._is_strict and token["name"]:
                name = str(json.loads(token["name"]))
                if name in names_by_level[-1]:
                    message = f"{quote(name)} is given twice in one object"
                    return self._fault(Kind.REPEATED_NAME, start, message, name)
                names_by_level[-1].add(name)
        return None

    def _syntax_fault(self, index: int, decoder_message: str) -> Fault:
        """Return the fault for an error of Python's decoder, from the index and the message of the error."""
        text = self._text
        message = decoder_message[:1].lower() + decoder_message[1:].removesuffix(" at")
        end_before = len(text[:index].rstrip(" \t\r\n"))  # where the token before the error ends
        if text.startswith(("#", "//", "/*"), index):
            message = "a comment, which JSON does not have; remove it"
        elif decoder_message == "Extra data":
            return self._fault(Kind.EXTRA_DATA, index, message)
        elif decoder_message.startswith("Unterminated string"):
            message = f"the text ends in the middle of a string, which begins at {self._place(index)}"
            index = self._end
        elif "escape" in decoder_message:
            index = text.rindex("\\", 0, index + 1)
            if re.compile(r"\\u[0-9a-fA-F]{4}").fullmatch(text, index, self._end):  # half a pair, and the text ends
                message = "the text ends in the middle of a string"
                index = self._end
        elif index >= self._end:
            message = "the text ends in the middle of a value"
            if self._open_brackets:
                start = self._open_brackets[-1]
                noun = "an object" if text[start] == "{" else "a list"
                message = f"the text ends in the middle of {noun}, which begins at {self._place(start)}"
            index = self._end
        elif decoder_message.startswith("Illegal trailing comma"):  # from Python 3.13 on
            message = "a comma with nothing behind it; remove it"
        elif text[end_before - 1 : end_before] == "," and text[index] in "]}":  # before Python 3.13
            message = "a comma with nothing behind it; remove it"
            index = end_before - 1
        elif "','" in decoder_message and (text[index] in '"{[' or (index > end_before and text[index].isalnum())):
            message = "a comma is missing"
            index = end_before
        return self._fault(Kind.SYNTAX, index, message)

    def _fault(self, kind: Kind, index: int, message: str, word: str = "") -> Fault:
        line, column = self._line_and_column(index)
        return Fault(kind, message, line, column, word)

    def _place(self, index: int) -> str:
        line, column = self._line_and_column(index)
        return f"{line}:{column}"

    def _line_and_column(self, index: int) -> tuple[int, int]:
        line = self._first_line + self._text.count("\n", 0, index)
        return line, index - self._text.rfind("\n", 0, index)
