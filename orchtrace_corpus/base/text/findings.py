"""Findings as lines for people and editors, as JSON, as annotations of GitHub, and as SARIF."""

import os
from collections.abc import Sequence
from enum import StrEnum

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.findings import RULES, Finding, Severity, escape_controls, explanation, printable
from orchtrace_corpus.base.text.layout import Line, Span, first_names_and_more, pluralize

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class FindingsFormat(StrEnum):
    """The formats of a report of findings."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def serialize(findings: Sequence[Finding], output_format: FindingsFormat, limit: int | None = None) -> str:
    """Return the first `limit` findings, or all, in a format for programs; `text` returns `FindingsFormat.TEXT`."""
    if output_format is FindingsFormat.GITHUB:
        return github(findings[:limit])
    if output_format is FindingsFormat.SARIF:
        return sarif(findings[:limit])
    return data(findings, limit)


def text(findings: Sequence[Finding]) -> list[Line]:
    """Return a line for each finding, as `file:line:column: CODE message [record]`."""
    lines: list[Line] = []
    for finding in findings:
        style = "warning" if finding.severity is Severity.ERROR else ""  # the style `warning` is red
        lines.append((Span(str(finding), style),))
    return lines


def folded(findings: Sequence[Finding], command: str = "") -> list[Line]:
    """Return the lines of `text`, but each message once for a file, followed by the other line numbers of the message.

    Args:
        findings: The findings.
        command: A command that lists all findings. If it is given, at most three other line numbers are listed.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.location.path, finding.code, finding.message), []).append(finding)
    lines: list[Line] = []
    for first, *others in groups.values():
        lines += text([first])
        if others:
            line_numbers = [str(other.location.line) for other in others]
            if command:
                listed = f"{first_names_and_more(line_numbers, 3)}; {command} names each"
            else:
                listed = ", ".join(line_numbers)
            lines.append((Span("  "), Span(f"also on {pluralize(len(others), 'line')}: {listed}")))
    return lines


def github(findings: Sequence[Finding]) -> str:
    """Return a workflow command for each finding. GitHub Actions shows the finding at its line.

    Reference: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    commands = []
    for finding in findings:
        path, line, column = finding.location
        title = f"{finding.code} {RULES[finding.code].title}"
        record = f" [{printable(finding.record, limit=60)}]" if finding.record else ""
        properties = {"file": path.replace(os.sep, "/"), "line": str(line), "col": str(column), "title": title}
        escaped = []
        for name, value in properties.items():
            escaped.append(f"{name}={_escape_for_github(value).replace(':', '%3A').replace(',', '%2C')}")
        message = _escape_for_github(finding.message + record)
        commands.append(f"::{finding.severity} {','.join(escaped)}::{message}\n")
    return "".join(commands)


def _escape_for_github(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def data(findings: Sequence[Finding], limit: int | None = None) -> str:
    """Return the first `limit` findings, or all, as JSON, with the numbers of all errors and warnings.

    docs/schema/findings.schema.json describes the document.
    """
    from orchtrace_corpus.base.text.table import envelope  # imported here, because it slows down the start

    errors = _count_errors(findings)
    listed = [
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
    ]
    return envelope("findings", {"errors": errors, "warnings": len(findings) - errors, "findings": listed})


def _count_errors(findings: Sequence[Finding]) -> int:
    return len([finding for finding in findings if finding.severity is Severity.ERROR])


def summary(findings: Sequence[Finding]) -> str:
    """Return the numbers of errors and warnings, in words."""
    errors = _count_errors(findings)
    warnings = len(findings) - errors
    parts = []
    if errors:
        parts.append(pluralize(errors, "error"))
    if warnings:
        parts.append(pluralize(warnings, "warning"))
    return ", ".join(parts) or "no problems"


def sarif(findings: Sequence[Finding]) -> str:
    """Return findings as SARIF 2.1.0, which code hosts and editors read: one run, with the rules that were broken.

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
    rule = RULES[code]
    entry = explanation(code)
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

    path, line, column = finding.location
    # Other paths are relative to the working folder.
    uri = Path(path).as_uri() if os.path.isabs(path) else quote(path.replace(os.sep, "/"))
    region = {"startLine": line, "startColumn": column}
    location: dict[str, object] = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
    if finding.record:
        location["logicalLocations"] = [{"name": finding.record, "kind": "member"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity.value,
        "message": {"text": finding.message},
        "locations": [location],
    }
