"""Read the members of zip archives, also those compressed with zstd, which Python reads from 3.14 on."""

import os
import struct
import zipfile
import zlib
from contextlib import AbstractContextManager, ExitStack
from typing import IO

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError, MissingLibraryError
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.trace.importers.core.logs import LogFile

_MAGIC = b"PK\3\4"
_ZSTD = 93  # APPNOTE.TXT of PKWARE, 4.4.5
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # the same, 4.3.7: up to the lengths of the name and the extra field
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, RuntimeError)
_CONVERT = "If you trust it, make it JSON first: inspect log convert --to json --output-dir DIR FILE"


class Archive:
    """A zip archive, opened once; a context manager that raises DataFileError for one that is broken or too large."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._expanded_bytes = 0

    def __enter__(self) -> "Archive":
        with ExitStack() as stack:
            try:
                self._handle = stack.enter_context(open_regular(self._file.path))
                self._archive = stack.enter_context(zipfile.ZipFile(self._handle))
                self._size = os.fstat(self._handle.fileno()).st_size
            except _BROKEN as error:
                why = printable(str(error), limit=200)
                raise DataFileError(f"cannot read the archive {quote_path(self._file.path)}: {why}") from error
            members = self._archive.infolist()
            if len(members) > budget.MAX_ARCHIVE_MEMBERS:
                message = (
                    f"the archive {quote_path(self._file.path)} has {len(members):,} members; "
                    f"at most {budget.MAX_ARCHIVE_MEMBERS:,} are read"
                )
                raise DataFileError(message, f"{_CONVERT} {budget.how_to_raise('MAX_ARCHIVE_MEMBERS')}")
            self._members = {member.filename: member for member in members}  # the last of each name
            self.names = tuple(self._members)
            self._max_expanded_bytes = max(budget.MAX_EXPANSION_RATIO * self._size, budget.UNCHECKED_EXPANSION_BYTES)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, name: str) -> bytes:
        """Return the content of a member; without pyarrow, one that is compressed with zstd is a DataFileError."""
        where = f"{quote(name)} in {quote_path(self._file.path)}"
        member = self._members[name]
        left = self._max_expanded_bytes - self._expanded_bytes
        data = b""
        try:
            if member.compress_size > self._size:
                raise zipfile.BadZipFile("it would be longer than the archive")
            if member.file_size <= left:
                with self._opened(member) as stream:
                    data = stream.read(min(budget.MAX_DOCUMENT_BYTES, left) + 1)
        except ImportError as error:
            hint = MissingLibraryError("zstd", "pyarrow", "parquet").hint
            raise DataFileError(f"cannot read {where} without pyarrow: it is compressed with zstd", hint) from error
        except _BROKEN as error:
            raise DataFileError(f"cannot read {where}: {printable(str(error), limit=200)}") from error
        self._expanded_bytes += len(data)
        if member.file_size > left or len(data) > left:
            message = (
                f"cannot read {where}: the archive expands to more than {budget.MAX_EXPANSION_RATIO} times its size; "
                f"the limit is {self._max_expanded_bytes >> 20:,} MiB"
            )
            raise DataFileError(message, f"{_CONVERT} {budget.how_to_raise('MAX_EXPANSION_RATIO')}")
        if len(data) > budget.MAX_DOCUMENT_BYTES:
            message = f"{where} is larger than {budget.MAX_DOCUMENT_BYTES >> 20} MiB"
            raise DataFileError(message, budget.how_to_raise("MAX_DOCUMENT_BYTES"))
        return data

    def _opened(self, member: zipfile.ZipInfo) -> AbstractContextManager[IO[bytes]]:
        if member.compress_type != _ZSTD:
            return self._archive.open(member)
        import pyarrow

        self._handle.seek(member.header_offset)
        magic, name, extra = _LOCAL_HEADER.unpack(self._handle.read(_LOCAL_HEADER.size))
        if magic != _MAGIC:
            raise zipfile.BadZipFile("Bad magic number for file header")
        self._handle.seek(name + extra, 1)
        raw = pyarrow.py_buffer(self._handle.read(member.compress_size))
        stream: AbstractContextManager[IO[bytes]] = pyarrow.input_stream(raw, compression="zstd")
        return stream
