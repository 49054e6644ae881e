"""A trace under examination, with what several rules need of it."""

from functools import cached_property

from orchtrace_corpus.trace.graph import Graph, graph
from orchtrace_corpus.trace.lives import Lineage, Lives, lives
from orchtrace_corpus.trace.model import Trace


class Subject:
    """A trace and its graph; what not every trace needs is worked out when a rule first asks for it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.graph: Graph = graph(trace)

    @cached_property
    def lives(self) -> Lives:
        """Who spawned whom, and when the agents live."""
        return lives(self.trace, self.graph)

    @cached_property
    def lineage(self) -> Lineage:
        """Who is above whom."""
        return Lineage(self.lives.parents)
