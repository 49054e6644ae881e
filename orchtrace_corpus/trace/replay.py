"""A trace run again: the state of the team after each event."""

from collections.abc import Iterator
from typing import NamedTuple

from orchtrace_corpus.trace.graph import graph, order
from orchtrace_corpus.trace.model import EdgeType, Event, EventType, Tokens, Trace
from orchtrace_corpus.trace.rules.totals import total


class State(NamedTuple):
    """How things stand after an event.

    Attributes:
        step: The number of the event in the replay, from 1 on.
        event: The event.
        live: The agents alive: spawned or having acted, and neither despawned nor stopped.
        open_calls: The ids of the tool calls that wait for their result: `call_id`, else the event's id.
        in_flight: The ids of the messages that no event depends on yet.
        tokens: The tokens spent so far; what was merely copied is not counted.
        without_tokens: How many inferences, decisions and aggregates so far have no tokens; `tokens` lacks theirs.
        cost_usd: The costs stated so far; None before the first.
    """

    step: int
    event: Event
    live: tuple[str, ...]
    open_calls: tuple[str, ...]
    in_flight: tuple[str, ...]
    tokens: float
    without_tokens: int
    cost_usd: float | None


_ASKED = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)


def replay(trace: Trace) -> Iterator[State]:
    """The states of a trace, one after each event, in time order wherever the edges allow it.

    The same trace gives the same states, and the first events of a trace give the first states.

    Raises:
        CycleError: The edges go round in a circle.
    """
    of = graph(trace)
    read: dict[int, list[int]] = {}
    answers: dict[int, list[int]] = {}
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        if of.events[source].type is EventType.MESSAGE:
            read.setdefault(target, []).append(source)
        elif edge.type is EdgeType.TOOL and of.events[source].type is EventType.TOOL_CALL:
            answers.setdefault(target, []).append(source)
    team = _Team()
    for step, number in enumerate(order(of), 1):
        event = of.events[number]
        for source in read.get(number, ()):
            team.in_flight.pop(of.events[source].id, None)
        answered = [_call(of.events[source]) for source in answers.get(number, ())]
        yield team.after(step, event, answered)


class _Team:
    """The state while it changes; its tuples are made anew only where something has changed."""

    def __init__(self) -> None:
        self.live: dict[str, None] = {}
        self.open_calls: dict[str, None] = {}
        self.in_flight: dict[str, None] = {}
        self._tokens = 0.0
        self._without_tokens = 0
        self._cost: float | None = None

    def after(self, step: int, event: Event, answered: list[str]) -> State:
        kind = event.type
        if kind not in (EventType.DESPAWN, EventType.STOP):
            self.live.setdefault(event.agent)
        if kind is EventType.SPAWN and event.target:
            self.live.setdefault(event.target)
        elif kind is EventType.DESPAWN:
            self.live.pop(event.target or event.agent, None)
        elif kind is EventType.STOP:
            self.live.pop(event.agent, None)
        elif kind is EventType.MESSAGE:
            self.in_flight[event.id] = None
        elif kind is EventType.TOOL_CALL:
            self.open_calls[_call(event)] = None
        elif kind is EventType.TOOL_RESULT:
            for call in (event.call_id, *answered):
                self.open_calls.pop(call, None)
        self._spend(event)
        state = (tuple(self.live), tuple(self.open_calls), tuple(self.in_flight))
        return State(step, event, *state, self._tokens, self._without_tokens, self._cost)

    def _spend(self, event: Event) -> None:
        if event.copied_context:
            return
        if isinstance(event.tokens, Tokens):
            self._tokens += total(event.tokens)
        elif event.type in _ASKED:
            self._without_tokens += 1
        if event.cost_usd is not None:
            self._cost = (self._cost or 0.0) + event.cost_usd


def _call(event: Event) -> str:
    return event.call_id or event.id
