"""The three JSON formats of papers: whole records as one document, as lines, and citations as CSL-JSON.

Whole records have the shape of the data file. A document names its schema and version, as every JSON report does; the
output of `corpus list --format json` has the same shape and can be read, too.

CSL-JSON is the format of citation processors such as pandoc and Zotero. Tags and summary of a paper are in `keyword`
and `annote`; an import uses them for new papers. Variables and types:
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
from orchtrace_corpus.corpus.formats import Item, Problem, citation, citation_item, read_identifiers, without_empty
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
        if document["schema"] != SCHEMA:  # a report, each of whose records has a field `kind`
            kind = values.pop("kind", "")
            if kind != "paper":
                problems.append(Problem(line, f"only papers can be read, not a record of kind {quote(str(kind))}"))
        items.append(Item(values, line))
    return items


def write_lines(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as JSON Lines."""
    return "".join(json.dumps(fields(paper, taxonomy), ensure_ascii=False) + "\n" for paper in papers)


def read_lines(text: str, taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the records; blank lines are skipped."""
    items: list[Item] = []
    for line_number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values = _record(loads(line, line_number), line_number, problems, taxonomy)
                items.append(Item(values, line_number))
            except JsonError as error:
                problems.append(Problem(line_number, str(error)))
    return items


def item_lines(text: str, path: tuple[str, ...]) -> Iterator[int]:
    """Yield the line of each item of a list in a valid JSON text, without end; `path` leads to the list."""
    from orchtrace_corpus.base.json_places import Places

    # Places does not accept half of a surrogate pair, which `problem_with` reports.
    places = Places(re.sub(r"\\u[dD][89a-fA-F]..", r"\\ufffd", text).encode(), "")
    return (places.line((*path, index)) for index in count())


def _record(value: object, line: int, problems: list[Problem], taxonomy: Taxonomy) -> dict[str, Value]:
    """Return the fields of a record without empty lists, and add their problems to `problems`."""
    if not isinstance(value, dict):
        problems.append(Problem(line, "a record must be an object of fields"))
        return {}
    kinds = {field.name: field.kind for field in taxonomy.paper_fields}
    for name, field_value in value.items():
        is_flag = kinds.get(name) is FieldKind.FLAG and isinstance(field_value, bool)
        is_number = kinds.get(name) is FieldKind.NUMBER and isinstance(field_value, float)
        problem = problem_with(name)
        if not problem and not is_flag and not is_number:
            problem = problem_with(field_value)
        if problem:
            problems.append(Problem(line, f"{printable(name)} {problem}"))
    return {name: field_value for name, field_value in value.items() if field_value != []}


def problem_with(value: object) -> str:
    """Return the reason why a field of text, whole numbers, lists and objects cannot have a value; empty if it can."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            if re.search("[\ud800-\udfff]", part):
                return "holds half of a surrogate pair, which is not a character"
        elif isinstance(part, dict):
            parts += reversed((*part, *part.values()))
        elif isinstance(part, list):
            parts += reversed(part)
        elif not isinstance(part, int) or isinstance(part, bool):
            return f"is {json.dumps(part)}; write a text in quotes, or leave the field out"
    return ""


_VARIABLES = citation.names_in("csl")
_DETAIL_VARIABLES = {detail.bibtex: detail.csl for detail in citation.DETAILS}
_VENUE_VARIABLES = ("container-title", "publisher", "event-title", "event", "archive")


def write_csl(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as a list of CSL items."""
    return json.dumps([csl_item(paper, taxonomy) for paper in papers], ensure_ascii=False, indent=2) + "\n"


def read_csl(text: str, _taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the records of a list of CSL items."""
    document = loads(text)
    if not isinstance(document, list):
        problems.append(Problem(1, "the document must be a list of items"))
        return []
    return [_item(item, line, problems) for item, line in zip(document, item_lines(text, ()), strict=False)]


def csl_item(paper: Paper, taxonomy: Taxonomy) -> dict[str, Any]:
    """Return the paper as a CSL item."""
    kind = citation.paper_kind(paper)
    venue_variable = "publisher" if kind in citation.PUBLISHED_BY else "container-title"
    month = citation.month_of(paper.bibtex)
    date_parts = [paper.cited_year, month] if month else [paper.cited_year]
    details = citation.entry_texts(paper, _DETAIL_VARIABLES)
    item: dict[str, Any] = {
        "id": paper.citation_key,
        "type": citation.PUBLICATION_TYPES[kind].csl,
        _VARIABLES["title"]: paper.title,
        _VARIABLES["authors"]: [] if citation.is_edited(paper) else _csl_names(paper.authors),
        "editor": _csl_names(citation.editors(paper.bibtex)),
        _VARIABLES["year"]: {"date-parts": [date_parts]} if paper.cited_year else {},
        **{variable: re.sub("--+|\u2013", "-", text) for variable, text in details.items()},
        venue_variable: paper.cited_venue,
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
    """Return a CSL item as a record."""
    if not isinstance(item, dict):
        problems.append(Problem(line, "an item must be an object"))
        return Item({}, line)

    def text(name: str) -> str:
        value = item.get(name, "")
        if not isinstance(value, (str, int)) or isinstance(value, bool) or problem_with(value):
            problems.append(Problem(line, f"{name} must be a text"))
            return ""
        return _on_one_line(str(value))

    venue_variable = next((variable for variable in _VENUE_VARIABLES if text(variable)), "")
    venue = text(venue_variable) if venue_variable else ""
    year, month = _date(item.get(_VARIABLES["year"]), line, problems)
    fields = {
        "key": text("id"),
        "title": text(_VARIABLES["title"]),
        "authors": _authors(item.get(_VARIABLES["authors"], []), line, problems),
        **read_identifiers([text(_VARIABLES["arxiv_id"]), text("number")], text(_VARIABLES["doi"])),
    }
    detail_variables = {field: name for field, name in _DETAIL_VARIABLES.items() if name != venue_variable}
    details = citation.EntryDetails(
        kind=citation.CSL_KINDS.get(text("type")),
        texts={field: text(name) for field, name in detail_variables.items() if text(name)},
        editors=tuple(_authors(item.get("editor", []), line, problems)),
        month=month,
    )
    url = text(_VARIABLES["urls"])
    return citation_item(
        line,
        fields,
        cited=without_empty({"venue": venue, "year": year}),
        details=details,
        keywords=[keyword.strip() for keyword in re.split("[,;]", text("keyword"))],
        annotation=text(_VARIABLES["summary"]),
        first_items={"urls": url} if url else {},
    )


def _authors(names: object, line: int, problems: list[Problem]) -> list[str]:
    """Return a CSL list of authors or editors as records write names."""
    if not isinstance(names, list):
        problems.append(Problem(line, "author must be a list of names"))
        return []
    authors = []
    for name in names:
        if not isinstance(name, dict) or not all(isinstance(part, (str, bool, int)) for part in name.values()):
            problems.append(Problem(line, "a name must be an object of texts"))
            continue
        parts = {part: _on_one_line(str(value)) for part, value in name.items()}
        family_parts = [parts.get(part) for part in ("dropping-particle", "non-dropping-particle", "family")]
        family = parts.get("literal") or " ".join(part for part in family_parts if part)
        if not family:
            problems.append(Problem(line, "a name must have a family or a literal"))
            continue
        author = citation.Name(family, parts.get("given", ""), parts.get("suffix", ""))
        authors.append(author.collective if parts.get("literal") else author.text)
    return authors


def _date(issued: object, line: int, problems: list[Problem]) -> tuple[int, int]:
    """Return the year and the month of the variable `issued`; 0 for a part that is missing or wrong."""
    year = month = 0
    with suppress(KeyError, IndexError, TypeError, ValueError):
        parts: Any = issued["date-parts"][0] if isinstance(issued, dict) else ()
        year = int(str(parts[0])) if str(parts[0]).isascii() else 0
        month = int(str(parts[1]))
    if issued is not None and not 1000 <= year <= 9999:
        problems.append(Problem(line, 'issued must give a year: {"date-parts": [[2025]]}'))
        year = 0
    if not 1 <= month <= 12:
        month = 0
    return year, month


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else " ".join(text.split())
