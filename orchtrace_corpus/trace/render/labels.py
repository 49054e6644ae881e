"""Labels of sub-decisions as tables."""

from collections import Counter
from collections.abc import Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Table
from orchtrace_corpus.trace.analysis.labels import GIVEN, RULES, Label
from orchtrace_corpus.trace.model.trace import Decision, Trace

CODES = {decision: f"O{number}" for number, decision in enumerate(Decision, 1)}
"""The codes of the sub-decisions, O1 to O5."""


def summary(trace: Trace, found: Sequence[Label]) -> Table:
    """How often each sub-decision is taken, by rule; one that does not occur has a row, too."""
    counts = Counter((label.decision, label.rule) for label in found)
    rows = []
    for decision in Decision:
        rules = [(rule, number) for (taken, rule), number in counts.items() if taken is decision]
        for rule, number in sorted(rules, key=lambda one: (-one[1], one[0])) or [("", 0)]:
            rows.append((CODES[decision], decision.value, number, printable(rule) or None, _meaning(rule)))
    columns = ("code", "sub-decision", "events", "rule", "fires when")
    return Table("labels", printable(trace.trace_id), columns, tuple(rows), wrapped="fires when")


def _meaning(rule: str) -> str | None:
    if rule == GIVEN:
        return "The trace had the label already."
    return RULES[rule][1] if rule in RULES else None


def events(trace: Trace, found: Sequence[Label]) -> Table:
    """Every label, by event."""
    rows = tuple(
        (
            printable(trace.events[one.event].id),
            printable(trace.events[one.event].agent),
            CODES[one.decision],
            one.decision.value,
            printable(one.rule),
        )
        for one in found
    )
    return Table("labels", printable(trace.trace_id), ("event", "agent", "code", "sub-decision", "rule"), rows)
