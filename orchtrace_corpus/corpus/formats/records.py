"""Papers in JSON: whole records in the shape of the data file, as one document or as lines, and CSL-JSON.

A document names its schema and version, as every JSON report does. The output of `corpus list --format json` has the
same shape and can be read here, too.

CSL-JSON is read by citation processors such as pandoc and Zotero. An item has the fields of a citation with type,
volume, number and pages; a new paper takes its tags from `keyword` and its summary from `annote`. Variables and types:
https://docs.citationstyles.org/en/stable/specification.html and its schema csl-data.json.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any

from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.json_syntax import JsonError, loads
from orchtrace_corpus.corpus.formats import Item, Problem, citation, read_identifiers, read_item, without_empty
from orchtrace_corpus.corpus.model.field_table import FieldKind
from orchtrace_corpus.corpus.model.record_fields import Value, fields
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

_SCHEMA_PREFIX = "orchtrace-corpus/"
SCHEMA = f"{_SCHEMA_PREFIX}papers"
VERSION = 1


def write_document(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as a JSON document."""
    records = [fields(paper, taxonomy) for paper in papers]
    return json.dumps({"schema": SCHEMA, "version": VERSION, "records": records}, ensure_ascii=False, indent=2) + "\n"


def read_document(text: str, taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the records of a document by `write_document` or `corpus list --format json`."""
    document = loads(text)
    problem = ""
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith(_SCHEMA_PREFIX):
        problem = f'the document must begin {{"schema": "{SCHEMA}", "version": {VERSION}, "records": [...]}}'
    elif document.get("version") != VERSION:
        problem = (
            f"version {quote(str(document.get('version')))} is not one that this release reads, which is {VERSION}"
        )
    elif set(document) != {"schema", "version", "records"} or not isinstance(document["records"], list):
        problem = "the document must have a list 'records', and nothing else beside schema and version"
    if problem:
        problems.append(Problem(1, problem))
        return []
    items = []
    for value, line in zip(document["records"], item_lines(text, ("records",)), strict=False):
        values = _record(value, line, problems, taxonomy)
        if document["schema"] != SCHEMA:  # a report, whose records say what they are
            kind = values.pop("kind", "")
            if kind != "paper":
                problems.append(Problem(line, f"only papers can be read, not a record of kind {quote(str(kind))}"))
        items.append(Item(values, line))
    return items


def write_lines(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers, each on a line."""
    return "".join(json.dumps(fields(paper, taxonomy), ensure_ascii=False) + "\n" for paper in papers)


def read_lines(text: str, taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the records; blank lines are skipped."""
    items: list[Item] = []
    for line_number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                items.append(Item(_record(loads(line, line_number), line_number, problems, taxonomy), line_number))
            except JsonError as error:
                problems.append(Problem(line_number, str(error)))
    return items


def item_lines(text: str, path: tuple[str, ...]) -> Iterator[int]:
    """Yield the lines on which the items of a list begin, in valid JSON; the path has the names that lead to it."""
    from orchtrace_corpus.base.json_places import Places

    # `problem_with` reports half a surrogate pair, which Places would refuse.
    places = Places(re.sub(r"\\u[dD][89a-fA-F]..", r"\\ufffd", text).encode(), "")
    return (places.line((*path, index)) for index in count())


def _record(value: object, line: int, problems: list[Problem], taxonomy: Taxonomy) -> dict[str, Value]:
    """Return the fields of a record without empty lists, and add their problems to `problems`."""
    if not isinstance(value, dict):
        problems.append(Problem(line, "a record must be an object of fields"))
        return {}
    kinds = {field.name: field.kind for field in taxonomy.paper_fields}
    for name, part in value.items():
        is_flag = kinds.get(name) is FieldKind.FLAG and isinstance(part, bool)
        is_number = kinds.get(name) is FieldKind.NUMBER and isinstance(part, float)
        problem = problem_with(name) or ("" if is_flag or is_number else problem_with(part))
        if problem:
            problems.append(Problem(line, f"{printable(name)} {problem}"))
    return {name: part for name, part in value.items() if part != []}


def problem_with(value: object) -> str:
    """Return the reason why a record cannot have a value; empty if it can."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            if re.search("[\ud800-\udfff]", part):
                return "holds half of a surrogate pair, which is not a character"
        elif isinstance(part, (dict, list)):
            parts += reversed((*part, *part.values()) if isinstance(part, dict) else part)
        elif not isinstance(part, int) or isinstance(part, bool):
            return f"is {json.dumps(part)}; write a text in quotes, or leave the field out"
    return ""


_VARIABLES = citation.carriers_in("csl")
_PLACES = {detail.bibtex: detail.csl for detail in citation.DETAILS}
_VENUES = ("container-title", "publisher", "event-title", "event", "archive")


def write_csl(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as a list of CSL items."""
    return json.dumps([csl_item(paper, taxonomy) for paper in papers], ensure_ascii=False, indent=2) + "\n"


def read_csl(text: str, _taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the items of a list."""
    document = loads(text)
    if not isinstance(document, list):
        problems.append(Problem(1, "the document must be a list of items"))
        return []
    return [_item(item, line, problems) for item, line in zip(document, item_lines(text, ()), strict=False)]


def csl_item(paper: Paper, taxonomy: Taxonomy) -> dict[str, Any]:
    """Return the paper as a CSL item."""
    kind = citation.paper_kind(paper)
    venue = "publisher" if kind in citation.PUBLISHED_BY else "container-title"
    day = list(filter(None, (paper.cited_year, citation.month_of(paper.bibtex)))) if paper.cited_year else []
    item: dict[str, Any] = {
        "id": paper.citation_key,
        "type": citation.PUBLICATION_TYPES[kind].csl,
        _VARIABLES["title"]: paper.title,
        _VARIABLES["authors"]: [] if citation.is_edited(paper) else _csl_names(paper.authors),
        "editor": _csl_names(citation.editors(paper.bibtex)),
        _VARIABLES["year"]: {"date-parts": [day]} if day else {},
        **{place: re.sub("--+|\u2013", "-", text) for place, text in citation.entry_texts(paper, _PLACES).items()},
        venue: paper.cited_venue,
        "archive": "arXiv" if paper.arxiv_id else "",
        _VARIABLES["arxiv_id"]: paper.arxiv_id,
        _VARIABLES["doi"]: paper.doi,
        _VARIABLES["urls"]: paper.urls[0] if paper.urls else "",
        "keyword": ", ".join(citation.keywords(paper, taxonomy)),
        _VARIABLES["summary"]: citation.summary_text(paper),
    }
    return without_empty({**citation.carried_texts(paper, taxonomy, "csl"), **without_empty(item)})


def _csl_names(names: Iterable[str]) -> list[dict[str, Any]]:
    return [dict(_csl_name(name)) for name in names]


@lru_cache(maxsize=4096)
def _csl_name(author: str) -> Mapping[str, Any]:
    name = citation.name_of(author)
    return without_empty(name._asdict()) if name.given else {"literal": name.family}


left_out_csl = citation.left_out


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

    venue_variable = next((name for name in _VENUES if text(name)), "")
    venue = text(venue_variable) if venue_variable else ""
    year, month = _date(item.get(_VARIABLES["year"]), line, problems)
    fields = {
        "key": text("id"),
        "title": text(_VARIABLES["title"]),
        "authors": _authors(item.get(_VARIABLES["authors"], []), line, problems),
        **read_identifiers([text(_VARIABLES["arxiv_id"]), text("number")], text(_VARIABLES["doi"])),
    }
    details = citation.EntryDetails(
        citation.CSL_KINDS.get(text("type")),
        {name: text(place) for name, place in _PLACES.items() if place != venue_variable and text(place)},
        tuple(_authors(item.get("editor", []), line, problems)),
        month,
    )
    tags = (tag.strip() for tag in re.split("[,;]", text("keyword")))
    url = text(_VARIABLES["urls"])
    cited = without_empty({"venue": venue, "year": year})
    return read_item(line, fields, cited, details, tags, text(_VARIABLES["summary"]), {"urls": url} if url else {})


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
        whole = citation.Name(family, parts.get("given", ""), parts.get("suffix", ""))
        authors.append(whole.collective if parts.get("literal") else whole.text)
    return authors


def _date(issued: object, line: int, problems: list[Problem]) -> tuple[int, int]:
    """Return the year and the month of a date, each 0 where it has none."""
    year = month = 0
    with suppress(KeyError, IndexError, TypeError, ValueError):
        parts: Any = issued["date-parts"][0] if isinstance(issued, dict) else ()
        year = int(str(parts[0])) if str(parts[0]).isascii() else 0
        month = int(str(parts[1]))
    if issued is not None and not 1000 <= year <= 9999:
        problems.append(Problem(line, 'issued must give a year: {"date-parts": [[2025]]}'))
        year = 0
    return year, month if 1 <= month <= 12 else 0


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else " ".join(text.split())
