"""OpenTelemetry spans as OTLP JSON, and the spans of the OpenAI Agents SDK with GenAI attributes."""

import json
from collections.abc import Sequence
from typing import Any


def request(spans: Sequence[Any]) -> dict[str, Any]:
    """Return spans as Protobuf JSON: ids in base64, kinds and status codes by name; without traces of the machine."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    request: dict[str, Any] = MessageToDict(encode_spans(spans))
    for resource in request["resourceSpans"]:
        kept = ("telemetry.sdk.language", "telemetry.sdk.name", "telemetry.sdk.version", "service.name")
        attributes = resource["resource"]["attributes"]
        resource["resource"]["attributes"] = [attribute for attribute in attributes if attribute["key"] in kept]
    return request


def with_hex_ids(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request as OTLP/JSON: ids in hexadecimal, kinds and status codes as numbers."""
    from base64 import b64decode

    codes = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    span[name] = b64decode(span.get(name, "")).hex()
                span["kind"] = 1
                status = span.get("status", {})
                if "code" in status:
                    status["code"] = codes[status["code"]]
    return request


def genai_request(exported: Sequence[Any]) -> dict[str, Any]:
    """Return the spans of an SDK's export as OpenTelemetry spans with GenAI attributes, in Protobuf JSON.

    The span of an agent has the usage of all spans below it, as in many programs. A handoff has the proposed
    attributes; for guardrails there are none.
    """
    from datetime import datetime

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    def nanoseconds(instant: str) -> int:
        moment = datetime.fromisoformat(instant)
        return int(moment.timestamp()) * 10**9 + moment.microsecond * 1000

    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("scripted", "1")
    spans = [item for item in exported if item["object"] == "trace.span"]
    first = min(span["started_at"] for span in spans)
    last = max(span["ended_at"] for span in spans)
    name = exported[0]["workflow_name"]
    attributes = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": name}
    root = tracer.start_span(f"invoke_workflow {name}", start_time=nanoseconds(first), attributes=attributes)
    started = {None: root}
    for span in sorted(spans, key=lambda span: span["started_at"]):
        title, attributes = _genai(span, spans)
        parent = set_span_in_context(started[span["parent_id"]])
        start = nanoseconds(span["started_at"])
        started[span["id"]] = tracer.start_span(title, context=parent, start_time=start, attributes=attributes)
        if span["error"]:
            started[span["id"]].set_status(Status(StatusCode.ERROR, span["error"]["message"]))
    for span in sorted(spans, key=lambda span: span["ended_at"]):
        started[span["id"]].end(nanoseconds(span["ended_at"]))
    root.end(nanoseconds(last))
    return request(memory.get_finished_spans())


def _genai(span: dict[str, Any], spans: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the GenAI attributes of a span."""
    data = span["span_data"]
    kind = data["type"]
    name = data.get("name") or ""
    if kind == "agent":
        total = _usage_below(span, spans)
        return f"invoke_agent {name}", {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            **{f"gen_ai.usage.{each}": number for each, number in total.items() if number},
        }
    if kind in ("generation", "response"):
        usage = data.get("usage") or {}
        input_details = usage.get("input_tokens_details") or {}
        output_details = usage.get("output_tokens_details") or {}
        counts = {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "cache_read.input_tokens": input_details.get("cached_tokens"),
            "reasoning.output_tokens": output_details.get("reasoning_tokens"),
        }
        parts = [
            {
                "type": "tool_call",
                "id": item["call_id"],
                "name": item["name"],
                "arguments": json.loads(item["arguments"]),
            }
            for item in data.get("output") or []
            if item.get("type") == "function_call"
        ]
        return "chat scripted-1", {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "scripted-1",
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
            **{f"gen_ai.usage.{each}": number for each, number in counts.items() if number is not None},
        }
    if kind == "function":
        return f"execute_tool {name}", {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": data["input"] or "",
            "gen_ai.tool.call.result": data["output"] or "",
        }
    if kind == "handoff":
        return "handoff", {"gen_ai.transfer.target.name": data["to_agent"], "gen_ai.transfer.mode": "pass_control"}
    return f"{kind} {name}", {}


def _usage_below(span: dict[str, Any], spans: Sequence[Any]) -> dict[str, int]:
    """Return the tokens of the model calls in a span and in all spans below it."""
    ids = {span["id"]}
    for _ in spans:  # each round adds at least one more level
        ids |= {other["id"] for other in spans if other["parent_id"] in ids}
    total = {"input_tokens": 0, "output_tokens": 0}
    for other in spans:
        if other["id"] in ids and other["span_data"]["type"] in ("generation", "response"):
            usage = other["span_data"].get("usage") or {}
            for kind in total:
                total[kind] += usage.get(kind) or 0
    return total
