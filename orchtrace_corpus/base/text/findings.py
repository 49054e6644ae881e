"""Findings as lines for people and editors, as JSON, and as annotations of GitHub; `sarif` has SARIF."""

import os
from collections.abc import Sequence
from enum import StrEnum

from orchtrace_corpus.base.findings import RULES, Finding, Severity, printable
from orchtrace_corpus.base.text.layout import Line, Span, pluralize
from orchtrace_corpus.base.text.table import envelope


class FindingsFormat(StrEnum):
    """The forms of a report of findings."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def written(findings: Sequence[Finding], output_format: FindingsFormat, limit: int | None = None) -> str:
    """All findings, or the first of them, in a form for programs; for `FindingsFormat.TEXT` see `text`."""
    if output_format is FindingsFormat.GITHUB:
        return github(findings[:limit])
    if output_format is FindingsFormat.SARIF:
        from orchtrace_corpus.base.text import sarif

        return sarif.document(findings[:limit])
    return data(findings, limit)


def text(findings: Sequence[Finding]) -> list[Line]:
    """One line each, as `file:line:column: CODE message [record]`."""
    return [(Span(str(finding), "warning" if finding.severity is Severity.ERROR else ""),) for finding in findings]


def github(findings: Sequence[Finding]) -> str:
    """One workflow command each, which GitHub Actions shows beside the line.

    Reference: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    commands = []
    for finding in findings:
        path, line, column = finding.location
        title = f"{finding.code} {RULES[finding.code].title}"
        record = f" [{printable(finding.record, limit=60)}]" if finding.record else ""
        properties = {"file": path.replace(os.sep, "/"), "line": str(line), "col": str(column), "title": title}
        written = ",".join(f"{name}={_github_property(value)}" for name, value in properties.items())
        commands.append(f"::{finding.severity} {written}::{_github_text(finding.message + record)}\n")
    return "".join(commands)


def _github_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_text(text).replace(":", "%3A").replace(",", "%2C")


def data(findings: Sequence[Finding], limit: int | None = None) -> str:
    """All findings for programs, or the first of them, with the number of each severity among all.

    docs/schema/findings.schema.json describes the document.
    """
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
                for finding in findings[:limit]
            ],
        },
    )


def summary(findings: Sequence[Finding]) -> str:
    """How many there are, in words."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    parts = [pluralize(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return ", ".join(parts) or "no problems"
