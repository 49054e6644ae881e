"""The agreement of readers who coded the same papers independently.

Observed agreement is the share of equal pairs among all pairs of readings of the same cell. Cohen's kappa (J. Cohen,
"A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960) and
Krippendorff's alpha for nominal data (K. Krippendorff, "Content Analysis", chapter on reliability) compare it
with the agreement expected by chance. Kappa is for two readers, alpha for any number, who may have skipped papers.
The coefficients come from statsmodels and from the krippendorff package.

A cell is one paper in one column of the coding sheets; a reading is the code that a reader put into it. Intervals are
percentile bootstrap intervals. They draw papers with replacement, not cells: the cells of a paper are not independent.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

from orchtrace_corpus.base.errors import MissingLibraryError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.coding import Column, Sheet

if TYPE_CHECKING:
    import numpy

    Array: TypeAlias = numpy.ndarray[Any, Any]

CONFIDENCE = 0.95
"""The share of resamples that an interval covers."""


class Estimate(NamedTuple):
    """A coefficient, 0 for agreement by chance, with the bounds of its interval, or the reason why it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class Disagreement(NamedTuple):
    """A cell with different readings; `key` is that of the paper, and `readings` has the codes by reader."""

    key: str
    column: str
    readings: Mapping[str, str]


class Agreement(NamedTuple):
    """The agreement of readers on a column or a facet.

    Attributes:
        cells: The number of cells with two readings or more.
        observed: The share of equal pairs of readings, 0 to 1; None without a pair.
    """

    name: str
    cells: int
    observed: float | None
    kappa: Estimate
    alpha: Estimate
    disagreements: tuple[Disagreement, ...]


def compare(
    sheets: Sequence[Sheet], columns: Sequence[Column], *, resamples: int = 1000, seed: int = 0
) -> tuple[Agreement, ...]:
    """Return the agreement on each column that two or more readers coded.

    A facet with several such columns also has an agreement over all of them, which comes before those of the columns.
    """
    agreements: list[Agreement] = []
    for field in dict.fromkeys(column.field for column in columns):
        field_columns = [column for column in columns if column.field == field]
        by_column = [_measure(column.name, [column], sheets, resamples, seed) for column in field_columns]
        by_column = [agreement for agreement in by_column if agreement.cells]
        if len(by_column) > 1:
            agreements.append(_measure(field, field_columns, sheets, resamples, seed))
        agreements += by_column
    return tuple(agreements)


def _measure(name: str, columns: Sequence[Column], sheets: Sequence[Sheet], resamples: int, seed: int) -> Agreement:
    """Return the agreement over the cells of some columns together."""
    cells_by_paper: dict[str, list[dict[str, str]]] = {}
    disagreements = []
    keys = dict.fromkeys(key for sheet in sheets for key in sheet.codes)
    for key, column in product(keys, columns):
        readings = {}
        for sheet in sheets:
            code = sheet.codes.get(key, {}).get(column.name)
            if code is not None:
                readings[sheet.name] = code
        if len(readings) > 1:
            cells_by_paper.setdefault(key, []).append(readings)
            if len(set(readings.values())) > 1:
                disagreements.append(Disagreement(key, column.name, readings))
    cells = list(chain.from_iterable(cells_by_paper.values()))
    equal = [code == other for cell in cells for code, other in combinations(cell.values(), 2)]
    observed = sum(equal) / len(equal) if equal else None
    kappa, alpha = _coefficients(list(cells_by_paper.values()), len(sheets), resamples, seed)
    return Agreement(name, len(cells), observed, kappa, alpha, tuple(disagreements))


_NO_KAPPA = Estimate(None, reason="kappa is for two readers; alpha takes any number")


def _coefficients(
    papers: Sequence[Sequence[Mapping[str, str]]], reader_count: int, resamples: int, seed: int
) -> tuple[Estimate, Estimate]:
    """Return kappa and alpha; each item of `papers` has the cells of one paper, and each cell its codes by reader."""
    values = sorted({code for cells in papers for readings in cells for code in readings.values()})
    if not papers:
        undefined = Estimate(None, reason="no cell was coded twice")
        return undefined, undefined
    has_kappa = reader_count == 2
    if len(values) == 1:
        undefined = Estimate(None, reason="every reading is the same, so chance cannot be told from agreement")
        return undefined if has_kappa else _NO_KAPPA, undefined
    import numpy as np

    index_by_value = {value: index for index, value in enumerate(values)}
    # tables[paper, i, j] is the number of cells that the first reader coded as value i and the second as value j;
    # counts[paper][cell, i] is the number of readers who coded the cell as value i.
    tables = np.zeros((len(papers), len(values), len(values)))
    counts: list[Array] = []
    for table, cells in zip(tables, papers, strict=True):
        counts_of_paper = np.zeros((len(cells), len(values)))
        for counts_of_cell, readings in zip(counts_of_paper, cells, strict=True):
            indices = [index_by_value[code] for code in readings.values()]
            for index in indices:
                counts_of_cell[index] += 1
            if has_kappa:
                table[indices[0], indices[1]] += 1
        counts.append(counts_of_paper)
    draws = np.random.default_rng(seed).integers(len(papers), size=(resamples, len(papers)))
    alphas = [_alpha(np.concatenate([counts[paper] for paper in draw])) for draw in draws]
    alpha = _estimate(_alpha(np.concatenate(counts)), alphas)
    if not has_kappa:
        return _NO_KAPPA, alpha
    kappas = [_kappa(tables[draw].sum(axis=0)) for draw in draws]
    return _estimate(_kappa(tables.sum(axis=0)), kappas), alpha


def _kappa(table: "Array") -> float | None:
    """Return Cohen's kappa, where `table[i, j]` counts the cells with value i by one reader and j by the other.

    Return None if the agreement expected by chance is 1, for which kappa is undefined.
    """
    inter_rater = _import_library("statsmodels.stats.inter_rater")
    shares = table / table.sum()
    expected_agreement = (shares.sum(axis=0) * shares.sum(axis=1)).sum()
    if expected_agreement >= 1:
        return None
    return float(inter_rater.cohens_kappa(table, return_results=False))


def _alpha(counts: "Array") -> float | None:
    """Return Krippendorff's alpha, where `counts[cell, i]` counts the readings i; None if only one value occurs."""
    krippendorff = _import_library("krippendorff")
    value_count = (counts.sum(axis=0) > 0).sum()
    if value_count < 2:
        return None
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def _import_library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError("comparing", error.name or "a library", "audit") from error


def _estimate(value: float | None, resampled: Sequence[float | None]) -> Estimate:
    """Return a coefficient with its interval, from its values in the resamples; None there is an undefined one."""
    defined = [coefficient for coefficient in resampled if coefficient is not None]
    if value is None:
        return Estimate(None, reason="chance agreement is complete")
    if not defined:
        return Estimate(value)
    import numpy as np

    low, high = np.quantile(defined, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Estimate(value, float(low), float(high))
