"""A run as columns of numbers, for the script of its HTML page.

Events are in the order of the replay and are given by their place in it, from 0. Times count from the begin of the
run, without waits for people. A column whose values are all equal is given as that one value instead of a list.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntFlag
from itertools import pairwise
from math import floor, log10
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.model.trace import Source
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.graph import positions

_ENDS = frozenset((EventType.RETURN, EventType.STOP, EventType.DESPAWN))
_ARROWS = (EventType.SPAWN, EventType.RETURN, EventType.MESSAGE)
_MAX_NAME = 200

MIN_GROUP = 4
"""The least number of sub-agents of one role that can share a lane."""

_MIN_BREAK = 0.2
"""The smallest part of the time that is left out of the axis, as a share of the elapsed time."""

_MAX_REST = 0.5
"""Parts are left out only if the rest of the time is at most this share of the elapsed time."""

_BREAK_SHARE = 0.12
"""The width on the axis of each part that is left out, as a share of the time that remains."""


class Flag(IntFlag):
    """The flags of an event."""

    WORK = 1
    OPEN = 2
    ASSUMED = 4
    OFF_CLOCK = 8


class WaitInterval(NamedTuple):
    """An interval in which an agent waited for another agent, and the index of the event with which the wait ended."""

    agent: str
    awaited: str
    begin: float
    end: float
    event: int


def columns(diagnosis: Diagnosis, names: Mapping[str, str], *, with_content: bool) -> dict[str, Any]:
    """Return a run as columns in JSON types, with the contents of its events only if `with_content`."""
    view, times = diagnosis.view, diagnosis.view.timing
    strings = _Strings()
    places = positions(times.sequence)  # of the events in the replay
    digits = 6
    if times.elapsed > 0:
        digits = max(6, 9 - floor(log10(times.elapsed)))

    def moment(time: float) -> float:
        """Return a time from the begin of the run, rounded to a billionth of its length or a millionth of a second."""
        return _as_int_if_whole(round(time - times.begin, digits))

    agents = {agent.agent: index for index, agent in enumerate(view.agents)}
    events = [view.trace.events[index] for index in times.sequence]
    sources = [event.source if isinstance(event.source, Source) else Source() for event in events]
    chain = diagnosis.path.chain
    waits = list(wait_intervals(diagnosis))
    arrows = list(_arrows(diagnosis, agents))
    contents = {}
    if with_content:
        contents = {"content": _column([event.content_ref for event in events])}
    return {
        "unit": times.unit,
        "elapsed": times.elapsed,
        "types": [kind.value for kind in EventType],
        "statuses": [status.value for status in Status],
        "agents": {
            "name": [names[agent.agent] for agent in view.agents],
            "id": [printable(agent.agent, limit=_MAX_NAME) for agent in view.agents],
            "depth": [agent.depth for agent in view.agents],
            "begin": [moment(agent.begin) for agent in view.agents],
            "end": [moment(agent.end) for agent in view.agents],
            "person": _column([int(agent.agent in diagnosis.people) for agent in view.agents]),
            "role": _column([strings[agent.role] for agent in view.agents]),
            "group": _column(agent_groups(view.agents, diagnosis.people)),
        },
        "events": {
            "id": [printable(event.id, limit=_MAX_NAME) for event in events],
            "agent": _column([agents[event.agent] for event in events]),
            "type": _column([_TYPE_PLACES[event.type] for event in events]),
            "status": _column([_STATUS_PLACES[event.status] for event in events]),
            "start": [moment(times.starts[index]) for index in times.sequence],
            "took": _column([_six_digits(times.ends[index] - times.starts[index]) for index in times.sequence]),
            "flags": _column(_flags(diagnosis)),
            "tool": _column([strings[event.tool] for event in events]),
            "model": _column([strings[event.model] for event in events]),
            "target": _column([strings[names.get(event.target, event.target)] for event in events]),
            "error": _column([strings[event.error_type] for event in events]),
            "file": _column([strings[source.file] for source in sources]),
            "line": _column([int(source.line or 0) for source in sources]),
            **contents,
        },
        "edges": [
            [places[source] for source in times.graph.sources],
            [places[target] for target in times.graph.targets],
        ],
        "arrows": {
            "event": [places[index] for index, _, _ in arrows],
            "agent": [agent for _, agent, _ in arrows],
            "arrival": [moment(arrival) for _, _, arrival in arrows],
        },
        "critical": {
            "event": [places[index] for index in chain.events],
            "worked": [_six_digits(part) for part in chain.worked],
            "gap": [_six_digits(gap) for gap in chain.gaps],
        },
        "waits": {
            "agent": [agents[wait.agent] for wait in waits],
            "awaited": [agents[wait.awaited] for wait in waits],
            "begin": [moment(wait.begin) for wait in waits],
            "end": [moment(wait.end) for wait in waits],
        },
        "replay": _replay(diagnosis, names, strings, places),
        "strings": [printable(text, limit=_MAX_NAME) for text in strings],  # last: now all texts were looked up
    }


def agent_groups(agents: Sequence[AgentSpan], people: Collection[str]) -> list[int]:
    """Return the number of the group of each agent, from 0; -1 if the agent is in no group.

    A group has at least `MIN_GROUP` sub-agents of one parent and one role that spawned no agent.
    """
    candidates: dict[tuple[str, str], list[int]] = {}  # by parent and role
    ancestors: list[str] = []  # of the agent, which is added below
    for place, agent in enumerate(agents):
        del ancestors[agent.depth :]
        has_children = place + 1 < len(agents) and agents[place + 1].depth > agent.depth
        if ancestors and not has_children and agent.agent not in people:
            candidates.setdefault((ancestors[-1], agent.role), []).append(place)
        ancestors.append(agent.agent)
    groups = [places for places in candidates.values() if len(places) >= MIN_GROUP]
    group_numbers = [-1] * len(agents)
    for number, places in enumerate(groups):
        for place in places:
            group_numbers[place] = number
    return group_numbers


def axis_breaks(runs: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return the parts of the time to leave out of the axis, in which all runs have nothing but open calls.

    Each part has its begin, its end, and its width on the axis, all as times. If too much time would remain, no part is
    left out.
    """
    elapsed = max(run["elapsed"] for run in runs)
    events = [event for run in runs for event in _intervals(run)]
    moments = {0, elapsed}
    for begin, end, _ in events:
        moments.update((begin, end))
    breaks = []
    for begin, end in pairwise(sorted(moments)):
        if end - begin < _MIN_BREAK * elapsed:
            continue
        are_open = [is_open for event_begin, event_end, is_open in events if event_begin <= begin and event_end >= end]
        if are_open and all(are_open):
            breaks.append((begin, end))
    rest = elapsed - sum(end - begin for begin, end in breaks)
    if not 0 < rest <= _MAX_REST * elapsed:
        return []
    return [[begin, end, _six_digits(rest * _BREAK_SHARE)] for begin, end in breaks]


def _intervals(run: Mapping[str, Any]) -> Iterator[tuple[float, float, bool]]:
    """Yield the begin and the end of each event in the columns of a run, and True if it is an open call."""
    begins = run["events"]["start"]
    times = _as_list(run["events"]["took"], len(begins))
    flags = _as_list(run["events"]["flags"], len(begins))
    for begin, time, flag in zip(begins, times, flags, strict=True):
        yield begin, round(begin + time, 6), bool(flag & Flag.OPEN)


def _as_list(column: Any, length: int) -> list[Any]:
    """Return the values of a column that `_column` returned."""
    return column if isinstance(column, list) else [column] * length


_TYPE_PLACES = {kind: place for place, kind in enumerate(EventType)}
_STATUS_PLACES = {status: place for place, status in enumerate(Status)}


class _Strings(dict[str, int]):
    """The indices of distinct texts by text. A text receives the next index when it is first looked up.

    The empty text has the index 0.
    """

    def __init__(self) -> None:
        super().__init__({"": 0})

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _six_digits(time: float) -> float:
    return _as_int_if_whole(float(f"{time:.6g}"))


def _as_int_if_whole(figure: float) -> float:
    """Return a figure as an integer if it has no fraction, which is shorter in JSON."""
    return int(figure) if figure == int(figure) else figure


def _column(values: list[Any]) -> Any:
    """Return values as a column: a single value if all are equal, else the list."""
    if values and values.count(values[0]) == len(values):
        return values[0]
    return values


def _flags(diagnosis: Diagnosis) -> list[int]:
    """Return the flags of each event, in the order of the replay."""
    view, times = diagnosis.view, diagnosis.view.timing
    flags = [int(Flag.WORK) if works > 0 else 0 for works in times.works]
    for call in view.open_calls:
        flags[call.event] |= Flag.OPEN
    for index in diagnosis.assumed_events:
        flags[index] |= Flag.ASSUMED
    for index in times.off_clock:
        flags[index] |= Flag.OFF_CLOCK
    return [flags[index] for index in times.sequence]


def _arrows(diagnosis: Diagnosis, agents: Mapping[str, int]) -> Iterator[tuple[int, int, float]]:
    """Yield the spawns, returns and messages between agents: the event, the place of the target, the time of arrival.

    An arrow arrives with the first event of its target agent that an edge leads to. Without such an edge, a spawn
    arrives with the next event of its target, and a return or a message at once. `agents` has the places of agents by
    their ids.
    """
    view, times = diagnosis.view, diagnosis.view.timing
    graph, events, parents = times.graph, view.trace.events, view.lifecycle.parents
    targets: dict[int, str] = {}
    for kind in _ARROWS:
        for index in graph.indices_by_type.get(kind, ()):
            target = events[index].target
            if kind is EventType.RETURN and not target:
                target = parents.get(events[index].agent, "")
            targets[index] = target
    arrivals: dict[int, float] = {}
    for source, linked in zip(graph.sources, graph.targets, strict=True):
        if events[linked].agent == targets.get(source):
            arrivals[source] = min(times.starts[linked], arrivals.get(source, times.starts[linked]))
    for index, target in targets.items():
        if target not in agents or target == events[index].agent or index in times.off_clock:
            continue
        arrival = times.starts[index]
        if index in arrivals:
            arrival = arrivals[index]
        elif events[index].type is EventType.SPAWN:
            target_events = times.indices_by_agent.get(target, [])
            following = bisect_left(target_events, arrival, key=times.starts.__getitem__)
            if following < len(target_events):
                arrival = times.starts[target_events[following]]
        yield index, agents[target], arrival


def wait_intervals(diagnosis: Diagnosis) -> Iterator[WaitInterval]:
    """Yield the intervals of the waits in `diagnosis.team_findings.waits`, which has only their sums."""
    view, times = diagnosis.view, diagnosis.view.timing
    events, starts, ends = view.trace.events, times.starts, times.ends
    waits_by_event = {(wait.agent, event): wait for wait in diagnosis.team_findings.waits for event in wait.events}
    for agent in dict.fromkeys(wait.agent for wait in diagnosis.team_findings.waits):
        free_since = -1.0  # the end of the agent's events so far; -1 at the begin of its life
        for index in times.indices_by_agent[agent]:
            if wait := waits_by_event.get((agent, index)):
                awaited_events = [source for source in times.incoming[index] if events[source].agent == wait.awaited]
                until = max(min(ends[awaited], starts[index]) for awaited in awaited_events)
                yield WaitInterval(agent, wait.awaited, free_since, until, index)
            free_since = -1.0 if events[index].type in _ENDS else max(free_since, ends[index])


def _replay(
    diagnosis: Diagnosis, names: Mapping[str, str], strings: _Strings, places: Sequence[int]
) -> dict[str, list[Any] | Any]:
    """Return what each event adds to tokens and costs, and when agents, calls and messages begin and end.

    The unknown tokens of a model call are null. Agents are given by their names, as indices in `strings`; calls and
    messages are given by the places of their events.
    """
    view = diagnosis.view
    tokens: list[float | None] = []
    tokens_before, unknown_before = 0.0, 0
    last_state = None
    for state in replay(view):
        is_unknown = state.without_tokens > unknown_before
        tokens.append(None if is_unknown else _as_int_if_whole(state.tokens - tokens_before))
        tokens_before, unknown_before = state.tokens, state.without_tokens
        last_state = state
    live, open_calls, in_flight = ((), (), ()) if last_state is None else last_state.changes
    places_of_calls: dict[str, int] = {}
    for index in view.graph.indices_by_type.get(EventType.TOOL_CALL, ()):
        event = view.trace.events[index]
        places_of_calls.setdefault(event.call_id or event.id, places[index])
    costs = [None if event.copied_context else event.cost_usd for event in view.trace.events]

    def columns_of(changes: Sequence[tuple[int, str]], numbers: Mapping[str, int]) -> list[list[int]]:
        """Return the events and the numbers of changes, which have steps of the replay, from 1, and names."""
        return [[step - 1 for step, _ in changes], [numbers[name] for _, name in changes]]

    return {
        "tokens": _column(tokens),
        "cost": _column([costs[index] for index in view.sequence]),
        "live": columns_of(live, {name: strings[names.get(name, name)] for _, name in live}),
        "calls": columns_of(open_calls, places_of_calls),
        "messages": columns_of(in_flight, {name: places[view.graph.indices[name]] for _, name in in_flight}),
    }
