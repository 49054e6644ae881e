"""The flow of records through searching and screening, for each search run and in total.

The names are those of PRISMA 2020 (Page et al., BMJ 372:n71): records identified, removed before screening, screened,
excluded, included. A run lists the papers that it found; the decision on each is read from the current corpus. The
published pool is the previous review, for which the number of records identified is unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.matching import RecordIndex
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.codebook import Protocol
from orchtrace_corpus.corpus.model.records import Entries, Exclusion, Pool, Record
from orchtrace_corpus.corpus.model.searches import Run
from orchtrace_corpus.corpus.model.taxonomy import Facet

OTHER_REASON = "other"
"""A reason for exclusion that is no rule of the protocol."""


class Flow(NamedTuple):
    """The numbers of records of a search run, or of several; the last four are the decisions on the new ones.

    Attributes:
        name: The day of the run and its maker; empty for all runs together.
        found: The records identified; None if unknown.
        repeated: The records found twice within a run.
        known: The records that the corpus had already, as papers, exclusions or candidates.
        refused: The records that could not be recorded.
        coding: The papers that are included, but have undecided tags.
        excluded: The exclusions, by stage and by rule of the protocol, or `OTHER_REASON`.
    """

    name: str
    found: int | None
    by_source: Mapping[str, int]
    repeated: int
    known: int
    refused: int
    new: int
    included: int
    coding: int
    excluded: Mapping[tuple[str, str], int]
    awaiting: int

    @property
    def screened(self) -> int:
        """The number of records with a decision."""
        return self.included + self.coding + sum(self.excluded.values())

    @property
    def removed(self) -> int:
        """The number of records removed before screening: duplicates, known and refused records."""
        return self.repeated + self.known + self.refused


BY_HAND = "added by hand"
"""The name of the flow of records from no search run."""


class Screening(NamedTuple):
    """The flow of a corpus: of each run, of all runs together, and of later records from no run.

    `included` and `excluded` are the numbers of papers and exclusions of the published pool, or of all if there is
    none. `stage` is the facet of exclusions that names stages of screening.
    """

    included: int
    excluded: int
    flows: tuple[Flow, ...]
    whole: Flow
    by_hand: Flow
    stage: Facet | None


def screening(pool: Pool, runs: Sequence[Run], candidates: Sequence[Candidate], protocol: Protocol | None) -> Screening:
    """Return the flow of a corpus, with the rules and the facet of stages that its protocol names."""
    rules = {rule.rule: rule.id for rule in protocol.exclude} if protocol else {}
    field = protocol.stage_field if protocol else None
    stage = next((facet for facet in pool.taxonomy.exclusions if facet.field == field), None)
    index = _index(pool, candidates)
    screened = {id(candidate.paper): bool(candidate.screened) for candidate in candidates}

    def count_decisions(records: Iterable[Record | None]) -> tuple[int, int, Mapping[tuple[str, str], int], int]:
        """Return the last four numbers of a flow."""
        included = coding = awaiting = 0
        excluded: Counter[tuple[str, str]] = Counter()
        for record in records:
            if isinstance(record, Exclusion) and not record.promoted_to:
                tag = record.tags.get(stage.field, "") if stage else ""
                excluded[str(tag), rules.get(record.reason, OTHER_REASON)] += 1
            elif id(record) in screened:
                coding += screened[id(record)]
                awaiting += not screened[id(record)]
            elif record is not None:
                included += 1
        return included, coding, dict(excluded), awaiting

    flows = []
    for run in runs:
        by_source: Counter[str] = Counter()
        if run.found is not None:
            for search in run.searches:
                by_source[search.source] += search.found or 0
        counts = (run.found, dict(by_source), run.repeated, run.known, run.refused, len(run.new))
        flows.append(Flow(f"{run.day} {run.by}", *counts, *count_decisions(map(index.named, run.new))))
    from_runs = {id(index.named(name)) for run in runs for name in run.new}
    later = [record for record in pool.records if record.published is False]
    later += [candidate.paper for candidate in candidates]
    later = [record for record in later if not (isinstance(record, Exclusion) and record.promoted_to)]
    by_hand = [record for record in later if id(record) not in from_runs]
    rest = Flow(BY_HAND, None, {}, 0, 0, 0, len(by_hand), *count_decisions(by_hand))
    papers = sum(paper.published is not False for paper in pool.papers)
    exclusions = sum(exclusion.published is not False for exclusion in pool.exclusions)
    return Screening(papers, exclusions, tuple(flows), total(flows), rest, stage)


def total(flows: Sequence[Flow]) -> Flow:
    """Return the sum of several flows; unknown numbers of records identified are ignored."""
    by_source: Counter[str] = Counter()
    excluded: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        by_source.update(flow.by_source)
        excluded.update(flow.excluded)
    counted = [flow.found for flow in flows if flow.found is not None]
    fields = ("repeated", "known", "refused", "new", "included", "coding", "awaiting")
    sums = {name: sum(getattr(flow, name) for flow in flows) for name in fields}
    identified = sum(counted) if counted else None
    return Flow("", identified, dict(by_source), excluded=dict(excluded), **sums)


def check(file: Entries[Run], pool: Pool, candidates: Entries[Candidate]) -> tuple[Finding, ...]:
    """Return the findings of the file; without any, the papers of its runs that the corpus does not have."""
    if file.places is None or file.findings:
        return file.findings
    index = _index(pool, candidates.items)
    findings = []
    for place, run in enumerate(file.items):
        for position, name in enumerate(run.new):
            if index.named(name) is None:
                message = f"{quote(name)} is neither in the pool nor in the log nor a candidate"
                fix = "add it, or exclude it with the reason"
                findings.append(Finding("B108", f"{message}; {fix}", file.places.locate(place, "new", position)))
    return tuple(findings)


def _index(pool: Pool, candidates: Sequence[Candidate]) -> RecordIndex:
    return RecordIndex([*pool.papers, *pool.exclusions, *(candidate.paper for candidate in candidates)])
