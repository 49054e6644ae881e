"""A run as columns of numbers, for the script of its page: compact, and built in time that grows with its events.

Events are in the order of their replay, and everywhere known by their place in it, from 0 on. Times are from the
beginning of the run, waits for people taken out. A column whose values are all the same is that one value.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntFlag
from itertools import pairwise
from math import floor, log10
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Source
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.graph import positions

_ENDS = frozenset((EventType.RETURN, EventType.STOP, EventType.DESPAWN))
_ARROWS = (EventType.SPAWN, EventType.RETURN, EventType.MESSAGE)
_NAME_LIMIT = 200

LEAST_GROUP = 4
"""So many sub-agents that do the same can share a lane."""

_LEAST_BREAK = 0.2
_MOST_REST = 0.5
_BREAK_SHARE = 0.12
"""The axis is broken where parts of this share of the time leave that much of it; each then looks as long as this
share of what is left."""


class Flag(IntFlag):
    """The flags of an event beside its type."""

    WORK = 1
    OPEN = 2
    ASSUMED = 4
    OFF_CLOCK = 8


class WaitInterval(NamedTuple):
    """One time in which an agent waited for another.

    Attributes:
        agent: Who waited.
        awaited: For whom.
        begin: Since when, in the unit of the timing.
        end: Until when.
        event: The number of the event with which it ended.
    """

    agent: str
    awaited: str
    begin: float
    end: float
    event: int


def columns(diagnosis: Diagnosis, names: Mapping[str, str], *, with_content: bool) -> dict[str, Any]:
    """The run, as JSON can hold it.

    Args:
        diagnosis: What is known of the run.
        names: What its agents are called.
        with_content: Whether the contents of its events are in it, as far as the trace has them.
    """
    view, times = diagnosis.view, diagnosis.view.timing
    strings, place = _Strings(), positions(times.sequence)
    agents = {one.agent: index for index, one in enumerate(view.agents)}
    clock = _Clock(times.begin, times.elapsed)
    events = [view.trace.events[number] for number in times.sequence]
    chain = diagnosis.path.chain
    waits = list(wait_intervals(diagnosis))
    arrows = list(_arrows(diagnosis, agents))
    return {
        "unit": times.unit,
        "elapsed": times.elapsed,
        "types": [kind.value for kind in EventType],
        "statuses": [status.value for status in Status],
        "agents": {
            "name": [names[one.agent] for one in view.agents],
            "id": [printable(one.agent, limit=_NAME_LIMIT) for one in view.agents],
            "depth": [one.depth for one in view.agents],
            "begin": [clock.moment(one.begin) for one in view.agents],
            "end": [clock.moment(one.end) for one in view.agents],
            "person": _column([int(one.agent in diagnosis.people) for one in view.agents]),
            "role": _column([strings.number(one.role) for one in view.agents]),
            "group": _column(agent_groups(view.agents, diagnosis.people)),
        },
        "events": {
            "id": [printable(event.id, limit=_NAME_LIMIT) for event in events],
            "agent": _column([agents[event.agent] for event in events]),
            "type": _column([_TYPE_PLACES[event.type] for event in events]),
            "status": _column([_STATUS_PLACES[event.status] for event in events]),
            "start": [clock.moment(times.starts[number]) for number in times.sequence],
            "took": _column([_short(times.ends[number] - times.starts[number]) for number in times.sequence]),
            "flags": _column(_flags(diagnosis)),
            "tool": _column([strings.number(event.tool) for event in events]),
            "model": _column([strings.number(event.model) for event in events]),
            "target": _column([strings.number(names.get(event.target, event.target)) for event in events]),
            "error": _column([strings.number(event.error_type) for event in events]),
            **_sources(events, strings),
            **({"content": _column([event.content_ref for event in events])} if with_content else {}),
        },
        "edges": [[place[n] for n in times.graph.sources], [place[n] for n in times.graph.targets]],
        "arrows": {
            "event": [place[number] for number, _, _ in arrows],
            "agent": [agent for _, agent, _ in arrows],
            "arrival": [clock.moment(moment) for _, _, moment in arrows],
        },
        "critical": {
            "event": [place[number] for number in chain.events],
            "worked": [_short(part) for part in chain.parts],
            "gap": [_short(gap) for gap in chain.gaps],
        },
        "waits": {
            "agent": [agents[wait.agent] for wait in waits],
            "awaited": [agents[one.awaited] for one in waits],
            "begin": [clock.moment(one.begin) for one in waits],
            "end": [clock.moment(one.end) for one in waits],
        },
        "replay": _replay(diagnosis, names, strings, place),
        "strings": strings.known(),
    }


def agent_groups(agents: Sequence[AgentSpan], people: Collection[str]) -> list[int]:
    """Return for each agent the group that it is in, from 0 on; -1 where it is in none.

    A group is of sub-agents of one parent and one role that spawned nobody, `LEAST_GROUP` of them or more.
    """
    members: dict[tuple[str, str], list[int]] = {}
    above: list[str] = []
    for place, agent in enumerate(agents):
        del above[agent.depth :]
        has_children = place + 1 < len(agents) and agents[place + 1].depth > agent.depth
        if above and not has_children and agent.agent not in people:
            members.setdefault((above[-1], agent.role), []).append(place)
        above.append(agent.agent)
    groups = [-1] * len(agents)
    for index, places in enumerate(group for group in members.values() if len(group) >= LEAST_GROUP):
        for place in places:
            groups[place] = index
    return groups


def axis_breaks(runs: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return the parts of the time, common to all runs, in which nothing but open calls goes on, if they take most.

    Each is its begin, its end, and the time that its place on a broken axis would have elsewhere.
    """
    elapsed = max(run["elapsed"] for run in runs)
    calls = [call for run in runs for call in _calls(run)]
    moments = sorted({0, elapsed, *(moment for begin, end, _ in calls for moment in (begin, end))})
    quiet = []
    for begin, end in pairwise(moments):
        if end - begin < _LEAST_BREAK * elapsed:
            continue
        during = [is_open for first, last, is_open in calls if first <= begin and last >= end]
        if during and all(during):
            quiet.append((begin, end))
    rest = elapsed - sum(end - begin for begin, end in quiet)
    if not 0 < rest <= _MOST_REST * elapsed:
        return []
    return [[begin, end, _short(rest * _BREAK_SHARE)] for begin, end in quiet]


def _calls(run: Mapping[str, Any]) -> Iterator[tuple[float, float, bool]]:
    """Yield begin, end and whether it is an open call of each event of the columns of a run."""
    events = run["events"]
    length = len(events["start"])
    took, flags = (
        values if isinstance(values, list) else [values] * length for values in (events["took"], events["flags"])
    )
    for begin, time, flag in zip(events["start"], took, flags, strict=True):
        yield begin, round(begin + time, 6), bool(flag & Flag.OPEN)


_TYPE_PLACES = {kind: number for number, kind in enumerate(EventType)}
_STATUS_PLACES = {status: number for number, status in enumerate(Status)}


class _Clock:
    """Moments from the beginning of a run on, to a billionth of its time or a millionth of a second."""

    def __init__(self, begin: float, elapsed: float) -> None:
        self._begin = begin
        self._digits = max(6, 9 - floor(log10(elapsed))) if elapsed > 0 else 6

    def moment(self, time: float) -> float:
        return _whole(round(time - self._begin, self._digits))


class _Strings:
    """A table of texts, each once; the first is empty."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def known(self) -> list[str]:
        return [printable(text, limit=_NAME_LIMIT) for text in self._numbers]


def _short(time: float) -> float:
    """A duration to six digits."""
    return _whole(float(f"{time:.6g}"))


def _whole(number: float) -> float:
    """A number without a needless fraction."""
    return int(number) if number == int(number) else number


def _column(values: list[Any]) -> Any:
    """A column; where all its values are the same, that one value."""
    return values[0] if values and values.count(values[0]) == len(values) else values


def _flags(diagnosis: Diagnosis) -> list[int]:
    view, times = diagnosis.view, diagnosis.view.timing
    flags = [int(Flag.WORK) if works > 0 else 0 for works in times.works]
    opened = [open_call.event for open_call in view.open_calls]
    for indices, flag in ((opened, Flag.OPEN), (diagnosis.assumed, Flag.ASSUMED), (times.off_clock, Flag.OFF_CLOCK)):
        for index in indices:
            flags[index] |= flag
    return [flags[index] for index in times.sequence]


def _sources(events: Sequence[Event], strings: _Strings) -> dict[str, Any]:
    sources = [event.source if isinstance(event.source, Source) else Source() for event in events]
    return {
        "file": _column([strings.number(source.file) for source in sources]),
        "line": _column([int(one.line or 0) for one in sources]),
    }


def _arrows(diagnosis: Diagnosis, agents: Mapping[str, int]) -> Iterator[tuple[int, int, float]]:
    """Spawns, returns and messages from one agent to another: event, the other, and when it arrives there.

    It arrives with the first event of the other that an edge leads to; a spawn, where there is none, with the other's
    next event. What nothing says the arrival of arrives at once.
    """
    view, times = diagnosis.view, diagnosis.view.timing
    events, parents = view.trace.events, view.lifecycle.parents
    arrivals: dict[int, float] = {}
    targets = {n: events[n].target for kind in _ARROWS for n in times.graph.of_type.get(kind, ())}
    for index in times.graph.of_type.get(EventType.RETURN, ()):
        targets[index] = targets[index] or parents.get(events[index].agent, "")
    for source, later in zip(times.graph.sources, times.graph.targets, strict=True):
        if events[later].agent == targets.get(source):
            arrivals[source] = min(times.starts[later], arrivals.get(source, times.starts[later]))
    for index, target in targets.items():
        if target in agents and target != events[index].agent and index not in times.off_clock:
            begin = times.starts[index]
            if index not in arrivals and events[index].type is EventType.SPAWN:
                own = times.by_agent.get(target, [])
                following = bisect_left(own, begin, key=times.starts.__getitem__)
                begin = times.starts[own[following]] if following < len(own) else begin
            yield index, agents[target], arrivals.get(index, begin)


def wait_intervals(diagnosis: Diagnosis) -> Iterator[WaitInterval]:
    """The single times behind `diagnosis.between.waits`, whose lengths add up to theirs."""
    view, times = diagnosis.view, diagnosis.view.timing
    events, starts, ends = view.trace.events, times.starts, times.ends
    waits = {(one.agent, event): one for one in diagnosis.between.waits for event in one.events}
    for agent in dict.fromkeys(one.agent for one in diagnosis.between.waits):
        free = -1.0
        for index in times.by_agent[agent]:
            if wait := waits.get((agent, index)):
                others = [n for n in times.incoming[index] if events[n].agent == wait.awaited]
                until = max(min(ends[n], starts[index]) for n in others)
                yield WaitInterval(agent, wait.awaited, free, until, index)
            free = -1.0 if events[index].type in _ENDS else max(free, ends[index])


def _replay(
    diagnosis: Diagnosis, names: Mapping[str, str], strings: _Strings, place: Sequence[int]
) -> dict[str, list[Any] | Any]:
    """Return what each event adds to tokens and costs, and the agents and calls that begin and end with it.

    Tokens that are not known where a model was asked are null. Agents are texts, calls and messages events.
    """
    view = diagnosis.view
    tokens: list[float | None] = []
    spent, lacking, state = 0.0, 0, None
    for state in replay(view):
        tokens.append(None if state.without_tokens > lacking else _whole(state.tokens - spent))
        spent, lacking = state.tokens, state.without_tokens
    calls: dict[str, int] = {}
    for index in view.graph.of_type.get(EventType.TOOL_CALL, ()):
        event = view.trace.events[index]
        calls.setdefault(event.call_id or event.id, place[index])
    live, opened, in_flight = state.changes if state is not None else ((), (), ())
    costs = [None if event.copied_context else event.cost_usd for event in view.trace.events]

    def changes(found: Iterable[tuple[int, str]], known: Mapping[str, int]) -> list[list[int]]:
        pairs = [(step - 1, known[name]) for step, name in found]
        return [[step for step, _ in pairs], [what for _, what in pairs]]

    return {
        "tokens": _column(tokens),
        "cost": _column([costs[index] for index in view.sequence]),
        "live": changes(live, {name: strings.number(names.get(name, name)) for _, name in live}),
        "calls": changes(opened, calls),
        "messages": changes(in_flight, {name: place[view.graph.indices[name]] for _, name in in_flight}),
    }
