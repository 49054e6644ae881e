"""The events of a span tree, one for each act, and the edges between them.

Spans say when something ran, seldom why. The edges are those of a program that waits for its calls: a model's answer
depends on all that came back since the answer before, a call on the answer that asked for it, an agent's end on the
last thing it did. Agents that nobody called or handed over to follow, by time only, those that had ended before.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Any

from msgspec import UNSET, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.transcript import USER, topology
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.span import AGENT, GUARDRAIL, HANDOFF, INFERENCE, PERSON, TOOL
from orchtrace_corpus.trace.importers.spans.team import Activation, Team, Transfer, find_failures
from orchtrace_corpus.trace.importers.spans.tree import NO_INDEX, SpanRoles, Tree, build_tree, count_tokens, merge_twins
from orchtrace_corpus.trace.model.import_report import Missing
from orchtrace_corpus.trace.model.terms import AgentKind, EdgeType, EventType, Status, TokenBasis, Topology
from orchtrace_corpus.trace.model.trace import Event, Tokens

_MOST_COMPARED = 50
"""Among so many calls of one tool that no span has carried out yet, the one with the same arguments is looked for."""

_INPUTS = {TOOL: EdgeType.TOOL, GUARDRAIL: EdgeType.SAFETY, AGENT: EdgeType.RETURN}
_INPUTS |= dict.fromkeys((HANDOFF, PERSON), EdgeType.CAUSAL)
"""How an answer depends on what came back since the one before it."""
_JOINED_INPUTS = {**_INPUTS, AGENT: EdgeType.AGGREGATE}

_LAST = frozenset((EventType.STOP, EventType.DESPAWN))
"""The events with which an agent ends: they are behind all others of it."""
_INFERENCE, _TOOL_CALL, _TOOL_RESULT = EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT
_CAUSAL, _TEMPORAL, _MESSAGE = EdgeType.CAUSAL, EdgeType.TEMPORAL, EdgeType.MESSAGE
_UNSPENT = UNSET, UNSET


def write_events(bundle: spans.Bundle, run: Run) -> Topology:
    """Write the events of a bundle into a run, and return how its agents are arranged."""
    tree = build_tree(bundle.spans, run.report)
    bundle.name = bundle.name or next((tree.spans[index].name for index in tree.children[NO_INDEX]), "")
    run.trace_id, run.name = bundle.trace_id or "trace", bundle.name or bundle.trace_id or "run"
    run.system, run.version = bundle.system, bundle.version
    merge_twins(tree, run)
    spent, uncounted = count_tokens(tree, run)
    roles = SpanRoles(tree, spent)
    team = Team(tree, roles, bundle, spent, run.report)
    writer = _Writer(tree, roles, team, spent, run.builder)
    writer.write()
    for frame in writer.frames.values():
        frame.draw_edges()
    _draw_sequence(team, writer.frames, run.builder)
    if spent:
        run.missing[Missing.CALLS] = uncounted
    spawned = [activation for activation in team.activations if activation.spawner != NO_INDEX]
    return topology({activation.agent: team.activations[activation.spawner].agent for activation in spawned})


class Asked(NamedTuple):
    """The call that a span carries out."""

    id: str  # its id, unique in the trace
    cause: str = ""  # the event of the model's answer that asked for it; empty if the log does not say
    is_made_up: bool = False  # True if the id was made from the span's


class Act(Struct):
    """One act in a frame: a model asked, a tool called, an agent spawned, a handoff, a guardrail run."""

    kind: spans.Kind
    start: float  # when it began
    end: float | None  # when it ended; None if the log does not say
    entry: str  # the event with which it begins; empty if it only brings something back
    result: str = ""  # the event with which it ends; empty if it does not
    cause: str = ""  # the event of the model's answer that asked for it; empty if the log does not say


def draw_edge(builder: Builder, source: str, target: str, kind: EdgeType) -> bool:
    """Draw an edge if it leads forward in time, or in the order of events at one time; return True if it does."""
    if not source or not target:
        return False
    begin, end = builder.events[source].t, builder.events[target].t
    is_forward = bool(begin < end or (begin == end and int(source[1:]) < int(target[1:])))
    if is_forward:
        builder.edge(source, target, kind)
    return is_forward


class Frame(Struct):
    """An agent's activation, or the span of a tool or guardrail, with what happened in it."""

    builder: Builder
    entries: list[tuple[str, EdgeType]] = []  # the events that it begins with, each with the type of the edge from it
    acts: list[Act] = []
    exits: list[str] = []  # the events that it ends with, in order
    is_deciding: bool = False  # True if its last answer decided who acts next
    first: str = ""  # its first event; empty if it has none but its end
    last: str = ""  # the last event before its end
    last_span: spans.Span | None = None  # the span of that event
    # while edges are drawn:
    came_back: dict[str, spans.Kind] = {}  # the results since the last answer, each with the kind of act
    last_answer: str = ""
    last_result: str = ""

    def note(self, event: str, span: spans.Span) -> None:
        """Note one more event."""
        self.first = self.first or event
        self.last, self.last_span = event, span

    def draw_edges(self) -> None:
        """Draw the edges between its acts, by time."""
        is_begun = False
        running: list[tuple[float, int, Act]] = []
        for index, act in sorted(enumerate(self.acts), key=lambda pair: (pair[1].start, pair[0])):
            self._finish(running, act.start)
            if act.entry:
                entries = self.entries[-1:] if is_begun else self.entries
                is_begun = True
                if act.kind is INFERENCE:
                    self._draw_answer(act, [] if self.last_result else entries)
                else:
                    self._draw_act(act, [] if self.last_result else entries)
            if act.end is not None:
                heappush(running, (act.end, index, act))
        self._finish(running, inf)
        if self.is_deciding:
            self._decide(self.last_answer)
        for event in self.exits[:1]:
            for source in dict.fromkeys((*self.came_back, self.last_result)):
                draw_edge(self.builder, source, event, _CAUSAL)
            for source, kind in () if is_begun else self.entries:
                draw_edge(self.builder, source, event, kind)
        for event in self.exits[1:]:
            draw_edge(self.builder, self.last_result or self.exits[0], event, _CAUSAL)

    def _finish(self, running: list[tuple[float, int, Act]], until: float) -> None:
        """Note the results of the acts that ended by a time."""
        while running and running[0][0] <= until:
            act = heappop(running)[2]
            if not act.result:
                continue
            self.last_result = act.result
            if act.kind is INFERENCE:
                self.last_answer = act.result
            else:
                self.came_back[act.result] = act.kind

    def _decide(self, event: str) -> None:
        """Make an answer a decision that leads to a spawn or a handoff, even if it aggregates."""
        if event and self.builder.events[event].type in (EventType.INFERENCE, EventType.AGGREGATE):
            self.builder.events[event].type = EventType.DECISION

    def _draw_act(self, act: Act, entries: Sequence[tuple[str, EdgeType]]) -> None:
        cause = act.cause or self.last_answer
        draw_edge(self.builder, cause, act.entry, EdgeType.SAFETY if act.kind is GUARDRAIL else _CAUSAL)
        if not act.cause and self.last_result not in ("", cause):
            draw_edge(self.builder, self.last_result, act.entry, _TEMPORAL)
        for source, kind in entries:
            draw_edge(self.builder, source, act.entry, kind)
        if act.kind in (AGENT, HANDOFF):
            self._decide(cause)

    def _draw_answer(self, act: Act, entries: Sequence[tuple[str, EdgeType]]) -> None:
        """Draw the edges to an answer, which aggregates if it has several messages, or a return, as inputs."""
        is_joined = sum(kind is _MESSAGE for _, kind in entries) > 1
        is_aggregate = is_begun = False
        for source, kind in entries:
            edge = EdgeType.AGGREGATE if is_joined and kind is _MESSAGE else kind
            is_drawn = draw_edge(self.builder, source, act.entry, edge)
            is_aggregate = is_aggregate or (is_drawn and is_joined)
        returns = sum(done is AGENT for done in self.came_back.values())
        types = _JOINED_INPUTS if returns > 1 else _INPUTS
        for source, done in self.came_back.items():
            is_drawn = draw_edge(self.builder, source, act.entry, types[done])
            is_begun = is_begun or is_drawn
            is_aggregate = is_aggregate or (is_drawn and done is AGENT)
        if is_aggregate and self.builder.events[act.entry].type is EventType.INFERENCE:
            self.builder.events[act.entry].type = EventType.AGGREGATE
        if not is_begun:
            draw_edge(self.builder, self.last_answer or self.last_result, act.entry, _TEMPORAL)
        self.came_back.clear()


def _draw_sequence(team: Team, frames: dict[int, Frame], builder: Builder) -> None:
    """Let agents that nobody spawned or handed over to follow those that had ended before."""
    activations = team.activations
    alone = [index for index, activation in enumerate(activations) if activation.parent == NO_INDEX]
    running: list[tuple[float, int]] = []
    fresh: list[str] = []
    last = ""
    for index in sorted(alone, key=lambda index: (activations[index].earliest, activations[index].latest, index)):
        activation = activations[index]
        while running and running[0][0] <= activation.earliest:
            last = frames[heappop(running)[1]].last
            fresh.append(last)
        if not activation.incoming:
            for source in dict.fromkeys((*fresh, last)):
                draw_edge(builder, source, frames[index].first, _TEMPORAL)
            fresh = []
        heappush(running, (activation.latest, index))


class _Writer:
    """Writes the events of a tree, and notes in each frame what happened in it."""

    def __init__(
        self, tree: Tree, roles: SpanRoles, team: Team, spent: dict[int, tuple[Tokens, TokenBasis]], builder: Builder
    ) -> None:
        # the frames: of activations by their index, of spans by `_frame_of_span`
        self.frames: dict[int, Frame] = {index: Frame(builder) for index in range(len(team.activations))}
        self._tree, self._roles, self._kinds = tree, roles, roles.kinds
        self._team, self._spent, self._builder = team, spent, builder
        # the calls that no span has carried out yet, each with the event that asks for it, by activation and tool
        self._open_calls = defaultdict[tuple[int, str], deque[tuple[spans.Call, str]]](deque)
        self._asking: dict[tuple[int, str], str] = {}  # the event that asks for a call, by activation and id
        self._base = [NO_INDEX] * len(tree.parents)  # the frame in which a span happens
        self._inner = [NO_INDEX] * len(tree.parents)  # the frame in which its children happen
        self._acts: dict[int, Act] = {}  # by the index of the span
        self._models: dict[str, str] = {}
        self._returned: dict[str, float] = {}  # when an agent returned last
        self._endings: list[tuple[int, spans.Span, dict[str, Any]]] = []
        self._failures = find_failures(tree, roles, team)
        self._failed: dict[str, str] = {}  # an agent's last event of a failure outside its spans

    def write(self) -> None:
        """Write all events: the beginning of a span, then its children, then its end."""
        activations = self._team.activations
        for activation in activations:
            parent = activations[activation.spawner].agent if activation.spawner != NO_INDEX else ""
            self._builder.agent(activation.agent, role=activation.name, parent=parent, kind=AgentKind.MODEL)
        waiting = self._tree.children[NO_INDEX][::-1]
        while waiting:
            index = waiting.pop()
            if index < 0:
                self._leave(~index)
            else:
                self._enter(index)
                waiting.append(~index)
                waiting += reversed(self._tree.children[index])
        for index, activation in enumerate(activations):
            last = self.frames[index].last_span
            if activation.span == NO_INDEX and last is not None:
                self._end(index, activation, last)
        for ending in self._endings:  # behind all others of the same time
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
        kind, owner, parent = self._kinds[index], self._team.owner[index], self._tree.parents[index]
        around = self._team.activations[owner].parent if kind is AGENT else owner
        self._base[index] = self._inner[parent] if self._team.owner[parent] == around else around
        self._inner[index] = owner if kind is AGENT else self._base[index]
        if kind is AGENT:
            self._begin(owner)
        elif kind is INFERENCE:
            self._infer(index, owner)
        elif kind is TOOL and not self._roles.has_agents[index]:
            self._call(index, owner)
        elif kind is HANDOFF:
            self._hand_over(index, owner)
        elif kind is GUARDRAIL and self._holds_others(index):
            self._open(index)
        elif kind is PERSON:
            self._ask_person(index, owner)

    def _leave(self, index: int) -> None:
        kind, owner = self._kinds[index], self._team.owner[index]
        if index in self._failures.bearers:
            self._fail(index, self._failures.bearers[index])
        has_own_event = kind is INFERENCE or (kind is TOOL and not self._roles.has_agents[index])
        if index in self._spent and not has_own_event:
            self._infer_hidden(index, owner if owner != NO_INDEX else self._team.bearer_owner[index])
        if kind is AGENT:
            self._end(owner, self._team.activations[owner], self._tree.spans[index])
        elif kind is TOOL and index in self._acts:
            self._answer(index, owner)
        elif kind is GUARDRAIL:
            self._guard(index, owner)

    def _holds_others(self, index: int) -> bool:
        return self._roles.has_acts[index] or self._roles.has_agents[index]

    def _open(self, index: int, entry: str = "") -> None:
        """Make a span a frame: the acts below it happen in it, not directly in the agent."""
        self._inner[index] = _frame_of_span(index)
        self.frames[_frame_of_span(index)] = Frame(self._builder, [(entry, _CAUSAL)] if entry else [])

    def _act(self, index: int, act: Act) -> None:
        """Note an act in the frame in which its span happens."""
        self.frames[self._base[index]].acts.append(act)
        self._acts[index] = act

    # Agents

    def _begin(self, index: int) -> None:
        """Add the spawn of an agent whose span begins, unless another handed over to it."""
        activation = self._team.activations[index]
        if activation.parent == NO_INDEX or activation.incoming or not activation.is_first:
            return
        caller = self._tree.spans[activation.span]
        time, carried, tool = activation.start, Asked(""), ""
        if activation.wrapper != NO_INDEX:
            caller = self._tree.spans[activation.wrapper]
            if activation.wrapper in self._team.lone:
                time = self._tree.starts[activation.wrapper]
            if self._kinds[activation.wrapper] is TOOL:
                tool = masked(caller.name)
                carried = self._carry_out(activation.parent, caller)
        event = self._add(EventType.SPAWN, activation.parent, min(time, activation.earliest), caller)
        event.target, event.role, event.tool = activation.agent, activation.name, tool
        event.call_id, event.content_ref = carried.id, caller.arguments
        self.frames[index].entries.append((event.id, EdgeType.SPAWN))
        self._act(activation.span, Act(AGENT, event.t, None, event.id, cause=carried.cause))

    def _end(self, index: int, activation: Activation, span: spans.Span) -> None:
        """End an agent's span: it hands over, returns to its parent, or stops."""
        frame = self.frames[index]
        has_span = activation.span != NO_INDEX
        if has_span and span.is_interrupted and not self._roles.has_agents[activation.span]:
            frame.exits.append(self._add(EventType.HUMAN, index, activation.latest, span, inferred=True).id)
        for transfer in activation.outgoing:
            if transfer.span == NO_INDEX:
                self._pass_on(index, activation, transfer, span)
        if activation.end is None:
            return
        status: dict[str, Any] = span.failure if has_span else {}
        if not activation.outgoing and activation.parent != NO_INDEX:
            self._return(index, activation, span, status)
        if activation.is_last:
            self._endings.append((index, span, status))

    def _fail(self, index: int, owner: int) -> None:
        """Add the failure of something that is neither a model nor a tool: the agent has it in place of a result."""
        span, time = self._tree.spans[index], self._tree.end(index)
        before, tool = self.frames[owner].last, masked(self._roles.names[index])
        event = self._add(_TOOL_RESULT, owner, time, span, tool=tool, inferred=True, **span.failure).id
        if self._team.owner[index] == NO_INDEX:
            draw_edge(self._builder, before, event, _CAUSAL)
            self._failed[self._team.activations[owner].agent] = event
        else:
            inside = self._inner if self._kinds[index] is AGENT else self._base
            self.frames[inside[index]].acts.append(Act(TOOL, time, time, event, event))

    def _end_agent(self, index: int, span: spans.Span, status: dict[str, Any]) -> None:
        """End an agent that does nothing more: it is despawned, or stops unless it handed over."""
        activation, frame = self._team.activations[index], self.frames[index]
        agent = activation.agent
        if activation.spawner != NO_INDEX:
            time = max(activation.latest, self._returned.get(agent, 0.0))
            frame.exits.append(self._add(EventType.DESPAWN, index, time, span, inferred=True).id)
        elif not activation.outgoing:
            if agent in self._failures.runs:
                status = status or self._failures.runs[agent].failure
            time = max(activation.latest, self._failures.last.get(agent, 0.0))
            stop = self._add(EventType.STOP, index, time, span, inferred=True, **status).id
            frame.exits.append(stop)
            draw_edge(self._builder, self._failed.get(agent, ""), stop, _CAUSAL)

    def _pass_on(self, index: int, activation: Activation, transfer: Transfer, span: spans.Span) -> None:
        """Add a transfer of control that has no span."""
        receiver, frame = self._team.activations[transfer.target], self.frames[index]
        time = activation.latest if activation.end is None else activation.end
        if transfer.is_push and receiver.is_first:
            event, edge = self._add(EventType.SPAWN, index, time, span, role=receiver.name), EdgeType.SPAWN
        else:
            event, edge = self._add(EventType.MESSAGE, index, time, span, time), _MESSAGE
            event.sender, event.content_ref = activation.agent, span.output
        event.target, event.inferred = receiver.agent, True
        self.frames[transfer.target].entries.append((event.id, edge))
        frame.exits.append(event.id)
        frame.is_deciding = frame.is_deciding or transfer.is_push or transfer.is_routed

    def _return(self, index: int, activation: Activation, span: spans.Span, status: dict[str, Any]) -> None:
        time, caller = activation.end, span
        if activation.wrapper in self._team.lone:
            time, caller = self._tree.ends[activation.wrapper], self._tree.spans[activation.wrapper]
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
        return self._tree.spans[index], self._tree.starts[index], self._tree.ends[index]

    def _infer(self, index: int, owner: int) -> None:
        span, start, end = self._extent(index)
        event = self._add(_INFERENCE, owner, start, span, end, **span.ending, **(span.more or {}))
        event.model, event.content_ref = masked(span.model), span.output
        event.tokens, event.token_basis = self._spent.get(index, _UNSPENT)
        for call in span.calls:
            self._open_calls[owner, call.tool].append((call, event.id))
            if call.id:
                self._asking[owner, call.id] = event.id
        if span.model and self._models.get(event.agent) != span.model:
            self._models[event.agent] = span.model
            self._builder.agent(event.agent, model=span.model)
        self._act(index, Act(INFERENCE, start, end, event.id, event.id))

    def _infer_hidden(self, index: int, owner: int) -> None:
        """Add model calls that are not in the log, but whose tokens are.

        They take the whole time of a span that holds nothing else; in any other span their time is unknown.
        """
        (span, start, end), latest = self._extent(index), self._tree.latest[index]
        if self._holds_others(index):
            start, end = latest, None
        event = self._add(_INFERENCE, owner, start, span, end, model=masked(span.model), inferred=True)
        event.tokens, event.token_basis = self._spent[index]
        inside = self._inner[index] if self._team.owner[index] == owner else owner
        self.frames[inside].acts.append(Act(INFERENCE, start, latest, event.id, event.id))

    def _call(self, index: int, owner: int) -> None:
        span, start, end = self._extent(index)
        carried = self._carry_out(owner, span)
        works_until = self._roles.first_act_in(index, self._tree) if self._roles.has_acts[index] else end
        event = self._add(_TOOL_CALL, owner, start, span, works_until, **(span.more or {}))
        event.tool, event.call_id, event.inferred = masked(span.name), carried.id, carried.is_made_up
        event.content_ref = span.arguments
        event.tokens, event.token_basis = self._spent.get(index, _UNSPENT)
        if self._roles.has_acts[index]:
            self._open(index, event.id)
        self._act(index, Act(TOOL, start, end, event.id, cause=carried.cause))

    def _carry_out(self, owner: int, span: spans.Span) -> Asked:
        """Return the call that a span carries out, found by id, else by tool and arguments, else by tool."""
        call_id, cause = span.call_id, self._asking.get((owner, span.call_id), "")
        waiting = self._open_calls.get((owner, span.name))
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
        self._builder.edge(act.entry, event.id, EdgeType.TOOL)
        if frame := self.frames.get(_frame_of_span(index)):
            frame.exits.append(event.id)

    def _hand_over(self, index: int, owner: int) -> None:
        span, start, end = self._extent(index)
        target = self._team.handoffs.get(index, NO_INDEX)
        event = self._add(EventType.MESSAGE, owner, start, span, end, **span.ending)
        event.sender, event.target = event.agent, masked(span.target)
        self._act(index, Act(HANDOFF, start, end, event.id, event.id))
        if target != NO_INDEX:
            event.target = self._team.activations[target].agent
            self.frames[target].entries.append((event.id, _MESSAGE))

    def _ask_person(self, index: int, owner: int) -> None:
        """Add the answer of a person to the agent."""
        span, start, end = self._extent(index)
        self._builder.agent(USER, kind=AgentKind.HUMAN)
        event = self._builder.begin(EventType.HUMAN, USER, start, span.file, span.line, end)
        event.target, event.content_ref = self._team.activations[owner].agent, span.output
        self.frames[owner].note(event.id, span)
        self._act(index, Act(PERSON, start, end, event.id, event.id))

    def _guard(self, index: int, owner: int) -> None:
        """Add a guardrail's verdict: over its time, or at its end if its time is that of the acts in it."""
        span, start, end = self._extent(index)
        is_late, latest = self._holds_others(index), self._tree.latest[index]
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
