"""Find and read log files, which may be cut off, damaged or enormous. The report counts what cannot be read."""

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
from orchtrace_corpus.trace.importers.core import json_parts
from orchtrace_corpus.trace.importers.core.privacy import masked_path
from orchtrace_corpus.trace.importers.core.times import LATEST, NO_TIME, instant
from orchtrace_corpus.trace.importers.core.values import as_object
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport

SUFFIXES = (".jsonl", ".ndjson", ".json", ".db", ".eval")
_CHUNK_BYTES = 128 * 1024
_HEAD_BYTES = 256 * 1024
_FIRST_BYTES = 8 * 1024  # enough to recognise the format of most files
HEAD_ROWS = 50
"""The number of rows that are read to recognise the format of a file."""
_SQLITE = b"SQLite format 3\0"
_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)"?(\s*+:)?|[{}\[\]]')
"""A token of JSON: a bracket, or a text; a text with a colon behind it is a member name."""
_MAX_TOKENS = 5_000  # the tokens of a document that are read to recognise its format
_NAMES_AT_ONCE = 4  # the member names that are read before they are compared
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MAX_TORN_PARTS = 20  # torn parts of one line; after each of them the rest of the line is searched
_MAX_NAMES = 8  # names of skipped entries in a message
_Shape = TypeVar("_Shape")
_NO_VALUE = object()  # stands for a line, or a part of it, that is not JSON (None is the value of `null`)


class EmptyLogError(DataFileError):
    """A log of a known format without any message, model call or tool call."""


class LogFile(NamedTuple):
    """A file that may be a log."""

    path: str
    name: str  # its path below the given folder, or its file name, masked; events and messages show it

    @property
    def stem(self) -> str:
        """Return the file name without extension, masked."""
        return masked_path(os.path.splitext(os.path.basename(self.path_text))[0])

    @property
    def path_text(self) -> str:
        """Return the path for names and messages: bytes that are not UTF-8 are escaped."""
        return self.path.encode("utf-8", "backslashreplace").decode()


class FoundLogs(NamedTuple):
    """The files in a folder that may be logs."""

    files: list[LogFile]
    skipped: list[str]  # a sentence for each reason why entries of the folder were skipped


def find(path: str, suffixes: Sequence[str] = SUFFIXES) -> FoundLogs:
    """Return a file, or the files in a folder and its subfolders whose names end in a suffix, sorted by name.

    In a folder, pipes, devices and links that lead out of it are skipped. Raise DataFileError if there is no file.
    """
    if os.path.isfile(path):
        return FoundLogs([LogFile(path, masked_path(os.path.basename(path)))], [])
    if not os.path.isdir(path):
        try:
            check_regular(path, os.stat(path).st_mode)
        except OSError as error:
            raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error
    real_root = os.path.realpath(path) + os.sep
    prefix_length = len(os.path.join(path, ""))
    endings = tuple(suffixes)
    files: list[LogFile] = []
    folder_errors: list[OSError] = []
    outside_links = 0  # the number of links that lead out of the folder
    irregular: list[str] = []  # the names of entries that are no regular files
    waiting = [path]
    while waiting:
        folders: list[str] = []
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(waiting.pop()) as scanned:
                entries = sorted(scanned, key=attrgetter("name"))
        except OSError as error:
            folder_errors.append(error)
        for entry in entries:
            is_link = entry.is_symlink()
            has_ending = entry.name.endswith(endings)
            is_file = has_ending and (os.path.isfile(entry.path) if is_link else entry.is_file())
            leads_out = is_link and not os.path.realpath(entry.path).startswith(real_root)
            if not is_link and entry.is_dir():
                folders.append(entry.path)
            elif leads_out and (is_file or os.path.isdir(entry.path)):
                outside_links += 1
            elif is_file:
                files.append(LogFile(entry.path, masked_path(entry.path[prefix_length:])))
            elif has_ending and os.path.exists(entry.path) and not os.path.isdir(entry.path):
                irregular.append(masked_path(entry.path[prefix_length:]))
        waiting += reversed(folders)  # the last one is read next
    skipped = []
    if outside_links:
        subject = "1 link leads" if outside_links == 1 else f"{outside_links:,} links lead"
        skipped.append(f"{subject} out of {quote_path(path)}: not followed")
    if irregular:
        what = "1 entry that is not a regular file"
        if len(irregular) > 1:
            what = f"{len(irregular):,} entries that are not regular files"
        names = ", ".join(printable(name, limit=100) for name in irregular[:_MAX_NAMES])
        ending = ", …" if len(irregular) > _MAX_NAMES else ""
        skipped.append(f"skipped {what} ({names}{ending})")
    if folder_errors:
        subject = "1 folder" if len(folder_errors) == 1 else f"{len(folder_errors):,} folders, the first"
        first = folder_errors[0]
        skipped.append(f"{subject}, {quote_path(str(first.filename))}, cannot be read: {first.strerror}")
    if not files:
        hint = f"Logs end in {', '.join(suffixes)}."
        for sentence in skipped:
            hint += f" {sentence}."
        raise DataFileError(f"no log in {quote_path(path)}", hint)
    return FoundLogs(files, skipped)


def rows(
    file: LogFile, report: ImportReport, shape: Any = Any, *, keep_others: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield the records of a JSON Lines file, each with its line number, one in memory at a time.

    Args:
        file: The file.
        report: Where records, and lines without one, are counted.
        shape: The type of the records: a struct, `Raw`, or `Any` for objects. Members without a field in the struct
            are not decoded; members of a type that the field does not have are left out.
        keep_others: True to yield a record that does not fit the struct as an object.

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
                    row = _NO_VALUE if exceeds_depth(line) else decode(line)
                except _UNDECODABLE:
                    values = _decode_leniently(line, report)
                else:
                    if type(row) is shape:  # as nearly all rows
                        report.records_read += 1
                        yield line_number, row
                        continue
                    values = [row]
                for row in values:
                    if type(row) is dict:
                        report.records_read += 1
                        if shape is msgspec.Raw:
                            row = msgspec.Raw(json_parts.encoded(row))
                        elif shape is not Any and not keep_others:
                            row = json_parts.lenient(row, shape)
                        yield line_number, row
                    elif row is not _NO_VALUE:
                        report.drop(Drop.NO_OBJECT, file.name, line_number)
                    else:
                        report.drop(Drop.NO_JSON if line.endswith(b"\n") else Drop.CUT_OFF, file.name, line_number)
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error


def _decode_leniently(line: bytes, report: ImportReport) -> list[Any]:
    """Return the values of a line that is not UTF-8 or not a single value; `_NO_VALUE` for a part that is not JSON."""
    try:
        return [msgspec.json.decode(line)]
    except UnicodeDecodeError:
        report.repaired += 1
        return _decode_leniently(line.decode("utf-8", "replace").encode(), report)
    except msgspec.DecodeError:
        return _decode_objects(line.decode("utf-8", "replace").strip())
    except RecursionError:
        return [_NO_VALUE]


def _decode_objects(line: str) -> list[Any]:
    """Return the objects of a line, `_NO_VALUE` for each part that is not JSON.

    A program that is interrupted while it writes a row leaves the row torn, and writes the next row on the same line.
    The next row is found by its first member, which all rows of a log have in common.
    """
    import json  # few logs have such lines

    opening = line[: line.find(":") + 1]  # such as `{"type":`
    if not opening.startswith("{"):
        return [_NO_VALUE]
    next_row = re.compile(rf"[^\s:,\[]\s*+{re.escape(opening)}")  # after `:`, `,` or `[` it is a value inside a row
    scan = json.JSONDecoder().raw_decode
    values: list[Any] = []
    start = 0
    torn_parts = 0
    while start < len(line) and torn_parts < _MAX_TORN_PARTS:
        try:
            _, end = scan(line, start)
            values.append(msgspec.json.decode(line[start:end].encode()))
        except (ValueError, RecursionError):
            values.append(_NO_VALUE)
            torn_parts += 1
            match = next_row.search(line, start)
            end = len(line) if match is None else match.end() - len(opening)
        start = end
        while start < len(line) and line[start].isspace():
            start += 1
    if start < len(line):  # the rest, after too many torn parts
        values.append(_NO_VALUE)
    return values


def contents(file: LogFile) -> bytes:
    """Return all bytes of a file; raise DataFileError if it cannot be read or is too large."""
    with LogReader(file) as reader:
        status = reader.status()
        if status is not None and status.st_size > budget.MAX_DOCUMENT_BYTES:
            limit = f"{budget.MAX_DOCUMENT_BYTES >> 20} MiB"
            hint = f"Convert it to JSON Lines. {budget.how_to_raise('MAX_DOCUMENT_BYTES')}"
            raise DataFileError(f"{quote_path(file.name)} is larger than {limit}", hint)
        return reader.contents()


def document(file: LogFile) -> json_parts.Part:
    """Return the undecoded value of a JSON file; raise DataFileError if it cannot be read, is too large or not JSON."""
    try:
        return json_parts.whole(contents(file))
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataFileError(f"{quote_path(file.name)} is not JSON: {error}") from error


def documents(file: LogFile, report: ImportReport) -> Iterator[json_parts.Part]:
    """Yield the undecoded objects of a file: one document, the elements of an array, or one object on each line."""
    if not file.path.endswith(LINES):
        with suppress(msgspec.DecodeError, RecursionError):
            whole = json_parts.whole(contents(file))
            if whole.is_array:
                yield from whole.elements()
            else:
                yield whole
            return
    for line, raw in rows(file, report, msgspec.Raw):
        yield json_parts.Part(bytes(raw), raw, 0, line)


_TIME_MEMBERS = ("time", "timestamp", "created", "ts", "@timestamp", "asctime", "datetime")
"""The members in which logging handlers write the time of a record."""
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
_MAX_WRAPPERS = 3  # the most records around an event
_MAX_PREFIX = 300  # the most characters before the JSON object in a text

IsEvent = Callable[[Mapping[str, Any]], bool]


def event_in(
    record: Mapping[str, Any], is_event: IsEvent, markers: Sequence[str], depth: int = 0
) -> tuple[dict[str, Any], float]:
    """Return the event inside the record of a logging handler, and its time; an empty object if there is no event.

    The event is a member of the record, as an object or as JSON in a text with one of `markers`, or is inside another
    record. `depth` is the number of records around this one.
    """
    for value in record.values():
        inner = as_object(value)
        if type(value) is str and any(marker in value for marker in markers):
            start = 0
            if depth == 0:  # a handler may write a prefix, such as a time
                start = max(value.find('{"', 0, _MAX_PREFIX), 0)
            inner = as_object(json_parts.decoded(value[start:]))
        if is_event(inner):
            return inner, _time_of(record)
        if inner and depth < _MAX_WRAPPERS:
            event, time = event_in(inner, is_event, markers, depth + 1)
            if event:
                if time == NO_TIME:
                    time = _time_of(record)
                return event, time
    return {}, NO_TIME


def _time_of(record: Mapping[str, Any]) -> float:
    """Return the time of a record in seconds since 1970; `NO_TIME` if it has none, or only one without a time zone."""
    for name in _TIME_MEMBERS:
        value = record.get(name)
        if type(value) is dict:
            value = value.get("timestamp")
        if type(value) is str and not re.search(_ZONE, value):
            continue
        is_milliseconds = isinstance(value, (float, int)) and value > LATEST
        time = instant(value, per_second=1_000 if is_milliseconds else 1)
        if time is not None:
            return time
    return NO_TIME


def events_of_text(file: LogFile, report: ImportReport, markers: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects at the ends of lines, each with its line number; a line with only a marker is reported."""
    with open_regular(file.path) as handle:
        for line_number, line in enumerate(iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""), 1):
            start = max(line.find(b'{"'), 0)
            event = json_parts.decoded(line[start:])
            if type(event) is dict:
                report.records_read += 1
                yield line_number, event
            elif any(f'"{marker}"'.encode() in line for marker in markers):
                report.drop(Drop.NO_JSON if line.endswith(b"\n") else Drop.CUT_OFF, file.name, line_number)


def object_lines(file: LogFile) -> int:
    """Return the number of lines that begin like an object; other lines are output of programs."""
    try:
        with open_regular(file.path) as handle:
            return sum(line.lstrip()[:1] == b"{" for line in iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""))
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error


class Head:
    """The beginning of a file, by which its format is recognised."""

    def __init__(self, data: bytes, max_rows: int) -> None:
        self.text = data.decode("utf-8", "replace")
        self._data, self._max_rows = data, max_rows
        self._outline: set[str] = set()  # the names of the outline that `has_any` has read so far
        self._unread_names: Iterator[str] | None = None  # the other names of the outline; None before the first call

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Return the first records of a JSON Lines file; none of other files."""
        return _first_rows(self._data, dict[str, Any], self._max_rows)

    @cached_property
    def outline(self) -> frozenset[str]:
        """Return the member names of the first rows, or of the outer three levels of a document."""
        return frozenset(_outline_names(self._data, self.rows))

    def has_any(self, groups: Iterable[Set[str]]) -> bool:
        """Return True if the outline has all names of one of these groups. It is read only as far as needed."""
        if self._unread_names is None:
            self._unread_names = _outline_names(self._data, self.rows)
        while True:
            names = set(islice(self._unread_names, _NAMES_AT_ONCE))
            self._outline |= names
            if any(map(self._outline.issuperset, groups)):
                return True
            if not names:
                return False

    @property
    def is_utf16(self) -> bool:
        """Return True if the file is text in UTF-16, which no importer reads."""
        return self._data.startswith((BOM_UTF16_LE, BOM_UTF16_BE, b"{\0", b"\0{", b"[\0", b"\0["))


class LogReader:
    """A context manager that opens a file on first use, and reads only as much of it as is asked for.

    Its methods raise DataFileError if the file cannot be read. Importers keep facts about folders in `folder_cache` for
    the other files that are read together.
    """

    def __init__(self, file: LogFile, folder_cache: dict[Hashable, str] | None = None) -> None:
        self.file = file
        self.folder_cache = {} if folder_cache is None else folder_cache
        self._descriptor = -1
        self._data = b""  # the bytes that were read so far
        self._first_head: Head | None = None
        self._head: Head | None = None

    def __enter__(self) -> "LogReader":
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def status(self) -> os.stat_result | None:
        """Return the status of the file; None if it cannot be opened."""
        try:
            self._read(0)
        except DataFileError:
            return None
        return self._status

    def _read(self, max_bytes: int) -> bytes:
        """Return the first bytes of the file, without a byte order mark."""
        try:
            if self._descriptor < 0:
                self._descriptor = regular_descriptor(self.file.path)  # faster than a file object
                self._status = os.fstat(self._descriptor)
            end = min(max_bytes, self._status.st_size or max_bytes)  # files of /proc have the size 0
            while len(self._data) < end and (piece := os.read(self._descriptor, end - len(self._data))):
                self._data += piece
        except OSError as error:
            raise DataFileError(f"cannot read {quote_path(self.file.path)}: {error.strerror}") from error
        return self._data[:max_bytes].removeprefix(BOM_UTF8)

    def first(self) -> "Head":
        """Return the first row or the first kilobytes, which is mostly enough to recognise the format."""
        if self._first_head is None:
            self._first_head = Head(self._read(_FIRST_BYTES), max_rows=1)
        return self._first_head

    def head(self) -> "Head":
        """Return the first `HEAD_ROWS` rows or the first `_HEAD_BYTES` bytes."""
        if self._head is None:
            data = self._read(_HEAD_BYTES)
            if data.startswith(_SQLITE):  # its tables may still be only in the write-ahead log
                with suppress(OSError, DataFileError), open_regular(f"{self.file.path}-wal") as journal:
                    data += journal.read(_HEAD_BYTES)
            self._head = Head(data, HEAD_ROWS)
        return self._head

    def contents(self) -> bytes:
        """Return all bytes of the file, up to the limit for documents."""
        return self._read(budget.MAX_DOCUMENT_BYTES)

    def read_into(self, buffer: memoryview, start: int) -> int:
        """Fill a buffer with the bytes of the file from a position on, and return their number."""
        self._read(0)
        with FileIO(self._descriptor, closefd=False) as handle:
            handle.seek(start)
            size = handle.readinto(buffer)
            handle.seek(len(self._data))  # `_read` continues there
        return size or 0

    def rows(self, shape: type[_Shape]) -> list[_Shape]:
        """Return the first records of a JSON Lines file as structs."""
        return _first_rows(self._read(_HEAD_BYTES), shape, HEAD_ROWS)


def head(file: LogFile) -> Head:
    """Return the beginning of a file; raise DataFileError if it cannot be read."""
    with LogReader(file) as reader:
        return reader.head()


def _outline_names(data: bytes, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the member names of the first rows, or of the outer three levels of a document without rows."""
    for row in rows[:5]:
        yield from row
    if rows:
        return
    depth = 0
    for token in islice(_TOKEN.finditer(data), _MAX_TOKENS):
        if token.lastindex is None:  # a bracket
            depth += 1 if token[0] in b"{[" else -1
        elif token.lastindex == 2 and depth <= 3:  # a name with its colon
            yield token[1].decode("utf-8", "replace")


def _first_rows(data: bytes, shape: type[_Shape], max_rows: int) -> list[_Shape]:
    first_rows = []
    for line in data.split(b"\n", max_rows)[:max_rows]:
        if not line.rstrip().endswith(b"}") or exceeds_depth(line):  # cut off, or no object
            continue
        try:
            first_rows.append(msgspec.json.decode(line, type=shape))
        except _UNDECODABLE:
            values = _decode_leniently(line, ImportReport())
            first_rows += [msgspec.convert(value, shape) for value in values if type(value) is dict]
    return first_rows
