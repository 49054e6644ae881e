"""Diagnoses a run: where its time and money went, as the values that `corpus trace doctor` shows.

Nothing here makes sentences; `trace.render.sentences` does.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain as joined
from itertools import groupby, pairwise

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
"""The activities of a tool, certain or possible; the tool is named with them."""

_FIRST_CHARACTERS = 200
_HASH = re.compile(r"sha256:[0-9a-f]+$")
_LONG_PAUSE_S = 3600.0
LEAST_GAP = 0.02
"""Gaps of the critical path that take a smaller share of the elapsed time are only added up."""
_LEAST_WORK = 1e-6
"""Work that takes a smaller share of a gap is a rounding error."""


def diagnose(trace: Trace | TraceView, origin: Origin | None = None) -> Diagnosis:
    """Return where the time and the money of a run went.

    Args:
        trace: A trace that the graph rules have no error against.
        origin: Where it is from, if more is known of it than the trace says.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    events = view.trace.events
    origin = origin or Origin(has_prices=any(event.cost_usd is not None for event in events))
    people = frozenset(agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN)
    machines = [one for one in view.agents if one.agent not in people]
    team = tuple(
        machine for machine in machines if not machine.events or any(not events[n].warm_up for n in machine.events)
    )
    spawned = _spawned(team)
    assumed, summary = _assumed(view.timing), summarize(view, origin.file)
    ledgers = ledger(view.trace, "agent"), ledger(view.trace, "model")
    return Diagnosis(
        view,
        origin,
        summary,
        view.timing.waited,
        people,
        team,
        len(machines) - len(team),
        tuple(spawned.items()),
        tuple(one for one in team if not one.depth and one.agent not in spawned),
        assumed,
        _parallelism(view.timing, view, assumed),
        _parallelism(view.timing_if_waiting, view, assumed),
        _path(view, assumed),
        _tokens(view, *ledgers),
        _cost(view.trace, *ledgers),
        (*_problems(view.trace), *(_further_files(view) if summary.files > 1 else ())),
        findings.find(view),
    )


def summarize(trace: Trace | TraceView, file: str = "") -> Summary:
    """The main figures of a run, and the file that it begins in.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    run, times = view.trace, view.timing
    people = {agent.id for agent in run.agents if agent.kind is AgentKind.HUMAN}
    own = [event for event in run.events if not event.copied_context]
    spent = [event.tokens for event in own if event.tokens and event.tokens.is_known]
    cost = sum_known([event.cost_usd for event in own])
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
    """Return how the first prompt of a person begins, where the trace holds contents; else an empty text.

    Prompts that a program wrote, which begin with a tag, come last.
    """
    prompts = [event.content_ref for event in trace.events if event.type is EventType.HUMAN and event.content_ref]
    texts = [" ".join(prompt[:_FIRST_CHARACTERS].split()) for prompt in prompts if not _HASH.match(prompt)]
    return next((text for text in texts if not text.startswith("<")), texts[0] if texts else "")


def has_statuses(trace: Trace) -> bool:
    """Return True if a call of a trace states how it ended; otherwise errors are unknown."""
    calls = (EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT)
    return any(event.type in calls and event.status is not Status.UNKNOWN for event in trace.events)


def _day(run: Trace, times: Timing) -> str:
    """The day on which the clock starts; empty where that is unknown."""
    epoch = run.clock.epoch or ""
    if times.begin <= 0 or times.unit != "s" or not epoch:
        return epoch[:10]
    from datetime import datetime, timedelta

    return (datetime.fromisoformat(epoch) + timedelta(seconds=times.begin)).isoformat()[:10]


def match(own: str, file: str, name: str) -> Match:
    """Return how well a name matches a session: its file, its full name, or the beginning of its name.

    Args:
        own: The name of the session.
        file: The file that it begins in; empty where that is unknown.
        name: What somebody calls it.
    """
    if name and file:
        given, known = (os.sep + os.path.normpath(path) for path in (name, file))
        if given.endswith(known) or known.endswith(given):
            return Match.FILE
    if own == name:
        return Match.NAME
    return Match.BEGINNING if own.startswith(name) else Match.NONE


def _spawned(team: Sequence[AgentSpan]) -> dict[str, tuple[AgentSpan, ...]]:
    """The agents below each agent that has any, by the tree."""
    above: list[AgentSpan] = []
    found: dict[str, tuple[AgentSpan, ...]] = {}
    for one in team:
        del above[one.depth :]
        if above and above[-1].depth == one.depth - 1:
            found[above[-1].agent] = (*found.get(above[-1].agent, ()), one)
        above.append(one)
    return found


def _assumed(times: Timing) -> frozenset[int]:
    """The numbers of events that only stand for the life of an agent of which no record is: its time is assumed."""
    of = times.graph
    found = {number for number in of.of_type.get(EventType.INFERENCE, ()) if stands_for_life(of.events[number])}
    seen = {event.agent for index, event in enumerate(of.events) if times.works[index] > 0 and index not in found}
    return frozenset(number for number in found if of.events[number].agent not in seen)


def perhaps_waiting(view: TraceView) -> frozenset[int]:
    """Return the numbers of the open calls that perhaps waited: all but those that had perhaps ended."""
    return frozenset(call.event for call in view.open_calls if call.cause is not Cause.UNFINISHED)


def _parallelism(times: Timing, view: TraceView, assumed: frozenset[int]) -> values.Parallelism | None:
    profile, wall = concurrency(times), times.elapsed
    if not wall:
        return None
    return values.Parallelism(
        max(profile),
        sum(time for index, time in profile.items() if index > 1) / wall,
        profile.get(1, 0.0) / wall,
        profile.get(0, 0.0) / wall,
        sum(times.works),
        sum(times.works[index] for index in times.graph.of_type.get(EventType.TOOL_CALL, ())),
        sum(times.works[index] for index in assumed),
        sum(times.works[open_call.event] for open_call in view.open_calls),
    )


def _path(view: TraceView, assumed: frozenset[int]) -> values.CriticalPath:
    times, opened = view.timing, perhaps_waiting(view)
    chain = critical_chain(times)
    least = LEAST_GAP * times.elapsed
    gaps = sum(gap for gap in (*chain.gaps, chain.after) if gap < least)

    def stretches(of: Chain, least: float) -> tuple[values.Stretch, ...]:
        return tuple(_stretches(times, of, assumed, opened, least))

    def work_path(times: Timing) -> values.WorkPath:
        path = longest_path(times, times.works, overlapping=True)
        parts = [times.works[event] for event in path.events]
        for place, (index, later) in enumerate(pairwise(path.events)):  # work that goes on beside its successor
            parts[place] -= max(times.starts[index] + times.works[index] - times.starts[later], 0.0)
        no_gaps = Chain(path.events, parts, [0.0] * len(parts), 0.0)
        return values.WorkPath(path.length, tuple(path.events), stretches(no_gaps, 0.0))

    span = work_path(times)
    span_if_waiting = work_path(view.timing_if_waiting) if opened else span
    idle = _idle(times, chain)
    return values.CriticalPath(chain, stretches(chain, least), gaps, idle, span, span_if_waiting, len(times.unknown))


def _idle(times: Timing, chain: Chain) -> float:
    """For how long nobody worked in the gaps of a chain."""
    gaps, at = list[tuple[float, float]](), times.begin
    for part, gap in zip([*chain.parts, 0.0], [*chain.gaps, chain.after], strict=True):
        gaps += [(at, at + gap)] if gap > 0 else []
        at += gap + part
    busy = union((begin, begin + work) for begin, work in zip(times.begins, times.works, strict=True)) if gaps else []
    return length(without(gaps, busy))


def _stretches(
    times: Timing, chain: Chain, assumed: frozenset[int], opened: frozenset[int], least: float
) -> Iterator[values.Stretch]:
    pieces: list[tuple[str, Activity, str, float, float]] = []  # agent, activity, tool, how long, since when
    at = times.begin
    for index, part, gap in zip([*chain.events, -1], [*chain.parts, 0.0], [*chain.gaps, chain.after], strict=True):
        if gap >= least and gap > 0:
            pieces.append(("", Activity.IDLE, "", gap, at))
        if part > 0:
            event = times.graph.events[index]
            activity = activity_of(event, is_assumed=index in assumed, is_open=index in opened)
            pieces.append((event.agent, activity, event.tool if activity in OF_TOOLS else "", part, at))
        at += gap + part
    for agent, group in groupby(pieces, key=lambda piece: piece[0]):
        found = list(group)
        seconds = sum(piece[3] for piece in found)
        if not agent:
            yield _gap(times, found[0][4], found[-1][4] + found[-1][3], seconds)
            continue
        took: dict[tuple[Activity, str], float] = {}
        for _, activity, tool, part, _ in found:
            took[activity, tool] = took.get((activity, tool), 0.0) + part
        yield values.Stretch(agent, seconds, *max(took, key=took.__getitem__), len(took) > 1)


def _gap(times: Timing, begin: float, end: float, seconds: float) -> values.Stretch:
    """A gap of the critical path, and who worked meanwhile."""
    at_work: dict[str, Intervals] = {}
    for agent, start, work in zip(times.graph.agents, times.begins, times.works, strict=True):
        inside = max(start, begin), min(start + work, end)
        if inside[1] - inside[0] > _LEAST_WORK * seconds:
            at_work.setdefault(agent, []).append(inside)
    worked = min(length(union(joined(*at_work.values()))), seconds)
    return values.Stretch("", seconds, Activity.GAP if at_work else Activity.IDLE, "", False, tuple(at_work), worked)


def activity_of(event: Event, *, is_assumed: bool = False, is_open: bool = False) -> Activity:
    """Return the activity of an event: of a tool or a model, and whether its time is work."""
    if is_assumed:
        return Activity.ASSUMED
    if event.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        return Activity.OPEN if is_open else Activity.TOOL
    return Activity.OPEN_MODEL if is_open else Activity.MODEL


def _tokens(view: TraceView, agents: Sequence[Entry], models: Sequence[Entry]) -> values.TokenUse:
    trace, report = view.trace, report_of(view.trace) or ImportReport()
    entries = [entry for entry in models if entry.total is not None]
    reason, unsure = trace.reasons.get("costs.tokens", "").rstrip("."), tuple(report.unsure())
    missing = {} if reason else report.missing()
    kinds = [kind for kind in KINDS if kind != "reasoning"]
    repeated = report.repeated()
    spared = [_total_of(line, kinds) for line in repeated]
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
        (sum(line.records for line in repeated), sum(spared)),
        _total_of(report.token_ledger.get(LedgerLine.RESTARTED), kinds),
    )


def _total_of(line: Line | None, kinds: Sequence[str]) -> float:
    """Return the tokens of a line of the ledger, divided by kind or not."""
    if line is None:
        return 0.0
    return sum(line.tokens.get(kind, 0) for kind in kinds) or line.tokens.get("total", 0)


def _cost(trace: Trace, *ledgers: Sequence[Entry]) -> values.Cost:
    prices = (report_of(trace) or ImportReport()).prices
    priced, by_model = (
        [
            (entry.name, entry.cost_usd)
            for entry in entries
            if entry.cost_usd is not None and (entry.name or entry.cost_usd)
        ]
        for entries in ledgers
    )
    without, unused = (tuple(prices.without), tuple(prices.unused)) if prices else ((), ())
    return values.Cost(
        tuple(sorted(priced, key=lambda pair: -pair[1])),
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
    """Return the files in which an agent without a spawn goes on, long after the file before."""
    events, ends, found = view.trace.events, view.timing.ends, list[Source]()
    for earlier, later in (pair for agent in view.agents if not agent.depth for pair in pairwise(agent.events)):
        before, after = events[earlier].source, events[later].source
        if isinstance(before, Source) and isinstance(after, Source) and before.file != after.file:
            found += [after] if ends[later] - ends[earlier] >= _LONG_PAUSE_S else []
    if found and view.timing.unit == "s":
        place = f"{found[0].file}:{found[0].line}"
        yield values.Problem(ProblemKind.FURTHER_FILE, len(found), place=place)


def _problems(trace: Trace) -> Iterator[values.Problem]:
    failed = [event for event in trace.events if event.status is Status.ERROR]
    if failed:
        yield values.Problem(ProblemKind.FAILED_EVENT, len(failed), event=failed[0])
    report = report_of(trace)
    if report is None:
        yield values.Problem(ProblemKind.FOREIGN_REPORT, 1)
        return
    sources = {event.id: event.source for event in trace.events if isinstance(event.source, Source)}
    for name, noted in (*report.problems.items(), *report.dropped.items()):
        place = noted.for_example[0] if noted.for_example else ""
        if " -> " in place and (later := sources.get(place.rpartition(" -> ")[2])):  # two events of the trace
            place = f"{later.file}:{later.line}"
        yield values.Problem(ProblemKind.IMPORT, noted.number, name, place)
    if report.unknown_kinds:
        yield values.Problem(ProblemKind.UNKNOWN_RECORD, sum(report.unknown_kinds.values()))
