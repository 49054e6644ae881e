"""Reads the members of zip archives, those that are compressed with zstd too, which Python before 3.14 cannot."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from orchtrace_corpus.base.errors import DataFileError, MissingLibraryError
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import LogFile

_MAGIC = b"PK\3\4"
_ZSTD = 93  # APPNOTE.TXT of PKWARE, 4.4.5
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # the same, 4.3.7: up to the lengths of the name and the extra field
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, RuntimeError)


class Archive:
    """A zip archive.

    Attributes:
        names: The names of its members; of a name that is given twice the last member counts.

    Raises:
        DataFileError: It cannot be read, or is none.
    """

    def __init__(self, file: LogFile) -> None:
        self._file = file
        try:
            with zipfile.ZipFile(file.path) as archive:
                self._members = {member.filename: member for member in archive.infolist()}
        except _BROKEN as error:
            why = printable(str(error), limit=200)
            raise DataFileError(f"cannot read the archive {quote_path(file.path)}: {why}") from error
        self.names = tuple(self._members)

    def read(self, name: str) -> bytes:
        """Return a member.

        Raises:
            DataFileError: It cannot be read, is too large, or needs pyarrow, which is not installed.
        """
        where = f"{quote(name)} in {quote_path(self._file.path)}"
        try:
            with self._opened(self._members[name]) as stream:
                data: bytes = stream.read(logs.MOST_DOCUMENT_BYTES + 1)
        except ImportError as error:
            hint = MissingLibraryError("zstd", "pyarrow", "parquet").hint
            raise DataFileError(f"cannot read {where} without pyarrow: it is compressed with zstd", hint) from error
        except _BROKEN as error:
            raise DataFileError(f"cannot read {where}: {printable(str(error), limit=200)}") from error
        if len(data) > logs.MOST_DOCUMENT_BYTES:
            raise DataFileError(f"{where} is larger than {logs.MOST_DOCUMENT_BYTES >> 20} MiB")
        return data

    @contextmanager
    def _opened(self, member: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
        if member.compress_type != _ZSTD:
            with zipfile.ZipFile(self._file.path) as archive, archive.open(member) as stream:
                yield stream
            return
        import pyarrow

        with open(self._file.path, "rb") as file:
            file.seek(member.header_offset)
            magic, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if magic != _MAGIC:
                raise zipfile.BadZipFile("Bad magic number for file header")
            file.seek(name + extra, 1)
            raw = pyarrow.py_buffer(file.read(member.compress_size))
        with pyarrow.input_stream(raw, compression="zstd") as stream:
            yield stream
