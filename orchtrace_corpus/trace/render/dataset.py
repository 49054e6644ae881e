"""Datasets of traces as text: the result of a build, statistics, and the rows of SQL queries."""

from collections.abc import Iterable, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import display_width, first_and_more
from orchtrace_corpus.base.text.table import Cell, Table, arranged, cell_text
from orchtrace_corpus.trace.dataset.build import BuildResult
from orchtrace_corpus.trace.dataset.statistics import FENCE, MIN_VALUES, QUANTILES, Statistics
from orchtrace_corpus.trace.measures.ledger import KINDS
from orchtrace_corpus.trace.render.measures import at_least, round_figure
from orchtrace_corpus.trace.render.names import format_count
from orchtrace_corpus.trace.render.tables import CODES

_MAX_ROUNDED = 1e15  # larger floats have no fraction that could be rounded

_OVERVIEW_NOUNS = (
    *("traces", "different trace_ids", "events", "edges", "warnings of the graph rules"),
    *("records left out at import", "records of unknown kinds", "other problems of the import"),
)
"""The nouns of the counts of an overview, in their order."""

_DISPENSABLE = (
    *("p5", "p95", "p25", "p75", "null", "reasoning", "cache_write", "cache_read", "without tokens"),
    *("trace", "code", "cost_usd", "min", "mean"),
)
"""The columns that a narrow terminal leaves out, in this order."""


def outcome_lines(result: BuildResult) -> list[str]:
    """Return the lines that describe the result of a build."""
    plan = result.plan
    parts = [f"{format_count(len(plan.sources), 'source')} read", f"{plan.unchanged:,} as they were"]
    if plan.kept:
        parts.append(f"{plan.kept:,} kept whose logs are gone or were not named (--prune drops them)")
    if plan.removed:
        parts.append(f"{plan.removed:,} dropped whose logs are gone or were not named")
    lines = [f"{format_count(result.traces, 'trace')} in the dataset: {', '.join(parts)}."]
    if result.unpriced:
        sources = format_count(result.unpriced, "source")
        lines.append(f"Costs are left out: {sources} had been read with --prices, and not this time.")
    if result.empty:
        lines.append(f"In {format_count(result.empty, 'source')} nothing ran: no trace was made of it.")
    if result.skipped:
        lines.append(f"{format_count(result.skipped, 'file')} skipped: not logs or traces in a known format.")
    failures = [f"corpus: left out: {printable(name)}: {printable(why, limit=300)}" for name, why in result.failures]
    return lines + first_and_more(failures, 5, "corpus: and {:,} more left out")


def tables(statistics: Statistics, *, exact: bool) -> list[Table]:
    """Return the statistics as tables: overview, measures, sub-decisions, models, outliers."""
    return [
        _overview(statistics),
        _distributions(statistics, exact),
        _coverage(statistics, exact),
        _models(statistics, exact),
        _outliers(statistics, exact),
    ]


def narrow(table: Table, width: int) -> Table:
    """Return a table without the dispensable columns that the width has no room for: a figure must not be cut."""
    left_out = []
    for name in _DISPENSABLE:
        texts = [table.columns, *(tuple(map(cell_text, row)) for row in table.rows)]
        widths = [max(map(display_width, column)) for column in zip(*texts, strict=True)]
        if sum(widths) + 2 * (len(widths) - 1) <= width:
            break
        if name in table.columns:
            table = arranged(table, [column for column in table.columns if column != name], "")
            left_out.append(name)
    if not left_out:
        return table
    note = f"No room for {', '.join(left_out)}; a wider terminal or --format csv has all."
    return table._replace(notes=(*table.notes, note))


def _overview(statistics: Statistics) -> Table:
    rows: list[tuple[Any, ...]] = []
    for group, *counts in statistics.overviews:
        rows += [(group, noun, count) for noun, count in zip(_OVERVIEW_NOUNS, counts, strict=True)]
    notes: tuple[str, ...] = ()
    if any(overview.trace_ids < overview.traces for overview in statistics.overviews):
        notes = ("Some traces have the same trace_id: is a log in the dataset twice?",)
    return Table("overview", "Dataset", (*statistics.by, "what", "number"), _rows(rows, exact=True), notes)


def _distributions(statistics: Statistics, exact: bool) -> Table:
    names = [f"p{round(100 * quantile)}" for quantile in QUANTILES]
    columns = (*statistics.by, "measure", "unit", "n", "null", "mean", "min", *names, "max")
    rows = [
        (
            distribution.group,
            distribution.measure,
            distribution.unit,
            distribution.n,
            distribution.null,
            distribution.mean,
            distribution.least,
            *distribution.quantiles,
            distribution.greatest,
        )
        for distribution in statistics.distributions
        if distribution.n or exact
    ]
    notes = ["Open calls count as work; corpus trace measure shows both readings."]
    if len(rows) < len(statistics.distributions):
        notes.append(f"{len(statistics.distributions) - len(rows)} rows without any value are left out.")
    return Table("measures", "Measures", columns, _rows(rows, exact=exact), tuple(notes))


def _coverage(statistics: Statistics, exact: bool) -> Table:
    rows = [
        (
            coverage.group,
            CODES[coverage.decision],
            str(coverage.decision),
            coverage.traces_with,
            coverage.traces,
            coverage.traces_with / coverage.traces,
            coverage.events,
        )
        for coverage in statistics.coverage
    ]
    columns = (*statistics.by, "code", "sub-decision", "in traces", "of", "share", "events")
    return Table("sub_decisions", "Sub-decisions", columns, _rows(rows, exact=exact))


def _models(statistics: Statistics, exact: bool) -> Table:
    def in_words(figure: float | None, is_least: bool) -> Cell:
        if figure is None or not is_least or exact:
            return figure
        return at_least(figure)

    rows: list[tuple[Any, ...]] = []
    for model in statistics.models:
        name = printable(model.model) or "(none named)"
        total = in_words(model.total if model.events else None, model.at_least)
        cost = in_words(model.cost_usd, model.cost_at_least)
        row = (model.group, name, model.events, model.without_tokens, *model.tokens, total, cost)
        if exact:
            row = (*row, model.at_least, model.cost_at_least)
        rows.append(row)
    columns = (*statistics.by, "asked", "events", "without tokens", *KINDS, "total", "cost_usd")
    if exact:
        columns = (*columns, "at_least", "cost_at_least")
    note = "Reasoning is a part of output. Copied context is not counted."
    if any(model.at_least or model.cost_at_least for model in statistics.models):
        note += " At least: some traces in which the model was asked do not record all of it."
    return Table("models", "Tokens by model", columns, _rows(rows, exact=exact), (note,))


def _outliers(statistics: Statistics, exact: bool) -> Table:
    rows = [
        (
            outlier.group,
            outlier.measure,
            outlier.value,
            outlier.unit,
            outlier.ranges,
            printable(outlier.trace_id),
            outlier.trace,
        )
        for outlier in statistics.outliers
    ]
    columns = (*statistics.by, "measure", "value", "unit", "ranges", "trace_id", "trace")
    note = f"More than {FENCE:g} interquartile ranges beyond a quartile, of {MIN_VALUES} values or more."
    if statistics.outlier_count > len(rows):
        note += f" The farthest {len(rows)} of {statistics.outlier_count:,}."
    return Table("outliers", "Outliers", columns, _rows(rows, exact=exact), (note,))


def _rows(rows: Iterable[tuple[Any, ...]], *, exact: bool) -> tuple[tuple[Cell, ...], ...]:
    """Return rows whose first value is a group, with a cell for each name of the group; numbers are rounded for people.

    A group is the values of the columns by which the statistics are grouped.
    """
    all_cells = []
    for group, *values in rows:
        names = [printable(name) or "(unknown)" for name in group]
        figures = [round_figure(value, exact=exact) if isinstance(value, float) else value for value in values]
        all_cells.append((*names, *figures))
    return tuple(all_cells)


def query_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()) -> Table:
    """Return the rows of an SQL query as a table for people, in characters that are safe on a terminal."""
    return Table("rows", "", tuple(map(printable, columns)), cells(rows, exact=False), tuple(notes))


def cells(rows: Iterable[Sequence[Any]], *, exact: bool) -> tuple[tuple[Cell, ...], ...]:
    """Return the values of a query as cells of a table; fractions are rounded for people."""
    return tuple(tuple(_cell(value, exact=exact) for value in row) for row in rows)


def _cell(value: Any, *, exact: bool) -> Cell:
    if isinstance(value, float) and not exact and abs(value) < _MAX_ROUNDED:
        return round_figure(value, exact=False)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    text = _text(value, exact=exact)
    return printable(text, limit=len(text))


def _text(value: Any, *, exact: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(_cell(value, exact=exact))
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item, exact=exact) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{_text(name, exact=exact)}: {_text(item, exact=exact)}" for name, item in value.items())
    return str(value)


def as_json(value: Any) -> Any:
    """Return a value of a query in a type that JSON has; a value of any other type becomes text."""
    from math import isfinite

    if isinstance(value, float):
        return value if isfinite(value) else str(value)  # JSON has no infinite numbers
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {str(name): as_json(item) for name, item in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)
