"""Write papers as RIS, and read them from it: the tagged lines that reference managers exchange.

A value is plain text up to the end of its line. Tags and summary of a paper are in `KW` and `N1`; an import uses them
for new papers.
Tags: https://en.wikipedia.org/wiki/RIS_(file_format).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.corpus.formats import Item, Problem, citation, citation_item, read_identifiers, without_empty
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

_TAGS = citation.names_in("ris")
_DETAIL_TAGS = {detail.bibtex: detail.ris for detail in citation.DETAILS}
_LINE = r"([A-Z][A-Z0-9])  -(?: (.*))?"
_ALIASES = {"title": ("T1", "CT"), "authors": ("A1",), "year": ("Y1", "DA")}
"""The tags that other programs write, by field."""
_VENUE_TAGS = ("T2", "JO", "JF", "JA", "BT", "PB")


def write(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as RIS records."""
    records = []
    for paper in papers:
        lines = [f"{tag}  - {value}\n" for tag, value in _lines(paper, taxonomy)]
        records.append("".join(lines))
    return "\n".join(records)


def read(text: str, _taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the records of a RIS file."""
    return [_item(line, tags, problems) for line, tags in _records(text, problems)]


def _lines(paper: Paper, taxonomy: Taxonomy) -> Iterator[tuple[str, str]]:
    """Yield the tag and the value of each line of a record."""
    kind = citation.paper_kind(paper)
    yield "TY", citation.PUBLICATION_TYPES[kind].ris
    yield "ID", paper.citation_key
    yield _TAGS["title"], paper.title
    if not citation.is_edited(paper):
        yield from ((_TAGS["authors"], _ris_name(author)) for author in paper.authors)
    yield from (("ED", _ris_name(editor)) for editor in citation.editors(paper.bibtex))
    if paper.cited_year:
        yield _TAGS["year"], str(paper.cited_year)
    if month := citation.month_of(paper.bibtex):
        yield "DA", f"{paper.cited_year}/{month:02}//"
    venue_tag = "PB" if kind in citation.PUBLISHED_BY else "T2"
    if paper.cited_venue:
        yield venue_tag, paper.cited_venue
    for tag, value in citation.entry_texts(paper, _DETAIL_TAGS).items():
        if tag == "SP":  # pages, such as `12--34`
            first, *rest = re.split("--+|\u2013", value, maxsplit=1)
            yield "SP", first.strip("-\u2013 ")
            last = re.sub("--+", "\u2013", "".join(rest)).strip("-\u2013 ")
            if last:
                yield "EP", last
        elif tag != venue_tag:
            yield tag, value
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


left_out = partial(citation.left_out, max_urls=None)


def _ris_name(author: str) -> str:
    """Return an author of a record as RIS writes names: `Family, Given, Suffix`."""
    name = citation.name_of(author)
    return ", ".join(part for part in (name.family, name.given, name.suffix) if part)


def _author(ris_name: str) -> str:
    """Return a name in RIS as records write it."""
    parts = [part.strip() for part in ris_name.split(",")]
    return citation.Name(*parts).text if len(parts) == 3 else ", ".join(filter(None, parts))


def _records(text: str, problems: list[Problem]) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Yield the line of each record, and its values by tag."""
    values: dict[str, list[str]] = {}
    start = 0  # the line on which the record begins, or 0 outside a record
    last_tag = ""
    for line_number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if match := re.fullmatch(_LINE, line.rstrip(" ")):
            tag, value = match[1], (match[2] or "").strip(" ")
        else:
            tag, value = "", line.strip(" ")
        if tag == "TY":
            if start:
                message = f"this record is not closed by ER before another begins on line {line_number}"
                problems.append(Problem(start, message))
            start, values, last_tag = line_number, {"TY": [value]}, "TY"
        elif not value and not tag:
            continue
        elif not start:
            problems.append(Problem(line_number, f"{quote(value or tag)} belongs to no record; one begins with TY"))
        elif tag == "ER":
            yield start, values
            start = 0
        elif tag:
            values.setdefault(tag, []).append(value)
            last_tag = tag
        else:  # the next line of a long value
            values[last_tag][-1] += f" {value}"
    if start:
        problems.append(Problem(start, "this record is not closed by ER"))


def _item(line: int, tags: Mapping[str, Sequence[str]], problems: list[Problem]) -> Item:
    """Return a record, whose values are given by tag, as an item."""

    def values_of(field: str) -> list[str]:
        """Return the values of a field; the tag that this module writes comes before those of other programs."""
        names = (_TAGS[field], *_ALIASES.get(field, ()))
        return [value for name in names for value in tags.get(name, ()) if value]

    def first(*names: str) -> str:
        """Return the first value of the first tag that has one; empty if none has."""
        return next((value for name in names for value in tags.get(name, ()) if value), "")

    year = "".join(values_of("year")[:1])
    if year and not re.fullmatch(r"[1-9]\d{3}(?:[/-].*)?", year, re.ASCII):
        problems.append(Problem(line, f"the year {quote(year)} is not one of four digits"))
        year = ""
    venue_tag = next((name for name in _VENUE_TAGS if first(name)), "")
    month = re.match(r"\d{4}/(0?[1-9]|1[0-2])(?:/|$)", first("DA", "Y1", "PY"))  # such as `2020/07//`
    details = citation.EntryDetails(
        kind=citation.RIS_KINDS.get(first("TY")),
        texts=dict(_details(tags, venue_tag)),
        editors=tuple(_author(editor) for editor in tags.get("ED", ()) if editor.strip(", ")),
        month=int(month[1]) if month else 0,
    )
    fields = {
        "key": first("ID"),
        "title": "".join(values_of("title")[:1]),
        "authors": [_author(author) for author in values_of("authors") if author.strip(", ")],
        **read_identifiers(values_of("arxiv_id")[:1], first(_TAGS["doi"])),
        "urls": list(dict.fromkeys(values_of("urls"))),
    }
    cited = without_empty({"venue": first(venue_tag), "year": int(year[:4]) if year else None})
    keywords, annotation = tags.get("KW", ()), first(_TAGS["summary"])
    return citation_item(line, fields, cited=cited, details=details, keywords=keywords, annotation=annotation)


def _details(tags: Mapping[str, Sequence[str]], venue_tag: str) -> Iterator[tuple[str, str]]:
    """Yield the details of a citation by BibTeX field; `venue_tag` names the venue, so it is not a detail."""
    values = {tag: next(filter(None, texts), "") for tag, texts in tags.items() if tag != venue_tag}
    for name, tag in _DETAIL_TAGS.items():
        if tag not in ("SN", "SP") and values.get(tag):
            yield name, values[tag]
    pages = [values[tag] for tag in ("SP", "EP") if values.get(tag)]
    if pages:
        yield "pages", "\u2013".join(pages)
    for serial in filter(None, tags.get("SN", ())):
        has_length_of_isbn = sum(c.isdigit() or c in "Xx" for c in serial) >= 10  # an ISSN has 8 digits
        yield "isbn" if has_length_of_isbn else "issn", serial
