"""Builds a dataset: an engine builds units in other processes, and this process commits each of them once.

A unit is a group of sources whose rows are in one file of each table. `LocalEngine` is the engine for one machine:
several processes, each of which builds one unit after another.
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
from orchtrace_corpus.trace.dataset.staging import Job, UnitBuilder
from orchtrace_corpus.trace.dataset.tables import write_copies


class Engine(Protocol):
    """An engine that builds units: the processes of one machine, or a cluster."""

    def build_units(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Build units; yield the folder of each unit once, as soon as it is staged.

        Raises:
            DataFileError: A unit cannot be built.
        """


class LocalEngine:
    """Builds units in several processes at once."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def build_units(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Build units; see `Engine.build_units`."""
        waiting = deque(tasks)
        idle: list[UnitBuilder] = []
        # The progress of each builder that is at work: empty texts, and finally the folder where its unit is staged.
        progress: dict[UnitBuilder, Iterator[str]] = {}
        try:
            count = min(self._jobs, len(tasks))
            log_files = [Folder(job.folder).private(f"worker-{index}.log") for index in range(count)]
            idle = [UnitBuilder(job, log_file) for log_file in log_files]
            while waiting or progress:
                while waiting and idle:
                    builder = idle.pop()
                    progress[builder] = builder.build_unit(waiting.popleft())
                    next(progress[builder])  # starts the work
                for builder in wait_for_any(list(progress)):
                    if folder := next(progress[builder]):
                        del progress[builder]
                        idle.append(builder)
                        yield folder
        finally:
            for builder in (*idle, *progress):
                builder.end()


class BuildResult(NamedTuple):
    """The result of a build.

    Attributes:
        plan: The work of the build.
        unpriced: The number of sessions that had costs in the dataset before and were rebuilt without prices.
        empty: The number of sessions in which nothing ran.
        skipped: The number of files that are not logs.
        traces: The number of traces in the dataset after the build.
        failures: The name of each source that was left out, or of which a trace was left out, and the reason.
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
) -> BuildResult:
    """Build a dataset from logs, or update it: only new and changed sources are read.

    Args:
        paths: Logs, finished traces, or folders of them.
        folder: The dataset; created if it does not exist.
        engine: The engine that builds units.
        report: Called with the number of sources that are done, and the number of all sources to read.
        form: The format of all logs; empty to recognise the format of each.
        prices: The price table; None for no costs.
        salt: The salt of the hashes of a new dataset; empty for a random one.
        prune: True to remove sources whose logs do not exist any more, or were not named.

    Raises:
        CommandUseError: pyarrow is not installed; the format is unknown; the dataset has another salt.
        DataFileError: There is nothing to read; the folder is not a dataset, or another build is running in it; or
            the engine cannot build a unit.
    """
    require_library("Parquet", "pyarrow")
    search = find(paths, form, folder.path)
    with folder.writing(salt) as dataset_salt:
        if not os.path.exists(folder.copies):
            write_copies({}, folder.copies)  # the file of a new dataset, so that its tables can be opened
        job = Job(os.path.abspath(folder.path), dataset_salt, prices, _settings_hash(prices))
        units_before = folder.units()
        work = plan(search.sources, units_before, job.settings_hash, dataset_salt, prune=prune)
        for unit, kept in work.changed:
            folder.keep(unit, kept)
        failures = search.unreadable
        sources = work.sources
        done_count = 0
        report(done_count, len(sources))
        for staged_folder in engine.build_units(work.tasks, job):
            staged = folder.commit(staged_folder)
            failures += staged.left_out
            done_count += len(staged.unit.records) + len(staged.left_out)
            report(done_count, len(sources))
        units = folder.units()
        units_with_answers = [unit for unit in units if unit.answers]
        files_by_table = {}
        for table in (ANSWERS, "events", "traces"):
            files_by_table[table] = [folder.part(table, unit) for unit in units_with_answers]
        write_copies(files_by_table, folder.copies)
        folder.finish()
    records = [record for unit in units for record in unit.records]
    unpriced = 0
    if not prices:
        priced_keys = {record.key for unit in units_before if unit.prices for record in unit.records}
        unpriced = sum(source.form != TRACE and source.key(dataset_salt) in priced_keys for source in sources)
    failures += [(record.files[0].name, error) for record in records for error in record.errors]
    return BuildResult(
        work,
        unpriced=unpriced,
        empty=sum(not record.traces and not record.errors for record in records),
        skipped=search.skipped,
        traces=sum(record.traces for record in records),
        failures=failures,
    )


def _settings_hash(prices: AnyPrices | None) -> str:
    """Return a hash of everything that rows depend on besides the logs: the program, the columns and the prices."""
    columns = [(table, column.name, column.type) for table, columns in TABLES.items() for column in columns]
    price_table = None
    if prices is not None:
        models = sorted((name, sorted(model.items())) for name, model in prices.models.items())
        price_table = prices.date, prices.source, models
    return hashlib.blake2b(repr((__version__, columns, price_table)).encode(), digest_size=8).hexdigest()
