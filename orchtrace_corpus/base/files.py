"""Write files as a whole or not at all, with one writer at a time; open only regular files to read.

No other module writes below the folder of a corpus.
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


def text_beside(module: str, name: str) -> str:
    """Return a text file that lies beside a module of the package, given by the module's `__file__`."""
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as file:
        return file.read()


_FOR_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""O_NONBLOCK: opening a pipe does not wait for a writer. On regular files it has no effect."""


def check_regular(path: str, mode: int) -> None:
    """Raise an error unless a mode is that of a regular file: reading a pipe or a device may never end.

    Args:
        path: The path for the message.
        mode: The `st_mode` of the path.

    Raises:
        IsADirectoryError: It is a folder.
        DataFileError: It is a pipe, a device or a socket.
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
    """Open a regular file to read, and return its descriptor.

    Raises:
        OSError: It cannot be opened.
        DataFileError: It is a pipe, a device or a socket.
    """
    descriptor = os.open(path, _FOR_READING)
    try:
        check_regular(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_regular(path: str, buffering: int = -1) -> BinaryIO:
    """Open a regular file to read bytes; errors as of `regular_descriptor`. `buffering` is as in `open`, but not 0."""
    return os.fdopen(regular_descriptor(path), "rb", buffering)


def installed_path(name: str) -> str:
    """Return the path of a file that is in the wheel or in the source tree; empty if it is in neither."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = (os.path.join(folder, name) for folder in (os.path.join(package, "bundled"), os.path.dirname(package)))
    return next(filter(os.path.exists, places), "")


class ChangedError(DataFileError):
    """A file was changed after it was read."""


class Document(NamedTuple):
    """A file with its text on disk and the text that it should have.

    Attributes:
        name: The path below the corpus's folder.
        present: The text on disk; None if the file is missing.
        wanted: The text that it should have.
        is_orphan: True if it was generated before, but is not any more, so that it is to be removed.
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
        from orchtrace_corpus.base.linediff import unified_diff  # costs start-up, and most commands show none

        present = self.present or ""
        if "\r\n" not in self.wanted:
            present = with_line_feeds(present)
        return unified_diff(self.name, present, self.wanted)


class TextFile(NamedTuple):
    """The text of a file with its own line ends, and its path for messages."""

    path: str
    text: str


def with_line_feeds(text: str) -> str:
    """Return a text with CRLF replaced by LF."""
    return text.replace("\r\n", "\n")


def document(root: str, name: str, wanted: str) -> Document:
    """Return a file of a corpus, by its name below the folder, with the text that it should have.

    Raises:
        DataFileError: The present file cannot be read.
    """
    return Document(name, read_text(root, name), wanted)


def read_text(root: str, name: str) -> str | None:
    """Return the text of a file of a corpus; None if it is missing.

    Raises:
        DataFileError: It cannot be read, or a symbolic link leads out of the corpus, where nothing may be written.
    """
    path = os.path.join(root, name)
    below = accumulate(name.split("/"), os.path.join)
    # This takes a fraction of the time of realpath. Windows also has links of other kinds.
    may_lead_out = os.name != "posix" or any(os.path.islink(os.path.join(root, part)) for part in below)
    if may_lead_out and not os.path.realpath(path).startswith(os.path.join(os.path.realpath(root), "")):
        raise DataFileError(f"{name} leads out of the corpus", "Put a file in place of the symbolic link.")
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataFileError(f"cannot read {name}: {cause}") from error


def write_stale(root: str, documents: Sequence[Document]) -> list[str]:
    """Write or remove the stale documents, in their order, and return their names.

    Raises:
        DataFileError: A file cannot be written or removed.
        ChangedError: A file was changed after the documents were made; none is written.
    """
    stale = [document for document in documents if document.is_stale]
    if stale:
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
                sweep(os.path.dirname(os.path.realpath(path)))
            kept = [document for document in stale if not document.is_orphan]
            write_together({os.path.join(root, document.name): document.wanted for document in kept})
            for name in (document.name for document in stale if document.is_orphan):
                try:
                    os.remove(os.path.join(root, name))
                except OSError as error:
                    raise DataFileError(f"cannot remove {name}: {error.strerror}") from error
    return [document.name for document in stale]


def write_atomic(path: str, content: str | bytes) -> None:
    """Replace or create a file, so that a reader sees the whole old content or the whole new content.

    The content is written to a temporary file in the same folder, flushed to the disk, and renamed. Of a symbolic link,
    the target is replaced. Permissions stay.

    Raises:
        DataFileError: The folder or the disk does not allow it; the old file is untouched.
    """
    write_together({path: content})


def write_together(contents: Mapping[str, str | bytes]) -> None:
    """Replace the contents of several files in order, each as `write_atomic` does.

    All new contents are on the disk before the first file is replaced, so most errors happen before anything has
    changed. Then the temporary files are renamed, one right after the other. If that fails, the files before it get
    their old contents back; only a process that is killed in between leaves some files new and some old.

    Raises:
        DataFileError: A file cannot be written; the message names the others that were.
    """
    import tempfile  # costs start-up, and most commands write nothing

    targets: dict[str, str] = {}
    replaced: dict[str, bytes | None] = {}
    shown = ""
    umask = os.umask(0)  # the only way to read it
    os.umask(umask)
    try:
        for path, content in contents.items():
            shown = path
            target = os.path.realpath(path)
            mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~umask
            handle, temporary = tempfile.mkstemp(
                dir=os.path.dirname(target), prefix=_TEMPORARY_PREFIX, suffix=_TEMPORARY_SUFFIX
            )
            targets[temporary] = target
            with open(handle, "wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, mode)
        for temporary, shown in list(targets.items()):
            old = _content(shown) if len(contents) > 1 else None
            os.replace(temporary, shown)
            del targets[temporary]
            replaced[shown] = old
    except OSError as error:
        kept = [path for path, old in reversed(replaced.items()) if not _restored(path, old)]
        before = ", ".join(map(os.path.relpath, kept))
        hint = f"Written before it: {before}." if kept else "Nothing was changed; the file is as it was."
        raise DataFileError(f"cannot write {os.path.relpath(shown)}: {error.strerror}", hint) from error
    finally:
        for temporary in targets:
            with suppress(OSError):
                os.unlink(temporary)


def _content(path: str) -> bytes | None:
    """Return the content of a file; None if it is missing."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _restored(path: str, old: bytes | None) -> bool:
    """Return True if a file has its old content again; None removes it."""
    try:
        if old is None:
            os.unlink(path)
        else:
            write_atomic(path, old)
    except (OSError, DataFileError):
        return False
    return True


@contextmanager
def new_file(path: str) -> Iterator[TextIO]:
    """Write a new file, which appears when all of it is written.

    Raises:
        FileExistsError: It exists.
        OSError: It cannot be written; nothing is left.
    """
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _name_file(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def _name_file(beside: str, path: str) -> None:
    """Give a written file its name without replacing another file: by a link, if the file system has links."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise
        os.rename(beside, path)


def replace_folder(path: str, files: Iterable[tuple[str, str | bytes]], is_ours: Callable[[str], bool]) -> int:
    """Write many files as one folder, which replaces the old folder as a whole or not at all.

    They are written into a temporary folder beside it, which is then renamed. They are not flushed to the disk one by
    one, because they can be generated again.

    Args:
        path: The folder; created if missing.
        files: The files, each with its path below the folder.
        is_ours: Returns True if an existing folder that is not empty may be replaced.

    Returns:
        The number of files written.

    Raises:
        DataFileError: Something else is at the path, or it cannot be written; then nothing has changed.
    """
    import shutil
    import tempfile

    target = os.path.realpath(path)
    parent, name = os.path.split(target)
    prefix = f"{_TEMPORARY_PREFIX}{name}-"
    shown = os.path.relpath(path)
    try:
        os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target) and not (os.path.isdir(target) and (not os.listdir(target) or is_ours(target))):
            raise DataFileError(f"{shown} holds something else", "Name a new folder, or an empty one.")
    except OSError as error:
        raise DataFileError(f"cannot write {shown}: {error.strerror}") from error
    with locked(parent):
        staged = old = ""
        try:
            for entry in os.listdir(parent):  # left by killed writers: the lock keeps other writers out
                if entry.startswith(prefix) and entry.endswith(_TEMPORARY_SUFFIX):
                    shutil.rmtree(os.path.join(parent, entry), ignore_errors=True)
            staged = tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=_TEMPORARY_SUFFIX)
            old = tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=_TEMPORARY_SUFFIX)
            count = _write_all(staged, files)
            umask = os.umask(0)  # the only way to read it
            os.umask(umask)
            os.chmod(staged, 0o777 & ~umask)
            if os.path.lexists(target):
                os.replace(target, os.path.join(old, name))
            os.replace(staged, target)
        except OSError as error:
            if old and not os.path.lexists(target) and os.path.lexists(os.path.join(old, name)):
                os.replace(os.path.join(old, name), target)
            raise DataFileError(f"cannot write {shown}: {error.strerror}", "Nothing was changed.") from error
        finally:
            for folder in filter(None, (staged, old)):
                shutil.rmtree(folder, ignore_errors=True)
    return count


def _write_all(folder: str, files: Iterable[tuple[str, str | bytes]]) -> int:
    folders = {""}
    count = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # which only Windows has
    for name, content in files:
        count += 1
        below = name.rpartition("/")[0]
        if below not in folders:
            os.makedirs(os.path.join(folder, below), exist_ok=True)
            folders.add(below)
        rest = memoryview(content.encode("utf-8") if isinstance(content, str) else content)
        file = os.open(os.path.join(folder, name), flags, 0o666)  # a file object makes twice as many system calls
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
    return count


@contextmanager
def locked(folder: str, wait_seconds: float = 10.0) -> Iterator[None]:
    """Be the only writer in a folder, among all processes and users of this machine.

    The system drops the lock when the process ends, however it ends. The locked file is empty and is in the system's
    folder for temporary files. Other users may lock it, too.

    Raises:
        DataFileError: Another process held the lock for all of `wait_seconds`; or the folder is missing, or the lock
            cannot be made.
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


def sweep(folder: str) -> None:
    """Remove the temporary files of killed writers in a folder. Only the holder of the lock may call it."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX):
                os.unlink(os.path.join(folder, name))
