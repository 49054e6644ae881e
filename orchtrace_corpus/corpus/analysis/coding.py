"""Coding sheets: tables in which a second reader codes papers without seeing the corpus's tags.

A sheet is a CSV file with the columns `key`, `title`, `links`, a column for each facet, or for each term of a facet of
kind `levels`, and `notes`. An empty cell is not coded yet; a term that does not arise is coded as `none`. The columns
and words of the published table, if the taxonomy declares one, are read, too.
"""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, Location, near_suggestion, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, count
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy

GIVEN = ("key", "title", "links")
NOTES = "notes"

_JOIN = ";"


class Column(NamedTuple):
    """A facet, or a term of a facet of kind `levels`, that can be coded.

    Attributes:
        name: The heading: the facet's field, or the term.
        allowed: The codes; a cell can have several of them, joined by `;`, if `is_many`.
        published: The heading in the published table; empty if it has no such column.
        words: The published table's words with their terms.
    """

    name: str
    field: str
    allowed: tuple[str, ...]
    is_many: bool = False
    published: str = ""
    words: tuple[tuple[str, str], ...] = ()

    def terms(self, heading: str) -> Mapping[str, str]:
        """Return the terms by the words of both vocabularies; a word of both has the meaning that fits the heading."""
        own_terms, others = {term: term for term in self.allowed}, dict(self.words)
        return own_terms | others if heading == self.published != self.name else others | own_terms


class Sheet(NamedTuple):
    """The codes and notes of one reader, by key.

    Attributes:
        name: The reader's name: the sheet's path, or `corpus` for the corpus itself.
        codes: The codes by key and column, without empty cells.
        empty: The line of each row with empty cells and their columns, by key.
        remarks: The lines with `#` before the heading, such as how the papers were chosen.
    """

    name: str
    codes: Mapping[str, Mapping[str, str]]
    empty: Mapping[str, tuple[int, tuple[str, ...]]] = {}
    notes: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()


def columns(taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return all columns of papers, in the taxonomy's order."""
    every: list[Column] = []
    published = {column.field: column for column in taxonomy.published}
    for facet in taxonomy.papers:
        if facet.kind is Kind.LEVELS:
            levels = (*(level.id for level in facet.levels), NOT_ARISING)
            every += [Column(term.id, facet.field, levels) for term in facet.terms]
            continue
        column = Column(facet.field, facet.field, facet.values, facet.kind is Kind.MANY)
        if (shown := published.get(facet.field)) is not None:
            words = tuple((shown.spelled(term), term) for term in facet.values)
            column = column._replace(published=shown.column, words=words)
        every.append(column)
    return tuple(every)


def select_columns(taxonomy: Taxonomy, names: str) -> tuple[Column, ...]:
    """Return the columns with the names or facets of a list with commas; all of them for an empty list."""
    every = columns(taxonomy)
    if not names:
        return every
    wanted = []
    for name in (name.strip() for name in names.split(",")):
        chosen = [column for column in every if name in (column.name, column.field)]
        if not chosen:
            column_names = ", ".join(column.name for column in every)
            raise CommandUseError(f"{quote(name)} cannot be coded", f"Fields: {column_names}.")
        wanted += chosen
    return tuple(dict.fromkeys(wanted))


def read_merges(texts: Sequence[str], wanted: Sequence[Column]) -> dict[str, tuple[str, ...]]:
    """Return the terms that are merged into one, by its name, from texts such as `learned=explicit,implicit`."""
    merges: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, listed = map(str.strip, text.partition("="))
        terms = [term.strip() for term in listed.split(",")]
        if not (name and len(terms) > 1 and all(terms)):
            raise CommandUseError(f"cannot read --merge {quote(text)}", "Write: --merge learned=explicit,implicit")
        if not any(_covers(column, terms) for column in wanted):
            raise CommandUseError(f"no field has all of the terms {', '.join(map(quote, terms))}", "See corpus terms.")
        if name in merges:
            raise CommandUseError(f"--merge gives {quote(name)} twice", "Name all of its terms at once.")
        for term in terms:
            for other, members in merges.items():
                if term in members:
                    message = f"--merge takes {quote(term)} both as {quote(other)} and as {quote(name)}"
                    raise CommandUseError(message, "A term can be a part of one name.")
        merges[name] = tuple(terms)
    return merges


def merged(wanted: Sequence[Column], merges: Mapping[str, Sequence[str]]) -> tuple[Column, ...]:
    """Return the columns that also allow the name of each merge whose terms they allow."""
    names = {column.name: [name for name, terms in merges.items() if _covers(column, terms)] for column in wanted}
    return tuple(column._replace(allowed=(*column.allowed, *names[column.name])) for column in wanted)


def _covers(column: Column, terms: Sequence[str]) -> bool:
    return set(terms) <= set(column.allowed)


def coarser(sheet: Sheet, wanted: Sequence[Column], merges: Mapping[str, Sequence[str]]) -> Sheet:
    """Return the sheet with the terms of each merge replaced by its name, in the columns that allow them all."""
    renamed: dict[tuple[str, str], str] = {}
    for column, (name, terms) in product(wanted, merges.items()):
        if _covers(column, terms):
            renamed |= {(column.name, term): name for term in terms}
    codes: dict[str, dict[str, str]] = {}
    for key, row in sheet.codes.items():
        codes[key] = {heading: renamed.get((heading, code), code) for heading, code in row.items()}
    return sheet._replace(codes=codes)


def as_coded(papers: Iterable[Paper], wanted: Sequence[Column], name: str = "corpus") -> Sheet:
    """Return the tags of papers as the sheet of a reader."""
    codes: dict[str, dict[str, str]] = {}
    for paper in papers:
        codes_of_paper = codes[paper.key] = {}
        for column in wanted:
            tag = paper.tags.get(column.field)
            if isinstance(tag, Mapping):
                codes_of_paper[column.name] = tag.get(column.name, NOT_ARISING)
            elif tag is not None:
                codes_of_paper[column.name] = tag if isinstance(tag, str) else _joined(tag, column)
    return Sheet(name, codes)


def _joined(terms: Iterable[str], column: Column) -> str:
    """Return several terms as one code, in the vocabulary's order."""
    return _JOIN.join(sorted(set(terms), key=column.allowed.index))


def blank(papers: Iterable[Paper], wanted: Sequence[Column]) -> str:
    """Return a sheet to be filled in, as CSV, without the corpus's tags."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow((*GIVEN, *(column.name for column in wanted), NOTES))
    for paper in papers:
        out.writerow((paper.key, paper.title, " ; ".join(paper.urls), *("" for _ in wanted), ""))
    return text.getvalue()


def decode(
    text: str, path: str, wanted: Sequence[Column], keys: Iterable[str], also: Sequence[str] = ()
) -> tuple[Sheet, list[Finding]]:
    """Read a filled-in sheet, without cells with wrong codes and the columns `also`, and return its findings, too."""
    reader = _SheetReader(path, wanted, frozenset(keys), also)
    reader.read(text)
    return Sheet(path, reader.codes, reader.empty, reader.notes, tuple(reader.remarks)), reader.findings


class _SheetReader:
    def __init__(self, path: str, wanted: Sequence[Column], keys: frozenset[str], also: Sequence[str]) -> None:
        self.codes: dict[str, dict[str, str]] = {}
        self.empty: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.notes: dict[str, str] = {}
        self.remarks: list[str] = []
        self.findings: list[Finding] = []
        self._path = path
        self._columns = {column.published: column for column in wanted if column.published}
        self._columns |= {column.name: column for column in wanted}
        self._keys = keys
        self._also = also

    def read(self, text: str) -> None:
        text = text.removeprefix("\ufeff")
        while text.startswith("#"):
            remark, _, text = text.partition("\n")
            self.remarks.append(remark.removeprefix("#").strip())
        skipped = len(self.remarks)
        heading = text.partition("\n")[0]
        separator = max(",;\t", key=heading.count)  # which differs by the language of a spreadsheet
        rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
        line = 1 + skipped
        try:
            header = [name.strip().removeprefix("\ufeff") for name in next(rows, [])]
            if not self._is_header(header):
                return
            line = skipped + rows.line_num + 1
            for row in rows:
                if any(cell.strip() for cell in row):
                    self._read_row(header, row, line)
                line = skipped + rows.line_num + 1
        except csv.Error as error:
            self._refuse("K101", line, f"not readable as CSV: {error}")

    def _is_header(self, header: list[str]) -> bool:
        if "key" not in header:
            shown = ", ".join(quote(name) for name in header[:5])
            message = f"not a coding sheet: no column 'key', only {shown}" if shown else "not a coding sheet: empty"
            command = "corpus screen --sheet FILE" if self._also else "corpus audit sample"
            self._refuse("K101", 1, f"{message}; begin one with {command}")
            return False
        known = (*GIVEN, *self._columns, *self._also, NOTES)
        for index, name in enumerate(header):
            column = self._columns.get(name)
            if name in header[:index] or (column and column in map(self._columns.get, header[:index])):
                self._refuse("K101", 1, f"column {quote(name)} is there twice")
                return False
            if name not in known:
                self._refuse("K102", 1, f"unknown column {quote(name)}, which is left out{suggestion(name, known)}")
        return True

    def _read_row(self, header: list[str], cells: list[str], line: int) -> None:
        row = dict(zip(header, cells, strict=False))
        key = row.get("key", "").strip()
        if len(cells) != len(header):
            self._refuse("K101", line, f"{len(cells)} cells, but the heading has {len(header)}", key)
            return
        if key not in self._keys:
            near = near_suggestion(key, sorted(self._keys))
            self._refuse("K103", line, f"no record {quote(key)} in the corpus{near}", key)
            return
        if key in self.codes:
            self._refuse("K104", line, f"{quote(key)} is there twice; keep one row", key)
            return
        codes = self.codes[key] = {}
        empty = []
        for name in header:
            if name not in self._columns:
                continue
            column = self._columns[name]
            parts = row[name].split(_JOIN) if column.is_many else (row[name],)
            entered = [part.strip() for part in parts if part.strip()]
            terms = column.terms(name)
            wrong = next((part for part in entered if part not in terms), "")
            if wrong:
                hint = suggestion(wrong, list(terms) if name == column.published else column.allowed)
                self._refuse("K105", line, f"unknown {name} {quote(wrong)}{hint}", key)
            elif entered:
                codes[column.name] = _joined(map(terms.__getitem__, entered), column)
            else:
                empty.append(column.name)
        if empty:
            self.empty[key] = line, tuple(empty)
        if note := " ".join(row.get(NOTES, "").split()):
            self.notes[key] = note

    def _refuse(self, code: str, line: int, message: str, record: str = "") -> None:
        self.findings.append(Finding(code, message, Location(self._path, line, 1), record))


def name_readers(paths: Sequence[str]) -> dict[str, str]:
    """Return the name of each sheet's reader: the name of the file, or its path where two files have one name."""
    stems = {path: os.path.splitext(os.path.basename(path))[0] for path in paths}
    return {path: stem if list(stems.values()).count(stem) == 1 else path for path, stem in stems.items()}


def missing_cells(sheets: Sequence[Sheet]) -> list[Finding]:
    """Return findings of the cells that are empty in a sheet and coded in another one; of one sheet, all empty ones."""
    findings = []
    for sheet in sheets:
        others = [other.codes for other in sheets if other is not sheet]
        for key, (line, names) in sheet.empty.items():
            missing = [name for name in names if not others or any(name in codes.get(key, {}) for codes in others)]
            if missing:
                findings.append(Finding("K106", f"not coded: {', '.join(missing)}", Location(sheet.name, line, 1), key))
    return findings


def missing_rows(sheets: Sequence[Sheet]) -> list[Finding]:
    """Return findings of the papers that are in one sheet and not in another, so that they cannot be compared."""
    all_keys = dict.fromkeys(key for sheet in sheets for key in sheet.codes)
    absent = ((sheet.name, ", ".join(key for key in all_keys if key not in sheet.codes)) for sheet in sheets)
    return [Finding("K107", f"not in this sheet: {keys}", Location(name, 1, 1)) for name, keys in absent if keys]


def sample(
    papers: Sequence[Paper], size: int, *, stratify: Attribute | None, always: Sequence[Paper] = (), seed: int = 0
) -> tuple[Paper, ...]:
    """Draw papers, and return them in the order of the corpus.

    The draw is stratified by the first value of an attribute, in proportion. The papers in `always` are drawn in any
    case and count as part of `size`, which they can exceed.
    """
    from hashlib import sha256  # for this alone

    chosen = {paper.key for paper in always}
    strata: dict[str, list[Paper]] = {}
    for paper in papers:
        values = stratify.values(paper) if stratify else ()
        strata.setdefault(values[0] if values else ABSENT, []).append(paper)
    quotas = _quotas({value: len(members) for value, members in strata.items()}, max(min(size, len(papers)), 0))
    for value, members in strata.items():
        ranks = {paper.key: sha256(f"{seed}:{paper.key}".encode()).digest() for paper in members}
        drawn = sorted(members, key=lambda paper: (paper.key not in chosen, ranks[paper.key]))
        chosen.update(paper.key for paper in drawn[: quotas[value]])
    return tuple(paper for paper in papers if paper.key in chosen)


def sparse_papers(
    papers: Sequence[Paper], attributes: Attributes, axes: Sequence[str], limit: int
) -> tuple[Paper, ...]:
    """Return the papers that have a value of an axis which at most `limit` papers have."""
    keys: set[str] = set()
    for attribute in map(attributes.__getitem__, axes):
        counts = count(papers, attribute).counts
        keys.update(paper.key for paper in papers for value in attribute.values(paper) if counts[value] <= limit)
    return tuple(paper for paper in papers if paper.key in keys)


def _quotas(sizes: dict[str, int], size: int) -> dict[str, int]:
    """Return the number to draw from each stratum: in proportion, by largest remainders, at least 1 if possible."""
    total = sum(sizes.values())
    floor = int(size >= len(sizes))
    rest = size - floor * len(sizes)
    spread = total - floor * len(sizes)
    exact = {value: rest * (count - floor) / spread if spread else 0.0 for value, count in sizes.items()}
    quotas = {value: floor + int(share) for value, share in exact.items()}
    by_remainder = sorted(exact, key=lambda value: (int(exact[value]) - exact[value], -sizes[value], value))
    for value in by_remainder[: size - sum(quotas.values())]:
        quotas[value] += 1
    return quotas
