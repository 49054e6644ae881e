"""Build a dataset: an engine builds units in other processes, and this process commits each of them once.

`Local` is the engine for one machine: several processes, each of which builds one unit after another.
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.errors import require_library
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.workers import wait_for_any
from orchtrace_corpus.trace.analysis.prices import AnyPrices
from orchtrace_corpus.trace.dataset.columns import TABLES
from orchtrace_corpus.trace.dataset.folder import ANSWERS, Folder
from orchtrace_corpus.trace.dataset.plan import TRACE, Plan, Task, find, plan
from orchtrace_corpus.trace.dataset.staging import Job, Maker
from orchtrace_corpus.trace.dataset.tables import write_copies


class Engine(Protocol):
    """An engine that builds units: the processes of one machine, or a cluster."""

    def make(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Build units; yield the folder of each unit once, as soon as it is staged.

        Raises:
            DataFileError: A unit cannot be built.
        """


class Local:
    """Builds units in several processes at once."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def make(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Build units; see `Engine.make`."""
        waiting = deque(tasks)
        idle: list[Maker] = []
        running: dict[Maker, Iterator[str]] = {}
        try:
            private = Folder(job.folder).private
            idle = [Maker(job, private(f"worker-{index}.log")) for index in range(min(self._jobs, len(tasks)))]
            while waiting or running:
                while waiting and idle:
                    maker = idle.pop()
                    running[maker] = maker.make(waiting.popleft())
                    next(running[maker])
                for maker in wait_for_any(list(running)):
                    if folder := next(running[maker]):
                        del running[maker]
                        idle.append(maker)
                        yield folder
        finally:
            for maker in (*idle, *running):
                maker.end()


class Outcome(NamedTuple):
    """The result of a build.

    Attributes:
        plan: The work of the build.
        unpriced: The number of sessions that had costs in the dataset before and were rebuilt without prices.
        empty: The number of sessions in which nothing ran.
        skipped: The number of files that are not logs.
        traces: The number of traces in the dataset after the build.
        failures: Sources that were left out: name and reason of each.
    """

    plan: Plan
    unpriced: int
    empty: int
    skipped: int
    traces: int
    failures: list[tuple[str, str]]


def build(
    paths: Sequence[str],
    folder: Folder,
    engine: Engine,
    report: Callable[[int, int], None],
    *,
    form: str = "",
    prices: AnyPrices | None = None,
    salt: str = "",
    prune: bool = False,
) -> Outcome:
    """Build a dataset from logs, or update it: only new and changed sources are read.

    Args:
        paths: Logs, finished traces, or folders of them.
        folder: The dataset; created if it does not exist.
        engine: The engine that builds units.
        report: Called with the number of sources that are done, and the number of all sources to read.
        form: The format of all logs; empty to recognise the format of each.
        prices: The price table; None for no costs.
        salt: The salt of the hashes of a new dataset; empty for a random one.
        prune: True to remove sources whose logs do not exist any more, or are not named.

    Raises:
        CommandUseError: pyarrow is not installed; the format is unknown; the dataset has another salt.
        DataFileError: There is nothing to read; the folder is not a dataset, or another build is running in it; or
            the engine cannot build a unit.
    """
    require_library("Parquet", "pyarrow")
    search = find(paths, form, folder.path)
    with folder.writing(salt) as dataset_salt:
        if not os.path.exists(folder.copies):
            write_copies({}, folder.copies)
        job = Job(os.path.abspath(folder.path), dataset_salt, prices, _settings(prices))
        units_before = folder.units()
        work = plan(search.sources, units_before, job.settings, dataset_salt, prune=prune)
        for unit, kept in work.changed:
            folder.keep(unit, kept)
        failures = search.unreadable
        sources, done_count = work.sources, 0
        report(done_count, len(sources))
        for staged_folder in engine.make(work.tasks, job):
            staged = folder.commit(staged_folder)
            failures += staged.left_out
            done_count += len(staged.unit.sessions) + len(staged.left_out)
            report(done_count, len(sources))
        units = folder.units()
        with_answers = [unit for unit in units if unit.answers]
        tables = (ANSWERS, "events", "traces")
        write_copies({table: [folder.part(table, unit) for unit in with_answers] for table in tables}, folder.copies)
        folder.finish()
    sessions = [session for unit in units for session in unit.sessions]
    unpriced = 0
    if not prices:
        priced = {session.key for unit in units_before if unit.prices for session in unit.sessions}
        unpriced = sum(source.form != TRACE and source.key(dataset_salt) in priced for source in sources)
    failures += [(session.files[0].name, error) for session in sessions for error in session.errors]
    return Outcome(
        work,
        unpriced=unpriced,
        empty=sum(not session.traces and not session.errors for session in sessions),
        skipped=search.skipped,
        traces=sum(session.traces for session in sessions),
        failures=failures,
    )


def _settings(prices: AnyPrices | None) -> str:
    """Return a hash of everything that rows depend on besides the logs."""
    columns = [(table, column.name, column.type) for table, columns in TABLES.items() for column in columns]
    models = sorted((name, sorted(model.items())) for name, model in prices.models.items()) if prices else None
    table = prices and (prices.date, prices.source, models)
    return hashlib.blake2b(repr((__version__, columns, table)).encode(), digest_size=8).hexdigest()
