"""Pictures that chat programs and social networks show for a link: a page's title and text, and the site's matrix.

They are PNG, which all of these read. Pillow, an optional dependency, draws them and has a font; without it a site has
no such pictures.
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
"""The size in pixels that previews of links expect: https://ogp.me, 1.91 to 1."""

_MARGIN = 72
_REPLACEMENTS = {0xD7: "x", 0x2013: "-", 0x2014: "-", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xDF: "ss"}
"""The texts that replace characters that are missing from the font, by code point."""
_TITLE_SIZES = ((64, 3), (54, 4), (44, 5))
"""The sizes of a title, largest first, each with the most lines that it may take."""


def is_available() -> bool:
    """Return True if the library that draws pictures is installed."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def writable(text: str) -> str | None:
    """Return a text without accents, or None if the font does not have all of its letters."""
    replaced = text.translate(_REPLACEMENTS)
    without_accents = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", replaced))
    return without_accents if without_accents.isascii() else None


class Cards:
    """Draws the pictures of one site; the parts that all of them share are drawn once."""

    def __init__(self, site: str, matrix: Sequence[MatrixRow]) -> None:
        """Draw the parts that all pictures share: the title of the site, and two fields crossed."""
        from PIL import Image, ImageDraw

        # The picture leaves out values that are aside; they come last in both fields, so the others keep their indexes.
        heats = [[cell.heat for cell in row.cells if not cell.is_aside] for row in matrix if not row.value.is_aside]
        self._image = Image.new("RGB", SIZE, PALETTE["page"][0])
        draw = ImageDraw.Draw(self._image)
        width, height = SIZE
        draw.rectangle((0, 0, 15, height), fill=PALETTE["heat4"][0])
        self._row_count = len(heats)
        self._column_count = max(map(len, heats), default=0)
        self._step = min(34, 250 // max(1, self._row_count), 420 // max(1, self._column_count))  # of two squares
        self._left = width - _MARGIN - self._column_count * self._step
        self._top = height - 56 - self._row_count * self._step
        for row, shades in enumerate(heats):
            for column, heat in enumerate(shades):
                fill = PALETTE[f"heat{heat}" if heat else "page"][0]
                outline = fill if heat else PALETTE["heat2"][0]
                draw.rounded_rectangle(self._square(row, column), 4, fill=fill, outline=outline)
        self._site = site

    def _square(self, row: int, column: int) -> tuple[int, int, int, int]:
        """Return the left, top, right and bottom of a cell of the matrix."""
        left, top = self._left + column * self._step, self._top + row * self._step
        return left, top, left + self._step - 4, top + self._step - 4

    def draw(
        self, kind: str, title: str, text: str, cells: Sequence[tuple[int, int]] = (), colour: str = "series1"
    ) -> bytes | None:
        """Return a picture as PNG; None if the font does not have all letters of the title.

        The kind of the page is written above its title. The `cells` of the matrix, each a row and a column, get an
        outline.
        """
        from PIL import Image, ImageDraw

        writable_title = writable(title)
        if writable_title is None:
            return None
        image = self._image.copy()
        draw = ImageDraw.Draw(image)
        width, height = SIZE
        fill = PALETTE[colour][0]
        draw.text((_MARGIN, 56), (writable(kind) or "").upper(), font=_font(26), fill=fill, stroke_width=0.5)
        full_width = width - 2 * _MARGIN
        for size, max_lines in _TITLE_SIZES:
            title_lines = _wrap(draw, writable_title, _font(size), full_width)
            if len(title_lines) <= max_lines:
                break
        y = _write(draw, 104, title_lines[:max_lines], size, "ink")
        width_beside_matrix = self._left - _MARGIN - 40
        is_beside_matrix = y > self._top - 130
        text_width = width_beside_matrix if is_beside_matrix else full_width
        lines = _wrap(draw, writable(text) or "", _font(30), text_width)
        max_lines = max((height - 120 - y) // 42, 0)
        if len(lines) > max_lines:
            lines = lines[:max_lines]
            if lines:
                lines[-1] = f"{lines[-1].rstrip('.,;: ')} ..."
        _write(draw, y + 18, lines, 30, "muted")
        site_lines = _wrap(draw, writable(self._site) or "", _font(24), width_beside_matrix)[:2]
        _write(draw, height - 56 - 33 * len(site_lines), site_lines, 24, "ink")
        for row, column in cells:
            if row < self._row_count and column < self._column_count:
                draw.rounded_rectangle(self._square(row, column), 4, outline=fill, width=4)
        file = io.BytesIO()
        # With few colours, a picture takes a third of the bytes and half of the time.
        image.quantize(48, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(file, "PNG", compress_level=6)
        return file.getvalue()


@cache
def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _wrap(draw: "ImageDraw", text: str, font: "FreeTypeFont | ImageFont", width: int) -> list[str]:
    """Break a text at blanks into lines that are not wider than `width`; the end of a longer word is cut off."""
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
    """Write lines below each other; return the y coordinate at which the next line would begin."""
    for line in lines:
        # The font has one weight: a stroke makes titles bold.
        stroke = 1.0 if size > 40 else 0.0
        draw.text((_MARGIN, y), line, font=_font(size), fill=PALETTE[colour][0], stroke_width=stroke)
        y += round(size * 1.22)
    return y
