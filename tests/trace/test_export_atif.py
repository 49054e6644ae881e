"""Traces as ATIF: what every validator accepts, and what comes back when the export is imported again."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace import api, importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.import_report import Problem
from tests.conftest import ROOT, run_corpus
from tests.trace.conversationlogs import LOGS, problems
from tests.trace.test_schema import TRAINED
from tests.trace.traces import EXAMPLES, documents, event, raw, trace

SESSIONS = [
    pytest.param(session, id=Path(session.files[0].path).relative_to(LOGS).as_posix())
    for form in importers.FORMATS
    for session in importers.sessions(str(LOGS / form))
]


def exported(one: api.Trace) -> dict[str, Any]:
    """The export as who reads its text sees it."""
    found: dict[str, Any] = json.loads(api.as_text(api.as_atif(one)))
    return found


def accept(document: dict[str, Any]) -> None:
    """Hold a document to the validators, and to what that of Harbor asks for beyond them."""
    from atif import Trajectory

    Trajectory.model_validate(document)
    if sys.version_info < (3, 14):  # which NVIDIA's refuses to be installed on
        from nat.atif import Trajectory as OfNvidia

        OfNvidia.model_validate(document)
    waiting = [document]
    while waiting:
        one = waiting.pop()
        assert one["schema_version"] == "ATIF-v1.7"
        assert one["session_id"]
        assert one["steps"]
        for step in one["steps"]:
            assert not (step.get("llm_call_count") == 0 and step.keys() & {"metrics", "reasoning_content"})
            assert all("arguments" in call for call in step.get("tool_calls", ()))
        waiting += one.get("subagent_trajectories", ())


def restored(document: dict[str, Any], folder: Path) -> api.Trace:
    """What an import makes of an export."""
    (folder / "trajectory.json").write_text(json.dumps(document), "utf-8")
    (one,) = api.import_logs(str(folder), salt="ours")
    assert one.trace is not None, one.error
    return one.trace


def without_contents(one: api.Trace) -> dict[str, Any]:
    """A trace as data, without its report and the references to contents, which get another salt."""
    data = api.as_data(one)
    data.pop("import_report", None)
    for item in data["events"]:
        item.pop("content_ref", None)
    return data


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_accepted_and_comes_back_as_it_was(path: Path, tmp_path: Path) -> None:
    (one,) = api.load(path)
    document = exported(one)

    accept(document)
    assert without_contents(restored(document, tmp_path)) == without_contents(one)


@pytest.mark.parametrize("session", SESSIONS)
def test_every_imported_log_is_accepted_and_comes_back_as_it_was(session: importers.Session, tmp_path: Path) -> None:
    for one in importers.read(session, Privacy(b"salt")):
        document = exported(one)

        accept(document)
        again = restored(document, tmp_path)
        assert without_contents(again) == without_contents(one)
        assert again.import_report == one.import_report


@given(documents())
def test_any_trace_is_accepted_and_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    one = trace(document)
    found = exported(one)

    accept(found)
    assert without_contents(restored(found, tmp_path_factory.mktemp("atif"))) == without_contents(one)


KINDS = ("input", "output", "cache_read", "cache_write", "reasoning")


@given(st.lists(st.fixed_dictionaries({}, optional={kind: st.integers(0, 90) for kind in KINDS}), max_size=5))
def test_tokens_of_any_kinds_known_come_back(
    tmp_path_factory: pytest.TempPathFactory, spent: list[dict[str, int]]
) -> None:
    kinds = ("inference", "tool_call", "message", "human_intervention", "tool_result")
    for tokens in spent:  # of which reasoning is a part
        tokens.update({"output": tokens.get("output", 0) + tokens["reasoning"]} if "reasoning" in tokens else {})
    events = [
        event(f"e{n}", n, kinds[n], "x", tokens=tokens, cost_usd=n, copied_context=n == 2)
        for n, tokens in enumerate(spent)
    ]
    one = trace(raw([event("first", 0, "inference", "x"), *events]))
    found = exported(one)

    accept(found)
    assert restored(found, tmp_path_factory.mktemp("atif")).events == one.events
    stated = [step["metrics"] for step in found["steps"] if "metrics" in step and not step.get("is_copied_context")]
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        assert found["final_metrics"].get(f"total_{name}", 0) == sum(metrics.get(name, 0) for metrics in stated)


TEAM = raw(
    [
        event("ask", 0, "human_intervention", "user", t_end=1, to="lead", content_ref="Compare the two."),
        event("plan", 1, "orchestrator_decision", "lead", t_end=3, model="m", tokens={"input": 5, "output": 2, "cache_read": 40}),
        event("hire", 3, "spawn", "lead", to="reader", role="reads", tool="delegate", call_id="c1"),
        event("read", 3, "inference", "reader", t_end=5, tokens={"input": 7, "output": 1}),
        event("open", 5, "tool_call", "reader", tool="open", call_id="c2", run_time=1),
        event("opened", 6, "tool_result", "reader", tool="open", call_id="c2", status="error", error_type="missing"),
        event("tell", 7, "return", "reader", to="lead", content_ref="It is missing."),
        event("end", 7, "despawn", "reader"),
        event("answer", 7, "aggregate", "lead", t_end=9, reward=0.5),
    ],
    "ask>plan plan>hire hire>read:spawn read>open open>opened:tool_dependency opened>tell tell>answer:return",
    agents=[{"id": "user", "kind": "human"}, {"id": "lead", "model": "m"}],
    clock={"unit": "s", "epoch": "2026-03-01T09:00:00Z"},
    rewards={"team": 1},
)  # fmt: skip


def test_an_export_says_in_words_of_atif_what_atif_has_words_for() -> None:
    document = exported(trace(TEAM))
    accept(document)

    def shown(value: Any) -> Any:
        """The document without what is kept in `extra`."""
        if isinstance(value, dict):
            return {name: shown(inner) for name, inner in value.items() if name != "extra"}
        return [shown(one) for one in value] if isinstance(value, list) else value

    assert shown(document) == {
        "schema_version": "ATIF-v1.7", "session_id": "t", "trajectory_id": "t",
        "agent": {"name": "lead", "version": "unknown", "model_name": "m"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Compare the two.", "timestamp": "2026-03-01T09:00:01.000000Z"},
            {
                "step_id": 2, "source": "agent", "message": "", "timestamp": "2026-03-01T09:00:03.000000Z", "model_name": "m",
                "metrics": {"prompt_tokens": 45, "completion_tokens": 2, "cached_tokens": 40},
                "tool_calls": [{"tool_call_id": "c1", "function_name": "delegate", "arguments": {}}],
                "observation": {"results": [{
                    "source_call_id": "c1", "content": "It is missing.",
                    "subagent_trajectory_ref": [{"trajectory_id": "t/reader"}],
                }]},
            },
            {"step_id": 3, "source": "agent", "message": "", "timestamp": "2026-03-01T09:00:09.000000Z"},
        ],
        "final_metrics": {"total_prompt_tokens": 45, "total_completion_tokens": 2, "total_cached_tokens": 40, "total_steps": 3},
        "subagent_trajectories": [{
            "schema_version": "ATIF-v1.7", "session_id": "t", "trajectory_id": "t/reader",
            "agent": {"name": "reader", "version": "unknown"},
            "steps": [
                {
                    "step_id": 1, "source": "agent", "message": "", "timestamp": "2026-03-01T09:00:05.000000Z",
                    "metrics": {"prompt_tokens": 7, "completion_tokens": 1},
                    "tool_calls": [{"tool_call_id": "c2", "function_name": "open", "arguments": {}}],
                    "observation": {"results": [{"source_call_id": "c2", "content": ""}]},
                },
                {"step_id": 2, "source": "system", "message": "", "timestamp": "2026-03-01T09:00:07.000000Z"},
            ],
            "final_metrics": {"total_prompt_tokens": 7, "total_completion_tokens": 1, "total_steps": 2},
        }],
    }  # fmt: skip
    assert document["steps"][1]["extra"]["invocation"] == {
        "start_timestamp": 1772355601.0, "end_timestamp": 1772355603.0, "invocation_id": "plan",
    }  # fmt: skip


def test_another_reader_sees_the_same_team_without_what_is_kept_in_extra(tmp_path: Path) -> None:
    """Who drops the keys of others loses edges and rewards, and keeps agents, tokens and calls."""
    document = exported(trace(TEAM))
    del document["extra"]
    found = restored(document, tmp_path)

    assert {agent.id: agent.parent for agent in found.agents} == {"user": "", "lead": "", "reader": "lead"}
    assert found.costs["tokens"] is None  # the last answer has none
    assert [one.type for one in found.events if one.agent == "reader"] == [
        "inference", "tool_call", "tool_result", "return", "despawn",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "fields", [TRAINED, raw([event("a", 0, "stop", "x")]), raw([event("a", 0, "human_intervention", "u")])]
)
def test_what_trainers_keep_and_what_acts_alone_come_back(fields: dict[str, Any], tmp_path: Path) -> None:
    one = trace(fields)
    document = exported(one)

    accept(document)
    assert without_contents(restored(document, tmp_path)) == without_contents(one)


def test_agents_that_spawn_one_another_in_a_chain_or_a_circle_are_all_there(tmp_path: Path) -> None:
    length = 120
    chain = [event(f"s{n}", n, "spawn", f"a{n}", to=f"a{n + 1}") for n in range(length)]
    one = trace(raw([*chain, event("last", length, "inference", f"a{length}")]))
    circle = raw(
        [
            event("x", 0, "spawn", "a", to="b"),
            event("y", 1, "spawn", "b", to="c"),
            event("z", 2, "message", "c", to="b"),
        ]
    )
    for found in (one, trace(circle)):
        document = exported(found)
        accept(document)
        assert without_contents(restored(document, tmp_path)) == without_contents(found)


def test_an_export_that_was_edited_keeps_what_is_left_of_it(tmp_path: Path) -> None:
    known = {"costs": {"tokens": 55, "wall_clock_s": 9}, "reasons": {}}
    document = exported(trace({**TEAM, **known}))
    document["steps"][1]["metrics"]["completion_tokens"] = 12
    del document["subagent_trajectories"][0]["steps"][1]
    found = restored(document, tmp_path)

    assert found.costs["tokens"] == 65
    assert problems(api.as_data(found)) == {Problem.UNUSABLE_EXTRA: 1}
    assert len(found.events) == len(TEAM["events"]) - 1


def test_an_export_that_makes_no_trace_any_more_is_read_as_one_of_another_program(tmp_path: Path) -> None:
    document = exported(trace(TEAM))
    document["extra"]["orchtrace"]["trace"]["topology"] = "ring"
    found = restored(document, tmp_path)

    assert problems(api.as_data(found))[Problem.UNUSABLE_EXTRA] == 1
    assert found.events[0].source.format == "atif"  # type: ignore[union-attr]


def test_contents_that_an_export_holds_are_hashed_like_any_others(tmp_path: Path) -> None:
    found = restored(exported(trace(TEAM)), tmp_path)

    assert all(one.content_ref.startswith("sha256:") for one in found.events if one.content_ref)
    assert "Compare" not in json.dumps(api.as_data(found))


def test_the_command_writes_it_and_says_what_is_in_extra_alone(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(TEAM), "utf-8")
    done = run_corpus("trace", "export", str(tmp_path / "t.json"), "--profile", "atif")

    assert done.code == 0
    accept(json.loads(done.stdout))
    assert done.stderr.splitlines()[-1] == (
        "corpus: in extra only, since ATIF has no word for it: 1 of 9 events (1 despawn); 7 edges; "
        "fields of the trace: rewards, reasons"
    )
    log = run_corpus("trace", "export", str(ROOT / "tests" / "data" / "session"), "--profile", "atif")
    accept(json.loads(log.stdout))
