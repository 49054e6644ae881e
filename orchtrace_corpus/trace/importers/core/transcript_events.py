"""Events from transcripts: the steps of each agent become the events of one run, with the edges between them.

Four things are inferred. A model whose request is not dated begins to answer when its input is there: with the last
message, result or return, or the end of its answer before. A person is waited for from the end of a turn to the first
message; a turn ends with an answer that calls no tool, or when a person interrupts it or refuses a call. A sub-agent
without a transcript works from spawn to return. A spawned agent ends with its last act.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from math import inf
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import UNSET, Struct

from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, ToolCall, ToolResult
from orchtrace_corpus.trace.model.import_report import Problem
from orchtrace_corpus.trace.model.terms import AgentKind, EdgeType, EventType, Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Event, Tokens, Turn

_INFERENCE, _MESSAGE, _CAUSAL, _TOOL = EventType.INFERENCE, EventType.MESSAGE, EdgeType.CAUSAL, EdgeType.TOOL
_TOOL_CALL, _TOOL_RESULT = EventType.TOOL_CALL, EventType.TOOL_RESULT
_TOOL_USE, _ASK, _SEND, _REJECTED = steps.TOOL, steps.ASK, steps.MESSAGE, steps.REJECTED
_T, _TIME = attrgetter("t"), attrgetter("time")
_TEMPORAL = EdgeType.TEMPORAL
_TURN_TOLERANCE = 1.0
"""The number of seconds by which a turn may be longer than its rows, which are written a moment late."""
_STARTS = frozenset((EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.SPAWN))
"""Events with which an agent begins its work."""
_FROM_OTHERS = frozenset((steps.Delivery, steps.Return))
_OF_OTHERS = frozenset((EventType.RETURN, EventType.MESSAGE))
"""Events that are also about another agent: none of them is an agent's last act."""


def add_events(transcripts: Sequence[steps.Transcript], builder: Builder) -> None:
    """Add the events of all transcripts, whose steps have times and links to one another."""
    run = _Run(transcripts, builder)
    for transcript in run.transcripts:
        _TranscriptEvents(run, transcript).add()
    run.join_transcripts()
    run.end_agents()
    run.declare()


class _Life(Struct):
    """The state of an agent while events are added."""

    agent: str
    is_warm_up: bool  # True if it only fills caches
    last: float = -inf  # its last time
    step: steps.Step | None = None  # the step at that time


class _Run:
    """The state that the transcripts of a run share: the lives of agents, and the events that join transcripts."""

    def __init__(self, transcripts: Sequence[steps.Transcript], builder: Builder) -> None:
        self.builder = builder
        self.transcripts = steps.parents_first(transcripts)
        self._parents = {transcript.agent: transcript.parent for transcript in transcripts if transcript.parent}
        self._roots = {transcript.agent: transcript for transcript in transcripts if transcript.is_root}
        self._warm_ups = frozenset(transcript.agent for transcript in transcripts if transcript.is_warm_up)
        self._acting = {transcript.agent for transcript in transcripts if transcript.steps}
        self._lives: dict[str, _Life] = {}
        self._spawned: dict[str, list[tuple[float, str]]] = {}
        self._returns: list[tuple[str, str, float]] = []
        self.later: list[tuple[ToolCall, str]] = []  # messages, and the events that depend on them
        self._absent: list[tuple[str, ToolCall]] = []  # spawns of agents without a transcript, with the parents
        self.closed: dict[str, tuple[str, ToolCall]] = {}  # the agent and call that end an agent

    def life(self, agent: str) -> _Life:
        """Return the state of an agent."""
        if agent not in self._lives:
            self._lives[agent] = _Life(agent, agent in self._warm_ups)
        return self._lives[agent]

    def begin(self, kind: EventType, life: _Life, step: steps.Step, time: float, end: float | None = None) -> Event:
        """Add an event of an agent, and return it, to which further fields are added."""
        place = step.place
        event = self.builder.begin(kind, life.agent, time, place.file, place.line, end)
        if life.is_warm_up:
            event.warm_up = True
        if time >= life.last:
            life.last, life.step = time, step
        return event

    def emit(self, kind: EventType, agent: str, step: steps.Step, time: float | None = None, **fields: Any) -> str:
        """Add an event with its `end` and further fields, and return its id."""
        event = self.begin(kind, self.life(agent), step, step.time if time is None else time, fields.pop("end", None))
        for name, value in fields.items():
            setattr(event, name, value)
        return event.id

    def spawn(self, agent: str, tool_call: ToolCall) -> None:
        """Add the spawn of an agent, before all of its events."""
        time = tool_call.time
        begins = self._begins.get(tool_call.target, time)
        if begins < time and tool_call.target not in self._spawned:
            if not tool_call.is_inferred:
                self.builder.report.note(Problem.EARLY_CHILD, str(tool_call.place))
            time = begins
        event = self.begin(EventType.SPAWN, self.life(agent), tool_call, time)
        event.target, event.role, event.tool = tool_call.target, tool_call.role, tool_call.tool
        event.call_id, event.content_ref, event.inferred = tool_call.id, tool_call.ref, tool_call.is_inferred
        tool_call.event = event.id
        self._spawned.setdefault(tool_call.target, []).append((time, tool_call.event))
        if tool_call.target not in self._acting:
            self._absent.append((agent, tool_call))

    def give_back(self, agent: str, step: steps.Return) -> str:
        """Add the return of a descendant, or the message of any other agent, and return the id of the event."""
        spawns = self._spawned.get(step.child, [])
        place = bisect_right(spawns, step.time, key=itemgetter(0))
        if step.child not in self._acting and place:
            begin, spawn = spawns[place - 1]
            work = self.emit(EventType.INFERENCE, step.child, step, begin, end=step.time, inferred=True)
            self.builder.edge(spawn, work, EdgeType.SPAWN)
        above = self._parents.get(step.child, agent)
        while above and above != agent:
            above = self._parents.get(above, "")
        kind = EventType.RETURN if above == agent else EventType.MESSAGE
        event = self.begin(kind, self.life(step.child), step, step.time)
        event.target, event.content_ref, event.inferred = agent, step.ref, step.is_inferred
        event.status, event.error_type = step.status, step.error
        self._returns.append((event.id, step.child, step.time))
        receiver = self.life(agent)
        if step.time >= receiver.last:
            receiver.last, receiver.step = step.time, step
        return event.id

    @cached_property
    def _begins(self) -> dict[str, float]:
        """Return the first known time of each agent, or of one below it."""
        begins: dict[str, float] = {}

        def note(agent: str, time: float) -> None:
            begins[agent] = min(begins.get(agent, time), time)

        for transcript in self.transcripts:
            if transcript.steps:
                note(transcript.agent, min([step.time for step in transcript.steps]))
            if _FROM_OTHERS.isdisjoint(map(type, transcript.steps)):
                continue
            for step in transcript.steps:
                if isinstance(step, steps.Return):
                    note(step.child, step.time)
                elif isinstance(step, steps.Delivery) and step.sender:
                    note(step.sender, step.time)
        for transcript in reversed(self.transcripts):
            if transcript.parent and transcript.agent in begins:
                note(transcript.parent, begins[transcript.agent])
        return begins

    def join_transcripts(self) -> None:
        """Add the edges from spawns to first acts, from last acts to returns, and from messages to answers."""
        children = *self._spawned, *(child for _, child, _ in self._returns)
        events_of: dict[str, list[Event]] = {child: [] for child in children}
        for event in self.builder.events.values() if events_of else ():
            if event.agent in events_of and event.type not in _OF_OTHERS:
                events_of[event.agent].append(event)
        for events in events_of.values():
            events.sort(key=_T)
        for child, spawns in self._spawned.items():
            starts = [event for event in events_of[child] if event.type in _STARTS and not event.copied_context]
            for time, spawn in spawns:
                place = bisect_left(starts, time, key=_T)
                if place < len(starts):
                    self.builder.edge(spawn, starts[place].id, EdgeType.SPAWN)
        for returned, child, time in self._returns:
            place = bisect_right(events_of[child], time, key=_T)
            if place:
                self.builder.edge(events_of[child][place - 1].id, returned, EdgeType.CAUSAL)
        for tool_call, target in self.later:
            self.builder.edge(tool_call.event, target, EdgeType.MESSAGE)

    def declare(self) -> None:
        """Declare all agents."""
        self.builder.agent(steps.USER, kind=AgentKind.HUMAN)
        for transcript in self.transcripts:
            if not transcript.aside:
                about = {"role": transcript.role, "model": transcript.model, "parent": transcript.parent}
                self.builder.agent(transcript.agent, kind=transcript.kind, **about)
        for parent, tool_call in self._absent:
            self.builder.agent(tool_call.target, role=tool_call.role, parent=parent, kind=AgentKind.MODEL)

    def end_agents(self) -> None:
        """Despawn each agent that was spawned, and stop the others if their last answer calls no tool."""
        for agent in dict.fromkeys(transcript.agent for transcript in reversed(self.transcripts)):
            if agent in self.closed and agent in self._spawned:
                closer, tool_call = self.closed.pop(agent)
                done = max((tool_call.answer or tool_call).time, self.life(agent).last)
                if closer in self._spawned or closer in self._roots:
                    end = self.emit(EventType.DESPAWN, closer, tool_call, done, target=agent)
                    del self._spawned[agent]
                    self.builder.edge(tool_call.call.event if tool_call.call is not None else "", end, EdgeType.CAUSAL)
        for agent in self._spawned:
            life = self.life(agent)
            if life.step is not None and agent not in self._roots:
                self.emit(EventType.DESPAWN, agent, life.step, life.last, inferred=True)
        for agent, transcript in self._roots.items():
            call = next((step for step in reversed(transcript.steps) if isinstance(step, ModelCall)), None)
            if call is not None and call.final:
                stop = self.emit(EventType.STOP, agent, call, max(self.life(agent).last, call.end), inferred=True)
                self.builder.edge(call.event, stop, EdgeType.CAUSAL)


class _TranscriptEvents:
    """The events of one transcript, one step after another."""

    def __init__(self, run: _Run, transcript: steps.Transcript) -> None:
        self._run = run
        self._builder = run.builder
        self._begin = run.begin
        self._emit = run.emit
        self._edge = run.builder.edge
        self._thread = transcript
        self._agent = transcript.agent
        self._life = run.life(transcript.agent)
        self._is_script = transcript.kind == steps.SCRIPT
        self._ready = NO_TIME  # when the input of the next answer was there
        self._busy = NO_TIME  # when the agent last did something
        self._call = ""  # the event of the last answer
        self._inputs: list[tuple[str, EdgeType]] = []  # the inputs of the next answer, with the types of their edges
        self._deliveries: list[steps.Delivery] = []  # the messages that the next answer reads
        self._returned = False  # True if one of the inputs is a return
        self._is_over = True  # True if its turn is over: the run waits for a person
        self._is_tied = False  # True if an input of the next answer follows from the last answer
        self._question = ""  # the safety event that has a person asked
        self._turn_starts: list[float] = []  # times at which the turn may have begun, the likeliest last
        self._is_prompted = False  # True if there was an input since the last answer of a turn that is over

    def add(self) -> None:
        all_steps = self._thread.steps
        all_steps.sort(key=attrgetter("order"))
        all_steps.sort(key=_TIME)  # steps of one time stay in the order of the log
        local = steps.local_commands(all_steps) if self._thread.is_root else ()
        for step in all_steps:
            if type(step) is ModelCall:
                self._take_call(step)
                continue
            time = step.time
            if type(step) is ToolCall:
                self._take_tool_call(step)
                if time > self._busy:
                    self._busy = time
                continue
            if type(step) is ToolResult:
                self._take_answer(step)
                if time > self._busy:
                    self._busy = time
                if step.error == _REJECTED:
                    self._is_over = True
                step.tool_call = None  # in a circle with its call, it would stay in memory if no collector runs
            elif id(step) in local:
                continue
            elif isinstance(step, steps.TurnEnd):
                self._end_turn(step)
                continue
            else:
                # a turn begins with the first text after the turn before, or with what a person typed
                is_typed = isinstance(step, steps.UserInput) and step.waited
                is_first = is_typed or (self._is_over and not self._is_prompted)
                if is_first and not (isinstance(step, steps.Note) and step.prolongs):
                    self._turn_starts.append(time)
                    self._is_prompted = True
                self._take_other(step)
            self._ready = time

    def _end_turn(self, step: steps.TurnEnd) -> None:
        starts, self._turn_starts, self._is_prompted = self._turn_starts, [], False
        if step.since != NO_TIME:
            starts = [step.since]
        long_enough = [start for start in starts if step.time - start >= step.run_time - _TURN_TOLERANCE]
        if long_enough:
            turn = Turn(self._agent, long_enough[-1], step.time, step.run_time, step.excludes)
            self._builder.turns.append(turn)
        elif starts:
            self._builder.report.note(Problem.TURN_LONGER_THAN_ROWS, str(step.place))

    def _take_other(self, step: steps.Step) -> None:
        match step:
            case steps.UserInput():
                self._take_typed(step)
            case steps.Return():
                self._inputs.append((self._run.give_back(self._agent, step), EdgeType.RETURN))
                self._returned = True
            case steps.Delivery() if step.sent is not None:
                self._deliveries.append(step)
            case steps.Delivery() if step.sender:
                message = self._emit(_MESSAGE, step.sender, step, target=self._agent, content_ref=step.ref)
                self._inputs.append((message, EdgeType.MESSAGE))
            case steps.Notice() if step.tool_call is not None and step.tool_call.event:
                self._inputs.append((step.tool_call.event, _TOOL))
            case steps.SafetyEvent():
                alarm = self._begin(EventType.SAFETY, self._life, step, step.time)
                alarm.tool, alarm.status, alarm.error_type = step.tool, step.status, step.error
                alarm.content_ref = step.ref
                cause = self._call if step.asking is None else step.asking.event
                self._edge(cause, alarm.id, EdgeType.SAFETY)
                self._question = "" if step.status in (Status.ERROR, Status.CANCELLED) else alarm.id
                self._busy = max(self._busy, step.time)
            case steps.CopiedHistory():
                copied = self._begin(_INFERENCE, self._life, step, step.time, step.time)
                copied.tokens = Tokens(**step.tokens) if step.tokens else UNSET
                copied.token_basis, copied.copied_context, copied.inferred = TokenBasis.REPORTED, True, True

    def _take_call(self, call: ModelCall) -> None:
        life, end = self._life, call.end
        kind = _INFERENCE
        if call.decides:
            kind = EventType.DECISION
        elif self._returned:
            kind = EventType.AGGREGATE
        time, begin, previous = call.time, self._ready if self._ready > self._busy else self._busy, self._call
        if not call.is_dated and NO_TIME != begin < time:
            time = begin
        event = self._begin(kind, life, call, time, end)
        call.event = self._call = event.id
        event.inferred = True
        if call.is_dated:
            event.t_request = call.time
        event.model, event.token_basis, event.content_ref = call.model, call.basis, call.ref
        if call.spent is not None:
            event.tokens = call.spent
        if call.error:
            event.status, event.error_type = Status.ERROR, call.error
        if call.more:
            for name, value in call.more.items():
                setattr(event, name, value)
        if end >= life.last:
            life.last, life.step = end, call
        if self._inputs:
            for given, how in self._inputs:
                self._edge(given, event.id, how)
            self._inputs = []
        if not self._is_tied:  # its context contains the answer before, whatever came in between
            self._edge(previous, event.id, _TEMPORAL)
        self._is_tied = self._is_prompted = False
        if self._deliveries:
            for delivery in self._deliveries:
                if delivery.sent is not None:  # its event may be added later
                    self._run.later.append((delivery.sent, event.id))
            self._deliveries = []
        self._returned = False
        if end > self._busy:
            self._busy = end
        self._is_over = call.final

    def _take_tool_call(self, tool_call: ToolCall) -> None:
        purpose, answer = tool_call.purpose, tool_call.answer
        cause = tool_call.call.event if tool_call.call is not None else self._call
        if purpose is _TOOL_USE or purpose is _ASK or purpose is _SEND:
            event = self._begin(_MESSAGE if purpose is _SEND else _TOOL_CALL, self._life, tool_call, tool_call.time)
            if purpose is _SEND:
                event.target = tool_call.target
                self._decide(tool_call.call)
            elif tool_call.id:
                tool_call.id = self._builder.call_id(tool_call.id, tool_call.place)
            tool_call.event = event.id
            event.tool, event.call_id, event.content_ref = tool_call.tool, tool_call.id, tool_call.ref
            if tool_call.more:
                for name, value in tool_call.more.items():
                    setattr(event, name, value)
        elif purpose is steps.SPAWN:
            self._run.spawn(self._agent, tool_call)
            self._decide(tool_call.call)
        elif purpose is steps.CLOSE:
            self._run.closed[tool_call.target] = self._agent, tool_call
        self._edge(cause, tool_call.event, _CAUSAL)
        if self._is_script and self._inputs:  # a script continues when the last of its agents has returned
            self._edge(self._inputs[-1][0], tool_call.event, _TEMPORAL)
        if answer is not None and (purpose is _ASK or answer.error == _REJECTED):
            asked = self._emit(EventType.HUMAN, steps.USER, tool_call, end=answer.time, target=self._agent)
            self._edge(tool_call.event, asked, _CAUSAL)

    def _decide(self, answer: ModelCall | None) -> None:
        """Make an answer that spawns or addresses an agent a decision, whether its event is written or not."""
        if answer is not None:
            answer.decides = True
            if answer.event:
                self._builder.events[answer.event].type = EventType.DECISION

    def _take_answer(self, answer: ToolResult) -> None:
        if answer.is_repeated:
            return
        tool_call = answer.tool_call
        if tool_call is not None and tool_call.purpose is not _TOOL_USE and tool_call.purpose is not _ASK:
            if tool_call.purpose is _SEND and tool_call.event:
                message = self._builder.events[tool_call.event]
                message.status, message.error_type = answer.status, answer.error
            return
        event = self._begin(_TOOL_RESULT, self._life, answer, answer.time)
        event.status, event.error_type, event.content_ref = answer.status, answer.error, answer.ref
        if tool_call is not None and tool_call.event:  # its call is among the transcript's own steps
            event.tool, event.call_id = tool_call.tool, tool_call.id
            self._edge(tool_call.event, event.id, _TOOL)
            if tool_call.call is None or tool_call.call.event == self._call:
                self._is_tied = True
        self._inputs.append((event.id, _TOOL))

    def _take_typed(self, step: steps.UserInput) -> None:
        known = (step.since,) if step.asked else (self._busy, step.since)
        since = next((time for time in known if time != NO_TIME), step.time)
        waited_from = min(since, step.time) if step.asked or (step.waited and self._is_over) else step.time
        self._is_over = step.status is Status.CANCELLED
        self._busy = max(self._busy, step.time) if self._is_over else self._busy
        time, agent, ref, how = step.time, self._agent, step.ref, step.status
        event = self._emit(
            EventType.HUMAN, steps.USER, step, waited_from, end=time, target=agent, content_ref=ref, status=how
        )
        cause = self._inputs[-1][0] if self._inputs else self._call
        if step.asking is not None:  # the log has the call and its result, but not the person's answer
            cause = step.asking.event
            self._builder.events[event].inferred = True
        if step.asking is not None or not self._inputs:
            self._is_tied = True
        self._edge(cause, event, _CAUSAL)
        if step.asked and self._question:  # the answer to what a guard asked
            self._edge(self._question, event, EdgeType.SAFETY)
            self._question = ""
        self._inputs.append((event, _CAUSAL))
