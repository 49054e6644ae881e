"""Advantages: rewards set against a baseline, of runs of one task or of the steps of one run.

Group-relative advantage of run k (GRPO, arXiv 2402.03300): (R_k - mean R) / std R over the runs of one task.
Generalised advantage estimation (J. Schulman et al., arXiv 1506.02438): delta_t = r_t + gamma V(t+1) - V(t),
A_t = sum over l of (gamma lambda)^l delta_(t+l), with V = 0 behind the last step.
Means over the turns of a role are as in M-GRPO (arXiv 2511.13288).
"""

from collections.abc import Mapping, Sequence
from math import fsum, hypot, sqrt


def group_relative(rewards: Mapping[str, float]) -> dict[str, float]:
    """The advantage of each run over the others of its task; 0 for all where they do not differ.

    The standard deviation is that of the population, without any constant added to it.
    """
    if len(set(rewards.values())) < 2:  # the mean of equal numbers may be another number in the last digit
        return dict.fromkeys(rewards, 0.0)
    mean = fsum(rewards.values()) / len(rewards)
    deviation = hypot(*(reward - mean for reward in rewards.values())) / sqrt(len(rewards))
    return {name: (reward - mean) / deviation for name, reward in rewards.items()}


def generalised(rewards: Sequence[float], values: Sequence[float], *, gamma: float, lam: float) -> list[float]:
    """The advantage of each step of one run.

    Args:
        rewards: The reward at each step, in order.
        values: The value estimated for the state before each step.
        gamma: The discount, from 0 to 1.
        lam: Lambda, from 0 (one step) to 1 (the whole return).
    """
    advantages = [0.0] * len(rewards)
    following = 0.0
    for step in range(len(rewards) - 1, -1, -1):
        next_value = values[step + 1] if step + 1 < len(values) else 0.0
        delta = rewards[step] + gamma * next_value - values[step]
        following = delta + gamma * lam * following
        advantages[step] = following
    return advantages


def means(advantages: Mapping[str, float], groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The mean advantage of each group of steps; groups without a step are left out."""
    return {
        name: sum(advantages[step] for step in steps) / len(steps) for name, steps in groups.items() if len(steps) > 0
    }
