"""Two runs compared: what came out first, then what it took and how it came about, each figure with its unit."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from orchtrace_corpus.trace.diagnosis.comparison import Difference, Structure, compare, largest_first
from orchtrace_corpus.trace.render.tables import MAX_DIFFERENCES
from tests.conftest import ROOT, run_corpus
from tests.trace.conversationlogs import trace_of
from tests.trace.traces import EXAMPLES, documents, event, example, raw, trace

TRACES = ROOT / "data" / "traces"

FIRST = raw(
    [
        event("plan", 0, "inference", "lead", t_end=2, model="large"),
        event("ask", 2, "tool_call", "lead", tool="find", t_end=3, call_id="c"),
        event("answer", 3, "tool_result", "lead", tool="find", call_id="c", status="ok"),
    ],
    "plan>ask ask>answer:tool_dependency",
    trace_id="first",
    rewards={"team": 1.0},
    costs={"tokens": None, "wall_clock_s": 3},
)


def changed(**more: Any) -> dict[str, Any]:
    """The first run with other fields."""
    return {**FIRST, "trace_id": "second", **more}


def with_event(number: int, **more: Any) -> dict[str, Any]:
    """The first run with other fields of one event."""
    events = [dict(one) for one in FIRST["events"]]
    events[number].update(more)
    return changed(events=events)


def rows(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[object, ...]]:
    """What differs, in words."""
    return [tuple(found[:5]) for found in compare(trace(one), trace(other))]


@given(documents())
def test_a_run_does_not_differ_from_itself(document: dict[str, Any]) -> None:
    assert compare(trace(document), trace(document)) == []


PARTS = ("rewards", "metrics", "costs", "measures", "findings", *Structure._fields, "declared")
"""What came out is first, then what it took, then how it came about."""


@given(documents(), documents())
def test_a_comparison_turned_round_says_the_same_turned_round(one: dict[str, Any], other: dict[str, Any]) -> None:
    there, back = compare(trace(one), trace(other)), compare(trace(other), trace(one))

    assert [(found.part, found.name, found.after, found.before) for found in back] == [
        (found.part, found.name, found.before, found.after) for found in there
    ]
    places = [PARTS.index(found.part) for found in there]
    assert places == sorted(places)


def test_ids_times_and_contents_are_left_aside() -> None:
    renamed = json.loads(json.dumps(FIRST).replace('"plan"', '"other"'))
    later = json.loads(json.dumps(FIRST))
    for one in later["events"]:
        one["t"] += 5
        if "t_end" in one:
            one["t_end"] += 5

    assert rows(FIRST, renamed) == []
    assert rows(FIRST, later) == []
    assert rows(FIRST, with_event(0, content_ref="sha256:1")) == []


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (changed(rewards={"team": 0.1}), [("rewards", "team", 1.0, 0.1, "reward")]),
        (
            changed(rewards={"tool": 0.1}),
            [("rewards", "team", 1.0, None, "reward"), ("rewards", "tool", None, 0.1, "reward")],
        ),
        (changed(metrics={"task_success": 1}), [("metrics", "task_success", None, 1.0, "")]),
        (
            changed(costs={"tokens": 70, "wall_clock_s": 99, "messages": 0}),
            [
                ("costs", "messages", None, 0.0, "message"),
                ("costs", "tokens", None, 70.0, "token"),
                ("costs", "wall_clock_s", 3.0, 99.0, "s"),
            ],
        ),
        (with_event(0, model="small"), [("models", "large", 1, 0, "event"), ("models", "small", 0, 1, "event")]),
        (changed(agents=[{"id": "lead", "model": "small"}]), []),  # an event knows better than a declaration
        (
            with_event(2, status="error"),
            [("measures", "error_spread", None, 0.0, "1"), ("statuses", "error", 0, 1, "event"),
             ("statuses", "ok", 1, 0, "event")],
        ),
        (
            changed(system="ours", topology="swarm"),
            [("declared", "system", None, "ours", ""), ("declared", "topology", "unknown", "swarm", "")],
        ),
        # A step is no second: their figures are alike, and not compared.
        (changed(clock={"unit": "step"}, costs={"tokens": None, "wall_clock_s": 4}),
         [("costs", "wall_clock_s", 3.0, 4.0, "s"), ("declared", "clock unit", "s", "step", "")]),
    ],
)  # fmt: skip
def test_whatever_differs_is_shown_once_and_nothing_else(
    other: dict[str, Any], wanted: list[tuple[object, ...]]
) -> None:
    assert rows(FIRST, other) == wanted


def test_declared_models_count_where_events_name_none() -> None:
    silent = [{name: value for name, value in one.items() if name != "model"} for one in FIRST["events"]]
    large, small = (changed(events=silent, agents=[{"id": "lead", "model": name}]) for name in ("large", "small"))

    assert rows(large, small) == [("models", "large", 1, 0, "event"), ("models", "small", 0, 1, "event")]


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    other = with_event(1, tool="read", t_end=5)
    other["events"][2].update(t=5, tool="read", status="error")
    other["rewards"] = {"team": 0.25}
    other["costs"] = {"tokens": None, "wall_clock_s": 5}
    other["topology"] = "swarm"
    for name, document in (("one", FIRST), ("two", other)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    words = ["trace", "diff", str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    result = run_corpus(*words)

    assert (result.code, result.stderr) == (0, "")
    assert result.stdout == (
        "B took 2 s more than A: 5 s, not 3 s.\n"
        "part      name          A        B      change  unit\n"
        "rewards   team          1        0.25   -0.75   reward\n"
        "measures  elapsed       3        5      2       s\n"
        "tools     find          1        0      -1      call\n"
        "tools     read          0        1      1       call\n"
        "statuses  error         0        1      1       event\n"
        "statuses  ok            1        0      -1      event\n"
        "measures  worked        3        5      2       s\n"
        "measures  span          3        5      2       s\n"
        "measures  brent_bound   3        5      2       s\n"
        "measures  error_spread           0\n"
        "declared  topology      unknown  swarm\n"
        f"A: first ({tmp_path / 'one.json'})\n"
        f"B: second ({tmp_path / 'two.json'})\n"
        "Empty: not stated or not known.\n"
        "No error_spread in A: there is no error.\n"
    )
    assert run_corpus(*words, "--exit-code").code == 1
    found = json.loads(run_corpus(*words, "--format", "json").stdout)
    assert found["schema"] == "orchtrace-corpus/trace-diff"
    assert found["differences"][0] == {
        "part": "rewards", "name": "team", "A": 1, "B": 0.25, "change": -0.75, "unit": "reward",
        "A_at_least": False, "B_at_least": False,
    }  # fmt: skip


def test_which_of_two_runs_is_faster_is_said_first_and_what_makes_it_so(tmp_path: Path) -> None:
    """The parts of the critical paths of both add up to their elapsed times; agents are compared by their roles."""

    def team(worker: str, begin: float, took: float) -> dict[str, Any]:
        events = [
            event("plan", 0, "inference", "lead", t_end=2),
            event("go", 2, "spawn", "lead", to=worker, role="tester"),
            event("test", begin, "tool_call", worker, tool="Bash", t_end=begin + took),
            event("aside", 2, "inference", "aside", t_end=3),
            event("end", begin + took, "inference", "lead", t_end=begin + took + 1),
        ]
        return raw(events, "plan>go go>test:spawn test>end:return", trace_id=worker)

    for name, document in (("one", team("w1", 2, 4)), ("two", team("w2", 4, 90))):
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")

    table, _, differences = run_corpus("trace", "doctor", one, two).stdout.partition("\n\n")
    assert table == (
        "B took 1 min 28 s more than A: 1 min 35 s, not 7 s.\n"
        "on the critical path           A           B       change\n"
        "Bash of tester               4 s  1 min 30 s  +1 min 26 s\n"
        "nobody at work               0 s         1 s         +1 s\n"
        "gaps in which others worked  0 s         1 s         +1 s\n"
        "model of lead                3 s         3 s"
    )
    assert differences.split()[:9] == ["part", "name", "A", "B", "change", "unit", "measures", "elapsed", "7"]
    turned = run_corpus("trace", "doctor", two, one).stdout
    assert turned.startswith("B took 1 min 28 s less than A: 7 s, not 1 min 35 s.\n")
    assert run_corpus("trace", "doctor", one, one).stdout.startswith("A and B took equally long: 7 s.\n")


def test_of_tokens_that_are_known_in_part_the_known_ones_are_compared(tmp_path: Path) -> None:
    told = [event("a", 0, "inference", "x", tokens={"input": 1200}), event("b", 1, "inference", "x")]
    for name, second in (("one", {}), ("two", {"tokens": {"input": 300}})):
        document = raw([told[0], {**told[1], **second}], costs={"tokens": 1500, "wall_clock_s": None})
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    words = ["trace", "diff", str(tmp_path / "one.json"), str(tmp_path / "two.json")]

    assert run_corpus(*words).stdout.splitlines()[2:3] == ["measures  tokens  at least 1,200  1500          token"]
    assert run_corpus(*words).stdout.endswith("At least: the log does not record all of it.\n")
    (found, *_) = json.loads(run_corpus(*words, "--format", "json").stdout)["differences"]
    assert found == {
        "part": "measures", "name": "tokens", "A": 1200, "B": 1500, "change": None, "unit": "token",
        "A_at_least": True, "B_at_least": False,
    }  # fmt: skip


def test_people_see_the_names_of_agents_and_programs_their_ids(tmp_path: Path) -> None:
    for run, worker in (("one", "a111111111111"), ("two", "b222222222222")):
        told = [event("s", 0, "spawn", "lead", to=worker, role="reader"), event("w", 1, "inference", worker)]
        told += [event("x", 2, "inference", worker)] if run == "two" else []
        (tmp_path / f"{run}.json").write_text(json.dumps(raw(told, "s>w:spawn")), encoding="utf-8")
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")

    shown = run_corpus("trace", "diff", one, two, "--all")
    found = json.loads(run_corpus("trace", "diff", one, two, "--format", "json").stdout)["differences"]
    assert [line.split() for line in shown.stdout.splitlines() if line.startswith(("agents", "handovers"))] == [
        ["agents", "lead/reader", "1", "2", "1", "event"]
    ]
    assert [line["name"] for line in found if line["part"] in ("agents", "handovers")] == [
        "lead/a111111111111", "lead/b222222222222", "spawn lead -> a111111111111", "spawn lead -> b222222222222",
    ]  # fmt: skip
    side_by_side = run_corpus("trace", "doctor", one, two).stdout
    assert "lead/reader" in side_by_side
    assert "111111" not in side_by_side

    states = run_corpus("trace", "replay", two).stdout
    assert "lead: spawn -> reader  " in states
    assert "reader: inference  " in states
    assert "222222" not in states
    assert '"b222222222222"' in run_corpus("trace", "replay", two, "--format", "json").stdout


def test_runs_that_do_not_differ_are_said_not_to(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(FIRST), encoding="utf-8")
    (tmp_path / "two.json").write_text(json.dumps(changed()), encoding="utf-8")
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    same = run_corpus("trace", "diff", one, one, "--exit-code")
    alike = run_corpus("trace", "diff", one, two, "--exit-code")

    assert (same.code, same.stdout, same.stderr) == (0, "The traces are the same.\n", "")
    assert (alike.code, alike.stdout, alike.stderr) == (
        0,
        "No differences except in ids, times of single events and contents, which are not compared.\n",
        "",
    )
    assert (
        run_corpus("trace", "diff", one, two, "--format", "csv").stdout
        == "part,name,A,B,change,unit,A_at_least,B_at_least\n"
    )


def test_different_tasks_are_compared_and_said_to_be_different() -> None:
    result = run_corpus("trace", "diff", str(TRACES / "swarm.json"), str(TRACES / "debate.json"))

    assert result.code == 0
    assert result.stdout.startswith("B took 10 s less than A: 10 s, not 20 s.\npart ")
    assert result.stderr == "corpus: these are different tasks, 'survey-four-fields' and 'is-the-proof-right'\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_figure_of_a_comparison_has_a_change_where_both_are_known(path: Path) -> None:
    for found in compare(example("swarm"), example(path.stem)):
        known = isinstance(found.before, int | float) and isinstance(found.after, int | float)
        assert (found.change is not None) == (known and not any(found.are_lower_bounds))


def test_two_sessions_are_compared_by_what_differs_most_and_are_no_different_tasks(tmp_path: Path) -> None:
    sessions = [str(ROOT / "tests" / "data" / "findings" / "unread_message"), str(ROOT / "tests" / "data" / "session")]
    result = run_corpus("trace", "diff", *sessions, "--prices", f"{sessions[1]}/prices.yaml")

    assert (result.code, result.stderr) == (0, "")
    rows = [line.split()[:2] for line in result.stdout.splitlines()[2:17]]
    assert rows[:6] == [
        ["measures", "tokens"],
        ["measures", "elapsed"],
        ["measures", "cost"],
        ["findings", "unread_message"],
        ["findings", "unread_message_seconds"],
        ["findings", "unread_message_tokens"],
    ]
    everything = compare(*(trace(trace_of(Path(path))) for path in sessions))
    assert len(rows) == MAX_DIFFERENCES < len(everything)
    assert "more differences are smaller: corpus trace diff A B --all.\n" in result.stdout
    assert "smaller" not in run_corpus("trace", "diff", *sessions, "--all").stdout
    both = json.loads(run_corpus("trace", "doctor", *sessions, "--format", "json").stdout)
    alone = json.loads(run_corpus("trace", "diff", *sessions, "--format", "json").stdout)
    assert both["differences"] == alone["differences"]
    assert "differences" not in json.loads(run_corpus("trace", "doctor", sessions[0], "--format", "json").stdout)


@given(documents(prefix="x"), documents(prefix="y"))
def test_the_largest_first_are_the_same_differences(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = compare(trace(one), trace(other))
    ordered = largest_first(found)

    left_out = [one for one in found if one not in ordered]
    assert {one.part for one in left_out} <= {"costs"}
    assert len(ordered) + len(left_out) == len(found)


def test_findings_and_open_calls_are_compared() -> None:
    calm = [event("think", 0, "inference", "a", t_end=10), event("edit", 10, "tool_call", "a", tool="Edit", t_end=20)]
    slow = [calm[0], {**calm[1], "t_end": 110}]

    assert [one[1:4] for one in rows(raw(calm, "think>edit"), raw(slow, "think>edit")) if one[0] == "measures"] == [
        ("worked", 20.0, 110.0),
        ("worked_if_waiting", 20.0, 10.0),
        ("span", 20.0, 110.0),
        ("span_if_waiting", 20.0, 10.0),
        ("elapsed", 20.0, 110.0),
        ("speed_up_if_waiting", 1.0, pytest.approx(1 / 11)),
        ("efficiency_if_waiting", 1.0, pytest.approx(1 / 11)),
        ("brent_bound", 20.0, 110.0),
        ("brent_bound_if_waiting", 20.0, 10.0),
    ]


@pytest.mark.parametrize(
    ("kind", "number", "unit", "words"),
    [
        ("unread_message", 3, "message", "3 messages that nobody read"),
        ("unused_result", 1, "result", "1 result that nobody used"),
        ("no_return", 1, "agent", "1 agent spawned that never returned"),
        ("repeated_call", 1, "call", "1 call repeats what a sibling did"),
        ("idle_lead", 1, "lead", "Lead idle while its team was blocked (lead)"),
        ("large_context", 1, "context", "Context past half its window (reader"),
    ],
)
def test_findings_are_counted_as_on_the_screen(kind: str, number: int, unit: str, words: str) -> None:
    case = ROOT / "tests" / "data" / "findings" / kind
    document = trace_of(case) if case.is_dir() else json.loads(case.with_suffix(".json").read_text("utf-8"))
    calm = raw([event("think", 0, "inference", "a", t_end=10)])

    assert ("findings", kind, 0, number, unit) in rows(calm, document)
    assert words in case.with_suffix(".txt").read_text("utf-8")


def test_words_have_no_change() -> None:
    assert Difference("declared", "system", "a", "b").change is None


def test_runs_in_steps_and_in_seconds_are_said_not_to_be_compared_in_time(tmp_path: Path) -> None:
    for name, unit in (("one", "step"), ("two", "s")):
        (tmp_path / name).write_text(json.dumps(changed(trace_id=name, clock={"unit": unit})), encoding="utf-8")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")

    told = "Times are not compared: A counts steps, B seconds.\npart "
    assert run_corpus("trace", "diff", one, two).stdout.startswith(told)
    assert run_corpus("trace", "doctor", one, two).stdout.startswith(told)
    turned = run_corpus("trace", "diff", two, one).stdout
    assert turned.startswith("Times are not compared: A counts seconds, B steps.\npart ")


@pytest.mark.parametrize(("order", "side"), [((0, 1), "B"), ((1, 0), "A")])
def test_why_a_measure_is_not_known_on_one_side_is_said_beside_a_least_on_the_other(
    order: tuple[int, int], side: str, tmp_path: Path
) -> None:
    part = [event("a", 0, "inference", "x", tokens={"input": 7}), event("b", 1, "inference", "x")]
    for name, events in (("0", part), ("1", part[1:])):
        (tmp_path / name).write_text(json.dumps(raw(events)), encoding="utf-8")

    told = run_corpus("trace", "diff", *(str(tmp_path / str(one)) for one in order)).stdout

    assert f"\nNo tokens in {side}: 1 inference has no tokens: b.\n" in told
    assert "\nAt least: the log does not record all of it.\n" in told


def test_tokens_that_one_run_does_not_state_are_listed_as_measured_only() -> None:
    part = [event("a", 0, "inference", "x", tokens={"input": 7}), event("b", 1, "inference", "x")]
    whole = [part[0], {**part[1], "tokens": {"input": 5}}]
    found = compare(trace(raw(part)), trace(raw(whole, costs={"tokens": 12, "wall_clock_s": None})))

    assert found == [Difference("measures", "tokens", 7.0, 12.0, "token", are_lower_bounds=(True, False))]
