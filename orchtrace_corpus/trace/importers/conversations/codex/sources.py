"""Which files make up a Codex session: one rollout for each thread, tied together by what their first rows say."""

import os
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.values import text_field
from orchtrace_corpus.trace.model.import_report import ImportReport

_ROW_TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


class Meta(NamedTuple):
    """What the first `session_meta` of a rollout says of its thread; what it leaves out is empty.

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
    """Whether a file that begins like this is a Codex rollout."""
    return any(text_field(row, "type") in _ROW_TYPES and isinstance(row.get("payload"), dict) for row in beginning.rows)


def first_meta(opened: Opened) -> Meta:
    """What the first `session_meta` of a rollout says; a rollout without one is a thread by its file name.

    Raises:
        DataFileError: The file cannot be read.
    """
    file = opened.file
    first = _first_meta(opened.first().rows) or _first_meta(opened.head().rows)
    if not first:  # it may be longer than a head
        first = _first_meta([row for _, row in islice(logs.rows(file, ImportReport()), logs.HEAD_ROWS)])
    return meta(_inside(first, "payload"), os.path.basename(file.path_text).removesuffix(".jsonl"))


def _first_meta(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next((row for row in rows if row.get("type") == "session_meta"), {})


def meta(payload: dict[str, Any], fallback: str) -> Meta:
    """What a `session_meta` says.

    Args:
        payload: Its payload.
        fallback: The id of a thread that has none.
    """
    spawn = _inside(_inside(payload.get("source"), "subagent"), "thread_spawn")
    said = {name: value for name, value in (*spawn.items(), *payload.items()) if value and type(value) is str}
    return Meta(
        said.get("id", fallback),
        said.get("parent_thread_id", ""),
        said.get("forked_from_id", ""),
        said.get("spawn_call_id", ""),
        said.get("agent_role", ""),
        said.get("agent_nickname", ""),
        said.get("agent_path", ""),
        said.get("cli_version", ""),
        instant(said.get("timestamp")),
    )


def ties(opened: Opened) -> list[str]:
    """What ties a rollout to others: its own thread, and those that spawned or forked it.

    Raises:
        DataFileError: The file cannot be read.
    """
    said = first_meta(opened)
    return [opened.file.path, *filter(None, (said.id, said.parent, said.forked))]


def shown(file: LogFile) -> str:
    """How events call a rollout: its file name, since its folders say nothing but the day."""
    return masked(file.name.replace("\\", "/").rpartition("/")[2])


def _inside(value: Any, name: str) -> dict[str, Any]:
    """The object in a field, which some rollouts have as text; empty where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
