"""The events that untrusted content could have influenced, and the calls with side effects among them.

There are two closures over the graph. By edges alone: the untrusted events and all events that content edges reach
from them. In context: also every later event of an agent that has read untrusted content, because the content stays
in its context (FIDES, arXiv 2505.23643, joins the label of each tool result to all that follows). Neither closure
passes through a human intervention or a safety event. Exposure is not compromise: a trace does not show whether
untrusted content changed anything. `trusted: true` describes the origin of content and removes no influence.
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
"""Tools without side effects, in lower case. Every other tool counts as having some, unless the trace names its
effectful tools. CaMeL (arXiv 2503.18813) and MCP's `readOnlyHint`, false by default, decide in the same way."""

CONTENT_EDGES = frozenset(EdgeType) - {EdgeType.TEMPORAL, EdgeType.SAFETY}
"""The types of edges that carry content: all but mere order and questions to a gate."""

REFUSALS = frozenset({"hook", "forbidden", "refusal", "rejected"})
"""The error types of a result whose call was refused, not executed."""

FORMATS_WITH_APPROVALS = frozenset({"codex", "copilot_cli", "inspect_ai"})
"""The log formats that record granted approvals. In others, a missing approval means nothing."""

_GATES = frozenset({EventType.HUMAN, EventType.SAFETY})
_NOT_CONTENT = _GATES | {EventType.DESPAWN, EventType.STOP}


class Outcome(StrEnum):
    """The decision of the gates of a call: approved by a person, passed by a guard, refused, or unknown."""

    APPROVED = "approved"
    PASSED = "passed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class EffectfulCall(NamedTuple):
    """A call of a tool with side effects.

    Attributes:
        event: The index of the call's event.
        executed: Whether it was executed; None if the trace has no result of it.
        gates: The indices of the human interventions and safety events that decided about it: those that
            `safety_flow` edges reach from it, the person whom the call itself asked, and a gate that led to it.
        outcome: The decision of these gates; `UNKNOWN` if there is none or they do not say.
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
        in_context: The indices of these events and of all later events of the agents reached.
        depths: For each agent reached, the fewest changes of agent along content edges from a source.
        distances: For each event in context, the fewest links from a source; a link is a content edge, or leads from
            an event to its agent's next one.
        changes: For each event in context, the fewest changes of agent along such links.
        members: The agents that act and are neither people nor tools.
    """

    sources: frozenset[int]
    by_edges: frozenset[int]
    in_context: frozenset[int]
    depths: dict[str, int]
    distances: dict[int, int]
    changes: dict[int, int]
    members: frozenset[str]


def influence(trace: Trace, graph: Graph, sequence: list[int], further: Iterable[int] = ()) -> Influence:
    """Follow untrusted content through a trace, by its graph and an order in which every edge leads forward.

    The indices in `further` are events that count as untrusted, too.
    """
    events = graph.events
    outgoing: list[list[int]] = [[] for _ in events]
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if edge.type in CONTENT_EDGES:
            outgoing[source].append(target)
    sources = untrusted_events(events).union(further)
    gates = frozenset(index for index, event in enumerate(events) if event.type in _GATES)
    by_edges = frozenset(_distances(sources, outgoing, gates))
    links = [list(targets) for targets in outgoing]
    latest: dict[str, int] = {}  # the last event of each agent so far
    for index in sequence:
        if index in gates:
            continue
        agent = graph.agents[index]
        if agent in latest:
            links[latest[agent]].append(index)
        latest[agent] = index
    distances = _distances(sources, links, gates)
    changes = _fewest_changes(sources, links, gates, graph.agents)
    depths: dict[str, int] = {}
    for index, changed in _fewest_changes(sources, outgoing, gates, graph.agents).items():
        agent = graph.agents[index]
        depths[agent] = min(depths.get(agent, changed), changed)
    people = {agent.id for agent in trace.agents if agent.kind is AgentKind.HUMAN}
    # Gates carry no content, so an agent that only guards is no member either.
    members = frozenset({event.agent for event in events if is_content(event)} - people - acting_tools(trace))
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
    """Return the indices of the events with untrusted content, without copied context and warm-ups."""
    return frozenset(
        index
        for index, event in enumerate(events)
        if event.trusted is False and not (event.copied_context or event.warm_up)
    )


def is_content(event: Event) -> bool:
    """Return True if an event carries content: it is no gate, despawn or stop."""
    return event.type not in _NOT_CONTENT


def is_effectful(trace: Trace, tool: str) -> bool:
    """Return True if calls of a tool count as having side effects: the trace names it, or it is not read-only."""
    if isinstance(trace.effectful_tools, tuple):  # an empty tuple means that no tool has any
        return tool in trace.effectful_tools
    return bool(tool) and tool.lower() not in READ_ONLY_TOOLS


def records_approvals(trace: Trace) -> bool:
    """Return True if a trace would show a granted approval: it comes from no log, or its log format records them."""
    formats = {event.source.format for event in trace.events if event.source and event.source.format}
    return formats <= FORMATS_WITH_APPROVALS


def _distances(sources: Iterable[int], links: list[list[int]], gates: frozenset[int]) -> dict[int, int]:
    """Return the fewest links from any source to each event reached, including the sources; gates are not reached."""
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
    """Return the same, counting only links between different agents."""
    changes = dict.fromkeys(sources, 0)
    queue = deque(changes)
    while queue:
        index = queue.popleft()
        for target in links[index]:
            if target in gates:
                continue
            changed = changes[index] + (agents[target] != agents[index])
            if target not in changes or changed < changes[target]:
                changes[target] = changed
                if changed > changes[index]:
                    queue.append(target)
                else:
                    queue.appendleft(target)
    return changes


def effectful_calls(trace: Trace, graph: Graph) -> tuple[EffectfulCall, ...]:
    """Return the calls with side effects, each with its gates and their decision."""
    events = graph.events
    indices = [n for n in graph.indices_by_type.get(EventType.TOOL_CALL, ()) if is_effectful(trace, events[n].tool)]
    if not indices:
        return ()
    results_by_id = {
        events[index].call_id: events[index]
        for index in graph.indices_by_type.get(EventType.TOOL_RESULT, ())
        if events[index].call_id
    }
    results_by_edge: dict[int, Event] = {}
    asked: dict[int, list[int]] = {}  # the events that a call or a gate was put to
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        before, after = events[source].type, events[target].type
        if edge.type is EdgeType.SAFETY or (before is EventType.TOOL_CALL and after is EventType.HUMAN):
            asked.setdefault(source, []).append(target)
        elif before in _GATES and after is EventType.TOOL_CALL:
            asked.setdefault(target, []).append(source)
        elif after is EventType.TOOL_RESULT:
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
    """Return the gates that a call was put to, directly or by another gate."""
    gates: set[int] = set()
    queue = [call]
    while queue:
        for target in asked.get(queue.pop(), ()):
            if target not in gates and events[target].type in _GATES:
                gates.add(target)
                queue.append(target)
    return tuple(sorted(gates))


def _outcome(gates: list[Event], executed: bool | None) -> Outcome:
    """Return the decision of the gates of a call: as they state it, else as their status and the call's result show."""
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
