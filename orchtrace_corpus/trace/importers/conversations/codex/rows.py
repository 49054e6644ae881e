"""Rows of Codex rollouts: the description of a thread, outputs of calls, and texts of the program.

A rollout is the log of one thread, the conversation of one agent. A session has a rollout for each of its threads.
"""

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct, field

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.transcript import REJECTED
from orchtrace_corpus.trace.importers.core.values import (
    as_object,
    as_text,
    first_text,
    object_field,
    text_field,
    text_of,
)
from orchtrace_corpus.trace.model.import_report import ImportReport
from orchtrace_corpus.trace.model.terms import Status

_ROW_TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


class Meta(NamedTuple):
    """The description of a thread in the first `session_meta` of its rollout; missing texts are empty."""

    id: str
    parent: str = ""  # the id of the thread that spawned it
    forked_from: str = ""  # the id of the thread whose history it begins with
    call_id: str = ""  # the id of the call that spawned it
    role: str = ""  # the agent's role
    nickname: str = ""  # the agent's name for people
    path: str = ""  # the agent's place in the tree of agents, such as `/root/reviewer`
    version: str = ""  # the version of Codex
    created: float | None = None  # in seconds since 1970; None if unknown


_MEMBER_BY_FIELD = {
    "parent": "parent_thread_id", "forked_from": "forked_from_id", "call_id": "spawn_call_id", "role": "agent_role",
    "nickname": "agent_nickname", "path": "agent_path", "version": "cli_version",
}  # fmt: skip


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a Codex rollout."""
    return any(text_field(row, "type") in _ROW_TYPES and isinstance(row.get("payload"), dict) for row in beginning.rows)


def first_meta(reader: logs.LogReader) -> Meta:
    """Return the description of a thread; of a rollout without `session_meta`, its file name as the thread's id."""
    payload = _meta_payload(reader)
    spawn = object_field(object_field(payload.get("source"), "subagent"), "thread_spawn")
    fields = {}
    for name, member in _MEMBER_BY_FIELD.items():
        value = payload.get(member) or spawn.get(member)
        if type(value) is str:
            fields[name] = value
    thread_id = text_field(payload, "id") or os.path.basename(reader.file.path_text).removesuffix(".jsonl")
    return Meta(thread_id, created=instant(as_text(payload.get("timestamp"))), **fields)


def _meta_payload(reader: logs.LogReader) -> dict[str, Any]:
    """Return the payload of the first `session_meta` among the first rows; empty if there is none."""
    for read_beginning in (reader.first, reader.head):
        for row in read_beginning().rows:
            if row.get("type") == "session_meta":
                return object_field(row, "payload")
    for _, row in islice(logs.rows(reader.file, ImportReport()), logs.HEAD_ROWS):  # it may be longer than the head
        if row.get("type") == "session_meta":
            return object_field(row, "payload")
    return {}


def session_keys(reader: logs.LogReader) -> list[str]:
    """Return the keys by which rollouts are grouped: the ids of the thread, its parent and the thread it continues."""
    meta = first_meta(reader)
    return [reader.file.path, *filter(None, (meta.id, meta.parent, meta.forked_from))]


def file_name(file: logs.LogFile) -> str:
    """Return the name of a rollout in events: its file name without folders, which name only the day."""
    return masked(file.name.replace("\\", "/").rpartition("/")[2])


class Payload(Struct, gc=False, omit_defaults=True):
    """The content of a row: the fields of all kinds of items and events that are read."""

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
    agent_thread_camel: Any = field(default=None, name="agentThreadId")
    author: Any = None
    agent_path: Any = None
    agent_path_camel: Any = field(default=None, name="agentPath")
    event_id: Any = None
    duration_ms: Any = None


class Row(Struct, gc=False):
    """A row; its payload is None if it is no object."""

    timestamp: Any = None
    type: Any = None
    payload: Payload | None = None


_PROGRAM_TEXTS = (
    "<environment_context", "<user_instructions", "<turn_aborted", "<user_shell_command", "<skill", "<permissions",
    "<collaboration_mode", "<model_switch", "# AGENTS.md", "<INSTRUCTIONS", "<user_action",
)  # fmt: skip
_NOTIFICATION = "<subagent_notification>"
_STATUS_BY_WORD = {
    "completed": Status.OK,
    "errored": Status.ERROR,
    "failed": Status.ERROR,
    "interrupted": Status.CANCELLED,
    "shutdown": Status.CANCELLED,
    "closed": Status.CANCELLED,
}
"""The status of an agent by the word for its end; any other word means that it still works."""

# Patterns are compiled on first use, as most logs need none of them.
_ESCALATED = r"""sandbox_permissions["']?\s*:\s*["'`]require_escalated|with_escalated_permissions["']?\s*:\s*true"""
"""The words of a script of code mode that asks to leave the sandbox."""
TOOL_CALL = r"\btools\.\w+\s*\("
FINAL_ANSWER = r"\s*Message Type: FINAL_ANSWER\n(?:(?!Payload:).*\n){0,5}Payload:\n?"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_MAX_PARSED_CHARACTERS = 1_000_000


def is_by_program(text: str) -> bool:
    """Return True if a text in the name of the user is the program's."""
    return text.lstrip().startswith(_PROGRAM_TEXTS)


def parsed(value: Any) -> dict[str, Any]:
    """Return an object, given as such or as a text in JSON; empty for anything else."""
    if isinstance(value, str) and value.lstrip()[:1] == "{" and len(value) <= _MAX_PARSED_CHARACTERS:
        value = decoded(value.encode("utf-8", "replace"))
    return as_object(value)


def asks_for_approval(arguments: Any) -> bool:
    """Return True if the arguments of a call, or a script, ask to leave the sandbox: a person has to approve this."""
    if isinstance(arguments, str) and "escalated" not in arguments:
        return False
    details = parsed(arguments)
    if not details:
        return isinstance(arguments, str) and re.search(_ESCALATED, arguments) is not None
    permissions = details.get("sandbox_permissions")
    return permissions == "require_escalated" or details.get("with_escalated_permissions") is True


def awaited_execution(tool: str, arguments: Any) -> str:
    """Return the earlier execution for which a call waits, such as `cell 3` or `session 7`; empty for other calls."""
    if tool not in ("wait", "write_stdin"):
        return ""
    details = parsed(arguments)
    for member in ("cell_id", "session_id"):
        number = details.get(member)
        if isinstance(number, (int, str)) and number != "":
            return f"{member.removesuffix('_id')} {number}"
    return ""


def agent_named(details: dict[str, Any]) -> str:
    """Return the agent named in arguments or an output, by its thread or its path; empty if there is none."""
    members = ("agent_id", "new_thread_id", "thread_id", "agent_thread_id", "id", "target", "agent_path", "task_name")
    return first_text(details, members)


def path_leaf(path: str) -> str:
    """Return the last part of an agent's path, such as `reviewer` of `/root/reviewer`."""
    return path.rpartition("/")[2]


def ended_agents(statuses: Any) -> Iterator[tuple[str, Status, str]]:
    """Yield each agent that has ended, with its status and its result; `statuses` has the states of agents by name.

    A state is a word, or an object with the result under the word.
    """
    if not isinstance(statuses, dict):
        return
    for agent, state in statuses.items():
        results_by_word = {state: ""} if isinstance(state, str) else as_object(state)
        for word, result in results_by_word.items():
            status = _STATUS_BY_WORD.get(word.lower())
            if status:
                text = result if isinstance(result, str) else text_field(result, "message")
                yield agent, status, text
                break


def notified_endings(text: str) -> Iterator[tuple[str, Status, str]]:
    """Yield the agent whose end a text reports, with its status and its result; nothing for any other text."""
    begin = text.find(_NOTIFICATION)
    if begin >= 0:
        details = parsed(text[begin + len(_NOTIFICATION) :].partition("</")[0].strip())
        yield from ended_agents({agent_named(details): details.get("status")})


FORBIDDEN = "forbidden"  # the error of a call that a rule or guardian does not allow
_EXIT_CODE = "exit_code"
_TOOL_ERROR = "tool_error"
_MAX_HEADER = 400  # characters
_MAX_NESTING = 4
_MAX_SECONDS = 1e9  # larger numbers are no run times
_HEADER_ENDS = ("\nOutput:\n", "\nFinal output:\n", "\nOutput:")  # the forms of its last line
_EXITED = r"exit(?:ed with)? code:? +(-?\d{1,9})\b"
_WALL_TIME = r"Wall time:? +(\d{1,9}(?:\.\d{1,9})?) seconds"
_FAILED = (
    r"(?:apply_patch verification|exec_command|write_stdin|collab \w+) failed\b|failed to parse function arguments"
    r"|unsupported (?:custom tool )?call\b"
)
"""The words of Codex for a call that it could not run."""
_FAILED_BEGINS = ("apply_patch ", "exec_command ", "write_stdin ", "collab ", "failed to parse ", "unsupported ")
_SESSION = r"Process running with session ID (\d{1,9})"
_SCRIPT = r"Script (completed|failed|terminated|running with cell ID (\S{1,100}))"
_CUT_OFF_RESULT = r'\{(?:"(?!output")\w+": ?(?:"[^"\\]*"|[\d.]+|null), ?)*?"exit_code": ?(-?\d{1,9})\b'
_RESULT_MEMBERS = frozenset(("chunk_id", "wall_time_seconds", "original_token_count", "output"))
"""A result has at least one of these members beside `exit_code`."""


class Output(NamedTuple):
    """An output of a call."""

    text: str
    details: dict[str, Any]  # the text as an object; empty for a text that is none
    error: str = ""  # the kind of error; empty if it succeeded
    run_time: float | None = None  # the seconds that the tool ran; None if not stated
    # For a script of code mode: the seconds of each command whose result it printed, None for one that states none.
    command_times: tuple[float | None, ...] | None = None
    running: str = ""  # the execution if it goes on, such as `cell 3` or `session 7`


def read_output(value: Any) -> Output:
    """Read the output of a call, in any of the forms that versions of Codex have for it."""
    envelope: dict[str, Any] = {}
    content = text = value
    if type(value) is not str:
        envelope = as_object(value)
        content = envelope.get("content_items", value)
        text = text_field(envelope, "content") or text_of(content)
    if text.startswith("Script ") and (script := re.match(_SCRIPT, text)):
        return _read_script(script, text, content)
    details = parsed(text) or envelope
    header = _read_header(text)
    exit_code, run_time, error = header.exit_code, header.run_time, ""
    beginning = text[:_MAX_HEADER].lower()
    if not header.end and "exit" in beginning:
        exited = re.search(_EXITED, beginning)
        exit_code = int(exited[1]) if exited else None
    metadata = details.get("metadata")
    if type(metadata) is dict:
        if type(metadata.get("exit_code")) is int:
            exit_code = metadata["exit_code"]
        run_time = _seconds(metadata.get("duration_seconds"))
    if exit_code:
        error = _EXIT_CODE
    if not header.end:
        error = _refusal(beginning) or error
    elif exit_code and "not permitted" in beginning:
        error = FORBIDDEN  # by the sandbox
    if not error:
        could_not_run = text.startswith(_FAILED_BEGINS) and re.match(_FAILED, text) is not None
        if could_not_run or envelope.get("success") is False:
            error = _TOOL_ERROR
    return Output(text, details, error, run_time, command_times=None, running=header.running)


class _Header(NamedTuple):
    """The lines that Codex writes before the output of a command; None and empty for facts that they do not state."""

    exit_code: int | None = None
    run_time: float | None = None  # in seconds
    running: str = ""  # as in `Output`
    end: int = 0  # the index in the text at which the output begins; 0 if there are no such lines


_NO_HEADER = _Header()


def _read_header(text: str) -> _Header:
    """Return the lines before the output in a text; `_NO_HEADER` if there are none."""
    if "utput:" not in text[:_MAX_HEADER]:
        return _NO_HEADER
    for last_line in _HEADER_ENDS:
        end = text.find(last_line, 0, _MAX_HEADER)
        if end >= 0:
            break
    if end <= 0:
        return _NO_HEADER
    header = text[:end]
    exited = re.search(_EXITED, header.lower())
    wall_time = re.search(_WALL_TIME, header)
    session = re.search(_SESSION, header)
    exit_code = int(exited[1]) if exited else None
    run_time = float(wall_time[1]) if wall_time else None
    running = f"session {session[1]}" if session else ""
    return _Header(exit_code, run_time, running, end + len(last_line))


def _seconds(value: Any) -> float | None:
    is_time = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MAX_SECONDS
    return float(value) if is_time else None


def _refusal(beginning: str) -> str:
    """Return the error of a call that a person or a rule refused, by the beginning of its output; else empty."""
    if " by " in beginning:
        if "rejected by user" in beginning or "denied by user" in beginning:
            return REJECTED
        if "rejected by guardian" in beginning or "blocked by policy" in beginning:
            return FORBIDDEN
    return FORBIDDEN if "not permitted" in beginning else ""


def _read_script(script: re.Match[str], text: str, content: Any) -> Output:
    """Read the output of a script of code mode, with the results of commands that it printed."""
    printed_texts = [text]
    if isinstance(content, list):
        part_texts = [text_field(part, "text") for part in content]
        printed_texts = [part_text for part_text in part_texts if part_text]
    header = _read_header(printed_texts[0])
    printed_texts[0] = printed_texts[0][header.end :]
    results = [result for printed in printed_texts for result in _command_results(printed)]
    error = ""
    if script[1] == "failed":
        error = _refusal("\n".join(printed_texts).strip()[:_MAX_HEADER].lower()) or _TOOL_ERROR
    elif any(exit_code for exit_code, _ in results):
        error = _EXIT_CODE
    command_times = tuple(seconds for _, seconds in results)
    running = f"cell {script[2]}" if script[2] else ""
    return Output(text, {}, error, header.run_time, command_times, running)


def _command_results(text: str) -> Iterator[tuple[int, float | None]]:
    """Yield the exit code and the seconds of each ended command whose result a script printed.

    Results are JSON: alone, in a list or an object, or one on each line. A long result is cut off after the exit code.
    """
    whole = _json(text)
    if whole is not None:
        yield from _results_within(whole, _MAX_NESTING)
        return
    for line in text.splitlines():
        value = _json(line)
        if value is not None:
            yield from _results_within(value, _MAX_NESTING)
            continue
        cut_off = re.match(_CUT_OFF_RESULT, line.lstrip())
        if cut_off is not None:
            yield int(cut_off[1]), None


def _json(text: str) -> Any:
    """Return the object or list that a text encodes; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    return parsed(f'{{"value": {text}}}').get("value")  # `parsed` decodes objects only


def _results_within(value: Any, depth: int) -> Iterator[tuple[int, float | None]]:
    """Yield the results in a value, which may be nested in so many further levels."""
    if isinstance(value, dict):
        exit_code = value.get("exit_code")
        if type(exit_code) is int and not _RESULT_MEMBERS.isdisjoint(value):
            yield exit_code, _seconds(value.get("wall_time_seconds"))
            return
        value = list(value.values())
    if isinstance(value, list) and depth:
        for member in value:
            yield from _results_within(member, depth - 1)
