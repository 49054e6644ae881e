"""The fields of records, each declared once.

A declaration determines decoding, the JSON Schema, filters, columns, cards, the site, search, options of commands, the
issue form and the table in docs/data.md. A survey declares further fields in its taxonomy.
"""

import re
from enum import StrEnum
from functools import partial

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.named_tuples import NamedTuple

FieldValue: TypeAlias = str | int | float | bool | tuple[str, ...]
"""The value of a field. Its type depends on the field's kind; dates, URLs and identifiers are text."""


class FieldKind(StrEnum):
    """The kind of value that a field holds."""

    TEXT = "text"
    TEXTS = "texts"
    AUTHORS = "authors"
    YEAR = "year"
    DATE = "date"
    NUMBER = "number"
    FLAG = "flag"
    URL = "url"
    URLS = "urls"
    IDENTIFIER = "identifier"
    KEY = "key"
    CHOICE = "choice"
    NESTED = "nested"
    """Mappings, such as items of evidence; a survey cannot declare such a field."""


_LIST_KINDS = (FieldKind.TEXTS, FieldKind.AUTHORS, FieldKind.URLS)

UNQUOTED_KINDS = (FieldKind.YEAR, FieldKind.NUMBER, FieldKind.FLAG)
"""The kinds whose values are not texts, so that YAML writes them without quotes."""


class Section(StrEnum):
    """The part of a record that a field belongs to. In a file, the tags follow the head."""

    HEAD = "head"
    DESCRIPTION = "description"
    RECORD = "record"
    BOOKKEEPING = "bookkeeping"


class SearchPart(StrEnum):
    """The part of a record in which a word was found."""

    TITLE = "title"
    KEY = "key"
    IDENTIFIER = "identifier"
    TAG = "tag"
    SYNONYM = "synonym"
    NAME = "name"
    SUMMARY = "summary"
    METHOD = "method"
    FACET = "facet"
    EVIDENCE = "evidence"
    REASON = "reason"
    NOTES = "notes"
    DEFINITION = "definition"


class ReviewTopic(StrEnum):
    """A question about a new or changed record that only a person can judge."""

    BIBLIOGRAPHY = "bibliography"
    FIELDS = "fields"
    AUTHORS = "authors"
    LINKS = "links"
    TAGS = "tags"
    PUBLISHED = "published"
    SOURCES = "sources"
    LEVELS = "levels"
    SUMMARY = "summary"
    REASON = "reason"
    WAIVERS = "waivers"
    CHANGED = "changed"
    REMOVED = "removed"


class CitationNames(NamedTuple):
    """The names of a field in citation formats: the field of BibTeX, the variable of CSL and the tag of RIS."""

    bibtex: str = ""
    csl: str = ""
    ris: str = ""


class RecordField(NamedTuple):
    """A field of records that is no tag.

    Attributes:
        name: The name in the data and in filters.
        help: Instructions for its value, in one sentence.
        label: The name for people; `field_label` derives one if it is empty.
        choices: The values of a field of kind `choice`.
        search: The part of a record that search names for a word in this field; None if the field is not searched.
        review: The question that a reviewer is asked if the field is new or changed.
        question: The question of the issue form, with `{noun}` for the survey's noun; empty for no question.
        is_settable: Whether `corpus tag` and `corpus add --set` set it.
        is_fact: Whether evidence can support it.
        is_column: Whether the site's table can show it as a column.
        is_filter: Whether the site offers its values as a filter.
        is_listed: Whether the list in the README shows it.
        in_candidates: Whether candidates have it, too.
        can_be_optional: Whether a taxonomy can make it optional, though it is required.
        citation_names: Its names in citation formats; empty if `formats` combines several fields, as for the venue.
    """

    name: str
    kind: FieldKind
    help: str
    section: Section = Section.DESCRIPTION
    label: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    search: SearchPart | None = None
    review: ReviewTopic | None = None
    question: str = ""
    is_settable: bool = False
    is_fact: bool = False
    is_column: bool = False
    is_filter: bool = False
    is_listed: bool = False
    in_candidates: bool = True
    can_be_optional: bool = False
    citation_names: CitationNames = CitationNames()

    @property
    def is_list(self) -> bool:
        """Return True if it holds several texts."""
        return self.kind in _LIST_KINDS


def field_label(field: RecordField) -> str:
    """Return the name of a field for people: its label, or its name in words."""
    return field.label or field.name.replace("_", " ").capitalize()


# `partial` gives a group of fields its common attributes: `_method("base_models", ...)` is a field about the method.
_head = partial(RecordField, section=Section.HEAD)
_bibliographic = partial(_head, review=ReviewTopic.BIBLIOGRAPHY)
_identifier = partial(_bibliographic, kind=FieldKind.IDENTIFIER, search=SearchPart.IDENTIFIER)
_method = partial(RecordField, search=SearchPart.METHOD, is_settable=True, is_fact=True)
_in_record = partial(RecordField, section=Section.RECORD)
_bookkeeping = partial(RecordField, section=Section.BOOKKEEPING)
_WAIVERS = _bookkeeping(
    "waive",
    FieldKind.NESTED,
    "Warnings that do not apply to this record, each with the reason.",
    review=ReviewTopic.WAIVERS,
)

PAPER_FIELDS = (
    _head(
        "key",
        FieldKind.KEY,
        "Lower-case letters, digits and single hyphens; unique; never changed.",
        required=True,
        search=SearchPart.KEY,
    ),
    _bibliographic(
        "title",
        FieldKind.TEXT,
        "The title, one line.",
        required=True,
        search=SearchPart.TITLE,
        question="Only if it is not on arXiv and has no DOI.",
        citation_names=CitationNames("title", "title", "TI"),
    ),
    _head(
        "authors",
        FieldKind.AUTHORS,
        "Family, Given; a collective in braces, such as {Kimi Team}; others at the end of a shortened list.",
        required=True,
        search=SearchPart.NAME,
        review=ReviewTopic.AUTHORS,
        question="Only as above: Family, Given; Family, Given. Write others for those left out.",
        can_be_optional=True,
        is_column=True,
        citation_names=CitationNames("author", "author", "AU"),
    ),
    _bibliographic("affiliation", FieldKind.TEXT, "One line of text.", search=SearchPart.NAME, is_column=True),
    _bibliographic(
        "year",
        FieldKind.YEAR,
        "The year as published, even if the venue is later.",
        required=True,
        question="Only as above.",
        can_be_optional=True,
        is_filter=True,
        citation_names=CitationNames("year", "issued", "PY"),
    ),
    _head(
        "venue_year",
        FieldKind.YEAR,
        "The year of the venue or volume, for citations, if it is certain.",
        is_settable=True,
    ),
    _bibliographic(
        "venue",
        FieldKind.TEXT,
        "Such as NeurIPS 2025; Spotlight and submitted belong in notes.",
        required=True,
        search=SearchPart.NAME,
        question="Where it was published, if not on arXiv alone: such as NeurIPS 2025.",
        can_be_optional=True,
        is_column=True,
    ),
    _head(
        "proceedings",
        FieldKind.TEXT,
        "The name of the proceedings or journal, for citations, if it is certain.",
        search=SearchPart.NAME,
        is_settable=True,
    ),
    _identifier(
        "arxiv_id",
        help="Without version and prefix, in quotes.",
        is_column=True,
        citation_names=CitationNames("eprint", "archive_location", "AN"),
    ),
    _identifier(
        "doi",
        help="In lower case, without https://doi.org/; the publisher's, not arXiv's.",
        citation_names=CitationNames("doi", "DOI", "DO"),
    ),
    _identifier("openreview_id", help="The id of the forum."),
    _identifier("acl_id", help="The id in the ACL Anthology, such as 2025.acl-long.421."),
    _head(
        "urls",
        FieldKind.URLS,
        "Addresses; the first is the entry's own.",
        required=True,
        review=ReviewTopic.LINKS,
        citation_names=CitationNames("url", "URL", "UR"),
    ),
    _head(
        "code",
        FieldKind.URL,
        "The address of the authors' code.",
        review=ReviewTopic.LINKS,
        is_settable=True,
        is_fact=True,
        is_column=True,
    ),
    _method("base_models", FieldKind.TEXTS, "The language models that are trained or used: a list.", is_column=True),
    _method("algorithm", FieldKind.TEXTS, "The names of the algorithms that train them: a list.", is_column=True),
    _method(
        "algorithm_note",
        FieldKind.TEXT,
        "What the names leave open: how the algorithm was changed, or what is done without training.",
    ),
    _method("benchmarks", FieldKind.TEXTS, "The names of what the entry is evaluated on: a list.", is_column=True),
    _method(
        "benchmarks_note", FieldKind.TEXT, "What the names leave open, such as the part of a benchmark that was used."
    ),
    _in_record(
        "summary",
        FieldKind.TEXT,
        "One sentence of our own that ends with a period.",
        search=SearchPart.SUMMARY,
        review=ReviewTopic.SUMMARY,
        question="What the {noun} does, in one sentence of your own.",
        is_column=True,
        citation_names=CitationNames("annotation", "annote", "N1"),
    ),
    _in_record("evidence", FieldKind.NESTED, "What sources say about the tags: a list."),
    _bookkeeping(
        "added",
        FieldKind.DATE,
        "The day the record was added, in quotes: YYYY-MM-DD.",
        required=True,
        is_column=True,
        in_candidates=False,
    ),
    _bookkeeping(
        "cite_key",
        FieldKind.KEY,
        "The key of the imported BibTeX entry, if it differs; corpus show finds the record by it, too.",
    ),
    _bookkeeping(
        "bibtex",
        FieldKind.NESTED,
        "What the imported entry says beyond the record: its type, and fields such as volume or pages, as LaTeX.",
    ),
    _in_record(
        "notes",
        FieldKind.TEXT,
        "One sentence that a user of the record should know.",
        search=SearchPart.NOTES,
        review=ReviewTopic.SUMMARY,
        question="One sentence that a reader of the record should know.",
    ),
    _WAIVERS,
)
"""The fixed fields of a paper, in canonical order; declared fields follow those of `Section.DESCRIPTION`."""

EXCLUSION_FIELDS = (
    _head(
        "id",
        FieldKind.KEY,
        "E and three digits or more; unique, never reused.",
        required=True,
        search=SearchPart.IDENTIFIER,
    ),
    _bibliographic("title", FieldKind.TEXT, "As screened.", required=True, search=SearchPart.TITLE),
    _bibliographic("identifier", FieldKind.TEXT, "As screened.", required=True, search=SearchPart.IDENTIFIER),
    _head("url", FieldKind.URL, "As screened.", required=True, review=ReviewTopic.LINKS),
    _in_record("screened", FieldKind.DATE, "The day of screening, in quotes.", required=True),
    _in_record(
        "reason",
        FieldKind.TEXT,
        "Why it was excluded, in one sentence.",
        required=True,
        search=SearchPart.REASON,
        review=ReviewTopic.REASON,
    ),
    _in_record(
        "near_miss",
        FieldKind.TEXT,
        "What made it nearly included, in one sentence; claims are tested against including it.",
        search=SearchPart.REASON,
        review=ReviewTopic.REASON,
    ),
    _bookkeeping(
        "promoted_to", FieldKind.KEY, "The key of the paper, if it was included later.", review=ReviewTopic.REASON
    ),
    _WAIVERS,
)
"""The fixed fields of an exclusion, in canonical order."""

CANDIDATE_FIELDS = (
    _head(
        "proposal",
        FieldKind.CHOICE,
        "The proposed decision: include, unclear or exclude; unread if nobody has read it.",
        required=True,
    ),
    _head(
        "reason",
        FieldKind.TEXT,
        "Why, in a sentence or two; required unless the proposal is unread.",
        search=SearchPart.REASON,
    ),
    _in_record("found", FieldKind.DATE, "The day of the search, in quotes.", required=True),
    _in_record("found_by", FieldKind.TEXTS, "How it was found: names of queries, cites KEY, cited by KEY, or a file."),
    _in_record("screened", FieldKind.DATE, "The day on which it was included while tags are open, in quotes."),
    _in_record("readings", FieldKind.NESTED, "What each reader reads in the sources: a list."),
)
"""The fields that candidates have and papers do not, in canonical order."""


def number_of(text: str) -> int | float:
    """Return the number in a text; raise ValueError unless it is a number as `number_text` writes it."""
    is_number = re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text, re.ASCII)
    if not is_number or sum(map(str.isdigit, text)) > 15:  # a float holds 15 digits exactly
        raise ValueError("is not a number: write digits, with a decimal point if needed")
    number = float(text) if "." in text else int(text)
    canonical = number_text(number)
    if canonical != text:
        raise ValueError(f"must be written as {canonical}")
    return number


def number_text(value: int | float) -> str:
    """Return a number in decimal digits, without an exponent and without trailing zeros after the point."""
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    from decimal import Decimal  # the import takes a millisecond, and only tiny numbers need it

    return format(Decimal(text), "f")


def value_texts(value: FieldValue | None) -> tuple[str, ...]:
    """Return a value as texts, which filters and columns compare; empty for an absent value."""
    if value is None or value == "":
        return ()
    if isinstance(value, tuple):
        return value
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    return (number_text(value),)
