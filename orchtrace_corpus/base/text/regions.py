"""Generated regions in a document that is otherwise written by hand.

A region is between two comment lines, `<!-- corpus:begin NAME -->` and `<!-- corpus:end NAME -->`. The text outside of
regions never changes.
"""

from collections.abc import Callable

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple

_BEGIN, _END, _CLOSE = "<!-- corpus:begin ", "<!-- corpus:end ", "-->"
NOTE = "<!-- Generated from data/ by `corpus build`; do not edit between these marks. -->"


class Region(NamedTuple):
    """A region: the text after `begin` in its marker, and the start and end of its body in the document."""

    name: str
    start: int
    end: int


def find_regions(text: str, path: str) -> list[Region]:
    """Return the regions of a document, in order.

    Raises:
        DataFileError: A marker has no partner, or regions overlap; the message names the line.
    """
    regions: list[Region] = []
    name, begin_line = "", 0
    start: int | None = None  # of the body of the open region
    line_end = 0
    for line_number, line in enumerate(text.splitlines(keepends=True), start=1):
        line_start = line_end
        line_end += len(line)
        bare = line.rstrip()
        if not bare.endswith(_CLOSE) or not bare.startswith((_BEGIN, _END)):
            continue
        begins = bare.startswith(_BEGIN)
        marker_name = bare[len(_BEGIN if begins else _END) : -len(_CLOSE)].strip()
        if begins and start is None:
            name, start, begin_line = marker_name, line_end, line_number
        elif not begins and start is not None and marker_name == name:
            regions.append(Region(name, start, line_start))
            start = None
        elif start is None:
            message = f"{path}:{line_number}: region {quote(marker_name)} ends, but none has begun"
            raise DataFileError(message, "Remove the line.")
        else:
            expected = f"{_END}{name} {_CLOSE}"
            message = f"{path}:{line_number}: region {quote(name)} is still open"
            raise DataFileError(message, f"Write before it: {expected}")
    if start is not None:
        message = f"{path}:{begin_line}: region {quote(name)} never ends"
        raise DataFileError(message, f"Add the line: {_END}{name} {_CLOSE}")
    return regions


def replace_regions(text: str, regions: list[Region], body: Callable[[Region], str], note: str = NOTE) -> str:
    """Return the document with a new body for each region: a note and a block of Markdown."""
    parts, position = [], 0
    for region in regions:
        content = body(region).strip("\n")
        parts += [text[position : region.start], f"{note}\n\n{content}\n\n" if content else f"{note}\n"]
        position = region.end
    return "".join((*parts, text[position:]))


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading: lower case, blanks to hyphens, other punctuation left out."""
    return "".join(c for c in heading.lower() if c.isalnum() or c in "_- ").replace(" ", "-")
