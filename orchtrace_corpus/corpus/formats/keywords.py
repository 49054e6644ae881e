"""A paper's tags as keywords, for reference managers."""

from collections.abc import Iterator, Mapping

from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


def keywords(paper: Paper, taxonomy: Taxonomy) -> Iterator[str]:
    """The tags as filters are written: `credit_unit=agent`, `stop=explicit`; those that are NA are left out."""
    for facet in taxonomy.papers:
        tag = paper.tags.get(facet.field, ())
        if isinstance(tag, Mapping):
            yield from (f"{term}={level}" for term, level in tag.items())
        else:
            terms = (tag,) if isinstance(tag, str) else tag
            yield from (f"{facet.field}={term}" for term in terms if term != NOT_APPLICABLE)
