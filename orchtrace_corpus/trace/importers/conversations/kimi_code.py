"""Import sessions of Kimi Code: a folder with the records of each agent, `agents/<id>/wire.jsonl`, and `state.json`.

A step of the log is one answer: the request to the model, its usage, its text, its calls, their results, and the end.
The usage is repeated at the end of the step. Another program, kimi-cli, writes the same first record, but then others.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.core import json_parts, logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, moment_ms
from orchtrace_corpus.trace.importers.core.values import as_count, as_object, as_text, object_field, text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_MAIN = "main"
_STATE_MEMBERS = frozenset(("agents", "createdAt", "archived"))
_OWN_RECORD = re.compile(
    r'"type"\s*:\s*"(?:turn\.prompt|context\.append_loop_event|context\.append_message|llm\.request)"'
)
"""The type of a record that only this program writes. In a text that quotes one, the quotation marks are escaped."""
_SKIPPED_PREFIXES = (
    "agent.", "config.", "context.", "cron.", "file_history.", "forked", "full_compaction.", "goal.", "llm.", "mcp.",
    "metadata", "micro_compaction.", "permission.", "plan_mode.", "plugin.", "profile.", "prompt.", "runtime.",
    "subagent.", "swarm_mode.", "token_counting.", "tools.", "turn.",
)  # fmt: skip
"""The beginnings of known types of records; of these records, only those in `_read_record` are read."""


class _Row(Struct, gc=False, rename="camel"):
    """The members of a record that are read; messages are not, as the events of steps have the same contents."""

    kind: Any = field(default=None, name="type")
    purpose: Any = field(default=None, name="kind")
    time: Any = None
    agent_id: Any = None
    protocol_version: Any = field(default=None, name="protocol_version")
    event: Any = None
    model: Any = None
    usage: Any = None
    input: Any = None
    origin: Any = None
    reason: Any = None
    result: Any = None
    tool_call_id: Any = None
    subagent_id: Any = None
    subagent_name: Any = None
    parent_tool_call_id: Any = None
    parent_agent_id: Any = None
    run_in_background: Any = None


class _ModelStep(Struct, gc=False):
    """A request to a model and its answer."""

    request_time: float = NO_TIME
    model: str = ""  # from the request, as records of usage have only the user's name for it
    call: steps.ModelCall | None = None  # the answer; None until a record of it is read


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of a Kimi Code session."""
    rows = beginning.rows
    if rows and rows[0].get("type") == "metadata" and "protocol_version" in rows[0]:
        return _OWN_RECORD.search(beginning.text) is not None
    return len(rows) < 2 and beginning.outline >= _STATE_MEMBERS


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the key of the session, its folder."""
    return [_folder(reader.file)]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the other files of the session of a file."""
    folder = _folder(reader.file)
    agents, own_path = os.path.join(folder, "agents"), os.path.realpath(reader.file.path)
    names = ["state.json"]  # below the folder
    if os.path.isdir(agents):
        names += [os.path.join("agents", agent, "wire.jsonl") for agent in sorted(os.listdir(agents))]
    files = []
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and path != own_path:
            files.append(logs.LogFile(path, masked_path(name)))
    return files


def _folder(file: logs.LogFile) -> str:
    """Return the folder of a file's session; the path of the file itself if it is outside of such a folder."""
    path = os.path.realpath(file.path)
    folder, name = os.path.split(path)
    agents = os.path.dirname(folder)
    if name == "wire.jsonl" and os.path.basename(agents) == "agents":
        return os.path.dirname(agents)
    return folder if name == "state.json" else path


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    state_files = [file for file in files if file.path.endswith(".json")]
    agents = {file: os.path.basename(os.path.dirname(file.path)) for file in files if file not in state_files}
    for file in sorted(agents, key=lambda file: (agents[file] != _MAIN, file)):
        reading.read_records(file)
    for file in state_files:  # last: it names agents whose records are read
        reading.read_state(file)
    run = reading.run
    run.name = run.name or masked_path(os.path.basename(_folder(files[0])))
    yield run.trace()


def _key(name: Any) -> str:
    """Return the key of an agent by its id in the log."""
    return ROOT if name == _MAIN else as_text(name)


class _Reading:
    """Reads the records of a session into a `Run`."""

    def __init__(self, privacy: Privacy) -> None:
        self.run = Run("kimi_code", privacy)
        self._steps: dict[str, _ModelStep] = {}  # by agent: its current step
        self._side_requests: dict[str, _ModelStep] = {}  # by agent: a request outside of steps, such as for a summary
        self._cancelled: set[str] = set()  # agents whose turn a person interrupted

    def read_state(self, file: logs.LogFile) -> None:
        """Read the parents of agents; they do not replace those that records state."""
        state = as_object(json_parts.decoded(logs.contents(file)))
        self.run.report.records_read += 1
        self.run.name = text_field(state, "id") or self.run.name
        for name, details in object_field(state, "agents").items():
            parent, child = text_field(details, "parentAgentId"), _key(name)
            if parent and child in self.run.agents:
                self.run.agent(child, name, text_field(object_field(details, "labels"), "profileName"))
                self.run.spawn(child, _key(parent), place=steps.Place(file.name, 1))

    def read_records(self, file: logs.LogFile) -> None:
        folder, name = os.path.split(file.path_text)
        file_agent = _key(os.path.basename(folder)) if name == "wire.jsonl" else ROOT
        for line, row in logs.rows(file, self.run.report, _Row):
            agent = file_agent if row.agent_id is None else _key(row.agent_id)
            self._read_record(row, agent, moment_ms(row.time), steps.Place(file.name, line))

    def _read_record(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        kind = as_text(row.kind)
        match kind:
            case "context.append_loop_event":
                self._read_event(as_object(row.event), agent, time, place)
            case "usage.record":
                self._read_usage(row, agent, time, place)
            case "llm.request":
                requests = self._steps if row.purpose in (None, "loop") else self._side_requests
                step = requests.setdefault(agent, _ModelStep())
                step.request_time, step.model = time, masked(as_text(row.model))
            case "turn.prompt" | "turn.steer":  # by a person, or by the program for another agent
                self._cancelled.discard(agent)
                if agent == ROOT and text_field(row.origin, "kind") in ("", "user"):
                    self.run.prompt(agent, time, place, row.input, waited=kind == "turn.prompt")
                else:
                    self.run.note(agent, time, place)
            case "turn.cancel" | "turn.ended":
                outcome = as_text(row.reason)
                self._steps.pop(agent, None)
                if kind == "turn.ended" and outcome != "cancelled":
                    if outcome and outcome != "completed":
                        self.run.answer(agent, time, place, error=masked(outcome))
                elif agent not in self._cancelled:
                    self._cancelled.add(agent)
                    self.run.interrupt(agent, time, place)
            case "subagent.spawned" | "subagent.completed" | "subagent.failed":
                self._read_subagent(row, kind, agent, time, place)
            case "permission.record_approval_result":
                if text_field(row.result, "decision") == "rejected":
                    self.run.end_call(agent, as_text(row.tool_call_id), steps.REJECTED)
            case _:
                self.run.version = self.run.version or masked(as_text(row.protocol_version))
                self.run.skip(kind, is_known=kind.startswith(_SKIPPED_PREFIXES))

    def _answer_of_step(self, agent: str, time: float, place: steps.Place) -> steps.ModelCall:
        """Return the answer of an agent's current step."""
        step = self._steps.setdefault(agent, _ModelStep())
        if step.call is None:
            step.call = self.run.answer(agent, time, place, step.model)
            if step.request_time != NO_TIME and time != NO_TIME:
                self.run.agent(agent).date_request(step.call, step.request_time)
        return step.call

    def _read_usage(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        """Read the usage of the current step or, if that has its usage already, of a request outside of steps."""
        side_request, step = self._side_requests.pop(agent, None), self._steps.get(agent)
        if side_request is None and step is not None and (step.call is None or step.call.spent is None):
            call = self._answer_of_step(agent, time, place)
        else:
            call = steps.ModelCall(time, place, end=time)
            if side_request is not None:
                call.model = side_request.model
                if side_request.request_time != NO_TIME:
                    call.time = min(side_request.request_time, time)
            self.run.side_transcript(agent).add(call)
        call.model = call.model or masked(as_text(row.model))
        self.run.spend(call, _usage(as_object(row.usage)), caches_apart=True)

    def _read_event(self, event: dict[str, Any], agent: str, time: float, place: steps.Place) -> None:
        run, kind = self.run, text_field(event, "type")
        call_id = text_field(event, "toolCallId")
        match kind:
            case "step.begin":
                self._steps[agent] = _ModelStep()
            case "content.part":
                part = object_field(event, "part")
                self._answer_of_step(agent, time, place).note_text(text_field(part, "text"), run.privacy)
            case "tool.call":
                tool, answer = text_field(event, "name"), self._answer_of_step(agent, time, place)
                call = run.call(agent, call_id, tool, time, place, event.get("args"), answer)
                if tool == "AskUserQuestion":
                    call.purpose = steps.ASK
            case "tool.result":
                result = object_field(event, "result")
                error = "tool_error" if result.get("isError") is True else ""
                run.result(agent, call_id, time, place, result.get("output"), error=error)
                call_of_result = run.calls.get((agent, call_id))
                if call_of_result is not None and as_count(result.get("durationMs")) is not None:
                    call_of_result.more = {"run_time": duration(result["durationMs"], 1000)}
            case "step.end":
                self._read_step_end(event, agent, time, place)
            case _:
                run.report.note_unknown(masked(f"loop event {kind}"))

    def _read_step_end(self, event: dict[str, Any], agent: str, time: float, place: steps.Place) -> None:
        """Read the end of a step, which comes after the results of its tools and repeats its usage."""
        step = self._steps.setdefault(agent, _ModelStep())
        usage = object_field(event, "usage")
        call = self._answer_of_step(agent, time, place) if usage else step.call
        del self._steps[agent]
        if call is None:
            return
        if usage and call.spent is None:
            self.run.spend(call, _usage(usage), caches_apart=True)
        elif usage:
            self.run.leave_out(LedgerLine.REPEATED_USAGE, _usage(usage), caches_apart=True)
        fields = call.more or {}
        finish_reason = masked(text_field(event, "finishReason"))
        if finish_reason:
            fields["finish_reason"] = finish_reason
        first_token_seconds = duration(event.get("llmFirstTokenLatencyMs"), 1000)
        if first_token_seconds and step.request_time != NO_TIME and "t_request" in fields:
            fields["t_first_token"] = max(min(step.request_time + first_token_seconds, call.end), call.time)
        call.more = fields or None

    def _read_subagent(self, row: _Row, kind: str, agent: str, time: float, place: steps.Place) -> None:
        child = _key(row.subagent_id)
        if not child:
            return
        if kind == "subagent.spawned":
            parent = _key(row.parent_agent_id) if row.parent_agent_id is not None else agent
            self.run.agent(child, child, as_text(row.subagent_name))
            waits = row.run_in_background is not True
            self.run.spawn(child, parent, as_text(row.parent_tool_call_id), place, waits=waits)
            return
        if row.usage is not None:
            self.run.leave_out(LedgerLine.CHILD_TOTAL, _usage(as_object(row.usage)), caches_apart=True)
        if self.run.is_spawned(child):
            status = Status.OK if kind == "subagent.completed" else Status.ERROR
            self.run.end_in_background(child, agent, time, place, status)


def _usage(stated: dict[str, Any]) -> tuple[Any, ...]:
    """Return the counts of a usage in the order of `Run.spend`; the input excludes cache tokens."""
    cache_read, cache_write = stated.get("inputCacheRead"), stated.get("inputCacheCreation")
    return stated.get("inputOther"), stated.get("output"), cache_read, cache_write, None
