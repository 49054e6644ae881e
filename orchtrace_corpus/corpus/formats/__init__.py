"""Records and problems that a file in another format than the data file's holds."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, is_normal, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import MOST_LINES, first_and_more
from orchtrace_corpus.corpus.model.fields import OTHERS, bare_author
from orchtrace_corpus.corpus.model.record_fields import Value

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.formats.citation import EntryDetails

CITED = {"year": "venue_year", "venue": "proceedings"}
"""The fields of a venue in a citation, each with the field of a record that takes precedence."""


class Item(NamedTuple):
    """A record as a file of another format gives it.

    Attributes:
        values: The fields that the file has, in the shape of `papers.yaml`. The key is as the file spells it, which
            need not be a key of ours.
        line: Where in the file the record begins, from 1; in a file without lines, its number.
        heads: Lists of which the format holds the first item only, by field: `authors` in a CSV
            with a first author, `urls` in BibTeX. Such a field is not among `values`: a record that
            has the list keeps it if it begins with that item.
        blank: Fields for which the file has a place, and nothing in it. A record keeps them.
        cited: `year` and `venue` as a citation gives them: those of the venue, where the record has them.
        keywords: The keywords written `field=term`, which can be tags.
        annotation: The sentence on the work that stands beside such keywords.
        details: The type and fields such as `volume`, as a format other than BibTeX gives them.
    """

    values: Mapping[str, Value]
    line: int
    heads: Mapping[str, str] = {}
    blank: tuple[str, ...] = ()
    cited: Mapping[str, Value] = {}
    keywords: tuple[str, ...] = ()
    annotation: str = ""
    details: "EntryDetails | None" = None


class Problem(NamedTuple):
    """A problem in a file, with its line from 1."""

    line: int
    message: str


class FormatError(DataFileError):
    """The error of a file that does not follow its format; the message lists the first problems with their lines.

    Attributes:
        problems: The problems, in the order of their lines.
    """

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        shown = printable(path, limit=300)
        lines = [f"{shown}:{problem.line}: {problem.message}" for problem in self.problems]
        super().__init__("\n".join(first_and_more(lines, MOST_LINES, "and {:,} more")))


def read_identifiers(numbers: Iterable[str], doi: str) -> dict[str, Value]:
    """Return the arXiv id and the DOI of a citation, by field.

    Args:
        numbers: Where an arXiv id may stand, in any spelling.
        doi: The DOI, or arXiv's DOI of a preprint. An unknown form stays as it is, for the decoder to refuse. A DOI in
            its plain form is no address, so `%` in it stays.
    """
    by_field: dict[str, Value] = {}
    recognised = recognise(doi)
    if is_normal(IdentifierKind.DOI, doi):
        recognised = Identifier(IdentifierKind.DOI, doi)
    if doi and recognised is None:
        by_field[IdentifierKind.DOI.value] = doi
    elif recognised is not None and recognised.kind is IdentifierKind.DOI:
        by_field[IdentifierKind.DOI.value] = recognised.value
    for identifier in (*map(recognise, numbers), recognised):
        if identifier is not None and identifier.kind is IdentifierKind.ARXIV:
            by_field.setdefault(IdentifierKind.ARXIV.value, identifier.value)
    return by_field


def without_empty(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return the values that are not empty, by field."""
    return {field: value for field, value in values.items() if value}


def read_item(
    line: int,
    fields: Mapping[str, Value],
    cited: Mapping[str, Value],
    details: "EntryDetails",
    keywords: Iterable[str],
    annotation: str,
    heads: Mapping[str, str] = {},
) -> Item:
    """Return the record of a citation; where nobody else is named, the editors stand as its authors."""
    values = {**fields, "authors": fields["authors"] or list(details.editors)}
    tags = tuple(keyword for keyword in keywords if "=" in keyword)
    return Item(without_empty(values), line, heads, (), cited, tags, annotation if tags else "", details)


def complete_item(item: Item, present: Mapping[str, object] | None) -> tuple[dict[str, Value], list[str]]:
    """Return the item's values with its heads made into lists, and the problems with them.

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
        present_names, item_names = _texts(present.get("authors")), _texts(values["authors"])
        if list(map(bare_author, present_names)) == list(map(bare_author, item_names)):
            values["authors"] = present_names
    if item.details is not None:
        from orchtrace_corpus.corpus.formats.citation import merge_entry  # no generated file needs it

        known = present or {}
        venue = values.get("proceedings") or known.get("proceedings") or values.get("venue") or known.get("venue") or ""
        entry = known.get("bibtex")
        latex = {str(name): str(text) for name, text in entry.items()} if isinstance(entry, Mapping) else {}
        values |= without_empty({"bibtex": merge_entry(item.details, latex, str(venue))})
    for field, head in item.heads.items():
        if present is None:
            cut_short = [OTHERS] if field == "authors" and "," in head else []
            values[field] = [head, *cut_short]
            continue
        texts = _texts(present.get(field))
        if texts and bare_author(texts[0]) == bare_author(head):
            continue
        if field == "authors":
            first = f"the record's is {quote(texts[0])}" if texts else "the record has none"
            problems.append(f"the first author is {quote(head)}, but {first}; change the list in the record itself")
        else:
            values[field] = [head, *(text for text in texts[1:] if text != head)]
    return values, problems


def _texts(value: object) -> list[str]:
    """Return the items of a list; none where there is no list."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []
