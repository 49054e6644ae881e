"""Measures of the team: its steps, its depth and width, and the communication between its agents."""

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run, cite, positive
from orchtrace_corpus.trace.model.events import acting_tools
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view.lifecycle import is_after
from orchtrace_corpus.trace.view.timing import longest_path, most_at_once

_SPAWN, _MESSAGE = EventType.SPAWN, EventType.MESSAGE

_PARL = "Critical Steps of PARL (Kimi K2.5, arXiv 2602.02276)"
_SCALING = "message density (Kim et al., arXiv 2512.08296)"
_PROTOCOL = (EventType.SPAWN, EventType.MESSAGE, EventType.RETURN, EventType.AGGREGATE)


def step_count(run: Run) -> Measure:
    """The number of steps of all agents."""
    return Measure(float(len(run.steps)))


def critical_steps(run: Run) -> Measure:
    """The steps of the main agent, plus, for each group of agents spawned between two of them, those of the longest.

    The same rule gives the steps of a sub-agent that spawns others. If several agents have no parent, the one with the
    most steps counts.
    """
    parents, depths, events = run.view.lifecycle.parents, run.depths, run.trace.events
    steps: dict[str, list[tuple[float, int]]] = {}
    for step in run.steps:
        steps.setdefault(events[step].agent, []).append((run.times.starts[step], step))
    for steps_of_agent in steps.values():
        steps_of_agent.sort()
    born = {agent: indices[0] for agent, indices in run.times.indices_by_agent.items()}
    born.update({agent: spawns[0] for agent, spawns in run.view.lifecycle.spawns.items()})
    stages: dict[str, dict[int, int]] = {}
    most = max([len(steps_of_agent) for steps_of_agent in steps.values()], default=0)
    for agent in sorted(depths, key=depths.__getitem__, reverse=True):
        count = len(steps.get(agent, ()))
        if agent in stages:
            count += sum(stages[agent].values())
            most = max(most, count)
        if agent in parents:
            parent = parents[agent]
            stage = _steps_before(born[agent], steps.get(parent, ()), run) if agent in born else 0
            longest = stages.setdefault(parent, {})
            longest[stage] = max(longest.get(stage, 0), count)
    return Measure(float(most))


def _steps_before(index: int, steps: Sequence[tuple[float, int]], run: Run) -> int:
    """Return how many steps, sorted by time, are before an event; for steps at the same time, `seq` decides."""
    start, events = run.times.starts[index], run.trace.events
    place = count = bisect_right(steps, (start, inf))
    while place and steps[place - 1][0] == start:
        place -= 1
        count -= is_after(events[steps[place][1]], events[index], 0.0)
    return count


def critical_step_path(run: Run) -> Measure:
    """The most steps on a path of events that depend on one another: Critical Steps of a run that is not in stages."""
    weights = [0.0] * len(run.trace.events)
    for step in run.steps:
        weights[step] = 1.0
    path = longest_path(run.times, weights, overlapping=False)
    events = run.trace.events
    return Measure(path.length, events=tuple([events[event].id for event in path.events if weights[event]]))


def agent_count(run: Run) -> Measure:
    """The number of agents that act; people are none, nor are tools that act under their own names."""
    return Measure(float(len(run.times.indices_by_agent.keys() - run.people - acting_tools(run.trace))))


def delegation_depth(run: Run) -> Measure:
    """The longest chain of spawns: 0 for an agent alone."""
    return Measure(float(max(run.depths.values(), default=0)))


def width(run: Run) -> Measure:
    """The most agents alive at one instant, from spawn or first act to despawn or last act, both included.

    People do not count as agents.
    """
    starts, ends = run.times.starts, run.times.ends
    first = {agent: starts[indices[0]] for agent, indices in run.times.indices_by_agent.items()}
    last = {agent: ends[indices[-1]] for agent, indices in run.times.indices_by_end.items()}
    for agent, spawns in run.view.lifecycle.spawns.items():
        first[agent] = min(first.get(agent, starts[spawns[0]]), starts[spawns[0]])
        last[agent] = max(last.get(agent, 0.0), max([ends[spawn] for spawn in spawns]))
    for agent, despawns in run.view.lifecycle.despawns.items():
        if agent in last:
            last[agent] = max(last[agent], starts[despawns[-1]])
    for person in run.people:
        first.pop(person, None)
        last.pop(person, None)
    return Measure(float(most_at_once(first.values(), last.values(), closed=True)))


def fan_out(run: Run) -> Measure:
    """Spawns by decision that spawns: the event of the same agent that leads to a spawn, or the same instant."""
    events, times = run.trace.events, run.times
    spawns = times.graph.indices_by_type.get(_SPAWN, [])
    if not spawns:
        return Measure(None, "nothing is spawned")
    decisions: dict[int, int | tuple[str, float]] = {}
    previous_spawns: dict[int, int] = {}  # of spawns that follow from another spawn: they share its decision
    for index in spawns:
        spawn = events[index]
        causes = [source for source in times.incoming[index] if events[source].agent == spawn.agent]
        if not causes:
            decisions[index] = spawn.agent, spawn.t
            continue
        causes = [source for source in causes if events[source].type is not _SPAWN] or causes
        cause = max(causes, key=lambda source: (events[source].t, events[source].seq or 0, events[source].id))
        if events[cause].type is _SPAWN:
            previous_spawns[index] = cause
        else:
            decisions[index] = cause
    if previous_spawns:
        for index in times.sequence:
            if index in previous_spawns:
                decisions[index] = decisions[previous_spawns[index]]
    return Measure(len(spawns) / len(set(decisions.values())))


def message_density(run: Run) -> Measure:
    """Messages between agents by step."""
    if not run.steps:
        return Measure(None, "no step is logged")
    indices = run.times.graph.indices_by_type.get(_MESSAGE, ())
    messages = sum(not run.trace.events[index].copied_context for index in indices)
    return Measure(messages / len(run.steps))


def communication_tokens(run: Run) -> Measure:
    """The tokens of all messages."""
    return _tokens_of(run, (_MESSAGE,), "messages")


def protocol_share(run: Run) -> Measure:
    """The share of all tokens that spawns, messages, returns and aggregates take."""
    protocol = _tokens_of(run, _PROTOCOL, "spawns, messages, returns and aggregates")
    if protocol.value is None:
        return Measure(None, protocol.reason)
    all_events = _tokens_of(run, tuple(run.spending), "events")
    if all_events.value is None:
        return Measure(None, all_events.reason)
    return Measure(protocol.value / all_events.value) if all_events.value else Measure(None, "no token is logged")


_WITHOUT_TOKENS = frozenset(
    {EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.HUMAN, EventType.SAFETY, EventType.DESPAWN, EventType.STOP}
)
"""Types of events for which a model writes nothing, or nothing that another event does not count."""


def _tokens_of(run: Run, kinds: Sequence[EventType], nouns: str) -> Measure:
    """Return the tokens of the events of some types; unknown if an event that should have tokens has none."""
    count, tokens = 0, 0.0
    missing: list[int] = []
    for kind in kinds:
        if spending := run.spending.get(kind):
            count += spending.events
            tokens += spending.tokens
            if kind not in _WITHOUT_TOKENS:
                missing += spending.missing
    if not count:
        return Measure(None, f"there are no {nouns}")
    if missing:
        reason = f"{len(missing)} of {count} {nouns} have no tokens: {cite(run.trace, sorted(missing))}"
        return Measure(None, reason, at_least=positive(tokens))
    return Measure(tokens)


DEFINITIONS = (
    Definition("steps", "1", "inferences, orchestrator decisions and aggregates of all agents", "ours", step_count),
    Definition("critical_steps", "1", "sum over stages of (S_main + max_i S_sub,i)", _PARL, critical_steps),
    Definition(
        "critical_step_path",
        "1",
        "most steps on a path of dependent events",
        f"ours, after {_PARL}",
        critical_step_path,
    ),
    Definition("agents", "1", "agents that act", "ours", agent_count),
    Definition("delegation_depth", "1", "longest chain of spawns", "ours", delegation_depth),
    Definition("width", "1", "most agents alive at once", "ours", width),
    Definition("fan_out", "1", "spawns / decisions that spawn", "ours", fan_out),
    Definition("message_density", "1", "messages / steps", _SCALING, message_density),
    Definition(
        "communication_tokens", "token", "sum of the tokens of messages", "ours", communication_tokens, is_bounded=True
    ),
    Definition(
        "protocol_share", "1", "tokens of spawns, messages, returns and aggregates / all tokens", "ours", protocol_share
    ),
)
