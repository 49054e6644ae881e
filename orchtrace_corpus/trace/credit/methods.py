"""The formulas of credit assignment: advantages, Shapley values, difference rewards.

Group-relative advantage of run k (GRPO, arXiv 2402.03300): (R_k - mean R) / std R over the runs of one task.
Generalised advantage estimation (J. Schulman et al., arXiv 1506.02438): delta_t = r_t + gamma V(t+1) - V(t),
A_t = sum over l of (gamma lambda)^l delta_(t+l), with V = 0 after the last step.
Means over the turns of a role are as in M-GRPO (arXiv 2511.13288).

Shapley value (L. S. Shapley, "A value for n-person games", 1953; for reward division among agents:
arXiv 1907.05707): phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! * (v(S + i) - v(S)).
Difference reward (D. H. Wolpert and K. Tumer, "Optimal payoff functions for members of collectives",
Advances in Complex Systems 4, 2001): D_i = G(z) - G(z without i), what the team loses without player i.
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

DEFAULT_SAMPLES = 2000
"""The number of random orders of players that are sampled for Shapley values, unless a caller says another."""

MAX_EXACT_PLAYERS = 12
"""The largest number of players for which all coalitions (4096) are valued; for more, permutations are sampled."""


class Share(NamedTuple):
    """The credit of one player.

    Attributes:
        credit: The credit, in the unit of the reward.
        standard_error: The standard error of a sampled credit; None for an exact credit.
    """

    credit: float
    standard_error: float | None = None


def group_relative_advantages(rewards: Mapping[Run, float]) -> dict[Run, float]:
    """Return the advantage of each run over the runs of one task; 0 for all runs if their rewards are equal.

    The standard deviation is that of the population; no constant is added to it.
    """
    if len(set(rewards.values())) < 2:  # the mean of equal numbers may differ from them in the last digit
        return dict.fromkeys(rewards, 0.0)
    mean = fsum(rewards.values()) / len(rewards)
    deviation = hypot(*(reward - mean for reward in rewards.values())) / sqrt(len(rewards))
    return {run: (reward - mean) / deviation for run, reward in rewards.items()}


def generalised_advantages(
    rewards: Sequence[float], values: Sequence[float], *, gamma: float, lam: float
) -> list[float]:
    """Return the generalised advantage of each step of one run.

    Args:
        rewards: The reward of each step.
        values: The estimated value of the state before each step.
        gamma: The discount, from 0 to 1.
        lam: Lambda, from 0 (only the next step counts) to 1 (all following steps count).
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


def mean_by_group(advantages: Mapping[str, float], groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the mean advantage of each group of steps; groups without steps are left out."""
    mean_by_name = {}
    for name, steps in groups.items():
        if steps:
            mean_by_name[name] = sum(advantages[step] for step in steps) / len(steps)
    return mean_by_name


def difference_rewards(players: Sequence[str], value: Value) -> dict[str, Share]:
    """Return, for each player, the value of the team less its value without the player."""
    team = frozenset(players)
    whole = value(team)
    return {player: Share(whole - value(team - {player})) for player in players}


def shapley(players: Sequence[str], value: Value, *, samples: int = DEFAULT_SAMPLES, seed: int = 0) -> dict[str, Share]:
    """Return the Shapley value of each player: exact up to `MAX_EXACT_PLAYERS` players, else sampled."""
    if len(players) <= MAX_EXACT_PLAYERS:
        return exact_shapley(players, value)
    return sampled_shapley(players, value, samples=samples, seed=seed)


def exact_shapley(players: Sequence[str], value: Value) -> dict[str, Share]:
    """Return the Shapley value of each player by its definition, from the values of all 2^n coalitions."""
    count = len(players)
    weights = [factorial(size) * factorial(count - size - 1) / factorial(count) for size in range(count)]
    values: dict[Coalition, float] = {}
    for size in range(count + 1):
        for members in combinations(players, size):
            coalition = frozenset(members)
            values[coalition] = value(coalition)

    def credit(player: str) -> float:
        return sum(
            weights[len(coalition)] * (values[coalition | {player}] - value_without)
            for coalition, value_without in values.items()
            if player not in coalition
        )

    return {player: Share(credit(player)) for player in players}


def permutation_count(samples: int) -> int:
    """Return the number of permutations that are used if `samples` are requested: even, and at least four."""
    return max(samples // 2, 2) * 2


def sampled_shapley(players: Sequence[str], value: Value, *, samples: int, seed: int) -> dict[str, Share]:
    """Return the mean gain that each player adds in random permutations, with its standard error.

    Each permutation is used forwards and backwards (antithetic sampling). The two are not independent, so the standard
    error is computed from the means of such pairs.

    Args:
        players: The names of the players.
        value: The value of a coalition.
        samples: The number of permutations, made even by `permutation_count`.
        seed: The seed of the sampling.
    """
    random = Random(seed)
    sums = dict.fromkeys(players, 0.0)
    sums_of_squares = dict.fromkeys(players, 0.0)
    pair_count = permutation_count(samples) // 2
    for _ in range(pair_count):
        permutation = list(players)
        random.shuffle(permutation)
        gains = dict.fromkeys(players, 0.0)  # the mean gain of each player over this pair
        for arrangement in (permutation, permutation[::-1]):
            coalition: Coalition = frozenset()
            value_without = value(coalition)
            for player in arrangement:
                coalition |= {player}
                value_with = value(coalition)
                gains[player] += (value_with - value_without) / 2
                value_without = value_with
        for player, gain in gains.items():
            sums[player] += gain
            sums_of_squares[player] += gain * gain
    shares = {}
    for player in players:
        # Rounding can make the difference slightly negative.
        variance = max(sums_of_squares[player] - sums[player] ** 2 / pair_count, 0.0) / (pair_count - 1)
        shares[player] = Share(sums[player] / pair_count, sqrt(variance / pair_count))
    return shares
