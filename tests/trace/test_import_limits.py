"""One limit of tokens and one of instants: every format takes the same extreme counts and times, and refuses the same.

Each format has a minimal log here: one answer of a model with a count of input tokens, at an instant, in the format's
own notation. A format that is added needs one, too.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, instant, moment_ms
from orchtrace_corpus.trace.model.trace import Tokens, Trace

NOON = 1_772_366_400.0  # 2026-03-01T12:00:00Z
LATEST = 253_402_300_799.0  # 9999-12-31T23:59:59Z

COUNTS_TAKEN = [1, 12.0, 2**31, 10**12]
COUNTS_REFUSED = [-1, 1.5, "many", "", True, [], {}, 10**12 + 1, 2**53 - 1, 2**53, 2**63, 10**400, 1e300]
INSTANTS_TAKEN = [1.0, NOON, 4e11 / 1000, LATEST - 1, LATEST]
INSTANTS_REFUSED = [-1.0, 0.0, LATEST + 3600]

Log = Callable[[Any, float], Any]
"""Makes the records of a log: a list is written as JSON Lines, anything else as one JSON document."""


def iso(instant: float) -> str:
    """Return an instant in ISO 8601; one after the year 9999 by a zone west of Greenwich."""
    late = max(instant - LATEST, 0)
    written = datetime.fromtimestamp(instant - late, UTC).isoformat().replace("+00:00", "")
    return f"{written}-{int(late // 3600):02}:00" if late else f"{written}Z"


def claude_code(count: Any, instant: float) -> Any:
    message = {
        "id": "msg_1", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Done."}], "usage": {"input_tokens": count, "output_tokens": 5},
    }  # fmt: skip
    return [{"type": "assistant", "uuid": "u1", "sessionId": "s1", "requestId": "r1", "timestamp": iso(instant),
             "message": message}]  # fmt: skip


def codex(count: Any, instant: float) -> Any:
    usage = {"input_tokens": count, "cached_input_tokens": 0, "output_tokens": 5, "reasoning_output_tokens": 0}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    moved = {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}
    return [
        {"timestamp": iso(instant), "type": "response_item", "payload": said},
        {"timestamp": iso(instant), "type": "event_msg", "payload": moved},
    ]


def openai_agents(count: Any, instant: float) -> Any:
    data = {"type": "generation", "model": "m", "usage": {"input_tokens": count, "output_tokens": 5}}
    return [{"object": "trace.span", "id": "span_1", "trace_id": "trace_1", "started_at": iso(instant),
             "ended_at": iso(instant), "span_data": data}]  # fmt: skip


def otlp(count: Any, instant: float) -> Any:
    kinds = {int: "intValue", float: "doubleValue", str: "stringValue", bool: "boolValue", list: "arrayValue"}
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.input_tokens", "value": {kinds.get(type(count), "kvlistValue"): count}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "5"}},
    ]
    time = str(int(instant * 10**9))
    span = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat",
            "startTimeUnixNano": time, "endTimeUnixNano": time, "attributes": attributes}  # fmt: skip
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]


def langsmith(count: Any, instant: float) -> Any:
    usage = {"input_tokens": count, "output_tokens": 5}
    outputs = {"generations": [[{"message": {"usage_metadata": usage}}]]}
    return [{"id": "run-1", "trace_id": "run-1", "name": "model", "run_type": "llm", "start_time": iso(instant),
             "end_time": iso(instant), "outputs": outputs}]  # fmt: skip


def atif(count: Any, instant: float) -> Any:
    metrics = {"prompt_tokens": count, "completion_tokens": 5}
    step = {"step_id": 1, "timestamp": iso(instant), "source": "agent", "message": "Done.", "metrics": metrics}
    return {"schema_version": "ATIF-v1.4", "session_id": "s1", "agent": {"name": "a", "version": "1"}, "steps": [step]}


def opencode(count: Any, instant: float) -> Any:
    time = {"created": instant * 1000, "completed": instant * 1000}
    tokens = {"input": count, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    message = {"id": "msg_1", "sessionID": "ses_1", "role": "assistant", "time": time, "tokens": tokens}
    session = {"id": "ses_1", "projectID": "p", "directory": "d", "version": "1.1"}
    return {"info": session, "messages": [{"info": message, "parts": []}]}


def inspect_ai(count: Any, instant: float) -> Any:
    output = {"model": "m", "choices": [], "usage": {"input_tokens": count, "output_tokens": 5}}
    event = {"event": "model", "uuid": "e1", "timestamp": iso(instant), "completed": iso(instant), "output": output}
    about = {"eval_id": "v1", "run_id": "r1", "task": "t"}
    return {"version": 2, "status": "success", "eval": about, "samples": [{"id": 1, "epoch": 1, "events": [event]}]}


def autogen(count: Any, instant: float) -> Any:
    message = {
        "id": "0a000000-0000-4000-8000-000000000001", "source": "writer", "type": "TextMessage", "content": "Done.",
        "models_usage": {"prompt_tokens": count, "completion_tokens": 5}, "created_at": iso(instant),
    }  # fmt: skip
    return {"messages": [message], "stop_reason": None}


def google_adk(count: Any, instant: float) -> Any:
    event = {
        "id": "e1", "author": "writer", "timestamp": instant, "content": {"parts": [{"text": "Done."}]},
        "usageMetadata": {"promptTokenCount": count, "candidatesTokenCount": 5},
    }  # fmt: skip
    return {"id": "s1", "appName": "app", "userId": "u", "events": [event]}


def gemini_cli(count: Any, instant: float) -> Any:
    tokens = {"input": count, "output": 5, "cached": 0, "thoughts": 0, "tool": 0}
    return [
        {"sessionId": "s1", "projectHash": "h"},
        {"id": "m1", "type": "gemini", "timestamp": iso(instant), "content": "Done.", "model": "m", "tokens": tokens},
    ]


def copilot_cli(count: Any, instant: float) -> Any:
    used = {"model": "m", "apiCallId": "c1", "inputTokens": count, "outputTokens": 5}
    return [
        {"type": "session.start", "id": "e1", "timestamp": iso(instant), "data": {"producer": "copilot-agent"}},
        {"type": "session.usage_record", "id": "e2", "timestamp": iso(instant), "data": {"usage": used}},
    ]


def kimi_code(count: Any, instant: float) -> Any:
    usage = {"inputOther": count, "inputCacheRead": 0, "inputCacheCreation": 0, "output": 5}
    return [
        {"type": "metadata", "protocol_version": "1"},
        {"type": "llm.request", "kind": "loop", "model": "m", "time": instant * 1000},
        {"type": "usage.record", "model": "m", "usage": usage, "time": instant * 1000},
    ]


def qwen_code(count: Any, instant: float) -> Any:
    usage = {
        "promptTokenCount": count,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 0,
        "cachedContentTokenCount": 0,
    }
    return [{"type": "assistant", "uuid": "u1", "sessionId": "s1", "timestamp": iso(instant), "model": "m",
             "message": {"role": "model", "parts": [{"text": "Done."}]}, "usageMetadata": usage}]  # fmt: skip


def pi(count: Any, instant: float) -> Any:
    usage = {"input": count, "output": 5, "cacheRead": 0, "cacheWrite": 0}
    message = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "model": "m", "usage": usage,
               "stopReason": "stop", "timestamp": instant * 1000}  # fmt: skip
    return [
        {"type": "session", "version": 3, "id": "s1", "timestamp": iso(NOON), "cwd": "d"},
        {"type": "message", "id": "e1", "parentId": None, "timestamp": iso(instant), "message": message},
    ]


def entire(count: Any, instant: float) -> Any:
    return [{"v": 1, "agent": "claude-code", "cli_version": "0.8", "type": "assistant", "ts": iso(instant), "id": "m1",
             "input_tokens": count, "output_tokens": 5, "content": [{"type": "text", "text": "Done."}]}]  # fmt: skip


def atof(count: Any, instant: float) -> Any:
    scope = {"kind": "scope", "atof_version": "0.1", "uuid": "u1", "parent_uuid": None, "category": "llm", "name": "m",
             "timestamp": instant * 10**6}  # fmt: skip
    answer = {"usage": {"prompt_tokens": count, "completion_tokens": 5}}
    return [{**scope, "scope_category": "start"}, {**scope, "scope_category": "end", "data": answer}]


LOGS: Mapping[str, Log] = {
    make.__name__: make
    for make in (
        claude_code, codex, openai_agents, otlp, langsmith, atif, opencode, inspect_ai, autogen, google_adk, gemini_cli,
        copilot_cli, kimi_code, qwen_code, pi, entire, atof,
    )
}  # fmt: skip

WITHOUT_ALL_KINDS = {"entire"}
WITHOUT_COUNTS_AND_TIMES = {"who_and_when"}


def imported(form: str, folder: Path, count: Any, instant: float) -> Trace:
    """Write the log of a format, let the format be recognised, and return its only trace."""
    records = LOGS[form](count, instant)
    path = folder / ("log.jsonl" if isinstance(records, list) else "log.json")
    path.write_text("\n".join(map(json.dumps, records if isinstance(records, list) else [records])), "utf-8")
    (session,) = importers.sessions(str(path))
    assert session.form == form
    (trace,) = importers.read(session, Privacy(b"salt"))
    return trace


def input_tokens(trace: Trace) -> list[float]:
    """Return the input of each event that has any."""
    return [event.tokens.input for event in trace.events if isinstance(event.tokens, Tokens) and event.tokens.input]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(1, 0.001), (0.5, 0.0005), (0, NO_TIME), (-1, NO_TIME), (LATEST * 1000, LATEST), (LATEST * 1000 + 1, NO_TIME),
     (True, NO_TIME), ("1", NO_TIME), (10**400, NO_TIME)],
)  # fmt: skip
def test_milliseconds_are_a_time_between_1970_and_9999(value: Any, seconds: float) -> None:
    assert moment_ms(value) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(0, 0), (1, 0.001), (LATEST * 1000, LATEST), (-1, 0), (LATEST * 1000 + 1, 0), (True, 0), ("1", 0), (10**400, 0)],
)  # fmt: skip
def test_a_length_of_time_is_a_number_from_0_on(value: Any, seconds: float) -> None:
    assert duration(value, 1000) == seconds


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), True, [], "9" * 400])
@pytest.mark.parametrize("per_second", [1.0, 1000.0, 1e9])
def test_a_number_that_is_no_time_is_none_in_each_unit(value: Any, per_second: float) -> None:
    assert instant(value, per_second) is None
    assert duration(value, per_second) == 0


def test_every_format_has_a_log_here() -> None:
    assert LOGS.keys() | WITHOUT_COUNTS_AND_TIMES == importers.FORMATS.keys()


@pytest.mark.parametrize("count", COUNTS_TAKEN)
@pytest.mark.parametrize("form", LOGS)
def test_every_format_takes_the_same_counts(form: str, count: Any, tmp_path: Path) -> None:
    trace = imported(form, tmp_path, count, NOON)

    assert input_tokens(trace) == [int(count)]
    assert trace.costs["tokens"] == (None if form in WITHOUT_ALL_KINDS else int(count) + 5)


@pytest.mark.parametrize("count", COUNTS_REFUSED, ids=repr)
@pytest.mark.parametrize("form", LOGS)
def test_every_format_refuses_the_same_counts(form: str, count: Any, tmp_path: Path) -> None:
    assert input_tokens(imported(form, tmp_path, count, NOON)) == []


@pytest.mark.parametrize("instant", INSTANTS_TAKEN)
@pytest.mark.parametrize("form", LOGS)
def test_every_format_takes_the_same_instants(form: str, instant: float, tmp_path: Path) -> None:
    trace = imported(form, tmp_path, 1, instant)

    assert trace.clock.epoch == iso(instant)
    assert {event.t for event in trace.events} == {0.0}


@pytest.mark.parametrize("instant", INSTANTS_REFUSED)
@pytest.mark.parametrize("form", LOGS)
def test_every_format_refuses_the_same_instants(form: str, instant: float, tmp_path: Path) -> None:
    assert imported(form, tmp_path, 1, instant).clock.epoch is None
