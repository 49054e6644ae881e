"""The coverage of two axes: a heat map, and the names of what is empty or sparse."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, display_width, line, pad, wrap
from orchtrace_corpus.base.text.table import Table, envelope, markdown, markdown_text
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, Coverage
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, cells, crosstab_table, crosstab_title, heat

_PIPE_WIDTH = 80


def page(coverage: Coverage, width: int | None, glyphs: Glyphs = UNICODE) -> list[Line]:
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


def table(coverage: Coverage) -> Table:
    """Every cell of the matrix, as rows."""
    crosstab = coverage.crosstab
    rows = tuple(
        (row, column, number, _state(row, column, coverage))
        for row, numbers in cells(crosstab).items()
        for column, number in numbers.items()
    )
    columns = (crosstab.rows.name, crosstab.columns.name, "count", "state")
    return Table("cells", crosstab_title(crosstab), columns, rows)


def document(coverage: Coverage) -> str:
    """The matrix and its gaps as a document."""
    text = markdown(crosstab_table(coverage.crosstab)) + "\n"
    for name, gaps in (("Empty", coverage.empty), (f"Sparse (1 to {coverage.sparse_limit})", coverage.sparse)):
        pairs = [f"{markdown_text(row)} x {markdown_text(column)}" for row, column in gaps]
        text += f"- {name}: {', '.join(pairs) or 'none'}\n"
    return text


def data(coverage: Coverage) -> str:
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
    lines: list[Line] = [(Span(pad("", label_width) + " " + head, "muted"),)]
    for row, label in zip(crosstab.row_values, row_labels, strict=True):
        spans = []
        for column, width in zip(crosstab.column_values, widths, strict=True):
            number = crosstab.number(row, column)
            applies = {ABSENT, NOT_APPLICABLE}.isdisjoint((row, column))
            text = _heat_text(number, largest if applies and number > coverage.sparse_limit else 0, glyphs)
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


def _heat_text(number: int, largest: int, glyphs: Glyphs) -> str:
    """A count with a shade that grows with it, for terminals without colour; none without a scale."""
    if not number:
        return glyphs.empty
    dark, middle, light = glyphs.shades
    return f"{dict(zip((2, 3, 4), (light, middle, dark), strict=True)).get(heat(number, largest), '')}{number}"


def _state(row: str, column: str, coverage: Coverage) -> str:
    if (row, column) in coverage.empty or (row, column) in coverage.sparse:
        return "empty" if (row, column) in coverage.empty else "sparse"
    return "not applicable" if {row, column} & {ABSENT, NOT_APPLICABLE} else "covered"
