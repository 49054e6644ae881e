"""The records of a corpus as immutable values, and the identifiers that show that two records are the same work."""

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
    """The degree to which a source supports the tags of an item of evidence."""

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
"""The verdict as a facet of evidence. No taxonomy can change it, because `Evidence.is_evidence` depends on it."""


def evidence_facets(taxonomy: Taxonomy) -> tuple[Facet, ...]:
    """Return the facets of evidence in the taxonomy, and the verdict."""
    return (*taxonomy.evidence, VERDICT)


class Evidence(NamedTuple):
    """A statement of a source about some tags or facts of a paper.

    `tags` names these fields. `location` is a page, section or line of the source. `more` holds the facets of evidence
    that only the taxonomy declares. `copy` is true if the source is a copy of the paper itself on another host.
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
    """Return a paper's values of a facet of evidence: the weakest term, or all terms if the facet takes several.

    A taxonomy lists the strongest term first. Evidence that is only about `facts`, names of fields, does not count.
    """
    values: list[Tag] = []
    for item in paper.evidence:
        value = item.more.get(facet.field) or getattr(item, facet.field, None)
        if value is not None and not facts.issuperset(item.tags):
            values.append(value)
    if facet.kind is not Kind.SINGLE:
        return tuple(dict.fromkeys(term for terms in values for term in terms))
    used_terms = [term.id for term in facet.terms if term.id in values]
    return tuple(map(str, used_terms[-1:]))  # the last used term is the weakest


def classified_evidence(
    tags: tuple[str, ...], note: str, source: str, facets: Mapping[str, Tag], taxonomy: Taxonomy
) -> Evidence:
    """Return an item of evidence; `facets` has the values of its facets by field, its verdict included."""
    level = str(facets.get("level", ""))
    confidence = str(facets.get("confidence", ""))
    verdict = EvidenceVerdict(str(facets.get("verdict", EvidenceVerdict.SUPPORTED)))
    declared = [facet.field for facet in taxonomy.evidence if facet.field not in Evidence._fields]
    more = {field: facets[field] for field in declared if field in facets}
    return Evidence(tags, note, source, level, confidence, more, verdict=verdict)


class Waiver(NamedTuple):
    """A warning that does not apply to a record, with the reason."""

    code: str
    why: str


class Paper(NamedTuple):
    """A paper of the corpus.

    Attributes:
        key: Its key, unique in the corpus.
        authors: In BibTeX form: `Family, Given`, a collective in braces, `others` for names left out.
        year: The year as published.
        venue_year: The year of the venue or volume, for citations.
        proceedings: The name of the proceedings or the journal, for citations.
        urls: At least one URL; the first is that of the paper itself.
        code: The URL of the authors' code.
        more: The values of the fields that have no attribute here, by field name. Surveys can declare such fields.
        tags: The value of every facet that the taxonomy declares, by field name; `NA` if a facet does not apply.
        added: The day on which the record was added, as `YYYY-MM-DD`.
        cite_key: The key of the BibTeX entry that the record was imported from; citations use it.
        bibtex: The type of that entry, and its other fields by name, as LaTeX.
        waive: The warnings that do not apply to the record.
        published: Whether the paper is in the published pool; None without `data/published.yaml`.
        contested: The facets, and terms with levels, in open dispute; empty until `with_contested` sets it.
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
        """Return the value of a field of `Taxonomy.paper_fields`; None if the paper does not have the field."""
        if name not in self._fields:
            return self.more.get(name)
        value: FieldValue | None = getattr(self, name)
        return value or None

    def with_values(self, values: Mapping[str, FieldValue]) -> "Paper":
        """Return a copy of the paper with new values of some fields; `values` has them by field name."""
        attributes: dict[str, Any] = {}
        more = dict(self.more)
        for name, value in values.items():
            if name in self._fields:
                attributes[name] = value
            else:
                more[name] = value
        return self._replace(more=more, **attributes)

    @property
    def first_author(self) -> str:
        """The first item of `authors`, without the braces of a collective."""
        return fields.bare_author(self.authors[0]) if self.authors else ""

    @property
    def cited_year(self) -> int:
        """The year for citations: `venue_year`, or `year` without one."""
        return self.venue_year or self.year

    @property
    def cited_venue(self) -> str:
        """The venue for citations: `proceedings`, or `venue` without them."""
        return self.proceedings or self.venue

    @property
    def citation_key(self) -> str:
        """The key for citations: `cite_key`, or `key` for a paper that was not imported."""
        return self.cite_key or self.key


class Exclusion(NamedTuple):
    """A work that was screened and excluded, with the reason.

    Attributes:
        tags: The value of every facet that the taxonomy declares for exclusions, by field name.
        screened: The day of screening, as `YYYY-MM-DD`.
        near_miss: The reason why the work was nearly included.
        promoted_to: The key of the paper that this exclusion became, if it was included later.
        published: Whether the exclusion is in the published pool; None without `data/published.yaml`.
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

    @property
    def number(self) -> int:
        """The number in the id, such as 33 for `E033`; 0 if the id could not be decoded."""
        return int(self.id[1:] or 0)


Record: TypeAlias = Paper | Exclusion


class PublishedPool(NamedTuple):
    """The records that a survey has published: keys of papers, in the published order, and ids of exclusions."""

    day: str
    source: str
    papers: tuple[str, ...]
    exclusions: tuple[str, ...] = ()


class ReadingName(StrEnum):
    """The value that counts for a disputed tag: the published one, or the one on which readers of the sources agree."""

    PUBLISHED = "published"
    SOURCES = "sources"


class Pool(NamedTuple):
    """A corpus: its taxonomy, papers and exclusions, and the published pool if `data/published.yaml` exists."""

    taxonomy: Taxonomy
    papers: tuple[Paper, ...]
    exclusions: tuple[Exclusion, ...]
    published: PublishedPool | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The papers, then the exclusions."""
        return (*self.papers, *self.exclusions)


def in_published_order(papers: Iterable[Paper], published: PublishedPool | None) -> tuple[Paper, ...]:
    """Return the published papers in the published order, then later papers in the given order."""
    if published is None:
        return tuple(papers)
    ranks = {key: rank for rank, key in enumerate(published.papers)}
    return tuple(sorted(papers, key=lambda paper: ranks.get(paper.key, len(ranks))))


class Places:
    """The places of the records of one file, and of their fields. A field is located by parsing its record again."""

    def __init__(self, file: YamlFile, starts: list[int]) -> None:
        self.file = file
        self._starts = starts  # the index of each record in the file's text

    @property
    def cut_off_record(self) -> tuple[str, str] | None:
        """The file's path and the name of the record that a syntax error has cut off; None without such a record."""
        if self.file.cut_off not in self._starts:
            return None
        node = self.file.record_at(self.file.cut_off, len(self.file.text))
        for field in ("key", "id"):
            if isinstance(node, reader.Mapping) and field in node.entries:
                _, name = node.entries[field]
                return (self.file.path, name.text) if isinstance(name, reader.Scalar) else None
        return None

    def locate(self, index: int, *path: str | int) -> Location:
        """Return the place of a value: `locate(7, "urls", 0)` is the first URL of the eighth record.

        If the record has no such value, return the place of the last part of the path that it has.
        """
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.file.text)
        node = self.file.record_at(start, end)
        for step in path:
            if isinstance(node, reader.Mapping) and isinstance(step, str) and step in node.entries:
                _, node = node.entries[step]
            elif isinstance(node, reader.Sequence) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                break
        return self.file.location(start if node is None else node.at)


Item = TypeVar("Item")


class Entries(Generic[Item]):
    """The valid entries of a data file, their places (None if the file is missing), and the findings of the file."""

    def __init__(
        self, subject: str, items: Iterable[Item] = (), places: Places | None = None, findings: Sequence[Finding] = ()
    ) -> None:
        self._subject = subject
        self.items = tuple(items)
        self.places = places
        self.is_missing = places is None
        self.findings = tuple(findings)

    @property
    def total(self) -> int:
        """The number of entries."""
        return len(self.items)

    def require(self) -> tuple[Item, ...]:
        """Return the entries; raise `InvalidCorpusError` if the file has findings, because entries may be missing."""
        raise_findings(f"{self._subject} errors:", self.findings)
        return self.items


def decode_entries(
    subject: str,
    file: YamlFile,
    schema: Schema,
    build: Callable[..., Item],
    is_sound: Callable[[Item, reader.Mapping, Report], bool],
) -> Entries[Item]:
    """Decode the entries of a file; `subject` begins the heading of its errors.

    `build` makes an entry of the decoded fields. `is_sound` reports further problems of an entry, and returns False if
    the entry must be left out.
    """
    report = Report(file)
    items: list[Item] = []
    starts: list[int] = []
    for node in file.records():
        report.record = ""  # a record without a name must not be reported under the name of the record before
        item = decode_value(node, schema, build, report)
        if item is not None and type(node) is reader.Mapping and is_sound(item, node, report):
            items.append(item)
            starts.append(node.at)
    findings = sorted(file.findings, key=lambda finding: finding.location)
    return Entries(subject, items, Places(file, starts), findings)


class Loaded(NamedTuple):
    """A corpus as read: the decoded records, their places, and the findings of decoding.

    `pool` is None if the taxonomy has errors. A field with an error is empty, so records can be counted only if
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
        """The keys of the papers; None if a key, or the syntax of the file, has an error: some are unknown then."""
        keys = frozenset(paper.key for paper in self.papers)
        if "" in keys or is_malformed(self.paper_places.file.findings):
            return None
        return keys

    @property
    def known_ids(self) -> frozenset[str] | None:
        """The ids of the exclusions; None if the syntax of the file has an error."""
        if is_malformed(self.exclusion_places.file.findings):
            return None
        return frozenset(exclusion.id for exclusion in self.exclusions)

    @property
    def taxonomy(self) -> Taxonomy:
        """The vocabulary; an empty one if it has errors."""
        return self.pool.taxonomy if self.pool else Taxonomy("")

    @property
    def noun(self) -> Noun:
        """The survey's name for its records."""
        return self.taxonomy.noun

    @property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """The exclusions that could be decoded."""
        return self.pool.exclusions if self.pool else ()


_IDENTIFIER_FIELDS = tuple(IdentifierKind)  # kinds are named after fields; a tuple, because enums iterate slowly

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value in a record, such as `("urls", 0)`."""


def identities(paper: Paper) -> Iterator[tuple[Identifier, Path]]:
    """Yield the paper's identifiers, each with its place: first those of fields, then those that only a URL has."""
    for kind in _IDENTIFIER_FIELDS:
        value: str | None = getattr(paper, kind)
        if value is not None:
            yield Identifier(kind, value), (kind,)
    for index, url in enumerate(paper.urls):
        linked = recognise_url(url)
        if linked is not None and getattr(paper, linked.kind) is None:
            yield linked, ("urls", index)


def folded_url(url: str) -> str:
    """Return a URL without scheme, `www.` and final slash, with a lower-case host: equal for all spellings of it."""
    _, _, without_scheme = url.partition("://")
    host, slash, path = without_scheme.partition("/")
    return (host.lower().removeprefix("www.") + slash + path).rstrip("/")


@lru_cache(maxsize=4096)
def folded_title(title: str, *, between: str = "") -> str:
    """Return the letters and digits of a title in lower case without accents: equal for all spellings of it.

    `between` joins the words. By default it is empty, so `Long-Horizon` equals `Longhorizon`.
    """
    if not title.isascii():
        decomposed = unicodedata.normalize("NFKD", title)  # an accent becomes a character of its own
        title = "".join(character for character in decomposed if not unicodedata.combining(character))
    return re.sub(r"[\W_]+", between, title.casefold())


def raise_findings(heading: str, findings: Sequence[Finding]) -> None:
    """Raise an `InvalidCorpusError` that lists the findings, if there are any."""
    if findings:
        raise invalid(heading, findings)


def invalid(heading: str, findings: Sequence[Finding]) -> InvalidCorpusError:
    """Return the error that lists findings below a heading."""
    message = "\n".join((heading, *map(str, findings)))
    return MalformedCorpusError(message) if is_malformed(findings) else InvalidCorpusError(message)
