"""The meaning of a change to a corpus: values that differ, and with them counts, cells, findings and claims.

Comments, layout and the order of records have no meaning, and are named. A paper that has another key now, but an
identifier or a title as before, was renamed.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import product

from orchtrace_corpus.base.findings import Finding, beyond
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis import record_changes
from orchtrace_corpus.corpus.analysis.attributes import Attributes, exclusion_attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.claims import Verdict, falling_today
from orchtrace_corpus.corpus.analysis.record_changes import Action, FileDifference, RecordChange, ToJudge
from orchtrace_corpus.corpus.analysis.statistics import NO_CELLS, count, cross
from orchtrace_corpus.corpus.model.claim_file import PoolName
from orchtrace_corpus.corpus.model.records import Paper, Pool, Record
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy


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


class Turn(StrEnum):
    """The change of a claim, as it is written or over the current pool."""

    BROKEN = "broken"
    FALLS_TODAY = "falls today"
    MADE_TRUE = "made true"
    HOLDS_TODAY = "holds today again"
    NEW = "new"


class ClaimTurn(NamedTuple):
    """A claim that is new, or that holds or fails otherwise than before over one of the pools.

    Attributes:
        before: As it was; None for a new claim.
        after: As it is.
    """

    before: Verdict | None
    after: Verdict

    @property
    def turn(self) -> Turn:
        """Return the change of the claim."""
        if self.before is None:
            return Turn.NEW
        if self.before.holds != self.after.holds:
            return Turn.MADE_TRUE if self.after.holds else Turn.BROKEN
        today = self.after.pools.get(PoolName.TODAY)
        return Turn.HOLDS_TODAY if today is not None and today.holds else Turn.FALLS_TODAY


class Shift(NamedTuple):
    """A count that is another now.

    Attributes:
        fields: The field, or the two fields of a cell.
        values: The value, or the two values.
    """

    fields: tuple[str, ...]
    values: tuple[str, ...]
    before: int
    after: int

    @property
    def turn(self) -> str:
        """Return the change of a cell: it fills (was 0), empties (is 0), has one paper left, or no longer one."""
        if self.before == self.after:
            return ""
        if not self.before or not self.after:
            return "empties" if self.before else "fills"
        return "one left" if self.after == 1 else "more than one now" if self.before == 1 else ""


class Difference(NamedTuple):
    """The changes from one state of a corpus to another.

    Attributes:
        names: What the two states are called.
        files: The data files that differ, with the values that do.
        added: Papers that are new.
        removed: Papers that are gone, to the exclusions or altogether.
        moved: By the keys of new papers the ids of exclusions that say that they were promoted to them, and by those of
            removed papers the ids of the new exclusions that are the same works.
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
    moved: Mapping[str, str]
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
        """Return True if something changed that citing the corpus would show."""
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
        record_changes.compare_files(path, before.files.get(path), after.files.get(path), names.get(path), unordered)
        for path in paths
        if before.files.get(path) != after.files.get(path)
    )
    pool = {file.subject: file.records for file in files if file.is_pool}
    papers = pool.get("papers", ())
    keys = {action: {record.name for record in papers if record.change is action} for action in Action}
    gone = {sign: record.name for record in papers if record.change is Action.REMOVED for sign in _signs(record)}
    promoted = ((exclusion.promoted_to, exclusion.id) for exclusion in new.exclusions if exclusion.promoted_to)
    moved = {key: name for key, name in promoted if key in keys[Action.ADDED]}
    for record in pool.get("exclusions", ()):
        if record.change is Action.ADDED:
            moved |= {gone[sign]: record.name for sign in reversed(_signs(record)) if sign in gone}
    turned, left, falling = _turned(before, after)
    is_whole = before.is_whole and after.is_whole
    kinds = ("papers", "exclusions")
    totals = tuple(Shift((kind,), (), len(getattr(old, kind)), len(getattr(new, kind))) for kind in kinds)
    return Difference(
        names=(before.name, after.name),
        files=files,
        added=tuple(paper for paper in new.papers if paper.key in keys[Action.ADDED]),
        removed=tuple(paper for paper in old.papers if paper.key in keys[Action.REMOVED]),
        moved=moved,
        totals=totals if is_whole else (),
        counts=tuple(count_shifts(old, new)) if is_whole else (),
        cells=tuple(cell_shifts(old, new)) if is_whole else (),
        findings_new=beyond(before.findings, after.findings),
        findings_gone=beyond(after.findings, before.findings),
        claims=turned,
        claims_falling=falling,
        claims_left=left,
        to_judge=tuple(record_changes.to_judge(files, old, new)),
        remarks=(*before.remarks, *after.remarks),
        vocabulary=new.taxonomy,
    )


def _signs(record: RecordChange) -> list[Hashable]:
    """Return the signs of a record that is new or gone, all of whose fields are in its changes."""
    sides = ((change.path[0], change.before, change.after) for change in record.values)
    return record_changes.signs({name: after if before is None else before for name, before, after in sides})


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
    return tuple(turned), len(left), falling_today(left)


def _outcome(verdict: Verdict) -> object:
    """Return what of a verdict is worth telling where it changes: where it holds, and what breaks it."""
    return verdict.holds, {name: (pool.holds, pool.falls_by) for name, pool in verdict.pools.items()}


def count_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """Yield the counts of papers and of exclusions that shifted, by the fields of the taxonomy; of levels, by term."""
    for kind, attributes_of in (("papers", paper_attributes), ("exclusions", exclusion_attributes)):
        attributes = attributes_of(before.taxonomy), attributes_of(after.taxonomy)
        for name in _counted_names((*getattr(after.taxonomy, kind), *getattr(before.taxonomy, kind))):
            yield from _shifts((getattr(before, kind), getattr(after, kind)), attributes, name)


def cell_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """The cells that turn: of axes that are crossed (else of the first pair that is), and of terms with levels.

    As in `statistics.coverage`, NA and absence are no cells.
    """
    attributes = paper_attributes(before.taxonomy), paper_attributes(after.taxonomy)
    crossed = dict.fromkeys((*after.taxonomy.crosstabs, *before.taxonomy.crosstabs))
    axes = {facet.field for pool in (before, after) for facet in pool.taxonomy.axes}
    for rows, columns in [pair for pair in crossed if axes.issuperset(pair)] or list(crossed)[:1]:
        old, new = (
            cross(pool.papers, own[rows], own[columns]).cells if rows in own and columns in own else {}
            for pool, own in zip((before, after), attributes, strict=True)
        )
        for cell in product(_values(rows, attributes), _values(columns, attributes)):
            shift = Shift((rows, columns), cell, old.get(cell, 0), new.get(cell, 0))
            if shift.turn and NO_CELLS.isdisjoint(cell):
                yield shift
    for name in _counted_names(facet for facet in (*after.taxonomy.papers, *before.taxonomy.papers) if facet.levels):
        yield from (shift for shift in _shifts((before.papers, after.papers), attributes, name) if shift.turn)


def _counted_names(facets: Iterable[Facet]) -> list[str]:
    """Return the names to count by: each facet, and for one with levels its terms, each once."""
    names: dict[str, None] = {}
    for facet in facets:
        names |= dict.fromkeys([term.id for term in facet.terms] if facet.levels else [facet.field])
    return list(names)


def _shifts(
    records: tuple[Sequence[Record], Sequence[Record]], attributes: tuple[Attributes, Attributes], name: str
) -> Iterator[Shift]:
    sides = zip(records, attributes, strict=True)
    old, new = (count(side, own[name]).counts if name in own else {} for side, own in sides)
    for value in _values(name, attributes):
        if old.get(value, 0) != new.get(value, 0):
            yield Shift((name,), (value,), old.get(value, 0), new.get(value, 0))


def _values(name: str, attributes: tuple[Attributes, Attributes]) -> list[str]:
    """The values that a field can have in either state, those of the later one first."""
    return list(
        dict.fromkeys(
            value for attribute in reversed(attributes) if name in attribute for value in attribute[name].allowed
        )
    )
