"""Finds and reads log files: nothing outside the given paths, no line that would take all memory.

A log is what programs left behind: cut off, mixed up, sometimes enormous. What cannot be read is counted in
the report, and the rest is read.
"""

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.importers import parts
from orchtrace_corpus.trace.importers.privacy import masked
from orchtrace_corpus.trace.importers.report import Report

SUFFIXES = (".jsonl", ".ndjson", ".json")
MOST_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is dropped, and said so: no event is that large."""
MOST_DOCUMENT_BYTES = 1024 * 1024 * 1024
"""A larger JSON document is refused; the same as JSON Lines is read line by line."""
_HOME_IN_NAME = r"(?<![^/\\])(?:[A-Za-z]-)?-(?:home|Users|root)-[^/\\]*"
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 256 * 1024
HEAD_ROWS = 50
"""So many rows of a file are looked at when its format is recognised."""
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class EmptyLogError(DataFileError):
    """A log of a known format in which nothing ran: nobody spoke, no model and no tool was called."""


class LogFile(NamedTuple):
    """A file that may be a log.

    Attributes:
        path: Where it is.
        name: How events and messages call it: its path below the given folder, else its file name, without what is
            private.
    """

    path: str
    name: str


class Row(NamedTuple):
    """One record of a log, with the line on which it begins: an object, or what was made of it."""

    line: int
    data: Any


def find(path: str) -> list[LogFile]:
    """The file itself, or the files in a folder and below it that may be logs, by name.

    Links that lead out of the folder are left out: a log names no file that is not its own.

    Raises:
        DataFileError: There is nothing of that name, or the folder holds no such file.
    """
    if os.path.isfile(path):
        return [LogFile(path, _called(os.path.basename(path)))]
    if not os.path.isdir(path):
        raise DataFileError(f"cannot read {quote(path)}: No such file or directory")
    inside = os.path.realpath(path) + os.sep
    found = []
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            is_inside = not os.path.islink(file) or os.path.realpath(file).startswith(inside)
            if name.endswith(SUFFIXES) and is_inside and os.path.isfile(file):
                found.append(LogFile(file, _called(os.path.relpath(file, path))))
    if not found:
        raise DataFileError(f"no log in {quote(path)}", f"Logs end in {', '.join(SUFFIXES)}.")
    return found


def _called(path: str) -> str:
    """How events call a file: without a home folder, which some programs put into the names of theirs, and in UTF-8."""
    return masked(re.sub(_HOME_IN_NAME, "…", path)).encode("utf-8", "backslashreplace").decode()


def rows(file: LogFile, report: Report, shape: Any = None) -> Iterator[Row]:
    """The records of a JSON Lines file, one in memory at a time; what is no record is counted in the report.

    Args:
        file: The file.
        report: Where what is no record is counted.
        shape: The type of struct that records are made into, unless they are of another shape; what it does not
            name is passed over, which saves most of the time.

    Raises:
        DataFileError: The file cannot be read.
    """
    decode = msgspec.json.Decoder(Any if shape is None else shape).decode
    for number, line in _lines(file, report):
        try:
            row = decode(line)
        except _UNDECODABLE:
            row = _decoded(line, report)
        if isinstance(row, (dict, msgspec.Struct)):
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
        with open(file.path, "rb", _CHUNK_BYTES) as handle:
            number = 0
            while line := handle.readline(MOST_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(BOM_UTF8)
                if len(line) > MOST_LINE_BYTES:
                    report.drop("line too long", file.name, number)
                    while line and not line.endswith(b"\n"):
                        line = handle.readline(_CHUNK_BYTES)
                elif not line.isspace():
                    yield number, line
    except OSError as error:
        raise DataFileError(f"cannot read {quote(file.path)}: {error.strerror}") from error


class JsonDocument:
    """A JSON file that is one value.

    Attributes:
        top: The value, undecoded.

    Raises:
        DataFileError: The file cannot be read, is too large, or is no JSON.
    """

    def __init__(self, file: LogFile) -> None:
        try:
            if os.path.getsize(file.path) > MOST_DOCUMENT_BYTES:
                limit = f"{MOST_DOCUMENT_BYTES >> 20} MiB"
                raise DataFileError(f"{quote(file.name)} is larger than {limit}", "Convert it to JSON Lines.")
            with open(file.path, "rb") as handle:
                data = handle.read().removeprefix(BOM_UTF8)
        except OSError as error:
            raise DataFileError(f"cannot read {quote(file.path)}: {error.strerror}") from error
        try:
            self.top = parts.whole(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DataFileError(f"{quote(file.name)} is no JSON: {error}") from error

    @property
    def value(self) -> Any:
        """The value decoded; None where it cannot be."""
        return self.top.value()


class Head(NamedTuple):
    """The beginning of a file, by which its format is recognised.

    Attributes:
        rows: Its first records, where it is JSON Lines.
        text: Its first bytes as text.
    """

    rows: Sequence[dict[str, Any]]
    text: str


def head(file: LogFile, most_rows: int = HEAD_ROWS) -> Head:
    """The beginning of a file.

    Args:
        file: The file.
        most_rows: How many of its first lines are looked at.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open(file.path, "rb") as handle:
            data = handle.read(_HEAD_BYTES).removeprefix(BOM_UTF8)
    except OSError as error:
        raise DataFileError(f"cannot read {quote(file.path)}: {error.strerror}") from error
    found = []
    for line in data.split(b"\n", most_rows)[:most_rows]:
        row = _decoded(line, Report()) if line.strip() else None
        if isinstance(row, dict):
            found.append(row)
    return Head(found, data.decode("utf-8", "replace"))
