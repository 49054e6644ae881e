"""The coverage of two axes as a heat map with its gaps, as a document, as JSON and as CSV."""

from collections.abc import Sequence
from itertools import count, product

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.text import layout
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, display_width, line, pad, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Table, envelope
from orchtrace_corpus.base.text.table import lines as table_lines
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, MISSING, Coverage, Crosstab, Gap, heat
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, SOURCES_NOUN, cells, crosstab_name, crosstab_title

_PIPE_WIDTH = 80
_MAX_GAPS = 8
_IMPOSSIBLE = "x"
_CANDIDATES_NOTE = "those with both tags, ? by a reading of an open tag"
_SUM = "sum"


def _coverage_title(coverage: Coverage) -> str:
    title = crosstab_title(coverage.crosstab)
    return title if coverage.reading is ReadingName.PUBLISHED else f"{title}: {SOURCES_NOUN}"


def page(coverage: Coverage, width: int | None, glyphs: Glyphs = UNICODE, note: str = "") -> list[Line]:
    """Return the matrix of two axes as a heat map, its largest gaps with the nearest papers, and a note."""
    crosstab = coverage.crosstab
    available = width or _PIPE_WIDTH
    title = f"{_coverage_title(coverage)}, {coverage.noun.counted(crosstab.total)}"
    matrix = _matrix(coverage, available, glyphs)
    if not matrix:
        transposed = f"corpus gaps {crosstab.columns.name} {crosstab.rows.name}"
        too_wide = f"(the matrix is wider than {available} columns; try: {transposed})"
        matrix = [line(text, "muted") for text in wrap(too_wide, available)]
    sizes = [line(text, "heading") for text in wrap(summary(coverage), available)]
    for text in _reasons(coverage):
        sizes += [line(part) for part in wrap(text, available, rest="  ")]
    if coverage.candidates is None:
        listed = [gap for gap in coverage.gaps if round(gap.expected, 1) > gap.papers][:_MAX_GAPS]
    else:
        listed = [gap for gap in coverage.gaps if (gap.row, gap.column) in coverage.candidates]
    gaps: list[Line] = []
    if listed:
        table = _gaps_table(coverage, [gap._replace(nearest=gap.nearest[:2]) for gap in listed])
        gaps += [line(text, "heading") for text in wrap(table.title, available)]
        gaps += table_lines(table._replace(title=""), width, glyphs)
    lines = layout.separated([[line(title, "heading")], matrix, sizes, gaps])
    if note:
        lines += [line(text, "muted") for text in wrap(note, available)]
    return lines


def summary(coverage: Coverage) -> str:
    """Return how many cells can arise, and how many of them are empty or sparse."""
    possible = coverage.size - len(coverage.impossible)
    empty = f"{len(coverage.empty)} of {pluralize(possible, 'cell')} are empty"
    sparse_counts = f"1 to {coverage.sparse_limit}" if coverage.sparse_limit > 1 else "1"
    text = f"{empty}, {len(coverage.sparse)} sparse ({sparse_counts})"
    return f"{text}; {len(coverage.impossible)} more cannot arise" if coverage.impossible else text


def _reasons(coverage: Coverage) -> list[str]:
    """Return sentences on the terms that no paper has at all, and on why some cells cannot arise."""
    unused_rows, unused_columns = coverage.unused
    unused = []
    if unused_rows:
        unused.append(f"{coverage.crosstab.rows.name} {', '.join(unused_rows)}")
    if unused_columns:
        unused.append(f"{coverage.crosstab.columns.name} {', '.join(unused_columns)}")
    sentences = []
    if unused:
        count = sum(row in unused_rows or column in unused_columns for row, column in coverage.empty)
        sentences.append(f"No {coverage.noun.one} at all: {'; '.join(unused)} ({count} of the empty cells)")
    return [*sentences, *(f"Cannot arise: {reason}" for reason in coverage.reasons)]


def _gaps_table(coverage: Coverage, gaps: Sequence[Gap]) -> Table:
    """Return gaps with the candidates that would fill them, or with the nearest papers if no candidates are given."""
    crosstab, candidates = coverage.crosstab, coverage.candidates
    last_column, meaning = "candidates", _CANDIDATES_NOTE
    if candidates is None:
        last_column, meaning = "nearest", f"{coverage.noun.many} of the closest cells"
    columns = (crosstab.rows.name, crosstab.columns.name, coverage.noun.many, "expected", last_column)
    rows = []
    for gap in gaps:
        keys = gap.nearest if candidates is None else candidates.get((gap.row, gap.column), ())
        rows.append((gap.row, gap.column, gap.papers, round(gap.expected, 1), ", ".join(keys)))
    notes = [f"expected: if both tags were independent; {last_column}: {meaning}."]
    others = len(coverage.gaps) - len(gaps)
    if others:
        notes.append(f"{others:,} more empty or sparse cells; --format csv lists all")
    title = "Furthest below the number expected from the sums of rows and columns"
    return Table("gaps", title, columns, tuple(rows), tuple(notes), wrapped=last_column)


def table(coverage: Coverage) -> Table:
    """Return every cell of the matrix as a row; gaps have the expected count and the nearest papers."""
    crosstab = coverage.crosstab
    gaps = {(gap.row, gap.column): gap for gap in coverage.gaps}
    states = dict.fromkeys(coverage.empty, "empty")
    states |= dict.fromkeys(coverage.sparse, "sparse") | dict.fromkeys(coverage.impossible, "impossible")
    columns = [crosstab.rows.name, crosstab.columns.name, "count", "state", "expected", "nearest"]
    if coverage.candidates is not None:
        columns.append("candidates")
    rows = []
    for pair in product(crosstab.row_values, crosstab.column_values):
        gap = gaps.get(pair)
        state = states.get(pair, "covered") if MISSING.isdisjoint(pair) else "not applicable"
        row: list[Cell] = [*pair, crosstab.count_in(*pair), state]
        row += (round(gap.expected, 2), gap.nearest) if gap else (None, ())
        if coverage.candidates is not None:
            row.append(coverage.candidates.get(pair, ()))
        rows.append(tuple(row))
    return Table("cells", _coverage_title(coverage), tuple(columns), tuple(rows))


def document(coverage: Coverage) -> tuple[Table, Table]:
    """Return the matrix and its gaps for a document."""
    crosstab = coverage.crosstab
    columns = _in_order(crosstab.column_values)
    rows = []
    for row in _in_order(crosstab.row_values):
        cells = [_mark(_cell_count((row, column), crosstab), (row, column), coverage) for column in columns]
        rows.append((_heading(row), *cells))
    notes = (f"{summary(coverage)}.", *(f"{text.removesuffix('.')}." for text in _reasons(coverage)))
    notes += tuple(f"{text}." for text in _legend(coverage))
    headings = (crosstab.rows.name, *map(_heading, columns))
    matrix = Table(crosstab_name(crosstab), _coverage_title(coverage), headings, tuple(rows), notes)
    return matrix, _gaps_table(coverage, coverage.gaps)


_Pair: TypeAlias = tuple[str | None, str | None]
"""The row and the column of a cell of the matrix; None for a sum."""


def _in_order(values: Sequence[str]) -> list[str | None]:
    """Return the values in the order of the matrix: None stands for their sum, and what it omits comes after it."""
    omitted = [value for value in values if value in MISSING]
    return [*(value for value in values if value not in omitted), None, *omitted]


def _cell_count(pair: _Pair, crosstab: Crosstab) -> int:
    """Return the number of papers in a cell, or in the cells of a sum."""
    row, column = pair
    rows = [row] if row is not None else [value for value in crosstab.row_values if value not in MISSING]
    columns = [column] if column is not None else [value for value in crosstab.column_values if value not in MISSING]
    return sum(crosstab.count_in(row, column) for row in rows for column in columns)


def _heading(value: str | None) -> str:
    return _SUM if value is None else value or ABSENT_LABEL


def _mark(cell: Cell, pair: _Pair, coverage: Coverage) -> Cell:
    """Return the text of a cell: a cross if it cannot arise, or its count, marked if candidates would fill it."""
    if pair in coverage.impossible:
        return _IMPOSSIBLE
    if pair not in coverage.empty or coverage.candidates is None or pair not in coverage.candidates:
        return cell
    first = coverage.candidates[pair][0]  # without a question mark, if any candidate has none
    return f"{cell}?" if first.endswith("?") else f"{cell}+"


def _legend(coverage: Coverage) -> list[str]:
    """Return the meaning of the marks of the matrix, and the values that its sums omit."""
    crosstab = coverage.crosstab
    omitted = [value for value in (NOT_APPLICABLE, ABSENT) if value in (*crosstab.row_values, *crosstab.column_values)]
    legend = []
    if coverage.impossible:
        legend.append(f"{_IMPOSSIBLE}: cannot arise")
    if coverage.candidates:
        legend.append("+ and ?: candidates would fill it, or could")
    if omitted:
        legend.append(f"sums without {' and '.join(map(_heading, omitted))}")
    return legend


def json(coverage: Coverage) -> str:
    """Return the matrix and its gaps as JSON."""
    crosstab = coverage.crosstab
    without_papers = {*coverage.empty, *coverage.impossible}
    pairs = product(_in_order(crosstab.row_values), _in_order(crosstab.column_values))
    data: dict[str, object] = {
        "rows": crosstab.rows.name,
        "columns": crosstab.columns.name,
        "reading": coverage.reading.value,
        "papers": crosstab.total,
        "cells": cells(crosstab),
        "row_totals": crosstab.row_totals,
        "column_totals": crosstab.column_totals,
        "sparse_limit": coverage.sparse_limit,
        "empty": [pair for pair in pairs if pair in without_papers],
        "sparse": coverage.sparse,
        "impossible": coverage.impossible,
        "gaps": [gap._replace(expected=round(gap.expected, 2))._asdict() for gap in coverage.gaps],
    }
    if coverage.candidates is not None:
        candidates = coverage.candidates.items()
        data["candidates"] = [{"row": row, "column": column, "keys": keys} for (row, column), keys in candidates]
    return envelope("gaps", data)


def _matrix(coverage: Coverage, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the heat map with its legend; empty if it is too wide, even with numbers as headings of columns."""
    crosstab = coverage.crosstab
    columns = _in_order(crosstab.column_values)
    labels = [_heading(column) for column in columns]
    headings = labels
    label_width = max(display_width(_heading(row)) for row in _in_order(crosstab.row_values))
    narrowest = max(4, len(str(sum(crosstab.cells.values()))))
    is_numbered = label_width + sum(max(display_width(label), narrowest) + 1 for label in labels) > width
    if is_numbered:
        numbers = count(1)
        headings = [_SUM if column is None else f"({next(numbers)})" for column in columns]
    widths = [max(display_width(heading), narrowest) for heading in headings]
    if label_width + sum(widths) + len(widths) > width:
        return []
    heading_line = " ".join(pad(text, width, right=True) for text, width in zip(headings, widths, strict=True))
    lines: list[Line] = [line(f"{pad('', label_width)} {heading_line}", "muted")]
    shades = ("", "", *reversed(glyphs.shades))  # by quarter, for terminals without colour
    has_shades = False
    for row in _in_order(crosstab.row_values):
        spans = [Span(pad(_heading(row), label_width))]
        for column, cell_width in zip(columns, widths, strict=True):
            pair = (row, column)
            papers = _cell_count(pair, crosstab)
            is_sum = None in pair
            style, shade = "muted", ""
            if not is_sum and MISSING.isdisjoint(pair):
                quarter = heat(papers, crosstab.largest)
                style = f"heat{quarter}"
                if papers > coverage.sparse_limit:
                    shade = shades[quarter]
            has_shades = has_shades or shade != ""
            empty = "0" if is_sum else glyphs.empty
            text = f"{shade}{papers}" if papers else str(_mark(empty, pair, coverage))
            spans += [Span(" "), Span(pad(text, cell_width, right=True), style)]
        lines.append(tuple(spans))
    legend = _legend(coverage)
    if has_shades:
        legend.insert(0, f"{''.join(reversed(glyphs.shades))}: second to fourth quarter of the largest count")
    if sum(crosstab.cells.values()) > crosstab.total:
        legend.append(f"{coverage.noun.with_article} with several tags counts under each")
    if legend:
        lines += [line(text, "muted") for text in wrap(f"({'; '.join(legend)})", width)]
    if is_numbered:
        pairs = [(heading, label) for heading, label in zip(headings, labels, strict=True) if label != _SUM]
        meanings = " ".join(f"{heading}{layout.NO_BREAK}{label}" for heading, label in pairs)
        lines += [line(), *(line(text, "muted") for text in wrap(meanings, width))]
    return lines
