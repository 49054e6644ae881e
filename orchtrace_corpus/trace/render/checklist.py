"""The reporting checklist: as tables, and as JSON values."""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.checklist import CheckedItem, Recomputed
from orchtrace_corpus.trace.render.names import counted

_MAX_REASONS = 3
_KEYS = {
    Recomputed.YES: "yes",
    Recomputed.PARTLY: "partly",
    Recomputed.NO: "no",
    Recomputed.NOT_APPLICABLE: "not_applicable",
}


def table(checked: Sequence[CheckedItem], name: str, traces: int) -> Table:
    """Return the checklist of one trace with a name, or of several traces with their counts."""
    columns: tuple[str, ...] = ("about", "report", "known", "to log")
    title = printable(name)
    if traces > 1:
        columns = ("about", "report", *(kind.value for kind in Recomputed), "to log")
        title = counted(traces, "trace")
    rows: list[tuple[Cell, ...]] = []
    previous_area = ""
    for check in checked:
        figures: tuple[Cell, ...] = (check.overall.value,)
        if traces > 1:
            figures = tuple(check.counts[kind] or None for kind in Recomputed)
        area = None if check.item.area == previous_area else check.item.area.value
        previous_area = check.item.area
        rows.append((area, check.item.title, *figures, _to_log(check)))
    notes = ["docs/checklist.md says what each item rests on."]
    if any(check.counts[Recomputed.PARTLY] for check in checked):
        notes.append("partly: some of it is known, or the least that it can be; n/a: the run has nothing of it.")
    return Table("checklist", f"{title}: {_summary(checked)}", columns, tuple(rows), tuple(notes), "to log")


def _summary(checked: Sequence[CheckedItem]) -> str:
    counts = {kind: sum(check.overall is kind for check in checked) for kind in Recomputed}
    applicable = len(checked) - counts[Recomputed.NOT_APPLICABLE]
    parts = [f"{counts[Recomputed.YES]} of {applicable} items can be recomputed"]
    if counts[Recomputed.PARTLY]:
        parts.append(f"{counts[Recomputed.PARTLY]} partly")
    if counts[Recomputed.NO]:
        parts.append(f"{counts[Recomputed.NO]} cannot")
    return ", ".join(parts)


def _to_log(check: CheckedItem) -> str | None:
    return check.item.to_log if check.is_incomplete else None


def exact_table(checked: Sequence[CheckedItem]) -> Table:
    """Return the checklist with all counts, for programs."""
    columns = ("about", "report", "recomputed", *_KEYS.values(), "to_log", "reasons")
    rows: list[tuple[Cell, ...]] = [
        (
            check.item.area.value,
            check.item.title,
            check.overall.value,
            *(check.counts[kind] for kind in _KEYS),
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
            "traces": {key: check.counts[kind] for kind, key in _KEYS.items()},
            "to_log": _to_log(check),
            "reasons": [{"reason": printable(reason), "traces": count} for reason, count in check.reasons],
        }
        for check in checked
    ]
    return {"traces": traces, "items": items}
