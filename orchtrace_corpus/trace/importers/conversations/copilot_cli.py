"""Import sessions of GitHub Copilot CLI: files with the events of all agents.

The `parentId` of an event is not read: it is only the event written before.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import duration, moment
from orchtrace_corpus.trace.importers.core.values import (
    as_count,
    as_object,
    as_text,
    object_field,
    objects_in,
    text_field,
)
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Trace

_USAGE_MEMBERS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_REFUSED = "denied-interactively-by-user"  # the kind of a decision
_UNATTENDED = ("unattended", "rule", "hook", "policy", "auto")
"""A decision with one of these words in its source was not made by a person."""
_SKIPPED_PREFIXES = ("assistant.", "command.", "hook.", "mcp.", "session.", "skill.", "subagent.", "system.", "tool.")
"""The beginnings of known types of events; of these events, only those in `_READERS` are read."""


class _Row(Struct, gc=False, rename="camel"):
    kind: Any = field(default=None, name="type")
    id: Any = None
    agent_id: Any = None
    timestamp: Any = None
    data: Any = None


class _Event(Struct, gc=False):
    """The content of a row that is read, with its agent, its time (negative if unknown) and its place."""

    data: dict[str, Any]
    agent: str
    time: float
    place: steps.Place


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a session of Copilot CLI: its start names the producer."""
    starts = [as_object(row.get("data")) for row in beginning.rows if row.get("type") == "session.start"]
    return any(start.get("producer") == "copilot-agent" for start in starts)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the key of the session that a file starts."""
    for row in reader.rows(_Row):
        session_id = text_field(row.data, "sessionId")
        if row.kind == "session.start" and session_id:
            return [f"session {session_id}"]
    return [os.path.realpath(reader.file.path)]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    for file in files:
        reading.read_file(file)
    run = reading.run
    if not run.name:
        folder, name = os.path.split(files[0].path_text)
        run.name = masked_path(os.path.basename(folder)) if name == "events.jsonl" else files[0].stem
    for call, output_tokens in reading.outputs.values():  # at the end, when it is known which answers have usage
        run.spend_output(call, output_tokens)
    yield run.trace()


class _Segment(Struct):
    """The answers until a shutdown. The shutdown states the total of their tokens."""

    calls: list[steps.ModelCall] = field(default_factory=list)  # the answers without usage
    spent: tuple[int, int] | None = None  # input with caches, and output, of answers with usage; None: no such answer


class _Reading:
    """Reads the events of a session into a `Run`."""

    def __init__(self, privacy: Privacy) -> None:
        self.run = Run("copilot_cli", privacy)
        self._report = self.run.report
        self._seen_ids: set[str] = set()  # of events; those of usages and messages begin with that word
        self._answers_by_service_call: dict[tuple[str, str], steps.ModelCall] = {}  # by agent and `apiCallId`
        self._answers_without_message: dict[str, steps.ModelCall] = {}  # by agent: usage is read, its message will come
        self._last_answers: dict[str, steps.ModelCall] = {}  # by agent
        self._segment = _Segment()
        self.outputs: dict[int, tuple[steps.ModelCall, Any]] = {}  # answer and `outputTokens`, by `id(answer)`
        self._callers: dict[str, str] = {}  # agents by the ids of their calls
        self._children: dict[str, str] = {}  # sub-agents by the call that spawned them
        self._permission_requests: dict[str, _Event] = {}  # by id

    def read_file(self, file: logs.LogFile) -> None:
        name, seen_ids = file.name, self._seen_ids
        for line, row in logs.rows(file, self._report, _Row):
            event_id = row.id
            if type(event_id) is str:
                if event_id in seen_ids:
                    self._report.skip("event that repeats an earlier one")
                    continue
                seen_ids.add(event_id)
            kind = row.kind if type(row.kind) is str else ""
            read_event = _READERS.get(kind)
            if read_event is None:
                self.run.skip(kind, is_known=kind.startswith(_SKIPPED_PREFIXES))
                continue
            data = row.data if type(row.data) is dict else {}
            agent = as_text(row.agent_id)
            if not agent:
                parent_call = text_field(data, "parentToolCallId")
                agent = self._children.get(parent_call, parent_call) if parent_call else ROOT
            read_event(self, _Event(data, agent, moment(row.timestamp), steps.Place(name, line)))

    def _read_session_start(self, event: _Event) -> None:
        self.run.name = self.run.name or text_field(event.data, "sessionId")
        self.run.version = masked(text_field(event.data, "copilotVersion")) or self.run.version

    def _read_input(self, event: _Event) -> None:
        if event.agent == ROOT and event.data.get("source") in (None, "", "user"):
            self._last_answers.pop(ROOT, None)  # if a tool runs before the next answer, the person started it
            self.run.prompt(ROOT, event.time, event.place, event.data.get("content"))
        else:
            self.run.note(event.agent, event.time, event.place)  # an input that no person wrote

    def _add_answer(self, event: _Event, service_call: str) -> steps.ModelCall:
        call = self.run.answer(event.agent, event.time, event.place)
        self._last_answers[event.agent] = call
        if service_call:
            self._answers_by_service_call[event.agent, service_call] = call
        return call

    def _read_usage(self, event: _Event) -> None:
        """Read the usage of an answer, which comes before its message."""
        usage = object_field(event.data, "usage")
        service_call = text_field(usage, "apiCallId")
        stated = tuple(map(usage.get, _USAGE_MEMBERS))
        usage_id = text_field(usage.get("accounting"), "usageId")
        seen_id = f"usage {usage_id}"
        call = self._answers_by_service_call.get((event.agent, service_call)) if service_call else None
        if (call is not None and call.spent is not None) or (usage_id and seen_id in self._seen_ids):
            self.run.leave_out(LedgerLine.REPEATED_USAGE, stated)
            return
        self._seen_ids.add(seen_id)
        if call is None:
            call = self._add_answer(event, service_call)
            if not service_call:
                self._answers_without_message[event.agent] = call
        call.model = masked(text_field(usage, "model")) or call.model
        call.end = event.time
        if event.time >= 0:
            first_token_seconds = duration(usage.get("timeToFirstTokenMs"), 1000)
            request_time = event.time - duration(usage.get("duration"), 1000)
            self.run.agent(event.agent).date_request(call, request_time, first_token_seconds)
        finish_reason = masked(text_field(usage, "finishReason"))
        if finish_reason:
            call.more = {**(call.more or {}), "finish_reason": finish_reason}
        input_tokens, output_tokens, *_ = self.run.spend(call, stated)
        spent_input, spent_output = self._segment.spent or (0, 0)
        self._segment.spent = spent_input + (input_tokens or 0), spent_output + (output_tokens or 0)

    def _read_message(self, event: _Event) -> None:
        """Read a message of an answer: a text, and requests for tools."""
        data, run = event.data, self.run
        message_id, service_call = text_field(data, "messageId"), text_field(data, "apiCallId")
        seen_id = f"message {message_id}"
        if message_id and seen_id in self._seen_ids:
            self._report.skip("message that repeats an earlier one")
            return
        self._seen_ids.add(seen_id)
        if service_call:
            call = self._answers_by_service_call.get((event.agent, service_call))
        else:
            call = self._answers_without_message.pop(event.agent, None)
        if call is None:
            call = self._add_answer(event, service_call)
        if call.spent is None:
            if call not in self._segment.calls:
                self._segment.calls.append(call)
            call.end = max(call.end, event.time)  # one answer may have several messages
        if data.get("outputTokens") is not None:  # messages of one answer repeat it
            self.outputs.setdefault(id(call), (call, data["outputTokens"]))
        call.model = call.model or masked(text_field(data, "model"))
        call.note_text(text_field(data, "content"), run.privacy)
        self._last_answers[event.agent] = call
        for request in objects_in(data.get("toolRequests")):
            call_id, tool = text_field(request, "toolCallId"), text_field(request, "name")
            run.call(event.agent, call_id, tool, event.time, event.place, request.get("arguments"), call)
            self._note_call(event.agent, call_id)

    def _read_failure(self, event: _Event) -> None:
        error = masked(text_field(event.data, "errorType") or text_field(event.data, "errorCode")) or "error"
        model = masked(text_field(event.data, "model"))
        self.run.answer(event.agent, event.time, event.place, model, error=error)

    def _note_call(self, agent: str, call_id: str) -> None:
        self._callers.setdefault(call_id, agent)
        call = self.run.calls.get((agent, call_id))
        if call is not None and call.tool == "ask_user":
            call.purpose = steps.ASK

    def _read_call_start(self, event: _Event) -> None:
        """Read the beginning of a tool's run; the message of the answer mostly has its call already."""
        data, call_id = event.data, text_field(event.data, "toolCallId")
        call = self.run.calls.get((event.agent, call_id)) if call_id else None
        if call is None:
            tool, answer = text_field(data, "toolName"), self._last_answers.get(event.agent)
            self.run.call(event.agent, call_id, tool, event.time, event.place, data.get("arguments"), answer)
            self._note_call(event.agent, call_id)
        elif event.time >= 0:
            call.time = max(call.time, event.time)

    def _read_call_end(self, event: _Event) -> None:
        """Read the end of a tool's run; the program writes success even if a command failed."""
        data, call_id = event.data, text_field(event.data, "toolCallId")
        failure = object_field(data, "error")
        exit_code = object_field(data, "shellExecution").get("exitCode")
        error = "exit_code" if type(exit_code) is int and exit_code else ""
        if data.get("success") is not True:
            error = masked(text_field(failure, "code")) or "tool_error"
        content = object_field(data, "result").get("content", failure.get("message"))
        self.run.result(event.agent, call_id, event.time, event.place, content, error=error)

    def _read_permission_request(self, event: _Event) -> None:
        self._permission_requests[text_field(event.data, "requestId")] = event

    def _read_permission_decision(self, event: _Event) -> None:
        """Read the decision on a request: of a person, for whom the run waited, or of a rule."""
        run, request = self.run, self._permission_requests.pop(text_field(event.data, "requestId"), None)
        if request is None or request.time < 0 or event.time < 0:
            return
        call_id = text_field(request.data.get("permissionRequest"), "toolCallId")
        call = run.calls.get((request.agent, call_id))
        kind, source = text_field(event.data.get("result"), "kind"), text_field(event.data, "decisionSource")
        is_unattended = request.data.get("resolvedByHook") is True or any(word in source for word in _UNATTENDED)
        if kind.startswith("approve"):
            if not is_unattended:
                approval = steps.UserInput(event.time, event.place, since=request.time, asked=True)
                run.agent(request.agent).add(approval)
                if call is not None:
                    call.time = max(call.time, event.time)
        elif kind == _REFUSED:
            run.end_call(request.agent, call_id, steps.REJECTED)
        else:
            tool = call.tool if call is not None else ""
            forbidden = steps.SafetyEvent(event.time, event.place, tool=tool, error="forbidden", asking=call)
            run.agent(request.agent).add(forbidden)

    def _read_subagent_start(self, event: _Event) -> None:
        call_id, role = text_field(event.data, "toolCallId"), text_field(event.data, "agentName")
        child = event.agent or call_id
        if not child:
            return
        self._children[call_id] = child
        self.run.agent(child, text_field(event.data, "agentDisplayName") or role, role)
        waits = event.data.get("executionMode") != "background"
        self.run.spawn(child, self._callers.get(call_id, ROOT), call_id, event.place, waits=waits)

    def _read_subagent_end(self, event: _Event) -> None:
        call_id = text_field(event.data, "toolCallId")
        child, caller = self._children.get(call_id, event.agent), self._callers.get(call_id, ROOT)
        total = as_count(event.data.get("totalTokens"))
        if total is not None:
            self.run.report.enter(LedgerLine.CHILD_TOTAL, total=total)
        is_error = "error" in event.data
        if not self.run.waits_for(child):
            status = Status.ERROR if is_error else Status.OK
            self.run.end_in_background(child, caller, event.time, event.place, status)
        elif child and is_error:
            self.run.end_call(caller, call_id, "agent_error")

    def _read_shutdown(self, event: _Event) -> None:
        """Read the totals since the last shutdown, by model; they count only if no answer has usage.

        The last answer of a model then gets its total, which covers the others; without answers, an added call gets it.
        """
        metrics = event.data.get("modelMetrics") or object_field(event.data, "accountingSnapshot").get("modelMetrics")
        usage_by_model: dict[str, tuple[Any, ...]] = {}
        for model, model_metrics in as_object(metrics).items():
            usage_by_model[model] = tuple(map(object_field(model_metrics, "usage").get, _USAGE_MEMBERS))
        segment, self._segment = self._segment, _Segment()
        input_total = sum(as_count(usage[0]) or 0 for usage in usage_by_model.values())
        output_total = sum(as_count(usage[1]) or 0 for usage in usage_by_model.values())
        has_total = input_total > 0 or output_total > 0
        if segment.spent is not None or not has_total:
            for usage in usage_by_model.values():
                self.run.leave_out(LedgerLine.SESSION_TOTAL, usage)
            if has_total and segment.spent != (input_total, output_total):
                self._report.note(Problem.SESSION_TOTAL_DIFFERS, str(event.place))
            return
        charged_calls = []
        for model, usage in usage_by_model.items():
            calls = [call for call in segment.calls if call.model == masked(model) and call.spent is None]
            if not calls:
                calls = [steps.ModelCall(event.time, event.place, end=event.time, model=masked(model))]
                self.run.side_transcript(ROOT).add(calls[0])  # no part of the conversation
            self.run.spend(calls[-1], usage, LedgerLine.LAST_OF_MODEL)
            if calls[-1].spent is not None:
                calls[-1].basis = TokenBasis.PLACEHOLDER  # the total of the model, not the answer's own count
            charged_calls.append(calls[-1])
        self.run.cover([call for call in segment.calls if call.spent is None and call not in charged_calls])


_READERS: Mapping[str, Callable[[_Reading, _Event], None]] = {
    "abort": lambda reading, event: reading.run.interrupt(event.agent, event.time, event.place),
    "assistant.message": _Reading._read_message,
    "model.call_failure": _Reading._read_failure,
    "permission.completed": _Reading._read_permission_decision,
    "permission.requested": _Reading._read_permission_request,
    "session.error": _Reading._read_failure,
    "session.shutdown": _Reading._read_shutdown,
    "session.start": _Reading._read_session_start,
    "session.usage_record": _Reading._read_usage,
    "subagent.completed": _Reading._read_subagent_end,
    "subagent.failed": _Reading._read_subagent_end,
    "subagent.started": _Reading._read_subagent_start,
    "tool.execution_complete": _Reading._read_call_end,
    "tool.execution_start": _Reading._read_call_start,
    "user.message": _Reading._read_input,
}
"""The reader of each type of events."""
