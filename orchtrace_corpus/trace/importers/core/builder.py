"""Make the trace of a run, for all importers: collect events and edges, sort them by time, add up tokens and costs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType, to_builtins
from msgspec.structs import astuple

from orchtrace_corpus.base.cycles import CycleError, closing_links, sort_topologically
from orchtrace_corpus.trace.importers.core.identity import UniqueNames
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.model import trace as model
from orchtrace_corpus.trace.model.import_report import NO_TIMES, NO_USAGE, ImportReport, Missing, Problem, unknown_total
from orchtrace_corpus.trace.model.terms import PARTS, AgentKind, EdgeType, EventType, Topology, Unit
from orchtrace_corpus.trace.model.trace import Agent, Edge, Event, Source, Tokens, Trace

_Pair: TypeAlias = tuple[Event, Event]
_MICRO = 1e6  # microseconds per second: times are rounded to microseconds
_SPAWN, _RESULT = EventType.SPAWN, EventType.TOOL_RESULT  # Python 3.11 is slow to look up a member of an enumeration

OUTSIDE_TOOLS = frozenset(
    {
        "FetchURL", "SearchWeb", "WebFetch", "WebSearch", "browser.search", "fetch", "google_web_search", "web_fetch",
        "web_search", "web_search_call", "webfetch", "websearch",
    }
)  # fmt: skip
"""The tools, by their names in the programs, that bring content from outside: web pages and search results."""


class Builder:
    """The events and edges of a run. Times are in seconds since 1970 until `trace` makes the first of them 0."""

    def __init__(self, form: str, version: str, report: ImportReport) -> None:
        self.report = report
        self.events: dict[str, Event] = {}  # by their ids
        self.turns: list[model.Turn] = []  # the turns whose durations the log states
        self._form, self._version = form, version
        self._source = Source()
        self._edges: dict[tuple[str, str, EdgeType], Edge] = {}
        self._agents: dict[str, Agent] = {}
        self._call_ids = UniqueNames()

    def begin(self, kind: EventType, agent: str, time: float, file: str, line: int, end: float | None = None) -> Event:
        """Add and return an event from a line of a log; callers set its other fields. Ends are at least at `time`."""
        events = self.events
        event_id = f"e{len(events) + 1}"
        event = events[event_id] = Event(event_id, time, kind, agent)  # keyword arguments would be slower
        source = self._source
        if source.line != line or source.file != file:  # events of one line share their source
            source = self._source = Source(file, line, self._form, self._version)
        event.source = source
        if end is not None:
            event.t_end = end if end > time else time
        return event

    def edge(self, source: str, target: str, kind: EdgeType) -> None:
        """Add an edge: the event `target` depends on the event `source`. Equal edges are added once."""
        if source and target and source != target:
            self._edges[source, target, kind] = Edge(source, target, kind)

    def call_id(self, wanted: str, place: object) -> str:
        """Return a unique id for a call: the wanted id, with a number behind it if another call has that id."""
        call_id = self._call_ids.add(wanted)
        if call_id != wanted:
            self.report.note(Problem.CALL_ID_USED_TWICE, str(place))
        return call_id

    def agent(self, name: str, *, kind: AgentKind | UnsetType = UNSET, **fields: str) -> None:
        """Declare an agent, or set further fields of a declared one: `role`, `model`, `parent`."""
        agent = self._agents.setdefault(name, Agent(name))
        if isinstance(kind, AgentKind):
            agent.kind = kind
        for field, value in fields.items():
            if value:
                setattr(agent, field, masked(value))

    def trace(
        self,
        trace_id: str,
        task_id: str,
        system: str,
        *,
        topology: Topology = Topology.UNKNOWN,
        missing: Mapping[Missing, int] = {},
        unread: int | None = None,
        unit: Unit = Unit.SECOND,
    ) -> Trace:
        """Return the finished trace, its events sorted by time; the other parameters are those of `Run.trace`."""
        events = list(self.events.values())
        outside_events = [event for event in events if event.tool in OUTSIDE_TOOLS]
        answered_ids = {event.call_id for event in outside_events if event.type is _RESULT}
        for event in outside_events:  # the content is in the result, or else in the call
            if event.type is _RESULT or (event.type is EventType.TOOL_CALL and event.call_id not in answered_ids):
                event.trusted = False
        types = [event.type for event in events]
        spawns = [event for event in events if event.type is _SPAWN] if _SPAWN in types else []
        if spawns:  # spawns come first among the events of the same time: the sort below is stable
            events = [*spawns, *(event for event in events if event.type is not _SPAWN)]
        events.sort(key=attrgetter("t"))
        zero = events[0].t if events else 0.0
        has_copies = False
        is_warm_up = all(event.warm_up for event in events)
        run_begin = run_end = next((event.t for event in events if not event.warm_up), zero)
        for seq, event in enumerate(events):
            event.seq = seq
            begin, end, requested = event.t, event.t_end, event.t_request
            last_time = begin if end is None else end
            if last_time > run_end and (is_warm_up or not event.warm_up):
                run_end = last_time
            since_zero = event.t = round((begin - zero) * _MICRO) / _MICRO  # four times as fast as `round` to 6 digits
            if end is not None:
                event.t_end = since_zero if end == begin else round((end - zero) * _MICRO) / _MICRO
            if event.copied_context:
                has_copies = True
            if requested is not None:
                event.t_request = since_zero if requested == begin else max(round(requested - zero, 6), 0.0)
            if event.t_first_token is not None:
                event.t_first_token = max(round(event.t_first_token - zero, 6), 0.0)
        turns = sorted(self.turns, key=attrgetter("t", "t_end", "agent"))
        for turn in turns:
            turn.t = max(round(turn.t - zero, 6), 0.0)
            turn.t_end = max(round(turn.t_end - zero, 6), turn.t)
            turn.run_time = round(turn.run_time, 6)
        edges = self._forward_edges(events, spawns)
        own_events = events  # events that are no copies of another run's history
        if has_copies:
            own_events = [event for event in events if not event.copied_context]
            types = [event.type for event in own_events]
        totals = token_totals(own_events)
        reason = unknown_total(missing, self.report.unread if unread is None else unread)
        if not reason and all(event.tokens is UNSET for event in own_events):
            reason = NO_USAGE
        spent: float = 0
        for counts in totals["agent"].values():
            spent += sum(count for kind, count in counts.items() if kind not in PARTS)
        costs = {
            "tokens": None if reason else spent,
            "wall_clock_s": None if unit is Unit.STEP else round(run_end - run_begin, 6),
            "tool_calls": types.count(EventType.TOOL_CALL),
            "messages": types.count(EventType.MESSAGE),
        }
        reasons = {"costs.tokens": reason} if reason else {}
        if unit is Unit.STEP:
            reasons["costs.wall_clock_s"] = NO_TIMES
        trace = Trace(trace_id, task_id, events, edges, rewards={}, costs=costs, system=system, topology=topology)
        epoch = f"{datetime.fromtimestamp(zero, UTC).replace(tzinfo=None).isoformat()}Z" if zero > 0 else None
        trace.clock, trace.reasons = model.Clock(unit, epoch), reasons
        trace.agents, trace.turns = tuple(self._agents.values()), tuple(turns)
        trace.import_report = {**self.report.as_data(), "token_totals": totals}
        return trace

    def _forward_edges(self, events: list[Event], spawns: Sequence[Event]) -> list[Edge]:
        """Return the edges that do not point back in time and form no cycle; put `events` of equal times in order.

        `events` is sorted by time. Of equal times, sources of edges come before targets, and if possible spawns before
        events of the spawned agents.
        """
        by_id = self.events
        edges = list(self._edges.values())
        backward: list[Edge] = []
        unsorted: set[float] = set()  # the times whose events are not yet in order
        for edge in edges:
            source, target = by_id[edge.src], by_id[edge.dst]
            if target.t <= source.t:
                if target.t < source.t:
                    backward.append(edge)
                elif source.seq > target.seq:  # type: ignore[operator]
                    unsorted.add(target.t)
        if backward:
            for edge in backward:
                self.report.note(Problem.BACKWARD_EDGE, f"{edge.src} -> {edge.dst}")
            edges = [edge for edge in edges if by_id[edge.dst].t >= by_id[edge.src].t]
        spawn_times = {spawn.t for spawn in spawns}
        events_at_spawns = [event for event in events if event.t in spawn_times] if spawns else []
        spawn_at = {(event.target, event.t): event for event in events_at_spawns if event.type is _SPAWN}
        last_spawns = {spawn.target: spawn for spawn in spawn_at.values()}
        spawn_pairs: list[_Pair] = []  # the spawn of an agent, and an event of the agent at the same time
        for event in events_at_spawns:
            spawn = spawn_at.get((event.agent, event.t))
            if spawn is not None and spawn is not event:
                spawn_pairs.append((spawn, event))
                if spawn.seq > event.seq:  # type: ignore[operator]
                    unsorted.add(spawn.t)
        if not unsorted:
            return edges
        dependencies, temporal = list[_Pair](), list[_Pair]()
        for edge in edges:
            source, target = by_id[edge.src], by_id[edge.dst]
            if target.t in unsorted and source.t == target.t:
                pairs = temporal if edge.type is EdgeType.TEMPORAL else dependencies
                pairs.append((source, target))
        cyclic = self._cyclic(dependencies, spawns)
        if cyclic:
            for edge in edges:
                if (edge.src, edge.dst) in cyclic:
                    self.report.note(Problem.CYCLE, f"{edge.src} -> {edge.dst}")
            edges = [edge for edge in edges if (edge.src, edge.dst) not in cyclic]
            dependencies = [pair for pair in dependencies if (pair[0].id, pair[1].id) not in cyclic]
        if temporal and self._cyclic([*dependencies, *temporal], spawns):  # dependencies matter more
            ignored = {(source.id, target.id, EdgeType.TEMPORAL) for source, target in temporal}
            edges = [edge for edge in edges if (edge.src, edge.dst, edge.type) not in ignored]
            temporal = []
        temporal = [pair for pair in temporal if (pair[0].id, pair[1].id) not in cyclic]
        last_pairs = [pair for pair in spawn_pairs if pair[0] is last_spawns[pair[1].agent] and pair[0].t in unsorted]
        _sort_simultaneous(events, unsorted, [*dependencies, *temporal], last_pairs)
        return edges

    def _cyclic(self, pairs: Iterable[_Pair], spawns: Iterable[Event]) -> Set[tuple[str, str]]:
        """Return the edges between events of equal times that must be left out to avoid cycles, as pairs of ids."""
        targets_by_source: dict[str, list[str]] = {}
        for source, target in pairs:
            targets_by_source.setdefault(source.id, []).append(target.id)
        spawn_by_agent = {spawn.target: spawn for spawn in spawns if spawn.target}
        dropped: set[tuple[str, str]] = set()
        for event in self.events.values() if spawn_by_agent else ():
            spawn = spawn_by_agent.get(event.agent)
            if spawn is None or spawn is event or spawn.t != event.t or event.id not in targets_by_source:
                continue
            if _is_reachable(targets_by_source, event.id, spawn.id):  # no agent causes its own spawn
                dropped.update((event.id, target) for target in targets_by_source.pop(event.id))
        return dropped.union(closing_links(targets_by_source))


def _is_reachable(edges: Mapping[str, Sequence[str]], source: str, target: str) -> bool:
    """Return True if edges lead from one event to another."""
    reached, waiting = {source}, [source]
    while waiting:
        further = [event for event in edges.get(waiting.pop(), ()) if event not in reached]
        reached.update(further)
        waiting += further
    return target in reached


def _sort_simultaneous(events: list[Event], times: Set[float], edges: list[_Pair], spawn_pairs: list[_Pair]) -> None:
    """Sort the events of each of these times, so that sources of edges come before targets.

    Unless it makes a cycle, spawns come before events of the spawned agents, and events of an agent stay as logged.
    """
    positions = [seq for seq, event in enumerate(events) if event.t in times]
    chosen = [events[seq] for seq in positions]
    indices = {event.id: index for index, event in enumerate(chosen)}
    last_events: dict[str, Event] = {}
    logged_pairs = []  # each event of an agent, and the agent's next event at the same time
    for event in chosen:
        last = last_events.get(event.agent)
        if last is not None and last.t == event.t:
            logged_pairs.append((last, event))
        last_events[event.agent] = event
    ranks = range(len(chosen))
    for wishes in ([*logged_pairs, *spawn_pairs], spawn_pairs, []):  # the edges alone have no cycle
        pairs = [*edges, *wishes]
        sources = [indices[early.id] for early, _ in pairs]
        targets = [indices[late.id] for _, late in pairs]
        with suppress(CycleError):
            order = sort_topologically(sources, targets, by_time=ranks, rank=ranks)
            break
    for seq, index in zip(positions, order, strict=True):
        events[seq] = chosen[index]
        chosen[index].seq = seq


def token_totals(events: Iterable[Event]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the tokens by agent under `agent`, and by model under `model`, each as sums by kind."""
    by_agent_and_model = defaultdict[tuple[str, str], list[Tokens]](list)
    for event in events:
        if event.tokens is not UNSET:
            by_agent_and_model[event.agent, event.model].append(event.tokens)
    agents: dict[str, dict[str, float]] = {}
    models: dict[str, dict[str, float]] = {}
    for (agent, model_name), tokens in by_agent_and_model.items():
        columns = zip(*map(astuple, tokens), strict=True)
        for kind, counts in zip(Tokens.__struct_fields__, columns, strict=True):
            if counts.count(None) < len(counts):  # a kind without any count is not listed
                count = sum(filter(None, counts))
                for totals in (agents.setdefault(agent, {}), models.setdefault(model_name, {})):
                    totals[kind] = totals.get(kind, 0) + count
    return {"agent": agents, "model": models}


def as_data(trace: Trace) -> dict[str, Any]:
    """Return an imported trace as a JSON object: ids, system, topology, clock and agents first, the report last."""
    data: dict[str, Any] = to_builtins(trace)
    report = data.pop("import_report")
    names = ("trace_id", "task_id", "system", "topology", "clock", "agents")  # written even if they are defaults
    document = {name: to_builtins(getattr(trace, name)) for name in names}
    document["clock"] = {"unit": trace.clock.unit.value, **document["clock"]}
    for name, value in data.items():
        document.setdefault(name, value)
    document["import_report"] = report
    return document
