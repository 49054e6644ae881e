"""The events of a span tree: each act once, in the order of the tree, with what the edges between them need."""

from collections.abc import Mapping
from typing import Any

from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.spans.edges import Act, Asked, CallIds, Frame, draw, draw_edge
from orchtrace_corpus.trace.importers.spans.failures import Failure, Failures, failure_of, status_of
from orchtrace_corpus.trace.importers.spans.span import (
    AGENT,
    GUARDRAIL,
    HANDOFF,
    INFERENCE,
    PERSON,
    TOOL,
    USER,
    Bundle,
    Span,
)
from orchtrace_corpus.trace.importers.spans.team import Activation, Team, Transfer
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Meanings, Tree, tree
from orchtrace_corpus.trace.importers.spans.twins import merge_twins
from orchtrace_corpus.trace.importers.spans.usage import Spending
from orchtrace_corpus.trace.model.import_report import ImportReport, Missing
from orchtrace_corpus.trace.model.trace import AgentKind, EdgeType, Event, EventType, Status, Topology, Trace


def trace_of(
    bundle: Bundle, form: str, privacy: Privacy, report: ImportReport, unread: int | None = None
) -> Trace | None:
    """Return the trace of a bundle; None where nothing in it is an event.

    Args:
        bundle: The spans.
        form: The format of their log.
        privacy: How contents are referred to.
        report: What became of their records.
        unread: How many lines of the log could not be read; None for those that the report knows.
    """
    of = tree(bundle.spans, report)
    roots = [of.spans[number].name for number in of.order if of.parents[number] == NOBODY]
    bundle.name = bundle.name or next(iter(roots), "")
    builder = Builder(
        masked(bundle.trace_id) or "trace",
        masked(bundle.name) or masked(bundle.trace_id) or "run",
        system=masked(bundle.system),
        form=form,
        version=masked(bundle.version),
        privacy=privacy,
        report=report,
    )
    merge_twins(of, report)
    spent = Spending(of, report)
    meanings = Meanings(of, spent.by_span)
    team = Team(of, meanings, bundle, set(spent.by_span), report)
    script = _Script(of, meanings, team, spent, builder)
    script.write()
    if not script.is_written:
        return None
    draw(team, script.frames, builder)
    missing = {Missing.CALLS: spent.uncounted} if spent.by_span else {}
    return builder.trace(topology=_topology(team), missing=missing, unread=unread)


def _topology(team: Team) -> Topology:
    """Return how the agents are arranged, as far as spawns tell: all below one agent, or below one another."""
    above = {each.agent: team.activations[each.spawner].agent for each in team.activations if each.spawner != NOBODY}
    if not above:
        return Topology.UNKNOWN
    is_deep = any(parent in above for parent in above.values())
    return Topology.HIERARCHICAL if is_deep else Topology.CENTRALIZED


_LAST = frozenset((EventType.STOP, EventType.DESPAWN))
"""The events with which an agent ends: they are behind whatever it did."""
_INFERENCE, _TOOL_CALL, _TOOL_RESULT = EventType.INFERENCE, EventType.TOOL_CALL, EventType.TOOL_RESULT
_TOOL = EdgeType.TOOL  # which Python 3.11 takes long to find


class _Script:
    """Writes the events of a tree, and keeps for each frame what happened in it.

    A frame is an agent's activation, or the span of a tool or guardrail that holds acts itself.

    Attributes:
        frames: The frames: of activations by their number, of spans by `_frame_of_span`.
        is_written: Whether there is any event.
    """

    def __init__(self, of: Tree, meanings: Meanings, team: Team, spending: Spending, builder: Builder) -> None:
        self.frames: dict[int, Frame] = {number: Frame() for number in range(len(team.activations))}
        self.is_written = False
        self._of = of
        self._kinds = meanings.kinds
        self._meanings = meanings
        self._team = team
        self._spent = spending.by_span
        self._builder = builder
        self._call_ids = CallIds(builder.report)
        self._number_of = {each.span: n for n, each in enumerate(team.activations) if each.span != NOBODY}
        self._base = [NOBODY] * len(of.spans)  # the frame in which a span happens
        self._inner = [NOBODY] * len(of.spans)  # the frame in which its children happen
        self._acts: dict[int, Act] = {}  # by the number of the span
        self._models: dict[str, str] = {}
        self._returned: dict[str, float] = {}
        self._endings: list[tuple[int, Span, dict[str, Any]]] = []
        self._failures = Failures(of, meanings, team)
        self._failed: dict[str, str] = {}  # the last event of that by the agent, where it lies outside its spans

    def write(self) -> None:
        """Write all events: the beginning of a span, then its children, then its end."""
        of, activations = self._of, self._team.activations
        for activation in activations:
            parent = activations[activation.spawner].agent if activation.spawner != NOBODY else ""
            self._builder.agent(activation.agent, role=activation.name, parent=parent, kind=AgentKind.MODEL)
        waiting = [number for number in reversed(of.order) if of.parents[number] == NOBODY]
        while waiting:
            number = waiting.pop()
            if number < 0:
                self._leave(~number)
            else:
                self._enter(number)
                waiting.append(~number)
                waiting.extend(reversed(of.children[number]))
        for number, activation in enumerate(activations):
            last = self.frames[number].last_span
            if activation.span == NOBODY and last is not None:
                self._end(number, activation, last)
        for ending in self._endings:  # behind whatever else is at the same time
            self._end_agent(*ending)

    def _add(self, kind: EventType, owner: int, time: float, span: Span, end: float | None = None) -> Event:
        """Add an event of an activation, of which more may be said."""
        self.is_written = True
        event = self._builder.begin(kind, self._team.activations[owner].agent, time, span.file, span.line, end)
        if kind not in _LAST:
            self.frames[owner].note(event.id, span)
        return event

    def _event(
        self, kind: EventType, owner: int, time: float, span: Span, *, end: float | None = None, **fields: Any
    ) -> str:
        """Add an event with further fields, and return its id."""
        event = self._add(kind, owner, time, span, end)
        _tell(event, fields)
        return event.id

    def _pay(self, event: Event, number: int) -> None:
        """Give an event the tokens that its span spent."""
        if spent := self._spent.get(number):
            event.tokens, event.token_basis = spent

    def _enter(self, number: int) -> None:
        kind, owner, parent = self._kinds[number], self._team.owner[number], self._of.parents[number]
        around = self._team.activations[owner].parent if kind is AGENT else owner
        inside = parent != NOBODY and self._team.owner[parent] == around
        self._base[number] = self._inner[parent] if inside else around
        self._inner[number] = owner if kind is AGENT else self._base[number]
        if kind is AGENT:
            self._begin(self._number_of[number])
        elif kind is INFERENCE:
            self._infer(number, owner)
        elif kind is TOOL and not self._meanings.has_agents[number]:
            self._call(number, owner)
        elif kind is HANDOFF:
            self._hand_over(number, owner)
        elif kind is GUARDRAIL and self._holds_others(number):
            self._open(number)
        elif kind is PERSON:
            self._ask_person(number, owner)

    def _leave(self, number: int) -> None:
        kind, owner = self._kinds[number], self._team.owner[number]
        if failure := self._failures.by_span.get(number):
            self._fail(failure)
        has_own_event = kind is INFERENCE or (kind is TOOL and not self._meanings.has_agents[number])
        if number in self._spent and not has_own_event:
            self._infer_hidden(number, owner if owner != NOBODY else self._team.bearer_owner[number])
        if kind is AGENT:
            activation = self._number_of[number]
            self._end(activation, self._team.activations[activation], self._of.spans[number])
        elif kind is TOOL and number in self._acts:
            self._answer(number, owner)
        elif kind is GUARDRAIL:
            self._guard(number, owner)

    def _holds_others(self, number: int) -> bool:
        return self._meanings.has_acts[number] or self._meanings.has_agents[number]

    def _open(self, number: int, entry: str = "") -> None:
        """Open a span: what follows below it happens in it, not directly in the agent."""
        self._inner[number] = _frame_of_span(number)
        self.frames[_frame_of_span(number)] = Frame([(entry, EdgeType.CAUSAL)] if entry else [])

    def _act(self, number: int, act: Act) -> None:
        """Note an act in the frame in which its span happens."""
        self.frames[self._base[number]].acts.append(act)
        self._acts[number] = act

    # Agents

    def _begin(self, number: int) -> None:
        """Begin an agent's span: its agent is spawned, unless another has handed over to it."""
        activation = self._team.activations[number]
        if activation.parent == NOBODY or activation.incoming or not activation.is_first:
            return
        caller = self._of.spans[activation.span]
        time, asked, tool = activation.start, Asked(""), ""
        if activation.wrapper != NOBODY:
            caller = self._of.spans[activation.wrapper]
            if activation.wrapper in self._team.lone:
                time = self._of.starts[activation.wrapper]
            if self._kinds[activation.wrapper] is TOOL:
                tool = masked(caller.name)
                asked = self._call_ids.carry_out(activation.parent, caller)
        time = min(time, activation.earliest)
        fields: dict[str, Any] = {"target": activation.agent, "role": activation.name, "tool": tool}
        fields |= {"call_id": asked.id, "content_ref": caller.arguments}
        event = self._event(EventType.SPAWN, activation.parent, time, caller, **fields)
        self.frames[number].entries.append((event, EdgeType.SPAWN))
        self._act(activation.span, Act(AGENT, time, None, event, cause=asked.cause))

    def _end(self, number: int, activation: Activation, span: Span) -> None:
        """End an agent's span: it passes control on, or returns to whom it belongs to, or stops."""
        frame = self.frames[number]
        has_span = activation.span != NOBODY
        if has_span and span.is_interrupted and not self._meanings.has_agents[activation.span]:
            frame.exits.append(self._event(EventType.HUMAN, number, activation.latest, span, inferred=True))
        for transfer in activation.outgoing:
            if transfer.span == NOBODY:
                self._pass_on(number, activation, transfer, span)
        if activation.end is None:
            return
        status: dict[str, Any] = failure_of(span) if has_span else {}
        if not activation.outgoing and activation.parent != NOBODY:
            self._return(number, activation, span, status)
        if activation.is_last:
            self._endings.append((number, span, status))

    def _fail(self, failure: Failure) -> None:
        """Something failed that is neither a model nor a tool: the agent has that instead of a result."""
        span, number = self._of.spans[failure.span], failure.activation
        before = self.frames[number].last
        fields: dict[str, Any] = {"tool": masked(self._meanings.names[failure.span]), "inferred": True}
        event = self._event(EventType.TOOL_RESULT, number, failure.time, span, **fields, **failure_of(span))
        if failure.is_outside:
            draw_edge(self._builder, before, event, EdgeType.CAUSAL)
            self._failed[self._team.activations[number].agent] = event
        else:
            act = Act(TOOL, failure.time, failure.time, event, event)
            inside = self._inner if self._kinds[failure.span] is AGENT else self._base
            self.frames[inside[failure.span]].acts.append(act)

    def _end_agent(self, number: int, span: Span, status: dict[str, Any]) -> None:
        """End an agent that does nothing more: it is despawned, or stops unless it has handed over."""
        activation, frame = self._team.activations[number], self.frames[number]
        agent = activation.agent
        if activation.spawner != NOBODY:
            time = max(activation.latest, self._returned.get(agent, 0.0))
            frame.exits.append(self._event(EventType.DESPAWN, number, time, span, inferred=True))
        elif not activation.outgoing:
            if agent in self._failures.runs:
                status = status or failure_of(self._failures.runs[agent])
            time = max(activation.latest, self._failures.last.get(agent, 0.0))
            stop = self._event(EventType.STOP, number, time, span, inferred=True, **status)
            frame.exits.append(stop)
            draw_edge(self._builder, self._failed.get(agent, ""), stop, EdgeType.CAUSAL)

    def _pass_on(self, number: int, activation: Activation, transfer: Transfer, span: Span) -> None:
        """Add a transfer that no span stands for."""
        target = transfer.target
        receiver = self._team.activations[target]
        time = activation.latest if activation.end is None else activation.end
        frame = self.frames[number]
        if transfer.is_push and receiver.is_first:
            kind, edge, until, fields = EventType.SPAWN, EdgeType.SPAWN, None, {"role": receiver.name}
        else:
            kind, edge, until = EventType.MESSAGE, EdgeType.MESSAGE, time
            fields = {"sender": activation.agent, "content_ref": span.output}
        event = self._event(kind, number, time, span, end=until, target=receiver.agent, inferred=True, **fields)
        self.frames[target].entries.append((event, edge))
        frame.exits.append(event)
        frame.is_deciding = frame.is_deciding or transfer.is_push or transfer.is_routed

    def _return(self, number: int, activation: Activation, span: Span, status: dict[str, Any]) -> None:
        time, caller = activation.end, span
        if activation.wrapper in self._team.lone:
            time, caller = self._of.ends[activation.wrapper], self._of.spans[activation.wrapper]
        if time is None:
            return
        time = max(time, activation.start)
        parent = self._team.activations[activation.parent].agent
        fields: dict[str, Any] = {"target": parent, "content_ref": caller.output, **(status or failure_of(caller))}
        event = self._event(EventType.RETURN, number, time, caller, **fields)
        self.frames[number].exits.append(event)
        self._returned[activation.agent] = max(time, self._returned.get(activation.agent, 0.0))
        act = self._acts.get(activation.span)
        if act is None:
            self._act(activation.span, Act(AGENT, activation.start, time, "", event))
        else:
            act.end, act.result = time, event

    # Acts

    def _infer(self, number: int, owner: int) -> None:
        span, start, end = self._of.spans[number], self._of.starts[number], self._of.ends[number]
        added = self._add(_INFERENCE, owner, start, span, end)
        event = added.id
        added.model, added.content_ref = masked(span.model), span.output
        self._pay(added, number)
        _tell(added, status_of(span), span.more)
        for call in span.calls:
            self._call_ids.ask(owner, call, event)
        agent = self._team.activations[owner].agent
        if span.model and self._models.get(agent) != span.model:
            self._models[agent] = span.model
            self._builder.agent(agent, model=span.model)
        self._act(number, Act(INFERENCE, start, end, event, event))

    def _infer_hidden(self, number: int, owner: int) -> None:
        """Model calls that the log does not show, by the tokens that they spent.

        They fill a span that holds nothing else. Otherwise nobody knows when they were.
        """
        span, latest = self._of.spans[number], self._of.latest[number]
        own = self._of.starts[number], self._of.ends[number]
        start, end = (latest, None) if self._holds_others(number) else own
        event = self._add(_INFERENCE, owner, start, span, end)
        event.model, event.inferred = masked(span.model), True
        self._pay(event, number)
        inside = self._inner[number] if self._team.owner[number] == owner else owner
        self.frames[inside].acts.append(Act(INFERENCE, start, latest, event.id, event.id))

    def _call(self, number: int, owner: int) -> None:
        span, start, end = self._of.spans[number], self._of.starts[number], self._of.ends[number]
        asked = self._call_ids.carry_out(owner, span)
        works_until = self._meanings.first_act_in(number, self._of) if self._meanings.has_acts[number] else end
        event = self._add(_TOOL_CALL, owner, start, span, works_until)
        event.tool, event.call_id, event.inferred = masked(span.name), asked.id, asked.is_made_up
        event.content_ref = span.arguments
        self._pay(event, number)
        _tell(event, span.more)
        if self._meanings.has_acts[number]:
            self._open(number, event.id)
        self._act(number, Act(TOOL, start, end, event.id, cause=asked.cause))

    def _answer(self, number: int, owner: int) -> None:
        span, end, act = self._of.spans[number], self._of.ends[number], self._acts[number]
        if end is None:
            return
        call = self._builder.get(act.entry)
        event = self._add(_TOOL_RESULT, owner, end, span)
        event.tool, event.call_id, event.inferred = call.tool, call.call_id, call.inferred
        event.content_ref = span.output
        _tell(event, status_of(span))
        act.result = event.id
        self._builder.edge(act.entry, event.id, _TOOL)
        if frame := self.frames.get(_frame_of_span(number)):
            frame.exits.append(event.id)

    def _hand_over(self, number: int, owner: int) -> None:
        span, start, end = self._of.spans[number], self._of.starts[number], self._of.ends[number]
        target = self._team.handoffs.get(number, NOBODY)
        receiver = self._team.activations[target].agent if target != NOBODY else masked(span.target)
        fields: dict[str, Any] = {"sender": self._team.activations[owner].agent, "target": receiver, **status_of(span)}
        event = self._event(EventType.MESSAGE, owner, start, span, end=end, **fields)
        self._act(number, Act(HANDOFF, start, end, event, event))
        if target != NOBODY:
            self.frames[target].entries.append((event, EdgeType.MESSAGE))

    def _ask_person(self, number: int, owner: int) -> None:
        """Add the answer of a person to the agent."""
        span, start, end = self._of.spans[number], self._of.starts[number], self._of.ends[number]
        agent = self._team.activations[owner].agent
        self._builder.agent(USER, kind=AgentKind.HUMAN)
        event = self._builder.begin(EventType.HUMAN, USER, start, span.file, span.line, end)
        event.target, event.content_ref = agent, span.output
        self.frames[owner].note(event.id, span)
        self._act(number, Act(PERSON, start, end, event.id, event.id))

    def _guard(self, number: int, owner: int) -> None:
        """Add a guardrail's verdict: when it began, unless what it did stands for the time until then."""
        span, start, end = self._of.spans[number], self._of.starts[number], self._of.ends[number]
        is_late = self._holds_others(number)
        time, until = (self._of.latest[number], None) if is_late else (start, end)
        status: dict[str, Any] = {"status": Status.CANCELLED} if span.is_triggered else status_of(span)
        fields = {**status, **(span.more or {})}
        event = self._event(EventType.SAFETY, owner, time, span, end=until, tool=masked(span.name), **fields)
        self._act(number, Act(GUARDRAIL, start, time if is_late else end, "" if is_late else event, event))
        if is_late:
            self.frames[_frame_of_span(number)].exits.append(event)


def _frame_of_span(number: int) -> int:
    """Return the key of the frame of a tool's or guardrail's span; activations have keys of 0 and more."""
    return -2 - number


def _tell(event: Event, *further: Mapping[str, Any] | None) -> None:
    """Say more of an event."""
    for fields in filter(None, further):
        for name, value in fields.items():
            setattr(event, name, value)
