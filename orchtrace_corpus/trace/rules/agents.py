"""Agents: they come into being, act, return to who sent them, and end."""

from collections.abc import Iterator
from math import inf

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.lives import ancestors, begins_after, ends_before, is_after
from orchtrace_corpus.trace.locate import Path
from orchtrace_corpus.trace.model import EdgeType, EventType
from orchtrace_corpus.trace.problem import Problem
from orchtrace_corpus.trace.subject import Subject


def check_spawns(subject: Subject) -> Iterator[Problem]:
    """A spawn names the agent that it brings into being, and that agent acts; its parent is the one that acts."""
    events, spawns = subject.trace.events, subject.graph.of_type.get(EventType.SPAWN, ())
    acting = {event.agent for event in events} if spawns else set()
    declared = {agent.id: agent.parent for agent in subject.trace.agents if agent.parent}
    spawned_by: dict[str, set[str]] = {}
    for number in spawns:
        event = events[number]
        if not event.target:
            message = "a spawn names the agent that comes into being; add it as `to`"
            yield Problem("T205", message, ("events", number))
            continue
        spawned_by.setdefault(event.target, set()).add(event.agent)
        if event.target not in acting:
            message = f"{quote(event.target)} is spawned, but no event is its own"
            yield Problem("T206", message, ("events", number, "to"))
        elif declared.get(event.target, event.agent) != event.agent:
            parent = declared[event.target]
            message = f"{quote(event.agent)} spawns {quote(event.target)}, whose parent is {quote(parent)} in $.agents"
            yield Problem("T219", message, ("events", number, "agent"))
    for number, event in enumerate(events):
        if event.parent_agent and event.parent_agent not in spawned_by.get(event.agent, (event.parent_agent,)):
            spawner = next(iter(sorted(spawned_by[event.agent])))
            message = f"{quote(event.agent)} was spawned by {quote(spawner)}"
            yield Problem("T219", message, ("events", number, "parent_agent"))


def check_parents(subject: Subject) -> Iterator[Problem]:
    """Nobody is above itself: the parents of agents lead up, and never back."""
    for agent, parent in subject.lives.circular.items():
        circle = [agent, parent, *ancestors(parent, subject.lives.parents)]
        shown = " below ".join(map(quote, circle[:6]))
        more = f" below … ({len(circle) - 1} agents)" if len(circle) > 6 else ""
        message = f"an agent is above itself: {shown}{more}"
        yield Problem("T221", message, _where_parent_is_stated(subject, agent))


def _where_parent_is_stated(subject: Subject, agent: str) -> Path:
    if agent in subject.lives.spawns:
        return ("events", subject.lives.spawns[agent][0], "to")
    for number, declared in enumerate(subject.trace.agents):
        if declared.id == agent and declared.parent:
            return ("agents", number, "parent")
    number = next(n for n, event in enumerate(subject.trace.events) if event.agent == agent and event.parent_agent)
    return ("events", number, "parent_agent")


def check_lives(subject: Subject) -> Iterator[Problem]:
    """An agent acts neither before it is spawned nor after it is despawned."""
    spawns, despawns = subject.lives.spawns, subject.lives.despawns
    if not spawns and not despawns:
        return
    skew, events = subject.trace.clock.skew, subject.trace.events
    # Most events come after their agent's first spawn, and before its first despawn: nothing more to ask.
    lasting = {agent: (events[numbers[0]].t, inf) for agent, numbers in spawns.items()}
    for agent, numbers in despawns.items():
        lasting[agent] = (lasting.get(agent, (-1.0, inf))[0], events[numbers[0]].t)
    for number, event in enumerate(events):
        agent, time = event.agent, event.t
        life = lasting.get(agent)
        if life is None or life[0] < time < life[1]:
            continue
        if event.type is EventType.DESPAWN and event.target in ("", agent):
            continue  # its own end may come at any time
        if agent in spawns and begins_after(event, spawns[agent], events, skew):
            first = events[spawns[agent][0]]
            message = (
                f"{quote(agent)} acts at {time:g}, before {quote(first.id)} spawns it at {first.t:g}; "
                "correct the times or the agent's name, or declare $.clock.skew"
            )
            yield Problem("T207", message, ("events", number, "t"))
        end = agent in despawns and ends_before(event, spawns.get(agent, ()), despawns[agent], events, skew)
        if end:
            message = f"{quote(agent)} acts at {time:g}, after {quote(end.id)} ended it at {end.t:g}"
            yield Problem("T208", message, ("events", number, "t"))


def check_returns(subject: Subject) -> Iterator[Problem]:
    """A return goes to an agent that the returning one descends from, while that agent lives."""
    returns = subject.graph.of_type.get(EventType.RETURN)
    if not returns:
        return
    skew, events, known = subject.trace.clock.skew, subject.trace.events, subject.lives
    for number in returns:
        event = events[number]
        target, sender = event.target, event.sender or event.agent
        if not target:
            continue
        parent = known.parents.get(sender)
        if parent not in (None, target) and not subject.lineage.is_above(target, sender):
            shown = ", ".join(map(quote, ancestors(sender, known.parents)[:5]))
            message = f"{quote(target)} is no ancestor of {quote(sender)}, but {shown} is"
            yield Problem("T212", message, ("events", number, "to"))
        elif target in known.despawns:
            ended = ends_before(event, known.spawns.get(target, ()), known.despawns[target], events, skew)
            if ended is not None:
                message = f"{quote(target)} no longer lives: {quote(ended.id)} ended it at {ended.t:g}"
                yield Problem("T212", message, ("events", number, "to"))


def check_stops(subject: Subject) -> Iterator[Problem]:
    """A stop is the last that its agent does, except to be despawned."""
    if EventType.STOP not in subject.graph.of_type:
        return
    skew, events = subject.trace.clock.skew, subject.trace.events
    stops = {agent: events[numbers[0]] for agent, numbers in subject.lives.stops.items()}
    earliest = min(stop.t for stop in stops.values())
    for number, time in enumerate(subject.graph.times):
        if time < earliest:
            continue
        event = events[number]
        stop = stops.get(event.agent)
        if stop is not None and is_after(event, stop, skew) and event.type is not EventType.DESPAWN:
            message = f"{quote(event.agent)} acts at {event.t:g}, after its stop {quote(stop.id)}"
            yield Problem("T214", message, ("events", number, "t"))


def check_aggregates(subject: Subject) -> Iterator[Problem]:
    """An aggregate has inputs: an edge other than a mere temporal one leads to it."""
    of = subject.graph
    aggregates = of.of_type.get(EventType.AGGREGATE)
    if not aggregates:
        return
    last = dict(zip(of.targets, of.edges, strict=True))  # of the edges to each event one: mostly, that is enough to see
    if all(number in last and last[number].type is not EdgeType.TEMPORAL for number in aggregates):
        return
    fed = {target for edge, target in zip(of.edges, of.targets, strict=True) if edge.type is not EdgeType.TEMPORAL}
    for number in aggregates:
        if number not in fed:
            message = "nothing leads to this aggregate; add an edge from each of its inputs"
            yield Problem("T213", message, ("events", number))
