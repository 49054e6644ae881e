"""Entire: compact transcripts that leave out caches, times of results and sub-agents, and that checkpoints repeat."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_corpus
from tests.trace.conversationlogs import (
    LOGS,
    Claude,
    moment,
    of_type,
    parents,
    text,
    tokens,
    told,
    trace_of,
    traces,
    write,
)

FIXTURES = sorted((LOGS / "entire").iterdir())
CHECKPOINT = LOGS / "entire" / "checkpoint" / "0" / "transcript.jsonl"

Line = dict[str, Any]


def line(kind: str, second: float | None, *content: Line, agent: str = "claude-code", **more: Any) -> Line:
    when = {} if second is None else {"ts": moment(second)}
    return {"v": 1, "agent": agent, "cli_version": "0.8.42", "type": kind, **when, **more, "content": list(content)}


def typed(second: float | None = 0, **more: Any) -> Line:
    return line("user", second, {"text": "Go."}, **more)


def used(name: str, tool: str, output: Any = None, status: str = "success", **given: Any) -> Line:
    result = {} if output is None else {"result": {"output": output, "status": status}}
    return {"type": "tool_use", "id": name, "name": tool, "input": given, **result}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_fixture_gives_what_its_lines_say(path: Path) -> None:
    assert told(trace_of(path)) == (LOGS / "told" / "entire" / f"{path.stem}.txt").read_text("utf-8")


def test_an_answer_in_several_lines_counts_once_and_its_total_is_at_least(tmp_path: Path) -> None:
    stated: Line = {"id": "m1", "input_tokens": 100, "output_tokens": 20}
    lines = [
        typed(),
        line("assistant", 2, used("c1", "Bash", "x"), **stated),
        line("assistant", 3, text("A"), **stated),
    ]
    path = write(tmp_path / "transcript.jsonl", lines)

    trace = trace_of(path)
    assert tokens(trace) == {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    assert of_type(trace, "inference", "tool_call") == ["main inference", "main tool_call Bash"]
    assert trace["costs"]["tokens"] is None
    assert trace["reasons"]["costs.tokens"] == "answers that do not state what went from and to caches: 1"
    (session,) = json.loads(run_corpus("trace", "doctor", str(path), "--format", "json").stdout)["sessions"]
    assert (session["tokens"]["known"], session["tokens"]["at_least"]) == (120, True)


@pytest.mark.parametrize(
    ("stated", "known"),
    [
        ({"output_tokens": 30}, (0, 30)),  # Copilot
        ({"input_tokens": 30}, (30, 0)),
        ({}, (0, 0)),  # Codex
    ],
)
def test_what_an_answer_does_not_state_is_unknown(tmp_path: Path, stated: Line, known: tuple[int, int]) -> None:
    trace = trace_of(write(tmp_path / "t.jsonl", [typed(), line("assistant", 2, text("A"), **stated)]))

    assert (tokens(trace)["input"], tokens(trace)["output"]) == known
    assert trace["costs"]["tokens"] is None


@pytest.mark.parametrize(
    ("agent", "tool", "given"),
    [
        ("claude-code", "Task", {"subagent_type": "x", "prompt": "p"}),
        ("opencode", "task", {"subagent_type": "x", "prompt": "p"}),
        ("copilot-cli", "task", {"agent_type": "x", "prompt": "p"}),
        ("pi", "subagent", {"agent": "x", "task": "p"}),
    ],
)
def test_a_call_of_a_sub_agent_spawns_it_and_its_result_is_the_return(
    tmp_path: Path, agent: str, tool: str, given: Line
) -> None:
    lines = [typed(agent=agent), line("assistant", 2, used("c1", tool, "Done.", "error", **given), agent=agent)]
    trace = trace_of(write(tmp_path / "t.jsonl", lines))

    assert parents(trace) == {"user": "", "main": "", "x": "main"}
    assert of_type(trace, "return") == ["x return > main (error tool_error)"]


def test_a_tool_that_is_called_like_a_sub_agent_is_a_tool(tmp_path: Path) -> None:
    trace = trace_of(write(tmp_path / "t.jsonl", [typed(), line("assistant", 2, used("c1", "task", "ok", list=1))]))

    assert of_type(trace, "spawn", "tool_call") == ["main tool_call task"]


def test_a_call_without_a_result_is_left_open(tmp_path: Path) -> None:
    lines = [typed(), line("assistant", 2, used("c1", "Bash")), line("assistant", 9, text("A"))]
    trace = trace_of(write(tmp_path / "t.jsonl", lines))

    assert of_type(trace, "tool_call", "tool_result") == ["main tool_call Bash"]


def test_lines_without_a_time_take_that_of_the_line_before(tmp_path: Path) -> None:
    lines = [typed(0), line("assistant", None, text("A")), line("assistant", 5, text("B"))]
    trace = trace_of(write(tmp_path / "t.jsonl", lines))

    assert trace["costs"]["wall_clock_s"] == 5
    assert "row without a time: that of the row before it is taken" in trace["import_report"]["problems"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Go on.", ["user human_intervention > main"]),
        ("[Request interrupted by user for tool use]", ["user human_intervention > main (cancelled)"]),
        ("<system-reminder>Mind the tests.</system-reminder>", []),
        ("This session is being continued from a previous conversation that ran out of context.", []),
    ],
)
def test_what_the_program_writes_in_the_name_of_a_person_nobody_typed(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    answers = [line("assistant", second, id=f"m{second}", input_tokens=1, output_tokens=1) for second in (4, 12)]
    other = line("user", 10, {"type": "text", "text": text})
    trace = trace_of(write(tmp_path / "t.jsonl", [typed(), answers[0], other, answers[1]]))

    assert of_type(trace, "human_intervention")[1:] == said


def test_a_sub_agent_in_the_background_returns_when_the_session_is_told(tmp_path: Path) -> None:
    task = used("t", "Task", "Async agent launched.", prompt="p", subagent_type="a", run_in_background=True)
    told_of = "<task-notification><tool-use-id>t</tool-use-id><status>failed</status></task-notification>"
    rows = [typed(), line("assistant", 4, task, id="m", input_tokens=1, output_tokens=1)]
    rows.append(line("user", 60, {"type": "text", "text": told_of}))
    trace = trace_of(write(tmp_path / "t.jsonl", rows))

    returns = [(event["t"], event["agent"], event["status"]) for event in trace["events"] if event["type"] == "return"]
    assert returns == [(60, "a", "error")]
    assert len(of_type(trace, "human_intervention")) == 1


def test_early_versions_have_texts_and_results_on_lines_of_their_own(tmp_path: Path) -> None:
    answers = ({"id": "m1", "content": [used("c1", "Bash"), used("c2", "Agent", prompt="p")]}, {"content": "Done."})
    result = {**typed(), "type": "user_tool_result"}
    lines = [
        {**typed(0), "content": "Go."},
        {**line("assistant", 2), **answers[0]},
        {**typed(3), "content": ""},
        {**result, "ts": moment(3), "tool_use_id": "c1", "result": {"error": "exit 1"}},
        {**result, "ts": moment(9), "tool_use_id": "c2", "result": {}},
        {**line("assistant", 12), **answers[1]},
    ]
    for one in lines[3:5]:
        del one["content"]
    trace = trace_of(write(tmp_path / "transcript.jsonl", lines))

    assert of_type(trace, "human_intervention", "tool_result", "return") == [
        "user human_intervention > main", "main tool_result Bash (error tool_error)", "agent return > main",
    ]  # fmt: skip
    assert [event["t"] for event in trace["events"] if event["type"] in ("tool_result", "return")] == [3, 9]
    assert trace["costs"]["tokens"] is None


def test_a_later_checkpoint_of_a_session_repeats_what_an_earlier_one_has(tmp_path: Path) -> None:
    lines = [json.loads(row) for row in CHECKPOINT.read_text("utf-8").splitlines()]
    earlier = json.loads(json.dumps(lines[:4]))
    earlier[3]["content"][0].pop("result")  # which had not come yet
    write(tmp_path / "aa" / "bb" / "0" / "transcript.jsonl", earlier)
    write(tmp_path / "aa" / "cc" / "0" / "transcript.jsonl", lines)

    (both,), (alone,) = traces(tmp_path), traces(CHECKPOINT)
    assert (tokens(both), both["costs"]) == (tokens(alone), alone["costs"])
    for kind in ("inference", "tool_call", "tool_result", "spawn", "return", "human_intervention"):
        assert of_type(both, kind) == of_type(alone, kind)


def test_codex_lines_without_ids_are_known_by_their_times(tmp_path: Path) -> None:
    lines = [typed(agent="codex"), *(line("assistant", 2, text("A"), agent="codex") for _ in range(2))]
    for name in ("a", "b"):
        write(tmp_path / name / "transcript.jsonl", lines)

    (trace,) = traces(tmp_path)
    assert of_type(trace, "inference") == ["main inference", "main inference"]
    assert trace["import_report"]["skipped"] == {"copy of a line": 3}


def test_a_transcript_beside_the_one_that_it_condenses_is_left_out(tmp_path: Path) -> None:
    main = Claude()
    main.say(0, "Go.")
    main.answer(2, "m1", text("A"), usage=(100, 20, 7, 3))
    folder = tmp_path / "aa" / "bb" / "0"
    main.write(folder).rename(folder / "full.jsonl")
    write(folder / "transcript.jsonl", [typed(), line("assistant", 2, text("A"), id="m1", input_tokens=100)])

    done = run_corpus("trace", "import", str(tmp_path))
    assert [json.loads(row)["trace_id"] for row in done.stdout.splitlines()] == [main.session]
    assert "1 file condenses others that are read: left out" in done.stderr
    alone = trace_of(folder / "transcript.jsonl")
    assert (alone["events"][0]["source"]["format"], alone["trace_id"]) == ("entire", "aabb-0")


def test_a_transcript_stands_for_one_that_cannot_be_read(tmp_path: Path) -> None:
    shutil.copy(CHECKPOINT, tmp_path / "transcript.jsonl")
    (tmp_path / "full.jsonl").write_text("what no importer knows\n", "utf-8")

    assert trace_of(tmp_path)["events"][0]["source"]["format"] == "entire"
