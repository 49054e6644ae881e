"""Rules about contradictions in a record, between records, and between a record and the current date."""

import re
from collections.abc import Iterator

from orchtrace_corpus.base.dates import day_text
from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.identifiers import Identifier, arxiv_year, recognise, recognise_url
from orchtrace_corpus.corpus.model.records import Loaded

YEARS_TO_PUBLICATION = 2
"""The largest number of years between arXiv id and publication that raises no warning."""


def check_urls(loaded: Loaded) -> Iterator[Finding]:
    """URLs that lead to another paper: they have an identifier of the same kind as the record, but another one."""
    for index, paper in enumerate(loaded.papers):
        for position, url in enumerate(paper.urls):
            linked = recognise_url(url)
            if linked is None:
                continue
            identifier = getattr(paper, linked.kind.value)
            if identifier is not None and identifier != linked.value:
                place = loaded.paper_places.locate(index, "urls", position)
                yield Finding("I101", _url_message(linked, identifier), place, paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        linked = recognise_url(exclusion.url)
        recorded = recognise(exclusion.identifier)
        if linked and recorded and linked.kind is recorded.kind and linked.value != recorded.value:
            place = loaded.exclusion_places.locate(index, "url")
            yield Finding("I101", _url_message(linked, recorded.value), place, exclusion.id)


def check_arxiv_years(loaded: Loaded) -> Iterator[Finding]:
    """Years before the year of the arXiv id, or so long after it that one of the two is probably wrong."""
    for index, paper in enumerate(loaded.papers):
        if paper.arxiv_id is None or not paper.year:
            continue
        first = arxiv_year(paper.arxiv_id)
        last = first + YEARS_TO_PUBLICATION
        if not first <= paper.year <= last:
            message = f"year {paper.year} does not fit arXiv id {paper.arxiv_id}, which was given in {first}"
            message += f"; expected {first} to {last}"
            yield Finding("I105", message, loaded.paper_places.locate(index, "year"), paper.key)


def years_in(venue: str) -> list[str]:
    """Return the years in the name of a venue, such as 2025 in `COLM 2025`."""
    return re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", venue)


def check_venue_years(loaded: Loaded) -> Iterator[Finding]:
    """Venues whose name has another year than citations of the paper."""
    for index, paper in enumerate(loaded.papers):
        for field in ("venue", "proceedings"):
            years = years_in(getattr(paper, field) or "")
            if years and paper.cited_year and str(paper.cited_year) not in years:
                year_field = "venue_year" if paper.venue_year else "year"
                message = f"{field} names {years[0]}, but {year_field} is {paper.cited_year}, which citations give"
                place = loaded.paper_places.locate(index, field)
                yield Finding("I106", f"{message}; write venue_year: {years[0]}", place, paper.key)


def _url_message(linked: Identifier, identifier: str) -> str:
    contradiction = f"the URL leads to {linked.kind} {quote(linked.value)}, but the record is {quote(identifier)}"
    return f"{contradiction}; correct one of the two"


def check_order(loaded: Loaded) -> Iterator[Finding]:
    """Exclusions whose id is lower than an id before it: new records are added at the end, under the next id."""
    highest = 0
    highest_id = ""
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.number > highest:
            highest = exclusion.number
            highest_id = exclusion.id
        elif exclusion.id and exclusion.id != highest_id:  # a repeated id is reported by `check_exclusion_ids`
            message = (
                f"exclusion id {quote(exclusion.id)} stands behind {quote(highest_id)}; put records in order of ids"
            )
            yield Finding("F118", message, loaded.exclusion_places.locate(index, "id"), exclusion.id)


def check_promotions(loaded: Loaded) -> Iterator[Finding]:
    """Exclusions that were promoted to a paper that does not exist."""
    keys = loaded.known_keys
    if keys is None:
        return
    noun = loaded.noun.one
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.promoted_to and exclusion.promoted_to not in keys:
            message = f"there is no {noun} {quote(exclusion.promoted_to)}; name the {noun} that the record became"
            yield Finding("F117", message, loaded.exclusion_places.locate(index, "promoted_to"), exclusion.id)


def check_years(loaded: Loaded) -> Iterator[Finding]:
    """Years after the next year: no venue announces its proceedings that early."""
    latest = int(day_text()[:4]) + 1
    for index, paper in enumerate(loaded.papers):
        for field, year in (("year", paper.year), ("venue_year", paper.venue_year or 0)):
            if year > latest:
                message = f"{field} {year} has not come; the latest that can be is {latest}"
                yield Finding("F115", message, loaded.paper_places.locate(index, field), paper.key)


def check_days(loaded: Loaded) -> Iterator[Finding]:
    """Records that were added or screened in the future."""
    latest = day_text(1)  # tomorrow, because it has begun somewhere on earth
    for index, paper in enumerate(loaded.papers):
        if paper.added > latest:
            yield Finding("F116", _in_future(paper.added), loaded.paper_places.locate(index, "added"), paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.screened > latest:
            place = loaded.exclusion_places.locate(index, "screened")
            yield Finding("F116", _in_future(exclusion.screened), place, exclusion.id)


def _in_future(day: str) -> str:
    return f"{day} has not come; write the day on which it was done"
