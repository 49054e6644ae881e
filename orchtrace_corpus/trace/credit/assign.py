"""One door to all methods of credit assignment: which unit takes which method, on what basis, with which sum."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from orchtrace_corpus.errors import CommandUseError, DataFileError
from orchtrace_corpus.findings import quote, suggestion
from orchtrace_corpus.trace.credit import advantages, shapley
from orchtrace_corpus.trace.credit.coalitions import Value, by_reach, supplied
from orchtrace_corpus.trace.credit.shapley import Share
from orchtrace_corpus.trace.credit.units import parts, roles_of
from orchtrace_corpus.trace.credit.values import STEPS, StepValue, step_values
from orchtrace_corpus.trace.graph import graph, order
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model import Trace


class Method(StrEnum):
    """How credit is assigned."""

    GROUP = "group"
    GAE = "gae"
    MEAN = "mean"
    DIFFERENCE = "difference"
    SHAPLEY = "shapley"


class Choices(NamedTuple):
    """The settings of an assignment.

    Attributes:
        channel: The reward channel that is divided.
        values: The text of a file of values: of coalitions (difference, shapley) or of steps (gae, mean).
        values_path: Its path, to show.
        gamma: The discount of generalised advantage estimation.
        lam: Its lambda.
        samples: Permutations sampled for Shapley values of many players.
        seed: The seed of the sampling.
    """

    channel: str = "team"
    values: str | None = None
    values_path: str = ""
    gamma: float = 1.0
    lam: float = 0.95
    samples: int = 2000
    seed: int = 0


class Assignment(NamedTuple):
    """Credit for each part of one trace.

    Attributes:
        basis: What the figures rest on, in a sentence: factual rewards, supplied values, or a proxy.
        total: What the credits of a complete division sum up to; None where a method divides nothing.
    """

    trace_id: str
    credits: Mapping[str, Share]
    basis: str
    total: float | None

    @property
    def sum(self) -> float:
        """The sum of all credits."""
        return sum(share.credit for share in self.credits.values())

    @property
    def is_efficient(self) -> bool:
        """Whether the credits sum up to the total, as those of a division do."""
        return self.total is not None and abs(self.sum - self.total) <= 1e-9 * max(1.0, abs(self.total))


UNITS = {
    Method.GROUP: ("token", "turn", "message", "tool", "agent", "role", "orchestrator", "team"),
    Method.GAE: ("token", "turn"),
    Method.MEAN: ("agent", "role"),
    Method.DIFFERENCE: ("turn", "message", "tool", "agent", "role", "orchestrator"),
    Method.SHAPLEY: ("turn", "message", "tool", "agent", "role", "orchestrator"),
}
"""The credit units that each method gives credit to."""

_PROXY = (
    "proxy `reach`: the share of what led to the result that the coalition could have done by itself, "
    "times the reward; a statement about this graph, not about runs that were not made"
)


def assign(traces: Sequence[Trace], unit: str, method: Method, choices: Choices) -> list[Assignment]:
    """Assign credit in one or several traces.

    Raises:
        CommandUseError: The method does not go with the unit, needs values or further runs, or the traces
            have no such part or reward.
        DataFileError: The file of values is not of the form that the method needs.
        CycleError: The edges of a trace go round in a circle.
    """
    for trace in traces:
        parts(trace, unit)
    if unit not in UNITS[method]:
        fitting = [name for name, units in UNITS.items() if unit in units]
        raise CommandUseError(
            f"{method} gives no credit to the unit {quote(unit)}, but to {', '.join(UNITS[method])}",
            f"For {unit}: --method {' or '.join(fitting)}.",
        )
    if method is Method.GROUP:
        return _by_group(traces, unit, choices)
    if method in (Method.GAE, Method.MEAN):
        return [_by_steps(trace, unit, method, choices) for trace in traces]
    return [_by_coalitions(trace, unit, method, choices) for trace in traces]


def _reward(trace: Trace, choices: Choices) -> float:
    if choices.channel not in trace.rewards:
        hint = suggestion(choices.channel, list(trace.rewards)) or " (it has none)"
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no reward {quote(choices.channel)}{hint}")
    return trace.rewards[choices.channel]


def _by_group(traces: Sequence[Trace], unit: str, choices: Choices) -> list[Assignment]:
    tasks = {trace.task_id for trace in traces}
    if len(traces) < 2 or len(tasks) > 1:
        found = f"{len(traces)} of {len(tasks)} tasks" if len(traces) > 1 else "only one"
        raise CommandUseError(
            f"a group is several runs of one task, and there is {found}", "Name the files of all runs of the task."
        )
    names = [f"{number}:{trace.trace_id}" for number, trace in enumerate(traces)]
    found_advantages = advantages.group_relative(
        {name: _reward(trace, choices) for name, trace in zip(names, traces, strict=True)}
    )
    basis = f"the rewards {quote(choices.channel)} of {len(traces)} runs; every part of a run shares its advantage"
    return [
        Assignment(trace.trace_id, {part: Share(found_advantages[name]) for part in parts(trace, unit)}, basis, None)
        for name, trace in zip(names, traces, strict=True)
    ]


def _by_steps(trace: Trace, unit: str, method: Method, choices: Choices) -> Assignment:
    if choices.values is None:
        raise CommandUseError(
            f"{method} needs the estimated value of each step, which no log holds",
            f"Give them: --values FILE with {STEPS}.",
        )
    asked = set(steps(trace))
    numbers = [number for number in order(graph(trace)) if number in asked]
    if not numbers:
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no step that credit could go to")
    known = _known_steps(choices, [trace.events[number].id for number in numbers])
    basis = f"rewards and values of steps from {quote(choices.values_path)}"
    rewards = [one.reward or 0.0 for one in known]
    if all(one.reward is None for one in known):
        rewards[-1] = _reward(trace, choices)
        path, channel = quote(choices.values_path), quote(choices.channel)
        basis = f"values of steps from {path}; the reward {channel} at the last step"
    values = [one.value for one in known]
    advantage = advantages.generalised(rewards, values, gamma=choices.gamma, lam=choices.lam)
    found = {trace.events[number].id: one for number, one in zip(numbers, advantage, strict=True)}
    if method is Method.MEAN:
        groups: dict[str, list[str]] = {}
        roles = roles_of(trace)
        for number in numbers:
            event = trace.events[number]
            name = roles.get(event.agent, "") if unit == "role" else event.agent
            if name:
                groups.setdefault(name, []).append(event.id)
        found = advantages.means(found, groups)
    return Assignment(trace.trace_id, {name: Share(one) for name, one in found.items()}, basis, None)


def _known_steps(choices: Choices, ids: Sequence[str]) -> list[StepValue]:
    known = step_values(choices.values or "", choices.values_path)
    missing = [name for name in ids if name not in known]
    if missing:
        raise DataFileError(
            f"{quote(choices.values_path)} has no value for {len(missing)} of {len(ids)} steps: "
            f"{', '.join(map(quote, missing[:5]))}"
        )
    return [known[name] for name in ids]


def _by_coalitions(trace: Trace, unit: str, method: Method, choices: Choices) -> Assignment:
    players = parts(trace, unit)
    value: Value
    if choices.values is not None:
        value = supplied(choices.values, choices.values_path, list(players))
        basis = f"values of coalitions from {quote(choices.values_path)}"
    else:
        value = by_reach(trace, players, _reward(trace, choices))
        basis = _PROXY
    names = list(players)
    if method is Method.DIFFERENCE:  # asks for no other coalitions than all, and all but one
        return Assignment(trace.trace_id, shapley.difference_rewards(names, value), basis, None)
    total = value(frozenset(names)) - value(frozenset())
    shares = shapley.shapley(names, value, samples=choices.samples, seed=choices.seed)
    return Assignment(trace.trace_id, shares, basis, total)
