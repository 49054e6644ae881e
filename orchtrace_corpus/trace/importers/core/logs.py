"""Find and read log files: only inside the given paths, and no line that would take all memory.

A log may be cut off, mixed up or enormous. Parts that cannot be read are counted in the report.
"""

import os
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property, partial
from io import FileIO
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import check_regular, open_regular, regular_descriptor
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.base.json_syntax import exceeds_depth
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core.privacy import masked_path
from orchtrace_corpus.trace.importers.core.times import LATEST, NO_TIME, instant
from orchtrace_corpus.trace.importers.core.values import mapping
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport

SUFFIXES = (".jsonl", ".ndjson", ".json", ".db", ".eval")
_CHUNK_BYTES = 128 * 1024
_HEAD_BYTES = 256 * 1024
_FIRST_BYTES = 8 * 1024  # most files tell their format within these
HEAD_ROWS = 50
"""The number of rows that are read to recognise the format of a file."""
_SQLITE = b"SQLite format 3\0"
_MARK = re.compile(rb'"((?:[^"\\]++|\\.)*+)"?(\s*+:)?|[{}\[\]]')  # a name with its colon, a text, a bracket
_MOST_MARKS = 5_000  # the number of marks that are read to recognise the format of a document
_MOST_NAMES = 4  # the number of names that are taken from it at once
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MAX_TORN_PARTS = 20  # of one line: after each the whole rest is searched
_MAX_NAMES = 8  # of skipped entries in a message
_Shape = TypeVar("_Shape")
_NOTHING = object()  # the value of a line that has none; `null` is one


class EmptyLogError(DataFileError):
    """A log of a known format without any message, model call or tool call."""


class LogFile(NamedTuple):
    """A file that may be a log."""

    path: str
    name: str  # its path below the given folder, or its file name, without private parts; for events and messages

    @property
    def stem(self) -> str:
        """Return its file name without extension, masked."""
        return masked_path(os.path.splitext(os.path.basename(self.path_text))[0])

    @property
    def path_text(self) -> str:
        """Return its path in UTF-8, whatever bytes are in it: for names, not to open the file."""
        return self.path.encode("utf-8", "backslashreplace").decode()


class Found(NamedTuple):
    """The logs in a folder."""

    files: list[LogFile]  # the files that may be logs
    skipped: list[str]  # sentences about entries that may hold logs and were not read, one for each reason


def find(path: str, suffixes: Sequence[str] = SUFFIXES) -> Found:
    """Return the file itself, or the files in a folder and below it whose names end in a suffix, by name.

    Pipes, devices and links that lead out of the folder are skipped.

    Raises:
        DataFileError: The path does not exist or is no regular file, or the folder has no such file.
    """
    if os.path.isfile(path):
        return Found([LogFile(path, masked_path(os.path.basename(path)))], [])
    if not os.path.isdir(path):
        try:
            check_regular(path, os.stat(path).st_mode)
        except OSError as error:
            raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error
    inside = os.path.realpath(path) + os.sep
    above = len(os.path.join(path, ""))
    endings = tuple(suffixes)
    files: list[LogFile] = []
    unread: list[OSError] = []
    leading_out = 0
    irregular: list[str] = []
    waiting = [path]
    while waiting:
        folders: list[str] = []
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(waiting.pop()) as scanned:
                entries = sorted(scanned, key=attrgetter("name"))
        except OSError as error:
            unread.append(error)
        for entry in entries:
            is_link, is_log = entry.is_symlink(), entry.name.endswith(endings)
            leads_out = is_link and not os.path.realpath(entry.path).startswith(inside)
            is_file = is_log and (os.path.isfile(entry.path) if is_link else entry.is_file())
            if not is_link and entry.is_dir():
                folders.append(entry.path)
            elif leads_out and (is_file or os.path.isdir(entry.path)):
                leading_out += 1
            elif is_file:
                files.append(LogFile(entry.path, masked_path(entry.path[above:])))
            elif is_log and os.path.exists(entry.path) and not os.path.isdir(entry.path):
                irregular.append(masked_path(entry.path[above:]))
        waiting += reversed(folders)
    skipped = []
    if leading_out:
        lead = "1 link leads" if leading_out == 1 else f"{leading_out:,} links lead"
        skipped.append(f"{lead} out of {quote_path(path)}: not followed")
    if irregular:
        entries_skipped = "1 entry that is not a regular file"
        if len(irregular) > 1:
            entries_skipped = f"{len(irregular):,} entries that are not regular files"
        names = ", ".join(printable(name, limit=100) for name in irregular[:_MAX_NAMES])
        ending = ", …" if len(irregular) > _MAX_NAMES else ""
        skipped.append(f"skipped {entries_skipped} ({names}{ending})")
    if unread:
        which = "1 folder" if len(unread) == 1 else f"{len(unread):,} folders, the first"
        skipped.append(f"{which}, {quote_path(str(unread[0].filename))}, cannot be read: {unread[0].strerror}")
    if not files:
        hint = " ".join((f"Logs end in {', '.join(suffixes)}.", *(f"{reason}." for reason in skipped)))
        raise DataFileError(f"no log in {quote_path(path)}", hint)
    return Found(files, skipped)


def rows(
    file: LogFile, report: ImportReport, shape: Any = Any, *, keep_others: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield the records of a JSON Lines file, each with its line, one in memory at a time; report other lines.

    Args:
        file: The file.
        report: Where lines that are no record are counted.
        shape: The struct that records become, or `Raw`; members that it does not name are skipped undecoded, members of
            another kind than its fields are lost.
        keep_others: Yield records of another shape as objects instead.

    Raises:
        DataFileError: The file cannot be read.
    """
    decode = msgspec.json.Decoder(shape).decode
    try:
        with open_regular(file.path, _CHUNK_BYTES) as handle:
            for line_number, line in enumerate(iter(partial(handle.readline, budget.MAX_LINE_BYTES + 1), b""), 1):
                if line_number == 1:
                    line = line.removeprefix(BOM_UTF8)
                if len(line) > budget.MAX_LINE_BYTES:
                    report.drop(Drop.TOO_LONG, file.name, line_number)
                    while line and not line.endswith(b"\n"):
                        line = handle.readline(_CHUNK_BYTES)
                    continue
                if line.isspace():
                    continue
                try:
                    row = _NOTHING if exceeds_depth(line) else decode(line)
                except _UNDECODABLE:
                    values = _decode_leniently(line, report)
                else:
                    if type(row) is shape:  # as nearly all are
                        report.records_read += 1
                        yield line_number, row
                        continue
                    values = [row]
                for row in values:
                    if type(row) is dict:
                        report.records_read += 1
                        if shape is msgspec.Raw:
                            row = msgspec.Raw(parts.encoded(row))
                        elif shape is not Any and not keep_others:
                            row = parts.lenient(row, shape)
                        yield line_number, row
                    elif row is not _NOTHING:
                        report.drop(Drop.NO_OBJECT, file.name, line_number)
                    else:
                        report.drop(Drop.NO_JSON if line.endswith(b"\n") else Drop.CUT_OFF, file.name, line_number)
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error


def _decode_leniently(line: bytes, report: ImportReport) -> list[Any]:
    """Return the values on a line that is no single value, `_NOTHING` for a torn part; bad UTF-8 is replaced."""
    try:
        return [msgspec.json.decode(line)]
    except UnicodeDecodeError:
        report.repaired += 1
        return _decode_leniently(line.decode("utf-8", "replace").encode(), report)
    except msgspec.DecodeError:
        return _decode_objects(line.decode("utf-8", "replace").strip())
    except RecursionError:
        return [_NOTHING]


def _decode_objects(line: str) -> list[Any]:
    """Return the objects on one line, `_NOTHING` for a torn part.

    A program that was interrupted while it wrote a row continues on the same line. A row behind a torn one is found
    because the rows of a log begin alike.
    """
    import json  # few logs have such lines

    opening = line[: line.find(":") + 1]
    if not opening.startswith("{"):
        return [_NOTHING]
    next_row = re.compile(rf"[^\s:,\[]\s*+{re.escape(opening)}")  # behind any of `:,[` it is the value of a member
    scan = json.JSONDecoder().raw_decode
    values: list[Any] = []
    at, torn = 0, 0
    while at < len(line) and torn < _MAX_TORN_PARTS:
        try:
            end = scan(line, at)[1]
            values.append(msgspec.json.decode(line[at:end].encode()))
        except (ValueError, RecursionError):
            values.append(_NOTHING)
            torn += 1
            row = next_row.search(line, at)
            end = row.end() - len(opening) if row is not None else len(line)
        at = end
        while at < len(line) and line[at].isspace():
            at += 1
    if at < len(line):
        values.append(_NOTHING)
    return values


def contents(file: LogFile) -> bytes:
    """Return all bytes of a file.

    Raises:
        DataFileError: The file cannot be read, or is too large.
    """
    with Opened(file) as opened:
        status = opened.status()
        if status is not None and status.st_size > budget.MAX_DOCUMENT_BYTES:
            limit = f"{budget.MAX_DOCUMENT_BYTES >> 20} MiB"
            hint = f"Convert it to JSON Lines. {budget.how_to_raise('MAX_DOCUMENT_BYTES')}"
            raise DataFileError(f"{quote_path(file.name)} is larger than {limit}", hint)
        return opened.contents()


def document(file: LogFile) -> parts.Part:
    """Return the value of a JSON file, undecoded.

    Raises:
        DataFileError: The file cannot be read, is too large, or is no JSON.
    """
    try:
        return parts.whole(contents(file))
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataFileError(f"{quote_path(file.name)} is not JSON: {error}") from error


def documents(file: LogFile, report: ImportReport) -> Iterator[parts.Part]:
    """Yield the objects of a file, undecoded: the document that it is, those of its array, or one on each line.

    Raises:
        DataFileError: The file cannot be read.
    """
    if not file.path.endswith(LINES):
        with suppress(msgspec.DecodeError, RecursionError):
            top = parts.whole(contents(file))
            yield from top.elements() if top.is_array else (top,)
            return
    for line, raw in rows(file, report, msgspec.Raw):
        yield parts.Part(bytes(raw), raw, 0, line)


_TIMES = ("time", "timestamp", "created", "ts", "@timestamp", "asctime", "datetime")
"""The names that handlers give the time of a record."""
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
_MAX_WRAPPERS = 3
_MAX_PREFIX = 300

IsEvent = Callable[[Mapping[str, Any]], bool]


def event_in(
    record: Mapping[str, Any], is_event: IsEvent, marks: Sequence[str], depth: int = 0
) -> tuple[dict[str, Any], float]:
    """Return the event inside a record, as an object or as a text, and the record's time; empty if it has none.

    `marks` are words of which each event has one, `depth` is the number of records around this one.
    """
    for value in record.values():
        inner = mapping(value)
        if type(value) is str and any(map(value.__contains__, marks)):
            prefix = 0 if depth else max(value.find('{"', 0, _MAX_PREFIX), 0)
            inner = mapping(parts.decoded(value[prefix:]))
        if is_event(inner):
            return inner, _time_of(record)
        if inner and depth < _MAX_WRAPPERS:
            event, time = event_in(inner, is_event, marks, depth + 1)
            if event:
                return event, time if time != NO_TIME else _time_of(record)
    return {}, NO_TIME


def _time_of(record: Mapping[str, Any]) -> float:
    """Return the time of a record; `NO_TIME` for a clock time without a zone."""
    for name in _TIMES:
        value = record.get(name)
        value = value.get("timestamp") if type(value) is dict else value
        if type(value) is str and not re.search(_ZONE, value):
            continue
        is_milliseconds = isinstance(value, (float, int)) and value > LATEST
        if (time := instant(value, 1_000 if is_milliseconds else 1)) is not None:
            return time
    return NO_TIME


def events_of_text(file: LogFile, report: ImportReport, marks: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects at the ends of lines, each with its line; report torn events, by the `marks` that all have."""
    with open_regular(file.path) as handle:
        for line, text in enumerate(iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""), 1):
            event = parts.decoded(text[max(text.find(b'{"'), 0) :])
            if type(event) is dict:
                report.records_read += 1
                yield line, event
            elif any(f'"{mark}"'.encode() in text for mark in marks):
                report.drop(Drop.NO_JSON if text.endswith(b"\n") else Drop.CUT_OFF, file.name, line)


def object_lines(file: LogFile) -> int:
    """Count the lines of a log that are objects, whole or not; other lines are output of programs."""
    try:
        with open_regular(file.path) as handle:
            return sum(line.lstrip()[:1] == b"{" for line in iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""))
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error


class Head:
    """The beginning of a file, by which its format is recognised; `text` is its first bytes as text."""

    def __init__(self, data: bytes, most_rows: int) -> None:
        self._data, self.text = data, data.decode("utf-8", "replace")
        self._most_rows = most_rows
        self._known: set[str] = set()  # of the outline, so far
        self._further: Iterator[str] | None = None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Return its first records if it is JSON Lines."""
        return _first_rows(self._data, dict[str, Any], self._most_rows)

    @cached_property
    def outline(self) -> frozenset[str]:
        """Return the first member names of a document, in its outer three levels; for JSON Lines those of the rows."""
        return frozenset(_outlined(self._data, self.rows))

    def has_any(self, groups: Iterable[Set[str]]) -> bool:
        """Return True if the outline has all names of one of these groups; it is made only as far as needed."""
        self._further = further = self._further or _outlined(self._data, self.rows)
        while names := set(islice(further, _MOST_NAMES)):
            self._known |= names
            if any(map(self._known.issuperset, groups)):
                return True
        return any(map(self._known.issuperset, groups))

    @property
    def is_utf16(self) -> bool:
        """Return True if it is text in UTF-16, which no log is."""
        return self._data.startswith((BOM_UTF16_LE, BOM_UTF16_BE, b"{\0", b"\0{", b"[\0", b"\0["))


class Opened:
    """A file, opened once and read only as far as asked for; a context manager.

    Its methods raise DataFileError if the file cannot be read. `folder_cache` is a cache in which importers note facts
    about folders of files that are read together.
    """

    def __init__(self, file: LogFile, folder_cache: dict[Hashable, str] | None = None) -> None:
        self.file = file
        self.folder_cache = {} if folder_cache is None else folder_cache
        self._descriptor = -1
        self._data = b""
        self._start: Head | None = None
        self._whole: Head | None = None

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def status(self) -> os.stat_result | None:
        """Return the status of the file; None if it cannot be opened."""
        try:
            self._first(0)
        except DataFileError:
            return None
        return self._status

    def _first(self, most: int) -> bytes:
        try:
            if self._descriptor < 0:
                self._descriptor = regular_descriptor(self.file.path)  # takes less time than an object
                self._status = os.fstat(self._descriptor)
            end = min(most, self._status.st_size or most)  # files of /proc have no size
            while len(self._data) < end and (piece := os.read(self._descriptor, end - len(self._data))):
                self._data += piece
        except OSError as error:
            raise DataFileError(f"cannot read {quote_path(self.file.path)}: {error.strerror}") from error
        return self._data[:most].removeprefix(BOM_UTF8)

    def first(self) -> "Head":
        """Return its first row and little more, which is mostly enough to recognise the format."""
        if self._start is None:
            self._start = Head(self._first(_FIRST_BYTES), 1)
        return self._start

    def head(self) -> "Head":
        """Return its beginning."""
        if self._whole is None:
            data = self._first(_HEAD_BYTES)
            if data.startswith(_SQLITE):  # whose tables may still be in its write-ahead log alone
                with suppress(OSError, DataFileError), open_regular(f"{self.file.path}-wal") as journal:
                    data += journal.read(_HEAD_BYTES)
            self._whole = Head(data, HEAD_ROWS)
        return self._whole

    def contents(self) -> bytes:
        """Return all of its bytes, up to the limit for documents."""
        return self._first(budget.MAX_DOCUMENT_BYTES)

    def read_into(self, piece: memoryview, at: int) -> int:
        """Fill a piece of memory with the bytes of the file from a place on, and return their number."""
        self._first(0)
        with FileIO(self._descriptor, closefd=False) as handle:
            handle.seek(at)
            size = handle.readinto(piece)
            handle.seek(len(self._data))
        return size or 0

    def rows(self, shape: type[_Shape]) -> list[_Shape]:
        """Return the first records of a JSON Lines file as structs of a shape."""
        return _first_rows(self._first(_HEAD_BYTES), shape, HEAD_ROWS)


def head(file: LogFile) -> Head:
    """Return the beginning of a file.

    Raises:
        DataFileError: The file cannot be read.
    """
    with Opened(file) as opened:
        return opened.head()


def _outlined(data: bytes, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of an outline in order."""
    for row in rows[:5]:
        yield from row
    depth = 0
    for mark in islice(_MARK.finditer(data), 0 if rows else _MOST_MARKS):
        if mark.lastindex is None:
            depth += 1 if mark[0] in b"{[" else -1
        elif mark.lastindex == 2 and depth <= 3:
            yield mark[1].decode("utf-8", "replace")


def _first_rows(data: bytes, shape: type[_Shape], most: int) -> list[_Shape]:
    first_rows = []
    for line in data.split(b"\n", most)[:most]:
        if not line.rstrip().endswith(b"}") or exceeds_depth(line):  # cut off, or no object
            continue
        try:
            first_rows.append(msgspec.json.decode(line, type=shape))
        except _UNDECODABLE:
            values = _decode_leniently(line, ImportReport())
            first_rows += [msgspec.convert(value, shape) for value in values if type(value) is dict]
    return first_rows
