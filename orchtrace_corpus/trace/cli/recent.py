"""The sessions that programs have left below the home folder: the newest one, those of a name, and a list."""

import os
from collections.abc import Sequence
from datetime import datetime

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.base.text.table import envelope, records
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.collection import Collected, Folders, Request, run_of_log
from orchtrace_corpus.trace.importers import homes
from orchtrace_corpus.trace.importers.homes import Recent
from orchtrace_corpus.trace.render.recent import ListedSession, exact_list, list_table, program

_MAX_NAMED = 20
MAX_READ_BYTES = 32 << 20
"""Larger sessions are listed without being read, so that the list takes no time."""


def newest(session: Session) -> logs.Inputs:
    """Return the session that was written last, with its sub-agents, and report which one it is."""
    first = _recent()[0]
    project = os.path.basename(first.folder)
    where = f" in {printable(project, limit=100)}" if project else ""
    session.output.note(
        f"corpus: the newest session, of {program(first.form)}{where}: {printable(first.path, limit=300)}"
    )
    return logs.Inputs([], _sessions_in(first))


def named(name: str) -> logs.Inputs:
    """Return the sessions below the home folder whose file or file name has a name; of many, the newest."""
    recent_files = _recent()
    matches = [recent for recent in recent_files if _matches(recent, name)]
    # A database of OpenCode has many sessions, whose names are not in its file name.
    matches = matches or [recent for recent in recent_files if recent.form == "opencode"]
    if not matches:
        hint = "--list shows the newest. Name a path for a session that is elsewhere."
        raise CommandUseError(f"no session below the home folder has {quote(name)} in its file's name", hint)
    sessions = {session.files: session for recent in matches[:_MAX_NAMED] for session in _sessions_in(recent)}
    return logs.Inputs([], list(sessions.values()))


def _matches(recent: Recent, name: str) -> bool:
    """Return True if a file has a name; files of Gemini CLI end in the beginning of the session's name."""
    beginning = recent.name.rpartition("-")[2]
    return (
        name in recent.name
        or recent.path.endswith(os.sep + name)
        or (recent.form == "gemini_cli" and len(beginning) > 7 and name.startswith(beginning))
    )


def _sessions_in(recent: Recent) -> list[importers.Session]:
    """Return the sessions in a file with their sub-agents, which Codex writes to other files of the same day."""
    place = os.path.dirname(recent.path) if recent.form == "codex" else recent.path
    return [
        session
        for session in importers.find([place], recent.form).sessions
        if recent.path in {file.path for file in session.files}
    ]


def show_list(session: Session, request: Request) -> ExitCode:
    """List the newest sessions with their totals; if the request has groupings, show only the totals of all sessions.

    The limit of the request is the number of files that are listed.
    """
    recent_files = _recent()
    chosen = recent_files if request.groupings else recent_files[: request.limit]
    by_path = {recent.path: recent for recent in chosen}
    found = importers.find(list(by_path)).sessions
    small = [log for log in found if request.groupings or sum(map(os.path.getsize, _paths(log))) <= MAX_READ_BYTES]
    collected, folders = Collected(request), Folders()
    rows: dict[tuple[str, ...], list[ListedSession]] = {}  # by the files of a session: a row for the file, one for each
    for log in found:
        recent = next(by_path[path] for path in _paths(log) if path in by_path)
        written = datetime.fromtimestamp(recent.modified, request.zone).strftime("%Y-%m-%d %H:%M")
        rows[_paths(log)] = [ListedSession(recent, written)]
    if small:
        privacy = logs.privacy(keep_content=request.with_content)
        for imported, trace in logs.read_sessions(session, small, privacy):
            summary = collected.add(*run_of_log(imported, trace, folders, request))
            file_rows = rows[imported.files]  # of a database, several sessions
            file_rows.append(file_rows[0]._replace(summary=summary))
    if request.groupings:
        collected.show_totals(session)
        return ExitCode.DONE
    listed = [row for file_rows in rows.values() for row in file_rows[1:] or file_rows]
    listed.sort(key=lambda row: (-row.recent.modified, row.recent.path))
    projects, with_content = collected.totals.projects, request.with_content
    if request.output_format is Format.JSON:
        sessions = records(exact_list(listed, projects, with_content=with_content))
        session.output.write(envelope("trace-recent", {"sessions": sessions, "totals": collected.data()}))
        return ExitCode.DONE
    width = session.output.width
    if request.output_format.is_exact:
        table = exact_list(listed, projects, with_content=with_content)
    else:
        notes = [
            "To see one: corpus trace doctor --session, with its name or the beginning of that.",
            f"Times are those of {request.zone_name}.",
        ]
        if len(small) < len(found):
            notes.append(f"Without figures: larger than {MAX_READ_BYTES >> 20} MB, and not read for a list.")
        if older := len(recent_files) - len(chosen):
            notes.append(f"{older:,} more are older: --limit lists more, --by day adds all up.")
        has_prices = collected.has_prices
        table = list_table(listed, projects, notes, has_prices=has_prices, width=width, with_content=with_content)
    tables = collected.tables(width) if len(collected.summaries) > 1 else []
    session.show_tables([*tables, table], "trace-recent", request.output_format)
    return ExitCode.DONE


def _recent() -> Sequence[Recent]:
    """Return the files of sessions below the home folder, the newest first."""
    if sessions := homes.recent():
        return sessions
    places = first_names_and_more([quote_path(folder) for folder in homes.folders().values()], 7)
    raise DataFileError(f"no session of a known program in {places}", "Name a log or a trace.")


def _paths(session: importers.Session) -> tuple[str, ...]:
    return tuple(file.path for file in session.files)
