"""All measures of a trace. Each is computed from its events and edges, or is unknown for a stated reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.trace.measures import ledger, outcome, safety, team, work
from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run
from orchtrace_corpus.trace.measures.work import Profile
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

DEFINITIONS: dict[str, Definition] = {
    definition.name: definition for module in (work, team, ledger, outcome, safety) for definition in module.DEFINITIONS
}
"""Every measure by its name, in the order of reports."""

BOUNDED = tuple(name for name, definition in DEFINITIONS.items() if definition.is_bounded)
"""The measures that may have a lower bound, `Measure.at_least`, when they are unknown."""

__all__ = ["BOUNDED", "DEFINITIONS", "Definition", "Measure", "Profile", "Run", "concurrency_profile", "measure"]


_HINTS = {
    "critical_path": "'span' is the longest path of work; corpus trace doctor shows the critical path",
    "makespan": "it is called 'elapsed' here",
    "wall_clock": "it is called 'elapsed' here",
    "duration": "it is called 'elapsed' here",
}
"""For names that other tools give to measures, where to find the measure here."""


def require_known(names: Iterable[str]) -> None:
    """Check that all names are names of measures.

    Raises:
        CommandUseError: There is no measure of a given name.
    """
    for name in names:
        if name in _HINTS:
            raise CommandUseError(f"there is no measure {quote(name)}: {_HINTS[name]}")
        if name not in DEFINITIONS:
            raise CommandUseError(f"there is no measure {quote(name)}{suggestion(name, list(DEFINITIONS))}")


def measure(trace: Trace | TraceView, names: Iterable[str] = ()) -> dict[str, Measure]:
    """Compute measures of a trace. Open calls count as work; `Measure.if_waiting` is the value if they count as waits.

    Args:
        trace: A trace in which the graph rules find no error.
        names: The names of the measures to compute; all measures if empty.

    Raises:
        CycleError: The edges form a cycle.
        CommandUseError: There is no measure of a given name.
    """
    chosen = tuple(names)
    require_known(chosen)
    if not chosen:
        chosen = tuple(DEFINITIONS)
    view = TraceView.of(trace)
    run = Run(view)
    measures = {name: run.measure(DEFINITIONS[name].compute) for name in chosen}
    if not view.open_calls:
        return measures
    run_if_waiting = Run(view, view.timing_if_waiting)
    for definition in work.DEFINITIONS:
        if definition.name not in measures:
            continue
        if_working = measures[definition.name]
        if_waiting = run_if_waiting.measure(definition.compute)
        if if_working.value is None:  # a lower bound must hold in both cases, and waits give the smaller one
            measures[definition.name] = if_working._replace(at_least=if_waiting.at_least)
        elif if_waiting.value != if_working.value:
            measures[definition.name] = if_working._replace(if_waiting=if_waiting.value)
    return measures


def concurrency_profile(trace: Trace | TraceView) -> Profile:
    """Return for each number of events the time in which so many were worked on at once.

    The sum of the times is the elapsed time without waits for people. The sum of each time multiplied by its number
    of events is the work.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    times = view.timing
    if times.unknown:
        return Profile({}, times.unit, reason=work.explain_unknown_durations(times, view.trace))
    if_waiting = None
    if view.open_calls:
        if_waiting = work.concurrency(view.timing_if_waiting)
    return Profile(work.concurrency(times), times.unit, if_waiting=if_waiting)
