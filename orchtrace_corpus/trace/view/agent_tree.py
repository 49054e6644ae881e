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
        role: The agent's role; empty if the trace gives no role.
        model: The model of its events; empty if they name no model or several.
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
    indices_by_agent: dict[str, list[int]] = {}
    begins: dict[str, float] = {}  # by agent: when it was spawned or first acted
    roles, events, starts, ends = roles_of(trace), trace.events, times.starts, times.ends
    spawns = set(times.graph.indices_by_type.get(_SPAWN, ()))
    for index in times.sequence:
        agent = times.graph.agents[index]
        if agent in indices_by_agent:
            indices_by_agent[agent].append(index)
        else:
            indices_by_agent[agent] = [index]
            begins.setdefault(agent, starts[index])
        if index in spawns:
            target = events[index].target
            if target and target not in begins:
                indices_by_agent.setdefault(target, [])
                begins[target] = starts[index]
    children: dict[str, list[str]] = {}  # by parent; agents without a parent under the empty name
    for agent in indices_by_agent:
        parent = parents.get(agent, "")
        if parent not in indices_by_agent:
            parent = ""
        children.setdefault(parent, []).append(agent)
    for siblings in children.values():
        siblings.sort(key=begins.__getitem__)
        siblings.reverse()  # the stack below takes the last sibling first
    agent_spans: list[AgentSpan] = []
    stack = [(agent, 0) for agent in children.get("", ())]
    while stack:
        agent, depth = stack.pop()
        indices = indices_by_agent[agent]
        own_events = [events[index] for index in indices]
        models = {event.model for event in own_events if event.model}
        tokens = [total(event.tokens) for event in own_events if event.tokens and not event.copied_context]
        agent_spans.append(
            AgentSpan(
                agent=agent,
                depth=depth,
                role=roles.get(agent, ""),
                model=models.pop() if len(models) == 1 else "",
                begin=begins[agent],
                end=max([ends[index] for index in indices], default=begins[agent]),
                events=indices,
                tokens=float(sum(tokens)) if tokens else None,
            )
        )
        stack += [(child, depth + 1) for child in children.get(agent, ())]
    return agent_spans


class AgentTime(NamedTuple):
    """The time of an agent. `worked`, `waited` and `idle` add up to `elapsed`.

    Attributes:
        elapsed: The time from its first event to its last.
        worked: The time in which at least one of its events was at work, including open calls.
        waited: The time in which it did nothing while an agent below it worked or had an open call.
        idle: The rest of the time.
        open: The part of `worked` in which all its events at work were open calls, which perhaps only waited.
    """

    elapsed: float
    worked: float
    waited: float
    idle: float
    open: float


def agent_times(tree: Sequence[AgentSpan], times: Timing, if_waiting: Timing) -> dict[str, AgentTime]:
    """Return the time of each agent by its id.

    `times` counts open calls as work, `if_waiting` as waits.
    """
    times_by_agent: dict[str, AgentTime] = {}
    # The loop goes from the last agent to the first, so that the agents below an agent come before it. For each agent
    # whose parent has not come yet: its depth, and the intervals in which it or an agent below it worked.
    subtrees: list[tuple[int, Intervals]] = []
    for agent in reversed(tree):
        own_work = _work_of(agent, times)
        work_below: Intervals = []
        while subtrees and subtrees[-1][0] > agent.depth:
            work_below += subtrees.pop()[1]
        subtree_work = union([*own_work, *work_below])
        subtrees.append((agent.depth, subtree_work))
        begin, end = max(agent.begin, times.begin), min(agent.end, times.end)
        elapsed = max(end - begin, 0.0)
        worked = length(own_work)
        subtree_work_in_life = union((max(first, begin), min(last, end)) for first, last in subtree_work)
        waited = length(subtree_work_in_life) - worked
        times_by_agent[agent.agent] = AgentTime(
            elapsed=elapsed,
            worked=worked,
            waited=waited,
            idle=max(elapsed - worked - waited, 0.0),
            open=worked - length(_work_of(agent, if_waiting)),
        )
    return {agent.agent: times_by_agent[agent.agent] for agent in tree}


def _work_of(agent: AgentSpan, times: Timing) -> Intervals:
    """Return the intervals in which an event of the agent was at work."""
    return union((times.work_starts[index], times.ends[index]) for index in agent.events if times.works[index] > 0)
