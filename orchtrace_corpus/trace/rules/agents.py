"""Agents: they come into being, act, return to who sent them, and end."""

from collections.abc import Iterator

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.graph import Graph
from orchtrace_corpus.trace.lives import ancestors, ends_before, is_after, lives
from orchtrace_corpus.trace.model import EdgeType, EventType, Trace
from orchtrace_corpus.trace.problem import Problem


def check_spawns(trace: Trace, of: Graph) -> Iterator[Problem]:
    """A spawn names the agent that it brings into being, and that agent acts; its parent is the one that acts."""
    del of
    acting = {event.agent for event in trace.events}
    declared = {agent.id: agent.parent for agent in trace.agents if agent.parent}
    spawned_by: dict[str, str] = {}
    for number, event in enumerate(trace.events):
        if event.type is not EventType.SPAWN:
            continue
        if not event.target:
            message = "a spawn names the agent that comes into being; add it as `to`"
            yield Problem("T205", message, ("events", number))
            continue
        spawned_by.setdefault(event.target, event.agent)
        if event.target not in acting:
            message = f"{quote(event.target)} is spawned, but no event is its own"
            yield Problem("T206", message, ("events", number, "to"))
        elif declared.get(event.target, event.agent) != event.agent:
            parent = declared[event.target]
            message = f"{quote(event.agent)} spawns {quote(event.target)}, whose parent is {quote(parent)} in $.agents"
            yield Problem("T219", message, ("events", number, "agent"))
    for number, event in enumerate(trace.events):
        if event.parent_agent and spawned_by.get(event.agent, event.parent_agent) != event.parent_agent:
            message = f"{quote(event.agent)} was spawned by {quote(spawned_by[event.agent])}"
            yield Problem("T219", message, ("events", number, "parent_agent"))


def check_lives(trace: Trace, of: Graph) -> Iterator[Problem]:
    """An agent acts neither before it is spawned nor after it is despawned."""
    del of
    skew, events = trace.clock.skew, trace.events
    known = {agent: life for agent, life in lives(trace).items() if life.spawns or life.despawns}
    if not known:
        return
    for number, event in enumerate(events):
        life = known.get(event.agent)
        if life is None or (event.type is EventType.DESPAWN and event.target in ("", event.agent)):
            continue
        if life.spawns and all(is_after(events[spawn], event, skew) for spawn in life.spawns):
            first = events[life.spawns[0]]
            message = f"{quote(event.agent)} acts at {event.t:g}, before {quote(first.id)} spawns it at {first.t:g}"
            yield Problem("T207", message, ("events", number, "t"))
        ended = ends_before(event, life, events, skew) if life.despawns else None
        if ended is not None:
            message = f"{quote(event.agent)} acts at {event.t:g}, after {quote(ended.id)} ended it at {ended.t:g}"
            yield Problem("T208", message, ("events", number, "t"))


def check_returns(trace: Trace, of: Graph) -> Iterator[Problem]:
    """A return goes to an agent that the returning one descends from, while that agent lives."""
    del of
    returns = [n for n, event in enumerate(trace.events) if event.type is EventType.RETURN and event.target]
    if not returns:
        return
    skew, events, known = trace.clock.skew, trace.events, lives(trace)
    for number in returns:
        event = events[number]
        above = ancestors(event.sender or event.agent, known)
        if above and event.target not in above:
            shown = ", ".join(map(quote, above[:5]))
            message = f"{quote(event.target)} is no ancestor of {quote(event.sender or event.agent)}, but {shown} is"
            yield Problem("T212", message, ("events", number, "to"))
        elif event.target in known and known[event.target].despawns:
            ended = ends_before(event, known[event.target], events, skew)
            if ended is not None:
                message = f"{quote(event.target)} no longer lives: {quote(ended.id)} ended it at {ended.t:g}"
                yield Problem("T212", message, ("events", number, "to"))


def check_stops(trace: Trace, of: Graph) -> Iterator[Problem]:
    """A stop is the last that its agent does, except to be despawned."""
    del of
    skew, events = trace.clock.skew, trace.events
    stops: dict[str, int] = {}
    for number, event in enumerate(events):
        if event.type is EventType.STOP:
            first = stops.setdefault(event.agent, number)
            if event.t < events[first].t:
                stops[event.agent] = number
    if not stops:
        return
    for number, event in enumerate(events):
        stop = stops.get(event.agent)
        if stop is not None and event.type is not EventType.DESPAWN and is_after(event, events[stop], skew):
            message = f"{quote(event.agent)} acts at {event.t:g}, after its stop {quote(events[stop].id)}"
            yield Problem("T214", message, ("events", number, "t"))


def check_aggregates(trace: Trace, of: Graph) -> Iterator[Problem]:
    """An aggregate has inputs: an edge other than a mere temporal one leads to it."""
    aggregates = {n for n, event in enumerate(trace.events) if event.type is EventType.AGGREGATE}
    if not aggregates:
        return
    for edge, target in zip(of.edges, of.targets, strict=True):
        if edge.type is not EdgeType.TEMPORAL:
            aggregates.discard(target)
    for number in sorted(aggregates):
        message = "nothing leads to this aggregate; add an edge from each of its inputs"
        yield Problem("T213", message, ("events", number))
