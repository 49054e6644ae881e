"""Generated regions in a document that is otherwise written by hand.

A region lies between two comment lines, `<!-- corpus:begin NAME -->` and `<!-- corpus:end NAME -->`.
Everything outside stays byte for byte as it is.
"""

from collections.abc import Callable

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple

_BEGIN, _END, _CLOSE = "<!-- corpus:begin ", "<!-- corpus:end ", "-->"
NOTE = "<!-- Generated from data/ by `corpus build`; do not edit between these marks. -->"


class Region(NamedTuple):
    """A region: its name with arguments, and where its body is in the text."""

    name: str
    start: int
    end: int


def find_regions(text: str, path: str) -> list[Region]:
    """The regions of a document, in order.

    Raises:
        DataFileError: A marker has no partner, or regions overlap; the message names the line.
    """
    regions: list[Region] = []
    name, start, begun = "", -1, 0
    position = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        at, position = position, position + len(line)
        bare = line.rstrip()
        if not bare.endswith(_CLOSE) or not bare.startswith((_BEGIN, _END)):
            continue
        begins = bare.startswith(_BEGIN)
        this = bare[len(_BEGIN if begins else _END) : -len(_CLOSE)].strip()
        if begins and start < 0:
            name, start, begun = this, position, number
        elif not begins and start >= 0 and this == name:
            regions.append(Region(name, start, at))
            start = -1
        elif start < 0:
            raise DataFileError(f"{path}:{number}: region {quote(this)} ends, but none has begun", "Remove the line.")
        else:
            expected = f"{_END}{name} {_CLOSE}"
            raise DataFileError(f"{path}:{number}: region {quote(name)} is still open", f"Write before it: {expected}")
    if start >= 0:
        raise DataFileError(f"{path}:{begun}: region {quote(name)} never ends", f"Add the line: {_END}{name} {_CLOSE}")
    return regions


def replace_regions(text: str, regions: list[Region], body: Callable[[Region], str], note: str = NOTE) -> str:
    """The document with the body of each region made anew; a body is a block of Markdown, and begins with a note."""
    parts, position = [], 0
    for region in regions:
        content = body(region).strip("\n")
        parts += [text[position : region.start], f"{note}\n\n{content}\n\n" if content else f"{note}\n"]
        position = region.end
    return "".join((*parts, text[position:]))


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading: lower case, blanks to hyphens, other punctuation left out."""
    return "".join(c for c in heading.lower() if c.isalnum() or c in "_- ").replace(" ", "-")
