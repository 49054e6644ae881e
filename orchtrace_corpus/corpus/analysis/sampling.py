"""Draws papers for a second reading: the same ones for the same seed, wherever and whenever.

The draw goes by a hash of seed and key rather than by a random generator: it does not depend on the
order of the file, on a version of Python, or on which other papers there are beyond their number.
"""

from collections.abc import Sequence
from hashlib import sha256

from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, count
from orchtrace_corpus.corpus.model.records import Paper


def sample(
    papers: Sequence[Paper], size: int, *, stratify: Attribute | None, always: Sequence[Paper] = (), seed: int = 0
) -> tuple[Paper, ...]:
    """Draw papers, in the order of the corpus.

    Args:
        papers: The papers to draw from.
        size: How many to draw; all of them where there are no more.
        stratify: An attribute by whose values the draw is divided in proportion (largest remainders;
            each value has one paper at least, as far as `size` allows). The first value of a paper counts.
        always: Papers that are drawn in any case, and count as part of `size`; it grows if need be.
        seed: Another seed gives another draw.
    """
    chosen = {paper.key for paper in always}
    strata: dict[str, list[Paper]] = {}
    for paper in papers:
        value = next(iter(stratify.values(paper)), ABSENT) if stratify else ""
        strata.setdefault(value, []).append(paper)
    quotas = _quotas({value: len(members) for value, members in strata.items()}, max(min(size, len(papers)), 0))
    for value, members in strata.items():
        drawn = sorted(members, key=lambda paper: (paper.key not in chosen, _rank(paper.key, seed)))
        chosen.update(paper.key for paper in drawn[: quotas[value]])
    return tuple(paper for paper in papers if paper.key in chosen)


def sparse_papers(
    papers: Sequence[Paper], attributes: Attributes, axes: Sequence[str], limit: int
) -> tuple[Paper, ...]:
    """The papers that have a value of an axis which no more than `limit` papers have."""
    found: set[str] = set()
    for name in axes:
        attribute = attributes[name]
        numbers = count(papers, attribute).counts
        found.update(paper.key for paper in papers for value in attribute.values(paper) if numbers[value] <= limit)
    return tuple(paper for paper in papers if paper.key in found)


def _quotas(sizes: dict[str, int], size: int) -> dict[str, int]:
    """How many to draw from each stratum: in proportion, by largest remainders, none empty if it can be."""
    total = sum(sizes.values())
    floor = 1 if size >= len(sizes) else 0
    rest = size - floor * len(sizes)
    spread = total - floor * len(sizes)
    exact = {value: rest * (number - floor) / spread if spread else 0.0 for value, number in sizes.items()}
    quotas = {value: floor + int(share) for value, share in exact.items()}
    by_remainder = sorted(exact, key=lambda value: (int(exact[value]) - exact[value], -sizes[value], value))
    for value in by_remainder[: size - sum(quotas.values())]:
        quotas[value] += 1
    return quotas


def _rank(key: str, seed: int) -> bytes:
    return sha256(f"{seed}:{key}".encode()).digest()
