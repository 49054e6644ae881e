"""Files of spans: read record by record, grouped by trace, made into traces."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import msgspec

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.json_parts import Part, encoded
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.spans.span import Bundle
from orchtrace_corpus.trace.model.import_report import ImportReport
from orchtrace_corpus.trace.model.trace import Trace

_REWARDS = ("reward", "score")
_SUCCESSES = ("task_success", "success", "correctness", "correct")
_FIRST_LINES = 3


class Gathering:
    """The spans of files by trace; the first trace's report has the problems of the files."""

    def __init__(self, files: Sequence[LogFile], privacy: Privacy) -> None:
        self.report = ImportReport()
        self._files, self._privacy = files, privacy
        self._bundles: dict[str, Bundle] = {}

    def bundle(self, trace_id: str) -> Bundle:
        """Return the bundle of a trace."""
        if trace_id not in self._bundles:
            self._bundles[trace_id] = Bundle(trace_id)
        return self._bundles[trace_id]

    def traces(self, form: str, system: str) -> Iterator[Trace]:
        """Yield the traces of all bundles that hold an event."""
        # not at the top: a file of another format is recognised without it
        from orchtrace_corpus.trace.importers.spans.events import write_events

        report, is_empty = self.report, True
        unread = report.unread  # these lines may have been of any of the traces
        total = sum(len(bundle.spans) for bundle in self._bundles.values())
        for trace_id in list(self._bundles):
            bundle = self._bundles.pop(trace_id)  # frees the memory of a trace once it is read
            bundle.system = bundle.system or system
            with suppress(EmptyLogError):
                run = Run(form, self._privacy, report)
                trace = run.trace(topology=write_events(bundle, run), unread=unread)
                grade(trace, bundle.scores)
                yield trace
                report, is_empty = ImportReport(), False
        if is_empty:
            others = f" and {len(self._files) - 1} more files" if len(self._files) > 1 else ""
            where = f"{quote(self._files[0].name)}{others}"
            dropped = sum(noted.number for noted in self.report.dropped.values())
            if dropped and not total:
                raise DataFileError(f"none of the {dropped:,} records of {where} is one of the format {form}")
            raise EmptyLogError(f"no agent, model call or tool call in the {total:,} spans of {where}")


def grade(trace: Trace, scores: Mapping[str, float]) -> None:
    """Add scores to a trace as metrics, and the one named a reward, or the only one, as its reward.

    A score of success from 0 to 1 is also the metric `task_success`.
    """
    trace.metrics.update((f"feedback.{name}", score) for name, score in scores.items())
    of_reward = next((name for name in _REWARDS if name in scores), next(iter(scores)) if len(scores) == 1 else "")
    if of_reward:
        trace.rewards["team"] = scores[of_reward]
    for name in _SUCCESSES:
        if 0 <= scores.get(name, -1) <= 1:
            trace.metrics.setdefault("task_success", scores[name])


def items(file: LogFile, report: ImportReport, shape: Any, lists: Sequence[str]) -> Iterator[tuple[Any, int]]:
    """Yield the items of a file as structs, each with its line; None for an item that does not fit the shape.

    `lists` are the members with which a record is a request or answer, whose items are those of these lists.
    """
    for value, line in records(file, report, shape):
        if isinstance(value, shape):
            full = [items for name in lists if (items := getattr(value, name)) is not None]
            for item in chain.from_iterable(full) if full else (value,):
                yield item, line
            continue
        members = value.members()
        arrays = [value] if value.is_array else [members[name] for name in lists if name in members]
        for part in chain.from_iterable(array.elements() for array in arrays) if arrays else (value,):
            yield part.value(shape), part.line


def records(file: LogFile, report: ImportReport, shape: Any) -> Iterator[tuple[Any, int]]:
    """Yield the values of the lines of a file, or the document that it is, each with its line.

    A value is a struct if a line has the shape, else a `Part`.
    """
    failure = None
    if not _is_of_lines(file):
        try:
            top = logs.document(file)
        except DataFileError as error:
            failure = error
        else:
            yield top, top.line
            return
    for line, value in logs.rows(file, report, shape, keep_others=True):
        failure = None
        if isinstance(value, dict):
            data = encoded(value)
            value = Part(data, data, 0, line)
        yield value, line
    if failure is not None:
        raise failure


def _is_of_lines(file: LogFile) -> bool:
    """Return True if one of the first lines is a whole JSON object; the first itself may be cut off."""
    try:
        with open_regular(file.path) as handle:
            lines = (line for line in iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b"") if not line.isspace())
            for line in islice(lines, _FIRST_LINES):
                start = line.lstrip()[:1]
                if start in (b"[", b'"'):  # a document, in which a line may be a whole element
                    return False
                if start == b"{":
                    with suppress(msgspec.DecodeError, RecursionError):
                        msgspec.json.decode(line, type=msgspec.Raw)
                        return True
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error
    return False


def session_keys(reader: LogReader) -> list[str]:
    """Return the ids of the first traces in a file: exporters divide a trace among files."""
    return [reader.file.path, *re.findall(r'"trace_?[iI]d"\s*:\s*"([^"]{1,100})"', reader.head().text)]
