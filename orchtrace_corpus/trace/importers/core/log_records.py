"""Log records: events that a program writes by a logging handler, inside its records or behind a prefix on a line."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.times import LATEST, NO_TIME, instant
from orchtrace_corpus.trace.importers.core.values import mapping
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport

_TIMES = ("time", "timestamp", "created", "ts", "@timestamp", "asctime", "datetime")
"""The names that handlers give the time of a record."""
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_MAX_WRAPPERS = 3
_MAX_PREFIX = 300

IsEvent = Callable[[Mapping[str, Any]], bool]


def event_in(
    record: Mapping[str, Any], is_event: IsEvent, marks: Sequence[str], depth: int = 0
) -> tuple[dict[str, Any], float]:
    """Return the event inside a record, as an object or as a text, and the time of the record; empty if it has none.

    Args:
        record: The record.
        is_event: Tells an event from other objects.
        marks: Words of which each event has one.
        depth: How many records are around this one.
    """
    for value in record.values():
        inner = mapping(value)
        if type(value) is str and any(map(value.__contains__, marks)):
            prefix = 0 if depth else max(value.find('{"', 0, _MAX_PREFIX), 0)
            inner = mapping(decoded(value[prefix:]))
        if is_event(inner):
            return inner, _time_of(record)
        if inner and depth < _MAX_WRAPPERS:
            event, time = event_in(inner, is_event, marks, depth + 1)
            if event:
                return event, time if time != NO_TIME else _time_of(record)
    return {}, NO_TIME


def _time_of(record: Mapping[str, Any]) -> float:
    """Return when a record was made; `NO_TIME` for a clock time without its zone, which may be any."""
    for name in _TIMES:
        value = record.get(name)
        value = value.get("timestamp") if type(value) is dict else value
        if type(value) is str and not _ZONE.search(value):
            continue
        is_milliseconds = isinstance(value, (float, int)) and value > LATEST
        if (time := instant(value, 1_000 if is_milliseconds else 1)) is not None:
            return time
    return NO_TIME


def events_of_text(file: LogFile, report: ImportReport, marks: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects at the ends of lines, each with its line; other lines are of other loggers.

    Args:
        file: The file.
        report: Where events that cannot be read are counted.
        marks: Words of which each event has one.
    """
    with open_regular(file.path) as handle:
        for line, text in enumerate(iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""), 1):
            event = decoded(text[max(text.find(b'{"'), 0) :])
            if type(event) is dict:
                report.records_read += 1
                yield line, event
            elif any(f'"{mark}"'.encode() in text for mark in marks):
                report.drop(Drop.NO_JSON if text.endswith(b"\n") else Drop.CUT_OFF, file.name, line)
