"""The lifecycle of agents: their parents, and the events that begin and end them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.cycles import closing_links
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view.graph import Graph

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Trace

_SPAWN, _DESPAWN, _STOP = EventType.SPAWN, EventType.DESPAWN, EventType.STOP


class Lifecycle(NamedTuple):
    """The parent of each agent, and the events that begin and end it; each mapping is by the agent's id.

    Attributes:
        parents: The known parents: from the agent's first spawn, else from its declaration, else from its own events.
        circular: The parents left out of `parents`, one for each cycle, because no agent is its own ancestor.
        spawns: The indices of the spawn events that create the agent, by time.
        despawns: The indices of the despawn events that end it, by time.
        stops: The indices of its own stop events, by time.
    """

    parents: Mapping[str, str]
    circular: Mapping[str, str]
    spawns: Mapping[str, list[int]]
    despawns: Mapping[str, list[int]]
    stops: Mapping[str, list[int]]


def lifecycle(trace: Trace, graph: Graph) -> Lifecycle:
    """Return the lifecycle of every agent."""
    spawns = _by_agent(graph, _SPAWN, lambda event: event.target)
    despawns = _by_agent(graph, _DESPAWN, lambda event: event.target or event.agent)
    stops = _by_agent(graph, _STOP, lambda event: event.agent)
    parents: dict[str, str] = {}
    for index, parent in graph.named_parents.items():
        parents.setdefault(graph.agents[index], parent)
    parents.update({agent.id: agent.parent for agent in trace.agents if agent.parent})
    parents.update({agent: graph.events[indices[0]].agent for agent, indices in spawns.items()})
    circular = {}
    if not parents.keys().isdisjoint(parents.values()):  # no cycle is possible if no parent has a parent
        links = closing_links({agent: (parent,) for agent, parent in parents.items()})
        circular = {agent: parents.pop(agent) for _, agent in links}
    return Lifecycle(parents, circular, spawns, despawns, stops)


def _by_agent(graph: Graph, kind: EventType, agent_of: Callable[[Event], str]) -> dict[str, list[int]]:
    """Return the indices of the events of one type by the agent that they begin or end, each list by time."""
    by_agent: dict[str, list[int]] = {}
    for index in graph.indices_by_type.get(kind, ()):
        if agent := agent_of(graph.events[index]):
            by_agent.setdefault(agent, []).append(index)
    return {agent: sort_by_time(indices, graph.events) for agent, indices in by_agent.items()}


def sort_by_time(indices: Iterable[int], events: Sequence[Event]) -> list[int]:
    """Return event indices by time, then by `seq`; events without a `seq` come first, since none is surely earlier."""
    return sorted(indices, key=lambda index: _time_key(events[index]))


def _time_key(event: Event) -> tuple[float, float]:
    return event.t, -1 if event.seq is None else event.seq


def ancestors(agent: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield the agent's parent, its parent's parent and so on."""
    parent = parents.get(agent)
    while parent is not None:
        yield parent
        parent = parents.get(parent)


def depths(parents: Mapping[str, str]) -> dict[str, int]:
    """Return the number of ancestors of each agent that has a parent or is one."""
    by_agent: dict[str, int] = {}
    for agent in parents:
        path = []
        ancestor: str | None = agent
        while ancestor is not None and ancestor not in by_agent:
            path.append(ancestor)
            ancestor = parents.get(ancestor)
        depth = -1 if ancestor is None else by_agent[ancestor]
        for descendant in reversed(path):
            depth += 1
            by_agent[descendant] = depth
    return by_agent


class Lineage:
    """The ancestors of each agent, for fast look-up, from the parents of agents, which must have no cycles.

    Agents are numbered in depth-first order, so that an agent's descendants are the agents numbered after it, as many
    as its subtree has.
    """

    def __init__(self, parents: Mapping[str, str]) -> None:
        children: dict[str, list[str]] = {}
        for agent, parent in parents.items():
            children.setdefault(parent, []).append(agent)
        self._number: dict[str, int] = {}
        waiting = [agent for agent in children if agent not in parents]
        while waiting:
            agent = waiting.pop()
            self._number[agent] = len(self._number)
            waiting += children.get(agent, ())
        self._subtree_size = dict.fromkeys(self._number, 1)
        for agent in reversed(self._number):
            if agent in parents:
                self._subtree_size[parents[agent]] += self._subtree_size[agent]

    def is_above(self, agent: str, other: str) -> bool:
        """Return True if an agent is an ancestor of another."""
        number = self._number.get(agent)
        return number is not None and number < self._number.get(other, -1) < number + self._subtree_size[agent]

    def lowest(self, agents: Iterable[str]) -> list[str]:
        """Return those of some agents that are ancestors of none of the others."""
        ordered = sorted(agents, key=lambda agent: self._number.get(agent, -1))
        # An agent that is above any of the others is above the next one in this order.
        return [agent for agent, following in pairwise(ordered) if not self.is_above(agent, following)] + ordered[-1:]


def is_after(event: Event, other: Event, skew: float) -> bool:
    """Return True if an event is surely later than another: by more than the clock skew or, at one time, by `seq`."""
    if event.t == other.t and event.seq is not None and other.seq is not None:
        return event.seq > other.seq
    return event.t > other.t + skew


def begins_after(event: Event, spawns: Sequence[int], events: Sequence[Event], skew: float) -> bool:
    """Return True if an event is before its agent's life: all spawns of the agent, given by time, are surely later."""
    return not _any_not_after(event, spawns, 0, events, skew)


def ends_before(
    event: Event, spawns: Sequence[int], despawns: Sequence[int], events: Sequence[Event], skew: float
) -> Event | None:
    """Return the last despawn of an agent before its event, if no spawn in between explains the event; else None.

    Spawns and despawns of the agent are given by time.
    """
    # The despawns surely earlier than the event: at equal times by `seq`, else by more than the skew.
    count = bisect_left(despawns, _time_key(event), key=lambda index: _time_key(events[index]))
    if not count or not is_after(event, events[despawns[count - 1]], skew):
        count = bisect_left(despawns, event.t, key=lambda index: events[index].t + skew)
    if not count:
        return None
    despawn = events[despawns[count - 1]]
    next_spawn = bisect_left(spawns, despawn.t - skew, key=lambda index: events[index].t)
    return None if _any_not_after(event, spawns, next_spawn, events, skew) else despawn


def _any_not_after(event: Event, spawns: Sequence[int], place: int, events: Sequence[Event], skew: float) -> bool:
    """Return True if any spawn from a place in the list on is not surely later than an event."""
    while place < len(spawns):
        spawn = events[spawns[place]]
        if not is_after(spawn, event, skew):
            return True
        if spawn.t > event.t + skew:
            break  # so are all that follow
        # This spawn is later by `seq`; so are the others at its time.
        place = bisect_right(spawns, spawn.t, place, key=lambda index: events[index].t)
    return False
