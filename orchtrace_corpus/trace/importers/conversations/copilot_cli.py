"""GitHub Copilot CLI sessions: one file of the events of all agents. `parentId` is only the event written before."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import duration, moment
from orchtrace_corpus.trace.importers.core.values import count, mapping, object_field, objects, string, text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Trace

_KINDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_REFUSED = "denied-interactively-by-user"
_UNATTENDED = ("unattended", "rule", "hook", "policy", "auto")
"""Words in the source of a decision that no person made."""
_SILENT = ("assistant.", "command.", "hook.", "mcp.", "session.", "skill.", "subagent.", "system.", "tool.")
"""Kinds of events, by their beginnings, that say nothing about agents, calls or tokens, unless read below."""


class _Row(Struct, gc=False, rename="camel"):
    kind: Any = field(default=None, name="type")
    id: Any = None
    agent_id: Any = None
    timestamp: Any = None
    data: Any = None


class _Event(Struct, gc=False):
    data: dict[str, Any]
    agent: str
    time: float
    place: steps.Place


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a session of Copilot CLI: by the producer that its start names."""
    starts = (mapping(row.get("data")) for row in beginning.rows if row.get("type") == "session.start")
    return any(data.get("producer") == "copilot-agent" for data in starts)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: the session that it starts."""
    names = (text_field(row.data, "sessionId") for row in reader.rows(_Row) if row.kind == "session.start")
    return [next((f"session {name}" for name in names if name), os.path.realpath(reader.file.path))]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    for file in files:
        reading.take(file)
    run = reading.run
    folder, name = os.path.split(files[0].path_text)
    run.name = run.name or (masked_path(os.path.basename(folder)) if name == "events.jsonl" else files[0].stem)
    for call, stated in reading.outputs.values():
        run.spend_output(call, stated)
    yield run.trace()


class _Segment(Struct):
    """The work until a shutdown, which states its total."""

    calls: list[steps.ModelCall] = field(default_factory=list)  # the answers without usage of their own
    spent: tuple[int, int] | None = None  # the input, with caches, and the output of those with usage


class _Reading:
    def __init__(self, privacy: Privacy) -> None:
        self.run = Run("copilot_cli", privacy)
        self._report = self.run.report
        self._seen: set[str] = set()
        self._answers: dict[tuple[str, str], steps.ModelCall] = {}  # by agent and call of the service
        self._spent: dict[str, steps.ModelCall] = {}  # by agent, while the message of the answer is still to come
        self._last: dict[str, steps.ModelCall] = {}
        self._segment = _Segment()
        self.outputs: dict[int, tuple[steps.ModelCall, Any]] = {}  # the output that messages state, by answer
        self._owners: dict[str, str] = {}  # agents by the ids of their calls
        self._children: dict[str, str] = {}  # sub-agents by the call that spawned them
        self._requests: dict[str, _Event] = {}

    def take(self, file: logs.LogFile) -> None:
        called, seen = file.name, self._seen
        for line, row in logs.rows(file, self._report, _Row):
            name, data = row.id, row.data
            if type(name) is str:
                if name in seen:
                    self._report.skip("event that repeats an earlier one")
                    continue
                seen.add(name)
            kind = row.kind if type(row.kind) is str else ""
            taker = _TAKERS.get(kind)
            if taker is None:
                self.run.skip(kind, is_known=kind.startswith(_SILENT))
                continue
            data = data if type(data) is dict else {}
            agent = string(row.agent_id)
            if not agent and (parent := text_field(data, "parentToolCallId")):
                agent = self._children.get(parent, parent)
            taker(self, _Event(data, agent, moment(row.timestamp), steps.Place(called, line)))

    def _take_start(self, event: _Event) -> None:
        self.run.name = self.run.name or text_field(event.data, "sessionId")
        self.run.version = masked(text_field(event.data, "copilotVersion")) or self.run.version

    def _take_input(self, event: _Event) -> None:
        if event.agent == ROOT and event.data.get("source") in (None, "", "user"):
            self._last.pop(ROOT, None)  # the person has called what runs before the next answer
            self.run.prompt(ROOT, event.time, event.place, event.data.get("content"))
        else:
            self.run.note(event.agent, event.time, event.place)

    def _answer(self, event: _Event, service: str) -> steps.ModelCall:
        call = self.run.answer(event.agent, event.time, event.place)
        self._last[event.agent] = call
        if service:
            self._answers[event.agent, service] = call
        return call

    def _take_usage(self, event: _Event) -> None:
        """Take the usage of an answer, which comes before its message."""
        used = object_field(event.data, "usage")
        service = text_field(used, "apiCallId")
        usage = tuple(map(used.get, _KINDS))
        name = text_field(used.get("accounting"), "usageId")
        name = name and f"usage {name}"
        call = self._answers.get((event.agent, service)) if service else None
        if (call is not None and call.spent) or (name and name in self._seen):
            self.run.leave_out(LedgerLine.REPEATED_USAGE, usage)
            return
        self._seen.add(name)
        if call is None:
            call = self._answer(event, service)
            if not service:
                self._spent[event.agent] = call
        call.model = masked(text_field(used, "model")) or call.model
        call.end = event.time
        if event.time >= 0:
            first = duration(used.get("timeToFirstTokenMs"), 1000)
            thread = self.run.agent(event.agent)
            thread.date_request(call, event.time - duration(used.get("duration"), 1000), first)
        if ending := masked(text_field(used, "finishReason")):
            call.more = {**(call.more or {}), "finish_reason": ending}
        put, got, *_ = self.run.spend(call, usage)
        before = self._segment.spent or (0, 0)
        self._segment.spent = before[0] + (put or 0), before[1] + (got or 0)

    def _take_message(self, event: _Event) -> None:
        data, run = event.data, self.run
        name, service = text_field(data, "messageId"), text_field(data, "apiCallId")
        name = name and f"message {name}"
        if name and name in self._seen:
            self._report.skip("message that repeats an earlier one")
            return
        self._seen.add(name)
        call = self._answers.get((event.agent, service)) if service else self._spent.pop(event.agent, None)
        if call is None:
            call = self._answer(event, service)
        if call.spent is None:
            if call not in self._segment.calls:
                self._segment.calls.append(call)
            call.end = max(call.end, event.time)  # one answer may have several messages
        if (stated := data.get("outputTokens")) is not None:  # messages of one answer state it once
            self.outputs.setdefault(id(call), (call, stated))
        call.model = call.model or masked(text_field(data, "model"))
        call.note_text(text_field(data, "content"), run.privacy)
        self._last[event.agent] = call
        for tool_request in objects(data.get("toolRequests")):
            call_id, tool = text_field(tool_request, "toolCallId"), text_field(tool_request, "name")
            run.call(event.agent, call_id, tool, event.time, event.place, tool_request.get("arguments"), call)
            self._own(event.agent, call_id)

    def _take_failure(self, event: _Event) -> None:
        error = masked(text_field(event.data, "errorType") or text_field(event.data, "errorCode")) or "error"
        model = masked(text_field(event.data, "model"))
        self.run.answer(event.agent, event.time, event.place, model, error=error)

    def _own(self, agent: str, call_id: str) -> None:
        self._owners.setdefault(call_id, agent)
        call = self.run.calls.get((agent, call_id))
        if call is not None and call.tool == "ask_user":
            call.purpose = steps.ASK

    def _take_call(self, event: _Event) -> None:
        """Take the beginning of a tool, whose call is mostly known from the answer."""
        data, call_id = event.data, text_field(event.data, "toolCallId")
        call = self.run.calls.get((event.agent, call_id)) if call_id else None
        if call is None:
            tool, arguments, by = text_field(data, "toolName"), data.get("arguments"), self._last.get(event.agent)
            self.run.call(event.agent, call_id, tool, event.time, event.place, arguments, by)
            self._own(event.agent, call_id)
        elif event.time >= 0:
            call.time = max(call.time, event.time)

    def _take_result(self, event: _Event) -> None:
        """Take the end of a tool, which to the program is a success if a command failed."""
        data, call_id = event.data, text_field(event.data, "toolCallId")
        failed = object_field(data, "error")
        code = object_field(data, "shellExecution").get("exitCode")
        error = "exit_code" if type(code) is int and code else ""
        if data.get("success") is not True:
            error = masked(text_field(failed, "code")) or "tool_error"
        content = object_field(data, "result").get("content", failed.get("message"))
        self.run.result(event.agent, call_id, event.time, event.place, content, error=error)

    def _take_request(self, event: _Event) -> None:
        self._requests[text_field(event.data, "requestId")] = event

    def _take_decision(self, event: _Event) -> None:
        """Take the decision on a request: of a person, for whom the run waited, or of a rule."""
        run, request = self.run, self._requests.pop(text_field(event.data, "requestId"), None)
        if request is None or request.time < 0 or event.time < 0:
            return
        call_id = text_field(request.data.get("permissionRequest"), "toolCallId")
        call = run.calls.get((request.agent, call_id))
        kind, source = text_field(event.data.get("result"), "kind"), text_field(event.data, "decisionSource")
        is_unattended = request.data.get("resolvedByHook") is True or any(word in source for word in _UNATTENDED)
        if kind.startswith("approve"):
            if not is_unattended:
                typed = steps.UserInput(event.time, event.place, since=request.time, asked=True)
                run.agent(request.agent).add(typed)
                if call is not None:
                    call.time = max(call.time, event.time)
        elif kind == _REFUSED:
            run.settle(request.agent, call_id, steps.REJECTED)
        else:
            tool = call.tool if call is not None else ""
            alarm = steps.SafetyEvent(event.time, event.place, tool=tool, error="forbidden", asking=call)
            run.agent(request.agent).add(alarm)

    def _take_spawn(self, event: _Event) -> None:
        call_id, role = text_field(event.data, "toolCallId"), text_field(event.data, "agentName")
        child = event.agent or call_id
        if not child:
            return
        self._children[call_id] = child
        self.run.agent(child, text_field(event.data, "agentDisplayName") or role, role)
        waits = event.data.get("executionMode") != "background"
        self.run.spawn(child, self._owners.get(call_id, ROOT), call_id, event.place, waits=waits)

    def _take_end(self, event: _Event) -> None:
        call_id = text_field(event.data, "toolCallId")
        child, owner = self._children.get(call_id, event.agent), self._owners.get(call_id, ROOT)
        if (total := count(event.data.get("totalTokens"))) is not None:
            self.run.report.enter(LedgerLine.CHILD_TOTAL, total=total)
        is_error = "error" in event.data
        if child and is_error and self.run.waits_for(child):
            self.run.settle(owner, call_id, "agent_error")
        status = Status.ERROR if is_error else Status.OK
        self.run.end_in_background(child, owner, event.time, event.place, status)

    def _take_shutdown(self, event: _Event) -> None:
        """Take the totals since the last shutdown, which count only if the answers have no usage."""
        metrics = event.data.get("modelMetrics") or object_field(event.data, "accountingSnapshot").get("modelMetrics")
        sums = {model: mapping(mapping(usage).get("usage")) for model, usage in mapping(metrics).items()}
        segment, self._segment = self._segment, _Segment()
        used = {model: tuple(map(usage.get, _KINDS)) for model, usage in sums.items()}
        total = [sum(count(usage[kind]) or 0 for usage in used.values()) for kind in (0, 1)]
        if segment.spent is not None or not any(total):
            for usage in used.values():
                self.run.leave_out(LedgerLine.SESSION_TOTAL, usage)
            if segment.spent is not None and tuple(total) != segment.spent and any(total):
                self._report.note(Problem.SESSION_TOTAL_DIFFERS, str(event.place))
            return
        bearers = []
        for model, usage in used.items():
            fits = [call for call in segment.calls if call.model == masked(model) and call.spent is None]
            bearer = fits[-1] if fits else steps.ModelCall(event.time, event.place, end=event.time, model=masked(model))
            if not fits:
                self.run.aside(ROOT).add(bearer)
            self.run.spend(bearer, usage, LedgerLine.LAST_OF_MODEL)
            bearer.basis = TokenBasis.PLACEHOLDER if bearer.spent else bearer.basis
            bearers.append(bearer)
        self.run.cover([call for call in segment.calls if call.spent is None and call not in bearers])


_TAKERS: Mapping[str, Callable[[_Reading, _Event], None]] = {
    "abort": lambda reading, event: reading.run.interrupt(event.agent, event.time, event.place),
    "assistant.message": _Reading._take_message,
    "model.call_failure": _Reading._take_failure,
    "permission.completed": _Reading._take_decision,
    "permission.requested": _Reading._take_request,
    "session.error": _Reading._take_failure,
    "session.shutdown": _Reading._take_shutdown,
    "session.start": _Reading._take_start,
    "session.usage_record": _Reading._take_usage,
    "subagent.completed": _Reading._take_end,
    "subagent.failed": _Reading._take_end,
    "subagent.started": _Reading._take_spawn,
    "tool.execution_complete": _Reading._take_result,
    "tool.execution_start": _Reading._take_call,
    "user.message": _Reading._take_input,
}
"""The reader of each kind of events."""
