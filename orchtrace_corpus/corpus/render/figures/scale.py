"""The scale gap: how large systems in use are said to be, and how large experiments are, on a logarithmic axis."""

from collections.abc import Sequence
from math import log10

from orchtrace_corpus.base.text.drawing import SIZE, SMALL, Drawing, text_width
from orchtrace_corpus.corpus.model.scale import Amount, Observation, compare
from orchtrace_corpus.corpus.render.figures.captions import Caption
from orchtrace_corpus.corpus.render.figures.sheet import MARGIN, WIDTH, finish, head, label, label_width
from orchtrace_corpus.corpus.render.scale import amount

_ROW = 27.0
_MARK = 5.0
_NAMES_WIDTH = 200.0
_PLOT_WIDTH = 170.0
_BASE = SIZE * 0.35  # from the middle of a line of text down to its base line
_GROUPS = ("In use", "In experiments")
_LEGEND = (
    "Squares: systems in use; circles: experiments. Filled: read in the publication itself; hollow: a report, or "
    "second-hand. A line from the left edge: the source gives a limit, not a number."
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


def draw_scale(name: str, caption: Caption, observations: Sequence[Observation]) -> str:
    """The first quantity that is known of systems in use and of experiments, a row for each."""
    comparisons = compare(observations)
    if not comparisons:
        drawing = Drawing(name, WIDTH)
        return finish(drawing, head(drawing, caption), caption)
    groups = (comparisons[0].deployments, comparisons[0].academic)
    shown = [observation for group in groups for observation in group]
    names = label_width([observation.system for observation in shown], _NAMES_WIDTH)
    left = MARGIN + names + 14
    numbers = max(text_width(amount(observation.value)) for observation in shown)
    drawing = Drawing(name, max(WIDTH, left + _PLOT_WIDTH + 16 + numbers + MARGIN))
    right = drawing.width - MARGIN - numbers - 16
    axis = _Axis(left, right - left, [observation.value for observation in shown if observation.value])
    top = head(drawing, caption) + SMALL + 8
    bottom = top + 6 + _ROW * (len(shown) + len(groups))
    _grid(drawing, axis, top, bottom)
    y = top + 6
    for title, group, is_in_use in zip(_GROUPS, groups, (True, False), strict=True):
        drawing.text(MARGIN, y + _ROW / 2 + _BASE, title, bold=True)
        y += _ROW
        for observation in group:
            middle = y + _ROW / 2
            with drawing.group():
                label(drawing, MARGIN, middle, names, observation.system)
                if observation.value:
                    _mark(drawing, axis, middle, observation.value, observation.verified, is_in_use)
                text = amount(observation.value)
                fill = "ink" if observation.value else "muted"
                drawing.text(drawing.width - MARGIN, middle + _BASE, text, fill, anchor="end")
            y += _ROW
    units = ", ".join(dict.fromkeys(observation.unit for observation in shown))
    return finish(drawing, y, caption, (_LEGEND, f"Counted as the sources do: {units}."))


def _grid(drawing: Drawing, axis: _Axis, top: float, bottom: float) -> None:
    """A line for each power of ten, with its number where there is room for it."""
    ticks = {decade: _power(decade) for decade in range(axis.first, axis.last + 1)}
    widest = max(text_width(text, SMALL) for text in ticks.values()) + 4
    step = 1
    while step * axis.decade_width < widest:
        step += 1
    for decade, text in ticks.items():
        x = axis.left + (decade - axis.first) * axis.decade_width
        drawing.line(x, top + 4, x, bottom, "rule", dashed=True)
        if (decade - axis.first) % step == 0:
            drawing.text(x, top, text, "muted", size=SMALL, anchor="middle")


def _mark(drawing: Drawing, axis: _Axis, y: float, value: Amount, verified: bool, is_in_use: bool) -> None:
    color = "series1" if is_in_use else "series0"
    low, high = axis.at(value.low), axis.at(value.high)
    if value.bound in ("<=", "<"):
        drawing.line(axis.left, y, high, y, color)
    elif low < high:
        drawing.line(low, y, high, y, color)
    for x in dict.fromkeys((low, high)):
        fill = color if verified else "page"
        if is_in_use:
            drawing.rect(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK, fill, stroke=color)
        else:
            drawing.circle(x, y, _MARK, fill, stroke=color)


def _power(decade: int) -> str:
    """A power of ten in its shortest form."""
    if decade < 0:
        return f"{10.0**decade:.{-decade}f}"
    return f"1{'0' * (decade % 3)}{('', 'k', 'M', 'G', 'T')[decade // 3]}" if decade < 15 else f"1e{decade}"
