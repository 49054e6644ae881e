"""Findings as lines for people and editors, as JSON, as annotations of GitHub, and as SARIF."""

import os
from collections.abc import Sequence
from enum import StrEnum

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.findings import RULES, Finding, Severity, escape_controls, explanation, printable
from orchtrace_corpus.base.text.layout import Line, Span, first_names_and_more, pluralize

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class FindingsFormat(StrEnum):
    """The forms of a report of findings."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def serialize(findings: Sequence[Finding], output_format: FindingsFormat, limit: int | None = None) -> str:
    """Return all findings, or the first ones, in a format for programs; for `FindingsFormat.TEXT` see `text`."""
    if output_format is FindingsFormat.GITHUB:
        return github(findings[:limit])
    if output_format is FindingsFormat.SARIF:
        return sarif(findings[:limit])
    return data(findings, limit)


def text(findings: Sequence[Finding]) -> list[Line]:
    """Return a line for each finding, as `file:line:column: CODE message [record]`."""
    return [(Span(str(finding), "warning" if finding.severity is Severity.ERROR else ""),) for finding in findings]


def folded(findings: Sequence[Finding], command: str = "") -> list[Line]:
    """Return the lines of `text`, but of equal messages in a file only the first, with the lines of the others.

    If a command lists all of them, three other lines are named.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.location.path, finding.code, finding.message), []).append(finding)
    lines: list[Line] = []
    for first, *others in groups.values():
        lines += text([first])
        if others:
            places = [str(other.location.line) for other in others]
            shown = f"{first_names_and_more(places, 3)}; {command} names each" if command else ", ".join(places)
            lines.append((Span("  "), Span(f"also on {pluralize(len(others), 'line')}: {shown}")))
    return lines


def github(findings: Sequence[Finding]) -> str:
    """Return a workflow command for each finding, which GitHub Actions shows at the line.

    Reference: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    commands = []
    for finding in findings:
        path, line, column = finding.location
        title = f"{finding.code} {RULES[finding.code].title}"
        record = f" [{printable(finding.record, limit=60)}]" if finding.record else ""
        properties = {"file": path.replace(os.sep, "/"), "line": str(line), "col": str(column), "title": title}
        written = ",".join(
            f"{name}={_github_text(value).replace(':', '%3A').replace(',', '%2C')}"
            for name, value in properties.items()
        )
        commands.append(f"::{finding.severity} {written}::{_github_text(finding.message + record)}\n")
    return "".join(commands)


def _github_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def data(findings: Sequence[Finding], limit: int | None = None) -> str:
    """Return all findings as JSON, or the first ones, with the number of all by severity.

    docs/schema/findings.schema.json describes the document.
    """
    from orchtrace_corpus.base.text.table import envelope  # costs start-up

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
    """Return the number of findings, in words."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    parts = [pluralize(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return ", ".join(parts) or "no problems"


def sarif(findings: Sequence[Finding]) -> str:
    """Return SARIF 2.1.0, which code hosts and editors read: one run with the broken rules and all results.

    Reference: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
    """
    import json

    codes = sorted({finding.code for finding in findings})
    driver = {"name": "orchtrace-corpus", "version": __version__, "rules": [_sarif_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, codes.index(finding.code)) for finding in findings],
    }
    report = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return escape_controls(json.dumps(report, ensure_ascii=False, indent=2)) + "\n"


def _sarif_rule(code: str) -> dict[str, object]:
    rule, entry = RULES[code], explanation(code)
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": f"{entry.why}\n\nInstead of\n\n{entry.bad}\n\nwrite\n\n{entry.good}"},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _sarif_result(finding: Finding, rule_index: int) -> dict[str, object]:
    from pathlib import Path
    from urllib.parse import quote

    place = finding.location
    # Relative to the working folder if possible, with forward slashes.
    uri = Path(place.path).as_uri() if os.path.isabs(place.path) else quote(place.path.replace(os.sep, "/"))
    physical = {"artifactLocation": {"uri": uri}, "region": {"startLine": place.line, "startColumn": place.column}}
    location: dict[str, object] = {"physicalLocation": physical}
    if finding.record:
        location["logicalLocations"] = [{"name": finding.record, "kind": "member"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity.value,
        "message": {"text": finding.message},
        "locations": [location],
    }
