"""The current day, and the only look at a clock."""

import os
from datetime import UTC, date, datetime

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote


def today() -> date:
    """The current day; with `SOURCE_DATE_EPOCH` set, the day of that moment (https://reproducible-builds.org/specs/source-date-epoch/).

    Raises:
        CommandUseError: `SOURCE_DATE_EPOCH` is not a number of seconds.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return date.today()
    try:
        return datetime.fromtimestamp(int(epoch), tz=UTC).date()
    except (ValueError, OverflowError, OSError) as error:
        hint = "Give it as seconds since 1970-01-01, or unset it."
        raise CommandUseError(f"SOURCE_DATE_EPOCH is not a time: {quote(epoch)}", hint) from error
