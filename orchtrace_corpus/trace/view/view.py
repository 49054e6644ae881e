"""A trace under examination, with what rules and measures need of it."""

from msgspec import UNSET

from orchtrace_corpus.trace.model.trace import Tokens, Trace
from orchtrace_corpus.trace.view.graph import Graph, by_time, graph, leads_forward, ranks, sorted_out
from orchtrace_corpus.trace.view.lifecycle import Lineage, Lives, lives


class Subject:
    """A trace and its graph; what not every trace needs is worked out when it is first asked for.

    Attributes:
        trace: The trace.
        graph: Its graph.
        is_timely: Whether `sequence` was found to be that of time and `seq`, so that no edge leads back in time.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.graph: Graph = graph(trace)
        self.is_timely = False
        self._sequence: list[int] | None = None
        self._lives: Lives | None = None
        self._lineage: Lineage | None = None
        self._tokens: list[Tokens] | None = None

    @property
    def sequence(self) -> list[int]:
        """The numbers of the events in an order that edges respect.

        Raises:
            CycleError: The edges go round in a circle.
        """
        if self._sequence is None:
            of = self.graph
            timely = by_time(of)
            rank = ranks(timely)
            self.is_timely = leads_forward(of, rank)
            self._sequence = timely if self.is_timely else sorted_out(of.sources, of.targets, timely, rank)
        return self._sequence

    @property
    def lives(self) -> Lives:
        """Who spawned whom, and when the agents live."""
        if self._lives is None:
            self._lives = lives(self.trace, self.graph)
        return self._lives

    @property
    def lineage(self) -> Lineage:
        """Who is above whom."""
        if self._lineage is None:
            self._lineage = Lineage(self.lives.parents)
        return self._lineage

    @property
    def tokens(self) -> list[Tokens]:
        """The tokens of the events that have any, those of copied context included."""
        if self._tokens is None:
            self._tokens = [event.tokens for event in self.trace.events if event.tokens is not UNSET]
        return self._tokens
