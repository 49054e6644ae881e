"""The bias of a baseline that depends on the turn at which the policy chose to stop.

Let runs of one task have turns 1 to T with rewards r_1 to r_T, R their sum, and let the policy go on after turn t with
probability p_t. The gradient by the logit of p_t is g_t = E[s_t R] with the score s_t = 1(T > t) - p_t if T >= t,
else 0. A baseline b that does not depend on the run after turn t does not change the gradient: E[s_t b] = 0. A baseline
that sums the mean rewards m_u by turn, over the turns of a run, changes it, because it depends on T:

    E[s_t (m_1 + ... + m_T)] = P(T >= t) p_t (1 - p_t) E[m_(t+1) + ... + m_T | T > t].

The decision to go on after turn t is charged a price that no reward contains: the rewards that runs earn, on average,
after they went on (verl, issue 7244, for the rewards before the last). The mean of a turn is taken over the runs that
reached the turn.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import fsum, sqrt
from random import Random

from orchtrace_corpus.base.named_tuples import NamedTuple


class StoppingBias(NamedTuple):
    """The bias of a baseline by turn on the decision to go on after one turn.

    Attributes:
        turn: The turn, from 1.
        reached: The number of runs that reached the turn.
        stopped: The number of runs that ended with the turn.
        price: The mean amount that the baseline subtracts from a decision to go on, in the unit of the reward.
        gradient: The gradient of the reward by the logit of going on.
        bias: The change of that gradient by the baseline.
    """

    turn: int
    reached: int
    stopped: int
    price: float
    gradient: float
    bias: float


def stopping_biases(runs: Sequence[Sequence[float]]) -> list[StoppingBias]:
    """Return the bias for each turn after which some runs of one task stopped and others went on.

    `runs` has the rewards of the turns of each run.
    """
    baselines = _baselines(runs)
    biases = []
    for turn in sorted({len(run) for run in runs})[:-1]:  # after any other turn, all runs stop or all go on
        reached = [run for run in runs if len(run) >= turn]
        continued = [run for run in reached if len(run) > turn]
        go_on = len(continued) / len(reached)
        price = fsum(baselines[len(run)] - baselines[turn] for run in continued) / len(continued)
        gradient = fsum(((len(run) > turn) - go_on) * fsum(run) for run in reached) / len(runs)
        bias = -len(reached) / len(runs) * go_on * (1 - go_on) * price
        biases.append(StoppingBias(turn, len(reached), len(reached) - len(continued), price, gradient, bias))
    return biases


def _baselines(runs: Sequence[Sequence[float]]) -> list[float]:
    """Return, for each number of turns from 0, the sum of the mean rewards of these turns.

    The mean of a turn is taken over the runs that reached the turn.
    """
    longest = max(map(len, runs), default=0)
    by_turn = ([run[turn] for run in runs if len(run) > turn] for turn in range(longest))
    means = (fsum(rewards) / len(rewards) for rewards in by_turn)
    return list(accumulate(means, initial=0.0))


class GradientEstimates(NamedTuple):
    """Estimates of the gradient by the logit of going on after a turn, from groups of runs, with three baselines.

    Attributes:
        by_run: The estimate with the mean reward of the runs as baseline.
        by_sample: The estimate with the mean over all turns, each with the reward of its run: long runs count more.
        by_turn: The estimate with the sum of the mean rewards by turn, over the turns of the run.
        standard_errors: The standard errors of the three estimates, in this order.
    """

    by_run: float
    by_sample: float
    by_turn: float
    standard_errors: tuple[float, float, float]


def simulate(
    runs: Sequence[Sequence[float]], turn: int, *, groups: int = 4000, size: int = 0, seed: int = 0
) -> GradientEstimates:
    """Estimate the gradient with three baselines, over groups drawn from runs with replacement.

    The runs stand for all that the policy does, so `stopping_biases` returns the true gradient. A baseline that
    includes the run itself reduces the gradient by 1/size; this is corrected here.

    Args:
        runs: The rewards of the turns of each run.
        turn: The turn, from 1, after which runs go on or stop.
        groups: The number of groups to draw.
        size: The number of runs in a group; 0 for as many as there are.
        seed: The seed of the draws.
    """
    random, size = Random(seed), size or len(runs)
    reached = sum(len(run) >= turn for run in runs)
    go_on = sum(len(run) > turn for run in runs) / reached
    returns = {id(run): fsum(run) for run in runs}
    estimates: list[tuple[float, float, float]] = []
    for _ in range(groups):
        group = random.choices(runs, k=size)
        turn_baselines = _baselines(group)
        totals = [returns[id(run)] for run in group]
        mean = fsum(totals) / size
        weighted = fsum(len(run) * total for run, total in zip(group, totals, strict=True)) / sum(map(len, group))
        sums = [0.0, 0.0, 0.0]
        for run, total in zip(group, totals, strict=True):
            if len(run) >= turn:
                score = (len(run) > turn) - go_on
                for index, baseline in enumerate((mean, weighted, turn_baselines[len(run)])):
                    sums[index] += score * (total - baseline)
        estimates.append((sums[0] / (size - 1), sums[1] / (size - 1), sums[2] / (size - 1)))
    by_run, by_sample, by_turn = (_mean_and_error([estimate[index] for estimate in estimates]) for index in range(3))
    return GradientEstimates(by_run[0], by_sample[0], by_turn[0], (by_run[1], by_sample[1], by_turn[1]))


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of some values, and its standard error."""
    mean = fsum(values) / len(values)
    return mean, sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
