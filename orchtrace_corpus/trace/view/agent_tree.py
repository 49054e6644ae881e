"""The agents of a trace as a tree, with the events, the tokens and the time of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
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
        agent: The agent's id.
        depth: The number of its ancestors.
        role: Its role; empty if the trace gives none.
        model: The model of its events; empty if they name none or several.
        begin: When it was spawned or first acted, in the unit of the timing.
        end: When its last event ended.
        events: The indices of its events, by time.
        tokens: The tokens of its events; None if no event has any.
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
    """Return the agents of a trace in depth-first order; siblings, and agents without a parent, by their begin."""
    indices_of: dict[str, list[int]] = {}
    begin: dict[str, float] = {}
    roles, events, starts, ends = roles_of(trace), trace.events, times.starts, times.ends
    spawns = set(times.graph.indices_by_type.get(_SPAWN, ()))
    for index in times.sequence:
        agent = times.graph.agents[index]
        if agent in indices_of:
            indices_of[agent].append(index)
        else:
            indices_of[agent] = [index]
            begin.setdefault(agent, starts[index])
        if index in spawns and (target := events[index].target) and target not in begin:
            indices_of.setdefault(target, [])
            begin[target] = starts[index]
    children: dict[str, list[str]] = {}
    for agent in indices_of:
        parent = parents.get(agent, "")
        children.setdefault(parent if parent in indices_of else "", []).append(agent)
    agent_spans: list[AgentSpan] = []
    latest_first = {parent: sorted(below, key=begin.__getitem__)[::-1] for parent, below in children.items()}
    waiting = [(agent, 0) for agent in latest_first.get("", ())]
    while waiting:
        agent, depth = waiting.pop()
        indices = indices_of[agent]
        own_events = [events[index] for index in indices]
        models = {event.model for event in own_events if event.model}
        tokens = [total(event.tokens) for event in own_events if event.tokens and not event.copied_context]
        agent_spans.append(
            AgentSpan(
                agent,
                depth,
                roles.get(agent, ""),
                models.pop() if len(models) == 1 else "",
                begin[agent],
                max([ends[index] for index in indices], default=begin[agent]),
                indices,
                float(sum(tokens)) if tokens else None,
            )
        )
        waiting += [(child, depth + 1) for child in latest_first.get(agent, ())]
    return agent_spans


class AgentTime(NamedTuple):
    """The time of an agent. `worked`, `waited` and `idle` add up to `elapsed`.

    Attributes:
        elapsed: The time from its first event to its last.
        worked: The time in which at least one of its events was at work, including open calls.
        waited: The time in which it did nothing while an agent below it worked or had an open call.
        idle: The rest.
        open: The part of `worked` in which it had only open calls; if these waited, so did the agent.
    """

    elapsed: float
    worked: float
    waited: float
    idle: float
    open: float


def agent_times(tree: Sequence[AgentSpan], times: Timing, if_waiting: Timing) -> dict[str, AgentTime]:
    """Return the time of each agent, from the times with open calls as work and those with open calls as waits."""
    by_agent: dict[str, AgentTime] = {}
    # Agents are taken from the last to the first, so that those below an agent come before it: their depths, and the
    # intervals in which they, or an agent below them, worked.
    subtrees: list[tuple[int, Intervals]] = []
    for agent in reversed(tree):
        begin, end = max(agent.begin, times.begin), min(agent.end, times.end)
        own = union((times.begins[n], times.ends[n]) for n in agent.events if times.works[n] > 0)
        without_open = union(
            (if_waiting.begins[n], if_waiting.ends[n]) for n in agent.events if if_waiting.works[n] > 0
        )
        busy = own
        while subtrees and subtrees[-1][0] > agent.depth:
            busy = [*busy, *subtrees.pop()[1]]
        busy = union(busy)
        subtrees.append((agent.depth, busy))
        elapsed, worked = max(end - begin, 0.0), length(own)
        waited = length(union((max(first, begin), min(last, end)) for first, last in busy)) - worked
        idle = max(elapsed - worked - waited, 0.0)
        by_agent[agent.agent] = AgentTime(elapsed, worked, waited, idle, worked - length(without_open))
    return {agent.agent: by_agent[agent.agent] for agent in tree}
