"""Years and days that have not come yet. The only rules that look at a clock."""

from collections.abc import Iterator
from datetime import timedelta

from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.corpus.model.records import Loaded


def check_years(loaded: Loaded) -> Iterator[Finding]:
    """A year after the next one: no venue announces its proceedings that early."""
    latest = today().year + 1
    for index, paper in enumerate(loaded.papers):
        if paper.year > latest:
            message = f"year {paper.year} has not come; the latest that can be is {latest}"
            yield Finding("F115", message, loaded.paper_places.locate(index, "year"), paper.key)


def check_days(loaded: Loaded) -> Iterator[Finding]:
    """A record added or screened in the future. Tomorrow will do: it has begun somewhere on earth."""
    latest = (today() + timedelta(days=1)).isoformat()
    for index, paper in enumerate(loaded.papers):
        if paper.added > latest:
            yield Finding("F116", _in_future(paper.added), loaded.paper_places.locate(index, "added"), paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.screened > latest:
            place = loaded.exclusion_places.locate(index, "screened")
            yield Finding("F116", _in_future(exclusion.screened), place, exclusion.id)


def _in_future(day: str) -> str:
    return f"{day} has not come; write the day on which it was done"
