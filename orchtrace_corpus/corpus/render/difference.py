"""What a change means, in words: for a terminal and for programs; `comment` has it for a pull request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

from orchtrace_corpus.base.findings import Finding, printable
from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import Line, Span, clip, line, wrap
from orchtrace_corpus.base.text.table import Table, envelope
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.difference import Change, Changed, Difference, EntryChange
from orchtrace_corpus.corpus.analysis.state_changes import Shift
from orchtrace_corpus.corpus.model.record_fields import Value, fields
from orchtrace_corpus.corpus.model.records import Record

_PIPE_WIDTH = 100
_SHOWN_VALUE = 300
_SHOWN_SENTENCE = 2000
_ABSENT = "(none)"
_UNREAD = "(cannot be read)"
_LONG_TEXTS = frozenset({"summary", "notes", "reason", "near_miss"})
_MANY_ALIKE = 3
"""So many papers with the same change of tags are told in one sentence."""


def text(change: Difference, width: int | None) -> list[Line]:
    """The change for a terminal."""
    room = width or _PIPE_WIDTH
    told = headline(change) if change.has_meaning else nothing(change)
    lines = [line(part) for sentence in (told, *change.remarks) for part in wrap(printable(sentence, limit=500), room)]
    for title, sentences in sections(change):
        lines += [(), (Span(title, "heading"),)]
        lines += [line(part) for sentence in sentences for part in wrap(sentence, room, first="  ", rest="    ")]
    for one in shift_tables(change):
        lines += [(), *table.lines(one, width)]
    left = claims_left(change) if change.has_meaning else ""
    return [*lines, *([(), line(left)] if left else [])]


def nothing(change: Difference) -> str:
    """What there is to say where nothing has changed in meaning."""
    what = [f"the order of {noun}" for noun in change.reordered]
    what += [form.value if form == "comments" else f"the {form.value}" for form in change.form]
    if not what:
        return "No change: the data is the same."
    joined = f"{', '.join(what[:-1])} and {what[-1]}" if len(what) > 1 else what[0]
    return f"No change in meaning: only {joined} changed."


def headline(change: Difference) -> str:
    """The change in a line."""
    parts = [
        _number(change.added, "paper added", "papers added"),
        _number(change.removed, "paper removed", "papers removed"),
        _number([one for one in change.changed if _is_renamed(one)], "renamed", "renamed"),
        _number([one for one in change.changed if one.tags], "retagged", "retagged"),
        _number([one for one in change.changed if one.rest and not _is_only_renamed(one)], "corrected", "corrected"),
        _number(change.excluded, "exclusion added", "exclusions added"),
        _number(change.readmitted, "exclusion removed", "exclusions removed"),
        _number(change.rescreened, "exclusion changed", "exclusions changed"),
        _number(change.taxonomy, "change of the taxonomy", "changes of the taxonomy"),
        _number([one for one in change.claims if one[0] is None], "claim new", "claims new"),
        _number([one for one in change.claims if _broke(one)], "claim broken", "claims broken"),
        _number([one for one in change.claims if _made(one)], "claim made true", "claims made true"),
        _number(change.claims_reworded, "claim changed", "claims changed"),
        _number(change.claims_gone, "claim gone", "claims gone"),
        _number(change.beside, "other data file changed", "other data files changed"),
        _number(change.findings_new, "finding new", "findings new"),
        _number(change.findings_gone, "finding gone", "findings gone"),
    ]
    return ", ".join(part for part in parts if part) + "."


def sections(change: Difference, *, longest: int = _SHOWN_SENTENCE) -> Iterator[tuple[str, list[str]]]:
    """Headings, each with its sentences; empty ones left out."""
    promoted = {paper.key: name for name, paper in change.promoted.items()}
    demoted = {paper.key: name for name, paper in change.demoted.items()}
    parts: dict[str, list[str]] = {
        "Claims broken": [_claim(pair[1]) for pair in change.claims if _broke(pair)],
        "Papers added": [
            f"{paper.key}: {paper.title}{_from(promoted.get(paper.key), 'promoted from')} ({_tags(paper, change)})"
            for paper in change.added
        ],
        "Papers removed": [
            f"{paper.key}: {paper.title}{_from(demoted.get(paper.key), 'excluded as')}" for paper in change.removed
        ],
        "Papers renamed": [f"{one.before.name} is {one.after.name} now" for one in change.changed if _is_renamed(one)],
        "Papers retagged": _retagged(change.changed),
        "Papers corrected": [
            _changed(one.after, rest)
            for one in change.changed
            if (rest := [part for part in one.rest if part.field != "key"])
        ],
        "Exclusions added": [f"{one.id}: {one.title} ({one.reason})" for one in change.excluded],
        "Exclusions removed": [f"{one.id}: {one.title}" for one in change.readmitted],
        "Exclusions changed": [_changed(one.after, (*one.tags, *one.rest)) for one in change.rescreened],
        "Taxonomy": [f"{sentence[0].upper()}{sentence[1:]}." for sentence in change.taxonomy],
        "Claims made true": [_claim(pair[1]) for pair in change.claims if _made(pair)],
        "Claims new": [_claim(pair[1]) for pair in change.claims if pair[0] is None],
        "Claims changed": [f"{claim.id}: {claim.claim}" for claim in change.claims_reworded],
        "Claims gone": [f"{claim.id}: {claim.claim}" for claim in change.claims_gone],
        "Other data files changed": [_beside(name, change.entries.get(name, ())) for name in change.beside],
        "Findings new": [_finding(finding) for finding in change.findings_new],
        "Findings gone": [_finding(finding) for finding in change.findings_gone],
    }
    for title, sentences in parts.items():
        if sentences:
            yield title, [printable(sentence, limit=longest) for sentence in sentences]


def shift_tables(change: Difference) -> list[Table]:
    """The counts that shifted, and the cells that turned."""
    totals = [shift for shift in change.totals if shift.before != shift.after]
    tables = []
    counts = [("total", shift.field[0], *_numbers(shift)) for shift in totals]
    counts += [(shift.field[0], shift.value[0], *_numbers(shift)) for shift in change.counts]
    if counts:
        tables.append(Table("counts", "Counts", ("field", "value", "before", "after", "change"), tuple(counts)))
    cells = tuple(
        (" x ".join(shift.field), " x ".join(shift.value), *_numbers(shift)[:2], shift.turn) for shift in change.cells
    )
    if cells:
        tables.append(Table("cells", "Cells", ("fields", "values", "before", "after", "what"), cells))
    return tables


def claims_left(change: Difference) -> str:
    """How many claims the change leaves as they were; nothing where there is none."""
    if not change.claims_left:
        return ""
    return f"{change.claims_left} {'claim is' if change.claims_left == 1 else 'claims are'} as before."


def value_text(value: Value | None) -> str:
    """The value of a field in a line."""
    if value is None:
        return _ABSENT
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_text(one)}" for name, one in value.items()) or "none arises"
    return "; ".join(value_text(one) for one in value)


def data(change: Difference) -> str:
    """The change for programs; docs/schema/diff.schema.json describes the document."""
    return envelope(
        "diff",
        {
            "before": change.names[0],
            "after": change.names[1],
            "has_meaning": change.has_meaning,
            "reordered": list(change.reordered),
            "form": [form.value for form in change.form],
            "remarks": list(change.remarks),
            "papers": {
                "added": [dict(fields(paper, change.vocabulary)) for paper in change.added],
                "removed": [paper.key for paper in change.removed],
                "changed": [_changed_data(one) for one in change.changed],
            },
            "exclusions": {
                "added": [dict(fields(one, change.vocabulary)) for one in change.excluded],
                "removed": [one.id for one in change.readmitted],
                "changed": [_changed_data(one) for one in change.rescreened],
            },
            "promoted": {name: paper.key for name, paper in change.promoted.items()},
            "demoted": {paper.key: name for name, paper in change.demoted.items()},
            "taxonomy": list(change.taxonomy),
            "totals": {shift.field[0]: [shift.before, shift.after] for shift in change.totals},
            "counts": [_shift_data(shift) for shift in change.counts],
            "cells": [{**_shift_data(shift), "turn": shift.turn} for shift in change.cells],
            "findings": {
                "new": [_finding_data(finding) for finding in change.findings_new],
                "gone": [_finding_data(finding) for finding in change.findings_gone],
            },
            "claims": {
                "changed": [
                    {
                        "id": now.claim.id,
                        "claim": now.claim.claim,
                        "before": None if was is None else was.holds,
                        "after": now.holds,
                        "expected": now.expected,
                        "found": now.found,
                    }
                    for was, now in change.claims
                ],
                "reworded": [claim.id for claim in change.claims_reworded],
                "gone": [claim.id for claim in change.claims_gone],
                "left": change.claims_left,
            },
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
        },
    )


def _number(things: Sized, one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}" if things else ""


def _made(pair: tuple[Verdict | None, Verdict]) -> bool:
    return pair[0] is not None and pair[1].holds


def _broke(pair: tuple[Verdict | None, Verdict]) -> bool:
    return pair[0] is not None and not pair[1].holds


def _is_renamed(one: Changed) -> bool:
    return any(change.field == "key" for change in one.rest)


def _is_only_renamed(one: Changed) -> bool:
    return all(change.field == "key" for change in one.rest)


def _tags(record: Record, change: Difference) -> str:
    shown = fields(record, change.vocabulary)
    return ", ".join(f"{name} {value_text(shown[name])}" for name in record.tags if name in shown)


def _from(name: str | None, word: str) -> str:
    return f", {word} {name}" if name else ""


def _retagged(changed: Iterable[Changed]) -> list[str]:
    """A sentence for each paper, or for several that were retagged in the same way."""
    alike: dict[str, list[Changed]] = {}
    for one in changed:
        if one.tags:
            alike.setdefault("; ".join(_change(change) for change in one.tags), []).append(one)
    sentences = []
    for shown, group in alike.items():
        names = [one.after.name for one in group]
        if len(names) < _MANY_ALIKE:
            sentences += [f"{name}: {shown}" for name in names]
        else:
            sentences.append(f"{len(names)} papers: {shown} ({', '.join(names)})")
    return sentences


def _changed(record: Record, changes: Iterable[Change]) -> str:
    return f"{record.name}: {'; '.join(_change(change) for change in changes)}"


def _change(change: Change) -> str:
    if change.is_unread:
        sides = [_UNREAD if side is None else clip(value_text(side), _SHOWN_VALUE) for side in change[1:3]]
        is_list = _is_list_of_parts(change.before) or _is_list_of_parts(change.after)
        return f"{change.field}: {_UNREAD}" if is_list else f"{change.field}: {sides[0]} -> {sides[1]}"
    if _is_list_of_parts(change.before) or _is_list_of_parts(change.after):
        return f"{change.field}: {_parts(change)}"
    before, after = (clip(value_text(side), _SHOWN_VALUE) for side in (change.before, change.after))
    if change.field in _LONG_TEXTS and change.before is not None and change.after is not None:
        return f"{change.field} reworded"
    if change.before is None:
        return f"{change.field} added: {after}"
    if change.after is None:
        return f"{change.field} removed: {before}"
    return f"{change.field}: {before} -> {after}"


def _is_list_of_parts(value: Value | None) -> bool:
    """Whether a value is a list of mappings, such as evidence."""
    return isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(one, Mapping) for one in value)


def _parts(change: Change) -> str:
    """What became of the items of a list: told in numbers, since each is a paragraph."""
    before, after = (
        [one for one in side or () if isinstance(one, Mapping)]  # type: ignore[union-attr]
        for side in (change.before, change.after)
    )
    added = [one for one in after if one not in before]
    removed = [one for one in before if one not in after]
    reworked = min(len(added), len(removed))
    numbers = {"changed": reworked, "added": len(added) - reworked, "removed": len(removed) - reworked}
    return ", ".join(f"{number} {what}" for what, number in numbers.items() if number)


def _claim(verdict: Verdict) -> str:
    state = "holds" if verdict.holds else f"fails: expected {verdict.expected}; found {verdict.found}"
    return f"{verdict.claim.id} {state}. {verdict.claim.claim}"


def _beside(name: str, entries: Sequence[EntryChange]) -> str:
    """A file beside the records, with its entries that are other ones now."""
    told = []
    for one in entries:
        what = "added" if one.is_new else "removed" if one.is_gone else f"{', '.join(one.fields)} changed"
        told.append(f"{' '.join(one.name)} {what}")
    return f"{name}: {'; '.join(told)}" if told else name


def _finding(finding: Finding) -> str:
    record = f" [{finding.record}]" if finding.record else ""
    return f"{finding.location.path}: {finding.code} {finding.message}{record}"


def _numbers(shift: Shift) -> tuple[int, int, str]:
    return shift.before, shift.after, f"{shift.after - shift.before:+d}"


def _changed_data(one: Changed) -> dict[str, Any]:
    return {
        "name": one.after.name,
        "was": one.before.name,
        "changes": [
            {"field": change.field, "before": change.before, "after": change.after}
            | ({"unread": True} if change.is_unread else {})
            for change in (*one.tags, *one.rest)
        ],
    }


def _shift_data(shift: Shift) -> dict[str, Any]:
    return {"fields": list(shift.field), "values": list(shift.value), "before": shift.before, "after": shift.after}


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "severity": finding.severity, "message": finding.message, "record": finding.record}
