"""Traces as five tables in Parquet, with the columns that `columns` declares: written, and opened to be queried.

Writing needs pyarrow, and queries DuckDB; both are optional. A query may come from anywhere: nothing but the tables
can be read, nothing written, no extension loaded.

Several sessions have the same answers when one was forked or resumed. Each unit has a file of its `answers`, each with
a keyed hash of its ids. When all units are there, `copies` names the events whose answers are counted in another trace,
as `trace.measures.shared_answers` has it: of copies that differ the one of most tokens counts. So it does not matter in
which order, or by whom, sessions were read, nor what the salt is.
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
from orchtrace_corpus.trace.dataset import columns as of
from orchtrace_corpus.trace.dataset.columns import TABLES, Row, Scene
from orchtrace_corpus.trace.dataset.folder import ANSWERS, COPIES
from orchtrace_corpus.trace.measures.ledger import COUNTED, KINDS
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    import duckdb
    import pyarrow

MOST_ROWS = 20_000
"""So many rows of a table are kept in memory before they are written, as one row group."""

_KINDS = [f"{kind}_tokens" for kind in KINDS]
_COUNTED_ELSEWHERE = f"""
SELECT trace, number FROM {ANSWERS}
JOIN (SELECT answer FROM {ANSWERS} GROUP BY answer HAVING count(*) > 1) USING (answer)
JOIN events USING (trace, number) JOIN traces USING (trace)
WHERE NOT copied_context
QUALIFY row_number() OVER (
    PARTITION BY answer
    ORDER BY {" + ".join(f"coalesce({kind}, 0)::HUGEINT" for kind in _KINDS[:COUNTED])} DESC,
        {", ".join(f"{column} DESC NULLS LAST" for column in (*_KINDS, "cost_usd", "events.model"))},
        trace_id, event, trace, number
) > 1
ORDER BY trace, number
"""

_DAMAGED = "If a build is at work on them, try again; else build the dataset anew, in another folder."


class Writer:
    """Writes the tables of traces into a folder that is there, as `TABLE.parquet` each. A context manager.

    A trace is taken apart into rows; when a table has `MOST_ROWS` of them, those of all tables become a row group each.

    Raises:
        CommandUseError: pyarrow is not installed.
    """

    def __init__(self, folder: str) -> None:
        require_library("Parquet", "pyarrow")
        from pyarrow import parquet

        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._schemas = {name: schema(name) for name in TABLES}
        self._used: dict[str, int] = {}
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
            key: Its name in the tables; else its `trace_id`, with a number where that was used before.

        Raises:
            InvalidTraceError: The trace has errors; nothing of it is added.
        """
        view = TraceView(trace)
        found = rules.problems(view)
        errors = [problem for problem in found if RULES[problem.code].severity is Severity.ERROR]
        if errors:
            code, message, path = errors[0]
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise InvalidTraceError(f"{code} {json_path(path)}: {message}{more}")
        if not key:
            self._used[trace.trace_id] = number = self._used.get(trace.trace_id, 0) + 1
            key = trace.trace_id if number == 1 else f"{trace.trace_id}#{number}"
        scene = Scene(view, key, len(found))
        for name, rows in self._rows.items():
            left = of.ROWS[name](scene)
            while some := list(islice(left, MOST_ROWS - len(rows))):
                rows += some
                if len(rows) == MOST_ROWS:
                    self.finish()

    def finish(self) -> None:
        """Write the rows that are still in memory."""
        import pyarrow

        for name, rows in self._rows.items():
            if rows:
                fields = self._schemas[name]
                columns = zip(of.values(name, rows), fields, strict=True)
                arrays = [_array(values, field.type) for values, field in columns]
                self._files[name].write_table(pyarrow.Table.from_arrays(arrays, schema=fields))
                rows.clear()


def _array(values: list[Any], kind: "pyarrow.DataType") -> "pyarrow.Array":
    """The values of a column; what is not Unicode in texts, such as parts of some files' names, is escaped."""
    import pyarrow

    try:
        return pyarrow.array(values, kind)
    except UnicodeEncodeError:
        return pyarrow.array(escape(values), kind)


def escape(value: Any) -> Any:
    """A value, or a list of them, in whose texts everything that is not Unicode is escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return type(value)(map(escape, value)) if isinstance(value, (list, tuple)) else value


def write(traces: Iterable[Trace], folder: str) -> int:
    """Write the tables of traces into a new folder, which is there only when all is written; how many there were.

    Raises:
        CommandUseError: pyarrow is not installed.
        DataFileError: The folder is there already, or cannot be written.
        InvalidTraceError: A trace has errors.
    """
    import shutil

    if os.path.lexists(folder):
        raise DataFileError(f"{quote_path(folder)} exists already", "Choose a new name, or remove it first.")
    folder = folder.rstrip(os.sep) or folder
    beside = f"{folder}.{os.getpid()}.part"
    number = 0
    try:
        os.mkdir(beside)
        with Writer(beside) as writer:
            for trace in traces:
                writer.add(trace)
                number += 1
            writer.finish()
        os.rename(beside, folder)
    except OSError as error:
        raise DataFileError(f"cannot write {quote_path(folder)}: {error.strerror or printable(str(error))}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return number


def schema(table: str) -> "pyarrow.Schema":
    """The columns of a table as pyarrow has them."""
    import pyarrow

    text = pyarrow.string()
    plain = {of.TEXT: text, of.WHOLE: pyarrow.int64(), of.NUMBER: pyarrow.float64(), of.FLAG: pyarrow.bool_()}
    maps = {of.WORDS: pyarrow.map_(text, text), of.FIGURES: pyarrow.map_(text, pyarrow.float64())}
    types = {**plain, **maps, of.TEXTS: pyarrow.list_(text)}
    copies = {"trace": of.TEXT, "number": of.WHOLE}
    private = {COPIES: copies, ANSWERS: {**copies, "answer": of.TEXT}}
    columns = private.get(table) or {column.name: column.type for column in TABLES[table]}
    return pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])


def write_rows(table: str, batches: Iterable[Iterable[Sequence[object]]], path: str) -> None:
    """Write rows of `answers` or `copies` as a Parquet file, so many at a time as there are in a batch."""
    import pyarrow
    from pyarrow import parquet

    fields = schema(table)
    with parquet.ParquetWriter(path, fields, compression="zstd") as file:
        for batch in batches:
            if columns := list(zip(*batch, strict=True)):
                arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
                file.write_table(pyarrow.Table.from_arrays(arrays, schema=fields))


def write_copies(parts: Mapping[str, Sequence[str]], path: str) -> None:
    """Find the answers that are counted in another trace, and replace the file of their events.

    Args:
        parts: The files of answers, events and traces; none where no answer has ids.
        path: The file.

    Raises:
        MissingLibraryError: DuckDB is not installed.
        DataFileError: The files cannot be read.
    """
    beside = f"{path}.new"
    if any(parts.values()):
        with open_tables(parts) as tables:
            write_rows(COPIES, tables.run(_COUNTED_ELSEWHERE).batches, beside)
    else:
        write_rows(COPIES, (), beside)
    os.replace(beside, path)


class Answer(NamedTuple):
    """The answer to a query: the names of its columns, and its rows, some at a time."""

    columns: tuple[str, ...]
    batches: Iterator[list[tuple[Any, ...]]]


class Tables:
    """The tables of a dataset in DuckDB."""

    dialect = "duckdb"

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection

    def query(self, sql: str) -> Answer:
        """Ask a question of a person: one statement that only reads.

        Raises:
            CommandUseError: It is another statement, or several, or wrong; the message shows where.
            DataFileError: It takes more memory than there is, or the files cannot be read.
        """
        with _errors_of_duckdb():
            statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise CommandUseError(f"one statement is wanted, and there are {len(statements)}")
        kind = statements[0].type.name
        if kind != "SELECT":
            hint = "Begin with SELECT, WITH, FROM, DESCRIBE or SUMMARIZE."
            raise CommandUseError(f"{kind} is not allowed: the tables are only read", hint)
        return self.run(sql)

    def run(self, sql: str) -> Answer:
        """Run a statement; errors as for `query`."""
        with _errors_of_duckdb():
            found = self._connection.execute(sql)
        return Answer(tuple(str(column[0]) for column in found.description or ()), self._batches())

    def _batches(self) -> Iterator[list[tuple[Any, ...]]]:
        with _errors_of_duckdb():
            while rows := self._connection.fetchmany(10_000):
                yield rows


@contextmanager
def open_tables(parts: Mapping[str, Sequence[str]]) -> Iterator[Tables]:
    """Open the tables of a dataset in DuckDB, as views over their files, and shut everything else.

    Raises:
        CommandUseError: DuckDB is not installed.
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
                for table, files in parts.items():
                    listed = ", ".join(map(_literal, map(_pattern, files)))
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


@contextmanager
def _errors_of_duckdb() -> Iterator[None]:
    """Raise errors of DuckDB as ours."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.OutOfMemoryException as error:
        hint = "Ask for fewer columns, or for parts."
        raise DataFileError("the query needs more memory than there is", hint) from error
    except duckdb.IOException as error:
        raise DataFileError(f"cannot read the tables: {_lines(error)}", _DAMAGED) from error
    except duckdb.CatalogException as error:
        hint = f"The tables are {', '.join(TABLES)}, copies; DESCRIBE shows the columns of one."
        raise CommandUseError(_lines(error), hint) from error
    except duckdb.Error as error:
        raise CommandUseError(_lines(error)) from error
    except RuntimeError as error:  # no error of DuckDB's own: so it says that a signal has stopped a query
        raise KeyboardInterrupt from error


def _lines(error: Exception) -> str:
    """An error of DuckDB, which may quote a query over several lines and point at the place."""
    return "\n".join(printable(line, limit=300) for line in str(error).splitlines() if line.strip())
