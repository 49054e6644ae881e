"""A trace under examination, with what several rules need of it."""

from orchtrace_corpus.trace.graph import Graph, graph
from orchtrace_corpus.trace.lives import Lineage, Lives, lives
from orchtrace_corpus.trace.model import Trace


class Subject:
    """A trace and its graph; what not every trace needs is worked out when a rule first asks for it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.graph: Graph = graph(trace)
        self._lives: Lives | None = None
        self._lineage: Lineage | None = None

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
