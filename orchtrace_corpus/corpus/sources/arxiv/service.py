"""Which service is asked, and how politely: arXiv's own, or whatever mirror somebody points us at.

One request at a time, and no two too close together, across all processes that use one cache.
"""

import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from io import FileIO
from typing import NamedTuple
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.corpus.sources.arxiv.cache import CacheError, make_folder

DEFAULT_URL = "https://export.arxiv.org/api/query"
"""arXiv's host for programs."""

SPACING_SECONDS = 3.0
"""The terms of use ask for no more than one request in three seconds (https://info.arxiv.org/help/api/tou.html)."""


class Service(NamedTuple):
    """A service that answers as arXiv's query API does.

    Attributes:
        url: Its address.
        name: What to call it in messages.
        folder: The name of its own folder and lock in the cache. arXiv's hosts share one.
        spacing_seconds: The least time from one request to the next.
        hosts: The hosts that it may redirect to besides its own.
    """

    url: str
    name: str
    folder: str
    spacing_seconds: float
    hosts: tuple[str, ...]


def base_url(option: str = "") -> str:
    """The address to ask: the option's, else that of `ORCHTRACE_ARXIV_URL`, else arXiv's.

    Raises:
        CommandUseError: It is no http or https address, or has a query, a fragment or credentials.
    """
    source = "the arXiv URL" if option else "ORCHTRACE_ARXIV_URL"
    given = option or os.environ.get("ORCHTRACE_ARXIV_URL", "")
    if not given:
        return DEFAULT_URL
    try:
        parts = urlsplit(given)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_plain = given.isascii() and given.isprintable() and set(" ?#@\\").isdisjoint(given)
    if parts.scheme not in ("http", "https") or not is_plain or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
        raise CommandUseError(
            f"{source} is no address of a service: {quote(given)}", f"It looks like {DEFAULT_URL}, without a query."
        )
    if _is_arxiv(host):  # which would redirect, at the price of a request
        return f"https://{host.rstrip('.')}{parts.path.rstrip('/')}"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def service(url: str, spacing_seconds: float | None = None) -> Service:
    """The service at an address that `base_url` gave.

    Args:
        url: Its address.
        spacing_seconds: The time between requests; None for `ORCHTRACE_ARXIV_SPACING`, else arXiv's
            three seconds. For arXiv itself it is never less than that.

    Raises:
        CommandUseError: `ORCHTRACE_ARXIV_SPACING` is no number of seconds.
    """
    host = urlsplit(url).hostname or ""
    given = os.environ.get("ORCHTRACE_ARXIV_SPACING", "")
    try:
        wanted = float(given or SPACING_SECONDS) if spacing_seconds is None else spacing_seconds
    except ValueError:
        wanted = math.nan
    if spacing_seconds is None and not 0 <= wanted < math.inf:
        raise CommandUseError(f"ORCHTRACE_ARXIV_SPACING is no number of seconds: {quote(given)}", "Write such as 0.5.")
    if _is_arxiv(host):
        return Service(url, "arXiv", "arxiv.org", max(wanted, SPACING_SECONDS), ("arxiv.org", "export.arxiv.org"))
    return Service(url, host, f"{host[:60]}-{sha256(url.encode()).hexdigest()[:12]}", wanted, ())


def _is_arxiv(host: str) -> bool:
    return f".{host.rstrip('.')}".endswith(".arxiv.org")


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


class Limiter(NamedTuple):
    """Gives turns to ask, so that from the end of one request to the next at least `spacing_seconds` pass.

    A file is locked while a request runs, and another holds the time of the last one. The system drops the lock of a
    process that ends, however it ends. The time is written before a request is sent, so that the request of a killed
    process counts, too, and again when it has ended: what a connection takes to be made must not bring two requests
    closer together at the server.

    Attributes:
        path: The file with the time, made where it is not there; the locked file is beside it.
        spacing_seconds: The least time from the end of one request to the beginning of the next.
        clock: The times to go by.
        pause: Called to wait for so many seconds, with the reason; empty for the usual spacing.
    """

    path: str
    spacing_seconds: float
    clock: Clock
    pause: Callable[[float, str], None]

    @contextmanager
    def turn(self, wait_seconds: float) -> Iterator["Turn"]:
        """Be the only process that asks.

        Raises:
            TimeoutError: Another process had its turn for all of `wait_seconds`.
            CacheError: The files cannot be opened or written.
        """
        from filelock import FileLock, Timeout

        make_folder(os.path.dirname(self.path))
        lock = FileLock(f"{self.path}.lock")
        deadline = self.clock.steady() + wait_seconds
        with ExitStack() as stack:
            while not lock.is_locked:
                try:
                    stack.enter_context(lock.acquire(timeout=0))
                    file = stack.enter_context(open(self.path, "r+b", buffering=0, opener=_open_or_create))
                except Timeout:
                    if self.clock.steady() >= deadline:
                        raise TimeoutError from None
                    self.pause(0.05, "another process is asking")
                except OSError as error:
                    raise CacheError(self.path, error) from error
            yield Turn(file, self)


class Turn(NamedTuple):
    """The time in which one process may ask; made by `Limiter.turn`, with the open file."""

    file: FileIO
    limiter: Limiter

    def begin(self) -> None:
        """Wait until the last request is long enough ago, and note that the next one begins.

        Raises:
            CacheError: The file cannot be written.
        """
        due_seconds = self._due_seconds()
        if due_seconds > 0:
            self.limiter.pause(due_seconds, "")
        self.end()

    def end(self) -> None:
        """Note that a request has ended.

        Raises:
            CacheError: The file cannot be written.
        """
        clock = self.limiter.clock
        try:
            self.file.seek(0)
            self.file.write(f"{clock.wall():020.6f} {clock.steady():020.6f}\n".encode())
        except OSError as error:
            raise CacheError(str(self.file.name), error) from error

    def _due_seconds(self) -> float:
        """How long to wait yet, from 0 to the spacing.

        The last request was as recently as the nearer of two clocks says: the wall clock may have been
        set forward since, the steady one begins anew with the machine. A time that lies ahead, or that
        cannot be read, counts as now.
        """
        self.file.seek(0)
        noted = self.file.read(42)  # two times, as `end` writes them
        if not noted:
            return 0.0
        try:
            wall, steady = map(float, noted.split())
        except ValueError:
            wall = steady = math.nan
        _, spacing_seconds, clock, _ = self.limiter
        if not (math.isfinite(wall) and math.isfinite(steady)):
            return spacing_seconds
        passed_seconds = [clock.wall() - wall]
        if steady <= clock.steady():
            passed_seconds.append(clock.steady() - steady)
        return min(max(spacing_seconds - min(passed_seconds), 0.0), spacing_seconds)


def _open_or_create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)
