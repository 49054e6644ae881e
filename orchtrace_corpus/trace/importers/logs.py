"""Finds and reads log files: nothing outside the given paths, no line that would take all memory.

A log is what programs left behind: cut off, mixed up, sometimes enormous. What cannot be read is counted in
the report, and the rest is read.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.importers.report import Report
from orchtrace_corpus.trace.locate import Places

SUFFIXES = (".jsonl", ".ndjson", ".json")
MOST_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is dropped, and said so: no event is that large."""
MOST_DOCUMENT_BYTES = 1024 * 1024 * 1024
"""A larger JSON document is refused; the same as JSON Lines is read line by line."""
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 256 * 1024


class LogFile(NamedTuple):
    """A file that may be a log.

    Attributes:
        path: Where it is.
        name: How events and messages call it: its path below the given folder, else its file name.
    """

    path: str
    name: str


class Row(NamedTuple):
    """One record of a log, with the line on which it begins."""

    line: int
    data: dict[str, Any]


def find(path: str) -> list[LogFile]:
    """The file itself, or the files in a folder and below it that may be logs, by name.

    Links that lead out of the folder are left out: a log names no file that is not its own.

    Raises:
        DataFileError: There is nothing of that name, or the folder holds no such file.
    """
    if os.path.isfile(path):
        return [LogFile(path, os.path.basename(path))]
    if not os.path.isdir(path):
        raise DataFileError(f"cannot read {quote(path)}: No such file or directory")
    inside = os.path.realpath(path) + os.sep
    found = []
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            if name.endswith(SUFFIXES) and os.path.realpath(file).startswith(inside) and os.path.isfile(file):
                found.append(LogFile(file, os.path.relpath(file, path)))
    if not found:
        raise DataFileError(f"no log in {quote(path)}", f"Logs end in {', '.join(SUFFIXES)}.")
    return found


def rows(file: LogFile, report: Report) -> Iterator[Row]:
    """The records of a JSON Lines file, one in memory at a time; what is no record is counted in the report.

    Raises:
        DataFileError: The file cannot be read.
    """
    for number, line in _lines(file, report):
        row = _decoded(line, report)
        if isinstance(row, dict):
            report.read += 1
            yield Row(number, row)
        elif row is not None:
            report.drop("not an object", file.name, number)
        elif not line.endswith(b"\n"):
            report.drop("cut off at the end", file.name, number)
        else:
            report.drop("not JSON", file.name, number)


def _decoded(line: bytes, report: Report) -> Any:
    """A line's value; None where there is none to be had. Bytes that are no UTF-8 are replaced."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    except UnicodeDecodeError:
        report.repaired += 1
        try:
            return msgspec.json.decode(line.decode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            return None


def _lines(file: LogFile, report: Report) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1 on; longer ones than the limit are skipped unread."""
    try:
        with open(file.path, "rb") as handle:
            number = 0
            while line := handle.readline(MOST_LINE_BYTES + 1):
                number += 1
                if len(line) > MOST_LINE_BYTES:
                    report.drop("line too long", file.name, number)
                    while line and not line.endswith(b"\n"):
                        line = handle.readline(_CHUNK_BYTES)
                elif line.strip():
                    yield number, line
    except OSError as error:
        raise DataFileError(f"cannot read {quote(file.path)}: {error.strerror}") from error


class JsonDocument:
    """A JSON file that is one value, with the lines on which its parts begin.

    Raises:
        DataFileError: The file cannot be read, is too large, or is no JSON.
    """

    def __init__(self, file: LogFile) -> None:
        self._file = file
        try:
            if os.path.getsize(file.path) > MOST_DOCUMENT_BYTES:
                limit = f"{MOST_DOCUMENT_BYTES >> 20} MiB"
                raise DataFileError(f"{quote(file.name)} is larger than {limit}", "Convert it to JSON Lines.")
            with open(file.path, "rb") as handle:
                data = handle.read()
        except OSError as error:
            raise DataFileError(f"cannot read {quote(file.path)}: {error.strerror}") from error
        try:
            self.value: Any = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataFileError(f"{quote(file.name)} is no JSON: {error}") from error
        self._places = Places(data, file.name)

    def line(self, *path: str | int) -> int:
        """The line on which the value at a path begins."""
        return self._places.locate(path).line


class Head(NamedTuple):
    """The beginning of a file, by which its format is recognised.

    Attributes:
        rows: Its first records, where it is JSON Lines.
        text: Its first bytes as text.
    """

    rows: Sequence[dict[str, Any]]
    text: str


def head(file: LogFile) -> Head:
    """The beginning of a file.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open(file.path, "rb") as handle:
            data = handle.read(_HEAD_BYTES)
    except OSError as error:
        raise DataFileError(f"cannot read {quote(file.path)}: {error.strerror}") from error
    found = []
    for line in data.split(b"\n")[:50]:
        row = _decoded(line, Report()) if line.strip() else None
        if isinstance(row, dict):
            found.append(row)
    return Head(found, data.decode("utf-8", "replace"))
