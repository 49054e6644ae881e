"""The roles of agents."""

from collections.abc import Mapping

from orchtrace_corpus.trace.model.trace import EventType, Trace


def roles_of(trace: Trace) -> Mapping[str, str]:
    """The role of each agent, where the trace gives it: declared, given at its spawn, or at its own events.

    Of several given by events, the first in time counts.
    """
    found: dict[str, str] = {}
    for event in sorted((event for event in trace.events if event.role), key=lambda event: (event.t, event.seq or 0)):
        found.setdefault(event.target if event.type is EventType.SPAWN and event.target else event.agent, event.role)
    found.update({agent.id: agent.role for agent in trace.agents if agent.role})
    return found
