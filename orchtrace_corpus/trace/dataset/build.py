"""Builds a dataset: logs read by several processes at once, what is finished kept, whatever happens.

Each worker writes a unit into a temporary folder; this process alone puts finished units in their place. A worker
that dies takes down the session that it was reading, which is named; the rest of its unit is given out again, and what
its journal has is not read again. So it is with the journals of a build that was broken off.
"""

import hashlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from typing import NamedTuple

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.trace.analysis.prices import Prices
from orchtrace_corpus.trace.dataset.columns import TABLES
from orchtrace_corpus.trace.dataset.folder import Folder, Unit
from orchtrace_corpus.trace.dataset.journal import Kept, kept_in
from orchtrace_corpus.trace.dataset.plan import Task, plan, taken_over
from orchtrace_corpus.trace.dataset.sources import TRACE, Source, find
from orchtrace_corpus.trace.dataset.tables import need_pyarrow
from orchtrace_corpus.trace.dataset.worker import Begun, Job, Made, Order, Stopped, serve

_MOST_DEATHS = 20


class Wish(NamedTuple):
    """How a dataset is to be built.

    Attributes:
        jobs: How many processes read at once.
        form: The format of all logs; else recognised.
        prices: What tokens cost.
        salt: The salt of the hashes, for a new dataset; else random.
        prune: Whether sessions go whose logs are not there any more, or are not named.
    """

    jobs: int
    form: str = ""
    prices: Prices | None = None
    salt: str = ""
    prune: bool = False


class Failure(NamedTuple):
    """Something that was left out, and why."""

    name: str
    why: str


class Outcome(NamedTuple):
    """What a build has done.

    Attributes:
        built: Sessions that were read.
        resumed: Sessions that were taken over as a build that was broken off had read them.
        unpriced: Sessions that were in the dataset with costs, and are built again without prices.
        unchanged: Sessions that stood as they were.
        empty: Sessions in which nothing ran.
        kept: Sessions that stay although their logs are not there, or were not named.
        removed: Sessions that went because of that.
        passed_over: Files that are no logs.
        traces: Traces that the dataset holds now.
        failures: What was left out of it.
    """

    built: int
    resumed: int
    unpriced: int
    unchanged: int
    empty: int
    kept: int
    removed: int
    passed_over: int
    traces: int
    failures: list[Failure]


def build(paths: Sequence[str], folder: Folder, wish: Wish, report: Callable[[int, int], None]) -> Outcome:
    """Bring a dataset to what logs say.

    Args:
        paths: Logs, finished traces, or folders of them.
        folder: The dataset; made if it is not there.
        wish: How.
        report: Told how many sessions of how many are done.

    Raises:
        CommandUseError: pyarrow is not installed; there is no such format; the dataset has another salt.
        DataFileError: There is nothing to read; the folder is no dataset, or another build is at work in it; or
            workers cannot be started.
    """
    need_pyarrow()
    found = find(paths, wish.form, folder.path)
    with folder.writing(wish.salt) as salt:
        settings = _settings(wish.prices)
        standing = folder.units()
        todo = plan(found.sources, standing, settings, salt, prune=wish.prune)
        for unit in todo.renewed:
            folder.note(unit)
        for unit, kept in todo.shrunk:
            folder.keep(unit, kept)
        wanted = [source for task in todo.tasks for source in task.sources]
        taken = _taken(folder, wanted, settings, salt)
        resumed = len(taken)
        failures = _made(todo.tasks, taken, folder, Job(salt, wish.prices, settings), wish.jobs, report)
        units = folder.units()
        folder.finish()
    sessions = [session for unit in units for session in unit.sessions]
    failures += [Failure(name, why) for name, why in found.unreadable]
    failures += [Failure(session.files[0].name, why) for session in sessions for why in session.errors]
    return Outcome(
        built=len(wanted) - resumed,
        resumed=resumed,
        unpriced=_unpriced(wanted, standing, salt) if wish.prices is None else 0,
        unchanged=len(todo.unchanged),
        empty=sum(not session.traces and not session.errors for session in sessions),
        kept=todo.kept,
        removed=todo.removed,
        passed_over=found.passed_over,
        traces=sum(session.traces for session in sessions),
        failures=failures,
    )


def _taken(folder: Folder, wanted: Sequence[Source], settings: str, salt: bytes) -> dict[Source, Kept]:
    """What a build that was broken off has read already; journals that have nothing of it are removed."""
    journals = folder.journals()
    taken = taken_over((one for path in journals for one in kept_in(path)), wanted, settings, salt)
    for path in {*journals} - {one.journal for one in taken.values()}:
        os.unlink(path)
    return taken


def _unpriced(wanted: Sequence[Source], units: Sequence[Unit], salt: bytes) -> int:
    """How many sessions had costs by a price table."""
    priced = {session.key for unit in units if unit.prices for session in unit.sessions}
    return sum(source.form != TRACE and source.key(salt) in priced for source in wanted) if priced else 0


def _settings(prices: Prices | None) -> str:
    """What rows depend on besides the logs, in short."""
    columns = [(table, column.name, column.type) for table, columns in TABLES.items() for column in columns]
    table = None if prices is None else (prices.date, sorted((m, sorted(p.items())) for m, p in prices.models.items()))
    return hashlib.blake2b(repr((__version__, columns, table)).encode(), digest_size=8).hexdigest()


class _Worker:
    """A process that makes units, and what it is at."""

    def __init__(self, number: int, job: Job, folder: Folder) -> None:
        context = get_context("spawn")
        self.number = number
        self.connection, theirs = context.Pipe()
        self.log_file = folder.log_file(number)
        self.journal = folder.new_journal()
        arguments = (theirs, job._replace(log_file=self.log_file, journal=self.journal))
        self.process: SpawnProcess = context.Process(target=serve, args=arguments, daemon=True)
        # The worker inherits the mask: an interruption at the terminal is for this process to deal with.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        theirs.close()
        self.order: Order | None = None
        self.at = -1

    def give(self, task: Task, folder: Folder, taken: Mapping[Source, Kept]) -> None:
        """Have it make a unit."""
        place = os.path.join(folder.temporary, f"{task.name}.{self.number}")
        os.mkdir(place)
        self.order = Order(task, place, {source: taken[source] for source in task.sources if source in taken})
        self.at = -1
        with suppress(BrokenPipeError, ConnectionResetError):  # its death is heard of as soon as it is listened to
            self.connection.send(self.order)

    def end(self) -> None:
        """End the process, whatever it is at."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        if os.path.exists(self.log_file) and not os.path.getsize(self.log_file):
            os.unlink(self.log_file)


def _made(
    tasks: Sequence[Task],
    taken: dict[Source, Kept],
    folder: Folder,
    job: Job,
    jobs: int,
    report: Callable[[int, int], None],
) -> list[Failure]:
    """Have all units made, and put them in their place; what killed a worker is returned.

    Args:
        tasks: The units.
        taken: Sources that need not be read; what workers had read that died is added.
        folder: The dataset.
        job: What holds for all units.
        jobs: How many workers there are to be.
        report: Told how many sources of how many are done.

    Raises:
        DataFileError: The tables cannot be written, or workers die one after another and nothing gets done.
    """
    waiting = list(reversed(tasks))
    total = sum(len(task.sources) for task in tasks)
    done = 0
    failures: list[Failure] = []
    started = deaths = 0
    with _workers() as workers:
        while waiting or any(worker.order for worker in workers):
            while len(workers) < min(jobs, len(waiting) + sum(worker.order is not None for worker in workers)):
                workers.append(_Worker(started, job, folder))
                started += 1
            for worker in workers:
                if waiting and worker.order is None:
                    worker.give(waiting.pop(), folder, taken)
            report(done + sum(max(worker.at, 0) for worker in workers), total)
            for worker in _speaking(workers):
                message = _heard(worker)
                if isinstance(message, Begun):
                    worker.at = message.number
                elif isinstance(message, Made) and worker.order is not None:
                    order, worker.order, worker.at = worker.order, None, -1
                    folder.put(job.unit(order.task.name, message.sessions), order.folder)
                    done += len(message.sessions)
                    deaths = 0
                elif isinstance(message, Stopped):
                    raise DataFileError(f"cannot go on in {quote_path(folder.path)}: {printable(message.why)}")
                else:
                    worker.end()
                    workers.remove(worker)
                    if worker.order is not None:
                        read = worker.order.task.sources
                        taken |= taken_over(kept_in(worker.journal), read, job.settings, job.salt)
                        done += _blamed(worker, worker.order.task, taken, waiting, failures)
                    deaths += 1
                    if deaths > _MOST_DEATHS:
                        raise DataFileError(
                            f"{deaths} processes died, and nothing got done; the last: {_cause(worker)}"
                        )
        report(done, total)
    return failures


def _blamed(
    worker: _Worker, task: Task, taken: Mapping[Source, Kept], waiting: list[Task], failures: list[Failure]
) -> int:
    """Give a dead worker's unit out again, as the last one, without what killed it; how many sessions that is."""
    fatal = task.sources[worker.at] if worker.at >= 0 else None
    if fatal is None or fatal in taken:  # it died before it read anything, or had read all of it
        waiting.insert(0, task)
        return 0
    failures.append(Failure(fatal.name, f"the process that read it died: {_cause(worker)}"))
    rest = tuple(source for source in task.sources if source is not fatal)
    if rest:
        waiting.insert(0, Task(f"{task.name}{len(failures)}", rest))
    return 1


def _cause(worker: _Worker) -> str:
    code = worker.process.exitcode or 0
    if code < 0:
        hint = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
        return f"{signal.Signals(-code).name}{hint}"
    return f"exit code {code}; see {quote_path(worker.log_file)}"


def _speaking(workers: Sequence[_Worker]) -> list[_Worker]:
    """The workers that have something to say, or have died; waits for one."""
    ready = connection.wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in ready]


def _heard(worker: _Worker) -> object:
    """What a worker says; None if it has died."""
    try:
        return worker.connection.recv()
    except (EOFError, OSError):  # OSError: it died in the middle of a message
        worker.process.join()
        return None


@contextmanager
def _workers() -> Iterator[list[_Worker]]:
    """A list of workers, all of which are ended at last."""
    workers: list[_Worker] = []
    try:
        yield workers
    finally:
        for worker in workers:
            worker.end()
