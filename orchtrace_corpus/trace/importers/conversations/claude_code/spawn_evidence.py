"""What the rows of a Claude Code session tell about who spawned whom, kept until all rows are read."""

from typing import Any, TypeGuard

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.rows import Details
from orchtrace_corpus.trace.importers.conversations.transcript import (
    Delivery,
    ModelCall,
    Note,
    ToolCall,
    ToolResult,
    Transcript,
)

_USAGE = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_read", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
)
_MOST_TOKENS = 2**53 - 1

WORKFLOW_TOOL = "Workflow"
"""The tool that starts a workflow."""


class Written(Struct):
    """An answer of a model while its rows come in.

    Attributes:
        rows: How many of its rows there are.
        is_open: Whether its last row was written before the model stopped: its output is a placeholder.
        is_odd: Whether the usage of its last row gives something for tokens that is no number of them.
    """

    call: ModelCall
    thread: Transcript
    rows: int = 1
    is_open: bool = False
    is_odd: bool = False


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
    """

    answer: ToolResult
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


class Spawn(Struct):
    """A call that spawns an agent; `result` is None while none has come."""

    tool_call: ToolCall
    thread: Transcript
    id: str
    prompt: int = 0
    name: str = ""
    team: str = ""
    row: str = ""
    result: Result | None = None


class Aimed(Struct):
    """A call that is about an agent or task under some name: a message to it, a wait for it, its end."""

    tool_call: ToolCall
    thread: Transcript
    id: str
    name: str
    mark: int = 0
    result: Result | None = None


class Notice(Struct):
    """A background task tells of its end."""

    step: Note
    thread: Transcript
    task: rows.Task
    ref: str


class Arrival(Struct):
    """A message of a teammate, under the name that the team knows it by."""

    step: Delivery
    thread: Transcript
    name: str
    mark: int


class Beginning(Struct):
    """How the thread of a sub-agent begins, by which its spawn can be found; 0 and empty where that is unknown."""

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
    aimed: list[Aimed] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    progress: dict[str, str] = field(default_factory=dict)
    beginnings: dict[str, Beginning] = field(default_factory=dict)


def usage_of(value: Any) -> tuple[dict[str, int] | None, bool]:
    """The tokens of a `usage`, and whether it gives something for tokens that is no number of them.

    There are none where it has none. Claude's input excludes what was read from caches.
    """
    if type(value) is not dict:
        return None, False
    found, is_odd = {}, False
    for kind, name in _USAGE:
        number = value.get(name)
        if _is_number(number):
            found[kind] = number
        elif number is not None:
            is_odd = True
    return found or None, is_odd


def _is_number(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST_TOKENS


def result(answer: ToolResult, thread: Transcript, call: str, text: str, details: Details | None) -> Result:
    """What a result says of agents, in its text and in its structured part."""
    found = Result(answer, thread, call, tail=rows.agent_in_tail(text), done="<status>completed" in text)
    found.refused = '"success": false' in text or '"success":false' in text
    if details is not None:
        found.agent = rows.string(details.agent) or rows.string(details.teammate)
        found.run, found.task = rows.string(details.run), rows.string(details.task)
        found.launched = details.is_async is True or rows.string(details.status).endswith(("_launched", "_spawned"))
        found.usage, _ = usage_of(details.usage)
        total = details.total
        found.total = total if _is_number(total) else None
    return found


def text_field(value: Any, name: str) -> str:
    """The text of a field; empty where there is none."""
    if type(value) is dict:
        found = value.get(name)
        if type(found) is str:
            return found
    return ""
