"""Lay out styled text in lines of a given width, without a terminal library.

A line is a tuple of spans. `console.write` writes the spans with their styles, and `plain` returns them without: the
same characters, so that tests need no terminal.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.named_tuples import NamedTuple


class Span(NamedTuple):
    """A piece of text with the name of its style in `console.STYLES`; an empty name is no style."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]


class Glyphs(NamedTuple):
    """The characters that pictures in text are made of, all available in the encoding of the output."""

    shades: tuple[str, str, str]
    bar: str
    empty: str
    separator: str
    ellipsis: str


UNICODE = Glyphs(("█", "▓", "░"), "█", "·", " · ", "…")
ASCII = Glyphs(("#", "+", "-"), "#", ".", ", ", "~")


def plain(lines: Iterable[Line]) -> str:
    """Return lines as text, without styles and without blanks at the ends of lines."""
    texts = ("".join(span.text for span in line) for line in lines)
    return "".join(f"{text.rstrip()}\n" for text in texts)


def line(text: str = "", style: str = "") -> Line:
    """Return a line of one span."""
    return (Span(text, style),)


def separated(blocks: Iterable[Sequence[Line]]) -> list[Line]:
    """Return the lines of all blocks, with a blank line between two blocks; empty blocks are omitted."""
    lines: list[Line] = []
    for block in blocks:
        if block:
            if lines:
                lines.append(line())
            lines += block
    return lines


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 paper`, `2 papers`; `plural` is for nouns whose plural is not the noun and s."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {plural}" if plural else f"{count} {noun}s"


def display_width(text: str) -> int:
    """Return the width of a text in terminal cells: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


@lru_cache(4096)
def _character_width(c: str) -> int:
    if unicodedata.combining(c) or unicodedata.category(c) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """Return the text if it fits into `width` cells, else its beginning with an ellipsis, `width` cells at most."""
    if display_width(text) <= width:
        return text
    if width <= 0:
        return ""
    used = 0
    for index, c in enumerate(text):
        used += display_width(c)
        if used > width - 1:
            return text[:index] + ellipsis
    return text + ellipsis


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return the text, filled with blanks to `width` cells; with `right`, the text is aligned to the right."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


NO_BREAK = "\0"
"""Stands in a text for a blank at which `wrap` must not break the line; `wrap` replaces it by the blank."""


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break text at blanks into lines of at most `width` cells.

    The first line begins with the text `first`, and each further line with the text `rest`.
    """
    lines = []
    current = first
    has_word = False
    for word in text.split():
        joined = f"{current} {word}" if has_word else current + word
        if has_word and display_width(joined) > width:
            lines.append(current)
            joined = rest + word
        current = joined
        has_word = True
    return [line.replace(NO_BREAK, " ") for line in (*lines, current)]


def wrapped(lines: Iterable[Line], width: int | None) -> Iterator[Line]:
    """Yield lines, with the last span of each wrapped to `width` cells and further lines indented by two.

    Without a width, the output is no terminal, and the lines stay as they are.
    """
    for lead_line in lines:
        *head, last = lead_line
        start = "".join(span.text for span in head)
        if width is None or display_width(start + last.text) <= width:
            yield lead_line
            continue
        first, *rest = wrap(last.text, width, first=start, rest="  ")
        yield (*head, Span(first[len(start) :], last.style))
        yield from (line(part, last.style) for part in rest)


MAX_LINES = 4
"""The number of items that a message lists, one in a line; it only counts further ones."""


def first_and_more(items: Sequence[str], limit: int, more: str = "… and {:,} more") -> list[str]:
    """Return the first `limit` items. If there are further ones, the text `more` follows with their number."""
    listed = list(items[:limit])
    if len(items) > limit:
        listed.append(more.format(len(items) - limit))
    return listed


def first_names_and_more(names: Sequence[str], limit: int, more: str = " and {:,} more") -> str:
    """Return the first `limit` names as `a, b and 3 more`. The text `more` gets the number of further names."""
    listed = ", ".join(names[:limit])
    if len(names) > limit:
        listed += more.format(len(names) - limit)
    return listed


def entry(label: str, text: str, label_width: int, width: int) -> list[Line]:
    """Return a label in a column of `label_width` cells and its text in the next column, wrapped to `width` in all."""
    first, *rest = wrap(text, width, first=pad(label, label_width), rest=" " * label_width)
    first_line = (Span(first[:label_width], "muted"), Span(first[label_width:]))
    return [first_line, *(line(part) for part in rest)]


def fit(widths: Sequence[int], available: int, minimum: int = 6) -> list[int]:
    """Return the widths of columns, shrunk to fit into `available` cells together.

    The widest column is shrunk, one cell at a time, until all fit or no column is wider than `minimum`.
    """
    fitted = list(widths)
    while sum(fitted) > available:
        widest = max(fitted)
        if widest <= minimum:
            break
        fitted[fitted.index(widest)] -= 1
    return fitted


def bar(count: int, largest: int, width: int, glyph: str) -> str:
    """Return a bar of the length `width * count / largest`, and of at least one glyph for a count above zero."""
    if not count or not largest:
        return ""
    return glyph * max(round(width * count / largest), 1)


def side_by_side(left: Sequence[Line], right: Sequence[Line], left_width: int) -> list[Line]:
    """Return two blocks of lines next to each other; lines of the left block are filled to `left_width` cells."""
    joined = []
    for left_line, right_line in zip_longest(left, right, fillvalue=()):
        used = sum(display_width(span.text) for span in left_line)
        blanks = " " * max(left_width - used, 0)
        joined.append((*left_line, Span(blanks), *right_line))
    return joined
