"""The coverage of two axes as a heat map with its gaps, as a document, as JSON and as CSV."""

from collections.abc import Sequence
from itertools import count, product

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.text import layout
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, display_width, line, pad, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Table, envelope
from orchtrace_corpus.base.text.table import lines as table_lines
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, NO_CELLS, Coverage, Crosstab, Gap, heat
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, SOURCES_NOUN, cells, crosstab_name, crosstab_title

_PIPE_WIDTH = 80
_MAX_GAPS = 8
_IMPOSSIBLE = "x"
_AWAITED = "those with both tags, ? by a reading of an open tag"
_SUM = "sum"


def _coverage_title(coverage: Coverage) -> str:
    title = crosstab_title(coverage.crosstab)
    return title if coverage.reading is ReadingName.PUBLISHED else f"{title}: {SOURCES_NOUN}"


def page(coverage: Coverage, width: int | None, glyphs: Glyphs = UNICODE, note: str = "") -> list[Line]:
    """Return the matrix of two axes as a heat map, its largest gaps with the nearest papers, and a note."""
    crosstab = coverage.crosstab
    available = width or _PIPE_WIDTH
    title = f"{_coverage_title(coverage)}, {coverage.noun.counted(crosstab.total)}"
    turned = f"corpus gaps {crosstab.columns.name} {crosstab.rows.name}"
    too_wide = f"(the matrix is wider than {available} columns; try: {turned})"
    matrix = _matrix(coverage, available, glyphs) or [line(text, "muted") for text in wrap(too_wide, available)]
    sizes = [line(text, "heading") for text in wrap(summary(coverage), available)]
    for text in _reasons(coverage):
        sizes += [line(part) for part in wrap(text, available, rest="  ")]
    if coverage.candidates is None:
        shown = [gap for gap in coverage.gaps if round(gap.expected, 1) > gap.papers][:_MAX_GAPS]
    else:
        shown = [gap for gap in coverage.gaps if gap[:2] in coverage.candidates]
    gaps: list[Line] = []
    if shown:
        table = _gaps_table(coverage, [gap._replace(nearest=gap.nearest[:2]) for gap in shown])
        gaps += [line(text, "heading") for text in wrap(table.title, available)]
        gaps += table_lines(table._replace(title=""), width, glyphs)
    lines = layout.separated([[line(title, "heading")], matrix, sizes, gaps])
    return [*lines, *(line(text, "muted") for text in wrap(note, available) if note)]


def summary(coverage: Coverage) -> str:
    """Return how many cells can arise, and how many of them are empty or sparse."""
    possible = coverage.size - len(coverage.impossible)
    empty = f"{len(coverage.empty)} of {pluralize(possible, 'cell')} are empty"
    sparse = f"{len(coverage.sparse)} sparse (1{f' to {coverage.sparse_limit}' * (coverage.sparse_limit > 1)})"
    cannot = f"; {len(coverage.impossible)} more cannot arise" if coverage.impossible else ""
    return f"{empty}, {sparse}{cannot}"


def _reasons(coverage: Coverage) -> list[str]:
    """Return the terms that no paper has at all, and why some cells cannot arise."""
    axes, (rows, columns) = (coverage.crosstab.rows, coverage.crosstab.columns), coverage.unused
    unused = [f"{axis.name} {', '.join(terms)}" for axis, terms in zip(axes, (rows, columns), strict=True) if terms]
    number = sum(row in rows or column in columns for row, column in coverage.empty)
    texts = [f"No {coverage.noun.one} at all: {'; '.join(unused)} ({number} of the empty cells)"] if unused else []
    return [*texts, *(f"Cannot arise: {reason}" for reason in coverage.reasons)]


def _gaps_table(coverage: Coverage, gaps: Sequence[Gap]) -> Table:
    crosstab = coverage.crosstab
    last, meaning = "candidates", _AWAITED
    if coverage.candidates is None:
        last, meaning = "nearest", f"{coverage.noun.many} of the closest cells"
    columns = (crosstab.rows.name, crosstab.columns.name, coverage.noun.many, "expected", last)
    keys = (gap.nearest if coverage.candidates is None else coverage.candidates.get(gap[:2], ()) for gap in gaps)
    rows = tuple((*gap[:3], round(gap.expected, 1), ", ".join(named)) for gap, named in zip(gaps, keys, strict=True))
    others = len(coverage.gaps) - len(gaps)
    more = (f"{others:,} more empty or sparse cells; --format csv lists all",) * bool(others)
    notes = (f"expected: if both tags were independent; {last}: {meaning}.", *more)
    title = "Furthest below the number expected from the sums of rows and columns"
    return Table("gaps", title, columns, rows, notes, wrapped=last)


def table(coverage: Coverage) -> Table:
    """Return every cell of the matrix as a row; of gaps, with the expected count and the nearest papers."""
    crosstab = coverage.crosstab
    gaps = {(gap.row, gap.column): gap for gap in coverage.gaps}
    states = dict.fromkeys(coverage.empty, "empty")
    states |= dict.fromkeys(coverage.sparse, "sparse") | dict.fromkeys(coverage.impossible, "impossible")
    columns = [crosstab.rows.name, crosstab.columns.name, "count", "state", "expected", "nearest"]
    rows: list[tuple[Cell, ...]] = []
    for pair in product(crosstab.row_values, crosstab.column_values):
        gap = gaps.get(pair)
        expected: tuple[Cell, ...] = (round(gap.expected, 2), gap.nearest) if gap else (None, ())
        state = states.get(pair, "covered") if NO_CELLS.isdisjoint(pair) else "not applicable"
        candidates = () if coverage.candidates is None else (coverage.candidates.get(pair, ()),)
        rows.append((*pair, crosstab.count_in(*pair), state, *expected, *candidates))
    columns += [] if coverage.candidates is None else ["candidates"]
    return Table("cells", _coverage_title(coverage), tuple(columns), tuple(rows))


def document(coverage: Coverage) -> tuple[Table, Table]:
    """Return the matrix and its gaps for a document."""
    crosstab = coverage.crosstab
    rows = tuple(
        (_head(pairs[0][0]), *(_mark(_number(pair, crosstab), pair, coverage) for pair in pairs))
        for pairs in _pairs(crosstab)
    )
    notes = (f"{summary(coverage)}.", *(f"{text.removesuffix('.')}." for text in _reasons(coverage)))
    notes += tuple(f"{text}." for text in _legend(coverage))
    columns = (crosstab.rows.name, *map(_head, _in_order(crosstab.column_values)))
    matrix = Table(crosstab_name(crosstab), _coverage_title(coverage), columns, rows, notes)
    return matrix, _gaps_table(coverage, coverage.gaps)


_Pair: TypeAlias = tuple[str | None, str | None]
"""A cell of the matrix: its row and its column, None for the sum."""


def _in_order(values: Sequence[str]) -> list[str | None]:
    """Return the values, None for their sum, then the values that do not apply, which the sum omits."""
    aside = [value for value in values if value in NO_CELLS]
    return [*(value for value in values if value not in aside), None, *aside]


def _pairs(crosstab: Crosstab) -> list[list[_Pair]]:
    columns = _in_order(crosstab.column_values)
    return [[(row, column) for column in columns] for row in _in_order(crosstab.row_values)]


def _number(pair: _Pair, crosstab: Crosstab) -> int:
    """Return the number of papers in a cell, or in the cells of a sum."""
    row, column = pair
    rows = [row] if row is not None else [value for value in crosstab.row_values if value not in NO_CELLS]
    columns = [column] if column is not None else [value for value in crosstab.column_values if value not in NO_CELLS]
    return sum(crosstab.count_in(row, column) for row in rows for column in columns)


def _head(value: str | None) -> str:
    return _SUM if value is None else value or ABSENT_LABEL


def _mark(cell: Cell, pair: _Pair, coverage: Coverage) -> Cell:
    """Return the text of a cell: the sign that it cannot arise, or its number, marked if candidates would fill it."""
    if pair in coverage.impossible:
        return _IMPOSSIBLE
    named = (coverage.candidates or {}).get(pair, ()) if pair in coverage.empty else ()
    return f"{cell}{'?' if named[0].endswith('?') else '+'}" if named else cell


def _legend(coverage: Coverage) -> list[str]:
    """Return the meaning of the marks of the matrix, and the values that its sums omit."""
    crosstab = coverage.crosstab
    aside = [value for value in (NOT_APPLICABLE, ABSENT) if value in {*crosstab.row_values, *crosstab.column_values}]
    marks = [f"{_IMPOSSIBLE}: cannot arise"] * bool(coverage.impossible)
    marks += ["+ and ?: candidates would fill it, or could"] * bool(coverage.candidates)
    return [*marks, *([f"sums without {' and '.join(map(_head, aside))}"] if aside else [])]


def json(coverage: Coverage) -> str:
    """Return the matrix and its gaps for programs."""
    crosstab = coverage.crosstab
    without, candidates = {*coverage.empty, *coverage.impossible}, coverage.candidates or {}
    awaiting = [{"row": row, "column": column, "keys": keys} for (row, column), keys in candidates.items()]
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
            "empty": [cell for row in _pairs(crosstab) for cell in row if cell in without],
            "sparse": coverage.sparse,
            "impossible": coverage.impossible,
            "gaps": [gap._replace(expected=round(gap.expected, 2))._asdict() for gap in coverage.gaps],
            **({} if coverage.candidates is None else {"candidates": awaiting}),
        },
    )


def _matrix(coverage: Coverage, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the heat map with its legend; empty if it is too wide, even with numbers as heads of columns."""
    crosstab = coverage.crosstab
    columns = _in_order(crosstab.column_values)
    heads = labels = [_head(column) for column in columns]
    label_width = max(display_width(_head(row)) for row in _in_order(crosstab.row_values))
    largest = crosstab.largest
    narrowest = max(4, len(str(sum(crosstab.cells.values()))))
    is_numbered = label_width + sum(max(display_width(head), narrowest) + 1 for head in heads) > width
    if is_numbered:
        numbers = count(1)
        heads = [_SUM if column is None else f"({next(numbers)})" for column in columns]
    widths = [max(display_width(head), narrowest) for head in heads]
    if label_width + sum(widths) + len(widths) > width:
        return []
    head = " ".join(pad(text, width, right=True) for text, width in zip(heads, widths, strict=True))
    shades = ("", "", *reversed(glyphs.shades))
    used = set()
    lines: list[Line] = [line(f"{pad('', label_width)} {head}", "muted")]
    for pairs in _pairs(crosstab):
        spans = [Span(pad(_head(pairs[0][0]), label_width))]
        for pair, cell_width in zip(pairs, widths, strict=True):
            number, style, shade = _number(pair, crosstab), "muted", ""  # shades are for terminals without colour
            if None not in pair and NO_CELLS.isdisjoint(pair):
                style = f"heat{heat(number, largest)}"
                shade = shades[heat(number, largest)] if number > coverage.sparse_limit else ""
            used.add(shade)
            empty = "0" if None in pair else glyphs.empty
            text = f"{shade}{number}" if number else str(_mark(empty, pair, coverage))
            spans += [Span(" "), Span(pad(text, cell_width, right=True), style)]
        lines.append(tuple(spans))
    legend = _legend(coverage)
    if used - {""}:
        legend.insert(0, f"{''.join(reversed(glyphs.shades))}: second to fourth quarter of the largest count")
    if sum(crosstab.cells.values()) > crosstab.total:
        legend.append(f"{coverage.noun.with_article} with several tags counts under each")
    if legend:
        lines += [line(text, "muted") for text in wrap(f"({'; '.join(legend)})", width)]
    if is_numbered:
        meanings = " ".join(
            f"{head}{layout.NO_BREAK}{label}" for head, label in zip(heads, labels, strict=True) if label != _SUM
        )
        lines += [line(), *(line(text, "muted") for text in wrap(meanings, width))]
    return lines
