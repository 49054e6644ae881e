"""The evidence for tags: the items about a tag, and how many tags of the sourced facets have evidence.

A facet is sourced if its tags need evidence. The standing of an item says if its source counts as primary.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.identifiers import Identifier, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, folded_url, identities
from orchtrace_corpus.corpus.model.taxonomy import Standing, Taxonomy

_VERDICTS = tuple(EvidenceVerdict)


class EvidenceState(StrEnum):
    """A state of a tag, by its best source or by its verdict; the counts of `EvidenceCoverage` have these names."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    NONE = "none"
    SUPPORTED = "supported"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"


class ListedTag(NamedTuple):
    """A tag with the items of evidence that have the requested verdict; with all items if the state is no verdict."""

    paper: Paper
    field: str
    items: tuple[Evidence, ...]


class EvidenceCoverage(NamedTuple):
    """The number of tags of a field, without NA, by their evidence. The field `total` is all sourced fields together.

    Each tag counts once in `primary`, `secondary` or `none`, by the best source of its evidence; the paper itself is
    primary. It also counts once in `supported`, `partly`, `contradicted` or `none`, by its least favourable verdict.
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
    """Return True if the level of an item of evidence requires that its source is the paper itself."""
    return _standing(item.level, taxonomy) is Standing.OWN


def evidence_for(paper: Paper, field: str, taxonomy: Taxonomy) -> tuple[Evidence, ...]:
    """Return the items of evidence on a field, without those whose source is the survey that published the tags."""
    about_field = (item for item in paper.evidence if item.is_evidence and field in item.tags)
    return tuple(item for item in about_field if not _is_survey(item.source, taxonomy))


def is_tagged(paper: Paper, field: str) -> bool:
    """Return True if a paper has a tag other than NA in a field; such a tag needs evidence."""
    return paper.tags.get(field, NOT_APPLICABLE) not in (NOT_APPLICABLE, (NOT_APPLICABLE,), {})


def cover(papers: Sequence[Paper], taxonomy: Taxonomy) -> tuple[EvidenceCoverage, ...]:
    """Return the coverage of each sourced field, and the total; nothing if no field is sourced."""
    by_field = []
    for field in (facet.field for facet in taxonomy.papers if facet.sourced):
        tagged = (paper for paper in papers if is_tagged(paper, field))
        by_field.append(_sum(field, [_tag_coverage(paper, field, taxonomy) for paper in tagged]))
    return (*by_field, _sum("total", by_field)) if by_field else ()


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
    best_source = "secondary"
    for item in items:
        standing = _standing(item.level, taxonomy)
        if standing is Standing.PRIMARY or (standing is Standing.OWN and is_own(paper, item)):
            best_source = "primary"
    verdict = max((item.verdict for item in items), key=_VERDICTS.index)  # in order from the best to the worst
    return EvidenceCoverage(field, tags=1, **{best_source: 1, verdict.value: 1})


def _sum(name: str, coverages: Sequence[EvidenceCoverage]) -> EvidenceCoverage:
    counts = EvidenceCoverage._fields[1:]
    return EvidenceCoverage(name, *(sum(getattr(each, count) for each in coverages) for count in counts))


def _standing(level: str, taxonomy: Taxonomy) -> Standing:
    """Return the standing of a level of evidence; primary if the taxonomy does not say."""
    for facet in taxonomy.evidence:
        for term in facet.terms:
            if facet.field == "level" and term.id == level:
                return term.standing
    return Standing.PRIMARY


def _is_survey(source: str, taxonomy: Taxonomy) -> bool:
    survey = _survey_identifier(taxonomy.source)
    if survey is None:
        return bool(taxonomy.source) and folded_url(source) == folded_url(taxonomy.source)
    # The first test is fast, and False for nearly every source.
    return survey.value.lower() in source.lower() and recognise_url(source) == survey


@lru_cache(maxsize=8)  # one URL for a whole corpus, asked for at every item of evidence
def _survey_identifier(url: str) -> Identifier | None:
    return recognise_url(url)
