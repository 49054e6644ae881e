"""Rules on ids, edges, times and tool calls.

The events must form a graph without cycles whose edges do not lead back in time. Edges must also join the agents, since
without them agents seem to be independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter, eq, lt

from orchtrace_corpus.base.annotations import TYPE_CHECKING
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

_MAX_SUGGESTIONS, _MAX_IDS = 10, 10_000
"""Limits of the search for similar ids, which is slow: the unknown ids for which it runs, and the ids it compares."""

_MAX_CYCLE_EVENTS = 6  # that a message names

_SEQ = attrgetter("seq")
_REMOVE_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_ENDS = (EventType.DESPAWN, EventType.STOP)


def check_ids(view: TraceView) -> Iterator[Problem]:
    """Check that no two events, and no two agents, have the same id."""
    trace, graph = view.trace, view.graph
    if len(graph.indices) < len(trace.events):
        for index, event in enumerate(trace.events):
            first = graph.indices[event.id]
            if first != index:
                message = f"{quote(event.id)} is the id of $.events[{first}], too; give each event its own"
                yield Problem("T201", message, ("events", index, "id"))
    first_index_by_agent: dict[str, int] = {}
    for index, agent in enumerate(trace.agents):
        first = first_index_by_agent.setdefault(agent.id, index)
        if first != index:
            yield Problem("T201", f"{quote(agent.id)} is $.agents[{first}], too; keep one", ("agents", index, "id"))


def check_edges(view: TraceView) -> Iterator[Problem]:
    """Check that each edge leads from an existing event to an existing event."""
    trace, graph = view.trace, view.graph
    if len(graph.edges) == len(trace.edges):  # the graph leaves out edges of events that do not exist
        return
    unknown_ids = 0
    for index, edge in enumerate(trace.edges):
        for field, event_id in (("src", edge.src), ("dst", edge.dst)):
            if event_id not in graph.indices:
                hint = _suggest_event(event_id, graph) if unknown_ids < _MAX_SUGGESTIONS else ""
                unknown_ids += 1
                message = f"there is no event {quote(event_id)}{hint}; correct the id, or remove the edge"
                yield Problem("T202", message, ("edges", index, field))


def _suggest_event(unknown_id: str, graph: Graph) -> str:
    """Return a suggestion of the event with the most similar id; empty if no id is similar.

    Ids that differ only in their digits are not suggested: they are similar in almost every trace.
    """
    if len(graph.indices) > _MAX_IDS:
        return ""
    from difflib import get_close_matches  # imported late: only traces with mistakes need it

    without_digits = unknown_id.translate(_REMOVE_DIGITS)
    candidates = [event_id for event_id in graph.indices if event_id.translate(_REMOVE_DIGITS) != without_digits]
    similar = get_close_matches(unknown_id[:80], candidates, n=1, cutoff=0.8)
    return f" (did you mean {quote(similar[0])}?)" if similar else ""


def check_cycles(view: TraceView) -> Iterator[Problem]:
    """Check that the edges form no cycle: an event cannot be before itself."""
    trace, graph = view.trace, view.graph
    try:
        view.sequence  # noqa: B018 -- raises if there is a cycle
    except CycleError as error:
        cycle = [*error.nodes, error.nodes[0]]
        path = " -> ".join(quote(graph.events[index].id) for index in cycle[:_MAX_CYCLE_EVENTS])
        if len(cycle) > _MAX_CYCLE_EVENTS:
            path += f" -> … ({len(error.nodes)} events)"
        steps = set(pairwise(cycle))
        edges_of_cycle = [index for index, edge in enumerate(trace.edges) if _ends_of(edge, graph) in steps]
        # The edge that is most likely wrong: the one that leads back farthest.
        wrong_edge = max(edges_of_cycle, key=lambda index: (*_distance_back(trace.edges[index], graph), index))
        message = f"the edges form a cycle: {path}; remove the edge that leads back, or reverse it"
        yield Problem("T203", message, ("edges", wrong_edge))


def _ends_of(edge: Edge, graph: Graph) -> tuple[int, int]:
    """Return the indices of the source and the target of an edge; -1 for an event that does not exist."""
    return graph.indices.get(edge.src, -1), graph.indices.get(edge.dst, -1)


def _distance_back(edge: Edge, graph: Graph) -> tuple[float, float]:
    """Return how far an edge leads back in time, and in `seq`."""
    source_index, target_index = _ends_of(edge, graph)
    source, target = graph.events[source_index], graph.events[target_index]
    return source.t - target.t, (source.seq or 0) - (target.seq or 0)


def check_times(view: TraceView) -> Iterator[Problem]:
    """Check that no edge leads back in time by more than the clock skew, and that no event or turn has an early end."""
    graph = view.graph
    if not view.is_timely:
        yield from _edges_back_in_time(view)
    for index, end in enumerate(graph.ends):
        if end is not None and end < graph.times[index]:
            message = f"the event ends at {end:g}, before it begins at {graph.times[index]:g}"
            yield Problem("T218", message, ("events", index, "t_end"))
    for index, turn in enumerate(view.trace.turns):
        if turn.t_end < turn.t:
            message = f"the turn ends at {turn.t_end:g}, before it begins at {turn.t:g}"
            yield Problem("T218", message, ("turns", index, "t_end"))


def _edges_back_in_time(view: TraceView) -> Iterator[Problem]:
    """Report edges whose source is certainly later than their target."""
    trace, graph = view.trace, view.graph
    skew, events, time = trace.clock.skew, graph.events, graph.times.__getitem__
    has_seqs = any(map(_SEQ, events))
    if not has_seqs and not any(map(lt, map(time, graph.targets), map(time, graph.sources))):
        return  # a fast test that mostly suffices: every target is at the time of its source or later
    indices: Iterable[int] = range(len(graph.edges))
    if len(graph.edges) < len(trace.edges):  # the graph leaves out edges of events that do not exist
        indices = [
            index for index, edge in enumerate(trace.edges) if edge.src in graph.indices and edge.dst in graph.indices
        ]
    for index, source_index, target_index in zip(indices, graph.sources, graph.targets, strict=True):
        source, target = events[source_index], events[target_index]
        if target.t > source.t or not is_after(source, target, skew):
            continue
        message = f"the edge goes back in time, from t {source.t:g} to t {target.t:g}"
        fix = "reverse it, correct the times, or declare $.clock.skew"
        if source.t == target.t:
            message = f"the edge goes back in time: at t {target.t:g}, from seq {source.seq} to seq {target.seq}"
            fix = "reverse it, or correct the seq of either"
        yield Problem("T204", f"{message}; {fix}", ("edges", index))


def check_joins(view: TraceView) -> Iterator[Problem]:
    """Check that edges join the agents: from a spawn to the spawned agent, from a return to the event that uses it."""
    graph, events = view.graph, view.graph.events
    if len(graph.edges) < len(view.trace.edges) or len(graph.indices) < len(events):
        return  # other rules report unknown and repeated ids; the missing edges could be those checked here
    spawns, returns = graph.indices_by_type.get(_SPAWN, ()), graph.indices_by_type.get(_RETURN, ())
    target_by_source: dict[int, int] = {}  # the target of the last edge of each event
    if spawns or returns:
        target_by_source = dict(zip(graph.sources, graph.targets, strict=True))
    unjoined_spawns = []
    for index in spawns:
        target = target_by_source.get(index)
        if target is None or events[target].agent != events[index].target:
            unjoined_spawns.append(index)
    agent = graph.agents.__getitem__
    if len(unjoined_spawns) == len(spawns) and all(map(eq, map(agent, graph.sources), map(agent, graph.targets))):
        count = len(set(graph.agents))
        if count > 1:
            message = (
                f"no edge joins the {count} agents, so they seem to be independent, and span and credit are wrong; "
                "add edges from spawns, messages and returns to the events that depend on them"
            )
            yield Problem("T225", message, ("edges",))
        return
    if unjoined_spawns:
        yield from _unjoined_agents(view, unjoined_spawns)
    unused_returns = [index for index in returns if index not in target_by_source]
    if unused_returns:
        yield from _unused_returns(view, unused_returns)


def _unjoined_agents(view: TraceView, spawns: Sequence[int]) -> Iterator[Problem]:
    """Report the agents of some spawns to which no edge leads from any other agent."""
    graph, events = view.graph, view.graph.events
    joined_agents = set()
    for source, target in zip(graph.sources, graph.targets, strict=True):
        if events[source].agent != events[target].agent:
            joined_agents.add(events[target].agent)
    first_events: dict[str, Event] = {}
    for event in events:
        if event.agent not in first_events or event.t < first_events[event.agent].t:
            first_events[event.agent] = event
    for spawn in spawns:
        name = events[spawn].target
        if name in first_events and name not in joined_agents:
            joined_agents.add(name)  # reported once, even if it is spawned several times
            message = (
                f"no edge leads to {quote(name)}, so it seems to be independent of the other agents; "
                f"add an edge from this spawn to its first event {quote(first_events[name].id)}"
            )
            yield Problem("T223", message, ("events", spawn))


def _unused_returns(view: TraceView, returns: Sequence[int]) -> Iterator[Problem]:
    """Report returns, from which no edge leads, after which the receiver or an agent above it still acts."""
    events, parents = view.graph.events, view.lifecycle.parents
    last_events: dict[str, Event] = {}
    for event in events:
        if event.type in _ENDS:
            continue
        if event.agent not in last_events or _time_key(event) > _time_key(last_events[event.agent]):
            last_events[event.agent] = event
    latest_upwards: dict[str, Event | None] = {}
    latest_two = sorted(last_events.values(), key=_time_key, reverse=True)[:2]  # at least one is not of the sender
    for index in returns:
        event = events[index]
        sender = event.sender or event.agent
        receiver = event.target or parents.get(sender, "")
        if receiver:
            candidates = [last_events.get(receiver), _latest_upwards(receiver, parents, last_events, latest_upwards)]
        else:
            candidates = [last_event for last_event in latest_two if last_event.agent != sender]
        for candidate in candidates:
            if candidate is not None and not is_after(event, candidate, skew=0):
                message = (
                    f"no event depends on what {quote(sender)} returns, though {quote(candidate.agent)} goes on; "
                    "add an edge to the event that goes on with it"
                )
                yield Problem("T224", message, ("events", index))
                break


def _time_key(event: Event) -> tuple[float, float]:
    """Return the sort key of an event by time; at one time, an event without `seq` is the latest."""
    return event.t, inf if event.seq is None else event.seq


def _latest_upwards(
    agent: str, parents: Mapping[str, str], last_events: Mapping[str, Event], cache: dict[str, Event | None]
) -> Event | None:
    """Return the latest event of an agent and its ancestors; `cache` keeps results, so long chains are climbed once."""
    chain = []  # from the agent upwards
    ancestor: str | None = agent
    while ancestor is not None and ancestor not in cache:
        chain.append(ancestor)
        ancestor = parents.get(ancestor)
    latest = None if ancestor is None else cache[ancestor]
    for member in reversed(chain):
        event = last_events.get(member)
        if event is not None and (latest is None or _time_key(event) > _time_key(latest)):
            latest = event
        cache[member] = latest
    return latest


def check_calls(view: TraceView) -> Iterator[Problem]:
    """Check that each result belongs to one earlier call of the same tool, and that each call has one result."""
    events, indices_by_type = view.trace.events, view.graph.indices_by_type
    calls: dict[str, int] = {}  # by call id
    results: dict[str, int] = {}  # by call id
    for noun, kind, index_by_id in (("call", _TOOL_CALL, calls), ("result", _TOOL_RESULT, results)):
        for index in indices_by_type.get(kind, ()):
            call_id = events[index].call_id
            if call_id and index_by_id.setdefault(call_id, index) != index:
                message = f"call_id {quote(call_id)} is that of the {noun} $.events[{index_by_id[call_id]}], too"
                yield Problem("T210", message, ("events", index, "call_id"))
    if results.keys() != calls.keys():
        unanswered = [call_id for call_id in calls if call_id not in results]
        hint = f" (calls without a result: {', '.join(map(quote, unanswered[:3]))})" if unanswered else ""
        for call_id, index in results.items():
            if call_id not in calls:
                message = f"no call has the call_id {quote(call_id)}{hint}; correct it, or add the call"
                yield Problem("T209", message, ("events", index, "call_id"))
        for call_id, index in calls.items():
            if call_id not in results:
                message = f"the call {quote(call_id)} has no result"
                yield Problem("T211", message, ("events", index, "call_id"))
    skew = view.trace.clock.skew
    for call_id, index in results.items():
        if call_id not in calls:
            continue
        call, result = events[calls[call_id]], events[index]
        if call.t >= result.t and is_after(call, result, skew):
            field, time = "seq", f"of seq {call.seq}"
            if call.t > result.t:
                field, time = "t", f"at {call.t:g}"
            message = f"the result comes before its call {quote(call.id)} {time}; correct the times or the call_id"
            yield Problem("T228", message, ("events", index, field))
        if result.tool and call.tool not in ("", result.tool):
            message = f"the call {quote(call_id)} is one of {quote(call.tool)}, its result one of {quote(result.tool)}"
            yield Problem("T226", message, ("events", index, "tool"))
