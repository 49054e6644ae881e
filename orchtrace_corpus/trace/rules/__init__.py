"""The graph rules: checks of a trace that a schema cannot express, in one module for each subject.

A rule on a field that the published schema does not have applies only if the field is present. Each rule looks at every
event a fixed number of times, so the time for all rules is linear in the number of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Generic, TypeVar
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
"""All graph rules, in the order in which they run."""

MAX_RULE_FINDINGS = 100
"""The largest number of findings of one rule that are listed for one trace; further findings are only counted."""


def problems(view: TraceView) -> list[Problem]:
    """Return everything that the graph rules find wrong, at most `MAX_RULE_FINDINGS` for each rule."""
    listed: list[Problem] = []
    count_by_code: dict[str, int] = {}
    for check_rule in CHECKS:
        for problem in check_rule(view):
            count_by_code[problem.code] = count_by_code.get(problem.code, 0) + 1
            if count_by_code[problem.code] <= MAX_RULE_FINDINGS:
                listed.append(problem)
    for code, count in count_by_code.items():
        if count > MAX_RULE_FINDINGS:
            message = f"{count} findings of this rule; the first {MAX_RULE_FINDINGS} are given"
            listed.append(Problem(code, message, ()))
    return listed


def import_error(trace: Trace) -> DataFileError | None:
    """Return an error if the graph rules find an error in an imported trace, so that it must not be written; else None.

    The message has the first error, and the number of the others.
    """
    errors = [problem for problem in problems(TraceView(trace)) if RULES[problem.code].severity is Severity.ERROR]
    if not errors:
        return None
    code, message, path = errors[0]
    more = f"; and {len(errors) - 1:,} more" if len(errors) > 1 else ""
    hint = "The log contradicts itself in a way that the importer does not know; please report it, without contents."
    return DataFileError(f"the trace of {quote(trace.trace_id)}: {code} {json_path(path)}: {message}{more}", hint)


def check(decoded: Decoded) -> tuple[Finding, ...]:
    """Return the findings on a document: of the schema if it finds errors, else of the graph rules."""
    if decoded.trace is None:
        return decoded.findings
    return graph_findings(decoded.document, TraceView(decoded.trace))


def graph_findings(document: Document, view: TraceView) -> tuple[Finding, ...]:
    """Return the findings of the graph rules on the trace of a document, in the order of their places in it."""
    trace_problems = problems(view)
    if not trace_problems:
        return ()
    places = document.places
    record = view.trace.trace_id
    findings = []
    for code, message, path in trace_problems:
        if path:
            message = f"{json_path(path)}: {message}"
        findings.append(Finding(code, message, places.locate(path), record))
    return tuple(sorted(findings, key=lambda finding: finding.location))


def plain_warnings(paths: Iterable[str]) -> list[Finding] | None:
    """Return the warnings of small trace files, all at line 1; None if a file has an error or needs the full reader."""
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
    """The names of the traces that a command has read; two runs must not have the same name."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}  # the path and the line of each trace, by its name

    def check(self, name: str, path: str, line: int) -> tuple[Finding, ...]:
        """Add a trace, and return a finding if another trace has the same name; the same trace may be added twice.

        Args:
            name: The `trace_id` of the trace.
            path: The path of its file, to show.
            line: The line on which it begins.
        """
        place = path, line
        first_place = self._places.setdefault(name, place)
        if first_place == place:
            return ()
        first_path, first_line = first_place
        message = f"$.trace_id: {quote(name)} is that of {first_path}:{first_line}, too; give each run its own"
        return (Finding("T227", message, Location(path, line, 1), name),)


class Validation(NamedTuple):
    """The findings on several traces.

    Attributes:
        findings: All findings, trace by trace.
        traces: The number of traces.
        schema_only: The number of traces with errors against the schema, for which no graph rule was checked.
    """

    findings: tuple[Finding, ...]
    traces: int
    schema_only: int


def validate(documents: Iterable[Document]) -> Validation:
    """Check traces against the schema and the graph rules, in several processes if there are many."""
    from orchtrace_corpus.base.workers import map_in_order  # imported late: slow to load, and few traces do not need it

    all_findings: list[Finding] = []
    count = schema_only = 0
    names = Names()
    for findings, name, path, line in map_in_order(_check_document, documents, size_bytes=Document.size):
        count += 1
        all_findings += findings
        if name:
            all_findings += names.check(name, path, line)
        else:
            schema_only += 1
    return Validation(tuple(all_findings), count, schema_only)


def _check_document(document: Document) -> tuple[tuple[Finding, ...], str, str, int]:
    """Return the findings on a trace, its name (empty if it has errors against the schema), its path and its line."""
    decoded = decode(document)
    name = decoded.trace.trace_id if decoded.trace is not None else ""
    return check(decoded), name, document.path, document.line


class CheckedTrace(NamedTuple, Generic[Derived]):
    """The findings on the trace of a document, and a value derived from the trace.

    Attributes:
        place: The place where the document begins, as `path:line`.
        findings: The findings on it.
        value: The value derived from its trace; None if the trace has errors.
    """

    place: str
    findings: tuple[Finding, ...]
    value: Derived | None


def check_and_derive(derive: Callable[[TraceView], Derived], document: Document) -> CheckedTrace[Derived]:
    """Decode and check the trace of a document; if it has no errors, call `derive` with it."""
    decoded = decode(document)
    place = f"{document.path}:{document.line}"
    if decoded.trace is None:
        return CheckedTrace(place, decoded.findings, None)
    view = TraceView(decoded.trace, document.file)
    findings = graph_findings(document, view)
    if has_errors(findings):
        return CheckedTrace(place, findings, None)
    return CheckedTrace(place, findings, derive(view))
