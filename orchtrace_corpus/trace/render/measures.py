"""Measures, token ledgers and concurrency profiles of traces: as tables, and as JSON values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import display_width, plain
from orchtrace_corpus.base.text.table import Cell, Table, csv_rows, lines
from orchtrace_corpus.trace.analysis.marks import Marks
from orchtrace_corpus.trace.measures.definitions import BOUNDED, DEFINITIONS, Measure, Profile, measure
from orchtrace_corpus.trace.measures.ledger import KINDS, Entry
from orchtrace_corpus.trace.model.terms import Unit
from orchtrace_corpus.trace.model.trace import Source, Trace
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.analysis.outcomes import Outcome

Presentation = TypeVar("Presentation")

CLARIFICATIONS = {"waited": "for people"}
"""Remarks on the names of measures: in `waited`, the run waited for people, not an agent for another."""

DEFAULT_MEASURES = ("elapsed", "worked", "span", "agents", "steps", "tokens", "cost")
"""The measures of several traces that a terminal has room for."""

_ORIGIN = ("task_id", "system", "format", "file")
"""The columns of the origin of a trace."""

NOT_ALL = "The log does not record all tokens of the run."
_FIGURES = ("events", *KINDS, "total", "without_tokens", "cost_usd")
_SPAWNED_FIGURES = ("spawned_tokens", "spawned_cost_usd")
"""The columns of a ledger; the columns of spawned agents are only in a ledger by tool."""

_BY_TOOL = "An answer is divided equally among the tools that it calls; spawned: what agents spent that a tool spawned."
_COUNTED = "Reasoning is a part of output. Copied context is not counted."


def unit_of(name: str, trace: Trace) -> str:
    """Return the unit of a measure of a trace: steps instead of seconds if the trace counts steps."""
    unit = DEFINITIONS[name].unit
    if unit == "s" and trace.clock.unit is Unit.STEP:
        return "step"
    return unit


def measure_and_present(
    names: Sequence[str],
    present: Callable[[TraceView, Mapping[str, Measure]], Presentation],
    marks: Marks,
    outcome: "Outcome | None",
    view: TraceView,
) -> Presentation:
    """Return measures of a trace as `present` presents them, such as `trace_row`.

    Worker processes call this function; they do not import Typer.

    Args:
        names: The names of the measures; all measures if empty.
        present: Returns the result for a trace and its measures.
        marks: The marks of content as untrusted that the user gives.
        outcome: The outcome that the user gives; None if the trace's own counts.
        view: The trace.
    """
    if outcome is not None:
        outcome.apply(view.trace)
    marks.apply(view.trace)
    return present(view, measure(view, names))


def trace_table(view: TraceView, measures: Mapping[str, Measure], *, exact: bool) -> Table:
    """Return the measures of one trace, each in a row, with a note on a missing or uncertain value."""
    trace = view.trace
    rows: list[tuple[Cell, ...]] = [
        (name, _value(measure, exact=exact), unit_of(name, trace), _note(name, measure, exact=exact) or None)
        for name, measure in measures.items()
    ]
    columns = ("measure", "value", "unit", "note")
    return Table("measures", printable(trace.trace_id), columns, tuple(rows), wrapped="note")


def _value(measure: Measure, *, exact: bool) -> Cell:
    """Return the value of a measure; for people, its lower bound if the value is unknown."""
    if exact or measure.at_least is None:
        return round_figure(measure.value, exact=exact, digits=15)  # without the errors of floating-point sums
    return at_least(measure.at_least)


def at_least(bound: float) -> str:
    """Return a lower bound in words."""
    return f"at least {round_figure(bound, exact=False):,}"


def _note(name: str, measure: Measure, *, exact: bool) -> str:
    """Return a note on a measure: other values that it may have, or the reason why it has none; empty if certain."""
    bounds = []
    if measure.by_edges is not None:
        bounds.append(f"{round_figure(measure.by_edges, exact=exact)} along edges alone")
    if measure.at_most is not None and measure.at_most != measure.value:
        bounds.append(f"{round_figure(measure.at_most, exact=exact)} if unmarked results are untrusted, too")
    if bounds:
        return "; ".join(bounds)
    if measure.if_waiting is not None:
        return f"{round_figure(measure.if_waiting, exact=exact)} if open calls only waited"
    reason = printable(measure.reason, limit=300)
    if not exact:
        return reason or CLARIFICATIONS.get(name, "")
    if measure.at_least is not None:
        return f"{reason}; at least {round_figure(measure.at_least, exact=True)}"
    return reason


def trace_row(view: TraceView, measures: Mapping[str, Measure], *, exact: bool) -> tuple[Cell, ...]:
    """Return the measures of one of several traces as a row under `row_columns`."""
    figures: list[Cell] = []
    for result in measures.values():
        if exact or result.range is None:
            figures.append(_value(result, exact=exact))
        else:
            least, most = result.range
            figures.append(f"{round_figure(least, exact=False)} to {round_figure(most, exact=False)}")
    if exact:
        figures += [round_figure(measures[name].at_least, exact=True) for name in BOUNDED if name in measures]
        figures += _origin(view).values()
    return (printable(view.trace.trace_id), *figures)


def row_columns(names: Sequence[str], *, exact: bool) -> tuple[str, ...]:
    """Return the columns of `trace_row`; for programs, with lower bounds and the origin of the trace."""
    columns = ("trace", *names)
    if exact:
        bounds = [f"{name}_at_least" for name in BOUNDED if name in names]
        columns = (*columns, *bounds, *_ORIGIN)
    return columns


def csv_line(view: TraceView, measures: Mapping[str, Measure]) -> str:
    """Return the exact row of a trace as a line of comma-separated values."""
    return csv_rows([trace_row(view, measures, exact=True)])


def _origin(view: TraceView) -> dict[str, str | None]:
    """Return the task of a trace, the system that ran, the format of its log, and its file; None if unknown."""
    trace = view.trace
    source = trace.events[0].source if trace.events else None
    log_format = source.format if isinstance(source, Source) else ""
    origin = (trace.task_id, trace.system or None, log_format or None, view.file or None)
    return dict(zip(_ORIGIN, origin, strict=True))


def data(view: TraceView, measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Return the measures of one trace for programs."""
    content = {
        name: {
            "value": measure.value,
            "unit": unit_of(name, view.trace),
            "reason": measure.reason or None,
            "if_waiting": measure.if_waiting,
            "at_least": measure.at_least,
            "by_edges": measure.by_edges,
            "at_most": measure.at_most,
            "events": list(measure.events),
        }
        for name, measure in measures.items()
    }
    return {"trace_id": view.trace.trace_id, **_origin(view), "measures": content}


def ledger_table(trace_id: str, by: str, entries: Sequence[Entry], width: int | None, *, is_least: bool) -> Table:
    """Return the token ledger of one trace.

    If a terminal of this width has no room for all columns, columns of nothing but 0 are left out. If that is not
    enough, each known figure has a row of its own. With `is_least`, a note says that tokens are missing in the log.
    """
    columns = (by, *(name.replace("_tokens", " tokens") for name in _ledger_columns(by, exact=False)))
    rows = [(printable(entry.name) or f"(no {by})", *_figures(entry, by, exact=False)) for entry in entries]
    note = _COUNTED
    if by == "tool":
        note += f" {_BY_TOOL}"
    if is_least:
        note += f" {NOT_ALL}"
    title = f"{printable(trace_id)}: tokens and cost by {by}"
    table = Table(f"ledger_by_{by}", title, columns, tuple(rows), (f"Empty: not known. {note}",))
    if width is None or _width(table) <= width:
        return table
    kept = [0, *(place for place in range(1, len(columns)) if any(row[place] for row in rows))]
    narrow = table._replace(
        columns=tuple(columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
        notes=(f"Empty: not known. Columns of nothing but 0 are left out. {note}",),
    )
    if _width(narrow) <= width:
        return narrow
    figure_rows: list[tuple[Cell, ...]] = []
    for name, *figures in rows:
        for figure, value in zip(columns[1:], figures, strict=True):
            if value is not None:
                figure_rows.append((name, figure, value))
                name = ""  # only the first row of an entry has the name
    notes = (f"Only what is known. {note}",)
    return table._replace(columns=(by, "figure", "value"), rows=tuple(figure_rows), notes=notes)


def _width(table: Table) -> int:
    """Return the width of the rows of a table in terminal cells."""
    only_rows = table._replace(title="", notes=())
    return max(map(display_width, plain(lines(only_rows, None)).splitlines()))


def exact_ledgers(ledgers: Sequence[tuple[str, Sequence[Entry], bool]], by: str) -> Table:
    """Return the ledgers of several traces in one table, with every digit; the first column names the trace.

    Each ledger is given as the id of the trace, its entries, and True if the trace's tokens are only a lower bound.
    """
    rows = tuple(
        (printable(trace_id), printable(entry.name) or None, *_figures(entry, by, exact=True), is_least)
        for trace_id, entries, is_least in ledgers
        for entry in entries
    )
    return Table("ledger", "", ("trace", by, *_ledger_columns(by, exact=True), "trace_at_least"), rows)


def ledger_data(ledgers: Sequence[tuple[str, Sequence[Entry], bool]], by: str) -> dict[str, Any]:
    """Return the ledgers of `exact_ledgers` for programs; the empty name of an entry is null."""
    columns = ("name", *_ledger_columns(by, exact=True))
    traces = []
    for trace_id, entries, is_least in ledgers:
        rows = [(entry.name or None, *_figures(entry, by, exact=True)) for entry in entries]
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        traces.append({"trace_id": trace_id, "at_least": is_least, "entries": records})
    return {"by": by, "traces": traces}


def _ledger_columns(by: str, *, exact: bool) -> tuple[str, ...]:
    names: tuple[str, ...] = _FIGURES
    if exact:
        names = (*names, "at_least")
    if by == "tool":
        names = (*names, *_SPAWNED_FIGURES)
    return names


def _figures(entry: Entry, by: str, *, exact: bool) -> tuple[Cell, ...]:
    """Return the figures of an entry in the order of `_ledger_columns`."""

    def tokens(amount: float | None) -> Cell:
        if amount is not None and not exact:
            amount = round(amount)
        return round_figure(amount, exact=True)

    total = tokens(entry.total)
    if entry.at_least and entry.total is not None and not exact:
        total = at_least(entry.total)
    figures: list[Cell] = [entry.events, *(tokens(entry.tokens[kind]) for kind in KINDS), total]
    figures += [entry.without_tokens, round_figure(entry.cost_usd, exact=exact)]
    if exact:
        figures.append(entry.at_least)
    if by == "tool":
        figures += [tokens(entry.spawned_tokens), round_figure(entry.spawned_cost_usd, exact=exact)]
    return tuple(figures)


def concurrency_table(trace_id: str, profile: Profile) -> Table:
    """Return the concurrency profile of one trace: for each number of events at once, the time and its share."""
    total = sum(profile.times.values())
    columns = ["at once", profile.unit, "% of time"]
    notes = []
    if profile.reason:
        notes.append(f"No profile: {printable(profile.reason, limit=300)}")
    if profile.if_waiting is not None:
        columns += [f"{profile.unit} *", "% *"]
        notes.append("* if open calls only waited (docs/measures.md).")
    rows = []
    for count, *times in _profile_rows(profile):
        row: list[Cell] = [count]
        for time in times:
            if time is not None:
                percent = round(100 * time / total, 1) if total else None
                row += [round_figure(time, exact=False), percent]
        rows.append(tuple(row))
    title = f"{printable(trace_id)}: events worked on at once"
    return Table("concurrency", title, tuple(columns), tuple(rows), tuple(notes))


def _profile_rows(profile: Profile) -> Iterator[tuple[int, float, float | None]]:
    """Yield each number of events at once with its time, and its time if open calls waited; None without open calls."""
    if profile.if_waiting is None:
        for count, time in sorted(profile.times.items()):
            yield count, time, None
    else:
        for count in sorted(profile.times.keys() | profile.if_waiting.keys()):
            yield count, profile.times.get(count, 0.0), profile.if_waiting.get(count, 0.0)


def exact_concurrency(profiles: Sequence[tuple[str, Profile]]) -> Table:
    """Return the concurrency profiles of several traces in one table, with every digit."""
    rows = tuple(
        (printable(trace_id), count, *(round_figure(time, exact=True) for time in times), profile.unit)
        for trace_id, profile in profiles
        for count, *times in _profile_rows(profile)
    )
    return Table("concurrency", "", ("trace", "at_once", "time", "time_if_waiting", "unit"), rows)


def concurrency_data(profiles: Sequence[tuple[str, Profile]]) -> dict[str, Any]:
    """Return the concurrency profiles of several traces for programs."""
    columns = ("at_once", "time", "time_if_waiting")
    traces = [
        {
            "trace_id": trace_id,
            "unit": profile.unit,
            "reason": profile.reason or None,
            "profile": [dict(zip(columns, row, strict=True)) for row in _profile_rows(profile)],
        }
        for trace_id, profile in profiles
    ]
    return {"traces": traces}


def round_figure(value: float | None, *, exact: bool, digits: int = 0) -> Cell:
    """Return a figure with 6 significant digits or, if `exact`, with `digits` of them; 0 keeps all digits.

    A figure without a fraction is returned as an integer and not rounded; None is returned as None.
    """
    if value is None:
        return None
    if not exact:
        digits = 6
    if value == int(value):
        return int(value)
    if digits:
        value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) else value
