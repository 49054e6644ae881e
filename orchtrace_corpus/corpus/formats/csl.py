"""Papers as CSL-JSON, which citation processors such as pandoc and Zotero read, and such items as records.

An item carries what a citation needs; tags (`keyword`) and summary (`annote`) are written for people and
not read back. Variables and types: https://docs.citationstyles.org/en/stable/specification.html and the
schema csl-data.json beside it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.json_syntax import loads
from orchtrace_corpus.corpus.formats import Item, Problem, given, identifiers
from orchtrace_corpus.corpus.formats.citation import Name, VenueKind, keywords, name_of, venue_kind
from orchtrace_corpus.corpus.formats.records import item_lines, problem_with
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

_ARXIV = "arXiv"
_TYPES = {
    VenueKind.JOURNAL: "article-journal",
    VenueKind.CONFERENCE: "paper-conference",
    VenueKind.PREPRINT: "article",
    VenueKind.OTHER: "webpage",
}
_VENUES = ("container-title", "publisher", "event-title", "event", "archive")


def write(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """The papers as a list of CSL items."""
    return json.dumps([_written(paper, taxonomy) for paper in papers], ensure_ascii=False, indent=2) + "\n"


def read(text: str, _taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """The items of a list.

    Raises:
        JsonError: The text is no JSON.
    """
    document = loads(text)
    if not isinstance(document, list):
        problems.append(Problem(1, "the document must be a list of items"))
        return []
    return [_item(item, line, problems) for item, line in zip(document, item_lines(text, ()), strict=False)]


def _written(paper: Paper, taxonomy: Taxonomy) -> dict[str, Any]:
    kind = venue_kind(paper.venue)
    venue = "publisher" if kind is VenueKind.PREPRINT else "container-title"
    item: dict[str, Any] = {
        "id": paper.key,
        "type": _TYPES[kind],
        "title": paper.title,
        "author": [
            given(name._asdict()) if name.given else {"literal": name.family} for name in map(name_of, paper.authors)
        ],
        "issued": {"date-parts": [[paper.year]]},
        venue: paper.venue,
        "archive": _ARXIV if paper.arxiv_id else "",
        "archive_location": paper.arxiv_id,
        "DOI": paper.doi,
        "URL": paper.urls[0] if paper.urls else "",
        "keyword": ", ".join(keywords(paper, taxonomy)),
        "annote": paper.summary,
    }
    return given(item)


def _item(item: object, line: int, problems: list[Problem]) -> Item:
    if not isinstance(item, dict):
        problems.append(Problem(line, "an item must be an object"))
        return Item({}, line)

    def text(name: str) -> str:
        value = item.get(name, "")
        if not isinstance(value, (str, int)) or isinstance(value, bool) or problem_with(value):
            problems.append(Problem(line, f"{name} must be a text"))
            return ""
        return _on_one_line(str(value))

    fields: dict[str, Value | None] = {
        "key": text("id"),
        "title": text("title"),
        "venue": next((found for name in _VENUES if (found := text(name))), ""),
        "authors": _authors(item.get("author", []), line, problems),
        "year": _year(item.get("issued"), line, problems),
    }
    ids = identifiers([text("archive_location"), text("number")], text("DOI"))
    url = text("URL")
    return Item({**given(fields), **ids}, line, {"urls": url} if url else {})


def _authors(names: object, line: int, problems: list[Problem]) -> list[str]:
    if not isinstance(names, list):
        problems.append(Problem(line, "author must be a list of names"))
        return []
    authors = []
    for name in names:
        if not isinstance(name, dict) or not all(isinstance(part, (str, bool, int)) for part in name.values()):
            problems.append(Problem(line, "a name must be an object of texts"))
            continue
        parts = {part: _on_one_line(str(value)) for part, value in name.items()}
        particles = (parts.get("dropping-particle"), parts.get("non-dropping-particle"), parts.get("family"))
        family = parts.get("literal") or " ".join(part for part in particles if part)
        if not family:
            problems.append(Problem(line, "a name must have a family or a literal"))
            continue
        authors.append(Name(family, parts.get("given", ""), parts.get("suffix", "")).text)
    return authors


def _year(issued: object, line: int, problems: list[Problem]) -> int | None:
    if issued is None:
        return None
    try:
        year = issued["date-parts"][0][0] if isinstance(issued, dict) else None
        number = int(str(year)) if str(year).isascii() else 0
    except (KeyError, IndexError, TypeError, ValueError):
        number = 0
    if not 1000 <= number <= 9999:
        problems.append(Problem(line, 'issued must give a year: {"date-parts": [[2025]]}'))
        return None
    return number


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else " ".join(text.split())
