"""A trace as Mermaid, as Graphviz and as a picture: what each draws, how it marks the critical path, how large it gets."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given

from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.render import graph as trace_graph
from orchtrace_corpus.trace.render.doctor import as_data
from tests.conftest import ROOT, run_corpus
from tests.trace.traces import EXAMPLES, documents, event, example, raw, trace

SVG = "{http://www.w3.org/2000/svg}"

TEAM = raw(
    [
        event("plan", 0, "orchestrator_decision", "lead", t_end=2),
        event("hire-1", 2, "spawn", "lead", to="w1"),
        event("hire-2", 2, "spawn", "lead", to="w2"),
        event("slow", 2, "inference", "w1", t_end=6),
        event("quick", 2, "inference", "w2", t_end=3, status="error"),
        event("tell-1", 6, "return", "w1", to="lead"),
        event("tell-2", 3, "return", "w2", to="lead"),
        event("merge", 6, "aggregate", "lead", t_end=7),
    ],
    "plan>hire-1 plan>hire-2 hire-1>slow:spawn hire-2>quick:spawn slow>tell-1 quick>tell-2 "
    "tell-1>merge:return tell-2>merge:return",
)


def test_a_trace_as_a_mermaid_flowchart_with_its_critical_path_thick() -> None:
    assert trace_graph.mermaid(trace(TEAM)) == (
        "flowchart LR\n"
        "  %% Thick: the critical path, 7 s: what the end waited for.\n"
        '  subgraph a0["lead"]\n'
        '    e0["plan: orchestrator_decision"]\n'
        '    e1["hire-1: spawn"]\n'
        '    e2["hire-2: spawn"]\n'
        '    e7["merge: aggregate"]\n'
        "  end\n"
        '  subgraph a1["w1"]\n'
        '    e3["slow: inference"]\n'
        '    e5["tell-1: return"]\n'
        "  end\n"
        '  subgraph a2["w2"]\n'
        '    e4["quick: inference"]\n'
        '    e6["tell-2: return"]\n'
        "  end\n"
        "  e0 -->|causal| e1\n"
        "  e0 -->|causal| e2\n"
        "  e1 ==>|spawn| e3\n"
        "  e2 ==>|spawn| e4\n"
        "  e3 -->|causal| e5\n"
        "  e4 -->|causal| e6\n"
        "  e5 -->|return| e7\n"
        "  e6 -->|return| e7\n"
        "  linkStyle 0,2,4,6 stroke-width:5px\n"
        "  classDef critical stroke-width:4px\n"
        "  class e0,e1,e3,e5,e7 critical\n"
        "  classDef failed stroke:#c1121f,stroke-dasharray:5 3\n"
        "  class e4 failed\n"
    )


def test_a_trace_for_graphviz_with_its_critical_path_thick() -> None:
    assert trace_graph.dot(trace(TEAM)) == (
        "digraph trace {\n"
        "  rankdir=LR;\n"
        "  node [shape=box, fontname=sans];\n"
        '  label="t\\nThick: the critical path, 7 s: what the end waited for.";\n'
        "  subgraph cluster_0 {\n"
        '    label="lead";\n'
        '    e0 [label="plan: orchestrator_decision", penwidth=4];\n'
        '    e1 [label="hire-1: spawn", penwidth=4];\n'
        '    e2 [label="hire-2: spawn"];\n'
        '    e7 [label="merge: aggregate", penwidth=4];\n'
        "  }\n"
        "  subgraph cluster_1 {\n"
        '    label="w1";\n'
        '    e3 [label="slow: inference", penwidth=4];\n'
        '    e5 [label="tell-1: return", penwidth=4];\n'
        "  }\n"
        "  subgraph cluster_2 {\n"
        '    label="w2";\n'
        '    e4 [label="quick: inference", color=red, style=dashed];\n'
        '    e6 [label="tell-2: return"];\n'
        "  }\n"
        "  e0 -> e1 [label=causal, style=solid, penwidth=5];\n"
        "  e0 -> e2 [label=causal, style=solid];\n"
        "  e1 -> e3 [label=spawn, style=bold, penwidth=5];\n"
        "  e2 -> e4 [label=spawn, style=bold];\n"
        "  e3 -> e5 [label=causal, style=solid, penwidth=5];\n"
        "  e4 -> e6 [label=causal, style=solid];\n"
        "  e5 -> e7 [label=return, style=solid, penwidth=5];\n"
        "  e6 -> e7 [label=return, style=solid];\n"
        "}\n"
    )


def test_the_critical_path_of_graphs_is_that_of_the_doctor_and_people_are_no_agents() -> None:
    document = {**TEAM, "events": [*TEAM["events"], event("hello", 0, "human_intervention", "ann", to="lead", t_end=0)]}
    chain = [one["event"] for one in as_data(diagnose(trace(document)))["critical_path"] if one["worked"]]

    drawn = trace_graph.timeline(trace(document))

    assert chain == ["plan", "slow", "merge"]
    assert "3 agents and 1 person, 9 events, 7 s elapsed. Critical path: plan, slow, merge.</desc>" in drawn


def test_graphs_without_durations_say_that_there_is_no_critical_path() -> None:
    run = trace(raw([event("a", 0, "inference", "x"), event("b", 1, "inference", "x")], "a>b"))

    assert (
        trace_graph.mermaid(run).splitlines()[1]
        == "  %% No critical path: the log does not say how long anything took."
    )
    assert "linkStyle" not in trace_graph.mermaid(run)
    assert '  label="t\\nNo critical path: the log does not say how long anything took.";\n' in trace_graph.dot(run)
    assert "penwidth" not in trace_graph.dot(run)


def shapes(drawn: str, kind: str) -> list[dict[str, str]]:
    """The shapes of a picture, in the order in which they are drawn."""
    return [dict(one.attrib) for one in ElementTree.fromstring(drawn).iter(f"{SVG}{kind}")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_class_in_a_picture_has_a_rule(path: Path) -> None:
    drawn = trace_graph.timeline(example(path.stem))
    used = {name for look in re.findall(r'class="([^"]*)"', drawn) for name in look.split()}

    assert {name for name in used if f".{name}{{" not in drawn} == set()


@given(documents())
def test_nothing_in_a_picture_lies_exactly_on_something_alike(document: dict[str, Any]) -> None:
    drawn = trace_graph.timeline(trace(document))
    circles = [(one["cx"], one["cy"]) for one in shapes(drawn, "circle")]
    bars = [tuple(sorted(one.items())) for one in shapes(drawn, "rect")]

    assert len(set(circles)) == len(circles)
    assert len(set(bars)) == len(bars)


def test_events_at_one_time_are_one_circle_with_their_number() -> None:
    drawn = trace_graph.timeline(trace(TEAM))
    lead = [one for one in shapes(drawn, "circle") if one["cy"] == "66"]
    numbers = re.findall(r'<text [^>]*font-size="10"[^>]*>([^<]*)</text>', drawn)

    assert [(one["r"], one["class"]) for one in lead] == [("7", "f-page s-muted")]  # both spawns
    assert numbers == ["2"]
    assert "a number: so many there" in drawn


def test_very_many_events_at_one_time_are_counted_as_far_as_there_is_room() -> None:
    events = [event("a", 0, "inference", "lead", t_end=1)]
    events += [event(f"s{n}", 1, "spawn", "lead", to=f"w{n}", **({"status": "error"} if n else {})) for n in range(120)]
    drawn = trace_graph.timeline(trace(raw(events)))

    assert [(one["r"], one["class"]) for one in shapes(drawn, "circle")][:1] == [("11", "f-series5 s-muted")]
    assert ">99+</text>" in drawn


def long_run(events: int) -> dict[str, Any]:
    """One agent that thinks in very many short turns."""
    acts = [event(f"e{n}", n, "inference", "x", t_end=n + 1) for n in range(events)]
    return raw(acts, " ".join(f"e{n}>e{n + 1}" for n in range(events - 1)))


def test_a_picture_of_a_long_run_stays_small() -> None:
    run = long_run(6_000)
    for place, one in enumerate(run["events"]):
        if place % 3 == 2:
            one |= {"type": "message", "to": "y", "t_end": one["t"]}
    drawn = trace_graph.timeline(trace(run))

    assert len(drawn) < 60_000
    assert len(shapes(drawn, "circle")) < 60
    assert "Critical path: e0, e1, e3," in drawn
    assert "e43 and 3,970 more." in drawn


def test_large_graphs_are_written_whole_with_a_word_on_their_size(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(long_run(3000)), encoding="utf-8")
    (tmp_path / "small.json").write_text(json.dumps(TEAM), encoding="utf-8")
    mermaid, dot, svg = (
        run_corpus("trace", "graph", str(tmp_path / "t.json"), "-f", form) for form in ("mermaid", "dot", "svg")
    )

    assert mermaid.stdout.count("-->") == 2999
    assert mermaid.stderr == (
        "corpus: 3,000 events, 2,999 edges, 0.2 MB; Mermaid by default draws 500 edges and 50,000 characters. "
        "Raise its maxEdges and maxTextSize, or draw the timeline: --format svg\n"
    )
    assert dot.stdout.count(" -> ") == 2999
    assert dot.stderr == (
        "corpus: 3,000 events, 2,999 edges, 0.3 MB; Graphviz is slow with so many. "
        "The timeline is drawn at once: --format svg\n"
    )
    assert svg.stderr == ""
    assert run_corpus("trace", "graph", str(tmp_path / "small.json")).stderr == ""


def test_the_form_of_a_graph_follows_the_name_of_its_file(tmp_path: Path) -> None:
    swarm = str(ROOT / "data" / "traces" / "swarm.json")

    begins = {}
    for name in ("g.svg", "g.dot", "g.mmd"):
        assert run_corpus("trace", "graph", swarm, "-o", str(tmp_path / name)).code == 0
        begins[name] = (tmp_path / name).read_text(encoding="utf-8").split()[0]
    assert begins == {"g.svg": "<svg", "g.dot": "digraph", "g.mmd": "flowchart"}
    refused = run_corpus("trace", "graph", swarm, "-o", str(tmp_path / "g.png"))
    assert refused.code == 2
    assert "no form of graphs ends in '.png'" in refused.stderr
    assert not (tmp_path / "g.png").exists()
