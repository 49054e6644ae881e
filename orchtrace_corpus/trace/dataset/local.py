"""The engine of one machine: processes that make units, each one after another.

A reader of foreign logs may run out of memory, or die. So it is a process of its own, which says what it is about to
read: the process that started it then knows what killed it. Whatever engine runs, it is a `Maker` that makes a unit.
"""

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.base.workers import Worker, WorkerError, wait_for_any
from orchtrace_corpus.trace.dataset.folder import Folder, LeftOut
from orchtrace_corpus.trace.dataset.plan import Task
from orchtrace_corpus.trace.dataset.staging import Job, serve

MOST_DEATHS = 20


class Maker(Worker):
    """A process that makes units; where it dies, another takes its place, without the source that it was at.

    Attributes:
        job: What holds for all units.
    """

    def __init__(self, job: Job, log_file: str = "") -> None:
        self.job = job
        self._log_file = log_file
        super().__init__(serve, job, log_file)

    def make(self, task: Task) -> Iterator[str]:
        """Make a unit; gives nothing, as often as that takes, and at last where the unit is staged.

        Every step but the first waits for a message of the process.

        Raises:
            DataFileError: Units cannot be written, or processes die one after another.
        """
        left_out: LeftOut = ()
        for _ in range(MOST_DEATHS + 1):
            place = os.path.join(Folder(self.job.folder).staged, f"{task.name}.{os.urandom(4).hex()}")
            reply: Any = -1
            try:
                with suppress(WorkerError):  # `receive` raises it again
                    self.send((task, place, left_out))
                while isinstance(reply, int):
                    at = reply
                    yield ""
                    reply = self.receive()
            except WorkerError:
                self.end()
                cause = self._cause
                if 0 <= at < len(task.sources):  # else it died before it read anything, or had read all of it
                    fatal = task.sources[at]
                    left_out += ((fatal.name, f"the process that read it died: {cause}"),)
                    task = task._replace(sources=tuple(source for source in task.sources if source is not fatal))
                super().__init__(serve, self.job, self._log_file)
                continue
            if isinstance(reply, DataFileError):
                raise reply
            yield str(reply)
            return
        raise DataFileError(f"{MOST_DEATHS + 1} processes died, and nothing got done; the last: {cause}")

    def end(self) -> None:
        """End the process, whatever it is doing, and remove its log if nothing is in it."""
        super().end()
        with suppress(FileNotFoundError):
            if self._log_file and not os.path.getsize(self._log_file):
                os.unlink(self._log_file)

    @property
    def _cause(self) -> str:
        """Why the process ended."""
        code = self.exit_code or 0
        if code >= 0:
            log = quote_path(self._log_file) if self._log_file else "the log of the executor"
            return f"exit code {code}; see {log}"
        name = signal.Signals(-code).name
        return f"{name}, perhaps for want of memory" if name == "SIGKILL" else name


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
            idle.extend(Maker(job, Folder(job.folder).log_file(number)) for number in numbers)
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
