"""What a change means, for programs: the document that docs/schema/diff.schema.json describes.

Texts for people are made from this document, not from the records, so that a comment on a pull request can be written
where no code of that pull request runs; see `comment`.
"""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.corpus.analysis.difference import ClaimTurn, Difference
from orchtrace_corpus.corpus.analysis.record_changes import Change, Changed
from orchtrace_corpus.corpus.analysis.state_changes import Shift
from orchtrace_corpus.corpus.model.record_fields import fields
from orchtrace_corpus.corpus.model.records import Record
from orchtrace_corpus.corpus.model.taxonomy import PAPER_NOUN

MAX_FILES = 1000
"""The most files outside the data that are named; the others are counted."""


def document(change: Difference) -> dict[str, Any]:
    """The change as a JSON document, without its envelope."""
    noun = change.vocabulary.noun
    return {
        **({} if noun == PAPER_NOUN else {"noun": list(noun)}),
        "before": change.names[0],
        "after": change.names[1],
        "has_meaning": change.has_meaning,
        "reordered": list(change.reordered),
        "form": [form.value for form in change.form],
        "remarks": list(change.remarks),
        "papers": {
            "added": [dict(fields(paper, change.vocabulary)) for paper in change.added],
            "removed": [_named(paper) for paper in change.removed],
            "changed": [_changed(one) for one in change.changed],
        },
        "exclusions": {
            "added": [dict(fields(one, change.vocabulary)) for one in change.excluded],
            "removed": [_named(one) for one in change.readmitted],
            "changed": [_changed(one) for one in change.rescreened],
        },
        "promoted": {name: paper.key for name, paper in change.promoted.items()},
        "demoted": {paper.key: name for name, paper in change.demoted.items()},
        "to_judge": [
            {"record": one.record, "questions": [topic.value for topic in one.topics]} for one in change.to_judge
        ],
        "taxonomy": list(change.taxonomy),
        "totals": {shift.field[0]: [shift.before, shift.after] for shift in change.totals},
        "counts": [_shift(shift) for shift in change.counts],
        "cells": [{**_shift(shift), "turn": shift.turn} for shift in change.cells],
        "findings": {
            "new": [_finding(finding) for finding in change.findings_new],
            "gone": [_finding(finding) for finding in change.findings_gone],
        },
        "claims": {
            "changed": [_claim(turn) for turn in change.claims],
            "reworded": [{"id": claim.id, "claim": claim.claim} for claim in change.claims_reworded],
            "gone": [{"id": claim.id, "claim": claim.claim} for claim in change.claims_gone],
            "left": change.claims_left,
            "falling": list(change.claims_falling),
        },
        "outside": _outside(change.outside),
        "other_files": list(change.beside),
        "other_entries": {
            name: [
                {
                    "name": list(one.name),
                    "change": "added" if one.is_new else "removed" if one.is_gone else "changed",
                    "fields": list(one.fields),
                }
                for one in entries
            ]
            for name, entries in change.entries.items()
        },
    }


def refusal(names: tuple[str, str], outside: Sequence[str], reason: str) -> dict[str, Any]:
    """The document of a pull request whose data cannot be compared."""
    return {"before": names[0], "after": names[1], "refused": reason, "outside": _outside(outside)}


def _outside(files: Sequence[str]) -> dict[str, Any]:
    return {"total": len(files), "files": list(files[:MAX_FILES])}


def _named(record: Record) -> dict[str, str]:
    return {"name": record.name, "title": record.title}


def _changed(one: Changed) -> dict[str, Any]:
    return {
        "name": one.after.name,
        "was": one.before.name,
        "tags": [_change(change) for change in one.tags],
        "fields": [_change(change) for change in one.rest],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "field": change.field,
        "before": change.before,
        "after": change.after,
        **({"unread": True} if change.is_unread else {}),
        **({"items": [item._asdict() for item in change.items]} if change.items else {}),
    }


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
