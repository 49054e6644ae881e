"""The sessions that programs have left below the home folder: the newest of them, and a list."""

import os
from collections.abc import Sequence
from datetime import datetime

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.base.text.table import Table, envelope, records
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.collection import Collected, Folders, Request, run_of_log, show_collected
from orchtrace_corpus.trace.importers import homes
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.homes import Recent
from orchtrace_corpus.trace.render.recent import Listed, exact_list, list_table, program

_MAX_NAMED = 20
MAX_READ_BYTES = 32 << 20
"""A larger session is listed unread: a list is there at once."""


def newest(session: Session) -> logs.Inputs:
    """The session that was written last, with its sub-agents; which one it is goes to standard error.

    Raises:
        DataFileError: There is none.
    """
    first = _recent()[0]
    sessions = _of_file(first)
    project = os.path.basename(first.folder)
    where = f" in {printable(project, limit=100)}" if project else ""
    session.output.note(
        f"corpus: the newest session, of {program(first.form)}{where}: {printable(first.path, limit=300)}"
    )
    return logs.Inputs([], sessions)


def named(name: str) -> logs.Inputs:
    """The sessions below the home folder in whose file's name a name stands, or whose file it is; of many, the newest.

    Raises:
        CommandUseError: There is none.
        DataFileError: There is no session at all.
    """
    there = _recent()
    known = [recent for recent in there if _is_called(recent, name)]
    known = known or [recent for recent in there if recent.form == "opencode"]
    if not known:
        hint = "--list shows the newest. Name a path for a session that is elsewhere."
        raise CommandUseError(f"no session below the home folder has {quote(name)} in its file's name", hint)
    sessions = {session.files: session for recent in known[:_MAX_NAMED] for session in _of_file(recent)}
    return logs.Inputs([], list(sessions.values()))


def _is_called(recent: Recent, name: str) -> bool:
    """Return True if a file is named, or has a session's name; with Gemini CLI, it ends in the name's beginning."""
    beginning = recent.name.rpartition("-")[2]
    return (
        name in recent.name
        or recent.path.endswith(os.sep + name)
        or (recent.form == "gemini_cli" and len(beginning) > 7 and name.startswith(beginning))
    )


def _of_file(first: Recent) -> list[importers.Session]:
    """The session that begins in a file, with its sub-agents; those of Codex are threads of their own, of its day."""
    near = os.path.dirname(first.path) if first.form == "codex" else first.path
    return [
        session
        for session in importers.find([near], first.form).sessions
        if first.path in {file.path for file in session.files}
    ]


def show_list(session: Session, request: Request) -> ExitCode:
    """List the sessions that were written last, the newest first, with their totals; or all totals alone.

    Args:
        session: Where they are shown.
        request: What is asked: `limit` is how many files of sessions are looked at, `groupings` are the totals of all.

    Raises:
        DataFileError: There is none, or none that can be read.
    """
    known = _recent()
    chosen = known if request.groupings else known[: request.limit]
    by_path = {recent.path: recent for recent in chosen}
    logged = importers.find(list(by_path)).sessions
    read = [log for log in logged if request.groupings or _size(log) <= MAX_READ_BYTES]
    collected, folders = Collected(request), Folders()
    rows: dict[tuple[LogFile, ...], list[Listed]] = {}
    for log in logged:
        recent = next(by_path[path] for path in _paths(log) if path in by_path)
        written = datetime.fromtimestamp(recent.modified, request.zone).strftime("%Y-%m-%d %H:%M")
        rows[log.files] = [Listed(recent, written)]
    files_of = {_paths(log): log.files for log in logged}
    for imported, trace in logs.traces(session, read, logs.privacy(keep_content=request.with_content)) if read else ():
        summary = collected.add(*run_of_log(imported, trace, folders, request))
        own = rows[files_of[imported.files]]  # a database has several sessions
        own.append(own[0]._replace(summary=summary))
    if request.groupings:
        show_collected(session, collected, request)
        return ExitCode.DONE
    listed_rows = (row for own in rows.values() for row in own[len(own) > 1 :])
    ordered = sorted(listed_rows, key=lambda row: (-row.recent.modified, row.recent.path))
    if request.output_format is Format.JSON:
        listed = {
            "sessions": records(exact_list(ordered, collected.totals.projects, with_content=request.with_content))
        }
        session.output.write(envelope("trace-recent", {**listed, "totals": collected.data()}))
        return ExitCode.DONE
    notes = [
        "To see one: corpus trace doctor --session, with its name or the beginning of that.",
        f"Times are those of {request.zone_name}.",
    ]
    if len(read) < len(logged):
        notes.append(f"Without figures: larger than {MAX_READ_BYTES >> 20} MB, and not read for a list.")
    if len(known) > len(chosen):
        older = len(known) - len(chosen)
        notes.append(f"{older:,} more are older: --limit lists more, --by day adds all up.")
    width = session.output.width
    tables = collected.tables(width) if len(collected.summaries) > 1 else []
    tables.append(_list_table(ordered, collected, request, width, notes))
    session.show_tables(tables, "trace-recent", request.output_format)
    return ExitCode.DONE


def _list_table(
    rows: Sequence[Listed], collected: Collected, request: Request, width: int | None, notes: Sequence[str]
) -> Table:
    projects = collected.totals.projects
    if request.output_format.is_exact:
        return exact_list(rows, projects, with_content=request.with_content)
    return list_table(
        rows, projects, notes, has_prices=collected.has_prices, width=width, with_content=request.with_content
    )


def _size(session: importers.Session) -> int:
    return sum(map(os.path.getsize, _paths(session)))


def _recent() -> Sequence[Recent]:
    if sessions := homes.recent():
        return sessions
    places = first_names_and_more([quote_path(folder) for folder in homes.folders().values()], 7)
    raise DataFileError(f"no session of a known program in {places}", "Name a log or a trace.")


def _paths(session: importers.Session) -> tuple[str, ...]:
    return tuple(file.path for file in session.files)
