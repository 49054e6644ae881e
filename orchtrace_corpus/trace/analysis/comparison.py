"""Two runs of one task side by side: what came out, what it took, who did what, how it hung together."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchtrace_corpus.trace.analysis.labels import labels
from orchtrace_corpus.trace.measures import DEFINITIONS, measure
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.trace import EventType, Trace, Unit
from orchtrace_corpus.trace.view import TraceView


class Structure(NamedTuple):
    """The structure of a run, without ids and times, which differ between any two runs.

    Attributes:
        agents: Each agent with the nearest few above it, such as `lead/manager/w1`, with its number of events.
        tools: Tool calls by tool.
        models: Events by the model that did them, as they say themselves or as their agent is declared.
        statuses: Events by how they ended.
        decisions: Events by sub-decision.
        events: Events by type.
        edges: Edges by type.
        handovers: Spawns, messages and returns by sender and receiver.
    """

    agents: Counter[str]
    tools: Counter[str]
    models: Counter[str]
    statuses: Counter[str]
    decisions: Counter[str]
    events: Counter[str]
    edges: Counter[str]
    handovers: Counter[str]


class Difference(NamedTuple):
    """One line of a comparison: a count, a figure or a word that is not the same in both runs.

    Attributes:
        part: `rewards`, `metrics`, `costs`, `measures`, a field of `Structure`, or `declared`.
        name: What is counted, stated or measured.
        before: In the first run; None where it is not known.
        after: In the second run.
        unit: What the numbers count or are measured in; empty for words and figures of no known unit.
        reason: Why a measure is not known in one of them.
    """

    part: str
    name: str
    before: float | str | None
    after: float | str | None
    unit: str = ""
    reason: str = ""

    @property
    def change(self) -> float | None:
        """By how much the second is larger; None where one is not known, or no number."""
        if isinstance(self.before, str) or isinstance(self.after, str) or self.before is None or self.after is None:
            return None
        return self.after - self.before


_COUNTED = {"tools": "call", "edges": "edge"}
_COST_UNITS = {"tokens": "token", "wall_clock_s": "s", "tool_calls": "call", "messages": "message"}
_HANDED = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.RETURN})


def structure(trace: Trace | TraceView) -> Structure:
    """The structure of a run."""
    view = TraceView.of(trace)
    trace, parents = view.trace, view.lifecycle.parents
    declared = {agent.id: agent.model for agent in trace.agents}
    agents: Counter[str] = Counter()
    for agent, number in Counter(event.agent for event in trace.events).items():
        agents[_lineage(agent, parents)] += number
    return Structure(
        agents=agents,
        tools=Counter(event.tool or "(unnamed)" for event in trace.events if event.type is EventType.TOOL_CALL),
        models=Counter(
            model
            for event in trace.events
            if (model := event.model or (declared.get(event.agent, "") if event.type in ASKED else ""))
        ),
        statuses=Counter(event.status.value for event in trace.events),
        decisions=Counter(one.decision.value for one in labels(view)),
        events=Counter(event.type.value for event in trace.events),
        edges=Counter(edge.type.value for edge in trace.edges),
        handovers=Counter(
            f"{event.type.value} {event.sender or event.agent} -> {event.target}"
            for event in trace.events
            if event.type in _HANDED and event.target
        ),
    )


def _lineage(agent: str, parents: Mapping[str, str]) -> str:
    names = [agent]
    while names[-1] in parents and len(names) < 8:
        names.append(parents[names[-1]])
    more = ["…"] if names[-1] in parents else []
    return "/".join((*more, *reversed(names)))


def compare(first: Trace | TraceView, second: Trace | TraceView) -> list[Difference]:
    """Everything in which two runs differ, ids, single times and contents left aside.

    What came out is first, then what it took, then how it came about. Measures of time are not compared where one
    run counts seconds and the other steps.

    Raises:
        CycleError: The edges of one of them go round in a circle.
    """
    views = TraceView.of(first), TraceView.of(second)
    one, other = views[0].trace, views[1].trace
    stated = [
        *_stated("rewards", one.rewards, other.rewards, dict.fromkeys((*one.rewards, *other.rewards), "reward")),
        *_stated("metrics", one.metrics, other.metrics, {}),
        *_stated("costs", one.costs, other.costs, _COST_UNITS),
    ]
    return [*stated, *_measured(*views), *_structural(*views), *_declared(one, other)]


def _stated(
    part: str, first: Mapping[str, float | None], second: Mapping[str, float | None], units: Mapping[str, str]
) -> Iterator[Difference]:
    for name in sorted({*first, *second}):
        before, after = first.get(name), second.get(name)
        if _differ(before, after):
            yield Difference(part, name, before, after, units.get(name, ""))


def _measured(first: TraceView, second: TraceView) -> Iterator[Difference]:
    old, new = measure(first), measure(second)
    kinds = {"step" if trace.clock.unit is Unit.STEP else "s" for trace in (first.trace, second.trace)}
    for name, definition in DEFINITIONS.items():
        before, after = old[name], new[name]
        unit = "/".join(sorted(kinds)) if definition.unit == "s" else definition.unit
        is_comparable = definition.unit != "s" or len(kinds) == 1
        if is_comparable and _differ(before.value, after.value):
            yield Difference("measures", name, before.value, after.value, unit, before.reason or after.reason)


def _structural(first: TraceView, second: TraceView) -> Iterator[Difference]:
    one, other = structure(first), structure(second)
    for part in Structure._fields:
        before, after = getattr(one, part), getattr(other, part)
        for name in sorted(before | after):
            if before[name] != after[name]:
                yield Difference(part, name, before[name], after[name], _COUNTED.get(part, "event"))


def _declared(first: Trace, second: Trace) -> Iterator[Difference]:
    """What the runs say of themselves in a word."""
    for name, before, after in (
        ("system", first.system, second.system),
        ("topology", first.topology.value, second.topology.value),
        ("clock unit", first.clock.unit.value, second.clock.unit.value),
    ):
        if before != after:
            yield Difference("declared", name, before or None, after or None)


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > 1e-9 * max(1.0, abs(one))
