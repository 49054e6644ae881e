"""Records read from a file in a format such as BibTeX or CSV, and the problems of such a file."""

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

PUBLICATION_FIELDS = {"year": "venue_year", "venue": "proceedings"}
"""For a field of a citation, the field of a record that receives it if the record has a value there already."""


class Item(NamedTuple):
    """A record as read from a file.

    Attributes:
        values: The fields in the shape of `papers.yaml`; the key is spelled as in the file.
        line: The line on which the record begins, from 1.
        first_items: The first item of each list that the format cuts short, by field: `authors` in a CSV with a first
            author, `urls` in BibTeX. These fields are not among `values`.
        empty_fields: The fields that are empty in the file. An import does not change them.
        cited: `year` and `venue` of a citation; see `PUBLICATION_FIELDS`.
        keywords: The keywords of the form `field=term`. They become the tags of a new paper.
        annotation: The annotation, if there are such keywords. It becomes the summary of a new paper.
        details: The type and fields such as `volume`; None for BibTeX, where `values` has them under `bibtex`.
    """

    values: Mapping[str, Value]
    line: int
    first_items: Mapping[str, str] = {}
    empty_fields: tuple[str, ...] = ()
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
        path = printable(path, limit=300)
        lines = [f"{path}:{problem.line}: {problem.message}" for problem in self.problems]
        super().__init__("\n".join(first_and_more(lines, MAX_LINES, "and {:,} more")))


def read_identifiers(numbers: Iterable[str], doi: str) -> dict[str, Value]:
    """Return the arXiv id and the DOI of a citation, by the name of the field.

    `numbers` are texts that may be an arXiv id in any spelling; a DOI of arXiv names an arXiv id, too. A malformed
    DOI is kept, so that the decoder reports it.
    """
    by_field: dict[str, Value] = {}
    doi_identifier = recognise(doi)
    if is_normal(IdentifierKind.DOI, doi):  # not an address, where `%` would begin an escape
        doi_identifier = Identifier(IdentifierKind.DOI, doi)
    if doi and doi_identifier is None:
        by_field[IdentifierKind.DOI.value] = doi
    elif doi_identifier is not None and doi_identifier.kind is IdentifierKind.DOI:
        by_field[IdentifierKind.DOI.value] = doi_identifier.value
    for identifier in (*map(recognise, numbers), doi_identifier):
        if identifier is not None and identifier.kind is IdentifierKind.ARXIV:
            by_field.setdefault(IdentifierKind.ARXIV.value, identifier.value)
    return by_field


def without_empty(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return the values that are not empty, by field."""
    return {field: value for field, value in values.items() if value}


def citation_item(
    line: int,
    fields: Mapping[str, Value],
    *,
    cited: Mapping[str, Value],
    details: "EntryDetails",
    keywords: Iterable[str],
    annotation: str,
    first_items: Mapping[str, str] = {},
) -> Item:
    """Return a citation as an item. If it has no authors, its editors become the authors."""
    values = without_empty({**fields, "authors": fields["authors"] or list(details.editors)})
    tags = tuple(keyword for keyword in keywords if "=" in keyword)
    summary = annotation if tags else ""
    return Item(values, line, first_items, cited=cited, keywords=tags, annotation=summary, details=details)


def complete_item(item: Item, present: Mapping[str, object] | None) -> tuple[dict[str, Value], list[str]]:
    """Return the values that an item gives to a record with the fields `present`, and the problems with them.

    `present` is None for a new record. A list of the record that begins with the item's first item stays as it is.
    Otherwise a new address replaces the first one, and a new first author is a problem, since the other authors are
    unknown. Authors who differ only in the braces of a collective stay as they are.
    """
    values = dict(item.values)
    problems = []
    current = present or {}
    for field, publication_field in PUBLICATION_FIELDS.items():
        if field in item.cited:
            values[publication_field if current.get(publication_field) else field] = item.cited[field]
    if present is not None and "authors" in values:
        present_names, item_names = _text_list(present.get("authors")), _text_list(values["authors"])
        if list(map(bare_author, present_names)) == list(map(bare_author, item_names)):
            values["authors"] = present_names
    if item.details is not None:
        from orchtrace_corpus.corpus.formats.citation import merge_entry  # not needed to build generated files

        proceedings = values.get("proceedings") or current.get("proceedings")
        venue = proceedings or values.get("venue") or current.get("venue") or ""
        entry = current.get("bibtex")
        latex = {str(name): str(text) for name, text in entry.items()} if isinstance(entry, Mapping) else {}
        values |= without_empty({"bibtex": merge_entry(item.details, latex, str(venue))})
    for field, first_item in item.first_items.items():
        if present is None:
            values[field] = [first_item]
            if field == "authors" and "," in first_item:  # a person, not a collective: there may be more authors
                values[field] = [first_item, OTHERS]
            continue
        texts = _text_list(present.get(field))
        if texts and bare_author(texts[0]) == bare_author(first_item):
            continue
        if field == "authors":
            first = f"the record's is {quote(texts[0])}" if texts else "the record has none"
            message = f"the first author is {quote(first_item)}, but {first}; change the list in the record itself"
            problems.append(message)
        else:
            values[field] = [first_item, *(text for text in texts[1:] if text != first_item)]
    return values, problems


def _text_list(value: object) -> list[str]:
    """Return the items of a list as texts; empty for another value."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []
