"""Credit as tables and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.credit.assign import Assignment
from orchtrace_corpus.trace.render.measures import shown

_PART_OF = {"token": "event"}
"""What the rows are where they are not the parts of the unit."""


def tables(assignments: Sequence[Assignment], unit: str) -> list[Table]:
    """One table for each trace: its parts by falling credit, with what the figures rest on."""
    found = []
    for one in assignments:
        columns, rows = _figures([one], unit, exact=False)
        name = printable(one.trace_id)
        found.append(Table(name, name, columns, tuple(row[1:] for row in rows), tuple(_notes(one, unit))))
    return found


def exact(assignments: Sequence[Assignment], unit: str) -> Table:
    """The figures of all traces with every digit in one table, whose first column names the trace."""
    columns, rows = _figures(assignments, unit, exact=True)
    return Table("credit", "", ("trace", *columns), tuple(rows))


def _figures(
    assignments: Sequence[Assignment], unit: str, *, exact: bool
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """The columns, and the parts of each trace by falling credit, each behind the name of the trace."""
    sampled = any(share.standard_error is not None for one in assignments for share in one.credits.values())
    rows = [
        (
            printable(one.trace_id),
            printable(name),
            shown(share.credit, exact=exact),
            *((shown(share.standard_error, exact=exact),) if sampled else ()),
        )
        for one in assignments
        for name, share in sorted(one.credits.items(), key=lambda item: -item[1].credit)
    ]
    return (_PART_OF.get(unit, unit), "credit", *(("standard error",) if sampled else ())), rows


def _notes(one: Assignment, unit: str) -> Iterator[str]:
    """What the figures rest on, how exact they are, and whether they sum up."""
    if unit == "token":
        yield "Every token of an event has the credit of the event; a trace has no single tokens."
    yield f"Basis: {one.basis}."
    if one.precision:
        yield f"{one.precision}."
    if one.whole is not None and one.nobody is not None:
        sign = "=" if one.is_efficient else "is not"
        yield (
            f"Sum of credits {one.sum:.6g} {sign} value of the whole team {one.whole:.6g} "
            f"- value of nobody {one.nobody:.6g}."
        )


def data(assignments: Sequence[Assignment], unit: str, method: str, channel: str) -> dict[str, Any]:
    """The same for programs."""
    return {
        "unit": unit,
        "method": method,
        "channel": channel,
        "traces": [
            {
                "trace_id": one.trace_id,
                "basis": one.basis,
                "sum": one.sum,
                "total": one.total,
                "whole": one.whole,
                "nobody": one.nobody,
                "is_exact": one.samples is None,
                "samples": one.samples,
                "warnings": list(one.warnings),
                "credits": [
                    {"part": name, "credit": share.credit, "standard_error": share.standard_error}
                    for name, share in one.credits.items()
                ],
            }
            for one in assignments
        ],
    }
