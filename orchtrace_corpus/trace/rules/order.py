"""Ids, edges and time: what is needed for the events to form a graph that time can run through."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import attrgetter, lt

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.model.decode import Problem
from orchtrace_corpus.trace.model.trace import Edge
from orchtrace_corpus.trace.view.graph import CycleError, Graph
from orchtrace_corpus.trace.view.lifecycle import is_after
from orchtrace_corpus.trace.view.view import Subject

_MOST_GUESSES, _MOST_NAMES = 10, 10_000
"""For so many ids of no event, in a trace of so many events, another spelling is looked for, which takes time."""

_SEQ = attrgetter("seq")
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))


def check_ids(subject: Subject) -> Iterator[Problem]:
    """Two events of one id, or two agents: nothing could be said of either."""
    trace, of = subject.trace, subject.graph
    if len(of.numbers) < len(trace.events):
        for number, event in enumerate(trace.events):
            first = of.numbers[event.id]
            if first != number:
                message = f"{quote(event.id)} is the id of $.events[{first}], too; give each event its own"
                yield Problem("T201", message, ("events", number, "id"))
    seen: dict[str, int] = {}
    for number, agent in enumerate(trace.agents):
        first = seen.setdefault(agent.id, number)
        if first != number:
            yield Problem("T201", f"{quote(agent.id)} is $.agents[{first}], too; keep one", ("agents", number, "id"))


def check_edges(subject: Subject) -> Iterator[Problem]:
    """An edge from or to an event that there is not."""
    trace, of = subject.trace, subject.graph
    if len(of.edges) == len(trace.edges):
        return
    told = 0
    for number, edge in enumerate(trace.edges):
        for end, name in (("src", edge.src), ("dst", edge.dst)):
            if name not in of.numbers:
                near = _near(name, of) if told < _MOST_GUESSES else ""
                told += 1
                message = f"there is no event {quote(name)}{near}; correct the id, or remove the edge"
                yield Problem("T202", message, ("edges", number, end))


def _near(name: str, of: Graph) -> str:
    """The event whose id is spelled nearly so, unless the ids differ in their numbers alone."""
    if len(of.numbers) > _MOST_NAMES:
        return ""
    from difflib import get_close_matches  # only for who has made a mistake

    known = [one for one in of.numbers if _letters(one) != _letters(name)]
    near = get_close_matches(name[:80], known, n=1, cutoff=0.8)
    return f" (did you mean {quote(near[0])}?)" if near else ""


def _letters(name: str) -> str:
    return name.translate(_NO_DIGITS)


def check_cycles(subject: Subject) -> Iterator[Problem]:
    """Edges that lead back to where they began: each event would have to be before itself."""
    trace, of = subject.trace, subject.graph
    try:
        subject.sequence  # noqa: B018 -- there is one, or there is a circle
    except CycleError as error:
        circle = [*error.events, error.events[0]]
        shown = " -> ".join(quote(of.events[number].id) for number in circle[:6])
        more = f" -> … ({len(error.events)} events)" if len(circle) > 6 else ""
        steps = set(pairwise(circle))
        places = [number for number, edge in enumerate(trace.edges) if _ends(edge.src, edge.dst, of) in steps]
        closing = max(places, key=lambda number: (_back(trace.edges[number], of), number))
        message = f"the edges go round in a circle: {shown}{more}; remove the one that leads back, or turn it round"
        yield Problem("T203", message, ("edges", closing))


def _back(edge: Edge, of: Graph) -> tuple[float, float]:
    """How far an edge leads back in time, and in the order of the log."""
    source, target = (of.events[number] for number in _ends(edge.src, edge.dst, of))
    return source.t - target.t, (source.seq or 0) - (target.seq or 0)


def check_times(subject: Subject) -> Iterator[Problem]:
    """An edge back in time, beyond the skew that the clock declares; an event that ends before it begins."""
    of = subject.graph
    if not subject.is_timely:
        yield from _check_back(subject)
    for number, end in enumerate(of.ends):
        if end is not None and end < of.times[number]:
            message = f"the event ends at {end:g}, before it begins at {of.times[number]:g}"
            yield Problem("T218", message, ("events", number, "t_end"))


def _check_back(subject: Subject) -> Iterator[Problem]:
    """Edges from an event that is certainly later than the one that they lead to."""
    trace, of = subject.trace, subject.graph
    skew, events, time = trace.clock.skew, of.events, of.times.__getitem__
    if not any(map(_SEQ, events)) and not any(map(lt, map(time, of.targets), map(time, of.sources))):
        return
    numbers: Iterable[int] = range(len(of.edges))
    if len(of.edges) < len(trace.edges):
        numbers = [n for n, edge in enumerate(trace.edges) if edge.src in of.numbers and edge.dst in of.numbers]
    for number, source, target in zip(numbers, of.sources, of.targets, strict=True):
        earlier, later = events[source], events[target]
        if later.t > earlier.t or not is_after(earlier, later, skew):
            continue
        message = f"the edge goes back in time, from t {earlier.t:g} to t {later.t:g}"
        mend = "turn it round, correct the times, or declare $.clock.skew"
        if earlier.t == later.t:
            message = f"the edge goes back in time: at t {later.t:g}, from seq {earlier.seq} to seq {later.seq}"
            mend = "turn it round, or correct the seq of either"
        yield Problem("T204", f"{message}; {mend}", ("edges", number))


def _ends(source: str, target: str, of: Graph) -> tuple[int, int]:
    return of.numbers.get(source, -1), of.numbers.get(target, -1)
