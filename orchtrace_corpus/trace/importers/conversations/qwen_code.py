"""Import sessions of Qwen Code: a file for the session and, from about version 0.20 on, one for each sub-agent.

The rows are similar to those of Claude Code, with messages of Gemini's API in them. Rows of telemetry state the end and
the duration of each answer and each call of a tool. Earlier versions have no rows of sub-agents but their telemetry.
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
from orchtrace_corpus.trace.importers.core.values import as_count, as_object, as_text, text_field
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_META_MEMBERS = frozenset(("agentType", "parentSessionId"))
_SKIPPED_SUBTYPES = frozenset(
    """
    agent_bootstrap agent_launch_prompt agent_retry agent_session_ready at_command attribution_snapshot
    background_task_completed branch_checkpoint chat_compression cron custom_title file_history_snapshot
    goal_runtime goal_state goal_turn_end omni_recall parent_session realtime_message rewind session_approval_mode
    session_artifact_event session_artifact_snapshot session_execution_engine session_model session_notes
    session_source session_sources_snapshot slash_command turn_result user_text_elements
    """.split()
)
"""The subtypes of system rows that say nothing about agents, calls or tokens."""
_USAGE_MEMBERS = [f"{kind}TokenCount" for kind in ("prompt", "candidates", "thoughts", "total", "cachedContent")]
_PROMPT_SUBTYPES = ("", "mid_turn_user_message")  # of user rows that a person may have typed


class _Part(Struct, gc=False, rename="camel"):
    text: str = ""
    thought: Any = None
    function_call: Any = None
    function_response: Any = None


class _Message(Struct, gc=False):
    parts: list[_Part] = field(default_factory=list)


class _CallResult(Struct, gc=False, rename="camel"):
    status: str = ""
    error_type: str = ""
    result_display: Any = None


class _Telemetry(Struct, gc=False):
    """An event of the telemetry; the text of an answer stays undecoded, since a row mostly has it."""

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
    tool_call_result: _CallResult | None = None
    system_payload: _Payload | None = None


class _TelemetryEntry(Struct, gc=False):
    """An event of the telemetry, with its agent, its begin and its end."""

    agent: str
    event: _Telemetry
    begin: float  # NO_TIME if the end has no time
    end: float
    place: steps.Place


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of a Qwen Code session: a transcript or a description."""
    has_qwen_members = any(map(is_qwen, beginning.rows)) or beginning.outline >= _META_MEMBERS
    return has_qwen_members and not program_of(beginning)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the key of the session: the one that rows name or, in the description of a sub-agent, the parent's."""
    for read_beginning in (reader.first, reader.head):
        for row in read_beginning().rows:
            member = "parentSessionId" if row.keys() >= _META_MEMBERS else "sessionId"
            session = text_field(row, member)
            if session:
                return [f"session {session}"]
    session = text_field(_meta(reader.contents()), "parentSessionId")
    return [f"session {session}"] if session else [os.path.realpath(reader.file.path)]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of sub-agents, which are in `subagents/<session>/` for `chats/<session>.jsonl`."""
    chats, name = os.path.split(os.path.realpath(reader.file.path))
    folder = os.path.join(os.path.dirname(chats), "subagents", os.path.splitext(name)[0])
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names if name.endswith(logs.SUFFIXES)]
    return [logs.LogFile(path, masked_path(os.path.basename(path))) for path in paths if os.path.isfile(path)]


def _meta(data: bytes) -> dict[str, Any]:
    """Return the description of a sub-agent, given the contents of its file; empty for any other file."""
    if len(data) >= budget.MAX_LINE_BYTES:
        return {}
    document = as_object(json_parts.decoded(data))
    return document if document.keys() >= _META_MEMBERS else {}


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    for file in files:
        meta: dict[str, Any] = {}
        if file.path.endswith(".json"):
            meta = _meta(logs.contents(file))
        if meta:
            reading.read_meta(meta, steps.Place(file.name, 1))
        else:
            reading.read_rows(file)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a session into a `Run`; events of the telemetry are matched when all rows are read."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("qwen_code", privacy)
        self._report = self._run.report
        self._row_ids: set[str] = set()
        self._agents_with_rows: set[str] = set()
        self._open_answers: dict[str, steps.ModelCall] = {}  # by agent: its last answer, which a row may continue
        # by agent, prompt tokens and total: the answers without an event of the telemetry, in the order of the log
        self._answers_by_usage: dict[tuple[str, Any, Any], list[steps.ModelCall]] = {}
        self._open_calls: dict[tuple[str, str], list[str]] = {}  # by agent and tool: the ids of calls without an event
        self._telemetry: list[_TelemetryEntry] = []
        # results of sub-agents: the agent and the id of the call, the result, and its `resultDisplay`
        self._subagent_results: list[tuple[str, str, steps.ToolResult, dict[str, Any]]] = []
        # ends of calls in the background: the agent and the id of the call, the status, and the step that reports it
        self._notified_ends: list[tuple[str, str, Status, steps.Step]] = []

    def read_meta(self, meta: dict[str, Any], place: steps.Place) -> None:
        """Read the description of a sub-agent."""
        child, role = text_field(meta, "agentId"), text_field(meta, "agentType")
        self._report.records_read += 1
        if child:
            self._run.agent(child, child, role)
            parent, call_id = text_field(meta, "parentAgentId") or ROOT, text_field(meta, "toolUseId")
            self._run.spawn(child, parent, call_id, place, waits=meta.get("isBackgrounded") is not True)

    def read_rows(self, file: logs.LogFile) -> None:
        """Read the rows of a session or of a sub-agent."""
        run, uuids, name = self._run, self._row_ids, file.name
        for line, row in logs.rows(file, self._report, _Row):
            place = steps.Place(name, line)
            if row.uuid and row.uuid in uuids:
                self._report.skip("row that repeats an earlier one")
                if row.usage_metadata is not None:
                    usage = _usage(*map(as_object(row.usage_metadata).get, _USAGE_MEMBERS))
                    run.leave_out(LedgerLine.REPEATED_USAGE, usage)
                continue
            uuids.add(row.uuid)
            agent = row.agent_id or ROOT
            if agent not in self._agents_with_rows:  # its name and the session's are in the first row, too
                self._agents_with_rows.add(agent)
                run.name = run.name or row.session_id
                run.version = run.version or masked(row.version)
                if agent != ROOT and row.agent_name is not None:
                    run.agent(agent, agent, as_text(row.agent_name))
            kind, subtype, time = row.kind, row.subtype, moment(row.timestamp)
            if kind == "system" and subtype == "ui_telemetry":
                event = row.system_payload.ui_event if row.system_payload else None
                self._read_telemetry(event or _Telemetry(), agent, time, place)
            elif kind == "system" and (subtype in _SKIPPED_SUBTYPES or not subtype):
                self._report.skip(f"system {subtype}".rstrip())
            elif kind not in ("user", "assistant", "tool_result"):
                self._report.note_unknown(masked(f"{kind} {subtype}".strip()) or "(no type)")
            elif row.content is None:
                reason = Drop.NO_ASSISTANT_MESSAGE if kind == "assistant" else Drop.NO_USER_MESSAGE
                self._report.drop(reason, place.file, place.line)
            elif kind == "assistant":
                self._read_answer(row, row.content.parts, agent, time, place)
            else:
                self._open_answers.pop(agent, None)
                self._read_input(row, row.content.parts, agent, time, place)

    def _read_answer(self, row: _Row, parts: list[_Part], agent: str, time: float, place: steps.Place) -> None:
        """Read a row of an answer: the first row has its usage, further rows may have its calls."""
        run, call = self._run, self._open_answers.get(agent)
        if call is None or row.usage_metadata is not None:
            call = self._open_answers[agent] = run.answer(agent, time, place, masked(row.model))
            if row.usage_metadata is not None:
                prompt, candidates, thoughts, total, cached = map(as_object(row.usage_metadata).get, _USAGE_MEMBERS)
                run.spend(call, _usage(prompt, candidates, thoughts, total, cached))
                self._answers_by_usage.setdefault((agent, as_count(prompt), as_count(total)), []).append(call)
        call.end = max(call.end, time)
        for part in parts:
            function_call = part.function_call
            if function_call and type(function_call) is dict:
                call_id, tool = text_field(function_call, "id"), text_field(function_call, "name")
                run.call(agent, call_id, tool, time, place, function_call.get("args"), call)
                self._open_calls.setdefault((agent, tool), []).append(call_id)
        text = "\n".join([part.text for part in parts if part.text and part.thought is not True])
        call.note_text(text, run.privacy)

    def _read_input(self, row: _Row, parts: list[_Part], agent: str, time: float, place: steps.Place) -> None:
        """Read input of the model: results of calls, texts of a person or of the program."""
        texts: list[str] = []
        for part in parts:
            function_response = part.function_response
            if function_response and type(function_response) is dict:
                stated = row.tool_call_result or _CallResult()
                call_id, response = text_field(function_response, "id"), as_object(function_response.get("response"))
                word = "error" if "error" in response else "success"
                status = outcome(stated.status or word)
                error = ""
                if status is Status.ERROR:
                    error = masked(stated.error_type) or "tool_error"
                content = response.get("output", response.get("error"))
                result = self._run.result(agent, call_id, time, place, content, status, error)
                display = stated.result_display
                if type(display) is dict and "task_execution" in display.values():
                    self._subagent_results.append((agent, call_id, result, display))
            elif part.text:
                texts.append(part.text)
        if not texts:
            return
        text = "\n".join(texts)
        is_prompt = row.subtype in _PROMPT_SUBTYPES and row.provenance in (None, "real_user") and row.kind == "user"
        if is_prompt and agent == ROOT:
            self._run.prompt(agent, time, place, text, waited=not row.subtype)
            return
        note = self._run.note(agent, time, place)
        self._notified_ends += [(agent, call_id, status, note) for call_id, status in notified(text)]

    def _read_telemetry(self, event: _Telemetry, agent: str, time: float, place: steps.Place) -> None:
        """Collect an event of the telemetry; `agent` is that of the row, which may report about a sub-agent."""
        child = event.subagent_id
        if not child:
            names = event.prompt_id.split("#")  # of a sub-agent: SESSION#AGENT#ROUND
            child = names[1] if len(names) == 3 else ""
        if child and child not in self._agents_with_rows and event.subagent_name:
            self._run.agent(child, child, event.subagent_name)
        end = moment(event.timestamp)
        if end == NO_TIME:
            end = time
        begin = max(end - duration(event.duration_ms, 1000), 0.0) if end >= 0 else NO_TIME
        self._telemetry.append(_TelemetryEntry(child or agent, event, begin, end, place))

    def trace(self, file: logs.LogFile) -> Trace:
        """Return the trace; the file names the run if no row does."""
        run = self._run
        run.name = run.name or file.stem
        agents_with_steps = {agent for agent, thread in run.agents.items() if thread.steps}
        answers: dict[str, steps.ModelCall] = {}  # by id of the response
        for entry in self._telemetry:
            event, has_rows = entry.event, entry.agent in agents_with_steps
            kind = event.kind.rpartition(".")[2]
            if kind == "api_response":
                answers[event.response_id] = self._match_answer(entry, has_rows=has_rows)
            elif kind == "api_error":
                error, model = masked(event.error_type) or "api_error", masked(event.model)
                run.answer(entry.agent, entry.begin, entry.place, model, error=error).end = entry.end
            elif kind == "tool_call":
                self._match_call(entry, answers.get(event.response_id), has_rows=has_rows)
            else:
                self._report.skip(masked(f"telemetry {kind}"))
        self._link_subagents()
        return run.trace()

    def _match_answer(self, entry: _TelemetryEntry, *, has_rows: bool) -> steps.ModelCall:
        """Return the answer of an event, and set when it was requested; without a row of the answer, add it."""
        event, run = entry.event, self._run
        input_tokens, total = as_count(event.input_token_count), as_count(event.total_token_count)
        candidates = self._answers_by_usage.get((entry.agent, input_tokens, total))
        if candidates:
            call, thread = candidates.pop(0), run.agent(entry.agent)
            call.model = call.model or masked(event.model)
            run.restate(LedgerLine.REPEATED_USAGE, call)
        else:
            call = steps.ModelCall(entry.end, entry.place, end=entry.end, model=masked(event.model))
            text: Any = event.response_text
            if type(text) is Raw:  # else the event was decoded leniently, with its text
                text = json_parts.decoded(text)
            call.ref = run.privacy.reference(text)
            thread = run.side_transcript(entry.agent) if has_rows else run.agent(entry.agent)
            thread.add(call)
            usage = _usage(
                event.input_token_count,
                event.output_token_count,
                event.thoughts_token_count,
                event.total_token_count,
                event.cached_content_token_count,
            )
            run.spend(call, usage, LedgerLine.TELEMETRY)
        if entry.begin != NO_TIME and entry.begin <= call.end:
            call.end = entry.end
            thread.date_request(call, entry.begin, duration(event.ttft_ms, 1000))
        return call

    def _match_call(self, entry: _TelemetryEntry, answer: steps.ModelCall | None, *, has_rows: bool) -> None:
        """Set when the call of an event began; for an agent without rows, add the call and its result."""
        event, run = entry.event, self._run
        tool = event.function_name
        open_ids = self._open_calls.get((entry.agent, tool), [])
        call_id = event.call_id
        if not call_id and open_ids:  # events of earlier versions have no id; calls of a tool end in their order
            call_id = open_ids[0]
        call = run.calls.get((entry.agent, call_id))
        if call is not None:
            if call_id in open_ids:
                open_ids.remove(call_id)
            call.time = max(entry.begin, call.time)
            result = run.result_of(entry.agent, call_id)
            if result is not None and event.decision == "reject":
                result.error = steps.REJECTED
        elif not has_rows:
            key = call_id or str(entry.place)
            status, error = outcome(event.status), ""
            if status is Status.ERROR:
                error = masked(event.error_type) or "tool_error"
            call = run.call(entry.agent, key, tool, entry.begin, entry.place, event.function_args, answer)
            call.id = masked(call_id)
            run.result(entry.agent, key, entry.end, entry.place, None, status, error)
        else:
            self._report.skip("telemetry of a call without a row")

    def _link_subagents(self) -> None:
        """Link calls to their sub-agents: by their descriptions, else by ids, else by names in the order of the log."""
        run = self._run
        free_agents = [key for key in run.agents if key != ROOT and not run.is_spawned(key)]
        for agent, call_id, result, display in self._subagent_results:
            child, name = run.child_of(agent, call_id), text_field(display, "subagentName")
            if not child:
                candidates = [key for key in free_agents if call_id and key.endswith(f"-{call_id}")]
                if not candidates:
                    candidates = [key for key in free_agents if name and key.startswith(f"{name}-")]
                child = candidates[0] if candidates else f"{name or 'agent'}-{call_id}"
                free_agents = [key for key in free_agents if key != child]
                run.agent(child, child, name)
                run.spawn(child, agent, call_id, result.place, waits=display.get("status") != "background")
            summary = as_object(display.get("executionSummary"))
            if summary:
                input_output_cached = map(summary.get, ("inputTokens", "outputTokens", "cachedTokens"))
                run.leave_out(LedgerLine.CHILD_TOTAL, (*input_output_cached, None, summary.get("thoughtTokens")))
            outcome = text_field(display, "terminateReason")
            if outcome not in ("", "GOAL"):
                result.status, result.error = Status.ERROR, masked(outcome.lower())
        for agent, call_id, status, step in self._notified_ends:
            child = run.child_of(agent, call_id)
            if child:
                run.add_return(child, step, status)


def _usage(prompt: Any, candidates: Any, thoughts: Any, total: Any, cached: Any) -> tuple[Any, ...]:
    """Return the counts of Gemini's API in the order of `Run.spend`.

    Thoughts are added to the output (`candidates`) if the total shows that it excludes them.
    """
    thought_tokens = as_count(thoughts)
    if thought_tokens:
        input_tokens, output_tokens = as_count(prompt), as_count(candidates)
        if input_tokens is not None and output_tokens is not None:
            rest = (as_count(total) or 0) - input_tokens - output_tokens
            if rest >= thought_tokens:
                candidates = output_tokens + thought_tokens
    return prompt, candidates, cached, None, thoughts
