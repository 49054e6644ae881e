"""The database of OpenCode, which is never written to, nor is a file made beside it.

Where rows are still in its write-ahead log, both are copied to a folder of our own.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.values import string

_JOURNALS = ("-wal", "-journal")
_TABLES = frozenset(("session", "message", "part"))
_COLUMNS = frozenset(
    ("id", "parent_id", "agent", "version", "time_created", "directory", "session_id", "message_id", "data")
)
_HINT = "OpenCode keeps its sessions in tables: name the database that it wrote."
_MOST_COPIES = 5
_MOST_ROWS = 20


@contextmanager
def _opened(file: LogFile) -> Iterator[sqlite3.Connection]:
    """Yield a database that is read only; with rows in its write-ahead log, a copy of both."""
    with ExitStack() as stack:
        path = _copied(file.path, stack) if _written(file.path) else os.path.abspath(file.path)
        is_copy = path != os.path.abspath(file.path)
        options = "" if is_copy else "?mode=ro&immutable=1"
        database = sqlite3.connect(f"file:{quote(os.fsencode(path))}{options}", uri=True)
        stack.callback(database.close)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA query_only = ON")
        database.set_authorizer(_authorize)
        yield database


def _authorize(action: int, _name: str | None, _detail: str | None, _schema: str | None, inner: str | None) -> int:
    """Allow what reads tables: no view, whatever its name is in the schema, and no recursive query."""
    if inner is not None or action == sqlite3.SQLITE_RECURSIVE:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _written(path: str) -> list[str]:
    """Return the journals beside a database that hold something."""
    return [path + ending for ending in _JOURNALS if os.path.exists(path + ending) and os.path.getsize(path + ending)]


def _copied(path: str, stack: ExitStack) -> str:
    """Return a copy of a database with its journals, all of one moment as far as can be seen; gone with the stack."""
    import shutil
    from tempfile import TemporaryDirectory

    folder = stack.enter_context(TemporaryDirectory(prefix="orchtrace-"))
    target = os.path.join(folder, "copy.db")

    def state() -> list[tuple[str, int, int]]:
        states = ((name, os.stat(name)) for name in (path, *_written(path)))
        return [(name[len(path) :], status.st_size, status.st_mtime_ns) for name, status in states]

    for _ in range(_MOST_COPIES):
        before = state()
        for ending, _, _ in reversed(before):  # journals first: what they hold may be moved to the database meanwhile
            shutil.copyfile(path + ending, target + ending)
        if state() == before:
            break
    return target


def _sound(rows: Callable[[], Any], file: LogFile) -> Any:
    """Return what a database answers."""
    try:
        return rows()
    except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
        why = printable(str(error), limit=200)
        raise DataFileError(f"cannot read the database {quote_path(file.path)}: {why}") from error


class Database:
    """A database of OpenCode, read session by session; a context manager."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._stack = ExitStack()

    def __enter__(self) -> "Database":
        self._database = _sound(lambda: self._stack.enter_context(_opened(self._file)), self._file)
        try:
            self._refuse_views()
            self._indexed = {table: self._index(table) for table in ("message", "part")}
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _refuse_views(self) -> None:
        """See that what is read are tables and stored columns: what is computed may never end."""
        for name, sql in self._rows("SELECT name, sql FROM sqlite_master"):
            statement = string(sql).upper()
            if string(name).lower() not in _TABLES or statement.startswith("CREATE TABLE"):
                continue
            kind = "a view" if statement.startswith("CREATE VIEW") else "no plain table"
            message = f"cannot read the database {quote_path(self._file.path)}: {string(name).lower()} is {kind}"
            raise DataFileError(message, _HINT)
        for table in sorted(_TABLES):
            for column in self._rows(f"PRAGMA table_xinfo({table})"):
                name, hidden = string(column[1]).lower(), column[6]
                if hidden and name in _COLUMNS:
                    message = f"cannot read the database {quote_path(self._file.path)}: {table}.{name} is computed"
                    raise DataFileError(message, _HINT)

    def _index(self, table: str) -> str:
        """Return the condition that selects the rows of a session, by an index of our own where the database has none.

        Without one, each session would read the whole table, and many sessions would never end.
        """
        for index in self._rows(f"PRAGMA index_list({table})"):
            columns = self._rows("SELECT name FROM pragma_index_info(?) ORDER BY seqno", index[1])
            if [string(name) for (name,) in columns][:1] == ["session_id"]:
                return "session_id = ?"
        for statement in (
            "PRAGMA query_only = OFF",
            f"CREATE TEMP TABLE rows_of_{table} AS SELECT session_id, rowid AS number FROM main.{table}",
            f"CREATE INDEX temp.index_of_{table} ON rows_of_{table} (session_id)",
            "PRAGMA query_only = ON",
        ):
            list(self._rows(statement))
        return f"rowid IN (SELECT number FROM temp.rows_of_{table} WHERE session_id = ?)"

    def _rows(self, query: str, *values: Any) -> Iterator[Sequence[Any]]:
        cursor = _sound(lambda: self._database.execute(query, values), self._file)
        while rows := _sound(lambda: cursor.fetchmany(_MOST_ROWS), self._file):
            yield from rows

    def sessions(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the id of each session, that of the one above it, its agent and its version, the first first."""
        names = [string(row[1]) for row in self._rows("PRAGMA table_info(session)")]
        agent = "agent" if "agent" in names else "''"
        for row in self._rows(f"SELECT id, parent_id, {agent}, version FROM session ORDER BY time_created, id"):
            name, above, role, version = map(string, row)
            yield name, above, role, version

    def folders(self) -> dict[str, str]:
        """Return the folder in which each session ran, by the session's id."""
        return {string(name): string(folder) for name, folder in self._rows("SELECT id, directory FROM session")}

    def records(self, session: str) -> Iterator[tuple[str, int, str, str, bytes | None]]:
        """Yield the messages of a session, then their parts.

        Each is the name of its table, its row, its id, that of its message, and its JSON; None where that is too long.
        """
        most = budget.MAX_LINE_BYTES
        data = f"CASE WHEN length(CAST(data AS BLOB)) > {most} THEN NULL ELSE CAST(data AS BLOB) END"
        for table, above in (("message", "id"), ("part", "message_id")):
            query = f"SELECT rowid, id, {above}, {data} FROM {table} WHERE {self._indexed[table]}"
            for row_id, own, message, text in self._rows(query, session):
                yield table, row_id, string(own), string(message), text
