"""The columns and the rows of the five tables into which traces are written: traces, events, edges, agents, ledger.

`columns.toml` declares the columns; docs/dataset.md is made from `TABLES`. An unknown value is null, never 0 and never
an empty text.

A trace is turned into rows in one pass over its items, and many rows are turned into columns at once. A function call
for each cell would take longer than everything else together.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import UNSET

from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.labels import Label, labels
from orchtrace_corpus.trace.measures.definitions import BOUNDED, DEFINITIONS
from orchtrace_corpus.trace.measures.ledger import KINDS, leading_model, spent_by_agent
from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run
from orchtrace_corpus.trace.model.terms import SECONDS, AgentKind, Decision, TokenBasis
from orchtrace_corpus.trace.model.trace import Source, Tokens
from orchtrace_corpus.trace.rewards.specs import FUNCTIONS
from orchtrace_corpus.trace.rewards.terms import Function, Team
from orchtrace_corpus.trace.view import TraceView

# The types of columns.
TEXT, INTEGER, NUMBER, FLAG = "text", "whole number", "number", "yes or no"
TEXTS, TEXT_MAP, NUMBER_MAP = "list of texts", "map of text to text", "map of text to number"

_UNIT_NAMES = {"1": "pure number", "s": "seconds", "token": "tokens", "usd": "US dollars"}
_MAX_INTEGER = 2**63 - 1

_TABLE_REWARDS = (
    "outcome", "agent_outcomes", "step_outcomes", "tool_success", "team_speed_up", "parallel_share", "returned", "used",
    "disjoint", "merge_gain", "regret",
)  # fmt: skip
"""The reward functions with a column in `traces`: those that need no options, and that no measure covers."""


def _as_measure(function: Function) -> Definition:
    """Return a reward function as a measure, without the reasons why values are unknown."""

    def compute(run: Run) -> Measure:
        team = run if isinstance(run, Team) else Team(run.view)
        score = function.compute(team, function.defaults)
        return Measure(score.value)

    unit = "1" if function.unit == "reward" else function.unit
    return Definition(f"reward_{function.name}", unit, function.formula, function.source, compute)


COMPUTED: dict[str, Definition] = {
    **DEFINITIONS,
    **{f"reward_{name}": _as_measure(FUNCTIONS[name]) for name in _TABLE_REWARDS},
}
"""The measures, and reward functions as measures, by name: each is a column of `traces`."""

Row = tuple[Any, ...]
"""The values of one row of a table, in the order of its columns in `columns.toml`, before they are converted."""


class RowContext(Team):
    """A trace without errors, from which rows are made. Values that several columns need are computed once.

    Attributes:
        key: The name of the trace in the tables.
        warnings: The number of warnings of the graph rules.
    """

    def __init__(self, view: TraceView, key: str, warnings: int) -> None:
        super().__init__(view)
        self.key = key
        self.warnings = warnings

    @cached_property
    def labels(self) -> list[Label]:
        """The labels of the events: the sub-decisions that they take, and by which rules."""
        return labels(self.view, self.steps)

    @cached_property
    def decisions_and_rules(self) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """For each event, the sub-decisions that it takes; and for each event, the rules of these labels."""
        decisions: list[tuple[str, ...]] = [()] * len(self.trace.events)
        rules = decisions.copy()
        for label in self.labels:
            decisions[label.event] += (label.decision,)
            rules[label.event] += (label.rule,)
        return decisions, rules


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: The name.
        type: One of the types of columns, such as `TEXT`.
        meaning: The meaning and the unit.
    """

    name: str
    type: str
    meaning: str


def column_values(table: str, rows: Sequence[Row]) -> list[list[Any]]:
    """Return the converted values of each column of a table for some rows; None for an unknown value."""
    values_by_column = zip(*rows, strict=True)
    columns = zip(TABLES[table], values_by_column, strict=True)
    return [_CONVERSIONS[column.type](values) for column, values in columns]


def _trace_rows(context: RowContext) -> Iterator[Row]:
    """Yield the one row of a trace in `traces`."""
    trace = context.trace
    measures = {name: context.measure(definition.compute) for name, definition in COMPUTED.items()}
    decisions = [label.decision for label in context.labels]
    sources = [event.source for event in trace.events if event.source]
    source = sources[0] if sources else _NO_SOURCE
    yield (
        context.key, trace.trace_id, trace.task_id, trace.system or None, trace.topology, source.format or None,
        source.version or None, leading_model(trace) or None, trace.clock.unit, trace.clock.epoch or None,
        len(trace.events), len(trace.edges), trace.costs["tokens"], trace.costs["wall_clock_s"], trace.rewards,
        trace.metrics, trace.reasons, *map(decisions.count, DECISIONS),
        *[measure.value for measure in measures.values()],
        {name: measure.reason for name, measure in measures.items() if measure.reason},
        *[measures[name].at_least for name in BOUNDED],
        context.warnings, *[_count(trace.import_report.get(name)) for name in _REPORT_COLUMNS],
    )  # fmt: skip


def _event_rows(context: RowContext) -> Iterator[Row]:
    key = context.key
    scale = SECONDS[context.trace.clock.unit]
    unknown = TokenBasis.UNKNOWN
    decisions, rules = context.decisions_and_rules
    for index, event in enumerate(context.trace.events):
        tokens = event.tokens or _NO_TOKENS
        source = event.source or _NO_SOURCE
        basis = event.token_basis or unknown
        yield (
            key, index, event.id, event.seq, event.t * scale, None if event.t_end is None else event.t_end * scale,
            event.type, event.agent, event.role or None, event.sender or None, event.target or None,
            event.parent_agent or None, event.tool or None, event.call_id or None, event.content_ref or None,
            event.model or None, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.reasoning,
            basis if basis is not unknown or event.tokens else None,
            event.cost_usd, event.status, event.error_type or None,
            None if event.trusted is UNSET else event.trusted, event.copied_context, event.inferred,
            decisions[index], rules[index], source.file or None, source.line,
        )  # fmt: skip


def _edge_rows(context: RowContext) -> Iterator[Row]:
    key = context.key
    return ((key, edge.src, edge.dst, edge.type) for edge in context.trace.edges)


def _agent_rows(context: RowContext) -> Iterator[Row]:
    parents = context.view.lifecycle.parents
    spent = spent_by_agent(context.trace)
    unknown: list[float | None] = [None] * (len(KINDS) + 1)  # the tokens of each kind, and the cost
    kinds = {agent.id: agent.kind for agent in context.trace.agents if agent.kind is not AgentKind.UNKNOWN}
    for agent in context.view.agents:
        *tokens, cost = spent.get(agent.agent, unknown)
        yield (
            context.key, agent.agent, agent.role or None, agent.model or None, kinds.get(agent.agent),
            parents.get(agent.agent), agent.depth, agent.begin, agent.end, len(agent.events), *tokens, agent.tokens,
            cost,
        )  # fmt: skip


def _ledger_rows(context: RowContext) -> Iterator[Row]:
    """Yield the rows of the token ledger of the import report."""
    for line, content in _object(context.trace.import_report.get("token_ledger")).items():
        entry = _object(content)
        tokens = _object(entry.get("tokens"))
        yield context.key, line, entry.get("records"), *[tokens.get(kind) for kind in (*KINDS, "total")]


DECISIONS: dict[Decision, str] = {decision: f"o{number}_{decision}" for number, decision in enumerate(Decision, 1)}
"""The column of `traces` that counts each sub-decision."""

_NO_TOKENS, _NO_SOURCE = Tokens(), Source()
_REPORT_COLUMNS = ("records_read", "dropped", "repaired", "out_of_order", "unknown_kinds", "problems")
ROWS: dict[str, Callable[[RowContext], Iterator[Row]]] = {
    "traces": _trace_rows, "events": _event_rows, "edges": _edge_rows, "agents": _agent_rows, "ledger": _ledger_rows
}  # fmt: skip
"""For each table, the function that yields the rows of a trace."""


def _integer(value: Any) -> int | None:
    """Return a number as an integer; None if it is no number, or does not fit into 64 bits."""
    return int(value) if isinstance(value, (int, float)) and abs(value) <= _MAX_INTEGER else None


def _object(value: Any) -> dict[str, Any]:
    """Return an object of an import report, which no schema checks; empty if the value is not an object."""
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    """Return a number of an import report, or the sum of its numbers by kind; None if the trace was not imported."""
    if not isinstance(value, dict):
        return _integer(value)
    counts = [item.get("number") if isinstance(item, dict) else item for item in value.values()]
    return sum(_integer(count) or 0 for count in counts)


def _as_integers(values: Sequence[Any]) -> list[Any]:
    """Convert the values of a column of whole numbers; values that are too large become None."""
    if {int, type(None)}.issuperset(map(type, values)):  # the usual case, in which no value needs conversion
        known = [value for value in values if value is not None]
        if not known or (max(known) <= _MAX_INTEGER and min(known) >= -_MAX_INTEGER):
            return list(values)
    return list(map(_integer, values))


def _as_pairs(values: Sequence[Any]) -> list[Any]:
    """Convert the values of a column of maps to lists of pairs, as pyarrow wants them."""
    return [list(value.items()) for value in values]


_CONVERSIONS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    TEXT: list, INTEGER: _as_integers, NUMBER: list, FLAG: list, TEXTS: list, TEXT_MAP: _as_pairs, NUMBER_MAP: _as_pairs
}  # fmt: skip
"""For each type of column, the function that converts its values."""


def _columns(table: str, declared: dict[str, list[str]]) -> Iterator[Column]:
    """Yield the columns of a table: `trace`, then those declared; sub-decisions and measures come before `refused`."""
    yield Column("trace", TEXT, "The trace: a name that no other has in the dataset")
    for name, (kind, meaning) in declared.items():
        if table == "traces" and name == "refused":
            for decision, column in DECISIONS.items():
                text = f"Events that take sub-decision {column[:2].upper()}, {decision}"
                yield Column(column, INTEGER, text)
            for measure, definition in COMPUTED.items():
                text = f"Measure, {_UNIT_NAMES.get(definition.unit, definition.unit)}: {definition.formula}"
                yield Column(measure, NUMBER, text)
        yield Column(name, kind, meaning)


TABLES: dict[str, tuple[Column, ...]] = {
    table: tuple(_columns(table, declared))
    for table, declared in tomllib.loads(read_text_beside(__file__, "columns.toml")).items()
}
"""The columns of every table, in order."""
