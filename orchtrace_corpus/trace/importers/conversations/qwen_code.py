"""Qwen Code sessions: a file of rows for the session, and, from about 0.20 on, one for each sub-agent.

The rows are nearly those of Claude Code, with messages of Gemini's API in them. What the program tells its telemetry
stands among them: of every answer and every call of a tool the end and the length, also of sub-agents, of which
earlier versions keep nothing else.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from orchtrace_corpus.trace.importers.conversations import transcript as steps
from orchtrace_corpus.trace.importers.conversations.session import (
    ROOT,
    Session,
    amount,
    fields,
    length,
    notifications,
    objects,
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
_NOTHING = Raw(b"null")
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


class _Row(Struct, gc=False, rename="camel"):
    """A row as far as it is read."""

    kind: Any = field(default=None, name="type")
    subtype: Any = None
    timestamp: Any = None
    uuid: Any = None
    session_id: Any = None
    agent_id: Any = None
    agent_name: Any = None
    version: Any = None
    model: Any = None
    provenance: Any = None
    message: Any = None
    usage_metadata: Any = None
    tool_call_result: Raw = _NOTHING
    system_payload: Raw = _NOTHING


class _Outcome(Struct):
    """What the program notes of a result beside what the model gets."""

    status: Any = None
    error_type: Any = field(default=None, name="errorType")
    display: Raw = field(default=_NOTHING, name="resultDisplay")


class _Told(NamedTuple):
    """An event of the telemetry."""

    agent: str
    event: dict[str, Any]
    end: float
    place: steps.Place

    @property
    def begin(self) -> float:
        """When what it tells of began."""
        return max(self.end - length(self.event.get("duration_ms")), 0.0) if self.end >= 0 else steps.NO_TIME


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
    named = next(filter(None, (text_field(row, "sessionId") for row in rows)), "")
    named = named or text_field(_meta(opened.contents()), "parentSessionId")
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
            row = found if type(found) is _Row else msgspec.json.decode(json_parts.encoded(found), type=_Row)
            place = steps.Place(file.name, number)
            uuid = string(row.uuid)
            if uuid and uuid in self._rows:
                self._report.pass_over("row that repeats an earlier one")
                if row.usage_metadata is not None:
                    self._session.leave_out(LedgerLine.REPEATED_USAGE, _usage(fields(row.usage_metadata)))
                continue
            self._rows.add(uuid)
            agent = string(row.agent_id) or ROOT
            if agent not in self._known:
                self._know(agent, row)
            self._take(row, agent, moment(row.timestamp), place)

    def _know(self, agent: str, row: _Row) -> None:
        """What the first row of an agent says of it, and of the session."""
        self._known.add(agent)
        self._session.id = self._session.id or string(row.session_id)
        self._session.version = self._session.version or masked(string(row.version))
        if agent != ROOT and row.agent_name is not None:
            self._session.name(agent, agent, string(row.agent_name))

    def _take(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        kind, subtype = row.kind, string(row.subtype)
        if kind == "system" and subtype == "ui_telemetry":
            self._take_telemetry(row, agent, time, place)
        elif kind == "system" and (subtype in _SILENT or not subtype):
            self._report.pass_over(f"system {subtype}".rstrip())
        elif kind not in ("user", "assistant", "tool_result"):
            self._report.note_unknown(masked(f"{kind if type(kind) is str else ''} {subtype}".strip()) or "(no type)")
        elif type(row.message) is not dict:
            self._report.drop(
                Drop.NO_ASSISTANT_MESSAGE if kind == "assistant" else Drop.NO_USER_MESSAGE, place.file, place.line
            )
        elif kind == "assistant":
            self._take_answer(row, agent, time, place)
        else:
            self._answers.pop(agent, None)
            self._take_input(row, agent, time, place)

    def _take_answer(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        """A row of an answer: the first has its usage, and its calls may come in further rows."""
        parts = objects(row.message.get("parts"))
        call = self._answers.get(agent)
        if call is None or row.usage_metadata is not None:
            call = self._answers[agent] = steps.ModelCall(time, place, end=time, model=masked(string(row.model)))
            self._session.thread(agent).add(call)
            if row.usage_metadata is not None:
                used = fields(row.usage_metadata)
                self._session.spend(call, _usage(used))
                key = agent, used.get("promptTokenCount"), used.get("totalTokenCount")
                self._spent.setdefault(_hashable(key), []).append(call)
        call.end = max(call.end, time)
        for part in parts:
            called = fields(part.get("functionCall"))
            if called:
                use, tool = text_field(called, "id"), text_field(called, "name")
                self._session.call(agent, use, tool, time, place, called.get("args"), call)
                self._calls.setdefault((agent, tool), []).append(use)
        texts = [text for part in parts if part.get("thought") is not True and (text := text_field(part, "text"))]
        if texts:
            call.note_text(texts[0] if len(texts) == 1 else "\n".join(texts), self._session.privacy)

    def _take_input(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        """A row that the model is given: results of calls, what a person typed, what the program says."""
        texts = []
        thread = self._session.thread(agent)
        for part in objects(row.message.get("parts")):
            answered = fields(part.get("functionResponse"))
            if answered:
                self._take_result(row, agent, answered, time, place)
            else:
                texts.append(text_field(part, "text"))
        text = "\n".join(filter(None, texts))
        if not text:
            return
        is_typed = string(row.subtype) in _TYPED and row.provenance in (None, "real_user") and row.kind == "user"
        if is_typed and agent == ROOT:
            waited = row.subtype != "mid_turn_user_message"
            thread.add(steps.UserInput(time, place, ref=self._session.privacy.reference(text), waited=waited))
            return
        note = steps.Note(time, place)
        thread.add(note)
        for use, status in notifications(text):
            self._noticed.append((agent, use, status, note))

    def _take_result(self, row: _Row, agent: str, answered: dict[str, Any], time: float, place: steps.Place) -> None:
        noted = json_parts.decoded(row.tool_call_result, _Outcome) or _Outcome()
        use, response = text_field(answered, "id"), fields(answered.get("response"))
        word = string(noted.status) or ("error" if "error" in response else "success")
        status = outcome(word)
        error = masked(string(noted.error_type)) or "tool_error" if status is Status.ERROR else ""
        content = response.get("output", response.get("error"))
        found = self._session.result(agent, use, time, place, content, status, error)
        display = bytes(noted.display) if noted.display is not _NOTHING else b""
        if b'"task_execution"' in display:
            self._results.append((agent, use, found, fields(json_parts.decoded(display))))

    def _take_telemetry(self, row: _Row, agent: str, time: float, place: steps.Place) -> None:
        event = fields(fields(json_parts.decoded(row.system_payload)).get("uiEvent"))
        names = text_field(event, "prompt_id").split("#")  # SESSION#AGENT#ROUND of a sub-agent
        child = text_field(event, "subagent_id") or (names[1] if len(names) == 3 else "")
        if child and child not in self._known and (named := text_field(event, "subagent_name")):
            self._session.name(child, child, named)
        end = moment(event.get("event.timestamp"))
        self._telemetry.append(_Told(child or agent, event, end if end != steps.NO_TIME else time, place))

    def trace(self, file: LogFile) -> Trace:
        """The trace.

        Raises:
            EmptyLogError: Nothing ran.
        """
        session = self._session
        session.id = session.id or masked_path(os.path.splitext(os.path.basename(file.path_text))[0])
        alone = {told.agent for told in self._telemetry if not self._has_rows(told.agent)}
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

    def _has_rows(self, agent: str) -> bool:
        return agent in self._session.threads and bool(self._session.threads[agent].steps)

    def _settle_answer(self, told: _Told, *, is_alone: bool) -> steps.ModelCall:
        """An answer that the telemetry tells of: mostly one that has a row, whose beginning is known only here."""
        event = told.event
        key = told.agent, event.get("input_token_count"), event.get("total_token_count")
        waiting = self._spent.get(_hashable(key))
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
            given = event.get("function_args")
            session.call(told.agent, key, tool, told.begin, told.place, given, by).id = masked(use)
            session.result(told.agent, key, told.end, told.place, None, status, error)
        else:
            self._report.pass_over("telemetry of a call without a row")

    def _link(self) -> None:
        """Find the sub-agents of calls: by the notes beside their files, else by the order in which they ran."""
        session = self._session
        free = [key for key in session.threads if key != ROOT and not session.is_delegated(key)]
        for agent, use, found, display in self._results:
            child, name = session.child_of(agent, use), text_field(display, "subagentName")
            is_background = display.get("status") == "background"
            if not child:
                fits = [key for key in free if use and key.endswith(f"-{use}")]
                fits = fits or [key for key in free if name and key.startswith(f"{name}-")]
                child = fits[0] if fits else f"{name or 'agent'}-{use}"
                if fits:
                    free.remove(child)
                session.name(child, child, name)
                session.delegate(child, agent, use, found.place, waits=not is_background)
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
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    prompt, written, thought, total = (used.get(name) for name in names)
    return _divided(prompt, written, thought, total, used.get("cachedContentTokenCount"))


def _usage_told(event: dict[str, Any]) -> Usage:
    """The same of the telemetry."""
    names = ("input_token_count", "output_token_count", "thoughts_token_count", "total_token_count")
    prompt, written, thought, total = (event.get(name) for name in names)
    return _divided(prompt, written, thought, total, event.get("cached_content_token_count"))


def _divided(prompt: Any, written: Any, thought: Any, total: Any, cached: Any) -> Usage:
    asked, said, hidden, spent = map(amount, (prompt, written, thought, total))
    if asked is not None and said is not None and hidden and (spent or 0) - asked - said >= hidden:
        written = said + hidden
    return Usage(prompt, written, cached, reasoning=thought)


def _hashable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key of counts; of a count that is none nothing is left."""
    return (key[0], *map(amount, key[1:]))
