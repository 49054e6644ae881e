"""The rows of a Claude Code file, as far as they are read, and the evidence that they give.

Decoding skips everything else. Fields have no types here, since each of them has another type in some version.
"""

import os
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import masked_path
from orchtrace_corpus.trace.importers.core.programs import is_qwen, program_of
from orchtrace_corpus.trace.importers.core.transcript import Transcript
from orchtrace_corpus.trace.importers.core.values import MAX_COUNT, count, string

_NOTHING = Raw(b"null")


class Opening(Struct, gc=False, rename="camel"):
    """A row among the first of a file, with the fields that identify the file and its session."""

    # in the order of most rows, as the decoder looks for each behind the one before
    parent_uuid: Any = None
    is_sidechain: Any = None
    session_id: Any = None
    version: Any = None
    agent_id: Any = None
    kind: Any = field(default=None, name="type")  # its type
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
    # the structured part of a result, which repeats the output of the tool; `details` decodes it
    tool_use_result: Raw = _NOTHING
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


_details = msgspec.json.Decoder(Details).decode


def details(of: Line) -> Details | None:
    """Return the structured part of a result; None if it is missing, or only a text."""
    content = bytes(of.tool_use_result)
    if not content.startswith(b"{"):
        return None
    try:
        return _details(content.decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


FORBIDDEN = "forbidden"
"""The error of a call that a rule does not allow."""

_PUT_THERE = (
    "<local-command-stdout", "<local-command-stderr", "<local-command-caveat", "<bash-stdout", "<bash-stderr",
    "<system-reminder", "Caveat: The messages below", "This session is being continued from a previous conversation",
)  # fmt: skip
_NOTIFICATIONS = ("<task-notification", "<bash-notification", "<agent-notification")
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


def speaker(text: str) -> Speaker:
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


def text_of(content: Any) -> str:
    """Return the text of a content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def tasks(text: str) -> Iterator[Task]:
    """Yield the notifications of tasks in a text."""
    for notification in re.finditer(_NOTIFICATION, text):
        part = notification[0]
        fields = ("task-id", "tool-use-id", "status", "result")
        task = Task(*(element(part, name) for name in fields))
        if not task.task:  # earlier versions call it by its kind
            task = task._replace(task=element(part, "shell-id") or element(part, "agent-id"))
        yield task


def element(text: str, name: str) -> str:
    """Return the text of the first element of that name; empty where there is none."""
    return _between(text, f"<{name}>", f"</{name}>")[0].strip()


def teammate_messages(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sender and the body of each `<teammate-message>` in a text."""
    at = text.find("<teammate-message")
    while at >= 0:
        opening, begin = _between(text, "<teammate-message", ">", at)
        body, end = _between(text, ">", "</teammate-message>", begin - 1) if begin > at else ("", -1)
        sender = _between(opening, 'teammate_id="', '"')[0]
        if sender:
            yield sender, body.strip()
        at = text.find("<teammate-message", max(end, at + 1)) if end > at else -1


def _between(text: str, opening: str, closing: str, start: int = 0) -> tuple[str, int]:
    """Return the text between two marks, and the place behind the second; empty and -1 if one is missing."""
    begin = text.find(opening, start)
    end = text.find(closing, begin + len(opening)) if begin >= 0 else -1
    return (text[begin + len(opening) : end], end + len(closing)) if end >= 0 else ("", -1)


def error(text: str) -> str:
    """Return the kind of error of a result: refused or interrupted by a person, forbidden by a rule, or any other."""
    text = text.lstrip()
    if text.startswith(_REFUSALS):
        return steps.REJECTED
    if text.startswith(_INTERRUPTED):
        return steps.INTERRUPTED
    return FORBIDDEN if text.startswith(_DENIALS) else "tool_error"


_TIMED_OUT = r"Command timed out after (?:(\d+)h ?)?(?:(\d+)m ?)?(?:([\d.]+)s)?"


def time_limit(text: str) -> float:
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
    tokens: dict[str, int] | None = None  # what it spent, by kind, as its last row says
    rows: int = 1  # the number of its rows
    characters: int = 0  # the characters of text and thinking in them
    is_open: bool = False  # whether its last row was written before the model stopped: its output is a placeholder
    is_odd: bool = False  # whether the usage of its last row has a count that is no number


_CHARACTERS_A_TOKEN = 40  # more than a token has, even of lines and blanks; in words it has four
_CHARACTERS_OF_NO_ACCOUNT = 400


def is_placeholder(written: Written) -> bool:
    """Return True if the count of an answer's output was noted before the model had written.

    The answer says so, or holds more text than so many tokens can.
    """
    if written.is_open or written.tokens is None:
        return written.is_open
    most = _CHARACTERS_A_TOKEN * written.tokens.get("output", 0) + _CHARACTERS_OF_NO_ACCOUNT
    return written.characters > most


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
    done: bool = False  # whether it says that what was waited for is done
    refused: bool = False  # whether it says that nothing was done
    usage: dict[str, int] | None = None  # the usage that it states
    total: int | None = None  # its `totalTokens`
    background: str = ""  # the task in the background that the call of a tool has begun
    time_limit: float = 0.0  # the seconds after which the call was stopped, as it says; 0 where it was not


class Spawn(Struct):
    """A call that spawns an agent; `result` is None while none has come."""

    call: steps.ToolCall
    thread: Transcript
    id: str
    prompt: int = 0
    name: str = ""
    team: str = ""
    row: str = ""
    in_background: bool = False  # whether the call does not wait for the agent
    result: Result | None = None
    child: str = ""  # the key of the agent; empty while none is known


class Addressed(Struct):
    """A call that is about an agent or task under some name: a message to it, a wait for it, its end."""

    call: steps.ToolCall
    thread: Transcript
    id: str
    name: str
    mark: int = 0
    result: Result | None = None


class Notice(Struct):
    """A background task tells of itself."""

    step: steps.Notice
    thread: Transcript
    task: Task
    ref: str


class Arrival(Struct):
    """A message of a teammate, under the name that the team knows it by."""

    step: steps.Delivery
    thread: Transcript
    name: str
    mark: int


class Beginning(Struct):
    """The beginning of a sub-agent's thread, by which its spawn is found; 0 and empty if unknown."""

    prompt: int = 0
    parent_row: str = ""


def usage_of(value: Any) -> tuple[dict[str, int] | None, bool]:
    """Return the tokens of a `usage`, None if it has none, and True if one of its counts is no number.

    Claude's input excludes what was read from caches.
    """
    if type(value) is not dict:
        return None, False
    tokens, is_odd = {}, False
    for kind, name in USAGE:
        stated = value.get(name)
        if type(stated) is int and 0 <= stated <= MAX_COUNT:  # as `count` has it, which takes longer
            tokens[kind] = stated
        elif (amount := count(stated)) is not None:
            tokens[kind] = amount
        elif stated is not None:
            is_odd = True
    by_duration = value.get("cache_creation")
    if type(by_duration) is dict and (for_an_hour := count(by_duration.get("ephemeral_1h_input_tokens"))):
        tokens["cache_write_1h"] = min(for_an_hour, tokens.get("cache_write", 0))
    return tokens or None, is_odd


def result(answer: steps.ToolResult, thread: Transcript, call: str, text: str, structured: Details | None) -> Result:
    """Return a result with the agents and the usage in its text and its structured part."""
    tail, _ = _between(text[-1000:] + "\n", "agentId:", "\n")
    result = Result(answer, thread, call, tail=tail.strip().split(" ", 1)[0], done="<status>completed" in text)
    result.refused = '"success": false' in text or '"success":false' in text
    if structured is not None:
        result.agent = string(structured.agent) or string(structured.teammate)
        result.run, result.task = string(structured.run), string(structured.task)
        result.launched = structured.is_async is True or string(structured.status).endswith(("_launched", "_spawned"))
        result.usage, _ = usage_of(structured.usage)
        result.total = count(structured.total)
    return result


_ROW_TYPES = frozenset(
    ("user", "assistant", "system", "summary", "progress", "attachment", "queue-operation", "file-history-snapshot")
)
_DOCUMENTS = ({"agentType"}, {"toolUseId"}, {"runId", "workflowName"}, {"runId", "workflowProgress"})
"""The fields that identify the files beside transcripts."""
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".meta")
_AGENT = "agent-"
_LEAST_ID_LENGTH = 32  # shorter ids are made up by people, so that the same id in two files joins nothing


class Part(StrEnum):
    """The part of a session that a file is."""

    MAIN = "main"
    AGENT = "agent"
    META = "meta"
    JOURNAL = "journal"
    RUN = "run"


class Source(NamedTuple):
    """A file of a session."""

    file: LogFile
    part: Part  # the part that it is
    shown: str  # its name in events: the path from the session's own folder on, which names no project
    agent: str = ""  # the agent that it is about, by its file name; empty if it is about none
    run: str = ""  # the workflow that it belongs to; empty if it belongs to none


def beside(opened: Opened) -> list[LogFile]:
    """Return the files beside a log that may be transcripts of its sub-agents.

    They are in `SESSION/` for `SESSION.jsonl`, or, as `agent-ID.jsonl`, in its own folder. Their ties say whether
    they belong to the session.
    """
    path = opened.file.path
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
            files.append(LogFile(agent, masked_path(name)))
    return files


def recognises(beginning: Head) -> bool:
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


def source(file: LogFile, openings: Sequence[Opening] | None = None) -> Source:
    """Return a file as a part of its session, by its path, or by its first rows if it was renamed.

    Args:
        file: The file.
        openings: The first rows of its conversation, where they are at hand.
    """
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
                with Opened(file) as opened:
                    openings = _openings(opened)
            agents = {string(row.agent_id) if row.is_sidechain is True else "" for row in openings}
            agent = agents.pop() if len(agents) == 1 else ""
        return Source(file, Part.AGENT if agent else Part.MAIN, masked_path(name), agent)
    shown = masked_path("/".join((*folders[max(below - 1, 0) :], name)))
    run = folders[below + 2] if folders[below + 1 : below + 2] == ["workflows"] and len(folders) > below + 2 else ""
    if name == "journal.jsonl":
        return Source(file, Part.JOURNAL, shown, run=run)
    return Source(file, Part.META if name.endswith(".meta.json") else Part.AGENT, shown, agent, run)


def _openings(opened: Opened) -> list[Opening]:
    """Return the rows of the conversation among the first of a file."""
    return [row for row in opened.rows(Opening) if row.kind in ("user", "assistant")]


def ties(opened: Opened) -> list[str]:
    """Return the ties of a file to others of its session.

    Sub-agents belong to the session in whose folder they are, or else to the one that their rows name. A session
    that goes on in a second file, which repeats rows of the first or names its session, is one session.
    """
    file = opened.file
    folder, _, name = file.path.replace(os.sep, "/").rpartition("/")
    inside = folder.split("/")
    if "subagents" in inside:
        return ["/".join(inside[: inside.index("subagents")])]
    openings = _openings(opened)
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
