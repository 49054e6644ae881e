"""Findings as lines for people and editors, and as JSON."""

from collections.abc import Sequence
from enum import StrEnum

from orchtrace_corpus.findings import Finding, Severity
from orchtrace_corpus.render.layout import Line, Span
from orchtrace_corpus.render.table import envelope


class FindingsFormat(StrEnum):
    """The forms of a report of findings."""

    TEXT = "text"
    JSON = "json"


def text(findings: Sequence[Finding]) -> list[Line]:
    """One line each, as `file:line:column: CODE message [record]`."""
    return [(Span(str(finding), "warning" if finding.severity is Severity.ERROR else ""),) for finding in findings]


def data(findings: Sequence[Finding]) -> str:
    """All findings for programs, with the number of each severity."""
    return envelope(
        "findings",
        {
            "errors": sum(finding.severity is Severity.ERROR for finding in findings),
            "warnings": sum(finding.severity is Severity.WARNING for finding in findings),
            "findings": [
                {
                    "code": finding.code,
                    "severity": finding.severity.value,
                    "message": finding.message,
                    "path": finding.location.path,
                    "line": finding.location.line,
                    "column": finding.location.column,
                    "record": finding.record or None,
                }
                for finding in findings
            ],
        },
    )


def summary(findings: Sequence[Finding]) -> str:
    """How many there are, in words."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    parts = [f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in ((errors, "error"), (warnings, "warning")) if n]
    return ", ".join(parts) or "no problems"
