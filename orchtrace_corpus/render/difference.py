"""What a change means, for a terminal, for a pull request, and for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.findings import Finding, printable
from orchtrace_corpus.pool.difference import Change, Changed, Difference, Shift
from orchtrace_corpus.pool.edits import Value, fields
from orchtrace_corpus.pool.model import Exclusion, Paper, Record
from orchtrace_corpus.pool.taxonomy import Taxonomy
from orchtrace_corpus.render.layout import Line, Span, clip, line, wrap
from orchtrace_corpus.render.table import Table, envelope, markdown

MARKER = "<!-- corpus diff -->"
"""The first line of the Markdown, by which a bot finds the comment that it wrote before."""

MOST_CHARACTERS = 60_000
"""GitHub takes comments of up to 65,536 characters."""

_PIPE_WIDTH = 100
_SHOWN = 300
_ABSENT = "(none)"


def nothing(change: Difference) -> str:
    """What there is to say where nothing has changed in meaning."""
    if not change.relaid:
        return "No change: the data is the same, byte for byte."
    what = "the order of records" if change.reordered else "comments or layout"
    return f"No change in meaning: only {what} changed."


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
        _number(change.findings_new, "finding new", "findings new"),
        _number(change.findings_gone, "finding gone", "findings gone"),
    ]
    return ", ".join(part for part in parts if part) + "."


def _number(things: Sequence[Any] | Mapping[str, Any], one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}" if things else ""


def _made(pair: Any) -> bool:
    return pair[0] is not None and bool(pair[1].holds)


def _broke(pair: Any) -> bool:
    return pair[0] is not None and not pair[1].holds


def _is_renamed(one: Changed) -> bool:
    return any(change.field == "key" for change in one.rest)


def _is_only_renamed(one: Changed) -> bool:
    return all(change.field == "key" for change in one.rest)


def value_text(value: Value | None) -> str:
    """The value of a field in a line."""
    if value is None:
        return _ABSENT
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_text(one)}" for name, one in value.items()) or "none arises"
    return "; ".join(value_text(one) for one in value)


def _tags(record: Record, taxonomy: Taxonomy) -> str:
    shown = fields(record, taxonomy)
    return ", ".join(f"{name} {value_text(shown[name])}" for name in record.tags if name in shown)


def sections(change: Difference, taxonomy: Taxonomy) -> Iterator[tuple[str, list[str]]]:
    """Headings, each with its sentences; empty ones left out."""
    promoted = {paper.key: name for name, paper in change.promoted.items()}
    demoted = {paper.key: name for name, paper in change.demoted.items()}
    parts: dict[str, list[str]] = {
        "Papers added": [
            f"{paper.key}: {paper.title}{_from(promoted.get(paper.key), 'promoted from')} ({_tags(paper, taxonomy)})"
            for paper in change.added
        ],
        "Papers removed": [
            f"{paper.key}: {paper.title}{_from(demoted.get(paper.key), 'excluded as')}" for paper in change.removed
        ],
        "Papers retagged": [_changed(one, one.tags) for one in change.changed if one.tags],
        "Papers corrected": [_changed(one, one.rest) for one in change.changed if one.rest],
        "Exclusions added": [f"{one.id}: {one.title} ({one.reason})" for one in change.excluded],
        "Exclusions removed": [f"{one.id}: {one.title}" for one in change.readmitted],
        "Exclusions changed": [_changed(one, (*one.tags, *one.rest)) for one in change.rescreened],
        "Taxonomy": [f"{sentence[0].upper()}{sentence[1:]}." for sentence in change.taxonomy],
        "Claims broken": [_claim(pair[1]) for pair in change.claims if _broke(pair)],
        "Claims made true": [_claim(pair[1]) for pair in change.claims if _made(pair)],
        "Claims new": [_claim(pair[1]) for pair in change.claims if pair[0] is None],
        "Findings new": [_finding(finding) for finding in change.findings_new],
        "Findings gone": [_finding(finding) for finding in change.findings_gone],
    }
    for title, sentences in parts.items():
        if sentences:
            yield title, [printable(sentence, limit=2000) for sentence in sentences]


def _from(name: str | None, word: str) -> str:
    return f", {word} {name}" if name else ""


def _changed(one: Changed, changes: Iterable[Change]) -> str:
    shown = "; ".join(_change(change) for change in changes)
    return f"{_name(one.after)}: {shown}"


_LONG_TEXTS = frozenset({"summary", "notes", "reason"})


def _change(change: Change) -> str:
    items = _items_changed(change)
    if items:
        return f"{change.field}: {items}"
    before, after = value_text(change.before), value_text(change.after)
    if change.field in _LONG_TEXTS and change.before is not None and change.after is not None:
        return f"{change.field} reworded"
    if change.before is None:
        return f"{change.field} added: {_clipped(after)}"
    if change.after is None:
        return f"{change.field} removed: {_clipped(before)}"
    return f"{change.field}: {_clipped(before)} -> {_clipped(after)}"


def _items(value: Value | None) -> list[Mapping[str, Value]]:
    """The items of a value that is a list of mappings, such as evidence; none of any other."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [one for one in value if isinstance(one, Mapping)]


def _items_changed(change: Change) -> str:
    """What became of the items of a list, in numbers, since each is a paragraph; empty where it is no such list."""
    before, after = _items(change.before), _items(change.after)
    if not before and not after:
        return ""
    added = [one for one in after if one not in before]
    removed = [one for one in before if one not in after]
    both = min(len(added), len(removed))
    numbers = {"changed": both, "added": len(added) - both, "removed": len(removed) - both}
    return ", ".join(f"{number} {what}" for what, number in numbers.items() if number) or "in another order"


def _clipped(text: str) -> str:
    return clip(text, _SHOWN)


def _name(record: Record) -> str:
    return record.id if isinstance(record, Exclusion) else record.key


def _claim(verdict: Any) -> str:
    state = "holds" if verdict.holds else f"fails: expected {verdict.expected}; found {verdict.found}"
    return f"{verdict.claim.id} {state}. {verdict.claim.claim}"


def _finding(finding: Finding) -> str:
    record = f" [{finding.record}]" if finding.record else ""
    return f"{finding.location.path}: {finding.code} {finding.message}{record}"


def shift_tables(change: Difference) -> list[Table]:
    """The counts that shifted, and the cells that fill or empty."""
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
        tables.append(Table("cells", "Cells that fill or empty", ("fields", "values", "before", "after", ""), cells))
    return tables


def _numbers(shift: Shift) -> tuple[int, int, str]:
    return shift.before, shift.after, f"{shift.after - shift.before:+d}"


def _claims_left(change: Difference) -> str:
    if not change.claims_left:
        return ""
    noun = "claim is" if change.claims_left == 1 else "claims are"
    return f"{change.claims_left} {noun} as before."


def text(change: Difference, taxonomy: Taxonomy, width: int | None) -> list[Line]:
    """The change for a terminal."""
    from orchtrace_corpus.render import table

    room = width or _PIPE_WIDTH
    if not change.has_meaning:
        return [line(nothing(change))]
    lines = [line(part) for part in wrap(headline(change), room)]
    for title, sentences in sections(change, taxonomy):
        lines += [(), (Span(title, "heading"),)]
        lines += [line(part) for sentence in sentences for part in wrap(sentence, room, first="  ", rest="    ")]
    for one in shift_tables(change):
        lines += [(), *table.lines(one, width)]
    left = _claims_left(change)
    return [*lines, *([(), line(left)] if left else [])]


def markdown_comment(change: Difference, taxonomy: Taxonomy) -> str:
    """The change as a comment on a pull request, in which no text of the data can become markup."""
    if not change.has_meaning:
        return f"{MARKER}\n{_plain(nothing(change))}\n"
    parts = [MARKER, f"**{_plain(headline(change))}**", ""]
    for title, sentences in sections(change, taxonomy):
        folded = len(sentences) > 5
        parts += [f"<details><summary>{title} ({len(sentences)})</summary>", ""] if folded else [f"### {title}", ""]
        parts += [f"- {_plain(sentence)}" for sentence in sentences]
        parts += ["", "</details>", ""] if folded else [""]
    parts += [markdown(one).replace("## ", "### ", 1) for one in shift_tables(change)]
    left = _claims_left(change)
    parts += [left] if left else []
    return _bounded("\n".join(parts).rstrip("\n") + "\n")


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = text[:MOST_CHARACTERS].rsplit("\n", 1)[0]
    closing = "\n\n</details>" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{closing}\n\nThe rest is left out: a comment has room for so much only. See `corpus diff`.\n"


_SPECIAL = {character: f"\\{character}" for character in "\\`*_[]<|~"}
_SPECIAL |= {"&": "&amp;", "@": "@\u2060", "#": "#\u2060"}


def _plain(text: str) -> str:
    """The text with nothing in it that could become markup, a mention of a person, or a reference to an issue."""
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    return escaped.replace("://", ":\u2060//").replace("www.", "www\u2060.")


def data(change: Difference, taxonomy: Taxonomy) -> str:
    """The change for programs."""
    return envelope(
        "diff",
        {
            "has_meaning": change.has_meaning,
            "reordered": change.reordered,
            "papers": {
                "added": [_record(paper, taxonomy) for paper in change.added],
                "removed": [paper.key for paper in change.removed],
                "changed": [_changed_data(one) for one in change.changed],
            },
            "exclusions": {
                "added": [_record(one, taxonomy) for one in change.excluded],
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
                "left": change.claims_left,
            },
        },
    )


def _record(record: Paper | Exclusion, taxonomy: Taxonomy) -> dict[str, Any]:
    return dict(fields(record, taxonomy))


def _changed_data(one: Changed) -> dict[str, Any]:
    return {
        "name": _name(one.after),
        "was": _name(one.before),
        "changes": [
            {"field": change.field, "before": change.before, "after": change.after} for change in (*one.tags, *one.rest)
        ],
    }


def _shift_data(shift: Shift) -> dict[str, Any]:
    return {"fields": list(shift.field), "values": list(shift.value), "before": shift.before, "after": shift.after}


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "severity": finding.severity, "message": finding.message, "record": finding.record}
