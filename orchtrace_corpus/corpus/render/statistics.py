"""Statistics as tables, documents, JSON and CSV; the coverage of two axes as a heat map, with its gaps by name."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, display_width, line, pad, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Missing, Table, csv, envelope, markdown, markdown_text, records
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage, EvidenceState, ListedTag
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, Counts, Coverage, Crosstab, LevelCounts, Summary
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


def heat(number: int, largest: int) -> int:
    """0 for nothing, else the quarter of the scale, 1 to 4, that the count falls in."""
    return min(4, 1 + (number - 1) * 4 // largest) if number and largest else 0


_PIPE_WIDTH = 80


def coverage_page(coverage: Coverage, width: int | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """The matrix of two axes as a heat map, readable without colour, and its gaps by name."""
    crosstab = coverage.crosstab
    row_labels = [row or ABSENT_LABEL for row in crosstab.row_values]
    column_labels = [column or ABSENT_LABEL for column in crosstab.column_values]
    label_width = max((display_width(label) for label in (*row_labels, crosstab.rows.name)), default=0)
    lines: list[Line] = [line(f"{crosstab_title(crosstab)}, {crosstab.total} papers", "heading"), line()]
    needed = sum(max(display_width(label), 4) + 1 for label in column_labels)
    numbered = width is not None and label_width + 1 + needed > width
    heads = [f"({index})" for index, _ in enumerate(column_labels, 1)] if numbered else column_labels
    widths = [max(display_width(head), 4) for head in heads]
    if width is not None and label_width + sum(w + 1 for w in widths) > width:
        needed = label_width + sum(w + 1 for w in widths)
        too_wide = f"(the matrix needs {needed} columns; try the axes the other way round)"
        lines += [line(text, "muted") for text in wrap(too_wide, width)]
        numbered = False
    else:
        lines += _matrix(coverage, row_labels, heads, label_width, widths, glyphs)
        shades = "".join(reversed(glyphs.shades))
        if any(glyph in span.text for row in lines for span in row for glyph in shades):
            lines.append(line(f"({shades}: second to fourth quarter of the largest count)", "muted"))
    if numbered:
        # A zero byte stands for a blank that must not break.
        legend = " ".join(f"{head}\0{label}" for head, label in zip(heads, column_labels, strict=True))
        lines += [line(), *(line(text.replace("\0", " "), "muted") for text in wrap(legend, width or _PIPE_WIDTH))]
    named_width = width or _PIPE_WIDTH
    lines += [line(), *_cell_list("Empty", coverage.empty, coverage, named_width)]
    if coverage.sparse:
        limit = coverage.sparse_limit
        head = f"Sparse (1 to {limit})" if limit > 1 else "Sparse (1)"
        lines += _cell_list(head, coverage.sparse, coverage, named_width)
    return lines


def coverage_table(coverage: Coverage) -> Table:
    """Every cell of the matrix, as rows."""
    crosstab = coverage.crosstab
    rows = tuple(
        (row, column, number, _state(row, column, coverage))
        for row, numbers in cells(crosstab).items()
        for column, number in numbers.items()
    )
    columns = (crosstab.rows.name, crosstab.columns.name, "count", "state")
    return Table("cells", crosstab_title(crosstab), columns, rows)


def coverage_document(coverage: Coverage) -> str:
    """The matrix and its gaps as a document."""
    text = markdown(crosstab_table(coverage.crosstab)) + "\n"
    for name, gaps in (("Empty", coverage.empty), (f"Sparse (1 to {coverage.sparse_limit})", coverage.sparse)):
        pairs = [f"{markdown_text(row)} x {markdown_text(column)}" for row, column in gaps]
        text += f"- {name}: {', '.join(pairs) or 'none'}\n"
    return text


def coverage_json(coverage: Coverage) -> str:
    """The matrix and its gaps for programs."""
    crosstab = coverage.crosstab
    return envelope(
        "gaps",
        {
            "rows": crosstab.rows.name,
            "columns": crosstab.columns.name,
            "papers": crosstab.total,
            "cells": cells(crosstab),
            "sparse_limit": coverage.sparse_limit,
            "empty": [list(cell) for cell in coverage.empty],
            "sparse": [list(cell) for cell in coverage.sparse],
        },
    )


def _matrix(
    coverage: Coverage,
    row_labels: Sequence[str],
    heads: Sequence[str],
    label_width: int,
    widths: Sequence[int],
    glyphs: Glyphs,
) -> list[Line]:
    crosstab = coverage.crosstab
    # What does not apply is no part of the scale: it would dwarf the rest.
    regular = [count for cell, count in crosstab.cells.items() if {ABSENT, NOT_APPLICABLE}.isdisjoint(cell)]
    largest = max(regular, default=0)
    head = " ".join(pad(text, width, right=True) for text, width in zip(heads, widths, strict=True))
    shades = ("", "", *reversed(glyphs.shades))
    lines: list[Line] = [(Span(pad("", label_width) + " " + head, "muted"),)]
    for row, label in zip(crosstab.row_values, row_labels, strict=True):
        spans = []
        for column, width in zip(crosstab.column_values, widths, strict=True):
            number = crosstab.number(row, column)
            applies = {ABSENT, NOT_APPLICABLE}.isdisjoint((row, column))
            # For terminals without colour, a shade grows with the count.
            shade = shades[heat(number, largest)] if applies and number > coverage.sparse_limit else ""
            text = f"{shade}{number}" if number else glyphs.empty
            style = f"heat{heat(number, largest)}" if applies else "muted"
            spans += [Span(" "), Span(pad(text, width, right=True), style)]
        lines.append((Span(pad(label, label_width)), *spans))
    return lines


def _cell_list(name: str, gaps: Sequence[tuple[str, str]], coverage: Coverage, width: int) -> list[Line]:
    lines: list[Line] = [line(f"{name}: {len(gaps)} of {coverage.size} cells", "heading")]
    by_row: dict[str, list[str]] = {}
    for row, column in gaps:
        by_row.setdefault(row, []).append(column)
    label_width = max((display_width(row) for row in by_row), default=0) + 4
    all_columns = [c for c in coverage.crosstab.column_values if c not in (ABSENT, NOT_APPLICABLE)]
    for row, columns in by_row.items():
        text = "all" if columns == all_columns else ", ".join(columns)
        lines += [line(part) for part in wrap(text, width, first=pad(f"  {row}", label_width), rest=" " * label_width)]
    return lines


def _state(row: str, column: str, coverage: Coverage) -> str:
    if (row, column) in coverage.empty or (row, column) in coverage.sparse:
        return "empty" if (row, column) in coverage.empty else "sparse"
    return "not applicable" if {row, column} & {ABSENT, NOT_APPLICABLE} else "covered"
