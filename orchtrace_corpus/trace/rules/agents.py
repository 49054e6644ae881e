"""Rules on agents: how they are spawned, act, return, stop and end."""

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
    """A spawn names an agent, this agent acts, and the spawner is its parent."""
    events, spawns = view.graph.events, view.graph.indices_by_type.get(_SPAWN, ())
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
    """Report agents that several others spawn; `names` are those without a declared parent to compare with."""
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
    """No agent is its own ancestor."""
    circular = view.lifecycle.circular
    if not circular:
        return
    places: dict[str, Path] = {}  # where the parent of each agent is stated; spawns come first, then declarations
    for index in view.graph.named_parents:
        places.setdefault(view.graph.agents[index], ("events", index, "parent_agent"))
    for index, declared in enumerate(view.trace.agents):
        if declared.parent:
            places[declared.id] = "agents", index, "parent"
    for agent, spawns in view.lifecycle.spawns.items():
        places[agent] = "events", spawns[0], "to"
    for agent, parent in circular.items():
        cycle = [agent, parent, *ancestors(parent, view.lifecycle.parents)]
        shown = " below ".join(map(quote, cycle[:6]))
        more = f" below … ({len(cycle) - 1} agents)" if len(cycle) > 6 else ""
        message = f"an agent is above itself: {shown}{more}"
        yield Problem("T221", message, places[agent])


def check_lifecycles(view: TraceView) -> Iterator[Problem]:
    """An agent acts neither before it is spawned nor after it is despawned."""
    spawns, despawns = view.lifecycle.spawns, view.lifecycle.despawns
    if not spawns and not despawns:
        return
    skew, events = view.trace.clock.skew, view.trace.events
    # Events between the first spawn and the first despawn of their agent are certainly right; this is true of most.
    certain_lives = {agent: (events[indices[0]].t, inf) for agent, indices in spawns.items()}
    for agent, indices in despawns.items():
        begin, _ = certain_lives.get(agent, (-1.0, inf))
        certain_lives[agent] = begin, events[indices[0]].t
    for index, (agent, time) in enumerate(zip(view.graph.agents, view.graph.times, strict=True)):
        life = certain_lives.get(agent)
        if life is None or life[0] < time < life[1]:
            continue
        event = events[index]
        if event.type is _DESPAWN and event.target in ("", agent):
            continue  # a despawn of the agent itself may come at any time
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
    """A return goes to an ancestor of its sender, while that ancestor lives."""
    returns = view.graph.indices_by_type.get(_RETURN)
    if not returns:
        return
    skew, events, lifecycle = view.trace.clock.skew, view.graph.events, view.lifecycle
    ends = dict(lifecycle.despawns)
    for agent, stops in lifecycle.stops.items():
        ends[agent] = sort_by_time((*ends.get(agent, ()), *stops), events)
    for index in returns:
        event = events[index]
        target, sender = event.target, event.sender or event.agent
        if not target:
            continue
        parent = lifecycle.parents.get(sender)
        if parent not in (None, target) and not view.lineage.is_above(target, sender):
            shown = ", ".join(map(quote, islice(ancestors(sender, lifecycle.parents), 5)))
            message = f"{quote(target)} is not an ancestor of {quote(sender)}, but {shown} is"
            yield Problem("T212", message, ("events", index, "to"))
        elif target in ends:
            ended = ends_before(event, lifecycle.spawns.get(target, ()), ends[target], events, skew)
            if ended is not None:
                how = "stopped" if ended.type is _STOP else "ended it"
                message = f"{quote(target)} no longer lives: {quote(ended.id)} {how} at {ended.t:g}"
                yield Problem("T212", message, ("events", index, "to"))


def check_stops(view: TraceView) -> Iterator[Problem]:
    """An agent does not act after its stop, except to be despawned or spawned again."""
    if _STOP not in view.graph.indices_by_type:
        return
    skew, events, spawns = view.trace.clock.skew, view.trace.events, view.lifecycle.spawns
    stops = view.lifecycle.stops
    earliest = min(events[indices[0]].t for indices in stops.values())
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
    """An aggregate has inputs: at least one edge that is not temporal leads to it."""
    graph = view.graph
    aggregates = graph.indices_by_type.get(_AGGREGATE)
    if not aggregates:
        return
    last_edges = dict(zip(graph.targets, graph.edges, strict=True))  # fast: one edge to each event mostly decides
    if all(index in last_edges and last_edges[index].type is not _TEMPORAL for index in aggregates):
        return
    with_inputs = {
        target for edge, target in zip(graph.edges, graph.targets, strict=True) if edge.type is not _TEMPORAL
    }
    for index in aggregates:
        if index not in with_inputs:
            message = "nothing leads to this aggregate; add an edge from each of its inputs"
            yield Problem("T213", message, ("events", index))
