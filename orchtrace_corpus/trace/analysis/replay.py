"""A trace run again: the state of the team after each event."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.terms import EdgeType, EventType
from orchtrace_corpus.trace.model.trace import Event, Tokens, Trace
from orchtrace_corpus.trace.view import TraceView


class State:
    """The state of a run after an event.

    Who and what there is at that moment is looked up when it is asked for, in time that grows with how many they
    are, so that a long run is replayed in time that grows with its events; the numbers are at hand.

    Attributes:
        step: The number of the event in the replay, from 1 on.
        event: The event.
        counts: How many agents live, how many calls are open, how many messages are in flight.
        tokens: The tokens spent so far; what was merely copied is not counted.
        without_tokens: How many inferences, decisions and aggregates so far have no tokens; `tokens` lacks theirs.
        cost_usd: The costs stated so far; None before the first.
    """

    __slots__ = ("_team", "cost_usd", "counts", "event", "step", "tokens", "without_tokens")

    def __init__(self, step: int, event: Event, team: "_Team") -> None:
        self.step = step
        self.event = event
        self.counts = len(team.live), len(team.open_calls), len(team.in_flight)
        self.tokens = team.tokens
        self.without_tokens = team.without_tokens
        self.cost_usd = team.cost_usd
        self._team = team

    @property
    def live(self) -> tuple[str, ...]:
        """The agents alive: spawned or having acted, and neither despawned nor stopped."""
        return self._team.live.at(self.step)

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of the tool calls that wait for their result: `call_id`, else the event's id."""
        return self._team.open_calls.at(self.step)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The ids of the messages that no event depends on yet."""
        return self._team.in_flight.at(self.step)

    @property
    def changes(self) -> tuple[Sequence[tuple[int, str]], ...]:
        """All that came and went until the replay is where it is: of `live`, `open_calls` and `in_flight`.

        Each is a step and a name, by step; a name that was there goes, and one that was not comes.
        """
        return self._team.live.changes, self._team.open_calls.changes, self._team.in_flight.changes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.step, self.event.id, self.counts))

    def _values(self) -> tuple[object, ...]:
        spent = self.tokens, self.without_tokens, self.cost_usd
        return self.step, self.event, self.live, self.open_calls, self.in_flight, spent


def replay(trace: Trace | TraceView) -> Iterator[State]:
    """The states of a trace, one after each event, in time order wherever the edges allow it.

    The same trace gives the same states, and the first events of a trace give the first states.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    of = view.graph
    read: dict[int, list[int]] = {}
    answers: dict[int, list[int]] = {}
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        if of.events[source].type is EventType.MESSAGE:
            read.setdefault(target, []).append(source)
        elif edge.type is EdgeType.TOOL and of.events[source].type is EventType.TOOL_CALL:
            answers.setdefault(target, []).append(source)
    team = _Team()
    for step, index in enumerate(view.sequence, 1):
        messages = [of.events[source].id for source in read.get(index, ())]
        answered = [_call(of.events[source]) for source in answers.get(index, ())]
        yield team.after(step, of.events[index], messages, answered)


class _Presence:
    """The names that are present after each step.

    Every coming and going is written down, and all names whenever there have been as many of them since as
    there are names now. So what was there at a step is found in time that grows with what was there, and everything
    written down with the comings and goings.

    Attributes:
        changes: Every coming and going: its step, and the name, which comes if it was not there.
    """

    def __init__(self) -> None:
        self._now: dict[str, None] = {}
        self.changes: list[tuple[int, str]] = []
        self._known: list[tuple[int, int, tuple[str, ...]]] = [(0, 0, ())]  # step, changes until then, names

    def __len__(self) -> int:
        return len(self._now)

    def change(self, name: str, step: int, *, present: bool) -> None:
        """Write down that a name has come, or has gone; nothing where it is as it was."""
        if (name in self._now) is present:
            return
        _toggle(self._now, name)
        self.changes.append((step, name))
        if len(self.changes) - self._known[-1][1] >= len(self._now):
            self._known.append((step, len(self.changes), tuple(self._now)))

    def at(self, step: int) -> tuple[str, ...]:
        """Return the names present after a step, in order of arrival."""
        if not self.changes or self.changes[-1][0] <= step:  # so it is for whoever looks at each state as it comes
            return tuple(self._now)
        _, place, names = self._known[bisect_right(self._known, step, key=itemgetter(0)) - 1]
        found = dict.fromkeys(names)
        while place < len(self.changes) and self.changes[place][0] <= step:
            _toggle(found, self.changes[place][1])
            place += 1
        return tuple(found)


def _toggle(names: dict[str, None], name: str) -> None:
    """Take a name out if it is there, else put it at the end."""
    if name in names:
        del names[name]
    else:
        names[name] = None


class _Team:
    """The team while its run goes on."""

    def __init__(self) -> None:
        self.live = _Presence()
        self.open_calls = _Presence()
        self.in_flight = _Presence()
        self.tokens = 0.0
        self.without_tokens = 0
        self.cost_usd: float | None = None

    def after(self, step: int, event: Event, read: list[str], answered: list[str]) -> State:
        """Go on by an event, which depends on the messages `read` and answers the calls `answered`, by its edges."""
        kind = event.type
        for message in read:
            self.in_flight.change(message, step, present=False)
        if kind is EventType.DESPAWN:
            self.live.change(event.target or event.agent, step, present=False)
        else:
            self.live.change(event.agent, step, present=kind is not EventType.STOP)
        if kind is EventType.SPAWN and event.target:
            self.live.change(event.target, step, present=True)
        elif kind is EventType.MESSAGE:
            self.in_flight.change(event.id, step, present=True)
        elif kind is EventType.TOOL_CALL:
            self.open_calls.change(_call(event), step, present=True)
        elif kind is EventType.TOOL_RESULT:
            for call in (event.call_id, *answered):
                self.open_calls.change(call, step, present=False)
        if not event.copied_context:
            if isinstance(event.tokens, Tokens) and event.tokens.is_known:
                self.tokens += total(event.tokens)
            elif kind in ASKED:
                self.without_tokens += 1
            if event.cost_usd is not None:
                self.cost_usd = (self.cost_usd or 0.0) + event.cost_usd
        return State(step, event, self)


def _call(event: Event) -> str:
    return event.call_id or event.id
