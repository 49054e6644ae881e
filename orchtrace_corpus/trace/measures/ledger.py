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
        events: The number of events, without copied ones.
        without_tokens: The number of inferences, decisions and aggregates among them that have no tokens.
        tokens: Tokens by kind; None for a kind that no event states.
        total: The sum of input, output and both cache kinds; None if no event has tokens.
        cost_usd: The sum of the costs that events state; None if no event states one.
        spawned_tokens: For a tool that spawns agents, the tokens of these agents and all below them; None if unknown.
            The entries of the tools that those agents call include the same tokens.
        spawned_cost_usd: The cost of the agents in `spawned_tokens`.
        at_least: Whether the tokens are only a lower bound.
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

    By tool, the tokens and cost of an answer are divided equally among the tools that it calls. An event without a
    role has the role of its agent. A model answer without a model has the model that its agent declares, unless other
    events of the agent name a model: then its model is unknown. The name of unknown roles and models is empty.

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
        entries = [_entry(name, events) for name, events in groups.items()]
    if accounts_for_all(trace):
        entries = [entry._replace(at_least=False) for entry in entries]
    elif lacks_input(trace):
        entries = [entry._replace(at_least=entry.at_least or entry.tokens["input"] is None) for entry in entries]
    return sorted(entries, key=lambda entry: (-(entry.total or 0), entry.name))


def _by_tool(trace: Trace) -> list[Entry]:
    """Return the entries by tool, the tokens and cost of an answer divided equally among the tools that it calls."""
    called = _tools_called(trace)
    groups: dict[str, list[Event]] = {}
    answers: dict[str, list[tuple[Event, int]]] = {}
    for event in trace.events:
        if not event.copied_context:
            groups.setdefault(event.tool, []).append(event)
            tools = called.get(event.id) or [event.tool]
            for tool in tools:
                answers.setdefault(tool, []).append((event, len(tools)))
    spawned, entries = _spawned(trace), []
    for tool in {**groups, **answers}:
        shares = answers.get(tool, [])
        spent = [(event.tokens, parts) for event, parts in shares if event.tokens and event.tokens.is_known]
        by_kind = {}
        for kind in KINDS:
            counts = [(getattr(tokens, kind), parts) for tokens, parts in spent]
            by_kind[kind] = sum_known([count / parts for count, parts in counts if count is not None])
        events = groups.get(tool, [])
        spawned_tokens, spawned_cost = spawned.get(tool, (None, None))
        entries.append(
            Entry(
                tool,
                len(events),
                sum(event.type in ANSWER_TYPES and not (event.tokens and event.tokens.is_known) for event in events),
                by_kind,
                sum(total(tokens) / parts for tokens, parts in spent) if spent else None,
                sum_known([event.cost_usd / parts for event, parts in shares if event.cost_usd is not None]),
                spawned_tokens,
                spawned_cost,
                any(may_have_spent_more(event) for event, _ in shares),
            )
        )
    return entries


_CALLS = (EventType.TOOL_CALL, EventType.SPAWN, EventType.MESSAGE)
"""The types of events that are a call of a tool, if they name one."""


def _tools_called(trace: Trace) -> dict[str, list[str]]:
    """Return the tools that each answer calls, by the id of the answer; an edge from it to the call is needed."""
    calls = {
        event.id: event.tool
        for event in trace.events
        if event.type is EventType.TOOL_CALL or (event.type in _CALLS and event.tool)
    }
    called: dict[str, list[str]] = {}
    for edge in trace.edges:
        if edge.type is EdgeType.CAUSAL and edge.dst in calls and edge.src not in calls:
            called.setdefault(edge.src, []).append(calls[edge.dst])
    return called


def _spawned(trace: Trace) -> dict[str, tuple[float | None, float | None]]:
    """Return the tokens and the cost of the agents that each tool spawned and all below them, each agent once."""
    view = TraceView.of(trace)
    events, parents = view.trace.events, view.lifecycle.parents
    tools = {agent: events[spawns[0]].tool for agent, spawns in view.lifecycle.spawns.items()}
    if not any(tools.values()):
        return {}
    by_tool: dict[str, list[Entry]] = {}
    for entry in ledger(trace, "agent"):
        spawners: dict[str, None] = {}  # the tools that spawned the agent and its ancestors
        agent: str | None = entry.name
        for _ in range(len(parents) + 1):  # parents may form a cycle
            if agent is None:
                break
            if tool := tools.get(agent, ""):
                spawners[tool] = None
            agent = parents.get(agent)
        for tool in spawners:
            by_tool.setdefault(tool, []).append(entry)
    return {
        tool: (sum_known(entry.total for entry in entries), sum_known(entry.cost_usd for entry in entries))
        for tool, entries in by_tool.items()
    }


def cost_by_tool(trace: Trace) -> tuple[tuple[str, float], ...]:
    """Return the cost of the tools that models called, in US dollars, highest first; empty if no event has a cost.

    The cost of an answer is divided equally among the calls, spawns and messages to which an edge leads from it. The
    cost of any other event counts for the tool that it names; the name is empty if it names none.
    """
    priced = [event for event in trace.events if event.cost_usd is not None and not event.copied_context]
    called = _tools_called(trace) if priced else {}
    costs: dict[str, float] = {}
    for event in priced:
        tools = called.get(event.id) or [event.tool]
        for tool in tools:
            costs[tool] = costs.get(tool, 0.0) + (event.cost_usd or 0.0) / len(tools)
    return tuple(sorted(costs.items(), key=lambda pair: (-pair[1], pair[0])))


def leading_model(trace: Trace) -> str:
    """Return the model with the most tokens; empty if no model is named."""
    if trace.agents:
        names = {name for name, _ in _events_by_name(trace, "model") if name}
    else:
        names = {event.model for event in trace.events if event.model and not event.copied_context}
    if len(names) > 1:
        return next(entry.name for entry in ledger(trace, "model") if entry.name)
    return names.pop() if names else ""


def declared_models(trace: Trace) -> dict[str, str]:
    """Return the declared model of each agent whose events name no model."""
    with_model = {event.agent for event in trace.events if event.model}
    return {agent.id: agent.model for agent in trace.agents if agent.id not in with_model}


def _events_by_name(trace: Trace, by: str) -> Iterator[tuple[str, Event]]:
    """Yield each event that is not copied, after the name of its entry."""
    by_agent: Mapping[str, str] = {}
    if by == "role":
        by_agent = roles_of(trace)
    elif by == "model":
        by_agent = declared_models(trace)
    field = attrgetter(by)
    for event in trace.events:
        if not event.copied_context:
            name = field(event)
            if not name and (by == "role" or event.type in ANSWER_TYPES):
                name = by_agent.get(event.agent, "")
            yield str(name), event


def spent_by_agent(trace: Trace) -> dict[str, list[float | None]]:
    """Return, for each agent, its tokens in the order of `KINDS` and then its stated cost, without copied events.

    An unknown figure is None.
    """
    tokens: defaultdict[str, list[Tokens]] = defaultdict(list)
    costs: defaultdict[str, list[float]] = defaultdict(list)
    for event in trace.events:
        if not event.copied_context:
            if event.tokens:
                tokens[event.agent].append(event.tokens)
            if event.cost_usd is not None:
                costs[event.agent].append(event.cost_usd)
    figures: dict[str, list[float | None]] = {}
    for agent in {**tokens, **costs}:
        spent = [counts for counts in tokens[agent] if counts.is_known]
        by_kind = [[getattr(counts, kind) for counts in spent] for kind in KINDS]
        figures[agent] = [sum_known(values) for values in (*by_kind, costs[agent])]
    return figures


def _entry(name: str, events: list[Event]) -> Entry:
    spent = [event.tokens for event in events if event.tokens and event.tokens.is_known]
    without_tokens = [event for event in events if not (event.tokens and event.tokens.is_known)]
    return Entry(
        name,
        len(events),
        sum(event.type in ANSWER_TYPES for event in without_tokens),
        {kind: sum_known([getattr(tokens, kind) for tokens in spent]) for kind in KINDS},
        float(sum(map(total, spent))) if spent else None,
        sum_known([event.cost_usd for event in events]),
        at_least=any(map(may_have_spent_more, events)),
    )


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

    missing = [index for kind in ANSWER_TYPES if kind in run.spending for index in run.spending[kind].missing]
    known = sum_known(spent.tokens for spent in run.spending.values() if spent.events > len(spent.missing))
    is_all = has_all_tokens(run.trace)
    if missing and not accounts_for_all(run.trace):
        words = "inference has" if len(missing) == 1 else "inferences have"
        return Measure(None, f"{len(missing)} {words} no tokens: {cite(run.trace, sorted(missing))}", at_least=known)
    if known is None or is_all:
        return Measure(known, "" if known is not None else "no event has tokens")
    return Measure(None, _INCOMPLETE, at_least=known)


def cost(run: Run) -> Measure:
    """The money that the events state; None where some in which a model is asked state none."""
    from orchtrace_corpus.trace.model.import_report import has_all_costs

    events = run.trace.events
    stated = sum_known([event.cost_usd for event in events if not event.copied_context])
    if stated is None:
        return Measure(None, "no event has a cost")
    answers = [
        index
        for kind in ANSWER_TYPES
        for index in run.times.graph.indices_by_type.get(kind, ())
        if not events[index].copied_context
    ]
    without_cost = sorted(index for index in answers if events[index].cost_usd is None)
    if without_cost:
        reason = f"{len(without_cost)} of {len(answers)} inferences state no cost: {cite(run.trace, without_cost)}"
        return Measure(None, reason, at_least=stated)
    return Measure(stated) if has_all_costs(run.trace) else Measure(None, _INCOMPLETE, at_least=stated)


DEFINITIONS = (
    Definition(
        "tokens", "token", "input + output + cache_read + cache_write over all events", "ours", tokens, is_bounded=True
    ),
    Definition("cost", "usd", "sum of cost_usd over all events", "ours", cost, is_bounded=True),
)
