"""The columns of the five tables that traces are written as: traces, events, edges, agents, ledger.

`columns.toml` declares them; docs/dataset.md is made from `TABLES`. Unknown is null, never 0 and never an empty text.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.trace.analysis.labels import Label, labels
from orchtrace_corpus.trace.measures import DEFINITIONS, Measure, Run
from orchtrace_corpus.trace.measures.ledger import KINDS, Entry, ledger
from orchtrace_corpus.trace.model.trace import AgentKind, Decision, Source, TokenBasis, Tokens
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import SECONDS

TEXT, WHOLE, NUMBER, FLAG = "text", "whole number", "number", "yes or no"
TEXTS, WORDS, FIGURES = "list of texts", "map of text to text", "map of text to number"
_UNITS = {"1": "pure number", "s": "seconds", "token": "tokens", "usd": "US dollars"}


class Scene:
    """A trace with all that its rows say of it; what several columns rest on is computed once.

    Attributes:
        trace: The trace, without errors.
        key: Its name in the tables.
        warnings: How many warnings the graph rules have.
        scale: Seconds in a unit of its clock.
    """

    def __init__(self, view: TraceView, key: str, warnings: int) -> None:
        self.trace = trace = view.trace
        self.key = key
        self.warnings = warnings
        self.scale = SECONDS[trace.clock.unit]
        self.run = Run(view)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """Every measure by its name."""
        return {name: self.run.once(one.compute) for name, one in DEFINITIONS.items()}

    @cached_property
    def labels(self) -> list[Label]:
        """The sub-decisions that events take."""
        return labels(self.run.view)

    @cached_property
    def labels_of(self) -> dict[int, list[Label]]:
        """The sub-decisions by the number of the event."""
        found: dict[int, list[Label]] = {}
        for label in self.labels:
            found.setdefault(label.event, []).append(label)
        return found

    @cached_property
    def spent(self) -> dict[str, Entry]:
        """What each agent spent."""
        return {entry.name: entry for entry in ledger(self.trace, "agent")}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What acts under each agent's name, where it is declared."""
        return {agent.id: str(agent.kind) for agent in self.trace.agents if agent.kind is not AgentKind.UNKNOWN}

    @cached_property
    def source(self) -> Source:
        """Where the first event that says so was found."""
        found = (event.source for event in self.trace.events)
        return next((source for source in found if isinstance(source, Source)), Source())


class Row(NamedTuple):
    """What a row is made of: the scene, and an item of it (an event, an edge, ...) with its number."""

    scene: Scene
    number: int
    item: Any


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its name.
        type: One of the types above.
        meaning: What it says, with its unit.
        value: From a row to the value; None where it is unknown.
    """

    name: str
    type: str
    meaning: str
    value: Callable[[Row], Any]


def rows(table: str, scene: Scene) -> Iterable[Row]:
    """The rows of a trace in a table."""
    items: Iterable[Any]
    if table == "traces":
        items = (scene.trace,)
    elif table == "events":
        items = scene.trace.events
    elif table == "edges":
        items = scene.trace.edges
    elif table == "agents":
        items = scene.run.view.agents
    else:
        stated = _members(scene.trace.import_report.get("token_ledger"))
        items = [(what, _members(entry)) for what, entry in stated.items()]
    for number, item in enumerate(items):
        yield Row(scene, number, item)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and abs(value) <= 2**63 - 1 else None


def _members(value: Any) -> dict[str, Any]:
    """An object of an import report, of which the schema says nothing; empty where it is something else."""
    return value if isinstance(value, dict) else {}


def _measured(name: str, row: Row) -> float | None:
    return row.scene.measures[name].value


def _labelled(decision: Decision, row: Row) -> int:
    return sum(label.decision is decision for label in row.scene.labels)


def _reported(name: str, row: Row) -> int | None:
    """A count of the import report; None in a trace that was not imported."""
    counted = row.scene.trace.import_report.get(name)
    if not isinstance(counted, dict):
        return _integer(counted)
    return sum(_integer(one.get("number") if isinstance(one, dict) else one) or 0 for one in counted.values())


def _seconds(name: str, row: Row) -> float | None:
    moment = getattr(row.item, name)
    return None if moment is None else float(moment * row.scene.scale)


def _tokens(kind: str, row: Row) -> int | None:
    tokens = row.item.tokens
    return _integer(getattr(tokens, kind)) if isinstance(tokens, Tokens) else None


def _basis(row: Row) -> str | None:
    basis = row.item.token_basis if isinstance(row.item.token_basis, TokenBasis) else TokenBasis.UNKNOWN
    return str(basis) if isinstance(row.item.tokens, Tokens) or basis is not TokenBasis.UNKNOWN else None


def _spent(kind: str, row: Row) -> int | None:
    entry = row.scene.spent.get(row.item.agent)
    return _integer(entry.tokens[kind]) if entry else None


def _entered(kind: str, row: Row) -> int | None:
    return _integer(_members(row.item[1].get("tokens")).get(kind))


_REPORTED = ("records_read", "dropped", "repaired", "out_of_order", "unknown_kinds", "problems")
_VALUES: dict[str, Callable[[Row], Any]] = {
    "traces.model": lambda row: next((one.name for one in ledger(row.item, "model") if one.name), None),
    "traces.event_count": lambda row: len(row.item.events),
    "traces.edge_count": lambda row: len(row.item.edges),
    "traces.stated_tokens": lambda row: row.item.costs["tokens"],
    "traces.stated_wall": lambda row: row.item.costs["wall_clock_s"],
    "traces.refused": lambda row: [(name, one.reason) for name, one in row.scene.measures.items() if one.reason],
    **{f"traces.{name}": partial(_reported, name) for name in _REPORTED},
    **{f"events.{name}": partial(_seconds, name) for name in ("t", "t_end")},
    **{f"events.{kind}_tokens": partial(_tokens, kind) for kind in KINDS},
    "events.token_basis": _basis,
    "events.sub_decisions": lambda row: [str(one.decision) for one in row.scene.labels_of.get(row.number, ())],
    "events.sub_decision_rules": lambda row: [one.rule for one in row.scene.labels_of.get(row.number, ())],
    "events.source_file": lambda row: (row.item.source.file or None) if isinstance(row.item.source, Source) else None,
    "events.source_line": lambda row: _integer(row.item.source.line) if isinstance(row.item.source, Source) else None,
    "agents.kind": lambda row: row.scene.kinds.get(row.item.agent),
    "agents.parent": lambda row: row.scene.run.view.lifecycle.parents.get(row.item.agent),
    "agents.begin": lambda row: float(row.item.begin),
    "agents.end": lambda row: float(row.item.end),
    "agents.event_count": lambda row: len(row.item.events),
    **{f"agents.{kind}_tokens": partial(_spent, kind) for kind in KINDS},
    "agents.cost_usd": lambda row: entry.cost_usd if (entry := row.scene.spent.get(row.item.agent)) else None,
    "ledger.statement": lambda row: row.item[0],
    "ledger.records": lambda row: _integer(row.item[1].get("records")),
    **{f"ledger.{kind}_tokens": partial(_entered, kind) for kind in (*KINDS, "total")},
}
"""The values of columns that are more than a field of a row."""


def _field(kind: str, path: str) -> Callable[[Row], Any]:
    """A field of a row as a column of some type has it."""
    field = attrgetter(path)
    if kind == TEXT:
        return lambda row: field(row) or None
    if kind == WHOLE:
        return lambda row: _integer(field(row))
    if kind == FLAG:
        return lambda row: value if isinstance(value := field(row), bool) else None
    return (lambda row: list(field(row).items())) if kind in (WORDS, FIGURES) else field


DECISIONS: dict[Decision, str] = {decision: f"o{n}_{decision}" for n, decision in enumerate(Decision, 1)}
"""The column of `traces` that counts each sub-decision."""


def _columns(table: str, declared: dict[str, list[str]]) -> Iterator[Column]:
    yield Column("trace", TEXT, "The trace: a name that no other has in the dataset", lambda row: row.scene.key)
    for name, (kind, meaning, *path) in declared.items():
        if (table, name) == ("traces", "refused"):
            for decision, column in DECISIONS.items():
                text = f"Events that take sub-decision {column[:2].upper()}, {decision}"
                yield Column(column, WHOLE, text, partial(_labelled, decision))
            for measure, one in DEFINITIONS.items():
                text = f"Measure, {_UNITS.get(one.unit, one.unit)}: {one.formula}"
                yield Column(measure, NUMBER, text, partial(_measured, measure))
        value = _VALUES.get(f"{table}.{name}") or _field(kind, path[0] if path else f"item.{name}")
        yield Column(name, kind, meaning, value)


TABLES: dict[str, tuple[Column, ...]] = {
    table: tuple(_columns(table, declared))
    for table, declared in tomllib.loads(text_beside(__file__, "columns.toml")).items()
}
"""The columns of every table, in order."""
