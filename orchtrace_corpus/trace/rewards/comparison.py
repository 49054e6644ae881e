"""Two rewards over the same runs: how alike they rank them, and which runs they rank differently.

Kendall's tau-b (M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945): pairs in the same
order less pairs in the other, by the geometric mean of the pairs that each does not tie. Counted in n log n steps
(W. R. Knight, "A computer method for calculating Kendall's tau with ungrouped data", JASA 61, 1966).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum, sqrt

from orchtrace_corpus.base.named_tuples import NamedTuple


class Ranked(NamedTuple):
    """A run under two rewards.

    Attributes:
        run: Its place among the runs that are compared.
        first: Its first reward, and its rank by it, from 1 for the largest; runs with one reward share the mean rank.
        second: The same by the second.
    """

    run: int
    first: tuple[float, float]
    second: tuple[float, float]

    @property
    def moved(self) -> float:
        """By how many ranks the second reward puts it higher."""
        return self.first[1] - self.second[1]


class Comparison(NamedTuple):
    """The agreement of two rewards on the order of runs.

    Attributes:
        runs: The runs that both have a value for, in the order given.
        left_out: How many runs one of them has no value for.
        pairs: The pairs of runs of one task; runs of different tasks are not ranked against each other.
        discordant: How many of these the two rewards put in opposite orders.
        tied: How many of these at least one of them ties.
        tau: Kendall's tau-b over these pairs; None where one of the rewards ties all of them.
        correlation: Pearson's correlation of the two rewards; None where one of them is constant.
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
        first: The value of the one for each run; None where there is none.
        second: The value of the other.
        tasks: The task of each run; ranks are among the runs of one task.
    """
    groups: dict[str, list[int]] = {}
    both: list[tuple[float, float] | None] = []
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        both.append(None if one is None or other is None else (one, other))
        if both[-1] is not None:
            groups.setdefault(tasks[index], []).append(index)
    runs: dict[int, Ranked] = {}
    pairs = discordant = tied_first = tied_second = tied_both = 0
    for indices in groups.values():
        values = [value for index in indices if (value := both[index]) is not None]
        ones, others = [one for one, _ in values], [other for _, other in values]
        ranks = zip(indices, ones, _ranks(ones), others, _ranks(others), strict=True)
        runs |= {index: Ranked(index, (one, rank), (other, place)) for index, one, rank, other, place in ranks}
        pairs += _choose(len(values))
        tied_first += _tied(ones)
        tied_second += _tied(others)
        tied_both += _tied(values)
        discordant += _inversions([other for _, other in sorted(values)])
    concordant = pairs - tied_first - tied_second + tied_both - discordant
    scale = sqrt((pairs - tied_first) * (pairs - tied_second))
    return Comparison(
        [runs[run] for run in sorted(runs)], len(both) - len(runs), pairs, discordant,
        tied_first + tied_second - tied_both, (concordant - discordant) / scale if scale else None,
        _pearson([one.first[0] for one in runs.values()], [one.second[0] for one in runs.values()]),
    )  # fmt: skip


def _choose(number: int) -> int:
    return number * (number - 1) // 2


def _tied(values: Iterable[object]) -> int:
    """The pairs of equal values."""
    return sum(map(_choose, Counter(values).values()))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1 for the largest; equal ones share the mean of theirs."""
    ordered = sorted(values)
    size = len(ordered)
    return [size - (bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2 for value in values]


def _inversions(values: list[float]) -> int:
    """The pairs of which the first is larger, counted while they are merged; leaves the values sorted."""
    if len(values) < 2:
        return 0
    half = len(values) // 2
    left, right = values[:half], values[half:]
    found = _inversions(left) + _inversions(right)
    place = 0
    for value in right:
        while place < len(left) and left[place] <= value:
            place += 1
        found += len(left) - place
    values[:] = sorted([*left, *right])  # two runs, which are merged in linear time
    return found


def _pearson(ones: Sequence[float], others: Sequence[float]) -> float | None:
    if len(set(ones)) < 2 or len(set(others)) < 2:
        return None
    mean, other_mean = fsum(ones) / len(ones), fsum(others) / len(others)
    left, right = [one - mean for one in ones], [other - other_mean for other in others]
    scale = sqrt(fsum(one * one for one in left)) * sqrt(fsum(other * other for other in right))
    return fsum(one * other for one, other in zip(left, right, strict=True)) / scale if scale else None
