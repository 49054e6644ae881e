"""JSON as plain Python values, its numbers doubles: what is too large for one is kept as it is written."""

import json
from math import isfinite
from typing import Any


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


def _double(word: str) -> float | Oversized:
    value = float(word)
    return value if isfinite(value) else Oversized(word)


def _integer(word: str) -> int | Oversized:
    return int(word) if isfinite(float(word)) else Oversized(word)
