"""Writes a comment on a pull request from the JSON document that `difference` makes.

    python -m orchtrace_corpus.corpus.render.comment DIFF.json

Anybody can write texts into the document, so it is checked against docs/schema/diff.schema.json, with limits on size,
depth, numbers and lengths. Each text becomes a code span or a fence, in which GitHub's Markdown knows no markup, links,
mentions, references or formulas. The module uses only the standard library: nothing else is installed where it runs.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from urllib.parse import quote

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.lookalikes import code_points, odd_parts
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import first_and_more, plain, pluralize
from orchtrace_corpus.base.text.table import Table
from orchtrace_corpus.corpus.render import difference
from orchtrace_corpus.corpus.render.difference import Document, Entry, Gone, New, Own, Part, Words

MARKER = "<!-- corpus diff -->"
"""The first line, by which a bot finds its earlier comment."""

MOST_BYTES = 60_000
"""The size of the longest comment; GitHub takes up to 65,536 characters, and no text has more of them than bytes."""

MOST_INPUT_BYTES = 8_000_000
MOST_DEPTH = 40
"""The most levels of a document; a difference has eight, and each value in it the levels that a data file can have."""
_MIN_FOLDED = 6
"""The fewest entries of a section about new records that is folded."""
_NOTICE_BYTES = 700
"""The bytes that a section keeps for the number of lines that do not fit, and for links to them."""
_FILES_BYTES = 6000
"""The most bytes for the names of files outside the data."""
_NEW_BYTES = 6000
"""The bytes that are kept for new records, however much else changed."""
_MAX_TEXT = 4000
"""The most characters of a text that are shown; the others are counted."""
_MAX_REMARK = 500
_MAX_BACKTICKS = 20
"""Longer runs are cut: cmark, GitHub's parser, takes delimiters of code spans of up to 80 backticks."""


class DocumentError(ValueError):
    """A document is not a difference; the message says where and why."""


def comment(document: Document) -> str:
    """Return a valid difference as a comment that is no longer than GitHub allows.

    Lines that do not fit are counted, with links to their places in the files. Changes of earlier records come before
    new records, and the longest sections are shortened first, so that each part of the change is mentioned.
    """
    parts = [MARKER]
    names = [f"{code_span(name[: difference.MAX_PATH])}…, " for name in document["outside"]["files"]]
    files = difference.files_outside(document, _fitting_count(names, _FILES_BYTES))
    if files:
        parts += [f"**Not data alone.** {_sentence(files)}", ""]
    before, after = (code_span(document[name][:_MAX_REMARK]) for name in ("before", "after"))
    compared = f"Compared: {before} with {after}."
    if "refused" in document:
        lines = [_cut_backticks(printable(line, limit=_MAX_REMARK)) for line in document["refused"].split("\n")]
        reason = fence("\n".join(lines[: _fitting_count(lines, MOST_BYTES // 3)]))
        return "\n".join([*parts, "**The data cannot be compared.**", "", reason, "", compared, ""])
    if document["has_meaning"]:
        parts += [f"**{difference.headline(document)}**", "", compared, ""]
    else:
        parts += [f"**{difference.meaningless_change(document)}**", ""]
    remarks = [code_span(remark[:_MAX_REMARK]) for remark in document["remarks"]]
    for remark in remarks[: _fitting_count(remarks, _NEW_BYTES)]:
        parts += [remark, ""]
    tail = []
    claims_left = difference.claims_left(document) if document["has_meaning"] else ()
    if claims_left:
        is_short = _size([_sentence(claims_left)]) <= _NEW_BYTES
        tail = [_sentence(claims_left if is_short else claims_left[:1]), ""]  # the first words are the number
    blocks = []
    for section in difference.sections(document):
        items = []
        for entry in section.entries:
            place = _place(entry, document) if entry.path else ""
            first, *details = (_sentence(words, place) for words in entry.lines)
            items.append(([f"- {first}", *(f"  - {detail}" for detail in details)], place))
        blocks.append(_Block(section.title, items, section.is_new))
    blocks += [_table_block(shifts) for shifts in difference.shift_tables(document)]
    room = MOST_BYTES - _size([*parts, *tail, _CUT_HERE])
    is_cut = sum(block.size for block in blocks) > room
    notice_size = min(_NOTICE_BYTES, MOST_BYTES // 3 // max(len(blocks), 1))
    if is_cut:
        room -= notice_size * len(blocks)
        tail.append(_CUT_HERE)
    for block, budget in zip(blocks, _divide_room(blocks, room), strict=True):
        parts += _section(block, budget, notice_size)
    return "\n".join([*parts, *tail]).rstrip("\n") + "\n"


def _divide_room(blocks: "Sequence[_Block]", room: int) -> list[int]:
    """Return the bytes that each block gets: what it needs, or an equal share of what smaller blocks leave.

    Blocks about new records get a reserve, and what the others leave.
    """
    budgets = [0] * len(blocks)
    reserve = min(_NEW_BYTES, sum(block.size for block in blocks if block.is_new))
    room -= reserve
    for is_new in (False, True):
        by_size = sorted((block.size, index) for index, block in enumerate(blocks) if block.is_new == is_new)
        for position, (size, index) in enumerate(by_size):
            budgets[index] = min(size, room // (len(by_size) - position))
            room -= budgets[index]
        room += reserve
    return budgets


FAILED = f"""\
{MARKER}
**What this pull request changes could not be computed.** What stood here before may no longer be true; the run of the
workflow says what went wrong.
"""
"""The comment for a document that could not be read."""

_CUT_HERE = "This comment is full: each part ends with what is left out of it. `corpus diff` shows all of it."


def code_span(text: str) -> str:
    """Return the text as a code span on one line, between more backticks than it has in a row."""
    line = one_line(text)  # https://spec.commonmark.org/0.31.2/#code-spans
    if not line.strip(" "):
        return "(blank)" if line else "(empty)"
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    needs_blanks = line[0] in (" ", "`") or line[-1] in (" ", "`")
    return f"{ticks} {line} {ticks}" if needs_blanks else f"{ticks}{line}{ticks}"


def fence(text: str) -> str:
    """Return lines as a code block, with more backticks in its fences than the lines have in a row."""
    # https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}\n{text.rstrip()}\n{ticks}"


def read(data: bytes, schema: Mapping[str, Any]) -> Document:
    """Read a difference from bytes that anybody can have written; raise `DocumentError` if it is none."""
    if len(data) > MOST_INPUT_BYTES:
        raise DocumentError(f"it has more than {MOST_INPUT_BYTES} bytes")
    try:
        text = data.decode("utf-8")
        document = json.loads(text, parse_constant=int, parse_float=int)  # int rejects NaN and 1.5
    except (ValueError, RecursionError) as error:
        raise DocumentError("it is not JSON that holds only texts and whole numbers") from error
    level = [document]  # all values at one depth
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
        level = inner
    if level:
        raise DocumentError(f"it is nested more than {MOST_DEPTH} deep")
    check(document, schema, schema)
    return document  # type: ignore[no-any-return]  # the schema says that it is a mapping


def check(value: object, schema: Mapping[str, Any], whole: Mapping[str, Any], place: str = "$") -> None:
    """Check a value against a part of the `whole` JSON Schema, by the keywords of docs/schema/diff.schema.json.

    Raises:
        DocumentError: The value, which is at `place` in the document, does not match.
        KeyError: The schema has another keyword.
    """
    if "$ref" in schema:
        return check(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole, place)
    for keyword, wanted in schema.items():
        if keyword not in _ANNOTATIONS and not _KEYWORDS[keyword](value, wanted):
            raise DocumentError(f"{place} is not what {keyword!r} asks for")
    if "anyOf" in schema:
        for choice in schema["anyOf"]:
            with suppress(DocumentError):
                check(value, choice, whole, place)
                break
        else:
            raise DocumentError(f"{place} is nothing of what it may be")
    if isinstance(value, Mapping):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, part in value.items():
            inner = properties.get(name, others)
            if inner is False:
                raise DocumentError(f"{place} has a property that it must not have")
            check(name, schema.get("propertyNames", {}), whole, f"a name in {place}")
            check(part, inner, whole, f"{place}.{printable(name, limit=40)}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check(item, schema.get("items", {}), whole, f"{place}[{index}]")
    return None


_TYPES: Mapping[str, Any] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_KEYWORDS: Mapping[str, Any] = {
    "type": lambda value, names: any(_TYPES[name](value) for name in ([names] if isinstance(names, str) else names)),
    "const": lambda value, wanted: type(value) is type(wanted) and value == wanted,
    "enum": lambda value, allowed: isinstance(value, str) and value in allowed,
    "required": lambda value, names: not isinstance(value, dict) or value.keys() >= set(names),
    "maxProperties": lambda value, most: not isinstance(value, dict) or len(value) <= most,
    "minItems": lambda value, fewest: not isinstance(value, list) or len(value) >= fewest,
    "maxItems": lambda value, most: not isinstance(value, list) or len(value) <= most,
    "minLength": lambda value, fewest: not isinstance(value, str) or len(value) >= fewest,
    "maxLength": lambda value, most: not isinstance(value, str) or len(value) <= most,
    "minimum": lambda value, least: not isinstance(value, int) or value >= least,
    "maximum": lambda value, most: not isinstance(value, int) or value <= most,
}
_ANNOTATIONS = frozenset(
    {"$schema", "$defs", "title", "description"}
    | {"anyOf", "properties", "additionalProperties", "propertyNames", "items"}
)
"""The keywords that do not restrict the value itself."""


def one_line(text: str) -> str:
    """Return the text on one line, followed by the code points of characters that look like others."""
    line = _cut_backticks(printable(text, limit=len(text)))
    names = code_points(character for part in odd_parts(text) for character in part.characters)
    return f"{line} [{names}]" if names else line


def _cut_backticks(text: str) -> str:
    """Return the text with long runs of backticks cut and counted."""
    ticks = "`" * _MAX_BACKTICKS
    return re.sub(f"{ticks}`+", lambda run: f"{ticks}…({len(run[0])} backticks)", text)


class _Block(NamedTuple):
    """A section of a comment.

    Attributes:
        items: The lines of each entry, with a link to its place; lines that do not fit are omitted.
        first: Lines above the items, which are never omitted.
        last: Lines below them.
    """

    title: Own
    items: Sequence[tuple[Sequence[str], str]]
    is_new: bool
    first: Sequence[str] = ()
    last: Sequence[str] = ()

    @property
    def size(self) -> int:
        """The bytes of the whole section, folded."""
        return self.frame_size + _size([line for lines, _ in self.items for line in lines])

    @property
    def frame_size(self) -> int:
        """The bytes of the lines around its items, if it is folded; otherwise there are fewer."""
        return _size([*self.first, *self.last, self.title, "<details><summary> (1000000)</summary>", "", "</details>"])


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _fitting_count(lines: Sequence[str], room: int) -> int:
    """Return how many of the first lines fit into some bytes."""
    return sum(size <= room for size in accumulate(_size([line]) for line in lines))


def _sentence(words: Words, place: str = "") -> str:
    """Return words as Markdown: own words as they are, all others as code spans; long texts are cut."""
    sentence = ""
    for word in words:
        if isinstance(word, Own):
            sentence += word.replace(" -> ", " → ")
            continue
        mark = {Gone: "~~", New: "**"}.get(type(word), "")
        if isinstance(word, Part):  # parts are separated by blanks below
            word = word.strip(" ") or word
        if sentence and sentence[-1] not in " ([{":
            sentence += " "
        sentence += f"{mark}{code_span(word[:_MAX_TEXT])}{mark}"
        if len(word) > _MAX_TEXT:
            more = f"{len(word) - _MAX_TEXT:,} more characters"
            sentence += f" … ({more}: {place})" if place else f" … ({more})"
    return sentence


def _section(block: _Block, room: int, notice_size: int) -> list[str]:
    """Return a heading, the lines that fit, and a notice on the others; folded if it is long and about new records."""
    room -= block.frame_size
    body = list(block.first)
    omitted: list[tuple[int, str]] = []
    for lines, place in block.items:
        count = _fitting_count(lines, room)
        room -= _size(lines[:count])
        body += lines[:count]
        if count < len(lines):
            omitted.append((len(lines) - count, place))
    body += (*block.last, *_notice(omitted, notice_size))
    min_folded = 2 * _MIN_FOLDED if block.first else _MIN_FOLDED  # rows of a table are shorter
    if not block.is_new or len(block.items) < min_folded:
        return [f"### {block.title}", "", *body, ""]
    return [f"<details><summary>{block.title} ({len(block.items)})</summary>", "", *body, "", "</details>", ""]


def _notice(omitted: Sequence[tuple[int, str]], room: int) -> list[str]:
    """Return the number of lines that do not fit, with as many links to their entries as fit.

    `omitted` has, for each entry, the number of lines and the link.
    """
    if not omitted:
        return []
    lines = pluralize(sum(count for count, _ in omitted), "more line")
    text = f"… and {lines} of {pluralize(len(omitted), 'entry', 'entries')}"
    places = list(dict.fromkeys(place for _, place in omitted if place))
    links = first_and_more(places, _fitting_count(places, room - 150), "and {:,} more places")
    return ["", f"{text}: {', '.join(links)}" if links else text]


def _place(entry: Entry, document: Document) -> str:
    """Return the place of an entry, as a link from the page of a pull request if its state is a commit."""
    place = code_span(f"{entry.path[:_MAX_REMARK]}:{entry.line}")
    commit = document["before" if entry.is_gone else "after"]
    if not re.fullmatch("[0-9a-f]{7,64}", commit):
        return place
    return f"[{place}](../blob/{commit}/{quote(entry.path)}#L{entry.line})"


def _table_block(shifts: Table) -> _Block:
    """Return a table as aligned text in a fence, since in a Markdown table a bar in a text could end its cell."""
    rows = []
    for row in shifts.rows:
        cells = [_cut_backticks(printable(cell, limit=300)) if isinstance(cell, str) else cell for cell in row]
        rows.append(tuple(cells))
    heading, *lines = plain(table.lines(shifts._replace(title="", rows=tuple(rows)), None)).splitlines()
    opening, *_, closing = fence("\n".join((heading, *lines))).splitlines()
    items = [([line], "") for line in lines]
    return _Block(Own(shifts.title), items, is_new=True, first=(opening, heading), last=(closing,))


def main(arguments: Sequence[str]) -> int:
    """Write the comment for a difference in a file to standard output; return 1 if the file is none."""
    (path,) = arguments
    with open(installed_path("docs/schema/diff.schema.json"), "rb") as file:
        schema = json.load(file)
    try:
        if os.path.islink(path):
            raise DocumentError("it is a symbolic link")
        with open(path, "rb") as file:
            markdown = comment(read(file.read(MOST_INPUT_BYTES + 1), schema))
    except (DocumentError, OSError) as error:
        sys.stderr.write(f"This is not what corpus diff writes: {error}\n")
        sys.stdout.write(FAILED)
        return 1
    sys.stdout.buffer.write(markdown.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
