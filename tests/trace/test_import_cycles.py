"""Edges that close circles: found, as few as are needed to walk once along all edges, and left out of traces."""

from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.cycles import closing_edges
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.report import Report
from tests.trace.spanlogs import checked

NODES = st.sampled_from("abcdefg")
EDGES = st.lists(st.tuples(NODES, NODES, st.sampled_from(["causal", "message"])), unique=True, max_size=30)


def is_without_circles(edges: "list[tuple[str, str, str]]") -> bool:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for source, target, _ in edges:
        sorter.add(target, source)
    return len(list(sorter.static_order())) >= 0


@given(EDGES)
def test_without_the_closing_edges_there_is_no_circle(edges: "list[tuple[str, str, str]]") -> None:
    closing = closing_edges(edges)

    assert is_without_circles([edge for edge in edges if edge not in closing])
    assert closing <= set(edges)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_edges_that_all_lead_forward_close_nothing(pairs: "list[tuple[int, int]]") -> None:
    assert closing_edges([(str(one), str(other), "causal") for one, other in pairs if one < other]) == set()


def test_a_long_chain_that_closes_is_walked_without_recursion() -> None:
    edges = [(str(number), str(number + 1), "causal") for number in range(50_000)]

    assert closing_edges([*edges, ("50000", "0", "causal")]) == {("50000", "0", "causal")}


def test_a_circle_at_one_instant_is_broken_and_told() -> None:
    builder = Builder("t", "t", system="x", form="codex", version="", privacy=Privacy(b""), report=Report())
    one, two, three = (builder.event("inference", "a", 1.0, file="f", line=line, end=1.0) for line in (1, 2, 3))
    for source, target in ((one, two), (two, three), (three, one)):
        builder.edge(source, target, "causal")

    trace = builder.trace()
    checked(trace)
    assert len(trace["edges"]) == 2
    assert trace["import_report"]["problems"] == {
        "dependency in a circle at one instant: left out": {"number": 1, "for_example": ["e3 -> e1"]}
    }


def test_events_of_one_instant_are_put_in_the_order_of_their_edges_and_of_each_agents_log() -> None:
    builder = Builder("t", "t", system="x", form="codex", version="", privacy=Privacy(b""), report=Report())
    names = [builder.event("inference", agent, 1.0, file="f", line=line, end=1.0)
             for line, agent in enumerate(("lead", "lead", "w", "w"), 1)]  # fmt: skip
    builder.edge(names[2], names[1], "return")  # the worker's first comes before the lead's second

    trace = builder.trace()
    checked(trace)
    assert [(event["source"]["line"], event["seq"]) for event in trace["events"]] == [(1, 0), (3, 1), (2, 2), (4, 3)]


def test_where_edges_and_the_order_of_a_log_contradict_each_other_edges_count() -> None:
    builder = Builder("t", "t", system="x", form="codex", version="", privacy=Privacy(b""), report=Report())
    one, two = (builder.event("inference", "a", 1.0, file="f", line=line, end=1.0) for line in (1, 2))
    builder.edge(two, one, "causal")

    trace = builder.trace()
    checked(trace)
    assert [event["source"]["line"] for event in trace["events"]] == [2, 1]
