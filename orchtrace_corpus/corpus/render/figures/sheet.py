"""What all figures share: margins, a heading, labels, a legend and notes below."""

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.text.drawing import LARGE, SIZE, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.corpus.render.figures.plan import Caption

WIDTH = 520.0
"""The least width of a figure: on a phone of 400 pixels its text is still as large as small print."""

MARGIN = 16.0
LABEL_WIDTH = 150.0
"""How much of the width the names of rows take, at most."""

HATCHED = "hatched"
"""In a legend, stands for hatching instead of a colour."""

BASE = SIZE * 0.35
"""From the middle of a line of text down to its base line."""

_LINE = 1.3
_SWATCH = 14.0


def label_width(labels: Sequence[str], limit: float = LABEL_WIDTH) -> float:
    """How wide a column of labels must be; a label longer than the limit is wrapped."""
    return min(limit, max((text_width(label) for label in labels), default=0.0))


def head(drawing: Drawing, caption: Caption) -> float:
    """Write the title and what the figure shows; return where the rest may begin."""
    room = drawing.width - 2 * MARGIN
    y = MARGIN + LARGE
    for line in wrap(caption.title, room, LARGE, lines=3, bold=True):
        drawing.text(MARGIN, y, line, size=LARGE, bold=True)
        y += LARGE * _LINE
    for line in wrap(caption.subtitle, room, SMALL, lines=4):
        drawing.text(MARGIN, y, line, "muted", size=SMALL)
        y += SMALL * _LINE
    return y


def label(drawing: Drawing, x: float, middle: float, width: float, text: str, fill: str = "ink") -> None:
    """Write a row's name in one or two lines about its middle."""
    lines = wrap(text, width)
    size = SIZE
    if len(lines) > 1:
        size = SMALL
        lines = wrap(text, width, SMALL)
    y = middle + size * (0.35 - (len(lines) - 1) * 0.55)
    for line in lines:
        drawing.text(x, y, line, fill, size=size)
        y += size * 1.1


def legend(drawing: Drawing, y: float, keys: Mapping[str, str]) -> float:
    """Draw coloured squares with what they stand for, in as many lines as it takes; return where it ends.

    Args:
        drawing: The picture.
        y: Where the legend begins.
        keys: What each colour stands for; the page's own stands for cells without a shade, `HATCHED`
            for hatching.
    """
    x, right = MARGIN, drawing.width - MARGIN
    for fill, meaning in keys.items():
        text = wrap(meaning, right - MARGIN - _SWATCH - 6, SMALL, lines=1)[0]
        width = _SWATCH + 6 + text_width(text, SMALL)
        if x > MARGIN and x + width > right:
            x = MARGIN
            y += SMALL * 1.6
        if fill == HATCHED:
            drawing.rect(x, y, _SWATCH, _SWATCH, "muted", radius=2)
            drawing.hatch(x, y, _SWATCH, _SWATCH)
        elif fill == "page":
            drawing.rect(x, y, _SWATCH, _SWATCH, fill, stroke="rule", dashed=True, radius=2)
        else:
            drawing.rect(x, y, _SWATCH, _SWATCH, fill, radius=2)
        drawing.text(x + _SWATCH + 6, y + _SWATCH - 2, text, "muted", size=SMALL)
        x += width + 14
    return y + SMALL * 1.6


def finish(drawing: Drawing, y: float, caption: Caption, notes: Sequence[str] = ()) -> str:
    """Write the notes below, and give the picture its height."""
    for note in notes:
        y += 4
        for line in wrap(note, drawing.width - 2 * MARGIN, SMALL, lines=8):
            drawing.text(MARGIN, y + SMALL, line, "muted", size=SMALL)
            y += SMALL * _LINE
    drawing.height = y + MARGIN
    return drawing.svg(caption.title, caption.text)
