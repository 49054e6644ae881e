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
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, MISSING, Counts, LevelCounts, Summary
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind, Noun, Role, Term
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, SPARSE_LIMIT, crosstab_title, totals
from orchtrace_corpus.corpus.rules.tags import possible_cells

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.flow import Screening
    from orchtrace_corpus.corpus.model.scale import Observation

FOLDER = "docs/figures"

SCALE_FIGURE = "scale-gap"
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
    """A figure: its name, which is also the name of its file, its kind, and the field of its facet, if it has one."""

    name: str
    kind: FigureKind
    field: str = ""

    @property
    def path(self) -> str:
        """The path of its file, below the folder of the corpus."""
        return f"{FOLDER}/{self.name}.svg"


class Source(NamedTuple):
    """The data of figures: the pool with its statistics, observations of scale, and the flow of screening.

    `contested` has the number of papers by contested tag (a facet, or a term with levels) and by value of that tag.
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
        figures.append(Figure(SCALE_FIGURE, FigureKind.SCALE))
    return tuple(figures)


def contested_values(pool: Pool, disputed: Collection[tuple[str, str]]) -> Mapping[str, Mapping[str, int]]:
    """Return the number of papers by contested tag and value; `disputed` has pairs of a paper's key and a tag."""
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


def select_figures(names: Sequence[str], figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the figures with some names, or all figures without names; raise `CommandUseError` for an unknown name."""
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

_SPARSE_COUNTS = " or ".join(map(str, range(1, SPARSE_LIMIT + 1)))


class Caption(NamedTuple):
    """A figure in words: the picture's title and subtitle, and all of its numbers in sentences, for its alt text."""

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
        texts = (f"{value_label(term.id, facet.terms)}: {term.definition}" for term in facet.terms if term.sketch)
        return Caption(f"{facet.label}: the terms as sketches", facet.definition, " ".join(texts))
    others = {FigureKind.COVERAGE: _coverage, FigureKind.YEARS: _years, FigureKind.SCREENING: _screening}
    return others.get(figure.kind, _scale)(source)


_LABELS = {ABSENT: ABSENT_LABEL, NOT_APPLICABLE: "Not applicable"}


def value_label(value: str, terms: Sequence[Term]) -> str:
    """Return the label of a counted value; that of a term begins with the term's code."""
    for term in terms:
        if term.id == value and value not in _LABELS:
            return f"{term.code} {term.label}".strip()
    return _LABELS.get(value, value)


def _coverage(source: Source) -> Caption:
    noun = source.pool.taxonomy.noun
    crosstab = source.summary.crosstabs[0]
    rows, columns = crosstab.rows, crosstab.columns
    filled = {cell: count for cell, count in crosstab.cells.items() if count and MISSING.isdisjoint(cell)}
    size = len(possible_cells(source.pool.taxonomy, rows, columns, crosstab.cells))
    sparse = sum(count <= SPARSE_LIMIT for count in filled.values())
    subtitle = (
        f"{noun.counted(crosstab.total)} by {rows.label} and {columns.label}: "
        f"{size - len(filled)} of {size} cells are empty, {sparse} hold {_SPARSE_COUNTS} {noun.many}."
    )
    text = subtitle
    if filled:
        (row, column), count = max(filled.items(), key=lambda item: item[1])
        pair = f"{value_label(row, rows.terms)} with {value_label(column, columns.terms)}"
        text += f" The largest: {pair}, {count:,}."
    return Caption(crosstab_title(crosstab), subtitle, text)


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
        parts.append(f"{value_label(term.id, facet.terms)} {numbers}{note}.")
    text = f"{noun.counted(levels.total)} by level. {' '.join(parts)}"
    return Caption(f"{facet.label} by level", facet.definition, text)


def _terms(counts: Counts, disputed: Mapping[str, int], noun: Noun) -> Caption:
    facet, terms = counts.attribute.facet, counts.attribute.terms
    text = f"{noun.counted(counts.total)} by {counts.attribute.label}: {_list_counts(_label_counts(counts))}."
    if facet is not None and facet.role is Role.AXIS:
        ids = [term.id for term in terms if term.id not in MISSING]
        empty = [value_label(name, terms) for name in ids if not counts.counts.get(name)]
        sparse = [value_label(name, terms) for name in ids if 0 < counts.counts.get(name, 0) <= SPARSE_LIMIT]
        if empty:
            text += f" Empty: {', '.join(empty)}."
        if sparse:
            text += f" Sparse, with {_SPARSE_COUNTS} {noun.many}: {', '.join(sparse)}."
    if disputed:
        contested = _list_counts((value_label(value, terms), count) for value, count in disputed.items())
        text += f" Contested: {contested}."
    return Caption(counts.attribute.label, facet.definition if facet else "", text)


def _years(source: Source) -> Caption:
    noun, section = source.pool.taxonomy.noun, source.pool.taxonomy.section_facet
    total = noun.counted(source.summary.years.total)
    text = f"{total} by year: {_list_counts(source.summary.years.counts.items())}."
    if section is None:
        return Caption(f"{noun.heading} by year", total, text)
    counts = _list_counts(_label_counts(source.counts(section.field)))
    return Caption(f"{noun.heading} by year and {section.label}", total, f"{text} By {section.label}: {counts}.")


def _screening(source: Source) -> Caption:
    noun, screening = source.pool.taxonomy.noun, source.screening
    retained, excluded, stages = len(source.pool.papers), len(source.pool.exclusions), source.stages
    subtitle = f"{totals(source.summary)}."
    if screening is None:
        by_stage = f" ({_list_counts(_label_counts(stages))})" if stages is not None and excluded else ""
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


def _label_counts(counts: Counts) -> Iterable[tuple[str, int]]:
    """Yield the labels of values with their counts, those of terms without records, too."""
    terms = counts.attribute.terms
    values = dict.fromkeys((*(term.id for term in terms), *counts.counts))
    return ((value_label(value, terms), counts.counts.get(value, 0)) for value in values)


def _list_counts(counts: Iterable[tuple[str, int]]) -> str:
    return "; ".join(f"{label} {count:,}" for label, count in counts)
