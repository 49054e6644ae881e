"""Make the events and edges of a run from the transcripts of its agents.

Four things are inferred. If the log does not date a request, the answer begins when its input is complete: at the last
message, result or return, or at the end of the previous answer. The run waits for a person from the end of a turn to
the next input. A turn ends with an answer that calls no tool, or when a person interrupts it or refuses a call. A
sub-agent without a transcript works from its spawn to its return. A spawned agent ends with its last event.
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
_TOOL_PURPOSE, _ASK_PURPOSE, _MESSAGE_PURPOSE, _REJECTED = steps.TOOL, steps.ASK, steps.MESSAGE, steps.REJECTED
_TEMPORAL = EdgeType.TEMPORAL
_BY_EVENT_TIME, _BY_STEP_TIME = attrgetter("t"), attrgetter("time")
_TURN_TOLERANCE = 1.0
"""The seconds by which a turn may be longer than the time between its rows, which are written a little late."""
_FIRST_ACTS = frozenset((EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.SPAWN))
"""The types of events with which an agent begins its work."""
_ARRIVALS = frozenset((steps.Delivery, steps.Return))
"""The types of steps that show when another agent was at work."""
_ABOUT_OTHERS = frozenset((EventType.RETURN, EventType.MESSAGE))
"""The types of events that cannot be an agent's last act, on which its return depends."""


def add_events(transcripts: Sequence[steps.Transcript], builder: Builder) -> None:
    """Add the events and edges of all transcripts. Their steps must have times, and links to one another."""
    run = _RunEvents(transcripts, builder)
    for transcript in run.transcripts:
        _TranscriptEvents(run, transcript).add()
    run.join_transcripts()
    run.end_agents()
    run.declare()


class _AgentState(Struct):
    """The state of an agent while events are added."""

    agent: str
    is_warm_up: bool  # True if it only fills caches
    last: float = -inf  # the time of its last event so far
    step: steps.Step | None = None  # the step at that time


class _RunEvents:
    """The state that the transcripts of a run share, and the events and edges that join transcripts."""

    def __init__(self, transcripts: Sequence[steps.Transcript], builder: Builder) -> None:
        self.builder = builder
        self.transcripts = steps.parents_first(transcripts)
        self._parents = {transcript.agent: transcript.parent for transcript in transcripts if transcript.parent}
        self._roots = {transcript.agent: transcript for transcript in transcripts if transcript.is_root}
        self._warm_ups = frozenset(transcript.agent for transcript in transcripts if transcript.is_warm_up)
        self._acting = {transcript.agent for transcript in transcripts if transcript.steps}
        self._states: dict[str, _AgentState] = {}
        self._spawned: dict[str, list[tuple[float, str]]] = {}  # times and events of the spawns, by agent
        self._returns: list[tuple[str, str, float]] = []  # event, agent and time of each return
        self._unlogged: list[tuple[str, ToolCall]] = []  # parent and spawn of each agent without a transcript
        self.read_messages: list[tuple[ToolCall, str]] = []  # each message with the event of an answer that reads it
        self.closed: dict[str, tuple[str, ToolCall]] = {}  # by agent: the agent and the call that end it

    def state(self, agent: str) -> _AgentState:
        """Return the state of an agent."""
        if agent not in self._states:
            self._states[agent] = _AgentState(agent, agent in self._warm_ups)
        return self._states[agent]

    def begin(
        self, kind: EventType, state: _AgentState, step: steps.Step, time: float, end: float | None = None
    ) -> Event:
        """Add an event of an agent, and return it; callers set its other fields."""
        place = step.place
        event = self.builder.begin(kind, state.agent, time, place.file, place.line, end)
        if state.is_warm_up:
            event.warm_up = True
        if time >= state.last:
            state.last, state.step = time, step
        return event

    def emit(self, kind: EventType, agent: str, step: steps.Step, time: float | None = None, **fields: Any) -> str:
        """Add an event with its `end` and other fields, and return its id; `time` is None for the time of the step."""
        event = self.begin(kind, self.state(agent), step, step.time if time is None else time, fields.pop("end", None))
        for name, value in fields.items():
            setattr(event, name, value)
        return event.id

    def spawn(self, agent: str, tool_call: ToolCall) -> None:
        """Add the spawn of a sub-agent. The first spawn is not later than the sub-agent's first event."""
        time = tool_call.time
        begin = self._begin_times.get(tool_call.target, time)
        if begin < time and tool_call.target not in self._spawned:
            if not tool_call.is_inferred:
                self.builder.report.note(Problem.EARLY_CHILD, str(tool_call.place))
            time = begin
        event = self.begin(EventType.SPAWN, self.state(agent), tool_call, time)
        event.target, event.role, event.tool = tool_call.target, tool_call.role, tool_call.tool
        event.call_id, event.content_ref, event.inferred = tool_call.id, tool_call.ref, tool_call.is_inferred
        tool_call.event = event.id
        self._spawned.setdefault(tool_call.target, []).append((time, tool_call.event))
        if tool_call.target not in self._acting:
            self._unlogged.append((agent, tool_call))

    def add_return(self, agent: str, step: steps.Return) -> str:
        """Add a return to an agent, and return the id of the event. If the child is no descendant, it is a message."""
        spawns = self._spawned.get(step.child, [])
        earlier_spawns = bisect_right(spawns, step.time, key=itemgetter(0))
        if step.child not in self._acting and earlier_spawns:
            begin, spawn = spawns[earlier_spawns - 1]
            work = self.emit(EventType.INFERENCE, step.child, step, begin, end=step.time, inferred=True)
            self.builder.edge(spawn, work, EdgeType.SPAWN)
        ancestor = self._parents.get(step.child, agent)
        while ancestor and ancestor != agent:
            ancestor = self._parents.get(ancestor, "")
        kind = EventType.RETURN if ancestor == agent else EventType.MESSAGE
        event = self.begin(kind, self.state(step.child), step, step.time)
        event.target, event.content_ref, event.inferred = agent, step.ref, step.is_inferred
        event.status, event.error_type = step.status, step.error
        self._returns.append((event.id, step.child, step.time))
        receiver = self.state(agent)
        if step.time >= receiver.last:
            receiver.last, receiver.step = step.time, step
        return event.id

    @cached_property
    def _begin_times(self) -> dict[str, float]:
        """Return the first known time of each agent or of its descendants."""
        begins: dict[str, float] = {}

        def note(agent: str, time: float) -> None:
            begins[agent] = min(begins.get(agent, time), time)

        for transcript in self.transcripts:
            if transcript.steps:
                note(transcript.agent, min([step.time for step in transcript.steps]))
            if _ARRIVALS.isdisjoint(map(type, transcript.steps)):
                continue
            for step in transcript.steps:
                if isinstance(step, steps.Return):
                    note(step.child, step.time)
                elif isinstance(step, steps.Delivery) and step.sender:
                    note(step.sender, step.time)
        for transcript in reversed(self.transcripts):  # children first
            if transcript.parent and transcript.agent in begins:
                note(transcript.parent, begins[transcript.agent])
        return begins

    def join_transcripts(self) -> None:
        """Add the edges from spawns to first acts, from last acts to returns, and from messages to answers."""
        children = (*self._spawned, *(child for _, child, _ in self._returns))
        events_by_agent: dict[str, list[Event]] = {child: [] for child in children}
        for event in self.builder.events.values() if events_by_agent else ():
            if event.agent in events_by_agent and event.type not in _ABOUT_OTHERS:
                events_by_agent[event.agent].append(event)
        for events in events_by_agent.values():
            events.sort(key=_BY_EVENT_TIME)
        for child, spawns in self._spawned.items():
            acts = [event for event in events_by_agent[child] if event.type in _FIRST_ACTS and not event.copied_context]
            for time, spawn in spawns:
                index = bisect_left(acts, time, key=_BY_EVENT_TIME)
                if index < len(acts):
                    self.builder.edge(spawn, acts[index].id, EdgeType.SPAWN)
        for return_event, child, time in self._returns:
            events = events_by_agent[child]
            earlier_events = bisect_right(events, time, key=_BY_EVENT_TIME)
            if earlier_events:
                self.builder.edge(events[earlier_events - 1].id, return_event, EdgeType.CAUSAL)
        for tool_call, answer in self.read_messages:
            self.builder.edge(tool_call.event, answer, EdgeType.MESSAGE)

    def declare(self) -> None:
        """Declare all agents."""
        self.builder.agent(steps.USER, kind=AgentKind.HUMAN)
        for transcript in self.transcripts:
            if not transcript.aside:
                fields = {"role": transcript.role, "model": transcript.model, "parent": transcript.parent}
                self.builder.agent(transcript.agent, kind=transcript.kind, **fields)
        for parent, tool_call in self._unlogged:
            self.builder.agent(tool_call.target, role=tool_call.role, parent=parent, kind=AgentKind.MODEL)

    def end_agents(self) -> None:
        """Add a despawn for each spawned agent, and a stop for each root whose last answer calls no tool."""
        for agent in dict.fromkeys(transcript.agent for transcript in reversed(self.transcripts)):  # children first
            if agent in self.closed and agent in self._spawned:
                closer, tool_call = self.closed.pop(agent)
                time = max((tool_call.result or tool_call).time, self.state(agent).last)
                if closer in self._spawned or closer in self._roots:
                    despawn = self.emit(EventType.DESPAWN, closer, tool_call, time, target=agent)
                    del self._spawned[agent]
                    if tool_call.model_call is not None:
                        self.builder.edge(tool_call.model_call.event, despawn, EdgeType.CAUSAL)
        for agent in self._spawned:  # agents that no call has ended
            state = self.state(agent)
            if state.step is not None and agent not in self._roots:
                self.emit(EventType.DESPAWN, agent, state.step, state.last, inferred=True)
        for agent, transcript in self._roots.items():
            call = next((step for step in reversed(transcript.steps) if isinstance(step, ModelCall)), None)
            if call is not None and call.final:
                stop = self.emit(EventType.STOP, agent, call, max(self.state(agent).last, call.end), inferred=True)
                self.builder.edge(call.event, stop, EdgeType.CAUSAL)


class _TranscriptEvents:
    """Adds the events of one transcript, step by step."""

    def __init__(self, run: _RunEvents, transcript: steps.Transcript) -> None:
        self._run, self._builder = run, run.builder
        self._begin, self._emit, self._edge = run.begin, run.emit, run.builder.edge
        self._transcript, self._agent = transcript, transcript.agent
        self._state = run.state(transcript.agent)
        self._is_script = transcript.kind == steps.SCRIPT
        self._ready = NO_TIME  # when the input of the next answer was complete
        self._last_act = NO_TIME  # when the agent last did something
        self._last_answer = ""  # the id of the event of the last answer
        self._inputs: list[tuple[str, EdgeType]] = []  # events that the next answer depends on, with types of edges
        self._deliveries: list[steps.Delivery] = []  # the messages that the next answer reads
        self._has_return = False  # True if one of the inputs is a return
        self._is_over = True  # True if the turn is over and the run waits for a person
        self._follows_last_answer = False  # True if an input already depends on the last answer
        self._question = ""  # the safety event that asks a person, which has no answer yet
        self._turn_starts: list[float] = []  # times at which the turn may have begun, the likeliest last
        self._is_prompted = False  # True if there was an input since the last answer of a turn that is over

    def add(self) -> None:
        """Add the events of all steps, in the order of time."""
        all_steps = self._transcript.steps
        all_steps.sort(key=attrgetter("order"))  # with the next line, a faster way to sort by time and order
        all_steps.sort(key=_BY_STEP_TIME)
        local_commands = steps.local_commands(all_steps) if self._transcript.is_root else ()
        for step in all_steps:
            if type(step) is ModelCall:
                self._add_answer(step)
                continue
            time = step.time
            if type(step) is ToolCall:
                self._add_tool_call(step)
                if time > self._last_act:
                    self._last_act = time
                continue
            if type(step) is ToolResult:
                self._add_result(step)
                if time > self._last_act:
                    self._last_act = time
                if step.error == _REJECTED:
                    self._is_over = True
                step.tool_call = None  # without this cycle of references, no garbage collection is needed
            elif id(step) in local_commands:
                continue
            elif isinstance(step, steps.TurnEnd):
                self._end_turn(step)
                continue
            else:
                # a turn begins with the first input after the previous turn, or with an input of a person
                is_typed = isinstance(step, steps.UserInput) and step.waited
                may_begin_turn = is_typed or (self._is_over and not self._is_prompted)
                if may_begin_turn and not (isinstance(step, steps.Note) and step.prolongs):
                    self._turn_starts.append(time)
                    self._is_prompted = True
                self._add_other(step)
            self._ready = time

    def _end_turn(self, step: steps.TurnEnd) -> None:
        """Add the turn that ends, if it can have begun early enough for the stated length."""
        starts = self._turn_starts if step.since == NO_TIME else [step.since]
        self._turn_starts, self._is_prompted = [], False
        long_enough = [start for start in starts if step.time - start >= step.run_time - _TURN_TOLERANCE]
        if long_enough:
            turn = Turn(self._agent, long_enough[-1], step.time, step.run_time, step.excludes)
            self._builder.turns.append(turn)
        elif starts:
            self._builder.report.note(Problem.TURN_LONGER_THAN_ROWS, str(step.place))

    def _add_other(self, step: steps.Step) -> None:
        match step:
            case steps.UserInput():
                self._add_user_input(step)
            case steps.Return():
                self._inputs.append((self._run.add_return(self._agent, step), EdgeType.RETURN))
                self._has_return = True
            case steps.Delivery() if step.sent is not None:
                self._deliveries.append(step)
            case steps.Delivery() if step.sender:
                message = self._emit(_MESSAGE, step.sender, step, target=self._agent, content_ref=step.ref)
                self._inputs.append((message, EdgeType.MESSAGE))
            case steps.Notice() if step.tool_call is not None and step.tool_call.event:
                self._inputs.append((step.tool_call.event, _TOOL))
            case steps.SafetyEvent():
                event = self._begin(EventType.SAFETY, self._state, step, step.time)
                event.tool, event.status, event.error_type = step.tool, step.status, step.error
                event.content_ref = step.ref
                cause = self._last_answer if step.asking is None else step.asking.event
                self._edge(cause, event.id, EdgeType.SAFETY)
                is_refusal = step.status in (Status.ERROR, Status.CANCELLED)
                self._question = "" if is_refusal else event.id
                self._last_act = max(self._last_act, step.time)
            case steps.CopiedHistory():
                copied = self._begin(_INFERENCE, self._state, step, step.time, step.time)
                copied.tokens = Tokens(**step.tokens) if step.tokens else UNSET
                copied.token_basis, copied.copied_context, copied.inferred = TokenBasis.REPORTED, True, True

    def _add_answer(self, call: ModelCall) -> None:
        state, end = self._state, call.end
        kind = _INFERENCE
        if call.decides:
            kind = EventType.DECISION
        elif self._has_return:
            kind = EventType.AGGREGATE
        time = call.time
        previous = self._last_answer
        input_time = self._ready if self._ready > self._last_act else self._last_act
        if not call.is_dated and NO_TIME != input_time < time:
            time = input_time
        event = self._begin(kind, state, call, time, end)
        call.event = self._last_answer = event.id
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
        if end >= state.last:
            state.last, state.step = end, call
        if self._inputs:
            for source, edge_type in self._inputs:
                self._edge(source, event.id, edge_type)
            self._inputs = []
        if not self._follows_last_answer:  # the previous answer is in its context, whatever came in between
            self._edge(previous, event.id, _TEMPORAL)
        self._follows_last_answer = self._is_prompted = False
        if self._deliveries:
            for delivery in self._deliveries:
                if delivery.sent is not None:  # the event of the message may not exist yet
                    self._run.read_messages.append((delivery.sent, event.id))
            self._deliveries = []
        self._has_return = False
        if end > self._last_act:
            self._last_act = end
        self._is_over = call.final

    def _add_tool_call(self, tool_call: ToolCall) -> None:
        purpose, result = tool_call.purpose, tool_call.result
        cause = tool_call.model_call.event if tool_call.model_call is not None else self._last_answer
        if purpose is _TOOL_PURPOSE or purpose is _ASK_PURPOSE or purpose is _MESSAGE_PURPOSE:
            event = self._begin(
                _MESSAGE if purpose is _MESSAGE_PURPOSE else _TOOL_CALL, self._state, tool_call, tool_call.time
            )
            if purpose is _MESSAGE_PURPOSE:
                event.target = tool_call.target
                self._mark_decision(tool_call.model_call)
            elif tool_call.id:
                tool_call.id = self._builder.call_id(tool_call.id, tool_call.place)
            tool_call.event = event.id
            event.tool, event.call_id, event.content_ref = tool_call.tool, tool_call.id, tool_call.ref
            if tool_call.more:
                for name, value in tool_call.more.items():
                    setattr(event, name, value)
        elif purpose is steps.SPAWN:
            self._run.spawn(self._agent, tool_call)
            self._mark_decision(tool_call.model_call)
        elif purpose is steps.CLOSE:
            self._run.closed[tool_call.target] = self._agent, tool_call
        self._edge(cause, tool_call.event, _CAUSAL)
        if self._is_script and self._inputs:  # a script goes on when the last of its agents has returned
            self._edge(self._inputs[-1][0], tool_call.event, _TEMPORAL)
        if result is not None and (purpose is _ASK_PURPOSE or result.error == _REJECTED):
            person = self._emit(EventType.HUMAN, steps.USER, tool_call, end=result.time, target=self._agent)
            self._edge(tool_call.event, person, _CAUSAL)

    def _mark_decision(self, answer: ModelCall | None) -> None:
        """Make an answer a decision, because it spawns or addresses an agent. Its event may not exist yet."""
        if answer is not None:
            answer.decides = True
            if answer.event:
                self._builder.events[answer.event].type = EventType.DECISION

    def _add_result(self, result: ToolResult) -> None:
        if result.is_repeated:
            return
        tool_call = result.tool_call
        if tool_call is not None and tool_call.purpose is not _TOOL_PURPOSE and tool_call.purpose is not _ASK_PURPOSE:
            if tool_call.purpose is _MESSAGE_PURPOSE and tool_call.event:
                message = self._builder.events[tool_call.event]
                message.status, message.error_type = result.status, result.error
            return
        event = self._begin(_TOOL_RESULT, self._state, result, result.time)
        event.status, event.error_type, event.content_ref = result.status, result.error, result.ref
        if tool_call is not None and tool_call.event:
            event.tool, event.call_id = tool_call.tool, tool_call.id
            self._edge(tool_call.event, event.id, _TOOL)
            if tool_call.model_call is None or tool_call.model_call.event == self._last_answer:
                self._follows_last_answer = True
        self._inputs.append((event.id, _TOOL))

    def _add_user_input(self, step: steps.UserInput) -> None:
        since = step.time
        if step.asked or (step.waited and self._is_over):  # else the run did not wait for it
            if not step.asked and self._last_act != NO_TIME:
                since = min(self._last_act, step.time)
            elif step.since != NO_TIME:
                since = min(step.since, step.time)
        self._is_over = step.status is Status.CANCELLED
        if self._is_over:
            self._last_act = max(self._last_act, step.time)
        event = self._begin(EventType.HUMAN, self._run.state(steps.USER), step, since, step.time)
        event.target, event.content_ref, event.status = self._agent, step.ref, step.status
        if step.asking is not None:  # the log has the call and its result, but not the person's answer
            cause = step.asking.event
            event.inferred = True
        elif self._inputs:
            cause = self._inputs[-1][0]
        else:
            cause = self._last_answer
        if step.asking is not None or not self._inputs:
            self._follows_last_answer = True
        self._edge(cause, event.id, _CAUSAL)
        if step.asked and self._question:  # the answer to the question of a guard
            self._edge(self._question, event.id, EdgeType.SAFETY)
            self._question = ""
        self._inputs.append((event.id, _CAUSAL))
