"""A logged run for programs: the figures of the page, in the units of the trace."""

from typing import Any

from orchtrace_corpus.trace.measures.ledger import ledger
from orchtrace_corpus.trace.measures.work import critical_path
from orchtrace_corpus.trace.model.import_report import ImportReport, has_all_tokens, report_of
from orchtrace_corpus.trace.model.trace import Status
from orchtrace_corpus.trace.render.story import Case, Story


def as_data(case: Case) -> dict[str, Any]:
    """What is known of a run; totals that something is missing of say so, and what is unknown is null.

    Raises:
        CycleError: The edges go round in a circle.
    """
    look, trace = Story(case), case.trace
    times, chain = look.run.times, look.chain
    report = report_of(trace) or ImportReport()
    entries = ledger(trace, "type")
    tokens = [entry.total for entry in entries if entry.total is not None]
    costs = [entry.cost_usd for entry in entries if entry.cost_usd is not None]
    has_all = has_all_tokens(trace)
    is_dearer = not has_all or bool(report.prices and report.prices.without)
    return {
        "session": trace.trace_id,
        "file": case.file,
        "form": case.form,
        "events": len(trace.events),
        "errors": sum(event.status is Status.ERROR for event in trace.events),
        "unit": times.unit,
        "wall": times.wall,
        "human_wait": times.waited,
        "work": sum(times.works),
        "work_assumed": sum(times.works[number] for number in look.assumed),
        "unknown_durations": len(times.unknown),
        "span": critical_path(look.run.times).length,
        "agents": [
            {
                "agent": one.agent,
                "role": one.role,
                "depth": one.depth,
                "person": one.agent in look.people,
                "work": sum(times.works[number] for number in one.events),
                "tokens": one.tokens,
            }
            for one in look.everybody
        ],
        "critical_path": [
            {
                "event": trace.events[number].id,
                "agent": trace.events[number].agent,
                "work": part,
                "gap_before": gap,
                "assumed": number in look.assumed,
            }
            for number, part, gap in zip(chain.events, chain.parts, chain.gaps, strict=True)
        ],
        "critical_path_gap_after": chain.after,
        "tokens": {"known": sum(tokens) if tokens else None, "at_least": not has_all},
        "cost_usd": {"known": sum(costs) if costs else None, "at_least": is_dearer},
        "problems": {what: noted.number for what, noted in (*report.problems.items(), *report.dropped.items())},
    }
