"""The orchestration sub-decisions that the events of a trace take: O1 spawn to O5 stop.

Labels that the trace has already are kept, and its own word for who gave them. Otherwise one rule or more of
`RULES` may fire on an event; each label names its rule.
"""

from collections.abc import Collection, Iterator

from msgspec import Struct

from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model.terms import Decision, EdgeType, EventType, Status
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.graph import Graph

_SPAWN, _MESSAGE, _DECISION = EventType.SPAWN, EventType.MESSAGE, EventType.DECISION
_AGGREGATE, _STOP = EventType.AGGREGATE, EventType.STOP
_DESPAWN, _SAFETY, _RETURN = EventType.DESPAWN, EventType.SAFETY, EventType.RETURN
_ERROR, _CANCELLED = Status.ERROR, Status.CANCELLED

GIVEN = "given"
"""Stands for the rule of a label that the trace brings along without one."""


class Label(Struct, frozen=True, gc=False):
    """A sub-decision that an event takes, with the rule that says so.

    Attributes:
        event: The number of the event.
        decision: The sub-decision.
        rule: The rule.
    """

    event: int
    decision: Decision
    rule: str


RULES: dict[str, tuple[Decision, str]] = {
    "spawn": (Decision.SPAWN, "The event creates an agent."),
    "spawn-target": (Decision.DELEGATE, "The event that spawns an agent also chooses its role or hands it its task."),
    "send-down": (Decision.DELEGATE, "A message goes down, from an agent to one that it has spawned."),
    "decide-target": (Decision.DELEGATE, "An orchestrator decision names the agent or the tool that acts next."),
    "message": (Decision.COMMUNICATE, "A message goes to an agent that the sender has not spawned."),
    "aggregate": (Decision.AGGREGATE, "The event combines several results into one."),
    "join": (Decision.AGGREGATE, "A step, other than an aggregate, that follows from what another agent returned."),
    "stop": (Decision.STOP, "The agent stops."),
    "end-other": (Decision.STOP, "An agent ends another: a despawn that was logged, not inferred."),
    "abort": (Decision.STOP, "A safety event that failed or was cancelled ends what it was about."),
    "last-step": (
        Decision.STOP,
        "The last step of an agent that nobody spawned, if it logs no stop and does nothing afterwards.",
    ),
}
"""The label of each rule, and when it fires, in the order of the sub-decisions."""


_ACTS = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.TOOL_CALL})
"""The events that show that a step was not an agent's last word."""

_RETURNING = (EdgeType.RETURN, EdgeType.AGGREGATE)


def labels(trace: Trace | TraceView, asked: Collection[int] | None = None) -> list[Label]:
    """All labels of a trace, by event.

    Args:
        trace: The trace.
        asked: The numbers of its steps, where they are known.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    events, among = view.trace.events, set(steps(view.trace) if asked is None else asked)
    names = _fired(view)
    for number in _joins(view.graph, among):
        names[number] = (*names.get(number, ()), "join")
    for number in _last_steps(view, among):
        names[number] = (*names.get(number, ()), "last-step")
    found = {number: [Label(number, RULES[name][0], name) for name in fired] for number, fired in names.items()}
    for number, event in enumerate(events):
        if event.sub_decisions:
            rules = event.sub_decision_rules or {}
            found[number] = [Label(number, decision, rules.get(decision, GIVEN)) for decision in event.sub_decisions]
    return [label for number in sorted(found) for label in found[number]]


def _fired(view: TraceView) -> dict[int, tuple[str, ...]]:
    """The rules that events by themselves, and who spawned whom, fire; no two of an event give the same."""
    events, of_type = view.graph.events, view.graph.of_type
    found: dict[int, tuple[str, ...]] = {}
    for number in of_type.get(_SPAWN, ()):
        found[number] = ("spawn", "spawn-target") if events[number].role or events[number].content_ref else ("spawn",)
    for number in of_type.get(_MESSAGE, ()):
        event = events[number]
        if event.target:
            is_down = view.lineage.is_above(event.sender or event.agent, event.target)
            found[number] = ("send-down",) if is_down else ("message",)
    for number in of_type.get(_DECISION, ()):
        if events[number].target or events[number].tool:
            found[number] = ("decide-target",)
    found.update(dict.fromkeys(of_type.get(_AGGREGATE, ()), ("aggregate",)))
    found.update(dict.fromkeys(of_type.get(_STOP, ()), ("stop",)))
    for number in of_type.get(_DESPAWN, ()):
        event = events[number]
        if event.target not in ("", event.agent) and not event.inferred:
            found[number] = ("end-other",)
    for number in of_type.get(_SAFETY, ()):
        if events[number].status in (_ERROR, _CANCELLED):
            found[number] = ("abort",)
    return found


def _joins(of: Graph, asked: Collection[int]) -> set[int]:
    """Steps that are no aggregate, but that a return to their agent leads to."""
    aggregates = set(of.of_type.get(_AGGREGATE, ()))
    steps_reached = [place for place, target in enumerate(of.targets) if target in asked and target not in aggregates]
    found, returned = set(), _RETURN
    for place in steps_reached:
        source, target = of.sources[place], of.targets[place]
        is_other = of.agents[source] != of.agents[target]
        if is_other and (of.events[source].type is returned or of.edges[place].type in _RETURNING):
            found.add(target)
    return found


def _last_steps(view: TraceView, asked: set[int]) -> Iterator[int]:
    """The last steps of agents that nobody spawned and that log no stop; a step that leads to an act is none."""
    parents, stops = view.lifecycle.parents, view.lifecycle.stops
    last: dict[str, int] = {}
    agents, of_type = view.graph.agents, view.graph.of_type
    acting = asked.union(*[of_type.get(kind, ()) for kind in _ACTS])
    for number in view.sequence:
        if number in acting and (agent := agents[number]) not in parents and agent not in stops:
            last[agent] = number
    yield from (number for number in last.values() if number in asked)
