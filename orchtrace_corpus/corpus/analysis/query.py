r"""The filter language of `--where`, of the taxonomy's rules and of claims.

    field=value      one of the record's values is the value
    field!=value     none of them is
    field<value      also <=, >, >=: numbers and ISO dates
    field~text       a value contains the text, in any case
    field=a,b        alternatives; a comma inside a value needs "double quotes" around it, or \,
    field=           the record has no value (not coded, or the decision does not arise)
    field=NA         the tag is coded as not applicable
    field=level      for a field of levels: one of its terms has that level, as in sub_decisions=explicit

A code means its terms: `reward_family=R6` means both terms of that family, and `O5=explicit` means `stop=explicit`.
Several filters are joined by "and".
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.annotations import Any, TypeVar
from orchtrace_corpus.base.dates import is_iso_date
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes, ValueKind, find
from orchtrace_corpus.corpus.model.taxonomy import Condition, Kind, TagRule

RecordType = TypeVar("RecordType")

FORMS = "field=value, field!=value, field<number, field<=, field>, field>=, field~text"

_FILTER = r"\s*(?P<field>[A-Za-z][\w-]*)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*?)\s*"

_ALTERNATIVE = r"""\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>(?:\\[,"]|[^,])*))\s*(?:,|$)"""


class Operator(StrEnum):
    """The comparison of a filter."""

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
_OPERATORS = tuple(Operator)
_MISSPELLED_OPERATORS = {"=>": ">=", "=<": "<=", "<>": "!="}
_NO_VALUE = ("",)


class Filter(NamedTuple):
    """A condition on a record, with the function that tests it. An empty alternative means "has no value"."""

    attribute: Attribute
    operator: Operator
    alternatives: tuple[str, ...]
    matches: Callable[[object], bool]

    def __str__(self) -> str:
        texts = []
        for text in self.alternatives:
            has_outer_spaces = text != text.strip()
            texts.append(f'"{text}"' if has_outer_spaces else re.sub('[,"]', r"\\\g<0>", text))
        return f"{self.attribute.name}{self.operator}{','.join(texts)}"


def is_open(condition: Filter, record: object, open_tags: Collection[str]) -> bool:
    """Return True if a record could meet a condition, or stop meeting it, once its undecided tags are decided.

    Deciding a tag adds values to those that the record has, and removes none.
    """
    if condition.attribute.name not in open_tags:
        return False
    asks_for_absence = "" in condition.alternatives
    if condition.operator is Operator.EQUAL and not asks_for_absence:
        return not condition.matches(record)  # an added value can be one of the alternatives
    if condition.operator is Operator.UNEQUAL and not asks_for_absence:
        return condition.matches(record)  # an added value can be one of the alternatives, and then it fails
    if condition.operator is Operator.UNEQUAL and condition.alternatives == ("",):
        return not condition.matches(record)  # with any added value the record has a value
    return True


def breaks(rule: "tuple[Query, Query]", record: object, open_tags: Collection[str]) -> bool:
    """Return True if a record breaks a rule, as `parse_rule` returns it, however its undecided tags are decided."""
    when, require = rule
    for condition in when.filters:
        if not condition.matches(record) or is_open(condition, record, open_tags):
            return False
    unmet = (condition for condition in require.filters if not condition.matches(record))
    return any(not is_open(condition, record, open_tags) for condition in unmet)


class Query(NamedTuple):
    """Filters that a record must all pass."""

    filters: tuple[Filter, ...] = ()

    def matches(self, record: object) -> bool:
        """Return True if the record passes every filter."""
        for condition in self.filters:  # noqa: SIM110 - `all(...)` takes twice the time
            if not condition.matches(record):
                return False
        return True

    def select(self, records: Iterable[RecordType]) -> tuple[RecordType, ...]:
        """Return the records that pass, in their order."""
        for condition in self.filters:
            records = filter(condition.matches, records)
        return tuple(records)


def parse(texts: Iterable[str], attributes: Attributes) -> Query:
    """Read filters, each in one of the forms above.

    Raises:
        CommandUseError: A filter has another form, an unknown field, or a value that its field cannot have.
    """
    return Query(tuple(_parse_filter(text, attributes) for text in texts))


def _parse_filter(text: str, attributes: Attributes) -> Filter:
    match = re.fullmatch(_FILTER, text, re.DOTALL)
    if match is None:
        raise CommandUseError(f"{quote(text)} is not a filter", f"Write one of: {FORMS}.")
    field, value = match["field"], match["value"]
    comparison = Operator(match["operator"])
    if value.startswith("=") and comparison is Operator.EQUAL:
        raise CommandUseError(f"{quote(text)} is not a filter", f"Write {quote(field + value)}, with one '='.")
    attribute = find(field, attributes)
    # `year=>2024` is read as the operator `=` and the value `>2024`.
    correct_operator = _MISSPELLED_OPERATORS.get(comparison + value[:1])
    if correct_operator and attribute.kind in _ORDERED:
        bound = value[1:].lstrip("=")
        raise CommandUseError(f"{quote(text)} is not a filter", f"Write {quote(field + correct_operator + bound)}.")
    return _filter(attribute, comparison, _split_alternatives(value), attributes)


def parse_mapping(conditions: Mapping[str, str | Sequence[str]], attributes: Attributes) -> Query:
    """Read filters in the form of the taxonomy's rules and of claims; raise the same errors as `parse`.

    `{"rl": ["full", "partial"], "added<=": "2026-05-04"}` means `rl=full,partial` and `added<=2026-05-04`: a key
    without an operator means `=`, and a comma in a value is part of the value.
    """
    filters = []
    for key, values in conditions.items():
        alternatives = (values,) if isinstance(values, str) else tuple(values)
        name = key.rstrip("!<>=~ ")
        comparison = key[len(name) :].strip()
        if not comparison:
            comparison = "="
        is_name = name[:1].isalpha() and name.replace("-", "_").isidentifier()
        if comparison not in _OPERATORS or not is_name:
            advice = "Write a field, or a field and an operator: 'added<='."
            raise CommandUseError(f"{quote(key)} is not a filter", advice)
        filters.append(_filter(find(name, attributes), Operator(comparison), alternatives, attributes))
    return Query(tuple(filters))


def parse_conditions(conditions: Iterable[Condition], attributes: Attributes) -> Query:
    """Read the filters of a rule or a claim; raise the same errors as `parse`."""
    return parse_mapping({condition.field: condition.alternatives for condition in conditions}, attributes)


def parse_rule(rule: TagRule, attributes: Attributes) -> tuple[Query, Query]:
    """Read the filters of a rule: those that select the records it is about, and those that these records must meet."""
    return parse_conditions(rule.when, attributes), parse_conditions(rule.require, attributes)


def _filter(
    attribute: Attribute, comparison: Operator, alternatives: tuple[str, ...], attributes: Attributes
) -> Filter:
    if comparison in _ORDERINGS:
        if attribute.kind not in _ORDERED:
            ordered = ", ".join(name for name, other in attributes.items() if other.kind in _ORDERED)
            advice = f"Numbers and dates can be compared: {ordered}. Use =, != or ~ here."
            raise CommandUseError(f"{attribute.name} has no order, so {quote(comparison)} does not apply", advice)
        if len(alternatives) > 1:
            raise CommandUseError(f"{quote(comparison)} takes one value, not {len(alternatives)}")
        _check_value(alternatives[0], attribute)
    elif comparison is Operator.CONTAINS:
        if "" in alternatives:
            advice = f"For records without a value write '{attribute.name}='."
            raise CommandUseError(f"{quote(attribute.name + '~')} looks for no text", advice)
    else:
        if alternatives and _are_levels(alternatives, attribute):
            attribute = _by_level(attribute)
        alternatives = tuple(value for text in alternatives for value in _resolve_alternative(text, attribute))
    return Filter(attribute, comparison, alternatives, _test(attribute, comparison, alternatives))


def _test(attribute: Attribute, comparison: Operator, alternatives: tuple[str, ...]) -> Callable[[object], bool]:
    """Return the function that tests a record; it is called often, so everything else is done here once."""
    values, wanted = attribute.values, frozenset(alternatives)
    if comparison is Operator.EQUAL:
        return lambda record: not wanted.isdisjoint(values(record) or _NO_VALUE)
    if comparison is Operator.UNEQUAL:
        return lambda record: wanted.isdisjoint(values(record) or _NO_VALUE)
    if comparison is Operator.CONTAINS:
        texts = [text.casefold() for text in alternatives]
        return lambda record: any(text in value.casefold() for value in values(record) for text in texts)
    convert: Callable[[str], Any] = float if attribute.kind is ValueKind.NUMBER else str
    compare = _ORDERINGS[comparison]
    bound = convert(alternatives[0])
    return lambda record: any(compare(convert(value), bound) for value in values(record))


def _are_levels(alternatives: tuple[str, ...], attribute: Attribute) -> bool:
    """Return True if a facet of kind `levels` has all alternatives as levels; an id that is also a term is a term."""
    facet = attribute.facet
    if facet is None or facet.kind is not Kind.LEVELS:
        return False
    levels = {level.id for level in facet.levels} - set(attribute.allowed)
    return levels.issuperset(alternatives)


def _by_level(attribute: Attribute) -> Attribute:
    """Return an attribute whose values are the levels of a record's terms, not the terms."""
    facet = attribute.facet
    assert facet is not None
    return attribute._replace(
        values=lambda record: tuple(record.tags.get(facet.field, {}).values()), terms=facet.levels
    )


def _split_alternatives(value: str) -> tuple[str, ...]:
    """Return the alternatives of a filter; commas within double quotes, or after a backslash, are text."""
    parts: list[str] = []
    position = 0
    pattern = re.compile(_ALTERNATIVE)
    while True:
        match = pattern.match(value, position)
        if match is None:  # text after a closing quote: the quotes belong to the text
            parts.append(value[position:].strip())
            break
        if match["quoted"] is not None:
            parts.append(match["quoted"])
        else:
            parts.append(re.sub(r'\\([,"])', r"\1", match["bare"].strip()))
        position = match.end()
        has_next = match[0].endswith(",") and not match[0].endswith("\\,")  # the comma of `\,` is text
        if not has_next:
            break
    return tuple(parts)


def _resolve_alternative(value: str, attribute: Attribute) -> tuple[str, ...]:
    """Return the values that an alternative means: itself, the terms of a code, or a term in another case."""
    if not value:
        return ("",)
    if attribute.terms and value not in attribute.allowed:
        terms = tuple(term.id for term in attribute.terms if term.code.lower() == value.lower())
        if not terms:
            terms = tuple(term for term in attribute.allowed if term.lower() == value.lower())
        if terms:
            return terms
        hint = suggestion(value, attribute.allowed)
        advice = f"For records without a value write '{attribute.name}='." if value in ("NA", "none") else ""
        raise CommandUseError(f"{attribute.name} has no value {quote(value)}{hint}", advice)
    _check_value(value, attribute)
    return (value,)


def _check_value(value: str, attribute: Attribute) -> None:
    if attribute.kind is ValueKind.NUMBER and not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", value):
        raise CommandUseError(f"{attribute.name} is a number; {quote(value)} is not")
    if attribute.kind is ValueKind.DATE and not is_iso_date(value):
        raise CommandUseError(f"{attribute.name} is a date as YYYY-MM-DD; {quote(value)} is not")
