"""Two runs of one task side by side: agents, structure, tools, figures."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from orchtrace_corpus.trace.graph import graph
from orchtrace_corpus.trace.label import labels
from orchtrace_corpus.trace.lives import lives
from orchtrace_corpus.trace.measures import DEFINITIONS, Measure, measure
from orchtrace_corpus.trace.model import Event, EventType, Trace


class Structure(NamedTuple):
    """The structure of a run, without ids and times, which differ between any two runs.

    Attributes:
        agents: Each agent with the nearest few above it, such as `lead/manager/w1`, with its number of events.
        events: Events by type.
        edges: Edges by type.
        tools: Tool calls by tool.
        decisions: Events by sub-decision.
        handovers: Spawns, messages and returns by sender and receiver.
    """

    agents: Counter[str]
    events: Counter[str]
    edges: Counter[str]
    tools: Counter[str]
    decisions: Counter[str]
    handovers: Counter[str]


class Difference(NamedTuple):
    """One line of a comparison: a count or a figure that is not the same in both runs.

    Attributes:
        part: Which counter or `measures`.
        name: What is counted or measured.
        before: In the first run; None where it is not known.
        after: In the second run.
    """

    part: str
    name: str
    before: float | None
    after: float | None


_MOST_NAMED = 8
_HANDED = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.RETURN})


def structure(trace: Trace) -> Structure:
    """The structure of a run."""
    parents = lives(trace, graph(trace)).parents
    agents: Counter[str] = Counter()
    for agent, number in Counter(event.agent for event in trace.events).items():
        agents[_lineage(agent, parents)] += number
    return Structure(
        agents,
        Counter(event.type.value for event in trace.events),
        Counter(edge.type.value for edge in trace.edges),
        Counter(event.tool or "(unnamed)" for event in trace.events if event.type is EventType.TOOL_CALL),
        Counter(one.decision.value for one in labels(trace)),
        Counter(_handover(event) for event in trace.events if event.type in _HANDED and event.target),
    )


def _lineage(agent: str, parents: Mapping[str, str]) -> str:
    names = [agent]
    while names[-1] in parents and len(names) < _MOST_NAMED:
        names.append(parents[names[-1]])
    more = ["…"] if names[-1] in parents else []
    return "/".join((*more, *reversed(names)))


def _handover(event: Event) -> str:
    return f"{event.type.value} {event.sender or event.agent} -> {event.target}"


def compare(first: Trace, second: Trace) -> list[Difference]:
    """Everything in which the structure and the measures of two runs differ, part by part.

    Raises:
        CycleError: The edges of one of them go round in a circle.
    """
    found: list[Difference] = []
    one, other = structure(first), structure(second)
    for part in Structure._fields:
        before, after = getattr(one, part), getattr(other, part)
        found += [
            Difference(part, name, before[name], after[name])
            for name in sorted(before | after)
            if before[name] != after[name]
        ]
    old, new = measure(first), measure(second)
    found += [
        Difference("measures", name, old[name].value, new[name].value)
        for name in DEFINITIONS
        if _differ(old[name], new[name])
    ]
    return found


def _differ(one: Measure, other: Measure) -> bool:
    if one.value is None or other.value is None:
        return one.value is not other.value
    return abs(one.value - other.value) > 1e-9 * max(1.0, abs(one.value))
