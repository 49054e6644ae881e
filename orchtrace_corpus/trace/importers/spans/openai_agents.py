"""OpenAI Agents SDK: `trace` and `trace.span` objects, as its trace processors export them.

A file is an array of objects, an ingest request (`{"data": [...]}`), or has one object or request on each line.
Shapes: `agents/tracing/{traces,spans,span_data}.py` of openai-agents 0.24.0.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct

from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, decoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage, usage_of_service
from orchtrace_corpus.trace.importers.core.values import as_array, as_object, as_text
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import SpanCollector, read_items
from orchtrace_corpus.trace.importers.spans.files import session_keys as session_keys
from orchtrace_corpus.trace.importers.spans.span import Kind, Span
from orchtrace_corpus.trace.model.import_report import Drop
from orchtrace_corpus.trace.model.trace import Trace

_OBJECTS = ("trace", "trace.span")

_KINDS = {"agent": Kind.AGENT, "function": Kind.TOOL, "handoff": Kind.HANDOFF, "guardrail": Kind.GUARDRAIL}
_KINDS |= dict.fromkeys(("generation", "response", "transcription", "speech"), Kind.INFERENCE)
_KINDS |= dict.fromkeys(("custom", "task", "turn", "speech_group", "mcp_tools"), Kind.CHAIN)

_ERRORS = {
    "Error running tool (non-fatal)": "tool_error",
    "Error running tool": "tool_error",
    "Error in agent run": "agent_error",
    "Error getting response": "model_error",
    "Max turns exceeded": "max_turns_exceeded",
    "Guardrail tripwire triggered": "guardrail_triggered",
    "Invalid JSON": "invalid_output",
}
"""The kinds of error, by the messages of the SDK itself. Other messages may contain private content."""


class _Data(Struct):
    """The fields of a span that depend on its type. Contents are decoded when they are needed."""

    type: Any = None
    name: Any = None
    input: Raw = NOTHING
    output: Raw = NOTHING
    model: Any = None
    usage: Any = None
    data: Any = None
    from_agent: Any = None
    to_agent: Any = None
    triggered: Any = None


class _Item(Struct):
    """A trace, a span, or a request, which has traces and spans in `data`."""

    object: Any = None
    id: Any = None
    trace_id: Any = None
    parent_id: Any = None
    started_at: Any = None
    ended_at: Any = None
    workflow_name: Any = None
    error: Any = None
    span_data: _Data | None = None
    data: "list[_Item] | None" = None


def recognises(beginning: Head) -> bool:
    """Return True if a file begins with traces or spans, or with a request of them."""
    if not beginning.rows:
        names = beginning.outline
        return "object" in names and bool({"workflow_name", "span_data"} & names)
    return any(_is_object(row) or any(map(_is_object, as_array(row.get("data")))) for row in beginning.rows[:5])


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the files."""
    collector = SpanCollector(files, privacy)
    for file in files:
        for item, line in read_items(file, collector.report, _Item, lists=("data",)):
            if item is None or item.object not in _OBJECTS:
                collector.report.drop(Drop.NO_TRACE_NOR_SPAN, file.name, line)
            elif not as_text(item.id):
                collector.report.drop(Drop.NO_ID, file.name, line)
            elif item.object == "trace":
                bundle = collector.bundle(item.id)
                bundle.name = as_text(item.workflow_name) or bundle.name
            else:
                span = _span(item, item.span_data or _Data(), file.name, line, privacy)
                collector.bundle(as_text(item.trace_id)).spans.append(span)
    yield from collector.traces("openai_agents", "openai-agents")


def _is_object(value: Any) -> bool:
    """Return True for a trace or a span."""
    return isinstance(value, dict) and value.get("object") in _OBJECTS


def _span(item: _Item, data: _Data, file: str, line: int, privacy: Privacy) -> Span:
    kind = _KINDS.get(as_text(data.type), Kind.CHAIN)
    message = as_text(as_object(item.error).get("message"))
    span = Span(item.id, as_text(item.parent_id), kind, as_text(data.name), file, line)
    span.start, span.end = instant(item.started_at), instant(item.ended_at)
    if item.error:
        span.is_error = True
        span.error_type = _ERRORS.get(message) or spans.error_kind(message) or "other"
    if data.type not in tuple(_KINDS):  # in a tuple, because a type that is a list is not hashable
        span.unknown = f"span of type {masked(as_text(data.type))[:50] or 'none'}"
    if kind is Kind.AGENT:
        span.is_named = True  # the name of the span is the name of the agent
    elif kind is Kind.INFERENCE:
        output = decoded(data.output)
        span.usage = _usage(data.usage)
        span.model = as_text(data.model)
        span.calls = spans.calls_of(output, privacy)
        span.output = privacy.reference(output)
    elif kind is Kind.TOOL:
        span.arguments = privacy.reference(decoded(data.input))
        span.output = privacy.reference(decoded(data.output))
    elif kind is Kind.HANDOFF:
        span.agent, span.target = as_text(data.from_agent), as_text(data.to_agent)
    elif kind is Kind.GUARDRAIL:
        span.is_triggered = data.triggered is True
    else:
        span.usage = _usage(as_object(data.data).get("usage"))
        span.is_cumulative = True  # the usage of a turn or a task is the sum of its calls
    return span


def _usage(usage: Any) -> Usage | None:
    """Return a usage, with the counts that the exporter to OpenAI writes into its `details`; None if it is empty."""
    stated = as_object(usage)
    if not stated:
        return None
    return usage_of_service({**stated, **as_object(stated.get("details"))})
