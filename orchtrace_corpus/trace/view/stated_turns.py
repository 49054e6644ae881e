"""Waits and sleep that follow from the stated durations of turns.

A turn that lasted 1,215 s by the times of its rows, and states a duration of 25 s that excludes waits for people,
waited for 1,190 s. Only tool calls wait for people, so these seconds lie in the tool calls of the turn, by any agent;
for an agent whose events are not logged, somewhere in its life. If only one call is long enough, it was the one that
waited. Otherwise only the sum is known. A turn that states as much as it lasted did not wait: all of it was work. A
turn that states less than its model calls alone took is ignored.

If the stated duration excludes sleep of the machine, the rest of the turn was sleep; it says nothing about waits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType, Excluded
from orchtrace_corpus.trace.view.graph import Graph
from orchtrace_corpus.trace.view.intervals import Intervals, length, overlap, union, without

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Turn

TOLERANCE_SECONDS = 1.0
"""Log rows are written a moment after the event, so shorter waits are not counted."""

_MAX_EXCESS = 1.1
"""Waits longer than all tool calls of a turn by more than this factor contradict the log."""

_ANSWERS = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)


class CallWait(NamedTuple):
    """The least and the most that a tool call waited, in seconds; the call is given by the index of its event."""

    event: int
    least: float
    most: float


class TurnWait(NamedTuple):
    """The wait, or the sleep, in a turn.

    Attributes:
        turn: The turn.
        seconds: How long it was, without the waits for people that events show.
        calls: The calls that may have waited; none for sleep.
    """

    turn: Turn
    seconds: float
    calls: tuple[CallWait, ...]


class StatedTurns(NamedTuple):
    """The waits and the sleep that follow from the stated durations of turns, in seconds from the earliest event.

    Attributes:
        settled: The indices of the calls and answers whose work follows from a turn, so that they are not open calls.
        waits: The turns with waits or sleep.
        people: The intervals in which each call waited for a person, by the index of its event.
        sleep: The intervals in which the machine slept.
    """

    settled: frozenset[int]
    waits: tuple[TurnWait, ...]
    people: Mapping[int, Intervals]
    sleep: Sequence[tuple[float, float]]


class Clock(NamedTuple):
    """The times of a trace's events in seconds from the earliest event, including waits for people.

    Attributes:
        starts: When each event began.
        begins: When its work began, if a stated run time tells; else the same as `starts`.
        ends: When it ended.
        blocked_until: For each background call, by its index, when its agent continued.
    """

    starts: list[float]
    begins: list[float]
    ends: list[float]
    blocked_until: dict[int, float]


NOTHING_STATED = StatedTurns(frozenset(), (), {}, ())
"""The value for a trace in which no turn states its duration."""


def settle(turns: Iterable[Turn], graph: Graph, clock: Clock, scale: float) -> StatedTurns:
    """Return the waits and the sleep that follow from turns; `scale` is the seconds in a unit of the trace's clock."""
    zero = min(graph.times)
    kinds = (EventType.HUMAN, EventType.TOOL_CALL, *_ANSWERS)
    by_start = [n for kind in kinds for n in graph.indices_by_type.get(kind, ()) if n not in graph.copied]
    by_start.sort(key=clock.starts.__getitem__)
    starts = [clock.starts[n] for n in by_start]
    latest_ends = list(accumulate((clock.ends[n] for n in by_start), max))  # of all events up to each
    settled: set[int] = set()
    waits: list[TurnWait] = []
    people: dict[int, Intervals] = {}
    sleep: Intervals = []
    for turn in sorted(turns, key=lambda turn: (turn.t, turn.t_end)):
        begin, end = (turn.t - zero) * scale, (turn.t_end - zero) * scale
        missing = end - begin - turn.run_time * scale
        # The events that begin before the turn ends, without most of those that end before it begins.
        indices = by_start[bisect_left(latest_ends, begin - TOLERANCE_SECONDS) : bisect_right(starts, end)]
        if turn.excludes is Excluded.SLEEP:
            interval = _sleep(indices, clock, (begin, end), missing)
            if interval is not None:
                sleep.append(interval)
                waits.append(TurnWait(turn, interval[1] - interval[0], ()))
            continue
        if missing <= TOLERANCE_SECONDS:
            settled.update(_inside(indices, clock, (begin, end)))
            continue
        window = _Window(indices, graph, clock, (begin, end))
        missing -= length(window.shown_waits)
        room = length(union(window.open_time()))
        if missing > room * _MAX_EXCESS + TOLERANCE_SECONDS:
            continue  # the models alone took longer than the turn states: the log means another duration
        settled.update(_inside(indices, clock, (begin, end)))
        missing = min(missing, room)
        if missing <= TOLERANCE_SECONDS:
            continue
        for index, pieces in window.place(missing).items():
            people[index] = union([*people.get(index, []), *pieces])
        waits.append(TurnWait(turn, missing, window.bounds(missing)))
    return StatedTurns(frozenset(settled), tuple(waits), people, union(sleep))


def stands_for_life(event: Event) -> bool:
    """Return True if an event stands for the whole life of an agent whose own events are not logged."""
    has_details = event.model or event.tokens or event.content_ref
    return event.type is EventType.INFERENCE and event.inferred and not has_details


def _inside(indices: Iterable[int], clock: Clock, turn: tuple[float, float]) -> Iterator[int]:
    """Yield the calls and answers that began and ended within a turn."""
    first, last = turn[0] - TOLERANCE_SECONDS, turn[1] + TOLERANCE_SECONDS
    starts, ends, blocked_until = clock.starts, clock.ends, clock.blocked_until
    for index in indices:
        if starts[index] >= first and blocked_until.get(index, ends[index]) <= last:
            yield index


class _Window:
    """The tool calls between the begin of a turn and its end.

    Attributes:
        shown_waits: The waits for people that events show.
    """

    def __init__(self, indices: Sequence[int], graph: Graph, clock: Clock, turn: tuple[float, float]) -> None:
        begin, end = turn
        starts, ends, events = clock.starts, clock.ends, graph.events
        # An intervention that ends after the turn waits for the next prompt.
        people = [n for n in indices if events[n].type is EventType.HUMAN and ends[n] <= end]
        self.shown_waits = overlap(union((starts[n], ends[n]) for n in people), [turn])
        self._calls: dict[int, Intervals] = {}  # when each call may have waited
        self._sure: dict[int, Intervals] = {}  # when a call that states its run time did wait
        models = []
        for index in indices:
            if events[index].type is EventType.HUMAN:
                continue
            if events[index].type is not EventType.TOOL_CALL and not stands_for_life(events[index]):
                models.append((starts[index], ends[index]))
                continue
            last = clock.blocked_until.get(index, ends[index])
            is_timed = clock.begins[index] > starts[index]
            if is_timed:
                last = min(last, clock.begins[index])
            first, last = max(begin, starts[index]), min(end, last)
            if last <= first or (is_timed and clock.begins[index] >= ends[index]):
                continue  # a call that ran for no time waited for the work of another
            self._calls[index] = without([(first, last)], self.shown_waits)
            if is_timed:
                self._sure[index] = self._calls[index]
        self._models = union(models)
        self._alone = _alone(self._calls)

    def open_time(self) -> Iterable[tuple[float, float]]:
        """Return the intervals in which a call may have waited."""
        return (interval for intervals in self._calls.values() for interval in intervals)

    def place(self, missing: float) -> dict[int, Intervals]:
        """Distribute the wait of the turn among its calls, the longest first, at the beginning of each.

        A call waits before it works. Calls that state their run time come first, because the rest of their time was
        a wait; then the times in which a call was alone, because only a lone wait stops the whole turn.
        """
        placed: dict[int, Intervals] = {}
        free = {index: without(intervals, self._models) for index, intervals in self._alone.items()}
        for candidates in (self._sure, free, self._calls):
            for index in sorted(candidates, key=lambda n: (-length(candidates[n]), n)):
                if missing <= 0:
                    return placed
                occupied = union(interval for pieces in placed.values() for interval in pieces)
                pieces = _first_seconds(without(candidates[index], occupied), missing)
                if pieces:
                    placed[index] = union([*placed.get(index, []), *pieces])
                    missing -= length(pieces)
        return placed

    def bounds(self, missing: float) -> tuple[CallWait, ...]:
        """Return the least and the most that each call waited, the longest first."""
        sure = union(interval for intervals in self._sure.values() for interval in intervals)
        alone, rest = _alone(self._sure), max(missing - length(sure), 0.0)
        room = length(without(union(self.open_time()), sure))
        waits = []
        for index, intervals in self._calls.items():
            if index in self._sure:
                most = min(missing, length(intervals))
                least = most if rest else max(missing - length(without(sure, alone.get(index, []))), 0.0)
            else:
                most = min(rest, length(without(intervals, sure)))
                least = max(rest - room + length(without(self._alone.get(index, []), sure)), 0.0)
            if most > TOLERANCE_SECONDS:
                waits.append(CallWait(index, least, most))
        return tuple(sorted(waits, key=lambda wait: (-wait.most, wait.event)))


def _alone(intervals: dict[int, Intervals]) -> dict[int, Intervals]:
    """Return for each call the intervals in which it was the only one."""
    changes = []
    for index, parts in intervals.items():
        for begin, end in parts:
            changes += [(begin, 1, index), (end, -1, index)]
    changes.sort()
    active: set[int] = set()
    alone: dict[int, Intervals] = {}
    for (moment, change, index), following in pairwise([*changes, (0.0, 0, -1)]):
        if change > 0:
            active.add(index)
        else:
            active.discard(index)
        if len(active) == 1 and following[0] > moment:
            alone.setdefault(next(iter(active)), []).append((moment, following[0]))
    return {index: union(parts) for index, parts in alone.items()}


def _first_seconds(intervals: Intervals, seconds: float) -> Intervals:
    """Return the beginning of the intervals, up to a total length."""
    beginning: Intervals = []
    for begin, end in intervals:
        if seconds <= 0:
            break
        beginning.append((begin, min(end, begin + seconds)))
        seconds -= end - begin
    return beginning


def _sleep(
    indices: Iterable[int], clock: Clock, turn: tuple[float, float], missing: float
) -> tuple[float, float] | None:
    """Return when the machine slept in a turn, presumably at the beginning of the longest call; None if it did not."""
    if missing <= TOLERANCE_SECONDS:
        return None
    intervals = [(max(turn[0], clock.starts[n]), min(turn[1], clock.ends[n])) for n in indices]
    begin, end = max(intervals, key=lambda interval: interval[1] - interval[0], default=(0.0, 0.0))
    return (begin, min(end, begin + missing)) if end > begin else None
