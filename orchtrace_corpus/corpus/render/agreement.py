"""Agreement between readers as tables: the coefficients, and each disagreement with all readings."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.table import Cell, Table, envelope
from orchtrace_corpus.corpus.analysis.agreement import CONFIDENCE, Agreement, Disagreement, Estimate


def tables(
    agreements: Sequence[Agreement], readers: Sequence[str], left_out: int = 0, remarks: Sequence[str] = ()
) -> list[Table]:
    """Return a table of coefficients, with remarks on the sheets, and one of disagreements if there are any.

    `left_out` is the number of cells that are left out, since the taxonomy does not have their code.
    """
    rows: list[tuple[Cell, ...]] = []
    for agreement in agreements:
        coefficients = (*_cells(agreement.kappa), *_cells(agreement.alpha))
        rows.append((agreement.name, agreement.cells, _round(agreement.observed), *coefficients))
    columns = ("field", "cells", "observed", "kappa", "kappa interval", "alpha", "alpha interval")
    tables = [Table("agreement", "Agreement", columns, tuple(rows), (*remarks, *_notes(agreements, left_out)))]
    rows = [(key, column, *map(codes.get, readers)) for key, column, codes in _disagreements(agreements)]
    if rows:
        tables.append(Table("disagreements", "Disagreements", ("key", "field", *readers), tuple(rows)))
    return tables


def document(
    agreements: Sequence[Agreement], readers: Sequence[str], left_out: int = 0, remarks: Sequence[str] = ()
) -> str:
    """Return the coefficients, which are not rounded here, and the disagreements as JSON."""
    mappings = []
    for agreement in agreements:
        mapping: dict[str, object] = {"field": agreement.name, "cells": agreement.cells, "observed": agreement.observed}
        for name, estimate in (("kappa", agreement.kappa), ("alpha", agreement.alpha)):
            mapping[name] = estimate._asdict() | {"reason": estimate.reason or None}
        mappings.append(mapping)
    disagreements = []
    for key, column, codes in _disagreements(agreements):
        disagreements.append({"key": key, "field": column, "readings": dict(codes)})
    head = {"readers": list(readers), "remarks": list(remarks), "confidence": CONFIDENCE, "left_out": left_out}
    return envelope("audit", {**head, "agreement": mappings, "disagreements": disagreements})


def _disagreements(agreements: Sequence[Agreement]) -> list[Disagreement]:
    """Return the disagreements on columns; those on a whole facet repeat them."""
    disagreements = []
    for agreement in agreements:
        disagreements += [each for each in agreement.disagreements if each.column == agreement.name]
    return disagreements


def _notes(agreements: Sequence[Agreement], left_out: int) -> tuple[str, ...]:
    notes = [f"Intervals: {CONFIDENCE:.0%}, bootstrap over papers."]
    if left_out:
        notes.append(f"Left out: {left_out} cells with codes that the taxonomy does not have.")
    reasons: dict[str, list[str]] = {}
    for agreement in agreements:
        for name, estimate in (("kappa", agreement.kappa), ("alpha", agreement.alpha)):
            if estimate.value is None:
                reasons.setdefault(f"no {name}: {estimate.reason}", []).append(agreement.name)
    notes += [f"{reason[0].upper()}{reason[1:]} ({', '.join(names)})." for reason, names in reasons.items()]
    return tuple(notes)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _cells(estimate: Estimate) -> tuple[float | None, str | None]:
    """Return a coefficient and its interval."""
    interval = None
    if estimate.low is not None and estimate.high is not None:
        interval = f"{estimate.low:.2f} to {estimate.high:.2f}"
    return _round(estimate.value), interval
