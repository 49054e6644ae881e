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
"""From a coalition of players to what it achieves."""

MOST_EXACT_PLAYERS = 12
"""Up to so many players all coalitions are valued: 4096 of them; beyond, permutations are sampled."""


class Share(NamedTuple):
    """The share of one player.

    Attributes:
        credit: In the unit of the reward.
        standard_error: Of a sampled value; None where it is exact.
    """

    credit: float
    standard_error: float | None = None


def group_relative(rewards: Mapping[Run, float]) -> dict[Run, float]:
    """The advantage of each run over the others of its task; 0 for all where they do not differ.

    The standard deviation is that of the population, without any constant added to it.
    """
    if len(set(rewards.values())) < 2:  # the mean of equal numbers may be another number in the last digit
        return dict.fromkeys(rewards, 0.0)
    mean = fsum(rewards.values()) / len(rewards)
    deviation = hypot(*(reward - mean for reward in rewards.values())) / sqrt(len(rewards))
    return {name: (reward - mean) / deviation for name, reward in rewards.items()}


def generalised(rewards: Sequence[float], values: Sequence[float], *, gamma: float, lam: float) -> list[float]:
    """The advantage of each step of one run.

    Args:
        rewards: The reward at each step, in order.
        values: The value estimated for the state before each step.
        gamma: The discount, from 0 to 1.
        lam: Lambda, from 0 (one step) to 1 (the whole return).
    """
    advantages = [0.0] * len(rewards)
    following = 0.0
    for step in range(len(rewards) - 1, -1, -1):
        next_value = values[step + 1] if step + 1 < len(values) else 0.0
        delta = rewards[step] + gamma * next_value - values[step]
        following = delta + gamma * lam * following
        advantages[step] = following
    return advantages


def means(advantages: Mapping[str, float], groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The mean advantage of each group of steps; groups without a step are left out."""
    return {name: sum(map(advantages.__getitem__, steps)) / len(steps) for name, steps in groups.items() if steps}


def difference_rewards(players: Sequence[str], value: Value) -> dict[str, Share]:
    """Return the loss of the whole team without each player."""
    everybody = frozenset(players)
    whole = value(everybody)
    return {player: Share(whole - value(everybody - {player})) for player in players}


def shapley(players: Sequence[str], value: Value, *, samples: int = 2000, seed: int = 0) -> dict[str, Share]:
    """The Shapley value of each player: exact up to `MOST_EXACT_PLAYERS`, sampled beyond.

    Args:
        players: Their names.
        value: What a coalition achieves.
        samples: How many permutations to sample, beyond the exact limit; each is taken backwards, too.
        seed: The seed of the sampling.
    """
    if len(players) <= MOST_EXACT_PLAYERS:
        return exact(players, value)
    return sampled(players, value, samples=samples, seed=seed)


def exact(players: Sequence[str], value: Value) -> dict[str, Share]:
    """The Shapley value by its definition: 2^n values of coalitions."""
    count = len(players)
    weights = [factorial(size) * factorial(count - size - 1) / factorial(count) for size in range(count)]
    coalitions = (frozenset(members) for size in range(count + 1) for members in combinations(players, size))
    known = {coalition: value(coalition) for coalition in coalitions}

    def credit(player: str) -> float:
        return sum(
            weights[len(coalition)] * (known[coalition | {player}] - without)
            for coalition, without in known.items()
            if player not in coalition
        )

    return {player: Share(credit(player)) for player in players}


def count_orders(samples: int) -> int:
    """Return the number of orders that are drawn for a wished number: an even one, at least four."""
    return max(samples // 2, 2) * 2


def sampled(players: Sequence[str], value: Value, *, samples: int, seed: int) -> dict[str, Share]:
    """The mean of what each player adds in random orders, with its standard error.

    Each order is used forwards and backwards (antithetic sampling), so the error is that of the means of pairs.
    """
    draw = Random(seed)
    sums = dict.fromkeys(players, 0.0)
    squares = dict.fromkeys(players, 0.0)
    pairs = count_orders(samples) // 2
    for _ in range(pairs):
        permutation = list(players)
        draw.shuffle(permutation)
        added = dict.fromkeys(players, 0.0)
        for arrangement in (permutation, permutation[::-1]):
            before: Coalition = frozenset()
            without = value(before)
            for player in arrangement:
                before |= {player}
                with_player = value(before)
                added[player] += (with_player - without) / 2
                without = with_player
        for player, one in added.items():
            sums[player] += one
            squares[player] += one * one
    return {
        player: Share(
            sums[player] / pairs, sqrt(max(squares[player] - sums[player] ** 2 / pairs, 0.0) / (pairs - 1) / pairs)
        )
        for player in players
    }
