"""Answers that several sessions have: sums count each once, whatever the order; a session alone counts its own file."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.measures.shared_answers import SharedAnswers
from tests.conftest import run_corpus
from tests.trace.conversationlogs import SESSION, Claude, ledger, of_type, problems, text, tokens, trace_of


def session(name: str, *answers: tuple[str, tuple[int, int, int, int]], marked: int = 0, **fields: Any) -> Claude:
    """A session with a prompt before each answer; the first ones marked as copied. Its rows have ids of its own."""
    log = Claude(f"{name}{SESSION[1:]}")
    for number, (answer, usage) in enumerate(answers):
        log.say(10 * number, f"Go on with {answer}.")
        log.answer(10 * number + 5, answer, text("Done."), usage=usage, **fields)
    for row in log.rows[: 2 * marked]:
        row["forkedFrom"] = {"sessionId": f"a{SESSION[1:]}", "messageUuid": "00000000-0000-4000-8000-000000000000"}
    return log


M1, M2, M3, M4 = (("m1", (100, 10, 0, 0)), ("m2", (200, 20, 0, 0)), ("m3", (50, 5, 0, 0)), ("m4", (50, 5, 0, 0)))


def forks(folder: Path, *, marked: bool) -> list[Path]:
    """A session of 330 tokens, and two that begin with a copy of it and spend 55 each."""
    return [
        session("a", M1, M2).write(folder),
        session("b", M1, M2, M3, marked=2 * marked).write(folder),
        session("c", M1, M2, M4, marked=2 * marked).write(folder),
    ]


def sums(*paths: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_corpus("trace", "doctor", *map(str, paths), "--format", "json").stdout)
    return found


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_sum_counts_a_copied_answer_once_whatever_the_order_of_files(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    paths = forks(tmp_path, marked=False)
    found = sums(*(paths[number] for number in order))

    assert sorted(one["tokens"]["known"] for one in found["sessions"]) == [330, 385, 385]
    assert found["all"] == {
        "events": 19,
        "errors": 0,
        "tokens": {"known": 440, "at_least": False},
        "cost_usd": {"known": None, "at_least": True},
        "copied_answers": {"answers": 4, "tokens": 660, "cost_usd": None},
        "answers_without_ids": 0,
    }


def test_the_list_of_sessions_says_what_was_counted_once(tmp_path: Path) -> None:
    forks(tmp_path, marked=False)
    lines = run_corpus("trace", "doctor", str(tmp_path)).stdout.splitlines()

    assert [line.split()[-1] for line in lines if line.startswith("all")] == ["440"]
    assert "In the last line, each answer counts once: 660 tokens of 4 answers are copies from other sessions." in lines


def test_an_import_takes_copies_off_its_sums_and_leaves_each_trace_its_own(tmp_path: Path) -> None:
    forks(tmp_path, marked=False)
    result = run_corpus("trace", "import", str(tmp_path))

    assert [json.loads(line)["costs"]["tokens"] for line in result.stdout.splitlines()] == [330, 385, 385]
    said = " ".join(result.stderr.split())
    assert "taken off: answers that another session of this import has (same message.id and requestId)" in said
    assert "all that is counted 4 400 40 440" in said
    assert "claude-x 400 40 440" in said
    assert "does not add up" not in said


def test_history_that_the_log_marks_as_copied_was_spent_elsewhere(tmp_path: Path) -> None:
    _, fork, _ = forks(tmp_path, marked=True)
    trace = trace_of(fork)

    assert tokens(trace)["input"], tokens(trace)["output"] == (50, 5)
    assert trace["costs"]["tokens"] == 55
    assert trace["costs"]["wall_clock_s"] == 5
    assert ledger(trace) == {
        "left out: history copied from another thread, counted there": 2,
        "counted: usage of the last row of an answer": 1,
    }
    copies = [event for event in trace["events"] if event.get("copied_context")]
    assert [(event["type"], event["tokens"]["input"]) for event in copies] == [("inference", 300)]
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"]
    assert problems(trace) == {}


def test_marked_copies_and_their_originals_are_counted_once(tmp_path: Path) -> None:
    found = sums(*forks(tmp_path, marked=True))

    assert found["all"]["tokens"]["known"] == 440
    assert found["all"]["copied_answers"]["answers"] == 0


def test_a_session_that_is_nothing_but_a_copy_spent_nothing(tmp_path: Path) -> None:
    trace = trace_of(session("b", M1, M2, marked=2).write(tmp_path))

    assert [event["type"] for event in trace["events"]] == ["inference"]
    assert trace["costs"]["tokens"] is None


def test_answers_without_ids_may_be_copies_which_is_said(tmp_path: Path) -> None:
    paths = [session(name, M1, requestId=None, uuid="row").write(tmp_path) for name in ("a", "b")]
    found = sums(*paths)

    assert found["all"]["tokens"]["known"] == 220
    assert found["all"]["answers_without_ids"] == 2
    note = "2 answers have no ids: other sessions may have them, too."
    assert note in run_corpus("trace", "doctor", str(tmp_path)).stdout.splitlines()
    assert note in run_corpus("trace", "import", str(tmp_path)).stderr.splitlines()
    session("b", M2).write(tmp_path)
    note = "1 answer has no ids: other sessions may have it, too."
    assert note in run_corpus("trace", "doctor", str(tmp_path)).stdout.splitlines()
    assert note in run_corpus("trace", "import", str(tmp_path)).stderr.splitlines()


LONG = "msg_01MadeUpForThisTest00001"
"""As long as the ids of the service: nobody makes such a one up twice."""


@pytest.mark.parametrize(
    "fields",
    [({"requestId": None}, {"requestId": None}), ({}, {"requestId": None}), ({}, {"requestId": "req_other"})],
    ids=["without", "in one", "another"],
)
def test_a_long_id_of_a_message_alone_is_that_of_one_answer(
    tmp_path: Path, fields: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    answer = (LONG, (100, 10, 0, 0))
    paths = [session(name, answer, **more).write(tmp_path) for name, more in zip("ab", fields, strict=True)]
    found = sums(*paths)

    assert (found["all"]["tokens"]["known"], found["all"]["answers_without_ids"]) == (110, 0)


def test_a_row_that_was_saved_in_several_folders_is_one_answer_by_its_own_id(tmp_path: Path) -> None:
    log = session("a", M1, M2, requestId=None)
    for answer in log.rows[1::2]:
        del answer["message"]["id"]
    paths = []
    for name, number in (("p0", 2), ("p1", 4), ("p2", 4)):
        copy = Claude(log.session)
        copy.rows = log.rows[:number]
        paths.append(copy.write(tmp_path / name))
    found = sums(*paths)

    assert (found["all"]["tokens"]["known"], found["all"]["answers_without_ids"]) == (330, 0)


def test_one_answer_in_two_files_of_a_session_counts_once_without_a_request(tmp_path: Path) -> None:
    main = session("a", (LONG, (100, 10, 0, 0)), requestId=None)
    below = Claude(main.session, agent="abc")
    below.say(0, "Go.")
    below.answer(5, LONG, text("Done."), usage=(100, 10, 0, 0), requestId=None)
    below.write(tmp_path)
    main.write(tmp_path)

    assert sum(tokens(trace_of(tmp_path)).values()) == 110


def test_two_answers_on_one_line_have_each_its_own_id(tmp_path: Path) -> None:
    for name in ("a", "b"):
        log = session(name, M1, M2)
        first, second = (json.dumps(row).encode() for row in log.rows[1::2])
        log.rows = [log.rows[0], first + second + b"\n"]
        log.write(tmp_path)
    found = sums(tmp_path)

    assert (found["all"]["tokens"]["known"], found["all"]["answers_without_ids"]) == (330, 0)


def test_of_copies_that_differ_the_larger_counts_in_any_order(tmp_path: Path) -> None:
    logs = [session("a", M1), session("b", ("m1", (100, 40, 0, 0))), session("c", ("m1", (100, 1, 0, 0)))]
    for log in logs:
        log.write(tmp_path)
    read = []
    for one in importers.import_sessions(importers.sessions(str(tmp_path)), Privacy(b"salt")):
        assert one.trace is not None
        read.append((one.trace, one.answers))
    taken_off = set()
    for order in permutations(read):
        shared = SharedAnswers()
        for trace, ids in order:
            shared.add(trace, ids)
        taken_off.add((shared.answers, shared.tokens))

    assert taken_off == {(2, 211.0)}
