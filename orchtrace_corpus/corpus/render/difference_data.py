"""The meaning of a change for programs: the document that docs/schema/diff.schema.json describes.

Texts for people are made from this document alone, so that a comment on a pull request can be written where no code of
that pull request runs; see `comment`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.corpus.analysis.difference import ClaimTurn, Difference

MAX_FILES = 1000
"""The most files outside the data that are named; the others are counted."""


def document(change: Difference) -> dict[str, Any]:
    """Return the change as a JSON document, without its envelope."""
    return {
        "noun": list(change.vocabulary.noun),
        "before": change.names[0],
        "after": change.names[1],
        "has_meaning": change.has_meaning,
        **{name: _plain(getattr(change, name)) for name in ("remarks", "files", "moved", "to_judge")},
        "totals": {shift.fields[0]: [shift.before, shift.after] for shift in change.totals},
        "counts": _plain(change.counts),
        "cells": [{**_plain(shift), "turn": shift.turn} for shift in change.cells],
        "findings": {
            "new": list(map(_finding, change.findings_new)),
            "gone": list(map(_finding, change.findings_gone)),
        },
        "claims": {
            "changed": list(map(_claim, change.claims)),
            "left": change.claims_left,
            "falling": list(change.claims_falling),
        },
        "outside": _outside(change.outside),
    }


def _plain(value: Any) -> Any:
    """Return named tuples as mappings, and other tuples as lists."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def refusal(names: tuple[str, str], outside: Sequence[str], reason: str) -> dict[str, Any]:
    """Return the document of a pull request whose data cannot be compared."""
    return {"before": names[0], "after": names[1], "refused": reason, "outside": _outside(outside)}


def _outside(files: Sequence[str]) -> dict[str, Any]:
    return {"total": len(files), "files": list(files[:MAX_FILES])}


def _claim(turn: ClaimTurn) -> dict[str, Any]:
    was, now = turn
    return {
        "id": now.claim.id,
        "turn": turn.turn,
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


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.location.path,
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "record": finding.record,
    }
