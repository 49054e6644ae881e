"""Tool calls and their results, joined by `call_id` where it is given."""

from collections.abc import Iterator

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.model import EventType
from orchtrace_corpus.trace.problem import Problem
from orchtrace_corpus.trace.subject import Subject


def check_calls(subject: Subject) -> Iterator[Problem]:
    """Each result answers one call, of the same tool; each call has one result at most, and none is a warning."""
    events, of_type = subject.trace.events, subject.graph.of_type
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for what, kind, seen in (("call", EventType.TOOL_CALL, calls), ("result", EventType.TOOL_RESULT, results)):
        for number in of_type.get(kind, ()):
            call_id = events[number].call_id
            if call_id and seen.setdefault(call_id, number) != number:
                message = f"call_id {quote(call_id)} is that of the {what} $.events[{seen[call_id]}], too"
                yield Problem("T210", message, ("events", number, "call_id"))
    if results.keys() != calls.keys():
        unanswered = [call_id for call_id in calls if call_id not in results]
        waiting = f" (calls without a result: {', '.join(map(quote, unanswered[:3]))})" if unanswered else ""
        for call_id, number in results.items():
            if call_id not in calls:
                message = f"no call has the call_id {quote(call_id)}{waiting}; correct it, or add the call"
                yield Problem("T209", message, ("events", number, "call_id"))
        for call_id, number in calls.items():
            if call_id not in results:
                message = f"the call {quote(call_id)} has no result"
                yield Problem("T211", message, ("events", number, "call_id"))
    for call_id, number in results.items():
        tool = events[number].tool
        if tool and call_id in calls and events[calls[call_id]].tool not in ("", tool):
            call = events[calls[call_id]]
            message = f"the call {quote(call_id)} is one of {quote(call.tool)}, its result one of {quote(tool)}"
            yield Problem("T226", message, ("events", number, "tool"))
