"""Who spawned whom and who lives when: against their definitions, on random teams, and on long chains of spawns."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.analysis.labels import labels
from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.diagnosis.comparison import structure
from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.model.trace import Event
from orchtrace_corpus.trace.render.show import page
from orchtrace_corpus.trace.view.graph import build_graph
from orchtrace_corpus.trace.view.lifecycle import (
    Lineage,
    ancestors,
    begins_after,
    depths,
    ends_before,
    is_after,
    lifecycle,
)
from tests.effort import tries
from tests.trace.traces import event, raw, trace


def happening(t: int, seq: int | None, kind: EventType = EventType.INFERENCE) -> Event:
    return Event(f"{t}-{seq}", float(t), kind, "a", seq=seq)


MOMENTS = st.builds(happening, st.integers(0, 6), st.none() | st.integers(0, 3))


@given(MOMENTS, st.lists(MOMENTS, max_size=6), st.lists(MOMENTS, max_size=6), st.sampled_from([0.0, 1.0, 2.5]))
def test_lives_end_and_begin_as_defined(one: Event, births: list[Event], deaths: list[Event], skew: float) -> None:
    def moment(of: Event) -> tuple[float, float]:
        return of.t, -1 if of.seq is None else of.seq

    births, deaths = sorted(births, key=moment), sorted(deaths, key=moment)
    events = [*births, *deaths]
    spawns, despawns = list(range(len(births))), list(range(len(births), len(events)))

    before = [end for end in deaths if is_after(one, end, skew)]
    last = max(before, key=moment, default=None)
    again = last is not None and any(birth.t >= last.t - skew and not is_after(birth, one, skew) for birth in births)
    found = ends_before(one, spawns, despawns, events, skew)
    assert (None if found is None else moment(found)) == (None if last is None or again else moment(last))
    assert begins_after(one, spawns, events, skew) == all(is_after(birth, one, skew) for birth in births)


AGENTS = [f"a{number}" for number in range(8)]


@given(st.dictionaries(st.sampled_from(AGENTS), st.sampled_from(AGENTS)))
def test_parents_are_a_forest_whatever_a_trace_says(parents: dict[str, str]) -> None:
    declared = [{"id": agent, "parent": parent} for agent, parent in parents.items()]
    text = json.dumps(raw([event("e", 0, "message", "a0")], agents=declared))
    decoded = decode(Document(text.encode(), "t.json"))
    assert decoded.trace is not None
    known = lifecycle(decoded.trace, build_graph(decoded.trace))

    assert {**known.parents, **known.circular} == parents
    lineage, deep = Lineage(known.parents), depths(known.parents)
    for agent in AGENTS:
        above = list(ancestors(agent, known.parents))
        assert agent not in above
        assert deep.get(agent, 0) == len(above)
        assert [one for one in AGENTS if lineage.is_above(one, agent)] == sorted(above)
    assert [finding.code for finding in rules.check(decoded)] == ["T221"] * len(known.circular)


@st.composite
def teams(draw: st.DrawFn) -> dict[str, Any]:
    """Sound traces of agents that spawn one another, act, return and end, with times that differ."""
    events = [event("e0", 0, "orchestrator_decision", "a0", t_end=1)]
    edges, parent, last = [], {}, {"a0": "e0"}
    for step in range(draw(st.integers(0, 20))):
        name, t = f"e{step + 1}", 2 * step + 2
        agent = draw(st.sampled_from(sorted(last)))
        kind = draw(st.sampled_from(["spawn", "inference", "message", "return", "despawn", "tool_call"]))
        if kind == "spawn":
            child = f"a{len(parent) + 1}"
            parent[child] = agent
            events.append(event(name, t, kind, agent, to=child))
            events.append(event(f"{name}b", t + 1, "inference", child, t_end=t + 1 + draw(st.integers(0, 3))))
            edges.append(f"{name}>{name}b:spawn")
            last[child] = f"{name}b"
        elif kind == "despawn" and agent != "a0" and agent not in parent.values():
            events.append(event(name, t + 4, kind, parent[agent], to=agent))
            del last[agent]
        elif kind == "return" and agent in parent:
            events.append(event(name, t, kind, agent, to=parent[agent]))
        elif kind in ("inference", "tool_call", "message"):
            to = {"to": draw(st.sampled_from(sorted(last)))} if kind == "message" else {}
            events.append(event(name, t, kind, agent, t_end=t + draw(st.integers(0, 3)), **to))
        else:
            continue
        if agent in last and kind != "despawn":
            last[agent] = name
    return raw(events, " ".join(edges))


@given(teams(), st.randoms(use_true_random=False))
def test_the_order_in_the_file_means_nothing_for_a_team(document: dict[str, Any], draw: random.Random) -> None:
    events = list(document["events"])
    draw.shuffle(events)
    one, other = trace(document), trace({**document, "events": events})

    assert {name: found.value for name, found in measure(one).items()} == {
        name: pytest.approx(found.value) if found.value is not None else None for name, found in measure(other).items()
    }
    assert structure(one) == structure(other)
    assert {(one.events[found.event].id, found.decision, found.rule) for found in labels(one)} == {
        (other.events[found.event].id, found.decision, found.rule) for found in labels(other)
    }


def test_the_first_spawn_says_who_is_the_parent() -> None:
    run = trace(raw([
        event("s2", 5, "spawn", "late", to="w"),
        event("s1", 1, "spawn", "early", to="w"),
        event("i", 6, "inference", "w"),
    ]))  # fmt: skip

    assert lifecycle(run, build_graph(run)).parents == {"w": "early"}


def test_an_agent_lives_until_another_ends_it() -> None:
    run = raw([
        event("s1", 0, "spawn", "lead", to="one"), event("i1", 1, "inference", "one", t_end=2),
        event("s2", 5, "spawn", "lead", to="two"), event("i2", 6, "inference", "two", t_end=7),
        event("x1", 9, "despawn", "lead", to="one"),
    ])  # fmt: skip

    assert measure(trace(run), ["width"])["width"].value == 3


def test_a_spawn_that_lasts_as_long_as_its_child_does_not_shorten_the_path() -> None:
    run = raw([
        event("d", 0, "orchestrator_decision", "lead", t_end=2),
        event("s", 2, "spawn", "lead", to="w", t_end=10),
        event("i", 2, "inference", "w", t_end=9),
    ], "d>s s>i:spawn")  # fmt: skip

    found = measure(trace(run), ["worked", "span"])
    assert (found["worked"].value, found["span"].value, found["span"].events) == (9, 9, ("d", "i"))


def test_long_chains_and_many_lives_take_time_that_grows_with_them() -> None:
    """Were any of this quadratic, it would take minutes."""
    length = tries(5_000, 1_000)
    events = [event("e", 0, "inference", "a0", t_end=0.5)]
    for n in range(length):
        events.append(event(f"s{n}", n + 0.5, "spawn", f"a{n}", to=f"a{n + 1}"))
        events.append(event(f"i{n}", n + 1, "inference", f"a{n + 1}", t_end=n + 1.5))
    for n in range(1, length + 1):
        events.append(event(f"r{n}", length + n, "return", f"a{n}", to="a0"))
        events.append(event(f"m{n}", length + n, "message", "a0", to=f"a{n}"))
    for n in range(length):
        events.append(event(f"b{n}", 3 * length + 3 * n, "spawn", "a0", to="again"))
        events.append(event(f"c{n}", 3 * length + 3 * n + 1, "tool_call", "again", call_id=f"c{n}"))
        events.append(event(f"d{n}", 3 * length + 3 * n + 2, "despawn", "a0", to="again"))
    run = trace(raw(events))

    found = measure(run, ["delegation_depth", "critical_steps", "width"])
    assert {name: one.value for name, one in found.items()} == {
        "delegation_depth": length, "critical_steps": length + 1, "width": length + 1,
    }  # fmt: skip
    states = list(replay(run))
    assert states[-1].counts == (length + 1, length, length)
    assert (len(states[-1].live), len(states[-1].open_calls), states[0].live) == (length + 1, length, ("a0",))
    assert len(labels(run)) == 4 * length
    assert len(structure(run).agents) > 0
    assert page(run, 80)
