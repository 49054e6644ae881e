"""Figures that are no tables: the flow of screening, sketches of terms, the scale of systems on a logarithmic axis."""

from collections.abc import Sequence
from math import ceil, hypot, log10
from typing import TypeAlias

from orchtrace_corpus.base.text.drawing import SIZE, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.corpus.model.scale import Amount, Observation, compare
from orchtrace_corpus.corpus.model.taxonomy import Sketch
from orchtrace_corpus.corpus.render.figures.plan import NOT_RECORDED, Caption, Figure, Source, called
from orchtrace_corpus.corpus.render.figures.sheet import BASE, MARGIN, WIDTH, finish, head, label, label_width
from orchtrace_corpus.corpus.render.scale import amount

_GAP = 28.0
_PADDING = 11.0
_WIDTH = (WIDTH - 2 * MARGIN - _GAP) / 2
_INNER = _WIDTH - 2 * _PADDING
_LINE = 19.0
_ARROW = 5.0
_STEPS_SINCE = 5
"""How many rows of boxes the flow of an updated review has."""

_Row: TypeAlias = tuple[str, str, int]
"""A line of a box: its text, a number at its right end, possibly empty, and the size of both."""


def draw_screening(figure: Figure, caption: Caption, source: Source) -> str:
    """The flow of records as far as the corpus records it, after figure 1 of Page et al., PRISMA 2020 (BMJ 372:n71).

    A corpus holds decided records. How many were found, and how many fell away before anybody decided
    on them, is shown as not recorded. With runs of searches on record, the flow is that of an updated review: what
    was published is the previous one, and stays as it was.
    """
    retained, excluded, stages = len(source.pool.papers), len(source.pool.exclusions), source.stages
    parts: tuple[tuple[str, int], ...] = ()
    if stages is not None:
        parts = tuple((called(value, stages.attribute.terms), found) for value, found in stages.counts.items())
    steps: tuple[tuple[list[_Row], ...], ...] = _steps_since(source) or (
        (_unrecorded("Records identified"), _unrecorded("Removed before screening")),
        (_recorded("Records audited", retained + excluded), _recorded("Excluded", excluded, parts)),
        (_recorded("Retained", retained),),
    )
    drawing = Drawing(figure.name, WIDTH)
    y = head(drawing, caption) + 10
    for index, boxes in enumerate(steps):
        height = max(map(len, boxes)) * _LINE + 2 * _PADDING
        for place, rows in enumerate(boxes):
            x = MARGIN + place * (_WIDTH + _GAP)
            with drawing.group():
                _box(drawing, x, y, height, rows)
            if place:
                # What no search found comes in from the side.
                inward = boxes is steps[-2] and len(steps) == _STEPS_SINCE
                _arrow(drawing, x - _GAP * (not inward), y + height / 2, -1 if inward else 1, 0)
        y += height
        if index < len(steps) - 1:
            _arrow(drawing, MARGIN + _WIDTH / 2, y, 0, 1)
            y += _GAP
    promoted = sum(exclusion.promoted_to is not None for exclusion in source.pool.exclusions)
    notes = (f"Taken in later, and counted among the retained, too: {promoted:,} of the excluded.",) if promoted else ()
    return finish(drawing, y, caption, notes)


def _steps_since(source: Source) -> tuple[tuple[list[_Row], ...], ...]:
    """The boxes of an updated review; none where no run is on record."""
    screening = source.screening
    if screening is None:
        return ()
    whole, stages = screening.whole, source.stages
    terms = stages.attribute.terms if stages is not None else ()
    excluded: dict[str, int] = {}
    for (stage, _), count in whole.excluded.items():
        excluded[called(stage, terms)] = excluded.get(called(stage, terms), 0) + count
    identified = _unrecorded("Records identified")
    if whole.found is not None:
        identified = _recorded("Records identified", whole.found, tuple(whole.by_source.items()))
    removed = (("Duplicate records", whole.repeated), ("Known to the corpus", whole.known), ("Other", whole.refused))
    by_hand = screening.by_hand
    studies = (("From these searches", whole.included), ("Added by hand", by_hand.included)) if by_hand.new else ()
    others = (
        ("Excluded", sum(by_hand.excluded.values())),
        ("Included, tags open", by_hand.coding),
        ("Awaiting a decision", by_hand.awaiting),
    )
    added = [_recorded("Records added by hand", by_hand.new, others)] if by_hand.new else []
    screened = (("Included, tags open", whole.coding), ("Awaiting a decision", whole.awaiting))
    return (
        (
            _recorded("Studies included in previous version of review", screening.included),
            _recorded("Excluded in previous version", screening.excluded),
        ),
        (identified, _recorded("Records removed before screening", whole.removed, removed)),
        (
            _recorded("Records screened", whole.screened, screened),
            _recorded("Records excluded", sum(excluded.values()), tuple(excluded.items())),
        ),
        (_recorded("New studies included", whole.included + by_hand.included, studies), *added),
        (_recorded("Total studies included in review", len(source.pool.papers)),),
    )


def _unrecorded(title: str) -> list[_Row]:
    return [*((line, "", SIZE) for line in wrap(title, _INNER)), (NOT_RECORDED, "", SIZE)]


def _recorded(title: str, number: int, parts: Sequence[tuple[str, int]] = ()) -> list[_Row]:
    """The lines of a box: its title with its number, then what they are made up of."""
    rows: list[_Row] = []
    for text, found, size in ((title, number, SIZE), *((part, found, SMALL) for part, found in parts)):
        shown = f"{found:,}"
        lines = wrap(text, _INNER - text_width(shown, size, bold=True) - 8, size, bold=True)
        rows += [(line, "" if index else shown, size) for index, line in enumerate(lines)]
    return rows


def _box(drawing: Drawing, x: float, y: float, height: float, rows: Sequence[_Row]) -> None:
    """A box with its lines in the middle; dashed where there is nothing on record."""
    is_recorded = bool(rows[0][1])
    drawing.rect(x, y, _WIDTH, height, "plain", stroke="rule", dashed=not is_recorded, radius=4)
    base = y + (height - len(rows) * _LINE) / 2 + _LINE / 2 + BASE
    for text, number, size in rows:
        is_head = is_recorded and size == SIZE
        fill = "ink" if size == SIZE and text != NOT_RECORDED else "muted"
        drawing.text(x + _PADDING, base, text, fill, size=size, bold=is_head)
        if number:
            drawing.text(x + _WIDTH - _PADDING, base, number, fill, size=size, bold=is_head, anchor="end")
        base += _LINE


def _arrow(drawing: Drawing, x: float, y: float, across: int, down: int) -> None:
    """An arrow over the gap between two boxes, to the right or down."""
    end_x, end_y = x + across * (_GAP - 1), y + down * (_GAP - 1)
    drawing.line(x, y, end_x, end_y, "muted")
    back_x, back_y = end_x - across * 7, end_y - down * 7
    barbs = ((back_x + sign * down * _ARROW, back_y + sign * across * _ARROW) for sign in (1, -1))
    drawing.path(((end_x, end_y), *barbs), "muted")


_PANEL_ROW = 54.0
_SKETCH_BOX = 26.0


def draw_sketches(figure: Figure, caption: Caption, source: Source) -> str:
    """Draw each term of a facet as its sketch, with its definition; two terms stand beside each other."""
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
                for at, line in enumerate(name):
                    drawing.text(x + _PADDING, y + _PADDING + SIZE + at * _LINE, line, bold=True)
                _sketch(drawing, x + _PADDING, y + _PADDING + named_height, drawn_height, sketch)
                for at, line in enumerate(text):
                    base = y + _PADDING + named_height + drawn_height + SMALL + at * _LINE
                    drawing.text(x + _PADDING, base, line, "muted", size=SMALL)
        y += height + 12
    return finish(drawing, y, caption)


def _sketch(drawing: Drawing, left: float, top: float, height: float, sketch: Sketch) -> None:
    """Draw links first and boxes over them; what does not fit into its box is cut."""
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
            sign = 1 if x2 > x1 else -1
            x1, x2 = x1 + sign * width1 / 2, x2 - sign * width2 / 2
        else:
            sign = 1 if y2 > y1 else -1
            y1, y2 = y1 + sign * _SKETCH_BOX / 2, y2 - sign * _SKETCH_BOX / 2
        drawing.line(x1, y1, x2, y2, "muted")
        length = hypot(x2 - x1, y2 - y1)
        if is_arrow and length:
            along_x, along_y = 7 * (x2 - x1) / length, 7 * (y2 - y1) / length
            barbs = ((x2 - along_x + sign * along_y / 2, y2 - along_y - sign * along_x / 2) for sign in (1, -1))
            drawing.path(((x2, y2), *barbs), "muted")
    for x, y, width, text in boxes:
        is_marked, is_open = text.startswith("*"), text.endswith("?")
        fill, ink = ("heat4", "on-heat4") if is_marked else ("plain", "ink")
        drawing.rect(
            x - width / 2, y - _SKETCH_BOX / 2, width, _SKETCH_BOX, fill, stroke="rule", dashed=is_open, radius=4
        )
        shown = wrap(text.strip("*"), width, SMALL, lines=1)[0]
        drawing.text(x, y + SMALL * 0.35, shown, ink, size=SMALL, anchor="middle")


_ROW = 27.0
_MARK = 5.0
_NAMES_WIDTH = 200.0
_PLOT_WIDTH = 170.0
_LEGEND = (
    "Squares: systems in use; circles: experiments. Filled: read in the publication itself; hollow: a report, or "
    "second-hand. A line from the left edge: a limit, no count. A number leads to its source."
)


class _Axis:
    """A logarithmic axis from `left` on; numbers too small for it stand at its left end."""

    def __init__(self, left: float, width: float, amounts: Sequence[Amount]) -> None:
        positive = [value for amount in amounts for value in (amount.low, amount.high) if value > 0]
        self.first = 0
        while any(value < 10.0**self.first for value in positive):
            self.first -= 1
        self.last = self.first + 1
        while any(value > 10.0**self.last for value in positive):
            self.last += 1
        self.left = left
        self.decade_width = width / (self.last - self.first)

    def at(self, value: float) -> float:
        """Where a number stands."""
        return self.left + self.decade_width * max((log10(value) if value > 0 else self.first) - self.first, 0.0)


def draw_scale(figure: Figure, caption: Caption, source: Source) -> str:
    """The first quantity that is known of systems in use and of experiments, a row for each."""
    comparisons = compare(source.scale)
    if not comparisons:
        drawing = Drawing(figure.name, WIDTH)
        return finish(drawing, head(drawing, caption), caption)
    groups = (comparisons[0].deployments, comparisons[0].academic)
    shown = [observation for group in groups for observation in group]
    names = label_width([_name(observation) for observation in shown], _NAMES_WIDTH)
    left = MARGIN + names + 14
    numbers = max(text_width(amount(observation.value)) for observation in shown)
    drawing = Drawing(figure.name, max(WIDTH, left + _PLOT_WIDTH + 16 + numbers + MARGIN))
    right = drawing.width - MARGIN - numbers - 16
    axis = _Axis(left, right - left, [observation.value for observation in shown if observation.value])
    top = head(drawing, caption) + SMALL + 8
    bottom = top + 6 + _ROW * (len(shown) + len(groups))
    _grid(drawing, axis, top, bottom)
    y = top + 6
    for title, group, is_in_use in zip(("In use", "In experiments"), groups, (True, False), strict=True):
        drawing.text(MARGIN, y + _ROW / 2 + BASE, title, bold=True)
        y += _ROW
        for observation in group:
            middle = y + _ROW / 2
            with drawing.group(observation.sources[0]):
                label(drawing, MARGIN, middle, names, _name(observation))
                if observation.value:
                    _mark(drawing, axis, middle, observation.value, observation, is_in_use)
                text = amount(observation.value)
                fill = "ink" if observation.value else "muted"
                drawing.text(drawing.width - MARGIN, middle + BASE, text, fill, anchor="end")
            y += _ROW
    units = ", ".join(dict.fromkeys(observation.unit for observation in shown))
    return finish(drawing, y, caption, (_LEGEND, f"Counted as the sources do: {units}."))


def _name(observation: Observation) -> str:
    """Return the system, with the phase of a system that has a row for each."""
    return f"{observation.system}, {observation.phase}" if observation.phase else observation.system


def _grid(drawing: Drawing, axis: _Axis, top: float, bottom: float) -> None:
    """A line for each power of ten, with its number where there is room for it."""
    ticks = {decade: _power(decade) for decade in range(axis.first, axis.last + 1)}
    widest = max(text_width(text, SMALL) for text in ticks.values()) + 4
    step = max(ceil(widest / axis.decade_width), 1)
    for decade, text in ticks.items():
        x = axis.left + (decade - axis.first) * axis.decade_width
        drawing.line(x, top + 4, x, bottom, "rule", dashed=True)
        if (decade - axis.first) % step == 0:
            drawing.text(x, top, text, "muted", size=SMALL, anchor="middle")


def _mark(drawing: Drawing, axis: _Axis, y: float, value: Amount, observation: Observation, is_in_use: bool) -> None:
    color = "series1" if is_in_use else "series0"
    low, high = axis.at(value.low), axis.at(value.high)
    if observation.is_limit:
        drawing.line(axis.left, y, high, y, color)
    elif low < high:
        drawing.line(low, y, high, y, color)
    for x in dict.fromkeys((low, high)):
        fill = color if observation.verified else "page"
        if is_in_use:
            drawing.rect(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK, fill, stroke=color)
        else:
            drawing.circle(x, y, _MARK, fill, stroke=color)


def _power(decade: int) -> str:
    """A power of ten in its shortest form."""
    if decade < 0:
        return f"{10.0**decade:.{-decade}f}"
    return f"1{'0' * (decade % 3)}{('', 'k', 'M', 'G', 'T')[decade // 3]}" if decade < 15 else f"1e{decade}"
