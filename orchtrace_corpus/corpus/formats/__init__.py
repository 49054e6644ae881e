"""The records and problems of a file in a format other than that of the data files."""

from collections.abc import Iterable, Mapping

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, is_normal, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more
from orchtrace_corpus.corpus.model.fields import OTHERS, bare_author
from orchtrace_corpus.corpus.model.record_fields import Value

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.formats.citation import EntryDetails

CITED = {"year": "venue_year", "venue": "proceedings"}
"""The fields of a venue in a citation, each with the field of a record that takes precedence."""


class Item(NamedTuple):
    """A record of a file, with the line on which it begins, from 1.

    Attributes:
        values: The fields in the shape of `papers.yaml`; the key is spelled as in the file.
        heads: The first items of lists that the format cuts short, by field: `authors` in a CSV with a first author,
            `urls` in BibTeX. These fields are not among `values`.
        blank: The fields that have an empty place in the file. A record keeps its values for them.
        cited: `year` and `venue` of a citation, which are those of the venue where the record has them.
        keywords: The keywords written `field=term`, which can be tags.
        annotation: The annotation of an item with such keywords, which can be the summary.
        details: The type and fields such as `volume`, in a format other than BibTeX.
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
    """The error of a file that does not follow its format; the message lists the first problems with their lines."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        shown = printable(path, limit=300)
        lines = [f"{shown}:{problem.line}: {problem.message}" for problem in self.problems]
        super().__init__("\n".join(first_and_more(lines, MAX_LINES, "and {:,} more")))


def read_identifiers(numbers: Iterable[str], doi: str) -> dict[str, Value]:
    """Return the arXiv id and the DOI of a citation, by field.

    The arXiv id is searched in `numbers`, in any spelling, and in arXiv's own DOIs. A DOI of unknown form is kept, for
    the decoder to refuse.
    """
    by_field: dict[str, Value] = {}
    recognised = recognise(doi)
    if is_normal(IdentifierKind.DOI, doi):  # no address, so `%` in it is no escape
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
    """Return the record of a citation; the editors of a work without authors are its authors."""
    values = {**fields, "authors": fields["authors"] or list(details.editors)}
    tags = tuple(keyword for keyword in keywords if "=" in keyword)
    return Item(without_empty(values), line, heads, (), cited, tags, annotation if tags else "", details)


def complete_item(item: Item, present: Mapping[str, object] | None) -> tuple[dict[str, Value], list[str]]:
    """Return the values that an item gives to a record with the fields `present`, and the problems with them.

    `present` is None for a new record. A list that begins with the item's head is kept. Another address replaces the
    first one; another first author is a problem, since the authors after it are unknown. Year and venue of a citation
    go to `venue_year` and `proceedings` where the record has them. Authors who differ only in the braces of a
    collective are kept.
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

        current = present or {}
        venues = (fields.get(name) for name in ("proceedings", "venue") for fields in (values, current))
        venue = next(filter(None, venues), "")
        entry = current.get("bibtex")
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
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []
