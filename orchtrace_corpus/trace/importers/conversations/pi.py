"""Pi sessions: one JSON Lines file each, a header and the entries of a tree; also the output of `pi --mode json`.

The time of an entry is when it was written. A message has a time of its own: that of an answer is when the model was
asked, so answers have both ends. Sub-agents are an extension: they have files of their own, or the result of its tool
contains their messages, without entries, or only their usage. Abandoned branches were paid for, and count.
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
from orchtrace_corpus.trace.importers.core.values import count, dollars, mapping, objects, string, text_field, text_of
from orchtrace_corpus.trace.model.import_report import LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_SUMMARIES = frozenset(("compaction", "branch_summary"))
"""Entries for which a model was asked aside; none states its usage."""
_SILENT = frozenset(
    """
    agent_end agent_start auto_retry_end auto_retry_start compaction_end compaction_start custom label message_start
    message_update model_change queue_update session_info thinking_level_change tool_execution_end
    tool_execution_start tool_execution_update turn_end turn_start
    """.split()
)
"""Entries and printed events that say nothing new about agents, calls or tokens."""
_ENTRY = frozenset(("id", "parentId", "timestamp"))
_IDENTITY = ("role", "timestamp", "toolCallId", "usage")
"""The fields that identify a message in its session; versions of the program give new ids."""
_ASKING = frozenset(("question", "questionnaire"))  # tools of extensions that ask a person
_ROLES = frozenset(("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"))  # of messages
_SUFFIX = ".jsonl"
_FOLDER = re.compile(r"_([0-9a-f]{8}-[0-9a-f-]{27})(?=[/\\])")
"""The folder of the sub-agents of a session, with its name."""


class _Row(Struct, gc=False, rename="camel"):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    message: Any = None
    version: Any = None
    from_hook: Any = None


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a session of Pi, also one that has lost its header."""
    return any(
        _is_header(row)
        or (row.get("type") == "message" and row.keys() >= _ENTRY and text_field(row.get("message"), "role") in _ROLES)
        for row in beginning.rows[:5]
    )


def _is_header(row: dict[str, Any]) -> bool:
    return row.get("type") == "session" and "cwd" in row and all(text_field(row, name) for name in ("id", "timestamp"))


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: its session, which copies share and forks do not, and the parent's."""
    row = next(iter(reader.first().rows), {})
    above = [f"pi {session}" for session in _FOLDER.findall(os.path.realpath(reader.file.path))]
    return [f"pi {row['id']}" if _is_header(row) else reader.file.path, *above]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of the sub-agents of a session of which one file is named."""
    path = os.path.realpath(reader.file.path)
    folder = path.removesuffix(_SUFFIX)
    if folder == path or not os.path.isdir(folder):
        return []
    names = sorted(iglob(os.path.join(escape(folder), "**", f"*{_SUFFIX}"), recursive=True))
    return [logs.LogFile(name, masked_path(os.path.relpath(name, os.path.dirname(path)))) for name in names]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run."""
    reading = _Reading(privacy, files)
    by_folder = {os.path.realpath(file.path).removesuffix(_SUFFIX): file for file in files}
    keys: dict[str, str] = {}
    for path in sorted(by_folder, key=lambda path: path.count(os.sep)):  # sessions before those below them
        above = os.path.dirname(path)
        while above not in by_folder and os.path.dirname(above) != above:
            above = os.path.dirname(above)
        keys[path] = reading.take(by_folder[path], keys.get(above))
    run = reading.run
    run.name = run.name or files[0].name
    for child, parent in reading.unreturned.items():
        ended = max((step.last_time for step in run.agent(child).steps), default=0.0)
        notices = (step for key, step in reading.notices if key == parent and step.time >= ended)
        if (notice := next(notices, None)) is not None:
            run.add_return(child, notice)
    yield run.trace()


class _Reading:
    def __init__(self, privacy: Privacy, files: Sequence[logs.LogFile]) -> None:
        self.run = Run("pi", privacy)
        self._own_files = {_agent_of(file.path) for file in files}
        self._background: dict[str, tuple[str, str]] = {}  # agent and call that started a run in the background
        self.unreturned: dict[str, str] = {}
        self.notices: list[tuple[str, steps.Step]] = []  # steps of agents that may say that such a run has ended
        self._seen = SeenRows()
        # the last answer of agents without entries, which lasts until the next message, and its calls
        self._untimed: dict[str, tuple[steps.ModelCall, list[steps.ToolCall]]] = {}

    def take(self, file: logs.LogFile, above: str | None) -> str:
        """Read the entries of a file, each once, and return its agent, given the parent, if it has one."""
        run, key = self.run, ROOT if above is None else _agent_of(file.path)
        if above is not None and not run.is_spawned(key):  # no result names it
            parent, call_id = self._background.get(key.split("/")[0], (above, ""))
            run.agent(key, "agent")
            run.spawn(key, parent, call_id, waits=False)
            self.unreturned[key] = parent
        self._seen.begin_file()
        for line, row in logs.rows(file, run.report, _Row):
            message, kind, time = mapping(row.message), string(row.type), moment(row.timestamp)
            place = steps.Place(file.name, line)
            identity = (str(row.type), str(row.timestamp), *(str(message.get(name)) for name in _IDENTITY))
            if kind == "session" and key != ROOT:
                run.report.skip("header of a sub-agent's session")
            elif kind == "session":
                run.name = run.name or string(row.id)
                run.version = run.version or str(count(row.version) or 1)
            elif not self._seen.is_new(identity):
                run.report.skip("copy of an entry")
                if message.get("role") == "assistant":
                    run.leave_out(LedgerLine.REPEATED_USAGE, _usage(message), caches_apart=True)
            elif kind in ("message", "message_end"):
                self._take_message(key, message, time, place)
            elif kind in _SUMMARIES and row.from_hook is not True:
                run.aside(key).add(steps.ModelCall(time, place, end=time, is_dated=True))
            elif kind == "custom_message":
                self.notices.append((key, run.note(key, time, place)))
            else:
                run.skip(kind, is_known=kind in _SILENT or kind in _SUMMARIES)
        return key

    def _take_message(self, key: str, message: dict[str, Any], written: float, place: steps.Place) -> None:
        """Take a message, with the time of its entry, `NO_TIME` if it has no entry."""
        run, role, dated = self.run, text_field(message, "role"), moment_ms(message.get("timestamp"))
        time = dated if written == NO_TIME else written
        self._end_untimed(key, time)
        if role == "assistant":
            self._take_answer(key, message, dated, written, place)
        elif role == "toolResult":
            self._take_result(key, message, time, place)
        elif role == "user" and key == ROOT:
            run.prompt(key, dated if dated != NO_TIME else time, place, _content(message))
        elif role == "bashExecution":
            run.prompt(key, time, place, message.get("command"), is_command=True)
        elif role in _ROLES:
            run.note(key, time, place)
        else:
            run.report.note_unknown(masked(f"message of {role or 'nobody'}"))

    def _take_answer(self, key: str, message: dict[str, Any], asked: float, written: float, place: steps.Place) -> None:
        run = self.run
        end = asked if written == NO_TIME else written
        model = masked(text_field(message, "responseModel") or text_field(message, "model"))
        call = run.answer(key, end, place, model)
        if asked != NO_TIME and end != NO_TIME:
            run.agent(key).date_request(call, asked)
            call.is_dated = True
            if written != NO_TIME:
                call.more = {**(call.more or {}), "inferred": False}  # both of its ends are in the log
        ending = text_field(message, "stopReason")
        call.more = {**(call.more or {}), **_stated(message)}
        calls = []
        for part in objects(message.get("content")):
            call.note_text(text_field(part, "thinking") or text_field(part, "text"), run.privacy)
            if part.get("type") == "toolCall":
                call_id, tool = text_field(part, "id"), text_field(part, "name")
                calls.append(run.call(key, call_id, tool, end, place, part.get("arguments"), call))
                if calls[-1].tool in _ASKING:
                    calls[-1].purpose = steps.ASK
        if ending == "error":
            call.error = "model_error"
        usage = _usage(message)
        if not call.error or call.ref or any(map(count, usage)):  # the service refused, and was paid nothing
            run.spend(call, usage, caches_apart=True)
        if written == NO_TIME:
            self._untimed[key] = call, calls
        if ending == "aborted" and key == ROOT:
            run.interrupt(key, end, place)
        current_answer_ids().note((asked, *usage), call.model, place.file, place.line)

    def _end_untimed(self, key: str, time: float) -> None:
        """End the last answer of an agent without entries at a time."""
        if key in self._untimed:
            call, tool_calls = self._untimed.pop(key)
            call.end = max(call.end, time)
            for tool_call in tool_calls:
                tool_call.time = call.end

    def _take_result(self, key: str, message: dict[str, Any], time: float, place: steps.Place) -> None:
        call_id = text_field(message, "toolCallId")
        error = "tool_error" if message.get("isError") is True else ""
        result = self.run.result(key, call_id, time, place, _content(message), error=error)
        details = mapping(message.get("details"))
        call = self.run.calls.get((key, call_id))
        if background := text_field(details, "asyncId"):
            self._background.setdefault(f"async-{background}", (key, call_id))
            self.notices.append((key, result))
        runs = []  # of sub-agents that have begun: they said or spent something, or have files of their own
        for child_run in objects(details.get("results")):
            is_known = _agent_of(text_field(child_run, "sessionFile")) in self._own_files
            has_begun = is_known or objects(child_run.get("messages")) or any(map(count, _usage(child_run)))
            if has_begun and text_field(child_run, "agent"):
                runs.append(child_run)
        if call is not None and not runs and call.purpose is steps.TOOL and NO_TIME not in (call.time, time):
            call.more = {"run_time": max(time - call.time, 0.0)}  # the program asks no person for permission
        is_parallel = details.get("mode") == "parallel"
        untimed: list[str] = []
        for index, child_run in enumerate(runs):
            messages = objects(child_run.get("messages"))
            if untimed and not is_parallel and messages:  # each ends when the next begins
                self._end_untimed(untimed[-1], moment_ms(messages[0].get("timestamp")))
            child = f"{key}{call_id or place}/{index}"
            own_file = _agent_of(text_field(child_run, "sessionFile"))
            if own_file in self._own_files:
                child, messages = own_file, []
            name = text_field(child_run, "agent")
            self.run.agent(child, name, role=name)
            self.run.spawn(child, key, call_id, place)
            self._take_child(child, child_run, messages, result)
            untimed.append(child)
        for child in untimed:
            self._end_untimed(child, NO_TIME if is_parallel else time)

    def _take_child(
        self, child: str, child_run: dict[str, Any], messages: list[dict[str, Any]], returned: steps.ToolResult
    ) -> None:
        """Take what the result of a tool says of a sub-agent that it ran: its messages, or only its usage."""
        run, place = self.run, returned.place
        for message in messages:
            self._take_message(child, message, NO_TIME, place)
        usage = _usage(child_run)
        if any(map(count, usage)):
            if messages or child in self._own_files:
                run.leave_out(LedgerLine.CHILD_TOTAL, usage, caches_apart=True)
            else:
                # one answer for all, of which the log has only the usage; it ends with the result
                took = duration(mapping(child_run.get("progressSummary")).get("durationMs"), 1000)
                begin = returned.time if returned.time == NO_TIME else max(returned.time - took, 0.0)
                answer = run.answer(child, begin, place, masked(text_field(child_run, "model")))
                answer.end, answer.is_dated, answer.more = returned.time, True, _stated(child_run)
                run.spend(answer, usage, LedgerLine.SUBAGENT_TOTAL, caches_apart=True)
        ending = text_field(child_run, "stopReason")
        status = Status.ERROR if child_run.get("exitCode") or ending == "error" else Status.OK
        status = Status.CANCELLED if ending == "aborted" or child_run.get("interrupted") is True else status
        last = messages[-1] if messages else {}
        words = _content(last) if last.get("role") == "assistant" else child_run.get("finalOutput")
        run.add_return(child, returned, status, run.privacy.reference(words))


def _agent_of(path: str) -> str:
    """Return the key of a sub-agent: the end of its session's path, which stays when folders are moved."""
    return "/".join(re.split(r"[/\\]", path)[-3:])


def _content(message: dict[str, Any]) -> Any:
    """Return the texts of a message, or its content if it has none."""
    return text_of(message.get("content")) or message.get("content")


def _stated(message: dict[str, Any]) -> dict[str, Any]:
    """Return the finish reason and the cost of an answer."""
    stated: dict[str, Any] = {}
    if ending := masked(text_field(message, "stopReason")):
        stated["finish_reason"] = ending
    cost = mapping(message.get("usage")).get("cost")
    cost = cost.get("total") if type(cost) is dict else cost  # of a sub-agent's result
    if (total := dollars(cost)) is not None:
        stated["cost_usd"] = total
    return stated


def _usage(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return the counts of an answer, whose input excludes caches."""
    used = mapping(message.get("usage"))
    return *map(used.get, ("input", "output", "cacheRead", "cacheWrite")), None
