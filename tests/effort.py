"""How much the tests try, and how they measure time.

The default run is for people who wait; `.ci/full` sets `ORCHTRACE_TESTS=full` and runs what is marked `slow`, too.
"""

import gc
import os
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

FULL = os.environ.get("ORCHTRACE_TESTS") == "full"


def tries(full: int, quick: int) -> int:
    """How many inputs to try: all of them under `.ci/full`, else as many as find what breaks often."""
    return full if FULL else quick


def mostly_slow(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Parameters of a test, of which the default run takes only some; the others are `slow`.

    A tuple has a value for each of several names.
    """

    def slow(value: Any) -> Any:
        return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)

    return [value if value in quick else slow(value) for value in values]


def cpu_seconds(work: Callable[[], object]) -> float:
    """The processor time of a call, which other programs do not lengthen; without the garbage collector."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        begin = time.process_time()
        work()
        return time.process_time() - begin
    finally:
        if was_on:
            gc.enable()


def assert_grows(prepare: Callable[[int], Callable[[], object]], small: int, large: int, most: float) -> None:
    """Assert that a larger input takes at most so many times the processor time of a small one.

    Args:
        prepare: Makes the input of a size, and returns the call to measure.
        small: The one size; what takes less than 2 ms counts as 2 ms.
        large: The other size.
        most: The largest ratio of their times. Halfway, as a factor, between linear and quadratic growth is
            `(large / small) ** 1.5`.

    A busy machine spoils single measurements, even of processor time: the best of several counts.
    """
    few, many = prepare(small), prepare(large)
    least, shortest = 0.002, float("inf")
    for _ in range(5):
        least = max(least, min(cpu_seconds(few) for _ in range(2)))
        shortest = min(shortest, cpu_seconds(many))
        if shortest < most * least:
            return
    raise AssertionError(f"{large} took {shortest:.3f} s and {small} took {least:.3f} s: {shortest / least:.1f} times")
