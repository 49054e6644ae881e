"""How long events take, in seconds, and who waits for whom.

Working events are those in which an agent computes: `inference`, `orchestrator_decision`, `aggregate`,
`message` and `tool_call`. A spawn is none, since it may stand for its child's whole life, and neither is a
human intervention. A tool call lasts until its result, unless it says itself when it ended; a message that
has no end takes no time. Every other working event without an end has an unknown duration.

Time in which the run waits for a person is taken out of all times: every moment inside a human intervention
in which no model works. A tool call that is open meanwhile waits, too, and does not get longer by it.
"""

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from orchtrace_corpus.trace.graph import Graph, graph, order
from orchtrace_corpus.trace.model import EventType, Trace, Unit

SECONDS = {Unit.SECOND: 1.0, Unit.MILLISECOND: 1e-3, Unit.MICROSECOND: 1e-6, Unit.NANOSECOND: 1e-9, Unit.STEP: 1.0}
"""Seconds in a unit of time; a step counts as one, and figures then are in steps."""

WORKING = frozenset(
    {EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.MESSAGE, EventType.TOOL_CALL}
)
"""The types of events in which an agent computes."""

_MODEL_WORKS = WORKING - {EventType.TOOL_CALL}


class Timing(NamedTuple):
    """The times of a trace's events, by their number.

    Attributes:
        of: The trace's graph.
        sequence: The events in an order that edges respect.
        starts: When each began, in seconds from the earliest, waits for people taken out.
        ends: When each ended; where that is unknown, when it began.
        works: How long each computed; 0 for events that are not working.
        unknown: The working events whose duration is unknown.
        waited: How long the run waited for people.
        unit: `s`, or `step` where the trace counts steps.
    """

    of: Graph
    sequence: list[int]
    starts: list[float]
    ends: list[float]
    works: list[float]
    unknown: list[int]
    waited: float
    unit: str

    @property
    def wall(self) -> float:
        """From the first beginning to the last end."""
        return max(self.ends) - min(self.starts)


def timing(trace: Trace) -> Timing:
    """The times of a trace.

    Raises:
        CycleError: The edges go round in a circle.
    """
    of = graph(trace)
    scale = SECONDS[trace.clock.unit]
    zero = min(event.t for event in trace.events)
    results = {
        event.call_id: event.t for event in trace.events if event.type is EventType.TOOL_RESULT and event.call_id
    }
    starts, ends, unknown = [], [], []
    for number, event in enumerate(trace.events):
        end = event.t_end
        kind = event.type
        if end is None and kind is EventType.TOOL_CALL:
            end = results.get(event.call_id)
        starts.append((event.t - zero) * scale)
        ends.append(((event.t if end is None else max(end, event.t)) - zero) * scale)
        if end is None and kind in WORKING and kind is not EventType.MESSAGE:
            unknown.append(number)
    waits = _waits(trace, starts, ends)
    if waits:
        starts, ends = (_without(waits, moments) for moments in (starts, ends))
    works = [
        ends[number] - starts[number] if event.type in WORKING else 0.0 for number, event in enumerate(trace.events)
    ]
    unit = "step" if trace.clock.unit is Unit.STEP else "s"
    waited = sum(end - begin for begin, end in waits)
    return Timing(of, order(of), starts, ends, works, unknown, waited, unit)


def _waits(trace: Trace, starts: list[float], ends: list[float]) -> list[tuple[float, float]]:
    """When the run waited for a person: within a human intervention, and no model at work."""
    changes: list[tuple[float, bool, int]] = []
    if all(event.type is not EventType.HUMAN for event in trace.events):
        return []
    for number, event in enumerate(trace.events):
        human = event.type is EventType.HUMAN
        if ends[number] > starts[number] and (human or event.type in _MODEL_WORKS):
            changes += [(starts[number], human, 1), (ends[number], human, -1)]
    changes.sort()
    waits = []
    at, people, models = 0.0, 0, 0
    for moment, human, change in changes:
        if people and not models and moment > at:
            waits.append((at, moment))
        at = moment
        people += change if human else 0
        models += 0 if human else change
    return waits


def _without(waits: list[tuple[float, float]], moments: list[float]) -> list[float]:
    """The moments on a clock that stands still during the waits."""
    begins = [begin for begin, _ in waits]
    before = [0.0, *accumulate(end - begin for begin, end in waits)]
    found = []
    for moment in moments:
        place = bisect_right(begins, moment)
        inside = max(waits[place - 1][1] - moment, 0.0) if place else 0.0
        found.append(moment - before[place] + inside)
    return found


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
    count = len(weights)
    best = [0.0] * count
    before = [-1] * count
    incoming: list[list[int]] = [[] for _ in range(count)]
    for source, target in zip(times.of.sources, times.of.targets, strict=True):
        incoming[target].append(source)
    queues = _Finished.of_agents(times)
    starts, ends = times.starts, times.ends
    for number in times.sequence:
        longest, previous = 0.0, -1
        own = queues[times.of.events[number].agent].heaviest_before(number, best)
        for source in (*incoming[number], *own):
            length = best[source]
            if overlapping and ends[source] > starts[number]:
                length -= ends[source] - starts[number]
            if length > longest or (length == longest and previous < 0):
                longest, previous = length, source
        best[number] = longest + weights[number]
        before[number] = previous
    last = max(times.sequence, key=best.__getitem__)
    path = [last]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return Path(best[last], path[::-1])


class _Finished:
    """The events of one agent by their ends, taken one by one as time goes on."""

    def __init__(self, times: Timing, numbers: list[int]) -> None:
        self._times = times
        self._queue = sorted(numbers, key=lambda number: (times.ends[number], times.starts[number], self._seq(number)))
        self._place = 0
        self._heaviest: tuple[int, ...] = ()
        self._passed: set[int] = set()

    @classmethod
    def of_agents(cls, times: Timing) -> "dict[str, _Finished]":
        by_agent: dict[str, list[int]] = {}
        for number in times.sequence:
            by_agent.setdefault(times.of.events[number].agent, []).append(number)
        return {agent: cls(times, numbers) for agent, numbers in by_agent.items()}

    def heaviest_before(self, number: int, best: list[float]) -> tuple[int, ...]:
        """Of the events that ended before one began, the end of the heaviest path; nothing where none did."""
        while self._place < len(self._queue):
            candidate = self._queue[self._place]
            if candidate not in self._passed or not self._is_before(candidate, number):
                break
            if not self._heaviest or best[candidate] >= best[self._heaviest[0]]:
                self._heaviest = (candidate,)
            self._place += 1
        self._passed.add(number)
        return self._heaviest

    def _is_before(self, candidate: int, number: int) -> bool:
        """Whether it ended before the other began; of two at one instant, `seq` decides, or they are concurrent."""
        times = self._times
        if times.ends[candidate] > times.starts[number]:
            return False
        return times.starts[candidate] < times.starts[number] or self._seq(candidate) < self._seq(number)

    def _seq(self, number: int) -> float:
        return self._times.of.events[number].seq or 0
