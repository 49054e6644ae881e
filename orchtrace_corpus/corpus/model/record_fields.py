"""A record as its YAML fields: the form in which records are compared, exported, edited and written."""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.model.candidates import Candidate, candidate_field_names
from orchtrace_corpus.corpus.model.decode import field_names
from orchtrace_corpus.corpus.model.disputes import Argument, Dispute
from orchtrace_corpus.corpus.model.field_table import BARE_KINDS, CANDIDATE_FIELDS, EXCLUSION_FIELDS, RecordField
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, Record, Tag, Waiver
from orchtrace_corpus.corpus.model.tagging import drop_not_arising
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy

Value: TypeAlias = str | int | float | Sequence["Value"] | Mapping[str, "Value"]
"""The value of a field as a YAML record has it: a text, a number or a flag (written as one), a list, a mapping."""

_EVIDENCE = ("tags", "note", "source", "location", "level", "confidence")
"""The fixed fields of an item of evidence that are texts, in canonical order; verdict, copy and facets follow."""


def fields(record: Record, taxonomy: Taxonomy) -> dict[str, Value]:
    """Return a record as its YAML fields, in canonical order, without absent fields."""
    more_values: Mapping[str, object] = {}
    if isinstance(record, Paper):
        names, more_values = field_names(taxonomy.paper_fields, taxonomy.papers), record.more
    else:
        names = field_names(EXCLUSION_FIELDS, taxonomy.exclusions)
    present: dict[str, Value] = {}
    for name in names:
        if name in record.tags:
            present[name] = tag_value(record.tags[name])
        elif name in more_values:
            present[name] = _value(more_values[name])
        elif name in record._fields and getattr(record, name):
            present[name] = _value(getattr(record, name))
    return present


def candidate_fields(candidate: Candidate, taxonomy: Taxonomy) -> dict[str, Value]:
    """Return a candidate as its YAML fields, in canonical order, without its readings."""
    own_fields: dict[str, Value] = {"proposal": candidate.proposal.value}
    for name in ("reason", "found", "found_by", "screened"):
        if value := getattr(candidate, name):
            own_fields[name] = _value(value)
    own_fields |= {field: tag_value(tag) for field, tag in candidate.screening.items()}
    present = fields(candidate.paper, taxonomy) | own_fields
    return {name: present[name] for name in candidate_field_names(taxonomy) if name in present}


def tag_value(tag: Tag) -> Value:
    """Return a tag as its YAML field: several terms as a list, NA alone as text, without terms that do not arise."""
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
    present = {name: _value(part) for name in _EVIDENCE if (part := getattr(item, name))}
    present |= {} if item.verdict is EvidenceVerdict.SUPPORTED else {"verdict": item.verdict.value}
    present |= {"copy": "yes"} if item.copy else {}
    return {**present, **{name: tag_value(tag) for name, tag in item.more.items()}}


def paper_style(taxonomy: Taxonomy) -> Style:
    """Return the style in which papers are written: sorted by key if the taxonomy says so."""
    names = field_names(taxonomy.paper_fields, taxonomy.papers)
    return _style(names, taxonomy.paper_fields, taxonomy.papers, "key" if taxonomy.by_key else "")


def exclusion_style(taxonomy: Taxonomy) -> Style:
    """Return the style in which exclusions are written."""
    return _style(field_names(EXCLUSION_FIELDS, taxonomy.exclusions), EXCLUSION_FIELDS, taxonomy.exclusions)


def candidate_style(taxonomy: Taxonomy) -> Style:
    """Return the style in which candidates are written: sorted by key."""
    return _style(candidate_field_names(taxonomy), (*taxonomy.paper_fields, *CANDIDATE_FIELDS), taxonomy.papers, "key")


def _style(
    names: tuple[str, ...], record_fields: Iterable[RecordField], facets: Iterable[Facet], key: str = ""
) -> Style:
    bare = frozenset(field.name for field in record_fields if field.kind in BARE_KINDS)
    flow = frozenset(facet.field for facet in facets if facet.kind is Kind.LEVELS)
    return Style(names, bare, flow, key)


def dispute_style() -> Style:
    """Return the style in which disputes are written."""
    return Style(
        ("record", "tag", "stands", "readings", "agreed", "state", "why", "source", "arguments"),
        block=frozenset({"readings"}),
    )


def dispute_fields(dispute: Dispute) -> dict[str, Value]:
    """Return a dispute as its YAML fields, in canonical order, without the agreed value."""
    readings = {",".join(reading.values): reading.by for reading in dispute.readings}
    written: dict[str, Value] = {"record": dispute.record, "tag": dispute.tag, "stands": dispute.stands}
    written |= {"readings": readings, "state": dispute.state.value, "why": dispute.why, "source": dispute.source}
    if dispute.arguments:
        written["arguments"] = argument_fields(dispute.arguments)
    return written


def argument_fields(arguments: Iterable[Argument]) -> list[Value]:
    """Return the arguments of readers as a dispute's YAML field."""
    return [argument._asdict() for argument in arguments]
