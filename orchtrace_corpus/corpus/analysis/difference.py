"""What a change to a corpus means: which values differ, and which counts, cells, findings and claims do with them.

Comments, layout and the order of records have no meaning, and are named. A paper that has another key now, but an
identifier or a title as before, was renamed.
"""

from collections.abc import Hashable, Mapping, Sequence

from orchtrace_corpus.base.findings import Finding, beyond
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.record_changes import (
    FileDifference,
    RecordChange,
    ToJudge,
    Value,
    compare_files,
    signs,
    to_judge,
)
from orchtrace_corpus.corpus.analysis.state_changes import Shift, cell_shifts, exclusion_shifts, paper_shifts
from orchtrace_corpus.corpus.model.claim_file import PoolName
from orchtrace_corpus.corpus.model.records import Paper, Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy


class State(NamedTuple):
    """A corpus at one time.

    Attributes:
        pool: Its records.
        findings: What is wrong with its data.
        verdicts: What its claims come to; None where that cannot be told.
        files: The bytes of its data files, by path.
        name: What the state is called.
        unread_claims: The ids of claims that could not be read; None where not all are known.
        is_whole: Whether all papers and exclusions could be read, so that they can be counted.
        remarks: What else is to be known of it, in sentences.
    """

    pool: Pool
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...] | None
    files: Mapping[str, bytes]
    name: str = ""
    unread_claims: frozenset[str] | None = frozenset()
    is_whole: bool = True
    remarks: tuple[str, ...] = ()


class ClaimTurn(NamedTuple):
    """A claim that is new, or that holds or fails otherwise than before over one of the pools.

    Attributes:
        before: As it was; None for a new claim.
        after: As it is.
    """

    before: Verdict | None
    after: Verdict


class Difference(NamedTuple):
    """What changed from one state of a corpus to another.

    Attributes:
        names: What the two states are called.
        files: The data files that differ, with the values that do.
        added: Papers that are new.
        removed: Papers that are gone, to the exclusions or altogether.
        promoted: New papers that an exclusion says it was promoted to: their keys by the exclusion's id.
        demoted: Removed papers that are excluded now: their keys by the new exclusion's id.
        totals: How many papers and exclusions there were and are, as far as that is known.
        counts: The counts of fields that shifted.
        cells: The cells of crossed fields, and those of levels, whose `turn` is to be told.
        findings_new: Findings that there were not before.
        findings_gone: Findings that there are no longer.
        claims: The claims that hold or fail otherwise than before, over the published pool or over that of today.
        claims_falling: Those that fall over the pool of today alone, as before, and by the same records.
        claims_left: How many claims hold or fail as before.
        to_judge: What a person has to judge, of changed and removed records first.
        remarks: What is to be known of the two states, in sentences.
        vocabulary: The taxonomy of the later state.
        outside: The files that a pull request changes beside data, by their paths in the repository.
    """

    names: tuple[str, str]
    files: tuple[FileDifference, ...]
    added: tuple[Paper, ...]
    removed: tuple[Paper, ...]
    promoted: Mapping[str, str]
    demoted: Mapping[str, str]
    totals: tuple[Shift, ...]
    counts: tuple[Shift, ...]
    cells: tuple[Shift, ...]
    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]
    claims: tuple[ClaimTurn, ...]
    claims_falling: tuple[str, ...]
    claims_left: int
    to_judge: tuple[ToJudge, ...]
    remarks: tuple[str, ...]
    vocabulary: Taxonomy
    outside: tuple[str, ...] = ()

    @property
    def has_meaning(self) -> bool:
        """Whether anything changed that somebody who cites the corpus would see."""
        is_said = any(file.records for file in self.files)
        return is_said or bool(self.findings_new or self.findings_gone or self.claims)


def compare(before: State, after: State, names: Mapping[str, Sequence[str]]) -> Difference:
    """Return what changed between two states of a corpus.

    Args:
        before: The earlier state.
        after: The later one.
        names: For each file that is known as data, in their order, the fields that tell its records apart.
    """
    old, new = before.pool, after.pool
    facets = [facet for pool in (old, new) for facet in (*pool.taxonomy.papers, *pool.taxonomy.exclusions)]
    unordered = {"tags", *(facet.field for facet in facets if facet.kind is Kind.MANY)}
    paths = dict.fromkeys((*names, *sorted({*before.files, *after.files})))
    files = tuple(
        compare_files(path, before.files.get(path), after.files.get(path), names.get(path), unordered)
        for path in paths
        if before.files.get(path) != after.files.get(path)
    )
    papers = [record for file in files if file.is_pool and file.subject == "papers" for record in file.records]
    exclusions = [record for file in files if file.is_pool and file.subject != "papers" for record in file.records]
    gone = {sign: record.name for record in papers if record.is_gone for sign in _signs(record)}
    new_keys = {record.name for record in papers if record.is_new}
    gone_keys = {record.name for record in papers if record.is_gone}
    turned, left, falling = _turned(before, after)
    is_whole = before.is_whole and after.is_whole
    totals = (
        Shift(("papers",), (), len(old.papers), len(new.papers)),
        Shift(("exclusions",), (), len(old.exclusions), len(new.exclusions)),
    )
    return Difference(
        names=(before.name, after.name),
        files=files,
        added=tuple(paper for paper in new.papers if paper.key in new_keys),
        removed=tuple(paper for paper in old.papers if paper.key in gone_keys),
        promoted={one.id: one.promoted_to for one in new.exclusions if one.promoted_to in new_keys},
        demoted={
            record.name: next(gone[sign] for sign in _signs(record) if sign in gone)
            for record in exclusions
            if record.is_new and not gone.keys().isdisjoint(_signs(record))
        },
        totals=totals if is_whole else (),
        counts=(*paper_shifts(old, new), *exclusion_shifts(old, new)) if is_whole else (),
        cells=tuple(cell_shifts(old, new)) if is_whole else (),
        findings_new=beyond(before.findings, after.findings),
        findings_gone=beyond(after.findings, before.findings),
        claims=turned,
        claims_falling=falling,
        claims_left=left,
        to_judge=tuple(to_judge(files, new)),
        remarks=(*before.remarks, *after.remarks),
        vocabulary=new.taxonomy,
    )


def _signs(record: RecordChange) -> list[Hashable]:
    """Return the signs of a record that is new or gone, all of whose fields are in its changes."""
    fields: dict[str, Value] = {
        change.path[0]: change.before if record.is_gone else change.after for change in record.values
    }
    return signs(fields)


def _turned(before: State, after: State) -> tuple[tuple[ClaimTurn, ...], int, tuple[str, ...]]:
    """Return the claims that are new or turned, how many others there are, and which of these fall today alone."""
    if before.verdicts is None or after.verdicts is None or before.unread_claims is None:
        return (), 0, ()
    verdicts = {verdict.claim.id: verdict for verdict in before.verdicts}
    turned, left = [], []
    for verdict in after.verdicts:
        was = verdicts.get(verdict.claim.id)
        is_unread = verdict.claim.id in before.unread_claims
        if is_unread or (was is not None and _outcome(was) == _outcome(verdict)):
            left.append(verdict)
        else:
            turned.append(ClaimTurn(was, verdict))
    today = ((verdict, verdict.pools.get(PoolName.TODAY)) for verdict in left if verdict.holds)
    falling = tuple(verdict.claim.id for verdict, pool in today if pool is not None and not pool.holds)
    return tuple(turned), len(left), falling


def _outcome(verdict: Verdict) -> object:
    """Return what of a verdict is worth telling where it changes: where it holds, and what breaks it."""
    return verdict.holds, {name: (pool.holds, pool.falls_by) for name, pool in verdict.pools.items()}
