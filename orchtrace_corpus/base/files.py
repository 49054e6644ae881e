"""Write files as a whole or not at all, by one process at a time; open only regular files to read.

No other module writes files in the folder of a corpus.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EISDIR
from itertools import accumulate

from orchtrace_corpus.base.annotations import BinaryIO, TextIO
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple

_TEMPORARY_PREFIX = ".corpus-"
_TEMPORARY_SUFFIX = ".tmp"


def read_text_beside(module: str, name: str) -> str:
    """Return the text of the file `name` in the folder of a module, given by the module's `__file__`."""
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as file:
        return file.read()


# Some systems have only some of these flags. O_NONBLOCK: opening a pipe does not wait for a writer.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def check_regular(path: str, mode: int) -> None:
    """Raise an error unless a path is a regular file, because reading a pipe or a device may never end.

    Args:
        path: The path for the message.
        mode: The `st_mode` of the path.

    Raises:
        IsADirectoryError: The path is a folder.
        DataFileError: The path is a pipe, a device or a socket.
    """
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
    kind = "a device"
    if stat.S_ISFIFO(mode):
        kind = "a pipe"
    elif stat.S_ISSOCK(mode):
        kind = "a socket"
    hint = "Save its content in a regular file and name that. A trace can also be piped to standard input: name it -."
    raise DataFileError(f"cannot read {quote_path(path)}: it is {kind}, not a regular file", hint)


def regular_descriptor(path: str) -> int:
    """Open a regular file for reading, and return its descriptor.

    Raises:
        OSError: The file cannot be opened.
        DataFileError: The path is a pipe, a device or a socket.
    """
    descriptor = os.open(path, _READ_FLAGS)
    try:
        check_regular(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_regular(path: str, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading bytes. It raises what `regular_descriptor` raises.

    Args:
        path: The path of the file.
        buffering: The size of the buffer in bytes, as for `open`, but not 0; -1 for the usual size.
    """
    return os.fdopen(regular_descriptor(path), "rb", buffering)


def installed_path(name: str) -> str:
    """Return the path of a file of the repository, in the installed package or else in the source folder; else ""."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (os.path.join(package, "bundled"), os.path.dirname(package)):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return ""


class ChangedError(DataFileError):
    """A file was changed after it was read."""


class Document(NamedTuple):
    """A file of a corpus, with its text on disk and the text that it should have.

    Attributes:
        name: The path relative to the folder of the corpus.
        present: The text on disk; None if the file is missing.
        wanted: The text that the file should have.
        is_orphan: True if an earlier version generated the file and this one does not, so that it is to be removed.
    """

    name: str
    present: str | None
    wanted: str
    is_orphan: bool = False

    @property
    def is_stale(self) -> bool:
        """Return True if the file has to be written or removed."""
        return self.present != self.wanted or self.is_orphan

    @property
    def differs_in_line_ends(self) -> bool:
        """Return True if the file ends its lines with CRLF, and writing it would change nothing else."""
        present = self.present or ""
        return not self.is_orphan and present != self.wanted and with_line_feeds(present) == self.wanted

    @property
    def diff(self) -> str:
        """Return the change to the file as a unified diff; empty if only line ends change."""
        from orchtrace_corpus.base.linediff import unified_diff  # imported here, because most commands show no diff

        present = self.present or ""
        if "\r\n" not in self.wanted:
            present = with_line_feeds(present)
        return unified_diff(self.name, present, self.wanted)


class TextFile(NamedTuple):
    """The text of a file with unchanged line ends, and the path of the file for messages."""

    path: str
    text: str


def with_line_feeds(text: str) -> str:
    """Return a text with CRLF replaced by LF."""
    return text.replace("\r\n", "\n")


def document(root: str, name: str, wanted: str) -> Document:
    """Return the `Document` of a file, with its present text and the text that it should have.

    Raises:
        DataFileError: The present file cannot be read.
    """
    return Document(name, read_text(root, name), wanted)


def read_text(root: str, name: str) -> str | None:
    """Return the text of a file in the folder of a corpus; None if the file is missing.

    Raises:
        DataFileError: The file cannot be read, or a symbolic link leads out of the corpus, where nothing may be
            written.
    """
    path = os.path.join(root, name)
    if _may_have_links(root, name):
        real_root = os.path.join(os.path.realpath(root), "")
        if not os.path.realpath(path).startswith(real_root):
            raise DataFileError(f"{name} leads out of the corpus", "Put a file in place of the symbolic link.")
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataFileError(f"cannot read {name}: {cause}") from error


def _may_have_links(root: str, name: str) -> bool:
    """Return True if a part of the path `name` below `root` may be a link; much faster than `os.path.realpath`."""
    if os.name != "posix":  # Windows has links of other kinds, too
        return True
    parts = accumulate(name.split("/"), os.path.join)
    return any(os.path.islink(os.path.join(root, part)) for part in parts)


def write_stale(root: str, documents: Sequence[Document]) -> list[str]:
    """Write or remove the stale documents, in their order, and return their names.

    Raises:
        DataFileError: A file cannot be written or removed.
        ChangedError: A file was changed after the documents were made; none is written.
    """
    stale = [document for document in documents if document.is_stale]
    if not stale:
        return []
    with locked(root):
        for document in stale:
            if read_text(root, document.name) != document.present:
                message = f"{document.name} was changed by somebody else meanwhile"
                raise ChangedError(message, "Run the command again.")
            path = os.path.join(root, document.name)
            folder = os.path.dirname(path)
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                message = f"cannot make the folder {os.path.relpath(folder)}: {error.strerror}"
                raise DataFileError(message) from error
            remove_temporary_files(os.path.dirname(os.path.realpath(path)))
        contents = {os.path.join(root, document.name): document.wanted for document in stale if not document.is_orphan}
        write_together(contents)
        for document in stale:
            if document.is_orphan:
                try:
                    os.remove(os.path.join(root, document.name))
                except OSError as error:
                    raise DataFileError(f"cannot remove {document.name}: {error.strerror}") from error
    return [document.name for document in stale]


def write_atomic(path: str, content: str | bytes) -> None:
    """Replace or create a file, so that a reader sees the whole old content or the whole new content.

    The content is written to a temporary file in the same folder, flushed to the disk, and renamed. If the path is a
    symbolic link, its target is replaced. Permissions stay.

    Raises:
        DataFileError: The folder or the disk does not allow it; the old file is untouched.
    """
    write_together({path: content})


def write_together(contents: Mapping[str, str | bytes]) -> None:
    """Replace the contents of several files in order, each as `write_atomic` does.

    First, all contents are written to temporary files, so most errors happen before anything has changed. Then the
    temporary files are renamed, one right after the other. If renaming one fails, the files that are already replaced
    get their old contents back. Only a process that is killed in between leaves some files new and some old.

    Raises:
        DataFileError: A file cannot be written; the message names the files that could not get their contents back.
    """
    import tempfile  # imported here, because most commands write nothing

    targets_by_temporary: dict[str, str] = {}  # the temporary files that are not renamed yet
    old_contents: dict[str, bytes | None] = {}  # those of the replaced files; None for a file that did not exist
    current_path = ""  # for the message
    umask = _umask()
    try:
        for path, content in contents.items():
            current_path = path
            target = os.path.realpath(path)
            mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~umask
            handle, temporary = tempfile.mkstemp(
                dir=os.path.dirname(target), prefix=_TEMPORARY_PREFIX, suffix=_TEMPORARY_SUFFIX
            )
            targets_by_temporary[temporary] = target
            with open(handle, "wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, mode)
        for temporary, target in list(targets_by_temporary.items()):
            current_path = target
            old_content = None
            if len(contents) > 1:  # a single file needs no way back
                old_content = _read_if_exists(target)
            os.replace(temporary, target)
            del targets_by_temporary[temporary]
            old_contents[target] = old_content
    except OSError as error:
        not_restored = []
        for path, old_content in reversed(old_contents.items()):
            if not _restore(path, old_content):
                not_restored.append(os.path.relpath(path))
        hint = "Nothing was changed; the file is as it was."
        if not_restored:
            hint = f"Written before it: {', '.join(not_restored)}."
        raise DataFileError(f"cannot write {os.path.relpath(current_path)}: {error.strerror}", hint) from error
    finally:
        for temporary in targets_by_temporary:
            with suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    """Return the process's mask of permissions, which can only be read by setting it."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _read_if_exists(path: str) -> bytes | None:
    """Return the content of a file; None if it is missing."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _restore(path: str, old_content: bytes | None) -> bool:
    """Write the old content of a file, or remove the file for None; return False if that fails."""
    try:
        if old_content is None:
            os.unlink(path)
        else:
            write_atomic(path, old_content)
    except (OSError, DataFileError):
        return False
    return True


@contextmanager
def new_file(path: str) -> Iterator[TextIO]:
    """Open a new file to write it in a `with` block; it appears under its name when the block ends without an error.

    Raises:
        FileExistsError: A file with this name exists.
        OSError: The file cannot be written; nothing is left of it.
    """
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _rename_without_replacing(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _rename_without_replacing(temporary: str, path: str) -> None:
    """Give a file its final name; raise `FileExistsError` if another file has it.

    A new link to the file never replaces another file. Without links in the file system, a file that appears between
    the check and the renaming is replaced.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise
        os.rename(temporary, path)


def replace_folder(path: str, files: Iterable[tuple[str, str | bytes]], is_ours: Callable[[str], bool]) -> int:
    """Write a folder of many files, which replaces an old folder as a whole or not at all.

    The files are written into a temporary folder next to it, which is then renamed. The files are not flushed to the
    disk, because they can be generated again.

    Args:
        path: The folder; created if missing.
        files: The files, each with its path relative to the folder, and its content.
        is_ours: Returns True if an existing folder that is not empty may be replaced.

    Returns:
        The number of files written.

    Raises:
        DataFileError: A file or a folder of somebody else is at the path, or the folder cannot be written; then nothing
            has changed.
    """
    import shutil
    import tempfile

    target = os.path.realpath(path)
    parent, name = os.path.split(target)
    prefix = f"{_TEMPORARY_PREFIX}{name}-"
    short_path = os.path.relpath(path)  # for messages
    try:
        os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target):
            may_replace = os.path.isdir(target) and (not os.listdir(target) or is_ours(target))
            if not may_replace:
                raise DataFileError(f"{short_path} holds something else", "Name a new folder, or an empty one.")
    except OSError as error:
        raise DataFileError(f"cannot write {short_path}: {error.strerror}") from error
    with locked(parent):
        new_folder = ""
        backup_folder = ""  # gets the old folder, which is deleted with it
        backup = ""
        try:
            for entry in os.listdir(parent):  # left by killed writers: the lock keeps other writers out
                if entry.startswith(prefix) and entry.endswith(_TEMPORARY_SUFFIX):
                    shutil.rmtree(os.path.join(parent, entry), ignore_errors=True)
            new_folder = tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=_TEMPORARY_SUFFIX)
            backup_folder = tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=_TEMPORARY_SUFFIX)
            backup = os.path.join(backup_folder, name)
            count = _write_files(new_folder, files)
            os.chmod(new_folder, 0o777 & ~_umask())
            if os.path.lexists(target):
                os.replace(target, backup)
            os.replace(new_folder, target)
        except OSError as error:
            if backup and os.path.lexists(backup) and not os.path.lexists(target):
                os.replace(backup, target)
            raise DataFileError(f"cannot write {short_path}: {error.strerror}", "Nothing was changed.") from error
        finally:
            for folder in (new_folder, backup_folder):
                if folder:
                    shutil.rmtree(folder, ignore_errors=True)
    return count


def _write_files(folder: str, files: Iterable[tuple[str, str | bytes]]) -> int:
    """Write files into a folder, and return their number."""
    existing_folders = {""}
    count = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # only Windows has O_BINARY
    for name, content in files:
        count += 1
        parent, _, _ = name.rpartition("/")
        if parent not in existing_folders:
            os.makedirs(os.path.join(folder, parent), exist_ok=True)
            existing_folders.add(parent)
        unwritten = memoryview(content.encode("utf-8") if isinstance(content, str) else content)
        # A descriptor, because a file object makes twice as many system calls.
        descriptor = os.open(os.path.join(folder, name), flags, 0o666)
        try:
            while unwritten:
                written_count = os.write(descriptor, unwritten)
                unwritten = unwritten[written_count:]
        finally:
            os.close(descriptor)
    return count


@contextmanager
def locked(folder: str, wait_seconds: float = 10.0) -> Iterator[None]:
    """Lock a folder for a `with` block, so that no other process on this machine that uses this function writes in it.

    The lock is on an empty file in the system's folder for temporary files, which other users can lock, too. The system
    releases the lock when the process ends, however it ends.

    Raises:
        DataFileError: Another process held the lock for all of `wait_seconds`; or the folder is missing; or the file to
            lock cannot be opened.
    """
    import tempfile
    from hashlib import sha256

    from filelock import FileLock, Timeout

    try:
        os.stat(folder)
    except OSError as error:
        raise DataFileError(f"cannot open {folder}: {error.strerror}") from error
    name = sha256(os.fsencode(os.path.normcase(os.path.realpath(folder)))).hexdigest()[:24]
    lock = FileLock(os.path.join(tempfile.gettempdir(), f"orchtrace-corpus-{name}.lock"), mode=0o666)
    try:
        lock.acquire(timeout=wait_seconds, poll_interval=0.05)
    except Timeout as error:
        raise DataFileError(
            f"another corpus command is writing in {folder}; waited {wait_seconds:g} seconds",
            "Nothing was changed. Try again when it has ended.",
        ) from error
    except OSError as error:
        raise DataFileError(f"cannot lock {folder} by {lock.lock_file}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def remove_temporary_files(folder: str) -> None:
    """Remove the temporary files of killed writers in a folder. The caller must hold the lock of the folder."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX):
                os.unlink(os.path.join(folder, name))
