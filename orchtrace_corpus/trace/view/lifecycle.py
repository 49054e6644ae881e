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
            They form no cycle.
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
    spawns = _group_by_agent(graph, _SPAWN, lambda event: event.target)
    despawns = _group_by_agent(graph, _DESPAWN, lambda event: event.target or event.agent)
    stops = _group_by_agent(graph, _STOP, lambda event: event.agent)
    parents: dict[str, str] = {}  # a later source of parents replaces an earlier one
    for index, parent in graph.named_parents.items():
        parents.setdefault(graph.agents[index], parent)
    parents.update({agent.id: agent.parent for agent in trace.agents if agent.parent})
    parents.update({agent: graph.events[indices[0]].agent for agent, indices in spawns.items()})
    circular = {}
    if not parents.keys().isdisjoint(parents.values()):  # no cycle is possible if no parent has a parent
        links = closing_links({agent: (parent,) for agent, parent in parents.items()})
        circular = {agent: parents.pop(agent) for _, agent in links}
    return Lifecycle(parents, circular, spawns, despawns, stops)


def _group_by_agent(graph: Graph, kind: EventType, agent_of: Callable[[Event], str]) -> dict[str, list[int]]:
    """Return the indices of the events of one type by the agent that they begin or end, each list by time."""
    indices_by_agent: dict[str, list[int]] = {}
    for index in graph.indices_by_type.get(kind, ()):
        if agent := agent_of(graph.events[index]):
            indices_by_agent.setdefault(agent, []).append(index)
    return {agent: sort_by_time(indices, graph.events) for agent, indices in indices_by_agent.items()}


def sort_by_time(indices: Iterable[int], events: Sequence[Event]) -> list[int]:
    """Return event indices by time, then by `seq`; events without a `seq` come first."""
    return sorted(indices, key=lambda index: _time_key(events[index]))


def _time_key(event: Event) -> tuple[float, float]:
    seq = event.seq
    if seq is None:
        seq = -1
    return event.t, seq


def ancestors(agent: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield the agent's parent, its parent's parent and so on."""
    parent = parents.get(agent)
    while parent is not None:
        yield parent
        parent = parents.get(parent)


def depths(parents: Mapping[str, str]) -> dict[str, int]:
    """Return the number of ancestors of each agent that has a parent or is a parent."""
    depth_by_agent: dict[str, int] = {}
    for agent in parents:
        path = []  # the agent and its ancestors whose depths are not known yet
        ancestor: str | None = agent
        while ancestor is not None and ancestor not in depth_by_agent:
            path.append(ancestor)
            ancestor = parents.get(ancestor)
        depth = -1 if ancestor is None else depth_by_agent[ancestor]
        for descendant in reversed(path):
            depth += 1
            depth_by_agent[descendant] = depth
    return depth_by_agent


class Lineage:
    """The ancestors of each agent, for fast look-up. The parents of agents must form no cycle.

    Agents are numbered in depth-first order. The descendants of an agent thus have the numbers that follow its own, and
    the size of its subtree says how many.
    """

    def __init__(self, parents: Mapping[str, str]) -> None:
        children: dict[str, list[str]] = {}
        for agent, parent in parents.items():
            children.setdefault(parent, []).append(agent)
        self._number: dict[str, int] = {}
        stack = [agent for agent in children if agent not in parents]
        while stack:
            agent = stack.pop()
            self._number[agent] = len(self._number)
            stack += children.get(agent, ())
        self._subtree_size = dict.fromkeys(self._number, 1)
        for agent in reversed(self._number):
            if agent in parents:
                self._subtree_size[parents[agent]] += self._subtree_size[agent]

    def is_above(self, agent: str, other: str) -> bool:
        """Return True if an agent is an ancestor of another."""
        number, other_number = self._number.get(agent), self._number.get(other)
        if number is None or other_number is None:
            return False
        return number < other_number < number + self._subtree_size[agent]

    def lowest(self, agents: Iterable[str]) -> list[str]:
        """Return the given agents without the ancestors of any given agent."""
        ordered = sorted(agents, key=lambda agent: self._number.get(agent, -1))
        # An agent that is an ancestor of any other is an ancestor of the next in this order, and the last is of none.
        lowest = [agent for agent, following in pairwise(ordered) if not self.is_above(agent, following)]
        return lowest + ordered[-1:]


def is_after(event: Event, other: Event, skew: float) -> bool:
    """Return True if an event is surely later than another: by more than the clock skew or, at one time, by `seq`."""
    if event.t == other.t and event.seq is not None and other.seq is not None:
        return event.seq > other.seq
    return event.t > other.t + skew


def begins_after(event: Event, spawns: Sequence[int], events: Sequence[Event], skew: float) -> bool:
    """Return True if the life of an event's agent begins after the event: all its spawns are surely later.

    The spawns are given by time; `skew` is the clock skew.
    """
    return not _any_spawn_explains(event, spawns, 0, events, skew)


def ends_before(
    event: Event, spawns: Sequence[int], despawns: Sequence[int], events: Sequence[Event], skew: float
) -> Event | None:
    """Return the last despawn of an agent before its event, if no spawn in between explains the event; else None.

    Spawns and despawns of the agent are given by time.
    """
    # How many despawns are surely earlier than the event: at equal times by `seq`, else by more than the skew.
    count = bisect_left(despawns, _time_key(event), key=lambda index: _time_key(events[index]))
    if not count or not is_after(event, events[despawns[count - 1]], skew):
        count = bisect_left(despawns, event.t, key=lambda index: events[index].t + skew)
    if not count:
        return None
    despawn = events[despawns[count - 1]]
    next_spawn = bisect_left(spawns, despawn.t - skew, key=lambda index: events[index].t)
    if _any_spawn_explains(event, spawns, next_spawn, events, skew):
        return None
    return despawn


def _any_spawn_explains(event: Event, spawns: Sequence[int], first: int, events: Sequence[Event], skew: float) -> bool:
    """Return True if a spawn may have been before the event; the spawns before position `first` do not count."""
    place = first
    while place < len(spawns):
        spawn = events[spawns[place]]
        if not is_after(spawn, event, skew):
            return True
        if spawn.t > event.t + skew:
            break  # all following spawns are later, too
        # This spawn is later by `seq`, and so are the following spawns at the same time.
        place = bisect_right(spawns, spawn.t, place, key=lambda index: events[index].t)
    return False
