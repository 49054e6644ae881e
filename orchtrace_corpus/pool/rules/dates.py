"""Years and days that have not come yet. The only rules that look at a clock."""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from orchtrace_corpus.errors import CommandUseError
from orchtrace_corpus.findings import Finding, quote
from orchtrace_corpus.pool.model import Loaded


def today() -> date:
    """The current day; with `SOURCE_DATE_EPOCH` set, the day of that moment (https://reproducible-builds.org/specs/source-date-epoch/).

    Raises:
        CommandUseError: `SOURCE_DATE_EPOCH` is no number of seconds.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return date.today()
    try:
        return datetime.fromtimestamp(int(epoch), tz=UTC).date()
    except (ValueError, OverflowError, OSError) as error:
        hint = "Give it as seconds since 1970-01-01, or unset it."
        raise CommandUseError(f"SOURCE_DATE_EPOCH is no time: {quote(epoch)}", hint) from error


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
