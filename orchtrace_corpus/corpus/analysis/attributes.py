"""The attributes by which records are filtered, counted, sorted and listed.

An attribute is a field, a facet of the taxonomy, or a term of a facet of kind `levels`, such as `stop` of
`sub_decisions`, whose value is its level. Filters, statistics and listings all use these attributes, so a name means
the same everywhere.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model import field_table
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, value_texts
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, evidence_facets, evidence_values
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term


class ValueKind(StrEnum):
    """The kind of an attribute's values, by which they are compared."""

    TERM = "term"
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"


class Attribute(NamedTuple):
    """A named property of records.

    Attributes:
        values: The function that returns the values of a record as texts.
        terms: The vocabulary in order, with `NA` if it is allowed; empty if any value can occur.
        facet: The facet, if the attribute is one.
        field: The field, if the attribute is one.
        has_several: True if a record can have several values.
    """

    name: str
    label: str
    kind: ValueKind
    values: Callable[[Any], tuple[str, ...]]
    terms: tuple[Term, ...] = ()
    facet: Facet | None = None
    field: RecordField | None = None
    has_several: bool = False

    @property
    def allowed(self) -> tuple[str, ...]:
        """The ids of the vocabulary."""
        return tuple(term.id for term in self.terms)


Attributes = Mapping[str, Attribute]

_KINDS = {
    FieldKind.YEAR: ValueKind.NUMBER,
    FieldKind.NUMBER: ValueKind.NUMBER,
    FieldKind.DATE: ValueKind.DATE,
    FieldKind.FLAG: ValueKind.TERM,
    FieldKind.CHOICE: ValueKind.TERM,
}
"""The kinds of values of fields; other fields have texts."""

_FLAG_TERMS = (Term("true", "Yes", ""), Term("false", "No", ""))
_PUBLISHED_TERMS = (
    Term("yes", "Published", "The record is one of the published pool, by data/published.yaml."),
    Term("no", "Later", "It is none of them."),
)
_NA_TERM = Term(NOT_APPLICABLE, "Not applicable", "The facet does not apply to the record.")

_MEMBERS = frozenset((*Paper._fields, *Exclusion._fields, "proposal", "reason", "found", "found_by", "screened"))
"""The fields that are attributes of records in Python, the last five of candidates; the mapping `more` has the others.
"""

CONTESTED = "contested"
"""The name of the attribute whose values are the tags of a paper that are in open dispute."""


def paper_attributes(taxonomy: Taxonomy, *, contested: bool = False) -> Attributes:
    """Return the attributes of papers by name: fields, facets in the taxonomy's order, and facets of evidence.

    The value of a facet of evidence, such as the level, is the weakest one among the evidence for the paper's tags.
    If the tags in open dispute are filled in (`store.with_contested`), the papers have the attribute `contested`, too.
    """
    attributes = _attributes(taxonomy.paper_fields, taxonomy.papers)
    for facet in evidence_facets(taxonomy):
        values = partial(evidence_values, facet, frozenset(taxonomy.facts))
        attributes.setdefault(facet.field, Attribute(facet.field, facet.label, ValueKind.TERM, values, facet.terms))
    if contested:
        single = [facet for facet in taxonomy.papers if facet.kind is Kind.SINGLE]
        with_levels = [facet for facet in taxonomy.papers if facet.kind is Kind.LEVELS]
        tags = [Term(facet.field, facet.label, facet.definition) for facet in single]
        tags += [term for facet in with_levels for term in facet.terms]
        read = _member_values(CONTESTED)
        attributes[CONTESTED] = Attribute(CONTESTED, "Contested", ValueKind.TERM, read, tuple(tags), has_several=True)
    return attributes


def exclusion_attributes(taxonomy: Taxonomy) -> Attributes:
    """Return the attributes of exclusions by name."""
    return _attributes(field_table.EXCLUSION_FIELDS, taxonomy.exclusions)


def candidate_attributes(taxonomy: Taxonomy) -> Attributes:
    """Return the attributes of candidates by name: attributes of the proposed paper, and of the proposal itself.

    The values of `open` are the undecided tags; for a facet of kind `levels` they are its undecided terms. The values
    of `by` are the names of the readers.
    """
    from orchtrace_corpus.corpus.model.candidates import Decision, screening_facets  # only for lists of candidates

    def paper_values(attribute: Attribute) -> Callable[[Any], tuple[str, ...]]:
        """Return the function that returns an attribute's values of a candidate's paper."""
        return lambda candidate: attribute.values(candidate.paper)

    paper_fields = [field for field in taxonomy.paper_fields if field.in_candidates]
    of_papers = _attributes(paper_fields, taxonomy.papers)
    del of_papers["published"]
    attributes = {name: each._replace(values=paper_values(each)) for name, each in of_papers.items()}
    for field in field_table.CANDIDATE_FIELDS:
        if field.kind is not FieldKind.NESTED:
            attributes[field.name] = _field_attribute(field)
    decisions = tuple(Term(decision.value, decision.capitalize(), "") for decision in Decision)
    attributes["proposal"] = attributes["proposal"]._replace(terms=decisions)
    for facet in screening_facets(taxonomy):
        values = _mapped_values("screening", facet.field)
        attributes[facet.field] = Attribute(facet.field, facet.label, ValueKind.TERM, values, facet.terms, facet)
    facets_with_levels = {facet.field for facet in taxonomy.papers if facet.kind is Kind.LEVELS}
    tag_names = [name for name in of_papers if name not in facets_with_levels]

    def open_tags(candidate: Any) -> tuple[str, ...]:
        return tuple(name for name in tag_names if name in candidate.open_tags)

    def readers(candidate: Any) -> tuple[str, ...]:
        return tuple(reading.by for reading in candidate.readings)

    attributes["open"] = Attribute("open", "Open", ValueKind.TEXT, open_tags, has_several=True)
    attributes["by"] = Attribute("by", "By", ValueKind.TEXT, readers, has_several=True)
    return attributes


def scale_attributes() -> Attributes:
    """Return the attributes of the observations in `data/scale.yaml` by name."""
    from orchtrace_corpus.corpus.model import scale  # only for claims about such observations

    def number_values(end: str) -> Callable[[Any], tuple[str, ...]]:
        return lambda record: () if record.value is None else (f"{getattr(record.value, end):.15g}",)

    def flag_values(member: str) -> Callable[[Any], tuple[str, ...]]:
        return lambda record: ("true",) if getattr(record, member) else ("false",)

    texts = ("system", "quantity", "unit", "record")
    attributes = {name: Attribute(name, name.capitalize(), ValueKind.TEXT, _member_values(name)) for name in texts}
    enums: dict[str, type[StrEnum]] = {"group": scale.Group, "phase": scale.Phase, "evidence": scale.Support}
    for name, enum in enums.items():
        terms = tuple(Term(member.value, member.value, "") for member in enum)
        attributes[name] = Attribute(name, name.capitalize(), ValueKind.TERM, _member_values(name), terms)
    for name, end in (("lowest", "low"), ("highest", "high")):
        attributes[name] = Attribute(name, name.capitalize(), ValueKind.NUMBER, number_values(end))
    for name, member in (("limit", "is_limit"), ("verified", "verified")):
        attributes[name] = Attribute(name, name.capitalize(), ValueKind.TERM, flag_values(member), _FLAG_TERMS)
    attributes["published"] = Attribute("published", "Published", ValueKind.TERM, _published, _PUBLISHED_TERMS)
    return attributes


def find(name: str, attributes: Attributes, noun: str = "field") -> Attribute:
    """Return the attribute with a name; a term with levels is also found by its code, such as `O5` for `stop`.

    Raises:
        CommandUseError: The name is unknown. The message, which calls it a `noun`, gives the nearest name.
    """
    attribute = attributes.get(name) or attributes.get(name.replace("-", "_").lower())
    if attribute is not None:
        return attribute
    for attribute in attributes.values():
        if name and attribute.facet is not None and attribute.facet.kind is Kind.LEVELS:
            for term in attribute.facet.terms:
                if term.code.lower() == name.lower():
                    return attributes[term.id]
    raise CommandUseError(f"unknown {noun} {quote(name)}{suggestion(name, list(attributes))}")


def find_all(names: Iterable[str], attributes: Attributes, noun: str = "field") -> tuple[Attribute, ...]:
    """Return several attributes as `find` does."""
    return tuple(find(name, attributes, noun) for name in names)


def _attributes(record_fields: Iterable[RecordField], facets: tuple[Facet, ...]) -> dict[str, Attribute]:
    attributes = {}
    for record_field in record_fields:
        if record_field.kind is not FieldKind.NESTED:
            attributes[record_field.name] = _field_attribute(record_field)
        if record_field.name == "authors":
            first = _member_values("first_author")
            attributes["first_author"] = Attribute("first_author", "First author", ValueKind.TEXT, first)
    attributes["published"] = Attribute("published", "Published", ValueKind.TERM, _published, _PUBLISHED_TERMS)
    for facet in facets:
        field, is_many = facet.field, facet.kind is Kind.MANY
        terms = (*facet.terms, _NA_TERM) if facet.allows_na else facet.terms
        values = _tag_values(field)
        attributes[field] = Attribute(field, facet.label, ValueKind.TERM, values, terms, facet, has_several=is_many)
        if facet.kind is Kind.LEVELS:
            for term in facet.terms:
                values = _level_values(field, term.id)
                attributes[term.id] = Attribute(term.id, term.label, ValueKind.TERM, values, facet.levels)
    return attributes


def _field_attribute(field: RecordField) -> Attribute:
    terms = tuple(Term(choice, choice, "") for choice in field.choices)
    if field.kind is FieldKind.FLAG:
        terms = _FLAG_TERMS
    kind = _KINDS.get(field.kind, ValueKind.TEXT)
    read = _member_values(field.name) if field.name in _MEMBERS else _mapped_values("more", field.name)
    values = read
    if field.kind is FieldKind.AUTHORS:

        def values(record: Any) -> tuple[str, ...]:
            return tuple(map(bare_author, read(record)))

    label = field_table.field_label(field)
    return Attribute(field.name, label, kind, values, terms, field=field, has_several=field.is_list)


def _mapped_values(mapping: str, name: str) -> Callable[[Any], tuple[str, ...]]:
    """Return the function that reads a value by its name from an attribute of records that is a mapping."""
    return lambda record: value_texts(getattr(record, mapping).get(name))


def _member_values(name: str) -> Callable[[Any], tuple[str, ...]]:
    """Return the function that reads an attribute of records."""

    def values(record: Any) -> tuple[str, ...]:
        value = getattr(record, name)
        if type(value) is tuple:
            return value
        return (str(value),) if value else ()

    return values


def _published(record: Any) -> tuple[str, ...]:
    if record.published is None:
        return ()
    return ("yes",) if record.published else ("no",)


def _tag_values(field: str) -> Callable[[Any], tuple[str, ...]]:
    def values(record: Any) -> tuple[str, ...]:
        tag = record.tags.get(field, ())
        return (tag,) if type(tag) is str else tuple(tag)

    return values


def _level_values(field: str, term: str) -> Callable[[Any], tuple[str, ...]]:
    def values(record: Any) -> tuple[str, ...]:
        level = record.tags.get(field, {}).get(term)
        return () if level is None else (level,)

    return values
