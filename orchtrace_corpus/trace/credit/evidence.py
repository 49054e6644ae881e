"""The share of synthetic runs in which a credit method finds the planted fault, measured by `scripts/attribution.py`.

A test compares the figures with the tables of docs/credit.md. The module `credit.reach` explains the proxy `reach`.
"""

from enum import StrEnum

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.credit.assign import Method

RUNS_PER_FAULT = 100
"""The number of synthetic runs with each fault."""


class DetectionRate(NamedTuple):
    """The share of the runs with one fault in which the part at fault comes first in a ranking, from 0 to 1.

    Attributes:
        fault: The fault.
        chance: The share if parts are in random order.
        most: The share if the part with the most credit by the proxy `reach` comes first.
        least: The share if the part with the least credit by the proxy `reach` comes first.
        judge: The share if the part with the lowest reward comes first; a judge that is right 8 times out of 10 gives
            the rewards.
        reruns: The share if the part with the lowest difference reward comes first, from four simulated runs with each
            part replaced; None if it was not measured.
    """

    fault: str
    chance: float
    most: float
    least: float
    judge: float
    reruns: float | None = None


# Each has a fault, and the rates `chance`, `most`, `least`, `judge` and `reruns`, in this order.
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
_RATES_BY_UNIT = {"agent": AGENTS, "turn": STEPS}


class Basis(StrEnum):
    """The kind of evidence on how well a credit method finds faults."""

    PROXY = "proxy"  # measured with the proxy `reach`
    RERUNS = "reruns"  # measured with values from repeated runs
    NOT_MEASURED = "not measured"
    ADVANTAGE = "advantage"  # the method computes advantages, which are not meant to find faults


class Evidence(NamedTuple):
    """The evidence on how well a credit method finds faults.

    Attributes:
        basis: The kind of evidence.
        unit: The credit unit.
        method: The credit method.
        has_values: True if the method uses values from runs, and not the proxy.
        rates: The detection rates for this unit, one for each fault; empty if none were measured.
    """

    basis: Basis
    unit: str
    method: Method
    has_values: bool
    rates: tuple[DetectionRate, ...]


def find_evidence(unit: str, method: Method, *, has_values: bool) -> Evidence:
    """Return the evidence on a method for a credit unit, with values from runs or with the proxy."""
    if method not in (Method.SHAPLEY, Method.DIFFERENCE):
        return Evidence(Basis.ADVANTAGE, unit, method, has_values, ())
    rates = _RATES_BY_UNIT.get(unit, ())
    basis = Basis.NOT_MEASURED
    if not has_values and method is Method.SHAPLEY and rates:
        basis = Basis.PROXY
    elif has_values and method is Method.DIFFERENCE and any(rate.reruns is not None for rate in rates):
        basis = Basis.RERUNS
    return Evidence(basis, unit, method, has_values, rates)
