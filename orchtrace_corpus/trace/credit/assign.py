"""Assigns credit: divides the reward of a run among parts of it, such as agents, turns or tool calls.

`assign` checks that the method supports the credit unit, and runs it.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.credit import methods
from orchtrace_corpus.trace.credit.methods import DEFAULT_SAMPLES, MAX_EXACT_PLAYERS, Share
from orchtrace_corpus.trace.credit.reach import Reach
from orchtrace_corpus.trace.credit.values import STEPS, StepValue, SuppliedValues, read_step_values
from orchtrace_corpus.trace.measures.measure import people, steps
from orchtrace_corpus.trace.model.events import roles_of
from orchtrace_corpus.trace.model.terms import CREDIT_UNITS, EventType
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView


class Method(StrEnum):
    """A method of assigning credit."""

    GROUP = "group"
    GAE = "gae"
    MEAN = "mean"
    DIFFERENCE = "difference"
    SHAPLEY = "shapley"


class Choices(NamedTuple):
    """The settings of an assignment.

    Attributes:
        channel: The reward channel to divide.
        values: The text of a file of values: of coalitions (difference, shapley) or of steps (gae, mean); None if
            there is no file.
        values_path: The path of that file, for messages.
        gamma: The discount of generalised advantage estimation.
        lam: The lambda of generalised advantage estimation.
        samples: The number of permutations to sample for Shapley values of many players from supplied values.
        seed: The seed of the sampling.
        with_people: True if people get credit, too, and not only agents.
    """

    channel: str = "team"
    values: str | None = None
    values_path: str = ""
    gamma: float = 1.0
    lam: float = 0.95
    samples: int = DEFAULT_SAMPLES
    seed: int = 0
    with_people: bool = False


class Assignment(NamedTuple):
    """The credit of each part of one trace.

    Attributes:
        trace_id: The id of the trace.
        credits: The credit of each part, by name.
        basis: The source of the credit, as a phrase: rewards of the runs, supplied values, or a proxy.
        whole: The value of the whole team; None for a method that compares no coalitions.
        nobody: The value of the empty coalition; None for a method whose credits do not add up to the team's value.
        samples: The number of sampled permutations; None if the credits are exact.
        precision: A sentence on the accuracy of Shapley values; empty for the other methods.
        warnings: Sentences on implausible values.
    """

    trace_id: str
    credits: Mapping[str, Share]
    basis: str
    whole: float | None = None
    nobody: float | None = None
    samples: int | None = None
    precision: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> float | None:
        """The amount that the credits should add up to; None for a method whose credits need not do so."""
        if self.whole is None or self.nobody is None:
            return None
        return self.whole - self.nobody

    @property
    def sum(self) -> float:
        """The sum of all credits."""
        return sum(share.credit for share in self.credits.values())

    @property
    def is_efficient(self) -> bool:
        """True if the credits add up to the total, but for rounding."""
        if self.total is None:
            return False
        return abs(self.sum - self.total) <= 1e-9 * max(1.0, abs(self.total))


UNITS = {
    Method.GROUP: ("token", "turn", "message", "tool", "agent", "role", "orchestrator", "team"),
    Method.GAE: ("token", "turn"),
    Method.MEAN: ("agent", "role"),
    Method.DIFFERENCE: ("turn", "message", "tool", "agent", "role", "orchestrator"),
    Method.SHAPLEY: ("turn", "message", "tool", "agent", "role", "orchestrator"),
}
"""The credit units that each method supports."""

_GROUP_HINT = "Name the files of several runs of the same task."

_MAX_LISTED = 5
_DECISIONS = frozenset({EventType.SPAWN, EventType.DECISION, EventType.AGGREGATE, EventType.STOP, EventType.DESPAWN})
"""The types of events that are orchestration decisions."""

_PROXY = (
    "proxy `reach`: the share of what led to the result that the coalition could have done by itself, "
    "times the reward; a statement about this graph, not about runs that were not made"
)


def assign(traces: Sequence[Trace | TraceView], unit: str, method: Method, choices: Choices) -> list[Assignment]:
    """Assign credit in one or several traces.

    Args:
        traces: The traces; for the method `group`, runs of one task.
        unit: The credit unit: the kind of parts that get credit.
        method: The method.
        choices: The settings.

    Raises:
        CommandUseError: The method does not support the unit, needs values or further runs, the traces
            have no such part or reward, or gamma or lambda is not from 0 to 1.
        DataFileError: The file of values does not have the form that the method needs.
        CycleError: The edges of a trace form a cycle.
    """
    for name, value in (("gamma", choices.gamma), ("lambda", choices.lam)):
        if not 0 <= value <= 1:  # also true for NaN
            raise CommandUseError(f"{name} is {value:g}, and a number from 0 to 1 is wanted")
    views = [TraceView.of(trace) for trace in traces]
    for view in views:
        parts(view, unit, with_people=choices.with_people)  # raises if the trace has none
    if unit not in UNITS[method]:
        supporting_methods = [name for name, units in UNITS.items() if unit in units]
        raise CommandUseError(
            f"{method} gives no credit to the unit {quote(unit)}, but to {', '.join(UNITS[method])}",
            f"For {unit}: --method {' or '.join(supporting_methods)}.",
        )
    if method is Method.GROUP:
        return _by_group(views, unit, choices)
    if method in (Method.GAE, Method.MEAN):
        return [_by_steps(view, unit, method, choices) for view in views]
    return [_by_coalitions(view, unit, method, choices) for view in views]


def parts(view: TraceView, unit: str, *, with_people: bool = False) -> dict[str, list[int]]:
    """Return the parts of a trace that can receive credit, by name, each with the indices of its events.

    Parts are in the order of their first events. Their names are:

    - `turn`, `message`, `tool`: event ids. A turn is a step of the run.
    - `token`: the ids of the turns. A trace has no single tokens, so the tokens of a turn share its credit.
    - `agent`, `role`: the names of agents or roles.
    - `orchestrator`: the agents with sub-agents. The part of an agent is its orchestration decisions.
    - `team`: `team`, with all events.

    Events of people belong to no part, unless `with_people` is set or the unit is `team`.

    Raises:
        CommandUseError: The unit is unknown, or the trace has no part of it.
    """
    if unit not in CREDIT_UNITS:
        raise CommandUseError(f"there is no credit unit {quote(unit)}{suggestion(unit, CREDIT_UNITS)}")
    indices_by_part = find_parts(view, unit, with_people=with_people)
    if not indices_by_part:
        hint = "Try --unit agent, or --unit team."
        raise CommandUseError(f"the trace {quote(view.trace.trace_id)} has no {unit} that credit could go to", hint)
    return indices_by_part


def find_parts(view: TraceView, unit: str, *, with_people: bool = False) -> dict[str, list[int]]:
    """Return the parts of a trace, as `parts` does, for a known unit; empty if the trace has no such part."""
    trace, events = view.trace, view.trace.events
    if unit == "team":
        return {"team": list(range(len(events)))}
    if unit in ("token", "turn"):
        return {events[step].id: [step] for step in steps(trace)}
    excluded = frozenset() if with_people else people(trace)
    indices = [index for index, event in enumerate(events) if event.agent not in excluded]
    if unit in ("message", "tool"):
        kind = EventType.MESSAGE if unit == "message" else EventType.TOOL_CALL
        return {events[index].id: [index] for index in indices if events[index].type is kind}
    indices_by_part: dict[str, list[int]] = {}
    roles = roles_of(trace)
    parents = set(view.lifecycle.parents.values())
    for index in indices:
        event = events[index]
        if unit == "agent":
            indices_by_part.setdefault(event.agent, []).append(index)
        elif unit == "role" and event.agent in roles:
            indices_by_part.setdefault(roles[event.agent], []).append(index)
        elif unit == "orchestrator" and event.agent in parents and event.type in _DECISIONS:
            indices_by_part.setdefault(event.agent, []).append(index)
    return indices_by_part


def stated_reward(trace: Trace, choices: Choices) -> float:
    """Return the reward that a trace states for the chosen channel.

    Raises:
        CommandUseError: The trace states no reward for it.
    """
    reward = trace.rewards.get(choices.channel)
    if reward is not None:
        return reward
    if not trace.rewards:
        hint = 'Give one with --outcomes FILE, or state it in the trace, such as "rewards": {"team": 1}.'
        if "task_success" in trace.metrics:
            hint = "Success is known, but is no reward: give it as `reward` in the file for --outcomes (true is 1)."
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no reward that could be divided", hint)
    channel = f"{quote(choices.channel)}{suggestion(choices.channel, list(trace.rewards))}"
    hint = "Say which is to be divided: --channel NAME."
    raise CommandUseError(f"the trace {quote(trace.trace_id)} has no reward {channel}", hint)


def _by_group(views: Sequence[TraceView], unit: str, choices: Choices) -> list[Assignment]:
    """Give every part of a run the advantage of the run over the other runs."""
    if len(views) < 2:
        raise CommandUseError("a group is several runs of one task, and this is one run", _GROUP_HINT)
    runs_by_task: dict[str, list[str]] = {}  # the files of the runs, or their ids
    for view in views:
        runs_by_task.setdefault(view.trace.task_id, []).append(view.file or quote(view.trace.trace_id))
    if len(runs_by_task) > 1:
        descriptions = []
        for task, runs in runs_by_task.items():
            descriptions.append(f"{quote(task)} ({first_names_and_more(runs, _MAX_LISTED)})")
        tasks = f"{len(runs_by_task):,} tasks: {first_names_and_more(descriptions, _MAX_LISTED)}"
        raise CommandUseError(f"a group is several runs of one task, and these are runs of {tasks}", _GROUP_HINT)
    rewards = {index: stated_reward(view.trace, choices) for index, view in enumerate(views)}
    advantages = methods.group_relative_advantages(rewards)
    basis = f"the rewards {quote(choices.channel)} of {len(views)} runs; every part of a run shares its advantage"
    assignments = []
    for index, view in enumerate(views):
        names = parts(view, unit, with_people=choices.with_people)
        credits_by_part = dict.fromkeys(names, Share(advantages[index]))
        assignments.append(Assignment(view.trace.trace_id, credits_by_part, basis))
    return assignments


def _by_steps(view: TraceView, unit: str, method: Method, choices: Choices) -> Assignment:
    """Return the generalised advantage of each step, or with the method `mean` its mean by agent or role."""
    trace = view.trace
    if choices.values is None:
        hint = f"Give them: --values FILE with {STEPS}."
        raise CommandUseError(f"{method} needs the estimated value of each step, which no log holds", hint)
    step_indices = set(steps(trace))
    indices = [index for index in view.sequence if index in step_indices]
    if not indices:
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no step that credit could go to")
    step_ids = [trace.events[index].id for index in indices]
    path = quote(choices.values_path)
    step_values = _read_step_values(choices, step_ids)
    basis = f"rewards and values of steps from {path}"
    rewards = [step.reward or 0.0 for step in step_values]
    if all(step.reward is None for step in step_values):
        rewards[-1] = stated_reward(trace, choices)
        basis = f"values of steps from {path}; the reward {quote(choices.channel)} at the last step"
    values = [step.value for step in step_values]
    advantages = methods.generalised_advantages(rewards, values, gamma=choices.gamma, lam=choices.lam)
    advantage_by_part = dict(zip(step_ids, advantages, strict=True))
    if method is Method.MEAN:
        steps_by_group: dict[str, list[str]] = {}  # a group is the steps of one agent or role
        roles = roles_of(trace)
        for index in indices:
            event = trace.events[index]
            group = roles.get(event.agent, "") if unit == "role" else event.agent
            if group:  # an agent without a role is in no group
                steps_by_group.setdefault(group, []).append(event.id)
        advantage_by_part = methods.mean_by_group(advantage_by_part, steps_by_group)
    credits_by_part = {name: Share(advantage) for name, advantage in advantage_by_part.items()}
    return Assignment(trace.trace_id, credits_by_part, basis)


def _read_step_values(choices: Choices, step_ids: Sequence[str]) -> list[StepValue]:
    """Return the value of each step, in the order of the ids, from the file of values."""
    value_by_id = read_step_values(choices.values or "", choices.values_path)
    missing = [step_id for step_id in step_ids if step_id not in value_by_id]
    if missing:
        expected = set(step_ids)
        unknown = [quote(step_id) for step_id in value_by_id if step_id not in expected]
        hint = "Each step needs one: what agents think, decide, merge, say, and the tools they call."
        if unknown:
            listed = first_names_and_more(unknown, _MAX_LISTED)
            hint = f"It has values for parts that are not in the trace: {listed}."
        listed = first_names_and_more(list(map(quote, missing)), _MAX_LISTED)
        path = quote(choices.values_path)
        raise DataFileError(f"{path} has no value for {len(missing):,} of {len(step_ids):,} steps: {listed}", hint)
    return [value_by_id[step_id] for step_id in step_ids]


def _by_coalitions(view: TraceView, unit: str, method: Method, choices: Choices) -> Assignment:
    """Return credit that compares coalitions: by supplied values, or without them by the proxy."""
    trace = view.trace
    players = parts(view, unit, with_people=choices.with_people)
    if choices.values is None:
        game = Reach(view, players, outcome=stated_reward(trace, choices))
        return _by_reach(trace, game, unit, method)
    names_by_unit = {}  # the requested unit first; the others only for the hints of errors
    for name in (unit, *UNITS[method]):
        names_by_unit[name] = list(find_parts(view, name, with_people=choices.with_people))
    value = SuppliedValues(choices.values, choices.values_path, names_by_unit)
    names = list(players)
    basis = f"values of coalitions from {quote(choices.values_path)}"
    if method is Method.DIFFERENCE:  # needs only the whole team, and the team without each player
        assignment = Assignment(trace.trace_id, methods.difference_rewards(names, value), basis)
    else:
        shares = methods.shapley(names, value, samples=choices.samples, seed=choices.seed)
        assignment = Assignment(trace.trace_id, shares, basis, nobody=value(frozenset()))
        if len(names) > MAX_EXACT_PLAYERS:
            samples = methods.permutation_count(choices.samples)
            largest = max(share.standard_error or 0.0 for share in shares.values())
            precision = (
                f"Estimated from {samples:,} orders drawn with seed {choices.seed}; "
                f"the largest standard error is {largest:.3g}"
            )
            assignment = assignment._replace(samples=samples, precision=precision)
        else:
            assignment = assignment._replace(precision=f"Exact: all {2 ** len(names):,} coalitions were valued")
    whole = value(frozenset(names))
    value.require_complete()  # raises if a coalition that was looked up above has no value
    reward = trace.rewards.get(choices.channel)
    if reward is not None and abs(whole - reward) > 1e-9 * max(1.0, abs(reward)):
        path, channel = quote(choices.values_path), quote(choices.channel)
        warning = (
            f"{path} gives the whole team {whole:.6g}, but its reward {channel} in this run is {reward:.6g}; "
            f"the credits rest on {whole:.6g}"
        )
        assignment = assignment._replace(warnings=(warning,))
    return assignment._replace(whole=whole)


def _by_reach(trace: Trace, game: Reach, unit: str, method: Method) -> Assignment:
    """Return credit by the proxy `reach`."""
    warnings: tuple[str, ...] = ()
    if not game.owned_event_count:
        warnings = (f"nothing that led to the result belongs to any {unit}, so nobody has credit",)
    if method is Method.DIFFERENCE:
        return Assignment(trace.trace_id, game.difference_rewards(), _PROXY, game.whole, warnings=warnings)
    count = len(game.players)
    players = f"{count:,} player" if count == 1 else f"{count:,} players"
    precision = f"Exact for {players}: nothing was sampled, so there is no error"
    return Assignment(
        trace.trace_id,
        game.shapley(),
        _PROXY,
        whole=game.whole,
        nobody=0.0,
        precision=precision,
        warnings=warnings,
    )
