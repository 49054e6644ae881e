"""The coding rules (`data/codebook.yaml`) and the screening protocol (`data/protocol.yaml`).

Pages show them, and searches use the protocol. A case in the codebook must agree with its record.
"""

from enum import StrEnum

from orchtrace_corpus.base.findings import Finding, near_suggestion, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Report, decode_value, items_of, nodes_of, records_of, text_of
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.disputes import disputable, value_of, values_for
from orchtrace_corpus.corpus.model.records import Entries, Pool, decode_entries, raise_findings
from orchtrace_corpus.corpus.model.searches import QuerySyntaxError, check_query, count
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy


class Case(NamedTuple):
    """A paper that shows how a tag is coded; the value `none` means that it does not have a term with levels."""

    record: str
    value: str
    why: str


class Coding(NamedTuple):
    """The coding rules of one tag: a facet of papers, or a term of a facet of kind `levels`, such as `stop`.

    Attributes:
        rules: The rules, in the order in which they are applied.
        include: Descriptions of what counts.
        exclude: Descriptions of what looks similar but does not count.
        cases: Examples.
    """

    tag: str
    rules: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()


class Rule(NamedTuple):
    """A reason to include or to exclude a paper."""

    id: str
    rule: str


class Family(NamedTuple):
    """A family of queries that the survey has published, with its terms."""

    id: str
    label: str
    terms: tuple[str, ...]


class Origin(StrEnum):
    """The origin of a rule: published by the survey, or added by this project."""

    PUBLISHED = "published"
    OURS = "ours"


class Query(NamedTuple):
    """A query; exclusions and candidates record the name of the query that found them.

    Attributes:
        name: A term of the protocol's `query_field`.
        family: The id of the `Family` that it belongs to.
        query: The query string, in the search syntax of arXiv's API.
        by: The author of the query string.
    """

    name: str
    family: str
    query: str
    by: Origin


class Stage(NamedTuple):
    """The rule by which papers are excluded at a stage, a term of the protocol's `stage_field`."""

    stage: str
    rule: str


class Carries(NamedTuple):
    """The statements for which a kind of source counts as evidence."""

    kind: str
    carries: str


class Protocol(NamedTuple):
    """The protocol of searching, screening and updating; the attributes are the fields of the file.

    Attributes:
        query_field, stage_field: Facets of exclusions whose terms are the names of queries and of stages.
        search_from: The first day for which a query is searched that no run has searched before.
        search_categories: The categories of arXiv that are searched; empty for all.
        citing: Filters for the papers whose citations are followed; empty for no papers.
        citing_least: The number of these papers that a work must cite, or be cited by, to become a candidate.
    """

    kind: str
    day: str
    source: str
    sources: tuple[str, ...]
    include: tuple[Rule, ...]
    exclude: tuple[Rule, ...]
    update: tuple[str, ...]
    query_field: str | None = None
    stage_field: str | None = None
    families: tuple[Family, ...] = ()
    queries: tuple[Query, ...] = ()
    stages: tuple[Stage, ...] = ()
    evidence: tuple[Carries, ...] = ()
    search_from: str | None = None
    search_categories: tuple[str, ...] = ()
    citing: tuple[str, ...] = ()
    citing_least: int = 2


class ProtocolFile(NamedTuple):
    """The protocol, None if it is missing or has errors, and the findings of its file."""

    protocol: Protocol | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def total(self) -> int:
        """The number of queries."""
        return len(self.protocol.queries) if self.protocol else 0

    def require(self) -> Protocol | None:
        """Return the protocol, None if it is missing; raise `InvalidCorpusError` if it has errors."""
        raise_findings("the protocol has errors:", self.findings)
        return self.protocol


def decode_codebook(file: YamlFile | None, pool: Pool, are_records_sound: bool = True) -> Entries[Coding]:
    """Decode the codebook, and compare its cases with the papers unless these have errors."""
    if file is None:
        return Entries("the codebook has")
    facets_by_tag = {facet.field: facet for facet in pool.taxonomy.papers} | disputable(pool.taxonomy)
    schema = decoders.schema_of(
        Coding,
        "an entry of the codebook",
        "tag",
        tag=fields.terms("tag", "axis or facet", tuple(facets_by_tag), code="V101"),
        cases=records_of("cases", Case, "a case", record=fields.key("record")),
    )
    tags_before: set[str] = set()

    def check(coding: Coding, node: Mapping, report: Report) -> bool:
        if coding.tag in tags_before:
            report.add("B101", node.entries["tag"][1].at, f"{quote(coding.tag)} is there twice; join the two entries")
        tags_before.add(coding.tag)
        case_nodes = nodes_of(node, "cases")
        if are_records_sound and len(case_nodes) == len(coding.cases):  # a case with an error is not in `coding.cases`
            _check_cases(coding, facets_by_tag[coding.tag], case_nodes, pool, report)
        return True  # keep the entry: its own content is valid

    return decode_entries("the codebook has", file, schema, Coding, check)


def _check_cases(coding: Coding, facet: Facet, nodes: list[Node], pool: Pool, report: Report) -> None:
    """Report cases of unknown records, and cases that their records contradict."""
    allowed = values_for(facet)
    is_facet_with_levels = facet.kind is Kind.LEVELS and coding.tag == facet.field  # only its terms have values
    papers_by_key = {paper.key: paper for paper in pool.papers}
    for case, node in zip(coding.cases, nodes, strict=True):
        if type(node) is not Mapping:
            continue
        record_at = node.entries["record"][1].at
        value_at = node.entries["value"][1].at
        if case.value not in allowed or is_facet_with_levels:
            hint = suggestion(case.value, allowed)
            report.add("B102", value_at, f"{coding.tag} has no value {quote(case.value)}{hint}")
            continue
        paper = papers_by_key.get(case.record)
        if paper is None:
            near = near_suggestion(case.record, list(papers_by_key))
            report.add("B103", record_at, f"there is no {pool.taxonomy.noun.one} {quote(case.record)}{near}")
            continue
        value = value_of(paper, facet, coding.tag)
        if value != case.value:
            message = f"{quote(case.record)} has {coding.tag} {quote(value)}, not {quote(case.value)}"
            report.add("B104", value_at, f"{message}; change the record or the case")


def decode_protocol(file: YamlFile | None, taxonomy: Taxonomy) -> ProtocolFile:
    """Decode the protocol; its queries and stages must be terms of the facets `query_field` and `stage_field`."""
    if file is None:
        return ProtocolFile()
    report = Report(file)
    node = file.root()
    facets = {facet.field: facet for facet in taxonomy.exclusions if facet.kind is Kind.SINGLE}
    terms_by_field = {name: facet.values for name, facet in facets.items()}
    query_names = terms_by_field.get(text_of(node, "query_field"), ())
    stages = terms_by_field.get(text_of(node, "stage_field"), ())
    query_name = decoders.text("name")  # any name, if there is no facet for queries
    if text_of(node, "query_field"):
        query_name = fields.terms("name", "term of query_field", query_names)
    stage = fields.terms("stage", "term of stage_field", stages)
    key = fields.key("id")
    schema = decoders.schema_of(
        Protocol,
        "a protocol",
        query_field=fields.terms("query_field", "facet of exclusions", tuple(facets), code="V101"),
        stage_field=fields.terms("stage_field", "facet of exclusions", tuple(facets), code="V101"),
        day=decoders.iso_date("day"),
        include=records_of("include", Rule, "a rule", id=key),
        exclude=records_of("exclude", Rule, "a rule", id=key),
        families=records_of("families", Family, "a family of queries", id=key),
        queries=records_of("queries", Query, "a query", name=query_name, family=fields.key("family")),
        stages=records_of("stages", Stage, "a stage", stage=stage),
        evidence=records_of("evidence", Carries, "a kind of source"),
        search_from=decoders.iso_date("search_from"),
        citing_least=count("citing_least"),
    )
    protocol: Protocol | None = None if node is None else decode_value(node, schema, Protocol, report)
    if protocol is not None and not file.findings:
        _check_queries(protocol, node, report)
    if file.findings:
        return ProtocolFile(None, tuple(sorted(file.findings, key=lambda finding: finding.location)))
    return ProtocolFile(protocol)


def _check_queries(protocol: Protocol, node: Node | None, report: Report) -> None:
    """Report queries of unknown families, and query strings that arXiv cannot read."""
    families = [family.id for family in protocol.families]
    for query, item in zip(protocol.queries, items_of(node, "queries"), strict=True):
        if query.family not in families:
            message = f"there is no family {quote(query.family)}{suggestion(query.family, families)}"
            report.add("B105", item.entries["family"][1].at, message)
        try:
            check_query(query.query)
        except QuerySyntaxError as error:
            rest = query.query[error.at :]
            place = f"at {quote(rest[:30])}" if rest else f"behind {quote(query.query[-30:])}"
            report.add("B106", item.entries["query"][1].at, f"arXiv cannot read the query {place}: {error}")
