"""The edges between the events of a span tree: what each act waited for, as far as spans tell.

Spans say when something ran, seldom why. What is drawn is what a program that waits for its calls would do: a
model's answer depends on all that came back since the answer before, a call on the answer that asked for it, an
agent's end on whatever it did last. Agents that nobody called or handed over to follow, by time only, on those
that had ended when they began.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.span import AGENT, GUARDRAIL, HANDOFF, INFERENCE, TOOL, Call, Kind, Span
from orchtrace_corpus.trace.importers.spans.team import Team
from orchtrace_corpus.trace.importers.spans.tree import NOBODY
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem
from orchtrace_corpus.trace.model.trace import EdgeType, EventType

_MOST_COMPARED = 50
"""Among so many calls of one tool that wait, the one of the same arguments is looked for."""


_INPUTS = {TOOL: EdgeType.TOOL, GUARDRAIL: EdgeType.SAFETY, AGENT: EdgeType.RETURN}
_INPUTS |= dict.fromkeys((HANDOFF, Kind.PERSON), EdgeType.CAUSAL)
"""How an answer depends on what has come back since the one before it."""
_JOINED_INPUTS = {**_INPUTS, AGENT: EdgeType.AGGREGATE}


class Asked(NamedTuple):
    """The call that a span carries out.

    Attributes:
        id: Its id, unique in the trace.
        cause: The event of the model's answer that asked for it; empty where the log does not tell.
        is_made_up: Whether the id was made from the span's.
    """

    id: str
    cause: str = ""
    is_made_up: bool = False


class CallIds:
    """The calls of a run, as models ask for them and spans carry them out."""

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._waiting: dict[tuple[int, str], deque[tuple[Call, str]]] = {}
        self._asked: dict[tuple[int, str], str] = {}
        self._used = Names()

    def ask(self, owner: int, call: Call, event: str) -> None:
        """Note that a model asks for a call in the event of an activation."""
        self._waiting.setdefault((owner, call.tool), deque()).append((call, event))
        if call.id:
            self._asked[owner, call.id] = event

    def carry_out(self, owner: int, span: Span) -> Asked:
        """Return the call that a span carries out: by its id, else by tool and arguments, else by tool."""
        call_id, cause = span.call_id, self._asked.get((owner, span.call_id), "")
        waiting = self._waiting.get((owner, span.name))
        if not call_id and waiting:
            compared = islice(waiting, _MOST_COMPARED)
            found = next((one for one in compared if one[0].arguments == span.arguments), waiting[0])
            waiting.remove(found)
            call_id, cause = found[0].id, found[1]
        name = masked(call_id) if call_id else f"span:{masked(span.id)}"
        unique = self._used.new(name)
        if unique != name:
            self._report.note(Problem.CALL_ID_USED_TWICE, span.where)
        return Asked(unique, cause, is_made_up=not call_id)


class Act(Struct):
    """Something done in a frame.

    Attributes:
        kind: What was done: a model asked, a tool called, an agent spawned, a handoff, a guardrail run.
        start: When it began.
        end: When it ended; None where the log does not say.
        entry: The event with which it begins; empty where it only brings something back.
        result: The event with which it ends; empty where it does not.
        cause: The event of the model's answer that asked for it; empty where the log does not tell.
    """

    kind: Kind
    start: float
    end: float | None
    entry: str
    result: str = ""
    cause: str = ""


class Frame(Struct):
    """What happened in an agent's activation, or in the span of a tool or guardrail.

    Attributes:
        entries: The events that it begins with, each with the type of the edge from it.
        acts: What was done.
        exits: The events that it ends with, in their order.
        is_deciding: Whether its last answer decided who acts next.
        first: Its first event; empty where it has none but its end.
        last: The last event before its end.
        last_span: The span of that.
    """

    entries: list[tuple[str, EdgeType]] = []
    acts: list[Act] = []
    exits: list[str] = []
    is_deciding: bool = False
    first: str = ""
    last: str = ""
    last_span: Span | None = None

    def note(self, event: str, span: Span) -> None:
        """Note one more event."""
        self.first = self.first or event
        self.last, self.last_span = event, span


def draw(team: Team, frames: dict[int, Frame], builder: Builder) -> None:
    """Draw all edges, and say which answers decide or aggregate."""
    for frame in frames.values():
        _Line(builder, frame).draw()
    _draw_sequence(team, frames, builder)


def draw_edge(builder: Builder, source: str, target: str, kind: EdgeType) -> bool:
    """Draw an edge if it leads forward: in time, and at one time in the order of the events."""
    if not source or not target:
        return False
    begin, end = builder.get(source).t, builder.get(target).t
    is_forward = bool(begin < end or (begin == end and int(source[1:]) < int(target[1:])))
    if is_forward:
        builder.edge(source, target, kind)
    return is_forward


def _decide(builder: Builder, event: str) -> None:
    """Make an answer a decision that leads to a spawn or a handoff, even where it aggregates."""
    if event and builder.get(event).type in (EventType.INFERENCE, EventType.AGGREGATE):
        builder.get(event).type = EventType.DECISION


class _Line:
    """The acts of one frame, by time."""

    def __init__(self, builder: Builder, frame: Frame) -> None:
        self._builder = builder
        self._frame = frame
        self._running: list[tuple[float, int, Act]] = []
        self._fresh: dict[str, Kind] = {}  # what has come back since the last answer, with what it was
        self._last_answer = ""
        self._last = ""  # what ended last

    def draw(self) -> None:
        acts = sorted(enumerate(self._frame.acts), key=lambda pair: (pair[1].start, pair[0]))
        is_begun = False
        for number, act in acts:
            self._finish(act.start)
            if act.entry:
                sources = self._frame.entries if not is_begun else self._frame.entries[-1:]
                draw_to = self._draw_answer if act.kind is INFERENCE else self._draw_act
                draw_to(act, [] if self._last else sources)
                is_begun = True
            if act.end is not None:
                heappush(self._running, (act.end, number, act))
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
        if inputs and self._builder.get(act.entry).type is EventType.INFERENCE:
            self._builder.get(act.entry).type = EventType.AGGREGATE
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
    alone = [number for number, each in enumerate(activations) if each.parent == NOBODY]
    running: list[tuple[float, int]] = []
    fresh: list[str] = []
    last = ""
    for number in sorted(alone, key=lambda n: (activations[n].earliest, activations[n].latest, n)):
        activation = activations[number]
        while running and running[0][0] <= activation.earliest:
            last = frames[heappop(running)[1]].last
            fresh.append(last)
        if not activation.incoming:
            for source in dict.fromkeys((*fresh, last)):
                draw_edge(builder, source, frames[number].first, EdgeType.TEMPORAL)
            fresh = []
        heappush(running, (activation.latest, number))
