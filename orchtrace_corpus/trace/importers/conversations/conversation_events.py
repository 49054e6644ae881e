"""Transcripts to events: what each agent did becomes the events of one run, with the edges between them.

Four things are concluded rather than read. A model whose request is not dated begins to answer when its input is there:
with the last message, result or return, or the end of its answer before. A person is waited for from the end of a turn
until the first message comes: a turn ends with an answer that calls no tool, or where a person breaks it off or refuses
a call. A sub-agent without a transcript has worked from spawn to return. A spawned agent ends with its last act.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import UNSET

from orchtrace_corpus.trace.importers.conversations import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.model.import_report import Problem
from orchtrace_corpus.trace.model.trace import AgentKind, EdgeType, Event, EventType, Status, TokenBasis, Tokens

_INFERENCE, _MESSAGE, _CAUSAL, _TOOL = EventType.INFERENCE, EventType.MESSAGE, EdgeType.CAUSAL, EdgeType.TOOL
_TOOL_CALL, _TOOL_RESULT = EventType.TOOL_CALL, EventType.TOOL_RESULT
_TOKENS = Tokens.__struct_fields__
_STARTS = frozenset((EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.SPAWN))
"""Events with which an agent begins its work."""
_OF_OTHERS = frozenset((EventType.RETURN, EventType.MESSAGE))
"""Events that are about another agent as well: what an agent has done last is none of them."""


def add_events(transcripts: Sequence[steps.Transcript], builder: Builder) -> None:
    """Make the events of all transcripts, which have their times and their links to one another."""
    run = _Run(transcripts, builder)
    for transcript in run.transcripts:
        _TranscriptEvents(run, transcript).add()
    run.join_transcripts()
    run.end_agents()
    run.declare()
    for transcript in transcripts:
        steps.part(transcript.steps)


class _Run:
    """What the transcripts share: who lives when, and which events of other transcripts an event is joined to."""

    def __init__(self, transcripts: Sequence[steps.Transcript], builder: Builder) -> None:
        self.builder = builder
        self.transcripts = steps.parents_first(transcripts)
        self._parents = {transcript.agent: transcript.parent for transcript in transcripts if transcript.parent}
        self._roots = {transcript.agent: transcript for transcript in transcripts if transcript.is_root}
        self._warm_ups = frozenset(transcript.agent for transcript in transcripts if transcript.is_warm_up)
        self._acting = {transcript.agent for transcript in transcripts if transcript.steps}
        self._begins = self._first_times()
        self._last: dict[str, tuple[float, steps.Step]] = {}
        self._own: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        self._starts: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        self._call_ids = Names()
        self._spawned: dict[str, list[tuple[float, str]]] = {}
        self._returns: list[tuple[str, str, float]] = []
        self._later: list[tuple[steps.ToolCall, str]] = []
        self._absent: list[tuple[str, steps.ToolCall]] = []
        self._closed: dict[str, tuple[str, steps.ToolCall]] = {}

    def begin(
        self, kind: EventType, agent: str, step: steps.Step, time: float | None = None, end: float | None = None
    ) -> Event:
        """Add an event, and remember it as the agent's own."""
        if time is None:
            time = step.time
        place = step.place
        event = self.builder.begin(kind, agent, time, place.file, place.line, end)
        if agent in self._warm_ups:
            event.warm_up = True
        last = self._last.get(agent)  # as `note_time` does, for every event there is
        if last is None or time >= last[0]:
            self._last[agent] = (time, step)
        if kind not in _OF_OTHERS:
            moment = (time, event.id)
            self._own[agent].append(moment)
            if kind in _STARTS and type(step) is not steps.CopiedHistory:
                self._starts[agent].append(moment)
        return event

    def emit(
        self, kind: EventType, agent: str, step: steps.Step, time: float | None = None, *, end: float | None = None,
        **fields: Any,
    ) -> str:  # fmt: skip
        """Add an event with further fields, and return its id."""
        event = self.begin(kind, agent, step, time, end)
        for name, value in fields.items():
            setattr(event, name, value)
        return event.id

    def note_time(self, agent: str, time: float, step: steps.Step) -> None:
        """An agent is known to live at a time."""
        last = self._last.get(agent)
        if last is None or time >= last[0]:
            self._last[agent] = (time, step)

    def call_id(self, tool_call: steps.ToolCall) -> str:
        """The id of a call, with a number behind it where another call of the run has it, too."""
        found = self._call_ids.new(tool_call.id)
        if found != tool_call.id:
            self.builder.report.note(Problem.CALL_ID_USED_TWICE, str(tool_call.place))
        return found

    def join_to_sender(self, delivery: steps.Delivery, target: str) -> None:
        """An event depends on a message whose own event may still be to come."""
        if delivery.sent is not None:
            self._later.append((delivery.sent, target))

    def spawn(self, agent: str, tool_call: steps.ToolCall) -> None:
        """The spawn of an agent goes before all that is known of it."""
        time = tool_call.time
        begins = self._begins.get(tool_call.target, time)
        if begins < time and tool_call.target not in self._spawned:
            if not tool_call.is_inferred:
                self.builder.report.note(Problem.EARLY_CHILD, str(tool_call.place))
            time = begins
        tool_call.event = self.emit(
            EventType.SPAWN,
            agent,
            tool_call,
            time,
            target=tool_call.target,
            role=tool_call.role,
            tool=tool_call.tool,
            call_id=tool_call.id,
            content_ref=tool_call.ref,
            inferred=tool_call.is_inferred,
        )
        self._spawned.setdefault(tool_call.target, []).append((time, tool_call.event))
        if tool_call.target not in self._acting:
            self._absent.append((agent, tool_call))

    def give_back(self, agent: str, step: steps.Return) -> str:
        """The return of a child, or, from one that the receiver has not spawned, a message."""
        spawns = self._spawned.get(step.child, [])
        place = bisect_right(spawns, step.time, key=itemgetter(0))
        if step.child not in self._acting and place:
            begin, spawn = spawns[place - 1]
            work = self.emit(EventType.INFERENCE, step.child, step, begin, end=step.time, inferred=True)
            self.builder.edge(spawn, work, EdgeType.SPAWN)
        kind = EventType.RETURN if self._may_return(step.child, agent) else EventType.MESSAGE
        event = self.emit(
            kind,
            step.child,
            step,
            target=agent,
            content_ref=step.ref,
            status=step.status,
            error_type=step.error,
            inferred=step.is_inferred,
        )
        self._returns.append((event, step.child, step.time))
        self.note_time(agent, step.time, step)
        return event

    def close(self, agent: str, tool_call: steps.ToolCall) -> None:
        """An agent is ended by another."""
        self._closed[tool_call.target] = (agent, tool_call)

    def _may_return(self, child: str, agent: str) -> bool:
        above = self._parents.get(child, agent)
        while above and above != agent:
            above = self._parents.get(above, "")
        return above == agent

    def _first_times(self) -> dict[str, float]:
        """When the first is known of each agent, or of one below it."""
        found: dict[str, float] = {}

        def note(agent: str, time: float) -> None:
            found[agent] = min(found.get(agent, time), time)

        for transcript in self.transcripts:
            if transcript.steps:
                note(transcript.agent, min([step.time for step in transcript.steps]))
            for step in transcript.steps:
                if isinstance(step, steps.Delivery) and step.sender:
                    note(step.sender, step.time)
                elif isinstance(step, steps.Return):
                    note(step.child, step.time)
        for transcript in reversed(self.transcripts):
            if transcript.parent and transcript.agent in found:
                note(transcript.parent, found[transcript.agent])
        return found

    def join_transcripts(self) -> None:
        """Join each spawn to what its child begins with, each return to what the child did before, and messages."""
        for events in (*self._own.values(), *self._starts.values()):
            events.sort(key=itemgetter(0))
        for child, spawns in self._spawned.items():
            starts = self._starts.get(child, [])
            for time, event in spawns:
                place = bisect_left(starts, time, key=itemgetter(0))
                if place < len(starts):
                    self.builder.edge(event, starts[place][1], EdgeType.SPAWN)
        for event, child, time in self._returns:
            own = self._own.get(child, [])
            place = bisect_right(own, time, key=itemgetter(0))
            if place:
                self.builder.edge(own[place - 1][1], event, EdgeType.CAUSAL)
        for tool_call, target in self._later:
            self.builder.edge(tool_call.event, target, EdgeType.MESSAGE)

    def declare(self) -> None:
        """Say of each agent what transcripts and spawns tell."""
        self.builder.agent(steps.USER, kind=AgentKind.HUMAN)
        for transcript in self.transcripts:
            if not transcript.aside:
                parent, kind = transcript.parent, transcript.kind
                self.builder.agent(
                    transcript.agent, role=transcript.role, model=transcript.model, parent=parent, kind=kind
                )
        for parent, tool_call in self._absent:
            self.builder.agent(tool_call.target, role=tool_call.role, parent=parent, kind=AgentKind.MODEL)

    def end_agents(self) -> None:
        """Despawn every agent that was spawned, and stop the others if the log says that they were done."""
        for agent in dict.fromkeys(transcript.agent for transcript in reversed(self.transcripts)):
            if agent in self._closed and agent in self._spawned:
                closer, tool_call = self._closed.pop(agent)
                done = tool_call.answer.time if tool_call.answer is not None else tool_call.time
                if closer in self._spawned or closer in self._roots:
                    last = self._last[agent][0] if agent in self._last else done
                    end = self.emit(EventType.DESPAWN, closer, tool_call, max(done, last), target=agent)
                    del self._spawned[agent]
                    self.builder.edge(tool_call.call.event if tool_call.call is not None else "", end, EdgeType.CAUSAL)
        for agent in self._spawned:
            if agent in self._last and agent not in self._roots:
                self.emit(EventType.DESPAWN, agent, *self._last[agent][::-1], inferred=True)
        for agent, transcript in self._roots.items():
            call = next((step for step in reversed(transcript.steps) if isinstance(step, steps.ModelCall)), None)
            if call is not None and call.final:
                stop = self.emit(EventType.STOP, agent, call, max(self._last[agent][0], call.end), inferred=True)
                self.builder.edge(call.event, stop, EdgeType.CAUSAL)


class _TranscriptEvents:
    """The events of one transcript, one step after another."""

    def __init__(self, run: _Run, transcript: steps.Transcript) -> None:
        self._run = run
        self._builder = run.builder
        self._emit = run.emit
        self._thread = transcript
        self._agent = transcript.agent
        self._ready = steps.NO_TIME  # when the input of the next answer was there
        self._busy = steps.NO_TIME  # when the agent last did something: while it does, nobody waits for a person
        self._call = ""  # the event of the last answer
        self._inputs: list[tuple[str, EdgeType]] = []  # events that the next answer depends on, and how
        self._deliveries: list[steps.Delivery] = []
        self._returned = False
        self._is_over = True  # whether its turn is: it is a person's, until they have written

    def add(self) -> None:
        self._thread.steps.sort(key=attrgetter("time", "order"))
        local = steps.local_commands(self._thread.steps) if self._thread.is_root else ()
        for step in self._thread.steps:
            match step:
                case steps.ModelCall():
                    self._take_call(step)
                    self._busy = max(self._busy, step.end)
                    self._is_over = step.final
                    continue
                case steps.ToolCall():
                    self._take_tool_call(step)
                    self._busy = max(self._busy, step.time)
                    continue
                case steps.ToolResult():
                    self._take_answer(step)
                    self._busy = max(self._busy, step.time)
                    self._is_over = self._is_over or step.error == steps.REJECTED
                case steps.UserInput():
                    if id(step) in local:
                        continue
                    self._take_typed(step)
                case steps.Return():
                    self._inputs.append((self._run.give_back(self._agent, step), EdgeType.RETURN))
                    self._returned = True
                case steps.Delivery():
                    self._take_delivery(step)
                case steps.SafetyEvent():
                    tool, status, error, ref = step.tool, step.status, step.error, step.ref
                    alarm = self._emit(
                        EventType.SAFETY, self._agent, step, tool=tool, status=status, error_type=error, content_ref=ref
                    )
                    cause = self._call if step.asking is None else step.asking.event
                    self._builder.edge(cause, alarm, EdgeType.SAFETY)
                    self._busy = max(self._busy, step.time)
                case steps.CopiedHistory():
                    self._emit(
                        _INFERENCE,
                        self._agent,
                        step,
                        end=step.time,
                        tokens=Tokens(**step.tokens) if step.tokens else UNSET,
                        token_basis=TokenBasis.REPORTED,
                        copied_context=True,
                        inferred=True,
                    )
            self._ready = step.time

    def _take_call(self, call: steps.ModelCall) -> None:
        begin = max(self._ready, self._busy)
        kind = _INFERENCE
        if call.decides or self._returned:
            kind = EventType.DECISION if call.decides else EventType.AGGREGATE
        time = call.time if call.is_dated or begin == steps.NO_TIME else min(begin, call.time)
        event = self._run.begin(kind, self._agent, call, time, call.end)
        call.event, event.inferred = event.id, True
        event.model, event.token_basis, event.content_ref = call.model, call.basis, call.ref
        if call.tokens:
            event.tokens = Tokens(*map(call.tokens.get, _TOKENS))
        if call.error:
            event.status, event.error_type = Status.ERROR, call.error
        for name, value in call.more.items() if call.more else ():
            setattr(event, name, value)
        self._run.note_time(self._agent, call.end, call)
        for given, how in self._inputs:
            self._builder.edge(given, call.event, how)
        for delivery in self._deliveries:
            self._run.join_to_sender(delivery, call.event)
        self._inputs, self._deliveries, self._returned = [], [], False
        self._call = call.event

    def _take_tool_call(self, tool_call: steps.ToolCall) -> None:
        cause = tool_call.call.event if tool_call.call is not None else self._call
        match tool_call.purpose:
            case steps.SPAWN:
                self._run.spawn(self._agent, tool_call)
            case steps.MESSAGE | steps.TOOL | steps.ASK:
                kind, target = _MESSAGE, tool_call.target
                if tool_call.purpose is not steps.MESSAGE:
                    kind, target = _TOOL_CALL, ""
                    tool_call.id = tool_call.id and self._run.call_id(tool_call)
                event = self._run.begin(kind, self._agent, tool_call)
                tool_call.event, event.target = event.id, target
                event.tool, event.call_id, event.content_ref = tool_call.tool, tool_call.id, tool_call.ref
                for name, value in tool_call.more.items() if tool_call.more else ():
                    setattr(event, name, value)
            case steps.CLOSE:
                self._run.close(self._agent, tool_call)
        self._builder.edge(cause, tool_call.event, _CAUSAL)
        if self._thread.kind == steps.SCRIPT and self._inputs:  # a script goes on when the last of its agents is back
            self._builder.edge(self._inputs[-1][0], tool_call.event, EdgeType.TEMPORAL)
        if tool_call.answer is not None and (
            tool_call.purpose is steps.ASK or tool_call.answer.error == steps.REJECTED
        ):
            asked = self._emit(EventType.HUMAN, steps.USER, tool_call, end=tool_call.answer.time, target=self._agent)
            self._builder.edge(tool_call.event, asked, _CAUSAL)

    def _take_answer(self, answer: steps.ToolResult) -> None:
        if answer.is_repeated:
            return
        tool_call = answer.tool_call
        if tool_call is not None and tool_call.purpose not in (steps.TOOL, steps.ASK):
            if tool_call.purpose is steps.MESSAGE and tool_call.event:
                message = self._builder.get(tool_call.event)
                message.status, message.error_type = answer.status, answer.error
            return
        if tool_call is not None and not tool_call.event:
            tool_call = None  # its call is not among the transcript's own steps
        event = self._run.begin(_TOOL_RESULT, self._agent, answer)
        event.status, event.error_type, event.content_ref = answer.status, answer.error, answer.ref
        if tool_call is not None:
            event.tool, event.call_id = tool_call.tool, tool_call.id
            self._builder.edge(tool_call.event, event.id, _TOOL)
        self._inputs.append((event.id, _TOOL))

    def _take_typed(self, step: steps.UserInput) -> None:
        known = (step.since,) if step.asked else (self._busy, step.since)
        since = next((time for time in known if time != steps.NO_TIME), step.time)
        waited_from = min(since, step.time) if step.asked or (step.waited and self._is_over) else step.time
        self._is_over = step.status is Status.CANCELLED
        self._busy = max(self._busy, step.time) if self._is_over else self._busy
        time, agent, ref, how = step.time, self._agent, step.ref, step.status
        event = self._emit(
            EventType.HUMAN, steps.USER, step, waited_from, end=time, target=agent, content_ref=ref, status=how
        )
        self._builder.edge(self._inputs[-1][0] if self._inputs else self._call, event, _CAUSAL)
        self._inputs.append((event, _CAUSAL))

    def _take_delivery(self, step: steps.Delivery) -> None:
        if step.sent is not None:
            self._deliveries.append(step)
        elif step.sender:
            event = self._emit(_MESSAGE, step.sender, step, target=self._agent, content_ref=step.ref)
            self._inputs.append((event, EdgeType.MESSAGE))
