"""Rules about tags: the rules of the taxonomy, and tags that must have evidence."""

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

    If the papers are candidates, `open_tags` has the open tags of each: a rule that an open tag could still satisfy is
    not broken.
    """
    attributes = paper_attributes(loaded.taxonomy)
    for rule in loaded.taxonomy.rules:
        try:
            when, require = parse_rule(rule, attributes)
        except CommandUseError:
            yield from _invalid_conditions(rule, attributes)
        else:
            yield from _check_rule(rule, when, require, loaded, open_tags)


def _invalid_conditions(rule: TagRule, attributes: Attributes) -> Iterator[Finding]:
    """Yield a finding for each condition of a rule that is not a valid filter."""
    for condition in (*rule.when, *rule.require):
        try:
            parse_conditions((condition,), attributes)
        except CommandUseError as error:
            message = str(error).replace("\n", ". ").rstrip(".")
            yield Finding("X103", f"rule {quote(rule.id)}: {message}", condition.location, rule.id)


def _check_rule(
    rule: TagRule, when: Query, require: Query, loaded: Loaded, open_tags: Sequence[Collection[str]]
) -> Iterator[Finding]:
    """Yield a finding for each paper that breaks a rule."""
    section = "E" if rule.evidence else "X"
    code = f"{section}101" if rule.severity is Severity.ERROR else f"{section}102"
    facts = frozenset(loaded.taxonomy.facts)
    with_findings = {finding.record for finding in loaded.findings}  # tags of these records may be missing
    for index, paper in enumerate(loaded.papers):
        if not when.matches(paper) or _meets(paper, rule, require, facts) or paper.key in with_findings:
            continue
        filters = (*when.filters, *require.filters)
        if open_tags and any(is_open(condition, paper, open_tags[index]) for condition in filters):
            continue
        failing: list[Filter] = []
        if not rule.evidence:
            failing = [condition for condition in require.filters if not condition.matches(paper)]
        place = loaded.paper_places.locate(index, *_path_of_first((*failing, *when.filters), paper))
        yield Finding(code, _message(rule), place, paper.key)


def _meets(paper: Paper, rule: TagRule, require: Query, facts: frozenset[str]) -> bool:
    """Return True if a paper has what a rule requires; evidence that is only about `facts` does not count."""
    if not rule.evidence:
        return require.matches(paper)
    if rule.evidence == (ANY_EVIDENCE,):
        return any(not facts.issuperset(item.tags) for item in paper.evidence)
    for item in paper.evidence:  # noqa: SIM110 - a generator takes twice the time
        if item.is_evidence and not set(rule.evidence).isdisjoint(item.tags):
            return True
    return False


def _path_of_first(filters: Sequence[Filter], paper: Paper) -> tuple[str, ...]:
    """Return the path of the first field of the filters that the paper has; empty if it has none of them."""
    for condition in filters:
        name = condition.attribute.name
        if name in paper.tags or getattr(paper, name, None):
            return (name,)
        for field, tag in paper.tags.items():
            if isinstance(tag, dict) and name in tag:  # a term with a level
                return (field, name)
    return ()


def possible_cells(
    taxonomy: Taxonomy, rows: Attribute, columns: Attribute, filled: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the pairs of terms that papers can have, as `corpus gaps` counts them.

    A pair in `filled`, which a paper has, is possible even if a rule forbids it.
    """
    pairs = {pair for pair in product(rows.allowed, columns.allowed) if NOT_APPLICABLE not in pair}
    impossible = cannot_arise(taxonomy, rows, columns).keys() - set(filled)
    return pairs - impossible


def cannot_arise(taxonomy: Taxonomy, rows: Attribute, columns: Attribute) -> dict[tuple[str, str], str]:
    """Return the pairs of terms of two attributes that no paper can have, each with the message of the rule against it.

    A rule counts if its severity is error and it is about the tags of the two attributes. For tags with several values
    it counts only if no further value could change its result for the pair.
    """
    tags = [_tag_of(attribute, taxonomy) for attribute in (rows, columns)]
    names: set[str] = set()
    known_tags: set[str] = set()  # their values are those of a pair; every other tag of the paper is open
    facet_fields: set[str] = set()
    for facet, term in tags:
        if facet is not None:
            facet_fields.add(facet.field)
            names.update((facet.field, *_terms_with_levels(facet)))
            if term:
                known_tags.add(term)
            elif facet.kind is Kind.SINGLE:
                known_tags.add(facet.field)
    if len(facet_fields) < 2:
        return {}
    rules = [rule for rule in taxonomy.rules if rule.severity is Severity.ERROR and _is_about(rule, names)]
    attributes = paper_attributes(taxonomy) if rules else {}
    parsed_rules = []
    for rule in rules:
        when = parse_conditions(rule.when, attributes)
        parsed_rules.append((rule.message, (when, parse_conditions(rule.require, attributes))))
    open_tags = attributes.keys() - known_tags
    impossible: dict[tuple[str, str], str] = {}
    for pair in product(rows.allowed, columns.allowed):
        paper_tags: dict[str, Tag] = {}
        for (facet, term), value in zip(tags, pair, strict=True):
            if facet is None:
                continue
            if facet.kind is Kind.LEVELS:
                paper_tags[facet.field] = {term: value}
            else:
                paper_tags[facet.field] = (value,) if facet.kind is Kind.MANY else value
        for message, parsed_rule in parsed_rules:
            if breaks(parsed_rule, Paper(tags=paper_tags), open_tags):
                impossible.setdefault(pair, message)
    return impossible


def _is_about(rule: TagRule, names: Collection[str]) -> bool:
    """Return True if only tags with these names decide when a rule applies, and it requires one of them."""
    when_fields = {condition.field.rstrip("!<>=~ ") for condition in rule.when}
    required_fields = {condition.field.rstrip("!<>=~ ") for condition in rule.require}
    return when_fields.issubset(names) and not required_fields.isdisjoint(names)


def _tag_of(attribute: Attribute, taxonomy: Taxonomy) -> tuple[Facet | None, str]:
    """Return the facet of an attribute (None if it is no tag of papers), and its term if it is a term with levels."""
    if attribute.facet is not None:
        is_of_papers = attribute.facet in taxonomy.papers
        return (attribute.facet, "") if is_of_papers else (None, "")
    for facet in taxonomy.papers:
        if attribute.name in _terms_with_levels(facet):
            return facet, attribute.name
    return None, ""


def _terms_with_levels(facet: Facet) -> tuple[str, ...]:
    return tuple(term.id for term in facet.terms) if facet.kind is Kind.LEVELS else ()


def check_sparse(loaded: Loaded) -> Iterator[Finding]:
    """Papers with a sparse term, and without evidence that names the field of the term."""
    noun = loaded.noun
    with_findings = {finding.record for finding in loaded.findings}  # tags of these records may be missing
    for rule in loaded.taxonomy.rules:
        if not rule.sparse:
            continue
        try:
            when = parse_conditions(rule.when, paper_attributes(loaded.taxonomy))
        except CommandUseError:  # reported by `check_rules`
            continue
        for field, limit in rule.sparse.items():
            counts = Counter(term for paper in loaded.papers for term in _terms(paper, field))
            for index, paper in enumerate(loaded.papers):
                sparse_terms = [term for term in _terms(paper, field) if counts[term] <= limit]
                if not sparse_terms or paper.key in with_findings or not when.matches(paper):
                    continue
                if any(item.is_evidence and field in item.tags for item in paper.evidence):
                    continue
                term = sparse_terms[0]
                only = f"one {noun.one} has" if counts[term] == 1 else f"{counts[term]} {noun.many} have"
                message = f"{_message(rule)}: only {only} {field} {quote(term)}"
                code = "E101" if rule.severity is Severity.ERROR else "E103"
                yield Finding(code, message, loaded.paper_places.locate(index, field), paper.key)


def check_sourced(loaded: Loaded) -> Iterator[Finding]:
    """Tags of sourced facets without evidence."""
    taxonomy = loaded.taxonomy
    sourced = [facet.field for facet in taxonomy.papers if facet.sourced]
    with_findings = {finding.record for finding in loaded.findings}  # evidence of these records may be missing
    for index, paper in enumerate(loaded.papers):
        if paper.key in with_findings:
            continue
        for field in sourced:
            if is_tagged(paper, field) and not evidence_for(paper, field, taxonomy):
                message = f"no evidence says what {field} rests on; add an item whose source is not the survey itself"
                yield Finding("E104", message, loaded.paper_places.locate(index, field), paper.key)


def check_own_sources(loaded: Loaded) -> Iterator[Finding]:
    """Evidence whose level says that the paper itself was read, while its source is another work."""
    taxonomy = loaded.taxonomy
    noun = loaded.noun.one
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
    """Return a paper's terms of a facet of kind `single` or `many`, without NA."""
    tag = paper.tags.get(field, ())
    terms = (tag,) if isinstance(tag, str) else tuple(tag)
    return tuple(term for term in terms if term != NOT_APPLICABLE)
