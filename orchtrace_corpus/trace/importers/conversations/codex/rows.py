"""The rows of a Codex rollout as far as they are read, and what arguments and texts in them say.

Decoding skips everything else. Fields have no types here, since rows of some version have another type in each.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from orchtrace_corpus.trace.importers.core.values import mapping, text_field
from orchtrace_corpus.trace.model.trace import Status


class Payload(Struct, gc=False):
    """The content of a row: fields of items, of events and of what a thread says of itself."""

    type: Any = None
    id: Any = None
    role: Any = None
    name: Any = None
    call_id: Any = None
    event_id: Any = None
    status: Any = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    output: Any = None
    content: Any = None
    summary: Any = None
    encrypted_content: Any = None
    message: Any = None
    text: Any = None
    item: Any = None
    info: Any = None
    kind: Any = None
    statuses: Any = None
    model: Any = None
    turn_id: Any = None
    started_at: Any = None
    duration_ms: Any = None
    new_thread: Any = field(default=None, name="new_thread_id")
    agent_thread: Any = field(default=None, name="agent_thread_id")
    agent_thread_too: Any = field(default=None, name="agentThreadId")
    author: Any = None
    agent_path: Any = None
    agent_path_too: Any = field(default=None, name="agentPath")


class Line(Struct, gc=False):
    """A row; without a payload where that is no object."""

    timestamp: Any = None
    type: Any = None
    payload: Payload | None = None


def as_payload(value: Any) -> Payload:
    """Return an object as a payload; an empty one for anything else."""
    return msgspec.convert(value, Payload) if isinstance(value, dict) else Payload()


_INJECTED = (
    "<environment_context", "<user_instructions", "<turn_aborted", "<user_shell_command", "<skill", "<permissions",
    "<collaboration_mode", "<model_switch", "# AGENTS.md", "<INSTRUCTIONS", "<user_action",
)  # fmt: skip
_NOTIFICATION = "<subagent_notification>"
_ENDED = {
    "completed": Status.OK,
    "errored": Status.ERROR,
    "failed": Status.ERROR,
    "interrupted": Status.CANCELLED,
    "shutdown": Status.CANCELLED,
    "closed": Status.CANCELLED,
}
"""How an agent is said to have ended; under any other word it goes on."""
_ESCALATED = re.compile(
    r"""sandbox_permissions["']?\s*:\s*["'`]require_escalated|with_escalated_permissions["']?\s*:\s*true"""
)
"""How a script of code mode asks."""
_TOOL_CALL = re.compile(r"\btools\.\w+\s*\(")
_FINAL_ANSWER = re.compile(r"\s*Message Type: FINAL_ANSWER\n(?:(?!Payload:).*\n){0,5}Payload:\n?")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_MAX_BEGINNING = 400
_MAX_PARSED = 1_000_000


def is_injected(text: str) -> bool:
    """Return True if the program has put a text among those of the user."""
    return text.lstrip().startswith(_INJECTED)


def text_of(content: Any) -> str:
    """Return the text of a content: a string, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join([text for part in content if (text := text_field(part, "text"))])


def parsed(value: Any) -> dict[str, Any]:
    """Return an object, or the object that a text is; empty for anything else."""
    if isinstance(value, str) and value.lstrip()[:1] == "{" and len(value) <= _MAX_PARSED:
        try:
            value = msgspec.json.decode(value.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            return {}
    return mapping(value)


def asks_for_approval(arguments: Any) -> bool:
    """Return True if the arguments of a call, or a script, ask to leave the sandbox, which a person has to approve."""
    if isinstance(arguments, str) and "escalated" not in arguments:
        return False
    details = parsed(arguments)
    if not details:
        return isinstance(arguments, str) and _ESCALATED.search(arguments) is not None
    wanted = details.get("sandbox_permissions")
    return wanted == "require_escalated" or details.get("with_escalated_permissions") is True


def count_tool_calls(script: Any) -> int:
    """Return how many calls of tools stand in a script of code mode."""
    return len(_TOOL_CALL.findall(script)) if isinstance(script, str) else 0


def awaited(tool: str, arguments: Any) -> str:
    """Return what a call waits for that ran before, as `cell` or `session` with its number; empty for other calls."""
    if tool not in ("wait", "write_stdin"):
        return ""
    details = parsed(arguments)
    for member in ("cell_id", "session_id"):
        number = details.get(member)
        if isinstance(number, (int, str)) and number != "":
            return f"{member.removesuffix('_id')} {number}"
    return ""


def agent_named(details: dict[str, Any]) -> str:
    """Return the agent that arguments or an output name, by its thread or by its path; empty where they name none."""
    members = ("agent_id", "new_thread_id", "thread_id", "agent_thread_id", "id", "target", "agent_path", "task_name")
    return next(filter(None, (text_field(details, name) for name in members)), "")


def uuids(text: str) -> list[str]:
    """Return the UUIDs at the beginning of a text."""
    return re.findall(rf"\b{_UUID}\b", text[:_MAX_BEGINNING])


def is_uuid(name: str) -> bool:
    """Return True if a name is a UUID, as threads have it."""
    return re.fullmatch(_UUID, name) is not None


def path_leaf(path: str) -> str:
    """Return the last name of an agent's path, which begins at `/root`, the lead of the tree."""
    return path.rpartition("/")[2]


def endings(statuses: Any) -> Iterator[tuple[str, Status, str]]:
    """Yield the agents whose status says that they have ended: how, and what they handed in."""
    if not isinstance(statuses, dict):
        return
    for agent, state in statuses.items():
        words = mapping(state)
        if isinstance(state, str):
            words = {state: ""}
        for word, content in words.items():
            status = _ENDED.get(word.lower())
            if status:
                yield agent, status, content if isinstance(content, str) else text_field(content, "message")
                break


def final_answer(text: str) -> str | None:
    """Return what an agent hands in with its last message to the one above it; None for any other message."""
    envelope = _FINAL_ANSWER.match(text)
    return text[envelope.end() :] if envelope else None


def notification(text: str) -> Iterator[tuple[str, Status, str]]:
    """Yield the agent whose end a notification reports, as `endings` does."""
    begin = text.find(_NOTIFICATION)
    if begin >= 0:
        details = parsed(text[begin + len(_NOTIFICATION) :].partition("</")[0].strip())
        yield from endings({agent_named(details): details.get("status")})
