"""The bias of a baseline that depends on the turn at which the policy chose to stop.

Let runs of one task have turns 1 to T with rewards r_1 to r_T, R their sum, and let the policy go on after turn t with
probability p_t. The gradient by the logit of p_t is g_t = E[s_t R] with the score s_t = 1(T > t) - p_t where T >= t,
else 0. A baseline b that is the same whatever the run does after turn t leaves it: E[s_t b] = 0. One that sums the
means m_u of the rewards by turn, over the turns that a run had, does not: it depends on T, and

    E[s_t (m_1 + ... + m_T)] = P(T >= t) p_t (1 - p_t) E[m_(t+1) + ... + m_T | T > t].

So the decision to go on after turn t pays a price that no reward has: all that runs earn, on average, after they
went on (verl, issue 7244, for the rewards before the last). The means here are those over the runs that reached the
turn.
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
        reached: How many runs reached it.
        stopped: How many of them ended with it.
        price: What the baseline takes off a decision to go on, in the unit of the reward.
        gradient: The gradient of the reward by the logit of going on.
        bias: What the baseline adds to it.
    """

    turn: int
    reached: int
    stopped: int
    price: float
    gradient: float
    bias: float


def stopping_biases(runs: Sequence[Sequence[float]]) -> list[StoppingBias]:
    """Return the bias on each decision to stop that the runs of one task took differently.

    Args:
        runs: The rewards of the turns of each run.

    Returns:
        One for each turn after which some runs ended and some did not; where none has a price, no bias.
    """
    prefix, totals = _baselines(runs), [fsum(run) for run in runs]
    found = []
    for turn in sorted({len(run) for run in runs})[:-1]:  # after the others nobody stops, or nobody goes on
        reached = [index for index, run in enumerate(runs) if len(run) >= turn]
        further = [number for number in reached if len(runs[number]) > turn]
        go_on = len(further) / len(reached)
        price = fsum(prefix[len(runs[number])] - prefix[turn] for number in further) / len(further)
        gradient = fsum(((len(runs[number]) > turn) - go_on) * totals[number] for number in reached) / len(runs)
        bias = -len(reached) / len(runs) * go_on * (1 - go_on) * price
        found.append(StoppingBias(turn, len(reached), len(reached) - len(further), price, gradient, bias))
    return found


def _baselines(runs: Sequence[Sequence[float]]) -> list[float]:
    """For each number of turns, from 0, the sum of the mean rewards of these turns, over the runs that reached them."""
    longest = max(map(len, runs), default=0)
    by_turn = ([run[turn] for run in runs if len(run) > turn] for turn in range(longest))
    means = (fsum(rewards) / len(rewards) for rewards in by_turn)
    return list(accumulate(means, initial=0.0))


class Simulated(NamedTuple):
    """The gradient by the logit of going on after a turn, as groups of runs estimate it.

    Attributes:
        by_run: With the mean reward of the runs as baseline.
        by_sample: With the mean over all turns, each with the reward of its run: long runs count more.
        by_turn: With the sum of the means of the turns that the run had.
        standard_errors: Of the three, in this order.
    """

    by_run: float
    by_sample: float
    by_turn: float
    standard_errors: tuple[float, float, float]


def simulate(
    runs: Sequence[Sequence[float]], turn: int, *, groups: int = 4000, size: int = 0, seed: int = 0
) -> Simulated:
    """Estimate the gradient with three baselines, over groups drawn from runs with replacement.

    The runs are taken for all that the policy does, so `stopping_biases` has the true gradient. A mean that includes
    the run itself takes 1/size off the gradient; that is given back here.

    Args:
        runs: The rewards of the turns of each run.
        turn: The decision to go on or to stop after this turn, from 1.
        groups: How many groups are drawn.
        size: How many runs a group has; as many as there are, where 0.
        seed: The seed of the draws.
    """
    draw, size = Random(seed), size or len(runs)
    reached = sum(len(run) >= turn for run in runs)
    go_on = sum(len(run) > turn for run in runs) / reached
    returns = {id(run): fsum(run) for run in runs}
    estimates: list[tuple[float, float, float]] = []
    for _ in range(groups):
        group = draw.choices(runs, k=size)
        prefix, total = _baselines(group), [returns[id(run)] for run in group]
        mean = fsum(total) / size
        weighted = fsum(len(run) * one for run, one in zip(group, total, strict=True)) / sum(map(len, group))
        sums = [0.0, 0.0, 0.0]
        for run, one in zip(group, total, strict=True):
            if len(run) >= turn:
                score = (len(run) > turn) - go_on
                for place, baseline in enumerate((mean, weighted, prefix[len(run)])):
                    sums[place] += score * (one - baseline)
        estimates.append((sums[0] / (size - 1), sums[1] / (size - 1), sums[2] / (size - 1)))
    by_run, by_sample, by_turn = (_mean([estimate[place] for estimate in estimates]) for place in range(3))
    return Simulated(by_run[0], by_sample[0], by_turn[0], (by_run[1], by_sample[1], by_turn[1]))


def _mean(drawn: Sequence[float]) -> tuple[float, float]:
    """The mean of some draws, and its standard error."""
    mean = fsum(drawn) / len(drawn)
    return mean, sqrt(fsum((one - mean) ** 2 for one in drawn) / (len(drawn) - 1) / len(drawn))
