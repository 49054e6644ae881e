"""The team: how deep it delegates, how wide it grows, how much its agents say to one another."""

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

    A sub-agent that spawns others counts by the same rule. Of several agents that nobody spawned, the largest.
    """
    parents, below, events = run.view.lifecycle.parents, run.depths, run.trace.events
    own: dict[str, list[tuple[float, int]]] = {}
    for step in run.steps:
        own.setdefault(events[step].agent, []).append((run.times.starts[step], step))
    for taken in own.values():
        taken.sort()
    born = {agent: numbers[0] for agent, numbers in run.times.by_agent.items()}
    born.update({agent: spawns[0] for agent, spawns in run.view.lifecycle.spawns.items()})
    stages: dict[str, dict[int, int]] = {}
    most = max([len(taken) for taken in own.values()], default=0)
    for agent in sorted(below, key=below.__getitem__, reverse=True):
        counted = len(own.get(agent, ()))
        if agent in stages:
            counted += sum(stages[agent].values())
            most = max(most, counted)
        if agent in parents:
            parent = parents[agent]
            stage = _steps_before(born[agent], own.get(parent, ()), run) if agent in born else 0
            longest = stages.setdefault(parent, {})
            longest[stage] = max(longest.get(stage, 0), counted)
    return Measure(float(most))


def _steps_before(index: int, taken: Sequence[tuple[float, int]], run: Run) -> int:
    """Count the steps, given by time, before an event; for steps at its instant, `seq` decides."""
    start, events = run.times.starts[index], run.trace.events
    place = before = bisect_right(taken, (start, inf))
    while place and taken[place - 1][0] == start:
        place -= 1
        before -= is_after(events[taken[place][1]], events[index], 0.0)
    return before


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
    return Measure(float(len(run.times.by_agent.keys() - run.people - acting_tools(run.trace))))


def delegation_depth(run: Run) -> Measure:
    """The longest chain of spawns: 0 for an agent alone."""
    return Measure(float(max(run.depths.values(), default=0)))


def width(run: Run) -> Measure:
    """The most agents alive at one instant, from spawn or first act to despawn or last act, both included.

    People are no agents.
    """
    starts, ends = run.times.starts, run.times.ends
    first = {agent: starts[numbers[0]] for agent, numbers in run.times.by_agent.items()}
    last = {agent: ends[numbers[-1]] for agent, numbers in run.times.finished.items()}
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
    spawns = times.graph.of_type.get(_SPAWN, [])
    if not spawns:
        return Measure(None, "nothing is spawned")
    decisions: dict[int, int | tuple[str, float]] = {}
    following: dict[int, int] = {}
    for index in spawns:
        spawn = events[index]
        own = [source for source in times.incoming[index] if events[source].agent == spawn.agent]
        if len(own) > 1:
            own = [source for source in own if events[source].type is not _SPAWN] or own
            own = [max(own, key=lambda source: (events[source].t, events[source].seq or 0, events[source].id))]
        if own and events[own[0]].type is _SPAWN:
            following[index] = own[0]
        else:
            decisions[index] = own[0] if own else (spawn.agent, spawn.t)
    for index in times.sequence if following else ():
        if index in following:
            decisions[index] = decisions[following[index]]
    return Measure(len(spawns) / len(set(decisions.values())))


def message_density(run: Run) -> Measure:
    """Messages between agents by step."""
    number = len(run.steps)
    sent = run.times.graph.of_type.get(_MESSAGE, ())
    messages = len([n for n in sent if not run.trace.events[n].copied_context])
    return Measure(messages / number) if number else Measure(None, "no step is logged")


def communication_tokens(run: Run) -> Measure:
    """The tokens of all messages."""
    return _tokens_of(run, (_MESSAGE,), "messages")


def protocol_share(run: Run) -> Measure:
    """The share of all tokens that spawns, messages, returns and aggregates take."""
    protocol = _tokens_of(run, _PROTOCOL, "spawns, messages, returns and aggregates")
    if protocol.value is None:
        return Measure(None, protocol.reason)
    everything = _tokens_of(run, tuple(run.spending), "events")
    if everything.value is None:
        return Measure(None, everything.reason)
    return Measure(protocol.value / everything.value) if everything.value else Measure(None, "no token is logged")


_MAY_LACK = frozenset(
    {EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.HUMAN, EventType.SAFETY, EventType.DESPAWN, EventType.STOP}
)
"""Events of which a model writes nothing beyond what another event has: without tokens they have none."""


def _tokens_of(run: Run, kinds: Sequence[EventType], nouns: str) -> Measure:
    """The tokens of the events of some types; None where one that should have tokens has none."""
    number, spent, lacking = 0, 0.0, list[int]()
    for kind in kinds:
        if one := run.spending.get(kind):
            number += one.events
            spent += one.tokens
            if kind not in _MAY_LACK:
                lacking += one.lacking
    if not number:
        return Measure(None, f"there are no {nouns}")
    if lacking:
        reason = f"{len(lacking)} of {number} {nouns} have no tokens: {cite(run.trace, sorted(lacking))}"
        return Measure(None, reason, at_least=positive(spent))
    return Measure(spent)


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
