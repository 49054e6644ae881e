"""The figures of a corpus, their data, and their captions."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.table import markdown_text
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, NO_CELLS, Counts, LevelCounts, Summary
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind, Noun, Role, Term
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, SPARSE_LIMIT, crosstab_title, totals
from orchtrace_corpus.corpus.rules.tags import possible_cells

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.flow import Screening
    from orchtrace_corpus.corpus.model.scale import Observation

FOLDER = "docs/figures"

SCALE_GAP = "scale-gap"
"""The name of the figure that needs the file on scale."""


class FigureKind(StrEnum):
    """The kind of a figure, which decides how it is drawn."""

    COVERAGE = "coverage"
    LEVELS = "levels"
    TERMS = "terms"
    SKETCHES = "sketches"
    YEARS = "years"
    SCREENING = "screening"
    SCALE = "scale"


class Figure(NamedTuple):
    """A figure: its name, which is also that of its file, its kind, and the facet that it is about, if any."""

    name: str
    kind: FigureKind
    field: str = ""

    @property
    def path(self) -> str:
        """The path of its file, below the folder of the corpus."""
        return f"{FOLDER}/{self.name}.svg"


class Source(NamedTuple):
    """The data of figures: the pool with its statistics, observations of scale, and the flow of screening.

    `contested` counts papers by contested tag, which is a facet or a term with levels, and by its value.
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
        """Return True if screening is on record: exclusions, or runs of searches."""
        return bool(self.pool.exclusions) or self.screening is not None

    @property
    def stages(self) -> Counts | None:
        """The exclusions by the last of their facets, the stage at which they were excluded."""
        return self.summary.exclusions[-1] if self.summary.exclusions else None


def figures_of(source: Source) -> tuple[Figure, ...]:
    """Return the figures of a corpus: axes, facets, sketches of terms, years, and screening and scale if on record.

    Names of figures that are about no single facet have a hyphen, which names of fields cannot have.
    """
    taxonomy = source.pool.taxonomy
    figures = []
    if taxonomy.crosstabs:
        rows, columns = taxonomy.crosstabs[0]
        figures.append(Figure(f"{rows}-by-{columns}", FigureKind.COVERAGE))
    for role in (Role.AXIS, Role.FACET):
        for facet in taxonomy.papers:
            if facet.role is role:
                kind = FigureKind.LEVELS if facet.kind is Kind.LEVELS else FigureKind.TERMS
                figures.append(Figure(facet.field, kind, facet.field))
    sketched = [facet.field for facet in taxonomy.papers if any(term.sketch for term in facet.terms)]
    figures += [Figure(f"{field}-sketches", FigureKind.SKETCHES, field) for field in sketched]
    figures.append(Figure("papers-by-year", FigureKind.YEARS))
    if source.is_screened:
        figures.append(Figure("screening-flow", FigureKind.SCREENING))
    if source.scale:
        figures.append(Figure(SCALE_GAP, FigureKind.SCALE))
    return tuple(figures)


def contested_values(pool: Pool, disputed: Collection[tuple[str, str]]) -> Mapping[str, Mapping[str, int]]:
    """Return how many papers have each value of a contested tag, by tag and value; tags are pairs of key and tag."""
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
    """Return the figures of those names, or all without names; an unknown name is a `CommandUseError`."""
    by_name = {figure.name: figure for figure in figures}
    for name in names:
        if name not in by_name:
            raise CommandUseError(f"there is no figure {quote(name)}{suggestion(name, list(by_name))}")
    return tuple(by_name[name] for name in names) or tuple(figures)


def page(captions: Mapping[Figure, "Caption"]) -> str:
    """Return a document with figures and their captions, to be written next to the folder of figures."""
    folder = FOLDER.rpartition("/")[2]
    parts = ["# Figures\n"]
    for figure, caption in captions.items():
        title, text = markdown_text(caption.title), markdown_text(caption.text)
        parts.append(f"## {title}\n\n![{title}]({folder}/{figure.name}.svg)\n\n{text}\n")
    return "\n".join(parts)


NOT_RECORDED = "not recorded"

_FEW = " or ".join(str(index) for index in range(1, SPARSE_LIMIT + 1))


class Caption(NamedTuple):
    """A figure in words: title and subtitle of the picture, and its numbers in sentences, as its text alternative."""

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
    """Return the label of a counted value: of a term, with its code."""
    if value in _NAMES:
        return _NAMES[value]
    return next((f"{term.code} {term.label}".strip() for term in terms if term.id == value), value)


_NAMES = {ABSENT: ABSENT_LABEL, NOT_APPLICABLE: "Not applicable"}


def _coverage(source: Source) -> Caption:
    noun = source.pool.taxonomy.noun
    crosstab = source.summary.crosstabs[0]
    rows, columns = crosstab.rows, crosstab.columns
    cells = {cell: number for cell, number in crosstab.cells.items() if number and NO_CELLS.isdisjoint(cell)}
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
        counts = levels.counts[term.id]
        numbers = ", ".join(f"{counts[level.id]:,} {level.label}" for level in facet.levels)
        disputed = sum(source.contested.get(term.id, {}).values())
        verb = "is" if disputed == 1 else "are"
        note = f"; {disputed:,} of these {sum(counts.values()):,} {verb} contested" if disputed else ""
        parts.append(f"{called(term.id, facet.terms)} {numbers}{note}.")
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
    """Yield the labels of values with their counts; terms without records count 0."""
    terms = counts.attribute.terms
    values = dict.fromkeys((*(term.id for term in terms), *counts.counts))
    return ((called(value, terms), counts.counts.get(value, 0)) for value in values)


def _listed(counts: Iterable[tuple[str, int]]) -> str:
    return "; ".join(f"{name} {count:,}" for name, count in counts)
