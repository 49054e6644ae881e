"""JSON as plain Python values, its numbers doubles: what is too large for one is kept as it is written."""

import json
from math import isfinite
from typing import Any

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.findings import quote


class Oversized:
    """A number that no double holds, such as 1e999. To a schema it is no number.

    Attributes:
        word: As it is written.
    """

    def __init__(self, word: str) -> None:
        self.word = word


def loads(data: bytes) -> Any:
    """The value of a well-formed UTF-8 document, oversized numbers as `Oversized`.

    Raises:
        RecursionError: It is nested too deeply.
    """
    return json.loads(data.decode(), parse_float=_double, parse_int=_integer)


def writable(data: bytes) -> Any:
    """The value of a well-formed UTF-8 document, to be changed and written again.

    Raises:
        DataFileError: It holds a number that cannot be written again as it was.
    """
    return json.loads(data.decode(), parse_float=_finite, parse_int=_finite_integer)


def _double(word: str) -> float | Oversized:
    value = float(word)
    return value if isfinite(value) else Oversized(word)


def _integer(word: str) -> int | Oversized:
    return int(word) if isfinite(float(word)) else Oversized(word)


def _finite(word: str) -> float:
    value = _double(word)
    return _refuse(word) if isinstance(value, Oversized) else value


def _finite_integer(word: str) -> int:
    value = _integer(word)
    return _refuse(word) if isinstance(value, Oversized) else value


def _refuse(word: str) -> Any:
    raise DataFileError(
        f"the number {quote(word)} is too large to be read and written again", "Write it as text, or leave it out."
    )
