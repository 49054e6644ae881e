"""The agents of a trace as a tree, each with the time from its first to its last event, and what it did in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.events import roles_of, total
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view.intervals import Intervals, length, union
from orchtrace_corpus.trace.view.timing import Timing

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

_SPAWN = EventType.SPAWN


class AgentSpan(NamedTuple):
    """An agent of a trace: its place in the tree, its time and its events.

    Attributes:
        agent: Its name.
        depth: How many agents are above it.
        role: Its role; empty where the trace gives none.
        model: The model of its events, if they name just one.
        begin: When it comes into being, in the unit of the timing.
        end: When it is last seen.
        events: The numbers of its events, by time.
        tokens: The tokens of its events; None where none has any.
    """

    agent: str
    depth: int
    role: str
    model: str
    begin: float
    end: float
    events: list[int]
    tokens: float | None


def agent_tree(trace: Trace, times: Timing, parents: Mapping[str, str]) -> list[AgentSpan]:
    """The agents of a trace: those that nobody spawned by their first act, each followed by those that it spawned."""
    events: dict[str, list[int]] = {}
    begin: dict[str, float] = {}
    roles, happened, starts, ends = roles_of(trace), trace.events, times.starts, times.ends
    spawns = set(times.of.of_type.get(_SPAWN, ()))
    for index in times.sequence:
        agent = times.of.agents[index]
        if agent in events:
            events[agent].append(index)
        else:
            events[agent] = [index]
            begin.setdefault(agent, starts[index])
        if index in spawns and (target := happened[index].target) and target not in begin:
            events.setdefault(target, [])
            begin[target] = starts[index]
    children: dict[str, list[str]] = {}
    for agent in events:
        parent = parents.get(agent, "")
        children.setdefault(parent if parent in events else "", []).append(agent)
    agent_spans: list[AgentSpan] = []
    latest_first = {above: sorted(below, key=begin.__getitem__)[::-1] for above, below in children.items()}
    waiting = [(agent, 0) for agent in latest_first.get("", ())]
    while waiting:
        agent, depth = waiting.pop()
        indices = events[agent]
        own = [happened[index] for index in indices]
        models = {event.model for event in own if event.model}
        counted = [total(event.tokens) for event in own if event.tokens and not event.copied_context]
        agent_spans.append(
            AgentSpan(
                agent,
                depth,
                roles.get(agent, ""),
                models.pop() if len(models) == 1 else "",
                begin[agent],
                max([ends[index] for index in indices], default=begin[agent]),
                indices,
                float(sum(counted)) if counted else None,
            )
        )
        waiting += [(child, depth + 1) for child in latest_first.get(agent, ())]
    return agent_spans


class AgentTime(NamedTuple):
    """The time of an agent; the last three add up to the first.

    Attributes:
        elapsed: From its first event to its last.
        worked: The time in which at least one of its working events goes on, open calls included.
        waited: The time in which it does nothing while an agent below it works or has an open call.
        idle: What is left.
        open: How much of what it worked is nothing but open calls; if these waited, that is waited as well.
    """

    elapsed: float
    worked: float
    waited: float
    idle: float
    open: float


def agent_times(tree: Sequence[AgentSpan], times: Timing, if_waiting: Timing) -> dict[str, AgentTime]:
    """Return the time of each agent: worked, waited, idle.

    Args:
        tree: The agents, each before those below it.
        times: The times of the events.
        if_waiting: The same, open calls taken as waits.
    """
    found: dict[str, AgentTime] = {}
    below: list[tuple[int, Intervals]] = []  # of agents to the right in the tree: their depth, when they are busy
    for one in reversed(tree):
        begin, end = max(one.begin, times.begin), min(one.end, times.end)
        own = union((times.begins[n], times.ends[n]) for n in one.events if times.works[n] > 0)
        sure = union((if_waiting.begins[n], if_waiting.ends[n]) for n in one.events if if_waiting.works[n] > 0)
        busy = own
        while below and below[-1][0] > one.depth:
            busy = [*busy, *below.pop()[1]]
        busy = union(busy)
        below.append((one.depth, busy))
        elapsed, worked = max(end - begin, 0.0), length(own)
        waited = length(union((max(a, begin), min(b, end)) for a, b in busy)) - worked
        found[one.agent] = AgentTime(
            elapsed, worked, waited, max(elapsed - worked - waited, 0.0), worked - length(sure)
        )
    return {one.agent: found[one.agent] for one in tree}
