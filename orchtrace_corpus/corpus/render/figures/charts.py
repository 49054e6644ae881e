"""Figures in rows: two axes against each other, the papers by year, and the terms of a facet as bars."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from orchtrace_corpus.base.text.drawing import SERIES, SIZE, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, count, cross, heat
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.taxonomy import Role
from orchtrace_corpus.corpus.render.figures.plan import SPARSE_LIMIT, Caption, Figure, Source, called
from orchtrace_corpus.corpus.render.figures.sheet import (
    BASE,
    HATCHED,
    MARGIN,
    WIDTH,
    finish,
    head,
    label,
    label_width,
    legend,
)

_ROW = 30.0
_CELL = 34.0
_LARGEST_CELL = 48.0
_HEAD_WIDTH = 118.0
_SLANT = 0.7071  # of a label turned by 45 degrees, what it takes of the width and of the height
_BAR = 56.0
_SHADES = 4
_YEARS = 8


class _Matrix(NamedTuple):
    """Counts by row and column, with the numbers of papers in each row and in each column."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    row_totals: tuple[int, ...]
    column_totals: tuple[int, ...]
    aside_rows: frozenset[int] = frozenset()
    aside_columns: frozenset[int] = frozenset()
    noun: str = "papers"

    def largest(self) -> int:
        """The largest count in a cell that is not set aside."""
        rows = [numbers for row, numbers in enumerate(self.cells) if row not in self.aside_rows]
        columns = [column for column in range(len(self.columns)) if column not in self.aside_columns]
        return max((numbers[column] for numbers in rows for column in columns), default=0)


def draw_coverage(figure: Figure, caption: Caption, source: Source) -> str:
    """The first pair of fields that the taxonomy crosses, as a heat map with the papers of each row and column.

    What does not apply is set aside, without a shade: it would dwarf the rest.
    """
    crosstab = source.summary.crosstabs[0]
    rows, columns = crosstab.row_values, crosstab.column_values
    aside = {ABSENT, NOT_APPLICABLE}
    by_row = count(source.pool.papers, crosstab.rows).counts
    by_column = count(source.pool.papers, crosstab.columns).counts
    matrix = _Matrix(
        tuple(called(row, crosstab.rows.terms) for row in rows),
        tuple(called(column, crosstab.columns.terms) for column in columns),
        tuple(tuple(crosstab.number(row, column) for column in columns) for row in rows),
        tuple(by_row.get(row, 0) for row in rows),
        tuple(by_column.get(column, 0) for column in columns),
        frozenset(index for index, row in enumerate(rows) if row in aside),
        frozenset(index for index, column in enumerate(columns) if column in aside),
        source.pool.taxonomy.noun.many,
    )
    return _draw(figure.name, caption, matrix)


def draw_years(figure: Figure, caption: Caption, source: Source) -> str:
    """The papers of the last years, one column each, and of all years before, by the sections of the list."""
    taxonomy = source.pool.taxonomy
    attributes = paper_attributes(taxonomy)
    by_year = {int(year): number for year, number in source.summary.years.counts.items() if year}
    spans = _spans(sorted(by_year))
    titles = tuple(str(first) if first == last else f"{first} to {last}" for first, last in spans)
    totals = tuple(sum(by_year.get(year, 0) for year in range(first, last + 1)) for first, last in spans)
    section = taxonomy.section
    if section is None:
        return _draw(figure.name, caption, _Matrix((), titles, (), (), totals, noun=taxonomy.noun.many), bars=True)
    crosstab = cross(source.pool.papers, attributes[section.field], attributes["year"])
    cells = tuple(
        tuple(
            sum(crosstab.number(row, str(year)) for year in by_year if first <= year <= last) for first, last in spans
        )
        for row in crosstab.row_values
    )
    rows = tuple(called(row, section.terms) for row in crosstab.row_values)
    return _draw(
        figure.name,
        caption,
        _Matrix(rows, titles, cells, tuple(map(sum, cells)), totals, noun=taxonomy.noun.many),
        bars=True,
    )


def _spans(years: Sequence[int]) -> list[tuple[int, int]]:
    """The columns: the last years one by one, whether or not they have papers, and all before as one."""
    if not years:
        return []
    first, last = years[0], years[-1]
    if last - first < _YEARS:
        return [(year, year) for year in range(first, last + 1)]
    begin = last - _YEARS + 2
    return [(first, begin - 1), *((year, year) for year in range(begin, last + 1))]


class _Layout:
    """Where things are: `left` and `right` of the cells, the width of a cell and of the figure, and the columns' names.

    Each of `heads` has the lines of a name; one line, turned by 45 degrees and reaching as high, where `rise` is not 0.
    """

    def __init__(self, matrix: _Matrix) -> None:
        self.names = label_width(matrix.rows)
        self.left = MARGIN + self.names + 8
        widest = text_width(f"{max((*matrix.column_totals, matrix.largest()), default=0):,}", bold=True) + 8
        totals = (text_width(f"{total:,}", bold=True) for total in matrix.row_totals)
        totals_width = max(text_width(matrix.noun, SMALL), *totals, 0.0) + 8
        room = (WIDTH - MARGIN - self.left - totals_width) / max(len(matrix.columns), 1)
        self.cell = max(_CELL, widest, min(room, _LARGEST_CELL))
        word = max((text_width(word, SMALL) for title in matrix.columns for word in title.split()), default=0.0) + 6
        if word <= max(self.cell, _LARGEST_CELL):
            self.cell = max(self.cell, word)
            self.heads = [wrap(title, self.cell, SMALL, lines=3) for title in matrix.columns]
            self.rise = 0.0
            reach = 0.0
        else:
            self.heads = [wrap(title, _HEAD_WIDTH, SMALL, lines=1) for title in matrix.columns]
            slants = [text_width(lines[0], SMALL) * _SLANT for lines in self.heads]
            self.rise = max(slants) + SMALL
            reach = max(self.middle(index) + slant for index, slant in enumerate(slants)) + SMALL * _SLANT
        self.right = self.left + self.cell * len(matrix.columns) + totals_width
        self.width = max(WIDTH, self.right + MARGIN, reach + MARGIN)

    def middle(self, column: int) -> float:
        """The middle of a column."""
        return self.left + (column + 0.5) * self.cell


def _draw(name: str, caption: Caption, matrix: _Matrix, *, bars: bool = False) -> str:
    """Draw a matrix, with the numbers of each column as bars above it or as a row below."""
    layout = _Layout(matrix)
    drawing = Drawing(name, layout.width)
    y = head(drawing, caption) + 8
    if bars:
        y = _bars(drawing, y, layout, matrix.column_totals)
    y = _heads(drawing, y, layout)
    if matrix.rows:
        drawing.text(layout.right, y - 6, matrix.noun, "muted", size=SMALL, anchor="end")
    largest = matrix.largest()
    for index, title in enumerate(matrix.rows):
        with drawing.group():
            fill = "muted" if index in matrix.aside_rows else "ink"
            label(drawing, MARGIN, y + _ROW / 2, layout.names, title, fill)
            _cells(drawing, y, layout, matrix, index, largest)
            drawing.text(layout.right, y + _ROW / 2 + BASE, f"{matrix.row_totals[index]:,}", anchor="end", bold=True)
        y += _ROW
    if not bars:
        with drawing.group():
            label(drawing, MARGIN, y + _ROW / 2, layout.names, matrix.noun, "muted")
            for index, number in enumerate(matrix.column_totals):
                drawing.text(layout.middle(index), y + _ROW / 2 + BASE, f"{number:,}", anchor="middle", bold=True)
        y += _ROW
    return finish(drawing, legend(drawing, y + 10, _keys(matrix, largest)), caption)


def _bars(drawing: Drawing, top: float, layout: _Layout, totals: Sequence[int]) -> float:
    """A bar above each column, with the number of its papers; returns where the columns' names may begin."""
    largest = max(totals, default=0)
    base = top + SIZE + _BAR
    with drawing.group():
        for index, number in enumerate(totals):
            height = _BAR * number / largest if largest else 0.0
            if number:
                drawing.rect(layout.left + index * layout.cell + 6, base - height, layout.cell - 12, height, "series0")
            drawing.text(layout.middle(index), base - height - 4, f"{number:,}", anchor="middle", bold=True)
    drawing.line(layout.left, base, layout.left + layout.cell * len(totals), base, "rule")
    return base + 4


def _heads(drawing: Drawing, top: float, layout: _Layout) -> float:
    """The names of the columns; returns where the cells begin."""
    deepest = max(map(len, layout.heads), default=1)
    bottom = top + (layout.rise or deepest * SMALL * 1.15)
    with drawing.group():
        for index, lines in enumerate(layout.heads):
            middle = layout.middle(index)
            if layout.rise:
                drawing.text(middle + 3, bottom - 3, lines[0], "muted", size=SMALL, turn=-45)
                continue
            for depth, line in enumerate(lines, 1):
                drawing.text(middle, top + depth * SMALL * 1.1, line, "muted", size=SMALL, anchor="middle")
    return bottom + 4


def _cells(drawing: Drawing, y: float, layout: _Layout, matrix: _Matrix, row: int, largest: int) -> None:
    width, height = layout.cell - 3, _ROW - 3
    for column, number in enumerate(matrix.cells[row]):
        x = layout.left + column * layout.cell + 1.5
        aside = row in matrix.aside_rows or column in matrix.aside_columns
        shade = 0 if aside else heat(number, largest)
        if shade or aside:
            drawing.rect(x, y + 1.5, width, height, f"heat{shade}" if shade else "plain", radius=3)
        else:
            drawing.rect(x, y + 1.5, width, height, "page", stroke="rule", dashed=True, radius=3)
        fill = "on-heat4" if shade == _SHADES else "ink" if shade else "muted"
        drawing.text(x + width / 2, y + _ROW / 2 + BASE, f"{number:,}", fill, anchor="middle")


def _keys(matrix: _Matrix, largest: int) -> dict[str, str]:
    """What the shades stand for."""
    if not matrix.rows:
        return {}
    keys = {"page": "0"}
    for shade in range(1, _SHADES + 1):
        low, high = -(-(shade - 1) * largest // _SHADES) + 1, -(-shade * largest // _SHADES)
        if low <= high:
            keys[f"heat{shade}"] = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    aside = [matrix.rows[row] for row in matrix.aside_rows]
    aside += [matrix.columns[column] for column in matrix.aside_columns]
    if aside:
        keys["plain"] = ", ".join(sorted(set(aside)))
    return keys


_RUNG = 32.0
_THICKNESS = 16.0
_STACK_WIDTH = 110.0
_LEVEL_WIDTH = 84.0
_ASIDE = (ABSENT, NOT_APPLICABLE)
_CONTESTED = "contested: another reading is on record"


def draw_terms(figure: Figure, caption: Caption, source: Source) -> str:
    """A facet as a ladder: a rung for each term, as long as it has papers, with empty and sparse rungs marked.

    Empty and sparse are marked on axes only: that a description is rare is no gap. The part of a bar is hatched that
    belongs to papers with a contested reading.
    """
    counts, contested = source.counts(figure.field), source.contested.get(figure.field, {})
    facet = counts.attribute.facet
    is_axis = facet is not None and facet.role is Role.AXIS
    values = list(counts.counts.items())
    labels = [called(value, counts.attribute.terms) for value, _ in values]
    marks = [_mark(value, number, is_axis, contested.get(value, 0)) for value, number in values]
    names = label_width(labels)
    left = MARGIN + names + 10
    digits = text_width(f"{max(counts.counts.values(), default=0):,}", bold=True)
    room = WIDTH - MARGIN - left - digits - max((text_width(mark, SMALL) for mark in marks), default=0.0) - 16
    largest = max((number for value, number in values if value not in _ASIDE), default=0)
    drawing = Drawing(figure.name, WIDTH)
    top = y = head(drawing, caption) + 10
    for text, mark, (value, number) in zip(labels, marks, values, strict=True):
        middle = y + _RUNG / 2
        length = 0.0 if value in _ASIDE else room * number / max(largest, 1)
        with drawing.group():
            label(drawing, MARGIN, middle, names, text, "muted" if value in _ASIDE else "ink")
            if length:
                drawing.rect(left, middle - _THICKNESS / 2, length, _THICKNESS, "series0")
                if contested.get(value):
                    part = length * contested[value] / number
                    drawing.hatch(left + length - part, middle - _THICKNESS / 2, part, _THICKNESS)
            elif value not in _ASIDE:
                length = room
                drawing.line(left, middle, left + room, middle, "rule", dashed=True)
            fill, bold = ("muted", False) if value in _ASIDE else ("ink", True)
            drawing.text(left + length + 8, middle + BASE, f"{number:,}", fill, bold=bold)
            if mark:
                drawing.text(left + length + 12 + digits, middle + BASE, mark, "muted", size=SMALL)
        y += _RUNG
    drawing.line(left, top, left, y, "rule")
    if any(contested.values()):
        y = legend(drawing, y + 10, {HATCHED: _CONTESTED})
    return finish(drawing, y + 4, caption)


def _mark(value: str, number: int, is_axis: bool, disputed: int) -> str:
    """What is to be said beside a count."""
    marks = []
    if is_axis and number <= SPARSE_LIMIT and value not in _ASIDE:
        marks.append("sparse" if number else "empty")
    if disputed:
        marks.append(f"{disputed:,} contested")
    return ", ".join(marks)


def draw_levels(figure: Figure, caption: Caption, source: Source) -> str:
    """A facet of kind `levels`: a row for each term, its papers by level as numbers and as a stacked bar.

    The part of a bar is hatched that belongs to papers with a contested reading.
    """
    levels = source.levels(figure.field)
    facet = levels.facet
    labels = [called(term.id, facet.terms) for term in facet.terms]
    numbers = [tuple(levels.counts[term.id].values()) for term in facet.terms]
    disputed = [source.contested.get(term.id, {}) for term in facet.terms]
    is_contested = any(any(by_level.values()) for by_level in disputed)
    shown = numbers
    if is_contested:
        shown = [(*row, sum(by_level.values())) for row, by_level in zip(numbers, disputed, strict=True)]
    heads = [wrap(level.label, _LEVEL_WIDTH, SMALL) for level in facet.levels] + [[]] * is_contested
    widths = []
    for index, lines in enumerate(heads):
        texts = (*lines, *(f"{row[index]:,}" for row in shown))
        widths.append(max(text_width(text) for text in texts) + (8 if lines else 22))
    names = label_width(labels)
    left = MARGIN + names + 8
    _, *ends = accumulate(widths, initial=left)
    start = left + sum(widths) + 14
    drawing = Drawing(figure.name, max(WIDTH, start + _STACK_WIDTH + MARGIN))
    largest = max((sum(row) for row in numbers), default=0)
    pixels = (drawing.width - MARGIN - start) / max(largest, 1)
    top = y = _level_heads(drawing, head(drawing, caption) + 10, heads, ends)
    for text, row, by_level, counts in zip(labels, shown, disputed, numbers, strict=True):
        with drawing.group():
            label(drawing, MARGIN, y + _RUNG / 2, names, text)
            for number, x in zip(row, ends, strict=True):
                fill = "ink" if number else "muted"
                drawing.text(x, y + _RUNG / 2 + BASE, f"{number:,}", fill, anchor="end", bold=bool(number))
            hatched = [by_level.get(level.id, 0) for level in facet.levels]
            _stack(drawing, start, y + (_RUNG - _THICKNESS) / 2, pixels, counts, hatched)
        y += _RUNG
    drawing.line(start, top, start, y, "rule")
    keys: dict[str, str] = {}
    for index, level in enumerate(facet.levels):
        keys[_series(index)] = ", ".join(filter(None, (keys.get(_series(index)), level.label)))
    if is_contested:
        keys[HATCHED] = _CONTESTED
    return finish(drawing, legend(drawing, y + 10, keys), caption)


def _level_heads(drawing: Drawing, top: float, heads: Sequence[Sequence[str]], ends: Sequence[float]) -> float:
    """The levels' names above their numbers, a hatched square above those contested; returns where the rows begin."""
    bottom = top + max(len(lines) for lines in heads) * SMALL * 1.15
    with drawing.group():
        for lines, x in zip(heads, ends, strict=True):
            for number, line in enumerate(reversed(lines)):
                drawing.text(x, bottom - number * SMALL * 1.15, line, "muted", size=SMALL, anchor="end")
            if not lines:
                drawing.rect(x - SMALL, bottom - SMALL + 2, SMALL, SMALL, "muted", radius=2)
                drawing.hatch(x - SMALL, bottom - SMALL + 2, SMALL, SMALL)
    return bottom + 6


def _stack(
    drawing: Drawing, x: float, y: float, pixels: float, numbers: Sequence[int], contested: Sequence[int]
) -> None:
    """A piece for each level, the end of it hatched as far as it is contested."""
    before = 0
    for index, (number, disputed) in enumerate(zip(numbers, contested, strict=True)):
        begin, end = round(x + before * pixels), round(x + (before + number) * pixels)
        if number:
            drawing.rect(begin, y, end - begin, _THICKNESS, _series(index))
        if disputed:
            part = round(min(disputed, number) * pixels)
            drawing.hatch(end - part, y, part, _THICKNESS)
        before += number


def _series(index: int) -> str:
    return f"series{index % SERIES}"
