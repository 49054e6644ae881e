"""Ask a service politely: one request at a time, no two too close together, and nothing twice.

That holds for all processes that use one cache, which keeps the answers.
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
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, UpstreamError
from orchtrace_corpus.base.files import remove_temporary_files, write_atomic
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple


class Service(NamedTuple):
    """A service that is asked over HTTP.

    Attributes:
        url: Its address.
        name: Its name in messages.
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
    """Return the time between requests that a variable of the environment sets; raise `CommandUseError` for another."""
    text = os.environ.get(variable, "")
    with suppress(ValueError):
        seconds = float(text or default_seconds)
        if 0 <= seconds < math.inf:
            return seconds
    raise CommandUseError(f"{variable} is not a number of seconds: {quote(text)}", "Write such as 0.5.")


def check_web_address(variable: str, url: str) -> None:
    """Raise `CommandUseError` unless the address that a variable of the environment sets is one of the web."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise CommandUseError(f"{variable} is not a web address: {quote(url)}", "Begin it with https://.")


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


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CacheError(folder, error) from error


FORM = 2
"""The number of the files' form; files of another are not read."""

Shape = TypeVar("Shape")


class AnswerFolder:
    """A folder of the cache with the answers of one service, a file for each; `wall` gives the seconds since 1970."""

    def __init__(self, folder: str, wall: Callable[[], float]) -> None:
        self.folder = folder
        self._wall = wall

    def sweep(self) -> None:
        """Remove temporary files that killed processes left. No other process may write meanwhile."""
        remove_temporary_files(self.folder)

    def read_answer(self, request: str, shape: type[Shape], max_age_seconds: float | None = None) -> Shape | None:
        """Return the stored answer to a request; None without one of this type and age.

        Any age will do without `max_age_seconds`. An answer that is dated in the future has no known age.
        """
        import msgspec

        entry: Any = GenericAlias(tuple, (int, str, float, shape))
        try:
            with open(self.path_of(request), "rb") as file:
                form, stored_request, stored_at, answer = msgspec.json.decode(file.read(16 * 1024 * 1024), type=entry)
        except (OSError, ValueError, RecursionError):
            return None
        is_fresh = max_age_seconds is None or 0 <= self._wall() - stored_at <= max_age_seconds
        return answer if (form, stored_request) == (FORM, request) and is_fresh else None

    def write_answer(self, request: str, answer: object) -> None:
        """Store the answer to a request as JSON, which makes lists of tuples; raise `CacheError` if that fails."""
        path = self.path_of(request)
        _make_folder(os.path.dirname(path))
        try:
            write_atomic(path, json.dumps((FORM, request, self._wall(), answer)) + "\n")
        except DataFileError as error:
            cause = error.__cause__
            raise CacheError(path, cause if isinstance(cause, OSError) else OSError(str(error))) from error

    def path_of(self, request: str) -> str:
        """Return the file of the answer to a request."""
        return os.path.join(self.folder, f"{sha256(request.encode()).hexdigest()}.json")


class Clock:
    """The times that waiting depends on; tests have their own.

    Attributes:
        wall: Seconds since 1970, which may jump when somebody sets the clock.
        steady: Seconds that never jump, since the machine was started.
        sleep: Waits for so many seconds.
    """

    wall: Callable[[], float] = staticmethod(time.time)
    steady: Callable[[], float] = staticmethod(time.monotonic)
    sleep: Callable[[float], None] = staticmethod(time.sleep)


_TICK_SECONDS = 1.0


class Limiter:
    """Lets one process ask at a time, with `spacing_seconds` from the end of one request to the next.

    `path` holds the time of the last request, and a file beside it is locked while a process has its turn. The system
    drops the lock of a process that ends, however it ends. The time is written before a request is sent, so that the
    request of a killed process counts, and again when it has ended: connecting takes time, which must not bring two
    requests closer together at the server.
    """

    def __init__(self, path: str, spacing_seconds: float, clock: Clock, report: Callable[[float, str], None]) -> None:
        from filelock import FileLock

        self.clock = clock
        self._report = report
        self._path = path
        self._lock = FileLock(f"{path}.lock")
        self._spacing_seconds = spacing_seconds

    def pause(self, seconds: float, reason: str) -> None:
        """Wait, and report each second how long yet and why; the reason is empty for the usual spacing."""
        while seconds > 0:
            self._report(seconds, reason)
            self.clock.sleep(min(seconds, _TICK_SECONDS))
            seconds -= _TICK_SECONDS
        self._report(0.0, "")

    @contextmanager
    def turn(self, wait_seconds: float) -> Iterator["Limiter"]:
        """Be the only process that asks; a turn within a turn is the same.

        Raises:
            BusyError: Another process had its turn for all of `wait_seconds`.
            CacheError: The lock cannot be made.
        """
        from filelock import Timeout

        _make_folder(os.path.dirname(self._path))
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
        """Wait until the last request is long enough ago, and note that the next one begins; errors as of `end`."""
        due_seconds = self._due_seconds()
        if due_seconds > 0:
            self.pause(due_seconds, "")
        self.end()

    def end(self) -> None:
        """Note that a request has ended; raise `CacheError` if the file cannot be written."""
        noted = f"{self.clock.wall():020.6f} {self.clock.steady():020.6f}\n"
        flags = os.O_RDWR | os.O_CREAT
        try:
            with open(self._path, "r+b", buffering=0, opener=lambda path, _: os.open(path, flags, 0o666)) as file:
                file.write(noted.encode())
        except OSError as error:
            raise CacheError(self._path, error) from error

    def _due_seconds(self) -> float:
        """Return how long to wait yet, from 0 to the spacing; a time that cannot be read, or lies ahead, counts as now.

        The shorter of two times counts: the wall clock may have been set forward, and the steady one starts with the
        machine.
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
