"""The taxonomy's own rules: tags that must go together, tags that must have evidence, and what evidence must be."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import product

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, Severity, quote
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.evidence import asks_for_own_work, evidence_for, is_own, is_tagged
from orchtrace_corpus.corpus.analysis.query import Filter, Query, breaks, is_open, parse_conditions, parse_rule
from orchtrace_corpus.corpus.model.records import Loaded, Paper, Tag
from orchtrace_corpus.corpus.model.taxonomy import ANY_EVIDENCE, Facet, Kind, TagRule, Taxonomy


def check_rules(loaded: Loaded, open_tags: Sequence[Collection[str]] = ()) -> Iterator[Finding]:
    """Papers that break a rule of the taxonomy, and rules about fields or terms that the taxonomy does not declare.

    `open_tags` are those of each candidate; no rule is broken if an open tag may decide it.
    """
    attributes = paper_attributes(loaded.taxonomy)
    for rule in loaded.taxonomy.rules:
        try:
            when, require = parse_rule(rule, attributes)
        except CommandUseError:
            yield from _wrong_conditions(rule, attributes)
        else:
            yield from _check_rule(rule, when, require, loaded, open_tags)


def _wrong_conditions(rule: TagRule, attributes: Attributes) -> Iterator[Finding]:
    """Yield the conditions of a rule that are no filters."""
    for condition in (*rule.when, *rule.require):
        try:
            parse_conditions((condition,), attributes)
        except CommandUseError as error:
            message = str(error).replace("\n", ". ").rstrip(".")
            yield Finding("X103", f"rule {quote(rule.id)}: {message}", condition.location, rule.id)


def _check_rule(
    rule: TagRule, when: Query, require: Query, loaded: Loaded, open_tags: Sequence[Collection[str]]
) -> Iterator[Finding]:
    error, warning = ("E101", "E102") if rule.evidence else ("X101", "X102")
    facts = frozenset(loaded.taxonomy.facts)
    broken = {finding.record for finding in loaded.findings}  # whose tags may be incomplete
    for index, paper in enumerate(loaded.papers):
        if when.matches(paper) and not _meets(paper, rule, require, facts) and paper.key not in broken:
            filters = (*when.filters, *require.filters)
            if open_tags and any(is_open(condition, paper, open_tags[index]) for condition in filters):
                continue
            demanded = () if rule.evidence else tuple(f for f in require.filters if not f.matches(paper))
            place = loaded.paper_places.locate(index, *_offender(paper, (*demanded, *when.filters)))
            yield Finding(error if rule.severity is Severity.ERROR else warning, _message(rule), place, paper.key)


def _meets(paper: Paper, rule: TagRule, require: Query, facts: frozenset[str]) -> bool:
    if not rule.evidence:
        return require.matches(paper)
    if rule.evidence == (ANY_EVIDENCE,):
        return any(not facts.issuperset(item.tags) for item in paper.evidence)  # of a tag, not of a fact alone
    for item in paper.evidence:  # noqa: SIM110 - a generator takes twice the time
        if item.is_evidence and not set(rule.evidence).isdisjoint(item.tags):
            return True
    return False


def _offender(paper: Paper, filters: Sequence[Filter]) -> tuple[str, ...]:
    """Return the path of the first field that fails the demand; of the condition of the rule, if all are absent."""
    for condition in filters:
        name = condition.attribute.name
        if name in paper.tags or getattr(paper, name, None):
            return (name,)
        for field, tag in paper.tags.items():  # a term of a facet of kind levels
            if isinstance(tag, dict) and name in tag:
                return (field, name)
    return ()


def possible_cells(
    taxonomy: Taxonomy, rows: Attribute, columns: Attribute, filled: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the pairs of terms that papers can have, as `corpus gaps` counts them; filled pairs are possible."""
    pairs = {pair for pair in product(rows.allowed, columns.allowed) if NOT_APPLICABLE not in pair}
    return pairs - (cannot_arise(taxonomy, rows, columns).keys() - {*filled})


def cannot_arise(taxonomy: Taxonomy, rows: Attribute, columns: Attribute) -> dict[tuple[str, str], str]:
    """Return the pairs of terms of two attributes that no paper can have, each with the message of the rule against it.

    A rule counts if its severity is error and it is about the tags of the two attributes. For tags with several values
    it counts only if no further value could change its result for the pair.
    """
    tags = [_tag_of(attribute, taxonomy) for attribute in (rows, columns)]
    behind = [facet for facet, _ in tags if facet is not None]
    if len({facet.field for facet in behind}) < 2:
        return {}
    names = {name for facet in behind for name in (facet.field, *_terms_with_levels(facet))}
    rules = [rule for rule in taxonomy.rules if rule.severity is Severity.ERROR and _is_about(rule, names)]
    attributes = paper_attributes(taxonomy) if rules else {}
    parsed_rules = [
        (rule.message, (parse_conditions(rule.when, attributes), parse_conditions(rule.require, attributes)))
        for rule in rules
    ]
    given_tags = {term or facet.field for facet, term in tags if facet and (term or facet.kind is Kind.SINGLE)}
    open_tags = attributes.keys() - given_tags
    impossible: dict[tuple[str, str], str] = {}
    for pair in product(rows.allowed, columns.allowed):
        paper_tags: dict[str, Tag] = {}
        for (facet, term), value in zip(tags, pair, strict=True):
            if facet is not None:
                by_kind: dict[Kind, Tag] = {Kind.LEVELS: {term: value}, Kind.MANY: (value,), Kind.SINGLE: value}
                paper_tags[facet.field] = by_kind[facet.kind]
        for message, rule in parsed_rules:
            if breaks(rule, Paper(tags=paper_tags), open_tags):
                impossible.setdefault(pair, message)
    return impossible


def _is_about(rule: TagRule, names: Collection[str]) -> bool:
    """Return True if tags of some names decide when a rule applies, and may not be what it requires."""
    applies, required = ({condition.field.rstrip("!<>=~ ") for condition in part} for part in (rule.when, rule.require))
    return applies.issubset(names) and not required.isdisjoint(names)


def _tag_of(attribute: Attribute, taxonomy: Taxonomy) -> tuple[Facet | None, str]:
    """Return the facet of papers of an attribute, and its term if the attribute is a term with levels."""
    if attribute.facet is not None:
        return (attribute.facet if attribute.facet in taxonomy.papers else None), ""
    facets = (facet for facet in taxonomy.papers if attribute.name in _terms_with_levels(facet))
    return next(facets, None), attribute.name


def _terms_with_levels(facet: Facet) -> tuple[str, ...]:
    return tuple(term.id for term in facet.terms) if facet.kind is Kind.LEVELS else ()


def check_sparse(loaded: Loaded) -> Iterator[Finding]:
    """Papers with a sparse term, and no evidence that names its field."""
    rules = [rule for rule in loaded.taxonomy.rules if rule.sparse]
    broken = {finding.record for finding in loaded.findings}  # whose tags may be incomplete
    for rule in rules:
        try:
            when = parse_conditions(rule.when, paper_attributes(loaded.taxonomy))
        except CommandUseError:  # a finding of the rule itself
            continue
        for field, limit in rule.sparse.items():
            tally = Counter(term for paper in loaded.papers for term in _terms(paper, field))
            for index, paper in enumerate(loaded.papers):
                rare = [term for term in _terms(paper, field) if tally[term] <= limit]
                supported = any(item.is_evidence and field in item.tags for item in paper.evidence)
                if rare and not supported and paper.key not in broken and when.matches(paper):
                    count = tally[rare[0]]
                    noun = loaded.noun
                    only = f"one {noun.one} has" if count == 1 else f"{count} {noun.many} have"
                    message = f"{_message(rule)}: only {only} {field} {quote(rare[0])}"
                    code = "E101" if rule.severity is Severity.ERROR else "E103"
                    yield Finding(code, message, loaded.paper_places.locate(index, field), paper.key)


def check_sourced(loaded: Loaded) -> Iterator[Finding]:
    """Tags of sourced fields without evidence."""
    taxonomy = loaded.taxonomy
    sourced = [facet.field for facet in taxonomy.papers if facet.sourced]
    broken = {finding.record for finding in loaded.findings}  # whose evidence may be incomplete
    for index, paper in enumerate(loaded.papers if sourced else ()):
        for field in sourced if paper.key not in broken else ():
            if is_tagged(paper, field) and not evidence_for(paper, field, taxonomy):
                message = f"no evidence says what {field} rests on; add an item whose source is not the survey itself"
                yield Finding("E104", message, loaded.paper_places.locate(index, field), paper.key)


def check_own_sources(loaded: Loaded) -> Iterator[Finding]:
    """Evidence whose level says that the paper itself was read, while its source is another work."""
    taxonomy, noun = loaded.taxonomy, loaded.noun.one
    for index, paper in enumerate(loaded.papers):
        for position, item in enumerate(paper.evidence):
            if asks_for_own_work(item, taxonomy) and not is_own(paper, item):
                message = f"level {quote(item.level)} asks for the {noun} itself, but the source is another address;"
                message += f' correct the level, or add copy: "yes" if a copy of the {noun} is there'
                place = loaded.paper_places.locate(index, "evidence", position, "source")
                yield Finding("E105", message, place, paper.key)


def _message(rule: TagRule) -> str:
    return f"{rule.message.rstrip('.')} (rule {quote(rule.id)} of the taxonomy)"


def _terms(paper: Paper, field: str) -> tuple[str, ...]:
    """Return a paper's terms of a facet of one or several terms, without NA."""
    tag = paper.tags.get(field, ())
    terms = (tag,) if isinstance(tag, str) else tuple(tag)
    return tuple(term for term in terms if term != NOT_APPLICABLE)
