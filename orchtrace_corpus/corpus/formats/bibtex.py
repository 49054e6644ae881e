"""Papers as BibTeX entries, and BibTeX entries as records.

An entry has the fields of a citation: key, title, authors, year, venue, arXiv id, DOI and the first URL of the paper.
The record keeps the type and the other fields of an imported entry, such as `volume`, as LaTeX under `bibtex`, and
they are exported again.

bibtexparser finds the blocks of a file. It skips what it cannot read, and does not expand strings; here each of these
is expanded or reported with its line.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from urllib.parse import quote as percent_encoded

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.budget import MAX_EXPANDED_CHARACTERS, how_to_raise
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.latex import LatexError, decoded, encoded
from orchtrace_corpus.base.yamlfile.lines import MAX_TEXT
from orchtrace_corpus.corpus.formats import Item, Problem, citation, read_identifiers, without_empty
from orchtrace_corpus.corpus.model.field_table import PAPER_FIELDS
from orchtrace_corpus.corpus.model.fields import entry_field_problem
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.tagging import read_value
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

if TYPE_CHECKING:
    from bibtexparser import model

_ARXIV = "arXiv"
_FIELDS = citation.carriers_in("bibtex")
_VENUE_FIELD_OF = {
    "article": "journal",
    **dict.fromkeys(("inproceedings", "conference", "incollection", "inbook"), "booktitle"),
    **dict.fromkeys(("book", "proceedings"), "publisher"),
    **dict.fromkeys(("phdthesis", "mastersthesis"), "school"),
    **dict.fromkeys(("techreport", "thesis", "report"), "institution"),
}
"""The field of an entry that names the venue, by its type; `howpublished` in all others."""
_NOT_KEPT = frozenset("title subtitle author year keywords annotation annote abstract file crossref".split())
"""Fields that a record has itself, texts by other people, and paths of one machine."""
_EPRINT = frozenset("eprint archiveprefix eprinttype primaryclass eprintclass".split())
_TYPE_FIELD = "type_field"
"""The name in a record for an entry's field `type`; in a record, `type` is the entry type."""
_ARXIV_JOURNAL = r"(?:arxiv|corr)\b"
_MONTHS = {name[:3].lower(): name for name in citation.MONTHS}
_ENCODED_UNICODE = partial(encoded, unicode=True)  # one object, since caches of names and words have it in their keys
_WORD = r"[^\s\"#%'(),={}]+"
_FIELD_START = r"([\w-]+)\s*=\s*(?=[{\"])"
_STRAY = rf"@\s*\w+\s*[{{(]|(?<![^\n])[ \t]*(?:@\s*\w|{_FIELD_START})|\A,\s*[\w-]+\s*="
"""Text that BibTeX takes for a comment between entries, but was meant as an entry or as fields of an entry."""


class Field(NamedTuple):
    """The value of a field, as LaTeX without the braces or quotes around it, and its line from 1."""

    value: str
    line: int


class Entry(NamedTuple):
    """An entry of a BibTeX file. The names of its fields are in lower case."""

    key: str
    fields: Mapping[str, Field]
    line: int
    type: str = "misc"

    def text(self, name: str) -> str:
        """Return the value of a field as LaTeX; empty without the field."""
        return self.fields[name].value.strip() if name in self.fields else ""

    def line_of(self, name: str) -> int:
        """Return the line of a field; that of the entry without the field."""
        return self.fields[name].line if name in self.fields else self.line

    def address(self, name: str) -> str:
        r"""Return the web address in a field, bare or in `\url{...}`; empty without an address."""
        match = re.fullmatch(r"(?:\\url\s*\{)?\s*(https?://[^\s{}]+)\s*\}?", self.text(name), re.IGNORECASE)
        return re.sub(r"\\([_%&#$~])(?:\{\})?", r"\1", match[1]) if match else ""


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    """Return the papers as BibTeX, one entry each, in their order."""
    return "\n".join(_entry(paper, taxonomy, profile, categories) for paper in papers)


def read(text: str, taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the entries of a BibTeX file; all profiles read alike."""
    return [_item(entry, problems, taxonomy) for entry in _entries(text, problems)]


def _entry(paper: Paper, taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    encode = encoded if profile == "bibtex" else _ENCODED_UNICODE
    entry_type, venue_field, kept_fields = _kept_by(paper)
    is_dated = profile != "bibtex" and "date" in kept_fields  # biber warns of an entry with both a date and a year
    fields = [
        (_FIELDS["title"], citation.protect_capitals(paper.title, encode)),
        (_FIELDS["authors"], "" if citation.is_edited(paper) else citation.format_names(paper.authors, encode)),
        (venue_field, encode(paper.cited_venue)),
        (_FIELDS["year"], "" if is_dated else str(paper.cited_year or "")),
        *(("type" if name == _TYPE_FIELD else name, value) for name, value in kept_fields.items()),
        (_FIELDS["arxiv_id"], paper.arxiv_id or ""),
        ("archivePrefix", _ARXIV if paper.arxiv_id else ""),
        ("primaryClass", categories.get(paper.arxiv_id or "", "") if paper.arxiv_id else ""),
        (_FIELDS["doi"], percent_encoded(paper.doi or "", safe="!#$&'()*+,-./:;<=>?@[]^_|~")),
        (_FIELDS["urls"], paper.urls[0] if paper.urls else ""),
    ]
    written = {name for name, value in fields if value}
    carried = citation.carried_texts(paper, taxonomy, "bibtex")
    fields += [(name, encode(text)) for name, text in carried.items() if name not in written]
    if profile == "tagged":
        fields += [
            ("keywords", ", ".join(citation.keywords(paper, taxonomy))),
            (_FIELDS["summary"], encode(citation.summary_text(paper))),
        ]
    lines = [f"@{entry_type}{{{paper.citation_key},"]
    for name, value in fields:
        if name == "month" and value in _MONTHS.values():  # styles define strings for months, in their language
            lines.append(f"  {name:13} = {value[:3].lower()},")
        elif name and value:
            lines.append(f"  {name:13} = {{{value}}},")
    return "\n".join((*lines, "}\n"))


def left_out(paper: Paper) -> Iterator[str]:
    """Yield the fields of a paper that its entry has no place for."""
    yield from citation.unlinked(paper, 1)
    yield from (name for name in paper.bibtex if name != "type" and name not in _kept_by(paper)[2])


def _kept_by(paper: Paper) -> tuple[str, str, dict[str, str]]:
    """Return a paper's entry type, the field for its venue unless it is named already, and the imported fields."""
    entry_type = paper.bibtex.get("type") or _default_type(paper.cited_venue)
    written = {"type"}
    for names, value in (({"url"}, paper.urls), ({"doi"}, paper.doi), (_EPRINT, paper.arxiv_id)):
        if value:
            written |= names
    kept_fields = {name: value for name, value in paper.bibtex.items() if name not in written}
    if not str(kept_fields.get("date", paper.cited_year)).startswith(str(paper.cited_year)):
        del kept_fields["date"]
    carrier = _venue_field(kept_fields, entry_type)
    if carrier and _venue(carrier, citation.plain(kept_fields[carrier])) == paper.cited_venue:
        return entry_type, "", kept_fields
    if not carrier and paper.cited_venue == _ARXIV and paper.arxiv_id:
        return entry_type, "", kept_fields
    field = _VENUE_FIELD_OF.get(entry_type, "howpublished")
    kept_fields.pop(field, None)
    return entry_type, field, kept_fields


def _default_type(venue: str) -> str:
    """Return the usual type of an entry at a venue."""
    kind = citation.venue_kind(venue)
    is_usual = kind in (citation.VenueKind.JOURNAL, citation.VenueKind.CONFERENCE)
    return citation.PUBLICATION_TYPES[kind].bibtex if is_usual else "misc"


def _venue_field(fields: Mapping[str, str], entry_type: str) -> str:
    """Return the field of an entry that names its venue: that of its type, else the first; empty if there is none."""
    order = (_VENUE_FIELD_OF.get(entry_type, "howpublished"), *citation.VENUE_FIELDS)
    return next((name for name in order if fields.get(name) and "\\url" not in fields[name]), "")


def _venue(field: str, text: str) -> str:
    """Return the venue that a field names; each spelling of arXiv as a journal is arXiv."""
    is_on_arxiv = field.startswith("journal") and re.match(_ARXIV_JOURNAL, text, re.IGNORECASE)
    return _ARXIV if is_on_arxiv else text


def _item(entry: Entry, problems: list[Problem], taxonomy: Taxonomy) -> Item:
    """Return the record of an entry, and add its problems to `problems`."""

    def text_of(name: str) -> str:
        try:
            return decoded(entry.text(name))
        except LatexError as error:
            problems.append(Problem(entry.line_of(name), f"{name} {error}"))
            return ""

    title = ": ".join(filter(None, (text_of("title"), text_of("subtitle"))))
    try:
        authors = citation.read_names(entry.text("author") or entry.text("editor"), decoded)
    except (citation.NamesError, LatexError) as error:
        name = "author" if entry.text("author") else "editor"
        problems.append(Problem(entry.line_of(name), f"{name}: {error}"))
        authors = []
    year = _year(entry, problems)
    ids = _identifiers(entry)
    venue_field = _venue_field({name: entry.text(name) for name in entry.fields}, entry.type)
    by_id = _ARXIV if IdentifierKind.ARXIV in ids else ""
    venue = _venue(venue_field, text_of(venue_field)) if venue_field else by_id
    if "crossref" in entry.fields and not (venue and year):
        message = "crossref is not followed: copy the year and the booktitle from the entry that it names"
        problems.append(Problem(entry.line_of("crossref"), message))
    url = entry.address("url") or entry.address("howpublished")
    read_fields = set(_EPRINT) if IdentifierKind.ARXIV in ids else set()
    if IdentifierKind.DOI in ids:
        read_fields.add("doi")
    if url:
        read_fields.add("url" if entry.address("url") else "howpublished")
    is_alone = [entry.text(name) for name in citation.VENUE_FIELDS].count(entry.text(venue_field)) == 1
    if is_alone and venue_field == _VENUE_FIELD_OF.get(entry.type, "howpublished") and venue == text_of(venue_field):
        read_fields.add(venue_field)
    fields = (field for field in (*PAPER_FIELDS, *taxonomy.fields) if field.name not in citation.SPELLED)
    carried = {field.carriers.bibtex: field for field in fields if field.carriers.bibtex in entry.fields}
    kept_fields: dict[str, Value] = {"type": entry.type} if entry.type != _default_type(venue) else {}
    kept_fields |= _kept(entry, {*read_fields, *carried}, problems)
    values: dict[str, Value] = {
        "key": entry.key,
        **without_empty({"title": title, "authors": authors, "bibtex": kept_fields}),
        **ids,
    }
    for name, field in carried.items():
        try:
            value = read_value(field, text_of(name))
            values[field.name] = list(value) if isinstance(value, tuple) else value
        except CommandUseError as error:
            problems.append(Problem(entry.line_of(name), str(error)))
    tags = tuple(part.strip() for part in re.split("[,;]", entry.text("keywords")) if "=" in part)
    cited, heads = without_empty({"year": year, "venue": venue}), {"urls": url} if url else {}
    return Item(values, entry.line, heads, (), cited, tags, text_of("annotation") if tags else "")


def _kept(entry: Entry, read_fields: Collection[str], problems: list[Problem]) -> dict[str, Value]:
    """Return the fields of an entry that a record has no field for, as LaTeX on one line."""
    kept_fields: dict[str, Value] = {}
    for name, field in entry.fields.items():
        value = " ".join("".join(c if c.isprintable() else " " for c in field.value).split())
        is_year = name == "date" and len(value) == 4
        if not value or name in _NOT_KEPT or name in read_fields or is_year:
            continue
        record_name = _TYPE_FIELD if name == "type" else name
        if problem := entry_field_problem(record_name, value):
            problems.append(Problem(field.line, f"{printable(name)} {problem}"))
        kept_fields[record_name] = value
    return kept_fields


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
    """Return the arXiv id and the DOI of an entry; an eprint of unknown form is kept, for the decoder to refuse."""
    prefix = (entry.text("archiveprefix") or entry.text("eprinttype")).lower()
    eprint, doi = entry.text("eprint"), entry.text("doi").strip("{}").replace("\\_", "_")
    identifier = recognise(doi)
    if identifier is not None and identifier.kind is IdentifierKind.DOI:
        doi = identifier.value
    numbers = [eprint] if prefix in ("", "arxiv") else []
    journal = entry.text("journal") or entry.text("journaltitle")
    if re.match(_ARXIV_JOURNAL, journal, re.IGNORECASE):  # the id is in the volume (DBLP) or behind it (Google Scholar)
        numbers += [entry.text("volume").removeprefix("abs/"), journal.split()[-1]]
    by_field = read_identifiers(numbers, doi)
    is_unknown = prefix == "arxiv" and eprint and IdentifierKind.ARXIV not in read_identifiers([eprint], "")
    return {**by_field, IdentifierKind.ARXIV.value: eprint} if is_unknown else by_field


def _entries(text: str, problems: list[Problem]) -> list[Entry]:
    """Return the entries of a file, and add its problems to `problems`."""
    import logging

    from bibtexparser.splitter import Splitter

    logger = logging.getLogger("bibtexparser.splitter")  # which logs problems that are reported here
    was_disabled, logger.disabled = logger.disabled, True
    try:
        blocks = Splitter(text).split().blocks
    finally:
        logger.disabled = was_disabled
    try:
        return list(_BlockReader(problems).entries(blocks))
    except _ExpansionError:
        return []


class _ExpansionError(Exception):
    """The strings of a file expand to more text than the limit."""


class _BlockReader:
    """Reads the blocks of a file and expands its strings."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._strings = dict(_MONTHS)
        self._expanded_characters = 0

    def entries(self, blocks: "Sequence[model.Block]") -> Iterator[Entry]:
        """Yield the entries among the blocks; an `_ExpansionError` if expanded strings are longer than the limit."""
        from bibtexparser import model

        for before, block in zip([None, *blocks], blocks, strict=False):
            line = _line(block)
            if isinstance(block, model.DuplicateFieldKeyBlock) and block.ignore_error_block is not None:
                block = block.ignore_error_block  # an entry, whose fields are read here
            if isinstance(block, model.ParsingFailedBlock):
                self._problems.append(Problem(line, _failure(block, line)))
            elif isinstance(block, model.String):
                self._strings[block.key.lower()] = self._value(block.value, f"string {quote(block.key)}", line)
            elif isinstance(block, model.ImplicitComment) and (stray := re.search(_STRAY, block.comment)):
                line += block.comment[: stray.start()].count("\n")
                text = quote(" ".join(block.comment[stray.start() :].split()))
                if "@" in stray[0]:
                    message = f"this looks like the start of an entry, but is not one: {text}; write @type{{key, ...}}"
                    self._problems.append(Problem(line, message))
                elif not isinstance(before, model.ParsingFailedBlock):
                    message = f"these fields stand behind the end of their entry: {text}"
                    self._problems.append(Problem(line, f"{message}; before them is a '}}' too many"))
            elif isinstance(block, model.Entry):
                if not block.key:
                    self._problems.append(Problem(line, f"an entry of type {quote(block.entry_type)} has no key"))
                fields: dict[str, Field] = {}
                for field in block.fields:
                    name, at = field.key.lower(), field.start_line + 1
                    if name in fields:
                        message = f"field {quote(name)} is given twice (first on line {fields[name].line}); keep one"
                        self._problems.append(Problem(at, message))
                    else:
                        fields[name] = Field(self._value(str(field.value), printable(name), at), at)
                yield Entry(block.key, fields, line, block.entry_type.lower())

    def _value(self, raw: str, label: str, line: int) -> str:
        """Return the parts of a value joined: texts in braces or quotes, numbers, and names of strings."""
        rest, parts = raw.strip(), []
        while True:
            length = _length(rest)
            part, rest = rest[:length], rest[length:].lstrip()
            is_text = part[:1] in ("{", '"')
            if is_text:
                parts.append(part[1:-1])
            elif part.lower() in self._strings:
                parts.append(self._strings[part.lower()])
                self._expanded_characters += len(parts[-1])
                if self._expanded_characters > MAX_EXPANDED_CHARACTERS:
                    message = f"expand to more than {MAX_EXPANDED_CHARACTERS:,} characters by here"
                    hint = f"split the file, or write shorter strings. {how_to_raise('MAX_EXPANDED_CHARACTERS')}"
                    self._problems.append(Problem(line, f"the strings of this file {message}; {hint}"))
                    raise _ExpansionError
            elif part.isascii() and part.isdigit():
                parts.append(part)
            elif part:
                unknown = f"there is no string {quote(part)}; define it with @string, or write {{{part}}}"
                self._problems.append(Problem(line, f"{label}: {unknown}"))
            if not part or (rest and rest[0] != "#"):
                problem = f"a comma is missing behind {quote(part)}" if is_text else f"write braces around {quote(raw)}"
            elif rest:
                rest = rest[1:].lstrip()
                continue
            elif len(parts) > 1 and sum(map(len, parts)) > MAX_TEXT:
                problem = f"its parts are longer than {MAX_TEXT // 1000} kB together; shorten them"
            else:
                return "".join(parts)
            self._problems.append(Problem(line, f"{label}: {problem}"))
            return ""


def _failure(block: "model.ParsingFailedBlock", line: int) -> str:
    """Return the problem of a block that bibtexparser could not read."""
    from bibtexparser import model

    if isinstance(block, model.DuplicateBlockKeyBlock):
        kind = "string" if isinstance(block.ignore_error_block, model.String) else "key"
        first = _line(block.previous_block)
        return f"{kind} {quote(block.key)} is used twice (first on line {first}); keep one"
    raw = (block.raw or "").rstrip()
    end = line + raw.count("\n")
    missing = "a closing brace, a comma, '=' or its key is missing"
    if key := re.match(r"@\s*\w+\s*\{\s*([^\s,{}]*([\"=])[^\s,{}]*)\s*,", raw):
        missing = f"its key {quote(key[1])} holds {quote(key[2])}, which no key can"
    for start in re.finditer(_FIELD_START, raw):
        value = raw[start.end() : start.end() + _length(raw[start.end() :])]
        if not value or re.search(rf"\n\s*{_FIELD_START}", value):
            sign = "brace" if raw[start.end()] == "{" else "quote"
            start_line = line + raw.count("\n", 0, start.start())
            missing = f"a closing {sign} is missing in {printable(start[1])}, on line {start_line}"
            break
    return f"this entry breaks off on line {end}: {missing}"


def _length(text: str) -> int:
    """Return the length of the first part of a value; 0 if there is none."""
    if text[:1] not in ("{", '"'):
        word = re.match(_WORD, text)
        return word.end() if word else 0
    depth = 0
    for at in re.finditer(r"(?<!\\)[{}\"]", text):
        if at[0] == '"':
            if depth == 0 and text[0] == '"' and at.start():
                return at.end()
            continue
        depth += 1 if at[0] == "{" else -1
        if depth == 0 and text[0] == "{":
            return at.end()
    return 0


def _line(block: "model.Block") -> int:
    return (block.start_line or 0) + 1
