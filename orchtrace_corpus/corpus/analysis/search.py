"""Finds records by words, by key, and by identifier, forgiving accents, case and near misses; and sorts them."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.corpus.analysis.attributes import Attributes, ValueKind, find
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.candidates import Candidate


def folded(text: str) -> str:
    """The text without case and accents, for comparing."""
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def search_papers(papers: Sequence[Paper], words: Sequence[str]) -> tuple[Paper, ...]:
    """The papers that hold every word somewhere, those with more words in key or title first."""
    wanted = [folded(word) for word in words]
    ranked = []
    for paper in papers:
        prominent = folded(f"{paper.key} {paper.title}")
        lists = (" ".join(texts) for texts in (paper.authors, paper.base_models, paper.benchmarks))
        rest = (*lists, paper.affiliation, paper.venue, paper.algorithm, paper.summary, paper.notes)
        evidence = (item.note for item in paper.evidence)
        everything = " ".join((prominent, *(folded(part) for part in (*rest, *evidence) if part)))
        if all(word in everything for word in wanted):
            ranked.append((sum(word not in prominent for word in wanted), paper))
    return tuple(paper for _, paper in sorted(ranked, key=lambda pair: pair[0]))


def search_candidates(candidates: "Sequence[Candidate]", words: Sequence[str]) -> "tuple[Candidate, ...]":
    """The candidates that hold every word somewhere, those with more words in key or title first."""
    said = (" ".join((one.paper.notes or "", one.reason, *(read.note for read in one.readings))) for one in candidates)
    papers = [one.paper._replace(notes=notes) for one, notes in zip(candidates, said, strict=True)]
    by_key = {candidate.name: candidate for candidate in candidates}
    return tuple(by_key[paper.key] for paper in search_papers(papers, words))


def search_exclusions(exclusions: Sequence[Exclusion], words: Sequence[str]) -> tuple[Exclusion, ...]:
    """The exclusions that hold every word in their title, identifier or reason."""
    wanted = [folded(word) for word in words]
    texts = ((one, folded(f"{one.title} {one.identifier} {one.reason}")) for one in exclusions)
    return tuple(exclusion for exclusion, text in texts if all(word in text for word in wanted))


def find_records(pool: Pool, name: str) -> tuple[Record, ...]:
    """The records called by a key or an exclusion id in any case, an identifier in any spelling, or a URL."""
    identifier = recognise(name)
    address = name.strip().rstrip("/")
    wanted = name.strip().casefold() or None

    def is_called(record: Record) -> bool:
        urls = record.urls if isinstance(record, Paper) else (record.url,)
        cite_key = getattr(record, "cite_key", None) or ""
        if wanted in (record.name.casefold(), cite_key.casefold()) or address in (url.rstrip("/") for url in urls):
            return True
        if isinstance(record, Paper):
            return identifier is not None and getattr(record, identifier.kind.value) == identifier.value
        return identifier is not None and identifier in (recognise(record.identifier), recognise(record.url))

    return tuple(record for record in pool.records if is_called(record))


def near_misses(pool: Pool, name: str, limit: int = 3) -> tuple[tuple[str, str], ...]:
    """Keys and titles of records that the name may have meant, nearest first: by part, by spelling, by title."""
    from difflib import SequenceMatcher, get_close_matches  # only for who has made a mistake

    wanted = folded(name.strip())
    if not wanted:
        return ()
    whole = {record.name: record.title for record in pool.records}
    titles = {key: folded(title) for key, title in whole.items()}
    by_part = [key for key, title in titles.items() if wanted in folded(key) or wanted in title]
    lowered = {folded(key): key for key in titles}
    by_spelling = [lowered[near] for near in get_close_matches(wanted, lowered, n=limit, cutoff=0.6)]
    identifier = recognise(name)
    by_identifier = []
    if identifier is not None and identifier.kind is IdentifierKind.ARXIV:
        ids = {paper.arxiv_id: paper.key for paper in pool.papers if paper.arxiv_id}
        by_identifier = [ids[near] for near in get_close_matches(identifier.value, ids, n=3, cutoff=0.85)]
    by_title = [key for key, title in titles.items() if SequenceMatcher(None, wanted, title).quick_ratio() > 0.9]
    near = tuple(dict.fromkeys((*by_part, *by_spelling, *by_identifier, *by_title)))[:limit]
    return tuple((key, whole[key]) for key in near)


def describe_near_misses(pool: Pool, name: str) -> str:
    """The second line of a message about a name that no record has: what may be meant, or where to look."""
    near = [f"{key} ({title})" for key, title in near_misses(pool, name)]
    return f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORDS, or corpus list."


RecordType = TypeVar("RecordType")


def sort_records(records: Sequence[RecordType], order: str, attributes: Attributes) -> tuple[RecordType, ...]:
    """Sort records by an attribute, `-name` for falling order; records without a value come last.

    Terms sort in the taxonomy's order, numbers as numbers, text without regard to case. Records that
    are equal keep their order.

    Raises:
        CommandUseError: There is no such attribute.
    """
    falling = order.startswith("-")
    attribute = find(order.removeprefix("-"), attributes, "column")
    valued = [record for record in records if attribute.values(record)]
    if attribute.terms:
        rank: Callable[[str], int | float | str] = attribute.allowed.index
    else:
        rank = float if attribute.kind is ValueKind.NUMBER else str.casefold
    valued.sort(key=lambda record: tuple(map(rank, attribute.values(record))), reverse=falling)
    return (*valued, *(record for record in records if not attribute.values(record)))
