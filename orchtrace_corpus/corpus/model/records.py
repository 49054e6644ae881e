"""The records of a corpus as immutable values, and the identifiers by which two records are known to be one work."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.annotations import Any, Generic, TypeAlias, TypeVar
from orchtrace_corpus.base.errors import InvalidCorpusError, MalformedCorpusError
from orchtrace_corpus.base.findings import Finding, Location, is_malformed
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.decoders import Report, Schema, decode_value
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.field_table import FieldValue
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Noun, Role, Taxonomy, Term

Tag: TypeAlias = str | tuple[str, ...] | Mapping[str, str]
"""The value of a facet, by its kind: a term, several terms, or terms with their levels."""


class EvidenceVerdict(StrEnum):
    """The support of a source for the tags of an item of evidence, the strongest first."""

    SUPPORTED = "supported"
    PARTLY = "partly"
    NOT_FOUND = "not_found"
    CONTRADICTED = "contradicted"


VERDICT = Facet(
    field="verdict",
    label="Verdict",
    kind=Kind.SINGLE,
    role=Role.FACET,
    definition="What the source says about the tags as they stand (default: supported).",
    terms=(
        Term(EvidenceVerdict.SUPPORTED, "Supported", "The source bears the tags out."),
        Term(EvidenceVerdict.PARTLY, "Partly", "It bears them out in part, or for a part of the work."),
        Term(EvidenceVerdict.NOT_FOUND, "Not found", "What could be read does not say; such an item is not evidence."),
        Term(EvidenceVerdict.CONTRADICTED, "Contradicted", "It speaks against them."),
    ),
    required=False,
)
"""The verdict as a facet of evidence: fixed, since what counts as evidence depends on it."""


def evidence_facets(taxonomy: Taxonomy) -> tuple[Facet, ...]:
    """Return the facets of evidence: those that the taxonomy declares for it, and the verdict."""
    return (*taxonomy.evidence, VERDICT)


class Evidence(NamedTuple):
    """A statement of a source about some tags or facts of a paper.

    `location` is the place in the source: a page, section or line. `more` holds the other facets of evidence that the
    taxonomy declares. `copy` is true if the source is a hosted copy of the record's own work.
    """

    tags: tuple[str, ...]
    note: str
    source: str
    level: str
    confidence: str
    more: Mapping[str, Tag] = {}
    location: str | None = None
    verdict: EvidenceVerdict = EvidenceVerdict.SUPPORTED
    copy: bool = False

    @property
    def is_evidence(self) -> bool:
        """Return True if the source supports or contradicts the tags."""
        return self.verdict is not EvidenceVerdict.NOT_FOUND


def evidence_values(facet: Facet, facts: frozenset[str], paper: "Paper") -> tuple[str, ...]:
    """Return a paper's values of a facet of evidence: the weakest one, or all where the facet takes several terms.

    Terms are ordered from the strongest to the weakest. Evidence that is only about `facts` does not count.
    """
    ranks = {term.id: rank for rank, term in enumerate(facet.terms)}
    items = (item for item in paper.evidence if not facts.issuperset(item.tags))
    values_given = [item.more.get(facet.field) or getattr(item, facet.field, None) for item in items]
    if facet.kind is Kind.SINGLE:
        weakest = max((value for value in values_given if value in ranks), key=ranks.__getitem__, default=None)
        return () if weakest is None else (str(weakest),)
    return tuple(dict.fromkeys(term for value in values_given if value is not None for term in value))


def classified_evidence(
    tags: tuple[str, ...], note: str, source: str, facets: Mapping[str, Tag], taxonomy: Taxonomy
) -> Evidence:
    """Return an item of evidence with facets by field, the verdict among them; a missing level is empty."""
    level, confidence = (str(facets.get(name, "")) for name in ("level", "confidence"))
    others = (facet.field for facet in taxonomy.evidence if facet.field not in Evidence._fields)
    more_facets = {field: facets[field] for field in others if field in facets}
    verdict = EvidenceVerdict(str(facets.get("verdict", EvidenceVerdict.SUPPORTED)))
    return Evidence(tags, note, source, level, confidence, more_facets, verdict=verdict)


class Waiver(NamedTuple):
    """A warning that does not apply to a record, with the reason."""

    code: str
    why: str


class Paper(NamedTuple):
    """A retained entry of the corpus.

    Attributes:
        key: The entry's key, unique in the corpus.
        authors: In BibTeX form: `Family, Given`, a collective in braces, `others` for names left out.
        year: The year as published.
        venue_year: The year of the venue or volume, for citations.
        proceedings: The name of the proceedings or the journal, for citations.
        urls: At least one address; the first is the entry's own.
        code: The address of the authors' code.
        more: The values of the other fields, fixed ones and those that a survey declares, by field name.
        tags: The value of every facet that the taxonomy declares, by field name; `NA` if a facet does not apply.
        added: The day on which the record was added, as `YYYY-MM-DD`.
        cite_key: The key of the entry that the record was imported from, by which it is cited.
        bibtex: The type of that entry, and its other fields by name, as LaTeX.
        waive: The warnings that do not apply to the record.
        published: Whether the record is in the published pool; None without `data/published.yaml`.
        contested: The tags in open dispute, by `data/disputes.yaml`, if they were requested: facets, and terms
            with levels.
    """

    key: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    affiliation: str | None = None
    year: int = 0
    venue_year: int | None = None
    venue: str = ""
    proceedings: str | None = None
    arxiv_id: str | None = None
    doi: str | None = None
    openreview_id: str | None = None
    acl_id: str | None = None
    urls: tuple[str, ...] = ()
    code: str | None = None
    tags: Mapping[str, Tag] = {}
    more: Mapping[str, FieldValue] = {}
    summary: str = ""
    evidence: tuple[Evidence, ...] = ()
    added: str = ""
    cite_key: str | None = None
    bibtex: Mapping[str, str] = {}
    notes: str | None = None
    waive: tuple[Waiver, ...] = ()
    published: bool | None = None
    contested: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the record: its key."""
        return self.key

    def value(self, name: str) -> FieldValue | None:
        """Return the value of a field of `Taxonomy.paper_fields` by its name; None for an absent one."""
        if name not in self._fields:
            return self.more.get(name)
        member: FieldValue | None = getattr(self, name)
        return member or None

    def with_values(self, values: Mapping[str, FieldValue]) -> "Paper":
        """Return the paper with other values of some fields, by name."""
        fixed_values: dict[str, Any] = {name: value for name, value in values.items() if name in self._fields}
        more_values = {name: value for name, value in values.items() if name not in fixed_values}
        return self._replace(**fixed_values, more={**self.more, **more_values} if more_values else self.more)

    @property
    def first_author(self) -> str:
        """The first item of `authors`, without the braces of a collective."""
        return fields.bare_author(self.authors[0]) if self.authors else ""

    @property
    def cited_year(self) -> int:
        """The year for citations: that of the venue, if it is known."""
        return self.venue_year or self.year

    @property
    def cited_venue(self) -> str:
        """The venue for citations: the name of its proceedings, if it is known."""
        return self.proceedings or self.venue

    @property
    def citation_key(self) -> str:
        """The key by which the paper is cited: that of the imported entry, else its own."""
        return self.cite_key or self.key


class Exclusion(NamedTuple):
    """A record that was screened and excluded, with the reason.

    Attributes:
        tags: The value of every facet that the taxonomy declares for exclusions, by field name.
        screened: The day of screening, as `YYYY-MM-DD`.
        near_miss: The reason why the record was nearly retained.
        promoted_to: The key of the paper that this record became, if it was included later.
        published: Whether the record is in the published pool; None without `data/published.yaml`.
    """

    id: str = ""
    title: str = ""
    identifier: str = ""
    url: str = ""
    tags: Mapping[str, Tag] = {}
    screened: str = ""
    reason: str = ""
    near_miss: str | None = None
    promoted_to: str | None = None
    waive: tuple[Waiver, ...] = ()
    published: bool | None = None

    @property
    def name(self) -> str:
        """The name of the record: its id."""
        return self.id


Record: TypeAlias = Paper | Exclusion


class PublishedPool(NamedTuple):
    """The records that a survey has published: keys of papers, in the published order, and ids of exclusions."""

    day: str
    source: str
    papers: tuple[str, ...]
    exclusions: tuple[str, ...] = ()


class ReadingName(StrEnum):
    """The value that counts for a disputed tag: the published one, or the one that readers of the sources agree on."""

    PUBLISHED = "published"
    SOURCES = "sources"


class Pool(NamedTuple):
    """A corpus: the retained papers, the exclusions, their vocabulary, and the published pool, if there is one."""

    taxonomy: Taxonomy
    papers: tuple[Paper, ...]
    exclusions: tuple[Exclusion, ...]
    published: PublishedPool | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The papers, then the exclusions."""
        return (*self.papers, *self.exclusions)


def in_published_order(papers: Iterable[Paper], published: PublishedPool | None) -> tuple[Paper, ...]:
    """Return the papers in the published order, followed by later ones; as they are without a published pool."""
    ranks = {key: rank for rank, key in enumerate(published.papers if published else ())}
    return tuple(sorted(papers, key=lambda paper: ranks.get(paper.key, len(ranks))))


class Places:
    """The places of the records of one file and of their fields. A field is found by reading its record again."""

    def __init__(self, file: YamlFile, starts: list[int]) -> None:
        self.file = file
        self._starts = starts

    @property
    def cut_off_record(self) -> tuple[str, str] | None:
        """The path and the key of the record that a syntax error has cut off, if there is one."""
        if self.file.cut_off not in self._starts:
            return None
        node = self.file.record_at(self.file.cut_off, len(self.file.text))
        entries = node.entries if isinstance(node, reader.Mapping) else {}
        name_node = next((entries[name][1] for name in ("key", "id") if name in entries), None)
        return (self.file.path, name_node.text) if isinstance(name_node, reader.Scalar) else None

    def locate(self, index: int, *path: str | int) -> Location:
        """Return the place of a value in the record at an index, such as `locate(7, "urls", 0)`.

        If the record has no such value, return the place of the last part of the path that it has.
        """
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.file.text)
        node = self.file.record_at(start, end)
        for step in path:
            if isinstance(node, reader.Mapping) and isinstance(step, str) and step in node.entries:
                node = node.entries[step][1]
            elif isinstance(node, reader.Sequence) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                break
        return self.file.location(start if node is None else node.at)


Item = TypeVar("Item")


class Entries(Generic[Item]):
    """The valid entries of a data file, and its findings. `places` has an entry's place; it is None without a file."""

    def __init__(
        self, subject: str, items: Iterable[Item] = (), places: Places | None = None, findings: Sequence[Finding] = ()
    ) -> None:
        self._subject = subject
        self.items = tuple(items)
        self.places = places
        self.findings = tuple(findings)

    @property
    def total(self) -> int:
        """The number of entries."""
        return len(self.items)

    def require(self) -> tuple[Item, ...]:
        """Return the entries; raise `InvalidCorpusError` if the file has mistakes, since some would be missing."""
        raise_findings(f"{self._subject} errors:", self.findings)
        return self.items


def decode_entries(
    subject: str,
    file: YamlFile,
    schema: Schema,
    build: Callable[..., Item],
    is_sound: Callable[[Item, reader.Mapping, Report], bool],
) -> Entries[Item]:
    """Decode a list of entries; `is_sound` reports what else is wrong with one, and returns False to leave it out."""
    report = Report(file)
    items, starts = [], []
    for node in file.records():
        report.record = ""
        item = decode_value(node, schema, build, report)
        if item is not None and type(node) is reader.Mapping and is_sound(item, node, report):
            items.append(item)
            starts.append(node.at)
    findings = sorted(file.findings, key=lambda finding: finding.location)
    return Entries(subject, items, Places(file, starts), findings)


class Loaded(NamedTuple):
    """A corpus as read: the decoded records, their places, and the findings of decoding.

    `pool` is None if the taxonomy has mistakes. A field with a mistake is empty, so records can be counted only if
    `findings` holds no error.
    """

    pool: Pool | None
    paper_places: Places
    exclusion_places: Places
    findings: tuple[Finding, ...]

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers that could be decoded."""
        return self.pool.papers if self.pool else ()

    @property
    def known_keys(self) -> frozenset[str] | None:
        """The keys of the papers; None where one of them cannot be read."""
        keys = frozenset(paper.key for paper in self.papers)
        return None if "" in keys or is_malformed(self.paper_places.file.findings) else keys

    @property
    def known_ids(self) -> frozenset[str] | None:
        """The ids of the exclusions; None where one of them cannot be read."""
        is_unknown = is_malformed(self.exclusion_places.file.findings)
        return None if is_unknown else frozenset(exclusion.id for exclusion in self.exclusions)

    @property
    def taxonomy(self) -> Taxonomy:
        """The vocabulary; an empty one if it has mistakes."""
        return self.pool.taxonomy if self.pool else Taxonomy("")

    @property
    def noun(self) -> Noun:
        """The survey's name for its records."""
        return self.taxonomy.noun

    @property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """The exclusions that could be decoded."""
        return self.pool.exclusions if self.pool else ()


_KINDS = tuple(IdentifierKind)

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value in a record, such as `("urls", 0)`."""


def identities(paper: Paper) -> Iterator[tuple[Identifier, Path]]:
    """Yield the paper's identifiers: those of its fields, and those that only a URL has."""
    for kind in _KINDS:
        value: str | None = getattr(paper, kind)
        if value is not None:
            yield Identifier(kind, value), (kind,)
    for index, url in enumerate(paper.urls):
        linked = recognise_url(url)
        if linked is not None and getattr(paper, linked.kind) is None:
            yield linked, ("urls", index)


def address(url: str) -> str:
    """Return a URL without scheme, `www.` and final slash, the host in lower case: the same for all its spellings."""
    host, slash, path = url.partition("://")[2].partition("/")
    return (host.lower().removeprefix("www.") + slash + path).rstrip("/")


@lru_cache(maxsize=4096)
def folded_title(title: str, *, between: str = "") -> str:
    """Return the letters and digits of a title without case and accents, the same for all its spellings.

    `between` joins the words. By default it is empty, so `Long-Horizon` equals `Longhorizon`.
    """
    if not title.isascii():
        title = "".join(c for c in unicodedata.normalize("NFKD", title) if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", between, title.casefold())


def raise_findings(heading: str, findings: Sequence[Finding]) -> None:
    """Raise the error that `invalid` returns if there are findings."""
    if findings:
        raise invalid(heading, findings)


def invalid(heading: str, findings: Sequence[Finding]) -> InvalidCorpusError:
    """Return the error that lists findings below a heading."""
    error = MalformedCorpusError if is_malformed(findings) else InvalidCorpusError
    return error("\n".join((heading, *map(str, findings))))
