"""The programs whose logs look like those that are read, or are often met beside them: known by what only they write.

iFlow writes nearly the rows of Claude Code, with usage that is always 0. To read them as Claude Code's would lose
tokens without a word.
"""

from collections.abc import Callable, Mapping
from typing import Any

from orchtrace_corpus.trace.importers.core.logs import Head
from orchtrace_corpus.trace.importers.core.values import object_field

_UUID_DIGITS = 36


def program_of(beginning: Head) -> str:
    """Return the program that wrote a file which begins like this; empty for none of those known here."""
    return next((name for row in beginning.rows for name, wrote in _BY_ROW.items() if wrote(row)), "")


def is_qwen(row: dict[str, Any]) -> bool:
    """Return True if a row is of Qwen Code: it has nearly those of Claude Code, with messages in parts."""
    return (
        "parts" in object_field(row, "message")
        or "systemPayload" in row
        or row.keys() >= {"agentType", "parentSessionId"}
    )


def _is_iflow(row: dict[str, Any]) -> bool:
    """Its session ids are `session-` and a UUID; what its tools return is in the form of Gemini CLI."""
    if object_field(row, "toolUseResult").keys() >= {"toolName", "status", "timestamp"}:
        return True
    session = row.get("sessionId")
    return (
        isinstance(session, str)
        and session.startswith("session-")
        and len(session) == len("session-") + _UUID_DIGITS
        and "userType" in row
    )


_BY_ROW: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "iFlow": _is_iflow,
    "the list of prompts of Gemini CLI": lambda row: row.keys() >= {"sessionId", "messageId", "message", "type"},
    "kimi-cli": lambda row: object_field(row, "message").keys() >= {"type", "payload"},
}
