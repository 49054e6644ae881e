"""Claims: which hold, what is behind each, and what it takes to break it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import Line, Span, display_width, entry, line, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Table, envelope, markdown_text
from orchtrace_corpus.corpus.analysis.claim_readings import ReadingVerdict
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.model.claim_file import Claim, NarrowReading, PoolName, Share
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.model.tag_rules import Condition
from orchtrace_corpus.corpus.render.pools import FOUND_OVER, awaited_data, pool_data, pools_of, pools_text
from orchtrace_corpus.corpus.render.readings import agreed_text, reading_data

if TYPE_CHECKING:  # only who asks for stress needs them
    from orchtrace_corpus.corpus.analysis.changes import Change
    from orchtrace_corpus.corpus.analysis.stress import Robustness

_PIPE_WIDTH = 100
_MOST_ROWS = 20
"""How many records a claim names in full; of more, those that are contested."""
_CANDIDATE_COLUMNS = ("candidates", "candidates_fall_by", "could_fall_by")


def flat(
    verdicts: Sequence[Verdict], robust: "Mapping[str, Robustness]", compared: Mapping[str, ReadingVerdict] = {}
) -> Table:
    """Every claim with all that can be told in one row; arguments as for `overview`."""
    columns = ("claim", "holds", "sentence", "expected", "found", "rows", "contested", "boundary", "source")
    rows: list[tuple[Cell, ...]] = []
    shown = pools_of(verdicts)
    for verdict in verdicts:
        claim = verdict.claim
        told = (claim.id, "yes" if verdict.holds else "no", claim.claim, verdict.expected, verdict.found)
        pools: list[Cell] = []
        for name in shown:
            over = verdict.pools.get(name)
            if name is not PoolName.PUBLISHED:
                pools += (None, ()) if over is None else ("yes" if over.holds else "no", over.falls_by)
            if name is PoolName.CANDIDATES:
                pools.append(over.could_fall_by if over else ())
        stressed = robust.get(claim.id)
        changes = (tuple(str(change) for change in stressed.smallest),) if stressed else ()
        one = compared.get(claim.id)
        readings = ("yes" if one.published else "no", tuple(map(agreed_text, one.falls_by))) if one else ()
        rows.append((*told, verdict.rows, verdict.contested, claim.boundary, claim.source, *pools, *readings, *changes))
    of_pools = {PoolName.TODAY: ("today", "falls_by"), PoolName.CANDIDATES: _CANDIDATE_COLUMNS}
    further = (
        *(one for name in shown for one in of_pools.get(name, ())),
        *(("published_reading", "falls_by_readings") if compared else ()),
        *(("smallest_break",) if robust else ()),
    )
    return Table("claims", "", (*columns, *further), tuple(rows))


def summary(verdicts: Sequence[Verdict], compared: Mapping[str, ReadingVerdict] = {}) -> str:
    """How many hold, in words; those that hold as published fall."""
    failing = [verdict.claim.id for verdict in verdicts if not verdict.holds]
    number = pluralize(len(verdicts), "claim")
    if not failing:
        return f"{number} hold{'s' * (len(verdicts) == 1)}"
    verb = "fall" if compared and all(compared[name].published for name in failing) else "fail"
    return f"{len(failing)} of {number} {verb}{'s' * (len(failing) == 1)}: {', '.join(failing)}"


def beside_notes(ids: Sequence[str]) -> tuple[str, ...]:
    """Which claims hold although something else in them is wrong; nothing where there is none."""
    if not ids:
        return ()
    verb = "holds, but names" if len(ids) == 1 else "hold, but name"
    named = ", ".join(map(printable, ids))
    return (f"{len(ids)} of these {verb} records that are not there, or are not counted: {named}",)


def unread_notes(unread: Sequence[str]) -> tuple[str, ...]:
    """How many claims could not be read, and which of them have an id; nothing where all could."""
    if not unread:
        return ()
    named = ", ".join(printable(name) for name in unread if name)
    number = f"{pluralize(len(unread), 'claim')} could not be read"
    return (f"{number}: {named}" if named else number,)


def cards(
    verdicts: Sequence[Verdict],
    robust: "Mapping[str, Robustness]",
    unread: Sequence[str],
    width: int | None,
    compared: Mapping[str, ReadingVerdict] = {},
) -> list[Line]:
    """Some claims in full, a blank line between two, then how many could not be read."""
    shown = [card(verdict, robust.get(verdict.claim.id), width, compared.get(verdict.claim.id)) for verdict in verdicts]
    shown += [[line(note)] for note in unread_notes(unread)]
    return [part for block in shown for part in ((), *block)][1:]


def cards_markdown(
    verdicts: Sequence[Verdict],
    robust: "Mapping[str, Robustness]",
    unread: Sequence[str],
    compared: Mapping[str, ReadingVerdict] = {},
) -> str:
    """The same as Markdown sections."""
    sections = [
        card_markdown(verdict, robust.get(verdict.claim.id), compared.get(verdict.claim.id)) for verdict in verdicts
    ]
    return "\n".join((*sections, *(f"{note}\n" for note in unread_notes(unread))))


def card(
    verdict: Verdict, robustness: "Robustness | None", width: int | None, compared: ReadingVerdict | None = None
) -> list[Line]:
    """One claim for people, with everything behind it and against it."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    style = "explicit" if verdict.holds else "warning"
    lines: list[Line] = [(Span(verdict.claim.id, "key"), Span("  "), Span(verdict_word(verdict, compared), style))]
    lines += [line(text, "heading") for text in wrap(verdict.claim.claim, available)]
    entries = list(_entries(verdict, robustness, compared))
    label_width = max(display_width(label) for label, _ in entries) + 2
    for label, text in entries:
        lines += entry(label, text, label_width, available)
    return lines


def card_markdown(verdict: Verdict, robustness: "Robustness | None", compared: ReadingVerdict | None = None) -> str:
    """One claim as a Markdown section."""
    items = (f"- **{label}**: {markdown_text(text)}" for label, text in _entries(verdict, robustness, compared))
    head = f"## {markdown_text(verdict.claim.id)}: {verdict_word(verdict, compared)}"
    return "\n".join((head, "", markdown_text(verdict.claim.claim), "", *items)) + "\n"


def data(
    verdicts: Sequence[Verdict],
    robust: "Mapping[str, Robustness]",
    unread: Sequence[str] = (),
    beside: Sequence[str] = (),
    reading: ReadingName = ReadingName.PUBLISHED,
    compared: Mapping[str, ReadingVerdict] = {},
) -> str:
    """Claims for programs: the verdict, what is behind it, and what breaks it; arguments as for `overview`."""
    holding = sum(verdict.holds for verdict in verdicts)
    numbers = {"hold": holding, "fail": len(verdicts) - holding, "unread": len(unread), "flawed": list(beside)}
    told = [_mapping(verdict, robust.get(verdict.claim.id), compared.get(verdict.claim.id)) for verdict in verdicts]
    return envelope("claims", {"reading": reading.value, **numbers, "claims": told})


def verdict_word(verdict: Verdict, compared: ReadingVerdict | None = None) -> str:
    """Whether a claim holds: it fails as it is written; it falls by another reading, or over another pool."""
    return "holds" if verdict.holds else "falls" if compared is not None and compared.published else "fails"


def _entries(
    verdict: Verdict, robustness: "Robustness | None", compared: ReadingVerdict | None
) -> Iterator[tuple[str, str]]:
    claim = verdict.claim
    yield "expected", verdict.expected
    yield "found", verdict.found
    pools = pools_text(verdict.pools, verdict_word(verdict, compared))
    if pools:
        beyond = ((name, one) for name, one in verdict.pools.items() if name in FOUND_OVER and not one.holds)
        told = "; ".join(f"{FOUND_OVER[name]}: {one.found}" for name, one in beyond)
        yield "pools", f"{pools} ({told})" if told else pools
    if compared is not None:
        yield "reading", f"sources; published: {'holds' if compared.published else 'fails'}"
        yield from (("falls by", agreed_text(dispute, sourced=True)) for dispute in compared.falls_by)
    if len(claim.over) > 1 or claim.over[0] != "papers":
        yield "over", " and ".join(claim.over)
    for name, conditions in (("scope", claim.scope), ("share of", _share_of(claim)), ("where", claim.where)):
        if conditions:
            yield name, " ".join(_filters(conditions))
    if len(verdict.rows) > _MOST_ROWS:
        contested = ", ".join(key for key in verdict.rows if key in verdict.contested)
        yield f"rows ({len(verdict.rows)})", f"contested: {contested or 'none'}; all: --format json"
    else:
        marked = [f"{key} (contested)" if key in verdict.contested else key for key in verdict.rows]
        yield f"rows ({len(verdict.rows)})", ", ".join(marked) or "none"
    beside = [key for key in verdict.contested if key not in verdict.rows]
    if beside:
        yield "contested", f"{', '.join(beside)}: would count in another reading on record"
    for reading in claim.readings:
        counted, left_out = _counted(reading, verdict)
        rest = f" Not counted here: {', '.join(left_out)}." if left_out else ""
        yield f"{reading.name} ({len(counted)})", f"{', '.join(counted) or 'none'}: {reading.why}{rest}"
    yield "boundary", claim.boundary
    for counter in claim.counter:
        about = f"{', '.join(counter.rows)}: " if counter.rows else ""
        yield "against", f"{counter.strength}; {about}{counter.note} ({counter.source.rstrip('.')})"
    yield "source", claim.source
    if robustness is not None and robustness.holds:
        yield from stress_entries(robustness)


def _counted(reading: NarrowReading, verdict: Verdict) -> tuple[list[str], list[str]]:
    """The records of a narrow reading that the claim counts here, and those that it does not, as by the sources."""
    if verdict.problem:
        return list(reading.keys), []
    counted = [key for key in reading.keys if key in verdict.rows]
    return counted, [key for key in reading.keys if key not in counted]


def _reading_mapping(reading: NarrowReading, verdict: Verdict) -> dict[str, Any]:
    counted, left_out = _counted(reading, verdict)
    return {**reading._asdict(), "keys": counted, "not_counted": left_out}


def _share_of(claim: Claim) -> tuple[Condition, ...]:
    """The filters on the records that a share is taken of."""
    return claim.expect.of if isinstance(claim.expect, Share) else ()


def stress_entries(found: "Robustness") -> Iterator[tuple[str, str]]:
    """What breaks a claim, as labels and texts."""
    if found.smallest:
        sure = "" if found.is_exact else "at most "
        yield "breaks by", f"{sure}{pluralize(len(found.smallest), 'change')}: {_said(found.smallest)}"
    else:
        yield "breaks by", "no set of these changes" if found.is_exact else "no set of these changes that was tried"
    groups = (
        ("disputes", found.flips, found.breaks_by_all_flips, "no dispute concerns it"),
        ("near misses", found.near_misses, found.breaks_by_all_near_misses, "no near miss concerns it"),
    )
    for label, alone, at_once, nothing in groups:
        if at_once is None:
            yield label, nothing
            continue
        together = "all at once break it" if at_once else "all at once do not break it"
        yield label, f"{_alone(alone)}; {together}"
    yield "rows left out", _alone(found.left_out)


def _alone(changes: "Sequence[Change]") -> str:
    from orchtrace_corpus.corpus.analysis.changes import ChangeKind

    if not changes:
        return "none breaks it alone"
    if changes[0].kind is ChangeKind.LEAVE_OUT:
        return f"any of {len(changes)} breaks it: {', '.join(change.record for change in changes)}"
    return f"{len(changes)} break{'s' * (len(changes) == 1)} it alone: {_said(changes)}"


def _said(changes: "Sequence[Change]") -> str:
    """Changes in words; near misses that are taken in with the same tags are named together."""
    groups: dict[str, list[str]] = {}
    for change in changes:
        groups.setdefault(str(change).removeprefix(change.record), []).append(change.record)
    return "; ".join(f"{', '.join(records)}{what}" for what, records in groups.items())


def _mapping(verdict: Verdict, robustness: "Robustness | None", compared: ReadingVerdict | None) -> dict[str, Any]:
    claim = verdict.claim
    mapping: dict[str, Any] = {
        "id": claim.id,
        "claim": claim.claim,
        "holds": verdict.holds,
        "expected": verdict.expected,
        "found": verdict.found,
        "rows": list(verdict.rows),
        "contested": list(verdict.contested),
        "pools": {
            name.value: pool_data(pool) | (awaited_data(pool) if name is PoolName.CANDIDATES else {})
            for name, pool in verdict.pools.items()
        },
        "over": list(claim.over),
        "scope": _filters(claim.scope),
        "where": _filters(claim.where),
        "of": _filters(_share_of(claim)),
        "readings": [_reading_mapping(reading, verdict) for reading in claim.readings],
        "boundary": claim.boundary,
        "counter": [{**item._asdict(), "rows": list(item.rows)} for item in claim.counter],
        "source": claim.source,
    }
    if compared is not None:
        mapping["published_reading"] = reading_data(compared)
    if robustness is not None:
        mapping["stress"] = _stress_mapping(robustness) if robustness.holds else None
    return mapping


def _filters(conditions: Sequence[Condition]) -> list[str]:
    """The conditions as they are written on the command line."""
    fields = (one.field if one.field.endswith(("!", "<", ">", "=", "~")) else f"{one.field}=" for one in conditions)
    written = (f"{field}{','.join(one.alternatives)}" for field, one in zip(fields, conditions, strict=True))
    return [printable(text, limit=1000) for text in written]


def _stress_mapping(found: "Robustness") -> dict[str, Any]:
    return {
        "disputes": {"alone": _changes(found.flips), "all_break_it": found.breaks_by_all_flips},
        "near_misses": {"alone": _changes(found.near_misses), "all_break_it": found.breaks_by_all_near_misses},
        "left_out": {"alone": _changes(found.left_out)},
        "smallest": _changes(found.smallest) if found.smallest else None,
        "exact": found.is_exact,
    }


def _changes(changes: "Sequence[Change]") -> list[dict[str, Any]]:
    return [
        {
            "kind": change.kind.value,
            "record": change.record,
            **({"tag": change.tag, "value": change.value} if change.tag else {}),
            **({"tags": dict(change.tags)} if change.tags else {}),
            **({"settled": True} if change.is_settled else {}),
        }
        for change in changes
    ]
