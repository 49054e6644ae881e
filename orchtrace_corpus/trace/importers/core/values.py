"""Coercers for JSON values of a log: each returns an empty value for anything of another kind."""

from collections.abc import Iterable, Mapping
from typing import Any

MAX_COUNT = 10**12
"""The largest count of tokens; sums of thousands of such counts are still exact as floats."""

MAX_DOLLARS = 1e9
"""The largest cost."""


def count(value: Any) -> int | None:
    """Return a count: a whole number, also one written as `12.0`; None for anything else."""
    if type(value) is not int:
        if type(value) is not float or not value.is_integer():
            return None
        value = int(value)
    return value if 0 <= value <= MAX_COUNT else None


def dollars(value: Any) -> float | None:
    """Return a cost in US dollars; None for anything else, and for 0, which programs write if they know no price."""
    is_cost = type(value) in (float, int) and 0 < value <= MAX_DOLLARS
    return float(value) if is_cost else None


def string(value: Any) -> str:
    """Return a text; empty for anything else."""
    return value if type(value) is str else ""


def mapping(value: Any) -> dict[str, Any]:
    """Return an object; empty for anything else."""
    return value if type(value) is dict else {}


def items(value: Any) -> list[Any]:
    """Return an array; empty for anything else."""
    return value if type(value) is list else []


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in an array; empty for anything else."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def text_of(content: Any) -> str:
    """Return a text, or the texts of the parts of a content, one line each."""
    if type(content) is str:
        return content
    return "\n".join([text for part in items(content) if (text := text_field(part, "text"))])


def text_field(value: Any, name: str) -> str:
    """Return the text of a member of an object; empty if there is none."""
    member = value.get(name) if type(value) is dict else None
    return member if type(member) is str else ""


def object_field(value: Any, name: str) -> dict[str, Any]:
    """Return the object that is a member of an object; empty if there is none."""
    member = value.get(name) if type(value) is dict else None
    return member if type(member) is dict else {}


def first_text(values: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first non-empty text under any of several names; empty if there is none."""
    for name in names:
        if (value := values.get(name)) and type(value) is str:
            return value
    return ""
