"""The published bibliography, and the corrections that were made to it: two tables in CSV.

`data/published.csv` holds the survey's own table of papers, `data/corrections.csv` each value that differs in this
corpus. Together they determine every bibliographic field of the published pool.
"""

import csv
import io
from collections.abc import Iterator, Mapping

from orchtrace_corpus.base.files import TextFile
from orchtrace_corpus.base.findings import Finding, Location, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple

IDENTIFIERS = ("doi", "openreview_id", "acl_id")
"""Fields that a published table may have no column for: what a record has of them was added."""

COMPARED = ("title", "first_author", "affiliation", "year", "arxiv_id", *IDENTIFIERS, "venue", "urls")
"""The fields of a paper that a published table can give."""

CORRECTION = ("record", "field", "published", "now", "source")
"""The columns of `data/corrections.csv`."""

URL_SEPARATOR = " ; "


class PublishedRow(NamedTuple):
    """A row of the published table: the values of a paper by field."""

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
    """The published table, None without one, and its corrections, with the findings of both files and their paths."""

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
    """Decode the published table and its corrections, each if there is one."""
    findings: list[Finding] = []
    rows = None
    if published is not None:
        table = _rows(published, ("key",), ("key", *COMPARED), findings)
        rows = tuple(PublishedRow(values.pop("key"), values, line) for line, values in table)
    corrected: tuple[Correction, ...] = ()
    if corrections is not None:
        table = _rows(corrections, CORRECTION, CORRECTION, findings)
        corrected = tuple(Correction(**values, line=line) for line, values in table)
    paths = (file.path if file else "" for file in (published, corrections))
    return PublishedBibliography(rows, corrected, tuple(findings), *paths)


def _rows(
    file: TextFile, required: tuple[str, ...], allowed: tuple[str, ...], findings: list[Finding]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of each row; problems go to `findings`."""
    reader = csv.reader(io.StringIO(file.text.removeprefix("\ufeff"), newline=""), strict=True)

    def refuse(message: str, line: int) -> None:
        findings.append(Finding("P101", message, Location(file.path, line, 1)))

    try:
        header = next(reader, [])
        wrong = [name for name in header if name not in allowed or header.count(name) > 1]
        missing = [name for name in required if name not in header]
        if wrong:
            refuse(f"unknown or repeated column {quote(wrong[0])}{suggestion(wrong[0], allowed)}", 1)
        if missing:
            refuse(f"missing column {quote(missing[0])}", 1)
        if wrong or missing:
            return
        while (cells := next(reader, None)) is not None:
            if not cells:
                continue
            if len(cells) != len(header):
                refuse(f"the row has {len(cells)} cells, but there are {len(header)} columns", reader.line_num)
                continue
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        refuse(f"this is not CSV: {error}", reader.line_num)
