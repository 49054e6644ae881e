"""Claims by other tags: which fall where readers agree on other tags than the published ones, or by candidates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from orchtrace_corpus.base.identifiers import recognise_url
from orchtrace_corpus.corpus.analysis.attributes import Attribute
from orchtrace_corpus.corpus.analysis.claims import Judge, Verdict, disputes_on
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import Claim, Over, PoolName
from orchtrace_corpus.corpus.model.disputes import Dispute, disputable, read_by
from orchtrace_corpus.corpus.model.records import Pool, ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Kind


class ReadingVerdict(NamedTuple):
    """What becomes of a claim by the reading of the sources.

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
    compared = {}
    for claim in claims:
        holds = published.verdict(claim).holds
        is_falling = holds and not sources.verdict(claim).holds
        compared[claim.id] = ReadingVerdict(holds, _falls_by(claim, published, disputes) if is_falling else ())
    return compared


def _falls_by(claim: Claim, judge: Judge, disputes: Sequence[Dispute]) -> tuple[Dispute, ...]:
    kept: list[Dispute] = []
    found: list[Dispute] = []
    for dispute in disputes_on(judge.filters(claim)[Over.PAPERS], disputes, disputable(judge.pool.taxonomy)):
        if dispute.agreed is not None:
            read = read_by(judge.pool, (*kept, dispute), ReadingName.SOURCES)
            (kept if Judge(read).verdict(claim).holds else found).append(dispute)
    return tuple(found)


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
    """The candidates by which claims would fall, or could, that hold over the pool of today, claim by claim.

    Args:
        verdicts: What the claims come to with these candidates.
        pool: The corpus.
        candidates: The candidates.
    """
    judge, by_name = Judge(pool), {candidate.name: candidate for candidate in candidates}
    found = []
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
            one = by_name[name]  # no other record breaks what holds over the pool of today
            settled = {tag: judge.attributes[Over.PAPERS][tag].values(one.paper) for tag in tags}
            values = {tag: held or one.read_values(tag) for tag, held in settled.items() if held or one.is_open(tag)}
            read = [reading for reading in one.readings if any(reading.tags.get(tag) in values[tag] for tag in values)]
            sources = dict.fromkeys(source for reading in read for source in reading.sources)
            is_certain = name in awaited.falls_by
            copied = (source for reading in read if reading.is_copy for source in reading.sources)
            copies = tuple(source for source in copied if source not in one.paper.urls and not recognise_url(source))
            shown = tuple(sources or one.paper.urls[:1])
            found.append(Cause(verdict.claim, name, is_certain, values, shown, copies, one.proposal))
    return tuple(found)


def _tags(attribute: Attribute) -> tuple[str, ...]:
    """The tags that a filter looks at: a facet, or all terms of one of levels; nothing for a field of the record."""
    facet = attribute.facet
    is_whole = facet is not None and facet.kind is Kind.LEVELS and attribute.name == facet.field
    if facet is not None and is_whole:
        return tuple(term.id for term in facet.terms)
    return (attribute.name,) if attribute.terms and attribute.name != "published" else ()
