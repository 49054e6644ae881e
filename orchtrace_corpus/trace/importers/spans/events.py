"""The events of a span tree, each act once, and the edges between them: what each waited for, as far as spans tell.

Spans say when something ran, seldom why. What is drawn is what a program that waits for its calls would do: a
model's answer depends on all that came back since the answer before, a call on the answer that asked for it, an
agent's end on whatever it did last. Agents that nobody called or handed over to follow, by time only, on those
that had ended when they began.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any

from msgspec import UNSET, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.transcript import USER, topology
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.span import AGENT, GUARDRAIL, HANDOFF, INFERENCE, PERSON, TOOL
from orchtrace_corpus.trace.importers.spans.team import Activation, Failure, Failures, Team, Transfer
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Meanings, Spending, Tree, merge_twins, tree
from orchtrace_corpus.trace.model.import_report import Missing
from orchtrace_corpus.trace.model.terms import AgentKind, EdgeType, EventType, Status, Topology
from orchtrace_corpus.trace.model.trace import Event

_MOST_COMPARED = 50  # among so many calls of one tool that wait, the one of the same arguments is looked for


_INPUTS = {TOOL: EdgeType.TOOL, GUARDRAIL: EdgeType.SAFETY, AGENT: EdgeType.RETURN}
_INPUTS |= dict.fromkeys((HANDOFF, spans.Kind.PERSON), EdgeType.CAUSAL)
"""How an answer depends on what has come back since the one before it."""
_JOINED_INPUTS = {**_INPUTS, AGENT: EdgeType.AGGREGATE}


class Asked(NamedTuple):
    """The call that a span carries out."""

    id: str  # its id, unique in the trace
    cause: str = ""  # the event of the model's answer that asked for it; empty where the log does not tell
    is_made_up: bool = False  # whether the id was made from the span's


class Act(Struct):
    """Something done in a frame."""

    kind: spans.Kind  # what was done: a model asked, a tool called, an agent spawned, a handoff, a guardrail run
    start: float  # when it began
    end: float | None  # when it ended; None where the log does not say
    entry: str  # the event with which it begins; empty where it only brings something back
    result: str = ""  # the event with which it ends; empty where it does not
    cause: str = ""  # the event of the model's answer that asked for it; empty where the log does not tell


class Frame(Struct):
    """The events of an agent's activation, or of the span of a tool or guardrail."""

    entries: list[tuple[str, EdgeType]] = []  # the events that it begins with, each with the type of the edge from it
    acts: list[Act] = []  # what was done
    exits: list[str] = []  # the events that it ends with, in their order
    is_deciding: bool = False  # whether its last answer decided who acts next
    first: str = ""  # its first event; empty where it has none but its end
    last: str = ""  # the last event before its end
    last_span: spans.Span | None = None  # the span of that

    def note(self, event: str, span: spans.Span) -> None:
        """Note one more event."""
        self.first = self.first or event
        self.last, self.last_span = event, span


def draw_edge(builder: Builder, source: str, target: str, kind: EdgeType) -> bool:
    """Draw an edge if it leads forward: in time, and at one time in the order of the events."""
    if not source or not target:
        return False
    begin, end = builder.events[source].t, builder.events[target].t
    is_forward = bool(begin < end or (begin == end and int(source[1:]) < int(target[1:])))
    if is_forward:
        builder.edge(source, target, kind)
    return is_forward


def _decide(builder: Builder, event: str) -> None:
    """Make an answer a decision that leads to a spawn or a handoff, even where it aggregates."""
    if event and builder.events[event].type in (EventType.INFERENCE, EventType.AGGREGATE):
        builder.events[event].type = EventType.DECISION


class _Line:
    """The acts of one frame, by time."""

    def __init__(self, builder: Builder, frame: Frame) -> None:
        self._builder = builder
        self._frame = frame
        self._running: list[tuple[float, int, Act]] = []
        self._fresh: dict[str, spans.Kind] = {}  # what has come back since the last answer, with what it was
        self._last_answer = ""
        self._last = ""  # what ended last

    def draw(self) -> None:
        acts = sorted(enumerate(self._frame.acts), key=lambda pair: (pair[1].start, pair[0]))
        is_begun = False
        for index, act in acts:
            self._finish(act.start)
            if act.entry:
                sources = self._frame.entries if not is_begun else self._frame.entries[-1:]
                draw_to = self._draw_answer if act.kind is INFERENCE else self._draw_act
                draw_to(act, [] if self._last else sources)
                is_begun = True
            if act.end is not None:
                heappush(self._running, (act.end, index, act))
        self._finish(float("inf"))
        self._draw_exits(is_begun)

    def _finish(self, until: float) -> None:
        """Take note of what has ended by a time."""
        while self._running and self._running[0][0] <= until:
            act = heappop(self._running)[2]
            if not act.result:
                continue
            self._last = act.result
            if act.kind is INFERENCE:
                self._last_answer = act.result
            else:
                self._fresh[act.result] = act.kind

    def _draw_act(self, act: Act, entries: Sequence[tuple[str, EdgeType]]) -> None:
        cause = act.cause or self._last_answer
        kind = EdgeType.SAFETY if act.kind is GUARDRAIL else EdgeType.CAUSAL
        draw_edge(self._builder, cause, act.entry, kind)
        if not act.cause and self._last not in ("", cause):
            draw_edge(self._builder, self._last, act.entry, EdgeType.TEMPORAL)
        for source, entry_kind in entries:
            draw_edge(self._builder, source, act.entry, entry_kind)
        if act.kind in (AGENT, HANDOFF):
            _decide(self._builder, cause)

    def _draw_answer(self, act: Act, entries: Sequence[tuple[str, EdgeType]]) -> None:
        messages = sum(kind is EdgeType.MESSAGE for _, kind in entries)
        inputs = 0
        for source, kind in entries:
            is_joined = messages > 1 and kind is EdgeType.MESSAGE
            is_drawn = draw_edge(self._builder, source, act.entry, EdgeType.AGGREGATE if is_joined else kind)
            inputs += is_drawn and messages > 1
        returns = sum(kind is AGENT for kind in self._fresh.values())
        types = _JOINED_INPUTS if returns > 1 else _INPUTS
        is_begun = False
        for source, done in self._fresh.items():
            is_drawn = draw_edge(self._builder, source, act.entry, types[done])
            is_begun = is_begun or is_drawn
            inputs += is_drawn and done is AGENT
        if inputs and self._builder.events[act.entry].type is EventType.INFERENCE:
            self._builder.events[act.entry].type = EventType.AGGREGATE
        if not is_begun:
            draw_edge(self._builder, self._last_answer or self._last, act.entry, EdgeType.TEMPORAL)
        self._fresh.clear()

    def _draw_exits(self, is_begun: bool) -> None:
        if self._frame.is_deciding:
            _decide(self._builder, self._last_answer)
        for event in self._frame.exits[:1]:
            for source in dict.fromkeys((*self._fresh, self._last)):
                draw_edge(self._builder, source, event, EdgeType.CAUSAL)
            for source, kind in () if is_begun else self._frame.entries:
                draw_edge(self._builder, source, event, kind)
        for event in self._frame.exits[1:]:
            draw_edge(self._builder, self._last or self._frame.exits[0], event, EdgeType.CAUSAL)


def _draw_sequence(team: Team, frames: dict[int, Frame], builder: Builder) -> None:
    """Agents that nobody spawned or handed over to follow on those that had ended before."""
    activations = team.activations
    alone = [index for index, each in enumerate(activations) if each.parent == NOBODY]
    running: list[tuple[float, int]] = []
    fresh: list[str] = []
    last = ""
    for index in sorted(alone, key=lambda n: (activations[n].earliest, activations[n].latest, n)):
        activation = activations[index]
        while running and running[0][0] <= activation.earliest:
            last = frames[heappop(running)[1]].last
            fresh.append(last)
        if not activation.incoming:
            for source in dict.fromkeys((*fresh, last)):
                draw_edge(builder, source, frames[index].first, EdgeType.TEMPORAL)
            fresh = []
        heappush(running, (activation.latest, index))


def write_events(bundle: spans.Bundle, run: Run) -> Topology:
    """Write the events of a bundle into a run, and return how its agents are arranged."""
    of = tree(bundle.spans, run.report)
    roots = [of.spans[index].name for index in of.order if of.parents[index] == NOBODY]
    bundle.name = bundle.name or next(iter(roots), "")
    run.trace_id, run.name = bundle.trace_id or "trace", bundle.name or bundle.trace_id or "run"
    run.system, run.version = bundle.system, bundle.version
    merge_twins(of, run)
    spent = Spending(of, run)
    meanings = Meanings(of, spent.by_span)
    team = Team(of, meanings, bundle, set(spent.by_span), run.report)
    script = _Script(of, meanings, team, spent, run.builder)
    script.write()
    for frame in script.frames.values():
        _Line(run.builder, frame).draw()
    _draw_sequence(team, script.frames, run.builder)
    if spent.by_span:
        run.missing[Missing.CALLS] = spent.uncounted
    spawned = [activation for activation in team.activations if activation.spawner != NOBODY]
    return topology({activation.agent: team.activations[activation.spawner].agent for activation in spawned})


_LAST = frozenset((EventType.STOP, EventType.DESPAWN))
"""The events with which an agent ends: they are behind whatever it did."""
_INFERENCE, _TOOL_CALL, _TOOL_RESULT = EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT
_TOOL = EdgeType.TOOL  # which Python 3.11 takes long to find
_UNSPENT = UNSET, UNSET


class _Script:
    """Writes the events of a tree, and keeps for each frame what happened in it.

    A frame is an agent's activation, or the span of a tool or guardrail that holds acts itself.
    """

    def __init__(self, of: Tree, meanings: Meanings, team: Team, spending: Spending, builder: Builder) -> None:
        # the frames: of activations by their index, of spans by `_frame_of_span`
        self.frames: dict[int, Frame] = {index: Frame() for index in range(len(team.activations))}
        self._of, self._meanings, self._kinds = of, meanings, meanings.kinds
        self._team, self._spent, self._builder = team, spending.by_span, builder
        self._asked_calls: dict[tuple[int, str], deque[tuple[spans.Call, str]]] = {}  # by activation and tool
        self._asking: dict[tuple[int, str], str] = {}  # the event in which a call is asked for, by activation and id
        self._index_of = {each.span: n for n, each in enumerate(team.activations) if each.span != NOBODY}
        self._base = [NOBODY] * len(of.spans)  # the frame in which a span happens
        self._inner = [NOBODY] * len(of.spans)  # the frame in which its children happen
        self._acts: dict[int, Act] = {}  # by the index of the span
        self._models: dict[str, str] = {}
        self._returned: dict[str, float] = {}
        self._endings: list[tuple[int, spans.Span, dict[str, Any]]] = []
        self._failures = Failures(of, meanings, team)
        self._failed: dict[str, str] = {}  # the last event of that by the agent, where it lies outside its spans

    def write(self) -> None:
        """Write all events: the beginning of a span, then its children, then its end."""
        of, activations = self._of, self._team.activations
        for activation in activations:
            parent = activations[activation.spawner].agent if activation.spawner != NOBODY else ""
            self._builder.agent(activation.agent, role=activation.name, parent=parent, kind=AgentKind.MODEL)
        waiting = [index for index in reversed(of.order) if of.parents[index] == NOBODY]
        while waiting:
            index = waiting.pop()
            if index < 0:
                self._leave(~index)
            else:
                self._enter(index)
                waiting.append(~index)
                waiting.extend(reversed(of.children[index]))
        for index, activation in enumerate(activations):
            last = self.frames[index].last_span
            if activation.span == NOBODY and last is not None:
                self._end(index, activation, last)
        for ending in self._endings:  # behind whatever else is at the same time
            self._end_agent(*ending)

    def _add(
        self, kind: EventType, owner: int, time: float, span: spans.Span, end: float | None = None, **fields: Any
    ) -> Event:
        """Add an event of an activation, with further fields."""
        event = self._builder.begin(kind, self._team.activations[owner].agent, time, span.file, span.line, end)
        for name, value in fields.items():
            setattr(event, name, value)
        if kind not in _LAST:
            self.frames[owner].note(event.id, span)
        return event

    def _enter(self, index: int) -> None:
        kind, owner, parent = self._kinds[index], self._team.owner[index], self._of.parents[index]
        around = self._team.activations[owner].parent if kind is AGENT else owner
        inside = parent != NOBODY and self._team.owner[parent] == around
        self._base[index] = self._inner[parent] if inside else around
        self._inner[index] = owner if kind is AGENT else self._base[index]
        if kind is AGENT:
            self._begin(self._index_of[index])
        elif kind is INFERENCE:
            self._infer(index, owner)
        elif kind is TOOL and not self._meanings.has_agents[index]:
            self._call(index, owner)
        elif kind is HANDOFF:
            self._hand_over(index, owner)
        elif kind is GUARDRAIL and self._holds_others(index):
            self._open(index)
        elif kind is PERSON:
            self._ask_person(index, owner)

    def _leave(self, index: int) -> None:
        kind, owner = self._kinds[index], self._team.owner[index]
        if failure := self._failures.by_span.get(index):
            self._fail(failure)
        has_own_event = kind is INFERENCE or (kind is TOOL and not self._meanings.has_agents[index])
        if index in self._spent and not has_own_event:
            self._infer_hidden(index, owner if owner != NOBODY else self._team.bearer_owner[index])
        if kind is AGENT:
            activation = self._index_of[index]
            self._end(activation, self._team.activations[activation], self._of.spans[index])
        elif kind is TOOL and index in self._acts:
            self._answer(index, owner)
        elif kind is GUARDRAIL:
            self._guard(index, owner)

    def _holds_others(self, index: int) -> bool:
        return self._meanings.has_acts[index] or self._meanings.has_agents[index]

    def _open(self, index: int, entry: str = "") -> None:
        """Open a span: what follows below it happens in it, not directly in the agent."""
        self._inner[index] = _frame_of_span(index)
        self.frames[_frame_of_span(index)] = Frame([(entry, EdgeType.CAUSAL)] if entry else [])

    def _act(self, index: int, act: Act) -> None:
        """Note an act in the frame in which its span happens."""
        self.frames[self._base[index]].acts.append(act)
        self._acts[index] = act

    # Agents

    def _begin(self, index: int) -> None:
        """Begin an agent's span: its agent is spawned, unless another has handed over to it."""
        activation = self._team.activations[index]
        if activation.parent == NOBODY or activation.incoming or not activation.is_first:
            return
        caller = self._of.spans[activation.span]
        time, carried, tool = activation.start, Asked(""), ""
        if activation.wrapper != NOBODY:
            caller = self._of.spans[activation.wrapper]
            if activation.wrapper in self._team.lone:
                time = self._of.starts[activation.wrapper]
            if self._kinds[activation.wrapper] is TOOL:
                tool = masked(caller.name)
                carried = self._carry_out(activation.parent, caller)
        event = self._add(EventType.SPAWN, activation.parent, min(time, activation.earliest), caller)
        event.target, event.role, event.tool = activation.agent, activation.name, tool
        event.call_id, event.content_ref = carried.id, caller.arguments
        self.frames[index].entries.append((event.id, EdgeType.SPAWN))
        self._act(activation.span, Act(AGENT, event.t, None, event.id, cause=carried.cause))

    def _end(self, index: int, activation: Activation, span: spans.Span) -> None:
        """End an agent's span: it passes control on, or returns to whom it belongs to, or stops."""
        frame = self.frames[index]
        has_span = activation.span != NOBODY
        if has_span and span.is_interrupted and not self._meanings.has_agents[activation.span]:
            frame.exits.append(self._add(EventType.HUMAN, index, activation.latest, span, inferred=True).id)
        for transfer in activation.outgoing:
            if transfer.span == NOBODY:
                self._pass_on(index, activation, transfer, span)
        if activation.end is None:
            return
        status: dict[str, Any] = span.failure if has_span else {}
        if not activation.outgoing and activation.parent != NOBODY:
            self._return(index, activation, span, status)
        if activation.is_last:
            self._endings.append((index, span, status))

    def _fail(self, failure: Failure) -> None:
        """Something failed that is neither a model nor a tool: the agent has that instead of a result."""
        span, index = self._of.spans[failure.span], failure.activation
        before, tool = self.frames[index].last, masked(self._meanings.names[failure.span])
        event = self._add(_TOOL_RESULT, index, failure.time, span, tool=tool, inferred=True, **span.failure).id
        if failure.is_outside:
            draw_edge(self._builder, before, event, EdgeType.CAUSAL)
            self._failed[self._team.activations[index].agent] = event
        else:
            inside = self._inner if self._kinds[failure.span] is AGENT else self._base
            self.frames[inside[failure.span]].acts.append(Act(TOOL, failure.time, failure.time, event, event))

    def _end_agent(self, index: int, span: spans.Span, status: dict[str, Any]) -> None:
        """End an agent that does nothing more: it is despawned, or stops unless it has handed over."""
        activation, frame = self._team.activations[index], self.frames[index]
        agent = activation.agent
        if activation.spawner != NOBODY:
            time = max(activation.latest, self._returned.get(agent, 0.0))
            frame.exits.append(self._add(EventType.DESPAWN, index, time, span, inferred=True).id)
        elif not activation.outgoing:
            if agent in self._failures.runs:
                status = status or self._failures.runs[agent].failure
            time = max(activation.latest, self._failures.last.get(agent, 0.0))
            stop = self._add(EventType.STOP, index, time, span, inferred=True, **status).id
            frame.exits.append(stop)
            draw_edge(self._builder, self._failed.get(agent, ""), stop, EdgeType.CAUSAL)

    def _pass_on(self, index: int, activation: Activation, transfer: Transfer, span: spans.Span) -> None:
        """Add a transfer that no span stands for."""
        receiver, frame = self._team.activations[transfer.target], self.frames[index]
        time = activation.latest if activation.end is None else activation.end
        if transfer.is_push and receiver.is_first:
            event, edge = self._add(EventType.SPAWN, index, time, span, role=receiver.name), EdgeType.SPAWN
        else:
            event, edge = self._add(EventType.MESSAGE, index, time, span, time), EdgeType.MESSAGE
            event.sender, event.content_ref = activation.agent, span.output
        event.target, event.inferred = receiver.agent, True
        self.frames[transfer.target].entries.append((event.id, edge))
        frame.exits.append(event.id)
        frame.is_deciding = frame.is_deciding or transfer.is_push or transfer.is_routed

    def _return(self, index: int, activation: Activation, span: spans.Span, status: dict[str, Any]) -> None:
        time, caller = activation.end, span
        if activation.wrapper in self._team.lone:
            time, caller = self._of.ends[activation.wrapper], self._of.spans[activation.wrapper]
        if time is None:
            return
        time = max(time, activation.start)
        added = self._add(EventType.RETURN, index, time, caller, **(status or caller.failure))
        added.target, added.content_ref = self._team.activations[activation.parent].agent, caller.output
        self.frames[index].exits.append(added.id)
        self._returned[activation.agent] = max(time, self._returned.get(activation.agent, 0.0))
        act = self._acts.get(activation.span)
        if act is None:
            self._act(activation.span, Act(AGENT, activation.start, time, "", added.id))
        else:
            act.end, act.result = time, added.id

    # Acts

    def _extent(self, index: int) -> tuple[spans.Span, float, float | None]:
        return self._of.spans[index], self._of.starts[index], self._of.ends[index]

    def _infer(self, index: int, owner: int) -> None:
        span, start, end = self._extent(index)
        event = self._add(_INFERENCE, owner, start, span, end, **span.ending, **(span.more or {}))
        event.model, event.content_ref = masked(span.model), span.output
        event.tokens, event.token_basis = self._spent.get(index, _UNSPENT)
        for call in span.calls:
            self._asked_calls.setdefault((owner, call.tool), deque()).append((call, event.id))
            if call.id:
                self._asking[owner, call.id] = event.id
        if span.model and self._models.get(event.agent) != span.model:
            self._models[event.agent] = span.model
            self._builder.agent(event.agent, model=span.model)
        self._act(index, Act(INFERENCE, start, end, event.id, event.id))

    def _infer_hidden(self, index: int, owner: int) -> None:
        """Model calls that the log does not show, by the tokens that they spent.

        They fill a span that holds nothing else. Otherwise nobody knows when they were.
        """
        (span, start, end), latest = self._extent(index), self._of.latest[index]
        if self._holds_others(index):
            start, end = latest, None
        event = self._add(_INFERENCE, owner, start, span, end, model=masked(span.model), inferred=True)
        event.tokens, event.token_basis = self._spent[index]
        inside = self._inner[index] if self._team.owner[index] == owner else owner
        self.frames[inside].acts.append(Act(INFERENCE, start, latest, event.id, event.id))

    def _call(self, index: int, owner: int) -> None:
        span, start, end = self._extent(index)
        carried = self._carry_out(owner, span)
        works_until = self._meanings.first_act_in(index, self._of) if self._meanings.has_acts[index] else end
        event = self._add(_TOOL_CALL, owner, start, span, works_until, **(span.more or {}))
        event.tool, event.call_id, event.inferred = masked(span.name), carried.id, carried.is_made_up
        event.content_ref = span.arguments
        event.tokens, event.token_basis = self._spent.get(index, _UNSPENT)
        if self._meanings.has_acts[index]:
            self._open(index, event.id)
        self._act(index, Act(TOOL, start, end, event.id, cause=carried.cause))

    def _carry_out(self, owner: int, span: spans.Span) -> Asked:
        """Return the call that a span carries out: by its id, else by tool and arguments, else by tool."""
        call_id, cause = span.call_id, self._asking.get((owner, span.call_id), "")
        waiting = self._asked_calls.get((owner, span.name))
        if not call_id and waiting:
            compared = islice(waiting, _MOST_COMPARED)
            pair = next((pair for pair in compared if pair[0].arguments == span.arguments), waiting[0])
            waiting.remove(pair)
            call_id, cause = pair[0].id, pair[1]
        name = masked(call_id) if call_id else f"span:{masked(span.id)}"
        return Asked(self._builder.call_id(name, span.where), cause, is_made_up=not call_id)

    def _answer(self, index: int, owner: int) -> None:
        (span, _, end), act = self._extent(index), self._acts[index]
        if end is None:
            return
        call = self._builder.events[act.entry]
        event = self._add(_TOOL_RESULT, owner, end, span, content_ref=span.output, **span.ending)
        event.tool, event.call_id, event.inferred = call.tool, call.call_id, call.inferred
        act.result = event.id
        self._builder.edge(act.entry, event.id, _TOOL)
        if frame := self.frames.get(_frame_of_span(index)):
            frame.exits.append(event.id)

    def _hand_over(self, index: int, owner: int) -> None:
        span, start, end = self._extent(index)
        target = self._team.handoffs.get(index, NOBODY)
        event = self._add(EventType.MESSAGE, owner, start, span, end, **span.ending)
        event.sender, event.target = event.agent, masked(span.target)
        self._act(index, Act(HANDOFF, start, end, event.id, event.id))
        if target != NOBODY:
            event.target = self._team.activations[target].agent
            self.frames[target].entries.append((event.id, EdgeType.MESSAGE))

    def _ask_person(self, index: int, owner: int) -> None:
        """Add the answer of a person to the agent."""
        span, start, end = self._extent(index)
        self._builder.agent(USER, kind=AgentKind.HUMAN)
        event = self._builder.begin(EventType.HUMAN, USER, start, span.file, span.line, end)
        event.target, event.content_ref = self._team.activations[owner].agent, span.output
        self.frames[owner].note(event.id, span)
        self._act(index, Act(PERSON, start, end, event.id, event.id))

    def _guard(self, index: int, owner: int) -> None:
        """Add a guardrail's verdict: when it began, unless what it did stands for the time until then."""
        span, start, end = self._extent(index)
        is_late, latest = self._holds_others(index), self._of.latest[index]
        status: dict[str, Any] = {"status": Status.CANCELLED} if span.is_triggered else span.ending
        fields = {"tool": masked(span.name), **status, **(span.more or {})}
        if is_late:
            event = self._add(EventType.SAFETY, owner, latest, span, **fields).id
            self._act(index, Act(GUARDRAIL, start, latest, "", event))
            self.frames[_frame_of_span(index)].exits.append(event)
        else:
            event = self._add(EventType.SAFETY, owner, start, span, end, **fields).id
            self._act(index, Act(GUARDRAIL, start, end, event, event))


def _frame_of_span(index: int) -> int:
    """Return the key of the frame of a tool's or guardrail's span; activations have keys of 0 and more."""
    return -2 - index
