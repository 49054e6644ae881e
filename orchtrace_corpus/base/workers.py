"""Worker processes, and work on many documents by several of them.

A worker ends when its parent process ends, even if that is killed. A worker of a
`concurrent.futures.ProcessPoolExecutor` does not: it holds both ends of its queue, and outlives a parent that was
killed (`tests/base/test_workers.py` kills one). Nor does a pool report how a worker died.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from orchtrace_corpus.base.errors import CorpusError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

BATCH_BYTES = 1 << 20
"""The least size of a batch of documents for a worker."""

MAX_SENT_BYTES = 32 << 20
"""A larger batch is processed here, so that memory does not grow with the number of workers."""


class WorkerError(CorpusError):
    """A worker died."""


class Worker:
    """A process that works on messages. Ctrl-C does not interrupt it, only its parent, which ends it.

    Attributes:
        connection: The connection to it, for waiting until one of several workers answers.
    """

    def __init__(self, serve: "Callable[[Connection, *Arguments], None]", *arguments: *Arguments) -> None:
        """Start the process.

        Args:
            serve: The function that it runs, with its end of the connection and further arguments; other processes can
                import it. It returns when the connection raises `EOFError` or `OSError`: then the parent is gone.
            arguments: Further arguments of `serve`.
        """
        from multiprocessing import get_context

        context = get_context("spawn")  # a fork would inherit our ends of the other workers' pipes
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_begin, args=(serve, theirs, *arguments), daemon=True)
        with _interrupts_blocked():
            self._process.start()
        theirs.close()

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            WorkerError: The process died.
        """
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._death() from error

    def receive(self) -> Any:
        """Wait for a message, and return it; errors as of `send`."""
        try:
            return self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, negative for a signal; None while it runs."""
        return self._process.exitcode

    def _death(self) -> WorkerError:
        self._process.join(10)
        return WorkerError(
            f"a process that read traces died (exit code {self.exit_code})",
            "If memory was short, give fewer or smaller files at once.",
        )


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C if the system can; a process that is started meanwhile keeps it blocked."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(serve: "Callable[[Connection, *Arguments], None]", connection: "Connection", *arguments: *Arguments) -> None:
    """Set up a worker process, and run its function."""
    import gc
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # some systems cannot block it
    gc.disable()
    serve(connection, *arguments)


WorkerType = TypeVar("WorkerType", bound=Worker)


def wait_for_any(workers: Sequence[WorkerType]) -> list[WorkerType]:
    """Wait until a worker has sent a message or died, and return all that have."""
    from multiprocessing.connection import wait

    ready = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in ready]


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[Item], Result], documents: Iterable[Item], jobs: int = 0, *, size_bytes: Callable[[Item], int]
) -> Iterator[Result]:
    """Yield the result of `work` for each document, in order.

    Args:
        work: A function that other processes can import: one of a module, or a `partial` of it.
        documents: The documents; at most as many batches are read ahead as there are workers.
        jobs: The number of processes; 0 for that of the processors.
        size_bytes: Returns the size of a document.

    Raises:
        WorkerError: A process died, for example because memory was short.
    """
    jobs = jobs or processors()
    workers: list[Worker] = []
    idle: list[Worker] = []
    pending: deque[Worker | list[Result]] = deque()

    def next_results() -> list[Result]:
        first = pending.popleft()
        if isinstance(first, list):
            return first
        results = first.receive()
        idle.append(first)
        if isinstance(results, BaseException):
            raise results
        return list(results)

    try:
        for index, batch in enumerate(_batches(documents, size_bytes)):
            size = sum(map(size_bytes, batch))
            if index == 0 or jobs == 1 or size > MAX_SENT_BYTES:
                pending.append([work(document) for document in batch])
            else:
                if len(workers) < jobs:
                    workers.append(Worker(_serve, work))
                    idle.append(workers[-1])
                while not idle:
                    yield from next_results()
                worker = idle.pop(0)
                worker.send(batch)
                pending.append(worker)
            while pending and isinstance(pending[0], list):
                yield from next_results()
        while pending:
            yield from next_results()
    finally:
        for worker in workers:
            worker.end()


def _batches(documents: Iterable[Item], size_bytes: Callable[[Item], int]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += size_bytes(document)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _serve(connection: "Connection", work: Callable[[Item], Result]) -> None:
    """Work on batches; an error is raised in the process that sent the batch."""
    while True:
        try:
            batch = connection.recv()
        except (EOFError, OSError):
            return
        try:
            connection.send([work(document) for document in batch])
        except BrokenPipeError:
            return
        except Exception as error:
            connection.send(error)
