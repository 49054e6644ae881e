"""Decodes the records of a data file by the taxonomy, reporting every problem of every record."""

from collections.abc import Callable, Iterable, Set
from typing import Any, TypeVar

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, Schema, decode_record, nodes_of, schema_of
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, RecordField, Section
from orchtrace_corpus.corpus.model.fields import field_decoder, kept_entry, term_list, url
from orchtrace_corpus.corpus.model.records import (
    Evidence,
    Exclusion,
    Paper,
    Places,
    PublishedPool,
    Waiver,
)
from orchtrace_corpus.corpus.model.taxonomy import PAPER_NOUN, Facet, Noun, Taxonomy, facet_decoder

RecordType = TypeVar("RecordType", Paper, Exclusion)

_EVIDENCE_FIELDS = frozenset(Evidence._fields)


def paper_schema(taxonomy: Taxonomy) -> Schema:
    """Return the fields of a paper: those of the table and of the survey, and a tag for each facet of the taxonomy."""
    return _schema(taxonomy.noun.with_article, "key", taxonomy.paper_fields, taxonomy.papers, taxonomy)


def exclusion_schema(taxonomy: Taxonomy) -> Schema:
    """Return the fields of an exclusion: those of the table, and a tag for each of its facets."""
    return _schema("an exclusion", "id", EXCLUSION_FIELDS, taxonomy.exclusions, taxonomy)


def field_names(record_fields: Iterable[RecordField], facets: Iterable[Facet]) -> tuple[str, ...]:
    """Return the names of fields and facets in canonical order: tags stand behind the head of a record."""
    head: list[str] = []
    behind: list[str] = []
    for field in record_fields:
        (head if field.section is Section.HEAD else behind).append(field.name)
    return (*head, *(facet.field for facet in facets), *behind)


def _schema(
    noun: str, title_field: str, record_fields: tuple[RecordField, ...], facets: tuple[Facet, ...], taxonomy: Taxonomy
) -> Schema:
    by_name: dict[str, Decoder] = {field.name: _decoder(field, taxonomy) for field in record_fields}
    by_name |= _tag_decoders(facets)
    required = (field.name for field in record_fields if field.required)
    decoders = {name: by_name[name] for name in field_names(record_fields, facets)}
    omitted = {name: f"the taxonomy omits the field {quote(name)}; remove it here or there" for name in taxonomy.omit}
    tags = _required(facets)
    setting = "corpus tag {{record}} {}=..., or write required: false for it in data/taxonomy.yaml"
    mends = {name: f"; set it: {setting.format(name)}" for name in tags}
    return Schema(noun, title_field, decoders, (*required, *tags), omitted, mends)


def _decoder(field: RecordField, taxonomy: Taxonomy) -> Decoder:
    """Return the decoder of a field: its own where it has one, else that of its kind."""
    if field.name == "evidence":
        return decoders.record_list("evidence", _evidence_schema(taxonomy), _evidence)
    own = _OWN_DECODERS.get(field.name)
    return field_decoder(field) if own is None else own(field.name)


def _evidence_schema(taxonomy: Taxonomy) -> Schema:
    supported = (*(facet.field for facet in taxonomy.papers), *taxonomy.facts)
    schema = schema_of(
        Evidence,
        "a piece of evidence",
        tags=term_list("tags", fields.terms("tags", "axis or facet", supported, code="V101")),
        source=url("source"),
        more=None,
        copy=fields.mark("copy"),
        **_tag_decoders(taxonomy.evidence),
    )
    return schema._replace(required=tuple(dict.fromkeys((*schema.required, *_required(taxonomy.evidence)))))


def decode_papers(file: YamlFile, taxonomy: Taxonomy, *, are_whole: bool = True) -> tuple[tuple[Paper, ...], Places]:
    """Decode a list of papers, of which no field may be missing if they are whole; problems go to `file.findings`."""
    more = tuple(field.name for field in taxonomy.paper_fields if field.name not in Paper._fields)
    schema = paper_schema(taxonomy)
    schema = schema if are_whole else schema._replace(required=())
    return _decode(file, schema, taxonomy.papers, Paper, more)


def decode_exclusions(file: YamlFile, taxonomy: Taxonomy) -> tuple[tuple[Exclusion, ...], Places]:
    """Decode a list of exclusions; problems go to `file.findings`."""
    return _decode(file, exclusion_schema(taxonomy), taxonomy.exclusions, Exclusion)


def decode_published(file: YamlFile | None) -> PublishedPool | None:
    """Decode `data/published.yaml`; problems become findings. None if there are any, or no such file."""
    if file is None:
        return None
    schema = schema_of(PublishedPool, "the published pool", "day", day=decoders.iso_date("day"))
    node = file.root()
    values = None if node is None else decode_record(node, schema, Report(file))
    return None if values is None or file.findings else PublishedPool(**values)


def missing_records(
    file: YamlFile,
    pool: PublishedPool | None,
    papers: Set[str] | None,
    exclusions: Set[str] | None,
    noun: Noun = PAPER_NOUN,
) -> tuple[Finding, ...]:
    """Return the records of the published pool that are not there, each at its place in the list.

    Args:
        file: The file that `pool` was decoded from.
        pool: The published pool; None if the file has mistakes.
        papers: The keys that there are; None if that is not known, since a part of the papers cannot be read.
        exclusions: The ids that there are, likewise.
        noun: The survey's name for its papers.
    """
    if pool is None:
        return ()
    both = (("papers", noun.one, papers), ("exclusions", "exclusion", exclusions))
    if all(known is None or known >= set(getattr(pool, field)) for field, _, known in both):
        return ()
    findings = []
    node = file.root()
    for field, called, known in both:
        for name, item in zip(getattr(pool, field), nodes_of(node, field), strict=True):
            if known is not None and name not in known:
                message = f"there is no {called} {quote(name)}, which the published pool has"
                findings.append(Finding("F119", message, file.location(item.at), name))
    return tuple(findings)


def _evidence(**values: Any) -> Evidence:
    more = {name: values.pop(name) for name in list(values) if name not in _EVIDENCE_FIELDS}
    return Evidence(**values, more=more)


def _decode(
    file: YamlFile,
    schema: Schema,
    facets: tuple[Facet, ...],
    build: Callable[..., RecordType],
    more_fields: tuple[str, ...] = (),
) -> tuple[tuple[RecordType, ...], Places]:
    report = Report(file)
    tag_fields = tuple(facet.field for facet in facets)
    records: list[RecordType] = []
    starts: list[int] = []
    for node in file.records():
        report.record = ""
        values = decode_record(node, schema, report)
        if values is None:
            continue
        known = {name: value for name, value in values.items() if value is not None}
        tags = {field: known.pop(field) for field in tag_fields if field in known}
        if more_fields and (more := {name: known.pop(name) for name in more_fields if name in known}):
            known["more"] = more
        records.append(build(tags=tags, **known))
        starts.append(node.at)
    return tuple(records), Places(file, starts)


_OWN_DECODERS: dict[str, Callable[[str], Decoder]] = {
    "id": fields.exclusion_id,
    "cite_key": fields.cite_key,
    "bibtex": kept_entry,
    "waive": lambda name: decoders.records_of(name, Waiver, "a waiver", code=fields.waived_code("code")),
}


def _tag_decoders(facets: tuple[Facet, ...]) -> dict[str, Decoder]:
    return {facet.field: facet_decoder(facet) for facet in facets}


def _required(facets: tuple[Facet, ...]) -> tuple[str, ...]:
    return tuple(facet.field for facet in facets if facet.required)
