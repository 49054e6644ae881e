"""Draw pictures as SVG: rectangles, lines, paths and text in named colours, for light and dark screens.

The same calls give the same bytes on every machine: coordinates are whole numbers, and no font is measured. The font on
the reader's machine is unknown. So the width of text is estimated for the widest usual font, and text is wrapped or cut
by the estimate.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from math import fsum

SIZE, SMALL, LARGE = 14, 13, 16
"""Sizes of text in pixels. A phone shows a picture of 520 pixels at three quarters of its size."""

PALETTE: dict[str, tuple[str, str]] = {
    "page": ("#ffffff", "#0d1117"),
    "plain": ("#f3f5f7", "#1a212b"),
    "rule": ("#8c959f", "#6b747e"),
    "ink": ("#1f2328", "#f0f6fc"),
    "muted": ("#57606a", "#a2abb5"),
    "heat1": ("#dcebfa", "#15293f"),
    "heat2": ("#a9cef4", "#174a7c"),
    "heat3": ("#5a9cdf", "#2969ab"),
    "heat4": ("#0b4f96", "#8cc4ff"),
    "on-heat4": ("#ffffff", "#0d1117"),
    "series0": ("#0072b2", "#56b4e9"),
    "series1": ("#b36a00", "#e69f00"),
    "series2": ("#868e96", "#7d8590"),
    "series3": ("#007a5a", "#2fbf94"),
    "series4": ("#a8558a", "#d68fc0"),
    "series5": ("#c64600", "#ff8a5c"),
}
"""Colours by name: for light screens, then for dark ones. Colour-blind readers can tell the six series apart."""

LINES = ("page", "rule", "muted", "series0", "series1")
"""The colours of lines and outlines."""

SERIES = 6
"""The number of colours for categories."""

_FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Helvetica Neue',Arial,sans-serif"
_BOLD = 1.2  # the largest ratio of the widths of bold and regular text
_ELLIPSIS = "…"
_DASHES = ' stroke-dasharray="3 3"'
_HATCH = (
    '<defs><pattern id="{name}-hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<path d="M-1,1 l2,-2 M0,5 l5,-5 M4,6 l2,-2" stroke-width="1.5" class="s-page"/></pattern></defs>'
)
_ADVANCE = {
    **{chr(code): 0.65 for code in range(32, 127)},
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ", 0.8),
    **dict.fromkeys("mwMW@%&#+=<>~^", 1.02),
    **dict.fromkeys(" !\"'(),-./:;I[]fijlrt|", 0.47),
    **dict.fromkeys("\u2018\u2019\u2013\u00b7\u00a0", 0.65),
    **dict.fromkeys("\u201c\u201d\u2014\u2026\u00d7", 1.02),
}
"""The widths of usual characters, in parts of the font size; at least those of DejaVu Sans, a wide font."""


def advance(character: str) -> float:
    """Return an upper bound of the width of a character, in parts of the font size."""
    usual = _ADVANCE.get(character)
    if usual is not None:
        return usual
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf"):  # combining marks and invisible characters
        return 0.0
    if character < "\u0530" and category != "Cc":  # Latin, Greek, Cyrillic
        return _ADVANCE.get(unicodedata.normalize("NFD", character)[0], 1.45)
    if "\ufdf0" <= character <= "\ufdfd":  # Arabic phrases as one letter
        return 12.0
    if unicodedata.east_asian_width(character) in "WF" and character < "\U0001f000":  # wide, but no emoji
        return 1.1
    return 1.8


def text_width(text: str, size: float = SIZE, *, bold: bool = False) -> float:
    """Return an upper bound of the width of a text on one line, in pixels."""
    return _advances(text) * size * (_BOLD if bold else 1.0)


@lru_cache(4096)
def _advances(text: str) -> float:
    """Return the sum of the advances of a text, in parts of the font size. It is cached because labels repeat."""
    # `fsum` gives the same result on every Python; `sum` is exact only from 3.12 on.
    advances = _ADVANCE
    try:
        return fsum([advances[c] for c in text])
    except KeyError:  # an unusual character; `advance` is slower
        return fsum([advance(c) for c in text])


def wrap(text: str, width: float, size: float = SIZE, *, lines: int = 2, bold: bool = False) -> list[str]:
    """Break text at blanks into at most `lines` lines of at most `width` pixels.

    A word wider than a line is broken at the end of the line. Text that does not fit into the last line is replaced by
    an ellipsis.
    """
    if text_width(text, size, bold=bold) <= width:
        return [text]
    finished: list[str] = []
    words = text.split()
    current = ""
    while words:
        word = words.pop(0)
        joined = f"{current} {word}" if current else word
        if text_width(joined, size, bold=bold) <= width:
            current = joined
        elif len(finished) == lines - 1:
            rest = " ".join((joined, *words))
            room = width - text_width(_ELLIPSIS, size, bold=bold)
            return [*finished, _fitting_beginning(rest, room, size, bold=bold).rstrip() + _ELLIPSIS]
        elif current:  # the word begins the next line
            finished.append(current)
            current = ""
            words.insert(0, word)
        else:  # the word alone is wider than a line
            beginning = _fitting_beginning(word, width, size, bold=bold)
            if not beginning:
                return [*finished, _ELLIPSIS]
            finished.append(beginning)
            words.insert(0, word[len(beginning) :])
    return [*finished, current] if current else finished


class Picture(str):
    """An SVG document that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class Drawing:
    """A picture. Coordinates are pixels from the upper left corner, rounded; colours are names of `PALETTE`.

    Attributes:
        name: The prefix of every id in the picture, so that a page can have several pictures.
        width: The width of the picture.
        height: The height of the picture, to be set before `svg` is called.
    """

    def __init__(self, name: str, width: float) -> None:
        self.name = name
        self.width = width
        self.height = 0.0
        self._parts: list[str] = []
        self._is_hatched = False

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        stroke: str = "",
        dashed: bool = False,
        radius: int = 0,
    ) -> None:
        """Draw a rectangle, with an outline if `stroke` names its colour."""
        attributes = f' class="f-{fill} s-{stroke}"' if stroke else f' class="f-{fill}"'
        if radius:
            attributes = f' rx="{radius}"{attributes}'
        if dashed:
            attributes += _DASHES
        self._parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"{attributes}/>')

    def hatch(self, x: float, y: float, width: float, height: float) -> None:
        """Draw diagonal lines over a rectangle."""
        self._is_hatched = True
        self._parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" fill="url(#{self.name}-hatch)"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str, *, dashed: bool = False) -> None:
        """Draw a straight line, one pixel wide."""
        attributes = f'class="s-{stroke}"'
        if dashed:
            attributes += _DASHES
        self._parts.append(f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" {attributes}/>')

    def path(self, points: Sequence[tuple[float, float]], fill: str) -> None:
        """Fill the polygon whose corners are the points."""
        corners = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        self._parts.append(f'<path d="M{corners}Z" class="f-{fill}"/>')

    def circle(self, x: float, y: float, radius: float, fill: str, *, stroke: str) -> None:
        """Draw a circle."""
        self._parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:.0f}" class="f-{fill} s-{stroke}"/>')

    def text(
        self,
        x: float,
        y: float,
        content: str,
        fill: str = "ink",
        *,
        size: int = SIZE,
        anchor: str = "start",
        bold: bool = False,
        turn: int = 0,
    ) -> None:
        """Write one line of text.

        Args:
            x: Where the text starts, has its middle or ends: `anchor` says which.
            y: The base line of the text.
            content: The text, which is escaped.
            fill: The colour.
            size: The font size in pixels.
            anchor: `start`, `middle` or `end`.
            bold: True for bold text.
            turn: Degrees by which the text is rotated clockwise about (x, y).
        """
        attributes = ""
        if anchor != "start":
            attributes += f' text-anchor="{anchor}"'
        if size != SIZE:
            attributes += f' font-size="{size}"'
        if bold:
            attributes += ' font-weight="600"'
        if turn:
            attributes += f' transform="rotate({turn} {x:.0f} {y:.0f})"'
        self._parts.append(f'<text x="{x:.0f}" y="{y:.0f}"{attributes} class="f-{fill}">{escape(content)}</text>')

    @contextmanager
    def group(self, address: str = "") -> Iterator[None]:
        """Group all that is drawn in a `with` block, such as the cells of a row; with an address, they are a link."""
        is_link = address.startswith(("https://", "http://"))  # `javascript:` would run a script
        self._parts.append(f'<a href="{escape(address)}">' if is_link else "<g>")
        yield
        self._parts.append("</a>" if is_link else "</g>")

    def svg(self, title: str, description: str) -> str:
        """Return the picture as an SVG document. Screen readers read the title and the description."""
        name = self.name
        width = f"{self.width:.0f}"
        height = f"{self.height:.0f}"
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title {name}-desc" '
            f'font-family="{_FONTS}" font-size="{SIZE}">'
        )
        lines = [
            opening,
            f'<title id="{name}-title">{escape(title)}</title>',
            f'<desc id="{name}-desc">{escape(description)}</desc>',
            _style(),
        ]
        if self._is_hatched:
            lines.append(_HATCH.format(name=name))
        lines.append(f'<rect width="{width}" height="{height}" rx="6" class="f-page"/>')
        return "\n".join([*lines, *self._parts, "</svg>\n"])


@cache
def _style() -> str:
    """Return the style sheet: `f-NAME` fills with a colour, `s-NAME` draws lines in it."""
    light = dark = ""
    for name, (on_light, on_dark) in PALETTE.items():
        light += f".f-{name}{{fill:{on_light}}}"
        dark += f".f-{name}{{fill:{on_dark}}}"
    for name in LINES:
        on_light, on_dark = PALETTE[name]
        light += f".s-{name}{{stroke:{on_light}}}"
        dark += f".s-{name}{{stroke:{on_dark}}}"
    return f"<style>\n{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n</style>"


def escape(text: str) -> str:
    """Return text escaped for XML, also for attributes; a character that XML does not allow becomes U+FFFD."""
    if text.isalnum() and text.isascii():
        return text
    if not text.isprintable():
        text = "".join(
            c if c in "\t\n\r" or unicodedata.category(c) not in ("Cc", "Cs", "Cn") else "\ufffd" for c in text
        )
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return text.replace("\r", "&#13;")  # XML readers replace a bare carriage return by a line feed


def _fitting_beginning(text: str, width: float, size: float, *, bold: bool) -> str:
    """Return the longest beginning of a text that fits into a width; combining marks stay with their letters."""
    used = 0.0
    for index, c in enumerate(text):
        used += advance(c) * size * (_BOLD if bold else 1.0)
        if used > width:
            return text[:index]
    return text
