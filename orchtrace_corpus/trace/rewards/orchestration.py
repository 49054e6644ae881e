"""Rewards for orchestration (R7): parallel speed-up, split, merge, cost of the team, and stopping.

The report on PARL (Kimi K2.5, arXiv 2602.02276) names three terms, `r = l1 * r_parallel + l2 * r_finish + r_perf`, and
counts Critical Steps. It gives no formula of `r_parallel`; `parallel_share` is our substitute.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from math import inf, log

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES, cite
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.rewards.terms import FAILED, Function, Score, Team, paid, refused, share_of

_PARL = "PARL (Kimi K2.5, arXiv 2602.02276)"
_BOOK = "work-span model (Brent 1974)"
_PUPPETEER = "Puppeteer (arXiv 2505.19591), its released code"
_NO_SPAWN = "nothing is spawned"

Options = Mapping[str, Any]


def team_speed_up(team: Team, options: Options) -> Score:
    """Return the speed-up of the spawned agents: the sum of their work divided by their span.

    With the baseline `stated`, the speed-up is that of the run over the single agent that the trace declares.
    """
    if options["baseline"] == "stated":
        return _speed_up_stated(team)
    times, spawned = team.times, team.view.lifecycle.parents
    if not spawned:
        return refused(_NO_SPAWN)
    agents = times.graph.agents
    works = [work if agent in spawned else 0.0 for work, agent in zip(times.works, agents, strict=True)]
    if without_end := [index for index in times.unknown if agents[index] in spawned]:
        count = len(without_end) + sum(map(bool, works))
        reason = f"{len(without_end)} of {count} working events of spawned agents have no end"
        return refused(f"{reason}: {cite(team.trace, without_end)}; add `t_end`")
    if not any(works):
        return refused("nothing that a spawned agent does takes time: add `t_end` to its events")
    from orchtrace_corpus.trace.view.timing import longest_path

    span = longest_path(times, works, overlapping=True).length
    return paid({index: work / span for index, work in enumerate(works) if work})


def _speed_up_stated(team: Team) -> Score:
    from orchtrace_corpus.trace.measures.work import elapsed

    time, baseline = team.measure(elapsed), team.trace.baseline
    single = baseline.wall_clock_s if baseline else None
    if not single:
        return refused("no single agent's run is declared: give `baseline.wall_clock_s` with --outcomes")
    if not time.value:
        return refused(time.reason or "the run takes no time")
    if team.times.unit == "step":
        return refused("the trace counts steps, and the baseline is in seconds")
    return Score(single / time.value)


def parallel_share(team: Team, options: Options) -> Score:  # noqa: ARG001  (all functions of rewards take both)
    """Return the share of spawns whose agent lives at the same time as one of another spawn of the same parent."""
    if not team.spawns:
        return Score(0.0)
    events, starts, ends = team.trace.events, team.times.starts, team.times.ends
    lives: dict[str, list[tuple[float, float, int]]] = {}
    for child, spawns_of_child in team.spawned.items():
        finished, despawns = team.times.indices_by_end.get(child, ()), team.view.lifecycle.despawns.get(child, ())
        for spawn, next_spawn in zip(spawns_of_child, [*spawns_of_child[1:], None], strict=True):
            place = bisect_left(despawns, events[spawn].t, key=lambda despawn: events[despawn].t)
            last = team.returned.get(spawn, despawns[place] if place < len(despawns) else None)
            end = max(ends[finished[-1]] if finished else 0.0, ends[spawn])
            if last is not None:
                end = starts[last]
            if next_spawn is not None:
                end = min(end, starts[next_spawn])
            lives.setdefault(events[spawn].agent, []).append((starts[spawn], end, spawn))
    overlapping: list[int] = []
    for siblings in lives.values():
        siblings.sort()
        latest_end, longest_living = -inf, -1
        paired = set()
        for start, end, spawn in siblings:
            if start < latest_end and longest_living >= 0:
                paired |= {spawn, longest_living}
            if end > latest_end:
                latest_end, longest_living = end, spawn
        overlapping += paired
    return share_of(overlapping, team.spawns)


def completed(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of spawned subtasks that return without failing; 0 without spawns."""
    if not team.spawns:
        return Score(0.0)
    events = team.trace.events
    successful = [spawn for spawn, result in team.returned.items() if events[result].status not in FAILED]
    return share_of(successful, team.spawns)


def returned(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of spawned subtasks that return, failed or not."""
    return share_of(team.returned, team.spawns) if team.spawns else refused(_NO_SPAWN)


def taken_up(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of spawned subtasks whose agent acts."""
    if not team.spawns:
        return refused(_NO_SPAWN)
    events, acting = team.trace.events, team.times.indices_by_agent
    return share_of([spawn for spawn in team.spawns if events[spawn].target in acting], team.spawns)


def used(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of returns from which edges lead to the run's result."""
    if not team.returns:
        return refused("nothing is returned")
    return share_of([index for index in team.returns if index in team.making], team.returns)


def covered(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of the stated subtasks that a spawn or a message assigns."""
    stated = dict.fromkeys(team.trace.subtasks)
    if not stated:
        return refused("the trace states no `subtasks`, so nothing says what the task consists of")
    assigned: dict[str, int] = {}
    for kind in (EventType.SPAWN, EventType.MESSAGE):
        for index in team.of_type(kind):
            subtask = team.trace.events[index].subtask
            if subtask in stated:
                assigned.setdefault(subtask, index)
    shares: dict[int, float] = {}
    for index in assigned.values():
        shares[index] = 1 / len(stated)
    return Score(len(assigned) / len(stated), "", shares)


def disjoint(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the share of siblings' tool calls that no other sibling makes: same tool, same content."""
    events, parents = team.trace.events, team.view.lifecycle.parents
    calls = [call for call in team.calls if events[call].agent in parents]
    if not calls:
        return refused("no spawned agent calls a tool, so nothing tells subtasks apart")
    if missing := [index for index in calls if not events[index].content_ref]:
        return refused(f"{len(missing)} of {len(calls)} tool calls have no `content_ref`: {cite(team.trace, missing)}")
    keys = {}
    callers: dict[tuple[str, str, str], set[str]] = {}
    for index in calls:
        event = events[index]
        keys[index] = parents[event.agent], event.tool, event.content_ref
        callers.setdefault(keys[index], set()).add(event.agent)
    return share_of([index for index in calls if len(callers[keys[index]]) == 1], calls)


def merge_over_best(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the outcome of a merge less the best outcome of its parts, averaged over the merges."""
    return _merge_difference(team, max)


def merge_gain(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the outcome of a merge less the mean outcome of its parts, averaged over the merges."""
    return _merge_difference(team, lambda outcomes: sum(outcomes) / len(outcomes))


def _merge_difference(team: Team, combine: Callable[[list[float]], float]) -> Score:
    """Return the mean over merges of their outcome less the combined outcome of their parts."""
    if not team.merges:
        return refused("no aggregate merges what two or more agents say")
    shares = {}
    for index, inputs in team.merges.items():
        known: dict[int, float] = {}
        unknown: list[int] = []
        for event in (index, *inputs):
            outcome = team.outcome_of(event)
            if outcome is None:
                unknown.append(event)
            else:
                known[event] = outcome
        if unknown:
            example = team.trace.events[unknown[0]].id
            reason = f"{len(unknown)} of {len(unknown) + len(known)} outcomes of a merge and its parts are unknown"
            return refused(f"{reason}: {cite(team.trace, unknown)}; give them with --outcomes, as `event.{example}`")
        shares[index] = (known[index] - combine([known[event] for event in inputs])) / len(team.merges)
    return paid(shares)


def _count(team: Team, indices: Iterable[int], options: Options) -> Score:
    """Return the number of the events whose agents have one of the roles in the options."""
    agents = team.with_roles(options["roles"])
    return paid({index: 1.0 for index in indices if team.trace.events[index].agent in agents})


def spawns(team: Team, options: Options) -> Score:
    """Return the number of spawns."""
    return _count(team, team.spawns, options)


def messages(team: Team, options: Options) -> Score:
    """Return the number of messages."""
    return _count(team, team.of_type(EventType.MESSAGE), options)


def steps(team: Team, options: Options) -> Score:
    """Return the number of steps."""
    return _count(team, team.steps, options)


def tokens(team: Team, options: Options) -> Score:
    """Return the tokens of events; refused if a model answer has no tokens."""
    spent, missing = team.spent
    is_selected = _selection(team, options)
    if is_selected is not None:
        spent = {index: count for index, count in spent.items() if is_selected(index)}
        missing = list(filter(is_selected, missing))
    if missing or not spent:
        where = f": {cite(team.trace, missing)}" if missing else ""
        return refused(f"events in which a model is asked have no tokens{where}; add `tokens`")
    return paid(spent)


def usd(team: Team, options: Options) -> Score:
    """Return the cost that events state, in US dollars; refused if a model answer has no cost."""
    is_selected, members = _selection(team, options), team.members
    spent: dict[int, float] = {}
    missing = []
    for index, event in enumerate(team.trace.events):
        if event.copied_context or event.agent not in members:
            continue
        if is_selected is not None and not is_selected(index):
            continue
        if event.cost_usd is not None:
            spent[index] = event.cost_usd
        elif event.type in ANSWER_TYPES:
            missing.append(index)
    if missing or not spent:
        where = f": {cite(team.trace, missing)}" if missing else ""
        reason = f"events in which a model is asked state no `cost_usd`{where}"
        return refused(f"{reason}; import the log with --prices or --cost")
    return paid(spent)


def _selection(team: Team, options: Options) -> Callable[[int], bool] | None:
    """Return a predicate that selects events by the roles and types in the options; None if all events count."""
    roles, types = options["roles"], options["types"]
    if not roles and not types:
        return None
    events, agents = team.trace.events, team.with_roles(roles)
    return lambda index: events[index].agent in agents and (not types or events[index].type in types)


def longest_answer(team: Team, options: Options) -> Score:
    """Return the largest number of output tokens of one event."""
    agents = team.with_roles(options["roles"])
    sizes = {
        index: float(event.tokens.output)
        for index, event in enumerate(team.trace.events)
        if event.agent in agents and not event.copied_context and event.tokens and event.tokens.output is not None
    }
    if not sizes:
        return refused("no event states its output tokens; add `tokens`")
    longest = max(sizes, key=lambda index: (sizes[index], team.trace.events[index].id))
    return paid({longest: sizes[longest]})


def critical_steps(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the Critical Steps: the steps of the main agent plus, for each stage, those of its longest sub-agent."""
    from orchtrace_corpus.trace.measures.team import critical_steps as measure_critical_steps

    measure = team.measure(measure_critical_steps)
    return Score(measure.value, measure.reason)


def choice_cost(team: Team, options: Options) -> Score:
    """Return the cost of all choices of a next agent: the compute of that agent, at a rate that rises with each step.

    A choice is a spawn; spawns at the same time are choices of one step. A choice at step t, counted from 0, costs
    `rate(t) * 2 * size * tokens / per_cost`, where size is the size of the model in billions of parameters
    (Puppeteer, `agent/agent_info/workflow.py:46` at b24e6e6: "self.cost = 2 * self.model_parameter * tokens").
    """
    if not team.spawns:
        return Score(0.0)
    spent = tokens(team, _SPENDING)
    if spent.value is None:
        return spent
    used = {index: count for index, count in spent.events.items() if team.trace.events[index].agent in team.spawned}
    sizes = _model_sizes(team, used, options["model_sizes"])
    if isinstance(sizes, Score):
        return sizes
    cost_by_choice = dict.fromkeys(team.spawns, 0.0)
    for index, count in used.items():
        event = team.trace.events[index]
        choices = team.spawned[event.agent]
        place = bisect_right(choices, event.t, key=lambda choice: team.trace.events[choice].t)
        cost_by_choice[choices[max(place - 1, 0)]] += 2 * sizes[index] * count
    steps_of_choices = _choice_steps(team)
    return paid(
        {
            choice: _choice_rate(steps_of_choices[choice], options) * cost / options["per_cost"]
            for choice, cost in cost_by_choice.items()
        }
    )


def last_choice(team: Team, options: Options) -> Score:
    """Return the rate of the step after the last choice if the result is right, and its negative if it is wrong.

    Source: Puppeteer, `inference/policy/REINFORCE_continuous.py:469-476` at b24e6e6; tokens do not matter.
    """
    if not team.spawns:
        return Score(0.0)
    success = team.trace.metrics.get("task_success")
    if success is None:
        return refused("`metrics.task_success` is unknown: give it with --outcomes, as `success`")
    rate = _choice_rate(len(set(_choice_steps(team).values())), options)
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
    x = (step + 1) / (options["limit"] + 1)
    rate: float = options["scale"] * log(1 + growth * x) / log(1 + growth)
    return rate


def _model_sizes(team: Team, indices: Iterable[int], sizes: Mapping[str, float]) -> dict[int, float] | Score:
    """Return the size of the model of each event, in billions of parameters; a refusal if one is unknown."""
    events = team.trace.events
    models = {agent.id: agent.model for agent in team.trace.agents}
    model_of = {index: events[index].model or models.get(events[index].agent, "") for index in indices}
    if unnamed := [index for index, model in model_of.items() if not model]:
        return refused(f"{len(unnamed)} events state no model: {cite(team.trace, unnamed)}; add `model`")
    without_size = sorted({model for model in model_of.values() if model not in sizes})
    if without_size:
        names = ", ".join(quote(model) for model in without_size)
        return refused(
            f"no size is given for the model {names}: add it to `model_sizes` of a copy of the specification"
        )
    return {index: sizes[model] for index, model in model_of.items()}


def late_steps(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the number of steps after the last return or aggregate, which did not change the result."""
    from orchtrace_corpus.trace.measures.outcome import late_steps as steps_after_result

    last, late = steps_after_result(team)
    if last is None:
        return refused("nothing is returned or aggregated, so nothing says when the result stood")
    return paid(dict.fromkeys(late, 1.0))


def regret(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return by how much the best earlier result is better than the last: the gain of stopping there."""
    if not team.results:
        return refused("nothing is returned or aggregated, so nothing says when the result stood")
    last = team.results[-1]
    final = team.outcome_of(last)
    if final is None:
        return refused("the outcome of the run is unknown: give it with --outcomes, as `reward`")
    earlier = [outcome for result in team.results[:-1] if (outcome := team.outcome_of(result)) is not None]
    if not earlier:
        example = team.trace.events[team.results[0]].id
        return refused(f"no earlier result states its outcome: give it with --outcomes, as `event.{example}`")
    return paid({last: max(0.0, max(earlier) - final)})


_ANY, _SHARE, _COUNT, _ROLES = (-inf, inf), (0.0, 1.0), (0.0, inf), {"roles": ()}
_SPENDING = {"roles": (), "types": ()}
_RATE = {"scale": 0.1, "growth": 1.0, "limit": 5.0}
FUNCTIONS = (
    Function(
        "team_speed_up", "R7", "1", (0, inf), "work of spawned agents / its longest path", _BOOK,
        {"baseline": "serial"}, team_speed_up,
    ),
    Function(
        "parallel_share", "R7", "1", _SHARE, "spawns that live beside a sibling / spawns; 0 without spawns",
        f"ours, for {_PARL}", {}, parallel_share,
    ),
    Function(
        "completed", "R7", "1", _SHARE, "spawns that return without failing / spawns; 0 without spawns", _PARL, {},
        completed,
    ),
    Function("critical_steps", "R7", "step", _COUNT, "sum over stages of (S_main + max_i S_sub,i)", _PARL, {},
             critical_steps),
    Function("taken_up", "R7", "1", _SHARE, "spawns whose agent acts / spawns", "ours", {}, taken_up),
    Function("returned", "R7", "1", _SHARE, "spawns that return / spawns", "ours", {}, returned),
    Function("used", "R7", "1", _SHARE, "returns that led to the result / returns", "ours", {}, used),
    Function("covered", "R7", "1", _SHARE, "stated subtasks that are assigned / stated subtasks", "ours", {}, covered),
    Function("disjoint", "R7", "1", _SHARE, "siblings' calls that no other makes / siblings' calls", "ours", {},
             disjoint),
    Function("merge_over_best", "R7", "reward", _ANY, "mean of (merge - best of its parts)", "ours", {},
             merge_over_best),
    Function("merge_gain", "R7", "reward", _ANY, "mean of (merge - mean of its parts)", "ours", {}, merge_gain),
    Function("spawns", "R7", "event", _COUNT, "number of spawns", "ours", _ROLES, spawns),
    Function("messages", "R7", "event", _COUNT, "number of messages", "ours", _ROLES, messages),
    Function("steps", "R7", "step", _COUNT, "number of steps", "ours", _ROLES, steps),
    Function("tokens", "R7", "token", _COUNT, "tokens of events", "ours", _SPENDING, tokens),
    Function("usd", "R7", "usd", _COUNT, "sum of cost_usd", "ours", _SPENDING, usd),
    Function("longest_answer", "R7", "token", _COUNT, "most output tokens of an event", "ours", _ROLES,
             longest_answer),
    Function(
        "choice_cost", "R7", "1", _COUNT,
        "sum over spawns, at step t, of rate(t) 2 model_sizes[model] tokens / per_cost; "
        "rate(t) = scale log(1 + growth (t+1)/(limit+1)) / log(1 + growth)",
        _PUPPETEER, {**_RATE, "per_cost": 100_000.0, "model_sizes": {}}, choice_cost,
    ),
    Function(
        "last_choice", "R7", "1", _ANY,
        "rate(n) after n steps of choices if the result is right, else -rate(n); 0 without",
        _PUPPETEER, {**_RATE, "right": 1.0, "wrong": -1.0}, last_choice,
    ),
    Function("late_steps", "R7", "step", _COUNT, "steps after the last return or aggregate", "ours", {}, late_steps),
    Function("regret", "R7", "reward", _COUNT, "max(0, best earlier outcome - last outcome)", "ours", {}, regret),
)  # fmt: skip
"""The reward functions for orchestration."""
