"""Datasets of traces: what a build has done, their statistics, and answers to questions in SQL."""

from collections.abc import Iterable, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import display_width, first_and_more
from orchtrace_corpus.base.text.table import Cell, Table, arranged, cell_text
from orchtrace_corpus.trace.dataset.build import Outcome
from orchtrace_corpus.trace.dataset.statistics import FENCE, FEWEST, QUANTILES, Statistics
from orchtrace_corpus.trace.measures.ledger import KINDS
from orchtrace_corpus.trace.render.measures import at_least, round_figure
from orchtrace_corpus.trace.render.names import counted
from orchtrace_corpus.trace.render.tables import CODES

_MOST_DIGITS = 1e15  # beyond it, doubles are not whole to the last digit


def outcome(found: Outcome) -> list[str]:
    """Describe the result of a build."""
    parts = [f"{counted(len(found.plan.sources), 'source')} read", f"{found.plan.unchanged:,} as they were"]
    if found.plan.kept:
        parts.append(f"{found.plan.kept:,} kept whose logs are gone or were not named (--prune drops them)")
    if found.plan.removed:
        parts.append(f"{found.plan.removed:,} dropped whose logs are gone or were not named")
    lines = [f"{counted(found.traces, 'trace')} in the dataset: {', '.join(parts)}."]
    if found.unpriced:
        lines.append(
            f"Costs are left out: {counted(found.unpriced, 'source')} had been read with --prices, and not this time."
        )
    if found.empty:
        lines.append(f"In {counted(found.empty, 'source')} nothing ran: no trace was made of it.")
    if found.passed_over:
        lines.append(f"{counted(found.passed_over, 'file')} skipped: not logs or traces in a known format.")
    named = [f"corpus: left out: {printable(name)}: {printable(why, limit=300)}" for name, why in found.failures]
    return lines + first_and_more(named, 5, "corpus: and {:,} more left out")


_COUNTED = (
    *("traces", "different trace_ids", "events", "edges", "warnings of the graph rules"),
    *("records left out at import", "records of unknown kinds", "other problems of the import"),
)
"""The nouns of an overview's numbers, in their order."""


def tables(statistics: Statistics, *, exact: bool) -> list[Table]:
    """The statistics as tables: overview, measures, sub-decisions, models, outliers."""
    return [_overview(statistics), *(one(statistics, exact) for one in (_distributions, _coverage, _models, _outliers))]


_EXPENDABLE = (
    *("p5", "p95", "p25", "p75", "null", "reasoning", "cache_write", "cache_read", "without tokens"),
    *("trace", "code", "cost_usd", "min", "mean"),
)


def narrow(one: Table, width: int) -> Table:
    """A table without as many of its columns as it takes to fit: a figure that is cut would be another figure."""
    left_out = []
    for name in _EXPENDABLE:
        texts = [one.columns, *(tuple(map(cell_text, row)) for row in one.rows)]
        widths = [max(map(display_width, column)) for column in zip(*texts, strict=True)]
        if sum(widths) + 2 * (len(widths) - 1) <= width:
            break
        if name in one.columns:
            one = arranged(one, [column for column in one.columns if column != name], "")
            left_out.append(name)
    note = f"No room for {', '.join(left_out)}; a wider terminal or --format csv has all."
    return one._replace(notes=(*one.notes, note)) if left_out else one


def _overview(statistics: Statistics) -> Table:
    rows = [(group, *pair) for group, *numbers in statistics.overviews for pair in zip(_COUNTED, numbers, strict=True)]
    is_doubled = any(overview.trace_ids < overview.traces for overview in statistics.overviews)
    notes = ("Some traces have the same trace_id: is a log in the dataset twice?",) if is_doubled else ()
    return Table("overview", "Dataset", (*statistics.by, "what", "number"), _rows(rows, exact=True), notes)


_OPEN = "Open calls count as work; corpus trace measure shows both readings."


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
    without = sum(not one.n for one in statistics.distributions)
    notes = (_OPEN, f"{without} rows without any value are left out.")[: 2 if without and not exact else 1]
    return Table("measures", "Measures", columns, _rows(rows, exact=exact), notes)


def _coverage(statistics: Statistics, exact: bool) -> Table:
    rows = [
        (one.group, CODES[one.decision], str(one.decision), one.having, one.traces, one.having / one.traces, one.events)
        for one in statistics.coverage
    ]
    columns = (*statistics.by, "code", "sub-decision", "in traces", "of", "share", "events")
    return Table("sub_decisions", "Sub-decisions", columns, _rows(rows, exact=exact))


def _models(statistics: Statistics, exact: bool) -> Table:
    def known(figure: float | None, is_least: bool) -> Cell:
        return at_least(figure) if is_least and figure is not None and not exact else figure

    rows = [
        (model.group, printable(model.model) or "(none named)", model.events, model.without_tokens, *model.tokens,
         known(model.total if model.events else None, model.at_least), known(model.cost_usd, model.cost_at_least),
         *((model.at_least, model.cost_at_least) if exact else ()))
        for model in statistics.models
    ]  # fmt: skip
    columns = (*statistics.by, "asked", "events", "without tokens", *KINDS, "total", "cost_usd")
    note = "Reasoning is a part of output. Copied context is not counted."
    if any(one.at_least or one.cost_at_least for one in statistics.models):
        note += " At least: some traces in which the model was asked do not record all of it."
    columns = (*columns, *(("at_least", "cost_at_least") if exact else ()))
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
    rule = f"More than {FENCE:g} interquartile ranges beyond a quartile, of {FEWEST} values or more."
    shown_of = f" The farthest {len(rows)} of {statistics.outlying:,}." if statistics.outlying > len(rows) else ""
    return Table("outliers", "Outliers", columns, _rows(rows, exact=exact), (rule + shown_of,))


def _rows(rows: Iterable[tuple[Any, ...]], *, exact: bool) -> tuple[tuple[Cell, ...], ...]:
    """Rows whose first value is the group: each of its values in a cell of its own, numbers rounded for people."""
    return tuple(
        (
            *(printable(name) or "(unknown)" for name in group),
            *(round_figure(value, exact=exact) if isinstance(value, float) else value for value in values),
        )
        for group, *values in rows
    )


def answer(columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()) -> Table:
    """The answer to a question in SQL as a table for people; nothing in it reaches a terminal as it is."""
    return Table("rows", "", tuple(map(printable, columns)), cells(rows, exact=False), tuple(notes))


def cells(rows: Iterable[Sequence[Any]], *, exact: bool) -> tuple[tuple[Cell, ...], ...]:
    """Values of an engine as cells of a table; numbers with a fraction are rounded unless it is for programs."""
    return tuple(tuple(_cell(value, exact=exact) for value in row) for row in rows)


def _cell(value: Any, *, exact: bool) -> Cell:
    if isinstance(value, float) and not exact and abs(value) < _MOST_DIGITS:
        return round_figure(value, exact=False)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    text = _text(value, exact=exact)
    return printable(text, limit=len(text))


def _text(value: Any, *, exact: bool) -> str:
    """A value in words: lists and mappings by their members."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(_cell(value, exact=exact))
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item, exact=exact) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{_text(name, exact=exact)}: {_text(item, exact=exact)}" for name, item in value.items())
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """A value of an engine as JSON has it: what JSON has no form for becomes text."""
    from math import isfinite

    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)
