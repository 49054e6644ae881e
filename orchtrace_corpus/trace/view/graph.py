"""The temporal graph of a trace: its events by index, the edges between them, and the order of events by time.

Building the graph is linear in events and edges. Only the order by time needs a sort.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import le

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Edge, Event, Tokens, Trace

_CHUNK_EVENTS = 1000  # so few that all fields of an event are read while it is in the processor's caches


class Graph(NamedTuple):
    """The events of a trace and the edges between them. Lists with a value for each event are in the trace's order.

    Attributes:
        events: The events, as in the trace.
        indices: The index of each event by its id; for an id that several events have, the index of the first.
        sources: For each edge between known events, the index of the event it leaves.
        targets: For each of these edges, the index of the event it enters.
        edges: These edges, as in the trace.
        times: When each event began, in the unit of the trace's clock.
        ends: When each event ended; None if the event does not say.
        agents: The agent of each event.
        indices_by_type: The indices of the events of each type that occurs, in ascending order.
        copied: The indices of the events that are copied context.
        seqs: The `seq` of each event; empty if no event has one other than 0.
        named_parents: For each event that names its agent's parent, that parent.
        tokens: The tokens of the events that have any, including copied context.
        costs: The cost of each event; empty if no event states one other than 0.
    """

    events: Sequence[Event]
    indices: Mapping[str, int]
    sources: list[int]
    targets: list[int]
    edges: Sequence[Edge]
    times: list[float]
    ends: list[float | None]
    agents: list[str]
    indices_by_type: Mapping[EventType, list[int]]
    copied: frozenset[int]
    seqs: Sequence[float | None]
    named_parents: Mapping[int, str]
    tokens: list[Tokens]
    costs: Sequence[float | None]

    def indices_of(self, types: Iterable[EventType]) -> list[int]:
        """Return the indices of the events of some types, one type after another."""
        indices: list[int] = []
        for kind in types:
            indices += self.indices_by_type.get(kind, ())
        return indices


def build_graph(trace: Trace) -> Graph:
    """Return the graph of a trace. Edges to unknown events are left out: a rule reports them."""
    events, edges = trace.events, trace.edges
    columns: list[list[Any]] = [[] for _ in range(10)]  # as many as there are fields in `rows`
    for begin in range(0, len(events), _CHUNK_EVENTS):
        rows = [
            (event.id, event.t, event.t_end, event.agent, event.type, event.copied_context, event.seq,
             event.parent_agent, event.tokens, event.cost_usd)
            for event in events[begin : begin + _CHUNK_EVENTS]
        ]  # fmt: skip
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column += values
    ids, times, ends, agents, types, copied, seqs, parents, tokens, costs = columns
    indices = dict(zip(ids, range(len(ids)), strict=True))
    if len(indices) < len(events):  # an id is repeated: backwards, so that the first event with the id remains
        indices = {event.id: index for index, event in reversed(tuple(enumerate(events)))}
    try:
        sources = [indices[edge.src] for edge in edges]
        targets = [indices[edge.dst] for edge in edges]
    except KeyError:
        edges = [edge for edge in edges if edge.src in indices and edge.dst in indices]
        sources = [indices[edge.src] for edge in edges]
        targets = [indices[edge.dst] for edge in edges]
    indices_by_type: defaultdict[EventType, list[int]] = defaultdict(list)
    for index, kind in enumerate(types):
        indices_by_type[kind].append(index)
    return Graph(
        events=events,
        indices=indices,
        sources=sources,
        targets=targets,
        edges=edges,
        times=times,
        ends=ends,
        agents=agents,
        indices_by_type=indices_by_type,
        copied=frozenset([index for index, is_copied in enumerate(copied) if is_copied]),
        seqs=seqs if any(seqs) else (),
        named_parents={index: parent for index, parent in enumerate(parents) if parent},
        tokens=list(filter(None, tokens)),
        costs=costs if any(costs) else (),
    )


def order_by_time(graph: Graph) -> list[int]:
    """Return the indices of the events by time, then by `seq`, then in trace order."""
    order = list(range(len(graph.events)))
    if graph.seqs:
        order.sort(key=lambda index: graph.seqs[index] or 0)
    has_sorted_times = all(map(le, graph.times, islice(graph.times, 1, None)))
    if graph.seqs or not has_sorted_times:
        order.sort(key=graph.times.__getitem__)  # keeps the order by `seq` of events at the same time
    return order


def positions(order: Sequence[int]) -> list[int]:
    """Return the position of each event in an order, given as a list of event indices."""
    position_by_event = [0] * len(order)
    for position, index in enumerate(order):
        position_by_event[index] = position
    return position_by_event
