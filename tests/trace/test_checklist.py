"""The reporting checklist: what can be recomputed from a run, many runs and a dataset, and what to log for the rest."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace.analysis.marks import Marks
from orchtrace_corpus.trace.dataset.columns import TABLES
from orchtrace_corpus.trace.diagnosis.checklist import COLUMNS, ITEMS, Area, Recomputed, check, facts_of
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import run_corpus
from tests.trace.test_import import LOGS, SESSION, on_terminal
from tests.trace.traces import EXAMPLES, event, example, raw, trace

SWARM = str(next(path for path in EXAMPLES if path.stem == "swarm"))


def known(document: dict[str, Any], marks: Marks | None = None) -> dict[str, str]:
    """How far each item can be recomputed from a trace."""
    checked = check([facts_of(marks or Marks(), None, TraceView(trace(document)))])
    return {one.item.title: one.overall.value for one in checked}


def items_of(*words: str) -> dict[str, dict[str, Any]]:
    result = run_corpus("trace", "checklist", *words, "--format", "json")
    assert result.code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["schema"], document["version"]) == ("orchtrace-corpus/trace-checklist", 1)
    return {item["report"]: item for item in document["items"]}


def test_the_checklist_of_a_run_says_what_is_known_and_what_to_log() -> None:
    assert (
        run_corpus("trace", "checklist", SWARM).stdout
        == """\
swarm: 11 of 21 items can be recomputed, 2 partly, 8 cannot
about        report                       known   to log
reward       outcome of the run           yes
             rewards of agents            no      `reward` of agents, from a check or a judge
             rewards of steps             no      `reward` of events, from a check or a judge
             success of tool calls        n/a
credit       who was needed               yes
             who made the difference      no      runs of the task without each agent: credit --values
             advantage within the group   partly  several runs of one `task_id`, with outcomes
parallelism  work, span, parallelism      yes
             elapsed time, speed-up       yes
             agents at once               yes
             critical steps               yes
             comparison with one agent    no      a single agent's run of the task, as `baseline`: --outcomes
cost         all tokens                   yes
             model of the tokens          yes
             cost                         no      prices: --cost or --prices when logs are imported
             tokens of communication      n/a
safety       reach of untrusted content   n/a
             effects under its influence  n/a
             effects without approval     n/a
             gates before side effects    n/a
             time to containment          n/a
stopping     stopping decisions           yes
             steps after the result       yes
             regret of the last outcome   no      outcomes of earlier attempts: `reward` of events
decisions    spawns and delegation        yes
             errors and how they spread   no      `status` of calls, answers and results
             repeated calls               n/a
setting      program and version          partly  `system`, and `version` of the source
             date                         no      `clock.epoch`
docs/checklist.md says what each item rests on.
partly: some of it is known, or the least that it can be; n/a: the run has nothing of it.
"""
    )


def test_items_rest_on_columns_that_tables_have() -> None:
    there = {column.name for column in TABLES["traces"]}

    assert {name for item in ITEMS for name in item.columns} <= set(COLUMNS) <= there
    assert {item.area for item in ITEMS} == set(Area)
    assert len({item.title for item in ITEMS}) == len(ITEMS)
    assert all(item.columns or item.judge for item in ITEMS)
    assert all(bool(item.columns) != bool(item.rests_on) for item in ITEMS if item.judge is None or not item.columns)


FULL = [
    event("a", 0, "inference", "x", t_end=1, model="m", tokens={"input": 5, "output": 1}, cost_usd=1, status="ok"),
    event("s", 1, "spawn", "x", to="y", tokens={"output": 1}, cost_usd=0),
    event("m", 1, "message", "x", to="y", t_end=1, tokens={"output": 2}, cost_usd=0),
    event("c", 2, "tool_call", "y", tool="search", call_id="1", t_end=3, content_ref="sha256:1", status="ok"),
    event("r", 3, "tool_result", "y", tool="search", call_id="1", status="ok"),
    event("b", 3, "inference", "y", t_end=4, model="m", tokens={"input": 5, "output": 1}, cost_usd=1, status="ok"),
    event("d", 4, "return", "y", to="x", tokens={"output": 3}, cost_usd=0),
    event("e", 5, "stop", "x"),
]
EDGES = "a>s s>c:spawn c>r:tool_dependency r>b b>d d>e:return"


def test_a_run_that_logs_it_is_known() -> None:
    document = raw(FULL, EDGES, rewards={"team": 1.0}, costs={"tokens": 18, "wall_clock_s": 5}, system="ours",
                   clock={"unit": "s", "epoch": "2026-03-01T09:00:00Z"})  # fmt: skip

    found = known(document, Marks(("search",), ("search",)))

    assert {title for title, recomputed in found.items() if recomputed == "no"} == {
        "rewards of agents",
        "rewards of steps",
        "who made the difference",
        "comparison with one agent",
        "gates before side effects",
        "regret of the last outcome",
    }
    assert found["effects without approval"] == found["time to containment"] == "n/a"
    assert found["all tokens"] == found["cost"] == found["model of the tokens"] == found["date"] == "yes"
    assert found["reach of untrusted content"] == found["effects under its influence"] == "yes"
    assert found["tokens of communication"] == found["repeated calls"] == found["spawns and delegation"] == "yes"


@pytest.mark.parametrize(
    ("change", "title", "recomputed"),
    [
        ({"t_end": None}, "work, span, parallelism", "partly"),
        ({"tokens": None}, "all tokens", "partly"),
        ({"cost_usd": None}, "cost", "partly"),
        ({"model": None}, "model of the tokens", "partly"),
    ],
)
def test_a_field_that_an_event_lacks_makes_its_items_partly_known(
    change: dict[str, None], title: str, recomputed: str
) -> None:
    last = {name: value for name, value in FULL[5].items() if name not in change}
    document = raw([*FULL[:5], last, *FULL[6:]], EDGES, costs={"tokens": 18, "wall_clock_s": 5})

    assert known(document)[title] == recomputed


def test_runs_of_one_task_with_outcomes_are_a_group(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run = raw(FULL, EDGES, rewards={"team": 1.0}, trace_id=name)
        (tmp_path / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")

    both = items_of(str(tmp_path))["advantage within the group"]
    alone = items_of(str(tmp_path), "--session", "one")["advantage within the group"]

    assert (both["recomputed"], both["traces"]["yes"]) == ("yes", 2)
    assert (alone["recomputed"], alone["to_log"]) == ("partly", "several runs of one `task_id`, with outcomes")


def test_outcomes_and_marks_that_are_given_count(tmp_path: Path) -> None:
    outcomes = str(SESSION / "outcomes.csv")

    without = items_of(str(SESSION))
    given = items_of(str(SESSION), "--outcomes", outcomes, "--untrusted", "Bash")

    assert (without["outcome of the run"]["recomputed"], given["outcome of the run"]["recomputed"]) == ("no", "yes")
    assert without["reach of untrusted content"]["recomputed"] == "no"
    assert given["reach of untrusted content"]["recomputed"] == "yes"
    (reason,) = without["reach of untrusted content"]["reasons"]
    assert (reason["reason"][:41], reason["traces"]) == ("no content is marked as trusted or not: n", 1)


def test_a_dataset_has_the_checklist_of_its_traces(tmp_path: Path) -> None:
    sources = [str(path) for path in EXAMPLES] + [str(LOGS / "claude_code"), str(LOGS / "codex")]
    folder = str(tmp_path / "dataset")
    assert run_corpus("trace", "dataset", "build", *sources, "-o", folder).code == 0

    assert items_of(folder) == items_of(*sources)
    assert re.match(r"\d+ traces: ", run_corpus("trace", "checklist", folder).stdout)


def test_of_a_dataset_nothing_else_is_taken(tmp_path: Path) -> None:
    folder = str(tmp_path / "dataset")
    run_corpus("trace", "dataset", "build", SWARM, "-o", folder)

    for words in ([SWARM], ["--untrusted", "Bash"], ["--session", "swarm"]):
        result = run_corpus("trace", "checklist", folder, *words)
        assert (result.code, result.stdout) == (2, "")
        assert "of a dataset, give the folder alone, and of the options --format" in result.stderr


def test_several_traces_are_counted_and_every_form_has_every_item() -> None:
    words = ["trace", "checklist", *map(str, EXAMPLES)]

    shown = run_corpus(*words).stdout.splitlines()
    csv = run_corpus(*words, "--format", "csv").stdout.splitlines()
    markdown = run_corpus(*words, "--format", "markdown").stdout

    assert shown[0].startswith(f"{len(EXAMPLES)} traces: ")
    assert shown[1].split() == ["about", "report", "yes", "partly", "no", "n/a", "to", "log"]
    assert len(csv) == 1 + len(ITEMS)
    assert csv[0] == "about,report,recomputed,yes,partly,no,not_applicable,to_log,reasons"
    for line in csv[1:]:
        assert sum(map(int, re.findall(r",(\d+)(?=,)", line)[:4])) == len(EXAMPLES)
    assert all(item.title in markdown for item in ITEMS)


def test_the_checklist_fits_a_terminal() -> None:
    shown, code = on_terminal(SWARM, command="checklist", columns=80, NO_COLOR="1", TERM="dumb")

    assert code == 0
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_renamed_run_has_the_same_checklist(path: Path) -> None:
    before = example(path.stem)
    marks = Marks()
    renamed = json.loads(path.read_text("utf-8").replace('"lead"', '"chief"'))

    first, second = ([one.overall for one in check([facts_of(marks, None, TraceView(run))])]
                     for run in (before, trace(renamed)))  # fmt: skip

    assert first == second
    assert Recomputed.YES in first
