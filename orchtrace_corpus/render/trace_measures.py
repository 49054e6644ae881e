"""Measures and ledgers of traces as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchtrace_corpus.findings import printable
from orchtrace_corpus.render.table import Cell, Table
from orchtrace_corpus.trace.measures import DEFINITIONS, Measure
from orchtrace_corpus.trace.measures.ledger import KINDS, Entry
from orchtrace_corpus.trace.model import Trace, Unit

_DIGITS = 6
"""Significant digits shown to people; programs get every digit."""


def unit_of(name: str, trace: Trace) -> str:
    """The unit of a measure of this trace: a trace that counts steps has no seconds."""
    unit = DEFINITIONS[name].unit
    return "step" if unit == "s" and trace.clock.unit is Unit.STEP else unit


def one(trace: Trace, measures: Mapping[str, Measure], *, exact: bool) -> Table:
    """The measures of one trace: name, value, unit, and why there is no value."""
    rows: list[tuple[Cell, ...]] = [
        (name, shown(found.value, exact=exact), unit_of(name, trace), printable(found.reason, limit=300) or None)
        for name, found in measures.items()
    ]
    return Table("measures", printable(trace.trace_id), ("measure", "value", "unit", "no value because"), tuple(rows),
                 wrapped="no value because")  # fmt: skip


def row(trace: Trace, measures: Mapping[str, Measure], *, exact: bool) -> tuple[Cell, ...]:
    """The measures of one trace of several, as a row of their table."""
    return (printable(trace.trace_id), *(shown(found.value, exact=exact) for found in measures.values()))


def several(names: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> Table:
    """The measures of several traces, one trace in each row."""
    return Table("traces", "", ("trace", *names), tuple(rows))


def data(trace: Trace, measures: Mapping[str, Measure]) -> dict[str, Any]:
    """The measures of one trace for programs."""
    return {
        "trace_id": trace.trace_id,
        "measures": {
            name: {
                "value": found.value,
                "unit": unit_of(name, trace),
                "reason": found.reason or None,
                "events": list(found.events),
            }
            for name, found in measures.items()
        },
    }


def spent(trace: Trace, by: str, entries: Sequence[Entry]) -> Table:
    """A ledger of tokens and money of one trace."""
    rows = tuple(
        (
            printable(entry.name) or f"(no {by})",
            entry.events,
            *(shown(entry.tokens[kind], exact=True) for kind in KINDS),
            shown(entry.total, exact=True),
            entry.without_tokens,
            shown(entry.cost_usd, exact=False),
        )
        for entry in entries
    )
    notes = ("Empty: not known. Reasoning is a part of output. Copied context is not counted.",)
    columns = (by, "events", *KINDS, "total", "without tokens", "cost_usd")
    return Table(f"ledger_by_{by}", f"{printable(trace.trace_id)}: tokens and cost by {by}", columns, rows, notes)


def shown(value: float | None, *, exact: bool) -> Cell:
    """A figure without a needless fraction; rounded unless it is for programs."""
    if value is None:
        return None
    rounded = value if exact or value == int(value) else float(f"{value:.{_DIGITS}g}")
    whole = int(rounded)
    return whole if rounded == whole else rounded
