"""Agreement between readers as tables: the coefficients, and each disagreement with all readings."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.table import Cell, Table, envelope
from orchtrace_corpus.corpus.analysis.agreement import CONFIDENCE, Agreement, Disagreement, Estimate


def tables(
    agreements: Sequence[Agreement], readers: Sequence[str], left_out: int = 0, remarks: Sequence[str] = ()
) -> list[Table]:
    """Return a table of coefficients, with remarks on the sheets, and one of disagreements if there are any.

    `left_out` is the number of cells that are omitted, since their code is unknown to the taxonomy.
    """
    rows: list[tuple[Cell, ...]] = []
    for agreement in agreements:
        coefficients = (*_cells(agreement.kappa), *_cells(agreement.alpha))
        rows.append((agreement.name, agreement.cells, _rounded(agreement.observed), *coefficients))
    columns = ("field", "cells", "observed", "kappa", "kappa interval", "alpha", "alpha interval")
    shown = [Table("agreement", "Agreement", columns, tuple(rows), (*remarks, *_notes(agreements, left_out)))]
    rows = [(key, column, *map(codes.get, readers)) for key, column, codes in _disagreements(agreements)]
    if rows:
        shown.append(Table("disagreements", "Disagreements", ("key", "field", *readers), tuple(rows)))
    return shown


def document(
    agreements: Sequence[Agreement], readers: Sequence[str], left_out: int = 0, remarks: Sequence[str] = ()
) -> str:
    """Return the same as JSON, with figures that are not rounded."""
    mappings = []
    for agreement in agreements:
        head = {"field": agreement.name, "cells": agreement.cells, "observed": agreement.observed}
        estimates = (agreement.kappa, agreement.alpha)
        kappa, alpha = (estimate._asdict() | {"reason": estimate.reason or None} for estimate in estimates)
        mappings.append({**head, "kappa": kappa, "alpha": alpha})
    listed = _disagreements(agreements)
    disagreements = [{"key": key, "field": column, "readings": dict(codes)} for key, column, codes in listed]
    head = {"readers": list(readers), "remarks": list(remarks), "confidence": CONFIDENCE, "left_out": left_out}
    return envelope("audit", {**head, "agreement": mappings, "disagreements": disagreements})


def _disagreements(agreements: Sequence[Agreement]) -> list[Disagreement]:
    """Return the disagreements by column, without those of a whole facet, which repeat those of its columns."""
    pairs = ((agreement.name, disagreement) for agreement in agreements for disagreement in agreement.disagreements)
    return [disagreement for name, disagreement in pairs if disagreement.column == name]


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


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _cells(estimate: Estimate) -> tuple[float | None, str | None]:
    """Return a coefficient and its interval."""
    low, high = estimate.low, estimate.high
    return _rounded(estimate.value), None if low is None or high is None else f"{low:.2f} to {high:.2f}"
