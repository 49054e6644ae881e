"""Papers as BibTeX entries, and BibTeX entries as records.

An entry carries what a citation needs: key, title, authors, year, venue, arXiv id, DOI and the
record's own address. Nothing else of a record is read from one, so an import leaves it as it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote as percent_encoded

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.corpus.formats import Item, Problem, given, identifiers, names
from orchtrace_corpus.corpus.formats.bibfile import Entry, entries
from orchtrace_corpus.corpus.formats.citation import VenueKind, keywords, venue_kind
from orchtrace_corpus.corpus.formats.latex import LatexError, decoded, encoded
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

Encoder: TypeAlias = Callable[[str], str]

_ARXIV = "arXiv"
_ENTRY_TYPES = {
    VenueKind.JOURNAL: ("article", "journal"),
    VenueKind.CONFERENCE: ("inproceedings", "booktitle"),
    VenueKind.PREPRINT: ("misc", "howpublished"),
    VenueKind.OTHER: ("misc", "howpublished"),
}
_VENUE_FIELDS = ("journal", "journaltitle", "booktitle", "howpublished", "school", "institution", "publisher")
_FIELD_WIDTH = len("archivePrefix")
_ARXIV_JOURNAL = r"(?:arxiv|corr)\b"


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    """The papers as BibTeX, one entry each, in their order."""
    return "\n".join(_entry(paper, taxonomy, profile, categories) for paper in papers)


def read(text: str, _taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """The entries of a BibTeX file; all profiles read alike."""
    return [_item(entry, problems) for entry in entries(text, problems)]


def _entry(paper: Paper, taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    def encode(text: str) -> str:
        return encoded(text, unicode=profile != "bibtex")

    entry_type, venue_field = _ENTRY_TYPES[venue_kind(paper.venue)]
    fields = [
        ("title", protected(paper.title, encode)),
        ("author", names.written(paper.authors, encode)),
        (venue_field, "" if paper.venue == _ARXIV and paper.arxiv_id else encode(paper.venue)),
        ("year", str(paper.year)),
        ("eprint", paper.arxiv_id or ""),
        ("archivePrefix", _ARXIV if paper.arxiv_id else ""),
        ("primaryClass", categories.get(paper.arxiv_id or "", "")),
        ("doi", percent_encoded(paper.doi or "", safe="!#$&'()*+,-./:;<=>?@[]^_|~")),
        ("url", paper.urls[0] if paper.urls else ""),
    ]
    if profile == "tagged":
        fields += [
            ("keywords", ", ".join(keywords(paper, taxonomy))),
            ("annotation", encode(paper.summary)),
        ]
    lines = (f"  {name:{_FIELD_WIDTH}} = {{{value}}}," for name, value in fields if value)
    return "\n".join((f"@{entry_type}{{{paper.key},", *lines, "}\n"))


def protected(title: str, encode: Encoder) -> str:
    """A title with braces around the words whose capitals a bibliography style must not lower.

    Those are acronyms and words with a capital behind their first letter (`LLM`, `DeepSeek`), and
    single capitals or capitals before digits (`Q-value`, `R1`), except the article `A`.
    """
    parts = re.split(r"([^\W_]+(?:[.'\u2019-][^\W_]+)*)", title)
    return "".join(_protected_word(part, encode) if number % 2 else encode(part) for number, part in enumerate(parts))


def _protected_word(word: str, encode: Encoder) -> str:
    parts = word.split("-")
    kept = [_needs_braces(part, alone=len(parts) == 1) for part in parts]
    if all(kept):
        return f"{{{encode(word)}}}"
    return "-".join(f"{{{encode(part)}}}" if keep else encode(part) for part, keep in zip(parts, kept, strict=True))


def _needs_braces(word: str, *, alone: bool) -> bool:
    if any(letter.isupper() for letter in word[1:]):
        return True
    return word[0].isupper() and (any(c.isdigit() for c in word) or (len(word) == 1 and not (alone and word == "A")))


def _item(entry: Entry, problems: list[Problem]) -> Item:
    """The record that an entry gives; what is wrong with it goes to `problems`."""

    def plain(name: str) -> str:
        try:
            return decoded(entry.text(name))
        except LatexError as error:
            problems.append(Problem(entry.line_of(name), f"{name} {error}"))
            return ""

    title = ": ".join(part for part in (plain("title"), plain("subtitle")) if part)
    try:
        authors = names.read(entry.text("author"), decoded)
    except (names.NamesError, LatexError) as error:
        problems.append(Problem(entry.line_of("author"), f"author: {error}"))
        authors = []
    year = _year(entry, problems)
    ids = _identifiers(entry)
    venue_field = next((name for name in _VENUE_FIELDS if entry.text(name) and "\\url" not in entry.text(name)), "")
    venue = plain(venue_field) if venue_field else ""
    is_on_arxiv = venue_field.startswith("journal") and re.match(_ARXIV_JOURNAL, venue, re.IGNORECASE)
    if is_on_arxiv or (not venue_field and IdentifierKind.ARXIV in ids):
        venue = _ARXIV
    if "crossref" in entry.fields and not (venue and year):
        message = "crossref is not followed: copy the year and the booktitle from the entry that it names"
        problems.append(Problem(entry.line_of("crossref"), message))
    url = entry.address("url") or entry.address("howpublished")
    fields = {"title": title, "authors": authors, "year": year, "venue": venue}
    return Item({"key": entry.key, **given(fields), **ids}, entry.line, {"urls": url} if url else {})


def _year(entry: Entry, problems: list[Problem]) -> int | None:
    name = "year" if entry.text("year") else "date"
    text = entry.text(name).strip("{} ")
    if not text:
        return None
    if not re.fullmatch(r"[1-9]\d{3}" if name == "year" else r"[1-9]\d{3}(?:[-/].*)?", text, re.ASCII):
        problems.append(Problem(entry.line_of(name), f"{name} {quote(text)} is not a year of four digits"))
        return None
    return int(text[:4])


def _identifiers(entry: Entry) -> dict[str, Value]:
    """The arXiv id and the DOI of an entry.

    Google Scholar writes the id into a journal (`arXiv preprint arXiv:...`), and DBLP into a volume. An eprint of
    arXiv's that we do not recognise stays as it is, for the decoder to refuse.
    """
    prefix = (entry.text("archiveprefix") or entry.text("eprinttype")).lower()
    eprint, doi = entry.text("eprint"), entry.text("doi").strip("{}").replace("\\_", "_")
    named = recognise(doi)
    if named is not None and named.kind is IdentifierKind.DOI:
        doi = named.value
    numbers = [eprint] if prefix in ("", "arxiv") else []
    journal = entry.text("journal") or entry.text("journaltitle")
    if re.match(_ARXIV_JOURNAL, journal, re.IGNORECASE):
        numbers += [entry.text("volume").removeprefix("abs/"), journal.split()[-1]]
    found = identifiers(numbers, doi)
    is_unknown = prefix == "arxiv" and eprint and IdentifierKind.ARXIV not in identifiers([eprint], "")
    return {**found, IdentifierKind.ARXIV.value: eprint} if is_unknown else found
