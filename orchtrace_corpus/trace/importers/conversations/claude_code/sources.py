"""The files of a Claude Code session, and the part that each of them is.

Claude Code keeps a session in `<session>.jsonl`. Its sub-agents were rows of that file at first (1.x), then files
beside it (`agent-<id>.jsonl`, 2.0), then files in `<session>/subagents/`, each with its spawn in
`agent-<id>.meta.json`. Those of a workflow are in `<session>/subagents/workflows/<run>/`, with a `journal.jsonl`;
the summary of the run is `<session>/workflows/<run>.json`.
"""

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.claude_code.rows import Opening
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import masked_path
from orchtrace_corpus.trace.importers.core.programs import is_qwen, program_of
from orchtrace_corpus.trace.importers.core.values import string

_ROW_TYPES = frozenset(
    ("user", "assistant", "system", "summary", "progress", "attachment", "queue-operation", "file-history-snapshot")
)
_DOCUMENTS = ({"agentType"}, {"toolUseId"}, {"runId", "workflowName"}, {"runId", "workflowProgress"})
"""The fields that identify the files beside transcripts."""
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".meta")
_AGENT = "agent-"
_LEAST_ID_LENGTH = 32
"""Shorter ids are made up by people, so that the same id in two files joins nothing."""


class Part(StrEnum):
    """The part of a session that a file is."""

    MAIN = "main"
    AGENT = "agent"
    META = "meta"
    JOURNAL = "journal"
    RUN = "run"


class Source(NamedTuple):
    """A file of a session.

    Attributes:
        file: The file.
        part: The part that it is.
        shown: Its name in events: the path from the session's own folder on, which names no project.
        agent: The agent that it is about, by its file name; empty if it is about none.
        run: The workflow that it belongs to; empty if it belongs to none.
    """

    file: LogFile
    part: Part
    shown: str
    agent: str = ""
    run: str = ""


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

    Raises:
        DataFileError: The file cannot be read.
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

    Raises:
        DataFileError: The file cannot be read.
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
