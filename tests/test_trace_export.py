"""A trace in the published form: what it had to leave behind is said, and only where it is so."""

import json
from pathlib import Path
from typing import Any

from orchtrace_corpus.trace.published import losses, published
from tests.conftest import run_corpus
from tests.traces import event, raw

COSTS = {"tokens": 1, "wall_clock_s": 9}


def left_out(document: dict[str, Any]) -> list[str]:
    """What the published form of a trace lacks."""
    return losses(document, published(document))


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
