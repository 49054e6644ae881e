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

    Counts are stored in each state. Names of agents, calls and messages are looked up when they are read: to store
    them would take time and memory quadratic in the number of events.

    Attributes:
        step: The number of the event in the replay, from 1.
        event: The event.
        counts: The number of live agents, of open calls, and of messages in flight.
        tokens: The sum of the tokens stated so far, without copied context.
        without_tokens: The number of inferences, decisions and aggregates so far that state no tokens.
        cost_usd: The sum of the costs stated so far; None before the first cost.
    """

    __slots__ = ("_team", "cost_usd", "counts", "event", "step", "tokens", "without_tokens")

    def __init__(self, step: int, event: Event, team: "_Team") -> None:
        self.step = step
        self.event = event
        self.counts = (len(team.live), len(team.open_calls), len(team.in_flight))
        self.tokens = team.tokens
        self.without_tokens = team.without_tokens
        self.cost_usd = team.cost_usd
        self._team = team

    @property
    def live(self) -> tuple[str, ...]:
        """The agents that were spawned or have acted, and were not despawned or stopped since."""
        return self._team.live.at(self.step)

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The tool calls without a result so far: the `call_id` of each, else the id of its event."""
        return self._team.open_calls.at(self.step)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The ids of the messages on which no event has depended so far."""
        return self._team.in_flight.at(self.step)

    @property
    def changes(self) -> tuple[Sequence[tuple[int, str]], ...]:
        """The changes of `live`, `open_calls` and `in_flight`, up to the last step of the replay so far.

        Each change is a step and a name. The name is added if it was absent, and removed if it was present.
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
    """Yield the state after each event. Events are in order of time, except where edges demand another order.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    graph, events = view.graph, view.graph.events
    messages_by_event: dict[int, list[str]] = {}  # the ids of the messages on which each event depends
    calls_by_event: dict[int, list[str]] = {}  # the names of the tool calls that each event answers
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if events[source].type is EventType.MESSAGE:
            messages_by_event.setdefault(target, []).append(events[source].id)
        elif edge.type is EdgeType.TOOL and events[source].type is EventType.TOOL_CALL:
            calls_by_event.setdefault(target, []).append(_call_name(events[source]))
    team = _Team()
    for step, index in enumerate(view.sequence, start=1):
        team.update(step, events[index], messages_by_event.get(index, ()), calls_by_event.get(index, ()))
        yield State(step, events[index], team)


class _Presence:
    """The names that are present after each step.

    Every change is recorded. A snapshot of all present names is taken when the changes since the last snapshot are at
    least as many as the names. The names at a step are therefore found in time linear in their number, and the memory
    is linear in the number of changes.

    Attributes:
        changes: The step and the name of every change. The name is added if it was absent, else removed.
    """

    def __init__(self) -> None:
        self._now: dict[str, None] = {}  # a dict as an ordered set
        self.changes: list[tuple[int, str]] = []
        self._snapshots: list[tuple[int, int, tuple[str, ...]]] = [(0, 0, ())]  # step, number of changes, names

    def __len__(self) -> int:
        return len(self._now)

    def change(self, name: str, step: int, *, present: bool) -> None:
        """Record that a name is now present or absent, if that is a change."""
        if present == (name in self._now):
            return
        _toggle(self._now, name)
        self.changes.append((step, name))
        _, changes_at_snapshot, _ = self._snapshots[-1]
        if len(self.changes) - changes_at_snapshot >= len(self._now):
            self._snapshots.append((step, len(self.changes), tuple(self._now)))

    def at(self, step: int) -> tuple[str, ...]:
        """Return the names present after a step, in order of arrival."""
        if not self.changes or self.changes[-1][0] <= step:  # the usual case: each state is read as it is yielded
            return tuple(self._now)
        snapshot = bisect_right(self._snapshots, step, key=itemgetter(0)) - 1  # the last one at or before the step
        _, position, names = self._snapshots[snapshot]
        present = dict.fromkeys(names)
        while position < len(self.changes):
            changed_at, name = self.changes[position]
            if changed_at > step:
                break
            _toggle(present, name)
            position += 1
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

    def update(self, step: int, event: Event, messages: Sequence[str], calls: Sequence[str]) -> None:
        """Update the state by an event; `messages` and `calls` are those from which an edge leads to the event."""
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


def _call_name(event: Event) -> str:
    """Return the name by which a result refers to a tool call."""
    return event.call_id or event.id
