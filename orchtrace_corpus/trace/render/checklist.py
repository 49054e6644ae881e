"""The reporting checklist as a table, and for programs."""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.checklist import Checked, Recomputed
from orchtrace_corpus.trace.render.names import counted

_MAX_REASONS = 3


def table(checked: Sequence[Checked], name: str, traces: int) -> Table:
    """Return the checklist for people.

    Args:
        checked: The items.
        name: What the traces are called together.
        traces: How many they are.
    """
    rows: list[tuple[Cell, ...]] = []
    area = ""
    for check in checked:
        figures: tuple[Cell, ...] = (check.whole.value,)
        if traces > 1:
            figures = tuple(check.counts[kind] or None for kind in Recomputed)
        to_log = check.item.to_log if check.is_lacking else None
        rows.append((None if check.item.area == area else check.item.area.value, check.item.title, *figures, to_log))
        area = check.item.area
    columns = ("known",) if traces == 1 else tuple(kind.value for kind in Recomputed)
    title = f"{printable(name)}: {_summary(checked)}"
    if traces > 1:
        title = f"{counted(traces, 'trace')}: {_summary(checked)}"
    notes = ["docs/checklist.md says what each item rests on."]
    if any(check.counts[Recomputed.PARTLY] for check in checked):
        notes.append("partly: some of it is known, or the least that it can be; n/a: the run has nothing of it.")
    return Table("checklist", title, ("about", "report", *columns, "to log"), tuple(rows), tuple(notes), "to log")


def _summary(checked: Sequence[Checked]) -> str:
    numbers = {kind: sum(check.whole is kind for check in checked) for kind in Recomputed}
    there = len(checked) - numbers[Recomputed.NOT_APPLICABLE]
    parts = [f"{numbers[Recomputed.YES]} of {there} items can be recomputed"]
    if numbers[Recomputed.PARTLY]:
        parts.append(f"{numbers[Recomputed.PARTLY]} partly")
    if numbers[Recomputed.NO]:
        parts.append(f"{numbers[Recomputed.NO]} cannot")
    return ", ".join(parts)


def exact_table(checked: Sequence[Checked]) -> Table:
    """Return the checklist with all counts, for programs."""
    columns = ("about", "report", "recomputed", *(_KEYS[kind] for kind in Recomputed), "to_log", "reasons")
    rows: list[tuple[Cell, ...]] = [
        (
            check.item.area.value,
            check.item.title,
            check.whole.value,
            *(check.counts[kind] for kind in Recomputed),
            check.item.to_log if check.is_lacking else None,
            tuple(printable(reason, limit=300) for reason, _ in check.reasons[:_MAX_REASONS]),
        )
        for check in checked
    ]
    return Table("checklist", "", columns, tuple(rows))


_KEYS = {
    Recomputed.YES: "yes",
    Recomputed.PARTLY: "partly",
    Recomputed.NO: "no",
    Recomputed.NOT_APPLICABLE: "not_applicable",
}


def data(checked: Sequence[Checked], traces: int) -> dict[str, Any]:
    """Return the checklist for programs."""
    items = [
        {
            "about": check.item.area.value,
            "report": check.item.title,
            "columns": list(check.item.columns),
            "recomputed": check.whole.value,
            "traces": {_KEYS[kind]: check.counts[kind] for kind in Recomputed},
            "to_log": check.item.to_log if check.is_lacking else None,
            "reasons": [{"reason": printable(reason), "traces": number} for reason, number in check.reasons],
        }
        for check in checked
    ]
    return {"traces": traces, "items": items}
