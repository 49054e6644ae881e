"""Counts over a corpus: by one attribute, by two, by level, and the coverage of two axes."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, product, zip_longest
from math import isclose

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import (
    Attribute,
    ValueKind,
    exclusion_attributes,
    find,
    paper_attributes,
)
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage, cover
from orchtrace_corpus.corpus.model.records import Paper, Pool, ReadingName, Record
from orchtrace_corpus.corpus.model.taxonomy import PAPER_NOUN, Facet, Kind, Noun, Taxonomy

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.candidates import Candidate

ABSENT = ""
"""The counted value of records without a value."""

NO_CELLS = frozenset((ABSENT, NOT_APPLICABLE))
"""Values that make no cell of a matrix, since their counts would dwarf the others."""


class Counts(NamedTuple):
    """The number of records in total and with each value of an attribute; one with several values counts for each.

    The values are in the vocabulary's order, numbers and dates ascending, other texts by descending count; `ABSENT` is
    last.
    """

    attribute: Attribute
    counts: dict[str, int]
    total: int

    @property
    def families(self) -> dict[str, int]:
        """The counts by code; empty where no two terms share one."""
        facet = self.attribute.facet
        grouped = facet.families if facet is not None else {}
        return {code: sum(self.counts.get(term.id, 0) for term in terms) for code, terms in grouped.items()}


class LevelCounts(NamedTuple):
    """The number of records with each term of a facet of kind `levels` at each level, by term and level.

    Of an optional facet, `total` is the number of records that have it, and `by_record` has their levels by name.
    """

    facet: Facet
    counts: dict[str, dict[str, int]]
    total: int
    by_record: Mapping[str, Mapping[str, str]] = {}


class Crosstab(NamedTuple):
    """The number of records with each pair of values of two attributes.

    The values are in the order of `Counts`. `cells` has the counts by row value and column value, without zeros.
    """

    rows: Attribute
    columns: Attribute
    row_values: tuple[str, ...]
    column_values: tuple[str, ...]
    cells: dict[tuple[str, str], int]
    total: int

    def number(self, row: str, column: str) -> int:
        """Return how many records have both values."""
        return self.cells.get((row, column), 0)

    @property
    def largest(self) -> int:
        """The largest count of a cell, except those of `NA` and absence."""
        return max((count for pair, count in self.cells.items() if NO_CELLS.isdisjoint(pair)), default=0)

    @property
    def row_totals(self) -> dict[str, int]:
        """The sum of each row's cells."""
        return {row: sum(self.number(row, column) for column in self.column_values) for row in self.row_values}

    @property
    def column_totals(self) -> dict[str, int]:
        """The sum of each column's cells."""
        return {column: sum(self.number(row, column) for row in self.row_values) for column in self.column_values}


class Gap(NamedTuple):
    """An empty or sparse cell that can arise, with its number of papers and that of `expected_counts`.

    `nearest` are the keys of papers in the closest filled cells of the row and the column in turn, the newest first.
    """

    row: str
    column: str
    papers: int
    expected: float
    nearest: tuple[str, ...]


class Coverage(NamedTuple):
    """The empty and sparse cells of a cross-tabulation, without those of `NA` and absence.

    Attributes:
        empty: The cells without papers that can arise.
        sparse: The cells with 1 to `sparse_limit` papers.
        impossible: The cells that a rule of the taxonomy forbids; `reasons` has the messages of these rules.
        gaps: Every cell of `empty` and `sparse`, the one furthest below its expected count first.
        reading: The reading of disputed tags.
        candidates: The candidates of each cell, as `fills` returns them; None if they were not asked for.
    """

    crosstab: Crosstab
    empty: tuple[tuple[str, str], ...]
    sparse: tuple[tuple[str, str], ...]
    sparse_limit: int
    impossible: tuple[tuple[str, str], ...] = ()
    gaps: tuple[Gap, ...] = ()
    reading: ReadingName = ReadingName.PUBLISHED
    candidates: Mapping[tuple[str, str], tuple[str, ...]] | None = None
    reasons: tuple[str, ...] = ()
    noun: Noun = PAPER_NOUN

    @property
    def size(self) -> int:
        """The number of cells, including impossible ones."""
        return len({*self.crosstab.row_values} - NO_CELLS) * len({*self.crosstab.column_values} - NO_CELLS)

    @property
    def unused(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The terms of the rows and of the columns that no paper has, for which no count can be expected."""
        totals = self.crosstab.row_totals, self.crosstab.column_totals
        rows, columns = (tuple(n for n, total in by.items() if not total and n not in NO_CELLS) for by in totals)
        return rows, columns


class Summary(NamedTuple):
    """All published statistics of a corpus; without exclusions for a selection of papers."""

    papers: int
    excluded: int | None
    facets: tuple[Counts, ...]
    levels: tuple[LevelCounts, ...]
    years: Counts
    crosstabs: tuple[Crosstab, ...]
    exclusions: tuple[Counts, ...]
    newest: str
    evidence: tuple[EvidenceCoverage, ...] = ()
    noun: Noun = PAPER_NOUN

    @property
    def axes(self) -> tuple[Counts, ...]:
        """The counts of the axes."""
        return tuple(c for c in self.facets if c.attribute.facet is not None and c.attribute.facet.role == "axis")

    @property
    def descriptions(self) -> tuple[Counts, ...]:
        """The counts of the other facets."""
        return tuple(c for c in self.facets if c not in self.axes)


def count(records: Sequence[Record], attribute: Attribute) -> Counts:
    """Count records by an attribute; terms that no record has count 0."""
    tally = Counter(value for record in records for value in attribute.values(record) or (ABSENT,))
    values = ordered_values(tally, attribute)
    return Counts(attribute, {value: tally[value] for value in values}, len(records))


def count_levels(records: Sequence[Record], facet: Facet) -> LevelCounts:
    """Count records by the terms of a facet of kind `levels` and their levels."""
    having: dict[str, Mapping[str, str]] = {}
    tally: Counter[tuple[str, str]] = Counter()
    for record in records:
        tag = record.tags.get(facet.field)
        if tag is not None and not isinstance(tag, (str, tuple)):
            tally.update(tag.items())
            having[record.name] = tag
    counts = {term.id: {level.id: tally[term.id, level.id] for level in facet.levels} for term in facet.terms}
    if facet.required:
        return LevelCounts(facet, counts, len(records))
    return LevelCounts(facet, counts, len(having), having)


def cross(records: Sequence[Record], rows: Attribute, columns: Attribute) -> Crosstab:
    """Count records by two attributes; terms that no record has are rows and columns, too."""
    pairs = [(rows.values(record) or (ABSENT,), columns.values(record) or (ABSENT,)) for record in records]
    cells = Counter(cell for pair in pairs for cell in product(*pair))
    tallies = [Counter(value for pair in pairs for value in pair[side]) for side in (0, 1)]
    orders = ordered_values(tallies[0], rows), ordered_values(tallies[1], columns)
    return Crosstab(rows, columns, *orders, dict(cells), len(records))


MAX_ROUNDS = 200
"""The most rounds of iterative proportional fitting."""

MOST_NEAREST = 3
"""The most papers near a gap that are named."""


def coverage(
    papers: Sequence[Paper],
    rows: Attribute,
    columns: Attribute,
    *,
    sparse_limit: int = 2,
    impossible: Mapping[tuple[str, str], str] = {},
) -> Coverage:
    """Return the empty and sparse cells of two attributes, including those of unused terms.

    `impossible` are the cells that cannot arise, with the reasons; one that has papers is treated like any other.
    """
    crosstab = cross(papers, rows, columns)
    pairs = [pair for pair in product(crosstab.row_values, crosstab.column_values) if NO_CELLS.isdisjoint(pair)]
    forbidden = tuple(pair for pair in pairs if pair in impossible and not crosstab.number(*pair))
    possible = [pair for pair in pairs if pair not in forbidden]
    empty = tuple(pair for pair in possible if not crosstab.number(*pair))
    sparse = tuple(pair for pair in possible if 0 < crosstab.number(*pair) <= sparse_limit)
    gaps = _gaps({*empty, *sparse}, possible, crosstab, papers)
    reasons = tuple(dict.fromkeys(impossible[pair] for pair in forbidden))
    return Coverage(crosstab, empty, sparse, sparse_limit, forbidden, gaps, reasons=reasons)


def fills(
    candidates: "Iterable[Candidate]", rows: Attribute, columns: Attribute
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the keys of the candidates with each pair of values, with `?` behind if a reading of an undecided tag."""
    keys: dict[tuple[str, str], list[str]] = {}
    for candidate in candidates:
        decided = [axis.values(candidate.paper) for axis in (rows, columns)]
        possible = [
            (*values, *(candidate.values_in_readings(axis.name) if candidate.is_open(axis.name) else ()))
            for values, axis in zip(decided, (rows, columns), strict=True)
        ]
        for row, column in dict.fromkeys(product(*possible)):
            is_decided = row in decided[0] and column in decided[1]
            keys.setdefault((row, column), []).append(candidate.name + "?" * (not is_decided))
    return {pair: tuple(sorted(names, key=lambda name: name.endswith("?"))) for pair, names in keys.items()}


def expected_counts(crosstab: Crosstab, possible: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the expected count of each possible cell if rows and columns were independent otherwise.

    This is quasi-independence: the product of a factor for the row and one for the column, such that the totals of
    rows and columns over the possible cells are those counted (Goodman 1968, JASA 63:1091-1131), found by iterative
    proportional fitting (Deming and Stephan 1940). If every cell is possible, it is row total times column total
    divided by the total.
    """
    factors = [dict.fromkeys((pair[side] for pair in possible), 1.0) for side in (0, 1)]
    totals = [Counter[str](), Counter[str]()]
    for pair in possible:
        for side in (0, 1):
            totals[side][pair[side]] += crosstab.number(*pair)
    for _ in range(MAX_ROUNDS):
        before = [*factors[0].values()]
        for side in (0, 1):
            sums = dict.fromkeys(factors[side], 0.0)
            for pair in possible:
                sums[pair[side]] += factors[1 - side][pair[1 - side]]
            factors[side] = {value: totals[side][value] / weight if weight else 0.0 for value, weight in sums.items()}
        if all(map(partial(isclose, rel_tol=1e-9), before, factors[0].values())):
            break
    return {(row, column): factors[0][row] * factors[1][column] for row, column in possible}


def _gaps(
    cells: Collection[tuple[str, str]], possible: Sequence[tuple[str, str]], crosstab: Crosstab, papers: Sequence[Paper]
) -> tuple[Gap, ...]:
    expected = expected_counts(crosstab, possible)
    keys: dict[tuple[str, str], list[str]] = {}
    for paper in sorted(papers, key=lambda paper: -paper.year):
        for pair in product(crosstab.rows.values(paper), crosstab.columns.values(paper)):
            keys.setdefault(pair, []).append(paper.key)
    filled = [pair for pair in possible if pair in keys]
    orders = [list(crosstab.row_values), list(crosstab.column_values)]

    def keys_along(cell: tuple[str, str], side: int) -> Iterator[str]:
        """Return the keys of papers in the cells with the same value on one side, the closest cells first."""
        order = orders[1 - side]
        line = [pair for pair in filled if pair[side] == cell[side]]
        line.sort(key=lambda pair: abs(order.index(pair[1 - side]) - order.index(cell[1 - side])))
        return chain.from_iterable(keys[pair] for pair in line)

    gaps = []
    for cell in possible:
        if cell in cells:
            nearest = first_in_turn(keys_along(cell, 0), keys_along(cell, 1))
            gaps.append(Gap(*cell, crosstab.number(*cell), expected[cell], nearest))
    return tuple(sorted(gaps, key=lambda gap: round(gap.papers - gap.expected, 2)))


def first_in_turn(*keys: Iterable[str]) -> tuple[str, ...]:
    """Return the first `MOST_NEAREST` distinct keys of several lists, taken from each in turn."""
    in_turn = chain.from_iterable(zip_longest(*keys))
    return tuple(islice(dict.fromkeys(key for key in in_turn if key is not None), MOST_NEAREST))


def heat(count: int, largest: int) -> int:
    """Return the quarter of the scale that a count falls in, from 1 to 4; 0 for nothing."""
    return min(4, 1 + (count - 1) * 4 // largest) if count and largest else 0


def gap_axes(rows: str, columns: str, taxonomy: Taxonomy) -> tuple[Attribute, Attribute]:
    """Return the two named attributes, or the first pair that the taxonomy crosses; both must have a vocabulary."""
    if not rows and not columns:
        if not taxonomy.crosstabs:
            raise CommandUseError("name two axes, such as: corpus gaps topology scenario")
        rows, columns = taxonomy.crosstabs[0]
    if not columns:
        raise CommandUseError(f"name a second axis beside {quote(rows)}", "See corpus terms for all of them.")
    attributes = paper_attributes(taxonomy)
    axes = find(rows, attributes, "axis"), find(columns, attributes, "axis")
    for axis in axes:
        if not axis.terms:
            hint = f"To count by it: corpus stats --cross {rows} {columns}"
            raise CommandUseError(f"{axis.name} has no vocabulary, so no cell of it can be missing", hint)
    return axes


def summarise(pool: Pool, *, with_exclusions: bool = True, with_evidence: bool = True) -> Summary:
    """Return all statistics of a corpus; the coverage of evidence, which takes most of the time, is optional."""
    attributes = paper_attributes(pool.taxonomy)
    excluding = exclusion_attributes(pool.taxonomy)
    papers = pool.papers
    counted = (attributes[facet.field] for facet in pool.taxonomy.papers if facet.kind is not Kind.LEVELS)
    screened = pool.taxonomy.exclusions if with_exclusions else ()
    return Summary(
        papers=len(papers),
        excluded=len(pool.exclusions) if with_exclusions else None,
        facets=tuple(count(papers, attribute) for attribute in counted),
        levels=tuple(count_levels(papers, facet) for facet in pool.taxonomy.papers if facet.kind is Kind.LEVELS),
        years=count(papers, attributes["year"]),
        crosstabs=tuple(cross(papers, *map(attributes.__getitem__, pair)) for pair in pool.taxonomy.crosstabs),
        exclusions=tuple(count(pool.exclusions, excluding[facet.field]) for facet in screened),
        newest=max((paper.added for paper in papers), default=""),
        evidence=cover(papers, pool.taxonomy) if with_evidence else (),
        noun=pool.taxonomy.noun,
    )


def ordered_values(tally: Counter[str], attribute: Attribute) -> tuple[str, ...]:
    """Return the counted values in the order of `Counts`."""
    if attribute.terms:
        values: Iterable[str] = attribute.allowed
    elif attribute.kind is ValueKind.TEXT:
        values = sorted(set(tally) - {ABSENT}, key=lambda value: (-tally[value], value))
    else:
        values = sorted(set(tally) - {ABSENT}, key=float if attribute.kind is ValueKind.NUMBER else str)
    return (*values, *((ABSENT,) if tally[ABSENT] else ()))
