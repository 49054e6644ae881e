"""Claims by other tags: which fall where readers agree on other tags than the published ones, or by candidates."""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.identifiers import recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute
from orchtrace_corpus.corpus.analysis.claims import Judge, Verdict, disputes_on
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import Claim, Over, PoolName
from orchtrace_corpus.corpus.model.disputes import Dispute, disputable, read_by
from orchtrace_corpus.corpus.model.records import Pool, ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Kind


class ReadingVerdict(NamedTuple):
    """The outcome of a claim by the reading of the sources.

    Attributes:
        published: Whether it holds as published.
        falls_by: The disputes whose agreed value makes it fall: taken in one after another, in their order, each
            that breaks it is left out. Empty if it does not fall.
    """

    published: bool
    falls_by: tuple[Dispute, ...] = ()


def compare_readings(claims: Iterable[Claim], pool: Pool, disputes: Sequence[Dispute]) -> Mapping[str, ReadingVerdict]:
    """Hold claims against the tags as published and as the readers of the sources agree on them.

    Args:
        claims: The claims.
        pool: The corpus as published.
        disputes: Its disputes.

    Returns:
        By the id of each claim whether it holds as published, and which agreed values make it fall.
    """
    published, sources = Judge(pool), Judge(read_by(pool, disputes, ReadingName.SOURCES))
    agreed = [dispute for dispute in disputes if dispute.agreed is not None]
    compared = {}
    for claim in claims:
        holds = published.verdict(claim).holds
        harmless: list[Dispute] = []
        breaking: list[Dispute] = []
        if holds and not sources.verdict(claim).holds:
            for dispute in disputes_on(published.filters(claim)[Over.PAPERS], agreed, disputable(pool.taxonomy)):
                judge = Judge(read_by(pool, (*harmless, dispute), ReadingName.SOURCES))
                (harmless if judge.verdict(claim).holds else breaking).append(dispute)
        compared[claim.id] = ReadingVerdict(holds, tuple(breaking))
    return compared


class Cause(NamedTuple):
    """A candidate by which a claim would fall, or could, that holds over the pool of today.

    Attributes:
        claim: The claim.
        name: The candidate's key.
        is_certain: Whether it falls by tags that are settled; else it could, in a reading of tags that are open.
        tags: The values of the tags that the claim looks at: settled ones, or those on record.
        sources: The addresses at which they were read.
        copies: Those of them that are hosted copies of the paper.
        proposal: What is proposed for the candidate.
    """

    claim: Claim
    name: str
    is_certain: bool
    tags: Mapping[str, tuple[str, ...]]
    sources: tuple[str, ...]
    copies: tuple[str, ...]
    proposal: Decision


def causes(verdicts: Iterable[Verdict], pool: Pool, candidates: Iterable[Candidate]) -> tuple[Cause, ...]:
    """Return the candidates by which claims would fall, or could, that hold over the pool of today, claim by claim.

    Args:
        verdicts: The verdicts with these candidates.
        pool: The corpus.
        candidates: The candidates.
    """
    judge, by_name = Judge(pool), {candidate.name: candidate for candidate in candidates}
    attributes = judge.attributes[Over.PAPERS]
    listed = []
    for verdict in verdicts:
        today, awaited = (verdict.pools.get(name) for name in (PoolName.TODAY, PoolName.CANDIDATES))
        if awaited is None or today is None or not today.holds:
            continue
        wanted = judge.filters(verdict.claim).get(Over.PAPERS)
        if wanted is None:  # candidates are papers
            continue
        asked = [condition.attribute for condition in wanted.conditions] + ([wanted.by] if wanted.by else [])
        tags = [name for attribute in asked for name in _tags(attribute)]
        for name in (*awaited.falls_by, *awaited.could_fall_by):
            candidate = by_name[name]  # no other record breaks what holds over the pool of today
            values = {}
            for tag in tags:
                if settled := attributes[tag].values(candidate.paper):
                    values[tag] = settled
                elif candidate.is_open(tag):
                    values[tag] = candidate.read_values(tag)
            sources: dict[str, None] = {}
            copies = []
            for reading in candidate.readings:
                if any(reading.tags.get(tag) in values[tag] for tag in values):
                    sources |= dict.fromkeys(reading.sources)
                    copied = reading.sources if reading.is_copy else ()
                    copies += [url for url in copied if url not in candidate.paper.urls and not recognise_url(url)]
            is_certain, shown = name in awaited.falls_by, tuple(sources or candidate.paper.urls[:1])
            cause = Cause(verdict.claim, name, is_certain, values, shown, tuple(copies), candidate.proposal)
            listed.append(cause)
    return tuple(listed)


def _tags(attribute: Attribute) -> tuple[str, ...]:
    """Return the tags that a filter looks at: a facet, or all terms of one of levels; none for a field."""
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and attribute.name == facet.field:
        return tuple(term.id for term in facet.terms)
    return (attribute.name,) if attribute.terms and attribute.name != "published" else ()
