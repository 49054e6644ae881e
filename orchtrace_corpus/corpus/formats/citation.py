"""Common parts of the citation formats: author names, publication types, imported entries, keywords, APA references.

Names in records are in BibTeX form: `Family, Given`, `Family, Jr, Given`, a collective in braces, `others` for names
left out. In a BibTeX file, a name without parts or a family name of several words needs braces, or BibTeX splits it
(Patashnik, BibTeXing, 1988, section 4; Markey, Tame the BeaST, 2009, section 11).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache, partial

from orchtrace_corpus.base.identifiers import IdentifierKind, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.latex import LatexError, decoded, encoded
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.field_table import PAPER_FIELDS, CitationNames, value_texts
from orchtrace_corpus.corpus.model.fields import OTHERS, TO_BE_WRITTEN, bare_author, is_collective
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class Name(NamedTuple):
    """An author's name. A collective, or a person with a single name, has only `family`."""

    family: str
    given: str = ""
    suffix: str = ""

    @property
    def text(self) -> str:
        """The name as records write it."""
        return ", ".join(part for part in (self.family, self.suffix, self.given) if part)

    @property
    def collective(self) -> str:
        """The name of a collective as records write it: in braces, unless that would not be valid."""
        in_braces = f"{{{self.family}}}"
        return in_braces if is_collective(in_braces) and self.family != OTHERS else self.text


class NamesError(ValueError):
    """The error of a list of names that cannot be read."""


def name_of(author: str) -> Name:
    """Return the parts of an author's name as records write it; a third comma belongs to the given name."""
    if is_collective(author):
        return Name(author[1:-1])
    family, *rest = (part.strip() for part in author.split(",", 2))
    if len(rest) < 2:  # no comma, or `Family, Given`
        return Name(family, *rest)
    suffix, given = rest
    if "," in given:
        return Name(family, f"{suffix}, {given}")
    return Name(family, given, suffix)


def format_names(authors: Iterable[str], encode: Callable[[str], str]) -> str:
    """Return authors as the value of a BibTeX field; `encode` turns text into LaTeX."""
    return " and ".join(_format_name(author, encode) for author in authors)


def read_names(value: str, decode: Callable[[str], str]) -> list[str]:
    """Return the authors in the value of a BibTeX field; a `NamesError` for an empty or malformed name."""
    from bibtexparser.middlewares.names import InvalidNameError, parse_single_name_into_parts

    authors = []
    for raw in _split_names(value):
        if raw == OTHERS:
            authors.append(OTHERS)
            continue
        try:
            parts = parse_single_name_into_parts(raw)
        except InvalidNameError as error:
            raise NamesError(f"{error.reason.lower()} in {' '.join(raw.split())!r}") from error
        family = decode(" ".join([*parts.von, *parts.last]))
        suffix = decode(" ".join(parts.jr))
        given = decode(" ".join(parts.first))
        if not family:
            raise NamesError("a name is missing between two 'and'")
        name = Name(family, given, suffix)
        is_in_braces = re.fullmatch(r"\{.*\}", raw, re.DOTALL) is not None
        authors.append(name.collective if is_in_braces and not given else name.text)
    return authors


def _split_names(value: str) -> Iterator[str]:
    """Yield the names between each `and` outside braces; bibtexparser's function loses an accent after an `and`."""
    start = depth = 0
    for token in re.finditer(r"\\.|[{}]|(?<!\S)and(?!\S)", value, re.IGNORECASE | re.DOTALL):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
        elif depth == 0 and token[0].lower() == "and":
            yield value[start : token.start()].strip()
            start = token.end()
    if value.strip():
        yield value[start:].strip()


@lru_cache(maxsize=4096)
def _format_name(author: str, encode: Callable[[str], str]) -> str:
    if author == OTHERS:
        return author
    name = name_of(author)
    if not name.given:
        is_word = re.fullmatch(r"[^\W\d_][\w.'\u2019-]*", name.family) is not None
        needs_braces = is_collective(author) or not is_word
        return f"{{{encode(name.family)}}}" if needs_braces else encode(name.family)
    family = _name_part(name.family, encode, is_family=True)
    parts = (family, _name_part(name.suffix, encode), _name_part(name.given, encode))
    return ", ".join(part for part in parts if part)


def _name_part(text: str, encode: Callable[[str], str], *, is_family: bool = False) -> str:
    """Return a part of a name as LaTeX, in braces if BibTeX would split it otherwise."""
    words = text.split(" ")
    first_letters = [next((letter for letter in word if letter.isalpha()), "") for word in words]
    # BibTeX takes a word that begins with a small letter as a particle, such as `von`.
    has_inner_particle = is_family and any(map(str.islower, first_letters[1:])) and not first_letters[0].islower()
    has_and = re.search(r"\band\b", text, re.IGNORECASE) is not None
    needs_braces = has_inner_particle or has_and or "" in words or "," in text
    return f"{{{encode(text)}}}" if text and needs_braces else encode(text)


def protect_capitals(title: str, encode: Callable[[str], str]) -> str:
    """Return a title with braces around the words whose capitals a bibliography style must keep.

    These are acronyms and words with a capital after their first letter (`LLM`, `DeepSeek`), and single capitals or
    capitals before digits (`Q-value`, `R1`), except the article `A`.
    """
    parts = re.split(r"([^\W_]+(?:[.'\u2019-][^\W_]+)*)", title)  # words are at odd indices
    return "".join(_protect_word(part, encode) if index % 2 else encode(part) for index, part in enumerate(parts))


@lru_cache(maxsize=4096)
def _protect_word(word: str, encode: Callable[[str], str]) -> str:
    """Return a word with braces around those of its parts between hyphens that need them, or around the whole word."""
    parts = []
    are_all_protected = True
    for part in word.split("-"):
        has_inner_capital = any(letter.isupper() for letter in part[1:])
        has_digit = any(c.isdigit() for c in part)
        is_single = len(part) == 1 and word != "A"
        is_protected = has_inner_capital or (part[0].isupper() and (has_digit or is_single))
        are_all_protected = are_all_protected and is_protected
        parts.append(f"{{{encode(part)}}}" if is_protected else encode(part))
    return f"{{{encode(word)}}}" if are_all_protected else "-".join(parts)


class VenueKind(StrEnum):
    """The kind of a publication, which follows from its venue if its type is not given."""

    JOURNAL = "journal"
    CONFERENCE = "conference"
    PREPRINT = "preprint"
    BOOK = "book"
    CHAPTER = "chapter"
    THESIS = "thesis"
    REPORT = "report"
    DATASET = "dataset"
    SOFTWARE = "software"
    OTHER = "other"


_VENUE_WORDS = {
    VenueKind.PREPRINT: "arxiv biorxiv corr medrxiv openreview preprint preprints ssrn submission submitted",
    VenueKind.OTHER: "blog book dissertation docs documentation manual page report software thesis web website",
    VenueKind.JOURNAL: "annals bulletin communications jair jhep jmlr journal letters magazine pnas pos quarterly "
    "review tacl tmlr transactions",
    VenueKind.CONFERENCE: "colloquium conference findings meeting proc proceedings processing symposium workshop "
    "aaai aamas acl aistats chi cikm coling colm colt conll corl cvpr eacl ecai eccv ecml emnlp gecco iccv iclr icml "
    "icra icse ijcai interspeech iros issta kdd lrec mlsys naacl ndss neurips nips osdi pldi popl recsys rss sigcomm "
    "siggraph sigir sosp stoc uai uist usenix vldb wacv wsdm www",
}
"""The words and acronyms in a venue's name that show its kind. The first kind with a match counts."""

PUBLICATION_TYPES = {
    VenueKind.JOURNAL: CitationNames("article", "article-journal", "JOUR"),
    VenueKind.CONFERENCE: CitationNames("inproceedings", "paper-conference", "CONF"),
    VenueKind.PREPRINT: CitationNames("misc", "article", "UNPB"),
    VenueKind.BOOK: CitationNames("book", "book", "BOOK"),
    VenueKind.CHAPTER: CitationNames("incollection", "chapter", "CHAP"),
    VenueKind.THESIS: CitationNames("phdthesis", "thesis", "THES"),
    VenueKind.REPORT: CitationNames("techreport", "report", "RPRT"),
    VenueKind.DATASET: CitationNames("dataset", "dataset", "DATA"),
    VenueKind.SOFTWARE: CitationNames("software", "software", "COMP"),
    VenueKind.OTHER: CitationNames("misc", "webpage", "ELEC"),
}
"""The type in BibTeX, CSL and RIS of each kind of publication."""

ENTRY_KINDS = {names.bibtex: kind for kind, names in PUBLICATION_TYPES.items() if names.bibtex != "misc"} | {
    **dict.fromkeys(("conference", "proceedings"), VenueKind.CONFERENCE),
    **dict.fromkeys(("mvbook", "collection"), VenueKind.BOOK),
    "inbook": VenueKind.CHAPTER,
    **dict.fromkeys(("mastersthesis", "thesis"), VenueKind.THESIS),
    "report": VenueKind.REPORT,
}
CSL_KINDS = {names.csl: kind for kind, names in PUBLICATION_TYPES.items()} | dict.fromkeys(
    ("article-magazine", "article-newspaper"), VenueKind.JOURNAL
)
RIS_KINDS = {names.ris: kind for kind, names in PUBLICATION_TYPES.items()} | {
    "CPAPER": VenueKind.CONFERENCE,
    **dict.fromkeys(("MGZN", "NEWS"), VenueKind.JOURNAL),
}
"""The kind of publication by type, in BibTeX (`ENTRY_KINDS`), CSL and RIS."""

DETAILS = (
    CitationNames("volume", "volume", "VL"),
    CitationNames("number", "issue", "IS"),
    CitationNames("pages", "page", "SP"),
    CitationNames("publisher", "publisher", "PB"),
    CitationNames("edition", "edition", "ET"),
    CitationNames("address", "publisher-place", "CY"),
    CitationNames("series", "collection-title", "T3"),
    CitationNames("issn", "ISSN", "SN"),
    CitationNames("isbn", "ISBN", "SN"),
)
"""The fields of a BibTeX entry without a field in records, with their names in CSL and RIS."""

VENUE_FIELDS = ("journal", "journaltitle", "booktitle", "howpublished", "school", "institution", "publisher")
"""The fields of a BibTeX entry that can name the venue; the first that is present does."""


@lru_cache(maxsize=1024)
def venue_kind(venue: str) -> VenueKind:
    """Return the kind of a venue by its words. Unknown names are journals, unless they hold an acronym (`other`)."""
    words = re.findall(r"[^\W\d_]+", venue)
    folded_words = {word.casefold() for word in words}
    for kind, kind_words in _VENUE_WORDS.items():
        if not folded_words.isdisjoint(kind_words.split()):
            return kind
    has_acronym = any(sum(letter.isupper() for letter in word) > 1 for word in words)
    return VenueKind.OTHER if has_acronym or not words else VenueKind.JOURNAL


def paper_kind(paper: Paper) -> VenueKind:
    """Return the kind of publication of a paper: by the type of its imported entry, else by its venue."""
    return entry_kind(paper.bibtex.get("type", ""), paper.cited_venue)


def entry_kind(entry_type: str, venue: str) -> VenueKind:
    """Return the kind of publication of an entry by its type, or by its venue if the type is empty or ambiguous."""
    if entry_type in ENTRY_KINDS:
        return ENTRY_KINDS[entry_type]
    kind = venue_kind(venue)
    if entry_type and kind in (VenueKind.JOURNAL, VenueKind.CONFERENCE):  # these have types of their own
        return VenueKind.OTHER
    return kind


PUBLISHED_BY = (VenueKind.BOOK, VenueKind.THESIS, VenueKind.REPORT, VenueKind.PREPRINT)
"""The kinds whose venue is a publisher, school or institution, since they are not part of a larger work."""


def editors(entry: Mapping[str, str]) -> list[str]:
    """Return the editors of a BibTeX entry as records write names; empty if they cannot be read."""
    try:
        return read_names(entry["editor"], decoded) if "editor" in entry else []
    except (NamesError, LatexError):
        return []


def is_edited(paper: Paper) -> bool:
    """Return True if the authors of a paper are its editors, since its imported entry named no authors."""
    return "editor" in paper.bibtex and editors(paper.bibtex) == list(paper.authors)


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""The months as BibTeX's strings write them."""


def month_of(entry: Mapping[str, str]) -> int:
    """Return the month of a BibTeX entry, from 1; 0 if it has none."""
    text = plain_text(entry.get("month", "")).lower()
    if text.isascii() and text.isdigit():
        return int(text) if 1 <= int(text) <= 12 else 0
    abbreviations = [name[:3].lower() for name in MONTHS]
    return abbreviations.index(text[:3]) + 1 if text[:3] in abbreviations else 0


class EntryDetails(NamedTuple):
    """The parts of a CSL or RIS citation for which a record has no field; they go to its field `bibtex`.

    Attributes:
        kind: The kind of publication; None if the type is unknown.
        texts: The fields in `DETAILS` as plain text, by BibTeX field.
        month: From 1; 0 if unknown.
    """

    kind: VenueKind | None = None
    texts: Mapping[str, str] = {}
    editors: tuple[str, ...] = ()
    month: int = 0


_SERIAL_NUMBERS = ("issn", "isbn")


def merge_entry(details: EntryDetails, present: Mapping[str, str], venue: str) -> dict[str, str]:
    """Return the BibTeX fields `present` of a record, as LaTeX, updated; a field with an equal value stays as it is."""
    fields = dict(present)
    if details.kind and entry_kind(fields.get("type", ""), venue) is not details.kind:
        fields.pop("type", None)
        fields = {"type": PUBLICATION_TYPES[details.kind].bibtex, **fields}  # `type` comes first
    for name, text in details.texts.items():
        # RIS has one tag for both serial numbers, so the record can have the same number as the other one.
        names = _SERIAL_NUMBERS if name in _SERIAL_NUMBERS else (name,)
        if _comparable(text) in [_comparable(plain_text(fields[other])) for other in names if other in fields]:
            continue
        latex = encoded(text, unicode=True)
        if name == "pages" or (name in ("volume", "number") and re.fullmatch(r"\d+-\d+", latex)):
            latex = re.sub(r"(?<=\w)\s*[-\u2013]\s*(?=\w)", "--", latex)
        elif name in ("volume", "number"):  # the hyphen of `TR-12` is not that of a range
            latex = re.sub(r"(?<=\w)\u2013(?=\w)", "--", latex)
        fields[name] = latex
    if details.editors and [*map(bare_author, editors(fields))] != [*map(bare_author, details.editors)]:
        fields["editor"] = format_names(details.editors, partial(encoded, unicode=True))
    if details.month and month_of(fields) != details.month:
        fields["month"] = MONTHS[details.month - 1]
    return fields


def _comparable(text: str) -> str:
    """Return a text with each dash as one hyphen, so that spellings of a range compare equal."""
    return re.sub(r"\s*[-\u2013]+\s*", "-", text).strip("- ")


def entry_texts(paper: Paper, names_in_format: Mapping[str, str]) -> dict[str, str]:
    """Return the imported fields of a paper that a format can hold, as plain text by their names in the format.

    `names_in_format` has these names by BibTeX field.
    """
    texts: dict[str, str] = {}
    for field, latex in paper.bibtex.items():
        if field in names_in_format and (text := plain_text(latex)):
            texts[names_in_format[field]] = text
    return texts


def left_out(paper: Paper, max_urls: int | None = 1) -> Iterator[str]:
    """Yield the fields of a paper that a CSL or RIS file with at most `max_urls` addresses of it does not hold."""
    yield from lost_identifiers(paper, max_urls)
    included = {"type", *VENUE_FIELDS, *(detail.bibtex for detail in DETAILS)}
    if editors(paper.bibtex):
        included.add("editor")
    if month_of(paper.bibtex):
        included.add("month")
    yield from (name for name, latex in paper.bibtex.items() if name not in included or not plain_text(latex))


SPECIAL_FIELDS = ("title", "authors", "year", "arxiv_id", "doi", "urls", "summary")
"""The fields that each format writes with code of its own. Other fields are plain text in all formats."""


def names_in(format_name: str) -> dict[str, str]:
    """Return the names of fixed fields in a format, by record field; the format is `bibtex`, `csl` or `ris`."""
    names = {field.name: getattr(field.citation_names, format_name) for field in PAPER_FIELDS}
    return {field: name for field, name in names.items() if name}


def carried_texts(paper: Paper, taxonomy: Taxonomy, format_name: str) -> dict[str, str]:
    """Return the plain fields of a paper, a survey's own fields included, by their names in a format."""
    texts: dict[str, str] = {}
    for field in (*PAPER_FIELDS, *taxonomy.fields):
        name = getattr(field.citation_names, format_name)
        if name and field.name not in SPECIAL_FIELDS and (values := value_texts(paper.value(field.name))):
            texts[name] = ", ".join(values)
    return texts


def summary_text(paper: Paper) -> str:
    """Return the summary of a paper; empty while it is still to be written."""
    return "" if paper.summary == TO_BE_WRITTEN else paper.summary


def plain_text(latex: str) -> str:
    """Return LaTeX as plain text; empty if it cannot be decoded."""
    try:
        return decoded(latex)
    except LatexError:
        return ""


def apa(paper: Paper) -> str:
    """Return the reference of a paper in APA style (Publication Manual, 7th edition), as plain text."""
    names = []
    for author in paper.authors:
        if author == OTHERS:
            continue
        name = name_of(author)
        initials = " ".join(map(_initials, name.given.split()))
        names.append(", ".join(part for part in (name.family, initials, name.suffix) if part))
    if OTHERS in paper.authors:
        authors = f"{', '.join(names)}, et al."
    elif len(names) > 20:  # chapter 9.8: the first nineteen and the last
        authors = f"{', '.join(names[:19])}, … {names[-1]}"
    elif len(names) > 1:
        authors = f"{', '.join(names[:-1])}, & {names[-1]}"
    else:
        authors = "".join(names)
    kind, venue = paper_kind(paper), paper.cited_venue
    if kind is VenueKind.CONFERENCE:
        venue = f"In {venue}"
    title = paper.title.rstrip(".")
    if kind is VenueKind.PREPRINT and paper.arxiv_id:
        title = f"{title} (arXiv:{paper.arxiv_id})"
    year = f"({paper.cited_year or 'n.d.'})"
    parts = [f"{authors.rstrip('.')}. {year}", title] if authors else [f"{title}. {year}"]
    volume, number, pages = (plain_text(paper.bibtex.get(name, "")) for name in ("volume", "number", "pages"))
    if volume and number:
        volume = f"{volume}({number})"
    source = ", ".join(part for part in (venue, volume, pages) if part)
    if source:
        parts.append(source)
    sentences = [part if part.endswith(("?", "!")) else f"{part}." for part in parts]
    address = f"https://doi.org/{paper.doi}" if paper.doi else "".join(paper.urls[:1])
    return " ".join([*sentences, address]).strip()


def _initials(word: str) -> str:
    """Return the initials of a given name, such as `J.-P.` for `Jean-Pierre`."""
    return "-".join(f"{part[0]}." for part in word.split("-") if part)


def lost_identifiers(paper: Paper, max_urls: int | None) -> Iterator[str]:
    """Yield the identifiers and addresses of a paper that are lost with all addresses after the first `max_urls`."""
    urls = paper.urls[:max_urls]
    linked = {identifier.kind for identifier in map(recognise_url, urls) if identifier is not None}
    for kind in (IdentifierKind.OPENREVIEW, IdentifierKind.ACL):  # other identifiers have fields in every format
        if getattr(paper, kind.value) and kind not in linked:
            yield kind.value
    if len(urls) < len(paper.urls):
        yield "further urls"


def keywords(paper: Paper, taxonomy: Taxonomy) -> Iterator[str]:
    """Yield the tags in the form of filters, such as `credit_unit=agent` or `stop=explicit`, except `NA`."""
    for facet in taxonomy.papers:
        tag = paper.tags.get(facet.field, ())
        if isinstance(tag, str):  # most are
            if tag != NOT_APPLICABLE:
                yield f"{facet.field}={tag}"
        elif isinstance(tag, Mapping):
            yield from (f"{term}={level}" for term, level in tag.items())
        else:
            yield from (f"{facet.field}={term}" for term in tag if term != NOT_APPLICABLE)
