"""Ids, edges, time and tool calls: what is needed for the events to form a graph that time can run through.

Edges between agents are part of it: without them, what one agent does seems to depend on nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter, eq, lt
from typing import TYPE_CHECKING

from orchtrace_corpus.base.cycles import CycleError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.model.decode import Problem
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.graph import Graph
from orchtrace_corpus.trace.view.lifecycle import is_after

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Edge, Event

_SPAWN, _RETURN, _TOOL_CALL = EventType.SPAWN, EventType.RETURN, EventType.TOOL_CALL
_TOOL_RESULT = EventType.TOOL_RESULT

_MOST_GUESSES, _MOST_NAMES = 10, 10_000
"""For so many ids of no event, in a trace of so many events, another spelling is looked for, which takes time."""

_SEQ = attrgetter("seq")
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_ENDS = (EventType.DESPAWN, EventType.STOP)


def check_ids(view: TraceView) -> Iterator[Problem]:
    """Two events of one id, or two agents: nothing could be said of either."""
    trace, of = view.trace, view.graph
    if len(of.indices) < len(trace.events):
        for index, event in enumerate(trace.events):
            first = of.indices[event.id]
            if first != index:
                message = f"{quote(event.id)} is the id of $.events[{first}], too; give each event its own"
                yield Problem("T201", message, ("events", index, "id"))
    seen: dict[str, int] = {}
    for index, agent in enumerate(trace.agents):
        first = seen.setdefault(agent.id, index)
        if first != index:
            yield Problem("T201", f"{quote(agent.id)} is $.agents[{first}], too; keep one", ("agents", index, "id"))


def check_edges(view: TraceView) -> Iterator[Problem]:
    """An edge from or to an event that there is not."""
    trace, of = view.trace, view.graph
    if len(of.edges) == len(trace.edges):
        return
    guesses = 0
    for index, edge in enumerate(trace.edges):
        for end, name in (("src", edge.src), ("dst", edge.dst)):
            if name not in of.indices:
                near = _near(name, of) if guesses < _MOST_GUESSES else ""
                guesses += 1
                message = f"there is no event {quote(name)}{near}; correct the id, or remove the edge"
                yield Problem("T202", message, ("edges", index, end))


def _near(name: str, of: Graph) -> str:
    """The event whose id is spelled nearly so, unless the ids differ in their numbers alone."""
    if len(of.indices) > _MOST_NAMES:
        return ""
    from difflib import get_close_matches  # only for who has made a mistake

    letters = name.translate(_NO_DIGITS)
    known = [one for one in of.indices if one.translate(_NO_DIGITS) != letters]
    near = get_close_matches(name[:80], known, n=1, cutoff=0.8)
    return f" (did you mean {quote(near[0])}?)" if near else ""


def check_cycles(view: TraceView) -> Iterator[Problem]:
    """Edges that lead back to where they began: each event would have to be before itself."""
    trace, of = view.trace, view.graph
    try:
        view.sequence  # noqa: B018 -- there is one, or there is a circle
    except CycleError as error:
        circle = [*error.events, error.events[0]]
        shown = " -> ".join(quote(of.events[number].id) for number in circle[:6])
        more = f" -> … ({len(error.events)} events)" if len(circle) > 6 else ""
        steps = set(pairwise(circle))
        places = [index for index, edge in enumerate(trace.edges) if _numbers_of(edge.src, edge.dst, of) in steps]
        closing = max(places, key=lambda number: (*_back(trace.edges[number], of), number))
        message = f"the edges go round in a circle: {shown}{more}; remove the one that leads back, or turn it round"
        yield Problem("T203", message, ("edges", closing))


def _back(edge: Edge, of: Graph) -> tuple[float, float]:
    """Return how far an edge leads back in time, and in the order of the log."""
    source, target = (of.events[index] for index in _numbers_of(edge.src, edge.dst, of))
    return source.t - target.t, (source.seq or 0) - (target.seq or 0)


def check_times(view: TraceView) -> Iterator[Problem]:
    """An edge back in time, beyond the skew that the clock declares; an event or a turn that ends before it begins."""
    of = view.graph
    if not view.is_timely:
        yield from _check_back(view)
    for index, end in enumerate(of.ends):
        if end is not None and end < of.times[index]:
            message = f"the event ends at {end:g}, before it begins at {of.times[index]:g}"
            yield Problem("T218", message, ("events", index, "t_end"))
    for index, turn in enumerate(view.trace.turns):
        if turn.t_end < turn.t:
            message = f"the turn ends at {turn.t_end:g}, before it begins at {turn.t:g}"
            yield Problem("T218", message, ("turns", index, "t_end"))


def _check_back(view: TraceView) -> Iterator[Problem]:
    """Edges from an event that is certainly later than the one that they lead to."""
    trace, of = view.trace, view.graph
    skew, events, time = trace.clock.skew, of.events, of.times.__getitem__
    if not any(map(_SEQ, events)) and not any(map(lt, map(time, of.targets), map(time, of.sources))):
        return
    numbers: Iterable[int] = range(len(of.edges))
    if len(of.edges) < len(trace.edges):
        numbers = [n for n, edge in enumerate(trace.edges) if edge.src in of.indices and edge.dst in of.indices]
    for number, source, target in zip(numbers, of.sources, of.targets, strict=True):
        earlier, later = events[source], events[target]
        if later.t > earlier.t or not is_after(earlier, later, skew):
            continue
        message = f"the edge goes back in time, from t {earlier.t:g} to t {later.t:g}"
        fix = "turn it round, correct the times, or declare $.clock.skew"
        if earlier.t == later.t:
            message = f"the edge goes back in time: at t {later.t:g}, from seq {earlier.seq} to seq {later.seq}"
            fix = "turn it round, or correct the seq of either"
        yield Problem("T204", f"{message}; {fix}", ("edges", number))


def _numbers_of(source: str, target: str, of: Graph) -> tuple[int, int]:
    return of.indices.get(source, -1), of.indices.get(target, -1)


def check_joins(view: TraceView) -> Iterator[Problem]:
    """Agents are joined by edges: from a spawn to what is spawned, from a return to what goes on with it."""
    of, events = view.graph, view.graph.events
    if len(of.edges) < len(view.trace.edges) or len(of.indices) < len(events):
        return  # other rules say so, and with edges lost nothing is known of these
    spawns, returns = of.of_type.get(_SPAWN, ()), of.of_type.get(_RETURN, ())
    following = dict(zip(of.sources, of.targets, strict=True)) if spawns or returns else {}
    doubtful = [n for n in spawns if n not in following or events[following[n]].agent != events[n].target]
    agent = of.agents.__getitem__
    if len(doubtful) == len(spawns) and all(map(eq, map(agent, of.sources), map(agent, of.targets))):
        agents = len(set(of.agents))
        if agents > 1:
            message = (
                f"no edge joins the {agents} agents, so each seems to depend on nobody, and span and credit are wrong; "
                "add edges from spawns, messages and returns to what depends on them"
            )
            yield Problem("T225", message, ("edges",))
        return
    if doubtful:
        yield from _check_spawned(view, doubtful)
    if not all(map(following.__contains__, returns)):
        yield from _check_returned(view, [number for number in returns if number not in following])


def _check_spawned(view: TraceView, spawns: Sequence[int]) -> Iterator[Problem]:
    """Spawned agents to which no edge leads, neither from their spawn nor from anything of another agent."""
    of, events = view.graph, view.graph.events
    joined = {
        events[target].agent
        for source, target in zip(of.sources, of.targets, strict=True)
        if events[source].agent != events[target].agent
    }
    first: dict[str, Event] = {}
    for event in events:
        if event.agent not in first or event.t < first[event.agent].t:
            first[event.agent] = event
    for spawn in spawns:
        name = events[spawn].target
        if name in first and name not in joined:
            joined.add(name)
            message = (
                f"no edge leads to {quote(name)}, which seems to wait for nobody; "
                f"add one from this spawn to its first event {quote(first[name].id)}"
            )
            yield Problem("T223", message, ("events", spawn))


def _check_returned(view: TraceView, returns: Sequence[int]) -> Iterator[Problem]:
    """Returns that no edge leads on from, although the agent that they go to, or one above it, goes on."""
    events, parents = view.graph.events, view.lifecycle.parents
    last: dict[str, Event] = {}
    for event in events:
        if event.type not in _ENDS and (event.agent not in last or _moment(event) > _moment(last[event.agent])):
            last[event.agent] = event
    above: dict[str, Event | None] = {}
    latest = sorted(last.values(), key=_moment, reverse=True)[:2]
    for index in returns:
        event = events[index]
        sender = event.sender or event.agent
        receiver = event.target or parents.get(sender, "")
        if receiver:
            candidates = [last.get(receiver), _last_above(receiver, parents, last, above)]
        else:
            candidates = [one for one in latest if one.agent != sender]
        going_on = next(
            (
                candidate.agent
                for candidate in candidates
                if candidate is not None and not is_after(event, candidate, 0)
            ),
            None,
        )
        if going_on is not None:
            message = (
                f"no event depends on what {quote(sender)} returns, though {quote(going_on)} goes on; "
                "add an edge to the event that goes on with it"
            )
            yield Problem("T224", message, ("events", index))


def _moment(event: Event) -> tuple[float, float]:
    """Return the sort key of an event by time; at one time, an event without `seq` is the latest."""
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


def check_calls(view: TraceView) -> Iterator[Problem]:
    """Each result answers one earlier call, of the same tool; a call has one result at most, and none is a warning."""
    events, of_type = view.trace.events, view.graph.of_type
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for what, kind, seen in (("call", _TOOL_CALL, calls), ("result", _TOOL_RESULT, results)):
        for index in of_type.get(kind, ()):
            call_id = events[index].call_id
            if call_id and seen.setdefault(call_id, index) != index:
                message = f"call_id {quote(call_id)} is that of the {what} $.events[{seen[call_id]}], too"
                yield Problem("T210", message, ("events", index, "call_id"))
    if results.keys() != calls.keys():
        unanswered = [call_id for call_id in calls if call_id not in results]
        waiting = f" (calls without a result: {', '.join(map(quote, unanswered[:3]))})" if unanswered else ""
        for call_id, index in results.items():
            if call_id not in calls:
                message = f"no call has the call_id {quote(call_id)}{waiting}; correct it, or add the call"
                yield Problem("T209", message, ("events", index, "call_id"))
        for call_id, index in calls.items():
            if call_id not in results:
                message = f"the call {quote(call_id)} has no result"
                yield Problem("T211", message, ("events", index, "call_id"))
    skew = view.trace.clock.skew
    for call_id, index in results.items():
        called = calls.get(call_id)
        if called is None:
            continue
        call, result = events[called], events[index]
        if call.t >= result.t and is_after(call, result, skew):
            step, place = ("t", f"at {call.t:g}") if call.t > result.t else ("seq", f"of seq {call.seq}")
            message = f"the result comes before its call {quote(call.id)} {place}; correct the times or the call_id"
            yield Problem("T228", message, ("events", index, step))
        if result.tool and call.tool not in ("", result.tool):
            message = f"the call {quote(call_id)} is one of {quote(call.tool)}, its result one of {quote(result.tool)}"
            yield Problem("T226", message, ("events", index, "tool"))
