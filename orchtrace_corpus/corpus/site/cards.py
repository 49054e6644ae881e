"""Pictures that services show for a link: the title and text of a page, and the site's matrix.

They are PNG, the format that all these services read. Without Pillow, an optional dependency that draws them and has a
font, a site has no such pictures.
"""

import io
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from orchtrace_corpus.base.text.drawing import PALETTE
from orchtrace_corpus.corpus.site.papers import MatrixRow

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

SIZE = (1200, 630)
"""The size that services that preview links expect: https://ogp.me, 1.91 to 1."""

_MARGIN = 72
_PLAIN = {0xD7: "x", 0x2013: "-", 0x2014: "-", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xDF: "ss"}
"""Characters that are missing from the font, by what is written instead."""
_LINES = ((64, 3), (54, 4), (44, 5))
"""The sizes of a title, each with the most lines that it may take."""


def is_available() -> bool:
    """Return True if the library that draws pictures is installed."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def writable(text: str) -> str | None:
    """Return a text without accents, or None if the font does not have all of its letters."""
    known = text.translate(_PLAIN)
    folded = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", known))
    return folded if folded.isascii() else None


class Cards:
    """Draws the pictures of one site; the parts that all of them share are drawn once."""

    def __init__(self, site: str, matrix: Sequence[MatrixRow]) -> None:
        """Draw the parts that all pictures share: the title of the site, and two fields crossed."""
        from PIL import Image, ImageDraw

        # Values that are aside come last in both fields, so that the others keep their places.
        heats = [[cell.heat for cell in row.cells if not cell.is_aside] for row in matrix if not row.value.is_aside]
        self._image = Image.new("RGB", SIZE, PALETTE["page"][0])
        draw = ImageDraw.Draw(self._image)
        width, height = SIZE
        draw.rectangle((0, 0, 15, height), fill=PALETTE["heat4"][0])
        self._shape = down, across = len(heats), max(map(len, heats), default=0)
        self._step = min(34, 250 // max(1, down), 420 // max(1, across))
        self._left, self._top = width - _MARGIN - across * self._step, height - 56 - down * self._step
        for row, shades in enumerate(heats):
            for column, heat in enumerate(shades):
                fill = PALETTE[f"heat{heat}" if heat else "page"][0]
                outline = fill if heat else PALETTE["heat2"][0]
                draw.rounded_rectangle(self._square(row, column), 4, fill=fill, outline=outline)
        self._foot = site

    def _square(self, row: int, column: int) -> tuple[int, int, int, int]:
        left, top = self._left + column * self._step, self._top + row * self._step
        return left, top, left + self._step - 4, top + self._step - 4

    def draw(
        self, kind: str, title: str, text: str, cells: Sequence[tuple[int, int]] = (), colour: str = "series1"
    ) -> bytes | None:
        """Return a picture as PNG; None if the font does not have all letters of the title.

        The kind of the page is written above its title. Each of the `cells`, a row and a column, has an outline.
        """
        from PIL import Image, ImageDraw

        wanted = writable(title)
        if wanted is None:
            return None
        image = self._image.copy()
        draw = ImageDraw.Draw(image)
        width = SIZE[0] - 2 * _MARGIN
        draw.text(
            (_MARGIN, 56), (writable(kind) or "").upper(), font=_font(26), fill=PALETTE[colour][0], stroke_width=0.5
        )
        size, lines = _LINES[-1][0], [""]
        for size, most in _LINES:
            lines = _wrap(draw, wanted, _font(size), width)
            if len(lines) <= most:
                break
        y = _write(draw, 104, lines[:most], size, "ink")
        narrow = self._left - _MARGIN - 40  # at the height of the matrix
        kept = _wrap(draw, writable(text) or "", _font(30), narrow if y > self._top - 130 else width)
        room = (SIZE[1] - 120 - y) // 42
        if len(kept) > room:
            kept = [*kept[: room - 1], f"{kept[room - 1].rstrip('.,;: ')} ..."] if room > 0 else []
        _write(draw, y + 18, kept, 30, "muted")
        foot = _wrap(draw, writable(self._foot) or "", _font(24), narrow)[:2]
        _write(draw, SIZE[1] - 56 - 33 * len(foot), foot, 24, "ink")
        for row, column in cells:
            if row >= self._shape[0] or column >= self._shape[1]:
                continue
            draw.rounded_rectangle(self._square(row, column), 4, outline=PALETTE[colour][0], width=4)
        written = io.BytesIO()
        # Few colours, so that a picture takes a third of the bytes and half of the time.
        image.quantize(48, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(written, "PNG", compress_level=6)
        return written.getvalue()


@cache
def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _wrap(draw: "ImageDraw", text: str, font: "FreeTypeFont | ImageFont", width: int) -> list[str]:
    """Break a text at blanks into lines that are not wider; a longer word is cut where the line ends."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and draw.textlength(joined, font) <= width:
            lines[-1] = joined
            continue
        while word and draw.textlength(word, font) > width:
            word = word[:-1]
        lines.append(word)
    return lines


def _write(draw: "ImageDraw", y: int, lines: Sequence[str], size: int, colour: str) -> int:
    """Write lines below each other; return where the next would begin."""
    for line in lines:
        # The font has one weight: a stroke makes titles bold.
        stroke = 1.0 if size > 40 else 0.0
        draw.text((_MARGIN, y), line, font=_font(size), fill=PALETTE[colour][0], stroke_width=stroke)
        y += round(size * 1.22)
    return y
