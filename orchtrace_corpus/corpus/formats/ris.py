"""Papers as RIS, the tagged lines that reference managers exchange, and such lines as records.

A value is the rest of its line, without markup. A record has the fields of a citation with type, volume, number and
pages; a new paper takes its tags from `KW` and its summary from `N1`.
Tags: https://en.wikipedia.org/wiki/RIS_(file_format).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.corpus.formats import Item, Problem, citation, read_identifiers, read_item, without_empty
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

_TAGS = citation.carriers_in("ris")
_PLACES = {detail.bibtex: detail.ris for detail in citation.DETAILS}
_LINE = r"([A-Z][A-Z0-9])  -(?: (.*))?"
_ALIASES = {"title": ("T1", "CT"), "authors": ("A1",), "year": ("Y1", "DA")}
"""The tags that other programs write, by field."""
_VENUES = ("T2", "JO", "JF", "JA", "BT", "PB")


def write(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as RIS records."""
    return "\n".join("".join(f"{tag}  - {value}\n" for tag, value in _lines(paper, taxonomy)) for paper in papers)


def read(text: str, _taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the records of a RIS file."""
    return [_item(line, tags, problems) for line, tags in _records(text, problems)]


def _lines(paper: Paper, taxonomy: Taxonomy) -> Iterator[tuple[str, str]]:
    kind = citation.paper_kind(paper)
    yield "TY", citation.PUBLICATION_TYPES[kind].ris
    yield "ID", paper.citation_key
    yield _TAGS["title"], paper.title
    for tag, names in (
        (_TAGS["authors"], () if citation.is_edited(paper) else paper.authors),
        ("ED", citation.editors(paper.bibtex)),
    ):
        for name in map(citation.name_of, names):  # the suffix last
            yield tag, ", ".join(filter(None, (name.family, name.given, name.suffix)))
    if paper.cited_year:
        yield _TAGS["year"], str(paper.cited_year)
    if month := citation.month_of(paper.bibtex):
        yield "DA", f"{paper.cited_year}/{month:02}//"
    venue_tag = "PB" if kind in citation.PUBLISHED_BY else "T2"
    if paper.cited_venue:
        yield venue_tag, paper.cited_venue
    for tag, value in citation.entry_texts(paper, _PLACES).items():
        if tag == venue_tag:
            continue
        if tag != "SP":
            yield tag, value
            continue
        first, _, last = (part.strip("-\u2013 ") for part in re.sub("--+|\u2013", "\u2013", value).partition("\u2013"))
        yield "SP", first
        if last:
            yield "EP", last
    if paper.arxiv_id:
        yield _TAGS["arxiv_id"], f"arXiv:{paper.arxiv_id}"
    if paper.doi:
        yield _TAGS["doi"], paper.doi
    yield from ((_TAGS["urls"], url) for url in paper.urls)
    yield from (("KW", keyword) for keyword in citation.keywords(paper, taxonomy))
    if summary := citation.summary_text(paper):
        yield _TAGS["summary"], summary
    yield from citation.carried_texts(paper, taxonomy, "ris").items()
    yield "ER", ""


left_out = partial(citation.left_out, most_urls=None)


def _author(text: str) -> str:
    parts = [part.strip() for part in text.split(",")]
    return citation.Name(*parts).text if len(parts) == 3 else ", ".join(filter(None, parts))


def _records(text: str, problems: list[Problem]) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Yield the line of each record, and its values by tag."""
    tags: dict[str, list[str]] = {}
    start, last = 0, ""
    for line_number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        tag, value = "", line.strip(" ")
        if match := re.fullmatch(_LINE, line.rstrip(" ")):
            tag, value = match[1], (match[2] or "").strip(" ")
        if tag == "TY":
            if start:
                message = f"this record is not closed by ER before another begins on line {line_number}"
                problems.append(Problem(start, message))
            start, tags, last = line_number, {"TY": [value]}, "TY"
        elif not value and not tag:
            continue
        elif not start:
            problems.append(Problem(line_number, f"{quote(value or tag)} belongs to no record; one begins with TY"))
        elif tag == "ER":
            yield start, tags
            start = 0
        elif tag:
            tags.setdefault(tag, []).append(value)
            last = tag
        else:  # the next line of a long value
            tags[last][-1] += f" {value}"
    if start:
        problems.append(Problem(start, "this record is not closed by ER"))


def _item(line: int, tags: Mapping[str, Sequence[str]], problems: list[Problem]) -> Item:
    def values_of(field: str) -> list[str]:
        """Return the values of a field; our own tag comes before those of other programs."""
        names = (_TAGS[field], *_ALIASES.get(field, ()))
        return [value for name in names for value in tags.get(name, ()) if value]

    def first(*names: str) -> str:
        return next((value for name in names for value in tags.get(name, ()) if value), "")

    year = next(iter(values_of("year")), "")
    if year and not re.fullmatch(r"[1-9]\d{3}(?:[/-].*)?", year, re.ASCII):
        problems.append(Problem(line, f"the year {quote(year)} is not one of four digits"))
        year = ""
    venue_tag = next((name for name in _VENUES if first(name)), "")
    month = re.match(r"\d{4}/(0?[1-9]|1[0-2])(?:/|$)", first("DA", "Y1", "PY"))  # such as `2020/07//`
    details = citation.EntryDetails(
        citation.RIS_KINDS.get(first("TY")),
        dict(_details(tags, venue_tag)),
        tuple(_author(editor) for editor in tags.get("ED", ()) if editor.strip(", ")),
        int(month[1]) if month else 0,
    )
    fields = {
        "key": first("ID"),
        "title": next(iter(values_of("title")), ""),
        "authors": [_author(author) for author in values_of("authors") if author.strip(", ")],
        **read_identifiers(values_of("arxiv_id")[:1], next(iter(values_of("doi")), "")),
        "urls": list(dict.fromkeys(values_of("urls"))),
    }
    cited = without_empty({"venue": first(venue_tag), "year": int(year[:4]) if year else None})
    return read_item(line, fields, cited, details, tags.get("KW", ()), first(_TAGS["summary"]))


def _details(tags: Mapping[str, Sequence[str]], venue_tag: str) -> Iterator[tuple[str, str]]:
    """Yield the further fields of an entry by their names in BibTeX; the tag of the venue is none of them."""
    values = {tag: next(filter(None, texts), "") for tag, texts in tags.items() if tag != venue_tag}
    for name, tag in _PLACES.items():
        if tag not in ("SN", "SP") and values.get(tag):
            yield name, values[tag]
    if pages := "\u2013".join(filter(None, (values.get("SP", ""), values.get("EP", "")))):
        yield "pages", pages
    for serial in filter(None, tags.get("SN", ())):
        yield "isbn" if sum(c.isdigit() or c in "Xx" for c in serial) >= 10 else "issn", serial
