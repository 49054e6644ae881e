"""Computes the reward of a run from a specification, with the shares of terms, events and agents.

    spec = rewards.load("kimi-k2-5")              # or the path of a file; see `specs`
    reward = rewards.compute(view, spec)          # -> Reward(value, terms)
    for term in reward.terms:                     # -> Term(name, family, weight, value, refusal, by_event, by_agent)
        print(term.name, term.value, term.refusal)

`Term.by_event` and `Term.by_agent` are not weighted, and each sums to `Term.value`. `Reward.by_event()` and
`Reward.by_agent()` are weighted, and each sums to `Reward.value`. The key `WHOLE`, the empty name, holds the share that
belongs to no single event or agent. A trainer may put that share on the last step of the run, or on all agents.

A term is refused if the trace lacks the data for it: its value is None, and `Term.refusal` says what to add. The value
of the reward is then None, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.trace.rewards.specs import FUNCTIONS, Spec, TermSpec, load, published, spec_of_families
from orchtrace_corpus.trace.rewards.terms import WHOLE, Function, Reward, Score, Team, Term
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

__all__ = [
    "FUNCTIONS", "WHOLE", "Function", "Reward", "Spec", "Term", "TermSpec", "compute", "contributions",
    "load", "published", "spec_of_families",
]  # fmt: skip


def compute(trace: Trace | TraceView, spec: Spec) -> Reward:
    """Compute the reward of a run.

    Args:
        trace: A trace in which the graph rules find no error.
        spec: The specification.

    Raises:
        CycleError: The edges form a cycle.
    """
    team = Team(TraceView.of(trace))
    terms = tuple([_term(team, term_spec, score) for term_spec, score in _scores(team, spec)])
    return Reward(_sum([term.contribution for term in terms]), terms)


def contributions(trace: Trace | TraceView, spec: Spec) -> tuple[float | None, ...]:
    """Return the reward, followed by the weighted value of each term.

    It computes no shares, and is faster than `compute` for many runs.

    Raises:
        CycleError: The edges form a cycle.
    """
    team = Team(TraceView.of(trace))
    values: list[float | None] = []
    for term_spec, score in _scores(team, spec):
        if score.value is None:
            values.append(None)
        else:
            values.append(term_spec.weight * _limit(score.value, term_spec))
    return (_sum(values), *values)


def _scores(team: Team, spec: Spec) -> Iterator[tuple[TermSpec, Score]]:
    """Yield each term with its score. Ramp and range, which `_limit` applies, do not change the score of a gate."""
    for term_spec in spec.terms:
        gate_score = _gate_score(team, term_spec)
        if gate_score is None:
            yield term_spec, FUNCTIONS[term_spec.function].compute(team, term_spec.settings)
        else:
            yield term_spec._replace(ramp=None, range=None), gate_score


def _gate_score(team: Team, term_spec: TermSpec) -> Score | None:
    """Return the score that a gate gives instead of the function: 0, or a refusal; None if all conditions hold."""
    if "spawns" in term_spec.gates and not team.spawns:
        return Score(0.0)
    if "outcome" in term_spec.gates:
        outcome = FUNCTIONS["outcome"].compute(team, FUNCTIONS["outcome"].defaults)
        if outcome.value is None:
            return outcome
        if outcome.value <= 0:
            return Score(0.0)
    return None


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; None if any value is unknown."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(known)


def _term(team: Team, term_spec: TermSpec, score: Score) -> Term:
    name, family, weight = term_spec.name, term_spec.family, term_spec.weight
    if score.value is None:
        return Term(name, family, weight, value=None, refusal=score.refusal, by_event={}, by_agent={})
    value = _limit(score.value, term_spec)
    events, agents = team.trace.events, team.times.graph.agents
    by_event = {events[index].id: share for index, share in score.events.items()}
    by_agent: dict[str, float] = {}
    if score.agents is not None:
        by_agent = dict(score.agents)
    else:
        for index, share in score.events.items():
            agent = agents[index]
            by_agent[agent] = by_agent.get(agent, 0.0) + share
    by_event = _rescale(by_event, score.value, value)
    by_agent = _rescale(by_agent, score.value, value)
    return Term(name, family, weight, value=value, refusal=None, by_event=by_event, by_agent=by_agent)


def _limit(value: float, term_spec: TermSpec) -> float:
    """Apply the ramp and then the range of a term to the value of its function."""
    if term_spec.ramp is not None:
        zero, one = term_spec.ramp
        value = min(max((value - zero) / (one - zero), 0.0), 1.0)
    if term_spec.range is not None:
        lowest, highest = term_spec.range
        value = min(max(value, lowest), highest)
    return value


def _rescale(shares: dict[str, float], function_value: float, term_value: float) -> dict[str, float]:
    """Change shares that sum to the value of a function so that they sum to the value of its term.

    Shares of one sign are scaled in proportion. Shares of both signs stay, and `WHOLE` takes the difference: scaled in
    proportion, they could become arbitrarily large.
    """
    if not shares:
        return {WHOLE: term_value} if term_value else {}
    if term_value == function_value:
        return shares
    has_one_sign = min(shares.values()) >= 0 or max(shares.values()) <= 0
    if function_value and has_one_sign:
        return {name: share * (term_value / function_value) for name, share in shares.items()}
    return {**shares, WHOLE: term_value - function_value}
