"""The graph rules: what no schema can say of a trace. One module for each kind, one function for each rule or few.

Rules on fields that the published schema lacks apply only where the field is present. Each rule looks at
every event once, so that all of them together stay linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.base.findings import RULES, Finding, Location, Severity, has_errors, quote
from orchtrace_corpus.base.json_places import json_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.decode import Decoded, Document, Problem, decode
from orchtrace_corpus.trace.model.plain import MAX_BYTES, read_plain
from orchtrace_corpus.trace.rules import agents, edges, totals
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

Check = Callable[[TraceView], Iterator[Problem]]
Derived = TypeVar("Derived")

CHECKS: tuple[Check, ...] = (
    edges.check_ids,
    edges.check_edges,
    edges.check_cycles,
    edges.check_times,
    agents.check_spawns,
    agents.check_parents,
    agents.check_lifecycles,
    agents.check_returns,
    agents.check_stops,
    agents.check_aggregates,
    edges.check_joins,
    edges.check_calls,
    totals.check_magnitudes,
    totals.check_tokens,
    totals.check_costs,
    totals.check_reasons,
    totals.check_rewards,
)
"""All graph rules."""

MOST_OF_A_KIND = 100
"""So many findings of one rule are given for one trace."""


def problems(view: TraceView) -> list[Problem]:
    """Everything that the graph rules find wrong, `MOST_OF_A_KIND` of each rule at most."""
    found: list[Problem] = []
    counts: dict[str, int] = {}
    for check in CHECKS:
        for problem in check(view):
            counts[problem.code] = counts.get(problem.code, 0) + 1
            if counts[problem.code] <= MOST_OF_A_KIND:
                found.append(problem)
    for code, number in counts.items():
        if number > MOST_OF_A_KIND:
            message = f"{number} findings of this rule; the first {MOST_OF_A_KIND} are given"
            found.append(Problem(code, message, ()))
    return found


def import_error(trace: Trace) -> DataFileError | None:
    """Why an imported trace is not to be written: the errors that the graph rules find; None where there is none."""
    found = [problem for problem in problems(TraceView(trace)) if RULES[problem.code].severity is Severity.ERROR]
    if not found:
        return None
    code, message, path = found[0]
    more = f"; and {len(found) - 1:,} more" if len(found) > 1 else ""
    hint = "The log contradicts itself in a way that the importer does not know; please report it, without contents."
    return DataFileError(f"the trace of {quote(trace.trace_id)}: {code} {json_path(path)}: {message}{more}", hint)


def check(decoded: Decoded) -> tuple[Finding, ...]:
    """All findings of a document: those of the schema, or, where it has none, those of the graph rules."""
    return decoded.findings if decoded.trace is None else findings(decoded.document, TraceView(decoded.trace))


def findings(document: Document, view: TraceView) -> tuple[Finding, ...]:
    """Return the findings of the graph rules on the trace of a document, by place."""
    found = problems(view)
    if not found:
        return ()
    places = document.places
    record = view.trace.trace_id
    placed = [
        Finding(code, f"{json_path(path)}: {message}" if path else message, places.locate(path), record)
        for code, message, path in found
    ]
    return tuple(sorted(placed, key=lambda finding: finding.location))


def warnings_of_plain(paths: Iterable[str]) -> list[Finding] | None:
    """Return the warnings of small trace files, all at the first line; None where one has an error or is not plain."""
    findings: list[Finding] = []
    names: set[str] = set()
    for path in paths:
        try:
            with open_regular(path) as file:
                trace = read_plain(file.read(MAX_BYTES + 1))
        except OSError:
            return None
        if trace is None or trace.trace_id in names:
            return None
        names.add(trace.trace_id)
        findings += [Finding(code, message, Location(path, 1, 1)) for code, message, _ in problems(TraceView(trace))]
    return None if has_errors(findings) else findings


class Names:
    """The names of the traces that one run of a command has seen, each with its place: two runs may not share one."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}

    def check(self, name: str, path: str, line: int) -> tuple[Finding, ...]:
        """Take note of a trace, and report it if another one has its name; a trace may be given twice.

        Args:
            name: Its `trace_id`.
            path: The path of its file, to show.
            line: The line on which it begins.
        """
        place = path, line
        first = self._places.setdefault(name, place)
        if first == place:
            return ()
        message = f"$.trace_id: {quote(name)} is that of {first[0]}:{first[1]}, too; give each run its own"
        return (Finding("T227", message, Location(path, line, 1), name),)


class Validation(NamedTuple):
    """The findings on some traces.

    Attributes:
        findings: All findings, trace by trace.
        traces: How many traces there are.
        schema_only: How many of them the schema refuses, so that no graph rule was checked.
    """

    findings: tuple[Finding, ...]
    traces: int
    schema_only: int


def validate(documents: Iterable[Document]) -> Validation:
    """Check traces against the schema and the graph rules, in several processes where there are many."""
    from orchtrace_corpus.base.workers import in_order  # not for who checks a few

    found: list[Finding] = []
    count = schema_only = 0
    names = Names()
    for of_trace, name, path, line in in_order(_check, documents, size_bytes=Document.size):
        count += 1
        schema_only += not name
        found += of_trace
        if name:
            found += names.check(name, path, line)
    return Validation(tuple(found), count, schema_only)


def _check(document: Document) -> tuple[tuple[Finding, ...], str, str, int]:
    """Return the findings on a trace, its name (empty without a schema), and its place."""
    decoded = decode(document)
    name = decoded.trace.trace_id if decoded.trace is not None else ""
    return check(decoded), name, document.path, document.line


class Examined(NamedTuple, Generic[Derived]):
    """A document whose trace was checked.

    Attributes:
        place: Where it begins, as `path:line`.
        findings: What is wrong with it.
        value: What was derived from its trace; None where that has errors.
    """

    place: str
    findings: tuple[Finding, ...]
    value: Derived | None


def examine(derive: Callable[[TraceView], Derived], document: Document) -> Examined[Derived]:
    """Decode and check a trace, and derive something from it if it has no errors."""
    decoded = decode(document)
    place = f"{document.path}:{document.line}"
    if decoded.trace is None:
        return Examined(place, decoded.findings, None)
    view = TraceView(decoded.trace, document.file)
    found = findings(document, view)
    return Examined(place, found, None if has_errors(found) else derive(view))
