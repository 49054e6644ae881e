"""Rules across the tags of a paper, as a taxonomy writes them; `rules.tags` applies them."""

from collections.abc import Iterable
from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType

from orchtrace_corpus.base.findings import Location, Severity, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, entries_of, items_of, nodes_of, text_of
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence
from orchtrace_corpus.corpus.model import fields

ANY_EVIDENCE = "any"
"""In a rule, the demand for evidence of whatever field."""


class Condition(NamedTuple):
    """A filter of a rule: `rl: [full, partial]` has the field `rl` and two alternatives.

    `field` may end in an operator, as in `added<=`. Filters are checked by `analysis.query`.
    """

    field: str
    alternatives: tuple[str, ...]
    location: Location


class TagRule(NamedTuple):
    """A rule across the fields of a paper: a paper that meets all of `when` must meet all of `require`.

    Attributes:
        evidence: Instead of `require`: fields, at least one of which an item of the paper's evidence must name.
        sparse: Instead of both: fields, each with the most papers of a sparse term; a paper with a sparse term must
            have evidence that names the field.
    """

    id: str
    message: str
    severity: Severity = Severity.ERROR
    when: tuple[Condition, ...] = ()
    require: tuple[Condition, ...] = ()
    evidence: tuple[str, ...] = ()
    sparse: MappingType[str, int] = {}


def check_rules(taxonomy: Mapping, kinds: MappingType[str, str], report: Report) -> None:
    """Report repeated rules, rules without exactly one demand, and unknown facets; `kinds` are those of facets."""
    known = list(kinds)
    counted = [field for field, kind in kinds.items() if kind != "levels"]
    seen: set[str] = set()
    for rule in items_of(taxonomy, "rules"):
        report.record = text_of(rule, "id")
        refuse_repeated("rules", rule, "id", seen, report)
        demands = [demand for demand in ("require", "evidence", "sparse") if demand in rule.entries]
        if not demands:
            message = "missing field 'require', 'evidence' or 'sparse', which says what the rule demands"
            report.add("F101", rule.at, message)
        if len(demands) > 1:
            message = f"a rule demands {quote(demands[0])} or {quote(demands[1])}, not both; make two"
            report.add("F102", rule.entries[demands[1]][0], message)
        sparse = [Scalar(field, at) for field, (at, _) in entries_of(rule, "sparse").items()]
        refuse_unknown(sparse, counted, report)
        refuse_unknown(nodes_of(rule, "evidence"), known, report)
    report.record = ""


def conditions(name: str) -> Decoder:
    """Return the decoder of filters written as a mapping, with their places."""

    def decode(node: Node, report: Report) -> tuple[Condition, ...] | None:
        if type(node) is not Mapping:
            report.add("F103", node.at, f"{quote(name)} must be a mapping of filters such as {{field: [one, two]}}")
            return None
        read = []
        for field, (key_at, value) in node.entries.items():
            items = value.items if type(value) is Sequence else [value]
            if not items or any(type(item) is not Scalar for item in items):
                report.add("F103", value.at, f"{quote(field)} must be a value, or a list of values such as [one, two]")
                return None
            alternatives = tuple(item.text for item in items if type(item) is Scalar)
            read.append(Condition(field, alternatives, report.file.location(key_at)))
        return tuple(read)

    return decode


def _evidence_fields(node: Node, report: Report) -> tuple[str, ...] | None:
    if type(node) is Scalar:
        if node.text == ANY_EVIDENCE:
            return (ANY_EVIDENCE,)
        report.add("F103", node.at, f"'evidence' must be a list of fields such as [one, two], or {quote(ANY_EVIDENCE)}")
        return None
    names: tuple[str, ...] | None = decoders.text_list("evidence")(node, report)
    return names


def _sparse(node: Node, report: Report) -> dict[str, int] | None:
    if type(node) is not Mapping or not node.entries:
        report.add("F103", node.at, "'sparse' must be a mapping from fields to numbers of papers such as {one: 2}")
        return None
    limits = {}
    for field, (_, value) in node.entries.items():
        text = decoders.checked_text(field, value, report)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 1000):
            report.add("F103", value.at, f"{quote(text)} is not a number of papers: write 1 or more")
            return None
        limits[field] = int(text)
    return limits


RULE = decoders.schema_of(
    TagRule,
    "a rule",
    "id",
    id=fields.key("rule id"),
    when=conditions("when"),
    require=conditions("require"),
    evidence=_evidence_fields,
    sparse=_sparse,
)
"""The fields of a rule."""


def refuse_repeated(owner: str, item: Mapping, field: str, seen: set[str], report: Report) -> None:
    """Report an item whose name has been seen before; `field` holds the name."""
    name = text_of(item, field)
    if name in seen:
        report.add("F108", item.entries[field][1].at, f"{owner} names {quote(name)} twice; remove one")
    seen.update({name} - {""})


def refuse_unknown(names: Iterable[Node], known: SequenceType[str], report: Report) -> None:
    """Report the texts that name no axis or facet."""
    for item in names:
        if type(item) is Scalar and item.text and item.text not in known:
            report.add("V101", item.at, f"unknown axis or facet {quote(item.text)}{suggestion(item.text, known)}")
