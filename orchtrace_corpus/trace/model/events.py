"""Facts that follow from the events of a trace: tokens, the roles of agents, and tools that act as agents."""

from collections.abc import Mapping

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.trace.model.terms import AgentKind, EventType

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Tokens, Trace

CLOSING_TOOLS = frozenset(("complete_task", "submit"))
"""The tools by which agents submit their result in Gemini CLI and Inspect. Repeated calls of them repeat no work."""


def total(tokens: "Tokens") -> float:
    """Return all tokens of an event: input, output, cache reads and cache writes; reasoning is part of the output."""
    return (tokens.input or 0) + (tokens.output or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)


def roles_of(trace: "Trace") -> Mapping[str, str]:
    """Return the role of each agent that has one: the declared role, or else the first role in its spawn and events."""
    roles: dict[str, str] = {}
    with_role = [event for event in trace.events if event.role]
    for event in sorted(with_role, key=lambda event: (event.t, event.seq or 0)):
        agent = event.target if event.type is EventType.SPAWN and event.target else event.agent
        roles.setdefault(agent, event.role)
    roles.update({agent.id: agent.role for agent in trace.agents if agent.role})
    return roles


def acting_tools(trace: "Trace") -> frozenset[str]:
    """Return the agents that are tools: declared as tools, or agents only of the results of a tool of the same name.

    `browser.search` in the example of the survey (arXiv 2605.02801) is such an agent.
    """
    declared = frozenset(agent.id for agent in trace.agents if agent.kind is AgentKind.TOOL)
    tools = {event.tool for event in trace.events if event.tool}
    acting = tools.intersection(event.agent for event in trace.events if event.type is EventType.TOOL_RESULT)
    if acting:
        acting -= {event.agent for event in trace.events if event.type is not EventType.TOOL_RESULT}
    return declared.union(acting)
