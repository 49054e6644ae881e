"""Compare the published reward designs with a table of readings of their released code and papers.

    python scripts/compare_reward_designs.py READINGS.csv [--rows]

Each row of the table is one value of a design: `design`, `term`, `field`, `true_value`, `verdict`, `source_url` and
`quote`. A row is accounted for if the design cites its source: as evidence of a term, as an open point, or as an
omission. A weight, divisor, scale, cap or discount must also be among the numbers of the design, or of the text with
the citation. The exit code is 1 if a row is not accounted for, or if a number differs.
"""

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchtrace_corpus.trace.rewards import Spec, load, published

NUMERIC_FIELDS = frozenset({"weight", "denominator", "scale", "cap", "discount"})


class Citation(NamedTuple):
    """A place in a design that cites a source.

    Attributes:
        place: `term NAME`, `open` or `omitted`.
        source: The address.
        quote: The words of the source.
        text: The sentence of the design.
    """

    place: str
    source: str
    quote: str
    text: str


def citations(spec: Spec) -> Iterator[Citation]:
    """Yield the places of a design that cite a source."""
    for term in spec.terms:
        for evidence in term.evidence:
            yield Citation(f"term {term.name}", evidence.source, evidence.quote, evidence.note)
        for point in term.open:
            yield Citation(f"open, {term.name}", point.source, point.quote, point.note)
    for point in spec.open:
        yield Citation("open", point.source, point.quote, point.note)
    for point in spec.omitted:
        yield Citation("omitted", point.source, point.quote, point.note)
    for vector in spec.vectors:
        yield Citation("test vector", vector.source, "", vector.note)


def numbers_of(spec: Spec) -> set[float]:
    """Return the absolute numbers of a design: weights, options, ramps and ranges."""
    numbers: set[float] = set()
    for term in spec.terms:
        numbers.add(abs(term.weight))
        numbers.update(map(abs, (*(term.ramp or ()), *(term.range or ()))))
        for value in term.options.values():
            if isinstance(value, float):
                numbers.add(abs(value))
            elif isinstance(value, Mapping):
                numbers.update(value.values())
    return numbers


def numbers_in(text: str) -> set[float]:
    """Return the absolute numbers that a text states."""
    return {float(match) for match in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", text)}


def find_citations(row: Mapping[str, str], spec: Spec) -> list[Citation]:
    """Return the places that cite the source of a row: the same address, the same paper, or the same file of code."""
    paper = re.match(r"arXiv (\d{4}\.\d{5})", row["source_url"])
    file, _, symbol = row["source_url"].partition(" (")  # the symbol is a function in the file
    places = []
    for citation in citations(spec):
        is_same_address = citation.source == row["source_url"]
        is_same_paper = paper is not None and paper[1] in citation.source
        cited_file, _, _ = citation.source.partition("#")
        if is_same_address or is_same_paper or (symbol and cited_file == file):
            places.append(citation)
    return places


def judge(row: Mapping[str, str], spec: Spec) -> str:
    """Return how a design accounts for a row, or a text that begins with `WRONG` or `MISSING`."""
    matches = find_citations(row, spec)
    if not matches:
        return "MISSING: no place of the design cites the source"
    with_quote = [citation for citation in matches if citation.quote == row["quote"]]
    if with_quote:
        matches = with_quote
    if row["field"] in NUMERIC_FIELDS:
        row_numbers = numbers_in(row["true_value"])
        design_numbers = numbers_of(spec).union(*(numbers_in(citation.text) for citation in matches))
        if row_numbers and not row_numbers & design_numbers:
            return f"WRONG: {row['true_value']!r} stands nowhere in the design"
    return ", ".join(dict.fromkeys(citation.place for citation in matches))


def main() -> int:
    """Compare; print a line for each row that is wrong or missing (with --rows, for each row), then the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readings", help="the table of readings, as CSV")
    parser.add_argument("--rows", action="store_true", help="print every row")
    arguments = parser.parse_args()
    specs = {name: load(name) for name in published()}
    totals: Counter[str] = Counter()
    with open(arguments.readings, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            outcome = judge(row, specs[row["design"]]) if row["design"] in specs else "MISSING: no such design"
            failed = outcome.startswith(("WRONG", "MISSING"))
            totals[outcome.split(":")[0] if failed else "accounted for"] += 1
            if failed or arguments.rows:
                print(f"{row['design']} {row['term']} {row['field']} ({row['verdict']}): {outcome}")
    unchecked = [name for name, spec in specs.items() if not spec.vectors]
    print(", ".join(f"{count} rows {outcome}" for outcome, count in sorted(totals.items())))
    print(f"{sum(len(spec.vectors) for spec in specs.values())} test vectors; none: {', '.join(unchecked) or '-'}")
    return 1 if totals["WRONG"] or totals["MISSING"] else 0


if __name__ == "__main__":
    sys.exit(main())
