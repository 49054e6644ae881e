"""Lays out styled text in lines of a given width, without any terminal library.

A line is a tuple of spans; `console` gives their style names a look, `plain` leaves them out. Both
see the same characters, so what is tested without a terminal is what a terminal shows.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import TypeAlias

from orchtrace_corpus.base.named_tuples import NamedTuple


class Span(NamedTuple):
    """A piece of text with the name of its style: heading, muted, bar, warning, heat0 … heat4 or none."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]


class Glyphs(NamedTuple):
    """The characters that pictures are drawn with, by what the output can encode."""

    shades: tuple[str, str, str]
    bar: str
    empty: str
    separator: str
    ellipsis: str


UNICODE = Glyphs(("█", "▓", "░"), "█", "·", " · ", "…")
ASCII = Glyphs(("#", "+", "-"), "#", ".", ", ", "~")


def plain(lines: Iterable[Line]) -> str:
    """The lines as text, without styles and without blanks at line ends."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)


def line(text: str = "", style: str = "") -> Line:
    """A line of one span."""
    return (Span(text, style),)


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 paper`, `2 papers`; `plural` is the noun's own where it takes more than an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def display_width(text: str) -> int:
    """Return the width of a text in terminal cells: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


@lru_cache(4096)
def _cells(c: str) -> int:
    if unicodedata.combining(c) or unicodedata.category(c) == "Cf":
        return 0
    return 1 + (unicodedata.east_asian_width(c) in "WF")


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut to a number of cells; a cut shows as an ellipsis."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for c in text:
        used += display_width(c)
        if used > width - 1:
            break
        kept.append(c)
    return "".join(kept) + ellipsis if width > 0 else ""


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text, filled with blanks to a number of cells."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break text at blanks into lines of at most `width` cells, each begun by `first` or `rest`."""
    lines, current, empty = [], first, True
    for word in text.split():
        joined = current + word if empty else f"{current} {word}"
        if not empty and display_width(joined) > width:
            lines.append(current)
            joined = rest + word
        current, empty = joined, False
    return [*lines, current]


def wrapped(lines: Iterable[Line], width: int | None) -> Iterator[Line]:
    """Lines whose last span is broken at blanks to a terminal's width, if there is one, and goes on behind two."""
    for *head, last in lines:
        start = "".join(span.text for span in head)
        is_long = width is not None and display_width(start + last.text) > width
        first, *rest = wrap(last.text, width or 0, first=start, rest="  ") if is_long else [start + last.text]
        yield (*head, Span(first[len(start) :], last.style))
        yield from (line(part, last.style) for part in rest)


MOST_LINES = 4
"""The number of lines that a message lists before it counts the others."""


def first_and_more(items: Sequence[str], most: int, more: str = "… and {:,} more") -> list[str]:
    """The first items and, where there are others, a last one that says how many.

    Args:
        items: All of them.
        most: How many are shown.
        more: The last one, with a place for the number.
    """
    others = len(items) - most
    return [*items[:most], *([more.format(others)] if others > 0 else [])]


def first_names_and_more(names: Sequence[str], most: int, more: str = " and {:,} more") -> str:
    """The first names in a sentence, `a, b and 3 more`; what follows the last comma reads `more`."""
    others = len(names) - most
    return ", ".join(names[:most]) + (more.format(others) if others > 0 else "")


def entry(label: str, text: str, label_width: int, width: int) -> list[Line]:
    """A label and its text beside it, wrapped to a width."""
    first, *rest = wrap(text, width, first=pad(label, label_width), rest=" " * label_width)
    return [(Span(first[:label_width], "muted"), Span(first[label_width:])), *(line(part) for part in rest)]


def fit(widths: Sequence[int], available: int, minimum: int = 6) -> list[int]:
    """Shrink the widest columns, one cell at a time, until all fit or none is wider than `minimum`."""
    fitted = list(widths)
    while sum(fitted) > available:
        widest = max(range(len(fitted)), key=fitted.__getitem__)
        if fitted[widest] <= minimum:
            break
        fitted[widest] -= 1
    return fitted


def bar(count: int, largest: int, width: int, glyph: str) -> str:
    """A bar whose length is to `width` as `count` to `largest`; never empty for a count above zero."""
    return glyph * max(round(width * count / largest), 1) if count and largest else ""


def beside(left: Sequence[Line], right: Sequence[Line], left_width: int) -> list[Line]:
    """Two blocks next to each other, the left one filled to `left_width` cells."""
    joined = []
    for first, second in zip_longest(left, right, fillvalue=()):
        used = sum(display_width(span.text) for span in first)
        joined.append((*first, Span(" " * max(left_width - used, 0)), *second))
    return joined
