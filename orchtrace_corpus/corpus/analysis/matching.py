"""Finds records of the same paper: by an identifier, by an address, or by a title that is nearly the same."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.records import Paper, Record, folded_title, folded_url, identities

SAME_TITLE_PERCENT = 90
"""The similarity from which two titles count as the same, by rapidfuzz's `ratio`: twice the length of their longest
common subsequence over the sum of their lengths. Among the 116 titles of the published corpus, the most similar pair
reaches 79; two titles of the same work, such as those of two versions, are mostly above 92."""

MAX_NAME_WORDS = 3
"""The most words before the first colon of a title that count as the name of the work."""

_REGISTRIES = {
    IdentifierKind.ARXIV: "arXiv",
    IdentifierKind.DOI: "DOI",
    IdentifierKind.OPENREVIEW: "OpenReview",
    IdentifierKind.ACL: "ACL",
}


class Sign(StrEnum):
    """The signs that two records are the same paper, the surest first."""

    IDENTIFIER = "identifier"
    ADDRESS = "address"
    TITLE = "title"


class Match(NamedTuple):
    """A record that seems to be the same paper; `shared` is the value of the sign that both share."""

    record: Record
    sign: Sign
    shared: str


class RecordIndex:
    """Records that papers are compared with."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = []
        # All values and keys of type int are indexes of `records`.
        self._by_identifier: dict[Identifier, int] = {}
        self._by_address: dict[str, int] = {}
        self._titles: dict[int, str] = {}  # these three are filled by `near_title`
        self._titles_without_name: dict[int, str] = {}  # of titles that begin with no name
        self._titles_after_name: dict[int, str] = {}  # the rest of titles that begin with a name
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add a record."""
        index = len(self.records)
        self.records.append(record)
        for identifier in identifiers_of(record):
            self._by_identifier.setdefault(identifier, index)
        url = _first_url(record)
        if url:
            self._by_address.setdefault(folded_url(url), index)

    def find(self, paper: Paper, *, by_title: bool = True) -> Match | None:
        """Return the record that seems to be the same paper, by the surest sign; `by_title` allows similar titles."""
        wanted = {identifier for identifier, _ in identities(paper)}
        indexes = [self._by_identifier[identifier] for identifier in wanted if identifier in self._by_identifier]
        if indexes:
            record = self.records[min(indexes)]
            shared = next(identifier for identifier in identifiers_of(record) if identifier in wanted)
            return Match(record, Sign.IDENTIFIER, f"{_REGISTRIES[shared.kind]}:{shared.value}")
        index = self._by_address.get(folded_url(paper.urls[0])) if paper.urls else None
        if index is not None:
            return Match(self.records[index], Sign.ADDRESS, _first_url(self.records[index]))
        return self.near_title(paper) if by_title else None

    def find_by_name(self, name: str) -> Record | None:
        """Return the record with an identifier, an address or a title, as search runs name their new records."""
        is_url = "://" in name
        identifier = recognise_url(name) if is_url else recognise(name)
        if identifier is not None and identifier in self._by_identifier:
            return self.records[self._by_identifier[identifier]]
        if is_url and folded_url(name) in self._by_address:
            return self.records[self._by_address[folded_url(name)]]
        folded = folded_title(name)
        return next((record for record in self.records if folded and folded_title(record.title) == folded), None)

    def near_title(self, paper: Paper, *, with_other_ids: bool = False) -> Match | None:
        """Return the record whose title is most similar to that of a paper, if it is similar enough.

        One of the titles may lack the name before the colon, but titles with different names are different works.
        Records with different arXiv ids are, too, unless the titles are equal or `with_other_ids` is True.
        """
        from rapidfuzz import fuzz, process

        for index in range(len(self._titles), len(self.records)):  # records that were added since the last call
            title, rest = _spellings(self.records[index].title)
            self._titles[index] = title
            if rest:
                self._titles_after_name[index] = rest
            else:
                self._titles_without_name[index] = title
        title, rest = _spellings(paper.title)
        if not title:
            return None
        comparisons = [(title, self._titles)]
        comparisons.append((rest, self._titles_without_name) if rest else (title, self._titles_after_name))
        best: Record | None = None
        best_score = 0.0
        for spelling, choices in comparisons:
            hits = process.extract(spelling, choices, scorer=fuzz.ratio, score_cutoff=SAME_TITLE_PERCENT, limit=None)
            for _, score, index in hits:
                record = self.records[index]
                is_allowed = with_other_ids or score == 100 or not _has_other_id(record, paper)
                if is_allowed and score > best_score:
                    best, best_score = record, score
        return None if best is None else Match(best, Sign.TITLE, best.title)


def _first_url(record: Record) -> str:
    if isinstance(record, Paper):
        return record.urls[0] if record.urls else ""
    return record.url


def identifier_text(paper: Paper) -> str:
    """Return the first identifier of a paper with its registry, such as `arXiv:2305.14325`; empty if it has none."""
    for identifier, _ in identities(paper):
        return f"{_REGISTRIES[identifier.kind]}:{identifier.value}"
    return ""


def identifiers_of(record: Record) -> Iterator[Identifier]:
    """Return the identifiers of a record, including those in the text and the address of an exclusion."""
    if isinstance(record, Paper):
        return (identifier for identifier, _ in identities(record))
    return filter(None, (recognise(record.identifier), recognise_url(record.url)))


def _has_other_id(record: Record, paper: Paper) -> bool:
    """Return True if both have an arXiv id, and these differ."""
    arxiv_ids = {identifier.value for identifier in identifiers_of(record) if identifier.kind is IdentifierKind.ARXIV}
    return bool(arxiv_ids) and paper.arxiv_id is not None and paper.arxiv_id not in arxiv_ids


def _spellings(title: str) -> tuple[str, str]:
    """Return a title folded and without brackets at its end, and its part after a name and a colon, or an empty text.

    For `HALO: Hierarchical Logic Orchestration (v2)` these are `halo hierarchical logic orchestration` and
    `hierarchical logic orchestration`.
    """
    unbracketed = re.sub(r"\s*\([^()]*\)$", "", title)
    name, _, rest = unbracketed.partition(": ")
    folded = folded_title(unbracketed, between=" ").strip()
    folded_rest = folded_title(rest, between=" ").strip()
    # The rest needs three words to be compared: `A Survey` fits many titles.
    has_name = len(name.split()) <= MAX_NAME_WORDS and len(folded_rest.split()) >= 3
    return folded, folded_rest if has_name else ""
