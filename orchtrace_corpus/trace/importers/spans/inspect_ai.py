"""Inspect AI: logs of evaluations, `.eval` archives or JSON, a trace for each sample and epoch.

The events of a sample are flat. `span_begin` opens a span below another; a model's answer or a call names the span that
it is in. A call has two records: a span of type `tool` around its effects, and a `tool` event with its result.
Shapes: `event/*.py` and `log/_log.py` of inspect-ai 0.3.285, version 2 of the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, LogReader, document
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.core.values import count, items, mapping, string
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import add_scores
from orchtrace_corpus.trace.importers.spans.span import Bundle, Call, Kind, Span
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import DecidedBy, GateDecision
from orchtrace_corpus.trace.model.trace import Run as RunOf
from orchtrace_corpus.trace.model.trace import Trace

_ZIP = "PK\3\4"
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_MEMBERS = frozenset(("version", "status", "eval"))
_ATTACHMENT = "attachment://"
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Correct, incorrect, partial, no answer, by Inspect's `value_to_float`."""
_LEAST, _MOST = 1e-100, 1e100
"""The smallest and largest score of a trace, without sign."""
_REFUSED = frozenset(("reject", "terminate"))
_APPROVERS = {"human": DecidedBy.PERSON, "auto": DecidedBy.RULE}
"""Who decides in Inspect's own approvers (`approval/_human/approver.py`, `approval/_auto.py`)."""
_SILENT = frozenset(
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
    input: msgspec.Raw = parts.NOTHING
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
    """Return True for the beginning of a log of Inspect, by the members of its archive or document."""
    if beginning.text.startswith(_ZIP):
        return any(name in beginning.text for name in (*_HEADERS, _SAMPLES + "1"))
    return beginning.outline >= _MEMBERS and '"eval_id"' in beginning.text


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the samples."""
    for file in files:
        with LogReader(file) as reader:
            is_archive = reader.first().text.startswith(_ZIP)
        is_empty, failures = True, list[DataFileError]()
        for about, where, line, sample in _archived(file, failures) if is_archive else _documented(file):
            if sample is None:
                failures.append(DataFileError(f"{quote(where)} is not a sample"))
                continue
            with suppress(EmptyLogError):
                yield _SampleReader(sample, where, line, privacy).trace(about)
                is_empty = False
        if failures:
            raise failures[0]
        if is_empty:
            raise EmptyLogError(f"no sample with a model call or a tool call in {quote(file.name)}")


_Placed = tuple[dict[str, Any], str, int, _Sample | None]
"""A sample, or None for a record that is none, with what its log says about the evaluation, and its file and line."""


def _archived(file: LogFile, failures: list[DataFileError]) -> Iterator[_Placed]:
    """Yield the samples of an archive, one in memory at a time; a run that was interrupted has no header."""
    # not at the top: `zipfile` takes long to import
    from orchtrace_corpus.trace.importers.core.archives import Archive

    with Archive(file) as archive:
        name = next((name for name in _HEADERS if name in archive.names), "")
        header = mapping(parts.decoded(archive.read(name) if name else b"null"))
        for name in archive.names:
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                try:
                    data = archive.read(name)
                except DataFileError as error:
                    failures.append(error)
                    continue
                sample = parts.decoded(data, _Sample) or parts.lenient(parts.decoded(data), _Sample)
                yield mapping(header.get("eval")), masked(f"{file.name}/{name}"), 1, sample


def _documented(file: LogFile) -> Iterator[_Placed]:
    members = document(file).members()
    about = mapping(members["eval"].value() if "eval" in members else None)
    for part in members["samples"].elements() if "samples" in members else ():
        yield about, file.name, part.line, part.value(_Sample) or parts.lenient(part.value(), _Sample)


class _SampleReader:
    """Reads the events of a sample into spans."""

    def __init__(self, sample: _Sample, file: str, line: int, privacy: Privacy) -> None:
        self._sample, self._file, self._line = sample, file, line
        self._run, self._privacy = Run("inspect_ai", privacy), privacy
        self._attachments = mapping(sample.attachments)
        self._opened = {
            string(event.id): event for event in sample.events if event.event == "span_begin" and string(event.id)
        }
        self._spans: list[Span] = []
        self._ends = {
            string(event.id): instant(event.timestamp) for event in sample.events if event.event == "span_end"
        }
        self._calls = self._tool_spans()
        self._total = 0

    def trace(self, about: Mapping[str, Any]) -> Trace:
        """Return the trace, given what the log says about the evaluation."""
        sample, run = self._sample, self._run
        name = f"{string(about.get('task'))} {_label(sample.id)}".strip()
        version = string(mapping(about.get("packages")).get("inspect_ai"))
        bundle = Bundle(string(sample.uuid) or f"{name} {_label(sample.epoch)}", name, "inspect_ai", version)
        self._read()
        bundle.spans = self._spans
        from orchtrace_corpus.trace.importers.spans.events import write_events

        topology = write_events(bundle, run)
        stated = [usage for value in mapping(sample.model_usage).values() if (usage := _counts(value)) is not None]
        for usage in stated:
            run.leave_out(LedgerLine.RESTATED, usage)
        if stated and sum((usage.input or 0) + (usage.output or 0) for usage in stated) != self._total:
            run.report.note(Problem.RESTATED_DIFFERS, f"{self._file}:{self._line}")
        trace = run.trace(topology=topology)
        epoch = sample.epoch if type(sample.epoch) is int and 0 <= sample.epoch < 2**53 else None
        run_id = string(about.get("run_id")) or string(about.get("eval_id"))
        trace.run = RunOf(" ".join(filter(None, (masked(run_id), masked(name)))), epoch)
        self._grade(trace)
        return trace

    def _grade(self, trace: Trace) -> None:
        """Add the scores, which are outcomes, and the stated times of the sample, with and without waiting."""
        scores, letters = dict[str, float](), dict[str, float]()
        for name, score in mapping(self._sample.scores).items():
            value = mapping(score).get("value")
            values = value if isinstance(value, dict) else {"": value}
            for inner, mark in values.items():
                score_name = masked(f"{name}.{inner}" if inner else name)
                if isinstance(mark, int | float) and (mark == 0 or _LEAST <= abs(mark) <= _MOST):
                    scores[score_name] = float(mark)
                elif isinstance(mark, str) and mark in _GRADES:
                    scores[score_name] = letters[score_name] = _GRADES[mark]
        add_scores(trace, scores)
        if len(letters) == 1:
            trace.metrics.setdefault("task_success", *letters.values())
        for name, took in (("total_time", self._sample.total_time), ("working_time", self._sample.working_time)):
            if (seconds := _duration(took)) is not None:
                trace.metrics[f"{name}_s"] = seconds

    def _tool_spans(self) -> dict[int, str]:
        """Return the spans of calls by the index of their event: that around its agent, else the next of its tool."""
        waiting: dict[tuple[str, str], list[str]] = {}
        for name, begun in self._opened.items():
            if begun.type == "tool":
                waiting.setdefault((self._above(name, ("handoff",)), string(begun.name)), []).append(name)
        span_of = {}
        for index, event in enumerate(self._sample.events):
            fits = waiting.get((string(event.span_id), string(event.function)), []) if event.event == "tool" else []
            if fits:
                around_agent = self._above(string(event.agent_span_id))
                span_of[index] = fits.pop(fits.index(around_agent) if around_agent in fits else 0)
        return span_of

    def _above(self, name: str, skipped: Sequence[str] = ()) -> str:
        """Return the next span around another that is of none of the skipped types."""
        reached = {name}
        while name := string(self._opened[name].parent_id) if name in self._opened else "":
            if name in reached or name not in self._opened or self._opened[name].type not in skipped:
                break
            reached.add(name)
        return name

    def _wrappers(self) -> set[str]:
        """Return the agents' spans that hold nothing but another one, as `collect` opens around its agents."""
        inside: dict[str, list[Any]] = {}
        for event in self._sample.events:
            if event.event == "span_begin":
                inside.setdefault(string(event.parent_id), []).append(event.type)
            elif string(event.event) not in _SILENT:
                inside.setdefault(string(event.span_id), []).append(None)
        return {name for name, types in inside.items() if types == ["agent"]}

    def _span(self, span_id: str, parent: str, kind: Kind, name: str, event: _Event) -> Span:
        begin, end = instant(event.timestamp), instant(event.completed)
        span = Span(span_id, parent, kind, name, self._file, self._line, start=begin, end=end)
        self._spans.append(span)
        return span

    def _read(self) -> None:
        wrappers, tools = self._wrappers(), set(self._calls.values())
        root = Span("sample", "", Kind.CHAIN, string(self._sample.id), self._file, self._line)
        limit = mapping(self._sample.limit)
        root.is_error = bool(self._sample.error or limit)
        if root.is_error:
            root.error_type = spans.error_kind(mapping(self._sample.error).get("message")) or "error"
            if limit and not self._sample.error:
                root.error_type = f"{string(limit.get('type'))}_limit"
        self._spans.append(root)
        for index, event in enumerate(self._sample.events):
            kind, around = event.event, string(event.span_id)
            if kind == "span_begin":
                name = string(event.id)
                if name and name not in tools and event.type != "handoff":
                    is_agent = event.type == "agent" and name not in wrappers
                    parent = self._above(name, ("handoff",)) or root.id
                    span = self._span(name, parent, Kind.AGENT if is_agent else Kind.CHAIN, string(event.name), event)
                    span.is_named, span.end = is_agent, self._ends.get(name)
            elif kind == "model":
                self._take_answer(index, event, around or root.id)
            elif kind == "tool":
                self._take_call(index, event, around or root.id)
            elif kind == "approval":
                approver = string(event.approver) or "approval"
                guard = self._span(f"#{index}", around or root.id, Kind.GUARDRAIL, approver, event)
                guard.end = guard.start
                guard.is_triggered, guard.more = string(event.decision) in _REFUSED, {}
                if event.decision in tuple(GateDecision):
                    guard.more["decision"] = GateDecision(event.decision)
                if approver in _APPROVERS:
                    guard.more["decided_by"] = _APPROVERS[approver]
            elif kind == "input":
                person = self._span(f"#{index}", around or root.id, Kind.PERSON, "", event)
                person.end, person.output = person.start, self._reference(parts.decoded(event.input))
            elif string(kind) in _SILENT:
                self._run.report.skip(str(kind))
            else:
                self._run.report.note_unknown(masked(f"event {str(kind)[:100]}"))
        moments = [moment for span in self._spans[1:] for moment in (span.start, span.end) if moment]
        root.start, root.end = min(moments, default=None), max(moments, default=None)

    def _take_answer(self, index: int, event: _Event, around: str) -> None:
        answer = self._span(string(event.uuid) or f"#{index}", around, Kind.INFERENCE, "", event)
        output = mapping(event.output)
        choice = mapping(next(iter(items(output.get("choices"))), None))
        message = mapping(choice.get("message"))
        answer.model = string(output.get("model")) or string(event.model)
        answer.output = self._reference(message.get("content"))
        calls = [call for call in map(mapping, items(message.get("tool_calls"))) if string(call.get("function"))]
        answer.calls = tuple(
            Call(string(call.get("id")), call["function"], self._reference(call.get("arguments"))) for call in calls
        )
        reason = masked(string(choice.get("stop_reason")))
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
            self._total += (answer.usage.input or 0) + (answer.usage.output or 0)

    def _take_call(self, index: int, event: _Event, around: str) -> None:
        name = self._calls.get(index) or string(event.uuid) or f"#{index}"
        call = self._span(name, around, Kind.TOOL, string(event.function), event)
        call.call_id = string(event.id)
        call.arguments, call.output = self._reference(event.arguments), self._reference(event.result)
        worked = _duration(event.working_time)
        call.more = {"run_time": worked} if worked is not None else None
        if event.error:
            call.is_error, call.error_type = True, string(mapping(event.error).get("type")) or "tool_error"

    def _reference(self, content: Any) -> str:
        """Return the reference to a content, whose long texts are among the attachments."""
        return self._privacy.reference(self._resolved(content) if self._privacy.keep_content else content)

    def _resolved(self, content: Any) -> Any:
        if isinstance(content, str) and content.startswith(_ATTACHMENT):
            return self._attachments.get(content.removeprefix(_ATTACHMENT), content)
        if isinstance(content, list):  # the parts of a message, each an object
            return [
                {**part, "text": self._resolved(part.get("text"))} if isinstance(part, dict) else part
                for part in content
            ]
        if isinstance(content, dict):  # arguments
            return {name: self._resolved(part) if isinstance(part, str) else part for name, part in content.items()}
        return content


def _counts(usage: Any) -> Usage | None:
    """Return token counts, the input with the tokens from and to caches."""
    if not isinstance(usage, Mapping):
        return None
    names = ("input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "reasoning_tokens")
    prompt, output, cached_read, written, reasoning = (count(usage.get(name)) for name in names)
    cached = (cached_read or 0) + (written or 0)
    if prompt is not None and count(usage.get("total_tokens")) != prompt + (output or 0):
        prompt += cached
    return Usage(prompt, output, cached_read, written, reasoning, count(usage.get("total_tokens")))


def _duration(value: Any) -> float | None:
    """Return a number of seconds; None for any other value."""
    return round(float(value), 6) if type(value) in (int, float) and 0 <= value < 1e12 else None


def _label(value: Any) -> str:
    """Return the id of a sample or an epoch, a number or a text, as text."""
    return str(value) if type(value) in (int, str) else ""
