"""Traces as JSON text: laid out, so that a difference between two shows what changed, or on one line."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

_LISTS = ("events", "edges", "agents")


def text(trace: Mapping[str, Any]) -> str:
    """A trace as JSON, an event or an edge on each line.

    Args:
        trace: The trace as read by `json.loads`, so that fields of its own that events may have are kept.
    """
    parts = []
    for name, value in trace.items():
        if name in _LISTS and value:
            items = ",\n".join(f"    {_line(item)}" for item in value)
            parts.append(f"  {_line(name)}: [\n{items}\n  ]")
        else:
            parts.append(f"  {_line(name)}: {_line(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def one_line(trace: Mapping[str, Any]) -> str:
    """A trace as one line of JSON, without blanks: many traces are written several times faster so."""
    return f"{msgspec.json.encode(trace).decode()}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
