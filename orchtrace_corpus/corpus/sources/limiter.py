"""Limit the requests to a service: one at a time, with a pause after each, and none for an answer that is stored.

The limits hold for all processes that use the same cache of answers.
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
    """A web service.

    Attributes:
        url: The URL that requests begin with.
        name: The name in messages.
        folder: The name of the service's folder and lock in the cache.
        spacing_seconds: The shortest time between two requests.
        hosts: The hosts to which the service may redirect, besides its own.
    """

    url: str
    name: str
    folder: str
    spacing_seconds: float
    hosts: tuple[str, ...]


def named_service(url: str, host: str, spacing_seconds: float) -> Service:
    """Return a service that is called by its host; the folder's name depends on the whole URL."""
    folder = f"{host[:60]}-{sha256(url.encode()).hexdigest()[:12]}"
    return Service(url, host, folder, spacing_seconds, ())


def read_spacing(variable: str, default_seconds: float) -> float:
    """Return the seconds between requests in an environment variable; raise `CommandUseError` if it holds no number."""
    text = os.environ.get(variable, "")
    with suppress(ValueError):
        seconds = float(text or default_seconds)
        if 0 <= seconds < math.inf:
            return seconds
    raise CommandUseError(f"{variable} is not a number of seconds: {quote(text)}", "Write such as 0.5.")


def check_web_address(variable: str, url: str) -> None:
    """Raise `CommandUseError` unless the URL in an environment variable is an http or https address."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise CommandUseError(f"{variable} is not a web address: {quote(url)}", "Begin it with https://.")


class BusyError(UpstreamError):
    """The service has no answer now, but may have one later."""


class CacheError(CorpusError):
    """The folder of the cache cannot be used."""

    def __init__(self, path: str, error: OSError) -> None:
        message = f"cannot write the cache {path}: {error.strerror}"
        super().__init__(message, "Name another folder with ORCHTRACE_CACHE.")


def default_folder() -> str:
    """Return the cache's folder: `ORCHTRACE_CACHE`, else orchtrace-corpus in `XDG_CACHE_HOME`, else in ~/.cache."""
    folder = os.environ.get("ORCHTRACE_CACHE", "")
    if folder:
        return os.path.abspath(folder)
    parent = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(parent):  # the XDG Base Directory Specification 0.8 says to ignore relative paths
        parent = os.path.expanduser("~/.cache")
    return os.path.join(parent, "orchtrace-corpus")


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CacheError(folder, error) from error


FILE_VERSION = 2
"""The version of the files' format. Files of another version are not read."""

AnswerType = TypeVar("AnswerType")


class AnswerFolder:
    """A folder of the cache with the answers of a service, each in a file; `wall` returns the seconds since 1970."""

    def __init__(self, folder: str, wall: Callable[[], float]) -> None:
        self.folder = folder
        self._wall = wall

    def remove_temporary_files(self) -> None:
        """Remove temporary files that killed processes left. No other process may write during the call."""
        remove_temporary_files(self.folder)

    def read_answer(
        self, request: str, answer_type: type[AnswerType], max_age_seconds: float | None = None
    ) -> AnswerType | None:
        """Return the stored answer to a request; None if there is none of this type and age.

        `max_age_seconds` of None accepts any age. Otherwise an answer with a date in the future is not accepted.
        """
        import msgspec

        entry: Any = GenericAlias(tuple, (int, str, float, answer_type))
        try:
            with open(self.path_of(request), "rb") as file:
                content = file.read(16 * 1024 * 1024)
            version, stored_request, stored_at, answer = msgspec.json.decode(content, type=entry)
        except (OSError, ValueError, RecursionError):
            return None
        if version != FILE_VERSION or stored_request != request:
            return None
        is_fresh = max_age_seconds is None or 0 <= self._wall() - stored_at <= max_age_seconds
        return answer if is_fresh else None

    def write_answer(self, request: str, answer: object) -> None:
        """Store the answer to a request as JSON; raise `CacheError` if that fails."""
        path = self.path_of(request)
        _make_folder(os.path.dirname(path))
        try:
            write_atomic(path, json.dumps((FILE_VERSION, request, self._wall(), answer)) + "\n")
        except DataFileError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError):
                cause = OSError(str(error))
            raise CacheError(path, cause) from error

    def path_of(self, request: str) -> str:
        """Return the path of the file with the answer to a request."""
        return os.path.join(self.folder, f"{sha256(request.encode()).hexdigest()}.json")


class Clock:
    """The functions of time that waiting depends on; tests replace them.

    Attributes:
        wall: Returns the seconds since 1970, which jump when somebody sets the clock.
        steady: Returns the seconds since the machine was started, which never jump.
        sleep: Waits for a number of seconds.
    """

    wall: Callable[[], float] = staticmethod(time.time)
    steady: Callable[[], float] = staticmethod(time.monotonic)
    sleep: Callable[[float], None] = staticmethod(time.sleep)


_TICK_SECONDS = 1.0


class Limiter:
    """Lets one process at a time send requests, with `spacing_seconds` from the end of one request to the next.

    `path` holds the time of the last request. The file `PATH.lock` is locked while a process has its turn; the system
    releases the lock when the process ends, even if it is killed. The time is written before a request, so that the
    request of a killed process counts, and again at its end: connecting takes time, and without the second time two
    requests could reach the server too close together.
    """

    def __init__(self, path: str, spacing_seconds: float, clock: Clock, report: Callable[[float, str], None]) -> None:
        from filelock import FileLock

        self.clock = clock
        self._report = report
        self._path = path
        self._lock = FileLock(f"{path}.lock")
        self._spacing_seconds = spacing_seconds

    def pause(self, seconds: float, reason: str) -> None:
        """Wait, and report each second the remaining seconds and the reason, which is empty for the usual spacing."""
        while seconds > 0:
            self._report(seconds, reason)
            self.clock.sleep(min(seconds, _TICK_SECONDS))
            seconds -= _TICK_SECONDS
        self._report(0.0, "")

    @contextmanager
    def turn(self, wait_seconds: float) -> Iterator["Limiter"]:
        """Be the only process that sends requests, until the end of a `with` block. Turns of a process can be nested.

        Raises:
            BusyError: Other processes had their turns for all of `wait_seconds`.
            CacheError: The lock cannot be created.
        """
        from filelock import Timeout

        _make_folder(os.path.dirname(self._path))
        deadline = self.clock.steady() + wait_seconds
        lock = None
        while lock is None:
            try:
                lock = self._lock.acquire(timeout=0)
            except Timeout:
                if self.clock.steady() >= deadline:
                    raise BusyError(f"another process was asking for more than {wait_seconds:g} s") from None
                self.pause(0.05, "another process is asking")
            except OSError as error:
                raise CacheError(self._path, error) from error
        with lock:
            yield self

    def begin(self) -> None:
        """Wait until the last request is long enough ago, and write the time of a new one; errors as of `end`."""
        seconds = self._seconds_until_next()
        if seconds > 0:
            self.pause(seconds, "")
        self.end()

    def end(self) -> None:
        """Write the time, since a request has ended; raise `CacheError` if the file cannot be written."""
        times = f"{self.clock.wall():020.6f} {self.clock.steady():020.6f}\n"
        flags = os.O_RDWR | os.O_CREAT  # the text has the same length each time, so the file is not truncated
        try:
            with open(self._path, "r+b", buffering=0, opener=lambda path, _: os.open(path, flags, 0o666)) as file:
                file.write(times.encode())
        except OSError as error:
            raise CacheError(self._path, error) from error

    def _seconds_until_next(self) -> float:
        """Return the time until the next request may begin, from 0 to the spacing.

        The last request is as old as the younger of its ages on the two clocks, since the wall clock may have been set
        forward, and the steady clock starts with the machine. A time that cannot be read, or lies ahead, means now.
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
        age_seconds = self.clock.wall() - wall
        if steady <= self.clock.steady():
            age_seconds = min(age_seconds, self.clock.steady() - steady)
        return min(max(self._spacing_seconds - age_seconds, 0.0), self._spacing_seconds)
