"""Marks that a user adds to a trace: which tools return untrusted content, and which have side effects."""

from collections.abc import Collection

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.model.trace import Trace


class Marks(NamedTuple):
    """The marked tools, by their names in the logs.

    Attributes:
        untrusted: The tools whose results are not trusted.
        effectful: All tools with side effects; None leaves the effectful tools of a trace as they are.
    """

    untrusted: Collection[str] = ()
    effectful: Collection[str] | None = None

    def apply(self, trace: Trace) -> None:
        """Mark the results of untrusted tools in a trace, and set its effectful tools."""
        if self.effectful is not None:
            trace.effectful_tools = tuple(sorted(self.effectful))
        if not self.untrusted:
            return
        tool_by_call = {event.call_id: event.tool for event in trace.events if event.type is EventType.TOOL_CALL}
        for event in trace.events:
            if event.type is EventType.TOOL_RESULT:
                tool = event.tool or tool_by_call.get(event.call_id, "")
                if tool in self.untrusted:
                    event.trusted = False
