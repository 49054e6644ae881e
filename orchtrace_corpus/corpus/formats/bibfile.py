"""A BibTeX file as entries of fields, with everything in it that cannot be read.

bibtexparser finds the blocks. It leaves out what it cannot read, and strings that are put together or
never defined it leaves as they stand; here each of these is a problem with its line.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.corpus.formats import Problem

if TYPE_CHECKING:
    from bibtexparser import model

_MONTHS = {
    name[:3].lower(): name
    for name in "January February March April May June July August September October November December".split()
}
_WORD = r"[^\s\"#%'(),={}]+"
_ENTRY_START = r"@\s*\w+\s*[{(]"


class Field(NamedTuple):
    """The value of a field, as LaTeX without the braces or quotes around it, and its line from 1."""

    value: str
    line: int


class Entry(NamedTuple):
    """An entry of a BibTeX file. The names of its fields are in lower case."""

    key: str
    fields: Mapping[str, Field]
    line: int

    def text(self, name: str) -> str:
        """The value of a field as LaTeX; empty where there is none."""
        return self.fields[name].value.strip() if name in self.fields else ""

    def line_of(self, name: str) -> int:
        """The line of a field."""
        return self.fields[name].line if name in self.fields else self.line

    def address(self, name: str) -> str:
        r"""The web address in a field, bare or in `\url{...}`; empty where there is none."""
        found = re.fullmatch(r"(?:\\url\s*\{)?\s*(https?://[^\s{}]+)\s*\}?", self.text(name), re.IGNORECASE)
        return re.sub(r"\\([_%&#$~])(?:\{\})?", r"\1", found[1]) if found else ""


def entries(text: str, problems: list[Problem]) -> list[Entry]:
    """The entries of a file; what cannot be read of it goes to `problems`."""
    import logging

    from bibtexparser import model
    from bibtexparser.splitter import Splitter

    logger = logging.getLogger("bibtexparser.splitter")  # it logs what is reported here
    was_disabled, logger.disabled = logger.disabled, True
    try:
        blocks = Splitter(text).split().blocks
    finally:
        logger.disabled = was_disabled
    strings = dict(_MONTHS)
    found: list[Entry] = []
    for block in blocks:
        line = _line(block)
        if isinstance(block, model.ParsingFailedBlock):
            problems += _failures(block)
        elif isinstance(block, model.String):
            place = Problem(line, f"string {quote(block.key)}")
            strings[block.key.lower()] = _value(block.value, strings, place, problems)
        elif isinstance(block, model.ImplicitComment) and re.search(_ENTRY_START, block.comment):
            message = f"this begins like an entry and is none: {quote(' '.join(block.comment.split()))}"
            problems.append(Problem(line, f"{message}; write @type{{key, ...}}"))
        elif isinstance(block, model.Entry):
            if not block.key:
                problems.append(Problem(line, f"an entry of type {quote(block.entry_type)} has no key"))
            found.append(_entry(block, strings, problems))
    return found


def _entry(block: "model.Entry", strings: Mapping[str, str], problems: list[Problem]) -> Entry:
    fields: dict[str, Field] = {}
    for field in block.fields:
        name, line = field.key.lower(), field.start_line + 1
        if name in fields:
            problems.append(_twice(name, line, fields[name].line))
        fields[name] = Field(_value(str(field.value), strings, Problem(line, printable(name)), problems), line)
    return Entry(block.key, fields, _line(block))


def _failures(block: "model.ParsingFailedBlock") -> Iterator[Problem]:
    """What is wrong with a block that bibtexparser could not read."""
    from bibtexparser import model

    line = _line(block)
    inner = block.ignore_error_block
    if isinstance(block, model.DuplicateBlockKeyBlock):
        what = "string" if isinstance(inner, model.String) else "key"
        first = _line(block.previous_block)
        yield Problem(line, f"{what} {quote(block.key)} is used twice (first on line {first}); keep one")
    elif isinstance(block, model.DuplicateFieldKeyBlock) and isinstance(inner, model.Entry):
        first_lines: dict[str, int] = {}
        for field in inner.fields:
            name, line = field.key.lower(), field.start_line + 1
            if name in first_lines:
                yield _twice(name, line, first_lines[name])
            first_lines.setdefault(name, line)
    else:
        reason = getattr(block.error, "abort_reason", str(block.error))
        yield Problem(line, f"this block cannot be read: {printable(' '.join(reason.split()), limit=200)}")


def _twice(name: str, line: int, first: int) -> Problem:
    return Problem(line, f"field {quote(name)} is given twice (first on line {first}); keep one")


def _value(raw: str, strings: Mapping[str, str], place: Problem, problems: list[Problem]) -> str:
    """A value put together: texts in braces or quotes, numbers and names of strings, joined by `#`."""
    rest, parts = raw.strip(), []
    while True:
        length = _length(rest)
        part, rest = rest[:length], rest[length:].lstrip()
        if part[:1] in ("{", '"'):
            parts.append(part[1:-1])
        elif (part.isascii() and part.isdigit()) or part.lower() in strings:
            parts.append(strings.get(part.lower(), part))
        elif part:
            message = f"{place.message}: there is no string {quote(part)}; define it with @string, or write {{{part}}}"
            problems.append(Problem(place.line, message))
        if not part or (rest and rest[0] != "#"):
            message = f"{place.message}: not a value: {quote(raw)}; write it in braces, with a comma behind"
            problems.append(Problem(place.line, message))
            return ""
        if not rest:
            return "".join(parts)
        rest = rest[1:].lstrip()


def _length(text: str) -> int:
    """How much of a text is its first part; 0 if it begins with none."""
    if text[:1] not in ("{", '"'):
        word = re.match(_WORD, text)
        return word.end() if word else 0
    depth = 0
    for at in re.finditer(r"(?<!\\)[{}\"]", text):
        if at[0] == '"':
            if depth == 0 and text[0] == '"' and at.start():
                return at.end()
            continue
        depth += 1 if at[0] == "{" else -1
        if depth == 0 and text[0] == "{":
            return at.end()
    return 0


def _line(block: "model.Block") -> int:
    return (block.start_line or 0) + 1
