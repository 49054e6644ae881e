"""What a change means, as a comment on a pull request: GitHub's Markdown, in which no text of the data is markup."""

import re
from collections.abc import Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Table, markdown
from orchtrace_corpus.corpus.analysis.difference import Difference
from orchtrace_corpus.corpus.render import difference

MARKER = "<!-- corpus diff -->"
"""The first line, by which a bot finds the comment that it wrote before."""

MOST_BYTES = 60_000
"""GitHub takes comments of up to 65,536 characters; a byte is never more than one."""

_FOLDED_FROM = 6
"""Sections of so many entries are folded."""

# How many entries of each section are shown, and how long each may be: the first pair that fits is taken, and the
# last one always does.
_CUTS = ((100_000, 2000), (100, 1000), (30, 500), (10, 300), (3, 200), (1, 60))

_JOINER = "\u2060"
"""Invisible; keeps a mark from making a mention, a reference or a link of what follows."""


def comment(change: Difference) -> str:
    """The change as a comment, cut to what GitHub takes.

    Long lists are cut evenly, so that no part of the change goes unmentioned.
    """
    text = ""
    for most, longest in _CUTS:
        text = _comment(change, most, longest)
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def plain(text: str) -> str:
    """The text with nothing in it that could become markup, a mention of a person, a reference, a link or a formula.

    Reference: https://docs.github.com/get-started/writing-on-github
    """
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    escaped = re.sub(r":(?=[\w+-]+:|//)", f":{_JOINER}", escaped)
    return re.sub(r"(?i)\b(www|gh)([.-])", rf"\1{_JOINER}\2", escaped)


_SPECIAL = {character: f"\\{character}" for character in "\\`*_[]<|~"}
_SPECIAL |= {"&": "&amp;", "@": f"@{_JOINER}", "#": f"#{_JOINER}", "$": "<span>$</span>"}


def _comment(change: Difference, most: int, longest: int) -> str:
    if not change.has_meaning:
        told = [f"**{plain(difference.nothing(change))}**", *_remarks(change, longest)]
        return "\n".join((MARKER, *told)) + "\n"
    parts = [MARKER, f"**{plain(difference.headline(change))}**", ""]
    parts += [f"Compared: {_bounded(change.names[0], longest)} with {_bounded(change.names[1], longest)}.", ""]
    parts += _remarks(change, longest)
    for title, sentences in difference.sections(change, longest=longest):
        items = [f"- {plain(sentence)}" for sentence in sentences[:most]]
        items += [f"- … and {len(sentences) - most} more"] if len(sentences) > most else []
        parts += _section(title, len(sentences), items)
    for table in difference.shift_tables(change):
        parts += _section(table.title, len(table.rows), _table(table, most, longest), always=False)
    left = difference.claims_left(change)
    parts += [left, ""] if left else []
    parts += ["Long lists are cut here; `corpus diff` shows them whole.", ""] if most < _CUTS[0][0] else []
    return "\n".join(parts).rstrip("\n") + "\n"


def _remarks(change: Difference, longest: int) -> list[str]:
    return [part for remark in change.remarks for part in (f"{_bounded(remark, max(longest, 300))}", "")]


def _section(title: str, number: int, lines: Sequence[str], *, always: bool = True) -> list[str]:
    """A heading and its lines; folded where there are many."""
    if number < _FOLDED_FROM or (not always and number < 2 * _FOLDED_FROM):
        return [f"### {title}", "", *lines, ""]
    return [f"<details><summary>{title} ({number})</summary>", "", *lines, "", "</details>", ""]


def _table(table: Table, most: int, longest: int) -> list[str]:
    cut = table._replace(title="", rows=table.rows[:most])
    shown = markdown(cut, lambda text: _bounded(text, longest)).splitlines()
    return [*shown, *(["", f"… and {len(table.rows) - most} more"] if len(table.rows) > most else [])]


def _bounded(text: str, longest: int) -> str:
    return plain(printable(text, limit=longest))
