"""The reporting checklist: as tables, and as JSON values."""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.checklist import CheckedItem, Recomputed
from orchtrace_corpus.trace.render.names import format_count

_MAX_REASONS = 3
_COLUMNS = {
    Recomputed.YES: "yes",
    Recomputed.PARTLY: "partly",
    Recomputed.NO: "no",
    Recomputed.NOT_APPLICABLE: "not_applicable",
}


def table(checked: Sequence[CheckedItem], name: str, traces: int) -> Table:
    """Return the checklist: for one trace, given by its name, what is known; for several traces, counts of traces."""
    columns: tuple[str, ...] = ("about", "report", "known", "to log")
    title = printable(name)
    if traces > 1:
        columns = ("about", "report", *(answer.value for answer in Recomputed), "to log")
        title = format_count(traces, "trace")
    rows: list[tuple[Cell, ...]] = []
    previous_area = ""
    for check in checked:
        answers: tuple[Cell, ...] = (check.overall.value,)
        if traces > 1:
            answers = tuple(check.counts[answer] or None for answer in Recomputed)
        area = None
        if check.item.area != previous_area:  # only the first row of an area names it
            area = check.item.area.value
        previous_area = check.item.area
        rows.append((area, check.item.title, *answers, _to_log(check)))
    notes = ["docs/checklist.md says what each item rests on."]
    if any(check.counts[Recomputed.PARTLY] for check in checked):
        notes.append("partly: some of it is known, or the least that it can be; n/a: the run has nothing of it.")
    return Table("checklist", f"{title}: {_summary(checked)}", columns, tuple(rows), tuple(notes), "to log")


def _summary(checked: Sequence[CheckedItem]) -> str:
    counts = {answer: sum(check.overall is answer for check in checked) for answer in Recomputed}
    applicable = len(checked) - counts[Recomputed.NOT_APPLICABLE]
    parts = [f"{counts[Recomputed.YES]} of {applicable} items can be recomputed"]
    if counts[Recomputed.PARTLY]:
        parts.append(f"{counts[Recomputed.PARTLY]} partly")
    if counts[Recomputed.NO]:
        parts.append(f"{counts[Recomputed.NO]} cannot")
    return ", ".join(parts)


def _to_log(check: CheckedItem) -> str | None:
    """Return what a log would have to record for an item that cannot be recomputed in full."""
    return check.item.to_log if check.is_incomplete else None


def exact_table(checked: Sequence[CheckedItem]) -> Table:
    """Return the checklist with all counts, for programs."""
    columns = ("about", "report", "recomputed", *_COLUMNS.values(), "to_log", "reasons")
    rows: list[tuple[Cell, ...]] = [
        (
            check.item.area.value,
            check.item.title,
            check.overall.value,
            *(check.counts[answer] for answer in _COLUMNS),
            _to_log(check),
            tuple(printable(reason, limit=300) for reason, _ in check.reasons[:_MAX_REASONS]),
        )
        for check in checked
    ]
    return Table("checklist", "", columns, tuple(rows))


def data(checked: Sequence[CheckedItem], traces: int) -> dict[str, Any]:
    """Return the checklist for programs."""
    items = [
        {
            "about": check.item.area.value,
            "report": check.item.title,
            "columns": list(check.item.columns),
            "recomputed": check.overall.value,
            "traces": {column: check.counts[answer] for answer, column in _COLUMNS.items()},
            "to_log": _to_log(check),
            "reasons": [{"reason": printable(reason), "traces": count} for reason, count in check.reasons],
        }
        for check in checked
    ]
    return {"traces": traces, "items": items}
