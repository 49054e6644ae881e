"""Finds the files of a Codex session: one rollout for each thread, tied together by what their first rows say."""

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
from orchtrace_corpus.trace.importers.core.values import first_text, mapping, object_field, string, text_field, text_of
from orchtrace_corpus.trace.model.import_report import ImportReport
from orchtrace_corpus.trace.model.terms import Status

_ROW_TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


class Meta(NamedTuple):
    """The description of a thread in the first `session_meta` of its rollout; missing texts are empty."""

    id: str
    parent: str = ""  # the thread that spawned it
    forked: str = ""  # the thread whose history it begins with
    call: str = ""  # the call that spawned it
    role: str = ""  # of its agent
    nickname: str = ""  # of its agent
    path: str = ""  # its agent's place among the agents, such as `/root/reviewer`
    version: str = ""  # of Codex
    created: float | None = None  # in seconds since 1970; None if unknown


_META = {"parent": "parent_thread_id", "forked": "forked_from_id", "call": "spawn_call_id", "role": "agent_role"}
_META |= {"nickname": "agent_nickname", "path": "agent_path", "version": "cli_version"}


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a Codex rollout."""
    return any(text_field(row, "type") in _ROW_TYPES and isinstance(row.get("payload"), dict) for row in beginning.rows)


def first_meta(reader: logs.LogReader) -> Meta:
    """Read the first `session_meta` of a rollout; a rollout without one is a thread by its file name."""
    file, kind = reader.file, "session_meta"
    beginning = (row for begin in (reader.first, reader.head) for row in begin().rows)
    first = next((row for row in beginning if row.get("type") == kind), None)
    if first is None:  # it may be longer than a head
        further = islice(logs.rows(file, ImportReport()), logs.HEAD_ROWS)
        first = next((row for _, row in further if row.get("type") == kind), None)
    payload = object_field(first, "payload")
    spawn = object_field(object_field(payload.get("source"), "subagent"), "thread_spawn")
    known = {}
    for member, name in _META.items():
        value = payload.get(name) or spawn.get(name)
        if type(value) is str:
            known[member] = value
    thread = text_field(payload, "id") or os.path.basename(file.path_text).removesuffix(".jsonl")
    return Meta(thread, created=instant(string(payload.get("timestamp"))), **known)


def session_keys(reader: logs.LogReader) -> list[str]:
    """Return the session keys of a rollout: its own thread, and those that spawned or forked it."""
    thread = first_meta(reader)
    return [reader.file.path, *filter(None, (thread.id, thread.parent, thread.forked))]


def shown(file: logs.LogFile) -> str:
    """Return the name of a rollout in events: its file name, since its folders say nothing but the day."""
    return masked(file.name.replace("\\", "/").rpartition("/")[2])


class Payload(Struct, gc=False, omit_defaults=True):
    """The content of a row: fields of items, of events and of what a thread says of itself."""

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
    author: Any = None
    agent_path: Any = None
    agent_path_too: Any = field(default=None, name="agentPath")
    event_id: Any = None
    duration_ms: Any = None


class Line(Struct, gc=False):
    """A row; without a payload where that is no object."""

    timestamp: Any = None
    type: Any = None
    payload: Payload | None = None


_INJECTED = (
    "<environment_context", "<user_instructions", "<turn_aborted", "<user_shell_command", "<skill", "<permissions",
    "<collaboration_mode", "<model_switch", "# AGENTS.md", "<INSTRUCTIONS", "<user_action",
)  # fmt: skip
_NOTIFICATION = "<subagent_notification>"
_ENDED = {
    "completed": Status.OK,
    "errored": Status.ERROR,
    "failed": Status.ERROR,
    "interrupted": Status.CANCELLED,
    "shutdown": Status.CANCELLED,
    "closed": Status.CANCELLED,
}
"""The words for the end of an agent; with any other word it goes on."""
_ESCALATED = r"""sandbox_permissions["']?\s*:\s*["'`]require_escalated|with_escalated_permissions["']?\s*:\s*true"""
"""How a script of code mode asks. Patterns are compiled where they are first needed: most logs need none."""
TOOL_CALL = r"\btools\.\w+\s*\("
FINAL_ANSWER = r"\s*Message Type: FINAL_ANSWER\n(?:(?!Payload:).*\n){0,5}Payload:\n?"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_MAX_PARSED = 1_000_000


def is_injected(text: str) -> bool:
    """Return True if the program has put a text among those of the user."""
    return text.lstrip().startswith(_INJECTED)


def parsed(value: Any) -> dict[str, Any]:
    """Return an object, or the object that a text is; empty for anything else."""
    if isinstance(value, str) and value.lstrip()[:1] == "{" and len(value) <= _MAX_PARSED:
        value = decoded(value.encode("utf-8", "replace"))
    return mapping(value)


def asks_for_approval(arguments: Any) -> bool:
    """Return True if the arguments of a call, or a script, ask to leave the sandbox, which a person has to approve."""
    if isinstance(arguments, str) and "escalated" not in arguments:
        return False
    details = parsed(arguments)
    if not details:
        return isinstance(arguments, str) and re.search(_ESCALATED, arguments) is not None
    wanted = details.get("sandbox_permissions")
    return wanted == "require_escalated" or details.get("with_escalated_permissions") is True


def awaited(tool: str, arguments: Any) -> str:
    """Return what a call waits for that ran before, as `cell` or `session` with its number; empty for other calls."""
    if tool not in ("wait", "write_stdin"):
        return ""
    details = parsed(arguments)
    for member in ("cell_id", "session_id"):
        number = details.get(member)
        if isinstance(number, (int, str)) and number != "":
            return f"{member.removesuffix('_id')} {number}"
    return ""


def agent_named(details: dict[str, Any]) -> str:
    """Return the agent that arguments or an output name, by its thread or by its path; empty where they name none."""
    members = ("agent_id", "new_thread_id", "thread_id", "agent_thread_id", "id", "target", "agent_path", "task_name")
    return first_text(details, members)


def path_leaf(path: str) -> str:
    """Return the last name of an agent's path, which begins at `/root`, the lead of the tree."""
    return path.rpartition("/")[2]


def endings(statuses: Any) -> Iterator[tuple[str, Status, str]]:
    """Yield the agents whose status says that they have ended: how, and what they handed in."""
    if not isinstance(statuses, dict):
        return
    for agent, state in statuses.items():
        words = mapping(state)
        if isinstance(state, str):
            words = {state: ""}
        for word, content in words.items():
            status = _ENDED.get(word.lower())
            if status:
                yield agent, status, content if isinstance(content, str) else text_field(content, "message")
                break


def notification(text: str) -> Iterator[tuple[str, Status, str]]:
    """Yield the agent whose end a notification reports, as `endings` does."""
    begin = text.find(_NOTIFICATION)
    if begin >= 0:
        details = parsed(text[begin + len(_NOTIFICATION) :].partition("</")[0].strip())
        yield from endings({agent_named(details): details.get("status")})


FORBIDDEN = "forbidden"
"""The error of a call that a rule or guardian does not allow."""

_EXIT_CODE = "exit_code"
_TOOL_ERROR = "tool_error"
_MAX_HEADER = 400
_MAX_NESTING = 4
_MAX_SECONDS = 1e9
_HEADER_ENDS = ("\nOutput:\n", "\nFinal output:\n", "\nOutput:")
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
_TORN_RESULT = r'\{(?:"(?!output")\w+": ?(?:"[^"\\]*"|[\d.]+|null), ?)*?"exit_code": ?(-?\d{1,9})\b'
_BESIDE_EXIT_CODE = frozenset(("chunk_id", "wall_time_seconds", "original_token_count", "output"))


class Output(NamedTuple):
    """An output of a call."""

    text: str
    details: dict[str, Any]  # the object that the text is; empty for any other text
    error: str = ""  # in a word
    run_time: float | None = None  # of the tool, in seconds, if stated
    # of a script of code mode, the seconds of each command whose result it printed, if stated; None for other tools
    command_times: tuple[float | None, ...] | None = None
    running: str = ""  # `cell` or `session` with its number, if it still runs


def read_output(value: Any) -> Output:
    """Read the output of a call, in any of the forms that versions of Codex have for it."""
    inner: dict[str, Any] = {}
    content = text = value
    if type(value) is not str:
        inner = mapping(value)
        content = inner.get("content_items", value)
        text = text_field(inner, "content") or text_of(content)
    if text.startswith("Script ") and (script := re.match(_SCRIPT, text)):
        return _read_script(script, text, content)
    details = parsed(text) or inner
    header = _read_header(text)
    code, run_time, error = header.exit_code, header.run_time, ""
    beginning = text[:_MAX_HEADER].lower()
    if not header.end and "exit" in beginning:
        exited = re.search(_EXITED, beginning)
        code = int(exited[1]) if exited else None
    metadata = details.get("metadata")
    if type(metadata) is dict:
        stated = metadata.get("exit_code")
        code = stated if type(stated) is int else code
        run_time = _seconds(metadata.get("duration_seconds"))
    if code:
        error = _EXIT_CODE
    if not header.end:
        error = _refusal(beginning) or error
    elif code and "not permitted" in beginning:
        error = FORBIDDEN  # by the sandbox
    if not error and (inner.get("success") is False or (text.startswith(_FAILED_BEGINS) and re.match(_FAILED, text))):
        error = _TOOL_ERROR
    return Output(text, details, error, run_time, None, header.running)


class _Header(NamedTuple):
    """The lines of Codex before an output."""

    exit_code: int | None = None
    run_time: float | None = None
    running: str = ""
    end: int = 0  # where the body begins; 0 where there are no such lines


_NO_HEADER = _Header()


def _read_header(text: str) -> _Header:
    if "utput:" not in text[:_MAX_HEADER]:
        return _NO_HEADER
    for mark in _HEADER_ENDS:
        end = text.find(mark, 0, _MAX_HEADER)
        if end >= 0:
            break
    if end <= 0:
        return _NO_HEADER
    header = text[:end]
    exited = re.search(_EXITED, header.lower())
    wall_time = re.search(_WALL_TIME, header)
    session = re.search(_SESSION, header)
    return _Header(
        int(exited[1]) if exited else None,
        float(wall_time[1]) if wall_time else None,
        f"session {session[1]}" if session else "",
        end + len(mark),
    )


def _seconds(value: Any) -> float | None:
    is_time = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MAX_SECONDS
    return float(value) if is_time else None


def _refusal(beginning: str) -> str:
    """Return the error of a call that a person or a rule has refused, as its output begins; empty where none has."""
    if " by " in beginning:
        if "rejected by user" in beginning or "denied by user" in beginning:
            return REJECTED
        if "rejected by guardian" in beginning or "blocked by policy" in beginning:
            return FORBIDDEN
    return FORBIDDEN if "not permitted" in beginning else ""


def _read_script(script: re.Match[str], text: str, content: Any) -> Output:
    """Read the output of a script of code mode, with the results of commands that it printed."""
    texts = [text]
    if isinstance(content, list):
        texts = [printed for part in content if (printed := text_field(part, "text"))]
    header = _read_header(texts[0])
    parts = [texts[0][header.end :], *texts[1:]]
    results = [result for part in parts for result in _command_results(part)]
    error = ""
    if script[1] == "failed":
        error = _refusal("\n".join(parts).strip()[:_MAX_HEADER].lower()) or _TOOL_ERROR
    elif any(code for code, _ in results):
        error = _EXIT_CODE
    times = tuple(seconds for _, seconds in results)
    running = f"cell {script[2]}" if script[2] else ""
    return Output(text, {}, error, header.run_time, times, running)


def _command_results(text: str) -> Iterator[tuple[int, float | None]]:
    """Yield the exit code and the run time of each command whose result a script printed, but not of running ones.

    Results are JSON: alone, in a list or an object, or one on each line. Long ones are cut off after the exit code.
    """
    whole = _json(text)
    if whole is not None:
        yield from _results_within(whole, _MAX_NESTING)
        return
    for line in text.splitlines():
        value = _json(line)
        if value is not None:
            yield from _results_within(value, _MAX_NESTING)
        elif torn := re.match(_TORN_RESULT, line.lstrip()):
            yield int(torn[1]), None


def _json(text: str) -> Any:
    """Decode a text that is an object or a list; None for any other."""
    wrapped = parsed(f'{{"all": {text}}}') if text.lstrip()[:1] in ("{", "[") else {}
    return wrapped.get("all")


def _results_within(value: Any, depth: int) -> Iterator[tuple[int, float | None]]:
    if isinstance(value, dict):
        code = value.get("exit_code")
        if type(code) is int and not _BESIDE_EXIT_CODE.isdisjoint(value):
            yield code, _seconds(value.get("wall_time_seconds"))
            return
        value = list(value.values())
    if isinstance(value, list) and depth:
        for member in value:
            yield from _results_within(member, depth - 1)
