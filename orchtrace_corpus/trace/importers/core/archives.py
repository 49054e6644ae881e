"""Read the members of zip archives, which may be compressed with zstd. Python itself reads zstd from 3.14 on."""

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
_ZSTD = 93  # APPNOTE.TXT of PKWARE, section 4.4.5
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # section 4.3.7: signature, length of the name, length of the extra field
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, RuntimeError)
_CONVERT = "If you trust it, make it JSON first: inspect log convert --to json --output-dir DIR FILE"


class Archive:
    """A context manager that opens a zip archive, and raises DataFileError if it is broken or too large."""

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
                reason = printable(str(error), limit=200)
                raise DataFileError(f"cannot read the archive {quote_path(self._file.path)}: {reason}") from error
            members = self._archive.infolist()
            if len(members) > budget.MAX_ARCHIVE_MEMBERS:
                message = (
                    f"the archive {quote_path(self._file.path)} has {len(members):,} members; "
                    f"at most {budget.MAX_ARCHIVE_MEMBERS:,} are read"
                )
                raise DataFileError(message, f"{_CONVERT} {budget.how_to_raise('MAX_ARCHIVE_MEMBERS')}")
            self._members = {member.filename: member for member in members}  # if two members have one name, the last
            self.names = tuple(self._members)
            self._max_expanded_bytes = max(budget.MAX_EXPANSION_RATIO * self._size, budget.UNCHECKED_EXPANSION_BYTES)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, name: str) -> bytes:
        """Return the content of a member; raise DataFileError if it cannot be read, is too large, or needs pyarrow."""
        where = f"{quote(name)} in {quote_path(self._file.path)}"
        member = self._members[name]
        remaining_bytes = self._max_expanded_bytes - self._expanded_bytes
        data = b""
        try:
            if member.compress_size > self._size:
                raise zipfile.BadZipFile("it would be longer than the archive")
            if member.file_size <= remaining_bytes:
                with self._open(member) as stream:
                    # one byte more than allowed shows that the member is too large, whatever size its header states
                    data = stream.read(min(budget.MAX_DOCUMENT_BYTES, remaining_bytes) + 1)
        except ImportError as error:
            hint = MissingLibraryError("zstd", "pyarrow", "parquet").hint
            raise DataFileError(f"cannot read {where} without pyarrow: it is compressed with zstd", hint) from error
        except _BROKEN as error:
            raise DataFileError(f"cannot read {where}: {printable(str(error), limit=200)}") from error
        self._expanded_bytes += len(data)
        if member.file_size > remaining_bytes or len(data) > remaining_bytes:
            message = (
                f"cannot read {where}: the archive expands to more than {budget.MAX_EXPANSION_RATIO} times its size; "
                f"the limit is {self._max_expanded_bytes >> 20:,} MiB"
            )
            raise DataFileError(message, f"{_CONVERT} {budget.how_to_raise('MAX_EXPANSION_RATIO')}")
        if len(data) > budget.MAX_DOCUMENT_BYTES:
            message = f"{where} is larger than {budget.MAX_DOCUMENT_BYTES >> 20} MiB"
            raise DataFileError(message, budget.how_to_raise("MAX_DOCUMENT_BYTES"))
        return data

    def _open(self, member: zipfile.ZipInfo) -> AbstractContextManager[IO[bytes]]:
        if member.compress_type != _ZSTD:
            return self._archive.open(member)
        import pyarrow

        self._handle.seek(member.header_offset)
        magic, name_length, extra_length = _LOCAL_HEADER.unpack(self._handle.read(_LOCAL_HEADER.size))
        if magic != _MAGIC:
            raise zipfile.BadZipFile("Bad magic number for file header")
        self._handle.seek(name_length + extra_length, os.SEEK_CUR)
        raw = pyarrow.py_buffer(self._handle.read(member.compress_size))
        stream: AbstractContextManager[IO[bytes]] = pyarrow.input_stream(raw, compression="zstd")
        return stream
