"""The values of a reward and its terms, and the run from which the reward functions compute them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, inf

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES, Run
from orchtrace_corpus.trace.model.events import roles_of, total
from orchtrace_corpus.trace.model.terms import AgentKind, EventType, Status
from orchtrace_corpus.trace.view import CachedProperty
from orchtrace_corpus.trace.view.lifecycle import sort_by_time

WHOLE = ""
"""The key of the share that belongs to no single event or agent. No event or agent has this name."""

FAMILIES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8")
"""The codes of the reward families: shared, individual, role, process, tool, judged, orchestration, hybrid."""

FAILED = frozenset({Status.ERROR, Status.CANCELLED})
"""The statuses of a failed event."""

_SPAWN, _RETURN, _AGGREGATE = EventType.SPAWN, EventType.RETURN, EventType.AGGREGATE
_TOOL_CALL, _TOOL_RESULT = EventType.TOOL_CALL, EventType.TOOL_RESULT


class Term(NamedTuple):
    """One term of a reward.

    Attributes:
        name: The name of the term in the specification.
        family: The code of its reward family, `R1` to `R8`.
        weight: The factor by which the reward multiplies the value.
        value: The value in the unit of the term's function; None if it is unknown. An unknown value is never 0.
        refusal: If the value is unknown, the reason and what to add; else None.
        by_event: The shares of events by id, and of `WHOLE`; they add up to the value.
        by_agent: The shares of agents by name, and of `WHOLE`; they add up to the value.
    """

    name: str
    family: str
    weight: float
    value: float | None
    refusal: str | None
    by_event: Mapping[str, float]
    by_agent: Mapping[str, float]

    @property
    def contribution(self) -> float | None:
        """The weighted value; None if it is unknown."""
        return None if self.value is None else self.weight * self.value


class Reward(NamedTuple):
    """The reward of a run.

    Attributes:
        value: The sum of the contributions of all terms; None if a term has no value.
        terms: The terms, in the order of the specification.
    """

    value: float | None
    terms: tuple[Term, ...]

    def by_event(self) -> dict[str, float]:
        """Return the weighted shares of events, and of `WHOLE`, over all terms that have a value."""
        return _sum_shares((term.weight, term.by_event) for term in self.terms)

    def by_agent(self) -> dict[str, float]:
        """Return the weighted shares of agents, and of `WHOLE`, over all terms that have a value."""
        return _sum_shares((term.weight, term.by_agent) for term in self.terms)


def _sum_shares(weighted: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Return the sum of weight times share by name, over pairs of a weight and shares."""
    summands_by_name: dict[str, list[float]] = {}
    for weight, shares in weighted:
        for name, share in shares.items():
            summands_by_name.setdefault(name, []).append(weight * share)
    return {name: fsum(summands) for name, summands in summands_by_name.items()}


class Score(NamedTuple):
    """The value of one reward function for a run.

    Attributes:
        value: The value; None if it is unknown.
        refusal: If the value is unknown, the reason and what to add.
        events: The shares of events by index, which add up to the value; empty if the value is not of single events.
        agents: The shares of agents by name; None if the share of an agent is the sum over its events.
    """

    value: float | None
    refusal: str = ""
    events: Mapping[int, float] = {}
    agents: Mapping[str, float] | None = None


def no_score(reason: str) -> Score:
    """Return the score of a run that lacks the data for a function; the reason also says what to add."""
    return Score(None, reason)


def sum_of(shares: Mapping[int, float]) -> Score:
    """Return the score that is the sum of shares of events, by index."""
    return Score(fsum(shares.values()), events=shares)


def fraction_of(selected: Iterable[int], events: Sequence[int]) -> Score:
    """Return the score that is the fraction of selected events; each of them has an equal share in it.

    Args:
        selected: The indices of the selected events.
        events: The indices of all events, at least one.
    """
    indices = list(selected)
    return Score(len(indices) / len(events), events=dict.fromkeys(indices, 1.0 / len(events)))


class Function(NamedTuple):
    """A function that computes a score of a run, for use as a term of a reward.

    Attributes:
        name: The name of the function.
        family: The code of its reward family; empty if the family depends on an option.
        unit: `1` for a pure number, `step`, `event`, `token`, `usd`, or `reward` for the unit of the stated rewards.
        bounds: The lowest and the highest value.
        formula: The formula, in one line.
        source: The source of the formula; `ours` if this project defined it.
        defaults: The default of each option, by name.
        compute: The function that computes the score of a run from values for all options.
    """

    name: str
    family: str
    unit: str
    bounds: tuple[float, float]
    formula: str
    source: str
    defaults: Mapping[str, Any]
    compute: Callable[["Team", Mapping[str, Any]], Score]


class Team(Run):
    """A run with the values that reward functions have in common: its agents, spawns, calls, returns and merges.

    Events are given by their index in the trace. Copied context is left out, and people are not agents.

    Raises:
        CycleError: The edges form a cycle.
    """

    @CachedProperty
    def roles(self) -> Mapping[str, str]:
        """The role of each agent for which the trace gives one."""
        return roles_of(self.trace)

    @CachedProperty
    def agents(self) -> list[str]:
        """The agents with events, in the order of their first event."""
        people = self.people
        return [agent for agent in self.times.indices_by_agent if agent not in people]

    @CachedProperty
    def agent_set(self) -> frozenset[str]:
        """The agents with events, as a set."""
        return frozenset(self.agents)

    def agents_with_roles(self, roles: Sequence[str]) -> frozenset[str]:
        """Return the agents with events that have one of the roles; all agents with events if `roles` is empty."""
        if not roles:
            return self.agent_set
        return frozenset([agent for agent in self.agents if self.roles.get(agent) in roles])

    @CachedProperty
    def reward_by_agent(self) -> dict[str, float]:
        """The reward that the trace states for each agent; agents without one are left out."""
        return {
            agent.id: agent.reward
            for agent in self.trace.agents
            if agent.reward is not None and agent.kind is not AgentKind.HUMAN
        }

    def events_of_type(self, kind: EventType) -> list[int]:
        """Return the events of a type."""
        graph = self.times.graph
        indices = graph.indices_by_type.get(kind, ())
        if not graph.copied:
            return list(indices)
        return [index for index in indices if index not in graph.copied]

    @CachedProperty
    def spawns(self) -> list[int]:
        """The spawns that name an agent."""
        return [index for index in self.events_of_type(_SPAWN) if self.trace.events[index].target]

    @CachedProperty
    def spawns_by_agent(self) -> dict[str, list[int]]:
        """The spawns that create each agent, by time; an agent can be spawned several times."""
        copied, spawns = self.times.graph.copied, self.view.lifecycle.spawns
        if copied.isdisjoint(self.times.graph.indices_by_type.get(_SPAWN, ())):
            return dict(spawns)
        spawns_by_agent = {}
        for agent, indices in spawns.items():
            if original := [index for index in indices if index not in copied]:
                spawns_by_agent[agent] = original
        return spawns_by_agent

    @CachedProperty
    def returns(self) -> list[int]:
        """The returns."""
        return self.events_of_type(_RETURN)

    @CachedProperty
    def return_by_spawn(self) -> dict[int, int]:
        """For each spawn whose agent returns before it is spawned again, the first of these returns."""
        events = self.trace.events
        returns_by_agent: dict[str, list[int]] = {}
        for index in self.returns:
            returns_by_agent.setdefault(events[index].agent, []).append(index)
        return_by_spawn: dict[int, int] = {}
        for agent, spawns in self.spawns_by_agent.items():
            remaining = sort_by_time(returns_by_agent.get(agent, ()), events)[::-1]  # the earliest is the last item
            ends = [*[events[index].t for index in spawns[1:]], inf]  # the time of the agent's next spawn
            for spawn, end in zip(spawns, ends, strict=True):
                while remaining and events[remaining[-1]].t < events[spawn].t:
                    remaining.pop()
                if remaining and events[remaining[-1]].t <= end:
                    return_by_spawn[spawn] = remaining.pop()
        return return_by_spawn

    @CachedProperty
    def success_by_call(self) -> dict[int, bool | None]:
        """For each tool call, True if it succeeded and False if it failed or was cancelled; None if it is unknown."""
        events, graph = self.trace.events, self.times.graph
        people = self.people
        calls = [index for index in self.events_of_type(_TOOL_CALL) if events[index].agent not in people]
        if not calls:
            return {}
        results_by_call_id = {}
        for index in self.events_of_type(_TOOL_RESULT):
            if events[index].call_id:
                results_by_call_id[events[index].call_id] = index
        results_by_edge = {
            source: target
            for source, target in zip(graph.sources, graph.targets, strict=True)
            if events[target].type is _TOOL_RESULT and events[source].type is _TOOL_CALL
        }
        success_by_call: dict[int, bool | None] = {}
        for index in calls:
            call = events[index]
            result = results_by_call_id.get(call.call_id) if call.call_id else results_by_edge.get(index)
            result_status = events[result].status if result is not None else Status.UNKNOWN
            if call.status in FAILED or result_status in FAILED:
                success_by_call[index] = False
            elif Status.OK in (call.status, result_status):
                success_by_call[index] = True
            else:
                success_by_call[index] = None
        return success_by_call

    @CachedProperty
    def results(self) -> list[int]:
        """The returns and aggregates in the order of their ends."""
        events, times = self.trace.events, self.times

        def order(index: int) -> tuple[float, float, float, str]:
            return times.ends[index], times.starts[index], events[index].seq or 0, events[index].id

        return sorted([*self.returns, *self.events_of_type(_AGGREGATE)], key=order)

    @CachedProperty
    def upstream_of_result(self) -> frozenset[int]:
        """The result of the run and the events from which edges lead to it, directly or through other events.

        The result is the last aggregate, or the last return without aggregates, or the last event without either.
        """
        candidates = set(self.events_of_type(_AGGREGATE) or self.returns)
        sequence = self.times.sequence
        result = sequence[-1]
        for index in reversed(sequence):
            if index in candidates:
                result = index
                break
        upstream = {result}
        pending = [result]
        while pending:
            for source in self.times.incoming[pending.pop()]:
                if source not in upstream:
                    upstream.add(source)
                    pending.append(source)
        return frozenset(upstream)

    @CachedProperty
    def merge_inputs(self) -> dict[int, list[int]]:
        """The inputs of each merge: of each aggregate, the events of other agents from which edges lead to it.

        An aggregate with fewer than two such events is not a merge.
        """
        events = self.trace.events
        merge_inputs = {}
        for index in self.events_of_type(_AGGREGATE):
            sources = dict.fromkeys(self.times.incoming[index])
            inputs = [source for source in sources if events[source].agent != events[index].agent]
            if len(inputs) > 1:
                merge_inputs[index] = inputs
        return merge_inputs

    def outcome_of(self, index: int) -> float | None:
        """Return the stated outcome of an event; None if the trace states none.

        It is the reward of the event itself. For an event without a reward, it is the reward of the team if the event
        is the last result of the run, None if it is another aggregate, and else the reward of its agent.
        """
        event = self.trace.events[index]
        if event.reward is not None:
            return event.reward
        if self.results and index == self.results[-1]:
            return self.trace.rewards.get("team")
        if event.type is _AGGREGATE:
            return None
        return self.reward_by_agent.get(event.agent)

    @CachedProperty
    def token_counts(self) -> tuple[dict[int, float], list[int]]:
        """The number of tokens of each event that states them, and the model answers that state none."""
        counts: dict[int, float] = {}
        missing = []
        people = self.people
        for index, event in enumerate(self.trace.events):
            if event.copied_context or event.agent in people:
                continue
            if event.tokens and event.tokens.is_known:
                counts[index] = float(total(event.tokens))
            elif event.type in ANSWER_TYPES:
                missing.append(index)
        return counts, missing
