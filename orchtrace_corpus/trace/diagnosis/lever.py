"""Finds the part of a run that would shorten it most if it took no time."""

from collections.abc import Collection, Sequence

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.findings import FindingKind
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis
from orchtrace_corpus.trace.view.timing import longest_path

LEAST_WASTE = 0.1
"""Waste that saves less than this share of the elapsed time is only a lever if no work saves more."""

_MAX_CANDIDATES = 4
"""How many of the largest candidates are computed: each takes a twelfth of the time of a diagnosis."""

_OPEN = (Activity.OPEN, Activity.OPEN_MODEL)


class Lever(NamedTuple):
    """A part of the critical path, and the time that a run would save without it.

    Attributes:
        agent: The agent that spends the time; empty for idle time and for findings.
        activity: The activity.
        tool: The tool; empty if its name is unknown, and for activities without a tool.
        seconds: The time it takes on the critical path, in the unit of the run.
        elapsed: The elapsed time of the run.
        saved: The most by which the run would be shorter without it: other paths still take their time.
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
    elapsed, events_on_path = diagnosis.summary.elapsed, _events_on_path(diagnosis)
    if not elapsed:
        return None
    levers: list[tuple[Lever, Collection[int]]] = []
    for (agent, activity, tool), seconds in on_path(diagnosis).items():
        if activity is not Activity.GAP:
            lever = Lever(agent, activity, tool, seconds, elapsed, seconds)
            levers.append((lever, events_on_path.get((agent, activity, tool), ())))
    waste = [(lever, events) for lever, events in levers if lever.activity in _OPEN]
    for kind, (seconds, events) in _finding_costs(diagnosis).items():
        waste.append((Lever("", Activity.FINDING, "", seconds, elapsed, seconds, kind), events))
    largest_waste = _most_saved(waste, diagnosis)
    if largest_waste is not None and largest_waste.saved >= LEAST_WASTE * elapsed:
        return largest_waste
    largest = _most_saved(levers, diagnosis)
    if largest is None or not largest.saved or largest.activity is Activity.ASSUMED:
        return None
    return largest


def _most_saved(levers: Sequence[tuple[Lever, Collection[int]]], diagnosis: Diagnosis) -> Lever | None:
    """Return the lever that saves most time.

    A lever saves at most its time on the critical path, and at most the elapsed time less the longest path of work
    without its events.
    """
    times = diagnosis.view.timing
    best: Lever | None = None
    for lever, indices in sorted(levers, key=lambda pair: -pair[0].seconds)[:_MAX_CANDIDATES]:
        if best is not None and lever.seconds <= best.saved:
            break
        weights = list(times.works)
        for index in indices:
            weights[index] = 0.0
        remaining = longest_path(times, weights, overlapping=True).length if indices else 0.0
        saved = min(lever.seconds, max(lever.elapsed - remaining, 0.0))
        if best is None or saved > best.saved:
            best = lever._replace(saved=saved)
    return best


def _events_on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], list[int]]:
    """Return the indices of the events of the critical path, by agent, activity and tool."""
    from orchtrace_corpus.trace.diagnosis import OF_TOOLS, activity_of, perhaps_waiting

    events, open_calls = diagnosis.view.trace.events, perhaps_waiting(diagnosis.view)
    indices: dict[tuple[str, Activity, str], list[int]] = {}
    for index in diagnosis.path.chain.events:
        event = events[index]
        activity = activity_of(event, is_assumed=index in diagnosis.assumed, is_open=index in open_calls)
        tool = event.tool if activity in OF_TOOLS else ""
        indices.setdefault((event.agent, activity, tool), []).append(index)
    return indices


def on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], float]:
    """Return the seconds of the critical path by agent, activity and tool; they add up to the elapsed time.

    The gaps of the path have no agent. Their activity is `IDLE` while no agent works, else `GAP`.
    """
    path, chain = diagnosis.path, diagnosis.path.chain
    parts = dict(zip(chain.events, chain.parts, strict=True))
    gaps = sum((*chain.gaps, chain.after))
    seconds = {("", Activity.IDLE, ""): path.idle, ("", Activity.GAP, ""): max(gaps - path.idle, 0.0)}
    for key, indices in _events_on_path(diagnosis).items():
        seconds[key] = sum(parts[index] for index in indices)
    return seconds


def _finding_costs(diagnosis: Diagnosis) -> dict[FindingKind, tuple[float, set[int]]]:
    """Return the seconds of the critical path that findings cost, and their events, by kind.

    Left out are costs that could not be avoided: the work of an agent with a large context, the idle time of a lead
    if there are open calls that it may wait for, and missing returns if the log is cut off.
    """
    chain = diagnosis.path.chain
    parts = dict(zip(chain.events, chain.parts, strict=True))
    costs: dict[FindingKind, set[int]] = {}
    idle = 0.0
    for finding in diagnosis.between.findings:
        if finding.kind is FindingKind.IDLE_LEAD and not diagnosis.view.open_calls:
            idle += finding.seconds or 0.0
        elif finding.kind is not FindingKind.LARGE_CONTEXT:
            costs.setdefault(finding.kind, set()).update(finding.cost_events)
    if diagnosis.is_cut:
        costs.pop(FindingKind.NO_RETURN, None)
    by_kind = {kind: (sum(parts.get(event, 0.0) for event in events), events) for kind, events in costs.items()}
    return {**by_kind, FindingKind.IDLE_LEAD: (min(idle, diagnosis.path.idle), set())}
