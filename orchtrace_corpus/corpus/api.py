"""The Python interface: a corpus that can be filtered, counted and converted to pandas.

import orchtrace_corpus as oc
corpus = oc.load()
corpus.where("credit_unit=message", "year>=2025").papers
corpus.counts("reward_family")
corpus.cross("reward_family", "credit_unit")
corpus.gaps()
corpus.claims()
corpus.to_pandas()

Notebooks show a corpus, a cross-tabulation, gaps and claims as tables; docs/notebook.ipynb is an example.
"""

from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, has_errors, quote, suggestion
from orchtrace_corpus.base.html import notebook_table
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.analysis import statistics
from orchtrace_corpus.corpus.analysis.attributes import (
    Attribute,
    ValueKind,
    exclusion_attributes,
    find,
    paper_attributes,
)
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.search import find_records
from orchtrace_corpus.corpus.analysis.statistics import Coverage, Crosstab, Gap
from orchtrace_corpus.corpus.model import records, store
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, ReadingName, Record
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy
from orchtrace_corpus.corpus.rules.tags import cannot_arise

if TYPE_CHECKING:
    import pandas

    from orchtrace_corpus.corpus.analysis.claims import Verdict
    from orchtrace_corpus.corpus.model.candidates import Candidate


_NOTEBOOK_ROWS = 10
"""The number of papers or gaps that a notebook shows."""


class CrossTable(dict[Any, dict[Any, int]]):
    """The number of papers with each pair of values of two fields, by row value and column value; years are integers.

    Attributes:
        crosstab: The cross-tabulation with its fields and totals.
    """

    def __init__(self, crosstab: Crosstab) -> None:
        self.crosstab = crosstab
        super().__init__()
        for row in crosstab.row_values:
            counts = {_typed(name, crosstab.columns): crosstab.count_in(row, name) for name in crosstab.column_values}
            self[_typed(row, crosstab.rows)] = counts

    def _repr_html_(self) -> str:
        crosstab = self.crosstab
        table: list[tuple[Any, ...]] = []
        heats = []
        for row, cells in self.items():
            table.append((row or "(absent)", *cells.values(), sum(cells.values())))
            heats_of_row = []
            for column, number in cells.items():
                is_cell = row not in statistics.MISSING and column not in statistics.MISSING
                heats_of_row.append(statistics.heat(number if is_cell else 0, crosstab.largest))
            heats.append(heats_of_row)
        totals = crosstab.column_totals
        table.append(("sum", *totals.values(), sum(totals.values())))
        heads = (crosstab.rows.name, *(column or "(absent)" for column in totals), "sum")
        return notebook_table(f"{crosstab.rows.label} by {crosstab.columns.label}", heads, table, heats)


class Gaps(tuple[Gap, ...]):  # noqa: SLOT001 - a tuple cannot have a slot that is not empty
    """The empty and sparse cells that can arise, the cell furthest below its expected count first.

    Attributes:
        coverage: The cross-tabulation, and the cells that cannot arise.
    """

    coverage: Coverage

    def __new__(cls, coverage: Coverage) -> "Gaps":  # noqa: D102 - a tuple is made before `__init__`
        gaps = super().__new__(cls, coverage.gaps)
        gaps.coverage = coverage
        return gaps

    def __repr__(self) -> str:
        crosstab = self.coverage.crosstab
        return f"<{len(self)} gaps of {crosstab.rows.name} by {crosstab.columns.name}>"

    def _repr_html_(self) -> str:
        crosstab = self.coverage.crosstab
        first = self[:_NOTEBOOK_ROWS]
        rows = [(gap.row, gap.column, gap.papers, round(gap.expected, 1), ", ".join(gap.nearest)) for gap in first]
        heads = (crosstab.rows.name, crosstab.columns.name, "papers", "expected", "nearest")
        more = f"{len(self) - _NOTEBOOK_ROWS} more" if len(self) > _NOTEBOOK_ROWS else ""
        return notebook_table("Gaps", heads, rows, note=more)


class Verdicts(tuple["Verdict", ...]):
    """The verdicts on the claims of a corpus, in the order of its file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} claims, {sum(verdict.holds for verdict in self)} hold>"

    def _repr_html_(self) -> str:
        rows = []
        for verdict in self:
            word = "holds" if verdict.holds else "fails"
            rows.append((verdict.claim.id, word, len(verdict.rows), len(verdict.contested), verdict.claim.claim))
        return notebook_table("Claims", ("claim", "verdict", "rows", "contested", "sentence"), rows)


class Corpus:
    """A corpus, or a selection of its papers. It never changes: `where` returns another corpus.

    Args:
        pool: The records and the vocabulary.
        files: The files from which the corpus was read, for its claims.
        reading: The value of disputed tags that the records have.
        is_whole: Whether it has all papers of its files.
    """

    def __init__(
        self,
        pool: Pool,
        files: "store.CorpusFiles | None" = None,
        reading: ReadingName = ReadingName.PUBLISHED,
        *,
        is_whole: bool = False,
    ) -> None:
        self._pool = pool
        self._files = files
        self._reading = reading
        self._is_whole = is_whole

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers, in file order."""
        return self._pool.papers

    @property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """The excluded records, in file order; `where` does not filter them."""
        return self._pool.exclusions

    @property
    def taxonomy(self) -> Taxonomy:
        """The vocabulary of the tags."""
        return self._pool.taxonomy

    def __len__(self) -> int:
        return len(self.papers)

    def __getitem__(self, key: str) -> Paper:
        for paper in self.papers:
            if key in (paper.key, paper.cite_key):
                return paper
        raise KeyError(key)

    def __repr__(self) -> str:
        return f"<Corpus of {self.taxonomy.noun.counted(len(self.papers))} and {len(self.exclusions)} exclusions>"

    def _repr_html_(self) -> str:
        axes = [facet.field for facet in self.taxonomy.axes if facet.kind is not Kind.LEVELS]
        rows = []
        for paper in self.papers[:_NOTEBOOK_ROWS]:
            tags = (paper.tags.get(axis, ()) for axis in axes)
            texts = (tag if isinstance(tag, str) else ", ".join(tag) for tag in tags)
            rows.append((paper.key, paper.year, paper.title, *texts))
        more = f"{len(self) - _NOTEBOOK_ROWS} more {self.taxonomy.noun.many}" if len(self) > _NOTEBOOK_ROWS else ""
        return notebook_table(repr(self)[1:-1], ("key", "year", "title", *axes), rows, note=more)

    def where(self, *filters: str) -> "Corpus":
        """Return the corpus with only the papers that pass every filter, such as `"stop=explicit,implicit"`.

        Raises:
            CommandUseError: A filter is malformed, or names an unknown field or term.
        """
        query = parse(filters, paper_attributes(self.taxonomy, contested=True))
        return Corpus(self._pool._replace(papers=query.select(self.papers)), self._files, self._reading)

    def find(self, name: str) -> tuple[Record, ...]:
        """Return the papers and exclusions with a key, an id, an identifier in any spelling, or a URL."""
        return find_records(self._pool, name)

    def counts(self, field: str, other: str = "") -> dict[Any, Any]:
        """Count the papers with each value of a field; the exclusions if only they have the field.

        Terms that no record has count 0. Records without a value count under the empty string. Years are integers.
        With two fields, return the result of `cross`.

        Raises:
            CommandUseError: There is no such field.
        """
        if other:
            return self.cross(field, other)
        attributes = paper_attributes(self.taxonomy, contested=True)
        attributes_of_exclusions = exclusion_attributes(self.taxonomy)
        if field in attributes_of_exclusions and field not in attributes:
            attribute = attributes_of_exclusions[field]
            counts = statistics.count(self.exclusions, attribute).counts
        else:
            attribute = find(field, attributes)
            counts = statistics.count(self.papers, attribute).counts
        return {_typed(value, attribute): number for value, number in counts.items()}

    def cross(self, rows: str, columns: str) -> CrossTable:
        """Count the papers with each pair of values of two fields, by row value and column value, zeros included.

        Args:
            rows: The field of the rows.
            columns: The field of the columns.

        Raises:
            CommandUseError: There is no such field.
        """
        attributes = paper_attributes(self.taxonomy, contested=True)
        axes = find(rows, attributes), find(columns, attributes)
        return CrossTable(statistics.cross(self.papers, *axes))

    def gaps(self, rows: str = "", columns: str = "", *, sparse_limit: int = 2) -> Gaps:
        """Return the empty and sparse cells that can arise, the cell furthest below its expected count first.

        Args:
            rows: The field of the rows; without both fields, the first pair that the taxonomy crosses is used.
            columns: The field of the columns.
            sparse_limit: The largest number of papers in a sparse cell.

        Raises:
            CommandUseError: A field is missing, unknown, or has no vocabulary.
        """
        axes = statistics.gap_axes(rows, columns, self.taxonomy)
        impossible = cannot_arise(self.taxonomy, *axes)
        coverage = statistics.coverage(self.papers, *axes, sparse_limit=sparse_limit, impossible=impossible)
        return Gaps(coverage._replace(reading=self._reading, noun=self.taxonomy.noun))

    def claims(self) -> Verdicts:
        """Evaluate the claims of the corpus for these papers; candidates count only if the corpus is whole.

        Raises:
            CommandUseError: The corpus was not read from a folder.
            InvalidCorpusError: Its claims, disputes or candidates have errors; the message lists them.
        """
        from orchtrace_corpus.corpus.analysis.claims import evaluate
        from orchtrace_corpus.corpus.model.candidates import select_proposed
        from orchtrace_corpus.corpus.model.disputes import disputes_as_read

        files = self._files
        if files is None:
            raise CommandUseError("this corpus was not read from a folder, so its claims are not known")
        findings = (*files.claims.findings, *files.disputes.findings, *files.candidates.findings)
        records.raise_findings("the claims have errors:", findings)
        proposed = None
        if self._is_whole and not files.candidates.is_missing:
            proposed = select_proposed(files.candidates.items)
        disputes = disputes_as_read(files.disputes.items, self._reading)
        return Verdicts(evaluate(files.claims.claims, self._pool, disputes, proposed))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the papers as a frame, indexed by key; see `orchtrace_corpus.corpus.formats.table.to_pandas`."""
        from orchtrace_corpus.corpus.formats.table import to_pandas

        return to_pandas(self.papers, self.taxonomy)

    def export(self, name: str, profile: str = "", *, exclusions: bool = False) -> str | bytes:
        """Return the papers in another format: text, or bytes for `parquet`.

        Args:
            name: `bibtex`, `csv`, `json`, `jsonl`, `ris`, `csl` or `parquet`.
            profile: A variant of the format, such as `published` for `csv`.
            exclusions: Whether to write the exclusions instead; only `csv` with the profile `published` can.

        Raises:
            CommandUseError: There is no such format or profile, or a library that it needs is not installed.
        """
        from orchtrace_corpus.corpus.formats import registry

        if exclusions:
            return registry.find(name).write_exclusions(self.exclusions, self.taxonomy, profile)
        papers = self.papers
        if profile == "published":
            papers = records.in_published_order(papers, self._pool.published)
        return registry.find(name).write(papers, self.taxonomy, profile)


def load(root: str = "", *, reading: str = "published") -> Corpus:
    """Read a corpus.

    Args:
        root: The folder that holds `data/`. By default it is the nearest one from the working folder upwards, or the
            corpus that came with the installation.
        reading: The value of disputed tags (`data/disputes.yaml`): `published`, or `sources` for the value on which
            readers of the sources agree.

    Raises:
        CommandUseError: There is no such reading.
        DataFileError: There is no corpus, or a data file cannot be read.
        InvalidCorpusError: The data has errors; the message lists them. `validate` returns them as values.
    """
    files = store.CorpusFiles(root or store.find_root().path)
    loaded = files.loaded
    findings = rules.check(loaded)
    if loaded.pool is None or has_errors(findings):
        raise records.invalid("the data has errors:", findings)
    if reading not in list(ReadingName):
        raise CommandUseError(f"there is no reading {quote(reading)}{suggestion(reading, list(ReadingName))}")
    name = ReadingName(reading)
    pool = files.with_contested(loaded.pool, name)
    if name is not ReadingName.PUBLISHED:
        from orchtrace_corpus.corpus.model.disputes import pool_as_read

        pool = pool_as_read(pool, files.disputes.require(), name)
    return Corpus(pool, files, name, is_whole=True)


def _typed(value: str, attribute: Attribute) -> str | int:
    """Return a value of an attribute as an integer if the attribute is a number, such as the year."""
    return int(value) if value and attribute.kind is ValueKind.NUMBER else value


def claims(root: str = "", *, reading: str = "published") -> Verdicts:
    """Evaluate the claims of a corpus about itself in `data/claims.yaml`; arguments as for `load`.

    Raises:
        CommandUseError: There is no such reading.
        DataFileError: There is no corpus, or a data file cannot be read.
        InvalidCorpusError: The data, its claims, disputes or candidates have errors; the message lists them.
    """
    return load(root, reading=reading).claims()


def candidates(root: str = "") -> tuple["Candidate", ...]:
    """Return the candidates in `data/candidates.yaml`; none if the file is missing.

    Raises:
        DataFileError: There is no corpus, or a data file cannot be read.
        InvalidCorpusError: The data or its candidates have errors; the message lists them.
    """
    folder = root or store.find_root().path
    load(folder)  # raises the errors of the data
    return store.CorpusFiles(folder).candidates.require()


def validate(root: str = "") -> tuple[Finding, ...]:
    """Return every finding about the data of a corpus, sorted by file and line.

    Raises:
        DataFileError: There is no corpus, or a data file cannot be read.
    """
    return tuple(store.CorpusFiles(root or store.find_root().path).findings("data"))
