"""Tool calls and their results, joined by `call_id` where it is given."""

from collections.abc import Iterator

from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.graph import Graph
from orchtrace_corpus.trace.model import EventType, Trace
from orchtrace_corpus.trace.problem import Problem


def check_calls(trace: Trace, of: Graph) -> Iterator[Problem]:
    """Each result answers one call, each call has one result at most; a call without one is a warning."""
    del of
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for number, event in enumerate(trace.events):
        if not event.call_id:
            continue
        seen = {EventType.TOOL_CALL: calls, EventType.TOOL_RESULT: results}.get(event.type)
        if seen is not None:
            first = seen.setdefault(event.call_id, number)
            if first != number:
                what = "call" if seen is calls else "result"
                message = f"call_id {quote(event.call_id)} is that of the {what} $.events[{first}], too"
                yield Problem("T210", message, ("events", number, "call_id"))
    if results.keys() != calls.keys():
        for call_id, number in results.items():
            if call_id not in calls:
                yield Problem("T209", f"no call has the call_id {quote(call_id)}", ("events", number, "call_id"))
        for call_id, number in calls.items():
            if call_id not in results:
                message = f"the call {quote(call_id)} has no result"
                yield Problem("T211", message, ("events", number, "call_id"))
