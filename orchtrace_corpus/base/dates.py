"""The current day. No other module asks for it. `datetime` is avoided, because its import takes a millisecond."""

import os
import time

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote

if TYPE_CHECKING:
    from datetime import date


def day_text(days_later: int = 0) -> str:
    """Return the current day, or the day that is `days_later`, as `YYYY-MM-DD`.

    `SOURCE_DATE_EPOCH` sets the current time (https://reproducible-builds.org/specs/source-date-epoch/).

    Raises:
        CommandUseError: `SOURCE_DATE_EPOCH` is not a number of seconds.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        now = time.gmtime(int(epoch)) if epoch else time.localtime()
        # Noon, so that no change to or from summer time moves the day. `mktime` accepts days beyond the month's end.
        noon = time.mktime((now.tm_year, now.tm_mon, now.tm_mday + days_later, 12, 0, 0, 0, 0, -1))
        return time.strftime("%Y-%m-%d", time.localtime(noon))
    except (ValueError, OverflowError, OSError) as error:
        hint = "Give it as seconds since 1970-01-01, or unset it."
        raise CommandUseError(f"SOURCE_DATE_EPOCH is not a time: {quote(epoch or '')}", hint) from error


def today() -> "date":
    """Return the current day.

    Raises:
        CommandUseError: `SOURCE_DATE_EPOCH` is not a number of seconds.
    """
    from datetime import date

    return date.fromisoformat(day_text())


def is_iso_date(text: str) -> bool:
    """Return True if a text is a valid date as `YYYY-MM-DD`."""
    if len(text) != 10 or text[4] != "-" or text[7] != "-" or not text.isascii():
        return False
    year, month, day = text[:4], text[5:7], text[8:]
    if not (year + month + day).isdigit():
        return False
    last_day = 31
    if month == "02":
        is_leap_year = int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0)
        last_day = 29 if is_leap_year else 28
    elif month in ("04", "06", "09", "11"):
        last_day = 30
    return year != "0000" and "01" <= month <= "12" and 1 <= int(day) <= last_day
