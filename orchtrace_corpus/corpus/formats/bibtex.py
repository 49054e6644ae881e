"""Write papers as BibTeX entries, and read them from BibTeX files.

An entry has the fields of a citation: key, title, authors, year, venue, arXiv id, DOI and the first URL of the paper.
An import keeps the entry's type and other fields, such as `volume`, as LaTeX in the record's field `bibtex`. An export
writes them again.

bibtexparser splits a file into blocks. It skips blocks that it cannot read, and does not expand strings. This module
reports such blocks with their lines, and expands the strings.
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
_FIELDS = citation.names_in("bibtex")
_VENUE_FIELD_OF = {
    "article": "journal",
    **dict.fromkeys(("inproceedings", "conference", "incollection", "inbook"), "booktitle"),
    **dict.fromkeys(("book", "proceedings"), "publisher"),
    **dict.fromkeys(("phdthesis", "mastersthesis"), "school"),
    **dict.fromkeys(("techreport", "thesis", "report"), "institution"),
}
"""The field of an entry that names the venue, by entry type; `howpublished` for all other types."""
_NOT_KEPT = frozenset("title subtitle author year keywords annotation annote abstract file crossref".split())
"""Fields that an import does not keep: a record has them itself, or they are texts by others or paths of a machine."""
_EPRINT_FIELDS = frozenset("eprint archiveprefix eprinttype primaryclass eprintclass".split())
_TYPE_FIELD = "type_field"
"""The field `type` of an entry, as a record names it. In a record, `type` is the type of the entry."""
_ARXIV_JOURNAL = r"(?:arxiv|corr)\b"
_MONTHS = {name[:3].lower(): name for name in citation.MONTHS}
"""The strings that every BibTeX style defines."""
_encode_unicode = partial(encoded, unicode=True)  # a single object, since it is part of the keys of caches
_WORD = r"[^\s\"#%'(),={}]+"
_FIELD_START = r"([\w-]+)\s*=\s*(?=[{\"])"
_LOST_TEXT = rf"@\s*\w+\s*[{{(]|(?<![^\n])[ \t]*(?:@\s*\w|{_FIELD_START})|\A,\s*[\w-]+\s*="
"""Text between entries, which BibTeX takes for a comment, but which was meant as an entry or as fields of an entry."""


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
        """Return the line of a field, or the line of the entry if it does not have the field."""
        return self.fields[name].line if name in self.fields else self.line

    def address(self, name: str) -> str:
        r"""Return the web address in a field, bare or in `\url{...}`; empty without an address."""
        match = re.fullmatch(r"(?:\\url\s*\{)?\s*(https?://[^\s{}]+)\s*\}?", self.text(name), re.IGNORECASE)
        return re.sub(r"\\([_%&#$~])(?:\{\})?", r"\1", match[1]) if match else ""  # without LaTeX's escapes


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    """Return the papers as BibTeX, one entry each, in their order."""
    return "\n".join(_entry(paper, taxonomy, profile, categories) for paper in papers)


def read(text: str, taxonomy: Taxonomy, _profile: str, problems: list[Problem]) -> list[Item]:
    """Return the entries of a BibTeX file as items; the profile makes no difference."""
    return [_item(entry, problems, taxonomy) for entry in _entries(text, problems)]


def _entry(paper: Paper, taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    encode = encoded if profile == "bibtex" else _encode_unicode
    exported = _exported_entry(paper)
    fields: list[tuple[str, str]] = [(_FIELDS["title"], citation.protect_capitals(paper.title, encode))]
    if not citation.is_edited(paper):
        fields.append((_FIELDS["authors"], citation.format_names(paper.authors, encode)))
    fields.append((exported.venue_field, encode(paper.cited_venue)))
    if profile == "bibtex" or "date" not in exported.fields:  # biber warns of an entry with both a date and a year
        fields.append((_FIELDS["year"], str(paper.cited_year or "")))
    fields += (("type" if name == _TYPE_FIELD else name, value) for name, value in exported.fields.items())
    if paper.arxiv_id:
        fields += [(_FIELDS["arxiv_id"], paper.arxiv_id), ("archivePrefix", _ARXIV)]
        fields.append(("primaryClass", categories.get(paper.arxiv_id, "")))
    fields.append((_FIELDS["doi"], percent_encoded(paper.doi or "", safe="!#$&'()*+,-./:;<=>?@[]^_|~")))
    fields.append((_FIELDS["urls"], "".join(paper.urls[:1])))
    written = {name for name, value in fields if value}
    carried = citation.carried_texts(paper, taxonomy, "bibtex")
    fields += [(name, encode(text)) for name, text in carried.items() if name not in written]
    if profile == "tagged":
        fields.append(("keywords", ", ".join(citation.keywords(paper, taxonomy))))
        fields.append((_FIELDS["summary"], encode(citation.summary_text(paper))))
    lines = [f"@{exported.type}{{{paper.citation_key},"]
    for name, value in fields:
        if name == "month" and value in _MONTHS.values():  # a string, which styles define in their language
            lines.append(f"  {name:13} = {value[:3].lower()},")
        elif name and value:
            lines.append(f"  {name:13} = {{{value}}},")
    return "\n".join((*lines, "}\n"))


def left_out(paper: Paper) -> Iterator[str]:
    """Yield the fields of a paper that its entry does not hold."""
    yield from citation.lost_identifiers(paper, 1)
    exported_fields = _exported_entry(paper).fields
    yield from (name for name in paper.bibtex if name != "type" and name not in exported_fields)


class _ExportedEntry(NamedTuple):
    """The parts that an entry takes from the imported one: its type and fields, and the field to write the venue to.

    `venue_field` is empty if `fields` already name the venue.
    """

    type: str
    venue_field: str
    fields: dict[str, str]


def _exported_entry(paper: Paper) -> _ExportedEntry:
    entry_type = paper.bibtex.get("type") or _default_type(paper.cited_venue)
    fields = {name: value for name, value in paper.bibtex.items() if name != "type"}
    # The record has precedence over the imported entry.
    for names, value in ((("url",), paper.urls), (("doi",), paper.doi), (_EPRINT_FIELDS, paper.arxiv_id)):
        if value:
            fields = {name: text for name, text in fields.items() if name not in names}
    if "date" in fields and not fields["date"].startswith(str(paper.cited_year)):
        del fields["date"]
    imported_field = _venue_field(fields, entry_type)
    if imported_field:
        is_venue_named = _venue(imported_field, citation.plain_text(fields[imported_field])) == paper.cited_venue
    else:
        is_venue_named = paper.cited_venue == _ARXIV and bool(paper.arxiv_id)
    if is_venue_named:
        return _ExportedEntry(entry_type, "", fields)
    venue_field = _VENUE_FIELD_OF.get(entry_type, "howpublished")
    fields.pop(venue_field, None)
    return _ExportedEntry(entry_type, venue_field, fields)


def _default_type(venue: str) -> str:
    """Return the type of a new entry for a paper at a venue."""
    kind = citation.venue_kind(venue)
    if kind in (citation.VenueKind.JOURNAL, citation.VenueKind.CONFERENCE):
        return citation.PUBLICATION_TYPES[kind].bibtex
    return "misc"


def _venue_field(fields: Mapping[str, str], entry_type: str) -> str:
    """Return the field that names the venue: the usual one of the entry type, else the first; empty without any."""
    for name in (_VENUE_FIELD_OF.get(entry_type, "howpublished"), *citation.VENUE_FIELDS):
        if fields.get(name) and "\\url" not in fields[name]:
            return name
    return ""


def _venue(field: str, text: str) -> str:
    """Return the venue that the text of a field names: `arXiv` for all spellings of arXiv as a journal."""
    is_arxiv = field.startswith("journal") and re.match(_ARXIV_JOURNAL, text, re.IGNORECASE) is not None
    return _ARXIV if is_arxiv else text


def _item(entry: Entry, problems: list[Problem], taxonomy: Taxonomy) -> Item:
    """Return an entry as an item, and add its problems to `problems`."""

    def field_text(name: str) -> str:
        try:
            return decoded(entry.text(name))
        except LatexError as error:
            problems.append(Problem(entry.line_of(name), f"{name} {error}"))
            return ""

    title = ": ".join(filter(None, (field_text("title"), field_text("subtitle"))))
    names_field = "author" if entry.text("author") else "editor"
    try:
        authors = citation.read_names(entry.text(names_field), decoded)
    except (citation.NamesError, LatexError) as error:
        problems.append(Problem(entry.line_of(names_field), f"{names_field}: {error}"))
        authors = []
    year = _year(entry, problems)
    ids = _identifiers(entry)
    venue_field = _venue_field({name: entry.text(name) for name in entry.fields}, entry.type)
    if venue_field:
        venue = _venue(venue_field, field_text(venue_field))
    else:
        venue = _ARXIV if IdentifierKind.ARXIV in ids else ""
    if "crossref" in entry.fields and not (venue and year):
        message = "crossref is not followed: copy the year and the booktitle from the entry that it names"
        problems.append(Problem(entry.line_of("crossref"), message))
    url_field = "url" if entry.address("url") else "howpublished"
    url = entry.address(url_field)
    read_fields = set(_EPRINT_FIELDS) if IdentifierKind.ARXIV in ids else set()
    if IdentifierKind.DOI in ids:
        read_fields.add("doi")
    if url:
        read_fields.add(url_field)
    # The venue's field is not kept if the record's venue restores it: the usual field of the type, in equal words.
    is_usual = venue_field == _VENUE_FIELD_OF.get(entry.type, "howpublished")
    is_unique = [entry.text(name) for name in citation.VENUE_FIELDS].count(entry.text(venue_field)) == 1
    if is_unique and is_usual and venue == field_text(venue_field):
        read_fields.add(venue_field)
    fields = (field for field in (*PAPER_FIELDS, *taxonomy.fields) if field.name not in citation.SPECIAL_FIELDS)
    carried = {field.citation_names.bibtex: field for field in fields if field.citation_names.bibtex in entry.fields}
    kept_fields: dict[str, Value] = {"type": entry.type} if entry.type != _default_type(venue) else {}
    kept_fields |= _kept_fields(entry, {*read_fields, *carried}, problems)
    values: dict[str, Value] = {
        "key": entry.key,
        **without_empty({"title": title, "authors": authors, "bibtex": kept_fields}),
        **ids,
    }
    for name, field in carried.items():
        try:
            value = read_value(field, field_text(name))
            values[field.name] = list(value) if isinstance(value, tuple) else value
        except CommandUseError as error:
            problems.append(Problem(entry.line_of(name), str(error)))
    first_items = {"urls": url} if url else {}
    cited = without_empty({"year": year, "venue": venue})
    tags = tuple(part.strip() for part in re.split("[,;]", entry.text("keywords")) if "=" in part)
    annotation = field_text("annotation") if tags else ""
    return Item(values, entry.line, first_items, cited=cited, keywords=tags, annotation=annotation)


def _kept_fields(entry: Entry, read_fields: Collection[str], problems: list[Problem]) -> dict[str, Value]:
    """Return the fields for `bibtex` in a record, as LaTeX on one line; `read_fields` are in other fields of it."""
    kept_fields: dict[str, Value] = {}
    for name, field in entry.fields.items():
        value = " ".join("".join(c if c.isprintable() else " " for c in field.value).split())
        is_only_a_year = name == "date" and len(value) == 4
        if not value or name in _NOT_KEPT or name in read_fields or is_only_a_year:
            continue
        record_name = _TYPE_FIELD if name == "type" else name
        if problem := entry_field_problem(record_name, value):
            problems.append(Problem(field.line, f"{printable(name)} {problem}"))
        kept_fields[record_name] = value
    return kept_fields


def _year(entry: Entry, problems: list[Problem]) -> int | None:
    if entry.text("year"):
        name, pattern = "year", r"[1-9]\d{3}"
    else:
        name, pattern = "date", r"[1-9]\d{3}(?:[-/].*)?"
    text = entry.text(name).strip("{} ")
    if not text:
        return None
    if not re.fullmatch(pattern, text, re.ASCII):
        problems.append(Problem(entry.line_of(name), f"{name} {quote(text)} is not a year of four digits"))
        return None
    return int(text[:4])


def _identifiers(entry: Entry) -> dict[str, Value]:
    """Return the arXiv id and the DOI of an entry, by the name of the field.

    A malformed arXiv id in `eprint` is kept, so that the decoder reports it.
    """
    archive = (entry.text("archiveprefix") or entry.text("eprinttype")).lower()
    eprint = entry.text("eprint")
    doi = entry.text("doi").strip("{}").replace("\\_", "_")
    identifier = recognise(doi)
    if identifier is not None and identifier.kind is IdentifierKind.DOI:
        doi = identifier.value
    numbers = [eprint] if archive in ("", "arxiv") else []
    journal = entry.text("journal") or entry.text("journaltitle")
    if re.match(_ARXIV_JOURNAL, journal, re.IGNORECASE):
        # DBLP writes the id into the volume, Google Scholar at the end of the journal.
        numbers += [entry.text("volume").removeprefix("abs/"), journal.split()[-1]]
    by_field = read_identifiers(numbers, doi)
    if archive == "arxiv" and eprint and IdentifierKind.ARXIV not in read_identifiers([eprint], ""):
        by_field[IdentifierKind.ARXIV.value] = eprint
    return by_field


def _entries(text: str, problems: list[Problem]) -> list[Entry]:
    """Return the entries of a file, and add its problems to `problems`."""
    import logging

    from bibtexparser.splitter import Splitter

    # bibtexparser logs the problems that are reported here.
    logger = logging.getLogger("bibtexparser.splitter")
    was_disabled = logger.disabled
    logger.disabled = True
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
    """Reads the blocks of a file, which are entries, definitions of strings and comments, and expands the strings."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._strings = dict(_MONTHS)
        self._expanded_characters = 0

    def entries(self, blocks: "Sequence[model.Block]") -> Iterator[Entry]:
        """Yield the entries among the blocks; an `_ExpansionError` if expanded strings are longer than the limit."""
        from bibtexparser import model

        previous: model.Block | None = None
        for block in blocks:
            line = _line(block)
            if isinstance(block, model.DuplicateFieldKeyBlock) and isinstance(block.ignore_error_block, model.Entry):
                yield self._entry(block.ignore_error_block, line)
            elif isinstance(block, model.ParsingFailedBlock):
                self._problems.append(Problem(line, _parsing_problem(block, line)))
            elif isinstance(block, model.String):
                self._strings[block.key.lower()] = self._value(block.value, f"string {quote(block.key)}", line)
            elif isinstance(block, model.ImplicitComment) and (lost := re.search(_LOST_TEXT, block.comment)):
                line += block.comment[: lost.start()].count("\n")
                text = quote(" ".join(block.comment[lost.start() :].split()))
                if "@" in lost[0]:
                    message = f"this looks like the start of an entry, but is not one: {text}; write @type{{key, ...}}"
                    self._problems.append(Problem(line, message))
                elif not isinstance(previous, model.ParsingFailedBlock):
                    message = f"these fields stand behind the end of their entry: {text}"
                    self._problems.append(Problem(line, f"{message}; before them is a '}}' too many"))
            elif isinstance(block, model.Entry):
                yield self._entry(block, line)
            previous = block

    def _entry(self, block: "model.Entry", line: int) -> Entry:
        if not block.key:
            self._problems.append(Problem(line, f"an entry of type {quote(block.entry_type)} has no key"))
        fields: dict[str, Field] = {}
        for field in block.fields:
            name = field.key.lower()
            field_line = field.start_line + 1
            if name in fields:
                message = f"field {quote(name)} is given twice (first on line {fields[name].line}); keep one"
                self._problems.append(Problem(field_line, message))
            else:
                fields[name] = Field(self._value(str(field.value), printable(name), field_line), field_line)
        return Entry(block.key, fields, line, block.entry_type.lower())

    def _value(self, raw: str, label: str, line: int) -> str:
        """Return a value, whose parts are joined by `#`: texts in braces or quotes, numbers, and names of strings.

        A value with a problem is empty; `label` names it in the message.
        """
        rest = raw.strip()
        parts: list[str] = []
        while True:
            length = _part_length(rest)
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
            if part and rest.startswith("#"):
                rest = rest[1:].lstrip()
                continue
            if part and not rest:
                if len(parts) == 1 or sum(map(len, parts)) <= MAX_TEXT:
                    return "".join(parts)
                problem = f"its parts are longer than {MAX_TEXT // 1000} kB together; shorten them"
            elif is_text:
                problem = f"a comma is missing behind {quote(part)}"
            else:
                problem = f"write braces around {quote(raw)}"
            self._problems.append(Problem(line, f"{label}: {problem}"))
            return ""


def _parsing_problem(block: "model.ParsingFailedBlock", line: int) -> str:
    """Return the reason why bibtexparser could not read a block."""
    from bibtexparser import model

    if isinstance(block, model.DuplicateBlockKeyBlock):
        kind = "string" if isinstance(block.ignore_error_block, model.String) else "key"
        first = _line(block.previous_block)
        return f"{kind} {quote(block.key)} is used twice (first on line {first}); keep one"
    raw = (block.raw or "").rstrip()
    end = line + raw.count("\n")
    problem = "a closing brace, a comma, '=' or its key is missing"
    if key := re.match(r"@\s*\w+\s*\{\s*([^\s,{}]*([\"=])[^\s,{}]*)\s*,", raw):
        problem = f"its key {quote(key[1])} holds {quote(key[2])}, which no key can"
    for start in re.finditer(_FIELD_START, raw):
        # The value is not closed if it has no end, or if it extends over the start of another field.
        value = raw[start.end() : start.end() + _part_length(raw[start.end() :])]
        if not value or re.search(rf"\n\s*{_FIELD_START}", value):
            sign = "brace" if raw[start.end()] == "{" else "quote"
            start_line = line + raw.count("\n", 0, start.start())
            problem = f"a closing {sign} is missing in {printable(start[1])}, on line {start_line}"
            break
    return f"this entry breaks off on line {end}: {problem}"


def _part_length(text: str) -> int:
    """Return the length of the first part of a value, braces or quotes included; 0 if there is none."""
    if text[:1] not in ("{", '"'):
        word = re.match(_WORD, text)
        return word.end() if word else 0
    depth = 0
    for sign in re.finditer(r"(?<!\\)[{}\"]", text):
        if sign[0] == '"':
            if depth == 0 and text[0] == '"' and sign.start() > 0:
                return sign.end()
            continue
        depth += 1 if sign[0] == "{" else -1
        if depth == 0 and text[0] == "{":
            return sign.end()
    return 0


def _line(block: "model.Block") -> int:
    return (block.start_line or 0) + 1
