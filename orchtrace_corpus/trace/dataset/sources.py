"""What a dataset is made of: sessions of logs, and files of finished traces, large ones in parts."""

import hashlib
import hmac
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.dataset.folder import FileState
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import LogFile, Opened

TRACE = "trace"
"""The format of finished traces, beside those of logs."""

FORMATS = (*importers.FORMATS, TRACE)
PART_BYTES = 8 * 1024 * 1024
"""Files of finished traces, one on each line, are read in parts of this size."""

_CHUNK_BYTES = 1024 * 1024
_KEY_DIGITS = 16


class Source(NamedTuple):
    """Files that are read together: a session, or a part of a file of finished traces.

    Attributes:
        form: The format.
        files: The files.
        begin: The byte from which on lines that begin there are read.
        end: The byte from which on they are not; -1 for all.
    """

    form: str
    files: tuple[LogFile, ...]
    begin: int = 0
    end: int = -1

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.files[0].name

    def key(self, salt: bytes) -> str:
        """What the keys of its traces begin with: always the same for the same place."""
        return key(place(self.files[0].path), self.begin, salt)


class Found(NamedTuple):
    """What is to be read.

    Attributes:
        sources: It.
        passed_over: How many files are nothing that we know.
        unreadable: Files that cannot be read: what they are called, and why.
    """

    sources: list[Source]
    passed_over: int
    unreadable: list[tuple[str, str]]


def find(paths: Sequence[str], form: str, dataset: str = "") -> Found:
    """The sources in files and folders, those of one format after another.

    Args:
        paths: Files and folders.
        dataset: The folder of the dataset, whose own files are none.
        form: The format of all of them; else each file's is recognised from how it begins.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is nothing to read.
    """
    if form and form not in FORMATS:
        raise CommandUseError(f"there is no log format {quote(form)}", f"Formats: {', '.join(FORMATS)}.")
    files: dict[str, LogFile] = {}
    own = os.path.realpath(dataset) + os.sep if dataset else "\0"
    for path in paths:
        for file in logs.find(path).files:
            target = os.path.realpath(file.path)
            if not target.startswith(own):
                files.setdefault(target, file)
    by_format: dict[str, list[LogFile]] = {}
    unreadable = []
    for file in files.values():
        try:
            by_format.setdefault(_format_of(file, form), []).append(file)
        except DataFileError as error:
            unreadable.append((file.name, str(error)))
    passed_over = len(by_format.pop("", ()))
    found = [
        Source(name, tuple(group))
        for name in by_format
        if name != TRACE
        for group in importers.grouped(name, by_format[name])
    ]
    found += [part for file in by_format.get(TRACE, ()) for part in _parts(file)]
    if not found:
        raise DataFileError(
            f"{', '.join(map(quote, paths[:3]))}: {passed_over} files, and none is a log or a trace that we know",
            f"Formats: {', '.join(FORMATS)}; --from names one.",
        )
    return Found(found, passed_over, unreadable)


def _format_of(file: LogFile, form: str) -> str:
    """The format of a file that can be read: the one given, else as it is recognised; empty where it is of none."""
    with Opened(file) as opened:
        recognised = "" if form else importers.recognise(opened)
        return recognised or form or (TRACE if _is_trace(opened.head().text) else "")


def _is_trace(beginning: str) -> bool:
    return beginning.lstrip()[:1] == "{" and all(f'"{name}"' in beginning for name in ("trace_id", "task_id", "events"))


def _parts(file: LogFile) -> Iterator[Source]:
    """A file of finished traces as a whole, or in parts where it is large and has a trace on each line."""
    size = os.path.getsize(file.path)
    if size <= PART_BYTES or not _is_lines(file):
        yield Source(TRACE, (file,))
        return
    for begin in range(0, size, PART_BYTES):
        yield Source(TRACE, (file,), begin, min(begin + PART_BYTES, size))


def _is_lines(file: LogFile) -> bool:
    """Whether the first line of a file is a trace by itself."""
    import msgspec

    with open(file.path, "rb") as handle:
        first = handle.readline(PART_BYTES)
    try:
        msgspec.json.decode(first, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return first.lstrip()[:1] == b"{"


def key(where: str, begin: int, salt: bytes) -> str:
    """What the keys of traces begin with that are read from a byte on of the file, or the first file, at a place."""
    return hmac.digest(salt, f"{where}\0{begin}".encode(), "sha256").hex()[:_KEY_DIGITS]


def size(file: LogFile) -> int:
    """The bytes of a file; 0 where it is not there."""
    try:
        return os.stat(file.path).st_size
    except OSError:
        return 0


def state(file: LogFile) -> FileState:
    """A file as it is, without its digest; with a size of -1 where it is not there."""
    try:
        status = os.stat(file.path)
    except OSError:
        return FileState(place(file.path), file.name, -1, 0)
    return FileState(place(file.path), file.name, status.st_size, status.st_mtime_ns)


def place(path: str) -> str:
    """Where a file is, links followed, as text that can be written down whatever the file is called."""
    return os.path.realpath(path).encode("utf-8", "backslashreplace").decode()


def digest(path: str, begin: int = 0, end: int = -1) -> str:
    """BLAKE2b of what is read of a file, to the end of the last line; empty where it cannot be read."""
    found = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as handle:
            left = (end if end >= 0 else os.fstat(handle.fileno()).st_size) - handle.seek(max(begin - 1, 0))
            while left > 0 and (chunk := handle.read(min(left, _CHUNK_BYTES))):
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
