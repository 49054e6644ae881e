"""The sessions that programs have left below the home folder: the newest of them, and a list."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import display_width, first_names_and_more
from orchtrace_corpus.base.text.table import Table, envelope, records
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.diagnosis import summarize
from orchtrace_corpus.trace.diagnosis.values import Summary
from orchtrace_corpus.trace.importers import homes
from orchtrace_corpus.trace.importers.homes import Recent
from orchtrace_corpus.trace.render.names import break_lines, duration

_COLUMNS = ("program", "project", "last written", "agents", "time", "tokens", "session")
_DISPENSABLE = ("agents", "program", "project")
"""The columns that a narrow terminal does without, in this order."""

_MOST_NAMED = 20
_LEAST_NAME = 13
MOST_READ_BYTES = 32 << 20
"""A larger session is listed unread: a list is there at once."""


def newest(session: Session) -> logs.Inputs:
    """The session that was written last, with its sub-agents; which one it is goes to standard error.

    Raises:
        DataFileError: There is none.
    """
    first = _recent()[0]
    found = _of_file(first)
    project = f" in {printable(first.project, limit=100)}" if first.project else ""
    session.output.note(
        f"corpus: the newest session, of {_program(first.form)}{project}: {printable(first.path, limit=300)}"
    )
    return logs.Inputs([], found)


def named(name: str) -> logs.Inputs:
    """The sessions below the home folder in whose file's name a name stands, or whose file it is; of many, the newest.

    Raises:
        CommandUseError: There is none.
        DataFileError: There is no session at all.
    """
    there = _recent()
    known = [one for one in there if _is_called(one, name)] or [one for one in there if one.form == "opencode"]
    if not known:
        hint = "--list shows the newest. Name a path for a session that is elsewhere."
        raise CommandUseError(f"no session below the home folder has {quote(name)} in its file's name", hint)
    found = {one.files: one for recent in known[:_MOST_NAMED] for one in _of_file(recent)}
    return logs.Inputs([], list(found.values()))


def _is_called(one: Recent, name: str) -> bool:
    """Whether a file has the name of a session, or is named; that of Gemini CLI ends in the beginning of the name."""
    beginning = one.name.rpartition("-")[2]
    return (
        name in one.name
        or one.path.endswith(os.sep + name)
        or (one.form == "gemini_cli" and len(beginning) > 7 and name.startswith(beginning))
    )


def _of_file(first: Recent) -> list[importers.Session]:
    """The session that begins in a file, with its sub-agents; those of Codex are threads of their own, of its day."""
    near = os.path.dirname(first.path) if first.form == "codex" else first.path
    return [
        one for one in importers.find([near], first.form).sessions if first.path in {file.path for file in one.files}
    ]


def show_list(session: Session, most: int, output_format: Format) -> None:
    """List the sessions that were written last, the newest first.

    Args:
        session: Where they are shown.
        most: So many files of sessions are looked at.
        output_format: The form of the output.

    Raises:
        DataFileError: There is none, or none that can be read.
    """
    known = _recent()
    newest_ones = {one.path: one for one in known[:most]}
    sessions = importers.find(list(newest_ones)).sessions
    rows = {
        one.files: [_Row(next(newest_ones[path] for path in _paths(one) if path in newest_ones))] for one in sessions
    }
    small = [one for one in sessions if sum(map(os.path.getsize, _paths(one))) <= MOST_READ_BYTES]
    if small:
        by_paths = {_paths(one): one.files for one in sessions}
        for one, trace in logs.traces(session, small, logs.privacy()):
            own = rows[by_paths[one.files]]  # a database has several sessions
            own += [own[0]._replace(summary=summarize(trace))]
    shown = (row for own in rows.values() for row in own[len(own) > 1 :])
    ordered = sorted(shown, key=lambda row: (-row.recent.modified, row.recent.path))
    notes = ["To see one: corpus trace doctor --session, with its name or the beginning of that. Times are in UTC."]
    if len(small) < len(sessions):
        notes.append(f"Without figures: larger than {MOST_READ_BYTES >> 20} MB, and not read for a list.")
    if len(known) > most:
        notes.append(f"{len(known) - most:,} more are older; --limit says how many are listed.")
    if output_format is Format.JSON:
        table = Table("sessions", "", (*_COLUMNS, "file", "tokens_at_least"), tuple(row.exact() for row in ordered))
        session.output.write(envelope("trace-recent", {table.name: records(table)}, version=2))
        return
    least = _distinct([row.name for row in ordered])
    table = Table("sessions", "", _COLUMNS, tuple(row.cells(least) for row in ordered), tuple(notes))
    session.show_tables([_narrowed(table, session.output.width)], "trace-recent", output_format)


def _distinct(names: Sequence[str]) -> int:
    """How many characters of names tell them apart, since the beginning of a name is enough for --session."""
    longest = max(map(len, names), default=0)
    return next((n for n in range(_LEAST_NAME, longest) if len({name[:n] for name in names}) == len(names)), longest)


def _narrowed(table: Table, width: int | None) -> Table:
    """The table without the columns that a narrow terminal has no room for."""
    for name in _DISPENSABLE:
        place = table.columns.index(name)
        columns = zip(*(table.columns, *(map(str, row) for row in table.rows)), strict=True)
        if width is None or sum(max(map(display_width, texts)) + 1 for texts in columns) <= width + 1:
            break
        rows = tuple((*row[:place], *row[place + 1 :]) for row in table.rows)
        table = table._replace(columns=(*table.columns[:place], *table.columns[place + 1 :]), rows=rows)
    return table._replace(whole="session")


class _Row(NamedTuple):
    recent: Recent
    summary: Summary | None = None

    @property
    def name(self) -> str:
        """The name of the session; of one that was not read, that of its file."""
        return printable(self.summary.name if self.summary else self.recent.name, limit=60)

    @property
    def written(self) -> str:
        """When it was written last, in UTC."""
        return datetime.fromtimestamp(self.recent.modified, UTC).strftime("%Y-%m-%d %H:%M")

    def exact(self) -> tuple[str | int | float | None, ...]:
        """The line of a session for programs."""
        recent, summary = self
        figures = (summary.agents, summary.elapsed, summary.tokens) if summary else (None, None, None)
        is_least = summary.has_more_tokens if summary else None
        return recent.form, recent.project, self.written, *figures, self.name, recent.path, is_least

    def cells(self, most: int) -> tuple[str, ...]:
        """What stands in the line of a session, by column, with so many characters of its name."""
        recent, summary = self
        figures = ["", "", ""]
        if summary is not None:
            time = break_lines(duration(summary.elapsed, summary.unit), 80)[0]
            more = "+" if summary.has_more_tokens else ""
            figures = [f"{summary.agents:,}", time, "" if summary.tokens is None else f"{summary.tokens:,.0f}{more}"]
        project = printable(recent.project, limit=30)
        return _program(recent.form), project, self.written, *figures, self.name[:most]


def _recent() -> Sequence[Recent]:
    if found := homes.recent():
        return found
    places = first_names_and_more([quote_path(folder) for folder in homes.folders().values()], 7)
    raise DataFileError(f"no session of a known program in {places}", "Name a log or a trace.")


def _paths(session: importers.Session) -> tuple[str, ...]:
    return tuple(file.path for file in session.files)


def _program(form: str) -> str:
    """What people call the program that writes a format."""
    return importers.FORMATS[form].partition(" (")[0].rpartition(" ")[0]
