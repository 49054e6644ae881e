"""The evidence of tags: the items for a tag, its standing, and how far the sourced facets of a corpus are covered."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.identifiers import recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, address, identities
from orchtrace_corpus.corpus.model.taxonomy import Standing, Taxonomy

_VERDICTS = (EvidenceVerdict.SUPPORTED, EvidenceVerdict.PARTLY, EvidenceVerdict.CONTRADICTED)
"""The verdicts of evidence on a tag, from the strongest support to none."""


class EvidenceState(StrEnum):
    """The ways a tag can rest on evidence, and the verdicts of that: the counts of `EvidenceCoverage` by name."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    NONE = "none"
    SUPPORTED = "supported"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"


class ListedTag(NamedTuple):
    """A tag in one of these states, with the items of evidence that put it there; none where there is no evidence."""

    paper: Paper
    field: str
    items: tuple[Evidence, ...]


class EvidenceCoverage(NamedTuple):
    """The number of tags of a field by what they rest on.

    Each tag counts once in `primary`, `secondary` or `none`, by the best source of its evidence, and once in
    `supported`, `partly`, `contradicted` or `none`, by what the evidence that supports it least says.

    Attributes:
        field: The field; `total` for all sourced fields together.
        tags: The tags other than NA.
        primary: Those with evidence from a primary source, the record's own work among them.
        secondary: Those with evidence from secondary sources only.
        none: Those without evidence.
        supported: Those that all their evidence supports.
        partly: Those of which some evidence supports a part only, and none contradicts them.
        contradicted: Those that some evidence contradicts.
    """

    field: str
    tags: int = 0
    primary: int = 0
    secondary: int = 0
    none: int = 0
    supported: int = 0
    partly: int = 0
    contradicted: int = 0

    @property
    def sourced(self) -> int:
        """The tags that have evidence."""
        return self.tags - self.none


def is_own(paper: Paper, item: Evidence) -> bool:
    """Return True if the source of an item of evidence is the paper itself, or a copy of it."""
    if item.copy or address(item.source) in map(address, paper.urls):
        return True
    return recognise_url(item.source) in {identifier for identifier, _ in identities(paper)}


def asks_for_own_work(item: Evidence, taxonomy: Taxonomy) -> bool:
    """Return True if the level of an item of evidence says that its source is the record's own work."""
    return _standing(item.level, taxonomy) is Standing.OWN


def evidence_for(paper: Paper, field: str, taxonomy: Taxonomy) -> tuple[Evidence, ...]:
    """Return the items that name a field, found what its tag says, and are not what published the tag."""
    items = (item for item in paper.evidence if item.is_evidence and field in item.tags)
    return tuple(item for item in items if not _is_published_source(item.source, taxonomy))


def is_tagged(paper: Paper, field: str) -> bool:
    """Return True if a paper has a tag that asks for evidence: one other than NA."""
    return paper.tags.get(field, NOT_APPLICABLE) not in (NOT_APPLICABLE, (NOT_APPLICABLE,), {})


def cover(papers: Sequence[Paper], taxonomy: Taxonomy) -> tuple[EvidenceCoverage, ...]:
    """Count the evidence for the tags of each sourced field, and of all of them; empty without such fields."""
    rows = []
    for facet in taxonomy.papers:
        if facet.sourced:
            tagged = (paper for paper in papers if is_tagged(paper, facet.field))
            rows.append(_count(facet.field, (_tag_coverage(paper, facet.field, taxonomy) for paper in tagged)))
    return (*rows, _count("total", rows)) if rows else ()


def list_tags(papers: Sequence[Paper], taxonomy: Taxonomy, state: EvidenceState) -> tuple[ListedTag, ...]:
    """Return the tags of sourced fields that `cover` counts in a state, field by field."""
    listed = []
    for field in (facet.field for facet in taxonomy.papers if facet.sourced):
        for paper in papers:
            if is_tagged(paper, field) and getattr(_tag_coverage(paper, field, taxonomy), state.value):
                items = evidence_for(paper, field, taxonomy)
                saying = tuple(item for item in items if item.verdict.value == state.value)
                listed.append(ListedTag(paper, field, saying or items))
    return tuple(listed)


def _tag_coverage(paper: Paper, field: str, taxonomy: Taxonomy) -> EvidenceCoverage:
    """One tag as counts of one and zero."""
    items = evidence_for(paper, field, taxonomy)
    if not items:
        return EvidenceCoverage(field, tags=1, none=1)
    best = "secondary"
    for item in items:
        standing = _standing(item.level, taxonomy)
        if standing is Standing.PRIMARY or (standing is Standing.OWN and is_own(paper, item)):
            best = "primary"
    verdict = max((item.verdict for item in items), key=_VERDICTS.index)
    return EvidenceCoverage(field, tags=1, **{best: 1, verdict.value: 1})


def _count(name: str, rows: Iterable[EvidenceCoverage]) -> EvidenceCoverage:
    return EvidenceCoverage(name, *map(sum, zip(*(row[1:] for row in rows), strict=True)))


def _standing(level: str, taxonomy: Taxonomy) -> Standing:
    terms = (term for facet in taxonomy.evidence if facet.field == "level" for term in facet.terms)
    return next((term.standing for term in terms if term.id == level), Standing.PRIMARY)


def _is_published_source(source: str, taxonomy: Taxonomy) -> bool:
    """Return True for the address of the survey that published the tags: it is no evidence for them."""
    survey = _identifier(taxonomy.source)
    if survey is None:
        return bool(taxonomy.source) and address(source) == address(taxonomy.source)
    return survey.value.lower() in source.lower() and recognise_url(source) == survey


_identifier = lru_cache(maxsize=8)(recognise_url)
