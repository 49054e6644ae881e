"""Find the sessions that programs keep below the home folder, and the project folder of each session.

These folders grow large. So only names and times of files are read, and the beginning of a file for the folder in
which its session ran. The paths below the home folder are the same on Linux, macOS and Windows.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.logs import LogFile, LogReader


class _Home(NamedTuple):
    """The place where a program keeps its sessions."""

    variable: str  # the environment variable that names the program's folder; empty if there is none
    default: str  # the path of the program's folder below the home folder, if the variable is not set
    sessions: str  # the name of the folder of sessions in the program's folder
    patterns: tuple[str, ...]  # the paths of the files with which sessions begin, below that folder


_HOMES = {
    "claude_code": _Home("CLAUDE_CONFIG_DIR", ".claude", "projects", ("*/*.jsonl",)),
    "codex": _Home("CODEX_HOME", ".codex", "sessions", ("*/*/*/*.jsonl",)),
    "qwen_code": _Home("", ".qwen", "projects", ("*/chats/*.jsonl",)),
    "gemini_cli": _Home("", ".gemini", "tmp", ("*/chats/session-*.json", "*/chats/session-*.jsonl")),
    "opencode": _Home("XDG_DATA_HOME", ".local/share", "opencode", ("opencode*.db",)),
    "copilot_cli": _Home("COPILOT_HOME", ".copilot", "session-state", ("*/events.jsonl", "*.jsonl")),
    "kimi_code": _Home("KIMI_CODE_HOME", ".kimi-code", "sessions", ("*/*/agents/main/wire.jsonl",)),
    "pi": _Home("PI_CODING_AGENT_DIR", ".pi/agent", "sessions", ("*/*.jsonl",)),
}
"""The homes by format."""

_FOLDER_MEMBERS = {
    "opencode": "directory", "claude_code": "cwd", "codex": "cwd", "qwen_code": "cwd", "copilot_cli": "cwd", "pi": "cwd"
}  # fmt: skip
"""The member of a log that names the folder of the session, by format. The first one in a file counts."""

_LEVELS_UP = {"claude_code": 1, "qwen_code": 2, "gemini_cli": 2, "kimi_code": 4}
"""The number of folders from the file of a session up to the project's folder of sessions, by format."""

_WORKTREES = re.compile(r"/\.claude/worktrees/.*")
"""The folder inside a project where Claude Code works on a branch."""


class RecentFile(NamedTuple):
    """The file with which a session begins, or a database with all sessions of a program."""

    form: str  # the format of the log
    path: str  # the path of the file
    modified: float  # when it was last written, in seconds since 1970

    @property
    def name(self) -> str:
        """Return the name of the session, which is part of the path."""
        folder, file = os.path.split(self.path)
        if file == "events.jsonl" and self.form == "copilot_cli":
            return os.path.basename(folder)
        if self.form == "kimi_code":
            return os.path.basename(os.path.dirname(os.path.dirname(folder)))
        return os.path.splitext(file)[0]

    @property
    def folder(self) -> str:
        """Return the folder in which the session ran; empty if unknown."""
        return folder_of(self.form, self.path)


def folders() -> dict[str, str]:
    """Return the folder of each program's sessions, which may not exist, by the format of its logs."""
    user_folder = os.path.expanduser("~")
    folders = {}
    for form, home in _HOMES.items():
        program_folder = os.environ.get(home.variable) or os.path.join(user_folder, *home.default.split("/"))
        folders[form] = os.path.join(program_folder, home.sessions)
    return folders


def recent() -> list[RecentFile]:
    """Return the sessions below the home folder, the newest first, without transcripts of sub-agents."""
    recent = []
    for form, folder in folders().items():
        for pattern in _HOMES[form].patterns:
            recent += [RecentFile(form, path, modified) for path, modified in _logs(folder, pattern)]
    database = os.environ.get("OPENCODE_DB", "")
    if database and os.path.isfile(database):
        recent.append(RecentFile("opencode", database, _modified(database)))
    return sorted(recent, key=lambda session: (-session.modified, session.path))


def _logs(folder: str, pattern: str) -> Iterator[tuple[str, float]]:
    """Yield the paths of logs below a folder, each with the time of its last write in seconds since 1970."""
    from glob import escape, iglob

    for path in iglob(os.path.join(escape(folder), *pattern.split("/"))):
        with suppress(FileNotFoundError):  # the file was removed meanwhile
            if not os.path.basename(path).startswith("agent-") and os.path.getsize(path):
                yield path, _modified(path)


def _modified(path: str) -> float:
    """Return the time of the last write to a log, or to the write-ahead log of a database."""
    journal = f"{path}-wal"
    modified = os.path.getmtime(path)
    return max(modified, os.path.getmtime(journal)) if os.path.exists(journal) else modified


def folder_of(form: str, path: str) -> str:
    """Return the folder in which the session of a file ran, from its rows or its path; empty if unknown."""
    if form in _FOLDER_MEMBERS:
        pattern = rf'"{_FOLDER_MEMBERS[form]}"\s*:\s*("(?:[^"\\]|\\.)+")'  # the value with its quotation marks
        with suppress(DataFileError), LogReader(LogFile(path, os.path.basename(path))) as reader:
            for beginning in (reader.first, reader.head):
                if match := re.search(pattern, beginning().text):
                    return project_folder(decoded(match[1]) or match[1].strip('"'))
    levels = _LEVELS_UP.get(form)
    parts = path.split(os.sep)
    if levels is None or len(parts) < levels + 2:
        return ""
    folder = parts[-1 - levels]
    if parts[-2 - levels] != _HOMES[form].sessions:  # the file is elsewhere
        return ""
    if form == "kimi_code":
        return re.sub(r"^wd_(.+)_[0-9a-f]{6,}$", r"\1", folder)
    if form == "gemini_cli":
        return folder
    # Claude Code and Qwen Code name it by the path of the project, with dashes for all but letters and digits
    home = "".join(character if character.isalnum() else "-" for character in os.path.expanduser("~"))
    return folder.removeprefix(home).lstrip("-") or folder


def project_folder(folder: str) -> str:
    """Return the project folder of the folder in which a session ran, with slashes on every system."""
    return _WORKTREES.sub("", folder.replace("\\", "/"))
