"""The orchestration sub-decisions that the events of a trace take: O1 spawn to O5 stop.

Labels that the trace has already are kept, and its own word for who gave them. Otherwise one rule or more of
`RULES` may fire on an event; each label names its rule.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model.trace import Decision, EdgeType, Event, EventType, Status, Trace
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.graph import Graph
from orchtrace_corpus.trace.view.lifecycle import Lineage

GIVEN = "given"
"""Stands for the rule of a label that the trace brings along without one."""


class Label(NamedTuple):
    """A sub-decision that an event takes, with the rule that says so."""

    event: int
    decision: Decision
    rule: str


RULES: dict[str, tuple[Decision, str]] = {
    "spawn": (Decision.SPAWN, "The event brings an agent into being."),
    "spawn-target": (Decision.DELEGATE, "The event that spawns an agent also chooses its role or hands it its task."),
    "send-down": (Decision.DELEGATE, "A message goes down, from an agent to one that it has spawned."),
    "decide-target": (Decision.DELEGATE, "An orchestrator decision names the agent or the tool that acts next."),
    "message": (Decision.COMMUNICATE, "A message goes to an agent that the sender has not spawned."),
    "aggregate": (Decision.AGGREGATE, "The event makes one result of several."),
    "join": (Decision.AGGREGATE, "A step, other than an aggregate, that what another agent has returned leads to."),
    "stop": (Decision.STOP, "The agent stops."),
    "end-other": (Decision.STOP, "An agent ends another: a despawn that was logged, not inferred."),
    "abort": (Decision.STOP, "A safety event that failed or was cancelled ends what it was about."),
    "last-step": (
        Decision.STOP,
        "The last step of an agent that nobody spawned, where it logs no stop and does no more.",
    ),
}
"""What each rule gives, and when it fires, in the order of the sub-decisions."""


_ACTS = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.TOOL_CALL})
"""What an agent does after a step that was not its last word."""


def labels(trace: Trace | TraceView) -> list[Label]:
    """All labels of a trace, by event.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    asked = set(steps(view.trace))
    joins = set(_joins(view.graph, asked))
    last = set(_last_steps(view, asked))
    found: list[Label] = []
    for number, event in enumerate(view.trace.events):
        if event.sub_decisions:
            rules = event.sub_decision_rules if isinstance(event.sub_decision_rules, dict) else {}
            found += [Label(number, decision, rules.get(decision, GIVEN)) for decision in event.sub_decisions]
            continue
        names = list(_fired(event, view.lineage))
        names += ["join"] if number in joins else []
        names += ["last-step"] if number in last else []
        first = {RULES[name][0]: name for name in reversed(names)}
        found += [Label(number, RULES[name][0], name) for name in names if first[RULES[name][0]] == name]
    return found


def _fired(event: Event, lineage: Lineage) -> Iterator[str]:
    """The rules that the event by itself, and who spawned whom, fire."""
    kind = event.type
    if kind is EventType.SPAWN:
        yield "spawn"
        if event.role or event.content_ref:
            yield "spawn-target"
    elif kind is EventType.MESSAGE and event.target:
        yield "send-down" if lineage.is_above(event.sender or event.agent, event.target) else "message"
    elif kind is EventType.DECISION and (event.target or event.tool):
        yield "decide-target"
    elif kind is EventType.AGGREGATE:
        yield "aggregate"
    elif kind is EventType.STOP:
        yield "stop"
    elif kind is EventType.DESPAWN and event.target not in ("", event.agent) and not event.inferred:
        yield "end-other"
    elif kind is EventType.SAFETY and event.status in (Status.ERROR, Status.CANCELLED):
        yield "abort"


def _joins(of: Graph, asked: Collection[int]) -> Iterator[int]:
    """Steps that are no aggregate, but that a return to their agent leads to."""
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        returned = of.events[source].type is EventType.RETURN or edge.type in (EdgeType.RETURN, EdgeType.AGGREGATE)
        is_other = of.agents[source] != of.agents[target]
        if returned and is_other and target in asked and of.events[target].type is not EventType.AGGREGATE:
            yield target


def _last_steps(view: TraceView, asked: Collection[int]) -> Iterator[int]:
    """The last steps of agents that nobody spawned and that log no stop; a step that leads to an act is none."""
    parents, stops = view.lifecycle.parents, view.lifecycle.stops
    last: dict[str, int] = {}
    for number in view.sequence:
        event = view.trace.events[number]
        acts = number in asked or event.type in _ACTS
        if acts and event.agent not in parents and event.agent not in stops:
            last[event.agent] = number
    yield from (number for number in last.values() if number in asked)
