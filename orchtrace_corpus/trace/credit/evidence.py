"""The share of planted faults that credit methods found, as measured by `scripts/attribution.py`.

A test holds the figures against the tables of docs/credit.md.
"""

from enum import StrEnum

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.credit.assign import Method

RUNS_OF_A_FAULT = 100
"""The number of synthetic runs with each fault."""


class Found(NamedTuple):
    """The share of the runs with one fault in which the part at fault was the first to be named, from 0 to 1.

    Attributes:
        fault: The fault.
        chance: By lot.
        most: By the most credit of the proxy `reach`.
        least: By the least of it.
        judge: By the lowest reward, with outcomes of a judge that is right 8 times of 10.
        reruns: By difference rewards from four runs with each part replaced, simulated; None where not measured.
    """

    fault: str
    chance: float
    most: float
    least: float
    judge: float
    reruns: float | None = None


AGENTS = (
    Found("wrong answer", 0.177, 0.0, 0.265, 0.570, 0.825),
    Found("duplicated subtask", 0.134, 0.490, 0.0, 0.355, 0.828),
    Found("late stop", 0.149, 0.520, 0.0, 0.576, 0.910),
)
STEPS = (
    Found("wrong answer", 0.049, 0.0, 0.0, 0.164),
    Found("duplicated subtask", 0.035, 0.0, 0.0, 0.083),
    Found("late stop", 0.035, 0.0, 0.058, 0.124),
)
_MEASURED = {"agent": AGENTS, "turn": STEPS}


class Basis(StrEnum):
    """The kind of evidence on a method that looks for faults."""

    PROXY = "proxy"
    RERUNS = "reruns"
    NOT_MEASURED = "not measured"
    ADVANTAGE = "advantage"


class Evidence(NamedTuple):
    """The measured accuracy of a method that looks for faults.

    Attributes:
        basis: What was measured: the proxy, values from runs made again, or nothing.
        unit: The unit of credit.
        method: The method of credit.
        has_values: Whether it had values from runs.
        found: The shares by fault, of this unit; empty where there are none.
    """

    basis: Basis
    unit: str
    method: Method
    has_values: bool
    found: tuple[Found, ...]


def evidence(unit: str, method: Method, *, has_values: bool) -> Evidence:
    """Return what is known of how well a method finds faults.

    Args:
        unit: The unit of credit.
        method: The method.
        has_values: Whether it has values from runs instead of the proxy.
    """
    found = _MEASURED.get(unit, ())
    if method not in (Method.SHAPLEY, Method.DIFFERENCE):
        return Evidence(Basis.ADVANTAGE, unit, method, has_values, ())
    if not has_values:
        is_measured = bool(found) and method is Method.SHAPLEY
        return Evidence(Basis.PROXY if is_measured else Basis.NOT_MEASURED, unit, method, has_values, found)
    is_measured = method is Method.DIFFERENCE and any(one.reruns is not None for one in found)
    return Evidence(Basis.RERUNS if is_measured else Basis.NOT_MEASURED, unit, method, has_values, found)
