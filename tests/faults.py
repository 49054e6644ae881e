"""A disk that fails: the n-th call of one kind below a folder ends with the error that a full or broken disk gives."""

import _io
import builtins
import errno
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ERRORS = {"open": errno.EIO, "write": errno.ENOSPC, "fsync": errno.EIO, "rename": errno.EIO}
"""The kinds of calls that can fail, and how."""

_WRITES = frozenset("wax+")


class FaultyDisk:
    """The calls of each kind below a folder, one of which fails; a disk that is full stays so.

    Attributes:
        calls: The number of calls of each kind so far.
        has_failed: Whether a call failed.
    """

    def __init__(self, folder: Path, kind: str = "", at: int = 0) -> None:
        self.calls: Counter[str] = Counter()
        self.has_failed = False
        self._folder = os.path.join(os.path.realpath(folder), "")
        self._kind, self._at = kind, at
        self._descriptors: set[int] = set()

    def call(self, kind: str) -> None:
        """Count a call, and let it fail if it is its turn."""
        self.calls[kind] += 1
        is_full = kind == "write" and self.calls[kind] > self._at
        if kind == self._kind and (self.calls[kind] == self._at or is_full):
            self.has_failed = True
            raise OSError(ERRORS[kind], os.strerror(ERRORS[kind]))

    def holds(self, file: Any) -> bool:
        """Return True if a path or descriptor is of a file below the folder."""
        if isinstance(file, int):
            return file in self._descriptors
        return os.path.realpath(os.fsdecode(file)).startswith(self._folder)

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Let all calls of this process go through the disk."""
        open_file, open_descriptor, close = io.open, os.open, os.close
        with pytest.MonkeyPatch.context() as patch:

            def opening(file: Any, mode: str = "r", *arguments: Any, **settings: Any) -> Any:
                if not self.holds(file):
                    return open_file(file, mode, *arguments, **settings)
                if not isinstance(file, int):
                    self.call("open")
                if not _WRITES & set(mode):
                    return open_file(file, mode, *arguments, **settings)
                return self._writer(file, mode, *arguments, **settings)

            def opening_descriptor(path: Any, *arguments: Any, **settings: Any) -> int:
                is_held = self.holds(path)
                if is_held:
                    self.call("open")
                descriptor = open_descriptor(path, *arguments, **settings)
                self._descriptors.discard(descriptor)
                if is_held:
                    self._descriptors.add(descriptor)
                return descriptor

            def closing(descriptor: int) -> None:
                self._descriptors.discard(descriptor)
                close(descriptor)

            for module in (builtins, io, _io):
                patch.setattr(module, "open", opening)
            patch.setattr(os, "open", opening_descriptor)
            patch.setattr(os, "close", closing)
            patch.setattr(os, "write", self._counted("write", os.write))
            patch.setattr(os, "fsync", self._counted("fsync", os.fsync))
            for name in ("rename", "replace", "link"):
                patch.setattr(os, name, self._counted("rename", getattr(os, name)))
            yield

    def _counted(self, kind: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(file: Any, *arguments: Any, **settings: Any) -> Any:
            if self.holds(file) or kind == "fsync":
                self.call(kind)
            return work(file, *arguments, **settings)

        return counted

    def _writer(
        self,
        file: Any,
        mode: str,
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        """Open a file whose writes are counted."""
        raw = _CountedFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.disk = self
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


class _CountedFile(io.FileIO):
    """A file whose writes go through a disk that may fail."""

    disk: FaultyDisk

    def write(self, data: Any) -> int:
        """Write, if the disk allows it."""
        self.disk.call("write")
        return super().write(data)
