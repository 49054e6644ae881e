"""Rules on agents: how they are spawned, act, return and end."""

from collections.abc import Iterator
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
_MAX_CYCLE_AGENTS = 6  # that a message names


def check_spawns(view: TraceView) -> Iterator[Problem]:
    """Check that each spawn names an agent, that this agent acts, and that the spawner is its parent."""
    events, spawns = view.graph.events, view.graph.indices_by_type.get(_SPAWN, ())
    acting_agents = set(view.graph.agents) if spawns else set()
    declared_parents = {agent.id: agent.parent for agent in view.trace.agents if agent.parent}
    spawners: dict[str, set[str]] = {}  # the agents that spawn each agent
    for index in spawns:
        event = events[index]
        if not event.target:
            message = "a spawn names the agent that comes into being; add it as `to`"
            yield Problem("T205", message, ("events", index))
            continue
        spawners.setdefault(event.target, set()).add(event.agent)
        if event.target not in acting_agents:
            message = f"{quote(event.target)} is spawned, but no event is its own"
            yield Problem("T206", message, ("events", index, "to"))
            continue
        parent = declared_parents.get(event.target, event.agent)
        if parent != event.agent:
            message = f"{quote(event.agent)} spawns {quote(event.target)}, whose parent is {quote(parent)} in $.agents"
            yield Problem("T219", message, ("events", index, "agent"))
    if len(spawners) < len(spawns):  # some agents are spawned more than once
        for name, spawners_of_agent in spawners.items():
            if len(spawners_of_agent) > 1 and name not in declared_parents:
                yield from _several_spawners(view, name)
    for index, parent in view.graph.named_parents.items():
        agent = events[index].agent
        if agent in spawners and parent not in spawners[agent]:
            spawner = events[view.lifecycle.spawns[agent][0]].agent
            message = f"{quote(agent)} was spawned by {quote(spawner)}"
            yield Problem("T219", message, ("events", index, "parent_agent"))


def _several_spawners(view: TraceView, name: str) -> Iterator[Problem]:
    """Report the spawns of an agent that are not by its first spawner."""
    events = view.graph.events
    first, *further = view.lifecycle.spawns[name]
    first_spawn = events[first]
    for index in further:
        spawner = events[index].agent
        if spawner != first_spawn.agent:
            message = (
                f"{quote(spawner)} spawns {quote(name)}, and so does {quote(first_spawn.agent)}, "
                f"by {quote(first_spawn.id)}; "
                "give each agent a name of its own, or correct who spawns it"
            )
            yield Problem("T219", message, ("events", index, "agent"))


def check_parents(view: TraceView) -> Iterator[Problem]:
    """Check that no agent is its own ancestor."""
    parent_in_cycle = view.lifecycle.circular
    if not parent_in_cycle:
        return
    # Where the parent of each agent is stated: by a spawn, or else by a declaration, or else by an event. The preferred
    # places are written last.
    places: dict[str, Path] = {}
    for index in view.graph.named_parents:
        places.setdefault(view.graph.agents[index], ("events", index, "parent_agent"))
    for index, declared in enumerate(view.trace.agents):
        if declared.parent:
            places[declared.id] = "agents", index, "parent"
    for agent, spawns in view.lifecycle.spawns.items():
        places[agent] = "events", spawns[0], "to"
    for agent, parent in parent_in_cycle.items():
        cycle = [agent, parent, *ancestors(parent, view.lifecycle.parents)]
        chain = " below ".join(map(quote, cycle[:_MAX_CYCLE_AGENTS]))
        if len(cycle) > _MAX_CYCLE_AGENTS:
            chain += f" below … ({len(cycle) - 1} agents)"
        yield Problem("T221", f"an agent is above itself: {chain}", places[agent])


def check_lifecycles(view: TraceView) -> Iterator[Problem]:
    """Check that agents act neither before they are spawned nor after they are despawned."""
    spawns, despawns = view.lifecycle.spawns, view.lifecycle.despawns
    if not spawns and not despawns:
        return
    skew, events = view.trace.clock.skew, view.trace.events
    # An event between the first spawn and the first despawn of its agent is certainly right. Most events are, so the
    # slower tests below are rare.
    certain_lives = {agent: (events[indices[0]].t, inf) for agent, indices in spawns.items()}
    for agent, indices in despawns.items():
        begin, _ = certain_lives.get(agent, (-1.0, inf))  # -1: before all times
        certain_lives[agent] = begin, events[indices[0]].t
    for index, (agent, time) in enumerate(zip(view.graph.agents, view.graph.times, strict=True)):
        life = certain_lives.get(agent)
        if life is None or life[0] < time < life[1]:
            continue
        event = events[index]
        if event.type is _DESPAWN and event.target in ("", agent):
            continue  # a despawn of the agent itself may come at any time
        if agent in spawns and begins_after(event, spawns[agent], events, skew):
            spawn = events[spawns[agent][0]]
            message = (
                f"{quote(agent)} acts at {time:g}, before {quote(spawn.id)} spawns it at {spawn.t:g}; "
                "correct the times or the agent's name, or declare $.clock.skew"
            )
            yield Problem("T207", message, ("events", index, "t"))
        if agent in despawns:
            despawn = ends_before(event, spawns.get(agent, ()), despawns[agent], events, skew)
            if despawn is not None:
                message = f"{quote(agent)} acts at {time:g}, after {quote(despawn.id)} ended it at {despawn.t:g}"
                yield Problem("T208", message, ("events", index, "t"))


def check_returns(view: TraceView) -> Iterator[Problem]:
    """Check that each return goes to an ancestor of its sender, while that ancestor lives."""
    returns = view.graph.indices_by_type.get(_RETURN)
    if not returns:
        return
    skew, events, lifecycle = view.trace.clock.skew, view.graph.events, view.lifecycle
    ends = dict(lifecycle.despawns)  # the despawns and stops of each agent, by time
    for agent, stops in lifecycle.stops.items():
        ends[agent] = sort_by_time((*ends.get(agent, ()), *stops), events)
    for index in returns:
        event = events[index]
        target, sender = event.target, event.sender or event.agent
        if not target:
            continue
        parent = lifecycle.parents.get(sender)
        if parent not in (None, target) and not view.lineage.is_above(target, sender):
            first_ancestors = ", ".join(map(quote, islice(ancestors(sender, lifecycle.parents), 5)))
            message = f"{quote(target)} is not an ancestor of {quote(sender)}, but {first_ancestors} is"
            yield Problem("T212", message, ("events", index, "to"))
        elif target in ends:
            end = ends_before(event, lifecycle.spawns.get(target, ()), ends[target], events, skew)
            if end is not None:
                verb = "stopped" if end.type is _STOP else "ended it"
                message = f"{quote(target)} no longer lives: {quote(end.id)} {verb} at {end.t:g}"
                yield Problem("T212", message, ("events", index, "to"))


def check_stops(view: TraceView) -> Iterator[Problem]:
    """Check that agents do not act after their stop, unless they are spawned again; a despawn may follow a stop."""
    if _STOP not in view.graph.indices_by_type:
        return
    skew, events, spawns = view.trace.clock.skew, view.trace.events, view.lifecycle.spawns
    stops = view.lifecycle.stops
    earliest_stop = min(events[indices[0]].t for indices in stops.values())
    for index, time in enumerate(view.graph.times):
        if time < earliest_stop:
            continue
        event = events[index]
        if event.agent not in stops or event.type is _DESPAWN:
            continue
        stop = ends_before(event, spawns.get(event.agent, ()), stops[event.agent], events, skew)
        if stop is not None:
            message = f"{quote(event.agent)} acts at {event.t:g}, after its stop {quote(stop.id)}"
            yield Problem("T214", message, ("events", index, "t"))


def check_aggregates(view: TraceView) -> Iterator[Problem]:
    """Check that each aggregate has inputs: at least one edge that is not temporal leads to it."""
    graph = view.graph
    aggregates = graph.indices_by_type.get(_AGGREGATE)
    if not aggregates:
        return
    # A fast test that mostly suffices: the last edge to each event.
    last_edges = dict(zip(graph.targets, graph.edges, strict=True))
    if all(index in last_edges and last_edges[index].type is not _TEMPORAL for index in aggregates):
        return
    events_with_inputs = set()
    for edge, target in zip(graph.edges, graph.targets, strict=True):
        if edge.type is not _TEMPORAL:
            events_with_inputs.add(target)
    for index in aggregates:
        if index not in events_with_inputs:
            message = "nothing leads to this aggregate; add an edge from each of its inputs"
            yield Problem("T213", message, ("events", index))
