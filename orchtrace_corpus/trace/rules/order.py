"""Ids, edges and time: what is needed for the events to form a graph that time can run through."""

from collections.abc import Iterator
from itertools import pairwise
from operator import lt

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.graph import CycleError, Graph, order
from orchtrace_corpus.trace.problem import Problem
from orchtrace_corpus.trace.rules.subject import Subject


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
    for number, edge in enumerate(trace.edges):
        for end, name in (("src", edge.src), ("dst", edge.dst)):
            if name not in of.numbers:
                yield Problem("T202", f"there is no event {quote(name)}", ("edges", number, end))


def check_cycles(subject: Subject) -> Iterator[Problem]:
    """Edges that lead back to where they began: each event would have to be before itself."""
    trace, of = subject.trace, subject.graph
    try:
        order(of)
    except CycleError as error:
        circle = [*error.events, error.events[0]]
        shown = " -> ".join(quote(of.events[number].id) for number in circle[:6])
        more = f" -> … ({len(error.events)} events)" if len(circle) > 6 else ""
        steps = set(pairwise(circle))
        closing = next(n for n, edge in enumerate(trace.edges) if _ends(edge.src, edge.dst, of) in steps)
        yield Problem("T203", f"the edges go round in a circle: {shown}{more}", ("edges", closing))


def check_times(subject: Subject) -> Iterator[Problem]:
    """An edge back in time, beyond the skew that the clock declares; an event that ends before it begins."""
    trace, of = subject.trace, subject.graph
    skew = trace.clock.skew
    times = of.times
    earliest = [time - skew for time in times] if skew else times
    if any(map(lt, map(times.__getitem__, of.targets), map(earliest.__getitem__, of.sources))):
        for number, edge in enumerate(trace.edges):
            source, target = _ends(edge.src, edge.dst, of)
            if source >= 0 and target >= 0 and times[target] < times[source] - skew:
                message = (
                    f"the edge goes back in time, from t {times[source]:g} to t {times[target]:g}; "
                    "turn it round, correct the times, or declare $.clock.skew"
                )
                yield Problem("T204", message, ("edges", number))
    for number, end in enumerate(of.ends):
        if end is not None and end < times[number]:
            message = f"the event ends at {end:g}, before it begins at {times[number]:g}"
            yield Problem("T218", message, ("events", number, "t_end"))


def _ends(source: str, target: str, of: Graph) -> tuple[int, int]:
    return of.numbers.get(source, -1), of.numbers.get(target, -1)
