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
from typing import NamedTuple

from msgspec import Struct

from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.span import Call, Kind, Span
from orchtrace_corpus.trace.importers.spans.team import Team
from orchtrace_corpus.trace.importers.spans.tree import NOBODY
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem
from orchtrace_corpus.trace.model.trace import EdgeType, EventType

_MOST_COMPARED = 50
"""Among so many calls of one tool that wait, the one of the same arguments is looked for."""


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
        """The call that a span of an activation carries out: by its id, else by tool and arguments, else by tool."""
        if span.call_id:
            return Asked(self._unique(masked(span.call_id), span), self._asked.get((owner, span.call_id), ""))
        waiting = self._waiting.get((owner, span.name))
        if not waiting:
            return Asked(self._unique(f"span:{masked(span.id)}", span), is_made_up=True)
        compared = islice(waiting, _MOST_COMPARED)
        found = next((one for one in compared if one[0].arguments == span.arguments), waiting[0])
        waiting.remove(found)
        call, event = found
        if not call.id:
            return Asked(self._unique(f"span:{masked(span.id)}", span), event, is_made_up=True)
        return Asked(self._unique(masked(call.id), span), event)

    def _unique(self, name: str, span: Span) -> str:
        """The id itself, or with a number behind it where other calls have it."""
        found = self._used.new(name)
        if found != name:
            self._report.note(Problem.CALL_ID_USED_TWICE, span.where)
        return found


_FRESH = {Kind.TOOL: EdgeType.TOOL, Kind.GUARDRAIL: EdgeType.SAFETY, Kind.HANDOFF: EdgeType.CAUSAL}
"""The types of the edges from what acts bring back to the answer that reads it."""


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


class Frame:
    """What happened in an agent's activation, or in the span of a tool or guardrail.

    Attributes:
        acts: What was done.
        entries: The events that it begins with, each with the type of the edge from it.
        exits: The events that it ends with, in their order.
        is_deciding: Whether its last answer decided who acts next.
        first: Its first event; empty where it has none but its end.
        last: The last event before its end.
        last_span: The span of that.
    """

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.entries: list[tuple[str, EdgeType]] = []
        self.exits: list[str] = []
        self.is_deciding = False
        self.first = ""
        self.last = ""
        self.last_span: Span | None = None

    def note(self, event: str, span: Span) -> None:
        """Note one more event."""
        self.first = self.first or event
        self.last, self.last_span = event, span


def draw(team: Team, frames: dict[int, Frame], builder: Builder) -> None:
    """Draw all edges, and say which answers decide or aggregate."""
    pen = _Pen(builder)
    for frame in frames.values():
        _Line(pen, frame).draw()
    _draw_sequence(team, frames, pen)
    for event in pen.aggregates:
        builder.get(event).type = EventType.AGGREGATE
    for event in pen.decisions:
        builder.get(event).type = EventType.DECISION


class _Pen:
    """Draws edges forward only: in time, and at one time in the order of the events."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.aggregates: dict[str, None] = {}
        self.decisions: dict[str, None] = {}

    def edge(self, source: str, target: str, kind: EdgeType) -> bool:
        """Draw an edge, if it leads forward."""
        if not source or not target:
            return False
        begin, end = self._builder.get(source).t, self._builder.get(target).t
        is_forward = bool(begin < end or (begin == end and int(source[1:]) < int(target[1:])))
        if is_forward:
            self._builder.edge(source, target, kind)
        return is_forward

    def decide(self, event: str) -> None:
        """An answer that leads to a spawn or a handoff is a decision."""
        if event and self._builder.get(event).type is EventType.INFERENCE:
            self.decisions[event] = None


class _Line:
    """The acts of one frame, by time."""

    def __init__(self, pen: _Pen, frame: Frame) -> None:
        self._pen = pen
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
                self._draw_to(act, [] if self._last else sources)
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
            if act.kind is Kind.INFERENCE:
                self._last_answer = act.result
            else:
                self._fresh[act.result] = act.kind

    def _draw_to(self, act: Act, entries: Sequence[tuple[str, EdgeType]]) -> None:
        if act.kind is Kind.INFERENCE:
            self._draw_answer(act, entries)
            return
        cause = act.cause or self._last_answer
        kind = EdgeType.SAFETY if act.kind is Kind.GUARDRAIL else EdgeType.CAUSAL
        is_drawn = self._pen.edge(cause, act.entry, kind)
        if not act.cause and self._last not in ("", cause):
            self._pen.edge(self._last, act.entry, EdgeType.TEMPORAL)
        for source, entry_kind in entries:
            is_drawn = self._pen.edge(source, act.entry, entry_kind) or is_drawn
        if act.kind in (Kind.AGENT, Kind.HANDOFF):
            self._pen.decide(cause)

    def _draw_answer(self, act: Act, entries: Sequence[tuple[str, EdgeType]]) -> None:
        messages = sum(kind is EdgeType.MESSAGE for _, kind in entries)
        inputs = 0
        for source, kind in entries:
            is_joined = messages > 1 and kind is EdgeType.MESSAGE
            is_drawn = self._pen.edge(source, act.entry, EdgeType.AGGREGATE if is_joined else kind)
            inputs += is_drawn and messages > 1
        returns = sum(kind is Kind.AGENT for kind in self._fresh.values())
        types = {**_FRESH, Kind.AGENT: EdgeType.AGGREGATE if returns > 1 else EdgeType.RETURN}
        is_begun = False
        for source, done in self._fresh.items():
            is_drawn = self._pen.edge(source, act.entry, types[done])
            is_begun = is_begun or is_drawn
            inputs += is_drawn and done is Kind.AGENT
        if inputs:
            self._pen.aggregates[act.entry] = None
        if not is_begun:
            self._pen.edge(self._last_answer or self._last, act.entry, EdgeType.TEMPORAL)
        self._fresh.clear()

    def _draw_exits(self, is_begun: bool) -> None:
        exits = self._frame.exits
        if self._frame.is_deciding:
            self._pen.decide(self._last_answer)
        if not exits:
            return
        for source in dict.fromkeys((*self._fresh, self._last)):
            self._pen.edge(source, exits[0], EdgeType.CAUSAL)
        if not is_begun:
            for source, kind in self._frame.entries:
                self._pen.edge(source, exits[0], kind)
        for event in exits[1:]:
            self._pen.edge(self._last or exits[0], event, EdgeType.CAUSAL)


def _draw_sequence(team: Team, frames: dict[int, Frame], pen: _Pen) -> None:
    """Agents that nobody spawned or handed over to follow on those that had ended before."""
    alone = [number for number, each in enumerate(team.activations) if each.parent == NOBODY]
    running: list[tuple[float, int]] = []
    fresh: list[str] = []
    last = ""
    for number in sorted(alone, key=lambda n: (team.activations[n].earliest, team.activations[n].latest, n)):
        activation = team.activations[number]
        while running and running[0][0] <= activation.earliest:
            last = frames[heappop(running)[1]].last
            fresh.append(last)
        if not activation.incoming:
            for source in dict.fromkeys((*fresh, last)):
                pen.edge(source, frames[number].first, EdgeType.TEMPORAL)
            fresh = []
        heappush(running, (activation.latest, number))
