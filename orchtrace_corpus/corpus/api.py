"""The Python interface: a corpus to look at, filter, count and hand to pandas.

import orchtrace_corpus as oc
corpus = oc.load()
corpus.where("credit_unit=message", "year>=2025").papers
corpus.counts("reward_family")
corpus.cross("reward_family", "credit_unit")
corpus.gaps()
corpus.claims()
corpus.to_pandas()

A notebook shows a corpus, a cross-tabulation, gaps and claims as tables; docs/notebook.ipynb goes through them.
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


_SHOWN = 10
"""The papers of a corpus that a notebook shows."""


class CrossTable(dict[Any, dict[Any, int]]):
    """The number of papers with each pair of values of two fields, by row value and column value; years are integers.

    Attributes:
        crosstab: The same with its fields.
    """

    def __init__(self, crosstab: Crosstab) -> None:
        self.crosstab = crosstab
        rows, columns = crosstab.row_values, crosstab.column_values
        keys = {column: _key(column, crosstab.columns) for column in columns}
        numbers = ({keys[column]: crosstab.count_in(row, column) for column in columns} for row in rows)
        super().__init__(zip((_key(row, crosstab.rows) for row in rows), numbers, strict=True))

    def _repr_html_(self) -> str:
        rows, columns, largest = self.crosstab.rows, self.crosstab.columns, self.crosstab.largest
        heats = []
        for row, numbers in self.items():
            regular = {column: number for column, number in numbers.items() if not {row, column} & statistics.NO_CELLS}
            heats.append([statistics.heat(regular.get(column, 0), largest) for column in numbers])
        table = [(row or "(absent)", *numbers.values(), sum(numbers.values())) for row, numbers in self.items()]
        totals = self.crosstab.column_totals
        table.append(("sum", *totals.values(), sum(totals.values())))
        heads = (rows.name, *(column or "(absent)" for column in totals), "sum")
        return notebook_table(f"{rows.label} by {columns.label}", heads, table, heats)


class Gaps(tuple[Gap, ...]):  # noqa: SLOT001 - a tuple cannot have a slot that is not empty
    """The empty and sparse cells that can arise, the one furthest below its expected count first.

    Attributes:
        coverage: The cross-tabulation behind them, and the cells that cannot arise.
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
        rows = [
            (gap.row, gap.column, gap.papers, round(gap.expected, 1), ", ".join(gap.nearest)) for gap in self[:_SHOWN]
        ]
        heads = (crosstab.rows.name, crosstab.columns.name, "papers", "expected", "nearest")
        more = f"{len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return notebook_table("Gaps", heads, rows, note=more)


class Verdicts(tuple["Verdict", ...]):
    """The verdicts on the claims of a corpus, in the order of its file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} claims, {sum(verdict.holds for verdict in self)} hold>"

    def _repr_html_(self) -> str:
        rows = [
            (
                verdict.claim.id,
                "holds" if verdict.holds else "fails",
                len(verdict.rows),
                len(verdict.contested),
                verdict.claim.claim,
            )
            for verdict in self
        ]
        return notebook_table("Claims", ("claim", "verdict", "rows", "contested", "sentence"), rows)


class Corpus:
    """A corpus, or a selection of its papers. Immutable: `where` returns another one.

    Args:
        pool: Its records and its vocabulary.
        files: The files that it was read from; its claims are there.
        reading: The reading of disputed tags that the records are by.
        is_whole: Whether it is the whole corpus, no selection.
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
        """The screened but excluded records, in file order; `where` leaves them as they are."""
        return self._pool.exclusions

    @property
    def taxonomy(self) -> Taxonomy:
        """The vocabulary that records are tagged with."""
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
        for paper in self.papers[:_SHOWN]:
            tags = (paper.tags.get(axis, ()) for axis in axes)
            texts = (tag if isinstance(tag, str) else ", ".join(tag) for tag in tags)
            rows.append((paper.key, paper.year, paper.title, *texts))
        more = f"{len(self) - _SHOWN} more {self.taxonomy.noun.many}" if len(self) > _SHOWN else ""
        return notebook_table(repr(self)[1:-1], ("key", "year", "title", *axes), rows, note=more)

    def where(self, *filters: str) -> "Corpus":
        """The corpus with only those papers that pass every filter, such as `"stop=explicit,implicit"`.

        Raises:
            CommandUseError: A filter is malformed, or names an unknown field or term.
        """
        query = parse(filters, paper_attributes(self.taxonomy, marked=True))
        return Corpus(self._pool._replace(papers=query.select(self.papers)), self._files, self._reading)

    def find(self, name: str) -> tuple[Record, ...]:
        """The papers and exclusions called by a key, an id, an identifier in any spelling, or a URL."""
        return find_records(self._pool, name)

    def counts(self, field: str, other: str = "") -> dict[Any, Any]:
        """Count the records with each value of a field: papers, or exclusions if the field is theirs alone.

        Terms that no record has count 0. Records without a value count under the empty string. Years are integers.
        With another field, as `cross`.

        Raises:
            CommandUseError: There is no such field.
        """
        if other:
            return self.cross(field, other)
        papers, exclusions = paper_attributes(self.taxonomy, marked=True), exclusion_attributes(self.taxonomy)
        is_theirs = field in exclusions and field not in papers
        attribute = exclusions[field] if is_theirs else find(field, papers)
        counted = statistics.count(self.exclusions if is_theirs else self.papers, attribute).counts
        return {_key(value, attribute): number for value, number in counted.items()}

    def cross(self, rows: str, columns: str) -> CrossTable:
        """Count the papers with each pair of values of two fields, by row value and column value, zeros included.

        Args:
            rows: The one field.
            columns: The other.

        Raises:
            CommandUseError: There is no such field.
        """
        attributes = paper_attributes(self.taxonomy, marked=True)
        axes = find(rows, attributes), find(columns, attributes)
        return CrossTable(statistics.cross(self.papers, *axes))

    def gaps(self, rows: str = "", columns: str = "", *, sparse_limit: int = 2) -> Gaps:
        """The empty and sparse cells of two fields that can arise, the one furthest below its expected count first.

        Args:
            rows: The one field; without both, the first pair that the taxonomy crosses.
            columns: The other.
            sparse_limit: Up to how many papers make a cell sparse.

        Raises:
            CommandUseError: A field is missing, unknown, or has no vocabulary.
        """
        axes = statistics.gap_axes(rows, columns, self.taxonomy)
        impossible = cannot_arise(self.taxonomy, *axes)
        coverage = statistics.coverage(self.papers, *axes, sparse_limit=sparse_limit, impossible=impossible)
        return Gaps(coverage._replace(reading=self._reading, noun=self.taxonomy.noun))

    def claims(self) -> Verdicts:
        """Evaluate what the corpus claims about itself for these papers; for a selection, without candidates.

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
        awaiting = files.candidates
        findings = (*files.claims.findings, *files.disputes.findings, *awaiting.findings)
        records.raise_findings("the claims have errors:", findings)
        awaited = select_proposed(awaiting.items) if self._is_whole and awaiting.places else None
        disputes = disputes_as_read(files.disputes.items, self._reading)
        return Verdicts(evaluate(files.claims.claims, self._pool, disputes, awaited))

    def to_pandas(self) -> "pandas.DataFrame":
        """The papers as a frame, indexed by key; see `orchtrace_corpus.corpus.formats.table.to_pandas`."""
        from orchtrace_corpus.corpus.formats.table import to_pandas

        return to_pandas(self.papers, self.taxonomy)

    def export(self, name: str, profile: str = "", *, exclusions: bool = False) -> str | bytes:
        """The papers in another format: text, or bytes for `parquet`.

        Args:
            name: `bibtex`, `csv`, `json`, `jsonl`, `ris`, `csl` or `parquet`.
            profile: A variant of the format, such as `published` for `csv`.
            exclusions: Whether the exclusions are written instead, which `csv` in its profile `published` can hold.

        Raises:
            CommandUseError: There is no such format or profile, or a library that it needs is not installed.
        """
        from orchtrace_corpus.corpus.formats import registry

        if exclusions:
            return registry.find(name).write_exclusions(self.exclusions, self.taxonomy, profile)
        is_published = profile == "published"
        papers = records.in_published_order(self.papers, self._pool.published) if is_published else self.papers
        return registry.find(name).write(papers, self.taxonomy, profile)


def load(root: str = "", *, reading: str = "published") -> Corpus:
    """Read a corpus.

    Args:
        root: The folder that holds `data/`. Without it: the nearest one from the working folder
            upwards, else the corpus that came with the installation.
        reading: `published` for the tags as they are, `sources` for those that readers of the sources agree on
            where they have read another one (`data/disputes.yaml`).

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


def _key(value: str, attribute: Attribute) -> str | int:
    return int(value) if value and attribute.kind is ValueKind.NUMBER else value


def claims(root: str = "", *, reading: str = "published") -> Verdicts:
    """Evaluate what a corpus claims about itself in `data/claims.yaml`, claim by claim; arguments as for `load`.

    Raises:
        CommandUseError: There is no such reading.
        DataFileError: There is no corpus, or a data file cannot be read.
        InvalidCorpusError: The data, its claims, disputes or candidates have errors; the message lists them.
    """
    return load(root, reading=reading).claims()


def candidates(root: str = "") -> tuple["Candidate", ...]:
    """Return what was found and awaits a decision, from `data/candidates.yaml`; nothing without such a file.

    Raises:
        DataFileError: There is no corpus, or a data file cannot be read.
        InvalidCorpusError: The data or its candidates have errors; the message lists them.
    """
    folder = root or store.find_root().path
    load(folder)  # whose errors come first
    return store.CorpusFiles(folder).candidates.require()


def validate(root: str = "") -> tuple[Finding, ...]:
    """Every problem of a corpus, in the order of the files' lines.

    Raises:
        DataFileError: There is no corpus, or a data file cannot be read.
    """
    return tuple(store.CorpusFiles(root or store.find_root().path).findings("data"))
