"""Marks that a log lacks and its reader can give: which tools bring content from outside, which have side effects."""

from collections.abc import Collection

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.model.trace import Trace


class Marks(NamedTuple):
    """Tools by name, as the logs have them.

    Attributes:
        untrusted: The tools whose results are not trusted.
        effectful: The tools with side effects, and only these; None leaves the trace as it is.
    """

    untrusted: Collection[str] = ()
    effectful: Collection[str] | None = None

    def apply(self, trace: Trace) -> None:
        """Mark the results of the untrusted tools, and name the effectful ones."""
        if self.effectful is not None:
            trace.effectful_tools = tuple(sorted(self.effectful))
        if not self.untrusted:
            return
        tools = {event.call_id: event.tool for event in trace.events if event.type is EventType.TOOL_CALL}
        for event in trace.events:
            if event.type is EventType.TOOL_RESULT:
                tool = event.tool or tools.get(event.call_id, "")
                if tool in self.untrusted:
                    event.trusted = False
