"""Totals over many runs: as tables, and as JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import display_width
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.totals import Breakdown, Grouping, Total, Totals
from orchtrace_corpus.trace.model.import_report import Prices
from orchtrace_corpus.trace.render.imports import prices_of
from orchtrace_corpus.trace.render.names import duration, format_count, money, restore_blanks

DEFAULT_GROUPINGS = (Grouping.DAY, Grouping.PROJECT, Grouping.MODEL)
"""The default groupings of totals."""

AT_LEAST = "+"
"""The sign after a figure that is only known in part."""

_COST = "USD"
_DISPENSABLE = ("answers", "cache write", "cache read", "input", "output", "sessions")
"""The columns that a narrow terminal leaves out, in this order."""

_MAX_NAME = 40
_UNKNOWN = {
    Grouping.DAY: "(no date)",
    Grouping.MONTH: "(no date)",
    Grouping.PROJECT: "(unknown)",
    Grouping.MODEL: "(not named)",
}
_EXACT_COLUMNS = (
    "sessions", "answers", "input", "output", "cache_read", "cache_write", "tokens", "tokens_at_least", "cost_usd",
    "cost_at_least", "worked_s", "worked_at_least",
)  # fmt: skip


def tables(
    breakdowns: Mapping[Grouping, Breakdown], everything: Total, *, has_prices: bool, width: int | None
) -> list[Table]:
    """Return a table for each grouping. All have the same columns: as many as the terminal has room for."""
    rows_by_grouping = {grouping: _rows(grouping, breakdown, everything) for grouping, breakdown in breakdowns.items()}
    all_rows = [row for rows in rows_by_grouping.values() for row in rows]
    first_column = [*rows_by_grouping, *(name for name, _ in all_rows)]
    name_width = max(map(display_width, first_column))
    columns = [name for name in _texts(everything) if has_prices or name != _COST]
    widths = {column: max(len(column), *(len(texts[column]) for _, texts in all_rows)) for column in columns}
    for dispensable in _DISPENSABLE:
        if width is not None and name_width + sum(widths[column] + 1 for column in columns) > width:
            columns.remove(dispensable)

    def align(texts: Mapping[str, str]) -> list[str]:
        return [texts[column].rjust(widths[column]) for column in columns]

    sessions = format_count(everything.sessions, "session")
    heading = align({column: column for column in columns})
    return [
        Table(
            f"by_{grouping}",
            f"{sessions} by {grouping}",
            (grouping.value, *heading),
            tuple((name, *align(texts)) for name, texts in rows),
        )
        for grouping, rows in rows_by_grouping.items()
    ]


def _rows(grouping: Grouping, breakdown: Breakdown, everything: Total) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a table; each is a name, and texts by column."""
    rows = []
    for total in breakdown.totals:
        name = printable(total.name, limit=_MAX_NAME) or _UNKNOWN.get(grouping, "")
        rows.append((name, _texts(total)))
    if breakdown.rest is not None:
        if grouping in (Grouping.DAY, Grouping.MONTH):
            rows.insert(0, (format_count(breakdown.others, f"earlier {grouping}"), _texts(breakdown.rest)))
        else:
            rows.append((format_count(breakdown.others, f"more {grouping}"), _texts(breakdown.rest)))
    if len(rows) > 1:
        rows.append(("all", _texts(everything)))
    return rows


def notes(
    breakdowns: Mapping[Grouping, Breakdown], everything: Total, runs: int, zone: str, *, prices: Prices | None = None
) -> Iterator[str]:
    """Yield the sentences below the tables.

    `runs` is the number of runs, and `zone` the name of the time zone of days. `prices` are the prices that costs were
    computed with; None if the logs state costs or no cost is known.
    """
    yield f"Days are those of {zone}; --timezone names another time zone."
    yield "Worked: while at least one agent did; by model, while it answered. Sessions side by side count once."
    if prices is not None:
        yield f"Costs are at {prices_of(prices.date, '', prices.source)}."
    has_partial_cost = everything.costs_more and everything.cost_usd is not None
    if everything.has_more_tokens or everything.has_more_time or has_partial_cost:
        yield f"{AT_LEAST} at least: something in the logs of these sessions is unknown."
    if without := runs - everything.sessions:
        have = "session has" if without == 1 else "sessions have"
        yield f"{without:,} more {have} no answers of their own: copies of others, or nothing was asked."
    shortened = [grouping for grouping, breakdown in breakdowns.items() if breakdown.rest is not None]
    if shortened:
        yield f"All rows: {' or '.join(f'--by {grouping}' for grouping in shortened)}."


def exact_tables(totals: Totals, groupings: Sequence[Grouping]) -> list[Table]:
    """Return a table for each grouping with every digit, for programs."""
    return [
        Table(
            f"by_{grouping}",
            "",
            (grouping.value, *_EXACT_COLUMNS),
            tuple((printable(total.name) or None, *_figures(total)) for total in totals.by(grouping).totals),
        )
        for grouping in groupings
    ]


def data(totals: Totals, zone: str, groupings: Sequence[Grouping]) -> dict[str, Any]:
    """Return the totals for programs; unknown figures are null."""

    def record(total: Total) -> dict[str, Cell]:
        return dict(zip(_EXACT_COLUMNS, _figures(total), strict=True))

    content: dict[str, Any] = {"timezone": zone}
    for grouping in groupings:
        rows = totals.by(grouping).totals
        content[f"by_{grouping}"] = [{grouping.value: total.name or None, **record(total)} for total in rows]
    return {**content, "all": record(totals.all())}


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


def _figure(text: str, is_least: bool) -> str:
    """Return a figure, with a sign if it is only known in part."""
    return f"{text}{AT_LEAST}" if is_least else text


def _texts(total: Total) -> dict[str, str]:
    """Return the texts in the row of a total, by column."""
    kinds = {kind.replace("_", " "): f"{tokens:,}" if tokens else "" for kind, tokens in total.tokens.items()}
    tokens = cost = worked = ""
    if total.total is not None:
        tokens = _figure(f"{total.total:,}", total.has_more_tokens)
    if total.cost_usd is not None:
        cost = _figure(money(total.cost_usd), total.costs_more)
    if total.seconds:
        worked = _figure(restore_blanks(duration(total.seconds)), total.has_more_time)
    return {
        "sessions": f"{total.sessions:,}",
        "answers": f"{total.answers:,}",
        **kinds,
        "tokens": tokens,
        _COST: cost,
        "worked": worked,
    }
