"""Spark as an engine: its executors stage units, and its SQL computes statistics.

Executors and this machine share the folder of the dataset and the logs. An order is a file in that folder; Spark itself
carries only its number. An executor compares its versions of Python and of this package, and the size and the time of
every file, with what the driver saw: where they differ, it makes nothing and says so.
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
from orchtrace_corpus.trace.dataset.staging import Job, Maker
from orchtrace_corpus.trace.dataset.tables import Answer

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_OURS = {"spark.log.level": "ERROR", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_MOST_ROUNDS = 5
_LOOK_SECONDS = 0.2
_VERSION, _FILE, _STOPPED = "version", "file", "stopped"

_Order = tuple[Task, Job, dict[str, tuple[int, int]]]
"""A unit to be made, and the size and the time of each of its files as the driver saw them."""


class Spark:
    """Makes units on the executors of Spark, and opens tables there.

    Args:
        master: The URL of Spark: `local[*]`, `spark://...`, `sc://...` for Connect.
        conf: More settings of Spark.

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
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            from pyspark.sql import SparkSession

            is_remote = self._master.startswith("sc://")  # to a server, which has settings of its own
            begin = SparkSession.builder.appName("corpus trace dataset")
            builder = begin.remote(self._master) if is_remote else begin.master(self._master)
            for name, value in {**({} if is_remote else _OURS), **self._conf}.items():
                builder = builder.config(name, value)
            with _errors_of_spark(f"cannot start Spark at {quote(self._master)}"), _stderr_in_a_file():
                session = builder.getOrCreate()
            try:
                yield session
            finally:
                for end in (session.interruptAll, session.stop):
                    with suppress(Exception):  # it may be gone
                        end()

    def make(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Make units, as `Engine.make` has it; a file that changes meanwhile is looked at again."""
        if not tasks:
            return
        left = {task.name: task for task in tasks}
        staged = Folder(job.folder).staged
        with ThreadPoolExecutor(1) as pool, self._session() as session:
            for _ in range(_MOST_ROUNDS):
                orders = [(task, job, _look(task)) for task in left.values()]
                run = pool.submit(_run, session, orders, os.path.join(staged, "orders"))
                is_over = False
                while not is_over:
                    is_over = bool(wait([run], _LOOK_SECONDS).done)
                    for place in (os.path.join(staged, name) for name in sorted(os.listdir(staged))):
                        name = os.path.basename(place).partition(".")[0]
                        if name in left and is_staged(place):
                            del left[name]
                            yield place
                with _errors_of_spark("Spark has given up"):
                    replies = run.result()
                for reply in replies:
                    task, _, seen = orders[reply.number]
                    if task.name in left:
                        _refuse_trouble(reply, is_changed=_look(task) != seen)
                if not left:
                    return
        raise DataFileError(f"{quote_path(task.sources[0].files[0].path)} changes all the time")

    @contextmanager
    def open_tables(self, parts: Mapping[str, Sequence[str]]) -> "Iterator[SparkTables]":
        """Open the tables of a dataset, from exactly these files.

        Raises:
            DataFileError: Spark does not start, or the files cannot be read.
        """
        with self._session() as session:
            with _errors_of_spark("cannot open the tables on Spark"):
                for table, files in parts.items():
                    session.read.parquet(*map(os.path.abspath, files)).createOrReplaceTempView(table)
            yield SparkTables(session)


class SparkTables:
    """The tables of a dataset on Spark."""

    def __init__(self, session: "SparkSession") -> None:
        import ibis

        self._session = session
        self.dialect = str(ibis.pyspark.name)  # which loads what Ibis needs to write SQL for Spark

    def run(self, sql: str) -> Answer:
        """Run a statement.

        Raises:
            DataFileError: Spark cannot read the tables, or gives up.
        """
        with _errors_of_spark("Spark cannot compute this"):
            found = self._session.sql(sql)
            return Answer(tuple(found.columns), iter([list(map(tuple, found.collect()))]))


def _look(task: Task) -> dict[str, tuple[int, int]]:
    """The size and the time of each file of a unit, as they are on this machine."""
    states = {file.path: state(file) for source in task.sources for file in source.files}
    return {path: (one.size, one.mtime_ns) for path, one in states.items()}


def _run(session: "SparkSession", orders: Sequence[_Order], folder: str) -> "list[Row]":
    """Have all orders carried out; one task of Spark each.

    Returns:
        For each order its `number`, the `executor` that had it (machine and working folder), what the `trouble` was,
        if any, and the `cause` that is behind it: a file, a version or an error.
    """
    os.makedirs(folder, exist_ok=True)
    for index, order in enumerate(orders):
        with open(os.path.join(folder, str(index)), "wb") as file:
            pickle.dump(order, file)
    replies = session.range(0, len(orders), 1, len(orders)).mapInArrow(
        _on_executor(folder, __version__), "number long, executor string, trouble string, cause string"
    )
    return list(replies.collect())


def _on_executor(folder: str, version: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Run on an executor. Sent as a whole, so that it can report a missing or different package there."""

    def carry_out(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import socket

        import pyarrow

        try:
            from orchtrace_corpus.base import __version__ as found
        except ImportError:
            found = ""
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            trouble, cause = "version", found
            if found == version:
                from orchtrace_corpus.trace.dataset.spark import make_unit

                trouble, cause = make_unit(os.path.join(folder, str(number)))
            who = {"number": number, "executor": f"{socket.gethostname()}:{os.getcwd()}"}
            yield pyarrow.RecordBatch.from_pylist([{**who, "trouble": trouble, "cause": cause}])

    return carry_out


_MAKERS: list[Maker] = []
"""The process of this executor's worker that makes units; it serves for one after another."""


def make_unit(order_file: str) -> tuple[str, str]:
    """Stage a unit on an executor.

    Returns:
        What the trouble is, and what is behind it; nothing where the unit is staged.
    """
    try:
        with open(order_file, "rb") as file:
            task, job, seen = pickle.load(file)
    except OSError:
        return _FILE, order_file
    for path, here in _look(task).items():
        if here != seen[path]:
            return _FILE, path
    if not _MAKERS or _MAKERS[0].job != job:
        while _MAKERS:
            _MAKERS.pop().end()
        _MAKERS.append(Maker(job))
    try:
        for _ in _MAKERS[0].make(task):
            pass
    except DataFileError as error:
        _MAKERS.pop().end()
        return _STOPPED, str(error)
    return "", ""


def _refuse_trouble(reply: "Row", *, is_changed: bool) -> None:
    """Say why a unit was not made; that a file has changed meanwhile is a reason to try again.

    Raises:
        DataFileError: It cannot be made.
    """
    who = f"the executor {printable(reply.executor)}"
    if reply.trouble == _VERSION:
        theirs = f"version {quote(reply.cause)}" if reply.cause else "no version"
        hint = "Ship this environment to the executors: see docs/dataset.md."
        raise DataFileError(f"{who} has {theirs} of orchtrace-corpus, and the driver {quote(__version__)}", hint)
    if reply.trouble == _STOPPED:
        raise DataFileError(f"{who}: {printable(reply.cause, limit=300)}")
    if not is_changed:
        hint = "Logs and dataset must be in folders that all executors share, under the same path."
        raise DataFileError(f"{who} does not see {quote_path(reply.cause)} as the driver does", hint)


@contextmanager
def _stderr_in_a_file() -> Iterator[None]:
    """Have what is started meanwhile, which is Java, write its remarks into a file that nobody sees."""
    before = os.dup(2)
    try:
        with TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@contextmanager
def _errors_of_spark(what: str) -> Iterator[None]:
    """Raise errors of Spark as ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        hint = "Spark needs Java 17 or 21; docs/dataset.md says what a cluster needs."
        raise DataFileError(f"{what}: {printable(str(error).strip(), limit=1500)}", hint) from error
