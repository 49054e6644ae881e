"""What Claude Code sessions say of time: background commands, stated turns, time limits, and agents seen in progress."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.open_calls import Cause
from tests.conftest import run_corpus
from tests.trace.conversationlogs import (
    Claude,
    by_agent,
    claude_usage,
    ledger,
    moment,
    of_type,
    parents,
    problems,
    spawn,
    text,
    trace_of,
    use,
)
from tests.trace.traces import trace

_NUMBERS: Iterator[int] = count()


@pytest.fixture
def main() -> Claude:
    log = Claude()
    log.say(0, "Go.")
    return log


def view_of(folder: Path, *logs: Claude) -> TraceView:
    for log in logs:
        log.write(folder)
    return TraceView(trace(trace_of(folder)))


def worked(view: TraceView) -> tuple[float, float]:
    """The least and the most that the agents worked."""
    return round(sum(view.timing_if_waiting.works), 3), round(sum(view.timing.works), 3)


def one_session(folder: Path) -> dict[str, Any]:
    """What the screen says in JSON of the one session of a folder."""
    (session,) = json.loads(run_corpus("trace", "doctor", str(folder), "--format", "json").stdout)["sessions"]
    return session


def causes(view: TraceView) -> list[tuple[str, str]]:
    return [(view.trace.events[call.event].tool, call.cause.value) for call in view.open_calls]


def status_of(view: TraceView, tool: str) -> list[str]:
    return [event.status.value for event in view.trace.events if event.tool == tool and event.type == "tool_call"]


# Commands in the background


def launch(log: Claude, second: float, name: str, task: str) -> None:
    """A command that begins to run in the background, which takes 1 s."""
    log.answer(second, f"m_{name}", use(name, "Bash", command="make", run_in_background=True), stop="tool_use")
    details = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": task}
    log.result(second + 1, name, f"Command running in background with ID: {task}. You will be notified.", details)


def notice(task: str, status: str = "completed", call: str = "", event: str = "") -> str:
    parts = [f"<task-id>{task}</task-id>"]
    parts += [f"<{name}>{value}</{name}>" for name, value in (("tool-use-id", call), ("status", status)) if value]
    parts += ["<summary>Something</summary>"] + ([f"<event>{event}</event>"] if event else [])
    return "\n".join(["<task-notification>", *parts, "</task-notification>"])


def test_a_command_in_the_background_works_until_its_notification(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(10, "m1", text("It runs."))
    main.say(1800, notice("b1", call="u1"))
    main.answer(1806, "m2", text("Done."))

    view = view_of(tmp_path, main)

    assert worked(view) == (4 + 1796 + 5 + 6, 4 + 1796 + 5 + 6)
    assert (view.timing.elapsed, view.timing.waited, causes(view)) == (1806, 0, [])
    assert status_of(view, "Bash") == ["ok"]


def test_the_queue_of_the_program_knows_the_end_before_the_agent_is_told(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(10, "m1", use("u2", "Bash", command="make test"), stop="tool_use")
    main.row("queue-operation", 40, operation="enqueue", content=notice("b1", "failed"))
    main.result(100, "u2", "ok")
    queued = {"type": "queued_command", "prompt": notice("b1", "failed"), "commandMode": "task-notification"}
    main.row("attachment", 101, attachment=queued)
    main.answer(106, "m2", text("The first failed."))

    view = view_of(tmp_path, main)

    assert worked(view)[1] == 4 + 36 + 5 + 90 + 5
    assert status_of(view, "Bash") == ["error", "unknown"]  # what is not in the background says it in its result


def test_several_tasks_end_each_by_its_own_name_in_any_order(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    launch(main, 8, "u2", "b2")
    main.answer(12, "m1", text("Both run."))
    main.say(100, notice("b2", "killed"))
    main.answer(104, "m2", text("One was killed."))
    main.say(300, notice("b1"))
    main.answer(305, "m3", text("Done."))

    view = view_of(tmp_path, main)

    works = [view.timing.works[n] for n, event in enumerate(view.trace.events) if event.tool == "Bash"]
    assert [work for work in works if work] == [296, 92]
    assert status_of(view, "Bash") == ["ok", "cancelled"]


def test_a_person_who_writes_meanwhile_does_not_stop_the_clock(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(10, "m1", text("It runs."))
    main.say(500, "How far is it?")
    main.answer(505, "m2", text("Not yet."))
    main.say(1000, notice("b1"))
    main.answer(1004, "m3", text("Done."))

    view = view_of(tmp_path, main)

    assert (view.timing.elapsed, view.timing.waited) == (1004, 0)
    assert worked(view) == (4 + 996 + 5 + 5 + 4, 4 + 996 + 5 + 5 + 4)


def test_a_task_whose_end_is_not_in_the_log_has_a_range(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(10, "m1", text("It runs."))
    main.say(500, "Next.")
    main.answer(507, "m2", text("Yes."))

    view = view_of(tmp_path, main)
    screen = run_corpus("trace", "doctor", str(tmp_path)).stdout

    assert worked(view) == (4 + 1 + 5 + 7, 4 + 13 + 5 + 7)  # the person was waited for, from 10 to 500
    assert causes(view) == [("Bash", "unfinished")]
    assert view.timing.waited == 490
    said = "Bash of main 1 s to 13 s, or 8 min 23 s if it went on during waits for people."
    assert f"1 call whose end the log does not show: {said}" in " ".join(screen.split())
    assert one_session(tmp_path)["open_calls"][0]["in_waits"] == 490


def test_a_person_is_not_waited_for_while_a_task_is_known_to_go_on(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(10, "m1", text("It runs."))
    main.say(500, "How is it?")
    main.answer(503, "m2", use("u2", "BashOutput", bash_id="b1"), stop="tool_use")
    main.result(503, "u2", "<status>running</status>\n<stdout></stdout>")
    main.answer(507, "m3", text("It runs."))
    main.say(900, "Next.")
    main.answer(903, "m4", text("Yes."))

    view = view_of(tmp_path, main)

    assert (view.timing.waited, view.timing.elapsed) == (393, 510)
    assert worked(view) == (4 + 499 + 5 + 3 + 4 + 3, 4 + 506 + 5 + 3 + 4 + 3)


def test_events_of_a_monitor_are_signs_that_it_goes_on(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", use("u1", "Monitor", command="tail -f log"), stop="tool_use")
    main.result(5, "u1", "Monitor started (task k7, persistent). You will be notified.", {"taskId": "k7"})
    main.answer(8, "m2", text("I watch."))
    main.say(100, notice("k7", "", event="stage 1"))
    main.answer(104, "m3", text("Stage 1."))
    unfinished = view_of(tmp_path / "unfinished", main)
    main.say(200, notice("k7", call="u1"))
    main.answer(206, "m4", text("Over."))
    finished = view_of(tmp_path / "finished", main)

    assert worked(unfinished) == (4 + 96 + 3 + 4, 4 + 100 + 3 + 4)
    assert worked(finished) == (4 + 196 + 3 + 4 + 6, 4 + 196 + 3 + 4 + 6)


@pytest.mark.parametrize(
    ("tool", "given", "said", "status"),
    [
        ("BashOutput", {"bash_id": "b1"}, "<status>completed</status>\n<exit_code>0</exit_code>", "ok"),
        ("TaskOutput", {"task_id": "b1"}, "<task_id>b1</task_id>\n<status>failed</status>", "error"),
        ("KillShell", {"shell_id": "b1"}, '{"message": "Successfully killed shell: b1"}', "cancelled"),
        ("TaskStop", {"task_id": "b1"}, '{"message": "Successfully stopped task: b1"}', "cancelled"),
    ],
)
def test_the_result_of_a_call_about_a_task_tells_its_end(
    tmp_path: Path, main: Claude, tool: str, given: dict[str, str], said: str, status: str
) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(20, "m1", use("u2", "BashOutput", bash_id="b1"), stop="tool_use")
    main.result(21, "u2", "<status>running</status>\n<stdout></stdout>")
    main.answer(30, "m2", use("u3", tool, **given), stop="tool_use")
    main.result(31, "u3", said)
    main.answer(35, "m3", text("So be it."))

    view = view_of(tmp_path, main)

    call = next(n for n, event in enumerate(view.trace.events) if event.tool == "Bash")
    assert (view.timing.works[call], causes(view)) == (27, [])
    assert status_of(view, "Bash") == [status]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Command running in background with ID: bb6abe4",
            "<bash-notification>\n<shell-id>bb6abe4</shell-id>\n<status>completed</status>\n</bash-notification>",
        ),
        ("Command was manually backgrounded by user with ID: bb6abe4", notice("bb6abe4")),
        ("Command took more than 15s and was moved to the background with ID: bb6abe4.", notice("bb6abe4")),
    ],
    ids=["earlier version", "by hand", "by itself"],
)
def test_other_words_of_other_versions_mean_the_same(tmp_path: Path, main: Claude, said: str, told: str) -> None:
    main.answer(4, "m1", use("u1", "Bash", command="make"), stop="tool_use")
    main.result(5, "u1", said)
    main.answer(10, "m2", text("It runs."))
    main.say(60, told)
    main.answer(65, "m3", text("Done."))

    assert worked(view_of(tmp_path, main)) == (4 + 56 + 5 + 5, 4 + 56 + 5 + 5)


def test_one_row_may_tell_of_several_tasks(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    launch(main, 8, "u2", "b2")
    main.answer(12, "m1", text("Both run."))
    main.say(100, notice("b1") + "\n" + notice("b2", "failed"))
    main.answer(104, "m2", text("Over."))

    view = view_of(tmp_path, main)

    assert status_of(view, "Bash") == ["ok", "error"]
    assert worked(view) == (4 + 96 + 3 + 92 + 3 + 4, 4 + 96 + 3 + 92 + 3 + 4)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_the_order_of_rows_changes_nothing(tmp_path: Path, main: Claude, order: slice) -> None:
    main.answer(3, "m0", text("I build."), stop="tool_use")
    main.answer(4, "m0", use("u0", "Bash", command="make"), stop="tool_use")
    main.result(305, "u0", "Command timed out after 5m 0s", is_error=True)
    launch(main, 310, "u1", "b1")
    main.answer(320, "m1", text("It runs."))
    main.say(700, notice("b1"))
    main.answer(706, "m2", text("Done."))
    main.rows = main.rows[order]

    view = view_of(tmp_path, main)

    assert worked(view) == (4 + 301 + 5 + 390 + 9 + 6, 4 + 301 + 5 + 390 + 9 + 6)
    assert causes(view) == []


def test_a_command_that_only_prints_such_words_is_none_in_the_background(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", use("u1", "Bash", command="cat notes"), stop="tool_use")
    main.result(5, "u1", "Command running in background with ID: b1", {"stdout": "...", "stderr": ""})
    main.answer(10, "m2", text("Noted."))

    view = view_of(tmp_path, main)

    assert not any(event.background for event in view.trace.events)


# Turns that state their duration


def end_turn(log: Claude, second: float, seconds: float) -> None:
    log.row("system", second, subtype="turn_duration", durationMs=round(seconds * 1000))


def bash(log: Claude, second: float, name: str, seconds: float) -> None:
    log.answer(second, f"m_{name}", use(name, "Bash", command=name), stop="tool_use")
    log.result(second + seconds, name, "ok")


def test_a_turn_that_states_as_much_as_it_took_worked(tmp_path: Path, main: Claude) -> None:
    bash(main, 4, "u1", 600)
    main.answer(610, "m1", text("Done."))
    end_turn(main, 610.3, 610.3)

    view = view_of(tmp_path, main)

    assert (worked(view), causes(view), view.timing.waited) == ((610, 610), [], 0)


def test_a_turn_that_states_less_waited_for_a_person(tmp_path: Path, main: Claude) -> None:
    bash(main, 4, "u1", 600)
    main.answer(610, "m1", text("Done."))
    end_turn(main, 610.3, 20.3)

    view = view_of(tmp_path, main)
    screen = " ".join(run_corpus("trace", "doctor", str(tmp_path)).stdout.split())

    assert (worked(view), causes(view)) == ((20, 20), [])
    assert (view.timing.elapsed, view.timing.waited) == (pytest.approx(20), pytest.approx(590))
    assert "20 s elapsed, not counting 9 min 50 s waiting for people" in screen
    assert (
        "9 min 50 s of waits for people (time between the rows less the stated duration of 1 turn): "
        "Bash of main 9 min 50 s." in screen
    )


def test_only_the_turns_that_state_it_are_settled(tmp_path: Path, main: Claude) -> None:
    bash(main, 4, "u1", 600)
    main.answer(610, "m1", text("Done."))
    main.say(700, "Again.")
    bash(main, 705, "u2", 600)
    main.answer(1310, "m2", text("Done."))
    end_turn(main, 1310.2, 30.2)

    view = view_of(tmp_path, main)

    assert (worked(view), causes(view)) == ((40, 640), [("Bash", "long")])
    assert view.timing.waited == pytest.approx(90 + 580)


def test_of_two_calls_of_a_turn_the_log_says_only_how_long_both_waited(tmp_path: Path, main: Claude) -> None:
    bash(main, 4, "u1", 600)
    bash(main, 608, "u2", 600)
    main.answer(1210, "m1", text("Done."))
    end_turn(main, 1210.2, 610.2)

    view = view_of(tmp_path, main)
    screen = " ".join(run_corpus("trace", "doctor", str(tmp_path)).stdout.split())

    assert (worked(view), causes(view)) == ((610, 610), [])
    assert "Bash of main 0 s to 10 min, Bash of main 0 s to 10 min." in screen


@pytest.mark.parametrize("kind", ["notification", "queued prompt", "interrupted before", "hook", "question"])
def test_a_turn_begins_with_what_began_it(tmp_path: Path, main: Claude, kind: str) -> None:
    """Each turn worked for 20 s, and waited 580 s in its Bash."""
    begin, known = 0.0, 0.0
    if kind == "notification":
        launch(main, 4, "u0", "b1")
        main.answer(8, "m0", text("It runs."))
        end_turn(main, 8.1, 8.1)
        begin = 100
        main.say(begin, notice("b1"))
    if kind == "interrupted before":
        main.answer(5, "m0", use("u0", "Bash", command="rm"), stop="tool_use")
        main.result(50, "u0", "The user doesn't want to proceed with this tool use.", is_error=True)
        main.say(50.1, "[Request interrupted by user for tool use]")
        begin = 900
        main.say(begin, "Do this instead.")
    if kind == "question":
        main.answer(4, "m0", use("u0", "AskUserQuestion", questions=[]), stop="tool_use")
        main.result(304, "u0", "Yes.")
        known = 300
    main.answer(begin + known + 8, "m1", use("u1", "Bash", command="make"), stop="tool_use")
    if kind == "queued prompt":
        queued = {"type": "queued_command", "prompt": "Also this.", "commandMode": "prompt"}
        main.row("attachment", begin + 100, attachment=queued)
    main.result(begin + known + 594, "u1", "ok")
    main.answer(begin + known + 597, "m2", text("Done."))
    if kind == "hook":
        main.say(begin + known + 597.1, "Stop hook feedback:\nNot yet.", isMeta=True)
    main.answer(begin + known + 600, "m3", text("Really done."))
    end_turn(main, begin + known + 600.1, 20.1)

    view = view_of(tmp_path, main)

    (wait,) = view.timing.stated.waits
    assert wait.seconds == pytest.approx(580)
    assert causes(view) == []


def test_a_turn_that_its_rows_do_not_span_settles_nothing(tmp_path: Path, main: Claude) -> None:
    bash(main, 4, "u1", 600)
    main.answer(610, "m1", text("Done."))
    end_turn(main, 610.2, 4000)

    document = trace_of(main.write(tmp_path))

    assert "turns" not in document
    assert problems(document) == {"turn that states a longer duration than its rows span: it settles nothing": 1}
    assert causes(TraceView(trace(document))) == [("Bash", "long")]


def test_a_turn_is_taken_once_where_a_session_goes_on_in_a_second_file(tmp_path: Path, main: Claude) -> None:
    bash(main, 4, "u1", 600)
    main.answer(610, "m1", text("Done."))
    end_turn(main, 610.2, 20.2)
    main.rows.append(dict(main.rows[-1]))

    assert len(trace_of(main.write(tmp_path))["turns"]) == 1


@pytest.mark.parametrize("has_transcript", [True, False])
def test_a_call_of_a_sub_agent_may_be_what_waited(tmp_path: Path, main: Claude, *, has_transcript: bool) -> None:
    main.answer(4, "m1", spawn("s1", "Do it."), stop="tool_use")
    details = {"status": "completed", "agentId": "abc"}
    main.result(1220, "s1", [text("Done."), text("agentId: abc")], details)
    main.answer(1225, "m2", text("Done."))
    end_turn(main, 1225.2, 35.2)
    below = Claude(agent="abc")
    below.say(4.5, "Do it.")
    bash(below, 8, "u1", 1200)
    below.answer(1218, "x2", text("Done."))

    view = view_of(tmp_path, *((main, below) if has_transcript else (main,)))

    assert (view.timing.elapsed, view.timing.waited) == (pytest.approx(35), pytest.approx(1190))
    assert worked(view)[1] <= 35


# Time limits


@pytest.mark.parametrize(
    ("seconds", "worked_s", "said"),
    [
        (301.4, 301.4, "Exit code 143\nCommand timed out after 5m 0s"),
        (121, 121, "Command timed out after 2m 0.0s"),
        (3721, 3721, "Command timed out after 1h 2m 0s"),
        (900, 300, "Exit code 143\nCommand timed out after 5m 0s\npartial output"),
    ],
)
def test_a_command_that_was_stopped_at_its_limit_worked_until_then(
    tmp_path: Path, main: Claude, seconds: float, worked_s: float, said: str
) -> None:
    main.answer(4, "m1", use("u1", "Bash", command="make"), stop="tool_use")
    main.result(4 + seconds, "u1", said, is_error=True)
    main.answer(10 + seconds, "m2", text("Too slow."))

    view = view_of(tmp_path, main)

    assert causes(view) == []
    assert worked(view) == (pytest.approx(4 + worked_s + 6), pytest.approx(4 + worked_s + 6))


@pytest.mark.parametrize(("begin", "ran"), [(4, 600), (5, 600), (590, 14)])
def test_progress_says_since_when_a_command_ran(tmp_path: Path, main: Claude, begin: int, ran: float) -> None:
    main.answer(4, "m1", use("u1", "Bash", command="make"), stop="tool_use")
    for seconds in (3, 4, 9):
        data = {"type": "bash_progress", "output": "", "elapsedTimeSeconds": seconds, "totalLines": 0}
        main.row("progress", begin + seconds, data=data, toolUseID=f"bash-progress-{seconds}", parentToolUseID="u1")
    main.result(604, "u1", "ok")
    main.answer(610, "m2", text("Done."))

    view = view_of(tmp_path, main)

    assert causes(view) == []
    assert worked(view) == (4 + ran + 6, 4 + ran + 6)


# Counts that were noted before the model had written


def test_an_answer_with_a_placeholder_is_not_judged_by_it(tmp_path: Path, main: Claude) -> None:
    main.answer(212, "m1", text("A long plan."), usage=(1, 8, 100, 10), stop=None)

    assert causes(view_of(tmp_path, main)) == []


@pytest.mark.parametrize("is_thought", [True, False])
def test_a_count_that_its_text_contradicts_is_a_placeholder(tmp_path: Path, main: Claude, *, is_thought: bool) -> None:
    words = "The plan is this. " * 600
    block = {"type": "thinking", "thinking": words, "signature": "x"} if is_thought else text(words)
    main.answer(212, "m1", block, usage=(1, 8, 100, 10))

    view = view_of(tmp_path, main)

    assert causes(view) == []
    assert [str(event.token_basis) for event in view.trace.events if event.tokens] == ["placeholder"]


def test_who_asks_for_the_output_of_a_task_waits_for_its_work(tmp_path: Path, main: Claude) -> None:
    launch(main, 4, "u1", "b1")
    main.answer(10, "m1", use("u2", "TaskOutput", task_id="b1", block=True), stop="tool_use")
    main.result(610, "u2", "<task_id>b1</task_id>\n<status>completed</status>")
    main.answer(615, "m2", text("Done."))

    view = view_of(tmp_path, main)

    assert worked(view) == (4 + 606 + 5 + 5, 4 + 606 + 5 + 5)
    assert causes(view) == []


def test_an_answer_that_took_longer_than_any_is_open(tmp_path: Path, main: Claude) -> None:
    main.answer(4000, "m1", text("A long plan."), usage=(1, 8, 100, 10), stop=None)

    (call,) = view_of(tmp_path, main).open_calls
    assert call.cause is Cause.ANSWER


# Sub-agents of which only progress is known


def relay(log: Claude, second: float, agent: str, call: str, kind: str, /, **message: Any) -> None:
    row = {"type": kind, "uuid": f"relayed-{next(_NUMBERS):028}", "timestamp": moment(second), "message": message}
    if kind == "assistant":
        row["requestId"] = f"req_{message['id']}"
    data = {"type": "agent_progress", "agentId": agent, "prompt": "", "message": row, "normalizedMessages": []}
    log.row("progress", second + 0.01, data=data, parentToolUseID=call)


def relay_answer(log: Claude, second: float, agent: str, call: str, name: str, *blocks: Any, output: int = 2) -> None:
    usage = claude_usage(3, output, 100, 10)
    relay(log, second, agent, call, "assistant", id=name, role="assistant", model="claude-small", content=list(blocks),
          stop_reason=None, usage=usage)  # fmt: skip


def relay_user(log: Claude, second: float, agent: str, call: str, content: Any) -> None:
    relay(log, second, agent, call, "user", role="user", content=content)


def answered(name: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": name, "content": "found"}]


def come_back(log: Claude, second: float, call: str, agent: str, usage: tuple[int, int, int, int] | None) -> None:
    details: dict[str, Any] = {"status": "completed", "agentId": agent}
    if usage is not None:
        details["usage"] = claude_usage(*usage)
    log.result(second, call, [text("Done."), text(f"agentId: {agent}")], details)


def test_the_answers_usage_and_times_of_progress_are_those_of_the_sub_agent(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", spawn("s1", "One.", "Task"), spawn("s2", "Two.", "Task"), stop="tool_use")
    relay_user(main, 4.1, "a1", "s1", "One.")
    relay_user(main, 4.2, "a2", "s2", "Two.")
    relay_answer(main, 6, "a1", "s1", "x1", use("g1", "Grep"))
    relay_answer(main, 6.5, "a1", "s1", "x1", use("g2", "Read"))
    relay_answer(main, 7, "a2", "s2", "y1", use("g3", "Bash"))
    relay_user(main, 8, "a1", "s1", answered("g1"))
    relay_user(main, 8.5, "a1", "s1", answered("g2"))
    relay_user(main, 9, "a2", "s2", answered("g3"))
    come_back(main, 12, "s1", "a1", (0, 1, 120, 5))
    come_back(main, 13, "s2", "a2", (0, 1, 130, 6))
    main.answer(16, "m2", text("Done."))

    document = trace_of(main.write(tmp_path))
    view = TraceView(trace(document))

    assert by_agent(document) == {
        "a1": (3, 2 + 1, 100 + 120, 10 + 5, 0),
        "a2": (3, 2 + 1, 100 + 130, 10 + 6, 0),
        "main": (2, 2, 0, 0, 0),
    }
    assert ledger(document)["counted: usage of a sub-agent's last answer, which only its result states"] == 2
    assert problems(document) == {}
    assert worked(view)[0] == pytest.approx(4 + (2.4 + 2 + 2 + 3.5) + (2.8 + 2 + 4) + 3)
    assert [event["t"] for event in document["events"] if event["type"] == "return"] == [12, 13]


def test_agents_below_agents_are_found_in_progress_too(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", spawn("s1", "One.", "Task"), stop="tool_use")
    relay_user(main, 4.1, "a1", "s1", "One.")
    relay_answer(main, 6, "a1", "s1", "x1", spawn("n1", "Below.", "Task"))
    relay_user(main, 6.1, "a2", "n1", "Below.")
    relay_answer(main, 8, "a2", "n1", "y1", use("g1", "Read"))
    relay_user(main, 8.5, "a2", "n1", answered("g1"))
    result = {"type": "tool_result", "tool_use_id": "n1", "content": [text("Done."), text("agentId: a2")]}
    relay_user(main, 10, "a1", "s1", [result])
    come_back(main, 14, "s1", "a1", (0, 1, 120, 5))
    main.answer(16, "m2", text("Done."))

    document = trace_of(main.write(tmp_path))

    assert parents(document) == {"user": "", "main": "", "a1": "main", "a2": "a1"}
    assert of_type(document, "return") == ["a2 return > a1", "a1 return > main"]
    assert document["reasons"]["costs.tokens"] == "answers without usage: 1"  # the last of a2


def test_a_transcript_goes_before_progress(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", spawn("s1", "One.", "Task"), stop="tool_use")
    relay_user(main, 4.1, "a1", "s1", "One.")
    relay_answer(main, 6, "a1", "s1", "x1", use("g1", "Grep"))
    relay_user(main, 8, "a1", "s1", answered("g1"))
    come_back(main, 14, "s1", "a1", (3, 9, 100, 10))
    main.answer(16, "m2", text("Done."))
    below = Claude(agent="a1")
    below.say(4.1, "One.")
    below.answer(6, "x1", use("g1", "Grep"), usage=(3, 2, 100, 10), stop=None)
    below.result(8, "g1", "found")
    below.answer(13, "x2", text("Done."), usage=(3, 2, 100, 10), stop=None)
    below.write(tmp_path)
    main.write(tmp_path)

    assert by_agent(trace_of(tmp_path))["a1"] == (6, 2 + 9, 200, 20, 0)


def test_progress_that_shows_only_the_task_is_no_transcript(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", spawn("s1", "One.", "Task"), stop="tool_use")
    relay_user(main, 4.1, "a1", "s1", "One.")
    come_back(main, 14, "s1", "a1", (0, 1, 120, 5))
    main.answer(16, "m2", text("Done."))

    assert problems(trace_of(main.write(tmp_path))) == {"sub-agent without a transcript": 1}


def test_the_last_answer_of_a_result_counts_once_in_copies_of_a_session(tmp_path: Path, main: Claude) -> None:
    call = "toolu_01MadeUpForThisTest0001"
    main.answer(4, "m1", spawn(call, "One.", "Task"), stop="tool_use")
    relay_user(main, 4.1, "a1", call, "One.")
    relay_answer(main, 6, "a1", call, "x1", use("g1", "Grep"))
    relay_user(main, 8, "a1", call, answered("g1"))
    come_back(main, 14, call, "a1", (0, 1, 120, 5))
    main.answer(16, "m2", text("Done."))
    for name in ("p0", "p1"):
        main.write(tmp_path / name)

    all_ = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--format", "json").stdout)["all"]

    assert all_["tokens"]["known"] == 2 + 2 + (3 + 2 + 100 + 10) + (1 + 120 + 5)
    assert all_["answers_without_ids"] == 0


def test_an_agent_that_was_interrupted_has_no_last_answer(tmp_path: Path, main: Claude) -> None:
    main.answer(4, "m1", spawn("s1", "One.", "Task"), stop="tool_use")
    relay_user(main, 4.1, "a1", "s1", "One.")
    relay_answer(main, 6, "a1", "s1", "x1", use("g1", "Grep"))
    main.say(20, "[Request interrupted by user]")

    document = trace_of(main.write(tmp_path))

    assert by_agent(document)["a1"] == (3, 2, 100, 10, 0)
    assert of_type(document, "return") == []
