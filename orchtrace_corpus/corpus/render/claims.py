"""Claims as tables, cards, Markdown and JSON: verdicts over each pool, the records behind them, what breaks them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import layout
from orchtrace_corpus.base.text.layout import Line, Span, first_names_and_more, line, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Table, envelope, markdown_text
from orchtrace_corpus.corpus.analysis.claims import PoolVerdict, Verdict, whole_of
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import NarrowReading, PoolName
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Condition, Noun

if TYPE_CHECKING:  # imported by the options that need them
    from orchtrace_corpus.corpus.analysis.stress import Cause, Change, ReadingVerdict, Robustness
    from orchtrace_corpus.corpus.model.disputes import Dispute

_PIPE_WIDTH = 100
_WIDTH_FOR_SENTENCES = 120
"""The least width of a list that shows the sentence of each claim."""
_SCREEN_WIDTH = 80
"""The width of a list that is shortened to a screen, if the width of the terminal is unknown."""
_MAX_CLAIMS_ON_SCREEN = 20
_MAX_TAGS = 3
"""The most tags that are named for each claim that fails."""
_MAX_ROWS = 20
"""The most records that a claim names; if it counts more, only the contested ones are named."""
_MAX_CANDIDATES = 5
_NO_DOUBT = 5
"""The rank of a claim without doubts, by `doubt_rank` and `_stress_rank`."""
_STRESS_NOTES = (
    "fewest: the changes that it takes to break the claim. disputes: those that break",
    "it alone, read the other way; all: only all at once. near misses, rows: those",
    "that break it taken in or left out; any: each. corpus claims ID --stress: which.",
)
_HINT = "; see --with candidates"
_AS_IF = (
    "as if the candidates proposed for inclusion were entries, first those that only enlarge a share's whole, "
    "and each claim were about all entries:"
)
_POOL_COLUMNS = {
    PoolName.TODAY: ("today", "falls_by"),
    PoolName.CANDIDATES: ("candidates", "candidates_fall_by", "could_fall_by"),
}


class ClaimReport(NamedTuple):
    """Verdicts on claims, for the functions of this module.

    Attributes:
        robust: The changes that break each claim, by its id; empty if not asked for.
        unread: The ids of the claims that could not be read.
        flawed: The ids of claims that hold, but name records that are missing or not counted.
        compared: The verdict on each claim by the published tags, by its id; empty if these are the tags in use.
    """

    verdicts: Sequence[Verdict]
    robust: Mapping[str, "Robustness"] = {}
    unread: Sequence[str] = ()
    flawed: Sequence[str] = ()
    reading: ReadingName = ReadingName.PUBLISHED
    compared: Mapping[str, "ReadingVerdict"] = {}

    def word(self, verdict: Verdict) -> str:
        """Return `holds`, `fails`, or `falls` for a claim that fails only by the reading of the sources."""
        if verdict.holds:
            return "holds"
        compared = self.compared.get(verdict.claim.id)
        return "falls" if compared is not None and compared.published else "fails"

    def entries(self, verdict: Verdict) -> Iterator[tuple[str, str]]:
        """Yield what supports a claim and what speaks against it, as labels and texts."""
        claim = verdict.claim
        compared, robustness = self.compared.get(claim.id), self.robust.get(claim.id)
        yield "expected", verdict.expected
        yield "found", verdict.found
        if any(name is not PoolName.TODAY for name in verdict.pools):
            yield "pools", _pools_text(verdict.pools, self.word(verdict))
        if compared is not None:
            yield "reading", f"sources; published: {'holds' if compared.published else 'fails'}"
            for dispute in compared.falls_by:
                yield "falls by", _agreed_text(dispute, with_source=True)
        if len(claim.over) > 1 or claim.over[0] != "papers":
            yield "over", " and ".join(claim.over)
        for name, conditions in (("scope", claim.scope), ("share of", whole_of(claim)), ("where", claim.where)):
            if conditions:
                yield name, " ".join(_filters(conditions))
        if len(verdict.rows) > _MAX_ROWS:
            contested = ", ".join(key for key in verdict.rows if key in verdict.contested)
            rows = f"contested: {contested or 'none'}; all: --format json"
        else:
            names = [f"{key} (contested)" if key in verdict.contested else key for key in verdict.rows]
            rows = ", ".join(names) or "none"
        yield f"rows ({len(verdict.rows)})", rows
        uncounted = [key for key in verdict.contested if key not in verdict.rows]
        if uncounted:
            yield "contested", f"{', '.join(uncounted)}: would count in another reading on record"
        for reading in claim.readings:
            counted, omitted = _divide_keys(reading, verdict)
            rest = f" Not counted here: {', '.join(omitted)}." if omitted else ""
            yield f"{reading.name} ({len(counted)})", f"{', '.join(counted) or 'none'}: {reading.why}{rest}"
        yield "boundary", claim.boundary
        for counter in claim.counter:
            about = f"{', '.join(counter.rows)}: " if counter.rows else ""
            yield "against", f"{counter.strength}; {about}{counter.note} ({counter.source.rstrip('.')})"
        yield "source", claim.source
        if robustness is not None and robustness.holds:
            yield from _stress_entries(robustness)

    def mapping(self, verdict: Verdict) -> dict[str, Any]:
        """Return a claim with its verdicts and all that is known of it, for JSON."""
        claim = verdict.claim
        compared, robustness = self.compared.get(claim.id), self.robust.get(claim.id)
        pools: dict[str, dict[str, Any]] = {}
        for name, pool in verdict.pools.items():
            fields = {"holds": pool.holds, "found": pool.found, "falls_by": pool.falls_by}
            if name is PoolName.CANDIDATES:
                fields |= {"could_fall_by": pool.could_fall_by, "counted": pool.counted}
                fields |= {"falls_at": pool.falls_at or None, "left_out_by_open_tags": pool.undecided}
            pools[name.value] = fields
        readings = []
        for reading in claim.readings:
            counted, omitted = _divide_keys(reading, verdict)
            readings.append({**reading._asdict(), "keys": counted, "not_counted": omitted})
        mapping: dict[str, Any] = {
            "id": claim.id,
            "claim": claim.claim,
            "holds": verdict.holds,
            "expected": verdict.expected,
            "found": verdict.found,
            "rows": verdict.rows,
            "contested": verdict.contested,
            "pools": pools,
            "over": claim.over,
            "scope": _filters(claim.scope),
            "where": _filters(claim.where),
            "of": _filters(whole_of(claim)),
            "readings": readings,
            "boundary": claim.boundary,
            "counter": [item._asdict() for item in claim.counter],
            "source": claim.source,
        }
        if compared is not None:
            tags = []
            for dispute in compared.falls_by:
                if dispute.agreed is not None:
                    tag = {"record": dispute.record, "tag": dispute.tag, "published": dispute.stands}
                    tags.append(tag | dispute.agreed._asdict())
            mapping["published_reading"] = {"holds": compared.published, "falls_by": tags}
        if robustness is not None:
            mapping["stress"] = _stress_mapping(robustness) if robustness.holds else None
        return mapping


def overview(
    report: ClaimReport,
    chosen: Sequence[PoolName] = (),
    width: int | None = None,
    *,
    is_whole: bool = True,
    note: str = "",
) -> Table:
    """Return a row for each claim, the most doubtful first, with its verdict over each pool or what breaks it.

    Args:
        report: The claims.
        chosen: The pools that have a column; without any, all that the claims were judged over.
        width: The width of the terminal; a narrow list has no sentences.
        is_whole: False shortens the list to a screen: claims without doubts are only counted if not all claims fit.
        note: A further note.
    """
    verdicts, title = report.verdicts, ""
    if report.compared:
        from orchtrace_corpus.corpus.render.statistics import SOURCES_TITLE

        falling = sum(bool(reading.falls_by) for reading in report.compared.values())
        verb = "falls" if falling == 1 else "fall"
        title = f"{SOURCES_TITLE}: {falling} of {pluralize(len(report.compared), 'claim')} {verb} by it"
    flaws = []
    if report.flawed:
        verb = "holds, but names" if len(report.flawed) == 1 else "hold, but name"
        ids = ", ".join(map(printable, report.flawed))
        flaws.append(f"{len(report.flawed)} of these {verb} records that are not there, or are not counted: {ids}")
    flaws += _unread_notes(report.unread)

    def rank(verdict: Verdict) -> tuple[int, int]:
        return _stress_rank(report.robust[verdict.claim.id]) if report.robust else doubt_rank(verdict)

    listed = sorted(verdicts, key=rank)
    is_cut = not is_whole and len(verdicts) > _MAX_CLAIMS_ON_SCREEN
    if is_cut:
        listed = [verdict for verdict in listed if rank(verdict)[0] < _NO_DOUBT]
    others = ""
    if len(listed) < len(verdicts):
        reason = "break by any one record, and by no dispute"
        if not report.robust:
            reason = "hold, and no reading on record contests them"
        others = f"{pluralize(len(verdicts) - len(listed), 'other')} {reason}; --all shows them"
    if report.robust:
        columns: tuple[str, ...] = ("claim", "verdict", "fewest", "disputes", "near misses", "rows")
        stress_rows = [_stress_row(verdict, report.robust[verdict.claim.id]) for verdict in listed]
        notes = [others, *_STRESS_NOTES]
        if all(robustness.holds for robustness in report.robust.values()):  # leave out the column of verdicts
            columns = ("claim", *columns[2:])
            stress_rows = [(row[0], *row[2:]) for row in stress_rows]
        else:
            notes.append("fails: not tested, since the claim fails already.")
        return Table("claims", title, columns, tuple(stress_rows), (*filter(None, notes), *flaws), uncut="claim")
    pools = chosen or pools_of(verdicts)
    rows: list[tuple[Cell, ...]] = []
    for verdict in listed:
        word = report.word(verdict)
        words = tuple(pool_word(verdict, name, word) for name in pools) or (word,)
        rows.append((verdict.claim.id, *words, len(verdict.rows), len(verdict.contested), verdict.claim.claim))
    failing = []
    for verdict in verdicts:
        if verdict.problem:
            failing.append(f"{verdict.claim.id} {verdict.found}")
        elif not verdict.holds:
            reading = report.compared.get(verdict.claim.id)
            tags = [_agreed_text(dispute) for dispute in reading.falls_by] if reading else []
            if not is_whole:
                tags = layout.first_and_more(tags, _MAX_TAGS, "and {} more")
            by = f"; by {'; '.join(tags)}" if tags else ""
            failing.append(f"{verdict.claim.id}: expected {verdict.expected}; found {verdict.found}{by}")
    if not is_whole:
        failing = layout.first_and_more(failing, layout.MAX_LINES, "and {} more; --all shows them")
    later: list[str] = []
    for name in pools:
        if name is PoolName.TODAY:
            later += _today_summary(verdicts)
        elif name is PoolName.CANDIDATES:
            later += _candidates_summary(verdicts, is_named=not is_cut)
    if later and any(name not in verdict.pools for verdict in listed for name in pools):
        later[0] += " (-: not about that pool)"  # without a line of its own, so that all fits on a screen
    notes = [*failing, *filter(None, (_summary(report), *later, others, note)), *flaws]
    columns = ("claim", *(pools or ("verdict",)), "rows", "contested", "sentence")
    if not width:
        width = _SCREEN_WIDTH if is_cut else _WIDTH_FOR_SENTENCES
    if width < _WIDTH_FOR_SENTENCES:
        notes.append("corpus claims ID shows a claim with its sentence")
        return Table("claims", title, columns[:-1], tuple(row[:-1] for row in rows), tuple(notes), uncut="claim")
    return Table("claims", title, columns, tuple(rows), tuple(notes), wrapped="sentence", uncut="claim")


def doubt_rank(verdict: Verdict) -> tuple[int, int]:
    """Return a sort key, the most doubtful claim first: the rank of its first doubt, and minus its contested papers."""
    today = verdict.pools.get(PoolName.TODAY)
    with_candidates = verdict.pools.get(PoolName.CANDIDATES)
    rank = _NO_DOUBT
    if not verdict.holds:
        rank = 0
    elif today is not None and not today.holds:
        rank = 1
    elif with_candidates is not None and not with_candidates.holds:
        rank = 2
    elif with_candidates is not None and with_candidates.could_fall_by:
        rank = 3
    elif verdict.contested:
        rank = 4
    return rank, -len(verdict.contested)


def _stress_rank(robustness: "Robustness") -> tuple[int, int]:
    """Return a sort key, the claim that breaks most easily first; a claim that any one record breaks comes last."""
    rank = _NO_DOUBT
    if not robustness.holds:
        rank = 0
    elif robustness.flips:
        rank = 1
    elif robustness.breaks_by_all_flips:
        rank = 2
    elif len(robustness.smallest) != 1:
        rank = 3
    return rank, -len(robustness.flips)


def _stress_row(verdict: Verdict, robustness: "Robustness") -> tuple[Cell, ...]:
    word = "holds" if verdict.holds else "fails"
    if not robustness.holds:
        return (verdict.claim.id, *(word,) * 5)
    fewest = str(len(robustness.smallest) or "none")
    if robustness.smallest and not robustness.is_exact:
        fewest = f"up to {fewest}"
    flips = _breaking_count(len(robustness.flips), all_break=robustness.breaks_by_all_flips)
    all_misses_break = robustness.breaks_by_all_near_misses
    misses = _breaking_count(len(robustness.near_misses), robustness.near_miss_number, all_break=all_misses_break)
    rows = _breaking_count(len(robustness.left_out), len(verdict.rows), all_break=bool(robustness.left_out))
    return (verdict.claim.id, word, fewest, flips, misses, rows)


def _breaking_count(alone: int, total: int = 0, *, all_break: bool | None) -> str:
    """Return how many changes of a kind break a claim alone, in a word or a number.

    `total` is the number of changes of the kind, 0 if it is not shown. `all_break` says if all changes at once break
    the claim; None if there are no such changes.
    """
    if all_break is None:
        return "-"
    if not alone:
        return "all" if all_break else "none"
    if alone == total:
        return "any"
    return f"{alone} of {total}" if total else str(alone)


def flat_table(report: ClaimReport) -> Table:
    """Return every claim with all that is known of it, a row for each."""
    columns = ["claim", "holds", "sentence", "expected", "found", "rows", "contested", "boundary", "source"]
    later_pools = [name for name in pools_of(report.verdicts) if name is not PoolName.PUBLISHED]
    for name in later_pools:
        columns += _POOL_COLUMNS[name]
    if report.compared:
        columns += ("published_reading", "falls_by_readings")
    if report.robust:
        columns.append("smallest_break")
    words = {True: "yes", False: "no"}
    rows = []
    for verdict in report.verdicts:
        claim = verdict.claim
        row: list[Cell] = [claim.id, words[verdict.holds], claim.claim, verdict.expected, verdict.found]
        row += (verdict.rows, verdict.contested, claim.boundary, claim.source)
        for name in later_pools:
            pool = verdict.pools.get(name)
            cells: tuple[Cell, ...] = (None, (), ())
            if pool is not None:
                cells = (words[pool.holds], pool.falls_by, pool.could_fall_by)
            row += cells[: len(_POOL_COLUMNS[name])]  # only the pool with candidates has the last one
        reading = report.compared.get(claim.id)
        if reading:
            row += (words[reading.published], tuple(map(_agreed_text, reading.falls_by)))
        robustness = report.robust.get(claim.id)
        if robustness:
            row.append(tuple(map(str, robustness.smallest)))
        rows.append(tuple(row))
    return Table("claims", "", tuple(columns), tuple(rows))


def _summary(report: ClaimReport) -> str:
    """Return how many claims hold; empty if all others fail by the reading of the sources, which the title says."""
    failing = [verdict.claim.id for verdict in report.verdicts if not verdict.holds]
    count = pluralize(len(report.verdicts), "claim")
    if not failing:
        return f"{count} holds" if len(report.verdicts) == 1 else f"{count} hold"
    if report.compared and all(report.compared[name].falls_by for name in failing):
        return ""
    verb = "fails" if len(failing) == 1 else "fail"
    return f"{len(failing)} of {count} {verb}: {', '.join(failing)}"


def _unread_notes(unread: Sequence[str]) -> tuple[str, ...]:
    """Return a note on the number and the ids of claims that could not be read; an id can be empty."""
    if not unread:
        return ()
    note = f"{pluralize(len(unread), 'claim')} could not be read"
    ids = ", ".join(printable(name) for name in unread if name)
    return (f"{note}: {ids}",) if ids else (note,)


def cards(report: ClaimReport, width: int | None) -> list[Line]:
    """Return claims in full, then how many could not be read."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    blocks: list[list[Line]] = []
    for verdict in report.verdicts:
        style = "explicit" if verdict.holds else "warning"
        head = (Span(verdict.claim.id, "key"), Span("  "), Span(report.word(verdict), style))
        title = [line(text, "heading") for text in wrap(verdict.claim.claim, available)]
        entries = list(report.entries(verdict))
        label_width = max(layout.display_width(label) for label, _ in entries) + 2
        lines = [head, *title]
        for label, text in entries:
            lines += layout.entry(label, text, label_width, available)
        blocks.append(lines)
    blocks += [[line(note)] for note in _unread_notes(report.unread)]
    return layout.separated(blocks)


def cards_markdown(report: ClaimReport) -> str:
    """Return claims in full, then how many could not be read, as Markdown sections."""
    sections = []
    for verdict in report.verdicts:
        items = (f"- **{label}**: {markdown_text(text)}" for label, text in report.entries(verdict))
        head = f"## {markdown_text(verdict.claim.id)}: {report.word(verdict)}"
        sections.append("\n".join((head, "", markdown_text(verdict.claim.claim), "", *items)) + "\n")
    return "\n".join((*sections, *(f"{note}\n" for note in _unread_notes(report.unread))))


def data(report: ClaimReport) -> str:
    """Return claims in full, with the numbers of those that hold and fail, as JSON."""
    holding = sum(verdict.holds for verdict in report.verdicts)
    numbers = {"hold": holding, "fail": len(report.verdicts) - holding, "unread": len(report.unread)}
    head = {"reading": report.reading.value, **numbers, "flawed": list(report.flawed)}
    return envelope("claims", {**head, "claims": list(map(report.mapping, report.verdicts))})


def _divide_keys(reading: NarrowReading, verdict: Verdict) -> tuple[list[str], list[str]]:
    """Return the records of a narrow reading that the claim counts, and those that it does not count."""
    counted = [key for key in reading.keys if verdict.problem or key in verdict.rows]
    return counted, [key for key in reading.keys if key not in counted]


def _stress_entries(robustness: "Robustness") -> Iterator[tuple[str, str]]:
    """Yield what breaks a claim, as labels and texts."""
    smallest = "no set of these changes"
    if robustness.smallest:
        smallest = f"{pluralize(len(robustness.smallest), 'change')}: {_changes_text(robustness.smallest)}"
    if not robustness.is_exact:
        smallest = f"at most {smallest}" if robustness.smallest else f"{smallest} that was tried"
    yield "breaks by", smallest
    groups = (
        ("dispute", "disputes", robustness.flips, robustness.breaks_by_all_flips),
        ("near miss", "near misses", robustness.near_misses, robustness.breaks_by_all_near_misses),
    )
    for noun, label, changes, all_break in groups:
        if all_break is None:
            yield label, f"no {noun} concerns it"
            continue
        alone = "none breaks it alone"
        if changes:
            verb = "breaks" if len(changes) == 1 else "break"
            alone = f"{len(changes)} {verb} it alone: {_changes_text(changes)}"
        yield label, f"{alone}; all at once {'break' if all_break else 'do not break'} it"
    records = [change.record for change in robustness.left_out]
    breaking = f"any of {len(records)} breaks it: {', '.join(records)}"
    yield "rows left out", breaking if records else "none breaks it alone"


def _changes_text(changes: Sequence["Change"]) -> str:
    """Return changes in words; records with the same change are named together."""
    groups: dict[str, list[str]] = {}
    for change in changes:
        groups.setdefault(str(change).removeprefix(change.record), []).append(change.record)
    return "; ".join(f"{', '.join(records)}{text}" for text, records in groups.items())


def _filters(conditions: Sequence[Condition]) -> list[str]:
    """Return conditions as filters of the command line."""
    filters = []
    for condition in conditions:
        has_operator = condition.field.endswith(("!", "<", ">", "=", "~"))
        field = condition.field if has_operator else f"{condition.field}="
        filters.append(printable(f"{field}{','.join(condition.alternatives)}", limit=1000))
    return filters


def _stress_mapping(robustness: "Robustness") -> dict[str, Any]:
    flips, misses = _changes(robustness.flips), _changes(robustness.near_misses)
    return {
        "disputes": {"alone": flips, "all_break_it": robustness.breaks_by_all_flips},
        "near_misses": {"alone": misses, "all_break_it": robustness.breaks_by_all_near_misses},
        "left_out": {"alone": _changes(robustness.left_out)},
        "smallest": _changes(robustness.smallest) or None,
        "exact": robustness.is_exact,
    }


def _changes(changes: Sequence["Change"]) -> list[dict[str, Any]]:
    mappings = []
    for change in changes:
        fields = change._asdict()
        fields["settled"] = fields.pop("is_settled")
        mappings.append({name: value for name, value in fields.items() if value})
    return mappings


def disputed_text(contested: int, agreed: int, noun: Noun) -> str:
    """Return a note on the column of contested records: their number, and how many the sources' readers agree on."""
    return f"contested: {noun.many} of disputed tags, {contested} in all; --reading sources changes {agreed}"


def reading_word(compared: "ReadingVerdict") -> str:
    """Return the verdict by the reading of the sources: `holds`, `falls`, or `fails` if the published one does."""
    if compared.falls_by:
        return "falls"
    return "holds" if compared.published else "fails"


def _agreed_text(dispute: "Dispute", *, with_source: bool = False) -> str:
    """Return a tag with the value that readers of the sources agree on, and the published one."""
    if dispute.agreed is None:
        raise ValueError(f"nothing is agreed on {dispute.id}")
    text = f"{dispute.record} {dispute.tag} {dispute.agreed.value}, not {dispute.stands}"
    return f"{text} (by {dispute.agreed.rule_text}; {dispute.agreed.source})" if with_source else text


def pools_of(verdicts: Sequence[Verdict]) -> tuple[PoolName, ...]:
    """Return the pools over which claims were judged; empty if there is only the current pool."""
    names = tuple(name for name in PoolName if any(name in verdict.pools for verdict in verdicts))
    return () if names == (PoolName.TODAY,) else names


def _today_summary(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield how many claims about the published pool hold over the current one, or which fail there."""
    judged = [verdict for verdict in verdicts if {PoolName.PUBLISHED, PoolName.TODAY} <= verdict.pools.keys()]
    pools = {verdict.claim.id: verdict.pools[PoolName.TODAY] for verdict in judged}
    falling = [f"{name}{_falls_by_text(pool)}" for name, pool in pools.items() if not pool.holds]
    if falling:
        verb = "falls" if len(falling) == 1 else "fall"
        yield f"over the pool of today {len(falling)} of {len(judged)} {verb}: {'; '.join(falling)}"
    elif judged:
        yield f"over the pool of today {len(judged)} of {len(judged)} hold"


def _candidates_summary(verdicts: Sequence[Verdict], *, is_named: bool) -> Iterator[str]:
    """Yield how many claims hold with the candidates or fail, with their ids if `is_named`, and how many could fail."""
    judged = [verdict for verdict in verdicts if PoolName.CANDIDATES in verdict.pools]
    falling = [verdict.claim for verdict in judged if not verdict.pools[PoolName.CANDIDATES].holds]
    if falling:
        verb = "falls" if len(falling) == 1 else "fall"
        text = f"with the candidates {len(falling)} of {len(judged)} {verb}"
        exact_count = sum(claim.is_exact for claim in falling)
        if exact_count:
            noun = "is an exact count" if exact_count == 1 else "are exact counts"
            text += f"; {exact_count} {noun}, outdated by any addition"
        if is_named:
            text += f": {'; '.join(claim.id for claim in falling)}"
        yield text
    elif judged:
        yield f"with the candidates {len(judged)} of {len(judged)} hold"
    if any(verdict.pools[PoolName.CANDIDATES].falls_at for verdict in judged):
        yield f"falls at N/M: the first N of M candidates make it fall{_HINT}"
    could_fall = sum(bool(verdict.pools[PoolName.CANDIDATES].could_fall_by) for verdict in judged)
    if could_fall:
        yield f"{could_fall} could fall through open tags{_HINT}"


def _pools_text(pools: Mapping[PoolName, PoolVerdict], word: str) -> str:
    """Return the verdict over each pool, and the result where the claim fails.

    `word` is the word for a claim that fails over its own pool.
    """
    texts, results = [], []
    published, today = pools.get(PoolName.PUBLISHED), pools.get(PoolName.TODAY)
    with_candidates = pools.get(PoolName.CANDIDATES)
    if published:
        texts.append(f"published pool: {'holds' if published.holds else word}")
    if today is None:
        texts.append("the claim is about no other pool")
    elif today.holds:
        texts.append("today: holds")
    else:
        texts.append(f"today: falls{_falls_by_text(today)}")
        results.append(f"found: {today.found}")
    if with_candidates:
        text = "with candidates: holds"
        if not with_candidates.holds:
            text = f"with candidates: falls{_falls_by_text(with_candidates)}"
            results.append(f"with candidates found: {with_candidates.found}")
        if with_candidates.could_fall_by:
            text += f", could fall by {', '.join(with_candidates.could_fall_by)} through open tags"
        texts += [text, reach_text(with_candidates)]
    return f"{'; '.join(texts)} ({'; '.join(results)})" if results else "; ".join(texts)


def pool_word(verdict: Verdict, name: PoolName, fails: str = "fails") -> str:
    """Return the verdict over one pool; `fails` is the word for a claim that fails as it is written."""
    pool = verdict.pools.get(name)
    if name is PoolName.PUBLISHED and verdict.problem:
        return fails
    if pool is None:
        return "-"
    if pool.holds:
        return f"could fall by {len(pool.could_fall_by)}" if pool.could_fall_by else "holds"
    if name is PoolName.PUBLISHED:
        return fails
    if name is PoolName.TODAY:
        return f"falls{_falls_by_text(pool)}"
    return f"falls at {pool.falls_at}/{len(pool.counted)}" if pool.falls_at else "falls"


def reach_text(pool: PoolVerdict) -> str:
    """Return how many candidates a claim counts, from which of them on it fails, and how many open tags leave out."""
    text = f"counts {pluralize(len(pool.counted), 'candidate')}"
    position = pool.falls_at
    if position:
        ending = {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th")
        if position % 100 in (11, 12, 13):
            ending = "th"
        text += f", falls from the {position}{ending} on ({pool.counted[position - 1]})"
    if position > 1:
        text += f", after {first_names_and_more(pool.counted[: position - 1], _MAX_CANDIDATES)}"
    return f"{text}; open tags leave out {pool.undecided or 'none'}"


def _falls_by_text(verdict: PoolVerdict) -> str:
    return f", by {', '.join(verdict.falls_by)}" if verdict.falls_by else ""


def pools_table(verdicts: Sequence[Verdict]) -> Table:
    """Return the verdicts of claims that were judged over several pools, with a column for each pool."""
    judged = [verdict for verdict in verdicts if len(verdict.pools) > 1]
    pools = pools_of(judged)
    names = ("with candidates" if name is PoolName.CANDIDATES else name.value for name in pools)
    rows = tuple((verdict.claim.claim, *(pool_word(verdict, name) for name in pools)) for verdict in judged)
    return Table("claims", "", ("claim", *names), rows)


def causes_lines(
    causes: Sequence["Cause"], verdicts: Sequence[Verdict], left_out: Sequence[Candidate], width: int | None
) -> list[Line]:
    """Return, by claim, the candidates that would or could make it fail, with their tags and sources.

    Claims that are exact counts come last. `left_out` are the candidates that are not proposed for inclusion. The end
    names the ones that would make a claim fail that is no exact count. A URL has a line of its own, and is never cut.
    """
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    proposed = [cause for cause in causes if cause.proposal is Decision.INCLUDE]
    blocks: list[list[Line]] = []
    for verdict in sorted(verdicts, key=lambda verdict: verdict.claim.is_exact):
        causes_of_claim = [cause for cause in proposed if cause.claim.id == verdict.claim.id]
        if not causes_of_claim:
            continue
        pool = verdict.pools[PoolName.CANDIDATES]
        lines: list[Line] = [(Span(verdict.claim.id, "key"), Span(f"  {_effect(causes_of_claim[0])}", "warning"))]
        lines += [line(text, "heading") for text in wrap(verdict.claim.claim, available)]
        result = f"expected {verdict.expected}; with the candidates found {pool.found}"
        lines += [line(text) for sentence in (result, reach_text(pool)) for text in wrap(sentence, available)]
        for cause in causes_of_claim:
            lines.append((Span(f"  {cause.name}", "key"), Span(f": {_tags_text(cause)}")))
            for url in cause.sources:
                copy = " (a copy)" if url in cause.copies else ""
                lines.append(line(f"    {url}{copy}", "muted"))
        blocks.append(lines)
    if blocks:
        blocks.insert(0, [line(text) for text in wrap(_AS_IF, available)])
    else:
        blocks = [[line("no claim that holds today would fall, or could fall, if the candidates were taken in")]]
    if proposed and all(cause.is_certain for cause in proposed):
        blocks.append([line("no claim could fall through open tags")])
    proposals = Counter(candidate.proposal for candidate in left_out)
    if proposals:
        counts = ", ".join(f"{proposals[decision]} {decision.value}" for decision in Decision if proposals[decision])
        blocks.append([line(text) for text in wrap(f"candidates not proposed for inclusion: {counts}", available)])
    for cause in causes:
        if cause.proposal is not Decision.INCLUDE and not cause.claim.is_exact:
            text = f"{cause.claim.id} {_effect(cause)} by {cause.name} ({cause.proposal.value}): {_tags_text(cause)}"
            blocks[-1] += [line(part) for part in wrap(text, available, first="  ", rest="    ")]
    return layout.separated(blocks)


def causes_table(causes: Sequence["Cause"]) -> Table:
    """Return the candidates that would or could make claims fail, with a row for each candidate of each claim."""
    columns = ("claim", "verdict", "candidate", "proposal", "tags", "sources")
    rows = []
    for cause in causes:
        proposal = cause.proposal.value
        rows.append((cause.claim.id, _effect(cause), cause.name, proposal, _tags_text(cause), cause.sources))
    return Table("causes", "", columns, tuple(rows))


def _effect(cause: "Cause") -> str:
    falls = "falls" if cause.is_certain else "could fall"
    return f"{falls} (an exact count, which any addition outdates)" if cause.claim.is_exact else falls


def _tags_text(cause: "Cause") -> str:
    return ", ".join(f"{tag} {' or '.join(values)}" for tag, values in cause.tags.items() if values)


def causes_data(causes: Sequence["Cause"]) -> str:
    """Return the candidates that would or could make claims fail as JSON."""
    mappings = [
        {
            "claim": cause.claim.id,
            "exact": cause.claim.is_exact,
            "candidate": cause.name,
            "proposal": cause.proposal.value,
            "certain": cause.is_certain,
            "tags": dict(cause.tags),
            "sources": cause.sources,
            "copies": cause.copies,
        }
        for cause in causes
    ]
    return envelope("causes", {"causes": mappings})
