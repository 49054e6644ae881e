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
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, NO_CELLS, Counts, Crosstab, count, cross, heat
from orchtrace_corpus.corpus.model.field_table import FieldKind
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.scale import Amount, Observation, compare
from orchtrace_corpus.corpus.model.taxonomy import Kind, Role, Sketch
from orchtrace_corpus.corpus.render.figures import plan
from orchtrace_corpus.corpus.render.figures.plan import Caption, Figure, FigureKind, Source, called
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


WIDTH = 520.0
"""The least width of a figure: on a phone of 400 pixels its text is as large as small print."""
MARGIN = 16.0
LABEL_WIDTH = 150.0
"""The largest width of the names of rows."""
HATCHED = "hatched"
"""In a legend, hatching instead of a colour."""
BASE = SIZE * 0.35
"""The distance from the middle of a line of text down to its base line."""
_LEADING = 1.3
_SWATCH = 14.0


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
    """Write the title and the subtitle; return where the rest may begin."""
    room = drawing.width - 2 * MARGIN
    title = wrap(caption.title, room, LARGE, lines=3, bold=True)
    y = write(drawing, MARGIN, MARGIN + LARGE, title, step=LARGE * _LEADING, size=LARGE, bold=True)
    subtitle = wrap(caption.subtitle, room, SMALL, lines=4)
    return write(drawing, MARGIN, y, subtitle, "muted", step=SMALL * _LEADING, size=SMALL)


def label(drawing: Drawing, middle: float, width: float, text: str, fill: str = "ink") -> None:
    """Write the name of a row in one or two lines about its middle."""
    size = SIZE if len(wrap(text, width)) <= 1 else SMALL
    lines = wrap(text, width, size)
    y = middle + size * (0.35 - (len(lines) - 1) * 0.55)
    write(drawing, MARGIN, y, lines, fill, step=size * 1.1, size=size)


def hatched_square(drawing: Drawing, x: float, y: float, side: float) -> None:
    """Draw the sign of contested values."""
    drawing.rect(x, y, side, side, "muted", radius=2)
    drawing.hatch(x, y, side, side)


def legend(drawing: Drawing, y: float, keys: Mapping[str, str]) -> float:
    """Draw coloured squares with their meanings, in as many lines as needed; return where the legend ends.

    The colour `page` has a dashed outline; the key `HATCHED` is drawn as hatching.
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
            drawing.rect(x, y, _SWATCH, _SWATCH, fill, stroke="rule" * is_page, dashed=is_page, radius=2)
        drawing.text(x + _SWATCH + 6, y + _SWATCH - 2, text, "muted", size=SMALL)
        x += width + 14
    return y + SMALL * 1.6


def finish(drawing: Drawing, y: float, caption: Caption, notes: Sequence[str] = ()) -> str:
    """Write the notes below, and give the picture its height."""
    for note in notes:
        lines = wrap(note, drawing.width - 2 * MARGIN, SMALL, lines=8)
        y = write(drawing, MARGIN, y + 4 + SMALL, lines, "muted", step=SMALL * _LEADING, size=SMALL) - SMALL
    drawing.height = y + MARGIN
    return drawing.svg(caption.title, caption.text)


_ROW = 30.0
_CELL = 34.0
_LARGEST_CELL = 48.0
_HEAD_WIDTH = 160.0
_SLANT = 0.7071  # the width and the height of a label turned by 45 degrees, as shares of its length
_BAR = 56.0
_SHADES = 4
_MAX_VALUES = 30
"""The most texts that a figure shows; rarer ones are counted together."""
_YEARS = 8
_Groups: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values of each row or column, by its title."""


class _Matrix(NamedTuple):
    """Counts by the titles of rows and columns; the titles in `aside` have no shade."""

    rows: Mapping[str, int]
    columns: Mapping[str, int]
    cells: Mapping[tuple[str, str], int]
    noun: str
    aside: frozenset[str] = frozenset()

    @property
    def largest(self) -> int:
        """The largest count in a cell that is not aside."""
        return max((count for pair, count in self.cells.items() if self.aside.isdisjoint(pair)), default=0)


def draw_coverage(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the first pair of fields that the taxonomy crosses."""
    return _draw_crossed(figure.name, caption, source.summary.crosstabs[0], source.pool)


def draw_fields(pool: Pool, attributes: Sequence[Attribute], filters: Sequence[str]) -> str:
    """Draw the papers by one field, or by two fields crossed; `filters` are named in the subtitle."""
    noun = pool.taxonomy.noun.counted(len(pool.papers))
    subtitle = f"{noun}{': ' * bool(filters)}{'; '.join(filters)}"
    if len(attributes) == 2:
        crosstab = cross(pool.papers, *attributes)
        title = crosstab_title(crosstab)
        name = "-by-".join(attribute.name for attribute in attributes)
        return _draw_crossed(name, Caption(title, subtitle, f"{title}. {subtitle}."), crosstab, pool)
    (attribute,) = attributes
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and facet.field == attribute.name:
        source, figure = Source(pool, statistics.summarise(pool)), Figure(facet.field, FigureKind.LEVELS, facet.field)
        return draw_levels(figure, plan.caption(figure, source)._replace(subtitle=subtitle), source)
    counts = count(pool.papers, attribute)
    listed = "; ".join(f"{called(value, attribute.terms)} {number:,}" for value, number in counts.counts.items())
    caption = Caption(attribute.label, subtitle, f"{subtitle}: {listed}.")
    groups = _groups(tuple(counts.counts), attribute)
    totals = _totals(groups, counts.counts)
    if _is_year(attribute):
        return _draw(attribute.name, caption, _Matrix({}, totals, {}, pool.taxonomy.noun.many), bars=True)
    by_value = {values[0] if len(values) == 1 else title: totals[title] for title, values in groups.items()}
    return _draw_ladder(attribute.name, caption, counts._replace(counts=by_value), {})


def _draw_crossed(name: str, caption: Caption, crosstab: Crosstab, pool: Pool) -> str:
    """Draw two fields crossed as a heat map with the papers of each row and column.

    Values that do not apply have no shade, which would make all others pale.
    """
    rows, columns = _groups(crosstab.row_values, crosstab.rows), _groups(crosstab.column_values, crosstab.columns)
    matrix = _Matrix(
        _totals(rows, count(pool.papers, crosstab.rows).counts),
        _totals(columns, count(pool.papers, crosstab.columns).counts),
        _cells(crosstab, rows, columns),
        pool.taxonomy.noun.many,
        frozenset(title for title, values in (*rows.items(), *columns.items()) if NO_CELLS.issuperset(values)),
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
    """Return the values of each row or column by its title: early years in one, rare texts in one."""
    given = [value for value in values if value != ABSENT]
    groups: dict[str, tuple[str, ...]] = {}
    if _is_year(attribute) and given:
        first, last = min(map(int, given)), max(map(int, given))
        begin = first if last - first < _YEARS else last - _YEARS + 2
        if early := tuple(str(year) for year in range(first, begin)):
            groups[early[0] if len(early) == 1 else f"{first} to {begin - 1}"] = early
        groups |= {str(year): (str(year),) for year in range(begin, last + 1)}
    else:
        shown = given if attribute.terms or len(given) <= _MAX_VALUES else given[: _MAX_VALUES - 1]
        for value in shown:  # two terms may have one label
            title = called(value, attribute.terms)
            groups[title] = (*groups.get(title, ()), value)
        if rest := given[len(shown) :]:
            groups[f"{len(rest):,} others"] = tuple(rest)
    if ABSENT in values:
        groups[called(ABSENT, attribute.terms)] = (ABSENT,)
    return groups


def draw_years(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the papers by year and section of the list; early years have one column together."""
    taxonomy, years = source.pool.taxonomy, source.summary.years
    columns = _groups([year for year in years.counts if year != ABSENT], years.attribute)
    cells: dict[tuple[str, str], int] = {}
    rows: dict[str, int] = {}
    section = taxonomy.section
    if section is not None:
        attributes = paper_attributes(taxonomy)
        crosstab = cross(source.pool.papers, attributes[section.field], attributes["year"])
        sections = _groups(crosstab.row_values, crosstab.rows)
        cells = _cells(crosstab, sections, columns)
        rows = {title: sum(cells[title, year] for year in columns) for title in sections}
    matrix = _Matrix(rows, _totals(columns, years.counts), cells, taxonomy.noun.many)
    return _draw(figure.name, caption, matrix, bars=True)


class _Layout:
    """The layout of a matrix: where cells begin and end, the width of a cell and of the figure, the heads of columns.

    Each head is a list of lines; with a `rise`, it is one line, turned by 45 degrees and as high as the rise.
    """

    def __init__(self, matrix: _Matrix) -> None:
        self.names = label_width(tuple(matrix.rows))
        self.left = MARGIN + self.names + 8
        widest = text_width(f"{max((*matrix.columns.values(), matrix.largest)):,}", bold=True) + 8
        totals = (text_width(f"{total:,}", bold=True) for total in matrix.rows.values())
        totals_width = max(text_width(matrix.noun, SMALL), *totals, 0.0) + 8
        room = (WIDTH - MARGIN - self.left - totals_width) / max(len(matrix.columns), 1)
        self.cell = max(_CELL, widest, min(room, _LARGEST_CELL))
        word = max((text_width(word, SMALL) for title in matrix.columns for word in title.split()), default=0.0) + 6
        self.rise = reach = 0.0
        if word <= max(self.cell, _LARGEST_CELL):
            self.cell = max(self.cell, word)
            self.heads = [wrap(title, self.cell, SMALL, lines=3) for title in matrix.columns]
        else:
            self.heads = [wrap(title, _HEAD_WIDTH, SMALL, lines=1) for title in matrix.columns]
            slants = [text_width(lines[0], SMALL) * _SLANT for lines in self.heads]
            self.rise = max(slants) + SMALL
            reach = max(self.middle(index) + slant for index, slant in enumerate(slants)) + SMALL * _SLANT
        self.right = self.left + self.cell * len(matrix.columns) + totals_width
        self.width = max(WIDTH, self.right + MARGIN, reach + MARGIN)

    def middle(self, column: int) -> float:
        """Return the middle of a column."""
        return self.left + (column + 0.5) * self.cell


def _draw(name: str, caption: Caption, matrix: _Matrix, *, bars: bool = False) -> str:
    """Draw a matrix, with the total of each column as a bar above it or in a row below."""
    layout = _Layout(matrix)
    drawing = Drawing(name, layout.width)
    y = head(drawing, caption) + 8
    if bars:
        y = _bars(drawing, y, layout, tuple(matrix.columns.values()))
    y = _heads(drawing, y, layout)
    if matrix.rows:
        drawing.text(layout.right, y - 6, matrix.noun, "muted", size=SMALL, anchor="end")
    for title, total in matrix.rows.items():
        with drawing.group():
            label(drawing, y + _ROW / 2, layout.names, title, "muted" if title in matrix.aside else "ink")
            for index, column in enumerate(matrix.columns):
                _cell(drawing, layout.left + index * layout.cell + 1.5, y, layout.cell - 3, matrix, (title, column))
            drawing.text(layout.right, y + _ROW / 2 + BASE, f"{total:,}", anchor="end", bold=True)
        y += _ROW
    if not bars:
        with drawing.group():
            label(drawing, y + _ROW / 2, layout.names, matrix.noun, "muted")
            for index, total in enumerate(matrix.columns.values()):
                drawing.text(layout.middle(index), y + _ROW / 2 + BASE, f"{total:,}", anchor="middle", bold=True)
        y += _ROW
    return finish(drawing, legend(drawing, y + 10, _keys(matrix)), caption)


def _bars(drawing: Drawing, top: float, layout: _Layout, totals: Sequence[int]) -> float:
    """Draw a bar above each column, with its total; return where the heads of columns may begin."""
    largest = max(totals, default=0)
    base = top + SIZE + _BAR
    with drawing.group():
        for index, total in enumerate(totals):
            height = _BAR * total / max(largest, 1)
            if total:
                drawing.rect(layout.left + index * layout.cell + 6, base - height, layout.cell - 12, height, "series0")
            drawing.text(layout.middle(index), base - height - 4, f"{total:,}", anchor="middle", bold=True)
    drawing.line(layout.left, base, layout.left + layout.cell * len(totals), base, "rule")
    return base + 4


def _heads(drawing: Drawing, top: float, layout: _Layout) -> float:
    """Write the heads of the columns; return where the cells begin."""
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


def _cell(drawing: Drawing, x: float, y: float, width: float, matrix: _Matrix, pair: tuple[str, str]) -> None:
    """Draw a count on its shade, dashed if it is 0; a cell that is aside has no shade."""
    number, is_aside = matrix.cells[pair], not matrix.aside.isdisjoint(pair)
    shade = 0 if is_aside else heat(number, matrix.largest)
    if is_aside or shade:
        drawing.rect(x, y + 1.5, width, _ROW - 3, f"heat{shade}" if shade else "plain", radius=3)
    else:
        drawing.rect(x, y + 1.5, width, _ROW - 3, "page", stroke="rule", dashed=True, radius=3)
    ink = "ink" if shade else "muted"
    if shade == _SHADES:
        ink = "on-heat4"
    drawing.text(x + width / 2, y + _ROW / 2 + BASE, f"{number:,}", ink, anchor="middle")


def _keys(matrix: _Matrix) -> dict[str, str]:
    """Return the meaning of each shade."""
    if not matrix.rows:
        return {}
    keys, before = {"page": "0"}, 0
    for shade in range(1, _SHADES + 1):
        low, high = before + 1, -(-shade * matrix.largest // _SHADES)
        if low <= high:
            keys[f"heat{shade}"] = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        before = high
    if matrix.aside:
        keys["plain"] = ", ".join(sorted(matrix.aside))
    return keys


_RUNG = 32.0
_THICKNESS = 16.0
_STACK_WIDTH = 110.0
_LEVEL_WIDTH = 84.0
_CONTESTED = "contested: another reading is on record"


def draw_terms(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw a facet as a ladder: a rung for each term, as long as it has papers."""
    return _draw_ladder(figure.name, caption, source.counts(figure.field), source.contested.get(figure.field, {}))


def _draw_ladder(name: str, caption: Caption, counts: Counts, contested: Mapping[str, int]) -> str:
    """Draw a bar for each value; the part of it that belongs to contested papers is hatched.

    Empty and sparse values are marked on axes only: a description that is rare is no gap.
    """
    facet = counts.attribute.facet
    is_axis = facet is not None and facet.role is Role.AXIS
    labels, marks = [], []
    for value, number in counts.counts.items():
        labels.append(called(value, counts.attribute.terms))
        notes = ["sparse" if number else "empty"] * (is_axis and number <= SPARSE_LIMIT and value not in NO_CELLS)
        notes += [f"{contested[value]:,} contested"] if contested.get(value) else []
        marks.append(", ".join(notes))
    names = label_width(labels)
    left = MARGIN + names + 10
    digits = text_width(f"{max(counts.counts.values(), default=0):,}", bold=True)
    room = WIDTH - MARGIN - left - digits - max((text_width(mark, SMALL) for mark in marks), default=0.0) - 16
    largest = max((number for value, number in counts.counts.items() if value not in NO_CELLS), default=0)
    drawing = Drawing(name, WIDTH)
    top = y = head(drawing, caption) + 10
    for text, mark, (value, number) in zip(labels, marks, counts.counts.items(), strict=True):
        middle, is_aside = y + _RUNG / 2, value in NO_CELLS
        length = 0.0 if is_aside else room * number / max(largest, 1)
        fill = "muted" if is_aside else "ink"
        with drawing.group():
            label(drawing, middle, names, text, fill)
            if length:
                drawing.rect(left, middle - _THICKNESS / 2, length, _THICKNESS, "series0")
                if contested.get(value):
                    part = length * contested[value] / number
                    drawing.hatch(left + length - part, middle - _THICKNESS / 2, part, _THICKNESS)
            elif not is_aside:
                length = room
                drawing.line(left, middle, left + room, middle, "rule", dashed=True)
            drawing.text(left + length + 8, middle + BASE, f"{number:,}", fill, bold=not is_aside)
            if mark:
                drawing.text(left + length + 12 + digits, middle + BASE, mark, "muted", size=SMALL)
        y += _RUNG
    drawing.line(left, top, left, y, "rule")
    if any(contested.values()):
        y = legend(drawing, y + 10, {HATCHED: _CONTESTED})
    return finish(drawing, y + 4, caption)


def draw_levels(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw a facet of kind `levels`: for each term its papers by level, as numbers and as a bar."""
    levels = source.levels(figure.field)
    facet = levels.facet
    labels = [called(term.id, facet.terms) for term in facet.terms]
    disputed = [source.contested.get(term.id, {}) for term in facet.terms]
    is_contested = any(any(by_level.values()) for by_level in disputed)
    columns = []
    for level in facet.levels:
        numbers = [levels.counts[term.id][level.id] for term in facet.terms]
        columns.append((wrap(level.label, _LEVEL_WIDTH, SMALL), numbers))
    if is_contested:
        columns.append(([], [sum(by_level.values()) for by_level in disputed]))
    widths = []
    for lines, numbers in columns:
        texts = (*lines, *(f"{number:,}" for number in numbers))
        widths.append(max(map(text_width, texts)) + (8 if lines else 22))
    names = label_width(labels)
    left = MARGIN + names + 8
    _, *ends = accumulate(widths, initial=left)
    start = left + sum(widths) + 14
    drawing = Drawing(figure.name, max(WIDTH, start + _STACK_WIDTH + MARGIN))
    largest = max((sum(by_level.values()) for by_level in levels.counts.values()), default=0)
    pixels = (drawing.width - MARGIN - start) / max(largest, 1)
    top = y = _level_heads(drawing, head(drawing, caption) + 10, [lines for lines, _ in columns], ends)
    for index, (term, by_level) in enumerate(zip(facet.terms, disputed, strict=True)):
        with drawing.group():
            label(drawing, y + _RUNG / 2, names, labels[index])
            for (_, numbers), x in zip(columns, ends, strict=True):
                number, fill = numbers[index], "ink" if numbers[index] else "muted"
                drawing.text(x, y + _RUNG / 2 + BASE, f"{number:,}", fill, anchor="end", bold=bool(number))
            counts = levels.counts[term.id]
            pieces = [(counts[level.id], by_level.get(level.id, 0)) for level in facet.levels]
            _stack(drawing, start, y + (_RUNG - _THICKNESS) / 2, pixels, pieces)
        y += _RUNG
    drawing.line(start, top, start, y, "rule")
    keys: dict[str, str] = {}
    for index, level in enumerate(facet.levels):
        keys[_series(index)] = ", ".join(filter(None, (keys.get(_series(index)), level.label)))
    if is_contested:
        keys[HATCHED] = _CONTESTED
    return finish(drawing, legend(drawing, y + 10, keys), caption)


def _level_heads(drawing: Drawing, top: float, heads: Sequence[Sequence[str]], ends: Sequence[float]) -> float:
    """Write the levels above their numbers, a hatched square above those contested; return where the rows begin."""
    bottom = top + max(len(lines) for lines in heads) * SMALL * 1.15
    with drawing.group():
        for lines, x in zip(heads, ends, strict=True):
            for index, line in enumerate(reversed(lines)):
                drawing.text(x, bottom - index * SMALL * 1.15, line, "muted", size=SMALL, anchor="end")
            if not lines:
                hatched_square(drawing, x - SMALL, bottom - SMALL + 2, SMALL)
    return bottom + 6


def _stack(drawing: Drawing, x: float, y: float, pixels: float, pieces: Sequence[tuple[int, int]]) -> None:
    """Draw a piece for the count of each level; the contested part at its end is hatched."""
    before = 0
    for index, (number, disputed) in enumerate(pieces):
        begin, end = round(x + before * pixels), round(x + (before + number) * pixels)
        if number:
            drawing.rect(begin, y, end - begin, _THICKNESS, _series(index))
        if disputed:
            part = round(min(disputed, number) * pixels)
            drawing.hatch(end - part, y, part, _THICKNESS)
        before += number


def _series(index: int) -> str:
    return f"series{index % SERIES}"


_GAP = 28.0
_PADDING = 11.0
_WIDTH = (WIDTH - 2 * MARGIN - _GAP) / 2
_INNER = _WIDTH - 2 * _PADDING
_LINE = 19.0
_ARROW = 5.0
_Row: TypeAlias = tuple[str, str, int]
"""A line of a box: its text, a number at its right end or an empty text, and the size of both."""


def draw_screening(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the flow of records through screening; figures that the corpus does not have are "not recorded".

    With runs of searches, it is the flow of an updated review, whose previous version is the published pool.

    Reference: figure 1 of Page et al., PRISMA 2020 (BMJ 372:n71).
    """
    steps = _steps(source) if source.screening is None else _steps_since(source, source.screening)
    drawing = Drawing(figure.name, WIDTH)
    y = head(drawing, caption) + 10
    for index, boxes in enumerate(steps):
        height = max(map(len, boxes)) * _LINE + 2 * _PADDING
        for place, rows in enumerate(boxes):
            x = MARGIN + place * (_WIDTH + _GAP)
            with drawing.group():
                _box(drawing, x, y, height, rows)
            if place:  # only records added by hand, next to the last step but one, come in from the side
                inward = boxes is steps[-2] and source.screening is not None
                _arrow(drawing, x - _GAP * (not inward), y + height / 2, -1 if inward else 1, 0)
        y += height
        if index < len(steps) - 1:
            _arrow(drawing, MARGIN + _WIDTH / 2, y, 0, 1)
            y += _GAP
    promoted = sum(exclusion.promoted_to is not None for exclusion in source.pool.exclusions)
    notes = (f"Taken in later, and counted among the retained, too: {promoted:,} of the excluded.",) if promoted else ()
    return finish(drawing, y, caption, notes)


def _steps(source: Source) -> list[list[list[_Row]]]:
    """Return the boxes of a review without runs of searches, step by step."""
    retained, excluded, stages = len(source.pool.papers), len(source.pool.exclusions), source.stages
    by_stage: dict[str, int] = {}
    if stages is not None:
        by_stage = {called(value, stages.attribute.terms): number for value, number in stages.counts.items()}
    return [
        [_rows("Records identified", None), _rows("Removed before screening", None)],
        [_rows("Records audited", retained + excluded), _rows("Excluded", excluded, by_stage)],
        [_rows("Retained", retained)],
    ]


def _steps_since(source: Source, screening: "Screening") -> list[list[list[_Row]]]:
    """Return the boxes of an updated review, step by step."""
    whole, by_hand = screening.whole, screening.by_hand
    terms = source.stages.attribute.terms if source.stages is not None else ()
    by_stage: Counter[str] = Counter()
    for (stage, _), records in whole.excluded.items():
        by_stage[called(stage, terms)] += records
    removed = {"Duplicate records": whole.repeated, "Known to the corpus": whole.known, "Other": whole.refused}
    screened = {"Included, tags open": whole.coding, "Awaiting a decision": whole.awaiting}
    included = [_rows("New studies included", whole.included + by_hand.included)]
    if by_hand.new:
        studies = {"From these searches": whole.included, "Added by hand": by_hand.included}
        decided = {
            "Excluded": sum(by_hand.excluded.values()),
            "Included, tags open": by_hand.coding,
            "Awaiting a decision": by_hand.awaiting,
        }
        added = _rows("Records added by hand", by_hand.new, decided)
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
        return [*((line, "", SIZE) for line in wrap(title, _INNER)), (plan.NOT_RECORDED, "", SIZE)]
    rows: list[_Row] = []
    for text, records, size in ((title, number, SIZE), *((*part, SMALL) for part in parts.items())):
        shown = f"{records:,}"
        lines = wrap(text, _INNER - text_width(shown, size, bold=True) - 8, size, bold=True)
        rows += [(line, "" if index else shown, size) for index, line in enumerate(lines)]
    return rows


def _box(drawing: Drawing, x: float, y: float, height: float, rows: Sequence[_Row]) -> None:
    """Draw a box with its lines in the middle, dashed if its number is not recorded."""
    is_recorded = bool(rows[0][1])
    drawing.rect(x, y, _WIDTH, height, "plain", stroke="rule", dashed=not is_recorded, radius=4)
    base = y + (height - len(rows) * _LINE) / 2 + _LINE / 2 + BASE
    for text, number, size in rows:
        is_head = is_recorded and size == SIZE
        fill = "ink" if size == SIZE and text != plan.NOT_RECORDED else "muted"
        drawing.text(x + _PADDING, base, text, fill, size=size, bold=is_head)
        if number:
            drawing.text(x + _WIDTH - _PADDING, base, number, fill, size=size, bold=is_head, anchor="end")
        base += _LINE


def _arrow(drawing: Drawing, x: float, y: float, across: int, down: int) -> None:
    """Draw an arrow over the gap between two boxes, to the right or down."""
    end_x, end_y = x + across * (_GAP - 1), y + down * (_GAP - 1)
    drawing.line(x, y, end_x, end_y, "muted")
    back_x, back_y = end_x - across * 7, end_y - down * 7
    barbs = ((back_x + sign * down * _ARROW, back_y + sign * across * _ARROW) for sign in (1, -1))
    drawing.path(((end_x, end_y), *barbs), "muted")


_PANEL_ROW = 54.0
_SKETCH_BOX = 26.0


def draw_sketches(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw each term of a facet as its sketch, with its definition, two terms next to each other."""
    facet = next(facet for facet in source.pool.taxonomy.papers if facet.field == figure.field)
    panels = [(term, term.sketch) for term in facet.terms if term.sketch]
    drawing = Drawing(figure.name, WIDTH)
    y = head(drawing, caption) + 10
    for start in range(0, len(panels), 2):
        pair = panels[start : start + 2]
        names = [wrap(called(term.id, facet.terms), _INNER, bold=True) for term, _ in pair]
        texts = [wrap(term.definition, _INNER, SMALL, lines=5) for term, _ in pair]
        drawn_height = max(len(sketch.rows) for _, sketch in pair) * _PANEL_ROW
        named_height = max(map(len, names)) * _LINE
        height = named_height + drawn_height + max(map(len, texts)) * _LINE + 2 * _PADDING
        for place, ((_, sketch), name, text) in enumerate(zip(pair, names, texts, strict=True)):
            x = MARGIN + place * (_WIDTH + _GAP)
            with drawing.group():
                drawing.rect(x, y, _WIDTH, height, "page", stroke="rule", radius=4)
                left, top = x + _PADDING, y + _PADDING + named_height
                write(drawing, left, y + _PADDING + SIZE, name, step=_LINE, bold=True)
                _sketch(drawing, left, top, drawn_height, sketch)
                write(drawing, left, top + drawn_height + SMALL, text, "muted", step=_LINE, size=SMALL)
        y += height + 12
    return finish(drawing, y, caption)


def _sketch(drawing: Drawing, left: float, top: float, height: float, sketch: Sketch) -> None:
    """Draw links first and boxes over them; texts are cut to the size of their boxes."""
    boxes: list[tuple[float, float, float, str]] = []
    for at, row in enumerate(sketch.rows):
        widths = [text_width(text.strip("*"), SMALL) + 8 for text in row]
        part = min(1.0, (_INNER - 6 * len(row)) / sum(widths))
        gap = (_INNER - part * sum(widths)) / len(row)
        middle = top + height * (at + 0.5) / len(sketch.rows)
        x = left
        for text, width in zip(row, widths, strict=True):
            x += gap + part * width
            boxes.append((x - (gap + part * width) / 2, middle, part * width, text))
    for first, last, is_arrow in sketch.links:
        (x1, y1, width1, _), (x2, y2, width2, _) = boxes[first - 1], boxes[last - 1]
        if y1 == y2:
            x1, x2 = x1 + copysign(width1 / 2, x2 - x1), x2 - copysign(width2 / 2, x2 - x1)
        else:
            reach = copysign(_SKETCH_BOX / 2, y2 - y1)
            y1, y2 = y1 + reach, y2 - reach
        drawing.line(x1, y1, x2, y2, "muted")
        length = hypot(x2 - x1, y2 - y1)
        if is_arrow and length:
            along_x, along_y = 7 * (x2 - x1) / length, 7 * (y2 - y1) / length
            barbs = ((x2 - along_x + sign * along_y / 2, y2 - along_y - sign * along_x / 2) for sign in (1, -1))
            drawing.path(((x2, y2), *barbs), "muted")
    for x, y, width, text in boxes:
        fill, ink = ("heat4", "on-heat4") if text.startswith("*") else ("plain", "ink")
        left, top, is_open = x - width / 2, y - _SKETCH_BOX / 2, text.endswith("?")
        drawing.rect(left, top, width, _SKETCH_BOX, fill, stroke="rule", dashed=is_open, radius=4)
        shown = wrap(text.strip("*"), width, SMALL, lines=1)[0]
        drawing.text(x, y + SMALL * 0.35, shown, ink, size=SMALL, anchor="middle")


_SCALE_ROW = 27.0
_MARK = 5.0
_NAMES_WIDTH = 300.0
_PLOT_WIDTH = 150.0
_LEGEND = (
    "Squares: systems in use; circles: experiments. Filled: read in the publication itself; hollow: a report, or "
    "second-hand. A line from the left edge: a limit, no count. A number leads to its source."
)


class _Axis:
    """A logarithmic axis that begins at `left`; numbers too small for it are at its left end."""

    def __init__(self, left: float, width: float, amounts: Sequence[Amount]) -> None:
        exponents = [log10(value) for amount in amounts for value in (amount.low, amount.high) if value > 0]
        self.first = floor(min([0.0, *exponents]))
        decades = max([1.0, *(exponent - self.first for exponent in exponents)])
        self.last = self.first + floor(decades)
        self.left = left
        self.decade_width = width / decades

    def at(self, value: float) -> float:
        """Return the position of a number."""
        return self.left + self.decade_width * max((log10(value) if value > 0 else self.first) - self.first, 0.0)


def draw_scale(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw the first quantity that is known of systems in use and of experiments, a row for each system."""
    comparisons = compare(source.scale)
    if not comparisons:
        drawing = Drawing(figure.name, WIDTH)
        return finish(drawing, head(drawing, caption), caption)
    groups = {"In use": comparisons[0].deployments, "In experiments": comparisons[0].academic}
    shown = [observation for group in groups.values() for observation in group]
    names = label_width([_name(observation) for observation in shown], _NAMES_WIDTH)
    left = MARGIN + names + 14
    numbers = max(text_width(amount(observation.value)) for observation in shown)
    drawing = Drawing(figure.name, max(WIDTH, left + _PLOT_WIDTH + 16 + numbers + MARGIN))
    right = drawing.width - MARGIN - numbers - 16
    axis = _Axis(left, right - left, [observation.value for observation in shown if observation.value])
    top = head(drawing, caption) + SMALL + 8
    _grid(drawing, axis, top, top + 6 + _SCALE_ROW * (len(shown) + len(groups)))
    y = top + 6
    for title, group in groups.items():
        drawing.text(MARGIN, y + _SCALE_ROW / 2 + BASE, title, bold=True)
        y += _SCALE_ROW
        for observation in group:
            middle = y + _SCALE_ROW / 2
            with drawing.group(observation.sources[0]):
                label(drawing, middle, names, _name(observation))
                if observation.value:
                    _mark(drawing, axis, middle, observation.value, observation, is_in_use=title == "In use")
                fill = "ink" if observation.value else "muted"
                drawing.text(drawing.width - MARGIN, middle + BASE, amount(observation.value), fill, anchor="end")
            y += _SCALE_ROW
    units = ", ".join(dict.fromkeys(observation.unit for observation in shown))
    return finish(drawing, y, caption, (_LEGEND, f"Counted as the sources do: {units}."))


def _name(observation: Observation) -> str:
    """Return the name of a system, with its phase if it has one."""
    return f"{observation.system}, {observation.phase}" if observation.phase else observation.system


def _grid(drawing: Drawing, axis: _Axis, top: float, bottom: float) -> None:
    """Draw a line for each power of ten, with its number in short where there is room."""
    ticks = {}
    for decade in range(axis.first, axis.last + 1):
        ticks[decade] = f"1e{decade}"
        if decade < 0:
            ticks[decade] = f"{10.0**decade:.{-decade}f}"
        elif decade < 15:
            ticks[decade] = f"1{'0' * (decade % 3)}{('', 'k', 'M', 'G', 'T')[decade // 3]}"
    widest = max(text_width(text, SMALL) for text in ticks.values()) + 4
    step = max(ceil(widest / axis.decade_width), 1)
    for decade, text in ticks.items():
        x = axis.left + (decade - axis.first) * axis.decade_width
        drawing.line(x, top + 4, x, bottom, "rule", dashed=True)
        if (decade - axis.first) % step == 0:
            drawing.text(x, top, text, "muted", size=SMALL, anchor="middle")


def _mark(drawing: Drawing, axis: _Axis, y: float, value: Amount, observation: Observation, *, is_in_use: bool) -> None:
    """Draw a value on the axis: its ends, and a line between them or, for a limit, from the left edge."""
    color = "series1" if is_in_use else "series0"
    low, high = axis.at(value.low), axis.at(value.high)
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
