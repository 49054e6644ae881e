"""Measures of the team: its steps, its depth and width, and the communication between its agents."""

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run, cite, lower_bound
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
    """The steps of the main agent plus, for each group of agents spawned between two steps, the most steps of an agent.

    Such a group is called a stage. The critical steps of a sub-agent that spawns others are found in the same way. If
    several agents have no parent, the one with the most critical steps is the main agent.
    """
    parents, depths, events = run.view.lifecycle.parents, run.depths, run.trace.events
    steps_by_agent: dict[str, list[tuple[float, int]]] = {}  # each as its start and its index
    for step in run.steps:
        steps_by_agent.setdefault(events[step].agent, []).append((run.times.starts[step], step))
    for steps in steps_by_agent.values():
        steps.sort()
    first_events = {agent: indices[0] for agent, indices in run.times.indices_by_agent.items()}
    first_events.update({agent: spawns[0] for agent, spawns in run.view.lifecycle.spawns.items()})
    most = max([len(steps) for steps in steps_by_agent.values()], default=0)
    longest_by_stage: dict[str, dict[int, int]] = {}  # for each parent, by the number of its steps before the stage
    for agent in sorted(depths, key=depths.__getitem__, reverse=True):  # sub-agents before their parents
        critical = len(steps_by_agent.get(agent, ()))
        if agent in longest_by_stage:
            critical += sum(longest_by_stage[agent].values())
            most = max(most, critical)
        if agent in parents:
            parent = parents[agent]
            stage = 0
            if agent in first_events:
                stage = _count_steps_before(first_events[agent], steps_by_agent.get(parent, ()), run)
            stages = longest_by_stage.setdefault(parent, {})
            stages[stage] = max(stages.get(stage, 0), critical)
    return Measure(float(most))


def _count_steps_before(index: int, steps: Sequence[tuple[float, int]], run: Run) -> int:
    """Return how many steps, given as sorted (start, index), are before an event; at the same time, `seq` decides."""
    start, events = run.times.starts[index], run.trace.events
    place = bisect_right(steps, (start, inf))  # the number of steps that begin before the event or at the same time
    count = place
    while place and steps[place - 1][0] == start:
        place -= 1
        step = steps[place][1]
        if is_after(events[step], events[index], skew=0.0):
            count -= 1
    return count


def critical_step_path(run: Run) -> Measure:
    """The most steps on a path of dependent events: Critical Steps without the assumption that a run has stages."""
    weights = [0.0] * len(run.trace.events)
    for step in run.steps:
        weights[step] = 1.0
    path = longest_path(run.times, weights, overlapping=False)
    steps = [run.trace.events[index].id for index in path.events if weights[index]]
    return Measure(path.length, events=tuple(steps))


def agent_count(run: Run) -> Measure:
    """The number of agents that act, without people and without tools that act under names of their own."""
    agents = run.times.indices_by_agent.keys() - run.people - acting_tools(run.trace)
    return Measure(float(len(agents)))


def delegation_depth(run: Run) -> Measure:
    """The length of the longest chain of spawns; 0 if no agent has a parent."""
    return Measure(float(max(run.depths.values(), default=0)))


def width(run: Run) -> Measure:
    """The most agents alive at one moment, from spawn or first event to despawn or last event, both included.

    People do not count. Of spawn and first event, the earlier one counts; of despawn and last event, the later one.
    """
    starts, ends = run.times.starts, run.times.ends
    births = {agent: starts[indices[0]] for agent, indices in run.times.indices_by_agent.items()}
    deaths = {agent: ends[indices[-1]] for agent, indices in run.times.indices_by_end.items()}
    for agent, spawns in run.view.lifecycle.spawns.items():
        first_spawn = starts[spawns[0]]
        births[agent] = min(births.get(agent, first_spawn), first_spawn)
        deaths[agent] = max(deaths.get(agent, 0.0), max([ends[spawn] for spawn in spawns]))
    for agent, despawns in run.view.lifecycle.despawns.items():
        if agent in deaths:
            deaths[agent] = max(deaths[agent], starts[despawns[-1]])
    for person in run.people:
        births.pop(person, None)
        deaths.pop(person, None)
    return Measure(float(most_at_once(births.values(), deaths.values(), closed=True)))


def fan_out(run: Run) -> Measure:
    """The number of spawns, divided by the number of decisions to spawn.

    The decision of a spawn is the event of the same agent from which an edge leads to it. A spawn that follows from
    another spawn shares its decision. Spawns without such an edge share a decision if an agent made them at one time.
    """
    events, times = run.trace.events, run.times
    spawns = times.graph.indices_by_type.get(_SPAWN, [])
    if not spawns:
        return Measure(None, "nothing is spawned")
    decisions: dict[int, int | tuple[str, float]] = {}  # for each spawn an event, or the agent and the time
    previous_spawns: dict[int, int] = {}  # for each spawn that follows from another spawn, that other spawn
    for index in spawns:
        spawn = events[index]
        causes = [source for source in times.incoming[index] if events[source].agent == spawn.agent]
        if not causes:
            decisions[index] = spawn.agent, spawn.t
            continue
        decisive = [source for source in causes if events[source].type is not _SPAWN]
        if not decisive:
            decisive = causes
        cause = max(decisive, key=lambda source: (events[source].t, events[source].seq or 0, events[source].id))
        if events[cause].type is _SPAWN:
            previous_spawns[index] = cause
        else:
            decisions[index] = cause
    if previous_spawns:
        for index in times.sequence:  # so that the previous spawn comes first
            if index in previous_spawns:
                decisions[index] = decisions[previous_spawns[index]]
    return Measure(len(spawns) / len(set(decisions.values())))


def message_density(run: Run) -> Measure:
    """The number of messages between agents, divided by the number of steps."""
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
    if not all_events.value:
        return Measure(None, "no token is logged")
    return Measure(protocol.value / all_events.value)


_WITHOUT_TOKENS = frozenset(
    {EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.HUMAN, EventType.SAFETY, EventType.DESPAWN, EventType.STOP}
)
"""Types of events without tokens of their own: a model writes nothing for them, or another event counts the tokens."""


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
        return Measure(None, reason, at_least=lower_bound(tokens))
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
