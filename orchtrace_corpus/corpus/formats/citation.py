"""Author lists, kinds of venues and tags as keywords, for bibliographies.

Names are in BibTeX form: `Family, Given`, `Family, Jr, Given`, a collective in braces, `others` for the rest. In a
BibTeX file, a name without parts or a family name of several words needs braces, or BibTeX splits it (Patashnik,
BibTeXing, 1988, section 4; Markey, Tame the BeaST, 2009, section 11).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache, partial

from orchtrace_corpus.base.identifiers import IdentifierKind, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.latex import LatexError, decoded, encoded
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.field_table import PAPER_FIELDS, Carriers, value_texts
from orchtrace_corpus.corpus.model.fields import OTHERS, TO_BE_WRITTEN, bare_author, is_collective
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class Name(NamedTuple):
    """An author's name. A collective, and a person of one name, has a family name only."""

    family: str
    given: str = ""
    suffix: str = ""

    @property
    def text(self) -> str:
        """The name in the form of a record."""
        return ", ".join(part for part in (self.family, self.suffix, self.given) if part)

    @property
    def collective(self) -> str:
        """The name of a collective in the form of a record, in braces."""
        marked = f"{{{self.family}}}"
        return marked if is_collective(marked) and self.family != OTHERS else self.text


class NamesError(ValueError):
    """The error of a list of names that cannot be read."""


def name_of(author: str) -> Name:
    """Return the parts of an author's name in a record; further commas belong to the given name."""
    if is_collective(author):
        return Name(author[1:-1])
    family, *rest = (part.strip() for part in author.split(",", 2))
    if len(rest) < 2:
        return Name(family, *rest)
    suffix, given = rest
    return Name(family, f"{suffix}, {given}") if "," in given else Name(family, given, suffix)


def format_names(authors: Iterable[str], encode: Callable[[str], str]) -> str:
    """Return authors as the value of a BibTeX field; `encode` turns text into LaTeX."""
    return " and ".join(_written(author, encode) for author in authors)


def read_names(value: str, decode: Callable[[str], str]) -> list[str]:
    """Return the authors in the value of a BibTeX field; a `NamesError` for an empty or malformed name."""
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
        family, suffix, given_name = (
            decode(" ".join(words)) for words in ([*parts.von, *parts.last], parts.jr, parts.first)
        )
        if not family:
            raise NamesError("a name is missing between two 'and'")
        name = Name(family, given_name, suffix)
        authors.append(name.collective if re.fullmatch(r"\{.*\}", raw, re.DOTALL) and not given_name else name.text)
    return authors


def _separated(value: str) -> Iterator[str]:
    """Yield the names between each `and` outside braces; bibtexparser's function loses an accent after an `and`."""
    start = depth = 0
    for token in re.finditer(r"\\.|[{}]|(?<!\S)and(?!\S)", value, re.IGNORECASE | re.DOTALL):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0].lower() == "and":
            yield value[start : token.start()].strip()
            start = token.end()
    if value.strip():
        yield value[start:].strip()


@lru_cache(maxsize=4096)
def _written(author: str, encode: Callable[[str], str]) -> str:
    if author == OTHERS:
        return author
    name = name_of(author)
    if not name.given:
        is_whole = is_collective(author) or not re.fullmatch(r"[^\W\d_][\w.'\u2019-]*", name.family)
        return f"{{{encode(name.family)}}}" if is_whole else encode(name.family)
    parts = [_part(name.family, encode, is_family=True), _part(name.suffix, encode), _part(name.given, encode)]
    return ", ".join(part for part in parts if part)


def _part(text: str, encode: Callable[[str], str], *, is_family: bool = False) -> str:
    """Return a part of a name as LaTeX, in braces if BibTeX would split it otherwise."""
    words = text.split(" ")
    starts_low = [next((letter.islower() for letter in word if letter.isalpha()), False) for word in words]
    has_inner_particle = is_family and any(starts_low[1:]) and not starts_low[0]
    is_whole = has_inner_particle or "" in words or "," in text or re.search(r"\band\b", text, re.IGNORECASE)
    return f"{{{encode(text)}}}" if text and is_whole else encode(text)


def protect_capitals(title: str, encode: Callable[[str], str]) -> str:
    """Return a title with braces around the words whose capitals a bibliography style must keep.

    These are acronyms and words with a capital after their first letter (`LLM`, `DeepSeek`), and single capitals or
    capitals before digits (`Q-value`, `R1`), except the article `A`.
    """
    parts = re.split(r"([^\W_]+(?:[.'\u2019-][^\W_]+)*)", title)
    return "".join(_protected_word(part, encode) if index % 2 else encode(part) for index, part in enumerate(parts))


@lru_cache(maxsize=4096)
def _protected_word(word: str, encode: Callable[[str], str]) -> str:
    parts = []
    is_whole = True
    for part in word.split("-"):
        is_acronym = any(letter.isupper() for letter in part[1:])
        is_marked = any(c.isdigit() for c in part) or (len(part) == 1 and word != "A")
        is_protected = is_acronym or (part[0].isupper() and is_marked)
        is_whole &= is_protected
        parts.append(f"{{{encode(part)}}}" if is_protected else encode(part))
    return f"{{{encode(word)}}}" if is_whole else "-".join(parts)


class VenueKind(StrEnum):
    """The kind of publication that appears at a venue."""

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


_WORDS = {
    VenueKind.PREPRINT: "arxiv biorxiv corr medrxiv openreview preprint preprints ssrn submission submitted",
    VenueKind.OTHER: "blog book dissertation docs documentation manual page report software thesis web website",
    VenueKind.JOURNAL: "annals bulletin communications jair jhep jmlr journal letters magazine pnas pos quarterly "
    "review tacl tmlr transactions",
    VenueKind.CONFERENCE: "colloquium conference findings meeting proc proceedings processing symposium workshop "
    "aaai aamas acl aistats chi cikm coling colm colt conll corl cvpr eacl ecai eccv ecml emnlp gecco iccv iclr icml "
    "icra icse ijcai interspeech iros issta kdd lrec mlsys naacl ndss neurips nips osdi pldi popl recsys rss sigcomm "
    "siggraph sigir sosp stoc uai uist usenix vldb wacv wsdm www",
}


PUBLICATION_TYPES = {
    VenueKind.JOURNAL: Carriers("article", "article-journal", "JOUR"),
    VenueKind.CONFERENCE: Carriers("inproceedings", "paper-conference", "CONF"),
    VenueKind.PREPRINT: Carriers("misc", "article", "UNPB"),
    VenueKind.BOOK: Carriers("book", "book", "BOOK"),
    VenueKind.CHAPTER: Carriers("incollection", "chapter", "CHAP"),
    VenueKind.THESIS: Carriers("phdthesis", "thesis", "THES"),
    VenueKind.REPORT: Carriers("techreport", "report", "RPRT"),
    VenueKind.DATASET: Carriers("dataset", "dataset", "DATA"),
    VenueKind.SOFTWARE: Carriers("software", "software", "COMP"),
    VenueKind.OTHER: Carriers("misc", "webpage", "ELEC"),
}
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
"""The kind of publication of each type; other types are of unknown kind."""

DETAILS = (
    Carriers("volume", "volume", "VL"),
    Carriers("number", "issue", "IS"),
    Carriers("pages", "page", "SP"),
    Carriers("publisher", "publisher", "PB"),
    Carriers("edition", "edition", "ET"),
    Carriers("address", "publisher-place", "CY"),
    Carriers("series", "collection-title", "T3"),
    Carriers("issn", "ISSN", "SN"),
    Carriers("isbn", "ISBN", "SN"),
)
"""The further fields of an entry that CSL and RIS have a place for."""

VENUE_FIELDS = ("journal", "journaltitle", "booktitle", "howpublished", "school", "institution", "publisher")
"""The fields of a BibTeX entry that can name the venue, the first choice first."""


@lru_cache(maxsize=1024)
def venue_kind(venue: str) -> VenueKind:
    """Return the kind of a venue: by a known word or acronym, else `other` for an acronym and a journal for a name."""
    words = re.findall(r"[^\W\d_]+", venue)
    folded = {word.casefold() for word in words}
    for kind, names in _WORDS.items():
        if not folded.isdisjoint(names.split()):
            return kind
    has_acronym = any(sum(letter.isupper() for letter in word) > 1 for word in words)
    return VenueKind.OTHER if has_acronym or not words else VenueKind.JOURNAL


def paper_kind(paper: Paper) -> VenueKind:
    """Return the kind of publication of a paper: by the type of its imported entry, else by its venue."""
    return entry_kind(paper.bibtex.get("type", ""), paper.cited_venue)


def entry_kind(entry_type: str, venue: str) -> VenueKind:
    """Return the kind of publication of an entry by its type, or by its venue if the type is empty or ambiguous."""
    kind = venue_kind(venue)
    if not entry_type:
        return kind
    fallback = VenueKind.OTHER if kind in (VenueKind.JOURNAL, VenueKind.CONFERENCE) else kind
    return ENTRY_KINDS.get(entry_type, fallback)


PUBLISHED_BY = (VenueKind.BOOK, VenueKind.THESIS, VenueKind.REPORT, VenueKind.PREPRINT)
"""The kinds whose venue is a publisher, school or institution, since they are part of no larger work."""


def editors(entry: Mapping[str, str]) -> list[str]:
    """Return the editors of a BibTeX entry in the form of a record; empty if they cannot be read."""
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
    text = plain(entry.get("month", "")).lower()
    if text.isascii() and text.isdigit():
        return int(text) if 1 <= int(text) <= 12 else 0
    return next((at for at, name in enumerate(MONTHS, 1) if text[:3] == name[:3].lower()), 0)


class EntryDetails(NamedTuple):
    """Kind, plain texts by BibTeX field, editors and month (0 if unknown) of an entry in a format other than BibTeX."""

    kind: VenueKind | None = None
    texts: Mapping[str, str] = {}
    editors: tuple[str, ...] = ()
    month: int = 0


_SAME_PLACE = {"issn": ("issn", "isbn"), "isbn": ("isbn", "issn")}
"""Fields that share a place in other formats."""


def merge_entry(details: EntryDetails, present: Mapping[str, str], venue: str) -> dict[str, str]:
    """Return the BibTeX fields of a record, as LaTeX, updated from an entry; equal values keep their spelling."""
    fields = dict(present)
    if details.kind and entry_kind(fields.get("type", ""), venue) is not details.kind:
        entry_type = PUBLICATION_TYPES[details.kind].bibtex
        fields = {"type": entry_type, **{name: latex for name, latex in fields.items() if name != "type"}}
    for name, text in details.texts.items():
        texts = [plain(fields[other]) for other in _SAME_PLACE.get(name, (name,)) if other in fields]
        if _comparable(text) not in map(_comparable, texts):
            latex = encoded(text, unicode=True)
            if name in ("volume", "number", "pages"):  # not every hyphen is that of a range (`TR-12`)
                dash = r"\s*[-\u2013]\s*" if name == "pages" or re.fullmatch(r"\d+-\d+", latex) else "\u2013"
                latex = re.sub(rf"(?<=\w){dash}(?=\w)", "--", latex)
            fields[name] = latex
    if details.editors and [*map(bare_author, editors(fields))] != [*map(bare_author, details.editors)]:
        fields["editor"] = format_names(details.editors, partial(encoded, unicode=True))
    if details.month and month_of(fields) != details.month:
        fields["month"] = MONTHS[details.month - 1]
    return fields


def _comparable(text: str) -> str:
    """Return a text with each dash as one hyphen, so that spellings of a range compare equal."""
    return re.sub(r"\s*[-\u2013]+\s*", "-", text).strip("- ")


def entry_texts(paper: Paper, places: Mapping[str, str]) -> dict[str, str]:
    """Return the further fields of a paper's entry as plain text, by their places in another format."""
    texts = ((places[name], plain(latex)) for name, latex in paper.bibtex.items() if name in places)
    return {place: text for place, text in texts if text}


def left_out(paper: Paper, most_urls: int | None = 1) -> Iterator[str]:
    """Yield the fields of a paper that CSL and RIS have no place for, or cannot spell; RIS has one for each URL."""
    yield from unlinked(paper, most_urls)
    placed = {"type", *VENUE_FIELDS, *(detail.bibtex for detail in DETAILS)}
    if editors(paper.bibtex):
        placed.add("editor")
    if month_of(paper.bibtex):
        placed.add("month")
    yield from (name for name, latex in paper.bibtex.items() if name not in placed or not plain(latex))


SPELLED = ("title", "authors", "year", "arxiv_id", "doi", "urls", "summary")
"""The fields that each format writes in a way of its own."""


def carriers_in(form: str) -> dict[str, str]:
    """Return the place of each fixed field in a format: `bibtex`, `csl` or `ris`."""
    return {field.name: carrier for field in PAPER_FIELDS if (carrier := getattr(field.carriers, form))}


def carried_texts(paper: Paper, taxonomy: Taxonomy, form: str) -> dict[str, str]:
    """Return the fields that a format holds as plain text, by their places; a survey's own fields are included."""
    texts: dict[str, str] = {}
    for field in (*PAPER_FIELDS, *taxonomy.fields):
        carrier = getattr(field.carriers, form)
        if carrier and field.name not in SPELLED and (values := value_texts(paper.value(field.name))):
            texts[carrier] = ", ".join(values)
    return texts


def summary_text(paper: Paper) -> str:
    """Return the summary of a paper; empty while it is still to be written."""
    return "" if paper.summary == TO_BE_WRITTEN else paper.summary


def plain(latex: str) -> str:
    """Return LaTeX as plain text; empty if it cannot be decoded."""
    try:
        return decoded(latex)
    except LatexError:
        return ""


def apa(paper: Paper) -> str:
    """Return the reference of a paper in APA style (Publication Manual, 7th edition), as plain text."""
    names = []
    for name in (name_of(author) for author in paper.authors if author != OTHERS):
        initials = ("-".join(f"{part[0]}." for part in word.split("-") if part) for word in name.given.split())
        names.append(", ".join(part for part in (name.family, " ".join(initials), name.suffix) if part))
    listed = f"{', '.join(names[:-1])}, & {names[-1]}" if len(names) > 1 else "".join(names)
    if OTHERS in paper.authors:
        listed = f"{', '.join(names)}, et al."
    elif len(names) > 20:  # chapter 9.8: the first nineteen and the last
        listed = f"{', '.join(names[:19])}, … {names[-1]}"
    year = f"({paper.cited_year or 'n.d.'})"
    title = paper.title.rstrip(".")
    kind, venue = paper_kind(paper), paper.cited_venue
    if kind is VenueKind.PREPRINT and paper.arxiv_id:
        title = f"{title} (arXiv:{paper.arxiv_id})"
    if kind is VenueKind.CONFERENCE:
        venue = f"In {venue}"
    volume, number, pages = (plain(paper.bibtex.get(name, "")) for name in ("volume", "number", "pages"))
    volume += f"({number})" if volume and number else ""
    source = ", ".join(part for part in (venue, volume, pages) if part)
    address = f"https://doi.org/{paper.doi}" if paper.doi else next(iter(paper.urls), "")
    head = f"{listed.rstrip('.')}. {year}" if listed else f"{title}. {year}"
    parts = [head, *([title] if listed else []), *([source] if source else [])]
    return " ".join([*(part if part.endswith(("?", "!")) else f"{part}." for part in parts), address]).strip()


def unlinked(paper: Paper, most_urls: int | None) -> Iterator[str]:
    """Yield the identifiers and addresses of a paper that are lost if only its first `most_urls` addresses are kept."""
    urls = paper.urls[:most_urls]
    linked = {identifier.kind for identifier in map(recognise_url, urls) if identifier is not None}
    for kind in (IdentifierKind.OPENREVIEW, IdentifierKind.ACL):  # the others have a place of their own
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
