"""What a change means, as a comment on a pull request, from the JSON document that `difference_data` makes.

    python -m orchtrace_corpus.corpus.render.comment DIFF.json

The document comes from a job that read what anybody may have written. So it is held to docs/schema/diff.schema.json,
with bounds on size, depth, numbers and lengths, and every text in it stands in a code span or a fence: there GitHub's
Markdown knows no markup, mention, reference, link or formula. Nothing is filtered, since there is nothing that a filter
could miss. This module needs the standard library only: where the comment is written, nothing is installed.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.lookalikes import code_points, odd_parts
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.base.text.table import Table
from orchtrace_corpus.corpus.render import difference
from orchtrace_corpus.corpus.render.difference import Document, Entry, Own, Words

MARKER = "<!-- corpus diff -->"
"""The first line, by which a bot finds the comment that it wrote before."""

MOST_BYTES = 60_000
"""GitHub takes comments of up to 65,536 characters; a byte is never more than one."""

MOST_INPUT_BYTES = 8_000_000
MOST_DEPTH = 16
"""How deep a document may be nested; a difference is nested nine deep."""

_FOLDED_FROM = 6
"""Sections of so many lines are folded."""


class _Cut(NamedTuple):
    """How many entries of each section are shown, how many texts of each entry, and how long a text may be."""

    entries: int
    texts: int
    longest: int


_WHOLE = _Cut(100_000, 100_000, 2000)
_CUTS = (_WHOLE, _Cut(100, 400, 1000), _Cut(30, 200, 500), _Cut(10, 100, 300), _Cut(3, 60, 150), _Cut(1, 24, 60))
"""The first one that fits is taken."""

_MOST_BACKTICKS = 20
"""Longer runs are cut: cmark, GitHub's parser, takes delimiters of code spans of up to 80 backticks."""


class DocumentError(ValueError):
    """A document is not a difference; the message says where and why."""


def comment(document: Document) -> str:
    """The change as a comment, cut to what GitHub takes.

    Long lists are cut evenly, so that no part of the change goes unmentioned.

    Args:
        document: A document that is a difference; see `check`.
    """
    for cut in _CUTS:
        shown = _comment(document, cut)
        if len(shown.encode()) <= MOST_BYTES:
            return shown
    parts = [*_head(document, _CUTS[-1]), f"**{difference.headline(document)}**", "", _CUT_HERE]
    return "\n".join(parts) + "\n"


FAILED = f"""\
{MARKER}
**What this pull request changes could not be computed.** What stood here before may no longer be true; the run of the
workflow says what went wrong.
"""
"""The comment where there is no document."""

_CUT_HERE = "Long lists are cut here; `corpus diff` shows them whole."


def code_span(text: str, longest: int = 2000) -> str:
    """The text as a code span: on one line, between more backticks than it holds in a row.

    Reference: https://spec.commonmark.org/0.31.2/#code-spans
    """
    shown = _cut(text, longest)
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    room = " " if shown[:1] in (" ", "`") or shown[-1:] in (" ", "`") else ""
    return f"{ticks}{room}{shown}{room}{ticks}" if shown.strip(" ") else "(empty)"


def fence(text: str) -> str:
    """The lines as a fenced code block, the fence longer than any run of backticks in them.

    Reference: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    """
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}\n{text.rstrip()}\n{ticks}"


def read(data: bytes, schema: Mapping[str, Any]) -> Document:
    """A difference, read from bytes that anybody may have written.

    Raises:
        DocumentError: It is too large, nested too deep, no JSON, or not what the schema describes.
    """
    if len(data) > MOST_INPUT_BYTES:
        raise DocumentError(f"it has more than {MOST_INPUT_BYTES} bytes")
    try:
        text = data.decode("utf-8")
        document = json.loads(text, parse_constant=_refuse, parse_float=_refuse)
    except (ValueError, RecursionError) as error:
        raise DocumentError("it is not JSON that holds only texts and whole numbers") from error
    level = [document]
    for _ in range(MOST_DEPTH):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [value for values in inner for value in values]
    if level:
        raise DocumentError(f"it is nested more than {MOST_DEPTH} deep")
    check(document, schema, schema)
    return document  # type: ignore[no-any-return]  # the schema says that it is a mapping


def check(value: object, schema: Mapping[str, Any], whole: Mapping[str, Any], place: str = "$") -> None:
    """Hold a value to a JSON Schema, by the keywords that docs/schema/diff.schema.json uses.

    Args:
        value: The value.
        schema: What it has to be.
        whole: The document to which the references in the schema lead.
        place: Where the value stands.

    Raises:
        DocumentError: It is not what the schema describes.
        KeyError: The schema has a keyword that is not understood here.
    """
    if "$ref" in schema:
        return check(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole, place)
    for keyword, wanted in schema.items():
        if keyword not in _ANNOTATIONS and not _KEYWORDS[keyword](value, wanted):
            raise DocumentError(f"{place} is not what {keyword!r} asks for")
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            with suppress(DocumentError):
                check(value, one, whole, place)
                break
        else:
            raise DocumentError(f"{place} is nothing of what it may be")
    if isinstance(value, Mapping):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, one in value.items():
            inner = properties.get(name, others)
            if inner is False:
                raise DocumentError(f"{place} has a property that it must not have")
            check(name, schema.get("propertyNames", {}), whole, f"a name in {place}")
            check(one, inner, whole, f"{place}.{printable(name, limit=40)}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            check(one, schema.get("items", {}), whole, f"{place}[{number}]")
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
"""The keywords that say nothing about the value itself."""


def _refuse(text: str) -> None:
    raise ValueError(text)


def _cut(text: str, longest: int) -> str:
    ticks = "`" * _MOST_BACKTICKS
    return re.sub(f"{ticks}`+", f"{ticks}…", printable(text, limit=longest))


def _comment(document: Document, cut: _Cut) -> str:
    head = _head(document, cut)
    if "refused" in document:
        reason = fence("\n".join(_cut(line, cut.longest) for line in document["refused"].splitlines()[: cut.texts]))
        return "\n".join((*head, "**The data cannot be compared.**", "", reason, "", _compared(document, cut))) + "\n"
    remarks = [
        part for text in document["remarks"][: cut.entries] for part in (code_span(text, max(cut.longest, 300)), "")
    ]
    if not document["has_meaning"]:
        return "\n".join((*head, f"**{difference.nothing(document)}**", *remarks)).rstrip("\n") + "\n"
    parts = [*head, f"**{difference.headline(document)}**", "", _compared(document, cut), "", *remarks]
    for title, entries in difference.sections(document):
        lines = [line for entry in entries[: cut.entries] for line in _entry(entry, cut)]
        lines += [f"- … and {len(entries) - cut.entries} more"] if len(entries) > cut.entries else []
        parts += _section(title, len(entries), lines)
    for one in difference.shift_tables(document):
        parts += _section(Own(one.title), len(one.rows), _table(one, cut), folded_from=2 * _FOLDED_FROM)
    left = difference.claims_left(document)
    parts += [_words(left, cut.longest, cut.texts), ""] if left else []
    parts += [_CUT_HERE, ""] if cut is not _WHOLE else []
    return "\n".join(parts).rstrip("\n") + "\n"


def _head(document: Document, cut: _Cut) -> list[str]:
    """Begin the comment, and name the files that are no data first of all."""
    files = difference.files_outside(document, cut.entries)
    if not files:
        return [MARKER]
    return [MARKER, f"**Not data alone.** {_words(files, cut.longest, len(files))}", ""]


def _compared(document: Document, cut: _Cut) -> str:
    before, after = (code_span(document[name], cut.longest) for name in ("before", "after"))
    return f"Compared: {before} with {after}."


def _entry(entry: Entry, cut: _Cut) -> list[str]:
    """A sentence and those below it as items of a list."""
    left = cut.texts
    lines: list[str] = []
    for number, words in enumerate(entry):
        if left <= 0:
            return [*lines, f"  - … and {len(entry) - number} more lines"]
        lines.append(f"{'  ' * (number > 0)}- {_words(words, cut.longest, left)}")
        left -= sum(not isinstance(word, Own) for word in words)
    return lines


def _words(words: Words, longest: int, most: int) -> str:
    """A sentence: our own words as they are, so many others at most, as code spans."""
    shown = ""
    for word in words:
        most -= not isinstance(word, Own)
        if most < 0:
            return f"{shown} …"
        if isinstance(word, Own):
            text = word.replace(" -> ", " → ")
        else:
            named = marked(word, longest)
            text = code_span(named, len(named))
        shown += f" {text}" if shown.endswith("`") and text.startswith("`") else text
    return shown


def marked(text: str, longest: int = 2000) -> str:
    """The text, cut, and behind it the code points of what looks like something else in it."""
    named = code_points(character for part in odd_parts(text) for character in part.characters)
    return _cut(text, longest) + (f" [{named}]" if named else "")


def _section(title: Own, number: int, lines: Sequence[str], *, folded_from: int = _FOLDED_FROM) -> list[str]:
    """A heading and its lines; folded where there are many."""
    if number < folded_from:
        return [f"### {title}", "", *lines, ""]
    return [f"<details><summary>{title} ({number})</summary>", "", *lines, "", "</details>", ""]


def _table(one: Table, cut: _Cut) -> list[str]:
    """A table as aligned text in a fence: in a table of Markdown, a bar in a text could end its cell."""
    rows = tuple(
        tuple(_cut(cell, cut.longest) if isinstance(cell, str) else cell for cell in row)
        for row in one.rows[: cut.entries]
    )
    shown = fence(plain(table.lines(one._replace(title="", rows=rows), None)))
    more = len(one.rows) - cut.entries
    return [shown, *(["", f"… and {more} more"] if more > 0 else [])]


def main(arguments: Sequence[str]) -> int:
    """Write the comment for a difference in a file to standard output; say so and return 1 if there is none."""
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
