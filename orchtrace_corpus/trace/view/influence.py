"""The events that untrusted content could have influenced, and the calls with side effects among them.

Two closures over the graph. By edges alone: the untrusted events and what content edges lead to from them. In
context: the same, and every later event of an agent that has read any of it, because what was read stays in its
context (FIDES, arXiv 2505.23643, joins the label of each tool result to all that follows). Neither passes through
a human intervention or a safety event. Exposure is not compromise: whether untrusted content did change anything,
a trace does not say. `trusted: true` says where content comes from, so it cleans nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.events import acting_tools
from orchtrace_corpus.trace.model.terms import AgentKind, DecidedBy, EdgeType, EventType, GateDecision, Status
from orchtrace_corpus.trace.view.graph import Graph

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Trace

READ_ONLY_TOOLS = frozenset(
    {
        "askuserquestion", "ask_user", "bashoutput", "enterplanmode", "exitplanmode", "request_user_input", "skill",
        "taskoutput", "tasklist", "toolsearch", "wait",
        "glob", "grep", "ls", "list", "list_directory", "notebookread", "open", "read", "read_file", "read_many_files",
        "search", "search_file_content", "thinking", "todoread", "todowrite", "update_plan", "view", "view_image",
        "web_fetch", "web_search", "webfetch", "websearch", "google_web_search",
    }
)  # fmt: skip
"""Tools without side effects, in lower case: every other tool counts as effectful unless the trace names those that
are. CaMeL (arXiv 2503.18813) and MCP's `readOnlyHint`, false by default, decide in the same way."""

CONTENT_EDGES = frozenset(EdgeType) - {EdgeType.TEMPORAL, EdgeType.SAFETY}
"""The types of edges along which content goes: not the order alone, and not a question to a gate."""

REFUSALS = frozenset({"hook", "forbidden", "refusal", "rejected"})
"""The error types of a result whose call was refused, not executed."""

FORMATS_WITH_APPROVALS = frozenset({"codex", "copilot_cli", "inspect_ai"})
"""The formats of logs that record granted approvals; of others, a missing approval says nothing."""

_GATES = frozenset({EventType.HUMAN, EventType.SAFETY})
_NOT_CONTENT = _GATES | {EventType.DESPAWN, EventType.STOP}


class Outcome(StrEnum):
    """The outcome of the gate of a call."""

    APPROVED = "approved"
    PASSED = "passed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class EffectfulCall(NamedTuple):
    """A call of a tool with side effects.

    Attributes:
        number: The number of its event.
        executed: Whether it was executed; None where the trace has no result of it.
        gates: The numbers of the human interventions and safety events that it was put to: what `safety_flow` edges
            lead to from it, the person whom the call itself asked, and a gate that led to it.
        outcome: The outcome of these gates; `UNKNOWN` where there is none or they do not say.
    """

    number: int
    executed: bool | None
    gates: tuple[int, ...]
    outcome: Outcome


class Influence(NamedTuple):
    """The events of a trace that untrusted content could have reached.

    Attributes:
        sources: The numbers of the untrusted events.
        by_edges: The numbers of the events that content edges reach from them, these included.
        in_context: The numbers of the same and of all later events of the agents that were reached.
        depths: The fewest changes of agent along content edges from a source to each agent reached.
        distances: The fewest content edges and steps of one agent from a source to each event in context.
        changes: The fewest changes of agent on such a way.
        members: The agents that act and are neither people nor tools.
    """

    sources: frozenset[int]
    by_edges: frozenset[int]
    in_context: frozenset[int]
    depths: dict[str, int]
    distances: dict[int, int]
    changes: dict[int, int]
    members: frozenset[str]


def influence(trace: Trace, of: Graph, sequence: list[int], further: Iterable[int] = ()) -> Influence:
    """Follow untrusted content through a trace.

    Args:
        trace: The trace.
        of: Its graph.
        sequence: The numbers of its events in an order that edges respect.
        further: The numbers of events that count as untrusted, too.
    """
    events = of.events
    outgoing: list[list[int]] = [[] for _ in events]
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        if edge.type in CONTENT_EDGES:
            outgoing[source].append(target)
    sources = untrusted_events(events).union(further)
    blocked = frozenset(number for number, event in enumerate(events) if event.type in _GATES)
    by_edges = frozenset(_distances(sources, outgoing, blocked))
    following = _next_of_agent(of, sequence, blocked)
    in_context_links = [[*outgoing[index], *following.get(index, ())] for index in range(len(events))]
    distances = _distances(sources, in_context_links, blocked)
    changes = _fewest_changes(sources, in_context_links, blocked, of.agents)
    depths: dict[str, int] = {}
    for number, changed in _fewest_changes(sources, outgoing, blocked, of.agents).items():
        agent = of.agents[number]
        depths[agent] = min(depths.get(agent, changed), changed)
    members = _members(trace)
    return Influence(
        sources,
        by_edges,
        frozenset(distances),
        {agent: depth for agent, depth in depths.items() if agent in members},
        distances,
        changes,
        members,
    )


def untrusted_events(events: Sequence[Event]) -> frozenset[int]:
    """Return the numbers of the events whose content is not trusted; copied context and warm-ups are no sources."""
    return frozenset(
        index
        for index, event in enumerate(events)
        if event.trusted is False and not (event.copied_context or event.warm_up)
    )


def is_content(event: Event) -> bool:
    """Return True if an event carries content: it is no gate, despawn or stop."""
    return event.type not in _NOT_CONTENT


def is_effectful(trace: Trace, tool: str) -> bool:
    """Return True if calls of a tool count as having side effects: named by the trace, else not known as read-only."""
    if isinstance(trace.effectful_tools, tuple):  # an empty one says that none is
        return tool in trace.effectful_tools
    return bool(tool) and tool.lower() not in READ_ONLY_TOOLS


def records_approvals(trace: Trace) -> bool:
    """Return True if a trace would show a granted approval: it was made by hand, or its format logs approvals."""
    formats = {event.source.format for event in trace.events if event.source and event.source.format}
    return formats <= FORMATS_WITH_APPROVALS


def _distances(sources: Iterable[int], links: list[list[int]], blocked: frozenset[int]) -> dict[int, int]:
    """Return the fewest links from any source to each event that is reached, sources included."""
    distances = dict.fromkeys(sources, 0)
    queue = deque(distances)
    while queue:
        index = queue.popleft()
        for target in links[index]:
            if target not in distances and target not in blocked:
                distances[target] = distances[index] + 1
                queue.append(target)
    return distances


def _fewest_changes(
    sources: Iterable[int], links: list[list[int]], blocked: frozenset[int], agents: list[str]
) -> dict[int, int]:
    """Return the fewest links between different agents from any source to each event that is reached."""
    changes = dict.fromkeys(sources, 0)
    queue = deque(changes)
    while queue:
        index = queue.popleft()
        for target in links[index]:
            if target in blocked:
                continue
            changed = changes[index] + (agents[target] != agents[index])
            if target not in changes or changed < changes[target]:
                changes[target] = changed
                if changed > changes[index]:
                    queue.append(target)
                else:
                    queue.appendleft(target)
    return changes


def _next_of_agent(of: Graph, sequence: list[int], blocked: frozenset[int]) -> dict[int, tuple[int]]:
    """Return the next event of the same agent after each event; gates are passed over."""
    following: dict[int, tuple[int]] = {}
    latest: dict[str, int] = {}
    for index in sequence:
        if index in blocked:
            continue
        agent = of.agents[index]
        if agent in latest:
            following[latest[agent]] = (index,)
        latest[agent] = index
    return following


def _members(trace: Trace) -> frozenset[str]:
    """Return the agents that act and are neither people nor tools; a gate that only guards is none, either."""
    acting = {event.agent for event in trace.events if is_content(event)}
    people = {agent.id for agent in trace.agents if agent.kind is AgentKind.HUMAN}
    return frozenset(acting - people - acting_tools(trace))


def effectful_calls(trace: Trace, of: Graph) -> tuple[EffectfulCall, ...]:
    """Return the calls with side effects, each with its gates and what became of it."""
    indices = [n for n in of.of_type.get(EventType.TOOL_CALL, ()) if is_effectful(trace, of.events[n].tool)]
    if not indices:
        return ()
    asked: dict[int, list[int]] = {}
    results = {
        of.events[index].call_id: of.events[index]
        for index in of.of_type.get(EventType.TOOL_RESULT, ())
        if of.events[index].call_id
    }
    joined: dict[int, Event] = {}
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        before, after = of.events[source].type, of.events[target].type
        if edge.type is EdgeType.SAFETY or (before is EventType.TOOL_CALL and after is EventType.HUMAN):
            asked.setdefault(source, []).append(target)
        elif before in _GATES and after is EventType.TOOL_CALL:
            asked.setdefault(target, []).append(source)
        elif after is EventType.TOOL_RESULT:
            joined[source] = of.events[target]
    calls = []
    for index in indices:
        call = of.events[index]
        if call.copied_context:
            continue
        result = results.get(call.call_id) if call.call_id else joined.get(index)
        executed = None if result is None else not _is_refused(result)
        gates = tuple(sorted(_reach(index, asked, of)))
        outcome = _outcome([of.events[gate] for gate in gates], executed)
        calls.append(EffectfulCall(index, executed, gates, outcome))
    return tuple(calls)


def _reach(call: int, asked: Mapping[int, Sequence[int]], of: Graph) -> set[int]:
    """Return the gates that `safety_flow` edges lead to from a call."""
    gates: set[int] = set()
    queue = [call]
    while queue:
        for target in asked.get(queue.pop(), ()):
            if target not in gates and of.events[target].type in _GATES:
                gates.add(target)
                queue.append(target)
    return gates


def _is_refused(event: Event) -> bool:
    return event.status is Status.CANCELLED or event.error_type in REFUSALS


def _outcome(gates: list[Event], executed: bool | None) -> Outcome:
    """Return what the gates of a call decided: as they state it, else as their status and the result show."""
    if any(_says_no(gate) for gate in gates):
        return Outcome.REFUSED
    if executed is False:
        return Outcome.REFUSED if gates else Outcome.UNKNOWN
    if executed is None or not gates:
        return Outcome.UNKNOWN
    if any(_is_person(gate) for gate in gates):
        return Outcome.APPROVED
    if all(gate.status is Status.OK or gate.decision in _YES for gate in gates):
        return Outcome.PASSED
    return Outcome.UNKNOWN


_YES = frozenset({GateDecision.APPROVE, GateDecision.MODIFY})
_NO = frozenset({GateDecision.REJECT, GateDecision.TERMINATE})


def _says_no(gate: Event) -> bool:
    if gate.decision is not GateDecision.UNKNOWN:
        return gate.decision in _NO
    return gate.status in (Status.CANCELLED, Status.ERROR)


def _is_person(gate: Event) -> bool:
    if gate.decided_by is not DecidedBy.UNKNOWN:
        return gate.decided_by is DecidedBy.PERSON and gate.decision is not GateDecision.ESCALATE
    return gate.type is EventType.HUMAN
