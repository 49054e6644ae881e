"""The events that untrusted content could have influenced, and the calls with side effects among them.

Untrusted content is followed in two ways:

- by edges: it influences the untrusted events and all events that content edges reach from them;
- in context: it also influences every later event of an agent that has read it, because it stays in the context of the
  agent. FIDES (arXiv 2505.23643) does the same: all that follows a tool result inherits its label.

In neither way does influence pass through a gate: a human intervention or a safety event. Exposure is not compromise:
a trace does not show whether untrusted content changed anything. `trusted: true` describes the origin of content; it
removes no influence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.annotations import TYPE_CHECKING
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
"""Tools without side effects, in lower case. Every other tool counts as effectful, unless the trace names its effectful
tools. CaMeL (arXiv 2503.18813) decides in the same way, and so does MCP: its `readOnlyHint` is false by default."""

CONTENT_EDGES = frozenset(EdgeType) - {EdgeType.TEMPORAL, EdgeType.SAFETY}
"""The types of edges that carry content. Temporal edges only say the order, and safety edges lead to a gate."""

REFUSALS = frozenset({"hook", "forbidden", "refusal", "rejected"})
"""The error types of a result whose call was refused, not executed."""

FORMATS_WITH_APPROVALS = frozenset({"codex", "copilot_cli", "inspect_ai"})
"""The log formats that record granted approvals. In others, a missing approval means nothing."""

_GATE_TYPES = frozenset({EventType.HUMAN, EventType.SAFETY})
_TYPES_WITHOUT_CONTENT = _GATE_TYPES | {EventType.DESPAWN, EventType.STOP}


class Outcome(StrEnum):
    """The decision of the gates of a call. A person approves, a guard passes, both refuse."""

    APPROVED = "approved"
    PASSED = "passed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class EffectfulCall(NamedTuple):
    """A call of a tool with side effects.

    Attributes:
        event: The index of the call's event.
        executed: True if the call was executed; None if the trace has no result of the call.
        gates: The indices of the human interventions and safety events that decided about the call: those that
            `safety_flow` edges reach from it, the person whom the call itself asked, and gates from which an edge leads
            to the call.
        outcome: The decision of these gates; `UNKNOWN` if there is no gate or the gates do not say.
    """

    event: int
    executed: bool | None
    gates: tuple[int, ...]
    outcome: Outcome


class Influence(NamedTuple):
    """The events of a trace that untrusted content could have reached.

    Attributes:
        sources: The indices of the untrusted events.
        by_edges: The indices of the events that content edges reach from the sources, including these.
        in_context: The indices of the events in `by_edges` and of all later events of the agents reached.
        depths: For each agent reached, the fewest changes of agent along content edges from a source.
        distances: For each event in `in_context`, the fewest links from a source. A link is a content edge, or leads
            from an event to the next event of the same agent.
        changes: For each event in `in_context`, the fewest changes of agent along links from a source.
        acting_agents: The agents that act and are neither people nor tools.
    """

    sources: frozenset[int]
    by_edges: frozenset[int]
    in_context: frozenset[int]
    depths: dict[str, int]
    distances: dict[int, int]
    changes: dict[int, int]
    acting_agents: frozenset[str]


def influence(trace: Trace, graph: Graph, sequence: list[int], further_sources: Iterable[int] = ()) -> Influence:
    """Follow untrusted content through a trace.

    Args:
        trace: The trace.
        graph: The graph of the trace.
        sequence: The indices of the events in an order in which every edge leads forward.
        further_sources: The indices of events that count as untrusted although they are not marked as untrusted.
    """
    events = graph.events
    outgoing: list[list[int]] = [[] for _ in events]
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if edge.type in CONTENT_EDGES:
            outgoing[source].append(target)
    sources = untrusted_events(events).union(further_sources)
    gates = frozenset(index for index, event in enumerate(events) if event.type in _GATE_TYPES)
    by_edges = frozenset(_distances(sources, outgoing, gates))
    links = [list(targets) for targets in outgoing]  # the edges, and from each event to the next of its agent
    last_events: dict[str, int] = {}  # of each agent so far
    for index in sequence:
        if index in gates:
            continue
        agent = graph.agents[index]
        if agent in last_events:
            links[last_events[agent]].append(index)
        last_events[agent] = index
    distances = _distances(sources, links, gates)
    people = {agent.id for agent in trace.agents if agent.kind is AgentKind.HUMAN}
    # Gates carry no content, so an agent with no events but gates does not act.
    acting_agents = frozenset({event.agent for event in events if is_content(event)} - people - acting_tools(trace))
    depths: dict[str, int] = {}
    for index, changes in _fewest_changes(sources, outgoing, gates, graph.agents).items():
        agent = graph.agents[index]
        if agent in acting_agents:
            depths[agent] = min(depths.get(agent, changes), changes)
    return Influence(
        sources=sources,
        by_edges=by_edges,
        in_context=frozenset(distances),
        depths=depths,
        distances=distances,
        changes=_fewest_changes(sources, links, gates, graph.agents),
        acting_agents=acting_agents,
    )


def untrusted_events(events: Sequence[Event]) -> frozenset[int]:
    """Return the indices of the events with untrusted content, without copied context and warm-ups."""
    return frozenset(
        index
        for index, event in enumerate(events)
        if event.trusted is False and not (event.copied_context or event.warm_up)
    )


def is_content(event: Event) -> bool:
    """Return True if an event carries content: all but gates, despawns and stops do."""
    return event.type not in _TYPES_WITHOUT_CONTENT


def is_effectful(trace: Trace, tool: str) -> bool:
    """Return True if calls of a tool count as having side effects.

    The trace may name the tools with side effects. Otherwise, all tools count that are not known as read-only.
    """
    if isinstance(trace.effectful_tools, tuple):  # an empty tuple says that no tool has side effects
        return tool in trace.effectful_tools
    return bool(tool) and tool.lower() not in READ_ONLY_TOOLS


def records_approvals(trace: Trace) -> bool:
    """Return True if the trace would show granted approvals: its log format records them, or it was not imported."""
    formats = {event.source.format for event in trace.events if event.source and event.source.format}
    return formats <= FORMATS_WITH_APPROVALS


def _distances(sources: Iterable[int], links: list[list[int]], gates: frozenset[int]) -> dict[int, int]:
    """Return, for each event that links reach from a source, the fewest links from a source; a source has 0.

    Gates are not reached, and no way leads through them.
    """
    distances = dict.fromkeys(sources, 0)
    queue = deque(distances)
    while queue:
        index = queue.popleft()
        for target in links[index]:
            if target not in distances and target not in gates:
                distances[target] = distances[index] + 1
                queue.append(target)
    return distances


def _fewest_changes(
    sources: Iterable[int], links: list[list[int]], gates: frozenset[int], agents: list[str]
) -> dict[int, int]:
    """Return the same as `_distances`, but count only the links between different agents."""
    changes = dict.fromkeys(sources, 0)
    queue = deque(changes)  # sorted by the number of changes, so that few events are visited twice
    while queue:
        index = queue.popleft()
        for target in links[index]:
            if target in gates:
                continue
            count = changes[index]
            if agents[target] != agents[index]:
                count += 1
            if target not in changes or count < changes[target]:
                changes[target] = count
                if count > changes[index]:
                    queue.append(target)
                else:
                    queue.appendleft(target)
    return changes


def effectful_calls(trace: Trace, graph: Graph) -> tuple[EffectfulCall, ...]:
    """Return the calls with side effects, each with its gates and their decision."""
    events = graph.events
    tool_calls = graph.indices_by_type.get(EventType.TOOL_CALL, ())
    indices = [index for index in tool_calls if is_effectful(trace, events[index].tool)]
    if not indices:
        return ()
    results = [events[index] for index in graph.indices_by_type.get(EventType.TOOL_RESULT, ())]
    results_by_id = {result.call_id: result for result in results if result.call_id}
    results_by_edge: dict[int, Event] = {}
    asked: dict[int, list[int]] = {}  # for a call, the gates that decided about it; for a gate, the gates that it asked
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        source_type, target_type = events[source].type, events[target].type
        if edge.type is EdgeType.SAFETY or (source_type is EventType.TOOL_CALL and target_type is EventType.HUMAN):
            asked.setdefault(source, []).append(target)
        elif source_type in _GATE_TYPES and target_type is EventType.TOOL_CALL:
            asked.setdefault(target, []).append(source)
        elif target_type is EventType.TOOL_RESULT:
            results_by_edge[source] = events[target]
    calls = []
    for index in indices:
        call = events[index]
        if call.copied_context:
            continue
        result = results_by_id.get(call.call_id) if call.call_id else results_by_edge.get(index)
        executed = None
        if result is not None:
            executed = result.status is not Status.CANCELLED and result.error_type not in REFUSALS
        gates = _gates_of(index, asked, events)
        outcome = _outcome([events[gate] for gate in gates], executed)
        calls.append(EffectfulCall(index, executed, gates, outcome))
    return tuple(calls)


def _gates_of(call: int, asked: Mapping[int, Sequence[int]], events: Sequence[Event]) -> tuple[int, ...]:
    """Return the gates that decided about a call, including gates that were asked by another gate."""
    gates: set[int] = set()
    stack = [call]
    while stack:
        for gate in asked.get(stack.pop(), ()):
            if gate not in gates and events[gate].type in _GATE_TYPES:
                gates.add(gate)
                stack.append(gate)
    return tuple(sorted(gates))


def _outcome(gates: list[Event], executed: bool | None) -> Outcome:
    """Return the decision of the gates of a call: what they state, else what their status and the result show."""
    if any(_refuses(gate) for gate in gates):
        return Outcome.REFUSED
    if executed is False:
        return Outcome.REFUSED if gates else Outcome.UNKNOWN
    if executed is None or not gates:
        return Outcome.UNKNOWN
    if any(_is_decided_by_person(gate) for gate in gates):
        return Outcome.APPROVED
    if all(gate.status is Status.OK or gate.decision in _APPROVALS for gate in gates):
        return Outcome.PASSED
    return Outcome.UNKNOWN


_APPROVALS = frozenset({GateDecision.APPROVE, GateDecision.MODIFY})
_REJECTIONS = frozenset({GateDecision.REJECT, GateDecision.TERMINATE})


def _refuses(gate: Event) -> bool:
    if gate.decision is not GateDecision.UNKNOWN:
        return gate.decision in _REJECTIONS
    return gate.status in (Status.CANCELLED, Status.ERROR)


def _is_decided_by_person(gate: Event) -> bool:
    if gate.decided_by is not DecidedBy.UNKNOWN:
        return gate.decided_by is DecidedBy.PERSON and gate.decision is not GateDecision.ESCALATE
    return gate.type is EventType.HUMAN
