"""Labels of the orchestration sub-decisions that events take: O1 spawn to O5 stop.

Labels in the trace are kept, with the rules that they name. Other events get a label for each rule of `RULES` that
fires.
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
"""The rule of a label that the trace has without a rule."""


class Label(Struct, frozen=True, gc=False):
    """A sub-decision that an event takes, given by its index, and the rule that fired."""

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
"""The acts: if one of them follows a step of an agent, the step is not the agent's last."""

_RETURNING = (EdgeType.RETURN, EdgeType.AGGREGATE)


def labels(trace: Trace | TraceView, step_indices: Collection[int] | None = None) -> list[Label]:
    """Return all labels of a trace by event; `step_indices` are the indices of its steps, if they are known.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    events = view.trace.events
    indices = set(steps(view.trace) if step_indices is None else step_indices)
    rules_of = _rules_by_type(view)
    for index in _joins(view.graph, indices):
        rules_of[index] = (*rules_of.get(index, ()), "join")
    for index in _last_steps(view, indices):
        rules_of[index] = (*rules_of.get(index, ()), "last-step")
    by_event = {index: [Label(index, RULES[rule][0], rule) for rule in rules] for index, rules in rules_of.items()}
    for index, event in enumerate(events):
        if event.sub_decisions:
            given_rules = event.sub_decision_rules or {}
            by_event[index] = [
                Label(index, decision, given_rules.get(decision, GIVEN)) for decision in event.sub_decisions
            ]
    return [label for index in sorted(by_event) for label in by_event[index]]


def _rules_by_type(view: TraceView) -> dict[int, tuple[str, ...]]:
    """Return the rules that fire on events because of their type and fields, at most one for each sub-decision."""
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
    rules.update(dict.fromkeys(indices_by_type.get(_AGGREGATE, ()), ("aggregate",)))
    rules.update(dict.fromkeys(indices_by_type.get(_STOP, ()), ("stop",)))
    for index in indices_by_type.get(_DESPAWN, ()):
        event = events[index]
        if event.target not in ("", event.agent) and not event.inferred:
            rules[index] = ("end-other",)
    for index in indices_by_type.get(_SAFETY, ()):
        if events[index].status in (Status.ERROR, Status.CANCELLED):
            rules[index] = ("abort",)
    return rules


def _joins(graph: Graph, step_indices: Collection[int]) -> set[int]:
    """Return the steps, other than aggregates, that the return of another agent leads to."""
    aggregates = set(graph.indices_by_type.get(_AGGREGATE, ()))
    joins = set()
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if target not in step_indices or target in aggregates or graph.agents[source] == graph.agents[target]:
            continue
        if graph.events[source].type is _RETURN or edge.type in _RETURNING:
            joins.add(target)
    return joins


def _last_steps(view: TraceView, step_indices: set[int]) -> Iterator[int]:
    """Yield the last steps of agents without a parent and without a stop; a step that an act follows does not count."""
    parents, stops = view.lifecycle.parents, view.lifecycle.stops
    last: dict[str, int] = {}
    agents, indices_by_type = view.graph.agents, view.graph.indices_by_type
    acting = step_indices.union(*[indices_by_type.get(kind, ()) for kind in _ACTS])
    for index in view.sequence:
        if index in acting and (agent := agents[index]) not in parents and agent not in stops:
            last[agent] = index
    yield from (index for index in last.values() if index in step_indices)
