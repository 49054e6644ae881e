"""Decodes papers and exclusions by the taxonomy, and reports every problem of every record."""

from collections.abc import Callable, Iterable

from orchtrace_corpus.base.annotations import Any, TypeVar
from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, Schema, decode_record, nodes_of, schema_of
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, RecordField, Section
from orchtrace_corpus.corpus.model.fields import field_decoder, term_list, url
from orchtrace_corpus.corpus.model.records import Evidence, Exclusion, Loaded, Paper, Places, PublishedPool, Waiver
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy, facet_decoder

RecordType = TypeVar("RecordType", Paper, Exclusion)

_EVIDENCE_FIELDS = frozenset(Evidence._fields)


def paper_schema(taxonomy: Taxonomy) -> Schema:
    """Return the fields of a paper: those of the table and of the survey, and a tag for each facet of the taxonomy."""
    return _schema(taxonomy.noun.with_article, "key", taxonomy.paper_fields, taxonomy.papers, taxonomy)


def exclusion_schema(taxonomy: Taxonomy) -> Schema:
    """Return the fields of an exclusion: those of the table, and a tag for each of its facets."""
    return _schema("an exclusion", "id", EXCLUSION_FIELDS, taxonomy.exclusions, taxonomy)


def field_names(record_fields: Iterable[RecordField], facets: Iterable[Facet]) -> tuple[str, ...]:
    """Return the names of fields and facets in canonical order: tags follow the head of a record."""
    head: list[str] = []
    rest: list[str] = []
    for field in record_fields:
        (head if field.section is Section.HEAD else rest).append(field.name)
    return (*head, *(facet.field for facet in facets), *rest)


def _schema(
    noun: str, title_field: str, record_fields: tuple[RecordField, ...], facets: tuple[Facet, ...], taxonomy: Taxonomy
) -> Schema:
    by_name: dict[str, Decoder] = {facet.field: facet_decoder(facet) for facet in facets}
    for field in record_fields:
        if field.name == "evidence":
            by_name[field.name] = decoders.record_list(field.name, _evidence_schema(taxonomy), _evidence)
        elif field.name == "waive":
            code = fields.waived_code("code")
            by_name[field.name] = decoders.records_of(field.name, Waiver, "a waiver", code=code)
        else:
            by_name[field.name] = field_decoder(field)
    required = (field.name for field in record_fields if field.required)
    ordered = {name: by_name[name] for name in field_names(record_fields, facets)}
    omitted = {name: f"the taxonomy omits the field {quote(name)}; remove it here or there" for name in taxonomy.omit}
    tags = [facet.field for facet in facets if facet.required]
    setting = "corpus tag {{record}} {}=..., or write required: false for it in data/taxonomy.yaml"
    fixes = {name: f"; set it: {setting.format(name)}" for name in tags}
    return Schema(noun, title_field, ordered, (*required, *tags), omitted, fixes)


def _evidence_schema(taxonomy: Taxonomy) -> Schema:
    supported = (*(facet.field for facet in taxonomy.papers), *taxonomy.facts)
    schema = schema_of(
        Evidence,
        "a piece of evidence",
        tags=term_list("tags", fields.terms("tags", "axis or facet", supported, code="V101")),
        source=url("source"),
        more=None,
        copy=fields.mark("copy"),
        **{facet.field: facet_decoder(facet) for facet in taxonomy.evidence},
    )
    required = (*schema.required, *(facet.field for facet in taxonomy.evidence if facet.required))
    return schema._replace(required=tuple(dict.fromkeys(required)))


def decode_papers(file: YamlFile, taxonomy: Taxonomy, *, are_whole: bool = True) -> tuple[tuple[Paper, ...], Places]:
    """Decode a list of papers; problems go to `file.findings`. Fields may be missing if the papers are not whole."""
    more_fields = tuple(field.name for field in taxonomy.paper_fields if field.name not in Paper._fields)
    schema = paper_schema(taxonomy)
    if not are_whole:
        schema = schema._replace(required=())
    return _decode(file, schema, taxonomy.papers, Paper, more_fields)


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


def missing_records(file: YamlFile, published: PublishedPool | None, loaded: Loaded) -> list[Finding]:
    """Return the records of the published pool that the corpus does not have, each at its place in the list."""
    known_names = {"papers": loaded.known_keys, "exclusions": loaded.known_ids}
    missing = []
    for field, known_in_corpus in known_names.items():
        names = getattr(published, field, ())
        if known_in_corpus is not None and not known_in_corpus.issuperset(names):
            nodes = zip(names, nodes_of(file.root(), field), strict=True)
            missing += [(field, name, node.at) for name, node in nodes if name not in known_in_corpus]
    findings = []
    for field, name, at in missing:
        noun = loaded.noun.one if field == "papers" else "exclusion"
        message = f"there is no {noun} {quote(name)}, which the published pool has"
        findings.append(Finding("F119", message, file.location(at), name))
    return findings


def _evidence(**values: Any) -> Evidence:
    more_values = {name: values.pop(name) for name in list(values) if name not in _EVIDENCE_FIELDS}
    return Evidence(**values, more=more_values)


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
        members = {name: value for name, value in values.items() if value is not None}
        tags = {field: members.pop(field) for field in tag_fields if field in members}
        if more_fields and (more_members := {name: members.pop(name) for name in more_fields if name in members}):
            members["more"] = more_members
        records.append(build(tags=tags, **members))
        starts.append(node.at)
    return tuple(records), Places(file, starts)
