"""Make the events of a span tree, one or two for each act of an agent, and the edges between them.

Spans say when something ran, but seldom why. The edges assume a program that waits for its calls: an answer of a model
depends on all results since the previous answer, a call on the answer that asked for it, the end of an agent on its
last act. An agent that nobody spawned and that took over from nobody follows the agents that had ended before.
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

_MAX_COMPARED = 50
"""The number of open calls of a tool among which a call with the same arguments is looked for."""

_RESULT_EDGES = {TOOL: EdgeType.TOOL, GUARDRAIL: EdgeType.SAFETY, AGENT: EdgeType.RETURN}
_RESULT_EDGES |= dict.fromkeys((HANDOFF, PERSON), EdgeType.CAUSAL)
"""The type of the edge from a result to the next answer, by the kind of the act that had the result."""
_JOINED_RESULT_EDGES = {**_RESULT_EDGES, AGENT: EdgeType.AGGREGATE}
"""The same for an answer that joins the results of several agents."""

_ENDS = frozenset((EventType.STOP, EventType.DESPAWN))
"""The types of the events with which an agent ends."""
_INFERENCE, _TOOL_CALL, _TOOL_RESULT = EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT
_CAUSAL, _TEMPORAL, _MESSAGE = EdgeType.CAUSAL, EdgeType.TEMPORAL, EdgeType.MESSAGE
_NO_TOKENS = UNSET, UNSET


def write_events(bundle: spans.Bundle, run: Run) -> Topology:
    """Write the events of a bundle into a run, and return how its agents are arranged."""
    tree = build_tree(bundle.spans, run.report)
    roots = tree.children[NO_INDEX]
    if not bundle.name and roots:
        bundle.name = tree.spans[roots[0]].name
    run.trace_id, run.name = bundle.trace_id or "trace", bundle.name or bundle.trace_id or "run"
    run.system, run.version = bundle.system, bundle.version
    merge_twins(tree, run)
    tokens, unknown_count = count_tokens(tree, run)
    roles = SpanRoles(tree, tokens)
    team = Team(tree, roles, bundle, tokens, run.report)
    writer = _EventWriter(tree, roles, team, tokens, run.builder)
    writer.write()
    for frame in writer.frames.values():
        frame.draw_edges()
    _draw_succession(team, writer.frames, run.builder)
    if tokens:
        run.missing[Missing.CALLS] = unknown_count
    spawned = [activation for activation in team.activations if activation.spawner != NO_INDEX]
    return topology({activation.agent: team.activations[activation.spawner].agent for activation in spawned})


class CarriedCall(NamedTuple):
    """The call that the span of a tool or agent carries out."""

    id: str  # the id of the call, unique in the trace
    cause: str = ""  # the event of the answer that asked for the call; empty if the log does not say
    is_invented: bool = False  # True if the log has no id, and the id was made from the id of the span


class Act(Struct):
    """One act in a frame: a model call, a tool call, a spawn, a handoff, a run of a guardrail."""

    kind: spans.Kind
    start: float  # when it began
    end: float | None  # when it ended; None if the log does not say
    entry: str  # the event with which it begins; empty if only its result has an event
    result: str = ""  # the event with which it ends; empty if it has none
    cause: str = ""  # the event of the answer that asked for it; empty if the log does not say


def draw_edge(builder: Builder, source: str, target: str, kind: EdgeType) -> bool:
    """Add an edge and return True, unless it would point back in time, or an event is missing (an empty id)."""
    if not source or not target:
        return False
    source_time, target_time = builder.events[source].t, builder.events[target].t  # if equal, ids show the order
    if source_time > target_time or (source_time == target_time and int(source[1:]) >= int(target[1:])):
        return False
    builder.edge(source, target, kind)
    return True


class Frame(Struct):
    """An activation of an agent, or the span of a tool or guardrail that contains acts, with what happened in it."""

    builder: Builder
    entries: list[tuple[str, EdgeType]] = []  # the events with which it begins, each with the type of the edge from it
    acts: list[Act] = []
    exits: list[str] = []  # the events with which it ends, in order
    is_deciding: bool = False  # True if its last answer decided who acts next
    first: str = ""  # its first event; empty if it has none before its end
    last: str = ""  # the last event before its end
    last_span: spans.Span | None = None  # the span of that event
    # the state while edges are drawn:
    results: dict[str, spans.Kind] = {}  # the results since the last answer, each with the kind of its act
    last_answer: str = ""
    last_result: str = ""

    def note(self, event: str, span: spans.Span) -> None:
        """Note an event in the frame."""
        self.first = self.first or event
        self.last, self.last_span = event, span

    def draw_edges(self) -> None:
        """Add the edges between its acts, in the order of time."""
        is_begun = False  # True after the first act, which depends on all entries
        running: list[tuple[float, int, Act]] = []  # a heap of the acts that have begun, by end
        for index, act in sorted(enumerate(self.acts), key=lambda pair: (pair[1].start, pair[0])):
            self._finish(running, act.start)
            if act.entry:
                entries = self.entries[-1:] if is_begun else self.entries
                if self.last_result:  # the act depends on results instead
                    entries = []
                is_begun = True
                if act.kind is INFERENCE:
                    self._draw_answer(act, entries)
                else:
                    self._draw_act(act, entries)
            if act.end is not None:
                heappush(running, (act.end, index, act))
        self._finish(running, inf)
        if self.is_deciding:
            self._decide(self.last_answer)
        if not self.exits:
            return
        first_exit = self.exits[0]
        for source in dict.fromkeys((*self.results, self.last_result)):
            draw_edge(self.builder, source, first_exit, _CAUSAL)
        if not is_begun:
            for source, kind in self.entries:
                draw_edge(self.builder, source, first_exit, kind)
        for event in self.exits[1:]:
            draw_edge(self.builder, self.last_result or first_exit, event, _CAUSAL)

    def _finish(self, running: list[tuple[float, int, Act]], until: float) -> None:
        """Note the results of the acts that ended until a time."""
        while running and running[0][0] <= until:
            _, _, act = heappop(running)
            if not act.result:
                continue
            self.last_result = act.result
            if act.kind is INFERENCE:
                self.last_answer = act.result
            else:
                self.results[act.result] = act.kind

    def _decide(self, event: str) -> None:
        """Make an answer a decision, because it leads to a spawn or a handoff; empty for no answer."""
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
        """Add the edges to an answer. It is an aggregate if its inputs are several messages or a return of an agent."""
        has_result = is_aggregate = False
        has_messages = [kind for _, kind in entries].count(_MESSAGE) > 1
        for source, kind in entries:
            edge = EdgeType.AGGREGATE if has_messages and kind is _MESSAGE else kind
            if draw_edge(self.builder, source, act.entry, edge) and has_messages:
                is_aggregate = True
        has_returns = list(self.results.values()).count(AGENT) > 1
        edge_types = _JOINED_RESULT_EDGES if has_returns else _RESULT_EDGES
        for source, act_kind in self.results.items():
            if draw_edge(self.builder, source, act.entry, edge_types[act_kind]):
                has_result = True
                is_aggregate = is_aggregate or act_kind is AGENT
        if is_aggregate and self.builder.events[act.entry].type is EventType.INFERENCE:
            self.builder.events[act.entry].type = EventType.AGGREGATE
        if not has_result:
            draw_edge(self.builder, self.last_answer or self.last_result, act.entry, _TEMPORAL)
        self.results.clear()


def _draw_succession(team: Team, frames: dict[int, Frame], builder: Builder) -> None:
    """Add temporal edges to agents that nobody spawned or handed over to, from the agents that had ended before."""
    activations = team.activations
    outermost = [index for index, activation in enumerate(activations) if activation.parent == NO_INDEX]
    running: list[tuple[float, int]] = []  # a heap of the activations that have begun, by end
    sources: list[str] = []  # the last events of the activations that have ended since the last such agent began
    last = ""  # the last event of the activation that ended last
    for index in sorted(outermost, key=lambda index: (activations[index].earliest, activations[index].latest, index)):
        activation = activations[index]
        while running and running[0][0] <= activation.earliest:
            _, ended = heappop(running)
            last = frames[ended].last
            sources.append(last)
        if not activation.incoming:
            for source in dict.fromkeys((*sources, last)):
                draw_edge(builder, source, frames[index].first, _TEMPORAL)
            sources = []
        heappush(running, (activation.latest, index))


class _EventWriter:
    """Adds the events of a tree, and notes in each frame what happened in it."""

    def __init__(
        self, tree: Tree, roles: SpanRoles, team: Team, tokens: dict[int, tuple[Tokens, TokenBasis]], builder: Builder
    ) -> None:
        # by key: the key of an activation is its index, that of a span is `_frame_of_span`
        self.frames: dict[int, Frame] = {index: Frame(builder) for index in range(len(team.activations))}
        self._tree, self._roles, self._kinds = tree, roles, roles.kinds
        self._team, self._tokens, self._builder = team, tokens, builder
        # the calls that no span has carried out yet, each with the event that asks for it, by activation and tool
        self._open_calls = defaultdict[tuple[int, str], deque[tuple[spans.Call, str]]](deque)
        self._askers: dict[tuple[int, str], str] = {}  # the event that asks for a call, by activation and id
        self._outer_frames = [NO_INDEX] * len(tree.parents)  # the key of the frame in which each span happens
        self._inner_frames = [NO_INDEX] * len(tree.parents)  # the key of the frame in which its children happen
        self._acts: dict[int, Act] = {}  # by the index of the span
        self._last_models: dict[str, str] = {}  # by agent
        self._last_returns: dict[str, float] = {}  # the time of the last return, by agent
        self._agent_ends: list[tuple[int, spans.Span, dict[str, Any]]] = []  # last activation, its span, status
        self._failures = find_failures(tree, roles, team)
        self._failure_events: dict[str, str] = {}  # the last event of a failure outside the agent's spans, by agent

    def write(self) -> None:
        """Add all events: for each span its beginning, then those of its children, then its end."""
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
                waiting.append(~index)  # a negative number: the span is left after its children
                waiting += reversed(self._tree.children[index])
        for index, activation in enumerate(activations):
            last = self.frames[index].last_span
            if activation.span == NO_INDEX and last is not None:
                self._end_activation(index, activation, last)
        for index, span, status in self._agent_ends:  # after all other events of the same time
            self._end_agent(index, span, status)

    def _add(
        self, kind: EventType, owner: int, time: float, span: spans.Span, end: float | None = None, **fields: Any
    ) -> Event:
        """Add an event of the activation `owner`, with further fields, and note it in the frame."""
        event = self._builder.begin(kind, self._team.activations[owner].agent, time, span.file, span.line, end)
        for name, value in fields.items():
            setattr(event, name, value)
        if kind not in _ENDS:
            self.frames[owner].note(event.id, span)
        return event

    def _enter(self, index: int) -> None:
        """Set the frames of a span, and add the event with which it begins."""
        kind, owner, parent = self._kinds[index], self._team.owner[index], self._tree.parents[index]
        outer_owner = self._team.activations[owner].parent if kind is AGENT else owner
        is_same_owner = self._team.owner[parent] == outer_owner
        self._outer_frames[index] = self._inner_frames[parent] if is_same_owner else outer_owner
        self._inner_frames[index] = owner if kind is AGENT else self._outer_frames[index]
        if kind is AGENT:
            self._begin_agent(owner)
        elif kind is INFERENCE:
            self._add_answer(index, owner)
        elif kind is TOOL and not self._roles.has_agents[index]:
            self._add_call(index, owner)
        elif kind is HANDOFF:
            self._add_handoff(index, owner)
        elif kind is GUARDRAIL and self._contains_others(index):
            self._open_frame(index)
        elif kind is PERSON:
            self._add_person(index, owner)

    def _leave(self, index: int) -> None:
        """Add the event with which a span ends."""
        kind, owner = self._kinds[index], self._team.owner[index]
        if index in self._failures.owners:
            self._add_failure(index, self._failures.owners[index])
        has_own_event = kind is INFERENCE or (kind is TOOL and not self._roles.has_agents[index])
        if index in self._tokens and not has_own_event:
            self._add_hidden_calls(index, owner if owner != NO_INDEX else self._team.token_owner[index])
        if kind is AGENT:
            self._end_activation(owner, self._team.activations[owner], self._tree.spans[index])
        elif kind is TOOL and index in self._acts:
            self._add_result(index, owner)
        elif kind is GUARDRAIL:
            self._add_guardrail(index, owner)

    def _contains_others(self, index: int) -> bool:
        """Return True if a span contains acts or agents."""
        return self._roles.has_acts[index] or self._roles.has_agents[index]

    def _open_frame(self, index: int, entry: str = "") -> None:
        """Make a span a frame. The acts inside it then happen in it, not directly in the agent's activation."""
        self._inner_frames[index] = _frame_of_span(index)
        self.frames[_frame_of_span(index)] = Frame(self._builder, [(entry, _CAUSAL)] if entry else [])

    def _add_act(self, index: int, act: Act) -> None:
        """Add an act to the frame in which its span happens."""
        self.frames[self._outer_frames[index]].acts.append(act)
        self._acts[index] = act

    # Agents

    def _begin_agent(self, index: int) -> None:
        """Add the spawn of an agent whose first span begins inside another agent, unless it takes over from one."""
        activation = self._team.activations[index]
        if activation.parent == NO_INDEX or activation.incoming or not activation.is_first:
            return
        caller = self._tree.spans[activation.span]
        time, call, tool = activation.start, CarriedCall(""), ""
        if activation.wrapper != NO_INDEX:
            caller = self._tree.spans[activation.wrapper]
            if activation.wrapper in self._team.spawning_tools:
                time = self._tree.starts[activation.wrapper]
            if self._kinds[activation.wrapper] is TOOL:
                tool = masked(caller.name)
                call = self._carry_out(activation.parent, caller)
        event = self._add(EventType.SPAWN, activation.parent, min(time, activation.earliest), caller)
        event.target, event.role, event.tool = activation.agent, activation.name, tool
        event.call_id, event.content_ref = call.id, caller.arguments
        self.frames[index].entries.append((event.id, EdgeType.SPAWN))
        self._add_act(activation.span, Act(AGENT, event.t, None, event.id, cause=call.cause))

    def _end_activation(self, index: int, activation: Activation, span: spans.Span) -> None:
        """Add the events with which an activation ends: it waits for a person, passes control on, or returns."""
        frame = self.frames[index]
        has_span = activation.span != NO_INDEX
        if has_span and span.is_interrupted and not self._roles.has_agents[activation.span]:
            frame.exits.append(self._add(EventType.HUMAN, index, activation.latest, span, inferred=True).id)
        for transfer in activation.outgoing:
            if transfer.span == NO_INDEX:
                self._add_transfer(index, activation, transfer, span)
        if activation.end is None:
            return
        status: dict[str, Any] = span.failure if has_span else {}
        if not activation.outgoing and activation.parent != NO_INDEX:
            self._add_return(index, activation, span, status)
        if activation.is_last:
            self._agent_ends.append((index, span, status))

    def _add_failure(self, index: int, owner: int) -> None:
        """Add the failure of a span without an event as a result to an agent, with the name of the span as the tool."""
        span, time = self._tree.spans[index], self._tree.end(index)
        previous, tool = self.frames[owner].last, masked(self._roles.names[index])
        event = self._add(_TOOL_RESULT, owner, time, span, tool=tool, inferred=True, **span.failure).id
        if self._team.owner[index] == NO_INDEX:
            draw_edge(self._builder, previous, event, _CAUSAL)
            self._failure_events[self._team.activations[owner].agent] = event
        else:
            frames = self._inner_frames if self._kinds[index] is AGENT else self._outer_frames
            self.frames[frames[index]].acts.append(Act(TOOL, time, time, event, event))

    def _end_agent(self, index: int, span: spans.Span, status: dict[str, Any]) -> None:
        """End an agent after its last activation: it is despawned, or stops unless it passed control on."""
        activation, frame = self._team.activations[index], self.frames[index]
        agent = activation.agent
        if activation.spawner != NO_INDEX:
            time = max(activation.latest, self._last_returns.get(agent, 0.0))
            frame.exits.append(self._add(EventType.DESPAWN, index, time, span, inferred=True).id)
        elif not activation.outgoing:
            if agent in self._failures.runs:
                status = status or self._failures.runs[agent].failure
            time = max(activation.latest, self._failures.last.get(agent, 0.0))
            stop = self._add(EventType.STOP, index, time, span, inferred=True, **status).id
            frame.exits.append(stop)
            draw_edge(self._builder, self._failure_events.get(agent, ""), stop, _CAUSAL)

    def _add_transfer(self, index: int, activation: Activation, transfer: Transfer, span: spans.Span) -> None:
        """Add a transfer of control that has no span, as a spawn or a message."""
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

    def _add_return(self, index: int, activation: Activation, span: spans.Span, status: dict[str, Any]) -> None:
        """Add the return of an agent to its parent, unless the log does not say when it ended."""
        time, caller = activation.end, span
        if activation.wrapper in self._team.spawning_tools:
            time, caller = self._tree.ends[activation.wrapper], self._tree.spans[activation.wrapper]
        if time is None:
            return
        time = max(time, activation.start)
        event = self._add(EventType.RETURN, index, time, caller, **(status or caller.failure))
        event.target, event.content_ref = self._team.activations[activation.parent].agent, caller.output
        self.frames[index].exits.append(event.id)
        self._last_returns[activation.agent] = max(time, self._last_returns.get(activation.agent, 0.0))
        act = self._acts.get(activation.span)
        if act is None:
            self._add_act(activation.span, Act(AGENT, activation.start, time, "", event.id))
        else:
            act.end, act.result = time, event.id

    # Acts

    def _span_and_times(self, index: int) -> tuple[spans.Span, float, float | None]:
        return self._tree.spans[index], self._tree.starts[index], self._tree.ends[index]

    def _add_answer(self, index: int, owner: int) -> None:
        span, start, end = self._span_and_times(index)
        event = self._add(_INFERENCE, owner, start, span, end, **span.ending, **(span.more or {}))
        event.model, event.content_ref = masked(span.model), span.output
        event.tokens, event.token_basis = self._tokens.get(index, _NO_TOKENS)
        for call in span.calls:
            self._open_calls[owner, call.tool].append((call, event.id))
            if call.id:
                self._askers[owner, call.id] = event.id
        if span.model and self._last_models.get(event.agent) != span.model:
            self._last_models[event.agent] = span.model
            self._builder.agent(event.agent, model=span.model)
        self._add_act(index, Act(INFERENCE, start, end, event.id, event.id))

    def _add_hidden_calls(self, index: int, owner: int) -> None:
        """Add an answer for model calls of which the log has only the tokens, as the usage of a span around them."""
        span, start, end = self._span_and_times(index)
        latest = self._tree.latest[index]
        if self._contains_others(index):  # when the calls ran is unknown
            start, end = latest, None
        event = self._add(_INFERENCE, owner, start, span, end, model=masked(span.model), inferred=True)
        event.tokens, event.token_basis = self._tokens[index]
        frame = self._inner_frames[index] if self._team.owner[index] == owner else owner
        self.frames[frame].acts.append(Act(INFERENCE, start, latest, event.id, event.id))

    def _add_call(self, index: int, owner: int) -> None:
        span, start, end = self._span_and_times(index)
        call = self._carry_out(owner, span)
        work_end = self._roles.first_act_in(index, self._tree) if self._roles.has_acts[index] else end
        event = self._add(_TOOL_CALL, owner, start, span, work_end, **(span.more or {}))
        event.tool, event.call_id, event.inferred = masked(span.name), call.id, call.is_invented
        event.content_ref = span.arguments
        event.tokens, event.token_basis = self._tokens.get(index, _NO_TOKENS)
        if self._roles.has_acts[index]:
            self._open_frame(index, event.id)
        self._add_act(index, Act(TOOL, start, end, event.id, cause=call.cause))

    def _carry_out(self, owner: int, span: spans.Span) -> CarriedCall:
        """Return the call that a span carries out: the call with its id, else of its tool, first with its arguments."""
        call_id = span.call_id
        cause = self._askers.get((owner, call_id), "")
        open_calls = self._open_calls.get((owner, span.name))
        if not call_id and open_calls:
            found = open_calls[0]
            for open_call in islice(open_calls, _MAX_COMPARED):
                if open_call[0].arguments == span.arguments:
                    found = open_call
                    break
            open_calls.remove(found)
            call_id, cause = found[0].id, found[1]
        name = masked(call_id) if call_id else f"span:{masked(span.id)}"
        return CarriedCall(self._builder.call_id(name, span.where), cause, is_invented=not call_id)

    def _add_result(self, index: int, owner: int) -> None:
        (span, _, end), act = self._span_and_times(index), self._acts[index]
        if end is None:
            return
        call = self._builder.events[act.entry]
        event = self._add(_TOOL_RESULT, owner, end, span, content_ref=span.output, **span.ending)
        event.tool, event.call_id, event.inferred = call.tool, call.call_id, call.inferred
        act.result = event.id
        self._builder.edge(act.entry, event.id, EdgeType.TOOL)
        if frame := self.frames.get(_frame_of_span(index)):
            frame.exits.append(event.id)

    def _add_handoff(self, index: int, owner: int) -> None:
        span, start, end = self._span_and_times(index)
        target = self._team.handoffs.get(index, NO_INDEX)
        event = self._add(EventType.MESSAGE, owner, start, span, end, **span.ending)
        event.sender, event.target = event.agent, masked(span.target)
        self._add_act(index, Act(HANDOFF, start, end, event.id, event.id))
        if target != NO_INDEX:
            event.target = self._team.activations[target].agent
            self.frames[target].entries.append((event.id, _MESSAGE))

    def _add_person(self, index: int, owner: int) -> None:
        """Add an input of a person to an agent."""
        span, start, end = self._span_and_times(index)
        self._builder.agent(USER, kind=AgentKind.HUMAN)
        event = self._builder.begin(EventType.HUMAN, USER, start, span.file, span.line, end)
        event.target, event.content_ref = self._team.activations[owner].agent, span.output
        self.frames[owner].note(event.id, span)
        self._add_act(index, Act(PERSON, start, end, event.id, event.id))

    def _add_guardrail(self, index: int, owner: int) -> None:
        """Add the verdict of a guardrail. It takes the time of the span, or no time at its end if it contains acts."""
        span, start, end = self._span_and_times(index)
        latest = self._tree.latest[index]
        status: dict[str, Any] = {"status": Status.CANCELLED} if span.is_triggered else span.ending
        fields = {"tool": masked(span.name), **status, **(span.more or {})}
        if self._contains_others(index):
            event = self._add(EventType.SAFETY, owner, latest, span, **fields).id
            self._add_act(index, Act(GUARDRAIL, start, latest, "", event))
            self.frames[_frame_of_span(index)].exits.append(event)
        else:
            event = self._add(EventType.SAFETY, owner, start, span, end, **fields).id
            self._add_act(index, Act(GUARDRAIL, start, end, event, event))


def _frame_of_span(index: int) -> int:
    """Return the key of the frame of a span. It is less than -1, because keys of activations are their indexes."""
    return -2 - index
