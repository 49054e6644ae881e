"""One request at a time, and no two too close together, across all processes that use one cache.

A file is locked while a request runs, and holds the time of the last one. The system drops the lock of
a process that ends, however it ends. The time is written before a request is sent, so that the request
of a killed process counts, too, and again when it has ended: what a connection takes to be made must
not bring two requests closer together at the server.
"""

import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchtrace_corpus.corpus.sources.arxiv.cache import CacheError, make_folder

_POLL_SECONDS = 0.05
_FORM = "{:020.6f} {:020.6f}\n"
_BYTES = len(_FORM.format(0, 0))


class Clock:
    """The times that waiting depends on; tests have their own.

    Attributes:
        wall: Seconds since the epoch, which may jump when somebody sets the clock.
        steady: Seconds that never jump, since the machine was started.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.wall = wall
        self.steady = steady
        self.sleep = sleep


class Limiter:
    """Gives turns to ask, so that from the end of one request to the next at least `spacing_seconds` pass.

    Args:
        path: The file that all processes share; made where it is not there.
        spacing_seconds: The least time from the end of one request to the beginning of the next.
        clock: The times to go by.
        pause: Called to wait for so many seconds, with the reason; empty for the usual spacing.
    """

    def __init__(
        self,
        path: str,
        spacing_seconds: float,
        clock: Clock,
        pause: Callable[[float, str], None],
    ) -> None:
        self._path = path
        self._spacing_seconds = spacing_seconds
        self._clock = clock
        self._pause = pause

    @contextmanager
    def turn(self, wait_seconds: float) -> Iterator["Turn"]:
        """Be the only process that asks.

        Raises:
            TimeoutError: Another process had its turn for all of `wait_seconds`.
            CacheError: The file cannot be opened or written.
        """
        make_folder(os.path.dirname(self._path))
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise CacheError(self._path, error) from error
        try:
            deadline = self._clock.steady() + wait_seconds
            while not _locked(handle):
                if self._clock.steady() >= deadline:
                    raise TimeoutError
                self._pause(_POLL_SECONDS, "another process is asking")
            yield Turn(handle, self._path, self._spacing_seconds, self._clock, self._pause)
        finally:
            os.close(handle)


class Turn:
    """The time in which one process may ask; made by `Limiter.turn`."""

    def __init__(
        self, handle: int, path: str, spacing_seconds: float, clock: Clock, pause: Callable[[float, str], None]
    ) -> None:
        self._handle = handle
        self._path = path
        self._spacing_seconds = spacing_seconds
        self._clock = clock
        self._pause = pause

    def begin(self) -> None:
        """Wait until the last request is long enough ago, and note that the next one begins.

        Raises:
            CacheError: The file cannot be written.
        """
        due_seconds = self._due_seconds()
        if due_seconds > 0:
            self._pause(due_seconds, "")
        self.end()

    def end(self) -> None:
        """Note that a request has ended.

        Raises:
            CacheError: The file cannot be written.
        """
        try:
            os.pwrite(self._handle, _FORM.format(self._clock.wall(), self._clock.steady()).encode(), 0)
        except OSError as error:
            raise CacheError(self._path, error) from error

    def _due_seconds(self) -> float:
        """How long to wait yet, from 0 to the spacing.

        The last request was as recently as the nearer of two clocks says: the wall clock may have been
        set forward since, the steady one begins anew with the machine. A time that lies ahead, or that
        cannot be read, counts as now.
        """
        noted = os.pread(self._handle, _BYTES, 0)
        if not noted:
            return 0.0
        try:
            wall, steady = map(float, noted.split())
        except ValueError:
            wall = steady = math.nan
        if not (math.isfinite(wall) and math.isfinite(steady)):
            return self._spacing_seconds
        waits = [self._spacing_seconds - (self._clock.wall() - wall)]
        if steady <= self._clock.steady():
            waits.append(self._spacing_seconds - (self._clock.steady() - steady))
        return min(max(*waits, 0.0), self._spacing_seconds)


def _locked(handle: int) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
