"""The rates at which credit methods find a planted fault, as measured by `scripts/attribution.py`.

A test compares the figures with the tables of docs/credit.md.
"""

from enum import StrEnum

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.credit.assign import Method

RUNS_PER_FAULT = 100
"""The number of synthetic runs with each fault."""


class DetectionRate(NamedTuple):
    """The share of the runs with one fault in which each method ranks the part at fault first, from 0 to 1.

    Attributes:
        fault: The fault.
        chance: Parts in random order.
        most: The part with the most credit by the proxy `reach` first.
        least: The part with the least credit by the proxy `reach` first.
        judge: The part with the lowest reward first, from outcomes of a judge that is right 8 times out of 10.
        reruns: By difference rewards from four simulated runs with each part replaced; None if not measured.
    """

    fault: str
    chance: float
    most: float
    least: float
    judge: float
    reruns: float | None = None


AGENTS = (
    DetectionRate("wrong answer", 0.177, 0.0, 0.265, 0.570, 0.825),
    DetectionRate("duplicated subtask", 0.134, 0.490, 0.0, 0.355, 0.828),
    DetectionRate("late stop", 0.149, 0.520, 0.0, 0.576, 0.910),
)
STEPS = (
    DetectionRate("wrong answer", 0.049, 0.0, 0.0, 0.164),
    DetectionRate("duplicated subtask", 0.035, 0.0, 0.0, 0.083),
    DetectionRate("late stop", 0.035, 0.0, 0.058, 0.124),
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
        basis: The method that was measured: the proxy, values from repeated runs, or none.
        unit: The credit unit.
        method: The credit method.
        has_values: True if the method uses values from runs.
        rates: The detection rates for this unit, by fault; empty if none were measured.
    """

    basis: Basis
    unit: str
    method: Method
    has_values: bool
    rates: tuple[DetectionRate, ...]


def evidence(unit: str, method: Method, *, has_values: bool) -> Evidence:
    """Return the measured accuracy of a method for a credit unit, with values from runs or with the proxy."""
    rates = _MEASURED.get(unit, ())
    if method not in (Method.SHAPLEY, Method.DIFFERENCE):
        return Evidence(Basis.ADVANTAGE, unit, method, has_values, ())
    if not has_values:
        is_measured = bool(rates) and method is Method.SHAPLEY
        basis = Basis.PROXY if is_measured else Basis.NOT_MEASURED
    else:
        is_measured = method is Method.DIFFERENCE and any(rate.reruns is not None for rate in rates)
        basis = Basis.RERUNS if is_measured else Basis.NOT_MEASURED
    return Evidence(basis, unit, method, has_values, rates)
