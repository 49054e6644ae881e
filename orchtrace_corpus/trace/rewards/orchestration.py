"""Rewards for orchestration (R7): parallel speed-up, split, merge, cost of the team, and stopping.

Of PARL (Kimi K2.5, arXiv 2602.02276) the report names three terms, `r = l1 * r_parallel + l2 * r_finish + r_perf`, and
counts Critical Steps. It gives no formula of `r_parallel`: `parallel_share` is ours, in its place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from math import inf, log
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.measures.measure import ASKED, cite
from orchtrace_corpus.trace.measures.outcome import late_steps as steps_after_result
from orchtrace_corpus.trace.measures.team import critical_steps as measure_critical_steps
from orchtrace_corpus.trace.measures.work import elapsed
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.rewards.terms import FAILED, Function, Score, Team, paid, refused, share_of
from orchtrace_corpus.trace.view.timing import longest_path

if TYPE_CHECKING:
    pass

_PARL = "PARL (Kimi K2.5, arXiv 2602.02276)"
_BOOK = "work-span model (Brent 1974)"
_PUPPETEER = "Puppeteer (arXiv 2505.19591), its released code"
_NO_SPAWN = "nothing is spawned"

Options = Mapping[str, Any]


def team_speed_up(team: Team, options: Options) -> Score:
    """Return the speed-up of the spawned agents: the sum of their work by their span.

    Against the baseline `stated` instead: how much faster the run was than the single agent that the trace declares.
    """
    if options["baseline"] == "stated":
        return _speed_up_stated(team)
    times, spawned = team.times, team.view.lifecycle.parents
    if not spawned:
        return refused(_NO_SPAWN)
    agents = times.graph.agents
    works = [work if agent in spawned else 0.0 for work, agent in zip(times.works, agents, strict=True)]
    if lacking := [number for number in times.unknown if agents[number] in spawned]:
        said = f"{len(lacking)} of {len(lacking) + sum(map(bool, works))} working events of spawned agents have no end"
        return refused(f"{said}: {cite(team.trace, lacking)}; add `t_end`")
    if not any(works):
        return refused("nothing that a spawned agent does takes time: add `t_end` to its events")
    span = longest_path(times, works, overlapping=True).length
    return paid({index: work / span for index, work in enumerate(works) if work})


def _speed_up_stated(team: Team) -> Score:
    time, declared = team.once(elapsed), team.trace.baseline
    single = declared.wall_clock_s if declared else None
    if not single:
        return refused("no single agent's run is declared: give `baseline.wall_clock_s` with --outcomes")
    if not time.value:
        return refused(time.reason or "the run takes no time")
    if team.times.unit == "step":
        return refused("the trace counts steps, and the baseline is in seconds")
    return Score(single / time.value)


def parallel_share(team: Team, options: Options) -> Score:  # noqa: ARG001  (all functions of rewards take both)
    """The share of spawns whose agent lives while an agent of another spawn of the same parent does."""
    if not team.spawns:
        return Score(0.0)
    events, starts, ends = team.trace.events, team.times.starts, team.times.ends
    lives: dict[str, list[tuple[float, float, int]]] = {}
    for child, spawns_of_child in team.spawned.items():
        own, despawns = team.times.finished.get(child, ()), team.view.lifecycle.despawns.get(child, ())
        for index, again in zip(spawns_of_child, [*spawns_of_child[1:], None], strict=True):
            place = bisect_left(despawns, events[index].t, key=lambda one: events[one].t)
            last = team.returned.get(index, despawns[place] if place < len(despawns) else None)
            end = starts[last] if last is not None else max(ends[own[-1]] if own else 0.0, ends[index])
            end = end if again is None else min(end, starts[again])
            lives.setdefault(events[index].agent, []).append((starts[index], end, index))
    beside: list[int] = []
    for siblings in lives.values():
        siblings.sort()
        latest, before = -inf, -1
        paired = set()
        for start, end, index in siblings:
            if start < latest and before >= 0:
                paired |= {index, before}
            if end > latest:
                latest, before = end, index
        beside += paired
    return share_of(beside, team.spawns)


def completed(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The share of spawned subtasks that come back without failing; nothing where nothing is spawned."""
    if not team.spawns:
        return Score(0.0)
    events = team.trace.events
    back = team.returned.items()
    return share_of([spawn for spawn, index in back if events[index].status not in FAILED], team.spawns)


def returned(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The share of spawned subtasks that come back, failed or not."""
    return share_of(team.returned, team.spawns) if team.spawns else refused(_NO_SPAWN)


def taken_up(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The share of spawned subtasks whose agent does anything."""
    if not team.spawns:
        return refused(_NO_SPAWN)
    events, acting = team.trace.events, team.times.by_agent
    return share_of([spawn for spawn in team.spawns if events[spawn].target in acting], team.spawns)


def used(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The share of returns that led to the run's result along edges."""
    if not team.returns:
        return refused("nothing is returned")
    return share_of([number for number in team.returns if number in team.making], team.returns)


def covered(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The share of the stated subtasks that a spawn or a message assigns; what was forgotten is the rest."""
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
    """The share of tool calls of siblings that no other sibling makes: same tool, same content."""
    events, parents = team.trace.events, team.view.lifecycle.parents
    calls = [call for call in team.calls if events[call].agent in parents]
    if not calls:
        return refused("no spawned agent calls a tool, so nothing tells subtasks apart")
    if lacking := [index for index in calls if not events[index].content_ref]:
        return refused(f"{len(lacking)} of {len(calls)} tool calls have no `content_ref`: {cite(team.trace, lacking)}")
    makers: dict[tuple[str, str, str], set[str]] = {}
    for index in calls:
        event = events[index]
        makers.setdefault((parents[event.agent], event.tool, event.content_ref), set()).add(event.agent)
    alone = [n for n in calls if len(makers[parents[events[n].agent], events[n].tool, events[n].content_ref]) == 1]
    return share_of(alone, calls)


def merge_over_best(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The outcome of a merge less the best outcome of what it merged, on average over the merges."""
    return _merged(team, max)


def merge_gain(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The outcome of a merge less the mean outcome of what it merged, on average over the merges."""
    return _merged(team, lambda outcomes: sum(outcomes) / len(outcomes))


def _merged(team: Team, measure: Any) -> Score:
    if not team.merges:
        return refused("no aggregate merges what two or more agents say")
    shares = {}
    for index, inputs in team.merges.items():
        known = {one: team.outcome_of(one) for one in (index, *inputs)}
        if lacking := [one for one, outcome in known.items() if outcome is None]:
            named = team.trace.events[lacking[0]].id
            said = f"{len(lacking)} of {len(known)} outcomes of a merge and its parts are unknown"
            return refused(f"{said}: {cite(team.trace, lacking)}; give them with --outcomes, as `event.{named}`")
        parts = [known[one] for one in inputs]
        shares[index] = (known[index] - measure(parts)) / len(team.merges)
    return paid(shares)


def _counted(team: Team, indices: Any, options: Options) -> dict[int, float]:
    agents = team.with_roles(options["roles"])
    return {index: 1.0 for index in indices if team.trace.events[index].agent in agents}


def spawns(team: Team, options: Options) -> Score:
    """The number of spawns."""
    return paid(_counted(team, team.spawns, options))


def messages(team: Team, options: Options) -> Score:
    """The number of messages."""
    return paid(_counted(team, team.of_type(EventType.MESSAGE), options))


def steps(team: Team, options: Options) -> Score:
    """The number of steps."""
    return paid(_counted(team, team.steps, options))


def tokens(team: Team, options: Options) -> Score:
    """The tokens of events; refused where a model was asked and no tokens are stated."""
    spent, lacking = team.spent
    counts = _restriction(team, options)
    if counts is not None:
        spent = {number: used for number, used in spent.items() if counts(number)}
        lacking = list(filter(counts, lacking))
    if lacking or not spent:
        where = f": {cite(team.trace, lacking)}" if lacking else ""
        return refused(f"events in which a model is asked have no tokens{where}; add `tokens`")
    return paid(spent)


def usd(team: Team, options: Options) -> Score:
    """The cost that events state, in US dollars; refused where a model was asked and none is stated."""
    counts, members = _restriction(team, options), team.members
    spent: dict[int, float] = {}
    lacking = []
    for index, event in enumerate(team.trace.events):
        if event.copied_context or event.agent not in members or (counts is not None and not counts(index)):
            continue
        if event.cost_usd is not None:
            spent[index] = event.cost_usd
        elif event.type in ASKED:
            lacking.append(index)
    if lacking or not spent:
        where = f": {cite(team.trace, lacking)}" if lacking else ""
        said = f"events in which a model is asked state no `cost_usd`{where}"
        return refused(f"{said}; import the log with --prices or --cost")
    return paid(spent)


def _restriction(team: Team, options: Options) -> Callable[[int], bool] | None:
    """Return a test of events by the role of their agent and their type; None if all events count."""
    roles, types = options["roles"], options["types"]
    if not roles and not types:
        return None
    events, agents = team.trace.events, team.with_roles(roles)
    return lambda index: events[index].agent in agents and (not types or events[index].type in types)


def longest_answer(team: Team, options: Options) -> Score:
    """The most output tokens of one event."""
    agents = team.with_roles(options["roles"])
    sizes = {
        index: float(event.tokens.output)
        for index, event in enumerate(team.trace.events)
        if event.agent in agents and not event.copied_context and event.tokens and event.tokens.output is not None
    }
    if not sizes:
        return refused("no event states its output tokens; add `tokens`")
    longest = max(sizes, key=lambda number: (sizes[number], team.trace.events[number].id))
    return paid({longest: sizes[longest]})


def critical_steps(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Critical Steps: those of the main agent, plus of each stage those of its longest sub-agent."""
    found = team.once(measure_critical_steps)
    return Score(found.value, found.reason)


def choice_cost(team: Team, options: Options) -> Score:
    """Charge each choice of the next agent: more the later it is, times the compute that the agent then spends.

    A choice is a spawn, and spawns of one instant are choices of one step. A choice at step t, from 0 on, costs
    `rate(t) * 2 * size * tokens / per_cost`, where size is that of the model in billions of parameters
    (Puppeteer, `agent/agent_info/workflow.py:46` at b24e6e6: "self.cost = 2 * self.model_parameter * tokens").
    """
    if not team.spawns:
        return Score(0.0)
    spent = tokens(team, _SPENDING)
    if spent.value is None:
        return spent
    chosen = {index: used for index, used in spent.events.items() if team.trace.events[index].agent in team.spawned}
    sizes = _model_sizes(team, chosen, options["model_sizes"])
    if isinstance(sizes, Score):
        return sizes
    cost_by_choice = dict.fromkeys(team.spawns, 0.0)
    for index, used in chosen.items():
        event = team.trace.events[index]
        choices = team.spawned[event.agent]
        place = bisect_right(choices, event.t, key=lambda choice: team.trace.events[choice].t)
        cost_by_choice[choices[max(place - 1, 0)]] += 2 * sizes[index] * used
    steps_of_choices = _choice_steps(team)
    return paid(
        {
            choice: _choice_rate(steps_of_choices[choice], options) * cost / options["per_cost"]
            for choice, cost in cost_by_choice.items()
        }
    )


def last_choice(team: Team, options: Options) -> Score:
    """Pay a right result the rate of the step after the last choice, and charge it to a wrong one.

    Source: Puppeteer, `inference/policy/REINFORCE_continuous.py:469-476` at b24e6e6; no tokens enter.
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
    """Return the step of each choice, from 0 on; choices of one instant share a step."""
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
    """Return the size of the model of each event, in billions of parameters; a refusal where one is unknown."""
    events = team.trace.events
    models = {agent.id: agent.model for agent in team.trace.agents}
    model_of = {index: events[index].model or models.get(events[index].agent, "") for index in indices}
    if unnamed := [index for index, model in model_of.items() if not model]:
        return refused(f"{len(unnamed)} events state no model: {cite(team.trace, unnamed)}; add `model`")
    absent = sorted({model for model in model_of.values() if model not in sizes})
    if absent:
        names = ", ".join(quote(model) for model in absent)
        return refused(
            f"no size is given for the model {names}: add it to `model_sizes` of a copy of the specification"
        )
    return {index: sizes[model] for index, model in model_of.items()}


def late_steps(team: Team, options: Options) -> Score:  # noqa: ARG001
    """The steps after the last return or aggregate, which changed nothing that came out."""
    last, late = steps_after_result(team)
    if last is None:
        return refused("nothing is returned or aggregated, so nothing says when the result stood")
    return paid(dict.fromkeys(late, 1.0))


def regret(team: Team, options: Options) -> Score:  # noqa: ARG001
    """Return the gain of the best earlier result over the last: what stopping then would have gained."""
    if not team.results:
        return refused("nothing is returned or aggregated, so nothing says when the result stood")
    last = team.results[-1]
    final = team.outcome_of(last)
    if final is None:
        return refused("the outcome of the run is unknown: give it with --outcomes, as `reward`")
    earlier = [known for result in team.results[:-1] if (known := team.outcome_of(result)) is not None]
    if not earlier:
        named = team.trace.events[team.results[0]].id
        return refused(f"no earlier result states its outcome: give it with --outcomes, as `event.{named}`")
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
"""The functions of this module."""
