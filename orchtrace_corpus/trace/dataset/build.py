"""Builds a dataset: an engine makes units, and this process alone commits them, each once, whatever happens.

`Local` is the engine of one machine: processes that make units, each one after another.
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
    """An engine that makes units: the processes of one machine, or a cluster."""

    def make(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Make units; gives where each is staged, as soon as it is, and each once.

        Raises:
            DataFileError: Not all can be made.
        """


class Local:
    """Makes units by so many processes at once."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def make(self, tasks: Sequence[Task], job: Job) -> Iterator[str]:
        """Make units, as `Engine.make` has it."""
        waiting = deque(tasks)
        idle: list[Maker] = []
        running: dict[Maker, Iterator[str]] = {}
        try:
            numbers = range(min(self._jobs, len(tasks)))
            idle.extend(Maker(job, Folder(job.folder).private(f"worker-{number}.log")) for number in numbers)
            while waiting or running:
                while waiting and idle:
                    maker = idle.pop()
                    running[maker] = maker.make(waiting.popleft())
                    next(running[maker])
                for maker in wait_for_any(list(running)):
                    if place := next(running[maker]):
                        del running[maker]
                        idle.append(maker)
                        yield place
        finally:
            for maker in (*idle, *running):
                maker.end()


class Outcome(NamedTuple):
    """The result of a build.

    Attributes:
        unpriced: Sessions that were in the dataset with costs, and are built again without prices.
        empty: Sessions in which nothing ran.
        passed_over: Files that are no logs.
        traces: Traces that the dataset holds now.
        failures: What was left out of it: what it is called, and why.
    """

    plan: Plan
    unpriced: int
    empty: int
    passed_over: int
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
    """Bring a dataset to what logs say.

    Args:
        paths: Logs, finished traces, or folders of them.
        folder: The dataset; made if it is not there.
        engine: What makes units.
        report: Called with how many sources of how many are done.
        form: The format of all logs; else recognised.
        prices: What tokens cost.
        salt: The salt of the hashes, for a new dataset; else random.
        prune: Whether sessions go whose logs are not there any more, or are not named.

    Raises:
        CommandUseError: pyarrow is not installed; there is no such format; the dataset has another salt.
        DataFileError: There is nothing to read; the folder is no dataset, or another build is at work in it; or
            the engine cannot make all units.
    """
    require_library("Parquet", "pyarrow")
    found = find(paths, form, folder.path)
    with folder.writing(salt) as key:
        if not os.path.exists(folder.copies):
            write_copies({}, folder.copies)
        job = Job(os.path.abspath(folder.path), key, prices, _settings(prices))
        standing = folder.units()
        todo = plan(found.sources, standing, job.settings, key, prune=prune)
        for unit, kept in todo.changed:
            folder.keep(unit, kept)
        failures = found.unreadable
        wanted, done = todo.sources, 0
        report(done, len(wanted))
        for place in engine.make(todo.tasks, job):
            staged = folder.commit(place)
            failures += staged.left_out
            done += len(staged.unit.sessions) + len(staged.left_out)
            report(done, len(wanted))
        units = folder.units()
        tables, having = (ANSWERS, "events", "traces"), [unit for unit in units if unit.answers]
        write_copies({table: [folder.part(table, unit) for unit in having] for table in tables}, folder.copies)
        folder.finish()
    sessions = [session for unit in units for session in unit.sessions]
    priced = {session.key for unit in standing if unit.prices and not prices for session in unit.sessions}
    failures += [(session.files[0].name, why) for session in sessions for why in session.errors]
    return Outcome(
        todo,
        unpriced=sum(source.form != TRACE and source.key(key) in priced for source in wanted) if priced else 0,
        empty=sum(not session.traces and not session.errors for session in sessions),
        passed_over=found.passed_over,
        traces=sum(session.traces for session in sessions),
        failures=failures,
    )


def _settings(prices: AnyPrices | None) -> str:
    """Return the settings that rows depend on besides the logs, in short."""
    columns = [(table, column.name, column.type) for table, columns in TABLES.items() for column in columns]
    models = sorted((name, sorted(model.items())) for name, model in prices.models.items()) if prices else None
    table = prices and (prices.date, prices.source, models)
    return hashlib.blake2b(repr((__version__, columns, table)).encode(), digest_size=8).hexdigest()
