"""Where programs keep their sessions below the home folder, and which of these are the newest.

Only names and times of files are looked at, and of a Codex rollout the first row: folders grow large. The folders are
the same below the home folder of Linux, macOS and Windows.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

_MOST_FIRST_ROW = 1 << 20


_PLACES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "claude_code": ("CLAUDE_CONFIG_DIR", ".claude", "projects", ("*/*.jsonl",)),
    "codex": ("CODEX_HOME", ".codex", "sessions", ("*/*/*/*.jsonl",)),
    "qwen_code": ("", ".qwen", "projects", ("*/chats/*.jsonl",)),
    "gemini_cli": ("", ".gemini", "tmp", ("*/chats/session-*.json", "*/chats/session-*.jsonl")),
    "opencode": ("XDG_DATA_HOME", ".local/share", "opencode", ("opencode*.db",)),
    "copilot_cli": ("COPILOT_HOME", ".copilot", "session-state", ("*/events.jsonl", "*.jsonl")),
    "kimi_code": ("KIMI_CODE_HOME", ".kimi-code", "sessions", ("*/*/agents/main/wire.jsonl",)),
}
"""Where a program keeps its sessions: the variable that names its folder, that folder below the home folder where the
variable is not set, the folder of sessions in it, and the files with which sessions begin."""

_LEVELS_UP = {"claude_code": 1, "qwen_code": 2, "gemini_cli": 2, "kimi_code": 4}
"""How many levels above the file of a session the folder of its project is."""


class Recent(NamedTuple):
    """The file with which a session begins; a database has all sessions of a program.

    Attributes:
        form: The format of its log.
        path: The file.
        modified: When it was last written, in seconds since 1970.
    """

    form: str
    path: str
    modified: float

    @property
    def name(self) -> str:
        """What the file or its folder is called after: the session, or the beginning of that."""
        folder, file = os.path.split(self.path)
        if file == "events.jsonl" and self.form == "copilot_cli":
            return os.path.basename(folder)
        if self.form == "kimi_code":
            return os.path.basename(os.path.dirname(os.path.dirname(folder)))
        return os.path.splitext(file)[0]

    @property
    def project(self) -> str:
        """What the project is called in whose folder the session ran, as far as the log says; else empty."""
        if levels := _LEVELS_UP.get(self.form):
            parts = self.path.split(os.sep)
            folder = parts[-1 - levels]
            if self.form == "kimi_code":
                return re.sub(r"^wd_(.+)_[0-9a-f]{6,}$", r"\1", folder)
            home = "".join(character if character.isalnum() else "-" for character in os.path.expanduser("~"))
            return folder.removeprefix(home).lstrip("-") or folder
        folder = ""
        if self.form == "codex":
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError), open(self.path, "rb") as file:
                folder = msgspec.json.decode(file.readline(_MOST_FIRST_ROW), type=_FirstRow).payload.cwd
        return os.path.basename(folder.replace("\\", "/").rstrip("/"))


class _Payload(msgspec.Struct):
    cwd: str = ""


class _FirstRow(msgspec.Struct):
    payload: _Payload = msgspec.field(default_factory=_Payload)


def folders() -> dict[str, str]:
    """The folder in which each program keeps its sessions, by the format of its logs, whether it is there or not."""
    home = os.path.expanduser("~")
    return {
        form: os.path.join(os.environ.get(variable) or os.path.join(home, *below.split("/")), inside)
        for form, (variable, below, inside, _) in _PLACES.items()
    }


def recent() -> list[Recent]:
    """The sessions below the home folder, the newest first; transcripts of sub-agents are none."""
    found = [
        Recent(form, path, modified)
        for form, folder in folders().items()
        for pattern in _PLACES[form][3]
        for path, modified in _logs(folder, pattern)
    ]
    database = os.environ.get("OPENCODE_DB", "")
    if database and os.path.isfile(database):
        found.append(Recent("opencode", database, _modified(database)))
    return sorted(found, key=lambda one: (-one.modified, one.path))


def _logs(folder: str, pattern: str) -> Iterator[tuple[str, float]]:
    """The logs below a folder, with the times at which they were last written; none where none can be seen."""
    from glob import escape, iglob

    for path in iglob(os.path.join(escape(folder), *pattern.split("/"))):
        with suppress(FileNotFoundError):  # removed meanwhile
            if not os.path.basename(path).startswith("agent-") and os.path.getsize(path):
                yield path, _modified(path)


def _modified(path: str) -> float:
    """When a log was last written; of a database, when its write-ahead log was."""
    later = f"{path}-wal"
    return max(os.path.getmtime(one) for one in (path, later) if one == path or os.path.exists(one))
