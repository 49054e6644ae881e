"""Pi: sessions with both ends of each answer, sub-agents in results, branches, forks, copies and printed events."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from tests.conftest import run_corpus
from tests.trace.conversationlogs import (
    LOGS,
    START,
    by_agent,
    ledger,
    moment,
    of_type,
    parents,
    problems,
    tokens,
    told,
    trace_of,
    traces,
    write,
)

FIXTURES = sorted((LOGS / "pi").iterdir())
TEAM = next((LOGS / "pi" / "team").iterdir())
ID = "01a21eb0-0000-7000-8000-00000000000a"

Row = dict[str, Any]


def header(second: float = 0, **more: Any) -> Row:
    return {"type": "session", "version": 3, "id": ID, "timestamp": moment(second), "cwd": "/srv/plan", **more}


def milliseconds(second: float) -> int:
    return round((START + second) * 1_000)


def entry(second: float, message: Row | None = None, kind: str = "message", **more: Any) -> Row:
    """An entry, whose id is made of its time."""
    row = {"type": kind, "id": f"{milliseconds(second) % 2**32:08x}", "parentId": None, "timestamp": moment(second)}
    return {**row, **({"message": message} if message is not None else {}), **more}


def typed(second: float, text: str = "Go.") -> Row:
    return entry(second, {"role": "user", "content": text, "timestamp": milliseconds(second)})


def said(asked: float, *content: Row, usage: Any = (10, 5, 0, 0), cost: Any = 0, **more: Any) -> Row:
    """An answer; usage is input, output, cache reads and writes."""
    used: Any = usage
    if isinstance(usage, tuple):
        used = dict(zip(("input", "output", "cacheRead", "cacheWrite"), usage, strict=True)) | {"cost": {"total": cost}}
    return {"role": "assistant", "content": list(content), "model": "m", "usage": used, "stopReason": "stop",
            "timestamp": milliseconds(asked), **more}  # fmt: skip


def answer(asked: float, ended: float, *content: Row, **more: Any) -> Row:
    return entry(ended, said(asked, *content, **more))


def call(name: str, tool: str = "bash") -> Row:
    return {"type": "toolCall", "id": name, "name": tool, "arguments": {"command": "ls"}}


def done(second: float, name: str, *, failed: bool = False, **more: Any) -> Row:
    message = {"role": "toolResult", "toolCallId": name, "toolName": "t", "content": [{"type": "text", "text": "x"}]}
    return entry(second, {**message, "isError": failed, "timestamp": milliseconds(second), **more})


def child(agent: str, *messages: Row, **more: Any) -> Row:
    return {"agent": agent, "task": "t", "exitCode": 0, "messages": list(messages), **more}


def team(mode: str, *results: Row) -> Row:
    return {"details": {"mode": mode, "results": list(results)}}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_fixture_gives_what_its_rows_say(path: Path) -> None:
    assert told(trace_of(path)) == (LOGS / "told" / "pi" / f"{path.stem}.txt").read_text("utf-8")


def test_an_answer_has_both_ends_and_the_cost_that_the_log_states(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [header(), typed(0), answer(0.5, 4, usage=(1, 2, 3, 4), cost=0.25)])

    (event,) = [event for event in trace_of(path)["events"] if event["type"] == "inference"]
    assert (event["t"], event["t_request"], event["t_end"]) == (0.5, 0.5, 4)
    assert (event["cost_usd"], event["finish_reason"]) == (0.25, "stop")
    assert tokens(trace_of(path)) == {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "reasoning": 0}
    screen = json.loads(run_corpus("trace", "doctor", str(path), "--format", "json").stdout)
    assert screen["sessions"][0]["cost_usd"]["known"] == 0.25


def test_an_answer_that_took_long_did_not_wait_before_it_began(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [header(), typed(0), answer(0.5, 400, usage=(1, 2, 3, 4))])

    (session,) = json.loads(run_corpus("trace", "doctor", str(path), "--format", "json").stdout)["sessions"]
    assert (session["open_calls"], session["worked"]["if_working"]) == ([], 399.5)


def test_a_tool_works_as_long_as_it_takes_since_nobody_is_asked_for_leave(tmp_path: Path) -> None:
    rows = [header(), typed(0), answer(0, 2, call("c")), done(1_802, "c"), answer(1_802, 1_804)]
    path = write(tmp_path / "s.jsonl", rows)

    (session,) = json.loads(run_corpus("trace", "doctor", str(path), "--format", "json").stdout)["sessions"]
    assert (session["open_calls"], session["worked"]["if_waiting"]) == ([], 1_804)


def test_a_cost_of_nothing_is_a_price_that_the_program_does_not_know(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [header(), typed(0), answer(0.5, 4)])

    assert "cost_usd" not in json.dumps(trace_of(path))


def test_a_person_who_breaks_off_an_answer_leaves_its_tokens_unknown(tmp_path: Path) -> None:
    rows = [header(), typed(0), answer(0, 3, usage=(0, 0, 0, 0), stopReason="aborted"), typed(10), answer(10, 12)]
    trace = trace_of(write(tmp_path / "s.jsonl", rows))

    assert of_type(trace, "human_intervention")[1:] == [
        "user human_intervention > main (cancelled)", "user human_intervention > main",
    ]  # fmt: skip
    assert trace["reasons"] == {"costs.tokens": "answers without usage: 1"}


def test_an_answer_that_the_service_refused_was_paid_nothing(tmp_path: Path) -> None:
    refused = answer(0, 1, usage=(0, 0, 0, 0), stopReason="error", errorMessage="overloaded")
    trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), refused, answer(2, 4)]))

    assert of_type(trace, "inference") == ["main inference (error model_error)", "main inference"]
    assert trace["costs"]["tokens"] == 15


def test_a_summary_was_paid_unless_an_extension_wrote_it(tmp_path: Path) -> None:
    for kind in ("compaction", "branch_summary"):
        for by_extension in (False, True):
            summary = entry(6, kind=kind, summary="All.", fromHook=by_extension)
            trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), answer(0, 4), summary, typed(60)]))

            assert (trace["costs"]["tokens"] is None) is not by_extension, kind
            assert max(event.get("t_end", 0) for event in trace["events"] if event["agent"] == "main") <= 6


def test_what_extensions_insert_is_read_by_the_model_and_typed_by_nobody(tmp_path: Path) -> None:
    inserted = [entry(5, kind="custom_message", content="Mind."), entry(6, {"role": "custom", "content": "Mind."})]
    trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), answer(0, 4), *inserted, answer(7, 8)]))

    assert len(of_type(trace, "human_intervention")) == 1
    assert [event["t"] for event in trace["events"] if event["type"] == "inference"] == [0, 7]


def test_a_tool_that_asks_a_person_waits_for_them(tmp_path: Path) -> None:
    rows = [header(), typed(0), answer(0, 2, call("c", "question")), done(62, "c"), answer(62, 64)]
    trace = trace_of(write(tmp_path / "s.jsonl", rows))

    waits = [event for event in trace["events"] if event["type"] == "human_intervention" and event["t_end"] > 0]
    assert [(event["t"], event["t_end"]) for event in waits] == [(2, 62)]


# Sub-agents


def test_sub_agents_one_after_another_end_where_the_next_begins(tmp_path: Path) -> None:
    chain = team("chain", child("a", said(2, usage=(1, 1, 0, 0))), child("b", said(7, usage=(2, 2, 0, 0))))
    trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), answer(0, 1, call("c")), done(20, "c", **chain)]))

    spans = {event["agent"]: (event["t"], event["t_end"]) for event in trace["events"] if event["type"] == "inference"}
    assert {agent: spans[agent] for agent in ("a", "b")} == {"a": (2, 7), "b": (7, 20)}
    assert parents(trace) == {"user": "", "main": "", "a": "main", "b": "main"}
    assert of_type(trace, "return") == ["a return > main", "b return > main"]


def test_of_sub_agents_at_once_nobody_knows_when_the_last_answer_ended(tmp_path: Path) -> None:
    both = team("parallel", child("a", said(2), said(5)), child("a", said(2)))
    trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), answer(0, 1, call("c")), done(20, "c", **both)]))

    ends = [
        (event["agent"], event["t_end"])
        for event in trace["events"]
        if event["agent"] in ("a", "a#2") and "t_end" in event
    ]
    assert ends == [("a", 5), ("a#2", 2), ("a", 5)]


def test_a_sub_agent_may_have_sub_agents(tmp_path: Path) -> None:
    inner = done(6, "d", **team("single", child("below", said(4, usage=(3, 3, 0, 0)))))["message"]
    outer = team("single", child("above", said(2, call("d"), usage=(2, 2, 0, 0)), inner, said(7)))
    trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), answer(0, 1, call("c")), done(9, "c", **outer)]))

    assert parents(trace) == {"user": "", "main": "", "above": "main", "below": "above"}
    assert by_agent(trace) == {
        "main": (10, 5, 0, 0, 0), "above": (12, 7, 0, 0, 0), "below": (3, 3, 0, 0, 0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "said_of_it"),
    [
        ({"exitCode": 1}, " (error agent_error)"),
        ({"stopReason": "error"}, " (error agent_error)"),
        ({"stopReason": "aborted"}, " (cancelled)"),
        ({}, ""),
    ],
)
def test_a_return_says_how_the_sub_agent_ended(tmp_path: Path, ending: Row, said_of_it: str) -> None:
    one = team("single", child("a", said(2), **ending))
    trace = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), answer(0, 1, call("c")), done(9, "c", **one)]))

    assert of_type(trace, "return") == [f"a return > main{said_of_it}"]


def test_a_sub_agent_that_there_is_none_of_is_a_failed_call(tmp_path: Path) -> None:
    unknown = team("single", child("nobody", exitCode=1))
    rows = [header(), typed(0), answer(0, 1, call("c")), done(2, "c", failed=True, **unknown), answer(2, 3)]
    trace = trace_of(write(tmp_path / "s.jsonl", rows))

    assert of_type(trace, "spawn", "tool_result") == ["main tool_result bash (error tool_error)"]
    assert problems(trace) == {}


def spent(agent: str, *usage: int, cost: float = 0, **more: Any) -> Row:
    """The result of a sub-agent, of whose answers it has but the sum of their usage."""
    used = dict(zip(("input", "output", "cacheRead", "cacheWrite"), usage, strict=True))
    return {"agent": agent, "exitCode": 0, "usage": {**used, "cost": cost, "turns": 2}, **more}


def test_of_a_sub_agent_of_which_only_the_usage_is_known_one_answer_stands_for_all(tmp_path: Path) -> None:
    one = spent("scout", 7, 3, 2, 1, cost=0.5, model="m", finalOutput="Found.", progressSummary={"durationMs": 4_000})
    rows = [header(), typed(0), answer(0, 1, call("c")), done(9, "c", **team("single", one)), answer(9, 10)]
    trace = trace_of(write(tmp_path / "s.jsonl", rows))

    (stand_in,) = [event for event in trace["events"] if (event["agent"], event["type"]) == ("scout", "inference")]
    assert (stand_in["t"], stand_in["t_end"], stand_in["cost_usd"]) == (5, 9, 0.5)
    assert by_agent(trace) == {"main": (20, 10, 0, 0, 0), "scout": (7, 3, 2, 1, 0)}
    assert ledger(trace)["counted: total of a sub-agent, whose answers are not in the log"] == 1
    assert of_type(trace, "return") == ["scout return > main"]
    assert problems(trace) == {}


NAME = f"2031-06-01T08-00-00-000Z_{ID}"


def session_with(folder: Path, *rows: Row, **children: list[Row]) -> Path:
    """Write a session and those of its sub-agents, by the names of their runs; `__` begins the name of one below."""
    for run, its_rows in children.items():
        path = folder / NAME / "/run-0/session/".join(run.split("__")) / "run-0" / "session.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, its_rows)
    return write(folder / f"{NAME}.jsonl", [header(), typed(0), *rows])


def of_run(run: str, *usage: int, **more: Any) -> Row:
    return spent("scout", *usage, sessionFile=f"/home/somebody/sessions/{NAME}/{run}/run-0/session.jsonl", **more)


def child_rows(*answers: Row) -> list[Row]:
    return [{**header(), "id": ID[::-1]}, typed(2), *answers]


@pytest.mark.parametrize("is_named", [True, False], ids=["the session is named", "its folder is named"])
def test_the_files_of_sub_agents_belong_to_their_session(tmp_path: Path, is_named: bool) -> None:
    result = team("single", of_run("r1", 9, 5, 0, 0))
    rows = [answer(0, 1, call("c")), done(9, "c", **result), answer(9, 10)]
    first, last = answer(2, 4, call("d"), usage=(4, 2, 0, 0)), answer(5, 8, usage=(5, 3, 0, 0))
    path = session_with(tmp_path, *rows, r1=child_rows(first, done(5, "d"), last))

    (trace,) = traces(path if is_named else tmp_path)
    assert parents(trace) == {"user": "", "main": "", "scout": "main"}
    assert by_agent(trace) == {"main": (20, 10, 0, 0, 0), "scout": (9, 5, 0, 0, 0)}
    assert [(event["t"], event["t_end"]) for event in trace["events"] if event["agent"] == "scout" and "t_end" in event] == [
        (2, 4), (5, 8),
    ]  # fmt: skip
    assert of_type(trace, "return") == ["scout return > main"]
    assert ledger(trace)["left out: total of a sub-agent, whose answers are counted"] == 1
    assert problems(trace) == {}


def test_a_file_of_a_sub_agent_alone_is_read(tmp_path: Path) -> None:
    session_with(tmp_path, r1=child_rows(answer(2, 4)))
    trace = trace_of(tmp_path / NAME / "r1" / "run-0" / "session.jsonl")

    assert trace["costs"]["tokens"] == 15


def test_sub_agents_of_sub_agents_lie_below_them(tmp_path: Path) -> None:
    rows = [answer(0, 1, call("c")), done(9, "c", **team("single", of_run("r1", 10, 5, 0, 0)))]
    inner = team("single", {**of_run("r1/run-0/session/r2", 10, 5, 0, 0), "agent": "reader"})
    above = child_rows(answer(2, 3, call("d")), done(8, "d", **inner))
    path = session_with(tmp_path, *rows, r1=above, r1__r2=child_rows(answer(4, 6)))

    (trace,) = traces(path)
    assert parents(trace) == {"user": "", "main": "", "scout": "main", "reader": "scout"}
    assert trace["costs"]["tokens"] == 45


def test_a_sub_agent_in_the_background_returns_when_the_session_is_told(tmp_path: Path) -> None:
    begun = done(2, "c", details={"mode": "single", "results": [], "asyncId": "r1"})
    told_of = entry(12, kind="custom_message", content="Background run finished.")
    rows = [answer(0, 1, call("c")), begun, answer(2, 3), told_of, answer(12, 13)]
    path = session_with(tmp_path, *rows, **{"async-r1": child_rows(answer(2, 9))})

    (trace,) = traces(path)
    spawned, returned = (
        next(event for event in trace["events"] if event["type"] == kind) for kind in ("spawn", "return")
    )
    assert (spawned["t"], returned["t"], returned["agent"]) == (1, 12, "agent")
    assert trace["costs"]["tokens"] == 60
    assert problems(trace) == {}


def test_a_sub_agent_that_begins_with_a_fork_repeats_its_session(tmp_path: Path) -> None:
    asked = answer(0, 1, call("c"))
    result = team("single", of_run("r1", 10, 5, 0, 0))
    path = session_with(tmp_path, asked, done(9, "c", **result), r1=child_rows(typed(0), asked, answer(2, 4)))

    (trace,) = traces(path)
    assert by_agent(trace) == {"main": (10, 5, 0, 0, 0), "scout": (10, 5, 0, 0, 0)}
    assert ledger(trace)["left out: usage of an answer that the log states again"] == 1


def test_sub_agents_at_once_that_are_answered_in_one_instant_are_two(tmp_path: Path) -> None:
    result = team("parallel", of_run("r1", 1, 1, 0, 0), of_run("r2", 2, 2, 0, 0))
    one, other = (child_rows(answer(2, 4, usage=(number, number, 0, 0))) for number in (1, 2))
    path = session_with(tmp_path, answer(0, 1, call("c")), done(9, "c", **result), r1=one, r2=other)

    (trace,) = traces(path)
    assert by_agent(trace) == {
        "main": (10, 5, 0, 0, 0), "scout": (1, 1, 0, 0, 0), "scout#2": (2, 2, 0, 0, 0),
    }  # fmt: skip


def test_sub_agents_belong_to_the_session_that_their_folder_is_called_by(tmp_path: Path) -> None:
    session_with(tmp_path, answer(0, 1), r1=child_rows(answer(2, 4)))
    write(tmp_path / "other.jsonl", [{**header(), "id": ID[::-1].replace("0", "9")}, typed(0), answer(0, 1)])

    assert sorted(trace["costs"]["tokens"] for trace in traces(tmp_path)) == [15, 30]


# Versions, forks and copies


def test_version_1_has_neither_ids_nor_parents_nor_totals(tmp_path: Path) -> None:
    rows = [
        {**header(5), "provider": "p", "modelId": "m"},
        typed(0),
        answer(0, 2, call("c")),
        done(3, "c"),
        answer(3, 4),
    ]
    for row in rows[1:]:
        del row["id"], row["parentId"]
    del rows[0]["version"]
    trace = trace_of(write(tmp_path / "s.jsonl", rows))

    assert trace["costs"] == {"tokens": 30, "wall_clock_s": 4, "tool_calls": 1, "messages": 0}
    assert {event["source"]["version"] for event in trace["events"]} == {"1"}


def test_a_session_that_was_saved_as_it_grew_counts_once(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in TEAM.read_text("utf-8").splitlines()]
    whole = trace_of(write(tmp_path / "whole" / "s.jsonl", rows))
    for row in rows[9:]:  # a copy that another version has read and written again, with new ids
        row["id"] = row["id"][::-1]
    write(tmp_path / "all" / "old" / "s.jsonl", rows[:14])
    shutil.copy(tmp_path / "whole" / "s.jsonl", tmp_path / "all" / "s.jsonl")

    (trace,) = traces(tmp_path / "all")
    assert (tokens(trace), trace["costs"]) == (tokens(whole), whole["costs"])
    assert ledger(trace)["left out: usage of an answer that the log states again"] == 4


def test_sums_over_a_session_and_its_fork_count_each_answer_once(tmp_path: Path) -> None:
    rows = TEAM.read_bytes().splitlines()
    fork = [json.dumps({**header(200), "id": ID, "parentSession": str(TEAM)}).encode(), *rows[1:15]]
    (tmp_path / "team.jsonl").write_bytes(b"\n".join(rows))
    (tmp_path / "fork.jsonl").write_bytes(b"\n".join(fork))

    screen = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--format", "json").stdout)
    alone = json.loads(run_corpus("trace", "doctor", str(tmp_path / "team.jsonl"), "--format", "json").stdout)
    assert len(screen["sessions"]) == 2
    assert screen["all"]["tokens"]["known"] == alone["sessions"][0]["tokens"]["known"]


def test_two_answers_of_one_instant_in_one_file_are_two(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [header(), typed(0), answer(1, 1), answer(1, 1)])

    assert trace_of(path)["costs"]["tokens"] == 30


@pytest.mark.parametrize("first", [typed(0), answer(0, 1), done(0, "c")], ids=["user", "assistant", "toolResult"])
def test_a_session_that_has_lost_its_header_is_recognised(tmp_path: Path, first: Row) -> None:
    trace = trace_of(write(tmp_path / "lost.jsonl", [first, answer(2, 4)]))

    assert (trace["system"], trace["trace_id"]) == ("pi", "lost.jsonl")


def test_a_session_in_which_nothing_ran_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [header(), entry(0, kind="model_change")])

    with pytest.raises(DataFileError, match="no message of an agent"):
        trace_of(path)


def test_rows_of_unknown_kinds_are_reported(tmp_path: Path) -> None:
    odd = [entry(1, kind="dream"), entry(1, {"role": "oracle"}), entry(1, kind="")]
    report = trace_of(write(tmp_path / "s.jsonl", [header(), typed(0), *odd, answer(2, 3)]))["import_report"]

    assert report["unknown_kinds"] == {"(no type)": 1, "dream": 1, "message of oracle": 1}
