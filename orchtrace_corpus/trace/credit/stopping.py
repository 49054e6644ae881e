"""The bias of a baseline that depends on the turn at which the policy chose to stop.

Let a run of a task have turns 1 to T with rewards r_1 to r_T, whose sum is R. After turn t, the policy goes on with
probability p_t. The gradient by the logit of p_t is g_t = E[s_t R]; the score s_t is 1(T > t) - p_t if T >= t, else 0.
A baseline b that does not depend on the run after turn t does not change the gradient: E[s_t b] = 0. The baseline by
turn is the sum of the mean rewards m_u over the turns u of a run. It changes the gradient, because it depends on T:

    E[s_t (m_1 + ... + m_T)] = P(T >= t) p_t (1 - p_t) E[m_(t+1) + ... + m_T | T > t].

So the baseline charges the decision to go on after turn t a price that is part of no reward: the mean rewards of the
turns that follow. Issue 7244 of verl describes this for a baseline that leaves out the reward of the last turn. The
mean of a turn is taken over the runs that reached it.
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
        gradient: The gradient of the expected reward by the logit of going on.
        bias: The amount that the baseline adds to that gradient.
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
        go_on = len(continued) / len(reached)  # the probability p_t
        price = fsum(baselines[len(run)] - baselines[turn] for run in continued) / len(continued)
        gradient = fsum(_score(run, turn, go_on) * fsum(run) for run in reached) / len(runs)
        bias = -len(reached) / len(runs) * go_on * (1 - go_on) * price
        biases.append(StoppingBias(turn, len(reached), len(reached) - len(continued), price, gradient, bias))
    return biases


def _score(run: Sequence[float], turn: int, go_on: float) -> float:
    """Return the score s_t of a run that reached a turn, from the probability to go on after it."""
    return 1 - go_on if len(run) > turn else -go_on


def _baselines(runs: Sequence[Sequence[float]]) -> list[float]:
    """Return the baseline of a run by its number of turns, from 0: the sum of the mean rewards of these turns."""
    means = []
    for turn in range(max(map(len, runs), default=0)):
        rewards = [run[turn] for run in runs if len(run) > turn]
        means.append(fsum(rewards) / len(rewards))
    return list(accumulate(means, initial=0.0))


class GradientEstimates(NamedTuple):
    """Estimates of the gradient by the logit of going on after a turn, from groups of runs, with three baselines.

    Attributes:
        by_run: The estimate whose baseline is the mean reward of the runs.
        by_sample: The estimate whose baseline is the mean reward of the runs, weighted by their number of turns.
        by_turn: The estimate whose baseline is the sum of the mean rewards by turn, over the turns of the run.
        standard_errors: The standard errors of the three estimates, in this order.
    """

    by_run: float
    by_sample: float
    by_turn: float
    standard_errors: tuple[float, float, float]


def estimate_gradients(
    runs: Sequence[Sequence[float]], turn: int, *, groups: int = 4000, size: int = 0, seed: int = 0
) -> GradientEstimates:
    """Estimate the gradient with three baselines, over groups drawn from runs with replacement.

    The runs are taken as the whole distribution of the policy, so the gradient of `stopping_biases` is the true one. A
    baseline that includes the run itself reduces the gradient by the fraction 1/size, so sums are divided by size - 1.

    Args:
        runs: The rewards of the turns of each run.
        turn: The turn, from 1, after which runs go on or stop.
        groups: The number of groups to draw.
        size: The number of runs in a group; 0 for as many as there are.
        seed: The seed of the draws.
    """
    random = Random(seed)
    size = size or len(runs)
    reached = sum(len(run) >= turn for run in runs)
    go_on = sum(len(run) > turn for run in runs) / reached
    reward_by_run = {id(run): fsum(run) for run in runs}  # summed once: each run is drawn many times
    by_run: list[float] = []  # for each baseline, an estimate from each group
    by_sample: list[float] = []
    by_turn: list[float] = []
    for _ in range(groups):
        group = random.choices(runs, k=size)
        turn_baselines = _baselines(group)
        rewards = [reward_by_run[id(run)] for run in group]
        run_mean = fsum(rewards) / size
        turn_count = sum(map(len, group))
        sample_mean = fsum(len(run) * reward for run, reward in zip(group, rewards, strict=True)) / turn_count
        run_sum = sample_sum = turn_sum = 0.0
        for run, reward in zip(group, rewards, strict=True):
            if len(run) >= turn:
                score = _score(run, turn, go_on)
                run_sum += score * (reward - run_mean)
                sample_sum += score * (reward - sample_mean)
                turn_sum += score * (reward - turn_baselines[len(run)])
        by_run.append(run_sum / (size - 1))
        by_sample.append(sample_sum / (size - 1))
        by_turn.append(turn_sum / (size - 1))
    run_estimate, run_error = _mean_and_error(by_run)
    sample_estimate, sample_error = _mean_and_error(by_sample)
    turn_estimate, turn_error = _mean_and_error(by_turn)
    return GradientEstimates(run_estimate, sample_estimate, turn_estimate, (run_error, sample_error, turn_error))


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of some values, and its standard error."""
    mean = fsum(values) / len(values)
    variance = fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, sqrt(variance / len(values))
