"""Rewards for what is achieved: by the team, by agents, roles and steps, by tool calls, in debates (R1 to R6).

Potential-based shaping: F(s, s') = gamma * Phi(s') - Phi(s) (A. Y. Ng, D. Harada and S. Russell, "Policy invariance
under reward transformations", ICML 1999). Phi is 0 at the end of a run, so discounted shares sum to -Phi(start), the
same for every policy: shaping leaves the order of policies unchanged. Both potentials here are 0 at the start.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum, inf
from typing import Any

from orchtrace_corpus.trace.measures.measure import cite
from orchtrace_corpus.trace.rewards.terms import Function, Score, Team, paid, refused, share_of
from orchtrace_corpus.trace.view.open_calls import CLOSING_TOOLS

_SHAPING = "Ng, Harada and Russell, ICML 1999"
_MOST_NAMED = 5

CHANNELS = {
    "shared": "R1", "team": "R1", "individual": "R2", "agent": "R2", "role": "R3", "process": "R4", "token": "R4",
    "turn": "R4", "tool": "R5", "debate": "R6", "verifier": "R6", "message": "R6", "orchestration": "R7",
    "orchestrator": "R7", "hybrid": "R8",
}  # fmt: skip
"""The reward family of each channel of a trace's rewards."""

Options = Mapping[str, Any]


def outcome(team: Team, options: Options) -> Score:
    """The reward that the trace states in a channel; it belongs to the run as a whole."""
    channel = options["channel"]
    value = team.trace.rewards.get(channel)
    if value is None:
        column = "reward" if channel == "team" else f"reward.{channel}"
        return refused(f"the trace states no reward `{channel}`: give it with --outcomes, as `{column}`")
    return Score(value)


def success(team: Team, options: Options) -> Score:
    """Success from 0 to 1, put between what a wrong and what a right result is paid."""
    value = team.trace.metrics.get("task_success")
    if value is None:
        return refused("`metrics.task_success` is unknown: give it with --outcomes, as `success`")
    return Score(options["wrong"] + (options["right"] - options["wrong"]) * value)


def _unstated(team: Team, agents: Sequence[str]) -> Score | None:
    """The refusal where any of some agents has no reward stated, or there is none of them; None where all have."""
    if not agents:
        return refused("no agent of these roles acts: name roles that the trace gives")
    lacking = [agent for agent in agents if agent not in team.outcomes]
    if not lacking:
        return None
    named = [f"{one} ({team.roles[one]})" if team.roles.get(one, one) != one else one for one in lacking[:_MOST_NAMED]]
    shown = ", ".join(named) + (", …" if len(lacking) > _MOST_NAMED else "")
    said = f"{len(lacking)} of {len(agents)} agents have no reward: {shown}"
    return refused(f"{said}; give it with --outcomes, as `agent.{lacking[0]}`")


def agent_outcomes(team: Team, options: Options) -> Score:
    """The mean of the rewards of agents."""
    chosen = team.with_roles(options["roles"])
    agents = [agent for agent in team.agents if agent in chosen]
    if refusal := _unstated(team, agents):
        return refusal
    shares = {agent: team.outcomes[agent] / len(agents) for agent in agents}
    return Score(sum(shares.values()), agents=shares)


def role_outcomes(team: Team, options: Options) -> Score:
    """The mean over roles of the mean reward of the agents of each."""
    chosen = team.with_roles(options["roles"])
    agents = [agent for agent in team.agents if agent in chosen and agent in team.roles]
    if not agents:
        return refused("the trace gives no role of an agent that acts: declare roles under `agents`")
    if refusal := _unstated(team, agents):
        return refusal
    members: dict[str, list[str]] = {}
    for agent in agents:
        members.setdefault(team.roles[agent], []).append(agent)
    shares = {agent: team.outcomes[agent] / (len(members) * len(same)) for same in members.values() for agent in same}
    return Score(sum(shares.values()), agents=shares)


def step_outcomes(team: Team, options: Options) -> Score:
    """The sum of the rewards that events state."""
    agents = team.with_roles(options["roles"])
    stated = {
        index: event.reward
        for index, event in enumerate(team.trace.events)
        if event.reward is not None and event.agent in agents and not event.copied_context
    }
    if not stated:
        return refused("no event states a reward: give it with --outcomes, as `event.ID`")
    return paid(stated)


def shaping(team: Team, options: Options) -> Score:
    """Potential-based shaping along the steps and results of the run, discounted; it sums to 0, and says who moved it.

    Potential `returned`: the share of spawned agents that have returned. `results`: the outcome of the latest result.
    """
    changes: dict[int, float] = {}
    if options["potential"] == "results":
        changes = {n: known for n in team.results if (known := team.outcome_of(n)) is not None}
        if not changes:
            return refused("no return or aggregate states its outcome: give it with --outcomes, as `event.ID`")
    else:
        if not team.spawns:
            return refused("nothing is spawned, so nothing can return")
        first = set(team.returned.values())
        back = [result for result in team.results if result in first]
        changes = {index: (place + 1) / len(team.spawns) for place, index in enumerate(back)}
    marks = set(team.steps).union(changes)
    order = [index for index in team.times.sequence if index in marks]
    gamma, discount, before = options["gamma"], 1.0, 0.0
    shares = {}
    for index in order:
        after = changes.get(index, before)
        phi = 0.0 if index == order[-1] else after
        if share := discount * (gamma * phi - before):
            shares[index] = share
        discount, before = discount * gamma, phi
    return paid(shares)


def _calls(team: Team, options: Options) -> list[int]:
    """Return the tool calls of the tools and roles that the options name; of all where they name none."""
    tools, roles = options["tools"], options.get("roles", ())
    events, agents = team.trace.events, team.with_roles(roles)
    calls = list(team.calls)
    if tools:
        calls = [call for call in calls if events[call].tool in tools]
    if roles:
        calls = [call for call in calls if events[call].agent in agents]
    return calls


def _ended(team: Team, options: Options, *, well: bool) -> Score:
    indices = _calls(team, options)
    if not indices:
        return refused("no tool is called")
    unknown = [index for index in indices if team.calls[index] is None]
    if unknown:
        lacking = f"{len(unknown)} of {len(indices)} tool calls have no known end"
        return refused(f"{lacking}: {cite(team.trace, unknown)}; state the `status` of their results")
    return share_of([index for index in indices if team.calls[index] is well], indices)


def tool_success(team: Team, options: Options) -> Score:
    """The share of tool calls that succeeded."""
    return _ended(team, options, well=True)


def tool_failures(team: Team, options: Options) -> Score:
    """The share of tool calls that failed or were cancelled."""
    return _ended(team, options, well=False)


def failed_calls(team: Team, options: Options) -> Score:
    """The number of tool calls that failed or were cancelled; 0 where no tool is called."""
    if not _calls(team, options):
        return Score(0.0)
    share = _ended(team, options, well=False)
    return share if share.value is None else paid(dict.fromkeys(share.events, 1.0))


def team_tool_success(team: Team, options: Options) -> Score:
    """Weigh the calls of the lead and of its workers by half each, however many calls each makes.

    The lead's half is the mean share of succeeded calls of the agents that nobody spawned. The workers' half is the
    mean of that share over the agents that were spawned, and 0 where there is none. An agent without calls has 1.
    """
    ended = _ended(team, options, well=True)
    calls = _calls(team, options)
    if calls and ended.value is None:
        return ended
    own_calls: dict[str, list[int]] = {agent: [] for agent in team.agents}
    for call in calls:
        own_calls[team.trace.events[call].agent].append(call)
    parents = team.view.lifecycle.parents
    leads = [agent for agent in team.agents if agent not in parents]
    workers = [agent for agent in team.agents if agent in parents]
    shares: dict[str, float] = {}
    for group in (leads, workers):
        for agent in group:
            own = own_calls[agent]
            succeeded = sum(call in ended.events for call in own) / len(own) if own else 1.0
            shares[agent] = 0.5 * succeeded / len(group)
    return Score(fsum(shares.values()), agents=shares)


def tool_calls(team: Team, options: Options) -> Score:
    """The number of tool calls."""
    return paid(dict.fromkeys(_calls(team, options), 1.0))


def tool_repeats(team: Team, options: Options) -> Score:
    """The share of tool calls that repeat an earlier one: same tool, same content. Returning a result is not a call."""
    events = team.trace.events
    indices = [index for index in _calls(team, options) if events[index].tool not in CLOSING_TOOLS]
    if not indices:
        return refused("no tool is called")
    if lacking := [index for index in indices if not events[index].content_ref]:
        return refused(
            f"{len(lacking)} of {len(indices)} tool calls have no `content_ref`: {cite(team.trace, lacking)}"
        )
    known, again = set(), []
    for index in sorted(indices, key=lambda index: (events[index].t, events[index].seq or 0, events[index].id)):
        call = events[index].tool, events[index].content_ref
        if call in known:
            again.append(index)
        known.add(call)
    return share_of(again, indices)


def tool_use(team: Team, options: Options) -> Score:
    """1 where any tool is called, else 0; the calls share it."""
    numbers = _calls(team, options)
    return Score(1.0, "", dict.fromkeys(numbers, 1 / len(numbers))) if numbers else Score(0.0)


def verdicts(team: Team, options: Options) -> Score:
    """The mean reward of judging events: those with a reward, of agents that judge."""
    judges = team.with_roles(options["roles"])
    if not judges:
        return refused(f"no agent has the role {' or '.join(options['roles'])}: name the roles that judge")
    events = team.trace.events
    indices = [n for n, event in enumerate(events) if event.reward is not None and event.agent in judges]
    if not indices:
        return refused("no event of a judge states a reward: give it with --outcomes, as `event.ID`")
    return paid({index: (events[index].reward or 0.0) / len(indices) for index in indices})


def agreement(team: Team, options: Options) -> Score:  # noqa: ARG001  (all functions of rewards take both)
    """The share of pairs of merged events with the same content, over the last merge."""
    if not team.merges:
        return refused("no aggregate merges what two or more agents say")
    inputs = team.merges[max(team.merges, key=team.results.index)]
    contents = {index: team.trace.events[index].content_ref for index in inputs}
    if lacking := [index for index in inputs if not contents[index]]:
        return refused(
            f"{len(lacking)} of {len(inputs)} merged events have no `content_ref`: {cite(team.trace, lacking)}"
        )
    same = Counter(contents.values())
    pairs = len(inputs) * (len(inputs) - 1) / 2
    return paid({index: (same[content] - 1) / 2 / pairs for index, content in contents.items()})


def wins(team: Team, options: Options) -> Score:
    """For each agent the pairs won less the pairs lost, by the pairs that it is in: a zero-sum game."""
    chosen = team.with_roles(options["roles"])
    agents = [agent for agent in team.agents if agent in chosen]
    if len(agents) < 2:
        return refused("fewer than two agents of these roles act, and a game has two sides")
    if refusal := _unstated(team, agents):
        return refusal
    ranked = sorted(team.outcomes[agent] for agent in agents)
    shares = {}
    for agent in agents:
        own = team.outcomes[agent]
        shares[agent] = (bisect_left(ranked, own) - (len(ranked) - bisect_right(ranked, own))) / (len(agents) - 1)
    return Score(0.0, agents=shares)


_ANY = (-inf, inf)
FUNCTIONS = (
    Function("outcome", "", "reward", _ANY, "rewards.CHANNEL", "the trace", {"channel": "team"}, outcome),
    Function(
        "success", "R1", "1", _ANY, "wrong + (right - wrong) * metrics.task_success", "the trace",
        {"right": 1.0, "wrong": 0.0}, success,
    ),
    Function("agent_outcomes", "R2", "reward", _ANY, "mean of agents[].reward", "ours", {"roles": ()}, agent_outcomes),
    Function(
        "role_outcomes", "R3", "reward", _ANY, "mean over roles of the mean of agents[].reward", "ours",
        {"roles": ()}, role_outcomes,
    ),
    Function("step_outcomes", "R4", "reward", _ANY, "sum of events[].reward", "ours", {"roles": ()}, step_outcomes),
    Function(
        "shaping", "R4", "1", _ANY, "sum of gamma^t (gamma Phi(t+1) - Phi(t)), Phi 0 at the end", _SHAPING,
        {"potential": "returned", "gamma": 1.0}, shaping,
    ),
    Function("tool_success", "R5", "1", (0, 1), "calls that succeeded / calls", "ours", {"tools": ()}, tool_success),
    Function(
        "tool_failures", "R5", "1", (0, 1), "calls that failed or were cancelled / calls", "ours", {"tools": ()},
        tool_failures,
    ),
    Function(
        "team_tool_success", "R5", "1", (0, 1),
        "1/2 mean over leads of succeeded / calls + 1/2 the same over workers; 1 for an agent without calls",
        "MATPO, its released code", {"tools": ()}, team_tool_success,
    ),
    Function(
        "failed_calls", "R5", "event", (0, inf), "calls that failed or were cancelled", "ours",
        {"tools": (), "roles": ()}, failed_calls,
    ),
    Function(
        "tool_repeats", "R5", "1", (0, 1), "calls that repeat tool and content / calls", "ours", {"tools": ()},
        tool_repeats,
    ),
    Function("tool_calls", "R5", "event", (0, inf), "number of tool calls", "ours", {"tools": ()}, tool_calls),
    Function("tool_use", "R5", "1", (0, 1), "1 if any tool is called", "ours", {"tools": ()}, tool_use),
    Function(
        "verdicts", "R6", "reward", _ANY, "mean of events[].reward over judging events", "ours",
        {"roles": ("judge", "verifier", "critic")}, verdicts,
    ),
    Function("agreement", "R6", "1", (0, 1), "merged pairs of one content / merged pairs", "ours", {}, agreement),
    Function(
        "wins", "R6", "1", (0, 0), "by agent (pairs won - pairs lost) / (agents - 1); 0 in sum", "ours",
        {"roles": ()}, wins,
    ),
)  # fmt: skip
"""The functions of this module."""
