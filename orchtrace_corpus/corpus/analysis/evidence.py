"""The evidence for tags: the items about a tag, their standing, and the coverage of the sourced facets."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.identifiers import recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, folded_url, identities
from orchtrace_corpus.corpus.model.taxonomy import Standing, Taxonomy

_VERDICTS = tuple(EvidenceVerdict)


class EvidenceState(StrEnum):
    """The sources and verdicts by which tags are counted, as the counts of `EvidenceCoverage` are called."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    NONE = "none"
    SUPPORTED = "supported"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"


class ListedTag(NamedTuple):
    """A tag with its items of evidence that have the asked verdict, else with all of them."""

    paper: Paper
    field: str
    items: tuple[Evidence, ...]


class EvidenceCoverage(NamedTuple):
    """The number of tags of a field other than NA; the field `total` is all sourced fields together.

    Each tag counts once in `primary`, `secondary` or `none`, by the best source of its evidence, and once in
    `supported`, `partly`, `contradicted` or `none`, by the verdict that supports it least. The record's own work is a
    primary source.
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
    """Return True if the source of an item of evidence is the paper itself or a copy of it."""
    if item.copy or folded_url(item.source) in map(folded_url, paper.urls):
        return True
    return recognise_url(item.source) in {identifier for identifier, _ in identities(paper)}


def asks_for_own_work(item: Evidence, taxonomy: Taxonomy) -> bool:
    """Return True if the level of an item of evidence requires the record's own work as its source."""
    return _standing(item.level, taxonomy) is Standing.OWN


def evidence_for(paper: Paper, field: str, taxonomy: Taxonomy) -> tuple[Evidence, ...]:
    """Return the items of evidence on a field, without those whose source is the survey that published the tags."""
    items = (item for item in paper.evidence if item.is_evidence and field in item.tags)
    return tuple(item for item in items if not _is_survey(item.source, taxonomy))


def is_tagged(paper: Paper, field: str) -> bool:
    """Return True if a paper has a tag other than NA, which needs evidence."""
    return paper.tags.get(field, NOT_APPLICABLE) not in (NOT_APPLICABLE, (NOT_APPLICABLE,), {})


def cover(papers: Sequence[Paper], taxonomy: Taxonomy) -> tuple[EvidenceCoverage, ...]:
    """Count the evidence for the tags of each sourced field and of all of them; empty without such fields."""
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
                matching = tuple(item for item in items if item.verdict.value == state.value)
                listed.append(ListedTag(paper, field, matching or items))
    return tuple(listed)


def _tag_coverage(paper: Paper, field: str, taxonomy: Taxonomy) -> EvidenceCoverage:
    """Return the coverage of one tag, with counts of 0 and 1."""
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
    for facet in taxonomy.evidence:
        for term in facet.terms:
            if facet.field == "level" and term.id == level:
                return term.standing
    return Standing.PRIMARY


def _is_survey(source: str, taxonomy: Taxonomy) -> bool:
    survey = _identifier(taxonomy.source)
    if survey is None:
        return bool(taxonomy.source) and folded_url(source) == folded_url(taxonomy.source)
    return survey.value.lower() in source.lower() and recognise_url(source) == survey


_identifier = lru_cache(maxsize=8)(recognise_url)
