"""Ask a service politely: one request at a time, no two too close together, and nothing twice.

That holds across all processes that use one cache: answers are kept in it.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from types import GenericAlias
from typing import Any, TypeVar

from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, UpstreamError
from orchtrace_corpus.base.files import sweep, write_atomic
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple


class Service(NamedTuple):
    """A service that is asked over HTTP.

    Attributes:
        url: Its address.
        name: What to call it in messages.
        folder: The name of its own folder and lock in the cache.
        spacing_seconds: The least time from one request to the next.
        hosts: The hosts that it may redirect to besides its own.
    """

    url: str
    name: str
    folder: str
    spacing_seconds: float
    hosts: tuple[str, ...]


def named_service(url: str, host: str, spacing_seconds: float) -> Service:
    """Return a service that goes by the name of its host."""
    return Service(url, host, f"{host[:60]}-{sha256(url.encode()).hexdigest()[:12]}", spacing_seconds, ())


def spacing_of(variable: str, default_seconds: float) -> float:
    """Return the time between requests that a variable of the environment sets.

    Raises:
        CommandUseError: It is not a number of seconds.
    """
    text = os.environ.get(variable, "")
    with suppress(ValueError):
        seconds = float(text or default_seconds)
        if 0 <= seconds < math.inf:
            return seconds
    raise CommandUseError(f"{variable} is not a number of seconds: {quote(text)}", "Write such as 0.5.")


class BusyError(UpstreamError):
    """The service has no answer now."""


class CacheError(CorpusError):
    """The cache's folder cannot be used."""

    def __init__(self, path: str, error: OSError) -> None:
        message = f"cannot write the cache {path}: {error.strerror}"
        super().__init__(message, "Name another folder with ORCHTRACE_CACHE.")


def default_folder() -> str:
    """Return `ORCHTRACE_CACHE`, else orchtrace-corpus in `XDG_CACHE_HOME`, else in ~/.cache.

    Reference: XDG Base Directory Specification 0.8, which has relative paths ignored.
    """
    own, shared = os.environ.get("ORCHTRACE_CACHE", ""), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return os.path.abspath(own)
    return os.path.join(shared if os.path.isabs(shared) else os.path.expanduser("~/.cache"), "orchtrace-corpus")


def make_folder(folder: str) -> None:
    """Make a folder of the cache where it is not there.

    Raises:
        CacheError: The disk does not allow it.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CacheError(folder, error) from error


FORM = 2
"""The number of the files' form; files of another are not read."""

Shape = TypeVar("Shape")


class AnswerFolder:
    """A folder of the cache with the answers of one service, a file for each.

    Args:
        folder: The service's own folder; made when something is written.
        wall: Gives the time in seconds since the epoch.
    """

    def __init__(self, folder: str, wall: Callable[[], float]) -> None:
        self.folder = folder
        self._wall = wall

    def sweep(self) -> None:
        """Remove what killed writers left; only to be called while no process writes."""
        sweep(self.folder)

    def read_answer(self, asked: str, shape: type[Shape], max_age_seconds: float | None = None) -> Shape | None:
        """Return the answer that is kept to a request; None without one of this shape, of that age.

        Args:
            asked: The request.
            shape: The type of the answer.
            max_age_seconds: The oldest answer to give; None for any age. One from the future is of no known age.
        """
        import msgspec

        entry: Any = GenericAlias(tuple, (int, str, float, shape))
        try:
            with open(self.path_of(asked), "rb") as file:
                form, request, asked_at, answer = msgspec.json.decode(file.read(16 * 1024 * 1024), type=entry)
        except (OSError, ValueError, msgspec.DecodeError, RecursionError):
            return None
        is_fresh = max_age_seconds is None or 0 <= self._wall() - asked_at <= max_age_seconds
        return answer if (form, request) == (FORM, asked) and is_fresh else None

    def write_answer(self, asked: str, answer: object) -> None:
        """Keep the answer to a request, which JSON can hold; a tuple of names becomes a list.

        Raises:
            CacheError: The disk does not allow it.
        """
        path = self.path_of(asked)
        make_folder(os.path.dirname(path))
        try:
            write_atomic(path, json.dumps((FORM, asked, self._wall(), answer)) + "\n")
        except DataFileError as error:
            cause = error.__cause__
            raise CacheError(path, cause if isinstance(cause, OSError) else OSError(str(error))) from error

    def path_of(self, asked: str) -> str:
        """Return the file of the answer to a request."""
        return os.path.join(self.folder, f"{sha256(asked.encode()).hexdigest()}.json")


class Clock:
    """The times that waiting depends on; tests have their own.

    Attributes:
        wall: Seconds since the epoch, which may jump when somebody sets the clock.
        steady: Seconds that never jump, since the machine was started.
        sleep: Waits for so many seconds.
    """

    wall: Callable[[], float] = staticmethod(time.time)
    steady: Callable[[], float] = staticmethod(time.monotonic)
    sleep: Callable[[float], None] = staticmethod(time.sleep)


class Limiter:
    """Gives turns to ask, so that from the end of one request to the next at least `spacing_seconds` pass.

    A file is locked while a request runs, and another holds the time of the last one. The system drops the lock of a
    process that ends, however it ends. The time is written before a request is sent, so that the request of a killed
    process counts, too, and again when it has ended: what a connection takes to be made must not bring two requests
    closer together at the server.

    Args:
        path: The file with the time, made where it is not there; the locked file is beside it.
        spacing_seconds: The least time from the end of one request to the beginning of the next.
        clock: The times to go by.
        pause: Called to wait for so many seconds, with the reason; empty for the usual spacing.
    """

    def __init__(self, path: str, spacing_seconds: float, clock: Clock, pause: Callable[[float, str], None]) -> None:
        from filelock import FileLock

        self.clock = clock
        self.pause = pause
        self._path = path
        self._lock = FileLock(f"{path}.lock")
        self._spacing_seconds = spacing_seconds

    @contextmanager
    def turn(self, wait_seconds: float) -> Iterator["Limiter"]:
        """Be the only process that asks; a turn within a turn is the same.

        Raises:
            BusyError: Another process had its turn for all of `wait_seconds`.
            CacheError: The lock cannot be made.
        """
        from filelock import Timeout

        make_folder(os.path.dirname(self._path))
        deadline = self.clock.steady() + wait_seconds
        turn = None
        while turn is None:
            try:
                turn = self._lock.acquire(timeout=0)
            except Timeout:
                if self.clock.steady() >= deadline:
                    raise BusyError(f"another process was asking for more than {wait_seconds:g} s") from None
                self.pause(0.05, "another process is asking")
            except OSError as error:
                raise CacheError(self._path, error) from error
        with turn:
            yield self

    def begin(self) -> None:
        """Wait until the last request is long enough ago, and note that the next one begins.

        Raises:
            CacheError: The file cannot be written.
        """
        due_seconds = self._due_seconds()
        if due_seconds > 0:
            self.pause(due_seconds, "")
        self.end()

    def end(self) -> None:
        """Note that a request has ended.

        Raises:
            CacheError: The file cannot be written.
        """
        noted = f"{self.clock.wall():020.6f} {self.clock.steady():020.6f}\n"
        flags = os.O_RDWR | os.O_CREAT
        try:
            with open(self._path, "r+b", buffering=0, opener=lambda path, _: os.open(path, flags, 0o666)) as file:
                file.write(noted.encode())
        except OSError as error:
            raise CacheError(self._path, error) from error

    def _due_seconds(self) -> float:
        """Return how long to wait yet, from 0 to the spacing.

        The last request was as recently as the nearer of two clocks says: the wall clock may have been
        set forward since, the steady one begins anew with the machine. A time that lies ahead, or that
        cannot be read, counts as now.
        """
        try:
            with open(self._path, "rb") as file:
                wall, steady = map(float, file.read(42).split())  # as `end` writes them
        except FileNotFoundError:
            return 0.0
        except (OSError, ValueError):
            return self._spacing_seconds
        if not (math.isfinite(wall) and math.isfinite(steady)):
            return self._spacing_seconds
        passed_seconds = [self.clock.wall() - wall]
        if steady <= self.clock.steady():
            passed_seconds.append(self.clock.steady() - steady)
        return min(max(self._spacing_seconds - min(passed_seconds), 0.0), self._spacing_seconds)
