"""Rewards for results (R1 to R6): of the team, of agents, roles and steps, of tool calls, and of debates.

`FUNCTIONS` at the end has the names by which specifications call these functions, with formulas and options.

Potential-based shaping: F(s, s') = gamma * Phi(s') - Phi(s) (A. Y. Ng, D. Harada and S. Russell, "Policy invariance
under reward transformations", ICML 1999). Phi is 0 at the end of a run, so the discounted shares of a run sum to
-Phi(start), whatever the policy: shaping does not change the order of policies. Both potentials here are 0 at the
start.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum, inf

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.trace.measures.measure import cite
from orchtrace_corpus.trace.model.events import CLOSING_TOOLS
from orchtrace_corpus.trace.rewards.terms import Function, Score, Team, fraction_of, no_score, sum_of

_SHAPING_SOURCE = "Ng, Harada and Russell, ICML 1999"
_MAX_NAMED_AGENTS = 5

CHANNELS = {
    "shared": "R1", "team": "R1", "individual": "R2", "agent": "R2", "role": "R3", "process": "R4", "token": "R4",
    "turn": "R4", "tool": "R5", "debate": "R6", "verifier": "R6", "message": "R6", "orchestration": "R7",
    "orchestrator": "R7", "hybrid": "R8",
}  # fmt: skip
"""The reward family of each channel in the rewards of a trace."""

Options = Mapping[str, Any]
"""The values of all options of a function, by name."""


def outcome(team: Team, options: Options) -> Score:
    """Return the reward that the trace states in a channel; it belongs to the run as a whole."""
    channel = options["channel"]
    value = team.trace.rewards.get(channel)
    if value is None:
        column = "reward" if channel == "team" else f"reward.{channel}"
        return no_score(f"the trace states no reward `{channel}`: give it with --outcomes, as `{column}`")
    return Score(value)


def success(team: Team, options: Options) -> Score:
    """Return the success, from 0 to 1, scaled between the rewards of a wrong and a right result."""
    value = team.trace.metrics.get("task_success")
    if value is None:
        return no_score("`metrics.task_success` is unknown: give it with --outcomes, as `success`")
    return Score(options["wrong"] + (options["right"] - options["wrong"]) * value)


def _refusal_without_rewards(team: Team, agents: Sequence[str]) -> Score | None:
    """Return a refusal if there are no agents or an agent has no stated reward; else None."""
    if not agents:
        return no_score("no agent of these roles acts: name roles that the trace gives")
    missing = [agent for agent in agents if agent not in team.reward_by_agent]
    if not missing:
        return None
    names = []
    for agent in missing[:_MAX_NAMED_AGENTS]:
        role = team.roles.get(agent, agent)
        names.append(agent if role == agent else f"{agent} ({role})")
    if len(missing) > _MAX_NAMED_AGENTS:
        names.append("…")
    reason = f"{len(missing)} of {len(agents)} agents have no reward: {', '.join(names)}"
    return no_score(f"{reason}; give it with --outcomes, as `agent.{missing[0]}`")


def agent_outcomes(team: Team, options: Options) -> Score:
    """Return the mean of the stated rewards of agents."""
    agents = _agents_in_order(team, options)
    if refusal := _refusal_without_rewards(team, agents):
        return refusal
    shares = {agent: team.reward_by_agent[agent] / len(agents) for agent in agents}
    return Score(sum(shares.values()), agents=shares)


def _agents_in_order(team: Team, options: Options) -> list[str]:
    """Return the agents with the roles in the options, in the order of their first event."""
    selected = team.agents_with_roles(options["roles"])
    return [agent for agent in team.agents if agent in selected]


def role_outcomes(team: Team, options: Options) -> Score:
    """Return the mean over roles of the mean reward of their agents."""
    agents = [agent for agent in _agents_in_order(team, options) if agent in team.roles]
    if not agents:
        return no_score("the trace gives no role of an agent that acts: declare roles under `agents`")
    if refusal := _refusal_without_rewards(team, agents):
        return refusal
    agents_by_role: dict[str, list[str]] = {}
    for agent in agents:
        agents_by_role.setdefault(team.roles[agent], []).append(agent)
    shares = {}
    for agents_of_role in agents_by_role.values():
        for agent in agents_of_role:
            shares[agent] = team.reward_by_agent[agent] / (len(agents_by_role) * len(agents_of_role))
    return Score(sum(shares.values()), agents=shares)


def step_outcomes(team: Team, options: Options) -> Score:
    """Return the sum of the rewards that events state."""
    agents = team.agents_with_roles(options["roles"])
    rewards = {
        index: event.reward
        for index, event in enumerate(team.trace.events)
        if event.reward is not None and event.agent in agents and not event.copied_context
    }
    if not rewards:
        return no_score("no event states a reward: give it with --outcomes, as `event.ID`")
    return sum_of(rewards)


def shaping(team: Team, options: Options) -> Score:
    """Return discounted potential-based shaping along the steps and results of the run; its shares sum to 0.

    With the option `potential=returned`, the potential is the share of spawned agents that have returned; with
    `results`, it is the outcome of the latest result.
    """
    potentials: dict[int, float] = {}  # the potential after each event that changes it
    if options["potential"] == "results":
        for result in team.results:
            outcome = team.outcome_of(result)
            if outcome is not None:
                potentials[result] = outcome
        if not potentials:
            return no_score("no return or aggregate states its outcome: give it with --outcomes, as `event.ID`")
    else:
        if not team.spawns:
            return no_score("nothing is spawned, so nothing can return")
        first_returns = set(team.return_by_spawn.values())
        returns = [result for result in team.results if result in first_returns]
        potentials = {index: count / len(team.spawns) for count, index in enumerate(returns, start=1)}
    transitions = set(team.steps).union(potentials)
    order = [index for index in team.times.sequence if index in transitions]
    gamma = options["gamma"]
    discount = 1.0
    phi = 0.0
    shares = {}
    for index in order:
        next_phi = 0.0 if index == order[-1] else potentials.get(index, phi)
        if share := discount * (gamma * next_phi - phi):
            shares[index] = share
        discount *= gamma
        phi = next_phi
    return sum_of(shares)


def _calls(team: Team, options: Options) -> list[int]:
    """Return the tool calls of the tools and roles in the options; an empty option selects all tools or roles."""
    tools, roles = options["tools"], options.get("roles", ())  # not every function has the option `roles`
    events = team.trace.events
    calls = list(team.success_by_call)
    if tools:
        calls = [call for call in calls if events[call].tool in tools]
    if roles:
        agents = team.agents_with_roles(roles)
        calls = [call for call in calls if events[call].agent in agents]
    return calls


def _share_of_calls(team: Team, options: Options, *, succeeded: bool) -> Score:
    """Return the share of tool calls that succeeded; with `succeeded=False`, the share of calls that did not."""
    calls = _calls(team, options)
    if not calls:
        return no_score("no tool is called")
    unknown = [call for call in calls if team.success_by_call[call] is None]
    if unknown:
        reason = f"{len(unknown)} of {len(calls)} tool calls have no known end"
        return no_score(f"{reason}: {cite(team.trace, unknown)}; state the `status` of their results")
    return fraction_of([call for call in calls if team.success_by_call[call] is succeeded], calls)


def tool_success(team: Team, options: Options) -> Score:
    """Return the share of tool calls that succeeded."""
    return _share_of_calls(team, options, succeeded=True)


def tool_failures(team: Team, options: Options) -> Score:
    """Return the share of tool calls that failed or were cancelled."""
    return _share_of_calls(team, options, succeeded=False)


def failed_calls(team: Team, options: Options) -> Score:
    """Return the number of tool calls that failed or were cancelled; 0 if no tool is called."""
    if not _calls(team, options):
        return Score(0.0)
    share = _share_of_calls(team, options, succeeded=False)
    if share.value is None:
        return share
    return sum_of(dict.fromkeys(share.events, 1.0))


def team_tool_success(team: Team, options: Options) -> Score:
    """Return half the success of the leads' tool calls plus half the success of the workers' tool calls.

    Leads are agents that were not spawned; workers are agents that were spawned. The success of either group is the
    mean, over its agents, of the share of an agent's calls that succeeded. The share of an agent without calls is 1,
    and the success of an empty group is 0.
    """
    successful = _share_of_calls(team, options, succeeded=True)
    calls = _calls(team, options)
    if calls and successful.value is None:
        return successful
    calls_by_agent: dict[str, list[int]] = {agent: [] for agent in team.agents}
    for call in calls:
        calls_by_agent[team.trace.events[call].agent].append(call)
    parents = team.view.lifecycle.parents
    leads = [agent for agent in team.agents if agent not in parents]
    workers = [agent for agent in team.agents if agent in parents]
    shares: dict[str, float] = {}
    for group in (leads, workers):
        for agent in group:
            calls_of_agent = calls_by_agent[agent]
            share = 1.0
            if calls_of_agent:
                share = len([call for call in calls_of_agent if call in successful.events]) / len(calls_of_agent)
            shares[agent] = 0.5 * share / len(group)
    return Score(fsum(shares.values()), agents=shares)


def tool_calls(team: Team, options: Options) -> Score:
    """Return the number of tool calls."""
    return sum_of(dict.fromkeys(_calls(team, options), 1.0))


def tool_repeats(team: Team, options: Options) -> Score:
    """Return the share of tool calls that repeat an earlier call, with the same tool and the same content.

    Calls with which an agent hands over its result are left out.
    """
    events = team.trace.events
    calls = [call for call in _calls(team, options) if events[call].tool not in CLOSING_TOOLS]
    if not calls:
        return no_score("no tool is called")
    if missing := [call for call in calls if not events[call].content_ref]:
        return no_score(f"{len(missing)} of {len(calls)} tool calls have no `content_ref`: {cite(team.trace, missing)}")
    calls_by_time = sorted(calls, key=lambda call: (events[call].t, events[call].seq or 0, events[call].id))
    seen = set()
    repeated = []
    for call in calls_by_time:
        tool_and_content = events[call].tool, events[call].content_ref
        if tool_and_content in seen:
            repeated.append(call)
        seen.add(tool_and_content)
    return fraction_of(repeated, calls)


def tool_use(team: Team, options: Options) -> Score:
    """Return 1 if any tool is called, else 0; the calls have equal shares in it."""
    calls = _calls(team, options)
    if not calls:
        return Score(0.0)
    return Score(1.0, events=dict.fromkeys(calls, 1 / len(calls)))


def verdicts(team: Team, options: Options) -> Score:
    """Return the mean reward of the verdicts, which are the events of judging agents that state a reward."""
    judges = team.agents_with_roles(options["roles"])
    if not judges:
        return no_score(f"no agent has the role {' or '.join(options['roles'])}: name the roles that judge")
    rewards = {}
    for index, event in enumerate(team.trace.events):
        if event.reward is not None and event.agent in judges:
            rewards[index] = event.reward
    if not rewards:
        return no_score("no event of a judge states a reward: give it with --outcomes, as `event.ID`")
    return sum_of({index: reward / len(rewards) for index, reward in rewards.items()})


def agreement(team: Team, options: Options) -> Score:  # noqa: ARG001  (all reward functions take both)
    """Return the share of pairs of events with the same content, among the inputs of the last merge."""
    if not team.merge_inputs:
        return no_score("no aggregate merges what two or more agents say")
    last_merge = max(team.merge_inputs, key=team.results.index)
    inputs = team.merge_inputs[last_merge]
    contents = {index: team.trace.events[index].content_ref for index in inputs}
    if missing := [index for index in inputs if not contents[index]]:
        return no_score(
            f"{len(missing)} of {len(inputs)} merged events have no `content_ref`: {cite(team.trace, missing)}"
        )
    counts = Counter(contents.values())
    pairs = len(inputs) * (len(inputs) - 1) / 2
    shares = {}
    for index, content in contents.items():
        equal_inputs = counts[content] - 1
        shares[index] = equal_inputs / 2 / pairs  # both inputs of an equal pair get half of it
    return sum_of(shares)


def wins(team: Team, options: Options) -> Score:
    """Return the value 0 of a zero-sum game between agents, with shares by agent.

    An agent wins against the agents with a lower reward. Its share is the number of agents against which it wins, less
    the number against which it loses, divided by the number of its opponents.
    """
    agents = _agents_in_order(team, options)
    if len(agents) < 2:
        return no_score("fewer than two agents of these roles act, and a game has two sides")
    if refusal := _refusal_without_rewards(team, agents):
        return refusal
    rewards = sorted(team.reward_by_agent[agent] for agent in agents)
    shares = {}
    for agent in agents:
        reward = team.reward_by_agent[agent]
        won = bisect_left(rewards, reward)
        lost = len(rewards) - bisect_right(rewards, reward)
        shares[agent] = (won - lost) / (len(agents) - 1)
    return Score(0.0, agents=shares)


_ANY = (-inf, inf)  # the bounds of a value without bounds
# Each has a name, family, unit, bounds, formula, source, options and function, in this order.
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
        "shaping", "R4", "1", _ANY, "sum of gamma^t (gamma Phi(t+1) - Phi(t)), Phi 0 at the end", _SHAPING_SOURCE,
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
"""The reward functions for results."""
