"""The temporal graph of a trace: events by number, edges between them, an order that respects the edges.

Everything here is linear in events and edges, but for one sort by time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Edge, Event, Tokens, Trace

_AT_ONCE = 1000  # so that the fields of an event are read while it is in the processor's caches


class Graph(NamedTuple):
    """Events by their number in the trace, and the edges between them.

    Attributes:
        events: The events, as in the trace.
        numbers: The number of each event by its id; of an id given twice, the first.
        sources: For each edge that joins known events, the number of its earlier event.
        targets: For each of these edges, the number of its later event.
        edges: These edges, as in the trace.
        times: When each event began, in the unit of the trace's clock.
        ends: When each event ended, as it says itself; None where it does not.
        agents: Who acts in each event.
        of_type: The numbers of the events of each type that occurs, rising.
        copied: The numbers of the events that are copied context.
        seqs: The `seq` of each event; empty where none has one that is not 0.
        above: Of the events that name the agent above theirs, their number and its name.
        tokens: The tokens of the events that have any, those of copied context included.
        costs: The cost of each event; empty where none states one that is not 0.
    """

    events: Sequence[Event]
    numbers: Mapping[str, int]
    sources: list[int]
    targets: list[int]
    edges: Sequence[Edge]
    times: list[float]
    ends: list[float | None]
    agents: list[str]
    of_type: Mapping[EventType, list[int]]
    copied: frozenset[int]
    seqs: Sequence[float | None]
    above: Mapping[int, str]
    tokens: list[Tokens]
    costs: Sequence[float | None]


def graph(trace: Trace) -> Graph:
    """The graph of a trace. Edges to unknown events are left out: a rule reports them."""
    events, edges = trace.events, trace.edges
    columns: list[list[Any]] = [[] for _ in range(10)]
    for begin in range(0, len(events), _AT_ONCE):
        rows = [
            (event.id, event.t, event.t_end, event.agent, event.type, event.copied_context, event.seq,
             event.parent_agent, event.tokens, event.cost_usd)
            for event in events[begin : begin + _AT_ONCE]
        ]  # fmt: skip
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column += values
    ids, times, ends, agents, types, copied, seqs, above, tokens, costs = columns
    numbers = dict(zip(ids, range(len(ids)), strict=True))
    if len(numbers) < len(events):
        numbers = {event.id: number for number, event in reversed(tuple(enumerate(events)))}
    try:
        sources, targets = [numbers[edge.src] for edge in edges], [numbers[edge.dst] for edge in edges]
    except KeyError:
        edges = [edge for edge in edges if edge.src in numbers and edge.dst in numbers]
        sources, targets = [numbers[edge.src] for edge in edges], [numbers[edge.dst] for edge in edges]
    of_type: defaultdict[EventType, list[int]] = defaultdict(list)
    for number, kind in enumerate(types):
        of_type[kind].append(number)
    return Graph(
        events, numbers, sources, targets, edges, times, ends, agents, of_type,
        frozenset([number for number, is_copied in enumerate(copied) if is_copied] if True in copied else ()),
        seqs if any(seqs) else (),
        {index: name for index, name in enumerate(above) if name} if any(above) else {},
        list(filter(None, tokens)),
        costs if any(costs) else (),
    )  # fmt: skip


def by_time(of: Graph) -> list[int]:
    """The numbers of the events by time, then by `seq`, then as they come."""
    found = list(range(len(of.events)))
    if of.seqs:
        found.sort(key=lambda index: of.seqs[index] or 0)
    if of.seqs or not all(map(le, of.times, islice(of.times, 1, None))):
        found.sort(key=of.times.__getitem__)
    return found


def ranks(timely: Sequence[int]) -> list[int]:
    """For each event its place among the numbers of the events by time."""
    found = [0] * len(timely)
    for at, index in enumerate(timely):
        found[index] = at
    return found
