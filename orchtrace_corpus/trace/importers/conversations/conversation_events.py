"""Threads to events: what each agent did becomes the events of one run, with the edges between them.

Four things are concluded rather than read. A model begins to answer when its input is there: with the last
message, result or return before its answer, or with the end of its answer before. A person is waited for from
the end of what the agent did before until the message comes. A sub-agent without a transcript has worked from
its spawn to its return. An agent that was spawned ends with the last that is known of it.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from orchtrace_corpus.trace.importers.conversations.transcript import (
    NO_TIME,
    REJECTED,
    SCRIPT,
    USER,
    Act,
    Alarm,
    Answer,
    Call,
    Copy,
    Deed,
    Delivery,
    Return,
    Step,
    Thread,
    Typed,
    parents_first,
    part,
)
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.model.import_report import Problem
from orchtrace_corpus.trace.model.trace import AgentKind, EdgeType, EventType, Status, TokenBasis

_STARTS = frozenset((EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE, EventType.SPAWN))
"""Events with which an agent begins its work."""


def weave(threads: Sequence[Thread], builder: Builder) -> None:
    """Make the events of all threads, which have their times and their links to one another."""
    loom = _Loom(threads, builder)
    for thread in loom.threads:
        _ThreadLoom(loom, thread).weave()
    loom.join_threads()
    loom.end_lives()
    loom.declare()
    for thread in threads:
        part(thread.steps)


class _Loom:
    """What the threads share: who lives when, and which events of other threads an event is joined to."""

    def __init__(self, threads: Sequence[Thread], builder: Builder) -> None:
        self.builder = builder
        self.threads = parents_first(threads)
        self._parents = {thread.agent: thread.parent for thread in threads if thread.parent}
        self._roots = {thread.agent: thread for thread in threads if thread.is_root}
        self._acting = {thread.agent for thread in threads if thread.steps}
        self._begins = self._first_times()
        self._last: dict[str, tuple[float, Step]] = {}
        self._own: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        self._starts: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        self.call_ids = Names()
        self._spawned: dict[str, list[tuple[float, str]]] = {}
        self._returns: list[tuple[str, str, float]] = []
        self._later: list[tuple[Act, str]] = []
        self._absent: list[tuple[str, Act]] = []
        self._closed: dict[str, tuple[str, Act]] = {}

    def emit(
        self, kind: EventType, agent: str, step: Step, time: float, *, end: float | None = None, **fields: Any
    ) -> str:
        """Add an event, and remember it as the agent's own."""
        place = step.place
        event = self.builder.event(kind, agent, time, file=place.file, line=place.line, end=end, **fields)
        self.lives(agent, time, step)
        if kind not in (EventType.RETURN, EventType.MESSAGE):
            self._own[agent].append((time, event))
        if kind in _STARTS and not fields.get("copied_context"):
            self._starts[agent].append((time, event))
        return event

    def lives(self, agent: str, time: float, step: Step) -> None:
        """An agent is known to live at a time."""
        last = self._last.get(agent)
        if last is None or time >= last[0]:
            self._last[agent] = (time, step)

    def join_to_sender(self, delivery: Delivery, target: str) -> None:
        """An event depends on a message whose own event may still be to come."""
        if delivery.sent is not None:
            self._later.append((delivery.sent, target))

    def spawn(self, agent: str, act: Act) -> None:
        """The spawn of an agent goes before all that is known of it."""
        time = act.time
        begins = self._begins.get(act.target, time)
        if begins < time and act.target not in self._spawned:
            if not act.is_inferred:
                self.builder.report.note(Problem.EARLY_CHILD, str(act.place))
            time = begins
        act.event = self.emit(
            EventType.SPAWN,
            agent,
            act,
            time,
            target=act.target,
            role=act.role,
            tool=act.tool,
            call_id=act.id,
            content_ref=act.ref,
            inferred=act.is_inferred,
        )
        self._spawned.setdefault(act.target, []).append((time, act.event))
        if act.target not in self._acting:
            self._absent.append((agent, act))

    def give_back(self, agent: str, step: Return) -> str:
        """The return of a child, or, from one that the receiver has not spawned, a message."""
        spawns = self._spawned.get(step.child, [])
        place = bisect_right(spawns, step.time, key=_time)
        if step.child not in self._acting and place:
            begin, spawn = spawns[place - 1]
            work = self.emit(EventType.INFERENCE, step.child, step, begin, end=step.time, inferred=True)
            self.builder.edge(spawn, work, EdgeType.SPAWN)
        kind = EventType.RETURN if self._may_return(step.child, agent) else EventType.MESSAGE
        event = self.emit(
            kind,
            step.child,
            step,
            step.time,
            target=agent,
            content_ref=step.ref,
            status=step.status,
            error_type=step.error,
            inferred=step.is_inferred,
        )
        self._returns.append((event, step.child, step.time))
        self.lives(agent, step.time, step)
        return event

    def close(self, agent: str, act: Act) -> None:
        """An agent is ended by another."""
        self._closed[act.target] = (agent, act)

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

        for thread in self.threads:
            if thread.steps:
                note(thread.agent, min([step.time for step in thread.steps]))
            for step in thread.steps:
                if isinstance(step, Delivery) and step.sender:
                    note(step.sender, step.time)
                elif isinstance(step, Return):
                    note(step.child, step.time)
        for thread in reversed(self.threads):
            if thread.parent and thread.agent in found:
                note(thread.parent, found[thread.agent])
        return found

    def join_threads(self) -> None:
        """Join each spawn to what its child begins with, each return to what the child did before, and messages."""
        for events in (*self._own.values(), *self._starts.values()):
            events.sort(key=_time)
        for child, spawns in self._spawned.items():
            starts = self._starts.get(child, [])
            for time, event in spawns:
                place = bisect_left(starts, time, key=_time)
                if place < len(starts):
                    self.builder.edge(event, starts[place][1], EdgeType.SPAWN)
        for event, child, time in self._returns:
            own = self._own.get(child, [])
            place = bisect_right(own, time, key=_time)
            if place:
                self.builder.edge(own[place - 1][1], event, EdgeType.CAUSAL)
        for act, target in self._later:
            self.builder.edge(act.event, target, EdgeType.MESSAGE)

    def declare(self) -> None:
        """Say of each agent what threads and spawns tell."""
        self.builder.agent(USER, kind=AgentKind.HUMAN)
        for thread in self.threads:
            if not thread.aside:
                parent, kind = thread.parent, thread.kind
                self.builder.agent(thread.agent, role=thread.role, model=thread.model, parent=parent, kind=kind)
        for parent, act in self._absent:
            self.builder.agent(act.target, role=act.role, parent=parent, kind=AgentKind.MODEL)

    def end_lives(self) -> None:
        """Despawn every agent that was spawned, and stop the others if the log says that they were done."""
        for agent in dict.fromkeys(thread.agent for thread in reversed(self.threads)):
            if agent in self._closed and agent in self._spawned:
                closer, act = self._closed.pop(agent)
                done = act.answer.time if act.answer is not None else act.time
                if closer in self._spawned or closer in self._roots:
                    last = self._last[agent][0] if agent in self._last else done
                    end = self.emit(EventType.DESPAWN, closer, act, max(done, last), target=agent)
                    del self._spawned[agent]
                    self.builder.edge(act.call.event if act.call is not None else "", end, EdgeType.CAUSAL)
        for agent in self._spawned:
            if agent in self._last and agent not in self._roots:
                time, step = self._last[agent]
                self.emit(EventType.DESPAWN, agent, step, time, inferred=True)
        for agent, thread in self._roots.items():
            call = next((step for step in reversed(thread.steps) if isinstance(step, Call)), None)
            if call is not None and call.final:
                stop = self.emit(EventType.STOP, agent, call, max(self._last[agent][0], call.end), inferred=True)
                self.builder.edge(call.event, stop, EdgeType.CAUSAL)


class _ThreadLoom:
    """The events of one thread, one step after another."""

    def __init__(self, loom: _Loom, thread: Thread) -> None:
        self._loom = loom
        self._builder = loom.builder
        self._thread = thread
        self._agent = thread.agent
        self._ready = NO_TIME  # when the input of the next answer was there
        self._busy = NO_TIME  # when the agent last did something: while it does, nobody waits for a person
        self._call = ""  # the event of the last answer
        self._inputs: list[tuple[str, EdgeType]] = []  # events that the next answer depends on, and how
        self._deliveries: list[Delivery] = []
        self._returned = False

    def weave(self) -> None:
        self._thread.steps.sort(key=attrgetter("time", "order"))
        for step in self._thread.steps:
            match step:
                case Call():
                    self._take_call(step)
                    self._busy = max(self._busy, step.end)
                    continue
                case Act():
                    self._take_act(step)
                    self._busy = max(self._busy, step.time)
                    continue
                case Answer():
                    self._take_answer(step)
                    self._busy = max(self._busy, step.time)
                case Typed():
                    self._take_typed(step)
                case Return():
                    self._inputs.append((self._loom.give_back(self._agent, step), EdgeType.RETURN))
                    self._returned = True
                case Delivery():
                    self._take_delivery(step)
                case Alarm():
                    self._take_alarm(step)
                    self._busy = max(self._busy, step.time)
                case Copy():
                    self._loom.emit(
                        EventType.INFERENCE,
                        self._agent,
                        step,
                        step.time,
                        end=step.time,
                        tokens=step.tokens,
                        token_basis=TokenBasis.REPORTED,
                        copied_context=True,
                        inferred=True,
                    )
            self._ready = step.time

    def _take_call(self, call: Call) -> None:
        begin = max(self._ready, self._busy)
        kind = EventType.INFERENCE
        if call.decides or self._returned:
            kind = EventType.DECISION if call.decides else EventType.AGGREGATE
        call.event = self._loom.emit(
            kind,
            self._agent,
            call,
            call.time if begin == NO_TIME else min(begin, call.time),
            end=call.end,
            model=call.model,
            tokens=call.tokens,
            token_basis=call.basis,
            content_ref=call.ref,
            status=Status.ERROR if call.error else Status.UNKNOWN,
            error_type=call.error,
            inferred=True,
        )
        self._loom.lives(self._agent, call.end, call)
        for event, how in self._inputs:
            self._builder.edge(event, call.event, how)
        for delivery in self._deliveries:
            self._loom.join_to_sender(delivery, call.event)
        self._inputs, self._deliveries, self._returned = [], [], False
        self._call = call.event

    def _take_act(self, act: Act) -> None:
        cause = act.call.event if act.call is not None else self._call
        match act.deed:
            case Deed.SPAWN:
                self._loom.spawn(self._agent, act)
            case Deed.MESSAGE:
                act.event = self._loom.emit(
                    EventType.MESSAGE,
                    self._agent,
                    act,
                    act.time,
                    target=act.target,
                    tool=act.tool,
                    call_id=act.id,
                    content_ref=act.ref,
                )
            case Deed.TOOL | Deed.ASK:
                act.id = act.id and self._loom.call_ids.new(act.id)  # some logs use an id twice
                act.event = self._loom.emit(
                    EventType.TOOL_CALL, self._agent, act, act.time, tool=act.tool, call_id=act.id, content_ref=act.ref
                )
            case Deed.CLOSE:
                self._loom.close(self._agent, act)
        self._builder.edge(cause, act.event, EdgeType.CAUSAL)
        if self._thread.kind == SCRIPT and self._inputs:  # a script goes on when the last of its agents is back
            self._builder.edge(self._inputs[-1][0], act.event, EdgeType.TEMPORAL)
        if act.answer is not None and (act.deed is Deed.ASK or act.answer.error == REJECTED):
            asked = self._loom.emit(EventType.HUMAN, USER, act, act.time, end=act.answer.time, target=self._agent)
            self._builder.edge(act.event, asked, EdgeType.CAUSAL)

    def _take_answer(self, answer: Answer) -> None:
        if answer.is_repeated:
            return
        act = answer.act
        if act is not None and act.deed in (Deed.TOOL, Deed.ASK) and not act.event:
            act = None  # its call is not among the thread's own steps
        if act is not None and act.deed not in (Deed.TOOL, Deed.ASK):
            if act.deed is Deed.MESSAGE and act.event:
                message = self._builder.get(act.event)
                message.status, message.error_type = answer.status, answer.error
            return
        tool, call_id = (act.tool, act.id) if act is not None else ("", "")
        event = self._loom.emit(
            EventType.TOOL_RESULT,
            self._agent,
            answer,
            answer.time,
            tool=tool,
            call_id=call_id,
            status=answer.status,
            error_type=answer.error,
            content_ref=answer.ref,
        )
        if act is not None:
            self._builder.edge(act.event, event, EdgeType.TOOL)
        self._inputs.append((event, EdgeType.TOOL))

    def _take_alarm(self, alarm: Alarm) -> None:
        event = self._loom.emit(
            EventType.SAFETY,
            self._agent,
            alarm,
            alarm.time,
            tool=alarm.tool,
            status=alarm.status,
            error_type=alarm.error,
            content_ref=alarm.ref,
        )
        self._builder.edge(self._call, event, EdgeType.SAFETY)

    def _take_typed(self, step: Typed) -> None:
        since = next((time for time in (self._busy, step.since) if time != NO_TIME), step.time)
        waited_from = min(since, step.time) if step.waited else step.time
        event = self._loom.emit(
            EventType.HUMAN,
            USER,
            step,
            waited_from,
            end=step.time,
            target=self._agent,
            content_ref=step.ref,
            status=step.status,
        )
        self._builder.edge(self._call, event, EdgeType.CAUSAL)
        self._inputs.append((event, EdgeType.CAUSAL))

    def _take_delivery(self, step: Delivery) -> None:
        if step.sent is not None:
            self._deliveries.append(step)
        elif step.sender:
            event = self._loom.emit(
                EventType.MESSAGE, step.sender, step, step.time, target=self._agent, content_ref=step.ref
            )
            self._inputs.append((event, EdgeType.MESSAGE))


def _time(pair: tuple[float, str]) -> float:
    return pair[0]
