"""A thread of Codex in several files: in use and archived, saved as it grew, or with something cut out.

Copies of a row may be written differently: with members in another order, with `null` for what others leave out,
without `encrypted_content`, without texts. Their time stays: a row is known again by its time, its kind and its call,
and by its place among several of these.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

import msgspec

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.codex.rows import Line, Payload
from orchtrace_corpus.trace.importers.conversations.codex.sources import shown
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
from orchtrace_corpus.trace.importers.core.transcript import Place
from orchtrace_corpus.trace.importers.core.values import string
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport

_BEGIN, _END = 0, 1
"""Stand for a row before the first and one behind the last."""
_UNREADABLE = (Drop.CUT_OFF, Drop.NO_JSON, Drop.TOO_LONG)


class Row(NamedTuple):
    """A row of a copy.

    Attributes:
        place: Where it is.
        line: The row.
        mark: A number that its other copies have, too.
        gaps: Why lines between it and the row before could not be read.
    """

    place: Place
    line: Line
    mark: int
    gaps: tuple[Drop, ...] = ()


class Copy:
    """One file of a thread that has several.

    Attributes:
        rows: Its rows.
        gaps: Why lines behind its last row could not be read.
        report: What became of its lines.

    Raises:
        DataFileError: The file cannot be read.
    """

    def __init__(self, file: LogFile) -> None:
        self.report = ImportReport()
        self.rows: list[Row] = []
        self.gaps: tuple[Drop, ...] = ()
        name = shown(file)
        self._marks: Counter[tuple[Any, ...]] = Counter()
        before = dict.fromkeys(_UNREADABLE, 0)
        for number, row in logs.rows(file._replace(name=name), self.report, Line):
            self.rows.append(Row(Place(name, number), row, self._mark(row), self._gaps_since(before)))
        self.gaps = self._gaps_since(before)

    def _mark(self, row: Line) -> int:
        payload = row.payload or Payload()
        time = moment(row.timestamp)
        content = msgspec.json.encode(payload, order="sorted") if time == NO_TIME else b""
        key = string(row.type), time, string(payload.type), string(payload.call_id), content
        self._marks[key] += 1
        return hash((key, self._marks[key]))

    def _gaps_since(self, before: dict[Drop, int]) -> tuple[Drop, ...]:
        gaps: list[Drop] = []
        for drop in _UNREADABLE if self.report.dropped else ():
            noted = self.report.dropped.get(drop)
            number = noted.number if noted else 0
            gaps += [drop] * (number - before[drop])
            before[drop] = number
        return tuple(gaps)


def merge_copies(copies: Sequence[Copy], report: ImportReport) -> Iterator[tuple[Place, Line]]:
    """Yield each row once that any copy of a thread has, each behind the row that it follows in its copy.

    Args:
        copies: The copies.
        report: Where it is said what became of their lines.
    """
    merged: list[Row] = []
    for copy in sorted(copies, key=lambda copy: len(copy.rows), reverse=True):
        merged = _insert(merged, copy.rows, report) if merged else copy.rows
    whole = {(before.mark, row.mark) for copy in copies for before, row in pairwise(copy.rows) if not row.gaps}
    followed = dict(pairwise([_BEGIN, *(row.mark for row in merged), _END]))
    for copy in copies:
        _add_report(report, copy, whole, followed)
    for row in merged:
        yield row.place, row.line


def _insert(merged: list[Row], rows: Sequence[Row], report: ImportReport) -> list[Row]:
    """Insert the rows of a copy that those merged so far lack."""
    places = {row.mark: index for index, row in enumerate(merged)}
    result: list[Row] = []
    at = 0
    for row in rows:
        index = places.get(row.mark)
        if index is None:
            result.append(row)
            continue
        report.pass_over("row that another file of the thread has, too")
        if index >= at:
            result += merged[at : index + 1]
            at = index + 1
    return result + merged[at:]


def _add_report(report: ImportReport, copy: Copy, whole: Set[tuple[int, int]], followed: Mapping[int, int]) -> None:
    """Report what became of the lines of a copy; one that cannot be read is no loss where others have its row.

    Args:
        report: The report.
        copy: The copy.
        whole: Neighbouring rows, as marks, between which some copy has nothing that could not be read.
        followed: Which row follows each among those of all copies.
    """
    report.records_read += copy.report.records_read
    report.repaired += copy.report.repaired
    filled: list[Drop] = []
    marks = [_BEGIN, *(row.mark for row in copy.rows), _END]
    for (before, after), gaps in zip(pairwise(marks), [*(row.gaps for row in copy.rows), copy.gaps], strict=True):
        if gaps and (followed[before] != after or (before, after) in whole):
            filled += gaps
            report.pass_over("unreadable line whose row another file of the thread has")
    for drop, noted in copy.report.dropped.items():
        for number in range(noted.number - filled.count(Drop(drop))):
            file, _, line_number = noted.for_example[min(number, len(noted.for_example) - 1)].rpartition(":")
            report.drop(Drop(drop), file, int(line_number))
