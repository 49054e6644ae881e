r"""The filter language: one implementation for `--where`, for the taxonomy's rules and for claims.

    field=value      one of the record's values is the value
    field!=value     none of them is
    field<value      also <=, >, >=: numbers and ISO dates
    field~text       a value holds the text, whatever the case
    field=a,b        alternatives; a comma inside a value is written \,
    field=           the record has no value (not coded, or the decision does not arise)
    field=NA         the tag is coded as not applicable

A code stands for its terms: `reward_family=R6` means both terms of that family, and `O5=explicit`
means `stop=explicit`. Several filters are joined by "and".
"""

import operator
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from orchtrace_corpus.errors import CommandUseError
from orchtrace_corpus.findings import quote, suggestion
from orchtrace_corpus.pool.attributes import Attribute, Attributes, ValueKind, find
from orchtrace_corpus.pool.fields import is_iso_date

RecordType = TypeVar("RecordType")

FORMS = "field=value, field!=value, field<number, field<=, field>, field>=, field~text"

_FILTER = r"\s*(?P<field>[A-Za-z][\w-]*)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*?)\s*"
_UNESCAPED_COMMA = r"(?<!\\),"


class Operator(StrEnum):
    """How a filter compares."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    CONTAINS = "~"


_ORDERINGS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.MORE: operator.gt,
    Operator.AT_LEAST: operator.ge,
}


_ORDERED = (ValueKind.NUMBER, ValueKind.DATE)


class Filter(NamedTuple):
    """One condition on a record. The empty alternative stands for "has no value"."""

    attribute: Attribute
    operator: Operator
    alternatives: tuple[str, ...]

    def matches(self, record: object) -> bool:
        """Whether the record meets the condition."""
        values = self.attribute.values(record)
        if self.operator is Operator.EQUAL:
            return self._is_among(values)
        if self.operator is Operator.UNEQUAL:
            return not self._is_among(values)
        if self.operator is Operator.CONTAINS:
            folded = [value.casefold() for value in values]
            return any(text.casefold() in value for text in self.alternatives for value in folded)
        ordered, convert = _ORDERINGS[self.operator], _converter(self.attribute.kind)
        bound = convert(self.alternatives[0])
        return any(ordered(convert(value), bound) for value in values)

    def _is_among(self, values: tuple[str, ...]) -> bool:
        if not values:
            return "" in self.alternatives
        return any(value in self.alternatives for value in values)

    def __str__(self) -> str:
        escaped = (alternative.replace(",", "\\,") for alternative in self.alternatives)
        return f"{self.attribute.name}{self.operator}{','.join(escaped)}"


class Query(NamedTuple):
    """Filters that a record must all pass; with none, every record does."""

    filters: tuple[Filter, ...] = ()

    def matches(self, record: object) -> bool:
        """Whether the record passes every filter."""
        return all(condition.matches(record) for condition in self.filters)

    def select(self, records: Iterable[RecordType]) -> tuple[RecordType, ...]:
        """The records that pass, in their order."""
        return tuple(record for record in records if self.matches(record))


def parse(texts: Iterable[str], attributes: Attributes) -> Query:
    """Read filters, each in one of the forms above.

    Raises:
        CommandUseError: A filter has another form, an unknown field, or a value that its field
            cannot have; the message says which and what would be right.
    """
    return Query(tuple(_parse_filter(text, attributes) for text in texts))


def _parse_filter(text: str, attributes: Attributes) -> Filter:
    match = re.fullmatch(_FILTER, text, re.DOTALL)
    if match is None:
        raise CommandUseError(f"{quote(text)} is not a filter", f"Write one of: {FORMS}.")
    value, comparison = match["value"], Operator(match["operator"])
    if value.startswith("=") and comparison is Operator.EQUAL:
        raise CommandUseError(f"{quote(text)} is not a filter", f"Write {quote(match['field'] + value)}, with one '='.")
    attribute = find(match["field"], attributes)
    alternatives = tuple(part.strip().replace("\\,", ",") for part in re.split(_UNESCAPED_COMMA, value))
    if comparison in _ORDERINGS:
        _check_ordered(attribute, comparison, alternatives, attributes)
    elif comparison is Operator.CONTAINS:
        if "" in alternatives:
            raise CommandUseError(
                f"{quote(text)} looks for no text", f"For records without a value write '{attribute.name}='."
            )
    else:
        alternatives = tuple(spelled for part in alternatives for spelled in _spelled(part, attribute))
    return Filter(attribute, comparison, alternatives)


def _check_ordered(
    attribute: Attribute, comparison: Operator, alternatives: tuple[str, ...], attributes: Attributes
) -> None:
    if attribute.kind not in _ORDERED:
        ordered = ", ".join(name for name, other in attributes.items() if other.kind in _ORDERED)
        raise CommandUseError(
            f"{attribute.name} has no order, so {quote(comparison)} does not apply",
            f"Numbers and dates can be compared: {ordered}. Use =, != or ~ here.",
        )
    if len(alternatives) > 1:
        raise CommandUseError(f"{quote(comparison)} takes one value, not {len(alternatives)}")
    _check_value(alternatives[0], attribute)


def _spelled(value: str, attribute: Attribute) -> tuple[str, ...]:
    """The values that an alternative stands for: itself, or the terms of a code."""
    if not value:
        return ("",)
    if attribute.terms and value not in attribute.allowed:
        family = tuple(term.id for term in attribute.terms if term.code and term.code.lower() == value.lower())
        if not family:
            hint = suggestion(value, attribute.allowed)
            raise CommandUseError(f"{attribute.name} has no value {quote(value)}{hint}")
        return family
    _check_value(value, attribute)
    return (value,)


def _check_value(value: str, attribute: Attribute) -> None:
    if attribute.kind is ValueKind.NUMBER and not _is_number(value):
        raise CommandUseError(f"{attribute.name} is a number; {quote(value)} is not")
    if attribute.kind is ValueKind.DATE and not is_iso_date(value):
        raise CommandUseError(f"{attribute.name} is a date as YYYY-MM-DD; {quote(value)} is not")


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", value) is not None


def _converter(kind: ValueKind) -> Callable[[str], Any]:
    return float if kind is ValueKind.NUMBER else str
