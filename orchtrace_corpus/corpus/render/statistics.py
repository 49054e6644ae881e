"""Statistics as tables, documents, JSON and CSV; the coverage of two axes as a heat map, with its gaps by name."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, display_width, line, pad, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Missing, Table, csv, envelope, markdown, markdown_text, records
from orchtrace_corpus.base.text.table import lines as table_lines
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage, EvidenceState, ListedTag
from orchtrace_corpus.corpus.analysis.statistics import (
    ABSENT,
    Counts,
    Coverage,
    Crosstab,
    Gap,
    LevelCounts,
    Summary,
    heat,
)
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import ReadingName

SOURCES_NOUN = "reading of the sources"
SOURCES_TITLE = SOURCES_NOUN.capitalize()
"""What heads a report on the tags that readers of the sources agree on."""

ABSENT_LABEL = Missing.ABSENT.value
"""How people see that a record has no value."""


def counts_tables(counts: Counts, published: Counts | None = None) -> list[Table]:
    """Counts by an attribute, and by family where terms share codes; beside those as published, if they are given."""
    name = counts.attribute.name
    terms = {term.id: term for term in counts.attribute.terms}
    has_codes = any(term.code for term in terms.values())
    rows: list[tuple[Cell, ...]] = []
    others = {} if published is None else published.counts
    # A value may occur in one reading only; those of a vocabulary keep its order.
    values = {value: None for value in terms if value in counts.counts or value in others} | counts.counts | others
    for value in values:
        term = terms.get(value)
        number = counts.counts.get(value, 0)
        code = ((term.code if term else "") or None,) if has_codes else ()
        beside = () if published is None else (others.get(value, 0),)
        rows.append((value or Missing.ABSENT, *code, number, _share(number, counts.total), *beside))
    further = () if published is None else (ReadingName.PUBLISHED.value,)
    title = counts.attribute.label if published is None else f"{counts.attribute.label}: {SOURCES_NOUN}"
    columns = (name, *(("code",) if has_codes else ()), "count", "share_percent", *further)
    notes: tuple[str, ...] = ()
    if sum(counts.counts.values()) > counts.total:
        notes = (f"A record with several values counts under each; {counts.total} records in all.",)
    tables = [Table(name, title, columns, tuple(rows), notes)]
    if counts.families:
        families = {} if published is None else published.families
        family_rows = tuple(
            (code, number, _share(number, counts.total), *((families[code],) if families else ()))
            for code, number in counts.families.items()
        )
        title = f"{counts.attribute.label}, by code"
        tables.append(Table(f"{name}_codes", title, ("code", "count", "share_percent", *further), family_rows))
    return tables


def levels_table(levels: LevelCounts) -> Table:
    """The terms of a facet of kind `levels`, by level."""
    facet = levels.facet
    ids = [level.id for level in facet.levels]
    has_codes = any(term.code for term in facet.terms)
    rows: list[tuple[Cell, ...]] = []
    for term in facet.terms:
        numbers = [levels.counts[term.id][level] for level in ids]
        rows.append((term.id, *((term.code,) if has_codes else ()), *numbers, levels.total - sum(numbers)))
    columns = (facet.field, *(("code",) if has_codes else ()), *ids, "absent")
    notes = ("absent: records that do not have the term.",)
    return Table(facet.field, f"{facet.label}, by level", columns, tuple(rows), notes)


def crosstab_table(crosstab: Crosstab) -> Table:
    """Two attributes against each other, with totals of records in the last column."""
    columns = tuple(value or ABSENT_LABEL for value in crosstab.column_values)
    rows: list[tuple[Cell, ...]] = []
    for row in crosstab.row_values:
        numbers = [crosstab.number(row, column) for column in crosstab.column_values]
        rows.append((row or Missing.ABSENT, *numbers, sum(numbers)))
    return Table(crosstab_name(crosstab), crosstab_title(crosstab), (crosstab.rows.name, *columns, "sum"), tuple(rows))


def crosstab_name(crosstab: Crosstab) -> str:
    """What programs call a cross-tabulation."""
    return f"{crosstab.rows.name}_by_{crosstab.columns.name}"


def crosstab_title(crosstab: Crosstab) -> str:
    """What people call a cross-tabulation."""
    return f"{crosstab.rows.label} by {crosstab.columns.label}"


def cells(crosstab: Crosstab) -> dict[str, dict[str, int]]:
    """The counts of a cross-tabulation by row, then by column, zeros included."""
    return {
        row: {column: crosstab.number(row, column) for column in crosstab.column_values} for row in crosstab.row_values
    }


def summary_tables(summary: Summary, published: Summary | None = None) -> list[Table]:
    """All published statistics, one table each; counts of tags beside those as published, if they are given."""
    beside = {counts.attribute.name: counts for counts in (() if published is None else published.facets)}
    tables = [
        table
        for counts in (*summary.axes, *summary.descriptions)
        for table in counts_tables(counts, beside.get(counts.attribute.name))
    ]
    tables += [levels_table(levels) for levels in summary.levels]
    tables += counts_tables(summary.years)
    tables += [crosstab_table(crosstab) for crosstab in summary.crosstabs]
    for counts in summary.exclusions:
        title = f"Exclusions: {counts.attribute.label}"
        tables.append(counts_tables(counts)[0]._replace(name=f"exclusion_{counts.attribute.name}", title=title))
    return [*tables, *([evidence_table(summary.evidence)] if summary.evidence else [])]


def evidence_table(rows: Sequence[EvidenceCoverage]) -> Table:
    """How far the tags of each sourced field are covered by evidence."""
    notes = (
        "Each tag other than NA counts once in primary, secondary or none, by its best source,",
        "and once in supported, partly, contradicted or none, by the evidence that supports it least.",
    )
    return Table("evidence", "Evidence for the tags", EvidenceCoverage._fields, tuple(rows), notes)


def evidence_data(rows: Sequence[EvidenceCoverage]) -> dict[str, dict[str, int]]:
    """The same for programs, by field."""
    return {row.field: dict(zip(row._fields[1:], row[1:], strict=True)) for row in rows}


def listed_table(state: EvidenceState, listed: Sequence[ListedTag]) -> Table:
    """The tags in a state of evidence: a row for each item that puts them there."""
    rows: list[tuple[Cell, ...]] = []
    for paper, field, items in listed:
        value = paper.tags[field]
        tag = value if isinstance(value, (str, tuple)) else tuple(f"{term} {level}" for term, level in value.items())
        rows += [(paper.key, field, tag, item.note, item.source) for item in items] or [(paper.key, field, tag, "", "")]
    return Table("tags", f"Tags: {state}", ("key", "field", "tag", "note", "source"), tuple(rows), whole="key")


def listed_json(state: EvidenceState, listed: Sequence[ListedTag]) -> str:
    """The same as a document for programs."""
    table = listed_table(state, listed)
    return envelope("evidence", {"state": state.value, "tags": records(table)})


def evidence_json(rows: Sequence[EvidenceCoverage]) -> str:
    """The same as a document for programs."""
    return envelope("evidence", {"evidence": evidence_data(rows)})


def summary_markdown(summary: Summary, title: str, published: Summary | None = None) -> str:
    """All statistics as a document; arguments as for `summary_tables`."""
    head = f"# {markdown_text(title)}\n\n{markdown_text(totals(summary))}\n"
    return "\n".join((head, *(markdown(table) for table in summary_tables(summary, published))))


def counts_json(tables: Sequence[Table], reading: ReadingName) -> str:
    """Counts by some fields for programs, with the reading that they are by."""
    return envelope("counts", {"reading": reading.value, **{table.name: records(table) for table in tables}})


def summary_json(summary: Summary, published: Summary | None = None) -> str:
    """All statistics for programs: every count by its term; absence counts under the empty string.

    Args:
        summary: The statistics.
        published: Those of the tags as published, where these are by the reading of the sources.
    """
    beside = {} if published is None else {counts.attribute.name: counts.counts for counts in published.facets}
    return envelope(
        "stats",
        {
            "reading": (ReadingName.PUBLISHED if published is None else ReadingName.SOURCES).value,
            "papers": summary.papers,
            "exclusions": summary.excluded,
            "records": None if summary.excluded is None else summary.papers + summary.excluded,
            "newest": summary.newest or None,
            "counts": {counts.attribute.name: counts.counts for counts in (*summary.facets, summary.years)},
            "codes": {counts.attribute.name: counts.families for counts in summary.facets if counts.families},
            "levels": {levels.facet.field: levels.counts for levels in summary.levels},
            "crosstabs": {crosstab_name(crosstab): cells(crosstab) for crosstab in summary.crosstabs},
            "exclusion_counts": {counts.attribute.name: counts.counts for counts in summary.exclusions},
            "evidence": evidence_data(summary.evidence),
            **({"published_counts": beside} if beside else {}),
        },
    )


def summary_csv(summary: Summary) -> str:
    """All statistics in one long table: statistic, value, second value of a pair, count."""
    rows: list[tuple[Cell, ...]] = [("papers", "", "", summary.papers)]
    if summary.excluded is not None:
        rows.append(("exclusions", "", "", summary.excluded))
    for counts in (*summary.facets, summary.years):
        rows += [(counts.attribute.name, value, "", number) for value, number in counts.counts.items()]
        rows += [(f"{counts.attribute.name}_codes", code, "", number) for code, number in counts.families.items()]
    pairs = [(levels.facet.field, levels.counts) for levels in summary.levels]
    pairs += [(crosstab_name(crosstab), cells(crosstab)) for crosstab in summary.crosstabs]
    pairs += [("evidence", evidence_data(summary.evidence))]
    for name, counted in pairs:
        rows += [(name, one, other, number) for one, numbers in counted.items() for other, number in numbers.items()]
    for counts in summary.exclusions:
        rows += [(f"exclusion_{counts.attribute.name}", value, "", number) for value, number in counts.counts.items()]
    return csv(("statistic", "value", "second_value", "count"), rows)


def totals(summary: Summary) -> str:
    """The head counts in words; records were audited where some were screened and left out."""
    papers = pluralize(summary.papers, "paper")
    if not summary.excluded:
        return papers
    exclusions = pluralize(summary.excluded, "exclusion")
    return f"{papers} and {exclusions}: {summary.papers + summary.excluded} audited records"


def _share(number: int, total: int) -> float:
    return round(100 * number / total, 1) if total else 0.0


_PIPE_WIDTH = 80
_MOST_GAPS = 8
_IMPOSSIBLE = "x"
_SUM = "sum"


def _coverage_title(coverage: Coverage) -> str:
    by = "" if coverage.reading is ReadingName.PUBLISHED else f": {SOURCES_NOUN}"
    return f"{crosstab_title(coverage.crosstab)}{by}"


def coverage_page(coverage: Coverage, width: int | None, glyphs: Glyphs = UNICODE, note: str = "") -> list[Line]:
    """The matrix of two axes as a heat map, its widest gaps with the papers near them, and a note at the foot."""
    crosstab = coverage.crosstab
    available = width or _PIPE_WIDTH
    title = f"{_coverage_title(coverage)}, {pluralize(crosstab.total, 'paper')}"
    lines: list[Line] = [line(title, "heading"), line()]
    matrix = _matrix(coverage, available, glyphs)
    lines += matrix
    if not matrix:
        too_wide = f"(the matrix is wider than {available} columns; try: corpus gaps "
        too_wide += f"{crosstab.columns.name} {crosstab.rows.name})"
        lines += [line(text, "muted") for text in wrap(too_wide, available)]
    lines += [line(), *(line(text, "heading") for text in wrap(coverage_summary(coverage), available))]
    for text in _unused_texts(coverage):
        lines += [line(part) for part in wrap(text, available, rest="  ")]
    shown = [gap for gap in coverage.gaps if round(gap.expected, 1) > gap.papers][:_MOST_GAPS]
    if shown:
        table = _gaps_table(coverage, [gap._replace(nearest=gap.nearest[:2]) for gap in shown])
        lines += [line(), *(line(text, "heading") for text in wrap(table.title, available))]
        lines += table_lines(table._replace(title=""), width, glyphs)
    return [*lines, *(line(text, "muted") for text in wrap(note, available) if note)]


def coverage_summary(coverage: Coverage) -> str:
    """How many cells can arise, and how many of them are empty or sparse."""
    possible = coverage.size - len(coverage.impossible)
    empty = f"{len(coverage.empty)} of {pluralize(possible, 'cell')} are empty"
    sparse = f"{len(coverage.sparse)} sparse (1{f' to {coverage.sparse_limit}' * (coverage.sparse_limit > 1)})"
    cannot = f"; {len(coverage.impossible)} more cannot arise" if coverage.impossible else ""
    return f"{empty}, {sparse}{cannot}"


def _unused_texts(coverage: Coverage) -> list[str]:
    axes = coverage.crosstab.rows, coverage.crosstab.columns
    named = [f"{axis.name} {', '.join(terms)}" for axis, terms in zip(axes, coverage.unused, strict=True) if terms]
    return [f"No paper at all: {'; '.join(named)}"] if named else []


def _gaps_table(coverage: Coverage, gaps: Sequence[Gap]) -> Table:
    crosstab = coverage.crosstab
    columns = (crosstab.rows.name, crosstab.columns.name, "papers", "expected", "nearest")
    rows = tuple((gap.row, gap.column, gap.papers, round(gap.expected, 1), ", ".join(gap.nearest)) for gap in gaps)
    others = len(coverage.gaps) - len(gaps)
    more = (f"{others:,} more empty or sparse cells: corpus gaps --format csv",) * bool(others)
    notes = ("expected: if both tags were independent; nearest: papers of the closest cells.", *more)
    title = "Furthest below the number expected from row and column totals"
    return Table("gaps", title, columns, rows, notes, wrapped="nearest")


def coverage_table(coverage: Coverage) -> Table:
    """Every cell of the matrix, as rows; with what to expect, and the nearest papers, of those empty or sparse."""
    crosstab = coverage.crosstab
    found = {(gap.row, gap.column): gap for gap in coverage.gaps}
    rows: list[tuple[Cell, ...]] = []
    for row, numbers in cells(crosstab).items():
        for column, number in numbers.items():
            gap = found.get((row, column))
            further = (round(gap.expected, 2), gap.nearest) if gap else (None, ())
            rows.append((row, column, number, _state(row, column, coverage), *further))
    columns = (crosstab.rows.name, crosstab.columns.name, "count", "state", "expected", "nearest")
    return Table("cells", _coverage_title(coverage), columns, tuple(rows))


def coverage_document(coverage: Coverage) -> str:
    """The matrix and its gaps as a document."""
    table = crosstab_table(coverage.crosstab)
    totals: tuple[Cell, ...] = (_SUM, *coverage.crosstab.column_totals.values())
    whole = sum(coverage.crosstab.row_totals.values())
    marked = tuple(
        (row[0], *(_mark(cell, pair, coverage) for cell, pair in zip(row[1:-1], pairs, strict=True)), row[-1])
        for row, pairs in zip(table.rows, _pairs(coverage.crosstab), strict=True)
    )
    notes = (f"{coverage_summary(coverage)}.", *(f"{text}." for text in _unused_texts(coverage)))
    notes += (f"{_IMPOSSIBLE}: cannot arise.",) * bool(coverage.impossible)
    text = markdown(table._replace(title=_coverage_title(coverage), rows=(*marked, (*totals, whole)), notes=notes))
    return "\n".join((text, markdown(_gaps_table(coverage, coverage.gaps))))


def _pairs(crosstab: Crosstab) -> list[list[tuple[str, str]]]:
    return [[(row, column) for column in crosstab.column_values] for row in crosstab.row_values]


def _mark(cell: Cell, pair: tuple[str, str], coverage: Coverage) -> Cell:
    return _IMPOSSIBLE if pair in coverage.impossible else cell


def coverage_json(coverage: Coverage) -> str:
    """The matrix and its gaps for programs."""
    crosstab = coverage.crosstab
    without = {*coverage.empty, *coverage.impossible}
    return envelope(
        "gaps",
        {
            "rows": crosstab.rows.name,
            "columns": crosstab.columns.name,
            "reading": coverage.reading.value,
            "papers": crosstab.total,
            "cells": cells(crosstab),
            "row_totals": crosstab.row_totals,
            "column_totals": crosstab.column_totals,
            "sparse_limit": coverage.sparse_limit,
            "empty": [list(cell) for row in _pairs(crosstab) for cell in row if cell in without],
            "sparse": [list(cell) for cell in coverage.sparse],
            "impossible": [list(cell) for cell in coverage.impossible],
            "gaps": [gap._replace(expected=round(gap.expected, 2))._asdict() for gap in coverage.gaps],
        },
    )


def _matrix(coverage: Coverage, width: int, glyphs: Glyphs) -> list[Line]:
    """The heat map with its legend; nothing where it is wider than the terminal, even with numbers as heads."""
    crosstab = coverage.crosstab
    row_labels = [row or ABSENT_LABEL for row in crosstab.row_values]
    heads = column_labels = [column or ABSENT_LABEL for column in crosstab.column_values]
    sums, whole = crosstab.row_totals, sum(crosstab.row_totals.values())
    label_width = max(display_width(label) for label in (*row_labels, _SUM))
    sum_width = max(len(str(whole)), len(_SUM)) + 1

    def needed(heads: Sequence[str]) -> int:
        return label_width + sum(max(display_width(head), 4) + 1 for head in heads) + sum_width

    is_numbered = needed(heads) > width
    if is_numbered:
        heads = [f"({index})" for index, _ in enumerate(column_labels, 1)]
        if needed(heads) > width:
            return []
    widths = [max(display_width(head), 4) for head in heads]
    # What does not apply is not part of the scale: it would dwarf the rest.
    regular = [count for cell, count in crosstab.cells.items() if {ABSENT, NOT_APPLICABLE}.isdisjoint(cell)]
    largest = max(regular, default=0)
    head = " ".join(pad(text, width, right=True) for text, width in zip(heads, widths, strict=True))
    shades = ("", "", *reversed(glyphs.shades))
    lines: list[Line] = [(Span(f"{pad('', label_width)} {head}{pad(_SUM, sum_width, right=True)}", "muted"),)]
    for pairs, label in zip(_pairs(crosstab), row_labels, strict=True):
        spans = []
        for pair, cell_width in zip(pairs, widths, strict=True):
            number = crosstab.number(*pair)
            applies = {ABSENT, NOT_APPLICABLE}.isdisjoint(pair)
            # For terminals without colour, a shade grows with the count.
            shade = shades[heat(number, largest)] if applies and number > coverage.sparse_limit else ""
            text = f"{shade}{number}" if number else str(_mark(glyphs.empty, pair, coverage))
            style = f"heat{heat(number, largest)}" if applies else "muted"
            spans += [Span(" "), Span(pad(text, cell_width, right=True), style)]
        total = Span(pad(str(sums[pairs[0][0]]), sum_width, right=True), "muted")
        lines.append((Span(pad(label, label_width)), *spans, total))
    totals = (f" {pad(str(n), w, right=True)}" for n, w in zip(crosstab.column_totals.values(), widths, strict=True))
    lines.append(line(f"{pad(_SUM, label_width)}{''.join(totals)}{pad(str(whole), sum_width, right=True)}", "muted"))
    legend = ("".join(reversed(glyphs.shades)) + ": second to fourth quarter of the largest count",) * any(
        glyph in span.text for row in lines for span in row for glyph in glyphs.shades
    )
    legend += (f"{_IMPOSSIBLE}: cannot arise",) * bool(coverage.impossible)
    legend += ("a paper with several tags counts under each",) * (whole > crosstab.total)
    lines += [line(text, "muted") for text in wrap(f"({'; '.join(legend)})", width) if legend]
    if is_numbered:
        # A zero byte stands for a blank that must not break.
        named = " ".join(f"{head}\0{label}" for head, label in zip(heads, column_labels, strict=True))
        lines += [line(), *(line(text.replace("\0", " "), "muted") for text in wrap(named, width))]
    return lines


def _state(row: str, column: str, coverage: Coverage) -> str:
    states = {"empty": coverage.empty, "sparse": coverage.sparse, "impossible": coverage.impossible}
    known = next((state for state, held in states.items() if (row, column) in held), "")
    return known or ("not applicable" if {row, column} & {ABSENT, NOT_APPLICABLE} else "covered")
