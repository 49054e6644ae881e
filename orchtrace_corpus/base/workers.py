"""Worker processes, and a function that processes many documents with several of them.

`concurrent.futures.ProcessPoolExecutor` is not used for two reasons. Its workers outlive a parent that was killed,
because they hold both ends of their queue; a worker here ends with its parent (`tests/base/test_workers.py` kills one).
And it does not report how a worker died.
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
"""A batch for a worker has as many documents as are needed for this size."""

MAX_SENT_BYTES = 32 << 20
"""A larger batch is processed in the parent process, so that memory does not grow with the number of workers."""


class WorkerError(CorpusError):
    """A worker died."""


class Worker:
    """A process that receives messages and answers them. Ctrl-C interrupts only its parent, which then ends it.

    Attributes:
        connection: The parent's end of the connection, for waiting until one of several workers answers.
    """

    def __init__(self, serve: "Callable[[Connection, *Arguments], None]", *arguments: *Arguments) -> None:
        """Start the process.

        Args:
            serve: The function that the process runs. It must be importable. Its first argument is the worker's end of
                the connection. It must return when the connection raises `EOFError` or `OSError`: then the parent has
                ended.
            arguments: The other arguments of `serve`.
        """
        from multiprocessing import get_context

        context = get_context("spawn")  # a forked process would inherit the parent's connections to other workers
        self.connection, worker_connection = context.Pipe()
        self._process = context.Process(target=_run, args=(serve, worker_connection, *arguments), daemon=True)
        with _interrupts_blocked():
            self._process.start()
        worker_connection.close()  # the process has it

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            WorkerError: The process died.
        """
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._death_error() from error

    def receive(self) -> Any:
        """Wait for a message, and return it.

        Raises:
            WorkerError: The process died.
        """
        try:
            return self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._death_error() from error

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, negative for a signal; None while it runs."""
        return self._process.exitcode

    def _death_error(self) -> WorkerError:
        self._process.join(10)  # seconds; without it, the exit code may be unknown yet
        return WorkerError(
            f"a process that read traces died (exit code {self.exit_code})",
            "If memory was short, give fewer or smaller files at once.",
        )


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C if the system can. A process that is started meanwhile inherits this and keeps it blocked."""
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


def _run(serve: "Callable[[Connection, *Arguments], None]", connection: "Connection", *arguments: *Arguments) -> None:
    """Set up a worker process, and run its function."""
    import gc
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # some systems cannot block it
    gc.disable()  # as in the parent: records form no cycles
    serve(connection, *arguments)


WorkerType = TypeVar("WorkerType", bound=Worker)


def wait_for_any(workers: Sequence[WorkerType]) -> list[WorkerType]:
    """Wait until a worker has sent a message or died, and return all that have."""
    from multiprocessing.connection import wait

    ready = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in ready]


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(
    work: Callable[[Item], Result], documents: Iterable[Item], jobs: int = 0, *, size_bytes: Callable[[Item], int]
) -> Iterator[Result]:
    """Yield the result of `work` for each document, in the order of the documents.

    Args:
        work: A function that other processes can import: a function of a module, or a `partial` of one.
        documents: The documents; at most as many batches are read ahead as there are workers.
        jobs: The number of processes; 0 for the number of processors.
        size_bytes: Returns the size of a document.

    Raises:
        WorkerError: A process died, for example because memory was short.
    """
    jobs = jobs or processors()
    workers: list[Worker] = []
    idle: list[Worker] = []
    # For each batch in order, its results, or the worker that will send them.
    pending: deque[Worker | list[Result]] = deque()

    def next_results() -> list[Result]:
        first = pending.popleft()
        if isinstance(first, list):
            return first
        answer = first.receive()
        idle.append(first)
        if isinstance(answer, BaseException):
            raise answer
        return list(answer)

    try:
        for index, batch in enumerate(_batches(documents, size_bytes)):
            size = sum(map(size_bytes, batch))
            # The first batch is processed here: often it is the only one, and a worker takes long to start.
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
            batch = []
            size = 0
    if batch:
        yield batch


def _serve(connection: "Connection", work: Callable[[Item], Result]) -> None:
    """Answer each batch with the list of its results, or with an error, which the parent process raises."""
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
