"""Figures over the events of a trace: their tokens, the roles of agents, the tools that act."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchtrace_corpus.trace.model.terms import AgentKind, EventType

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Tokens, Trace


def total(tokens: "Tokens") -> float:
    """All tokens of an event: input, output, read from and written to caches; reasoning is part of the output."""
    return (tokens.input or 0) + (tokens.output or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)


def roles_of(trace: "Trace") -> Mapping[str, str]:
    """The role of each agent, where the trace gives it: declared, given at its spawn, or at its own events.

    Of several given by events, the first in time counts.
    """
    found: dict[str, str] = {}
    for event in sorted((event for event in trace.events if event.role), key=lambda event: (event.t, event.seq or 0)):
        found.setdefault(event.target if event.type is EventType.SPAWN and event.target else event.agent, event.role)
    found.update({agent.id: agent.role for agent in trace.agents if agent.role})
    return found


def acting_tools(trace: "Trace") -> frozenset[str]:
    """Return the tools that act under their own names: declared as tools, or only in results of a tool of that name.

    The example of the survey (arXiv 2605.02801) has `browser.search` act so.
    """
    declared = frozenset(agent.id for agent in trace.agents if agent.kind is AgentKind.TOOL)
    tools = {event.tool for event in trace.events if event.tool}
    named = tools.intersection(event.agent for event in trace.events if event.type is EventType.TOOL_RESULT)
    if named:
        named -= {event.agent for event in trace.events if event.type is not EventType.TOOL_RESULT}
    return declared.union(named)
