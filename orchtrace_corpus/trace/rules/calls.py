"""Tool calls and their results, joined by `call_id` where it is given."""

from collections.abc import Iterator

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.model import EventType
from orchtrace_corpus.trace.problem import Problem
from orchtrace_corpus.trace.rules.subject import Subject


def check_calls(subject: Subject) -> Iterator[Problem]:
    """Each result answers one call, each call has one result at most; a call without one is a warning."""
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
        for call_id, number in results.items():
            if call_id not in calls:
                yield Problem("T209", f"no call has the call_id {quote(call_id)}", ("events", number, "call_id"))
        for call_id, number in calls.items():
            if call_id not in results:
                message = f"the call {quote(call_id)} has no result"
                yield Problem("T211", message, ("events", number, "call_id"))
