"""Reads the outputs of Codex calls: whether the tool failed, how long it ran, and what goes on behind it.

Codex writes a few lines in front of what a tool printed, and what stands behind them is the tool's own. In code mode, a
script calls the tools, and what it prints of their results has their exit codes.
"""

import re
from collections.abc import Iterator
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.codex.rows import parsed, text_of
from orchtrace_corpus.trace.importers.core.transcript import REJECTED
from orchtrace_corpus.trace.importers.core.values import mapping, text_field

FORBIDDEN = "forbidden"
"""The error of a call that a rule or guardian does not allow."""

_EXIT_CODE = "exit_code"
_TOOL_ERROR = "tool_error"
_MAX_HEADER = 400
_MAX_NESTING = 4
_MAX_SECONDS = 1e9
_HEADER_ENDS = ("\nOutput:\n", "\nFinal output:\n", "\nOutput:")
_EXITED = re.compile(r"exit(?:ed with)? code:? +(-?\d{1,9})\b")
_WALL_TIME = re.compile(r"Wall time:? +(\d{1,9}(?:\.\d{1,9})?) seconds")
_FAILED = re.compile(
    r"(?:apply_patch verification|exec_command|write_stdin|collab \w+) failed\b|failed to parse function arguments"
    r"|unsupported (?:custom tool )?call\b"
)
"""How Codex itself says that it could not run a call."""
_SESSION = re.compile(r"Process running with session ID (\d{1,9})")
_SCRIPT = re.compile(r"Script (completed|failed|terminated|running with cell ID (\S{1,100}))")
_TORN_RESULT = re.compile(r'\{(?:"(?!output")\w+": ?(?:"[^"\\]*"|[\d.]+|null), ?)*?"exit_code": ?(-?\d{1,9})\b')
_BESIDE_EXIT_CODE = frozenset(("chunk_id", "wall_time_seconds", "original_token_count", "output"))


class Output(NamedTuple):
    """An output of a call.

    Attributes:
        text: All of its text.
        details: The object that the text is; empty where it is none.
        error: What went wrong, in a word; empty where nothing did.
        run_time: How long the tool ran, in seconds; None where that is not stated.
        command_times: Of a script of code mode, how long each command ran whose result it has printed, in seconds, None
            where that is not stated; None where the tool is no script.
        running: What still runs, as `cell` or `session` with its number; empty where nothing does.
    """

    text: str
    details: dict[str, Any]
    error: str = ""
    run_time: float | None = None
    command_times: tuple[float | None, ...] | None = None
    running: str = ""


def read_output(value: Any) -> Output:
    """Read the output of a call, in any of the forms that versions of Codex have for it."""
    inner = mapping(value)
    content = inner.get("content_items", value)
    text = text_field(inner, "content") or text_of(content)
    if text.startswith("Script ") and (script := _SCRIPT.match(text)):
        return _read_script(script, text, content)
    details = parsed(text) or inner
    header = _read_header(_split(text)[0])
    code, run_time = header.exit_code, header.run_time
    if not header.is_known:
        exited = _EXITED.search(text[:_MAX_HEADER].lower())
        code = int(exited[1]) if exited else None
    metadata = details.get("metadata")
    if isinstance(metadata, dict):
        stated = metadata.get("exit_code")
        code = stated if type(stated) is int else code
        run_time = _seconds(metadata.get("duration_seconds"))
    error = _EXIT_CODE if code else ""
    if not header.is_known:
        error = _refusal(text) or error
    elif error and "not permitted" in text[:_MAX_HEADER].lower():
        error = FORBIDDEN  # by the sandbox
    if not error and (inner.get("success") is False or _FAILED.match(text)):
        error = _TOOL_ERROR
    return Output(text, details, error, run_time, running=header.running)


class _Header(NamedTuple):
    """The lines that Codex puts in front of an output, as far as they say something of its call."""

    is_known: bool
    exit_code: int | None = None
    run_time: float | None = None
    running: str = ""


def _split(text: str) -> tuple[str, str]:
    """Split an output at the end of the lines that Codex puts in front of it; without these, all of it is the body."""
    for end in _HEADER_ENDS:
        at = text.find(end, 0, _MAX_HEADER)
        if at >= 0:
            return text[:at], text[at + len(end) :]
    return "", text


def _read_header(header: str) -> _Header:
    if not header:
        return _Header(False)
    wall_time = _WALL_TIME.search(header)
    exited = _EXITED.search(header.lower()) if "xit" in header else None
    session = _SESSION.search(header) if "session" in header else None
    return _Header(
        True,
        int(exited[1]) if exited else None,
        float(wall_time[1]) if wall_time else None,
        f"session {session[1]}" if session else "",
    )


def _seconds(value: Any) -> float | None:
    is_time = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MAX_SECONDS
    return float(value) if is_time else None


def _refusal(text: str) -> str:
    """Return the error of a call that a person or a rule has refused; empty where none has."""
    beginning = text[:_MAX_HEADER].lower()
    if "rejected by user" in beginning or "denied by user" in beginning:
        return REJECTED
    if "rejected by guardian" in beginning or "blocked by policy" in beginning or "not permitted" in beginning:
        return FORBIDDEN
    return ""


def _read_script(script: re.Match[str], text: str, content: Any) -> Output:
    """Read what a script of code mode has printed: each result of a command in it says how that has ended."""
    texts = [text]
    if isinstance(content, list):
        texts = [printed for part in content if (printed := text_field(part, "text"))]
    header, body = _split(texts[0])
    parts = [body, *texts[1:]]
    results = [result for part in parts for result in _command_results(part)]
    error = ""
    if script[1] == "failed":
        error = _refusal("\n".join(parts).strip()) or _TOOL_ERROR
    elif any(code for code, _ in results):
        error = _EXIT_CODE
    times = tuple(seconds for _, seconds in results)
    running = f"cell {script[2]}" if script[2] else ""
    return Output(text, {}, error, _read_header(header).run_time, times, running)


def _command_results(text: str) -> Iterator[tuple[int, float | None]]:
    """Yield the exit code of each command that a script has printed the result of, and how long it ran.

    A command that still runs has none. Results are JSON: alone, in a list or in an object of the script's own, one or
    several, each on a line. Long ones are cut off behind the exit code.
    """
    whole = _json(text)
    if whole is not None:
        yield from _results_within(whole, _MAX_NESTING)
        return
    for line in text.splitlines():
        value = _json(line)
        if value is not None:
            yield from _results_within(value, _MAX_NESTING)
        elif torn := _TORN_RESULT.match(line.lstrip()):
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
