"""Restore traces from the documents that `exporters.atif` writes.

Each step, call or result of such a document holds one event: ATIF's own fields state some fields of the event, and
`extra` has the others. `metrics_of` and `unstated_fields` are for the exporter; the other functions restore.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from orchtrace_corpus.trace.importers.core.builder import token_totals
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.values import object_field, objects_in
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind

KEY = "orchtrace"  # the key in `extra` of the fields that ATIF does not have
_HASH = "sha256:"


def metrics_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `metrics` of an event's step; empty if neither tokens nor costs are known."""
    tokens = {kind: int(count) for kind, count in (event.get("tokens") or {}).items() if count is not None}
    metrics: dict[str, Any] = {}
    if "input" in tokens:  # the prompt of ATIF includes what was read from and written to caches
        metrics["prompt_tokens"] = tokens["input"] + tokens.get("cache_read", 0) + tokens.get("cache_write", 0)
    if "output" in tokens:
        metrics["completion_tokens"] = tokens["output"]
    if "cache_read" in tokens:
        metrics["cached_tokens"] = tokens["cache_read"]
    if event.get("cost_usd") is not None:
        metrics["cost_usd"] = event["cost_usd"]
    extra = {f"{kind}_tokens": tokens[kind] for kind in ("cache_write", "reasoning") if kind in tokens}
    if extra:
        metrics["extra"] = extra
    return metrics


def fields_of_step(step: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return the fields of an event that ATIF's fields of its step state."""
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
    extra = object_field(metrics, "extra")
    prompt, cache_read = metrics.get("prompt_tokens"), metrics.get("cached_tokens")
    cache_write = extra.get("cache_write_tokens")
    if type(prompt) is int:
        prompt -= sum(count for count in (cache_read, cache_write) if type(count) is int)
    counts = {
        "input": prompt,
        "output": metrics.get("completion_tokens"),
        "cache_read": cache_read,
        "cache_write": cache_write,
        "reasoning": extra.get("reasoning_tokens"),
    }
    tokens = {kind: count for kind, count in counts.items() if count is not None}
    if tokens:
        fields["tokens"] = tokens
    return fields


def fields_of_call(call: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return the fields of an event that ATIF's fields of its tool call state."""
    return {"agent": agent, "tool": call.get("function_name"), "call_id": call.get("tool_call_id")}


def fields_of_result(result: Mapping[str, Any], agent: Any) -> dict[str, Any]:
    """Return the fields of an event that ATIF's fields of its result state."""
    fields = {"agent": agent, "call_id": result.get("source_call_id"), "content_ref": result.get("content")}
    return {name: value for name, value in fields.items() if value or name == "agent"}


def unstated_fields(event: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an event that ATIF does not state; None for a stated field that the event does not have."""
    others = {name: value for name, value in event.items() if name not in stated or stated[name] != value}
    return {**others, **{name: None for name in stated if name not in event}}


def restore(data: bytes, file: LogFile, privacy: Privacy, report: ImportReport) -> Trace | None:
    """Return the trace that was exported to a document; None for any other document or one that was made invalid."""
    try:
        document = msgspec.json.decode(data)
    except UnicodeDecodeError:
        document = msgspec.json.decode(data.decode("utf-8", "replace"))
    exported = object_field(object_field(document, "extra"), KEY)
    if not isinstance(exported.get("trace"), dict):
        return None
    numbered = sorted(_events(document), key=lambda pair: pair[0])
    events = [event for _, event in numbered]
    event_ids = {str(event.get("id")) for event in events}
    edges = objects_in(exported.get("edges"))
    linked = [edge for edge in edges if {str(edge.get("src")), str(edge.get("dst"))} <= event_ids]
    for event in events:
        content = event.get("content_ref", "")
        if not (isinstance(content, str) and content.startswith(_HASH)):
            event["content_ref"] = privacy.reference(content)
    try:
        trace = msgspec.convert(_masked({**exported["trace"], "events": events, "edges": linked}, privacy), Trace)
    except (msgspec.ValidationError, RecursionError):
        report.note(Problem.UNUSABLE_EXTRA, file.name)
        return None
    is_whole = len(linked) == len(edges) and len(events) == exported.get("events")  # no event was deleted
    if not is_whole or not trace.import_report:
        _add_report(trace, file, report, is_whole=is_whole)
    return trace


def _add_report(trace: Trace, file: LogFile, report: ImportReport, *, is_whole: bool) -> None:
    """Add an import report to a trace; if events are missing, correct its total of tokens."""
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
        trajectory = waiting.pop()
        agent = object_field(trajectory, "agent").get("name")
        for step in objects_in(trajectory.get("steps")):
            yield from _event(step, fields_of_step(step, agent))
            for call in objects_in(step.get("tool_calls")):
                yield from _event(call, fields_of_call(call, agent))
            for result in objects_in(object_field(step, "observation").get("results")):
                yield from _event(result, fields_of_result(result, agent))
        waiting += objects_in(trajectory.get("subagent_trajectories"))


def _event(holder: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the event that a step, call or result holds, with its position; nothing if it holds none."""
    exported = object_field(object_field(holder, "extra"), KEY)
    if isinstance(exported.get("event"), dict) and type(exported.get("number")) is int:
        fields = {**stated, **exported["event"]}
        yield exported["number"], {name: value for name, value in fields.items() if value is not None}


def _masked(value: Any, privacy: Privacy) -> Any:
    """Return a JSON value with private parts of its texts masked; contents stay if they are kept."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [_masked(inner, privacy) for inner in value]
    if isinstance(value, dict):
        masked_members = {}
        for name, inner in value.items():
            is_kept = name == "content_ref" and privacy.keep_content
            masked_members[masked(name)] = inner if is_kept else _masked(inner, privacy)
        return masked_members
    return value
