"""OpenTelemetry spans of agents, models and tools, as OTLP JSON.

Their attributes have several dialects: the GenAI semantic conventions (`gen_ai.*`), which have changed names,
OpenInference (`openinference.span.kind`, `llm.*`) and OpenLLMetry (`traceloop.*`). A span may use several of them.
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
from orchtrace_corpus.trace.importers.core.values import as_array, as_count, as_object, as_text, first_text
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import SpanCollector, read_records
from orchtrace_corpus.trace.importers.spans.files import session_keys as session_keys
from orchtrace_corpus.trace.importers.spans.span import CHAIN, Call, Kind, Span, calls_of
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Trace

_OPENINFERENCE_KINDS = {"LLM": Kind.INFERENCE, "AGENT": Kind.AGENT, "GUARDRAIL": Kind.GUARDRAIL}
_OPENINFERENCE_KINDS |= dict.fromkeys(("TOOL", "RETRIEVER", "RERANKER", "EMBEDDING"), Kind.TOOL)
_OPENINFERENCE_KINDS |= dict.fromkeys(("CHAIN", "EVALUATOR", "PROMPT", "UNKNOWN"), Kind.CHAIN)
_OPERATION_KINDS = {"invoke_agent": Kind.AGENT, "invoke_workflow": Kind.CHAIN, "create_agent": Kind.CHAIN}
_OPERATION_KINDS |= dict.fromkeys(("chat", "generate_content", "text_completion", "plan"), Kind.INFERENCE)
_OPERATION_KINDS |= dict.fromkeys(("execute_tool", "embeddings", "retrieval"), Kind.TOOL)
_TRACELOOP_KINDS = {"agent": Kind.AGENT, "tool": Kind.TOOL, "task": Kind.CHAIN, "workflow": Kind.CHAIN}

_DIALECTS = ("openinference.span.kind", "traceloop.span.kind", "llm.request.type", "gen_ai.operation.name")
"""The attribute of each dialect that states the kind of a span."""

_AGENT_NAMES = ("agent.name", "gen_ai.agent.name", "agent_name")
_TOOL_NAMES = ("tool.name", "gen_ai.tool.name", "traceloop.entity.name")
_MODEL_NAMES = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_CALL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input")
_OUTPUTS = ("gen_ai.tool.call.result", "gen_ai.output.messages", "output.value", "traceloop.entity.output")
_ANSWERS = (*_OUTPUTS, "gen_ai.completion.0.content")
_CONTENTS = frozenset({*_ARGUMENTS, *_ANSWERS})
_ERROR_TYPES = ("error.type", "exception.type")
_TARGETS = ("gen_ai.transfer.target.name", "gen_ai.agent.handoff.target.name")

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

_GENAI_ATTRIBUTES = frozenset(chain.from_iterable(_GENAI_USAGE.values()))
_OPENINFERENCE_ATTRIBUTES = frozenset(chain.from_iterable(_OPENINFERENCE_USAGE.values()))

_HANDOFF = "handoff to "  # the beginning of the name of a handoff's span
_MAX_DIGITS = 20
_NESTED = frozenset({"arrayValue", "array_value", "kvlistValue", "kvlist_value"})  # types of values with values inside
_CALL_PREFIXES = ("llm.output_messages.", "gen_ai.completion.")
_CALL_PATTERNS = tuple(zip(_CALL_PREFIXES, (".tool_call.", ".tool_calls."), strict=True))
"""Beginning and middle of the names of attributes that have one part of a tool call each, as `_flat_calls` reads."""

_ATTRIBUTES = frozenset(
    {"openinference.span.kind", "gen_ai.operation.name", "gen_ai.transfer.mode", "traceloop.span.kind"}
    | {"llm.request.type", "metadata", "graph.node.parent_id", "virtual_parent.genai", "service.name"}
    | {*_ERROR_TYPES, *_AGENT_NAMES, *_TOOL_NAMES, *_MODEL_NAMES, *_CALL_IDS, *_ARGUMENTS, *_ANSWERS, *_TARGETS}
    | _GENAI_ATTRIBUTES
    | _OPENINFERENCE_ATTRIBUTES
)
"""The attributes that are read. Other attributes are not decoded."""


class _Attribute(Struct):
    """An attribute with its undecoded value."""

    key: str
    value: Raw = NOTHING


def _complete(span: Span, attributes: dict[str, Any], logged: "_Span", privacy: Privacy, report: ImportReport) -> None:
    """Set the fields of a span that depend on its attributes and status; the others are set already."""
    title = span.name
    span.kind, span.unknown = _kind_of(attributes, title)
    span.agent = agent = first_text(attributes, _AGENT_NAMES)
    span.usage = _usage(attributes, span, report)
    span.is_error, span.error_type = _error(as_object(logged.status), logged.events, attributes)
    span.is_interrupted = span.error_type.endswith("Interrupt")
    metadata_text = attributes.get("metadata")
    if isinstance(metadata_text, str) and ("langgraph_" in metadata_text or "lc_agent_name" in metadata_text):
        metadata = as_object(decoded(metadata_text))
        span.task = spans.langgraph_task(metadata)
        span.agent = agent or as_text(metadata.get("lc_agent_name"))
        span.routes = _routes(_content(attributes, "output.value")) if span.task and span.kind is Kind.CHAIN else ()
    if span.kind is Kind.INFERENCE:
        span.library = span.library or next((name for name in _DIALECTS if name in attributes), "")
        span.model = first_text(attributes, _MODEL_NAMES)
        span.calls = _calls(attributes, privacy)
        span.output = _reference(attributes, _ANSWERS, privacy)
    elif span.kind is Kind.TOOL:
        span.name = first_text(attributes, _TOOL_NAMES) or title.removeprefix("execute_tool ")
        span.call_id = first_text(attributes, _CALL_IDS)
        span.arguments = _reference(attributes, _ARGUMENTS, privacy)
        span.output = _reference(attributes, _OUTPUTS, privacy)
    elif span.kind is Kind.AGENT:
        span.name = agent or as_text(attributes.get("traceloop.entity.name")) or title.removeprefix("invoke_agent ")
        span.is_named = bool(agent)
        span.follows = as_text(attributes.get("graph.node.parent_id"))
        span.model = first_text(attributes, _MODEL_NAMES)
    elif span.kind is Kind.CHAIN:
        span.name = title.removeprefix("custom ")  # spans that programs add themselves have this prefix
    elif span.kind is Kind.HANDOFF:
        span.target = first_text(attributes, _TARGETS) or title.removeprefix(_HANDOFF)


def _reference(attributes: dict[str, Any], names: tuple[str, ...], privacy: Privacy) -> str:
    """Return the reference to the content of the first of these attributes; empty if there is none."""
    for name in names:
        if name in attributes:
            return privacy.reference(_content(attributes, name))
    return ""


def _usage(attributes: Mapping[str, Any], span: Span, report: ImportReport) -> Usage | None:
    """Return the token counts that are stated in attributes of GenAI, or else of OpenInference."""
    usages = []
    for names, kinds in ((_GENAI_ATTRIBUTES, _GENAI_USAGE), (_OPENINFERENCE_ATTRIBUTES, _OPENINFERENCE_USAGE)):
        if not names.isdisjoint(attributes) and (usage := _counts(attributes, kinds)) is not None:
            usages.append(usage)
    if len(usages) > 1 and usages[0][:2] != usages[1][:2]:
        report.note(Problem.CONVENTIONS_DISAGREE, span.where)
    return usages[0] if usages else None


def _calls(attributes: dict[str, Any], privacy: Privacy) -> tuple[Call, ...]:
    """Return the tool calls of a model's answer, from the first dialect that has any."""
    return (
        tuple(_flat_calls(attributes, privacy))
        or calls_of(_content(attributes, "gen_ai.output.messages"), privacy)
        or calls_of(_content(attributes, "output.value"), privacy)
    )


def _decoded_attributes(attributes: list[_Attribute] | None) -> dict[str, Any]:
    """Return the values of the attributes that are read, by name. Contents stay undecoded, as they may be large."""
    values: dict[str, Any] = {}
    for attribute in attributes or ():
        name = attribute.key
        if name in _CONTENTS:
            values[name] = attribute.value
            continue
        is_call_part = name.startswith(_CALL_PREFIXES) and (".tool_call." in name or ".tool_calls." in name)
        if is_call_part or name in _ATTRIBUTES:
            values[name] = _value(decoded(attribute.value))
    return values


def _content(attributes: dict[str, Any], name: str) -> Any:
    """Return the content of an attribute, decoded on first use; None if there is no such attribute."""
    value = attributes.get(name)
    if isinstance(value, Raw):
        value = attributes[name] = _value(decoded(value))
    return value


def _value(value: Any) -> Any:
    """Return the value in an `AnyValue`, an object whose only member has the name of the type."""
    if type(value) is not dict or not value:
        return None
    type_name, content = next(iter(value.items()))
    if type_name not in _NESTED:
        return content
    inner = as_array(as_object(content).get("values"))
    if type_name.startswith("array"):
        return [_value(element) for element in inner]
    return {as_text(member.get("key")): _value(member.get("value")) for member in map(as_object, inner)}


def _kind_of(attributes: Mapping[str, Any], title: str) -> tuple[Kind, str]:
    """Return the kind of a span, and a description of its kind in the log if the importer does not know it."""
    if first_text(attributes, _TARGETS):
        is_call = attributes.get("gen_ai.transfer.mode") == "return_to_caller"
        return (Kind.TOOL if is_call else Kind.HANDOFF), ""
    if own_kind := as_text(attributes.get("openinference.span.kind")):
        kind = _OPENINFERENCE_KINDS.get(own_kind.upper())
        if kind is None:
            return Kind.CHAIN, f"span of kind {masked(own_kind)[:50]}"
        is_handoff = kind is Kind.TOOL and title.startswith(_HANDOFF) and not first_text(attributes, _TOOL_NAMES)
        return (Kind.HANDOFF if is_handoff else kind), ""
    if operation := as_text(attributes.get("gen_ai.operation.name")):
        kind = _OPERATION_KINDS.get(operation)
        return (Kind.CHAIN, f"operation {masked(operation)[:50]}") if kind is None else (kind, "")
    if (entity_kind := attributes.get("traceloop.span.kind")) in _TRACELOOP_KINDS:
        return _TRACELOOP_KINDS[entity_kind], ""
    if attributes.get("gen_ai.tool.call.id") or attributes.get("gen_ai.tool.name"):
        return Kind.TOOL, ""
    if attributes.get("agent_name"):
        return Kind.AGENT, ""
    is_model = attributes.get("gen_ai.request.model") or attributes.get("llm.request.type")
    return (Kind.INFERENCE if is_model else Kind.CHAIN), ""


def _counts(attributes: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> Usage | None:
    """Return the counts in the attributes of one convention, given the names of each count; None if it has none."""
    counts: dict[str, int] = {}
    for kind, attribute_names in names.items():
        for attribute in attribute_names:
            if (value := attributes.get(attribute)) is None:
                continue
            if type(value) is str and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
                value = int(value)  # Protobuf writes numbers of 64 bits as text in JSON
            if (tokens := as_count(value)) is not None:
                counts[kind] = tokens
                break
    return Usage(**counts) if counts else None


def _error(status: Mapping[str, Any], events: Raw, attributes: Mapping[str, Any]) -> tuple[bool, str]:
    """Return True and the kind of error if a span failed, else False and an empty text."""
    error_type = first_text(attributes, _ERROR_TYPES)
    if not error_type and status.get("code") not in (2, "2", "STATUS_CODE_ERROR", "ERROR"):
        return False, ""
    for event in as_array(decoded(events)):
        for attribute in as_array(as_object(event).get("attributes")):
            if as_object(attribute).get("key") == "exception.type":
                error_type = error_type or as_text(_value(attribute.get("value")))
    kind = masked(error_type).rsplit(".", 1)[-1] or spans.error_kind(status.get("message")) or "other"
    return (False, "") if kind == spans.PARENT_COMMAND else (True, kind)


def _routes(output: Any) -> tuple[str, ...]:
    """Return the nodes that a LangGraph task chose to run next, by its output as text."""
    if not isinstance(output, str):
        return ()
    if not output.startswith("{"):
        return spans.langgraph_routes({"output": output})
    return spans.langgraph_routes(decoded(output)) if '"goto"' in output or '"output"' in output else ()


def _flat_calls(attributes: Mapping[str, Any], privacy: Privacy) -> Iterator[Call]:
    """Yield calls that have an attribute for each part: `llm.output_messages.0.message.tool_calls.0.tool_call.id`."""
    parts_by_call: dict[str, dict[str, Any]] = {}
    for name, value in attributes.items():
        for beginning, middle in _CALL_PATTERNS if name.startswith(_CALL_PREFIXES) else ():
            if name.startswith(beginning) and middle in name:
                call, _, part = name.rpartition(middle)
                if middle == ".tool_calls.":  # the index of the call comes after it
                    index, _, part = part.partition(".")
                    call = f"{call}.{index}"
                parts_by_call.setdefault(call, {})[part.removeprefix("function.")] = value
    for parts in parts_by_call.values():
        if parts.get("name"):
            yield Call(as_text(parts.get("id")), as_text(parts["name"]), privacy.reference(parts.get("arguments")))


# member names of OTLP: as JSON has them, as Protobuf has them, and older ones
_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SPAN_IDS = {"spanId", "span_id"}
_MAX_ID_LENGTH = 32
_START_TIMES = {"startTimeUnixNano", "start_time_unix_nano"}


class _Resource(Struct):
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
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None

    def __post_init__(self) -> None:
        if self.scope_spans is None:
            raise ValueError("no spans, or under an old name")  # then the request is read by `_spans_of_part`


class _Request(_Span, rename="camel"):
    """A request, which has spans in `resource_spans`, or a span."""

    resource_spans: list[_ResourceSpans] | None = None

    def __post_init__(self) -> None:
        if self.resource_spans is None and self.span_id is None:
            raise ValueError("no span")


class _Program(NamedTuple):
    """The program that wrote a span, as far as the log names it."""

    system: str = ""
    version: str = ""
    library: str = ""


_LocatedSpan = tuple[_Span | None, int, _Program]
"""A span with its line and program; None in place of a span for a record that is no span."""


def recognises(beginning: Head) -> bool:
    """Return True if a file begins with requests of spans, or with spans."""
    names = beginning.outline
    is_span = bool(names & _SPAN_IDS and names & _START_TIMES)
    return is_span or not names.isdisjoint(_RESOURCES)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the files."""
    collector = SpanCollector(files, privacy)
    for file in files:
        for record, record_line in read_records(file, collector.report, _Request):
            for span, line, program in _spans(record, record_line):
                _add_span(span, file.name, line, program, privacy, collector)
    yield from collector.traces("otlp", "opentelemetry")


def _spans(record: Any, line: int) -> Iterator[_LocatedSpan]:
    """Yield the spans of a record, which is a request or a `Part`."""
    if not isinstance(record, _Request):
        yield from _spans_of_part(record)
    elif record.resource_spans is None:
        yield record, line, _Program()
    else:
        for resource in record.resource_spans:
            for scope in resource.scope_spans or ():
                program = _program(resource.resource, scope.scope)
                for span in scope.spans or ():
                    yield span, line, program


def _spans_of_part(top: Part) -> Iterator[_LocatedSpan]:
    """Yield the spans of a document, or of a record that is no `_Request`, such as one with Protobuf's names."""
    for part in top.elements() if top.is_array else (top,):
        members = part.members()
        name = next((name for name in _RESOURCES if name in members and members[name].is_array), "")
        if not name:
            yield _decode_span(part), part.line, _Program()
            continue
        for resource_spans in members[name].elements():
            resource_members = resource_spans.members()
            resource = _decode_resource(resource_members["resource"]) if "resource" in resource_members else None
            scopes = next((resource_members[name] for name in _SCOPES if name in resource_members), None)
            for scope_spans in scopes.elements() if scopes is not None else ():
                scope_members = scope_spans.members()
                scope = scope_members["scope"].value(_Scope) if "scope" in scope_members else None
                program = _program(resource, scope)
                for span in scope_members["spans"].elements() if "spans" in scope_members else ():
                    yield _decode_span(span), span.line, program


def _decode_span(part: Part) -> _Span | None:
    """Return a span. It may have Protobuf's names, or an object as its attributes."""
    span: _Span | None = part.value(_Span)
    if span is None or span.span_id is None:
        json_names = dict(zip(_Span.__struct_fields__, _Span.__struct_encode_fields__, strict=True))
        renamed = {json_names.get(name, name): value for name, value in as_object(part.value()).items()}
        span = decoded(encoded(_with_attribute_list(renamed)), _Span)
    return span


def _decode_resource(part: Part) -> _Resource | None:
    resource: _Resource | None = part.value(_Resource)
    return resource or decoded(encoded(_with_attribute_list(part.value())), _Resource)


def _program(resource: _Resource | None, scope: _Scope | None) -> _Program:
    """Return the program that a resource and an instrumentation scope name."""
    scope = scope or _Scope()
    library = as_text(scope.name)
    service = as_text(_decoded_attributes(resource.attributes).get("service.name")) if resource else ""
    system = library if service.startswith("unknown_service") else service
    return _Program(system, as_text(scope.version), library)


def _with_attribute_list(value: Any) -> Any:
    """Return a JSON object with its attributes as a list of keys and values, as OTLP has them."""
    attributes = as_object(value).get("attributes")
    if isinstance(attributes, dict):
        return {**value, "attributes": [{"key": name, "value": {"": content}} for name, content in attributes.items()]}
    return value


def _add_span(
    span: _Span | None, file: str, line: int, program: _Program, privacy: Privacy, collector: SpanCollector
) -> None:
    """Add a span to the bundle of its trace."""
    span_id = _identifier(span.span_id) if span else ""
    if span is None or not span_id:
        collector.report.drop(Drop.NO_SPAN, file, line)
        return
    bundle = collector.bundle(_identifier(span.trace_id))
    if not bundle.system:
        bundle.system, bundle.version = program.system, program.version
    attributes = _decoded_attributes(span.attributes)
    parent = _identifier(span.parent_span_id)
    genai_parent = _identifier(attributes.get("virtual_parent.genai"))  # the next GenAI span above, by Visual Studio
    start, end = _moment(span.start_time_unix_nano), _moment(span.end_time_unix_nano)
    new = Span(span_id, genai_parent or parent, CHAIN, as_text(span.name), file, line, parent, start, end)
    new.library = program.library
    _complete(new, attributes, span, privacy, collector.report)
    bundle.spans.append(new)


def _identifier(value: Any) -> str:
    """Return an id in hexadecimal digits; empty for no id, which may be written as zeros."""
    if not isinstance(value, str):
        return ""
    return _hexadecimal(value) if len(value) <= _MAX_ID_LENGTH else value


@lru_cache(maxsize=1_000)  # many spans have the same trace or parent
def _hexadecimal(text: str) -> str:
    if len(text) in (16, 32):
        text = text.lower()
    elif len(text) in (11, 12, 22, 24):
        from base64 import b64decode

        digits = text.rstrip("=")
        with suppress(ValueError):
            text = b64decode(digits + "=" * (-len(digits) % 4), validate=True).hex()
    return text if text.strip("0") else ""


def _moment(value: Any) -> float | None:
    """Convert nanoseconds since 1970, a number or a text, to seconds; return None for any other value."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 25:
        value = int(value)
    return instant(value, 1e9) if type(value) is not str else None
