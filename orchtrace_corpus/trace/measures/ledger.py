"""The ledger of tokens and money: who spent what, on which model, in which kind of event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES, Definition, Measure, Run, cite
from orchtrace_corpus.trace.model.events import roles_of, total
from orchtrace_corpus.trace.model.terms import EdgeType, EventType, TokenBasis
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Tokens, Trace

_INCOMPLETE = "the trace may not record all of it"
"""The reason why a sum of tokens or costs is unknown although no answer lacks a figure."""

GROUPINGS = ("agent", "role", "model", "type", "tool")
"""The keys by which a ledger can be grouped."""

KINDS = ("input", "output", "cache_read", "cache_write", "reasoning")
"""The kinds of tokens; `reasoning` is a part of `output`."""

COUNTED_KINDS = KINDS[:4]
"""The kinds that add up to all tokens: all but `reasoning`."""


class Entry(NamedTuple):
    """The spending of one agent, role, model, type of event or tool.

    Attributes:
        name: The agent, role, model, type of event or tool.
        events: The number of its events, without copied ones.
        without_tokens: The number of these events that are model answers without tokens.
        tokens: Tokens by kind; None for a kind that no event states.
        total: The sum of input, output and both cache kinds; None if no event has tokens.
        cost_usd: The sum of the costs that events state; None if no event states one.
        spawned_tokens: For a tool that spawns agents, the tokens of these agents and all below them; None if unknown.
            The entries of the tools that the agents call count the same tokens again.
        spawned_cost_usd: The cost of the same agents.
        at_least: True if the tokens are only a lower bound.
    """

    name: str
    events: int
    without_tokens: int
    tokens: dict[str, float | None]
    total: float | None
    cost_usd: float | None
    spawned_tokens: float | None = None
    spawned_cost_usd: float | None = None
    at_least: bool = False


def ledger(trace: Trace, by: str) -> list[Entry]:
    """Return the entries of a ledger, the largest total first.

    By tool, the tokens and the cost of an answer are divided equally among the tools that it calls. An event without
    a role has the role of its agent. An answer that names no model has the model that is declared for its agent. But
    if other events of that agent name a model, the answer's model is unknown. Unknown roles and models have the empty
    name.

    Args:
        trace: The trace.
        by: One of `GROUPINGS`.
    """
    # Imported late: commands that only list the measures do not need it.
    from orchtrace_corpus.trace.model.import_report import accounts_for_all, lacks_input

    if by == "tool":
        entries = _by_tool(trace)
    else:
        groups: dict[str, list[Event]] = {}
        for name, event in _events_by_name(trace, by):
            groups.setdefault(name, []).append(event)
        entries = [_sum_events(name, events) for name, events in groups.items()]
    if accounts_for_all(trace):
        entries = [entry._replace(at_least=False) for entry in entries]
    elif lacks_input(trace):
        entries = [entry._replace(at_least=entry.at_least or entry.tokens["input"] is None) for entry in entries]
    return sorted(entries, key=lambda entry: (-(entry.total or 0), entry.name))


def _by_tool(trace: Trace) -> list[Entry]:
    """Return the entries by tool. The tokens and cost of an answer are divided equally among the tools that it calls.

    All other tokens and costs belong to the tool that the event names; its name is empty if the event names none.
    """
    tools_by_answer = _tools_called(trace)
    events_by_tool: dict[str, list[Event]] = {}
    shares_by_tool: dict[str, list[tuple[Event, int]]] = {}  # events, and the number of tools that share their tokens
    for event in trace.events:
        if not event.copied_context:
            events_by_tool.setdefault(event.tool, []).append(event)
            tools = tools_by_answer.get(event.id) or [event.tool]
            for tool in tools:
                shares_by_tool.setdefault(tool, []).append((event, len(tools)))
    spawned = _spawned_spending(trace)
    entries = []
    for tool in {**events_by_tool, **shares_by_tool}:
        events = events_by_tool.get(tool, [])
        shares = shares_by_tool.get(tool, [])
        spent = [(event.tokens, sharing) for event, sharing in shares if event.tokens and event.tokens.is_known]
        tokens_by_kind = {}
        for kind in KINDS:
            counts = [(getattr(tokens, kind), sharing) for tokens, sharing in spent]
            tokens_by_kind[kind] = sum_known([count / sharing for count, sharing in counts if count is not None])
        spawned_tokens, spawned_cost = spawned.get(tool, (None, None))
        entries.append(
            Entry(
                name=tool,
                events=len(events),
                without_tokens=_count_without_tokens(events),
                tokens=tokens_by_kind,
                total=sum(total(tokens) / sharing for tokens, sharing in spent) if spent else None,
                cost_usd=sum_known([event.cost_usd / count for event, count in shares if event.cost_usd is not None]),
                spawned_tokens=spawned_tokens,
                spawned_cost_usd=spawned_cost,
                at_least=any(may_have_spent_more(event) for event, _ in shares),
            )
        )
    return entries


_CALLS = (EventType.TOOL_CALL, EventType.SPAWN, EventType.MESSAGE)
"""The types of events that are a call of a tool, if they name a tool."""


def _tools_called(trace: Trace) -> dict[str, list[str]]:
    """Return the tools that each answer calls, by the id of the answer: a causal edge leads from it to each call."""
    tools_by_call = {
        event.id: event.tool
        for event in trace.events
        if event.type is EventType.TOOL_CALL or (event.type in _CALLS and event.tool)
    }
    tools_by_answer: dict[str, list[str]] = {}
    for edge in trace.edges:
        if edge.type is EdgeType.CAUSAL and edge.dst in tools_by_call and edge.src not in tools_by_call:
            tools_by_answer.setdefault(edge.src, []).append(tools_by_call[edge.dst])
    return tools_by_answer


def _spawned_spending(trace: Trace) -> dict[str, tuple[float | None, float | None]]:
    """Return, by tool, the tokens and the cost of the agents that it spawned and of all agents below them."""
    view = TraceView.of(trace)
    events, parents = view.trace.events, view.lifecycle.parents
    spawning_tools = {agent: events[spawns[0]].tool for agent, spawns in view.lifecycle.spawns.items()}
    if not any(spawning_tools.values()):
        return {}
    entries_by_tool: dict[str, list[Entry]] = {}
    for entry in ledger(trace, "agent"):
        agent: str | None = entry.name
        tools = set()  # the tools that spawned the agent and its ancestors
        while agent is not None:
            if tool := spawning_tools.get(agent, ""):
                tools.add(tool)
            agent = parents.get(agent)
        for tool in tools:
            entries_by_tool.setdefault(tool, []).append(entry)
    spending = {}
    for tool, entries in entries_by_tool.items():
        tokens = sum_known(entry.total for entry in entries)
        spending[tool] = (tokens, sum_known(entry.cost_usd for entry in entries))
    return spending


def cost_by_tool(trace: Trace) -> tuple[tuple[str, float], ...]:
    """Return the cost of the tools that models called, in US dollars, highest first; empty if no event has a cost.

    The cost of an answer is divided equally among the calls, spawns and messages to which an edge leads from it. The
    cost of any other event counts for the tool that it names; the name is empty if it names none.
    """
    events_with_cost = [event for event in trace.events if event.cost_usd is not None and not event.copied_context]
    if not events_with_cost:
        return ()
    tools_by_answer = _tools_called(trace)
    costs: dict[str, float] = {}
    for event in events_with_cost:
        tools = tools_by_answer.get(event.id) or [event.tool]
        for tool in tools:
            costs[tool] = costs.get(tool, 0.0) + (event.cost_usd or 0.0) / len(tools)
    return tuple(sorted(costs.items(), key=lambda item: (-item[1], item[0])))


def leading_model(trace: Trace) -> str:
    """Return the model with the most tokens; empty if no model is named."""
    if trace.agents:
        names = {name for name, _ in _events_by_name(trace, "model") if name}
    else:
        names = {event.model for event in trace.events if event.model and not event.copied_context}
    if not names:
        return ""
    if len(names) == 1:
        return names.pop()
    by_tokens = [entry.name for entry in ledger(trace, "model") if entry.name]
    return by_tokens[0]


def declared_models(trace: Trace) -> dict[str, str]:
    """Return the declared model of each agent whose events name no model."""
    with_model = {event.agent for event in trace.events if event.model}
    return {agent.id: agent.model for agent in trace.agents if agent.id not in with_model}


def _events_by_name(trace: Trace, by: str) -> Iterator[tuple[str, Event]]:
    """Yield, for each event that is not copied, the name of the ledger's entry that counts it, and the event."""
    names_by_agent: Mapping[str, str] = {}  # for events that have no role or model of their own
    if by == "role":
        names_by_agent = roles_of(trace)
    elif by == "model":
        names_by_agent = declared_models(trace)
    name_of = attrgetter(by)
    for event in trace.events:
        if not event.copied_context:
            name = name_of(event)
            if not name and (by == "role" or event.type in ANSWER_TYPES):
                name = names_by_agent.get(event.agent, "")
            yield str(name), event


def spent_by_agent(trace: Trace) -> dict[str, list[float | None]]:
    """Return a list of figures for each agent: its tokens in the order of `KINDS`, then its stated cost.

    Copied events do not count. An unknown figure is None.
    """
    tokens_by_agent: defaultdict[str, list[Tokens]] = defaultdict(list)
    costs_by_agent: defaultdict[str, list[float]] = defaultdict(list)
    for event in trace.events:
        if not event.copied_context:
            if event.tokens:
                tokens_by_agent[event.agent].append(event.tokens)
            if event.cost_usd is not None:
                costs_by_agent[event.agent].append(event.cost_usd)
    figures: dict[str, list[float | None]] = {}
    for agent in {**tokens_by_agent, **costs_by_agent}:
        spent = [tokens for tokens in tokens_by_agent[agent] if tokens.is_known]
        figures[agent] = [sum_known([getattr(tokens, kind) for tokens in spent]) for kind in KINDS]
        figures[agent].append(sum_known(costs_by_agent[agent]))
    return figures


def _sum_events(name: str, events: list[Event]) -> Entry:
    """Return the entry of some events."""
    spent = [event.tokens for event in events if event.tokens and event.tokens.is_known]
    return Entry(
        name=name,
        events=len(events),
        without_tokens=_count_without_tokens(events),
        tokens={kind: sum_known([getattr(tokens, kind) for tokens in spent]) for kind in KINDS},
        total=float(sum(map(total, spent))) if spent else None,
        cost_usd=sum_known([event.cost_usd for event in events]),
        at_least=any(map(may_have_spent_more, events)),
    )


def _count_without_tokens(events: Iterable[Event]) -> int:
    """Return how many of the events are model answers without known tokens."""
    return sum(event.type in ANSWER_TYPES and not (event.tokens and event.tokens.is_known) for event in events)


def may_have_spent_more(event: Event) -> bool:
    """Return True if an event is a model answer whose tokens are unknown or only a placeholder."""
    is_known = bool(event.tokens and event.tokens.is_known)
    return event.token_basis is TokenBasis.PLACEHOLDER or (event.type in ANSWER_TYPES and not is_known)


def sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def tokens(run: Run) -> Measure:
    """All tokens of the events, each counted once."""
    from orchtrace_corpus.trace.model.import_report import accounts_for_all, has_all_tokens

    missing: list[int] = []
    for kind in ANSWER_TYPES & run.spending.keys():
        missing += run.spending[kind].missing
    with_tokens = [spending for spending in run.spending.values() if spending.events > len(spending.missing)]
    known = sum_known(spending.tokens for spending in with_tokens)
    if missing and not accounts_for_all(run.trace):
        subject = "1 inference has" if len(missing) == 1 else f"{len(missing)} inferences have"
        return Measure(None, f"{subject} no tokens: {cite(run.trace, sorted(missing))}", at_least=known)
    if known is None:
        return Measure(None, "no event has tokens")
    if not has_all_tokens(run.trace):
        return Measure(None, _INCOMPLETE, at_least=known)
    return Measure(known)


def cost(run: Run) -> Measure:
    """The sum of the costs that events state; unknown if a model answer states none."""
    from orchtrace_corpus.trace.model.import_report import has_all_costs

    events = run.trace.events
    stated = sum_known([event.cost_usd for event in events if not event.copied_context])
    if stated is None:
        return Measure(None, "no event has a cost")
    answers = [index for index in run.times.graph.indices_of(ANSWER_TYPES) if not events[index].copied_context]
    without_cost = sorted(index for index in answers if events[index].cost_usd is None)
    if without_cost:
        reason = f"{len(without_cost)} of {len(answers)} inferences state no cost: {cite(run.trace, without_cost)}"
        return Measure(None, reason, at_least=stated)
    if not has_all_costs(run.trace):
        return Measure(None, _INCOMPLETE, at_least=stated)
    return Measure(stated)


DEFINITIONS = (
    Definition(
        "tokens", "token", "input + output + cache_read + cache_write over all events", "ours", tokens, is_bounded=True
    ),
    Definition("cost", "usd", "sum of cost_usd over all events", "ours", cost, is_bounded=True),
)
