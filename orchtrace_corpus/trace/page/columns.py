"""A run as columns of numbers, for the script of its HTML page.

Events are in the order of the replay, and are referred to by their place in it, from 0. Times are from the begin of
the run, without waits for people. A column of equal values is that one value.
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
"""The least share of the time that can be left out of the axis as one part."""

_MAX_REST = 0.5
"""The largest share of the time that may remain for parts to be left out."""

_BREAK_SHARE = 0.12
"""The place of each part that is left out, as a share of the time that remains."""


class Flag(IntFlag):
    """The flags of an event."""

    WORK = 1
    OPEN = 2
    ASSUMED = 4
    OFF_CLOCK = 8


class WaitInterval(NamedTuple):
    """An interval in which an agent waited for another, and the index of the event with which it ended."""

    agent: str
    awaited: str
    begin: float
    end: float
    event: int


def columns(diagnosis: Diagnosis, names: Mapping[str, str], *, with_content: bool) -> dict[str, Any]:
    """Return a run as columns that JSON can hold, with the contents of its events only if that is wanted."""
    view, times = diagnosis.view, diagnosis.view.timing
    strings, place = _Strings(), positions(times.sequence)
    digits = max(6, 9 - floor(log10(times.elapsed))) if times.elapsed > 0 else 6

    def moment(time: float) -> float:
        """Return a time from the begin of the run to a billionth of its length, or to a millionth of a second."""
        return _whole(round(time - times.begin, digits))

    agents = {agent.agent: index for index, agent in enumerate(view.agents)}
    events = [view.trace.events[index] for index in times.sequence]
    sources = [event.source if isinstance(event.source, Source) else Source() for event in events]
    chain = diagnosis.path.chain
    waits = list(wait_intervals(diagnosis))
    arrows = list(_arrows(diagnosis, agents))
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
            **({"content": _column([event.content_ref for event in events])} if with_content else {}),
        },
        "edges": [[place[n] for n in times.graph.sources], [place[n] for n in times.graph.targets]],
        "arrows": {
            "event": [place[index] for index, _, _ in arrows],
            "agent": [agent for _, agent, _ in arrows],
            "arrival": [moment(arrival) for _, _, arrival in arrows],
        },
        "critical": {
            "event": [place[index] for index in chain.events],
            "worked": [_six_digits(part) for part in chain.parts],
            "gap": [_six_digits(gap) for gap in chain.gaps],
        },
        "waits": {
            "agent": [agents[wait.agent] for wait in waits],
            "awaited": [agents[wait.awaited] for wait in waits],
            "begin": [moment(wait.begin) for wait in waits],
            "end": [moment(wait.end) for wait in waits],
        },
        "replay": _replay(diagnosis, names, strings, place),
        "strings": [printable(text, limit=_MAX_NAME) for text in strings],
    }


def agent_groups(agents: Sequence[AgentSpan], people: Collection[str]) -> list[int]:
    """Return the group of each agent, from 0; -1 if it is in none.

    A group has at least `MIN_GROUP` sub-agents of one parent and one role that spawned no agent.
    """
    members: dict[tuple[str, str], list[int]] = {}
    ancestors: list[str] = []
    for place, agent in enumerate(agents):
        del ancestors[agent.depth :]
        has_children = place + 1 < len(agents) and agents[place + 1].depth > agent.depth
        if ancestors and not has_children and agent.agent not in people:
            members.setdefault((ancestors[-1], agent.role), []).append(place)
        ancestors.append(agent.agent)
    groups = [-1] * len(agents)
    for index, places in enumerate(group for group in members.values() if len(group) >= MIN_GROUP):
        for place in places:
            groups[place] = index
    return groups


def axis_breaks(runs: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return the parts of the time to leave out of the axis: in all runs, only open calls go on in them.

    Each has its begin, its end, and the length of its place on the axis as a time. If too much time would remain, there
    are none.
    """
    elapsed = max(run["elapsed"] for run in runs)
    calls = [call for run in runs for call in _calls(run)]
    moments = sorted({0, elapsed, *(moment for begin, end, _ in calls for moment in (begin, end))})
    quiet = []
    for begin, end in pairwise(moments):
        if end - begin < _MIN_BREAK * elapsed:
            continue
        during = [is_open for first, last, is_open in calls if first <= begin and last >= end]
        if during and all(during):
            quiet.append((begin, end))
    rest = elapsed - sum(end - begin for begin, end in quiet)
    if not 0 < rest <= _MAX_REST * elapsed:
        return []
    return [[begin, end, _six_digits(rest * _BREAK_SHARE)] for begin, end in quiet]


def _calls(run: Mapping[str, Any]) -> Iterator[tuple[float, float, bool]]:
    """Yield the begin and the end of each event in the columns of a run, and True if it is an open call."""
    events = run["events"]
    length = len(events["start"])
    took, flags = (
        values if isinstance(values, list) else [values] * length for values in (events["took"], events["flags"])
    )
    for begin, time, flag in zip(events["start"], took, flags, strict=True):
        yield begin, round(begin + time, 6), bool(flag & Flag.OPEN)


_TYPE_PLACES = {kind: place for place, kind in enumerate(EventType)}
_STATUS_PLACES = {status: place for place, status in enumerate(Status)}


class _Strings(dict[str, int]):
    """The indices of distinct texts, in the order in which they are first looked up; the empty text is the first."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _six_digits(time: float) -> float:
    return _whole(float(f"{time:.6g}"))


def _whole(figure: float) -> float:
    """Return a figure without a needless fraction."""
    return int(figure) if figure == int(figure) else figure


def _column(values: list[Any]) -> Any:
    """Return values as a column, which is a single value if all are equal."""
    return values[0] if values and values.count(values[0]) == len(values) else values


def _flags(diagnosis: Diagnosis) -> list[int]:
    view, times = diagnosis.view, diagnosis.view.timing
    flags = [int(Flag.WORK) if works > 0 else 0 for works in times.works]
    opened = [call.event for call in view.open_calls]
    for indices, flag in (
        (opened, Flag.OPEN),
        (diagnosis.assumed_events, Flag.ASSUMED),
        (times.off_clock, Flag.OFF_CLOCK),
    ):
        for index in indices:
            flags[index] |= flag
    return [flags[index] for index in times.sequence]


def _arrows(diagnosis: Diagnosis, agents: Mapping[str, int]) -> Iterator[tuple[int, int, float]]:
    """Yield the spawns, returns and messages between agents: the event, the other agent, and the time of arrival.

    An arrow arrives with the first event of the other agent that an edge leads to; without such an edge, a spawn
    arrives with the agent's next event, and anything else at once.
    """
    view, times = diagnosis.view, diagnosis.view.timing
    graph, events, parents = times.graph, view.trace.events, view.lifecycle.parents
    targets = {index: events[index].target for kind in _ARROWS for index in graph.indices_by_type.get(kind, ())}
    for index in graph.indices_by_type.get(EventType.RETURN, ()):
        targets[index] = targets[index] or parents.get(events[index].agent, "")
    arrivals: dict[int, float] = {}
    for source, later in zip(graph.sources, graph.targets, strict=True):
        if events[later].agent == targets.get(source):
            arrivals[source] = min(times.starts[later], arrivals.get(source, times.starts[later]))
    for index, target in targets.items():
        if target not in agents or target == events[index].agent or index in times.off_clock:
            continue
        arrival = arrivals.get(index)
        if arrival is None:
            arrival = times.starts[index]
            if events[index].type is EventType.SPAWN:
                own_events = times.indices_by_agent.get(target, [])
                following = bisect_left(own_events, arrival, key=times.starts.__getitem__)
                if following < len(own_events):
                    arrival = times.starts[own_events[following]]
        yield index, agents[target], arrival


def wait_intervals(diagnosis: Diagnosis) -> Iterator[WaitInterval]:
    """Yield the single intervals of `diagnosis.team_findings.waits`, which has their sums."""
    view, times = diagnosis.view, diagnosis.view.timing
    events, starts, ends = view.trace.events, times.starts, times.ends
    waits = {(wait.agent, event): wait for wait in diagnosis.team_findings.waits for event in wait.events}
    for agent in dict.fromkeys(wait.agent for wait in diagnosis.team_findings.waits):
        free_since = -1.0
        for index in times.indices_by_agent[agent]:
            if wait := waits.get((agent, index)):
                awaited = [n for n in times.incoming[index] if events[n].agent == wait.awaited]
                until = max(min(ends[n], starts[index]) for n in awaited)
                yield WaitInterval(agent, wait.awaited, free_since, until, index)
            free_since = -1.0 if events[index].type in _ENDS else max(free_since, ends[index])


def _replay(
    diagnosis: Diagnosis, names: Mapping[str, str], strings: _Strings, place: Sequence[int]
) -> dict[str, list[Any] | Any]:
    """Return what each event adds to tokens and costs, and when agents, calls and messages begin and end.

    Unknown tokens of a model call are null. Agents are given as texts, calls and messages as events.
    """
    view = diagnosis.view
    tokens: list[float | None] = []
    spent, without_tokens, state = 0.0, 0, None
    for state in replay(view):
        tokens.append(None if state.without_tokens > without_tokens else _whole(state.tokens - spent))
        spent, without_tokens = state.tokens, state.without_tokens
    calls: dict[str, int] = {}
    for index in view.graph.indices_by_type.get(EventType.TOOL_CALL, ()):
        event = view.trace.events[index]
        calls.setdefault(event.call_id or event.id, place[index])
    live, opened, in_flight = state.changes if state is not None else ((), (), ())
    costs = [None if event.copied_context else event.cost_usd for event in view.trace.events]

    def columns_of(changes: Sequence[tuple[int, str]], numbers: Mapping[str, int]) -> list[list[int]]:
        return [[step - 1 for step, _ in changes], [numbers[name] for _, name in changes]]

    return {
        "tokens": _column(tokens),
        "cost": _column([costs[index] for index in view.sequence]),
        "live": columns_of(live, {name: strings[names.get(name, name)] for _, name in live}),
        "calls": columns_of(opened, calls),
        "messages": columns_of(in_flight, {name: place[view.graph.indices[name]] for _, name in in_flight}),
    }
