"""What credit can be assigned to: the parts of a trace by credit unit."""

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model.trace import CREDIT_UNITS, EventType, Trace, roles_of
from orchtrace_corpus.trace.view.graph import graph
from orchtrace_corpus.trace.view.lifecycle import lives

_DECISIONS = frozenset({EventType.SPAWN, EventType.DECISION, EventType.AGGREGATE, EventType.STOP, EventType.DESPAWN})


def parts(trace: Trace, unit: str) -> dict[str, list[int]]:
    """The parts of a trace, each with the numbers of its events, in the order in which they first act.

    A turn is a step and is named by its event, as are a message and a tool call. The unit `orchestrator` is
    the orchestration decisions of each agent that spawns, delegates or merges; `team` is all events together.
    Of the unit `token` the parts are the turns: a trace has no single tokens, so those of a turn share its credit.

    Raises:
        CommandUseError: There is no such unit, or the trace has no part of it.
    """
    if unit not in CREDIT_UNITS:
        raise CommandUseError(f"there is no credit unit {quote(unit)}{suggestion(unit, CREDIT_UNITS)}")
    found = parts_if_any(trace, unit)
    if not found:
        raise CommandUseError(
            f"the trace {quote(trace.trace_id)} has no {unit} that credit could go to",
            "Try --unit agent, or --unit team.",
        )
    return found


def parts_if_any(trace: Trace, unit: str) -> dict[str, list[int]]:
    """The same for a known unit, empty where the trace has no part of it."""
    numbers = range(len(trace.events))
    events = trace.events
    if unit == "team":
        return {"team": list(numbers)}
    if unit in ("token", "turn"):
        return {events[number].id: [number] for number in steps(trace)}
    if unit in ("message", "tool"):
        kind = EventType.MESSAGE if unit == "message" else EventType.TOOL_CALL
        return {events[number].id: [number] for number in numbers if events[number].type is kind}
    found: dict[str, list[int]] = {}
    roles = roles_of(trace)
    above = set(lives(trace, graph(trace)).parents.values())
    for number, event in enumerate(events):
        if unit == "agent":
            found.setdefault(event.agent, []).append(number)
        elif unit == "role" and event.agent in roles:
            found.setdefault(roles[event.agent], []).append(number)
        elif unit == "orchestrator" and event.agent in above and event.type in _DECISIONS:
            found.setdefault(event.agent, []).append(number)
    return found
