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

MISSING = frozenset((ABSENT, NOT_APPLICABLE))
"""Values without a term. Their rows and columns are no cells: they are no gaps, and their counts would dwarf others."""


class Counts(NamedTuple):
    """The number of records in total, and by value of an attribute; a record with several values counts for each.

    Terms are in the vocabulary's order, numbers and dates ascending, other texts by descending count; `ABSENT` is last.
    """

    attribute: Attribute
    counts: dict[str, int]
    total: int

    @property
    def families(self) -> dict[str, int]:
        """The counts by code; empty if no two terms share a code."""
        facet = self.attribute.facet
        grouped = facet.families if facet is not None else {}
        return {code: sum(self.counts.get(term.id, 0) for term in terms) for code, terms in grouped.items()}


class LevelCounts(NamedTuple):
    """The number of records with each term of a facet of kind `levels` at each level, by term and level.

    `total` is the number of all records. If the facet is optional, it is the number of records that have the facet, and
    `by_record` has the level of each term by the names of these records.
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

    def count_in(self, row: str, column: str) -> int:
        """Return how many records have both values."""
        return self.cells.get((row, column), 0)

    @property
    def largest(self) -> int:
        """The largest count of a cell, without the cells of `NA` and absence."""
        return max((count for pair, count in self.cells.items() if MISSING.isdisjoint(pair)), default=0)

    @property
    def row_totals(self) -> dict[str, int]:
        """The sum of each row's cells."""
        return {row: sum(self.count_in(row, column) for column in self.column_values) for row in self.row_values}

    @property
    def column_totals(self) -> dict[str, int]:
        """The sum of each column's cells."""
        return {column: sum(self.count_in(row, column) for row in self.row_values) for column in self.column_values}


class Gap(NamedTuple):
    """An empty or sparse cell that can arise.

    Attributes:
        papers: The number of papers in the cell.
        expected: The number of papers by `expected_counts`.
        nearest: The keys of papers in the closest filled cells, from the row and the column in turn, newest first.
    """

    row: str
    column: str
    papers: int
    expected: float
    nearest: tuple[str, ...]


class Coverage(NamedTuple):
    """The empty and sparse cells of a cross-tabulation, without the cells of `NA` and absence.

    Attributes:
        empty: The cells without papers that can arise.
        sparse: The cells with 1 to `sparse_limit` papers.
        impossible: The cells that a rule of the taxonomy forbids; `reasons` has the messages of these rules.
        gaps: Every cell of `empty` and `sparse`, the one furthest below its expected count first.
        reading: The reading of disputed tags by which papers are counted.
        candidates: The candidates of each cell, as `candidates_by_cell` returns them; None if they were not asked for.
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
        return len({*self.crosstab.row_values} - MISSING) * len({*self.crosstab.column_values} - MISSING)

    @property
    def unused(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The row terms, and the column terms, that no paper has; their cells have no expected count."""
        rows, columns = self.crosstab.row_totals, self.crosstab.column_totals
        return (
            tuple(row for row, total in rows.items() if total == 0 and row not in MISSING),
            tuple(column for column, total in columns.items() if total == 0 and column not in MISSING),
        )


class Summary(NamedTuple):
    """All published statistics of a corpus.

    Attributes:
        excluded: The number of exclusions; None for a selection of papers, which has none.
        facets: The counts of facets of other kinds than `levels`.
        newest: The last day on which a paper was added, as YYYY-MM-DD; empty without papers.
    """

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
        """The counts of the facets that are axes."""
        return tuple(
            counts for counts in self.facets if counts.attribute.facet and counts.attribute.facet.role == "axis"
        )

    @property
    def descriptions(self) -> tuple[Counts, ...]:
        """The counts of the facets that are no axes."""
        return tuple(counts for counts in self.facets if counts not in self.axes)


def count(records: Sequence[Record], attribute: Attribute) -> Counts:
    """Count records by an attribute; terms that no record has count 0."""
    tally = Counter(value for record in records for value in attribute.values(record) or (ABSENT,))
    values = ordered_values(tally, attribute)
    return Counts(attribute, {value: tally[value] for value in values}, len(records))


def count_levels(records: Sequence[Record], facet: Facet) -> LevelCounts:
    """Count records by the terms of a facet of kind `levels` and their levels."""
    levels_by_record: dict[str, Mapping[str, str]] = {}
    tally: Counter[tuple[str, str]] = Counter()
    for record in records:
        tag = record.tags.get(facet.field)
        if tag is not None and not isinstance(tag, (str, tuple)):
            tally.update(tag.items())
            levels_by_record[record.name] = tag
    counts = {term.id: {level.id: tally[term.id, level.id] for level in facet.levels} for term in facet.terms}
    if facet.required:
        return LevelCounts(facet, counts, len(records))
    return LevelCounts(facet, counts, len(levels_by_record), levels_by_record)


def cross(records: Sequence[Record], rows: Attribute, columns: Attribute) -> Crosstab:
    """Count records by two attributes; terms that no record has are rows and columns, too."""
    cells: Counter[tuple[str, str]] = Counter()
    row_tally: Counter[str] = Counter()
    column_tally: Counter[str] = Counter()
    for record in records:
        row_values = rows.values(record) or (ABSENT,)
        column_values = columns.values(record) or (ABSENT,)
        row_tally.update(row_values)
        column_tally.update(column_values)
        cells.update(product(row_values, column_values))
    orders = ordered_values(row_tally, rows), ordered_values(column_tally, columns)
    return Crosstab(rows, columns, *orders, dict(cells), len(records))


MAX_ROUNDS = 200
"""The most rounds of iterative proportional fitting."""

MAX_NEAREST = 3
"""The most papers near a gap that are named."""


def coverage(
    papers: Sequence[Paper],
    rows: Attribute,
    columns: Attribute,
    *,
    sparse_limit: int = 2,
    impossible: Mapping[tuple[str, str], str] = {},
) -> Coverage:
    """Return the empty and sparse cells of two attributes, including those of terms that no paper has.

    `impossible` has the cells that cannot arise, with the reasons; one that has papers is treated like any other.
    """
    crosstab = cross(papers, rows, columns)
    pairs = [pair for pair in product(crosstab.row_values, crosstab.column_values) if MISSING.isdisjoint(pair)]
    forbidden = tuple(pair for pair in pairs if pair in impossible and not crosstab.count_in(*pair))
    possible = [pair for pair in pairs if pair not in forbidden]
    empty = tuple(pair for pair in possible if not crosstab.count_in(*pair))
    sparse = tuple(pair for pair in possible if 0 < crosstab.count_in(*pair) <= sparse_limit)
    gaps = _gaps({*empty, *sparse}, possible, crosstab, papers)
    reasons = tuple(dict.fromkeys(impossible[pair] for pair in forbidden))
    return Coverage(crosstab, empty, sparse, sparse_limit, forbidden, gaps, reasons=reasons)


def candidates_by_cell(
    candidates: "Iterable[Candidate]", rows: Attribute, columns: Attribute
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the keys of the candidates with each pair of values.

    A key ends with `?`, and comes after the others, if one of the values is a reading of an undecided tag.
    """
    keys: dict[tuple[str, str], list[str]] = {}
    for candidate in candidates:
        decided = [axis.values(candidate.paper) for axis in (rows, columns)]
        possible = [list(values) for values in decided]
        for values, axis in zip(possible, (rows, columns), strict=True):
            if candidate.is_open(axis.name):
                values += candidate.values_in_readings(axis.name)
        for row, column in dict.fromkeys(product(*possible)):
            is_decided = row in decided[0] and column in decided[1]
            key = candidate.name if is_decided else f"{candidate.name}?"
            keys.setdefault((row, column), []).append(key)
    return {pair: tuple(sorted(names, key=lambda name: name.endswith("?"))) for pair, names in keys.items()}


def expected_counts(crosstab: Crosstab, possible: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the count of each possible cell that is expected if rows and columns are independent within these cells.

    This is quasi-independence (Goodman 1968, JASA 63:1091-1131): a count is the product of a factor of its row and one
    of its column, and the totals of rows and columns over the possible cells equal the observed ones. Iterative
    proportional fitting finds the factors (Deming and Stephan 1940). If every cell is possible, the expected count is
    row total times column total divided by the total.
    """
    sides = (0, 1)  # of a pair: its row, its column
    factors = [dict.fromkeys((pair[side] for pair in possible), 1.0) for side in sides]
    totals = [Counter[str](), Counter[str]()]
    for pair in possible:
        for side in sides:
            totals[side][pair[side]] += crosstab.count_in(*pair)
    for _ in range(MAX_ROUNDS):
        factors_before = list(factors[0].values())
        for side in sides:
            sums = dict.fromkeys(factors[side], 0.0)
            for pair in possible:
                sums[pair[side]] += factors[1 - side][pair[1 - side]]
            factors[side] = {value: totals[side][value] / weight if weight else 0.0 for value, weight in sums.items()}
        if all(map(partial(isclose, rel_tol=1e-9), factors_before, factors[0].values())):
            break
    return {(row, column): factors[0][row] * factors[1][column] for row, column in possible}


def _gaps(
    cells: Collection[tuple[str, str]], possible: Sequence[tuple[str, str]], crosstab: Crosstab, papers: Sequence[Paper]
) -> tuple[Gap, ...]:
    """Return the `cells` as gaps, the one furthest below its expected count first."""
    expected = expected_counts(crosstab, possible)
    keys: dict[tuple[str, str], list[str]] = {}
    for paper in sorted(papers, key=lambda paper: -paper.year):
        for pair in product(crosstab.rows.values(paper), crosstab.columns.values(paper)):
            keys.setdefault(pair, []).append(paper.key)
    filled = [pair for pair in possible if pair in keys]
    orders = [list(crosstab.row_values), list(crosstab.column_values)]

    def keys_along(cell: tuple[str, str], side: int) -> Iterator[str]:
        """Return the keys of papers in the cell's row (side 0) or its column (side 1), the closest cells first."""
        other_side = 1 - side
        order = orders[other_side]
        line = [pair for pair in filled if pair[side] == cell[side]]
        line.sort(key=lambda pair: abs(order.index(pair[other_side]) - order.index(cell[other_side])))
        return chain.from_iterable(keys[pair] for pair in line)

    gaps = []
    for cell in possible:
        if cell in cells:
            nearest = first_in_turn(keys_along(cell, 0), keys_along(cell, 1))
            gaps.append(Gap(*cell, crosstab.count_in(*cell), expected[cell], nearest))
    return tuple(sorted(gaps, key=lambda gap: round(gap.papers - gap.expected, 2)))


def first_in_turn(*key_lists: Iterable[str]) -> tuple[str, ...]:
    """Return the first `MAX_NEAREST` distinct keys of several lists, taken from each list in turn."""
    in_turn = chain.from_iterable(zip_longest(*key_lists))  # None fills up the shorter lists
    return tuple(islice(dict.fromkeys(key for key in in_turn if key is not None), MAX_NEAREST))


def heat(count: int, largest: int) -> int:
    """Return the quarter of the scale up to `largest` that a count falls in, from 1 to 4; 0 for a count of 0."""
    if not count or not largest:
        return 0
    return min(4, 1 + (count - 1) * 4 // largest)


def gap_axes(rows: str, columns: str, taxonomy: Taxonomy) -> tuple[Attribute, Attribute]:
    """Return the attributes with two names, or the first pair that the taxonomy crosses if the names are empty.

    Raises:
        CommandUseError: A name is unknown or missing, or its attribute has no vocabulary.
    """
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
    attributes_of_exclusions = exclusion_attributes(pool.taxonomy)
    papers = pool.papers
    with_levels = [facet for facet in pool.taxonomy.papers if facet.kind is Kind.LEVELS]
    other_facets = [facet for facet in pool.taxonomy.papers if facet.kind is not Kind.LEVELS]
    exclusion_facets = pool.taxonomy.exclusions if with_exclusions else ()
    crosstabs = pool.taxonomy.crosstabs
    return Summary(
        papers=len(papers),
        excluded=len(pool.exclusions) if with_exclusions else None,
        facets=tuple(count(papers, attributes[facet.field]) for facet in other_facets),
        levels=tuple(count_levels(papers, facet) for facet in with_levels),
        years=count(papers, attributes["year"]),
        crosstabs=tuple(cross(papers, attributes[row], attributes[column]) for row, column in crosstabs),
        exclusions=tuple(count(pool.exclusions, attributes_of_exclusions[facet.field]) for facet in exclusion_facets),
        newest=max((paper.added for paper in papers), default=""),
        evidence=cover(papers, pool.taxonomy) if with_evidence else (),
        noun=pool.taxonomy.noun,
    )


def ordered_values(tally: Counter[str], attribute: Attribute) -> tuple[str, ...]:
    """Return the counted values in the order of `Counts`."""
    present = set(tally) - {ABSENT}
    if attribute.terms:
        values = list(attribute.allowed)
    elif attribute.kind is ValueKind.TEXT:
        values = sorted(present, key=lambda value: (-tally[value], value))
    elif attribute.kind is ValueKind.NUMBER:
        values = sorted(present, key=float)
    else:
        values = sorted(present)
    if tally[ABSENT]:
        values.append(ABSENT)
    return tuple(values)
