"""Sets of moments as intervals: sorted pairs of a beginning and an end that do not touch each other."""

from collections.abc import Iterable, Sequence
from math import inf

from orchtrace_corpus.base.annotations import TypeAlias

Intervals: TypeAlias = list[tuple[float, float]]


def union(intervals: Iterable[tuple[float, float]]) -> Intervals:
    """Return the moments in any of the intervals, which may overlap and be in any order."""
    united: Intervals = []
    current_begin, current_end = inf, -inf  # the interval that still grows; at first a placeholder
    for begin, end in sorted(intervals):
        if begin > current_end:
            if end > begin:
                united.append((current_begin, current_end))
                current_begin, current_end = begin, end
        elif end > current_end:
            current_end = end
    united.append((current_begin, current_end))
    return united[1:]  # without the placeholder


def length(intervals: Sequence[tuple[float, float]]) -> float:
    """Return the total length of intervals."""
    return sum(end - begin for begin, end in intervals)


def without(intervals: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Intervals:
    """Return the moments in the intervals but not in the others."""
    remaining = []
    first = 0  # the first of the others that does not end before the current interval
    for begin, end in intervals:
        while first < len(others) and others[first][1] <= begin:
            first += 1
        place = first
        while place < len(others) and others[place][0] < end:
            other_begin, other_end = others[place]
            if other_begin > begin:
                remaining.append((begin, other_begin))
            begin = max(begin, other_end)
            place += 1
        if begin < end:
            remaining.append((begin, end))
    return remaining


def overlap(intervals: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Intervals:
    """Return the moments in both sets of intervals."""
    return without(intervals, without(intervals, others))
