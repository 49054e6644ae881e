"""Tool calls and their results, joined by `call_id` where it is given."""

from collections.abc import Iterator

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.model.decode import Problem
from orchtrace_corpus.trace.model.trace import EventType
from orchtrace_corpus.trace.view.lifecycle import is_after
from orchtrace_corpus.trace.view.view import Subject


def check_calls(subject: Subject) -> Iterator[Problem]:
    """Each result answers one earlier call, of the same tool; a call has one result at most, and none is a warning."""
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
    skew = subject.trace.clock.skew
    for call_id, number in results.items():
        called = calls.get(call_id)
        if called is None:
            continue
        call, result = events[called], events[number]
        if call.t >= result.t and is_after(call, result, skew):
            step, place = ("t", f"at {call.t:g}") if call.t > result.t else ("seq", f"of seq {call.seq}")
            message = f"the result comes before its call {quote(call.id)} {place}; correct the times or the call_id"
            yield Problem("T228", message, ("events", number, step))
        if result.tool and call.tool not in ("", result.tool):
            message = f"the call {quote(call_id)} is one of {quote(call.tool)}, its result one of {quote(result.tool)}"
            yield Problem("T226", message, ("events", number, "tool"))
