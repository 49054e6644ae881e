"""Builds one unit: reads, checks and measures its sources, and writes their rows to files that wait to be committed.

Each attempt, by any process on any machine, writes to a folder of its own. The folder holds a complete unit only when
its manifest is written, after all other files.

A log may make the process that reads it crash, or run out of memory. Engines therefore read logs in a `UnitBuilder`: a
process that reports each source before it reads it, so that the source that crashed it is known.
"""

import gc
import hmac
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_and_more
from orchtrace_corpus.base.workers import Worker, WorkerError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.analysis import prices
from orchtrace_corpus.trace.analysis.prices import AnyPrices
from orchtrace_corpus.trace.dataset.folder import ANSWERS, Folder, LeftOut, SourceRecord, StagedUnit, Unit, stage
from orchtrace_corpus.trace.dataset.plan import TRACE, Source, Task, digest, lines, state, unit_name
from orchtrace_corpus.trace.dataset.tables import Writer, write_rows
from orchtrace_corpus.trace.importers.core.identity import AnswerIds
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.decode import Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace

_COLLECT_BYTES = 8 * 1024 * 1024
"""The size of logs after which garbage is collected."""

MAX_CRASHES = 20
"""A unit is tried again after each of this many crashes; after one more, the build ends."""

_HASH_DIGITS = 24  # of the hash of an answer's id


class Job(NamedTuple):
    """The settings that all units of a build share.

    Attributes:
        folder: The absolute path of the dataset.
        salt: The salt of the hashes.
        prices: The price table; None without one.
        settings_hash: A hash of everything that rows depend on besides the logs.
    """

    folder: str
    salt: bytes
    prices: AnyPrices | None
    settings_hash: str


class UnitBuilder(Worker):
    """A process that builds units.

    After a crash, a new process builds the unit without the source that was being read.
    """

    def __init__(self, job: Job, log_file: str = "") -> None:
        self.job = job
        self._log_file = log_file
        super().__init__(serve, job, log_file)

    def build_unit(self, task: Task) -> Iterator[str]:
        """Build a unit: yield empty texts while the process works, and finally the folder where the unit is staged.

        The first step of the iterator sends the unit to the process; each further step waits for a message of the
        process.

        Raises:
            DataFileError: Units cannot be written, or one process after another crashes.
        """
        left_out: LeftOut = ()
        for _ in range(MAX_CRASHES + 1):
            folder = os.path.join(Folder(self.job.folder).staging_folder, f"{task.name}.{os.urandom(4).hex()}")
            source_index = -1  # the source that is being read; -1 before the first
            try:
                with suppress(WorkerError):  # `receive` raises it again
                    self.send((task, folder, left_out))
                yield ""
                while isinstance(reply := self.receive(), int):  # at last, it is the folder or an error
                    source_index = reply
                    yield ""
            except WorkerError:
                self.end()
                cause = self._exit_cause
                if 0 <= source_index < len(task.sources):  # else it crashed before the first source, or after the last
                    fatal = task.sources[source_index]
                    left_out += ((fatal.name, f"the process that read it died: {cause}"),)
                    task = task._replace(sources=tuple(source for source in task.sources if source is not fatal))
                super().__init__(serve, self.job, self._log_file)  # starts a new process
                continue
            if isinstance(reply, DataFileError):
                raise reply
            yield str(reply)
            return
        raise DataFileError(f"{MAX_CRASHES + 1} processes died, and nothing got done; the last: {cause}")

    def end(self) -> None:
        """End the process, even if it is working, and remove its log if the log is empty."""
        super().end()
        with suppress(FileNotFoundError):
            if self._log_file and not os.path.getsize(self._log_file):
                os.unlink(self._log_file)

    @property
    def _exit_cause(self) -> str:
        """The reason why the process ended."""
        code = self.exit_code or 0
        if code >= 0:
            log = quote_path(self._log_file) if self._log_file else "the log of the executor"
            return f"exit code {code}; see {log}"
        signal_name = signal.Signals(-code).name  # a negative code is the number of a signal
        return f"{signal_name}, perhaps for want of memory" if signal_name == "SIGKILL" else signal_name


def serve(connection: Connection, job: Job, log_file: str) -> None:
    """Build units until the connection ends: the main function of the process of a `UnitBuilder`.

    The process receives messages of three items: a unit, the folder to stage it in, which does not exist yet, and the
    sources that were left out of the unit. For each message, it sends the index of each source before it reads the
    source, then the number of sources, and finally the folder where the unit is staged. If the files of the dataset
    cannot be written, it sends the error instead. Standard error goes to the log file, if there is one.
    """
    if log_file:
        with open(log_file, "ab") as log:
            os.dup2(log.fileno(), 2)
    while True:
        try:
            task, folder, left_out = connection.recv()
            try:
                _write(task, folder, left_out, job, connection.send)
                connection.send(folder)
            except ConnectionError:
                raise
            except (OSError, DataFileError) as error:
                shutil.rmtree(folder, ignore_errors=True)
                reason = printable(getattr(error, "strerror", None) or str(error))
                connection.send(DataFileError(f"cannot go on in {quote_path(job.folder)}: {reason}"))
        except (EOFError, ConnectionError):
            return


def _write(task: Task, folder: str, left_out: LeftOut, job: Job, report: Callable[[int], None]) -> None:
    """Write and stage a unit; `report` is called with the index of each source, and finally with their number."""
    records: list[SourceRecord] = []
    answers: list[tuple[str, int, str]] = []  # rows of `answers`: trace, index of the event, hash of the answer's id
    read_bytes = 0  # since garbage was collected
    os.mkdir(folder)
    with Writer(folder) as writer:
        for index, source in enumerate(task.sources):
            report(index)
            records.append(_read(source, job, writer, answers))
            read_bytes += sum(max(file.size, 0) for file in records[-1].files)  # -1: there is no file
            if read_bytes > _COLLECT_BYTES:  # importers leave reference cycles behind
                gc.collect()
                read_bytes = 0
        report(len(task.sources))
        writer.flush()
    write_rows(ANSWERS, [answers], os.path.join(folder, f"{ANSWERS}.parquet"))
    unit = Unit(
        name=unit_name(record.key for record in records),
        records=tuple(records),
        settings=job.settings_hash,
        prices="" if job.prices is None else job.prices.date,
        answers=len(answers),
    )
    stage(StagedUnit(unit, left_out), folder)


def _read(source: Source, job: Job, writer: Writer, answers: list[tuple[str, int, str]]) -> SourceRecord:
    """Add the valid traces of a source to the tables, and their answers with ids to `answers`."""
    states = [state(file) for file in source.files]  # before reading, so that a later change is seen by the next build
    source_key = source.key(job.salt)
    trace_count = 0
    errors = []
    answer_ids = AnswerIds()  # filled while a log is read
    try:
        for read_trace in _traces(source, job, answer_ids):
            if read_trace.trace is None:
                errors.append(read_trace.error)
                continue
            key = f"{source_key}-{trace_count}"
            try:
                writer.add(read_trace.trace, key)
            except InvalidTraceError as error:
                errors.append(f"{read_trace.place}: {error}" if read_trace.place else str(error))
                continue
            for index, answer_id in answer_ids.take(read_trace.trace).items():
                id_hash = hmac.digest(job.salt, answer_id.encode("utf-8", "replace"), "sha256").hex()[:_HASH_DIGITS]
                answers.append((key, index, id_hash))
            trace_count += 1
    except EmptyLogError:
        pass  # a log in which nothing ran is not an error
    except DataFileError as error:
        errors.append(str(error))
    for file_state, file in zip(states, source.files, strict=True):
        file_state.digest = digest(file.path, source.begin, source.end)
    first_errors = tuple(first_and_more(errors, 5, "and {} more"))
    return SourceRecord(source.form, tuple(states), source_key, source.begin, source.end, trace_count, first_errors)


class _ReadTrace(NamedTuple):
    """A trace of a source, or the reason why it cannot be decoded.

    Attributes:
        trace: The trace; None if it cannot be decoded.
        place: The place of a finished trace in its file; empty for the trace of a log.
        error: The reason; empty if there is a trace.
    """

    trace: Trace | None
    place: str = ""
    error: str = ""


def _traces(source: Source, job: Job, answer_ids: AnswerIds) -> Iterator[_ReadTrace]:
    """Yield the traces of a source; the ids of answers are collected, and contents are replaced by hashes."""
    privacy = Privacy(job.salt)
    if source.form != TRACE:
        for trace in importers.read(importers.Session(source.form, source.files), privacy, answer_ids):
            if job.prices is not None:
                prices.apply(job.prices, trace)
            yield _ReadTrace(trace)
        return
    for document, place in _trace_documents(source):
        decoded = decode(document)
        if decoded.trace is None:
            yield _ReadTrace(None, error=str(decoded.findings[0]))
            continue
        for event in decoded.trace.events:
            if event.content_ref and not event.content_ref.startswith("sha256:"):
                event.content_ref = privacy.reference(event.content_ref)
        yield _ReadTrace(decoded.trace, place)


def _trace_documents(source: Source) -> Iterator[tuple[Document, str]]:
    """Yield the documents of a source of finished traces, each with its place for messages."""
    path, name = source.files[0]
    if source.end < 0:  # the whole file
        for document in documents(path):
            yield document._replace(path=name), f"{name}:{document.line}"
    else:
        for position, line in lines(path, source.begin, source.end):
            place = f"{name}, byte {position}"
            yield Document(line, place), place
