"""Contradictions in a record, between records, and to the current date."""

import re
from collections.abc import Iterator

from orchtrace_corpus.base.dates import day_text
from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.identifiers import Identifier, arxiv_year, recognise, recognise_url
from orchtrace_corpus.corpus.model.records import Loaded

YEARS_TO_PUBLICATION = 2
"""The largest number of years between a paper's arXiv id and its publication without a warning."""


def check_urls(loaded: Loaded) -> Iterator[Finding]:
    """A URL that leads to another paper: it has an id of the same kind, but not the record's."""
    for index, paper in enumerate(loaded.papers):
        for position, url in enumerate(paper.urls):
            linked = recognise_url(url)
            own_id = getattr(paper, linked.kind.value) if linked else None
            if linked and own_id is not None and own_id != linked.value:
                place = loaded.paper_places.locate(index, "urls", position)
                yield Finding("I101", _differs(linked, own_id), place, paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        linked, identifier = recognise_url(exclusion.url), recognise(exclusion.identifier)
        if linked and identifier and linked.kind is identifier.kind and linked.value != identifier.value:
            place = loaded.exclusion_places.locate(index, "url")
            yield Finding("I101", _differs(linked, identifier.value), place, exclusion.id)


def check_arxiv_years(loaded: Loaded) -> Iterator[Finding]:
    """A year before the arXiv id was given, or so long after that one of the two is likely wrong."""
    for index, paper in enumerate(loaded.papers):
        if paper.arxiv_id is None or not paper.year:
            continue
        id_year = arxiv_year(paper.arxiv_id)
        if not id_year <= paper.year <= id_year + YEARS_TO_PUBLICATION:
            message = f"year {paper.year} does not fit arXiv id {paper.arxiv_id}, which was given in {id_year}"
            message += f"; expected {id_year} to {id_year + YEARS_TO_PUBLICATION}"
            yield Finding("I105", message, loaded.paper_places.locate(index, "year"), paper.key)


def named_years(venue: str) -> list[str]:
    """Return the years in the name of a venue, such as 2025 in `COLM 2025`."""
    return re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", venue)


def check_venue_years(loaded: Loaded) -> Iterator[Finding]:
    """A venue whose name has another year than the one that citations give."""
    for index, paper in enumerate(loaded.papers):
        for field in ("venue", "proceedings"):
            years = named_years(getattr(paper, field) or "")
            if years and paper.cited_year and str(paper.cited_year) not in years:
                cited = "venue_year" if paper.venue_year else "year"
                message = f"{field} names {years[0]}, but {cited} is {paper.cited_year}, which citations give"
                place = loaded.paper_places.locate(index, field)
                yield Finding("I106", f"{message}; write venue_year: {years[0]}", place, paper.key)


def _differs(linked: Identifier, actual: str) -> str:
    contradiction = f"the URL leads to {linked.kind} {quote(linked.value)}, but the record is {quote(actual)}"
    return f"{contradiction}; correct one of the two"


def check_order(loaded: Loaded) -> Iterator[Finding]:
    """An id that is not above all before it: new records are added at the end, under the next id."""
    highest, holder = 0, ""
    for index, exclusion in enumerate(loaded.exclusions):
        position = int(exclusion.id[1:] or 0)
        if position > highest:
            highest, holder = position, exclusion.id
        elif exclusion.id and exclusion.id != holder:
            message = f"exclusion id {quote(exclusion.id)} stands behind {quote(holder)}; put records in order of ids"
            yield Finding("F118", message, loaded.exclusion_places.locate(index, "id"), exclusion.id)


def check_promotions(loaded: Loaded) -> Iterator[Finding]:
    """A promotion to a paper that is not there."""
    keys, noun = loaded.known_keys, loaded.noun.one
    for index, exclusion in enumerate(loaded.exclusions):
        if keys is not None and exclusion.promoted_to and exclusion.promoted_to not in keys:
            message = f"there is no {noun} {quote(exclusion.promoted_to)}; name the {noun} that the record became"
            yield Finding("F117", message, loaded.exclusion_places.locate(index, "promoted_to"), exclusion.id)


def check_years(loaded: Loaded) -> Iterator[Finding]:
    """A year after the next one: no venue announces its proceedings that early."""
    latest = int(day_text()[:4]) + 1
    for index, paper in enumerate(loaded.papers):
        for field, year in (("year", paper.year), ("venue_year", paper.venue_year or 0)):
            if year > latest:
                message = f"{field} {year} has not come; the latest that can be is {latest}"
                yield Finding("F115", message, loaded.paper_places.locate(index, field), paper.key)


def check_days(loaded: Loaded) -> Iterator[Finding]:
    """A record added or screened in the future. Tomorrow will do: it has begun somewhere on earth."""
    latest = day_text(1)
    for index, paper in enumerate(loaded.papers):
        if paper.added > latest:
            yield Finding("F116", _in_future(paper.added), loaded.paper_places.locate(index, "added"), paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.screened > latest:
            place = loaded.exclusion_places.locate(index, "screened")
            yield Finding("F116", _in_future(exclusion.screened), place, exclusion.id)


def _in_future(day: str) -> str:
    return f"{day} has not come; write the day on which it was done"
