"""Qwen Code sessions: a file of rows for the session, and, from about 0.20 on, one for each sub-agent.

The rows are nearly those of Claude Code, with messages of Gemini's API in them. Others are events of the telemetry: of
every answer and every call of a tool, its end and duration. Of sub-agents, earlier versions keep only these.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct, field

from orchtrace_corpus.base import budget
from orchtrace_corpus.trace.importers.core import json_parts, logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import is_qwen, program_of
from orchtrace_corpus.trace.importers.core.json_parts import NOTHING
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, moment
from orchtrace_corpus.trace.importers.core.transcript import notified, outcome
from orchtrace_corpus.trace.importers.core.values import count, mapping, string, text_field
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_META = frozenset(("agentType", "parentSessionId"))
_SILENT = frozenset(
    """
    agent_bootstrap agent_launch_prompt agent_retry agent_session_ready at_command attribution_snapshot
    background_task_completed branch_checkpoint chat_compression cron custom_title file_history_snapshot
    goal_runtime goal_state goal_turn_end omni_recall parent_session realtime_message rewind session_approval_mode
    session_artifact_event session_artifact_snapshot session_execution_engine session_model session_notes
    session_source session_sources_snapshot slash_command turn_result user_text_elements
    """.split()
)
"""System rows without anything about agents, calls or tokens."""
_COUNTS = [f"{kind}TokenCount" for kind in ("prompt", "candidates", "thoughts", "total", "cachedContent")]
_TYPED = ("", "mid_turn_user_message")  # the kinds of user rows that a person may have typed


class _Part(Struct, gc=False, rename="camel"):
    text: str = ""
    thought: Any = None
    function_call: Any = None
    function_response: Any = None


class _Message(Struct, gc=False):
    parts: list[_Part] = field(default_factory=list)


class _Outcome(Struct, gc=False, rename="camel"):
    status: str = ""
    error_type: str = ""
    result_display: Any = None


class _Telemetry(Struct, gc=False):
    """An event of the telemetry; the text of an answer is decoded only if no row has it."""

    kind: str = field(default="", name="event.name")
    timestamp: Any = field(default=None, name="event.timestamp")
    prompt_id: str = ""
    response_id: str = ""
    subagent_id: str = ""
    subagent_name: str = ""
    model: str = ""
    input_token_count: Any = None
    output_token_count: Any = None
    cached_content_token_count: Any = None
    thoughts_token_count: Any = None
    total_token_count: Any = None
    duration_ms: Any = None
    ttft_ms: Any = None
    response_text: Raw = NOTHING
    error_type: str = ""
    call_id: str = ""
    function_name: str = ""
    function_args: Any = None
    status: str = ""
    decision: Any = None


class _Payload(Struct, gc=False, rename="camel"):
    ui_event: _Telemetry | None = None


class _Row(Struct, gc=False, rename="camel"):
    kind: str = field(default="", name="type")
    subtype: str = ""
    timestamp: str = ""
    uuid: str = ""
    session_id: str = ""
    agent_id: str = ""
    agent_name: Any = None
    version: str = ""
    model: str = ""
    provenance: Any = None
    content: _Message | None = field(default=None, name="message")
    usage_metadata: Any = None
    tool_call_result: _Outcome | None = None
    system_payload: _Payload | None = None


class _Entry(Struct, gc=False):
    """An event of the telemetry, with its agent and times."""

    agent: str
    event: _Telemetry
    begin: float
    end: float
    place: steps.Place


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of a Qwen Code session: by its messages, which have parts."""
    is_ours = any(map(is_qwen, beginning.rows)) or beginning.outline >= _META
    return is_ours and not program_of(beginning)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: the session that its rows name, or the parent session."""
    rows = (row for beginning in (reader.first, reader.head) for row in beginning().rows)
    names = (text_field(row, "parentSessionId" if row.keys() >= _META else "sessionId") for row in rows)
    session = next(filter(None, names), "") or text_field(_meta(reader.contents()), "parentSessionId")
    return [f"session {session}" if session else os.path.realpath(reader.file.path)]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of the sub-agents of `chats/<session>.jsonl`, which are in `subagents/<session>/`."""
    folder, name = os.path.split(os.path.realpath(reader.file.path))
    below = os.path.join(os.path.dirname(folder), "subagents", os.path.splitext(name)[0])
    names = sorted(os.listdir(below)) if os.path.isdir(below) else []
    paths = (os.path.join(below, name) for name in names if name.endswith(logs.SUFFIXES))
    return [logs.LogFile(path, masked_path(os.path.basename(path))) for path in paths if os.path.isfile(path)]


def _meta(data: bytes) -> dict[str, Any]:
    """Return the description that a sub-agent has in a file of its own; empty for any other file."""
    note = mapping(json_parts.decoded(data)) if len(data) < budget.MAX_LINE_BYTES else {}
    return note if note.keys() >= _META else {}


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    for file in files:
        if meta := _meta(logs.contents(file)) if file.path.endswith(".json") else {}:
            reading.take_meta(meta, steps.Place(file.name, 1))
        else:
            reading.take_rows(file)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a session, and then the telemetry of all of them."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("qwen_code", privacy)
        self._report = self._run.report
        self._rows: set[str] = set()
        self._known: set[str] = set()  # agents of which a row was read
        self._answers: dict[str, steps.ModelCall] = {}  # of each agent, which its next row may continue
        self._spent: dict[tuple[str, Any, Any], list[steps.ModelCall]] = {}  # answers by agent, prompt and total
        self._calls: dict[tuple[str, str], list[str]] = {}  # ids of calls by agent and tool
        self._telemetry: list[_Entry] = []
        self._results: list[tuple[str, str, steps.ToolResult, dict[str, Any]]] = []
        self._noticed: list[tuple[str, str, Status, steps.Step]] = []

    def take_meta(self, meta: dict[str, Any], place: steps.Place) -> None:
        child, role = text_field(meta, "agentId"), text_field(meta, "agentType")
        self._report.records_read += 1
        if child:
            self._run.agent(child, child, role)
            above, call_id = text_field(meta, "parentAgentId") or ROOT, text_field(meta, "toolUseId")
            self._run.spawn(child, above, call_id, place, waits=meta.get("isBackgrounded") is not True)

    def take_rows(self, file: logs.LogFile) -> None:
        run, uuids, name = self._run, self._rows, file.name
        for line, row in logs.rows(file, self._report, _Row):
            place = steps.Place(name, line)
            if row.uuid and row.uuid in uuids:
                self._report.skip("row that repeats an earlier one")
                if row.usage_metadata is not None:
                    run.leave_out(LedgerLine.REPEATED_USAGE, _usage(*map(mapping(row.usage_metadata).get, _COUNTS)))
                continue
            uuids.add(row.uuid)
            agent = row.agent_id or ROOT
            if agent not in self._known:  # only its first row is asked for its name, and for the session's
                self._known.add(agent)
                run.name = run.name or row.session_id
                run.version = run.version or masked(row.version)
                if agent != ROOT and row.agent_name is not None:
                    run.agent(agent, agent, string(row.agent_name))
            kind, subtype, time = row.kind, row.subtype, moment(row.timestamp)
            if kind == "system" and subtype == "ui_telemetry":
                event = row.system_payload.ui_event if row.system_payload else None
                self._take_telemetry(event or _Telemetry(), agent, time, place)
            elif kind == "system" and (subtype in _SILENT or not subtype):
                self._report.skip(f"system {subtype}".rstrip())
            elif kind not in ("user", "assistant", "tool_result"):
                self._report.note_unknown(masked(f"{kind} {subtype}".strip()) or "(no type)")
            elif row.content is None:
                lacking = Drop.NO_ASSISTANT_MESSAGE if kind == "assistant" else Drop.NO_USER_MESSAGE
                self._report.drop(lacking, place.file, place.line)
            elif kind == "assistant":
                self._take_answer(row, row.content.parts, agent, time, place)
            else:
                self._answers.pop(agent, None)
                self._take_input(row, row.content.parts, agent, time, place)

    def _take_answer(self, row: _Row, parts: list[_Part], agent: str, time: float, place: steps.Place) -> None:
        """Take a row of an answer: the first has its usage, and its calls may come in further rows."""
        run, call = self._run, self._answers.get(agent)
        if call is None or row.usage_metadata is not None:
            call = self._answers[agent] = run.answer(agent, time, place, masked(row.model))
            if row.usage_metadata is not None:
                used = tuple(map(mapping(row.usage_metadata).get, _COUNTS))
                run.spend(call, _usage(*used))
                self._spent.setdefault((agent, count(used[0]), count(used[3])), []).append(call)
        call.end = max(call.end, time)
        for part in parts:
            if part.function_call and (called := mapping(part.function_call)):
                call_id, tool = text_field(called, "id"), text_field(called, "name")
                run.call(agent, call_id, tool, time, place, called.get("args"), call)
                self._calls.setdefault((agent, tool), []).append(call_id)
        said = "\n".join([part.text for part in parts if part.text and part.thought is not True])
        call.note_text(said, run.privacy)

    def _take_input(self, row: _Row, parts: list[_Part], agent: str, time: float, place: steps.Place) -> None:
        """Take input of the model: results of calls, texts of a person or of the program."""
        texts: list[str] = []
        for part in parts:
            if part.function_response and (answered := mapping(part.function_response)):
                noted = row.tool_call_result or _Outcome()
                call_id, response = text_field(answered, "id"), mapping(answered.get("response"))
                status = outcome(noted.status or ("error" if "error" in response else "success"))
                error = masked(noted.error_type) or "tool_error" if status is Status.ERROR else ""
                content = response.get("output", response.get("error"))
                result = self._run.result(agent, call_id, time, place, content, status, error)
                display = noted.result_display
                if type(display) is dict and "task_execution" in display.values():
                    self._results.append((agent, call_id, result, display))
            elif part.text:
                texts.append(part.text)
        if not texts:
            return
        text = "\n".join(texts)
        is_typed = row.subtype in _TYPED and row.provenance in (None, "real_user") and row.kind == "user"
        if is_typed and agent == ROOT:
            self._run.prompt(agent, time, place, text, waited=not row.subtype)
            return
        note = self._run.note(agent, time, place)
        self._noticed += [(agent, call_id, status, note) for call_id, status in notified(text)]

    def _take_telemetry(self, event: _Telemetry, agent: str, time: float, place: steps.Place) -> None:
        child = event.subagent_id
        if not child and len(names := event.prompt_id.split("#")) == 3:  # SESSION#AGENT#ROUND of a sub-agent
            child = names[1]
        if child and child not in self._known and event.subagent_name:
            self._run.agent(child, child, event.subagent_name)
        stamp = moment(event.timestamp)
        end = time if stamp == NO_TIME else stamp
        begin = max(end - duration(event.duration_ms, 1000), 0.0) if end >= 0 else NO_TIME
        self._telemetry.append(_Entry(child or agent, event, begin, end, place))

    def trace(self, file: logs.LogFile) -> Trace:
        run = self._run
        run.name = run.name or file.stem
        with_rows = {agent for agent, thread in run.agents.items() if thread.steps}
        alone = {entry.agent for entry in self._telemetry} - with_rows
        answers: dict[str, steps.ModelCall] = {}
        for entry in self._telemetry:
            event = entry.event
            kind, response = event.kind.rpartition(".")[2], event.response_id
            if kind == "api_response":
                answers[response] = self._settle_answer(entry, is_alone=entry.agent in alone)
            elif kind == "api_error":
                error, model = masked(event.error_type) or "api_error", masked(event.model)
                run.answer(entry.agent, entry.begin, entry.place, model, error=error).end = entry.end
            elif kind == "tool_call":
                self._settle_call(entry, answers.get(response), is_alone=entry.agent in alone)
            else:
                self._report.skip(masked(f"telemetry {kind}"))
        self._link()
        return run.trace()

    def _settle_answer(self, entry: _Entry, *, is_alone: bool) -> steps.ModelCall:
        """Return the answer of a telemetry event, mostly one that has a row; add when it began."""
        event, run = entry.event, self._run
        waiting = self._spent.get((entry.agent, count(event.input_token_count), count(event.total_token_count)))
        if waiting:
            call, thread = waiting.pop(0), run.agent(entry.agent)
            call.model = call.model or masked(event.model)
            run.restate(LedgerLine.REPEATED_USAGE, call)
        else:
            call = steps.ModelCall(entry.end, entry.place, end=entry.end, model=masked(event.model))
            written: Any = event.response_text  # a text already if the event was decoded leniently
            call.ref = run.privacy.reference(json_parts.decoded(written) if type(written) is Raw else written)
            thread = run.agent(entry.agent) if is_alone else run.aside(entry.agent)
            thread.add(call)
            spent = event.input_token_count, event.output_token_count, event.thoughts_token_count
            usage = _usage(*spent, event.total_token_count, event.cached_content_token_count)
            run.spend(call, usage, LedgerLine.TELEMETRY)
        if entry.begin != NO_TIME and entry.begin <= call.end:
            call.end = entry.end
            thread.date_request(call, entry.begin, duration(event.ttft_ms, 1000))
        return call

    def _settle_call(self, entry: _Entry, by: steps.ModelCall | None, *, is_alone: bool) -> None:
        """Add when a call began; of an agent without rows, add the call itself with its result."""
        event, run = entry.event, self._run
        tool = event.function_name
        waiting = self._calls.get((entry.agent, tool), [])
        call_id = event.call_id or next(iter(waiting), "")  # earlier versions give no id: calls of a tool end in order
        call = run.calls.get((entry.agent, call_id))
        if call is not None:
            if call_id in waiting:
                waiting.remove(call_id)
            call.time = max(entry.begin, call.time)
            result = run.result_of(entry.agent, call_id)
            if result is not None and event.decision == "reject":
                result.error = steps.REJECTED
        elif is_alone:
            key = call_id or str(entry.place)
            status = outcome(event.status)
            error = masked(event.error_type) or "tool_error" if status is Status.ERROR else ""
            run.call(entry.agent, key, tool, entry.begin, entry.place, event.function_args, by).id = masked(call_id)
            run.result(entry.agent, key, entry.end, entry.place, None, status, error)
        else:
            self._report.skip("telemetry of a call without a row")

    def _link(self) -> None:
        """Find the sub-agents of calls: by their descriptions, else by their names, in the order of the log."""
        run = self._run
        free = [key for key in run.agents if key != ROOT and not run.is_spawned(key)]
        for agent, call_id, result, display in self._results:
            child, name = run.child_of(agent, call_id), text_field(display, "subagentName")
            if not child:
                fits = [key for key in free if call_id and key.endswith(f"-{call_id}")]
                fits = fits or [key for key in free if name and key.startswith(f"{name}-")]
                child = fits[0] if fits else f"{name or 'agent'}-{call_id}"
                free = [key for key in free if key != child]
                run.agent(child, child, name)
                run.spawn(child, agent, call_id, result.place, waits=display.get("status") != "background")
            if summary := mapping(display.get("executionSummary")):
                used = summary.get("inputTokens"), summary.get("outputTokens"), summary.get("cachedTokens")
                run.leave_out(LedgerLine.CHILD_TOTAL, (*used, None, summary.get("thoughtTokens")))
            if (ending := text_field(display, "terminateReason")) not in ("", "GOAL"):
                result.status, result.error = Status.ERROR, masked(ending.lower())
        for agent, call_id, status, step in self._noticed:
            if child := run.child_of(agent, call_id):
                run.add_return(child, step, status)


def _usage(prompt: Any, written: Any, thought: Any, total: Any, cached: Any) -> tuple[Any, ...]:
    """Return a usage of Gemini's API; thoughts are added to the output if the total shows that it excludes them."""
    if hidden := count(thought):
        asked, said = count(prompt), count(written)
        if asked is not None and said is not None and (count(total) or 0) - asked - said >= hidden:
            written = said + hidden
    return prompt, written, cached, None, thought
