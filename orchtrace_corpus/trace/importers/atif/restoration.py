"""Restore the traces that `exporters.atif` wrote: each step, call or result becomes an event again.

Each of these has the fields of its event that ATIF has, and the others under one key in `extra`. Fields of ATIF go
first, so that editing a step edits its event.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from orchtrace_corpus.trace.importers.core.builder import token_totals
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.values import object_field, objects
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind

KEY = "orchtrace"
"""The key in `extra` of the fields that ATIF does not have."""

_HASH = "sha256:"


def metrics_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of the step of an event; empty if no tokens are known."""
    tokens = {kind: int(count) for kind, count in (event.get("tokens") or {}).items() if count is not None}
    kinds = tuple(tokens.get(kind) for kind in ("input", "cache_read", "cache_write"))
    metrics = {
        "prompt_tokens": None if kinds[0] is None else sum(kind or 0 for kind in kinds),
        "completion_tokens": tokens.get("output"),
        "cached_tokens": kinds[1],
        "cost_usd": event.get("cost_usd"),
        "extra": {
            name: tokens[kind]
            for name, kind in (("cache_write_tokens", "cache_write"), ("reasoning_tokens", "reasoning"))
            if kind in tokens
        },
    }
    return {name: value for name, value in metrics.items() if value not in (None, {})}


def fields_of_step(step: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return the fields of an event that the fields of its step state."""
    fields: dict[str, Any] = {"agent": agent}
    if model := step.get("model_name"):
        fields["model"] = model
    if step.get("is_copied_context") is True:
        fields["copied_context"] = True
    if message := step.get("message"):
        fields["content_ref"] = message
    metrics = object_field(step, "metrics")
    if (cost := metrics.get("cost_usd")) is not None:
        fields["cost_usd"] = cost
    further = object_field(metrics, "extra")
    prompt, cached = metrics.get("prompt_tokens"), metrics.get("cached_tokens")
    written = further.get("cache_write_tokens")
    if type(prompt) is int:
        prompt -= sum(part for part in (cached, written) if type(part) is int)
    kinds = {
        "input": prompt,
        "output": metrics.get("completion_tokens"),
        "cache_read": cached,
        "cache_write": written,
        "reasoning": further.get("reasoning_tokens"),
    }
    if tokens := {kind: count for kind, count in kinds.items() if count is not None}:
        fields["tokens"] = tokens
    return fields


def fields_of_call(call: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return the fields of an event that the fields of its tool call state."""
    return {"agent": agent, "tool": call.get("function_name"), "call_id": call.get("tool_call_id")}


def fields_of_result(result: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return the fields of an event that the fields of its result state."""
    names = {"call_id": result.get("source_call_id"), "content_ref": result.get("content")}
    return {"agent": agent, **{name: value for name, value in names.items() if value}}


def unstated_fields(event: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an event that ATIF does not state; null for a field that ATIF states and the event lacks."""
    others = {name: value for name, value in event.items() if name not in stated or stated[name] != value}
    return {**others, **{name: None for name in stated if name not in event}}


def restore(data: bytes, file: LogFile, privacy: Privacy, report: ImportReport) -> Trace | None:
    """Return the trace that was exported to a document; None for any other document, and if it cannot be restored."""
    try:
        document = msgspec.json.decode(data)
    except UnicodeDecodeError:
        document = msgspec.json.decode(data.decode("utf-8", "replace"))
    own = object_field(object_field(document, "extra"), KEY)
    if not isinstance(own.get("trace"), dict):
        return None
    numbered = sorted(_events(document), key=lambda pair: pair[0])
    events = [event for _, event in numbered]
    names = {str(event.get("id")) for event in events}
    edges = objects(own.get("edges"))
    linked = [edge for edge in edges if {str(edge.get("src")), str(edge.get("dst"))} <= names]
    for event in events:
        content = event.get("content_ref", "")
        if not (isinstance(content, str) and content.startswith(_HASH)):
            event["content_ref"] = privacy.reference(content)
    try:
        trace = msgspec.convert(_masked({**own["trace"], "events": events, "edges": linked}, privacy), Trace)
    except (msgspec.ValidationError, RecursionError):
        report.note(Problem.UNUSABLE_EXTRA, file.name)
        return None
    is_whole = len(linked) == len(edges) and len(events) == own.get("events")
    if not is_whole or not trace.import_report:
        _count(trace, file, report, is_whole=is_whole)
    return trace


def _count(trace: Trace, file: LogFile, report: ImportReport, *, is_whole: bool) -> None:
    """Add an import report to a trace, and the total of the events that it still has."""
    report.records_read += len(trace.events)
    spent = 0.0
    for event in trace.events:
        if isinstance(event.tokens, Tokens) and not event.copied_context:
            report.enter(LedgerLine.OWN, 1, **by_kind(event.tokens))
            spent += total(event.tokens)
    if not is_whole:
        report.note(Problem.UNUSABLE_EXTRA, file.name)
        if trace.costs.get("tokens") is not None:
            trace.costs["tokens"] = spent
    trace.import_report = {**report.as_data(), "token_totals": token_totals(trace.events)}


def _events(document: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the events of a trajectory and its sub-agents, each with its position in the trace."""
    waiting = [document]
    while waiting:
        tree = waiting.pop()
        agent = object_field(tree, "agent").get("name")
        for step in objects(tree.get("steps")):
            yield from _event(step, fields_of_step(step, agent))
            for call in objects(step.get("tool_calls")):
                yield from _event(call, fields_of_call(call, agent))
            for result in objects(object_field(step, "observation").get("results")):
                yield from _event(result, fields_of_result(result, agent))
        waiting += objects(tree.get("subagent_trajectories"))


def _event(holder: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    kept = object_field(object_field(holder, "extra"), KEY)
    if isinstance(kept.get("event"), dict) and type(kept.get("number")) is int:
        fields = {**said, **kept["event"]}
        yield kept["number"], {name: value for name, value in fields.items() if value is not None}


def _masked(value: Any, privacy: Privacy) -> Any:
    """Return a value with all texts masked but the contents that are kept."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [_masked(inner, privacy) for inner in value]
    if isinstance(value, dict):
        is_kept = privacy.keep_content
        return {
            masked(name): inner if is_kept and name == "content_ref" else _masked(inner, privacy)
            for name, inner in value.items()
        }
    return value
