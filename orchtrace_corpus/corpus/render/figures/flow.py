"""The way from identified to retained records, in the form of a PRISMA diagram."""

from collections.abc import Sequence
from typing import TypeAlias

from orchtrace_corpus.base.text.drawing import SIZE, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.corpus.render.figures.captions import NOT_RECORDED, Caption, called
from orchtrace_corpus.corpus.render.figures.plan import Source
from orchtrace_corpus.corpus.render.figures.sheet import MARGIN, WIDTH, finish, head

_GAP = 28.0
_PADDING = 11.0
_WIDTH = (WIDTH - 2 * MARGIN - _GAP) / 2
_INNER = _WIDTH - 2 * _PADDING
_LINE = 19.0
_ARROW = 5.0

_Row: TypeAlias = tuple[str, str, int]
"""A line of a box: its text, a number at its right end, possibly empty, and the size of both."""


def draw_screening(name: str, caption: Caption, source: Source) -> str:
    """The flow of records as far as the corpus records it, after figure 1 of Page et al., PRISMA 2020 (BMJ 372:n71).

    A corpus holds decided records. How many were found, and how many fell away before anybody decided
    on them, is shown as not recorded.
    """
    retained, excluded, stages = len(source.pool.papers), len(source.pool.exclusions), source.stages
    parts: tuple[tuple[str, int], ...] = ()
    if stages is not None:
        parts = tuple((called(value, stages.attribute.terms), found) for value, found in stages.counts.items())
    steps: tuple[tuple[list[_Row], ...], ...] = (
        (_unrecorded("Records identified"), _unrecorded("Removed before screening")),
        (_recorded("Records audited", retained + excluded), _recorded("Excluded", excluded, parts)),
        (_recorded("Retained", retained),),
    )
    drawing = Drawing(name, WIDTH)
    y = head(drawing, caption) + 10
    for index, boxes in enumerate(steps):
        height = max(map(len, boxes)) * _LINE + 2 * _PADDING
        for place, rows in enumerate(boxes):
            x = MARGIN + place * (_WIDTH + _GAP)
            with drawing.group():
                _box(drawing, x, y, height, rows)
            if place:
                _arrow(drawing, x - _GAP, y + height / 2, 1, 0)
        y += height
        if index < len(steps) - 1:
            _arrow(drawing, MARGIN + _WIDTH / 2, y, 0, 1)
            y += _GAP
    promoted = sum(exclusion.promoted_to is not None for exclusion in source.pool.exclusions)
    notes = (f"Taken in later, and counted among the retained, too: {promoted:,} of the excluded.",) if promoted else ()
    return finish(drawing, y, caption, notes)


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
    base = y + (height - len(rows) * _LINE) / 2 + _LINE / 2 + SIZE * 0.35
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
