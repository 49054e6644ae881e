"""Labels events with the orchestration sub-decisions that they take: O1 spawn to O5 stop.

An event that the trace labels keeps those labels. Any other event gets a label for each rule of `RULES` that fires.
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

GIVEN = "given"
"""The rule of a label that the trace states without naming a rule."""


class Label(Struct, frozen=True, gc=False):
    """A sub-decision that an event takes.

    Attributes:
        event: The index of the event.
        decision: The sub-decision.
        rule: The rule that fired, or the rule that the trace names, or `GIVEN`.
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
"""The sub-decision of each rule, and when the rule fires, in the order of the sub-decisions."""


_ACTS = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.TOOL_CALL})
"""The types of events that show that an agent went on after a step, so that the step was not its last."""

_RETURN_EDGES = (EdgeType.RETURN, EdgeType.AGGREGATE)


def labels(trace: Trace | TraceView, step_indices: Collection[int] | None = None) -> list[Label]:
    """Return all labels of a trace, in the order of its events.

    Args:
        trace: The trace.
        step_indices: The indices of its steps, if the caller knows them already.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    events = view.trace.events
    step_set = set(steps(view.trace) if step_indices is None else step_indices)
    rules_by_event = _rules_by_type(view)
    for index in _joins(view.graph, step_set):
        rules_by_event[index] = (*rules_by_event.get(index, ()), "join")
    for index in _last_steps(view, step_set):
        rules_by_event[index] = (*rules_by_event.get(index, ()), "last-step")
    labels_by_event: dict[int, list[Label]] = {}
    for index, rules in rules_by_event.items():
        labels_by_event[index] = [Label(index, RULES[rule][0], rule) for rule in rules]
    for index, event in enumerate(events):
        if event.sub_decisions:  # labels of the trace replace those of the rules
            stated_rules = event.sub_decision_rules or {}
            labels_by_event[index] = [
                Label(index, decision, stated_rules.get(decision, GIVEN)) for decision in event.sub_decisions
            ]
    return [label for index in sorted(labels_by_event) for label in labels_by_event[index]]


def _rules_by_type(view: TraceView) -> dict[int, tuple[str, ...]]:
    """Return, by event index, the rules that fire because of the event's type and fields."""
    events, indices_by_type = view.graph.events, view.graph.indices_by_type
    rules: dict[int, tuple[str, ...]] = {}
    for index in indices_by_type.get(_SPAWN, ()):
        rules[index] = ("spawn", "spawn-target") if events[index].role or events[index].content_ref else ("spawn",)
    for index in indices_by_type.get(_MESSAGE, ()):
        event = events[index]
        if event.target:
            is_down = view.lineage.is_above(event.sender or event.agent, event.target)
            rules[index] = ("send-down",) if is_down else ("message",)
    for index in indices_by_type.get(_DECISION, ()):
        if events[index].target or events[index].tool:
            rules[index] = ("decide-target",)
    for index in indices_by_type.get(_AGGREGATE, ()):
        rules[index] = ("aggregate",)
    for index in indices_by_type.get(_STOP, ()):
        rules[index] = ("stop",)
    for index in indices_by_type.get(_DESPAWN, ()):
        event = events[index]
        ends_other = event.target and event.target != event.agent
        if ends_other and not event.inferred:
            rules[index] = ("end-other",)
    for index in indices_by_type.get(_SAFETY, ()):
        if events[index].status in (Status.ERROR, Status.CANCELLED):
            rules[index] = ("abort",)
    return rules


def _joins(graph: Graph, step_indices: Collection[int]) -> set[int]:
    """Return the steps, other than aggregates, to which an edge leads from another agent's return."""
    aggregates = set(graph.indices_by_type.get(_AGGREGATE, ()))
    joins = set()
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if target not in step_indices or target in aggregates or graph.agents[source] == graph.agents[target]:
            continue
        if graph.events[source].type is _RETURN or edge.type in _RETURN_EDGES:
            joins.add(target)
    return joins


def _last_steps(view: TraceView, step_indices: set[int]) -> Iterator[int]:
    """Yield the last step of each agent that was not spawned and logs no stop, if no act of the agent follows it."""
    parents, stops = view.lifecycle.parents, view.lifecycle.stops
    agents, indices_by_type = view.graph.agents, view.graph.indices_by_type
    steps_and_acts = step_indices.union(*[indices_by_type.get(kind, ()) for kind in _ACTS])
    last_by_agent: dict[str, int] = {}
    for index in view.sequence:
        agent = agents[index]
        if index in steps_and_acts and agent not in parents and agent not in stops:
            last_by_agent[agent] = index
    for index in last_by_agent.values():
        if index in step_indices:
            yield index
