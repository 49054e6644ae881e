"""Evidence where much hangs on few papers: rules of the taxonomy say which terms are so rare that each paper counts."""

from collections import Counter
from collections.abc import Iterator

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, Severity, quote
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse_mapping
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Loaded, Paper


def check_sparse(loaded: Loaded) -> Iterator[Finding]:
    """Papers with a sparse term, and no evidence that names its field."""
    rules = [rule for rule in loaded.pool.taxonomy.rules if rule.sparse] if loaded.pool is not None else []
    if loaded.pool is None or not rules:
        return
    broken = {finding.record for finding in loaded.findings}  # whose tags may be incomplete
    for rule in rules:
        try:
            conditions = {one.field: one.alternatives for one in rule.when}
            when = parse_mapping(conditions, paper_attributes(loaded.pool.taxonomy))
        except CommandUseError:  # which is said of the rule itself
            continue
        for field, limit in rule.sparse.items():
            tally = Counter(term for paper in loaded.papers for term in _terms(paper, field))
            for index, paper in enumerate(loaded.papers):
                rare = [term for term in _terms(paper, field) if tally[term] <= limit]
                supported = any(field in item.tags for item in paper.evidence)
                if rare and not supported and paper.key not in broken and when.matches(paper):
                    number = tally[rare[0]]
                    only = "one paper" if number == 1 else f"{number} papers"
                    message = f"{rule.message.rstrip('.')} (rule {quote(rule.id)} of the taxonomy): only {only} "
                    message += f"{'has' if number == 1 else 'have'} {field} {quote(rare[0])}"
                    code = "E101" if rule.severity is Severity.ERROR else "E103"
                    yield Finding(code, message, loaded.paper_places.locate(index, field), paper.key)


def _terms(paper: Paper, field: str) -> tuple[str, ...]:
    """The terms that a paper has on a facet of one or several terms, if any applies."""
    tag = paper.tags.get(field, ())
    terms = (tag,) if isinstance(tag, str) else tuple(tag)
    return tuple(term for term in terms if term != NOT_APPLICABLE)
