"""Finds the sources of a dataset, and plans a build: which sources to read, to keep and to remove.

A source is a session of logs, or a file of finished traces; a large file of traces is several sources. Sources are
built in groups, called units: a unit has one file in each table.

A file is unchanged if its size and its modification time are the same. If only the time differs, as after a copy, the
digest of its content decides. A session is unchanged if it has the same files, and all of them are unchanged.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.dataset.folder import FileState, SourceRecord, Unit
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import LogFile, LogReader

TRACE = "trace"
"""The format of finished traces; all other formats are formats of logs."""

FORMATS = (*importers.FORMATS, TRACE)
PART_BYTES = 8 * 1024 * 1024
"""The size of the parts in which files with one finished trace on each line are read."""

MAX_BYTES = 16 * 1024 * 1024
"""The largest number of bytes in a unit; a larger source is a unit by itself."""

MAX_SESSIONS = 100
"""The largest number of sources in a unit."""


class Source(NamedTuple):
    """Files that are read together: a session, or a part of a file of finished traces.

    Attributes:
        form: The format of the files.
        files: The files of the session, or the one file of traces.
        begin: The start of the part: lines that begin at this byte or later are read.
        end: The end of the part: lines that begin at this byte or later are not read; -1 for the end of the file.
    """

    form: str
    files: tuple[LogFile, ...]
    begin: int = 0
    end: int = -1

    @property
    def name(self) -> str:
        """The name for messages."""
        return self.files[0].name

    @property
    def identity(self) -> tuple[str, tuple[str, ...], int]:
        """The identity of the source, which is the same in each build, and equals `SourceRecord.identity`."""
        return self.form, tuple(stored_path(file.path) for file in self.files), self.begin

    def key(self, salt: bytes) -> str:
        """Return the prefix of the names of its traces in the tables; it depends on the path, the part and the salt."""
        identity = f"{stored_path(self.files[0].path)}\0{self.begin}"
        return hmac.digest(salt, identity.encode(), "sha256").hex()[:16]


class SearchResult(NamedTuple):
    """The sources in some paths.

    Attributes:
        sources: The sources.
        skipped: The number of files in no known format.
        unreadable: The name of each file that cannot be read, and the reason.
    """

    sources: list[Source]
    skipped: int
    unreadable: list[tuple[str, str]]


def find(paths: Sequence[str], form: str, dataset: str = "") -> SearchResult:
    """Find the sources in files and folders, grouped by format.

    Args:
        paths: The files and folders.
        form: The format of all files; empty to recognise the format of each file from its beginning.
        dataset: The folder of the dataset, whose files are left out; empty if there is none.

    Raises:
        CommandUseError: The format is unknown.
        DataFileError: There is nothing to read.
    """
    if form and form not in FORMATS and form not in importers.names():
        known = ", ".join((*importers.names(), TRACE))
        raise CommandUseError(f"there is no log format {quote(form)}", f"Formats: {known}.")
    files: dict[str, LogFile] = {}  # by real path, so that a file with two paths is read once
    dataset_prefix = os.path.realpath(dataset) + os.sep if dataset else ""
    for path in paths:
        for file in logs.find(path).files:
            real_path = os.path.realpath(file.path)
            is_of_dataset = bool(dataset) and real_path.startswith(dataset_prefix)
            if not is_of_dataset:
                files.setdefault(real_path, file._replace(path=os.path.abspath(file.path)))
    files_by_format: dict[str, list[LogFile]] = {}
    unreadable = []
    for file in files.values():
        try:
            files_by_format.setdefault(_format_of(file, form), []).append(file)
        except DataFileError as error:
            unreadable.append((file.name, str(error)))
    skipped = len(files_by_format.pop("", ()))
    trace_files = files_by_format.pop(TRACE, ())
    sources: list[Source] = []
    for log_format, log_files in files_by_format.items():
        sessions = importers.group_files(log_format, log_files)
        sources += [Source(log_format, tuple(session_files)) for session_files in sessions]
    for file in trace_files:
        sources += _parts(file)
    if not sources:
        raise DataFileError(
            f"{', '.join(map(quote, paths[:3]))}: {skipped} files, and none is a log or a trace that we know",
            f"Formats: {', '.join((*importers.names(), TRACE))}; --from names one.",
        )
    return SearchResult(sources, skipped, unreadable)


def _format_of(file: LogFile, form: str) -> str:
    """Return the given format, or without one the recognised format of a file; empty if none is recognised.

    Raises:
        DataFileError: The file cannot be read.
    """
    with LogReader(file) as reader:
        if form:
            return form
        if recognised := importers.recognise(reader):
            return recognised
        head = reader.head().text
    has_trace_fields = all(f'"{name}"' in head for name in ("trace_id", "task_id", "events"))
    return TRACE if head.lstrip().startswith("{") and has_trace_fields else ""


def _parts(file: LogFile) -> list[Source]:
    """Return a file of finished traces as one source, or as several if it is large and has a trace on each line."""
    size = os.path.getsize(file.path)
    if size > PART_BYTES:
        with open(file.path, "rb") as handle:
            first_line = handle.readline(PART_BYTES)
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            msgspec.json.decode(first_line, type=msgspec.Raw)  # raises if the line is not a whole JSON value
            if first_line.lstrip().startswith(b"{"):
                begins = range(0, size, PART_BYTES)
                return [Source(TRACE, (file,), begin, end=min(begin + PART_BYTES, size)) for begin in begins]
    return [Source(TRACE, (file,))]


def state(file: LogFile) -> FileState:
    """Return the current state of a file, without its digest; its size is -1 if the file does not exist."""
    size, mtime_ns = -1, 0
    with suppress(OSError):
        status = os.stat(file.path)
        size, mtime_ns = status.st_size, status.st_mtime_ns
    return FileState(stored_path(file.path), file.name, size, mtime_ns)


def stored_path(path: str) -> str:
    """Return the real path of a file as valid Unicode, with other bytes of its name escaped."""
    return os.path.realpath(path).encode("utf-8", "backslashreplace").decode()


def digest(path: str, begin: int = 0, end: int = -1) -> str:
    """Return the BLAKE2b of a part of a file; empty if the file cannot be read.

    The byte before the part is included, since it decides if a line begins with the part. So is the rest of the line in
    which the part ends.
    """
    blake = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as handle:
            stop = end if end >= 0 else os.fstat(handle.fileno()).st_size
            remaining = stop - handle.seek(max(begin - 1, 0))
            while remaining > 0:
                chunk = handle.read(min(remaining, 1024 * 1024))
                if not chunk:
                    break
                blake.update(chunk)
                remaining -= len(chunk)
            if end >= 0:
                blake.update(handle.readline())
    except OSError:
        return ""
    return blake.hexdigest()


def lines(path: str, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in a part of a file, each after the position of its first byte, without blank lines.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            position = begin
            if begin:  # skip the rest of a line that began before the part
                handle.seek(begin - 1)
                position += len(handle.readline()) - 1
            while position < end:
                line = handle.readline()
                if not line:
                    break
                if line.strip():
                    yield position, line
                position += len(line)
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error


class Task(NamedTuple):
    """A unit to build: its name and its sources."""

    name: str
    sources: tuple[Source, ...]


class Plan(NamedTuple):
    """The work of a build.

    Attributes:
        tasks: The units to build; units of one large source come first.
        changed: The units that lose sources, or whose files have new modification times, each with the records that
            stay in it.
        unchanged: The number of unchanged sources.
        kept: The number of sources that stay although their logs do not exist any more, or were not named.
        removed: The number of sources that are removed because their logs do not exist any more, or were not named.
    """

    tasks: list[Task]
    changed: list[tuple[Unit, tuple[SourceRecord, ...]]]
    unchanged: int
    kept: int
    removed: int

    @property
    def sources(self) -> list[Source]:
        """The sources to read."""
        return [source for task in self.tasks for source in task.sources]


def plan(sources: Sequence[Source], units: Sequence[Unit], settings: str, salt: bytes, *, prune: bool) -> Plan:
    """Compare the sources of a build with the units of the dataset, and return the work to do.

    Args:
        sources: The sources of the build.
        units: The units of the dataset.
        settings: The hash of the settings of the build; units with other settings are built again.
        salt: The salt of the dataset.
        prune: True to remove sources whose logs do not exist any more, or were not named.
    """
    to_read = {source.identity: source for source in sources}  # the unchanged ones are taken out below
    parts_of_build = {(path, begin) for _, paths, begin in to_read for path in paths}
    changed = []
    unchanged = vanished = 0
    for unit in units:
        kept: list[SourceRecord] = []
        for record in unit.records:
            source = to_read.get(record.identity)
            if source is not None and unit.settings == settings:
                updated = _updated_record(source, record)
                if updated is not None:
                    kept.append(updated)
                    unchanged += 1
                    del to_read[record.identity]
            # A record with other settings, or whose files now belong to another session, is dropped without a count:
            # its files are read again.
            elif not any((file.path, record.begin) in parts_of_build for file in record.files):
                vanished += 1
                if not prune:
                    kept.append(record)
        if tuple(kept) != unit.records:
            changed.append((unit, tuple(kept)))
    return Plan(
        tasks=_tasks(list(to_read.values()), salt),
        changed=changed,
        unchanged=unchanged,
        kept=0 if prune else vanished,
        removed=vanished if prune else 0,
    )


def _updated_record(source: Source, record: SourceRecord) -> SourceRecord | None:
    """Return the record of a source with the current states of its files; None if their contents have changed."""
    if source.end != record.end:
        return None
    states = []
    for file, recorded in zip(source.files, record.files, strict=True):
        current = state(file)
        if not recorded.digest:
            return None
        has_whole_part = record.end >= 0 and current.size >= record.end  # the file may have grown after the part
        if current.size != recorded.size and not has_whole_part:
            return None
        is_touched = (current.size, current.mtime_ns) != (recorded.size, recorded.mtime_ns)
        if is_touched and digest(file.path, record.begin, record.end) != recorded.digest:
            return None
        current.name = recorded.name
        current.digest = recorded.digest
        states.append(current)
    return replace(record, files=tuple(states))


def _tasks(sources: list[Source], salt: bytes) -> list[Task]:
    """Divide sources into units of bounded size, in their order; units of one large source come first."""
    units: list[list[Source]] = []
    large_units: list[list[Source]] = []
    free_bytes = 0  # in the last unit
    for source in sources:
        size = source.end - source.begin
        if source.end < 0:
            size = sum(max(state(file).size, 0) for file in source.files)
        if size >= MAX_BYTES:
            large_units.append([source])
            continue
        if not units or size > free_bytes or len(units[-1]) >= MAX_SESSIONS:
            units.append([])
            free_bytes = MAX_BYTES
        units[-1].append(source)
        free_bytes -= size
    return [Task(unit_name(source.key(salt) for source in unit), tuple(unit)) for unit in (*large_units, *units)]


def unit_name(keys: Iterable[str]) -> str:
    """Return the name of a unit from the keys of its sources; the same sources give the same name."""
    return hashlib.blake2b("".join(keys).encode(), digest_size=8).hexdigest()
