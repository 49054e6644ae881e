"""What a worker has read for a unit that is not finished: a build that was killed does not read it again.

The tables of a unit are Parquet files, which can be read only when they are whole. So the worker also appends the
values of its rows to a journal, source by source. A journal is a sequence of records:

    length      4 bytes: of the content, little-endian
    checksum    4 bytes: CRC-32 of kind and content, little-endian
    kind        1 byte: `r` for rows, `d` for done
    content     MessagePack: `Values`; or `Done`, with the settings of the build

The rows of a source are those since the last `d`, and they count only if its own `d` follows. A record that is not
whole, or whose checksum is another, ends the journal: nothing behind it is believed. Records go to the system without
being forced to the disk, so that after a power cut there may be fewer of them.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.trace.dataset.columns import FIGURES, TABLES, WORDS
from orchtrace_corpus.trace.dataset.folder import Done
from orchtrace_corpus.trace.dataset.tables import Values, escaped

_HEAD = struct.Struct("<IIc")
_ROWS, _DONE = b"r", b"d"


class Kept(NamedTuple):
    """A source whose rows are in a journal.

    Attributes:
        done: What was read.
        settings: Those of the build that read it.
        journal: The journal.
        begin: The byte at which its records begin.
    """

    done: Done
    settings: str
    journal: str
    begin: int


class Journal:
    """Writes a journal, from its beginning: what the file held before is gone. A context manager."""

    def __init__(self, path: str, settings: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by __exit__
        self._settings = settings

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def rows(self, values: Values) -> None:
        """Add rows of the source that is being read."""
        try:
            content = msgspec.msgpack.encode(values)
        except UnicodeEncodeError:
            content = msgspec.msgpack.encode({table: escaped(columns) for table, columns in values.items()})
        self._write(_ROWS, content)

    def done(self, done: Done) -> None:
        """Say that the source was read to its end: from now on it stays, whatever happens to this process."""
        self._write(_DONE, msgspec.msgpack.encode((done, self._settings)))
        self._file.flush()

    def _write(self, kind: bytes, content: bytes) -> None:
        self._file.write(_HEAD.pack(len(content), _checksum(kind, content), kind))
        self._file.write(content)


def kept_in(path: str) -> Iterator[Kept]:
    """The sources that a journal holds as a whole; none where it cannot be read."""
    decoder = msgspec.msgpack.Decoder(tuple[Done, str])
    begin = 0
    try:
        with open(path, "rb") as file:
            for kind, content in _records(file):
                if kind == _DONE:
                    yield Kept(*decoder.decode(content), path, begin)
                    begin = file.tell()
    except (OSError, msgspec.DecodeError):
        return  # what is not kept is read again


def rows_of(one: Kept) -> Iterator[Values]:
    """The rows of a source that a journal keeps, some at a time.

    Raises:
        DataFileError: The journal is not what it was.
    """
    try:
        with open(one.journal, "rb") as file:
            file.seek(one.begin)
            for kind, content in _records(file):
                if kind == _DONE:
                    return
                yield {table: _paired(table, columns) for table, columns in msgspec.msgpack.decode(content).items()}
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(one.journal)}: {error.strerror}") from error
    raise DataFileError(f"{quote_path(one.journal)} has changed while it was read")


def _records(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """The records from where a file stands to the first that is not whole: their kinds and contents."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    while left >= _HEAD.size:
        length, checksum, kind = _HEAD.unpack(file.read(_HEAD.size))
        left -= _HEAD.size + length
        if left < 0:  # torn; or the length is damaged, and as large as it may be
            return
        content = file.read(length)
        if _checksum(kind, content) != checksum:
            return
        yield kind, content


def _checksum(kind: bytes, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(kind))


def _paired(table: str, columns: list[list[Any]]) -> list[list[Any]]:
    """The columns of a table as they were written: MessagePack has no pairs, which pyarrow wants in maps."""
    return [
        [list(map(tuple, pairs)) for pairs in values] if column.type in (WORDS, FIGURES) else values
        for column, values in zip(TABLES[table], columns, strict=True)
    ]
