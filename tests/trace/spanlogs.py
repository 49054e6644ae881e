"""Small span logs of three formats for tests: built from a few words, imported, and boiled down to compare."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchtrace_corpus.trace import importers, rules
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.spans import langsmith, openai_agents, otlp
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import longest_path
from tests.conftest import ROOT

LOGS = ROOT / "tests" / "data" / "logs"
MODULES: dict[str, importers.Importer] = {"openai_agents": openai_agents, "otlp": otlp, "langsmith": langsmith}
KINDS = ("input", "output", "cache_read", "reasoning")
START = 1_795_219_200  # 2026-11-21T00:00:00Z


def fixtures(form: str) -> list[Path]:
    """The logs of a format that were made with its SDK."""
    return sorted(path for path in (LOGS / form).iterdir() if path.name != "truth.json")


def truth(path: Path) -> dict[str, Any]:
    """What the scripted models of a log have reported."""
    found: dict[str, Any] = json.loads((path.parent / "truth.json").read_text("utf-8"))[path.name.split(".")[0]]
    return found


def imported(*paths: Path, form: str, keep_content: bool = False) -> list[dict[str, Any]]:
    """The traces of files, each sound."""
    module = MODULES[form]
    files = [LogFile(str(path), path.name) for path in paths]
    privacy = Privacy(b"salt", keep_content)
    traces = [
        as_data(trace) for session in importers.group_files(form, files) for trace in module.read(session, privacy)
    ]
    for each in traces:
        checked(each)
    return traces


def checked(trace: dict[str, Any]) -> Trace:
    """The trace decoded; it must be without errors, and its critical path no longer than it took."""
    decoded = decode(Document(json.dumps(trace, allow_nan=False).encode(), "trace.json"))
    assert decoded.trace is not None, decoded.findings
    assert [str(finding) for finding in rules.check(decoded) if finding.severity == "error"] == []
    times = TraceView(decoded.trace).timing
    assert longest_path(times, times.works, overlapping=True).length <= times.elapsed + 1e-6
    return decoded.trace


def one(path: Path, content: Any, form: str, *, lines: bool = True) -> dict[str, Any]:
    """The only trace of a log that is written first."""
    if lines:
        path.write_text("".join(json.dumps(row) + "\n" for row in content), "utf-8")
    else:
        path.write_text(json.dumps(content, indent=1), "utf-8")
    (trace,) = imported(path, form=form)
    return trace


def at(second: float) -> str:
    """A moment as formats with text write it."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(START + second, UTC).isoformat()


def sdk_span(
    ref: str, parent: str | None, kind: str, begin: float | None, end: float | None, /, **data: Any
) -> dict[str, Any]:
    """A span of the OpenAI Agents SDK."""
    return {
        "object": "trace.span",
        "id": ref,
        "trace_id": data.pop("trace", "t"),
        "parent_id": parent,
        "started_at": None if begin is None else at(begin),
        "ended_at": None if end is None else at(end),
        "error": data.pop("error", None),
        "span_data": {"type": kind, **data},
    }


def usage(read: int, written: int, **more: Any) -> dict[str, Any]:
    """Token counts of the OpenAI Agents SDK."""
    return {"input_tokens": read, "output_tokens": written, **more}


def otel_span(name: int, parent: int, title: str, begin: float, end: float, **attributes: Any) -> dict[str, Any]:
    """A span of OpenTelemetry; dots in the names of attributes are written as two underscores."""
    known = []
    for key, value in attributes.items():
        kind = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}.get(
            type(value), "arrayValue"
        )
        content = str(value) if kind == "intValue" else value
        known.append({"key": key.replace("__", "."), "value": {kind: content}})
    return {
        "traceId": f"{7:032x}",
        "spanId": f"{name:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": title,
        "kind": 1,
        "startTimeUnixNano": str(int((START + begin) * 10**9)),
        "endTimeUnixNano": str(int((START + end) * 10**9)),
        "attributes": known,
        "status": {},
    }


GENAI = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "a"}
"""The attributes of an agent's span."""


def chat(number: int, parent: int, begin: float, end: float, **more: Any) -> dict[str, Any]:
    """The span of a model call."""
    return otel_span(number, parent, "chat m", begin, end, gen_ai__operation__name="chat", **more)


def counts(read: int, written: int, **more: int) -> dict[str, int]:
    """The attributes that say what a model call has spent."""
    return {"gen_ai__usage__input_tokens": read, "gen_ai__usage__output_tokens": written, **more}


def request(spans: Sequence[Any], service: str = "svc") -> dict[str, Any]:
    """Spans as a request of OTLP."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}


def run(name: str, parent: str | None, kind: str, begin: float, end: float | None, **more: Any) -> dict[str, Any]:
    """A run of LangSmith."""
    return {
        "id": name,
        "trace_id": "t",
        "parent_run_id": parent,
        "name": more.pop("title", name),
        "run_type": kind,
        "start_time": at(begin),
        "end_time": None if end is None else at(end),
        "error": None,
        "inputs": {},
        "outputs": {},
        "extra": {"metadata": more.pop("metadata", {})},
        **more,
    }


def answer(read: int, written: int, calls: Sequence[tuple[str, str]] = (), candidates: int = 1) -> dict[str, Any]:
    """What a model of LangChain answers: counts, and calls by id and tool."""
    message = {
        "usage_metadata": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        "tool_calls": [{"id": name, "name": tool, "args": {}} for name, tool in calls],
    }
    return {"generations": [[{"message": {"kwargs": message}}] * candidates]}


def node(name: str, step: int, *triggers: str, inside: str = "") -> dict[str, Any]:
    """The metadata of a LangGraph task."""
    return {
        "langgraph_node": name,
        "langgraph_step": step,
        "langgraph_triggers": list(triggers or (f"branch:to:{name}",)),
        "langgraph_checkpoint_ns": f"{inside}{name}:{step}",
    }


def tokens(trace: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of a trace by kind."""
    found: Counter[str] = Counter()
    for event in trace["events"]:
        found.update(event.get("tokens", {}))
    return {kind: found[kind] for kind in KINDS}


def tokens_by_role(trace: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The tokens of a trace by the role of the agent and by kind."""
    roles = {agent["id"]: agent["role"] for agent in trace["agents"]}
    found: dict[str, Counter[str]] = {}
    for event in trace["events"]:
        if "tokens" in event:
            found.setdefault(roles[event["agent"]], Counter()).update(event["tokens"])
    return {role: {kind: counts[kind] for kind in KINDS} for role, counts in sorted(found.items())}


def ledger(trace: Mapping[str, Any]) -> dict[str, int]:
    """The lines of a trace's token ledger with their numbers of records."""
    return {line: entry["records"] for line, entry in trace["import_report"]["token_ledger"].items()}


def said(trace: Mapping[str, Any]) -> list[str]:
    """What happened in a trace, event by event."""
    words = []
    for event in trace["events"]:
        target = f" > {event['to']}" if "to" in event else ""
        tool = f" {event['tool']}" if "tool" in event else ""
        words.append(f"{event['agent']} {event['type']}{tool}{target}")
    return words


def edges(trace: Mapping[str, Any]) -> set[str]:
    """The edges of a trace, in the words of `said`."""
    words = dict(zip((event["id"] for event in trace["events"]), said(trace), strict=True))
    return {f"{words[edge['src']]} -{edge['type']}- {words[edge['dst']]}" for edge in trace["edges"]}


def outline(trace: Mapping[str, Any]) -> dict[str, Any]:
    """What two logs of one run must agree on: agents, spawns, calls, messages, tokens, critical path."""
    decoded = checked(dict(trace))
    times = TraceView(decoded).timing
    path = longest_path(times, times.works, overlapping=True)
    of = {
        kind: [event for event in trace["events"] if event["type"] == kind]
        for kind in ("spawn", "tool_call", "message")
    }
    return {
        "agents": [(agent["id"], agent.get("parent")) for agent in trace["agents"]],
        "spawns": [(event["agent"], event["to"], event.get("tool"), event.get("call_id")) for event in of["spawn"]],
        "calls": [(event["agent"], event["tool"], _call_id(event)) for event in of["tool_call"]],
        "failures": [(event["agent"], event["type"]) for event in trace["events"] if event.get("status", "ok") != "ok"],
        "messages": [(event["from"], event["to"]) for event in of["message"]],
        "tokens": tokens_by_role(trace),
        "critical_path": [f"{decoded.events[n].agent} {decoded.events[n].type}" for n in path.events if times.works[n]],
        "span_s": round(path.length, 5),
        "events": said(trace),
        "edges": sorted(edges(trace)),
    }


def _call_id(event: Mapping[str, Any]) -> str:
    """A call's id; one made from a span's, which is another in every format, is cut short."""
    name: str = event["call_id"]
    return "span:" if name.startswith("span:") else name
