"""Two runs of one task side by side: what came out, what it took, who did what, how it hung together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.labels import labels
from orchtrace_corpus.trace.diagnosis.findings import FindingKind, cost, find
from orchtrace_corpus.trace.measures.definitions import DEFINITIONS, measure
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.terms import EventType, Unit
from orchtrace_corpus.trace.model.trace import Trace
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
        part: `rewards`, `metrics`, `costs`, `measures`, `findings`, a field of `Structure`, or `declared`.
        name: What is counted, stated or measured.
        before: In the first run; None where it is not known.
        after: In the second run.
        unit: What the numbers count or are measured in; empty for words and figures of no known unit.
        reason: Why a measure is not known in one of them.
        are_least: Of the first and the second, whether the figure is only what is known of it, and there is more.
    """

    part: str
    name: str
    before: float | str | None
    after: float | str | None
    unit: str = ""
    reason: str = ""
    are_least: tuple[bool, bool] = (False, False)

    @property
    def change(self) -> float | None:
        """By how much the second is larger; None where one is not known, not all of it is, or it is no number."""
        if isinstance(self.before, str) or isinstance(self.after, str) or self.before is None or self.after is None:
            return None
        if any(self.are_least):
            return None
        return self.after - self.before


_FOUND = {
    FindingKind.UNREAD_MESSAGE: "message",
    FindingKind.UNUSED_RESULT: "result",
    FindingKind.NO_RETURN: "agent",
    FindingKind.REPEATED_CALL: "call",
    FindingKind.IDLE_LEAD: "lead",
    FindingKind.LARGE_CONTEXT: "context",
    FindingKind.UNAPPROVED_EFFECT: "call",
}
"""The noun that the findings of each kind are counted in."""
_COUNTED = {"tools": "call", "edges": "edge"}
_COST_UNITS = {"tokens": "token", "wall_clock_s": "s", "tool_calls": "call", "messages": "message"}
_HANDED = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.RETURN})


def structure(trace: Trace | TraceView, names: Mapping[str, str] = MappingProxyType({})) -> Structure:
    """The structure of a run, its agents by their names where these are given, else by their ids."""
    view = TraceView.of(trace)
    trace, parents = view.trace, view.lifecycle.parents
    declared = {agent.id: agent.model for agent in trace.agents}
    agents: Counter[str] = Counter()
    for agent, number in Counter(event.agent for event in trace.events).items():
        agents[_lineage(agent, parents, names)] += number
    return Structure(
        agents=agents,
        tools=Counter(event.tool or "(unnamed)" for event in trace.events if event.type is EventType.TOOL_CALL),
        models=Counter(
            model
            for event in trace.events
            if (model := event.model or (declared.get(event.agent, "") if event.type in ASKED else ""))
        ),
        statuses=Counter(event.status.value for event in trace.events),
        decisions=Counter(label.decision.value for label in labels(view)),
        events=Counter(event.type.value for event in trace.events),
        edges=Counter(edge.type.value for edge in trace.edges),
        handovers=Counter(
            f"{event.type.value} {_called(event.sender or event.agent, names)} -> {_called(event.target, names)}"
            for event in trace.events
            if event.type in _HANDED and event.target
        ),
    )


def _lineage(agent: str, parents: Mapping[str, str], names: Mapping[str, str]) -> str:
    line = [agent]
    while line[-1] in parents and len(line) < 8:
        line.append(parents[line[-1]])
    more = ["…"] if line[-1] in parents else []
    return "/".join((*more, *(_called(one, names) for one in reversed(line))))


def _called(agent: str, names: Mapping[str, str]) -> str:
    return names.get(agent, agent)


def compare(
    first: Trace | TraceView, second: Trace | TraceView, names: Sequence[Mapping[str, str]] = ({}, {})
) -> list[Difference]:
    """Everything in which two runs differ, ids, single times and contents left aside.

    What came out is first, then what it took, then how it came about. Measures of time are not compared where one
    run counts seconds and the other steps.

    Args:
        first: A run.
        second: The other.
        names: What the agents of each are called; an agent without a name is called by its id.

    Raises:
        CycleError: The edges of one of them go round in a circle.
    """
    views = TraceView.of(first), TraceView.of(second)
    one, other = views[0].trace, views[1].trace
    measured = list(_measured(*views))
    names_measured = {found.name for found in measured}  # which know more than a cost that is not stated
    costs = _stated("costs", one.costs, other.costs, _COST_UNITS)
    stated = [
        *_stated("rewards", one.rewards, other.rewards, dict.fromkeys((*one.rewards, *other.rewards), "reward")),
        *_stated("metrics", one.metrics, other.metrics, {}),
        *(cost for cost in costs if cost.change is not None or cost.name not in names_measured),
    ]
    return [*stated, *measured, *_found(*views), *_structural(*views, names), *_declared(one, other)]


_OUTCOMES = ("rewards", "metrics")
_LEADING_MEASURES = frozenset(("elapsed", "tokens", "cost"))


def largest_first(differences: Sequence[Difference]) -> list[Difference]:
    """The differences by weight: what came out; elapsed time, tokens and cost; findings; the others, by their change.

    A figure weighs the share of the larger side that it changes by; a count that share of all that differs in its
    part, so that many small parts do not come before a large one. A figure that is stated and measured alike is
    listed once, as the measure.
    """
    sums: dict[str, float] = {}
    for one in differences:
        sums[one.part] = sums.get(one.part, 0.0) + abs(one.change or 0.0)
    measured = {(difference.before, difference.after) for difference in differences if difference.part == "measures"}

    def weight(one: Difference) -> tuple[bool, int, float]:
        is_leading = one.part == "measures" and one.name in _LEADING_MEASURES
        tier = one.part not in _OUTCOMES, 0 if is_leading else 1 if one.part == "findings" else 2
        if one.change is None or isinstance(one.before, str) or isinstance(one.after, str):
            return *tier, 0.0
        whole = max(abs(one.before or 0.0), abs(one.after or 0.0))
        if one.part in Structure._fields:
            whole = max(whole, sums[one.part])
        return *tier, -abs(one.change) / whole if whole else 0.0

    listed = [one for one in differences if one.part != "costs" or (one.before, one.after) not in measured]
    return sorted(listed, key=weight)


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
        are_least = before.at_least is not None, after.at_least is not None
        old_value, new_value = (one.value if one.at_least is None else one.at_least for one in (before, after))
        if is_comparable and (_differ(old_value, new_value) or are_least[0] is not are_least[1]):
            reason = before.reason if old_value is None else after.reason if new_value is None else ""
            yield Difference("measures", name, old_value, new_value, unit, reason, are_least)
        if is_comparable and not before.if_waiting is after.if_waiting is None:
            one, other = (found.value if found.if_waiting is None else found.if_waiting for found in (before, after))
            if _differ(one, other):
                yield Difference("measures", f"{name}_if_waiting", one, other, unit, before.reason or after.reason)


def _found(first: TraceView, second: TraceView) -> Iterator[Difference]:
    """Return the count and the cost of the findings of each kind, in the numbers of the screen."""
    found = [find(view).findings for view in (first, second)]
    sides = [{kind: [one for one in side if one.kind is kind] for kind in FindingKind} for side in found]
    for kind in FindingKind:
        before, after = (sum(one.number for one in side[kind]) for side in sides)
        if before != after:
            yield Difference("findings", kind.value, before, after, _FOUND[kind])
        costs = [
            cost(view, {n for one in side[kind] for n in one.cost_events})
            for view, side in zip((first, second), sides, strict=True)
        ]
        if kind is FindingKind.IDLE_LEAD:
            costs = [(sum(one.seconds or 0.0 for one in side[kind]), None) for side in sides]
        (seconds, tokens), (later_seconds, later_tokens) = costs
        if _differ(seconds or 0.0, later_seconds or 0.0):
            yield Difference("findings", f"{kind.value}_seconds", seconds or 0.0, later_seconds or 0.0, "s")
        if _differ(tokens or 0.0, later_tokens or 0.0):
            yield Difference("findings", f"{kind.value}_tokens", tokens or 0.0, later_tokens or 0.0, "token")


def _structural(first: TraceView, second: TraceView, names: Sequence[Mapping[str, str]]) -> Iterator[Difference]:
    one, other = structure(first, names[0]), structure(second, names[1])
    for part in Structure._fields:
        before, after = getattr(one, part), getattr(other, part)
        for name in sorted(before | after):
            if before[name] != after[name]:
                yield Difference(part, name, before[name], after[name], _COUNTED.get(part, "event"))


def _declared(first: Trace, second: Trace) -> Iterator[Difference]:
    """Return what the runs declare about themselves in a word."""
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
