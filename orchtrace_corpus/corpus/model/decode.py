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
    """Return the schema of a paper: fixed and declared fields, and a tag for each facet of papers."""
    return _schema(taxonomy.noun.with_article, "key", taxonomy.paper_fields, taxonomy.papers, taxonomy)


def exclusion_schema(taxonomy: Taxonomy) -> Schema:
    """Return the schema of an exclusion: fixed fields, and a tag for each facet of exclusions."""
    return _schema("an exclusion", "id", EXCLUSION_FIELDS, taxonomy.exclusions, taxonomy)


def field_names(record_fields: Iterable[RecordField], facets: Iterable[Facet]) -> tuple[str, ...]:
    """Return the names of fields and facets in canonical order: the head of a record, its tags, the other fields."""
    names_in_head: list[str] = []
    other_names: list[str] = []
    for field in record_fields:
        if field.section is Section.HEAD:
            names_in_head.append(field.name)
        else:
            other_names.append(field.name)
    return (*names_in_head, *(facet.field for facet in facets), *other_names)


def _schema(
    noun: str, title_field: str, record_fields: tuple[RecordField, ...], facets: tuple[Facet, ...], taxonomy: Taxonomy
) -> Schema:
    """Return the schema of a kind of record; `title_field` is the field by which messages name a record."""
    by_name: dict[str, Decoder] = {facet.field: facet_decoder(facet) for facet in facets}
    for field in record_fields:
        if field.name == "evidence":
            by_name[field.name] = decoders.record_list(field.name, _evidence_schema(taxonomy), _evidence)
        elif field.name == "waive":
            code = fields.waived_code("code")
            by_name[field.name] = decoders.records_of(field.name, Waiver, "a waiver", code=code)
        else:
            by_name[field.name] = field_decoder(field)
    in_order = {name: by_name[name] for name in field_names(record_fields, facets)}
    required_fields = [field.name for field in record_fields if field.required]
    required_tags = [facet.field for facet in facets if facet.required]
    omitted = {name: f"the taxonomy omits the field {quote(name)}; remove it here or there" for name in taxonomy.omit}
    hints: dict[str, str] = {}
    for name in required_tags:  # the decoder replaces `{record}` by the name of the record
        command = f"corpus tag {{record}} {name}=..."
        hints[name] = f"; set it: {command}, or write required: false for it in data/taxonomy.yaml"
    return Schema(noun, title_field, in_order, (*required_fields, *required_tags), omitted, hints)


def _evidence_schema(taxonomy: Taxonomy) -> Schema:
    """Return the schema of an item of evidence, with the facets of evidence that the taxonomy declares."""
    supportable = (*(facet.field for facet in taxonomy.papers), *taxonomy.facts)
    schema = schema_of(
        Evidence,
        "a piece of evidence",
        tags=term_list("tags", fields.terms("tags", "axis or facet", supportable, code="V101")),
        source=url("source"),
        more=None,  # not a field of the file: `_evidence` fills it
        copy=fields.yes("copy"),
        **{facet.field: facet_decoder(facet) for facet in taxonomy.evidence},
    )
    required = (*schema.required, *(facet.field for facet in taxonomy.evidence if facet.required))
    return schema._replace(required=tuple(dict.fromkeys(required)))


def decode_papers(file: YamlFile, taxonomy: Taxonomy, *, are_whole: bool = True) -> tuple[tuple[Paper, ...], Places]:
    """Decode the papers of a file; problems become its findings. If not `are_whole`, required fields may be missing."""
    more_fields = tuple(field.name for field in taxonomy.paper_fields if field.name not in Paper._fields)
    schema = paper_schema(taxonomy)
    if not are_whole:
        schema = schema._replace(required=())
    return _decode(file, schema, taxonomy.papers, Paper, more_fields)


def decode_exclusions(file: YamlFile, taxonomy: Taxonomy) -> tuple[tuple[Exclusion, ...], Places]:
    """Decode the exclusions of a file; problems become findings of the file."""
    return _decode(file, exclusion_schema(taxonomy), taxonomy.exclusions, Exclusion)


def decode_published(file: YamlFile | None) -> PublishedPool | None:
    """Decode `data/published.yaml`; return None if it is missing or has problems, which become findings of the file."""
    if file is None:
        return None
    schema = schema_of(PublishedPool, "the published pool", "day", day=decoders.iso_date("day"))
    node = file.root()
    if node is None:
        return None
    values = decode_record(node, schema, Report(file))
    return None if values is None or file.findings else PublishedPool(**values)


def missing_records(file: YamlFile, published: PublishedPool | None, loaded: Loaded) -> list[Finding]:
    """Return a finding for each record of the published pool that the corpus does not have."""
    findings: list[Finding] = []
    if published is None:
        return findings
    for field, noun, names, names_in_corpus in (
        ("papers", loaded.noun.one, published.papers, loaded.known_keys),
        ("exclusions", "exclusion", published.exclusions, loaded.known_ids),
    ):
        if names_in_corpus is None or names_in_corpus.issuperset(names):
            continue
        for name, node in zip(names, nodes_of(file.root(), field), strict=True):
            if name not in names_in_corpus:
                message = f"there is no {noun} {quote(name)}, which the published pool has"
                findings.append(Finding("F119", message, file.location(node.at), name))
    return findings


def _evidence(**values: Any) -> Evidence:
    """Return an item of evidence with the facets that only the taxonomy declares in `more`."""
    more = {name: values.pop(name) for name in list(values) if name not in _EVIDENCE_FIELDS}
    return Evidence(**values, more=more)


def _decode(
    file: YamlFile,
    schema: Schema,
    facets: tuple[Facet, ...],
    build: Callable[..., RecordType],
    more_fields: tuple[str, ...] = (),
) -> tuple[tuple[RecordType, ...], Places]:
    """Decode the records of a file; `more_fields` are the fields whose values belong into `Paper.more`."""
    report = Report(file)
    tag_fields = tuple(facet.field for facet in facets)
    records: list[RecordType] = []
    starts: list[int] = []
    for node in file.records():
        report.record = ""
        values = decode_record(node, schema, report)
        if values is None:
            continue
        valid = {name: value for name, value in values.items() if value is not None}
        tags = {field: valid.pop(field) for field in tag_fields if field in valid}
        if more_fields:
            valid["more"] = {name: valid.pop(name) for name in more_fields if name in valid}
        records.append(build(tags=tags, **valid))
        starts.append(node.at)
    return tuple(records), Places(file, starts)
