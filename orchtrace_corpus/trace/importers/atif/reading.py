"""An ATIF document as typed values, whatever is wrong with it, and on which lines its steps are.

Harbor, RFC 0001, Agent Trajectory Interchange Format, versions 1.0 to 1.8. Only members are decoded that say something
about agents, calls or tokens, each of any kind of value where nothing depends on it.
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
"""Stands for a member that is left undecoded, and is not there."""


class _Invocation(Struct, gc=False):
    """The begin and the end of a call, in seconds since 1970, by NVIDIA's convention."""

    start_timestamp: Any = None
    end_timestamp: Any = None


class _Extra(Struct, gc=False):
    """The known members of `extra`, which are not those of ATIF."""

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
    """The members of `metrics`; lists of single tokens are left undecoded."""

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
    """The result of a call, or another observation."""

    source_call_id: Any = None
    content: Any = None
    subagent_trajectory_ref: list[_Reference] | None = None
    extra: _Extra | None = None


class _Observation(Struct, gc=False):
    results: list[_Result] | None = None


class _Step(Struct, gc=False):
    """The members of a step that say something about agents, calls or tokens."""

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
    """The members of a trajectory, with those of its sub-agents."""

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
        """Return True if we have exported it, and it can be restored."""
        return self.extra is not None and self.extra.orchtrace is not ABSENT


_DOCUMENT = msgspec.json.Decoder(Document)
_STEP_ID = re.compile(rb'"step_id"\s*:\s*(\d+)')
_BACKSLASH = ord("\\")


def decode(data: bytes) -> Document:
    """Return a document, whatever is wrong with it: members of another kind than they should be are left out."""
    try:
        return _DOCUMENT.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError):
        document = lenient(msgspec.json.decode(data.decode("utf-8", "replace")), Document)
        if document is None:
            raise
        return document


def lines(data: bytes, document: Document) -> Iterator[int]:
    """Return the lines of all steps: those of a trajectory before those of its sub-agents, as all programs write them.

    Where the text has them in another order, or holds further `step_id`, each is on the line of the document.
    """
    places = []
    if b"\n" in data:
        line, before = 1, 0
        for mark in _STEP_ID.finditer(data):
            at = mark.start()
            if data[at - 1] != _BACKSLASH:
                text, before = data[before:at], at
                line += len(text) - len(text.replace(b"\n", b""))  # `count` takes twice as long
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
"""By which names programs give, in `metrics.extra`, what ATIF has no field for."""
_NOTIFICATION = re.compile(r"\s*<task-notification>")
_NUMBERS = (float, int)  # and not bool
_NO_TOKENS = (ABSENT, ABSENT, ABSENT)
_NOTHING = (None,) * 5
_UNKNOWN = Status.UNKNOWN  # which Python 3.11 takes long to find


class Delegation(NamedTuple):
    """A sub-agent of which a result tells."""

    step: steps.Step  # the result, or the step in which it stands
    call: steps.ToolCall | None  # the call that delegated to it; None where there is none
    id: str  # its `trajectory_id`; empty where the reference has none
    path: str  # the file that it is in; empty where it is embedded
    name: str  # what it is called, as far as the reference says


class Notification(NamedTuple):
    """A step that tells of the end of a call that went on in the background."""

    step: steps.Step
    call: str
    status: Status
    ref: str


class Trajectory:
    """A trajectory as read.

    Args:
        file: The file.
        document: Its members.
        lines: The lines of its steps, and of those embedded in it.
        path: The JSON pointer of the trajectory in its file.
        run: The run that counts what it spent.
    """

    def __init__(self, file: LogFile, document: Document, lines: Iterator[int], path: str, run: Run) -> None:
        self.file = file
        self._run, self._pointer, self._privacy, self._report = run, path, run.privacy, run.report
        agent = document.agent or _Agent()
        self.id, self.session = string(document.trajectory_id), string(document.session_id)
        self.name = masked(string(agent.name))  # what its agent is called
        self.version = masked(string(agent.version))  # the version of the agent
        self._model = masked(string(agent.model_name))
        # its steps; the agent's name is still empty
        self.thread = steps.Transcript("", key=f"{file.path}#{path}")
        if agent.extra is not None:
            self.thread.role = masked(string(agent.extra.subagent_name))
        self.references: list[Delegation] = []  # the sub-agents of which it tells
        self.notifications: list[Notification] = []  # the ends of calls in the background of which it tells
        self.calls: dict[str, steps.ToolCall] = {}  # the calls by their ids
        self.continued = string(document.continued_trajectory_ref)  # the file that continues it; empty where none does
        stated = mapping(document.final_metrics)
        put, got = count(stated.get("total_prompt_tokens")), count(stated.get("total_completion_tokens"))
        # the prompt and completion tokens that `final_metrics` state; None where one of them is not stated
        self.totals = None if put is None or got is None else (put, got)
        self.spent = (0, 0)  # the prompt and completion tokens of its own steps
        self.without = 0  # how many model calls have no usage
        self.has_times = False  # whether any step has a time
        self.children: list[Trajectory] = []  # those embedded in it
        self.by_id: dict[str, Trajectory] = {}  # the same by their ids
        self._embedded = document.subagent_trajectories or []
        self._is_asked = self._has_ancestry = False
        self._report.records_read += len(document.steps)
        for index, step in enumerate(document.steps):
            self._take(step, steps.Place(file.name, next(lines)), index)

    @property
    def begin(self) -> steps.Place:
        """Return where it begins, as far as its steps say."""
        return self.thread.steps[0].place if self.thread.steps else steps.Place(self.file.name, 1)

    def embed(self, lines: Iterator[int]) -> None:
        """Read the trajectories embedded in it."""
        for index, embedded in enumerate(self._embedded):
            child = Trajectory(self.file, embedded, lines, f"{self._pointer}/subagent_trajectories/{index}", self._run)
            self.children.append(child)
            self.by_id.setdefault(child.id, child)

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
        """Return a step of the agent: one call of a model, or several; none where it says so."""
        invocation = None
        if step.extra is not None:
            invocation = _invocation(step.extra)
            self._has_ancestry = self._has_ancestry or step.extra.ancestry is not ABSENT
        metrics, stated = step.metrics, _stated(step.metrics)
        known = counts(stated)
        is_paid = any(known) and (known[0] is not None or known[1] is not None)
        if step.llm_call_count == 0 and not is_paid:
            self._report.pass_over("agent step without a model call")
            self.thread.add(steps.Note(time, place))
            return None
        if not is_paid and step.llm_call_count is None:
            before = self.thread.steps[-1] if self.thread.steps else None
            if isinstance(before, steps.ModelCall) and before.spent is not None:  # one answer, written as two steps
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
            self.without += 1
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
        """Return where the single tokens of an answer are: a JSON pointer behind the name of the file."""
        held = metrics.prompt_token_ids, metrics.completion_token_ids, metrics.logprobs
        if held == _NO_TOKENS:
            return None
        place = f"{self.file.name}#{self._pointer}/steps/{number}/metrics"
        names = ("prompt_token_ids", "completion_token_ids", "logprobs")
        marks = (bytes(memoryview(raw)[:1]) for raw in held)
        return TokenRefs(*(f"{place}/{name}" if mark == b"[" else "" for name, mark in zip(names, marks, strict=True)))

    def _take_input(self, step: _Step, time: float, place: steps.Place) -> None:
        """Take what the agent is given to read: by a person first, later also by programs."""
        text = string(step.message)
        ref = self._privacy.reference(step.message)
        if _NOTIFICATION.match(text):
            note = steps.Note(time, place)
            self.thread.add(note)
            for call_id, status in steps.notified(text):
                self.notifications.append(Notification(note, call_id, status, ref))
        elif self._has_ancestry and self._is_asked:  # NVIDIA's converter writes the input of each model call so
            self.thread.add(steps.Note(time, place))
        else:
            self._is_asked = True
            self.thread.add(steps.UserInput(time, place, ref=ref))

    def _take_call(
        self, one: _Call, call: steps.ModelCall | None, own: dict[str, steps.ToolCall], time: float, place: steps.Place
    ) -> None:
        use, tool = string(one.tool_call_id), masked(string(one.function_name))
        tool_call = steps.ToolCall(time, place, call=call, id=masked(use), tool=tool)
        tool_call.ref = self._privacy.reference(one.arguments)
        invocation = _invocation(one.extra) if one.extra is not None else None
        if invocation is not None and time != NO_TIME:
            begin, end = invocation
            tool_call.time = max(begin, time)
            tool_call.more = {"run_time": round(end - begin, 6)}
        if use in own:
            self._report.note(Problem.CALL_WRITTEN_TWICE, str(place))
            return
        own[use] = tool_call
        self.calls.setdefault(use, tool_call)
        self.thread.add(tool_call)

    def _take_result(self, result: _Result, own: Mapping[str, steps.ToolCall], time: float, place: steps.Place) -> None:
        """Take the result of a call of this step or, as some programs write it, of an earlier one."""
        use = string(result.source_call_id)
        tool_call = own.get(use) or self.calls.get(use)
        taken = steps.ToolResult(time, place, status=_UNKNOWN, ref=self._privacy.reference(result.content))
        if tool_call is not None and tool_call.more is not None:
            taken.time = tool_call.time + tool_call.more["run_time"]
        if result.extra is not None:
            status = steps.outcome(string(result.extra.status).lower())
            if status is Status.ERROR or result.extra.is_error is True:
                taken.status, taken.error = Status.ERROR, "tool_error"
            elif status is Status.OK:
                taken.status = Status.OK
        self.thread.add(taken)
        if tool_call is not None or use:
            steps.join(tool_call, taken, self._report)
        for reference in result.subagent_trajectory_ref or ():
            further = reference.extra or _Extra()
            name = string(further.agent_name) or string(further.subagent_name)
            names = string(reference.trajectory_id), string(reference.trajectory_path)
            self.references.append(Delegation(taken, tool_call, *names, masked(name)))


def below(trajectories: list[Trajectory]) -> Iterator[Trajectory]:
    """Trajectories and those embedded in them, each behind the one that it is embedded in."""
    waiting = list(reversed(trajectories))
    while waiting:
        yield (tree := waiting.pop())
        waiting += reversed(tree.children)


def _stated(metrics: _Metrics | None) -> tuple[Any, ...]:
    """Return what metrics state: input, output, cache reads, cache writes, reasoning."""
    if metrics is None:
        return _NOTHING
    further = mapping(metrics.extra)
    written = next((further[name] for name in _CACHE_WRITES if name in further), None)
    reasoning = next((further[name] for name in _REASONING if name in further), None)
    return metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens, written, reasoning


def _invocation(extra: _Extra) -> tuple[float, float] | None:
    """Return when a call began and ended; None where it is not said."""
    invocation = extra.invocation
    if invocation is None:
        return None
    begin, end = instant(invocation.start_timestamp), instant(invocation.end_timestamp)
    return (begin, end) if begin is not None and end is not None and begin <= end else None
