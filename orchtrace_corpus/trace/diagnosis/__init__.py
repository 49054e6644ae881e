"""Diagnoses a run: where its time and money went, as the values that `corpus trace doctor` shows.

`trace.render.sentences` turns these values into sentences.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, pairwise

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis import findings, values
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Match, Origin, ProblemKind, Summary
from orchtrace_corpus.trace.measures.ledger import KINDS, Entry, cost_by_tool, ledger, sum_known
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

OF_TOOLS = (Activity.TOOL, Activity.OPEN)
"""The activities that name a tool: its calls, and its open calls, which perhaps only waited."""

_MAX_PROMPT_CHARACTERS = 200
_HASH = re.compile(r"sha256:[0-9a-f]+$")
_LONG_PAUSE_S = 3600.0
LEAST_GAP = 0.02
"""Gaps of the critical path below this share of the elapsed time are summed, not listed."""
_LEAST_WORK_SHARE = 1e-6
"""Work below this share of a gap is a rounding error."""


def diagnose(trace: Trace | TraceView, origin: Origin | None = None) -> Diagnosis:
    """Return where the time and the money of a run went.

    Args:
        trace: A trace in which the graph rules find no error.
        origin: The log it was imported from; without it, only what the trace itself says is used.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    events = view.trace.events
    origin = origin or Origin(has_prices=any(event.cost_usd is not None for event in events))
    people = frozenset(agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN)
    machines = [span for span in view.agents if span.agent not in people]
    team = tuple(
        machine for machine in machines if not machine.events or any(not events[n].warm_up for n in machine.events)
    )
    children = _children(team)
    assumed = _assumed_events(view.timing)
    summary = summarize(view, origin.file)
    problems = list(_problems(view.trace))
    if summary.files > 1:
        problems += _further_files(view)
    ledgers = ledger(view.trace, "agent"), ledger(view.trace, "model")
    return Diagnosis(
        view,
        origin,
        summary,
        view.timing.waited,
        people,
        team,
        len(machines) - len(team),
        tuple(children.items()),
        tuple(span for span in team if not span.depth and span.agent not in children),
        assumed,
        _parallelism(view.timing, view, assumed),
        _parallelism(view.timing_if_waiting, view, assumed),
        _path(view, assumed),
        _tokens(view, *ledgers),
        _cost(view.trace, *ledgers),
        tuple(problems),
        findings.find(view),
    )


def summarize(trace: Trace | TraceView, file: str = "") -> Summary:
    """Return the main figures of a run; `file` is the file it begins in.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    run, times = view.trace, view.timing
    people = {agent.id for agent in run.agents if agent.kind is AgentKind.HUMAN}
    counted = [event for event in run.events if not event.copied_context]
    spent = [event.tokens for event in counted if event.tokens and event.tokens.is_known]
    cost = sum_known([event.cost_usd for event in counted])
    return Summary(
        run.trace_id,
        _day(run, times),
        len({event.agent for event in run.events if not event.warm_up} - people),
        len(run.events),
        times.elapsed,
        times.unit,
        sum(event.status is Status.ERROR for event in run.events),
        float(sum(map(total, spent))) if spent else None,
        cost,
        not has_all_tokens(run),
        not has_all_costs(run) or (cost is None and bool(spent)),
        file,
        len({event.source.file for event in run.events if isinstance(event.source, Source)}),
    )


def first_words(trace: Trace) -> str:
    """Return the beginning of the first prompt; empty if the trace holds no contents.

    A prompt that begins with a tag was written by a program. It is used only if there is no other.
    """
    prompts = [event.content_ref for event in trace.events if event.type is EventType.HUMAN and event.content_ref]
    texts = [" ".join(prompt[:_MAX_PROMPT_CHARACTERS].split()) for prompt in prompts if not _HASH.match(prompt)]
    for text in texts:
        if not text.startswith("<"):
            return text
    return texts[0] if texts else ""


def has_statuses(trace: Trace) -> bool:
    """Return True if any call in a trace has a status; without one, errors are unknown."""
    calls = (EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT)
    return any(event.type in calls and event.status is not Status.UNKNOWN for event in trace.events)


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
        file: The file that the session begins in; empty if it is unknown.
        name: The name that the user gave.
    """
    if name and file:
        given_path, session_path = (os.sep + os.path.normpath(path) for path in (name, file))
        if given_path.endswith(session_path) or session_path.endswith(given_path):
            return Match.FILE
    if session == name:
        return Match.NAME
    return Match.BEGINNING if session.startswith(name) else Match.NONE


def _children(team: Sequence[AgentSpan]) -> dict[str, tuple[AgentSpan, ...]]:
    """Return the direct children of each agent that has any."""
    ancestors: list[AgentSpan] = []
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
    lives = {
        index for index in graph.indices_by_type.get(EventType.INFERENCE, ()) if stands_for_life(graph.events[index])
    }
    recorded = {
        event.agent for index, event in enumerate(graph.events) if times.works[index] > 0 and index not in lives
    }
    return frozenset(index for index in lives if graph.events[index].agent not in recorded)


def perhaps_waiting(view: TraceView) -> frozenset[int]:
    """Return the open calls that perhaps waited: all but those whose end the log may have lost."""
    return frozenset(call.event for call in view.open_calls if call.cause is not Cause.UNFINISHED)


def _parallelism(times: Timing, view: TraceView, assumed: frozenset[int]) -> values.Parallelism | None:
    profile, elapsed = concurrency(times), times.elapsed
    if not elapsed:
        return None
    return values.Parallelism(
        max(profile),
        sum(seconds for working, seconds in profile.items() if working > 1) / elapsed,
        profile.get(1, 0.0) / elapsed,
        profile.get(0, 0.0) / elapsed,
        sum(times.works),
        sum(times.works[index] for index in times.graph.indices_by_type.get(EventType.TOOL_CALL, ())),
        sum(times.works[index] for index in assumed),
        sum(times.works[open_call.event] for open_call in view.open_calls),
    )


def _path(view: TraceView, assumed: frozenset[int]) -> values.CriticalPath:
    times, open_calls = view.timing, perhaps_waiting(view)
    critical = critical_chain(times)
    least_gap = LEAST_GAP * times.elapsed
    small_gaps = sum(gap for gap in (*critical.gaps, critical.after) if gap < least_gap)

    def work_path(times: Timing) -> values.WorkPath:
        path = longest_path(times, times.works, overlapping=True)
        parts = [times.works[event] for event in path.events]
        for place, (event, successor) in enumerate(pairwise(path.events)):
            overlap = times.starts[event] + times.works[event] - times.starts[successor]
            parts[place] -= max(overlap, 0.0)
        without_gaps = Chain(path.events, parts, [0.0] * len(parts), 0.0)
        stretches = tuple(_stretches(view.timing, without_gaps, assumed, open_calls, 0.0))
        return values.WorkPath(path.length, tuple(path.events), stretches)

    span = work_path(times)
    span_if_waiting = work_path(view.timing_if_waiting) if open_calls else span
    stretches = tuple(_stretches(times, critical, assumed, open_calls, least_gap))
    return values.CriticalPath(
        critical, stretches, small_gaps, _idle(times, critical), span, span_if_waiting, len(times.unknown)
    )


def _idle(times: Timing, path: Chain) -> float:
    """Return the time in the gaps of a path in which no agent worked."""
    gaps: list[tuple[float, float]] = []
    at = times.begin
    for part, gap in zip([*path.parts, 0.0], [*path.gaps, path.after], strict=True):
        if gap > 0:
            gaps.append((at, at + gap))
        at += gap + part
    if not gaps:
        return 0
    busy = union((begin, begin + work) for begin, work in zip(times.begins, times.works, strict=True))
    return length(without(gaps, busy))


class _Piece(NamedTuple):
    """A part of a path: the time of one event, or a gap without an agent."""

    agent: str
    activity: Activity
    tool: str
    seconds: float
    begin: float


def _stretches(
    times: Timing, path: Chain, assumed: frozenset[int], open_calls: frozenset[int], least_gap: float
) -> Iterator[values.Stretch]:
    """Yield the parts of a path by agent, without gaps that are shorter than `least_gap`."""
    pieces: list[_Piece] = []
    at = times.begin
    for index, part, gap in zip([*path.events, -1], [*path.parts, 0.0], [*path.gaps, path.after], strict=True):
        if gap >= least_gap and gap > 0:
            pieces.append(_Piece("", Activity.IDLE, "", gap, at))
        if part > 0:
            event = times.graph.events[index]
            activity = activity_of(event, is_assumed=index in assumed, is_open=index in open_calls)
            tool = event.tool if activity in OF_TOOLS else ""
            pieces.append(_Piece(event.agent, activity, tool, part, at))
        at += gap + part
    for agent, group in groupby(pieces, key=lambda piece: piece.agent):
        stretch = list(group)
        seconds = sum(piece.seconds for piece in stretch)
        if not agent:
            last = stretch[-1]
            yield _gap(times, stretch[0].begin, last.begin + last.seconds, seconds)
            continue
        durations: dict[tuple[Activity, str], float] = {}
        for piece in stretch:
            key = piece.activity, piece.tool
            durations[key] = durations.get(key, 0.0) + piece.seconds
        main_activity, main_tool = max(durations, key=durations.__getitem__)
        yield values.Stretch(agent, seconds, main_activity, main_tool, len(durations) > 1)


def _gap(times: Timing, begin: float, end: float, seconds: float) -> values.Stretch:
    """Return a gap of the critical path, with the agents that worked meanwhile."""
    at_work: dict[str, Intervals] = {}
    for agent, start, work in zip(times.graph.agents, times.begins, times.works, strict=True):
        overlap = max(start, begin), min(start + work, end)
        if overlap[1] - overlap[0] > _LEAST_WORK_SHARE * seconds:
            at_work.setdefault(agent, []).append(overlap)
    worked = min(length(union(chain(*at_work.values()))), seconds)
    return values.Stretch("", seconds, Activity.GAP if at_work else Activity.IDLE, "", False, tuple(at_work), worked)


def activity_of(event: Event, *, is_assumed: bool = False, is_open: bool = False) -> Activity:
    """Return the activity of an event: the work of a tool or a model, or time that was perhaps only a wait."""
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
    kinds = [kind for kind in KINDS if kind != "reasoning"]
    repeated = report.repeated()
    repeated_tokens = sum(_total_of(line, kinds) for line in repeated)
    return values.TokenUse(
        sum(entry.total or 0.0 for entry in entries) if entries else None,
        bool(reason or unsure or missing),
        {kind: sum(entry.tokens[kind] or 0.0 for entry in entries) for kind in kinds},
        tuple((entry.name, entry.total) for entry in entries if entry.total),
        tuple((agent.agent, agent.tokens) for agent in view.agents if agent.tokens),
        frozenset(entry.name for entry in agents if entry.at_least),
        reason,
        missing,
        unsure,
        (sum(line.records for line in repeated), repeated_tokens),
        _total_of(report.token_ledger.get(LedgerLine.RESTARTED), kinds),
    )


def _total_of(line: Line | None, kinds: Sequence[str]) -> float:
    """Return the tokens of a ledger line: the sum of their kinds, or the total if the line has no kinds."""
    if line is None:
        return 0.0
    return sum(line.tokens.get(kind, 0) for kind in kinds) or line.tokens.get("total", 0)


def _cost(trace: Trace, *ledgers: Sequence[Entry]) -> values.Cost:
    prices = (report_of(trace) or ImportReport()).prices
    by_agent, by_model = (
        [
            (entry.name, entry.cost_usd)
            for entry in entries
            if entry.cost_usd is not None and (entry.name or entry.cost_usd)
        ]
        for entries in ledgers
    )
    without, unused = (tuple(prices.without), tuple(prices.unused)) if prices else ((), ())
    return values.Cost(
        tuple(sorted(by_agent, key=lambda pair: -pair[1])),
        not has_all_costs(trace),
        prices.date if prices else "",
        prices.last_day if prices else "",
        without,
        unused,
        prices.source if prices else "",
        tuple(sorted(by_model, key=lambda pair: -pair[1])),
        cost_by_tool(trace),
        prices.stated_usd if prices else None,
        prices.has_all_stated if prices else True,
        tuple(prices.without_hour) if prices else (),
    )


def _further_files(view: TraceView) -> Iterator[values.Problem]:
    """Report the further files in which a root agent continues after a long pause."""
    if view.timing.unit != "s":
        return
    events, ends = view.trace.events, view.timing.ends
    continued: list[Source] = []
    roots = [agent for agent in view.agents if not agent.depth]
    for earlier, later in chain.from_iterable(pairwise(root.events) for root in roots):
        before, after = events[earlier].source, events[later].source
        if not isinstance(before, Source) or not isinstance(after, Source) or before.file == after.file:
            continue
        if ends[later] - ends[earlier] >= _LONG_PAUSE_S:
            continued.append(after)
    if continued:
        first = continued[0]
        yield values.Problem(ProblemKind.FURTHER_FILE, len(continued), place=f"{first.file}:{first.line}")


def _problems(trace: Trace) -> Iterator[values.Problem]:
    failed = [event for event in trace.events if event.status is Status.ERROR]
    if failed:
        yield values.Problem(ProblemKind.FAILED_EVENT, len(failed), event=failed[0])
    report = report_of(trace)
    if report is None:
        yield values.Problem(ProblemKind.FOREIGN_REPORT, 1)
        return
    sources = {event.id: event.source for event in trace.events if isinstance(event.source, Source)}
    for name, count in (*report.problems.items(), *report.dropped.items()):
        place = count.for_example[0] if count.for_example else ""
        if " -> " in place:  # an edge between two events: show the place of the second
            target = sources.get(place.rpartition(" -> ")[2])
            if target is not None:
                place = f"{target.file}:{target.line}"
        yield values.Problem(ProblemKind.IMPORT, count.number, name, place)
    if report.unknown_kinds:
        yield values.Problem(ProblemKind.UNKNOWN_RECORD, sum(report.unknown_kinds.values()))
