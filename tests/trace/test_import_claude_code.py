"""Claude Code transcripts imported: hand-written sessions whole, and every trap of the format by itself."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.importers.conversations.claude_code import rows as claude_rows
from orchtrace_corpus.trace.importers.core.logs import LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.model.import_report import Problem
from orchtrace_corpus.trace.model.json_text import one_line
from orchtrace_corpus.trace.render.doctor import page
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import run_corpus
from tests.trace.conversationlogs import (
    LOGS,
    SESSION,
    Claude,
    by_agent,
    claude_usage,
    documented,
    ledger,
    ledger_lines,
    links,
    of_type,
    parents,
    problems,
    spawn,
    text,
    tokens,
    told,
    trace_of,
    traces,
    use,
    write,
)
from tests.trace.spanlogs import checked

FIXTURES = sorted(path for path in (LOGS / "claude_code").iterdir())
NAMES = [path.stem for path in FIXTURES]
TRUTH: dict[str, dict[str, list[tuple[int, int, int, int]]]] = {
    "background": {
        "main": [(5, 20, 0, 0), (5, 15, 20, 0), (5, 10, 30, 0), (5, 10, 35, 0), (5, 6, 40, 0), (5, 9, 50, 0)],
        "bac4": [(3, 8, 0, 30)],
    },
    "inline": {
        "main": [(4, 40, 0, 10), (5, 12, 20, 2)],
        "sidechain-1": [(2, 9, 5, 1), (2, 10, 7, 1)],
        "sidechain-2": [(3, 11, 6, 1)],
    },
    "odd": {"main": [(10, 20, 5, 0), (11, 21, 6, 0), (12, 22, 7, 0), (0, 0, 3, 0), (0, 0, 0, 0)]},
    "parallel": {
        "main": [(10, 120, 100, 50), (12, 30, 150, 20), (14, 40, 170, 10), (15, 25, 200, 5)],
        "a111": [(5, 8, 300, 100), (5, 30, 380, 90), (5, 645, 400, 100)],
        "b222": [(6, 94, 500, 100)],
        "c333": [(3, 7, 50, 10)],
    },
    "relayed": {
        "main": [(5, 2, 14000, 3000), (2, 2, 17000, 500)],
        "a51c9e0": [(3, 3, 9000, 4000), (3, 2, 13000, 700), (0, 1, 13700, 400)],
    },
    "resumed": {"main": [(10, 20, 0, 100), (10, 25, 100, 20), (4, 6, 0, 30), (12, 18, 130, 0), (10, 300, 120, 0)]},
    "settled": {
        "main": [
            (3, 60, 30000, 500), (3, 30, 30500, 300), (2, 210, 31000, 400), (2, 90, 31400, 200), (2, 80, 31600, 300),
            (2, 50, 31900, 200), (0, 0, 0, 0), (4, 45, 32100, 100),
        ],
    },
    "siblings": {"main": [(7, 60, 0, 0), (8, 15, 40, 0)], "5eac4": [(3, 22, 50, 0)], "0dd0": [(1, 2, 0, 0)]},
    "teammates": {
        "main": [(5, 10, 0, 0), (5, 40, 10, 0), (5, 5, 15, 0), (6, 12, 20, 0), (6, 4, 30, 0), (6, 8, 35, 0), (6, 6, 40, 0)],
        "ann": [(7, 33, 0, 0), (8, 9, 40, 0)],
        "ben": [(7, 33, 0, 0)],
    },
    "waits": {"main": [(10, 20, 0, 100), (5, 10, 100, 0), (5, 6, 105, 0), (5, 9, 110, 0), (5, 7, 120, 0)]},
    "workflow": {
        "main": [(5, 20, 0, 0), (5, 5, 20, 0), (5, 7, 30, 0)],
        "w1": [(2, 11, 0, 0)],
        "w2": [(2, 11, 0, 0)],
        "w3": [(2, 11, 0, 0)],
    },
}  # fmt: skip
"""What each answer of each agent in the fixtures has spent: input, output, cache reads, cache writes."""


@pytest.fixture
def main() -> Claude:
    return Claude()


def sums(spent: list[tuple[int, int, int, int]]) -> tuple[int, ...]:
    return (*map(sum, zip(*spent, strict=True)), 0)


# Whole sessions


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_a_session_becomes_the_trace_that_was_written_down_for_it(path: Path) -> None:
    expected = LOGS / "told" / "claude_code" / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_tokens_are_what_the_answers_have_spent(path: Path) -> None:
    assert by_agent(trace_of(path)) == {agent: sums(spent) for agent, spent in sorted(TRUTH[path.stem].items())}


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_every_event_names_its_row(path: Path) -> None:
    lines = {
        file.name: len(file.read_bytes().splitlines()) for file in [path, *path.rglob("*.jsonl")] if file.is_file()
    }
    trace = trace_of(path)

    for event in trace["events"]:
        source = event["source"]
        assert 1 <= source["line"] <= lines[source["file"].rpartition("/")[2]]
        assert source["format"] == "claude_code"
    assert trace["events"][0]["source"].get("version", "") in ("", "1.0.60", "2.0.55", "2.1.34", "2.1.180", "2.1.228")


def test_all_sessions_of_a_folder_are_told_apart() -> None:
    assert len(traces(LOGS / "claude_code")) == len(FIXTURES)


# Which files make up a session


def child_of(folder: Path, agent: str, prompt: str = "Do it.", session: str = SESSION, **usage: Any) -> Claude:
    """A sub-agent that answers once, with 100 tokens in and 7 out."""
    rows = Claude(session, agent)
    rows.say(11, prompt)
    rows.answer(15, f"msg_{agent}", text("Done."), usage=usage.get("usage", (100, 7, 0, 0)))
    rows.write(folder)
    return rows


def test_sub_agents_are_in_the_folder_of_the_session(tmp_path: Path, main: Claude) -> None:
    main.answer(10, "m1", spawn("t1", "Do it."))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    trace = trace_of(tmp_path)
    assert parents(trace)["aaa"] == "main"
    assert by_agent(trace)["aaa"] == (100, 7, 0, 0, 0)


def test_sub_agents_beside_sessions_go_to_the_one_that_their_rows_name(tmp_path: Path) -> None:
    sessions = [f"{number}e551000-0000-4000-8000-000000000000" for number in (1, 2)]
    for session in sessions:
        main = Claude(session)
        main.answer(10, "m1", spawn("t1", f"Do {session}."))
        main.write(tmp_path)
        child = Claude(session, f"a{session[0]}")
        child.say(11, f"Do {session}.")
        child.answer(12, "c1", text("Done."))
        write(tmp_path / f"agent-a{session[0]}.jsonl", child.rows)

    assert [list(by_agent(trace)) for trace in traces(tmp_path)] == [["a1", "main"], ["a2", "main"]]


def test_rows_of_a_side_chain_among_those_of_the_session_are_agents_of_their_own(tmp_path: Path, main: Claude) -> None:
    call = main.answer(1, "m1", spawn("t1", "First."))["uuid"]
    other = main.answer(2, "m2", spawn("t2", "Second."))["uuid"]
    one = main.say(3, "First.", parentUuid=call, isSidechain=True)["uuid"]
    two = main.say(4, "Second.", parentUuid=other, isSidechain=True)["uuid"]
    main.answer(5, "s1", text("A"), usage=(10, 1, 0, 0), parentUuid=one, isSidechain=True)
    main.answer(6, "s2", text("B"), usage=(20, 2, 0, 0), parentUuid=two, isSidechain=True)
    main.result(7, "t1", "A")
    main.result(8, "t2", "B")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {
        "main": (2, 2, 0, 0, 0),
        "sidechain-1": (10, 1, 0, 0, 0),
        "sidechain-2": (20, 2, 0, 0, 0),
    }
    assert of_type(trace, "spawn") == ["main spawn Agent > sidechain-1", "main spawn Agent > sidechain-2"]
    assert of_type(trace, "return") == ["sidechain-1 return > main", "sidechain-2 return > main"]


def test_a_side_chain_is_found_by_its_parent_row_where_tasks_are_the_same(tmp_path: Path, main: Claude) -> None:
    first = main.answer(1, "m1", spawn("t1", "Same."))["uuid"]
    second = main.answer(2, "m2", spawn("t2", "Same."))["uuid"]
    main.say(3, "Same.", parentUuid=second, isSidechain=True)
    main.say(4, "Same.", parentUuid=first, isSidechain=True)
    main.write(tmp_path)

    spawns = [event for event in trace_of(tmp_path)["events"] if event["type"] == "spawn"]
    assert [(event["call_id"], event["to"]) for event in spawns] == [("t1", "sidechain-2"), ("t2", "sidechain-1")]


def test_a_side_chain_goes_on_although_one_of_its_rows_is_missing(tmp_path: Path, main: Claude) -> None:
    call = main.answer(1, "m1", spawn("t1", "First."))["uuid"]
    main.say(3, "First.", parentUuid=call, isSidechain=True)
    main.answer(6, "s1", text("A"), usage=(10, 1, 0, 0), parentUuid="gone", isSidechain=True)
    main.write(tmp_path)

    assert by_agent(trace_of(tmp_path))["sidechain-1"] == (10, 1, 0, 0, 0)


def test_nested_agents_lie_flat_in_one_folder(tmp_path: Path, main: Claude) -> None:
    main.answer(10, "m1", spawn("t1", "Outer."))
    main.write(tmp_path)
    outer = Claude(agent="aaa")
    outer.say(11, "Outer.")
    outer.answer(12, "o1", spawn("t2", "Inner."))
    outer.result(20, "t2", "Done.")
    outer.write(tmp_path)
    child_of(tmp_path, "bbb", "Inner.")

    trace = trace_of(tmp_path)
    assert parents(trace) == {"user": "", "main": "", "aaa": "main", "bbb": "aaa"}
    assert trace["topology"] == "hierarchical"


def test_a_session_that_goes_on_in_a_second_file_is_one(tmp_path: Path, main: Claude) -> None:
    main.say(0, "First.")
    main.answer(1, "m1", text("A"), usage=(10, 5, 0, 0))
    main.write(tmp_path)
    later = Claude("5e551000-0000-4000-8000-000000000001")
    later.rows = [{**row, "sessionId": later.session} for row in main.rows]
    later.say(60, "Second.")
    later.answer(61, "m2", text("B"), usage=(20, 6, 0, 0))
    later.write(tmp_path)

    trace = trace_of(tmp_path)
    assert tokens(trace)["output"] == 11
    assert ledger(trace)["left out: row that repeats an earlier one (same uuid, time and message)"] == 1
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"] * 2


def test_a_fork_that_copies_rows_under_new_ids_counts_answers_once(tmp_path: Path, main: Claude) -> None:
    main.say(0, "First.")
    main.answer(1, "m1", text("A"), usage=(10, 5, 0, 0))
    main.write(tmp_path)
    fork = Claude("5e551000-0000-4000-8000-000000000001")
    fork.rows = [{**row, "uuid": row["uuid"] + "x"} for row in main.rows]
    fork.answer(61, "m2", text("B"), usage=(20, 6, 0, 0))
    fork.write(tmp_path)

    assert tokens(trace_of(tmp_path))["output"] == 11


def test_both_branches_of_a_conversation_that_was_edited_count(tmp_path: Path, main: Claude) -> None:
    start = main.say(0, "Go.")["uuid"]
    main.answer(1, "m1", text("A"), usage=(10, 5, 0, 0), parentUuid=start)
    main.answer(9, "m2", text("B"), usage=(10, 6, 0, 0), parentUuid=start)
    main.write(tmp_path)

    assert tokens(trace_of(tmp_path))["output"] == 11


def test_compaction_is_no_sub_agent_and_its_summary_counts_for_the_session(tmp_path: Path, main: Claude) -> None:
    main.say(0, "First.")
    main.answer(1, "m1", text("A"), usage=(10, 5, 0, 0))
    main.write(tmp_path)
    summary = Claude(agent="acompact-77")
    summary.rows = [
        {**row, "agentId": "acompact-77", "isSidechain": True, "uuid": row["uuid"] + "c"} for row in main.rows
    ]
    summary.answer(3, "m2", text("Summary."), usage=(20, 300, 0, 0))
    summary.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (30, 305, 0, 0, 0)}
    assert list(parents(trace)) == ["user", "main"]
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]


# Who spawned whom

CLUES = ("meta", "result", "progress", "tail", "task")


@pytest.mark.parametrize("better", range(len(CLUES) - 1), ids=CLUES[:-1])
def test_of_two_clues_the_more_certain_tells_who_spawned_an_agent(tmp_path: Path, main: Claude, better: int) -> None:
    """The first call has one clue for itself, the second has the next one in their order."""
    clues = {CLUES[better]: "t1", CLUES[better + 1]: "t2"}
    for name, second in (("t1", 1), ("t2", 2)):
        main.answer(second, f"m{name}", spawn(name, "The task." if clues.get("task") == name else f"Else {name}."))
    if "progress" in clues:
        main.row("progress", 5, data={"type": "agent_progress", "agentId": "aaa"}, parentToolUseID=clues["progress"])
    for name in ("t1", "t2"):
        ending = "\nagentId: aaa (for later)" if clues.get("tail") == name else ""
        details = {"agentId": "aaa"} if clues.get("result") == name else None
        main.result(20, name, f"Done.{ending}", details)
    main.write(tmp_path)
    child_of(tmp_path, "aaa", "The task.")
    if "meta" in clues:
        meta = tmp_path / SESSION / "subagents" / "agent-aaa.meta.json"
        meta.write_text(f'{{"agentType": "worker", "toolUseId": "{clues["meta"]}"}}', "utf-8")

    found = {event["to"]: event["call_id"] for event in trace_of(tmp_path)["events"] if event["type"] == "spawn"}
    assert found["aaa"] == "t1"


@pytest.mark.parametrize("clue", CLUES)
def test_each_clue_alone_tells_who_spawned_an_agent(tmp_path: Path, main: Claude, clue: str) -> None:
    main.answer(1, "m1", spawn("t1", "  the TASK." if clue == "task" else "Else."))
    main.answer(2, "m2", spawn("t2", "Something else."))
    if clue == "progress":
        main.row("progress", 5, data={"type": "agent_progress", "agentId": "aaa"}, parentToolUseID="t1")
    main.result(
        20, "t1", "Done.\nagentId: aaa" if clue == "tail" else "", {"agentId": "aaa"} if clue == "result" else None
    )
    main.write(tmp_path)
    child_of(tmp_path, "aaa", "The task.")
    if clue == "meta":
        (tmp_path / SESSION / "subagents" / "agent-aaa.meta.json").write_text('{"toolUseId": "t1"}', "utf-8")

    found = {event["to"]: event["call_id"] for event in trace_of(tmp_path)["events"] if event["type"] == "spawn"}
    assert found["aaa"] == "t1"


@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_both_names_of_the_tool_spawn(tmp_path: Path, main: Claude, tool: str) -> None:
    main.answer(1, "m1", spawn("t1", "Do it.", tool))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    assert of_type(trace_of(tmp_path), "spawn") == [f"main spawn {tool} > aaa"]


def test_what_a_tool_prints_names_no_agent(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", use("t1", "Bash", command="cat notes"))
    main.result(2, "t1", "agentId: aaa", {"stdout": "agentId: aaa"})
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    trace = trace_of(tmp_path)
    assert parents(trace)["aaa"] == ""
    assert problems(trace) == {"sub-agent that no known call has spawned (orphan)": 1}


def test_an_agent_that_is_set_going_again_is_sent_a_message(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", spawn("t1", "Do it."))
    main.result(16, "t1", "Done.", {"agentId": "aaa"})
    main.answer(17, "m2", spawn("t2", "Go on."))
    main.result(30, "t2", "Done again.", {"agentId": "aaa"})
    main.write(tmp_path)
    child = child_of(tmp_path, "aaa")
    child.say(18, "Go on.")
    child.answer(29, "msg_again", text("Done again."))
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "spawn", "message", "return") == [
        "main spawn Agent > aaa", "aaa return > main", "main message Agent > aaa", "aaa return > main",
    ]  # fmt: skip


def test_agents_that_would_be_above_themselves_are_not_spawned(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.write(tmp_path)
    for agent, other in (("aaa", "bbb"), ("bbb", "aaa")):
        rows = Claude(agent=agent)
        rows.say(1, "Go.")
        rows.answer(2, f"m{agent}", spawn(f"t{agent}", "Go."))
        rows.result(3, f"t{agent}", "", {"agentId": other})
        rows.write(tmp_path)

    trace = trace_of(tmp_path)
    assert problems(trace)["spawn by which an agent would be above itself: left out"] == 1
    assert len(of_type(trace, "spawn")) == 1


def test_a_sub_agent_without_a_transcript_leaves_the_total_unknown(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", spawn("t1", "Do it."))
    main.result(20, "t1", "Done.", {"agentId": "aaa", "usage": claude_usage(9, 9), "totalTokens": 18})
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["costs"]["tokens"] is None
    assert trace["reasons"] == {"costs.tokens": "sub-agents without a transcript among the files: 1"}
    assert ledger(trace)["unknown: sub-agents without a transcript"] == 1
    assert of_type(trace, "spawn", "inference", "return") == [
        "main spawn Agent > aaa", "aaa inference", "aaa return > main",
    ]  # fmt: skip


def test_a_spawn_that_failed_brought_nothing_into_being(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", spawn("t1", "Do it."))
    main.result(2, "t1", "Unknown agent type", is_error=True)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "spawn", "tool_call", "tool_result") == [
        "main tool_call Agent", "main tool_result Agent (error tool_error)",
    ]  # fmt: skip
    assert trace["costs"]["tokens"] == 2


# What comes back


def launched(main: Claude) -> None:
    main.answer(1, "m1", spawn("t1", "Do it.", run_in_background=True))
    main.result(2, "t1", "Launched.", {"isAsync": True, "status": "async_launched", "agentId": "aaa"})


NOTICE = "<task-notification>\n<task-id>aaa</task-id>\n<status>completed</status>\n<result>Done.</result>\n</task-notification>"


def test_the_launch_of_a_background_agent_is_no_return(tmp_path: Path, main: Claude) -> None:
    launched(main)
    main.answer(30, "m2", text("Later."))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    trace = trace_of(tmp_path)
    assert of_type(trace, "return", "aggregate") == []
    assert of_type(trace, "despawn") == ["aaa despawn"]


def test_a_background_agent_returns_with_its_notification_and_nobody_typed_that(tmp_path: Path, main: Claude) -> None:
    launched(main)
    main.say(20, NOTICE)
    main.answer(25, "m2", text("Good."))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    trace = trace_of(tmp_path)
    assert of_type(trace, "return", "aggregate", "human_intervention") == ["aaa return > main", "main aggregate"]
    assert [event["t"] for event in trace["events"] if event["type"] == "return"] == [19]


def unanswered(main: Claude, folder: Path, **given: Any) -> None:
    """A call whose result is missing; its child reads from second 2 to 3, and gives its last answer at 4."""
    main.say(0, "Delegate it.")
    main.answer(1, "m1", spawn("t1", "Do it.", "Task", **given))
    child = Claude(agent="aaa")
    child.say(2, "Do it.")
    child.answer(2, "a1", use("r1", "Read", file_path="MEMORY.md"))
    child.result(3, "r1", "build: just ci")
    child.answer(4, "a2", text("Read."))
    child.write(folder)


def worked(trace: dict[str, Any]) -> float:
    return sum(TraceView(checked(trace)).timing.works)


def test_a_call_without_a_result_waits_for_the_last_answer_of_its_child(tmp_path: Path, main: Claude) -> None:
    unanswered(main, tmp_path)
    main.answer(5, "m2", text("It is done."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "return", "aggregate") == ["aaa return > main", "main aggregate"]
    assert links(trace, "return") == ["aaa return > main -> main aggregate"]
    (back,) = (event for event in trace["events"] if event["type"] == "return")
    assert (back["t"], back["inferred"], back["source"]["line"]) == (4, True, 4)
    assert worked(trace) == 1 + (1 + 1) + 1  # main, the child's call and answer, main


@pytest.mark.parametrize("hint", ["background", "team", "earlier", "interrupted", "cut off", "nothing"])
def test_a_call_without_a_result_that_waits_for_nobody_has_no_return(tmp_path: Path, main: Claude, hint: str) -> None:
    given: dict[str, Any] = {"background": {"run_in_background": True}, "team": {"team_name": "crew"}}.get(hint, {})
    unanswered(main, tmp_path, **given)
    if hint == "interrupted":
        main.say(4.5, "[Request interrupted by user for tool use]")
    if hint == "cut off":
        child = tmp_path / SESSION / "subagents" / "agent-aaa.jsonl"
        child.write_bytes(b"".join(child.read_bytes().splitlines(keepends=True)[:-1]))
    if hint != "nothing":
        main.answer(3.5 if hint == "earlier" else 5, "m2", text("It is done."))
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "return", "aggregate") == []


def test_a_return_that_is_told_several_times_counts_once(tmp_path: Path, main: Claude) -> None:
    launched(main)
    main.say(20, NOTICE)
    main.row("attachment", 20.5, attachment={"type": "queued_command", "prompt": NOTICE})
    main.answer(21, "m2", use("w1", "TaskOutput", task_id="aaa"))
    main.result(22, "w1", "<status>completed</status>")
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    assert of_type(trace_of(tmp_path), "return") == ["aaa return > main"]


def test_waiting_in_vain_is_no_return(tmp_path: Path, main: Claude) -> None:
    launched(main)
    main.answer(3, "m2", use("w1", "TaskOutput", task_id="aaa"))
    main.result(8, "w1", "<retrieval_status>timeout</retrieval_status><status>running</status>")
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    assert of_type(trace_of(tmp_path), "return") == []


@pytest.mark.parametrize(("word", "status"), [("failed", "error failed"), ("killed", "cancelled")])
def test_a_background_agent_may_fail_or_be_stopped(tmp_path: Path, main: Claude, word: str, status: str) -> None:
    launched(main)
    main.say(20, NOTICE.replace("completed", word))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    assert of_type(trace_of(tmp_path), "return") == [f"aaa return > main ({status})"]


def test_the_first_answer_behind_returns_aggregates_them(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", spawn("t1", "One."))
    main.answer(1.5, "m1", spawn("t2", "Two."))
    main.result(20, "t1", "A", {"agentId": "aaa"})
    main.result(21, "t2", "B", {"agentId": "bbb"})
    main.answer(25, "m2", text("Both."))
    main.answer(26, "m3", text("And more."))
    main.write(tmp_path)
    child_of(tmp_path, "aaa", "One.")
    child_of(tmp_path, "bbb", "Two.")

    trace = trace_of(tmp_path)
    assert of_type(trace, "orchestrator_decision", "aggregate") == ["main orchestrator_decision", "main aggregate"]
    assert links(trace, "return") == ["aaa return > main -> main aggregate", "bbb return > main -> main aggregate"]


# Teams


def team(folder: Path, main: Claude) -> None:
    """Two teammates with the same task; only their names tell which is which."""
    main.answer(0, "m0", use("t0", "TeamCreate", team_name="pair"))
    for number, name in ((1, "ann"), (2, "ben")):
        main.answer(number, "m1", spawn(f"t{number}", "Write it.", name=name, team_name="pair"))
        details = {"status": "teammate_spawned", "agent_id": f"{name}@pair"}
        main.result(number + 2, f"t{number}", f"Spawned {name}.", details)
    for key, name in (("k1", "ben"), ("k2", "ann")):
        rows = Claude(agent=key)
        rows.say(5, '<teammate-message teammate_id="team-lead">\nWrite it.\n</teammate-message>')
        rows.answer(10, f"m_{name}", use("s1", "SendMessage", recipient="team-lead", content=f"{name} is done."))
        rows.result(10.5, "s1", '{"success": true}')
        rows.write(folder)
        meta = folder / SESSION / "subagents" / f"agent-{key}.meta.json"
        meta.write_text(f'{{"agentType": "worker", "name": "{name}"}}', "utf-8")
    main.say(15, '<teammate-message teammate_id="ann" color="blue">\nann is done.\n</teammate-message>\n'
                 '<teammate-message teammate_id="ben">\nben is done.\n</teammate-message>')  # fmt: skip
    main.say(15.5, '<teammate-message teammate_id="system">\n{"type": "teammate_terminated"}\n</teammate-message>')
    main.answer(20, "m2", use("t9", "TeamDelete"))
    main.result(21, "t9", '{"success": true}')
    main.write(folder)


def test_teammates_with_one_task_are_told_by_their_names(tmp_path: Path, main: Claude) -> None:
    team(tmp_path, main)

    spawns = [event for event in trace_of(tmp_path)["events"] if event["type"] == "spawn"]
    assert [(event["call_id"], event["to"]) for event in spawns] == [("t1", "ann"), ("t2", "ben")]


def test_messages_of_teammates_are_theirs_and_nobody_typed_them(tmp_path: Path, main: Claude) -> None:
    team(tmp_path, main)

    trace = trace_of(tmp_path)
    assert of_type(trace, "message") == ["ben message SendMessage > main", "ann message SendMessage > main"]
    assert of_type(trace, "human_intervention", "return") == []
    assert links(trace, "message") == [
        "ann message SendMessage > main -> main inference", "ben message SendMessage > main -> main inference",
    ]  # fmt: skip


def test_a_message_of_which_only_the_arrival_is_in_the_log_counts_as_well(tmp_path: Path, main: Claude) -> None:
    main.say(1, '<teammate-message teammate_id="zoe">\nHello.\n</teammate-message>')
    main.answer(2, "m1", text("Hello, Zoe."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "message") == ["zoe message > main"]
    assert links(trace, "message") == ["zoe message > main -> main inference"]


def test_agents_are_called_what_the_log_calls_them(tmp_path: Path, main: Claude) -> None:
    """Names of two teammates, two helpers of one name, one without, and two whose names are taken."""
    names = {"a1": "alice", "a2": "bob", "a3": "bob", "a4": "", "a5": "main", "a6": "user", "a7": "ann@corp.example"}
    main.answer(1, "m1", *(spawn(f"t_{key}", f"Task {key}", name=name) for key, name in names.items()))
    main.answer(2, "m2", spawn("t_b1", "Elsewhere.", name="zoe"))
    for second, key in enumerate(names, 3):
        agent = Claude(agent=key)
        agent.say(second, f"Task {key}")
        agent.answer(second + 1, f"m_{key}", text("Done."))
        agent.write(tmp_path)
        main.result(20 + second, f"t_{key}", "Done.", {"agentId": key, "status": "completed"})
    main.answer(40, "m3", text("All done."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert parents(trace) == {
        "user": "", "main": "", "alice": "main", "bob": "main", "bob#2": "main", "a4": "main", "main#2": "main",
        "user#2": "main", "…b3e3": "main", "zoe": "main",
    }  # fmt: skip
    assert [event["agent"] for event in trace["events"] if event["type"] == "return"] == [
        "alice", "bob", "bob#2", "a4", "main#2", "user#2", "…b3e3",
    ]  # fmt: skip


def test_a_teammate_is_called_what_the_file_beside_it_says(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", spawn("t1", "Task"))
    main.write(tmp_path)
    agent = Claude(agent="k1")
    agent.say(2, "Task")
    agent.answer(3, "m2", text("Done."))
    path = agent.write(tmp_path)
    path.with_suffix(".meta.json").write_text(json.dumps({"agentType": "tester", "name": "alice", "toolUseId": "t1"}))

    assert parents(trace_of(tmp_path)) == {"user": "", "main": "", "alice": "main"}


@pytest.mark.parametrize(
    ("name", "shown"), [("tester-2", "tester-2 (worker)"), ("alice", "alice (worker)"), ("", "worker")]
)
def test_doctor_shows_a_name_and_of_an_id_the_role(tmp_path: Path, main: Claude, name: str, shown: str) -> None:
    main.answer(1, "m1", spawn("t1", "Task", name=name))
    main.result(9, "t1", "Done.", {"agentId": "a0b1c2d3", "status": "completed"})
    main.write(tmp_path)
    agent = Claude(agent="a0b1c2d3")
    agent.say(2, "Task")
    agent.answer(5, "m2", text("Done."))
    agent.write(tmp_path)

    screen = run_corpus("trace", "doctor", str(tmp_path)).stdout
    assert f"main spawned {shown}." in screen


def test_the_end_of_a_team_ends_its_members(tmp_path: Path, main: Claude) -> None:
    team(tmp_path, main)

    assert sorted(of_type(trace_of(tmp_path), "despawn")) == ["main despawn > ann", "main despawn > ben"]


# Files


@pytest.mark.parametrize(
    ("path", "agents", "part", "agent", "run", "shown"),
    [
        ("p/s.jsonl", (), "MAIN", "", "", "s.jsonl"),
        ("p/agent-a.jsonl", (), "AGENT", "a", "", "agent-a.jsonl"),
        ("p/renamed.jsonl", ("a", "a"), "AGENT", "a", "", "renamed.jsonl"),
        ("p/renamed.jsonl", ("a", "b"), "MAIN", "", "", "renamed.jsonl"),
        ("p/renamed.jsonl", ("a", ""), "MAIN", "", "", "renamed.jsonl"),
        ("p/s/subagents/agent-a.jsonl", (), "AGENT", "a", "", "s/subagents/agent-a.jsonl"),
        ("p/s/subagents/agent-a.meta.json", (), "META", "a", "", "s/subagents/agent-a.meta.json"),
        ("subagents/agent-a.jsonl", (), "AGENT", "a", "", "subagents/agent-a.jsonl"),
        ("s/subagents/workflows/w/agent-a.jsonl", (), "AGENT", "a", "w", "s/subagents/workflows/w/agent-a.jsonl"),
        ("s/subagents/workflows/w/x/agent-a.jsonl", (), "AGENT", "a", "w", "s/subagents/workflows/w/x/agent-a.jsonl"),
        ("s/subagents/workflows/agent-a.jsonl", (), "AGENT", "a", "", "s/subagents/workflows/agent-a.jsonl"),
        ("s/subagents/x/w/agent-a.jsonl", (), "AGENT", "a", "", "s/subagents/x/w/agent-a.jsonl"),
        ("s/subagents/workflows/w/journal.jsonl", (), "JOURNAL", "", "w", "s/subagents/workflows/w/journal.jsonl"),
        ("p/s/workflows/w.json", (), "RUN", "", "w", "s/workflows/w.json"),
        ("p/s/workflows/w.jsonl", (), "MAIN", "", "", "w.jsonl"),
        ("p/s/workflows/x/w.jsonl", (), "MAIN", "", "", "w.jsonl"),
    ],
)
def test_the_path_of_a_file_says_which_part_of_a_session_it_is(
    path: str, agents: tuple[str, ...], part: str, agent: str, run: str, shown: str
) -> None:
    openings = [claude_rows.RowHeader(agent_id=agent, is_sidechain=bool(agent)) for agent in agents]
    source = claude_rows.source_of(LogFile(path, path), openings)

    assert (source.part, source.agent, source.run, source.name) == (claude_rows.Part[part], agent, run, shown)


TEXT_BLOCK = {"type": "text", "text": "A"}


@pytest.mark.parametrize(
    ("row", "is_recognised"),
    [
        *(({"type": "system", name: "x"}, True) for name in ("sessionId", "uuid", "leafUuid", "messageId")),
        *(
            ({"type": kind, "uuid": "x"}, True)
            for kind in ("summary", "progress", "attachment", "queue-operation", "file-history-snapshot")
        ),
        ({"type": "system"}, False),
        ({"type": "novelty", "uuid": "x"}, False),
        *(({"type": kind, "agentId": "a", "key": "k"}, True) for kind in ("started", "result")),
        ({"type": "started", "agentId": "a"}, False),
        ({"type": "started", "key": "k"}, False),
        *(({"type": kind, "message": {"content": [TEXT_BLOCK]}}, True) for kind in ("user", "assistant")),
        ({"type": "user", "message": {"content": ["A", TEXT_BLOCK]}}, True),
        ({"type": "user", "message": {"content": "Go."}}, True),
        ({"type": "user", "message": {"content": ["A", {"text": "A"}]}}, False),
        ({"type": "user", "message": "Go.", "uuid": "x"}, False),
    ],
)
def test_a_row_is_of_claude_code_by_its_type_and_its_members(
    tmp_path: Path, row: dict[str, Any], is_recognised: bool
) -> None:
    path = write(tmp_path / "x.jsonl", [row])

    with LogReader(LogFile(str(path), "x.jsonl")) as reader:
        assert claude_rows.recognises(reader.head()) is is_recognised


# Workflows


def workflow(folder: Path, main: Claude, *, journal: bool = True) -> None:
    """A script that has two agents work one after the other; the second never comes back."""
    main.answer(1, "m1", use("t1", "Workflow", script="…"))
    main.result(
        2, "t1", "Launched.", {"isAsync": True, "status": "async_launched", "runId": "wf_1", "taskId": "task_1"}
    )
    main.say(50, NOTICE.replace("aaa", "task_1"))
    main.answer(51, "m2", text("Good."))
    main.write(folder)
    for agent, begin in (("aaa", 3), ("bbb", 20)):
        rows = Claude(agent=agent)
        rows.say(begin, f"Task of {agent}")
        rows.answer(begin + 10, f"m_{agent}", text("Done."), usage=(10, 1, 0, 0))
        rows.write(folder, "workflows/wf_1")
    if journal:
        lines = [
            {"type": kind, "key": key, "agentId": key}
            for kind, key in (("started", "aaa"), ("result", "aaa"), ("started", "bbb"))
        ]
        write(folder / SESSION / "subagents" / "workflows" / "wf_1" / "journal.jsonl", lines)
    summary = folder / SESSION / "workflows" / "wf_1.json"
    summary.parent.mkdir()
    summary.write_text(
        '{"runId": "wf_1", "workflowName": "review", "totalTokens": 22, "workflowProgress": '
        '[{"agentId": "aaa", "label": "map"}, {"agentId": "bbb", "label": "sum"}, {"agentId": "gone", "label": "x"}]}',
        "utf-8",
    )


def test_a_workflow_is_a_script_that_spawns_the_agents_of_its_folder(tmp_path: Path, main: Claude) -> None:
    workflow(tmp_path, main)

    trace = trace_of(tmp_path)
    assert parents(trace) == {"user": "", "main": "", "aaa": "wf_1", "bbb": "wf_1", "wf_1": "main"}
    assert {agent["id"]: (agent.get("role"), agent["kind"]) for agent in trace["agents"]}["wf_1"] == ("review", "tool")
    assert of_type(trace, "spawn") == ["main spawn Workflow > wf_1", "wf_1 spawn > aaa", "wf_1 spawn > bbb"]
    assert [agent.get("role") for agent in trace["agents"] if agent["id"] in ("aaa", "bbb")] == ["map", "sum"]
    assert problems(trace) == {"agent of a workflow without a transcript": 1}


def test_the_journal_of_a_workflow_says_who_came_back(tmp_path: Path, main: Claude) -> None:
    workflow(tmp_path, main)

    assert of_type(trace_of(tmp_path), "return") == ["aaa return > wf_1", "wf_1 return > main"]


def test_without_a_journal_all_agents_of_a_workflow_come_back(tmp_path: Path, main: Claude) -> None:
    workflow(tmp_path, main, journal=False)

    assert of_type(trace_of(tmp_path), "return") == ["aaa return > wf_1", "bbb return > wf_1", "wf_1 return > main"]


def test_a_script_goes_on_when_an_agent_is_back(tmp_path: Path, main: Claude) -> None:
    workflow(tmp_path, main)

    assert links(trace_of(tmp_path), "temporal") == [
        "aaa return > wf_1 -> wf_1 spawn > bbb", "main orchestrator_decision -> main aggregate"
    ]  # fmt: skip


def test_the_total_of_a_workflow_is_left_out(tmp_path: Path, main: Claude) -> None:
    workflow(tmp_path, main)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"aaa": (10, 1, 0, 0, 0), "bbb": (10, 1, 0, 0, 0), "main": (2, 2, 0, 0, 0)}
    assert trace["import_report"]["token_ledger"]["left out: a workflow's own total, whose agents' answers are counted"] == {
        "records": 1, "tokens": {"total": 22},
    }  # fmt: skip


# Tokens


@pytest.mark.parametrize("counts", [(True, 1, 240), (1, True, 240)])
def test_a_flag_is_no_count_also_beside_a_row_that_has_one(
    tmp_path: Path, main: Claude, counts: tuple[Any, ...]
) -> None:
    main.say(0, "Go.")
    for second, output in enumerate(counts, 1):
        main.answer(second, "m1", text("Done."), usage=(1200, output, 0, 0))
    trace = trace_of(main.write(tmp_path))

    before = "left out: row before the last of its answer (same message.id and requestId)"
    assert trace["import_report"]["token_ledger"][before]["tokens"]["output"] == 1
    assert by_agent(trace) == {"main": (1200, 240, 0, 0, 0)}


def test_rows_of_one_answer_repeat_its_usage_and_the_last_one_counts(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", text("A"), usage=(10, 1, 5, 5), stop=None)
    main.answer(2, "m1", use("t1", "Bash"), usage=(10, 1, 5, 5), stop=None)
    main.answer(3, "m1", use("t2", "Bash"), usage=(10, 90, 5, 5), stop="tool_use")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (10, 90, 5, 5, 0)}
    assert trace["import_report"]["token_ledger"] == {
        "left out: row before the last of its answer (same message.id and requestId)": {
            "records": 2, "tokens": {"input": 20, "output": 2, "cache_read": 10, "cache_write": 10},
        },
        "counted: usage of the last row of an answer": {
            "records": 1, "tokens": {"input": 10, "output": 90, "cache_read": 5, "cache_write": 5},
        },
    }  # fmt: skip
    assert trace["events"][0]["token_basis"] == "deduplicated"
    assert trace["events"][0]["t_end"] == 2


def test_one_message_id_under_two_requests_is_two_answers(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "msg_001", text("A"), usage=(10, 1, 0, 0), requestId="req_1")
    main.answer(2, "msg_001", text("B"), usage=(10, 2, 0, 0), requestId="req_2")
    main.write(tmp_path)

    assert by_agent(trace_of(tmp_path)) == {"main": (20, 3, 0, 0, 0)}


def test_one_message_id_in_two_sessions_is_two_answers(tmp_path: Path) -> None:
    for number in (1, 2):
        main = Claude(f"{number}e551000-0000-4000-8000-000000000000")
        main.answer(number, "msg_001", text("A"), usage=(10, number, 0, 0))
        main.write(tmp_path)

    assert [tokens(trace)["output"] for trace in traces(tmp_path)] == [1, 2]


def test_an_answer_that_two_files_of_a_session_have_counts_once(tmp_path: Path, main: Claude) -> None:
    main.answer(10, "m1", spawn("t1", "Do it."), usage=(50, 5, 0, 0))
    main.write(tmp_path)
    child = Claude(agent="aaa")
    child.say(11, "Do it.")
    child.answer(11, "m1", spawn("t1", "Do it."), usage=(50, 5, 0, 0))  # the answer that spawned it, repeated
    child.answer(15, "c1", text("Done."), usage=(20, 2, 0, 0))
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"aaa": (20, 2, 0, 0, 0), "main": (50, 5, 0, 0, 0)}
    assert (
        ledger(trace)["left out: answer that another file of the session has, too (same message.id and requestId)"] == 1
    )
    assert of_type(trace, "spawn") == ["main spawn Agent > aaa"]


def test_a_made_up_message_id_in_two_threads_is_two_answers(tmp_path: Path, main: Claude) -> None:
    main.answer(10, "msg_001", spawn("t1", "Do it."), usage=(50, 5, 0, 0), requestId=None)
    main.write(tmp_path)
    child = Claude(agent="aaa")
    child.say(11, "Do it.")
    child.answer(15, "msg_001", text("Done."), usage=(20, 2, 0, 0), requestId=None)
    child.write(tmp_path)

    assert by_agent(trace_of(tmp_path)) == {"aaa": (20, 2, 0, 0, 0), "main": (50, 5, 0, 0, 0)}


def placeholder(folder: Path, main: Claude, stated: dict[str, int]) -> dict[str, Any]:
    main.answer(10, "m1", spawn("t1", "Do it."), usage=(1, 1, 0, 0))
    main.result(20, "t1", "Done.", {"agentId": "aaa", "usage": stated, "totalTokens": 76_365})
    main.write(folder)
    child = Claude(agent="aaa")
    child.say(11, "Do it.")
    child.answer(12, "c1", use("r1", "Read"), usage=(3, 4, 60, 6), stop=None)
    child.answer(15, "c2", text("Done."), usage=(0, 17, 70, 4), stop=None)
    child.write(folder)
    return trace_of(folder)


def test_the_output_of_a_sub_agent_is_a_placeholder_that_its_result_replaces(tmp_path: Path, main: Claude) -> None:
    trace = placeholder(tmp_path, main, claude_usage(0, 5108, 70, 4))

    assert by_agent(trace)["aaa"] == (3, 4 + 5108, 130, 10, 0)
    assert [event["token_basis"] for event in trace["events"] if event["agent"] == "aaa" and "tokens" in event] == [
        "placeholder", "reported",
    ]  # fmt: skip
    assert ledger(trace) == {
        "left out: totalTokens of a sub-agent's result (its last context, not a sum)": 1,
        "counted: usage of the last row of an answer": 1,
        "counted: output noted before the model had finished, so the least it can be": 1,
        "counted: output from the sub-agent's result, where its last row had less": 1,
    }


def test_total_tokens_of_a_result_is_a_context_and_counts_nowhere(tmp_path: Path, main: Claude) -> None:
    trace = placeholder(tmp_path, main, claude_usage(0, 5108, 70, 4))

    assert trace["costs"]["tokens"] == 2 + 3 + 4 + 5108 + 130 + 10
    line = trace["import_report"]["token_ledger"][
        "left out: totalTokens of a sub-agent's result (its last context, not a sum)"
    ]
    assert line == {"records": 1, "tokens": {"total": 76_365}}


@pytest.mark.parametrize("stated", [claude_usage(9, 5108, 70, 4), claude_usage(0, 16, 70, 4)])
def test_a_result_that_speaks_of_another_answer_is_told_and_not_taken(
    tmp_path: Path, main: Claude, stated: dict[str, int]
) -> None:
    trace = placeholder(tmp_path, main, stated)

    assert by_agent(trace)["aaa"] == (3, 21, 130, 10, 0)
    assert problems(trace) == {Problem.RESULT_USAGE_DIFFERS: 1}


def test_an_answer_without_usage_is_unknown_and_not_zero(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", text("A"), usage=None)
    main.answer(2, "m2", text("B"))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["costs"]["tokens"] is None
    assert ledger(trace)["unknown: answers without usage"] == 1
    assert [event["token_basis"] for event in trace["events"] if event["type"] == "inference"] == [
        "unknown",
        "reported",
    ]


def test_what_the_program_answers_itself_is_no_inference(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", text("No response requested."), model="<synthetic>")
    main.answer(2, "m2", text("API Error: 529"), model="<synthetic>", isApiErrorMessage=True)
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "inference") == ["main inference (error api_error)"]


@pytest.mark.parametrize("usage", [(0, 0, 0, 0), None])
def test_an_error_that_the_program_tells_has_no_model_and_no_tokens(
    tmp_path: Path, main: Claude, usage: tuple[int, ...] | None
) -> None:
    main.answer(1, "m1", text("Login expired"), model="<synthetic>", isApiErrorMessage=True, usage=usage)
    main.say(60, "Again.")
    main.answer(65, "m2", text("Done."), usage=(4, 120, 0, 0))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    (failed, _) = (event for event in trace["events"] if event["type"] == "inference")
    assert (failed["status"], "model" in failed, trace["costs"]["tokens"]) == ("error", False, 124)
    prices = tmp_path / "prices.yaml"
    prices.write_text("date: 2026-03-01\ncurrency: USD\nmodels:\n  claude-x: {input: 1, output: 1}\n", "utf-8")
    screen = run_corpus("trace", "doctor", str(tmp_path), "--prices", str(prices)).stdout
    assert "Cost      0.0001 USD at" in screen
    assert "synthetic" not in screen


def test_what_is_written_for_an_hour_is_a_part_of_what_is_written_to_caches(tmp_path: Path, main: Claude) -> None:
    kept = {"ephemeral_1h_input_tokens": 300, "ephemeral_5m_input_tokens": 200}
    answer = main.answer(1, "m1", text("A"), usage=(1, 2, 3, 500))
    answer["message"]["usage"]["cache_creation"] = kept
    answer = main.answer(2, "m2", text("B"), usage=(1, 2, 3, 500))
    answer["message"]["usage"]["cache_creation"] = {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 500}
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert [event["tokens"].get("cache_write_1h") for event in trace["events"] if "tokens" in event] == [300, None]
    assert trace["costs"]["tokens"] == 2 * 506


# What an answer follows from


def test_neither_a_notification_nor_a_prompt_cuts_an_answer_off_from_the_one_before(
    tmp_path: Path, main: Claude
) -> None:
    main.say(0, "Do all.")
    main.answer(5, "m1", spawn("s1", "One.", run_in_background=True), stop="tool_use")
    main.result(5.2, "s1", "Async agent launched successfully.\nagentId: a1", {"isAsync": True, "agentId": "a1"})
    main.answer(9, "m2", text("It works."))
    main.say(60, "<task-notification><task-id>a1</task-id><status>completed</status></task-notification>")
    main.answer(66, "m3", text("It is back."))
    main.say(95, "Continue.")
    main.answer(99, "m4", spawn("s2", "Two.", run_in_background=True), stop="tool_use")
    main.result(99.2, "s2", "Async agent launched successfully.\nagentId: a2", {"isAsync": True, "agentId": "a2"})
    main.say(150, "<task-notification><task-id>a2</task-id><status>completed</status></task-notification>")
    main.answer(158, "m5", text("All is done."))
    path = main.write(tmp_path)

    assert links(trace_of(path), "temporal") == [
        "main inference -> main aggregate",
        "main orchestrator_decision -> main aggregate",
        "main orchestrator_decision -> main inference",
    ]
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text(f"run,reward\n{SESSION},1\n", "utf-8")
    paid = run_corpus("trace", "reward", str(path), "--family", "R7").stdout
    assert "R7      used             1      1" in paid.splitlines()
    divided = run_corpus("trace", "credit", str(path), "--outcomes", str(outcomes), "--unit", "agent").stdout
    assert divided.splitlines()[2:5] == ["main        0.590909", "worker a1   0.318182", "worker a2  0.0909091"]


# Time


def test_rows_out_of_order_are_sorted_and_counted(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"))
    main.row("progress", 3, data={})
    main.result(9, "t1", "B")
    main.answer(12, "m3", text("C"))
    main.answer(10, "m2", text("B"))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["import_report"]["out_of_order"] == 2
    assert [event["t"] for event in trace["events"]] == sorted(event["t"] for event in trace["events"])
    ends = [event["t_end"] for event in trace["events"] if event["type"] == "inference"]
    assert ends == [5, 10, 12]


def test_a_child_that_begins_before_its_spawn_takes_the_spawn_with_it(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(14, "m1", spawn("t1", "Do it."))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    trace = trace_of(tmp_path)
    assert problems(trace) == {"sub-agent that begins before its spawn: the spawn was moved there": 1}
    assert [event["t"] for event in trace["events"] if event["type"] == "spawn"] == [11]


def test_a_model_begins_when_its_input_is_there(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(4, "m1", use("t1", "Bash"))
    main.result(9, "t1", "B")
    main.answer(11, "m2", text("C"))
    main.write(tmp_path)

    spans = [(event["t"], event["t_end"]) for event in trace_of(tmp_path)["events"] if event["type"] == "inference"]
    assert spans == [(0, 4), (9, 11)]


def waited(trace: dict[str, Any]) -> float:
    return TraceView(checked(trace)).timing.waited


def test_the_time_until_a_person_answers_is_no_work(tmp_path: Path, main: Claude) -> None:
    """Of 18,071 seconds of a session 15,054 may go by before somebody types."""
    main.say(0, "Go.")
    main.answer(10, "m1", text("Done."))
    main.say(15_064, "Thanks.")
    main.answer(15_070, "m2", text("Welcome."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert waited(trace) == 15_054
    assert TraceView(checked(trace)).timing.elapsed == 16


def test_a_question_to_the_user_waits_for_a_person(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("q1", "AskUserQuestion", questions=[]))
    main.result(65, "q1", "Yes.")
    main.answer(70, "m2", text("Good."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "tool_call", "human_intervention") == [
        "user human_intervention > main", "main tool_call AskUserQuestion", "user human_intervention > main",
    ]  # fmt: skip
    assert waited(trace) == 60


def test_a_call_that_a_person_refuses_has_waited_for_them(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"))
    main.result(35, "t1", "The user doesn't want to proceed with this tool use.", is_error=True)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "tool_result") == ["main tool_result Bash (error rejected)"]
    assert waited(trace) == 30


def warmed_up(folder: Path, main: Claude, *more: str) -> dict[str, Any]:
    """A session of 10 s, and two sub-agents that warmed caches up days before."""
    for number, name in enumerate(("aaaa1111", "bbbb2222")):
        child = Claude(agent=name)
        child.say(number, "Warmup")
        child.answer(number + 3, f"w{number}", text("Ready."), usage=(500, 20, 0, 0))
        for words in more:
            child.say(number + 5, words)
        child.write(folder)
    main.say(239_000, "Go.")
    main.answer(239_010, "m1", text("Done."), usage=(100, 10, 0, 0))
    main.write(folder)
    return trace_of(folder)


def test_warm_ups_keep_their_tokens_and_start_no_clock(tmp_path: Path, main: Claude) -> None:
    trace = warmed_up(tmp_path, main)

    view = TraceView(checked(trace))
    assert (view.timing.elapsed, view.timing.waited, trace["costs"]["wall_clock_s"]) == (10, 0, 10)
    assert trace["costs"]["tokens"] == 2 * 520 + 110
    figures = {name: one.value for name, one in measure(view).items()}
    assert {name: figures[name] for name in ("worked", "span", "elapsed", "steps", "agents", "width", "tokens")} == {
        "worked": 10, "span": 10, "elapsed": 10, "steps": 1, "agents": 1, "width": 1, "tokens": 1150,
    }  # fmt: skip
    assert problems(trace) == {}


def test_warm_ups_are_told_apart_on_the_page(tmp_path: Path, main: Claude) -> None:
    run = diagnose(checked(warmed_up(tmp_path, main)))

    lines = plain(page(run, (80, 24))).splitlines()
    assert run.summary.day == "2026-03-04"
    assert lines[1] == "1 agent and 2 warm-ups, 5 events, 10 s elapsed."
    assert [line.split() for line in lines if line.startswith(("aaaa", "bbbb"))] == [
        ["aaaa1111", "w", "520"], ["bbbb2222", "w", "520"],
    ]  # fmt: skip
    assert "w warm-up, off the clock" in "\n".join(lines)
    assert "critical path, 10 s: main 10 s. With these steps and no waiting: at least 10 s." in " ".join(
        " ".join(lines).split()
    )


def test_a_sub_agent_that_is_asked_more_is_no_warm_up(tmp_path: Path, main: Claude) -> None:
    trace = warmed_up(tmp_path, main, "And now the task.")

    assert TraceView(checked(trace)).timing.elapsed == 239_010


def test_a_blocking_wait_that_a_person_breaks_off_is_no_wait_for_them(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "TaskOutput", task_id="b1", block=True), stop="tool_use")
    main.result(605, "t1", "The user doesn't want to proceed with this tool use.", is_error=True)
    main.say(605, [text("[Request interrupted by user for tool use]")])
    main.say(665, "Go on without it.")
    main.answer(670, "m2", text("Done."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert waited(trace) == 60
    assert TraceView(checked(trace)).timing.elapsed == 610
    assert "main tool_result TaskOutput (error interrupted) -> user human_intervention > main (cancelled)" in links(
        trace, "causal"
    )
    lines = plain(page(diagnose(checked(trace)), (100, 24))).splitlines()
    assert lines[-1] == "Saving    TaskOutput in main: up to 10 min of 10 min 10 s."


def test_a_call_that_a_person_breaks_off_had_worked_until_then(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"))
    main.result(35, "t1", "[Request interrupted by user for tool use]", is_error=True)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "tool_result") == ["main tool_result Bash (error interrupted)"]
    assert waited(trace) == 0


def test_the_time_until_the_program_is_left_is_none_of_the_run(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(10, "m1", text("Done."))
    main.say(4750, "<command-name>/exit</command-name>\n<command-message>exit</command-message>")
    main.say(4750, "<local-command-stdout>Bye!</local-command-stdout>")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]
    assert (waited(trace), TraceView(checked(trace)).timing.elapsed, trace["costs"]["wall_clock_s"]) == (0, 10, 10)


def test_a_command_that_the_model_answers_was_waited_for(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(10, "m1", text("Done."))
    main.say(70, "<command-message>review</command-message>\n<command-name>/review</command-name>")
    main.answer(80, "m2", text("Reviewed."))
    main.write(tmp_path)

    assert waited(trace_of(tmp_path)) == 60


def test_a_prompt_in_the_middle_of_a_turn_was_not_waited_for(tmp_path: Path, main: Claude) -> None:
    """The program was killed while a tool ran, and the session goes on an hour later."""
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"), stop="tool_use")
    main.result(10, "t1", "ok")
    main.say(3610, "Go on.")
    main.answer(3620, "m2", text("Done."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert waited(trace) == 0
    assert TraceView(checked(trace)).timing.elapsed == 3620


def test_a_prompt_that_nobody_answered_ends_the_wait_for_a_person(tmp_path: Path, main: Claude) -> None:
    """The program was killed before the model answered, and the session goes on an hour later: nobody was waited for."""
    main.say(0, "Go.")
    main.answer(10, "m1", text("Done."))
    main.say(70, "And this.")
    main.say(3670, "Are you there?")
    main.answer(3680, "m2", text("Yes."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert waited(trace) == 60
    assert TraceView(checked(trace)).timing.elapsed == 3620


def test_a_shell_command_of_a_person_is_no_prompt(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(10, "m1", text("Done."))
    main.say(70, "<bash-input>ls</bash-input>")
    main.say(70, "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>")
    main.say(130, "And this.")
    main.answer(140, "m2", text("Done."))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"] * 2
    assert (waited(trace), TraceView(checked(trace)).timing.elapsed) == (120, 20)


def test_a_model_that_a_person_breaks_off_had_worked_until_then(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"), stop="tool_use")
    main.result(10, "t1", "ok")
    main.say(100, [text("[Request interrupted by user]")])
    main.say(160, "Shorter, please.")
    main.answer(170, "m2", text("Done."))
    main.write(tmp_path)

    assert waited(trace_of(tmp_path)) == 60


def test_a_tool_of_an_agent_in_the_background_works_while_a_person_thinks(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", spawn("t1", "Do it.", run_in_background=True), stop="tool_use")
    main.result(6, "t1", "Launched.", {"agentId": "abc1", "isAsync": True, "status": "async_launched"})
    main.answer(10, "m2", text("It runs."))
    main.say(310, "And?")
    main.answer(315, "m3", text("Still."))
    main.write(tmp_path)
    child = Claude(agent="abc1")
    child.say(6, "Do it.")
    child.answer(20, "c1", use("t2", "Bash"), stop="tool_use")
    child.result(120, "t2", "ok")
    child.answer(130, "c2", text("Done."))
    child.write(tmp_path)

    assert waited(trace_of(tmp_path)) == 180


def test_what_was_entered_while_the_agent_worked_has_not_kept_it_waiting(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"))
    main.row("attachment", 20, attachment={"type": "queued_command", "prompt": "And this."})
    main.result(40, "t1", "B")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"] * 2
    assert waited(trace) == 0


def test_an_interrupted_request_is_an_intervention_that_nobody_waited_for(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(5, "m1", use("t1", "Bash"))
    main.say(20, [text("[Request interrupted by user for tool use]")])
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention", "stop") == [
        "user human_intervention > main", "user human_intervention > main (cancelled)",
    ]  # fmt: skip
    assert waited(trace) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"isMeta": True},
        {"isCompactSummary": True},
        {"origin": {"kind": "task"}},
        {"text": "<local-command-stdout>x</local-command-stdout>"},
        {"text": "<system-reminder>x</system-reminder>"},
        {"text": "Caveat: The messages below were generated"},
    ],
)
def test_what_the_program_has_put_there_nobody_typed(tmp_path: Path, main: Claude, fields: dict[str, Any]) -> None:
    main.say(0, "Go.")
    main.answer(1, "m1", text("A"))
    main.say(100, **{"text": "Some text.", **fields})
    main.answer(102, "m2", text("B"))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]
    assert waited(trace) == 0


def test_the_task_of_a_sub_agent_nobody_typed(tmp_path: Path, main: Claude) -> None:
    main.answer(10, "m1", spawn("t1", "Do it."))
    main.write(tmp_path)
    child_of(tmp_path, "aaa")

    assert of_type(trace_of(tmp_path), "human_intervention") == []


# Guards


def test_a_hook_that_blocks_is_a_safety_event(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", use("t1", "Bash"))
    main.row("attachment", 2, attachment={"type": "hook_blocking_error", "hookName": "PreToolUse:Bash"})
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "safety_event") == ["main safety_event PreToolUse:Bash (error hook)"]
    assert links(trace, "safety_flow") == ["main inference -> main safety_event PreToolUse:Bash (error hook)"]


def test_a_rule_that_forbids_a_call_is_a_safety_event(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", use("t1", "Bash"))
    main.result(2, "t1", "Permission to use Bash with command rm has been denied.", is_error=True)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "safety_event") == ["main safety_event (error forbidden)"]
    assert of_type(trace, "human_intervention") == []


def test_a_model_that_refuses_is_a_safety_event(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", text("No."), stop="refusal")
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "safety_event") == ["main safety_event (error refusal)"]


# Calls and strange rows


def test_calls_and_results_are_paired_by_id_in_any_order(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", use("t1", "Read"))
    main.answer(2, "m1", use("t2", "Grep"))
    main.result(3, "t2", "B")
    main.result(4, "t1", "A", is_error=True)
    main.write(tmp_path)

    assert links(trace_of(tmp_path), "tool_dependency") == [
        "main tool_call Grep -> main tool_result Grep",
        "main tool_call Read -> main tool_result Read (error tool_error)",
    ]


def test_a_call_without_a_result_stays_unanswered(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", use("t1", "Read"))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "tool_call", "tool_result", "stop") == ["main tool_call Read"]


def test_a_result_without_a_call_and_one_too_many_are_told(tmp_path: Path, main: Claude) -> None:
    main.answer(1, "m1", use("t1", "Read"))
    main.result(2, "t1", "A")
    main.result(3, "t1", "A again")
    main.result(4, "t7", "B")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert problems(trace) == {"second result of a call: the first counts": 1, "result without its call": 1}
    assert of_type(trace, "tool_result") == ["main tool_result Read", "main tool_result"]


def test_rows_of_unknown_types_are_counted_and_stop_nothing(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.rows += [
        {"type": "quantum", "uuid": "q"},
        {"silly": 1},
        42,
        b"{nonsense\n",
        {"type": "user", "message": "text"},
    ]
    main.row("file-history-snapshot", 1)
    main.answer(2, "m1", text("A"))
    main.rows.append(b'{"type": "assi')
    main.write(tmp_path)

    report = trace_of(tmp_path)["import_report"]
    assert report["unknown_kinds"] == {"(no type)": 1, "quantum": 1}
    assert report["skipped"] == {"file-history-snapshot": 1}
    assert {what: entry["number"] for what, entry in report["dropped"].items()} == {
        "not an object": 1, "not JSON": 1, "user row without a message": 1, "cut off at the end": 1,
    }  # fmt: skip


@pytest.mark.parametrize("odd", [-5, "many", 1.5, True, 2**53])
def test_usage_that_is_no_number_is_unknown_and_called_so(tmp_path: Path, main: Claude, odd: Any) -> None:
    main.answer(1, "m1", text("A"), usage=(odd, odd, odd, odd))
    main.answer(2, "m2", text("B"), usage=(3, odd, 0, 0))
    main.answer(3, "m3", text("C"), usage=(1, 2, 0, 0))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert (trace["costs"]["tokens"], trace["reasons"]) == (None, {"costs.tokens": "usage that is not a number: 2"})
    assert ledger(trace)["unknown: usage that is not a number"] == 2
    assert tokens(trace)["input"] == 4


def test_a_file_has_one_name_in_all_of_a_report(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(1, "m1", text("A"))
    main.rows += [b"{nonsense\n", {"type": "user", "message": "text"}]
    main.write(tmp_path / "project")

    dropped = trace_of(tmp_path)["import_report"]["dropped"]
    assert [entry["for_example"] for entry in dropped.values()] == [[f"{SESSION}.jsonl:3"], [f"{SESSION}.jsonl:4"]]


def test_an_agent_whose_file_has_a_dot_in_its_name_is_called_by_all_of_it(tmp_path: Path, main: Claude) -> None:
    main.say(0, "Go.")
    main.answer(1, "m1", text("A"))
    main.write(tmp_path)
    child = Claude(agent="jane.doe@corp.example")
    child.say(2, "Do it.")
    child.answer(3, "c1", text("Done."))
    child.write(tmp_path)

    (agent,) = {agent["id"] for agent in trace_of(tmp_path)["agents"]} - {"main", "user"}
    assert agent.startswith("…")
    assert len(agent) == 5


@pytest.mark.parametrize("odd", [["a"], {"a": 1}, 7, None])
def test_an_agent_that_is_no_text_is_none(tmp_path: Path, main: Claude, odd: Any) -> None:
    main.say(0, "Go.", isSidechain=True, agentId=odd)
    main.answer(1, "m1", text("A"), isSidechain=True, agentId=odd)
    main.write(tmp_path)

    assert trace_of(tmp_path)["costs"]["tokens"] == 2


def test_bytes_in_the_name_of_a_file_that_are_no_utf8_are_written_out(tmp_path: Path, main: Claude) -> None:
    agent = Claude(agent="a1")
    agent.say(1, "Look.")
    agent.answer(2, "m2", text("A"))
    agent.write(tmp_path).rename(tmp_path / SESSION / "subagents" / os.fsdecode(b"agent-a\xff.jsonl"))
    main.say(0, "Go.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert [agent["id"] for agent in trace["agents"]] == ["user", "main", "a\\udcff"]
    assert one_line(trace).encode("utf-8")


def test_files_without_a_conversation_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{"type": "summary", "summary": "A talk", "leafUuid": "u"}])

    with pytest.raises(DataFileError, match=r"no row of a conversation in x\.jsonl"):
        list(importers.read(importers.sessions(str(path))[0], Privacy(b"salt")))


def test_the_lines_of_the_ledger_are_those_that_are_documented() -> None:
    assert ledger_lines("conversations/claude_code") == documented("claude_code")
