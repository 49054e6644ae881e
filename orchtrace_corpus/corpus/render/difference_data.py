"""What a change means, for programs: the document that docs/schema/diff.schema.json describes.

Texts for people are made from this document, not from the records, so that a comment on a pull request can be written
where no code of that pull request runs; see `comment`.
"""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.corpus.analysis.difference import ClaimTurn, Difference
from orchtrace_corpus.corpus.analysis.record_changes import FileDifference, RecordChange, ValueChange
from orchtrace_corpus.corpus.analysis.state_changes import Shift

MAX_FILES = 1000
"""The most files outside the data that are named; the others are counted."""


def document(change: Difference) -> dict[str, Any]:
    """Return the change as a JSON document, without its envelope."""
    return {
        "noun": list(change.vocabulary.noun),
        "before": change.names[0],
        "after": change.names[1],
        "has_meaning": change.has_meaning,
        "remarks": list(change.remarks),
        "files": [_file(file) for file in change.files],
        "promoted": dict(change.promoted),
        "demoted": dict(change.demoted),
        "to_judge": [
            {"path": one.path, "record": one.record, "questions": [topic.value for topic in one.topics]}
            for one in change.to_judge
        ],
        "totals": {shift.field[0]: [shift.before, shift.after] for shift in change.totals},
        "counts": [_shift(shift) for shift in change.counts],
        "cells": [{**_shift(shift), "turn": shift.turn} for shift in change.cells],
        "findings": {
            "new": [_finding(finding) for finding in change.findings_new],
            "gone": [_finding(finding) for finding in change.findings_gone],
        },
        "claims": {
            "changed": [_claim(turn) for turn in change.claims],
            "left": change.claims_left,
            "falling": list(change.claims_falling),
        },
        "outside": _outside(change.outside),
    }


def refusal(names: tuple[str, str], outside: Sequence[str], reason: str) -> dict[str, Any]:
    """The document of a pull request whose data cannot be compared."""
    return {"before": names[0], "after": names[1], "refused": reason, "outside": _outside(outside)}


def _outside(files: Sequence[str]) -> dict[str, Any]:
    return {"total": len(files), "files": list(files[:MAX_FILES])}


def _file(file: FileDifference) -> dict[str, Any]:
    return {
        "path": file.path,
        "subject": file.subject,
        "records": [_record(record) for record in file.records],
        "reordered": [_value(value) for value in file.reordered],
        "comments": [_value(value) for value in file.comments],
    }


def _record(record: RecordChange) -> dict[str, Any]:
    kind = "changed"
    if record.is_new or record.is_gone:
        kind = "added" if record.is_new else "removed"
    values = [_value(value) for value in record.values]
    return {"name": record.name, "was": record.was, "change": kind, "line": record.line, "values": values}


def _value(value: ValueChange) -> dict[str, Any]:
    return {"path": list(value.path), "before": value.before, "after": value.after, "line": value.line}


def _claim(turn: ClaimTurn) -> dict[str, Any]:
    was, now = turn
    return {
        "id": now.claim.id,
        "claim": now.claim.claim,
        "before": None if was is None else was.holds,
        "after": now.holds,
        "expected": now.expected,
        "found": now.found,
        "pools": {
            name.value: {
                "before": was.pools[name].holds if was is not None and name in was.pools else None,
                "after": pool.holds,
                "found": pool.found,
                "falls_by": list(pool.falls_by),
            }
            for name, pool in now.pools.items()
        },
    }


def _shift(shift: Shift) -> dict[str, Any]:
    return {"fields": list(shift.field), "values": list(shift.value), "before": shift.before, "after": shift.after}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.location.path,
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "record": finding.record,
    }
