"""Instants and durations of a log, in seconds; one limit for all formats, whatever their unit and notation."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

LATEST = 253_402_300_799.0
"""The last second of the year 9999, in seconds since 1970: later times cannot be written as dates."""

NO_TIME = -1.0
"""The time of a step whose row has none."""

_LATEST_MS = LATEST * 1000
_NUMBERS = (float, int)  # and not bool


def instant(value: Any, per_second: float = 1.0) -> float | None:
    """Return a time in seconds since 1970; None for any value that is no time between 1970 and 9999.

    0 is no time, as it is written by a clock that was never set.

    Args:
        value: A number, or a text in ISO 8601, in UTC unless it says otherwise.
        per_second: The unit of numbers, such as 1000 for milliseconds.
    """
    if type(value) is str:
        try:
            moment = datetime.fromisoformat(value)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
        return seconds if 0 < seconds <= LATEST else None
    # compared before it is divided: a very large integer cannot be
    is_time = type(value) in _NUMBERS and 0 < value <= LATEST * per_second
    return value / per_second if is_time else None


def moment(stamp: Any) -> float:
    """Return the time that a text states, in seconds since 1970; `NO_TIME` for any other value."""
    return _moment(stamp) if type(stamp) is str else NO_TIME


@lru_cache(maxsize=1_000)  # several rows mostly have the same time
def _moment(stamp: str) -> float:
    time = instant(stamp)
    return NO_TIME if time is None else time


def moment_ms(value: Any) -> float:
    """Return a time given in milliseconds since 1970, in seconds; `NO_TIME` for any other value."""
    is_number = type(value) is int or type(value) is float  # twice as fast as `in _NUMBERS`
    return value / 1000 if is_number and 0 < value <= _LATEST_MS else NO_TIME


def duration(value: Any, per_second: float = 1.0) -> float:
    """Return a length of time in seconds; 0 for any other value."""
    is_length = type(value) in _NUMBERS and 0 <= value <= LATEST * per_second
    return value / per_second if is_length else 0.0
