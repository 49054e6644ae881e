"""Read JSON values of any type: each function returns an empty value if the type is not the one that it reads."""

from collections.abc import Iterable, Mapping
from typing import Any

MAX_COUNT = 10**12
"""The largest token count that is accepted. Sums of thousands of such counts are still exact as floats."""

MAX_DOLLARS = 1e9
"""The largest cost that is accepted."""


def as_count(value: Any) -> int | None:
    """Return a whole number, which may be written as `12.0`; None for anything else."""
    if type(value) is not int:
        if type(value) is not float or not value.is_integer():
            return None
        value = int(value)
    return value if 0 <= value <= MAX_COUNT else None


def as_dollars(value: Any) -> float | None:
    """Return a cost in US dollars; None for anything else and for 0, which programs write if they know no price."""
    is_cost = type(value) in (float, int) and 0 < value <= MAX_DOLLARS
    return float(value) if is_cost else None


def as_text(value: Any) -> str:
    """Return the value if it is a text, else an empty text."""
    return value if type(value) is str else ""


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return value if type(value) is dict else {}


def as_array(value: Any) -> list[Any]:
    """Return the value if it is an array, else an empty array."""
    return value if type(value) is list else []


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in an array; none for a value that is no array."""
    if type(value) is not list:
        return []
    return [item for item in value if type(item) is dict]


def text_of(content: Any) -> str:
    """Return a content that is a text, or else the texts of its parts, joined with line breaks."""
    if type(content) is str:
        return content
    return "\n".join([text for part in as_array(content) if (text := text_field(part, "text"))])


def text_field(value: Any, name: str) -> str:
    """Return a member of an object if it is a text, else an empty text."""
    member = value.get(name) if type(value) is dict else None
    return member if type(member) is str else ""


def object_field(value: Any, name: str) -> dict[str, Any]:
    """Return a member of an object if it is an object itself, else an empty object."""
    member = value.get(name) if type(value) is dict else None
    return member if type(member) is dict else {}


def first_text(values: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first of the named values that is a non-empty text; else an empty text."""
    for name in names:
        if (value := values.get(name)) and type(value) is str:
            return value
    return ""
