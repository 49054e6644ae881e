"""The published bibliography, and the corrections that were made to it: two tables in CSV.

`data/published.csv` is the table of papers that the survey printed. `data/corrections.csv` has each value that differs
in this corpus. Together they determine every bibliographic field of the published pool.
"""

import csv
import io
from collections.abc import Iterator, Mapping

from orchtrace_corpus.base.files import TextFile
from orchtrace_corpus.base.findings import Finding, Location, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple

IDENTIFIERS = ("doi", "openreview_id", "acl_id")
"""Fields that a published table need not have: without a column, the value of a record is an addition."""

COMPARED = ("title", "first_author", "affiliation", "year", "arxiv_id", *IDENTIFIERS, "venue", "urls")
"""The fields of a paper that a published table can give."""

CORRECTION_COLUMNS = ("record", "field", "published", "now", "source")
"""The columns of `data/corrections.csv`."""

URL_SEPARATOR = " ; "


class PublishedRow(NamedTuple):
    """A row of the published table: the key of a paper, its values by field, and the row's line from 1."""

    key: str
    values: Mapping[str, str]
    line: int


class Correction(NamedTuple):
    """A value that differs from the published table.

    Attributes:
        record: The paper's key.
        field: One of `COMPARED`.
        published: The published value; empty for an addition.
        now: The current value.
        line: The row's line in `data/corrections.csv`, from 1.
    """

    record: str
    field: str
    published: str
    now: str
    source: str
    line: int


class PublishedBibliography(NamedTuple):
    """The rows of the published table, None if it is missing, and its corrections; findings and paths of both files."""

    rows: tuple[PublishedRow, ...] | None = None
    corrections: tuple[Correction, ...] = ()
    findings: tuple[Finding, ...] = ()
    published_path: str = ""
    corrections_path: str = ""

    @property
    def total(self) -> int:
        """The number of corrections."""
        return len(self.corrections)


def decode(published: TextFile | None, corrections: TextFile | None) -> PublishedBibliography:
    """Decode the published table and its corrections; either file can be missing."""
    findings: list[Finding] = []
    rows = None
    published_path = ""
    if published is not None:
        published_path = published.path
        lines = _lines(published, ("key",), ("key", *COMPARED), findings)
        rows = tuple(PublishedRow(values.pop("key"), values, line) for line, values in lines)
    decoded: tuple[Correction, ...] = ()
    corrections_path = ""
    if corrections is not None:
        corrections_path = corrections.path
        lines = _lines(corrections, CORRECTION_COLUMNS, CORRECTION_COLUMNS, findings)
        decoded = tuple(Correction(**values, line=line) for line, values in lines)
    return PublishedBibliography(rows, decoded, tuple(findings), published_path, corrections_path)


def _lines(
    file: TextFile, required: tuple[str, ...], allowed: tuple[str, ...], findings: list[Finding]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line (from 1) and the cells by column of each row; problems are added to `findings`."""
    reader = csv.reader(io.StringIO(file.text.removeprefix("\ufeff"), newline=""), strict=True)

    def refuse(message: str, line: int) -> None:
        findings.append(Finding("P101", message, Location(file.path, line, 1)))

    try:
        header = next(reader, [])
        unexpected = [name for name in header if name not in allowed or header.count(name) > 1]
        missing = [name for name in required if name not in header]
        if unexpected:
            refuse(f"unknown or repeated column {quote(unexpected[0])}{suggestion(unexpected[0], allowed)}", 1)
        if missing:
            refuse(f"missing column {quote(missing[0])}", 1)
        if unexpected or missing:
            return
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                refuse(f"the row has {len(cells)} cells, but there are {len(header)} columns", reader.line_num)
                continue
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        refuse(f"this is not CSV: {error}", reader.line_num)
