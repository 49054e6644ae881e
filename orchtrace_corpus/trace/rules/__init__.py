"""The graph rules: what no schema can say of a trace. One module for each kind, one function for each rule or few.

Rules on fields that the published schema lacks apply only where the field is present. Each rule looks at
every event once, so that all of them together stay linear.
"""

from collections.abc import Callable, Iterator

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.base.json_places import json_path
from orchtrace_corpus.trace.model.decode import Decoded, Document, Problem
from orchtrace_corpus.trace.rules import agents, calls, joins, order, totals
from orchtrace_corpus.trace.view.view import Subject

Check = Callable[[Subject], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    order.check_ids,
    order.check_edges,
    order.check_cycles,
    order.check_times,
    agents.check_spawns,
    agents.check_parents,
    agents.check_lives,
    agents.check_returns,
    agents.check_stops,
    agents.check_aggregates,
    joins.check_joins,
    calls.check_calls,
    totals.check_magnitudes,
    totals.check_tokens,
    totals.check_costs,
    totals.check_reasons,
    totals.check_rewards,
)
"""All graph rules."""

MOST_OF_A_KIND = 100
"""So many findings of one rule are given for one trace."""


def problems(subject: Subject) -> list[Problem]:
    """Everything that the graph rules find wrong, `MOST_OF_A_KIND` of each rule at most."""
    found: list[Problem] = []
    counts: dict[str, int] = {}
    for check in CHECKS:
        for problem in check(subject):
            counts[problem.code] = counts.get(problem.code, 0) + 1
            if counts[problem.code] <= MOST_OF_A_KIND:
                found.append(problem)
    for code, number in counts.items():
        if number > MOST_OF_A_KIND:
            message = f"{number} findings of this rule; the first {MOST_OF_A_KIND} are given"
            found.append(Problem(code, message, ()))
    return found


def check(decoded: Decoded) -> tuple[Finding, ...]:
    """All findings of a document: those of the schema, or, where it has none, those of the graph rules."""
    return decoded.findings if decoded.trace is None else findings(decoded.document, Subject(decoded.trace))


def findings(document: Document, subject: Subject) -> tuple[Finding, ...]:
    """What the graph rules find wrong with the trace of a document, by place."""
    found = problems(subject)
    if not found:
        return ()
    places = document.places
    record = subject.trace.trace_id
    placed = [
        Finding(code, f"{json_path(path)}: {message}" if path else message, places.locate(path), record)
        for code, message, path in found
    ]
    return tuple(sorted(placed, key=lambda finding: finding.location))
