"""The durations of events, in seconds, and the waits of agents for one another.

Working events are those in which an agent computes: `inference`, `orchestrator_decision`, `aggregate`,
`message` and `tool_call`. A spawn is none, since it may stand for its child's whole life, and neither is a
human intervention. A tool call lasts until its result, unless it says itself when it ended; a message that
has no end takes no time. Every other working event without an end has an unknown duration. Copied context is
none: it happened elsewhere, at another time. A warm-up, which fills caches before the run, is none either.

A tool call that states its run time works so long, at its end; before, it waited. One that the log shows unfinished
goes on until nobody knows when: it is taken to work until the log ends, or else until it was last seen.

Time in which the run waits for a person is taken out of all times: every moment inside a human intervention, or inside
a wait that the stated duration of a turn reveals, in which no model works, no tool in the background, and no tool of an
agent that people do not talk to. A tool call that is open meanwhile waits, too, and does not get longer by it. The call
that asked the person waits for the answer even while something else works.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType, Excluded, Unit
from orchtrace_corpus.trace.view.graph import Graph, ranks
from orchtrace_corpus.trace.view.intervals import Intervals, length, overlap, union, without
from orchtrace_corpus.trace.view.stated_turns import NOTHING_STATED, Clock, StatedTurns, settle

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

_STEP = Unit.STEP
_TOOL_RESULT, _TOOL_CALL, _HUMAN = EventType.TOOL_RESULT, EventType.TOOL_CALL, EventType.HUMAN

SECONDS = {Unit.SECOND: 1.0, Unit.MILLISECOND: 1e-3, Unit.MICROSECOND: 1e-6, Unit.NANOSECOND: 1e-9, Unit.STEP: 1.0}
"""Seconds in a unit of time; a step counts as one, and figures then are in steps."""

WORKING = frozenset(
    {EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.MESSAGE, EventType.TOOL_CALL}
)
"""The types of events in which an agent computes."""

_MODEL_WORKS = WORKING - {EventType.TOOL_CALL}
_LASTING = WORKING - {EventType.MESSAGE}


class Timing:
    """The times of a trace's events, by their number.

    Attributes:
        of: The trace's graph.
        sequence: The events in an order that edges respect.
        off_clock: The numbers of the events that are copied context or warm-ups. They take no time, start no clock, and
            no agent acts in them.
        starts: When each began, in seconds from the earliest, waits for people taken out.
        begins: When the work of each began: at its start, unless it is known to have waited first.
        ends: When each ended; where that is unknown, when it began.
        works: How long each computed; 0 for events that are not working.
        unknown: The working events whose duration is unknown, unfinished ones included.
        waits: When the run waited for people, on the clock that goes on meanwhile, in seconds from the earliest event.
        waited: How long that was.
        stated: What the stated durations of turns settle.
        last_seen: Until when each unfinished event is known to have gone on.
        unit: `s`, or `step` where the trace counts steps.
        begin: When the first event begins that is on the clock.
        end: When the last of them ends.
    """

    def __init__(self, trace: Trace, of: Graph, sequence: list[int]) -> None:
        """Time the events of a trace.

        Args:
            trace: The trace.
            of: Its graph.
            sequence: The numbers of its events in an order that edges respect.
        """
        self.of = of
        self.sequence = sequence
        self.off_clock = of.copied | {index for index, event in enumerate(of.events) if event.warm_up}
        self.unit = "step" if trace.clock.unit is _STEP else "s"
        scale = SECONDS[trace.clock.unit]
        finished, clock, seen = _clock(of, scale)
        self.stated = settle(trace.turns, of, clock, scale) if trace.turns else NOTHING_STATED
        self.waits = _waits(of, clock, self.stated, _turn_takers(trace), seen)
        self._seen_on_clock = seen
        self._place(clock, self.waits, seen)
        self.waited = length(self.waits)
        starts, begins, ends = self.starts, self.begins, self.ends
        self.works = [0.0] * len(sequence)
        for kind in WORKING:
            for index in of.of_type.get(kind, ()):
                self.works[index] = ends[index] - begins[index]
        for index in self.off_clock:
            self.works[index] = 0.0
        lasting = [n for kind in _LASTING for n in of.of_type.get(kind, ()) if finished[n] is None]
        self.unknown = sorted(index for index in {*lasting, *seen} if index not in self.off_clock)
        self._acting, self.begin, self.end = sequence, min(starts), max(ends)
        if self.off_clock:
            self._acting = [index for index in sequence if index not in self.off_clock] or sequence
            self.begin, self.end = min([starts[n] for n in self._acting]), max([ends[n] for n in self._acting])

    def _place(self, clock: Clock, waits: Intervals, seen: dict[int, float]) -> None:
        """Place the events on a clock that stands still during waits for people; what else was no work delays work."""
        self.starts, self.begins, self.ends, self.last_seen = clock.starts, clock.begins, clock.ends, seen
        if waits:
            self.starts, self.ends = _moments_without(waits, clock.starts), _moments_without(waits, clock.ends)
            is_same = clock.begins is clock.starts
            self.begins = self.starts if is_same else _moments_without(waits, clock.begins)
            self.last_seen = dict(zip(seen, _moments_without(waits, list(seen.values())), strict=True))
        asking = _asking(self.of, clock)
        if self.stated.waits or self.stated.people or asking:
            self.begins = self.begins.copy()
        for index in {**asking, **self.stated.people}:
            pieces = union([*asking.get(index, ()), *self.stated.people.get(index, ())])
            pieces = overlap(pieces, [(clock.begins[index], clock.ends[index])])  # before, it waited anyway
            self._delay(index, length(without(pieces, waits)))
        if self.stated.sleep:
            for index, (begin, end) in enumerate(zip(clock.begins, clock.ends, strict=True)):
                if end > begin:
                    self._delay(index, length(without(overlap([(begin, end)], self.stated.sleep), waits)))

    def _delay(self, index: int, seconds: float) -> None:
        self.begins[index] = min(self.begins[index] + seconds, self.ends[index])

    @property
    def elapsed(self) -> float:
        """Return the time from the first beginning to the last end."""
        return self.end - self.begin

    @cached_property
    def incoming(self) -> list[list[int]]:
        """Return for each event the numbers of those that edges lead from."""
        found: list[list[int]] = [[] for _ in self.sequence]
        for source, target in zip(self.of.sources, self.of.targets, strict=True):
            found[target].append(source)
        return found

    @cached_property
    def by_agent(self) -> dict[str, list[int]]:
        """Return the numbers of each agent's events by time, without those off the clock."""
        found: dict[str, list[int]] = {}
        for index in sorted(self._acting, key=self.starts.__getitem__):
            found.setdefault(self.of.agents[index], []).append(index)
        return found

    @cached_property
    def finished(self) -> dict[str, list[int]]:
        """Return the numbers of each agent's events by their ends, then by their starts."""
        return {agent: sorted(indices, key=self.ends.__getitem__) for agent, indices in self.by_agent.items()}

    def with_waits(self, intervals: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
        """Yield intervals of these times on the clock that goes on while the run waits for people.

        An interval is divided by the waits within it; both clocks begin at the earliest event.
        """
        stops, waited = [], [0.0]
        for begin, end in self.waits:
            stops.append(begin - waited[-1])
            waited.append(waited[-1] + end - begin)
        for begin, end in intervals:
            place = bisect_right(stops, begin)
            while place < len(stops) and stops[place] < end:
                yield begin + waited[place], stops[place] + waited[place]
                begin = stops[place]
                place += 1
            yield begin + waited[place], end + waited[place]

    def waits_unseen(self, index: int) -> float:
        """Return how long the run waited for people after an unfinished event was last seen: perhaps it went on."""
        seen = self._seen_on_clock[index]
        return sum(end - max(begin, seen) for begin, end in self.waits if end > seen)

    def if_waiting(self, calls: Iterable[int]) -> Timing:
        """Return the times of the same run with some of its calls as waits, which are as long and are no work.

        Those that are unfinished are taken to have ended when they were last seen.
        """
        import copy  # of few runs only

        found = copy.copy(self)
        found.begins, found.ends, found.works = self.begins.copy(), self.ends.copy(), self.works.copy()
        for index in calls:
            if index in self.last_seen:
                found.ends[index] = max(self.last_seen[index], self.begins[index])
                found.works[index] = found.ends[index] - found.begins[index]
            else:
                found.begins[index] = found.ends[index]
                found.works[index] = 0.0
        for name in ("finished", "ended"):  # which depend on when events end
            found.__dict__.pop(name, None)
        return found

    @cached_property
    def ended(self) -> tuple[list[int], list[int]]:
        """Return the events in the order in which, along the sequence, they ended before their agent's next event.

        With them, for each place of the sequence, how many of these there are then: those between the numbers of the
        place before and of this one are events of this one's agent, by their ends. Of two that began at one instant,
        `seq` decides, or they are concurrent. What comes later in the sequence does not count, and neither does
        anything that ended behind it.
        """
        ended: list[int] = []
        before: list[int] = []
        events, agents, starts, ends = self.of.events, self.of.agents, self.starts, self.ends
        begun = [False] * len(self.sequence)
        waiting = {agent: indices[::-1] for agent, indices in self.finished.items()}
        for index in self.sequence:
            queue = waiting.get(agents[index]) if index not in self.off_clock else None
            start = starts[index]
            while queue:
                candidate = queue[-1]
                if ends[candidate] > start or not begun[candidate]:
                    break
                if starts[candidate] == start and (events[candidate].seq or 0) >= (events[index].seq or 0):
                    break
                ended.append(queue.pop())
            begun[index] = True
            before.append(len(ended))
        return ended, before


def _asking(of: Graph, clock: Clock) -> dict[int, Intervals]:
    """Return when each call that asked a person waited for the answer, whatever else went on."""
    people = {n for n in of.of_type.get(_HUMAN, ()) if clock.ends[n] > clock.starts[n]}
    found: dict[int, Intervals] = {}
    if not people:
        return found
    for source, target in zip(of.sources, of.targets, strict=True):
        if target in people and of.events[source].type is _TOOL_CALL:
            begin = max(clock.starts[target], clock.starts[source])
            end = min(clock.ends[target], clock.blocked_until.get(source, clock.ends[source]))
            if end > begin:
                found.setdefault(source, []).append((begin, end))
    return found


def _turn_takers(trace: Trace) -> set[str]:
    """Return the agents whose turns, as the log states them, leave out waits for people: people talk to them."""
    return {turn.agent for turn in trace.turns if turn.excludes is Excluded.PEOPLE}


def _clock(of: Graph, scale: float) -> tuple[list[float | None], Clock, dict[int, float]]:
    """Return the times of events, waits left in, and the time at which unfinished ones were last seen.

    Returns:
        When each event ended in the unit of the trace, None where that is unknown; the same in seconds; and for each
        unfinished event until when it is known to have gone on.
    """
    zero = min(of.times)
    calls, events, finished = of.of_type.get(_TOOL_CALL, ()), of.events, of.ends
    answered = [n for n in calls if (finished[n] is None or events[n].background) and events[n].call_id]
    blocked_until: dict[int, float] = {}
    if answered:
        finished = finished.copy()
        results = {events[n].call_id: of.times[n] for n in of.of_type.get(_TOOL_RESULT, ())}
        for index in answered:
            result = results.get(events[index].call_id)
            if finished[index] is None:
                finished[index] = result
            if events[index].background and result is not None:
                blocked_until[index] = (result - zero) * scale
    starts = [(time - zero) * scale for time in of.times]
    ends = [
        start if end is None or end < time else (end - zero) * scale
        for start, end, time in zip(starts, finished, of.times, strict=True)
    ]
    seen = {index: ends[index] for index in calls if events[index].unfinished}
    if seen:
        ends_of_log = max(ends)
        ends = [ends_of_log if index in seen else end for index, end in enumerate(ends)]
    begins = starts
    timed = [index for index in calls if events[index].run_time is not None]
    if timed:
        begins = starts.copy()
        for index in timed:
            last_seen = seen.get(index, ends[index])  # of what goes on, the run time is that until then
            begins[index] = max(starts[index], last_seen - (events[index].run_time or 0.0) * scale)
    return finished, Clock(starts, begins, ends, blocked_until), seen


def _waits(of: Graph, clock: Clock, stated: StatedTurns, talking: set[str], seen: dict[int, float]) -> Intervals:
    """Return the waits for a person: the moments of an intervention or a stated wait in which nothing works.

    A tool call of the agent that people talk to may wait, too; one of another agent works, and so does one in the
    background, behind its result. One that is unfinished is known to work until it was last seen.
    """
    starts, begins, ends, events = clock.starts, clock.begins, clock.ends, of.events
    people = [n for n in of.of_type.get(_HUMAN, ()) if ends[n] > starts[n]]
    if not people and not stated.people:
        return []
    changes: list[tuple[float, bool, int]] = []
    asking = {events[index].target for index in of.of_type.get(_HUMAN, ())} | talking
    for index in of.of_type.get(_TOOL_CALL, ()):
        end = seen.get(index, ends[index])
        if end <= starts[index]:
            continue
        if "" in asking or of.agents[index] in asking:
            if index not in clock.blocked_until:
                continue
            working = [(max(begins[index], clock.blocked_until[index]), end)]
        else:
            working = [(begins[index], end)]
        if index in stated.people:
            working = without(working, stated.people[index])
        working = [(begin, end) for begin, end in working if begin < end]
        changes += [change for begin, end in working for change in ((begin, False, 1), (end, False, -1))]
    for kind in _MODEL_WORKS:
        for index in of.of_type.get(kind, ()):
            if index in stated.people:  # the life of an agent of which no record is
                working = without([(starts[index], ends[index])], stated.people[index])
                changes += [change for begin, end in working for change in ((begin, False, 1), (end, False, -1))]
            elif ends[index] > starts[index]:
                changes += [(starts[index], False, 1), (ends[index], False, -1)]
    asked = [(starts[n], ends[n]) for n in people]
    asked += [interval for intervals in stated.people.values() for interval in intervals]
    changes += [change for begin, end in asked for change in ((begin, True, 1), (end, True, -1))]
    changes.sort()
    waits = []
    at, waiting, working_now = 0.0, 0, 0
    for moment, is_human, change in changes:
        if waiting and not working_now and moment > at:
            waits.append((at, moment))
        at = moment
        waiting += change if is_human else 0
        working_now += 0 if is_human else change
    return waits


def _moments_without(waits: Intervals, moments: Sequence[float]) -> list[float]:
    """Return moments on a clock that stands still during the waits."""
    begins = [begin for begin, _ in waits]
    before = [0.0, *accumulate(end - begin for begin, end in waits)]
    found = []
    for moment in moments:
        place = bisect_right(begins, moment)
        inside = max(waits[place - 1][1] - moment, 0.0) if place else 0.0
        found.append(moment - before[place] + inside)
    return found


def most_at_once(begins: Iterable[float], ends: Iterable[float], *, closed: bool = False) -> int:
    """Return the largest number of intervals that hold one instant.

    Args:
        begins: When each begins.
        ends: When each ends, in any order, none before it begins.
        closed: Whether their ends belong to them, so that one that begins as another ends is beside it.
    """
    upcoming = sorted(ends)
    most = over = 0
    for index, begin in enumerate(sorted(begins), 1):
        while upcoming[over] < begin or (upcoming[over] == begin and not closed):
            over += 1
        if index - over > most:
            most = index - over
    return most


class Path(NamedTuple):
    """A longest path through the graph.

    Attributes:
        length: Its length.
        events: The numbers of its events, first to last; those that add nothing to it included.
    """

    length: float
    events: list[int]


def longest_path(times: Timing, weights: list[float], *, overlapping: bool) -> Path:
    """The heaviest path through the edges of the trace and the order in which each agent acts.

    An agent does one thing after another: what it begins after the end of something else of its own depends
    on that, whether an edge says so or not.

    Args:
        times: The times of the events.
        weights: What each event adds.
        overlapping: Whether weights are durations, so that what began before the end of what it depends on
            adds only the time behind that end.
    """
    agents, starts, incoming = times.of.agents, times.begins, times.incoming
    ended, befores = times.ended
    place = 0
    reached = [begin + weight for begin, weight in zip(starts, weights, strict=True)] if overlapping else starts
    best, before = [0.0] * len(weights), [-1] * len(weights)
    heaviest: dict[str, int] = {}  # among each agent's events that have ended so far
    for index, ended_before in zip(times.sequence, befores, strict=True):
        longest, previous = 0.0, -1
        for source in incoming[index]:
            length = best[source]
            if overlapping and reached[source] > starts[index]:
                length -= reached[source] - starts[index]
            if length > longest or (length == longest and previous < 0):
                longest, previous = length, source
        own = heaviest.get(agents[index], -1)
        while place < ended_before:
            if own < 0 or best[ended[place]] >= best[own]:
                heaviest[agents[index]] = own = ended[place]
            place += 1
        if own >= 0 and (best[own] > longest or (best[own] == longest and previous < 0)):
            longest, previous = best[own], own
        best[index] = longest + weights[index]
        before[index] = previous
    last = max(times.sequence, key=best.__getitem__)
    path = [last]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return Path(best[last], path[::-1])


class Chain(NamedTuple):
    """The chain that the end of a run waited for: `parts`, `gaps` and `after` add up to the elapsed time.

    Attributes:
        events: The numbers of its events, first to last.
        parts: How long each of them worked while the rest of the chain waited for it.
        gaps: For each of them the time before it in which nothing of the chain happened; before the first, time
            of which nothing says what it waited for.
        after: The time behind the last of them.
    """

    events: list[int]
    parts: list[float]
    gaps: list[float]
    after: float


def critical_chain(times: Timing) -> Chain:
    """The chain of events that the end of the run waited for, walked back from the event that ended last.

    The event before one on the chain is that which released it: among those that edges lead from, and those of
    its own agent that had ended before, the one that ended last. What only works beside the chain is not on it,
    however long it takes, and making that shorter gains nothing. `longest_path` is another thing: the path of
    the most work, wherever it lies. It bounds what a team could reach that never waits, and says nothing of
    what this run waited for. Linear in events and edges.

    A working event ends when its work does, every other at once. What still worked when its successor began
    counts up to that moment. Copied history released nothing: it happened elsewhere.
    """
    starts, incoming, happened = times.starts, times.incoming, times.of.events
    begins = [
        begin if work > 0 else start for start, begin, work in zip(starts, times.begins, times.works, strict=True)
    ]
    ends = [begin + work for begin, work in zip(begins, times.works, strict=True)]
    rank = ranks(times.sequence)

    def lastly(index: int) -> tuple[bool, float, float, int]:
        return index not in times.off_clock, ends[index], starts[index], rank[index]

    released_by = list(rank)  # the event of its own agent that ended last before each; itself where there is none
    last_of_own: dict[str, int] = {}
    ended, befores = times.ended
    place = 0
    for index, ended_before in zip(times.sequence, befores, strict=True):
        agent = happened[index].agent
        for candidate in ended[place:ended_before]:
            if agent not in last_of_own or lastly(candidate) > lastly(last_of_own[agent]):
                last_of_own[agent] = candidate
        place = ended_before
        released_by[index] = last_of_own.get(agent, index)
    index = max(times.sequence, key=lastly)
    limit = times.end
    events, parts, gaps = [], [], list[float]()
    while True:
        end, begin = min(ends[index], limit), min(begins[index], limit)
        events.append(index)
        parts.append(end - begin)
        gaps.append(limit - end)
        limit = begin
        own = [released_by[index]] if released_by[index] != index else []
        candidates = [one for one in (*incoming[index], *own) if one not in times.off_clock]
        if not candidates:
            break
        start = starts[index]
        index = max(candidates, key=lambda one: (min(ends[one], start), ends[one] <= start, starts[one], rank[one]))
    after, *before = gaps
    return Chain(events[::-1], parts[::-1], [limit - times.begin, *before[::-1]], after)
