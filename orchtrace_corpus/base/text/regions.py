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
    """A region. `name` is the text after `begin` in its marker; its body is `text[start:end]` of the document."""

    name: str
    start: int
    end: int


def find_regions(text: str, path: str) -> list[Region]:
    """Return the regions of a document, in order.

    Raises:
        DataFileError: A marker has no partner, or regions overlap; the message names the line.
    """
    regions: list[Region] = []
    name = ""
    begin_line = 0
    start: int | None = None  # where the body of the open region starts; None if no region is open
    line_end = 0
    for line_number, line in enumerate(text.splitlines(keepends=True), start=1):
        line_start = line_end
        line_end += len(line)
        marker = line.rstrip()
        if not marker.endswith(_CLOSE) or not marker.startswith((_BEGIN, _END)):
            continue
        is_begin = marker.startswith(_BEGIN)
        prefix = _BEGIN if is_begin else _END
        marker_name = marker[len(prefix) : -len(_CLOSE)].strip()
        if is_begin and start is None:
            name = marker_name
            start = line_end
            begin_line = line_number
        elif not is_begin and start is not None and marker_name == name:
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
    result = ""
    position = 0
    for region in regions:
        result += f"{text[position : region.start]}{note}\n"
        content = body(region).strip("\n")
        if content:
            result += f"\n{content}\n\n"
        position = region.end
    return result + text[position:]


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading: lower case, blanks to hyphens, other punctuation left out."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in "_- ")
    return kept.replace(" ", "-")
