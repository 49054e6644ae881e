"""Edges between agents: without them, what one agent does seems to depend on nobody else."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.model.decode import Problem
from orchtrace_corpus.trace.model.trace import Event, EventType
from orchtrace_corpus.trace.view.lifecycle import is_after
from orchtrace_corpus.trace.view.view import Subject

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
        if event.type not in _ENDS and (event.agent not in last or _moment(event) > _moment(last[event.agent])):
            last[event.agent] = event
    above: dict[str, Event | None] = {}
    latest = sorted(last.values(), key=_moment, reverse=True)[:2]
    for number in returns:
        event = events[number]
        sender = event.sender or event.agent
        receiver = event.target or parents.get(sender, "")
        if receiver:
            candidates = [last.get(receiver), _last_above(receiver, parents, last, above)]
        else:
            candidates = [one for one in latest if one.agent != sender]
        going_on = next((one.agent for one in candidates if one is not None and not is_after(event, one, 0)), None)
        if going_on is not None:
            message = (
                f"no event depends on what {quote(sender)} returns, though {quote(going_on)} goes on; "
                "add an edge to the event that goes on with it"
            )
            yield Problem("T224", message, ("events", number))


def _moment(event: Event) -> tuple[float, float]:
    """When an event is, for the latest of several: at one time, nothing is certainly later than one without `seq`."""
    return event.t, inf if event.seq is None else event.seq


def _last_above(
    agent: str, parents: Mapping[str, str], last: Mapping[str, Event], known: dict[str, Event | None]
) -> Event | None:
    """The latest event of an agent and all above it.

    Args:
        agent: The agent.
        parents: Who is above whom.
        last: The last event of each agent.
        known: What this function has found; what it finds on the way is added, so that long chains are climbed once.
    """
    path = []
    climbing: str | None = agent
    while climbing is not None and climbing not in known:
        path.append(climbing)
        climbing = parents.get(climbing)
    found = None if climbing is None else known[climbing]
    for one in reversed(path):
        own = last.get(one)
        if own is not None and (found is None or _moment(own) > _moment(found)):
            found = own
        known[one] = found
    return found
