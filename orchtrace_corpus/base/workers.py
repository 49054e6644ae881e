"""The same work on many documents: in this process while they are few, in several as soon as they are many.

A worker holds one batch at a time, and ends by itself when this process is gone, however that came about.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from orchtrace_corpus.base.errors import CorpusError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Given = TypeVar("Given")
Made = TypeVar("Made")

BATCH_BYTES = 1 << 20
"""Documents are handed on in batches of at least so many bytes."""

MOST_SENT_BYTES = 32 << 20
"""A batch larger than this stays in this process, so that memory does not grow with the number of processes."""


class WorkerError(CorpusError):
    """A process that worked on a batch is gone."""


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(
    work: Callable[[Given], Made], documents: Iterable[Given], jobs: int = 0, *, size_bytes: Callable[[Given], int]
) -> Iterator[Made]:
    """What `work` makes of each document, in their order.

    Args:
        work: A function that other processes can import: one of a module, or a `partial` of one.
        documents: Read only as far ahead as there are processes to work on them.
        jobs: How many processes; as many as there are processors if 0.
        size_bytes: How large a document is.

    Raises:
        WorkerError: A process died, for instance because memory was short.
    """
    jobs = jobs or processors()
    workers: list[_Worker[Given, Made]] = []
    pending: deque[_Worker[Given, Made] | list[Made]] = deque()
    try:
        for number, batch in enumerate(_batches(documents, size_bytes)):
            size = sum(map(size_bytes, batch))
            if number == 0 or jobs == 1 or size > MOST_SENT_BYTES:
                pending.append([work(document) for document in batch])
            else:
                if len(workers) < jobs:
                    workers.append(_Worker(work))
                while all(worker.is_busy for worker in workers):
                    yield from _next(pending)
                worker = next(worker for worker in workers if not worker.is_busy)
                worker.take(batch)
                pending.append(worker)
            while pending and isinstance(pending[0], list):
                yield from _next(pending)
        while pending:
            yield from _next(pending)
    finally:
        for worker in workers:
            worker.end()


def _batches(documents: Iterable[Given], size_bytes: Callable[[Given], int]) -> Iterator[list[Given]]:
    batch: list[Given] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += size_bytes(document)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _next(pending: "deque[_Worker[Given, Made] | list[Made]]") -> list[Made]:
    first = pending.popleft()
    return first if isinstance(first, list) else first.made()


class _Worker(Generic[Given, Made]):
    """A process that works on one batch after another.

    Attributes:
        is_busy: Whether it has a batch of which nobody has asked for what was made.
    """

    def __init__(self, work: Callable[[Given], Made]) -> None:
        import signal
        from multiprocessing import get_context, resource_tracker

        context = get_context("spawn")  # a fork would hold this process's ends of the other workers' pipes
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        # Ctrl-C is for this process, which then ends its workers: they begin, and stay, with it blocked.
        resource_tracker.ensure_running()  # it lets signals through again when it begins
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.is_busy = False

    def take(self, batch: list[Given]) -> None:
        """Begin to work on a batch."""
        self.is_busy = True
        try:
            self._connection.send(batch)
        except OSError as error:
            raise self._death() from error

    def made(self) -> list[Made]:
        """What was made of the batch, waited for."""
        try:
            found = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        self.is_busy = False
        if isinstance(found, BaseException):
            raise found
        return list(found)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def _death(self) -> WorkerError:
        self._process.join(1)
        code = self._process.exitcode
        return WorkerError(
            f"a process that read traces died (exit code {code})",
            "If memory was short, give fewer or smaller files at once.",
        )


def _serve(connection: "Connection", work: Callable[[Given], Made]) -> None:
    """What a worker runs: what goes wrong with a document is raised in the process that asked."""
    import gc

    gc.disable()
    while True:
        try:
            batch = connection.recv()
        except (EOFError, OSError):  # the process that asked is gone
            return
        try:
            connection.send([work(document) for document in batch])
        except BrokenPipeError:
            return
        except Exception as error:
            connection.send(error)
