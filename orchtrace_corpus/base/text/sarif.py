"""Findings as SARIF 2.1.0, which code hosts and editors read.

Reference: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import json
import os
from collections.abc import Sequence

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.findings import RULES, Finding, explanation, unobeyed

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def document(findings: Sequence[Finding]) -> str:
    """One run of our tool, with the rules that were broken and a result for each finding."""
    codes = sorted({finding.code for finding in findings})
    driver = {"name": "orchtrace-corpus", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in findings],
    }
    report = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return unobeyed(json.dumps(report, ensure_ascii=False, indent=2)) + "\n"


def _rule(code: str) -> dict[str, object]:
    rule, entry = RULES[code], explanation(code)
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": f"{entry.why}\n\nInstead of\n\n{entry.bad}\n\nwrite\n\n{entry.good}"},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, object]:
    place = finding.location
    physical = {
        "artifactLocation": {"uri": _uri(place.path)},
        "region": {"startLine": place.line, "startColumn": place.column},
    }
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


def _uri(path: str) -> str:
    """The path as a URI reference: relative to the working folder where it can be, with forward slashes."""
    from pathlib import Path
    from urllib.parse import quote

    return Path(path).as_uri() if os.path.isabs(path) else quote(path.replace(os.sep, "/"))
