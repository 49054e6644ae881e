"""Metadata of papers from arXiv, and the file with arXiv's last answer about each paper (`data/arxiv.json`).

The file holds no times of requests, so it changes only if arXiv's answers do. docs/schema/arxiv.schema.json describes
it.
"""

import re
from collections.abc import Iterable, Mapping

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import TextFile
from orchtrace_corpus.base.findings import Finding, printable, quote
from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal
from orchtrace_corpus.base.named_tuples import NamedTuple

SCHEMA = "orchtrace-corpus/arxiv"
VERSION = 1

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_HINT = "Restore the file from git, or remove it and run corpus fetch --write."
_REQUIRED = ("version", "title", "authors", "published", "updated", "primary_category", "categories")
_OPTIONAL = ("comment", "journal_ref", "doi", "abstract")


class Metadata(NamedTuple):
    """One version of a paper, as arXiv describes it.

    Attributes:
        arxiv_id: The id in its normal form, without version.
        version: The number of the version, from 1.
        title: On one line, blanks collapsed; Unicode and TeX as arXiv gives them.
        authors: In arXiv's order, each as `Given Family`.
        abstract: On one line.
        published: When version 1 was submitted, as `YYYY-MM-DDTHH:MM:SSZ`.
        updated: When this version was submitted, in the same form.
        primary_category: The category under which arXiv lists the paper first, such as `cs.MA`.
        categories: All of arXiv's own categories, the primary one included, in arXiv's order.
        comment: The authors' comment on this version.
        journal_ref: Where the paper appeared, in the authors' words.
        doi: The DOI of the published paper, in lower case; never arXiv's own.
    """

    arxiv_id: str
    version: int
    title: str
    authors: tuple[str, ...]
    abstract: str
    published: str
    updated: str
    primary_category: str
    categories: tuple[str, ...]
    comment: str | None = None
    journal_ref: str | None = None
    doi: str | None = None


# Parts of the patterns below, which find statements that a paper was withdrawn.
_PAPER = r"(?:paper|article|submission|manuscript|work|preprint|e-?print|report|document|draft)\b(?!['\u2019]s)"
_GONE = r"(?:withdrawn|retracted)"
# Follows "withdrawn", and excludes papers that were withdrawn from a venue or by mistake: arXiv still has them.
_STAYS = r"(?!\s+(?:from\s+(?!arxiv)|by\s+(?:mistake|accident|error)|in\s+error|erroneously))"
_NOT_PAST_OR_NEGATED = r"(?!\s+(?:previously|once|not|never)\b)"
_OBJECT = rf"(?:this|our|my)\s+(?:\w+\s+)?{_PAPER}{_STAYS}"

_PASSIVE = rf"(?:has\s+been|is(?:\s+being)?|was|had\s+to\s+be){_NOT_PAST_OR_NEGATED}(?:\s+\w+)?\s+{_GONE}\b{_STAYS}"
_WANTED = r"(?:decided|chose|chosen|wish|want|would\s+like|like|request(?:ed)?|have|had|need(?:ed)?|forced)\s+to"
_NO_OBJECT = r"(?=\s*(?:$|[.,;:!)]|(?:due|because|until|and|for|as|since|it)\b|from\s+arxiv))"
_REASON = r"(?:by|due|because|for|from|as|in\s+favou?r|pending|until|at|on)\b"

_IN_ABSTRACT = (
    rf"\b(?:this|our)\s+(?:arxiv\s+|entire\s+)?{_PAPER}\s+{_PASSIVE}",
    r"\badministratively\s+(?:withdrawn|removed)\b",
    rf"\bwithdraw(?:ing|s)?\s+{_OBJECT}",
    rf"\b{_WANTED}\s+withdraw\b{_NO_OBJECT}",
)
_IN_COMMENT = (
    *_IN_ABSTRACT,
    rf"\bthe\s+{_PAPER}\s+{_PASSIVE}",
    rf"\bwithdraw(?:ing|s)?\s+the\s+{_PAPER}{_STAYS}",
    rf"^\W*(?:{_PAPER}\s+)?{_GONE}\b{_STAYS}(?=\s*(?:$|[.,;:!()\u2013\u2014-]|{_REASON}))",
    # Not "version 1 removed by arXiv" or "v2 removed by arXiv": the other versions remain.
    rf"(?<!\bversion \d )(?<!\bv\d )(?<!\bversion )\b(?:{_GONE}|removed)\s+by\s+(?!mistake|accident|error)",
    rf"\bwithdrawal\s+(?:of|for)\s+(?:this|the|our)\s+(?:\w+\s+)?{_PAPER}",
    r"\b(?:request(?:s|ed|ing)?|asked\s+for)\s+(?:a\s+|the\s+)?withdrawal\b(?!\s+from\s+(?!arxiv))",
)


def suspected_withdrawal(metadata: Metadata) -> str:
    """Return the sentence that says that the paper was withdrawn; empty if there is none.

    Authors and administrators write it into the comment. An abstract can be about other withdrawn papers, so fewer
    patterns are searched there.
    """
    for text, patterns in ((metadata.comment or "", _IN_COMMENT), (metadata.abstract, _IN_ABSTRACT)):
        if not re.search("withdr[ae]w|retract|remove", text, re.IGNORECASE):  # a cheap test that most texts fail
            continue
        for pattern in patterns:
            match = re.search(pattern, text, re.IGNORECASE)
            if match is not None:
                sentence_start = re.split(r"[.;!] ", text[: match.start()])[-1]
                sentence_end, period, _ = text[match.start() :].partition(". ")
                return (sentence_start + sentence_end + period).strip()
    return ""


def encode(papers: Mapping[str, Metadata]) -> str:
    """Return the text of the file: sorted by arXiv id, with a line for each field and printable characters only."""
    blocks = []
    for arxiv_id in sorted(papers):
        values = papers[arxiv_id]._asdict()
        present = [*_REQUIRED, *(field for field in _OPTIONAL if values[field])]
        lines = ",\n".join(f"      {_json(field)}: {_json(values[field])}" for field in present)
        blocks.append(f"\n    {_json(arxiv_id)}: {{\n{lines}\n    }}")
    head = f'{{\n  "schema": {_json(SCHEMA)},\n  "version": {VERSION},\n  "papers": {{'
    tail = "\n  }\n}\n" if blocks else "}\n}\n"
    return head + ",".join(blocks) + tail


class ArxivFile(NamedTuple):
    """The metadata that arXiv last reported, by arXiv id."""

    papers: Mapping[str, Metadata] = {}
    findings: tuple[Finding, ...] = ()  # always empty, because errors are raised; every decoded file has it


class _FormError(Exception):
    """An error in the form of the document; the message names the place."""


def decode_arxiv(file: TextFile | None) -> ArxivFile:
    """Decode the file; raise the errors of `decode`."""
    if file is None:
        return ArxivFile()
    return ArxivFile(decode(file.text, printable(file.path, limit=300)))


def decode(text: str, display_path: str) -> dict[str, Metadata]:
    """Decode the file's text; `display_path` is its path in messages.

    Raise `DataFileError`, which names the place, if it is not JSON in the form that `encode` writes.
    """
    from orchtrace_corpus.base.json_syntax import JsonError, loads

    try:
        document = _mapping(loads(text), "the document", ("schema", "version", "papers"))
        if document["schema"] != SCHEMA or type(document["version"]) is not int:
            raise _FormError(f"schema is not {quote(SCHEMA)}, or version is not a number")
        if document["version"] != VERSION:
            raise _FormError(f"version {document['version']} is not one that this release reads, which is {VERSION}")
        if type(document["papers"]) is not dict:
            raise _FormError("papers must be an object")
        return {arxiv_id: _paper(arxiv_id, value) for arxiv_id, value in document["papers"].items()}
    except JsonError as error:
        raise DataFileError(f"{display_path}:{error.line}:{error.column}: {error}", _HINT) from error
    except _FormError as error:
        raise DataFileError(f"{display_path}: {error}", _HINT) from error


def merge(known: Mapping[str, Metadata], answer: Mapping[str, Metadata], ids: Iterable[str]) -> dict[str, Metadata]:
    """Return the metadata of the papers with `ids`: from the answer, unless `known` has a newer version."""
    merged = {}
    for arxiv_id in ids:
        old = known.get(arxiv_id)
        new = answer.get(arxiv_id)
        if new is not None and (old is None or new.version >= old.version):
            merged[arxiv_id] = new
        elif old is not None:
            merged[arxiv_id] = old
    return merged


def _json(value: object) -> str:
    """Return a value as JSON; only characters that are not printable are escaped."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    return "".join(character if character.isprintable() else json.dumps(character).strip('"') for character in text)


def _paper(arxiv_id: str, value: object) -> Metadata:
    """Return the metadata in a JSON value."""
    where = f"papers.{quote(arxiv_id)}"
    if not is_normal(IdentifierKind.ARXIV, arxiv_id):
        raise _FormError(f"{where}: not an arXiv id in its plain form")
    values = _mapping(value, where, _REQUIRED, _OPTIONAL)
    for field, field_value in values.items():
        problem = _problem(field, field_value)
        if problem:
            raise _FormError(f"{where}.{field} {problem}")
    if values["primary_category"] not in values["categories"]:
        raise _FormError(f"{where}.primary_category is not among the categories")
    lists = {field: tuple(values[field]) for field in ("authors", "categories")}
    return Metadata(**{"abstract": "", **values, **lists, "arxiv_id": arxiv_id})


def _problem(field: str, value: object) -> str:
    """Return the error about the value of a paper's field; empty if there is none."""
    if field == "version":
        return "" if type(value) is int and value > 0 else "must be a number from 1 on"
    if field in ("authors", "categories"):
        are_texts = type(value) is list and bool(value) and all(_is_text(item) for item in value)
        return "" if are_texts else "must be a list of texts, at least one"
    if not _is_text(value):
        return "must be a text"
    if field in ("published", "updated") and not re.fullmatch(_TIME, str(value), re.ASCII):
        return "must be a time such as 2026-05-04T12:00:00Z"
    return ""


def _is_text(value: object) -> bool:
    """Return True for a text that is not empty and has no half of a surrogate pair, which UTF-8 cannot hold."""
    return type(value) is str and bool(value.strip()) and not re.search("[\ud800-\udfff]", value)


def _mapping(value: object, where: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON object at the place `where`; raise `_FormError` if its fields are not the expected ones."""
    if type(value) is not dict:
        raise _FormError(f"{where} must be an object")
    for field in required:
        if field not in value:
            raise _FormError(f"{where} lacks {field}")
    for field in value:
        if field not in required and field not in optional:
            raise _FormError(f"{where} has an unknown field {quote(field)}")
    return value
