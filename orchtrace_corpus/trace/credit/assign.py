"""Assign credit in traces by any method: `assign` checks the method against the credit unit and runs it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.credit import methods
from orchtrace_corpus.trace.credit.methods import MOST_EXACT_PLAYERS, Share
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
        values: The text of a file of values: of coalitions (difference, shapley) or of steps (gae, mean).
        values_path: The path of that file, for messages.
        gamma: The discount of generalised advantage estimation.
        lam: The lambda of generalised advantage estimation.
        samples: The number of permutations to sample for Shapley values of many players from supplied values.
        seed: The seed of the sampling.
        with_people: True if people are players too, and not only agents.
    """

    channel: str = "team"
    values: str | None = None
    values_path: str = ""
    gamma: float = 1.0
    lam: float = 0.95
    samples: int = 2000
    seed: int = 0
    with_people: bool = False


class Assignment(NamedTuple):
    """Credit for each part of one trace.

    Attributes:
        credits: The credit of each part, by name.
        basis: The source of the values, as a phrase: rewards of the runs, supplied values, or a proxy.
        whole: The value of the whole team; None for a method that compares no coalitions.
        nobody: The value of the empty coalition; None for a method that does not divide the team's value.
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
        """Return the amount that is divided; None for a method that does not divide the team's value."""
        if self.whole is None or self.nobody is None:
            return None
        return self.whole - self.nobody

    @property
    def sum(self) -> float:
        """Return the sum of all credits."""
        return sum(share.credit for share in self.credits.values())

    @property
    def is_efficient(self) -> bool:
        """Return True if the credits add up to the total, as Shapley values do."""
        return self.total is not None and abs(self.sum - self.total) <= 1e-9 * max(1.0, abs(self.total))


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

_PROXY = (
    "proxy `reach`: the share of what led to the result that the coalition could have done by itself, "
    "times the reward; a statement about this graph, not about runs that were not made"
)


def assign(traces: Sequence[Trace | TraceView], unit: str, method: Method, choices: Choices) -> list[Assignment]:
    """Assign credit in one or several traces.

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
        parts(view, unit, with_people=choices.with_people)
    if unit not in UNITS[method]:
        supporting = [name for name, units in UNITS.items() if unit in units]
        raise CommandUseError(
            f"{method} gives no credit to the unit {quote(unit)}, but to {', '.join(UNITS[method])}",
            f"For {unit}: --method {' or '.join(supporting)}.",
        )
    if method is Method.GROUP:
        return _by_group(views, unit, choices)
    if method in (Method.GAE, Method.MEAN):
        return [_by_steps(view, unit, method, choices) for view in views]
    return [_by_coalitions(view, unit, method, choices) for view in views]


def parts(view: TraceView, unit: str, *, with_people: bool = False) -> dict[str, list[int]]:
    """Return the parts of a trace that can receive credit, each with the indices of its events.

    Parts are in the order of their first events. Turns (the steps of the run), messages and tool calls are named by
    event id. `orchestrator` covers the orchestration decisions of each agent that has sub-agents; `team` covers all
    events. For `token`, the parts are the turns: a trace has no single tokens, so the tokens of a turn share its
    credit. Events of people belong to no part, unless `with_people` is set or the unit is `team`.

    Raises:
        CommandUseError: The unit is unknown, or the trace has no part of it.
    """
    if unit not in CREDIT_UNITS:
        raise CommandUseError(f"there is no credit unit {quote(unit)}{suggestion(unit, CREDIT_UNITS)}")
    indices_by_part = parts_if_any(view, unit, with_people=with_people)
    if not indices_by_part:
        hint = "Try --unit agent, or --unit team."
        raise CommandUseError(f"the trace {quote(view.trace.trace_id)} has no {unit} that credit could go to", hint)
    return indices_by_part


def parts_if_any(view: TraceView, unit: str, *, with_people: bool = False) -> dict[str, list[int]]:
    """Return the same as `parts` for a known unit; empty if the trace has no part of it."""
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
    traces = [view.trace for view in views]
    if len(traces) < 2:
        raise CommandUseError("a group is several runs of one task, and this is one run", _GROUP_HINT)
    runs: dict[str, list[str]] = {}  # by task: the files of its runs, or their ids
    for view in views:
        runs.setdefault(view.trace.task_id, []).append(view.file or quote(view.trace.trace_id))
    if len(runs) > 1:
        listed = [f"{quote(task)} ({first_names_and_more(names, _MAX_LISTED)})" for task, names in runs.items()]
        tasks = f"{len(runs):,} tasks: {first_names_and_more(listed, _MAX_LISTED)}"
        raise CommandUseError(f"a group is several runs of one task, and these are runs of {tasks}", _GROUP_HINT)
    advantages = methods.group_relative({index: stated_reward(trace, choices) for index, trace in enumerate(traces)})
    basis = f"the rewards {quote(choices.channel)} of {len(traces)} runs; every part of a run shares its advantage"
    assignments = []
    for index, view in enumerate(views):
        names = parts(view, unit, with_people=choices.with_people)
        assignments.append(Assignment(view.trace.trace_id, dict.fromkeys(names, Share(advantages[index])), basis))
    return assignments


def _by_steps(view: TraceView, unit: str, method: Method, choices: Choices) -> Assignment:
    trace = view.trace
    if choices.values is None:
        hint = f"Give them: --values FILE with {STEPS}."
        raise CommandUseError(f"{method} needs the estimated value of each step, which no log holds", hint)
    step_indices = set(steps(trace))
    indices = [index for index in view.sequence if index in step_indices]
    if not indices:
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no step that credit could go to")
    ids = [trace.events[index].id for index in indices]
    path = quote(choices.values_path)
    step_values = _read_step_values(choices, ids)
    basis = f"rewards and values of steps from {path}"
    rewards = [step.reward or 0.0 for step in step_values]
    if all(step.reward is None for step in step_values):
        rewards[-1] = stated_reward(trace, choices)
        basis = f"values of steps from {path}; the reward {quote(choices.channel)} at the last step"
    values = [step.value for step in step_values]
    advantages = methods.generalised(rewards, values, gamma=choices.gamma, lam=choices.lam)
    advantage_by_part = dict(zip(ids, advantages, strict=True))
    if method is Method.MEAN:
        groups: dict[str, list[str]] = {}
        roles = roles_of(trace)
        for index in indices:
            event = trace.events[index]
            name = roles.get(event.agent, "") if unit == "role" else event.agent
            if name:
                groups.setdefault(name, []).append(event.id)
        advantage_by_part = methods.means(advantage_by_part, groups)
    shares = {name: Share(advantage) for name, advantage in advantage_by_part.items()}
    return Assignment(trace.trace_id, shares, basis)


def _read_step_values(choices: Choices, ids: Sequence[str]) -> list[StepValue]:
    """Return the value of each step, from the file of values."""
    by_id = read_step_values(choices.values or "", choices.values_path)
    missing = [name for name in ids if name not in by_id]
    if missing:
        expected = set(ids)
        unknown = [quote(name) for name in by_id if name not in expected]
        hint = "Each step needs one: what agents think, decide, merge, say, and the tools they call."
        if unknown:
            listed = first_names_and_more(unknown, _MAX_LISTED)
            hint = f"It has values for parts that are not in the trace: {listed}."
        listed = first_names_and_more(list(map(quote, missing)), _MAX_LISTED)
        path = quote(choices.values_path)
        raise DataFileError(f"{path} has no value for {len(missing):,} of {len(ids):,} steps: {listed}", hint)
    return [by_id[name] for name in ids]


def _by_coalitions(view: TraceView, unit: str, method: Method, choices: Choices) -> Assignment:
    trace, players = view.trace, parts(view, unit, with_people=choices.with_people)
    if choices.values is None:
        return _by_reach(trace, Reach(view, players, stated_reward(trace, choices)), unit, method)
    all_players = {
        name: list(parts_if_any(view, name, with_people=choices.with_people)) for name in (unit, *UNITS[method])
    }
    value = SuppliedValues(choices.values, choices.values_path, all_players)
    names = list(players)
    basis = f"values of coalitions from {quote(choices.values_path)}"
    if method is Method.DIFFERENCE:  # needs only the whole team, and the team without each player
        assignment = Assignment(trace.trace_id, methods.difference_rewards(names, value), basis)
    else:
        shares = methods.shapley(names, value, samples=choices.samples, seed=choices.seed)
        assignment = Assignment(trace.trace_id, shares, basis, nobody=value(frozenset()))
        if len(names) > MOST_EXACT_PLAYERS:
            samples = methods.count_orders(choices.samples)
            largest = max(share.standard_error or 0.0 for share in shares.values())
            precision = (
                f"Estimated from {samples:,} orders drawn with seed {choices.seed}; "
                f"the largest standard error is {largest:.3g}"
            )
            assignment = assignment._replace(samples=samples, precision=precision)
        else:
            assignment = assignment._replace(precision=f"Exact: all {2 ** len(names):,} coalitions were valued")
    whole = value(frozenset(names))
    value.require_complete()
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
    warnings: tuple[str, ...] = ()
    if not game.owned_events:
        warnings = (f"nothing that led to the result belongs to any {unit}, so nobody has credit",)
    if method is Method.DIFFERENCE:
        return Assignment(trace.trace_id, game.difference_rewards(), _PROXY, game.whole, warnings=warnings)
    players = f"{len(game.players):,} {'player' if len(game.players) == 1 else 'players'}"
    precision = f"Exact for {players}: nothing was sampled, so there is no error"
    return Assignment(trace.trace_id, game.shapley(), _PROXY, game.whole, 0.0, precision=precision, warnings=warnings)
