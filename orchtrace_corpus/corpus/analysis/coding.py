"""Coding sheets: tables in which a second reader codes papers without seeing the corpus's tags.

A sheet is a CSV file with a row for each paper. Its columns are `key`, `title`, `links`, one for each facet, and
`notes`; a facet of kind `levels` has a column for each of its terms, whose codes are the levels. An empty cell is not
coded yet; the code `none` says that the paper does not have the term. If the taxonomy declares the survey's published
table, the headings and the words of that table are accepted, too.
"""

import csv
import io
import os
from collections import Counter
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
"""The columns that a blank sheet fills in."""

NOTES = "notes"

_CODE_SEPARATOR = ";"


class Column(NamedTuple):
    """A column of a coding sheet: a facet, or a term of a facet of kind `levels`.

    Attributes:
        name: The heading: the facet's field, or the term.
        field: The facet's field.
        allowed: The codes. If `is_many`, a cell can have several of them, joined by `;`.
        published: The heading in the published table; empty if that table has no such column.
        words: Pairs of a word of the published table and its term.
    """

    name: str
    field: str
    allowed: tuple[str, ...]
    is_many: bool = False
    published: str = ""
    words: tuple[tuple[str, str], ...] = ()

    def terms(self, heading: str) -> Mapping[str, str]:
        """Return the terms by the words that a cell can have: the terms themselves, and the published table's words.

        A word that is in both means what it means in the table that has this heading.
        """
        own_terms = {term: term for term in self.allowed}
        published_terms = dict(self.words)
        if heading == self.published != self.name:
            return own_terms | published_terms
        return published_terms | own_terms


class Sheet(NamedTuple):
    """The codes and notes of one reader.

    Attributes:
        name: The reader's name: the sheet's path, or `corpus` for the corpus itself.
        codes: The codes by paper key and column name, without empty cells.
        empty: The rows with empty cells, by paper key: the line of the row, and the names of the empty columns.
        notes: The notes by paper key.
        remarks: The lines that begin with `#`, above the heading, such as how the papers were chosen.
    """

    name: str
    codes: Mapping[str, Mapping[str, str]]
    empty: Mapping[str, tuple[int, tuple[str, ...]]] = {}
    notes: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()


def columns(taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return all columns of papers, in the taxonomy's order."""
    all_columns: list[Column] = []
    published_columns = {column.field: column for column in taxonomy.published}
    for facet in taxonomy.papers:
        if facet.kind is Kind.LEVELS:
            levels = (*(level.id for level in facet.levels), NOT_ARISING)
            all_columns += [Column(term.id, facet.field, levels) for term in facet.terms]
            continue
        column = Column(facet.field, facet.field, facet.values, is_many=facet.kind is Kind.MANY)
        published = published_columns.get(facet.field)
        if published is not None:
            words = tuple((published.spelled(term), term) for term in facet.values)
            column = column._replace(published=published.column, words=words)
        all_columns.append(column)
    return tuple(all_columns)


def select_columns(taxonomy: Taxonomy, names: str) -> tuple[Column, ...]:
    """Return the columns of a list of headings and facets, separated by commas; all columns for an empty list."""
    all_columns = columns(taxonomy)
    if not names:
        return all_columns
    selected = []
    for name in map(str.strip, names.split(",")):
        chosen = [column for column in all_columns if name in (column.name, column.field)]
        if not chosen:
            column_names = ", ".join(column.name for column in all_columns)
            raise CommandUseError(f"{quote(name)} cannot be coded", f"Fields: {column_names}.")
        selected += chosen
    return tuple(dict.fromkeys(selected))


def read_merges(texts: Sequence[str], wanted: Sequence[Column]) -> dict[str, tuple[str, ...]]:
    """Return the terms that are counted as one, by the name of the merged term: `learned=explicit,implicit`."""
    merges: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, term_list = map(str.strip, text.partition("="))
        terms = [term.strip() for term in term_list.split(",")]
        if not (name and len(terms) > 1 and all(terms)):
            raise CommandUseError(f"cannot read --merge {quote(text)}", "Write: --merge learned=explicit,implicit")
        if not any(_allows_all(column, terms) for column in wanted):
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


def allow_merged_terms(wanted: Sequence[Column], merges: Mapping[str, Sequence[str]]) -> tuple[Column, ...]:
    """Return the columns; one that allows all terms of a merge allows the name of the merged term, too."""
    extended = []
    for column in wanted:
        names = [name for name, terms in merges.items() if _allows_all(column, terms)]
        extended.append(column._replace(allowed=(*column.allowed, *names)))
    return tuple(extended)


def _allows_all(column: Column, terms: Sequence[str]) -> bool:
    return set(terms) <= set(column.allowed)


def merge_terms(sheet: Sheet, wanted: Sequence[Column], merges: Mapping[str, Sequence[str]]) -> Sheet:
    """Return the sheet with merged terms in place of their parts, in the columns that allow all of the parts."""
    merged_names: dict[tuple[str, str], str] = {}
    for column, (name, terms) in product(wanted, merges.items()):
        if _allows_all(column, terms):
            for term in terms:
                merged_names[column.name, term] = name
    codes: dict[str, dict[str, str]] = {}
    for key, row in sheet.codes.items():
        codes[key] = {heading: merged_names.get((heading, code), code) for heading, code in row.items()}
    return sheet._replace(codes=codes)


def tags_as_sheet(papers: Iterable[Paper], wanted: Sequence[Column], name: str = "corpus") -> Sheet:
    """Return the tags of papers in the form of a reader's sheet."""
    codes: dict[str, dict[str, str]] = {}
    for paper in papers:
        codes_of_paper = codes[paper.key] = {}
        for column in wanted:
            tag = paper.tags.get(column.field)
            if isinstance(tag, Mapping):  # the levels of a facet's terms
                codes_of_paper[column.name] = tag.get(column.name, NOT_ARISING)
            elif isinstance(tag, str):
                codes_of_paper[column.name] = tag
            elif tag is not None:
                codes_of_paper[column.name] = _join_codes(tag, column)
    return Sheet(name, codes)


def _join_codes(terms: Iterable[str], column: Column) -> str:
    """Return several terms as one code, in the vocabulary's order."""
    return _CODE_SEPARATOR.join(sorted(set(terms), key=column.allowed.index))


def blank_sheet(papers: Iterable[Paper], wanted: Sequence[Column]) -> str:
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
    """Read a filled-in sheet as CSV, and return it with its findings.

    Cells with wrong codes are left out. Rows have one of the `keys`; columns with a heading in `also` are not read.
    """
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
        skipped = len(self.remarks)  # lines above the heading
        heading = text.partition("\n")[0]
        separator = max(",;\t", key=heading.count)  # spreadsheets in other languages do not write commas
        rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
        line = 1 + skipped  # of the row that is read next; a row with line breaks in its cells has several
        try:
            header = [name.strip().removeprefix("\ufeff") for name in next(rows, [])]
            if not self._check_header(header):
                return
            line = skipped + rows.line_num + 1
            for row in rows:
                if any(cell.strip() for cell in row):
                    self._read_row(header, row, line)
                line = skipped + rows.line_num + 1
        except csv.Error as error:
            self._refuse("K101", line, f"not readable as CSV: {error}")

    def _check_header(self, header: list[str]) -> bool:
        """Return False if the sheet cannot be read: without keys, or with a column twice. Both are errors."""
        if "key" not in header:
            first_names = ", ".join(quote(name) for name in header[:5])
            message = "not a coding sheet: empty"
            if first_names:
                message = f"not a coding sheet: no column 'key', only {first_names}"
            command = "corpus audit sample"
            if self._also:  # only sheets for screening have further columns
                command = "corpus screen --sheet FILE"
            self._refuse("K101", 1, f"{message}; begin one with {command}")
            return False
        allowed = (*GIVEN, *self._columns, *self._also, NOTES)
        columns_before: list[Column] = []
        for index, name in enumerate(header):
            column = self._columns.get(name)
            # A column can be there by its own heading and by that of the published table.
            if name in header[:index] or column in columns_before:
                self._refuse("K101", 1, f"column {quote(name)} is there twice")
                return False
            if column is not None:
                columns_before.append(column)
            if name not in allowed:
                self._refuse("K102", 1, f"unknown column {quote(name)}, which is left out{suggestion(name, allowed)}")
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
            parts = row[name].split(_CODE_SEPARATOR) if column.is_many else [row[name]]
            words = [part.strip() for part in parts if part.strip()]
            terms = column.terms(name)
            unknown = [word for word in words if word not in terms]
            if unknown:
                choices = list(terms) if name == column.published else column.allowed
                hint = suggestion(unknown[0], choices)
                self._refuse("K105", line, f"unknown {name} {quote(unknown[0])}{hint}", key)
            elif words:
                codes[column.name] = _join_codes([terms[word] for word in words], column)
            else:
                empty.append(column.name)
        if empty:
            self.empty[key] = line, tuple(empty)
        note = " ".join(row.get(NOTES, "").split())
        if note:
            self.notes[key] = note

    def _refuse(self, code: str, line: int, message: str, record: str = "") -> None:
        self.findings.append(Finding(code, message, Location(self._path, line, 1), record))


def name_readers(paths: Sequence[str]) -> dict[str, str]:
    """Return a reader's name for each path of a sheet: the file name, or the path if two files have the same name."""
    stems = {path: os.path.splitext(os.path.basename(path))[0] for path in paths}
    name_counts = Counter(stems.values())
    return {path: stem if name_counts[stem] == 1 else path for path, stem in stems.items()}


def missing_cells(sheets: Sequence[Sheet]) -> list[Finding]:
    """Return findings of cells that are empty in one sheet and coded in another; all empty cells of a single sheet."""
    findings = []
    for sheet in sheets:
        others = [other for other in sheets if other is not sheet]
        for key, (line, names) in sheet.empty.items():
            coded_elsewhere = {name for other in others for name in other.codes.get(key, {})}
            missing = [name for name in names if name in coded_elsewhere or not others]
            if missing:
                findings.append(Finding("K106", f"not coded: {', '.join(missing)}", Location(sheet.name, line, 1), key))
    return findings


def missing_rows(sheets: Sequence[Sheet]) -> list[Finding]:
    """Return a finding for each sheet that does not have all papers of the others, which cannot be compared."""
    all_keys = dict.fromkeys(key for sheet in sheets for key in sheet.codes)
    findings = []
    for sheet in sheets:
        missing = ", ".join(key for key in all_keys if key not in sheet.codes)
        if missing:
            findings.append(Finding("K107", f"not in this sheet: {missing}", Location(sheet.name, 1, 1)))
    return findings


def sample(
    papers: Sequence[Paper], size: int, *, stratify: Attribute | None, always: Sequence[Paper] = (), seed: int = 0
) -> tuple[Paper, ...]:
    """Draw papers, and return them in the order of the corpus.

    The draw is stratified by the first value of an attribute, in proportion. The papers in `always` are drawn in any
    case. They count as part of `size`, and can be more than that.
    """
    from hashlib import sha256  # only needed here

    chosen = {paper.key for paper in always}
    strata: dict[str, list[Paper]] = {}
    for paper in papers:
        values = stratify.values(paper) if stratify else ()
        strata.setdefault(values[0] if values else ABSENT, []).append(paper)
    sizes = {value: len(stratum) for value, stratum in strata.items()}
    quotas = _quotas(sizes, max(min(size, len(papers)), 0))
    for value, stratum in strata.items():
        ranks = {paper.key: sha256(f"{seed}:{paper.key}".encode()).digest() for paper in stratum}
        in_order = sorted(stratum, key=lambda paper: (paper.key not in chosen, ranks[paper.key]))
        chosen.update(paper.key for paper in in_order[: quotas[value]])
    return tuple(paper for paper in papers if paper.key in chosen)


def sparse_papers(
    papers: Sequence[Paper], attributes: Attributes, axes: Sequence[str], limit: int
) -> tuple[Paper, ...]:
    """Return the papers with a rare value: at most `limit` papers have this value of one of the axes."""
    keys: set[str] = set()
    for axis in axes:
        attribute = attributes[axis]
        counts = count(papers, attribute).counts
        for paper in papers:
            if any(counts[value] <= limit for value in attribute.values(paper)):
                keys.add(paper.key)
    return tuple(paper for paper in papers if paper.key in keys)


def _quotas(sizes: dict[str, int], size: int) -> dict[str, int]:
    """Return the number to draw from each stratum: in proportion, by largest remainders, at least 1 if possible."""
    minimum = 1 if size >= len(sizes) else 0
    drawn_in_proportion = size - minimum * len(sizes)
    remaining = sum(sizes.values()) - minimum * len(sizes)
    exact = dict.fromkeys(sizes, 0.0)  # the shares in proportion, before they are rounded
    if remaining:
        exact = {value: drawn_in_proportion * (count - minimum) / remaining for value, count in sizes.items()}
    quotas = {value: minimum + int(share) for value, share in exact.items()}

    def order(value: str) -> tuple[float, int, str]:
        """Sort by falling remainder, then by falling size."""
        return int(exact[value]) - exact[value], -sizes[value], value

    for value in sorted(exact, key=order)[: size - sum(quotas.values())]:
        quotas[value] += 1
    return quotas
