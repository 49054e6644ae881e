"""A replay: its states are those that follow from all comings and goings, at a price that does not grow with them."""

import json
import random
from collections.abc import Callable
from math import inf
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.trace import Trace
from tests.effort import assert_grows
from tests.trace.traces import event, raw, trace


@st.composite
def comings_and_goings(draw: st.DrawFn) -> dict[str, Any]:
    """Traces, sound or not, in which agents, calls and messages come and go, and come again under the same name."""
    kinds = ["spawn", "despawn", "stop", "tool_call", "tool_result", "message", "inference"]
    names = st.sampled_from(["a", "b", "c"])
    events = [
        event(f"e{place}", place, draw(st.sampled_from(kinds)), draw(names), to=draw(names), call_id=draw(names))
        for place in range(draw(st.integers(1, 40)))
    ]
    edges = [f"e{place}>e{draw(st.integers(place + 1, len(events) - 1))}:tool_dependency"
             for place in range(len(events) - 1) if draw(st.booleans())]  # fmt: skip
    return raw(events, " ".join(edges))


def stays(run: Trace) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Who lives, which calls are open and which messages in flight after each event: by all stays there ever were."""
    there: dict[str, list[tuple[str, int, float]]] = {"live": [], "calls": [], "flight": []}

    def come(what: str, name: str, step: int) -> None:
        if not any(one == name and end == inf for one, _, end in there[what]):
            there[what].append((name, step, inf))

    def go(what: str, name: str, step: int) -> None:
        there[what] = [(one, a, step if one == name and end == inf else end) for one, a, end in there[what]]

    for step, one in enumerate(run.events, 1):
        sources = [each for edge in run.edges if edge.dst == one.id for each in run.events if each.id == edge.src]
        for source in sources:
            go("flight", source.id, step)
        if one.type not in ("despawn", "stop"):
            come("live", one.agent, step)
        if one.type == "spawn":
            come("live", one.target, step)
        elif one.type in ("despawn", "stop"):
            go("live", one.target if one.type == "despawn" else one.agent, step)
        elif one.type == "message":
            come("flight", one.id, step)
        elif one.type == "tool_call":
            come("calls", one.call_id, step)
        elif one.type == "tool_result":
            for call in (one.call_id, *(source.call_id for source in sources if source.type == "tool_call")):
                go("calls", call, step)
    steps = range(1, len(run.events) + 1)
    return [(at(there["live"], step), at(there["calls"], step), at(there["flight"], step)) for step in steps]


def at(all_stays: list[tuple[str, int, float]], step: int) -> tuple[str, ...]:
    """Those of all stays that have begun by a step, and have not ended."""
    return tuple(name for name, begin, end in all_stays if begin <= step < end)


@given(comings_and_goings(), st.randoms(use_true_random=False))
def test_states_are_those_by_all_comings_and_goings_in_whatever_order_they_are_asked_for(
    document: dict[str, Any], chance: random.Random
) -> None:
    decoded = decode(Document(json.dumps(document).encode(), "trace.json")).trace
    assert decoded is not None
    wanted = stays(decoded)
    passing = [(state.live, state.open_calls, state.in_flight) for state in replay(decoded)]
    states = list(replay(decoded))
    later = {
        state.step: (state.live, state.open_calls, state.in_flight) for state in chance.sample(states, len(states))
    }

    assert passing == wanted
    assert [later[step] for step in sorted(later)] == wanted
    assert [state.counts for state in states] == [tuple(map(len, one)) for one in wanted]


def test_states_take_time_that_grows_with_what_is_there_not_with_what_ever_was() -> None:
    def prepare(calls: int) -> Callable[[], object]:
        events = [event("s0", 0, "spawn", "lead", to="w")]
        for n in range(calls):
            events.append(event(f"c{n}", n, "tool_call", "w", call_id=str(n)))
            events.append(event(f"r{n}", n, "tool_result", "w", call_id=str(n)))
        made = trace(raw(events))

        def call() -> None:
            states = list(replay(made))
            assert sum(len(state.open_calls) + len(state.live) for state in states) == calls + 2 * len(states)

        return call

    assert_grows(prepare, 1_000, 8_000, 24)  # the square would be 64 times
