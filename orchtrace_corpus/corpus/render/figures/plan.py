"""Which figures a corpus has, and what they are drawn from."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.corpus.analysis.statistics import Counts, LevelCounts, Summary
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind, Role, Taxonomy

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.scale import Observation

FOLDER = "docs/figures"

SCALE_GAP = "scale-gap"
"""The name of the figure that needs more than the papers and the exclusions."""

SPARSE_LIMIT = 2
"""What has up to this many papers is sparse, as on the statistics page."""


class FigureKind(StrEnum):
    """What a figure shows, which decides who draws it."""

    COVERAGE = "coverage"
    LEVELS = "levels"
    TERMS = "terms"
    YEARS = "years"
    SCREENING = "screening"
    SCALE = "scale"


class Figure(NamedTuple):
    """A figure: its name, which is its file's, what it shows, and the facet that it is about, if any."""

    name: str
    kind: FigureKind
    field: str = ""

    @property
    def path(self) -> str:
        """Its file, below the corpus's folder."""
        return f"{FOLDER}/{self.name}.svg"


class Source(NamedTuple):
    """What figures are drawn from.

    Attributes:
        pool: The corpus.
        summary: Its statistics; to draw from it, with unused terms, which captions can do without.
        scale: What is known about the scale of systems.
        contested: How many papers have each value of a tag in open dispute: by tag, which is a facet or
            a term with levels, then by value.
    """

    pool: Pool
    summary: Summary
    scale: "Sequence[Observation]" = ()
    contested: Mapping[str, Mapping[str, int]] = {}

    def counts(self, field: str) -> Counts:
        """The counts of a facet of kind `single` or `many`."""
        return next(counts for counts in self.summary.facets if counts.attribute.name == field)

    def levels(self, field: str) -> LevelCounts:
        """The counts of a facet of kind `levels`."""
        return next(levels for levels in self.summary.levels if levels.facet.field == field)

    @property
    def stages(self) -> Counts | None:
        """The exclusions by the last of their facets, the stage at which screening ended for them."""
        return self.summary.exclusions[-1] if self.summary.exclusions else None


def plan(taxonomy: Taxonomy, *, with_scale: bool) -> tuple[Figure, ...]:
    """The figures that a corpus has: axes first, then facets, years, screening, scale.

    The names of figures that are about no single facet hold a hyphen, which no field's name can.
    """
    figures = []
    if taxonomy.crosstabs:
        rows, columns = taxonomy.crosstabs[0]
        figures.append(Figure(f"{rows}-by-{columns}", FigureKind.COVERAGE))
    for role in (Role.AXIS, Role.FACET):
        for facet in taxonomy.papers:
            if facet.role is role:
                kind = FigureKind.LEVELS if facet.kind is Kind.LEVELS else FigureKind.TERMS
                figures.append(Figure(facet.field, kind, facet.field))
    figures += [Figure("papers-by-year", FigureKind.YEARS), Figure("screening-flow", FigureKind.SCREENING)]
    return (*figures, *((Figure(SCALE_GAP, FigureKind.SCALE),) if with_scale else ()))


def contested_values(pool: Pool, disputed: Collection[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """How many papers have each value of a disputed tag: by tag, then by value; `NOT_ARISING` among these.

    Args:
        pool: The corpus.
        disputed: The tags in open dispute, each as a paper's key and the tag.
    """
    if not disputed:
        return {}
    from orchtrace_corpus.corpus.model.disputes import disputable, value_of

    facets = disputable(pool.taxonomy)
    papers = {paper.key: paper for paper in pool.papers}
    counts: dict[str, dict[str, int]] = {}
    for key, tag in sorted(disputed):
        if key in papers and tag in facets:
            by_value = counts.setdefault(tag, {})
            value = value_of(papers[key], facets[tag], tag)
            by_value[value] = by_value.get(value, 0) + 1
    return counts


def chosen(names: Sequence[str], figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """The figures of those names; all if none is named.

    Raises:
        CommandUseError: There is no figure of a name; the message tells the nearest.
    """
    by_name = {figure.name: figure for figure in figures}
    for name in names:
        if name not in by_name:
            raise CommandUseError(f"there is no figure {quote(name)}{suggestion(name, list(by_name))}")
    return tuple(by_name[name] for name in names) or tuple(figures)
