"""Traces as plain values of JSON, and written as text: laid out, so that a difference shows, or on one line.

Numbers are doubles: what is too large for one is kept as it is written.
"""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from orchtrace_corpus.base.findings import escape_controls

_LISTS = ("events", "edges", "agents", "steps", "subagent_trajectories")
_HALF = "\ud800"
"""Half of a surrogate pair, which no text of a trace can hold: so it marks a number to be written as it was read."""


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


def has_oversized(data: bytes) -> bool:
    """Return True if a number of a well-formed document exceeds a double, even one that a later value replaces."""
    words: list[str] = []
    json.loads(data, parse_float=words.append, parse_int=words.append)
    return not all(isfinite(float(word)) for word in words)


def _double(word: str) -> float | Oversized:
    return value if isfinite(value := float(word)) else Oversized(word)


def _integer(word: str) -> int | Oversized:
    return int(word) if isfinite(float(word)) else Oversized(word)


def text(trace: Mapping[str, Any]) -> str:
    """A trace as JSON, an event or an edge on each line; or a trajectory of ATIF, with a step on each.

    Args:
        trace: The trace as read by `loads`, so that fields of its own that events may have are kept.
    """
    parts = []
    for name, value in trace.items():
        if name in _LISTS and value:
            items = ",\n".join(f"    {_line(item)}" for item in value)
            parts.append(f"  {_line(name)}: [\n{items}\n  ]")
        else:
            parts.append(f"  {_line(name)}: {_line(value)}")
    return escape_controls("{\n" + ",\n".join(parts) + "\n}\n")


def one_line(trace: Mapping[str, Any]) -> str:
    """A trace as one line of JSON, without blanks: many traces are written several times faster so."""
    return escape_controls(f"{msgspec.json.encode(trace).decode()}\n")


def _line(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_marked)
    return re.sub(f'"{_HALF}([^"]*)"', r"\1", written) if _HALF in written else written


def _marked(oversized: Oversized) -> str:
    return f"{_HALF}{oversized.word}"
