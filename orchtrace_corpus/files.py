"""Writes files: whole or not at all, one writer at a time.

Nothing else in the package writes below a corpus's folder.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchtrace_corpus.errors import DataFileError

LOCK_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05
_TEMPORARY_PREFIX = ".corpus-"
_TEMPORARY_SUFFIX = ".tmp"


def write_atomic(path: str, text: str) -> None:
    """Replace a file's content, or create it, so that a reader sees the old text or the new, never a part.

    The text goes to a temporary file in the same folder, is flushed to the disk, and takes the
    file's name. A symbolic link stays one: what it points to is replaced. Permissions are kept.

    Raises:
        DataFileError: The folder or the disk does not allow it; the old file is untouched.
    """
    import tempfile  # only for who writes: most commands compare

    target = os.path.realpath(path)
    temporary = ""
    try:
        mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(
            dir=os.path.dirname(target), prefix=_TEMPORARY_PREFIX, suffix=_TEMPORARY_SUFFIX
        )
        with open(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        raise DataFileError(
            f"cannot write {os.path.relpath(path)}: {error.strerror}", "Nothing was changed; the file is as it was."
        ) from error
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)


@contextmanager
def locked(folder: str, wait_seconds: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
    """Be the only writer in a corpus's folder.

    The lock is on the open folder itself: the system drops it when the process ends, however it
    ends, and no file is left behind.

    Raises:
        DataFileError: Another process held the lock all the time that we were willing to wait.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DataFileError(f"cannot open {folder}: {error.strerror}") from error
    try:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise DataFileError(
                        f"another corpus command is writing in {folder}; waited {wait_seconds:g} seconds",
                        "Nothing was changed. Try again when it has ended.",
                    ) from error
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def sweep(folder: str) -> None:
    """Remove what killed writers left in a folder. Only for the holder of the lock: nobody else is writing."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX):
                os.unlink(os.path.join(folder, name))


def diff(path: str, old: str, new: str) -> str:
    """What changes in a file, as a unified diff; empty where nothing does."""
    from difflib import unified_diff

    lines = unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}", lineterm="\n"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
