"""The times of events, in seconds or steps, without waits for people; the longest path and the critical path.

Working events are those in which an agent computes: `inference`, `orchestrator_decision`, `aggregate`, `message` and
`tool_call`. A spawn is no working event, since it may last as long as its child lives. A human intervention is none
either. A tool call lasts until its result, unless it states its own end. A message without an end takes no time. Every
other working event without an end has an unknown duration. Copied context takes no time: it happened elsewhere, at
another time. A warm-up, which fills caches before the run, takes no time either.

A tool call that states its run time worked for that long at its end; before, it waited. A call that is unfinished in
the log counts as working until the log ends. If open calls only waited, it ended when it was last seen.

The time in which the run waits for people is removed from all times. The run can wait during a human intervention, and
during a wait that follows from the stated duration of a turn. It waits at the moments at which

- no model works,
- no background call works, and
- no agent that people do not talk to has a tool call at work.

The other tool calls that last at such a moment wait, too, and do not get longer. The call that asked the person waits
for the answer even while other calls work.
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
from orchtrace_corpus.trace.view.stated_turns import NOTHING_STATED, Clock, StatedTurns, derive_waits

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

_STEP = Unit.STEP
_TOOL_RESULT, _TOOL_CALL, _HUMAN = EventType.TOOL_RESULT, EventType.TOOL_CALL, EventType.HUMAN

WORKING = frozenset(
    {EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.MESSAGE, EventType.TOOL_CALL}
)
"""The types of events in which an agent computes."""

_MODEL_WORKS = WORKING - {EventType.TOOL_CALL}
_UNKNOWN_WITHOUT_END = WORKING - {EventType.MESSAGE}
"""The types of events whose duration is unknown if they have no end."""


class Timing:
    """The times of a trace's events. Lists with a value for each event are in the trace's order.

    There are two clocks, and both begin at the earliest event. The clock of the run stops while the run waits for
    people; the wall clock does not. Times are on the clock of the run if not said otherwise.

    Attributes:
        graph: The trace's graph.
        sequence: The indices of the events in an order in which every edge leads forward.
        off_clock: The indices of the events that are copied context or warm-ups. They take no time, and the run does
            not begin or end with them.
        starts: When each event began.
        work_starts: When the work of each event began: later than its start if the event is known to have waited first.
        ends: When each event ended; if that is unknown, when it began.
        works: How long each event worked; 0 for events that are not working events.
        unknown: The indices of the working events whose duration is unknown, including unfinished ones.
        waits: When the run waited for people, on the wall clock.
        waited: The length of these waits.
        stated: The waits and the sleep that follow from the stated durations of turns.
        last_seen: For each unfinished event, by its index, the last time at which it was still running.
        unit: `s`, or `step` if the trace counts steps.
        begin: When the run began, without events off the clock.
        end: When the run ended, without events off the clock.
    """

    def __init__(self, trace: Trace, graph: Graph, sequence: list[int]) -> None:
        self.graph = graph
        self.sequence = sequence
        self.off_clock = graph.copied | {index for index, event in enumerate(graph.events) if event.warm_up}
        self.unit = "step" if trace.clock.unit is _STEP else "s"
        scale = SECONDS[trace.clock.unit]
        known_ends, clock, last_seen = _wall_clock(graph, scale)
        self.stated = derive_waits(trace.turns, graph, clock, scale) if trace.turns else NOTHING_STATED
        # People talk to the agents whose stated durations leave out waits for people.
        talking_agents = {turn.agent for turn in trace.turns if turn.excludes is Excluded.PEOPLE}
        self.waits = _waits(graph, clock, self.stated, talking_agents, last_seen)
        self._last_seen_on_wall_clock = last_seen
        self._set_times(clock, self.waits, last_seen)
        self.waited = length(self.waits)
        starts, begins, ends = self.starts, self.work_starts, self.ends
        self.works = [0.0] * len(sequence)
        for index in graph.indices_of(WORKING):
            self.works[index] = ends[index] - begins[index]
        for index in self.off_clock:
            self.works[index] = 0.0
        without_end = {index for index in graph.indices_of(_UNKNOWN_WITHOUT_END) if known_ends[index] is None}
        self.unknown = sorted(without_end.union(last_seen) - self.off_clock)
        self._on_clock = sequence
        # If all events are off the clock, the run begins and ends with them, since it must have a begin and an end.
        if self.off_clock and len(self.off_clock) < len(sequence):
            self._on_clock = [index for index in sequence if index not in self.off_clock]
        self.begin = min([starts[index] for index in self._on_clock])
        self.end = max([ends[index] for index in self._on_clock])

    def _set_times(self, clock: Clock, waits: Intervals, last_seen: dict[int, float]) -> None:
        """Set the times of events: waits of the run stop the clock; waits of single calls, and sleep, delay work."""
        self.starts, self.work_starts, self.ends = clock.starts, clock.work_starts, clock.ends
        self.last_seen = last_seen
        if waits:
            self.starts = _without_waits(waits, clock.starts)
            self.ends = _without_waits(waits, clock.ends)
            if clock.work_starts is clock.starts:  # no event states its run time
                self.work_starts = self.starts
            else:
                self.work_starts = _without_waits(waits, clock.work_starts)
            self.last_seen = dict(zip(last_seen, _without_waits(waits, list(last_seen.values())), strict=True))
        asking = _waits_for_answers(self.graph, clock)
        if self.stated.waits or self.stated.call_waits or asking:
            self.work_starts = self.work_starts.copy()
        for index in asking.keys() | self.stated.call_waits.keys():
            intervals = union([*asking.get(index, ()), *self.stated.call_waits.get(index, ())])
            # The call waited before its work in any case, and the clock does not run during waits of the run.
            intervals = overlap(intervals, [(clock.work_starts[index], clock.ends[index])])
            self._delay(index, length(without(intervals, waits)))
        if self.stated.sleep:
            for index, (begin, end) in enumerate(zip(clock.work_starts, clock.ends, strict=True)):
                if end > begin:
                    sleep = overlap([(begin, end)], self.stated.sleep)
                    self._delay(index, length(without(sleep, waits)))

    def _delay(self, index: int, seconds: float) -> None:
        """Let the work of an event begin later."""
        self.work_starts[index] = min(self.work_starts[index] + seconds, self.ends[index])

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
        """Yield intervals on the clock of the run as intervals on the wall clock; waits for people divide them."""
        stops = []  # the times at which the clock of the run stops
        waited = [0.0]  # how long the run had waited before each stop; the last value is the sum of all waits
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

    def waits_after_last_seen(self, index: int) -> float:
        """Return how long the run waited for people after an unfinished event was last seen; it may have worked."""
        last_seen = self._last_seen_on_wall_clock[index]
        return sum(end - max(begin, last_seen) for begin, end in self.waits if end > last_seen)

    def if_waiting(self, calls: Iterable[int]) -> Timing:
        """Return the times of the run if the given calls only waited; unfinished calls then ended when last seen."""
        import copy  # needed only for runs with open calls

        times = copy.copy(self)
        times.work_starts, times.ends, times.works = self.work_starts.copy(), self.ends.copy(), self.works.copy()
        for index in calls:
            if index in self.last_seen:
                times.ends[index] = max(self.last_seen[index], self.work_starts[index])
                times.works[index] = times.ends[index] - times.work_starts[index]
            else:
                times.work_starts[index] = times.ends[index]
                times.works[index] = 0.0
        for name in ("indices_by_end", "ended_events"):  # the cached values that depend on the ends of events
            times.__dict__.pop(name, None)
        return times

    @cached_property
    def ended_events(self) -> tuple[list[int], list[int]]:
        """For each event, which events of the same agent had ended when it began, as two lists.

        An event depends on such events even without an edge. The first list has the indices of events in the order in
        which the sequence passes their ends. The second list is parallel to the sequence: it has the length of the
        first list after each event. So an event adds to the first list the events of the same agent that ended since
        the previous event of the agent, by their ends.

        Of two events that began at the same time, `seq` decides which is earlier; with the same `seq`, they are
        concurrent. An event that comes later in the sequence never counts as ended.
        """
        ended: list[int] = []
        counts: list[int] = []
        events, agents, starts, ends = self.graph.events, self.graph.agents, self.starts, self.ends
        has_begun = [False] * len(self.sequence)
        not_ended = {agent: indices[::-1] for agent, indices in self.indices_by_end.items()}  # the earliest end is last
        for index in self.sequence:
            stack = not_ended.get(agents[index]) if index not in self.off_clock else None
            start = starts[index]
            while stack:
                candidate = stack[-1]
                if ends[candidate] > start or not has_begun[candidate]:
                    break
                if starts[candidate] == start and (events[candidate].seq or 0) >= (events[index].seq or 0):
                    break
                ended.append(stack.pop())
            has_begun[index] = True
            counts.append(len(ended))
        return ended, counts


def _waits_for_answers(graph: Graph, clock: Clock) -> dict[int, Intervals]:
    """Return when each call that asked a person waited for the answer, even if other calls worked at that time."""
    interventions = graph.indices_by_type.get(_HUMAN, ())
    lasting = {index for index in interventions if clock.ends[index] > clock.starts[index]}
    waits: dict[int, Intervals] = {}
    if not lasting:
        return waits
    for source, target in zip(graph.sources, graph.targets, strict=True):
        if target in lasting and graph.events[source].type is _TOOL_CALL:
            begin = max(clock.starts[target], clock.starts[source])
            end = min(clock.ends[target], clock.blocked_until.get(source, clock.ends[source]))
            if end > begin:
                waits.setdefault(source, []).append((begin, end))
    return waits


def _wall_clock(graph: Graph, scale: float) -> tuple[list[float | None], Clock, dict[int, float]]:
    """Return the times of events including waits for people.

    Args:
        graph: The trace's graph.
        scale: The number of seconds in a unit of the trace's clock.

    Returns:
        The end of each event in the unit of the trace, None if unknown; the times of events in seconds; and for each
        unfinished event, by its index, when it was last seen, in seconds.
    """
    zero = min(graph.times)  # the time of the trace that is 0 on the wall clock
    calls, events, known_ends = graph.indices_by_type.get(_TOOL_CALL, ()), graph.events, graph.ends
    blocked_until: dict[int, float] = {}
    needs_result = [
        index for index in calls if events[index].call_id and (known_ends[index] is None or events[index].background)
    ]
    if needs_result:
        known_ends = known_ends.copy()
        results = graph.indices_by_type.get(_TOOL_RESULT, ())
        result_times = {events[index].call_id: graph.times[index] for index in results}
        for index in needs_result:
            result_time = result_times.get(events[index].call_id)
            if known_ends[index] is None:
                known_ends[index] = result_time
            if events[index].background and result_time is not None:
                blocked_until[index] = (result_time - zero) * scale
    starts = [(time - zero) * scale for time in graph.times]
    # An unknown end, or one before the begin, is replaced by the begin.
    ends = [
        start if end is None or end < time else (end - zero) * scale
        for start, end, time in zip(starts, known_ends, graph.times, strict=True)
    ]
    last_seen = {index: ends[index] for index in calls if events[index].unfinished}
    if last_seen:
        log_end = max(ends)
        ends = [log_end if index in last_seen else end for index, end in enumerate(ends)]
    begins = starts  # `Timing._set_times` tests if it is the same list
    with_run_time = [index for index in calls if events[index].run_time is not None]
    if with_run_time:
        begins = starts.copy()
        for index in with_run_time:
            worked_until = last_seen.get(index, ends[index])
            begins[index] = max(starts[index], worked_until - (events[index].run_time or 0.0) * scale)
    return known_ends, Clock(starts, begins, ends, blocked_until), last_seen


def _waits(
    graph: Graph, clock: Clock, stated: StatedTurns, talking_agents: set[str], last_seen: dict[int, float]
) -> Intervals:
    """Return the waits for people: the moments of an intervention or a stated wait at which nothing works.

    A tool call of an agent that people talk to may wait as well. A tool call of another agent works, and so does a
    background call after its result. An unfinished call works at least until it was last seen.

    People talk to the `talking_agents`, to the targets of interventions, and to all agents if an intervention has no
    target.
    """
    starts, begins, ends, events = clock.starts, clock.work_starts, clock.ends, graph.events
    interventions = graph.indices_by_type.get(_HUMAN, ())
    asking = [(starts[index], ends[index]) for index in interventions if ends[index] > starts[index]]
    asking += [interval for intervals in stated.call_waits.values() for interval in intervals]
    if not asking:
        return []
    working: list[tuple[float, float]] = []
    talking_agents = talking_agents.union(events[index].target for index in interventions)
    for index in graph.indices_by_type.get(_TOOL_CALL, ()):
        begin, end = begins[index], last_seen.get(index, ends[index])
        if end <= starts[index]:
            continue
        if "" in talking_agents or graph.agents[index] in talking_agents:
            if index not in clock.blocked_until:
                continue
            begin = max(begin, clock.blocked_until[index])
        working += without([(begin, end)], stated.call_waits.get(index, ()))
    for index in graph.indices_of(_MODEL_WORKS):
        working += without([(starts[index], ends[index])], stated.call_waits.get(index, ()))
    # Each change is a moment, whether a person is asked or something works, and by how much their number changes.
    changes = [(begin, False, 1) for begin, _ in working] + [(end, False, -1) for _, end in working]
    changes += [(begin, True, 1) for begin, _ in asking] + [(end, True, -1) for _, end in asking]
    waits = []
    previous = 0.0
    asking_count = working_count = 0
    for moment, is_asking, change in sorted(changes):
        if asking_count and not working_count and moment > previous:
            waits.append((previous, moment))
        previous = moment
        if is_asking:
            asking_count += change
        else:
            working_count += change
    return waits


def _without_waits(waits: Intervals, moments: Sequence[float]) -> list[float]:
    """Return moments of the wall clock as moments of a clock that stops during the waits."""
    begins = [begin for begin, _ in waits]
    waited_before = [0.0, *accumulate(end - begin for begin, end in waits)]
    on_run_clock = []
    for moment in moments:
        place = bisect_right(begins, moment)
        rest_of_wait = max(waits[place - 1][1] - moment, 0.0) if place else 0.0
        on_run_clock.append(moment - waited_before[place] + rest_of_wait)
    return on_run_clock


def most_at_once(begins: Iterable[float], ends: Iterable[float], *, closed: bool = False) -> int:
    """Return the largest number of intervals that have a moment in common.

    With `closed`, the end of an interval belongs to it. Begins and ends may be in any order.
    """
    sorted_ends = sorted(ends)
    most = end_count = 0
    for begin_count, begin in enumerate(sorted(begins), 1):
        while sorted_ends[end_count] < begin or (sorted_ends[end_count] == begin and not closed):
            end_count += 1
        if begin_count - end_count > most:
            most = begin_count - end_count
    return most


class Path(NamedTuple):
    """A longest path through the graph.

    Attributes:
        length: The sum of the weights on it.
        events: The indices of its events, first to last, including events that add nothing to its length.
    """

    length: float
    events: list[int]


def longest_path(times: Timing, weights: list[float], *, overlapping: bool) -> Path:
    """Return the heaviest path of events that depend on one another.

    An event depends on the events from which edges lead to it, and on the events of its agent that ended before it:
    an agent does one thing after another.

    Args:
        times: The times of the events.
        weights: The weight of each event.
        overlapping: True if weights are durations: an event that began before the end of the event that it depends on
            then adds only the time after that end.
    """
    agents, begins, incoming = times.graph.agents, times.work_starts, times.incoming
    ended, ended_counts = times.ended_events
    place = 0  # the events before this place in `ended` have been considered
    ends = [begin + weight for begin, weight in zip(begins, weights, strict=True)] if overlapping else begins
    lengths = [0.0] * len(weights)  # of the heaviest path to each event
    predecessors = [-1] * len(weights)  # the event before each event on that path; -1 if there is none
    heaviest: dict[str, int] = {}  # for each agent, which of its ended events has the heaviest path
    for index, ended_count in zip(times.sequence, ended_counts, strict=True):
        longest, predecessor = 0.0, -1
        for source in incoming[index]:
            length = lengths[source]
            if overlapping and ends[source] > begins[index]:
                length -= ends[source] - begins[index]
            if length > longest or (length == longest and predecessor < 0):
                longest, predecessor = length, source
        own = heaviest.get(agents[index], -1)
        while place < ended_count:
            if own < 0 or lengths[ended[place]] >= lengths[own]:
                own = ended[place]
                heaviest[agents[index]] = own
            place += 1
        if own >= 0 and (lengths[own] > longest or (lengths[own] == longest and predecessor < 0)):
            longest, predecessor = lengths[own], own
        lengths[index] = longest + weights[index]
        predecessors[index] = predecessor
    last = max(times.sequence, key=lengths.__getitem__)
    path = [last]
    while predecessors[path[-1]] >= 0:
        path.append(predecessors[path[-1]])
    return Path(lengths[last], path[::-1])


class Chain(NamedTuple):
    """The critical path: `worked`, `gaps` and `after` add up to the elapsed time.

    Attributes:
        events: The indices of the events on the path, first to last.
        worked: How long each of these events worked while the rest of the path waited for it.
        gaps: The time before each of these events in which no event of the path worked.
        after: The time after the last event.
    """

    events: list[int]
    worked: list[float]
    gaps: list[float]
    after: float


def critical_chain(times: Timing) -> Chain:
    """Return the critical path: the chain of events that the end of the run waited for.

    The path is followed back from the event that ended last. An event is preceded by the event that released it. Those
    that could release it are the events with an edge to it, and the events of its agent that had ended before; the one
    that ended last did. Events that only worked in parallel to the path are not on it, however long they took; the run
    would not have ended sooner without them. `longest_path` is another path: the one with the most work anywhere in
    the run, whether or not the run waited for it. Takes linear time in events and edges.

    A working event ends when its work does, and every other event at once. An event that still worked when its
    successor began counts up to that moment. Events off the clock release no event.
    """
    starts, incoming, events = times.starts, times.incoming, times.graph.events
    begins = [
        begin if work > 0 else start for start, begin, work in zip(starts, times.work_starts, times.works, strict=True)
    ]
    ends = [begin + work for begin, work in zip(begins, times.works, strict=True)]
    position = positions(times.sequence)

    def lateness(index: int) -> tuple[bool, float, float, int]:
        return index not in times.off_clock, ends[index], starts[index], position[index]

    latest_by_agent: dict[str, int] = {}  # for each agent, the event that ended last so far
    own_predecessors: dict[int, int] = {}  # for each event, the event of the same agent that ended last before it
    ended, ended_counts = times.ended_events
    place = 0
    for index, ended_count in zip(times.sequence, ended_counts, strict=True):
        agent = events[index].agent
        for candidate in ended[place:ended_count]:
            if agent not in latest_by_agent or lateness(candidate) > lateness(latest_by_agent[agent]):
                latest_by_agent[agent] = candidate
        place = ended_count
        if agent in latest_by_agent:
            own_predecessors[index] = latest_by_agent[agent]
    index = max(times.sequence, key=lateness)
    limit = times.end  # when the successor began; at first, when the run ended
    path, worked, gaps_after = [], [], list[float]()
    while True:
        end, begin = min(ends[index], limit), min(begins[index], limit)
        path.append(index)
        worked.append(end - begin)
        gaps_after.append(limit - end)
        limit = begin
        candidates = [source for source in incoming[index] if source not in times.off_clock]
        if index in own_predecessors and own_predecessors[index] not in times.off_clock:
            candidates.append(own_predecessors[index])
        if not candidates:
            break
        start = starts[index]
        # The one that ended last released the event; all that still worked when the event began ended together.
        index = max(candidates, key=lambda n: (min(ends[n], start), ends[n] <= start, starts[n], position[n]))
    after = gaps_after.pop(0)
    gaps = [limit - times.begin, *reversed(gaps_after)]
    return Chain(path[::-1], worked[::-1], gaps, after)
