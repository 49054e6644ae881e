"""The flow of records through searching and screening, as tables and as values for programs."""

from typing import Any

from orchtrace_corpus.base.text.table import Cell, Table, envelope
from orchtrace_corpus.corpus.analysis.flow import OTHER_REASON, Flow, Screening, total

_COLUMNS = tuple("run identified duplicates known refused new screened excluded included open awaiting".split())
_COUNTS = ("found", "repeated", "known", "refused", "new", "screened")


def tables(screening: Screening, *, turned: bool = False) -> list[Table]:
    """Return the flow of each run and of all runs, in columns if `turned`, and the exclusions by stage and reason."""
    included, excluded, flows, all_runs, by_hand, stage = screening
    unknown = (None,) * 5
    rows: list[tuple[Cell, ...]] = [("published", *unknown, included + excluded, excluded, included, 0, 0)]
    rows += [_row(flow, flow.name) for flow in flows]
    if flows:
        rows.append(_row(all_runs, "all runs"))
    if by_hand.new:
        rows.append(_row(by_hand, by_hand.name))
    columns, *rows = zip(_COLUMNS, *rows, strict=True) if turned else (_COLUMNS, *rows)
    screening_tables = [Table("runs", "Screening", tuple(map(str, columns)), tuple(rows))]
    later_exclusions = total((all_runs, by_hand)).excluded
    if later_exclusions:
        labels = {term.id: term.label for term in stage.terms} if stage else {}
        counts = [
            (labels.get(tag, tag) or None, rule, count) for (tag, rule), count in sorted(later_exclusions.items())
        ]
        screening_tables.append(Table("excluded", "Excluded since", ("stage", "rule", "records"), tuple(counts)))
    return screening_tables


def _row(flow: Flow, name: str) -> tuple[Cell, ...]:
    counts = (getattr(flow, field) for field in _COUNTS)
    return (name, *counts, sum(flow.excluded.values()), flow.included, flow.coding, flow.awaiting)


def data(screening: Screening) -> str:
    """Return the flow of each run and of all runs as JSON."""
    published = {"included": screening.included, "excluded": screening.excluded}
    runs = [_mapping(flow) for flow in screening.flows]
    whole, by_hand = _mapping(screening.whole), _mapping(screening.by_hand)
    return envelope("screening", {"published": published, "runs": runs, "all": whole, "by_hand": by_hand})


def _mapping(flow: Flow) -> dict[str, Any]:
    counts = {name: getattr(flow, name) for name in (*_COUNTS, "included", "coding", "awaiting")}
    excluded = [
        {"stage": stage, "rule": None if rule == OTHER_REASON else rule, "records": count}
        for (stage, rule), count in sorted(flow.excluded.items())
    ]
    return {"run": flow.name, **counts, "by_source": dict(flow.by_source), "excluded": excluded}
