"""Measures of work and time: how parallel a run was, and how parallel it could have been.

The terms are those of the work-span model (R. P. Brent, "The parallel evaluation of general arithmetic
expressions", Journal of the ACM 21, 1974; T. H. Cormen et al., "Introduction to Algorithms", chapter on
multithreaded algorithms). An event's work is its duration; the processors are the agents.
"""

from __future__ import annotations

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run, cite, lower_bound
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view.timing import Path, Timing, longest_path, most_at_once

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

_HUMAN = EventType.HUMAN

_BOOK = "work-span model (Brent 1974)"


def worked(run: Run) -> Measure:
    """T1: the sum of the durations of all working events, as one agent after another would take."""
    return _known_part(run, sum(run.times.works))


def work_path(times: Timing) -> Path:
    """Return the path of dependent events with the most work. More agents could not make this path faster."""
    return longest_path(times, times.works, overlapping=True)


def span(run: Run) -> Measure:
    """Tinf: the length of the longest path of dependent work."""
    path = work_path(run.times)
    if run.times.unknown:
        return _known_part(run, path.length)
    working = [run.trace.events[index].id for index in path.events if run.times.works[index] > 0]
    return Measure(path.length, events=tuple(working))


def waited(run: Run) -> Measure:
    """The time in which the run waited for people: found in the trace, else as stated.

    It follows from the human interventions if all have an end, else from the wait that the trace states. It is unknown
    if some have no end and no wait is stated; without interventions and a stated wait, it is that of `Timing`.
    """
    interventions = run.times.graph.indices_by_type.get(_HUMAN, ())
    without_end = [index for index in interventions if run.trace.events[index].t_end is None]
    stated = run.trace.excluded_human_wait_s
    if interventions and not without_end:
        return Measure(run.times.waited)
    if stated is not None:
        if stated and run.times.unit == "step":
            return Measure(None, "the wait is stated in seconds, and the trace counts steps")
        return Measure(max(stated, run.times.waited))
    if without_end:
        reason = f"{len(without_end)} of {len(interventions)} human interventions have no end"
        return Measure(None, f"{reason}: {cite(run.trace, without_end)}")
    return Measure(run.times.waited)


def elapsed(run: Run) -> Measure:
    """Tp: the time from the first event to the end of the last, without known waits for people."""
    times = run.times
    wait = run.measure(waited)
    further_wait = max((wait.value or 0.0) - times.waited, 0.0)  # the part of a stated wait that no event shows
    duration = times.elapsed - further_wait
    if times.unknown and not any(times.works):
        return Measure(None, "no event says when it ended", at_least=lower_bound(duration))
    last = [index for index in times.unknown if times.starts[index] >= times.end]
    if last and times.unit != "step":
        return Measure(None, f"the last event has no end: {cite(run.trace, last)}", at_least=lower_bound(duration))
    if wait.value is None and run.trace.excluded_human_wait_s is not None:
        return wait
    if further_wait > 0:
        busy = times.elapsed - concurrency(times).get(0, 0.0)
        if duration < busy:
            reason = f"the stated wait for people leaves {duration:g}, less than the {busy:g} in which agents work"
            return Measure(None, reason)
    return Measure(duration)


def parallelism(run: Run) -> Measure:
    """T1 / Tinf: the number of agents that the run could have kept busy on average."""
    return _ratio(run.measure(worked), run.measure(span), "no work takes time")


def speed_up(run: Run) -> Measure:
    """T1 / Tp: how much faster the run was than one agent after another."""
    work = run.measure(worked)
    time = run.measure(elapsed)
    if work.at_least is not None and time.value:
        return Measure(None, work.reason, at_least=work.at_least / time.value)
    return _ratio(work, time, "the run takes no time")


def concurrency(times: Timing) -> dict[int, float]:
    """Return for each number of events the time in which so many were worked on at once; for 0, the idle time.

    The sum of the times is the elapsed time. If no duration is unknown, the sum of each time multiplied by its number
    of events is the work.
    """
    changes: list[tuple[float, int]] = []  # a moment, and by how much the number of active events changes then
    for index, duration in enumerate(times.works):
        if duration > 0:
            changes += [(times.work_starts[index], 1), (times.ends[index], -1)]
    changes.sort()
    profile: dict[int, float] = {}
    previous = times.begin
    active = 0
    for moment, change in changes:
        if moment > previous:
            profile[active] = profile.get(active, 0.0) + moment - previous
        previous = moment
        active += change
    if times.end > previous:
        profile[0] = profile.get(0, 0.0) + times.end - previous
    return dict(sorted(profile.items()))


class Profile(NamedTuple):
    """The concurrency of a run over time.

    Attributes:
        times: For each number of events, the time in which so many were worked on at once; for 0, the idle time.
        unit: `s`, or `step` in a trace that counts steps.
        reason: The reason why the concurrency is unknown and `times` is empty.
        if_waiting: `times` if open calls count as waits; None if there are no open calls.
    """

    times: dict[int, float]
    unit: str
    reason: str = ""
    if_waiting: dict[int, float] | None = None


def max_concurrency(run: Run) -> Measure:
    """P: the largest number of events worked on at once."""
    times = run.times
    working = [index for index, duration in enumerate(times.works) if duration > 0]
    most = most_at_once([times.work_starts[index] for index in working], [times.ends[index] for index in working])
    return _known_part(run, float(most))


def efficiency(run: Run) -> Measure:
    """T1 / (P * Tp): the share of the time of P agents in which they worked."""
    most = run.measure(max_concurrency)
    time = run.measure(elapsed)
    if most.value is None or time.value is None:
        return Measure(None, most.reason or time.reason)
    return _ratio(run.measure(worked), Measure(most.value * time.value), "nothing was worked on")


def brent_bound(run: Run) -> Measure:
    """(T1 - Tinf) / P + Tinf: the most time that P agents need if none is idle while there is work for it."""
    total = run.measure(worked)
    path = run.measure(span)
    most = run.measure(max_concurrency)
    if total.value is None or path.value is None or not most.value:
        return Measure(None, total.reason or path.reason or "nothing was worked on")
    return Measure((total.value - path.value) / most.value + path.value)


def _known_part(run: Run, figure: float) -> Measure:
    """Return a measure with a figure that follows from durations: a lower bound if some durations are unknown."""
    if not run.times.unknown:
        return Measure(figure)
    return Measure(None, explain_unknown_durations(run.times, run.trace), at_least=lower_bound(figure))


def explain_unknown_durations(times: Timing, trace: Trace) -> str:
    """Return the reason that some working events have no end, with their count and the first few ids."""
    working = sum(duration > 0 for duration in times.works) + len(times.unknown)
    return f"{len(times.unknown)} of {working} working events have no end: {cite(trace, times.unknown)}"


def _ratio(numerator: Measure, denominator: Measure, reason_if_zero: str) -> Measure:
    if numerator.value is None or denominator.value is None:
        return Measure(None, numerator.reason or denominator.reason)
    if denominator.value > 0:
        return Measure(numerator.value / denominator.value)
    return Measure(None, reason_if_zero)


DEFINITIONS = (
    Definition("worked", "s", "T1 = sum of the durations of all working events", _BOOK, worked, is_bounded=True),
    Definition(
        "span",
        "s",
        "Tinf = duration of the longest path of events that depend on one another",
        _BOOK,
        span,
        is_bounded=True,
    ),
    Definition("waited", "s", "time within human interventions in which no model works, or as stated", "ours", waited),
    Definition("elapsed", "s", "Tp = last end - first beginning - waited", _BOOK, elapsed, is_bounded=True),
    Definition("parallelism", "1", "T1 / Tinf", _BOOK, parallelism),
    Definition("speed_up", "1", "T1 / Tp", _BOOK, speed_up, is_bounded=True),
    Definition("max_concurrency", "1", "P = most working events at one time", _BOOK, max_concurrency, is_bounded=True),
    Definition("efficiency", "1", "T1 / (P * Tp)", _BOOK, efficiency),
    Definition("brent_bound", "s", "(T1 - Tinf) / P + Tinf", _BOOK, brent_bound),
)
