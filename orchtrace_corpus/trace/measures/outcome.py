"""Measures of errors, repeated work and late results, and comparisons of a run with a single agent.

Comparisons with a single agent (Kim et al., arXiv 2512.08296) need a baseline that the trace declares. They are
unknown without one, since no figure of the run itself can replace it.
"""

from __future__ import annotations

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run
from orchtrace_corpus.trace.model.events import CLOSING_TOOLS
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.view.lifecycle import is_after

if TYPE_CHECKING:
    pass

_TOOL_CALL = EventType.TOOL_CALL
_ERROR, _UNKNOWN = Status.ERROR, Status.UNKNOWN

_SCALING = "Kim et al., arXiv 2512.08296"
_RESULTS = (EventType.AGGREGATE, EventType.RETURN)


def duplicate_call_rate(run: Run) -> Measure:
    """The share of tool calls that repeat an earlier one: same tool, same content. Returning a result is not a call."""
    events = [run.trace.events[index] for index in run.times.graph.indices_by_type.get(_TOOL_CALL, ())]
    calls = [event for event in events if not event.copied_context and event.tool not in CLOSING_TOOLS]
    if not calls:
        return Measure(None, "no tool is called")
    distinct = {(call.tool, call.content_ref) for call in calls}
    if any(not content for _, content in distinct):
        without_content = sum(not call.content_ref for call in calls)
        return Measure(None, f"{without_content} of {len(calls)} tool calls have no content_ref to compare them by")
    return Measure((len(calls) - len(distinct)) / len(calls))


def error_spread(run: Run) -> Measure:
    """Errors that follow from other errors, by error that follows from none."""
    events, times = run.trace.events, run.times
    statuses = {event.status for event in events if not event.copied_context}
    if _ERROR not in statuses:
        return Measure(None, "there is no error" if statuses - {_UNKNOWN} else "no event has a status")
    failed = {n for n, event in enumerate(events) if event.status is _ERROR and not event.copied_context}
    downstream: set[int] = set()  # errors, and all events that follow from one
    roots: list[str] = []
    for index in times.sequence:
        if not downstream.isdisjoint(times.incoming[index]):
            downstream.add(index)
        elif index in failed:
            downstream.add(index)
            roots.append(events[index].id)
    return Measure((len(failed) - len(roots)) / len(roots), events=tuple(roots))


def late_steps(run: Run) -> tuple[int | None, list[int]]:
    """Return the last return or aggregate of a run, and the steps that begin after it.

    The first is None if there is no return or aggregate, so that it is unknown when the result was ready.
    """
    events, starts, ends = run.trace.events, run.times.starts, run.times.ends
    indices_by_type = run.times.graph.indices_by_type
    results = [n for kind in _RESULTS for n in indices_by_type.get(kind, ()) if not events[n].copied_context]
    if not results:
        return None, []
    # With waits for people taken out, results of different moments may have equal times: the moments then decide.
    moments = {n: (events[n].t_end or events[n].t, events[n].t, events[n].seq or 0) for n in results}
    last = max(results, key=lambda index: (ends[index], starts[index], *moments[index], events[index].id))
    late = [step for step in run.steps if starts[step] > ends[last]]
    if ends[last] == starts[last]:  # at the same time, `seq` decides which event is later
        late += [n for n in run.steps if starts[n] == starts[last] and is_after(events[n], events[last], 0.0)]
    return last, late


def stop_regret(run: Run) -> Measure:
    """The steps that begin after the last event that brought a result up: a return or an aggregate."""
    last, late = late_steps(run)
    if last is None:
        return Measure(None, "nothing is returned or aggregated, so nothing says when the result stood")
    return Measure(float(len(late)), events=(run.trace.events[last].id,))


def coordination_overhead(run: Run) -> Measure:
    """(T - T_single) / T_single in steps, as a share."""
    single = _baseline(run, "turns")
    if single.value is None:
        return single
    return Measure((len(run.steps) - single.value) / single.value)


def coordination_efficiency(run: Run) -> Measure:
    """S / (T / T_single): success by steps relative to the single agent's."""
    single, success = _baseline(run, "turns"), _metric(run, "task_success")
    step_count = len(run.steps)
    if single.value is None or success.value is None or not step_count:
        return Measure(None, _reasons(single, success) or "no step is logged")
    return Measure(success.value / (step_count / single.value))


def error_amplification(run: Run) -> Measure:
    """E / E_single: the run's error rate by the single agent's."""
    single, rate = _baseline(run, "error_rate"), _metric(run, "error_rate")
    if single.value is None or rate.value is None:
        return Measure(None, _reasons(single, rate))
    return Measure(rate.value / single.value)


def _baseline(run: Run, name: str) -> Measure:
    """Return a figure of the single agent's run, which must be greater than 0."""
    if not run.trace.baseline:
        wanted = f"a single agent's run on the same task, with `{name}`"
        return Measure(None, f"no baseline: declare {wanted}, as `baseline`, or give it with --outcomes")
    value = getattr(run.trace.baseline, name)
    if not value:
        return Measure(None, f"`baseline.{name}` is {'0' if value == 0 else 'unknown'}")
    return Measure(value)


def _metric(run: Run, name: str) -> Measure:
    value = run.trace.metrics.get(name)
    return Measure(value, "" if value is not None else f"`metrics.{name}` is unknown")


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
