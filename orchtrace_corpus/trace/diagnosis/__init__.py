"""Diagnoses a run: where its time and money went, as the values that `corpus trace doctor` shows.

`trace.render.sentences` turns these values into sentences.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis import findings, values
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Match, Origin, ProblemKind, Summary
from orchtrace_corpus.trace.measures.ledger import COUNTED_KINDS, Entry, cost_by_tool, ledger, sum_known
from orchtrace_corpus.trace.measures.work import concurrency
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.import_report import (
    ImportReport,
    LedgerLine,
    Line,
    has_all_costs,
    has_all_tokens,
    report_of,
)
from orchtrace_corpus.trace.model.terms import AgentKind, EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Source, Trace
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.intervals import Intervals, length, union, without
from orchtrace_corpus.trace.view.open_calls import Cause
from orchtrace_corpus.trace.view.stated_turns import stands_for_life
from orchtrace_corpus.trace.view.timing import Chain, Timing, critical_chain, longest_path

TOOL_ACTIVITIES = (Activity.TOOL, Activity.OPEN)
"""The activities that have a tool: tool calls, and open tool calls, which perhaps only waited."""

_MAX_PROMPT_CHARACTERS = 200
_HASH = re.compile(r"sha256:[0-9a-f]+$")  # stands in a trace for content that was not imported
_LONG_PAUSE_S = 3600.0
MIN_GAP_SHARE = 0.02
"""Gaps of the critical path below this share of the elapsed time are summed, not listed."""
_MIN_WORK_SHARE = 1e-6
"""Work below this share of a gap is a rounding error."""


def diagnose(trace: Trace | TraceView, origin: Origin | None = None) -> Diagnosis:
    """Return where the time and the money of a run went.

    Args:
        trace: A trace in which the graph rules find no error.
        origin: The log that the trace was imported from; None for a trace that was not imported.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    events = view.trace.events
    origin = origin or Origin(has_prices=any(event.cost_usd is not None for event in events))
    people = frozenset(agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN)
    agents = [span for span in view.agents if span.agent not in people]
    team = [span for span in agents if not span.events or any(not events[index].warm_up for index in span.events)]
    children = _children(team)
    assumed = _assumed_events(view.timing)
    summary = summarize(view, origin.file)
    problems = list(_problems(view.trace))
    if summary.files > 1:
        problems += _further_files(view)
    agent_ledger, model_ledger = ledger(view.trace, "agent"), ledger(view.trace, "model")
    return Diagnosis(
        view=view,
        origin=origin,
        summary=summary,
        waited=view.timing.waited,
        people=people,
        team=tuple(team),
        warm_ups=len(agents) - len(team),
        children=tuple(children.items()),
        lone_agents=tuple(span for span in team if not span.depth and span.agent not in children),
        assumed_events=assumed,
        parallelism=_parallelism(view.timing, view, assumed),
        parallelism_if_waiting=_parallelism(view.timing_if_waiting, view, assumed),
        path=_critical_path(view, assumed),
        tokens=_tokens(view, agent_ledger, model_ledger),
        cost=_cost(view.trace, agent_ledger, model_ledger),
        problems=tuple(problems),
        team_findings=findings.find(view),
    )


def summarize(trace: Trace | TraceView, file: str = "") -> Summary:
    """Return the main figures of a run; `file` is the file in which the run begins.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    run, times = view.trace, view.timing
    people = {agent.id for agent in run.agents if agent.kind is AgentKind.HUMAN}
    new_events = [event for event in run.events if not event.copied_context]
    known_tokens = [event.tokens for event in new_events if event.tokens and event.tokens.is_known]
    cost = sum_known([event.cost_usd for event in new_events])
    return Summary(
        name=run.trace_id,
        day=_day(run, times),
        agents=len({event.agent for event in run.events if not event.warm_up} - people),
        events=len(run.events),
        elapsed=times.elapsed,
        unit=times.unit,
        errors=sum(event.status is Status.ERROR for event in run.events),
        tokens=float(sum(map(total, known_tokens))) if known_tokens else None,
        cost_usd=cost,
        has_more_tokens=not has_all_tokens(run),
        costs_more=not has_all_costs(run) or (cost is None and bool(known_tokens)),
        file=file,
        files=len({event.source.file for event in run.events if isinstance(event.source, Source)}),
    )


def first_words(trace: Trace) -> str:
    """Return the beginning of the first prompt; empty if the trace holds no contents.

    A prompt that begins with `<`, as tags do, was written by a program. It is used only if there is no other prompt.
    """
    prompts = [event.content_ref for event in trace.events if event.type is EventType.HUMAN and event.content_ref]
    texts = [" ".join(prompt[:_MAX_PROMPT_CHARACTERS].split()) for prompt in prompts if not _HASH.match(prompt)]
    for text in texts:
        if not text.startswith("<"):
            return text
    return texts[0] if texts else ""


def has_statuses(trace: Trace) -> bool:
    """Return True if any call in a trace has a status. In a trace without statuses, errors are unknown."""
    call_types = (EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT)
    return any(event.type in call_types and event.status is not Status.UNKNOWN for event in trace.events)


def _day(run: Trace, times: Timing) -> str:
    """Return the day on which a run begins; empty if it is unknown."""
    epoch = run.clock.epoch or ""
    if times.begin <= 0 or times.unit != "s" or not epoch:
        return epoch[:10]
    from datetime import datetime, timedelta

    return (datetime.fromisoformat(epoch) + timedelta(seconds=times.begin)).isoformat()[:10]


def match(session: str, file: str, name: str) -> Match:
    """Return how well a name that a user gave matches a session: its file, its full name, or a prefix of its name.

    Args:
        session: The name of the session.
        file: The file in which the session begins; empty if it is unknown.
        name: The name that the user gave.
    """
    if name and file:
        given_path = os.sep + os.path.normpath(name)
        session_path = os.sep + os.path.normpath(file)
        # Either may have more folders at its beginning than the other.
        if given_path.endswith(session_path) or session_path.endswith(given_path):
            return Match.FILE
    if session == name:
        return Match.NAME
    return Match.BEGINNING if session.startswith(name) else Match.NONE


def _children(team: Sequence[AgentSpan]) -> dict[str, tuple[AgentSpan, ...]]:
    """Return the direct children of each agent that has any; `team` is in depth-first order."""
    ancestors: list[AgentSpan] = []  # the agents from a root to the one that was visited last
    children: dict[str, tuple[AgentSpan, ...]] = {}
    for span in team:
        del ancestors[span.depth :]
        if ancestors and ancestors[-1].depth == span.depth - 1:
            parent = ancestors[-1].agent
            children[parent] = (*children.get(parent, ()), span)
        ancestors.append(span)
    return children


def _assumed_events(times: Timing) -> frozenset[int]:
    """Return the events that represent the whole life of an agent without records: their duration is assumed."""
    graph = times.graph
    lives = set()
    for index in graph.indices_by_type.get(EventType.INFERENCE, ()):
        if stands_for_life(graph.events[index]):
            lives.add(index)
    recorded_agents = set()
    for index, event in enumerate(graph.events):
        if times.works[index] > 0 and index not in lives:
            recorded_agents.add(event.agent)
    return frozenset(index for index in lives if graph.events[index].agent not in recorded_agents)


def perhaps_waiting(view: TraceView) -> frozenset[int]:
    """Return the open calls that perhaps waited: all open calls except those that are unfinished in the log."""
    return frozenset(call.event for call in view.open_calls if call.cause is not Cause.UNFINISHED)


def _parallelism(times: Timing, view: TraceView, assumed: frozenset[int]) -> values.Parallelism | None:
    elapsed = times.elapsed
    if not elapsed:
        return None
    time_by_concurrency = concurrency(times)
    parallel_time = sum(seconds for count, seconds in time_by_concurrency.items() if count > 1)
    tool_calls = times.graph.indices_by_type.get(EventType.TOOL_CALL, ())
    return values.Parallelism(
        max_concurrency=max(time_by_concurrency),
        parallel_share=parallel_time / elapsed,
        single_share=time_by_concurrency.get(1, 0.0) / elapsed,
        idle_share=time_by_concurrency.get(0, 0.0) / elapsed,
        worked=sum(times.works),
        tools=sum(times.works[index] for index in tool_calls),
        assumed=sum(times.works[index] for index in assumed),
        open=sum(times.works[open_call.event] for open_call in view.open_calls),
    )


def _critical_path(view: TraceView, assumed: frozenset[int]) -> values.CriticalPath:
    times, open_calls = view.timing, perhaps_waiting(view)
    chain = critical_chain(times)
    min_gap = MIN_GAP_SHARE * times.elapsed
    span = _span(view, times, assumed, open_calls)
    span_if_waiting = span
    if open_calls:
        span_if_waiting = _span(view, view.timing_if_waiting, assumed, open_calls)
    return values.CriticalPath(
        chain=chain,
        stretches=tuple(_stretches(times, chain, assumed, open_calls, min_gap)),
        small_gaps=sum(gap for gap in (*chain.gaps, chain.after) if gap < min_gap),
        idle=_idle_time(times, chain),
        span=span,
        span_if_waiting=span_if_waiting,
        unknown=len(times.unknown),
    )


def _span(view: TraceView, times: Timing, assumed: frozenset[int], open_calls: frozenset[int]) -> values.WorkPath:
    """Return the path with the most work, by a timing in which open calls count as work or as waits."""
    path = longest_path(times, times.works, overlapping=True)
    parts = [times.works[event] for event in path.events]
    for position, (event, successor) in enumerate(pairwise(path.events)):
        overlap = times.starts[event] + times.works[event] - times.starts[successor]
        parts[position] -= max(overlap, 0.0)  # the time after the start of the successor is the successor's
    chain_without_gaps = Chain(path.events, parts, gaps=[0.0] * len(parts), after=0.0)
    stretches = _stretches(view.timing, chain_without_gaps, assumed, open_calls, min_gap=0.0)
    return values.WorkPath(path.length, tuple(path.events), tuple(stretches))


def _idle_time(times: Timing, chain: Chain) -> float:
    """Return the time in the gaps of a chain in which no agent worked."""
    gaps: list[tuple[float, float]] = []
    moment = times.begin
    # The time after the last event is a gap before a last part without a duration.
    for part, gap in zip([*chain.worked, 0.0], [*chain.gaps, chain.after], strict=True):
        if gap > 0:
            gaps.append((moment, moment + gap))
        moment += gap + part
    if not gaps:
        return 0
    busy = union((begin, begin + work) for begin, work in zip(times.work_starts, times.works, strict=True))
    return length(without(gaps, busy))


class _Piece(NamedTuple):
    """A part of a chain: the time of one event, or a gap, which has no agent."""

    agent: str
    activity: Activity
    tool: str
    seconds: float
    begin: float


def _stretches(
    times: Timing, chain: Chain, assumed: frozenset[int], open_calls: frozenset[int], min_gap: float
) -> Iterator[values.Stretch]:
    """Yield the stretches of a chain, each of one agent, without gaps that are shorter than `min_gap`."""
    pieces: list[_Piece] = []
    moment = times.begin
    for index, part, gap in zip(chain.events, chain.worked, chain.gaps, strict=True):
        if gap >= min_gap and gap > 0:
            pieces.append(_Piece("", Activity.IDLE, "", gap, moment))
        if part > 0:
            event = times.graph.events[index]
            activity = activity_of(event, is_assumed=index in assumed, is_open=index in open_calls)
            tool = event.tool if activity in TOOL_ACTIVITIES else ""
            pieces.append(_Piece(event.agent, activity, tool, part, moment))
        moment += gap + part
    if chain.after >= min_gap and chain.after > 0:
        pieces.append(_Piece("", Activity.IDLE, "", chain.after, moment))
    for agent, group in groupby(pieces, key=lambda piece: piece.agent):
        pieces_of_agent = list(group)
        seconds = sum(piece.seconds for piece in pieces_of_agent)
        if not agent:
            last = pieces_of_agent[-1]
            yield _gap(times, pieces_of_agent[0].begin, last.begin + last.seconds, seconds)
            continue
        durations: dict[tuple[Activity, str], float] = {}
        for piece in pieces_of_agent:
            activity_and_tool = piece.activity, piece.tool
            durations[activity_and_tool] = durations.get(activity_and_tool, 0.0) + piece.seconds
        main_activity, main_tool = max(durations, key=durations.__getitem__)
        yield values.Stretch(agent, seconds, main_activity, main_tool, is_mixed=len(durations) > 1)


def _gap(times: Timing, begin: float, end: float, seconds: float) -> values.Stretch:
    """Return a gap of the critical path, with the agents that worked meanwhile. `seconds` is the sum of its pieces."""
    work_by_agent: dict[str, Intervals] = {}
    for agent, start, work in zip(times.graph.agents, times.work_starts, times.works, strict=True):
        work_begin = max(start, begin)
        work_end = min(start + work, end)
        if work_end - work_begin > _MIN_WORK_SHARE * seconds:
            work_by_agent.setdefault(agent, []).append((work_begin, work_end))
    all_work = [interval for intervals in work_by_agent.values() for interval in intervals]
    worked = min(length(union(all_work)), seconds)
    activity = Activity.GAP if work_by_agent else Activity.IDLE
    return values.Stretch("", seconds, activity, "", is_mixed=False, workers=tuple(work_by_agent), worked=worked)


def activity_of(event: Event, *, is_assumed: bool = False, is_open: bool = False) -> Activity:
    """Return the activity of an event.

    `is_assumed` says that the duration of the event is assumed; `is_open` says that the event is an open call.
    """
    if is_assumed:
        return Activity.ASSUMED
    if event.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        return Activity.OPEN if is_open else Activity.TOOL
    return Activity.OPEN_MODEL if is_open else Activity.MODEL


def _tokens(view: TraceView, agents: Sequence[Entry], models: Sequence[Entry]) -> values.TokenUse:
    trace, report = view.trace, report_of(view.trace) or ImportReport()
    entries = [entry for entry in models if entry.total is not None]
    reason = trace.reasons.get("costs.tokens", "").rstrip(".")
    unsure = tuple(report.unsure())
    missing = {} if reason else report.missing()
    repeated_lines = report.repeated()
    repeated_records = sum(line.records for line in repeated_lines)
    repeated_tokens = sum(_line_tokens(line) for line in repeated_lines)
    hidden_line = report.token_ledger.get(LedgerLine.RESTARTED)
    return values.TokenUse(
        known=sum(entry.total or 0.0 for entry in entries) if entries else None,
        is_lower_bound=bool(reason or unsure or missing),
        by_kind={kind: sum(entry.tokens[kind] or 0.0 for entry in entries) for kind in COUNTED_KINDS},
        by_model=tuple((entry.name, entry.total) for entry in entries if entry.total),
        by_agent=tuple((agent.agent, agent.tokens) for agent in view.agents if agent.tokens),
        agents_with_unknown_tokens=frozenset(entry.name for entry in agents if entry.at_least),
        reason=reason,
        missing=missing,
        unsure=unsure,
        repeated=(repeated_records, repeated_tokens),
        max_hidden=_line_tokens(hidden_line) if hidden_line is not None else 0.0,
    )


def _line_tokens(line: Line) -> float:
    """Return the tokens of a ledger line: the sum of their kinds, or the total if the line has no kinds."""
    return sum(line.tokens.get(kind, 0) for kind in COUNTED_KINDS) or line.tokens.get("total", 0)


def _cost(trace: Trace, agents: Sequence[Entry], models: Sequence[Entry]) -> values.Cost:
    prices = (report_of(trace) or ImportReport()).prices
    by_agent, by_model = _known_costs(agents), _known_costs(models)
    is_lower_bound = not has_all_costs(trace)
    if prices is None:
        return values.Cost(
            by_agent,
            is_lower_bound,
            date="",
            last_day="",
            unpriced_models=(),
            unused_models=(),
            by_model=by_model,
            by_tool=cost_by_tool(trace),
        )
    return values.Cost(
        by_agent,
        is_lower_bound,
        date=prices.date,
        last_day=prices.last_day,
        unpriced_models=tuple(prices.without),
        unused_models=tuple(prices.unused),
        source=prices.source,
        by_model=by_model,
        by_tool=cost_by_tool(trace),
        stated=prices.stated_usd,
        has_all_stated=prices.has_all_stated,
        without_hour=tuple(prices.without_hour),
    )


def _known_costs(entries: Sequence[Entry]) -> tuple[tuple[str, float], ...]:
    """Return the names and costs of entries, the highest cost first.

    Entries without a known cost are left out, and so are unnamed entries that cost 0.
    """
    costs = [
        (entry.name, entry.cost_usd)
        for entry in entries
        if entry.cost_usd is not None and (entry.name or entry.cost_usd)
    ]
    costs.sort(key=lambda name_and_cost: -name_and_cost[1])
    return tuple(costs)


def _further_files(view: TraceView) -> Iterator[values.Problem]:
    """Report further files in which a root agent continues after a long pause."""
    if view.timing.unit != "s":
        return
    events, ends = view.trace.events, view.timing.ends
    continuations: list[Source] = []  # the first place in each further file
    roots = [agent for agent in view.agents if not agent.depth]
    for root in roots:
        for earlier, later in pairwise(root.events):
            before, after = events[earlier].source, events[later].source
            if not isinstance(before, Source) or not isinstance(after, Source) or before.file == after.file:
                continue
            if ends[later] - ends[earlier] >= _LONG_PAUSE_S:
                continuations.append(after)
    if continuations:
        first = continuations[0]
        yield values.Problem(ProblemKind.FURTHER_FILE, len(continuations), place=f"{first.file}:{first.line}")


def _problems(trace: Trace) -> Iterator[values.Problem]:
    failed = [event for event in trace.events if event.status is Status.ERROR]
    if failed:
        yield values.Problem(ProblemKind.FAILED_EVENT, len(failed), event=failed[0])
    report = report_of(trace)
    if report is None:
        yield values.Problem(ProblemKind.FOREIGN_REPORT, 1)
        return
    source_by_event = {event.id: event.source for event in trace.events if isinstance(event.source, Source)}
    for name, count in (*report.problems.items(), *report.dropped.items()):
        place = count.for_example[0] if count.for_example else ""
        if " -> " in place:  # an edge between two events: show the place of the second
            _, _, target = place.rpartition(" -> ")
            source = source_by_event.get(target)
            if source is not None:
                place = f"{source.file}:{source.line}"
        yield values.Problem(ProblemKind.IMPORT, count.number, name, place)
    if report.unknown_kinds:
        yield values.Problem(ProblemKind.UNKNOWN_RECORD, sum(report.unknown_kinds.values()))
