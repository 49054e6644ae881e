"""All claims on one screen: what fails, falls or is contested first; or what breaks them, the most fragile first."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.corpus.analysis.claim_readings import ReadingVerdict
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.model.claim_file import PoolName
from orchtrace_corpus.corpus.render.claims import beside_notes, summary, unread_notes, verdict_word
from orchtrace_corpus.corpus.render.pools import pool_summary, pool_word, pools_of
from orchtrace_corpus.corpus.render.readings import claim_notes

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.stress import Robustness

_WIDTH_FOR_SENTENCES = 120
"""How many cells a line needs for sentences beside the verdicts."""
_NARROW = 80
"""How many cells a line has in a pipe, where a long list is cut to a screen."""
_MOST_ON_A_SCREEN = 20
"""How many claims a screen of 24 lines holds; of more, those are left out of which there is nothing to say."""
_STRESS_NOTES = (
    "fewest: the changes that it takes to break the claim. disputes: those that break",
    "it alone, read the other way; all: only all at once. near misses, rows: those",
    "that break it taken in or left out; any: each. corpus claims ID --stress: which.",
)
_NOT_ASKED = "fails: not tested, since the claim fails already."


def overview(
    verdicts: Sequence[Verdict],
    robust: "Mapping[str, Robustness]",
    unread: Sequence[str] = (),
    beside: Sequence[str] = (),
    compared: Mapping[str, ReadingVerdict] = {},
    chosen: Sequence[PoolName] = (),
    width: int | None = None,
    *,
    is_whole: bool = True,
    note: str = "",
) -> Table:
    """One row for each claim, most doubtful first; with what breaks it, for those that were stressed.

    Args:
        verdicts: What the claims come to.
        robust: What breaks them, by id; empty where they were not stressed.
        unread: The ids of claims that could not be read.
        beside: The ids of claims that hold, and in which something else is wrong.
        compared: What the claims come to as published, by id, where the verdicts are by the reading of the sources.
        chosen: The pools to show; without them, all that there are.
        width: How many cells a line has; the sentences are left out where they would stand in a narrow strip.
        is_whole: Whether claims of which there is nothing to say are shown, too; else they are counted where all
            together do not fit a screen.
        note: What else to say at the foot.
    """
    title, *readings = claim_notes(compared)
    is_cut = not is_whole and len(verdicts) > _MOST_ON_A_SCREEN
    rank = _stress_rank(robust) if robust else doubt_rank
    shown = sorted((one for one in verdicts if not is_cut or rank(one)[0] < _QUIET), key=rank)
    if robust:
        rows: tuple[tuple[Cell, ...], ...] = tuple(_stress_row(verdict, robust) for verdict in shown)
        columns: tuple[str, ...] = ("claim", "verdict", "fewest", "disputes", "near misses", "rows")
        if all(found.holds for found in robust.values()):
            rows, columns = tuple((row[0], *row[2:]) for row in rows), ("claim", *columns[2:])
        not_asked = (_NOT_ASKED,) * (not all(found.holds for found in robust.values()))
        left_out = _others(len(verdicts) - len(shown), "break by any one record, and by no dispute")
        notes = (*left_out, *_STRESS_NOTES, *not_asked)
        return Table(
            "claims", title, columns, rows, (*notes, *beside_notes(beside), *unread_notes(unread)), whole="claim"
        )
    pools = chosen or pools_of(verdicts)
    rows = tuple(
        (
            verdict.claim.id,
            *(_pool_words(verdict, pools, compared.get(verdict.claim.id))),
            *(len(verdict.rows), len(verdict.contested), verdict.claim.claim),
        )
        for verdict in shown
    )
    failing = tuple(
        f"{one.claim.id} {one.found}" if one.problem else f"{one.claim.id}: expected {one.expected}; found {one.found}"
        for one in verdicts
        if not one.holds
    )
    later = tuple(
        note
        for name in pools
        if name is not PoolName.PUBLISHED
        for note in pool_summary(verdicts, name, is_named=not is_cut)
    )
    if later and any(name not in one.pools for one in shown for name in pools):
        later = (f"{later[0]} (-: not about that pool)", *later[1:])  # no line more: all is to fit a screen
    others = _others(len(verdicts) - len(shown), "hold, and no reading on record contests them")
    notes = (*failing, summary(verdicts, compared), *later, *others, *filter(None, [note]), *readings)
    notes += (*beside_notes(beside), *unread_notes(unread))
    heads = ("claim", *(pools or ("verdict",)), "rows", "contested", "sentence")
    if (width or (_NARROW if is_cut else _WIDTH_FOR_SENTENCES)) < _WIDTH_FOR_SENTENCES:
        notes += ("corpus claims ID shows a claim with its sentence",)
        return Table("claims", title, heads[:-1], tuple(row[:-1] for row in rows), notes, whole="claim")
    return Table("claims", title, heads, rows, notes, wrapped="sentence", whole="claim")


_QUIET = 5
"""From which rank on there is nothing to say of a claim."""


def doubt_rank(verdict: Verdict) -> tuple[int, int]:
    """How doubtful a claim is: it fails, falls today, falls with the candidates, could fall, is contested, or none."""
    today, awaited = (verdict.pools.get(name) for name in (PoolName.TODAY, PoolName.CANDIDATES))
    doubts = (
        not verdict.holds,
        today is not None and not today.holds,
        awaited is not None and not awaited.holds,
        awaited is not None and bool(awaited.could_fall_by),
        bool(verdict.contested),
    )
    return (doubts.index(True) if any(doubts) else _QUIET), -len(verdict.contested)


def _stress_rank(robust: "Mapping[str, Robustness]") -> Callable[[Verdict], tuple[int, int]]:
    """How soon a claim breaks: it fails, breaks by one dispute, by all at once, takes several changes, or any one."""

    def rank(verdict: Verdict) -> tuple[int, int]:
        found = robust[verdict.claim.id]
        doubts = (not found.holds, bool(found.flips), bool(found.breaks_by_all_flips), len(found.smallest) != 1)
        return (doubts.index(True) if any(doubts) else _QUIET), -len(found.flips)

    return rank


def _others(number: int, doing: str) -> tuple[str, ...]:
    return (f"{pluralize(number, 'other')} {doing}; --all shows them",) * bool(number)


def _pool_words(verdict: Verdict, pools: Sequence[PoolName], compared: ReadingVerdict | None) -> tuple[str, ...]:
    as_written = verdict_word(verdict, compared)
    return tuple(pool_word(verdict, name, as_written) for name in pools) or (as_written,)


def _stress_row(verdict: Verdict, robust: "Mapping[str, Robustness]") -> tuple[Cell, ...]:
    found = robust[verdict.claim.id]
    if not found.holds:
        return (verdict.claim.id, *(verdict_word(verdict),) * 5)
    fewest = str(len(found.smallest)) if found.smallest else "none"
    return (
        verdict.claim.id,
        verdict_word(verdict),
        fewest if found.is_exact or found.smallest == () else f"up to {fewest}",
        _tally(len(found.flips), found.breaks_by_all_flips),
        _tally(len(found.near_misses), found.breaks_by_all_near_misses, found.near_miss_number),
        _tally(len(found.left_out), bool(found.left_out), len(verdict.rows)),
    )


def _tally(alone: int, at_once: bool | None, number: int = 0) -> str:
    """How many changes of a kind break a claim alone; `-` where there are none of the kind."""
    if at_once is None:
        return "-"
    if not alone:
        return "all" if at_once else "none"
    return "any" if alone == number else f"{alone} of {number}" if number else str(alone)
