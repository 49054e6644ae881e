"""A trace in the published form: what it had to leave behind is said, and only where it is so."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace.exporters.published import bridge, losses, publish
from tests.conftest import ROOT, run_corpus
from tests.effort import assert_grows
from tests.trace.traces import event, raw

COSTS = {"tokens": 1, "wall_clock_s": 9}


def left_out(document: dict[str, Any]) -> list[str]:
    """What the published form of a trace lacks."""
    return losses(document, publish(document))


def test_what_the_published_form_lacks_is_said_kind_by_kind(tmp_path: Path) -> None:
    run = raw(
        [
            event("a", 0, "message", "x", t_end=1, of_my_own=1),
            event("b", 1, "inference", "x", t_end=2),
            event("c", 2, "inference", "x", t_end=3),
            event("d", 3, "return", "x", to="y", t_end=3, status="ok"),
            event("e", 4, "aggregate", "y", t_end=5),
            event("f", 5, "stop", "y"),
        ],
        "a>b b>c c>d:return d>e:return e>f",
        costs=COSTS,
        metrics={"task_success": None, "error_rate": 0.5},
        agents=[{"id": "y", "role": "judge"}],
        reasons={"metrics.task_success": "Nobody judged it."},
    )
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
    result = run_corpus("trace", "export", str(tmp_path / "t.json"), "--profile", "published")

    assert result.code == 0
    assert result.stderr.splitlines()[-1] == (
        "corpus: left out: 3 of 6 events (2 inference, 1 stop); "
        "4 of 5 edges, 1 put in to bridge what is left out; "
        "fields of the trace: reasons, agents; "
        "fields of the events kept: 3 t_end, 1 of_my_own, 1 status; "
        "figures that are null: metrics.task_success"
    )
    assert len(json.loads(result.stdout)["events"]) == 3


def test_what_trainers_keep_is_no_part_of_the_published_form() -> None:
    plain = raw([event("a", 0, "message", "x", t_end=1)], costs=COSTS)
    kept = raw(
        [event("a", 0, "message", "x", t_end=1, reward=1, finish_reason="stop", t_request=0, token_refs={})],
        costs=COSTS,
        run={"group": "g"},
        agents=[{"id": "x", "reward": 1}],
    )

    assert publish(kept) == publish(plain)
    assert left_out(kept) == [
        "fields of the trace: reasons, run, agents",
        "fields of the events kept: 1 finish_reason, 1 reward, 1 t_end, 1 t_request, 1 token_refs",
    ]


def test_a_trace_in_the_published_form_loses_nothing(tmp_path: Path) -> None:
    run = raw([event("a", 0, "message", "x"), event("b", 1, "return", "x")], "a>b a>b", costs=COSTS)
    del run["reasons"]
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")

    assert left_out(run) == []
    result = run_corpus("trace", "export", str(tmp_path / "t.json"), "--profile", "published")
    assert result.stderr.splitlines()[-1] == "corpus: nothing was left out"
    assert "left out" not in run_corpus("trace", "export", str(tmp_path / "t.json")).stderr


def test_edges_lost_without_a_bridge_are_counted_and_long_lists_cut() -> None:
    events = [event("a", 0, "inference", "x", **{f"f{n:02}": n for n in range(20)}), event("b", 1, "return", "x")]
    events[1] |= {f"g{n:02}": n for n in range(14)}
    run = raw(events, "a>b", costs=COSTS)
    del run["reasons"]

    assert left_out(run) == [
        "1 of 2 events (1 inference)",
        "1 of 1 edges",
        "fields of the events kept: " + ", ".join(f"1 g{n:02}" for n in range(12)) + " and 2 more",
    ]


def test_names_from_a_trace_cannot_reach_the_terminal() -> None:
    run = raw([event("a", 0, "message", "x", **{"\x1b[31m": 1})], costs=COSTS)

    assert left_out(run)[-1] == "fields of the events kept: 1 \\x1b[31m"


def chained(calls: int, *, fed_by: int = 1) -> dict[str, Any]:
    """An agent that thinks, calls a tool and goes on with its result, many times; messages have come in before."""
    events = [event(f"m{n}", 0, "message", "user") for n in range(fed_by)]
    edges = [f"m{n}>i0" for n in range(fed_by)]
    for n in range(calls):
        events += [
            event(f"i{n}", n, "inference", "x"),
            event(f"c{n}", n, "tool_call", "x", call_id=str(n)),
            event(f"r{n}", n, "tool_result", "x", call_id=str(n)),
        ]
        edges += [f"i{n}>c{n}", f"c{n}>r{n}:tool_dependency"]
        edges += [f"i{n}>i{n + 1}:temporal", f"r{n}>i{n + 1}"] if n + 1 < calls else []
    return raw(events, " ".join(edges), costs=COSTS)


@pytest.mark.parametrize("fed_by", [1, 300])
def test_chains_of_dropped_events_have_no_more_bridges_than_ways_in_and_out(fed_by: int) -> None:
    found = publish(chained(300, fed_by=fed_by))["edges"]
    ends = [(edge["src"], edge["dst"]) for edge in found]

    assert sorted(ends) == sorted(
        [(f"m{n}", "c0") for n in range(fed_by)]
        + [(f"c{n}", f"r{n}") for n in range(300)]
        + [(f"r{n}", f"c{n + 1}") for n in range(299)]
    )


def test_bridges_take_time_that_grows_with_the_edges() -> None:
    assert_grows(lambda calls: partial(publish, chained(calls, fed_by=calls)), 500, 4_000, 24)  # squared: 64 times


def led_to(edges: list[dict[str, str]], kept: set[str]) -> set[tuple[str, str]]:
    """Which kept event leads to which, along edges."""
    later: dict[str, list[str]] = {}
    for edge in edges:
        later.setdefault(edge["src"], []).append(edge["dst"])
    found = set()
    for source in kept:
        waiting, seen = [source], set[str]()
        while waiting:
            fresh = [name for name in later.get(waiting.pop(), ()) if name not in seen]
            seen.update(fresh)
            waiting += fresh
        found |= {(source, name) for name in seen & kept}
    return found


def every_bridge(edges: list[dict[str, str]], kept: set[str]) -> set[tuple[str, str, str]]:
    """The edges between kept events, and a bridge wherever left-out events alone lead from one to the other."""
    found = set()
    for edge in edges:
        waiting = [edge["src"]] if edge["dst"] in kept else []
        while waiting:
            source = waiting.pop()
            if source in kept:
                found.add((source, edge["dst"], edge["type"]))
            else:
                waiting += [one["src"] for one in edges if one["dst"] == source]
    return found


@st.composite
def linked(draw: st.DrawFn) -> tuple[list[dict[str, str]], set[str]]:
    """Edges that lead forward among a few events, in any order, and those of the events that are kept."""
    number = draw(st.integers(2, 12))
    pairs = st.tuples(st.integers(0, number - 1), st.integers(0, number - 1)).filter(lambda pair: pair[0] < pair[1])
    names = draw(st.permutations([f"e{n}" for n in range(number)]))
    kinds = st.sampled_from(["causal", "return"])
    edges = [{"src": names[a], "dst": names[b], "type": draw(kinds)} for a, b in draw(st.lists(pairs, max_size=30))]
    return edges, set(draw(st.lists(st.sampled_from(names), unique=True)))


@given(linked())
def test_what_led_to_what_among_kept_events_still_does(case: tuple[list[dict[str, str]], set[str]]) -> None:
    edges, kept = case
    found = bridge(edges, kept)
    written = {(edge["src"], edge["dst"], edge["type"]) for edge in found}

    assert led_to(found, kept) == led_to(edges, kept)
    assert len(written) == len(found)
    assert written <= every_bridge(edges, kept)
    assert {(one["src"], one["dst"], one["type"]) for one in edges if {one["src"], one["dst"]} <= kept} <= written


@pytest.mark.parametrize("words", [["export"], ["label"], ["import", "--to", "json"]])
def test_a_laid_out_trace_gets_no_name_under_which_it_would_be_read_line_by_line(
    words: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "run.jsonl"
    result = run_corpus("trace", *words, str(ROOT / "data" / "traces" / "swarm.json"), "-o", str(target))

    assert result.code == 2
    assert "would be read line by line" in result.stderr
    assert not target.exists()
