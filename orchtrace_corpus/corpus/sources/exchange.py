"""Ask a service for one address until there is an answer, whatever goes wrong on the way.

What a trouble is about decides what happens. About the moment (busy, broken, cut short): the same again, after a wait
that doubles. About the service (refused, unreachable, redirected elsewhere): an error, since the next request would
fare no better. What an answer says is for the caller's `read` to decide.

`urllib3.Retry` cannot take this over. It sees a status and a connection that fails, but no body: an answer that is cut
short or is no feed, which arXiv sends when it is busy, would need this loop all the same. It bounds the number of tries
of one request, not the time of all; and it sleeps without a word, where people are told each second what is waited for.
"""

import math
import random
import re
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager
from typing import ClassVar, Generic, TypeVar

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.sources.http import (
    DroppedError,
    OverlongError,
    Response,
    TimedOutError,
    Transport,
    UnreachableError,
)
from orchtrace_corpus.corpus.sources.limiter import BusyError, Limiter, Service

MOST_RETRIES = 7
MOST_RETRIES_UNREADABLE = 3
MOST_RETRIES_UNREACHABLE = 2
BUSY_SPACINGS = 10
"""The first wait for a busy service, in units of its spacing: 30 s for arXiv. Each further one is twice as long."""

LONGEST_WAIT_SECONDS = 600.0
JITTER = 0.25
FURTHEST_SECONDS = 1e12
"""The longest wait that a service may ask for; more would have too many digits for a message."""

_BUSY = (408, 425, 429)

Answer = TypeVar("Answer")


class TooLongError(UpstreamError):
    """The request or its answer is too long; a part of it may not be."""


class Trouble(NamedTuple):
    """Something that may go better next time: what to raise if it does not, and the waits (the service's own last)."""

    error: UpstreamError
    first_seconds: float
    most_retries: int
    least_seconds: float = 0.0


class Exchange(ABC, Generic[Answer]):
    """One run of requests to a service, with patience for all of them together.

    Attributes:
        accept: The media types wanted.
        busy_statuses: The statuses beside those of every service that mean that it is busy.
        read_statuses: The statuses beside those of every service that are answers.
    """

    accept: ClassVar[str]
    busy_statuses: ClassVar[tuple[int, ...]] = ()
    read_statuses: ClassVar[tuple[int, ...]] = ()

    def __init__(self, service: Service, limiter: Limiter, transport: Transport, patience_seconds: float) -> None:
        self.service = service
        self._transport = transport
        self._limiter = limiter
        self._patience_seconds = self._left_seconds = patience_seconds

    @abstractmethod
    def read(self, response: Response) -> Answer | Trouble:
        """Return the answer in a response of status 200 to 299 or 400, or of `read_statuses`.

        Raises:
            UpstreamError: Asking again is no use.
        """

    @abstractmethod
    def describe(self, response: Response) -> str:
        """Return a status and what came with it, in words."""

    def turn(self) -> AbstractContextManager[Limiter]:
        """Be the only process that asks, as far as patience goes; errors as of `Limiter.turn`."""
        return self._limiter.turn(self._patience_seconds)

    def ask(self, url: str, subject: str) -> Answer:
        """Ask in a turn until there is an answer, or no patience.

        Args:
            url: The address.
            subject: What it is about, for messages.

        Raises:
            BusyError: The service is busy or breaks off, or another process is asking; there might be an answer later.
            TooLongError: The address or the answer is too long.
            UpstreamError: The service cannot be reached, refuses us, or answers with something else.
        """
        retries: Counter[type[UpstreamError]] = Counter()
        clock = self._limiter.clock
        with self.turn():
            while True:
                began = clock.steady()
                answer = self._once(url, subject, self._left_seconds if retries else math.inf)
                if not isinstance(answer, Trouble):
                    return answer
                error, first_seconds, most_retries, least_seconds = answer
                retried = retries[type(error)]
                backoff_seconds = first_seconds * 2**retried * (1 + JITTER * random.random())
                wait_seconds = max(min(backoff_seconds, LONGEST_WAIT_SECONDS), least_seconds)
                self._left_seconds -= clock.steady() - began
                if retried >= most_retries or wait_seconds >= self._left_seconds:
                    raise error
                retries[type(error)] += 1
                self._left_seconds -= wait_seconds
                self._limiter.pause(wait_seconds, str(error))

    def _once(self, url: str, subject: str, most_seconds: float) -> Answer | Trouble:
        """Ask once; an `UpstreamError` where the next time would be no better."""
        name, spacing_seconds = self.service.name, self.service.spacing_seconds
        try:
            response = self._transport.get(
                url,
                accept=self.accept,
                allowed_hosts=self.service.hosts,
                before_request=lambda _: self._limiter.begin(),
                most_seconds=most_seconds,
            )
        except UnreachableError as error:
            message = f"{name} could not be asked about {subject}: {error}"
            hint = "Check the network and try again; --offline answers from the cache alone."
            return Trouble(UpstreamError(message, hint), min(spacing_seconds, 1.0), MOST_RETRIES_UNREACHABLE)
        except (DroppedError, TimedOutError) as error:
            return Trouble(BusyError(str(error)), spacing_seconds, MOST_RETRIES)
        except OverlongError as error:
            raise TooLongError(str(error)) from error
        finally:
            self._limiter.end()
        status = response.status
        if status == 414:
            raise TooLongError("HTTP 414: the address is too long")
        if status in _BUSY or status in self.busy_statuses or status >= 500:
            least_seconds = self._retry_after(response)
            asks = f"; it asks to wait {least_seconds:.0f} s" if least_seconds else ""
            busy = BusyError(f"{self.describe(response)}{asks}")
            return Trouble(busy, BUSY_SPACINGS * spacing_seconds, MOST_RETRIES, least_seconds)
        if status not in (400, *self.read_statuses) and not 200 <= status < 300:
            raise refusal(name, response, self.describe(response))
        return self.read(response)

    def _retry_after(self, response: Response) -> float:
        """Return how long the service asks to wait: seconds, or until a time (RFC 9110, section 10.2.3); else 0."""
        from email.utils import parsedate_to_datetime

        given = response.headers.get("retry-after", "").strip()
        if re.fullmatch("[0-9]+", given):
            return min(float(given), FURTHEST_SECONDS)
        try:
            return max(parsedate_to_datetime(given).timestamp() - self._limiter.clock.wall(), 0.0)
        except (ValueError, TypeError, OverflowError):
            return 0.0


def refusal(name: str, response: Response, description: str) -> UpstreamError:
    """Return the error that a service refuses us, or that something else answers in its place.

    Args:
        name: The service.
        response: What came.
        description: The response in words.
    """
    problem = "refuses to answer"
    hint = "Wait an hour before you try again; what it has answered so far is kept."
    if response.status == 401:
        hint = "It does not take the key, or wants one; set it right and try again. What was answered so far is kept."
    if 200 <= response.status < 300:
        problem = "sends something else than metadata"
        hint = (
            "The login page of a network or a proxy may stand between, or the service is at work on itself. "
            "Open its address in a browser, or try again in an hour; what it has answered so far is kept."
        )
    return UpstreamError(f"{name} {problem}: {description}", hint)
