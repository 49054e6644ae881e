"""A corpus with changes made, for holding what `analysis.stress` says of them against the corpus that they give."""

from collections.abc import Iterable

from orchtrace_corpus.corpus.analysis.stress import Change, ChangeKind, as_paper
from orchtrace_corpus.corpus.model.disputes import disputable, with_value
from orchtrace_corpus.corpus.model.records import Pool


def apply_changes(pool: Pool, changes: Iterable[Change]) -> Pool:
    """The corpus with some changes made; an exclusion that is taken in is a paper under its id."""
    known = disputable(pool.taxonomy)
    papers = {paper.key: paper for paper in pool.papers}
    exclusions = {exclusion.id: exclusion for exclusion in pool.exclusions}
    for change in changes:
        if change.kind is ChangeKind.FLIP:
            papers[change.record] = with_value(papers[change.record], known[change.tag], change.tag, change.value)
        elif change.kind is ChangeKind.TAKE_IN:
            papers[change.record] = as_paper(exclusions.pop(change.record), change.tags)
        elif papers.pop(change.record, None) is None:
            del exclusions[change.record]
    return pool._replace(papers=tuple(papers.values()), exclusions=tuple(exclusions.values()))
