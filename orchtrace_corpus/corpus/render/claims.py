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
_WIDTH_OF_SCREEN = 80
"""The width of a list that is shortened to a screen, where no terminal states its own."""
_MAX_CLAIMS_ON_SCREEN = 20
_MAX_TAGS = 3
"""The most tags that are named for each claim that fails."""
_MAX_ROWS = 20
"""The most records that a claim names; of more, only those that are contested."""
_MAX_CANDIDATES = 5
_NO_DOUBT = 5
"""The rank of a claim without doubts."""
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
    """Verdicts on claims; by id, `robust` has what breaks each, `compared` its verdict by the published tags.

    The claims of `unread` could not be read. Those of `flawed` hold, but name records that are missing or not counted.
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
        if not {*verdict.pools} <= {PoolName.TODAY}:
            yield "pools", _pools_text(verdict.pools, self.word(verdict))
        if compared is not None:
            yield "reading", f"sources; published: {'holds' if compared.published else 'fails'}"
            yield from (("falls by", _agreed_text(dispute, sourced=True)) for dispute in compared.falls_by)
        if len(claim.over) > 1 or claim.over[0] != "papers":
            yield "over", " and ".join(claim.over)
        for name, conditions in (("scope", claim.scope), ("share of", whole_of(claim)), ("where", claim.where)):
            if conditions:
                yield name, " ".join(_filters(conditions))
        if len(verdict.rows) > _MAX_ROWS:
            contested = ", ".join(key for key in verdict.rows if key in verdict.contested)
            rows = f"contested: {contested or 'none'}; all: --format json"
        else:
            marked = (f"{key} (contested)" if key in verdict.contested else key for key in verdict.rows)
            rows = ", ".join(marked) or "none"
        yield f"rows ({len(verdict.rows)})", rows
        if uncounted := [key for key in verdict.contested if key not in verdict.rows]:
            yield "contested", f"{', '.join(uncounted)}: would count in another reading on record"
        for reading in claim.readings:
            counted, omitted = _counted(reading, verdict)
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
        """Return the same for programs."""
        claim = verdict.claim
        compared, robustness = self.compared.get(claim.id), self.robust.get(claim.id)
        pools: dict[str, dict[str, Any]] = {}
        for name, over in verdict.pools.items():
            members = pools[name.value] = {"holds": over.holds, "found": over.found, "falls_by": over.falls_by}
            if name is PoolName.CANDIDATES:
                members |= {"could_fall_by": over.could_fall_by, "counted": over.counted}
                members |= {"falls_at": over.falls_at or None, "left_out_by_open_tags": over.undecided}
        readings = []
        for reading in claim.readings:
            counted, omitted = _counted(reading, verdict)
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
            tags = [
                {"record": dispute.record, "tag": dispute.tag, "published": dispute.stands, **dispute.agreed._asdict()}
                for dispute in compared.falls_by
                if dispute.agreed is not None
            ]
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

    Unless the list `is_whole`, claims without doubts are only counted where not all fit on a screen. A narrow list has
    no sentences.
    """
    verdicts, title = report.verdicts, ""
    if report.compared:
        from orchtrace_corpus.corpus.render.statistics import SOURCES_TITLE

        falling = sum(bool(reading.falls_by) for reading in report.compared.values())
        fall = "falls" if falling == 1 else "fall"
        title = f"{SOURCES_TITLE}: {falling} of {pluralize(len(report.compared), 'claim')} {fall} by it"
    flawed = list(_unread_notes(report.unread))
    if report.flawed:
        verb = "holds, but names" if len(report.flawed) == 1 else "hold, but name"
        ids = ", ".join(map(printable, report.flawed))
        flawed.insert(0, f"{len(report.flawed)} of these {verb} records that are not there, or are not counted: {ids}")

    def rank(verdict: Verdict) -> tuple[int, int]:
        return _stress_rank(report.robust[verdict.claim.id]) if report.robust else doubt_rank(verdict)

    shown = sorted(verdicts, key=rank)
    is_cut = not is_whole and len(verdicts) > _MAX_CLAIMS_ON_SCREEN
    if is_cut:
        shown = [verdict for verdict in shown if rank(verdict)[0] < _NO_DOUBT]
    hidden = len(verdicts) - len(shown)
    others = f"{pluralize(hidden, 'other')} {{}}; --all shows them" if hidden else ""
    if report.robust:
        columns: tuple[str, ...] = ("claim", "verdict", "fewest", "disputes", "near misses", "rows")
        rows = tuple(_stress_row(verdict, report.robust[verdict.claim.id]) for verdict in shown)
        notes = [others.format("break by any one record, and by no dispute"), *_STRESS_NOTES]
        if all(robustness.holds for robustness in report.robust.values()):
            rows, columns = tuple((row[0], *row[2:]) for row in rows), ("claim", *columns[2:])
        else:
            notes.append("fails: not tested, since the claim fails already.")
        return Table("claims", title, columns, rows, (*filter(None, notes), *flawed), whole="claim")
    pools = chosen or pools_of(verdicts)
    listed: list[tuple[Cell, ...]] = []
    for verdict in shown:
        as_written = report.word(verdict)
        words = tuple(pool_word(verdict, name, as_written) for name in pools) or (as_written,)
        listed.append((verdict.claim.id, *words, len(verdict.rows), len(verdict.contested), verdict.claim.claim))
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
    if later and any(name not in verdict.pools for verdict in shown for name in pools):
        later[0] += " (-: not about that pool)"  # without a line of its own, so that all fits on a screen
    undoubted = others.format("hold, and no reading on record contests them")
    notes = [*failing, *filter(None, (_summary(report), *later, undoubted, note)), *flawed]
    columns = ("claim", *(pools or ("verdict",)), "rows", "contested", "sentence")
    if (width or (_WIDTH_OF_SCREEN if is_cut else _WIDTH_FOR_SENTENCES)) < _WIDTH_FOR_SENTENCES:
        notes.append("corpus claims ID shows a claim with its sentence")
        return Table("claims", title, columns[:-1], tuple(row[:-1] for row in listed), tuple(notes), whole="claim")
    return Table("claims", title, columns, tuple(listed), tuple(notes), wrapped="sentence", whole="claim")


def doubt_rank(verdict: Verdict) -> tuple[int, int]:
    """Rank a claim by doubt: it fails, falls today, falls with the candidates, could fall, is contested, or none."""
    today, awaited = (verdict.pools.get(name) for name in (PoolName.TODAY, PoolName.CANDIDATES))
    doubts = (
        not verdict.holds,
        today is not None and not today.holds,
        awaited is not None and not awaited.holds,
        awaited is not None and bool(awaited.could_fall_by),
        bool(verdict.contested),
        True,
    )
    return doubts.index(True), -len(verdict.contested)


def _stress_rank(robustness: "Robustness") -> tuple[int, int]:
    """Rank a claim: it fails, breaks by one dispute, by all at once, takes several changes, or breaks by any one."""
    breaks_by_all = bool(robustness.breaks_by_all_flips)
    doubts = (not robustness.holds, bool(robustness.flips), breaks_by_all, len(robustness.smallest) != 1)
    return (doubts.index(True) if any(doubts) else _NO_DOUBT), -len(robustness.flips)


def _stress_row(verdict: Verdict, robustness: "Robustness") -> tuple[Cell, ...]:
    word = "holds" if verdict.holds else "fails"
    if not robustness.holds:
        return (verdict.claim.id, *(word,) * 5)
    fewest = "none"
    if robustness.smallest:
        fewest = f"{'' if robustness.is_exact else 'up to '}{len(robustness.smallest)}"
    flips = _tally(len(robustness.flips), robustness.breaks_by_all_flips)
    misses = _tally(len(robustness.near_misses), robustness.breaks_by_all_near_misses, robustness.near_miss_number)
    rows = _tally(len(robustness.left_out), bool(robustness.left_out), len(verdict.rows))
    return (verdict.claim.id, word, fewest, flips, misses, rows)


def _tally(alone: int, at_once: bool | None, total: int = 0) -> str:
    """Return how many changes of a kind break a claim alone; `-` where there are none of the kind."""
    if at_once is None:
        return "-"
    if not alone:
        return "all" if at_once else "none"
    if alone == total:
        return "any"
    return f"{alone} of {total}" if total else str(alone)


def flat(report: ClaimReport) -> Table:
    """Return every claim with all that is known of it, a row for each."""
    columns = ["claim", "holds", "sentence", "expected", "found", "rows", "contested", "boundary", "source"]
    later = [name for name in pools_of(report.verdicts) if name is not PoolName.PUBLISHED]
    for name in later:
        columns += _POOL_COLUMNS[name]
    columns += ("published_reading", "falls_by_readings") if report.compared else ()
    columns += ("smallest_break",) if report.robust else ()
    words = {True: "yes", False: "no"}
    rows = []
    for verdict in report.verdicts:
        claim = verdict.claim
        row: list[Cell] = [claim.id, words[verdict.holds], claim.claim, verdict.expected, verdict.found]
        row += (verdict.rows, verdict.contested, claim.boundary, claim.source)
        for name in later:
            over = verdict.pools.get(name)
            cells: tuple[Cell, ...] = (None, (), ())
            if over is not None:
                cells = (words[over.holds], over.falls_by, over.could_fall_by)
            row += cells[: len(_POOL_COLUMNS[name])]
        if reading := report.compared.get(claim.id):
            row += (words[reading.published], tuple(map(_agreed_text, reading.falls_by)))
        if robustness := report.robust.get(claim.id):
            row.append(tuple(map(str, robustness.smallest)))
        rows.append(tuple(row))
    return Table("claims", "", tuple(columns), tuple(rows))


def _summary(report: ClaimReport) -> str:
    """Return how many claims hold; empty where every other one falls by the sources, as the title says."""
    failing = [verdict.claim.id for verdict in report.verdicts if not verdict.holds]
    count = pluralize(len(report.verdicts), "claim")
    if not failing:
        return f"{count} hold{'s' * (len(report.verdicts) == 1)}"
    if report.compared and all(report.compared[name].falls_by for name in failing):
        return ""
    return f"{len(failing)} of {count} fail{'s' * (len(failing) == 1)}: {', '.join(failing)}"


def _unread_notes(unread: Sequence[str]) -> tuple[str, ...]:
    """Return how many claims could not be read, and which of them have an id; nothing where all could."""
    if not unread:
        return ()
    named = ", ".join(printable(name) for name in unread if name)
    return (f"{pluralize(len(unread), 'claim')} could not be read{named and f': {named}'}",)


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
        lines = (part for label, text in entries for part in layout.entry(label, text, label_width, available))
        blocks.append([head, *title, *lines])
    return layout.separated([*blocks, *([line(note)] for note in _unread_notes(report.unread))])


def cards_markdown(report: ClaimReport) -> str:
    """Return the same as Markdown sections."""
    sections = []
    for verdict in report.verdicts:
        items = (f"- **{label}**: {markdown_text(text)}" for label, text in report.entries(verdict))
        head = f"## {markdown_text(verdict.claim.id)}: {report.word(verdict)}"
        sections.append("\n".join((head, "", markdown_text(verdict.claim.claim), "", *items)) + "\n")
    return "\n".join((*sections, *(f"{note}\n" for note in _unread_notes(report.unread))))


def data(report: ClaimReport) -> str:
    """Return the same for programs."""
    holding = sum(verdict.holds for verdict in report.verdicts)
    numbers = {"hold": holding, "fail": len(report.verdicts) - holding, "unread": len(report.unread)}
    head = {"reading": report.reading.value, **numbers, "flawed": list(report.flawed)}
    return envelope("claims", {**head, "claims": list(map(report.mapping, report.verdicts))})


def _counted(reading: NarrowReading, verdict: Verdict) -> tuple[list[str], list[str]]:
    """Return the records of a narrow reading that the claim counts, and those that it does not."""
    counted = [key for key in reading.keys if verdict.problem or key in verdict.rows]
    return counted, [key for key in reading.keys if key not in counted]


def _stress_entries(robustness: "Robustness") -> Iterator[tuple[str, str]]:
    """Yield what breaks a claim, as labels and texts."""
    is_exact = robustness.is_exact
    breaks = f"no set of these changes{'' if is_exact else ' that was tried'}"
    if robustness.smallest:
        count = pluralize(len(robustness.smallest), "change")
        breaks = f"{'' if is_exact else 'at most '}{count}: {_changes_text(robustness.smallest)}"
    yield "breaks by", breaks
    groups = (
        ("dispute", "disputes", robustness.flips, robustness.breaks_by_all_flips),
        ("near miss", "near misses", robustness.near_misses, robustness.breaks_by_all_near_misses),
    )
    for noun, label, changes, at_once in groups:
        if at_once is None:
            yield label, f"no {noun} concerns it"
            continue
        alone = "none breaks it alone"
        if changes:
            alone = f"{len(changes)} break{'s' * (len(changes) == 1)} it alone: {_changes_text(changes)}"
        yield label, f"{alone}; all at once {'break' if at_once else 'do not break'} it"
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
    """Return conditions as they are written on the command line."""
    written = []
    for condition in conditions:
        equals = "" if condition.field.endswith(("!", "<", ">", "=", "~")) else "="
        written.append(printable(f"{condition.field}{equals}{','.join(condition.alternatives)}", limit=1000))
    return written


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
    """Return the note on the column of contested records, with their number over all claims."""
    return f"contested: {noun.many} of disputed tags, {contested} in all; --reading sources changes {agreed}"


def reading_word(compared: "ReadingVerdict") -> str:
    """Return the verdict by the reading of the sources: `holds`, `falls`, or `fails` if the published one does."""
    if compared.falls_by:
        return "falls"
    return "holds" if compared.published else "fails"


def _agreed_text(dispute: "Dispute", *, sourced: bool = False) -> str:
    """Return a tag as the readers of the sources agree on it and as published; `sourced` with rule and source."""
    if dispute.agreed is None:
        raise ValueError(f"nothing is agreed on {dispute.id}")
    text = f"{dispute.record} {dispute.tag} {dispute.agreed.value}, not {dispute.stands}"
    return f"{text} (by {dispute.agreed.rule_text}; {dispute.agreed.source})" if sourced else text


def pools_of(verdicts: Sequence[Verdict]) -> tuple[PoolName, ...]:
    """Return the pools over which claims were judged; empty if that is only the pool of today."""
    names = tuple(name for name in PoolName if any(name in verdict.pools for verdict in verdicts))
    return () if names == (PoolName.TODAY,) else names


def _today_summary(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield how many claims about the published pool hold over that of today, or which fall."""
    judged = [verdict for verdict in verdicts if {PoolName.PUBLISHED, PoolName.TODAY} <= verdict.pools.keys()]
    pools = {verdict.claim.id: verdict.pools[PoolName.TODAY] for verdict in judged}
    falling = [f"{name}{_by(over)}" for name, over in pools.items() if not over.holds]
    if falling:
        verb = f"fall{'s' * (len(falling) == 1)}"
        yield f"over the pool of today {len(falling)} of {len(judged)} {verb}: {'; '.join(falling)}"
    elif judged:
        yield f"over the pool of today {len(judged)} of {len(judged)} hold"


def _candidates_summary(verdicts: Sequence[Verdict], *, is_named: bool) -> Iterator[str]:
    """Yield how many claims hold with the candidates or fall, with their ids if `is_named`, and how many could fall."""
    judged = [verdict for verdict in verdicts if PoolName.CANDIDATES in verdict.pools]
    pools = [verdict.pools[PoolName.CANDIDATES] for verdict in judged]
    falling = [verdict.claim for verdict, over in zip(judged, pools, strict=True) if not over.holds]
    if falling:
        text = f"with the candidates {len(falling)} of {len(judged)} fall{'s' * (len(falling) == 1)}"
        if exact := sum(claim.is_exact for claim in falling):
            text += f"; {exact} {'is an exact count' if exact == 1 else 'are exact counts'}, outdated by any addition"
        if is_named:
            text += f": {'; '.join(claim.id for claim in falling)}"
        yield text
    elif judged:
        yield f"with the candidates {len(judged)} of {len(judged)} hold"
    if any(over.falls_at for over in pools):
        yield f"falls at N/M: the first N of M candidates make it fall{_HINT}"
    if could_fall := sum(bool(over.could_fall_by) for over in pools):
        yield f"{could_fall} could fall through open tags{_HINT}"


def _pools_text(pools: Mapping[PoolName, PoolVerdict], word: str) -> str:
    """Return the verdict over each pool, `word` over the claim's own, and what was found where it falls."""
    texts, counts = [], []
    if published := pools.get(PoolName.PUBLISHED):
        texts.append(f"published pool: {'holds' if published.holds else word}")
    if today := pools.get(PoolName.TODAY):
        texts.append(f"today: {'holds' if today.holds else f'falls{_by(today)}'}")
        counts += [] if today.holds else [f"found: {today.found}"]
    else:
        texts.append("the claim is about no other pool")
    if awaited := pools.get(PoolName.CANDIDATES):
        text = f"with candidates: {'holds' if awaited.holds else f'falls{_by(awaited)}'}"
        if awaited.could_fall_by:
            text += f", could fall by {', '.join(awaited.could_fall_by)} through open tags"
        texts += [text, reach_text(awaited)]
        counts += [] if awaited.holds else [f"with candidates found: {awaited.found}"]
    return "; ".join(texts) + (f" ({'; '.join(counts)})" if counts else "")


def pool_word(verdict: Verdict, name: PoolName, fails: str = "fails") -> str:
    """Return the verdict over one pool; `fails` is the word for a claim that fails as it is written."""
    over = verdict.pools.get(name)
    if name is PoolName.PUBLISHED and verdict.problem:
        return fails
    if over is None:
        return "-"
    if over.holds:
        return f"could fall by {len(over.could_fall_by)}" if over.could_fall_by else "holds"
    if name is PoolName.PUBLISHED:
        return fails
    if name is PoolName.TODAY:
        return f"falls{_by(over)}"
    return f"falls at {over.falls_at}/{len(over.counted)}" if over.falls_at else "falls"


def reach_text(awaited: PoolVerdict) -> str:
    """Return how many candidates a claim counts, from which on it falls, and how many are omitted for open tags."""
    text = f"counts {pluralize(len(awaited.counted), 'candidate')}"
    position = awaited.falls_at
    if position:
        ending = "th" if position % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th")
        text += f", falls from the {position}{ending} on ({awaited.counted[position - 1]})"
    if position > 1:
        text += f", after {first_names_and_more(awaited.counted[: position - 1], _MAX_CANDIDATES)}"
    return f"{text}; open tags leave out {awaited.undecided or 'none'}"


def _by(verdict: PoolVerdict) -> str:
    return f", by {', '.join(verdict.falls_by)}" if verdict.falls_by else ""


def pools_table(verdicts: Sequence[Verdict]) -> Table:
    """Return the verdicts of claims that are judged over more than one pool, a column for each pool."""
    judged = [verdict for verdict in verdicts if len(verdict.pools) > 1]
    pools = pools_of(judged)
    names = ("with candidates" if name is PoolName.CANDIDATES else name.value for name in pools)
    rows = tuple((verdict.claim.claim, *(pool_word(verdict, name) for name in pools)) for verdict in judged)
    return Table("claims", "", ("claim", *names), rows)


def causes_lines(
    causes: Sequence["Cause"], verdicts: Sequence[Verdict], left_out: Sequence[Candidate], width: int | None
) -> list[Line]:
    """Return the candidates that would make claims fall, or could, by claim, with their tags and sources.

    Theses come before exact counts. `left_out` are the candidates that are not proposed for inclusion: those that would
    make a thesis fall are named at the end. A URL has a line of its own, and is never cut.
    """
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    proposed = [cause for cause in causes if cause.proposal is Decision.INCLUDE]
    blocks: list[list[Line]] = []
    for verdict in sorted(verdicts, key=lambda verdict: verdict.claim.is_exact):
        own = [cause for cause in proposed if cause.claim.id == verdict.claim.id]
        if not own:
            continue
        awaited = verdict.pools[PoolName.CANDIDATES]
        lines: list[Line] = [(Span(verdict.claim.id, "key"), Span(f"  {_effect(own[0])}", "warning"))]
        lines += [line(text, "heading") for text in wrap(verdict.claim.claim, available)]
        found = f"expected {verdict.expected}; with the candidates found {awaited.found}"
        lines += [line(text) for sentence in (found, reach_text(awaited)) for text in wrap(sentence, available)]
        for cause in own:
            lines.append((Span(f"  {cause.name}", "key"), Span(f": {_tags(cause)}")))
            lines += [line(f"    {url}{' (a copy)' * (url in cause.copies)}", "muted") for url in cause.sources]
        blocks.append(lines)
    if blocks:
        blocks.insert(0, [line(text) for text in wrap(_AS_IF, available)])
    else:
        blocks = [[line("no claim that holds today would fall, or could fall, if the candidates were taken in")]]
    if proposed and all(cause.is_certain for cause in proposed):
        blocks.append([line("no claim could fall through open tags")])
    if proposals := Counter(candidate.proposal for candidate in left_out):
        counts = ", ".join(f"{proposals[decision]} {decision.value}" for decision in Decision if proposals[decision])
        blocks.append([line(text) for text in wrap(f"candidates not proposed for inclusion: {counts}", available)])
    for cause in causes:
        if cause.proposal is not Decision.INCLUDE and not cause.claim.is_exact:
            text = f"{cause.claim.id} {_effect(cause)} by {cause.name} ({cause.proposal.value}): {_tags(cause)}"
            blocks[-1] += [line(part) for part in wrap(text, available, first="  ", rest="    ")]
    return layout.separated(blocks)


def causes_table(causes: Sequence["Cause"]) -> Table:
    """Return the same with a row for each candidate of each claim."""
    columns = ("claim", "verdict", "candidate", "proposal", "tags", "sources")
    rows = [
        (cause.claim.id, _effect(cause), cause.name, cause.proposal.value, _tags(cause), cause.sources)
        for cause in causes
    ]
    return Table("causes", "", columns, tuple(rows))


def _effect(cause: "Cause") -> str:
    falls = "falls" if cause.is_certain else "could fall"
    return f"{falls} (an exact count, which any addition outdates)" if cause.claim.is_exact else falls


def _tags(cause: "Cause") -> str:
    return ", ".join(f"{tag} {' or '.join(values)}" for tag, values in cause.tags.items() if values)


def causes_data(causes: Sequence["Cause"]) -> str:
    """Return the same for programs."""
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
