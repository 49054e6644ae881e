"""What bibliographies ask beyond a record's fields: author lists, the kind of its venue, its tags as keywords.

A record writes names as BibTeX does: `Family, Given`, `Family, Jr, Given`, a collective without a
comma, `others` for those left out. In a BibTeX file, a collective or a family name of several words
must stand in braces, or BibTeX takes it apart (Patashnik, BibTeXing, 1988, section 4; Markey, Tame the
BeaST, 2009, section 11).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE, OTHERS
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class Name(NamedTuple):
    """An author's name. A collective has a family name only."""

    family: str
    given: str = ""
    suffix: str = ""

    @property
    def text(self) -> str:
        """The name as a record has it."""
        return ", ".join(part for part in (self.family, self.suffix, self.given) if part)


class NamesError(ValueError):
    """A list of names cannot be read; the message says why."""


def name_of(author: str) -> Name:
    """The parts of an author's name as a record has it; from a third comma on, all belongs to the given name."""
    family, *rest = (part.strip() for part in author.split(",", 2))
    if len(rest) < 2:
        return Name(family, *rest)
    suffix, given = rest
    return Name(family, f"{suffix}, {given}") if "," in given else Name(family, given, suffix)


def written_names(authors: Iterable[str], encode: Callable[[str], str]) -> str:
    """Authors as the value of a BibTeX field; `encode` makes a part of a name LaTeX."""
    return " and ".join(_written(author, encode) for author in authors)


def read_names(value: str, decode: Callable[[str], str]) -> list[str]:
    """The authors in the value of a BibTeX field; `decode` makes plain text of a part of a name.

    Raises:
        NamesError: A name is empty, or its braces or commas do not make one.
    """
    from bibtexparser.middlewares.names import InvalidNameError, parse_single_name_into_parts

    authors = []
    for raw in _separated(value):
        if raw == OTHERS:
            authors.append(OTHERS)
            continue
        try:
            parts = parse_single_name_into_parts(raw)
        except InvalidNameError as error:
            raise NamesError(f"{error.reason.lower()} in {' '.join(raw.split())!r}") from error
        family, suffix, given = (
            decode(" ".join(words)) for words in ([*parts.von, *parts.last], parts.jr, parts.first)
        )
        if not family:
            raise NamesError("a name is missing between two 'and'")
        authors.append(Name(family, given, suffix).text)
    return authors


def _separated(value: str) -> Iterator[str]:
    """The names between each `and` outside of braces. bibtexparser's function loses an accent behind an `and`."""
    start = depth = 0
    for found in re.finditer(r"\\.|[{}]|(?<!\S)and(?!\S)", value, re.IGNORECASE | re.DOTALL):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0 and found[0].lower() == "and":
            yield value[start : found.start()].strip()
            start = found.end()
    if value.strip():
        yield value[start:].strip()


def _written(author: str, encode: Callable[[str], str]) -> str:
    if author == OTHERS:
        return author
    name = name_of(author)
    if not name.given:
        return f"{{{encode(name.family)}}}"
    parts = [_part(name.family, encode, is_family=True), _part(name.suffix, encode), _part(name.given, encode)]
    return ", ".join(part for part in parts if part)


def _part(text: str, encode: Callable[[str], str], *, is_family: bool = False) -> str:
    """A part of a name, in braces if BibTeX would otherwise take it apart."""
    words = text.split(" ")
    starts_low = [next((letter.islower() for letter in word if letter.isalpha()), False) for word in words]
    has_inner_particle = is_family and any(starts_low[1:]) and not starts_low[0]
    is_whole = has_inner_particle or "" in words or "," in text or re.search(r"\band\b", text, re.IGNORECASE)
    return f"{{{encode(text)}}}" if text and is_whole else encode(text)


class VenueKind(StrEnum):
    """What kind of publication appears at a venue."""

    JOURNAL = "journal"
    CONFERENCE = "conference"
    PREPRINT = "preprint"
    OTHER = "other"


_WORDS = {
    VenueKind.PREPRINT: "arxiv biorxiv corr medrxiv openreview preprint preprints ssrn submission submitted",
    VenueKind.OTHER: "blog book dissertation docs documentation manual page report software thesis web website",
    VenueKind.JOURNAL: "annals bulletin communications jair jmlr journal letters magazine pnas quarterly review tacl "
    "tmlr transactions",
    VenueKind.CONFERENCE: "colloquium conference findings meeting proceedings processing symposium workshop",
}


def venue_kind(venue: str) -> VenueKind:
    """The kind of a venue such as `ICML 2025`, `Nature 2025`, `arXiv` or `Tech Blog`.

    A word that says what it is decides; else an acronym is a conference, and another name a journal.
    """
    words = re.findall(r"[^\W\d_]+", venue)
    folded = {word.casefold() for word in words}
    for kind, names in _WORDS.items():
        if not folded.isdisjoint(names.split()):
            return kind
    has_acronym = any(sum(letter.isupper() for letter in word) > 1 for word in words)
    return VenueKind.CONFERENCE if has_acronym else VenueKind.JOURNAL


def keywords(paper: Paper, taxonomy: Taxonomy) -> Iterator[str]:
    """The tags as filters are written: `credit_unit=agent`, `stop=explicit`; those that are NA are left out."""
    for facet in taxonomy.papers:
        tag = paper.tags.get(facet.field, ())
        if isinstance(tag, Mapping):
            yield from (f"{term}={level}" for term, level in tag.items())
        else:
            terms = (tag,) if isinstance(tag, str) else tag
            yield from (f"{facet.field}={term}" for term in terms if term != NOT_APPLICABLE)
