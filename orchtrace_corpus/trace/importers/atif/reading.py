"""Decode ATIF documents, and turn their steps into transcripts of agents.

Harbor, RFC 0001, Agent Trajectory Interchange Format, versions 1.0 to 1.8. Only members that concern agents, calls or
tokens are decoded. Most are declared as `Any`, as programs write them with values of other types.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.json_parts import lenient
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, instant, moment
from orchtrace_corpus.trace.importers.core.usage import counts
from orchtrace_corpus.trace.importers.core.values import as_count, as_object, as_text
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import TokenRefs

ABSENT = Raw(b"null")  # the value of an undecoded member that is absent


class _Invocation(Struct, gc=False):
    """The begin and end of a call, in seconds since 1970, as NVIDIA's NeMo Agent Toolkit writes them."""

    start_timestamp: Any = None
    end_timestamp: Any = None


class _Extra(Struct, gc=False):
    """The members of `extra` that programs add to ATIF."""

    invocation: _Invocation | None = None
    ancestry: Raw = ABSENT
    status: Any = None
    is_error: Any = None
    agent_name: Any = None
    subagent_name: Any = None
    orchtrace: Raw = ABSENT


class _Agent(Struct, gc=False):
    name: Any = None
    version: Any = None
    model_name: Any = None
    extra: _Extra | None = None


class _Metrics(Struct, gc=False):
    """The members of `metrics`; lists of single tokens stay undecoded."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    cached_tokens: Any = None
    cost_usd: Any = None
    prompt_token_ids: Raw = ABSENT
    completion_token_ids: Raw = ABSENT
    logprobs: Raw = ABSENT
    extra: Any = None


class _Call(Struct, gc=False):
    tool_call_id: Any = None
    function_name: Any = None
    arguments: Any = None
    extra: _Extra | None = None


class _Reference(Struct, gc=False):
    trajectory_id: Any = None
    trajectory_path: Any = None
    extra: _Extra | None = None


class _Result(Struct, gc=False):
    source_call_id: Any = None
    content: Any = None
    subagent_trajectory_ref: list[_Reference] | None = None
    extra: _Extra | None = None


class _Observation(Struct, gc=False):
    results: list[_Result] | None = None


class _Step(Struct, gc=False):
    step_id: Any = None
    timestamp: Any = None
    source: Any = None
    model_name: Any = None
    message: Any = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: Any = None
    llm_call_count: Any = None
    extra: _Extra | None = None


class Document(Struct, gc=False):
    """A trajectory, with those of its sub-agents."""

    trajectory_id: Any = None
    session_id: Any = None
    agent: _Agent | None = None
    steps: list[_Step] = []
    final_metrics: Any = None
    continued_trajectory_ref: Any = None
    subagent_trajectories: list["Document"] | None = None
    extra: _Extra | None = None

    @property
    def is_ours(self) -> bool:
        """Return True if this package exported it."""
        return self.extra is not None and self.extra.orchtrace is not ABSENT


_DOCUMENT = msgspec.json.Decoder(Document)
_STEP_ID = re.compile(rb'"step_id"\s*:\s*(\d+)')
_BACKSLASH = ord("\\")


def decode(data: bytes) -> Document:
    """Return a document; members of a wrong type are left out."""
    try:
        return _DOCUMENT.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError):
        document = lenient(msgspec.json.decode(data.decode("utf-8", "replace")), Document)
        if document is None:
            raise
        return document


def step_lines(data: bytes, document: Document) -> Iterator[int]:
    """Return the line of each step, in order: the steps of a trajectory come before those of its sub-agents.

    Each `step_id` in the text marks a step. If the order of the ids differs, or in a text of one line, each line is 1.
    """
    lines: list[int] = []
    marked_ids: list[int] = []
    if b"\n" in data:
        line, previous = 1, 0
        for match in _STEP_ID.finditer(data):
            begin = match.start()
            if data[begin - 1] != _BACKSLASH:  # else the quote is escaped: the end of a longer name
                between, previous = data[previous:begin], begin
                line += len(between) - len(between.replace(b"\n", b""))  # twice as fast as `count`
                lines.append(line)
                marked_ids.append(int(match[1]))
    step_ids: list[Any] = []
    waiting = [document]
    while waiting:
        trajectory = waiting.pop()
        step_ids += [step.step_id for step in trajectory.steps]
        waiting += reversed(trajectory.subagent_trajectories or ())
    if marked_ids != step_ids:
        lines = [1] * len(step_ids)
    return iter(lines)


# names in `metrics.extra`, as ATIF has no field for these counts
_CACHE_WRITES = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")
_REASONING = ("reasoning_tokens", "thoughts_tokens", "reasoning_output_tokens")
_NOTIFICATION = re.compile(r"\s*<task-notification>")
_NUMBERS = (float, int)  # for comparisons with `type`, as a bool is an instance of int
_NO_TOKEN_LISTS = (ABSENT, ABSENT, ABSENT)
_NO_COUNTS = (None,) * 5
_UNKNOWN = Status.UNKNOWN  # Python 3.11 is slow to look up a member


class Delegation(NamedTuple):
    """A reference to a sub-agent's trajectory in the result of a call."""

    result: steps.ToolResult
    call: steps.ToolCall | None  # the call that delegated to the sub-agent; None if the log does not have it
    id: str  # the `trajectory_id`; empty if the reference has none
    path: str  # the file of the trajectory; empty for one in the same file
    name: str  # the sub-agent's name; empty if the reference has none


class Notification(NamedTuple):
    """A step that reports the end of a call in the background."""

    step: steps.Step
    call_id: str
    status: Status
    ref: str  # the reference to its text


class Trajectory:
    """The transcript of a trajectory, and its links to others.

    `pointer` is the JSON pointer to it in its file; `lines` yields the line of each of its steps.
    """

    def __init__(self, file: LogFile, document: Document, lines: Iterator[int], pointer: str, run: Run) -> None:
        self.file = file
        self._run, self._pointer, self._privacy, self._report = run, pointer, run.privacy, run.report
        agent = document.agent or _Agent()
        self.id, self.session = as_text(document.trajectory_id), as_text(document.session_id)
        self.name, self.version = masked(as_text(agent.name)), masked(as_text(agent.version))  # the agent's
        self._model = masked(as_text(agent.model_name))
        self.transcript = steps.Transcript(agent="", key=f"{file.path}#{pointer}")
        if agent.extra is not None:
            self.transcript.role = masked(as_text(agent.extra.subagent_name))
        self.references: list[Delegation] = []
        self.notifications: list[Notification] = []
        self.calls: dict[str, steps.ToolCall] = {}  # by id
        self.continued = as_text(document.continued_trajectory_ref)  # the file that continues it; empty for none
        final_metrics = as_object(document.final_metrics)
        prompt_tokens = as_count(final_metrics.get("total_prompt_tokens"))
        completion_tokens = as_count(final_metrics.get("total_completion_tokens"))
        self.totals: tuple[int, int] | None = None  # stated prompt and completion tokens, if both are stated
        if prompt_tokens is not None and completion_tokens is not None:
            self.totals = prompt_tokens, completion_tokens
        self.spent = (0, 0)  # prompt and completion tokens of its own steps
        self.calls_without_usage = 0  # the number of model calls without usage
        self.has_times = False  # True if any step has a time
        self.children: list[Trajectory] = []  # the trajectories embedded in it
        self.by_id: dict[str, Trajectory] = {}  # `children` by id
        self._has_prompt = False  # True after the first input of a person
        self._has_ancestry = False  # True if a step has `extra.ancestry`, as those of NVIDIA's converter
        self._report.records_read += len(document.steps)
        for index, step in enumerate(document.steps):
            self._read_step(step, steps.Place(file.name, next(lines)), index)

    @property
    def begin(self) -> steps.Place:
        """Return the place of its first step."""
        return self.transcript.steps[0].place if self.transcript.steps else steps.Place(self.file.name, 1)

    def _read_step(self, step: _Step, place: steps.Place, index: int) -> None:
        if step.is_copied_context is True:  # history of another trajectory, counted there
            self._run.leave_out(LedgerLine.COPIED_HISTORY, _stated_counts(step.metrics))
            return
        time = moment(step.timestamp)
        self.has_times = self.has_times or time != NO_TIME
        answer = None
        if step.source == "agent":
            answer = self._read_answer(step, time, place, index)
        elif step.source == "user":
            self._read_input(step, time, place)
        elif step.source == "system":
            self.transcript.add(steps.Note(time, place))
        else:
            self._report.note_unknown(masked(f"step of source {str(step.source)[:100]}"))
            return
        calls_by_id: dict[str, steps.ToolCall] = {}  # the calls of this step
        for tool_call in step.tool_calls or ():
            self._read_call(tool_call, answer, calls_by_id, time, place)
        if step.observation is not None:
            for result in step.observation.results or ():
                self._read_result(result, calls_by_id, time, place)

    def _read_answer(self, step: _Step, time: float, place: steps.Place, index: int) -> steps.ModelCall | None:
        """Add the model's answer of a step, and return it; None if the step says that it called no model."""
        invocation = None
        if step.extra is not None:
            invocation = _invocation(step.extra)
            self._has_ancestry = self._has_ancestry or step.extra.ancestry is not ABSENT
        metrics, stated = step.metrics, _stated_counts(step.metrics)
        usage = counts(stated)
        has_usage = any(usage) and usage[:2] != (None, None)  # `spend` needs the input or the output
        if step.llm_call_count == 0 and not has_usage:
            self._report.skip("agent step without a model call")
            self.transcript.add(steps.Note(time, place))
            return None
        if not has_usage and step.llm_call_count is None:
            previous = self.transcript.steps[-1] if self.transcript.steps else None
            if isinstance(previous, steps.ModelCall) and previous.spent is not None:  # one answer in two steps
                previous.end = max(previous.end, time)
                previous.final = not step.tool_calls
                return previous
        model = masked(step.model_name) if type(step.model_name) is str else self._model
        call = steps.ModelCall(time, place, end=time, model=model)
        call.final = not step.tool_calls
        call.ref = self._privacy.reference(step.message)
        event_fields: dict[str, Any] = {}
        if invocation is not None and time != NO_TIME:
            call.time, call.end = invocation
            event_fields["t_request"] = call.time
        prompt_tokens, completion_tokens, *_ = self._run.spend(call, stated)
        if call.spent is not None:  # set by `spend`
            self.spent = self.spent[0] + (prompt_tokens or 0), self.spent[1] + (completion_tokens or 0)
        else:
            self.calls_without_usage += 1
        if metrics is not None:
            cost = metrics.cost_usd
            if type(cost) in _NUMBERS and 0 <= cost < 1e300:
                event_fields["cost_usd"] = float(cost)
            token_refs = self._token_refs(metrics, index)
            if token_refs is not None:
                event_fields["token_refs"] = token_refs
        if event_fields:
            call.more = event_fields
        self.transcript.add(call)
        return call

    def _token_refs(self, metrics: _Metrics, index: int) -> TokenRefs | None:
        """Return where an answer's single tokens are: the file, and the JSON pointer to each list of tokens in it."""
        token_lists = metrics.prompt_token_ids, metrics.completion_token_ids, metrics.logprobs
        if token_lists == _NO_TOKEN_LISTS:
            return None
        place = f"{self.file.name}#{self._pointer}/steps/{index}/metrics"
        refs = []
        for name, raw in zip(("prompt_token_ids", "completion_token_ids", "logprobs"), token_lists, strict=True):
            ref = f"{place}/{name}" if bytes(memoryview(raw)[:1]) == b"[" else ""  # empty for anything but a list
            refs.append(ref)
        return TokenRefs(*refs)

    def _read_input(self, step: _Step, time: float, place: steps.Place) -> None:
        """Add an input of the agent: a prompt of a person, or a text of a program."""
        text = as_text(step.message)
        ref = self._privacy.reference(step.message)
        if _NOTIFICATION.match(text):
            note = steps.Note(time, place)
            self.transcript.add(note)
            for call_id, status in steps.notified(text):
                self.notifications.append(Notification(note, call_id, status, ref))
        elif self._has_ancestry and self._has_prompt:  # NVIDIA's converter writes the input of each model call
            self.transcript.add(steps.Note(time, place))
        else:
            self._has_prompt = True
            self.transcript.add(steps.UserInput(time, place, ref=ref))

    def _read_call(
        self,
        tool_call: _Call,
        answer: steps.ModelCall | None,
        calls_by_id: dict[str, steps.ToolCall],
        time: float,
        place: steps.Place,
    ) -> None:
        call_id, tool = as_text(tool_call.tool_call_id), masked(as_text(tool_call.function_name))
        if call_id in calls_by_id:
            self._report.note(Problem.CALL_WRITTEN_TWICE, str(place))
            return
        call = steps.ToolCall(time, place, model_call=answer, id=masked(call_id), tool=tool)
        call.ref = self._privacy.reference(tool_call.arguments)
        invocation = None if tool_call.extra is None else _invocation(tool_call.extra)
        if invocation is not None and time != NO_TIME:
            begin, end = invocation
            call.time = max(begin, time)
            call.more = {"run_time": round(end - begin, 6)}
        calls_by_id[call_id] = call
        self.calls.setdefault(call_id, call)
        self.transcript.add(call)

    def _read_result(
        self, result: _Result, calls_by_id: Mapping[str, steps.ToolCall], time: float, place: steps.Place
    ) -> None:
        """Add the result of a call of this step (`calls_by_id`) or, as some programs write it, of an earlier step."""
        call_id = as_text(result.source_call_id)
        call = calls_by_id.get(call_id) or self.calls.get(call_id)
        tool_result = steps.ToolResult(time, place, status=_UNKNOWN, ref=self._privacy.reference(result.content))
        if call is not None and call.more is not None:
            tool_result.time = call.time + call.more["run_time"]
        if result.extra is not None:
            status = steps.outcome(as_text(result.extra.status).lower())
            if status is Status.ERROR or result.extra.is_error is True:
                tool_result.status, tool_result.error = Status.ERROR, "tool_error"
            elif status is Status.OK:
                tool_result.status = Status.OK
        self.transcript.add(tool_result)
        if call is not None or call_id:  # `join` reports a named call that is missing
            steps.join(call, tool_result, self._report)
        for reference in result.subagent_trajectory_ref or ():
            extra = reference.extra or _Extra()
            name = masked(as_text(extra.agent_name) or as_text(extra.subagent_name))
            trajectory_id, path = as_text(reference.trajectory_id), as_text(reference.trajectory_path)
            self.references.append(Delegation(tool_result, call, trajectory_id, path, name))


def read_trajectories(file: LogFile, data: bytes, document: Document, run: Run) -> list[Trajectory]:
    """Return the trajectory of a document and those embedded in it; each comes after the one around it."""
    lines = step_lines(data, document)
    trajectories: list[Trajectory] = []
    waiting: list[tuple[Document, str, Trajectory | None]] = [(document, "", None)]
    while waiting:
        document, pointer, around = waiting.pop()
        trajectory = Trajectory(file, document, lines, pointer, run)
        trajectories.append(trajectory)
        if around is not None:
            around.children.append(trajectory)
            around.by_id.setdefault(trajectory.id, trajectory)
        embedded = [
            (child, f"{pointer}/subagent_trajectories/{index}", trajectory)
            for index, child in enumerate(document.subagent_trajectories or ())
        ]
        waiting += reversed(embedded)  # the first is popped next, so that `lines` yields its lines
    return trajectories


def _stated_counts(metrics: _Metrics | None) -> tuple[Any, ...]:
    """Return the stated token counts: input, output, cache reads, cache writes, reasoning; None for one not stated."""
    if metrics is None:
        return _NO_COUNTS
    extra = as_object(metrics.extra)
    cache_writes = reasoning = None
    for name in _CACHE_WRITES:
        if name in extra:
            cache_writes = extra[name]
            break
    for name in _REASONING:
        if name in extra:
            reasoning = extra[name]
            break
    return metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens, cache_writes, reasoning


def _invocation(extra: _Extra) -> tuple[float, float] | None:
    """Return the begin and end of a call, in seconds since 1970; None if they are not stated."""
    invocation = extra.invocation
    if invocation is None:
        return None
    begin, end = instant(invocation.start_timestamp), instant(invocation.end_timestamp)
    if begin is None or end is None or begin > end:
        return None
    return begin, end
