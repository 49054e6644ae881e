"""Decide on candidates: the order of reading, similar records, sheets, and the edit that records a decision.

An included candidate becomes a paper if no field is missing; else it stays a candidate, with the day of the decision
and the tags given. An excluded one becomes an exclusion. Either way it is one edit.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, Location
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis import coding, reading_order
from orchtrace_corpus.corpus.analysis.coding import Column
from orchtrace_corpus.corpus.analysis.matching import RecordIndex
from orchtrace_corpus.corpus.analysis.reading_order import Place, Similarity, is_excluded, text_of
from orchtrace_corpus.corpus.edit import proposal as edit
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.edit.proposal import Proposal
from orchtrace_corpus.corpus.intake import drafts
from orchtrace_corpus.corpus.intake.drafts import Coding, Details
from orchtrace_corpus.corpus.intake.lookup import PaperRequest
from orchtrace_corpus.corpus.intake.papers import plain
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

_GIVEN = (*coding.GIVEN, "abstract")
SHEET_TEXTS = (*_GIVEN, REASON, SUMMARY)
"""The columns of a screening sheet that hold texts."""

_NEIGHBOURS = 3
"""The number of similar records shown, of papers and of exclusions."""


class Choice(StrEnum):
    """The decision on a candidate."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    LATER = "later"


class Neighbours(NamedTuple):
    """The papers and the exclusions most similar to a candidate, each with the similarity from 0 to 1."""

    papers: tuple[tuple[Record, float], ...]
    exclusions: tuple[tuple[Record, float], ...]


class Verdict(NamedTuple):
    """A decision on a candidate, by its key; the tags are those of the paper or of the exclusion that it becomes."""

    key: str
    choice: Choice
    reason: str = ""
    tags: Mapping[str, Tag] = {}
    summary: str = ""


def in_order(
    candidates: Sequence[Candidate], pool: Pool, answers: Mapping[str, Metadata], *, likely: bool
) -> tuple[tuple[Candidate, ...], tuple[Place, ...]]:
    """Return candidates in the order of reading, the newest first; or the likeliest, with their places.

    The likely order raises errors if too few records are decided on to learn from, or scikit-learn is not installed.
    """
    if not likely:
        return tuple(reading_order.by_date(candidates)), ()
    placed = reading_order.likely(candidates, pool, abstracts(answers))
    return tuple(candidate for candidate, _ in placed), tuple(place for _, place in placed)


def abstracts(answers: Mapping[str, Metadata]) -> dict[str, str]:
    """Return the stored abstracts by arXiv id, as plain text: they come from outside."""
    return {name: plain(metadata.abstract) for name, metadata in answers.items() if metadata.abstract}


def undecided(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates without a decision."""
    return tuple(candidate for candidate in candidates if not candidate.screened)


def find_neighbours(candidate: Candidate, similarity: Similarity, abstracts: Mapping[str, str]) -> Neighbours:
    """Return the records most similar to a candidate, given the index of all and the abstracts by arXiv id."""
    text = text_of(candidate.paper, abstracts)
    papers = similarity.nearest(text, _NEIGHBOURS, lambda record: isinstance(record, Paper))
    return Neighbours(tuple(papers), tuple(similarity.nearest(text, _NEIGHBOURS, is_excluded)))


def include(
    corpus: CorpusFiles, candidate: Candidate, reason: str, tags: Mapping[str, Tag], day: str, summary: str = ""
) -> Proposal:
    """Propose to include a candidate: as a paper if no field is missing, else as a candidate with the tags given.

    An empty reason keeps the one on record, and a summary on record stays. `day` is the day of the decision.
    """
    bare = candidate.paper._replace(tags={}, evidence=(), summary=candidate.paper.summary or summary)
    request = PaperRequest(candidate.name, bare, source=next(iter(bare.urls), ""), candidate=candidate)
    records, gaps = drafts.complete_papers([request], Details(), Coding(tags), corpus.pool)
    if not gaps and bare.summary:
        return edit.add(corpus, records, [candidate])
    settled = candidate.settle(tags, corpus.pool.taxonomy)
    changes: dict[str, Value | None] = {
        facet.field: settled.settled_levels(facet) if facet.kind is Kind.LEVELS else tag_value(tags[facet.field])
        for facet in corpus.pool.taxonomy.papers
        if facet.field in tags
    }
    changes |= {SUMMARY: bare.summary} if bare.summary else {}
    changes |= {"proposal": Decision.INCLUDE.value, "reason": reason or candidate.reason, "screened": day}
    position = corpus.candidates.items.index(candidate)
    return Proposal({store.CANDIDATES: edit_file(corpus, store.CANDIDATES, changes={position: changes})})


def draft_exclusion(corpus: CorpusFiles, candidate: Candidate, draft: Exclusion) -> tuple[Exclusion, list[drafts.Gap]]:
    """Return a candidate as an exclusion, and its missing fields; the values of a draft come before its own."""
    reason = draft.reason or proposed_reason(candidate)
    exclusion = draft._replace(tags={**candidate.screening, **draft.tags}, reason=reason)
    return drafts.complete_exclusion(candidate.paper, corpus, exclusion)


def proposed_reason(candidate: Candidate, decision: Decision = Decision.EXCLUDE) -> str:
    """Return a candidate's reason if this decision is proposed for it; empty if another is."""
    return candidate.reason if candidate.proposal is decision else ""


def sheet_columns(taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return the columns of a screening sheet: the decision, the tags of exclusions, the tags of papers."""
    decision = Column(DECISION, DECISION, tuple(choice.value for choice in Choice))
    single = (facet for facet in taxonomy.exclusions if facet.kind is Kind.SINGLE)
    return (decision, *(Column(facet.field, facet.field, facet.values) for facet in single), *coding.columns(taxonomy))


def is_screening_sheet(text: str) -> bool:
    """Return True if a sheet is for screening: it has a column of decisions."""
    heading = text.removeprefix("\ufeff").partition("\n")[0]
    return DECISION in [name.strip().strip('"') for name in heading.replace(";", ",").replace("\t", ",").split(",")]


def blank_sheet(candidates: Sequence[Candidate], abstracts: Mapping[str, str], taxonomy: Taxonomy) -> str:
    """Return a CSV sheet for screening: key, title, links, abstract, and empty columns for the decision.

    A text from outside that a spreadsheet would read as a formula gets an apostrophe before it.
    """
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    fields = {facet.field for facet in taxonomy.exclusions}
    names = [column.name for column in sheet_columns(taxonomy) if column.field in fields]
    out.writerow((*_GIVEN, DECISION, *names, REASON))
    for candidate in candidates:
        paper = candidate.paper
        cells = (paper.key, paper.title, " ; ".join(paper.urls), abstracts.get(paper.arxiv_id or "", ""))
        safe = (f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell for cell in cells)
        out.writerow((*safe, "", *(str(candidate.screening.get(name, "")) for name in names), ""))
    return text.getvalue()


def read_sheet(text: str, path: str, taxonomy: Taxonomy, keys: Iterable[str]) -> tuple[list[Verdict], list[Finding]]:
    """Return the decisions of a CSV sheet on candidates with some keys, and the errors in it.

    Rows without a decision are left out. `path` is shown in the errors.
    """
    sheet, findings = coding.decode(text, path, sheet_columns(taxonomy), keys, also=SHEET_TEXTS)
    if any(finding.code == "K101" for finding in findings):
        return [], findings
    rows = {(row.get("key") or "").strip(): row for row in _rows(text)}
    verdicts = []
    for key, codes in sheet.codes.items():
        if DECISION not in codes:
            continue
        choice = Choice(codes[DECISION])
        facets = taxonomy.exclusions if choice is Choice.EXCLUDE else taxonomy.papers
        reason, summary = (" ".join((rows.get(key, {}).get(name) or "").split()) for name in (REASON, SUMMARY))
        verdicts.append(Verdict(key, choice, reason, _tags(codes, facets), summary))
    if not verdicts and not findings:
        findings.append(Finding("K106", f"not coded: {DECISION}", Location(path, 1, 1)))
    return verdicts, findings


def decided_keys(text: str, corpus: CorpusFiles) -> set[str]:
    """Return the keys of rows with an earlier decision: on a paper, a candidate or, by URL, an exclusion."""
    decided = {candidate.name for candidate in corpus.candidates.items if candidate.screened}
    decided |= {paper.key for paper in corpus.pool.papers}
    waiting = {candidate.name for candidate in undecided(corpus.candidates.items)}
    exclusions = RecordIndex(corpus.pool.exclusions)
    keys = set()
    for row in _rows(text):
        key, links = (row.get("key") or "").strip(), tuple((row.get("links") or "").split(" ; "))
        if key not in waiting and (key in decided or exclusions.find(Paper(urls=links), by_title=False)):
            keys.add(key)
    return keys


def sheet_keys(text: str) -> list[str]:
    """Return the keys in a sheet, known or not."""
    return [(row.get("key") or "").strip() for row in _rows(text)]


def _rows(text: str) -> Iterator[Mapping[str, str]]:
    separator = max(",;\t", key=text.partition("\n")[0].count)
    with suppress(csv.Error):  # `coding.decode` reports it with its line
        yield from csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator)


def _tags(codes: Mapping[str, str], facets: Sequence[Facet]) -> dict[str, Tag]:
    """Return the tags in the cells of a row."""
    tags: dict[str, Tag] = {}
    for facet in facets:
        if facet.kind is Kind.LEVELS:
            levels = {term.id: codes[term.id] for term in facet.terms if term.id in codes}
            tags |= {facet.field: levels} if levels else {}
        elif facet.field in codes:
            cell = codes[facet.field]
            tags[facet.field] = tuple(cell.split(";")) if facet.kind is Kind.MANY else cell
    return tags


def agreed(sheets: Sequence[Sequence[Verdict]]) -> tuple[list[Verdict], list[str]]:
    """Return the decisions on which all readers agree, as the first reader has them, and the keys of the others."""
    by_key: dict[str, list[Verdict]] = {}
    for verdicts in sheets:
        for verdict in verdicts:
            by_key.setdefault(verdict.key, []).append(verdict)
    differing = [key for key, verdicts in by_key.items() if len({verdict.choice for verdict in verdicts}) > 1]
    return [verdicts[0] for key, verdicts in by_key.items() if key not in differing], differing


def check_verdict(verdict: Verdict, protocol: Protocol | None) -> Verdict:
    """Return a decision with the protocol's rule as its reason, if the reason is a rule's id.

    A `CommandUseError` says that the decision to include or exclude has no reason.
    """
    rules = {rule.id: rule.rule for rule in (*protocol.include, *protocol.exclude)} if protocol else {}
    reason = rules.get(verdict.reason, verdict.reason)
    if not reason and verdict.choice is not Choice.LATER:
        raise CommandUseError(f"{verdict.key} has no reason", "Give a sentence, or the id of a rule of the protocol.")
    return verdict._replace(reason=reason)
