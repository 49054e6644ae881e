"""ATIF trajectories: what becomes of steps, calls, references, totals; what is counted; what is damaged."""

import json
import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers import atif
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.import_report import Problem
from tests.conftest import run_corpus
from tests.effort import assert_grows, tries
from tests.trace.conversationlogs import (
    LOGS,
    documented,
    ledger,
    ledger_lines,
    links,
    of_type,
    parents,
    problems,
    tokens,
    told,
    trace_of,
    traces,
)

FIXTURES = LOGS / "atif"
GOOD = [json.loads(path.read_bytes()) for path in sorted(FIXTURES.rglob("*.json"))]


def step(source: str, message: Any = "", **more: Any) -> dict[str, Any]:
    return {"source": source, "message": message, **more}


def spent(prompt: Any, completion: Any, cached: Any = None, **extra: Any) -> dict[str, Any]:
    """The metrics of a step."""
    found = {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached, "extra": extra or None}
    return {"metrics": {name: value for name, value in found.items() if value is not None}}


def call(use: str, tool: str = "run", **more: Any) -> dict[str, Any]:
    return {"tool_call_id": use, "function_name": tool, "arguments": {}, **more}


def observed(*results: dict[str, Any]) -> dict[str, Any]:
    return {"observation": {"results": list(results)}}


def result(use: str, *children: str, **more: Any) -> dict[str, Any]:
    """The result of a call, with references to embedded trajectories."""
    found = {"source_call_id": use, "content": "x", **more}
    return {**found, "subagent_trajectory_ref": [{"trajectory_id": name} for name in children]} if children else found


def trajectory(*steps: dict[str, Any], name: str = "lead", timed: bool = True, **more: Any) -> dict[str, Any]:
    """A trajectory, with a step every ten seconds unless a step says otherwise."""
    numbered = [
        {"step_id": number, **({"timestamp": f"2026-03-01T09:0{number // 6}:{number % 6}0Z"} if timed else {}), **one}
        for number, one in enumerate(steps, 1)
    ]
    agent = {"name": name, "version": "1"}
    return {"schema_version": "ATIF-v1.7", "session_id": "s1", "agent": agent, "steps": numbered, **more}


@pytest.fixture
def made(tmp_path: Path) -> Callable[[Any], dict[str, Any]]:
    """Writes a document and imports it."""

    def trace(document: Any) -> dict[str, Any]:
        (tmp_path / "trajectory.json").write_text(json.dumps(document), "utf-8")
        return trace_of(tmp_path / "trajectory.json")

    return trace


# Whole sessions


@pytest.mark.parametrize("path", [FIXTURES / "team.json", FIXTURES / "continued"], ids=lambda path: path.stem)
def test_every_fixture_gives_what_its_text_says(path: Path) -> None:
    expected = LOGS / "told" / "atif" / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


def test_the_files_that_a_trajectory_names_are_read_with_it_and_none_outside_its_folder(tmp_path: Path) -> None:
    (one,) = importers.sessions(str(FIXTURES / "continued" / "trajectory.json"))
    assert [Path(file.path).name for file in one.files] == [
        "trajectory.json", "trajectory.summary.json", "trajectory.cont-1.json",
    ]  # fmt: skip

    (tmp_path / "below").mkdir()
    (tmp_path / "secret.json").write_text(json.dumps(GOOD[0]), "utf-8")
    for name in ("../secret.json", str(tmp_path / "secret.json"), "\0", "x" * 300):
        document = trajectory(step("agent", **spent(1, 1)), continued_trajectory_ref=name)
        (tmp_path / "below" / "trajectory.json").write_text(json.dumps(document), "utf-8")
        (one,) = importers.sessions(str(tmp_path / "below" / "trajectory.json"))
        assert len(one.files) == 1


def test_trajectories_with_one_session_id_are_apart_unless_they_name_one_another(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_text(json.dumps(trajectory(step("agent", **spent(5, 1)))), "utf-8")

    assert [trace["costs"]["tokens"] for trace in traces(tmp_path)] == [6, 6, 6]


def test_files_that_name_one_another_in_a_circle_are_one_session(tmp_path: Path) -> None:
    for number in (0, 1):
        document = trajectory(step("agent", **spent(5, 1)), continued_trajectory_ref=f"{1 - number}.json")
        (tmp_path / f"{number}.json").write_text(json.dumps(document), "utf-8")

    assert trace_of(tmp_path)["costs"]["tokens"] == 12


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("version", [*(f"ATIF-v1.{minor}" for minor in range(9)), "1.4", None])
def test_every_version_is_recognised_also_without_one(tmp_path: Path, version: str | None, indent: int | None) -> None:
    document = trajectory(step("user", "Go."), step("agent", **spent(5, 1)))
    document["schema_version"] = version
    if version is None:
        del document["schema_version"]
    (tmp_path / "t.json").write_text(json.dumps(document, indent=indent), "utf-8")

    (session,) = importers.sessions(str(tmp_path))
    assert session.form == "atif"
    assert trace_of(tmp_path)["costs"]["tokens"] == 6


# Tokens


@pytest.mark.parametrize(
    ("metrics", "expected", "lines"),
    [
        (spent(100, 20, 60), (40, 20, 60, 0, 0), []),
        (spent(100, 20, 60, cache_creation_input_tokens=30), (10, 20, 60, 30, 0), []),
        (spent(100, 20, 60, cache_write_tokens=40), (0, 20, 60, 40, 0), []),
        (spent(100, 20, reasoning_tokens=15), (100, 20, 0, 0, 15), []),
        (spent(100, 20, thoughts_tokens=25), (100, 45, 0, 0, 25), ["repaired: output less than the reasoning in it, so taken to be without it"]),
        (spent(50, 20, 60), (50, 20, 60, 0, 0), ["repaired: input less than what came from caches, so taken to be without it"]),
        (spent(100.0, 20, None), (100, 20, 0, 0, 0), []),
    ],
)  # fmt: skip
def test_prompts_hold_what_came_from_caches_and_completions_hold_reasoning(
    made: Callable[[Any], dict[str, Any]], metrics: dict[str, Any], expected: tuple[int, ...], lines: list[str]
) -> None:
    trace = made(trajectory(step("user"), step("agent", **metrics)))

    assert tuple(tokens(trace).values()) == expected
    assert list(ledger(trace)) == [*lines, "counted: model call's own usage"]


@pytest.mark.parametrize(
    ("metrics", "line", "reason"),
    [
        ({}, "unknown: answers without usage", "answers without usage: 1"),
        ({"metrics": None}, "unknown: answers without usage", "answers without usage: 1"),
        (spent(None, None, 3), "unknown: answers without usage", "answers without usage: 1"),
        (spent(0, 0), "unknown: usage of 0 tokens, which no call has", "answers without usage: 1"),
        (spent(-5, "many"), "unknown: usage that is not a number", "usage that is not a number: 1"),
    ],
)
def test_what_is_not_known_is_never_0(
    made: Callable[[Any], dict[str, Any]], metrics: dict[str, Any], line: str, reason: str
) -> None:
    trace = made(trajectory(step("user"), step("agent", **metrics), step("user"), step("agent", **spent(7, 2))))

    assert ledger(trace)[line] == 1
    assert (trace["costs"]["tokens"], trace["reasons"]) == (None, {"costs.tokens": reason})


def test_copied_steps_and_totals_are_never_counted(made: Callable[[Any], dict[str, Any]]) -> None:
    copied = step("agent", is_copied_context=True, **spent(900, 90))
    totals = {"total_prompt_tokens": 900, "total_completion_tokens": 91}
    trace = made(trajectory(copied, step("user"), step("agent", **spent(7, 2)), final_metrics=totals))

    assert trace["costs"]["tokens"] == 9
    assert ledger(trace) == {
        "left out: history copied from another thread, counted there": 1,
        "counted: model call's own usage": 1,
        "left out: final_metrics of a trajectory, which sum up steps": 1,
    }
    assert problems(trace) == {Problem.FINAL_METRICS_DIFFER: 1}


@pytest.mark.parametrize("totals", [(7, 2), (107, 12)])
def test_totals_may_be_of_a_trajectory_or_of_all_below_it(
    made: Callable[[Any], dict[str, Any]], totals: tuple[int, int]
) -> None:
    child = trajectory(step("user"), step("agent", **spent(100, 10)), name="reader", trajectory_id="c")
    stated = dict(zip(("total_prompt_tokens", "total_completion_tokens"), totals, strict=True))
    lead = step("agent", tool_calls=[call("1")], **observed(result("1", "c")), **spent(7, 2))
    trace = made(trajectory(lead, subagent_trajectories=[child], final_metrics=stated))

    assert trace["costs"]["tokens"] == 119
    assert problems(trace) == {}


def test_an_answer_that_is_written_as_two_steps_is_one(made: Callable[[Any], dict[str, Any]]) -> None:
    """As Harbor's converter of Qwen Code writes it: nothing was read in between, so no model was asked again."""
    halves = step("agent", "I read.", **spent(50, 5)), step("agent", tool_calls=[call("1")], **observed(result("1")))
    trace = made(trajectory(step("user"), *halves))

    assert (trace["costs"]["tokens"], of_type(trace, "inference", "tool_call")) == (
        55, ["lead inference", "lead tool_call run"],
    )  # fmt: skip
    assert "lead inference -> lead tool_call run" in links(trace, "causal")


def test_a_step_without_a_model_call_is_no_answer(made: Callable[[Any], dict[str, Any]]) -> None:
    rule = step("agent", llm_call_count=0, tool_calls=[call("1")], **observed(result("1")))
    trace = made(trajectory(step("user"), rule, step("agent", **spent(5, 1))))

    assert of_type(trace, "inference", "tool_call") == ["lead tool_call run", "lead inference"]
    assert trace["costs"]["tokens"] == 6
    assert trace["import_report"]["skipped"] == {"agent step without a model call": 1}


def test_single_tokens_are_kept_by_reference(made: Callable[[Any], dict[str, Any]]) -> None:
    child = trajectory(
        step("agent", metrics={**spent(5, 1)["metrics"], "logprobs": [-0.5]}), trajectory_id="c", name="b"
    )
    own = {**spent(9, 2)["metrics"], "prompt_token_ids": [1, 2], "completion_token_ids": [], "logprobs": None}
    lead = step("agent", metrics=own, tool_calls=[call("1")], **observed(result("1", "c")))
    trace = made(trajectory(lead, subagent_trajectories=[child]))

    assert {event["agent"]: event["token_refs"] for event in trace["events"] if "token_refs" in event} == {
        "lead": {
            "input_ids": "trajectory.json#/steps/0/metrics/prompt_token_ids",
            "output_ids": "trajectory.json#/steps/0/metrics/completion_token_ids",
        },
        "b": {"logprobs": "trajectory.json#/subagent_trajectories/0/steps/0/metrics/logprobs"},
    }


def test_stated_costs_are_kept_and_shown(tmp_path: Path) -> None:
    metrics = {**spent(9, 2)["metrics"], "cost_usd": 0.25}
    (tmp_path / "t.json").write_text(json.dumps(trajectory(step("agent", metrics=metrics))), "utf-8")

    assert [event.get("cost_usd") for event in trace_of(tmp_path)["events"]][:1] == [0.25]
    assert "Cost      0.2500 USD" in run_corpus("trace", "doctor", str(tmp_path)).stdout


# Agents


def test_sub_agents_are_found_in_their_parent_and_in_those_around_it(made: Callable[[Any], dict[str, Any]]) -> None:
    deep = trajectory(step("agent", **spent(1, 1)), name="deep", trajectory_id="d")
    lone = trajectory(step("agent", **spent(1, 1)), name="lone", trajectory_id="l")
    middle = trajectory(
        step("agent", tool_calls=[call("2")], **observed(result("2", "d")), **spent(1, 1)),
        name="middle",
        trajectory_id="m",
    )
    lead = step("agent", tool_calls=[call("1")], **observed(result("1", "m")), **spent(1, 1))
    trace = made(trajectory(lead, subagent_trajectories=[middle, deep, lone]))

    assert parents(trace) == {"user": "", "lead": "", "middle": "lead", "deep": "middle", "lone": "lead"}
    assert problems(trace) == {Problem.SPAWN_INFERRED: 1}  # of the one to which no reference leads


def test_a_reference_that_leads_nowhere_is_a_sub_agent_without_a_trajectory(
    made: Callable[[Any], dict[str, Any]],
) -> None:
    lead = step("agent", tool_calls=[call("1")], **observed(result("1", "gone")), **spent(1, 1))
    trace = made(trajectory(lead, step("agent", **spent(4, 1))))

    assert of_type(trace, "spawn", "return") == ["lead spawn run > gone", "gone return > lead"]
    assert trace["reasons"] == {"costs.tokens": "sub-agents without a transcript among the files: 1"}
    assert problems(trace) == {Problem.NO_TRANSCRIPT: 1}


def test_a_reference_to_what_is_above_spawns_nothing(tmp_path: Path) -> None:
    lead = step("agent", tool_calls=[call("1")], **spent(1, 1), **observed({
        "source_call_id": "1", "subagent_trajectory_ref": [{"trajectory_path": "t.json"}],
    }))  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(trajectory(lead)), "utf-8")

    assert parents(trace_of(tmp_path)) == {"user": "", "lead": ""}


def test_a_sub_agent_in_the_background_returns_when_its_end_is_told(made: Callable[[Any], dict[str, Any]]) -> None:
    """The result of its call says only that it was started: the sub-agent goes on after its parent's next step."""
    late = [step("user"), step("agent", timestamp="2026-03-01T09:00:45Z", **spent(1, 1))]
    child = trajectory(*late, name="reader", trajectory_id="c")
    lead = step("agent", tool_calls=[call("1")], **observed(result("1", "c")), **spent(1, 1))
    word = "<task-notification>\n<tool-use-id>1</tool-use-id>\n<status>failed</status>\n</task-notification>"
    steps = [lead, step("agent", llm_call_count=1, **spent(4, 1)), step("user"), step("agent", **spent(4, 1))]
    untold = made(trajectory(*steps, subagent_trajectories=[child]))
    steps[2] = step("user", word, timestamp="2026-03-01T09:00:50Z")
    steps[3]["timestamp"] = "2026-03-01T09:00:55Z"
    trace = made(trajectory(*steps, subagent_trajectories=[child]))

    assert of_type(untold, "return") == []
    assert [(event["t"], event["status"]) for event in trace["events"] if event["type"] == "return"] == [
        (40.0, "error")
    ]
    assert of_type(trace, "human_intervention") == []


def test_a_sub_agent_that_is_waited_for_returns_with_its_last_step(made: Callable[[Any], dict[str, Any]]) -> None:
    late = [step("user"), step("agent", timestamp="2026-03-01T09:00:15Z", **spent(1, 1))]
    child = trajectory(*late, name="reader", trajectory_id="c")
    lead = step("agent", tool_calls=[call("1")], **observed(result("1", "c")), **spent(1, 1))
    trace = made(trajectory(lead, step("agent", **spent(4, 1)), subagent_trajectories=[child]))

    assert [event["t"] for event in trace["events"] if event["type"] == "return"] == [5.0]
    assert links(trace, "return") == ["reader return > lead -> lead aggregate"]


def test_the_input_of_model_calls_that_nvidia_writes_as_user_steps_is_no_person(
    made: Callable[[Any], dict[str, Any]],
) -> None:
    known = {"extra": {"ancestry": {"function_id": "f", "function_name": "lead"}}}
    asked = trajectory(step("user"), step("agent", **known), step("user"), step("agent", **known))
    plain = trajectory(step("user"), step("agent"), step("user"), step("agent"))

    assert len(of_type(made(asked), "human_intervention")) == 1
    assert len(of_type(made(plain), "human_intervention")) == 2


# Times and results


def test_a_log_without_times_counts_its_steps(made: Callable[[Any], dict[str, Any]]) -> None:
    lead = step("agent", tool_calls=[call("1")], **observed(result("1", "c")), **spent(1, 1))
    child = trajectory(step("user"), step("agent", **spent(1, 1)), timed=False, name="reader", trajectory_id="c")
    trace = made(
        trajectory(step("user"), lead, step("agent", **spent(1, 1)), timed=False, subagent_trajectories=[child])
    )

    assert trace["clock"]["unit"] == "step"
    assert trace["costs"]["wall_clock_s"] is None
    assert trace["reasons"] == {"costs.wall_clock_s": "The log has no times."}
    assert [(event["agent"], event["type"], event["t"]) for event in trace["events"] if not event["type"].startswith("d")] == [
        ("user", "human_intervention", 0.0),
        ("lead", "orchestrator_decision", 0.0),
        ("lead", "spawn", 2.0),
        ("reader", "inference", 3.0),
        ("reader", "return", 5.0),
        ("lead", "aggregate", 5.0),
        ("lead", "stop", 6.0),
    ]  # fmt: skip


def test_a_circle_of_sub_agents_begins_with_the_first_that_is_named(tmp_path: Path) -> None:
    def naming(name: str, *files: str) -> None:
        references = [{"trajectory_path": f"{file}.json"} for file in files]
        results = {"source_call_id": "1", "content": "x", "subagent_trajectory_ref": references}
        document = trajectory(step("user"), step("agent", tool_calls=[call("1")], **observed(results)), name=name)
        (tmp_path / f"{name}.json").write_text(json.dumps(document), "utf-8")

    naming("a", "b")
    naming("b", "c")
    naming("c", "d")
    naming("d", "b")
    trace = trace_of(*(tmp_path / f"{name}.json" for name in "abcd"))

    assert parents(trace) == {"user": "", "a": "", "b": "a", "c": "b", "d": "c"}


def test_times_of_calls_that_nvidia_writes_are_taken(made: Callable[[Any], dict[str, Any]]) -> None:
    begin = 1772355600.0
    timing = {"extra": {"invocation": {"start_timestamp": begin + 21, "end_timestamp": begin + 24}}}
    model = {"extra": {"invocation": {"start_timestamp": begin + 15, "end_timestamp": begin + 20}}}
    trace = made(
        trajectory(step("user"), step("agent", tool_calls=[call("1", **timing)], **observed(result("1")), **model))
    )

    assert {event["type"]: (event["t"], event.get("t_end"), event.get("t_request"), event.get("run_time")) for event in trace["events"]} == {
        "human_intervention": (0.0, 0.0, None, None),
        "inference": (0.0, 10.0, 5.0, None),
        "tool_call": (11.0, None, None, 3.0),
        "tool_result": (14.0, None, None, None),
    }  # fmt: skip


@pytest.mark.parametrize(("end", "run_time"), [(21, 0.0), (20.5, None), ("late", None), (None, None)])
def test_a_call_that_ends_before_it_began_has_no_stated_time(
    made: Callable[[Any], dict[str, Any]], end: Any, run_time: float | None
) -> None:
    begin = 1772355600.0
    end_timestamp = begin + end if isinstance(end, int | float) else end
    timing = {"extra": {"invocation": {"start_timestamp": begin + 21, "end_timestamp": end_timestamp}}}
    trace = made(trajectory(step("user"), step("agent", tool_calls=[call("1", **timing)], **observed(result("1")))))

    assert [event.get("run_time") for event in trace["events"] if event["type"] == "tool_call"] == [run_time]


@pytest.mark.parametrize(
    ("extra", "status"),
    [({"is_error": True}, "error"), ({"status": "FAILED"}, "error"), ({"status": "completed"}, "ok"), ({}, None), (None, None), (7, None)],
)  # fmt: skip
def test_how_a_call_ended_is_known_only_by_its_extra(
    made: Callable[[Any], dict[str, Any]], extra: Any, status: str | None
) -> None:
    trace = made(trajectory(step("agent", tool_calls=[call("1")], **observed(result("1", extra=extra)))))

    assert [event.get("status") for event in trace["events"] if event["type"] == "tool_result"] == [status]


def test_what_does_not_fit_together_is_taken_and_said(made: Callable[[Any], dict[str, Any]]) -> None:
    trace = made(trajectory(
        step("agent", tool_calls=[call("1"), call("1")], **observed(result("1"), result("1"), result("9"), {"content": "y"})),
        step("agent", llm_call_count=1, **observed(result("1"))),
        step("tool", "?"),
    ))  # fmt: skip

    assert problems(trace) == {
        Problem.CALL_WRITTEN_TWICE: 1, Problem.SECOND_RESULT: 2, Problem.RESULT_WITHOUT_CALL: 1,
    }  # fmt: skip
    assert trace["import_report"]["unknown_kinds"] == {"step of source tool": 1}


def test_events_are_on_the_lines_of_their_steps(tmp_path: Path) -> None:
    child = trajectory(step("agent", 'say "step_id": 4', **spent(1, 1)), name="reader", trajectory_id="c")
    document = trajectory(step("user"), step("agent", **spent(1, 1)), subagent_trajectories=[child])
    text = json.dumps(document, indent=2)
    (tmp_path / "t.json").write_text(text, "utf-8")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if '"step_id": ' in line and "say" not in line]

    assert [
        event["source"]["line"]
        for event in trace_of(tmp_path)["events"]
        if event["type"] in ("human_intervention", "inference")
    ] == lines

    other = {"subagent_trajectories": document.pop("subagent_trajectories"), **document}  # an order nobody writes
    (tmp_path / "t.json").write_text(json.dumps(other, indent=2), "utf-8")
    assert {event["source"]["line"] for event in trace_of(tmp_path)["events"]} == {1}


def test_sub_agents_of_sub_agents_are_on_their_lines_before_their_parents_siblings(tmp_path: Path) -> None:
    deep = trajectory(step("agent", **spent(1, 1)), name="deep", trajectory_id="d")
    first = trajectory(
        step("agent", **spent(1, 1)), name="first", trajectory_id="f", subagent_trajectories=[deep]
    )  # fmt: skip
    second = trajectory(step("agent", **spent(1, 1)), name="second", trajectory_id="s")
    document = trajectory(step("agent", **spent(1, 1)), subagent_trajectories=[first, second])
    text = json.dumps(document, indent=2)
    (tmp_path / "t.json").write_text(text, "utf-8")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if '"step_id": ' in line]

    assert {
        event["agent"]: event["source"]["line"]
        for event in trace_of(tmp_path)["events"]
        if event["type"] == "inference"
    } == dict(zip(("lead", "first", "deep", "second"), lines, strict=True))


# What is no trajectory, or damaged


@pytest.mark.parametrize(
    "text", ["[]", "7", '{"schema_version": "ATIF-v1.7", "agent": {}', '{"schema_version": "ATIF-v1.7", "steps": [']
)
def test_what_is_no_trajectory_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text, "utf-8")
    (session,) = importers.sessions(str(tmp_path), "atif")

    with pytest.raises(DataFileError, match=r"'t\.json' is not a trajectory: "):
        list(importers.read(session, Privacy(b"salt")))


@pytest.mark.parametrize("steps", [[], None, 5, [None, 7], [step("system", "x")]])
def test_a_trajectory_in_which_nothing_ran_is_empty(tmp_path: Path, steps: Any) -> None:
    (tmp_path / "t.json").write_text(json.dumps({**trajectory(), "steps": steps}), "utf-8")
    (session,) = importers.sessions(str(tmp_path))

    with pytest.raises(EmptyLogError):
        list(importers.read(session, Privacy(b"salt")))


def test_a_deeply_nested_trajectory_is_read_or_refused(tmp_path: Path) -> None:
    for depth in (100, 400, 2_000, 100_000):
        nested = '{"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [{"step_id": 1, "source": "agent"}], "subagent_trajectories": ['
        (tmp_path / "t.json").write_text(nested * depth + "]}" * depth, "utf-8")
        assert run_corpus("trace", "import", str(tmp_path)).code in (0, 3)


JUNK = [
    None,
    True,
    -1,
    0,
    2**70,
    1e300,
    "",
    "x",
    [],
    {},
    [[]],
    {"a": 1},
    "2026-03-01T09:00:00Z",
    "agent",
    "t-reader",
    "call_1",
]


def mutate(value: Any, chance: random.Random) -> None:
    """Change, remove, repeat or move one to five members of a document."""
    for _ in range(chance.randint(1, 5)):
        places = [
            (holder, key)
            for holder in objects(value)
            for key in (holder if isinstance(holder, dict) else range(len(holder)))
        ]
        holder, key = chance.choice(places)
        other_holder, other_key = chance.choice(places)
        draw = chance.random()
        if draw < 0.35:
            holder[key] = deepcopy(chance.choice(JUNK))
        elif draw < 0.55:
            holder[key] = deepcopy(other_holder[other_key])
        elif draw < 0.75:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(chance.randrange(len(holder) + 1), deepcopy(holder[key]))


def objects(value: Any) -> list[Any]:
    """Every object and array in a value that has any members."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            waiting += one.values() if isinstance(one, dict) else one
    return found


def test_damaged_trajectories_give_sound_traces_or_are_refused(tmp_path: Path) -> None:
    """Exit codes 0, 1 and 3 only, of what people run first; exports of ours among them."""
    exported = json.loads(run_corpus("trace", "export", str(FIXTURES / "team.json"), "--profile", "atif").stdout)
    number = tries(10_000, 120)
    codes = []
    for seed in range(number):
        chance = random.Random(seed)
        document = deepcopy(chance.choice([*GOOD, exported]))
        mutate(document, chance)
        text = json.dumps(document, indent=chance.choice((None, 1)))
        if chance.random() < 0.1:
            cut = chance.randrange(len(text))
            text = text[:cut] + chance.choice(("", "\0", "\\", '"', "}", "é")) + text[cut + chance.randrange(3) :]
        (tmp_path / "t.json").write_text(text, "utf-8")
        words = ("import",) if chance.random() < 0.7 else ("doctor",)
        done = run_corpus(
            "trace", *words, str(tmp_path / "t.json"), *(("--from", "atif") if words == ("import",) else ())
        )
        assert done.code in (0, 1, 3), (seed, done.stderr)
        if done.code == 0 and words == ("import",):
            (tmp_path / "made.jsonl").write_text(done.stdout, "utf-8")
            assert run_corpus("trace", "validate", str(tmp_path / "made.jsonl")).code == 0, seed
        codes.append(done.code)
    assert codes.count(0) > number / 3


def test_a_trajectory_takes_time_in_proportion_to_its_length(tmp_path: Path) -> None:
    def prepare(size: int) -> Callable[[], object]:
        children = [trajectory(step("agent", **spent(1, 1)), name="r", trajectory_id=f"c{n}") for n in range(size)]
        steps = [
            step("agent", tool_calls=[call(f"u{n}")], **observed(result(f"u{n}", f"c{n}")), **spent(1, 1))
            for n in range(size)
        ]
        path = tmp_path / f"{size}.json"
        path.write_text(json.dumps(trajectory(*steps, timed=False, subagent_trajectories=children)), "utf-8")
        (session,) = importers.sessions(str(path))
        return lambda: [as_data(one) for one in importers.read(session, Privacy(b"salt"))]

    assert_grows(prepare, 100, 800, 22)


def test_the_document_names_every_line_that_the_ledger_can_have() -> None:
    assert ledger_lines("atif") == documented("atif")


@pytest.mark.parametrize(
    ("document", "is_recognised"),
    [
        ({"schema_version": "ATIF-v1.6", "agent": {}}, True),
        ({"schema_version": "1.6", "steps": []}, True),
        ({"schema_version": "ATIF-v1.6"}, False),
        ({"schema_version": "6", "steps": []}, False),
        ({"agent": {}, "steps": [{"step_id": 1, "source": "user"}]}, True),
        ({"agent": {}, "steps": [{"step_id": 1}]}, False),
        ({"agent": {}, "steps": [{"source": "user"}]}, False),
        ({"agent": {}, "steps": []}, False),
        ({"agent": {}, "steps": ["x"]}, False),
        ({"steps": [{"step_id": 1, "source": "user"}]}, False),
    ],
)
def test_a_trajectory_is_known_by_its_version_or_by_its_required_members(
    tmp_path: Path, document: dict[str, Any], is_recognised: bool
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")

    with LogReader(LogFile(str(tmp_path / "x.json"), "x.json")) as reader:
        assert atif.recognises(reader.head()) is is_recognised
