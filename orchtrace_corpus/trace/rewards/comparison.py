"""Compares how two rewards rank the same runs.

Kendall's tau-b (M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945) measures how far two
rankings agree: 1 if they order all pairs of runs alike, -1 if they order all pairs oppositely.

    tau_b = (concordant - discordant) / sqrt((pairs - tied by the first) * (pairs - tied by the second))

The pairs are counted in n log n steps (W. R. Knight, "A computer method for calculating Kendall's tau with ungrouped
data", JASA 61, 1966).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum, sqrt

from orchtrace_corpus.base.named_tuples import NamedTuple


class RankedRun(NamedTuple):
    """The rewards of a run by two designs, and its ranks among the runs of its task.

    Attributes:
        run: The index of the run among all runs.
        first: The first reward and its rank, from 1 for the largest; equal rewards share their mean rank.
        second: The second reward and its rank.
    """

    run: int
    first: tuple[float, float]
    second: tuple[float, float]

    @property
    def ranks_gained(self) -> float:
        """The number of ranks by which the second reward ranks the run higher; negative if it ranks it lower."""
        _, first_rank = self.first
        _, second_rank = self.second
        return first_rank - second_rank


class Comparison(NamedTuple):
    """The agreement of two rewards on the order of runs.

    Attributes:
        runs: The runs for which both rewards have a value, in the order given.
        left_out: The number of runs for which a reward has no value.
        pairs: The number of pairs of runs of one task; runs of different tasks are not compared.
        discordant: The number of pairs that the rewards order oppositely.
        tied: The number of pairs to which at least one reward gives equal values.
        tau: Kendall's tau-b over the pairs; None if one reward ties all of them.
        correlation: Pearson's correlation of the two rewards; None if one reward is constant.
    """

    runs: list[RankedRun]
    left_out: int
    pairs: int
    discordant: int
    tied: int
    tau: float | None
    correlation: float | None


def compare(first: Sequence[float | None], second: Sequence[float | None], tasks: Sequence[str]) -> Comparison:
    """Compare two rewards of the same runs.

    Args:
        first: The first reward of each run; None if it is unknown.
        second: The second reward of each run; None if it is unknown.
        tasks: The task of each run; runs are ranked within their task.
    """
    rewards_by_task: dict[str, dict[int, tuple[float, float]]] = {}
    for index, (first_reward, second_reward) in enumerate(zip(first, second, strict=True)):
        if first_reward is not None and second_reward is not None:
            rewards_by_task.setdefault(tasks[index], {})[index] = first_reward, second_reward
    runs: dict[int, RankedRun] = {}
    pairs = discordant = tied_first = tied_second = tied_both = 0
    for rewards_by_run in rewards_by_task.values():
        firsts = [first_reward for first_reward, _ in rewards_by_run.values()]
        seconds = [second_reward for _, second_reward in rewards_by_run.values()]
        first_ranked = zip(firsts, _ranks(firsts), strict=True)
        second_ranked = zip(seconds, _ranks(seconds), strict=True)
        for index, ranked_first, ranked_second in zip(rewards_by_run, first_ranked, second_ranked, strict=True):
            runs[index] = RankedRun(index, ranked_first, ranked_second)
        pairs += _pair_count(len(rewards_by_run))
        tied_first += _tied_pairs(firsts)
        tied_second += _tied_pairs(seconds)
        tied_both += _tied_pairs(rewards_by_run.values())
        # In the order of the first reward, a discordant pair is a pair whose second rewards descend.
        discordant += _inversions([second_reward for _, second_reward in sorted(rewards_by_run.values())])
    tied = tied_first + tied_second - tied_both
    first_rewards = [run.first[0] for run in runs.values()]
    second_rewards = [run.second[0] for run in runs.values()]
    concordant = pairs - tied - discordant
    scale = sqrt((pairs - tied_first) * (pairs - tied_second))
    return Comparison(
        runs=[runs[index] for index in sorted(runs)],
        left_out=len(first) - len(runs),
        pairs=pairs,
        discordant=discordant,
        tied=tied,
        tau=(concordant - discordant) / scale if scale else None,
        correlation=_pearson(first_rewards, second_rewards),
    )


def _pair_count(size: int) -> int:
    return size * (size - 1) // 2


def _tied_pairs(values: Iterable[object]) -> int:
    """Return the number of pairs of equal values."""
    return sum(map(_pair_count, Counter(values).values()))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1 for the largest; equal values share their mean rank."""
    ordered = sorted(values)
    ranks = []
    for value in values:
        smaller = bisect_left(ordered, value)
        not_larger = bisect_right(ordered, value)
        ranks.append(len(ordered) - (smaller + not_larger - 1) / 2)
    return ranks


def _inversions(values: list[float]) -> int:
    """Return the number of pairs in descending order, and sort the values in place: a merge sort that counts."""
    if len(values) < 2:
        return 0
    half = len(values) // 2
    left, right = values[:half], values[half:]
    count = _inversions(left) + _inversions(right)  # both halves are sorted from here on
    not_larger = 0  # the number of values of the left half up to the current value of the right half
    for value in right:
        while not_larger < len(left) and left[not_larger] <= value:
            not_larger += 1
        count += len(left) - not_larger
    values[:] = sorted([*left, *right])  # merges the two sorted halves in linear time
    return count


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None if one of the variables is constant."""
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return None
    x_mean = fsum(xs) / len(xs)
    y_mean = fsum(ys) / len(ys)
    dx = [x - x_mean for x in xs]
    dy = [y - y_mean for y in ys]
    scale = sqrt(fsum(x * x for x in dx)) * sqrt(fsum(y * y for y in dy))
    if not scale:  # the deviations are so small that their squares are 0
        return None
    return fsum(x * y for x, y in zip(dx, dy, strict=True)) / scale
