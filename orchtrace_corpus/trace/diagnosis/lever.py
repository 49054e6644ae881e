"""The one thing that would shorten a run most if it took no time."""

from collections.abc import Collection, Sequence

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.findings import FindingKind
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis
from orchtrace_corpus.trace.view.timing import longest_path

LEAST_WASTE = 0.1
"""Waste that saves a smaller share of the elapsed time is no lever where work saves a larger one."""

_MOST_TRIED = 4
"""The largest parts of the critical path whose saving is computed: each takes a twelfth of the time of a diagnosis."""

_OPEN = (Activity.OPEN, Activity.OPEN_MODEL)


class Lever(NamedTuple):
    """A part of the critical path, and the time that a run would save without it.

    Attributes:
        agent: Whose it is; empty where nobody is at work, and for findings.
        activity: What it is.
        tool: The tool; empty where its name is unknown, and for other activities.
        seconds: How much of the critical path it takes, in the unit of the run.
        elapsed: How long the run took.
        saved: By how much the run would be shorter without it, at most: other paths still take their time.
        finding: The findings that it is, all of this kind together; None where it is none.
    """

    agent: str
    activity: Activity
    tool: str
    seconds: float
    elapsed: float
    saved: float
    finding: FindingKind | None = None


def biggest_lever(diagnosis: Diagnosis) -> Lever | None:
    """Return what would shorten the run most if it took no time; None where nothing takes time.

    Waste goes first, since it can be spared without loss: calls that perhaps waited, and what findings cost. Else it
    is an activity on the critical path; all time of gaps in which nobody works is one. None, too, where it is time
    that nobody saw, since nobody can say what is in it.
    """
    elapsed, numbers = diagnosis.summary.elapsed, _numbers_on_path(diagnosis)
    levers: list[tuple[Lever, Collection[int]]] = []
    for of, took in on_path(diagnosis).items():
        if of[1] is not Activity.GAP:
            levers.append((Lever(*of, took, elapsed, took), numbers.get(of, ())))
    waste = [pair for pair in levers if pair[0].activity in _OPEN]
    for kind, (took, events) in _findings(diagnosis).items():
        waste.append((Lever("", Activity.FINDING, "", took, elapsed, took, kind), events))
    most = _most_saved(waste, diagnosis)
    if most is not None and most.saved >= LEAST_WASTE * elapsed > 0:
        return most
    largest = _most_saved(levers, diagnosis)
    return largest if largest and elapsed and largest.saved and largest.activity is not Activity.ASSUMED else None


def _most_saved(levers: Sequence[tuple[Lever, Collection[int]]], diagnosis: Diagnosis) -> Lever | None:
    """Return the lever that saves most.

    A lever saves at most its time on the critical path, and at most what the longest path of work without its events
    leaves of the elapsed time.
    """
    best, times = None, diagnosis.view.timing
    for lever, indices in sorted(levers, key=lambda pair: -pair[0].seconds)[:_MOST_TRIED]:
        if best is not None and lever.seconds <= best.saved:
            break
        weights = list(times.works)
        for index in indices:
            weights[index] = 0.0
        left = longest_path(times, weights, overlapping=True).length if indices else 0.0
        saved = min(lever.seconds, max(lever.elapsed - left, 0.0))
        if best is None or saved > best.saved:
            best = lever._replace(saved=saved)
    return best


def _numbers_on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], list[int]]:
    """Return the numbers of the events of the critical path, by agent, activity and tool."""
    from orchtrace_corpus.trace.diagnosis import OF_TOOLS, activity_of, perhaps_waiting

    events, opened = diagnosis.view.trace.events, perhaps_waiting(diagnosis.view)
    numbers: dict[tuple[str, Activity, str], list[int]] = {}
    for index in diagnosis.path.chain.events:
        event = events[index]
        activity = activity_of(event, is_assumed=index in diagnosis.assumed, is_open=index in opened)
        of = event.agent, activity, event.tool if activity in OF_TOOLS else ""
        numbers.setdefault(of, []).append(index)
    return numbers


def on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], float]:
    """Return the parts of the critical path by agent, activity and tool; they add up to the elapsed time.

    Its gaps have no agent: they are idle as far as nobody works in them.
    """
    path, chain = diagnosis.path, diagnosis.path.chain
    parts = dict(zip(chain.events, chain.parts, strict=True))
    gaps = sum((*chain.gaps, chain.after))
    took = {("", Activity.IDLE, ""): path.idle, ("", Activity.GAP, ""): max(gaps - path.idle, 0.0)}
    took |= {of: sum(parts[index] for index in indices) for of, indices in _numbers_on_path(diagnosis).items()}
    return took


def _findings(diagnosis: Diagnosis) -> dict[FindingKind, tuple[float, set[int]]]:
    """Return how much of the critical path findings cost, and their events, by kind; only what can be spared.

    What a large context does must be done, and who idles beside an open call waits for that. Behind the end of a log
    that is cut off, agents may have returned.
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
    found = {kind: (sum(parts.get(number, 0.0) for number in numbers), numbers) for kind, numbers in costs.items()}
    return {**found, FindingKind.IDLE_LEAD: (min(idle, diagnosis.path.idle), set())}
