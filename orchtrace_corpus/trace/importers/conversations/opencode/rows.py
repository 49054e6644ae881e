"""The records of OpenCode as typed values, whatever is wrong with them: sessions, messages, and parts of messages."""

from typing import Any

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from orchtrace_corpus.trace.importers.core import json_parts as parts


class Times(Struct, gc=False):
    """Milliseconds since 1970."""

    created: Any = None
    completed: Any = None
    start: Any = None
    end: Any = None


_Odd = bool | int | float | str | tuple[Any, ...] | None  # what stands where an object should be


class Usage(Struct, gc=False):
    """What an answer has spent, each kind apart; reads and writes are those of its `cache`."""

    input: Any = None
    output: Any = None
    reasoning: Any = None
    total: Any = None
    cache: "Usage | _Odd" = None
    read: Any = None
    write: Any = None


class Metadata(Struct, gc=False):
    """What a tool says of its run beside the output, which it may repeat."""

    session: str = field(default="", name="sessionId")
    exit: Any = None


class State(Struct, gc=False):
    """What became of a call."""

    status: str = ""
    input: Any = None
    output: Any = None
    error: Any = None
    metadata: Metadata | None = None
    time: Times | None = None


class PartRow(Struct, gc=False):
    """The members of a part that say something about calls or tokens.

    They stand as in most records, as the decoder looks for each behind the one before.
    """

    id: str = ""
    session: str = field(default="", name="sessionID")
    message: str = field(default="", name="messageID")
    type: str = ""
    text: Any = None
    tool: str = ""
    call: str = field(default="", name="callID")
    state: State | None = None
    time: Times | None = None
    tokens: Usage | _Odd = None
    cost: Any = None
    synthetic: Any = None


class Row(PartRow, gc=False):
    """The members of a session, a message or a part that say something about agents, calls or tokens."""

    role: str = ""
    agent: str = ""
    mode: str = ""
    model_id: str = field(default="", name="modelID")
    finish: str = ""
    error: Any = None
    parent: str = field(default="", name="parentID")
    version: str = ""
    model: Any = None
    info: "Row | None" = None
    part: "Row | None" = None
    messages: "list[Exported] | None" = None


class Exported(Struct, gc=False):
    """A message with its parts, as `export` writes it."""

    info: Row | None = None
    parts: list[PartRow] | None = None


_ROW = Decoder(Row)


def exact(data: Any) -> Row | None:
    """Return a row in which nothing is wrong; None for any other."""
    try:
        return _ROW.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode(data: Any) -> Row | None:
    """Return a row, whatever is wrong with it: members of another kind than they should be go; None for no row."""
    return exact(data) or parts.lenient(parts.decoded(data), Row)
