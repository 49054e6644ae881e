"""Everything derived from a trace: graph, order, lifecycle, lineage, timing, agent tree.

The modules of this package compute these values. `TraceView` computes each value once, on first use. Most modules are
imported only then, because validation does not need them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import lt

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any, Generic, TypeVar
from orchtrace_corpus.base.cycles import sort_topologically
from orchtrace_corpus.trace.view.graph import Graph, build_graph, order_by_time, positions
from orchtrace_corpus.trace.view.lifecycle import Lifecycle, Lineage, lifecycle

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace
    from orchtrace_corpus.trace.view.agent_tree import AgentSpan, AgentTime
    from orchtrace_corpus.trace.view.influence import EffectfulCall, Influence
    from orchtrace_corpus.trace.view.open_calls import OpenCall
    from orchtrace_corpus.trace.view.timing import Timing

Value = TypeVar("Value")


class CachedProperty(Generic[Value]):
    """A property that is computed once: `functools.cached_property` without the lock that it takes in Python 3.11."""

    def __init__(self, derive: Callable[[Any], Value]) -> None:
        self._derive = derive
        self._name = derive.__name__
        self.__doc__ = derive.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Value:
        value = self._derive(instance)
        # From now on Python finds the value on the instance. Writing to `__dict__` would make every access slower.
        setattr(instance, self._name, value)
        return value


class TraceView:
    """A trace and the values derived from its events and edges, each computed on first use.

    Attributes:
        trace: The trace.
        file: The file that the trace was read from; empty if unknown.
    """

    def __init__(self, trace: Trace, file: str = "") -> None:
        self.trace = trace
        self.file = file

    @classmethod
    def of(cls, trace: Trace | TraceView) -> TraceView:
        """Return the view of a trace; a view is returned unchanged."""
        return trace if isinstance(trace, TraceView) else cls(trace)

    @CachedProperty
    def graph(self) -> Graph:
        """The temporal graph of the events."""
        return build_graph(self.trace)

    @CachedProperty
    def _by_time(self) -> tuple[list[int], list[int]]:
        """The event indices by time, and the position of each event in that order.

        If the trace is in that order, both are the same list, which `is_timely` uses for a faster test.
        """
        order = order_by_time(self.graph)
        if order == list(range(len(order))):
            return order, order
        return order, positions(order)

    @CachedProperty
    def is_timely(self) -> bool:
        """True if every edge leads forward in the order by time and `seq`."""
        order, position = self._by_time
        sources, targets = self.graph.sources, self.graph.targets
        if order is not position:
            sources = [position[source] for source in sources]
            targets = [position[target] for target in targets]
        return all(map(lt, sources, targets))

    @CachedProperty
    def sequence(self) -> list[int]:
        """The event indices in an order in which every edge leads forward, by time wherever the edges allow it.

        Raises:
            CycleError: The edges form a cycle. All properties that need this order raise this error.
        """
        order, position = self._by_time
        if self.is_timely:
            return order
        return sort_topologically(self.graph.sources, self.graph.targets, order, position)

    @CachedProperty
    def lifecycle(self) -> Lifecycle:
        """The parent of each agent, and the events that begin and end it."""
        return lifecycle(self.trace, self.graph)

    @CachedProperty
    def lineage(self) -> Lineage:
        """The ancestors of each agent."""
        return Lineage(self.lifecycle.parents)

    @CachedProperty
    def untrusted(self) -> frozenset[int]:
        """The indices of the events whose content is not trusted."""
        from orchtrace_corpus.trace.view.influence import untrusted_events

        return untrusted_events(self.trace.events)

    @CachedProperty
    def effectful_calls(self) -> tuple[EffectfulCall, ...]:
        """The calls of tools with side effects, each with the gates that it passed."""
        from orchtrace_corpus.trace.view.influence import effectful_calls

        return effectful_calls(self.trace, self.graph)

    @CachedProperty
    def influence(self) -> Influence:
        """The events that untrusted content could have reached."""
        from orchtrace_corpus.trace.view.influence import influence

        return influence(self.trace, self.graph, self.sequence)

    @CachedProperty
    def timing(self) -> Timing:
        """The times of the events, without waits for people."""
        from orchtrace_corpus.trace.view.timing import Timing

        return Timing(self.trace, self.graph, self.sequence)

    @CachedProperty
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls of tools and models that perhaps waited instead of working."""
        from orchtrace_corpus.trace.view.open_calls import open_calls

        return open_calls(self.timing)

    @CachedProperty
    def timing_if_waiting(self) -> Timing:
        """The times if open calls only waited; `timing` itself if there are no open calls."""
        if not self.open_calls:
            return self.timing
        return self.timing.if_waiting([open_call.event for open_call in self.open_calls])

    @CachedProperty
    def agents(self) -> list[AgentSpan]:
        """The agents as a tree in depth-first order; siblings, and agents without a parent, by their first event."""
        from orchtrace_corpus.trace.view.agent_tree import agent_tree

        return agent_tree(self.trace, self.timing, self.lifecycle.parents)

    @CachedProperty
    def agent_times(self) -> dict[str, AgentTime]:
        """The time of each agent: worked, waited, idle."""
        from orchtrace_corpus.trace.view.agent_tree import agent_times

        return agent_times(self.agents, self.timing, self.timing_if_waiting)
