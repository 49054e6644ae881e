"""The changes from one state of a corpus to another: values, and with them counts, cells, findings and claims.

A paper whose key changed, but not its identifier or its title, counts as renamed. Comments, layout and the order of
records are changes of form, which are listed separately.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import product

from orchtrace_corpus.base.findings import Finding, new_findings
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis import record_changes
from orchtrace_corpus.corpus.analysis.attributes import Attributes, exclusion_attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.claims import Verdict, falling_today
from orchtrace_corpus.corpus.analysis.record_changes import Action, FileDifference, RecordChange, ToJudge
from orchtrace_corpus.corpus.analysis.statistics import MISSING
from orchtrace_corpus.corpus.model.claim_file import PoolName
from orchtrace_corpus.corpus.model.records import Paper, Pool, Record
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy


class State(NamedTuple):
    """A corpus at one time, with the bytes of its data files by path.

    Attributes:
        verdicts: The verdicts on its claims; None if they could not be evaluated.
        unread_claims: The ids of claims that could not be read; None if some of these ids are unknown, too.
        is_whole: True if all papers and exclusions could be read, so that they can be counted.
        remarks: Sentences about the state that a report shows.
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
    """The change of a claim's verdict: as the claim is written, or over the current pool ("today")."""

    BROKEN = "broken"
    FALLS_TODAY = "falls today"
    MADE_TRUE = "made true"
    HOLDS_TODAY = "holds today again"
    NEW = "new"


class ClaimTurn(NamedTuple):
    """A claim that is new, for which `before` is None, or whose verdict over one of the pools has changed."""

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
    """The number of records with a value of a field, or with a pair of values of two fields, in both states."""

    fields: tuple[str, ...]
    values: tuple[str, ...]
    before: int
    after: int

    @property
    def turn(self) -> str:
        """Return the change of a cell in words, if it is empty or has a single paper in one of the states."""
        if self.before == self.after:
            return ""
        if not self.before:
            return "fills"
        if not self.after:
            return "empties"
        if self.after == 1:
            return "one left"
        return "more than one now" if self.before == 1 else ""


class Difference(NamedTuple):
    """The changes from one state of a corpus to another.

    Attributes:
        removed: The papers that were moved to the exclusions or deleted.
        moved: For new papers that were exclusions, the exclusion's id by the paper's key; likewise for removed papers
            that are exclusions now.
        totals: The numbers of papers and exclusions. Empty if not all could be read, like `counts` and `cells`.
        counts: The changed counts of values.
        cells: The cells of crossed fields, and of terms and levels, that have a `turn`.
        claims: The claims that are new or whose verdict changed, over the published pool or the current one.
        claims_falling: The ids of other claims that hold over the published pool and fail over the current one.
        claims_left: The number of claims whose verdicts did not change.
        vocabulary: The taxonomy of the later state.
        outside: The paths of files that a pull request changes outside the data folder.
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
        """Return True if more than the form of the files changed."""
        has_values = any(file.records for file in self.files)
        return has_values or bool(self.findings_new or self.findings_gone or self.claims)


def compare(before: State, after: State, names: Mapping[str, Sequence[str]]) -> Difference:
    """Return the changes between two states of a corpus; `names` has the fields that name the records of each file."""
    old, new = before.pool, after.pool
    facets = [facet for pool in (old, new) for facet in (*pool.taxonomy.papers, *pool.taxonomy.exclusions)]
    unordered = {"tags", *(facet.field for facet in facets if facet.kind is Kind.MANY)}
    files = []
    for path in dict.fromkeys((*names, *sorted({*before.files, *after.files}))):
        was, now = before.files.get(path), after.files.get(path)
        if was != now:
            files.append(record_changes.compare_files(path, was, now, names.get(path), unordered))
    changes_by_subject = {file.subject: file.records for file in files if file.is_pool}
    paper_changes = changes_by_subject.get("papers", ())
    added_keys = {record.name for record in paper_changes if record.change is Action.ADDED}
    removed_papers = [record for record in paper_changes if record.change is Action.REMOVED]
    removed_keys = {record.name for record in removed_papers}
    removed_key_by_sign = {sign: record.name for record in removed_papers for sign in _signs(record)}
    moved = {}
    for exclusion in new.exclusions:
        if exclusion.promoted_to in added_keys:
            moved[exclusion.promoted_to] = exclusion.id
    for record in changes_by_subject.get("exclusions", ()):
        if record.change is Action.ADDED:
            for sign in reversed(_signs(record)):
                if sign in removed_key_by_sign:
                    moved[removed_key_by_sign[sign]] = record.name
    turned, left, falling = _turned_claims(before, after)
    is_whole = before.is_whole and after.is_whole
    totals = (
        Shift(("papers",), (), len(old.papers), len(new.papers)),
        Shift(("exclusions",), (), len(old.exclusions), len(new.exclusions)),
    )
    return Difference(
        names=(before.name, after.name),
        files=tuple(files),
        added=tuple(paper for paper in new.papers if paper.key in added_keys),
        removed=tuple(paper for paper in old.papers if paper.key in removed_keys),
        moved=moved,
        totals=totals if is_whole else (),
        counts=tuple(count_shifts(old, new)) if is_whole else (),
        cells=tuple(cell_shifts(old, new)) if is_whole else (),
        findings_new=new_findings(before.findings, after.findings),
        findings_gone=new_findings(after.findings, before.findings),
        claims=turned,
        claims_falling=falling,
        claims_left=left,
        to_judge=tuple(record_changes.to_judge(files, old, new)),
        remarks=(*before.remarks, *after.remarks),
        vocabulary=new.taxonomy,
    )


def _signs(record: RecordChange) -> list[Hashable]:
    """Return the signs of an added or removed record, whose changes contain all of its fields."""
    fields = {}
    for change in record.values:
        fields[change.path[0]] = change.after if change.before is None else change.before
    return record_changes.signs(fields)


def _turned_claims(before: State, after: State) -> tuple[tuple[ClaimTurn, ...], int, tuple[str, ...]]:
    """Return the claims that are new or changed, the number of the others, and the ids of others that fail today."""
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
    """Return the parts of a verdict whose change is reported: the pools over which it holds, and what breaks it."""
    return verdict.holds, {name: (pool.holds, pool.falls_by) for name, pool in verdict.pools.items()}


def count_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """Yield the changed counts of papers and exclusions, by facet; by term for a facet with levels."""
    for kind, attributes_of in (("papers", paper_attributes), ("exclusions", exclusion_attributes)):
        states = [(getattr(pool, kind), attributes_of(pool.taxonomy)) for pool in (before, after)]
        for name in _counted_names((*getattr(after.taxonomy, kind), *getattr(before.taxonomy, kind))):
            yield from (shift for shift in _shifts(states, (name,)) if shift.before != shift.after)


def cell_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """Yield the cells with a `turn`: of crossed axes, and of terms and levels.

    If the taxonomy crosses no axes, the first pair of fields that it crosses is used.
    """
    states = [(pool.papers, paper_attributes(pool.taxonomy)) for pool in (before, after)]
    crossed = list(dict.fromkeys((*after.taxonomy.crosstabs, *before.taxonomy.crosstabs)))
    axes = {facet.field for pool in (before, after) for facet in pool.taxonomy.axes}
    crossed_axes = [pair for pair in crossed if axes.issuperset(pair)]
    for pair in crossed_axes or crossed[:1]:
        yield from (shift for shift in _shifts(states, pair) if shift.turn and MISSING.isdisjoint(shift.values))
    for name in _counted_names(facet for facet in (*after.taxonomy.papers, *before.taxonomy.papers) if facet.levels):
        yield from (shift for shift in _shifts(states, (name,)) if shift.turn)


def _counted_names(facets: Iterable[Facet]) -> list[str]:
    """Return the names of attributes to count by, each once: facets, or the terms of a facet with levels."""
    names: list[str] = []
    for facet in facets:
        names += [term.id for term in facet.terms] if facet.levels else [facet.field]
    return list(dict.fromkeys(names))


def _shifts(states: Sequence[tuple[Sequence[Record], Attributes]], fields: tuple[str, ...]) -> Iterator[Shift]:
    """Yield both counts of each combination of values that some fields can have in either state."""
    tallies: list[Counter[tuple[str, ...]]] = []
    allowed: list[dict[str, None]] = [{} for _ in fields]  # by field, the later state's values first
    for records, attributes in reversed(states):
        tally: Counter[tuple[str, ...]] = Counter()
        crossed = [attributes[field] for field in fields if field in attributes]
        if len(crossed) == len(fields):
            for record in records:
                tally.update(product(*(attribute.values(record) for attribute in crossed)))
        tallies.append(tally)
        for field, values in zip(fields, allowed, strict=True):
            if field in attributes:
                values |= dict.fromkeys(attributes[field].allowed)
    after, before = tallies
    for cell in product(*allowed):
        yield Shift(fields, cell, before[cell], after[cell])
