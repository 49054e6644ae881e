"""The formulas of credit assignment: advantages, Shapley values, difference rewards.

Group-relative advantage of run k (GRPO, arXiv 2402.03300): (R_k - mean R) / std R over the runs of one task.
Generalised advantage estimation (J. Schulman et al., arXiv 1506.02438): delta_t = r_t + gamma V(t+1) - V(t),
A_t = sum over l of (gamma lambda)^l delta_(t+l), with V = 0 behind the last step.
Means over the turns of a role are as in M-GRPO (arXiv 2511.13288).

Shapley value (L. S. Shapley, "A value for n-person games", 1953; for reward division among agents:
arXiv 1907.05707): phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! * (v(S + i) - v(S)).
Difference reward (D. H. Wolpert and K. Tumer, "Optimal payoff functions for members of collectives",
Advances in Complex Systems 4, 2001): D_i = G(z) - G(z without i), the counterfactual of leaving one out.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import factorial, fsum, hypot, sqrt
from random import Random
from typing import TypeAlias, TypeVar

from orchtrace_corpus.base.named_tuples import NamedTuple

Run = TypeVar("Run")
Coalition: TypeAlias = frozenset[str]
Value: TypeAlias = Callable[[Coalition], float]
"""A function that returns the value of a coalition of players."""

MOST_EXACT_PLAYERS = 12
"""With at most this many players, all coalitions (4096) are valued; with more, permutations are sampled."""


class Share(NamedTuple):
    """The share of one player.

    Attributes:
        credit: The share, in the unit of the reward.
        standard_error: The standard error of a sampled share; None for an exact one.
    """

    credit: float
    standard_error: float | None = None


def group_relative(rewards: Mapping[Run, float]) -> dict[Run, float]:
    """Return the advantage of each run over the other runs of its task; 0 for all runs if their rewards are equal.

    The standard deviation is the one of the population, without an added constant.
    """
    if len(set(rewards.values())) < 2:  # the mean of equal numbers may differ from them in the last digit
        return dict.fromkeys(rewards, 0.0)
    mean = fsum(rewards.values()) / len(rewards)
    deviation = hypot(*(reward - mean for reward in rewards.values())) / sqrt(len(rewards))
    return {run: (reward - mean) / deviation for run, reward in rewards.items()}


def generalised(rewards: Sequence[float], values: Sequence[float], *, gamma: float, lam: float) -> list[float]:
    """Return the generalised advantage of each step of one run, from the rewards and estimated values of its steps.

    `values` are estimates for the state before each step. `gamma` is the discount, from 0 to 1; `lam` is lambda, from
    0 (one step) to 1 (the whole return).
    """
    advantages = [0.0] * len(rewards)
    advantage = 0.0
    next_value = 0.0
    for step in reversed(range(len(rewards))):
        delta = rewards[step] + gamma * next_value - values[step]
        advantage = delta + gamma * lam * advantage
        advantages[step] = advantage
        next_value = values[step]
    return advantages


def means(advantages: Mapping[str, float], groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the mean advantage of each group of steps, without groups that have no step."""
    return {name: sum(map(advantages.__getitem__, steps)) / len(steps) for name, steps in groups.items() if steps}


def difference_rewards(players: Sequence[str], value: Value) -> dict[str, Share]:
    """Return, for each player, by how much the value of the team falls without that player."""
    team = frozenset(players)
    whole = value(team)
    return {player: Share(whole - value(team - {player})) for player in players}


def shapley(players: Sequence[str], value: Value, *, samples: int = 2000, seed: int = 0) -> dict[str, Share]:
    """Return the Shapley value of each player: exact up to `MOST_EXACT_PLAYERS` players, sampled beyond.

    About `samples` permutations are sampled (`count_orders`), half of them the reverse of the other half.
    """
    if len(players) <= MOST_EXACT_PLAYERS:
        return exact(players, value)
    return sampled(players, value, samples=samples, seed=seed)


def exact(players: Sequence[str], value: Value) -> dict[str, Share]:
    """Return the Shapley value of each player by its definition, from the values of all 2^n coalitions."""
    count = len(players)
    weights = [factorial(size) * factorial(count - size - 1) / factorial(count) for size in range(count)]
    coalitions = (frozenset(members) for size in range(count + 1) for members in combinations(players, size))
    values = {coalition: value(coalition) for coalition in coalitions}

    def credit(player: str) -> float:
        return sum(
            weights[len(coalition)] * (values[coalition | {player}] - without)
            for coalition, without in values.items()
            if player not in coalition
        )

    return {player: Share(credit(player)) for player in players}


def count_orders(samples: int) -> int:
    """Return the number of permutations that are used if `samples` are requested: even, and at least four."""
    return max(samples // 2, 2) * 2


def sampled(players: Sequence[str], value: Value, *, samples: int, seed: int) -> dict[str, Share]:
    """Return the mean gain that each player adds in random permutations, with its standard error.

    Each permutation is used forwards and backwards (antithetic sampling), so the error is that of the means of pairs.
    """
    random = Random(seed)
    sums = dict.fromkeys(players, 0.0)
    squares = dict.fromkeys(players, 0.0)
    pairs = count_orders(samples) // 2
    for _ in range(pairs):
        permutation = list(players)
        random.shuffle(permutation)
        gains = dict.fromkeys(players, 0.0)
        for arrangement in (permutation, permutation[::-1]):
            coalition: Coalition = frozenset()
            without = value(coalition)
            for player in arrangement:
                coalition |= {player}
                with_player = value(coalition)
                gains[player] += (with_player - without) / 2
                without = with_player
        for player, gain in gains.items():
            sums[player] += gain
            squares[player] += gain * gain
    shares = {}
    for player in players:
        variance = max(squares[player] - sums[player] ** 2 / pairs, 0.0) / (pairs - 1)
        shares[player] = Share(sums[player] / pairs, sqrt(variance / pairs))
    return shares
