"""The agreement of readers who coded the same papers independently.

Observed agreement is the share of pairs of readings of one paper that are equal. Cohen's kappa (J. Cohen,
"A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960) and
Krippendorff's alpha for nominal data (K. Krippendorff, "Content Analysis", chapter on reliability) compare it
with the agreement expected by chance. Kappa is for two readers, alpha for any number, who may have skipped papers.
The coefficients come from statsmodels and from the krippendorff package.

A cell is one paper in one column. Intervals are percentile bootstrap intervals: papers are drawn with replacement, each
with all its cells, since the cells of a paper are not independent.
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
    """A paper that was coded differently; `readings` has the codes by the names of the readers."""

    key: str
    column: str
    readings: Mapping[str, str]


class Agreement(NamedTuple):
    """The agreement of readers on a column or a facet; `observed` is the share of equal pairs of readings, 0 to 1."""

    name: str
    cells: int
    observed: float | None
    kappa: Estimate
    alpha: Estimate
    disagreements: tuple[Disagreement, ...]


def compare(
    sheets: Sequence[Sheet], columns: Sequence[Column], *, resamples: int = 1000, seed: int = 0
) -> tuple[Agreement, ...]:
    """Return the agreement on each column that two or more readers coded, and on facets with several such columns."""
    agreements: list[Agreement] = []
    for field in dict.fromkeys(column.field for column in columns):
        members = [column for column in columns if column.field == field]
        parts = [_agreement(column.name, [column], sheets, resamples, seed) for column in members]
        parts = [part for part in parts if part.cells]
        if len(parts) > 1:
            agreements.append(_agreement(field, members, sheets, resamples, seed))
        agreements += parts
    return tuple(agreements)


def _agreement(name: str, columns: Sequence[Column], sheets: Sequence[Sheet], resamples: int, seed: int) -> Agreement:
    cells_by_paper: dict[str, list[dict[str, str]]] = {}
    disagreements = []
    keys = dict.fromkeys(key for sheet in sheets for key in sheet.codes)
    for key, column in product(keys, columns):
        codes = {sheet.name: sheet.codes.get(key, {}).get(column.name) for sheet in sheets}
        readings = {reader: code for reader, code in codes.items() if code is not None}
        if len(readings) > 1:
            cells_by_paper.setdefault(key, []).append(readings)
            if len(set(readings.values())) > 1:
                disagreements.append(Disagreement(key, column.name, readings))
    all_cells = list(chain.from_iterable(cells_by_paper.values()))
    pairs = [code == other for cell in all_cells for code, other in combinations(cell.values(), 2)]
    observed = sum(pairs) / len(pairs) if pairs else None
    kappa, alpha = _coefficients([*cells_by_paper.values()], sheets, resamples, seed)
    return Agreement(name, len(all_cells), observed, kappa, alpha, tuple(disagreements))


_NO_KAPPA = Estimate(None, reason="kappa is for two readers; alpha takes any number")


def _coefficients(
    papers: Sequence[Sequence[Mapping[str, str]]], sheets: Sequence[Sheet], resamples: int, seed: int
) -> tuple[Estimate, Estimate]:
    values = sorted({code for cells in papers for readings in cells for code in readings.values()})
    are_two = len(sheets) == 2
    if not papers:
        return (Estimate(None, reason="no cell was coded twice"),) * 2
    if len(values) == 1:
        undefined = Estimate(None, reason="every reading is the same, so chance cannot be told from agreement")
        return undefined if are_two else _NO_KAPPA, undefined
    import numpy as np

    index = {value: position for position, value in enumerate(values)}
    # tables[paper, i, j] counts the cells read as value i, then j; counts[paper][cell, i] the readings of i.
    tables = np.zeros((len(papers), len(values), len(values)))
    counts: list[Array] = []
    for table, cells in zip(tables, papers, strict=True):
        rows = np.zeros((len(cells), len(values)))
        for row, readings in zip(rows, cells, strict=True):
            for code in readings.values():
                row[index[code]] += 1
            if are_two:
                first, second = (index[code] for code in readings.values())
                table[first, second] += 1
        counts.append(rows)
    draws = np.random.default_rng(seed).integers(len(papers), size=(resamples, len(papers)))
    alphas = [_alpha(np.concatenate([counts[paper] for paper in draw])) for draw in draws]
    alpha = _estimate(_alpha(np.concatenate(counts)), alphas)
    if not are_two:
        return _NO_KAPPA, alpha
    kappas = [_kappa(tables[draw].sum(axis=0)) for draw in draws]
    return _estimate(_kappa(tables.sum(axis=0)), kappas), alpha


def _kappa(table: "Array") -> float | None:
    """Return Cohen's kappa of a table of first by second reading; None if chance agreement is complete."""
    raters = _library("statsmodels.stats.inter_rater")
    share = table / table.sum()
    if (share.sum(axis=0) * share.sum(axis=1)).sum() >= 1:
        return None
    return float(raters.cohens_kappa(table, return_results=False))


def _alpha(counts: "Array") -> float | None:
    """Return Krippendorff's alpha of counts of values by cell; None if only one value occurs."""
    krippendorff = _library("krippendorff")
    if (counts.sum(axis=0) > 0).sum() < 2:
        return None
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError("comparing", error.name or "a library", "audit") from error


def _estimate(value: float | None, resampled: Sequence[float | None]) -> Estimate:
    defined = [coefficient for coefficient in resampled if coefficient is not None]
    if value is None:
        return Estimate(None, reason="chance agreement is complete")
    if not defined:
        return Estimate(value)
    import numpy as np

    low, high = np.quantile(defined, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Estimate(value, float(low), float(high))
