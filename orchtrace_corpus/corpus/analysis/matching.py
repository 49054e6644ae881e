"""Finds records of the same paper: by an identifier, by an address, or by a title that is nearly the same."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.records import Paper, Record, folded_title, folded_url, identities

SAME_TITLE_PERCENT = 90
"""The similarity from which two titles are the same: rapidfuzz's `ratio`, twice the length of their longest common
subsequence over the sum of their lengths. Of the 6,670 pairs among the 116 titles of the published corpus, the most
similar reaches 79; two titles of one work, such as those of two versions, are mostly above 92."""

LONGEST_NAME = 3
"""The most words of a name before the first colon of a title."""

_REGISTRIES = {
    IdentifierKind.ARXIV: "arXiv",
    IdentifierKind.DOI: "DOI",
    IdentifierKind.OPENREVIEW: "OpenReview",
    IdentifierKind.ACL: "ACL",
}


class Sign(StrEnum):
    """The signs of the same paper, the surest first."""

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
        self._by_identifier: dict[Identifier, int] = {}
        self._by_address: dict[str, int] = {}
        self._whole: dict[int, str] = {}
        self._unnamed: dict[int, str] = {}
        self._bare: dict[int, str] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add a record."""
        place = len(self.records)
        self.records.append(record)
        for identifier in identifiers_of(record):
            self._by_identifier.setdefault(identifier, place)
        url = next(iter(record.urls), "") if isinstance(record, Paper) else record.url
        if url:
            self._by_address.setdefault(folded_url(url), place)

    def find(self, paper: Paper, *, by_title: bool = True) -> Match | None:
        """Return the record that seems to be the same paper, by the surest sign; `by_title` allows similar titles."""
        wanted = {identifier for identifier, _ in identities(paper)}
        if places := [self._by_identifier[identifier] for identifier in wanted if identifier in self._by_identifier]:
            record = self.records[min(places)]
            shared = next(identifier for identifier in identifiers_of(record) if identifier in wanted)
            return Match(record, Sign.IDENTIFIER, f"{_REGISTRIES[shared.kind]}:{shared.value}")
        place = self._by_address.get(folded_url(paper.urls[0])) if paper.urls else None
        if place is not None:
            record = self.records[place]
            return Match(record, Sign.ADDRESS, record.urls[0] if isinstance(record, Paper) else record.url)
        return self.near_title(paper) if by_title else None

    def named(self, name: str) -> Record | None:
        """Return the record with an identifier as `identifier_text` writes it, an address or a title."""
        identifier = recognise_url(name) if "://" in name else recognise(name)
        if identifier is not None and identifier in self._by_identifier:
            return self.records[self._by_identifier[identifier]]
        if "://" in name and folded_url(name) in self._by_address:
            return self.records[self._by_address[folded_url(name)]]
        folded = folded_title(name)
        return next((record for record in self.records if folded and folded_title(record.title) == folded), None)

    def near_title(self, paper: Paper, *, with_other_ids: bool = False) -> Match | None:
        """Return the record whose title is most similar to that of a paper, if it is similar enough.

        The name before a colon may be missing in one of the titles, but two different names are two works. Two arXiv
        ids are two works, too, unless the titles are equal or `with_other_ids` is True.
        """
        from rapidfuzz import fuzz, process

        for index in range(len(self._whole), len(self.records)):
            whole, bare = _spellings(self.records[index].title)
            self._whole[index] = whole
            (self._bare if bare else self._unnamed)[index] = bare or whole
        whole, bare = _spellings(paper.title)
        pairs = [(whole, self._whole), (bare, self._unnamed) if bare else (whole, self._bare)]
        hits = (
            hit
            for spelling, choices in (pairs if whole else ())
            for hit in process.extract(
                spelling, choices, scorer=fuzz.ratio, score_cutoff=SAME_TITLE_PERCENT, limit=None
            )
            if with_other_ids or hit[1] == 100 or not _has_other_id(self.records[hit[2]], paper)
        )
        _, _, place = max(hits, key=lambda hit: hit[1], default=("", 0.0, None))
        return None if place is None else Match(self.records[place], Sign.TITLE, self.records[place].title)


def identifier_text(paper: Paper) -> str:
    """Return the first identifier of a paper with its registry, such as `arXiv:2305.14325`; empty if it has none."""
    return next((f"{_REGISTRIES[identifier.kind]}:{identifier.value}" for identifier, _ in identities(paper)), "")


def identifiers_of(record: Record) -> Iterator[Identifier]:
    """Return the identifiers of a record, including those in the text and the address of an exclusion."""
    if isinstance(record, Paper):
        return (identifier for identifier, _ in identities(record))
    return filter(None, (recognise(record.identifier), recognise_url(record.url)))


def _has_other_id(record: Record, paper: Paper) -> bool:
    """Return True if both have an arXiv id, and not the same."""
    arxiv_ids = {identifier.value for identifier in identifiers_of(record) if identifier.kind is IdentifierKind.ARXIV}
    return bool(arxiv_ids) and paper.arxiv_id is not None and paper.arxiv_id not in arxiv_ids


def _spellings(title: str) -> tuple[str, str]:
    """Return a title without brackets at its end, folded, and the same without a name before its colon, if any."""
    unbracketed = re.sub(r"\s*\([^()]*\)$", "", title)
    name, colon, rest = unbracketed.partition(": ")
    whole, bare = (folded_title(text, between=" ").strip() for text in (unbracketed, rest))
    # The rest needs three words to be compared: `A Survey` fits many titles.
    is_named = bool(colon) and len(name.split()) <= LONGEST_NAME and len(bare.split()) >= 3
    return whole, bare if is_named else ""
