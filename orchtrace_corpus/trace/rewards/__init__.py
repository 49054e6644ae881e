"""Rewards: what a specification pays for a run, term by term, event by event and agent by agent.

    spec = rewards.load("kimi-k2-5")              # or the path of a file; see `specs`
    reward = rewards.compute(view, spec)          # -> Reward(value, terms)
    for term in reward.terms:                     # -> Term(name, family, weight, value, refusal, by_event, by_agent)
        print(term.name, term.value, term.refusal)

`Term.by_event` and `Term.by_agent` are not weighted, and each sums to `Term.value`. `Reward.by_event()` and
`Reward.by_agent()` are weighted, and each sums to `Reward.value`. What belongs to no single event or agent stands under
`WHOLE`, the empty name: a trainer puts it on the last step of a run, or on all agents.
A term that a trace cannot tell has no value and a refusal, which says what to add; the reward has no value then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.trace.rewards.specs import FUNCTIONS, Spec, TermSpec, load, of_families, published
from orchtrace_corpus.trace.rewards.terms import WHOLE, Function, Reward, Score, Team, Term
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

__all__ = [
    "FUNCTIONS", "WHOLE", "Function", "Reward", "Spec", "Term", "TermSpec", "compute", "contributions",
    "load", "of_families", "published",
]  # fmt: skip


def compute(trace: Trace | TraceView, spec: Spec) -> Reward:
    """Compute the reward of a design for a run.

    Args:
        trace: A trace that the graph rules have no error against.
        spec: The specification.

    Raises:
        CycleError: The edges go round in a circle.
    """
    team = Team(TraceView.of(trace))
    terms = tuple([_term(team, term, score) for term, score in _scores(team, spec)])
    return Reward(_sum([term.contribution for term in terms]), terms)


def contributions(trace: Trace | TraceView, spec: Spec) -> tuple[float | None, ...]:
    """The reward, then what each term adds to it, without shares; for many runs. Errors as for `compute`."""
    team = Team(TraceView.of(trace))
    values = [
        None if score.value is None else term.weight * _fitted(score.value, term) for term, score in _scores(team, spec)
    ]
    return (_sum(values), *values)


def _scores(team: Team, spec: Spec) -> Iterator[tuple[TermSpec, Score]]:
    for term in spec.terms:
        closed = _closed_gate(team, term)
        if closed is None:
            yield term, FUNCTIONS[term.function].compute(team, term.settings)
        else:
            yield term._replace(ramp=None, range=None), closed


def _closed_gate(team: Team, term: TermSpec) -> Score | None:
    """Return the score of a term with a gate that is closed or unknown; None where the term pays."""
    if "spawns" in term.gates and not team.spawns:
        return Score(0.0)
    if "outcome" not in term.gates:
        return None
    outcome = FUNCTIONS["outcome"].compute(team, FUNCTIONS["outcome"].options)
    if outcome.value is None:
        return outcome
    return None if outcome.value > 0 else Score(0.0)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _term(team: Team, of: TermSpec, score: Score) -> Term:
    if score.value is None:
        return Term(of.name, of.family, of.weight, None, score.refusal, {}, {})
    value = _fitted(score.value, of)
    events, agents = team.trace.events, team.times.graph.agents
    by_event = {events[index].id: share for index, share in score.events.items()}
    by_agent: dict[str, float] = {}
    if score.agents is not None:
        by_agent = dict(score.agents)
    else:
        for index, share in score.events.items():
            agent = agents[index]
            by_agent[agent] = by_agent.get(agent, 0.0) + share
    return Term(
        of.name,
        of.family,
        of.weight,
        value,
        None,
        _summing(by_event, score.value, value),
        _summing(by_agent, score.value, value),
    )


def _fitted(value: float, of: TermSpec) -> float:
    """A value after the ramp and the range of its term."""
    if of.ramp is not None:
        zero, one = of.ramp
        value = min(max((value - zero) / (one - zero), 0.0), 1.0)
    return min(max(value, of.range[0]), of.range[1]) if of.range is not None else value


def _summing(shares: dict[str, float], before: float, value: float) -> dict[str, float]:
    """Shares of a value that the ramp or the range has changed: in proportion; the whole run's where there are none.

    Shares of both signs are left as they are, and the whole run takes the difference: in proportion, they might
    become as large as one likes.
    """
    if not shares:
        return {WHOLE: value} if value else {}
    if value == before:
        return shares
    if before and (min(shares.values()) >= 0 or max(shares.values()) <= 0):
        return {name: share * (value / before) for name, share in shares.items()}
    return {**shares, WHOLE: value - before}
