"""What a change to a corpus means: not which lines differ, but which papers, tags, cells, findings and claims do.

Two states of a corpus are compared record by record. The order of records, comments and layout have no
meaning. A paper that has another key now, but an identifier or a title as before, was renamed.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.findings import Finding, beyond
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.splice import Form, differences
from orchtrace_corpus.corpus.analysis import state_changes
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.record_changes import Changed, ToJudge, between, to_judge
from orchtrace_corpus.corpus.analysis.state_changes import (
    Shift,
    cell_shifts,
    exclusion_shifts,
    pair_records,
    paper_shifts,
    signs,
)
from orchtrace_corpus.corpus.model.claim_file import Claim, PoolName
from orchtrace_corpus.corpus.model.decode import field_names
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS
from orchtrace_corpus.corpus.model.record_fields import Value, fields
from orchtrace_corpus.corpus.model.records import Exclusion, Loaded, Paper, Places, Pool, Record
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class State(NamedTuple):
    """A corpus at one time.

    Attributes:
        pool: Its records.
        findings: What is wrong with its data.
        verdicts: What the claims of the later state come to; None where that cannot be told.
        texts: The bytes of the files that hold its records, its vocabulary and its claims, by name.
        contents: What else the corpus holds, by the names of its files, fit for comparing.
        name: What the state is called.
        claims: Its own claims.
        claims_unread: The ids of those that could not be read; None where not all ids are known.
        unread: The fields that stand in a record but could not be decoded, as pairs of the record's
            name and the field.
        cut_off: Whether a part of the papers and of the exclusions could not be read at all.
        remarks: What else is to be known of it, in sentences.
    """

    pool: Pool
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...] | None
    texts: Mapping[str, bytes]
    contents: Mapping[str, object] = {}
    name: str = ""
    claims: tuple[Claim, ...] = ()
    claims_unread: frozenset[str] | None = frozenset()
    unread: frozenset[tuple[str, str]] = frozenset()
    cut_off: tuple[bool, bool] = (False, False)
    remarks: tuple[str, ...] = ()


class ClaimTurn(NamedTuple):
    """A claim that is new, or that holds or fails otherwise than before over one of the pools.

    Attributes:
        before: As it was; None for a new claim.
        after: As it is.
    """

    before: Verdict | None
    after: Verdict


class EntryChange(NamedTuple):
    """An entry of a file beside the records, such as a dispute, that is new, gone or changed.

    Attributes:
        name: The values that tell it from others: of a dispute, the paper and the tag.
        fields: What changed of its other fields; empty for one that is new or gone.
        is_new: Whether there was none before.
        is_gone: Whether there is none any more.
    """

    name: tuple[str, ...]
    fields: tuple[str, ...] = ()
    is_new: bool = False
    is_gone: bool = False


class Difference(NamedTuple):
    """What changed from one state of a corpus to another.

    Attributes:
        names: What the two states are called.
        added: Papers that are new.
        removed: Papers that are gone, to the exclusions or altogether.
        changed: Papers that are there before and after; a renamed one has another key.
        excluded: Exclusions that are new.
        readmitted: Exclusions that are gone.
        rescreened: Exclusions that were changed.
        promoted: New papers that an exclusion says it was promoted to, by the exclusion's id.
        demoted: Removed papers that are excluded now, by the new exclusion's id.
        taxonomy: What changed in the vocabulary, in sentences.
        totals: How many papers and exclusions there were and are, as far as that is known.
        counts: The counts of fields that shifted.
        cells: The cells of crossed fields, and those of levels, whose `turn` is to be told.
        findings_new: Findings that there were not before.
        findings_gone: Findings that there are no longer.
        claims: The claims that hold or fail otherwise than before, over the published pool or over that of today.
        claims_falling: Those that fall over the pool of today alone, as before, and by the same records.
        claims_reworded: The claims that say or demand something else.
        claims_gone: The claims that are made no longer.
        claims_left: How many claims hold or fail as before.
        to_judge: What a person has to judge of the records that are new or changed.
        beside: The names of other files of the corpus that hold something else.
        entries: What changed in those of them that are lists: for each file, its entries that are other ones now.
        reordered: What stands in another order, of what is in both: `records`, `terms`.
        form: What of the form of the files differs, where nothing changed in meaning.
        remarks: What is to be known of the two states, in sentences.
        vocabulary: The taxonomy of the later state.
        outside: The files that a pull request changes beside data, by their paths in the repository.
    """

    names: tuple[str, str]
    added: tuple[Paper, ...]
    removed: tuple[Paper, ...]
    changed: tuple[Changed, ...]
    excluded: tuple[Exclusion, ...]
    readmitted: tuple[Exclusion, ...]
    rescreened: tuple[Changed, ...]
    promoted: Mapping[str, Paper]
    demoted: Mapping[str, Paper]
    taxonomy: tuple[str, ...]
    totals: tuple[Shift, ...]
    counts: tuple[Shift, ...]
    cells: tuple[Shift, ...]
    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]
    claims: tuple[ClaimTurn, ...]
    claims_falling: tuple[str, ...]
    claims_reworded: tuple[Claim, ...]
    claims_gone: tuple[Claim, ...]
    claims_left: int
    to_judge: tuple[ToJudge, ...]
    beside: tuple[str, ...]
    entries: Mapping[str, tuple["EntryChange", ...]]
    reordered: tuple[str, ...]
    form: tuple[Form, ...]
    remarks: tuple[str, ...]
    vocabulary: Taxonomy
    outside: tuple[str, ...] = ()

    @property
    def has_meaning(self) -> bool:
        """Whether anything changed that somebody who cites the corpus would see."""
        return any(
            (
                *(self.added, self.removed, self.changed, self.excluded, self.readmitted, self.rescreened),
                *(self.taxonomy, self.findings_new, self.findings_gone),
                *(self.claims, self.claims_reworded, self.claims_gone, self.beside),
            )
        )


def compare(before: State, after: State, entry_names: Mapping[str, tuple[str, ...]]) -> Difference:
    """Return what changed between two states of a corpus.

    Of a file that one state has in part only, nothing is said to be new or gone that the other has, and
    nothing is counted.

    Args:
        before: The earlier state.
        after: The later one.
        entry_names: The fields that tell the entries of each file beside the records apart.
    """
    old, new = before.pool, after.pool
    papers, exclusions = pair_records(old.papers, new.papers), pair_records(old.exclusions, new.exclusions)
    lost, unknown = before.cut_off, after.cut_off
    removed = tuple(one for one, other in papers if other is None and one is not None and not unknown[0])
    added = tuple(other for one, other in papers if one is None and other is not None and not lost[0])
    excluded = tuple(other for one, other in exclusions if one is None and other is not None and not lost[1])
    by_key = {paper.key: paper for paper in added}
    whole = [not (lost[kind] or unknown[kind]) for kind in (0, 1)]
    was, now = {claim.id: claim for claim in before.claims}, {claim.id: claim for claim in after.claims}
    turned, left, falling = _turned(before, after)
    changed, rescreened = _changes(papers, before, after), _changes(exclusions, before, after)
    contents = sorted({*before.contents, *after.contents})
    beside = tuple(name for name in contents if before.contents.get(name) != after.contents.get(name))
    change = Difference(
        names=(before.name, after.name),
        added=added,
        removed=removed,
        changed=changed,
        excluded=excluded,
        readmitted=tuple(one for one, other in exclusions if other is None and one is not None and not unknown[1]),
        rescreened=rescreened,
        promoted={one.id: by_key[one.promoted_to] for one in new.exclusions if one.promoted_to in by_key},
        demoted=_demoted(removed, excluded),
        taxonomy=tuple(state_changes.taxonomy_changes(old.taxonomy, new.taxonomy)),
        totals=tuple(
            Shift((noun,), (), len(one), len(other))
            for noun, one, other, known in (
                ("papers", old.papers, new.papers, whole[0]),
                ("exclusions", old.exclusions, new.exclusions, whole[1]),
            )
            if known
        ),
        counts=(*(paper_shifts(old, new) if whole[0] else ()), *(exclusion_shifts(old, new) if whole[1] else ())),
        cells=tuple(cell_shifts(old, new)) if whole[0] else (),
        findings_new=beyond(before.findings, after.findings),
        findings_gone=beyond(after.findings, before.findings),
        claims=turned,
        claims_falling=falling,
        claims_reworded=tuple(
            claim
            for name, claim in now.items()
            if name in was and state_changes.without_places(claim) != state_changes.without_places(was[name])
        ),
        claims_gone=tuple(
            claim
            for name, claim in was.items()
            if name not in now and after.claims_unread is not None and name not in after.claims_unread
        ),
        claims_left=left,
        to_judge=tuple(to_judge(new, (*added, *excluded), (*changed, *rescreened))),
        beside=beside,
        entries={
            name: entry_changes(before.contents.get(name), after.contents.get(name), names)
            for name, names in entry_names.items()
            if name in beside and names
        },
        reordered=(
            *(("records",) if _is_reordered(papers, old.papers) or _is_reordered(exclusions, old.exclusions) else ()),
            *(("terms",) if state_changes.is_reordered(old.taxonomy, new.taxonomy) else ()),
        ),
        form=(),
        remarks=(*before.remarks, *after.remarks),
        vocabulary=new.taxonomy,
    )
    if change.has_meaning:
        return change
    found: set[Form] = set()
    for name in {*before.texts, *after.texts}:
        sides = before.texts.get(name, b""), after.texts.get(name, b"")
        found |= differences(*sides, is_reordered=bool(change.reordered))
    return change._replace(form=tuple(form for form in Form if form in found))


def entry_changes(before: object, after: object, names: tuple[str, ...]) -> tuple[EntryChange, ...]:
    """The entries that are new, gone or changed between two lists of mappings; nothing where one is no such list.

    Args:
        before: What a file said; None where there was none.
        after: What it says now.
        names: The fields that tell its entries apart.
    """
    was, now = (
        {tuple(str(item.get(name, "")) for name in names): item for item in side if isinstance(item, dict)}
        for side in (side if isinstance(side, list) else [] for side in (before, after))
    )
    changes = []
    for name in dict.fromkeys((*was, *now)):
        old, new = was.get(name), now.get(name)
        if old is None or new is None:
            changes.append(EntryChange(name, is_new=old is None, is_gone=new is None))
        elif old != new:
            fields_changed = tuple(field for field in dict.fromkeys((*old, *new)) if old.get(field) != new.get(field))
            changes.append(EntryChange(name, fields_changed))
    return tuple(changes)


def unread(loaded: Loaded) -> frozenset[tuple[str, str]]:
    """The fields that stand in a record but could not be decoded, each with the record's name."""
    if loaded.pool is None:
        return frozenset()
    named = {finding.record for finding in loaded.findings} - {""}
    taxonomy = loaded.pool.taxonomy
    sides: tuple[tuple[Sequence[Record], Places, Iterable[str]], ...] = (
        (loaded.papers, loaded.paper_places, field_names(taxonomy.paper_fields, taxonomy.papers)),
        (loaded.exclusions, loaded.exclusion_places, field_names(EXCLUSION_FIELDS, taxonomy.exclusions)),
    )
    found = set()
    for records, places, names in sides:
        for index, record in enumerate(records):
            if record.name in named:
                known = fields(record, taxonomy)
                lost = (name for name in names if _stands_beyond(places, index, name, known.get(name)))
                found |= {(record.name, name) for name in lost}
    return frozenset(found)


def _stands_beyond(places: Places, index: int, field: str, value: Value | None) -> bool:
    """Whether a record has a field of which nothing, or of whose items not all, could be decoded."""
    if value is None:
        return places.locate(index, field) != places.locate(index)
    is_list = not isinstance(value, (str, int, float, Mapping))
    return is_list and places.locate(index, field, len(value)) != places.locate(index, field)  # type: ignore[arg-type]


def _is_reordered(pairs: Sequence[tuple[Record | None, Record | None]], before: Sequence[Record]) -> bool:
    ranks = {id(record): rank for rank, record in enumerate(before)}
    kept = [ranks[id(old)] for old, new in pairs if old is not None and new is not None]
    return kept != sorted(kept)


def _changes(pairs: Iterable[tuple[Record | None, Record | None]], before: State, after: State) -> tuple[Changed, ...]:
    found = []
    for old, new in pairs:
        if old is None or new is None:
            continue
        was, now = fields(old, before.pool.taxonomy), fields(new, after.pool.taxonomy)
        unread = {field for name, field in before.unread if name == old.name}
        unread |= {field for name, field in after.unread if name == new.name}
        found.append(between(old, new, (was, now), unread))
    return tuple(changed for changed in found if changed is not None)


def _demoted(removed: Iterable[Paper], excluded: Iterable[Exclusion]) -> dict[str, Paper]:
    """The new exclusions that are papers that went, by the identifier, the address or the title that they share."""
    known = {sign: paper for paper in removed for sign in signs(paper)}
    shared = ((one.id, next((known[sign] for sign in signs(one) if sign in known), None)) for one in excluded)
    return {name: paper for name, paper in shared if paper is not None}


def _turned(before: State, after: State) -> tuple[tuple[ClaimTurn, ...], int, tuple[str, ...]]:
    """The claims that are new or turned, how many others there are, and which of these fall over the pool of today."""
    if before.verdicts is None or after.verdicts is None or before.claims_unread is None:
        return (), 0, ()
    made = {claim.id for claim in before.claims} | before.claims_unread
    verdicts = {verdict.claim.id: verdict for verdict in before.verdicts if verdict.claim.id in made}
    turned = []
    for verdict in after.verdicts:
        was = verdicts.get(verdict.claim.id)
        if was is None:
            if verdict.claim.id not in before.claims_unread:
                turned.append(ClaimTurn(None, verdict))
        elif _state(was) != _state(verdict):
            turned.append(ClaimTurn(was, verdict))
    names = {turn.after.claim.id for turn in turned}
    left = [verdict for verdict in after.verdicts if verdict.claim.id not in names]
    today = ((verdict, verdict.pools.get(PoolName.TODAY)) for verdict in left if verdict.holds)
    falling = tuple(verdict.claim.id for verdict, one in today if one is not None and not one.holds)
    return tuple(turned), len(left), falling


def _state(verdict: Verdict) -> object:
    """What of a verdict is worth telling where it changes: whether it holds over each pool, and what breaks it."""
    return verdict.holds, {name: (pool.holds, pool.falls_by) for name, pool in verdict.pools.items()}
