"""Finds the files of a Codex session: one rollout for each thread, tied together by what their first rows say."""

import os
from collections.abc import Sequence
from itertools import islice
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.values import object_field, text_field
from orchtrace_corpus.trace.model.import_report import ImportReport

_ROW_TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


class Meta(NamedTuple):
    """A thread, as the first `session_meta` of its rollout describes it; what that leaves out is empty.

    Attributes:
        id: The thread.
        parent: The thread that spawned it.
        forked: The thread whose history a person, or its parent, has given it.
        call: The call that spawned it.
        role: The role of its agent.
        nickname: The name of its agent.
        path: Its agent's place among the agents, such as `/root/reviewer`.
        version: The version of Codex.
        created: When it came into being, in seconds since 1970; None where that is unknown.
    """

    id: str
    parent: str = ""
    forked: str = ""
    call: str = ""
    role: str = ""
    nickname: str = ""
    path: str = ""
    version: str = ""
    created: float | None = None


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is a Codex rollout."""
    return any(text_field(row, "type") in _ROW_TYPES and isinstance(row.get("payload"), dict) for row in beginning.rows)


def first_meta(opened: Opened) -> Meta:
    """Read the first `session_meta` of a rollout; a rollout without one is a thread by its file name.

    Raises:
        DataFileError: The file cannot be read.
    """
    file = opened.file
    first = _first_meta(opened.first().rows) or _first_meta(opened.head().rows)
    if not first:  # it may be longer than a head
        first = _first_meta([row for _, row in islice(logs.rows(file, ImportReport()), logs.HEAD_ROWS)])
    return read_meta(object_field(first, "payload"), os.path.basename(file.path_text).removesuffix(".jsonl"))


def _first_meta(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next((row for row in rows if row.get("type") == "session_meta"), {})


def read_meta(payload: dict[str, Any], fallback: str) -> Meta:
    """Return the thread that a `session_meta` describes.

    Args:
        payload: Its payload.
        fallback: The id of a thread that has none.
    """
    spawn = object_field(object_field(payload.get("source"), "subagent"), "thread_spawn")
    members = (*spawn.items(), *payload.items())
    texts = {name: value for name, value in members if value and type(value) is str}
    return Meta(
        id=texts.get("id", fallback),
        parent=texts.get("parent_thread_id", ""),
        forked=texts.get("forked_from_id", ""),
        call=texts.get("spawn_call_id", ""),
        role=texts.get("agent_role", ""),
        nickname=texts.get("agent_nickname", ""),
        path=texts.get("agent_path", ""),
        version=texts.get("cli_version", ""),
        created=instant(texts.get("timestamp")),
    )


def ties(opened: Opened) -> list[str]:
    """Return what ties a rollout to others: its own thread, and those that spawned or forked it.

    Raises:
        DataFileError: The file cannot be read.
    """
    thread = first_meta(opened)
    return [opened.file.path, *filter(None, (thread.id, thread.parent, thread.forked))]


def shown(file: LogFile) -> str:
    """Return the name of a rollout in events: its file name, since its folders say nothing but the day."""
    return masked(file.name.replace("\\", "/").rpartition("/")[2])
