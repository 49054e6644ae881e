"""Read files of spans record by record, group the spans by trace, and make traces of them."""

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

_REWARD_NAMES = ("reward", "score")
_SUCCESS_NAMES = ("task_success", "success", "correctness", "correct")
_FIRST_LINES = 3


class SpanCollector:
    """The spans of files, by trace. The report of the first trace has the problems of the files."""

    def __init__(self, files: Sequence[LogFile], privacy: Privacy) -> None:
        self.report = ImportReport()
        self._files, self._privacy = files, privacy
        self._bundles: dict[str, Bundle] = {}

    def bundle(self, trace_id: str) -> Bundle:
        """Return the bundle of a trace, a new one for a new trace."""
        if trace_id not in self._bundles:
            self._bundles[trace_id] = Bundle(trace_id)
        return self._bundles[trace_id]

    def traces(self, form: str, system: str) -> Iterator[Trace]:
        """Yield the traces of bundles with an agent, a model call or a tool call; `system` is the default system."""
        # not at the top of the module: recognising a file does not need it
        from orchtrace_corpus.trace.importers.spans.events import write_events

        report, is_empty = self.report, True
        unread = report.unread  # these lines may belong to any of the traces
        span_count = sum(len(bundle.spans) for bundle in self._bundles.values())
        for trace_id in list(self._bundles):
            bundle = self._bundles.pop(trace_id)  # its memory is free when the next trace is made
            bundle.system = bundle.system or system
            with suppress(EmptyLogError):
                run = Run(form, self._privacy, report)
                trace = run.trace(topology=write_events(bundle, run), unread=unread)
                add_scores(trace, bundle.scores)
                yield trace
                report, is_empty = ImportReport(), False  # the first trace has taken the report of the files
        if is_empty:
            where = quote(self._files[0].name)
            if len(self._files) > 1:
                where += f" and {len(self._files) - 1} more files"
            dropped_count = sum(occurrences.number for occurrences in self.report.dropped.values())
            if dropped_count and not span_count:
                raise DataFileError(f"none of the {dropped_count:,} records of {where} is one of the format {form}")
            raise EmptyLogError(f"no agent, model call or tool call in the {span_count:,} spans of {where}")


def add_scores(trace: Trace, scores: Mapping[str, float]) -> None:
    """Add scores to a trace as metrics, and one of them as the reward of the team.

    The reward is the score with a name of `_REWARD_NAMES`, or else the only score. A score from 0 to 1 with a name of
    `_SUCCESS_NAMES` is also the metric `task_success`.
    """
    trace.metrics.update((f"feedback.{name}", score) for name, score in scores.items())
    reward_names = [name for name in _REWARD_NAMES if name in scores]
    if not reward_names and len(scores) == 1:
        reward_names = list(scores)
    if reward_names:
        trace.rewards["team"] = scores[reward_names[0]]
    for name in _SUCCESS_NAMES:
        if name in scores and 0 <= scores[name] <= 1:
            trace.metrics.setdefault("task_success", scores[name])


def read_items(file: LogFile, report: ImportReport, shape: Any, lists: Sequence[str]) -> Iterator[tuple[Any, int]]:
    """Yield the items in the members `lists` of each record, or the record, with its line; None if one does not fit."""
    for value, line in read_records(file, report, shape):
        if isinstance(value, shape):
            item_lists = [getattr(value, name) for name in lists if getattr(value, name) is not None]
            for item in chain.from_iterable(item_lists or [[value]]):
                yield item, line
            continue
        members = value.members()
        arrays = [value] if value.is_array else [members[name] for name in lists if name in members]
        parts = chain.from_iterable(array.elements() for array in arrays) if arrays else [value]
        for part in parts:
            yield part.value(shape), part.line


def read_records(file: LogFile, report: ImportReport, shape: Any) -> Iterator[tuple[Any, int]]:
    """Yield the document of a file, or each line's record, with line numbers: structs, or `Part` if they do not fit."""
    failure = None  # why the file is no document; raised if it has no records either
    if not _has_lines(file):
        try:
            document = logs.document(file)
        except DataFileError as error:
            failure = error
        else:
            yield document, document.line
            return
    for line, value in logs.rows(file, report, shape, keep_others=True):
        failure = None
        if isinstance(value, dict):  # a row that does not fit the struct
            data = encoded(value)
            value = Part(data, raw=data, start=0, line=line)
        yield value, line
    if failure is not None:
        raise failure


def _has_lines(file: LogFile) -> bool:
    """Return True if one of the first lines is a whole JSON object. There are several, since one may be cut off."""
    try:
        with open_regular(file.path) as handle:
            lines = (line for line in iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b"") if not line.isspace())
            for line in islice(lines, _FIRST_LINES):
                start = line.lstrip()[:1]
                if start in (b"[", b'"'):  # a document, in which a line may be an element or a member
                    return False
                if start == b"{":
                    with suppress(msgspec.DecodeError, RecursionError):
                        msgspec.json.decode(line, type=msgspec.Raw)
                        return True
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error
    return False


def session_keys(reader: LogReader) -> list[str]:
    """Return the path of a file and the ids of its first traces: exporters divide a trace among files."""
    return [reader.file.path, *re.findall(r'"trace_?[iI]d"\s*:\s*"([^"]{1,100})"', reader.head().text)]
