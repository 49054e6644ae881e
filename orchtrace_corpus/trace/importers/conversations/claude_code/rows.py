"""The rows of a Claude Code session, read into the threads of its agents.

Fields of rows have no types here, since each of them has another type in some version.

Commands and monitors may run in the background. The result of such a call only names its task. The task ends with the
first sign of its end: a notification with a status, in the queue of the program or among the rows of the agent; the
result of a call that asks for its output; or the result of a call that stops it. Notifications without a status, and
outputs of a running task, are signs of life. A task without a sign of its end worked at least until its last sign.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Raw, Struct, field

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answer_ids, is_qwen, program_of
from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, decoded, lenient
from orchtrace_corpus.trace.importers.core.privacy import masked, masked_path
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, moment
from orchtrace_corpus.trace.importers.core.transcript import Place, Transcript
from orchtrace_corpus.trace.importers.core.values import (
    MAX_COUNT,
    count,
    first_text,
    mapping,
    string,
    text_field,
    text_of,
)
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status


class Opening(Struct, gc=False, rename="camel"):
    """The fields of a row that identify its file and session."""

    # in the order of most rows, in which msgspec looks for them
    parent_uuid: Any = None
    is_sidechain: Any = None
    session_id: Any = None
    version: Any = None
    agent_id: Any = None
    kind: Any = field(default=None, name="type")
    uuid: Any = None
    timestamp: Any = None


class Line(Opening, gc=False, rename="camel"):
    """A row."""

    message: Any = None
    request_id: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    origin: Any = None
    forked_from: Any = None  # the session and the row of which this row is a copy
    attachment: Any = None
    data: Any = None
    parent_tool_use: Any = field(default=None, name="parentToolUseID")
    # the structured part of a result, which repeats the output of the tool; decoded by `details_of`
    tool_use_result: Raw = NOTHING
    subtype: Any = None
    duration_ms: Any = None
    content: Any = None


class Details(Struct, gc=False):
    """The structured part of a result: agents, tasks, and usage."""

    agent: Any = field(default=None, name="agentId")
    teammate: Any = field(default=None, name="agent_id")
    run: Any = field(default=None, name="runId")
    task: Any = field(default=None, name="taskId")
    background_task: Any = field(default=None, name="backgroundTaskId")
    status: Any = None
    is_async: Any = field(default=None, name="isAsync")
    usage: Any = None
    total: Any = field(default=None, name="totalTokens")


def details_of(row: Line) -> Details | None:
    """Return the structured part of a result; None if it is missing, or only a text."""
    content = bytes(row.tool_use_result)
    details: Details | None = decoded(content, Details) if content.startswith(b"{") else None
    return details


FORBIDDEN = "forbidden"
"""The error of a call that a rule does not allow."""

_PUT_THERE = (
    "<local-command-stdout", "<local-command-stderr", "<local-command-caveat", "<bash-stdout", "<bash-stderr",
    "<system-reminder", "Caveat: The messages below", "This session is being continued from a previous conversation",
)  # fmt: skip
_NOTIFICATIONS = ("<task-notification", "<bash-notification", "<agent-notification")
_TEAMMATE_MESSAGE = r"(?s)<teammate-message([^>]{0,1000})>(.*?)</teammate-message>"
_NOTIFICATION = r"(?s)<(task|bash|agent)-notification\b.*?(?:</\1-notification>|\Z)"
_COMMANDS = ("<command-name>", "<command-message>", "<bash-input>")
_INTERRUPTED = "[Request interrupted by user"
_REFUSALS = (
    "The user doesn't want to",
    "User rejected",
    "Error: The user doesn't want to",
    "The tool use was rejected",
)
_DENIALS = ("Permission to use", "Permission for this", "Claude requested permissions")


class Speaker(StrEnum):
    """The author of the text in a user row."""

    PERSON = "person"
    COMMAND = "command"
    INTERRUPTION = "interruption"
    PROGRAM = "program"
    TASK = "task"
    TEAMMATE = "teammate"


class Task(NamedTuple):
    """The fields of a notification of a task in the background; missing ones are empty."""

    task: str
    call: str
    status: str
    result: str


def speaker_of(text: str) -> Speaker:
    """Return the author of a text."""
    text = text.lstrip()
    if text.startswith(_NOTIFICATIONS):
        return Speaker.TASK
    if text.startswith(_PUT_THERE):
        return Speaker.PROGRAM
    if text.startswith(_INTERRUPTED):
        return Speaker.INTERRUPTION
    if text.startswith(_COMMANDS):
        return Speaker.COMMAND
    return Speaker.TEAMMATE if "<teammate-message" in text else Speaker.PERSON


def read_tasks(text: str) -> Iterator[Task]:
    """Yield the notifications of tasks in a text."""
    for notification in re.finditer(_NOTIFICATION, text):
        task, shell, agent, call, status, result = (
            element(notification[0], name)
            for name in ("task-id", "shell-id", "agent-id", "tool-use-id", "status", "result")
        )
        yield Task(task or shell or agent, call, status, result)  # earlier versions call it by its kind


def element(text: str, name: str) -> str:
    """Return the text of the first element of that name; empty where there is none."""
    content, closing, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return content.strip() if closing else ""


def teammate_messages(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sender and the body of each `<teammate-message>` in a text."""
    end = text.rfind("</teammate-message>") + len("</teammate-message>")  # else an open tag is searched to the end
    for message in re.finditer(_TEAMMATE_MESSAGE, text[:end]):
        sender, closing, _ = message[1].partition('teammate_id="')[2].partition('"')
        if sender and closing:
            yield sender, message[2].strip()


def error_of(text: str) -> str:
    """Return the kind of error of a result: refused or interrupted by a person, forbidden by a rule, or any other."""
    text = text.lstrip()
    if text.startswith(_REFUSALS):
        return steps.REJECTED
    if text.startswith(_INTERRUPTED):
        return steps.INTERRUPTED
    return FORBIDDEN if text.startswith(_DENIALS) else "tool_error"


_TIMED_OUT = r"Command timed out after (?:(\d+)h ?)?(?:(\d+)m ?)?(?:([\d.]+)s)?"


def time_limit_of(text: str) -> float:
    """Return the seconds after which a command was stopped, as the text of its result says; 0 where it was not."""
    match = re.search(_TIMED_OUT, text[:1000]) or re.search(_TIMED_OUT, text[-1000:])
    if match is None:
        return 0.0
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


USAGE = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_read", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
)
"""The kinds of tokens, and what a usage calls them."""

WORKFLOW_TOOL = "Workflow"
"""The tool that starts a workflow."""


class Written(Struct):
    """An answer of a model, as far as its rows have been read."""

    call: steps.ModelCall
    thread: Transcript
    tokens: dict[str, int] | None = None  # by kind, from its last row
    rows: int = 1  # the number of its rows
    characters: int = 0  # of text and thinking
    is_open: bool = False  # whether its last row was written before the model stopped: its output is a placeholder
    is_odd: bool = False  # whether the usage of its last row has a count that is not a number


_MAX_CHARACTERS_OF_TOKEN = 40  # even of blanks and line ends; a token of words has four
_NEGLIGIBLE_CHARACTERS = 400


def is_placeholder(written: Written) -> bool:
    """Return True if an answer's output was counted before it was written, as it says, or as its length shows."""
    if written.is_open or written.tokens is None:
        return written.is_open
    return written.characters > _MAX_CHARACTERS_OF_TOKEN * written.tokens.get("output", 0) + _NEGLIGIBLE_CHARACTERS


class Result(Struct):
    """A result, with what it says of agents."""

    answer: steps.ToolResult
    thread: Transcript
    id: str
    agent: str = ""  # the agent that its structured part names
    tail: str = ""  # the agent that its text names at the end
    run: str = ""  # the workflow that it has started
    task: str = ""  # the background task that it has started
    launched: bool = False  # whether it only says that an agent or workflow has begun
    done: bool = False  # whether it says that the agent that was waited for is done
    refused: bool = False  # whether it says that nothing was done
    usage: dict[str, int] | None = None
    total: int | None = None  # its `totalTokens`
    background: str = ""  # the task in the background that the call of a tool has begun
    time_limit: float = 0.0  # the seconds after which the call was stopped; 0 if it was not


class AgentCall(Struct):
    """A call about an agent or task: it spawns one, sends it a message, waits for it or ends it."""

    call: steps.ToolCall
    thread: Transcript
    id: str
    name: str = ""  # the name of the agent or task in the call
    mark: int = 0  # of the message or task
    result: Result | None = None


class Spawn(AgentCall):
    """A call that spawns an agent."""

    team: str = ""
    row: str = ""
    in_background: bool = False  # whether the call does not wait for the agent
    child: str = ""  # the key of the agent; empty while none is known


class Arrival(Struct):
    """A message of a teammate, with the teammate's name in the team."""

    step: steps.Delivery
    thread: Transcript
    name: str
    mark: int


class Beginning(Struct):
    """The beginning of a sub-agent's thread, by which its spawn is found."""

    prompt: int = 0  # the mark of its task; 0 if unknown
    parent_row: str = ""


def usage_of(value: Any) -> tuple[dict[str, int] | None, bool]:
    """Return the tokens of a `usage`, None if it has none, and True if one of its counts is not a number."""
    if type(value) is not dict:
        return None, False
    tokens, is_odd = {}, False
    for kind, name in USAGE:
        stated = value.get(name)
        if type(stated) is int and 0 <= stated <= MAX_COUNT:  # faster than `count`
            tokens[kind] = stated
        elif (amount := count(stated)) is not None:
            tokens[kind] = amount
        elif stated is not None:
            is_odd = True
    by_duration = value.get("cache_creation")
    if type(by_duration) is dict and (for_an_hour := count(by_duration.get("ephemeral_1h_input_tokens"))):
        tokens["cache_write_1h"] = min(for_an_hour, tokens.get("cache_write", 0))
    return tokens or None, is_odd


_ROW_TYPES = frozenset(
    ("user", "assistant", "system", "summary", "progress", "attachment", "queue-operation", "file-history-snapshot")
)
_DOCUMENTS = ({"agentType"}, {"toolUseId"}, {"runId", "workflowName"}, {"runId", "workflowProgress"})
"""The fields that identify the files beside transcripts."""
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".meta")
_AGENT = "agent-"
_LEAST_ID_LENGTH = 32  # shorter ids are made up by people: two files with the same one are not one session


class Part(StrEnum):
    """The part of a session that a file is."""

    MAIN = "main"
    AGENT = "agent"
    META = "meta"
    JOURNAL = "journal"
    RUN = "run"


class Source(NamedTuple):
    """A file of a session."""

    file: logs.LogFile
    part: Part
    shown: str  # its name in events: the path from the session's own folder on, which names no project
    agent: str = ""  # the agent of the file, if it has one
    run: str = ""  # the workflow of the file, if it has one


def further_files(reader: logs.LogReader) -> list[logs.LogFile]:
    """Return the files that may be transcripts of a session's sub-agents; their keys decide.

    They are in `SESSION/` for `SESSION.jsonl`, or `agent-ID.jsonl` in its own folder.
    """
    path = reader.file.path
    folder, name = os.path.split(path)
    session, ending = os.path.splitext(path)
    if ending not in logs.SUFFIXES or name.startswith(_AGENT):
        return []
    files = []
    if os.path.isdir(session) and os.listdir(session):
        files += logs.find(session).files
    for name in sorted(os.listdir(folder or os.curdir)):
        agent = os.path.join(folder, name)
        if name.startswith(_AGENT) and name.endswith(ending) and os.path.isfile(agent):
            files.append(logs.LogFile(agent, masked_path(name)))
    return files


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file with this beginning belongs to a Claude Code session."""
    if not any(map(_is_row, beginning.rows)) and not any(names <= beginning.outline for names in _DOCUMENTS):
        return False
    is_qwen_code = any(map(is_qwen, beginning.rows)) or {"agentType", "parentSessionId"} <= beginning.outline
    return not is_qwen_code and not program_of(beginning)


def _is_row(row: dict[str, Any]) -> bool:
    kind = row.get("type")
    if kind in ("started", "result") and "agentId" in row and "key" in row:
        return True
    if not isinstance(kind, str) or kind not in _ROW_TYPES:
        return False
    if kind in ("user", "assistant"):
        content = row["message"].get("content") if isinstance(row.get("message"), dict) else None
        blocks = content if isinstance(content, list) else []
        return isinstance(content, str) or any(isinstance(block, dict) and "type" in block for block in blocks)
    return "sessionId" in row or "uuid" in row or "leafUuid" in row or "messageId" in row


def source(file: logs.LogFile, openings: Sequence[Opening] | None = None) -> Source:
    """Return a file as a part of its session, by its path, or by its first rows if it was renamed."""
    folders = file.path_text.replace(os.sep, "/").split("/")
    name = folders.pop()
    below = folders.index("subagents") if "subagents" in folders else -1
    if below < 0 and folders[-1:] == ["workflows"] and name.endswith(".json"):
        return Source(file, Part.RUN, masked_path("/".join((*folders[-2:], name))), run=name.removesuffix(".json"))
    agent = name.removeprefix("agent-")
    for suffix in _SUFFIXES:
        agent = agent.removesuffix(suffix)
    if below < 0:
        if not name.startswith("agent-"):
            if openings is None:
                with logs.LogReader(file) as reader:
                    openings = _openings(reader)
            agents = {string(row.agent_id) if row.is_sidechain is True else "" for row in openings}
            agent = agents.pop() if len(agents) == 1 else ""
        return Source(file, Part.AGENT if agent else Part.MAIN, masked_path(name), agent)
    shown = masked_path("/".join((*folders[max(below - 1, 0) :], name)))
    run = folders[below + 2] if folders[below + 1 : below + 2] == ["workflows"] and len(folders) > below + 2 else ""
    if name == "journal.jsonl":
        return Source(file, Part.JOURNAL, shown, run=run)
    return Source(file, Part.META if name.endswith(".meta.json") else Part.AGENT, shown, agent, run)


def _openings(reader: logs.LogReader) -> list[Opening]:
    """Return the rows of the conversation among the first of a file."""
    return [row for row in reader.rows(Opening) if row.kind in ("user", "assistant")]


def session_keys(reader: logs.LogReader) -> list[str]:
    """Return the session keys of a file.

    Sub-agents belong to the session in whose folder they are, or else to the one that their rows name. A session
    that goes on in a second file, which repeats rows of the first or names its session, is one session.
    """
    file = reader.file
    folder, _, name = file.path.replace(os.sep, "/").rpartition("/")
    inside = folder.split("/")
    if "subagents" in inside:
        return ["/".join(inside[: inside.index("subagents")])]
    openings = _openings(reader)
    part = source(file, openings).part
    if part is Part.RUN:
        return ["/".join(inside[:-1])]
    session = next((row.session_id for row in openings if isinstance(row.session_id, str)), "")
    if part is Part.AGENT and session:
        return [f"{folder}/{session.partition('#')[0]}"]
    names = [f"{folder}/{name.removesuffix('.jsonl')}"]
    if part is Part.MAIN:
        if len(session) >= _LEAST_ID_LENGTH:
            names.append(f"{folder}/{session}")
        ids = [row for row in openings[:2] if len(string(row.uuid)) >= _LEAST_ID_LENGTH]
        names += [f"{folder}\n{row.uuid} {row.timestamp}" for row in ids]
    return names


_LAUNCHED = r"(?:Command [^\n]{1,120}?\bbackground(?:ed by user)? with ID: |Monitor started \(task )([\w-]+)"
"""The text of a result whose call goes on, if it has no structured part."""
_NOTICE_LENGTH = 500  # the longest such text, which names a file

ENDS = {
    "completed": Status.OK,
    "failed": Status.ERROR,
    "error": Status.ERROR,
    "killed": Status.CANCELLED,
    "stopped": Status.CANCELLED,
    "cancelled": Status.CANCELLED,
    "timeout": Status.CANCELLED,
    "timed_out": Status.CANCELLED,
}
"""The words for the end of a task; under any other word it goes on."""

POLLS = frozenset(("BashOutput", "TaskOutput", "AgentOutputTool"))
"""The tools that ask for the output of a task."""

STOPS = frozenset(("KillBash", "KillShell", "TaskStop"))
"""The tools that stop a task."""


class Sign(Struct):
    """A sign of life or of the end of a task."""

    task: str  # the task; empty if only the call is named
    call: str  # the id of the call that began it; empty if only the task is named
    step: steps.Step  # the time and the place of the sign
    end: Status | None  # the status of the ended task; None if it goes on
    status: str = ""  # the word for it
    thread: Transcript | None = None  # the agent that is notified
    ref: str = ""  # refers to the result of the task


def launched_task(text: str, row: Line) -> str:
    """Return the task that a call has begun, as its result says; empty where it has begun none."""
    if text.find("background", -_NOTICE_LENGTH) < 0 and not text.startswith(("Command ", "Monitor started")):
        return ""  # the notice is before the output or after it
    details = details_of(row)
    if details is not None:
        is_monitor = text.startswith("Monitor started")
        return string(details.background_task) or (string(details.task) if is_monitor else "")
    match = re.match(_LAUNCHED, text)
    return match[1] if match else ""


def end_background_calls(launches: Iterable[tuple[str, str, steps.ToolCall]], signs: Iterable[Sign]) -> None:
    """Give the calls in the background their ends, and join the notifications of agents to them.

    A launch is a task, the id of the call in the log that has begun it, and the call, whose result is joined.
    """
    by_task: dict[str, list[steps.ToolCall]] = {}
    by_call: dict[str, steps.ToolCall] = {}
    for task, call_id, tool_call in launches:
        by_task.setdefault(task, []).append(tool_call)
        by_call.setdefault(call_id, tool_call)
    if not by_task:
        return
    for calls in by_task.values():
        calls.sort(key=lambda call: call.at)

    def launch_of(task: str, call_id: str, time: float) -> steps.ToolCall | None:
        if call_id and call_id in by_call:
            return by_call[call_id]
        earlier = [call for call in by_task.get(task, ()) if call.time <= time]
        return earlier[-1] if earlier else None

    signs_of: dict[int, list[Sign]] = {}
    for sign in sorted(signs, key=lambda sign: sign.step.at):
        call = launch_of(sign.task, sign.call, sign.step.time)
        if isinstance(sign.step, steps.Notice):
            sign.step.tool_call = call
        if call is not None:
            signs_of.setdefault(id(call), []).append(sign)
            poll = sign.step.tool_call if isinstance(sign.step, steps.ToolResult) else None
            if poll is not None and poll.tool in POLLS:  # while the poll waits, only the task works
                poll.more = {**(poll.more or {}), "run_time": 0.0}
    for call in (call for calls in by_task.values() for call in calls):
        launched = call.answer.time if call.answer is not None else call.time
        last = next((sign for sign in signs_of.get(id(call), []) if sign.end is not None), None)
        more = call.more = {**(call.more or {}), "background": True}
        if last is None:
            more["unfinished"] = True
            more["t_end"] = max([launched, *(sign.step.time for sign in signs_of.get(id(call), []))])
        else:
            more["t_end"], more["status"] = max(launched, last.step.time), last.end
            if last.end is Status.ERROR:
                more["error_type"] = "failed"


_PURPOSES = {
    **dict.fromkeys(("Task", "Agent", "Workflow"), steps.SPAWN),
    **dict.fromkeys(("AskUserQuestion", "ExitPlanMode", "EnterPlanMode"), steps.ASK),
    **dict.fromkeys(("TaskOutput", "AgentOutputTool"), steps.JOIN),
    **dict.fromkeys(("TaskStop", "KillShell", "KillBash", "TeamDelete"), steps.CLOSE),
    "SendMessage": steps.MESSAGE,
}

_EARLIER, _OK, _ERROR = LedgerLine.EARLIER_ROW, Status.OK, Status.ERROR  # lookup is slow on Python 3.11
_WARM_UP = "Warmup"
"""The only prompt of the sub-agents with which the program fills caches, sometimes days before the session."""

_HOOK_FEEDBACK = "Stop hook feedback"  # begins the text of a hook that makes a finished agent go on
_NO_MODEL = "<synthetic>"  # the model of answers that the program itself has written

LEAST_ID_LENGTH = 20
"""Shorter ids are made up by people; those of the service have 28 characters, those of rows 36."""


class Entry(Struct, gc=False):
    """A row, its message or attachment, and where it belongs."""

    row: Line
    message: dict[str, Any]
    thread: steps.Transcript
    time: float
    place: Place


MAIN = "main"
"""The agent that the user talks to."""

_STOPPING_SECONDS = 10.0  # the longest time that stopping a command at its limit takes
_PROGRESS_SECONDS = 2.0  # the inaccuracy of progress, which counts whole seconds
_SILENT = frozenset(
    """
    agent-color agent-name agent-setting ai-title custom-title file-history-snapshot last-prompt mode
    permission-mode pr-link progress queue-operation summary system tag worktree-state
    """.split()
)
"""Rows without agents, calls or tokens, of which some show times."""


class Reading:
    """The rows of a session, before its agents are linked."""

    def __init__(self, files: Sequence[logs.LogFile], run: Run) -> None:
        self.run, self.report = run, run.report
        self._privacy, self._mask, self._answers = run.privacy, run.masked, current_answer_ids()
        self.written: list[Written] = []  # the answers of models
        self.spawns: list[Spawn] = []
        self.addressed: list[AgentCall] = []
        self.arrivals: list[Arrival] = []
        self.progress: dict[str, str] = {}  # the calls that spawned agents, by agent, from rows of progress
        self.beginnings: dict[str, Beginning] = {}  # by agent
        self.tool_calls: dict[tuple[str, str], steps.ToolCall] = {}  # by thread and id
        self.results: list[Result] = []  # in the order of the log
        self.run_begins: dict[str, float] = {}  # when commands began to run, by call, from rows of progress
        self.signs: list[Sign] = []  # signs of tasks in the background
        self._asked_tasks: dict[tuple[str, str], tuple[str, str]] = {}  # the tool and the task of a call about one
        self._by_ids: dict[tuple[str, str, str] | None, Written] = {}
        self.threads: dict[str, steps.Transcript] = {}  # by agent; that of the session is `MAIN`
        self.relayed: set[str] = set()  # the sub-agents that only rows of progress show
        self._rows: dict[str, int] = {}
        self._inline: dict[str, str] = {}
        self._last_inline = ""
        self._is_undated = False  # whether a row has no time
        self._last_usage: tuple[Any, dict[str, int] | None, bool] = None, None, False  # as logged, and as read
        self._copies: dict[str, dict[tuple[str, str], dict[str, int]]] = {}
        self.thread(MAIN)  # whose name no other agent gets
        # its files, those of the session itself first
        self.sources = sorted(map(source, files), key=lambda file: (file.part is not Part.MAIN, file.run, file.shown))
        self._agents_with_files = {file.agent for file in self.sources if file.part is Part.AGENT}
        for file in self.sources:
            if file.part in (Part.MAIN, Part.AGENT):
                self._read(file)
        for key, spent in self._copies.items():  # at the time of the first step after them
            copied, *others = self.threads[key].steps
            if isinstance(copied, steps.CopiedHistory) and spent:
                copied.tokens = {kind: sum(tokens.get(kind, 0) for tokens in spent.values()) for kind, _ in USAGE}
                self.report.enter(LedgerLine.COPIED_HISTORY, len(spent), **copied.tokens)
            copied.time = min((step.time for step in others if step.time != NO_TIME), default=copied.time)
        if not any(thread.steps for thread in self.threads.values()):
            raise logs.EmptyLogError(
                f"no row of a conversation in {', '.join(file.shown for file in self.sources[:3])}"
            )
        run.name = run.name or self.sources[0].shown.partition(".")[0]
        for key in sorted(self.relayed):  # agents whose rows of progress have only their task
            if not any(isinstance(step, steps.ModelCall) for step in self.threads[key].steps):
                del self.threads[key], self.run.agents[key]
                self.relayed.discard(key)
                self.beginnings.pop(key, None)
        self._join_results()

    def _read(self, file: Source) -> None:
        is_main = file.part is Part.MAIN
        own = self.thread(MAIN if is_main else file.agent)
        before, time, stamp, shown = NO_TIME, NO_TIME, None, file.shown
        for line, row in logs.rows(file.file._replace(name=shown), self.report, Line):
            kind, place = row.kind, Place(shown, line)
            if row.timestamp != stamp:  # the rows of an answer may be written at once
                stamp = row.timestamp
                time = moment(stamp)
            if time != NO_TIME:
                if time < before:
                    self.report.out_of_order += 1
                before = time
            else:
                self._is_undated = True
            thread = self._inline_thread(row) if is_main and row.is_sidechain is True else own
            if isinstance(row.forked_from, dict):
                self._note_copy(row, thread, place)
            elif kind in ("assistant", "user"):
                self._take(row, kind, thread, time, place)
            elif kind == "attachment" and isinstance(row.attachment, dict):
                self._take_attachment(Entry(row, row.attachment, thread, time, place))
            elif isinstance(kind, str) and kind in _SILENT:
                self._take_silent(row, kind, thread, time, place)
            else:
                self.run.skip(string(kind), is_known=False)

    def thread(self, key: str) -> steps.Transcript:
        """Return the thread of a name in the log; a new one if there is none."""
        thread = self.threads.get(key)
        if thread is None:
            if key.startswith("acompact-"):
                thread = self.run.aside(MAIN, "compaction", key)
            else:
                thread = self.run.agent(key)
                thread.is_root = key == MAIN
            self.threads[key] = thread
        return thread

    def _inline_thread(self, row: Line) -> steps.Transcript:
        """Return the thread of a row of a sub-agent that is in the session's own file (1.x) and names no agent.

        It is the thread of the parent row, or of the row before if that is missing; a new one if the parent row is of
        the session itself.
        """
        key, uuid, parent = string(row.agent_id), string(row.uuid), string(row.parent_uuid)
        if not key:
            key = self._inline.get(parent, "")
            if not key and parent and parent not in self._rows:
                key = self._last_inline
            key = key or f"sidechain-{len(self.beginnings) + 1}"
        if uuid:
            self._inline.setdefault(uuid, key)
        self._last_inline = key
        self.beginnings.setdefault(key, Beginning(parent_row=parent))
        return self.thread(key)

    def _take(self, row: Line, kind: str, thread: steps.Transcript, time: float, place: Place) -> None:
        message = row.message
        if not isinstance(message, dict):
            reason = Drop.NO_USER_MESSAGE if kind == "user" else Drop.NO_ASSISTANT_MESSAGE
            self.report.drop(reason, place.file, place.line)
            return
        if time == NO_TIME:
            self.report.note(Problem.NO_ROW_TIME, str(place))
        self._name_run(row)
        if self._is_repeated(row, kind, message, place):
            spent, _ = usage_of(message.get("usage"))
            if spent:
                self.report.enter(LedgerLine.REPEATED_ROW, **spent)
            else:
                self.report.skip("row that repeats an earlier one")
        elif kind == "assistant":
            self._take_assistant(Entry(row, message, thread, time, place))
        else:  # what goes to the model: results of calls, and text of a person or of the program
            entry, content = Entry(row, message, thread, time, place), message.get("content")
            if not isinstance(content, list):
                self._take_text(entry, string(content), content)
                return
            others = []
            for block in content:
                if text_field(block, "type") == "tool_result":
                    self._take_result(entry, block)
                else:
                    others.append(block)
            if others:
                self._take_text(entry, text_of(others), others)

    def _take_silent(self, row: Line, kind: str, thread: steps.Transcript, time: float, place: Place) -> None:
        """Take a row of the program: progress of an agent or command, the end of a turn, a task in the queue."""
        if kind == "progress" and text_field(row.data, "type") == "agent_progress":
            self._take_progress(row, time, place)
            return
        self.report.skip(kind)
        if time == NO_TIME and (kind != "system" or row.subtype != "turn_duration"):
            return
        if kind == "progress" and text_field(row.data, "type") == "bash_progress":  # says how long a command has run
            call_id, elapsed = string(row.parent_tool_use), mapping(row.data).get("elapsedTimeSeconds")
            if call_id and type(elapsed) in (int, float):
                begin = time - duration(elapsed)
                self.run_begins[call_id] = min(self.run_begins.get(call_id, begin), begin)
        elif kind == "system" and row.subtype == "turn_duration":  # without the time of questions to a person
            run_time = duration(row.duration_ms, 1000.0)
            if not self._is_repeated(row, kind, {}, place) and time != NO_TIME and run_time > 0:
                thread.add(steps.TurnEnd(time, place, run_time=run_time))
        elif kind == "queue-operation" and speaker_of(text := string(row.content)) is Speaker.TASK:
            for task in read_tasks(text):  # which is written before the agent is told
                self.signs.append(Sign(task.task, task.call, steps.Note(time, place), ENDS.get(task.status)))

    def _take_progress(self, row: Line, time: float, place: Place) -> None:
        """Take a row of a sub-agent that the session repeats, if the sub-agent has no transcript."""
        key = text_field(row.data, "agentId")
        self.progress.setdefault(key, string(row.parent_tool_use))
        inner = row.data.get("message")
        if not key or key in self._agents_with_files or not isinstance(inner, dict):
            self.report.skip("progress")
            return
        copy = lenient(inner, Line)
        if copy is None or copy.kind not in ("assistant", "user"):
            self.report.skip("progress")
            return
        inner_time = moment(copy.timestamp)
        self.relayed.add(key)
        self._take(copy, copy.kind, self.thread(key), time if inner_time == NO_TIME else inner_time, place)

    def _note_copy(self, row: Line, thread: steps.Transcript, place: Place) -> None:
        """Note a row that was copied from another session, where its tokens count."""
        self._name_run(row)
        if thread.key not in self._copies:
            thread.steps.insert(0, steps.CopiedHistory(moment(row.timestamp), place, -1.0))
        spent = self._copies.setdefault(thread.key, {})
        message = row.message if row.kind == "assistant" else None
        tokens, _ = usage_of(message.get("usage")) if isinstance(message, dict) else (None, False)
        if tokens:  # of an answer in several rows, the last one counts
            spent[text_field(message, "id") or string(row.uuid), string(row.request_id)] = tokens
        else:
            self.report.skip("row copied from another session")

    def _name_run(self, row: Line) -> None:
        if not self.run.name:
            self.run.name = string(row.session_id).partition("#")[0]
        if not self.run.version:
            self.run.version = string(row.version)

    def _is_repeated(self, row: Line, kind: str, message: dict[str, Any], place: Place) -> bool:
        """Return True if the row was read before, as in a session that goes on in a second file."""
        uuid = row.uuid
        if type(uuid) is not str or not uuid:
            return False
        content, stamp, answer = message.get("content"), row.timestamp, message.get("id")
        size = len(content) if type(content) is list or type(content) is str else 0
        if type(stamp) is not str:
            stamp = ""
        if type(answer) is not str:
            answer = ""
        mark = hash((kind, stamp, answer, size))
        earlier = self._rows.get(uuid)
        if earlier is None:
            self._rows[uuid] = mark
        elif earlier != mark:
            self.report.note(Problem.ROW_ID_USED_TWICE, str(place))
        return earlier == mark

    def _join_results(self) -> None:
        """Join results to their calls, once every step has its time."""
        if self._is_undated:
            for thread in self.threads.values():
                thread.fill_times()
        launches = []
        for result in self.results:
            tool_call = self.tool_calls.get((result.thread.key, result.id))
            if steps.join(tool_call, result.answer, self.report) and tool_call is not None:
                if result.time_limit:
                    _note_run_time(tool_call, result, result.time_limit, _STOPPING_SECONDS)
                elif result.id in self.run_begins and tool_call.purpose is steps.TOOL:
                    ran = result.answer.time - self.run_begins[result.id]
                    _note_run_time(tool_call, result, ran, _PROGRESS_SECONDS)
                if result.background and tool_call.purpose is steps.TOOL:
                    launches.append((result.background, result.id, tool_call))
        end_background_calls(launches, self.signs)

    def _take_assistant(self, entry: Entry) -> None:
        row, message, thread = entry.row, entry.message, entry.thread
        time, place = entry.time, entry.place
        if message.get("model") == _NO_MODEL and row.is_api_error_message is not True:
            thread.add(steps.Note(time, place))
            return
        written = self._find_answer(entry)
        if written is None:
            return
        call = written.call
        stop, content = message.get("stop_reason", ""), message.get("content")
        written.is_open = stop is None
        if row.is_api_error_message is True:
            call.error = "api_error"
        if stop == "refusal":
            thread.add(steps.SafetyEvent(time, place, error="refusal"))
        for block in content if type(content) is list else [{"type": "text", "text": content}]:
            kind = block.get("type") if type(block) is dict else None
            if kind == "text":
                words = text_field(block, "text")
                written.characters += len(words)
                call.note_text(words, self._privacy)
            elif kind == "thinking":
                written.characters += len(text_field(block, "thinking"))
            elif kind == "tool_use" or (type(kind) is str and kind.endswith("tool_use")):
                self._take_use(entry, block, call)
            elif type(kind) is str and kind.endswith("tool_result"):
                self._take_result(entry, block)

    def _find_answer(self, entry: Entry) -> Written | None:
        """Return the answer that a row is a part of; None if another thread has it already."""
        message, thread, time, place = entry.message, entry.thread, entry.time, entry.place
        answer, request, key = string(message.get("id")), "", None
        # A long id of a message, or both ids, are the service's. A short one may be made up, and means nothing
        # outside its thread.
        if len(answer) >= LEAST_ID_LENGTH:
            key = answer, "", ""
        elif answer:
            request = string(entry.row.request_id)
            key = answer, request, "" if request else thread.key
        usage = message.get("usage")
        last, spent, is_odd = self._last_usage
        has_flag = type(usage) is dict and bool in map(type, usage.values())  # True equals 1, but is no count
        if usage != last or is_odd or has_flag:  # the rows of an answer repeat its usage
            spent, is_odd = usage_of(usage)
            self._last_usage = usage, spent, is_odd
        written = self._by_ids.get(key)
        if written is None:
            uuid, model = string(entry.row.uuid), text_field(message, "model")
            if len(answer) >= LEAST_ID_LENGTH or (answer and request):
                self._answers.note(answer, request, place.file, place.line)
            elif len(uuid) >= LEAST_ID_LENGTH:
                self._answers.note(uuid, "", place.file, place.line)
            if model == _NO_MODEL:
                model, spent = "", spent or dict.fromkeys(("input", "output"), 0)
            written = Written(steps.ModelCall(time, place, 0.0, time, self._mask(model)), thread)
            thread.add(written.call)
            self.written.append(written)
            if key is not None:
                self._by_ids[key] = written
        elif written.thread is thread:
            self.report.enter_all(_EARLIER, written.tokens or {})
            written.rows += 1
        else:
            self.report.enter_all(LedgerLine.SECOND_FILE, spent or {})
            thread.add(steps.Note(time, place))
            return None
        call = written.call
        if time > call.end:
            call.end = time
        if NO_TIME != time < call.time:  # rows may be in any order
            call.time = time
        written.tokens = spent or written.tokens
        written.is_odd = is_odd
        return written

    def _take_use(self, entry: Entry, block: dict[str, Any], call: steps.ModelCall) -> None:
        thread, name, use, given = entry.thread, text_field(block, "name"), text_field(block, "id"), block.get("input")
        if use and (thread.key, use) in self.tool_calls:
            self.report.note(Problem.CALL_WRITTEN_TWICE, str(entry.place))
            return
        purpose, tool = _PURPOSES.get(name, steps.TOOL), self._mask(name) or "(no name)"
        tool_call = steps.ToolCall(entry.time, entry.place, 0.0, purpose, call, masked(use), tool)
        call.final = False
        thread.add(tool_call)
        if use:
            self.tool_calls[thread.key, use] = tool_call
        if purpose is steps.TOOL and name not in POLLS:
            tool_call.ref = self._privacy.reference(given)
            return
        details = mapping(given)
        match purpose:
            case steps.SPAWN:
                prompt = text_field(details, "prompt") or text_field(details, "script")
                tool_call.ref = self._privacy.reference(prompt)
                tool_call.role = masked(text_field(details, "subagent_type"))
                team, is_workflow = text_field(details, "team_name"), name == WORKFLOW_TOOL
                name = text_field(details, "name")
                spawn = Spawn(tool_call, thread, use, name, steps.mark(prompt), team=team, row=string(entry.row.uuid))
                spawn.in_background = is_workflow or bool(team) or details.get("run_in_background") is True
                self.spawns.append(spawn)
            case steps.MESSAGE:
                body = text_field(details, "content") or text_field(details, "message")
                tool_call.ref = self._privacy.reference(body or given)
                name = text_field(details, "recipient") or text_field(details, "to")
                self.addressed.append(AgentCall(tool_call, thread, use, name, steps.mark(body)))
            case _:
                tool_call.ref = self._privacy.reference(given)
                if purpose is steps.ASK:
                    return
                task = first_text(details, ("task_id", "agentId", "shell_id", "bash_id"))
                self._asked_tasks[thread.key, use] = name, task
                if purpose is not steps.TOOL:
                    self.addressed.append(AgentCall(tool_call, thread, use, task))

    def _take_text(self, entry: Entry, text: str, content: Any) -> None:
        row, thread, time, place = entry.row, entry.thread, entry.time, entry.place
        begins = not thread.steps and not thread.is_root
        if begins:
            bodies = [body for sender, body in teammate_messages(text) if sender == "team-lead"]
            beginning = self.beginnings.setdefault(thread.key, Beginning())
            beginning.prompt = steps.mark(bodies[0] if bodies else text)
            thread.is_warm_up = text.strip() == _WARM_UP
        elif thread.is_warm_up:
            thread.is_warm_up = False
        speaker = speaker_of(text)
        is_put_there = row.is_meta is True or row.is_compact_summary is True
        is_put_there = is_put_there or text_field(row.origin, "kind") not in ("", "human")
        if speaker is Speaker.TASK:
            self._take_notice(entry, text)
        elif speaker is Speaker.TEAMMATE and not begins:
            for sender, body in teammate_messages(text):
                if sender == "system":
                    thread.add(steps.Note(time, place))
                    continue
                delivery = steps.Delivery(time, place, ref=self._privacy.reference(body))
                thread.add(delivery)
                self.arrivals.append(Arrival(delivery, thread, sender, steps.mark(body)))
        elif not thread.is_root or speaker is Speaker.PROGRAM or is_put_there:
            thread.add(steps.Note(time, place, prolongs=text.startswith(_HOOK_FEEDBACK)))
        elif speaker is Speaker.INTERRUPTION:
            thread.add(steps.UserInput(time, place, waited=False, status=Status.CANCELLED))
        else:
            ref, is_command = self._privacy.reference(text or content), speaker is Speaker.COMMAND
            thread.add(steps.UserInput(time, place, ref=ref, is_command=is_command))

    def _take_notice(self, entry: Entry, text: str) -> None:
        for task in read_tasks(text):
            notice = steps.Notice(entry.time, entry.place)
            entry.thread.add(notice)
            end, ref = ENDS.get(task.status), self._privacy.reference(task.result)
            self.signs.append(Sign(task.task, task.call, notice, end, task.status, entry.thread, ref))

    def _take_result(self, entry: Entry, block: dict[str, Any]) -> None:
        content, thread, use = block.get("content"), entry.thread, text_field(block, "tool_use_id")
        text = text_of(content)
        ref, status, error = self._privacy.reference(text or content), _OK, ""
        if block.get("is_error") is True:
            status, error = _ERROR, error_of(text)
            if error == FORBIDDEN:
                thread.add(steps.SafetyEvent(entry.time, entry.place, error=error))
        tool_call = self.tool_calls.get((thread.key, use))
        purpose = tool_call.purpose if tool_call is not None else None
        if purpose is steps.JOIN and error == steps.REJECTED:
            error = steps.INTERRUPTED  # it had begun, since it waited
        answer = steps.ToolResult(entry.time, entry.place, 0.0, None, False, status, error, ref)
        thread.add(answer)
        if self._asked_tasks and status is _OK:
            tool, task = self._asked_tasks.get((thread.key, use), ("", ""))
            if task:  # the result of a call that asked for the output of a task, or stopped it
                end = Status.CANCELLED if tool in STOPS else ENDS.get(element(text, "status"))
                self.signs.append(Sign(task, "", answer, end))
        result = Result(answer, thread, use)
        if purpose is not steps.TOOL and purpose is not steps.ASK:
            result.tail = text[-1000:].partition("agentId:")[2].partition("\n")[0].strip().partition(" ")[0]
            result.done = "<status>completed" in text
            result.refused = '"success": false' in text or '"success":false' in text
            if (details := details_of(entry.row)) is not None:
                result.agent = string(details.agent) or string(details.teammate)
                result.run, result.task = string(details.run), string(details.task)
                has_begun = string(details.status).endswith(("_launched", "_spawned"))
                result.launched = details.is_async is True or has_begun
                result.usage, _ = usage_of(details.usage)
                result.total = count(details.total)
        if purpose is steps.TOOL or purpose is None:  # the row of the call may come later
            if status is _ERROR:
                result.time_limit = time_limit_of(text)
            else:
                result.background = launched_task(text, entry.row)
        self.results.append(result)

    def _take_attachment(self, entry: Entry) -> None:
        """Take a row outside of the conversation: a hook that blocked, a command from the queue."""
        attachment, thread, time, place = entry.message, entry.thread, entry.time, entry.place
        kind = attachment.get("type")
        if kind == "hook_blocking_error":
            thread.add(steps.SafetyEvent(time, place, tool=masked(text_field(attachment, "hookName")), error="hook"))
        elif kind == "queued_command":
            prompt = attachment.get("prompt")
            text = text_of(prompt)
            speaker = speaker_of(text)
            if speaker is Speaker.TASK:
                self._take_notice(entry, text)
            elif speaker in (Speaker.PERSON, Speaker.COMMAND) and thread.is_root:
                thread.add(steps.UserInput(time, place, ref=self._privacy.reference(text or prompt), waited=False))
        else:
            self.report.skip("attachment")


def _note_run_time(tool_call: steps.ToolCall, result: Result, seconds: float, tolerance: float) -> None:
    """Note how long a command ran before its result, within a tolerance; before, it waited for a person."""
    took = result.answer.time - tool_call.time
    run_time = took if took - seconds <= tolerance else max(seconds, 0.0)
    tool_call.more = {"run_time": round(run_time, 6)}
