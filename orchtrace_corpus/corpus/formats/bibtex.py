"""Papers as BibTeX entries, and BibTeX entries as records.

An entry carries what a citation needs: key, title, authors, year, venue, arXiv id, DOI and the
record's own address. Nothing else of a record is read from one, so an import leaves it as it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote as percent_encoded

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise
from orchtrace_corpus.corpus.formats import FormatError, Item, Problem, names
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


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    """The papers as BibTeX, one entry each, in their order."""
    return "\n".join(_entry(paper, taxonomy, profile, categories) for paper in papers)


def read(text: str, taxonomy: Taxonomy, profile: str, path: str) -> list[Item]:
    """The entries of a BibTeX file; all profiles read alike.

    Raises:
        FormatError: An entry cannot be read; the message lists all that cannot, each with its line.
    """
    del taxonomy, profile
    found, problems = entries(text)
    items = [_item(entry, problems) for entry in found]
    if problems:
        raise FormatError(path, problems)
    return items


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

    values: dict[str, Value] = {"key": entry.key}
    title = ": ".join(part for part in (plain("title"), plain("subtitle")) if part)
    if title:
        values["title"] = title
    authors = _authors(entry, problems)
    if authors:
        values["authors"] = authors
    year = _year(entry, problems)
    if year:
        values["year"] = year
    identifiers = dict(_identifiers(entry))
    venue_field = next((name for name in _VENUE_FIELDS if entry.text(name) and "\\url" not in entry.text(name)), "")
    venue = _venue(venue_field, plain(venue_field) if venue_field else "", identifiers)
    if venue:
        values["venue"] = venue
    if "crossref" in entry.fields and not (venue and year):
        message = "crossref is not followed: copy the year and the booktitle from the entry that it names"
        problems.append(Problem(entry.line_of("crossref"), message))
    url = entry.address("url") or entry.address("howpublished")
    return Item({**values, **identifiers}, entry.line, {"urls": url} if url else {})


def _authors(entry: Entry, problems: list[Problem]) -> list[str]:
    try:
        return names.read(entry.text("author"), decoded)
    except (names.NamesError, LatexError) as error:
        problems.append(Problem(entry.line_of("author"), f"author: {error}"))
        return []


def _year(entry: Entry, problems: list[Problem]) -> int | None:
    name = "year" if entry.text("year") else "date"
    text = entry.text(name).strip("{} ")
    if not text:
        return None
    if not re.fullmatch(r"[1-9]\d{3}" if name == "year" else r"[1-9]\d{3}(?:[-/].*)?", text, re.ASCII):
        problems.append(Problem(entry.line_of(name), f"{name} {quote(text)} is not a year of four digits"))
        return None
    return int(text[:4])


def _identifiers(entry: Entry) -> Iterator[tuple[str, str]]:
    """The arXiv id and the DOI of an entry; one that we do not recognise stays as it is, for the decoder to refuse."""
    prefix = entry.text("archiveprefix") or entry.text("eprinttype")
    eprint, doi = entry.text("eprint"), entry.text("doi").strip("{}").replace("\\_", "_")
    from_eprint = recognise(eprint) if prefix.lower() in ("", "arxiv") else None
    from_doi = recognise(doi)
    listed = _listed_on_arxiv(entry)
    if from_eprint is not None and from_eprint.kind is IdentifierKind.ARXIV:
        yield IdentifierKind.ARXIV.value, from_eprint.value
    elif eprint and prefix.lower() == "arxiv":
        yield IdentifierKind.ARXIV.value, eprint
    elif listed is not None:
        yield IdentifierKind.ARXIV.value, listed.value
    elif from_doi is not None and from_doi.kind is IdentifierKind.ARXIV:
        yield IdentifierKind.ARXIV.value, from_doi.value
    if doi and (from_doi is None or from_doi.kind is IdentifierKind.DOI):
        yield IdentifierKind.DOI.value, doi if from_doi is None else from_doi.value


def _listed_on_arxiv(entry: Entry) -> Identifier | None:
    """The arXiv id that Google Scholar writes into a journal (`arXiv preprint arXiv:...`), and DBLP into a volume."""
    journal = entry.text("journal") or entry.text("journaltitle")
    if not re.match(r"(?:arxiv|corr)\b", journal, re.IGNORECASE):
        return None
    found = recognise(entry.text("volume").removeprefix("abs/")) or recognise(journal.split()[-1])
    return found if found is not None and found.kind is IdentifierKind.ARXIV else None


def _venue(field: str, text: str, identifiers: Mapping[str, str]) -> str:
    if field.startswith("journal") and re.match(r"(?:arxiv|corr)\b", text, re.IGNORECASE):
        return _ARXIV
    return _ARXIV if not text and not field and IdentifierKind.ARXIV in identifiers else text
