"""Find the sessions of agent programs below the home folder: the newest one, those with a name, and a list."""

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
from orchtrace_corpus.trace.importers.homes import RecentFile
from orchtrace_corpus.trace.render.recent import ListedSession, exact_list, list_table, program

_MAX_MATCHES = 20
"""The number of files with a name that are read."""

MAX_READ_BYTES = 32 << 20
"""Larger sessions are listed without figures, because reading them would take too long."""


def find_newest(session: Session) -> logs.Inputs:
    """Return the session that was written last, with its sub-agents, and report which one it is."""
    newest = _recent_files()[0]
    project = os.path.basename(newest.folder)
    where = f" in {printable(project, limit=100)}" if project else ""
    session.output.note(
        f"corpus: the newest session, of {program(newest.form)}{where}: {printable(newest.path, limit=300)}"
    )
    return logs.Inputs([], _sessions_in(newest))


def find_by_name(name: str) -> logs.Inputs:
    """Return the sessions below the home folder whose file has a name in its own; if there are many, the newest."""
    recent_files = _recent_files()
    matches = [recent for recent in recent_files if _has_name(recent, name)]
    if not matches:  # a database of OpenCode has many sessions, whose names are not in its file name
        matches = [recent for recent in recent_files if recent.form == "opencode"]
    if not matches:
        hint = "--list shows the newest. Name a path for a session that is elsewhere."
        raise CommandUseError(f"no session below the home folder has {quote(name)} in its file's name", hint)
    sessions_by_files = {}  # a session can be in several of the matches
    for recent in matches[:_MAX_MATCHES]:
        for session in _sessions_in(recent):
            sessions_by_files[session.files] = session
    return logs.Inputs([], list(sessions_by_files.values()))


def _has_name(recent: RecentFile, name: str) -> bool:
    """Return True if a file can have the session with a name."""
    if name in recent.name or recent.path.endswith(os.sep + name):
        return True
    # The name of a file of Gemini CLI ends with the beginning of the session's name.
    _, _, beginning = recent.name.rpartition("-")
    return recent.form == "gemini_cli" and len(beginning) > 7 and name.startswith(beginning)


def _sessions_in(recent: RecentFile) -> list[importers.Session]:
    """Return the sessions in a file with their sub-agents."""
    # Codex writes sub-agents to other files, in the folder of the same day.
    place = os.path.dirname(recent.path) if recent.form == "codex" else recent.path
    return [session for session in importers.find([place], recent.form).sessions if recent.path in _paths(session)]


def show_list(session: Session, request: Request) -> ExitCode:
    """List the newest sessions with their totals; if the request has groupings, show only the totals of all sessions.

    The limit of the request is the number of files that are listed.
    """
    recent_files = _recent_files()
    chosen = recent_files if request.groupings else recent_files[: request.limit]
    recent_by_path = {recent.path: recent for recent in chosen}
    log_sessions = importers.find(list(recent_by_path)).sessions
    rows_without_figures: dict[tuple[str, ...], ListedSession] = {}  # by the paths of a session's files
    to_read = []
    for log_session in log_sessions:
        paths = _paths(log_session)
        recent = next(recent_by_path[path] for path in paths if path in recent_by_path)
        written = datetime.fromtimestamp(recent.modified, request.zone).strftime("%Y-%m-%d %H:%M")
        rows_without_figures[paths] = ListedSession(recent, written)
        if request.groupings or sum(map(os.path.getsize, paths)) <= MAX_READ_BYTES:
            to_read.append(log_session)
    collected = Collected(request)
    rows_by_paths: dict[tuple[str, ...], list[ListedSession]] = {}  # a database has several sessions
    if to_read:
        folders = Folders()
        privacy = logs.make_privacy(keep_content=request.with_content)
        for imported, trace in logs.read_sessions(session, to_read, privacy):
            view, origin = run_of_log(imported, trace, folders, request)
            row = rows_without_figures[imported.files]._replace(summary=collected.add(view, origin))
            rows_by_paths.setdefault(imported.files, []).append(row)
    if request.groupings:
        collected.show_totals(session)
        return ExitCode.DONE
    rows: list[ListedSession] = []
    for paths, row in rows_without_figures.items():
        rows += rows_by_paths.get(paths, [row])
    rows.sort(key=lambda row: (-row.file.modified, row.file.path))
    projects = collected.totals.projects
    with_content = request.with_content
    if request.output_format is Format.JSON:
        sessions = records(exact_list(rows, projects, with_content=with_content))
        session.output.write(envelope("trace-recent", {"sessions": sessions, "totals": collected.data()}))
        return ExitCode.DONE
    width = session.output.width
    if request.output_format.is_exact:
        table = exact_list(rows, projects, with_content=with_content)
    else:
        notes = [
            "To see one: corpus trace doctor --session, with its name or the beginning of that.",
            f"Times are those of {request.zone_name}.",
        ]
        if len(to_read) < len(log_sessions):
            notes.append(f"Without figures: larger than {MAX_READ_BYTES >> 20} MB, and not read for a list.")
        older_count = len(recent_files) - len(chosen)
        if older_count:
            notes.append(f"{older_count:,} more are older: --limit lists more, --by day adds all up.")
        has_prices = collected.has_prices
        table = list_table(rows, projects, notes, has_prices=has_prices, width=width, with_content=with_content)
    tables = collected.tables(width) if len(collected.summaries) > 1 else []
    session.show_tables([*tables, table], "trace-recent", request.output_format)
    return ExitCode.DONE


def _recent_files() -> Sequence[RecentFile]:
    """Return the files of sessions below the home folder, the newest first; raise an error if there is none."""
    recent_files = homes.recent()
    if recent_files:
        return recent_files
    places = first_names_and_more([quote_path(folder) for folder in homes.folders().values()], 7)
    raise DataFileError(f"no session of a known program in {places}", "Name a log or a trace.")


def _paths(session: importers.Session) -> tuple[str, ...]:
    """Return the paths of the files of a session."""
    return tuple(file.path for file in session.files)
