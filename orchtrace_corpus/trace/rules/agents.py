"""Agents: they begin, act, return to who sent them, and end."""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.json_places import Path
from orchtrace_corpus.trace.model.decode import Problem
from orchtrace_corpus.trace.model.terms import EdgeType, EventType
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.lifecycle import ancestors, begins_after, ends_before, sort_by_time

_SPAWN, _DESPAWN, _RETURN = EventType.SPAWN, EventType.DESPAWN, EventType.RETURN
_STOP, _AGGREGATE = EventType.STOP, EventType.AGGREGATE
_TEMPORAL = EdgeType.TEMPORAL


def check_spawns(view: TraceView) -> Iterator[Problem]:
    """A spawn names the agent that it brings into being, and that agent acts; its parent is the one that acts."""
    events, spawns = view.graph.events, view.graph.of_type.get(_SPAWN, ())
    acting = set(view.graph.agents) if spawns else set()
    declared = {agent.id: agent.parent for agent in view.trace.agents if agent.parent}
    spawned_by: dict[str, set[str]] = {}
    for index in spawns:
        event = events[index]
        if not event.target:
            message = "a spawn names the agent that comes into being; add it as `to`"
            yield Problem("T205", message, ("events", index))
            continue
        spawned_by.setdefault(event.target, set()).add(event.agent)
        if event.target not in acting:
            message = f"{quote(event.target)} is spawned, but no event is its own"
            yield Problem("T206", message, ("events", index, "to"))
        elif declared.get(event.target, event.agent) != event.agent:
            parent = declared[event.target]
            message = f"{quote(event.agent)} spawns {quote(event.target)}, whose parent is {quote(parent)} in $.agents"
            yield Problem("T219", message, ("events", index, "agent"))
    if len(spawned_by) < len(spawns):
        several = [name for name, by in spawned_by.items() if len(by) > 1 and name not in declared]
        yield from _check_spawners(view, several)
    for index, parent in view.graph.named_parents.items():
        agent = events[index].agent
        if parent not in spawned_by.get(agent, (parent,)):
            spawner = events[view.lifecycle.spawns[agent][0]].agent
            message = f"{quote(agent)} was spawned by {quote(spawner)}"
            yield Problem("T219", message, ("events", index, "parent_agent"))


def _check_spawners(view: TraceView, names: Iterable[str]) -> Iterator[Problem]:
    """Agents that several others spawn; where a parent is declared, each spawn was held against that one already."""
    events = view.graph.events
    for name in names:
        first, *further = view.lifecycle.spawns[name]
        spawner = events[first]
        for index in further:
            other = events[index].agent
            if other != spawner.agent:
                message = (
                    f"{quote(other)} spawns {quote(name)}, and so does {quote(spawner.agent)}, by {quote(spawner.id)}; "
                    "give each agent a name of its own, or correct who spawns it"
                )
                yield Problem("T219", message, ("events", index, "agent"))


def check_parents(view: TraceView) -> Iterator[Problem]:
    """Nobody is above itself: the parents of agents lead up, and never back."""
    circular = view.lifecycle.circular
    if not circular:
        return
    places: dict[str, Path] = {}  # by the agent, what the lifecycle has its parent from
    for number in view.graph.named_parents:
        places.setdefault(view.graph.agents[number], ("events", number, "parent_agent"))
    stated = {agent.id: index for index, agent in enumerate(view.trace.agents) if agent.parent}
    places.update({agent: ("agents", number, "parent") for agent, number in stated.items()})
    places.update({agent: ("events", numbers[0], "to") for agent, numbers in view.lifecycle.spawns.items()})
    for agent, parent in circular.items():
        circle = [agent, parent, *ancestors(parent, view.lifecycle.parents)]
        shown = " below ".join(map(quote, circle[:6]))
        more = f" below … ({len(circle) - 1} agents)" if len(circle) > 6 else ""
        message = f"an agent is above itself: {shown}{more}"
        yield Problem("T221", message, places[agent])


def check_lifecycles(view: TraceView) -> Iterator[Problem]:
    """An agent acts neither before it is spawned nor after it is despawned."""
    spawns, despawns = view.lifecycle.spawns, view.lifecycle.despawns
    if not spawns and not despawns:
        return
    skew, events = view.trace.clock.skew, view.trace.events
    # Most events come after their agent's first spawn, and before its first despawn: nothing more to ask.
    lasting = {agent: (events[numbers[0]].t, inf) for agent, numbers in spawns.items()}
    for agent, numbers in despawns.items():
        lasting[agent] = (lasting.get(agent, (-1.0, inf))[0], events[numbers[0]].t)
    for index, (agent, time) in enumerate(zip(view.graph.agents, view.graph.times, strict=True)):
        life = lasting.get(agent)
        if life is None or life[0] < time < life[1]:
            continue
        event = events[index]
        if event.type is _DESPAWN and event.target in ("", agent):
            continue  # its own end may come at any time
        if agent in spawns and begins_after(event, spawns[agent], events, skew):
            first = events[spawns[agent][0]]
            message = (
                f"{quote(agent)} acts at {time:g}, before {quote(first.id)} spawns it at {first.t:g}; "
                "correct the times or the agent's name, or declare $.clock.skew"
            )
            yield Problem("T207", message, ("events", index, "t"))
        end = agent in despawns and ends_before(event, spawns.get(agent, ()), despawns[agent], events, skew)
        if end:
            message = f"{quote(agent)} acts at {time:g}, after {quote(end.id)} ended it at {end.t:g}"
            yield Problem("T208", message, ("events", index, "t"))


def check_returns(view: TraceView) -> Iterator[Problem]:
    """A return goes to an agent that the returning one descends from, while that agent lives."""
    returns = view.graph.of_type.get(_RETURN)
    if not returns:
        return
    skew, events, known = view.trace.clock.skew, view.graph.events, view.lifecycle
    ends = known.despawns
    if known.stops:
        stops = {name: sort_by_time((*ends.get(name, ()), *own), events) for name, own in known.stops.items()}
        ends = {**ends, **stops}
    for index in returns:
        event = events[index]
        target, sender = event.target, event.sender or event.agent
        if not target:
            continue
        parent = known.parents.get(sender)
        if parent not in (None, target) and not view.lineage.is_above(target, sender):
            shown = ", ".join(map(quote, islice(ancestors(sender, known.parents), 5)))
            message = f"{quote(target)} is not an ancestor of {quote(sender)}, but {shown} is"
            yield Problem("T212", message, ("events", index, "to"))
        elif target in ends:
            ended = ends_before(event, known.spawns.get(target, ()), ends[target], events, skew)
            if ended is not None:
                how = "stopped" if ended.type is _STOP else "ended it"
                message = f"{quote(target)} no longer lives: {quote(ended.id)} {how} at {ended.t:g}"
                yield Problem("T212", message, ("events", index, "to"))


def check_stops(view: TraceView) -> Iterator[Problem]:
    """A stop is the last that its agent does, except to be despawned, or to be spawned again."""
    if _STOP not in view.graph.of_type:
        return
    skew, events, spawns = view.trace.clock.skew, view.trace.events, view.lifecycle.spawns
    stops = view.lifecycle.stops
    earliest = min(events[numbers[0]].t for numbers in stops.values())
    for index, time in enumerate(view.graph.times):
        if time < earliest:
            continue
        event = events[index]
        if event.agent not in stops or event.type is _DESPAWN:
            continue
        stop = ends_before(event, spawns.get(event.agent, ()), stops[event.agent], events, skew)
        if stop is not None:
            message = f"{quote(event.agent)} acts at {event.t:g}, after its stop {quote(stop.id)}"
            yield Problem("T214", message, ("events", index, "t"))


def check_aggregates(view: TraceView) -> Iterator[Problem]:
    """An aggregate has inputs: an edge other than a mere temporal one leads to it."""
    of = view.graph
    aggregates = of.of_type.get(_AGGREGATE)
    if not aggregates:
        return
    last = dict(zip(of.targets, of.edges, strict=True))  # of the edges to each event one: mostly, that is enough to see
    if all(aggregate in last and last[aggregate].type is not _TEMPORAL for aggregate in aggregates):
        return
    fed = {target for edge, target in zip(of.edges, of.targets, strict=True) if edge.type is not _TEMPORAL}
    for number in aggregates:
        if number not in fed:
            message = "nothing leads to this aggregate; add an edge from each of its inputs"
            yield Problem("T213", message, ("events", number))
