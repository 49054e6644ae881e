"""Lay out styled text in lines of a given width, without a terminal library.

A line is a tuple of spans. `console` writes them with their styles, `plain` without; the characters are the same, so
that tests need no terminal.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.named_tuples import NamedTuple


class Span(NamedTuple):
    """A piece of text with the name of its style in `console.STYLES`; empty for no style."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]


class Glyphs(NamedTuple):
    """The characters of pictures, for an encoding of the output."""

    shades: tuple[str, str, str]
    bar: str
    empty: str
    separator: str
    ellipsis: str


UNICODE = Glyphs(("█", "▓", "░"), "█", "·", " · ", "…")
ASCII = Glyphs(("#", "+", "-"), "#", ".", ", ", "~")


def plain(lines: Iterable[Line]) -> str:
    """Return lines as text, without styles and without blanks at the ends."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)


def line(text: str = "", style: str = "") -> Line:
    """Return a line of one span."""
    return (Span(text, style),)


def separated(blocks: Iterable[Sequence[Line]]) -> list[Line]:
    """Return blocks of lines with a blank line between two; empty blocks are omitted."""
    return [part for block in blocks if block for part in (line(), *block)][1:]


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 paper`, `2 papers`; `plural` is for nouns whose plural needs more than an s."""
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
    """Return the text, cut to a number of cells; an ellipsis marks a cut."""
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
    """Return the text, filled with blanks to a number of cells."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


NO_BREAK = "\0"
"""A blank at which `wrap` breaks no line."""


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break text at blanks into lines of at most `width` cells, each begun by `first` or `rest`."""
    lines, current, empty = [], first, True
    for word in text.split():
        joined = current + word if empty else f"{current} {word}"
        if not empty and display_width(joined) > width:
            lines.append(current)
            joined = rest + word
        current, empty = joined, False
    return [line.replace(NO_BREAK, " ") for line in (*lines, current)]


def wrapped(lines: Iterable[Line], width: int | None) -> Iterator[Line]:
    """Yield lines whose last span is wrapped to the width of a terminal, if there is one, with an indent of two."""
    for *head, last in lines:
        start = "".join(span.text for span in head)
        is_long = width is not None and display_width(start + last.text) > width
        first, *rest = wrap(last.text, width or 0, first=start, rest="  ") if is_long else [start + last.text]
        yield (*head, Span(first[len(start) :], last.style))
        yield from (line(part, last.style) for part in rest)


MAX_LINES = 4
"""The number of lines that a message lists before it counts the others."""


def first_and_more(items: Sequence[str], most: int, more: str = "… and {:,} more") -> list[str]:
    """Return the first items, at most so many; if there are others, add `more` with their number."""
    others = len(items) - most
    return [*items[:most], *([more.format(others)] if others > 0 else [])]


def first_names_and_more(names: Sequence[str], most: int, more: str = " and {:,} more") -> str:
    """Return the first names in a sentence, `a, b and 3 more`; `more` is the end, with a place for the number."""
    others = len(names) - most
    return ", ".join(names[:most]) + (more.format(others) if others > 0 else "")


def entry(label: str, text: str, label_width: int, width: int) -> list[Line]:
    """Return a label with its text beside it, wrapped to a width."""
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
    """Return a bar of the length `width * count / largest`; not empty for a count above zero."""
    return glyph * max(round(width * count / largest), 1) if count and largest else ""


def side_by_side(left: Sequence[Line], right: Sequence[Line], left_width: int) -> list[Line]:
    """Return two blocks of lines next to each other, the left one filled to `left_width` cells."""
    joined = []
    for first, second in zip_longest(left, right, fillvalue=()):
        used = sum(display_width(span.text) for span in first)
        joined.append((*first, Span(" " * max(left_width - used, 0)), *second))
    return joined
