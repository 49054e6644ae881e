"""Terms of a reward: a figure with its shares by event and by agent, or the reason why there is none."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, inf
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ASKED, Run
from orchtrace_corpus.trace.model.events import roles_of, total
from orchtrace_corpus.trace.model.terms import AgentKind, EventType, Status
from orchtrace_corpus.trace.view import Derived
from orchtrace_corpus.trace.view.lifecycle import sort_by_time

WHOLE = ""
"""In a decomposition, the run as a whole: what belongs to no single event or agent. No event or agent has this name."""

FAMILIES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8")
"""The codes of the reward families: shared, individual, role, process, tool, judged, orchestration, hybrid."""

_SPAWN, _RETURN, _AGGREGATE = EventType.SPAWN, EventType.RETURN, EventType.AGGREGATE
_TOOL_CALL, _TOOL_RESULT = EventType.TOOL_CALL, EventType.TOOL_RESULT
FAILED = frozenset({Status.ERROR, Status.CANCELLED})
"""The statuses of a failed event."""


class Term(NamedTuple):
    """One term of a reward.

    Attributes:
        name: Its name in the specification.
        family: The code of its reward family, `R1` to `R8`.
        weight: What its value is multiplied with in the reward.
        value: Its value, in its unit; None where the trace cannot tell. Never 0 for unknown.
        refusal: Why there is no value, and what to add; None where there is one.
        by_event: The shares of events by id; they add up to the value. `WHOLE` is the run as a whole.
        by_agent: The shares of agents by name; they add up to the value, too.
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
        """Return the part of the reward: weight times value."""
        return None if self.value is None else self.weight * self.value


class Reward(NamedTuple):
    """Compute the reward of a design for a run.

    Attributes:
        value: The sum of the contributions of all terms; None where one of them is refused.
        terms: The terms, in the order of the specification.
    """

    value: float | None
    terms: tuple[Term, ...]

    def by_event(self) -> dict[str, float]:
        """The weighted shares of events over all terms that have a value; `WHOLE` is the run as a whole."""
        return _total((term.weight, term.by_event) for term in self.terms)

    def by_agent(self) -> dict[str, float]:
        """The weighted shares of agents over all terms that have a value; `WHOLE` is the run as a whole."""
        return _total((term.weight, term.by_agent) for term in self.terms)


def _total(parts: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for weight, shares in parts:
        for name, share in shares.items():
            found.setdefault(name, []).append(weight * share)
    return {name: fsum(shares) for name, shares in found.items()}


class Score(NamedTuple):
    """The value of one reward function for a run.

    Attributes:
        value: The figure; None where the trace cannot tell.
        refusal: Why not, and what to add.
        events: The shares of events by number, which add up to the value; empty where they cannot be told apart.
        agents: The shares of agents; None where those are the shares of their events.
    """

    value: float | None
    refusal: str = ""
    events: Mapping[int, float] = {}
    agents: Mapping[str, float] | None = None


def refused(reason: str) -> Score:
    """No figure, for a reason that says what to add."""
    return Score(None, reason)


def paid(events: Mapping[int, float]) -> Score:
    """The sum of what single events are paid."""
    return Score(fsum(events.values()), "", events)


def share_of(counted: Iterable[int], among: Sequence[int]) -> Score:
    """The share of some events that are counted; there is at least one."""
    part = 1.0 / len(among)
    numbers = list(counted)
    return Score(len(numbers) / len(among), "", dict.fromkeys(numbers, part))


class Function(NamedTuple):
    """A function from a run to a figure that a reward may have as a term.

    Attributes:
        name: Its name.
        family: The code of its reward family; empty where its options decide.
        unit: `1` for a pure number, `step`, `event`, `token`, `usd`, or `reward` for that of what is stated.
        bounds: The least and the largest value.
        formula: How it is computed, in a line.
        source: Where it comes from; `ours` where it is this project's own.
        options: Its options, each with its default.
        compute: From a run and options to a figure.
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
    """A run as rewards see it: who takes part, who was spawned, what was called, returned and merged.

    Copied context belongs to no part of it. People are no agents.

    Raises:
        CycleError: The edges go round in a circle.
    """

    @Derived
    def roles(self) -> Mapping[str, str]:
        """The role of each agent, where the trace gives it."""
        return roles_of(self.trace)

    @Derived
    def agents(self) -> list[str]:
        """The agents that act, by their first act."""
        people = self.people
        return [agent for agent in self.times.by_agent if agent not in people] if people else list(self.times.by_agent)

    @Derived
    def outcomes(self) -> dict[str, float]:
        """The rewards that the trace states of agents, people left out."""
        return {
            agent.id: agent.reward
            for agent in self.trace.agents
            if agent.reward is not None and agent.kind is not AgentKind.HUMAN
        }

    def of_type(self, kind: EventType) -> list[int]:
        """The numbers of the events of a type, copied ones left out."""
        of = self.times.graph
        found = of.of_type.get(kind, ())
        return [number for number in found if number not in of.copied] if of.copied else list(found)

    @Derived
    def spawns(self) -> list[int]:
        """The spawns that name an agent."""
        return [index for index in self.of_type(_SPAWN) if self.trace.events[index].target]

    @Derived
    def spawned(self) -> dict[str, list[int]]:
        """The same by the agent that is spawned, each list by time."""
        copied, spawns = self.times.graph.copied, self.view.lifecycle.spawns
        if copied.isdisjoint(self.times.graph.of_type.get(_SPAWN, ())):
            return dict(spawns)
        kept = {agent: [number for number in numbers if number not in copied] for agent, numbers in spawns.items()}
        return {agent: numbers for agent, numbers in kept.items() if numbers}

    @Derived
    def returns(self) -> list[int]:
        """The returns."""
        return self.of_type(_RETURN)

    @Derived
    def returned(self) -> dict[int, int]:
        """Of each spawn whose agent returned before it was spawned again, the first such return."""
        events = self.trace.events
        back: dict[str, list[int]] = {}
        for index in self.returns:
            back.setdefault(events[index].agent, []).append(index)
        found: dict[int, int] = {}
        for agent, spawns in self.spawned.items():
            waiting = sort_by_time(back.get(agent, ()), events)[::-1]
            ends = [*[events[index].t for index in spawns[1:]], inf]
            for spawn, end in zip(spawns, ends, strict=True):
                while waiting and events[waiting[-1]].t < events[spawn].t:
                    waiting.pop()
                if waiting and events[waiting[-1]].t <= end:
                    found[spawn] = waiting.pop()
        return found

    @Derived
    def calls(self) -> dict[int, bool | None]:
        """The tool calls of agents, each with whether it succeeded: by its result, else by itself; None if unknown."""
        events, of = self.trace.events, self.times.graph
        people = self.people
        indices = [index for index in self.of_type(_TOOL_CALL) if events[index].agent not in people]
        if not indices:
            return {}
        results = {events[n].call_id: n for n in self.of_type(_TOOL_RESULT) if events[n].call_id}
        joined = {
            source: target
            for source, target in zip(of.sources, of.targets, strict=True)
            if events[target].type is _TOOL_RESULT and events[source].type is _TOOL_CALL
        }
        found: dict[int, bool | None] = {}
        for index in indices:
            own = events[index].status
            result = results.get(events[index].call_id) if events[index].call_id else joined.get(index)
            end = events[result].status if result is not None else Status.UNKNOWN
            if own in FAILED or end in FAILED:
                found[index] = False
            else:
                found[index] = True if Status.OK in (own, end) else None
        return found

    @Derived
    def results(self) -> list[int]:
        """The returns and aggregates, by when they ended: what says how good the run was at a moment."""
        events, times = self.trace.events, self.times
        numbers = [*self.returns, *self.of_type(_AGGREGATE)]
        return sorted(numbers, key=lambda n: (times.ends[n], times.starts[n], events[n].seq or 0, events[n].id))

    @Derived
    def making(self) -> frozenset[int]:
        """Return the run's result and the events that led to it: the last aggregate, else return, else event."""
        aggregates, returns = self.of_type(_AGGREGATE), self.returns
        among = set(aggregates or returns)
        sequence = self.times.sequence
        last = next((number for number in reversed(sequence) if number in among), sequence[-1])
        found, waiting = {last}, [last]
        while waiting:
            for source in self.times.incoming[waiting.pop()]:
                if source not in found:
                    found.add(source)
                    waiting.append(source)
        return frozenset(found)

    @Derived
    def merges(self) -> dict[int, list[int]]:
        """The aggregates that two or more events of other agents lead to, each with these."""
        events = self.trace.events
        found = {}
        for index in self.of_type(_AGGREGATE):
            others = [n for n in dict.fromkeys(self.times.incoming[index]) if events[n].agent != events[index].agent]
            if len(others) > 1:
                found[index] = others
        return found

    def outcome_of(self, index: int) -> float | None:
        """The outcome of what an event brings: as the event states it, else its agent; of the run's result, the team's.

        None where nothing states it.
        """
        event = self.trace.events[index]
        if event.reward is not None:
            return event.reward
        if self.results and index == self.results[-1]:
            return self.trace.rewards.get("team")
        return self.outcomes.get(event.agent) if event.type is not _AGGREGATE else None

    @Derived
    def spent(self) -> tuple[dict[int, float], list[int]]:
        """The tokens of each event that states them, and the events in which a model is asked that state none."""
        spent: dict[int, float] = {}
        lacking = []
        people = self.people
        for index, event in enumerate(self.trace.events):
            if event.copied_context or event.agent in people:
                continue
            if event.tokens and event.tokens.is_known:
                spent[index] = float(total(event.tokens))
            elif event.type in ASKED:
                lacking.append(index)
        return spent, lacking

    @Derived
    def members(self) -> frozenset[str]:
        """The agents that act."""
        return frozenset(self.agents)

    def with_roles(self, roles: Sequence[str]) -> frozenset[str]:
        """The agents that act and have one of the roles; all that act where no role is named."""
        if not roles:
            return self.members
        return frozenset([agent for agent in self.agents if self.roles.get(agent) in roles])
