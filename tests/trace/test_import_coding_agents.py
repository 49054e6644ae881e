"""Qwen Code, Gemini CLI, Copilot CLI, Kimi Code: what becomes of their rows, what is counted, who spawned whom."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.model.import_report import Problem
from tests.trace.conversationlogs import (
    LOGS,
    SESSION,
    by_agent,
    ledger,
    moment,
    of_type,
    parents,
    problems,
    tokens,
    told,
    trace_of,
    write,
)

FORMS = ("qwen_code", "gemini_cli", "copilot_cli", "kimi_code")
FIXTURES = [path for form in FORMS for path in sorted((LOGS / form).iterdir())]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fixture_gives_what_its_rows_say(path: Path) -> None:
    expected = LOGS / "told" / path.parent.name / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


@pytest.mark.parametrize(
    "main", ["qwen_code/background/chats/*.jsonl", "gemini_cli/team/chats/*.jsonl", "kimi_code/team/*/agents/main/*"]
)
def test_the_files_of_sub_agents_are_read_with_the_session_that_is_named(main: str) -> None:
    (path,) = LOGS.glob(main)
    (one,) = importers.sessions(str(LOGS.joinpath(*main.split("/")[:2])))
    (alone,) = importers.sessions(str(path))

    assert len(one.files) > 2
    assert sorted(file.path for file in alone.files) == sorted(file.path for file in one.files)


# Qwen Code


def qwen_row(second: float, kind: str, /, **more: Any) -> dict[str, Any]:
    name = f"{kind}-{second}-{len(str(more))}"
    return {"uuid": name, "sessionId": SESSION, "timestamp": moment(second), "type": kind, "version": "0.24.4", **more}


def qwen_answer(second: float, *usage: Any, calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """A row of an answer: prompt, candidates, thoughts, total, cached."""
    names = ("prompt", "candidates", "thoughts", "total", "cachedContent")
    used = {f"{name}TokenCount": count for name, count in zip(names, usage, strict=False)}
    parts = [{"text": "A"}, *({"functionCall": call} for call in calls)]
    return qwen_row(second, "assistant", message={"role": "model", "parts": parts}, usageMetadata=used)


def qwen_told(second: float, name: str, /, **event: Any) -> dict[str, Any]:
    """A row of what the telemetry was told."""
    told = {"event.name": f"qwen-code.{name}", "event.timestamp": moment(second), **event}
    return qwen_row(second, "system", subtype="ui_telemetry", systemPayload={"uiEvent": told})


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ((100, 20, 7, 120, 0), (100, 20, 0, 0, 7)),  # thoughts are in the candidates
        ((100, 20, 7, 127, 40), (60, 27, 40, 0, 7)),  # and here besides
        ((100, 20, None, None, 40), (60, 20, 40, 0, 0)),
    ],
)
def test_thoughts_of_qwen_code_are_where_the_total_says(
    tmp_path: Path, usage: tuple[Any, ...], expected: tuple[int, ...]
) -> None:
    write(tmp_path / "s.jsonl", [qwen_answer(1, *usage)])

    assert tuple(tokens(trace_of(tmp_path)).values()) == expected


def test_what_only_the_telemetry_of_qwen_code_knows_is_counted_once(tmp_path: Path) -> None:
    counts = {"input_token_count": 100, "output_token_count": 20, "total_token_count": 120}
    told = qwen_told(1, "api_response", **counts, duration_ms=500)
    title = qwen_told(2, "api_response", input_token_count=30, output_token_count=5, total_token_count=35)
    write(tmp_path / "s.jsonl", [told, qwen_answer(1.1, 100, 20, 0, 120, 0), title])

    trace = trace_of(tmp_path)
    assert tokens(trace)["input"] == 130
    assert ledger(trace) == {
        "counted: model call's own usage": 1,
        "left out: usage of an answer that the log states again": 1,
        "counted: usage that only telemetry states, of a call without a row": 1,
    }


@pytest.mark.parametrize("more", [{}, {"model": 5}], ids=["as it should be", "of another shape"])
def test_what_an_agent_of_which_only_the_telemetry_tells_has_written(tmp_path: Path, more: dict[str, Any]) -> None:
    event = qwen_told(2, "api_response", subagent_id="a", response_text="A", output_token_count=5, **more)
    write(tmp_path / "s.jsonl", [qwen_answer(1, 100, 20, 0, 120, 0), event])

    first, second = (one["content_ref"] for one in trace_of(tmp_path)["events"] if one["type"] == "inference")
    assert first == second != ""


def test_a_call_that_a_person_refused_was_waited_for(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "edit", "args": {}}
    refused = {"functionResponse": {"id": "c1", "name": "edit", "response": {"error": "no"}}}
    write(tmp_path / "s.jsonl", [
        qwen_row(0, "user", message={"role": "user", "parts": [{"text": "Go."}]}),
        qwen_answer(1, 10, 2, 0, 12, 0, calls=[call]),
        qwen_told(9, "tool_call", call_id="c1", function_name="edit", duration_ms=8000, decision="reject"),
        qwen_row(9, "tool_result", message={"role": "user", "parts": [refused]}, toolCallResult={"status": "cancelled"}),
    ])  # fmt: skip

    assert of_type(trace_of(tmp_path), "tool_result", "human_intervention")[1:] == [
        "user human_intervention > main", "main tool_result edit (cancelled rejected)",
    ]  # fmt: skip


def test_a_sub_agent_of_which_nothing_is_there_leaves_the_total_unknown(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "agent", "args": {}}
    result = {"functionResponse": {"id": "c1", "name": "agent", "response": {"output": "x"}}}
    noted = {"status": "success", "resultDisplay": {"type": "task_execution", "subagentName": "reader"}}
    write(tmp_path / "s.jsonl", [
        qwen_answer(1, 10, 2, 0, 12, 0, calls=[call]),
        qwen_row(5, "tool_result", message={"role": "user", "parts": [result]}, toolCallResult=noted),
    ])  # fmt: skip

    trace = trace_of(tmp_path)
    assert of_type(trace, "spawn", "return") == ["main spawn agent > reader-c1", "reader-c1 return > main"]
    assert trace["reasons"] == {"costs.tokens": "sub-agents without a transcript among the files: 1"}


def test_a_sub_agent_alone_is_an_orphan(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "qwen_code" / "background" / "subagents", tmp_path / "subagents")

    trace = trace_of(tmp_path)
    assert parents(trace) == {"user": "", "reader-c1": "", "reader-c2": ""}
    assert problems(trace) == {Problem.NO_SPAWN: 2}


# Gemini CLI


def gemini_header(session: str = SESSION, kind: str = "main") -> dict[str, Any]:
    return {"sessionId": session, "projectHash": "ab", "startTime": moment(0), "kind": kind}


def gemini_answer(second: float, name: str = "m1", /, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": moment(second), "type": "gemini", "content": "A", **more}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"input": 100, "output": 20, "cached": 40, "thoughts": 7, "tool": 0, "total": 127}, (60, 27, 40, 0, 7)),
        ({"input": 100, "output": 20, "cached": 0, "thoughts": 0, "tool": 30, "total": 150}, (130, 20, 0, 0, 0)),
        ({"input": 100, "output": 20, "thoughts": 7, "total": 120}, (100, 20, 0, 0, 7)),  # in the output already
        ({"input": 100, "output": 20, "thoughts": 7}, (100, 27, 0, 0, 7)),
    ],
)
def test_thoughts_and_prompts_of_tools_are_apart(
    tmp_path: Path, counts: dict[str, int], expected: tuple[int, ...]
) -> None:
    write(tmp_path / "session-1.jsonl", [gemini_header(), gemini_answer(1, tokens=counts)])

    assert tuple(tokens(trace_of(tmp_path)).values()) == expected


def test_messages_that_are_set_or_written_again_count_once_and_rewound_ones_stay(tmp_path: Path) -> None:
    first, second = ({"input": 100, "output": output} for output in (5, 9))
    again = gemini_answer(1, tokens=second)
    write(tmp_path / "session-1.jsonl", [
        gemini_header(), gemini_answer(1, tokens=first), again, {"$rewindTo": "m1"},
        {"$set": {"messages": [again, gemini_answer(2, "m2", tokens=first)]}},
    ])  # fmt: skip

    trace = trace_of(tmp_path)
    assert tokens(trace)["output"] == 9 + 5
    assert ledger(trace) == {
        "left out: usage of an answer that the log states again": 2, "counted: model call's own usage": 2,
    }  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_is_read_under_the_name_of_lines_too(tmp_path: Path, indent: int | None) -> None:
    document = {**gemini_header(), "messages": [gemini_answer(1, tokens={"input": 5, "output": 2})]}
    (tmp_path / "session-1.jsonl").write_text(json.dumps(document, indent=indent), "utf-8")

    assert trace_of(tmp_path)["costs"]["tokens"] == 7


def test_a_sub_agent_with_the_session_of_its_parent_is_called_by_its_file(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "invoke_agent", "status": "success", "timestamp": moment(9), "agentId": "child-1"}
    write(tmp_path / "session-1.jsonl", [gemini_header(), gemini_answer(1, toolCalls=[call])])
    write(tmp_path / SESSION / "child-1.jsonl", [gemini_header(SESSION, "subagent"), gemini_answer(5)])

    assert parents(trace_of(tmp_path)) == {"user": "", "main": "", "child-1": "main"}


def test_folders_outside_of_that_of_the_session_are_not_looked_into(tmp_path: Path) -> None:
    for session in ("..", ".", "../..", str(tmp_path), ""):
        write(tmp_path / "chats" / "session-1.jsonl", [gemini_header(session), gemini_answer(1)])
        write(tmp_path / "other.jsonl", [gemini_header("o", "subagent"), gemini_answer(1)])
        (one,) = importers.sessions(str(tmp_path / "chats" / "session-1.jsonl"))
        assert len(one.files) == 1


# Copilot CLI


def test_an_answer_does_not_begin_before_what_it_read(tmp_path: Path) -> None:
    """The record of usage is written later than it is timed: its length reaches behind the result before it."""
    usage = {"model": "m", "inputTokens": 5, "outputTokens": 2, "duration": 3000, "apiCallId": "a1"}
    events = [
        (0, "session.start", {"sessionId": SESSION, "producer": "copilot-agent"}),
        (0, "user.message", {"content": "Go."}),
        (4, "tool.execution_start", {"toolCallId": "c1", "toolName": "view"}),
        (5, "tool.execution_complete", {"toolCallId": "c1", "success": True}),
        (7, "session.usage_record", {"usage": usage}),
        (7, "assistant.message", {"messageId": "x", "apiCallId": "a1", "content": "A"}),
    ]
    write(tmp_path / "events.jsonl", [
        {"type": kind, "data": data, "timestamp": moment(second), "id": str(number)}
        for number, (second, kind, data) in enumerate(events)
    ])  # fmt: skip

    (answer,) = (event for event in trace_of(tmp_path)["events"] if event["type"] == "inference")
    assert (answer["t"], answer["t_request"], answer["t_end"]) == (5, 5, 7)


def copilot(path: Path, *events: tuple[float, str, dict[str, Any]]) -> Path:
    """Write a session of Copilot CLI."""
    rows = [(0, "session.start", {"sessionId": SESSION, "producer": "copilot-agent"}), *events]
    return write(path / "events.jsonl", [
        {"type": kind, "data": data, "timestamp": moment(second), "id": str(number)}
        for number, (second, kind, data) in enumerate(rows)
    ])  # fmt: skip


def message(number: int, answer: str, tokens: Any, **more: Any) -> dict[str, Any]:
    stated = {} if tokens is None else {"outputTokens": tokens}
    return {"messageId": f"m{number}", "apiCallId": answer, "model": "m", "content": "…", **stated, **more}


def test_output_that_messages_state_counts_once_for_each_answer(tmp_path: Path) -> None:
    """One answer has two messages, of which either states the tokens; an agent below answers, too."""
    child = {"parentToolCallId": "c3"}
    copilot(
        tmp_path,
        (1, "user.message", {"content": "Go."}),
        (4, "assistant.message", message(1, "a1", 40)),
        (6, "assistant.message", message(2, "a2", None)),
        (9, "assistant.message", message(3, "a2", 50)),
        (9, "assistant.message", message(3, "a2", 50)),
        (12, "assistant.message", message(4, "a3", 60, toolRequests=[{"toolCallId": "c3", "name": "task"}])),
        (13, "assistant.message", message(5, "a3", 60)),
        (13, "subagent.started", {"toolCallId": "c3", "agentName": "explore"}),
        (15, "assistant.message", message(6, "b1", 7, **child)),
        (17, "assistant.message", message(7, "b2", None, **child)),
    )

    trace = trace_of(tmp_path)
    spent = {agent: tokens[1] for agent, tokens in by_agent(trace).items()}
    assert spent == {"main": 150, "explore": 7}
    assert trace["reasons"] == {"costs.tokens": "answers without usage: 1; answers that state their output alone: 4"}
    assert ledger(trace) == {
        "counted: output of an answer, of which the log states nothing else": 4,
        "unknown: answers without usage": 1,
        "unknown: input of answers that state their output alone": 4,
    }
    ends = [event["t_end"] for event in trace["events"] if event["agent"] == "main" and "t_end" in event]
    assert ends == [3, 8, 12]


def test_output_that_messages_state_is_left_out_where_the_answer_is_counted(tmp_path: Path) -> None:
    usage = {"model": "m", "inputTokens": 100, "outputTokens": 40, "apiCallId": "a1"}
    sums = {"m": {"usage": {"inputTokens": 300, "outputTokens": 90}}}
    copilot(
        tmp_path,
        (1, "user.message", {"content": "Go."}),
        (4, "session.usage_record", {"usage": usage}),
        (4, "assistant.message", message(1, "a1", 40)),
        (5, "session.shutdown", {"modelMetrics": {}}),
        (7, "assistant.message", message(2, "a2", 50)),
        (9, "assistant.message", message(3, "a3", 40)),
        (10, "session.shutdown", {"modelMetrics": sums}),
        (12, "assistant.message", message(4, "a4", 5)),
    )

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (400, 135, 0, 0, 0)}
    assert trace["reasons"] == {"costs.tokens": "answers that state their output alone: 1"}
    assert ledger(trace)["left out: usage of an answer that the log states again"] == 3


@pytest.mark.parametrize("odd", [-1, "many", 1.5])
def test_output_that_is_no_number_is_none(tmp_path: Path, odd: Any) -> None:
    copilot(tmp_path, (1, "user.message", {"content": "Go."}), (4, "assistant.message", message(1, "a1", odd)))

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {}
    assert trace["reasons"] == {"costs.tokens": "usage that is not a number: 1"}


def test_a_total_other_than_the_sum_of_the_answers_is_told(tmp_path: Path) -> None:
    path = LOGS / "copilot_cli" / "team"
    (events,) = path.rglob("events.jsonl")
    (tmp_path / "events.jsonl").write_text(
        events.read_text("utf-8").replace('"inputTokens": 7360', '"inputTokens": 7361')
    )

    trace = trace_of(tmp_path)
    assert problems(trace) == {Problem.SESSION_TOTAL_DIFFERS: 1}
    assert trace["costs"]["tokens"] == trace_of(path)["costs"]["tokens"]


# Kimi Code


def test_an_agent_whose_spawn_is_not_in_the_log_is_below_that_which_the_state_names(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "kimi_code" / "team", tmp_path / "team")
    (main,) = tmp_path.rglob("main/wire.jsonl")
    main.write_text("".join(line for line in main.read_text("utf-8").splitlines(True) if "subagent." not in line))

    trace = trace_of(tmp_path)
    assert parents(trace) == {"user": "", "main": "", "agent-0": "main", "agent-1": "main"}
    assert problems(trace) == {Problem.SPAWN_INFERRED: 2}
    assert trace["costs"]["tokens"] == trace_of(LOGS / "kimi_code" / "team")["costs"]["tokens"]


def test_usage_at_the_end_of_a_step_counts_where_there_is_no_record_of_it(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "kimi_code" / "team", tmp_path / "team")
    for file in tmp_path.rglob("agent-*/wire.jsonl"):
        lines = file.read_text("utf-8").splitlines(True)
        file.write_text("".join(line for line in lines if '"usage.record"' not in line))

    assert tokens(trace_of(tmp_path)) == tokens(trace_of(LOGS / "kimi_code" / "team"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [-5, "many", True, 1e300])
def test_usage_that_is_no_number_is_unknown(tmp_path: Path, form: str, value: Any) -> None:
    rows = {
        "qwen_code": [qwen_answer(1, value, value)],
        "gemini_cli": [gemini_header(), gemini_answer(1, tokens={"input": value, "output": value})],
        "copilot_cli": [
            {"type": "session.start", "data": {"producer": "copilot-agent"}},
            {"type": "session.usage_record", "data": {"usage": {"inputTokens": value, "outputTokens": value}}},
        ],
        "kimi_code": [
            {"type": "metadata", "protocol_version": "1.5"}, {"type": "llm.request", "time": 1},
            {"type": "usage.record", "usage": {"inputOther": value, "output": value}, "time": 2000},
        ],
    }  # fmt: skip
    write(tmp_path / "x.jsonl", rows[form])

    trace = trace_of(tmp_path)
    assert (trace["costs"]["tokens"], trace["reasons"]) == (None, {"costs.tokens": "usage that is not a number: 1"})
    assert ledger(trace) == {"unknown: usage that is not a number": 1}
