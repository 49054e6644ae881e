"""The definition of a measure, its value or the reason why it is unknown, and the run from which it is computed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.terms import AgentKind, EventType
from orchtrace_corpus.trace.view import CachedProperty, TraceView
from orchtrace_corpus.trace.view.lifecycle import depths

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace
    from orchtrace_corpus.trace.view.timing import Timing

_HUMAN = EventType.HUMAN


class Measure(NamedTuple):
    """The result of a measure: a value in the unit of its definition, or the reason why there is none.

    Attributes:
        value: The value; None if it is unknown. A value of 0 is known to be 0.
        reason: The reason why `value` is None.
        events: The ids of the events that decide the value, if these are few.
        if_waiting: The value if the open calls only waited; None if that changes nothing. See `view.open_calls`.
        at_least: A lower bound, if `value` is unknown.
        by_edges: The value if content only moves along edges; None if that changes nothing. See `view.influence`.
        at_most: An upper bound, if the log leaves room for a larger value.
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
        """The values with open calls as work and as waits, the smaller first; None if they do not differ."""
        if self.value is None or self.if_waiting is None:
            return None
        return min(self.value, self.if_waiting), max(self.value, self.if_waiting)


class Run:
    """A trace, and values that several of its measures use, each computed once.

    Args:
        view: The trace.
        times: The timing to use; by default the timing in which open calls count as work.

    Raises:
        CycleError: The edges form a cycle.
    """

    def __init__(self, view: TraceView, times: Timing | None = None) -> None:
        self.trace = view.trace
        self.times = times or view.timing
        self.view = view
        self._measures: dict[Callable[[Run], Measure], Measure] = {}

    def measure(self, compute: Callable[[Run], Measure]) -> Measure:
        """Return a measure of this run, computed on first use."""
        measure = self._measures.get(compute)
        if measure is None:
            measure = compute(self)
            self._measures[compute] = measure
        return measure

    @CachedProperty
    def people(self) -> frozenset[str]:
        """The people of the run, as the function `people` finds them."""
        if not self.trace.agents and _HUMAN not in self.times.graph.indices_by_type:
            return frozenset()  # without a pass over all events
        return people(self.trace)

    @CachedProperty
    def steps(self) -> list[int]:
        """The indices of the steps, as the function `steps` finds them."""
        return steps(self.trace, self.people)

    @CachedProperty
    def spending(self) -> dict[EventType, Spending]:
        """The tokens of the events of each type, without copied events; only types that occur have an entry."""
        spending_by_type = {kind: Spending() for kind in self.times.graph.indices_by_type}
        for index, event in enumerate(self.trace.events):
            if event.copied_context:
                continue
            spending = spending_by_type[event.type]
            spending.events += 1
            if event.tokens and event.tokens.is_known:
                spending.tokens += total(event.tokens)
            else:
                spending.missing.append(index)
        return spending_by_type

    @CachedProperty
    def depths(self) -> dict[str, int]:
        """The number of ancestors of each agent that has a parent or is a parent."""
        return depths(self.view.lifecycle.parents)


class Spending:
    """The tokens of some events.

    Attributes:
        events: The number of events.
        tokens: The sum of their known tokens.
        missing: The indices of the events whose tokens are unknown, in ascending order.
    """

    __slots__ = ("events", "missing", "tokens")

    def __init__(self) -> None:
        self.events = 0
        self.tokens = 0.0
        self.missing: list[int] = []


class Definition(NamedTuple):
    """The definition of a measure: unit, formula and source.

    Attributes:
        name: The name of the measure.
        unit: `s`, which is `step` in a trace that counts steps; `token`, `usd`, or `1` for a pure number.
        formula: The formula, in one line.
        source: The publication of the formula; `ours` if this project defined it.
        compute: Computes the measure of a run.
        is_bounded: True if the measure may have a lower bound when it is unknown.
    """

    name: str
    unit: str
    formula: str
    source: str
    compute: Callable[[Run], Measure]
    is_bounded: bool = False


ANSWER_TYPES = frozenset({EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE})
"""The types of events that are answers of a model, which have tokens."""

_VISIBLE_ACTS = frozenset({EventType.MESSAGE, EventType.TOOL_CALL, EventType.RETURN})


def people(trace: Trace) -> frozenset[str]:
    """Return the agents that are people: declared as `human`, or with no events but human interventions."""
    declared = {agent.id for agent in trace.agents if agent.kind is AgentKind.HUMAN}
    intervening = {event.agent for event in trace.events if event.type is _HUMAN}
    if intervening:
        intervening -= {event.agent for event in trace.events if event.type is not _HUMAN}
    return frozenset(declared | intervening)


def steps(trace: Trace, known_people: Collection[str] | None = None) -> list[int]:
    """Return the indices of the steps: model answers, which are inferences, orchestrator decisions and aggregates.

    For an agent without any of these, each message, tool call and return counts as a step. Copied events, cache
    warm-ups and events of people are no steps.

    Args:
        trace: The trace.
        known_people: The result of `people`, if the caller has it already.
    """
    if known_people is None:
        known_people = people(trace)
    agents_with_answers = {event.agent for event in trace.events if event.type in ANSWER_TYPES}
    indices = []
    for index, event in enumerate(trace.events):
        step_types = ANSWER_TYPES if event.agent in agents_with_answers else _VISIBLE_ACTS
        if event.type not in step_types or event.copied_context or event.warm_up:
            continue
        if event.agent not in known_people:
            indices.append(index)
    return indices


def lower_bound(figure: float) -> float | None:
    """Return a figure as a lower bound: None if it is 0, which says nothing."""
    return figure if figure > 0 else None


def cite(trace: Trace, indices: Sequence[int], max_ids: int = 5) -> str:
    """Return the ids of the first few events, to name them in a reason."""
    ids = ", ".join(trace.events[index].id for index in indices[:max_ids])
    return f"{ids}, …" if len(indices) > max_ids else ids
