"""Measures and ledgers of traces as tables."""

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
MEANT = {"waited": "for people"}
"""Additions to the names of measures: agents wait for one another, a run waits for people."""


def unit_of(name: str, trace: Trace) -> str:
    """The unit of a measure of this trace: a trace that counts steps has no seconds."""
    unit = DEFINITIONS[name].unit
    return "step" if unit == "s" and trace.clock.unit is Unit.STEP else unit


def present(
    names: Sequence[str],
    form: Callable[[TraceView, Mapping[str, Measure]], Form],
    marks: Marks,
    outcome: "Outcome | None",
    view: TraceView,
) -> Form:
    """The measures of a trace in one of the forms below. Workers import it from here, without Typer.

    Args:
        names: Which measures; all where there are none.
        form: The form.
        marks: Which tools are untrusted or have side effects, as far as the user says.
        outcome: How the run ended, if that is said elsewhere.
        view: The trace.

    Raises:
        CycleError: The edges go round in a circle.
    """
    if outcome is not None:
        outcome.apply(view.trace)
    marks.apply(view.trace)
    return form(view, measure(view, names))


def one(view: TraceView, measures: Mapping[str, Measure], *, exact: bool) -> Table:
    """The measures of one trace: name, value, unit, and why there is no value or what else it may be."""
    trace = view.trace
    rows: list[tuple[Cell, ...]] = [
        (name, _value(found, exact=exact), unit_of(name, trace), _note(name, found, exact=exact) or None)
        for name, found in measures.items()
    ]
    return Table("measures", printable(trace.trace_id), ("measure", "value", "unit", "note"), tuple(rows),
                 wrapped="note")  # fmt: skip


def _value(found: Measure, *, exact: bool) -> Cell:
    """A value; for people, what is known of one, if that is not all."""
    if exact or found.at_least is None:
        return round_figure(found.value, exact=exact, digits=15)  # without what adding up left
    return at_least(found.at_least)


def at_least(known: float) -> str:
    """The known part of a figure in words."""
    return f"at least {round_figure(known, exact=False):,}"


def _note(name: str, found: Measure, *, exact: bool) -> str:
    bounds = []
    if found.by_edges is not None:
        bounds.append(f"{round_figure(found.by_edges, exact=exact)} along edges alone")
    if found.at_most is not None and found.at_most != found.value:
        bounds.append(f"{round_figure(found.at_most, exact=exact)} if unmarked results are untrusted, too")
    if bounds:
        return "; ".join(bounds)
    if found.if_waiting is None:
        known = f"; at least {round_figure(found.at_least, exact=True)}" if exact and found.at_least is not None else ""
        return f"{printable(found.reason, limit=300)}{known}" or ("" if exact else MEANT.get(name, ""))
    return f"{round_figure(found.if_waiting, exact=exact)} if open calls only waited"


def row(view: TraceView, measures: Mapping[str, Measure], *, exact: bool) -> tuple[Cell, ...]:
    """The measures of one trace of several, as a row of their table."""
    known = [round_figure(measures[one].at_least, exact=True) for one in BOUNDED if exact and one in measures]
    known += _origin(view).values() if exact else ()
    return (printable(view.trace.trace_id), *(_cell(found, exact=exact) for found in measures.values()), *known)


def columns(names: Sequence[str], *, exact: bool) -> tuple[str, ...]:
    """The columns of that table; for programs also the known parts of figures, and where each trace is from."""
    known = [f"{name}_at_least" for name in BOUNDED if name in names]
    return ("trace", *names, *((*known, *_ORIGIN) if exact else ()))


USUAL = ("elapsed", "worked", "span", "agents", "steps", "tokens", "cost")
"""The measures of several traces that a terminal has room for."""
_ORIGIN = ("task_id", "system", "format", "file")


def _origin(view: TraceView) -> dict[str, str | None]:
    """Describe the origin of a trace: its task, what ran, the format of its log, and its file."""
    trace = view.trace
    source = trace.events[0].source if trace.events else None
    form = source.format if isinstance(source, Source) else ""
    return dict(zip(_ORIGIN, (trace.task_id, trace.system or None, form or None, view.file or None), strict=True))


def _cell(found: Measure, *, exact: bool) -> Cell:
    """A value; for people both readings of open calls."""
    if exact or found.range is None:
        return _value(found, exact=exact)
    least, most = (round_figure(one, exact=False) for one in found.range)
    return f"{least} to {most}"


def csv_line(view: TraceView, measures: Mapping[str, Measure]) -> str:
    """The same row with every digit, as a line of comma-separated values."""
    return csv_rows([row(view, measures, exact=True)])


def data(view: TraceView, measures: Mapping[str, Measure]) -> dict[str, Any]:
    """The measures of one trace for programs."""
    content = {}
    for name, found in measures.items():
        content[name] = {
            "value": found.value,
            "unit": unit_of(name, view.trace),
            "reason": found.reason or None,
            "if_waiting": found.if_waiting,
            "at_least": found.at_least,
            "by_edges": found.by_edges,
            "at_most": found.at_most,
            "events": list(found.events),
        }
    return {"trace_id": view.trace.trace_id, **_origin(view), "measures": content}


def spent(trace_id: str, by: str, entries: Sequence[Entry], width: int | None, *, is_least: bool = False) -> Table:
    """A ledger of tokens and money of one trace.

    Args:
        trace_id: The trace.
        by: What it is kept by.
        entries: Its entries.
        width: The cells of a terminal. Where they are too few, columns without figures are left out, and where that
            does not help, each figure that is known has a row of its own.
        is_least: Whether the run spent more tokens than are known.
    """
    names = [printable(entry.name) or f"(no {by})" for entry in entries]
    figures = [_figures(entry, by, exact=False) for entry in entries]
    title = f"{printable(trace_id)}: tokens and cost by {by}"
    columns = (by, *(figure.replace("_tokens", " tokens") for figure in _names(by, exact=False)))
    counted = f"{_COUNTED} {_BY_TOOL}" if by == "tool" else _COUNTED
    counted += f" {NOT_ALL}" if is_least else ""
    every = range(len(columns) - 1)
    for kept in (every, [at for at in every if any(values[at] for values in figures)]):
        rows = tuple((name, *(values[at] for at in kept)) for name, values in zip(names, figures, strict=True))
        shown = by, *(columns[at + 1] for at in kept)
        left_out = "" if kept is every else " Columns of nothing but 0 are left out."
        wide = Table(f"ledger_by_{by}", title, shown, rows, (f"Empty: not known.{left_out} {counted}",))
        laid_out = plain(lines(wide._replace(title="", notes=()), None)).splitlines()
        if width is None or max(map(display_width, laid_out)) <= width:
            return wide
    long: list[tuple[Cell, ...]] = []
    for name, values in zip(names, figures, strict=True):
        known = [(figure, value) for figure, value in zip(columns[1:], values, strict=True) if value is not None]
        long += [("" if place else name, *one) for place, one in enumerate(known)]
    return wide._replace(columns=(by, "figure", "value"), rows=tuple(long), notes=(f"Only what is known. {counted}",))


def spent_exact(ledgers: Sequence[tuple[str, Sequence[Entry], bool]], by: str) -> Table:
    """The ledgers of several traces with every digit in one table, whose first column names the trace."""
    rows = tuple(
        (printable(trace_id), printable(entry.name) or None, *_figures(entry, by, exact=True), is_least)
        for trace_id, entries, is_least in ledgers
        for entry in entries
    )
    return Table("ledger", "", ("trace", by, *_names(by), "trace_at_least"), rows)


def spent_data(ledgers: Sequence[tuple[str, Sequence[Entry], bool]], by: str) -> dict[str, Any]:
    """The ledgers of several traces for programs; the entry of what has no name has null for it."""

    def data(entry: Entry) -> dict[str, Cell]:
        return {"name": entry.name or None, **dict(zip(_names(by), _figures(entry, by, exact=True), strict=True))}

    traces = [
        {"trace_id": trace_id, "at_least": is_least, "entries": list(map(data, entries))}
        for trace_id, entries, is_least in ledgers
    ]
    return {"by": by, "traces": traces}


def concurrent(trace_id: str, profile: Profile) -> Table:
    """The concurrency profile of one trace: how many at once, for how long, and what share of the time that is."""
    whole = sum(profile.times.values())

    def cells(time: float) -> tuple[Cell, Cell]:
        return round_figure(time, exact=False), round(100 * time / whole, 1) if whole else None

    columns: tuple[str, ...] = ("at once", profile.unit, "% of time")
    rows: list[tuple[Cell, ...]] = []
    for number, time, waiting in _readings(profile):
        rows.append((number, *cells(time), *(() if waiting is None else cells(waiting))))
    notes = [f"No profile: {printable(profile.reason, limit=300)}"] if profile.reason else []
    if profile.if_waiting is not None:
        columns = (*columns, f"{profile.unit} *", "% *")
        notes.append("* if open calls only waited (docs/measures.md).")
    title = f"{printable(trace_id)}: events worked on at once"
    return Table("concurrency", title, columns, tuple(rows), tuple(notes))


def _readings(profile: Profile) -> Iterator[tuple[int, float, float | None]]:
    """For each number of events at once, how long; and how long if open calls waited, None where there are none."""
    for number in sorted({*profile.times, *(profile.if_waiting or ())}):
        waiting = None if profile.if_waiting is None else profile.if_waiting.get(number, 0.0)
        yield number, profile.times.get(number, 0.0), waiting


def concurrent_exact(profiles: Sequence[tuple[str, Profile]]) -> Table:
    """The concurrency profiles of several traces with every digit in one table."""
    rows = tuple(
        (printable(trace_id), number, *(round_figure(time, exact=True) for time in times), found.unit)
        for trace_id, found in profiles
        for number, *times in _readings(found)
    )
    return Table("concurrency", "", ("trace", "at_once", "time", "time_if_waiting", "unit"), rows)


def concurrent_data(profiles: Sequence[tuple[str, Profile]]) -> dict[str, Any]:
    """The concurrency profiles of several traces for programs; a second reading is null where no call is open."""
    traces = []
    for trace_id, found in profiles:
        times = [
            {"at_once": number, "time": time, "time_if_waiting": waiting} for number, time, waiting in _readings(found)
        ]
        reason = found.reason or None
        traces.append({"trace_id": trace_id, "unit": found.unit, "reason": reason, "profile": times})
    return {"traces": traces}


NOT_ALL = "The log does not record all tokens of the run."

_FIGURES = ("events", *KINDS, "total", "without_tokens", "cost_usd")
_OF_SPAWNED = ("spawned_tokens", "spawned_cost_usd")
_BY_TOOL = "An answer is divided equally among the tools that it calls; spawned: what agents spent that a tool spawned."
_COUNTED = "Reasoning is a part of output. Copied context is not counted."


def _names(by: str, *, exact: bool = True) -> tuple[str, ...]:
    own = (*_FIGURES, *(("at_least",) if exact else ()))
    return (*own, *_OF_SPAWNED) if by == "tool" else own


def _figures(entry: Entry, by: str, *, exact: bool) -> tuple[Cell, ...]:
    def tokens(number: float | None) -> Cell:
        return round_figure(number if exact or number is None else round(number), exact=True)

    figures = (
        entry.events,
        *(tokens(entry.tokens[kind]) for kind in KINDS),
        at_least(entry.total) if entry.at_least and entry.total is not None and not exact else tokens(entry.total),
        entry.without_tokens,
        round_figure(entry.cost_usd, exact=exact),
        *((entry.at_least,) if exact else ()),
    )
    if by != "tool":
        return figures
    return (*figures, tokens(entry.spawned_tokens), round_figure(entry.spawned_cost_usd, exact=exact))


def round_figure(value: float | None, *, exact: bool, digits: int = 0) -> Cell:
    """A figure without a needless fraction; for programs with so many digits, all of them where there are 0."""
    if value is None:
        return None
    digits = digits if exact else 6
    rounded = float(f"{value:.{digits}g}") if digits and value != int(value) else value
    whole = int(rounded)
    return whole if rounded == whole else rounded
