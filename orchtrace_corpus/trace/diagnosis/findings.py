"""Finds problems between agents: unread messages, unused results, agents that never returned, and more.

`docs/diagnosis.md` defines each finding. All of them lean to silence: what a log cannot show is no finding.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, islice, takewhile

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.contexts import Context, contexts
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.terms import AgentKind, EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Tokens
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.influence import Outcome, records_approvals
from orchtrace_corpus.trace.view.intervals import Intervals, length, union, without
from orchtrace_corpus.trace.view.open_calls import CLOSING_TOOLS, Cause
from orchtrace_corpus.trace.view.timing import SECONDS, WORKING

LEAST_SHARE = 0.02
"""Idle time of a smaller share of the elapsed time is no finding."""

LEAST_SECONDS = 1.0
"""Neither is less of it."""

_FAILED = (Status.ERROR, Status.CANCELLED)
_ENDS = frozenset((EventType.RETURN, EventType.STOP, EventType.DESPAWN))
_REPORTS = _ENDS | {EventType.MESSAGE}
_DEEPEST = 32
"""The number of levels below the first agents whose agents are judged as leads."""


class FindingKind(StrEnum):
    """The kind of a finding."""

    UNREAD_MESSAGE = "unread_message"
    UNUSED_RESULT = "unused_result"
    NO_RETURN = "no_return"
    REPEATED_CALL = "repeated_call"
    IDLE_LEAD = "idle_lead"
    LARGE_CONTEXT = "large_context"
    UNAPPROVED_EFFECT = "unapproved_effect"


class TeamFinding(NamedTuple):
    """Something that went wrong between agents.

    Attributes:
        kind: What sort of finding it is.
        agents: Whom it is about: sender and target, child and receiver, spawned and spawner, the siblings, the lead,
            or the agent of the context.
        events: The numbers of the events concerned.
        seconds: What it cost in time; None where that is unknown.
        tokens: What it cost in tokens; None where no tokens are known.
        tool: The tool of repeated calls, or of calls that nobody approved.
        cost_events: The numbers of the events whose time and tokens the cost is; none where it is idle time.
    """

    kind: FindingKind
    agents: tuple[str, ...]
    events: tuple[int, ...]
    seconds: float | None
    tokens: float | None
    tool: str = ""
    cost_events: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        """Return the count in the unit of its kind: messages, repeated calls, or one result, agent or lead."""
        if self.kind is FindingKind.REPEATED_CALL:
            return len(self.events) - 1
        if self.kind in (FindingKind.UNREAD_MESSAGE, FindingKind.UNAPPROVED_EFFECT):
            return len(self.events)
        return 1


class Wait(NamedTuple):
    """The wait of one agent for another, over all edges between them.

    Attributes:
        agent: Who waited.
        awaited: For whom.
        seconds: How long.
        events: The numbers of the events with which the waits ended.
    """

    agent: str
    awaited: str
    seconds: float
    events: tuple[int, ...]


class TeamFindings(NamedTuple):
    """The problems between agents, and their waits for one another.

    Attributes:
        findings: The findings, by kind, then in the order of the run.
        waits: Waits by edge, longest first.
        contexts: The largest context of each agent whose answers state tokens.
    """

    findings: tuple[TeamFinding, ...]
    waits: tuple[Wait, ...]
    contexts: tuple[Context, ...]


def find(view: TraceView) -> TeamFindings:
    """Return the problems between the agents of a run.

    Raises:
        CycleError: The edges go round in a circle.
    """
    team = _Team(view)
    sizes = contexts(view)
    kind, large = FindingKind.LARGE_CONTEXT, [size for size in sizes if size.past_half]
    between = team.unread_messages(), team.unused_results(), team.without_return(), team.repeated_calls()
    by_context = (team.finding(kind, (one.agent,), one.past_half, one.past_half) for one in large)
    found = chain(*between, team.idle_leads(), by_context, team.unapproved_effects())
    return TeamFindings(tuple(found), tuple(team.waits()), sizes)


def cost(view: TraceView, numbers: Iterable[int]) -> tuple[float | None, float | None]:
    """The length of the union of the working times of some events, and their tokens; None where these are unknown."""
    times, numbers = view.timing, frozenset(numbers)
    spent = [event.tokens for n in numbers if not (event := times.graph.events[n]).copied_context]
    known = [total(tokens) for tokens in spent if isinstance(tokens, Tokens)]
    seconds = length(union((times.begins[n], times.ends[n]) for n in numbers if times.works[n] > 0))
    return seconds if numbers else None, sum(known) if known else None


class _Team:
    """A run, and what all findings ask of it."""

    def __init__(self, view: TraceView) -> None:
        self._view, self._times = view, view.timing
        self._events: Sequence[Event] = self._times.graph.events
        kinds = {agent.id: agent.kind for agent in view.trace.agents}
        self._people = {agent for agent, kind in kinds.items() if kind is AgentKind.HUMAN}
        self._scripts = {agent for agent, kind in kinds.items() if kind is AgentKind.TOOL}
        self._parents = view.lifecycle.parents
        self._places = {one.agent: place for place, one in enumerate(view.agents)}
        self._least = max(LEAST_SHARE * self._times.elapsed, LEAST_SECONDS if self._times.unit == "s" else 0.0)
        self._outgoing: dict[int, list[int]] = {}
        for source, target in zip(self._times.graph.sources, self._times.graph.targets, strict=True):
            self._outgoing.setdefault(source, []).append(target)
        # When each agent whose work the log shows begins its steps, rising.
        self._steps: dict[str, list[float]] = {}
        for agent, numbers in self._times.by_agent.items():
            steps = [n for n in numbers if self._events[n].type in WORKING and not self._is_stand_in(n)]
            if steps:
                self._steps[agent] = [self._times.starts[n] for n in steps]

    def finding(
        self, kind: FindingKind, agents: tuple[str, ...], events: Sequence[int], cost_events: Iterable[int]
    ) -> TeamFinding:
        """A finding that costs what some events did."""
        spent = tuple(sorted(set(cost_events)))
        return TeamFinding(kind, agents, tuple(events), *cost(self._view, spent), cost_events=spent)

    def unread_messages(self) -> Iterator[TeamFinding]:
        """Messages after which their target took no step, and those that could not be delivered."""
        unread: dict[tuple[str, str], list[int]] = {}
        for index in self._of_type(EventType.MESSAGE):
            event, target = self._events[index], self._events[index].target
            if not target or target == event.agent or target in self._people or target in self._scripts:
                continue
            is_read = any(self._events[later].agent == target for later in self._outgoing.get(index, ()))
            is_read = is_read or (event.status not in _FAILED and self._may_have_read(target, index))
            if not is_read:
                unread.setdefault((event.agent, target), []).append(index)
        for agents, numbers in unread.items():
            cost_events = self._causes(numbers) | self._answers_awaited(numbers)
            yield self.finding(FindingKind.UNREAD_MESSAGE, agents, numbers, cost_events)

    def _may_have_read(self, target: str, index: int) -> bool:
        """Return True if an agent took a step after a message, ends with it, or does nothing that the log shows."""
        event = self._events[index]
        for end in self._view.lifecycle.despawns.get(target, ()):
            despawn = self._events[end]
            if not despawn.inferred and despawn.agent != target and despawn.t >= event.t:
                return True  # ended by another: the message said goodbye
        return target not in self._steps or self._acts_after(target, index)

    def _acts_after(self, agent: str, index: int) -> bool:
        """Return True if an agent begins a step at the time of an event or later; clocks may differ by their skew."""
        steps = self._steps.get(agent, [])
        clock = self._view.trace.clock
        return bool(steps) and steps[-1] >= self._times.starts[index] - clock.skew * SECONDS[clock.unit]

    def _last_end(self, agent: str) -> float:
        """Return the end of an agent's last step."""
        numbers = self._times.finished.get(agent, ())
        return max((self._times.ends[n] for n in numbers if self._events[n].type in WORKING), default=-1.0)

    def _causes(self, indices: Iterable[int]) -> set[int]:
        """The answers of models that led to some events of the same agent."""
        return {
            source
            for index in indices
            for source in self._times.incoming[index]
            if self._events[source].type in ASKED and self._events[source].agent == self._events[index].agent
        }

    def _answers_awaited(self, messages: Iterable[int]) -> set[int]:
        """The open calls of models that are what their sender did next: perhaps it waited for an answer."""
        opened = {open_call.event for open_call in self._view.open_calls if open_call.cause is Cause.ANSWER}
        found = set()
        for sent in messages if opened else ():
            own, start = self._times.by_agent[self._events[sent].agent], self._times.starts[sent]
            later = islice(own, bisect_left(own, start, key=self._times.starts.__getitem__), None)
            after = next((n for n in later if n != sent and self._events[n].type in WORKING), -1)
            found |= {after} & opened
        return found

    def unapproved_effects(self) -> Iterator[TeamFinding]:
        """Executed calls with side effects that untrusted content could have influenced, and no person approved.

        Of logs that do not record granted approvals there is none.
        """
        if not self._view.untrusted or not records_approvals(self._view.trace):
            return
        in_context = self._view.influence.in_context
        by_tool: dict[tuple[str, str], list[int]] = {}
        for call in self._view.effectful_calls:
            if call.executed and call.event in in_context and call.outcome is not Outcome.APPROVED:
                event = self._events[call.event]
                by_tool.setdefault((event.agent, event.tool), []).append(call.event)
        for (agent, tool), numbers in by_tool.items():
            yield self.finding(FindingKind.UNAPPROVED_EFFECT, (agent,), numbers, ())._replace(tool=tool)

    def unused_results(self) -> Iterator[TeamFinding]:
        """Returns that led to nothing: no edge to a later event of the receiver, or no later step of it."""
        returns = self._of_type(EventType.RETURN)
        receivers = {n: self._events[n].target or self._parents.get(self._events[n].agent, "") for n in returns}
        used = {n for n in returns if any(self._events[m].agent == receivers[n] for m in self._outgoing.get(n, ()))}
        before: dict[str, float] = {}
        ends: dict[str, float] = {}
        for index in returns:
            event, receiver = self._events[index], receivers[index]
            since, until = before.get(event.agent, self._times.begin), self._times.starts[index]
            before[event.agent] = until
            is_seen = receiver in self._steps and receiver not in self._people and receiver not in self._scripts
            if index in used or event.status in _FAILED or not is_seen:
                continue
            if receiver not in ends:
                ends[receiver] = self._last_end(receiver)
            if not used and ends[receiver] > until:
                continue  # this trace has no edges from returns: whoever goes on may have used them
            below = [n for n in self._work_below(event.agent) if since <= self._times.starts[n] < until]
            found = self.finding(FindingKind.UNUSED_RESULT, (event.agent, receiver), (index,), below)
            yield found._replace(seconds=found.seconds or 0.0)

    def without_return(self) -> Iterator[TeamFinding]:
        """Spawns after which nothing came from the agent that was spawned: no return, no message, no edge, no stop."""
        for agent, spawns in self._view.lifecycle.spawns.items():
            if agent in self._people:
                continue
            index = spawns[-1]
            since = self._times.starts[index]
            if any(self._times.starts[n] >= since for n in self._answers(agent)):
                continue
            below = [n for n in self._work_below(agent) if self._times.starts[n] >= since]
            yield self.finding(FindingKind.NO_RETURN, (agent, self._events[index].agent), (index,), below)

    def _answers(self, agent: str) -> Iterator[int]:
        """The events by which something of an agent reaches others."""
        own = self._times.by_agent.get(agent, ())
        for index in own:
            event = self._events[index]
            is_message = event.type is EventType.MESSAGE and event.target not in (agent, "")
            if is_message or event.type in (EventType.RETURN, EventType.STOP):
                yield index
            elif event.type is not EventType.DESPAWN:
                for later in self._outgoing.get(index, ()):
                    other = self._events[later].agent
                    if other != agent and not self._view.lineage.is_above(agent, other):
                        yield index

    def repeated_calls(self) -> Iterator[TeamFinding]:
        """Calls of one tool with the same arguments by agents of one parent, none of which failed."""
        failed = {
            self._events[n].call_id for n in self._of_type(EventType.TOOL_RESULT) if self._events[n].status in _FAILED
        }
        groups: dict[tuple[str, str, str], list[int]] = {}
        for index in self._of_type(EventType.TOOL_CALL):
            event = self._events[index]
            parent = self._parents.get(event.agent, "")
            is_failed = event.status in _FAILED or (event.call_id and event.call_id in failed)
            if parent and event.tool and event.tool not in CLOSING_TOOLS and event.content_ref and not is_failed:
                groups.setdefault((parent, event.tool, event.content_ref), []).append(index)
        for (_, tool, _), indices in groups.items():
            siblings = tuple(dict.fromkeys(self._events[n].agent for n in indices))
            if len(siblings) > 1:
                first: dict[str, int] = {}
                for index in indices:
                    first.setdefault(self._events[index].agent, index)
                again = [n for n in first.values() if n != indices[0]]
                found = self.finding(FindingKind.REPEATED_CALL, siblings, tuple(first.values()), again)
                yield found._replace(tool=tool)

    def idle_leads(self) -> Iterator[TeamFinding]:
        """Agents that did nothing while one below them was in the middle of something, and nobody below them worked.

        Open calls count as waits here. What an agent further down is reported for is not reported again. Agents more
        than `_DEEPEST` levels down belong to the team above, but are not judged: a chain of agents would take too long.
        """
        if_waiting, starts = self._view.timing_if_waiting, self._times.starts
        unknown = {self._events[n].agent for n in self._times.unknown}
        team_findings: list[TeamFinding] = []
        below: list[tuple[int, _Below]] = []  # of agents to the right in the tree, with their depths
        deep = _Below([], [], [], [])
        for agent in reversed(self._view.agents):
            own = [(if_waiting.begins[n], if_waiting.ends[n]) for n in agent.events if if_waiting.works[n] > 0]
            if agent.depth > _DEEPEST:
                deep.busy.extend(own)
                deep.alive.extend(self._engaged(agent))
                deep.events.extend(agent.events)
                deep = deep._replace(has_unknown=deep.has_unknown or agent.agent in unknown)
                continue
            parts, deep = [deep, _Below([], [], [], [], agent.agent in unknown)], _Below([], [], [], [])
            while below and below[-1][0] > agent.depth:
                parts.append(below.pop()[1])
            team = _joined(parts)
            busy = union([*team.busy, *own])
            alive = union((max(a, agent.begin), min(b, agent.end)) for a, b in team.alive)
            gaps = [] if team.has_unknown else without(alive, union([*busy, *team.told]))
            idle = length(gaps)
            told = team.told
            if idle >= self._least and agent.agent not in self._people:
                told = union([*told, *gaps])
                numbers = sorted({*agent.events, *team.events}, key=starts.__getitem__)
                begins = [starts[n] for n in numbers]
                ended_by = (bisect_left(begins, end) for _, end in gaps)
                events = tuple(dict.fromkeys(numbers[place] for place in ended_by if place < len(numbers)))
                team_findings.append(TeamFinding(FindingKind.IDLE_LEAD, (agent.agent,), events, idle, None))
            alive = union([*team.alive, *self._engaged(agent)])
            whole = _Below(busy, alive, told, [*team.events, *agent.events], team.has_unknown)
            below.append((agent.depth, whole))
        return iter(team_findings[::-1])

    def _engaged(self, agent_span: AgentSpan) -> Iterator[tuple[float, float]]:
        """Return the intervals of an agent's work: its steps, and the time between two that no report divides."""
        starts, ends, free = self._times.starts, self._times.ends, -1.0
        for index in self._times.by_agent.get(agent_span.agent, ()):
            kind = self._events[index].type
            if kind in WORKING and 0 <= free < starts[index]:
                yield free, starts[index]
            if ends[index] > starts[index]:
                yield starts[index], ends[index]
            if kind in WORKING and kind not in _REPORTS:
                free = max(free, ends[index])
            elif kind in _REPORTS:
                free = -1.0

    def waits(self) -> list[Wait]:
        """Return the waits of agents that could only go on with something from another agent.

        An agent waits from the end of all that it had begun until the last of the events that its next one depends
        on, where that is another agent's. Nobody waits before its first event, or behind its return or stop.
        """
        found: dict[tuple[str, str], list[tuple[float, int]]] = {}
        starts, ends, incoming = self._times.starts, self._times.ends, self._times.incoming
        for agent, indices in self._times.by_agent.items():
            if agent in self._people:
                continue
            free = -1.0  # when all that it has begun has ended; below 0 while it waits for nothing
            for index in indices:
                others = [n for n in incoming[index] if self._events[n].agent not in (agent, *self._people)]
                if others and free >= 0:
                    last = max(others, key=lambda n: min(ends[n], starts[index]))
                    seconds = min(ends[last], starts[index]) - free
                    if seconds > 0:
                        found.setdefault((agent, self._events[last].agent), []).append((seconds, index))
                free = -1.0 if self._events[index].type in _ENDS else max(free, ends[index])
        waits = [
            Wait(agent, awaited, sum(seconds for seconds, _ in all_), tuple(index for _, index in all_))
            for (agent, awaited), all_ in found.items()
        ]
        return sorted(waits, key=lambda one: (-one.seconds, one.agent, one.awaited))

    def _of_type(self, kind: EventType) -> list[int]:
        """The numbers of the events of a type that are on the clock, by time."""
        found = [n for n in self._times.graph.of_type.get(kind, ()) if n not in self._times.off_clock]
        return sorted(found, key=self._times.starts.__getitem__)

    def _work_below(self, agent: str) -> Iterator[int]:
        """The numbers of the events of an agent and of those below it, which follow it in the tree."""
        agents, own = self._view.agents, self._places.get(agent, 0)
        below = takewhile(lambda one: one.depth > agents[own].depth, islice(agents, own + 1, None))
        for name in (agent, *(one.agent for one in below if agent in self._places)):
            yield from self._times.by_agent.get(name, ())

    def _is_stand_in(self, index: int) -> bool:
        """Return True if an event only represents an agent without records of its own."""
        event = self._events[index]
        return event.inferred and not (event.model or isinstance(event.tokens, Tokens) or event.content_ref)


class _Below(NamedTuple):
    """Agents of a part of the tree: when any works, when any is in the middle of something, what is reported."""

    busy: Intervals
    alive: Intervals
    told: Intervals
    events: list[int]
    has_unknown: bool = False


def _joined(parts: Sequence[_Below]) -> _Below:
    """Several parts of the tree as one."""
    events = [event for part in parts for event in part.events]
    busy = union(interval for part in parts for interval in part.busy)
    alive = union(interval for part in parts for interval in part.alive)
    told = union(interval for part in parts for interval in part.told)
    return _Below(busy, alive, told, events, any(part.has_unknown for part in parts))
