"""The published bibliography, and the corrections that were made to it: two tables in CSV.

`data/published.csv` holds what the survey's own table says of each paper, `data/corrections.csv` each value that this
corpus gives otherwise. Both together say what every field of the published pool must be today.
"""

import csv
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchtrace_corpus.base.files import TextFile
from orchtrace_corpus.base.findings import Finding, Location, quote, suggestion

IDENTIFIERS = ("doi", "openreview_id", "acl_id")
"""Fields that a published table may have no column for: what a record has of them was added."""

COMPARED = ("title", "first_author", "affiliation", "year", "arxiv_id", *IDENTIFIERS, "venue", "urls")
"""The fields of a paper that a published table can give."""

CORRECTION = ("record", "field", "published", "now", "source")
"""The columns of `data/corrections.csv`."""

URL_SEPARATOR = " ; "


class PublishedRow(NamedTuple):
    """What the published table says of a paper: its values by field, in the columns that the table has."""

    key: str
    values: Mapping[str, str]
    line: int


class Correction(NamedTuple):
    """A value of the published table that the corpus gives otherwise.

    Attributes:
        record: The paper's key.
        field: The field, one of `COMPARED`.
        published: The published value; empty for an addition.
        now: The value that the record has.
        source: Where it was read.
        line: The row's line in `data/corrections.csv`, from 1.
    """

    record: str
    field: str
    published: str
    now: str
    source: str
    line: int


class Paths(NamedTuple):
    """What the two files are called in findings."""

    published: str = ""
    corrections: str = ""


class PublishedBibliography(NamedTuple):
    """The published table and its corrections, as read, mistakes included.

    Attributes:
        rows: The rows of the published table; None where the corpus has no such file.
        corrections: The corrections, in the order of the file.
        findings: What is wrong with the two files.
        paths: What they are called.
    """

    rows: tuple[PublishedRow, ...] | None = None
    corrections: tuple[Correction, ...] = ()
    findings: tuple[Finding, ...] = ()
    paths: Paths = Paths()

    @property
    def total(self) -> int:
        """How many corrections there are."""
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
    paths = Paths(published.path if published else "", corrections.path if corrections else "")
    return PublishedBibliography(rows, corrected, tuple(findings), paths)


def _rows(
    file: TextFile, required: tuple[str, ...], allowed: tuple[str, ...], findings: list[Finding]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of each row; what cannot be read goes to `findings`."""
    reader = csv.reader(file.text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)

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
