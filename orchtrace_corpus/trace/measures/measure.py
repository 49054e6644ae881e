"""A measure of a trace: a figure with its unit, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.terms import AgentKind, EventType
from orchtrace_corpus.trace.view import Derived, TraceView
from orchtrace_corpus.trace.view.lifecycle import depths
from orchtrace_corpus.trace.view.timing import Timing

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

_HUMAN = EventType.HUMAN


class Measure(NamedTuple):
    """The result of a measure: a value with its unit, or the reason why there is none.

    Attributes:
        value: None where the trace does not support the measure; never 0 for unknown.
        reason: Why `value` is None.
        events: The ids of the events that the figure rests on, where they are few enough to be named.
        if_waiting: What it is if the open calls only waited, where that is another value; see `view.open_calls`.
        at_least: What is known of it, where the run has more than its log says.
        by_edges: What it is if content goes along edges alone, where that is another value; see `view.influence`.
        at_most: The most that it can be, where the log leaves it open and says where the limit is.
    """

    value: float | None
    reason: str = ""
    events: tuple[str, ...] = ()
    if_waiting: float | None = None
    at_least: float | None = None
    by_edges: float | None = None
    at_most: float | None = None

    @property
    def range(self) -> tuple[float, float] | None:
        """Both readings of the open calls, the smaller first; None where there is only one value, or none."""
        if self.value is None or self.if_waiting is None:
            return None
        return min(self.value, self.if_waiting), max(self.value, self.if_waiting)


class Run:
    """A trace with what every measure needs of it; what several measures rest on is computed once.

    Args:
        view: The trace.
        times: Its times; without them, those in which open calls work.

    Raises:
        CycleError: The edges go round in a circle.
    """

    def __init__(self, view: TraceView, times: Timing | None = None) -> None:
        self.trace = view.trace
        self.times = times or view.timing
        self.view = view
        self._known: dict[Callable[[Run], Measure], Measure] = {}

    def once(self, compute: Callable[[Run], Measure]) -> Measure:
        """A measure of this run, computed when it is first asked for."""
        known = self._known.get(compute)
        if known is None:
            self._known[compute] = known = compute(self)
        return known

    @Derived
    def people(self) -> frozenset[str]:
        """The people of the run; see `people`."""
        is_possible = self.trace.agents or _HUMAN in self.times.graph.of_type
        return people(self.trace) if is_possible else frozenset()

    @Derived
    def steps(self) -> list[int]:
        """The numbers of the steps; see `steps`."""
        return steps(self.trace, self.people)

    @Derived
    def spending(self) -> dict[EventType, Spending]:
        """The tokens of the events of each type that occurs; what was merely copied is not counted."""
        found = {kind: Spending() for kind in self.times.graph.of_type}
        for index, event in enumerate(self.trace.events):
            if not event.copied_context:
                spent = found[event.type]
                spent.events += 1
                if event.tokens and (tokens := total(event.tokens)):
                    spent.tokens += tokens
                elif not event.tokens or not event.tokens.is_known:
                    spent.lacking.append(index)
        return found

    @Derived
    def depths(self) -> dict[str, int]:
        """Return the number of ancestors of each agent that has a parent or is one."""
        return depths(self.view.lifecycle.parents)


class Spending:
    """The tokens of some events.

    Attributes:
        events: How many events there are.
        tokens: The tokens of all that have any.
        lacking: The numbers of those that have none, rising.
    """

    __slots__ = ("events", "lacking", "tokens")

    def __init__(self) -> None:
        self.events = 0
        self.tokens = 0.0
        self.lacking: list[int] = []


class Definition(NamedTuple):
    """The definition of a measure: unit, formula and source.

    Attributes:
        name: Its name, with the unit at its end where it has one.
        unit: `s`, or `step` in a trace that counts steps; `token`, `usd`, `1` for a pure number.
        formula: How it is computed, in a line.
        source: Where the formula comes from; `ours` where it is this project's own.
        compute: From a run to the measure.
        is_bounded: Whether a part of it may be known, which is the least that it can be.
    """

    name: str
    unit: str
    formula: str
    source: str
    compute: Callable[[Run], Measure]
    is_bounded: bool = False


ASKED = frozenset({EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE})
"""The types of events in which a model is asked, and so has tokens."""

_VISIBLE_ACTS = frozenset({EventType.MESSAGE, EventType.TOOL_CALL, EventType.RETURN})


def people(trace: Trace) -> frozenset[str]:
    """Return the people of a run: declared as `human`, or known only from human interventions."""
    intervening = {event.agent for event in trace.events if event.type is _HUMAN}
    if intervening:
        intervening -= {event.agent for event in trace.events if event.type is not _HUMAN}
    return frozenset(intervening.union(agent.id for agent in trace.agents if agent.kind is AgentKind.HUMAN))


def steps(trace: Trace, persons: Collection[str] | None = None) -> list[int]:
    """The numbers of the events in which a model is asked: inference, orchestrator decision, aggregate.

    Of an agent whose trace holds none of these, each message, tool call and return counts as one: its log shows
    only what it did. What was merely copied, or warms caches up, does not count, and what people do, who may be given,
    is no step.
    """
    events, nobody = trace.events, people(trace) if persons is None else persons
    asked = {event.agent for event in events if event.type in ASKED}
    found = [
        index
        for index, event in enumerate(events)
        if event.type in (ASKED if event.agent in asked else _VISIBLE_ACTS)
        and not (event.copied_context or event.warm_up)
    ]
    return [number for number in found if events[number].agent not in nobody] if nobody else found


def positive(figure: float) -> float | None:
    """Return a figure above 0, else None: that something is at least 0 says nothing."""
    return figure if figure > 0 else None


def cite(trace: Trace, indices: Sequence[int], most: int = 5) -> str:
    """A few of some events by their ids, for a reason."""
    shown = ", ".join(trace.events[index].id for index in indices[:most])
    return f"{shown}, …" if len(indices) > most else shown
