"""A unit of work: sources that are read, checked and measured, and written as files that wait to be committed.

Whatever process does it, on whatever machine: the folder that it writes to is that of one attempt, and nothing but the
manifest, which comes last, makes it a unit.
"""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.base.text.layout import first_and_more
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.analysis import prices
from orchtrace_corpus.trace.analysis.prices import AnyPrices
from orchtrace_corpus.trace.dataset.answers import AnswerRow, rows, write_answers
from orchtrace_corpus.trace.dataset.folder import ANSWERS, Done, LeftOut, Staged, Unit, stage
from orchtrace_corpus.trace.dataset.plan import TRACE, Source, Task, digest, lines, state, unit_name
from orchtrace_corpus.trace.dataset.tables import Writer
from orchtrace_corpus.trace.importers.core.identity import Answers
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.decode import Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.model.trace import Trace

_COLLECT_BYTES = 8 * 1024 * 1024


class Job(NamedTuple):
    """What holds for all units of a build.

    Attributes:
        folder: The dataset, by an absolute path.
        salt: Of the dataset.
        prices: What tokens cost.
        settings: What rows depend on besides the logs, in short.
    """

    folder: str
    salt: bytes
    prices: AnyPrices | None
    settings: str


def serve(connection: Connection, job: Job, log_file: str) -> None:
    """Make units until the connection ends. The main function of a process.

    It receives orders: a unit, the folder in which it is staged, which is not there yet, and the sources that were left
    out of it. It sends the number of each source before it reads it, how many there are before it finishes, and at last
    where the unit is staged; or the error, if the dataset's own files cannot be written.

    Args:
        connection: Leads to who gives orders.
        job: What holds for all of them.
        log_file: Where standard error goes; empty where it stays.
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
    found: list[Done] = []
    answers: list[AnswerRow] = []
    read = 0
    os.mkdir(place)
    with Writer(place) as writer:
        for number, source in enumerate(task.sources):
            note(number)
            found.append(_read(source, job, writer, answers))
            read += sum(max(file.size, 0) for file in found[-1].files)
            if read > _COLLECT_BYTES:  # what importers leave behind goes round in circles
                gc.collect()
                read = 0
        note(len(task.sources))
        writer.finish()
    write_answers(answers, os.path.join(place, f"{ANSWERS}.parquet"))
    date = "" if job.prices is None else job.prices.date
    name = unit_name(done.key for done in found)
    stage(Staged(Unit(name, tuple(found), job.settings, 0, date, len(answers)), left_out), place)


def _read(source: Source, job: Job, writer: Writer, answers: list[AnswerRow]) -> Done:
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
                    writer.add(trace, f"{name}-{traces}")
                    answers += rows(ids.take(trace), f"{name}-{traces}", job.salt)
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
