"""The flow of records through searching and screening, for each search run and in total.

The names are those of PRISMA 2020 (Page et al., BMJ 372:n71): records identified, removed before screening, screened,
excluded, included. A search run lists the new papers that it found; the decision on each is read from the current
corpus. The published pool is what PRISMA calls the previous review; its number of records identified is unknown.
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
    """The numbers of records of a search run, or of several; the last four count the decisions on new records.

    Attributes:
        name: The day of the run and the person who ran it; empty for all runs together.
        found: The number of records identified; None if unknown.
        by_source: The same number by the database that was searched.
        repeated: The number of records found twice within a run.
        known: The number of records that the corpus already had, as papers, exclusions or candidates.
        refused: The number of records with errors, which were not recorded.
        new: The number of the other records; these are screened.
        coding: The number of papers that are included, but have undecided tags.
        excluded: The number of exclusions by pairs of a stage and a rule of the protocol, or `OTHER_REASON`.
        awaiting: The number of records without a decision.
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
        """The number of new records with a decision."""
        return self.included + self.coding + sum(self.excluded.values())

    @property
    def removed(self) -> int:
        """The number of records removed before screening: duplicates, known and refused records."""
        return self.repeated + self.known + self.refused


BY_HAND = "added by hand"
"""The name of the flow of records that come from no search run."""


class Screening(NamedTuple):
    """The flow of a corpus: of each run, of all runs together, and of later records that come from no run.

    Attributes:
        included: The number of papers of the published pool; of all papers if there is no published pool.
        excluded: The number of exclusions of the published pool; of all exclusions if there is no published pool.
        flows: The flow of each run.
        whole: The flow of all runs together.
        by_hand: The flow of later records that come from no run.
        stage: The facet of exclusions that names the stages of screening; None if there is none.
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
    facets = {facet.field: facet for facet in pool.taxonomy.exclusions}
    stage = facets.get(field) if field else None
    index = _index(pool, candidates)
    candidates_by_paper = {id(candidate.paper): candidate for candidate in candidates}

    def count_decisions(records: Iterable[Record | None]) -> tuple[int, int, Mapping[tuple[str, str], int], int]:
        """Return the last four fields of a flow; None stands for a record that was deleted, and is not counted."""
        included = coding = awaiting = 0
        excluded: Counter[tuple[str, str]] = Counter()
        for record in records:
            if isinstance(record, Exclusion) and not record.promoted_to:
                tag = record.tags.get(stage.field, "") if stage else ""
                excluded[str(tag), rules.get(record.reason, OTHER_REASON)] += 1
            elif id(record) in candidates_by_paper:
                if candidates_by_paper[id(record)].screened:
                    coding += 1
                else:
                    awaiting += 1
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
        flows.append(Flow(f"{run.day} {run.by}", *counts, *count_decisions(map(index.find_by_name, run.new))))
    ids_from_runs = {id(index.find_by_name(name)) for run in runs for name in run.new}
    later = [record for record in pool.records if record.published is False]
    later += [candidate.paper for candidate in candidates]
    by_hand = []
    for record in later:
        is_promoted = isinstance(record, Exclusion) and record.promoted_to
        if not is_promoted and id(record) not in ids_from_runs:
            by_hand.append(record)
    by_hand_flow = Flow(BY_HAND, None, {}, 0, 0, 0, len(by_hand), *count_decisions(by_hand))
    paper_count = sum(paper.published is not False for paper in pool.papers)
    exclusion_count = sum(exclusion.published is not False for exclusion in pool.exclusions)
    return Screening(paper_count, exclusion_count, tuple(flows), total(flows), by_hand_flow, stage)


def total(flows: Sequence[Flow]) -> Flow:
    """Return the sum of several flows; unknown numbers of records identified count as 0, or as None if all are."""
    by_source: Counter[str] = Counter()
    excluded: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        by_source.update(flow.by_source)
        excluded.update(flow.excluded)
    identified = [flow.found for flow in flows if flow.found is not None]
    found = sum(identified) if identified else None
    fields = ("repeated", "known", "refused", "new", "included", "coding", "awaiting")
    sums = {name: sum(getattr(flow, name) for flow in flows) for name in fields}
    return Flow("", found, dict(by_source), excluded=dict(excluded), **sums)


def check(file: Entries[Run], pool: Pool, candidates: Entries[Candidate]) -> tuple[Finding, ...]:
    """Return the findings of the file of runs; if it has none, findings of new papers that the corpus does not have."""
    if file.places is None or file.findings:
        return file.findings
    index = _index(pool, candidates.items)
    findings = []
    for run_index, run in enumerate(file.items):
        for name_index, name in enumerate(run.new):
            if index.find_by_name(name) is None:
                message = f"{quote(name)} is neither in the pool nor in the log nor a candidate"
                location = file.places.locate(run_index, "new", name_index)
                findings.append(Finding("B108", f"{message}; add it, or exclude it with the reason", location))
    return tuple(findings)


def _index(pool: Pool, candidates: Sequence[Candidate]) -> RecordIndex:
    return RecordIndex([*pool.papers, *pool.exclusions, *(candidate.paper for candidate in candidates)])
