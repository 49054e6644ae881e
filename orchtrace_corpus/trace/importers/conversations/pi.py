"""Import sessions of Pi: JSON Lines with a header and entries; also the output of `pi --mode json`.

The time of an entry is when it was written. The message in it has a time, too; that of an answer is when the model was
asked, so begin and end of answers are known. Sub-agents come from an extension. They have files of their own, or the
result of the call has their messages, without entries, or only their usage. Entries form a tree; abandoned branches
count, as they were paid for.
Shapes: pi-coding-agent 0.73.1 with its example of sub-agents, pi-subagents 0.67.
"""

import os
import re
from collections.abc import Iterator, Sequence
from glob import escape, iglob
from typing import Any

from msgspec import Struct

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import SeenRows, current_answer_ids
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, moment, moment_ms
from orchtrace_corpus.trace.importers.core.values import (
    as_count,
    as_dollars,
    as_object,
    as_text,
    objects_in,
    text_field,
    text_of,
)
from orchtrace_corpus.trace.model.import_report import LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_SUMMARIES = frozenset(("compaction", "branch_summary"))
"""The types of entries that a model wrote outside the conversation; they state no usage."""
_SKIPPED_TYPES = frozenset(
    """
    agent_end agent_start auto_retry_end auto_retry_start compaction_end compaction_start custom label message_start
    message_update model_change queue_update session_info thinking_level_change tool_execution_end
    tool_execution_start tool_execution_update turn_end turn_start
    """.split()
)
"""The types of entries and printed events that say nothing new about agents, calls or tokens."""
_ENTRY_MEMBERS = frozenset(("id", "parentId", "timestamp"))
_IDENTITY_MEMBERS = ("role", "timestamp", "toolCallId", "usage")
"""The members that identify a message in its session; copies by other versions of the program have other ids."""
_ASK_TOOLS = frozenset(("question", "questionnaire"))  # tools of extensions that ask a person
_ROLES = frozenset(("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"))  # of messages
_SUFFIX = ".jsonl"
_SESSION_FOLDER = re.compile(r"_([0-9a-f]{8}-[0-9a-f-]{27})(?=[/\\])")
"""A folder of the sub-agents of a session: its name ends in the session's id."""


class _Row(Struct, gc=False, rename="camel"):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    message: Any = None
    version: Any = None
    from_hook: Any = None


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a session of Pi, also one that has lost its header."""
    for row in beginning.rows[:5]:
        is_message = row.get("type") == "message" and row.keys() >= _ENTRY_MEMBERS
        if _is_header(row) or (is_message and text_field(row.get("message"), "role") in _ROLES):
            return True
    return False


def _is_header(row: dict[str, Any]) -> bool:
    return row.get("type") == "session" and "cwd" in row and all(text_field(row, name) for name in ("id", "timestamp"))


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the keys of a file: its own session and, for a sub-agent, the sessions in whose folders it is."""
    rows = reader.first().rows
    own_key = f"pi {rows[0]['id']}" if rows and _is_header(rows[0]) else reader.file.path
    return [own_key, *(f"pi {session}" for session in _SESSION_FOLDER.findall(os.path.realpath(reader.file.path)))]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of the sub-agents of a session."""
    path = os.path.realpath(reader.file.path)
    folder = path.removesuffix(_SUFFIX)
    if folder == path or not os.path.isdir(folder):
        return []
    paths = sorted(iglob(os.path.join(escape(folder), "**", f"*{_SUFFIX}"), recursive=True))
    start = os.path.dirname(path)
    return [logs.LogFile(agent_path, masked_path(os.path.relpath(agent_path, start))) for agent_path in paths]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run."""
    reading = _Reading(privacy, files)
    files_by_folder = {os.path.realpath(file.path).removesuffix(_SUFFIX): file for file in files}  # of sub-agents
    keys: dict[str, str] = {}  # of agents, by the folders of their sub-agents
    for folder in sorted(files_by_folder, key=lambda folder: folder.count(os.sep)):  # parents before their sub-agents
        parent_folder = os.path.dirname(folder)
        while parent_folder not in files_by_folder and os.path.dirname(parent_folder) != parent_folder:
            parent_folder = os.path.dirname(parent_folder)
        keys[folder] = reading.read_file(files_by_folder[folder], keys.get(parent_folder))
    run = reading.run
    run.name = run.name or files[0].name
    for child, parent in reading.parent_by_child.items():
        end = max((step.last_time for step in run.agent(child).steps), default=0.0)
        for key, notice in reading.notices:
            if key == parent and notice.time >= end:
                run.add_return(child, notice)
                break
    yield run.trace()


class _Reading:
    """Reads the entries of a session into a `Run`."""

    def __init__(self, privacy: Privacy, files: Sequence[logs.LogFile]) -> None:
        self.run = Run("pi", privacy)
        self._keys_with_files = {_agent_key(file.path) for file in files}
        self._background_calls: dict[str, tuple[str, str]] = {}  # by background run: the agent and the id of its call
        self.parent_by_child: dict[str, str] = {}  # of agents that no result names; a notice may report their ends
        self.notices: list[tuple[str, steps.Step]] = []  # agents, and their steps that may be such notices
        self._seen_rows = SeenRows()
        # by agent: its last answer without an entry, which has no end until the next message, and the calls of it
        self._open_answers: dict[str, tuple[steps.ModelCall, list[steps.ToolCall]]] = {}

    def read_file(self, file: logs.LogFile, enclosing: str | None) -> str:
        """Read the entries of a file, each once, and return the key of its agent.

        `enclosing` is the agent in whose folder the file is: the parent, if no call says otherwise; None for the root.
        """
        run = self.run
        key = ROOT if enclosing is None else _agent_key(file.path)
        if enclosing is not None and not run.is_spawned(key):
            parent, call_id = self._background_calls.get(key.split("/")[0], (enclosing, ""))
            run.agent(key, "agent")
            run.spawn(key, parent, call_id, waits=False)
            self.parent_by_child[key] = parent
        self._seen_rows.begin_file()
        for line, row in logs.rows(file, run.report, _Row):
            message, kind, time = as_object(row.message), as_text(row.type), moment(row.timestamp)
            place = steps.Place(file.name, line)
            identity = (str(row.type), str(row.timestamp), *(str(message.get(name)) for name in _IDENTITY_MEMBERS))
            if kind == "session" and key != ROOT:
                run.report.skip("header of a sub-agent's session")
            elif kind == "session":
                run.name = run.name or as_text(row.id)
                run.version = run.version or str(as_count(row.version) or 1)
            elif not self._seen_rows.is_new(identity):
                run.report.skip("copy of an entry")
                if message.get("role") == "assistant":
                    run.leave_out(LedgerLine.REPEATED_USAGE, _usage(message), caches_apart=True)
            elif kind in ("message", "message_end"):
                self._read_message(key, message, time, place)
            elif kind in _SUMMARIES and row.from_hook is not True:
                run.side_transcript(key).add(steps.ModelCall(time, place, end=time, is_dated=True))
            elif kind == "custom_message":
                self.notices.append((key, run.note(key, time, place)))
            else:
                run.skip(kind, is_known=kind in _SKIPPED_TYPES or kind in _SUMMARIES)
        return key

    def _read_message(self, key: str, message: dict[str, Any], entry_time: float, place: steps.Place) -> None:
        """Read a message; `entry_time` is `NO_TIME` if it has no entry."""
        run, role, message_time = self.run, text_field(message, "role"), moment_ms(message.get("timestamp"))
        time = message_time if entry_time == NO_TIME else entry_time
        self._end_answer(key, time)
        if role == "assistant":
            self._read_answer(key, message, message_time, entry_time, place)
        elif role == "toolResult":
            self._read_result(key, message, time, place)
        elif role == "user" and key == ROOT:
            prompt_time = time if message_time == NO_TIME else message_time
            run.prompt(key, prompt_time, place, _content(message))
        elif role == "bashExecution":
            run.prompt(key, time, place, message.get("command"), is_command=True)
        elif role in _ROLES:
            run.note(key, time, place)
        else:
            run.report.note_unknown(masked(f"message of {role or 'nobody'}"))

    def _read_answer(
        self, key: str, message: dict[str, Any], request_time: float, entry_time: float, place: steps.Place
    ) -> None:
        """Read an answer with its calls. Without an entry, its end is unknown until the next message."""
        run = self.run
        end = request_time if entry_time == NO_TIME else entry_time
        model = masked(text_field(message, "responseModel") or text_field(message, "model"))
        call = run.answer(key, end, place, model)
        if request_time != NO_TIME and end != NO_TIME:
            run.agent(key).date_request(call, request_time)
            call.is_dated = True
            if entry_time != NO_TIME:
                call.more = {**(call.more or {}), "inferred": False}  # begin and end are in the log
        stop_reason = text_field(message, "stopReason")
        call.more = {**(call.more or {}), **_stated_fields(message)}
        calls = []
        for part in objects_in(message.get("content")):
            call.note_text(text_field(part, "thinking") or text_field(part, "text"), run.privacy)
            if part.get("type") == "toolCall":
                call_id, tool = text_field(part, "id"), text_field(part, "name")
                tool_call = run.call(key, call_id, tool, end, place, part.get("arguments"), call)
                if tool_call.tool in _ASK_TOOLS:
                    tool_call.purpose = steps.ASK
                calls.append(tool_call)
        if stop_reason == "error":
            call.error = "model_error"
        usage = _usage(message)
        is_unpaid = call.error and not call.ref and not any(map(as_count, usage))  # the service refused the request
        if not is_unpaid:
            run.spend(call, usage, caches_apart=True)
        if entry_time == NO_TIME:
            self._open_answers[key] = call, calls
        if stop_reason == "aborted" and key == ROOT:
            run.interrupt(key, end, place)
        current_answer_ids().note((request_time, *usage), call.model, place.file, place.line)

    def _end_answer(self, key: str, time: float) -> None:
        """End the open answer of an agent, if there is one, and let its calls begin then."""
        if key in self._open_answers:
            call, tool_calls = self._open_answers.pop(key)
            call.end = max(call.end, time)
            for tool_call in tool_calls:
                tool_call.time = call.end

    def _read_result(self, key: str, message: dict[str, Any], time: float, place: steps.Place) -> None:
        """Read the result of a call, with the runs of the sub-agents that the call started."""
        call_id = text_field(message, "toolCallId")
        error = "tool_error" if message.get("isError") is True else ""
        result = self.run.result(key, call_id, time, place, _content(message), error=error)
        details = as_object(message.get("details"))
        call = self.run.calls.get((key, call_id))
        background_run = text_field(details, "asyncId")
        if background_run:
            self._background_calls.setdefault(f"async-{background_run}", (key, call_id))
            self.notices.append((key, result))
        runs = []  # of sub-agents that have begun
        for child_run in objects_in(details.get("results")):
            has_file = _agent_key(text_field(child_run, "sessionFile")) in self._keys_with_files
            has_begun = has_file or objects_in(child_run.get("messages")) or any(map(as_count, _usage(child_run)))
            if has_begun and text_field(child_run, "agent"):
                runs.append(child_run)
        if call is not None and not runs and call.purpose is steps.TOOL and NO_TIME not in (call.time, time):
            call.more = {"run_time": max(time - call.time, 0.0)}  # the program asks no person for permission
        is_parallel = details.get("mode") == "parallel"
        children: list[str] = []
        for index, child_run in enumerate(runs):
            messages = objects_in(child_run.get("messages"))
            if children and not is_parallel and messages:  # in a sequence, a sub-agent ends when the next one begins
                self._end_answer(children[-1], moment_ms(messages[0].get("timestamp")))
            child = f"{key}{call_id or place}/{index}"  # the key of a sub-agent without a file
            key_of_file = _agent_key(text_field(child_run, "sessionFile"))
            if key_of_file in self._keys_with_files:
                child, messages = key_of_file, []
            name = text_field(child_run, "agent")
            self.run.agent(child, name, role=name)
            self.run.spawn(child, key, call_id, place)
            self._read_subagent_run(child, child_run, messages, result)
            children.append(child)
        end = NO_TIME if is_parallel else time
        for child in children:
            self._end_answer(child, end)

    def _read_subagent_run(
        self, child: str, child_run: dict[str, Any], messages: list[dict[str, Any]], result: steps.ToolResult
    ) -> None:
        """Read the run of a sub-agent in the result of a call: its messages, or only its usage."""
        run, place = self.run, result.place
        for message in messages:
            self._read_message(child, message, NO_TIME, place)
        usage = _usage(child_run)
        if any(map(as_count, usage)):
            if messages or child in self._keys_with_files:
                run.leave_out(LedgerLine.CHILD_TOTAL, usage, caches_apart=True)
            else:  # one answer stands for all of its answers; it ends with the result
                seconds = duration(as_object(child_run.get("progressSummary")).get("durationMs"), 1000)
                begin = result.time if result.time == NO_TIME else max(result.time - seconds, 0.0)
                answer = run.answer(child, begin, place, masked(text_field(child_run, "model")))
                answer.end, answer.is_dated, answer.more = result.time, True, _stated_fields(child_run)
                run.spend(answer, usage, LedgerLine.SUBAGENT_TOTAL, caches_apart=True)
        stop_reason, status = text_field(child_run, "stopReason"), Status.OK
        if stop_reason == "aborted" or child_run.get("interrupted") is True:
            status = Status.CANCELLED
        elif stop_reason == "error" or child_run.get("exitCode"):
            status = Status.ERROR
        output = child_run.get("finalOutput")
        if messages and messages[-1].get("role") == "assistant":
            output = _content(messages[-1])
        run.add_return(child, result, status, run.privacy.reference(output))


def _agent_key(path: str) -> str:
    """Return the key of a sub-agent: the end of the path of its file, which stays if the session is moved."""
    return "/".join(re.split(r"[/\\]", path)[-3:])


def _content(message: dict[str, Any]) -> Any:
    """Return the texts of a message, or its content if it has none."""
    return text_of(message.get("content")) or message.get("content")


def _stated_fields(message: dict[str, Any]) -> dict[str, Any]:
    """Return the finish reason and the cost of an answer, as fields of its event."""
    fields: dict[str, Any] = {}
    finish_reason = masked(text_field(message, "stopReason"))
    if finish_reason:
        fields["finish_reason"] = finish_reason
    cost = as_object(message.get("usage")).get("cost")
    if type(cost) is dict:  # in messages; in results of sub-agents it is a number
        cost = cost.get("total")
    total = as_dollars(cost)
    if total is not None:
        fields["cost_usd"] = total
    return fields


def _usage(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return the counts of an answer in the order of `Run.spend`; the input excludes cache tokens."""
    usage = as_object(message.get("usage"))
    return usage.get("input"), usage.get("output"), usage.get("cacheRead"), usage.get("cacheWrite"), None
