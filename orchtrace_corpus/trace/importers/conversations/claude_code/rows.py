"""The rows of a Claude Code file as far as they are read: decoding passes over everything else.

Nothing is said of the types of fields here, since rows of some version have another type in each.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct, field

_NOTHING = Raw(b"null")


class Opening(Struct, gc=False, rename="camel"):
    """A row among the first of a file, as far as it tells what the file is, and of which session.

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
        tool_use_result: The structured part of a result, which repeats what the tool has printed; decoded by
            `details` where something is to be learnt from it.
    """

    parent_uuid: Any = None
    version: Any = None
    request_id: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    origin: Any = None
    message: Any = None
    attachment: Any = None
    data: Any = None
    parent_tool_use: Any = field(default=None, name="parentToolUseID")
    tool_use_result: Raw = _NOTHING


class Details(Struct, gc=False):
    """What the structured part of a result says of agents and of what they have spent."""

    agent: Any = field(default=None, name="agentId")
    teammate: Any = field(default=None, name="agent_id")
    run: Any = field(default=None, name="runId")
    task: Any = field(default=None, name="taskId")
    status: Any = None
    is_async: Any = field(default=None, name="isAsync")
    usage: Any = None
    total: Any = field(default=None, name="totalTokens")


_line = msgspec.json.Decoder(Line).decode
_details = msgspec.json.Decoder(Details).decode


def line(row: Any) -> Line:
    """A row that was decoded in full, because bytes in it had to be repaired."""
    return row if type(row) is Line else _line(msgspec.json.encode(row))


def details(of: Line) -> Details | None:
    """The structured part of a result; None where it has none, or only a text."""
    content = bytes(of.tool_use_result)
    if not content.startswith(b"{"):
        return None
    try:
        return _details(content.decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def string(value: Any) -> str:
    """A value that is text; empty where it is anything else."""
    return value if type(value) is str else ""
