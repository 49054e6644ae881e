"""Kimi Code sessions: a folder with a file of records for each agent, `agents/<id>/wire.jsonl`, and `state.json`.

An answer is a step: the request to the model, its usage, its text, its calls and their results, the end. Usage is
written again at the end of the step and with each message. kimi-cli writes the same first record, but then others.
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
from orchtrace_corpus.trace.importers.core.values import count, mapping, object_field, string, text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_MAIN = "main"
_STATE = frozenset(("agents", "createdAt", "archived"))
_MARK = re.compile(r'"type"\s*:\s*"(?:turn\.prompt|context\.append_loop_event|context\.append_message|llm\.request)"')
"""The kind of a record that only this program writes; inside a text, its quotes would be escaped."""
_SILENT = (
    "agent.", "config.", "context.", "cron.", "file_history.", "forked", "full_compaction.", "goal.", "llm.", "mcp.",
    "metadata", "micro_compaction.", "permission.", "plan_mode.", "plugin.", "profile.", "prompt.", "runtime.",
    "subagent.", "swarm_mode.", "token_counting.", "tools.", "turn.",
)  # fmt: skip
"""Kinds of records, by their beginnings, that say nothing new about agents, calls or tokens, unless read below."""


class _Row(Struct, gc=False, rename="camel"):
    """The members of a record that are read; the contents of messages are in the events of steps, too."""

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


class _Step(Struct, gc=False):
    asked: float = NO_TIME  # when its request went out
    model: str = ""  # the model that was asked; usage has only the user's name for it
    call: steps.ModelCall | None = None  # its answer, once a record of it was read


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of a Kimi Code session."""
    rows = beginning.rows
    if rows and rows[0].get("type") == "metadata" and "protocol_version" in rows[0]:
        return _MARK.search(beginning.text) is not None
    return len(rows) < 2 and beginning.outline >= _STATE


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: the folder of its session."""
    return [_folder(reader.file)]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of all agents of a session of which one file is named."""
    folder = _folder(reader.file)
    agents, own = os.path.join(folder, "agents"), os.path.realpath(reader.file.path)
    names = sorted(os.listdir(agents)) if os.path.isdir(agents) else []
    below = ["state.json", *(os.path.join("agents", name, "wire.jsonl") for name in names)]
    paths = [os.path.join(folder, name) for name in below]
    return [
        logs.LogFile(path, masked_path(name))
        for path, name in zip(paths, below, strict=True)
        if os.path.isfile(path) and path != own
    ]


def _folder(file: logs.LogFile) -> str:
    """Return the folder of a file's session; the file itself if it is not where the program keeps it."""
    path = os.path.realpath(file.path)
    above, name = os.path.split(path)
    agents = os.path.dirname(above)
    if name == "wire.jsonl" and os.path.basename(agents) == "agents":
        return os.path.dirname(agents)
    return above if name == "state.json" else path


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    states = [file for file in files if file.path.endswith(".json")]
    wires = {file: os.path.basename(os.path.dirname(file.path)) for file in files if file not in states}
    for file in sorted(wires, key=lambda file: (wires[file] != _MAIN, file)):
        reading.take(file)
    for file in states:
        reading.take_state(file)
    run = reading.run
    run.name = run.name or masked_path(os.path.basename(_folder(files[0])))
    yield run.trace()


def _key(name: Any) -> str:
    return ROOT if name == _MAIN else string(name)


class _Reading:
    def __init__(self, privacy: Privacy) -> None:
        self.run = Run("kimi_code", privacy)
        self._steps: dict[str, _Step] = {}  # the step that each agent is in
        self._aside: dict[str, _Step] = {}  # what each agent's model is asked outside of steps
        self._cancelled: set[str] = set()  # agents whose turn a person broke off

    def take_state(self, file: logs.LogFile) -> None:
        """Take the parents of agents, for those whose records do not say it."""
        state = mapping(json_parts.decoded(logs.contents(file)))
        self.run.report.records_read += 1
        self.run.name = text_field(state, "id") or self.run.name
        for name, details in object_field(state, "agents").items():
            above = text_field(details, "parentAgentId")
            if above and _key(name) in self.run.agents:
                self.run.agent(_key(name), name, text_field(object_field(details, "labels"), "profileName"))
                self.run.spawn(_key(name), _key(above), "", steps.Place(file.name, 1))

    def take(self, file: logs.LogFile) -> None:
        folder, name = os.path.split(file.path_text)
        file_agent = _key(os.path.basename(folder)) if name == "wire.jsonl" else ROOT
        for line, row in logs.rows(file, self.run.report, _Row):
            agent = file_agent if row.agent_id is None else _key(row.agent_id)
            self._take(row, agent, moment_ms(row.time), steps.Place(file.name, line))

    def _take(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        kind = string(row.kind)
        match kind:
            case "context.append_loop_event":
                self._take_event(mapping(row.event), agent, time, place)
            case "usage.record":
                self._take_usage(row, agent, time, place)
            case "llm.request":
                requests = self._steps if row.purpose in (None, "loop") else self._aside  # such as to sum up a history
                step = requests.setdefault(agent, _Step())
                step.asked, step.model = time, masked(string(row.model))
            case "turn.prompt" | "turn.steer":  # by a person, or by the program for another agent
                self._cancelled.discard(agent)
                if agent == ROOT and text_field(row.origin, "kind") in ("", "user"):
                    self.run.prompt(agent, time, place, row.input, waited=kind == "turn.prompt")
                else:
                    self.run.note(agent, time, place)
            case "turn.cancel" | "turn.ended":
                ending = string(row.reason)
                self._steps.pop(agent, None)
                if kind == "turn.ended" and ending != "cancelled":
                    if ending and ending != "completed":
                        self.run.answer(agent, time, place, error=masked(ending))
                elif agent not in self._cancelled:
                    self._cancelled.add(agent)
                    self.run.interrupt(agent, time, place)
            case "subagent.spawned" | "subagent.completed" | "subagent.failed":
                self._take_child(row, kind, agent, time, place)
            case "permission.record_approval_result":
                if text_field(row.result, "decision") == "rejected":
                    self.run.settle(agent, string(row.tool_call_id), steps.REJECTED)
            case _:
                self.run.version = self.run.version or masked(string(row.protocol_version))
                self.run.skip(kind, is_known=kind.startswith(_SILENT))

    def _answer(self, agent: str, time: float, place: steps.Place) -> steps.ModelCall:
        """Return the answer of the step that an agent is in."""
        step = self._steps.setdefault(agent, _Step())
        if step.call is None:
            step.call = self.run.answer(agent, time, place, step.model)
            if step.asked != NO_TIME and time != NO_TIME:
                self.run.agent(agent).date_request(step.call, step.asked)
        return step.call

    def _take_usage(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        usage = _usage(mapping(row.usage))
        aside, step = self._aside.pop(agent, None), self._steps.get(agent)
        if aside is None and step is not None and (step.call is None or step.call.spent is None):
            call = self._answer(agent, time, place)
        else:
            begin = min(aside.asked, time) if aside is not None and aside.asked != NO_TIME else time
            call = steps.ModelCall(begin, place, end=time, model=aside.model if aside is not None else "")
            self.run.aside(agent).add(call)
        call.model = call.model or masked(string(row.model))
        self.run.spend(call, usage, caches_apart=True)

    def _take_event(self, event: dict[str, Any], agent: str, time: float, place: steps.Place) -> None:
        run, kind = self.run, text_field(event, "type")
        call_id = text_field(event, "toolCallId")
        match kind:
            case "step.begin":
                self._steps[agent] = _Step()
            case "content.part":
                part = object_field(event, "part")
                self._answer(agent, time, place).note_text(text_field(part, "text"), run.privacy)
            case "tool.call":
                tool, by = text_field(event, "name"), self._answer(agent, time, place)
                call = run.call(agent, call_id, tool, time, place, event.get("args"), by)
                call.purpose = steps.ASK if tool == "AskUserQuestion" else call.purpose
            case "tool.result":
                result = object_field(event, "result")
                error = "tool_error" if result.get("isError") is True else ""
                run.result(agent, call_id, time, place, result.get("output"), error=error)
                answered = run.calls.get((agent, call_id))
                if answered is not None and count(result.get("durationMs")) is not None:
                    answered.more = {"run_time": duration(result["durationMs"], 1000)}
            case "step.end":
                self._take_end_of_step(event, agent, time, place)
            case _:
                run.report.note_unknown(masked(f"loop event {kind}"))

    def _take_end_of_step(self, event: dict[str, Any], agent: str, time: float, place: steps.Place) -> None:
        """Take the end of a step, which comes after its tools: the end of the answer, and its usage again."""
        step = self._steps.setdefault(agent, _Step())
        used = object_field(event, "usage")
        call = self._answer(agent, time, place) if used else step.call
        del self._steps[agent]
        if call is None:
            return
        if used and call.spent is None:
            self.run.spend(call, _usage(used), caches_apart=True)
        elif used:
            self.run.leave_out(LedgerLine.REPEATED_USAGE, _usage(used), caches_apart=True)
        fields = call.more or {}
        if ending := masked(text_field(event, "finishReason")):
            fields["finish_reason"] = ending
        first = duration(event.get("llmFirstTokenLatencyMs"), 1000)
        if first and step.asked != NO_TIME and "t_request" in fields:
            fields["t_first_token"] = max(min(step.asked + first, call.end), call.time)
        call.more = fields or None

    def _take_child(self, row: _Row, kind: str, agent: str, time: float, place: steps.Place) -> None:
        child = _key(row.subagent_id)
        if not child:
            return
        if kind == "subagent.spawned":
            above = _key(row.parent_agent_id) if row.parent_agent_id is not None else agent
            self.run.agent(child, child, string(row.subagent_name))
            waits = row.run_in_background is not True
            self.run.spawn(child, above, string(row.parent_tool_call_id), place, waits=waits)
            return
        if row.usage is not None:
            self.run.leave_out(LedgerLine.CHILD_TOTAL, _usage(mapping(row.usage)), caches_apart=True)
        if self.run.is_spawned(child):
            status = Status.OK if kind == "subagent.completed" else Status.ERROR
            self.run.end_in_background(child, agent, time, place, status)


def _usage(used: dict[str, Any]) -> tuple[Any, ...]:
    """Return the counts of a usage, whose input excludes caches."""
    return *map(used.get, ("inputOther", "output", "inputCacheRead", "inputCacheCreation")), None
