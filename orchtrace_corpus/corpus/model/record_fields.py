"""Records as YAML fields: the form in which they are compared, exported, edited and written."""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.model.candidates import Candidate, candidate_field_names
from orchtrace_corpus.corpus.model.decode import field_names
from orchtrace_corpus.corpus.model.disputes import Argument, Dispute
from orchtrace_corpus.corpus.model.field_table import CANDIDATE_FIELDS, EXCLUSION_FIELDS, UNQUOTED_KINDS, RecordField
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, Record, Tag, Waiver
from orchtrace_corpus.corpus.model.tagging import drop_not_arising
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy

Value: TypeAlias = str | int | float | Sequence["Value"] | Mapping[str, "Value"]
"""The value of a field in YAML: a text, a number, a flag, a list or a mapping."""

_EVIDENCE_FIELDS = ("tags", "note", "source", "location", "level", "confidence")
"""The first fields of an item of evidence in canonical order; verdict, copy and further facets follow."""


def fields(record: Record, taxonomy: Taxonomy) -> dict[str, Value]:
    """Return a record as its YAML fields, in canonical order, without absent fields."""
    more: Mapping[str, object] = {}
    if isinstance(record, Paper):
        names = field_names(taxonomy.paper_fields, taxonomy.papers)
        more = record.more
    else:
        names = field_names(EXCLUSION_FIELDS, taxonomy.exclusions)
    present: dict[str, Value] = {}
    for name in names:
        if name in record.tags:
            present[name] = tag_value(record.tags[name])
        elif name in more:
            present[name] = _value(more[name])
        elif name in record._fields and getattr(record, name):
            present[name] = _value(getattr(record, name))
    return present


def candidate_fields(candidate: Candidate, taxonomy: Taxonomy) -> dict[str, Value]:
    """Return a candidate as its YAML fields, in canonical order, without its readings."""
    present = fields(candidate.paper, taxonomy)
    present["proposal"] = candidate.proposal.value
    for name in ("reason", "found", "found_by", "screened"):
        value = getattr(candidate, name)
        if value:
            present[name] = _value(value)
    for field, tag in candidate.screening.items():
        present[field] = tag_value(tag)
    return {name: present[name] for name in candidate_field_names(taxonomy) if name in present}


def tag_value(tag: Tag) -> Value:
    """Return a tag as its YAML field: terms as a list, NA as text, and no terms that do not arise."""
    tag = drop_not_arising(tag)
    if isinstance(tag, (str, Mapping)):
        return tag
    return NOT_APPLICABLE if tag == (NOT_APPLICABLE,) else list(tag)


def _value(value: object) -> Value:
    if isinstance(value, Evidence):
        return evidence_fields(value)
    if isinstance(value, Waiver):
        return dict(value._asdict())
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    assert isinstance(value, (str, int, float))
    return value


def evidence_fields(item: Evidence) -> dict[str, Value]:
    """Return an item of evidence as its YAML fields, in canonical order, without the default verdict."""
    present: dict[str, Value] = {}
    for name in _EVIDENCE_FIELDS:
        value = getattr(item, name)
        if value:
            present[name] = _value(value)
    if item.verdict is not EvidenceVerdict.SUPPORTED:
        present["verdict"] = item.verdict.value
    if item.copy:
        present["copy"] = "yes"
    for name, tag in item.more.items():
        present[name] = tag_value(tag)
    return present


def paper_style(taxonomy: Taxonomy) -> Style:
    """Return the style in which papers are written: sorted by key if the taxonomy says so."""
    names = field_names(taxonomy.paper_fields, taxonomy.papers)
    sort_by = "key" if taxonomy.by_key else ""
    return _style(names, taxonomy.paper_fields, taxonomy.papers, sort_by)


def exclusion_style(taxonomy: Taxonomy) -> Style:
    """Return the style in which exclusions are written."""
    return _style(field_names(EXCLUSION_FIELDS, taxonomy.exclusions), EXCLUSION_FIELDS, taxonomy.exclusions)


def candidate_style(taxonomy: Taxonomy) -> Style:
    """Return the style in which candidates are written: sorted by key."""
    names = candidate_field_names(taxonomy)
    return _style(names, (*taxonomy.paper_fields, *CANDIDATE_FIELDS), taxonomy.papers, sort_by="key")


def _style(
    names: tuple[str, ...], record_fields: Iterable[RecordField], facets: Iterable[Facet], sort_by: str = ""
) -> Style:
    """Return a style: `names` is the order of fields; tags with levels are written in braces."""
    unquoted = frozenset(field.name for field in record_fields if field.kind in UNQUOTED_KINDS)
    in_braces = frozenset(facet.field for facet in facets if facet.kind is Kind.LEVELS)
    return Style(names, unquoted, in_braces, sort_by)


def dispute_style() -> Style:
    """Return the style in which disputes are written."""
    return Style(
        ("record", "tag", "stands", "readings", "agreed", "state", "why", "source", "arguments"),
        block=frozenset({"readings"}),
    )


def dispute_fields(dispute: Dispute) -> dict[str, Value]:
    """Return a dispute as its YAML fields, in canonical order, without `agreed`."""
    present: dict[str, Value] = {
        "record": dispute.record,
        "tag": dispute.tag,
        "stands": dispute.stands,
        "readings": {",".join(reading.values): reading.by for reading in dispute.readings},
        "state": dispute.state.value,
        "why": dispute.why,
        "source": dispute.source,
    }
    if dispute.arguments:
        present["arguments"] = argument_fields(dispute.arguments)
    return present


def argument_fields(arguments: Iterable[Argument]) -> list[Value]:
    """Return the arguments of readers as a dispute's YAML field."""
    return [argument._asdict() for argument in arguments]
