"""Opens the tables of a dataset in DuckDB, as views over their files, and shuts everything else.

What is asked may come from anywhere: nothing but these files can be read, nothing written, no extension loaded.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, DataFileError, MissingLibraryError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.dataset.columns import TABLES

if TYPE_CHECKING:
    import duckdb


_DAMAGED = "If a build is at work on them, try again; else build the dataset anew, in another folder."


class Answer(NamedTuple):
    """The answer to a query: the names of its columns, and its rows, some at a time."""

    columns: tuple[str, ...]
    batches: Iterator[list[tuple[Any, ...]]]


def need(*modules: str) -> None:
    """See that optional libraries are there.

    Raises:
        CommandUseError: One is not installed.
    """
    from importlib import import_module

    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise MissingLibraryError("a dataset", module, "scale") from error


class Tables:
    """The tables of a dataset in DuckDB."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection

    def query(self, sql: str) -> Answer:
        """Ask a question of a person: one statement that only reads.

        Raises:
            CommandUseError: It is another statement, or several, or wrong; the message shows where.
            DataFileError: It takes more memory than there is, or the files cannot be read.
        """
        import duckdb

        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise _explained(error) from error
        if len(statements) != 1:
            raise CommandUseError(f"one statement is wanted, and there are {len(statements)}")
        kind = statements[0].type.name
        if kind != "SELECT":
            raise CommandUseError(
                f"{kind} is not allowed: the tables are only read",
                "Begin with SELECT, WITH, FROM, DESCRIBE or SUMMARIZE.",
            )
        return self.run(sql)

    def run(self, sql: str) -> Answer:
        """Run a statement; errors as for `query`."""
        import duckdb

        try:
            found = self._connection.execute(sql)
        except duckdb.Error as error:
            raise _explained(error) from error
        except RuntimeError as error:
            raise _interrupted(error) from error
        return Answer(tuple(str(column[0]) for column in found.description or ()), _batches(found))


_BATCH_ROWS = 10_000


def _batches(found: "duckdb.DuckDBPyConnection") -> Iterator[list[tuple[Any, ...]]]:
    import duckdb

    while True:
        try:
            rows = found.fetchmany(_BATCH_ROWS)
        except duckdb.Error as error:
            raise _explained(error) from error
        except RuntimeError as error:
            raise _interrupted(error) from error
        if not rows:
            return
        yield rows


@contextmanager
def opened(parts: Mapping[str, Sequence[str]]) -> Iterator[Tables]:
    """Open the tables of a dataset.

    Args:
        parts: The files of each table.

    Raises:
        CommandUseError: DuckDB is not installed.
        DataFileError: The files cannot be read.
    """
    need("duckdb")
    import duckdb

    with tempfile.TemporaryDirectory(prefix="corpus-dataset-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "allow_community_extensions": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "temp_directory": folder,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            try:
                for table, files in parts.items():
                    listed = ", ".join(_literal(_pattern(file)) for file in files)
                    source = f"read_parquet([{listed}], union_by_name = true)"
                    connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {source}")
                every = [file for files in parts.values() for file in files]
                allowed = ", ".join(map(_literal, {**dict.fromkeys(every), **dict.fromkeys(map(_pattern, every))}))
                connection.execute(f"SET allowed_paths = [{allowed}]")
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
            except duckdb.Error as error:
                raise DataFileError(f"cannot open the tables: {_lines(error)}", _DAMAGED) from error
            yield Tables(connection)


def _pattern(path: str) -> str:
    """A path as a pattern that only it fits: DuckDB takes every path for one."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _interrupted(error: RuntimeError) -> BaseException:
    """What DuckDB makes of an interruption at the terminal, made one again."""
    return KeyboardInterrupt() if "interrupted" in str(error) else error


def _explained(error: Exception) -> CommandUseError | DataFileError:
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        raise KeyboardInterrupt
    if isinstance(error, duckdb.OutOfMemoryException):
        return DataFileError("the query needs more memory than there is", "Ask for fewer columns, or for parts.")
    if isinstance(error, duckdb.IOException):
        return DataFileError(f"cannot read the tables: {_lines(error)}", _DAMAGED)
    if isinstance(error, duckdb.CatalogException):
        return CommandUseError(_lines(error), f"The tables are {', '.join(TABLES)}; DESCRIBE shows the columns of one.")
    return CommandUseError(_lines(error))


def _lines(error: Exception) -> str:
    """An error of DuckDB, which may quote a query over several lines and point at the place."""
    return "\n".join(printable(line, limit=300) for line in str(error).splitlines() if line.strip())
