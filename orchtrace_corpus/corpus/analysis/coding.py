"""Coding sheets: the table in which a second reader codes papers without seeing the corpus's tags.

A sheet is a CSV file with the columns `key`, `title`, `links`, one column for each thing to be coded,
and `notes`. A facet of one or many terms is one column; a facet of kind `levels` is a column for
each of its terms. An empty cell is not coded yet; a term that does not arise is coded as `none`. The columns and words
of the published table, where the taxonomy declares it, are read as well as the corpus's own.
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
    """One thing to be coded.

    Attributes:
        name: The column's heading: the facet's field, or a term of a facet of kind `levels`.
        field: The facet's field.
        allowed: What a cell may hold; several of them, joined by `;`, where `is_many`.
        published: The column's heading in the published table; empty where that has none of it.
        words: The published table's word for each term, where it is another, as pairs of word and term.
    """

    name: str
    field: str
    allowed: tuple[str, ...]
    is_many: bool = False
    published: str = ""
    words: tuple[tuple[str, str], ...] = ()

    def terms(self, heading: str) -> Mapping[str, str]:
        """The term for each word that may stand below a heading; a word of both vocabularies is the heading's."""
        own, others = {term: term for term in self.allowed}, dict(self.words)
        return own | others if heading == self.published != self.name else others | own


class Sheet(NamedTuple):
    """The codes of one reader.

    Attributes:
        name: The reader's name: the sheet's path, or `corpus` for the corpus itself.
        codes: For each key the code in each column; what is not coded is left out.
        empty: For each key with empty cells the line of its row, and their columns.
        notes: For each key with a note the note.
        remarks: The lines that begin with `#` before its heading: how its rows were chosen, and whether it is blind.
    """

    name: str
    codes: Mapping[str, Mapping[str, str]]
    empty: Mapping[str, tuple[int, tuple[str, ...]]] = {}
    notes: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()


def columns(taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Everything that can be coded of a paper, in the taxonomy's order."""
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
    """The columns and facets of those names, which commas separate; everything that can be coded without a name.

    Raises:
        CommandUseError: Nothing of a name can be coded.
    """
    every = columns(taxonomy)
    if not names:
        return every
    wanted = []
    for name in (name.strip() for name in names.split(",")):
        chosen = [column for column in every if name in (column.name, column.field)]
        if not chosen:
            known = ", ".join(column.name for column in every)
            raise CommandUseError(f"{quote(name)} cannot be coded", f"Fields: {known}.")
        wanted += chosen
    return tuple(dict.fromkeys(wanted))


def read_merges(texts: Sequence[str], wanted: Sequence[Column]) -> dict[str, tuple[str, ...]]:
    """Terms that are taken as one, by the name for them: `learned=explicit,implicit`.

    Raises:
        CommandUseError: A text has another form, or a term is in two of them or in no field with the others.
    """
    merges: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, terms = text.partition("=")
        members = tuple(term.strip() for term in terms.split(","))
        if not (name.strip() and equals and len(members) > 1 and all(members)):
            raise CommandUseError(f"cannot read --merge {quote(text)}", "Write: --merge learned=explicit,implicit")
        if not any(_covers(column, members) for column in wanted):
            shown = ", ".join(map(quote, members))
            raise CommandUseError(f"no field has all of the terms {shown}", "See corpus terms.")
        name = name.strip()
        taken = {term: other for other, terms_of in merges.items() for term in terms_of}
        twice = [term for term in members if term in taken]
        if name in merges:
            raise CommandUseError(f"--merge gives {quote(name)} twice", "Name all of its terms at once.")
        if twice:
            message = f"--merge takes {quote(twice[0])} both as {quote(taken[twice[0]])} and as {quote(name)}"
            raise CommandUseError(message, "A term can be a part of one name.")
        merges[name] = members
    return merges


def merged(wanted: Sequence[Column], merges: Mapping[str, Sequence[str]]) -> tuple[Column, ...]:
    """The columns on a coarser scale: where all of a merge's terms are allowed, its name is, too."""
    names = {column.name: [name for name, terms in merges.items() if _covers(column, terms)] for column in wanted}
    return tuple(column._replace(allowed=(*column.allowed, *names[column.name])) for column in wanted)


def _covers(column: Column, terms: Sequence[str]) -> bool:
    return set(terms) <= set(column.allowed)


def coarser(sheet: Sheet, wanted: Sequence[Column], merges: Mapping[str, Sequence[str]]) -> Sheet:
    """The sheet with the terms of each merge replaced by its name, in the columns that allow them all."""
    renamed: dict[tuple[str, str], str] = {}
    for column, (name, terms) in product(wanted, merges.items()):
        if _covers(column, terms):
            renamed |= {(column.name, term): name for term in terms}
    codes: dict[str, dict[str, str]] = {}
    for key, row in sheet.codes.items():
        codes[key] = {heading: renamed.get((heading, code), code) for heading, code in row.items()}
    return sheet._replace(codes=codes)


def as_coded(papers: Iterable[Paper], wanted: Sequence[Column], name: str = "corpus") -> Sheet:
    """The corpus's own tags, as if it were a reader."""
    codes: dict[str, dict[str, str]] = {}
    for paper in papers:
        own = codes[paper.key] = {}
        for column in wanted:
            tag = paper.tags.get(column.field)
            if isinstance(tag, Mapping):
                own[column.name] = tag.get(column.name, NOT_ARISING)
            elif tag is not None:
                own[column.name] = tag if isinstance(tag, str) else _joined(tag, column)
    return Sheet(name, codes)


def _joined(terms: Iterable[str], column: Column) -> str:
    """Several terms as one code, in the vocabulary's order, so that order makes no difference."""
    return _JOIN.join(sorted(set(terms), key=column.allowed.index))


def blank(papers: Iterable[Paper], wanted: Sequence[Column]) -> str:
    """A sheet to be filled in, as CSV: who and where, nothing of what the corpus thinks."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow((*GIVEN, *(column.name for column in wanted), NOTES))
    for paper in papers:
        out.writerow((paper.key, paper.title, " ; ".join(paper.urls), *("" for _ in wanted), ""))
    return text.getvalue()


def decode(
    text: str, path: str, wanted: Sequence[Column], keys: Iterable[str], also: Sequence[str] = ()
) -> tuple[Sheet, list[Finding]]:
    """Read a filled-in sheet, with everything that is wrong with it.

    A cell with a wrong code counts as not coded. Columns may stand in any order and be left out.

    Args:
        text: The sheet, as CSV.
        path: The path to show; it names the reader, too.
        wanted: What a sheet may code.
        keys: The keys of the corpus.
        also: Columns that a sheet may have beside these, as those of screening do.
    """
    reading = _Reading(path, wanted, frozenset(keys), also)
    reading.read(text)
    return Sheet(path, reading.codes, reading.empty, reading.notes, tuple(reading.remarks)), reading.findings


class _Reading:
    """One sheet while it is read."""

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
        separator = max(",;\t", key=heading.count)  # spreadsheets write what their language takes for a comma
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
            given = ", ".join(quote(name) for name in header[:5])
            message = f"not a coding sheet: no column 'key', only {given}" if given else "not a coding sheet: empty"
            command = "corpus screen --sheet FILE" if self._also else "corpus audit sample"
            self._refuse("K101", 1, f"{message}; begin one with {command}")
            return False
        known = (*GIVEN, *self._columns, *self._also, NOTES)
        for index, name in enumerate(header):
            column = self._columns.get(name)
            if name in header[:index] or column in map(self._columns.get, header[:index] if column else ()):
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
        for name, column in ((name, self._columns[name]) for name in header if name in self._columns):
            parts = row[name].split(_JOIN) if column.is_many else (row[name],)
            given = [part.strip() for part in parts if part.strip()]
            terms = column.terms(name)
            wrong = next((part for part in given if part not in terms), "")
            if wrong:
                hint = suggestion(wrong, list(terms) if name == column.published else column.allowed)
                self._refuse("K105", line, f"unknown {name} {quote(wrong)}{hint}", key)
            elif given:
                codes[column.name] = _joined(map(terms.__getitem__, given), column)
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
    """Cells that are empty in a sheet and coded in another one; of one sheet, all that are empty."""
    found = []
    for sheet in sheets:
        others = [other.codes for other in sheets if other is not sheet]
        for key, (line, names) in sheet.empty.items():
            missing = [name for name in names if not others or any(name in codes.get(key, {}) for codes in others)]
            if missing:
                found.append(Finding("K106", f"not coded: {', '.join(missing)}", Location(sheet.name, line, 1), key))
    return found


def missing_rows(sheets: Sequence[Sheet]) -> list[Finding]:
    """Papers that one sheet codes and another does not: nothing can be compared there."""
    everything = dict.fromkeys(key for sheet in sheets for key in sheet.codes)
    absent = ((sheet.name, ", ".join(key for key in everything if key not in sheet.codes)) for sheet in sheets)
    return [Finding("K107", f"not in this sheet: {keys}", Location(name, 1, 1)) for name, keys in absent if keys]


def sample(
    papers: Sequence[Paper], size: int, *, stratify: Attribute | None, always: Sequence[Paper] = (), seed: int = 0
) -> tuple[Paper, ...]:
    """Draw papers, in the order of the corpus.

    Args:
        papers: The papers to draw from.
        size: How many to draw; all of them where there are no more.
        stratify: An attribute by whose values the draw is divided in proportion (largest remainders;
            each value has one paper at least, as far as `size` allows). The first value of a paper counts.
        always: Papers that are drawn in any case, and count as part of `size`; it grows if need be.
        seed: Another seed gives another draw.
    """
    from hashlib import sha256  # for this alone

    chosen = {paper.key for paper in always}
    strata: dict[str, list[Paper]] = {}
    for paper in papers:
        value = next(iter(stratify.values(paper)), ABSENT) if stratify else ""
        strata.setdefault(value, []).append(paper)
    quotas = _quotas({value: len(members) for value, members in strata.items()}, max(min(size, len(papers)), 0))
    for value, members in strata.items():
        ranks = {paper.key: sha256(f"{seed}:{paper.key}".encode()).digest() for paper in members}
        drawn = sorted(members, key=lambda paper: (paper.key not in chosen, ranks[paper.key]))
        chosen.update(paper.key for paper in drawn[: quotas[value]])
    return tuple(paper for paper in papers if paper.key in chosen)


def sparse_papers(
    papers: Sequence[Paper], attributes: Attributes, axes: Sequence[str], limit: int
) -> tuple[Paper, ...]:
    """The papers that have a value of an axis which no more than `limit` papers have."""
    found: set[str] = set()
    for name in axes:
        attribute = attributes[name]
        numbers = count(papers, attribute).counts
        found.update(paper.key for paper in papers for value in attribute.values(paper) if numbers[value] <= limit)
    return tuple(paper for paper in papers if paper.key in found)


def _quotas(sizes: dict[str, int], size: int) -> dict[str, int]:
    """Return the number to draw from each stratum: in proportion, by largest remainders, none empty if it can be."""
    total = sum(sizes.values())
    floor = int(size >= len(sizes))
    rest = size - floor * len(sizes)
    spread = total - floor * len(sizes)
    exact = {value: rest * (number - floor) / spread if spread else 0.0 for value, number in sizes.items()}
    quotas = {value: floor + int(share) for value, share in exact.items()}
    by_remainder = sorted(exact, key=lambda value: (int(exact[value]) - exact[value], -sizes[value], value))
    for value in by_remainder[: size - sum(quotas.values())]:
        quotas[value] += 1
    return quotas
