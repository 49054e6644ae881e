"""ATOF: events of NeMo Relay and the NeMo Agent Toolkit, one on each line.

A scope begins and ends with an event. It is an agent, a model call or a tool, or contains these. Marks are events
without a scope. ATOF has no fields for tokens and errors. Relay writes them into the profile and the metadata of the
end of a scope; other programs keep the answer of the service. Shapes: docs/reference/atof-event-format of
NVIDIA/NeMo-Relay, ATOF 0.1, and the files of nemo-relay 0.10.4.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Raw, Struct

from orchtrace_corpus.trace.importers.core import values
from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, decoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, LogReader, rows
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage, usage_of_service
from orchtrace_corpus.trace.importers.core.values import as_object, as_text, first_text, object_field, text_field
from orchtrace_corpus.trace.importers.spans.files import SpanCollector
from orchtrace_corpus.trace.importers.spans.span import Kind, Span, calls_of, error_kind
from orchtrace_corpus.trace.model.import_report import Drop
from orchtrace_corpus.trace.model.trace import Trace

_KINDS = {"agent": Kind.AGENT, "llm": Kind.INFERENCE, "guardrail": Kind.GUARDRAIL}
_KINDS |= dict.fromkeys(("tool", "retriever", "embedder", "reranker"), Kind.TOOL)
_KINDS |= dict.fromkeys(("custom", "evaluator", "function", "unknown"), Kind.CHAIN)
_SESSION_IDS = ("session_instance_id", "session_id")
"""The members with the id of a session. In some programs, each turn of a session is a root scope."""
_ROLE = "nemo_relay_scope_role"
_CALL_IDS = ("tool_call_id", "source_call_id", "delegation_tool_call_id", "parent_tool_call_id")
"""The members by which the scope of a sub-agent names the call that spawned it."""
_IDS = re.compile(r'"(?:parent_|propagation_root_)?uuid"\s*:\s*"([^"]{1,100})"')


class _Event(Struct):
    """An event. Its data are decoded when they are needed."""

    kind: Any = None
    scope_category: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    propagation_root_uuid: Any = None
    timestamp: Any = None
    name: Any = None
    category: Any = None
    category_profile: Any = None
    data: Raw = NOTHING
    metadata: Any = None
    atof_version: Any = None


class _Scope(Struct):
    """A scope whose beginning or end has been read."""

    span: Span
    root: str = ""  # the id of the outermost scope, if the program names it
    session: str = ""  # the id of the session, if the metadata name it
    spawner: str = ""  # the id of the call that spawned the agent, if the metadata name it
    role: str = ""  # its role in the session of a coding agent: `session`, `turn` or `subagent`
    prompt: str = ""  # a reference to the input of a person with which the turn began


def recognises(beginning: Head) -> bool:
    """Return True if a file begins with events of ATOF."""
    return any("atof_version" in row and row.get("kind") in ("scope", "mark") for row in beginning.rows[:5])


def session_keys(reader: LogReader) -> list[str]:
    """Return the ids of the first scopes in a file, because other files may have events of the same scopes."""
    return [reader.file.path, *dict.fromkeys(_IDS.findall(reader.head().text))]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the files."""
    collector = SpanCollector(files, privacy)
    reader = _ScopeReader(collector, privacy)
    for file in files:
        for line, event in rows(file, collector.report, _Event):
            reader.take(event, file.name, line)
    reader.add_spans()
    yield from collector.traces("atof", "nemo-relay")


class _ScopeReader:
    """Joins the two events of each scope, and finds the session of each scope."""

    def __init__(self, collector: SpanCollector, privacy: Privacy) -> None:
        self._collector, self._privacy = collector, privacy
        self._scopes: dict[str, _Scope] = {}  # by id, in the order of their ends
        self._version = ""

    def take(self, event: _Event, file: str, line: int) -> None:
        """Read an event. A second beginning or end of a scope is a copy."""
        report, scope_id = self._collector.report, as_text(event.uuid)
        self._version = self._version or as_text(event.atof_version)
        if event.kind == "mark":
            report.skip(masked(f"mark {as_text(event.name)}"[:80]))
            return
        if event.kind != "scope" or event.scope_category not in ("start", "end") or not scope_id:
            report.drop(Drop.NO_SPAN, file, line)
            return
        scope = self._scopes.get(scope_id)
        time = instant(event.timestamp, per_second=1_000_000)
        is_start = event.scope_category == "start"
        if scope is None:
            scope = self._scopes[scope_id] = _Scope(_span(event, file, line))
        elif (scope.span.start if is_start else scope.span.end) is not None:
            report.drop(Drop.COPY, file, line)
            return
        metadata = as_object(event.metadata)
        scope.root = scope.root or as_text(event.propagation_root_uuid)
        scope.role = scope.role or text_field(metadata, _ROLE)
        scope.session = scope.session or first_text(metadata, _SESSION_IDS)
        if is_start:
            scope.span.start = time
            scope.span.line = line
            scope.spawner = first_text(metadata, _CALL_IDS)
            if metadata.get("turn_source") == "user_prompt":
                scope.prompt = self._privacy.reference(decoded(event.data)) or " "  # not empty: there was an input
            if scope.span.kind is Kind.TOOL:
                scope.span.arguments = self._privacy.reference(decoded(event.data))
        else:
            scope.span.end = time
            self._scopes[scope_id] = self._scopes.pop(scope_id)  # becomes the last one
            self._end(scope.span, event, metadata)

    def _end(self, span: Span, event: _Event, metadata: Mapping[str, Any]) -> None:
        """Complete a span from the end of its scope: output, usage, status."""
        profile, data = as_object(event.category_profile), decoded(event.data)
        span.model = text_field(profile, "model_name") or span.model
        status = first_text(metadata, ("otel.status_code", "otel_status_code"))
        error = None
        if span.kind in (Kind.TOOL, Kind.INFERENCE):
            span.output = self._privacy.reference(data)
            if not status:
                error = as_object(data).get("error")
        span.is_error = status == "ERROR" or bool(error)
        if span.is_error:
            error_type = first_text(metadata, ("exception.type", "exception_type", "error.type", "error_type"))
            span.error_type = masked(error_type) or error_kind(error) or "other"
        if span.kind is Kind.INFERENCE:
            answer = object_field(profile, "annotated_response")
            span.model = text_field(answer, "model") or span.model
            span.usage = _usage(answer, as_object(data))
            span.calls = calls_of(answer, self._privacy) or calls_of(data, self._privacy)
            cost = object_field(object_field(answer, "usage"), "cost")
            total = values.as_dollars(cost.get("total"))
            if total is not None and cost.get("currency") in (None, "USD"):
                span.more = {"cost_usd": total}
        span.is_triggered = span.kind is Kind.GUARDRAIL and span.is_error

    def add_spans(self) -> None:
        """Add the spans of all scopes to the collector, in the trace of their session or of their outermost scope."""
        self._put_agents_below_calls()
        traces: dict[str, str] = {}  # the trace of each scope
        turns: dict[str, list[_Scope]] = {}  # by trace
        for scope_id, scope in self._scopes.items():
            span = scope.span
            trace = self._trace_of(scope_id, traces)
            is_outermost = span.parent not in self._scopes
            if is_outermost and (scope.root == scope_id or scope.role):
                span.parent = ""  # the parent is the root of the runtime, which has no events
            if is_outermost and scope.role == "turn":  # the program has no scopes for sessions
                span.kind, span.name = Kind.AGENT, span.name.removesuffix("-turn")
            if scope.role == "subagent":
                span.name = span.name.removeprefix("subagent:")
            span.is_named = span.kind is Kind.AGENT
            bundle = self._collector.bundle(trace)
            bundle.spans.append(span)
            bundle.version = bundle.version or self._version
            bundle.name = bundle.name or (span.name if is_outermost else "")
            if scope.role == "turn" and span.start is not None:
                turns.setdefault(trace, []).append(scope)
        for trace, scopes in turns.items():
            spans = self._collector.bundle(trace).spans
            spans += _prompt_spans(sorted(scopes, key=lambda scope: scope.span.start or 0))
            spans.sort(key=lambda span: span.end or inf)

    def _trace_of(self, scope_id: str, traces: dict[str, str]) -> str:
        """Return the trace of a scope, which its outermost scope has, and note it for all scopes in between."""
        path = {scope_id: None}
        while scope_id not in traces:
            parent = self._scopes[scope_id].span.parent
            if parent not in self._scopes or parent in path:  # the outermost scope, or a cycle
                break
            path[parent] = None
            scope_id = parent
        scope = self._scopes[scope_id]
        trace = traces.get(scope_id) or scope.session or scope.root or scope_id
        traces.update(dict.fromkeys(path, trace))
        return trace

    def _put_agents_below_calls(self) -> None:
        """Make the call that spawned a sub-agent its parent: the named call, else the only call open around it."""
        calls_by_parent: dict[str, list[Span]] = {}
        calls_by_id: dict[str, Span] = {}
        for scope in self._scopes.values():
            if scope.span.kind is Kind.TOOL:
                calls_by_parent.setdefault(scope.span.parent, []).append(scope.span)
                calls_by_id.setdefault(scope.span.call_id or scope.span.id, scope.span)
        for scope in self._scopes.values():
            span = scope.span
            if span.kind is not Kind.AGENT or span.parent not in self._scopes:
                continue
            if scope.spawner in calls_by_id:
                span.parent = calls_by_id[scope.spawner].id
                continue
            open_calls = [call for call in calls_by_parent.get(span.parent, ()) if _is_inside(span, call)]
            if len(open_calls) == 1:
                span.parent = open_calls[0].id


def _prompt_spans(turns: Sequence[_Scope]) -> Iterator[Span]:
    """Yield spans for the inputs of people that began turns. The run waited for them since the previous turn."""
    previous_end: float | None = None
    for turn in turns:
        span = turn.span
        if turn.prompt:
            begin = span.start if previous_end is None else min(previous_end, span.start or previous_end)
            parent = span.parent or span.id
            prompt = Span(f"{span.id}#prompt", parent, Kind.PERSON, "", span.file, span.line, start=begin)
            prompt.end, prompt.output = span.start, turn.prompt.strip()
            yield prompt
        previous_end = span.end


def _is_inside(agent: Span, call: Span) -> bool:
    """Return True if a call was open for the whole time of an agent."""
    if call.start is None or call.end is None or agent.start is None or agent.end is None:
        return False
    return call.start <= agent.start and agent.end <= call.end


def _span(event: _Event, file: str, line: int) -> Span:
    """Return the span of a scope, without times, from its first event."""
    category, profile = as_text(event.category), as_object(event.category_profile)
    unknown = "" if category in _KINDS else f"scope of category {masked(category)[:50] or 'none'}"
    kind = _KINDS.get(category, Kind.CHAIN)
    span = Span(as_text(event.uuid), as_text(event.parent_uuid), kind, as_text(event.name), file, line, unknown=unknown)
    span.call_id = text_field(profile, "tool_call_id")
    span.model = text_field(profile, "model_name") or ("" if profile else span.name)
    return span


def _usage(answer: Mapping[str, Any], data: Mapping[str, Any]) -> Usage | None:
    """Return the usage that Relay counts, with the reasoning that the service states, else the service's usage."""
    stated = object_field(data, "usage") or object_field(data, "token_usage") or object_field(data, "usageMetadata")
    service_usage = usage_of_service(stated) if stated else None
    relay_counts = object_field(answer, "usage")
    if not relay_counts:
        return service_usage
    usage = usage_of_service(relay_counts)
    uncached = values.as_count(relay_counts.get("uncached_input_tokens"))
    if uncached is not None:
        usage = usage._replace(input=uncached + (usage.cache_read or 0) + (usage.cache_write or 0))
    return usage if service_usage is None else usage._replace(reasoning=service_usage.reasoning)
