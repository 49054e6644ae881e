"""The columns of the five tables that traces are written as: traces, events, edges, agents, ledger.

docs/dataset.md shows them; it is made from `TABLES`. Unknown is null, never 0 and never an empty text.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from orchtrace_corpus.trace.analysis.labels import Label, labels
from orchtrace_corpus.trace.measures import DEFINITIONS, Measure, Run
from orchtrace_corpus.trace.measures.ledger import Entry, ledger
from orchtrace_corpus.trace.model.trace import AgentKind, Decision, Source, TokenBasis, Tokens
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import SECONDS

TEXT, WHOLE, NUMBER, FLAG = "text", "whole number", "number", "yes or no"
TEXTS, WORDS, FIGURES = "list of texts", "map of text to text", "map of text to number"
_MOST = 2**63 - 1


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
    def model(self) -> str | None:
        """The model with the most tokens."""
        return next((entry.name for entry in ledger(self.trace, "model") if entry.name), None)

    @cached_property
    def spent(self) -> dict[str, Entry]:
        """What each agent spent."""
        return {entry.name: entry for entry in ledger(self.trace, "agent")}

    @cached_property
    def parents(self) -> Mapping[str, str]:
        """The agent that spawned each, where one did."""
        return self.run.lifecycle.parents

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What acts under each agent's name, where it is declared."""
        return {agent.id: str(agent.kind) for agent in self.trace.agents if agent.kind is not AgentKind.UNKNOWN}

    @cached_property
    def source(self) -> Source:
        """Where the first event that says so was found."""
        found = (event.source for event in self.trace.events)
        return next((source for source in found if isinstance(source, Source)), Source())

    def reported(self, name: str) -> int | None:
        """A count of the import report; None in a trace that was not imported."""
        counted = self.trace.import_report.get(name)
        return sum(map(_count, counted.values())) if isinstance(counted, dict) else _integer(counted)


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
        items = [
            (what, _members(entry)) for what, entry in _members(scene.trace.import_report.get("token_ledger")).items()
        ]
    for number, item in enumerate(items):
        yield Row(scene, number, item)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and abs(value) <= _MOST else None


def _members(value: Any) -> dict[str, Any]:
    """An object of an import report, of which the schema says nothing; empty where it is something else."""
    return value if isinstance(value, dict) else {}


def _count(noted: Any) -> int:
    return _integer(noted.get("number") if isinstance(noted, dict) else noted) or 0


def _measured(name: str) -> Callable[[Row], Any]:
    return lambda row: row.scene.measures[name].value


def _labelled(decision: Decision) -> Callable[[Row], Any]:
    return lambda row: sum(label.decision is decision for label in row.scene.labels)


def _reported(name: str) -> Callable[[Row], Any]:
    return lambda row: row.scene.reported(name)


def _text(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.item, name) or None


def _seconds(moment: float | None, row: Row) -> float | None:
    return None if moment is None else float(moment * row.scene.scale)


def _tokens(kind: str) -> Callable[[Row], Any]:
    def value(row: Row) -> int | None:
        tokens = row.item.tokens
        return _integer(getattr(tokens, kind)) if isinstance(tokens, Tokens) else None

    return value


def _basis(row: Row) -> str | None:
    basis = row.item.token_basis if isinstance(row.item.token_basis, TokenBasis) else TokenBasis.UNKNOWN
    return str(basis) if isinstance(row.item.tokens, Tokens) or basis is not TokenBasis.UNKNOWN else None


def _source(name: str) -> Callable[[Row], Any]:
    return lambda row: (getattr(row.item.source, name) or None) if isinstance(row.item.source, Source) else None


def _spent(kind: str) -> Callable[[Row], Any]:
    def value(row: Row) -> int | None:
        entry = row.scene.spent.get(row.item.agent)
        return _integer(entry.tokens[kind]) if entry else None

    return value


def _cost(row: Row) -> float | None:
    entry = row.scene.spent.get(row.item.agent)
    return entry.cost_usd if entry else None


def _entered(kind: str) -> Callable[[Row], Any]:
    return lambda row: _integer(_members(row.item[1].get("tokens")).get(kind))


def _refused(row: Row) -> list[tuple[str, str]]:
    return [(name, found.reason) for name, found in row.scene.measures.items() if found.reason]


_KEY = Column("trace", TEXT, "The trace: a name that no other has in the dataset", lambda row: row.scene.key)
_TOKEN_KINDS = {
    "input": "input, without what came from a cache or went to one",
    "output": "output",
    "cache_read": "read from a cache",
    "cache_write": "written to a cache",
    "reasoning": "reasoning, a part of the output",
}

_UNITS = {"1": "pure number", "s": "seconds", "token": "tokens", "usd": "US dollars"}

DECISIONS: dict[Decision, str] = {decision: f"o{n}_{decision}" for n, decision in enumerate(Decision, 1)}
"""The column of `traces` that counts each sub-decision."""

TABLES: dict[str, tuple[Column, ...]] = {
    "traces": (
        _KEY,
        Column("trace_id", TEXT, "The name that it gives itself, which several may share", _text("trace_id")),
        Column("task_id", TEXT, "What was to be done", _text("task_id")),
        Column("system", TEXT, "The program that ran the agents", _text("system")),
        Column("topology", TEXT, "How the agents are arranged", _text("topology")),
        Column("format", TEXT, "The format of the log that it is from", lambda row: row.scene.source.format or None),
        Column("version", TEXT, "The version of that format", lambda row: row.scene.source.version or None),
        Column("model", TEXT, "The model with the most tokens", lambda row: row.scene.model),
        Column("clock_unit", TEXT, "The unit of its clock", lambda row: str(row.item.clock.unit)),
        Column("epoch", TEXT, "When its clock began (ISO 8601)", lambda row: row.item.clock.epoch),
        Column("event_count", WHOLE, "Its events", lambda row: len(row.item.events)),
        Column("edge_count", WHOLE, "Its edges", lambda row: len(row.item.edges)),
        Column("stated_tokens", NUMBER, "Tokens, as it states them", lambda row: row.item.costs["tokens"]),
        Column("stated_wall", NUMBER, "Seconds, as it states them", lambda row: row.item.costs["wall_clock_s"]),
        Column("rewards", FIGURES, "The rewards by channel", lambda row: list(row.item.rewards.items())),
        Column("metrics", FIGURES, "The metrics that it states", lambda row: list(row.item.metrics.items())),
        Column("reasons", WORDS, "Why figures that it states are unknown", lambda row: list(row.item.reasons.items())),
        *(
            Column(name, WHOLE, f"Events that take sub-decision {name[:2].upper()}, {decision}", _labelled(decision))
            for decision, name in DECISIONS.items()
        ),
        *(
            Column(name, NUMBER, f"Measure, {_UNITS.get(one.unit, one.unit)}: {one.formula}", _measured(name))
            for name, one in DEFINITIONS.items()
        ),
        Column("refused", WORDS, "The measures that are null, each with the reason", _refused),
        Column("warnings", WHOLE, "Warnings of the graph rules", lambda row: row.scene.warnings),
        Column("records_read", WHOLE, "Records of the log that were read", _reported("records_read")),
        Column("dropped", WHOLE, "Records that were left out", _reported("dropped")),
        Column("repaired", WHOLE, "Records with bytes that are no UTF-8", _reported("repaired")),
        Column("out_of_order", WHOLE, "Records earlier than the one before", _reported("out_of_order")),
        Column("unknown_kinds", WHOLE, "Records of kinds that are not known", _reported("unknown_kinds")),
        Column("problems", WHOLE, "Other problems of the import", _reported("problems")),
    ),
    "events": (
        _KEY,
        Column("number", WHOLE, "Its place in the trace, from 0 on", lambda row: row.number),
        Column("event", TEXT, "Its id in the trace", _text("id")),
        Column("seq", WHOLE, "Which of several came first at one time", lambda row: _integer(row.item.seq)),
        Column("t", NUMBER, "When it began, in seconds on the trace's clock", lambda row: _seconds(row.item.t, row)),
        Column("t_end", NUMBER, "When it ended, likewise", lambda row: _seconds(row.item.t_end, row)),
        Column("type", TEXT, "What kind of event it is", _text("type")),
        Column("agent", TEXT, "The agent that acts", _text("agent")),
        Column("role", TEXT, "A role: its own, or, of a spawn, the child's", _text("role")),
        Column("sender", TEXT, "Whom a message is from, where that is not the agent", _text("sender")),
        Column("target", TEXT, "The agent that is spawned, addressed or ended", _text("target")),
        Column("parent_agent", TEXT, "The agent above", _text("parent_agent")),
        Column("tool", TEXT, "The tool", _text("tool")),
        Column("call_id", TEXT, "Joins a call and its result", _text("call_id")),
        Column("content_ref", TEXT, "A salted hash of the content", _text("content_ref")),
        Column("model", TEXT, "The model that was asked", _text("model")),
        *(
            Column(f"{kind}_tokens", WHOLE, f"Tokens: {words}", _tokens(kind)) for kind, words in _TOKEN_KINDS.items()
        ),
        Column("token_basis", TEXT, "How far the tokens can be relied on", _basis),
        Column("cost_usd", NUMBER, "Its cost in US dollars", lambda row: row.item.cost_usd),
        Column("status", TEXT, "How it ended", _text("status")),
        Column("error_type", TEXT, "What went wrong", _text("error_type")),
        Column("trusted", FLAG, "Whether what came in is to be trusted",
               lambda row: row.item.trusted if isinstance(row.item.trusted, bool) else None),
        Column("copied_context", FLAG, "It only repeats history: its tokens do not count",
               lambda row: row.item.copied_context),
        Column("inferred", FLAG, "No record says it, but others imply it", lambda row: row.item.inferred),
        Column("sub_decisions", TEXTS, "The sub-decisions that it takes",
               lambda row: [str(label.decision) for label in row.scene.labels_of.get(row.number, ())]),
        Column("sub_decision_rules", TEXTS, "The rule behind each of them",
               lambda row: [label.rule for label in row.scene.labels_of.get(row.number, ())]),
        Column("source_file", TEXT, "The file of the log that it is from", _source("file")),
        Column("source_line", WHOLE, "The line", lambda row: _integer(_source("line")(row))),
    ),
    "edges": (
        _KEY,
        Column("src", TEXT, "The event that comes first", _text("src")),
        Column("dst", TEXT, "The event that depends on it", _text("dst")),
        Column("type", TEXT, "How it depends", _text("type")),
    ),
    "agents": (
        _KEY,
        Column("agent", TEXT, "The agent", _text("agent")),
        Column("role", TEXT, "Its role", _text("role")),
        Column("model", TEXT, "The model of its events, if they name just one", _text("model")),
        Column("kind", TEXT, "What acts under its name", lambda row: row.scene.kinds.get(row.item.agent)),
        Column("parent", TEXT, "The agent that spawned it", lambda row: row.scene.parents.get(row.item.agent)),
        Column("depth", WHOLE, "How many agents are above it", lambda row: row.item.depth),
        Column("begin", NUMBER, "When it comes into being, in seconds from the first event, waits for people taken out",
               lambda row: float(row.item.begin)),
        Column("end", NUMBER, "When it is last seen, likewise", lambda row: float(row.item.end)),
        Column("event_count", WHOLE, "Its events", lambda row: len(row.item.events)),
        *(
            Column(f"{kind}_tokens", WHOLE, f"Its tokens: {words}", _spent(kind))
            for kind, words in _TOKEN_KINDS.items()
        ),
        Column("tokens", WHOLE, "Its tokens: input, output and both kinds of cache",
               lambda row: _integer(row.item.tokens)),
        Column("cost_usd", NUMBER, "The cost of its events in US dollars", _cost),
    ),
    "ledger": (
        _KEY,
        Column("statement", TEXT, "What became of usage records; the `counted` ones add up to the tokens of the events",
               lambda row: row.item[0]),
        Column("records", WHOLE, "How many records", lambda row: _integer(row.item[1].get("records"))),
        *(
            Column(f"{kind}_tokens", WHOLE, f"Their tokens: {words}", _entered(kind))
            for kind, words in _TOKEN_KINDS.items()
        ),
        Column("total_tokens", WHOLE, "Their tokens, where only a total is known", _entered("total")),
    ),
}  # fmt: skip
"""The columns of every table, in order."""
