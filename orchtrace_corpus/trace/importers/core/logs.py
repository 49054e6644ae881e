"""Finds and reads log files: nothing outside the given paths, no line that would take all memory.

A log may be cut off, mixed up or enormous. What cannot be read is counted in the report, and the rest is read.
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
"""So many rows of a file are looked at when its format is recognised."""
_SQLITE = b"SQLite format 3\0"
_MARK = re.compile(rb'"((?:[^"\\]++|\\.)*+)"?(\s*+:)?|[{}\[\]]')  # a name with its colon, a text, a bracket
_MOST_MARKS = 5_000  # so many are looked at to recognise the format of a document
_MOST_NAMES = 4  # so many names are taken from it at once
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MAX_TORN_PARTS = 20  # of one line: each costs a look at all of its rest
_MAX_NAMES = 8  # of skipped entries
_Shape = TypeVar("_Shape")
_NOTHING = object()  # the value of a line that has none; `null` is one


class EmptyLogError(DataFileError):
    """A log of a known format in which nothing ran: nobody spoke, no model and no tool was called."""


class LogFile(NamedTuple):
    """A file that may be a log.

    Attributes:
        path: Where it is.
        name: Its path below the given folder, or its file name, without what is private; for events and messages.
    """

    path: str
    name: str

    @property
    def stem(self) -> str:
        """Its file name without what it ends in, as others may see it."""
        return masked_path(os.path.splitext(os.path.basename(self.path_text))[0])

    @property
    def path_text(self) -> str:
        """Its path in UTF-8, whatever bytes are in it: what names are made of, and not what is opened."""
        return self.path.encode("utf-8", "backslashreplace").decode()


class Found(NamedTuple):
    """The logs in a folder.

    Attributes:
        files: The files that may be logs.
        passed_over: What could hold more, and was not looked into: sentences, one for each reason.
    """

    files: list[LogFile]
    passed_over: list[str]


def find(path: str, suffixes: Sequence[str] = SUFFIXES) -> Found:
    """Return the file itself, or the files in a folder and below it that may be logs, by name; and what was skipped.

    Links that lead out of the folder are left out: a log names no file that is not its own. So are pipes and devices.

    Args:
        path: The file or folder.
        suffixes: What the names of logs in a folder end in.

    Raises:
        DataFileError: There is nothing of that name, it is no regular file, or the folder holds no such file.
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
    passed_over = []
    if leading_out:
        lead = "1 link leads" if leading_out == 1 else f"{leading_out:,} links lead"
        passed_over.append(f"{lead} out of {quote_path(path)}: not followed")
    if irregular:
        skipped = "1 entry that is not a regular file"
        if len(irregular) > 1:
            skipped = f"{len(irregular):,} entries that are not regular files"
        names = ", ".join(printable(name, limit=100) for name in irregular[:_MAX_NAMES])
        ending = ", …" if len(irregular) > _MAX_NAMES else ""
        passed_over.append(f"skipped {skipped} ({names}{ending})")
    if unread:
        which = "1 folder" if len(unread) == 1 else f"{len(unread):,} folders, the first"
        passed_over.append(f"{which}, {quote_path(str(unread[0].filename))}, cannot be read: {unread[0].strerror}")
    if not files:
        hint = " ".join((f"Logs end in {', '.join(suffixes)}.", *(f"{reason}." for reason in passed_over)))
        raise DataFileError(f"no log in {quote_path(path)}", hint)
    return Found(files, passed_over)


def rows(
    file: LogFile, report: ImportReport, shape: Any = Any, *, keep_others: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield the records of a JSON Lines file, one in memory at a time; what is no record is counted in the report.

    Each comes with the line on which it stands.

    Args:
        file: The file.
        report: Where what is no record is counted.
        shape: The type of struct that records are made into, or `Raw`; what it does not name is skipped, which saves
            most of the time, and members of another kind than they should be are lost.
        keep_others: Whether records of another shape come as objects instead.

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
    """Return the values on a line that is not one, `_NOTHING` for a part that is none; bad UTF-8 is replaced."""
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
    """Decode the objects on one line, `_NOTHING` for a part that is none.

    A program whose writing was broken off goes on behind what it had written, so a line may hold several rows, or the
    beginning of one and then a whole one. Rows of a log begin alike, which tells a row behind a torn one.
    """
    import json  # few logs have such lines

    opening = line[: line.find(":") + 1]
    if not opening.startswith("{"):
        return [_NOTHING]
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
            end = _find_row(line, opening, at + 1)
        at = end
        while at < len(line) and line[at].isspace():
            at += 1
    if at < len(line):
        values.append(_NOTHING)
    return values


def _find_row(line: str, opening: str, at: int) -> int:
    """Return where the next row begins on a line, as all rows of a log do; its end where none does."""
    while (at := line.find(opening, at)) >= 0:
        before = at - 1
        while line[before].isspace():
            before -= 1
        if line[before] not in ":,[":  # else it is the value of a member
            return at
        at += 1
    return len(line)


def contents(file: LogFile) -> bytes:
    """All that is in a file.

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
    """Return the event inside a record, as an object or as a text, and the time of the record; empty if it has none.

    Args:
        record: The record.
        is_event: Tells an event from other objects.
        marks: Words of which each event has one.
        depth: How many records are around this one.
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
    """Return when a record was made; `NO_TIME` for a clock time without its zone, which may be any."""
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
    """Yield the objects at the ends of lines, each with its line; other lines are of other loggers.

    Args:
        file: The file.
        report: Where events that cannot be read are counted.
        marks: Words of which each event has one.
    """
    with open_regular(file.path) as handle:
        for line, text in enumerate(iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""), 1):
            event = parts.decoded(text[max(text.find(b'{"'), 0) :])
            if type(event) is dict:
                report.records_read += 1
                yield line, event
            elif any(f'"{mark}"'.encode() in text for mark in marks):
                report.drop(Drop.NO_JSON if text.endswith(b"\n") else Drop.CUT_OFF, file.name, line)


def object_lines(file: LogFile) -> int:
    """Count the lines of a log that are objects, whole or not; others are what programs print besides.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open_regular(file.path) as handle:
            return sum(line.lstrip()[:1] == b"{" for line in iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""))
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error


class Head:
    """The beginning of a file, by which its format is recognised.

    Attributes:
        text: Its first bytes as text.
    """

    def __init__(self, data: bytes, most_rows: int) -> None:
        self._data, self.text = data, data.decode("utf-8", "replace")
        self._most_rows = most_rows
        self._known: set[str] = set()  # of the outline, so far
        self._further: Iterator[str] | None = None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Its first records, where it is JSON Lines."""
        return _first_rows(self._data, dict[str, Any], self._most_rows)

    @cached_property
    def outline(self) -> frozenset[str]:
        """The names of the members that a document begins with, those of the outer three objects or arrays.

        For lines, the members of the first objects, whatever is in them.
        """
        return frozenset(_outlined(self._data, self.rows))

    def has_any(self, groups: Iterable[Set[str]]) -> bool:
        """Return True if the outline, made only as far as that takes, has all names of one of these groups."""
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
    """A file of which the beginning is looked at: opened once, and read only as far as is asked for.

    A context manager.

    Args:
        file: The file.
        of_folders: What importers have found out about folders of files that are looked at together.
    """

    def __init__(self, file: LogFile, of_folders: dict[Hashable, str] | None = None) -> None:
        self.file = file
        self.of_folders = {} if of_folders is None else of_folders
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
        """Return what the system says of the file; None where it cannot be opened."""
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
        """Return the first of its rows and little more, which mostly tells the format.

        Raises:
            DataFileError: The file cannot be read.
        """
        if self._start is None:
            self._start = Head(self._first(_FIRST_BYTES), 1)
        return self._start

    def head(self) -> "Head":
        """Its beginning.

        Raises:
            DataFileError: The file cannot be read.
        """
        if self._whole is None:
            data = self._first(_HEAD_BYTES)
            if data.startswith(_SQLITE):  # whose tables may still be in its write-ahead log alone
                with suppress(OSError, DataFileError), open_regular(f"{self.file.path}-wal") as journal:
                    data += journal.read(_HEAD_BYTES)
            self._whole = Head(data, HEAD_ROWS)
        return self._whole

    def contents(self) -> bytes:
        """All that is in it.

        Raises:
            DataFileError: The file cannot be read.
        """
        return self._first(budget.MAX_DOCUMENT_BYTES)

    def read_into(self, piece: memoryview, at: int) -> int:
        """Fill memory with what is in the file from a byte on, and return how much that is."""
        self._first(0)
        with FileIO(self._descriptor, closefd=False) as handle:
            handle.seek(at)
            size = handle.readinto(piece)
            handle.seek(len(self._data))
        return size or 0

    def rows(self, shape: type[_Shape]) -> list[_Shape]:
        """Return the first records of a JSON Lines file as structs of a shape, from which follows what the file is.

        Args:
            shape: The type of struct; what it does not name is passed over, which saves most of the time.

        Raises:
            DataFileError: The file cannot be read.
        """
        return _first_rows(self._first(_HEAD_BYTES), shape, HEAD_ROWS)


def head(file: LogFile) -> Head:
    """Return the beginning of a file.

    Raises:
        DataFileError: The file cannot be read.
    """
    with Opened(file) as opened:
        return opened.head()


def _outlined(data: bytes, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of an outline, the first first."""
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
