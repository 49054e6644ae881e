"""Traces as five tables in Parquet, with the columns that `columns` declares. Needs pyarrow, which is optional."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.errors import DataFileError, MissingLibraryError
from orchtrace_corpus.base.findings import RULES, Severity, printable, quote_path
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.dataset import columns as of
from orchtrace_corpus.trace.dataset.columns import TABLES, Row, Scene
from orchtrace_corpus.trace.model.places import json_path
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view.view import Subject

if TYPE_CHECKING:
    import pyarrow

MOST_ROWS = 20_000
"""So many rows of a table are kept in memory before they are written, as one row group."""

Values = dict[str, list[list[Any]]]
"""Rows of tables: for each table the values of each of its columns, in their order."""


class Writer:
    """Writes the tables of traces into a folder that is there, as `TABLE.parquet` each. A context manager.

    A trace becomes rows, which hold all of it; rows become values, once; values become a row group.

    Args:
        folder: The folder.
        note: Told the values that were worked out, of at most `MOST_ROWS` rows of a table, before they are written.

    Raises:
        CommandUseError: pyarrow is not installed.
    """

    def __init__(self, folder: str, note: Callable[[Values], None] | None = None) -> None:
        need_pyarrow()
        from pyarrow import parquet

        self._note = note
        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._values = _no_values()
        self._schemas = {name: schema(name) for name in TABLES}
        self._used: dict[str, int] = {}
        self._files = {
            name: parquet.ParquetWriter(
                os.path.join(folder, f"{name}.parquet"), self._schemas[name], compression="zstd"
            )
            for name in TABLES
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
        scene = _scene(trace, key)
        if not key:
            name = scene.trace.trace_id
            self._used[name] = number = self._used.get(name, 0) + 1
            scene.key = name if number == 1 else f"{name}#{number}"
        for name, rows in self._rows.items():
            room = MOST_ROWS - len(self._values[name][0])
            for row in of.rows(name, scene):
                rows.append(row)
                if len(rows) >= room:
                    self.settle()
                    room = MOST_ROWS

    def settle(self) -> None:
        """Work out the values of all rows that were added."""
        values: Values = {}
        for name, rows in self._rows.items():
            if rows:  # column by column: this is faster than row by row
                values[name] = [list(map(column.value, rows)) for column in TABLES[name]]
                rows.clear()
        if values and self._note:
            self._note(values)
        self.take(values)

    def take(self, values: Values) -> None:
        """Add rows whose values are known, at most `MOST_ROWS` of each table."""
        most = max((len(self._values[name][0]) + len(columns[0]) for name, columns in values.items()), default=0)
        if most > MOST_ROWS:
            self._write()
        for name, columns in values.items():
            for known, more in zip(self._values[name], columns, strict=True):
                known += more
        if most == MOST_ROWS:
            self._write()

    def finish(self) -> None:
        """Write what is still in memory."""
        self.settle()
        self._write()

    def _write(self) -> None:
        import pyarrow

        for name, columns in self._values.items():
            if columns[0]:
                fields = self._schemas[name]
                arrays = [_array(values, field.type) for values, field in zip(columns, fields, strict=True)]
                self._files[name].write_table(pyarrow.Table.from_arrays(arrays, schema=fields))
        self._values = _no_values()


def _no_values() -> Values:
    return {name: [[] for _ in columns] for name, columns in TABLES.items()}


def _array(values: list[Any], kind: "pyarrow.DataType") -> "pyarrow.Array":
    """The values of a column; what is not Unicode in texts, such as parts of some files' names, is escaped."""
    import pyarrow

    try:
        return pyarrow.array(values, kind)
    except UnicodeEncodeError:
        return pyarrow.array(escaped(values), kind)


def escaped(value: Any) -> Any:
    """A value, or a list of them, in whose texts everything that is not Unicode is escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return type(value)(map(escaped, value)) if isinstance(value, (list, tuple)) else value


def _scene(trace: Trace, key: str) -> Scene:
    """A trace that the graph rules have no error against, to be made into rows."""
    subject = Subject(trace)
    found = rules.problems(subject)
    errors = [problem for problem in found if RULES[problem.code].severity is Severity.ERROR]
    if errors:
        code, message, path = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InvalidTraceError(f"{code} {json_path(path)}: {message}{more}")
    return Scene(subject, key, len(found))


def write(traces: Iterable[Trace], folder: str) -> int:
    """Write the tables of traces into a new folder, which is there only when all is written; how many there were.

    Raises:
        CommandUseError: pyarrow is not installed.
        DataFileError: The folder is there already, or cannot be written.
        InvalidTraceError: A trace has errors.
    """
    import shutil

    need_pyarrow()
    taken = DataFileError(f"{quote_path(folder)} exists already", "Choose a new name, or remove it first.")
    if os.path.lexists(folder):
        raise taken
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
        if os.path.lexists(folder):
            raise taken
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
    types = {
        of.TEXT: text,
        of.WHOLE: pyarrow.int64(),
        of.NUMBER: pyarrow.float64(),
        of.FLAG: pyarrow.bool_(),
        of.TEXTS: pyarrow.list_(text),
        of.WORDS: pyarrow.map_(text, text),
        of.FIGURES: pyarrow.map_(text, pyarrow.float64()),
    }
    return pyarrow.schema([(column.name, types[column.type]) for column in TABLES[table]])


def need_pyarrow() -> None:
    """See that pyarrow is there.

    Raises:
        CommandUseError: It is not installed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingLibraryError("Parquet", "pyarrow", "scale") from error
