"""OpenTelemetry: spans in OTLP JSON, with the attributes of GenAI (old and new), OpenInference or OpenLLMetry.

Spans come in requests (`resourceSpans`): one object, an array, or one on each line; or bare, in the same ways. Ids
are hex, as the OTLP specification has them, or base64, as plain Protobuf JSON has. GenAI semantic conventions:
github.com/open-telemetry/semantic-conventions-genai; OpenInference: github.com/Arize-ai/openinference, spec.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from msgspec import Raw, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, Part, decoded, encoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.values import mapping, string
from orchtrace_corpus.trace.importers.spans import files as spanfiles
from orchtrace_corpus.trace.importers.spans.attributes import Attribute, describe, plain
from orchtrace_corpus.trace.importers.spans.files import Gathering, Record
from orchtrace_corpus.trace.importers.spans.span import CHAIN, Span
from orchtrace_corpus.trace.model.import_report import Drop
from orchtrace_corpus.trace.model.trace import Trace

_FORM = "otlp"
_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SPAN = {"spanId", "span_id"}
_LONGEST_ID = 32
_START = {"startTimeUnixNano", "start_time_unix_nano"}


class _Attributed(Struct):
    """A resource."""

    attributes: list[Attribute] | None = None


class _Scope(Struct):
    """The instrumentation that wrote spans."""

    name: Any = None
    version: Any = None


class _Span(Struct, rename="camel"):
    """A span."""

    trace_id: Any = None
    span_id: Any = None
    parent_span_id: Any = None
    name: Any = None
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    status: Any = None
    events: Raw = NOTHING
    attributes: list[Attribute] | None = None


class _ScopeSpans(Struct):
    """Spans of one instrumentation."""

    scope: _Scope | None = None
    spans: list[_Span] | None = None


class _ResourceSpans(Struct, rename="camel"):
    """Spans of one program."""

    resource: _Attributed | None = None
    scope_spans: list[_ScopeSpans] | None = None

    def __post_init__(self) -> None:
        if self.scope_spans is None:
            raise ValueError("no spans, or under a name of old")


class _Request(_Span, rename="camel"):
    """A request full of spans, or a span."""

    resource_spans: list[_ResourceSpans] | None = None

    def __post_init__(self) -> None:
        if self.resource_spans is None and self.span_id is None:
            raise ValueError("no span")


class _Program(NamedTuple):
    """What wrote spans."""

    system: str = ""
    version: str = ""
    library: str = ""


_Found = tuple[_Span | None, int, _Program]

ties = spanfiles.ties


def recognises(beginning: Head) -> bool:
    """Return True if a file begins with requests of spans, or with spans."""
    names = beginning.outline
    return bool(names.intersection(_RESOURCES)) or bool(names & _SPAN and names & _START)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the files.

    Raises:
        DataFileError: A file cannot be read, or holds no span that is an event.
    """
    found = Gathering(files)
    for file in files:
        for record in spanfiles.records(file, found.report, _Request):
            for span, line, program in _spans(record):
                _gather(span, file.name, line, program, privacy, found)
    yield from found.traces(_FORM, "opentelemetry", privacy)


def _spans(record: Record) -> Iterator[_Found]:
    """Yield the spans of a record, each with its line, its resource and its scope; None for what is no span."""
    value, line = record
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


def _spans_of_another_shape(top: Part) -> Iterator[_Found]:
    """Yield the same of a document, of Protobuf's names, or of a request in which something is strange."""
    for part in top.elements() if top.is_array else (top,):
        members = part.members()
        name = next((name for name in _RESOURCES if name in members and members[name].is_array), "")
        if not name:
            yield _fitted(part), part.line, _Program()
            continue
        for resource in members[name].elements():
            of_resource = resource.members()
            source = _resource(of_resource["resource"]) if "resource" in of_resource else None
            inside = next((each for each in _SCOPES if each in of_resource), "")
            for scope in of_resource[inside].elements() if inside else ():
                of_scope = scope.members()
                program = _program(source, of_scope["scope"].value(_Scope) if "scope" in of_scope else None)
                for span in of_scope["spans"].elements() if "spans" in of_scope else ():
                    yield _fitted(span), span.line, program


def _fitted(part: Part) -> _Span | None:
    """Return a span, also where its names are those of Protobuf, or its attributes an object."""
    span: _Span | None = part.value(_Span)
    if span is None or span.span_id is None:
        names = dict(zip(_Span.__struct_fields__, _Span.__struct_encode_fields__, strict=True))
        renamed = {names.get(name, name): value for name, value in mapping(part.value()).items()}
        span = decoded(encoded(_with_plain(renamed)), _Span)
    return span


def _resource(part: Part) -> _Attributed | None:
    found: _Attributed | None = part.value(_Attributed)
    return found or decoded(encoded(_with_plain(part.value())), _Attributed)


def _program(resource: _Attributed | None, scope: _Scope | None) -> _Program:
    """Return the program by the name of its service, else by that of its instrumentation."""
    service = string(plain(resource.attributes).get("service.name")) if resource else ""
    name, version = (string(scope.name), string(scope.version)) if scope else ("", "")
    return _Program(name if service.startswith("unknown_service") else service, version, name)


def _with_plain(value: Any) -> Any:
    """Return an object of which the attributes are a list, as OTLP has them, not an object."""
    given = mapping(value).get("attributes")
    if isinstance(given, dict):
        return {**value, "attributes": [{"key": name, "value": {"": content}} for name, content in given.items()]}
    return value


def _gather(span: _Span | None, file: str, line: int, program: _Program, privacy: Privacy, found: Gathering) -> None:
    name = identifier(span.span_id) if span else ""
    if span is None or not name:
        found.report.drop(Drop.NO_SPAN, file, line)
        return
    bundle = found.bundle(identifier(span.trace_id))
    if not bundle.system:
        bundle.system, bundle.version = program.system, program.version
    known = plain(span.attributes)
    logged = identifier(span.parent_span_id)
    # The next GenAI span above, in files of Visual Studio.
    virtual = identifier(known["virtual_parent.genai"]) if "virtual_parent.genai" in known else ""
    start, end = _moment(span.start_time_unix_nano), _moment(span.end_time_unix_nano)
    read = Span(name, virtual or logged, CHAIN, string(span.name), file, line, logged, start, end)
    read.library = program.library
    describe(read, known, mapping(span.status), span.events, privacy, found.report)
    bundle.spans.append(read)


def identifier(value: Any) -> str:
    """Return an id in hex, however it is written; empty for none, which is also written as zeros."""
    if not isinstance(value, str):
        return ""
    return _in_hex(value) if len(value) <= _LONGEST_ID else value


@lru_cache(maxsize=1_000)  # that of a trace, or of a parent, stands at many spans
def _in_hex(given: str) -> str:
    if len(given) in (16, 32):
        given = given.lower()
    elif len(given) in (11, 12, 22, 24):
        from base64 import b64decode

        with suppress(ValueError):
            given = b64decode(given.rstrip("=") + "=" * (-len(given.rstrip("=")) % 4), validate=True).hex()
    return given if given.strip("0") else ""


def _moment(value: Any) -> float | None:
    """Return a time in nanoseconds since 1970, as a number or as text, in seconds."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 25:
        value = int(value)
    return instant(value, 1e9) if type(value) is not str else None
