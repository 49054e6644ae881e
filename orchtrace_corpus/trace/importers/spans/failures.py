"""Errors of spans that become no event: a node that only computes, a graph, a wrapper.

The innermost span that failed becomes an event of the agent that it belongs to, unless something below it is an
event that says so already. Where the run as a whole has failed, the agent that was at work last stops with that.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.span import AGENT, CHAIN, TOOL, Span
from orchtrace_corpus.trace.importers.spans.team import Activation, Team
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Meanings, Tree
from orchtrace_corpus.trace.model.trace import Status

_OK = {"status": Status.OK}


class Failure(NamedTuple):
    """A span that failed, and the activation that bears it.

    Attributes:
        span: The number of the span.
        activation: The number of the activation.
        time: When it failed.
        is_outside: Whether it lies in no span of that agent.
    """

    span: int
    activation: int
    time: float
    is_outside: bool


class Failures:
    """The failures of a tree that no event tells.

    Attributes:
        by_span: Those that are to become an event, by the number of their span.
        runs: The span with which the whole run has failed, by the agent that stops with it.
        last: For agents that bear what lies outside their spans: when the last of it was.
    """

    def __init__(self, of: Tree, meanings: Meanings, team: Team) -> None:
        self.by_span: dict[int, Failure] = {}
        self.runs: dict[str, Span] = {}
        self.last: dict[str, float] = {}
        self._of, self._meanings, self._team = of, meanings, team
        failed = [number for number, span in enumerate(of.spans) if has_failed(span)]
        if not failed:
            return
        self._activations = {one.span: one for one in team.activations}
        first = [(one.latest, place) for place, one in enumerate(team.activations) if one.spawner == NOBODY]
        first.sort()
        stopping = [(time, place) for time, place in first if _stops(team.activations[place])]
        for number in self._untold(failed):
            owner, time = team.owner[number], self._time(number)
            is_outside = owner == NOBODY
            bearer = _last_before(time, first) if is_outside else owner
            if bearer != NOBODY:
                self.by_span[number] = Failure(number, bearer, time, is_outside)
            if bearer != NOBODY and is_outside:
                self._note_last(bearer, time)
        for number in failed:
            time = self._time(number)
            if of.parents[number] == team.owner[number] == NOBODY and (last := _last_before(time, stopping)) != NOBODY:
                self.runs[team.activations[last].agent] = of.spans[number]
                self._note_last(last, time)

    def _time(self, number: int) -> float:
        end = self._of.ends[number]
        return self._of.latest[number] if end is None else end

    def _note_last(self, activation: int, time: float) -> None:
        agent = self._team.activations[activation].agent
        self.last[agent] = max(self.last.get(agent, time), time)

    def _untold(self, failed: list[int]) -> Iterator[int]:
        """Yield the innermost failed spans that no event shows: their own, one below, or the agent's end."""
        is_told = [False] * len(self._of.spans)
        is_failed = set(failed).__contains__
        for number in reversed(self._of.order):
            if is_failed(number) and not is_told[number]:
                is_told[number] = True
                owner = self._team.owner[number]
                around = self._team.activations[owner].span if owner != NOBODY else NOBODY
                if not self._becomes_event(number) and not (is_failed(around) and self._becomes_event(around)):
                    yield number
            parent = self._of.parents[number]
            if parent != NOBODY and is_told[number]:
                is_told[parent] = True

    def _becomes_event(self, number: int) -> bool:
        kind, team = self._meanings.kinds[number], self._team
        if kind is AGENT:
            one = self._activations[number]
            return _stops(one) or (one.parent != NOBODY and one.end is not None and not one.outgoing)
        if kind is TOOL:
            return number in team.lone or (not self._meanings.has_agents[number] and self._of.ends[number] is not None)
        return kind is not CHAIN


def _stops(one: Activation) -> bool:
    """Return True if the activation's agent, which nobody spawned, stops at its end."""
    return one.spawner == NOBODY and one.is_last and one.end is not None and not one.outgoing


def _last_before(time: float, ended: list[tuple[float, int]]) -> int:
    """Return the activation that ended last before a time, given all by their ends, else the first; or `NOBODY`."""
    place = bisect_right(ended, time, key=itemgetter(0))
    return ended[max(place - 1, 0)][1] if ended else NOBODY


def has_failed(span: Span) -> bool:
    """Return True if a span failed; one that stopped to ask a person did not."""
    return span.is_error and not span.is_interrupted


def failure_of(span: Span) -> dict[str, Any]:
    """Return how a span failed, in the schema's words; nothing where it did not."""
    if not has_failed(span):
        return {}
    return {"status": Status.ERROR, "error_type": masked(span.error_type)}


def status_of(span: Span) -> dict[str, Any]:
    """Return how a span ended, in the schema's words; nothing where it has not."""
    return failure_of(span) or (_OK if span.end is not None else {})
