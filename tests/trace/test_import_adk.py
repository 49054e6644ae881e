"""Google ADK: events of agents one after another and side by side, transfers, people, both spellings of members."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.conversations import google_adk
from orchtrace_corpus.trace.importers.core.logs import LogFile, LogReader
from tests.effort import tries
from tests.trace.conversationlogs import LOGS, START, links, of_type, problems, tokens, told, trace_of, traces
from tests.trace.test_import_fuzz import mutated_value

FIXTURE = LOGS / "google_adk" / "session.json"
SESSION = json.loads(FIXTURE.read_bytes())


def event(second: float, author: str, *parts: dict[str, Any], usage: Any = None, branch: str = "", **more: Any) -> Any:
    """An event; its usage is prompt and candidates."""
    found = {"author": author, "timestamp": START + second, "content": {"parts": list(parts)}, "branch": branch, **more}
    if usage is not None:
        put, got = usage
        found["usageMetadata"] = {"promptTokenCount": put, "candidatesTokenCount": got}
    return found


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def call(name: str, tool: str, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"id": name, "name": tool, "args": args}}


def answer(name: str, **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "t", "response": response}}


def session(path: Path, *events: Any, name: str = "s") -> Path:
    path.write_text(json.dumps({"id": name, "appName": "demo", "userId": "u", "events": list(events)}), "utf-8")
    return path


GO = event(0, "user", text("Go."))


def test_the_fixture_gives_what_its_text_says() -> None:
    assert told(trace_of(FIXTURE)) == (LOGS / "told" / "google_adk" / "session.txt").read_text("utf-8")


@pytest.mark.parametrize("spelling", [("appName", "userId", "events"), ("app_name", "user_id", "events")])
@pytest.mark.parametrize("missing", [0, 1, 2, None])
def test_a_session_is_known_by_its_program_its_user_and_its_events(
    tmp_path: Path, spelling: tuple[str, ...], missing: int | None
) -> None:
    document: dict[str, Any] = {"id": "s1", **dict.fromkeys(spelling[:2], "x"), "events": []}
    if missing is not None:
        del document[spelling[missing]]
    (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")

    with LogReader(LogFile(str(tmp_path / "x.json"), "x.json")) as reader:
        assert google_adk.recognises(reader.head()) is (missing is None)


def test_members_in_the_spelling_of_python_give_the_same(tmp_path: Path) -> None:
    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", name): renamed(inner) for name, inner in value.items()
            }
        return [renamed(one) for one in value] if isinstance(value, list) else value

    (tmp_path / "session.json").write_text(json.dumps(renamed(SESSION)), "utf-8")
    found, plain = trace_of(tmp_path), trace_of(FIXTURE)
    for trace in (found, plain):
        for one in trace["events"]:
            del one["source"]

    assert found["events"] == plain["events"]


def test_several_sessions_of_a_file_are_a_trace_each(tmp_path: Path) -> None:
    both = [{**SESSION, "id": name} for name in ("a", "b")]
    (tmp_path / "array.json").write_text(json.dumps(both), "utf-8")
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(one) + "\n" for one in both), "utf-8")

    for name in ("array.json", "lines.jsonl"):
        assert [trace["trace_id"] for trace in traces(tmp_path / name)] == ["a", "b"]


# Who reads what


def test_agents_side_by_side_do_not_read_one_another_and_who_comes_behind_reads_both(tmp_path: Path) -> None:
    trace = trace_of(session(
        tmp_path / "x.json", GO,
        event(1, "a", text("A"), usage=(9, 1), branch="fan.a"), event(2, "b", text("B"), usage=(9, 1), branch="fan.b"),
        event(5, "c", text("C"), usage=(9, 1)), event(9, "d", text("D"), usage=(9, 1)),
    ))  # fmt: skip

    assert of_type(trace, "message") == ["a message > c", "b message > c", "c message > d"]
    assert links(trace, "message") == [
        "a message > c -> c inference", "b message > c -> c inference", "c message > d -> d inference",
    ]  # fmt: skip
    assert [(one["t"], one["t_end"]) for one in trace["events"] if one["type"] == "inference"] == [
        (1, 5), (2, 5), (5, 9), (9, 9),
    ]  # fmt: skip


def test_an_answer_begins_at_its_date_which_is_measured_and_its_end_is_concluded(tmp_path: Path) -> None:
    trace = trace_of(session(
        tmp_path / "x.json", GO, event(1, "a", call("c", "open"), usage=(9, 1)), event(3, "a", answer("c", result=1)),
        event(4, "a", text("A"), usage=(9, 1)),
    ))  # fmt: skip

    times = ("t", "t_request", "t_end", "inferred")
    assert [tuple(one[name] for name in times) for one in trace["events"] if one["type"] == "inference"] == [
        (1, 1, 3, True), (4, 4, 4, True),
    ]  # fmt: skip


def test_who_goes_on_where_branches_meet_reads_what_was_said_on_the_others(tmp_path: Path) -> None:
    trace = trace_of(session(
        tmp_path / "x.json", GO, event(1, "a", text("A"), usage=(9, 1), branch="fan.a"),
        event(2, "b", text("B"), usage=(9, 1), branch="fan.b"), event(3, "b", text("More."), usage=(9, 1), branch="fan.b"),
        event(5, "b", text("Both."), usage=(9, 1)),
    ))  # fmt: skip

    assert of_type(trace, "message") == ["a message > b"]
    assert [one["t"] for one in trace["events"] if one["type"] == "message"] == [5]


def test_a_transfer_is_one_message(tmp_path: Path) -> None:
    trace = trace_of(session(
        tmp_path / "x.json", GO, event(1, "a", call("c", "transfer_to_agent", agent_name="b"), usage=(9, 1)),
        event(3, "a", answer("c", result=None)), event(4, "b", text("B"), usage=(9, 1)),
    ))  # fmt: skip

    assert (trace["topology"], of_type(trace, "message")) == ("swarm", ["a message transfer_to_agent > b"])


def test_what_a_person_was_asked_for_was_waited_for_and_then_comes_the_next_turn(tmp_path: Path) -> None:
    trace = trace_of(session(
        tmp_path / "x.json", GO, event(1, "a", call("c", "adk_request_confirmation"), usage=(9, 1)),
        event(2, "a", answer("c", status="pending"), id="1"), event(3, "a", text("Done."), usage=(9, 1)),
        event(60, "user", text("More.")), event(61, "a", text("Yes."), usage=(9, 1)),
    ))  # fmt: skip

    people = [(one["t"], one["t_end"]) for one in trace["events"] if one["type"] == "human_intervention"]
    assert people == [(0, 0), (2, 2), (3, 60)]


# Tokens and errors


def test_thoughts_and_what_tools_put_into_the_prompt_count(tmp_path: Path) -> None:
    usage = {"promptTokenCount": 50, "cachedContentTokenCount": 20, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
             "toolUsePromptTokenCount": 8}  # fmt: skip
    trace = trace_of(session(tmp_path / "x.json", GO, {**event(1, "a", text("A")), "usageMetadata": usage}))

    assert tokens(trace) == {"input": 38, "output": 12, "cache_read": 20, "cache_write": 0, "reasoning": 7}


def test_an_agent_that_never_has_usage_is_no_model_unless_none_has(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    trace = trace_of(session(path, GO, event(1, "code", text("1")), event(2, "a", text("A"), usage=(9, 1))))
    assert (trace["costs"]["tokens"], of_type(trace, "inference", "message")) == (
        10,
        ["code message > a", "a inference"],
    )

    trace = trace_of(session(path, GO, event(1, "a", text("A")), event(2, "a", text("B"))))
    assert (trace["costs"]["tokens"], len(of_type(trace, "inference"))) == (None, 2)


def test_errors_partial_events_and_results_without_a_call(tmp_path: Path) -> None:
    trace = trace_of(session(
        tmp_path / "x.json", GO, event(1, "a", text("A"), partial=True), event(1, "a", errorCode="SAFETY", usage=(9, 0)),
        event(2, "a", answer("c9", error="no")), event(3, "a", call("c", "open"), usage=(9, 1)),
        event(4, "a", answer("c", error="no such file")), event(5, "a", actions={"stateDelta": {"x": 1}}),
    ))  # fmt: skip

    assert of_type(trace, "inference", "tool_result") == [
        "a inference (error SAFETY)", "a inference", "a tool_result open (error tool_error)",
    ]  # fmt: skip
    assert problems(trace) == {"result without its call": 1}
    assert trace["import_report"]["skipped"] == {"event without content": 1, "partial event": 1}


@pytest.mark.parametrize("changes", [1, 8])
def test_damaged_sessions_give_sound_traces_or_none(tmp_path: Path, changes: int) -> None:
    chance, number = random.Random(changes), 0
    for _ in range(tries(150, 40)):
        document = json.loads(FIXTURE.read_bytes())
        for _ in range(changes):
            place = chance.randrange(len(document["events"]))
            document["events"][place] = mutated_value(document["events"][place], chance)
        (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")
        try:
            number += len(traces(tmp_path / "x.json", form="google_adk"))
        except DataFileError:
            continue
    assert number > tries(120, 25)
