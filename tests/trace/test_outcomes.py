"""Outcomes: what a file says of runs, what logs say themselves, every mistake at its line, and what follows from them."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.analysis.outcomes import Outcome, load
from orchtrace_corpus.trace.model.trace import Baseline, Trace
from tests.conftest import ROOT, run_corpus
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.trace.test_import import SESSION, imported
from tests.trace.traces import event, raw

NAME = "7ea30000-0000-4000-8000-000000000001"


def written(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table_and_a_list_of_objects_say_the_same(tmp_path: Path) -> None:
    table = written(
        tmp_path,
        "o.csv",
        "run,reward,reward.verifier,success,error_rate,baseline,baseline.turns,baseline.success\n"
        "a,0.5,-1,true,0.25,solo,12,0\n"
        "\n"
        "b,,,,,,,\n",
    )
    objects = [
        {"run": "a", "reward": {"team": 0.5, "verifier": -1}, "success": True, "error_rate": 0.25,
         "baseline": {"turns": 12, "success": False}},
        {"run": "b", "reward": None},
    ]  # fmt: skip
    listed = written(tmp_path, "o.json", json.dumps(objects, indent=1))

    assert load(table) == {
        "a": Outcome(
            f"{table}:2",
            {"team": 0.5, "verifier": -1.0},
            {"task_success": 1.0, "error_rate": 0.25},
            Baseline(trace_id="solo", turns=12.0, success=0.0),
        ),
        "b": Outcome(f"{table}:4", {}, {}, None),
    }
    found = load(listed)
    assert found["a"][1:3] == load(table)["a"][1:3]
    assert found["a"].baseline == Baseline(turns=12.0, success=0.0)
    assert found["a"].place.startswith(f"{listed}:2:")


def test_every_mistake_of_a_table_is_said_at_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "o.csv",
        "run,reward,success,reward.teem,baseline.turn\na,much,2,1,1\n,1,,,\na,1,,,\nb,1,,,,,\nb,nan,,,\n",
    )

    with pytest.raises(DataFileError) as refusal:
        load(path)

    known = (
        "shared, individual, role, process, tool, debate, verifier, orchestration, hybrid, token, turn, message, agent"
    )
    fields = "run, task, reward, success, error_rate, baseline, baseline.source, baseline.tokens, baseline.wall_clock_s"
    fields += ", baseline.turns, baseline.success, baseline.error_rate"
    assert str(refusal.value.args[0]).splitlines() == [
        "the outcomes have mistakes:",
        f"{path}:1: no channel of reward is 'teem' (did you mean 'team'? allowed: {known}, orchestrator, team)",
        f"{path}:1: unknown 'baseline.turn' (did you mean 'baseline.turns'? allowed: {fields})",
        f"{path}:2: 'much' is not a number",
        f"{path}:2: '2' is not true, false or a number from 0 to 1",
        f"{path}:3: no run is named",
        f"{path}:4: 'a' is the run of {path}:2, too",
        f"{path}:5: 7 cells, and the heading has 5",
        f"{path}:6: 'nan' is not a number",
    ]


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("o.csv", "name,reward\na,1\n", "1: the heading has no column 'run'"),
        ("o.csv", "run,reward,reward\na,1,2\n", "1: the heading has two columns of one name"),
        ("o.csv", "", "1: the heading has no column 'run'"),
        ("o.csv", "run,reward\n", "1: there is no outcome"),
        ("o.csv", 'run,reward\n"a,1\n', "2: unexpected end of data"),
        ("o.json", '{"run": "a"}', "1: outcomes are a list of objects, one for each run"),
        ("o.json", '[\n"a"]', "2:1: an outcome is an object with the name of a 'run'"),
        ("o.json", '[{"run": "a",\n "reward": [1]}]', "2:12: 'reward' must be one value"),
        ("o.json", '[{"run": "a",\n "reward": "x"}]', "2:12: 'x' is not a number"),
        ("o.json", '[{"run": "a"', "1:13"),
    ],
)
def test_what_is_no_file_of_outcomes_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, mistake: str
) -> None:
    path = written(tmp_path, name, text)

    result = run_corpus("trace", "import", str(SESSION), "--outcomes", path)

    assert (result.code, result.stdout) == (3, "")
    assert f"{path}:{mistake}" in result.stderr
    assert result.stderr.endswith("docs/importers.md shows a file of outcomes.\n")


def test_outcomes_make_credit_overhead_and_error_amplification_of_a_real_log(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.jsonl")
    given = run_corpus("trace", "import", str(SESSION), "--outcomes", str(SESSION / "outcomes.csv"), "-o", path)

    assert given.code == 0
    trace = json.loads(Path(path).read_text(encoding="utf-8"))
    assert trace["rewards"] == {"team": 0.8}
    assert trace["metrics"] == {"task_success": 1.0, "error_rate": 0.1}
    assert trace["baseline"] == {"source": "one agent without sub-agents", "turns": 12.0, "error_rate": 0.05}
    assert trace["import_report"]["outcomes"] == [
        "rewards.team",
        "metrics.task_success",
        "metrics.error_rate",
        "baseline",
    ]
    assert run_corpus("trace", "validate", path).code == 0
    names = "steps,coordination_overhead,coordination_efficiency,error_amplification"
    measured = run_corpus("trace", "measure", path, "--only", names, "--format", "json")
    (measures,) = json.loads(measured.stdout)["traces"]
    values = {name: one["value"] for name, one in measures["measures"].items()}
    steps = values["steps"]
    assert values == {
        "steps": steps,
        "coordination_overhead": pytest.approx((steps - 12) / 12),
        "coordination_efficiency": pytest.approx(12 / steps),
        "error_amplification": pytest.approx(2.0),
    }
    assert run_corpus("trace", "credit", path).code == 0


@pytest.mark.parametrize("command", ["import", "credit", "measure", "reward"])
def test_the_beginning_of_a_name_is_enough_for_an_outcome(tmp_path: Path, command: str) -> None:
    path = written(tmp_path, "o.csv", "run,reward\n7ea3,0.5\n")
    shown = run_corpus(
        "trace", command, str(SESSION), "--outcomes", path, *(["--spec", "kimi-k2-5"] * (command == "reward"))
    )

    assert shown.code == 0, shown.stderr
    assert command == "measure" or "0.5" in shown.stdout


def test_the_beginning_of_two_names_is_refused_and_a_whole_name_never_means_another(tmp_path: Path) -> None:
    for name in ("run-1", "run-10", "run-2"):
        run = raw([event("a", 0, "inference", "lead", t_end=1)], trace_id=name)
        (tmp_path / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    files = [str(tmp_path / f"run-{number}.json") for number in (1, 10, 2)]
    words = ["trace", "reward", *files, "--family", "R1", "--format", "csv", "--outcomes"]
    whole = run_corpus(*words, written(tmp_path, "whole.csv", "run,success\nrun-1,1\nrun-2,0\n"))
    both = run_corpus(*words, path := written(tmp_path, "both.csv", "run,success\nrun,1\n"))

    assert [line.rpartition(",")[::2] for line in whole.stdout.splitlines()[1:]] == [
        ("run-1,,", "1"), ("run-10,,", ""), ("run-2,,", "0")
    ]  # fmt: skip
    assert (both.code, both.stdout) == (2, "")
    assert f"{path}:2: 2 runs begin with 'run': 'run-1', 'run-10'" in both.stderr


def test_an_outcome_of_no_run_is_said_and_the_runs_are_written(tmp_path: Path) -> None:
    path = written(tmp_path, "o.csv", f"run,reward\n{NAME},1\nother,1\n")

    result = run_corpus("trace", "import", str(SESSION), "--outcomes", path)

    assert result.code == 1
    assert json.loads(result.stdout)["rewards"] == {"team": 1.0}
    said = f"corpus: {path}:3: none of the runs read is called 'other'\ncorpus: the runs read are called {NAME}\n"
    assert result.stderr.endswith(said)


def test_credit_and_measures_take_outcomes_for_logs_that_state_none(tmp_path: Path) -> None:
    path = written(tmp_path, "o.csv", f"run,reward,error_rate,baseline.error_rate\n{NAME},0.5,0.2,0.1\n")
    none = run_corpus("trace", "credit", str(SESSION))
    credited = run_corpus("trace", "credit", str(SESSION), "--outcomes", path, "--format", "json")
    one = ["trace", "measure", str(SESSION), "--only", "error_amplification", "--format", "csv"]

    assert (none.code, credited.code) == (2, 0)
    assert none.stderr.endswith(
        'Give one with --outcomes FILE, or state it in the trace, such as "rewards": {"team": 1}.\n'
    )
    assert json.loads(credited.stdout)["traces"][0]["sum"] == pytest.approx(0.5)
    assert "or give it with --outcomes" in run_corpus(*one).stdout
    assert "error_amplification,2,1," in run_corpus(*one, "--outcomes", path).stdout
    several = run_corpus("trace", "measure", str(SESSION), str(ROOT / "data" / "traces" / "swarm.json"), "--outcomes", path,
                         "--only", "error_amplification", "--format", "csv")  # fmt: skip
    assert [line.split(",")[:2] for line in several.stdout.splitlines()[1:]] == [["swarm", ""], [NAME, "2"]]


def test_an_outcome_is_for_every_form_of_its_run_and_names_its_task(tmp_path: Path) -> None:
    trace = raw([event("a", 0, "inference", "lead", t_end=1)], trace_id="one", task_id="one")
    for name in ("first", "second"):
        (tmp_path / f"{name}.json").write_text(json.dumps(trace), encoding="utf-8")
    (tmp_path / "o.csv").write_text("run,task,reward\none,sort,1\n", encoding="utf-8")
    files = [str(tmp_path / f"{name}.json") for name in ("first", "second")]

    both = run_corpus("trace", "credit", *files, "--outcomes", str(tmp_path / "o.csv"), "--format", "json")

    assert both.code == 0, both.stderr
    assert [one["credits"][0]["credit"] for one in json.loads(both.stdout)["traces"]] == [1.0, 1.0]
    (outcome,) = load(str(tmp_path / "o.csv")).values()
    known = convert(trace, Trace)
    outcome.apply(known)
    assert (known.task_id, known.import_report["outcomes"]) == ("sort", ["rewards.team", "task_id"])


@pytest.mark.parametrize("command", ["credit", "measure"])
def test_an_outcome_of_no_run_is_said_by_those_who_use_outcomes(tmp_path: Path, command: str) -> None:
    path = written(tmp_path, "o.csv", f"run,reward\n{NAME},1\nother,1\n")

    result = run_corpus("trace", command, str(SESSION), "--outcomes", path)

    assert result.code == 1
    said = f"corpus: {path}:3: none of the runs read is called 'other'\ncorpus: the runs read are called {NAME}\n"
    assert result.stderr.endswith(said)


def test_a_reward_that_is_true_or_false_is_1_or_0(tmp_path: Path) -> None:
    found = load(written(tmp_path, "o.csv", "run,reward,agent.x,event.e\na,true,no,Yes\n"))["a"]

    assert (found.rewards, found.agents, found.events) == ({"team": 1.0}, {"x": 0.0}, {"e": 1.0})
    with pytest.raises(DataFileError, match="2: 'true' is not a number from 0 on"):
        load(written(tmp_path, "b.csv", "run,baseline.turns\na,true\n"))


@pytest.mark.parametrize("words", [["credit"], ["export", "--profile", "verl", "--without-tokens"]])
def test_where_outcomes_give_no_reward_it_is_said_what_is_missing(tmp_path: Path, words: list[str]) -> None:
    success = written(tmp_path, "success.csv", f"run,success\n{NAME},true\n")
    other = written(tmp_path, "other.csv", "run,reward\nnope,1\n")

    of_success = run_corpus("trace", *words, str(SESSION), "--outcomes", success)
    of_other = run_corpus("trace", *words, str(SESSION), "--outcomes", other)

    assert of_success == (
        2,
        "",
        f"corpus: the trace '{NAME}' has no reward that could be divided\n"
        "Success is known, but is no reward: give it as `reward` in the file for --outcomes (true is 1).\n",
    )
    assert of_other == (
        1,
        "",
        f"corpus: {other}:2: none of the runs read is called 'nope'\n"
        f"corpus: the runs read are called {NAME}\n"
        "corpus: no run that was read has a reward\n",
    )


def graded(tmp_path: Path, stats: Any) -> dict[str, Any]:
    """The trace of a LangSmith run whose root has been scored."""
    root: dict[str, Any] = {"id": "r", "trace_id": "r", "name": "agent", "run_type": "chain",
            "start_time": "2026-03-02T10:00:00Z", "end_time": "2026-03-02T10:00:05Z"}  # fmt: skip
    call = {
        **root,
        "id": "c",
        "parent_run_id": "r",
        "name": "model",
        "run_type": "llm",
        "feedback_stats": {"own": {"avg": 9}},
    }
    runs = [{**root, "feedback_stats": stats}, call]
    path = written(tmp_path, "runs.jsonl", "".join(json.dumps(run) + "\n" for run in runs))
    (trace,) = imported(path)
    assert run_corpus("trace", "validate", path).code == 0
    return trace


@pytest.mark.parametrize(
    ("stats", "rewards", "metrics"),
    [
        (None, {}, None),
        ({"helpful": {"n": 2, "avg": 0.5}}, {"team": 0.5}, {"feedback.helpful": 0.5}),
        ({"a": {"avg": 1}, "b": {"avg": 0}}, {}, {"feedback.a": 1.0, "feedback.b": 0.0}),
        (
            {"score": {"avg": 3}, "correctness": {"avg": 1}},
            {"team": 3.0},
            {"feedback.score": 3.0, "feedback.correctness": 1.0, "task_success": 1.0},
        ),
        ({"success": {"avg": 7}}, {"team": 7.0}, {"feedback.success": 7.0}),
        ({"label": {"avg": None, "values": {"good": 1}}, "huge": {"avg": 10**400}, "odd": 3}, {}, None),
        ("nonsense", {}, None),
    ],
)
def test_feedback_of_langsmith_is_kept(
    tmp_path: Path, stats: Any, rewards: dict[str, float], metrics: dict[str, float] | None
) -> None:
    trace = graded(tmp_path, stats)

    assert trace["rewards"] == rewards
    assert trace.get("metrics") == metrics


def test_the_file_in_the_documentation_can_be_read(tmp_path: Path) -> None:
    documented = (
        (ROOT / "docs" / "importers.md").read_text(encoding="utf-8").partition("```csv\n")[2].partition("```")[0]
    )

    assert NAME in load(written(tmp_path, "o.csv", documented))
