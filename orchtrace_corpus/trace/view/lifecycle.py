"""The parents of agents, and their life: from the spawn, or the beginning of the run, to the despawn or stop."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from orchtrace_corpus.base.cycles import closing_links
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view.graph import Graph

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Trace

_SPAWN, _DESPAWN, _STOP = EventType.SPAWN, EventType.DESPAWN, EventType.STOP


class Lifecycle(NamedTuple):
    """The parent of each agent, and the events that begin and end it, by the agent's name.

    Attributes:
        parents: The agent that spawned it, where that is known: by its first spawn, else as declared, else by
            its own events.
        circular: Parents left out of `parents`, one for each circle, because nobody is above itself.
        spawns: The numbers of the spawn events that it comes from, by time.
        despawns: The numbers of the despawn events that end it, by time.
        stops: The numbers of its own stop events, by time.
    """

    parents: Mapping[str, str]
    circular: Mapping[str, str]
    spawns: Mapping[str, list[int]]
    despawns: Mapping[str, list[int]]
    stops: Mapping[str, list[int]]


def lifecycle(trace: Trace, of: Graph) -> Lifecycle:
    """The lifecycle of every agent."""
    spawns = _by_agent(of, _SPAWN, lambda event: event.target)
    despawns = _by_agent(of, _DESPAWN, lambda event: event.target or event.agent)
    stops = _by_agent(of, _STOP, lambda event: event.agent)
    parents: dict[str, str] = {}
    for index, parent in of.above.items():
        parents.setdefault(of.agents[index], parent)
    parents.update({agent.id: agent.parent for agent in trace.agents if agent.parent})
    parents.update({agent: of.events[numbers[0]].agent for agent, numbers in spawns.items()})
    circular = {}
    if not parents.keys().isdisjoint(parents.values()):  # else nobody above another has a parent
        links = closing_links({agent: (parent,) for agent, parent in parents.items()})
        circular = {agent: parents.pop(agent) for _, agent in links}
    return Lifecycle(parents, circular, spawns, despawns, stops)


def _by_agent(of: Graph, kind: EventType, whose: Callable[[Event], str]) -> dict[str, list[int]]:
    """The events of a type that begins or ends a life, by the agent whose life it is, each list by time."""
    found: dict[str, list[int]] = {}
    for index in of.of_type.get(kind, ()):
        if agent := whose(of.events[index]):
            found.setdefault(agent, []).append(index)
    return {agent: numbers if len(numbers) == 1 else in_time(numbers, of.events) for agent, numbers in found.items()}


def in_time(numbers: Iterable[int], events: Sequence[Event]) -> list[int]:
    """Some events by time; at one time those without a `seq` come first, as no other is certainly earlier."""
    return sorted(numbers, key=lambda index: _moment(events[index]))


def _moment(event: Event) -> tuple[float, float]:
    return event.t, -1 if event.seq is None else event.seq


def ancestors(agent: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The agent's parent, its parent's parent and so on; nobody where no parent is known."""
    above = parents.get(agent)
    while above is not None:
        yield above
        above = parents.get(above)


def depths(parents: Mapping[str, str]) -> dict[str, int]:
    """Return the number of ancestors of each agent that has a parent or is one."""
    found: dict[str, int] = {}
    for agent in parents:
        path = []
        above: str | None = agent
        while above is not None and above not in found:
            path.append(above)
            above = parents.get(above)
        depth = -1 if above is None else found[above]
        for one in reversed(path):
            depth += 1
            found[one] = depth
    return found


class Lineage:
    """Says at once who is above whom: agents are numbered so that the descendants of each follow it in a row.

    Args:
        parents: The links to parents, without circles.
    """

    def __init__(self, parents: Mapping[str, str]) -> None:
        children: dict[str, list[str]] = {}
        for agent, parent in parents.items():
            children.setdefault(parent, []).append(agent)
        self._first: dict[str, int] = {}
        waiting = [agent for agent in children if agent not in parents]
        while waiting:
            agent = waiting.pop()
            self._first[agent] = len(self._first)
            waiting += children.get(agent, ())
        self._count = dict.fromkeys(self._first, 1)
        for agent in reversed(self._first):
            if agent in parents:
                self._count[parents[agent]] += self._count[agent]

    def is_above(self, one: str, other: str) -> bool:
        """Return True if one agent is an ancestor of another."""
        first = self._first.get(one)
        return first is not None and first < self._first.get(other, -1) < first + self._count[one]

    def lowest(self, names: Iterable[str]) -> list[str]:
        """Those of some that are above none of the others; who is above any is above the next of them by number."""
        ordered = sorted(names, key=lambda name: self._first.get(name, -1))
        return [one for one, following in pairwise(ordered) if not self.is_above(one, following)] + ordered[-1:]


def is_after(event: Event, other: Event, skew: float) -> bool:
    """Return True if an event is certainly later than another: by more than the skew or, at one time, by `seq`."""
    if event.t == other.t and event.seq is not None and other.seq is not None:
        return event.seq > other.seq
    return event.t > other.t + skew


def begins_after(event: Event, spawns: Sequence[int], events: Sequence[Event], skew: float) -> bool:
    """Return True if all spawns of an agent, given by time, are certainly later than an event."""
    return not _is_any_open(event, spawns, 0, events, skew)


def ends_before(
    event: Event, spawns: Sequence[int], despawns: Sequence[int], events: Sequence[Event], skew: float
) -> Event | None:
    """The despawn behind which an agent acts although nothing has spawned it again; None if there is none."""
    place = bisect_left(despawns, _moment(event), key=lambda index: _moment(events[index]))
    if not place or not is_after(event, events[despawns[place - 1]], skew):  # at one time, `seq` tells, else the skew
        place = bisect_left(despawns, event.t, key=lambda index: events[index].t + skew)
    if not place:
        return None
    last = events[despawns[place - 1]]  # of those certainly earlier
    again = bisect_left(spawns, last.t - skew, key=lambda index: events[index].t)
    return None if _is_any_open(event, spawns, again, events, skew) else last


def _is_any_open(event: Event, spawns: Sequence[int], first: int, events: Sequence[Event], skew: float) -> bool:
    """Return True if a spawn, of those from the first of some time on, is not certainly later than an event."""
    while first < len(spawns):
        spawn = events[spawns[first]]
        if not is_after(spawn, event, skew):
            return True
        if spawn.t > event.t + skew:
            break  # and so are all behind it
        # It is later by `seq`, and so are the others of its time.
        first = bisect_right(spawns, spawn.t, first, key=lambda index: events[index].t)
    return False
