"""Read the rows of a Claude Code session into the transcripts of its agents, called threads here.

Fields of rows are declared as `Any`, since each of them has another type in some version.

Commands and monitors may run in the background. The result of such a call only names its task. The task ends with the
first sign of its end: a notification with a status, in the queue of the program or among the rows of the agent; the
result of a call that asks for its output; or the result of a call that stops it. Notifications without a status, and
outputs of a running task, show that it still runs. A task without a sign of its end ran at least until its last sign.
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
    as_count,
    as_object,
    as_text,
    first_text,
    text_field,
    text_of,
)
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status


class RowHeader(Struct, gc=False, rename="camel"):
    """The fields of a row that identify its file and session."""

    # msgspec is fastest if the fields have the order that they have in most rows
    parent_uuid: Any = None
    is_sidechain: Any = None
    session_id: Any = None
    version: Any = None
    agent_id: Any = None
    kind: Any = field(default=None, name="type")
    uuid: Any = None
    timestamp: Any = None


class Row(RowHeader, gc=False, rename="camel"):
    """A row of a transcript."""

    message: Any = None
    request_id: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    origin: Any = None
    forked_from: Any = None  # for a copied row: its original, by session and row
    attachment: Any = None
    data: Any = None
    parent_tool_use: Any = field(default=None, name="parentToolUseID")
    # The structured part of a result. It repeats the output of the tool, so only `details_of` decodes it.
    tool_use_result: Raw = NOTHING
    subtype: Any = None
    duration_ms: Any = None
    content: Any = None


class Details(Struct, gc=False):
    """The structured part of a result: ids of what the call started, and the usage of a sub-agent."""

    agent: Any = field(default=None, name="agentId")
    teammate: Any = field(default=None, name="agent_id")
    run: Any = field(default=None, name="runId")  # of a workflow
    task: Any = field(default=None, name="taskId")  # in the background: an agent or a monitor
    background_task: Any = field(default=None, name="backgroundTaskId")  # a command in the background
    status: Any = None
    is_async: Any = field(default=None, name="isAsync")
    usage: Any = None
    total: Any = field(default=None, name="totalTokens")


def details_of(row: Row) -> Details | None:
    """Return the structured part of a result; None if the row has none or only a text."""
    content = bytes(row.tool_use_result)
    if not content.startswith(b"{"):
        return None
    details: Details | None = decoded(content, Details)
    return details


FORBIDDEN = "forbidden"  # the error of a call that a rule does not allow

# the beginnings of texts, by which their author or their meaning is known
_PROGRAM_TEXTS = (
    "<local-command-stdout", "<local-command-stderr", "<local-command-caveat", "<bash-stdout", "<bash-stderr",
    "<system-reminder", "Caveat: The messages below", "This session is being continued from a previous conversation",
)  # fmt: skip
_NOTIFICATIONS = ("<task-notification", "<bash-notification", "<agent-notification")
_COMMAND_TEXTS = ("<command-name>", "<command-message>", "<bash-input>")
_INTERRUPTED = "[Request interrupted by user"
_REFUSALS = (
    "The user doesn't want to", "User rejected", "Error: The user doesn't want to", "The tool use was rejected",
)  # fmt: skip
_DENIALS = ("Permission to use", "Permission for this", "Claude requested permissions")

_TEAMMATE_MESSAGE = r"(?s)<teammate-message([^>]{0,1000})>(.*?)</teammate-message>"
_NOTIFICATION = r"(?s)<(task|bash|agent)-notification\b.*?(?:</\1-notification>|\Z)"


class Speaker(StrEnum):
    """The author of the text in a user row."""

    PERSON = "person"
    COMMAND = "command"  # a person, with a command of the program
    INTERRUPTION = "interruption"  # a person, who interrupted the agent
    PROGRAM = "program"
    TASK = "task"  # a task in the background
    TEAMMATE = "teammate"


class TaskNotification(NamedTuple):
    """A notification about a task in the background; a field that it does not have is empty."""

    task_id: str
    call_id: str  # the call that began the task
    status: str
    result: str


def speaker_of(text: str) -> Speaker:
    """Return the author of a text."""
    text = text.lstrip()
    if text.startswith(_NOTIFICATIONS):
        return Speaker.TASK
    if text.startswith(_PROGRAM_TEXTS):
        return Speaker.PROGRAM
    if text.startswith(_INTERRUPTED):
        return Speaker.INTERRUPTION
    if text.startswith(_COMMAND_TEXTS):
        return Speaker.COMMAND
    return Speaker.TEAMMATE if "<teammate-message" in text else Speaker.PERSON


def read_tasks(text: str) -> Iterator[TaskNotification]:
    """Yield the notifications about tasks in a text."""
    for match in re.finditer(_NOTIFICATION, text):
        notification = match[0]
        for name in ("task-id", "shell-id", "agent-id"):  # earlier versions name the id by the kind of task
            task_id = element(notification, name)
            if task_id:
                break
        call_id, status = element(notification, "tool-use-id"), element(notification, "status")
        yield TaskNotification(task_id, call_id, status, element(notification, "result"))


def element(text: str, name: str) -> str:
    """Return the text of the first element of that name; empty if there is none."""
    content, closing, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return content.strip() if closing else ""


def teammate_messages(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sender and the body of each `<teammate-message>` in a text."""
    # cut after the last closing tag: for an opening tag without one, the pattern would search the rest of the text
    end = text.rfind("</teammate-message>") + len("</teammate-message>")
    for message in re.finditer(_TEAMMATE_MESSAGE, text[:end]):
        sender, closing, _ = message[1].partition('teammate_id="')[2].partition('"')
        if sender and closing:
            yield sender, message[2].strip()


def error_of(text: str) -> str:
    """Return the kind of error of a result: a person refused or interrupted, a rule forbade, or the tool failed."""
    text = text.lstrip()
    if text.startswith(_REFUSALS):
        return steps.REJECTED
    if text.startswith(_INTERRUPTED):
        return steps.INTERRUPTED
    return FORBIDDEN if text.startswith(_DENIALS) else "tool_error"


_TIMED_OUT = r"Command timed out after (?:(\d+)h ?)?(?:(\d+)m ?)?(?:([\d.]+)s)?"


def time_limit_of(text: str) -> float:
    """Return the seconds after which a command was stopped, by the text of its result; 0 if it was not stopped."""
    match = re.search(_TIMED_OUT, text[:1000]) or re.search(_TIMED_OUT, text[-1000:])
    if match is None:
        return 0.0
    hours, minutes, seconds = (float(number or 0) for number in match.groups())
    return hours * 3600 + minutes * 60 + seconds


USAGE = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_read", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
)
"""The kinds of tokens, with their names in a `usage`."""

WORKFLOW_TOOL = "Workflow"


class Answer(Struct):
    """An answer of a model, as far as its rows have been read."""

    call: steps.ModelCall
    thread: Transcript
    tokens: dict[str, int] | None = None  # by kind, from its last row
    row_count: int = 1
    characters: int = 0  # of text and thinking
    is_unfinished: bool = False  # True if its last row was written before the model stopped
    has_invalid_count: bool = False  # True if the usage of its last row has a count that is not a number


_MAX_CHARACTERS_PER_TOKEN = 40  # a token of blanks and line ends may be so long; a token of words has four
_NEGLIGIBLE_CHARACTERS = 400


def is_placeholder(answer: Answer) -> bool:
    """Return True if the output tokens of an answer were counted before its end: they are too few for its text."""
    if answer.is_unfinished or answer.tokens is None:
        return answer.is_unfinished
    return answer.characters > _MAX_CHARACTERS_PER_TOKEN * answer.tokens.get("output", 0) + _NEGLIGIBLE_CHARACTERS


class Result(Struct):
    """The result of a call, and the facts about agents that it states; a text is empty if it states none."""

    step: steps.ToolResult
    thread: Transcript
    call_id: str
    agent: str = ""  # the id of the spawned agent, from the structured part
    agent_in_text: str = ""  # the id of the spawned agent, from the end of the text
    run: str = ""  # the id of the run of a workflow that the call started
    task: str = ""  # the id of the background task of an agent that the call started
    is_launch: bool = False  # True if it only says that an agent or workflow has begun
    is_done: bool = False  # True if it says that the awaited agent is done
    is_refused: bool = False  # True if it says that nothing was done
    usage: dict[str, int] | None = None  # the agent's tokens by kind; None if not stated
    total: int | None = None  # `totalTokens`; None if not stated
    background_task: str = ""  # the id of the background task of a tool that the call started
    time_limit: float = 0.0  # the seconds after which the call was stopped; 0 if it was not


class AgentCall(Struct):
    """A call about an agent or task: it spawns one, sends it a message, waits for it or ends it."""

    call: steps.ToolCall
    thread: Transcript
    id: str
    name: str = ""  # the name of the agent or task in the call
    mark: int = 0  # the `steps.mark` of the message or of the agent's prompt
    result: Result | None = None


class Spawn(AgentCall):
    """A call that spawns an agent."""

    team: str = ""
    row: str = ""  # the id of its row
    in_background: bool = False  # True if the call does not wait for the agent
    child: str = ""  # the key of the agent; empty as long as it is unknown


class Arrival(Struct):
    """The arrival of a teammate's message."""

    step: steps.Delivery
    thread: Transcript
    sender: str  # the teammate's name in the team
    mark: int  # the `steps.mark` of the message


class Beginning(Struct):
    """The facts in the first row of a sub-agent by which its spawn is found."""

    prompt_mark: int = 0  # the `steps.mark` of its prompt; 0 if unknown
    parent_row: str = ""  # the id of the row before; empty if unknown


def usage_of(value: Any) -> tuple[dict[str, int] | None, bool]:
    """Return the tokens of a `usage` by kind, or None without any; and True if one of its counts is not a number."""
    if type(value) is not dict:
        return None, False
    tokens, has_invalid_count = {}, False
    for kind, name in USAGE:
        stated = value.get(name)
        if type(stated) is int and 0 <= stated <= MAX_COUNT:  # faster than `count`
            tokens[kind] = stated
            continue
        amount = as_count(stated)
        if amount is not None:
            tokens[kind] = amount
        elif stated is not None:
            has_invalid_count = True
    by_duration = value.get("cache_creation")
    if type(by_duration) is dict:
        written_for_hour = as_count(by_duration.get("ephemeral_1h_input_tokens"))
        if written_for_hour:
            tokens["cache_write_1h"] = min(written_for_hour, tokens.get("cache_write", 0))
    return tokens or None, has_invalid_count


_ROW_TYPES = frozenset(
    ("user", "assistant", "system", "summary", "progress", "attachment", "queue-operation", "file-history-snapshot")
)
_DOCUMENT_MEMBERS = ({"agentType"}, {"toolUseId"}, {"runId", "workflowName"}, {"runId", "workflowProgress"})
"""For each kind of file beside transcripts: members that only it has."""
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".meta")
_AGENT_PREFIX = "agent-"
_MIN_SESSION_ID_LENGTH = 32  # people make up shorter ids: two files with the same short id may be two sessions


class Part(StrEnum):
    """The kinds of files of a session."""

    MAIN = "main"  # the transcript of the session
    AGENT = "agent"  # the transcript of a sub-agent
    META = "meta"  # the description of a sub-agent
    JOURNAL = "journal"  # the results of the agents of a workflow
    RUN = "run"  # the summary of a workflow


class Source(NamedTuple):
    """A file of a session."""

    file: logs.LogFile
    part: Part
    name: str  # in events: the path from the session's own folder on, as the folders above it name the project
    agent: str = ""  # the id of its agent; empty if it has none
    run: str = ""  # the id of its run of a workflow; empty if it has none


def further_files(reader: logs.LogReader) -> list[logs.LogFile]:
    """Return the files that may belong to sub-agents of a session; their `session_keys` decide if they do.

    For `SESSION.jsonl` they are all files in the folder `SESSION/`, and `agent-ID.jsonl` next to it.
    """
    path = reader.file.path
    folder, name = os.path.split(path)
    session_folder, suffix = os.path.splitext(path)
    if suffix not in logs.SUFFIXES or name.startswith(_AGENT_PREFIX):
        return []
    files = []
    if os.path.isdir(session_folder) and os.listdir(session_folder):
        files += logs.find(session_folder).files
    for name in sorted(os.listdir(folder or os.curdir)):
        agent_path = os.path.join(folder, name)
        if name.startswith(_AGENT_PREFIX) and name.endswith(suffix) and os.path.isfile(agent_path):
            files.append(logs.LogFile(agent_path, masked_path(name)))
    return files


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file with this beginning belongs to a Claude Code session."""
    has_row = any(map(_is_row, beginning.rows))
    if not has_row and not any(members <= beginning.outline for members in _DOCUMENT_MEMBERS):
        return False
    is_qwen_code = any(map(is_qwen, beginning.rows)) or {"agentType", "parentSessionId"} <= beginning.outline
    return not is_qwen_code and not program_of(beginning)


def _is_row(row: dict[str, Any]) -> bool:
    """Return True for a row of a transcript or of a workflow's journal."""
    kind = row.get("type")
    if kind in ("started", "result") and "agentId" in row and "key" in row:
        return True
    if not isinstance(kind, str) or kind not in _ROW_TYPES:
        return False
    if kind in ("user", "assistant"):
        content = row["message"].get("content") if isinstance(row.get("message"), dict) else None
        if isinstance(content, list):
            return any(isinstance(block, dict) and "type" in block for block in content)
        return isinstance(content, str)
    return "sessionId" in row or "uuid" in row or "leafUuid" in row or "messageId" in row


def source_of(file: logs.LogFile, headers: Sequence[RowHeader] | None = None) -> Source:
    """Return the part of a session that a file is: by its path or, if the path does not say it, by its first rows.

    The paths are `agent-AGENT.jsonl`, `SESSION/workflows/RUN.json`, and in `SESSION/subagents/` or
    `SESSION/subagents/workflows/RUN/` also `agent-AGENT.jsonl`, `agent-AGENT.meta.json` and `journal.jsonl`.
    """
    folders = file.path_text.replace(os.sep, "/").split("/")
    name = folders.pop()
    agent = name.removeprefix(_AGENT_PREFIX)
    for suffix in _SUFFIXES:
        agent = agent.removesuffix(suffix)
    if "subagents" in folders:
        index = folders.index("subagents")
        name_from_session = masked_path("/".join((*folders[max(index - 1, 0) :], name)))
        below = folders[index + 1 :]
        run = below[1] if len(below) > 1 and below[0] == "workflows" else ""
        if name == "journal.jsonl":
            return Source(file, Part.JOURNAL, name_from_session, run=run)
        part = Part.META if name.endswith(".meta.json") else Part.AGENT
        return Source(file, part, name_from_session, agent, run)
    if folders[-1:] == ["workflows"] and name.endswith(".json"):
        return Source(file, Part.RUN, masked_path("/".join((*folders[-2:], name))), run=name.removesuffix(".json"))
    if not name.startswith(_AGENT_PREFIX):
        if headers is None:
            with logs.LogReader(file) as reader:
                headers = _headers(reader)
        agents = {as_text(row.agent_id) if row.is_sidechain is True else "" for row in headers}
        agent = agents.pop() if len(agents) == 1 else ""
    part = Part.AGENT if agent else Part.MAIN
    return Source(file, part, masked_path(name), agent)


def _headers(reader: logs.LogReader) -> list[RowHeader]:
    """Return the rows of the conversation among the first rows of a file."""
    return [row for row in reader.rows(RowHeader) if row.kind in ("user", "assistant")]


def session_keys(reader: logs.LogReader) -> list[str]:
    """Return the keys by which files are grouped into sessions.

    A sub-agent belongs to the session in whose folder it is, or else to the session that its rows name. Two files are
    one session if the second repeats rows of the first or names its session.
    """
    file = reader.file
    folder, _, name = file.path.replace(os.sep, "/").rpartition("/")
    folders = folder.split("/")
    if "subagents" in folders:
        return ["/".join(folders[: folders.index("subagents")])]
    headers = _headers(reader)
    part = source_of(file, headers).part
    if part is Part.RUN:
        return ["/".join(folders[:-1])]
    session = ""
    for header in headers:
        if isinstance(header.session_id, str):
            session = header.session_id
            break
    if part is Part.AGENT and session:
        return [f"{folder}/{session.partition('#')[0]}"]
    keys = [f"{folder}/{name.removesuffix('.jsonl')}"]
    if part is Part.MAIN:
        if len(session) >= _MIN_SESSION_ID_LENGTH:
            keys.append(f"{folder}/{session}")
        identified = [header for header in headers[:2] if len(as_text(header.uuid)) >= _MIN_SESSION_ID_LENGTH]
        keys += [f"{folder}\n{header.uuid} {header.timestamp}" for header in identified]
    return keys


_LAUNCHED = r"(?:Command [^\n]{1,120}?\bbackground(?:ed by user)? with ID: |Monitor started \(task )([\w-]+)"
"""The text of a result whose call goes on in the background, for results without a structured part."""
_MAX_NOTICE_LENGTH = 500  # such a text names a file

STATUS_OF_END = {
    "completed": Status.OK,
    "failed": Status.ERROR,
    "error": Status.ERROR,
    "killed": Status.CANCELLED,
    "stopped": Status.CANCELLED,
    "cancelled": Status.CANCELLED,
    "timeout": Status.CANCELLED,
    "timed_out": Status.CANCELLED,
}
"""The status of a task by the word for its end; any other word means that it still runs."""

POLLING_TOOLS = frozenset(("BashOutput", "TaskOutput", "AgentOutputTool"))
"""The tools that ask for the output of a task."""

STOPPING_TOOLS = frozenset(("KillBash", "KillShell", "TaskStop"))  # the tools that stop a task


class TaskSign(Struct):
    """A sign that a task in the background has ended or still runs."""

    task_id: str  # empty if the sign names only the call
    call_id: str  # the call that began the task; empty if the sign names only the task
    step: steps.Step  # the time and the place of the sign
    end: Status | None  # the status of the ended task; None if it still runs
    word: str = ""  # the log's word for the status
    thread: Transcript | None = None  # the agent that is notified; None if the sign is no notification of an agent
    ref: str = ""  # the reference to the result of the task


def launched_task(text: str, row: Row) -> str:
    """Return the id of the background task that a call has begun, by its result; empty if it has begun none."""
    # most results are excluded fast: the notice is at the beginning or at the end of the output
    if text.find("background", -_MAX_NOTICE_LENGTH) < 0 and not text.startswith(("Command ", "Monitor started")):
        return ""
    details = details_of(row)
    if details is not None:
        task_id = as_text(details.background_task)
        if not task_id and text.startswith("Monitor started"):
            task_id = as_text(details.task)
        return task_id
    match = re.match(_LAUNCHED, text)
    return match[1] if match else ""


def end_background_calls(launches: Iterable[tuple[str, str, steps.ToolCall]], signs: Iterable[TaskSign]) -> None:
    """Set the ends of the calls in the background, and join the notifications of agents to these calls.

    A launch is the id of a task, the id of the call that has begun it, and this call, already joined to its result.
    """
    calls_by_task: dict[str, list[steps.ToolCall]] = {}  # by time; a program may use the id of a task again
    calls_by_id: dict[str, steps.ToolCall] = {}
    for task_id, call_id, tool_call in launches:
        calls_by_task.setdefault(task_id, []).append(tool_call)
        calls_by_id.setdefault(call_id, tool_call)
    if not calls_by_task:
        return
    for calls in calls_by_task.values():
        calls.sort(key=lambda call: call.at)

    def call_of(sign: TaskSign) -> steps.ToolCall | None:
        """Return the call that began the task: the one that the sign names, else the last one before the sign."""
        if sign.call_id and sign.call_id in calls_by_id:
            return calls_by_id[sign.call_id]
        earlier = [call for call in calls_by_task.get(sign.task_id, ()) if call.time <= sign.step.time]
        return earlier[-1] if earlier else None

    signs_by_call: dict[int, list[TaskSign]] = {}  # by the `id` of the call, in the order of time
    for sign in sorted(signs, key=lambda sign: sign.step.at):
        call = call_of(sign)
        if isinstance(sign.step, steps.Notice):
            sign.step.tool_call = call
        if call is None:
            continue
        signs_by_call.setdefault(id(call), []).append(sign)
        poll = sign.step.tool_call if isinstance(sign.step, steps.ToolResult) else None
        if poll is not None and poll.tool in POLLING_TOOLS:  # the poll itself does nothing but wait for the task
            poll.more = {**(poll.more or {}), "run_time": 0.0}
    for calls in calls_by_task.values():
        for call in calls:
            launched = call.time if call.result is None else call.result.time
            more = call.more = {**(call.more or {}), "background": True}
            call_signs = signs_by_call.get(id(call), [])
            ends = [sign for sign in call_signs if sign.end is not None]
            if not ends:
                more["unfinished"] = True
                more["t_end"] = max([launched, *(sign.step.time for sign in call_signs)])
                continue
            more["t_end"] = max(launched, ends[0].step.time)
            more["status"] = ends[0].end
            if ends[0].end is Status.ERROR:
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

MIN_ID_LENGTH = 20  # people make up shorter ids; the ids of the service have 28 characters, the ids of rows 36


class Entry(Struct, gc=False):
    """A row, its message or attachment, and where it belongs."""

    row: Row
    message: dict[str, Any]
    thread: steps.Transcript
    time: float
    place: Place


MAIN = "main"  # the agent that the user talks to
LEAD = "team-lead"  # the name of that agent among teammates
_STOPPING_SECONDS = 10.0  # the longest time that stopping a command at its limit takes
_PROGRESS_SECONDS = 2.0  # the inaccuracy of progress, which counts whole seconds
_PROGRAM_ROWS = frozenset(
    """
    agent-color agent-name agent-setting ai-title custom-title file-history-snapshot last-prompt mode
    permission-mode pr-link progress queue-operation summary system tag worktree-state
    """.split()
)
"""The types of rows that the program itself writes; some state times."""


class Reading:
    """The facts in the rows of a session; `Family` links its agents to one another."""

    def __init__(self, files: Sequence[logs.LogFile], run: Run) -> None:
        self.run, self.report = run, run.report
        self._privacy, self._mask, self._answer_ids = run.privacy, run.masked, current_answer_ids()
        self.answers: list[Answer] = []
        self.spawns: list[Spawn] = []
        self.agent_calls: list[AgentCall] = []  # without spawns
        self.messages: list[Arrival] = []  # from teammates
        self.progress_calls: dict[str, str] = {}  # by agent: the id of the call that spawned it, from rows of progress
        self.beginnings: dict[str, Beginning] = {}  # by agent
        self.tool_calls: dict[tuple[str, str], steps.ToolCall] = {}  # by thread and id of the call
        self.results: list[Result] = []  # in the order of the log
        self.run_begins: dict[str, float] = {}  # by call: when its command began to run, from rows of progress
        self.signs: list[TaskSign] = []
        # by thread and id of a call about a background task: the tool, and the id of the task
        self._task_calls: dict[tuple[str, str], tuple[str, str]] = {}
        # by id of the answer, id of the request, and thread, as `_answer_of_row` makes the key
        self._answers_by_id: dict[tuple[str, str, str] | None, Answer] = {}
        self.threads: dict[str, steps.Transcript] = {}  # by agent; `MAIN` is the session's own
        self.only_in_progress: set[str] = set()  # the agents without a transcript that rows of progress show
        self._row_marks: dict[str, int] = {}  # by id of a row: a hash of its contents
        self._inline_keys: dict[str, str] = {}  # by id of a row of a sub-agent in the session's file: the sub-agent
        self._last_inline_key = ""
        self._is_undated = False  # True if a row has no time
        # the last usage as logged, its tokens by kind, and True if it has an invalid count
        self._last_usage: tuple[Any, dict[str, int] | None, bool] = None, None, False
        # by thread: the tokens of answers that are copied from another session, by id of the answer and of the request
        self._copied_usage: dict[str, dict[tuple[str, str], dict[str, int]]] = {}
        self.thread(MAIN)  # first, as of agents with the same name later ones get a number
        sources = map(source_of, files)  # sorted: the session's own files first
        self.sources = sorted(sources, key=lambda source: (source.part is not Part.MAIN, source.run, source.name))
        self._agents_with_files = {source.agent for source in self.sources if source.part is Part.AGENT}
        for source in self.sources:
            if source.part in (Part.MAIN, Part.AGENT):
                self._read_file(source)
        for key, copied_usage in self._copied_usage.items():
            history, later_steps = self.threads[key].steps[0], self.threads[key].steps[1:]
            if isinstance(history, steps.CopiedHistory) and copied_usage:
                for kind, _ in USAGE:
                    history.tokens[kind] = sum(tokens.get(kind, 0) for tokens in copied_usage.values())
                self.report.enter(LedgerLine.COPIED_HISTORY, len(copied_usage), **history.tokens)
            # the rows have the times of the other session: the copy was made when this session began
            history.time = min((step.time for step in later_steps if step.time != NO_TIME), default=history.time)
        if not any(thread.steps for thread in self.threads.values()):
            names = ", ".join(source.name for source in self.sources[:3])
            raise logs.EmptyLogError(f"no row of a conversation in {names}")
        run.name = run.name or self.sources[0].name.partition(".")[0]
        for key in sorted(self.only_in_progress):  # drop agents whose rows of progress have only their prompt
            if not any(isinstance(step, steps.ModelCall) for step in self.threads[key].steps):
                del self.threads[key], self.run.agents[key]
                self.only_in_progress.discard(key)
                self.beginnings.pop(key, None)
        self._join_results()

    def _read_file(self, source: Source) -> None:
        is_main = source.part is Part.MAIN
        thread_of_file = self.thread(MAIN if is_main else source.agent)
        time = latest_time = NO_TIME
        stamp, name = None, source.name
        for line, row in logs.rows(source.file._replace(name=name), self.report, Row):
            kind, place = row.kind, Place(name, line)
            if row.timestamp != stamp:  # else the time is that of the row before
                stamp = row.timestamp
                time = moment(stamp)
            if time != NO_TIME:
                if time < latest_time:
                    self.report.out_of_order += 1
                latest_time = time
            else:
                self._is_undated = True
            thread = self._inline_thread(row) if is_main and row.is_sidechain is True else thread_of_file
            if isinstance(row.forked_from, dict):
                self._note_copy(row, thread, place)
            elif kind in ("assistant", "user"):
                self._read_message(row, kind, thread, time, place)
            elif kind == "attachment" and isinstance(row.attachment, dict):
                self._read_attachment(Entry(row, row.attachment, thread, time, place))
            elif isinstance(kind, str) and kind in _PROGRAM_ROWS:
                self._read_program_row(row, kind, thread, time, place)
            else:
                self.run.skip(as_text(kind), is_known=False)

    def thread(self, key: str) -> steps.Transcript:
        """Return the thread of an agent, given by its id in the log; a new thread for a new id."""
        thread = self.threads.get(key)
        if thread is None:
            if key.startswith("acompact-"):  # the id of the calls that condense the session's own conversation
                thread = self.run.side_transcript(MAIN, "compaction", key)
            else:
                thread = self.run.agent(key)
                thread.is_root = key == MAIN
            self.threads[key] = thread
        return thread

    def _inline_thread(self, row: Row) -> steps.Transcript:
        """Return the thread of a sub-agent's row in the session's own file, as versions 1.x write it.

        A row that names no agent belongs to the thread of its parent row; if the parent row is missing, to the thread
        of the previous such row; if the parent row is the session's own, to a new thread.
        """
        key, uuid, parent = as_text(row.agent_id), as_text(row.uuid), as_text(row.parent_uuid)
        if not key:
            key = self._inline_keys.get(parent, "")
            if not key and parent and parent not in self._row_marks:
                key = self._last_inline_key
            key = key or f"sidechain-{len(self.beginnings) + 1}"
        if uuid:
            self._inline_keys.setdefault(uuid, key)
        self._last_inline_key = key
        self.beginnings.setdefault(key, Beginning(parent_row=parent))
        return self.thread(key)

    def _read_message(self, row: Row, kind: str, thread: steps.Transcript, time: float, place: Place) -> None:
        """Read a row of the conversation: an answer of the model, or a text or results of calls for it."""
        message = row.message
        if not isinstance(message, dict):
            reason = Drop.NO_USER_MESSAGE if kind == "user" else Drop.NO_ASSISTANT_MESSAGE
            self.report.drop(reason, place.file, place.line)
            return
        if time == NO_TIME:
            self.report.note(Problem.NO_ROW_TIME, str(place))
        self._name_run(row)
        if self._is_copy_of_earlier(row, kind, message, place):
            tokens, _ = usage_of(message.get("usage"))
            if tokens:
                self.report.enter(LedgerLine.REPEATED_ROW, **tokens)
            else:
                self.report.skip("row that repeats an earlier one")
        elif kind == "assistant":
            self._read_answer(Entry(row, message, thread, time, place))
        else:
            entry, content = Entry(row, message, thread, time, place), message.get("content")
            if not isinstance(content, list):
                self._read_text(entry, as_text(content), content)
                return
            text_blocks = []
            for block in content:
                if text_field(block, "type") == "tool_result":
                    self._read_result(entry, block)
                else:
                    text_blocks.append(block)
            if text_blocks:
                self._read_text(entry, text_of(text_blocks), text_blocks)

    def _read_program_row(self, row: Row, kind: str, thread: steps.Transcript, time: float, place: Place) -> None:
        """Read a row of the program: progress of an agent or command, the end of a turn, a task in the queue."""
        if kind == "progress" and text_field(row.data, "type") == "agent_progress":
            self._read_progress(row, time, place)
            return
        self.report.skip(kind)
        is_turn_end = kind == "system" and row.subtype == "turn_duration"
        if time == NO_TIME and not is_turn_end:
            return
        if kind == "progress" and text_field(row.data, "type") == "bash_progress":  # says how long a command has run
            call_id, elapsed = as_text(row.parent_tool_use), as_object(row.data).get("elapsedTimeSeconds")
            if call_id and type(elapsed) in (int, float):
                begin = time - duration(elapsed)
                self.run_begins[call_id] = min(self.run_begins.get(call_id, begin), begin)
        elif is_turn_end:
            run_time = duration(row.duration_ms, per_second=1000.0)  # without the time of questions to a person
            # asked first, as `_is_copy_of_earlier` also notes the row
            if not self._is_copy_of_earlier(row, kind, {}, place) and time != NO_TIME and run_time > 0:
                thread.add(steps.TurnEnd(time, place, run_time=run_time))
        elif kind == "queue-operation":  # a notification enters the queue before the agent reads it
            text = as_text(row.content)
            if speaker_of(text) is Speaker.TASK:
                for task in read_tasks(text):
                    step, end = steps.Note(time, place), STATUS_OF_END.get(task.status)
                    self.signs.append(TaskSign(task.task_id, task.call_id, step, end))

    def _read_progress(self, row: Row, time: float, place: Place) -> None:
        """Read a sub-agent's row that the session repeats as progress, if the sub-agent has no transcript."""
        key = text_field(row.data, "agentId")
        self.progress_calls.setdefault(key, as_text(row.parent_tool_use))
        copy = None
        if key and key not in self._agents_with_files:
            copy = lenient(row.data.get("message"), Row)
        if copy is None or copy.kind not in ("assistant", "user"):
            self.report.skip("progress")
            return
        self.only_in_progress.add(key)
        copy_time = moment(copy.timestamp)
        if copy_time == NO_TIME:
            copy_time = time
        self._read_message(copy, copy.kind, self.thread(key), copy_time, place)

    def _note_copy(self, row: Row, thread: steps.Transcript, place: Place) -> None:
        """Note a row that was copied from another session; its tokens count in that session."""
        self._name_run(row)
        if thread.key not in self._copied_usage:
            thread.steps.insert(0, steps.CopiedHistory(moment(row.timestamp), place, order=-1.0))
        copied_usage = self._copied_usage.setdefault(thread.key, {})
        tokens = None
        if row.kind == "assistant" and isinstance(row.message, dict):
            tokens, _ = usage_of(row.message.get("usage"))
        if tokens:  # the last row of an answer replaces its earlier rows
            answer_id = text_field(row.message, "id") or as_text(row.uuid)
            copied_usage[answer_id, as_text(row.request_id)] = tokens
        else:
            self.report.skip("row copied from another session")

    def _name_run(self, row: Row) -> None:
        if not self.run.name:
            self.run.name = as_text(row.session_id).partition("#")[0]
        if not self.run.version:
            self.run.version = as_text(row.version)

    def _is_copy_of_earlier(self, row: Row, kind: str, message: dict[str, Any], place: Place) -> bool:
        """Return True if the row was read before: a session that goes on in a second file repeats rows of the first."""
        uuid = row.uuid
        if type(uuid) is not str or not uuid:
            return False
        content, stamp, answer_id = message.get("content"), row.timestamp, message.get("id")
        size = len(content) if type(content) is list or type(content) is str else 0
        if type(stamp) is not str:
            stamp = ""
        if type(answer_id) is not str:
            answer_id = ""
        mark = hash((kind, stamp, answer_id, size))
        earlier = self._row_marks.get(uuid)
        if earlier is None:
            self._row_marks[uuid] = mark
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
            tool_call = self.tool_calls.get((result.thread.key, result.call_id))
            if not steps.join(tool_call, result.step, self.report) or tool_call is None:
                continue
            if result.time_limit:
                _note_run_time(tool_call, result, result.time_limit, _STOPPING_SECONDS)
            elif result.call_id in self.run_begins and tool_call.purpose is steps.TOOL:
                run_time = result.step.time - self.run_begins[result.call_id]
                _note_run_time(tool_call, result, run_time, _PROGRESS_SECONDS)
            if result.background_task and tool_call.purpose is steps.TOOL:
                launches.append((result.background_task, result.call_id, tool_call))
        end_background_calls(launches, self.signs)

    def _read_answer(self, entry: Entry) -> None:
        """Read a row of an answer: its texts and calls."""
        row, message, thread = entry.row, entry.message, entry.thread
        if message.get("model") == _NO_MODEL and row.is_api_error_message is not True:
            thread.add(steps.Note(entry.time, entry.place))
            return
        answer = self._answer_of_row(entry)
        if answer is None:
            return
        call = answer.call
        stop_reason, content = message.get("stop_reason", ""), message.get("content")
        answer.is_unfinished = stop_reason is None  # a row without this member says nothing about it
        if row.is_api_error_message is True:
            call.error = "api_error"
        if stop_reason == "refusal":
            thread.add(steps.SafetyEvent(entry.time, entry.place, error="refusal"))
        if type(content) is not list:
            content = [{"type": "text", "text": content}]
        for block in content:
            kind = block.get("type") if type(block) is dict else None
            if kind == "text":
                text = text_field(block, "text")
                answer.characters += len(text)
                call.note_text(text, self._privacy)
            elif kind == "thinking":
                answer.characters += len(text_field(block, "thinking"))
            elif kind == "tool_use" or (type(kind) is str and kind.endswith("tool_use")):
                self._read_call(entry, block, call)
            elif type(kind) is str and kind.endswith("tool_result"):
                self._read_result(entry, block)

    def _answer_of_row(self, entry: Entry) -> Answer | None:
        """Return the answer that a row is a part of, a new one for its first row; None if another thread has it."""
        message, thread, time, place = entry.message, entry.thread, entry.time, entry.place
        answer_id, request_id, key = as_text(message.get("id")), "", None
        # The service made a long id, and a short id with the id of a request. People may have made up any other id:
        # it identifies an answer only within its thread.
        if len(answer_id) >= MIN_ID_LENGTH:
            key = answer_id, "", ""
        elif answer_id:
            request_id = as_text(entry.row.request_id)
            thread_key = "" if request_id else thread.key
            key = answer_id, request_id, thread_key
        usage = message.get("usage")
        last_usage, tokens, has_invalid_count = self._last_usage
        has_flag = type(usage) is dict and bool in map(type, usage.values())  # True equals 1, but is no count
        if usage != last_usage or has_invalid_count or has_flag:  # else the row repeats the usage of the row before
            tokens, has_invalid_count = usage_of(usage)
            self._last_usage = usage, tokens, has_invalid_count
        answer = self._answers_by_id.get(key)
        if answer is None:
            uuid, model = as_text(entry.row.uuid), text_field(message, "model")
            if len(answer_id) >= MIN_ID_LENGTH or request_id:
                self._answer_ids.note(answer_id, request_id, place.file, place.line)
            elif len(uuid) >= MIN_ID_LENGTH:
                self._answer_ids.note(uuid, "", place.file, place.line)
            if model == _NO_MODEL:  # the program reports an error of the service; nothing was spent
                model = ""
                tokens = tokens or {"input": 0, "output": 0}
            answer = Answer(steps.ModelCall(time, place, end=time, model=self._mask(model)), thread)
            thread.add(answer.call)
            self.answers.append(answer)
            if key is not None:
                self._answers_by_id[key] = answer
        elif answer.thread is thread:
            self.report.enter_all(_EARLIER, answer.tokens or {})
            answer.row_count += 1
        else:
            self.report.enter_all(LedgerLine.SECOND_FILE, tokens or {})
            thread.add(steps.Note(time, place))
            return None
        call = answer.call
        if time > call.end:
            call.end = time
        if time < call.time and time != NO_TIME:  # rows may be in any order
            call.time = time
        answer.tokens = tokens or answer.tokens
        answer.has_invalid_count = has_invalid_count
        return answer

    def _read_call(self, entry: Entry, block: dict[str, Any], call: steps.ModelCall) -> None:
        """Read a call of a tool by an answer (`call`)."""
        thread, tool, call_id = entry.thread, text_field(block, "name"), text_field(block, "id")
        if call_id and (thread.key, call_id) in self.tool_calls:
            self.report.note(Problem.CALL_WRITTEN_TWICE, str(entry.place))
            return
        purpose, tool_name = _PURPOSES.get(tool, steps.TOOL), self._mask(tool) or "(no name)"
        tool_call = steps.ToolCall(
            entry.time, entry.place, purpose=purpose, model_call=call, id=masked(call_id), tool=tool_name
        )
        call.final = False
        thread.add(tool_call)
        if call_id:
            self.tool_calls[thread.key, call_id] = tool_call
        arguments = block.get("input")
        if purpose is steps.TOOL and tool not in POLLING_TOOLS:
            tool_call.ref = self._privacy.reference(arguments)
            return
        details = as_object(arguments)
        match purpose:
            case steps.SPAWN:
                prompt = text_field(details, "prompt") or text_field(details, "script")
                tool_call.ref = self._privacy.reference(prompt)
                tool_call.role = masked(text_field(details, "subagent_type"))
                spawn = Spawn(tool_call, thread, call_id, text_field(details, "name"), steps.mark(prompt))
                spawn.team, spawn.row = text_field(details, "team_name"), as_text(entry.row.uuid)
                is_team_or_workflow = spawn.team != "" or tool == WORKFLOW_TOOL
                spawn.in_background = is_team_or_workflow or details.get("run_in_background") is True
                self.spawns.append(spawn)
            case steps.MESSAGE:
                body = text_field(details, "content") or text_field(details, "message")
                tool_call.ref = self._privacy.reference(body or arguments)
                receiver = text_field(details, "recipient") or text_field(details, "to")
                self.agent_calls.append(AgentCall(tool_call, thread, call_id, receiver, steps.mark(body)))
            case _:
                tool_call.ref = self._privacy.reference(arguments)
                if purpose is steps.ASK:
                    return
                task_id = first_text(details, ("task_id", "agentId", "shell_id", "bash_id"))
                self._task_calls[thread.key, call_id] = tool, task_id
                if purpose is not steps.TOOL:
                    self.agent_calls.append(AgentCall(tool_call, thread, call_id, task_id))

    def _read_text(self, entry: Entry, text: str, content: Any) -> None:
        """Read a text that the agent was given: a prompt, or a text of the program or of another agent."""
        row, thread, time, place = entry.row, entry.thread, entry.time, entry.place
        is_task = not thread.steps and not thread.is_root  # the first text of a sub-agent
        if is_task:
            bodies = [body for sender, body in teammate_messages(text) if sender == LEAD]
            beginning = self.beginnings.setdefault(thread.key, Beginning())
            prompt = bodies[0] if bodies else text
            beginning.prompt_mark = steps.mark(prompt)
            thread.is_warm_up = text.strip() == _WARM_UP
        elif thread.is_warm_up:
            thread.is_warm_up = False
        speaker = speaker_of(text)
        origin = text_field(row.origin, "kind")
        is_by_program = row.is_meta is True or row.is_compact_summary is True or origin not in ("", "human")
        if speaker is Speaker.TASK:
            self._read_notifications(entry, text)
        elif speaker is Speaker.TEAMMATE and not is_task:
            for sender, body in teammate_messages(text):
                if sender == "system":
                    thread.add(steps.Note(time, place))
                    continue
                delivery = steps.Delivery(time, place, ref=self._privacy.reference(body))
                thread.add(delivery)
                self.messages.append(Arrival(delivery, thread, sender, steps.mark(body)))
        elif not thread.is_root or speaker is Speaker.PROGRAM or is_by_program:
            thread.add(steps.Note(time, place, prolongs=text.startswith(_HOOK_FEEDBACK)))
        elif speaker is Speaker.INTERRUPTION:
            thread.add(steps.UserInput(time, place, waited=False, status=Status.CANCELLED))
        else:
            ref, is_command = self._privacy.reference(text or content), speaker is Speaker.COMMAND
            thread.add(steps.UserInput(time, place, ref=ref, is_command=is_command))

    def _read_notifications(self, entry: Entry, text: str) -> None:
        """Read the notifications of an agent about tasks in the background."""
        for task in read_tasks(text):
            notice = steps.Notice(entry.time, entry.place)
            entry.thread.add(notice)
            end, ref = STATUS_OF_END.get(task.status), self._privacy.reference(task.result)
            self.signs.append(TaskSign(task.task_id, task.call_id, notice, end, task.status, entry.thread, ref))

    def _read_result(self, entry: Entry, block: dict[str, Any]) -> None:
        """Read the result of a call."""
        content, thread, call_id = block.get("content"), entry.thread, text_field(block, "tool_use_id")
        text = text_of(content)
        ref, status, error = self._privacy.reference(text or content), _OK, ""
        if block.get("is_error") is True:
            status, error = _ERROR, error_of(text)
            if error == FORBIDDEN:
                thread.add(steps.SafetyEvent(entry.time, entry.place, error=error))
        tool_call = self.tool_calls.get((thread.key, call_id))
        purpose = tool_call.purpose if tool_call is not None else None
        if purpose is steps.JOIN and error == steps.REJECTED:
            error = steps.INTERRUPTED  # the wait had begun when the person refused
        step = steps.ToolResult(entry.time, entry.place, status=status, error=error, ref=ref)
        thread.add(step)
        if self._task_calls and status is _OK:
            tool, task_id = self._task_calls.get((thread.key, call_id), ("", ""))
            if task_id:  # the call asked for the output of a task, or stopped it
                end = STATUS_OF_END.get(element(text, "status"))
                if tool in STOPPING_TOOLS:
                    end = Status.CANCELLED
                self.signs.append(TaskSign(task_id, "", step, end))
        result = Result(step, thread, call_id)
        if purpose is not steps.TOOL and purpose is not steps.ASK:  # a call about an agent, or of an unknown purpose
            line_of_agent = text[-1000:].partition("agentId:")[2].partition("\n")[0]
            result.agent_in_text = line_of_agent.strip().partition(" ")[0]
            result.is_done = "<status>completed" in text
            result.is_refused = '"success": false' in text or '"success":false' in text
            details = details_of(entry.row)
            if details is not None:
                result.agent = as_text(details.agent) or as_text(details.teammate)
                result.run, result.task = as_text(details.run), as_text(details.task)
                has_begun = as_text(details.status).endswith(("_launched", "_spawned"))
                result.is_launch = details.is_async is True or has_begun
                result.usage, _ = usage_of(details.usage)
                result.total = as_count(details.total)
        if purpose is steps.TOOL or purpose is None:  # without a call: its row may come later
            if status is _ERROR:
                result.time_limit = time_limit_of(text)
            else:
                result.background_task = launched_task(text, entry.row)
        self.results.append(result)

    def _read_attachment(self, entry: Entry) -> None:
        """Read a row outside of the conversation: a hook that blocked, a command from the queue."""
        attachment, thread, time, place = entry.message, entry.thread, entry.time, entry.place
        kind = attachment.get("type")
        if kind == "hook_blocking_error":
            thread.add(steps.SafetyEvent(time, place, tool=masked(text_field(attachment, "hookName")), error="hook"))
        elif kind == "queued_command":
            prompt = attachment.get("prompt")
            text = text_of(prompt)
            speaker = speaker_of(text)
            if speaker is Speaker.TASK:
                self._read_notifications(entry, text)
            elif speaker in (Speaker.PERSON, Speaker.COMMAND) and thread.is_root:
                thread.add(steps.UserInput(time, place, ref=self._privacy.reference(text or prompt), waited=False))
        else:
            self.report.skip("attachment")


def _note_run_time(tool_call: steps.ToolCall, result: Result, seconds: float, tolerance: float) -> None:
    """Note how many seconds a command ran; the rest of the time until its result, it waited for a person.

    If that rest is at most the tolerance, in seconds, it did not wait.
    """
    elapsed = result.step.time - tool_call.time
    run_time = elapsed if elapsed - seconds <= tolerance else max(seconds, 0.0)
    tool_call.more = {"run_time": round(run_time, 6)}
