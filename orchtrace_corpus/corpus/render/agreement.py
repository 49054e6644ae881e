"""Agreement between readers as tables: the coefficients, and each disagreement with all readings."""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.base.text.table import Cell, Table, envelope
from orchtrace_corpus.corpus.analysis.agreement import CONFIDENCE, Agreement, Disagreement, Estimate


def tables(
    agreements: Sequence[Agreement], readers: Sequence[str], left_out: int = 0, remarks: Sequence[str] = ()
) -> list[Table]:
    """Return one table of coefficients, and one of disagreements if there are any.

    Args:
        agreements: The agreement of each column.
        readers: The names of the readers.
        left_out: The number of cells that do not count, since the taxonomy does not have their code.
        remarks: What the sheets say of themselves.
    """
    rows: list[tuple[Cell, ...]] = [
        (one.name, one.cells, _rounded(one.observed), *_cells(one.kappa), *_cells(one.alpha)) for one in agreements
    ]
    columns = ("field", "cells", "observed", "kappa", "kappa interval", "alpha", "alpha interval")
    found = [Table("agreement", "Agreement", columns, tuple(rows), (*remarks, *_notes(agreements, left_out)))]
    differing = [
        (one.key, one.column, *(one.readings.get(reader) for reader in readers)) for one in _disagreements(agreements)
    ]
    if differing:
        found.append(Table("disagreements", "Disagreements", ("key", "field", *readers), tuple(differing)))
    return found


def document(
    agreements: Sequence[Agreement], readers: Sequence[str], left_out: int = 0, remarks: Sequence[str] = ()
) -> str:
    """Return the same as JSON, figures unrounded."""
    return envelope(
        "audit",
        {
            "readers": list(readers),
            "remarks": list(remarks),
            "confidence": CONFIDENCE,
            "left_out": left_out,
            "agreement": [
                {
                    "field": one.name,
                    "cells": one.cells,
                    "observed": one.observed,
                    "kappa": _data(one.kappa),
                    "alpha": _data(one.alpha),
                }
                for one in agreements
            ],
            "disagreements": [
                {"key": one.key, "field": one.column, "readings": dict(one.readings)}
                for one in _disagreements(agreements)
            ],
        },
    )


def _disagreements(agreements: Sequence[Agreement]) -> list[Disagreement]:
    """The disagreements by column, not those of a facet as a whole, which stand with each of its columns already."""
    return [one for agreement in agreements for one in agreement.disagreements if one.column == agreement.name]


def _notes(agreements: Sequence[Agreement], left_out: int) -> tuple[str, ...]:
    notes = [f"Intervals: {CONFIDENCE:.0%}, bootstrap over papers."]
    if left_out:
        notes.append(f"Left out: {left_out} cells with codes that the taxonomy does not have.")
    reasons: dict[str, list[str]] = {}
    for one in agreements:
        for name, estimate in (("kappa", one.kappa), ("alpha", one.alpha)):
            if estimate.value is None:
                reasons.setdefault(f"no {name}: {estimate.reason}", []).append(one.name)
    notes += [f"{reason[0].upper()}{reason[1:]} ({', '.join(names)})." for reason, names in reasons.items()]
    return tuple(notes)


def _data(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "reason": estimate.reason or None}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _cells(estimate: Estimate) -> tuple[float | None, str | None]:
    """A coefficient and its interval."""
    low, high = estimate.low, estimate.high
    return _rounded(estimate.value), None if low is None or high is None else f"{low:.2f} to {high:.2f}"
