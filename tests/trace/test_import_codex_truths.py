"""Codex rollouts as real sessions have them: scripts and their cells, refusals, copies, counters, searches."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.importers.conversations.codex.rows import Output, read_output
from orchtrace_corpus.trace.view import TraceView
from tests.effort import tries
from tests.trace.conversationlogs import (
    Codex,
    by_agent,
    codex_usage,
    ledger,
    moment,
    of_type,
    parents,
    problems,
    spawned,
    trace_of,
    write,
)
from tests.trace.spanlogs import checked

P, A, B = (f"019fbd0{number}-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))


@pytest.fixture
def main() -> Codex:
    rows = Codex(P)
    rows.typed(1, "Go.")
    return rows


def text(words: str) -> dict[str, str]:
    return {"type": "input_text", "text": words}


def script(status: str, seconds: float, *printed: Any) -> list[dict[str, str]]:
    """The output of a script: what Codex puts in front, and what the script has printed."""
    parts = [part if isinstance(part, str) else json.dumps(part) for part in printed]
    return [text(f"Script {status}\nWall time {seconds} seconds\nOutput:\n"), *map(text, parts)]


def result(code: int | None, seconds: float = 0.5, output: str = "…") -> dict[str, Any]:
    """The result of a command, as scripts print it; one without a code still runs."""
    ending = {"session_id": 7} if code is None else {"exit_code": code}
    return {"chunk_id": "a1", "wall_time_seconds": seconds, **ending, "original_token_count": 3, "output": output}


def says(main: Codex, second: float, name: str, output: Any) -> None:
    """A call has an output."""
    main.item(second, "custom_tool_call_output", call_id=name, output=output)
    main.count(second + 0.01, 100, 0, 10, 0, rows=1)


def execute(main: Codex, second: float, name: str, code: str = "text(1)") -> None:
    """The model runs a script."""
    main.item(second, "custom_tool_call", name="exec", input=code, call_id=name, status="completed")


def timing(trace: dict[str, Any]) -> Any:
    return TraceView(checked(trace)).timing


# Scripts and their cells


def test_waiting_for_a_cell_is_time_of_the_script_and_no_wait_for_agents(tmp_path: Path, main: Codex) -> None:
    """Two cells at once, one of them waited for twice."""
    execute(main, 4, "c1")
    says(main, 14, "c1", "Script running with cell ID 8\nWall time 10.0 seconds\nOutput:\n")
    execute(main, 16, "c2")
    says(main, 21, "c2", script("running with cell ID 9", 5.0, "so far"))
    main.call(23, "wait", "c3", cell_id="8", yield_time_ms=5000)
    says(main, 28, "c3", script("running with cell ID 8", 5.0))
    main.call(30, "wait", "c4", cell_id="9", yield_time_ms=30000)
    says(main, 41, "c4", script("completed", 11.0, result(0)))
    main.call(43, "wait", "c5", cell_id="8", terminate=True)
    says(main, 44, "c5", script("terminated", 1.0))
    main.says(46, "Done.")
    main.count(46.1, 100, 0, 10, 0)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    times = timing(trace)
    assert of_type(trace, "tool_call") == [
        f"main tool_call {tool}" for tool in ("exec", "exec", "wait", "wait", "wait")
    ]
    tools = sum(
        times.works[number] for number, event in enumerate(times.graph.events) if event.tool and times.works[number]
    )
    assert (round(tools, 6), round(sum(times.works), 6), times.elapsed) == (10 + 5 + 5 + 11 + 1, 45, 45)


def test_waiting_for_agents_is_still_a_wait(tmp_path: Path, main: Codex) -> None:
    main.call(3, "spawn_agent", "c1", message="Do it.")
    main.output(4, "c1", {"agent_id": A})
    main.call(5, "wait", "c2", ids=[A])
    main.output(15, "c2", {"status": {A: {"completed": "Done."}}})
    main.says(16, "Good.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "tool_call", "return") == [f"{A} return > main"]


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (script("completed", 1.0, result(0)), ""),
        (script("completed", 1.0, result(101)), "exit_code"),
        (script("completed", 1.0, result(-1)), "exit_code"),
        (script("completed", 1.0, result(None)), ""),
        (script("completed", 1.0, [result(0), result(3)]), "exit_code"),
        (script("completed", 1.0, {"lint": result(0), "tests": {"unit": result(2)}}), "exit_code"),
        (script("completed", 1.0, "first", result(0), result(1)), "exit_code"),
        (script("completed", 1.0, json.dumps(result(0)) + "\n" + json.dumps(result(1))), "exit_code"),
        (script("completed", 1.0, json.dumps(result(127))[:-9]), "exit_code"),
        (script("completed", 1.0, json.dumps(result(0))[:-9]), ""),
        (script("completed", 1.0, result(0, output='{"chunk_id": "x", "exit_code": 1}')), ""),
        (script("completed", 1.0, {"exit_code": 5, "name": "of a file that the script has read"}), ""),
        (script("completed", 1.0, "exit code: 1 is what the manual calls it"), ""),
        (script("running with cell ID 4", 10.0, result(1)), "exit_code"),
        (script("failed", 0.1, "Script error:\nTypeError: x is no function"), "tool_error"),
        (script("failed", 0.1, "Script error:\nRejected by user"), "rejected"),
        (script("terminated", 0.1), ""),
        (f"Script completed\nWall time 1.0 seconds\nOutput:\n{json.dumps(result(1))}", "exit_code"),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 0\nOutput:\nlast run: exit code: 4", ""),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 0\nOutput:\nnot permitted: see README", ""),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 1\nOutput:\nOperation not permitted", "forbidden"),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 3\nOutput:\n", "exit_code"),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 3\nOutput:\nrejected by user 7", "exit_code"),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 3\nOutput:\n", ""),
        ('{"output": "x", "metadata": {"exit_code": 2, "duration_seconds": 1.5}}', "exit_code"),
        ({"content": "x", "success": False}, "tool_error"),
        ("apply_patch verification failed: Failed to find expected lines", "tool_error"),
        ("write_stdin failed: Unknown process id 88", "tool_error"),
        ("failed to parse function arguments: missing field `cmd`", "tool_error"),
        ("Exit code: 0\nOutput:\nexec_command failed, says the log", ""),
    ],
)  # fmt: skip
def test_an_output_says_whether_its_call_has_failed(tmp_path: Path, main: Codex, output: Any, error: str) -> None:
    execute(main, 3, "c1")
    says(main, 4, "c1", output)
    main.write(tmp_path)

    ending = f" (error {error})" if error else ""
    assert of_type(trace_of(tmp_path), "tool_result") == [f"main tool_result exec{ending}"]


@pytest.mark.parametrize(
    ("value", "run_time", "running"),
    [
        (script("completed", 12.5, result(0, 4.5), result(0, 8)), 12.5, ""),
        ("Script running with cell ID x7 after explicit yield\nWall time 2.0 seconds\nOutput:\n", 2.0, "cell x7"),
        ("Chunk ID: a\nWall time: 10.1 seconds\nProcess running with session ID 88\nOutput:\n", 10.1, "session 88"),
        ("Script completed\nOutput:\nx", None, ""),
        ("Chunk ID: a\nWall time: 0.0421 seconds\nProcess exited with code 0\nOutput:\n", 0.0421, ""),
        ("Exit code: 0\nWall time: 2 seconds\nOutput:\nWall time: 99 seconds", 2.0, ""),
        ('{"output": "", "metadata": {"exit_code": 0, "duration_seconds": 1.5}}', 1.5, ""),
        ("Exit code: nan\nWall time: inf seconds\nOutput:\n", None, ""),
        ("Wall time: 99 seconds, said the program", None, ""),
    ],
)  # fmt: skip
def test_an_output_says_how_long_the_tool_ran(value: Any, run_time: float | None, running: str) -> None:
    output = read_output(value)

    assert isinstance(output, Output)
    assert (output.run_time, output.running) == (run_time, running)


# What waited and what worked


def command(seconds: float, code: int = 0) -> str:
    """The output of a command."""
    return f"Chunk ID: a1\nWall time: {seconds} seconds\nProcess exited with code {code}\nOutput:\nok\n"


def worked(trace: dict[str, Any]) -> tuple[float, float, float, float]:
    """How long models and tools of a trace worked, how long it waited for people, and how long it took."""
    times = timing(trace)
    tools = sum(times.works[number] for number, event in enumerate(times.graph.events) if event.type == "tool_call")
    figures = sum(times.works) - tools, tools, times.waited, times.elapsed
    return tuple(round(figure, 6) for figure in figures)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("given", "output", "expected", "opened"),
    [
        ({}, command(0.9), (4, 1, 0, 5), 0),
        ({}, command(299.9), (4, 300, 0, 304), 0),
        ({}, command(2), (4, 2, 0, 304), 0),
        ({"sandbox_permissions": "require_escalated"}, command(2), (4, 2, 298, 6), 0),
        ({"sandbox_permissions": "require_escalated"}, command(299.5), (4, 300, 0, 304), 0),
        ({"sandbox_permissions": "require_escalated"}, "ok", (4, 300, 0, 304), 1),
        ({}, "ok", (4, 300, 0, 304), 1),
    ],
    ids=["brief", "long work", "no work", "approved", "approved at once", "asked", "unknown"],
)
def test_the_stated_run_time_decides_what_waited(
    tmp_path: Path, main: Codex, given: dict[str, Any], output: str, expected: tuple[float, ...], opened: int
) -> None:
    end = 4.0 if expected[-1] == 5 else 303.0
    main.call(3, "exec_command", "c1", cmd="make", **given)
    main.output(end, "c1", output)
    main.says(end + 2, "Done.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    view = TraceView(checked(trace))
    assert worked(trace) == pytest.approx(expected, abs=0.51)
    assert [view.timing.graph.events[call.event].tool for call in view.open_calls] == ["exec_command"] * opened


def test_a_command_that_waits_for_its_turn_begins_when_it_ran(tmp_path: Path, main: Codex) -> None:
    """Two commands are called at once and run one after the other."""
    main.call(3, "exec_command", "c1", cmd="a")
    main.call(3, "exec_command", "c2", cmd="b")
    main.output(13, "c1", command(10))
    main.output(33, "c2", command(20))
    main.says(34, "Done.")
    main.write(tmp_path)

    assert worked(trace_of(tmp_path)) == (3, 30, 0, 33)


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        (1, [result(0, 2.0)], (2, 298)),
        (2, [result(0, 2.0), result(1, 3.0)], (5, 295)),
        (1, [result(0, 299.8)], (300, 0)),
        (2, [result(0, 2.0)], None),
        (1, ["done"], None),
    ],
    ids=["one command", "two", "approved at once", "one result is missing", "no result"],
)
def test_a_script_that_asked_ran_as_long_as_its_commands_if_all_say_so(
    tmp_path: Path, main: Codex, calls: int, results: list[Any], expected: tuple[float, float] | None
) -> None:
    """The wall time of a script contains the wait of its tools for a person."""
    line = 'text(JSON.stringify(await tools.exec_command({cmd:"make", sandbox_permissions:"require_escalated"})));'
    execute(main, 3, "c1", line * calls)
    says(main, 303, "c1", script("completed", 300.0, *results))
    main.says(305, "Done.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    view = TraceView(checked(trace))
    assert [call.cause for call in view.open_calls] == ([] if expected else ["asked"])
    if expected:
        assert worked(trace)[1:3] == pytest.approx(expected, abs=0.51)


@pytest.mark.parametrize("status", ["completed", "failed", "terminated", "running with cell ID 3", ""])
@pytest.mark.parametrize("kind", ["cell", "session"])
def test_what_runs_on_is_unfinished_until_a_call_sees_its_end(
    tmp_path: Path, main: Codex, kind: str, status: str
) -> None:
    """The same for scripts and for commands; of one that nobody waits for there is a range."""
    if kind == "cell":
        execute(main, 4, "c1")
        says(main, 14, "c1", script("running with cell ID 3", 10.0))
    else:
        main.call(4, "exec_command", "c1", cmd="make")
        main.output(14, "c1", "Wall time: 10.0 seconds\nProcess running with session ID 3\nOutput:\n")
    runs_on = not status or "running" in status
    if status and kind == "cell":
        main.call(15, "wait", "c2", cell_id="3")
        main.item(20, "function_call_output", call_id="c2", output=script(status, 5.0))
    elif status:
        ending = "running with session ID 3" if runs_on else "exited with code 0"
        main.call(15, "write_stdin", "c2", session_id=3)
        main.output(20, "c2", f"Wall time: 5.0 seconds\nProcess {ending}\nOutput:\n")
    main.says(60, "Done.")
    main.write(tmp_path)

    view = TraceView(checked(trace_of(tmp_path)))
    readings = [sum(times.works) for times in (view.timing_if_waiting, view.timing)]
    last_seen = 20 if status else 14
    assert readings == pytest.approx([59, 59 + (60 - last_seen) * runs_on])
    assert [call.cause for call in view.open_calls] == ["unfinished"] * runs_on


def test_a_long_call_behind_which_a_script_goes_on_worked_until_its_output(tmp_path: Path, main: Codex) -> None:
    execute(main, 4, "c1")
    says(main, 44, "c1", script("running with cell ID 3", 40.0))
    main.says(60, "Done.")
    main.write(tmp_path)

    view = TraceView(checked(trace_of(tmp_path)))
    assert [sum(times.works) for times in (view.timing_if_waiting, view.timing)] == [59, 59 + 16]


@pytest.mark.parametrize(("milliseconds", "slept"), [(100_000, 0), (99_200, 0), (40_000, 60), (None, 0)])
def test_a_turn_that_states_less_than_its_rows_slept(
    tmp_path: Path, main: Codex, milliseconds: int | None, slept: int
) -> None:
    main.event(1, "task_started", turn_id="t1")
    main.call(91, "exec_command", "c1", cmd="ls")
    main.output(92, "c1", command(0.9))
    main.says(100, "Done.")
    main.count(100, 100, 0, 2000, 0)
    stated = {} if milliseconds is None else {"duration_ms": milliseconds}
    main.event(101, "task_complete", turn_id="t1", **stated)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    models, tools, waited, elapsed = worked(trace)
    assert models == 98 - slept
    assert (tools, waited, elapsed) == (1, 0, 99)


def test_turns_of_a_copied_history_are_those_of_the_parent(tmp_path: Path, main: Codex) -> None:
    main.event(1, "task_started", turn_id="t1")
    main.says(30, "A")
    main.count(30.1, 100, 0, 10, 0)
    main.event(31, "task_complete", turn_id="t1", duration_ms=9_000)
    main.write(tmp_path)
    fork = Codex(A, 1800, forked_from_id=P)
    fork.rows += main.rows[1:]
    fork.total = main.total
    fork.typed(1802, "And now?")
    fork.says(1805, "B")
    fork.count(1805.1, 10, 0, 1, 0)
    fork.write(tmp_path)

    trace = trace_of(tmp_path)
    assert [(turn["agent"], turn["run_time"]) for turn in trace["turns"]] == [("main", 9)]


# Spawns that are refused, and names


REFUSALS = (
    "collab spawn failed: agent thread limit reached (max 3)",
    "Full-history forked agents inherit the parent agent type; omit agent_type.",
    f"no room for another agent beside {A}",
    '{"error": "depth limit"}',
)


@pytest.mark.parametrize("said", REFUSALS)
@pytest.mark.parametrize("is_said_by_event", [True, False])
def test_a_spawn_that_is_refused_is_a_call_that_failed_and_no_agent(
    tmp_path: Path, main: Codex, said: str, is_said_by_event: bool
) -> None:
    """The same task is given again, and then an agent comes into being."""
    for second, name, output in ((3, "c1", said), (6, "c2", json.dumps({"task_name": "/root/count_cells"}))):
        main.call(second, "spawn_agent", name, agent_type="worker", task_name="count_cells", message="Count.")
        if is_said_by_event:
            thread = B if name == "c2" else None
            main.event(second + 0.1, "collab_agent_spawn_end", call_id=name, new_thread_id=thread, status="x")
        main.output(second + 1, name, output)
        main.count(second + 1.1, 100, 0, 10, 0)
    main.write(tmp_path)
    child = Codex(B, 6.5, source=spawned(P, agent_path="/root/count_cells"))
    child.typed(7, "Count.")
    child.says(9, "3")
    child.count(9.1, 50, 0, 5, 0)
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    assert parents(trace) == {"user": "", "main": "", "count_cells": "main"}
    assert of_type(trace, "spawn", "tool_call", "tool_result") == [
        "main tool_call spawn_agent",
        "main tool_result spawn_agent (error tool_error)",
        "main spawn spawn_agent > count_cells",
    ]
    assert trace["costs"]["tokens"] == 275


def test_all_spawns_may_be_refused(tmp_path: Path, main: Codex) -> None:
    for second, said in enumerate(REFUSALS, 3):
        main.call(second, "spawn_agent", f"c{second}", agent_type="worker", message="Go.")
        main.output(second + 0.5, f"c{second}", said)
    main.says(20, "Alone, then.")
    main.count(20.1, 100, 0, 10, 0)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert set(parents(trace)) == {"user", "main"}
    assert trace["costs"]["tokens"] == 110
    assert len([event for event in trace["events"] if event.get("status") == "error"]) == len(REFUSALS)


def test_agents_without_a_rollout_are_called_by_the_last_name_of_their_path(tmp_path: Path, main: Codex) -> None:
    """`/root` is the lead of the tree, and no folder; the activity names the call as its event."""
    for second, name, path in ((3, "c1", "/root/survey"), (6, "c2", "/root/survey/read_tests")):
        main.call(second, "spawn_agent", name, task_name=path.rpartition("/")[2], message="Go.")
        thread = f"019fbd1{second}-0000-7000-8000-000000000001"
        main.event(second + 0.1, "sub_agent_activity", kind="started", event_id=name, agent_thread_id=thread,
                   agent_path=path)  # fmt: skip
        main.output(second + 1, name, {"task_name": path})
    for second, path in ((10, "/root/survey/read_tests"), (12, "/root/survey"), (14, "/root/unknown_one")):
        words = f"Message Type: FINAL_ANSWER\nTask name: /root\nSender: {path}\nPayload:\nFine.\n"
        main.item(second, "agent_message", author=path, recipient="/root", content=[text(words)])
    main.says(20, "Done.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "spawn", "return", "message") == [
        "main spawn spawn_agent > survey",
        "main spawn spawn_agent > read_tests",
        "read_tests return > main",
        "survey return > main",
        "unknown_one message > main",
    ]
    assert trace["import_report"]["problems"].keys() == {"sub-agent without a transcript"}


def test_an_agent_that_a_script_spawned_is_spawned_where_the_log_first_mentions_it(tmp_path: Path, main: Codex) -> None:
    """Calls that a script makes have no items; its output names nobody."""
    execute(main, 3, "c1", 'await tools.spawn_agent({task_name: "survey", message: "Go."})')
    main.event(
        3.5, "sub_agent_activity", kind="started", event_id="exec-1", agent_thread_id=A, agent_path="/root/survey"
    )
    says(main, 4, "c1", script("completed", 1.0, {"task_name": "/root/survey"}))
    words = "Message Type: FINAL_ANSWER\nTask name: /root\nSender: /root/survey\nPayload:\nFine.\n"
    main.item(9, "agent_message", author="/root/survey", recipient="/root", content=[text(words)])
    main.says(10, "Fine.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "spawn", "return") == ["main spawn > survey", "survey return > main"]
    assert [event["t"] for event in trace["events"] if event["type"] == "spawn"] == [2.5]
    assert trace["reasons"]["costs.tokens"].startswith("sub-agents without a transcript among the files: 1")

    child = Codex(A, 3.4, source=spawned(P, agent_path="/root/survey"))
    child.says(8, "Fine.")
    child.count(8.1, 50, 0, 5, 0)
    child.write(tmp_path)
    trace = trace_of(tmp_path)
    assert of_type(trace, "spawn", "return") == ["main spawn > survey", "survey return > main"]
    assert "sub-agent without a transcript" not in problems(trace)


def test_a_message_that_is_no_final_answer_is_no_return(tmp_path: Path, main: Codex) -> None:
    main.call(3, "spawn_agent", "c1", task_name="survey", message="Go.")
    main.output(4, "c1", {"task_name": "/root/survey"})
    words = "Message Type: MESSAGE\nTask name: /root\nSender: /root/survey\nPayload:\nMessage Type: FINAL_ANSWER\n"
    main.item(5, "agent_message", author="/root/survey", recipient="/root", content=[text(words)])
    main.says(6, "Hm.")
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "return", "message") == ["survey message > main"]


# Searches of the service


@pytest.mark.parametrize("event_at", [None, 4.9, 5.1])
def test_a_completed_search_is_over_when_its_row_is_written(
    tmp_path: Path, main: Codex, event_at: float | None
) -> None:
    if event_at == 4.9:
        main.event(event_at, "web_search_end", call_id="ws_1", query="q")
    main.item(5, "web_search_call", status="completed", action={"query": "q"})
    if event_at == 5.1:
        main.event(event_at, "web_search_end", call_id="ws_1", query="q")
    main.item(6, "reasoning", summary=[])
    main.says(9, "Found.")
    main.count(9.1, 100, 0, 10, 0)
    main.typed(109, "Thanks.")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    times = timing(trace)
    assert (times.unknown, sum(times.works), times.waited) == ([], 8, 100)


@pytest.mark.parametrize(("is_ended", "unknown"), [(True, 0), (False, 1)])
def test_a_search_that_goes_on_ends_with_its_event_or_nobody_knows_when(
    tmp_path: Path, main: Codex, is_ended: bool, unknown: int
) -> None:
    main.item(5, "web_search_call", status="in_progress", action={"query": "q"})
    if is_ended:
        main.event(7, "web_search_end", call_id="ws_1", query="q")
    main.says(9, "Found.")
    main.write(tmp_path)

    assert len(timing(trace_of(tmp_path)).unknown) == unknown


# Copies of one thread


def session(main: Codex) -> Codex:
    """A thread of three answers: 330 tokens."""
    for second in (3, 13, 23):
        main.item(second - 0.5, "reasoning", id=f"rs_{second}", summary=[], encrypted_content="secret")
        main.call(second, "exec_command", f"c{second}", cmd="ls")
        main.output(second + 1, f"c{second}", "Chunk ID: a\nWall time: 0.9 seconds\nOutput:\n")
        main.count(second + 1.1, 100, 20, 10, 2)
    return main


def reordered(row: Any) -> Any:
    return (
        dict(sorted(((name, reordered(member)) for name, member in row.items()), reverse=True))
        if isinstance(row, dict)
        else row
    )


def redacted(row: dict[str, Any]) -> dict[str, Any]:
    payload = {name: member for name, member in row["payload"].items() if name != "encrypted_content"}
    if payload.get("type") == "user_message":
        payload["message"] = "[cut]"
    return {**row, "payload": {**payload, "content": None} if payload.get("type") == "reasoning" else payload}


COPIES = {
    "in another order": reordered,
    "redacted": redacted,
    "in another order and redacted": lambda row: reordered(redacted(row)),
    "under another name of the zone": lambda row: {**row, "timestamp": row["timestamp"].replace("Z", "+00:00")},
}


@pytest.mark.parametrize("form", COPIES)
@pytest.mark.parametrize("length", [3, 9, None])
def test_copies_of_a_thread_count_once_however_they_are_written(
    tmp_path: Path, main: Codex, form: str, length: int | None
) -> None:
    rows = session(main).rows
    write(tmp_path / "0" / "full.jsonl", rows)
    write(tmp_path / "1" / "full.jsonl", [COPIES[form](row) for row in rows[:length]])

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (240, 30, 60, 0, 6)}
    assert trace["costs"]["tokens"] == 330
    assert problems(trace) == {}
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]


def test_three_copies_that_each_lack_rows_make_one_thread(tmp_path: Path, main: Codex) -> None:
    rows = session(main).rows
    write(tmp_path / "0" / "full.jsonl", rows[:6] + rows[7:])
    write(tmp_path / "1" / "full.jsonl", [reordered(row) for row in rows[:12]])
    write(tmp_path / "2" / "full.jsonl", [redacted(row) for row in rows if row["payload"].get("id") != "rs_13"])

    assert trace_of(tmp_path)["costs"]["tokens"] == 330


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        ({"0": (6, b'{"timestamp": "2026-03-01T09:0\n')}, True),
        ({"1": (9, b'{"timestamp": "2026-03-01T09:0\n')}, True),
        ({"0": (6, b"{torn\n"), "1": (9, b"{torn\n")}, True),
        ({"0": (6, b"{torn\n"), "1": (6, b"{torn\n")}, False),
        ({"0": (-1, b'{"timestamp": "2026-03')}, True),
        ({"0": (-1, b"{torn"), "1": (-1, b"{torn")}, False),
    ],
)
def test_a_torn_line_is_no_loss_where_another_copy_has_the_row(
    tmp_path: Path, main: Codex, lines: dict[str, tuple[int, bytes]], is_known: bool
) -> None:
    rows = session(main).rows
    for name in ("0", "1"):
        copy: list[Any] = list(rows)
        if name in lines:
            place, torn = lines[name]
            copy[place] = torn
        write(tmp_path / name / "full.jsonl", copy)

    trace = trace_of(tmp_path)
    assert (trace["costs"]["tokens"] is not None) == is_known
    if is_known:
        assert by_agent(trace) == {"main": (240, 30, 60, 0, 6)}
        assert trace["import_report"]["dropped"] == {}


def test_a_child_whose_copy_is_written_differently_has_its_history_known(tmp_path: Path, main: Codex) -> None:
    rows = session(main).rows
    main.call(31, "spawn_agent", "c9", message="Do it.")
    main.output(32, "c9", {"agent_id": A})
    main.write(tmp_path)
    child = Codex(A, 32, source=spawned(P), forked_from_id=P)
    child.rows += [{**reordered(row), "timestamp": moment(32.01)} for row in rows[1:]]
    child.total = (300, 60, 30, 6)
    child.typed(33, "Do it.")
    child.says(35, "Done.")
    child.count(35.1, 40, 0, 4, 0)
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    own = [event for event in trace["events"] if not event.get("copied_context")]
    assert by_agent({**trace, "events": own})[A] == (40, 4, 0, 0, 0)


# Counters that begin anew


HIDDEN = "unknown: what a counter that begins anew stands at already, at most, spent by answers not in the log"


def counted(main: Codex, second: float, total: tuple[int, ...], last: tuple[int, ...]) -> None:
    """An answer after which the counter stands at a total."""
    main.says(second, "…")
    info = {"total_token_usage": codex_usage(*total), "last_token_usage": codex_usage(*last)}
    main.event(second + 0.1, "token_count", info=info)


@pytest.mark.parametrize(
    ("states", "known", "hidden"),
    [
        ([((40, 0, 4, 0), (40, 0, 4, 0))], 110 + 44, 0),
        ([((70, 0, 9, 0), (40, 0, 4, 0))], 110 + 44, 35),
        ([((70, 0, 9, 0), (40, 0, 4, 0)), ((80, 0, 10, 0), (10, 0, 1, 0))], 110 + 44 + 11, 35),
        ([((70, 0, 9, 0), (40, 0, 4, 0)), ((60, 0, 8, 0), (20, 0, 2, 0))], 110 + 44 + 22, 35 + 46),
        ([((110, 0, 11, 0), (60, 0, 6, 0))], 110 + 66, 55),
        ([((150, 0, 15, 0), (50, 0, 5, 0)), ((120, 0, 12, 0), (20, 0, 2, 0))], 110 + 55 + 22, 0),
        ([((30, 0, 3, 0), (30, 0, 3, 0)), ((120, 0, 12, 0), (20, 0, 2, 0)), ((45, 0, 5, 0), (15, 0, 2, 0))],
         110 + 33 + 22 + 17, 0),
    ],
    ids=["clean", "hidden", "goes on", "twice", "above the old total", "back to a state", "two in turn"],
)  # fmt: skip
def test_a_counter_that_begins_anew_hides_what_no_answer_of_the_log_explains(
    tmp_path: Path, main: Codex, states: list[Any], known: int, hidden: int
) -> None:
    counted(main, 3, (100, 0, 10, 0), (100, 0, 10, 0))
    for second, (total, last) in enumerate(states, 5):
        counted(main, second, total, last)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    entry = trace["import_report"]["token_ledger"].get(HIDDEN, {"tokens": {}})
    assert sum(sum(spent[:4]) for spent in by_agent(trace).values()) == known
    assert sum(entry["tokens"].get(kind, 0) for kind in ("input", "output", "cache_read")) == hidden
    assert trace["costs"]["tokens"] == (None if hidden else known)
    if hidden:
        assert trace["reasons"]["costs.tokens"].startswith("counters that begin anew with tokens of answers that are")
    assert ledger(trace)["counted: difference of two cumulative totals"] == 1 + len(states)


# All of it together


class Story:
    """A session made up at random, with what really happened in it.

    Attributes:
        rows: Its rollout.
        models: How long the model answered, in seconds.
        tools: How long tools ran.
        waited: How long a person was waited for.
        errors: How many calls failed.
        tokens: What its answers spent.
        agents: The agents that it spawned.
        cells: The cells that nobody saw the end of.
    """

    def __init__(self, seed: int) -> None:
        self.rows = Codex(P)
        self.rows.typed(1, "Go.")
        self.models = self.tools = self.waited = 0.0
        self.errors = self.tokens = 0
        self.agents: set[str] = set()
        self.cells: set[str] = set()
        self._chance = random.Random(seed)
        self._time, self._calls = 1.0, 0
        acts = (self._execute, self._execute, self._wait, self._command, self._ask, self._spawn, self._fail_to_spawn)
        for _ in range(self._chance.randint(3, 14)):
            self.models += self._pass(1, 20)
            self._calls += 1
            self._chance.choice(acts)(f"c{self._calls}")
            self._count()
        self.models += self._pass(1, 20)
        self.rows.says(self._time, "Done.")
        self._count()

    def _pass(self, least: float, most: float) -> float:
        seconds = round(self._chance.uniform(least, most), 1)
        self._time = round(self._time + seconds, 1)
        return seconds

    def _count(self) -> None:
        read, written = self._chance.randint(100, 5000), self._chance.randint(5, 300)
        self.rows.count(self._time, read, self._chance.randint(0, read), written, 0, rows=self._chance.randint(1, 2))
        self.tokens += read + written

    def _execute(self, name: str) -> None:
        execute(self.rows, self._time, name)
        self._end_script(name, name)

    def _wait(self, name: str) -> None:
        if not self.cells:
            return self._execute(name)
        cell = self._chance.choice(sorted(self.cells))
        self.cells.remove(cell)
        self.rows.call(self._time, "wait", name, cell_id=cell)
        return self._end_script(name, cell)

    def _end_script(self, name: str, cell: str) -> None:
        seconds, code = self._pass(0.1, 60), self._chance.choice([0, 0, 1, 127, None])
        self.tools += seconds
        output = script("completed", seconds, result(code, seconds / 2))
        if self._chance.random() < 0.4:
            output = script(f"running with cell ID {cell}", seconds)
            self.cells.add(cell)
        else:
            self.errors += bool(code)
        self.rows.item(self._time, "custom_tool_call_output", call_id=name, output=output)

    def _command(self, name: str) -> None:
        self.rows.call(self._time, "exec_command", name, cmd="make")
        seconds, code = self._pass(0.1, 400), self._chance.choice([0, 0, 3])
        self.tools, self.errors = self.tools + seconds, self.errors + bool(code)
        self.rows.output(self._time, name, command(seconds, code))

    def _ask(self, name: str) -> None:
        self.rows.call(self._time, "exec_command", name, cmd="make", sandbox_permissions="require_escalated")
        waited, seconds = self._pass(1.5, 900), self._pass(0.1, 60)
        self.tools, self.waited = self.tools + seconds, self.waited + waited
        self.rows.output(self._time, name, command(seconds))

    def _spawn(self, name: str) -> None:
        agent = f"helper_{name}"
        self.rows.call(self._time, "spawn_agent", name, task_name=agent, message=name)
        self.rows.event(self._time, "sub_agent_activity", event_id=name, kind="started", agent_thread_id=f"t-{name}",
                        agent_path=f"/root/{agent}")  # fmt: skip
        self.rows.output(self._time, name, {"task_name": f"/root/{agent}"})
        self.agents.add(agent)

    def _fail_to_spawn(self, name: str) -> None:
        self.rows.call(self._time, "spawn_agent", name, task_name="helper", message="Go.")
        self.rows.output(self._time, name, self._chance.choice(REFUSALS))
        self.errors += 1

    def write(self, folder: Path) -> None:
        """Write the rollout, with a copy of its beginning in another form, and two of its rows on one line."""
        path = self.rows.write(folder)
        copied = self.rows.rows[: self._chance.randint(1, len(self.rows.rows))]
        form = COPIES[self._chance.choice(sorted(COPIES))]
        write(folder / "copy" / "full.jsonl", [form(row) for row in copied])
        lines = path.read_text("utf-8").splitlines(keepends=True)
        joined = self._chance.randrange(len(lines) - 1)
        lines[joined] = lines[joined].rstrip("\n")
        path.write_text("".join(lines), "utf-8")


@pytest.mark.parametrize("seed", range(tries(200, 25)))
def test_a_session_is_told_as_it_was(tmp_path: Path, seed: int) -> None:
    story = Story(seed)
    story.write(tmp_path)

    diagnosis = diagnose(checked(trace_of(tmp_path)))
    view = diagnosis.view
    sure, events = view.timing_if_waiting, view.timing.graph.events
    by_kind = {True: 0.0, False: 0.0}
    for number, event in enumerate(events):
        if event.agent == "main":
            by_kind[event.type == "tool_call"] += sure.works[number]
    assert by_kind[False] == pytest.approx(story.models, abs=0.01)
    assert by_kind[True] == pytest.approx(story.tools, abs=0.01)
    assert view.timing.waited == pytest.approx(story.waited, abs=0.01)
    assert (diagnosis.summary.errors, diagnosis.tokens.known) == (story.errors, story.tokens)
    assert {one.agent for one in diagnosis.team} == {"main", *story.agents}
    assert diagnosis.tokens.is_lower_bound == bool(story.agents)
    assert sorted(call.cause for call in view.open_calls) == ["unfinished"] * len(story.cells)


class Team:
    """A tree of threads made up at random, with what really happened in it.

    Attributes:
        threads: The rollouts that there are.
        parents: Who spawned each agent.
        tokens: What the answers of each agent spent that has a rollout.
        returns: How many agents handed in their result.
    """

    def __init__(self, seed: int) -> None:
        self.threads: list[Codex] = []
        self.parents = {"user": "", "main": ""}
        self.tokens: dict[str, int] = {}
        self.returns = 0
        self._chance = random.Random(seed)
        self._run("/root", None, 0)

    def _run(self, path: str, parent: Codex | None, second: float) -> float:
        """Let an agent work, and return when it was done."""
        name = "main" if parent is None else path.rpartition("/")[2]
        thread = self._begin(path, parent, second)
        self.tokens[name] = 0
        second += 1
        for step in range(self._chance.randint(1, 4)):
            second += self._chance.randint(2, 9)
            if path.count("/") < 4 and self._chance.random() < 0.5:
                second = self._spawn(thread, path, name, second)
            else:
                execute(thread, second, f"{name}{step}")
                second += 2
                thread.item(second, "custom_tool_call_output", call_id=f"{name}{step}", output=script("completed", 2.0))
                self._count(thread, name, second)
        thread.says(second + 3, "Done.")
        self._count(thread, name, second + 3)
        if parent is not None and name not in self.parents.values() and self._chance.random() < 0.2:
            del self.tokens[name]  # nobody kept its rollout
        else:
            self.threads.append(thread)
        return second + 3

    def _begin(self, path: str, parent: Codex | None, second: float) -> Codex:
        number = len(self.parents)
        thread = Codex(f"019fbf{number:02}-0000-7000-8000-{number:012}", second)
        if parent is None:
            thread.typed(second + 0.5, "Go.")
            return thread
        above = path.rpartition("/")[0]
        thread.rows[0]["payload"]["source"] = spawned(parent.thread, agent_path=path)
        if self._chance.random() < 0.3:
            thread.rows[0]["payload"]["forked_from_id"] = parent.thread
            thread.rows += [{**row, "timestamp": moment(second + 0.01)} for row in parent.rows[1:]]
            thread.total = parent.total
        task = f"Message Type: NEW_TASK\nTask name: {path}\nSender: {above}\nPayload:\nDo {path}.\n"
        thread.item(second + 0.5, "agent_message", author=above, recipient=path, content=[text(task)])
        return thread

    def _spawn(self, thread: Codex, path: str, name: str, second: float) -> float:
        child = f"agent{len(self.parents)}"
        number = len(self.parents)
        self.parents[child] = name
        thread.call(second, "spawn_agent", child, task_name=child, message=f"Do {path}/{child}.")
        thread.event(second + 0.1, "sub_agent_activity", event_id=child, kind="started", agent_path=f"{path}/{child}",
                     agent_thread_id=f"019fbf{number + 1:02}-0000-7000-8000-{number + 1:012}")  # fmt: skip
        thread.output(second + 0.2, child, {"task_name": f"{path}/{child}"})
        self._count(thread, name, second + 0.2)
        second = self._run(f"{path}/{child}", thread, second + 0.3) + 1
        words = f"Message Type: FINAL_ANSWER\nTask name: {path}\nSender: {path}/{child}\nPayload:\nDone.\n"
        thread.item(second, "agent_message", author=f"{path}/{child}", recipient=path, content=[text(words)])
        self.returns += 1
        return second

    def _count(self, thread: Codex, name: str, second: float) -> None:
        read, written = self._chance.randint(100, 900), self._chance.randint(5, 50)
        thread.count(second + 0.05, read, self._chance.randint(0, 90), written, 0, rows=self._chance.randint(1, 2))
        self.tokens[name] += read + written


@pytest.mark.parametrize("seed", range(tries(200, 25)))
def test_a_team_is_told_as_it_was(tmp_path: Path, seed: int) -> None:
    """Agents below agents, some without a rollout, some with a copy of the history above them."""
    team = Team(seed)
    for thread in team.threads:
        thread.write(tmp_path)

    trace = trace_of(tmp_path)
    own = [event for event in trace["events"] if not event.get("copied_context")]
    spent = {agent: sum(tokens[:4]) for agent, tokens in by_agent({**trace, "events": own}).items()}
    assert (parents(trace), spent) == (team.parents, team.tokens)
    assert len(of_type(trace, "return")) == team.returns
    assert (trace["costs"]["tokens"] is None) == (len(team.tokens) < len(team.parents) - 1)
