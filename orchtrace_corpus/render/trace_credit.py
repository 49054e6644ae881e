"""Credit as tables and as JSON."""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.findings import printable
from orchtrace_corpus.render.table import Table
from orchtrace_corpus.render.trace_measures import shown
from orchtrace_corpus.trace.credit.assign import Assignment


def tables(assignments: Sequence[Assignment], unit: str, *, exact: bool) -> list[Table]:
    """One table for each trace: its parts by falling credit, with what the figures rest on."""
    found = []
    for one in assignments:
        sampled = any(share.standard_error is not None for share in one.credits.values())
        rows = tuple(
            (
                printable(name),
                shown(share.credit, exact=exact),
                *((shown(share.standard_error, exact=exact),) if sampled else ()),
            )
            for name, share in sorted(one.credits.items(), key=lambda item: -item[1].credit)
        )
        columns = (unit, "credit", *(("standard error",) if sampled else ()))
        found.append(
            Table(
                printable(one.trace_id), printable(one.trace_id), columns, rows, (f"Basis: {one.basis}.", *_sums(one))
            )
        )
    return found


def _sums(one: Assignment) -> tuple[str, ...]:
    if one.total is None:
        return ()
    equal = "equals" if one.is_efficient else "differs from"
    return (f"The credits' sum {one.sum:.6g} {equal} what the whole team adds to nobody, {one.total:.6g}.",)


def data(assignments: Sequence[Assignment], unit: str, method: str) -> dict[str, Any]:
    """The same for programs."""
    return {
        "unit": unit,
        "method": method,
        "traces": [
            {
                "trace_id": one.trace_id,
                "basis": one.basis,
                "sum": one.sum,
                "total": one.total,
                "credits": [
                    {"part": name, "credit": share.credit, "standard_error": share.standard_error}
                    for name, share in one.credits.items()
                ],
            }
            for one in assignments
        ],
    }
