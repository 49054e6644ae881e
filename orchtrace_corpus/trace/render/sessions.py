"""Many logged runs beside one another, a line for each."""

from collections.abc import Sequence
from typing import NamedTuple

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.measures.ledger import ledger
from orchtrace_corpus.trace.model.import_report import ImportReport, has_all_tokens, report_of
from orchtrace_corpus.trace.model.trace import AgentKind, Status, Trace
from orchtrace_corpus.trace.render.names import broken, counted, duration, money
from orchtrace_corpus.trace.view.timing import timing

_COST = "USD"
_AT_LEAST = "+"
_FILE = "file"
_WORDS = ("session", "began", _FILE)
"""The columns that are words; the others are figures, and stand to the right."""

_DISPENSABLE = ("events", "began", "errors", "agents")
"""The columns that a narrow terminal does without, in this order."""

_LEAST_NAME = 12
_MOST_FILE = 40


class Glance(NamedTuple):
    """The little of a run that is shown beside others.

    Attributes:
        name: Its name.
        day: When it began; empty where that is unknown.
        agents: How many agents acted, people left out.
        events: How many events it has.
        seconds: How long it took, without waits for people.
        time: The same in words.
        errors: How many events failed.
        tokens: Its tokens as far as they are known; None where none are.
        cost_usd: Its cost as far as that is known; None where nothing of it is.
        has_more_tokens: Whether it spent more tokens than are known.
        costs_more: Whether it cost more than is known.
        file: The file that it begins in, which tells sessions of one name apart.
    """

    name: str
    day: str
    agents: int
    events: int
    seconds: float
    time: str
    errors: int
    tokens: float | None
    cost_usd: float | None
    has_more_tokens: bool = False
    costs_more: bool = False
    file: str = ""


def glance(trace: Trace, file: str = "") -> Glance:
    """A run among many, and the file that it begins in.

    Raises:
        CycleError: The edges go round in a circle.
    """
    people = {agent.id for agent in trace.agents if agent.kind is AgentKind.HUMAN}
    times = timing(trace)
    entries = ledger(trace, "type")
    tokens = [entry.total for entry in entries if entry.total is not None]
    costs = [entry.cost_usd for entry in entries if entry.cost_usd is not None]
    has_all, prices = has_all_tokens(trace), (report_of(trace) or ImportReport()).prices
    return Glance(
        trace.trace_id,
        (trace.clock.epoch or "")[:10],
        len({event.agent for event in trace.events} - people),
        len(trace.events),
        times.wall,
        broken(duration(times.wall, times.unit), 80)[0],
        sum(event.status is Status.ERROR for event in trace.events),
        sum(tokens) if tokens else None,
        sum(costs) if costs else None,
        not has_all,
        not has_all or bool(prices and prices.without),
        file,
    )


def overview(glances: Sequence[Glance], *, has_prices: bool, most: int, width: int | None = None) -> Table:
    """Many runs: those of the greatest cost first, else of the most tokens, else of the most time.

    Args:
        glances: The runs.
        has_prices: Whether there is a column of costs.
        most: So many are listed; the others are counted.
        width: The cells of the terminal, in which columns of little weight may have no room; None for none.
    """
    found = sorted(glances, key=lambda one: (-(one.cost_usd or 0.0), -(one.tokens or 0.0), -one.seconds, one.name))
    shown = found[:most]
    if len(found) > most:
        shown.append(_together(broken(counted(len(found) - most, "more session"), 80)[0], found[most:]))
    if len(found) > 1:
        shown.append(_together("all", found))
    rows = [_texts(one) for one in shown]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
    are_alike = len({one.name for one in found}) < len(found)
    columns = [name for name in widths if (has_prices or name != _COST) and (are_alike or name != _FILE)]
    for name in _DISPENSABLE:
        if width is not None and _LEAST_NAME + sum(widths[one] + 1 for one in columns[1:]) > width:
            columns.remove(name)
    cells: list[tuple[Cell, ...]] = [
        tuple(row[name] if name in _WORDS else row[name].rjust(widths[name]) for name in columns) for row in rows
    ]
    notes = ["Time without waits for people; tokens and costs as far as they are known."]
    if any(_AT_LEAST in row[name] for row in rows for name in ("tokens", _COST)):
        notes.append(f"{_AT_LEAST} at least: the logs do not say all of it. Empty: nothing of it is known.")
    notes.append(f"More of one: --session, with the beginning of its name{', or with its file' if are_alike else ''}.")
    heading = [name if name in _WORDS else name.rjust(widths[name]) for name in columns]
    return Table("sessions", f"{len(found):,} sessions", tuple(heading), tuple(cells), tuple(notes))


def _together(name: str, glances: Sequence[Glance]) -> Glance:
    """Several runs as one; their times are not added, since they may have run side by side."""
    tokens = [one.tokens for one in glances if one.tokens is not None]
    costs = [one.cost_usd for one in glances if one.cost_usd is not None]
    return Glance(
        name,
        "",
        sum(one.agents for one in glances),
        sum(one.events for one in glances),
        0.0,
        "",
        sum(one.errors for one in glances),
        sum(tokens) if tokens else None,
        sum(costs) if costs else None,
        any(one.has_more_tokens for one in glances),
        any(one.costs_more for one in glances),
    )


def _texts(one: Glance) -> dict[str, str]:
    """What stands in a run's line, by column."""
    return {
        "session": printable(one.name, limit=60),
        "began": one.day,
        "agents": f"{one.agents:,}",
        "events": f"{one.events:,}",
        "errors": f"{one.errors:,}" if one.errors else "",
        "time": one.time,
        "tokens": "" if one.tokens is None else f"{one.tokens:,.0f}{_AT_LEAST if one.has_more_tokens else ''}",
        _COST: "" if one.cost_usd is None else f"{money(one.cost_usd)}{_AT_LEAST if one.costs_more else ''}",
        _FILE: printable(one.file if len(one.file) <= _MOST_FILE else f"…{one.file[1 - _MOST_FILE :]}"),
    }
