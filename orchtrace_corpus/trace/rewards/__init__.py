"""Computes the reward of a run from a specification, with the shares of terms, events and agents.

    spec = rewards.load("kimi-k2-5")              # or the path of a file; see `specs`
    reward = rewards.compute(view, spec)          # -> Reward(value, terms)
    for term in reward.terms:                     # -> Term(name, family, weight, value, refusal, by_event, by_agent)
        print(term.name, term.value, term.refusal)

`Term.by_event` and `Term.by_agent` are not weighted, and each sums to `Term.value`. `Reward.by_event()` and
`Reward.by_agent()` are weighted, and each sums to `Reward.value`. The key `WHOLE`, the empty name, holds the share that
belongs to no single event or agent: a trainer puts it on the last step of a run, or on all agents.
If a trace lacks the data for a term, the term has no value but a refusal, which says what to add. The reward then has
no value either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
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
    """Compute the reward of a run.

    Args:
        trace: A trace in which the graph rules find no error.
        spec: The specification.

    Raises:
        CycleError: The edges form a cycle.
    """
    team = Team(TraceView.of(trace))
    terms = tuple([_term(team, term, score) for term, score in _scores(team, spec)])
    return Reward(_sum([term.contribution for term in terms]), terms)


def contributions(trace: Trace | TraceView, spec: Spec) -> tuple[float | None, ...]:
    """Return the reward and then the weighted value of each term, without shares: faster than `compute` for many runs.

    Raises:
        CycleError: The edges form a cycle.
    """
    team = Team(TraceView.of(trace))
    values: list[float | None] = []
    for term, score in _scores(team, spec):
        values.append(None if score.value is None else term.weight * _clamp(score.value, term))
    return (_sum(values), *values)


def _scores(team: Team, spec: Spec) -> Iterator[tuple[TermSpec, Score]]:
    """Yield each term with its score; a term behind a closed gate scores 0, whatever its ramp and range."""
    for term in spec.terms:
        gate_score = _closed_gate(team, term)
        if gate_score is None:
            yield term, FUNCTIONS[term.function].compute(team, term.settings)
        else:
            yield term._replace(ramp=None, range=None), gate_score


def _closed_gate(team: Team, term: TermSpec) -> Score | None:
    """Return the score of a term if one of its gates is closed or unknown; None if all are open."""
    if "spawns" in term.gates and not team.spawns:
        return Score(0.0)
    if "outcome" not in term.gates:
        return None
    outcome = FUNCTIONS["outcome"].compute(team, FUNCTIONS["outcome"].options)
    if outcome.value is None:
        return outcome
    return None if outcome.value > 0 else Score(0.0)


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; None if any value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _term(team: Team, spec: TermSpec, score: Score) -> Term:
    if score.value is None:
        return Term(spec.name, spec.family, spec.weight, None, score.refusal, {}, {})
    value = _clamp(score.value, spec)
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
        spec.name,
        spec.family,
        spec.weight,
        value,
        None,
        _rescale(by_event, score.value, value),
        _rescale(by_agent, score.value, value),
    )


def _clamp(value: float, spec: TermSpec) -> float:
    """Return a value after the ramp and the range of its term."""
    if spec.ramp is not None:
        zero, one = spec.ramp
        value = min(max((value - zero) / (one - zero), 0.0), 1.0)
    if spec.range is not None:
        lowest, highest = spec.range
        value = min(max(value, lowest), highest)
    return value


def _rescale(shares: dict[str, float], raw: float, value: float) -> dict[str, float]:
    """Return shares that sum to `value`, from shares that sum to the raw value before ramp and range.

    Shares of one sign change in proportion. Shares of both signs stay, and `WHOLE` takes the difference: in proportion,
    they could become arbitrarily large.
    """
    if not shares:
        return {WHOLE: value} if value else {}
    if value == raw:
        return shares
    if raw and (min(shares.values()) >= 0 or max(shares.values()) <= 0):
        return {name: share * (value / raw) for name, share in shares.items()}
    return {**shares, WHOLE: value - raw}
