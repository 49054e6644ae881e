"""AutoGen: event logs that repeat every message, results, agents that are tools, handoffs, calls that nobody tells of."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from tests.conftest import run_corpus
from tests.effort import tries
from tests.trace.conversationlogs import (
    LOGS,
    START,
    ledger,
    moment,
    of_type,
    problems,
    tokens,
    told,
    trace_of,
    traces,
    write,
)
from tests.trace.test_import_fuzz import mutated_value

TEAM = LOGS / "autogen"
RESULT = json.loads((TEAM / "team.result.json").read_bytes())
RUN = "00000000-0000-4000-8000-00000000000a"

Message = dict[str, Any]


def said(second: float, source: str, content: Any, usage: Any = None, kind: str = "TextMessage") -> Message:
    """A message; its usage is prompt and completion."""
    used = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True)) if usage else None
    name = f"00000000-0000-4000-8000-{second:012.0f}"
    return {
        "id": name,
        "source": source,
        "models_usage": used,
        "created_at": moment(second),
        "content": content,
        "type": kind,
    }


def asked(second: float, source: str, usage: Any, **calls: str) -> Message:
    """An answer that calls tools, by the ids of the calls."""
    content = [{"id": name, "name": tool, "arguments": "{}"} for name, tool in calls.items()]
    return said(second, source, content, usage, "ToolCallRequestEvent")


def done(second: float, source: str, *calls: str, failed: bool = False) -> Message:
    content = [{"call_id": name, "name": "t", "content": "x", "is_error": failed} for name in calls]
    return said(second, source, content, None, "ToolCallExecutionEvent")


def result(path: Path, *messages: Message) -> Path:
    path.write_text(json.dumps({"messages": messages, "stop_reason": "done"}), "utf-8")
    return path


def row(payload: Any, sender: str = "m", stage: str = "SEND") -> dict[str, Any]:
    """A row of the event log."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    sender = f"{sender}_{RUN}/{RUN}"
    return {
        "payload": text,
        "sender": sender,
        "receiver": None,
        "kind": "k",
        "delivery_stage": stage,
        "type": "Message",
    }


def model_call(agent: str, prompt: Any, completion: Any, **response: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"type": "LLMCall", "messages": [], "agent_id": f"{agent}_{RUN}/{RUN}", **usage, "response": response}


GO = said(0, "user", "Go.")


@pytest.mark.parametrize(
    "fixture", ["team.events.jsonl", "wrapped.jsonl", "stream.jsonl", "state.json", "agent_state.json"]
)
def test_every_fixture_gives_what_its_text_says(fixture: str) -> None:
    found = told(trace_of(TEAM / fixture))

    assert found == (LOGS / "told" / "autogen" / f"{Path(fixture).stem}.txt").read_text("utf-8")


def test_a_log_and_the_result_of_one_run_are_one_trace_and_count_once() -> None:
    files = TEAM / "team.events.jsonl", TEAM / "team.result.json"
    both, log, of_result = trace_of(*files), *map(trace_of, files)

    assert both["costs"] == log["costs"] == of_result["costs"]
    kinds = ("spawn", "return", "message", "tool_result", "stop")
    assert of_type(both, *kinds) == of_type(log, *kinds) == of_type(of_result, *kinds)


# Tokens


def test_a_model_call_counts_only_where_no_message_has_its_usage(tmp_path: Path) -> None:
    rows = [
        row({"messages": [GO]}),
        model_call("SelectorGroupChatManager", 70, 1),
        model_call("a", 100, 10, model="m", usage={"prompt_tokens_details": {"cached_tokens": 40}}),
        row({"message": said(5, "a", "A", (100, 10))}, "SelectorGroupChatManager"),
        row({"message": said(5, "a", "A", (100, 10))}, "a", "DELIVER"),
        row("Message could not be serialized"),
    ]
    trace = trace_of(write(tmp_path / "x.jsonl", rows))

    assert tokens(trace) == {"input": 130, "output": 11, "cache_read": 40, "cache_write": 0, "reasoning": 0}
    assert ledger(trace) == {
        "left out: usage that the log states again, of calls that are counted": 2, "counted: model call's own usage": 2,
    }  # fmt: skip


@pytest.mark.parametrize("manager", ["SelectorGroupChatManager", "MagenticOneOrchestrator"])
def test_a_manager_that_asks_a_model_and_tells_no_usage_makes_the_total_unknown(tmp_path: Path, manager: str) -> None:
    rows = [row({"messages": [GO]}, manager), row({"message": said(5, "a", "A", (100, 10))}, "a")]

    assert trace_of(write(tmp_path / "x.jsonl", rows))["reasons"] == {"costs.tokens": "answers without usage: 1"}


def test_an_orchestrator_speaks_without_usage(tmp_path: Path) -> None:
    trace = trace_of(
        result(tmp_path / "x.json", GO, said(3, "MagenticOneOrchestrator", "B"), said(5, "a", "A", (9, 1)))
    )

    assert trace["costs"]["tokens"] is None
    assert of_type(trace, "inference") == ["MagenticOneOrchestrator inference", "a inference"]


def test_lines_that_are_no_json_say_nothing_but_one_that_is_cut_off_may(tmp_path: Path) -> None:
    rows = [
        b"Token count has been done only on string content\n",
        row({"messages": [GO]}),
        row({"message": said(5, "a", "A", (9, 1))}),
    ]
    path = write(tmp_path / "x.jsonl", rows)
    assert trace_of(path)["costs"]["tokens"] == 10

    path.write_bytes(path.read_bytes() + b'{"payload": "{')
    assert trace_of(path)["costs"]["tokens"] is None


# Agents, people, handoffs


def test_agents_that_are_tools_run_side_by_side_and_again(tmp_path: Path) -> None:
    trace = trace_of(result(
        tmp_path / "x.json", GO,
        asked(1, "lead", (9, 1), c1="a", c2="b"), said(2, "user", "Do a."), said(3, "user", "Do b."),
        said(4, "b", "B", (9, 1)), said(5, "a", "A", (9, 1)), done(6, "lead", "c1", "c2"),
        asked(7, "lead", (9, 1), c3="a"), said(8, "user", "Again."), said(9, "a", "A", (9, 1)), done(10, "lead", "c3"),
        said(11, "lead", "Done.", (9, 1)),
    ))  # fmt: skip

    assert of_type(trace, "spawn", "message", "return", "human_intervention") == [
        "user human_intervention > lead", "lead spawn a > a", "lead spawn b > b", "a return > lead", "b return > lead",
        "lead message a > a", "a return > lead",
    ]  # fmt: skip


def test_a_team_that_is_a_tool_is_below_who_called_it(tmp_path: Path) -> None:
    trace = trace_of(result(
        tmp_path / "x.json", GO, asked(1, "lead", (9, 1), c1="team"), said(2, "user", "Do."),
        said(3, "a", "A", (9, 1)), said(4, "b", "B", (9, 1)), done(5, "lead", "c1"), said(6, "lead", "Done.", (9, 1)),
    ))  # fmt: skip

    assert {agent["id"]: agent.get("parent") for agent in trace["agents"][1:]} == {
        "lead": None,
        "a": "lead",
        "b": "lead",
    }
    assert problems(trace) == {"sub-agent without a known spawn call: its spawn is concluded": 1}


def test_a_handoff_is_one_message(tmp_path: Path) -> None:
    trace = trace_of(result(
        tmp_path / "x.json", GO, asked(1, "a", (9, 1), h="transfer_to_b"), done(2, "a", "h"),
        said(3, "a", "To b.", None, "HandoffMessage"), said(4, "b", "B", (9, 1)),
    ))  # fmt: skip

    assert (trace["topology"], of_type(trace, "message")) == ("swarm", ["a message transfer_to_b > b"])


def test_a_person_who_was_asked_was_waited_for(tmp_path: Path) -> None:
    trace = trace_of(result(
        tmp_path / "x.json", GO, said(2, "a", "May I?", (9, 1)), said(3, "boss", "", None, "UserInputRequestedEvent"),
        said(33, "boss", "Yes."), said(35, "a", "Done.", (9, 1)),
    ))  # fmt: skip
    people = [(event["t"], event["t_end"]) for event in trace["events"] if event["type"] == "human_intervention"]

    assert people == [(0, 0), (3, 33)]


def test_a_thought_belongs_to_the_answer_and_an_unknown_kind_is_told(tmp_path: Path) -> None:
    trace = trace_of(result(
        tmp_path / "x.json", GO, said(1, "a", "Hm.", None, "ThoughtEvent"), said(2, "a", "A", (9, 1)),
        said(3, "a", "", None, "Dance"), done(4, "a", "c9", failed=True),
    ))  # fmt: skip

    assert len(of_type(trace, "inference")) == 1
    assert trace["import_report"]["unknown_kinds"] == {"message Dance": 1}
    assert problems(trace) == {"result without its call": 1}


# Damage


@pytest.mark.parametrize("form", ["log", "result"])
def test_damaged_logs_give_sound_traces_or_none(tmp_path: Path, form: str) -> None:
    chance, number = random.Random(3), 0
    lines = (TEAM / "team.events.jsonl").read_bytes().splitlines(keepends=True)
    for _ in range(tries(200, 40)):
        path = tmp_path / ("x.jsonl" if form == "log" else "x.json")
        if form == "log":
            rows = list(lines)
            for _ in range(chance.randint(1, 6)):
                place = chance.randrange(len(rows))
                if rows[place].startswith(b'{"payload": "{') and b'"{}"' not in rows[place]:
                    one = json.loads(rows[place])
                    one["payload"] = json.dumps(mutated_value(json.loads(one["payload"]), chance))
                    rows[place] = json.dumps(one).encode() + b"\n"
                else:
                    rows[place] = rows[place][: chance.randrange(len(rows[place]))] + b"\n"
            path.write_bytes(b"".join(rows))
        else:
            document = json.loads(json.dumps(RESULT))
            for _ in range(chance.randint(1, 6)):
                place = chance.randrange(len(document["messages"]))
                document["messages"][place] = mutated_value(document["messages"][place], chance)
            path.write_text(json.dumps(document), "utf-8")
        try:
            number += len(traces(path, form="autogen"))
        except DataFileError:
            continue
    assert number > tries(150, 25)


# Records of logging handlers, streams and states


WRAPPERS: dict[str, Callable[[str, float], dict[str, Any]]] = {
    "time and msg": lambda text, time: {"time": time, "logger": "autogen_core.events", "msg": text},
    "msg first": lambda text, time: {"msg": text, "level": "INFO", "created": time},
    "an object": lambda text, time: {"timestamp": time, "event": json.loads(text)},
    "in milliseconds": lambda text, time: {"message": text, "ts": time * 1_000},
    "as a text": lambda text, time: {"message": text, "@timestamp": moment(time - START)},
    "behind a prefix": lambda text, time: {"log": f"INFO:autogen_core.events:{text}\n", "time": moment(time - START)},
    "twice": lambda text, time: {"log": json.dumps({"msg": text}), "stream": "stderr", "time": moment(time - START)},
    "loguru": lambda text, time: {"text": "...", "record": {"message": text, "time": {"repr": "-", "timestamp": time}}},
}
"""What handlers of different users write: the text of an event and the time of its record, under their own names."""


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_events_are_found_in_the_records_of_handlers(tmp_path: Path, wrapper: str) -> None:
    rows = [
        "Sending message of type GroupChatStart",
        json.dumps(row({"messages": [GO]})),
        json.dumps(model_call("planner", 10, 2, model="m")),
        json.dumps(row({"message": said(4, "planner", "A", (10, 2))})),
        json.dumps(model_call("memory", 5, 1)),
    ]
    wrapped = [
        {"time": START, "msg": text} if number == 0 else WRAPPERS[wrapper](text, START + number)
        for number, text in enumerate(rows)
    ]
    trace = trace_of(write(tmp_path / "events.jsonl", wrapped))

    assert tokens(trace) == {"input": 15, "output": 3, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    (memory,) = [event for event in trace["events"] if event["agent"] == "memory"]
    assert memory["t_end"] == 4


@pytest.mark.parametrize("name", ["run.log", "run.txt", "run.jsonl"])
@pytest.mark.parametrize(
    "prefix", ["INFO:autogen_core.events:", "2026-03-01 10:00:00,000 - autogen_core.events - INFO - "]
)
def test_events_are_read_behind_a_prefix(tmp_path: Path, name: str, prefix: str) -> None:
    rows = [row({"messages": [GO]}), row({"message": said(4, "planner", "A", (10, 2))}), model_call("memory", 5, 1)]
    lines = ["INFO:autogen_core:Publishing message of type X", *(prefix + json.dumps(one) for one in rows), ""]
    path = tmp_path / name
    path.write_text("\n".join(lines), "utf-8")

    assert trace_of(path)["costs"]["tokens"] == 18
    path.write_text("\n".join(lines)[:-20], "utf-8")
    trace = trace_of(path)
    assert tokens(trace)["input"] == 10
    assert trace["reasons"] == {"costs.tokens": "1 line could not be read, which may have reported tokens"}


def test_a_clock_without_its_zone_dates_nothing(tmp_path: Path) -> None:
    wrapped = [
        {"asctime": "2030-01-01 00:00:00,000", "message": json.dumps(one)}
        for one in (row({"message": said(4, "planner", "A", (10, 2))}), model_call("memory", 5, 1))
    ]
    trace = trace_of(write(tmp_path / "events.jsonl", wrapped))

    assert trace["costs"] == {"tokens": 18, "wall_clock_s": 0, "tool_calls": 0, "messages": 0}


def test_a_log_of_model_calls_alone_has_the_times_of_its_records(tmp_path: Path) -> None:
    wrapped = [{"time": START + second, "msg": json.dumps(model_call("a", 5, 1))} for second in (10, 14)]

    assert trace_of(write(tmp_path / "events.jsonl", wrapped))["costs"]["wall_clock_s"] == 4


def test_messages_without_a_time_have_that_of_their_records(tmp_path: Path) -> None:
    wrapped = []
    for second in (1, 3):
        message = said(second, "planner", "A", (10, 2))
        del message["created_at"]
        wrapped.append({"time": START + second, "msg": json.dumps(row({"message": message}))})

    assert trace_of(write(tmp_path / "events.jsonl", wrapped))["costs"]["wall_clock_s"] == 2


def test_the_log_the_stream_the_state_and_the_result_of_a_run_are_one_trace(tmp_path: Path) -> None:
    messages = [GO, asked(2, "coder", (10, 2), c1="t"), done(3, "coder", "c1"), said(5, "coder", "Done.", (20, 3))]
    thread = {"type": "RoundRobinManagerState", "message_thread": messages}
    state = {"type": "TeamState", "version": "1.0.0", "agent_states": {"RoundRobinGroupChatManager": thread}}
    forms: dict[str, Any] = {
        "stream.jsonl": [*messages, {"messages": messages, "stop_reason": "done"}],
        "state.jsonl": [state],
        "events.jsonl": [row({"message": message}) for message in messages],
        "wrapped.jsonl": [{"time": START, "msg": json.dumps(row({"message": message}))} for message in messages],
    }
    for name, rows in forms.items():
        write(tmp_path / name, rows)
    for name, document in {"stream.json": forms["stream.jsonl"][:-1], "state.json": state}.items():
        (tmp_path / name).write_text(json.dumps(document, indent=1), "utf-8")
    result(tmp_path / "result.json", *messages)

    (whole,) = traces(tmp_path)
    for path in tmp_path.iterdir():
        alone = trace_of(path)
        assert (alone["costs"], of_type(alone, "inference", "tool_call", "tool_result")) == (
            whole["costs"], of_type(whole, "inference", "tool_call", "tool_result"),
        ), path.name  # fmt: skip


@pytest.mark.parametrize("manager", ["SelectorGroupChatManager", "MagenticOneOrchestrator"])
def test_the_state_of_a_team_whose_manager_asks_a_model_lacks_its_tokens(tmp_path: Path, manager: str) -> None:
    thread = {"type": "ManagerState", "message_thread": [GO, said(2, "a", "A", (10, 2))]}
    state = {"type": "TeamState", "version": "1.0.0", "agent_states": {manager: thread}}

    assert trace_of(write(tmp_path / "state.jsonl", [state]))["reasons"] == {"costs.tokens": "answers without usage: 1"}


def test_a_team_inside_an_agent_has_its_messages_in_the_state_of_the_agent(tmp_path: Path) -> None:
    inner = {"type": "TeamState", "agent_states": {"m": {"message_thread": [said(2, "b", "B", (3, 1))]}}}
    society = {"type": "SocietyOfMindAgentState", "inner_team_state": inner}
    outer = {"a": {"agent_state": society}, "m": {"message_thread": [GO, said(4, "a", "A", (10, 2))]}}
    state = {"type": "TeamState", "version": "1.0.0", "agent_states": outer}

    assert trace_of(write(tmp_path / "state.jsonl", [state]))["costs"]["tokens"] == 16


def test_the_state_of_an_agent_counts_steps_and_knows_no_tokens() -> None:
    trace = trace_of(TEAM / "agent_state.json")

    assert trace["clock"] == {"unit": "step"}
    assert trace["costs"]["tokens"] is None
    assert of_type(trace, "inference", "tool_call") == [
        "counter inference", "counter tool_call wc", "counter inference",
    ]  # fmt: skip


def test_sums_over_parts_of_a_run_count_each_answer_once(tmp_path: Path) -> None:
    answers = [said(second, "a", f"A{second}", (10, 2)) for second in (1, 2, 3)]
    result(tmp_path / "whole.json", *answers)
    result(tmp_path / "later.json", *answers[1:])

    screen = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--format", "json").stdout)
    assert [one["tokens"]["known"] for one in screen["sessions"]] == [24, 36]
    assert screen["all"]["tokens"]["known"] == 36


def test_copies_of_a_log_count_once_with_the_calls_that_no_message_tells_of(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for fixture in ("team.events.jsonl", "wrapped.jsonl"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / fixture).write_bytes((TEAM / fixture).read_bytes())

    found = {trace["trace_id"]: (tokens(trace), trace["costs"]) for trace in traces(tmp_path)}
    alone = [trace_of(TEAM / fixture) for fixture in ("team.events.jsonl", "wrapped.jsonl")]
    assert found == {trace["trace_id"]: (tokens(trace), trace["costs"]) for trace in alone}
