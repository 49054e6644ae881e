"""Codex rollouts imported: hand-written sessions whole, and every trap of the format by itself."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.transcript import Step
from orchtrace_corpus.trace.view import TraceView
from tests.trace.conversationlogs import (
    LOGS,
    Codex,
    by_agent,
    codex_usage,
    documented,
    ledger,
    ledger_lines,
    links,
    moment,
    of_type,
    parents,
    problems,
    spawned,
    told,
    trace_of,
    traces,
    write,
)
from tests.trace.spanlogs import checked

FIXTURES = sorted((LOGS / "codex").iterdir())
NAMES = [path.stem for path in FIXTURES]
TRUTH: dict[str, dict[str, list[tuple[int, int, int, int]]]] = {
    "approvals": {"main": [(100, 0, 10, 0), (150, 50, 12, 0), (200, 100, 20, 5)]},
    "family": {
        "main": [
            (1000, 400, 90, 30), (1200, 1000, 60, 10), (1300, 1200, 20, 0), (1400, 1300, 20, 0), (1500, 1100, 30, 10),
            (1600, 1500, 40, 10), (1700, 1600, 20, 0),
        ],
        "Ada": [(500, 100, 40, 10), (700, 500, 60, 10)],
        "Bob": [(800, 500, 30, 5), (900, 800, 50, 5)],
    },
    "fork": {"main": [(1000, 400, 90, 30)], "main#2": [(1100, 1000, 30, 0)]},
    "lone": {"Lea": [(900, 600, 40, 5)]},
    "scripts": {
        "main": [
            (1000, 800, 50, 10), (1100, 1000, 20, 0), (1200, 1100, 20, 0), (1300, 1200, 60, 5), (1400, 1300, 70, 5),
            (1500, 1400, 15, 0), (1600, 1500, 90, 20), (1700, 1600, 40, 0),
        ],
    },
    "slept": {"main": [(1000, 800, 50, 10), (1100, 1000, 40, 10), (3000, 2500, 4000, 1000)]},
    "odd": {"main": [(100, 20, 10, 0), (60, 10, 5, 0), (140, 20, 4, 0)]},
}  # fmt: skip
"""What each answer of each agent in the fixtures has spent: input with cached input, cached input, output, reasoning."""

P, A, B = (f"019fbc0{number}-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))


def sums(spent: list[tuple[int, int, int, int]]) -> tuple[int, ...]:
    read, cached, written, thought = map(sum, zip(*spent, strict=True))
    return read - cached, written, cached, 0, thought


@pytest.fixture
def main() -> Codex:
    rows = Codex(P)
    rows.typed(1, "Go.")
    return rows


def child_of(folder: Path, thread: str = A, task: str = "Do it.", created: float = 6, **meta: Any) -> Codex:
    """A sub-agent that answers once, with 100 tokens in and 7 out."""
    rows = Codex(thread, created, **{"source": spawned(P), **meta})
    rows.typed(created + 1, task)
    rows.says(created + 5, "Done.")
    rows.count(created + 5.1, 100, 40, 7, 2)
    rows.write(folder)
    return rows


def spawning(main: Codex, output: Any = None, task: str = "Do it.", name: str = "c1") -> None:
    """The main thread spawns an agent at second 5."""
    main.call(5, "spawn_agent", name, agent_type="worker", message=task)
    main.count(5.2, 50, 0, 5, 0)
    main.output(6, name, {"agent_id": A} if output is None else output)


# Whole sessions


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_a_session_becomes_the_trace_that_was_written_down_for_it(path: Path) -> None:
    expected = LOGS / "told" / "codex" / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_tokens_are_what_the_answers_have_spent(path: Path) -> None:
    assert by_agent(_without_copies(trace_of(path))) == {
        agent: sums(spent) for agent, spent in sorted(TRUTH[path.stem].items())
    }


def _without_copies(trace: dict[str, Any]) -> dict[str, Any]:
    return {**trace, "events": [event for event in trace["events"] if not event.get("copied_context")]}


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_every_event_names_its_row(path: Path) -> None:
    lines = {
        file.name: len(file.read_bytes().splitlines()) for file in [path, *path.rglob("*.jsonl")] if file.is_file()
    }

    for event in trace_of(path)["events"]:
        source = event["source"]
        assert 1 <= source["line"] <= lines[source["file"]]
        assert (source["format"], source["version"]) == ("codex", "0.150.0")


def test_all_sessions_of_a_folder_are_told_apart() -> None:
    assert len(traces(LOGS / "codex" / "family", LOGS / "codex" / "fork", LOGS / "codex" / "odd.jsonl")) == 3


# The counter of tokens


def test_a_total_that_is_written_twice_counts_once(tmp_path: Path, main: Codex) -> None:
    """Summing the usage of the last answer over all rows gives about twice the truth."""
    main.says(2, "A")
    main.count(2.1, 100, 40, 10, 3)
    main.says(3, "B")
    main.count(3.1, 200, 80, 20, 4)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (180, 30, 120, 0, 7)}
    assert trace["costs"]["tokens"] == 330
    assert ledger(trace) == {
        "counted: difference of two cumulative totals": 2,
        "left out: total that had not moved (the same row again)": 2,
    }


def test_each_answer_has_the_difference_of_two_totals(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 100, 40, 10, 3)
    main.says(3, "B")
    main.count(3.1, 200, 80, 20, 4)
    main.write(tmp_path)

    spent = [event for event in trace_of(tmp_path)["events"] if "tokens" in event]
    assert [(event["tokens"]["input"], event["token_basis"]) for event in spent] == [
        (60, "cumulative_delta"), (120, "cumulative_delta"),
    ]  # fmt: skip


def test_cached_input_is_no_input_and_reasoning_is_part_of_the_output(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 100, 40, 10, 3)
    main.write(tmp_path)

    (event,) = [event for event in trace_of(tmp_path)["events"] if "tokens" in event]
    assert event["tokens"] == {"input": 60, "cache_read": 40, "output": 10, "reasoning": 3}


def test_without_totals_the_usage_of_the_last_answer_counts_once(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    for second in (2.1, 2.2):
        main.event(second, "token_count", info={"last_token_usage": codex_usage(100, 0, 10, 0)})
    main.says(3, "B")
    main.event(3.1, "token_count", info={"last_token_usage": codex_usage(300, 0, 30, 0)})
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (400, 40, 0, 0, 0)}
    assert ledger(trace) == {
        "counted: usage of the last answer, where there are no totals": 2,
        "left out: total that had not moved (the same row again)": 1,
    }


def test_a_counter_that_begins_anew_has_its_last_usage_counted(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 100, 40, 10, 3)
    main.says(3, "B")
    main.count(3.1, 30, 0, 5, 0, total=(30, 0, 5, 0))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (90, 15, 40, 0, 3)}
    assert problems(trace) == {"counter that begins anew: its usage of the last answer counts": 1}


def test_a_total_that_moves_by_something_else_than_its_last_usage_is_told(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 100, 40, 10, 3)
    main.says(3, "B")
    main.count(3.1, 30, 0, 5, 0, total=(200, 40, 20, 3))
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (160, 20, 40, 0, 3)}
    assert problems(trace) == {"difference of totals other than the usage of the last answer: the difference counts": 1}


def test_an_answer_without_a_count_of_its_own_is_in_the_next_one(tmp_path: Path, main: Codex) -> None:
    main.call(2, "shell", "c1")
    main.output(3, "c1", "ok")
    main.says(4, "B")
    main.count(4.1, 100, 0, 10, 0)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (100, 10, 0, 0, 0)}
    assert trace["costs"]["tokens"] == 110


def test_an_answer_at_the_end_without_a_count_is_unknown(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 100, 0, 10, 0)
    main.typed(3, "More.")
    main.says(4, "B")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["costs"]["tokens"] is None
    assert ledger(trace)["unknown: answers without usage"] == 1


# History that was copied into a thread


def replaying(main: Codex, thread: str, second: float | None, **meta: Any) -> Codex:
    """A thread that begins with all rows of another; under a new time, or with those that they had."""
    rows = Codex(thread, 10, **meta)
    copied = [row if second is None else {**row, "timestamp": moment(second)} for row in main.rows]
    rows.rows += copied
    rows.total = main.total
    return rows


@pytest.mark.parametrize("second", [10.01, None], ids=["under new times", "under the times they had"])
@pytest.mark.parametrize("with_parent", [True, False], ids=["parent at hand", "parent missing"])
def test_history_of_the_parent_is_left_out_of_a_child(
    tmp_path: Path, main: Codex, second: float | None, with_parent: bool
) -> None:
    main.says(2, "A")
    main.count(2.1, 1000, 400, 100, 0)
    main.says(7, "B")
    main.count(7.1, 2000, 800, 200, 0)
    child = replaying(main, A, second, source=spawned(P, agent_nickname="Ada"), forked_from_id=P)
    child.typed(11, "Do it.")
    child.says(15, "Done.")
    child.count(15.1, 100, 40, 7, 2)
    child.write(tmp_path)
    spawning(main)
    if with_parent:
        main.write(tmp_path)

    trace = trace_of(tmp_path)
    copies = [event for event in trace["events"] if event.get("copied_context")]
    assert by_agent(_without_copies(trace))["Ada"] == (60, 7, 40, 0, 2)
    assert [event["tokens"] for event in copies] == [{"input": 1800, "cache_read": 1200, "output": 300, "reasoning": 0}]
    assert ledger(trace)["left out: history copied from another thread, counted there"] == 2
    assert of_type(_without_copies(trace), "inference").count("Ada inference") == 1


def test_history_that_is_left_out_leaves_memory_though_no_collector_runs(tmp_path: Path, main: Codex) -> None:
    main.call(2, "shell", "c")
    main.output(3, "c", "done")
    main.count(3.1, 1000, 400, 100, 0)
    child = replaying(main, A, 10.01, source=spawned(P, agent_nickname="Ada"))
    child.says(15, "Done.")
    child.write(tmp_path)
    spawning(main)
    main.write(tmp_path)

    gc.collect()
    gc.disable()
    try:
        assert any("copied_context" in event for event in trace_of(tmp_path)["events"])
        assert not any(type(one) is Step for one in gc.get_objects())
    finally:
        gc.enable()


def test_history_that_was_cut_is_known_by_its_totals(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 1000, 400, 100, 0)
    main.says(3, "B")
    main.count(3.1, 2000, 800, 200, 0)
    child = replaying(main, A, 10.01, source=spawned(P, agent_nickname="Ada"))
    child.rows = [row for row in child.rows if row["payload"].get("type") not in ("user_message", "message")]
    child.typed(11, "Do it.")
    child.says(15, "Done.")
    child.count(15.1, 100, 40, 7, 2)
    child.rows.insert(
        1, {"timestamp": moment(10), "type": "event_msg", "payload": {"type": "user_message", "message": "Cut."}}
    )
    child.write(tmp_path)
    spawning(main)
    main.write(tmp_path)

    assert by_agent(_without_copies(trace_of(tmp_path)))["Ada"] == (60, 7, 40, 0, 2)


def test_a_child_of_the_same_parent_may_count_from_zero(tmp_path: Path, main: Codex) -> None:
    """Decided for each file: one child has its parent's history and goes on from its total, the other has neither."""
    main.says(2, "A")
    main.count(2.1, 1000, 400, 100, 0)
    child = replaying(main, A, 10.01, source=spawned(P, agent_nickname="Ada"))
    child.says(15, "Done.")
    child.count(15.1, 100, 40, 7, 2)
    child.write(tmp_path)
    child_of(tmp_path, B, source=spawned(P, agent_nickname="Bob"), forked_from_id=P)
    spawning(main)
    spawning(main, {"agent_id": B}, name="c2")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(_without_copies(trace)) == {
        "Ada": (60, 7, 40, 0, 2), "Bob": (60, 7, 40, 0, 2), "main": (700, 110, 400, 0, 0),
    }  # fmt: skip


def test_a_child_may_go_on_from_its_parents_total_without_the_history(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 1000, 400, 100, 0)
    spawning(main)
    main.write(tmp_path)
    child = Codex(A, 10, source=spawned(P, agent_nickname="Ada"))
    child.total = main.total
    child.typed(11, "Do it.")
    child.says(15, "Done.")
    child.count(15.1, 100, 40, 7, 2)
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace)["Ada"] == (60, 7, 40, 0, 2)
    assert ledger(trace)["left out: total that the thread began with, spent by its parent"] == 1


def test_without_the_parent_the_first_turn_of_the_childs_own_ends_the_history(tmp_path: Path, main: Codex) -> None:
    created = 10.0
    own = int((1_772_355_600 + created + 0.2) * 1000)
    child = Codex(A, created, source=spawned(P))
    child.row(10.01, "session_meta", id=P, timestamp=moment(0))
    child.event(10.02, "task_started", turn_id=_uuid7(own - 9000))
    child.typed(10.03, "Go.")
    child.says(10.04, "A")
    child.count(10.05, 1000, 0, 100, 0, rows=1)
    child.event(10.2, "task_started", turn_id=_uuid7(own))
    child.typed(10.3, "Do it.")
    child.says(15, "Done.")
    child.count(15.1, 100, 40, 7, 2)
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    assert list(by_agent(_without_copies(trace)).values()) == [(60, 7, 40, 0, 2)]


def _uuid7(milliseconds: int) -> str:
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000001"


def test_a_thread_that_a_person_forked_begins_behind_its_history(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 1000, 400, 100, 0)
    main.write(tmp_path)
    fork = replaying(main, A, None, forked_from_id=P)
    fork.typed(1802, "And now?")
    fork.says(1805, "B")
    fork.count(1805.1, 100, 40, 7, 2)
    fork.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(_without_copies(trace)) == {"main": (600, 100, 400, 0, 0), "main#2": (60, 7, 40, 0, 2)}
    assert of_type(trace, "human_intervention") == [
        "user human_intervention > main",
        "user human_intervention > main#2",
    ]
    assert TraceView(checked(trace)).timing.waited == 1800


def test_a_thread_in_two_files_is_read_once(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    main.count(2.1, 1000, 400, 100, 0)
    write(tmp_path / "archived" / f"rollout-1-{P}.jsonl", main.rows)
    main.typed(3, "More.")
    main.says(4, "B")
    main.count(4.1, 100, 40, 7, 2)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (660, 107, 440, 0, 2)}
    assert trace["import_report"]["skipped"]["row that another file of the thread has, too"] == 5


def test_unreadable_lines_of_a_thread_in_two_files_are_named_each(tmp_path: Path, main: Codex) -> None:
    main.says(2, "A")
    write(tmp_path / "archived" / f"rollout-1-{P}.jsonl", main.rows)
    main.count(4.1, 100, 40, 7, 2)
    main.write(tmp_path)
    (path,) = (path for path in tmp_path.rglob("*.jsonl") if "archived" not in path.parts)
    *lines, last = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines, "?\n" * 3, last]), "utf-8")

    places = trace_of(tmp_path)["import_report"]["dropped"]["not JSON"]["for_example"]
    assert [place.rpartition(":")[2] for place in places] == [str(len(lines) + 1 + index) for index in range(3)]


# Who spawned whom


def target(trace: dict[str, Any]) -> dict[str, str]:
    return {
        event["call_id"]: event["to"] for event in trace["events"] if event["type"] == "spawn" and "call_id" in event
    }


@pytest.mark.parametrize("clue", ["output", "collab", "activity", "call", "path", "task"])
def test_each_clue_alone_tells_which_call_spawned_a_thread(tmp_path: Path, main: Codex, clue: str) -> None:
    meta: dict[str, Any] = {"source": spawned(P, agent_path="/root/ada") if clue == "path" else spawned(P)}
    if clue == "call":
        meta["spawn_call_id"] = "c1"
    main.call(4, "spawn_agent", "c0", message="Else.")
    main.call(5, "spawn_agent", "c1", message="Do it." if clue == "task" else "Else, too.")
    main.count(5.2, 50, 0, 5, 0)
    main.output(6, "c0", "{}")
    main.output(6, "c1", {"output": {"agent_id": A}, "path": {"task_name": "/root/ada"}}.get(clue, "{}"))
    if clue == "collab":
        main.event(6.1, "collab_agent_spawn_end", call_id="c1", sender_thread_id=P, new_thread_id=A, prompt="x")
    if clue == "activity":
        main.event(6.1, "sub_agent_activity", kind="started", call_id="c1", agent_thread_id=A)
    main.write(tmp_path)
    child_of(tmp_path, **meta)

    trace = trace_of(tmp_path)
    name = "ada" if clue == "path" else A
    assert target(trace)["c1"] == name
    assert parents(trace)[name] == "main"
    assert "sub-agent without a known spawn call: its spawn is concluded" not in problems(trace)


def test_a_thread_without_a_spawn_call_has_its_spawn_concluded(tmp_path: Path, main: Codex) -> None:
    main.write(tmp_path)
    child_of(tmp_path)

    trace = trace_of(tmp_path)
    (event,) = [event for event in trace["events"] if event["type"] == "spawn"]
    assert (event["to"], event["inferred"]) == (A, True)
    assert problems(trace) == {"sub-agent without a known spawn call: its spawn is concluded": 1}


def test_a_thread_whose_parent_is_missing_is_an_orphan(tmp_path: Path) -> None:
    child_of(tmp_path)

    trace = trace_of(tmp_path)
    assert problems(trace) == {"sub-agent that no known call has spawned (orphan)": 1}
    assert of_type(trace, "spawn", "stop", "human_intervention") == []


def test_a_sub_agent_without_a_rollout_has_the_nickname_that_the_output_gives_it(tmp_path: Path, main: Codex) -> None:
    spawning(main, {"agent_id": A, "nickname": "Sartre"})
    main.write(tmp_path)

    assert target(trace_of(tmp_path)) == {"c1": "Sartre"}


def test_a_sub_agent_without_a_rollout_leaves_the_total_unknown(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert target(trace) == {"c1": A}
    assert trace["costs"]["tokens"] is None
    assert trace["reasons"] == {"costs.tokens": "sub-agents without a transcript among the files: 1"}


@pytest.mark.parametrize(
    ("meta", "parent"),
    [
        ({"source": "cli"}, ""),
        ({"source": "vscode"}, ""),
        ({"source": {"subagent": "review"}}, ""),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": P, "depth": 1}}}}, "main"),
        ({"source": "cli", "parent_thread_id": P}, "main"),
        ({"source": {"subagent": {"thread_spawn": None}}}, ""),
    ],
    ids=["text", "another text", "review", "nested", "flat", "null"],
)
def test_what_a_thread_says_of_its_source_may_have_any_shape(
    tmp_path: Path, main: Codex, meta: dict[str, Any], parent: str
) -> None:
    main.write(tmp_path)
    child_of(tmp_path, **meta)

    found = [parents(trace) for trace in traces(tmp_path)]
    assert (A in found[0]) == bool(parent)
    assert found[0].get(A, "") == parent


def test_names_and_roles_of_agents_are_those_of_their_threads(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.write(tmp_path)
    child_of(tmp_path, source=spawned(P, agent_nickname="Ada", agent_role="reviewer"))

    trace = trace_of(tmp_path)
    assert {agent["id"]: agent.get("role") for agent in trace["agents"]}["Ada"] == "reviewer"
    assert trace["topology"] == "centralized"


# What comes back, and what agents say to one another

DONE = {A: {"completed": "Done."}}


def test_what_a_wait_brings_is_a_return_and_the_next_answer_aggregates(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.call(7, "wait", "c2", ids=[A])
    main.count(7.1, 50, 0, 5, 0)
    main.output(20, "c2", {"status": DONE, "timed_out": False})
    main.says(25, "Good.")
    main.count(25.1, 50, 0, 5, 0)
    main.write(tmp_path)
    child_of(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "return", "aggregate") == [f"{A} return > main", "main aggregate"]
    assert links(trace, "return") == [f"{A} return > main -> main aggregate"]
    assert of_type(trace, "tool_call", "tool_result") == []


def test_waiting_in_vain_is_no_return(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.call(7, "wait_agent", "c2", ids=[A])
    main.count(7.1, 50, 0, 5, 0)
    main.output(20, "c2", {"status": {A: "running"}, "timed_out": True})
    main.write(tmp_path)
    child_of(tmp_path)

    assert of_type(trace_of(tmp_path), "return") == []


def test_a_notification_is_a_return_and_nobody_typed_it(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    words = json.dumps({"agent_id": A, "status": {"completed": "Done."}})
    main.item(20, "message", role="user", content=[
        {"type": "input_text", "text": f"<subagent_notification>\n{words}\n</subagent_notification>"}
    ])  # fmt: skip
    main.write(tmp_path)
    child_of(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "return") == [f"{A} return > main"]
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]


def test_a_return_that_is_told_several_times_counts_once(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.call(7, "wait", "c2", ids=[A])
    main.count(7.1, 50, 0, 5, 0)
    main.output(20, "c2", {"status": DONE})
    main.event(20.1, "collab_waiting_end", call_id="c2", statuses=DONE)
    main.write(tmp_path)
    child_of(tmp_path)

    assert of_type(trace_of(tmp_path), "return") == [f"{A} return > main"]


def test_the_end_of_a_wait_may_be_told_by_an_event_alone(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.event(20, "collab_waiting_end", call_id="c2", statuses={A: {"errored": "Out of memory"}})
    main.write(tmp_path)
    child_of(tmp_path)

    assert of_type(trace_of(tmp_path), "return") == [f"{A} return > main (error agent_error)"]


def test_an_agent_that_was_interrupted_comes_back_cancelled(tmp_path: Path, main: Codex) -> None:
    spawning(main, "{}")
    main.event(6.1, "sub_agent_activity", kind="started", call_id="c1", agent_thread_id=A)
    main.event(9, "sub_agent_activity", kind="interacted", agent_thread_id=A)
    main.event(20, "sub_agent_activity", kind="interrupted", agent_thread_id=A)
    main.write(tmp_path)
    child_of(tmp_path)

    assert of_type(trace_of(tmp_path), "return") == [f"{A} return > main (cancelled)"]


def test_activity_may_be_told_as_an_item_that_is_complete(tmp_path: Path, main: Codex) -> None:
    spawning(main, "{}")
    item = {"type": "SubAgentActivity", "kind": "started", "call_id": "c1", "agentThreadId": A}
    main.event(6.1, "item_completed", item=item)
    main.write(tmp_path)
    child_of(tmp_path, task="Told otherwise.")

    assert target(trace_of(tmp_path)) == {"c1": A}


@pytest.mark.parametrize("tool", ["send_input", "send_message", "followup_task"])
def test_what_is_sent_to_an_agent_is_a_message_that_it_gets(tmp_path: Path, main: Codex, tool: str) -> None:
    spawning(main)
    main.call(13, tool, "c2", id=A, message="More.")
    main.count(13.1, 50, 0, 5, 0)
    main.output(13.5, "c2", "{}")
    main.write(tmp_path)
    child = child_of(tmp_path)
    child.typed(14, "More.")
    child.says(16, "Done, too.")
    child.count(16.1, 100, 0, 7, 0)
    child.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "message") == [f"main message {tool} > {A}"]
    assert links(trace, "message") == [f"main message {tool} > {A} -> {A} inference"]
    assert of_type(trace, "orchestrator_decision") == ["main orchestrator_decision"] * 2
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]


def test_an_agent_that_is_closed_is_ended_by_who_closed_it(tmp_path: Path, main: Codex) -> None:
    spawning(main)
    main.call(30, "close_agent", "c2", id=A)
    main.count(30.1, 50, 0, 5, 0)
    main.output(31, "c2", {"status": {"completed": "Done."}})
    main.write(tmp_path)
    child_of(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "despawn") == [f"main despawn > {A}"]
    assert of_type(trace, "tool_call") == []


# Calls


def test_calls_and_outputs_are_paired_by_id(tmp_path: Path, main: Codex) -> None:
    main.call(2, "shell", "c1", command=["ls"])
    main.item(2.5, "custom_tool_call", name="apply_patch", input="…", call_id="c2")
    main.count(2.6, 100, 0, 10, 0)
    main.item(3, "custom_tool_call_output", call_id="c2", output="ok")
    main.output(4, "c1", "Exit code: 2\nno such file")
    main.write(tmp_path)

    assert links(trace_of(tmp_path), "tool_dependency") == [
        "main tool_call apply_patch -> main tool_result apply_patch",
        "main tool_call shell -> main tool_result shell (error exit_code)",
    ]


def test_a_call_without_an_output_stays_unanswered(tmp_path: Path, main: Codex) -> None:
    main.call(2, "shell", "c1")
    main.count(2.1, 100, 0, 10, 0)
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "tool_call", "tool_result", "stop") == ["main tool_call shell"]


def test_an_output_without_a_call_and_one_too_many_are_told(tmp_path: Path, main: Codex) -> None:
    main.call(2, "shell", "c1")
    main.count(2.1, 100, 0, 10, 0)
    main.output(3, "c1", "ok")
    main.output(4, "c1", "ok")
    main.output(5, "c9", "ok")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert problems(trace) == {"second result of a call: the first counts": 1, "result without its call": 1}
    assert of_type(trace, "tool_result") == ["main tool_result shell", "main tool_result"]


def test_a_call_id_that_is_used_again_gets_a_number(tmp_path: Path, main: Codex) -> None:
    for second in (2, 4):
        main.call(second, "shell", "c1")
        main.count(second + 0.1, 100, 0, 10, 0)
        main.output(second + 1, "c1", "ok")
    main.write(tmp_path)

    calls = [event["call_id"] for event in trace_of(tmp_path)["events"] if event["type"].startswith("tool_")]
    assert calls == ["c1", "c1", "c1#2", "c1#2"]


def test_calls_that_the_service_makes_itself_are_answered_at_once(tmp_path: Path, main: Codex) -> None:
    main.item(2, "web_search_call", id="w1", status="completed", action={"query": "x"})
    main.count(2.1, 100, 0, 10, 0)
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "tool_call", "tool_result") == [
        "main tool_call web_search", "main tool_result web_search",
    ]  # fmt: skip


def test_texts_that_stand_there_twice_count_once(tmp_path: Path, main: Codex) -> None:
    main.item(1.1, "message", role="user", content=[{"type": "input_text", "text": "Go."}])
    main.item(2, "message", role="user", content=[{"type": "input_text", "text": "<environment_context>…"}])
    main.item(3, "reasoning", summary=[])
    main.event(3, "agent_reasoning", text="Hm.")
    main.says(4, "A")
    main.count(4.1, 100, 0, 10, 0)
    main.event(4.3, "agent_message", message="A")
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "human_intervention", "inference") == [
        "user human_intervention > main", "main inference",
    ]  # fmt: skip


def test_a_rollout_without_items_has_its_answers_in_events(tmp_path: Path, main: Codex) -> None:
    main.event(4, "agent_message", message="A")
    main.count(4.1, 100, 0, 10, 0)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention", "inference", "stop") == [
        "user human_intervention > main", "main inference", "main stop",
    ]  # fmt: skip
    assert ["content_ref" in event for event in trace["events"]] == [True, True, False]


def test_a_rollout_without_events_has_its_user_in_items(tmp_path: Path) -> None:
    rows = Codex(P)
    for second, words in ((1, "<environment_context>x</environment_context>"), (2, "# AGENTS.md"), (3, "Go.")):
        rows.item(second, "message", role="user", content=[{"type": "input_text", "text": words}])
    rows.item(3.5, "message", role="developer", content=[{"type": "input_text", "text": "Rules."}])
    rows.says(4, "A")
    rows.count(4.1, 100, 0, 10, 0)
    rows.write(tmp_path)

    assert of_type(trace_of(tmp_path), "human_intervention") == ["user human_intervention > main"]


# People and guards


def waited(trace: dict[str, Any]) -> float:
    return TraceView(checked(trace)).timing.waited


def test_the_time_until_a_person_writes_is_no_work(tmp_path: Path, main: Codex) -> None:
    main.says(3, "A")
    main.count(3.1, 100, 0, 10, 0)
    main.typed(1003, "More.")
    main.says(1005, "B")
    main.count(1005.1, 100, 0, 10, 0)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert waited(trace) == 1000
    assert TraceView(checked(trace)).timing.elapsed == 4


@pytest.mark.parametrize("kind", ["exec_approval_request", "apply_patch_approval_request", "elicitation_request"])
def test_a_call_that_asked_for_leave_perhaps_waited_all_the_time(tmp_path: Path, main: Codex, kind: str) -> None:
    main.call(3, "shell", "c1")
    main.count(3.1, 100, 0, 10, 0)
    main.event(4, kind, call_id="c1")
    main.output(64, "c1", "ok")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention", "safety_event") == [
        "user human_intervention > main",
        "main safety_event shell",
    ]
    assert waited(trace) == 0
    assert open_calls(trace) == ["shell"]


def open_calls(trace: dict[str, Any]) -> list[str]:
    view = TraceView(checked(trace))
    return [view.trace.events[one.event].tool for one in view.open_calls]


def test_an_approval_that_something_follows_has_waited_until_then(tmp_path: Path, main: Codex) -> None:
    main.call(3, "shell", "c1")
    main.count(3.1, 100, 0, 10, 0)
    main.event(4, "exec_approval_request", call_id="c1")
    main.event(50, "warning", message="Approved.")
    main.output(64, "c1", "ok")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"] * 2
    assert waited(trace) == 46
    assert open_calls(trace) == []


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ({"sandbox_permissions": "require_escalated", "justification": "To fetch."}, ["exec_command"]),
        ({"with_escalated_permissions": True}, ["exec_command"]),
        ({"sandbox_permissions": "use_default"}, []),
        ({"cmd": "echo escalated"}, []),
    ],
)
def test_a_call_that_wants_out_of_the_sandbox_asks_for_leave(
    tmp_path: Path, main: Codex, given: dict[str, Any], calls: list[str]
) -> None:
    main.call(3, "exec_command", "c1", **given)
    main.count(3.1, 100, 0, 10, 0)
    main.output(64, "c1", "ok")
    main.write(tmp_path)

    assert open_calls(trace_of(tmp_path)) == calls


def test_a_call_that_a_person_refuses_has_waited_for_them(tmp_path: Path, main: Codex) -> None:
    main.call(3, "shell", "c1")
    main.count(3.1, 100, 0, 10, 0)
    main.output(33, "c1", "exec command rejected by user")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "tool_result") == ["main tool_result shell (error rejected)"]
    assert waited(trace) == 30


def test_a_question_to_the_user_waits_for_a_person(tmp_path: Path, main: Codex) -> None:
    main.call(3, "request_user_input", "c1", question="Which?")
    main.count(3.1, 100, 0, 10, 0)
    main.output(33, "c1", "This one.")
    main.write(tmp_path)

    assert waited(trace_of(tmp_path)) == 30


def test_an_aborted_turn_is_an_intervention(tmp_path: Path, main: Codex) -> None:
    main.says(3, "A")
    main.count(3.1, 100, 0, 10, 0)
    main.event(4, "turn_aborted", reason="interrupted")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert of_type(trace, "human_intervention") == [
        "user human_intervention > main", "user human_intervention > main (cancelled)",
    ]  # fmt: skip
    assert waited(trace) == 0


@pytest.mark.parametrize(("status", "number"), [("denied", 1), ("approved", 0)])
def test_a_guardian_that_denies_is_a_safety_event(tmp_path: Path, main: Codex, status: str, number: int) -> None:
    main.call(3, "shell", "c1")
    main.count(3.1, 100, 0, 10, 0)
    main.event(4, "guardian_assessment", status=status)
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "safety_event") == ["main safety_event (error forbidden)"] * number


def test_a_call_that_a_guardian_rejects_is_a_safety_event(tmp_path: Path, main: Codex) -> None:
    main.call(3, "shell", "c1")
    main.count(3.1, 100, 0, 10, 0)
    main.output(4, "c1", "This was rejected by Guardian.")
    main.write(tmp_path)

    assert of_type(trace_of(tmp_path), "safety_event") == ["main safety_event (error forbidden)"]


# Strange rows


def test_compaction_is_passed_over_and_the_counter_goes_on(tmp_path: Path, main: Codex) -> None:
    main.says(3, "A")
    main.count(3.1, 100, 0, 10, 0)
    main.row(4, "compacted", message="", replacement_history=[{"type": "message", "role": "user", "content": []}])
    main.event(4.1, "context_compacted")
    main.says(5, "B")
    main.count(5.1, 20, 0, 5, 0)
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert by_agent(trace) == {"main": (120, 15, 0, 0, 0)}
    assert trace["import_report"]["skipped"]["compacted"] == 1
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]


def test_rows_out_of_order_are_sorted_and_counted(tmp_path: Path, main: Codex) -> None:
    main.call(5, "shell", "c1")
    main.count(4, 100, 0, 10, 0)
    main.output(7, "c1", "ok")
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["import_report"]["out_of_order"] == 1
    assert [event["t"] for event in trace["events"]] == sorted(event["t"] for event in trace["events"])


def test_rows_of_unknown_types_are_counted_and_stop_nothing(tmp_path: Path, main: Codex) -> None:
    main.row(2, "novelty")
    main.event(2, "brand_new")
    main.item(2, "brand_new")
    main.rows += [42, b"{nonsense\n", {"type": "event_msg", "payload": "text"}, {"timestamp": 1}]
    main.rows.append(
        b'{"timestamp": "2026-03-01T09:00:02Z", "type": "event_msg", "payload": {"type": "user_message", "message": "caf\xe9"}}\n'
    )
    main.says(3, "A")
    main.count(3.1, 100, 0, 10, 0)
    main.rows.append(b'{"timesta')
    main.write(tmp_path)

    report = trace_of(tmp_path)["import_report"]
    assert report["unknown_kinds"] == {"event_msg brand_new": 1, "novelty": 1, "response_item brand_new": 1}
    assert report["repaired"] == 1
    assert {what: entry["number"] for what, entry in report["dropped"].items()} == {
        "not an object": 1, "not JSON": 1, "row without a payload": 2, "cut off at the end": 1,
    }  # fmt: skip


@pytest.mark.parametrize("odd", [-5, "many", 1.5])
def test_a_count_that_is_no_number_is_unknown_until_a_total_contains_it(tmp_path: Path, main: Codex, odd: Any) -> None:
    main.typed(1, "Go.")
    main.says(2, "A")
    main.count(2.1, 100, 0, 10, 0)
    main.says(3, "B")
    main.event(3.1, "token_count", info={"total_token_usage": {"input_tokens": odd, "output_tokens": 20}})
    main.write(tmp_path)
    trace = trace_of(tmp_path)
    assert (trace["costs"]["tokens"], trace["reasons"]) == (None, {"costs.tokens": "usage that is not a number: 1"})
    assert problems(trace) == {"usage that is not a number: left out": 1}

    main.says(4, "C")
    main.event(4.1, "token_count", info={"total_token_usage": {"input_tokens": 300, "output_tokens": 40}})
    main.write(tmp_path)
    assert trace_of(tmp_path)["costs"]["tokens"] == 340


def test_two_rollouts_without_an_id_stay_two(tmp_path: Path, main: Codex) -> None:
    for person in ("ann", "bob"):
        main.says(1, "A")
        main.count(1.1, 100, 0, 10, 0)
        rows = [row for row in main.rows if row["type"] != "session_meta"]
        write(tmp_path / f"rollout-_home_{person}_plan.jsonl", rows)

    found = traces(tmp_path)
    assert len({trace["trace_id"] for trace in found}) == 2


def test_files_without_a_conversation_are_refused(tmp_path: Path) -> None:
    path = Codex(P).write(tmp_path)

    with pytest.raises(DataFileError, match="no item of a conversation in rollout-"):
        list(importers.read(importers.sessions(str(path))[0], Privacy(b"salt")))


def test_a_bundle_of_codexs_own_rollout_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"schema_version": 1, "trace_id": "t"}', "utf-8")
    write(tmp_path / "trace.jsonl", [
        {"schema_version": 1, "seq": 1, "wall_time_unix_ms": 1, "rollout_id": "r", "thread_id": P,
         "codex_turn_id": None, "payload": {"type": "thread_started"}},
    ])  # fmt: skip

    with pytest.raises(DataFileError, match="is not a log in a known format"):
        importers.sessions(str(tmp_path))


def test_the_lines_of_the_ledger_are_those_that_are_documented() -> None:
    assert ledger_lines("conversations/codex") == documented("codex")


# Messages between agents


def test_messages_between_agents_are_known_and_joined_to_what_sent_them(tmp_path: Path) -> None:
    """A team of Codex: the task, a message up, an encrypted one down, and the notice of the end, as items."""
    root, child = (
        Codex(P),
        Codex("0199c000-0000-7000-8000-0000000000c1", 1, source=spawned(P, agent_path="/root/worker")),
    )
    root.typed(0, "Go.")
    root.call(1, "spawn_agent", "c1", task_name="worker", message="Count.")
    root.output(2, "c1", {"task_name": "/root/worker"})
    root.call(3, "send_message", "c2", target="/root/worker", message="")
    root.output(3.5, "c2", "{}")
    child.row(1.5, "inter_agent_communication_metadata", trigger_turn=True)
    child.item(1.5, "agent_message", author="/root", recipient="/root/worker", content=[given("Count.")])
    child.says(2.5, "Counting.")
    child.item(4, "agent_message", author="/root", recipient="/root/worker",
               content=[{"type": "encrypted_content", "encrypted_content": "x"}])  # fmt: skip
    child.says(5, "Half.")
    root.row(6, "inter_agent_communication_metadata", trigger_turn=False)
    root.item(6, "agent_message", author="/root/worker", recipient="/root", content=[given("Half done.")])
    root.says(6.5, "Good.")
    notice = (
        '<subagent_notification>{"agent_path": "/root/worker", "status": {"completed": "9"}}</subagent_notification>'
    )
    root.row(7, "inter_agent_communication", author="/root/worker", recipient="/root", content=notice)
    root.says(8, "Nine.")
    for one in (root, child):
        one.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["import_report"]["unknown_kinds"] == {}
    assert of_type(trace, "spawn", "message", "return") == [
        "main spawn spawn_agent > worker",
        "main message send_message > worker",
        "worker message > main",
        "worker return > main",
    ]
    assert "main message send_message > worker -> worker inference" in links(trace, "message")
    assert "worker message > main -> main inference" in links(trace, "message")


def given(words: str) -> dict[str, str]:
    """A text that an agent is given to read."""
    return {"type": "input_text", "text": words}


# Ids that are used again


def test_outputs_of_calls_that_are_done_at_once_and_share_an_id_give_each_call_one_result(tmp_path: Path) -> None:
    codex = Codex(P)
    codex.typed(0, "Go.")
    for second in (1, 2):
        codex.item(second, "web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "q"})
    codex.output(3, "ws_1", "found")
    codex.says(4, "Done.")
    codex.write(tmp_path)

    trace = trace_of(tmp_path)
    results = [event["call_id"] for event in trace["events"] if event["type"] == "tool_result" and "call_id" in event]
    assert results == ["ws_1", "ws_1#2"]
    assert problems(trace) == {
        "second result of a call: the first counts": 1,
        "call id used again: numbered": 1,
    }
