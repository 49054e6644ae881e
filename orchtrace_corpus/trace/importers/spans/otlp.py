"""OpenTelemetry spans of agents, models and tools, as OTLP JSON, with attributes in any of their dialects.

The GenAI semantic conventions (`gen_ai.*`) have changed names; OpenInference (`openinference.span.kind`, `llm.*`) and
OpenLLMetry (`traceloop.*`) have their own. A span that has several dialects states the same value several times.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any

from msgspec import Raw, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, Part, decoded, encoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.core.values import count, first_text, items, mapping, string
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import SpanCollector, read_records
from orchtrace_corpus.trace.importers.spans.files import session_keys as session_keys
from orchtrace_corpus.trace.importers.spans.span import CHAIN, Call, Kind, Span, calls_of
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Trace

_BY_OPENINFERENCE = {"LLM": Kind.INFERENCE, "AGENT": Kind.AGENT, "GUARDRAIL": Kind.GUARDRAIL}
_BY_OPENINFERENCE |= dict.fromkeys(("TOOL", "RETRIEVER", "RERANKER", "EMBEDDING"), Kind.TOOL)
_BY_OPENINFERENCE |= dict.fromkeys(("CHAIN", "EVALUATOR", "PROMPT", "UNKNOWN"), Kind.CHAIN)

_BY_OPERATION = {"invoke_agent": Kind.AGENT, "invoke_workflow": Kind.CHAIN, "create_agent": Kind.CHAIN}
_BY_OPERATION |= dict.fromkeys(("chat", "generate_content", "text_completion", "plan"), Kind.INFERENCE)
_BY_OPERATION |= dict.fromkeys(("execute_tool", "embeddings", "retrieval"), Kind.TOOL)

_BY_TRACELOOP = {"agent": Kind.AGENT, "tool": Kind.TOOL, "task": Kind.CHAIN, "workflow": Kind.CHAIN}

_DIALECTS = ("openinference.span.kind", "traceloop.span.kind", "llm.request.type", "gen_ai.operation.name")
"""The attribute of each dialect that states the kind of a span."""

_AGENT = ("agent.name", "gen_ai.agent.name", "agent_name")
_TOOL = ("tool.name", "gen_ai.tool.name", "traceloop.entity.name")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input")
_OUTPUT = ("gen_ai.tool.call.result", "gen_ai.output.messages", "output.value", "traceloop.entity.output")
_ANSWER = (*_OUTPUT, "gen_ai.completion.0.content")
_CONTENTS = frozenset({*_ARGUMENTS, *_ANSWER})
_ERROR = ("error.type", "exception.type")
_TARGET = ("gen_ai.transfer.target.name", "gen_ai.agent.handoff.target.name")

_GENAI_USAGE = {
    "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
    "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"),
    "cache_read": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    "cache_write": ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
    "reasoning": ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
    "total": ("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
}
_OPENINFERENCE_USAGE = {
    "input": ("llm.token_count.prompt",),
    "output": ("llm.token_count.completion",),
    "cache_read": ("llm.token_count.prompt_details.cache_read",),
    "cache_write": ("llm.token_count.prompt_details.cache_write",),
    "reasoning": ("llm.token_count.completion_details.reasoning",),
    "total": ("llm.token_count.total",),
}

_OF_GENAI = frozenset(chain.from_iterable(_GENAI_USAGE.values()))
_OF_OPENINFERENCE = frozenset(chain.from_iterable(_OPENINFERENCE_USAGE.values()))

_HANDOFF = "handoff to "
_MOST_DIGITS = 20
_NESTED = frozenset({"arrayValue", "array_value", "kvlistValue", "kvlist_value"})
_FLAT = ("llm.output_messages.", "gen_ai.completion.")
_FLAT_CALLS = tuple(zip(_FLAT, (".tool_call.", ".tool_calls."), strict=True))

_READ = frozenset(
    {"openinference.span.kind", "gen_ai.operation.name", "gen_ai.transfer.mode", "traceloop.span.kind"}
    | {"llm.request.type", "metadata", "graph.node.parent_id", "virtual_parent.genai", "service.name"}
    | {*_ERROR, *_AGENT, *_TOOL, *_MODEL, *_CALL_ID, *_ARGUMENTS, *_ANSWER, *_TARGET}
    | _OF_GENAI
    | _OF_OPENINFERENCE
)
"""The attributes that are read; all others are skipped undecoded."""


class _Attribute(Struct):
    """An attribute as OTLP has it, its value undecoded."""

    key: str
    value: Raw = NOTHING


def _describe(
    span: Span, known: dict[str, Any], status: Mapping[str, Any], events: Raw, privacy: Privacy, report: ImportReport
) -> None:
    """Complete a span, which has its ids, name, place and times, from its attributes."""
    title = span.name
    span.kind, span.unknown = _kind(known, title)
    span.agent = agent = first_text(known, _AGENT)
    span.usage = _usage(known, span, report)
    span.is_error, span.error_type = _error(status, events, known)
    span.is_interrupted = span.error_type.endswith("Interrupt")
    metadata_text = known.get("metadata")
    if isinstance(metadata_text, str) and ("langgraph_" in metadata_text or "lc_agent_name" in metadata_text):
        metadata = mapping(decoded(metadata_text))
        span.task = spans.langgraph_task(metadata)
        span.agent = agent or string(metadata.get("lc_agent_name"))
        span.routes = _routes(_content(known, "output.value")) if span.task and span.kind is Kind.CHAIN else ()
    if span.kind is Kind.INFERENCE:
        span.library = span.library or next((name for name in _DIALECTS if name in known), "")
        span.model = first_text(known, _MODEL)
        span.calls = _calls(known, privacy)
        span.output = _reference(known, _ANSWER, privacy)
    elif span.kind is Kind.TOOL:
        span.name = first_text(known, _TOOL) or title.removeprefix("execute_tool ")
        span.call_id = first_text(known, _CALL_ID)
        span.arguments = _reference(known, _ARGUMENTS, privacy)
        span.output = _reference(known, _OUTPUT, privacy)
    elif span.kind is Kind.AGENT:
        span.name = agent or string(known.get("traceloop.entity.name")) or title.removeprefix("invoke_agent ")
        span.is_named = bool(agent)
        span.follows = string(known.get("graph.node.parent_id"))
        span.model = first_text(known, _MODEL)
    elif span.kind is Kind.CHAIN:
        span.name = title.removeprefix("custom ")  # in the title of spans that programs add themselves
    elif span.kind is Kind.HANDOFF:
        span.target = first_text(known, _TARGET) or title.removeprefix(_HANDOFF)


def _reference(known: dict[str, Any], names: tuple[str, ...], privacy: Privacy) -> str:
    for name in names:
        if name in known:
            return privacy.reference(_content(known, name))
    return ""


def _usage(known: Mapping[str, Any], span: Span, report: ImportReport) -> Usage | None:
    """Return the token counts by the conventions of GenAI, else by those of OpenInference."""
    usages = []
    for names, kinds in ((_OF_GENAI, _GENAI_USAGE), (_OF_OPENINFERENCE, _OPENINFERENCE_USAGE)):
        if not names.isdisjoint(known) and (usage := _counts(known, kinds)) is not None:
            usages.append(usage)
    if len(usages) > 1 and usages[0][:2] != usages[1][:2]:
        report.note(Problem.CONVENTIONS_DISAGREE, span.where)
    return usages[0] if usages else None


def _calls(known: dict[str, Any], privacy: Privacy) -> tuple[Call, ...]:
    """Return the tool calls of a model's answer, from the first dialect that has any."""
    calls = tuple(_flat_calls(known, privacy))
    for answer in ("gen_ai.output.messages", "output.value"):
        calls = calls or calls_of(_content(known, answer), privacy)
    return calls


def _plain(attributes: list[_Attribute] | None) -> dict[str, Any]:
    """Return the values of the attributes that are read, by name; contents, which may be large, stay undecoded."""
    values: dict[str, Any] = {}
    for attribute in attributes or ():
        name = attribute.key
        if name in _CONTENTS:
            values[name] = attribute.value
        elif name in _READ or (name.startswith(_FLAT) and (".tool_call." in name or ".tool_calls." in name)):
            values[name] = _value(decoded(attribute.value))
    return values


def _content(known: dict[str, Any], name: str) -> Any:
    """Return the content of an attribute, which is decoded on first use."""
    value = known.get(name)
    if isinstance(value, Raw):
        value = known[name] = _value(decoded(value))
    return value


def _value(value: Any) -> Any:
    """Return the plain value of an `AnyValue`, an object whose only member is named by its type."""
    for kind, content in value.items() if type(value) is dict else ():
        if kind not in _NESTED:
            return content
        inner = items(mapping(content).get("values"))
        if kind.startswith("array"):
            return [_value(element) for element in inner]
        return {string(member.get("key")): _value(member.get("value")) for member in map(mapping, inner)}
    return None


def _kind(known: Mapping[str, Any], title: str) -> tuple[Kind, str]:
    """Return the kind of a span, and its kind in the log if that is unknown."""
    if first_text(known, _TARGET):
        is_call = known.get("gen_ai.transfer.mode") == "return_to_caller"
        return (Kind.TOOL if is_call else Kind.HANDOFF), ""
    if own_kind := string(known.get("openinference.span.kind")):
        kind = _BY_OPENINFERENCE.get(own_kind.upper())
        if kind is None:
            return Kind.CHAIN, f"span of kind {masked(own_kind)[:50]}"
        is_handoff = kind is Kind.TOOL and title.startswith(_HANDOFF) and not first_text(known, _TOOL)
        return (Kind.HANDOFF if is_handoff else kind), ""
    if operation := string(known.get("gen_ai.operation.name")):
        kind = _BY_OPERATION.get(operation)
        return (kind, "") if kind is not None else (Kind.CHAIN, f"operation {masked(operation)[:50]}")
    if (entity := known.get("traceloop.span.kind")) in _BY_TRACELOOP:
        return _BY_TRACELOOP[entity], ""
    if known.get("gen_ai.tool.call.id") or known.get("gen_ai.tool.name"):
        return Kind.TOOL, ""
    if known.get("agent_name"):
        return Kind.AGENT, ""
    is_model = known.get("gen_ai.request.model") or known.get("llm.request.type")
    return (Kind.INFERENCE if is_model else Kind.CHAIN), ""


def _counts(known: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> Usage | None:
    """Return the counts under the names of one convention; None if there is none."""
    counts: dict[str, int] = {}
    for kind, attributes in names.items():
        for attribute in attributes:
            if (value := known.get(attribute)) is None:
                continue
            if type(value) is str and value.isascii() and value.isdigit() and len(value) < _MOST_DIGITS:
                value = int(value)  # Protobuf writes numbers of 64 bits as text in JSON
            if (tokens := count(value)) is not None:
                counts[kind] = tokens
                break
    return Usage(**counts) if counts else None


def _error(status: Mapping[str, Any], events: Raw, known: Mapping[str, Any]) -> tuple[bool, str]:
    """Return True if a span failed, and the kind of error."""
    error_type = first_text(known, _ERROR)
    if not error_type and status.get("code") not in (2, "2", "STATUS_CODE_ERROR", "ERROR"):
        return False, ""
    for event in items(decoded(events)):
        for attribute in items(mapping(event).get("attributes")):
            if mapping(attribute).get("key") == "exception.type":
                error_type = error_type or string(_value(attribute.get("value")))
    kind = masked(error_type).rsplit(".", 1)[-1] or spans.error_kind(status.get("message")) or "other"
    return (False, "") if kind == spans.PARENT_COMMAND else (True, kind)


def _routes(output: Any) -> tuple[str, ...]:
    """Return the nodes that run next, by the output of a LangGraph task as text."""
    if not isinstance(output, str):
        return ()
    if output.startswith("{"):
        return spans.langgraph_routes(decoded(output)) if '"goto"' in output or '"output"' in output else ()
    return spans.langgraph_routes({"output": output})


def _flat_calls(known: Mapping[str, Any], privacy: Privacy) -> Iterator[Call]:
    """Yield calls with an attribute for each part: `llm.output_messages.0.message.tool_calls.0.tool_call.id`."""
    calls: dict[str, dict[str, Any]] = {}
    for name, value in known.items():
        for beginning, middle in _FLAT_CALLS if name.startswith(_FLAT) else ():
            if name.startswith(beginning) and middle in name:
                call, _, part = name.rpartition(middle)
                if middle == ".tool_calls.":
                    index, _, part = part.partition(".")
                    call = f"{call}.{index}"
                calls.setdefault(call, {})[part.removeprefix("function.")] = value
    for parts in calls.values():
        if parts.get("name"):
            yield Call(string(parts.get("id")), string(parts["name"]), privacy.reference(parts.get("arguments")))


_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SPAN = {"spanId", "span_id"}
_LONGEST_ID = 32
_START = {"startTimeUnixNano", "start_time_unix_nano"}


class _Attributed(Struct):
    attributes: list[_Attribute] | None = None


class _Scope(Struct):
    name: Any = None
    version: Any = None


class _Span(Struct, rename="camel"):
    trace_id: Any = None
    span_id: Any = None
    parent_span_id: Any = None
    name: Any = None
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    status: Any = None
    events: Raw = NOTHING
    attributes: list[_Attribute] | None = None


class _ScopeSpans(Struct):
    scope: _Scope | None = None
    spans: list[_Span] | None = None


class _ResourceSpans(Struct, rename="camel"):
    resource: _Attributed | None = None
    scope_spans: list[_ScopeSpans] | None = None

    def __post_init__(self) -> None:
        if self.scope_spans is None:
            raise ValueError("no spans, or under an old name")


class _Request(_Span, rename="camel"):
    """A request of several spans, or a span."""

    resource_spans: list[_ResourceSpans] | None = None

    def __post_init__(self) -> None:
        if self.resource_spans is None and self.span_id is None:
            raise ValueError("no span")


class _Program(NamedTuple):
    system: str = ""
    version: str = ""
    library: str = ""


_Placed = tuple[_Span | None, int, _Program]
"""A span with its line and program; None for a record that is no span."""


def recognises(beginning: Head) -> bool:
    """Return True if a file begins with requests of spans, or with spans."""
    names = beginning.outline
    return bool(names.intersection(_RESOURCES)) or bool(names & _SPAN and names & _START)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the files."""
    collector = SpanCollector(files, privacy)
    for file in files:
        for request, at in read_records(file, collector.report, _Request):
            for span, line, program in _spans(request, at):
                _gather(span, file.name, line, program, privacy, collector)
    yield from collector.traces("otlp", "opentelemetry")


def _spans(value: Any, line: int) -> Iterator[_Placed]:
    """Yield the spans of a record."""
    if not isinstance(value, _Request):
        yield from _spans_of_another_shape(value)
    elif value.resource_spans is None:
        yield value, line, _Program()
    else:
        for resource in value.resource_spans:
            for scope in resource.scope_spans or ():
                program = _program(resource.resource, scope.scope)
                for span in scope.spans or ():
                    yield span, line, program


def _spans_of_another_shape(top: Part) -> Iterator[_Placed]:
    """Yield the spans of a document, and of a request that has Protobuf's names or does not fit."""
    for part in top.elements() if top.is_array else (top,):
        members = part.members()
        name = next((name for name in _RESOURCES if name in members and members[name].is_array), "")
        if not name:
            yield _fitted(part), part.line, _Program()
            continue
        for resource in members[name].elements():
            of_resource = resource.members()
            source = _attributed(of_resource["resource"]) if "resource" in of_resource else None
            inside = next((name for name in _SCOPES if name in of_resource), "")
            for scope in of_resource[inside].elements() if inside else ():
                of_scope = scope.members()
                program = _program(source, of_scope["scope"].value(_Scope) if "scope" in of_scope else None)
                for span in of_scope["spans"].elements() if "spans" in of_scope else ():
                    yield _fitted(span), span.line, program


def _fitted(part: Part) -> _Span | None:
    """Return a span, also one with Protobuf's names, or with an object of attributes."""
    span: _Span | None = part.value(_Span)
    if span is None or span.span_id is None:
        names = dict(zip(_Span.__struct_fields__, _Span.__struct_encode_fields__, strict=True))
        renamed = {names.get(name, name): value for name, value in mapping(part.value()).items()}
        span = decoded(encoded(_with_attribute_list(renamed)), _Span)
    return span


def _attributed(part: Part) -> _Attributed | None:
    attributed: _Attributed | None = part.value(_Attributed)
    return attributed or decoded(encoded(_with_attribute_list(part.value())), _Attributed)


def _program(resource: _Attributed | None, scope: _Scope | None) -> _Program:
    """Return the program, named by its service, else by its instrumentation."""
    service = string(_plain(resource.attributes).get("service.name")) if resource else ""
    name, version = (string(scope.name), string(scope.version)) if scope else ("", "")
    return _Program(name if service.startswith("unknown_service") else service, version, name)


def _with_attribute_list(value: Any) -> Any:
    """Return an object with its attributes as a list, as OTLP has them."""
    attributes = mapping(value).get("attributes")
    if isinstance(attributes, dict):
        return {**value, "attributes": [{"key": name, "value": {"": content}} for name, content in attributes.items()]}
    return value


def _gather(
    span: _Span | None, file: str, line: int, program: _Program, privacy: Privacy, collector: SpanCollector
) -> None:
    name = _identifier(span.span_id) if span else ""
    if span is None or not name:
        collector.report.drop(Drop.NO_SPAN, file, line)
        return
    bundle = collector.bundle(_identifier(span.trace_id))
    if not bundle.system:
        bundle.system, bundle.version = program.system, program.version
    known = _plain(span.attributes)
    logged = _identifier(span.parent_span_id)
    # the next GenAI span above, in files of Visual Studio
    virtual = _identifier(known["virtual_parent.genai"]) if "virtual_parent.genai" in known else ""
    start, end = _moment(span.start_time_unix_nano), _moment(span.end_time_unix_nano)
    read = Span(name, virtual or logged, CHAIN, string(span.name), file, line, logged, start, end)
    read.library = program.library
    _describe(read, known, mapping(span.status), span.events, privacy, collector.report)
    bundle.spans.append(read)


def _identifier(value: Any) -> str:
    """Return an id in hexadecimal; empty for none, which may be written as zeros."""
    if not isinstance(value, str):
        return ""
    return _in_hex(value) if len(value) <= _LONGEST_ID else value


@lru_cache(maxsize=1_000)  # many spans have the same trace or parent
def _in_hex(text: str) -> str:
    if len(text) in (16, 32):
        text = text.lower()
    elif len(text) in (11, 12, 22, 24):
        from base64 import b64decode

        with suppress(ValueError):
            text = b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True).hex()
    return text if text.strip("0") else ""


def _moment(value: Any) -> float | None:
    """Return a time in seconds, given in nanoseconds since 1970 as a number or a text."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 25:
        value = int(value)
    return instant(value, 1e9) if type(value) is not str else None
