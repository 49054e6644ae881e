"""Writes traces as five Parquet tables, whose columns the module `columns` defines, and opens them for queries.

Writing needs pyarrow and queries need DuckDB; both are optional. Queries are not trusted: they can read only the
tables, write nothing, and load no extension.

A forked or resumed session has some of the same answers as the session that it continues. Each unit of a build, which
is a group of sources, has a file `answers` with the keyed hash of the id of each answer. When all units are written,
`copies` lists the events whose answers are counted in another trace: of several copies, the one with the most tokens
counts, as in `trace.measures.shared_answers`. Neither the order of the sessions nor the salt of the hashes matters.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.errors import CommandUseError, DataFileError, require_library
from orchtrace_corpus.base.findings import RULES, Severity, printable, quote_path
from orchtrace_corpus.base.json_places import json_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.dataset.columns import (
    FLAG,
    INTEGER,
    NUMBER,
    NUMBER_MAP,
    ROWS,
    TABLES,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Row,
    RowContext,
    column_values,
)
from orchtrace_corpus.trace.dataset.folder import ANSWERS, COPIES
from orchtrace_corpus.trace.measures.ledger import COUNTED_KINDS, KINDS
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    import duckdb
    import pyarrow

MAX_ROWS = 20_000
"""The number of rows of a table that are kept in memory before they are written as one row group."""

_TOKEN_COLUMNS = [f"{kind}_tokens" for kind in KINDS]
_ORDER_BY_TOTAL = " + ".join(f"coalesce({kind}_tokens, 0)::HUGEINT" for kind in COUNTED_KINDS)
_ORDER_BY_COLUMNS = ", ".join(f"{column} DESC NULLS LAST" for column in (*_TOKEN_COLUMNS, "cost_usd", "events.model"))
_COPIES_QUERY = f"""
SELECT trace, number FROM {ANSWERS}
JOIN (SELECT answer FROM {ANSWERS} GROUP BY answer HAVING count(*) > 1) USING (answer)
JOIN events USING (trace, number) JOIN traces USING (trace)
WHERE NOT copied_context
QUALIFY row_number() OVER (
    PARTITION BY answer
    ORDER BY {_ORDER_BY_TOTAL} DESC, {_ORDER_BY_COLUMNS}, trace_id, event, trace, number
) > 1
ORDER BY trace, number
"""
"""All copies of an answer but the first, which is the one that counts. Copied history counts in no trace."""

_DAMAGED_HINT = "If a build is at work on them, try again; else build the dataset anew, in another folder."


class Writer:
    """Writes the tables of traces to an existing folder, each as `TABLE.parquet`. A context manager.

    When a table has `MAX_ROWS` rows in memory, the rows of all tables are written, each table as one row group.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """

    def __init__(self, folder: str) -> None:
        require_library("Parquet", "pyarrow")
        from pyarrow import parquet

        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._schemas = {name: schema(name) for name in TABLES}
        self._trace_counts: dict[str, int] = {}  # the number of traces so far, by trace id
        self._files = {
            name: parquet.ParquetWriter(os.path.join(folder, f"{name}.parquet"), fields, compression="zstd")
            for name, fields in self._schemas.items()
        }

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, trace: Trace, key: str = "") -> None:
        """Add a trace.

        Args:
            trace: The trace.
            key: The name of the trace in the tables. If it is empty, the name is the `trace_id`, with a number if an
                earlier trace has the same id.

        Raises:
            InvalidTraceError: The trace has errors; nothing is added.
        """
        view = TraceView(trace)
        problems = rules.problems(view)
        errors = [problem for problem in problems if RULES[problem.code].severity is Severity.ERROR]
        if errors:
            code, message, path = errors[0]
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise InvalidTraceError(f"{code} {json_path(path)}: {message}{more}")
        if not key:
            count = self._trace_counts.get(trace.trace_id, 0) + 1
            self._trace_counts[trace.trace_id] = count
            key = trace.trace_id if count == 1 else f"{trace.trace_id}#{count}"
        context = RowContext(view, key, len(problems))
        for table, rows in self._rows.items():
            new_rows = ROWS[table](context)
            while batch := list(islice(new_rows, MAX_ROWS - len(rows))):  # as many as there is room for
                rows += batch
                if len(rows) == MAX_ROWS:
                    self.flush()  # empties `rows`

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        import pyarrow

        for table, rows in self._rows.items():
            if rows:
                fields = self._schemas[table]
                columns = zip(column_values(table, rows), fields, strict=True)
                arrays = [_array(values, field.type) for values, field in columns]
                self._files[table].write_table(pyarrow.Table.from_arrays(arrays, schema=fields))
                rows.clear()


def _array(values: list[Any], kind: "pyarrow.DataType") -> "pyarrow.Array":
    """Return the values of a column as an array; characters that are not valid Unicode are escaped."""
    import pyarrow

    try:
        return pyarrow.array(values, kind)
    except UnicodeEncodeError:
        return pyarrow.array(escape(values), kind)


def escape(value: Any) -> Any:
    """Return a value, or a list of values, with the characters of texts that are not valid Unicode escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, (list, tuple)):
        return type(value)(map(escape, value))
    return value


def write(traces: Iterable[Trace], folder: str) -> int:
    """Write the tables of traces to a new folder, which appears only when it is complete; return the number of traces.

    Raises:
        MissingLibraryError: pyarrow is not installed.
        DataFileError: The folder exists already, or cannot be written.
        InvalidTraceError: A trace has errors.
    """
    import shutil

    if os.path.lexists(folder):
        raise DataFileError(f"{quote_path(folder)} exists already", "Choose a new name, or remove it first.")
    folder = folder.rstrip(os.sep) or folder
    temporary = f"{folder}.{os.getpid()}.part"
    count = 0
    try:
        os.mkdir(temporary)
        with Writer(temporary) as writer:
            for trace in traces:
                writer.add(trace)
                count += 1
            writer.flush()
        os.rename(temporary, folder)
    except OSError as error:
        raise DataFileError(f"cannot write {quote_path(folder)}: {error.strerror or printable(str(error))}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return count


def schema(table: str) -> "pyarrow.Schema":
    """Return the columns of a table as a pyarrow schema."""
    import pyarrow

    text = pyarrow.string()
    types = {
        TEXT: text,
        INTEGER: pyarrow.int64(),
        NUMBER: pyarrow.float64(),
        FLAG: pyarrow.bool_(),
        TEXTS: pyarrow.list_(text),
        TEXT_MAP: pyarrow.map_(text, text),
        NUMBER_MAP: pyarrow.map_(text, pyarrow.float64()),
    }
    if table == COPIES:
        columns = {"trace": TEXT, "number": INTEGER}
    elif table == ANSWERS:
        columns = {"trace": TEXT, "number": INTEGER, "answer": TEXT}
    else:
        columns = {column.name: column.type for column in TABLES[table]}
    return pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])


def write_rows(table: str, batches: Iterable[Iterable[Sequence[object]]], path: str) -> None:
    """Write rows of `answers` or `copies` to a Parquet file, one batch at a time."""
    import pyarrow
    from pyarrow import parquet

    fields = schema(table)
    with parquet.ParquetWriter(path, fields, compression="zstd") as file:
        for batch in batches:
            columns = list(zip(*batch, strict=True))
            if columns:  # an empty batch has none
                arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
                file.write_table(pyarrow.Table.from_arrays(arrays, schema=fields))


def write_copies(parts: Mapping[str, Sequence[str]], path: str) -> None:
    """Find the events whose answers are counted in another trace, and write them to a file of `copies`.

    Args:
        parts: The files of the tables `answers`, `events` and `traces`; without files, no event is found.
        path: The path of the file to write.

    Raises:
        MissingLibraryError: DuckDB is not installed.
        DataFileError: The files cannot be read.
    """
    temporary = f"{path}.new"
    if any(parts.values()):
        with open_tables(parts) as tables:
            write_rows(COPIES, tables.run(_COPIES_QUERY).batches, temporary)
    else:
        write_rows(COPIES, (), temporary)
    os.replace(temporary, path)


class QueryResult(NamedTuple):
    """The result of a query: the names of its columns, and its rows in batches."""

    columns: tuple[str, ...]
    batches: Iterator[list[tuple[Any, ...]]]


class Tables:
    """The tables of a dataset in DuckDB."""

    dialect = "duckdb"  # the name of its SQL in Ibis, for the queries of `statistics`

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection

    def query(self, sql: str) -> QueryResult:
        """Run a query of the user, which must be a single SELECT statement.

        Raises:
            CommandUseError: The query is not a SELECT, has several statements, or is wrong; the message says where.
            DataFileError: The query needs more memory than there is, or the files cannot be read.
        """
        with _duckdb_errors():
            statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise CommandUseError(f"one statement is wanted, and there are {len(statements)}")
        kind = statements[0].type.name
        if kind != "SELECT":
            hint = "Begin with SELECT, WITH, FROM, DESCRIBE or SUMMARIZE."
            raise CommandUseError(f"{kind} is not allowed: the tables are only read", hint)
        return self.run(sql)

    def run(self, sql: str) -> QueryResult:
        """Run a statement; raises the same errors as `query`."""
        with _duckdb_errors():
            result = self._connection.execute(sql)
        column_names = tuple(str(column[0]) for column in result.description or ())
        return QueryResult(column_names, self._batches())

    def _batches(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of the last statement."""
        with _duckdb_errors():
            while rows := self._connection.fetchmany(10_000):
                yield rows


@contextmanager
def open_tables(parts: Mapping[str, Sequence[str]]) -> Iterator[Tables]:
    """Open the tables of a dataset in DuckDB as views of their files, without access to anything else.

    Raises:
        MissingLibraryError: DuckDB is not installed.
        DataFileError: The files cannot be read.
    """
    import tempfile

    require_library("a dataset", "duckdb")
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
                allowed_paths: list[str] = []  # the patterns and the files that they match: DuckDB checks both
                for table, files in parts.items():
                    patterns = [_glob_pattern(file) for file in files]
                    source = f"read_parquet({_sql_list(patterns)}, union_by_name = true)"
                    connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {source}")
                    allowed_paths += [*files, *patterns]
                connection.execute(f"SET allowed_paths = {_sql_list(list(dict.fromkeys(allowed_paths)))}")
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
            except duckdb.Error as error:
                raise DataFileError(f"cannot open the tables: {_error_text(error)}", _DAMAGED_HINT) from error
            yield Tables(connection)


def _glob_pattern(path: str) -> str:
    """Return a glob pattern that matches only this path, because DuckDB reads each path as a pattern."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _sql_list(texts: Sequence[str]) -> str:
    """Return a list of texts as SQL."""
    literals = ["'" + text.replace("'", "''") + "'" for text in texts]
    return f"[{', '.join(literals)}]"


@contextmanager
def _duckdb_errors() -> Iterator[None]:
    """Turn errors of DuckDB into errors with messages for the user."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.OutOfMemoryException as error:
        hint = "Ask for fewer columns, or for parts."
        raise DataFileError("the query needs more memory than there is", hint) from error
    except duckdb.IOException as error:
        raise DataFileError(f"cannot read the tables: {_error_text(error)}", _DAMAGED_HINT) from error
    except duckdb.CatalogException as error:
        hint = f"The tables are {', '.join(TABLES)}, copies; DESCRIBE shows the columns of one."
        raise CommandUseError(_error_text(error), hint) from error
    except duckdb.Error as error:
        raise CommandUseError(_error_text(error)) from error
    except RuntimeError as error:  # DuckDB raises it if a signal has stopped the query
        raise KeyboardInterrupt from error


def _error_text(error: Exception) -> str:
    """Return the message of a DuckDB error without control characters; it may quote several lines of the query."""
    return "\n".join(printable(line, limit=300) for line in str(error).splitlines() if line.strip())
