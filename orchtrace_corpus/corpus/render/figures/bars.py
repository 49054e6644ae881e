"""Figures of bars: the terms of a facet from first to last, and its terms by level."""

from collections.abc import Sequence
from itertools import accumulate

from orchtrace_corpus.base.text.drawing import SERIES, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.corpus.analysis.statistics import ABSENT
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

_ROW = 32.0
_BAR = 16.0
_STACK_WIDTH = 110.0
_HEAD_WIDTH = 84.0
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
        middle = y + _ROW / 2
        length = 0.0 if value in _ASIDE else room * number / max(largest, 1)
        with drawing.group():
            label(drawing, MARGIN, middle, names, text, "muted" if value in _ASIDE else "ink")
            if length:
                drawing.rect(left, middle - _BAR / 2, length, _BAR, "series0")
                if contested.get(value):
                    part = length * contested[value] / number
                    drawing.hatch(left + length - part, middle - _BAR / 2, part, _BAR)
            elif value not in _ASIDE:
                length = room
                drawing.line(left, middle, left + room, middle, "rule", dashed=True)
            fill, bold = ("muted", False) if value in _ASIDE else ("ink", True)
            drawing.text(left + length + 8, middle + BASE, f"{number:,}", fill, bold=bold)
            if mark:
                drawing.text(left + length + 12 + digits, middle + BASE, mark, "muted", size=SMALL)
        y += _ROW
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
    heads = [wrap(level.label, _HEAD_WIDTH, SMALL) for level in facet.levels] + [[]] * is_contested
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
    top = y = _heads(drawing, head(drawing, caption) + 10, heads, ends)
    for text, row, by_level, counts in zip(labels, shown, disputed, numbers, strict=True):
        with drawing.group():
            label(drawing, MARGIN, y + _ROW / 2, names, text)
            for number, x in zip(row, ends, strict=True):
                fill = "ink" if number else "muted"
                drawing.text(x, y + _ROW / 2 + BASE, f"{number:,}", fill, anchor="end", bold=bool(number))
            hatched = [by_level.get(level.id, 0) for level in facet.levels]
            _stack(drawing, start, y + (_ROW - _BAR) / 2, pixels, counts, hatched)
        y += _ROW
    drawing.line(start, top, start, y, "rule")
    keys: dict[str, str] = {}
    for index, level in enumerate(facet.levels):
        keys[_series(index)] = ", ".join(filter(None, (keys.get(_series(index)), level.label)))
    if is_contested:
        keys[HATCHED] = _CONTESTED
    return finish(drawing, legend(drawing, y + 10, keys), caption)


def _heads(drawing: Drawing, top: float, heads: Sequence[Sequence[str]], ends: Sequence[float]) -> float:
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
            drawing.rect(begin, y, end - begin, _BAR, _series(index))
        if disputed:
            part = round(min(disputed, number) * pixels)
            drawing.hatch(end - part, y, part, _BAR)
        before += number


def _series(index: int) -> str:
    return f"series{index % SERIES}"
