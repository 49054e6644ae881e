"""One door to all methods of credit assignment: which unit takes which method, on what basis, with which sum."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.credit import methods
from orchtrace_corpus.trace.credit.methods import MOST_EXACT_PLAYERS, Share
from orchtrace_corpus.trace.credit.reach import Reach
from orchtrace_corpus.trace.credit.values import STEPS, StepValue, Supplied, step_values
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
        channel: The reward channel that is divided.
        values: The text of a file of values: of coalitions (difference, shapley) or of steps (gae, mean).
        values_path: Its path, to show.
        gamma: The discount of generalised advantage estimation.
        lam: Its lambda.
        samples: Permutations sampled for Shapley values of many players from supplied values.
        seed: The seed of the sampling.
        with_people: Whether people are players as well, and not only agents.
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
        basis: What the figures rest on, in a sentence: factual rewards, supplied values, or a proxy.
        whole: The value of the whole team, where coalitions are compared; else None.
        nobody: The value of the coalition of nobody, where the difference is divided; else None.
        samples: How many orders were drawn; None where the figures are exact.
        precision: How exact the figures are, in a sentence; empty where nothing is estimated by the method.
        warnings: What is odd about the values, each in a sentence.
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
        """The sum of the credits of a complete division; None for a method that divides nothing."""
        return None if self.whole is None or self.nobody is None else self.whole - self.nobody

    @property
    def sum(self) -> float:
        """The sum of all credits."""
        return sum(share.credit for share in self.credits.values())

    @property
    def is_efficient(self) -> bool:
        """Return True if the credits add up to the total, as those of a division do."""
        return self.total is not None and abs(self.sum - self.total) <= 1e-9 * max(1.0, abs(self.total))


UNITS = {
    Method.GROUP: ("token", "turn", "message", "tool", "agent", "role", "orchestrator", "team"),
    Method.GAE: ("token", "turn"),
    Method.MEAN: ("agent", "role"),
    Method.DIFFERENCE: ("turn", "message", "tool", "agent", "role", "orchestrator"),
    Method.SHAPLEY: ("turn", "message", "tool", "agent", "role", "orchestrator"),
}
"""The credit units that each method gives credit to."""

_SEVERAL = "Name the files of several runs of the same task."

_MOST_NAMED = 5
_DECISIONS = frozenset({EventType.SPAWN, EventType.DECISION, EventType.AGGREGATE, EventType.STOP, EventType.DESPAWN})

_PROXY = (
    "proxy `reach`: the share of what led to the result that the coalition could have done by itself, "
    "times the reward; a statement about this graph, not about runs that were not made"
)


def assign(traces: Sequence[Trace | TraceView], unit: str, method: Method, choices: Choices) -> list[Assignment]:
    """Assign credit in one or several traces.

    Raises:
        CommandUseError: The method does not go with the unit, needs values or further runs, the traces
            have no such part or reward, or gamma or lambda is not from 0 to 1.
        DataFileError: The file of values is not of the form that the method needs.
        CycleError: The edges of a trace go round in a circle.
    """
    for name, share in (("gamma", choices.gamma), ("lambda", choices.lam)):
        if not 0 <= share <= 1:  # which NaN is not, either
            raise CommandUseError(f"{name} is {share:g}, and a number from 0 to 1 is wanted")
    views = [TraceView.of(trace) for trace in traces]
    for view in views:
        parts(view, unit, with_people=choices.with_people)
    if unit not in UNITS[method]:
        fitting = [name for name, units in UNITS.items() if unit in units]
        raise CommandUseError(
            f"{method} gives no credit to the unit {quote(unit)}, but to {', '.join(UNITS[method])}",
            f"For {unit}: --method {' or '.join(fitting)}.",
        )
    if method is Method.GROUP:
        return _by_group(views, unit, choices)
    if method in (Method.GAE, Method.MEAN):
        return [_by_steps(view, unit, method, choices) for view in views]
    return [_by_coalitions(view, unit, method, choices) for view in views]


def parts(view: TraceView, unit: str, *, with_people: bool = False) -> dict[str, list[int]]:
    """The parts of a trace, each with the numbers of its events, in the order in which they first act.

    A turn is a step and is named by its event, as are a message and a tool call. The unit `orchestrator` is
    the orchestration decisions of each agent that spawns, delegates or merges; `team` is all events together.
    Of the unit `token` the parts are the turns: a trace has no single tokens, so those of a turn share its credit.
    What people do belongs to nobody, unless they are to be players, too; of a team it is a part in any case.

    Raises:
        CommandUseError: There is no such unit, or the trace has no part of it.
    """
    if unit not in CREDIT_UNITS:
        raise CommandUseError(f"there is no credit unit {quote(unit)}{suggestion(unit, CREDIT_UNITS)}")
    found = parts_if_any(view, unit, with_people=with_people)
    if not found:
        hint = "Try --unit agent, or --unit team."
        raise CommandUseError(f"the trace {quote(view.trace.trace_id)} has no {unit} that credit could go to", hint)
    return found


def parts_if_any(view: TraceView, unit: str, *, with_people: bool = False) -> dict[str, list[int]]:
    """The same for a known unit, empty where the trace has no part of it."""
    trace, events = view.trace, view.trace.events
    if unit == "team":
        return {"team": list(range(len(events)))}
    if unit in ("token", "turn"):
        return {events[step].id: [step] for step in steps(trace)}
    unpaid = frozenset() if with_people else people(trace)
    numbers = [index for index, event in enumerate(events) if event.agent not in unpaid]
    if unit in ("message", "tool"):
        kind = EventType.MESSAGE if unit == "message" else EventType.TOOL_CALL
        return {events[number].id: [number] for number in numbers if events[number].type is kind}
    found: dict[str, list[int]] = {}
    roles = roles_of(trace)
    above = set(view.lifecycle.parents.values())
    for number in numbers:
        event = events[number]
        if unit == "agent":
            found.setdefault(event.agent, []).append(number)
        elif unit == "role" and event.agent in roles:
            found.setdefault(roles[event.agent], []).append(number)
        elif unit == "orchestrator" and event.agent in above and event.type in _DECISIONS:
            found.setdefault(event.agent, []).append(number)
    return found


def stated_reward(trace: Trace, choices: Choices) -> float:
    """The reward that a trace states in the channel of the choices.

    Raises:
        CommandUseError: It states none there.
    """
    reward = trace.rewards.get(choices.channel)
    if reward is not None:
        return reward
    if not trace.rewards:
        hint = 'Give one with --outcomes FILE, or state it in the trace, such as "rewards": {"team": 1}.'
        if "task_success" in trace.metrics:
            hint = "Success is known, but is no reward: give it as `reward` in the file for --outcomes (true is 1)."
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no reward that could be divided", hint)
    asked = f"{quote(choices.channel)}{suggestion(choices.channel, list(trace.rewards))}"
    hint = "Say which is to be divided: --channel NAME."
    raise CommandUseError(f"the trace {quote(trace.trace_id)} has no reward {asked}", hint)


def _by_group(views: Sequence[TraceView], unit: str, choices: Choices) -> list[Assignment]:
    traces = [view.trace for view in views]
    if len(traces) < 2:
        raise CommandUseError("a group is several runs of one task, and this is one run", _SEVERAL)
    if len({trace.task_id for trace in traces}) > 1:
        tasks = _tasks(views)
        raise CommandUseError(f"a group is several runs of one task, and these are runs of {tasks}", _SEVERAL)
    advantage = methods.group_relative({number: stated_reward(trace, choices) for number, trace in enumerate(traces)})
    basis = f"the rewards {quote(choices.channel)} of {len(traces)} runs; every part of a run shares its advantage"

    def shares(view: TraceView, advantage: float) -> dict[str, Share]:
        return dict.fromkeys(parts(view, unit, with_people=choices.with_people), Share(advantage))

    return [Assignment(view.trace.trace_id, shares(view, advantage[index]), basis) for index, view in enumerate(views)]


def _tasks(views: Sequence[TraceView]) -> str:
    """The tasks of some traces, each with its runs: their files, or their own names."""
    runs: dict[str, list[str]] = {}
    for view in views:
        runs.setdefault(view.trace.task_id, []).append(view.file or quote(view.trace.trace_id))
    shown = [f"{quote(task)} ({first_names_and_more(names, _MOST_NAMED)})" for task, names in runs.items()]
    return f"{len(runs):,} tasks: {first_names_and_more(shown, _MOST_NAMED)}"


def _by_steps(view: TraceView, unit: str, method: Method, choices: Choices) -> Assignment:
    trace = view.trace
    if choices.values is None:
        hint = f"Give them: --values FILE with {STEPS}."
        raise CommandUseError(f"{method} needs the estimated value of each step, which no log holds", hint)
    asked = set(steps(trace))
    indices = [index for index in view.sequence if index in asked]
    if not indices:
        raise CommandUseError(f"the trace {quote(trace.trace_id)} has no step that credit could go to")
    known, path = _known_steps(choices, [trace.events[index].id for index in indices]), quote(choices.values_path)
    basis = f"rewards and values of steps from {path}"
    rewards = [one.reward or 0.0 for one in known]
    if all(one.reward is None for one in known):
        rewards[-1] = stated_reward(trace, choices)
        basis = f"values of steps from {path}; the reward {quote(choices.channel)} at the last step"
    values = [one.value for one in known]
    advantage = methods.generalised(rewards, values, gamma=choices.gamma, lam=choices.lam)
    found = {trace.events[index].id: one for index, one in zip(indices, advantage, strict=True)}
    if method is Method.MEAN:
        groups: dict[str, list[str]] = {}
        roles = roles_of(trace)
        for index in indices:
            event = trace.events[index]
            name = roles.get(event.agent, "") if unit == "role" else event.agent
            if name:
                groups.setdefault(name, []).append(event.id)
        found = methods.means(found, groups)
    return Assignment(trace.trace_id, {name: Share(one) for name, one in found.items()}, basis)


def _known_steps(choices: Choices, ids: Sequence[str]) -> list[StepValue]:
    known = step_values(choices.values or "", choices.values_path)
    missing = [name for name in ids if name not in known]
    if missing:
        asked = set(ids)
        strangers = first_names_and_more([quote(name) for name in known if name not in asked], _MOST_NAMED)
        shown = first_names_and_more(list(map(quote, missing)), _MOST_NAMED)
        raise DataFileError(
            f"{quote(choices.values_path)} has no value for {len(missing):,} of {len(ids):,} steps: {shown}",
            f"It has values for parts that are not in the trace: {strangers}."
            if strangers
            else "Each step needs one: what agents think, decide, merge, say, and the tools they call.",
        )
    return [known[name] for name in ids]


def _by_coalitions(view: TraceView, unit: str, method: Method, choices: Choices) -> Assignment:
    trace, players = view.trace, parts(view, unit, with_people=choices.with_people)
    if choices.values is None:
        return _by_reach(trace, Reach(view, players, stated_reward(trace, choices)), unit, method)
    units = {one: list(parts_if_any(view, one, with_people=choices.with_people)) for one in (unit, *UNITS[method])}
    value = Supplied(choices.values, choices.values_path, units)
    names, basis = list(players), f"values of coalitions from {quote(choices.values_path)}"
    if method is Method.DIFFERENCE:  # asks for no other coalitions than all, and all but one
        found = Assignment(trace.trace_id, methods.difference_rewards(names, value), basis)
    else:
        credit = methods.shapley(names, value, samples=choices.samples, seed=choices.seed)
        found = Assignment(trace.trace_id, credit, basis, nobody=value(frozenset()))
        if len(names) > MOST_EXACT_PLAYERS:
            drawn = methods.count_orders(choices.samples)
            largest = max(one.standard_error or 0.0 for one in credit.values())
            said = f"{drawn:,} orders drawn with seed {choices.seed}; the largest standard error is {largest:.3g}"
            found = found._replace(samples=drawn, precision=f"Estimated from {said}")
        else:
            found = found._replace(precision=f"Exact: all {2 ** len(names):,} coalitions were valued")
    whole = value(frozenset(names))
    value.see_complete()
    return found._replace(whole=whole, warnings=_unlike_reward(trace, whole, choices))


def _by_reach(trace: Trace, game: Reach, unit: str, method: Method) -> Assignment:
    unowned = f"nothing that led to the result belongs to any {unit}, so nobody has credit"
    warnings = () if game.owned else (unowned,)
    if method is Method.DIFFERENCE:
        return Assignment(trace.trace_id, game.difference_rewards(), _PROXY, game.whole, warnings=warnings)
    players = f"{len(game.players):,} {'player' if len(game.players) == 1 else 'players'}"
    precision = f"Exact for {players}: nothing was sampled, so there is no error"
    return Assignment(trace.trace_id, game.shapley(), _PROXY, game.whole, 0.0, precision=precision, warnings=warnings)


def _unlike_reward(trace: Trace, whole: float, choices: Choices) -> tuple[str, ...]:
    """Return a warning if the value of the whole team differs from the reward that the trace states."""
    reward = trace.rewards.get(choices.channel)
    if reward is None or abs(whole - reward) <= 1e-9 * max(1.0, abs(reward)):
        return ()
    path, stated = quote(choices.values_path), f"its reward {quote(choices.channel)} in this run is {reward:.6g}"
    return (f"{path} gives the whole team {whole:.6g}, but {stated}; the credits rest on {whole:.6g}",)
