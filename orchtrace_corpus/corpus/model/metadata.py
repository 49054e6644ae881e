"""Metadata of papers from arXiv, and arXiv's last answer about each paper (`data/arxiv.json`).

The file holds no times of requests, so it changes only if arXiv's answer does. It is sorted by id, has a line for
each field, and holds only printable characters. docs/schema/arxiv.schema.json describes it.
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
        version: The version described, from 1 on.
        title: On one line, blanks collapsed; Unicode and TeX as arXiv gives them.
        authors: In arXiv's order, each as `Given Family`.
        abstract: On one line.
        published: When version 1 was submitted, as `YYYY-MM-DDTHH:MM:SSZ`.
        updated: When this version was submitted, in the same form.
        primary_category: The category that the paper is listed under first, such as `cs.MA`.
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


_PAPER = r"(?:paper|article|submission|manuscript|work|preprint|e-?print|report|document|draft)\b(?!['\u2019]s)"
_GONE = r"(?:withdrawn|retracted)"
# Withdrawn from a venue, or by mistake: the paper itself is still there.
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
    # Not "version 1 removed by arXiv", which leaves the other versions.
    rf"(?<!\bversion \d )(?<!\bv\d )(?<!\bversion )\b(?:{_GONE}|removed)\s+by\s+(?!mistake|accident|error)",
    rf"\bwithdrawal\s+(?:of|for)\s+(?:this|the|our)\s+(?:\w+\s+)?{_PAPER}",
    r"\b(?:request(?:s|ed|ing)?|asked\s+for)\s+(?:a\s+|the\s+)?withdrawal\b(?!\s+from\s+(?!arxiv))",
)


def suspected_withdrawal(metadata: Metadata) -> str:
    """Return the words by which this version withdraws the paper; empty without any.

    Authors and administrators write it into the comment. In the abstract, which can be about anything, only phrases
    about this very paper count.
    """
    for text, patterns in ((metadata.comment or "", _IN_COMMENT), (metadata.abstract, _IN_ABSTRACT)):
        if re.search("withdr[ae]w|retract|remove", text, re.IGNORECASE):
            for pattern in patterns:
                match = re.search(pattern, text, re.IGNORECASE)
                if match is not None:
                    *_, sentence_start = re.split(r"[.;!] ", text[: match.start()])
                    sentence_end, period, _ = text[match.start() :].partition(". ")
                    return (sentence_start + sentence_end + period).strip()
    return ""


def encode(papers: Mapping[str, Metadata]) -> str:
    """Return the text of the file."""
    head = f'{{\n  "schema": {_json(SCHEMA)},\n  "version": {VERSION},\n  "papers": {{'
    blocks = []
    for name in sorted(papers):
        values = papers[name]._asdict()
        present = (field for field in (*_REQUIRED, *_OPTIONAL) if field in _REQUIRED or values[field])
        lines = ",\n".join(f"      {_json(field)}: {_json(values[field])}" for field in present)
        blocks.append(f"\n    {_json(name)}: {{\n{lines}\n    }}")
    tail = "\n  }\n}\n" if blocks else "}\n}\n"
    return head + ",".join(blocks) + tail


class ArxivFile(NamedTuple):
    """The last answers of arXiv, by id. `findings` stays empty, since the errors of this file are raised."""

    papers: Mapping[str, Metadata] = {}
    findings: tuple[Finding, ...] = ()


def decode_arxiv(file: TextFile | None) -> ArxivFile:
    """Decode the file, if there is one; raise the errors of `decode`."""
    return ArxivFile() if file is None else ArxivFile(decode(file.text, printable(file.path, limit=300)))


def decode(text: str, shown_as: str) -> dict[str, Metadata]:
    """Decode the file's text; `shown_as` is its path in messages.

    Raises:
        DataFileError: It is not JSON, or not in the form that `encode` writes; the message names the place.
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
        return {name: _paper(name, values) for name, values in document["papers"].items()}
    except JsonError as error:
        raise DataFileError(f"{shown_as}:{error.line}:{error.column}: {error}", _HINT) from error
    except _FormError as error:
        raise DataFileError(f"{shown_as}: {error}", _HINT) from error


def merge(known: Mapping[str, Metadata], answer: Mapping[str, Metadata], ids: Iterable[str]) -> dict[str, Metadata]:
    """Return the metadata of the given ids after an answer: that of the answer, unless a newer version was known."""
    versions = {name: [papers[name] for papers in (answer, known) if name in papers] for name in ids}
    return {name: max(found, key=lambda metadata: metadata.version) for name, found in versions.items() if found}


class _FormError(Exception):
    """An error of the document, with its place."""


def _json(value: object) -> str:
    import json

    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(value, ensure_ascii=False))


def _paper(name: str, values: object) -> Metadata:
    where = f"papers.{quote(name)}"
    if not is_normal(IdentifierKind.ARXIV, name):
        raise _FormError(f"{where}: not an arXiv id in its plain form")
    members = _mapping(values, where, _REQUIRED, _OPTIONAL)
    for field, value in members.items():
        problem = _problem(field, value)
        if problem:
            raise _FormError(f"{where}.{field} {problem}")
    if members["primary_category"] not in members["categories"]:
        raise _FormError(f"{where}.primary_category is not among the categories")
    lists = {field: tuple(members[field]) for field in ("authors", "categories")}
    return Metadata(**{"abstract": "", **members, **lists, "arxiv_id": name})


def _problem(field: str, value: object) -> str:
    """Return the error about the value of a paper's field; empty if there is none."""
    if field == "version":
        return "" if type(value) is int and value > 0 else "must be a number from 1 on"
    if field in ("authors", "categories"):
        is_sound = type(value) is list and value and all(_is_text(item) for item in value)
        return "" if is_sound else "must be a list of texts, at least one"
    if not _is_text(value):
        return "must be a text"
    if field in ("published", "updated") and not re.fullmatch(_TIME, str(value), re.ASCII):
        return "must be a time such as 2026-05-04T12:00:00Z"
    return ""


def _is_text(value: object) -> bool:
    """Return True if the value is a text that is not empty and can be written; half of a surrogate pair cannot."""
    return type(value) is str and bool(value.strip()) and not re.search("[\ud800-\udfff]", value)


def _mapping(value: object, where: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    if type(value) is not dict:
        raise _FormError(f"{where} must be an object")
    for field in required:
        if field not in value:
            raise _FormError(f"{where} lacks {field}")
    for field in value:
        if field not in required and field not in optional:
            raise _FormError(f"{where} has an unknown field {quote(field)}")
    return value
