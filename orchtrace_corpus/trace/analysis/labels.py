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
    for index in _joins(view.graph, among):
        names[index] = (*names.get(index, ()), "join")
    for index in _last_steps(view, among):
        names[index] = (*names.get(index, ()), "last-step")
    found = {index: [Label(index, RULES[name][0], name) for name in fired] for index, fired in names.items()}
    for index, event in enumerate(events):
        if event.sub_decisions:
            rules = event.sub_decision_rules or {}
            found[index] = [Label(index, decision, rules.get(decision, GIVEN)) for decision in event.sub_decisions]
    return [label for index in sorted(found) for label in found[index]]


def _fired(view: TraceView) -> dict[int, tuple[str, ...]]:
    """The rules that events by themselves, and who spawned whom, fire; no two of an event give the same."""
    events, of_type = view.graph.events, view.graph.of_type
    found: dict[int, tuple[str, ...]] = {}
    for index in of_type.get(_SPAWN, ()):
        found[index] = ("spawn", "spawn-target") if events[index].role or events[index].content_ref else ("spawn",)
    for index in of_type.get(_MESSAGE, ()):
        event = events[index]
        if event.target:
            is_down = view.lineage.is_above(event.sender or event.agent, event.target)
            found[index] = ("send-down",) if is_down else ("message",)
    for index in of_type.get(_DECISION, ()):
        if events[index].target or events[index].tool:
            found[index] = ("decide-target",)
    found.update(dict.fromkeys(of_type.get(_AGGREGATE, ()), ("aggregate",)))
    found.update(dict.fromkeys(of_type.get(_STOP, ()), ("stop",)))
    for index in of_type.get(_DESPAWN, ()):
        event = events[index]
        if event.target not in ("", event.agent) and not event.inferred:
            found[index] = ("end-other",)
    for index in of_type.get(_SAFETY, ()):
        if events[index].status in (_ERROR, _CANCELLED):
            found[index] = ("abort",)
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
    for index in view.sequence:
        if index in acting and (agent := agents[index]) not in parents and agent not in stops:
            last[agent] = index
    yield from (index for index in last.values() if index in asked)
