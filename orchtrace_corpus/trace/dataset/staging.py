"""A unit of work: sources that are read, checked and measured, and written as files that wait to be committed.

Whatever process does it, on whatever machine: the folder that it writes to is that of one attempt, and nothing but the
manifest, which comes last, makes it a unit. A reader of foreign logs may run out of memory, or die. So whatever engine
runs, it has a `Maker`: a process that says what it is about to read, so that what killed it is known.
"""

import gc
import hmac
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_and_more
from orchtrace_corpus.base.workers import Worker, WorkerError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.analysis import prices
from orchtrace_corpus.trace.analysis.prices import AnyPrices
from orchtrace_corpus.trace.dataset.folder import ANSWERS, Done, Folder, LeftOut, Staged, Unit, stage
from orchtrace_corpus.trace.dataset.plan import TRACE, Source, Task, digest, lines, state, unit_name
from orchtrace_corpus.trace.dataset.tables import Writer, write_rows
from orchtrace_corpus.trace.importers.core.identity import Answers
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.decode import Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace

_COLLECT_BYTES = 8 * 1024 * 1024
MOST_DEATHS = 20


class Job(NamedTuple):
    """The settings that all units of a build share.

    Attributes:
        folder: The dataset, by an absolute path.
        settings: What rows depend on besides the logs, in short.
    """

    folder: str
    salt: bytes
    prices: AnyPrices | None
    settings: str


class Maker(Worker):
    """A process that makes units; where it dies, another takes its place, without the source that it was at."""

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


def serve(connection: Connection, job: Job, log_file: str) -> None:
    """Make units until the connection ends. What a process runs; its standard error goes to the log file, if any.

    It receives orders: a unit, the folder in which it is staged, which is not there yet, and the sources that were left
    out of it. It sends the number of each source before it reads it, how many there are before it finishes, and at last
    where the unit is staged; or the error, if the dataset's own files cannot be written.
    """
    if log_file:
        with open(log_file, "ab") as log:
            os.dup2(log.fileno(), 2)
    while True:
        try:
            task, place, left_out = connection.recv()
            try:
                _write(task, place, left_out, job, connection.send)
                connection.send(place)
            except ConnectionError:
                raise
            except (OSError, DataFileError) as error:
                shutil.rmtree(place, ignore_errors=True)
                why = printable(getattr(error, "strerror", None) or str(error))
                connection.send(DataFileError(f"cannot go on in {quote_path(job.folder)}: {why}"))
        except (EOFError, ConnectionError):
            return


def _write(task: Task, place: str, left_out: LeftOut, job: Job, note: Callable[[int], None]) -> None:
    done_tasks: list[Done] = []
    answers: list[tuple[str, int, str]] = []
    read = 0
    os.mkdir(place)
    with Writer(place) as writer:
        for index, source in enumerate(task.sources):
            note(index)
            done_tasks.append(_read(source, job, writer, answers))
            read += sum(max(file.size, 0) for file in done_tasks[-1].files)
            if read > _COLLECT_BYTES:  # what importers leave behind goes round in circles
                gc.collect()
                read = 0
        note(len(task.sources))
        writer.finish()
    write_rows(ANSWERS, [answers], os.path.join(place, f"{ANSWERS}.parquet"))
    date = "" if job.prices is None else job.prices.date
    name = unit_name(done.key for done in done_tasks)
    stage(Staged(Unit(name, tuple(done_tasks), job.settings, 0, date, len(answers)), left_out), place)


def _read(source: Source, job: Job, writer: Writer, answers: list[tuple[str, int, str]]) -> Done:
    """Add the traces of a source to the tables, and their answers to these; what has errors is left out."""
    files = [state(file) for file in source.files]
    name = source.key(job.salt)
    traces = 0
    errors = []
    ids = Answers()
    try:
        for trace, problem in _traces(source, job, ids):
            try:
                if trace is None:
                    errors.append(problem)
                else:
                    key = f"{name}-{traces}"
                    writer.add(trace, key)
                    for number, known in ids.take(trace).items():
                        hashed = hmac.digest(job.salt, known.encode("utf-8", "replace"), "sha256").hex()[:24]
                        answers.append((key, number, hashed))
                    traces += 1
            except InvalidTraceError as error:
                errors.append(f"{problem}: {error}" if problem else str(error))
    except EmptyLogError:
        pass  # nothing ran, which is no mistake
    except DataFileError as error:
        errors.append(str(error))
    for file, read in zip(files, source.files, strict=True):
        file.digest = digest(read.path, source.begin, source.end)
    named = tuple(first_and_more(errors, 5, "and {} more"))
    return Done(source.form, tuple(files), name, source.begin, source.end, traces, named)


def _traces(source: Source, job: Job, answers: Answers) -> Iterator[tuple[Trace | None, str]]:
    """The traces of a session; or finished ones, each with its place, whose contents become hashes.

    Of one that cannot be decoded there is only what is wrong with it.
    """
    privacy = Privacy(job.salt)
    if source.form != TRACE:
        for trace in importers.read(importers.Session(source.form, source.files), privacy, answers):
            if job.prices is not None:
                prices.apply(job.prices, trace)
            yield trace, ""
        return
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
