"""Measures of errors, repeated work and late results, and comparisons of a run with a single agent.

Comparisons with a single agent (Kim et al., arXiv 2512.08296) need a baseline that the trace declares. They are
unknown without a baseline, since no figure of the run itself can replace it.
"""

from __future__ import annotations

from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run
from orchtrace_corpus.trace.model.events import CLOSING_TOOLS
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.view.lifecycle import is_after

_TOOL_CALL = EventType.TOOL_CALL
_ERROR, _UNKNOWN = Status.ERROR, Status.UNKNOWN

_SCALING = "Kim et al., arXiv 2512.08296"
_RESULTS = (EventType.AGGREGATE, EventType.RETURN)


def duplicate_call_rate(run: Run) -> Measure:
    """The share of tool calls that repeat an earlier call: same tool, same content. Returning a result is no call.

    Agents return results with the tools in `CLOSING_TOOLS`.
    """
    events = [run.trace.events[index] for index in run.times.graph.indices_by_type.get(_TOOL_CALL, ())]
    calls = [event for event in events if not event.copied_context and event.tool not in CLOSING_TOOLS]
    if not calls:
        return Measure(None, "no tool is called")
    distinct = {(call.tool, call.content_ref) for call in calls}
    without_content = sum(not call.content_ref for call in calls)
    if without_content:
        return Measure(None, f"{without_content} of {len(calls)} tool calls have no content_ref to compare them by")
    return Measure((len(calls) - len(distinct)) / len(calls))


def error_spread(run: Run) -> Measure:
    """The number of errors that follow from other errors, divided by the number of errors that follow from none."""
    events, times = run.trace.events, run.times
    statuses = {event.status for event in events if not event.copied_context}
    if not statuses - {_UNKNOWN}:
        return Measure(None, "no event has a status")
    if _ERROR not in statuses:
        return Measure(None, "there is no error")
    failed = {index for index, event in enumerate(events) if event.status is _ERROR and not event.copied_context}
    downstream: set[int] = set()  # the errors, and all events that follow from an error
    roots: list[str] = []
    for index in times.sequence:
        if not downstream.isdisjoint(times.incoming[index]):
            downstream.add(index)
        elif index in failed:
            downstream.add(index)
            roots.append(events[index].id)
    return Measure((len(failed) - len(roots)) / len(roots), events=tuple(roots))


def late_steps(run: Run) -> tuple[int | None, list[int]]:
    """Return the last return or aggregate of a run, and the steps that begin after it, all as indices of events.

    The first is None if there is no return or aggregate, so that it is unknown when the result was ready.
    """
    events, starts, ends = run.trace.events, run.times.starts, run.times.ends
    results = [index for index in run.times.graph.indices_of(_RESULTS) if not events[index].copied_context]
    if not results:
        return None, []

    def lateness(index: int) -> tuple[object, ...]:
        # Without waits for people, different moments may have equal times: then the times of the trace decide.
        event = events[index]
        return ends[index], starts[index], event.t_end or event.t, event.t, event.seq or 0, event.id

    last = max(results, key=lateness)
    late = [step for step in run.steps if starts[step] > ends[last]]
    if ends[last] == starts[last]:  # at the same time, `seq` decides which event is later
        simultaneous = [step for step in run.steps if starts[step] == starts[last]]
        late += [step for step in simultaneous if is_after(events[step], events[last], skew=0.0)]
    return last, late


def stop_regret(run: Run) -> Measure:
    """The number of steps that begin after the last event that delivered a result: a return or an aggregate."""
    last, late = late_steps(run)
    if last is None:
        return Measure(None, "nothing is returned or aggregated, so nothing says when the result stood")
    return Measure(float(len(late)), events=(run.trace.events[last].id,))


def coordination_overhead(run: Run) -> Measure:
    """(T - T_single) / T_single: the additional steps as a share of the steps of the single agent."""
    single = _baseline(run, "turns")
    if single.value is None:
        return single
    return Measure((len(run.steps) - single.value) / single.value)


def coordination_efficiency(run: Run) -> Measure:
    """S / (T / T_single): the success, divided by the steps in multiples of the single agent's steps."""
    single = _baseline(run, "turns")
    success = _metric(run, "task_success")
    step_count = len(run.steps)
    if single.value is None or success.value is None or not step_count:
        return Measure(None, _reasons(single, success) or "no step is logged")
    return Measure(success.value / (step_count / single.value))


def error_amplification(run: Run) -> Measure:
    """E / E_single: the error rate of the run, divided by the error rate of the single agent."""
    single = _baseline(run, "error_rate")
    rate = _metric(run, "error_rate")
    if single.value is None or rate.value is None:
        return Measure(None, _reasons(single, rate))
    return Measure(rate.value / single.value)


def _baseline(run: Run, name: str) -> Measure:
    """Return a figure of the single agent's run; unknown if it is 0, since other figures are divided by it."""
    if not run.trace.baseline:
        wanted = f"a single agent's run on the same task, with `{name}`"
        return Measure(None, f"no baseline: declare {wanted}, as `baseline`, or give it with --outcomes")
    value = getattr(run.trace.baseline, name)
    if value is None:
        return Measure(None, f"`baseline.{name}` is unknown")
    if value == 0:
        return Measure(None, f"`baseline.{name}` is 0")
    return Measure(value)


def _metric(run: Run, name: str) -> Measure:
    value = run.trace.metrics.get(name)
    if value is None:
        return Measure(None, f"`metrics.{name}` is unknown")
    return Measure(value)


def _reasons(*measures: Measure) -> str:
    """Return all reasons together, so that a user can fix them at once."""
    return "; ".join(measure.reason for measure in measures if measure.reason)


DEFINITIONS = (
    Definition(
        "duplicate_call_rate", "1", "tool calls that repeat tool and content / tool calls", "ours", duplicate_call_rate
    ),
    Definition("error_spread", "1", "errors downstream of errors / errors with none upstream", "ours", error_spread),
    Definition("stop_regret", "1", "steps after the last return or aggregate", "ours", stop_regret),
    Definition(
        "coordination_overhead", "1", "(steps - baseline.turns) / baseline.turns", _SCALING, coordination_overhead
    ),
    Definition(
        "coordination_efficiency",
        "1",
        "metrics.task_success / (steps / baseline.turns)",
        _SCALING,
        coordination_efficiency,
    ),
    Definition("error_amplification", "1", "metrics.error_rate / baseline.error_rate", _SCALING, error_amplification),
)
