"""Totals over many runs as tables, and as figures for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import display_width
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.totals import Breakdown, Grouping, Total, Totals
from orchtrace_corpus.trace.model.import_report import Prices
from orchtrace_corpus.trace.render.imports import prices_of
from orchtrace_corpus.trace.render.names import break_lines, counted, duration, money, quantity

USUAL = (Grouping.DAY, Grouping.PROJECT, Grouping.MODEL)
"""The default groupings of totals."""

AT_LEAST = "+"
"""Stands behind a figure that is only known in part."""

_COST, _WORKED = "USD", "worked"
_DISPENSABLE = ("answers", "cache write", "cache read", "input", "output", "sessions")
"""The columns that a narrow terminal does without, in this order."""

_MAX_NAME = 40
_UNKNOWN = {
    Grouping.DAY: "(no date)",
    Grouping.MONTH: "(no date)",
    Grouping.PROJECT: "(unknown)",
    Grouping.MODEL: "(not named)",
}
_EXACT = (
    "sessions", "answers", "input", "output", "cache_read", "cache_write", "tokens", "tokens_at_least", "cost_usd",
    "cost_at_least", "worked_s", "worked_at_least",
)  # fmt: skip


def tables(
    breakdowns: Mapping[Grouping, Breakdown], everything: Total, *, has_prices: bool, width: int | None
) -> list[Table]:
    """Return a table for each grouping, all with the same columns.

    Args:
        breakdowns: The totals by grouping.
        everything: The total of all runs.
        has_prices: Whether there is a column of costs.
        width: The cells of the terminal, in which some columns may have no room; None for none.
    """
    by_grouping = {grouping: _rows(grouping, breakdown, everything) for grouping, breakdown in breakdowns.items()}
    rows = [row for own in by_grouping.values() for row in own]
    names = [display_width(text) for grouping, own in by_grouping.items() for text in (grouping, *(n for n, _ in own))]
    columns = [name for name in _texts(everything) if has_prices or name != _COST]
    widths = {name: max(len(name), *(len(texts[name]) for _, texts in rows)) for name in columns}
    for name in _DISPENSABLE:
        if width is not None and max(names) + sum(widths[column] + 1 for column in columns) > width:
            columns.remove(name)
    sessions = counted(everything.sessions, "session")
    return [
        Table(
            f"by_{grouping}",
            f"{sessions} by {grouping}",
            (grouping.value, *(name.rjust(widths[name]) for name in columns)),
            tuple((name, *(texts[column].rjust(widths[column]) for column in columns)) for name, texts in own),
        )
        for grouping, own in by_grouping.items()
    ]


def _rows(grouping: Grouping, breakdown: Breakdown, everything: Total) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a table, each with its name and with what stands in its columns."""
    rows = [(_name(grouping, total), _texts(total)) for total in breakdown.totals]
    if breakdown.rest is not None:
        is_by_time = grouping in (Grouping.DAY, Grouping.MONTH)
        name = _one_line(quantity(breakdown.others, f"{'earlier' if is_by_time else 'more'} {grouping}"))
        rows.insert(0 if is_by_time else len(rows), (name, _texts(breakdown.rest)))
    return [*rows, ("all", _texts(everything))] if len(rows) > 1 else rows


def notes(
    breakdowns: Mapping[Grouping, Breakdown], everything: Total, runs: int, zone: str, *, prices: Prices | None = None
) -> Iterator[str]:
    """Yield what a reader of the tables should know.

    Args:
        breakdowns: The totals by grouping.
        everything: The total of all runs.
        runs: How many these are.
        zone: What the time zone of the days is called.
        prices: The prices that costs were computed with; None where the logs state costs, or there are none.
    """
    yield f"Days are those of {zone}; --timezone names another time zone."
    yield "Worked: while at least one agent did; by model, while it answered. Sessions side by side count once."
    if prices is not None:
        yield f"Costs are at {prices_of(prices.date, '', prices.source)}."
    if (
        everything.has_more_tokens
        or everything.has_more_time
        or (everything.costs_more and everything.cost_usd is not None)
    ):
        yield f"{AT_LEAST} at least: something in the logs of these sessions is unknown."
    if without := runs - everything.sessions:
        have = "session has" if without == 1 else "sessions have"
        yield f"{without:,} more {have} no answers of their own: copies of others, or nothing was asked."
    folded = [grouping for grouping, breakdown in breakdowns.items() if breakdown.rest is not None]
    if folded:
        yield f"All rows: {' or '.join(f'--by {grouping}' for grouping in folded)}."


def exact_tables(totals: Totals, groupings: Sequence[Grouping]) -> list[Table]:
    """Return a table for each grouping with every digit, for programs."""
    return [
        Table(
            f"by_{grouping}",
            "",
            (grouping.value, *_EXACT),
            tuple((printable(total.name) or None, *_figures(total)) for total in totals.by(grouping).totals),
        )
        for grouping in groupings
    ]


def data(totals: Totals, zone: str, groupings: Sequence[Grouping]) -> dict[str, Any]:
    """Return the totals for programs; what is unknown is null."""
    content: dict[str, Any] = {"timezone": zone}
    for grouping in groupings:
        content[f"by_{grouping}"] = [
            {grouping.value: total.name or None, **_record(total)} for total in totals.by(grouping).totals
        ]
    return {**content, "all": _record(totals.all())}


def _record(total: Total) -> dict[str, Cell]:
    return dict(zip(_EXACT, _figures(total), strict=True))


def _figures(total: Total) -> tuple[Cell, ...]:
    return (
        total.sessions,
        total.answers,
        *total.tokens.values(),
        total.total,
        total.has_more_tokens,
        total.cost_usd,
        total.costs_more,
        round(total.seconds, 6),
        total.has_more_time,
    )


def _texts(total: Total) -> dict[str, str]:
    """Return what stands in the row of a total, by column."""
    more = AT_LEAST if total.has_more_tokens else ""
    kinds = {kind.replace("_", " "): f"{tokens:,}" if tokens else "" for kind, tokens in total.tokens.items()}
    cost = ""
    if total.cost_usd is not None:
        cost = f"{money(total.cost_usd)}{AT_LEAST if total.costs_more else ''}"
    worked = ""
    if total.seconds:
        worked = f"{_one_line(duration(total.seconds))}{AT_LEAST if total.has_more_time else ''}"
    return {
        "sessions": f"{total.sessions:,}",
        "answers": f"{total.answers:,}",
        **kinds,
        "tokens": "" if total.total is None else f"{total.total:,}{more}",
        _COST: cost,
        _WORKED: worked,
    }


def _name(grouping: Grouping, total: Total) -> str:
    name = printable(total.name, limit=_MAX_NAME)
    return name or _UNKNOWN.get(grouping, "")


def _one_line(text: str) -> str:
    return break_lines(text, _MAX_NAME * 2)[0]
