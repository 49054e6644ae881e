"""Writes a comment on a pull request from the JSON document that `difference` makes.

    python -m orchtrace_corpus.corpus.render.comment DIFF.json

The document may contain texts of anybody. It is checked against docs/schema/diff.schema.json, with limits on size,
depth, numbers and lengths, and each text becomes a code span or a fence, in which GitHub's Markdown has no markup,
mentions, references, links or formulas; so nothing needs a filter. The module uses only the standard library, since
nothing else is installed where it runs.
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
"""GitHub takes comments of up to 65,536 characters; a byte is never more than one."""

MOST_INPUT_BYTES = 8_000_000
MOST_DEPTH = 40
"""The largest depth of a document; a difference has eight levels, and a value in it those of a data file."""
_FOLDED_FROM = 6
"""The least lines of a section that is folded, if it is about new records."""
_NOTICE_BYTES = 700
"""The room in a section for the count and the links of lines that do not fit."""
_FILES_BYTES = 6000
"""The room for the names of files outside the data."""
_NEW_BYTES = 6000
"""The room that is kept for new records, however much else changed."""
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
    sizes = accumulate(_size([f"{code_span(name[: difference.MAX_PATH])}…, "]) for name in document["outside"]["files"])
    if files := difference.files_outside(document, sum(size <= _FILES_BYTES for size in sizes)):
        parts += [f"**Not data alone.** {_words(files)}", ""]
    compared = f"Compared: {' with '.join(code_span(document[name][:_MAX_REMARK]) for name in ('before', 'after'))}."
    if "refused" in document:
        lines = [_unticked(printable(line, limit=_MAX_REMARK)) for line in document["refused"].split("\n")]
        reason = fence("\n".join(lines[: _fitting(lines, MOST_BYTES // 3)]))
        return "\n".join([*parts, "**The data cannot be compared.**", "", reason, "", compared, ""])
    if document["has_meaning"]:
        parts += [f"**{difference.headline(document)}**", "", compared, ""]
    else:
        parts += [f"**{difference.meaningless_change(document)}**", ""]
    remarks = [code_span(remark[:_MAX_REMARK]) for remark in document["remarks"]]
    for remark in remarks[: _fitting(remarks, _NEW_BYTES)]:
        parts += [remark, ""]
    left = difference.claims_left(document) if document["has_meaning"] else ()
    tail = [_words(left if _size([_words(left)]) <= _NEW_BYTES else left[:1]), ""] if left else []
    blocks = []
    for section in difference.sections(document):
        items = []
        for entry in section.entries:
            place = _place(entry, document) if entry.path else ""
            first, *others = (_words(words, place) for words in entry.lines)
            items.append(([f"- {first}", *(f"  - {words}" for words in others)], place))
        blocks.append(_Block(section.title, items, section.is_new))
    blocks += [_table(shifts) for shifts in difference.shift_tables(document)]
    room = MOST_BYTES - _size([*parts, *tail, _CUT_HERE])
    is_cut = sum(block.size for block in blocks) > room
    notice = min(_NOTICE_BYTES, MOST_BYTES // 3 // max(len(blocks), 1))
    if is_cut:
        room -= notice * len(blocks)
    budgets = {}
    reserved = min(_NEW_BYTES, sum(block.size for block in blocks if block.is_new))
    room -= reserved
    for is_new in (False, True):
        ordered = sorted((block.size, at) for at, block in enumerate(blocks) if block.is_new == is_new)
        for index, (size, at) in enumerate(ordered):
            budgets[at] = min(size, room // (len(ordered) - index))
            room -= budgets[at]
        room += reserved
    for at, block in enumerate(blocks):
        parts += _section(block, budgets[at], notice)
    return "\n".join([*parts, *tail, *([_CUT_HERE] if is_cut else [])]).rstrip("\n") + "\n"


FAILED = f"""\
{MARKER}
**What this pull request changes could not be computed.** What stood here before may no longer be true; the run of the
workflow says what went wrong.
"""
"""The comment for a document that could not be read."""

_CUT_HERE = "This comment is full: each part ends with what is left out of it. `corpus diff` shows all of it."


def code_span(text: str) -> str:
    """Return the text as a code span on one line, between more backticks than any run of it has."""
    shown = marked(text)  # https://spec.commonmark.org/0.31.2/#code-spans
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    room = " " if shown[:1] in (" ", "`") or shown[-1:] in (" ", "`") else ""
    if not shown.strip(" "):
        return "(blank)" if shown else "(empty)"
    return f"{ticks}{room}{shown}{room}{ticks}"


def fence(text: str) -> str:
    """Return lines as a code block, with a fence that is longer than any run of backticks in them."""
    # https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}\n{text.rstrip()}\n{ticks}"


def read(data: bytes, schema: Mapping[str, Any]) -> Document:
    """Read a difference from bytes that anybody may have written; a `DocumentError` says what is wrong."""
    if len(data) > MOST_INPUT_BYTES:
        raise DocumentError(f"it has more than {MOST_INPUT_BYTES} bytes")
    try:
        text = data.decode("utf-8")
        document = json.loads(text, parse_constant=int, parse_float=int)  # int rejects NaN and 1.5
    except (ValueError, RecursionError) as error:
        raise DocumentError("it is not JSON that holds only texts and whole numbers") from error
    level = [document]
    for _ in range(MOST_DEPTH):
        parents = [part for part in level if isinstance(part, dict | list)]
        level = [part for parent in parents for part in (parent.values() if isinstance(parent, dict) else parent)]
    if level:
        raise DocumentError(f"it is nested more than {MOST_DEPTH} deep")
    check(document, schema, schema)
    return document  # type: ignore[no-any-return]  # the schema says that it is a mapping


def check(value: object, schema: Mapping[str, Any], whole: Mapping[str, Any], place: str = "$") -> None:
    """Check a value against a part of the `whole` JSON Schema, by the keywords of docs/schema/diff.schema.json.

    A value at `place` that does not match is a `DocumentError`, another keyword a `KeyError`.
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


def marked(text: str) -> str:
    """Return the text on one line, followed by the code points of characters that look like others."""
    named = code_points(character for part in odd_parts(text) for character in part.characters)
    return _unticked(printable(text, limit=len(text))) + (f" [{named}]" if named else "")


def _unticked(text: str) -> str:
    """Return the text with long runs of backticks cut and counted."""
    ticks = "`" * _MAX_BACKTICKS
    return re.sub(f"{ticks}`+", lambda run: f"{ticks}…({len(run[0])} backticks)", text)


class _Block(NamedTuple):
    """A section: the lines of each entry, which can be omitted, with its place, between `first` and `last` lines."""

    title: Own
    items: Sequence[tuple[Sequence[str], str]]
    is_new: bool
    first: Sequence[str] = ()
    last: Sequence[str] = ()

    @property
    def size(self) -> int:
        """The bytes of the whole section."""
        return self.frame_size + _size([line for lines, _ in self.items for line in lines])

    @property
    def frame_size(self) -> int:
        """The bytes of the lines around its items, folded or not."""
        return _size([*self.first, *self.last, self.title, "<details><summary> (1000000)</summary>", "", "</details>"])


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _fitting(lines: Sequence[str], room: int) -> int:
    """Return how many of the first lines fit."""
    return sum(size <= room for size in accumulate(_size([line]) for line in lines))


def _words(words: Words, place: str = "") -> str:
    """Return a sentence: own words as they are, all others as code spans; long ones are cut, and the rest counted."""
    shown = ""
    for word in words:
        if isinstance(word, Own):
            shown += word.replace(" -> ", " → ")
            continue
        mark = {Gone: "~~", New: "**"}.get(type(word), "")
        if isinstance(word, Part):  # there is a blank between parts anyway
            word = word.strip(" ") or word
        blank = " " if shown and shown[-1] not in " ([{" else ""
        shown += f"{blank}{mark}{code_span(word[:_MAX_TEXT])}{mark}"
        if len(word) > _MAX_TEXT:
            shown += f" … ({len(word) - _MAX_TEXT:,} more characters{': ' * bool(place)}{place})"
    return shown


def _section(block: _Block, room: int, notice: int) -> list[str]:
    """Return a heading, the lines that fit, and a notice on the others; folded if it is long and about new records."""
    room -= block.frame_size
    shown: list[str] = []
    omitted: list[tuple[int, str]] = []
    for lines, place in block.items:
        fitting = _fitting(lines, room)
        room -= _size(lines[:fitting])
        shown += lines[:fitting]
        if fitting < len(lines):
            omitted.append((len(lines) - fitting, place))
    shown = [*block.first, *shown, *block.last, *_notice(omitted, notice)]
    if not block.is_new or len(block.items) < (2 * _FOLDED_FROM if block.first else _FOLDED_FROM):
        return [f"### {block.title}", "", *shown, ""]
    return [f"<details><summary>{block.title} ({len(block.items)})</summary>", "", *shown, "", "</details>", ""]


def _notice(omitted: Sequence[tuple[int, str]], room: int) -> list[str]:
    """Return the number of lines that do not fit, with as many links to them as fit."""
    if not omitted:
        return []
    shown = f"… and {pluralize(sum(count for count, _ in omitted), 'more line')}"
    places = list(dict.fromkeys(place for _, place in omitted if place))
    named = first_and_more(places, _fitting(places, room - 150), "and {:,} more places")
    return ["", f"{shown} of {pluralize(len(omitted), 'entry', 'entries')}{': ' * bool(named)}{', '.join(named)}"]


def _place(entry: Entry, document: Document) -> str:
    """Return the place of an entry, as a link from the page of a pull request if its state is a commit."""
    shown = code_span(f"{entry.path[:_MAX_REMARK]}:{entry.line}")
    commit = document["before" if entry.is_gone else "after"]
    if not re.fullmatch("[0-9a-f]{7,64}", commit):
        return shown
    return f"[{shown}](../blob/{commit}/{quote(entry.path)}#L{entry.line})"


def _table(shifts: Table) -> _Block:
    """Return a table as aligned text in a fence, since in a Markdown table a bar in a text could end its cell."""
    rows = tuple(
        tuple(_unticked(printable(cell, limit=300)) if isinstance(cell, str) else cell for cell in row)
        for row in shifts.rows
    )
    head, *lines = plain(table.lines(shifts._replace(title="", rows=rows), None)).splitlines()
    opening, *_, closing = fence("\n".join((head, *lines))).splitlines()
    return _Block(Own(shifts.title), [([line], "") for line in lines], True, (opening, head), (closing,))


def main(arguments: Sequence[str]) -> int:
    """Write the comment for a difference in a file to standard output; return 1 if the file is none."""
    (path,) = arguments
    with open(installed_path("docs/schema/diff.schema.json"), "rb") as file:
        schema = json.load(file)
    try:
        if os.path.islink(path):
            raise DocumentError("it is a symbolic link")
        with open(path, "rb") as file:
            shown = comment(read(file.read(MOST_INPUT_BYTES + 1), schema))
    except (DocumentError, OSError) as error:
        sys.stderr.write(f"This is not what corpus diff writes: {error}\n")
        sys.stdout.write(FAILED)
        return 1
    sys.stdout.buffer.write(shown.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
