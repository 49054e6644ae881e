"""The folders where programs keep sessions, the newest sessions in them, and the project of each.

Only names and times of files are read, and their beginnings for the folder that a session ran in, since folders grow
large. Their paths below the home folder are the same on Linux, macOS and Windows.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.logs import LogFile, Opened

_HOMES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "claude_code": ("CLAUDE_CONFIG_DIR", ".claude", "projects", ("*/*.jsonl",)),
    "codex": ("CODEX_HOME", ".codex", "sessions", ("*/*/*/*.jsonl",)),
    "qwen_code": ("", ".qwen", "projects", ("*/chats/*.jsonl",)),
    "gemini_cli": ("", ".gemini", "tmp", ("*/chats/session-*.json", "*/chats/session-*.jsonl")),
    "opencode": ("XDG_DATA_HOME", ".local/share", "opencode", ("opencode*.db",)),
    "copilot_cli": ("COPILOT_HOME", ".copilot", "session-state", ("*/events.jsonl", "*.jsonl")),
    "kimi_code": ("KIMI_CODE_HOME", ".kimi-code", "sessions", ("*/*/agents/main/wire.jsonl",)),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent", "sessions", ("*/*.jsonl",)),
}
"""By format: the variable that names the program's folder, its path below the home folder if that is not set, the
folder of sessions in it, and the files with which sessions begin."""

_FIELDS = {"opencode": "directory"}
_FIELDS |= dict.fromkeys(("claude_code", "codex", "qwen_code", "copilot_cli", "pi"), "cwd")
"""The member that names the folder of a session; the first in a file counts."""

_LEVELS_UP = {"claude_code": 1, "qwen_code": 2, "gemini_cli": 2, "kimi_code": 4}
"""The levels from the file of a session up to the folder of its project in the program's folder."""

_WORKTREES = re.compile(r"/\.claude/worktrees/.*")
"""The folder inside a project where Claude Code works on a branch."""


class Recent(NamedTuple):
    """The file with which a session begins; a database has all sessions of a program."""

    form: str  # the format of its log
    path: str  # the file
    modified: float  # when it was last written, in seconds since 1970

    @property
    def name(self) -> str:
        """Return the name of the session, from the name of its file or folder."""
        folder, file = os.path.split(self.path)
        if file == "events.jsonl" and self.form == "copilot_cli":
            return os.path.basename(folder)
        if self.form == "kimi_code":
            return os.path.basename(os.path.dirname(os.path.dirname(folder)))
        return os.path.splitext(file)[0]

    @property
    def folder(self) -> str:
        """Return the folder in which the session ran; empty if that is unknown."""
        return folder_of(self.form, self.path)


def folders() -> dict[str, str]:
    """Return the folder of each program's sessions, which may not exist, by the format of its logs."""
    home = os.path.expanduser("~")
    return {
        form: os.path.join(os.environ.get(variable) or os.path.join(home, *below.split("/")), inside)
        for form, (variable, below, inside, _) in _HOMES.items()
    }


def recent() -> list[Recent]:
    """Return the sessions below the home folder, the newest first, without transcripts of sub-agents."""
    recent = [
        Recent(form, path, modified)
        for (form, folder), (*_, patterns) in zip(folders().items(), _HOMES.values(), strict=True)
        for pattern in patterns
        for path, modified in _logs(folder, pattern)
    ]
    database = os.environ.get("OPENCODE_DB", "")
    if database and os.path.isfile(database):
        recent.append(Recent("opencode", database, _modified(database)))
    return sorted(recent, key=lambda session: (-session.modified, session.path))


def _logs(folder: str, pattern: str) -> Iterator[tuple[str, float]]:
    """Yield the logs below a folder with the times at which they were last written."""
    from glob import escape, iglob

    for path in iglob(os.path.join(escape(folder), *pattern.split("/"))):
        with suppress(FileNotFoundError):  # removed meanwhile
            if not os.path.basename(path).startswith("agent-") and os.path.getsize(path):
                yield path, _modified(path)


def _modified(path: str) -> float:
    """Return when a log was last written; of a database, when its write-ahead log was."""
    journal = f"{path}-wal"
    modified = os.path.getmtime(path)
    return max(modified, os.path.getmtime(journal)) if os.path.exists(journal) else modified


def folder_of(form: str, path: str) -> str:
    """Return the folder in which the session of a file ran, from its rows or its path; empty if unknown."""
    if form in _FIELDS:
        with suppress(DataFileError), Opened(LogFile(path, os.path.basename(path))) as opened:
            for beginning in (opened.first, opened.head):
                if member := re.search(rf'"{_FIELDS[form]}"\s*:\s*("(?:[^"\\]|\\.)+")', beginning().text):
                    return project_folder(decoded(member[1]) or member[1].strip('"'))
    levels = _LEVELS_UP.get(form)
    parts = path.split(os.sep)
    if levels is None or len(parts) < levels + 2:
        return ""
    sessions, folder = parts[-2 - levels], parts[-1 - levels]  # the folder of all sessions, and the project's in it
    if sessions != _HOMES[form][2]:
        return ""
    if form == "kimi_code":
        return re.sub(r"^wd_(.+)_[0-9a-f]{6,}$", r"\1", folder)
    if form == "gemini_cli":
        return folder
    # these programs name the folder by the path of the project, with dashes for all but letters and digits
    home = "".join(character if character.isalnum() else "-" for character in os.path.expanduser("~"))
    return folder.removeprefix(home).lstrip("-") or folder


def project_folder(folder: str) -> str:
    """Return the folder of the project that a session ran in, with slashes on every system."""
    return _WORKTREES.sub("", folder.replace("\\", "/"))
