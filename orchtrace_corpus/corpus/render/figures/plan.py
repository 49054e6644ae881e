"""The figures of a corpus, their data, and their captions."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.table import markdown_text
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, NO_CELLS, Counts, LevelCounts, Summary
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind, Noun, Role, Taxonomy, Term
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, crosstab_title, totals
from orchtrace_corpus.corpus.rules.tags import possible_cells

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.flow import Screening
    from orchtrace_corpus.corpus.model.scale import Observation

FOLDER = "docs/figures"

SCALE_GAP = "scale-gap"
"""The name of the figure that needs more than the papers and the exclusions."""

SPARSE_LIMIT = 2
"""The most papers of a sparse value, as on the statistics page."""


class FigureKind(StrEnum):
    """The subject of a figure, which decides who draws it."""

    COVERAGE = "coverage"
    LEVELS = "levels"
    TERMS = "terms"
    SKETCHES = "sketches"
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
    """The data that figures are drawn from.

    Attributes:
        pool: The corpus.
        summary: Its statistics; to draw from it, with unused terms, which captions can do without.
        scale: What is known about the scale of systems.
        contested: How many papers have each value of a tag in open dispute: by tag, which is a facet or
            a term with levels, then by value.
        screening: The flow of records through runs of searches; None where none is on record.
    """

    pool: Pool
    summary: Summary
    scale: "Sequence[Observation]" = ()
    contested: Mapping[str, Mapping[str, int]] = {}
    screening: "Screening | None" = None

    def counts(self, field: str) -> Counts:
        """Return the counts of a facet of kind `single` or `many`."""
        return next(counts for counts in self.summary.facets if counts.attribute.name == field)

    def levels(self, field: str) -> LevelCounts:
        """Return the counts of a facet of kind `levels`."""
        return next(levels for levels in self.summary.levels if levels.facet.field == field)

    @property
    def is_screened(self) -> bool:
        """Return True if screening is on record: records that were left out, or runs of searches."""
        return bool(self.pool.exclusions) or self.screening is not None

    @property
    def stages(self) -> Counts | None:
        """The exclusions by the last of their facets, the stage at which screening ended for them."""
        return self.summary.exclusions[-1] if self.summary.exclusions else None


def plan(taxonomy: Taxonomy, *, with_scale: bool, with_screening: bool = True) -> tuple[Figure, ...]:
    """Return the figures that a corpus has: axes first, then facets, sketches of terms, years, screening, scale.

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
    figures += [
        Figure(f"{facet.field}-sketches", FigureKind.SKETCHES, facet.field)
        for facet in taxonomy.papers
        if any(term.sketch for term in facet.terms)
    ]
    figures.append(Figure("papers-by-year", FigureKind.YEARS))
    figures += [Figure("screening-flow", FigureKind.SCREENING)] if with_screening else []
    figures += [Figure(SCALE_GAP, FigureKind.SCALE)] if with_scale else []
    return tuple(figures)


def figures_of(source: Source) -> tuple[Figure, ...]:
    """Return the figures of a corpus: that of scale, and that of screening, only where there is something on record."""
    return plan(source.pool.taxonomy, with_scale=bool(source.scale), with_screening=source.is_screened)


def contested_values(pool: Pool, disputed: Collection[tuple[str, str]]) -> Mapping[str, Mapping[str, int]]:
    """Return how many papers have each value of a disputed tag: by tag, then by value; `NOT_ARISING` among these.

    Args:
        pool: The corpus.
        disputed: The tags in open dispute, each as a paper's key and the tag.
    """
    if not disputed:
        return {}
    from orchtrace_corpus.corpus.model.disputes import disputable, value_of

    facets = disputable(pool.taxonomy)
    papers = {paper.key: paper for paper in pool.papers}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for key, tag in sorted(disputed):
        if key in papers and tag in facets:
            counts[tag][value_of(papers[key], facets[tag], tag)] += 1
    return counts


def chosen(names: Sequence[str], figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the figures of those names; all if none is named.

    Raises:
        CommandUseError: There is no figure of a name; the message tells the nearest.
    """
    by_name = {figure.name: figure for figure in figures}
    for name in names:
        if name not in by_name:
            raise CommandUseError(f"there is no figure {quote(name)}{suggestion(name, list(by_name))}")
    return tuple(by_name[name] for name in names) or tuple(figures)


def page(captions: Mapping[Figure, "Caption"]) -> str:
    """Return a document with figures, each with its numbers in words below it; it lies beside their folder."""
    folder = FOLDER.rpartition("/")[2]
    parts = ["# Figures\n"]
    for figure, said in captions.items():
        title, text = markdown_text(said.title), markdown_text(said.text)
        parts.append(f"## {title}\n\n![{title}]({folder}/{figure.name}.svg)\n\n{text}\n")
    return "\n".join(parts)


NOT_RECORDED = "not recorded"

_FEW = " or ".join(str(index) for index in range(1, SPARSE_LIMIT + 1))


class Caption(NamedTuple):
    """A figure in words.

    Attributes:
        title: What it is about.
        subtitle: What is counted; stands below the title in the picture.
        text: Its main numbers in sentences: the text alternative of the picture.
    """

    title: str
    subtitle: str
    text: str


def caption(figure: Figure, source: Source) -> Caption:
    """Return the caption of a figure."""
    if figure.kind is FigureKind.LEVELS:
        return _levels(source.levels(figure.field), source)
    if figure.kind is FigureKind.TERMS:
        return _terms(source.counts(figure.field), source.contested.get(figure.field, {}), source.pool.taxonomy.noun)
    if figure.kind is FigureKind.SKETCHES:
        facet = next(facet for facet in source.pool.taxonomy.papers if facet.field == figure.field)
        texts = (f"{called(term.id, facet.terms)}: {term.definition}" for term in facet.terms if term.sketch)
        return Caption(f"{facet.label}: the terms as sketches", facet.definition, " ".join(texts))
    others = {FigureKind.COVERAGE: _coverage, FigureKind.YEARS: _years, FigureKind.SCREENING: _screening}
    return others.get(figure.kind, _scale)(source)


def called(value: str, terms: Sequence[Term]) -> str:
    """Return the name of a counted value for people: a term by its code and label."""
    if value in _NAMES:
        return _NAMES[value]
    return next((f"{term.code} {term.label}".strip() for term in terms if term.id == value), value)


_NAMES = {ABSENT: ABSENT_LABEL, NOT_APPLICABLE: "Not applicable"}


def _coverage(source: Source) -> Caption:
    noun = source.pool.taxonomy.noun
    crosstab = source.summary.crosstabs[0]
    rows, columns = crosstab.rows, crosstab.columns
    cells = {cell: n for cell, n in crosstab.cells.items() if n and NO_CELLS.isdisjoint(cell)}
    size = len(possible_cells(source.pool.taxonomy, rows, columns, crosstab.cells))
    sparse = sum(number <= SPARSE_LIMIT for number in cells.values())
    numbers = (
        f"{noun.counted(crosstab.total)} by {rows.label} and {columns.label}: "
        f"{size - len(cells)} of {size} cells are empty, {sparse} hold {_FEW} {noun.many}."
    )
    most = ""
    if cells:
        row, column = max(cells, key=lambda cell: cells[cell])
        most = f" The largest: {called(row, rows.terms)} with {called(column, columns.terms)}, {cells[row, column]:,}."
    return Caption(crosstab_title(crosstab), numbers, f"{numbers}{most}")


def _levels(levels: LevelCounts, source: Source) -> Caption:
    noun = source.pool.taxonomy.noun
    facet = levels.facet
    parts = []
    for term in facet.terms:
        numbers = (f"{levels.counts[term.id][level.id]:,} {level.label}" for level in facet.levels)
        having = sum(levels.counts[term.id][level.id] for level in facet.levels)
        disputed = sum(source.contested.get(term.id, {}).values())
        note = f"; {disputed:,} of these {having:,} {'is' if disputed == 1 else 'are'} contested" * bool(disputed)
        parts.append(f"{called(term.id, facet.terms)} {', '.join(numbers)}{note}.")
    text = f"{noun.counted(levels.total)} by level. {' '.join(parts)}"
    return Caption(f"{facet.label} by level", facet.definition, text)


def _terms(counts: Counts, disputed: Mapping[str, int], noun: Noun) -> Caption:
    facet, terms = counts.attribute.facet, counts.attribute.terms
    listed = _listed(_counted(counts))
    text = f"{noun.counted(counts.total)} by {counts.attribute.label}: {listed}."
    if facet is not None and facet.role is Role.AXIS:
        numbers = [(called(term.id, terms), counts.counts.get(term.id, 0)) for term in terms if term.id not in NO_CELLS]
        empty = [name for name, number in numbers if not number]
        sparse = [name for name, number in numbers if 0 < number <= SPARSE_LIMIT]
        text += f" Empty: {', '.join(empty)}." if empty else ""
        text += f" Sparse, with {_FEW} {noun.many}: {', '.join(sparse)}." if sparse else ""
    text += f" Contested: {_listed((called(value, terms), n) for value, n in disputed.items())}." if disputed else ""
    return Caption(counts.attribute.label, facet.definition if facet else "", text)


def _years(source: Source) -> Caption:
    noun, section = source.pool.taxonomy.noun, source.pool.taxonomy.section
    total = noun.counted(source.summary.years.total)
    text = f"{total} by year: {_listed(source.summary.years.counts.items())}."
    if section is None:
        return Caption(f"{noun.heading} by year", total, text)
    listed = _listed(_counted(source.counts(section.field)))
    return Caption(f"{noun.heading} by year and {section.label}", total, f"{text} By {section.label}: {listed}.")


def _screening(source: Source) -> Caption:
    noun, screening = source.pool.taxonomy.noun, source.screening
    retained, excluded, stages = len(source.pool.papers), len(source.pool.exclusions), source.stages
    subtitle = f"{totals(source.summary)}."
    if screening is None:
        by_stage = f" ({_listed(_counted(stages))})" if stages is not None and excluded else ""
        text = (
            f"{retained + excluded:,} records audited: {excluded:,} excluded{by_stage}, {retained:,} retained. "
            f"How many were identified, and removed before screening, is {NOT_RECORDED}."
        )
        return Caption("From screened to retained records", subtitle, text)
    whole, by_hand, runs = screening.whole, screening.by_hand, len(screening.flows)
    identified = NOT_RECORDED if whole.found is None else f"{whole.found:,}"
    added = f"Added by hand {by_hand.new:,}, of which {by_hand.included:,} included. " if by_hand.new else ""
    text = (
        f"Previous review: {noun.counted(screening.included)} included, {screening.excluded:,} records excluded. "
        f"Since then, in {runs:,} {'run' if runs == 1 else 'runs'}: identified {identified}, "
        f"removed before screening {whole.removed:,}, new {whole.new:,}, screened {whole.screened:,}, "
        f"excluded {sum(whole.excluded.values()):,}, included {whole.included:,}, included with open tags "
        f"{whole.coding:,}, awaiting a decision {whole.awaiting:,}. {added}"
        f"In all {noun.counted(retained)}."
    )
    return Caption("From identified to included records", subtitle, text)


def _scale(source: Source) -> Caption:
    from orchtrace_corpus.corpus.model.scale import compare
    from orchtrace_corpus.corpus.render.scale import BOUNDARY, overview

    comparisons = compare(source.scale)
    if not comparisons:
        return Caption("Scale in use and in experiments", BOUNDARY, f"Nothing that could be compared. {BOUNDARY}")
    title = f"Scale: {comparisons[0].quantity} in use and in experiments"
    return Caption(title, BOUNDARY, f"{overview(comparisons[0])} {BOUNDARY}")


def _counted(counts: Counts) -> Iterable[tuple[str, int]]:
    """Yield the values as people call them with their counts; terms that no record has count 0."""
    terms = counts.attribute.terms
    values = dict.fromkeys((*(term.id for term in terms), *counts.counts))
    return ((called(value, terms), counts.counts.get(value, 0)) for value in values)


def _listed(counts: Iterable[tuple[str, int]]) -> str:
    return "; ".join(f"{name} {count:,}" for name, count in counts)
