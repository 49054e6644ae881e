"""Compares two rewards over the same runs: how similarly they rank them, and which runs they rank differently.

Kendall's tau-b (M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945) is the number of
concordant pairs less that of discordant pairs, divided by the geometric mean of the numbers of pairs that each reward
does not tie. It is counted in n log n steps (W. R. Knight, "A computer method for
calculating Kendall's tau with ungrouped data", JASA 61, 1966).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum, sqrt

from orchtrace_corpus.base.named_tuples import NamedTuple


class Ranked(NamedTuple):
    """A run under two rewards.

    Attributes:
        run: The index of the run among those compared.
        first: The first reward and its rank, from 1 for the largest; equal rewards share their mean rank.
        second: The second reward and its rank.
    """

    run: int
    first: tuple[float, float]
    second: tuple[float, float]

    @property
    def moved(self) -> float:
        """Return by how many ranks the second reward ranks the run higher."""
        return self.first[1] - self.second[1]


class Comparison(NamedTuple):
    """The agreement of two rewards on the order of runs.

    Attributes:
        runs: The runs for which both rewards have a value, in the order given.
        left_out: The number of runs without a value of one of the rewards.
        pairs: The number of pairs of runs of one task; runs of different tasks are not compared.
        discordant: The number of pairs that the rewards order oppositely.
        tied: The number of pairs that at least one of the rewards ties.
        tau: Kendall's tau-b over the pairs; None if one of the rewards ties all of them.
        correlation: Pearson's correlation of the two rewards; None if one of them is constant.
    """

    runs: list[Ranked]
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
    runs: dict[int, Ranked] = {}
    pairs = discordant = tied_first = tied_second = tied_both = 0
    for rewards in rewards_by_task.values():
        firsts = [first_reward for first_reward, _ in rewards.values()]
        seconds = [second_reward for _, second_reward in rewards.values()]
        first_ranked = zip(firsts, _ranks(firsts), strict=True)
        second_ranked = zip(seconds, _ranks(seconds), strict=True)
        for index, by_first, by_second in zip(rewards, first_ranked, second_ranked, strict=True):
            runs[index] = Ranked(index, by_first, by_second)
        pairs += _pair_count(len(rewards))
        tied_first += _tied_pairs(firsts)
        tied_second += _tied_pairs(seconds)
        tied_both += _tied_pairs(rewards.values())
        discordant += _inversions([second_reward for _, second_reward in sorted(rewards.values())])
    concordant = pairs - tied_first - tied_second + tied_both - discordant
    scale = sqrt((pairs - tied_first) * (pairs - tied_second))
    return Comparison(
        [runs[index] for index in sorted(runs)],
        len(first) - len(runs),
        pairs,
        discordant,
        tied_first + tied_second - tied_both,
        (concordant - discordant) / scale if scale else None,
        _pearson([run.first[0] for run in runs.values()], [run.second[0] for run in runs.values()]),
    )


def _pair_count(size: int) -> int:
    return size * (size - 1) // 2


def _tied_pairs(values: Iterable[object]) -> int:
    """Return the number of pairs of equal values."""
    return sum(map(_pair_count, Counter(values).values()))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1 for the largest; equal values share their mean rank."""
    ordered = sorted(values)
    size = len(ordered)
    return [size - (bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2 for value in values]


def _inversions(values: list[float]) -> int:
    """Return the number of pairs in descending order, counted by a merge sort; sorts the values in place."""
    if len(values) < 2:
        return 0
    half = len(values) // 2
    left, right = values[:half], values[half:]
    count = _inversions(left) + _inversions(right)
    place = 0
    for value in right:
        while place < len(left) and left[place] <= value:
            place += 1
        count += len(left) - place
    values[:] = sorted([*left, *right])  # merges the two sorted halves in linear time
    return count


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return None
    x_mean, y_mean = fsum(xs) / len(xs), fsum(ys) / len(ys)
    dx, dy = [x - x_mean for x in xs], [y - y_mean for y in ys]
    scale = sqrt(fsum(x * x for x in dx)) * sqrt(fsum(y * y for y in dy))
    return fsum(x * y for x, y in zip(dx, dy, strict=True)) / scale if scale else None
