"""Inspect AI: logs of evaluations, `.eval` archives or JSON. Each sample in each epoch is a trace.

The events of a sample are a flat list. `span_begin` opens a span inside another span. An answer of a model or a call
names the span that it is in. A call has two records: a span of type `tool` around its effects, and a `tool` event with
its result. Shapes: `event/*.py` and `log/_log.py` of inspect-ai 0.3.285, version 2 of the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.importers.core import json_parts
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, LogReader, document
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.core.values import as_array, as_count, as_object, as_text
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import add_scores
from orchtrace_corpus.trace.importers.spans.span import Bundle, Call, Kind, Span
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import DecidedBy, GateDecision
from orchtrace_corpus.trace.model.trace import Run as RunIdentity
from orchtrace_corpus.trace.model.trace import Trace

_ZIP = "PK\3\4"
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_MEMBERS = frozenset(("version", "status", "eval"))
_ATTACHMENT = "attachment://"
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""The values of correct, incorrect, partial and no answer, as in Inspect's `value_to_float`."""
_MIN_SCORE, _MAX_SCORE = 1e-100, 1e100
"""The smallest and largest absolute value of a score that is not 0."""
_REFUSED = frozenset(("reject", "terminate"))
_APPROVERS = {"human": DecidedBy.PERSON, "auto": DecidedBy.RULE}
"""The kind of decider, by the name of an approver of Inspect (`approval/_human/approver.py`, `approval/_auto.py`)."""
_SKIPPED_EVENTS = frozenset(
    """
    checkpoint compaction info logger sample_init sample_limit sandbox score score_edit span_end state step store
    subtask error anchor branch interrupt
    """.split()
)


class _Event(Struct):
    """The members of an event that concern agents, calls or tokens."""

    event: Any = None
    span_id: Any = None
    id: Any = None
    uuid: Any = None
    parent_id: Any = None
    type: Any = None
    name: Any = None
    timestamp: Any = None
    completed: Any = None
    working_time: Any = None
    model: Any = None
    output: Any = None
    error: Any = None
    cache: Any = None
    function: Any = None
    arguments: Any = None
    result: Any = None
    agent_span_id: Any = None
    input: msgspec.Raw = json_parts.NOTHING
    decision: Any = None
    approver: Any = None


class _Sample(Struct):
    id: Any = None
    epoch: Any = None
    uuid: Any = None
    scores: Any = None
    error: Any = None
    limit: Any = None
    model_usage: Any = None
    total_time: Any = None
    working_time: Any = None
    attachments: Any = None
    events: list[_Event] = []


def recognises(beginning: Head) -> bool:
    """Return True if a file begins like a log of Inspect, by the members of the archive or document."""
    if beginning.text.startswith(_ZIP):
        return any(name in beginning.text for name in (*_HEADERS, _SAMPLES + "1"))
    return beginning.outline >= _MEMBERS and '"eval_id"' in beginning.text


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the samples."""
    for file in files:
        with LogReader(file) as reader:
            is_archive = reader.first().text.startswith(_ZIP)
        is_empty, failures = True, list[DataFileError]()
        samples = _samples_of_archive(file, failures) if is_archive else _samples_of_document(file)
        for evaluation, where, line, sample in samples:
            if sample is None:
                failures.append(DataFileError(f"{quote(where)} is not a sample"))
                continue
            with suppress(EmptyLogError):
                yield _SampleReader(sample, where, line, privacy).trace(evaluation)
                is_empty = False
        if failures:
            raise failures[0]
        if is_empty:
            raise EmptyLogError(f"no sample with a model call or a tool call in {quote(file.name)}")


_LocatedSample = tuple[dict[str, Any], str, int, _Sample | None]
"""The member `eval` of the log, the file, the line, and the sample; None for a record that is no sample."""


def _samples_of_archive(file: LogFile, failures: list[DataFileError]) -> Iterator[_LocatedSample]:
    """Yield the samples of an archive, one in memory at a time; add members that cannot be read to `failures`."""
    # not at the top of the module: importing `zipfile` takes long
    from orchtrace_corpus.trace.importers.core.archives import Archive

    with Archive(file) as archive:
        headers = [name for name in _HEADERS if name in archive.names]  # an interrupted run has only the second one
        header = as_object(json_parts.decoded(archive.read(headers[0]))) if headers else {}
        for name in archive.names:
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                try:
                    data = archive.read(name)
                except DataFileError as error:
                    failures.append(error)
                    continue
                sample = json_parts.decoded(data, _Sample) or json_parts.lenient(json_parts.decoded(data), _Sample)
                yield as_object(header.get("eval")), masked(f"{file.name}/{name}"), 1, sample


def _samples_of_document(file: LogFile) -> Iterator[_LocatedSample]:
    members = document(file).members()
    evaluation = as_object(members["eval"].value() if "eval" in members else None)
    for part in members["samples"].elements() if "samples" in members else ():
        yield evaluation, file.name, part.line, part.value(_Sample) or json_parts.lenient(part.value(), _Sample)


class _SampleReader:
    """Makes spans of the events of a sample."""

    def __init__(self, sample: _Sample, file: str, line: int, privacy: Privacy) -> None:
        self._sample, self._file, self._line = sample, file, line
        self._run, self._privacy = Run("inspect_ai", privacy), privacy
        self._attachments = as_object(sample.attachments)
        self._begun = {
            as_text(event.id): event for event in sample.events if event.event == "span_begin" and as_text(event.id)
        }
        self._spans: list[Span] = []
        self._ends = {
            as_text(event.id): instant(event.timestamp) for event in sample.events if event.event == "span_end"
        }
        self._call_spans = self._find_call_spans()
        self._token_sum = 0

    def trace(self, evaluation: Mapping[str, Any]) -> Trace:
        """Return the trace of the sample, given the member `eval` of the log."""
        sample, run = self._sample, self._run
        name = f"{as_text(evaluation.get('task'))} {_label(sample.id)}".strip()
        version = as_text(as_object(evaluation.get("packages")).get("inspect_ai"))
        bundle = Bundle(as_text(sample.uuid) or f"{name} {_label(sample.epoch)}", name, "inspect_ai", version)
        self._read_events()
        bundle.spans = self._spans
        from orchtrace_corpus.trace.importers.spans.events import write_events

        topology = write_events(bundle, run)
        stated = [usage for value in as_object(sample.model_usage).values() if (usage := _counts(value)) is not None]
        for usage in stated:
            run.leave_out(LedgerLine.RESTATED, usage)
        if stated and sum((usage.input or 0) + (usage.output or 0) for usage in stated) != self._token_sum:
            run.report.note(Problem.RESTATED_DIFFERS, f"{self._file}:{self._line}")
        trace = run.trace(topology=topology)
        epoch = sample.epoch if type(sample.epoch) is int and 0 <= sample.epoch < 2**53 else None
        run_id = as_text(evaluation.get("run_id")) or as_text(evaluation.get("eval_id"))
        trace.run = RunIdentity(" ".join(filter(None, (masked(run_id), masked(name)))), epoch)
        self._add_outcomes(trace)
        return trace

    def _add_outcomes(self, trace: Trace) -> None:
        """Add the scores of the sample, and its times with and without waiting; one letter alone is `task_success`."""
        scores, grades = dict[str, float](), dict[str, float]()
        for name, score in as_object(self._sample.scores).items():
            value = as_object(score).get("value")
            values = value if isinstance(value, dict) else {"": value}
            for part, mark in values.items():
                score_name = masked(f"{name}.{part}" if part else name)
                if isinstance(mark, int | float) and (mark == 0 or _MIN_SCORE <= abs(mark) <= _MAX_SCORE):
                    scores[score_name] = float(mark)
                elif isinstance(mark, str) and mark in _GRADES:
                    scores[score_name] = grades[score_name] = _GRADES[mark]
        add_scores(trace, scores)
        if len(grades) == 1:
            trace.metrics.setdefault("task_success", *grades.values())
        for name, stated in (("total_time_s", self._sample.total_time), ("working_time_s", self._sample.working_time)):
            if (seconds := _duration(stated)) is not None:
                trace.metrics[name] = seconds

    def _find_call_spans(self) -> dict[int, str]:
        """Return the span of each call by the index of its event: that around the spawned agent, else the next one."""
        open_spans: dict[tuple[str, str], list[str]] = {}  # by the span around them and the tool
        for span_id, begin in self._begun.items():
            if begin.type == "tool":
                open_spans.setdefault((self._enclosing(span_id, ("handoff",)), as_text(begin.name)), []).append(span_id)
        call_spans = {}
        for index, event in enumerate(self._sample.events):
            if event.event != "tool":
                continue
            candidates = open_spans.get((as_text(event.span_id), as_text(event.function)))
            if candidates:
                agent_parent = self._enclosing(as_text(event.agent_span_id))
                call_spans[index] = agent_parent if agent_parent in candidates else candidates[0]
                candidates.remove(call_spans[index])
        return call_spans

    def _enclosing(self, span_id: str, skipped: Sequence[str] = ()) -> str:
        """Return the id of the next span around a span that has none of the skipped types; empty if there is none."""
        reached = {span_id}
        while span_id := as_text(self._begun[span_id].parent_id) if span_id in self._begun else "":
            if span_id in reached or span_id not in self._begun or self._begun[span_id].type not in skipped:
                break
            reached.add(span_id)
        return span_id

    def _wrappers(self) -> set[str]:
        """Return the spans of agents that contain only the span of another agent, such as spans of `collect`."""
        contents: dict[str, list[Any]] = {}  # the types of spans, and None for other events, by the span around them
        for event in self._sample.events:
            if event.event == "span_begin":
                contents.setdefault(as_text(event.parent_id), []).append(event.type)
            elif as_text(event.event) not in _SKIPPED_EVENTS:
                contents.setdefault(as_text(event.span_id), []).append(None)
        return {span_id for span_id, types in contents.items() if types == ["agent"]}

    def _span(self, span_id: str, parent: str, kind: Kind, name: str, event: _Event) -> Span:
        """Add and return the span of an event."""
        begin, end = instant(event.timestamp), instant(event.completed)
        span = Span(span_id, parent, kind, name, self._file, self._line, start=begin, end=end)
        self._spans.append(span)
        return span

    def _read_events(self) -> None:
        """Add the root span, and the spans of all events."""
        wrappers, tools = self._wrappers(), set(self._call_spans.values())
        root = Span("sample", "", Kind.CHAIN, as_text(self._sample.id), self._file, self._line)
        limit = as_object(self._sample.limit)
        root.is_error = bool(self._sample.error or limit)
        if root.is_error:
            root.error_type = spans.error_kind(as_object(self._sample.error).get("message")) or "error"
            if limit and not self._sample.error:
                root.error_type = f"{as_text(limit.get('type'))}_limit"
        self._spans.append(root)
        for index, event in enumerate(self._sample.events):
            kind, parent = event.event, as_text(event.span_id) or root.id
            if kind == "span_begin":
                span_id = as_text(event.id)
                if span_id and span_id not in tools and event.type != "handoff":
                    is_agent = event.type == "agent" and span_id not in wrappers
                    span_kind = Kind.AGENT if is_agent else Kind.CHAIN
                    parent = self._enclosing(span_id, ("handoff",)) or root.id
                    span = self._span(span_id, parent, span_kind, as_text(event.name), event)
                    span.is_named, span.end = is_agent, self._ends.get(span_id)
            elif kind == "model":
                self._take_answer(index, event, parent)
            elif kind == "tool":
                self._take_call(index, event, parent)
            elif kind == "approval":
                approver = as_text(event.approver) or "approval"
                guard = self._span(f"#{index}", parent, Kind.GUARDRAIL, approver, event)
                guard.end = guard.start
                guard.is_triggered = as_text(event.decision) in _REFUSED
                guard.more = {}
                if event.decision in tuple(GateDecision):
                    guard.more["decision"] = GateDecision(event.decision)
                if approver in _APPROVERS:
                    guard.more["decided_by"] = _APPROVERS[approver]
            elif kind == "input":
                person = self._span(f"#{index}", parent, Kind.PERSON, "", event)
                person.end, person.output = person.start, self._reference(json_parts.decoded(event.input))
            elif as_text(kind) in _SKIPPED_EVENTS:
                self._run.report.skip(str(kind))
            else:
                self._run.report.note_unknown(masked(f"event {str(kind)[:100]}"))
        times = [time for span in self._spans[1:] for time in (span.start, span.end) if time]
        root.start, root.end = min(times, default=None), max(times, default=None)

    def _take_answer(self, index: int, event: _Event, parent: str) -> None:
        answer = self._span(as_text(event.uuid) or f"#{index}", parent, Kind.INFERENCE, "", event)
        output = as_object(event.output)
        choice = as_object(next(iter(as_array(output.get("choices"))), None))
        message = as_object(choice.get("message"))
        answer.model = as_text(output.get("model")) or as_text(event.model)
        answer.output = self._reference(message.get("content"))
        calls = [call for call in map(as_object, as_array(message.get("tool_calls"))) if as_text(call.get("function"))]
        answer.calls = tuple(
            Call(as_text(call.get("id")), call["function"], self._reference(call.get("arguments"))) for call in calls
        )
        reason = masked(as_text(choice.get("stop_reason")))
        answer.more = {"finish_reason": reason} if reason else {}
        if answer.start and answer.end and (worked := _duration(event.working_time)) is not None:
            answer.more["t_request"] = min(max(answer.start, answer.end - worked), answer.end)
        error = event.error or output.get("error")
        if error:
            answer.is_error, answer.error_type = True, spans.error_kind(error) or "model_error"
        if event.cache == "read":
            answer.is_free = True
        else:
            answer.usage = _counts(output.get("usage"))
        if answer.usage is not None:
            self._token_sum += (answer.usage.input or 0) + (answer.usage.output or 0)

    def _take_call(self, index: int, event: _Event, parent: str) -> None:
        name = self._call_spans.get(index) or as_text(event.uuid) or f"#{index}"
        call = self._span(name, parent, Kind.TOOL, as_text(event.function), event)
        call.call_id = as_text(event.id)
        call.arguments, call.output = self._reference(event.arguments), self._reference(event.result)
        worked = _duration(event.working_time)
        call.more = {"run_time": worked} if worked is not None else None
        if event.error:
            call.is_error, call.error_type = True, as_text(as_object(event.error).get("type")) or "tool_error"

    def _reference(self, content: Any) -> str:
        """Return the reference to a content. To be kept, it needs its long texts, which are attachments."""
        if self._privacy.keep_content:
            content = self._with_attachments(content)
        return self._privacy.reference(content)

    def _with_attachments(self, content: Any) -> Any:
        if isinstance(content, str) and content.startswith(_ATTACHMENT):
            return self._attachments.get(content.removeprefix(_ATTACHMENT), content)
        if isinstance(content, list):  # the parts of a message, each an object
            return [
                {**part, "text": self._with_attachments(part.get("text"))} if isinstance(part, dict) else part
                for part in content
            ]
        if isinstance(content, dict):  # arguments
            return {
                name: self._with_attachments(part) if isinstance(part, str) else part for name, part in content.items()
            }
        return content


def _counts(usage: Any) -> Usage | None:
    """Return token counts; None if there are none. The input includes cached tokens."""
    if not isinstance(usage, Mapping):
        return None
    input_tokens, output = as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens"))
    cache_read = as_count(usage.get("input_tokens_cache_read"))
    cache_write = as_count(usage.get("input_tokens_cache_write"))
    reasoning, total = as_count(usage.get("reasoning_tokens")), as_count(usage.get("total_tokens"))
    if input_tokens is not None and total != input_tokens + (output or 0):  # the stated input excludes cached tokens
        input_tokens += (cache_read or 0) + (cache_write or 0)
    return Usage(input_tokens, output, cache_read, cache_write, reasoning, total)


def _duration(value: Any) -> float | None:
    """Return a duration in seconds; None for any other value."""
    return round(float(value), 6) if type(value) in (int, float) and 0 <= value < 1e12 else None


def _label(value: Any) -> str:
    """Return the id of a sample, or an epoch, as text; empty for any other value than a number or a text."""
    return str(value) if type(value) in (int, str) else ""
