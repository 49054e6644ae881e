"""Where a text ceases to be JSON, and what would have to stand there.

The decoder of traces is strict and names no line. Python's own parser says where it failed, and what it
expected; what it takes although JSON does not is looked for afterwards.
"""

import json
import re
from typing import NoReturn

from orchtrace_corpus.base.findings import Finding, printable, quote
from orchtrace_corpus.trace.model.places import Places

_ESCAPE = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\."
_BRACKET = r'[^"\[\]{}]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{}]*+)*+([\[\]{}]?)'
_BLANK = r"[ \t\r\n]*"
_WORD = r"(?s)\w+|."
_NOUNS = {"{": "an object", "[": "a list"}
_EXPECTED = {
    "Expecting value": "a value is expected",
    "Expecting property name enclosed in double quotes": "a name in double quotes is expected",
    "Expecting ':' delimiter": "a colon is expected",
    "Expecting ',' delimiter": "a comma or a closing bracket is expected",
}


def syntax_problem(data: bytes, places: Places, refusal: Exception) -> Finding:
    """What keeps a text in UTF-8 from being JSON, at the character at fault.

    Args:
        data: The text.
        places: Finds places in it.
        refusal: The decoder's own error, which names no line.
    """
    text = data.decode()
    if not text.strip():
        return Finding("T102", "nothing in the file; a trace is a JSON object", places.location(0))
    if text[0] == "\ufeff":
        message = "begins with a byte order mark, which JSON does not have; save the file in UTF-8 without it"
        return Finding("T101", message, places.location(0))
    try:
        json.loads(text, parse_constant=_refuse, parse_int=float)
    except json.JSONDecodeError as error:
        at, message = _worded(text, error, places)
        return Finding("T101", f"not JSON: {message}", places.location(_bytes(text, at)))
    except _NotFiniteError as error:
        known = re.search(r"\(byte (\d+)\)$", str(refusal))
        at = data.find(error.word.encode(), max(int(known[1]) - len("-I"), 0) if known else 0)
        message = f"{quote(error.word)} is no finite number; write null for unknown"
        return Finding("T104", message, places.location(at))
    except RecursionError:
        return Finding("T101", "nested too deeply", places.location(0))
    for escape in re.finditer(_ESCAPE, data):
        if escape["half"]:
            message = "half of a surrogate pair, which stands for no character"
            return Finding("T101", message, places.location(escape.start()))
    return Finding("T101", f"not JSON: {printable(str(refusal), limit=200)}", places.location(0))


def _worded(text: str, error: json.JSONDecodeError, places: Places) -> tuple[int, str]:
    """The character at fault, and what is wrong with it."""
    end = len(text.rstrip())
    if error.msg == "Unterminated string starting at":
        return end, f"the text ends in the middle of a string, which begins at {_place(text, error.pos, places)}"
    at = _end_of(_BLANK, text, error.pos)
    before = len(text[:at].rstrip(" \t\r\n"))
    if at >= end:
        return end, f"the text ends in the middle of {_innermost(text, places)}"
    if text[at] in "]}" and text[:before].endswith(","):
        return before - 1, "a comma with nothing behind it; remove it"
    if text[at] == "#" or text.startswith(("//", "/*"), at):
        return at, "a comment, which JSON does not have; remove it"
    if error.msg == "Extra data":
        return at, "the trace has ended before this; in JSON Lines each trace stands on one line"
    if error.msg == "Expecting ',' delimiter" and (text[at] in '"{[' or (at > before and text[at].isalnum())):
        return before, "a comma is missing"
    expected = _EXPECTED.get(error.msg)
    if expected is None:
        return error.pos, f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at").rstrip(": ")
    word = text[at : _end_of(_WORD, text, at)]
    return at, f"{expected}, not {quote(word) if word != chr(39) else 'a single quotation mark'}"


def _innermost(text: str, places: Places) -> str:
    """The innermost object or list that is still open at the end of the text, and where it begins."""
    opened: list[int] = []
    for found in re.finditer(_BRACKET, text):
        if found[1] and found[1] in "{[":
            opened.append(found.start(1))
        elif found[1] and opened:
            opened.pop()
    return f"{_NOUNS[text[opened[-1]]]}, which begins at {_place(text, opened[-1], places)}" if opened else "a trace"


def _end_of(pattern: str, text: str, at: int) -> int:
    """Where what a pattern matches from a character on ends."""
    found = re.compile(pattern).match(text, at)
    return found.end() if found else at


def _place(text: str, at: int, places: Places) -> str:
    _, line, column = places.location(_bytes(text, at))
    return f"{line}:{column}"


def _bytes(text: str, at: int) -> int:
    return len(text[:at].encode())


class _NotFiniteError(Exception):
    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word


def _refuse(word: str) -> NoReturn:
    raise _NotFiniteError(word)
