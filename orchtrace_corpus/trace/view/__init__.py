"""One lens on a trace: graph, order, lifecycle, lineage, timing, agent tree.

The functions behind it are in the modules of this package; whoever asks `TraceView` gets each of them computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import lt
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from orchtrace_corpus.base.cycles import sort_topologically
from orchtrace_corpus.trace.view.agent_tree import AgentSpan, AgentTime, agent_times, agent_tree
from orchtrace_corpus.trace.view.graph import Graph, by_time, graph, ranks
from orchtrace_corpus.trace.view.influence import EffectfulCall, Influence, effectful_calls, influence, untrusted_events
from orchtrace_corpus.trace.view.lifecycle import Lifecycle, Lineage, lifecycle
from orchtrace_corpus.trace.view.open_calls import OpenCall, open_calls
from orchtrace_corpus.trace.view.timing import Timing

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

Value = TypeVar("Value")


class Derived(Generic[Value]):
    """A property that is computed once: `functools.cached_property` without the lock that Python 3.11 takes for it."""

    def __init__(self, derive: Callable[[Any], Value]) -> None:
        self._derive, self._name, self.__doc__ = derive, derive.__name__, derive.__doc__

    def __get__(self, instance: object, of: type | None = None) -> Value:
        value = self._derive(instance)
        setattr(instance, self._name, value)  # not into its `__dict__`, which would be slower from then on
        return value


class TraceView:
    """A trace and what follows from its events and edges, each computed when it is first asked for.

    Attributes:
        trace: The trace.
        file: The file that it was read from; empty where that is not known.
    """

    def __init__(self, trace: Trace, file: str = "") -> None:
        self.trace = trace
        self.file = file

    @classmethod
    def of(cls, trace: Trace | TraceView) -> TraceView:
        """The view of a trace; a view is returned as it is."""
        return trace if isinstance(trace, TraceView) else cls(trace)

    @Derived
    def graph(self) -> Graph:
        """The temporal graph of the events."""
        return graph(self.trace)

    @Derived
    def _by_time(self) -> tuple[list[int], list[int]]:
        timely = by_time(self.graph)
        return timely, timely if timely == list(range(len(timely))) else ranks(timely)

    @Derived
    def is_timely(self) -> bool:
        """Return True if every edge leads forward by time and `seq`."""
        timely, rank = self._by_time
        sources, targets = self.graph.sources, self.graph.targets
        if timely is rank:
            return all(map(lt, sources, targets))
        return all(map(lt, map(rank.__getitem__, sources), map(rank.__getitem__, targets)))

    @Derived
    def sequence(self) -> list[int]:
        """The numbers of the events so that every edge leads forward, in time order wherever the edges allow it.

        Raises:
            CycleError: The edges go round in a circle.
        """
        timely, rank = self._by_time
        return timely if self.is_timely else sort_topologically(self.graph.sources, self.graph.targets, timely, rank)

    @Derived
    def lifecycle(self) -> Lifecycle:
        """The parent of each agent, and when each begins and ends."""
        return lifecycle(self.trace, self.graph)

    @Derived
    def lineage(self) -> Lineage:
        """The ancestors of each agent."""
        return Lineage(self.lifecycle.parents)

    @Derived
    def untrusted(self) -> frozenset[int]:
        """The numbers of the events whose content is not trusted."""
        return untrusted_events(self.trace.events)

    @Derived
    def effectful_calls(self) -> tuple[EffectfulCall, ...]:
        """The calls of tools with side effects, each with its gates."""
        return effectful_calls(self.trace, self.graph)

    @Derived
    def influence(self) -> Influence:
        """The events that untrusted content could have reached.

        Raises:
            CycleError: The edges go round in a circle.
        """
        return influence(self.trace, self.graph, self.sequence)

    @Derived
    def timing(self) -> Timing:
        """The times of the events, waits for people taken out.

        Raises:
            CycleError: The edges go round in a circle.
        """
        return Timing(self.trace, self.graph, self.sequence)

    @Derived
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls of tools and models that perhaps waited for somebody while they were open.

        Raises:
            CycleError: The edges go round in a circle.
        """
        return open_calls(self.timing)

    @Derived
    def timing_if_waiting(self) -> Timing:
        """The times if these calls did nothing but wait; where there are none, the times themselves."""
        calls = [open_call.number for open_call in self.open_calls]
        return self.timing.if_waiting(calls) if calls else self.timing

    @Derived
    def agents(self) -> list[AgentSpan]:
        """The agents as a tree: those that nobody spawned by their first act, each followed by those that it spawned.

        Raises:
            CycleError: The edges go round in a circle.
        """
        return agent_tree(self.trace, self.timing, self.lifecycle.parents)

    @Derived
    def agent_times(self) -> dict[str, AgentTime]:
        """The time of each agent: worked, waited, idle.

        Raises:
            CycleError: The edges go round in a circle.
        """
        return agent_times(self.agents, self.timing, self.timing_if_waiting)
