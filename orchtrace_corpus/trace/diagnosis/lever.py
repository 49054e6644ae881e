"""Finds the biggest lever on the time of a run: the part that would shorten the run most if it took no time."""

from collections.abc import Collection, Sequence

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.findings import FindingKind
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis
from orchtrace_corpus.trace.view.timing import longest_path

MIN_WASTE_SHARE = 0.1
"""Waste that saves at least this share of the elapsed time is the lever, even if some work would save more."""

_MAX_CANDIDATES = 4
"""The number of the largest candidates that are tried, since each takes a twelfth of the time of a diagnosis."""

_OPEN_ACTIVITIES = (Activity.OPEN, Activity.OPEN_MODEL)


class Lever(NamedTuple):
    """A part of the critical path, and the time that a run would save without it.

    Attributes:
        agent: The agent that spends the time; empty for idle time and for findings.
        activity: The activity.
        tool: The tool; empty if its name is unknown, and for activities without a tool.
        seconds: The time of the part on the critical path, in the unit of the run.
        elapsed: The elapsed time of the run.
        saved: An upper bound of the time that the run would save. It may be less than `seconds`, since other paths
            still take their time.
        finding: The kind of finding if the lever is all findings of one kind; else None.
    """

    agent: str
    activity: Activity
    tool: str
    seconds: float
    elapsed: float
    saved: float
    finding: FindingKind | None = None


def biggest_lever(diagnosis: Diagnosis) -> Lever | None:
    """Return the part that would shorten the run most if it took no time; None if no part would.

    Waste comes first, since it can be removed without loss: calls that perhaps only waited, and the cost of findings.
    Otherwise the lever is an activity on the critical path, or all its idle time. There is none if the largest part
    is time of an agent without records, since its content is unknown.
    """
    elapsed = diagnosis.summary.elapsed
    if not elapsed:
        return None
    events_on_path = _events_on_path(diagnosis)
    levers: list[tuple[Lever, Collection[int]]] = []  # each with its events
    for part, seconds in time_on_path(diagnosis).items():
        agent, activity, tool = part
        if activity is not Activity.GAP:
            lever = Lever(agent, activity, tool, seconds, elapsed, saved=seconds)
            levers.append((lever, events_on_path.get(part, ())))
    waste = [(lever, events) for lever, events in levers if lever.activity in _OPEN_ACTIVITIES]
    for kind, (seconds, events) in _finding_costs(diagnosis).items():
        waste.append((Lever("", Activity.FINDING, "", seconds, elapsed, saved=seconds, finding=kind), events))
    largest_waste = _largest_saving(waste, diagnosis)
    if largest_waste is not None and largest_waste.saved >= MIN_WASTE_SHARE * elapsed:
        return largest_waste
    largest = _largest_saving(levers, diagnosis)
    if largest is None or not largest.saved or largest.activity is Activity.ASSUMED:
        return None
    return largest


def _largest_saving(levers: Sequence[tuple[Lever, Collection[int]]], diagnosis: Diagnosis) -> Lever | None:
    """Return the lever that saves most time, with that time as `saved`; None without levers.

    A lever saves at most its time on the critical path, and at most the elapsed time less the longest path of work
    without its events.
    """
    times = diagnosis.view.timing
    best: Lever | None = None
    candidates = sorted(levers, key=lambda lever_and_events: -lever_and_events[0].seconds)[:_MAX_CANDIDATES]
    for lever, indices in candidates:
        if best is not None and lever.seconds <= best.saved:
            break  # this candidate and the smaller ones after it cannot save more
        longest = 0.0  # idle time has no events, so no path limits what it saves
        if indices:
            weights = list(times.works)
            for index in indices:
                weights[index] = 0.0
            longest = longest_path(times, weights, overlapping=True).length
        saved = min(lever.seconds, max(lever.elapsed - longest, 0.0))
        if best is None or saved > best.saved:
            best = lever._replace(saved=saved)
    return best


def _events_on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], list[int]]:
    """Return the indices of the events of the critical path, by agent, activity and tool."""
    from orchtrace_corpus.trace.diagnosis import TOOL_ACTIVITIES, activity_of, perhaps_waiting

    events, open_calls = diagnosis.view.trace.events, perhaps_waiting(diagnosis.view)
    indices_by_part: dict[tuple[str, Activity, str], list[int]] = {}
    for index in diagnosis.path.chain.events:
        event = events[index]
        activity = activity_of(event, is_assumed=index in diagnosis.assumed_events, is_open=index in open_calls)
        tool = event.tool if activity in TOOL_ACTIVITIES else ""
        indices_by_part.setdefault((event.agent, activity, tool), []).append(index)
    return indices_by_part


def time_on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], float]:
    """Return the time on the critical path by agent, activity and tool; it adds up to the elapsed time.

    The gaps of the path have no agent. Their activity is `IDLE` while no agent works, else `GAP`.
    """
    path, chain = diagnosis.path, diagnosis.path.chain
    time_by_event = dict(zip(chain.events, chain.worked, strict=True))
    gaps = sum((*chain.gaps, chain.after))
    time_by_part = {("", Activity.IDLE, ""): path.idle, ("", Activity.GAP, ""): max(gaps - path.idle, 0.0)}
    for part, indices in _events_on_path(diagnosis).items():
        time_by_part[part] = sum(time_by_event[index] for index in indices)
    return time_by_part


def _finding_costs(diagnosis: Diagnosis) -> dict[FindingKind, tuple[float, set[int]]]:
    """Return, by kind of finding, the time on the critical path that the findings cost, and their events.

    Costs that could not be avoided are left out: the work of an agent with a large context, the idle time of a lead
    if there are open calls that it may wait for, and missing returns if the log is cut off.
    """
    chain = diagnosis.path.chain
    time_by_event = dict(zip(chain.events, chain.worked, strict=True))
    events_by_kind: dict[FindingKind, set[int]] = {}
    idle = 0.0
    for finding in diagnosis.team_findings.findings:
        if finding.kind is FindingKind.IDLE_LEAD:
            if not diagnosis.view.open_calls:
                idle += finding.seconds or 0.0
        elif finding.kind is not FindingKind.LARGE_CONTEXT:
            events_by_kind.setdefault(finding.kind, set()).update(finding.cost_events)
    if diagnosis.is_cut:
        events_by_kind.pop(FindingKind.NO_RETURN, None)
    costs = {}
    for kind, events in events_by_kind.items():
        costs[kind] = sum(time_by_event.get(event, 0.0) for event in events), events
    costs[FindingKind.IDLE_LEAD] = min(idle, diagnosis.path.idle), set()  # idle time has no events
    return costs
