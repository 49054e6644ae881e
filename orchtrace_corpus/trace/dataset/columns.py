"""The columns of the five tables that traces are written as: traces, events, edges, agents, ledger.

`columns.toml` declares them; docs/dataset.md is made from `TABLES`. Unknown is null, never 0 and never an empty text.

A trace is taken apart into rows of fields in one pass over its items; many rows become the values of columns at once.
Calling a function for each cell would take longer than everything else together.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import UNSET

from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.labels import Label, labels
from orchtrace_corpus.trace.measures.definitions import BOUNDED, DEFINITIONS
from orchtrace_corpus.trace.measures.ledger import KINDS, leading_model, spent_by_agent
from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run
from orchtrace_corpus.trace.model.terms import AgentKind, Decision, TokenBasis
from orchtrace_corpus.trace.model.trace import Source, Tokens
from orchtrace_corpus.trace.rewards.specs import FUNCTIONS
from orchtrace_corpus.trace.rewards.terms import Function, Team
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import SECONDS

TEXT, WHOLE, NUMBER, FLAG = "text", "whole number", "number", "yes or no"
TEXTS, WORDS, FIGURES = "list of texts", "map of text to text", "map of text to number"
_UNITS = {"1": "pure number", "s": "seconds", "token": "tokens", "usd": "US dollars"}
_MOST_WHOLE = 2**63 - 1

_IN_TABLES = (
    "outcome", "agent_outcomes", "step_outcomes", "tool_success", "team_speed_up", "parallel_share", "returned", "used",
    "disjoint", "merge_gain", "regret",
)  # fmt: skip
"""The functions that say what no measure says, and have a meaning without options."""


def _column(of: Function) -> Definition:
    def measured(run: Run) -> Measure:  # a table of many runs is not the place for what each could be told
        return Measure(of.compute(run if isinstance(run, Team) else Team(run.view), of.options).value)

    unit = "1" if of.unit == "reward" else of.unit
    return Definition(f"reward_{of.name}", unit, of.formula, of.source, measured)


COMPUTED: dict[str, Definition] = {
    **DEFINITIONS,
    **{f"reward_{name}": _column(FUNCTIONS[name]) for name in _IN_TABLES},
}
"""The measures, and the functions of rewards as measures: what a table of many runs has a column for."""

Row = tuple[Any, ...]
"""The values of an item of a trace, in the order of the columns."""


class Scene(Team):
    """A trace without errors, its name in the tables, how many warnings the graph rules have, and all else in its rows.

    What several fields rest on is computed once.
    """

    def __init__(self, view: TraceView, key: str, warnings: int) -> None:
        super().__init__(view)
        self.key = key
        self.warnings = warnings

    @cached_property
    def labels(self) -> list[Label]:
        """The sub-decisions that events take."""
        return labels(self.view, self.steps)

    @cached_property
    def labels_of(self) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """For each event the sub-decisions that it takes, and the rules behind them."""
        decisions: list[tuple[str, ...]] = [()] * len(self.trace.events)
        rules = decisions.copy()
        for label in self.labels:
            decisions[label.event] += (label.decision,)
            rules[label.event] += (label.rule,)
        return decisions, rules


class Column(NamedTuple):
    """A column of a table: its name, one of the types above, and what it says, with its unit."""

    name: str
    type: str
    meaning: str


def values(table: str, some: Sequence[Row]) -> list[list[Any]]:
    """The values of rows of a table, column by column; None where one is unknown."""
    columns = zip(TABLES[table], zip(*some, strict=True), strict=True)
    return [_CONVERSIONS[column.type](unconverted) for column, unconverted in columns]


def _of_trace(scene: Scene) -> Iterator[Row]:
    trace, once = scene.trace, scene.once
    measures = {name: once(one.compute) for name, one in COMPUTED.items()}
    decisions = [label.decision for label in scene.labels]
    sources = [event.source for event in trace.events if event.source]
    source = sources[0] if sources else _NO_SOURCE
    yield (
        scene.key, trace.trace_id, trace.task_id, trace.system or None, trace.topology, source.format or None,
        source.version or None, leading_model(trace) or None, trace.clock.unit, trace.clock.epoch or None,
        len(trace.events), len(trace.edges), trace.costs["tokens"], trace.costs["wall_clock_s"], trace.rewards,
        trace.metrics, trace.reasons, *map(decisions.count, DECISIONS),
        *[measure.value for measure in measures.values()],
        {name: one.reason for name, one in measures.items() if one.reason},
        *[measures[name].at_least for name in BOUNDED],
        scene.warnings, *[_count(trace.import_report.get(name)) for name in _REPORTED],
    )  # fmt: skip


def _of_events(scene: Scene) -> Iterator[Row]:
    key, scale, unknown = scene.key, SECONDS[scene.trace.clock.unit], TokenBasis.UNKNOWN
    decisions, rules = scene.labels_of
    return (
        (
            key, index, event.id, event.seq, event.t * scale, None if event.t_end is None else event.t_end * scale,
            event.type, event.agent, event.role or None, event.sender or None, event.target or None,
            event.parent_agent or None, event.tool or None, event.call_id or None, event.content_ref or None,
            event.model or None, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.reasoning,
            basis if (basis := event.token_basis or unknown) is not unknown or event.tokens else None,
            event.cost_usd, event.status, event.error_type or None,
            None if event.trusted is UNSET else event.trusted, event.copied_context, event.inferred,
            decisions[index], rules[index], source.file or None, source.line,
        )
        for index, event in enumerate(scene.trace.events)
        for tokens, source in ((event.tokens or _NO_TOKENS, event.source or _NO_SOURCE),)
    )  # fmt: skip


def _of_edges(scene: Scene) -> Iterator[Row]:
    key = scene.key
    return ((key, edge.src, edge.dst, edge.type) for edge in scene.trace.edges)


def _of_agents(scene: Scene) -> Iterator[Row]:
    key, parents, spent = scene.key, scene.view.lifecycle.parents, spent_by_agent(scene.trace)
    nothing: list[float | None] = [None] * (len(KINDS) + 1)
    kinds = {agent.id: agent.kind for agent in scene.trace.agents if agent.kind is not AgentKind.UNKNOWN}
    return (
        (
            key, one.agent, one.role or None, one.model or None, kinds.get(one.agent), parents.get(one.agent),
            one.depth, one.begin, one.end, len(one.events), *tokens, one.tokens, cost,
        )
        for one in scene.view.agents
        for *tokens, cost in (spent.get(one.agent, nothing),)
    )  # fmt: skip


def _of_ledger(scene: Scene) -> Iterator[Row]:
    for what, stated in _members(scene.trace.import_report.get("token_ledger")).items():
        entry = _members(stated)
        yield scene.key, what, entry.get("records"), *map(_members(entry.get("tokens")).get, (*KINDS, "total"))


DECISIONS: dict[Decision, str] = {decision: f"o{n}_{decision}" for n, decision in enumerate(Decision, 1)}
"""The column of `traces` that counts each sub-decision."""

_NO_TOKENS, _NO_SOURCE = Tokens(), Source()
_REPORTED = ("records_read", "dropped", "repaired", "out_of_order", "unknown_kinds", "problems")
ROWS: dict[str, Callable[[Scene], Iterator[Row]]] = {
    "traces": _of_trace, "events": _of_events, "edges": _of_edges, "agents": _of_agents, "ledger": _of_ledger
}  # fmt: skip
"""The rows that a trace has in each table; those of the ledger are what its import says of tokens."""


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and abs(value) <= _MOST_WHOLE else None


def _members(value: Any) -> dict[str, Any]:
    """An object of an import report, of which the schema says nothing; empty where it is something else."""
    return value if isinstance(value, dict) else {}


def _count(counted: Any) -> int | None:
    """A count of an import report; None in a trace that was not imported."""
    if not isinstance(counted, dict):
        return _integer(counted)
    return sum(_integer(one.get("number") if isinstance(one, dict) else one) or 0 for one in counted.values())


def _wholes(values: Sequence[Any]) -> list[Any]:
    if {int, type(None)}.issuperset(map(type, values)):  # mostly, and then nothing needs to be converted
        known = [value for value in values if value is not None]
        if not known or (max(known) <= _MOST_WHOLE and min(known) >= -_MOST_WHOLE):
            return list(values)
    return list(map(_integer, values))


def _pairs(values: Sequence[Any]) -> list[Any]:
    return [list(value.items()) for value in values]


_CONVERSIONS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    TEXT: list, WHOLE: _wholes, NUMBER: list, FLAG: list, TEXTS: list, WORDS: _pairs, FIGURES: _pairs
}  # fmt: skip


def _columns(table: str, declared: dict[str, list[str]]) -> Iterator[Column]:
    yield Column("trace", TEXT, "The trace: a name that no other has in the dataset")
    for name, (kind, meaning) in declared.items():
        if (table, name) == ("traces", "refused"):
            for decision, column in DECISIONS.items():
                text = f"Events that take sub-decision {column[:2].upper()}, {decision}"
                yield Column(column, WHOLE, text)
            for measure, one in COMPUTED.items():
                text = f"Measure, {_UNITS.get(one.unit, one.unit)}: {one.formula}"
                yield Column(measure, NUMBER, text)
        yield Column(name, kind, meaning)


TABLES: dict[str, tuple[Column, ...]] = {
    table: tuple(_columns(table, declared))
    for table, declared in tomllib.loads(text_beside(__file__, "columns.toml")).items()
}
"""The columns of every table, in order."""
