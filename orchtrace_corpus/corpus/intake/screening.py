"""Deciding on candidates: in which order they are read, what is at hand for each, and the edit that a decision is.

A candidate that is taken in becomes a paper as soon as it lacks nothing; until then it stays a candidate, with the day
of the decision and whatever tags were given. One that is left out moves to the log. Either way it is one edit.
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
"""The columns of a screening sheet beside those of a coding sheet."""

_GIVEN = (*coding.GIVEN, "abstract")
SHEET_TEXTS = (*_GIVEN, REASON, SUMMARY)
"""The columns of a screening sheet that hold texts."""

_NEIGHBOURS = 3


class Choice(StrEnum):
    """The decision on a candidate."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    LATER = "later"


class Neighbours(NamedTuple):
    """The records most like a candidate: of the pool, and excluded ones; each with its likeness from 0 to 1."""

    papers: tuple[tuple[Record, float], ...]
    exclusions: tuple[tuple[Record, float], ...]


class Verdict(NamedTuple):
    """A decision on a candidate, by its key.

    Attributes:
        key: The candidate.
        choice: What is decided.
        reason: Why.
        tags: Tags of a paper where it is taken in, those of the log where it is left out.
        summary: What the paper does, in one sentence.
    """

    key: str
    choice: Choice
    reason: str = ""
    tags: Mapping[str, Tag] = {}
    summary: str = ""


def in_order(
    candidates: Sequence[Candidate], pool: Pool, known: Mapping[str, Metadata], *, likely: bool
) -> tuple[tuple[Candidate, ...], tuple[Place, ...]]:
    """Candidates in the order of reading, with their places where that is the likely one.

    Args:
        candidates: The candidates.
        pool: The corpus.
        known: What arXiv said last, by id.
        likely: Whether the likeliest come first, rather than the newest.

    Raises:
        CommandUseError: Too few records are decided on.
        MissingLibraryError: scikit-learn is not installed.
    """
    if not likely:
        return tuple(reading_order.by_date(candidates)), ()
    placed = reading_order.likely(candidates, pool, abstracts(known))
    return tuple(one for one, _ in placed), tuple(place for _, place in placed)


def abstracts(known: Mapping[str, Metadata]) -> dict[str, str]:
    """The abstracts that are stored, by arXiv id, as plain text: they come from outside."""
    return {name: plain(metadata.abstract) for name, metadata in known.items() if metadata.abstract}


def undecided(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that nobody has decided on."""
    return tuple(candidate for candidate in candidates if not candidate.screened)


def find_neighbours(candidate: Candidate, likeness: Similarity, known: Mapping[str, str]) -> Neighbours:
    """The records that are most like a candidate.

    Args:
        candidate: The candidate.
        likeness: All records of the pool and of the log.
        known: Abstracts by arXiv id.
    """
    text = text_of(candidate.paper, known)
    papers = likeness.nearest(text, _NEIGHBOURS, lambda record: isinstance(record, Paper))
    return Neighbours(tuple(papers), tuple(likeness.nearest(text, _NEIGHBOURS, is_excluded)))


def include(
    corpus: CorpusFiles, candidate: Candidate, reason: str, tags: Mapping[str, Tag], day: str, summary: str = ""
) -> Proposal:
    """The edit that takes a candidate in: a paper if it lacks nothing, else the candidate with what was given.

    Args:
        corpus: The corpus.
        candidate: The candidate.
        reason: Why, in a sentence; the reason on record stays where nothing is said.
        tags: The tags that are given.
        day: The day of the decision.
        summary: What the paper does, in one sentence; one that is on record stays. Without any it stays open.

    Raises:
        DataFileError: A file cannot be read, or is not written record below record.
    """
    bare = candidate.paper._replace(tags={}, evidence=(), summary=candidate.paper.summary or summary)
    named = PaperRequest(candidate.name, bare, source=next(iter(bare.urls), ""), awaiting=candidate)
    records, gaps = drafts.complete_papers([named], Details(), Coding(tags), corpus.pool)
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


def draft_exclusion(corpus: CorpusFiles, candidate: Candidate, said: Exclusion) -> tuple[Exclusion, list[drafts.Gap]]:
    """A candidate as a record of the log, and what that lacks; what was said goes before what the candidate says."""
    paper = candidate.paper
    known = said._replace(tags={**candidate.screening, **said.tags}, reason=said.reason or proposed_reason(candidate))
    return drafts.complete_exclusion(paper, corpus, known)


def proposed_reason(candidate: Candidate, decision: Decision = Decision.EXCLUDE) -> str:
    """The reason of a candidate where this decision is proposed for it; empty where another is."""
    return candidate.reason if candidate.proposal is decision else ""


def sheet_columns(taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return the columns of a screening sheet: the decision, the tags of exclusions, the tags of papers."""
    decision = Column(DECISION, DECISION, tuple(choice.value for choice in Choice))
    log = (
        Column(exclusion.field, exclusion.field, exclusion.values)
        for exclusion in taxonomy.exclusions
        if exclusion.kind is Kind.SINGLE
    )
    return (decision, *log, *coding.columns(taxonomy))


def is_screening_sheet(text: str) -> bool:
    """Return True if a sheet is one of screening: it has a column of decisions."""
    heading = text.removeprefix("\ufeff").partition("\n")[0]
    return DECISION in [name.strip().strip('"') for name in heading.replace(";", ",").replace("\t", ",").split(",")]


def blank_sheet(candidates: Sequence[Candidate], known: Mapping[str, str], taxonomy: Taxonomy) -> str:
    """A sheet for screening in a spreadsheet, as CSV: who and where, and empty columns for the decision.

    Texts from outside that a spreadsheet would take for a formula get an apostrophe before them.

    Args:
        candidates: The candidates.
        known: Abstracts by arXiv id.
        taxonomy: What they can be tagged with.
    """
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    log = [column.name for column in sheet_columns(taxonomy) if column.field in {f.field for f in taxonomy.exclusions}]
    out.writerow((*_GIVEN, DECISION, *log, REASON))
    for candidate in candidates:
        paper = candidate.paper
        given = (paper.key, paper.title, " ; ".join(paper.urls), known.get(paper.arxiv_id or "", ""))
        tags = (str(candidate.screening.get(name, "")) for name in log)
        texts = (f"'{text}" if text[:1] in ("=", "+", "-", "@") else text for text in given)
        out.writerow((*texts, "", *tags, ""))
    return text.getvalue()


def read_sheet(text: str, path: str, taxonomy: Taxonomy, keys: Iterable[str]) -> tuple[list[Verdict], list[Finding]]:
    """The decisions of a sheet, with everything that is wrong with it; rows without a decision are left out.

    Args:
        text: The sheet, as CSV.
        path: The path to show.
        taxonomy: What papers and exclusions can be tagged with.
        keys: The keys of the candidates.
    """
    columns = sheet_columns(taxonomy)
    sheet, findings = coding.decode(text, path, columns, keys, also=SHEET_TEXTS)
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
    """The keys of rows that were decided on before: of papers, of candidates or, by their address, of the log."""
    decided = {candidate.name for candidate in corpus.candidates.items if candidate.screened}
    decided |= {paper.key for paper in corpus.pool.papers}
    waiting = {one.name for one in undecided(corpus.candidates.items)}
    log = RecordIndex(corpus.pool.exclusions)
    keys = set()
    for row in _rows(text):
        key, links = (row.get("key") or "").strip(), tuple((row.get("links") or "").split(" ; "))
        if key not in waiting and (key in decided or log.find(Paper(urls=links), by_title=False)):
            keys.add(key)
    return keys


def sheet_keys(text: str) -> list[str]:
    """The keys of a sheet, whatever they are of."""
    return [(row.get("key") or "").strip() for row in _rows(text)]


def _rows(text: str) -> Iterator[Mapping[str, str]]:
    separator = max(",;\t", key=text.partition("\n")[0].count)
    with suppress(csv.Error):  # of which `coding.decode` says where it is
        yield from csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator)


def _tags(codes: Mapping[str, str], facets: Sequence[Facet]) -> dict[str, Tag]:
    """The tags that the cells of a row give."""
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
    """The decisions on which all readers agree who have decided, and the keys of those on which they differ.

    Where they agree, the first reader's reason and tags count.

    Args:
        sheets: The decisions of each reader.
    """
    by_key: dict[str, list[Verdict]] = {}
    for verdicts in sheets:
        for verdict in verdicts:
            by_key.setdefault(verdict.key, []).append(verdict)
    differing = [key for key, given in by_key.items() if len({one.choice for one in given}) > 1]
    return [given[0] for key, given in by_key.items() if key not in differing], differing


def check_verdict(verdict: Verdict, protocol: Protocol | None) -> Verdict:
    """A decision with the rule of the protocol in place of its id, where the reason is one.

    Raises:
        CommandUseError: It takes a paper in or leaves it out, and has no reason.
    """
    rules = {rule.id: rule.rule for rule in (*protocol.include, *protocol.exclude)} if protocol else {}
    reason = rules.get(verdict.reason, verdict.reason)
    if not reason and verdict.choice is not Choice.LATER:
        raise CommandUseError(f"{verdict.key} has no reason", "Give a sentence, or the id of a rule of the protocol.")
    return verdict._replace(reason=reason)
