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

Form = TypeVar("Form")

CLARIFICATIONS = {"waited": "for people"}
"""Remarks on the names of measures: in `waited`, the run waited for people, not an agent for another."""

USUAL = ("elapsed", "worked", "span", "agents", "steps", "tokens", "cost")
"""The measures of several traces that a terminal has room for."""

_ORIGIN = ("task_id", "system", "format", "file")

NOT_ALL = "The log does not record all tokens of the run."
_FIGURES = ("events", *KINDS, "total", "without_tokens", "cost_usd")
_SPAWNED_FIGURES = ("spawned_tokens", "spawned_cost_usd")
_BY_TOOL = "An answer is divided equally among the tools that it calls; spawned: what agents spent that a tool spawned."
_COUNTED = "Reasoning is a part of output. Copied context is not counted."


def unit_of(name: str, trace: Trace) -> str:
    """Return the unit of a measure of a trace: steps instead of seconds if the trace counts steps."""
    unit = DEFINITIONS[name].unit
    return "step" if unit == "s" and trace.clock.unit is Unit.STEP else unit


def present(
    names: Sequence[str],
    form: Callable[[TraceView, Mapping[str, Measure]], Form],
    marks: Marks,
    outcome: "Outcome | None",
    view: TraceView,
) -> Form:
    """Return some measures of a trace, or all, in a form such as `trace_row`; the user may give marks and an outcome.

    Worker processes call this function without Typer.
    """
    if outcome is not None:
        outcome.apply(view.trace)
    marks.apply(view.trace)
    return form(view, measure(view, names))


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
    """Return a value; for people, the known part if that is all that is known."""
    if exact or measure.at_least is None:
        return round_figure(measure.value, exact=exact, digits=15)  # without the errors of floating-point sums
    return at_least(measure.at_least)


def at_least(known: float) -> str:
    """Return the known part of a figure in words."""
    return f"at least {round_figure(known, exact=False):,}"


def _note(name: str, measure: Measure, *, exact: bool) -> str:
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
    for figure in measures.values():
        if exact or figure.range is None:
            figures.append(_value(figure, exact=exact))
        else:
            least, most = (round_figure(bound, exact=False) for bound in figure.range)
            figures.append(f"{least} to {most}")
    if exact:
        figures += [round_figure(measures[name].at_least, exact=True) for name in BOUNDED if name in measures]
        figures += _origin(view).values()
    return (printable(view.trace.trace_id), *figures)


def row_columns(names: Sequence[str], *, exact: bool) -> tuple[str, ...]:
    """Return the columns of `trace_row`; for programs, also the known parts of figures, and the origin of the trace."""
    columns = ("trace", *names)
    return (*columns, *(f"{name}_at_least" for name in BOUNDED if name in names), *_ORIGIN) if exact else columns


def csv_line(view: TraceView, measures: Mapping[str, Measure]) -> str:
    """Return the exact row of a trace as a line of comma-separated values."""
    return csv_rows([trace_row(view, measures, exact=True)])


def _origin(view: TraceView) -> dict[str, str | None]:
    """Return the task of a trace, the system that ran, the format of its log, and its file."""
    trace = view.trace
    source = trace.events[0].source if trace.events else None
    form = source.format if isinstance(source, Source) else ""
    return dict(zip(_ORIGIN, (trace.task_id, trace.system or None, form or None, view.file or None), strict=True))


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

    If a terminal of that width has no room for all columns, those with nothing but 0 are left out; if that is not
    enough, each known figure gets a row of its own. With `is_least`, the run spent more tokens than are known.
    """
    columns = (by, *(name.replace("_tokens", " tokens") for name in _ledger_columns(by, exact=False)))
    rows = [(printable(entry.name) or f"(no {by})", *_figures(entry, by, exact=False)) for entry in entries]
    about = f"{_COUNTED} {_BY_TOOL}" if by == "tool" else _COUNTED
    about += f" {NOT_ALL}" if is_least else ""
    title = f"{printable(trace_id)}: tokens and cost by {by}"
    table = Table(f"ledger_by_{by}", title, columns, tuple(rows), (f"Empty: not known. {about}",))
    if width is None or _width(table) <= width:
        return table
    kept = [0, *(place for place in range(1, len(columns)) if any(row[place] for row in rows))]
    narrow = table._replace(
        columns=tuple(columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
        notes=(f"Empty: not known. Columns of nothing but 0 are left out. {about}",),
    )
    if _width(narrow) <= width:
        return narrow
    long: list[tuple[Cell, ...]] = []
    for name, *figures in rows:
        for figure, value in zip(columns[1:], figures, strict=True):
            if value is not None:
                long.append((name, figure, value))
                name = ""  # only in the first row of an entry
    return table._replace(columns=(by, "figure", "value"), rows=tuple(long), notes=(f"Only what is known. {about}",))


def _width(table: Table) -> int:
    """Return the cells that the rows of a table take."""
    return max(map(display_width, plain(lines(table._replace(title="", notes=()), None)).splitlines()))


def exact_ledgers(ledgers: Sequence[tuple[str, Sequence[Entry], bool]], by: str) -> Table:
    """Return the ledgers of several traces in one table, with every digit; the first column names the trace."""
    rows = tuple(
        (printable(trace_id), printable(entry.name) or None, *_figures(entry, by, exact=True), is_least)
        for trace_id, entries, is_least in ledgers
        for entry in entries
    )
    return Table("ledger", "", ("trace", by, *_ledger_columns(by, exact=True), "trace_at_least"), rows)


def ledger_data(ledgers: Sequence[tuple[str, Sequence[Entry], bool]], by: str) -> dict[str, Any]:
    """Return the ledgers of several traces for programs; the name of an entry without one is null."""
    columns = ("name", *_ledger_columns(by, exact=True))
    traces = []
    for trace_id, entries, is_least in ledgers:
        rows = [(entry.name or None, *_figures(entry, by, exact=True)) for entry in entries]
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        traces.append({"trace_id": trace_id, "at_least": is_least, "entries": listed})
    return {"by": by, "traces": traces}


def _ledger_columns(by: str, *, exact: bool) -> tuple[str, ...]:
    names = (*_FIGURES, "at_least") if exact else _FIGURES
    return (*names, *_SPAWNED_FIGURES) if by == "tool" else names


def _figures(entry: Entry, by: str, *, exact: bool) -> tuple[Cell, ...]:
    def tokens(amount: float | None) -> Cell:
        return round_figure(amount if exact or amount is None else round(amount), exact=True)

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
    whole = sum(profile.times.values())
    columns = ["at once", profile.unit, "% of time"]
    notes = [f"No profile: {printable(profile.reason, limit=300)}"] if profile.reason else []
    if profile.if_waiting is not None:
        columns += [f"{profile.unit} *", "% *"]
        notes.append("* if open calls only waited (docs/measures.md).")
    rows = []
    for count, *times in _profile_rows(profile):
        row: list[Cell] = [count]
        for time in times:
            if time is not None:
                row += [round_figure(time, exact=False), round(100 * time / whole, 1) if whole else None]
        rows.append(tuple(row))
    title = f"{printable(trace_id)}: events worked on at once"
    return Table("concurrency", title, tuple(columns), tuple(rows), tuple(notes))


def _profile_rows(profile: Profile) -> Iterator[tuple[int, float, float | None]]:
    """Yield for each number of events at once the time, and the time if open calls waited; None without open calls."""
    for count in sorted({*profile.times, *(profile.if_waiting or ())}):
        waiting = None if profile.if_waiting is None else profile.if_waiting.get(count, 0.0)
        yield count, profile.times.get(count, 0.0), waiting


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
    """Return a figure without a needless fraction: for people in 6 digits, for programs in all, or in `digits`."""
    if value is None:
        return None
    digits = digits if exact else 6
    rounded = float(f"{value:.{digits}g}") if digits and value != int(value) else value
    whole = int(rounded)
    return whole if rounded == whole else rounded
