"""Edges between agents: without them, what one agent does seems to depend on nobody else."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.lives import ancestors, is_after
from orchtrace_corpus.trace.model import Event, EventType
from orchtrace_corpus.trace.problem import Problem
from orchtrace_corpus.trace.subject import Subject

_ENDS = (EventType.DESPAWN, EventType.STOP)


def check_joins(subject: Subject) -> Iterator[Problem]:
    """Agents are joined by edges: from a spawn to what is spawned, from a return to what goes on with it."""
    of, events = subject.graph, subject.graph.events
    if len(of.edges) < len(subject.trace.edges) or len(of.numbers) < len(events):
        return  # other rules say so, and with edges lost nothing is known of these
    spawns, returns = of.of_type.get(EventType.SPAWN, ()), of.of_type.get(EventType.RETURN, ())
    following = dict(zip(of.sources, of.targets, strict=True)) if spawns or returns else {}
    doubtful = [n for n in spawns if n not in following or events[following[n]].agent != events[n].target]
    if len(doubtful) == len(spawns) and not _is_any_joined(subject):
        yield from _check_any(subject)
        return
    if doubtful:
        yield from _check_spawned(subject, doubtful)
    if not all(map(following.__contains__, returns)):
        yield from _check_returned(subject, [number for number in returns if number not in following])


def _is_any_joined(subject: Subject) -> bool:
    """Whether any edge leads from one agent to another."""
    of, events = subject.graph, subject.graph.events
    pairs = zip(of.sources, of.targets, strict=True)
    return any(events[source].agent != events[target].agent for source, target in pairs)


def _check_any(subject: Subject) -> Iterator[Problem]:
    agents = len({event.agent for event in subject.trace.events})
    if agents > 1:
        message = (
            f"no edge joins the {agents} agents, so each seems to depend on nobody, and span and credit are wrong; "
            "add edges from spawns, messages and returns to what depends on them"
        )
        yield Problem("T225", message, ("edges",))


def _check_spawned(subject: Subject, spawns: Sequence[int]) -> Iterator[Problem]:
    """Spawned agents to which no edge leads, neither from their spawn nor from anything of another agent."""
    of, events = subject.graph, subject.graph.events
    joined = {
        events[target].agent
        for source, target in zip(of.sources, of.targets, strict=True)
        if events[source].agent != events[target].agent
    }
    first: dict[str, Event] = {}
    for event in events:
        if event.agent not in first or event.t < first[event.agent].t:
            first[event.agent] = event
    for number in spawns:
        name = events[number].target
        if name in first and name not in joined:
            joined.add(name)
            message = (
                f"no edge leads to {quote(name)}, which seems to wait for nobody; "
                f"add one from this spawn to its first event {quote(first[name].id)}"
            )
            yield Problem("T223", message, ("events", number))


def _check_returned(subject: Subject, returns: Sequence[int]) -> Iterator[Problem]:
    """Returns that no edge leads on from, although the agent that they go to, or one above it, goes on."""
    events, parents = subject.graph.events, subject.lives.parents
    last: dict[str, Event] = {}
    for event in events:
        if event.type not in _ENDS and (event.agent not in last or not is_after(last[event.agent], event, 0)):
            last[event.agent] = event
    for number in returns:
        event = events[number]
        sender = event.sender or event.agent
        receiver = event.target or parents.get(sender, "")
        above = [receiver, *ancestors(receiver, parents)] if receiver else [name for name in last if name != sender]
        going_on = next((name for name in above if name in last and not is_after(event, last[name], 0)), None)
        if going_on is not None:
            message = (
                f"no event depends on what {quote(sender)} returns, though {quote(going_on)} goes on; "
                "add an edge to the event that goes on with it"
            )
            yield Problem("T224", message, ("events", number))
