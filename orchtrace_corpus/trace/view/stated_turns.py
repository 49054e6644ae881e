"""Waits and sleep that follow from the stated durations of turns.

A turn that took 1,215 s and states 25 s without its waits for people waited for 1,190 s. Only calls of
tools wait for people, so these seconds lie in the calls of the turn, by any agent; those of an agent without a record
lie somewhere in its life. If one call is long enough, it was the one that waited. Otherwise only the sum is known. A
turn that states as much as it took did not wait: everything in it was work. A turn that states less than its models
alone took is ignored.

A turn that leaves out sleep says how much of it was no work at all, and nothing about waits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType, Excluded
from orchtrace_corpus.trace.view.graph import Graph
from orchtrace_corpus.trace.view.intervals import Intervals, length, overlap, union, without

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Turn

TOLERANCE_SECONDS = 1.0
"""A row is written a moment after what it is about, so that waits below this are none."""

_MOST_OVER_ROOM = 1.1
"""Waits that exceed the time of all calls by more than this share contradict the log, beyond its inexact times."""

_ANSWERS = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)


class CallWait(NamedTuple):
    """A call of a turn, by its number, and its wait: the least and the most, in seconds."""

    number: int
    least: float
    most: float


class TurnWait(NamedTuple):
    """A turn and its wait.

    Attributes:
        turn: The turn.
        seconds: The time of it that was no work, beyond the waits for people that its events show.
        calls: The calls that may have waited.
    """

    turn: Turn
    seconds: float
    calls: tuple[CallWait, ...]


class StatedTurns(NamedTuple):
    """The waits and the sleep that the turns of a trace settle, in seconds from its earliest event.

    Attributes:
        settled: The numbers of the calls and answers that are no range any more: at most the place of a wait is open.
        waits: The turns that waited.
        people: The times in which a call waited for a person, by its number.
        sleep: The times in which the machine slept.
    """

    settled: frozenset[int]
    waits: tuple[TurnWait, ...]
    people: Mapping[int, Intervals]
    sleep: Sequence[tuple[float, float]]


class Clock(NamedTuple):
    """The times of a trace's events in seconds from its earliest, waits left in.

    Attributes:
        starts: The time at which each event began.
        begins: The time at which its work began, where a stated run time says so; else `starts`.
        ends: The time at which it ended.
        blocked_until: The time at which the agent of a call in the background went on, by its number.
    """

    starts: list[float]
    begins: list[float]
    ends: list[float]
    blocked_until: dict[int, float]


NOTHING_STATED = StatedTurns(frozenset(), (), {}, ())
"""The stated times of a log in which no turn states its duration."""


def settle(turns: Iterable[Turn], of: Graph, clock: Clock, scale: float) -> StatedTurns:
    """Return what the stated durations of turns settle.

    Args:
        turns: The turns of the trace.
        of: Its graph.
        clock: The times of its events.
        scale: Seconds in a unit of the trace's clock.
    """
    zero = min(of.times)
    events = _EventsByTime(of, clock)
    settled: set[int] = set()
    waits: list[TurnWait] = []
    people: dict[int, Intervals] = {}
    sleep: Intervals = []
    for turn in sorted(turns, key=lambda turn: (turn.t, turn.t_end)):
        begin, end = (turn.t - zero) * scale, (turn.t_end - zero) * scale
        missing = end - begin - turn.run_time * scale
        if turn.excludes is Excluded.SLEEP:
            slept = _sleep(events.between(begin, end), clock, (begin, end), missing)
            if slept is not None:
                sleep.append(slept)
                waits.append(TurnWait(turn, slept[1] - slept[0], ()))
            continue
        indices = events.between(begin, end)
        if missing <= TOLERANCE_SECONDS:
            settled.update(_inside(indices, clock, (begin, end)))
            continue
        window = _Window(indices, of, clock, (begin, end))
        missing -= length(window.known)
        room = length(union(window.open_time()))
        if missing > room * _MOST_OVER_ROOM + TOLERANCE_SECONDS:
            continue  # less than the models alone took: whatever the log means by it, it is something else
        settled.update(_inside(indices, clock, (begin, end)))
        missing = min(missing, room)
        if missing <= TOLERANCE_SECONDS:
            continue
        for index, pieces in window.place(missing).items():
            people[index] = union([*people.get(index, []), *pieces])
        waits.append(TurnWait(turn, missing, window.bounds(missing)))
    return StatedTurns(frozenset(settled), tuple(waits), people, union(sleep))


def stands_for_life(event: Event) -> bool:
    """Return True for an event that only stands for the life of an agent of which no record is."""
    is_named = event.model or event.tokens or event.content_ref
    return event.type is EventType.INFERENCE and event.inferred and not is_named


class _EventsByTime:
    """Finds the calls, answers and interventions that go on at some time."""

    def __init__(self, of: Graph, clock: Clock) -> None:
        kinds = (EventType.HUMAN, EventType.TOOL_CALL, *_ANSWERS)
        indices = [n for kind in kinds for n in of.of_type.get(kind, ()) if n not in of.copied]
        self._numbers = sorted(indices, key=clock.starts.__getitem__)
        self._starts = [clock.starts[n] for n in self._numbers]
        self._ended = list(accumulate((clock.ends[n] for n in self._numbers), max))

    def between(self, begin: float, end: float) -> list[int]:
        """The numbers of the events that begin before the end of an interval, without most that end before it."""
        first, last = bisect_left(self._ended, begin - TOLERANCE_SECONDS), bisect_right(self._starts, end)
        return self._numbers[first:last]


def _inside(indices: Iterable[int], clock: Clock, turn: tuple[float, float]) -> Iterator[int]:
    """Yield the calls and answers that began and ended within a turn."""
    first, last = turn[0] - TOLERANCE_SECONDS, turn[1] + TOLERANCE_SECONDS
    starts, ends, blocked_until = clock.starts, clock.ends, clock.blocked_until
    for index in indices:
        if starts[index] >= first and blocked_until.get(index, ends[index]) <= last:
            yield index


class _Window:
    """The calls between the begin of a turn and its end.

    Attributes:
        known: The waits for people that events show.
    """

    def __init__(self, indices: Sequence[int], of: Graph, clock: Clock, turn: tuple[float, float]) -> None:
        begin, end = turn
        starts, ends, events = clock.starts, clock.ends, of.events
        people = [n for n in indices if events[n].type is EventType.HUMAN and ends[n] <= end]  # not for the next prompt
        self.known = overlap(union((starts[n], ends[n]) for n in people), [turn])
        self._calls: dict[int, Intervals] = {}
        self._sure: dict[int, Intervals] = {}  # those of them that state how long they worked
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
                continue  # what ran for no time at all waited for the work of another
            self._calls[index] = without([(first, last)], self.known)
            if is_timed:
                self._sure[index] = self._calls[index]
        self._models = union(models)
        self._alone = _alone(self._calls)

    def open_time(self) -> Iterable[tuple[float, float]]:
        """Return the intervals in which a call may have waited."""
        return (interval for intervals in self._calls.values() for interval in intervals)

    def place(self, missing: float) -> dict[int, Intervals]:
        """Lay the waits of the turn into its calls: the longest first, at their beginning, where nothing else went on.

        A call waits before it works, and what waits alone stops the whole turn. Calls that state how long they worked
        go first: all other time of theirs was a wait.
        """
        placed: dict[int, Intervals] = {}
        free = {index: without(intervals, self._models) for index, intervals in self._alone.items()}
        for candidates in (self._sure, free, self._calls):
            for index in sorted(candidates, key=lambda n: (-length(candidates[n]), n)):
                if missing <= 0:
                    return placed
                taken = union(interval for pieces in placed.values() for interval in pieces)
                pieces = _first(without(candidates[index], taken), missing)
                if pieces:
                    placed[index] = union([*placed.get(index, []), *pieces])
                    missing -= length(pieces)
        return placed

    def bounds(self, missing: float) -> tuple[CallWait, ...]:
        """Return how long each call that may have waited did so, at least and at most, the longest first."""
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
        return tuple(sorted(waits, key=lambda wait: (-wait.most, wait.number)))


def _alone(intervals: dict[int, Intervals]) -> dict[int, Intervals]:
    """Return the intervals in which exactly one of several calls went on."""
    changes = []
    for index, parts in intervals.items():
        for begin, end in parts:
            changes += [(begin, 1, index), (end, -1, index)]
    changes.sort()
    active: set[int] = set()
    found: dict[int, Intervals] = {}
    for (moment, change, index), following in pairwise([*changes, (0.0, 0, -1)]):
        if change > 0:
            active.add(index)
        else:
            active.discard(index)
        if len(active) == 1 and following[0] > moment:
            found.setdefault(next(iter(active)), []).append((moment, following[0]))
    return {index: union(parts) for index, parts in found.items()}


def _first(intervals: Intervals, seconds: float) -> Intervals:
    """The first moments of intervals, so many seconds of them."""
    found: Intervals = []
    for begin, end in intervals:
        if seconds <= 0:
            break
        found.append((begin, min(end, begin + seconds)))
        seconds -= end - begin
    return found


def _sleep(
    indices: Iterable[int], clock: Clock, turn: tuple[float, float], missing: float
) -> tuple[float, float] | None:
    """Return when the machine slept during a turn: most likely at the beginning of the longest call."""
    if missing <= TOLERANCE_SECONDS:
        return None
    intervals = [(max(turn[0], clock.starts[n]), min(turn[1], clock.ends[n])) for n in indices]
    begin, end = max(intervals, key=lambda interval: interval[1] - interval[0], default=(0.0, 0.0))
    return (begin, min(end, begin + missing)) if end > begin else None
