"""Report all errors of a document that is not a valid trace, with their places.

For a text that is not JSON, the first syntax error is reported. For JSON that does not follow the schema, events and
edges are decoded one by one. If one cannot be decoded, it is checked against `schema.json`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.findings import Finding, Location, printable, quote, suggestion
from orchtrace_corpus.base.json_places import Path, Places, children, json_path
from orchtrace_corpus.base.json_syntax import Kind, exceeds_depth, first_fault
from orchtrace_corpus.trace.model.json_text import Oversized, has_oversized, loads
from orchtrace_corpus.trace.model.trace import Edge, Event

_MAX_PROBLEMS = 100
"""The most wrong events, and the most wrong edges, that are described. In a file of another format, all are wrong."""


class _TraceId(msgspec.Struct):
    trace_id: str = ""


_ITEM_TYPES: dict[str, type[Event | Edge]] = {"events": Event, "edges": Edge}
_MESSAGES = {
    Kind.SYNTAX: ("T101", "not JSON: {}"),
    Kind.EMPTY: ("T102", "nothing in the file; a trace is a JSON object"),
    Kind.EXTRA_DATA: ("T101", "not JSON: the trace has ended before this; in JSON Lines each trace stands on one line"),
    Kind.NOT_FINITE: ("T104", "{}; write null for unknown"),
}
_TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
}
_TYPE_NAMES |= {"boolean": "true or false", "null": "null"}
_PLACEHOLDERS = {"events": [{"id": "-", "t": 0, "type": "message", "agent": "-"}], "edges": list[Any]()}


def explain(data: bytes, places: Places, refusal: Exception) -> tuple[Finding, ...]:
    """Return the errors of a document that could not be decoded as a trace, in the order of the text.

    Args:
        data: The document.
        places: Finds the places of its values.
        refusal: The exception that decoding raised.
    """
    if isinstance(refusal, UnicodeDecodeError):
        return (Finding("T103", "not UTF-8; save the file in UTF-8", places.location(refusal.start)),)
    if not isinstance(refusal, msgspec.ValidationError) or exceeds_depth(data):
        return (_syntax_finding(data, places, refusal),)
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # raises an error if what follows the wrong value is not JSON
        findings = sorted(_schema_errors(data, places), key=lambda finding: finding.location)
        if not findings:
            findings = [_refusal_finding(refusal, data, places)]
        trace_id = ""
        with suppress(msgspec.ValidationError):
            trace_id = msgspec.json.decode(data, type=_TraceId).trace_id
    except (msgspec.DecodeError, RecursionError) as error:
        return (_syntax_finding(data, places, error),)
    return tuple(finding._replace(record=trace_id) for finding in findings)


def _syntax_finding(data: bytes, places: Places, refusal: Exception) -> Finding:
    start = places.location(0)
    fault = first_fault(data.decode(), first_line=start.line)
    if fault is None:
        return Finding("T101", f"not JSON: {printable(str(refusal), limit=200)}", start)
    code, message = _MESSAGES.get(fault.kind, ("T101", "{}"))
    return Finding(code, message.format(fault.message), Location(start.path, fault.line, fault.column))


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of traces."""
    text = read_text_beside(__file__, "schema.json")
    return dict(json.loads(text))


@cache
def _validator(part: str) -> Any:
    """Return the validator of a part of the schema, `event` or `edge`, or of a whole trace for an empty name."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def required(_: Any, names: list[str], value: Any, __: Any) -> Iterator[ValidationError]:
        """Yield an error for each missing name, with the name as its `validator_value`."""
        if isinstance(value, dict):
            for name in names:
                if name not in value:
                    yield ValidationError("", validator_value=name)

    extend: Any = validators.extend  # untyped
    validator = extend(Draft202012Validator, {"required": required})
    if not part:
        return validator(schema())
    return validator({"$ref": f"#/$defs/{part}", "$defs": schema()["$defs"]})


def _schema_errors(data: bytes, places: Places) -> Iterator[Finding]:
    """Yield the violations of the schema in a document that is JSON."""
    try:
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        yield Finding("T112", "a trace is an object, in braces", places.locate(()))
        return
    small_trace = {}  # with few events and edges, because checking a trace by the schema is slow
    for name, raw in members.items():
        has_items = name in _PLACEHOLDERS and _is_list(raw)
        small_trace[name] = _PLACEHOLDERS[name] if has_items else loads(bytes(raw))
    yield from _schema_findings("", small_trace, (), places)
    for name, shape in _ITEM_TYPES.items():
        if name in members and _is_list(members[name]):
            items = msgspec.json.decode(members[name], type=list[msgspec.Raw])
            if name == "events" and not items:
                yield Finding("T115", "events is empty; a trace has at least one", places.locate((name,)))
            yield from _wrong_items(name, items, msgspec.json.Decoder(shape), places)


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def _wrong_items(
    name: str, items: list[msgspec.Raw], decoder: msgspec.json.Decoder[Any], places: Places
) -> Iterator[Finding]:
    """Yield the errors of events or edges, as `name` says."""
    wrong_count = 0
    for index, item in enumerate(items):
        try:
            decoder.decode(item)
        except msgspec.ValidationError:
            wrong_count += 1
            if wrong_count <= _MAX_PROBLEMS:
                yield from _schema_findings(name.removesuffix("s"), loads(bytes(item)), (name, index), places)
    if wrong_count > _MAX_PROBLEMS:
        message = f"{wrong_count} of {len(items)} {name} are wrong; the first {_MAX_PROBLEMS} are described"
        yield Finding("T112", message, places.locate((name,)))


def _schema_findings(part: str, value: Any, path: Path, places: Places) -> Iterator[Finding]:
    """Yield the errors of the value at a path, sorted by the path of the wrong value; `part` is as in `_validator`."""
    for error in sorted(_validator(part).iter_errors(value), key=lambda error: list(map(str, error.absolute_path))):
        error_path = (*path, *error.absolute_path)
        code, message, member = describe(error)
        location = places.locate((*error_path, member) if member else error_path)
        yield Finding(code, f"{json_path(error_path)}: {message}", location)


def _refusal_finding(error: msgspec.ValidationError, data: bytes, places: Places) -> Finding:
    """Return the error of a decoder that the schema does not report: an oversized number, or a repeated name.

    JSON does not define the meaning of a repeated name. The last of its values counts, but all must be valid.
    """
    sentence, _, place = str(error).partition(" - at `$")
    steps = re.findall(r"\[\d+\]|[^.\[\]`]+", place)
    path = tuple(int(step[1:-1]) if step.startswith("[") else step for step in steps)
    if _is_oversized(data, path):
        code, hint = "T104", ""
    else:
        code, hint = "T115", "; is the name given twice?"
    return Finding(code, f"{json_path(path)}: {sentence[:1].lower()}{sentence[1:]}{hint}", places.locate(path))


def _is_oversized(data: bytes, path: Path) -> bool:
    """Return True if a value at a path has an oversized number.

    A path with a repeated name has several values. A step that does not exist in the document is skipped.
    """
    values: list[tuple[int, bytes | memoryview]] = [(len(data) - len(data.lstrip()), data)]  # position and text
    for step in path:
        inner_values: list[tuple[int, bytes | memoryview]] = []
        for begin, text in values:
            inner_values += [(start, inner) for name, start, inner in children(data, begin, text) if name == step]
        values = inner_values or values
    return any(has_oversized(bytes(text)) for _, text in values)


def describe(error: Any) -> tuple[str, str, str]:
    """Return the code and the message of an error, and the unknown member of the value, if that is the error.

    Args:
        error: A `jsonschema.ValidationError`. For `required`, its `validator_value` is the missing name.
    """
    keyword, expected, value = error.validator, error.validator_value, error.instance
    if isinstance(value, Oversized):
        return "T104", f"{quote(value.word)} is too large for a number", ""
    if keyword == "required":
        return "T111", f"missing field {quote(expected)}", ""
    if keyword == "type":
        types = [expected] if isinstance(expected, str) else expected
        names = " or ".join(_TYPE_NAMES[name] for name in types)
        return "T112", f"expected {names}, got {_describe_value(value)}", ""
    if keyword == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(name for name in value if name not in known)
        return "T113", f"unknown field {quote(unknown)}{suggestion(unknown, known, always_list=False)}", unknown
    if keyword == "enum":
        text = value if isinstance(value, str) else _describe_value(value)
        return "T114", f"unknown word {quote(text)}{suggestion(text, expected)}", ""
    if keyword == "minLength":
        return "T115", "empty", ""
    if keyword == "minItems":
        return "T115", "empty; there is at least one", ""
    bound = {"minimum": "at least", "maximum": "at most"}[keyword]
    return "T115", f"{_describe_value(value)} is out of range; {bound} {expected}", ""


def _describe_value(value: Any) -> str:
    """Return a short description of a wrong value."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return str(value)
