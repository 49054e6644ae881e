"""The programs whose logs look like those that are read, or are often met beside them: known by what only they write.

Qwen Code and iFlow write nearly the rows of Claude Code, with the messages of another program in them, or with
usage that is always 0. To read them as Claude Code's would lose calls and tokens without a word.
"""

from collections.abc import Callable, Mapping
from typing import Any

from orchtrace_corpus.trace.importers.core.logs import Head

_UUID_DIGITS = 36


def program_of(beginning: Head) -> str:
    """The program that wrote a file which begins like this; empty where it is none of those that are known here."""
    for row in beginning.rows:
        for name, wrote in _BY_ROW.items():
            if wrote(row):
                return name
    names = beginning.outline
    return next((name for name, members in _BY_MEMBERS if members <= names), "")


def _inside(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = row.get(name)
    return found if isinstance(found, dict) else {}


def _is_qwen(row: dict[str, Any]) -> bool:
    return (
        "parts" in _inside(row, "message") or "systemPayload" in row or row.keys() >= {"agentType", "parentSessionId"}
    )


def _is_iflow(row: dict[str, Any]) -> bool:
    """Its session ids are `session-` and a UUID; what its tools return is in the form of Gemini CLI."""
    if _inside(row, "toolUseResult").keys() >= {"toolName", "status", "timestamp"}:
        return True
    session = row.get("sessionId")
    return (
        isinstance(session, str)
        and session.startswith("session-")
        and len(session) == len("session-") + _UUID_DIGITS
        and "userType" in row
    )


def _is_gemini(row: dict[str, Any]) -> bool:
    return row.keys() >= {"sessionId", "projectHash"} or row.keys() >= {"sessionId", "messageId", "message", "type"}


_BY_ROW: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "Qwen Code": _is_qwen,
    "iFlow": _is_iflow,
    "Gemini CLI": _is_gemini,
    "Copilot CLI": lambda row: _inside(row, "data").get("producer") == "copilot-agent",
    "Kimi Code": lambda row: row.get("type") == "metadata" and "protocol_version" in row,
}
_BY_MEMBERS = (
    ("Qwen Code", {"agentType", "parentSessionId"}),
    ("Gemini CLI", {"sessionId", "projectHash", "messages"}),
    ("Kimi Code", {"agents", "createdAt", "archived"}),
)
"""By the members of its outer objects, of which the first that fits counts."""
