"""Finds problems between agents: unread messages, unused results, agents that never returned, and more.

`docs/diagnosis.md` defines each kind of finding. Findings are conservative: they report nothing that the log does not
show.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice

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

MIN_IDLE_SHARE = 0.02
"""Idle time below this share of the elapsed time is not reported."""

MIN_IDLE_SECONDS = 1.0
"""Idle time of fewer seconds is not reported."""

_FAILED = (Status.ERROR, Status.CANCELLED)
_ENDS = frozenset((EventType.RETURN, EventType.STOP, EventType.DESPAWN))
"""The types of events after which an agent has nothing left to do."""

_REPORTS = _ENDS | {EventType.MESSAGE}
_MAX_LEAD_DEPTH = 32
"""The depth in the agent tree down to which agents are checked for idle time as leads."""

_NO_END = -1.0
"""The end of the last event of an agent that has no event yet, or that has ended. Real times are at least 0."""


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
        agents: The agents involved. In the order of `FindingKind`: sender and target; child and receiver; spawned
            agent and spawner; the siblings; the lead; the agent of the context; the agent of the calls.
        events: The indices of the events involved.
        seconds: The time that the problem cost; None if it is unknown.
        tokens: The tokens that the problem cost; None if no tokens are known.
        tool: The tool of repeated or unapproved calls; empty for other kinds.
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
    def problem_count(self) -> int:
        """The number of problems: of unread messages, of repeated or of unapproved calls; 1 for the other kinds."""
        if self.kind is FindingKind.REPEATED_CALL:
            return len(self.events) - 1  # the first call repeats nothing
        if self.kind in (FindingKind.UNREAD_MESSAGE, FindingKind.UNAPPROVED_EFFECT):
            return len(self.events)
        return 1


class Wait(NamedTuple):
    """All waits of one agent for another.

    Attributes:
        agent: The agent that waited.
        awaited: The agent that it waited for.
        seconds: The total time of the waits.
        events: The indices of the waiting agent's events before which it waited.
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
    finder = _Finder(view)
    largest_contexts = contexts(view)
    findings = (
        *finder.unread_messages(),
        *finder.unused_results(),
        *finder.missing_returns(),
        *finder.repeated_calls(),
        *finder.idle_leads(),
        *finder.large_contexts(largest_contexts),
        *finder.unapproved_effects(),
    )
    return TeamFindings(findings, tuple(finder.waits()), largest_contexts)


def time_and_tokens(view: TraceView, events: Iterable[int]) -> tuple[float | None, float | None]:
    """Return the time in which at least one of some events worked, and their tokens; None for each that is unknown."""
    times, indices = view.timing, frozenset(events)
    if not indices:
        return None, None
    worked = ((times.work_starts[index], times.ends[index]) for index in indices if times.works[index] > 0)
    seconds = length(union(worked))
    totals = []
    for index in indices:
        event = times.graph.events[index]
        if isinstance(event.tokens, Tokens) and not event.copied_context:
            totals.append(total(event.tokens))
    return seconds, sum(totals) if totals else None


class _Finder:
    """Finds the problems between the agents of one run."""

    def __init__(self, view: TraceView) -> None:
        self._view, self._times = view, view.timing
        self._events: Sequence[Event] = self._times.graph.events
        self._people = {agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN}
        self._scripts = {agent.id for agent in view.trace.agents if agent.kind is AgentKind.TOOL}
        self._parents = view.lifecycle.parents
        self._tree_positions = {span.agent: position for position, span in enumerate(view.agents)}
        self._min_idle = MIN_IDLE_SHARE * self._times.elapsed
        if self._times.unit == "s":
            self._min_idle = max(self._min_idle, MIN_IDLE_SECONDS)
        self._targets: dict[int, list[int]] = {}  # for each event, those that its edges lead to
        for source, target in zip(self._times.graph.sources, self._times.graph.targets, strict=True):
            self._targets.setdefault(source, []).append(target)
        # When each agent began its steps, in ascending order; without agents whose work the log does not show.
        self._step_starts: dict[str, list[float]] = {}
        for agent, indices in self._times.indices_by_agent.items():
            steps = [index for index in indices if self._events[index].type in WORKING and not self._is_stand_in(index)]
            if steps:
                self._step_starts[agent] = [self._times.starts[index] for index in steps]

    def finding(
        self, kind: FindingKind, agents: tuple[str, ...], events: Sequence[int], cost_events: Iterable[int]
    ) -> TeamFinding:
        """Return a finding whose cost is the time and tokens of `cost_events`."""
        costly = tuple(sorted(set(cost_events)))
        seconds, tokens = time_and_tokens(self._view, costly)
        return TeamFinding(kind, agents, tuple(events), seconds, tokens, cost_events=costly)

    def large_contexts(self, largest_contexts: Iterable[Context]) -> Iterator[TeamFinding]:
        """Report agents with answers whose context filled more than half of the window of their model."""
        for context in largest_contexts:
            if context.past_half:
                yield self.finding(FindingKind.LARGE_CONTEXT, (context.agent,), context.past_half, context.past_half)

    def unread_messages(self) -> Iterator[TeamFinding]:
        """Report messages whose target took no later step, and messages that failed."""
        unread: dict[tuple[str, str], list[int]] = {}
        for index in self._events_of_type(EventType.MESSAGE):
            event, target = self._events[index], self._events[index].target
            if not target or target == event.agent or target in self._people or target in self._scripts:
                continue
            has_edge = any(self._events[later].agent == target for later in self._targets.get(index, ()))
            is_delivered = event.status not in _FAILED
            if not has_edge and not (is_delivered and self._may_have_read(target, index)):
                unread.setdefault((event.agent, target), []).append(index)
        for agents, messages in unread.items():
            cost_events = self._answers_before(messages) | self._open_answers_after(messages)
            yield self.finding(FindingKind.UNREAD_MESSAGE, agents, messages, cost_events)

    def _may_have_read(self, target: str, message: int) -> bool:
        """Return True if a target acted after a message, was then despawned by another agent, or has no logged work."""
        sent = self._events[message].t
        for despawn in self._view.lifecycle.despawns.get(target, ()):
            event = self._events[despawn]
            if not event.inferred and event.agent != target and event.t >= sent:
                return True  # the message may have announced the despawn
        if target not in self._step_starts:
            return True
        clock = self._view.trace.clock
        last_step = self._step_starts[target][-1]
        return last_step >= self._times.starts[message] - clock.skew * SECONDS[clock.unit]

    def _answers_before(self, messages: Iterable[int]) -> set[int]:
        """Return the senders' model answers from which an edge leads to one of the messages."""
        answers = set()
        for message in messages:
            for source in self._times.incoming[message]:
                event = self._events[source]
                if event.type in ANSWER_TYPES and event.agent == self._events[message].agent:
                    answers.add(source)
        return answers

    def _open_answers_after(self, messages: Iterable[int]) -> set[int]:
        """Return the open model calls that directly follow a message of the same agent: perhaps waits for a reply."""
        open_calls = {call.event for call in self._view.open_calls if call.cause is Cause.ANSWER}
        if not open_calls:
            return set()
        starts = self._times.starts
        answers = set()
        for sent in messages:
            events_of_sender = self._times.indices_by_agent[self._events[sent].agent]
            first_position = bisect_left(events_of_sender, starts[sent], key=starts.__getitem__)
            for index in islice(events_of_sender, first_position, None):
                if index != sent and self._events[index].type in WORKING:  # the sender's next step
                    if index in open_calls:
                        answers.add(index)
                    break
        return answers

    def unapproved_effects(self) -> Iterator[TeamFinding]:
        """Report executed calls with side effects that untrusted content could have influenced and no person approved.

        A log that does not record granted approvals has no such findings.
        """
        if not self._view.untrusted or not records_approvals(self._view.trace):
            return
        in_context = self._view.influence.in_context
        calls_by_agent_and_tool: dict[tuple[str, str], list[int]] = {}
        for call in self._view.effectful_calls:
            if call.executed and call.event in in_context and call.outcome is not Outcome.APPROVED:
                event = self._events[call.event]
                calls_by_agent_and_tool.setdefault((event.agent, event.tool), []).append(call.event)
        for (agent, tool), calls in calls_by_agent_and_tool.items():
            yield self.finding(FindingKind.UNAPPROVED_EFFECT, (agent,), calls, ())._replace(tool=tool)

    def unused_results(self) -> Iterator[TeamFinding]:
        """Report returns that the receiver did not use: no edge leads to its events, or it took no later step."""
        returns = self._events_of_type(EventType.RETURN)
        receivers: dict[int, str] = {}
        used = set()  # the returns with an edge to an event of the receiver
        for index in returns:
            event = self._events[index]
            receivers[index] = event.target or self._parents.get(event.agent, "")
            if any(self._events[target].agent == receivers[index] for target in self._targets.get(index, ())):
                used.add(index)
        last_return: dict[str, float] = {}  # when each agent returned last
        last_ends: dict[str, float] = {}  # when the last step of each receiver ended
        for index in returns:
            event, receiver = self._events[index], receivers[index]
            since = last_return.get(event.agent, self._times.begin)
            until = self._times.starts[index]
            last_return[event.agent] = until
            is_seen = receiver in self._step_starts and receiver not in self._people and receiver not in self._scripts
            if index in used or event.status in _FAILED or not is_seen:
                continue
            if not used:
                if receiver not in last_ends:
                    last_ends[receiver] = self._last_end(receiver)
                if last_ends[receiver] > until:
                    continue  # no return in this trace has an edge, so a receiver that continues may have used it
            work = [step for step in self._work_below(event.agent) if since <= self._times.starts[step] < until]
            finding = self.finding(FindingKind.UNUSED_RESULT, (event.agent, receiver), (index,), work)
            yield finding._replace(seconds=finding.seconds or 0.0)

    def _last_end(self, agent: str) -> float:
        """Return when the last step of an agent ended; -1 for an agent without steps, before all times."""
        events = self._times.indices_by_end.get(agent, ())
        return max((self._times.ends[index] for index in events if self._events[index].type in WORKING), default=-1.0)

    def missing_returns(self) -> Iterator[TeamFinding]:
        """Report spawned agents that sent nothing back: no return, no message, no edge, no stop."""
        for agent, spawns in self._view.lifecycle.spawns.items():
            if agent in self._people:
                continue
            last_spawn = spawns[-1]
            since = self._times.starts[last_spawn]
            if any(self._times.starts[index] >= since for index in self._outputs(agent)):
                continue
            work = [index for index in self._work_below(agent) if self._times.starts[index] >= since]
            spawner = self._events[last_spawn].agent
            yield self.finding(FindingKind.NO_RETURN, (agent, spawner), (last_spawn,), work)

    def _outputs(self, agent: str) -> Iterator[int]:
        """Yield the messages, returns and stops of an agent, and its events with edges to agents not below it."""
        for index in self._times.indices_by_agent.get(agent, ()):
            event = self._events[index]
            is_message = event.type is EventType.MESSAGE and event.target not in (agent, "")
            if is_message or event.type in (EventType.RETURN, EventType.STOP):
                yield index
            elif event.type is not EventType.DESPAWN:
                for target in self._targets.get(index, ()):
                    target_agent = self._events[target].agent
                    if target_agent != agent and not self._view.lineage.is_above(agent, target_agent):
                        yield index

    def repeated_calls(self) -> Iterator[TeamFinding]:
        """Report successful calls of one tool with the same arguments by several agents of one parent."""
        failed_call_ids = set()
        for index in self._events_of_type(EventType.TOOL_RESULT):
            if self._events[index].status in _FAILED:
                failed_call_ids.add(self._events[index].call_id)
        equal_calls: dict[tuple[str, str, str], list[int]] = {}  # by parent, tool and content
        for index in self._events_of_type(EventType.TOOL_CALL):
            event = self._events[index]
            parent = self._parents.get(event.agent, "")
            is_failed = event.status in _FAILED or (event.call_id and event.call_id in failed_call_ids)
            if parent and event.tool and event.tool not in CLOSING_TOOLS and event.content_ref and not is_failed:
                equal_calls.setdefault((parent, event.tool, event.content_ref), []).append(index)
        for (_, tool, _), calls in equal_calls.items():
            first_call_by_agent: dict[str, int] = {}
            for call in calls:
                first_call_by_agent.setdefault(self._events[call].agent, call)
            if len(first_call_by_agent) > 1:
                siblings, first_calls = tuple(first_call_by_agent), tuple(first_call_by_agent.values())
                finding = self.finding(FindingKind.REPEATED_CALL, siblings, first_calls, cost_events=first_calls[1:])
                yield finding._replace(tool=tool)

    def idle_leads(self) -> Iterator[TeamFinding]:
        """Report leads that idled while agents below them were engaged, but none of these worked.

        An agent is engaged while it works, and from the end of a step to its next step: see `_engaged_intervals`.
        Open calls count as waits here. Idle time that is reported for an agent is not reported again for agents above
        it. Agents deeper than `_MAX_LEAD_DEPTH` count as part of the team above, but are not checked themselves: that
        would take too long in a long chain of agents.
        """
        if_waiting = self._view.timing_if_waiting
        agents_with_unknown = {self._events[index].agent for index in self._times.unknown}
        team_findings: list[TeamFinding] = []
        # Agents are visited from the leaves to the roots, so those below an agent come before it.
        subtrees: list[tuple[int, _Subtree]] = []  # the depth and subtree of each agent not yet joined to its parent
        too_deep = _Subtree([], [], [], [])
        for agent in reversed(self._view.agents):
            work = [
                (if_waiting.work_starts[index], if_waiting.ends[index])
                for index in agent.events
                if if_waiting.works[index] > 0
            ]
            has_unknown = agent.agent in agents_with_unknown
            if agent.depth > _MAX_LEAD_DEPTH:
                too_deep.busy.extend(work)
                too_deep.engaged.extend(self._engaged_intervals(agent))
                too_deep.events.extend(agent.events)
                too_deep = too_deep._replace(has_unknown=too_deep.has_unknown or has_unknown)
                continue
            parts = [too_deep]
            too_deep = _Subtree([], [], [], [])
            while subtrees and subtrees[-1][0] > agent.depth:
                _, subtree = subtrees.pop()
                parts.append(subtree)
            below = _join_subtrees(parts)
            has_unknown = has_unknown or below.has_unknown
            busy = union([*below.busy, *work])
            idle: Intervals = []
            if not has_unknown:
                engaged_in_life = union((max(begin, agent.begin), min(end, agent.end)) for begin, end in below.engaged)
                idle = without(engaged_in_life, union([*busy, *below.reported]))
            idle_time = length(idle)
            reported = below.reported
            if idle_time >= self._min_idle and agent.agent not in self._people:
                reported = union([*reported, *idle])
                events = self._first_events_after(idle, {*agent.events, *below.events})
                team_findings.append(TeamFinding(FindingKind.IDLE_LEAD, (agent.agent,), events, idle_time, None))
            engaged = union([*below.engaged, *self._engaged_intervals(agent)])
            subtree = _Subtree(busy, engaged, reported, [*below.events, *agent.events], has_unknown)
            subtrees.append((agent.depth, subtree))
        return reversed(team_findings)

    def _first_events_after(self, intervals: Intervals, events: Iterable[int]) -> tuple[int, ...]:
        """Return, for each interval, the first of some events that starts at its end or later."""
        starts = self._times.starts
        events_by_start = sorted(events, key=starts.__getitem__)
        first_events = []
        for _, end in intervals:
            position = bisect_left(events_by_start, end, key=starts.__getitem__)
            if position < len(events_by_start):
                first_events.append(events_by_start[position])
        return tuple(dict.fromkeys(first_events))

    def _engaged_intervals(self, agent_span: AgentSpan) -> Iterator[tuple[float, float]]:
        """Yield the intervals in which an agent was engaged: its events, and the time from each step to the next.

        After a return, stop, despawn or message, it is not engaged until its next event.
        """
        starts, ends = self._times.starts, self._times.ends
        last_end = _NO_END  # of the steps so far
        for index in self._times.indices_by_agent.get(agent_span.agent, ()):
            kind = self._events[index].type
            if kind in WORKING and last_end != _NO_END and last_end < starts[index]:
                yield last_end, starts[index]
            if ends[index] > starts[index]:
                yield starts[index], ends[index]
            if kind in _REPORTS:
                last_end = _NO_END
            elif kind in WORKING:
                last_end = max(last_end, ends[index])

    def waits(self) -> list[Wait]:
        """Return the waits of agents whose next event depended on another agent, the longest first.

        A wait begins when all earlier events of the agent have ended. It ends with the last event of another agent
        from which an edge leads to the agent's next event. An agent does not wait before its first event, nor after
        its return, stop or despawn.
        """
        waits_by_pair: dict[tuple[str, str], list[tuple[float, int]]] = {}  # the duration and the event after a wait
        starts, ends, incoming = self._times.starts, self._times.ends, self._times.incoming
        for agent, indices in self._times.indices_by_agent.items():
            if agent in self._people:
                continue
            last_end = _NO_END  # of the events so far
            for index in indices:
                sources = [
                    source for source in incoming[index] if self._events[source].agent not in (agent, *self._people)
                ]
                if sources and last_end != _NO_END:
                    last_source = max(sources, key=lambda source: min(ends[source], starts[index]))
                    seconds = min(ends[last_source], starts[index]) - last_end
                    if seconds > 0:
                        awaited = self._events[last_source].agent
                        waits_by_pair.setdefault((agent, awaited), []).append((seconds, index))
                last_end = max(last_end, ends[index])
                if self._events[index].type in _ENDS:
                    last_end = _NO_END
        waits = []
        for (agent, awaited), single_waits in waits_by_pair.items():
            total_seconds = sum(seconds for seconds, _ in single_waits)
            waits.append(Wait(agent, awaited, total_seconds, tuple(index for _, index in single_waits)))
        return sorted(waits, key=lambda wait: (-wait.seconds, wait.agent, wait.awaited))

    def _events_of_type(self, kind: EventType) -> list[int]:
        """Return the indices of the events of a type that are on the clock, by time."""
        indices = self._times.graph.indices_by_type.get(kind, ())
        on_clock = [index for index in indices if index not in self._times.off_clock]
        return sorted(on_clock, key=self._times.starts.__getitem__)

    def _work_below(self, agent: str) -> Iterator[int]:
        """Yield the indices of the events of an agent and of all agents below it."""
        yield from self._times.indices_by_agent.get(agent, ())
        position = self._tree_positions.get(agent)
        if position is None:
            return
        spans = self._view.agents  # in depth-first order, so the agents below an agent follow it
        for span in islice(spans, position + 1, None):
            if span.depth <= spans[position].depth:
                break
            yield from self._times.indices_by_agent.get(span.agent, ())

    def _is_stand_in(self, index: int) -> bool:
        """Return True if the importer made up an event to represent an agent without records."""
        event = self._events[index]
        return event.inferred and not (event.model or isinstance(event.tokens, Tokens) or event.content_ref)


class _Subtree(NamedTuple):
    """The agents of a part of the agent tree.

    Attributes:
        busy: The intervals in which at least one of these agents works.
        engaged: The intervals in which at least one of them is engaged.
        reported: The idle time that is already in a finding.
        events: The indices of their events.
        has_unknown: True if the duration of any of their working events is unknown.
    """

    busy: Intervals
    engaged: Intervals
    reported: Intervals
    events: list[int]
    has_unknown: bool = False


def _join_subtrees(subtrees: Sequence[_Subtree]) -> _Subtree:
    """Return the agents of several subtrees as one subtree."""
    return _Subtree(
        busy=union(interval for subtree in subtrees for interval in subtree.busy),
        engaged=union(interval for subtree in subtrees for interval in subtree.engaged),
        reported=union(interval for subtree in subtrees for interval in subtree.reported),
        events=[event for subtree in subtrees for event in subtree.events],
        has_unknown=any(subtree.has_unknown for subtree in subtrees),
    )
