"""Spark as an engine: its executors stage units, and its SQL computes statistics.

The driver, which runs the build, and the executors share the folder of the dataset and the logs. An order to build a
unit is a file in that folder, so that Spark transfers only the number of the order. Before an executor builds a unit,
it checks that it has the same version of this package as the driver, and sees the same size and modification time of
each file. Otherwise it builds nothing and replies with the trouble.
"""

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.errors import DataFileError, require_library
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.trace.dataset.folder import Folder, is_staged
from orchtrace_corpus.trace.dataset.plan import Task, state
from orchtrace_corpus.trace.dataset.staging import Job, UnitBuilder
from orchtrace_corpus.trace.dataset.tables import QueryResult

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_QUIET_SETTINGS = {"spark.log.level": "ERROR", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_MAX_ROUNDS = 5
_POLL_SECONDS = 0.2

# The kinds of trouble: another version of this package, a file in another state, and a unit that could not be built.
_VERSION, _FILE, _STOPPED = "version", "file", "stopped"

_Order = tuple[Task, Job, dict[str, tuple[int, int]]]
"""A unit to build, and the size and modification time of each of its files on the driver."""


class Spark:
    """Builds units on the executors of Spark, and opens tables on Spark.

    Args:
        master: The URL of Spark: `local[*]`, `spark://...`, `sc://...` for Connect.
        conf: Further settings of Spark.

    Raises:
        MissingLibraryError: pyspark is not installed.
    """

    def __init__(self, master: str, conf: Mapping[str, str]) -> None:
        require_library("Spark", "pyspark", "spark")
        self._master = master
        self._conf = conf

    @contextmanager
    def _session(self) -> "Iterator[SparkSession]":
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        """Start Spark or connect to it, and stop the session at the end."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            from pyspark.sql import SparkSession

            builder = SparkSession.builder.appName("corpus trace dataset")
            if self._master.startswith("sc://"):  # a Connect server, which has its own settings
                builder = builder.remote(self._master)
                settings = dict(self._conf)
            else:
                builder = builder.master(self._master)
                settings = {**_QUIET_SETTINGS, **self._conf}
            for name, value in settings.items():
                builder = builder.config(name, value)
            with _spark_errors(f"cannot start Spark at {quote(self._master)}"), _silenced_stderr():
                session = builder.getOrCreate()
            try:
                yield session
            finally:
                for stop in (session.interruptAll, session.stop):
                    with suppress(Exception):  # the session may have ended already
                        stop()

    def build_units(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Build units; see `Engine.build_units`. A unit whose files change while it is built is ordered again."""
        if not tasks:
            return
        remaining = {task.name: task for task in tasks}
        staging_folder = Folder(job.folder).staging_folder
        with ThreadPoolExecutor(1) as pool, self._session() as session:
            for _ in range(_MAX_ROUNDS):
                orders = [(task, job, _file_states(task)) for task in remaining.values()]
                run = pool.submit(_run_orders, session, orders, os.path.join(staging_folder, "orders"))
                is_over = False
                while not is_over:
                    is_over = bool(wait([run], _POLL_SECONDS).done)  # before the look at the folders, so none is missed
                    for folder_name in sorted(os.listdir(staging_folder)):
                        folder = os.path.join(staging_folder, folder_name)
                        unit_name, _, _ = folder_name.partition(".")
                        if unit_name in remaining and is_staged(folder):
                            del remaining[unit_name]
                            yield folder
                with _spark_errors("Spark has given up"):
                    replies = run.result()
                for reply in replies:
                    task, _, states_of_order = orders[reply.number]
                    if task.name in remaining:
                        _raise_trouble(reply, is_changed=_file_states(task) != states_of_order)
                if not remaining:
                    return
        raise DataFileError(f"{quote_path(task.sources[0].files[0].path)} changes all the time")

    @contextmanager
    def open_tables(self, parts: Mapping[str, Sequence[str]]) -> "Iterator[SparkTables]":
        """Open the tables of a dataset from these files.

        Raises:
            DataFileError: Spark does not start, or the files cannot be read.
        """
        with self._session() as session:
            with _spark_errors("cannot open the tables on Spark"):
                for table, files in parts.items():
                    session.read.parquet(*map(os.path.abspath, files)).createOrReplaceTempView(table)
            yield SparkTables(session)


class SparkTables:
    """The tables of a dataset on Spark."""

    def __init__(self, session: "SparkSession") -> None:
        import ibis

        self._session = session
        self.dialect = str(ibis.pyspark.name)  # the attribute access imports the SQL compiler of Ibis for Spark

    def run(self, sql: str) -> QueryResult:
        """Run a statement.

        Raises:
            DataFileError: Spark cannot read the tables, or fails.
        """
        with _spark_errors("Spark cannot compute this"):
            result = self._session.sql(sql)
            rows = [tuple(row) for row in result.collect()]
            return QueryResult(tuple(result.columns), iter([rows]))


def _file_states(task: Task) -> dict[str, tuple[int, int]]:
    """Return the size and the modification time of each file of a unit, as seen on this machine."""
    states = {}
    for source in task.sources:
        for file in source.files:
            file_state = state(file)
            states[file.path] = (file_state.size, file_state.mtime_ns)
    return states


def _run_orders(session: "SparkSession", orders: Sequence[_Order], folder: str) -> "list[Row]":
    """Run all orders, each as one Spark task, and return a reply for each.

    A reply has the `number` of the order, the `executor` that ran it (machine and working folder), the kind of
    `trouble`, and its `cause`: a file, a version or an error. Without trouble, both are empty.
    """
    os.makedirs(folder, exist_ok=True)
    for index, order in enumerate(orders):
        with open(os.path.join(folder, str(index)), "wb") as file:
            pickle.dump(order, file)
    numbers = session.range(0, len(orders), step=1, numPartitions=len(orders))
    columns = "number long, executor string, trouble string, cause string"
    return list(numbers.mapInArrow(_order_runner(folder, __version__), columns).collect())


def _order_runner(folder: str, version: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that runs orders on an executor, and reports if this package is missing or different there."""

    def run_orders(batches: Iterator[Any]) -> Iterator[Any]:
        # Spark sends only this function, and this package may be missing on the executor: so it imports all it needs.
        import os
        import socket

        import pyarrow

        try:
            from orchtrace_corpus.base import __version__ as installed
        except ImportError:
            installed = ""
        executor = f"{socket.gethostname()}:{os.getcwd()}"
        for batch in batches:
            for number in batch.column(0).to_pylist():
                trouble, cause = "version", installed
                if installed == version:
                    from orchtrace_corpus.trace.dataset.spark import execute_order

                    trouble, cause = execute_order(os.path.join(folder, str(number)))
                reply = {"number": number, "executor": executor, "trouble": trouble, "cause": cause}
                yield pyarrow.RecordBatch.from_pylist([reply])

    return run_orders


_BUILDERS: list[UnitBuilder] = []
"""The process that builds units for this executor, kept from one order to the next; the list has at most one item."""


def execute_order(order_file: str) -> tuple[str, str]:
    """Stage a unit on an executor, and return the kind of trouble and its cause; both are empty if it is staged."""
    try:
        with open(order_file, "rb") as file:
            task, job, driver_states = pickle.load(file)
    except OSError:
        return _FILE, order_file
    for path, file_state in _file_states(task).items():
        if file_state != driver_states[path]:
            return _FILE, path
    if not _BUILDERS or _BUILDERS[0].job != job:
        while _BUILDERS:
            _BUILDERS.pop().end()
        _BUILDERS.append(UnitBuilder(job))
    try:
        for _ in _BUILDERS[0].build_unit(task):
            pass  # until the unit is staged
    except DataFileError as error:
        _BUILDERS.pop().end()
        return _STOPPED, str(error)
    return "", ""


def _raise_trouble(reply: "Row", *, is_changed: bool) -> None:
    """Raise the reason why a unit was not built, but not if a file of it has changed meanwhile: then it is retried."""
    executor = f"the executor {printable(reply.executor)}"
    if reply.trouble == _VERSION:
        version = f"version {quote(reply.cause)}" if reply.cause else "no version"
        hint = "Ship this environment to the executors: see docs/dataset.md."
        raise DataFileError(f"{executor} has {version} of orchtrace-corpus, and the driver {quote(__version__)}", hint)
    if reply.trouble == _STOPPED:
        raise DataFileError(f"{executor}: {printable(reply.cause, limit=300)}")
    if not is_changed:
        hint = "Logs and dataset must be in folders that all executors share, under the same path."
        raise DataFileError(f"{executor} does not see {quote_path(reply.cause)} as the driver does", hint)


@contextmanager
def _silenced_stderr() -> Iterator[None]:
    """Redirect standard error to a temporary file, so that Java, which starts meanwhile, prints nothing."""
    stderr_copy = os.dup(2)
    try:
        with TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)


@contextmanager
def _spark_errors(message: str) -> Iterator[None]:
    """Turn errors of Spark into errors with messages for the user."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        hint = "Spark needs Java 17 or 21; docs/dataset.md says what a cluster needs."
        raise DataFileError(f"{message}: {printable(str(error).strip(), limit=1500)}", hint) from error
