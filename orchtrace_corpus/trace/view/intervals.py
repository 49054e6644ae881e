"""Intervals of time: lists of pairs of a beginning and an end, sorted, none touching the next."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Intervals: TypeAlias = list[tuple[float, float]]


def union(intervals: Iterable[tuple[float, float]]) -> Intervals:
    """Return the moments that any of the intervals holds."""
    found: Intervals = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > begin:
            found.append((begin, end))
    return found


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
