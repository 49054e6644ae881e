"""Read the database of OpenCode, without writing to it or to its folder.

If rows are still in its write-ahead log, SQLite would write: then both are copied to a temporary folder.
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
from orchtrace_corpus.trace.importers.core.values import as_text

_JOURNALS = ("-wal", "-journal")
_TABLES = frozenset(("session", "message", "part"))  # that are read
_COLUMNS = frozenset(
    ("id", "parent_id", "agent", "version", "time_created", "directory", "session_id", "message_id", "data")
)
_HINT = "OpenCode keeps its sessions in tables: name the database that it wrote."
_MAX_COPIES = 5
_ROWS_AT_A_TIME = 20


@contextmanager
def _open_read_only(file: LogFile) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only; with rows in its write-ahead log, open a copy."""
    with ExitStack() as stack:
        path, options = os.path.abspath(file.path), "?mode=ro&immutable=1"
        if _used_journals(file.path):
            path, options = _copy(file.path, stack), ""
        database = sqlite3.connect(f"file:{quote(os.fsencode(path))}{options}", uri=True)
        stack.callback(database.close)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA query_only = ON")
        database.set_authorizer(_authorize)
        yield database


def _authorize(action: int, _name: str | None, _detail: str | None, _schema: str | None, inner: str | None) -> int:
    """Deny access from inside a view or trigger (`inner` is its name) and recursive queries: they may never end."""
    if inner is not None or action == sqlite3.SQLITE_RECURSIVE:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _used_journals(path: str) -> list[str]:
    """Return the paths of the journals of a database that are not empty."""
    journals = [path + suffix for suffix in _JOURNALS]
    return [journal for journal in journals if os.path.exists(journal) and os.path.getsize(journal)]


def _copy(path: str, stack: ExitStack) -> str:
    """Copy a database and its journals, again if they change meanwhile; the stack removes the copy."""
    import shutil
    from tempfile import TemporaryDirectory

    folder = stack.enter_context(TemporaryDirectory(prefix="orchtrace-"))
    target = os.path.join(folder, "copy.db")

    def states() -> list[tuple[str, int, int]]:
        """Return the suffix, the size and the time of change of each file."""
        statuses = [(name, os.stat(name)) for name in (path, *_used_journals(path))]
        return [(name[len(path) :], status.st_size, status.st_mtime_ns) for name, status in statuses]

    for _ in range(_MAX_COPIES):
        states_before = states()
        for suffix, _, _ in reversed(
            states_before
        ):  # journals first: meanwhile, OpenCode may move rows to the database
            shutil.copyfile(path + suffix, target + suffix)
        if states() == states_before:
            break
    return target


def _guard(query: Callable[[], Any], file: LogFile) -> Any:
    """Return the result of a query; raise DataFileError if the database cannot be read."""
    try:
        return query()
    except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
        reason = printable(str(error), limit=200)
        raise DataFileError(f"cannot read the database {quote_path(file.path)}: {reason}") from error


class Database:
    """A database of OpenCode, opened as a context manager and read session by session."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._stack = ExitStack()

    def __enter__(self) -> "Database":
        self._database = _guard(lambda: self._stack.enter_context(_open_read_only(self._file)), self._file)
        try:
            self._check_schema()
            self._conditions = {table: self._condition(table) for table in ("message", "part")}
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _check_schema(self) -> None:
        """Raise DataFileError unless all tables are plain and all columns stored: computing others may never end."""
        for name, sql in self._rows("SELECT name, sql FROM sqlite_master"):
            statement = as_text(sql).upper()
            if as_text(name).lower() not in _TABLES or statement.startswith("CREATE TABLE"):
                continue
            kind = "a view" if statement.startswith("CREATE VIEW") else "no plain table"
            message = f"cannot read the database {quote_path(self._file.path)}: {as_text(name).lower()} is {kind}"
            raise DataFileError(message, _HINT)
        for table in sorted(_TABLES):
            for column in self._rows(f"PRAGMA table_xinfo({table})"):
                name, is_hidden = as_text(column[1]).lower(), column[6]
                if is_hidden and name in _COLUMNS:
                    message = f"cannot read the database {quote_path(self._file.path)}: {table}.{name} is computed"
                    raise DataFileError(message, _HINT)

    def _condition(self, table: str) -> str:
        """Return the condition that selects the rows of a session by an index: the database's, else a temporary one.

        Without an index, each session would read the whole table, which takes too long for many sessions.
        """
        for index in self._rows(f"PRAGMA index_list({table})"):
            columns = self._rows("SELECT name FROM pragma_index_info(?) ORDER BY seqno", index[1])
            if [as_text(name) for (name,) in columns][:1] == ["session_id"]:
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
        """Yield the rows of a query; the values replace its question marks."""
        cursor = _guard(lambda: self._database.execute(query, values), self._file)
        while rows := _guard(lambda: cursor.fetchmany(_ROWS_AT_A_TIME), self._file):
            yield from rows

    def sessions(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the id, the parent, the agent and the version of each session, in the order of their creation."""
        columns = [as_text(row[1]) for row in self._rows("PRAGMA table_info(session)")]
        agent_column = "agent" if "agent" in columns else "''"  # earlier versions have no such column
        for row in self._rows(f"SELECT id, parent_id, {agent_column}, version FROM session ORDER BY time_created, id"):
            session_id, parent, agent, version = map(as_text, row)
            yield session_id, parent, agent, version

    def folders(self) -> dict[str, str]:
        """Return the folder in which each session ran, by the session's id."""
        return {as_text(name): as_text(folder) for name, folder in self._rows("SELECT id, directory FROM session")}

    def records(self, session: str) -> Iterator[tuple[str, int, str, str, bytes | None]]:
        """Yield the messages of a session, then their parts.

        Each is the name of its table, the number of its row, its id, the id of its message, and its JSON, which is None
        if it is too long.
        """
        limit = budget.MAX_LINE_BYTES
        data = f"CASE WHEN length(CAST(data AS BLOB)) > {limit} THEN NULL ELSE CAST(data AS BLOB) END"
        for table, message_column in (("message", "id"), ("part", "message_id")):
            query = f"SELECT rowid, id, {message_column}, {data} FROM {table} WHERE {self._conditions[table]}"
            for row_number, record_id, message_id, json in self._rows(query, session):
                yield table, row_number, as_text(record_id), as_text(message_id), json
