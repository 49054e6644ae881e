"""The one thing that would shorten a run most if it took no time."""

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.findings import FindingKind
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis

LEAST_WASTE = 0.1
"""Waste that takes a smaller share of the elapsed time is no lever where work takes a larger one."""

_OPEN = (Activity.OPEN, Activity.OPEN_MODEL)


class Lever(NamedTuple):
    """What takes the largest part of the critical path.

    Attributes:
        agent: Whose it is; empty where nobody is at work, and for findings.
        activity: What it is.
        tool: The tool; empty where its name is unknown, and for other activities.
        seconds: How much of the critical path it takes, in the unit of the run.
        elapsed: How long the run took.
        finding: The findings that it is, all of this kind together; None where it is none.
    """

    agent: str
    activity: Activity
    tool: str
    seconds: float
    elapsed: float
    finding: FindingKind | None = None


def biggest_lever(diagnosis: Diagnosis) -> Lever | None:
    """What takes the largest part of the critical path, summed over all its stretches; None where nothing takes time.

    Waste goes first, since it can be spared without loss: calls that perhaps waited, and what findings cost. Else it
    is the largest activity; all time of gaps in which nobody works is one. None, too, where it is time that nobody
    saw, since nobody can say what is in it.
    """
    chain, elapsed = diagnosis.path.chain, diagnosis.summary.elapsed
    parts = dict(zip(chain.events, chain.parts, strict=True))
    wasted = [
        Lever("", Activity.FINDING, "", seconds, elapsed, kind) for kind, seconds in _findings(diagnosis, parts).items()
    ]
    levers = [Lever(*of, took, elapsed) for of, took in on_path(diagnosis).items() if of[1] is not Activity.GAP]
    wasted += [one for one in levers if one.activity in _OPEN]
    most = max(wasted, key=lambda one: one.seconds, default=None)
    if most is not None and most.seconds >= LEAST_WASTE * elapsed > 0:
        return most
    largest = max(levers, key=lambda one: one.seconds)
    return largest if elapsed and largest.seconds and largest.activity is not Activity.ASSUMED else None


def on_path(diagnosis: Diagnosis) -> dict[tuple[str, Activity, str], float]:
    """What the critical path consists of, by agent, activity and tool; all of it adds up to the elapsed time.

    Its gaps have no agent: they are idle as far as nobody works in them.
    """
    from orchtrace_corpus.trace.diagnosis import OF_TOOLS, activity_of, perhaps_waiting

    path, events = diagnosis.path, diagnosis.view.trace.events
    opened, chain = perhaps_waiting(diagnosis.view), path.chain
    gaps = sum((*chain.gaps, chain.after))
    took = {("", Activity.IDLE, ""): path.idle, ("", Activity.GAP, ""): max(gaps - path.idle, 0.0)}
    for number, part in zip(chain.events, chain.parts, strict=True):
        event = events[number]
        activity = activity_of(event, is_assumed=number in diagnosis.assumed, is_open=number in opened)
        of = event.agent, activity, event.tool if activity in OF_TOOLS else ""
        took[of] = took.get(of, 0.0) + part
    return took


def _findings(diagnosis: Diagnosis, parts: dict[int, float]) -> dict[FindingKind, float]:
    """How much of the critical path findings cost, by their kind; those that nothing can be spared of are left out.

    What a large context does must be done, and who idles beside an open call waits for that. Behind the end of a log
    that is cut off, agents may have returned.
    """
    costs: dict[FindingKind, set[int]] = {}
    idle = 0.0
    for one in diagnosis.between.findings:
        if one.kind is FindingKind.IDLE_LEAD and not diagnosis.view.open_calls:
            idle += one.seconds or 0.0
        elif one.kind is not FindingKind.LARGE_CONTEXT:
            costs.setdefault(one.kind, set()).update(one.cost_events)
    if diagnosis.is_cut:
        costs.pop(FindingKind.NO_RETURN, None)
    found = {kind: sum(parts.get(number, 0.0) for number in numbers) for kind, numbers in costs.items()}
    return {**found, FindingKind.IDLE_LEAD: min(idle, diagnosis.path.idle)}
