"""The process that reads logs and writes the tables of one unit at a time, in a temporary folder.

A reader of foreign logs may run out of memory, or die. So it is a process of its own, which says what it is about to
read: whoever started it knows, then, what killed it.
"""

import gc
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import NamedTuple

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.analysis import prices
from orchtrace_corpus.trace.analysis.prices import Prices
from orchtrace_corpus.trace.dataset.folder import Done, Unit
from orchtrace_corpus.trace.dataset.journal import Journal, Kept, rows_of
from orchtrace_corpus.trace.dataset.plan import Task
from orchtrace_corpus.trace.dataset.sources import TRACE, Source, digest, key, lines, state
from orchtrace_corpus.trace.dataset.tables import Writer
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.decode import Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace

_MOST_ERRORS = 5
_COLLECT_BYTES = 8 * 1024 * 1024


class Job(NamedTuple):
    """What holds for all units that a worker makes.

    Attributes:
        salt: Of the dataset.
        prices: What tokens cost.
        settings: What rows depend on besides the logs, in short.
        log_file: Where the worker's standard error goes.
        journal: Its journal.
    """

    salt: bytes
    prices: Prices | None
    settings: str
    log_file: str = ""
    journal: str = ""

    def unit(self, name: str, sessions: tuple[Done, ...]) -> Unit:
        """What a finished unit is made of."""
        return Unit(name, sessions, self.settings, prices="" if self.prices is None else self.prices.date)


class Order(NamedTuple):
    """A unit to be made.

    Attributes:
        task: It.
        folder: Where its tables are written to; it is there.
        taken: Those of its sources that need not be read.
    """

    task: Task
    folder: str
    taken: Mapping[Source, Kept]


class Begun(NamedTuple):
    """Said before a source of the order is read."""

    number: int


class Made(NamedTuple):
    """Said when the tables of the order are written: what was read, source by source."""

    sessions: tuple[Done, ...]


class Stopped(NamedTuple):
    """Said when the dataset's own files cannot be written or read: no other order would go better."""

    why: str


def serve(connection: Connection, job: Job) -> None:
    """Work off orders until there is nobody who gives any. The main function of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who gives orders decides what an interruption means
    with open(job.log_file, "wb") as log:
        os.dup2(log.fileno(), 2)
    gc.disable()
    while True:
        try:
            order: Order = connection.recv()
            connection.send(_made(order, job, connection))
        except (EOFError, ConnectionError):
            return


def _made(order: Order, job: Job, connection: Connection) -> Made | Stopped:
    try:
        return make(order, job, connection)
    except ConnectionError:
        raise
    except OSError as error:  # logs that cannot be read are no OSError here
        return Stopped(error.strerror or str(error))
    except DataFileError as error:  # nor this: it is a journal, which somebody has removed, say
        return Stopped(str(error))


def make(order: Order, job: Job, connection: Connection) -> Made:
    """Write the tables of a unit."""
    found = []
    read = 0
    with ExitStack() as stack:
        journal = None
        if len(order.task.sources) > 1:  # else all is read again, or nothing
            journal = stack.enter_context(Journal(job.journal, job.settings))
        writer = stack.enter_context(Writer(order.folder, journal.rows if journal else None))
        for number, source in enumerate(order.task.sources):
            connection.send(Begun(number))
            kept = order.taken.get(source)
            if kept is not None:
                for values in rows_of(kept):
                    writer.take(values)
                found.append(kept.done)
                continue
            found.append(_read(source, job, writer))
            if journal:
                writer.settle()
                journal.done(found[-1])
            read += sum(max(file.size, 0) for file in found[-1].files)
            if read > _COLLECT_BYTES:  # what importers leave behind goes round in circles
                gc.collect()
                read = 0
        writer.finish()
    for name in os.listdir(order.folder):
        handle = os.open(os.path.join(order.folder, name), os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    return Made(tuple(found))


def _read(source: Source, job: Job, writer: Writer) -> Done:
    """Add the traces of a source to the tables; what has errors is left out."""
    files = [state(file) for file in source.files]
    name = key(files[0].path, source.begin, job.salt)
    traces = 0
    errors = []
    try:
        for trace, problem in _finished(source, job.salt) if source.form == TRACE else _imported(source, job):
            try:
                if trace is None:
                    errors.append(problem)
                else:
                    writer.add(trace, f"{name}-{traces}")
                    traces += 1
            except InvalidTraceError as error:
                errors.append(f"{problem}: {error}" if problem else str(error))
    except EmptyLogError:
        pass  # nothing ran, which is no mistake
    except DataFileError as error:
        errors.append(str(error))
    for file, read in zip(files, source.files, strict=True):
        file.digest = digest(read.path, source.begin, source.end)
    more = len(errors) - _MOST_ERRORS
    errors[_MOST_ERRORS:] = [f"and {more} more"] if more > 0 else []
    return Done(source.form, tuple(files), name, source.begin, source.end, traces, tuple(errors))


def _imported(source: Source, job: Job) -> Iterator[tuple[Trace, str]]:
    """The traces of a session."""
    for trace in importers.read(importers.Session(source.form, source.files), Privacy(job.salt)):
        if job.prices is not None:
            prices.apply(job.prices, trace)
        yield trace, ""


def _finished(source: Source, salt: bytes) -> Iterator[tuple[Trace | None, str]]:
    """Finished traces, or what is wrong with them; contents that they keep become hashes."""
    privacy = Privacy(salt)
    path, name = source.files[0]
    found: Iterator[Document]
    if source.end < 0:
        found = (document._replace(path=name) for document in documents(path))
    else:
        found = (Document(line, f"{name}, byte {at}") for at, line in lines(path, source.begin, source.end))
    for document in found:
        where = f"{document.path}:{document.line}" if source.end < 0 else document.path
        decoded = decode(document)
        if decoded.trace is None:
            yield None, str(decoded.findings[0])
            continue
        for event in decoded.trace.events:
            if event.content_ref and not event.content_ref.startswith("sha256:"):
                event.content_ref = privacy.reference(event.content_ref)
        yield decoded.trace, where
