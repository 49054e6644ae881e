"""Draws the figures of a corpus: heat maps, bars, the flow of screening, sketches of terms, scale on an axis."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, product, starmap
from math import ceil, copysign, floor, hypot, log10

from orchtrace_corpus.base.annotations import TYPE_CHECKING, TypeAlias
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.drawing import LARGE, SERIES, SIZE, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.corpus.analysis import statistics
from orchtrace_corpus.corpus.analysis.attributes import Attribute, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, MISSING, Counts, Crosstab, count, cross, heat
from orchtrace_corpus.corpus.model.field_table import FieldKind
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.scale import Amount, Observation, compare
from orchtrace_corpus.corpus.model.taxonomy import Kind, Role, Sketch
from orchtrace_corpus.corpus.render.figures import plan
from orchtrace_corpus.corpus.render.figures.plan import Caption, Figure, FigureKind, Source, value_label
from orchtrace_corpus.corpus.render.scale import amount
from orchtrace_corpus.corpus.render.statistics import SPARSE_LIMIT, crosstab_title

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.flow import Screening


def draw(figure: Figure, source: Source, caption: Caption) -> str:
    """Return a figure as an SVG document, with its caption."""
    drawers = {
        FigureKind.COVERAGE: draw_coverage,
        FigureKind.YEARS: draw_years,
        FigureKind.TERMS: draw_terms,
        FigureKind.LEVELS: draw_levels,
        FigureKind.SKETCHES: draw_sketches,
        FigureKind.SCREENING: draw_screening,
        FigureKind.SCALE: draw_scale,
    }
    return drawers[figure.kind](figure, caption, source)


# All lengths are in pixels.
WIDTH = 520.0
"""The least width of a figure: on a phone that is 400 pixels wide, its text is as large as small print."""
MARGIN = 16.0
LABEL_WIDTH = 150.0
"""The largest width of the labels of rows."""
HATCHED = "hatched"
"""In a legend, the key of hatching; the other keys are colours."""
BASE = SIZE * 0.35
"""The distance from the middle of a line of text down to its base line."""
_LEADING = 1.3
"""The distance between two base lines, as a multiple of the size of the text."""
_SWATCH = 14.0
"""The side of a coloured square in a legend."""


def label_width(labels: Sequence[str], limit: float = LABEL_WIDTH) -> float:
    """Return the width of a column of labels; a label longer than the limit is wrapped."""
    return min(limit, max((text_width(label) for label in labels), default=0.0))


def write(
    drawing: Drawing,
    x: float,
    y: float,
    lines: Sequence[str],
    fill: str = "ink",
    *,
    step: float,
    size: int = SIZE,
    bold: bool = False,
) -> float:
    """Write lines below each other, the first on the base line `y`; return the base line after the last."""
    for line in lines:
        drawing.text(x, y, line, fill, size=size, bold=bold)
        y += step
    return y


def head(drawing: Drawing, caption: Caption) -> float:
    """Write the title and the subtitle; return the y coordinate below them, where the rest can begin."""
    room = drawing.width - 2 * MARGIN
    title = wrap(caption.title, room, LARGE, lines=3, bold=True)
    y = write(drawing, MARGIN, MARGIN + LARGE, title, step=LARGE * _LEADING, size=LARGE, bold=True)
    subtitle = wrap(caption.subtitle, room, SMALL, lines=4)
    return write(drawing, MARGIN, y, subtitle, "muted", step=SMALL * _LEADING, size=SMALL)


def label(drawing: Drawing, middle: float, width: float, text: str, fill: str = "ink") -> None:
    """Write the label of a row in one or two lines; `middle` is the y coordinate of the row's middle."""
    size = SIZE if len(wrap(text, width)) <= 1 else SMALL
    lines = wrap(text, width, size)
    y = middle + size * (0.35 - (len(lines) - 1) * 0.55)
    write(drawing, MARGIN, y, lines, fill, step=size * 1.1, size=size)


def hatched_square(drawing: Drawing, x: float, y: float, side: float) -> None:
    """Draw the sign of contested values."""
    drawing.rect(x, y, side, side, "muted", radius=2)
    drawing.hatch(x, y, side, side)


def legend(drawing: Drawing, y: float, keys: Mapping[str, str]) -> float:
    """Draw coloured squares with their meanings, in as many lines as needed; return the y coordinate below them.

    The colour `page` gets a dashed outline, and `HATCHED` is drawn as hatching.
    """
    x, right = MARGIN, drawing.width - MARGIN
    for fill, meaning in keys.items():
        text = wrap(meaning, right - MARGIN - _SWATCH - 6, SMALL, lines=1)[0]
        width = _SWATCH + 6 + text_width(text, SMALL)
        if x > MARGIN and x + width > right:
            x = MARGIN
            y += SMALL * 1.6
        if fill == HATCHED:
            hatched_square(drawing, x, y, _SWATCH)
        else:
            is_page = fill == "page"
            stroke = "rule" if is_page else ""
            drawing.rect(x, y, _SWATCH, _SWATCH, fill, stroke=stroke, dashed=is_page, radius=2)
        drawing.text(x + _SWATCH + 6, y + _SWATCH - 2, text, "muted", size=SMALL)
        x += width + 14
    return y + SMALL * 1.6


def finish(drawing: Drawing, y: float, caption: Caption, notes: Sequence[str] = ()) -> str:
    """Write notes below everything else, set the picture's height, and return it as an SVG document."""
    for note in notes:
        lines = wrap(note, drawing.width - 2 * MARGIN, SMALL, lines=8)
        y = write(drawing, MARGIN, y + 4 + SMALL, lines, "muted", step=SMALL * _LEADING, size=SMALL) - SMALL
    drawing.height = y + MARGIN
    return drawing.svg(caption.title, caption.text)


_ROW_HEIGHT = 30.0
_MIN_CELL_WIDTH = 34.0
_MAX_CELL_WIDTH = 48.0
_MAX_HEADING_WIDTH = 160.0
_SLANT = 0.7071  # the width and the height of a label turned by 45 degrees, as shares of its length
_MAX_BAR_HEIGHT = 56.0
_SHADES = 4
_MAX_VALUES = 30
"""The most texts that a figure shows; rarer ones are counted together."""
_MAX_YEARS = 8
"""The most columns of years; earlier years are counted together."""
_Groups: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values that each row or column counts, by its title."""


class _Matrix(NamedTuple):
    """Counts by the titles of rows and columns: of rows, of columns, and of cells.

    Attributes:
        noun: A noun for what is counted.
        unshaded: The titles of the rows and columns that have no shade, since they stand for no value.
    """

    rows: Mapping[str, int]
    columns: Mapping[str, int]
    cells: Mapping[tuple[str, str], int]
    noun: str
    unshaded: frozenset[str] = frozenset()

    @property
    def largest(self) -> int:
        """The largest count in a cell with a shade."""
        return max((count for pair, count in self.cells.items() if self.unshaded.isdisjoint(pair)), default=0)


def draw_coverage(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the first pair of fields that the taxonomy crosses."""
    return _draw_crossed(figure.name, caption, source.summary.crosstabs[0], source.pool)


def draw_fields(pool: Pool, attributes: Sequence[Attribute], filters: Sequence[str]) -> str:
    """Draw the papers by one field, or by two fields crossed; `filters` are named in the subtitle."""
    subtitle = pool.taxonomy.noun.counted(len(pool.papers))
    if filters:
        subtitle += f": {'; '.join(filters)}"
    if len(attributes) == 2:
        crosstab = cross(pool.papers, *attributes)
        title = crosstab_title(crosstab)
        name = "-by-".join(attribute.name for attribute in attributes)
        return _draw_crossed(name, Caption(title, subtitle, f"{title}. {subtitle}."), crosstab, pool)
    (attribute,) = attributes
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and facet.field == attribute.name:
        source = Source(pool, statistics.summarise(pool))
        figure = Figure(facet.field, FigureKind.LEVELS, facet.field)
        return draw_levels(figure, plan.caption(figure, source)._replace(subtitle=subtitle), source)
    counts = count(pool.papers, attribute)
    texts = [f"{value_label(value, attribute.terms)} {number:,}" for value, number in counts.counts.items()]
    caption = Caption(attribute.label, subtitle, f"{subtitle}: {'; '.join(texts)}.")
    groups = _groups(tuple(counts.counts), attribute)
    totals = _totals(groups, counts.counts)
    if _is_year(attribute):
        return _draw(attribute.name, caption, _Matrix({}, totals, {}, pool.taxonomy.noun.many), bars=True)
    grouped = {values[0] if len(values) == 1 else title: totals[title] for title, values in groups.items()}
    return _draw_ladder(attribute.name, caption, counts._replace(counts=grouped), {})


def _draw_crossed(name: str, caption: Caption, crosstab: Crosstab, pool: Pool) -> str:
    """Draw two fields crossed as a heat map with the number of papers of each row and column.

    Rows and columns of papers without a value have no shade; their counts would make all other shades pale.
    """
    rows = _groups(crosstab.row_values, crosstab.rows)
    columns = _groups(crosstab.column_values, crosstab.columns)
    matrix = _Matrix(
        _totals(rows, count(pool.papers, crosstab.rows).counts),
        _totals(columns, count(pool.papers, crosstab.columns).counts),
        _cells(crosstab, rows, columns),
        pool.taxonomy.noun.many,
        frozenset(title for title, values in (*rows.items(), *columns.items()) if MISSING.issuperset(values)),
    )
    return _draw(name, caption, matrix)


def _totals(groups: _Groups, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of the counts of each group."""
    return {title: sum(counts.get(value, 0) for value in values) for title, values in groups.items()}


def _cells(crosstab: Crosstab, rows: _Groups, columns: _Groups) -> dict[tuple[str, str], int]:
    """Return the count of each pair of groups by their titles."""
    return {
        (row, column): sum(starmap(crosstab.count_in, product(rows[row], columns[column])))
        for row, column in product(rows, columns)
    }


def _is_year(attribute: Attribute) -> bool:
    return attribute.field is not None and attribute.field.kind is FieldKind.YEAR


def _groups(values: Sequence[str], attribute: Attribute) -> dict[str, tuple[str, ...]]:
    """Return the values of each row or column by its title: all early years together, and all rare texts."""
    present = [value for value in values if value != ABSENT]
    groups: dict[str, tuple[str, ...]] = {}
    if _is_year(attribute) and present:
        first, last = min(map(int, present)), max(map(int, present))
        start = first  # the first year with a column of its own
        if last - first >= _MAX_YEARS:
            start = last - _MAX_YEARS + 2
            early = tuple(str(year) for year in range(first, start))
            groups[f"{first} to {start - 1}"] = early
        groups |= {str(year): (str(year),) for year in range(start, last + 1)}
    else:
        frequent = present if attribute.terms or len(present) <= _MAX_VALUES else present[: _MAX_VALUES - 1]
        for value in frequent:  # two terms can have the same label
            title = value_label(value, attribute.terms)
            groups[title] = (*groups.get(title, ()), value)
        rare = present[len(frequent) :]
        if rare:
            groups[f"{len(rare):,} others"] = tuple(rare)
    if ABSENT in values:
        groups[value_label(ABSENT, attribute.terms)] = (ABSENT,)
    return groups


def draw_years(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the papers by year and by section of the paper list; early years share a column."""
    taxonomy, years = source.pool.taxonomy, source.summary.years
    columns = _groups([year for year in years.counts if year != ABSENT], years.attribute)
    cells: dict[tuple[str, str], int] = {}
    rows: dict[str, int] = {}
    section = taxonomy.section_facet
    if section is not None:
        attributes = paper_attributes(taxonomy)
        crosstab = cross(source.pool.papers, attributes[section.field], attributes["year"])
        sections = _groups(crosstab.row_values, crosstab.rows)
        cells = _cells(crosstab, sections, columns)
        rows = {title: sum(cells[title, year] for year in columns) for title in sections}
    matrix = _Matrix(rows, _totals(columns, years.counts), cells, taxonomy.noun.many)
    return _draw(figure.name, caption, matrix, bars=True)


class _Layout:
    """The layout of a matrix.

    Attributes:
        label_width: The width of the labels of rows.
        left: The x coordinate at which the cells begin.
        right: The x coordinate at which the totals of rows end.
        cell_width: The width of a cell.
        headings: The lines of each heading of a column.
        slant_height: The height of headings turned by 45 degrees, which have one line; 0.0 for upright headings.
        width: The width of the figure.
    """

    def __init__(self, matrix: _Matrix) -> None:
        self.label_width = label_width(tuple(matrix.rows))
        self.left = MARGIN + self.label_width + 8
        number_width = text_width(f"{max((*matrix.columns.values(), matrix.largest)):,}", bold=True) + 8
        totals = (text_width(f"{total:,}", bold=True) for total in matrix.rows.values())
        totals_width = max(text_width(matrix.noun, SMALL), *totals, 0.0) + 8
        room = (WIDTH - MARGIN - self.left - totals_width) / max(len(matrix.columns), 1)
        self.cell_width = max(_MIN_CELL_WIDTH, number_width, min(room, _MAX_CELL_WIDTH))
        words = [word for title in matrix.columns for word in title.split()]
        word_width = max((text_width(word, SMALL) for word in words), default=0.0) + 6
        self.slant_height = reach = 0.0
        if word_width <= max(self.cell_width, _MAX_CELL_WIDTH):
            self.cell_width = max(self.cell_width, word_width)
            self.headings = [wrap(title, self.cell_width, SMALL, lines=3) for title in matrix.columns]
        else:  # no room for upright headings
            self.headings = [wrap(title, _MAX_HEADING_WIDTH, SMALL, lines=1) for title in matrix.columns]
            slants = [text_width(lines[0], SMALL) * _SLANT for lines in self.headings]
            self.slant_height = max(slants) + SMALL
            reach = max(self.middle(index) + slant for index, slant in enumerate(slants)) + SMALL * _SLANT
        self.right = self.left + self.cell_width * len(matrix.columns) + totals_width
        self.width = max(WIDTH, self.right + MARGIN, reach + MARGIN)

    def middle(self, column: int) -> float:
        """Return the x coordinate of the middle of a column."""
        return self.left + (column + 0.5) * self.cell_width


def _draw(name: str, caption: Caption, matrix: _Matrix, *, bars: bool = False) -> str:
    """Draw a matrix, with the total of each column as a bar above it or in a row below."""
    layout = _Layout(matrix)
    drawing = Drawing(name, layout.width)
    y = head(drawing, caption) + 8
    if bars:
        y = _bars(drawing, y, layout, tuple(matrix.columns.values()))
    y = _headings(drawing, y, layout)
    if matrix.rows:
        drawing.text(layout.right, y - 6, matrix.noun, "muted", size=SMALL, anchor="end")
    for title, total in matrix.rows.items():
        middle = y + _ROW_HEIGHT / 2
        with drawing.group():
            label(drawing, middle, layout.label_width, title, "muted" if title in matrix.unshaded else "ink")
            for index, column in enumerate(matrix.columns):
                x = layout.left + index * layout.cell_width + 1.5
                _cell(drawing, x, y, layout.cell_width - 3, matrix, (title, column))
            drawing.text(layout.right, middle + BASE, f"{total:,}", anchor="end", bold=True)
        y += _ROW_HEIGHT
    if not bars:
        middle = y + _ROW_HEIGHT / 2
        with drawing.group():
            label(drawing, middle, layout.label_width, matrix.noun, "muted")
            for index, total in enumerate(matrix.columns.values()):
                drawing.text(layout.middle(index), middle + BASE, f"{total:,}", anchor="middle", bold=True)
        y += _ROW_HEIGHT
    return finish(drawing, legend(drawing, y + 10, _shade_meanings(matrix)), caption)


def _bars(drawing: Drawing, top: float, layout: _Layout, totals: Sequence[int]) -> float:
    """Draw a bar above each column, with its total; return the y coordinate at which headings can begin."""
    largest = max(totals, default=0)
    base = top + SIZE + _MAX_BAR_HEIGHT
    with drawing.group():
        for index, total in enumerate(totals):
            height = _MAX_BAR_HEIGHT * total / max(largest, 1)
            if total:
                x = layout.left + index * layout.cell_width + 6
                drawing.rect(x, base - height, layout.cell_width - 12, height, "series0")
            drawing.text(layout.middle(index), base - height - 4, f"{total:,}", anchor="middle", bold=True)
    drawing.line(layout.left, base, layout.left + layout.cell_width * len(totals), base, "rule")
    return base + 4


def _headings(drawing: Drawing, top: float, layout: _Layout) -> float:
    """Write the headings of the columns; return the y coordinate at which the cells begin."""
    line_count = max(map(len, layout.headings), default=1)
    bottom = top + (layout.slant_height or line_count * SMALL * 1.15)
    with drawing.group():
        for index, lines in enumerate(layout.headings):
            middle = layout.middle(index)
            if layout.slant_height:
                drawing.text(middle + 3, bottom - 3, lines[0], "muted", size=SMALL, turn=-45)
                continue
            for number, line in enumerate(lines, 1):
                drawing.text(middle, top + number * SMALL * 1.1, line, "muted", size=SMALL, anchor="middle")
    return bottom + 4


def _cell(drawing: Drawing, x: float, y: float, width: float, matrix: _Matrix, pair: tuple[str, str]) -> None:
    """Draw a count on its shade, or within a dashed line if it is 0."""
    number = matrix.cells[pair]
    has_shade = matrix.unshaded.isdisjoint(pair)
    shade = heat(number, matrix.largest) if has_shade else 0
    if has_shade and not shade:
        drawing.rect(x, y + 1.5, width, _ROW_HEIGHT - 3, "page", stroke="rule", dashed=True, radius=3)
    else:
        drawing.rect(x, y + 1.5, width, _ROW_HEIGHT - 3, f"heat{shade}" if shade else "plain", radius=3)
    ink = "ink" if shade else "muted"
    if shade == _SHADES:
        ink = "on-heat4"
    drawing.text(x + width / 2, y + _ROW_HEIGHT / 2 + BASE, f"{number:,}", ink, anchor="middle")


def _shade_meanings(matrix: _Matrix) -> dict[str, str]:
    """Return the meaning of each shade, by its colour: the counts that have it."""
    if not matrix.rows:
        return {}
    meanings = {"page": "0"}
    low = 1
    for shade in range(1, _SHADES + 1):
        high = ceil(shade * matrix.largest / _SHADES)
        if low <= high:
            meanings[f"heat{shade}"] = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        low = high + 1
    if matrix.unshaded:
        meanings["plain"] = ", ".join(sorted(matrix.unshaded))
    return meanings


_BAR_ROW_HEIGHT = 32.0
_BAR_HEIGHT = 16.0
_MIN_STACK_WIDTH = 110.0
_LEVEL_WIDTH = 84.0
_CONTESTED = "contested: another reading is on record"


def draw_terms(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the papers by the terms of a facet, as bars."""
    return _draw_ladder(figure.name, caption, source.counts(figure.field), source.contested.get(figure.field, {}))


def _draw_ladder(name: str, caption: Caption, counts: Counts, contested: Mapping[str, int]) -> str:
    """Draw a bar for each value, hatched at its end for the papers whose value is contested.

    Notes on empty and sparse values are for axes only: a rare description is no gap.
    """
    facet = counts.attribute.facet
    is_axis = facet is not None and facet.role is Role.AXIS
    labels, notes = [], []
    for value, number in counts.counts.items():
        labels.append(value_label(value, counts.attribute.terms))
        parts = []
        if is_axis and number <= SPARSE_LIMIT and value not in MISSING:
            parts.append("sparse" if number else "empty")
        if contested.get(value):
            parts.append(f"{contested[value]:,} contested")
        notes.append(", ".join(parts))
    labels_width = label_width(labels)
    left = MARGIN + labels_width + 10
    number_width = text_width(f"{max(counts.counts.values(), default=0):,}", bold=True)
    notes_width = max((text_width(note, SMALL) for note in notes), default=0.0)
    room = WIDTH - MARGIN - left - number_width - notes_width - 16
    largest = max((number for value, number in counts.counts.items() if value not in MISSING), default=0)
    drawing = Drawing(name, WIDTH)
    top = y = head(drawing, caption) + 10
    for text, note, (value, number) in zip(labels, notes, counts.counts.items(), strict=True):
        middle = y + _BAR_ROW_HEIGHT / 2
        has_bar = value not in MISSING
        length = room * number / max(largest, 1) if has_bar else 0.0
        fill = "ink" if has_bar else "muted"
        with drawing.group():
            label(drawing, middle, labels_width, text, fill)
            if length:
                drawing.rect(left, middle - _BAR_HEIGHT / 2, length, _BAR_HEIGHT, "series0")
                if contested.get(value):
                    part = length * contested[value] / number
                    drawing.hatch(left + length - part, middle - _BAR_HEIGHT / 2, part, _BAR_HEIGHT)
            elif has_bar:  # a dashed line for 0
                length = room
                drawing.line(left, middle, left + room, middle, "rule", dashed=True)
            drawing.text(left + length + 8, middle + BASE, f"{number:,}", fill, bold=has_bar)
            if note:
                drawing.text(left + length + 12 + number_width, middle + BASE, note, "muted", size=SMALL)
        y += _BAR_ROW_HEIGHT
    drawing.line(left, top, left, y, "rule")
    if any(contested.values()):
        y = legend(drawing, y + 10, {HATCHED: _CONTESTED})
    return finish(drawing, y + 4, caption)


def draw_levels(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw a facet of kind `levels`: for each term its papers by level, as numbers and as a bar."""
    levels = source.levels(figure.field)
    facet = levels.facet
    labels = [value_label(term.id, facet.terms) for term in facet.terms]
    contested = [source.contested.get(term.id, {}) for term in facet.terms]  # of each term, by level
    has_contested = any(any(by_level.values()) for by_level in contested)
    columns = []  # the lines of the heading, and the numbers; the heading of contested papers has no lines
    for level in facet.levels:
        numbers = [levels.counts[term.id][level.id] for term in facet.terms]
        columns.append((wrap(level.label, _LEVEL_WIDTH, SMALL), numbers))
    if has_contested:
        columns.append(([], [sum(by_level.values()) for by_level in contested]))
    widths = []
    for lines, numbers in columns:
        texts = (*lines, *(f"{number:,}" for number in numbers))
        widths.append(max(map(text_width, texts)) + (8 if lines else 22))
    labels_width = label_width(labels)
    left = MARGIN + labels_width + 8
    ends = list(accumulate(widths, initial=left))[1:]  # the right ends of columns
    bars_left = left + sum(widths) + 14
    drawing = Drawing(figure.name, max(WIDTH, bars_left + _MIN_STACK_WIDTH + MARGIN))
    largest = max((sum(by_level.values()) for by_level in levels.counts.values()), default=0)
    paper_width = (drawing.width - MARGIN - bars_left) / max(largest, 1)
    top = y = _level_headings(drawing, head(drawing, caption) + 10, [lines for lines, _ in columns], ends)
    for index, (term, contested_by_level) in enumerate(zip(facet.terms, contested, strict=True)):
        middle = y + _BAR_ROW_HEIGHT / 2
        with drawing.group():
            label(drawing, middle, labels_width, labels[index])
            for (_, numbers), x in zip(columns, ends, strict=True):
                number = numbers[index]
                fill = "ink" if number else "muted"
                drawing.text(x, middle + BASE, f"{number:,}", fill, anchor="end", bold=bool(number))
            counts = levels.counts[term.id]
            pieces = [(counts[level.id], contested_by_level.get(level.id, 0)) for level in facet.levels]
            _stack(drawing, bars_left, middle - _BAR_HEIGHT / 2, paper_width, pieces)
        y += _BAR_ROW_HEIGHT
    drawing.line(bars_left, top, bars_left, y, "rule")
    meanings: dict[str, str] = {}
    for index, level in enumerate(facet.levels):
        color = _series(index)  # there are fewer colours than there can be levels
        meanings[color] = f"{meanings[color]}, {level.label}" if color in meanings else level.label
    if has_contested:
        meanings[HATCHED] = _CONTESTED
    return finish(drawing, legend(drawing, y + 10, meanings), caption)


def _level_headings(drawing: Drawing, top: float, headings: Sequence[Sequence[str]], ends: Sequence[float]) -> float:
    """Write the levels above their numbers, and draw a hatched square above the numbers of contested papers.

    Return the y coordinate at which the rows begin.
    """
    bottom = top + max(len(lines) for lines in headings) * SMALL * 1.15
    with drawing.group():
        for lines, x in zip(headings, ends, strict=True):
            for index, line in enumerate(reversed(lines)):
                drawing.text(x, bottom - index * SMALL * 1.15, line, "muted", size=SMALL, anchor="end")
            if not lines:
                hatched_square(drawing, x - SMALL, bottom - SMALL + 2, SMALL)
    return bottom + 6


def _stack(drawing: Drawing, x: float, y: float, paper_width: float, pieces: Sequence[tuple[int, int]]) -> None:
    """Draw a bar with a piece for each level; `pieces` has the number of papers, and of the contested ones, hatched."""
    drawn = 0
    for index, (number, contested) in enumerate(pieces):
        start, end = round(x + drawn * paper_width), round(x + (drawn + number) * paper_width)
        if number:
            drawing.rect(start, y, end - start, _BAR_HEIGHT, _series(index))
        if contested:
            part = round(min(contested, number) * paper_width)
            drawing.hatch(end - part, y, part, _BAR_HEIGHT)
        drawn += number


def _series(index: int) -> str:
    """Return the name of a colour."""
    return f"series{index % SERIES}"


_GAP = 28.0
_PADDING = 11.0
_BOX_WIDTH = (WIDTH - 2 * MARGIN - _GAP) / 2
_TEXT_WIDTH = _BOX_WIDTH - 2 * _PADDING
_LINE_HEIGHT = 19.0
_ARROW_WIDTH = 5.0  # to each side
_Row: TypeAlias = tuple[str, str, int]
"""A line of a box: its text, a number at its right end or an empty text, and the size of both."""


def draw_screening(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the flow of records through screening; numbers that the corpus does not have are "not recorded".

    If there are search runs, this is the flow of an updated review, whose previous version is the published pool.

    Reference: figure 1 of Page et al., PRISMA 2020 (BMJ 372:n71).
    """
    screening = source.screening
    steps = _steps_without_runs(source) if screening is None else _steps_with_runs(source, screening)
    drawing = Drawing(figure.name, WIDTH)
    y = head(drawing, caption) + 10
    for index, boxes in enumerate(steps):
        height = max(map(len, boxes)) * _LINE_HEIGHT + 2 * _PADDING
        # Records added by hand come in from the side, at the last step but one; others leave to the side.
        enters = screening is not None and index == len(steps) - 2
        for column, rows in enumerate(boxes):
            x = MARGIN + column * (_BOX_WIDTH + _GAP)
            with drawing.group():
                _box(drawing, x, y, height, rows)
            if column and enters:
                _arrow(drawing, x, y + height / 2, across=-1, down=0)
            elif column:
                _arrow(drawing, x - _GAP, y + height / 2, across=1, down=0)
        y += height
        if index < len(steps) - 1:
            _arrow(drawing, MARGIN + _BOX_WIDTH / 2, y, across=0, down=1)
            y += _GAP
    promoted = sum(exclusion.promoted_to is not None for exclusion in source.pool.exclusions)
    notes = []
    if promoted:
        notes.append(f"Taken in later, and counted among the retained, too: {promoted:,} of the excluded.")
    return finish(drawing, y, caption, notes)


def _steps_without_runs(source: Source) -> list[list[list[_Row]]]:
    """Return the steps of a review without search runs: for each the lines of a box, and of one to its right."""
    retained, excluded, stages = len(source.pool.papers), len(source.pool.exclusions), source.stages
    by_stage: dict[str, int] = {}
    if stages is not None:
        by_stage = {value_label(value, stages.attribute.terms): number for value, number in stages.counts.items()}
    return [
        [_rows("Records identified", None), _rows("Removed before screening", None)],
        [_rows("Records audited", retained + excluded), _rows("Excluded", excluded, by_stage)],
        [_rows("Retained", retained)],
    ]


def _steps_with_runs(source: Source, screening: "Screening") -> list[list[list[_Row]]]:
    """Return the steps of an updated review: for each the lines of a box, and of one to its right."""
    whole, by_hand = screening.whole, screening.by_hand
    terms = source.stages.attribute.terms if source.stages is not None else ()
    by_stage: Counter[str] = Counter()
    for (stage, _), records in whole.excluded.items():
        by_stage[value_label(stage, terms)] += records
    removed = {"Duplicate records": whole.repeated, "Known to the corpus": whole.known, "Other": whole.refused}
    screened = {"Included, tags open": whole.coding, "Awaiting a decision": whole.awaiting}
    included = [_rows("New studies included", whole.included + by_hand.included)]
    if by_hand.new:
        studies = {"From these searches": whole.included, "Added by hand": by_hand.included}
        others = {"Excluded": sum(by_hand.excluded.values())}
        others |= {"Included, tags open": by_hand.coding, "Awaiting a decision": by_hand.awaiting}
        added = _rows("Records added by hand", by_hand.new, others)
        included = [_rows("New studies included", whole.included + by_hand.included, studies), added]
    return [
        [
            _rows("Studies included in previous version of review", screening.included),
            _rows("Excluded in previous version", screening.excluded),
        ],
        [
            _rows("Records identified", whole.found, whole.by_source),
            _rows("Records removed before screening", whole.removed, removed),
        ],
        [
            _rows("Records screened", whole.screened, screened),
            _rows("Records excluded", sum(by_stage.values()), by_stage),
        ],
        included,
        [_rows("Total studies included in review", len(source.pool.papers))],
    ]


def _rows(title: str, number: int | None, parts: Mapping[str, int] = {}) -> list[_Row]:
    """Return the lines of a box: its title with its number, or "not recorded", then the parts of the number."""
    if number is None:
        return [*((line, "", SIZE) for line in wrap(title, _TEXT_WIDTH)), (plan.NOT_RECORDED, "", SIZE)]
    rows: list[_Row] = []
    for text, records, size in ((title, number, SIZE), *((*part, SMALL) for part in parts.items())):
        number_text = f"{records:,}"
        lines = wrap(text, _TEXT_WIDTH - text_width(number_text, size, bold=True) - 8, size, bold=True)
        rows += [(line, number_text if index == 0 else "", size) for index, line in enumerate(lines)]
    return rows


def _box(drawing: Drawing, x: float, y: float, height: float, rows: Sequence[_Row]) -> None:
    """Draw a box with its lines centred vertically; its outline is dashed if its number is not recorded."""
    is_recorded = rows[0][1] != ""
    drawing.rect(x, y, _BOX_WIDTH, height, "plain", stroke="rule", dashed=not is_recorded, radius=4)
    base = y + (height - len(rows) * _LINE_HEIGHT) / 2 + _LINE_HEIGHT / 2 + BASE
    for text, number, size in rows:
        is_title = is_recorded and size == SIZE
        fill = "ink" if size == SIZE and text != plan.NOT_RECORDED else "muted"
        drawing.text(x + _PADDING, base, text, fill, size=size, bold=is_title)
        if number:
            drawing.text(x + _BOX_WIDTH - _PADDING, base, number, fill, size=size, bold=is_title, anchor="end")
        base += _LINE_HEIGHT


def _arrow(drawing: Drawing, x: float, y: float, *, across: int, down: int) -> None:
    """Draw an arrow over the gap between two boxes; `across` and `down` are its direction, each -1, 0 or 1."""
    end_x, end_y = x + across * (_GAP - 1), y + down * (_GAP - 1)
    drawing.line(x, y, end_x, end_y, "muted")
    back_x, back_y = end_x - across * 7, end_y - down * 7
    barbs = ((back_x + sign * down * _ARROW_WIDTH, back_y + sign * across * _ARROW_WIDTH) for sign in (1, -1))
    drawing.path(((end_x, end_y), *barbs), "muted")


_SKETCH_ROW_HEIGHT = 54.0
_SKETCH_BOX_HEIGHT = 26.0


def draw_sketches(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the sketch of each term of a facet above the term's definition, with two terms side by side."""
    facet = next(facet for facet in source.pool.taxonomy.papers if facet.field == figure.field)
    panels = [(term, term.sketch) for term in facet.terms if term.sketch]
    drawing = Drawing(figure.name, WIDTH)
    y = head(drawing, caption) + 10
    for start in range(0, len(panels), 2):
        pair = panels[start : start + 2]
        labels = [wrap(value_label(term.id, facet.terms), _TEXT_WIDTH, bold=True) for term, _ in pair]
        definitions = [wrap(term.definition, _TEXT_WIDTH, SMALL, lines=5) for term, _ in pair]
        label_height = max(map(len, labels)) * _LINE_HEIGHT
        sketch_height = max(len(sketch.rows) for _, sketch in pair) * _SKETCH_ROW_HEIGHT
        height = label_height + sketch_height + max(map(len, definitions)) * _LINE_HEIGHT + 2 * _PADDING
        for column, ((_, sketch), lines, definition) in enumerate(zip(pair, labels, definitions, strict=True)):
            x = MARGIN + column * (_BOX_WIDTH + _GAP)
            with drawing.group():
                drawing.rect(x, y, _BOX_WIDTH, height, "page", stroke="rule", radius=4)
                left, top = x + _PADDING, y + _PADDING + label_height
                write(drawing, left, y + _PADDING + SIZE, lines, step=_LINE_HEIGHT, bold=True)
                _sketch(drawing, left, top, sketch_height, sketch)
                base = top + sketch_height + SMALL
                write(drawing, left, base, definition, "muted", step=_LINE_HEIGHT, size=SMALL)
        y += height + 12
    return finish(drawing, y, caption)


def _sketch(drawing: Drawing, left: float, top: float, height: float, sketch: Sketch) -> None:
    """Draw the links of a sketch, and its boxes over them; texts are cut to the size of their boxes."""
    boxes: list[tuple[float, float, float, str]] = []  # the middle as x and y, the width, the text
    for index, row in enumerate(sketch.rows):
        widths = [text_width(text.strip("*"), SMALL) + 8 for text in row]
        shrink = min(1.0, (_TEXT_WIDTH - 6 * len(row)) / sum(widths))
        gap = (_TEXT_WIDTH - shrink * sum(widths)) / len(row)
        middle = top + height * (index + 0.5) / len(sketch.rows)
        x = left
        for text, width in zip(row, widths, strict=True):
            x += gap + shrink * width
            boxes.append((x - (gap + shrink * width) / 2, middle, shrink * width, text))
    for first, last, is_arrow in sketch.links:  # numbers of boxes, from 1
        (x1, y1, width1, _), (x2, y2, width2, _) = boxes[first - 1], boxes[last - 1]
        # A link begins and ends at the edges of its boxes.
        if y1 == y2:
            x1, x2 = x1 + copysign(width1 / 2, x2 - x1), x2 - copysign(width2 / 2, x2 - x1)
        else:
            reach = copysign(_SKETCH_BOX_HEIGHT / 2, y2 - y1)
            y1, y2 = y1 + reach, y2 - reach
        drawing.line(x1, y1, x2, y2, "muted")
        length = hypot(x2 - x1, y2 - y1)
        if is_arrow and length:
            along_x, along_y = 7 * (x2 - x1) / length, 7 * (y2 - y1) / length
            barbs = ((x2 - along_x + sign * along_y / 2, y2 - along_y - sign * along_x / 2) for sign in (1, -1))
            drawing.path(((x2, y2), *barbs), "muted")
    for x, y, width, text in boxes:
        fill, ink = ("heat4", "on-heat4") if text.startswith("*") else ("plain", "ink")
        box_top = y - _SKETCH_BOX_HEIGHT / 2
        is_open = text.endswith("?")
        drawing.rect(x - width / 2, box_top, width, _SKETCH_BOX_HEIGHT, fill, stroke="rule", dashed=is_open, radius=4)
        line = wrap(text.strip("*"), width, SMALL, lines=1)[0]
        drawing.text(x, y + SMALL * 0.35, line, ink, size=SMALL, anchor="middle")


_SCALE_ROW_HEIGHT = 27.0
_MARK = 5.0
"""Half the width of a mark."""
_MAX_NAME_WIDTH = 300.0
_MIN_AXIS_WIDTH = 150.0
_LEGEND = (
    "Squares: systems in use; circles: experiments. Filled: read in the publication itself; hollow: a report, or "
    "second-hand. A line from the left edge: a limit, no count. A number leads to its source."
)


class _Axis:
    """A logarithmic axis from 10 to the power of `first`, at `left`, to 10 to the power of `last`, or a little more."""

    def __init__(self, left: float, width: float, amounts: Sequence[Amount]) -> None:
        exponents = [log10(value) for amount in amounts for value in (amount.low, amount.high) if value > 0]
        self.first = floor(min([0.0, *exponents]))
        decades = max([1.0, *(exponent - self.first for exponent in exponents)])
        self.last = self.first + floor(decades)
        self.left = left
        self.decade_width = width / decades

    def x_of(self, value: float) -> float:
        """Return the x coordinate of a number; that of a number too small for the axis is its left end."""
        exponent = log10(value) if value > 0 else self.first
        return self.left + self.decade_width * max(exponent - self.first, 0.0)


def draw_scale(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the first quantity that is known of systems in use and of experiments, with a row for each observation."""
    comparisons = compare(source.scale)
    if not comparisons:
        drawing = Drawing(figure.name, WIDTH)
        return finish(drawing, head(drawing, caption), caption)
    groups = {"In use": comparisons[0].deployments, "In experiments": comparisons[0].academic}
    observations = [observation for group in groups.values() for observation in group]
    names_width = label_width([_name(observation) for observation in observations], _MAX_NAME_WIDTH)
    left = MARGIN + names_width + 14
    numbers_width = max(text_width(amount(observation.value)) for observation in observations)
    drawing = Drawing(figure.name, max(WIDTH, left + _MIN_AXIS_WIDTH + 16 + numbers_width + MARGIN))
    right = drawing.width - MARGIN - numbers_width - 16
    axis = _Axis(left, right - left, [observation.value for observation in observations if observation.value])
    top = head(drawing, caption) + SMALL + 8
    _grid(drawing, axis, top, top + 6 + _SCALE_ROW_HEIGHT * (len(observations) + len(groups)))
    y = top + 6
    for title, group in groups.items():
        drawing.text(MARGIN, y + _SCALE_ROW_HEIGHT / 2 + BASE, title, bold=True)
        y += _SCALE_ROW_HEIGHT
        for observation in group:
            middle = y + _SCALE_ROW_HEIGHT / 2
            with drawing.group(observation.sources[0]):
                label(drawing, middle, names_width, _name(observation))
                if observation.value:
                    _mark(drawing, axis, middle, observation.value, observation, is_in_use=title == "In use")
                fill = "ink" if observation.value else "muted"
                drawing.text(drawing.width - MARGIN, middle + BASE, amount(observation.value), fill, anchor="end")
            y += _SCALE_ROW_HEIGHT
    units = ", ".join(dict.fromkeys(observation.unit for observation in observations))
    return finish(drawing, y, caption, (_LEGEND, f"Counted as the sources do: {units}."))


def _name(observation: Observation) -> str:
    """Return the name of a system, with its phase if it has one."""
    return f"{observation.system}, {observation.phase}" if observation.phase else observation.system


def _grid(drawing: Drawing, axis: _Axis, top: float, bottom: float) -> None:
    """Draw a line for each power of ten, with the number above if there is room, such as `0.1` or `10k`."""
    numbers = {}  # by exponent
    for exponent in range(axis.first, axis.last + 1):
        if exponent < 0:
            numbers[exponent] = f"{10.0**exponent:.{-exponent}f}"
        elif exponent < 15:
            zeros, suffix = "0" * (exponent % 3), ("", "k", "M", "G", "T")[exponent // 3]
            numbers[exponent] = f"1{zeros}{suffix}"
        else:
            numbers[exponent] = f"1e{exponent}"
    widest = max(text_width(number, SMALL) for number in numbers.values()) + 4
    step = max(ceil(widest / axis.decade_width), 1)
    for exponent, number in numbers.items():
        x = axis.left + (exponent - axis.first) * axis.decade_width
        drawing.line(x, top + 4, x, bottom, "rule", dashed=True)
        if (exponent - axis.first) % step == 0:
            drawing.text(x, top, number, "muted", size=SMALL, anchor="middle")


def _mark(drawing: Drawing, axis: _Axis, y: float, value: Amount, observation: Observation, *, is_in_use: bool) -> None:
    """Draw the ends of an amount, and a line between them; the line of a limit begins at the left end of the axis."""
    color = "series1" if is_in_use else "series0"
    low, high = axis.x_of(value.low), axis.x_of(value.high)
    if observation.is_limit:
        drawing.line(axis.left, y, high, y, color)
    elif low < high:
        drawing.line(low, y, high, y, color)
    fill = color if observation.verified else "page"
    for x in dict.fromkeys((low, high)):
        if is_in_use:
            drawing.rect(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK, fill, stroke=color)
        else:
            drawing.circle(x, y, _MARK, fill, stroke=color)
