"""Read times and durations of logs, in any unit and notation, as seconds. All formats have the same limits."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

LATEST = 253_402_300_799.0
"""The last second of the year 9999, in seconds since 1970: later times cannot be written as dates."""

NO_TIME = -1.0
"""The time of a step whose row has no time."""

_LATEST_MS = LATEST * 1000
_NUMBERS = (float, int)  # bool is no number here, so types are compared, not `isinstance`


def instant(value: Any, per_second: float = 1.0) -> float | None:
    """Return a time in seconds since 1970; None for a value that is no time after 1970 and before 10000.

    A text is in ISO 8601, in UTC if it has no time zone. `per_second` is the unit of numbers: 1000 for milliseconds. 0
    is no time, because clocks that were never set have it.
    """
    if type(value) is str:
        try:
            date = datetime.fromisoformat(value)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
        return seconds if 0 < seconds <= LATEST else None
    # the comparison comes first: dividing a very large integer raises an error
    is_time = type(value) in _NUMBERS and 0 < value <= LATEST * per_second
    return value / per_second if is_time else None


def moment(stamp: Any) -> float:
    """Return the time in a text, in seconds since 1970; `NO_TIME` for any other value."""
    return _moment(stamp) if type(stamp) is str else NO_TIME


@lru_cache(maxsize=1_000)  # successive rows often have the same time
def _moment(stamp: str) -> float:
    time = instant(stamp)
    return NO_TIME if time is None else time


def moment_ms(value: Any) -> float:
    """Convert milliseconds since 1970 to seconds; return `NO_TIME` for any other value."""
    is_number = type(value) is int or type(value) is float  # twice as fast as `in _NUMBERS`
    return value / 1000 if is_number and 0 < value <= _LATEST_MS else NO_TIME


def duration(value: Any, per_second: float = 1.0) -> float:
    """Return a duration in seconds; 0 for a value that is no duration. `per_second` is as in `instant`."""
    is_duration = type(value) in _NUMBERS and 0 <= value <= LATEST * per_second
    return value / per_second if is_duration else 0.0
