"""The flow of records through searching and screening, run by run and in all.

The names are those of PRISMA 2020 (Page et al., BMJ 372:n71): records identified, removed before screening, screened,
excluded, included. A run lists the papers that it brought; what became of each is what the corpus says of it now. The
published pool is the previous review, of which nobody has counted what was identified.
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
"""Stands for a reason that is none of the protocol's rules."""


class Flow(NamedTuple):
    """The decisions on the records of a run, or of several.

    Attributes:
        name: The day of the run and what made it; empty for all together.
        found: How many records were identified; None where nobody counted.
        by_source: How many of them each source gave, of those that were counted.
        repeated: How many of them were found twice within a run.
        known: How many the corpus knew: in the pool, in the log, or awaiting a decision.
        refused: How many could not be recorded.
        new: How many papers were brought.
        included: How many of these are in the pool.
        coding: How many were taken in, and have open tags.
        excluded: How many were left out, by stage and by the protocol's rule, or `OTHER_REASON`.
        awaiting: How many nobody has decided on.
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
        """The records that were decided on."""
        return self.included + self.coding + sum(self.excluded.values())

    @property
    def removed(self) -> int:
        """The records removed before screening: duplicates, known and refused records."""
        return self.repeated + self.known + self.refused


BY_HAND = "added by hand"
"""The name of the flow of records that no run brought."""


class Screening(NamedTuple):
    """The flow of a corpus: the published pool, each run, all runs together, and what no run brought.

    Attributes:
        included: How many papers the published pool has; all papers where a corpus has no published pool.
        excluded: How many exclusions it has, likewise.
        flows: The flow of each run.
        whole: All runs together.
        by_hand: What came after the published pool, and by no run.
        stage: The facet of exclusions that names stages of screening.
    """

    included: int
    excluded: int
    flows: tuple[Flow, ...]
    whole: Flow
    by_hand: Flow
    stage: Facet | None


def screening(pool: Pool, runs: Sequence[Run], candidates: Sequence[Candidate], protocol: Protocol | None) -> Screening:
    """Return the flow of a corpus.

    Args:
        pool: The corpus.
        runs: Its runs of searches.
        candidates: What awaits a decision in it.
        protocol: Its protocol, which has the rules and names the facet of stages.
    """
    rules = {rule.rule: rule.id for rule in protocol.exclude} if protocol else {}
    field = protocol.stage_field if protocol else None
    stage = next((facet for facet in pool.taxonomy.exclusions if facet.field == field), None)
    index = _index(pool, candidates)
    screened = {id(candidate.paper): bool(candidate.screened) for candidate in candidates}

    def count_decisions(records: Iterable[Record | None]) -> tuple[int, int, Mapping[tuple[str, str], int], int]:
        """Return how many are included, included with open tags, excluded, and await a decision."""
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
        for search in run.searches if run.found is not None else ():
            by_source[search.source] += search.found or 0
        counts = (run.found, dict(by_source), run.repeated, run.known, run.refused, len(run.new))
        flows.append(Flow(f"{run.day} {run.by}", *counts, *count_decisions(map(index.named, run.new))))
    brought = {id(index.named(name)) for run in runs for name in run.new}
    later: list[Record] = [paper for paper in pool.papers if paper.published is False]
    later += [record for record in pool.exclusions if record.published is False and not record.promoted_to]
    later += [candidate.paper for candidate in candidates]
    by_hand = [record for record in later if id(record) not in brought]
    rest = Flow(BY_HAND, None, {}, 0, 0, 0, len(by_hand), *count_decisions(by_hand))
    papers = sum(paper.published is not False for paper in pool.papers)
    exclusions = sum(exclusion.published is not False for exclusion in pool.exclusions)
    return Screening(papers, exclusions, tuple(flows), total(flows), rest, stage)


def total(flows: Sequence[Flow]) -> Flow:
    """Return all runs together; what nobody counted is left out of what was found."""
    by_source: Counter[str] = Counter()
    excluded: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        by_source.update(flow.by_source)
        excluded.update(flow.excluded)
    counted = [flow.found for flow in flows if flow.found is not None]
    fields = ("repeated", "known", "refused", "new", "included", "coding", "awaiting")
    sums = {name: sum(getattr(flow, name) for flow in flows) for name in fields}
    found = sum(counted) if counted else None
    return Flow("", found, dict(by_source), excluded=dict(excluded), **sums)


def check(file: Entries[Run], pool: Pool, candidates: Entries[Candidate]) -> tuple[Finding, ...]:
    """Return the findings of the file, or else the papers of its runs that are nowhere."""
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
