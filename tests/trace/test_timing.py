"""What the end of a run waited for: the chain of events, walked back from the last."""

from typing import Any

import pytest
from hypothesis import given

from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import Chain, Timing, critical_chain, longest_path
from tests.trace.traces import documents, event, raw, trace

CLOSE = 1e-9


def chain_of(document: dict[str, Any]) -> tuple[Timing, Chain]:
    times = TraceView(trace(document)).timing
    return times, critical_chain(times)


def joined(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"src": source, "dst": target, "type": "causal"} for source, target in pairs]


def named(times: Timing, chain: Chain) -> list[str]:
    return [times.graph.events[number].id for number in chain.events]


def test_the_chain_goes_through_what_ended_last_and_the_longest_path_through_the_most_work() -> None:
    document = raw(
        [
            event("plan", 0, "inference", "lead", t_end=1),
            event("long", 2, "inference", "a", t_end=40),
            event("late", 30, "inference", "b", t_end=60),
            event("answer", 61, "inference", "lead", t_end=65),
        ]
    )
    document["edges"] = joined(("plan", "long"), ("plan", "late"), ("long", "answer"), ("late", "answer"))

    times, chain = chain_of(document)

    assert named(times, chain) == ["plan", "late", "answer"]
    assert (chain.worked, chain.gaps, chain.after) == ([1, 30, 4], [0, 29, 1], 0)
    path = longest_path(times, times.works, overlapping=True)
    assert (path.length, [times.graph.events[n].id for n in path.events]) == (43, ["plan", "long", "answer"])


def test_an_agent_waits_for_itself_without_an_edge() -> None:
    first, other, second = (
        event("first", 0, "inference", "a", t_end=4),
        event("other", 1, "inference", "b", t_end=6),
        event("second", 7, "inference", "a", t_end=9),
    )

    times, chain = chain_of(raw([first, other, second]))

    assert named(times, chain) == ["first", "second"]
    assert (chain.worked, chain.gaps) == ([4, 2], [0, 3])


def test_what_still_works_when_its_successor_begins_counts_up_to_then() -> None:
    document = raw([event("a", 0, "inference", "a", t_end=10), event("b", 4, "inference", "b", t_end=12)])
    document["edges"] = joined(("a", "b"))

    times, chain = chain_of(document)

    assert (named(times, chain), chain.worked) == (["a", "b"], [4, 8])


def test_copied_history_releases_nothing() -> None:
    document = raw(
        [
            event("spawn", 0, "inference", "lead", t_end=3),
            {**event("copied", 3, "inference", "child", t_end=3), "copied_context": True},
            event("own", 3, "inference", "child", t_end=7),
        ]
    )
    document["edges"] = joined(("spawn", "own"))

    times, chain = chain_of(document)

    assert named(times, chain) == ["spawn", "own"]


def test_time_before_an_event_that_depends_on_nothing_is_a_gap() -> None:
    times, chain = chain_of(raw([event("a", 0, "inference", "a", t_end=3), event("b", 5, "inference", "b", t_end=9)]))

    assert (named(times, chain), chain.gaps, times.elapsed) == (["b"], [5], 9)


@given(documents())
def test_the_parts_of_the_chain_and_the_gaps_add_up_to_the_time_of_the_run(document: dict[str, Any]) -> None:
    times, chain = chain_of(document)

    assert min([*chain.worked, *chain.gaps, chain.after]) >= 0
    assert sum(chain.worked) + sum(chain.gaps) + chain.after == pytest.approx(times.elapsed, abs=CLOSE)
    assert sum(chain.worked) <= sum(times.works) + CLOSE


@given(documents())
def test_the_counted_parts_of_the_chain_do_not_overlap_and_lie_within_their_events(document: dict[str, Any]) -> None:
    times, chain = chain_of(document)
    at = min(times.starts)
    for number, part, gap in zip(chain.events, chain.worked, chain.gaps, strict=True):
        begin, end = at + gap, at + gap + part
        if part:
            assert times.starts[number] - CLOSE <= begin
            assert end <= times.ends[number] + CLOSE
        at = end


@given(documents())
def test_each_event_of_the_chain_was_released_by_the_one_before(document: dict[str, Any]) -> None:
    times, chain = chain_of(document)
    ended, by_then = times.ended_events

    def acts(number: int) -> str:
        return times.graph.events[number].agent

    ends = [start + work for start, work in zip(times.starts, times.works, strict=True)]
    for before, number in zip(chain.events, chain.events[1:], strict=False):
        start, agent = times.starts[number], times.graph.events[number].agent
        own = [one for one in ended[: by_then[times.sequence.index(number)]] if acts(one) == agent]
        assert before in (*times.incoming[number], *own)
        assert all(min(ends[one], start) <= min(ends[before], start) for one in (*times.incoming[number], *own))
        assert before in own or times.graph.times[before] <= times.graph.times[number]
    first = chain.events[0]
    assert not times.incoming[first]
    assert all(acts(one) != acts(first) for one in ended[: by_then[times.sequence.index(first)]])
