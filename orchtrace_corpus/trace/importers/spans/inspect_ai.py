"""Inspect AI: logs of evaluations, `.eval` archives or JSON, a trace for each sample and epoch.

The events of a sample are flat. `span_begin` opens a span below another; a model's answer or a call names the span in
which it happened. A call has two records: a span of the type `tool`, which holds what it led to, and a `tool` event of
the agent, which says how it went. Shapes: `event/*.py` and `log/_log.py` of inspect-ai 0.3.285, version 2 of the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, Opened, document
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.core.values import count, items, mapping, string
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import grade
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
"""Correct, incorrect, partial, no answer, as Inspect's `value_to_float` takes them."""
_LEAST, _MOST = 1e-100, 1e100
"""Scores that traces can have."""
_REFUSED = frozenset(("reject", "terminate"))
_APPROVERS = {"human": DecidedBy.PERSON, "auto": DecidedBy.RULE}
"""Inspect's own approvers (`approval/_human/approver.py`, `approval/_auto.py`), and who decides in them."""
_SILENT = frozenset(
    """
    checkpoint compaction info logger sample_init sample_limit sandbox score score_edit span_end state step store
    subtask error anchor branch interrupt
    """.split()
)


class _Event(Struct):
    """The members of an event that say something about agents, calls or tokens."""

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


class _Header(Struct):
    task: str = ""
    run: str = ""
    version: str = ""


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is a log of Inspect, by the members of its archive or document."""
    if beginning.text.startswith(_ZIP):
        return any(name in beginning.text for name in (*_HEADERS, _SAMPLES + "1"))
    return beginning.outline >= _MEMBERS and '"eval_id"' in beginning.text


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a log to others: nothing."""
    return [opened.file.path]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the samples."""
    for file in files:
        with Opened(file) as opened:
            is_archive = opened.first().text.startswith(_ZIP)
        is_empty, failures = True, list[DataFileError]()
        for header, where, line, sample in _archived(file, failures) if is_archive else _documented(file):
            if sample is None:
                failures.append(DataFileError(f"{quote(where)} is not a sample"))
                continue
            with suppress(EmptyLogError):
                yield _Reading(sample, where, line, privacy).trace(header)
                is_empty = False
        if failures:
            raise failures[0]
        if is_empty:
            raise EmptyLogError(f"no sample with a model call or a tool call in {quote(file.name)}")


def _archived(file: LogFile, failures: list[DataFileError]) -> Iterator[tuple[_Header, str, int, _Sample | None]]:
    """Yield the samples of an archive, one in memory at a time; those of a run that died are there without a header."""
    from orchtrace_corpus.trace.importers.core.archives import Archive  # which takes long to load

    with Archive(file) as archive:
        name = next((name for name in _HEADERS if name in archive.names), "")
        header = _header(mapping(parts.decoded(archive.read(name) if name else b"null")).get("eval"))
        for name in archive.names:
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                try:
                    data = archive.read(name)
                except DataFileError as error:
                    failures.append(error)
                    continue
                sample = parts.decoded(data, _Sample) or parts.lenient(parts.decoded(data), _Sample)
                yield header, masked(f"{file.name}/{name}"), 1, sample


def _documented(file: LogFile) -> Iterator[tuple[_Header, str, int, _Sample | None]]:
    members = document(file).members()
    header = _header(members["eval"].value() if "eval" in members else None)
    for part in members["samples"].elements() if "samples" in members else ():
        yield header, file.name, part.line, part.value(_Sample) or parts.lenient(part.value(), _Sample)


def _header(value: Any) -> _Header:
    about = mapping(value)
    version = string(mapping(about.get("packages")).get("inspect_ai"))
    return _Header(string(about.get("task")), string(about.get("run_id")) or string(about.get("eval_id")), version)


class _Reading:
    """Reads the events of a sample into spans."""

    def __init__(self, sample: _Sample, file: str, line: int, privacy: Privacy) -> None:
        self._sample, self._file, self._line = sample, file, line
        self._run, self._privacy = Run("inspect_ai", privacy), privacy
        self._attachments = mapping(sample.attachments)
        self._opened = {
            string(event.id): event for event in sample.events if event.event == "span_begin" and string(event.id)
        }
        self._spans: list[Span] = []
        self._ends = {string(one.id): instant(one.timestamp) for one in sample.events if one.event == "span_end"}
        self._calls = self._tool_spans()
        self._total = 0

    def trace(self, header: _Header) -> Trace:
        """Return the trace."""
        sample, run = self._sample, self._run
        name = f"{header.task} {_label(sample.id)}".strip()
        bundle = Bundle(string(sample.uuid) or f"{name} {_label(sample.epoch)}", name, "inspect_ai", header.version)
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
        trace.run = RunOf(" ".join(filter(None, (masked(header.run), masked(name)))), epoch)
        self._grade(trace)
        return trace

    def _grade(self, trace: Trace) -> None:
        """Scores are outcomes; what the sample took is a figure of the log, with and without waiting."""
        scores, letters = dict[str, float](), dict[str, float]()
        for name, score in mapping(self._sample.scores).items():
            value = mapping(score).get("value")
            given = value if isinstance(value, dict) else {"": value}
            for inner, one in given.items():
                called = masked(f"{name}.{inner}" if inner else name)
                if isinstance(one, int | float) and (one == 0 or _LEAST <= abs(one) <= _MOST):
                    scores[called] = float(one)
                elif isinstance(one, str) and one in _GRADES:
                    scores[called] = letters[called] = _GRADES[one]
        grade(trace, scores)
        if len(letters) == 1:
            trace.metrics.setdefault("task_success", *letters.values())
        for name, took in (("total_time", self._sample.total_time), ("working_time", self._sample.working_time)):
            if (known := _duration(took)) is not None:
                trace.metrics[f"{name}_s"] = known

    def _tool_spans(self) -> dict[int, str]:
        """Return the span of each call, by its event's number: by the agent in it, else the next of that name there."""
        waiting: dict[tuple[str, str], list[str]] = {}
        for name, begun in self._opened.items():
            if begun.type == "tool":
                waiting.setdefault((self._above(name, ("handoff",)), string(begun.name)), []).append(name)
        found = {}
        for number, one in enumerate(self._sample.events):
            named = waiting.get((string(one.span_id), string(one.function)), []) if one.event == "tool" else []
            if named:
                of_agent = self._above(string(one.agent_span_id), ())
                found[number] = named.pop(named.index(of_agent) if of_agent in named else 0)
        return found

    def _above(self, name: str, passed: Sequence[str]) -> str:
        """Return the span around another, but for those of some types."""
        seen = {name}
        while name := string(self._opened[name].parent_id) if name in self._opened else "":
            if name in seen or name not in self._opened or self._opened[name].type not in passed:
                break
            seen.add(name)
        return name

    def _wrappers(self) -> set[str]:
        """Return the agents' spans that merely hold another one: what `collect` opens around each of its agents."""
        inside: dict[str, list[Any]] = {}
        for event in self._sample.events:
            if event.event == "span_begin":
                inside.setdefault(string(event.parent_id), []).append(event.type)
            elif string(event.event) not in _SILENT:
                inside.setdefault(string(event.span_id), []).append(None)
        return {name for name, of in inside.items() if of == ["agent"]}

    def _span(self, name: str, parent: str, kind: Kind, called: str, one: _Event) -> Span:
        begin, end = instant(one.timestamp), instant(one.completed)
        found = Span(name, parent, kind, called, self._file, self._line, start=begin, end=end)
        self._spans.append(found)
        return found

    def _read(self) -> None:
        wrappers, tools = self._wrappers(), set(self._calls.values())
        root = Span("", "", Kind.CHAIN, string(self._sample.id), self._file, self._line)
        root.id = "sample"
        limit = mapping(self._sample.limit)
        root.is_error = bool(self._sample.error or limit)
        if root.is_error:
            said = spans.error_kind(mapping(self._sample.error).get("message")) or "error"
            root.error_type = f"{string(limit.get('type'))}_limit" if limit and not self._sample.error else said
        self._spans.append(root)
        for number, one in enumerate(self._sample.events):
            kind, around = one.event, string(one.span_id)
            if kind == "span_begin":
                name = string(one.id)
                if name and name not in tools and one.type != "handoff":
                    is_agent = one.type == "agent" and name not in wrappers
                    parent = self._above(name, ("handoff",)) or root.id
                    of = self._span(name, parent, Kind.AGENT if is_agent else Kind.CHAIN, string(one.name), one)
                    of.is_named, of.end = is_agent, self._ends.get(name)
            elif kind == "model":
                self._take_answer(number, one, around or root.id)
            elif kind == "tool":
                self._take_call(number, one, around or root.id)
            elif kind == "approval":
                called = string(one.approver) or "approval"
                guard = self._span(f"#{number}", around or root.id, Kind.GUARDRAIL, called, one)
                guard.end = guard.start
                guard.is_triggered = string(one.decision) in _REFUSED
                guard.more = _decision(string(one.decision), called)
            elif kind == "input":
                person = self._span(f"#{number}", around or root.id, Kind.PERSON, "", one)
                person.end, person.output = person.start, self._reference(parts.decoded(one.input))
            elif string(kind) in _SILENT:
                self._run.report.pass_over(str(kind))
            else:
                self._run.report.note_unknown(masked(f"event {str(kind)[:100]}"))
        moments = [moment for span in self._spans[1:] for moment in (span.start, span.end) if moment]
        root.start, root.end = min(moments, default=None), max(moments, default=None)

    def _take_answer(self, number: int, one: _Event, around: str) -> None:
        answer = self._span(string(one.uuid) or f"#{number}", around, Kind.INFERENCE, "", one)
        output = mapping(one.output)
        choice = mapping(next(iter(items(output.get("choices"))), None))
        message = mapping(choice.get("message"))
        answer.model = string(output.get("model")) or string(one.model)
        answer.output = self._reference(message.get("content"))
        asked = [call for call in map(mapping, items(message.get("tool_calls"))) if string(call.get("function"))]
        answer.calls = tuple(
            Call(string(call.get("id")), call["function"], self._reference(call.get("arguments"))) for call in asked
        )
        reason = masked(string(choice.get("stop_reason")))
        answer.more = {"finish_reason": reason} if reason else {}
        if answer.start and answer.end and (worked := _duration(one.working_time)) is not None:
            answer.more["t_request"] = min(max(answer.start, answer.end - worked), answer.end)
        error = one.error or output.get("error")
        if error:
            answer.is_error, answer.error_type = True, spans.error_kind(error) or "model_error"
        if one.cache == "read":
            answer.is_free = True
        else:
            answer.usage = _counts(output.get("usage"))
        if answer.usage is not None:
            self._total += (answer.usage.input or 0) + (answer.usage.output or 0)

    def _take_call(self, number: int, one: _Event, around: str) -> None:
        name = self._calls.get(number) or string(one.uuid) or f"#{number}"
        call = self._span(name, around, Kind.TOOL, string(one.function), one)
        call.call_id = string(one.id)
        call.arguments, call.output = self._reference(one.arguments), self._reference(one.result)
        worked = _duration(one.working_time)
        call.more = {"run_time": worked} if worked is not None else None
        if one.error:
            call.is_error, call.error_type = True, string(mapping(one.error).get("type")) or "tool_error"

    def _reference(self, content: Any) -> str:
        """Return what is kept of a content; long texts stand among the attachments."""
        return self._privacy.reference(self._resolved(content) if self._privacy.keep_content else content)

    def _resolved(self, content: Any) -> Any:
        if isinstance(content, str) and content.startswith(_ATTACHMENT):
            return self._attachments.get(content.removeprefix(_ATTACHMENT), content)
        if isinstance(content, list):  # of parts of a message, each an object
            return [
                {**one, "text": self._resolved(one.get("text"))} if isinstance(one, dict) else one for one in content
            ]
        if isinstance(content, dict):  # of arguments
            return {name: self._resolved(one) if isinstance(one, str) else one for name, one in content.items()}
        return content


def _decision(decision: str, approver: str) -> dict[str, Any]:
    """Return the fields of an approval: its decision, and who took it where the approver is Inspect's own."""
    fields: dict[str, Any] = {}
    if decision in tuple(GateDecision):
        fields["decision"] = GateDecision(decision)
    if approver in _APPROVERS:
        fields["decided_by"] = _APPROVERS[approver]
    return fields


def _counts(usage: Any) -> Usage | None:
    """Token counts, the input with all that came from and went to caches."""
    if not isinstance(usage, Mapping):
        return None
    names = ("input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "reasoning_tokens")
    given, output, read, written, reasoning = (count(usage.get(name)) for name in names)
    cached = (read or 0) + (written or 0)
    if given is not None and count(usage.get("total_tokens")) != given + (output or 0):
        given += cached
    return Usage(given, output, read, written, reasoning, count(usage.get("total_tokens")))


def _duration(value: Any) -> float | None:
    """Return a number of seconds; None for what is none."""
    return round(float(value), 6) if type(value) in (int, float) and 0 <= value < 1e12 else None


def _label(value: Any) -> str:
    """Return an id of a sample or an epoch, which is a number or a text."""
    return str(value) if type(value) in (int, str) else ""
