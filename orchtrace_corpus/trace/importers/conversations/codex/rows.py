"""The rows of a Codex rollout as far as they are read: decoding passes over everything else.

Nothing is said of the types of fields here, since rows of some version have another type in each.
"""

from typing import Any

import msgspec
from msgspec import Struct, field


class Payload(Struct, gc=False):
    """What a row holds: fields of items, events and of what a thread says of itself."""

    type: Any = None
    id: Any = None
    role: Any = None
    name: Any = None
    call_id: Any = None
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
    new_thread: Any = field(default=None, name="new_thread_id")
    agent_thread: Any = field(default=None, name="agent_thread_id")
    agent_thread_too: Any = field(default=None, name="agentThreadId")
    agent_path: Any = None
    agent_path_too: Any = field(default=None, name="agentPath")


class Line(Struct, gc=False):
    """A row; without a payload where that is no object."""

    timestamp: Any = None
    type: Any = None
    payload: Payload | None = None


def line(row: Any) -> Line:
    """A row, also one that was decoded in full because of its shape or its bytes."""
    if type(row) is Line:
        return row
    payload = row.get("payload")
    return Line(row.get("timestamp"), row.get("type"), as_payload(payload) if isinstance(payload, dict) else None)


def as_payload(value: Any) -> Payload:
    """An object as a payload; an empty one for anything else."""
    return msgspec.convert(value, Payload) if isinstance(value, dict) else Payload()


def string(value: Any) -> str:
    """A value that is text; empty where it is anything else."""
    return value if type(value) is str else ""
