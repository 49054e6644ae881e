"""Read traces as plain JSON values, and write them as text, with an event on each line or all on one line.

Numbers are doubles. A number that is too large for a double keeps its text.
"""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from orchtrace_corpus.base.findings import escape_controls

_LISTS = ("events", "edges", "agents", "steps", "subagent_trajectories")
_SURROGATE = "\ud800"
"""A lone surrogate, which no text of a trace can contain. It marks a number that is written as it was read."""


class Oversized:
    """A number that is too large for a double, such as 1e999, with its text. To a schema it is not a number."""

    def __init__(self, word: str) -> None:
        self.word = word


def loads(data: bytes) -> Any:
    """Return the value of a well-formed UTF-8 document, with oversized numbers as `Oversized`.

    Raises:
        RecursionError: The document is nested too deeply.
    """
    return json.loads(data.decode(), parse_float=_double, parse_int=_integer)


def has_oversized(data: bytes) -> bool:
    """Return True if a well-formed document has an oversized number, even in a member that is given again later."""
    words: list[str] = []
    json.loads(data, parse_float=words.append, parse_int=words.append)
    return not all(isfinite(float(word)) for word in words)


def _double(word: str) -> float | Oversized:
    value = float(word)
    return value if isfinite(value) else Oversized(word)


def _integer(word: str) -> int | Oversized:
    return int(word) if isfinite(float(word)) else Oversized(word)


def text(trace: Mapping[str, Any]) -> str:
    """Return a trace as JSON with one event or edge on each line, or an ATIF trajectory with one step on each line.

    The trace is given as read by `loads`, so that additional fields of events are kept.
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
    """Return a trace as one line of JSON without blanks, which is several times faster to write than `text`."""
    return escape_controls(f"{msgspec.json.encode(trace).decode()}\n")


def _line(value: Any) -> str:
    """Return a value as JSON on one line, with oversized numbers as they were read."""

    def marked_text(oversized: Oversized) -> str:
        return f"{_SURROGATE}{oversized.word}"

    line = json.dumps(value, ensure_ascii=False, allow_nan=False, default=marked_text)
    if _SURROGATE in line:
        line = re.sub(f'"{_SURROGATE}([^"]*)"', r"\1", line)
    return line
