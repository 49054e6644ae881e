"""Compares two runs of one task: results, costs, measures, findings and structure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.labels import labels
from orchtrace_corpus.trace.diagnosis.findings import FindingKind, cost, find
from orchtrace_corpus.trace.measures.definitions import DEFINITIONS, measure
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.terms import EventType, Unit
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView


class Structure(NamedTuple):
    """The structure of a run, without ids and times, which differ between any two runs.

    Attributes:
        agents: Events by agent, written with its nearest ancestors, such as `lead/manager/w1`.
        tools: Tool calls by tool.
        models: Events by model: the one that the event names, else the one that its agent declares.
        statuses: Events by status.
        decisions: Events by orchestration decision.
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
    """One line of a comparison: a count, a figure or a word that differs between the runs.

    Attributes:
        part: `rewards`, `metrics`, `costs`, `measures`, `findings`, a field of `Structure`, or `declared`.
        name: The name of the count, figure or word.
        before: The value in the first run; None if it is unknown.
        after: The value in the second run; None if it is unknown.
        unit: The unit of the numbers; empty for words and for figures without a known unit.
        reason: Why a measure is unknown in one of the runs.
        are_lower_bounds: For each run, whether the value is only a lower bound.
    """

    part: str
    name: str
    before: float | str | None
    after: float | str | None
    unit: str = ""
    reason: str = ""
    are_lower_bounds: tuple[bool, bool] = (False, False)

    @property
    def change(self) -> float | None:
        """Return `after` less `before`; None if either is unknown, a lower bound or a word."""
        if isinstance(self.before, str) or isinstance(self.after, str) or self.before is None or self.after is None:
            return None
        if any(self.are_lower_bounds):
            return None
        return self.after - self.before


_FINDING_NOUNS = {
    FindingKind.UNREAD_MESSAGE: "message",
    FindingKind.UNUSED_RESULT: "result",
    FindingKind.NO_RETURN: "agent",
    FindingKind.REPEATED_CALL: "call",
    FindingKind.IDLE_LEAD: "lead",
    FindingKind.LARGE_CONTEXT: "context",
    FindingKind.UNAPPROVED_EFFECT: "call",
}
"""The noun that counts the findings of each kind."""
_STRUCTURE_NOUNS = {"tools": "call", "edges": "edge"}
_COST_UNITS = {"tokens": "token", "wall_clock_s": "s", "tool_calls": "call", "messages": "message"}
_HANDOVERS = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.RETURN})


def structure(trace: Trace | TraceView, names: Mapping[str, str] = MappingProxyType({})) -> Structure:
    """Return the structure of a run; `names` maps ids of agents to the names to show."""
    view = TraceView.of(trace)
    trace, parents = view.trace, view.lifecycle.parents
    declared = {agent.id: agent.model for agent in trace.agents}
    agents: Counter[str] = Counter()
    for agent, count in Counter(event.agent for event in trace.events).items():
        agents[_path_from_root(agent, parents, names)] += count
    models: Counter[str] = Counter()
    for event in trace.events:
        model = event.model
        if not model and event.type in ANSWER_TYPES:
            model = declared.get(event.agent, "")
        if model:
            models[model] += 1
    handovers: Counter[str] = Counter()
    for event in trace.events:
        if event.type in _HANDOVERS and event.target:
            sender = event.sender or event.agent
            receiver = names.get(event.target, event.target)
            handovers[f"{event.type.value} {names.get(sender, sender)} -> {receiver}"] += 1
    return Structure(
        agents=agents,
        tools=Counter(event.tool or "(unnamed)" for event in trace.events if event.type is EventType.TOOL_CALL),
        models=models,
        statuses=Counter(event.status.value for event in trace.events),
        decisions=Counter(label.decision.value for label in labels(view)),
        events=Counter(event.type.value for event in trace.events),
        edges=Counter(edge.type.value for edge in trace.edges),
        handovers=handovers,
    )


def _path_from_root(agent: str, parents: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return the names of an agent's nearest ancestors and its own, such as `lead/manager/w1`."""
    line = [agent]
    while line[-1] in parents and len(line) < 8:
        line.append(parents[line[-1]])
    shown = [names.get(ancestor, ancestor) for ancestor in reversed(line)]
    if line[-1] in parents:
        shown.insert(0, "…")
    return "/".join(shown)


def compare(
    first: Trace | TraceView, second: Trace | TraceView, names: Sequence[Mapping[str, str]] = ({}, {})
) -> list[Difference]:
    """Return all differences between two runs, except in ids, single times and contents.

    Stated results and costs come first, then measures, findings and structure. Measures of time are skipped if one
    run counts seconds and the other steps.

    Args:
        first: The first run.
        second: The second run.
        names: The names of each run's agents by id; an agent without a name is shown by its id.

    Raises:
        CycleError: The edges of one of them form a cycle.
    """
    first_view, second_view = TraceView.of(first), TraceView.of(second)
    old, new = first_view.trace, second_view.trace
    reward_units = dict.fromkeys((*old.rewards, *new.rewards), "reward")
    measures = list(_measure_differences(first_view, second_view))
    measure_names = {difference.name for difference in measures}
    return [
        *_stated("rewards", old.rewards, new.rewards, reward_units),
        *_stated("metrics", old.metrics, new.metrics, {}),
        # A cost that one run does not state says less than the measure of the same name.
        *(
            cost
            for cost in _stated("costs", old.costs, new.costs, _COST_UNITS)
            if cost.change is not None or cost.name not in measure_names
        ),
        *measures,
        *_finding_differences(first_view, second_view),
        *_structure_differences(first_view, second_view, names),
        *_declared(old, new),
    ]


_OUTCOMES = ("rewards", "metrics")
_LEADING_MEASURES = frozenset(("elapsed", "tokens", "cost"))


def largest_first(differences: Sequence[Difference]) -> list[Difference]:
    """Sort differences: results; then elapsed time, tokens and cost; then findings; then the others by their change.

    The change of a figure is weighed against its larger value. The change of a count in the structure is weighed
    against all changes of its part, so that many small counts do not come before a large one. A cost that is both
    stated and measured is listed once, as the measure.
    """
    sums: dict[str, float] = {}
    for difference in differences:
        sums[difference.part] = sums.get(difference.part, 0.0) + abs(difference.change or 0.0)
    measured = {(difference.before, difference.after) for difference in differences if difference.part == "measures"}

    def order(difference: Difference) -> tuple[bool, int, float]:
        part, before, after, change = difference.part, difference.before, difference.after, difference.change
        tier = 2
        if part == "measures" and difference.name in _LEADING_MEASURES:
            tier = 0
        elif part == "findings":
            tier = 1
        share = 0.0
        if change is not None and not isinstance(before, str) and not isinstance(after, str):
            whole = max(abs(before or 0.0), abs(after or 0.0))
            if part in Structure._fields:
                whole = max(whole, sums[part])
            if whole:
                share = abs(change) / whole
        return part not in _OUTCOMES, tier, -share

    listed = [
        difference
        for difference in differences
        if difference.part != "costs" or (difference.before, difference.after) not in measured
    ]
    return sorted(listed, key=order)


def _stated(
    part: str, first: Mapping[str, float | None], second: Mapping[str, float | None], units: Mapping[str, str]
) -> Iterator[Difference]:
    for name in sorted({*first, *second}):
        before, after = first.get(name), second.get(name)
        if _differ(before, after):
            yield Difference(part, name, before, after, units.get(name, ""))


def _measure_differences(first: TraceView, second: TraceView) -> Iterator[Difference]:
    old, new = measure(first), measure(second)
    time_units = {"step" if trace.clock.unit is Unit.STEP else "s" for trace in (first.trace, second.trace)}
    for name, definition in DEFINITIONS.items():
        before, after = old[name], new[name]
        unit = "/".join(sorted(time_units)) if definition.unit == "s" else definition.unit
        if definition.unit == "s" and len(time_units) > 1:
            continue
        are_lower_bounds = before.at_least is not None, after.at_least is not None
        old_value, new_value = (side.value if side.at_least is None else side.at_least for side in (before, after))
        if _differ(old_value, new_value) or are_lower_bounds[0] is not are_lower_bounds[1]:
            reason = ""
            if old_value is None:
                reason = before.reason
            elif new_value is None:
                reason = after.reason
            yield Difference("measures", name, old_value, new_value, unit, reason, are_lower_bounds)
        if before.if_waiting is None and after.if_waiting is None:
            continue
        old_value, new_value = (side.value if side.if_waiting is None else side.if_waiting for side in (before, after))
        if _differ(old_value, new_value):
            reason = before.reason or after.reason
            yield Difference("measures", f"{name}_if_waiting", old_value, new_value, unit, reason)


def _finding_differences(first: TraceView, second: TraceView) -> Iterator[Difference]:
    """Yield the differences in count and cost of the findings of each kind."""
    all_findings = [find(view).findings for view in (first, second)]
    for kind in FindingKind:
        sides = [[finding for finding in findings if finding.kind is kind] for findings in all_findings]
        before, after = (sum(finding.number for finding in side) for side in sides)
        if before != after:
            yield Difference("findings", kind.value, before, after, _FINDING_NOUNS[kind])
        costs = [
            cost(view, {event for finding in side for event in finding.cost_events})
            for view, side in zip((first, second), sides, strict=True)
        ]
        if kind is FindingKind.IDLE_LEAD:
            costs = [(sum(finding.seconds or 0.0 for finding in side), None) for side in sides]
        (seconds, tokens), (later_seconds, later_tokens) = costs
        if _differ(seconds or 0.0, later_seconds or 0.0):
            yield Difference("findings", f"{kind.value}_seconds", seconds or 0.0, later_seconds or 0.0, "s")
        if _differ(tokens or 0.0, later_tokens or 0.0):
            yield Difference("findings", f"{kind.value}_tokens", tokens or 0.0, later_tokens or 0.0, "token")


def _structure_differences(
    first: TraceView, second: TraceView, names: Sequence[Mapping[str, str]]
) -> Iterator[Difference]:
    old, new = structure(first, names[0]), structure(second, names[1])
    for part in Structure._fields:
        before, after = getattr(old, part), getattr(new, part)
        for name in sorted(before | after):
            if before[name] != after[name]:
                yield Difference(part, name, before[name], after[name], _STRUCTURE_NOUNS.get(part, "event"))


def _declared(first: Trace, second: Trace) -> Iterator[Difference]:
    """Yield the differences in the words that describe a run: system, topology and clock unit."""
    for name, before, after in (
        ("system", first.system, second.system),
        ("topology", first.topology.value, second.topology.value),
        ("clock unit", first.clock.unit.value, second.clock.unit.value),
    ):
        if before != after:
            yield Difference("declared", name, before or None, after or None)


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(before - after) > 1e-9 * max(1.0, abs(before))
