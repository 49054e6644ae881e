"""Qwen Code sessions: a file of rows for the session, and, from about 0.20 on, one for each sub-agent.

The rows are nearly those of Claude Code, with messages of Gemini's API in them. What the program tells its telemetry
stands among them: of every answer and every call of a tool the end and the length, also of sub-agents, of which
earlier versions keep nothing else.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.conversations import transcript as steps
from orchtrace_corpus.trace.importers.conversations.session import (
    ROOT,
    Session,
    amount,
    fields,
    length,
    notifications,
    outcome,
)
from orchtrace_corpus.trace.importers.conversations.transcript import moment, string, text_field
from orchtrace_corpus.trace.importers.core import json_parts, logs
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.programs import is_qwen, program_of
from orchtrace_corpus.trace.importers.spans.span import Usage
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine
from orchtrace_corpus.trace.model.trace import Status, Trace

_META = frozenset(("agentType", "parentSessionId"))
_SILENT = frozenset(
    (
        "agent_bootstrap", "agent_launch_prompt", "agent_retry", "agent_session_ready", "at_command",
        "attribution_snapshot", "background_task_completed", "branch_checkpoint", "chat_compression", "cron",
        "custom_title", "file_history_snapshot", "goal_runtime", "goal_state", "goal_turn_end", "omni_recall",
        "parent_session", "realtime_message", "rewind", "session_approval_mode", "session_artifact_event",
        "session_artifact_snapshot", "session_execution_engine", "session_model", "session_notes", "session_source",
        "session_sources_snapshot", "slash_command", "turn_result", "user_text_elements",
    )
)  # fmt: skip
"""System rows in which the program keeps notes for itself."""
_TYPED = ("", "mid_turn_user_message")
"""The kinds of user rows that a person may have typed."""


class _Part(Struct, gc=False, rename="camel"):
    """A part of a message."""

    text: str = ""
    thought: Any = None
    function_call: Any = None
    function_response: Any = None


class _Message(Struct, gc=False):
    """What was said, or given to the model."""

    parts: list[_Part] = field(default_factory=list)


class _Outcome(Struct, gc=False, rename="camel"):
    """What the program notes of a result beside what the model gets."""

    status: str = ""
    error_type: str = ""
    result_display: Any = None


class _Payload(Struct, gc=False, rename="camel"):
    """What a system row says: an event of the telemetry."""

    ui_event: Any = None


class _Row(Struct, gc=False, rename="camel"):
    """A row as far as it is read."""

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


class _Told(NamedTuple):
    """An event of the telemetry, and whose it is."""

    agent: str
    event: dict[str, Any]
    begin: float
    end: float
    place: steps.Place


def recognises(beginning: Head) -> bool:
    """Whether a file that begins like this is of a Qwen Code session: by its messages, which have parts."""
    is_ours = any(map(is_qwen, beginning.rows)) or beginning.outline >= _META
    return is_ours and not program_of(beginning)


def ties(opened: Opened) -> Sequence[str]:
    """What ties a file to others: the session that its rows name, or the session above it.

    Raises:
        DataFileError: The file cannot be read.
    """
    rows = (row for beginning in (opened.first, opened.head) for row in beginning().rows)
    names = (text_field(row, "parentSessionId" if row.keys() >= _META else "sessionId") for row in rows)
    named = next(filter(None, names), "") or text_field(_meta(opened.contents()), "parentSessionId")
    return [f"session {named}" if named else os.path.realpath(opened.file.path)]


def beside(opened: Opened) -> Sequence[LogFile]:
    """The files of the sub-agents of a session in `chats`: those in `subagents/<session>/` beside that folder."""
    folder, name = os.path.split(os.path.realpath(opened.file.path))
    below = os.path.join(os.path.dirname(folder), "subagents", os.path.splitext(name)[0])
    names = sorted(os.listdir(below)) if os.path.isdir(below) else []
    paths = (os.path.join(below, name) for name in names if name.endswith(logs.SUFFIXES))
    return [LogFile(path, masked_path(os.path.basename(path))) for path in paths if os.path.isfile(path)]


def _meta(data: bytes) -> dict[str, Any]:
    """The note beside the file of a sub-agent; empty where the file is none."""
    found = fields(json_parts.decoded(data)) if len(data) < logs.MOST_LINE_BYTES else {}
    return found if found.keys() >= _META else {}


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of a session.

    Raises:
        DataFileError: A file cannot be read, or nothing ran.
    """
    reading = _Reading(privacy)
    for file in files:
        if meta := _meta(logs.contents(file)) if file.path.endswith(".json") else {}:
            reading.take_meta(meta, steps.Place(file.name, 1))
        else:
            reading.take_rows(file)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a session, and at last what the telemetry says of all of them."""

    def __init__(self, privacy: Privacy) -> None:
        self._session = Session("qwen_code", privacy)
        self._report = self._session.report
        self._rows: set[str] = set()
        self._known: set[str] = set()  # agents of which a row was read
        self._answers: dict[str, steps.ModelCall] = {}  # of each agent the one that its next row may belong to
        self._spent: dict[tuple[str, Any, Any], list[steps.ModelCall]] = {}  # answers by agent, prompt and total
        self._calls: dict[tuple[str, str], list[str]] = {}  # ids of calls by agent and tool
        self._telemetry: list[_Told] = []
        self._results: list[tuple[str, str, steps.ToolResult, dict[str, Any]]] = []
        self._noticed: list[tuple[str, str, Status, steps.Step]] = []

    def take_meta(self, meta: dict[str, Any], place: steps.Place) -> None:
        """What the note beside the file of a sub-agent says of it."""
        child, role = text_field(meta, "agentId"), text_field(meta, "agentType")
        self._report.records_read += 1
        if child:
            self._session.name(child, child, role)
            above, use = text_field(meta, "parentAgentId") or ROOT, text_field(meta, "toolUseId")
            self._session.delegate(child, above, use, place, waits=meta.get("isBackgrounded") is not True)

    def take_rows(self, file: LogFile) -> None:
        """The rows of the session, or of a sub-agent."""
        for number, found in logs.rows(file, self._report, _Row):
            row = found if type(found) is _Row else json_parts.lenient(found, _Row) or _Row()
            place = steps.Place(file.name, number)
            if row.uuid and row.uuid in self._rows:
                self._report.pass_over("row that repeats an earlier one")
                if row.usage_metadata is not None:
                    self._session.leave_out(LedgerLine.REPEATED_USAGE, _usage(fields(row.usage_metadata)))
                continue
            self._rows.add(row.uuid)
            agent = row.agent_id or ROOT
            if agent not in self._known:
                self._know(agent, row)
            self._take(row, agent, moment(row.timestamp), place)

    def _know(self, agent: str, row: _Row) -> None:
        """What the first row of an agent says of it, and of the session."""
        self._known.add(agent)
        self._session.id = self._session.id or row.session_id
        self._session.version = self._session.version or masked(row.version)
        if agent != ROOT and row.agent_name is not None:
            self._session.name(agent, agent, string(row.agent_name))

    def _take(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        kind, subtype = row.kind, row.subtype
        if kind == "system" and subtype == "ui_telemetry":
            self._take_telemetry(fields(row.system_payload and row.system_payload.ui_event), agent, time, place)
        elif kind == "system" and (subtype in _SILENT or not subtype):
            self._report.pass_over(f"system {subtype}".rstrip())
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
        """A row of an answer: the first has its usage, and its calls may come in further rows."""
        call = self._answers.get(agent)
        if call is None or row.usage_metadata is not None:
            call = self._answers[agent] = steps.ModelCall(time, place, end=time, model=masked(row.model))
            self._session.thread(agent).add(call)
            if row.usage_metadata is not None:
                used = fields(row.usage_metadata)
                self._session.spend(call, _usage(used))
                key = agent, amount(used.get("promptTokenCount")), amount(used.get("totalTokenCount"))
                self._spent.setdefault(key, []).append(call)
        call.end = max(call.end, time)
        for part in parts:
            if part.function_call and (called := fields(part.function_call)):
                use, tool = text_field(called, "id"), text_field(called, "name")
                self._session.call(agent, use, tool, time, place, called.get("args"), call)
                self._calls.setdefault((agent, tool), []).append(use)
        texts = [part.text for part in parts if part.text and part.thought is not True]
        if texts:
            call.note_text(texts[0] if len(texts) == 1 else "\n".join(texts), self._session.privacy)

    def _take_input(self, row: _Row, parts: list[_Part], agent: str, time: float, place: steps.Place) -> None:
        """A row that the model is given: results of calls, what a person typed, what the program says."""
        texts = []
        thread = self._session.thread(agent)
        for part in parts:
            if part.function_response and (answered := fields(part.function_response)):
                self._take_result(row.tool_call_result or _Outcome(), agent, answered, time, place)
            elif part.text:
                texts.append(part.text)
        if not texts:
            return
        text = "\n".join(texts)
        is_typed = row.subtype in _TYPED and row.provenance in (None, "real_user") and row.kind == "user"
        if is_typed and agent == ROOT:
            waited = row.subtype != "mid_turn_user_message"
            thread.add(steps.UserInput(time, place, ref=self._session.privacy.reference(text), waited=waited))
            return
        note = steps.Note(time, place)
        thread.add(note)
        self._noticed += [(agent, use, status, note) for use, status in notifications(text)]

    def _take_result(self, noted: _Outcome, agent: str, answered: Any, time: float, place: steps.Place) -> None:
        use, response = text_field(answered, "id"), fields(answered.get("response"))
        status = outcome(noted.status or ("error" if "error" in response else "success"))
        error = masked(noted.error_type) or "tool_error" if status is Status.ERROR else ""
        content = response.get("output", response.get("error"))
        found = self._session.result(agent, use, time, place, content, status, error)
        display = noted.result_display
        if type(display) is dict and "task_execution" in display.values():
            self._results.append((agent, use, found, display))

    def _take_telemetry(self, event: dict[str, Any], agent: str, time: float, place: steps.Place) -> None:
        names = text_field(event, "prompt_id").split("#")  # SESSION#AGENT#ROUND of a sub-agent
        child = text_field(event, "subagent_id") or (names[1] if len(names) == 3 else "")
        if child and child not in self._known and (named := text_field(event, "subagent_name")):
            self._session.name(child, child, named)
        said = moment(event.get("event.timestamp"))
        end = time if said == steps.NO_TIME else said
        begin = max(end - length(event.get("duration_ms")), 0.0) if end >= 0 else steps.NO_TIME
        self._telemetry.append(_Told(child or agent, event, begin, end, place))

    def trace(self, file: LogFile) -> Trace:
        """The trace.

        Raises:
            EmptyLogError: Nothing ran.
        """
        session = self._session
        session.id = session.id or masked_path(os.path.splitext(os.path.basename(file.path_text))[0])
        with_rows = {agent for agent, thread in self._session.threads.items() if thread.steps}
        alone = {told.agent for told in self._telemetry} - with_rows
        asked: dict[str, steps.ModelCall] = {}
        for told in self._telemetry:
            kind = text_field(told.event, "event.name").rpartition(".")[2]
            response = text_field(told.event, "response_id")
            if kind == "api_response":
                asked[response] = self._settle_answer(told, is_alone=told.agent in alone)
            elif kind == "api_error":
                error = masked(text_field(told.event, "error_type")) or "api_error"
                model = masked(text_field(told.event, "model"))
                failed = steps.ModelCall(told.begin, told.place, end=told.end, model=model, error=error)
                session.thread(told.agent).add(failed)
            elif kind == "tool_call":
                self._settle_call(told, asked.get(response), is_alone=told.agent in alone)
            else:
                self._report.pass_over(masked(f"telemetry {kind}"))
        self._link()
        return session.trace()

    def _settle_answer(self, told: _Told, *, is_alone: bool) -> steps.ModelCall:
        """An answer that the telemetry tells of: mostly one that has a row, whose beginning is known only here."""
        event = told.event
        key = told.agent, amount(event.get("input_token_count")), amount(event.get("total_token_count"))
        waiting = self._spent.get(key)
        session = self._session
        if waiting:
            call, thread = waiting.pop(0), session.thread(told.agent)
            call.model = call.model or masked(text_field(event, "model"))
            self._report.enter(LedgerLine.REPEATED_USAGE, **(call.tokens or {}))
        else:
            call = steps.ModelCall(told.end, told.place, end=told.end, model=masked(text_field(event, "model")))
            call.ref = session.privacy.reference(event.get("response_text"))
            thread = session.thread(told.agent) if is_alone else session.aside(told.agent)
            thread.add(call)
            session.spend(call, _usage_told(event), LedgerLine.TELEMETRY)
        if told.begin != steps.NO_TIME and told.begin <= call.end:
            call.end = told.end
            session.ask(thread, call, told.begin, length(event.get("ttft_ms")))
        return call

    def _settle_call(self, told: _Told, by: steps.ModelCall | None, *, is_alone: bool) -> None:
        """A call that the telemetry tells of: when it began, and of an agent without rows the call itself."""
        event, session = told.event, self._session
        use, tool = text_field(event, "call_id"), text_field(event, "function_name")
        waiting = self._calls.get((told.agent, tool), [])
        use = use or next(iter(waiting), "")  # earlier versions give no id: calls of a tool end in their order
        call = session.calls.get((told.agent, use))
        if call is not None:
            if use in waiting:
                waiting.remove(use)
            call.time = max(told.begin, call.time)
            found = session.result_of(told.agent, use)
            if found is not None and event.get("decision") == "reject":
                found.error = steps.REJECTED
        elif is_alone:
            key = use or str(told.place)
            status = outcome(text_field(event, "status"))
            error = masked(text_field(event, "error_type")) or "tool_error" if status is Status.ERROR else ""
            session.call(told.agent, key, tool, told.begin, told.place, event.get("function_args"), by).id = masked(use)
            session.result(told.agent, key, told.end, told.place, None, status, error)
        else:
            self._report.pass_over("telemetry of a call without a row")

    def _link(self) -> None:
        """Find the sub-agents of calls: by the notes beside their files, else by the order in which they ran."""
        session = self._session
        free = [key for key in session.threads if key != ROOT and not session.is_delegated(key)]
        for agent, use, found, display in self._results:
            child, name = session.child_of(agent, use), text_field(display, "subagentName")
            if not child:
                fits = [key for key in free if use and key.endswith(f"-{use}")]
                fits = fits or [key for key in free if name and key.startswith(f"{name}-")]
                child = fits[0] if fits else f"{name or 'agent'}-{use}"
                if fits:
                    free.remove(child)
                session.name(child, child, name)
                session.delegate(child, agent, use, found.place, waits=display.get("status") != "background")
            summary = fields(display.get("executionSummary"))
            if summary:
                used = summary.get("inputTokens"), summary.get("outputTokens"), summary.get("cachedTokens")
                session.leave_out(LedgerLine.CHILD_TOTAL, Usage(*used, reasoning=summary.get("thoughtTokens")))
            ending = text_field(display, "terminateReason")
            if ending and ending != "GOAL":
                found.status, found.error = Status.ERROR, masked(ending.lower())
        for agent, use, status, step in self._noticed:
            if child := session.child_of(agent, use):
                session.end(child, step, status)


def _usage(used: dict[str, Any]) -> Usage:
    """The usage of a row, as Gemini's API has it; thoughts are in the candidates unless the total says otherwise."""
    count = used.get
    prompt, written, thought = count("promptTokenCount"), count("candidatesTokenCount"), count("thoughtsTokenCount")
    return _divided(prompt, written, thought, count("totalTokenCount"), count("cachedContentTokenCount"))


def _usage_told(event: dict[str, Any]) -> Usage:
    """The same of the telemetry."""
    count = event.get
    prompt, written, thought = count("input_token_count"), count("output_token_count"), count("thoughts_token_count")
    return _divided(prompt, written, thought, count("total_token_count"), count("cached_content_token_count"))


def _divided(prompt: Any, written: Any, thought: Any, total: Any, cached: Any) -> Usage:
    asked, said, hidden = amount(prompt), amount(written), amount(thought)
    if asked is not None and said is not None and hidden and (amount(total) or 0) - asked - said >= hidden:
        written = said + hidden
    return Usage(prompt, written, cached, None, thought)
