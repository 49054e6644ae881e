"""Measures: hand-worked values on the examples, and what must hold of every trace."""

import json
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base import workers
from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.base.text.table import lines
from orchtrace_corpus.trace.measures.definitions import DEFINITIONS, Measure, measure
from orchtrace_corpus.trace.measures.ledger import GROUPINGS, KINDS, cost_by_tool, leading_model, ledger, spent_by_agent
from orchtrace_corpus.trace.measures.measure import Run
from orchtrace_corpus.trace.measures.work import concurrency
from orchtrace_corpus.trace.render.measures import ledger_table
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT, run_corpus
from tests.trace.test_import import SESSION, on_terminal
from tests.trace.traces import EXAMPLES, documents, event, example, raw, trace

TOLERANCE = 1e-9


def values(document: dict[str, Any], *names: str) -> dict[str, float | None]:
    return {name: found.value for name, found in measure(trace(document), names).items()}


def value(document: dict[str, Any], name: str) -> float:
    found = measure(trace(document), [name])[name]
    assert found.value is not None, found.reason
    return found.value


def counted(tokens: int) -> dict[str, int | None]:
    """The costs of a run whose tokens are all counted."""
    return {"tokens": tokens, "wall_clock_s": None}


HAND_WORKED: dict[str, dict[str, float | None]] = {
    # One after another: 2 + 2 + 3 + 2 + 3 s, steps plan, think, report, answer.
    "centralized": {
        "worked": 12, "span": 12, "elapsed": 12, "parallelism": 1, "speed_up": 1, "max_concurrency": 1, "efficiency": 1,
        "brent_bound": 12, "steps": 4, "critical_steps": 4, "critical_step_path": 4, "agents": 2,
        "delegation_depth": 1, "width": 2, "fan_out": 1, "message_density": 0, "tokens": 3270,
        "duplicate_call_rate": 0, "stop_regret": 0, "error_spread": None, "error_amplification": None,
    },
    # 3 + 5 + 4 + 2 + 4 + 3 + 1 s; five steps against four of the single agent.
    "planner_executor_critic": {
        "worked": 22, "span": 22, "elapsed": 22, "steps": 5, "critical_steps": 2, "critical_step_path": 5, "width": 2,
        "message_density": 3 / 5, "tokens": 6290, "duplicate_call_rate": 0, "error_spread": 0,
        "coordination_overhead": 1 / 4, "coordination_efficiency": 4 / 5, "error_amplification": 1.25,
        "delegation_depth": 0, "fan_out": None,
    },
    # Twice two at a time for 3 + 1 s, then 2 s: work 18, path 10.
    "debate": {
        "worked": 18, "span": 10, "elapsed": 10, "parallelism": 1.8, "speed_up": 1.8, "max_concurrency": 2,
        "efficiency": 0.9, "brent_bound": 14, "steps": 5, "critical_step_path": 3, "communication_tokens": 80,
        "protocol_share": (80 + 1060) / 3940, "tokens": 3940, "message_density": 4 / 5, "agents": 3,
    },
    # 2 + (3 | 5 + 5 | 2 | 6 + 8) + 4 s.
    "swarm": {
        "worked": 35, "span": 20, "elapsed": 20, "parallelism": 1.75, "max_concurrency": 4, "efficiency": 0.4375,
        "brent_bound": 23.75, "steps": 8, "critical_steps": 4, "critical_step_path": 4, "width": 5, "fan_out": 4,
        "delegation_depth": 1, "tokens": 8240, "stop_regret": 0,
    },
    # 1 + 2 + (4 | 2) + 2 + 1 s; lead, manager, worker, merge, final.
    "hierarchical": {
        "worked": 12, "span": 10, "elapsed": 10, "parallelism": 1.2, "max_concurrency": 2, "efficiency": 0.6,
        "steps": 6, "critical_steps": 5, "critical_step_path": 5, "delegation_depth": 2, "fan_out": 1.5, "width": 4,
    },
    # 73.5 s, of which 60 s wait for a person: 4 + 6 + 1.5 + 2 s are left.
    "harness": {
        "worked": 13.5, "span": 13.5, "elapsed": 13.5, "waited": 60, "steps": 3, "critical_steps": 3,
        "critical_step_path": 3, "tokens": 8900, "agents": 3,
    },
    # Counts steps, has no tokens and no ends; of the booker, who logs no inference, each visible act is a step.
    "mixed": {
        "worked": None, "span": None, "elapsed": 6, "steps": 5, "critical_steps": 5, "tokens": None, "cost": None,
        "critical_step_path": 5, "message_density": 1 / 5, "duplicate_call_rate": None,
    },
    # Two searches of the same, both fail, and so does what follows; a payment is never answered.
    "failing": {
        "worked": None, "span": None, "duplicate_call_rate": 1 / 3, "error_spread": 3, "tokens": 1550, "stop_regret": 0,
        "steps": 6, "width": 3, "fan_out": 2,
    },
    "unknown": {
        "worked": None, "elapsed": None, "tokens": None, "steps": 5, "agents": 3, "delegation_depth": 1, "fan_out": 2,
        "message_density": 1 / 5,
    },
}  # fmt: skip


def test_every_example_is_worked_by_hand() -> None:
    assert sorted(HAND_WORKED) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("name", HAND_WORKED)
def test_measures_equal_the_hand_worked_values(name: str) -> None:
    found = measure(example(name), HAND_WORKED[name])

    assert {one: found[one].value for one in found} == {
        one: None if wanted is None else pytest.approx(wanted) for one, wanted in HAND_WORKED[name].items()
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_measure_is_without_a_value_and_without_a_reason(path: Any) -> None:
    found = measure(example(path.stem))

    assert [name for name, one in found.items() if (one.value is None) == (not one.reason)] == []
    assert list(found) == list(DEFINITIONS)


def test_the_events_of_the_critical_path_are_named() -> None:
    assert measure(example("swarm"), ["span"])["span"] == Measure(20, events=("split", "a4", "b4", "join"))


@given(documents())
def test_bounds_of_every_trace(document: dict[str, Any]) -> None:
    found = values(document, "worked", "span", "elapsed", "speed_up", "max_concurrency", "efficiency", "brent_bound")
    work, span, wall, most = (found[name] or 0.0 for name in ("worked", "span", "elapsed", "max_concurrency"))

    assert span <= wall + TOLERANCE
    assert span <= work + TOLERANCE
    assert (found["speed_up"] or 0.0) <= most + TOLERANCE
    assert (found["efficiency"] or 0.0) <= 1 + TOLERANCE
    if found["brent_bound"] is not None:
        assert span - TOLERANCE <= found["brent_bound"] <= work + TOLERANCE
    times = TraceView(trace(document)).timing
    profile = concurrency(times)
    assert sum(profile.values()) == pytest.approx(times.elapsed)
    assert sum(number * seconds for number, seconds in profile.items()) == pytest.approx(work)


def test_the_last_result_is_told_by_its_moment_where_people_were_waited_for() -> None:
    made = [("return", 0, 0), ("return", 1, 1), ("human_intervention", 0, 1), ("inference", 1, 1)]
    events = [
        {"id": f"e{number}", "agent": "a", "type": kind, "t": begin, "t_end": end}
        for number, (kind, begin, end) in enumerate(made)
    ]
    for order in (events, events[::-1], [{**one, "id": f"x{9 - place}"} for place, one in enumerate(events)]):
        document = {"trace_id": "t", "task_id": "k", "events": order, "edges": [], "rewards": {}}
        document["costs"] = {"tokens": None, "wall_clock_s": None}
        document["reasons"] = {"costs.tokens": "Made for a test.", "costs.wall_clock_s": "Made for a test."}
        assert values(document)["stop_regret"] == 0.0


@given(documents(), st.randoms(use_true_random=False))
def test_renaming_and_reordering_change_nothing(document: dict[str, Any], draw: random.Random) -> None:
    events, edges = list(document["events"]), list(document["edges"])
    names = {one["id"]: f"x{draw.random()}-{place}" for place, one in enumerate(events)}
    agents = {name: f"y{draw.random()}-{name}" for one in events for name in (one["agent"], one.get("to", ""))}
    renamed = [
        {
            **one,
            "id": names[one["id"]],
            "agent": agents[one["agent"]],
            **({"to": agents[one["to"]]} if "to" in one else {}),
        }
        for one in events
    ]
    redirected = [{**edge, "src": names[edge["src"]], "dst": names[edge["dst"]]} for edge in edges]
    draw.shuffle(renamed)
    draw.shuffle(redirected)
    other = {**document, "events": renamed, "edges": redirected}

    first, second = values(document), values(other)
    assert {name: first[name] is None for name in first} == {name: second[name] is None for name in second}
    assert {name: one for name, one in second.items() if one is not None} == {
        name: pytest.approx(one) for name, one in first.items() if one is not None
    }


@given(documents("p"), documents("q"))
def test_independent_traces_side_by_side_add_work_and_keep_the_longer_span(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    def unpeopled(document: dict[str, Any]) -> dict[str, Any]:
        kept = [e for e in document["events"] if e["type"] != "human_intervention"] or [event("z", 0, "return", "z")]
        ids = {e["id"] for e in kept}
        edges = [edge for edge in document["edges"] if {edge["src"], edge["dst"]} <= ids]
        aggregates = {e["id"] for e in kept if e["type"] == "aggregate"} - {edge["dst"] for edge in edges}
        return {**document, "edges": edges,
                "events": [{**e, "type": "inference"} if e["id"] in aggregates else e for e in kept]}  # fmt: skip

    one, other = unpeopled(one), unpeopled(other)
    if {e["id"] for e in one["events"]} & {e["id"] for e in other["events"]}:
        return
    both = raw([*one["events"], *other["events"]])
    both["edges"] = [*one["edges"], *other["edges"]]

    for name in ("worked", "steps"):
        assert value(both, name) == pytest.approx(value(one, name) + value(other, name))
    for name in ("span", "critical_step_path"):
        assert value(both, name) == pytest.approx(max(value(one, name), value(other, name)))


@given(st.integers(1, 30), st.integers(1, 4))
def test_the_critical_steps_of_a_chain_are_its_length(length: int, agents: int) -> None:
    events = [event(f"e{n}", n, "inference", f"a{n % agents}", t_end=n + 1) for n in range(length)]
    edges = " ".join(f"e{n}>e{n + 1}" for n in range(length - 1))
    chain = raw(events, edges)

    assert value(chain, "critical_step_path") == length
    assert value(raw([{**one, "agent": "a"} for one in events], edges), "critical_steps") == length
    assert value(chain, "span") == value(chain, "worked") == length


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_of_a_fork_and_join_both_critical_steps_are_the_longest_branch_and_two(branches: list[int]) -> None:
    events = [event("fork", 0, "orchestrator_decision", "lead", t_end=1)]
    edges = []
    for number, length in enumerate(branches):
        worker = f"w{number}"
        events.append(event(f"s{number}", 1, "spawn", "lead", to=worker))
        before = f"s{number}"
        edges.append(f"fork>{before}")
        for step in range(length):
            events.append(event(f"{worker}-{step}", 1 + step, "inference", worker, t_end=2 + step))
            edges.append(f"{before}>{worker}-{step}:spawn")
            before = f"{worker}-{step}"
        edges.append(f"{before}>join:return")
    end = 1 + max(branches)
    events.append(event("join", end, "aggregate", "lead", t_end=end + 1))
    run = raw(events, " ".join(edges))

    assert value(run, "critical_steps") == value(run, "critical_step_path") == 2 + max(branches)
    assert value(run, "worked") == 2 + sum(branches)
    assert value(run, "span") == 2 + max(branches)


def test_overlap_counts_once_on_the_critical_path() -> None:
    run = raw([event("a", 0, "inference", "x", t_end=10), event("b", 4, "inference", "y", t_end=12)], "a>b")

    assert values(run, "worked", "span", "elapsed") == {"worked": 18, "span": 12, "elapsed": 12}


def test_an_agent_does_one_thing_after_another_even_where_no_edge_says_so() -> None:
    run = raw([event("a", 0, "inference", "x", t_end=3), event("b", 3, "inference", "x", t_end=5)])

    assert value(run, "span") == 5
    assert value(raw([{**run["events"][0]}, {**run["events"][1], "agent": "y"}]), "span") == 3


def test_of_overlapping_calls_the_agent_waits_for_the_heavier_path() -> None:
    calls = [
        event("long", 0, "tool_call", "x", t_end=10),
        event("late", 2, "tool_call", "x", t_end=11),
        event("next", 12, "inference", "x", t_end=13),
    ]

    assert measure(trace(raw(calls)), ["span"])["span"] == Measure(11, events=("long", "next"))


def test_a_tool_call_lasts_until_its_result() -> None:
    run = raw([event("c", 0, "tool_call", "x", call_id="1"), event("r", 7, "tool_result", "x", call_id="1")])

    assert value(run, "worked") == 7


def test_waiting_for_people_is_taken_out_even_while_a_tool_is_open() -> None:
    run = raw([
        event("c", 0, "tool_call", "x", t_end=100),
        event("h", 10, "human_intervention", "u", t_end=90),
        event("i", 20, "inference", "y", t_end=30),
    ])  # fmt: skip

    assert values(run, "waited", "elapsed", "worked", "span") == {"waited": 70, "elapsed": 30, "worked": 40, "span": 30}


def test_nobody_seen_to_intervene_is_no_wait_unless_one_is_stated() -> None:
    events = [event("a", 0, "inference", "x", t_end=10)]

    assert value(raw(events), "waited") == 0
    assert value(raw(events, excluded_human_wait_s=None), "waited") == 0
    assert value(raw(events, excluded_human_wait_s=3), "waited") == 3
    asked = measure(trace(raw([*events, event("h", 2, "human_intervention", "p")])), ["waited"])["waited"]
    assert (asked.value, asked.reason) == (None, "1 of 1 human interventions have no end: h")


def test_one_intervention_without_an_end_leaves_only_what_is_stated() -> None:
    events = [event("a", 0, "inference", "x", t_end=1), event("h", 1, "human_intervention", "p", t_end=3),
              event("b", 3, "inference", "x", t_end=4), event("i", 4, "human_intervention", "p"),
              event("c", 100, "inference", "x", t_end=101)]  # fmt: skip

    asked = measure(trace(raw(events)), ["waited", "elapsed"])
    assert (asked["waited"].value, asked["waited"].reason) == (
        None, "1 of 2 human interventions have no end: i"
    )  # fmt: skip
    assert asked["elapsed"].value == 99
    assert values(raw(events, excluded_human_wait_s=98), "waited", "elapsed") == {"waited": 98, "elapsed": 3}


def test_seconds_of_waiting_are_not_taken_from_steps() -> None:
    run = raw([event("a", 0, "inference", "x", t_end=10)], clock={"unit": "step"}, excluded_human_wait_s=7)

    said = "the wait is stated in seconds, and the trace counts steps"
    assert [(one.value, one.reason) for one in measure(trace(run), ["waited", "elapsed"]).values()] == [
        (None, said)
    ] * 2


def test_a_stated_wait_leaves_the_time_in_which_any_agent_works() -> None:
    alone = [event("a", 0, "inference", "x", t_end=10), event("b", 10, "inference", "y", t_end=20)]

    assert values(raw(alone, excluded_human_wait_s=10), "elapsed", "speed_up", "efficiency") == {
        "elapsed": None, "speed_up": None, "efficiency": None
    }  # fmt: skip


def test_the_wall_time_is_unknown_while_the_last_event_has_no_end() -> None:
    run = raw([event("a", 0, "inference", "x", t_end=1), event("b", 5, "inference", "x")])

    assert reason(run, "elapsed") == "the last event has no end: b"
    assert value(raw([*run["events"], event("c", 6, "return", "x")]), "elapsed") == 6


def test_for_people_it_says_that_a_run_waited_for_people() -> None:
    run = ("trace", "measure", str(ROOT / "data/traces/harness.json"), "--only", "waited")

    assert run_corpus(*run).stdout.splitlines()[1:] == [
        "measure  value  unit  note",
        "waited      60  s     for people",
    ]
    assert run_corpus(*run, "-f", "csv").stdout == "measure,value,unit,note\nwaited,60,s,\n"


def test_tokens_of_which_no_kind_is_known_are_unknown() -> None:
    for tokens in ({}, {"input": None}, {"reasoning": 3}):
        run = raw([event("a", 0, "inference", "x", t_end=1, tokens=tokens)])
        assert reason(run, "tokens") == "1 inference has no tokens: a"
        assert [(one.total, one.without_tokens) for one in ledger(trace(run), "agent")] == [(None, 1)]
    none = event("a", 0, "inference", "x", t_end=1, tokens={"output": 0})
    assert value(raw([none], costs=counted(0)), "tokens") == 0


def test_where_a_run_spent_more_than_its_log_tells_every_form_says_so(tmp_path: Path) -> None:
    events = [
        event("a", 0, "inference", "x", model="m", cost_usd=2, tokens={"input": 1234}),
        event("b", 1, "inference", "y"),
        event("c", 2, "inference", "z", model="m", tokens={"input": 6}, token_basis="placeholder"),
    ]
    one, path = ["--only", "tokens,cost"], tmp_path / "run.json"
    path.write_text(json.dumps(raw(events)), encoding="utf-8")
    placeholder = measure(trace(raw(events[2:])), ["tokens"])["tokens"]

    assert placeholder == Measure(None, "the trace may not record all of it", at_least=6)
    assert run_corpus("trace", "measure", str(path), *one).stdout == (
        "t\n"
        "measure  value           unit   note\n"
        "tokens   at least 1,240  token  1 inference has no tokens: b\n"
        "cost     at least 2      usd    2 of 3 inferences state no cost: b, c\n"
    )
    assert run_corpus("trace", "measure", str(path), *one, "--format", "csv").stdout == (
        "measure,value,unit,note\n"
        "tokens,,token,1 inference has no tokens: b; at least 1240\n"
        'cost,,usd,"2 of 3 inferences state no cost: b, c; at least 2"\n'
    )
    several = run_corpus("trace", "measure", str(path), str(path), *one, "--format", "csv").stdout
    columns = "trace,tokens,cost,tokens_at_least,cost_at_least,task_id,system,format,file\n"
    assert several == columns + f"t,,,1240,2,k,,,{path}\n" * 2
    table = run_corpus("trace", "measure", str(path), "--ledger", "agent").stdout.splitlines()
    assert [line.split()[:6] for line in table[2:5]] == [
        ["x", "1", "1234", "1234", "0", "2"], ["z", "1", "6", "at", "least", "6"], ["y", "1", "1"]
    ]  # fmt: skip
    assert table[-1].endswith("The log does not record all tokens of the run.")
    (found,) = json.loads(run_corpus("trace", "measure", str(path), "--ledger", "agent", "--format", "json").stdout)[
        "traces"
    ]
    assert (found["at_least"], [entry["at_least"] for entry in found["entries"]]) == (True, [False, True, True])


def test_tokens_that_stand_with_other_events_leave_nothing_unknown() -> None:
    ledger_of = {"token_ledger": {"counted with the answer behind them: answers without a count of their own": {}}}
    run = raw(
        [event("a", 0, "inference", "x"), event("b", 1, "inference", "x", tokens={"input": 5})],
        import_report=ledger_of, costs={"tokens": 5, "wall_clock_s": None},
    )  # fmt: skip

    assert measure(trace(run), ["tokens"])["tokens"] == Measure(5)
    assert [one.at_least for one in ledger(trace(run), "agent")] == [False]


def test_the_cost_is_unknown_while_one_inference_states_none() -> None:
    paid, unpaid = event("a", 0, "inference", "x", cost_usd=1), event("b", 1, "inference", "x")

    assert value(raw([paid, event("c", 1, "tool_call", "x", cost_usd=2)], costs=counted(9)), "cost") == 3
    assert reason(raw([paid, unpaid]), "cost") == "1 of 2 inferences state no cost: b"
    assert value(raw([paid, {**unpaid, "copied_context": True}], costs=counted(9)), "cost") == 1
    assert measure(trace(raw([paid])), ["cost"])["cost"].at_least == 1  # nothing says that this is all


def test_what_people_do_is_no_step() -> None:
    said = [event(f"m{n}", n, "message", "user", to="bot") for n in range(2)]
    asked = [event(f"i{n}", n + 2, "inference", "bot", t_end=n + 3) for n in range(2)]
    run = raw([*said, *asked], "m0>i0 m1>i0 i0>i1", agents=[{"id": "user", "kind": "human"}])

    assert values(run, "steps", "critical_steps", "critical_step_path") == {
        "steps": 2, "critical_steps": 2, "critical_step_path": 2
    }  # fmt: skip


def test_what_was_copied_took_its_time_elsewhere() -> None:
    copied = {"copied_context": True, "status": "error"}
    events = [event("old", 0, "inference", "x", t_end=50, **copied), event("a", 100, "inference", "x", t_end=101)]

    assert values(raw(events, "old>a"), "worked", "span", "elapsed", "max_concurrency", "width") == {
        "worked": 1, "span": 1, "elapsed": 1, "max_concurrency": 1, "width": 1
    }  # fmt: skip
    assert reason(raw(events, "old>a"), "error_spread") == "no event has a status"


def test_at_one_instant_seq_says_which_stage_a_spawn_belongs_to() -> None:
    def steps(of_spawn: int) -> float:
        return value(raw([
            event("l1", 0, "inference", "lead", t_end=1),
            event("s1", 1, "spawn", "lead", to="w1"), event("w1a", 1, "inference", "w1", t_end=2),
            event("s2", 2, "spawn", "lead", to="w2", seq=of_spawn), event("w2a", 2, "inference", "w2", t_end=3),
            event("l2", 2, "inference", "lead", t_end=3, seq=3),
        ], "s1>w1a s2>w2a"), "critical_steps")  # fmt: skip

    assert steps(of_spawn=2) == 3  # both workers between the lead's steps
    assert steps(of_spawn=4) == 4  # one before its second step, one after it


def test_at_one_instant_seq_says_what_came_after_the_result() -> None:
    events = [event("r1", 1, "return", "w", seq=1), event("r2", 1, "return", "v", seq=2),
              event("i", 1, "inference", "lead", seq=3, t_end=2)]  # fmt: skip

    assert measure(trace(raw(events)), ["stop_regret"])["stop_regret"] == Measure(1, events=("r2",))


def test_spawns_one_after_another_have_one_decision_in_whatever_order_edges_stand() -> None:
    events = [event("d", 0, "orchestrator_decision", "lead", t_end=1)]
    for place in (1, 2, 3):
        events += [event(f"s{place}", place, "spawn", "lead", to=f"w{place}"),
                   event(f"a{place}", place, "inference", f"w{place}", t_end=9)]  # fmt: skip
    edges = "d>s1 s1>s2 s2>s3 s1>a1 s2>a2 s3>a3 d>s3".split()

    assert value(raw(events, " ".join(edges)), "fan_out") == 3
    assert value(raw(events[::-1], " ".join(edges[::-1])), "fan_out") == 3
    assert value(raw(events, "s1>s2 s2>s3 s1>a1 s2>a2 s3>a3"), "fan_out") == 3


def test_a_ledger_knows_the_roles_and_models_that_agents_are_declared_with() -> None:
    events = [event("d", 0, "orchestrator_decision", "lead", tokens={"output": 5}),
              event("s", 1, "spawn", "lead", to="w", role="hand"),
              event("i", 1, "inference", "w", tokens={"output": 7})]  # fmt: skip
    run = trace(raw(events, "s>i", agents=[{"id": "lead", "role": "boss", "model": "big"}]))

    assert [(one.name, one.total) for one in ledger(run, "role")] == [("hand", 7), ("boss", 5)]
    assert [(one.name, one.total) for one in ledger(run, "model")] == [("", 7), ("big", 5)]


def test_an_answer_without_a_model_is_of_no_model_if_others_of_its_agent_name_theirs() -> None:
    log = str(ROOT / "tests" / "data" / "logs" / "claude_code" / "odd.jsonl")
    rows = run_corpus("trace", "measure", log, "--ledger", "model", "-f", "csv").stdout.splitlines()

    assert rows == [
        "trace,model,events,input,output,cache_read,cache_write,reasoning,total,without_tokens,cost_usd,at_least,"
        "trace_at_least",
        "odd,claude-sonnet-4-5-20250929,3,33,63,18,0,,114,0,,False,True",
        "odd,,12,0,0,3,0,,3,0,,False,True",
    ]
    assert "By model: claude-sonnet-4-5-20250929 97%, not named 3%." in " ".join(
        run_corpus("trace", "doctor", log).stdout.split()
    )


def test_the_concurrency_profile_is_shown_and_adds_up() -> None:
    swarm = str(ROOT / "data" / "traces" / "swarm.json")
    shown = run_corpus("trace", "measure", swarm, "--profile").stdout
    table = run_corpus("trace", "measure", swarm, "--profile", "--format", "csv").stdout
    document = json.loads(run_corpus("trace", "measure", swarm, "--profile", "--format", "json").stdout)

    assert (
        shown
        == """\
swarm: events worked on at once
at once   s  % of time
      1  10       50.0
      2   7       35.0
      3   1        5.0
      4   2       10.0
"""
    )
    assert table == "trace,at_once,time,time_if_waiting,unit\nswarm,1,10,,s\nswarm,2,7,,s\nswarm,3,1,,s\nswarm,4,2,,s\n"
    (one,) = document["traces"]
    assert sum(part["time"] for part in one["profile"]) == 20
    assert sum(part["time"] * part["at_once"] for part in one["profile"]) == 35


def test_there_is_no_profile_of_unknown_durations() -> None:
    mixed = str(ROOT / "data" / "traces" / "mixed.json")
    document = json.loads(run_corpus("trace", "measure", mixed, "--profile", "--format", "json").stdout)

    (one,) = document["traces"]
    assert (one["unit"], one["profile"], one["reason"]) == (
        "step", [], "2 of 3 working events have no end: e1, e7"
    )  # fmt: skip
    assert "No profile: 2 of 3" in run_corpus("trace", "measure", mixed, "--profile").stdout


def test_all_that_a_comparison_lacks_is_said_at_once() -> None:
    events = [event("a", 0, "inference", "x")]

    assert reason(raw(events), "error_amplification") == (
        "no baseline: declare a single agent's run on the same task, with `error_rate`, as `baseline`, "
        "or give it with --outcomes; "
        "`metrics.error_rate` is unknown"
    )
    assert reason(raw(events, baseline={"turns": 0}), "coordination_efficiency") == (
        "`baseline.turns` is 0; `metrics.task_success` is unknown"
    )
    assert reason(raw(events, metrics={"error_rate": 0.5}), "error_amplification") == (
        "no baseline: declare a single agent's run on the same task, with `error_rate`, as `baseline`, "
        "or give it with --outcomes"
    )


def test_what_has_no_tokens_is_called_by_its_kind() -> None:
    events = [event("m", 0, "message", "x", to="y"), event("r", 1, "return", "y")]

    assert reason(raw(events, "m>r"), "communication_tokens") == "1 of 1 messages have no tokens: m"
    assert reason(raw(events, "m>r"), "protocol_share") == (
        "2 of 2 spawns, messages, returns and aggregates have no tokens: m, r"
    )
    assert reason(raw(events[1:]), "communication_tokens") == "there are no messages"


def reason(document: dict[str, Any], name: str) -> str:
    return measure(trace(document), [name])[name].reason


def test_a_stated_wait_that_leaves_too_little_time_is_refused() -> None:
    events = [event("a", 0, "inference", "x", t_end=10)]

    assert value(raw(events, excluded_human_wait_s=0), "elapsed") == 10
    found = measure(trace(raw(events, excluded_human_wait_s=4)), ["elapsed"])["elapsed"]
    assert (found.value, found.reason) == (
        None,
        "the stated wait for people leaves 6, less than the 10 in which agents work",
    )


def test_copied_context_is_not_counted_again() -> None:
    spent = {"tokens": {"input": 5, "output": 5}}
    events = [event("a", 0, "inference", "x", t_end=1, **spent),
              event("b", 1, "inference", "x", t_end=2, copied_context=True, **spent)]  # fmt: skip

    assert value(raw(events, costs=counted(10)), "tokens") == 10
    assert value(raw(events), "steps") == 1
    assert [(entry.name, entry.events, entry.total) for entry in ledger(trace(raw(events)), "agent")] == [("x", 1, 10)]


@given(documents())
def test_what_agents_spend_by_kind_is_what_the_ledger_says(document: dict[str, Any]) -> None:
    for number, one in enumerate(document["events"]):
        one.update(copied_context=number % 5 == 3, cost_usd=number / 10 if number % 2 else None)
    run = trace(document)
    nothing = (None,) * (len(KINDS) + 1)

    assert {one.name: (*one.tokens.values(), one.cost_usd) for one in ledger(run, "agent")} == {
        one.name: tuple(spent_by_agent(run).get(one.name, nothing)) for one in ledger(run, "agent")
    }
    assert spent_by_agent(run).keys() <= {one.name for one in ledger(run, "agent")}


@pytest.mark.parametrize(
    ("models", "declared", "leading"),
    [(("", ""), "", ""), (("", "small"), "", "small"), (("big", "small"), "", "big"), (("small", ""), "big", "big")],
)
def test_the_leading_model_has_the_most_tokens(models: tuple[str, str], declared: str, leading: str) -> None:
    numbers = dict(zip(models, (5, 3), strict=True)) if all(models) else dict.fromkeys(models, 4)
    events = [
        event(f"e{at}", at, "inference", f"a{at}", model=model, tokens={"input": numbers[model] + at * bool(declared)})
        for at, model in enumerate(models)
    ]
    run = trace(raw(events, agents=[{"id": "a1", "model": declared}] if declared else []))

    assert leading_model(run) == leading
    assert leading_model(run) == next((one.name for one in ledger(run, "model") if one.name), "")


@given(documents())
def test_every_ledger_holds_all_tokens(document: dict[str, Any]) -> None:
    run = trace(document)
    wanted = sum(sum(one["tokens"].values()) for one in document["events"] if "tokens" in one)

    for by in GROUPINGS:
        entries = ledger(run, by)
        assert sum(entry.total or 0 for entry in entries) == pytest.approx(wanted)
        assert sum(entry.events for entry in entries) == len(document["events"])


def test_by_tool_an_answer_goes_to_what_it_calls_and_a_spawn_shows_what_it_spawned() -> None:
    tokens = {"input": 90, "output": 10}
    events = [
        event("plan", 0, "inference", "lead", t_end=1, tokens=tokens, cost_usd=0.3),
        event("s", 1, "spawn", "lead", to="child", tool="Agent"),
        event("m", 1, "message", "lead", to="child", tool="SendMessage"),
        event("c1", 1, "inference", "child", t_end=2, tokens=tokens, cost_usd=0.2),
        event("s2", 2, "spawn", "child", to="grandchild", tool="Task"),
        event("g1", 2, "inference", "grandchild", t_end=3, tokens=tokens),
        event("read", 3, "tool_call", "grandchild", tool="Read", t_end=4),
        event("end", 4, "inference", "lead", t_end=5, tokens=tokens, cost_usd=0.1),
    ]
    run = trace(raw(events, "plan>s plan>m s>c1:spawn m>c1:message c1>s2 s2>g1:spawn g1>read"))

    assert [
        (one.name, one.events, one.total, one.cost_usd, one.spawned_tokens, one.spawned_cost_usd)
        for one in ledger(run, "tool")
    ] == [
        ("", 4, 100, 0.1, None, None),
        ("Read", 1, 100, None, None, None),
        ("Task", 1, 100, 0.2, 100, None),
        ("Agent", 1, 50, 0.15, 200, 0.2),
        ("SendMessage", 1, 50, 0.15, None, None),
    ]
    assert cost_by_tool(run) == (("Task", 0.2), ("Agent", 0.15), ("SendMessage", 0.15), ("", 0.1))


def test_the_ledger_by_tool_has_columns_for_what_was_spawned(tmp_path: Path) -> None:
    shown = run_corpus("trace", "measure", str(ROOT / "data" / "traces" / "swarm.json"), "--ledger", "tool",
                       "--format", "csv").stdout  # fmt: skip

    assert shown.splitlines()[0].endswith(",cost_usd,at_least,spawned_tokens,spawned_cost_usd,trace_at_least")


OPEN = [
    event("think", 0, "inference", "a", t_end=10),
    event("edit", 10, "tool_call", "a", tool="Edit", call_id="c", t_end=110),
    event("beside", 10, "inference", "b", t_end=60),
]


def test_the_profile_beside_an_open_call_has_two_readings(tmp_path: Path) -> None:
    path = tmp_path / "open.json"
    path.write_text(json.dumps(raw(OPEN, "think>edit think>beside")), encoding="utf-8")
    words = ["trace", "measure", str(path)]

    assert run_corpus(*words, "--profile").stdout == (
        "t: events worked on at once\n"
        "at once   s  % of time  s *   % *\n"
        "      0   0        0.0   50  45.5\n"
        "      1  60       54.5   60  54.5\n"
        "      2  50       45.5    0   0.0\n"
        "* if open calls only waited (docs/measures.md).\n"
    )
    document = json.loads(run_corpus(*words, "--profile", "--format", "json").stdout)
    assert (document["version"], document["traces"][0]["profile"]) == (
        1,
        [
            {"at_once": 0, "time": 0.0, "time_if_waiting": 50.0},
            {"at_once": 1, "time": 60.0, "time_if_waiting": 60.0},
            {"at_once": 2, "time": 50.0, "time_if_waiting": 0.0},
        ],
    )
    swarm = str(ROOT / "data" / "traces" / "swarm.json")
    several = run_corpus(*words, swarm, "--only", "speed_up,span").stdout.splitlines()
    assert [line.split()[:4] for line in several[1:]] == [["t", "0.545455", "to", "1.45455"], ["swarm", "1.75", "20"]]


def test_errors_downstream_of_errors_are_spread() -> None:
    bad = {"status": "error", "t_end": 1}
    events = [event("a", 0, "inference", "x", **bad), event("b", 1, "return", "x"),
              event("c", 2, "return", "x", status="error"), event("d", 3, "return", "y", status="error")]  # fmt: skip

    assert value(raw(events, "a>b b>c"), "error_spread") == 0.5


def test_figures_of_a_run_with_calls_of_unknown_length_are_the_least_that_they_can_be(tmp_path: Path) -> None:
    endless = {"token_basis": "reported", "tokens": {"input": 7}}
    events = [
        event("a", 0, "inference", "x", t_end=4),
        event("b", 1, "inference", "y", t_end=4),
        event("m", 4, "message", "y", to="x", tokens={"output": 5}),
        event("n", 5, "message", "x", to="y"),
        event("c", 6, "inference", "x", **endless),
    ]
    names = "worked,span,elapsed,parallelism,speed_up,max_concurrency,efficiency,communication_tokens"
    last = "the last event has no end: c"
    why = "1 of 3 working events have no end: c"
    path = tmp_path / "run.json"
    path.write_text(json.dumps(raw(events)), encoding="utf-8")

    assert run_corpus("trace", "measure", str(path), "--only", names).stdout == (
        "t\n"
        "measure               value       unit   note\n"
        f"worked                at least 7  s      {why}\n"
        f"span                  at least 4  s      {why}\n"
        f"elapsed               at least 6  s      {last}\n"
        f"parallelism                       1      {why}\n"
        f"speed_up                          1      {why}\n"
        f"max_concurrency       at least 2  1      {why}\n"
        f"efficiency                        1      {why}\n"
        "communication_tokens  at least 5  token  1 of 2 messages have no tokens: n\n"
    )
    timed = [*events[:-1], event("c", 3, "inference", "y", **endless), event("d", 6, "inference", "x", t_end=10)]
    assert measure(trace(raw(timed)), ["speed_up"])["speed_up"].at_least == 1.1
    bare = measure(trace(raw([event("c", 1, "inference", "x", **endless)])), names.split(","))
    assert {one.at_least for one in bare.values()} == {None}


def test_the_least_of_a_run_with_open_calls_is_that_of_calls_which_only_waited() -> None:
    events = [
        event("a", 0, "inference", "x", t_end=4),
        event("b", 4, "tool_call", "x", tool="read_file", t_end=1004),
        event("c", 1005, "inference", "x"),
        event("d", 1006, "inference", "x", t_end=1007),
    ]

    assert measure(trace(raw(events)), ["worked"])["worked"].at_least == 5


def test_a_measure_that_is_not_known_is_named_with_the_nearest() -> None:
    result = run_corpus("trace", "measure", str(ROOT / "data" / "traces" / "swarm.json"), "--only", "spam")

    assert result.code == 2
    assert "there is no measure 'spam' (did you mean 'span'?" in result.stderr


def test_measures_as_json_name_their_schema_and_keep_null_apart_from_zero() -> None:
    result = run_corpus("trace", "measure", str(ROOT / "data" / "traces" / "mixed.json"), "--format", "json")
    document = json.loads(result.stdout)

    assert (document["schema"], document["version"]) == ("orchtrace-corpus/trace-measures", 1)
    measures = document["traces"][0]["measures"]
    assert measures["worked"] == {
        "value": None, "unit": "step", "reason": "2 of 3 working events have no end: e1, e7", "if_waiting": None,
        "at_least": 1, "by_edges": None, "at_most": None, "events": [],
    }  # fmt: skip
    assert measures["elapsed"]["value"] == 6
    assert measures["parallelism"]["at_least"] is None


def test_what_measures_share_is_computed_once() -> None:
    run = Run(TraceView(example("swarm")))
    calls: list[int] = []

    def counted(of: Run) -> Measure:
        calls.append(1)
        return Measure(1.0)

    assert run.measure(counted) is run.measure(counted)
    assert len(calls) == 1


def test_people_are_no_agents() -> None:
    run = raw(
        [
            event("ask", 0, "human_intervention", "anna", t_end=1),
            event("a", 1, "inference", "lead", t_end=2),
            event("say", 1, "message", "ben", to="lead"),
            event("b", 2, "inference", "helper", t_end=3),
        ],
        agents=[{"id": "ben", "kind": "human"}],
    )

    found = measure(trace(run), ("agents", "width"))

    assert {name: one.value for name, one in found.items()} == {"agents": 2, "width": 2}


def test_without_any_stated_cost_the_cost_is_unknown_and_says_why() -> None:
    asked, other = event("a", 0, "inference", "x"), event("b", 1, "tool_call", "x")

    assert value(raw([{**other, "cost_usd": 0}], costs=counted(0)), "cost") == 0
    for events in ([asked], [other], [asked, other], [{**other, "cost_usd": 3, "copied_context": True}]):
        found = measure(trace(raw(events)), ["cost"])["cost"]
        assert (found.value, found.reason) == (None, "no event has a cost")


def timed_runs(folder: Path, *names: str) -> str:
    """A file of traces of those names, each of an inference that takes a second more than that of the one before."""
    runs = [raw([event("a", 0, "inference", "x", t_end=n)], trace_id=name) for n, name in enumerate(names, 1)]
    path = folder / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    return str(path)


def test_several_traces_as_csv_are_a_line_each(tmp_path: Path) -> None:
    runs = timed_runs(tmp_path, "one", 'the "second", so called', "=3")

    result = run_corpus("trace", "measure", runs, "--only", "worked,tokens,parallelism", "--format", "csv")

    assert result.stdout == (
        "trace,worked,tokens,parallelism,worked_at_least,tokens_at_least,task_id,system,format,file\n"
        f"one,1,,1,,,k,,,{runs}\n"
        f'"the ""second"", so called",2,,1,,,k,,,{runs}\n'
        f"'=3,3,,1,,,k,,,{runs}\n"
    )


def test_several_logs_are_told_apart_by_file_format_and_system_and_sums_have_no_dust(tmp_path: Path) -> None:
    steps = [event("a", 0, "inference", "x", t_end=0.1), event("b", 0.1, "inference", "x", t_end=0.3)]
    parts = [event("c", 0.7, "inference", "x", t_end=0.8)]
    (tmp_path / "run.json").write_text(json.dumps(raw(steps + parts, system="ours")))
    words = ["trace", "measure", str(tmp_path / "run.json"), str(SESSION), "--only", "worked", "--format"]
    name, (log,) = "7ea30000-0000-4000-8000-000000000001", SESSION.glob("*.jsonl")

    assert run_corpus(*words, "csv").stdout == (
        "trace,worked,worked_at_least,task_id,system,format,file\n"
        f"t,0.4,,k,ours,,{tmp_path}/run.json\n"
        f"{name},390.3,,{name},claude-code,claude_code,{log}\n"
    )
    first, second = json.loads(run_corpus(*words, "json").stdout)["traces"]
    assert [first.pop("measures")["worked"]["value"], second.pop("measures")["worked"]["value"]] == [
        pytest.approx(0.4),
        390.3,
    ]
    assert first == {"trace_id": "t", "task_id": "k", "system": "ours", "format": None, "file": f"{tmp_path}/run.json"}
    assert (second["format"], second["file"]) == ("claude_code", str(log))


def test_measures_of_several_traces_fit_a_terminal_and_names_used_elsewhere_are_known(tmp_path: Path) -> None:
    out, code = on_terminal(timed_runs(tmp_path, "one", "two"), command="measure", NO_COLOR="1")
    elsewhere = run_corpus("trace", "measure", timed_runs(tmp_path, "one"), "--only", "critical_path")

    assert (code, elsewhere.code) == (0, 2)
    assert [line.rstrip() for line in out.splitlines()] == [
        "trace  elapsed  worked  span  agents  steps  tokens  cost",
        "one          1       1     1       1      1",
        "two          2       2     2       1      1",
        "Empty: not known; the table of one trace alone gives the reason.",
        "More measures: --only A,B,...; all: --format csv.",
    ]
    whole = run_corpus("trace", "measure", timed_runs(tmp_path, "one", "two"), "--only", "elapsed,steps")
    assert "Empty" not in whole.stdout
    assert elsewhere.stderr == (
        "corpus: there is no measure 'critical_path': 'span' is the longest path of work; "
        "corpus trace doctor shows the critical path\n"
    )


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_processes_that_measure_import_no_command(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Callable[[Any], Any]] = []

    def in_this_process(work: Callable[[Any], Any], documents: Iterable[Any], **_: Any) -> Iterator[Any]:
        sent.append(work)
        return map(work, documents)

    monkeypatch.setattr(workers, "map_in_order", in_this_process)
    run_corpus("trace", "measure", timed_runs(tmp_path, "one", "two"), "--format", form)
    code = (
        "import pickle, sys; pickle.load(sys.stdin.buffer); print([n for n in ('typer', 'click') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(sent[0]), capture_output=True, check=True)

    assert result.stdout == b"[]\n"


def test_a_narrow_ledger_leaves_out_columns_without_figures_first() -> None:
    run = trace(raw([event("a", 0, "inference", "x", t_end=9, tokens={"input": 12_000, "output": 300})]))

    def shown(width: int) -> str:
        return plain(lines(ledger_table("t", "agent", ledger(run, "agent"), width, is_least=False), width))

    assert shown(60) == (
        "t: tokens and cost by agent\n"
        "agent  events  input  output  total\n"
        "x           1  12000     300  12300\n"
        "Empty: not known. Columns of nothing but 0 are left out.\n"
        "Reasoning is a part of output. Copied context is not\n"
        "counted.\n"
    )
    assert shown(24).splitlines()[1:4] == [
        "agent figure       value",
        "x     events           1",
        "      input        12000",
    ]
