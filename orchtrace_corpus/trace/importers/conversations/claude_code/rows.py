"""The rows of a Claude Code file, as far as they are read, and the evidence that they give.

Decoding skips everything else. Fields have no types here, since each of them has another type in some version.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.transcript import Transcript
from orchtrace_corpus.trace.importers.core.values import MAX_COUNT, count, string

_NOTHING = Raw(b"null")


class Opening(Struct, gc=False, rename="camel"):
    """A row among the first of a file, with the fields that identify the file and its session.

    Attributes:
        kind: Its type.
    """

    kind: Any = field(default=None, name="type")
    timestamp: Any = None
    uuid: Any = None
    is_sidechain: Any = None
    session_id: Any = None
    agent_id: Any = None


class Line(Opening, gc=False, rename="camel"):
    """A row.

    Attributes:
        forked_from: The session and the row of which this row is a copy.
        tool_use_result: The structured part of a result, which repeats the output of the tool; `details` decodes it.
    """

    parent_uuid: Any = None
    version: Any = None
    request_id: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    origin: Any = None
    forked_from: Any = None
    message: Any = None
    attachment: Any = None
    data: Any = None
    parent_tool_use: Any = field(default=None, name="parentToolUseID")
    subtype: Any = None
    duration_ms: Any = None
    content: Any = None
    tool_use_result: Raw = _NOTHING


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
_NOTIFICATION = re.compile(r"<(task|bash|agent)-notification\b.*?(?:</\1-notification>|\Z)", re.DOTALL)
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
    for notification in _NOTIFICATION.finditer(text):
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


_TIMED_OUT = re.compile(r"Command timed out after (?:(\d+)h ?)?(?:(\d+)m ?)?(?:([\d.]+)s)?")


def time_limit(text: str) -> float:
    """Return the seconds after which a command was stopped, as the text of its result says; 0 where it was not."""
    match = _TIMED_OUT.search(text, 0, 1000) or _TIMED_OUT.search(text[-1000:])
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
    """An answer of a model, as far as its rows have been read.

    Attributes:
        rows: The number of its rows.
        characters: The characters of text and thinking in them.
        is_open: Whether its last row was written before the model stopped: its output is a placeholder.
        is_odd: Whether the usage of its last row has a count that is no number.
        tokens: What it spent, by kind, as its last row says.
    """

    call: steps.ModelCall
    thread: Transcript
    tokens: dict[str, int] | None = None
    rows: int = 1
    characters: int = 0
    is_open: bool = False
    is_odd: bool = False


_CHARACTERS_A_TOKEN = 40
"""More than a token has, even of lines and blanks; in words it has four."""
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
    """A result, with what it says of agents.

    Attributes:
        agent: The agent that its structured part names.
        tail: The agent that its text names at the end.
        run: The workflow that it has started.
        task: The background task that it has started.
        launched: Whether it only says that an agent or workflow has begun.
        done: Whether it says that what was waited for is done.
        refused: Whether it says that nothing was done.
        usage: The usage that it states.
        total: Its `totalTokens`.
        background: The task in the background that the call of a tool has begun.
        time_limit: The seconds after which the call was stopped, as it says; 0 where it was not.
    """

    answer: steps.ToolResult
    thread: Transcript
    id: str
    agent: str = ""
    tail: str = ""
    run: str = ""
    task: str = ""
    launched: bool = False
    done: bool = False
    refused: bool = False
    usage: dict[str, int] | None = None
    total: int | None = None
    background: str = ""
    time_limit: float = 0.0


class Spawn(Struct):
    """A call that spawns an agent; `result` is None while none has come.

    Attributes:
        in_background: Whether the call does not wait for the agent.
        child: The key of the agent; empty while none is known.
    """

    call: steps.ToolCall
    thread: Transcript
    id: str
    prompt: int = 0
    name: str = ""
    team: str = ""
    row: str = ""
    in_background: bool = False
    result: Result | None = None
    child: str = ""


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


class SpawnEvidence(Struct):
    """All evidence of a session.

    Attributes:
        progress: The call that spawned an agent, by the agent, as rows of progress say.
        beginnings: How threads begin, by the agent's id in the log.
    """

    written: list[Written] = field(default_factory=list)
    spawns: list[Spawn] = field(default_factory=list)
    addressed: list[Addressed] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    progress: dict[str, str] = field(default_factory=dict)
    beginnings: dict[str, Beginning] = field(default_factory=dict)


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
