"""Terms of a reward, each with its shares by event and agent, and the view of a run that computes them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, inf

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES, Run
from orchtrace_corpus.trace.model.events import roles_of, total
from orchtrace_corpus.trace.model.terms import AgentKind, EventType, Status
from orchtrace_corpus.trace.view import Derived
from orchtrace_corpus.trace.view.lifecycle import sort_by_time

WHOLE = ""
"""The key of the share that belongs to no single event or agent. No event or agent has this name."""

FAMILIES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8")
"""The codes of the reward families: shared, individual, role, process, tool, judged, orchestration, hybrid."""

_SPAWN, _RETURN, _AGGREGATE = EventType.SPAWN, EventType.RETURN, EventType.AGGREGATE
_TOOL_CALL, _TOOL_RESULT = EventType.TOOL_CALL, EventType.TOOL_RESULT
FAILED = frozenset({Status.ERROR, Status.CANCELLED})
"""The statuses of a failed event."""


class Term(NamedTuple):
    """One term of a reward.

    Attributes:
        name: The name of the term in the specification.
        family: The code of its reward family, `R1` to `R8`.
        weight: The factor by which the reward multiplies its value.
        value: The value in the unit of its function; None if it is unknown, never 0.
        refusal: The reason why there is no value, and what to add; None if there is one.
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
        """Return the weighted value; None if it is unknown."""
        return None if self.value is None else self.weight * self.value


class Reward(NamedTuple):
    """The reward of a run.

    Attributes:
        value: The sum of the contributions of all terms; None if one of them has no value.
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
    summands: dict[str, list[float]] = {}
    for weight, shares in weighted:
        for name, share in shares.items():
            summands.setdefault(name, []).append(weight * share)
    return {name: fsum(values) for name, values in summands.items()}


class Score(NamedTuple):
    """The value of one reward function for a run.

    Attributes:
        value: The value; None if it is unknown.
        refusal: The reason why it is unknown, and what to add.
        events: The shares of events by index, which add up to the value; empty if no shares are known.
        agents: The shares of agents; None if they are the sums over their events.
    """

    value: float | None
    refusal: str = ""
    events: Mapping[int, float] = {}
    agents: Mapping[str, float] | None = None


def refused(reason: str) -> Score:
    """Return a score without a value, for a reason that says what to add."""
    return Score(None, reason)


def paid(events: Mapping[int, float]) -> Score:
    """Return the sum of the shares of events."""
    return Score(fsum(events.values()), "", events)


def share_of(counted: Iterable[int], among: Sequence[int]) -> Score:
    """Return the share of events that are counted, among one or more events."""
    indices = list(counted)
    return Score(len(indices) / len(among), "", dict.fromkeys(indices, 1.0 / len(among)))


class Function(NamedTuple):
    """A function that computes a score of a run, for use as a term of a reward.

    Attributes:
        name: The name of the function.
        family: The code of its reward family; empty if its options decide.
        unit: `1` for a pure number, `step`, `event`, `token`, `usd`, or `reward` for the unit of the stated rewards.
        bounds: The lowest and the highest value.
        formula: The formula, in one line.
        source: The source of the formula; `ours` if this project defined it.
        options: The options with their defaults.
        compute: Computes the score of a run with given options.
    """

    name: str
    family: str
    unit: str
    bounds: tuple[float, float]
    formula: str
    source: str
    options: Mapping[str, Any]
    compute: Callable[["Team", Mapping[str, Any]], Score]


class Team(Run):
    """A run with the values that reward functions have in common: its agents, spawns, calls, returns and merges.

    Copied context does not count, and people do not count as agents.

    Raises:
        CycleError: The edges form a cycle.
    """

    @Derived
    def roles(self) -> Mapping[str, str]:
        """The role of each agent for which the trace gives one."""
        return roles_of(self.trace)

    @Derived
    def agents(self) -> list[str]:
        """The agents that act, in the order of their first event."""
        people = self.people
        return [agent for agent in self.times.indices_by_agent if agent not in people]

    @Derived
    def outcomes(self) -> dict[str, float]:
        """The stated reward of each agent, without people."""
        return {
            agent.id: agent.reward
            for agent in self.trace.agents
            if agent.reward is not None and agent.kind is not AgentKind.HUMAN
        }

    def of_type(self, kind: EventType) -> list[int]:
        """Return the indices of the events of a type, without copied events."""
        graph = self.times.graph
        indices = graph.indices_by_type.get(kind, ())
        if not graph.copied:
            return list(indices)
        return [index for index in indices if index not in graph.copied]

    @Derived
    def spawns(self) -> list[int]:
        """The indices of the spawns that name an agent."""
        return [index for index in self.of_type(_SPAWN) if self.trace.events[index].target]

    @Derived
    def spawned(self) -> dict[str, list[int]]:
        """The indices of the spawns of each agent, by time."""
        copied, spawns = self.times.graph.copied, self.view.lifecycle.spawns
        if copied.isdisjoint(self.times.graph.indices_by_type.get(_SPAWN, ())):
            return dict(spawns)
        kept = {agent: [index for index in indices if index not in copied] for agent, indices in spawns.items()}
        return {agent: indices for agent, indices in kept.items() if indices}

    @Derived
    def returns(self) -> list[int]:
        """The indices of the returns."""
        return self.of_type(_RETURN)

    @Derived
    def returned(self) -> dict[int, int]:
        """The first return after each spawn, if its agent returned before it was spawned again."""
        events = self.trace.events
        returns_by_agent: dict[str, list[int]] = {}
        for index in self.returns:
            returns_by_agent.setdefault(events[index].agent, []).append(index)
        returned: dict[int, int] = {}
        for agent, spawns in self.spawned.items():
            remaining = sort_by_time(returns_by_agent.get(agent, ()), events)[::-1]
            ends = [*[events[index].t for index in spawns[1:]], inf]
            for spawn, end in zip(spawns, ends, strict=True):
                while remaining and events[remaining[-1]].t < events[spawn].t:
                    remaining.pop()
                if remaining and events[remaining[-1]].t <= end:
                    returned[spawn] = remaining.pop()
        return returned

    @Derived
    def calls(self) -> dict[int, bool | None]:
        """The indices of the agents' tool calls; True for those that succeeded, False if they failed, else None."""
        events, graph = self.trace.events, self.times.graph
        people = self.people
        indices = [index for index in self.of_type(_TOOL_CALL) if events[index].agent not in people]
        if not indices:
            return {}
        results = {events[n].call_id: n for n in self.of_type(_TOOL_RESULT) if events[n].call_id}
        results_by_edge = {
            source: target
            for source, target in zip(graph.sources, graph.targets, strict=True)
            if events[target].type is _TOOL_RESULT and events[source].type is _TOOL_CALL
        }
        calls: dict[int, bool | None] = {}
        for index in indices:
            call = events[index]
            result = results.get(call.call_id) if call.call_id else results_by_edge.get(index)
            result_status = events[result].status if result is not None else Status.UNKNOWN
            if call.status in FAILED or result_status in FAILED:
                calls[index] = False
            elif Status.OK in (call.status, result_status):
                calls[index] = True
            else:
                calls[index] = None
        return calls

    @Derived
    def results(self) -> list[int]:
        """The indices of the returns and aggregates, by their end: the results of the run so far."""
        events, times = self.trace.events, self.times
        indices = [*self.returns, *self.of_type(_AGGREGATE)]
        return sorted(indices, key=lambda n: (times.ends[n], times.starts[n], events[n].seq or 0, events[n].id))

    @Derived
    def making(self) -> frozenset[int]:
        """The run's result, which is its last aggregate, else return, else event, and the events that led to it."""
        aggregates, returns = self.of_type(_AGGREGATE), self.returns
        candidates = set(aggregates or returns)
        sequence = self.times.sequence
        result = next((index for index in reversed(sequence) if index in candidates), sequence[-1])
        upstream, pending = {result}, [result]
        while pending:
            for source in self.times.incoming[pending.pop()]:
                if source not in upstream:
                    upstream.add(source)
                    pending.append(source)
        return frozenset(upstream)

    @Derived
    def merges(self) -> dict[int, list[int]]:
        """The aggregates with edges from two or more events of other agents, each with the indices of these events."""
        events = self.trace.events
        merges = {}
        for index in self.of_type(_AGGREGATE):
            inputs = [n for n in dict.fromkeys(self.times.incoming[index]) if events[n].agent != events[index].agent]
            if len(inputs) > 1:
                merges[index] = inputs
        return merges

    def outcome_of(self, index: int) -> float | None:
        """Return the stated outcome of an event; None if nothing states it.

        It is the reward of the event itself. Without one, it is the reward of the team for the last result of the
        run, and the reward of its agent for other events except aggregates.
        """
        event = self.trace.events[index]
        if event.reward is not None:
            return event.reward
        if self.results and index == self.results[-1]:
            return self.trace.rewards.get("team")
        return self.outcomes.get(event.agent) if event.type is not _AGGREGATE else None

    @Derived
    def spent(self) -> tuple[dict[int, float], list[int]]:
        """The tokens of each event that states them, and the indices of the model answers that state none."""
        spent: dict[int, float] = {}
        missing = []
        people = self.people
        for index, event in enumerate(self.trace.events):
            if event.copied_context or event.agent in people:
                continue
            if event.tokens and event.tokens.is_known:
                spent[index] = float(total(event.tokens))
            elif event.type in ANSWER_TYPES:
                missing.append(index)
        return spent, missing

    @Derived
    def members(self) -> frozenset[str]:
        """The agents that act."""
        return frozenset(self.agents)

    def with_roles(self, roles: Sequence[str]) -> frozenset[str]:
        """Return the agents that act and have one of the roles; all agents that act if no role is named."""
        if not roles:
            return self.members
        return frozenset([agent for agent in self.agents if self.roles.get(agent) in roles])
