"""The times of events, in seconds or steps, without waits for people; the longest path and the critical path.

Working events are those in which an agent computes: `inference`, `orchestrator_decision`, `aggregate`,
`message` and `tool_call`. A spawn is not one, since it may stand for its child's whole life; a human intervention is
not one either. A tool call lasts until its result, unless it states its end itself; a message without an end takes no
time. Every other working event without an end has an unknown duration. Copied context does not work: it happened
elsewhere, at another time. A warm-up, which fills caches before the run, does not work either.

A tool call that states its run time worked for that long at its end; before, it waited. A call that the log shows
unfinished counts as working until the log ends or, if open calls only waited, until it was last seen.

The time in which the run waits for a person is removed from all times. The run waits in every moment of a human
intervention, or of a wait that follows from the stated duration of a turn, in which no model works, no background call
works, and no tool call works of an agent that people do not talk to. A tool call that is open at that time waits as
well and does not get longer. The call that asked the person waits for the answer even while other calls work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import SECONDS, EventType, Excluded, Unit
from orchtrace_corpus.trace.view.graph import Graph, positions
from orchtrace_corpus.trace.view.intervals import Intervals, length, overlap, union, without
from orchtrace_corpus.trace.view.stated_turns import NOTHING_STATED, Clock, StatedTurns, settle

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

_STEP = Unit.STEP
_TOOL_RESULT, _TOOL_CALL, _HUMAN = EventType.TOOL_RESULT, EventType.TOOL_CALL, EventType.HUMAN

WORKING = frozenset(
    {EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.MESSAGE, EventType.TOOL_CALL}
)
"""The types of events in which an agent computes."""

_MODEL_WORKS = WORKING - {EventType.TOOL_CALL}
_LASTING = WORKING - {EventType.MESSAGE}


class Timing:
    """The times of a trace's events. Lists with a value for each event are in trace order.

    There are two clocks, both from the earliest event. The clock of the run stops while it waits for people; all times
    are on it if not said otherwise. The wall clock goes on.

    Attributes:
        graph: The trace's graph.
        sequence: The indices of the events in an order in which every edge leads forward.
        off_clock: The indices of the events that are copied context or warm-ups. They take no time, and the run does
            not begin or end with them.
        starts: When each event began.
        begins: When the work of each event began: at its start, unless it is known to have waited first.
        ends: When each event ended; if that is unknown, when it began.
        works: How long each event worked; 0 for events that are not working events.
        unknown: The indices of the working events whose duration is unknown, including unfinished ones.
        waits: When the run waited for people, on the wall clock.
        waited: The length of these waits.
        stated: The waits and the sleep that follow from the stated durations of turns.
        last_seen: For each unfinished event, by index, the last time at which it was still running.
        unit: `s`, or `step` if the trace counts steps.
        begin: When the run began, without events off the clock.
        end: When it ended.
    """

    def __init__(self, trace: Trace, graph: Graph, sequence: list[int]) -> None:
        self.graph = graph
        self.sequence = sequence
        self.off_clock = graph.copied | {index for index, event in enumerate(graph.events) if event.warm_up}
        self.unit = "step" if trace.clock.unit is _STEP else "s"
        scale = SECONDS[trace.clock.unit]
        finished, clock, last_seen = _wall_clock(graph, scale)
        self.stated = settle(trace.turns, graph, clock, scale) if trace.turns else NOTHING_STATED
        # People talk to the agents whose stated durations leave out waits for people.
        talking = {turn.agent for turn in trace.turns if turn.excludes is Excluded.PEOPLE}
        self.waits = _waits(graph, clock, self.stated, talking, last_seen)
        self._last_seen_on_wall_clock = last_seen
        self._set_times(clock, self.waits, last_seen)
        self.waited = length(self.waits)
        starts, begins, ends = self.starts, self.begins, self.ends
        self.works = [0.0] * len(sequence)
        for kind in WORKING:
            for index in graph.indices_by_type.get(kind, ()):
                self.works[index] = ends[index] - begins[index]
        for index in self.off_clock:
            self.works[index] = 0.0
        lasting = [n for kind in _LASTING for n in graph.indices_by_type.get(kind, ()) if finished[n] is None]
        self.unknown = sorted(index for index in {*lasting, *last_seen} if index not in self.off_clock)
        self._on_clock, self.begin, self.end = sequence, min(starts), max(ends)
        if self.off_clock:
            self._on_clock = [index for index in sequence if index not in self.off_clock] or sequence
            self.begin, self.end = min([starts[n] for n in self._on_clock]), max([ends[n] for n in self._on_clock])

    def _set_times(self, clock: Clock, waits: Intervals, last_seen: dict[int, float]) -> None:
        """Set the times of events: waits for people stop the clock; other waits and sleep delay work."""
        self.starts, self.begins, self.ends, self.last_seen = clock.starts, clock.begins, clock.ends, last_seen
        if waits:
            self.starts, self.ends = _without_waits(waits, clock.starts), _without_waits(waits, clock.ends)
            is_same = clock.begins is clock.starts
            self.begins = self.starts if is_same else _without_waits(waits, clock.begins)
            self.last_seen = dict(zip(last_seen, _without_waits(waits, list(last_seen.values())), strict=True))
        asking = _waits_for_answers(self.graph, clock)
        if self.stated.waits or self.stated.people or asking:
            self.begins = self.begins.copy()
        for index in {**asking, **self.stated.people}:
            pieces = union([*asking.get(index, ()), *self.stated.people.get(index, ())])
            pieces = overlap(pieces, [(clock.begins[index], clock.ends[index])])  # before its work, it waited anyway
            self._delay(index, length(without(pieces, waits)))
        if self.stated.sleep:
            for index, (begin, end) in enumerate(zip(clock.begins, clock.ends, strict=True)):
                if end > begin:
                    self._delay(index, length(without(overlap([(begin, end)], self.stated.sleep), waits)))

    def _delay(self, index: int, seconds: float) -> None:
        self.begins[index] = min(self.begins[index] + seconds, self.ends[index])

    @property
    def elapsed(self) -> float:
        """The time from the begin of the run to its end."""
        return self.end - self.begin

    @cached_property
    def incoming(self) -> list[list[int]]:
        """For each event, the indices of the events from which edges lead to it."""
        incoming: list[list[int]] = [[] for _ in self.sequence]
        for source, target in zip(self.graph.sources, self.graph.targets, strict=True):
            incoming[target].append(source)
        return incoming

    @cached_property
    def indices_by_agent(self) -> dict[str, list[int]]:
        """The indices of each agent's events by start, without events off the clock."""
        by_agent: dict[str, list[int]] = {}
        for index in sorted(self._on_clock, key=self.starts.__getitem__):
            by_agent.setdefault(self.graph.agents[index], []).append(index)
        return by_agent

    @cached_property
    def indices_by_end(self) -> dict[str, list[int]]:
        """The indices of each agent's events by end, then by start, without events off the clock."""
        return {agent: sorted(indices, key=self.ends.__getitem__) for agent, indices in self.indices_by_agent.items()}

    def with_waits(self, intervals: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
        """Yield intervals of the run's clock on the wall clock. Waits for people divide an interval into several."""
        stops, waited = [], [0.0]  # when the run's clock stops; the waits before that and after the last stop
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
        """Return how long the run waited for people after an unfinished event was last seen: perhaps it worked."""
        last_seen = self._last_seen_on_wall_clock[index]
        return sum(end - max(begin, last_seen) for begin, end in self.waits if end > last_seen)

    def if_waiting(self, calls: Iterable[int]) -> Timing:
        """Return the times of the run if some of its calls only waited, for as long as they took.

        Unfinished calls are assumed to have ended when they were last seen.
        """
        import copy  # needed only for runs with open calls

        times = copy.copy(self)
        times.begins, times.ends, times.works = self.begins.copy(), self.ends.copy(), self.works.copy()
        for index in calls:
            if index in self.last_seen:
                times.ends[index] = max(self.last_seen[index], self.begins[index])
                times.works[index] = times.ends[index] - times.begins[index]
            else:
                times.begins[index] = times.ends[index]
                times.works[index] = 0.0
        for name in ("indices_by_end", "ended_events"):  # the cached values that depend on the ends of events
            times.__dict__.pop(name, None)
        return times

    @cached_property
    def ended_events(self) -> tuple[list[int], list[int]]:
        """The events that ended before a later event of their agent, and how many these are at each event.

        The first list has the indices of such events, in the order in which the sequence passes their end. The second
        has, for each place of the sequence, the length of that list up to then. Those added at a place are events of
        the same agent, by their ends. Of two events that began at the same time, `seq` decides which is earlier; if
        it is the same, they are concurrent. An event that comes later in the sequence never counts as ended.
        """
        ended: list[int] = []
        counts: list[int] = []
        events, agents, starts, ends = self.graph.events, self.graph.agents, self.starts, self.ends
        has_begun = [False] * len(self.sequence)
        waiting = {agent: indices[::-1] for agent, indices in self.indices_by_end.items()}
        for index in self.sequence:
            queue = waiting.get(agents[index]) if index not in self.off_clock else None
            start = starts[index]
            while queue:
                candidate = queue[-1]
                if ends[candidate] > start or not has_begun[candidate]:
                    break
                if starts[candidate] == start and (events[candidate].seq or 0) >= (events[index].seq or 0):
                    break
                ended.append(queue.pop())
            has_begun[index] = True
            counts.append(len(ended))
        return ended, counts


def _waits_for_answers(graph: Graph, clock: Clock) -> dict[int, Intervals]:
    """Return when each call that asked a person waited for the answer, even if other calls worked at that time."""
    people = {n for n in graph.indices_by_type.get(_HUMAN, ()) if clock.ends[n] > clock.starts[n]}
    waits: dict[int, Intervals] = {}
    if not people:
        return waits
    for source, target in zip(graph.sources, graph.targets, strict=True):
        if target in people and graph.events[source].type is _TOOL_CALL:
            begin = max(clock.starts[target], clock.starts[source])
            end = min(clock.ends[target], clock.blocked_until.get(source, clock.ends[source]))
            if end > begin:
                waits.setdefault(source, []).append((begin, end))
    return waits


def _wall_clock(graph: Graph, scale: float) -> tuple[list[float | None], Clock, dict[int, float]]:
    """Return the times of events including waits for people; `scale` is the seconds in a unit of the trace's clock.

    Returns:
        The end of each event in the unit of the trace, None if unknown; the times of events in seconds; and for each
        unfinished event, by index, when it was last seen, in seconds.
    """
    zero = min(graph.times)
    calls, events, finished = graph.indices_by_type.get(_TOOL_CALL, ()), graph.events, graph.ends
    with_result = [n for n in calls if (finished[n] is None or events[n].background) and events[n].call_id]
    blocked_until: dict[int, float] = {}
    if with_result:
        finished = finished.copy()
        results = {events[n].call_id: graph.times[n] for n in graph.indices_by_type.get(_TOOL_RESULT, ())}
        for index in with_result:
            result = results.get(events[index].call_id)
            if finished[index] is None:
                finished[index] = result
            if events[index].background and result is not None:
                blocked_until[index] = (result - zero) * scale
    starts = [(time - zero) * scale for time in graph.times]
    ends = [
        start if end is None or end < time else (end - zero) * scale
        for start, end, time in zip(starts, finished, graph.times, strict=True)
    ]
    last_seen = {index: ends[index] for index in calls if events[index].unfinished}
    if last_seen:
        log_end = max(ends)
        ends = [log_end if index in last_seen else end for index, end in enumerate(ends)]
    begins = starts
    timed = [index for index in calls if events[index].run_time is not None]
    if timed:
        begins = starts.copy()
        for index in timed:
            worked_until = last_seen.get(index, ends[index])
            begins[index] = max(starts[index], worked_until - (events[index].run_time or 0.0) * scale)
    return finished, Clock(starts, begins, ends, blocked_until), last_seen


def _waits(
    graph: Graph, clock: Clock, stated: StatedTurns, talking: set[str], last_seen: dict[int, float]
) -> Intervals:
    """Return the waits for people: the moments of an intervention or a stated wait in which nothing works.

    A tool call of an agent that people talk to may wait as well. A tool call of another agent works, and so does a
    background call after its result. An unfinished call works at least until it was last seen.
    """
    starts, begins, ends, events = clock.starts, clock.begins, clock.ends, graph.events
    people = [n for n in graph.indices_by_type.get(_HUMAN, ()) if ends[n] > starts[n]]
    if not people and not stated.people:
        return []
    working: list[tuple[float, float]] = []
    talking = {events[index].target for index in graph.indices_by_type.get(_HUMAN, ())} | talking
    for index in graph.indices_by_type.get(_TOOL_CALL, ()):
        begin, end = begins[index], last_seen.get(index, ends[index])
        if end <= starts[index]:
            continue
        if "" in talking or graph.agents[index] in talking:
            if index not in clock.blocked_until:
                continue
            begin = max(begin, clock.blocked_until[index])
        working += without([(begin, end)], stated.people.get(index, ()))
    for kind in _MODEL_WORKS:
        for index in graph.indices_by_type.get(kind, ()):
            working += without([(starts[index], ends[index])], stated.people.get(index, ()))
    asking = [(starts[n], ends[n]) for n in people]
    asking += [interval for intervals in stated.people.values() for interval in intervals]
    changes = [(begin, False, 1) for begin, _ in working] + [(end, False, -1) for _, end in working]
    changes += [(begin, True, 1) for begin, _ in asking] + [(end, True, -1) for _, end in asking]
    waits = []
    previous, people_asked, at_work = 0.0, 0, 0
    for moment, is_human, change in sorted(changes):
        if people_asked and not at_work and moment > previous:
            waits.append((previous, moment))
        previous = moment
        if is_human:
            people_asked += change
        else:
            at_work += change
    return waits


def _without_waits(waits: Intervals, moments: Sequence[float]) -> list[float]:
    """Return moments of the wall clock on the clock that stops during the waits."""
    begins = [begin for begin, _ in waits]
    waited_before = [0.0, *accumulate(end - begin for begin, end in waits)]
    on_run_clock = []
    for moment in moments:
        place = bisect_right(begins, moment)
        rest_of_wait = max(waits[place - 1][1] - moment, 0.0) if place else 0.0
        on_run_clock.append(moment - waited_before[place] + rest_of_wait)
    return on_run_clock


def most_at_once(begins: Iterable[float], ends: Iterable[float], *, closed: bool = False) -> int:
    """Return the largest number of intervals that share a moment; with `closed`, their ends belong to them.

    Begins and ends may be in any order.
    """
    upcoming = sorted(ends)
    most = ended = 0
    for begun, begin in enumerate(sorted(begins), 1):
        while upcoming[ended] < begin or (upcoming[ended] == begin and not closed):
            ended += 1
        if begun - ended > most:
            most = begun - ended
    return most


class Path(NamedTuple):
    """A longest path through the graph.

    Attributes:
        length: Its length.
        events: The indices of its events, first to last, including those that add nothing to its length.
    """

    length: float
    events: list[int]


def longest_path(times: Timing, weights: list[float], *, overlapping: bool) -> Path:
    """Return the heaviest path along the edges of the trace and along the order in which each agent acts.

    An agent does one thing after another: an event of an agent depends on the events of that agent that ended before
    it, with or without an edge.

    Args:
        times: The times of the events.
        weights: The weight of each event.
        overlapping: Whether weights are durations, so that an event that began before the end of the event that it
            depends on adds only the time after that end.
    """
    agents, starts, incoming = times.graph.agents, times.begins, times.incoming
    ended, ended_counts = times.ended_events
    place = 0
    stops = [begin + weight for begin, weight in zip(starts, weights, strict=True)] if overlapping else starts
    best, predecessor = [0.0] * len(weights), [-1] * len(weights)  # the heaviest path to each event; -1: none before
    heaviest: dict[str, int] = {}  # among each agent's events that have ended so far
    for index, ended_count in zip(times.sequence, ended_counts, strict=True):
        longest, previous = 0.0, -1
        for source in incoming[index]:
            length = best[source]
            if overlapping and stops[source] > starts[index]:
                length -= stops[source] - starts[index]
            if length > longest or (length == longest and previous < 0):
                longest, previous = length, source
        own = heaviest.get(agents[index], -1)
        while place < ended_count:
            if own < 0 or best[ended[place]] >= best[own]:
                heaviest[agents[index]] = own = ended[place]
            place += 1
        if own >= 0 and (best[own] > longest or (best[own] == longest and previous < 0)):
            longest, previous = best[own], own
        best[index] = longest + weights[index]
        predecessor[index] = previous
    last = max(times.sequence, key=best.__getitem__)
    path = [last]
    while predecessor[path[-1]] >= 0:
        path.append(predecessor[path[-1]])
    return Path(best[last], path[::-1])


class Chain(NamedTuple):
    """The critical path: `parts`, `gaps` and `after` add up to the elapsed time.

    Attributes:
        events: The indices of its events, first to last.
        parts: How long each of them worked while the rest of the path waited for it.
        gaps: The time before each of them in which no event of the path worked.
        after: The time after the last of them.
    """

    events: list[int]
    parts: list[float]
    gaps: list[float]
    after: float


def critical_chain(times: Timing) -> Chain:
    """Return the critical path: the chain of events that the end of the run waited for.

    It is followed back from the event that ended last. The event before another one is the event that released it:
    of the events with an edge to it, and of its agent's events that had ended before, the one that ended last. Events
    that only work in parallel to the path are not on it, however long they take; to shorten them gains nothing.
    `longest_path` differs: it is the path with the most work anywhere in the run, a lower bound for a team that never
    waits, and does not show what this run waited for. Linear in events and edges.

    A working event ends when its work does, and every other event at once. An event that still worked when its
    successor began counts up to that moment. Events off the clock release nothing.
    """
    starts, incoming, events = times.starts, times.incoming, times.graph.events
    begins = [
        begin if work > 0 else start for start, begin, work in zip(starts, times.begins, times.works, strict=True)
    ]
    ends = [begin + work for begin, work in zip(begins, times.works, strict=True)]
    position = positions(times.sequence)

    def lateness(index: int) -> tuple[bool, float, float, int]:
        return index not in times.off_clock, ends[index], starts[index], position[index]

    last_of_agent: dict[str, int] = {}  # among each agent's events that have ended so far
    own_predecessor: dict[int, int] = {}  # the event of the same agent that ended last before each
    ended, ended_counts = times.ended_events
    place = 0
    for index, ended_count in zip(times.sequence, ended_counts, strict=True):
        agent = events[index].agent
        for candidate in ended[place:ended_count]:
            if agent not in last_of_agent or lateness(candidate) > lateness(last_of_agent[agent]):
                last_of_agent[agent] = candidate
        place = ended_count
        if agent in last_of_agent:
            own_predecessor[index] = last_of_agent[agent]
    index = max(times.sequence, key=lateness)
    limit = times.end
    path, parts, gaps = [], [], list[float]()
    while True:
        end, begin = min(ends[index], limit), min(begins[index], limit)
        path.append(index)
        parts.append(end - begin)
        gaps.append(limit - end)
        limit = begin
        candidates = [n for n in incoming[index] if n not in times.off_clock]
        if index in own_predecessor and own_predecessor[index] not in times.off_clock:
            candidates.append(own_predecessor[index])
        if not candidates:
            break
        start = starts[index]
        index = max(candidates, key=lambda n: (min(ends[n], start), ends[n] <= start, starts[n], position[n]))
    after, *before = gaps
    return Chain(path[::-1], parts[::-1], [limit - times.begin, *before[::-1]], after)
