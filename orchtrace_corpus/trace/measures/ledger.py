"""The ledger of tokens and money: who spent what, on which model, in which kind of event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ASKED, Definition, Measure, Run, cite
from orchtrace_corpus.trace.model.events import roles_of, total
from orchtrace_corpus.trace.model.terms import EdgeType, EventType, TokenBasis
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event, Tokens, Trace

_NOT_ALL = "the trace may not record all of it"
GROUPINGS = ("agent", "role", "model", "type", "tool")
"""The keys by which a ledger can be grouped."""

KINDS = ("input", "output", "cache_read", "cache_write", "reasoning")
"""The kinds of tokens; `reasoning` is a part of `output`."""

COUNTED = 4
"""So many of them, the first, add up to all tokens."""


class Entry(NamedTuple):
    """The spending of one agent, role, model, type of event or tool.

    Attributes:
        name: What it is called.
        events: How many events were counted; what was merely copied is not.
        without_tokens: How many inferences, decisions and aggregates among them have no tokens.
        tokens: Tokens by kind; a kind is None where no event gives it.
        total: Input, output and both cache kinds together; None where no event has tokens.
        cost_usd: The sum of the costs that events state; None where none does.
        spawned_tokens: Of a tool, what the agents spent that it spawned, and those below them; None where none are
            known. It stands under the tools that these agents called, too.
        spawned_cost_usd: What these cost.
        at_least: Whether it spent more tokens than are known.
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
    """The entries of a ledger, the largest total first.

    By tool, what an answer spent goes in equal parts to the tools that it calls.

    Of an event that names no role, the role of its agent counts; of one in which a model is asked that it does not
    name, the model that its agent is declared with, unless other events of the agent name one: then nobody knows.
    Events of which neither is known stand under the empty name.
    """
    # what only declares measures loads none
    from orchtrace_corpus.trace.model.import_report import accounts_for_all, lacks_input

    groups: dict[str, list[Event]] = {}
    for name, event in _named(trace, by) if by != "tool" else ():
        groups.setdefault(name, []).append(event)
    entries = [_entry(name, events) for name, events in groups.items()] if by != "tool" else _by_tool(trace)
    if accounts_for_all(trace):
        entries = [entry._replace(at_least=False) for entry in entries]
    elif lacks_input(trace):
        entries = [entry._replace(at_least=entry.at_least or entry.tokens["input"] is None) for entry in entries]
    return sorted(entries, key=lambda entry: (-(entry.total or 0), entry.name))


def _by_tool(trace: Trace) -> list[Entry]:
    """The entries by tool: what an answer spent goes in equal parts to the tools that it calls."""
    called = _called(trace)
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
        spent = [(one.tokens, parts) for one, parts in answers.get(tool, ()) if one.tokens and one.tokens.is_known]
        costs = [one.cost_usd / parts for one, parts in answers.get(tool, ()) if one.cost_usd is not None]
        kinds = {
            kind: sum_known([None if (n := getattr(tokens, kind)) is None else n / parts for tokens, parts in spent])
            for kind in KINDS
        }
        events = groups.get(tool, [])
        lacking = sum(one.type in ASKED and not (one.tokens and one.tokens.is_known) for one in events)
        whole = sum(total(tokens) / parts for tokens, parts in spent) if spent else None
        more, is_least = spawned.get(tool, (None, None)), any(spent_more(one) for one, _ in answers.get(tool, ()))
        entries.append(Entry(tool, len(events), lacking, kinds, whole, sum_known(costs), *more, is_least))
    return entries


_CALLS = (EventType.TOOL_CALL, EventType.SPAWN, EventType.MESSAGE)
"""The types of events in which a model has called a tool, if they name one."""


def _called(trace: Trace) -> dict[str, list[str]]:
    """The tools that each answer calls, by the answer's id, as far as an edge leads from it to the call."""
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
    """The tokens and the cost of the agents that each tool spawned, and of those below them, each agent once."""
    view = TraceView.of(trace)
    events, parents = view.trace.events, view.lifecycle.parents
    tools = {agent: events[spawns[0]].tool for agent, spawns in view.lifecycle.spawns.items()}
    spent = {entry.name: entry for entry in ledger(trace, "agent")}
    agents: dict[str, list[Entry]] = {}
    for agent, entry in spent.items() if any(tools.values()) else ():
        above, at = dict[str, None](), agent
        for _ in range(len(parents) + 1):
            if tool := tools.get(at, ""):
                above[tool] = None
            if at not in parents:
                break
            at = parents[at]
        for tool in above:
            agents.setdefault(tool, []).append(entry)
    return {
        tool: (sum_known(one.total for one in below), sum_known(one.cost_usd for one in below))
        for tool, below in agents.items()
    }


def cost_by_tool(trace: Trace) -> tuple[tuple[str, float], ...]:
    """Return the cost of the tools that models called, in US dollars, highest first; empty if no event has a cost.

    The cost of an answer goes in equal parts to the calls, spawns and messages that follow from it by an edge, that of
    a tool's own event to the tool. Answers that call no tool stand under the empty name.
    """
    priced = [event for event in trace.events if event.cost_usd is not None and not event.copied_context]
    called = _called(trace) if priced else {}
    costs: dict[str, float] = {}
    for event in priced:
        tools = called.get(event.id) or [event.tool]
        for tool in tools:
            costs[tool] = costs.get(tool, 0.0) + (event.cost_usd or 0.0) / len(tools)
    return tuple(sorted(costs.items(), key=lambda pair: (-pair[1], pair[0])))


def leading_model(trace: Trace) -> str:
    """The model with the most tokens; empty where none is named."""
    if trace.agents:
        names = {name for name, _ in _named(trace, "model") if name}
    else:
        names = {event.model for event in trace.events if event.model and not event.copied_context}
    if len(names) > 1:
        return next(entry.name for entry in ledger(trace, "model") if entry.name)
    return names.pop() if names else ""


def declared_models(trace: Trace) -> dict[str, str]:
    """Return the model that each agent is declared with, unless events of the agent name one."""
    naming = {event.agent for event in trace.events if event.model}
    return {agent.id: agent.model for agent in trace.agents if agent.id not in naming}


def _named(trace: Trace, by: str) -> Iterator[tuple[str, Event]]:
    """The events that were not merely copied, each with the name that it stands under."""
    known: Mapping[str, str] = {}
    if by == "role":
        known = roles_of(trace)
    elif by == "model":
        known = declared_models(trace)
    field = attrgetter(by)
    for event in trace.events:
        if not event.copied_context:
            name = field(event)
            if not name and (by == "role" or event.type in ASKED):
                name = known.get(event.agent, "")
            yield str(name), event


def spent_by_agent(trace: Trace) -> dict[str, list[float | None]]:
    """The tokens of each agent that acts, by kind, and the cost that its events state; without what was copied."""
    tokens: defaultdict[str, list[Tokens]] = defaultdict(list)
    costs: defaultdict[str, list[float]] = defaultdict(list)
    for event in trace.events:
        if not event.copied_context:
            if event.tokens:
                tokens[event.agent].append(event.tokens)
            if event.cost_usd is not None:
                costs[event.agent].append(event.cost_usd)
    found = {}
    for agent in {**tokens, **costs}:
        spent = [one for one in tokens[agent] if one.is_known]
        kinds = [[getattr(tokens, kind) for tokens in spent] for kind in KINDS]
        known = [[number for number in kind if number is not None] for kind in (*kinds, costs[agent])]
        found[agent] = [float(sum(numbers)) if numbers else None for numbers in known]
    return found


def _entry(name: str, events: list[Event]) -> Entry:
    spent = [event.tokens for event in events if event.tokens and event.tokens.is_known]
    lacking = [one for one in events if not (one.tokens and one.tokens.is_known)]
    return Entry(
        name,
        len(events),
        sum(event.type in ASKED for event in lacking),
        {kind: sum_known([getattr(tokens, kind) for tokens in spent]) for kind in KINDS},
        float(sum(map(total, spent))) if spent else None,
        sum_known([event.cost_usd for event in events]),
        at_least=any(map(spent_more, events)),
    )


def spent_more(event: Event) -> bool:
    """Return True if a model was asked that spent more tokens than the event says."""
    is_known = bool(event.tokens and event.tokens.is_known)
    return event.token_basis is TokenBasis.PLACEHOLDER or (event.type in ASKED and not is_known)


def sum_known(values: Iterable[float | None]) -> float | None:
    """The sum of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def tokens(run: Run) -> Measure:
    """All tokens of the events, each counted once."""
    from orchtrace_corpus.trace.model.import_report import accounts_for_all, has_all_tokens

    lacking = [number for kind in ASKED if kind in run.spending for number in run.spending[kind].lacking]
    known = sum_known(one.tokens for one in run.spending.values() if one.events > len(one.lacking))
    is_all = has_all_tokens(run.trace)
    if lacking and not accounts_for_all(run.trace):
        words = "inference has" if len(lacking) == 1 else "inferences have"
        return Measure(None, f"{len(lacking)} {words} no tokens: {cite(run.trace, sorted(lacking))}", at_least=known)
    if known is None or is_all:
        return Measure(known, "" if known is not None else "no event has tokens")
    return Measure(None, _NOT_ALL, at_least=known)


def cost(run: Run) -> Measure:
    """The money that the events state; None where some in which a model is asked state none."""
    from orchtrace_corpus.trace.model.import_report import has_all_costs

    events = run.trace.events
    stated = sum_known([event.cost_usd for event in events if not event.copied_context])
    if stated is None:
        return Measure(None, "no event has a cost")
    asked = [index for kind in ASKED for index in run.times.graph.of_type.get(kind, ())]
    asked = [index for index in asked if not events[index].copied_context]
    lacking = sorted(index for index in asked if events[index].cost_usd is None)
    if lacking:
        reason = f"{len(lacking)} of {len(asked)} inferences state no cost: {cite(run.trace, lacking)}"
        return Measure(None, reason, at_least=stated)
    return Measure(stated) if has_all_costs(run.trace) else Measure(None, _NOT_ALL, at_least=stated)


DEFINITIONS = (
    Definition(
        "tokens", "token", "input + output + cache_read + cache_write over all events", "ours", tokens, is_bounded=True
    ),
    Definition("cost", "usd", "sum of cost_usd over all events", "ours", cost, is_bounded=True),
)
