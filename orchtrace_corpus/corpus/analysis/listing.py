"""The order of records in a listing."""

from collections.abc import Sequence
from typing import TypeVar

from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes, ValueKind, find
from orchtrace_corpus.corpus.model.records import Record

RecordType = TypeVar("RecordType", bound=Record)


def sort_records(records: Sequence[RecordType], order: str, attributes: Attributes) -> tuple[RecordType, ...]:
    """Sort records by an attribute, `-name` for falling order; records without a value come last.

    Terms sort in the taxonomy's order, numbers as numbers, text without regard to case. Records that
    are equal keep their order.

    Raises:
        CommandUseError: There is no such attribute.
    """
    falling = order.startswith("-")
    attribute = find(order.removeprefix("-"), attributes, "column")
    valued = [record for record in records if attribute.values(record)]
    valued.sort(key=lambda record: _rank(attribute, attribute.values(record)), reverse=falling)
    return (*valued, *(record for record in records if not attribute.values(record)))


def _rank(attribute: Attribute, values: tuple[str, ...]) -> tuple[int | float | str, ...]:
    if attribute.terms:
        return tuple(attribute.allowed.index(value) for value in values)
    if attribute.kind is ValueKind.NUMBER:
        return tuple(float(value) for value in values)
    return tuple(value.casefold() for value in values)
