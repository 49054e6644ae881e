"""Other formats than the data file's: what a file of one says of a record, and what is wrong with such a file."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, is_normal, recognise
from orchtrace_corpus.corpus.formats.citation import EntryDetails, merged_entry
from orchtrace_corpus.corpus.model.fields import OTHERS, bare_author
from orchtrace_corpus.corpus.model.record_fields import Value

CITED = {"year": "venue_year", "venue": "proceedings"}
"""What a citation says of the venue: each field, and the one that it is taken from where a record has it."""


class Item(NamedTuple):
    """A record as a file of another format gives it.

    Attributes:
        values: The fields that the file has, in the shape of `papers.yaml`; those that it lacks are
            left out. The key is as the file spells it, which need not be a key of ours.
        line: Where in the file the record begins, from 1; in a file without lines, its number.
        heads: Lists of which the format holds the first item only, by field: `authors` in a CSV
            with a first author, `urls` in BibTeX. Such a field is not among `values`: a record that
            has the list keeps it if it begins with that item.
        blank: Fields for which the file has a place, and nothing in it. A record keeps them.
        cited: `year` and `venue` as a citation gives them: those of the venue, where the record has them.
        keywords: What a citation lists as its keywords; what is written `field=term` can be a tag.
        annotation: What it says in a sentence of the work.
        details: What a format other than BibTeX says of the entry: its type, and fields such as `volume`.
    """

    values: Mapping[str, Value]
    line: int
    heads: Mapping[str, str] = {}
    blank: tuple[str, ...] = ()
    cited: Mapping[str, Value] = {}
    keywords: tuple[str, ...] = ()
    annotation: str = ""
    details: EntryDetails | None = None


class Problem(NamedTuple):
    """What is wrong with a file, and on which line, from 1."""

    line: int
    message: str


class FormatError(DataFileError):
    """A file is not in the format that it should be in; the message lists every problem with its line.

    Attributes:
        problems: The problems, in the order of their lines.
    """

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        shown = printable(path, limit=300)
        super().__init__("\n".join(f"{shown}:{problem.line}: {problem.message}" for problem in self.problems))


def identifiers(numbers: Iterable[str], doi: str) -> dict[str, Value]:
    """The arXiv id and the DOI that a citation carries, by field.

    Args:
        numbers: Where an arXiv id may stand, in any spelling.
        doi: The DOI, or arXiv's DOI of a preprint; one that we do not recognise stays as it is, for
            the decoder to refuse. One in its plain form is no address, so `%` in it stays.
    """
    found: dict[str, Value] = {}
    named = Identifier(IdentifierKind.DOI, doi) if is_normal(IdentifierKind.DOI, doi) else recognise(doi)
    if doi and (named is None or named.kind is IdentifierKind.DOI):
        found[IdentifierKind.DOI.value] = doi if named is None else named.value
    for identifier in (*map(recognise, numbers), named):
        if identifier is not None and identifier.kind is IdentifierKind.ARXIV:
            found.setdefault(IdentifierKind.ARXIV.value, identifier.value)
    return found


def given(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """The values that a file gives, by field: those that are not empty."""
    return {field: value for field, value in values.items() if value}


def completed(item: Item, present: Mapping[str, object] | None) -> tuple[dict[str, Value], list[str]]:
    """The item's values with its heads made into lists, and what is wrong with them.

    A list that begins with its head stays as it is. Another address takes the place of the first;
    another first author is a problem, since it says nothing of the authors behind it. Year and venue of a
    citation go to `venue_year` and `proceedings` where the record has them. Authors who differ only in the
    braces of a collective stay as the record has them.

    Args:
        item: A record as a file gives it.
        present: The record's fields as they are; None for a record that is new.
    """
    values = dict(item.values)
    problems = []
    for field, own in CITED.items():
        if field in item.cited:
            values[own if present and present.get(own) else field] = item.cited[field]
    if present is not None and "authors" in values:
        listed, given_names = _texts(present.get("authors")), _texts(values["authors"])
        if list(map(bare_author, listed)) == list(map(bare_author, given_names)):
            values["authors"] = listed
    if item.details is not None:
        known = present or {}
        venue = values.get("proceedings") or known.get("proceedings") or values.get("venue") or known.get("venue") or ""
        kept = merged_entry(item.details, _latex(known.get("bibtex")), str(venue))
        values |= given({"bibtex": kept})
    for field, head in item.heads.items():
        if present is None:
            cut_short = [OTHERS] if field == "authors" and "," in head else []
            values[field] = [head, *cut_short]
            continue
        items = _texts(present.get(field))
        if items and bare_author(items[0]) == bare_author(head):
            continue
        if field == "authors":
            first = f"the record's is {quote(items[0])}" if items else "the record has none"
            problems.append(f"the first author is {quote(head)}, but {first}; change the list in the record itself")
        else:
            values[field] = [head, *(one for one in items[1:] if one != head)]
    return values, problems


def _latex(value: object) -> dict[str, str]:
    """Return the fields of an entry as LaTeX; none where there is no mapping."""
    return {str(name): str(latex) for name, latex in value.items()} if isinstance(value, Mapping) else {}


def _texts(value: object) -> list[str]:
    """The items of a list; none where there is no list."""
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else []
