"""The records of a corpus as immutable values."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from orchtrace_corpus.findings import Finding, Location
from orchtrace_corpus.pool.taxonomy import Taxonomy
from orchtrace_corpus.yamlfile import reader
from orchtrace_corpus.yamlfile.reader import YamlFile

Tag: TypeAlias = str | tuple[str, ...] | Mapping[str, str]
"""The value of a facet, by its kind: a term, several terms, or terms with their levels."""


class Evidence(NamedTuple):
    """What a source says in support of some tags of a paper."""

    tags: tuple[str, ...]
    note: str
    source: str
    level: str
    confidence: str


class Paper(NamedTuple):
    """A retained entry of the corpus.

    Attributes:
        key: The entry's key, unique in the corpus.
        authors: In BibTeX form: `Family, Given`, a collective without comma, `others` for names left out.
        year: The year as published.
        urls: At least one address; the first is the entry's own.
        tags: The value of every facet that the taxonomy declares, by field name. The string `NA`
            says that a facet does not apply.
        added: The day on which the record was added, as `YYYY-MM-DD`.
    """

    key: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    affiliation: str | None = None
    year: int = 0
    venue: str = ""
    arxiv_id: str | None = None
    doi: str | None = None
    openreview_id: str | None = None
    acl_id: str | None = None
    urls: tuple[str, ...] = ()
    tags: Mapping[str, Tag] = {}
    summary: str = ""
    evidence: tuple[Evidence, ...] = ()
    added: str = ""
    notes: str | None = None

    @property
    def first_author(self) -> str:
        """The first item of `authors`."""
        return self.authors[0] if self.authors else ""


class Exclusion(NamedTuple):
    """A record that was screened and left out, with the reason.

    Attributes:
        tags: The value of every facet that the taxonomy declares for exclusions, by field name.
        screened: The day of screening, as `YYYY-MM-DD`.
        promoted_to: The key of the paper that this record became, if it was taken in later.
    """

    id: str = ""
    title: str = ""
    identifier: str = ""
    url: str = ""
    tags: Mapping[str, Tag] = {}
    screened: str = ""
    reason: str = ""
    promoted_to: str | None = None


Record: TypeAlias = Paper | Exclusion


class Pool(NamedTuple):
    """A corpus: the retained papers, the exclusions, and the vocabulary they are tagged with."""

    taxonomy: Taxonomy
    papers: tuple[Paper, ...]
    exclusions: tuple[Exclusion, ...]


class Places:
    """Where the records of one file are, so that a rule can point at a field.

    Only the beginning of each record is kept; a field's place is found by reading its record again.
    """

    def __init__(self, file: YamlFile, starts: list[int]) -> None:
        self._file = file
        self._starts = starts

    def locate(self, index: int, field: str) -> Location:
        """The place of a field's value in the record at an index; the record's own if it has no such field."""
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._file.text)
        node = self._file.record_at(start, end)
        entry = node.entries.get(field) if isinstance(node, reader.Mapping) else None
        return self._file.location(start if entry is None else entry[1].at)


class Loaded(NamedTuple):
    """A corpus as read: what could be decoded, where it stands, and what is wrong so far.

    A field that could not be decoded has its empty default, so `pool` is fit for counting only if
    `findings` holds no error. `pool` is None if the taxonomy itself could not be read.
    """

    pool: Pool | None
    paper_places: Places
    exclusion_places: Places
    findings: tuple[Finding, ...]
