"""Identifiers held against the rest of their record: its URLs and its year."""

from collections.abc import Iterator

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.identifiers import Identifier, arxiv_year, recognise, recognise_url
from orchtrace_corpus.corpus.model.records import Loaded

YEARS_TO_PUBLICATION = 2
"""How long after its arXiv id a paper's year may be that of its publication before a warning asks."""


def check_urls(loaded: Loaded) -> Iterator[Finding]:
    """A URL that leads to another paper: it carries an id of the same kind, but not the record's."""
    for index, paper in enumerate(loaded.papers):
        for number, url in enumerate(paper.urls):
            found = recognise_url(url)
            if found is not None:
                own = getattr(paper, found.kind.value)
                if own is not None and own != found.value:
                    place = loaded.paper_places.locate(index, "urls", number)
                    yield Finding("I101", _differs(found, own), place, paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        found, named = recognise_url(exclusion.url), recognise(exclusion.identifier)
        if found and named and found.kind is named.kind and found.value != named.value:
            place = loaded.exclusion_places.locate(index, "url")
            yield Finding("I101", _differs(found, named.value), place, exclusion.id)


def check_arxiv_years(loaded: Loaded) -> Iterator[Finding]:
    """A year before the arXiv id was given, or so long after that one of the two is likely wrong."""
    for index, paper in enumerate(loaded.papers):
        if paper.arxiv_id is None or not paper.year:
            continue
        given = arxiv_year(paper.arxiv_id)
        if not given <= paper.year <= given + YEARS_TO_PUBLICATION:
            message = (
                f"year {paper.year} does not fit arXiv id {paper.arxiv_id}, which was given in {given}; "
                f"expected {given} to {given + YEARS_TO_PUBLICATION}"
            )
            yield Finding("I105", message, loaded.paper_places.locate(index, "year"), paper.key)


def _differs(found: Identifier, own: str) -> str:
    return f"the URL leads to {found.kind} {quote(found.value)}, but the record is {quote(own)}; mend one of the two"
