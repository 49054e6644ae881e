"""The files of Pi, and what its messages state.

A session is one file; the sub-agents of an extension have theirs in a folder of the session's name:
`<time>_<id>.jsonl` is the session, `<time>_<id>/<run>/run-0/session.jsonl` that of a sub-agent, whose own sub-agents
are below `<time>_<id>/<run>/run-0/session/`. Shapes: pi-coding-agent 0.73.1, pi-subagents 0.67.
"""

import os
import re
from collections.abc import Mapping, Sequence
from glob import escape, iglob
from typing import Any

from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import masked, masked_path
from orchtrace_corpus.trace.importers.core.values import mapping, objects, text_field

ROLES = frozenset(("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"))
"""Who speaks in the messages of a session."""

_SUFFIX = ".jsonl"
_FOLDER = re.compile(r"_([0-9a-f]{8}-[0-9a-f-]{27})(?=[/\\])")
"""A folder that is called as the session whose sub-agents have their files in it."""


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is a session of Pi, also one that has lost its header."""
    return any(_is_header(row) or _is_message(row) for row in beginning.rows[:5])


def _is_header(row: dict[str, Any]) -> bool:
    return row.get("type") == "session" and "cwd" in row and all(text_field(row, name) for name in ("id", "timestamp"))


def _is_message(row: dict[str, Any]) -> bool:
    is_entry = row.get("type") == "message" and row.keys() >= {"id", "parentId", "timestamp"}
    return is_entry and text_field(row.get("message"), "role") in ROLES


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a file to others: its session, which copies share and forks do not, and that above it.

    Raises:
        DataFileError: The file cannot be read.
    """
    row = next(iter(opened.first().rows), {})
    above = [f"pi {session}" for session in _FOLDER.findall(os.path.realpath(opened.file.path))]
    return [f"pi {row['id']}" if _is_header(row) else opened.file.path, *above]


def beside(opened: Opened) -> Sequence[LogFile]:
    """Return the files of the sub-agents of a session of which one file is named."""
    path = os.path.realpath(opened.file.path)
    folder = path.removesuffix(_SUFFIX)
    if folder == path or not os.path.isdir(folder):
        return []
    names = sorted(iglob(os.path.join(escape(folder), "**", f"*{_SUFFIX}"), recursive=True))
    return [LogFile(name, masked_path(os.path.relpath(name, os.path.dirname(path)))) for name in names]


def parents(files: Sequence[LogFile]) -> Mapping[LogFile, LogFile | None]:
    """Return the session below which each file lies, parents first; None for a session of its own."""
    by_folder = {os.path.realpath(file.path).removesuffix(_SUFFIX): file for file in files}
    found: dict[LogFile, LogFile | None] = {}
    for path, file in sorted(by_folder.items(), key=lambda item: item[0].count(os.sep)):
        above = os.path.dirname(path)
        while above not in by_folder and os.path.dirname(above) != above:
            above = os.path.dirname(above)
        found[file] = by_folder.get(above)
    return found


def agent_of(path: str) -> str:
    """Return by what a sub-agent is known: the end of the path of its session, which stays when folders are moved."""
    return "/".join(re.split(r"[/\\]", path)[-3:])


def text_of(content: Any) -> Any:
    """Return the texts of a content, or the content itself where it has none."""
    texts = [text_field(part, "text") for part in objects(content)]
    return "\n".join(filter(None, texts)) or content


def stated_by(message: dict[str, Any]) -> dict[str, Any]:
    """Return what a log says of an answer besides its tokens: how it ended, and what it cost."""
    stated: dict[str, Any] = {}
    if ending := masked(text_field(message, "stopReason")):
        stated["finish_reason"] = ending
    cost = mapping(message.get("usage")).get("cost")
    cost = cost.get("total") if type(cost) is dict else cost  # of a sub-agent's result
    if isinstance(cost, (int, float)) and cost is not True and 0 < cost < 1e300:  # 0 where the program knows no price
        stated["cost_usd"] = float(cost)
    return stated


def usage_of(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return the usage of an answer as it is stated, its kinds of input apart."""
    used = mapping(message.get("usage"))
    return used.get("input"), used.get("output"), used.get("cacheRead"), used.get("cacheWrite"), None
