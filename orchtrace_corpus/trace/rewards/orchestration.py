"""Rewards for orchestration (R7): parallel work, splitting and merging of tasks, cost of the team, and stopping.

`FUNCTIONS` at the end has the names by which specifications call these functions, with formulas and options.

The report on PARL (Kimi K2.5, arXiv 2602.02276) names three terms, `r = l1 * r_parallel + l2 * r_finish + r_perf`, and
counts Critical Steps. It gives no formula of `r_parallel`; `parallel_share` is our substitute.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from math import inf, log

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES, cite
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.rewards.terms import FAILED, Function, Score, Team, fraction_of, no_score, sum_of

# Sources of formulas.
_PARL = "PARL (Kimi K2.5, arXiv 2602.02276)"
_WORK_SPAN = "work-span model (Brent 1974)"
_PUPPETEER = "Puppeteer (arXiv 2505.19591), its released code"

_NO_SPAWN = "nothing is spawned"

Options = Mapping[str, Any]
"""The values of all options of a function, by name."""


def team_speed_up(team: Team, options: Options) -> Score:
    """Return the speed-up of the spawned agents: the sum of their work divided by their span.

    With the baseline `stated`, it is the time of the single agent's run that the trace declares, divided by the elapsed
    time of this run.
    """
    if options["baseline"] == "stated":
        return _speed_up_over_baseline(team)
    times, spawned_agents = team.times, team.view.lifecycle.parents
    if not spawned_agents:
        return no_score(_NO_SPAWN)
    agents = times.graph.agents
    works = []  # the working time of each event, 0 for events of other agents
    for work, agent in zip(times.works, agents, strict=True):
        works.append(work if agent in spawned_agents else 0.0)
    if without_end := [index for index in times.unknown if agents[index] in spawned_agents]:
        count = len(without_end) + sum(map(bool, works))
        reason = f"{len(without_end)} of {count} working events of spawned agents have no end"
        return no_score(f"{reason}: {cite(team.trace, without_end)}; add `t_end`")
    if not any(works):
        return no_score("nothing that a spawned agent does takes time: add `t_end` to its events")
    from orchtrace_corpus.trace.view.timing import longest_path

    span = longest_path(times, works, overlapping=True).length
    return sum_of({index: work / span for index, work in enumerate(works) if work})


def _speed_up_over_baseline(team: Team) -> Score:
    """Return the time of the declared single agent's run divided by the elapsed time of the run."""
    from orchtrace_corpus.trace.measures.work import elapsed

    baseline = team.trace.baseline
    if not baseline or not baseline.wall_clock_s:
        return no_score("no single agent's run is declared: give `baseline.wall_clock_s` with --outcomes")
    elapsed_time = team.measure(elapsed)
    if not elapsed_time.value:
        return no_score(elapsed_time.reason or "the run takes no time")
    if team.times.unit == "step":
        return no_score("the trace counts steps, and the baseline is in seconds")
    return Score(baseline.wall_clock_s / elapsed_time.value)


def parallel_share(team: Team, options: Options) -> Score:  # noqa: ARG001  (all reward functions take both)
    """Return the share of spawns whose agent lives at the same time as a sibling, which the same parent spawned."""
    if not team.spawns:
        return Score(0.0)
    overlapping: list[int] = []
    for lives in _lives_by_parent(team).values():
        lives.sort()  # by start: a life overlaps an earlier one if it starts before the latest end so far
        latest: _Life | None = None  # the life that ends last, among those so far
        spawns_with_overlap = set()
        for life in lives:
            if latest is not None and life.start < latest.end:
                spawns_with_overlap |= {life.spawn, latest.spawn}
            if latest is None or life.end > latest.end:
                latest = life
        overlapping += spawns_with_overlap
    return fraction_of(overlapping, team.spawns)


class _Life(NamedTuple):
    """The life of a spawned agent: its start and end, and the index of its spawn."""

    start: float
    end: float
    spawn: int


def _lives_by_parent(team: Team) -> dict[str, list[_Life]]:
    """Return, for each parent, the lives of the agents that it spawns.

    A life ends with the return, or else with the despawn, or else with the agent's last event. It ends earlier if the
    agent is spawned again.
    """
    events, starts, ends = team.trace.events, team.times.starts, team.times.ends
    lives: dict[str, list[_Life]] = {}
    for child, spawns_of_child in team.spawns_by_agent.items():
        events_of_child = team.times.indices_by_end.get(child, ())
        despawns = team.view.lifecycle.despawns.get(child, ())
        last_end = ends[events_of_child[-1]] if events_of_child else 0.0
        for spawn, next_spawn in zip(spawns_of_child, [*spawns_of_child[1:], None], strict=True):
            next_despawn = bisect_left(despawns, events[spawn].t, key=lambda despawn: events[despawn].t)
            if spawn in team.return_by_spawn:
                end = starts[team.return_by_spawn[spawn]]
            elif next_despawn < len(despawns):
                end = starts[despawns[next_despawn]]
            else:
                end = max(last_end, ends[spawn])
            if next_spawn is not None:
                end = min(end, starts[next_spawn])
            lives.setdefault(events[spawn].agent, []).append(_Life(starts[spawn], end, spawn))
    return lives


def completed_share(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of spawned subtasks that return without failing; 0 without spawns."""
    if not team.spawns:
        return Score(0.0)
    events = team.trace.events
    successful = [spawn for spawn, result in team.return_by_spawn.items() if events[result].status not in FAILED]
    return fraction_of(successful, team.spawns)


def returned_share(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of spawned subtasks that return, failed or not."""
    if not team.spawns:
        return no_score(_NO_SPAWN)
    return fraction_of(team.return_by_spawn, team.spawns)


def taken_up_share(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of spawns whose agent has events."""
    if not team.spawns:
        return no_score(_NO_SPAWN)
    events, acting_agents = team.trace.events, team.times.indices_by_agent
    return fraction_of([spawn for spawn in team.spawns if events[spawn].target in acting_agents], team.spawns)


def used_share(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of returns from which edges lead to the run's result."""
    if not team.returns:
        return no_score("nothing is returned")
    return fraction_of([index for index in team.returns if index in team.upstream_of_result], team.returns)


def covered_share(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of the stated subtasks that a spawn or a message assigns."""
    subtasks = set(team.trace.subtasks)
    if not subtasks:
        return no_score("the trace states no `subtasks`, so nothing says what the task consists of")
    assigning_events: dict[str, int] = {}  # the first spawn with each subtask, or else the first message
    for kind in (EventType.SPAWN, EventType.MESSAGE):
        for index in team.events_of_type(kind):
            subtask = team.trace.events[index].subtask
            if subtask in subtasks:
                assigning_events.setdefault(subtask, index)
    shares = dict.fromkeys(assigning_events.values(), 1 / len(subtasks))
    return Score(len(assigning_events) / len(subtasks), events=shares)


def disjoint_share(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of tool calls of siblings that no other sibling repeats with the same tool and content."""
    events, parents = team.trace.events, team.view.lifecycle.parents
    calls = [call for call in team.success_by_call if events[call].agent in parents]
    if not calls:
        return no_score("no spawned agent calls a tool, so nothing tells subtasks apart")
    if missing := [index for index in calls if not events[index].content_ref]:
        return no_score(f"{len(missing)} of {len(calls)} tool calls have no `content_ref`: {cite(team.trace, missing)}")
    keys = {}  # equal calls of siblings have the same key
    callers: dict[tuple[str, str, str], set[str]] = {}
    for index in calls:
        event = events[index]
        keys[index] = parents[event.agent], event.tool, event.content_ref
        callers.setdefault(keys[index], set()).add(event.agent)
    return fraction_of([index for index in calls if len(callers[keys[index]]) == 1], calls)


def merge_over_best(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the outcome of a merge less the best outcome of its inputs, averaged over the merges."""
    return _merge_difference(team, max)


def merge_gain(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the outcome of a merge less the mean outcome of its inputs, averaged over the merges."""
    return _merge_difference(team, lambda outcomes: sum(outcomes) / len(outcomes))


def _merge_difference(team: Team, combine: Callable[[list[float]], float]) -> Score:
    """Return the mean over merges of their outcome less the combined outcome of their inputs."""
    if not team.merge_inputs:
        return no_score("no aggregate merges what two or more agents say")
    shares = {}
    for merge, inputs in team.merge_inputs.items():
        outcomes: dict[int, float] = {}
        unknown: list[int] = []
        for event in (merge, *inputs):
            outcome = team.outcome_of(event)
            if outcome is None:
                unknown.append(event)
            else:
                outcomes[event] = outcome
        if unknown:
            example = team.trace.events[unknown[0]].id
            reason = f"{len(unknown)} of {len(unknown) + len(outcomes)} outcomes of a merge and its parts are unknown"
            return no_score(f"{reason}: {cite(team.trace, unknown)}; give them with --outcomes, as `event.{example}`")
        combined = combine([outcomes[event] for event in inputs])
        shares[merge] = (outcomes[merge] - combined) / len(team.merge_inputs)
    return sum_of(shares)


def _count(team: Team, indices: Iterable[int], options: Options) -> Score:
    """Return the number of events whose agents have a role in the options; of all these events without roles."""
    agents = team.agents_with_roles(options["roles"])
    return sum_of({index: 1.0 for index in indices if team.trace.events[index].agent in agents})


def spawns(team: Team, options: Options) -> Score:
    """Return the number of spawns."""
    return _count(team, team.spawns, options)


def messages(team: Team, options: Options) -> Score:
    """Return the number of messages."""
    return _count(team, team.events_of_type(EventType.MESSAGE), options)


def steps(team: Team, options: Options) -> Score:
    """Return the number of steps."""
    return _count(team, team.steps, options)


def tokens(team: Team, options: Options) -> Score:
    """Return the tokens of events; refused if a model answer has no tokens."""
    counts, missing = team.token_counts
    is_selected = _selection(team, options)
    if is_selected is not None:
        counts = {index: count for index, count in counts.items() if is_selected(index)}
        missing = list(filter(is_selected, missing))
    if missing or not counts:
        where = f": {cite(team.trace, missing)}" if missing else ""
        return no_score(f"events in which a model is asked have no tokens{where}; add `tokens`")
    return sum_of(counts)


def usd(team: Team, options: Options) -> Score:
    """Return the cost that events state, in US dollars; refused if a model answer has no cost."""
    is_selected = _selection(team, options)
    agents = team.agent_set
    costs: dict[int, float] = {}
    missing = []
    for index, event in enumerate(team.trace.events):
        if event.copied_context or event.agent not in agents:
            continue
        if is_selected is not None and not is_selected(index):
            continue
        if event.cost_usd is not None:
            costs[index] = event.cost_usd
        elif event.type in ANSWER_TYPES:
            missing.append(index)
    if missing or not costs:
        where = f": {cite(team.trace, missing)}" if missing else ""
        reason = f"events in which a model is asked state no `cost_usd`{where}"
        return no_score(f"{reason}; import the log with --prices or --cost")
    return sum_of(costs)


def _selection(team: Team, options: Options) -> Callable[[int], bool] | None:
    """Return a predicate that selects events by the roles and types in the options; None if all events count."""
    roles, types = options["roles"], options["types"]
    if not roles and not types:
        return None
    events, agents = team.trace.events, team.agents_with_roles(roles)

    def is_selected(index: int) -> bool:
        event = events[index]
        return event.agent in agents and (not types or event.type in types)

    return is_selected


def longest_answer(team: Team, options: Options) -> Score:
    """Return the largest number of output tokens of a single event."""
    agents = team.agents_with_roles(options["roles"])
    output_tokens: dict[int, float] = {}
    for index, event in enumerate(team.trace.events):
        if event.agent not in agents or event.copied_context:
            continue
        if event.tokens and event.tokens.output is not None:
            output_tokens[index] = float(event.tokens.output)
    if not output_tokens:
        return no_score("no event states its output tokens; add `tokens`")
    longest = max(output_tokens, key=lambda index: (output_tokens[index], team.trace.events[index].id))
    return sum_of({longest: output_tokens[longest]})


def critical_steps(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the Critical Steps: the steps of the main agent plus, in each stage, those of the longest sub-agent."""
    from orchtrace_corpus.trace.measures.team import critical_steps as measure_critical_steps

    measure = team.measure(measure_critical_steps)
    return Score(measure.value, measure.reason)


def choice_cost(team: Team, options: Options) -> Score:
    """Return the cost of all choices of a next agent: the compute of the chosen agent, times a rate.

    A choice is a spawn; spawns at the same time are choices of one step. A choice at step t, counted from 0, costs
    `rate(t) * 2 * size * tokens / per_cost`. The rate rises with the step, and size is the size of the agent's model in
    billions of parameters
    (Puppeteer, `agent/agent_info/workflow.py:46` at b24e6e6: "self.cost = 2 * self.model_parameter * tokens").
    """
    if not team.spawns:
        return Score(0.0)
    events = team.trace.events
    all_tokens = tokens(team, _TOKEN_OPTIONS)
    if all_tokens.value is None:
        return all_tokens
    counts = {index: count for index, count in all_tokens.events.items() if events[index].agent in team.spawns_by_agent}
    sizes = _model_sizes(team, counts, options["model_sizes"])
    if isinstance(sizes, Score):
        return sizes
    compute_by_choice = dict.fromkeys(team.spawns, 0.0)
    for index, count in counts.items():
        choices = team.spawns_by_agent[events[index].agent]
        choices_so_far = bisect_right(choices, events[index].t, key=lambda choice: events[choice].t)
        latest_choice = choices[max(choices_so_far - 1, 0)]  # the first choice, for an event before all of them
        compute_by_choice[latest_choice] += 2 * sizes[index] * count
    step_by_choice = _choice_steps(team)
    shares = {}
    for choice, compute in compute_by_choice.items():
        shares[choice] = _choice_rate(step_by_choice[choice], options) * compute / options["per_cost"]
    return sum_of(shares)


def last_choice(team: Team, options: Options) -> Score:
    """Return the rate of the step after the last choice if the result is right, and its negative if it is wrong.

    Tokens do not matter. Source: Puppeteer, `inference/policy/REINFORCE_continuous.py:469-476` at b24e6e6.
    """
    if not team.spawns:
        return Score(0.0)
    success = team.trace.metrics.get("task_success")
    if success is None:
        return no_score("`metrics.task_success` is unknown: give it with --outcomes, as `success`")
    step_count = len(set(_choice_steps(team).values()))
    rate = _choice_rate(step_count, options)  # of the step after the last, since steps are counted from 0
    result = options["wrong"] + (options["right"] - options["wrong"]) * success
    return Score(rate if result > 0 else -rate)


def _choice_steps(team: Team) -> dict[int, int]:
    """Return the step of each choice, counted from 0; choices at the same time share a step."""
    events = team.trace.events
    moments = sorted({events[choice].t for choice in team.spawns})
    return {choice: bisect_left(moments, events[choice].t) for choice in team.spawns}


def _choice_rate(step: int, options: Options) -> float:
    """Return the logarithmic rate of a step (Puppeteer, `REINFORCE_continuous.py:123-135` at b24e6e6)."""
    growth = options["growth"]
    progress = (step + 1) / (options["limit"] + 1)
    rate: float = options["scale"] * log(1 + growth * progress) / log(1 + growth)
    return rate


def _model_sizes(team: Team, indices: Iterable[int], size_by_model: Mapping[str, float]) -> dict[int, float] | Score:
    """Return the size of the model of each event, in billions of parameters; a refusal if a size is unknown."""
    events = team.trace.events
    model_by_agent = {agent.id: agent.model for agent in team.trace.agents}
    model_by_event = {index: events[index].model or model_by_agent.get(events[index].agent, "") for index in indices}
    if unnamed := [index for index, model in model_by_event.items() if not model]:
        return no_score(f"{len(unnamed)} events state no model: {cite(team.trace, unnamed)}; add `model`")
    without_size = sorted({model for model in model_by_event.values() if model not in size_by_model})
    if without_size:
        names = ", ".join(quote(model) for model in without_size)
        return no_score(
            f"no size is given for the model {names}: add it to `model_sizes` of a copy of the specification"
        )
    return {index: size_by_model[model] for index, model in model_by_event.items()}


def late_steps(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the number of steps after the last return or aggregate, which did not change the result."""
    from orchtrace_corpus.trace.measures.outcome import late_steps as steps_after_result

    last_result, late = steps_after_result(team)
    if last_result is None:
        return no_score("nothing is returned or aggregated, so nothing says when the result stood")
    return sum_of(dict.fromkeys(late, 1.0))


def regret(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the gain of stopping at the best result: its outcome less that of the last result, at least 0."""
    if not team.results:
        return no_score("nothing is returned or aggregated, so nothing says when the result stood")
    last = team.results[-1]
    last_outcome = team.outcome_of(last)
    if last_outcome is None:
        return no_score("the outcome of the run is unknown: give it with --outcomes, as `reward`")
    earlier_outcomes = [team.outcome_of(result) for result in team.results[:-1]]
    known = [outcome for outcome in earlier_outcomes if outcome is not None]
    if not known:
        example = team.trace.events[team.results[0]].id
        return no_score(f"no earlier result states its outcome: give it with --outcomes, as `event.{example}`")
    return sum_of({last: max(0.0, max(known) - last_outcome)})


_ANY, _SHARE, _COUNT = (-inf, inf), (0.0, 1.0), (0.0, inf)  # the bounds of values
_ROLE_OPTION = {"roles": ()}
_TOKEN_OPTIONS = {"roles": (), "types": ()}
_RATE_OPTIONS = {"scale": 0.1, "growth": 1.0, "limit": 5.0}
# Each has a name, family, unit, bounds, formula, source, options and function, in this order.
FUNCTIONS = (
    Function(
        "team_speed_up", "R7", "1", (0, inf), "work of spawned agents / its longest path", _WORK_SPAN,
        {"baseline": "serial"}, team_speed_up,
    ),
    Function(
        "parallel_share", "R7", "1", _SHARE, "spawns that live beside a sibling / spawns; 0 without spawns",
        f"ours, for {_PARL}", {}, parallel_share,
    ),
    Function(
        "completed", "R7", "1", _SHARE, "spawns that return without failing / spawns; 0 without spawns", _PARL, {},
        completed_share,
    ),
    Function("critical_steps", "R7", "step", _COUNT, "sum over stages of (S_main + max_i S_sub,i)", _PARL, {},
             critical_steps),
    Function("taken_up", "R7", "1", _SHARE, "spawns whose agent acts / spawns", "ours", {}, taken_up_share),
    Function("returned", "R7", "1", _SHARE, "spawns that return / spawns", "ours", {}, returned_share),
    Function("used", "R7", "1", _SHARE, "returns that led to the result / returns", "ours", {}, used_share),
    Function("covered", "R7", "1", _SHARE, "stated subtasks that are assigned / stated subtasks", "ours", {},
             covered_share),
    Function("disjoint", "R7", "1", _SHARE, "siblings' calls that no other makes / siblings' calls", "ours", {},
             disjoint_share),
    Function("merge_over_best", "R7", "reward", _ANY, "mean of (merge - best of its parts)", "ours", {},
             merge_over_best),
    Function("merge_gain", "R7", "reward", _ANY, "mean of (merge - mean of its parts)", "ours", {}, merge_gain),
    Function("spawns", "R7", "event", _COUNT, "number of spawns", "ours", _ROLE_OPTION, spawns),
    Function("messages", "R7", "event", _COUNT, "number of messages", "ours", _ROLE_OPTION, messages),
    Function("steps", "R7", "step", _COUNT, "number of steps", "ours", _ROLE_OPTION, steps),
    Function("tokens", "R7", "token", _COUNT, "tokens of events", "ours", _TOKEN_OPTIONS, tokens),
    Function("usd", "R7", "usd", _COUNT, "sum of cost_usd", "ours", _TOKEN_OPTIONS, usd),
    Function("longest_answer", "R7", "token", _COUNT, "most output tokens of an event", "ours", _ROLE_OPTION,
             longest_answer),
    Function(
        "choice_cost", "R7", "1", _COUNT,
        "sum over spawns, at step t, of rate(t) 2 model_sizes[model] tokens / per_cost; "
        "rate(t) = scale log(1 + growth (t+1)/(limit+1)) / log(1 + growth)",
        _PUPPETEER, {**_RATE_OPTIONS, "per_cost": 100_000.0, "model_sizes": {}}, choice_cost,
    ),
    Function(
        "last_choice", "R7", "1", _ANY,
        "rate(n) after n steps of choices if the result is right, else -rate(n); 0 without",
        _PUPPETEER, {**_RATE_OPTIONS, "right": 1.0, "wrong": -1.0}, last_choice,
    ),
    Function("late_steps", "R7", "step", _COUNT, "steps after the last return or aggregate", "ours", {}, late_steps),
    Function("regret", "R7", "reward", _COUNT, "max(0, best earlier outcome - last outcome)", "ours", {}, regret),
)  # fmt: skip
"""The reward functions for orchestration."""
