"""Decide on candidates: the order of reading, similar records, screening sheets, and the edits that record decisions.

An included candidate becomes a paper if no field is missing. Otherwise it stays a candidate, and gets the day of the
decision and the tags that were given. An excluded candidate becomes an exclusion.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, Location
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis import coding, reading_order
from orchtrace_corpus.corpus.analysis.coding import Column
from orchtrace_corpus.corpus.analysis.matching import RecordIndex
from orchtrace_corpus.corpus.analysis.reading_order import Score, Similarity, is_excluded, text_of
from orchtrace_corpus.corpus.edit import proposal as edit
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.edit.proposal import Proposal
from orchtrace_corpus.corpus.intake import drafts
from orchtrace_corpus.corpus.intake.drafts import Coding, Details
from orchtrace_corpus.corpus.intake.lookup import PaperRequest
from orchtrace_corpus.corpus.intake.papers import plain_text
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.codebook import Protocol
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.record_fields import Value, tag_value
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record, Tag
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy

DECISION, REASON, SUMMARY = "decision", "reason", "summary"
"""The columns that only screening sheets have."""

_FILLED_COLUMNS = (*coding.GIVEN, "abstract")
TEXT_COLUMNS = (*_FILLED_COLUMNS, REASON, SUMMARY)
"""The columns of a screening sheet that hold texts."""

_NEIGHBOUR_COUNT = 3
"""The number of papers, and of exclusions, that are shown as similar to a candidate."""


class Choice(StrEnum):
    """The decision of the person who screens a candidate; a proposed one is a `Decision`."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    LATER = "later"


class Neighbours(NamedTuple):
    """The papers and the exclusions most similar to a candidate, each with the similarity from 0 to 1."""

    papers: tuple[tuple[Record, float], ...]
    exclusions: tuple[tuple[Record, float], ...]


class Verdict(NamedTuple):
    """A decision on the candidate with a key. The tags are for the paper or the exclusion that it becomes."""

    key: str
    choice: Choice
    reason: str = ""
    tags: Mapping[str, Tag] = {}
    summary: str = ""


def order_candidates(
    candidates: Sequence[Candidate], pool: Pool, metadata: Mapping[str, Metadata], *, likely: bool
) -> tuple[tuple[Candidate, ...], tuple[Score, ...]]:
    """Return the candidates in the order of reading: the newest first, or with `likely`, the likeliest to be included.

    The scores, which explain the likely order, are empty for the other. The likely order raises an error if too few
    records are decided on to learn from, or if scikit-learn is not installed.
    """
    if not likely:
        return tuple(reading_order.by_date(candidates)), ()
    pairs = reading_order.likely(candidates, pool, plain_abstracts(metadata))
    return tuple(candidate for candidate, _ in pairs), tuple(score for _, score in pairs)


def plain_abstracts(metadata: Mapping[str, Metadata]) -> dict[str, str]:
    """Return the abstracts in arXiv's metadata by arXiv id, as plain text."""
    return {arxiv_id: plain_text(paper.abstract) for arxiv_id, paper in metadata.items() if paper.abstract}


def select_undecided(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates without a decision."""
    return tuple(candidate for candidate in candidates if not candidate.screened)


def find_neighbours(candidate: Candidate, similarity: Similarity, abstracts: Mapping[str, str]) -> Neighbours:
    """Return the records most similar to a candidate, by an index of all records and the abstracts by arXiv id."""
    text = text_of(candidate.paper, abstracts)
    papers = similarity.nearest(text, _NEIGHBOUR_COUNT, lambda record: isinstance(record, Paper))
    exclusions = similarity.nearest(text, _NEIGHBOUR_COUNT, is_excluded)
    return Neighbours(tuple(papers), tuple(exclusions))


def include(
    corpus: CorpusFiles, candidate: Candidate, reason: str, tags: Mapping[str, Tag], day: str, summary: str = ""
) -> Proposal:
    """Propose to include a candidate: as a paper if no field is missing, else as a candidate with the tags given.

    `reason` and `summary` are ignored if empty; a summary that the candidate has is kept. `day` is that of the
    decision.
    """
    bare = candidate.paper._replace(tags={}, evidence=(), summary=candidate.paper.summary or summary)
    request = PaperRequest(candidate.name, bare, source="".join(bare.urls[:1]), candidate=candidate)
    records, gaps_by_name = drafts.complete_papers([request], Details(), Coding(tags), corpus.pool)
    if not gaps_by_name and bare.summary:
        return edit.add(corpus, records, [candidate])
    settled = candidate.settle(tags, corpus.pool.taxonomy)
    changes: dict[str, Value | None] = {}
    for facet in corpus.pool.taxonomy.papers:
        if facet.field in tags and facet.kind is Kind.LEVELS:
            changes[facet.field] = settled.settled_levels(facet)
        elif facet.field in tags:
            changes[facet.field] = tag_value(tags[facet.field])
    if bare.summary:
        changes[SUMMARY] = bare.summary
    changes |= {"proposal": Decision.INCLUDE.value, "reason": reason or candidate.reason, "screened": day}
    index = corpus.candidates.items.index(candidate)
    return Proposal({store.CANDIDATES: edit_file(corpus, store.CANDIDATES, changes={index: changes})})


def draft_exclusion(corpus: CorpusFiles, candidate: Candidate, draft: Exclusion) -> tuple[Exclusion, list[drafts.Gap]]:
    """Return a candidate as an exclusion, and its gaps. The values in `draft` take precedence over its own."""
    reason = draft.reason or proposed_reason(candidate)
    exclusion = draft._replace(tags={**candidate.screening, **draft.tags}, reason=reason)
    return drafts.complete_exclusion(candidate.paper, corpus, exclusion)


def proposed_reason(candidate: Candidate, decision: Decision = Decision.EXCLUDE) -> str:
    """Return the reason of a candidate for which this decision is proposed; empty if another one is."""
    return candidate.reason if candidate.proposal is decision else ""


def sheet_columns(taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return the columns of a screening sheet: the decision, the tags of exclusions, the tags of papers."""
    decision = Column(DECISION, DECISION, tuple(choice.value for choice in Choice))
    exclusion_columns = [
        Column(facet.field, facet.field, facet.values) for facet in taxonomy.exclusions if facet.kind is Kind.SINGLE
    ]
    return (decision, *exclusion_columns, *coding.columns(taxonomy))


def is_screening_sheet(text: str) -> bool:
    """Return True if a sheet is for screening: it has a column of decisions."""
    header = text.removeprefix("\ufeff").partition("\n")[0]
    return DECISION in [name.strip().strip('"') for name in re.split("[;,\t]", header)]


def new_sheet(candidates: Sequence[Candidate], abstracts: Mapping[str, str], taxonomy: Taxonomy) -> str:
    """Return a CSV sheet for screening: key, title, links, abstract, and columns for the decision.

    A cell that a spreadsheet would evaluate as a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fields = {facet.field for facet in taxonomy.exclusions}
    names = [column.name for column in sheet_columns(taxonomy) if column.field in fields]
    writer.writerow((*_FILLED_COLUMNS, DECISION, *names, REASON))
    for candidate in candidates:
        paper = candidate.paper
        cells = (paper.key, paper.title, " ; ".join(paper.urls), abstracts.get(paper.arxiv_id or "", ""))
        safe_cells = (f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell for cell in cells)
        tags = (str(candidate.screening.get(name, "")) for name in names)
        writer.writerow((*safe_cells, "", *tags, ""))
    return text.getvalue()


def decode_sheet(text: str, path: str, taxonomy: Taxonomy, keys: Iterable[str]) -> tuple[list[Verdict], list[Finding]]:
    """Return the decisions in a CSV sheet on the candidates with these keys, and the errors in the sheet.

    Rows without a decision are left out. `path` is for the errors.
    """
    sheet, findings = coding.decode(text, path, sheet_columns(taxonomy), keys, also=TEXT_COLUMNS)
    if any(finding.code == "K101" for finding in findings):  # the header is wrong
        return [], findings
    rows_by_key = {(row.get("key") or "").strip(): row for row in _rows(text)}
    verdicts = []
    for key, codes in sheet.codes.items():
        if DECISION not in codes:
            continue
        choice = Choice(codes[DECISION])
        facets = taxonomy.exclusions if choice is Choice.EXCLUDE else taxonomy.papers
        row = rows_by_key.get(key, {})
        reason, summary = (" ".join((row.get(name) or "").split()) for name in (REASON, SUMMARY))
        verdicts.append(Verdict(key, choice, reason, _tags(codes, facets), summary))
    if not verdicts and not findings:
        findings.append(Finding("K106", f"not coded: {DECISION}", Location(path, 1, 1)))
    return verdicts, findings


def decided_keys(text: str, corpus: CorpusFiles) -> set[str]:
    """Return the keys of rows in a sheet that were decided before: on a paper, a candidate or, by URL, an exclusion."""
    decided = {candidate.name for candidate in corpus.candidates.items if candidate.screened}
    decided |= {paper.key for paper in corpus.pool.papers}
    waiting = {candidate.name for candidate in select_undecided(corpus.candidates.items)}
    exclusions = RecordIndex(corpus.pool.exclusions)
    keys = set()
    for row in _rows(text):
        key = (row.get("key") or "").strip()
        links = tuple((row.get("links") or "").split(" ; "))
        if key not in waiting and (key in decided or exclusions.find(Paper(urls=links), by_title=False)):
            keys.add(key)
    return keys


def sheet_keys(text: str) -> list[str]:
    """Return the keys in a sheet, even those that no candidate has."""
    return [(row.get("key") or "").strip() for row in _rows(text)]


def _rows(text: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a sheet by column; the separator is the most frequent one in the header."""
    separator = max(",;\t", key=text.partition("\n")[0].count)
    with suppress(csv.Error):  # `coding.decode` reports the error with its line
        yield from csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator)


def _tags(codes: Mapping[str, str], facets: Sequence[Facet]) -> dict[str, Tag]:
    """Return the tags in the cells of a row, which are given by column."""
    tags: dict[str, Tag] = {}
    for facet in facets:
        if facet.kind is Kind.LEVELS:
            levels = {term.id: codes[term.id] for term in facet.terms if term.id in codes}
            if levels:
                tags[facet.field] = levels
        elif facet.field in codes:
            cell = codes[facet.field]
            tags[facet.field] = tuple(cell.split(";")) if facet.kind is Kind.MANY else cell
    return tags


def merge_sheets(sheets: Sequence[Sequence[Verdict]]) -> tuple[list[Verdict], list[str]]:
    """Return the decisions of the first reader with which all readers agree, and the keys on which readers differ."""
    by_key: dict[str, list[Verdict]] = {}
    for verdicts in sheets:
        for verdict in verdicts:
            by_key.setdefault(verdict.key, []).append(verdict)
    differing = [key for key, verdicts in by_key.items() if len({verdict.choice for verdict in verdicts}) > 1]
    return [verdicts[0] for key, verdicts in by_key.items() if key not in differing], differing


def expand_reason(verdict: Verdict, protocol: Protocol | None) -> Verdict:
    """Return a decision whose reason is in full: the id of a rule of the protocol becomes the rule's text.

    Raises:
        CommandUseError: The candidate is included or excluded without a reason.
    """
    reason = verdict.reason
    if protocol is not None:
        rules = {rule.id: rule.rule for rule in (*protocol.include, *protocol.exclude)}
        reason = rules.get(reason, reason)
    if not reason and verdict.choice is not Choice.LATER:
        raise CommandUseError(f"{verdict.key} has no reason", "Give a sentence, or the id of a rule of the protocol.")
    return verdict._replace(reason=reason)
