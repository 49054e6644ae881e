"""Measures of a trace, each derived from its events and edges, or refused with a reason."""

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
"""Every measure by its name, in the order in which they are shown."""

BOUNDED = tuple(name for name, definition in DEFINITIONS.items() if definition.is_bounded)
"""The measures of which a part may be known: `Measure.at_least` is it."""

__all__ = ["BOUNDED", "DEFINITIONS", "Definition", "Measure", "Profile", "Run", "concurrency_profile", "measure"]


_ELSEWHERE = {
    "critical_path": "'span' is the longest path of work; corpus trace doctor shows the critical path",
    "makespan": "it is called 'elapsed' here",
    "wall_clock": "it is called 'elapsed' here",
    "duration": "it is called 'elapsed' here",
}
"""Names of measures elsewhere, and the measure that answers here."""


def see_known(names: Iterable[str]) -> None:
    """See that there are measures of some names.

    Raises:
        CommandUseError: There is none of one of them.
    """
    for name in names:
        if name in _ELSEWHERE:
            raise CommandUseError(f"there is no measure {quote(name)}: {_ELSEWHERE[name]}")
        if name not in DEFINITIONS:
            raise CommandUseError(f"there is no measure {quote(name)}{suggestion(name, list(DEFINITIONS))}")


def measure(trace: Trace | TraceView, names: Iterable[str] = ()) -> dict[str, Measure]:
    """Measure a trace; where calls are open and perhaps waited, in both readings.

    Args:
        trace: A trace that the graph rules have no error against.
        names: Which measures; all of them without names.

    Raises:
        CycleError: The edges go round in a circle.
        CommandUseError: There is no measure of that name.
    """
    chosen = tuple(names)
    see_known(chosen)
    view = TraceView.of(trace)
    run = Run(view)
    found = {name: run.once(DEFINITIONS[name].compute) for name in chosen or DEFINITIONS}
    if view.open_calls:
        waiting = Run(view, view.timing_if_waiting)
        for definition in work.DEFINITIONS:
            known = found.get(definition.name)
            if known is None:
                continue
            other = waiting.once(definition.compute)
            if known.value is None:  # the least that it can be is the least of both readings
                found[definition.name] = known._replace(at_least=other.at_least)
            elif other.value != known.value:
                found[definition.name] = known._replace(if_waiting=other.value)
    return found


def concurrency_profile(trace: Trace | TraceView) -> Profile:
    """For how long how many events of a trace were worked on at once, in both readings; errors as for `measure`.

    The times add up to the elapsed time, waits for people taken out; each times its number, they add up to the work.
    """
    view = TraceView.of(trace)
    times = view.timing
    if times.unknown:
        return Profile({}, times.unit, work.unknown_durations(times, view.trace))
    if_waiting = work.concurrency(view.timing_if_waiting) if view.open_calls else None
    return Profile(work.concurrency(times), times.unit, if_waiting=if_waiting)
