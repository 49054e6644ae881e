"""Finds problems between agents: unread messages, unused results, agents that never returned, and more.

`docs/diagnosis.md` defines each finding. Each is conservative: it reports nothing that the log does not show.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice, takewhile

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.contexts import Context, contexts
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.events import CLOSING_TOOLS, total
from orchtrace_corpus.trace.model.terms import SECONDS, AgentKind, EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Tokens
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.influence import Outcome, records_approvals
from orchtrace_corpus.trace.view.intervals import Intervals, length, union, without
from orchtrace_corpus.trace.view.open_calls import Cause
from orchtrace_corpus.trace.view.timing import WORKING

LEAST_SHARE = 0.02
"""Idle time below this share of the elapsed time is not reported."""

LEAST_SECONDS = 1.0
"""Idle time of fewer seconds is not reported."""

_FAILED = (Status.ERROR, Status.CANCELLED)
_ENDS = frozenset((EventType.RETURN, EventType.STOP, EventType.DESPAWN))
_REPORTS = _ENDS | {EventType.MESSAGE}
_MAX_LEAD_DEPTH = 32
"""The depth in the agent tree down to which agents are checked for idle time as leads."""


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
    """A problem between agents.

    Attributes:
        kind: The kind of the finding.
        agents: The agents involved, by kind: sender and target; child and receiver; spawned agent and spawner; the
            siblings; the lead; the agent of the context.
        events: The indices of the events involved.
        seconds: The time it cost; None if that is unknown.
        tokens: The tokens it cost; None if no tokens are known.
        tool: The tool of repeated or unapproved calls.
        cost_events: The indices of the events whose time and tokens are the cost; empty for idle time.
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
        """Return the count in the unit of the kind: messages, repeated or unapproved calls; else 1."""
        if self.kind is FindingKind.REPEATED_CALL:
            return len(self.events) - 1
        if self.kind in (FindingKind.UNREAD_MESSAGE, FindingKind.UNAPPROVED_EFFECT):
            return len(self.events)
        return 1


class Wait(NamedTuple):
    """The wait of one agent for another, over all edges between them.

    Attributes:
        agent: The agent that waited.
        awaited: The agent that it waited for.
        seconds: The total time of the waits.
        events: The indices of the events that ended the waits.
    """

    agent: str
    awaited: str
    seconds: float
    events: tuple[int, ...]


class TeamFindings(NamedTuple):
    """The problems between agents, and their waits for one another.

    Attributes:
        findings: The findings, by kind, then in the order of the run.
        waits: The waits, longest first.
        contexts: The largest context of each agent whose answers state tokens.
    """

    findings: tuple[TeamFinding, ...]
    waits: tuple[Wait, ...]
    contexts: tuple[Context, ...]


def find(view: TraceView) -> TeamFindings:
    """Return the problems between the agents of a run.

    Raises:
        CycleError: The edges form a cycle.
    """
    team = _Team(view)
    largest_contexts = contexts(view)
    findings = (
        *team.unread_messages(),
        *team.unused_results(),
        *team.without_return(),
        *team.repeated_calls(),
        *team.idle_leads(),
        *(
            team.finding(FindingKind.LARGE_CONTEXT, (context.agent,), context.past_half, context.past_half)
            for context in largest_contexts
            if context.past_half
        ),
        *team.unapproved_effects(),
    )
    return TeamFindings(findings, tuple(team.waits()), largest_contexts)


def cost(view: TraceView, events: Iterable[int]) -> tuple[float | None, float | None]:
    """Return the time in which any of some events worked, and their tokens; None for each that is unknown."""
    times, indices = view.timing, frozenset(events)
    if not indices:
        return None, None
    seconds = length(union((times.begins[n], times.ends[n]) for n in indices if times.works[n] > 0))
    totals = []
    for index in indices:
        event = times.graph.events[index]
        if isinstance(event.tokens, Tokens) and not event.copied_context:
            totals.append(total(event.tokens))
    return seconds, sum(totals) if totals else None


class _Team:
    """Finds the problems between the agents of one run."""

    def __init__(self, view: TraceView) -> None:
        self._view, self._times = view, view.timing
        self._events: Sequence[Event] = self._times.graph.events
        kinds = {agent.id: agent.kind for agent in view.trace.agents}
        self._people = {agent for agent, kind in kinds.items() if kind is AgentKind.HUMAN}
        self._scripts = {agent for agent, kind in kinds.items() if kind is AgentKind.TOOL}
        self._parents = view.lifecycle.parents
        self._places = {span.agent: place for place, span in enumerate(view.agents)}
        self._least_idle = max(LEAST_SHARE * self._times.elapsed, LEAST_SECONDS if self._times.unit == "s" else 0.0)
        self._outgoing: dict[int, list[int]] = {}
        for source, target in zip(self._times.graph.sources, self._times.graph.targets, strict=True):
            self._outgoing.setdefault(source, []).append(target)
        # The begins of the steps of each agent whose work the log shows, in ascending order.
        self._steps: dict[str, list[float]] = {}
        for agent, indices in self._times.indices_by_agent.items():
            steps = [n for n in indices if self._events[n].type in WORKING and not self._is_stand_in(n)]
            if steps:
                self._steps[agent] = [self._times.starts[n] for n in steps]

    def finding(
        self, kind: FindingKind, agents: tuple[str, ...], events: Sequence[int], cost_events: Iterable[int]
    ) -> TeamFinding:
        """Return a finding whose cost is the time and tokens of `cost_events`."""
        costly = tuple(sorted(set(cost_events)))
        seconds, tokens = cost(self._view, costly)
        return TeamFinding(kind, agents, tuple(events), seconds, tokens, cost_events=costly)

    def unread_messages(self) -> Iterator[TeamFinding]:
        """Report messages whose target took no later step, and messages that failed."""
        unread: dict[tuple[str, str], list[int]] = {}
        for index in self._of_type(EventType.MESSAGE):
            event, target = self._events[index], self._events[index].target
            if not target or target == event.agent or target in self._people or target in self._scripts:
                continue
            is_read = any(self._events[later].agent == target for later in self._outgoing.get(index, ()))
            is_read = is_read or (event.status not in _FAILED and self._may_have_read(target, index))
            if not is_read:
                unread.setdefault((event.agent, target), []).append(index)
        for agents, messages in unread.items():
            cost_events = self._causes(messages) | self._answers_awaited(messages)
            yield self.finding(FindingKind.UNREAD_MESSAGE, agents, messages, cost_events)

    def _may_have_read(self, target: str, index: int) -> bool:
        """Return True if a target acted after a message, was then despawned by another agent, or has no logged work."""
        event = self._events[index]
        for end in self._view.lifecycle.despawns.get(target, ()):
            despawn = self._events[end]
            if not despawn.inferred and despawn.agent != target and despawn.t >= event.t:
                return True  # the message may have announced the end
        return target not in self._steps or self._acts_after(target, index)

    def _acts_after(self, agent: str, index: int) -> bool:
        """Return True if an agent begins a step at the time of an event or later, within the skew of the clocks."""
        steps = self._steps.get(agent, [])
        clock = self._view.trace.clock
        return bool(steps) and steps[-1] >= self._times.starts[index] - clock.skew * SECONDS[clock.unit]

    def _last_end(self, agent: str) -> float:
        """Return the end of an agent's last step; -1 if it has none."""
        finished = self._times.indices_by_end.get(agent, ())
        return max((self._times.ends[n] for n in finished if self._events[n].type in WORKING), default=-1.0)

    def _causes(self, indices: Iterable[int]) -> set[int]:
        """Return the model answers that led to some events of the same agent."""
        return {
            source
            for index in indices
            for source in self._times.incoming[index]
            if self._events[source].type in ANSWER_TYPES and self._events[source].agent == self._events[index].agent
        }

    def _answers_awaited(self, messages: Iterable[int]) -> set[int]:
        """Return the open model calls that directly follow a message of the same agent: perhaps waits for a reply."""
        open_calls = {call.event for call in self._view.open_calls if call.cause is Cause.ANSWER}
        if not open_calls:
            return set()
        awaited = set()
        for index in messages:
            of_sender, start = self._times.indices_by_agent[self._events[index].agent], self._times.starts[index]
            later = islice(of_sender, bisect_left(of_sender, start, key=self._times.starts.__getitem__), None)
            next_step = next((other for other in later if other != index and self._events[other].type in WORKING), -1)
            if next_step in open_calls:
                awaited.add(next_step)
        return awaited

    def unapproved_effects(self) -> Iterator[TeamFinding]:
        """Report executed calls with side effects that untrusted content could have influenced and no person approved.

        A log that does not record granted approvals has no such findings.
        """
        if not self._view.untrusted or not records_approvals(self._view.trace):
            return
        in_context = self._view.influence.in_context
        by_tool: dict[tuple[str, str], list[int]] = {}
        for call in self._view.effectful_calls:
            if call.executed and call.event in in_context and call.outcome is not Outcome.APPROVED:
                event = self._events[call.event]
                by_tool.setdefault((event.agent, event.tool), []).append(call.event)
        for (agent, tool), calls in by_tool.items():
            yield self.finding(FindingKind.UNAPPROVED_EFFECT, (agent,), calls, ())._replace(tool=tool)

    def unused_results(self) -> Iterator[TeamFinding]:
        """Report returns that the receiver did not use: no edge leads to its events, or it took no later step."""
        returns = self._of_type(EventType.RETURN)
        receivers = {n: self._events[n].target or self._parents.get(self._events[n].agent, "") for n in returns}
        used = {n for n in returns if any(self._events[m].agent == receivers[n] for m in self._outgoing.get(n, ()))}
        last_returns: dict[str, float] = {}
        last_ends: dict[str, float] = {}
        for index in returns:
            event, receiver = self._events[index], receivers[index]
            since, until = last_returns.get(event.agent, self._times.begin), self._times.starts[index]
            last_returns[event.agent] = until
            is_seen = receiver in self._steps and receiver not in self._people and receiver not in self._scripts
            if index in used or event.status in _FAILED or not is_seen:
                continue
            if receiver not in last_ends:
                last_ends[receiver] = self._last_end(receiver)
            if not used and last_ends[receiver] > until:
                continue  # no return in this trace has an edge, so a receiver that continues may have used it
            work = [n for n in self._work_below(event.agent) if since <= self._times.starts[n] < until]
            finding = self.finding(FindingKind.UNUSED_RESULT, (event.agent, receiver), (index,), work)
            yield finding._replace(seconds=finding.seconds or 0.0)

    def without_return(self) -> Iterator[TeamFinding]:
        """Report spawned agents that sent nothing back: no return, no message, no edge, no stop."""
        for agent, spawns in self._view.lifecycle.spawns.items():
            if agent in self._people:
                continue
            index = spawns[-1]
            since = self._times.starts[index]
            if any(self._times.starts[n] >= since for n in self._outputs(agent)):
                continue
            work = [n for n in self._work_below(agent) if self._times.starts[n] >= since]
            yield self.finding(FindingKind.NO_RETURN, (agent, self._events[index].agent), (index,), work)

    def _outputs(self, agent: str) -> Iterator[int]:
        """Yield the messages, returns and stops of an agent, and its events with edges to agents not below it."""
        for index in self._times.indices_by_agent.get(agent, ()):
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
        """Report successful calls of one tool with the same arguments by several agents of one parent."""
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
                first_calls: dict[str, int] = {}
                for index in indices:
                    first_calls.setdefault(self._events[index].agent, index)
                repeated = [n for n in first_calls.values() if n != indices[0]]
                finding = self.finding(FindingKind.REPEATED_CALL, siblings, tuple(first_calls.values()), repeated)
                yield finding._replace(tool=tool)

    def idle_leads(self) -> Iterator[TeamFinding]:
        """Report agents that idled while agents below them had begun something and none of these worked.

        Open calls count as waits here. Idle time reported for an agent is not reported again for those above it.
        Agents deeper than `_MAX_LEAD_DEPTH` count as part of the team above, but are not checked themselves: that
        would take too long in a long chain of agents.
        """
        if_waiting, starts = self._view.timing_if_waiting, self._times.starts
        unknown = {self._events[n].agent for n in self._times.unknown}
        team_findings: list[TeamFinding] = []
        subtrees: list[tuple[int, _Subtree]] = []  # the depth and subtree of each agent not yet joined to its parent
        deep = _Subtree([], [], [], [])
        for agent in reversed(self._view.agents):
            worked = [(if_waiting.begins[n], if_waiting.ends[n]) for n in agent.events if if_waiting.works[n] > 0]
            if agent.depth > _MAX_LEAD_DEPTH:
                deep.busy.extend(worked)
                deep.engaged.extend(self._engaged(agent))
                deep.events.extend(agent.events)
                deep = deep._replace(has_unknown=deep.has_unknown or agent.agent in unknown)
                continue
            parts = [deep, _Subtree([], [], [], [], agent.agent in unknown)]
            deep = _Subtree([], [], [], [])
            while subtrees and subtrees[-1][0] > agent.depth:
                _, subtree = subtrees.pop()
                parts.append(subtree)
            team = _Subtree(
                union(interval for part in parts for interval in part.busy),
                union(interval for part in parts for interval in part.engaged),
                union(interval for part in parts for interval in part.reported),
                [event for part in parts for event in part.events],
                any(part.has_unknown for part in parts),
            )
            busy = union([*team.busy, *worked])
            engaged = union((max(begin, agent.begin), min(end, agent.end)) for begin, end in team.engaged)
            gaps = [] if team.has_unknown else without(engaged, union([*busy, *team.reported]))
            idle = length(gaps)
            reported = team.reported
            if idle >= self._least_idle and agent.agent not in self._people:
                reported = union([*reported, *gaps])
                indices = sorted({*agent.events, *team.events}, key=starts.__getitem__)
                begins = [starts[n] for n in indices]
                places = (bisect_left(begins, end) for _, end in gaps)  # of the events that end the gaps
                events = tuple(dict.fromkeys(indices[place] for place in places if place < len(indices)))
                team_findings.append(TeamFinding(FindingKind.IDLE_LEAD, (agent.agent,), events, idle, None))
            engaged = union([*team.engaged, *self._engaged(agent)])
            whole = _Subtree(busy, engaged, reported, [*team.events, *agent.events], team.has_unknown)
            subtrees.append((agent.depth, whole))
        return iter(team_findings[::-1])

    def _engaged(self, agent_span: AgentSpan) -> Iterator[tuple[float, float]]:
        """Yield the intervals in which an agent had something begun: its steps, and the time until the next one.

        A return, stop, despawn or message finishes what it had begun.
        """
        starts, ends = self._times.starts, self._times.ends
        free = -1.0  # the end of its last step; below 0 while nothing is begun
        for index in self._times.indices_by_agent.get(agent_span.agent, ()):
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
        """Return the waits of agents whose next event depended on another agent.

        A wait lasts from the end of all that the agent had begun to the end of the last event of another agent that
        its next event depends on. An agent does not wait before its first event, nor after its return or stop.
        """
        waits_by_pair: dict[tuple[str, str], list[tuple[float, int]]] = {}
        starts, ends, incoming = self._times.starts, self._times.ends, self._times.incoming
        for agent, indices in self._times.indices_by_agent.items():
            if agent in self._people:
                continue
            free = -1.0  # the end of all that it had begun; below 0 before its first event and after a return or stop
            for index in indices:
                others = [n for n in incoming[index] if self._events[n].agent not in (agent, *self._people)]
                if others and free >= 0:
                    last = max(others, key=lambda n: min(ends[n], starts[index]))
                    seconds = min(ends[last], starts[index]) - free
                    if seconds > 0:
                        waits_by_pair.setdefault((agent, self._events[last].agent), []).append((seconds, index))
                free = -1.0 if self._events[index].type in _ENDS else max(free, ends[index])
        totals = [
            Wait(agent, awaited, sum(seconds for seconds, _ in waits), tuple(index for _, index in waits))
            for (agent, awaited), waits in waits_by_pair.items()
        ]
        return sorted(totals, key=lambda wait: (-wait.seconds, wait.agent, wait.awaited))

    def _of_type(self, kind: EventType) -> list[int]:
        """Return the indices of the events of a type that are on the clock, by time."""
        on_clock = [n for n in self._times.graph.indices_by_type.get(kind, ()) if n not in self._times.off_clock]
        return sorted(on_clock, key=self._times.starts.__getitem__)

    def _work_below(self, agent: str) -> Iterator[int]:
        """Yield the indices of the events of an agent and of all agents below it."""
        yield from self._times.indices_by_agent.get(agent, ())
        place = self._places.get(agent)
        if place is None:
            return
        spans = self._view.agents
        depth = spans[place].depth
        for span in takewhile(lambda span: span.depth > depth, islice(spans, place + 1, None)):
            yield from self._times.indices_by_agent.get(span.agent, ())

    def _is_stand_in(self, index: int) -> bool:
        """Return True if the importer made up an event to represent an agent without records."""
        event = self._events[index]
        return event.inferred and not (event.model or isinstance(event.tokens, Tokens) or event.content_ref)


class _Subtree(NamedTuple):
    """Agents of a part of the tree.

    Attributes:
        busy: When any of them works.
        engaged: When any of them has something begun.
        reported: The idle time that is already in a finding.
        events: The indices of their events.
        has_unknown: Whether any of their events has no known end.
    """

    busy: Intervals
    engaged: Intervals
    reported: Intervals
    events: list[int]
    has_unknown: bool = False
