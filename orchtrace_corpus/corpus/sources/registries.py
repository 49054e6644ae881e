"""Look up papers in registries other than arXiv: by DOI, in the ACL Anthology, and at OpenReview.

A person has to check the answers: venues are spelled in many ways, and OpenReview does not say if a paper was accepted.
References: content negotiation of DOIs (https://citation.doi.org/docs.html), with CSL-JSON
(https://docs.citationstyles.org), which both Crossref and DataCite support; the Anthology's `.bib` files; version 2 of
OpenReview's API, and version 1 for venues before 2023.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as escaped
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, is_normal, recognise
from orchtrace_corpus.corpus.model.author_names import bibtex_author, without_separators
from orchtrace_corpus.corpus.sources.http import Response, Transport
from orchtrace_corpus.corpus.sources.limiter import check_web_address

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.record_fields import Value

SERVICES = {
    IdentifierKind.DOI: ("ORCHTRACE_DOI_URL", "https://doi.org"),
    IdentifierKind.ACL: ("ORCHTRACE_ACL_URL", "https://aclanthology.org"),
    IdentifierKind.OPENREVIEW: ("ORCHTRACE_OPENREVIEW_URL", "https://api2.openreview.net https://api.openreview.net"),
}
"""The variable with the addresses of a registry, separated by blanks, and its default; see `_REGISTRIES`, too.

The addresses are tried in turn until one knows the id."""

AGENCIES = frozenset(
    "api.crossref.org api.datacite.org api.medra.org data.crossref.org data.crosscite.org data.datacite.org "
    "data.medra.org doi.org dx.doi.org www.doi.org".split()
)
"""The hosts of registration agencies, to which doi.org may redirect for a DOI's metadata."""

_MAX_TEXT_LENGTH = 1000


def lookup(identifier: Identifier, transport: Transport) -> "dict[str, Value] | None":
    """Return the fields of a record that the registry has for the paper with a DOI, or an id of ACL or OpenReview.

    Returns:
        Some of `title`, `authors`, `year`, `venue`, `doi`, `urls` and the field of the identifier; None if the registry
        does not know it.

    Raises:
        UpstreamError: The registry does not answer, or not with metadata.
        CommandUseError: An address in the environment is not a web address.
    """
    kind = identifier.kind
    read, path, accept, page = _REGISTRIES[kind]
    variable, default = SERVICES[kind]
    base_urls = [url.rstrip("/") for url in (os.environ.get(variable) or default).split()]
    for base_url in base_urls:
        check_web_address(variable, base_url)
    allowed_hosts = AGENCIES if kind is IdentifierKind.DOI else ()
    for base_url in base_urls:
        url = f"{base_url}/{path.format(escaped(identifier.value, safe='/:;()._-'))}"
        response = transport.get(url, accept=accept, allowed_hosts=allowed_hosts)
        # OpenReview answers 400 for an unknown id.
        if response.status in (404, 410) or (response.status == 400 and kind is IdentifierKind.OPENREVIEW):
            continue
        fields = read(response)
        if fields is None:
            continue
        if not fields["title"]:
            raise _unusable(response, "about a paper: it has no title")
        values = {name: value for name, value in fields.items() if value}
        return values | {kind.value: identifier.value, "urls": [page + identifier.value]}
    return None


def _read_csl(response: Response) -> "dict[str, Value | None]":
    item = _json(response, "CSL-JSON")
    authors = item.get("author")
    names = [_csl_name(author) for author in authors] if isinstance(authors, list) else []
    event = item.get("event")
    event_name = event.get("name") if isinstance(event, dict) else event
    venues = (item.get("container-title"), item.get("event-title"), event_name, item.get("publisher"))
    return {
        "title": _text(item.get("title")),
        "authors": [name for name in names if name],
        "year": _csl_year(item),
        "venue": next(filter(None, map(_text, venues)), ""),
    }


def _read_bibtex(response: Response) -> "dict[str, Value | None]":
    from bibtexparser.entrypoint import parse_string

    text = _body(response)
    library = parse_string(text) if "@" in text else None
    if library is None or library.failed_blocks or len(library.entries) != 1:
        raise _unusable(response, "one entry of BibTeX")
    fields = {field.key.lower(): _decode_latex(str(field.value)) for field in library.entries[0].fields}
    doi = recognise(fields.get("doi", ""))
    authors = re.split(r"\s+and\s+", fields.get("author", ""))
    return {
        "title": _text(fields.get("title")),
        "authors": [name for name in map(_text, authors) if name],
        "year": _year(fields.get("year")),
        "venue": _text(fields.get("booktitle") or fields.get("journal")),
        "doi": doi.value if doi is not None and is_normal(IdentifierKind.DOI, doi.value) else "",
    }


def _read_notes(response: Response) -> "dict[str, Value | None] | None":
    notes = _json(response, "a list of notes").get("notes")
    note = notes[0] if isinstance(notes, list) and notes else None
    if not isinstance(note, dict):
        return None
    content = note.get("content")
    fields = content.items() if isinstance(content, dict) else ()
    # Version 2 of the API wraps each field, version 1 does not.
    values = {name: field.get("value") if isinstance(field, dict) else field for name, field in fields}
    authors = values.get("authors")
    names = [_text(name) for name in authors] if isinstance(authors, list) else []
    venue = _text(values.get("venue"))
    return {
        "title": _text(values.get("title")),
        "authors": [bibtex_author(name) for name in without_separators(names)],
        # Else the year of publication, else that of the forum.
        "year": _year(venue) or _year_of_time(note.get("pdate")) or _year_of_time(note.get("cdate")),
        "venue": venue,
    }


_REGISTRIES: dict[IdentifierKind, tuple["Callable[[Response], dict[str, Value | None] | None]", str, str, str]] = {
    IdentifierKind.DOI: (_read_csl, "{}", "application/vnd.citationstyles.csl+json", "https://doi.org/"),
    IdentifierKind.ACL: (_read_bibtex, "{}.bib", "application/x-bibtex, text/plain", "https://aclanthology.org/"),
    IdentifierKind.OPENREVIEW: (_read_notes, "notes?id={}", "application/json", "https://openreview.net/forum?id="),
}
"""For each kind of id: the function that reads an answer, the path of a request, its media types, a paper's page.

The functions return None for an unknown id. Their fields are empty if the answer lacks them."""


def _body(response: Response) -> str:
    if response.status != 200:
        hint = "Try again later." if response.status == 429 or response.status >= 500 else ""
        raise UpstreamError(f"{urlsplit(response.url).netloc} answered with HTTP {response.status}", hint)
    return response.body.decode("utf-8", "replace")


def _json(response: Response, expected: str) -> dict[str, Any]:
    """Return the JSON object in a response; messages name it as `expected`."""
    text = _body(response)
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
        if isinstance(document, dict):
            return document
    raise _unusable(response, expected)


def _unusable(response: Response, expected: str) -> UpstreamError:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip() or "something"
    return UpstreamError(f"{urlsplit(response.url).netloc} answered with {quote(media_type)} that is not {expected}")


def _text(value: object) -> str:
    """Return a text on one line, without the HTML that publishers put into titles; empty for any other value."""
    if isinstance(value, list):  # Crossref gives some texts as lists of one
        value = value[0] if value else ""
    if not isinstance(value, str):
        return ""
    text = unescape(re.sub(r"</?[A-Za-z][A-Za-z:]{0,20}(?:\s[^<>]{0,200})?/?>", "", value[:_MAX_TEXT_LENGTH]))
    return " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())


def _csl_name(person: object) -> str:
    """Return a CSL name in BibTeX form; a collective, whose key is `literal`, or `name` at Crossref, has one part."""
    if not isinstance(person, dict):
        return ""
    family = _text(person.get("family"))
    given = f"{_text(person.get('given'))} {_text(person.get('dropping-particle'))}".strip()
    if not family:
        return _text(person.get("literal")) or _text(person.get("name")) or given
    with_particle = f"{_text(person.get('non-dropping-particle'))} {family}".strip()
    return ", ".join(part for part in (with_particle, _text(person.get("suffix")), given) if part)


def _csl_year(item: Mapping[str, Any]) -> int | None:
    for name in ("issued", "published", "published-online", "published-print", "created"):
        date = item.get(name)
        dates = date.get("date-parts") if isinstance(date, dict) else None
        date_parts = dates[0] if isinstance(dates, list) and dates else None
        if isinstance(date_parts, list) and date_parts and (year := _year(str(date_parts[0]))):
            return year
    return None


def _year(text: str | None) -> int | None:
    match = re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", text or "", re.ASCII)
    return int(match[0]) if match else None


def _year_of_time(milliseconds: object) -> int | None:
    """Return the year of a time in milliseconds since 1970; None if it is missing or beyond 2100."""
    if not isinstance(milliseconds, int) or not 0 < milliseconds < 4_102_444_800_000:  # 2100
        return None
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).year


def _decode_latex(text: str) -> str:
    """Return LaTeX as Unicode."""
    from pylatexenc.latex2text import LatexNodes2Text

    if set(text).isdisjoint("\\{}$~"):
        return text
    reader = LatexNodes2Text(math_mode="text", strict_latex_spaces=True)
    return str(reader.latex_to_text(re.sub(r"(?<!\\)%", r"\\%", text)))
