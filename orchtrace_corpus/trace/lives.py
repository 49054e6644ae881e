"""When agents live: from their spawn, or from the beginning, to their despawn or stop."""

from collections.abc import Sequence
from typing import NamedTuple

from orchtrace_corpus.trace.model import Event, EventType, Trace


class Life(NamedTuple):
    """What events say of one agent.

    Attributes:
        spawns: The numbers of the spawn events that it comes from.
        despawns: The numbers of the despawn events that end it.
        stops: The numbers of its own stop events.
        parent: The agent that spawned it; empty where nothing says so.
    """

    spawns: list[int]
    despawns: list[int]
    stops: list[int]
    parent: str


def lives(trace: Trace) -> dict[str, Life]:
    """The life of every agent that is spawned, despawned or stopped, or whose parent is known."""
    found: dict[str, Life] = {}
    parents = {agent.id: agent.parent for agent in trace.agents if agent.parent}
    for number, event in enumerate(trace.events):
        kind = event.type
        if event.parent_agent:
            parents.setdefault(event.agent, event.parent_agent)
        if kind is EventType.SPAWN and event.target:
            parents[event.target] = event.agent
            _life(found, event.target).spawns.append(number)
        elif kind is EventType.DESPAWN:
            _life(found, event.target or event.agent).despawns.append(number)
        elif kind is EventType.STOP:
            _life(found, event.agent).stops.append(number)
    for agent, parent in parents.items():
        found[agent] = _life(found, agent)._replace(parent=parent)
    return found


def _life(found: dict[str, Life], agent: str) -> Life:
    return found.setdefault(agent, Life([], [], [], ""))


def ancestors(agent: str, among: dict[str, Life]) -> list[str]:
    """The agent's parent, its parent's parent and so on; empty where no parent is known."""
    found: list[str] = []
    while agent in among and among[agent].parent and among[agent].parent not in found:
        agent = among[agent].parent
        found.append(agent)
    return found


def is_after(event: Event, other: Event, skew: float) -> bool:
    """Whether an event is later than another for certain: by more than the skew, or, at one time, by `seq`."""
    if event.t == other.t and event.seq is not None and other.seq is not None:
        return event.seq > other.seq
    return event.t > other.t + skew


def ends_before(event: Event, life: Life, events: Sequence[Event], skew: float) -> Event | None:
    """The despawn behind which an agent acts although nothing has spawned it again; None if there is none."""
    last = max((events[n] for n in life.despawns if is_after(event, events[n], skew)), key=_time, default=None)
    if last is None or any(events[n].t >= last.t - skew and not is_after(events[n], event, skew) for n in life.spawns):
        return None
    return last


def _time(event: Event) -> tuple[float, float]:
    return event.t, event.seq or 0
