"""ATIF documents as typed values, and their steps as the transcripts of agents.

Harbor, RFC 0001, Agent Trajectory Interchange Format, versions 1.0 to 1.8. Only members that concern agents, calls or
tokens are decoded; most of them may be of any kind.
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
from orchtrace_corpus.trace.importers.core.values import count, mapping, string
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import TokenRefs

ABSENT = Raw(b"null")
"""The value of an undecoded member that is absent."""


class _Invocation(Struct, gc=False):
    """The begin and end of a call, in seconds since 1970, as NVIDIA writes them."""

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
    """Return a document without the members of a wrong kind."""
    try:
        return _DOCUMENT.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError):
        document = lenient(msgspec.json.decode(data.decode("utf-8", "replace")), Document)
        if document is None:
            raise
        return document


def lines(data: bytes, document: Document) -> Iterator[int]:
    """Return the lines of all steps, those of a trajectory before those of its sub-agents, as all programs write them.

    If the text has another order, or other members named `step_id`, all steps are on the first line.
    """
    places = []
    if b"\n" in data:
        line, before = 1, 0
        for mark in _STEP_ID.finditer(data):
            at = mark.start()
            if data[at - 1] != _BACKSLASH:
                text, before = data[before:at], at
                line += len(text) - len(text.replace(b"\n", b""))  # twice as fast as `count`
                places.append((line, int(mark[1])))
    expected = []
    waiting = [document]
    while waiting:
        trajectory = waiting.pop()
        expected += [step.step_id for step in trajectory.steps]
        waiting += reversed(trajectory.subagent_trajectories or ())
    if [step_id for _, step_id in places] == expected:
        return (line for line, _ in places)
    return (1 for _ in expected)


_CACHE_WRITES = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")
_REASONING = ("reasoning_tokens", "thoughts_tokens", "reasoning_output_tokens")
"""The names in `metrics.extra` of counts that ATIF has no field for."""
_NOTIFICATION = re.compile(r"\s*<task-notification>")
_NUMBERS = (float, int)  # and not bool
_NO_TOKENS = (ABSENT, ABSENT, ABSENT)
_NOTHING = (None,) * 5
_UNKNOWN = Status.UNKNOWN  # Python 3.11 is slow to look up a member


class Delegation(NamedTuple):
    """A reference from a result to a sub-agent's trajectory."""

    step: steps.Step  # the result
    call: steps.ToolCall | None  # the call that delegated to the sub-agent; None if the log does not have it
    id: str  # the `trajectory_id`; empty if the reference has none
    path: str  # the file of the trajectory; empty for one in the same file
    name: str  # the sub-agent's name; empty if the reference has none


class Notification(NamedTuple):
    """A step that reports the end of a call in the background."""

    step: steps.Step
    call_id: str
    status: Status
    ref: str


class Trajectory:
    """The transcript of a trajectory, which is at a JSON pointer (`path`) in its file, and its links to others."""

    def __init__(self, file: LogFile, document: Document, lines: Iterator[int], path: str, run: Run) -> None:
        self.file = file
        self._run, self._pointer, self._privacy, self._report = run, path, run.privacy, run.report
        agent = document.agent or _Agent()
        self.id, self.session = string(document.trajectory_id), string(document.session_id)
        self.name, self.version = masked(string(agent.name)), masked(string(agent.version))  # of its agent
        self._model = masked(string(agent.model_name))
        self.thread = steps.Transcript("", key=f"{file.path}#{path}")
        if agent.extra is not None:
            self.thread.role = masked(string(agent.extra.subagent_name))
        self.references: list[Delegation] = []
        self.notifications: list[Notification] = []
        self.calls: dict[str, steps.ToolCall] = {}  # by their ids
        self.continued = string(document.continued_trajectory_ref)  # the file that continues it; empty for none
        stated = mapping(document.final_metrics)
        put, got = count(stated.get("total_prompt_tokens")), count(stated.get("total_completion_tokens"))
        # prompt and completion tokens by `final_metrics`; None if one of them is not stated
        self.totals = None if put is None or got is None else (put, got)
        self.spent = (0, 0)  # prompt and completion tokens of its own steps
        self.calls_without_usage = 0  # the number of model calls without usage
        self.has_times = False  # True if any step has a time
        self.children: list[Trajectory] = []  # the trajectories embedded in it
        self.by_id: dict[str, Trajectory] = {}  # the same by their ids
        self._is_asked = self._has_ancestry = False
        self._report.records_read += len(document.steps)
        for index, step in enumerate(document.steps):
            self._take(step, steps.Place(file.name, next(lines)), index)

    @property
    def begin(self) -> steps.Place:
        """Return the place of its first step."""
        return self.thread.steps[0].place if self.thread.steps else steps.Place(self.file.name, 1)

    def _take(self, step: _Step, place: steps.Place, number: int) -> None:
        if step.is_copied_context is True:  # history of another trajectory, counted there
            self._run.leave_out(LedgerLine.COPIED_HISTORY, _stated(step.metrics))
            return
        time = moment(step.timestamp)
        self.has_times = self.has_times or time != NO_TIME
        call = None
        if step.source == "agent":
            call = self._take_answer(step, time, place, number)
        elif step.source == "user":
            self._take_input(step, time, place)
        elif step.source == "system":
            self.thread.add(steps.Note(time, place))
        else:
            self._report.note_unknown(masked(f"step of source {str(step.source)[:100]}"))
            return
        own: dict[str, steps.ToolCall] = {}
        for tool_call in step.tool_calls or ():
            self._take_call(tool_call, call, own, time, place)
        if step.observation is not None:
            for result in step.observation.results or ():
                self._take_result(result, own, time, place)

    def _take_answer(self, step: _Step, time: float, place: steps.Place, number: int) -> steps.ModelCall | None:
        """Return the answer of a step of the agent; None if the step says that it called no model."""
        invocation = None
        if step.extra is not None:
            invocation = _invocation(step.extra)
            self._has_ancestry = self._has_ancestry or step.extra.ancestry is not ABSENT
        metrics, stated = step.metrics, _stated(step.metrics)
        known = counts(stated)
        is_paid = any(known) and (known[0] is not None or known[1] is not None)
        if step.llm_call_count == 0 and not is_paid:
            self._report.skip("agent step without a model call")
            self.thread.add(steps.Note(time, place))
            return None
        if not is_paid and step.llm_call_count is None:
            before = self.thread.steps[-1] if self.thread.steps else None
            if isinstance(before, steps.ModelCall) and before.spent is not None:  # one answer in two steps
                before.end, before.final = max(before.end, time), not step.tool_calls
                return before
        model = masked(step.model_name) if type(step.model_name) is str else self._model
        call = steps.ModelCall(time, place, 0.0, time, model)
        call.final = not step.tool_calls
        call.ref = self._privacy.reference(step.message)
        more: dict[str, Any] = {}
        if invocation is not None and time != NO_TIME:
            begin, call.end = invocation
            call.time = more["t_request"] = min(begin, call.end)
        put, got, *_ = self._run.spend(call, stated)
        if call.spent is not None:
            self.spent = self.spent[0] + (put or 0), self.spent[1] + (got or 0)
        else:
            self.calls_without_usage += 1
        if metrics is not None:
            cost = metrics.cost_usd
            if type(cost) in _NUMBERS and 0 <= cost < 1e300:
                more["cost_usd"] = float(cost)
            if (refs := self._token_refs(metrics, number)) is not None:
                more["token_refs"] = refs
        if more:
            call.more = more
        self.thread.add(call)
        return call

    def _token_refs(self, metrics: _Metrics, number: int) -> TokenRefs | None:
        """Return the places of an answer's single tokens: a JSON pointer behind the name of the file."""
        lists = metrics.prompt_token_ids, metrics.completion_token_ids, metrics.logprobs
        if lists == _NO_TOKENS:
            return None
        place = f"{self.file.name}#{self._pointer}/steps/{number}/metrics"
        names = ("prompt_token_ids", "completion_token_ids", "logprobs")
        is_list = (bytes(memoryview(raw)[:1]) == b"[" for raw in lists)
        return TokenRefs(*(f"{place}/{name}" if there else "" for name, there in zip(names, is_list, strict=True)))

    def _take_input(self, step: _Step, time: float, place: steps.Place) -> None:
        """Add an input of the agent, from a person or a program."""
        text = string(step.message)
        ref = self._privacy.reference(step.message)
        if _NOTIFICATION.match(text):
            note = steps.Note(time, place)
            self.thread.add(note)
            for call_id, status in steps.notified(text):
                self.notifications.append(Notification(note, call_id, status, ref))
        elif self._has_ancestry and self._is_asked:  # the input of a model call, as NVIDIA's converter writes it
            self.thread.add(steps.Note(time, place))
        else:
            self._is_asked = True
            self.thread.add(steps.UserInput(time, place, ref=ref))

    def _take_call(
        self, made: _Call, by: steps.ModelCall | None, own: dict[str, steps.ToolCall], time: float, place: steps.Place
    ) -> None:
        call_id, tool = string(made.tool_call_id), masked(string(made.function_name))
        if call_id in own:
            self._report.note(Problem.CALL_WRITTEN_TWICE, str(place))
            return
        call = steps.ToolCall(time, place, call=by, id=masked(call_id), tool=tool)
        call.ref = self._privacy.reference(made.arguments)
        invocation = _invocation(made.extra) if made.extra is not None else None
        if invocation is not None and time != NO_TIME:
            begin, end = invocation
            call.time = max(begin, time)
            call.more = {"run_time": round(end - begin, 6)}
        own[call_id] = call
        self.calls.setdefault(call_id, call)
        self.thread.add(call)

    def _take_result(self, made: _Result, own: Mapping[str, steps.ToolCall], time: float, place: steps.Place) -> None:
        """Add the result of a call of this step or, as some programs write it, of an earlier one."""
        call_id = string(made.source_call_id)
        call = own.get(call_id) or self.calls.get(call_id)
        result = steps.ToolResult(time, place, status=_UNKNOWN, ref=self._privacy.reference(made.content))
        if call is not None and call.more is not None:
            result.time = call.time + call.more["run_time"]
        if made.extra is not None:
            status = steps.outcome(string(made.extra.status).lower())
            if status is Status.ERROR or made.extra.is_error is True:
                result.status, result.error = Status.ERROR, "tool_error"
            elif status is Status.OK:
                result.status = Status.OK
        self.thread.add(result)
        if call is not None or call_id:
            steps.join(call, result, self._report)
        for reference in made.subagent_trajectory_ref or ():
            extra = reference.extra or _Extra()
            name = masked(string(extra.agent_name) or string(extra.subagent_name))
            trajectory_id, path = string(reference.trajectory_id), string(reference.trajectory_path)
            self.references.append(Delegation(result, call, trajectory_id, path, name))


def read_trajectories(file: LogFile, data: bytes, document: Document, run: Run) -> list[Trajectory]:
    """Return the trajectory of a document and those embedded in it, each behind the one around it."""
    line_numbers, trees = lines(data, document), list[Trajectory]()
    waiting: list[tuple[Document, str, Trajectory | None]] = [(document, "", None)]
    while waiting:
        document, path, around = waiting.pop()
        tree = Trajectory(file, document, line_numbers, path, run)
        trees.append(tree)
        if around is not None:
            around.children.append(tree)
            around.by_id.setdefault(tree.id, tree)
        embedded = enumerate(document.subagent_trajectories or ())
        waiting += reversed([(child, f"{path}/subagent_trajectories/{index}", tree) for index, child in embedded])
    return trees


def _stated(metrics: _Metrics | None) -> tuple[Any, ...]:
    """Return the stated counts: input, output, cache reads, cache writes, reasoning."""
    if metrics is None:
        return _NOTHING
    further = mapping(metrics.extra)
    written = next((further[name] for name in _CACHE_WRITES if name in further), None)
    reasoning = next((further[name] for name in _REASONING if name in further), None)
    return metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens, written, reasoning


def _invocation(extra: _Extra) -> tuple[float, float] | None:
    """Return the begin and end of a call; None if they are not stated."""
    invocation = extra.invocation
    if invocation is None:
        return None
    begin, end = instant(invocation.start_timestamp), instant(invocation.end_timestamp)
    return (begin, end) if begin is not None and end is not None and begin <= end else None
