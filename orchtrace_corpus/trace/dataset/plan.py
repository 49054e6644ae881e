"""Find the sources of a dataset, and plan a build: which sources to read, to keep and to remove.

A source is a session of logs, or a file of finished traces; a large file of traces is several sources. A file is
unchanged if its size and its modification time are the same. If only the time differs, as after a copy, the digest of
its content decides. A session is unchanged if it has the same files, and all of them are unchanged.
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
"""Files with one finished trace on each line are read in parts of this size."""

MAX_BYTES = 16 * 1024 * 1024
MAX_SESSIONS = 100
"""The largest number of bytes and of sources in a unit; a larger source is a unit of its own."""


class Source(NamedTuple):
    """Files that are read together: a session, or a part of a file of finished traces.

    Attributes:
        form: The format of the files.
        begin: The start of the part: lines that begin at this byte or later are read.
        end: The end of the part: lines that begin at this byte or later are not read; -1 for the end of the file.
    """

    form: str
    files: tuple[LogFile, ...]
    begin: int = 0
    end: int = -1

    @property
    def name(self) -> str:
        """Return the name for messages."""
        return self.files[0].name

    @property
    def identity(self) -> tuple[str, tuple[str, ...], int]:
        """Return the identity of the source, which is the same in each build; see `SourceRecord.identity`."""
        return self.form, tuple(stored_path(file.path) for file in self.files), self.begin

    def key(self, salt: bytes) -> str:
        """Return the prefix of the keys of its traces, which is always the same for the same path and salt."""
        return hmac.digest(salt, f"{stored_path(self.files[0].path)}\0{self.begin}".encode(), "sha256").hex()[:16]


class SearchResult(NamedTuple):
    """The sources in some paths.

    Attributes:
        sources: The sources.
        skipped: The number of files in no known format.
        unreadable: Files that cannot be read: name and reason of each.
    """

    sources: list[Source]
    skipped: int
    unreadable: list[tuple[str, str]]


def find(paths: Sequence[str], form: str, dataset: str = "") -> SearchResult:
    """Find the sources in files and folders, ordered by format, without the files of the dataset itself.

    If no format is given, the format of each file is recognised from its beginning.

    Raises:
        CommandUseError: The format is unknown.
        DataFileError: There is nothing to read.
    """
    if form and form not in FORMATS and form not in importers.names():
        known = ", ".join((*importers.names(), TRACE))
        raise CommandUseError(f"there is no log format {quote(form)}", f"Formats: {known}.")
    files: dict[str, LogFile] = {}
    dataset_prefix = os.path.realpath(dataset) + os.sep if dataset else "\0"
    for path in paths:
        for file in logs.find(path).files:
            target = os.path.realpath(file.path)
            if not target.startswith(dataset_prefix):
                files.setdefault(target, file._replace(path=os.path.abspath(file.path)))
    by_format: dict[str, list[LogFile]] = {}
    unreadable = []
    for file in files.values():
        try:
            by_format.setdefault(_format_of(file, form), []).append(file)
        except DataFileError as error:
            unreadable.append((file.name, str(error)))
    skipped = len(by_format.pop("", ()))
    finished = [part for file in by_format.pop(TRACE, ()) for part in _parts(file)]
    sources = [
        Source(name, tuple(group)) for name in by_format for group in importers.group_files(name, by_format[name])
    ]
    sources += finished
    if not sources:
        raise DataFileError(
            f"{', '.join(map(quote, paths[:3]))}: {skipped} files, and none is a log or a trace that we know",
            f"Formats: {', '.join((*importers.names(), TRACE))}; --from names one.",
        )
    return SearchResult(sources, skipped, unreadable)


def _format_of(file: LogFile, form: str) -> str:
    """Return the given format of a file, or else its recognised format; empty if no format is recognised."""
    with LogReader(file) as reader:
        if form:
            return form
        if recognised := importers.recognise(reader):
            return recognised
        head = reader.head().text
    is_trace = head.lstrip()[:1] == "{" and all(f'"{name}"' in head for name in ("trace_id", "task_id", "events"))
    return TRACE if is_trace else ""


def _parts(file: LogFile) -> list[Source]:
    """Return a file of finished traces as one source, or as several if it is large and has a trace on each line."""
    size = os.path.getsize(file.path)
    if size > PART_BYTES:
        with open(file.path, "rb") as handle:
            first = handle.readline(PART_BYTES)
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            msgspec.json.decode(first, type=msgspec.Raw)
            if first.lstrip()[:1] == b"{":
                starts = range(0, size, PART_BYTES)
                return [Source(TRACE, (file,), begin, min(begin + PART_BYTES, size)) for begin in starts]
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
    """Return the BLAKE2b of a part of a file, to the end of its last line; empty if the file cannot be read."""
    blake = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as handle:
            stop = end if end >= 0 else os.fstat(handle.fileno()).st_size
            remaining = stop - handle.seek(max(begin - 1, 0))
            while remaining > 0 and (chunk := handle.read(min(remaining, 1024 * 1024))):
                blake.update(chunk)
                remaining -= len(chunk)
            if end >= 0:
                blake.update(handle.readline())
    except OSError:
        return ""
    return blake.hexdigest()


def lines(path: str, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in a part of a file, each with its first byte's position, without blank lines.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            position = begin
            if begin:
                handle.seek(begin - 1)
                position += len(handle.readline()) - 1
            while position < end and (line := handle.readline()):
                if line.strip():
                    yield position, line
                position += len(line)
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error


class Task(NamedTuple):
    """A unit to build."""

    name: str
    sources: tuple[Source, ...]


class Plan(NamedTuple):
    """The work of a build.

    Attributes:
        tasks: The units to build; units of one large source come first.
        changed: Units that lose sources, or whose files have new modification times, with the records they keep.
        unchanged: The number of unchanged sources.
        kept: The number of sources that are kept although their logs do not exist any more, or were not named.
        removed: The number of such sources that are removed.
    """

    tasks: list[Task]
    changed: list[tuple[Unit, tuple[SourceRecord, ...]]]
    unchanged: int
    kept: int
    removed: int

    @property
    def sources(self) -> list[Source]:
        """Return the sources to read."""
        return [source for task in self.tasks for source in task.sources]


def plan(sources: Sequence[Source], units: Sequence[Unit], settings: str, salt: bytes, *, prune: bool) -> Plan:
    """Compare the sources of a build with the units of the dataset. Units with other settings are rebuilt.

    With `prune`, sources are removed whose logs do not exist any more, or are not named.
    """
    unread = {source.identity: source for source in sources}
    named_parts = {(path, begin) for _, paths, begin in unread for path in paths}
    changed = []
    unchanged = vanished = 0
    for unit in units:
        kept: list[SourceRecord] = []
        for record in unit.sessions:
            source = unread.get(record.identity)
            if source is not None and unit.settings == settings:
                current = _unchanged(source, record)
                if current is not None:
                    kept.append(current)
                    unchanged += 1
                    del unread[record.identity]
            elif not any((file.path, record.begin) in named_parts for file in record.files):
                vanished += 1
                if not prune:
                    kept.append(record)
        if tuple(kept) != unit.sessions:
            changed.append((unit, tuple(kept)))
    removed = vanished if prune else 0
    return Plan(_tasks(list(unread.values()), salt), changed, unchanged, vanished - removed, removed)


def _unchanged(source: Source, record: SourceRecord) -> SourceRecord | None:
    """Return the record of a source with the current states of its files; None if their contents have changed."""
    if source.end != record.end:
        return None
    states = []
    for file, before in zip(source.files, record.files, strict=True):
        now = state(file)
        has_whole_part = record.end >= 0 and now.size >= record.end
        if not before.digest or (now.size != before.size and not has_whole_part):
            return None
        is_touched = (now.size, now.mtime_ns) != (before.size, before.mtime_ns)
        if is_touched and digest(file.path, record.begin, record.end) != before.digest:
            return None
        now.name, now.digest = before.name, before.digest
        states.append(now)
    return replace(record, files=tuple(states))


def _tasks(sources: list[Source], salt: bytes) -> list[Task]:
    """Divide sources into units of bounded size, in their order; units of one large source come first."""
    batches: list[list[Source]] = []
    large: list[list[Source]] = []
    free_bytes = 0
    for source in sources:
        size = source.end - source.begin
        if source.end < 0:
            size = sum(max(state(file).size, 0) for file in source.files)
        if size >= MAX_BYTES:
            large.append([source])
            continue
        if size > free_bytes or len(batches[-1]) >= MAX_SESSIONS:
            batches.append([])
            free_bytes = MAX_BYTES
        batches[-1].append(source)
        free_bytes -= size
    return [Task(unit_name(source.key(salt) for source in batch), tuple(batch)) for batch in (*large, *batches)]


def unit_name(keys: Iterable[str]) -> str:
    """Return the name of a unit from the keys of its sources; the same sources give the same name."""
    return hashlib.blake2b("".join(keys).encode(), digest_size=8).hexdigest()
