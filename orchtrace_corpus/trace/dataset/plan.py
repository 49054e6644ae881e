"""The sources of a data set, and the work of a build: new or changed sources, kept ones, removed ones.

A source is a session of logs, or a file of finished traces; a large one in parts. A file stands as it was if its size
and its time of change are the same; if only the time is another, as after a copy, the digest of its content decides. A
session stands if it has the same files, and all of them stand.
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
from orchtrace_corpus.trace.dataset.folder import Done, FileState, Unit
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import LogFile, Opened

TRACE = "trace"
"""The format of finished traces, beside those of logs."""

FORMATS = (*importers.FORMATS, TRACE)
PART_BYTES = 8 * 1024 * 1024
"""Files of finished traces, one on each line, are read in parts of this size."""

MOST_BYTES = 16 * 1024 * 1024
MOST_SESSIONS = 100
"""A unit takes sessions until it has so many, or so many bytes; a larger session is a unit by itself."""


class Source(NamedTuple):
    """Files that are read together: a session, or a part of a file of finished traces.

    Attributes:
        begin: The byte from which on lines that begin there are read.
        end: The byte from which on they are not; -1 for all.
    """

    form: str
    files: tuple[LogFile, ...]
    begin: int = 0
    end: int = -1

    @property
    def name(self) -> str:
        """Return its name in messages."""
        return self.files[0].name

    @property
    def identity(self) -> tuple[str, tuple[str, ...], int]:
        """Return the identity of the source in another build, as `Done` has it."""
        return self.form, tuple(place(file.path) for file in self.files), self.begin

    def key(self, salt: bytes) -> str:
        """Return the beginning of the keys of its traces: always the same for the same place."""
        return hmac.digest(salt, f"{place(self.files[0].path)}\0{self.begin}".encode(), "sha256").hex()[:16]


class Found(NamedTuple):
    """The sources to be read.

    Attributes:
        passed_over: How many files are nothing that we know.
        unreadable: Files that cannot be read: what they are called, and why.
    """

    sources: list[Source]
    passed_over: int
    unreadable: list[tuple[str, str]]


def find(paths: Sequence[str], form: str, dataset: str = "") -> Found:
    """The sources in files and folders, those of one format after another; files of the dataset itself are none.

    Where no format is given, that of each file is recognised from how it begins.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is nothing to read.
    """
    if form and form not in FORMATS and form not in importers.names():
        known = ", ".join((*importers.names(), TRACE))
        raise CommandUseError(f"there is no log format {quote(form)}", f"Formats: {known}.")
    files: dict[str, LogFile] = {}
    own = os.path.realpath(dataset) + os.sep if dataset else "\0"
    for path in paths:
        for file in logs.find(path).files:
            target = os.path.realpath(file.path)
            if not target.startswith(own):
                files.setdefault(target, file._replace(path=os.path.abspath(file.path)))
    by_format: dict[str, list[LogFile]] = {}
    unreadable = []
    for file in files.values():
        try:
            by_format.setdefault(_format_of(file, form), []).append(file)
        except DataFileError as error:
            unreadable.append((file.name, str(error)))
    passed_over = len(by_format.pop("", ()))
    finished = [part for file in by_format.pop(TRACE, ()) for part in _parts(file)]
    found = [Source(name, tuple(group)) for name in by_format for group in importers.grouped(name, by_format[name])]
    found += finished
    if not found:
        raise DataFileError(
            f"{', '.join(map(quote, paths[:3]))}: {passed_over} files, and none is a log or a trace that we know",
            f"Formats: {', '.join((*importers.names(), TRACE))}; --from names one.",
        )
    return Found(found, passed_over, unreadable)


def _format_of(file: LogFile, form: str) -> str:
    """The format of a file that can be read: the one given, else as it is recognised; empty where it is of none."""
    with Opened(file) as opened:
        if found := form or importers.recognise(opened):
            return found
        head = opened.head().text
    is_trace = head.lstrip()[:1] == "{" and all(f'"{name}"' in head for name in ("trace_id", "task_id", "events"))
    return TRACE if is_trace else ""


def _parts(file: LogFile) -> list[Source]:
    """A file of finished traces as a whole, or in parts where it is large and has a trace on each line."""
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
    """A file as it is, without its digest; with a size of -1 where it is not there."""
    size, changed = -1, 0
    with suppress(OSError):
        status = os.stat(file.path)
        size, changed = status.st_size, status.st_mtime_ns
    return FileState(place(file.path), file.name, size, changed)


def place(path: str) -> str:
    """Return the path of a file, links resolved, as text that can be stored whatever its name."""
    return os.path.realpath(path).encode("utf-8", "backslashreplace").decode()


def digest(path: str, begin: int = 0, end: int = -1) -> str:
    """BLAKE2b of what is read of a file, to the end of the last line; empty where it cannot be read."""
    found = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as handle:
            left = (end if end >= 0 else os.fstat(handle.fileno()).st_size) - handle.seek(max(begin - 1, 0))
            while left > 0 and (chunk := handle.read(min(left, 1024 * 1024))):
                found.update(chunk)
                left -= len(chunk)
            if end >= 0:
                found.update(handle.readline())
    except OSError:
        return ""
    return found.hexdigest()


def lines(path: str, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in a part of a file, each with the byte at which it begins; blank ones are left out.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            at = begin
            if begin:
                handle.seek(begin - 1)
                at += len(handle.readline()) - 1
            while at < end and (line := handle.readline()):
                if line.strip():
                    yield at, line
                at += len(line)
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error


class Task(NamedTuple):
    """A unit to be made."""

    name: str
    sources: tuple[Source, ...]


class Plan(NamedTuple):
    """The work of a build.

    Attributes:
        tasks: Units to be made, the largest sessions first.
        changed: Units that lose sessions, or of which nothing but the times of files has changed; with what they keep.
        unchanged: How many sessions stand as they were.
        kept: How many sessions stay although their logs are not there, or were not named.
        removed: How many sessions go because of that.
    """

    tasks: list[Task]
    changed: list[tuple[Unit, tuple[Done, ...]]]
    unchanged: int
    kept: int
    removed: int

    @property
    def sources(self) -> list[Source]:
        """Return the sources that are read."""
        return [source for task in self.tasks for source in task.sources]


def plan(sources: Sequence[Source], units: Sequence[Unit], settings: str, salt: bytes, *, prune: bool) -> Plan:
    """Compare what is to be in a dataset with what is in it; units with other settings are made anew.

    With `prune`, sessions go whose logs are not there any more, or are not named.
    """
    wanted = {source.identity: source for source in sources}
    taken = {(path, begin) for _, paths, begin in wanted for path in paths}
    changed = []
    unchanged = vanished = 0
    for unit in units:
        kept: list[Done] = []
        for done in unit.sessions:
            source = wanted.get(done.identity)
            if source is not None and unit.settings == settings:
                now = _standing(source, done)
                if now is not None:
                    kept.append(now)
                    unchanged += 1
                    del wanted[done.identity]
            elif not any((file.path, done.begin) in taken for file in done.files):
                vanished += 1
                kept += [] if prune else [done]
        if tuple(kept) != unit.sessions:
            changed.append((unit, tuple(kept)))
    removed = vanished if prune else 0
    return Plan(_tasks(list(wanted.values()), salt), changed, unchanged, vanished - removed, removed)


def _standing(source: Source, done: Done) -> Done | None:
    """Return the record of a source with its files as they are now, if their contents are the same."""
    if source.end != done.end:
        return None
    found = []
    for file, known in zip(source.files, done.files, strict=True):
        now = state(file)
        is_same_part = done.end >= 0 and now.size >= done.end
        if not known.digest or (now.size != known.size and not is_same_part):
            return None
        is_touched = (now.size, now.mtime_ns) != (known.size, known.mtime_ns)
        if is_touched and digest(file.path, done.begin, done.end) != known.digest:
            return None
        now.name, now.digest = known.name, known.digest
        found.append(now)
    return replace(done, files=tuple(found))


def _tasks(sources: list[Source], salt: bytes) -> list[Task]:
    """The sources in units of bounded size, in their order; units of one session come first."""
    batches: list[list[Source]] = []
    alone: list[list[Source]] = []
    room = 0
    for source in sources:
        weight = sum(max(state(file).size, 0) for file in source.files) if source.end < 0 else source.end - source.begin
        if weight >= MOST_BYTES:
            alone.append([source])
            continue
        if weight > room or len(batches[-1]) >= MOST_SESSIONS:
            batches.append([])
            room = MOST_BYTES
        batches[-1].append(source)
        room -= weight
    return [Task(unit_name(source.key(salt) for source in batch), tuple(batch)) for batch in (*alone, *batches)]


def unit_name(keys: Iterable[str]) -> str:
    """The name of a unit: the same for the same sessions, of which the keys are given."""
    return hashlib.blake2b("".join(keys).encode(), digest_size=8).hexdigest()
