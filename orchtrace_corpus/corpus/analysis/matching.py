"""Finds records that are one paper: by an identifier, by an address, or by a title that is nearly the same."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.records import Paper, Record, address, folded_title, identities

SAME_TITLE_PERCENT = 90
"""From which likeness on two titles are taken for one: rapidfuzz's `ratio`, the length of the longest common
subsequence of both, doubled, to the sum of their lengths. Of the 6,670 pairs among the 116 titles of the published
corpus, the most alike reaches 79; titles of one work in two wordings, such as those of two of its versions, mostly lie
above 92."""

_EQUAL = 100.0
LONGEST_NAME = 3
"""The most words of a work's name, which stands before the first colon of its title."""

_REGISTRIES = {
    IdentifierKind.ARXIV: "arXiv",
    IdentifierKind.DOI: "DOI",
    IdentifierKind.OPENREVIEW: "OpenReview",
    IdentifierKind.ACL: "ACL",
}


class Sign(StrEnum):
    """The signs that two records are one, the surest first."""

    IDENTIFIER = "identifier"
    ADDRESS = "address"
    TITLE = "title"


class Match(NamedTuple):
    """A record that a paper seems to be.

    Attributes:
        record: The record.
        sign: What both have in common.
        shared: That, as the record has it.
    """

    record: Record
    sign: Sign
    shared: str


class RecordIndex:
    """Records that papers are compared with; those added later are found, too.

    Attributes:
        records: The records, in the order in which they came.
    """

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
            self._by_address.setdefault(address(url), place)

    def find(self, paper: Paper, *, by_title: bool = True) -> Match | None:
        """The record that a paper seems to be, by the surest sign that there is.

        Args:
            paper: What is known of it; what is empty is compared with nothing.
            by_title: Whether a title that is nearly the same is a sign.
        """
        wanted = {identifier for identifier, _ in identities(paper)}
        if places := [self._by_identifier[one] for one in wanted if one in self._by_identifier]:
            record = self.records[min(places)]
            shared = next(one for one in identifiers_of(record) if one in wanted)
            return Match(record, Sign.IDENTIFIER, f"{_REGISTRIES[shared.kind]}:{shared.value}")
        place = self._by_address.get(address(paper.urls[0])) if paper.urls else None
        if place is not None:
            record = self.records[place]
            return Match(record, Sign.ADDRESS, record.urls[0] if isinstance(record, Paper) else record.url)
        return self.near_title(paper) if by_title else None

    def named(self, name: str) -> Record | None:
        """The record that is called so by `identifier_text`, or has such an address or title."""
        identifier = recognise_url(name) if "://" in name else recognise(name)
        if identifier is not None and identifier in self._by_identifier:
            return self.records[self._by_identifier[identifier]]
        if "://" in name and address(name) in self._by_address:
            return self.records[self._by_address[address(name)]]
        folded = folded_title(name)
        return next((record for record in self.records if folded and folded_title(record.title) == folded), None)

    def near_title(self, paper: Paper, *, with_other_ids: bool = False) -> Match | None:
        """The record whose title is nearest to that of a paper, if it is near enough.

        A name before a colon may be missing on one side; two names before the same words are two works. So are two
        arXiv ids, unless their titles are equal, or `with_other_ids` asks for all.
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
            if with_other_ids or hit[1] == _EQUAL or not _has_other_id(self.records[hit[2]], paper)
        )
        _, _, place = max(hits, key=lambda hit: hit[1], default=("", 0.0, None))
        return None if place is None else Match(self.records[place], Sign.TITLE, self.records[place].title)


def identifier_text(paper: Paper) -> str:
    """The first identifier of a paper with its registry, such as `arXiv:2305.14325`; empty where it has none."""
    return next((f"{_REGISTRIES[one.kind]}:{one.value}" for one, _ in identities(paper)), "")


def identifiers_of(record: Record) -> Iterator[Identifier]:
    """The identifiers of a record; those that the log of exclusions gives as text or address, too."""
    if isinstance(record, Paper):
        return (identifier for identifier, _ in identities(record))
    return filter(None, (recognise(record.identifier), recognise_url(record.url)))


def _has_other_id(record: Record, paper: Paper) -> bool:
    """Return True if both have an arXiv id, and not the same."""
    known = {one.value for one in identifiers_of(record) if one.kind is IdentifierKind.ARXIV}
    return bool(known) and paper.arxiv_id is not None and paper.arxiv_id not in known


def _spellings(title: str) -> tuple[str, str]:
    """A title to compare, and the same without the name before its colon if it has one; brackets at its end go."""
    kept = re.sub(r"\s*\([^()]*\)$", "", title)
    name, colon, rest = kept.partition(": ")
    whole, bare = (folded_title(text, between=" ").strip() for text in (kept, rest))
    # What stands behind a name is compared by itself if it has three words: `A Survey` says nothing.
    is_named = bool(colon) and len(name.split()) <= LONGEST_NAME and len(bare.split()) >= 3
    return whole, bare if is_named else ""
