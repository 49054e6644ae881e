"""Intervals of time: lists of pairs of a beginning and an end, sorted, none touching the next."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeAlias

Intervals: TypeAlias = list[tuple[float, float]]


def union(intervals: Iterable[tuple[float, float]]) -> Intervals:
    """Return the moments that any of the intervals holds."""
    united: Intervals = []
    start, stop = inf, -inf  # of the last one so far
    for begin, end in sorted(intervals):
        if begin > stop:
            if end > begin:
                united.append((start, stop))
                start, stop = begin, end
        elif end > stop:
            stop = end
    united.append((start, stop))
    return united[1:]  # what stood for none before the first is no interval


def length(intervals: Sequence[tuple[float, float]]) -> float:
    """Return the total length of intervals."""
    return sum(end - begin for begin, end in intervals)


def without(intervals: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Intervals:
    """Return the moments of intervals that none of some others holds."""
    found, first = [], 0
    for begin, end in intervals:
        while first < len(others) and others[first][1] <= begin:
            first += 1
        at = first
        while at < len(others) and others[at][0] < end:
            start, stop = others[at]
            if start > begin:
                found.append((begin, start))
            begin = max(begin, stop)
            at += 1
        if begin < end:
            found.append((begin, end))
    return found


def overlap(intervals: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Intervals:
    """Return the moments that intervals and some others have in common."""
    return without(intervals, without(intervals, others))
