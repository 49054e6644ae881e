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
    """A record that shows how a tag is coded; the value `none` says that a decision does not arise in it."""

    record: str
    value: str
    why: str


class Coding(NamedTuple):
    """The coding rules of one tag: a facet of papers, or a term of a facet of kind `levels`, such as `stop`.

    Attributes:
        rules: The rules that decide, in their order.
        include: What counts.
        exclude: What does not count, though it looks similar.
        cases: Records that show it.
    """

    tag: str
    rules: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()


class Rule(NamedTuple):
    """A reason to take a paper in, or to leave it out."""

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
    """A query, by the name that records of exclusions and candidates have.

    Attributes:
        name: A term of the protocol's `query_field`.
        family: The id of the published family that it belongs to.
        query: In the search syntax of arXiv's API.
        by: Whose query string it is.
    """

    name: str
    family: str
    query: str
    by: Origin


class Stage(NamedTuple):
    """The reasons to exclude a paper at a stage of screening, a term of the protocol's `stage_field`."""

    stage: str
    rule: str


class Carries(NamedTuple):
    """The claims that a kind of source can carry."""

    kind: str
    carries: str


class Protocol(NamedTuple):
    """The protocol of searching, screening and updating; the attributes are the fields of the file.

    Attributes:
        search_from: The first day that searches are about, where no run says otherwise.
        search_categories: The categories of arXiv that are searched; all without any.
        citing: Filters on the papers whose citations are followed; none are without any.
        citing_least: How many of these papers a work must cite, or be cited by, to be a candidate.
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
    """The protocol as read; None if there is none, or it has mistakes."""

    protocol: Protocol | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def total(self) -> int:
        """Return the number of queries."""
        return len(self.protocol.queries) if self.protocol else 0

    def require(self) -> Protocol | None:
        """Return the protocol, None if the corpus has none; raise `InvalidCorpusError` if it has mistakes."""
        raise_findings("the protocol has errors:", self.findings)
        return self.protocol


def decode_codebook(file: YamlFile | None, pool: Pool, is_sound: bool = True) -> Entries[Coding]:
    """Decode a list of entries, if there is one; compare its cases with the papers, if these are sound."""
    if file is None:
        return Entries("the codebook has")
    tags = {facet.field: facet for facet in pool.taxonomy.papers} | disputable(pool.taxonomy)
    schema = decoders.schema_of(
        Coding,
        "an entry of the codebook",
        "tag",
        tag=fields.terms("tag", "axis or facet", tuple(tags), code="V101"),
        cases=records_of("cases", Case, "a case", record=fields.key("record")),
    )
    coded: set[str] = set()

    def check(coding: Coding, node: Mapping, report: Report) -> bool:
        if coding.tag in coded:
            report.add("B101", node.entries["tag"][1].at, f"{quote(coding.tag)} is there twice; join the two entries")
        coded.add(coding.tag)
        cases = nodes_of(node, "cases")
        if is_sound and len(cases) == len(coding.cases):
            _check_cases(coding, tags[coding.tag], cases, pool, report)
        return True

    return decode_entries("the codebook has", file, schema, Coding, check)


def _check_cases(coding: Coding, facet: Facet, nodes: list[Node], pool: Pool, report: Report) -> None:
    """Report cases of unknown records, and cases that their records contradict."""
    allowed = values_for(facet)
    papers = {paper.key: paper for paper in pool.papers}
    for case, item in zip(coding.cases, nodes, strict=True):
        if type(item) is not Mapping:
            continue
        at = {name: value.at for name, (_, value) in item.entries.items()}
        if case.value not in allowed or (facet.kind is Kind.LEVELS and coding.tag == facet.field):
            shown = suggestion(case.value, allowed)
            report.add("B102", at["value"], f"{coding.tag} has no value {quote(case.value)}{shown}")
        elif case.record not in papers:
            near = near_suggestion(case.record, list(papers))
            report.add("B103", at["record"], f"there is no {pool.taxonomy.noun.one} {quote(case.record)}{near}")
        elif (value := value_of(papers[case.record], facet, coding.tag)) != case.value:
            message = f"{quote(case.record)} has {coding.tag} {quote(value)}, not {quote(case.value)}"
            report.add("B104", at["value"], f"{message}; change the record or the case")


def decode_protocol(file: YamlFile | None, taxonomy: Taxonomy) -> ProtocolFile:
    """Decode a protocol, if there is one; queries and stages are terms of the facets of exclusions that it names."""
    if file is None:
        return ProtocolFile()
    report = Report(file)
    node = file.root()
    facets = {facet.field: facet for facet in taxonomy.exclusions if facet.kind is Kind.SINGLE}
    queries, stages = (facets.get(text_of(node, name)) for name in ("query_field", "stage_field"))
    query_name = decoders.text("name")
    if text_of(node, "query_field"):
        query_name = fields.terms("name", "term of query_field", queries.values if queries else ())
    stage = fields.terms("stage", "term of stage_field", stages.values if stages else ())
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
    findings = tuple(sorted(file.findings, key=lambda finding: finding.location))
    return ProtocolFile(None if findings else protocol, findings)


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
            before, rest = query.query[: error.at], query.query[error.at :]
            place = f"at {quote(rest[:30])}" if rest else f"behind {quote(before[-30:])}"
            report.add("B106", item.entries["query"][1].at, f"arXiv cannot read the query {place}: {error}")
