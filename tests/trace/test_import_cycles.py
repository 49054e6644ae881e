"""Edges that close circles: found, as few as are needed to walk once along all edges, and left out of traces."""

from collections.abc import Iterable
from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.cycles import closing_links
from orchtrace_corpus.trace.importers.core.builder import Builder, as_data
from orchtrace_corpus.trace.model.import_report import ImportReport
from orchtrace_corpus.trace.model.terms import EdgeType, EventType
from tests.effort import tries
from tests.trace.spanlogs import checked

NODES = st.sampled_from("abcdefg")
EDGES = st.lists(st.tuples(NODES, NODES), unique=True, max_size=30)


def is_without_cycles(edges: "list[tuple[str, str]]") -> bool:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for source, target in edges:
        sorter.add(target, source)
    return len(list(sorter.static_order())) >= 0


def closing(edges: "Iterable[tuple[str, str]]") -> "set[tuple[str, str]]":
    leaving: dict[str, list[str]] = {}
    for source, target in edges:
        leaving.setdefault(source, []).append(target)
    return set(closing_links(leaving))


@given(EDGES)
def test_without_the_closing_links_there_is_no_cycle(edges: "list[tuple[str, str]]") -> None:
    found = closing(edges)

    assert is_without_cycles([edge for edge in edges if edge not in found])
    assert found <= set(edges)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_edges_that_all_lead_forward_close_nothing(pairs: "list[tuple[int, int]]") -> None:
    assert closing([(str(one), str(other)) for one, other in pairs if one < other]) == set()


def test_a_long_chain_that_closes_is_walked_without_recursion() -> None:
    last = tries(50_000, 10_000)
    edges = [(str(number), str(number + 1)) for number in range(last)]

    assert closing([*edges, (str(last), "0")]) == {(str(last), "0")}


def test_a_circle_at_one_instant_is_broken_and_told() -> None:
    builder = Builder("codex", "", ImportReport())
    one, two, three = (builder.begin(EventType.INFERENCE, "a", 1.0, "f", line, 1.0).id for line in (1, 2, 3))
    for source, target in ((one, two), (two, three), (three, one)):
        builder.edge(source, target, EdgeType.CAUSAL)

    trace = as_data(builder.trace("t", "t", "x"))
    checked(trace)
    assert len(trace["edges"]) == 2
    assert trace["import_report"]["problems"] == {
        "dependency in a circle at one instant: left out": {"number": 1, "for_example": ["e3 -> e1"]}
    }


def test_events_of_one_instant_are_put_in_the_order_of_their_edges_and_of_each_agents_log() -> None:
    builder = Builder("codex", "", ImportReport())
    names = [builder.begin(EventType.INFERENCE, agent, 1.0, "f", line, 1.0).id
             for line, agent in enumerate(("lead", "lead", "w", "w"), 1)]  # fmt: skip
    builder.edge(names[2], names[1], EdgeType.RETURN)  # the worker's first comes before the lead's second

    trace = as_data(builder.trace("t", "t", "x"))
    checked(trace)
    assert [(event["source"]["line"], event["seq"]) for event in trace["events"]] == [(1, 0), (3, 1), (2, 2), (4, 3)]


def test_where_edges_and_the_order_of_a_log_contradict_each_other_edges_count() -> None:
    builder = Builder("codex", "", ImportReport())
    one, two = (builder.begin(EventType.INFERENCE, "a", 1.0, "f", line, 1.0).id for line in (1, 2))
    builder.edge(two, one, EdgeType.CAUSAL)

    trace = as_data(builder.trace("t", "t", "x"))
    checked(trace)
    assert [event["source"]["line"] for event in trace["events"]] == [2, 1]


def test_what_an_agent_does_comes_behind_its_spawn_at_an_instant_that_is_only_shown_as_one() -> None:
    builder = Builder("codex", "", ImportReport())
    begin, instants = 1_700_000_000.0, (0.0, 1.0, 1.0000002, 1.0000004, 2.0, 2.0)
    acts = ("lead", "w", "w", "lead", "w", "lead")
    for line, (agent, time) in enumerate(zip(acts, instants, strict=True), 1):
        event = builder.begin(EventType.SPAWN if line == 4 else EventType.INFERENCE, agent, begin + time, "f", line)
        event.target = "w" if line == 4 else ""

    trace = as_data(builder.trace("t", "t", "x"))
    checked(trace)
    assert [(event["source"]["line"], event["t"], event["seq"]) for event in trace["events"]] == [
        (1, 0.0, 0), (4, 1.0, 1), (2, 1.0, 2), (3, 1.0, 3), (5, 2.0, 4), (6, 2.0, 5)
    ]  # fmt: skip
