"""The replay of a trace: the state of the team after each event."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.terms import EdgeType, EventType
from orchtrace_corpus.trace.model.trace import Event, Tokens, Trace
from orchtrace_corpus.trace.view import TraceView


class State:
    """The state of a run after an event.

    Counters are stored. Names of agents, calls and messages are looked up on use, in time that grows with their number,
    so that a replay takes time that grows with the number of events.

    Attributes:
        step: The number of the event in the replay, from 1.
        event: The event.
        counts: The numbers of live agents, of open calls, and of messages in flight.
        tokens: The tokens spent so far, without copied context.
        without_tokens: The number of inferences, decisions and aggregates so far that state no tokens.
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
        """The agents that were spawned or have acted, and have neither been despawned nor stopped."""
        return self._team.live.at(self.step)

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The tool calls without a result so far, by their `call_id`, or else the event's id."""
        return self._team.open_calls.at(self.step)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The ids of the messages that no event depends on yet."""
        return self._team.in_flight.at(self.step)

    @property
    def changes(self) -> tuple[Sequence[tuple[int, str]], ...]:
        """The changes of `live`, `open_calls` and `in_flight` up to the last step that was replayed.

        Each change is a step and a name, which is removed if it was present, and else added.
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
    """Yield the state after each event, by time wherever the edges allow it.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    graph, events = view.graph, view.graph.events
    messages_to: dict[int, list[str]] = {}  # for each event, the messages that it depends on
    calls_to: dict[int, list[str]] = {}  # and the calls that it answers
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if events[source].type is EventType.MESSAGE:
            messages_to.setdefault(target, []).append(events[source].id)
        elif edge.type is EdgeType.TOOL and events[source].type is EventType.TOOL_CALL:
            calls_to.setdefault(target, []).append(_call_name(events[source]))
    team = _Team()
    for step, index in enumerate(view.sequence, 1):
        yield team.after(step, events[index], messages_to.get(index, ()), calls_to.get(index, ()))


class _Presence:
    """The names that are present after each step.

    Every change is recorded, and all present names after as many changes as there are names. So the names at a step
    are found in time that grows with their number, and the records grow only with the number of changes.

    Attributes:
        changes: The step and the name of every change; the name is added if it was absent, and else removed.
    """

    def __init__(self) -> None:
        self._now: dict[str, None] = {}
        self.changes: list[tuple[int, str]] = []
        self._snapshots: list[tuple[int, int, tuple[str, ...]]] = [(0, 0, ())]  # step, changes until then, names

    def __len__(self) -> int:
        return len(self._now)

    def change(self, name: str, step: int, *, present: bool) -> None:
        """Record that a name is now present or absent, if that is a change."""
        if (name in self._now) is present:
            return
        _toggle(self._now, name)
        self.changes.append((step, name))
        if len(self.changes) - self._snapshots[-1][1] >= len(self._now):
            self._snapshots.append((step, len(self.changes), tuple(self._now)))

    def at(self, step: int) -> tuple[str, ...]:
        """Return the names present after a step, in order of arrival."""
        if not self.changes or self.changes[-1][0] <= step:  # the usual case: each state is read as it is yielded
            return tuple(self._now)
        _, place, names = self._snapshots[bisect_right(self._snapshots, step, key=itemgetter(0)) - 1]
        present = dict.fromkeys(names)
        while place < len(self.changes) and self.changes[place][0] <= step:
            _toggle(present, self.changes[place][1])
            place += 1
        return tuple(present)


def _toggle(names: dict[str, None], name: str) -> None:
    """Remove a name if it is present, else add it at the end."""
    if name in names:
        del names[name]
    else:
        names[name] = None


class _Team:
    """The state of the team, which changes during the replay."""

    def __init__(self) -> None:
        self.live = _Presence()
        self.open_calls = _Presence()
        self.in_flight = _Presence()
        self.tokens = 0.0
        self.without_tokens = 0
        self.cost_usd: float | None = None

    def after(self, step: int, event: Event, messages: Sequence[str], calls: Sequence[str]) -> State:
        """Return the state after an event to which edges lead from some messages and tool calls."""
        kind = event.type
        for message in messages:
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
            self.open_calls.change(_call_name(event), step, present=True)
        elif kind is EventType.TOOL_RESULT:
            for call in (event.call_id, *calls):
                self.open_calls.change(call, step, present=False)
        if not event.copied_context:
            if isinstance(event.tokens, Tokens) and event.tokens.is_known:
                self.tokens += total(event.tokens)
            elif kind in ANSWER_TYPES:
                self.without_tokens += 1
            if event.cost_usd is not None:
                self.cost_usd = (self.cost_usd or 0.0) + event.cost_usd
        return State(step, event, self)


def _call_name(event: Event) -> str:
    return event.call_id or event.id
