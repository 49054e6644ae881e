"""Writes the events of a run, with the edges between them, and makes a trace of them: the only writer there is."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType, to_builtins
from msgspec.structs import astuple

from orchtrace_corpus.base.cycles import CycleError, closing_links, sort_topologically
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.model import trace as model
from orchtrace_corpus.trace.model.import_report import NO_TIMES, NO_USAGE, ImportReport, Missing, Problem, unknown_total
from orchtrace_corpus.trace.model.terms import PARTS, AgentKind, EdgeType, EventType, Topology, Unit
from orchtrace_corpus.trace.model.trace import Agent, Edge, Event, Source, Tokens, Trace

_Pair: TypeAlias = tuple[Event, Event]
_MICRO = 1e6
_SPAWN, _RESULT = EventType.SPAWN, EventType.TOOL_RESULT  # Python 3.11 is slow to look up a member

OUTSIDE_TOOLS = frozenset(
    {
        "FetchURL", "SearchWeb", "WebFetch", "WebSearch", "browser.search", "fetch", "google_web_search", "web_fetch",
        "web_search", "web_search_call", "webfetch", "websearch",
    }
)  # fmt: skip
"""Tools that bring content from outside, as the programs call them: pages, and results of searches."""


class Builder:
    """Writes the events of a run. All times count from 1970 until `trace` counts them from the first event."""

    def __init__(self, form: str, version: str, report: ImportReport) -> None:
        self.report = report
        self.events: dict[str, Event] = {}  # by their ids
        self.turns: list[model.Turn] = []  # those whose durations the log states
        self._form, self._version = form, version
        self._source = Source()
        self._edges: dict[tuple[str, str, EdgeType], Edge] = {}
        self._agents: dict[str, Agent] = {}
        self._call_ids = Names()

    def begin(self, kind: EventType, agent: str, time: float, file: str, line: int, end: float | None = None) -> Event:
        """Add an event of an agent from a line of a log, and return it; callers set its further fields."""
        events = self.events
        name = f"e{len(events) + 1}"
        event = events[name] = Event(name, time, kind, agent)  # setting fields is faster than passing them by name
        source = self._source
        if source.line != line or source.file != file:  # one line often becomes several events
            source = self._source = Source(file, line, self._form, self._version)
        event.source = source
        if end is not None:
            event.t_end = end if end > time else time
        return event

    def edge(self, source: str, target: str, kind: EdgeType) -> None:
        """Add that an event depends on another, once."""
        if source and target and source != target:
            self._edges[source, target, kind] = Edge(source, target, kind)

    def call_id(self, wanted: str, place: object) -> str:
        """Return the id of a call, with a number behind it if another call of the run has the same id."""
        call_id = self._call_ids.new(wanted)
        if call_id != wanted:
            self.report.note(Problem.CALL_ID_USED_TWICE, str(place))
        return call_id

    def agent(self, name: str, *, kind: AgentKind | UnsetType = UNSET, **fields: str) -> None:
        """Declare an agent, or add to what is declared of it: role, model, parent, kind."""
        known = self._agents.setdefault(name, Agent(name))
        if isinstance(kind, AgentKind):
            known.kind = kind
        for field, value in fields.items():
            if value:
                setattr(known, field, masked(value))

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
        """Return the finished trace, its events by time; the parameters are those of `Run.trace`."""
        events = list(self.events.values())
        outside = [event for event in events if event.tool in OUTSIDE_TOOLS]
        answered = {event.call_id for event in outside if event.type is _RESULT}
        for event in outside:  # results are not to be trusted, nor calls without a result
            if event.type is _RESULT or (event.type is EventType.TOOL_CALL and event.call_id not in answered):
                event.trusted = False
        types = [event.type for event in events]
        spawns = [event for event in events if event.type is _SPAWN] if _SPAWN in types else []
        if spawns:  # first of the events of their instant
            events = [*spawns, *(event for event in events if event.type is not _SPAWN)]
        events.sort(key=attrgetter("t"))  # those of one instant stay in this order
        zero = events[0].t if events else 0.0
        has_copies = False
        is_warm_up = all(event.warm_up for event in events)
        first = last = next((event.t for event in events if not event.warm_up), zero)
        for place, event in enumerate(events):
            event.seq = place
            begin, end, requested = event.t, event.t_end, event.t_request
            finish = begin if end is None else end
            if finish > last and (is_warm_up or not event.warm_up):
                last = finish
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
            turn.t_end, turn.run_time = max(round(turn.t_end - zero, 6), turn.t), round(turn.run_time, 6)
        edges = self._forward_edges(events, spawns)
        counted = events
        if has_copies:
            counted = [event for event in events if not event.copied_context]
            types = [event.type for event in counted]
        totals = token_totals(counted)
        reason = unknown_total(missing, self.report.unread if unread is None else unread)
        if not reason and all(event.tokens is UNSET for event in counted):
            reason = NO_USAGE
        spent = sum(count for kinds in totals["agent"].values() for kind, count in kinds.items() if kind not in PARTS)
        reasons = {"costs.tokens": reason} if reason else {}
        if unit is Unit.STEP:
            reasons["costs.wall_clock_s"] = NO_TIMES
        costs = {
            "tokens": None if reason else spent,
            "wall_clock_s": None if unit is Unit.STEP else round(last - first, 6),
            "tool_calls": types.count(EventType.TOOL_CALL),
            "messages": types.count(EventType.MESSAGE),
        }
        trace = Trace(trace_id, task_id, events, edges, rewards={}, costs=costs, system=system, topology=topology)
        epoch = f"{datetime.fromtimestamp(zero, UTC).replace(tzinfo=None).isoformat()}Z" if zero > 0 else None
        trace.clock = model.Clock(unit, epoch)
        trace.agents, trace.turns = tuple(self._agents.values()), tuple(turns)
        trace.reasons = reasons
        trace.import_report = {**self.report.as_data(), "token_totals": totals}
        return trace

    def _forward_edges(self, events: list[Event], spawns: Sequence[Event]) -> list[Edge]:
        """Return the edges that the log's times allow, without cycles, and put the events of each instant in order."""
        known = self.events
        forward = list(self._edges.values())
        backward: list[Edge] = []
        unsorted: set[float] = set()  # the instants whose events are not yet in order
        for edge in forward:
            early, late = known[edge.src], known[edge.dst]
            if late.t <= early.t:
                if late.t < early.t:
                    backward.append(edge)
                elif early.seq > late.seq:  # type: ignore[operator]
                    unsorted.add(late.t)
        if backward:
            for edge in backward:
                self.report.note(Problem.BACKWARD_EDGE, f"{edge.src} -> {edge.dst}")
            forward = [edge for edge in forward if known[edge.dst].t >= known[edge.src].t]
        moments = {spawn.t for spawn in spawns}
        at_spawns = [event for event in events if event.t in moments] if spawns else ()
        spawn_at = {(event.target, event.t): event for event in at_spawns if event.type is _SPAWN}
        acts = [(spawn_at.get((event.agent, event.t), event), event) for event in at_spawns]
        acts = [(spawn, act) for spawn, act in acts if spawn is not act]  # acts of agents spawned just then
        unsorted.update(spawn.t for spawn, act in acts if spawn.seq > act.seq)  # type: ignore[operator]
        if not unsorted:
            return forward
        at_once = [edge for edge in forward if known[edge.dst].t in unsorted and known[edge.src].t == known[edge.dst].t]
        temporal = [edge for edge in at_once if edge.type is EdgeType.TEMPORAL]
        pairs = [(known[edge.src], known[edge.dst]) for edge in at_once if edge.type is not EdgeType.TEMPORAL]
        cyclic = self._cyclic(pairs, spawns)
        if cyclic:
            for edge in forward:
                if (edge.src, edge.dst) in cyclic:
                    self.report.note(Problem.CYCLE, f"{edge.src} -> {edge.dst}")
            pairs = [(early, late) for early, late in pairs if (early.id, late.id) not in cyclic]
        if temporal:
            all_pairs = [*pairs, *((known[edge.src], known[edge.dst]) for edge in temporal)]
            if self._cyclic(all_pairs, spawns):  # temporal edges yield to dependencies
                yielding = set(map(id, temporal))  # edges are not hashable
                forward = [edge for edge in forward if id(edge) not in yielding]
            else:
                pairs = [(early, late) for early, late in all_pairs if (early.id, late.id) not in cyclic]
        last_spawns = {spawn.target: spawn for spawn in spawn_at.values()}
        acts = [(spawn, act) for spawn, act in acts if spawn.t in unsorted and spawn is last_spawns.get(act.agent)]
        _put_in_order(events, unsorted, pairs, acts)
        return [edge for edge in forward if (edge.src, edge.dst) not in cyclic] if cyclic else forward

    def _cyclic(self, pairs: Iterable[_Pair], spawns: Iterable[Event]) -> Set[tuple[str, str]]:
        """Return the edges between events of one instant that are left out so that there is no cycle."""
        leaving: dict[str, list[str]] = {}
        for source, target in pairs:
            leaving.setdefault(source.id, []).append(target.id)
        by_child = {spawn.target: spawn for spawn in spawns if spawn.target}
        dropped: set[tuple[str, str]] = set()
        sources = [event for event in self.events.values() if event.id in leaving] if by_child else []
        for event in sources:
            spawn = by_child.get(event.agent, event)
            if spawn is not event and spawn.t == event.t and _leads(leaving, event.id, spawn.id):
                dropped.update((event.id, target) for target in leaving.pop(event.id))  # no agent causes its own spawn
        return dropped.union(closing_links(leaving))


def _leads(edges: Mapping[str, Sequence[str]], source: str, target: str) -> bool:
    """Return True if edges lead from one event to another."""
    reached, waiting = {source}, [source]
    while waiting:
        further = [event for event in edges.get(waiting.pop(), ()) if event not in reached]
        reached.update(further)
        waiting += further
    return target in reached


def _put_in_order(events: list[Event], instants: Set[float], edges: Sequence[_Pair], acts: Sequence[_Pair]) -> None:
    """Sort the events of each instant by edges and, unless that makes a cycle, by acts and by the log's order."""
    positions = [seq for seq, event in enumerate(events) if event.t in instants]
    chosen = [events[seq] for seq in positions]
    places = {event.id: place for place, event in enumerate(chosen)}
    last: dict[str, Event] = {}
    as_logged = []  # each event of an agent, and its next one at the same instant
    for event in chosen:
        if event.agent in last and last[event.agent].t == event.t:
            as_logged.append((last[event.agent], event))
        last[event.agent] = event
    by_time = range(len(chosen))
    for further in ((*as_logged, *acts), acts, ()):  # the edges alone have no cycle
        pairs = [(places[early.id], places[late.id]) for early, late in (*edges, *further)]
        sources, targets = [early for early, _ in pairs], [late for _, late in pairs]
        with suppress(CycleError):
            order = sort_topologically(sources, targets, timely=by_time, rank=by_time)
            break
    for seq, place in zip(positions, order, strict=True):
        events[seq], chosen[place].seq = chosen[place], seq


def token_totals(events: Iterable[Event]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the sums of tokens by agent and by model, each by kind."""
    by_agent_and_model = defaultdict[tuple[str, str], list[Tokens]](list)
    for event in events:
        if event.tokens is not UNSET:
            by_agent_and_model[event.agent, event.model].append(event.tokens)
    agents: dict[str, dict[str, float]] = {}
    models: dict[str, dict[str, float]] = {}
    for (agent, name), spent in by_agent_and_model.items():
        columns = zip(*map(astuple, spent), strict=True)
        for kind, numbers in zip(Tokens.__struct_fields__, columns, strict=True):
            if numbers.count(None) < len(numbers):
                count = sum(filter(None, numbers))
                for totals in (agents.setdefault(agent, {}), models.setdefault(name, {})):
                    totals[kind] = totals.get(kind, 0) + count
    return {"agent": agents, "model": models}


def as_data(trace: Trace) -> dict[str, Any]:
    """Return an imported trace as JSON has it: ids, system, topology, clock and agents first, even if default."""
    data: dict[str, Any] = to_builtins(trace)
    names = ("trace_id", "task_id", "system", "topology", "clock", "agents")
    first = {name: to_builtins(getattr(trace, name)) for name in names}
    first["clock"] = {"unit": trace.clock.unit.value, **first["clock"]}
    report = data.pop("import_report")
    return {**first, **{name: value for name, value in data.items() if name not in first}, "import_report": report}
