"""Traces as JSON text: laid out, so that a difference between two shows what changed, or on one line."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from orchtrace_corpus.base.findings import unobeyed
from orchtrace_corpus.trace.model.plain_json import Oversized

_LISTS = ("events", "edges", "agents")
_HALF = "\ud800"
"""Half of a surrogate pair, which no text of a trace can hold: so it marks a number to be written as it was read."""


def text(trace: Mapping[str, Any]) -> str:
    """A trace as JSON, an event or an edge on each line.

    Args:
        trace: The trace as read by `plain.loads`, so that fields of its own that events may have are kept.
    """
    parts = []
    for name, value in trace.items():
        if name in _LISTS and value:
            items = ",\n".join(f"    {_line(item)}" for item in value)
            parts.append(f"  {_line(name)}: [\n{items}\n  ]")
        else:
            parts.append(f"  {_line(name)}: {_line(value)}")
    return unobeyed("{\n" + ",\n".join(parts) + "\n}\n")


def one_line(trace: Mapping[str, Any]) -> str:
    """A trace as one line of JSON, without blanks: many traces are written several times faster so."""
    return unobeyed(f"{msgspec.json.encode(trace).decode()}\n")


def _line(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_marked)
    return re.sub(f'"{_HALF}([^"]*)"', r"\1", written) if _HALF in written else written


def _marked(number: Oversized) -> str:
    return f"{_HALF}{number.word}"
