"""Waits and sleep that follow from the stated durations of turns.

Some logs state the duration of each turn without waits for people. A turn that lasted 1,215 s by the times of its
rows, and states a duration of 25 s, waited for 1,190 s: this is its missing time. Only tool calls wait for people, so
the tool calls of the turn, by any agent, waited for so long. If only one call is long enough, it was this call.
Otherwise only the sum of the waits is known. An event that represents the whole life of an agent without logged events
counts as a tool call here. A turn that states as much as it lasted did not wait: all of it was work. A turn is ignored
if it states less than its model calls alone took.

If the stated duration excludes sleep of the machine instead, the missing time was sleep; it says nothing about waits.
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
"""Log rows are written a moment after the event, so shorter waits do not count."""

_MAX_EXCESS = 1.1
"""A missing time that is longer than all tool calls of the turn by more than this factor contradicts the log."""

_ANSWER_TYPES = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)


class CallWait(NamedTuple):
    """The least and the longest time that a tool call waited, in seconds; `event` is the index of its event."""

    event: int
    least: float
    most: float


class TurnWait(NamedTuple):
    """The wait, or the sleep, in a turn.

    Attributes:
        turn: The turn.
        seconds: How long the turn waited, without the waits for people that events show; or how long it slept.
        calls: The calls that may have waited; empty for sleep.
    """

    turn: Turn
    seconds: float
    calls: tuple[CallWait, ...]


class StatedTurns(NamedTuple):
    """The waits and the sleep that follow from the stated durations of turns, in seconds from the earliest event.

    Attributes:
        with_known_work: The indices of the calls and answers whose work follows from a turn; they are no open calls.
        waits: The turns with waits or sleep.
        call_waits: The intervals in which each call waited for a person, by the index of its event.
        sleep: The intervals in which the machine slept.
    """

    with_known_work: frozenset[int]
    waits: tuple[TurnWait, ...]
    call_waits: Mapping[int, Intervals]
    sleep: Sequence[tuple[float, float]]


class Clock(NamedTuple):
    """The times of a trace's events in seconds from the earliest event, including waits for people.

    Attributes:
        starts: When each event began.
        work_starts: When the work of each event began, if it states its run time; else as in `starts`.
        ends: When each event ended.
        blocked_until: By the index of each background call, when its agent continued; the start of the call blocked it.
    """

    starts: list[float]
    work_starts: list[float]
    ends: list[float]
    blocked_until: dict[int, float]


NOTHING_STATED = StatedTurns(frozenset(), (), {}, ())
"""The value for a trace in which no turn states its duration."""


def derive_waits(turns: Iterable[Turn], graph: Graph, clock: Clock, scale: float) -> StatedTurns:
    """Return the waits and the sleep that follow from turns; `scale` is the seconds in a unit of the trace's clock."""
    zero = min(graph.times)  # the time of the trace that is 0 on the clock
    by_start = graph.indices_of((EventType.HUMAN, EventType.TOOL_CALL, *_ANSWER_TYPES))
    by_start = [index for index in by_start if index not in graph.copied]  # copied context took no time
    by_start.sort(key=clock.starts.__getitem__)
    starts = [clock.starts[index] for index in by_start]
    latest_ends = list(accumulate((clock.ends[index] for index in by_start), max))  # of each event and those before
    with_known_work: set[int] = set()
    waits: list[TurnWait] = []
    call_waits: dict[int, Intervals] = {}
    sleep: Intervals = []
    for turn in sorted(turns, key=lambda turn: (turn.t, turn.t_end)):
        begin, end = (turn.t - zero) * scale, (turn.t_end - zero) * scale
        missing = end - begin - turn.run_time * scale
        # The events that may overlap the turn; those left out end before it begins, or begin after it ends.
        first = bisect_left(latest_ends, begin - TOLERANCE_SECONDS)
        indices = by_start[first : bisect_right(starts, end)]
        if turn.excludes is Excluded.SLEEP:
            interval = _sleep(indices, clock, (begin, end), missing)
            if interval is not None:
                sleep.append(interval)
                waits.append(TurnWait(turn, interval[1] - interval[0], ()))
            continue
        if missing <= TOLERANCE_SECONDS:
            with_known_work.update(_inside(indices, clock, (begin, end)))
            continue
        turn_calls = _TurnCalls(indices, graph, clock, (begin, end))
        missing -= length(turn_calls.shown_waits)
        possible = length(union(turn_calls.possible_waits()))
        if missing > possible * _MAX_EXCESS + TOLERANCE_SECONDS:
            continue  # more is missing than calls took, so models took longer than the turn states
        with_known_work.update(_inside(indices, clock, (begin, end)))
        missing = min(missing, possible)
        if missing <= TOLERANCE_SECONDS:
            continue
        for index, intervals in turn_calls.distribute(missing).items():
            call_waits[index] = union([*call_waits.get(index, []), *intervals])
        waits.append(TurnWait(turn, missing, turn_calls.bounds(missing)))
    return StatedTurns(frozenset(with_known_work), tuple(waits), call_waits, union(sleep))


def stands_for_life(event: Event) -> bool:
    """Return True if an event represents the whole life of an agent whose own events are not logged."""
    has_details = event.model or event.tokens or event.content_ref
    return event.type is EventType.INFERENCE and event.inferred and not has_details


def _inside(indices: Iterable[int], clock: Clock, turn: tuple[float, float]) -> Iterator[int]:
    """Yield the calls and answers that began and ended within a turn."""
    first, last = turn[0] - TOLERANCE_SECONDS, turn[1] + TOLERANCE_SECONDS
    for index in indices:
        if clock.starts[index] >= first and clock.blocked_until.get(index, clock.ends[index]) <= last:
            yield index


class _TurnCalls:
    """The tool calls between the begin of a turn and its end.

    Attributes:
        shown_waits: The waits for people that events show.
    """

    def __init__(self, indices: Sequence[int], graph: Graph, clock: Clock, turn: tuple[float, float]) -> None:
        begin, end = turn
        starts, ends, events = clock.starts, clock.ends, graph.events
        # An intervention that ends after the turn is left out, because it waits for the next prompt.
        interventions = [index for index in indices if events[index].type is EventType.HUMAN and ends[index] <= end]
        self.shown_waits = overlap(union((starts[index], ends[index]) for index in interventions), [turn])
        self._possible: dict[int, Intervals] = {}  # when each call may have waited
        self._certain: dict[int, Intervals] = {}  # when the calls that state their run time did wait
        models = []
        for index in indices:
            if events[index].type is EventType.HUMAN:
                continue
            if events[index].type is not EventType.TOOL_CALL and not stands_for_life(events[index]):
                models.append((starts[index], ends[index]))
                continue
            wait_end = clock.blocked_until.get(index, ends[index])
            waited_first = clock.work_starts[index] > starts[index]
            if waited_first:
                wait_end = min(wait_end, clock.work_starts[index])
                if clock.work_starts[index] >= ends[index]:
                    continue  # a call with a run time of 0 s waited for another call, not for a person
            first, last = max(begin, starts[index]), min(end, wait_end)
            if last <= first:
                continue
            self._possible[index] = without([(first, last)], self.shown_waits)
            if waited_first:
                self._certain[index] = self._possible[index]
        self._models = union(models)
        self._alone = _only_one_call(self._possible)

    def possible_waits(self) -> Iterator[tuple[float, float]]:
        """Yield the intervals in which any of the calls may have waited."""
        for intervals in self._possible.values():
            yield from intervals

    def distribute(self, missing: float) -> dict[int, Intervals]:
        """Distribute the wait of the turn among its calls and return when each call waited.

        Long intervals come before short ones, and a call waits at the beginning of its interval, before it works. Calls
        that state their run time come first, because they are known to have waited. Then come the times at which only
        one call and no model was at work, because then the wait of this call stops the whole turn.
        """
        waits: dict[int, Intervals] = {}
        without_models = {index: without(intervals, self._models) for index, intervals in self._alone.items()}
        for candidates in (self._certain, without_models, self._possible):
            for index in sorted(candidates, key=lambda call: (-length(candidates[call]), call)):
                if missing <= 0:
                    return waits
                distributed = union(interval for intervals in waits.values() for interval in intervals)
                further = _first_seconds(without(candidates[index], distributed), missing)
                if further:
                    waits[index] = union([*waits.get(index, []), *further])
                    missing -= length(further)
        return waits

    def bounds(self, missing: float) -> tuple[CallWait, ...]:
        """Return the least and the longest time that each call waited; the call that may have waited longest is first.

        The wait of the turn lies in the certain waits first, and only the rest in other calls. A call waited at least
        for the time that no other call can explain.
        """
        certain = union(interval for intervals in self._certain.values() for interval in intervals)
        certain_alone = _only_one_call(self._certain)
        rest = max(missing - length(certain), 0.0)
        possible_rest = length(without(union(self.possible_waits()), certain))
        waits = []
        for index, intervals in self._possible.items():
            if index in self._certain:
                most = min(missing, length(intervals))
                if rest:  # the turn waited for longer than all certain waits together
                    least = most
                else:
                    by_others = length(without(certain, certain_alone.get(index, [])))
                    least = max(missing - by_others, 0.0)
            else:
                most = min(rest, length(without(intervals, certain)))
                only_this = length(without(self._alone.get(index, []), certain))
                least = max(rest - possible_rest + only_this, 0.0)  # others explain at most possible_rest - only_this
            if most > TOLERANCE_SECONDS:
                waits.append(CallWait(index, least, most))
        return tuple(sorted(waits, key=lambda wait: (-wait.most, wait.event)))


def _only_one_call(intervals_by_call: dict[int, Intervals]) -> dict[int, Intervals]:
    """Return, for each call, the part of its intervals in which no other call has an interval."""
    changes = []
    for call, intervals in intervals_by_call.items():
        for begin, end in intervals:
            changes += [(begin, 1, call), (end, -1, call)]
    changes.sort()
    active: set[int] = set()
    alone: dict[int, Intervals] = {}
    end_marker = (0.0, 0, -1)  # after the last change, no call is active
    for (moment, change, call), (next_moment, _, _) in pairwise([*changes, end_marker]):
        if change > 0:
            active.add(call)
        else:
            active.discard(call)
        if len(active) == 1 and next_moment > moment:
            (only,) = active
            alone.setdefault(only, []).append((moment, next_moment))
    return {call: union(intervals) for call, intervals in alone.items()}


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
    """Return when the machine slept in a turn; None if it did not. The longest event is assumed to begin with sleep."""
    if missing <= TOLERANCE_SECONDS:
        return None
    intervals = [(max(turn[0], clock.starts[index]), min(turn[1], clock.ends[index])) for index in indices]
    begin, end = max(intervals, key=lambda interval: interval[1] - interval[0], default=(0.0, 0.0))
    if end <= begin:
        return None
    return begin, min(end, begin + missing)
