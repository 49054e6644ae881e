"""Pi sessions: one JSON Lines file each, a header and the entries of a tree. What `pi --mode json` prints is read, too.

The time of an entry is when it was written. A message has a time of its own: of an answer that is when the model was
asked, so answers have both ends. Sub-agents are an extension: the result of its tool holds all their messages, each
with its own time alone. Entries of abandoned branches were paid for, and count. Shapes: pi-coding-agent 0.73.1.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import SeenRows, current_answers
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment, moment_ms
from orchtrace_corpus.trace.importers.core.values import count, mapping, objects, string, text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine
from orchtrace_corpus.trace.model.trace import Status, Trace

_ROLES = frozenset(("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"))
_SUMMARIES = frozenset(("compaction", "branch_summary"))
"""Entries for which a model was asked aside; none states its usage."""
_SILENT = frozenset(
    (
        "agent_end", "agent_start", "auto_retry_end", "auto_retry_start", "compaction_end", "compaction_start",
        "custom", "label", "message_start", "message_update", "model_change", "queue_update", "session_info",
        "thinking_level_change", "tool_execution_end", "tool_execution_start", "tool_execution_update",
        "turn_end", "turn_start",
    )
)  # fmt: skip
"""Entries and printed events that say nothing about agents, calls or tokens, or say it again."""
_TELLING = ("role", "timestamp", "toolCallId")
"""What tells a message from others of its session, whose ids versions of the program give anew."""
_ASKING = frozenset(("question", "questionnaire"))
"""The tools by which extensions of the program ask a person."""


class _Row(Struct, gc=False, rename="camel"):
    """An entry, or a printed event, as far as it is read."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    message: Any = None
    version: Any = None
    from_hook: Any = None


class _Untimed(Struct, gc=False):
    """The last answer of an agent whose messages have one time each: it lasts until the next message."""

    call: steps.ModelCall
    tool_calls: list[steps.ToolCall]


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is a session of Pi, also one that has lost its header."""
    return any(_is_header(row) or _is_message(row) for row in beginning.rows[:5])


def _is_header(row: dict[str, Any]) -> bool:
    return row.get("type") == "session" and "cwd" in row and all(text_field(row, name) for name in ("id", "timestamp"))


def _is_message(row: dict[str, Any]) -> bool:
    is_entry = row.get("type") == "message" and row.keys() >= {"id", "parentId", "timestamp"}
    return is_entry and text_field(row.get("message"), "role") in _ROLES


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a file to others: the id of its session, which copies share and forks do not.

    Raises:
        DataFileError: The file cannot be read.
    """
    row = next(iter(opened.first().rows), {})
    return [f"pi {row['id']}" if _is_header(row) else opened.file.path]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run.

    Raises:
        DataFileError: A file cannot be read, or nothing ran.
    """
    reading = _Reading(privacy)
    for file in files:
        reading.take(file)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a run."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("pi", privacy)
        self._seen = SeenRows()
        self._untimed: dict[str, _Untimed] = {}

    def take(self, file: LogFile) -> None:
        """Read the entries of a file, each once.

        Raises:
            DataFileError: The file cannot be read.
        """
        run = self._run
        self._seen.begin_file()
        for line, row in logs.rows(file, run.report, _Row):
            message = mapping(row.message)
            if row.type == "session":
                run.name = run.name or string(row.id)
                run.version = run.version or str(count(row.version) or 1)
            elif self._seen.is_new((str(row.type), str(row.timestamp), *(str(message.get(name)) for name in _TELLING))):
                self._take(row, message, steps.Place(file.name, line))
            else:
                run.report.pass_over("copy of an entry")
                if message.get("role") == "assistant":
                    run.leave_out(LedgerLine.REPEATED_USAGE, _usage(message), caches_apart=True)

    def _take(self, row: _Row, message: dict[str, Any], place: steps.Place) -> None:
        time, kind = moment(row.timestamp), string(row.type)
        if kind in ("message", "message_end"):
            self._take_message(ROOT, message, time, place)
        elif kind in _SUMMARIES and row.from_hook is not True:
            self._run.aside(ROOT).add(steps.ModelCall(time, place, end=time, is_dated=True))
        elif kind == "custom_message":
            self._run.agent(ROOT).add(steps.Note(time, place))
        elif kind in _SILENT or kind in _SUMMARIES:
            self._run.report.pass_over(kind)
        else:
            self._run.report.note_unknown(masked(kind) or "(no type)")

    def _take_message(self, key: str, message: dict[str, Any], written: float, place: steps.Place) -> None:
        """Take a message of an agent.

        Args:
            key: The agent.
            message: The message.
            written: When its entry was written; `NO_TIME` where only the message has a time.
            place: Where it stands.
        """
        run, role, dated = self._run, text_field(message, "role"), moment_ms(message.get("timestamp"))
        time = dated if written == NO_TIME else written
        self._end_untimed(key, time)
        agent = run.agent(key)
        if role == "assistant":
            self._take_answer(key, message, dated, written, place)
        elif role == "toolResult":
            self._take_result(key, message, time, place)
        elif role == "user" and key == ROOT:
            ref = run.privacy.reference(_text(message.get("content")))
            agent.add(steps.UserInput(dated if dated != NO_TIME else time, place, ref=ref))
        elif role == "bashExecution":
            ref = run.privacy.reference(message.get("command"))
            agent.add(steps.UserInput(time, place, ref=ref, is_command=True))
        elif role in _ROLES:
            agent.add(steps.Note(time, place))
        else:
            run.report.note_unknown(masked(f"message of {role or 'nobody'}"))

    def _take_answer(self, key: str, message: dict[str, Any], asked: float, written: float, place: steps.Place) -> None:
        run, agent = self._run, self._run.agent(key)
        end = asked if written == NO_TIME else written
        call = steps.ModelCall(
            end, place, end=end, model=masked(text_field(message, "responseModel") or text_field(message, "model"))
        )
        agent.add(call)
        if asked != NO_TIME and end != NO_TIME:
            agent.date_request(call, asked)
            call.is_dated = True
            if written != NO_TIME:
                call.more = {**(call.more or {}), "inferred": False}  # both of its ends are in the log
        ending = text_field(message, "stopReason")
        content = objects(message.get("content"))
        for part in content:
            call.note_text(text_field(part, "thinking") or text_field(part, "text"), run.privacy)
        call.more = {**(call.more or {}), **_stated(message)}
        if ending == "error":
            call.error = "model_error"
        usage = _usage(message)
        if not call.error or call.ref or any(map(count, usage)):  # the service refused, and was paid nothing
            run.spend(call, usage, caches_apart=True)
        calls = [
            run.call(key, text_field(part, "id"), text_field(part, "name"), end, place, part.get("arguments"), call)
            for part in content
            if part.get("type") == "toolCall"
        ]
        for tool_call in calls:
            tool_call.purpose = steps.ASK if tool_call.tool in _ASKING else tool_call.purpose
        if written == NO_TIME:
            self._untimed[key] = _Untimed(call, calls)
        if ending == "aborted" and key == ROOT:
            agent.add(steps.UserInput(end, place, waited=False, status=Status.CANCELLED))
        current_answers().note((asked, *usage), call.model, place.file, place.line)

    def _end_untimed(self, key: str, time: float) -> None:
        """Let the last answer of an agent, of which only the beginning is known, last until a time."""
        last = self._untimed.pop(key, None)
        if last is not None:
            last.call.end = max(last.call.end, time)
            for tool_call in last.tool_calls:
                tool_call.time = last.call.end

    def _take_result(self, key: str, message: dict[str, Any], time: float, place: steps.Place) -> None:
        call_id = text_field(message, "toolCallId")
        is_error = message.get("isError") is True
        status, error = (Status.ERROR, "tool_error") if is_error else (Status.OK, "")
        result = self._run.result(key, call_id, time, place, _text(message.get("content")), status, error)
        call = self._run.calls.get((key, call_id))
        if call is not None and call.purpose is steps.TOOL and key == ROOT and NO_TIME not in (call.time, time):
            call.more = {"run_time": max(time - call.time, 0.0)}  # the program asks nobody for leave
        details = mapping(message.get("details"))
        runs = [run for run in objects(details.get("results")) if text_field(run, "agent") and "messages" in run]
        is_parallel = details.get("mode") == "parallel"
        children = [f"{key}{call_id or place}/{number}" for number in range(len(runs))]
        for number, (child, child_run) in enumerate(zip(children, runs, strict=True)):
            messages = objects(child_run["messages"])
            if number and not is_parallel and messages:  # one after another: each ends where the next begins
                self._end_untimed(children[number - 1], moment_ms(messages[0].get("timestamp")))
            if messages:
                self._take_child(child, key, call_id, child_run, messages, result)
        for child in children:
            if is_parallel:
                self._untimed.pop(child, None)
            self._end_untimed(child, time)

    def _take_child(
        self,
        child: str,
        key: str,
        call_id: str,
        child_run: dict[str, Any],
        messages: list[dict[str, Any]],
        returned: steps.ToolResult,
    ) -> None:
        """Take the messages of a sub-agent, which stand in the result of the tool that ran it."""
        run, place, name = self._run, returned.place, text_field(child_run, "agent")
        run.agent(child, name, role=name)
        run.spawn(child, key, call_id, place)
        for message in messages:
            self._take_message(child, message, NO_TIME, place)
        ending = text_field(child_run, "stopReason")
        status = Status.ERROR if child_run.get("exitCode") or ending == "error" else Status.OK
        status = Status.CANCELLED if ending == "aborted" else status
        is_answer = text_field(messages[-1], "role") == "assistant"
        said = _text(messages[-1].get("content")) if is_answer else None
        run.returned(child, returned, status, run.privacy.reference(said))
        if mapping(child_run.get("usage")):
            run.leave_out(LedgerLine.CHILD_TOTAL, _usage(child_run), caches_apart=True)

    def trace(self, file: LogFile) -> Trace:
        """Return the trace.

        Raises:
            EmptyLogError: Nothing ran.
        """
        self._run.name = self._run.name or file.name
        return self._run.trace()


def _text(content: Any) -> Any:
    """Return the texts of a content, or the content itself where it has none."""
    texts = [text_field(part, "text") for part in objects(content)]
    return "\n".join(filter(None, texts)) or content


def _stated(message: dict[str, Any]) -> dict[str, Any]:
    """Return what a log says of an answer besides its tokens: how it ended, and what it cost."""
    stated: dict[str, Any] = {}
    if ending := masked(text_field(message, "stopReason")):
        stated["finish_reason"] = ending
    cost = mapping(mapping(message.get("usage")).get("cost")).get("total")
    if isinstance(cost, (int, float)) and cost is not True and 0 < cost < 1e300:  # 0 where the program knows no price
        stated["cost_usd"] = float(cost)
    return stated


def _usage(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return the usage of an answer as it is stated, its kinds of input apart."""
    used = mapping(message.get("usage"))
    return used.get("input"), used.get("output"), used.get("cacheRead"), used.get("cacheWrite"), None
