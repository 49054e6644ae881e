"""Calls that perhaps waited while they were open, and the range of all that depends on them."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.measures.work import DEFINITIONS
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.open_calls import Cause
from orchtrace_corpus.trace.view.timing import longest_path
from tests.trace.conversationlogs import Claude, Codex, text, trace_of, use
from tests.trace.spanlogs import checked
from tests.trace.traces import documents, event, raw, trace


def calls(*durations: float, tool: str = "Bash") -> dict[str, Any]:
    """A run of one agent that calls a tool so often, one second after another."""
    events, at = [], 0.0
    for number, seconds in enumerate(durations):
        events.append(event(f"c{number}", at, "tool_call", "main", tool=tool, t_end=at + seconds))
        at += seconds + 1
    return raw(events)


def found(document: dict[str, Any]) -> list[tuple[str, float | None]]:
    view = TraceView(trace(document))
    return [(view.trace.events[one.event].id, one.usual) for one in view.open_calls]


@pytest.mark.parametrize(
    ("tool", "durations", "open_ones"),
    [
        ("Bash", (4161,), [("c0", None)]),
        ("Bash", (170,), []),
        ("Bash", (3, 2, 4, 190), [("c3", 3)]),
        ("Bash", (60, 50, 70, 500), []),
        ("Bash", (60, 50, 40, 501), [("c3", 50)]),
        ("shell", (4161, 3000, 2000), [("c0", None), ("c1", None), ("c2", None)]),
        ("Edit", (326,), [("c0", None)]),
        ("Edit", (30,), []),
        ("Read", (100, 100, 100, 100, 100), [(f"c{number}", 100) for number in range(5)]),
        ("functions.apply_patch", (31,), [("c0", None)]),
        ("simulate", (4161,), []),
        ("simulate", (600, 610, 590, 605), []),
        ("simulate", (6, 6, 6, 605), [("c3", 6)]),
        ("", (4161,), []),
    ],
)
def test_a_call_is_open_where_it_takes_far_longer_than_its_tool(
    tool: str, durations: tuple[float, ...], open_ones: list[tuple[str, float | None]]
) -> None:
    assert found(calls(*durations, tool=tool)) == open_ones


@pytest.mark.parametrize(
    ("seconds", "fields", "is_open"),
    [
        (30, {"tokens": {"output": 0}}, False),
        (35, {"tokens": {"output": 50}}, False),
        (35.1, {"tokens": {"output": 50}}, True),
        (35.1, {"tokens": {"output": 5000, "reasoning": 4000}}, False),
        (335_424, {"tokens": {"output": 526}}, True),
        (180, {"model": "m"}, False),
        (181, {"model": "m"}, True),
        (3231, {"tokens": {"output": 1}, "token_basis": "placeholder"}, True),
        (3229, {"tokens": {"output": 1}, "token_basis": "placeholder"}, False),
        (181, {}, False),
    ],
    ids=["quick", "just quick enough", "slow", "much written", "days", "not counted", "not counted and long",
         "placeholder, longer than any answer", "placeholder", "stands for a life"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["inference", "orchestrator_decision"])
def test_an_answer_is_open_where_it_takes_far_longer_than_its_tokens_need(
    seconds: float, fields: dict[str, Any], kind: str, *, is_open: bool
) -> None:
    said, concluded = ([event("e", 0, kind, "a", t_end=seconds, **fields, **more)] for more in ({}, {"inferred": True}))

    assert found(raw(said)) == []
    assert found({**raw(concluded), "clock": {"unit": "step"}}) == []
    assert found(raw(concluded)) == ([("e", None)] if is_open else [])
    if is_open:
        (one,) = TraceView(trace(raw(concluded))).open_calls
        assert one.cause is Cause.ANSWER


def test_a_lead_whose_answer_came_late_has_a_range_of_work(tmp_path: Path) -> None:
    log = Claude()
    log.say(0, "Wait for them.")
    log.answer(2, "m1", text("I wait."))
    log.answer(400, "m2", text("Nobody came."))
    run = TraceView(trace(trace_of(log.write(tmp_path))))

    found = measure(run, ["worked", "elapsed", "span", "efficiency"])

    assert [one.cause for one in run.open_calls] == [Cause.ANSWER]
    assert found["worked"].range is not None
    assert found["elapsed"].range is None
    least, most = found["worked"].range
    assert most - least == pytest.approx(398)


def test_steps_are_no_seconds_and_nothing_is_far_longer() -> None:
    assert found({**calls(5000), "clock": {"unit": "step"}}) == []


def asking(*more: dict[str, Any], edges: str) -> list[tuple[str, float | None]]:
    events = [
        event("think", 0, "inference", "a", t_end=1),
        event("call", 1, "tool_call", "a", tool="Bash", call_id="c", t_end=9),
        event("guard", 2, "safety_event", "a"),
        *more,
    ]
    return found(raw(events, f"think>call {edges}"))


def test_a_call_that_asked_for_leave_is_open_unless_the_log_says_how_long_it_waited() -> None:
    answer = event("answer", 2, "human_intervention", "p", t_end=5)

    assert asking(edges="call>guard:safety_flow") == [("call", None)]
    assert asking(answer, edges="call>guard:safety_flow guard>answer:safety_flow") == []
    assert asking(edges="think>guard:safety_flow") == []
    assert asking(edges="call>guard") == []


def test_a_guard_that_works_or_fails_asks_nobody() -> None:
    events = [event("call", 0, "tool_call", "a", tool="Bash", call_id="c", t_end=9)]
    for guard in ({"t_end": 4}, {"status": "error"}):
        document = raw([*events, event("guard", 2, "safety_event", "a", **guard)], "call>guard:safety_flow")

        assert found(document) == []


def test_a_question_that_a_person_answers_while_another_agent_works_waited_for_the_answer() -> None:
    events = [
        event("other", 0, "inference", "b", t_end=9),
        event("ask", 1, "tool_call", "a", tool="AskUserQuestion", call_id="c", t_end=9),
        event("answer", 1, "human_intervention", "p", t_end=9),
    ]

    view = TraceView(trace(raw(events, "ask>answer")))

    assert view.open_calls == ()
    assert (view.timing.works, view.timing.waited) == ([9, 0, 0], 0)


def waiting(*, tool: str = "Bash", seconds: float = 4161.0) -> Claude:
    """A session in which pytest, which took 3 s, was open for more than an hour."""
    log = Claude()
    log.say(0, "run the tests")
    log.answer(4, "m1", use("t1", tool, command="pytest"), stop="tool_use")
    log.result(4 + seconds, "t1", "37 passed in 2.95s")
    log.answer(10 + seconds, "m2", text("all pass"))
    return log


def measured(log: Claude | Codex, folder: Path, *names: str) -> dict[str, tuple[float | None, float | None]]:
    run = checked(trace_of(log.write(folder)))
    return {name: (one.value, one.if_waiting) for name, one in measure(run, names).items()}


def test_a_wait_for_approval_makes_a_range_that_holds_the_work(tmp_path: Path) -> None:
    figures = measured(waiting(), tmp_path, "worked", "span", "elapsed", "speed_up", "parallelism")

    assert figures == {
        "worked": (4171, 10),
        "span": (4171, 10),
        "elapsed": (4171, None),
        "speed_up": (1, 10 / 4171),
        "parallelism": (1, None),
    }
    assert 10 <= 4 + 2.95 + 6 <= 4171


def test_a_run_without_open_calls_has_one_value_for_each(tmp_path: Path) -> None:
    figures = measured(waiting(seconds=12), tmp_path, "worked", "span", "elapsed", "speed_up")

    assert figures == {"worked": (22, None), "span": (22, None), "elapsed": (22, None), "speed_up": (1, None)}


def test_an_edit_never_works_for_minutes(tmp_path: Path) -> None:
    assert measured(waiting(tool="Edit", seconds=326), tmp_path, "worked") == {"worked": (336, 10)}


@given(documents())
def test_whatever_calls_are_taken_as_waits_no_path_gets_longer(document: dict[str, Any]) -> None:
    view = TraceView(trace(document))
    numbers = [number for number, one in enumerate(view.trace.events) if one.type == "tool_call"]
    lengths = [
        longest_path(times, times.works, overlapping=True).length
        for times in (view.timing.if_waiting(numbers[:count]) for count in range(len(numbers) + 1))
    ]

    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(lengths))


def test_what_depends_on_open_calls_is_measured_in_both_readings() -> None:
    run = TraceView(trace(calls(3, 2, 4, 1000)))

    figures = measure(run)

    assert [name for name, one in figures.items() if one.if_waiting is not None] == [
        "worked", "span", "speed_up", "efficiency", "brent_bound",
    ]  # fmt: skip
    assert {one.name for one in DEFINITIONS} >= {"worked", "span"}
    assert figures["span"].range == (9, 1009)
