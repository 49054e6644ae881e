"""Compares two runs of one task in their results, costs, measures, findings and structure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.labels import labels
from orchtrace_corpus.trace.diagnosis.findings import FindingKind, TeamFinding, find, time_and_tokens
from orchtrace_corpus.trace.measures.definitions import DEFINITIONS, measure
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.terms import EventType, Unit
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView


class Structure(NamedTuple):
    """The structure of a run as counts, without ids and times, which differ between any two runs.

    Attributes:
        agents: The number of events by agent; an agent is named with its nearest ancestors, such as `lead/manager/w1`.
        tools: The number of calls by tool.
        models: The number of events by model: the model that an event names, or else, for a model answer, the model
            that its agent declares.
        statuses: The number of events by status.
        decisions: The number of events by orchestration decision.
        events: The number of events by type.
        edges: The number of edges by type.
        handovers: The number of spawns, messages and returns by sender and receiver.
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
    """A figure, a count or a word that differs between two runs.

    Attributes:
        part: `rewards`, `metrics`, `costs`, `measures`, `findings`, a field of `Structure`, or `declared`.
        name: The name of the figure, count or word.
        before: The value in the first run; None if it is unknown.
        after: The value in the second run; None if it is unknown.
        unit: The unit of the numbers; empty for words and for figures without a known unit.
        reason: The reason why a measure is unknown in a run; empty if both are known.
        are_lower_bounds: For each run, True if the value is only a lower bound.
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
        """The value `after` less `before`; None if either is unknown, a lower bound or a word."""
        if isinstance(self.before, str) or isinstance(self.after, str):
            return None
        if self.before is None or self.after is None or any(self.are_lower_bounds):
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
_HANDOVER_TYPES = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.RETURN})
_MAX_PATH_AGENTS = 8


def structure(trace: Trace | TraceView, names: Mapping[str, str] = MappingProxyType({})) -> Structure:
    """Return the structure of a run.

    Args:
        trace: The run.
        names: The names of agents by id; an agent without a name is shown by its id.
    """
    view = TraceView.of(trace)
    trace, parents = view.trace, view.lifecycle.parents
    model_by_agent = {agent.id: agent.model for agent in trace.agents}
    agents: Counter[str] = Counter()
    for agent, count in Counter(event.agent for event in trace.events).items():
        agents[_path_from_root(agent, parents, names)] += count
    models: Counter[str] = Counter()
    for event in trace.events:
        model = event.model
        if not model and event.type in ANSWER_TYPES:
            model = model_by_agent.get(event.agent, "")
        if model:
            models[model] += 1
    handovers: Counter[str] = Counter()
    for event in trace.events:
        if event.type in _HANDOVER_TYPES and event.target:
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
    """Return the names of an agent's nearest ancestors and of the agent, such as `lead/manager/w1`."""
    path = [agent]  # from the agent upwards
    while path[-1] in parents and len(path) < _MAX_PATH_AGENTS:
        path.append(parents[path[-1]])
    path_names = [names.get(agent_id, agent_id) for agent_id in reversed(path)]
    if path[-1] in parents:
        path_names.insert(0, "…")
    return "/".join(path_names)


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
        CycleError: The edges of a run form a cycle.
    """
    first_view, second_view = TraceView.of(first), TraceView.of(second)
    old, new = first_view.trace, second_view.trace
    reward_units = dict.fromkeys((*old.rewards, *new.rewards), "reward")
    measures = list(_measure_differences(first_view, second_view))
    measure_names = {difference.name for difference in measures}
    costs = [
        difference
        for difference in _stated_differences("costs", old.costs, new.costs, _COST_UNITS)
        # If only one run states a cost, the measure of the same name says more.
        if difference.change is not None or difference.name not in measure_names
    ]
    return [
        *_stated_differences("rewards", old.rewards, new.rewards, reward_units),
        *_stated_differences("metrics", old.metrics, new.metrics, units={}),
        *costs,
        *measures,
        *_finding_differences(first_view, second_view),
        *_structure_differences(first_view, second_view, names),
        *_declared_differences(old, new),
    ]


_OUTCOME_PARTS = ("rewards", "metrics")
_LEADING_MEASURES = frozenset(("elapsed", "tokens", "cost"))


def largest_first(differences: Sequence[Difference]) -> list[Difference]:
    """Sort differences: results; then elapsed time, tokens and cost; then findings; then the others by their change.

    The change of a figure is relative to its larger value. The change of a count in the structure is relative to the
    sum of all changes of its part, so that many small counts do not come before a large one. A cost that is both
    stated and measured is listed once, as the measure.
    """
    change_by_part: dict[str, float] = {}
    for difference in differences:
        part_change = change_by_part.get(difference.part, 0.0)
        change_by_part[difference.part] = part_change + abs(difference.change or 0.0)
    measured = {(difference.before, difference.after) for difference in differences if difference.part == "measures"}

    def order(difference: Difference) -> tuple[bool, int, float]:
        part, before, after, change = difference.part, difference.before, difference.after, difference.change
        rank = 2
        if part == "measures" and difference.name in _LEADING_MEASURES:
            rank = 0
        elif part == "findings":
            rank = 1
        relative_change = 0.0
        if change is not None and not isinstance(before, str) and not isinstance(after, str):
            base = max(abs(before or 0.0), abs(after or 0.0))
            if part in Structure._fields:
                base = max(base, change_by_part[part])
            if base:
                relative_change = abs(change) / base
        return part not in _OUTCOME_PARTS, rank, -relative_change

    listed = []
    for difference in differences:
        is_measured = (difference.before, difference.after) in measured
        if difference.part != "costs" or not is_measured:
            listed.append(difference)
    return sorted(listed, key=order)


def _stated_differences(
    part: str, first: Mapping[str, float | None], second: Mapping[str, float | None], units: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield the differences in the figures that the traces state, by name."""
    for name in sorted({*first, *second}):
        before, after = first.get(name), second.get(name)
        if _differ(before, after):
            yield Difference(part, name, before, after, units.get(name, ""))


def _measure_differences(first: TraceView, second: TraceView) -> Iterator[Difference]:
    """Yield the differences in measures: in their values or lower bounds, then in their values if open calls waited."""
    old_measures, new_measures = measure(first), measure(second)
    time_units = {"step" if trace.clock.unit is Unit.STEP else "s" for trace in (first.trace, second.trace)}
    for name, definition in DEFINITIONS.items():
        unit = definition.unit
        if unit == "s":
            if len(time_units) > 1:
                continue
            (unit,) = time_units
        before, after = old_measures[name], new_measures[name]
        old_value = before.value if before.at_least is None else before.at_least
        new_value = after.value if after.at_least is None else after.at_least
        are_lower_bounds = before.at_least is not None, after.at_least is not None
        if _differ(old_value, new_value) or are_lower_bounds[0] is not are_lower_bounds[1]:
            reason = ""
            if old_value is None:
                reason = before.reason
            elif new_value is None:
                reason = after.reason
            yield Difference("measures", name, old_value, new_value, unit, reason, are_lower_bounds)
        if before.if_waiting is None and after.if_waiting is None:
            continue
        old_value = before.value if before.if_waiting is None else before.if_waiting
        new_value = after.value if after.if_waiting is None else after.if_waiting
        if _differ(old_value, new_value):
            reason = before.reason or after.reason
            yield Difference("measures", f"{name}_if_waiting", old_value, new_value, unit, reason)


def _finding_differences(first: TraceView, second: TraceView) -> Iterator[Difference]:
    """Yield the differences in number and cost of the findings of each kind."""
    old_findings, new_findings = find(first).findings, find(second).findings
    for kind in FindingKind:
        old = [finding for finding in old_findings if finding.kind is kind]
        new = [finding for finding in new_findings if finding.kind is kind]
        before = sum(finding.problem_count for finding in old)
        after = sum(finding.problem_count for finding in new)
        if before != after:
            yield Difference("findings", kind.value, before, after, _FINDING_NOUNS[kind])
        old_seconds, old_tokens = _total_cost(first, kind, old)
        new_seconds, new_tokens = _total_cost(second, kind, new)
        if _differ(old_seconds, new_seconds):
            yield Difference("findings", f"{kind.value}_seconds", old_seconds, new_seconds, "s")
        if _differ(old_tokens, new_tokens):
            yield Difference("findings", f"{kind.value}_tokens", old_tokens, new_tokens, "token")


def _total_cost(view: TraceView, kind: FindingKind, findings: Sequence[TeamFinding]) -> tuple[float, float]:
    """Return the time and the tokens that all findings of a kind cost together; 0 for each that is unknown."""
    if kind is FindingKind.IDLE_LEAD:  # idle time has no events
        return sum((finding.seconds or 0.0 for finding in findings), 0.0), 0.0
    events = {event for finding in findings for event in finding.cost_events}  # events of several findings count once
    seconds, tokens = time_and_tokens(view, events)
    return seconds or 0.0, tokens or 0.0


def _structure_differences(
    first: TraceView, second: TraceView, names: Sequence[Mapping[str, str]]
) -> Iterator[Difference]:
    """Yield the differences in the counts of the structure."""
    old, new = structure(first, names[0]), structure(second, names[1])
    for part in Structure._fields:
        before, after = getattr(old, part), getattr(new, part)
        for name in sorted(before | after):
            if before[name] != after[name]:
                yield Difference(part, name, before[name], after[name], _STRUCTURE_NOUNS.get(part, "event"))


def _declared_differences(first: Trace, second: Trace) -> Iterator[Difference]:
    """Yield the differences in the words that describe a run: system, topology and clock unit."""
    for name, before, after in (
        ("system", first.system, second.system),
        ("topology", first.topology.value, second.topology.value),
        ("clock unit", first.clock.unit.value, second.clock.unit.value),
    ):
        if before != after:
            yield Difference("declared", name, before or None, after or None)


def _differ(before: float | None, after: float | None) -> bool:
    """Return True if two figures differ by more than rounding; an unknown figure differs from every known one."""
    if before is None or after is None:
        return before is not after
    return abs(before - after) > 1e-9 * max(1.0, abs(before))
