"""ATOF: scopes of two events, calls that spawn, usage that only payloads tell, sessions of several outermost scopes."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from tests.trace.conversationlogs import (
    LOGS,
    START,
    by_agent,
    moment,
    of_type,
    problems,
    tokens,
    told,
    trace_of,
    traces,
    write,
)

FIXTURES = sorted((LOGS / "atof").iterdir())
TEAM = LOGS / "atof" / "team.jsonl"

Event = dict[str, Any]


def name(number: int) -> str:
    return f"01a21eaf-0000-7000-8000-{number:012}"


def event(phase: str, category: str, number: int, above: int, second: float, **more: Any) -> Event:
    """One of the two events of a scope; `above` 0 is none."""
    return {
        "atof_version": "0.1", "kind": "scope", "scope_category": phase, "category": category, "uuid": name(number),
        "parent_uuid": name(above) if above else None, "name": f"{category}-{number}", "timestamp": moment(second),
        "attributes": [], "category_profile": None, "data": None, "data_schema": None, "metadata": None, **more,
    }  # fmt: skip


def scope(category: str, number: int, above: int, begin: float, end: float, **at_end: Any) -> list[Event]:
    return [event("start", category, number, above, begin), event("end", category, number, above, end, **at_end)]


def answer(number: int, above: int, begin: float, end: float, **data: Any) -> list[Event]:
    return scope("llm", number, above, begin, end, data=data, category_profile={"model_name": "m"})


def usage_of(tmp_path: Path, **data: Any) -> tuple[int, ...]:
    """The tokens of an answer with these data: input, output, cache reads, cache writes, reasoning."""
    path = write(tmp_path / "x.jsonl", [*scope("agent", 1, 0, 0, 9), *answer(2, 1, 1, 2, **data)])
    return tuple(tokens(trace_of(path)).values())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_fixture_gives_what_its_events_say(path: Path) -> None:
    assert told(trace_of(path)) == (LOGS / "told" / "atof" / f"{path.stem}.txt").read_text("utf-8")


@pytest.mark.parametrize(
    "stamp", [lambda s: moment(s), lambda s: (START + s) * 1_000_000, lambda s: moment(s)[:-1] + "000000+00:00"]
)
def test_times_are_texts_or_microseconds(tmp_path: Path, stamp: Any) -> None:
    rows = [*scope("agent", 1, 0, 0, 9), *answer(2, 1, 1, 3)]
    for row, second in zip(rows, (0, 9, 1, 3), strict=True):
        row["timestamp"] = stamp(second)

    (found,) = [one for one in trace_of(write(tmp_path / "x.jsonl", rows))["events"] if one["type"] == "inference"]
    assert found["t_end"] - found["t"] == 2


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}},
         (5, 5, 4, 0, 0)),
        ({"usage": {"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}}},
         (9, 5, 0, 0, 2)),
        ({"usage": {"input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": 4,
                    "cache_creation_input_tokens": 3}}, (9, 5, 4, 3, 0)),
        ({"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 2,
                            "cachedContentTokenCount": 4}}, (5, 7, 4, 0, 2)),
        ({"token_usage": {"prompt_tokens": 9, "completion_tokens": 5}}, (9, 5, 0, 0, 0)),
        ({"usage": {"prompt_tokens": "many"}}, (0, 0, 0, 0, 0)),
        ({"usage": []}, (0, 0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_without_relay_the_usage_is_what_the_service_has_answered(
    tmp_path: Path, data: Any, expected: tuple[int, ...]
) -> None:
    assert usage_of(tmp_path, **data) == expected


@pytest.mark.parametrize(
    ("metadata", "data", "error"),
    [
        (
            {"otel.status_code": "ERROR", "exception.type": "ValueError", "error.type": "internal_error"},
            None,
            "ValueError",
        ),
        ({"otel_status_code": "ERROR", "error_type": "internal_error"}, None, "internal_error"),
        ({"otel.status_code": "ERROR"}, None, "other"),
        ({"otel.status_code": "OK"}, {"error": "none"}, ""),
        (None, {"error": "KeyError: garden"}, "KeyError"),
        (None, {"error": None}, ""),
        (None, "error", ""),
    ],
)
def test_a_tool_has_failed_if_the_log_says_so(tmp_path: Path, metadata: Any, data: Any, error: str) -> None:
    rows = [*scope("agent", 1, 0, 0, 9), *scope("tool", 2, 1, 1, 2, metadata=metadata, data=data)]
    trace = trace_of(write(tmp_path / "x.jsonl", rows))

    said = f" (error {error})" if error else ""
    assert of_type(trace, "tool_result") == [f"agent-1 tool_result tool-2{said}"]


def test_an_agent_belongs_to_the_only_call_that_was_open_all_its_time(tmp_path: Path) -> None:
    rows = [
        *scope("agent", 1, 0, 0, 20), *scope("tool", 2, 1, 1, 9), *scope("agent", 3, 1, 2, 8), *answer(4, 3, 3, 4),
        *scope("tool", 5, 1, 10, 19), *scope("tool", 6, 1, 10, 19), *scope("agent", 7, 1, 11, 18), *answer(8, 7, 12, 13),
    ]  # fmt: skip
    trace = trace_of(write(tmp_path / "x.jsonl", rows))

    assert of_type(trace, "spawn") == ["agent-1 spawn tool-2 > agent-3", "agent-1 spawn > agent-7"]
    assert of_type(trace, "tool_call") == ["agent-1 tool_call tool-5", "agent-1 tool_call tool-6"]


def test_an_agent_may_name_the_call_that_has_spawned_it(tmp_path: Path) -> None:
    rows = [
        *scope("agent", 1, 0, 0, 20),
        *(row for number in (2, 3) for row in scope("tool", number, 1, 1, 19)),
        *scope("agent", 4, 1, 2, 8),
        *answer(5, 4, 3, 4),
    ]
    for row in rows:
        if row["category"] == "tool":
            row["category_profile"] = {"tool_call_id": f"c{row['uuid'][-1]}"}
    rows[-4]["metadata"] = {"tool_call_id": "c3"}

    trace = trace_of(write(tmp_path / "x.jsonl", rows))
    assert of_type(trace, "spawn") == ["agent-1 spawn tool-3 > agent-4"]


def test_what_was_broken_off_has_no_end(tmp_path: Path) -> None:
    rows = [event("start", "agent", 1, 0, 0), event("start", "llm", 2, 1, 1), event("start", "tool", 3, 1, 2)]
    trace = trace_of(write(tmp_path / "x.jsonl", rows))

    assert [one["type"] for one in trace["events"] if "t_end" in one] == []
    assert of_type(trace, "tool_call") == ["agent-1 tool_call tool-3"]


def test_an_end_without_a_beginning_is_kept(tmp_path: Path) -> None:
    rows = [*scope("agent", 1, 0, 0, 9), event("end", "llm", 2, 1, 4)]
    trace = trace_of(write(tmp_path / "x.jsonl", rows))

    assert of_type(trace, "inference") == ["agent-1 inference"]
    assert problems(trace) == {"span without a beginning: one that fits is taken": 1}


def test_the_runtime_has_a_root_without_events(tmp_path: Path) -> None:
    rows = [row for number in (1, 5) for row in scope("agent", number, 9, number, number + 3)]
    rows += [row for number in (1, 5) for row in answer(number + 1, number, number + 1, number + 2)]
    for row in rows:
        row["propagation_root_uuid"] = name(1 if row["uuid"] in (name(1), name(2)) else 5)

    found = traces(write(tmp_path / "x.jsonl", rows))
    assert [trace["trace_id"] for trace in found] == [name(1), name(5)]
    assert [problems(trace) for trace in found] == [{}, {}]


def test_a_stream_in_two_files_is_one_trace_and_a_copy_counts_once(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in TEAM.read_text("utf-8").splitlines()]
    write(tmp_path / "1.jsonl", rows[:15])
    write(tmp_path / "2.jsonl", rows[10:])

    (trace,) = traces(tmp_path)
    assert tokens(trace) == tokens(trace_of(TEAM))
    assert by_agent(trace) == by_agent(trace_of(TEAM))
    assert trace["import_report"]["dropped"]["copy of a span"]["number"] == 5


def test_events_of_other_kinds_are_reported(tmp_path: Path) -> None:
    odd = [
        event("start", "dream", 3, 1, 2), event("end", "dream", 3, 1, 3), event("middle", "llm", 4, 1, 3),
        {**event("start", "llm", 5, 1, 3), "uuid": None}, {"atof_version": "0.1", "kind": "mark", "name": "compaction"},
    ]  # fmt: skip
    report = trace_of(write(tmp_path / "x.jsonl", [*scope("agent", 1, 0, 0, 9), *answer(2, 1, 1, 2), *odd]))[
        "import_report"
    ]

    assert report["unknown_kinds"] == {"scope of category dream": 1}
    assert report["skipped"] == {"mark compaction": 1}
    assert report["dropped"]["not a span, or a span without an id"]["number"] == 2


def test_scopes_of_which_nobody_says_what_they_are_hold_no_run(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [row for number in (1, 2) for row in scope("unknown", number, number - 1, 0, 9)])

    with pytest.raises(DataFileError, match="no agent, model call or tool call in the 2 spans"):
        traces(path)


def test_a_chain_of_scopes_may_be_as_deep_as_it_is_long(tmp_path: Path) -> None:
    rows = [event("start", "function", number, number - 1, number / 1_000) for number in range(1, 20_001)]
    rows += [event("end", "function", number, number - 1, 60) for number in reversed(range(1, 20_001))]
    trace = trace_of(write(tmp_path / "x.jsonl", [*rows, *answer(20_001, 20_000, 30, 31)]))

    assert of_type(trace, "inference") == ["function-1 inference"]


def test_scopes_in_a_circle_are_cut(tmp_path: Path) -> None:
    rows = [*scope("agent", 1, 2, 0, 9), *scope("agent", 2, 1, 0, 9), *answer(3, 1, 1, 2)]

    assert of_type(trace_of(write(tmp_path / "x.jsonl", rows)), "inference") != []
