"""Send GET requests politely and within limits, and only to hosts that the caller allows.

    with Transport() as transport:
        response = transport.get("https://doi.org/10.1000/1", accept="application/json", allowed_hosts={"api.org"})

A `Transport` returns a `Response` for any status, even 404 and 503. A request without an answer raises an `HttpError`.
Proxies and certificates are those of the environment. An `Exchange` repeats a request until there is an answer: it
waits if the service is busy or the answer is truncated, and gives up at once if the service refuses.

`urllib3.Retry` cannot replace `Exchange`: it sees statuses and failing connections, but no bodies, and arXiv sends
truncated feeds when it is busy. It limits the tries of one request, not the total time, and reports no progress.
"""

import math
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from urllib.parse import urljoin, urlsplit

from orchtrace_corpus.base.budget import MAX_BODY_BYTES, REQUEST_SECONDS, TRIES_SECONDS
from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.corpus.sources.limiter import BusyError, Clock, Limiter, Service

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.sources.http_session import HttpSession

CONNECT_SECONDS = 10.0
"""The time to wait for a connection."""

MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)

MAX_RETRIES = 7
MAX_RETRIES_UNREADABLE = 3
MAX_RETRIES_UNREACHABLE = 2
BUSY_SPACINGS = 10
"""The first wait for a busy service, as a multiple of `spacing_seconds` (3 s for arXiv); each further one doubles."""

MAX_WAIT_SECONDS = 600.0
JITTER = 0.25  # a wait is longer by a random share, at most this one
MAX_RETRY_AFTER_SECONDS = 1e12
"""The longest wait that a service may ask for; more would have too many digits for a message."""

_BUSY_STATUSES = (408, 425, 429)

Answer = TypeVar("Answer")


class HttpError(UpstreamError):
    """A request without a usable answer."""


class UnreachableError(HttpError):
    """There is no connection: no such host, no server, or no certificate to trust."""


class BrokenOffError(HttpError):
    """The answer did not arrive completely and in time."""


class TooLongError(HttpError):
    """The request or its answer is too long. A request for less may succeed."""


class Response(NamedTuple):
    """A complete answer.

    Attributes:
        status: The status code, such as 200.
        url: The address that sent it, after redirects.
        headers: By name in lower case.
        body: The bytes as they were sent; nothing is decoded.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


class Transport(AbstractContextManager["Transport"]):
    """Sends requests over connections that stay open until the end of a `with` block."""

    def __init__(self, *, answer_seconds: float = REQUEST_SECONDS, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._answer_seconds = answer_seconds
        self._max_body_bytes = max_body_bytes

    @cached_property
    def _session(self) -> "HttpSession":
        from orchtrace_corpus.corpus.sources.http_session import HttpSession

        return HttpSession()

    def __exit__(self, *_: object) -> None:
        if "_session" in vars(self):
            self._session.close()

    def get(
        self,
        url: str,
        *,
        accept: str = "*/*",
        allowed_hosts: Collection[str] = (),
        before_request: Callable[[str], None] = lambda _: None,
        max_seconds: float = math.inf,
    ) -> Response:
        """Request an address, and follow redirects to the same host and port, from http to https, and to allowed hosts.

        `before_request` is called with each address before the request, and may wait. Apart from these waits, all
        requests together take at most `max_seconds`, and at most the `answer_seconds` of the transport.
        """
        session = self._session  # before the clock starts, since it takes time to import requests
        allowed_seconds = min(self._answer_seconds, max_seconds)
        remaining_seconds = allowed_seconds
        for _ in range(MAX_REDIRECTS + 1):
            before_request(url)
            started = time.monotonic()
            response = self._request(url, accept, remaining_seconds)
            remaining_seconds -= time.monotonic() - started
            location = response.headers.get("location", "")
            if response.status not in REDIRECTS or not location:
                return response
            if remaining_seconds <= 0:
                raise BrokenOffError(f"{_without_query(url)} had no answer but redirects in {allowed_seconds:g} s")
            url = _redirect_target(session, url, location, allowed_hosts)
        raise HttpError(f"{_without_query(url)} comes after more than {MAX_REDIRECTS} redirects")

    def _request(self, url: str, accept: str, seconds: float) -> Response:
        from urllib3.exceptions import HTTPError

        # Without compression, the bytes received are the bytes in memory, so one limit is enough.
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        timeouts = (min(CONNECT_SECONDS, seconds), seconds)  # the latter for all of the answer: see `HttpSession`
        limit = self._max_body_bytes
        body = bytearray()
        try:
            with self._session.get(url, headers=headers, timeout=timeouts) as answer:
                if not answer.is_redirect:
                    for chunk in answer.raw.stream(65536, decode_content=False):
                        body += chunk
                        if len(body) > limit:
                            break
        except (HTTPError, OSError, ValueError) as error:
            raise _explain(error, url, seconds) from error
        if len(body) > limit:
            raise TooLongError(f"the answer of {_without_query(url)} is larger than {limit:,} bytes")
        response_headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status_code, url, response_headers, bytes(body))


def _redirect_target(session: Any, url: str, location: str, allowed_hosts: Collection[str]) -> str:
    """Return the address to which a redirect leads; raise an `HttpError` if it may not be followed."""
    try:
        target = urljoin(url, location)
        scheme, netloc = urlsplit(target)[:2]
        # `should_strip_auth` is False for the same host and port, and for http to https on one host: these are allowed.
        is_elsewhere = session.should_strip_auth(url, target) and urlsplit(target).hostname not in allowed_hosts
    except ValueError as error:
        raise HttpError(f"{_without_query(url)} redirects to no address: {quote(location)}") from error
    if scheme == "http" and url.startswith("https:"):
        problem = "not encrypted"
    elif scheme not in ("http", "https") or is_elsewhere or "@" in netloc:  # `@` follows credentials
        problem = "another host"
    else:
        return target
    raise HttpError(f"{_without_query(url)} redirects to {quote(target)}, which is {problem}; it was not asked")


def _explain(error: Exception, url: str, seconds: float) -> HttpError:
    """Return an `HttpError` with a message for an error of requests, urllib3 or the system."""
    from urllib3 import exceptions

    where = _without_query(url)
    if isinstance(error, exceptions.ReadTimeoutError):  # in the body; before it, requests raises its own error
        return BrokenOffError(f"the answer of {where} had no end after {seconds:g} s")
    causes = causes_of(error)
    reasons = (cause.strerror.lower() for cause in causes if isinstance(cause, OSError) and cause.strerror)
    reason = printable(next(reasons, "") or str(causes[-1]) or type(causes[-1]).__name__)

    def is_caused_by(*kinds: type[Exception]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if is_caused_by(exceptions.SSLError):
        return UnreachableError(f"no safe connection to {where}: {reason}")
    # Before timeouts: in some versions of urllib3, a refused connection is a timeout, too.
    if is_caused_by(exceptions.NewConnectionError, exceptions.ProxyError):
        return UnreachableError(f"no connection to {where}: {reason}")
    if is_caused_by(exceptions.ConnectTimeoutError):
        return UnreachableError(f"no connection to {where}: nothing came back in {CONNECT_SECONDS:g} s")
    if is_caused_by(exceptions.TimeoutError, TimeoutError):
        return BrokenOffError(f"no answer from {where} in time")
    if is_caused_by(exceptions.ProtocolError, ConnectionError):
        return BrokenOffError(f"{where} broke the connection: {reason}")
    if is_caused_by(ValueError):
        return HttpError(f"{where} cannot be asked: {reason}")
    return BrokenOffError(f"the connection to {where} failed: {reason}")


def causes_of(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, the outermost first; requests and urllib3 keep some of them in arguments."""
    causes = [error]
    for cause in causes:  # the list grows during the loop
        for origin in (*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__):
            if isinstance(origin, BaseException) and origin not in causes:
                causes.append(origin)
    return causes


def _without_query(url: str) -> str:
    """Return the address without its query, in quotes, for a message."""
    return quote(url.partition("?")[0])


class Retry(NamedTuple):
    """A failure after which the request can be repeated.

    Attributes:
        error: The error to raise if the last retry fails, too.
        first_seconds: The first wait; each further wait is twice as long.
        max_retries: The number of repeated requests.
        min_seconds: The shortest wait, which the service asks for.
    """

    error: UpstreamError
    first_seconds: float
    max_retries: int
    min_seconds: float = 0.0


class Exchange(ABC, Generic[Answer]):
    """One run of requests to a service, with a limit for the total time of all waits and repeated requests.

    Attributes:
        accept: The media types for the header of requests.
        busy_statuses: Statuses that mean that this service is busy, besides the usual ones.
        read_statuses: Statuses whose body is an answer, besides 200 to 299 and 400.
        done_count: How many of the `total` units of the run are done, for `progress`.
    """

    accept: ClassVar[str]
    busy_statuses: ClassVar[tuple[int, ...]] = ()
    read_statuses: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self,
        service: Service,
        limiter_file: str,
        transport: Transport,
        progress: Callable[[Progress], None] | None,
        total: int,
        clock: Clock,
        patience_seconds: float = TRIES_SECONDS,
    ) -> None:
        self.service = service
        self.done_count = 0
        self._progress, self._total = progress, total
        self._transport = transport
        self._limiter = Limiter(limiter_file, service.spacing_seconds, clock, self.report)
        self._patience_seconds = patience_seconds
        self._remaining_seconds = patience_seconds

    def report(self, waiting_seconds: float = 0.0, reason: str = "") -> None:
        """Report how many units of the run are done, how long it waits now, and why."""
        if self._progress is not None:
            self._progress(Progress(self.done_count, self._total, waiting_seconds, reason))

    @abstractmethod
    def read(self, response: Response) -> Answer | Retry:
        """Return the answer in a response of status 200 to 299 or 400, or of `read_statuses`.

        Raises:
            UpstreamError: There is no answer, and a repeated request would not get one.
        """

    @abstractmethod
    def describe(self, response: Response) -> str:
        """Return the status and the body of a response in words, for a message."""

    def turn(self) -> AbstractContextManager[Limiter]:
        """Let no other process send requests until the end of a `with` block; errors are those of `Limiter.turn`."""
        return self._limiter.turn(self._patience_seconds)

    def ask(self, url: str, subject: str) -> Answer:
        """Request an address until there is an answer, in one turn; `subject` says in messages what it is about.

        Raises:
            BusyError: The service is busy or breaks off, or another process is asking; there might be an answer later.
            TooLongError: The address or the answer is too long.
            UpstreamError: The service cannot be reached, refuses to answer, or answers with something else.
        """
        retry_counts: Counter[type[UpstreamError]] = Counter()
        clock = self._limiter.clock
        with self.turn():
            while True:
                started = clock.steady()
                # The first request has all the time that the transport allows; retries have what the run has left.
                max_seconds = self._remaining_seconds if retry_counts else math.inf
                answer = self._ask_once(url, subject, max_seconds)
                if not isinstance(answer, Retry):
                    return answer
                error = answer.error
                retry_count = retry_counts[type(error)]
                backoff_seconds = answer.first_seconds * 2**retry_count * (1 + JITTER * random.random())
                wait_seconds = max(min(backoff_seconds, MAX_WAIT_SECONDS), answer.min_seconds)
                self._remaining_seconds -= clock.steady() - started
                if retry_count >= answer.max_retries or wait_seconds >= self._remaining_seconds:
                    raise error
                retry_counts[type(error)] += 1
                self._remaining_seconds -= wait_seconds
                self._limiter.pause(wait_seconds, str(error))

    def _ask_once(self, url: str, subject: str, max_seconds: float) -> Answer | Retry:
        """Send one request; raise an `UpstreamError` for a failure that a repeated request would not change."""
        name, spacing_seconds = self.service.name, self.service.spacing_seconds
        try:
            response = self._transport.get(
                url,
                accept=self.accept,
                allowed_hosts=self.service.hosts,
                before_request=lambda _: self._limiter.begin(),
                max_seconds=max_seconds,
            )
        except UnreachableError as error:
            message = f"{name} could not be asked about {subject}: {error}"
            hint = "Check the network and try again; --offline answers from the cache alone."
            return Retry(UpstreamError(message, hint), min(spacing_seconds, 1.0), MAX_RETRIES_UNREACHABLE)
        except BrokenOffError as error:
            return Retry(BusyError(str(error)), spacing_seconds, MAX_RETRIES)
        finally:
            self._limiter.end()
        status = response.status
        if status == 414:
            raise TooLongError("HTTP 414: the address is too long")
        if status in _BUSY_STATUSES or status in self.busy_statuses or status >= 500:
            min_seconds = self._retry_after(response)
            wait = f"; it asks to wait {min_seconds:.0f} s" if min_seconds else ""
            busy = BusyError(f"{self.describe(response)}{wait}")
            return Retry(busy, BUSY_SPACINGS * spacing_seconds, MAX_RETRIES, min_seconds)
        if status not in (400, *self.read_statuses) and not 200 <= status < 300:
            raise refusal(name, response, self.describe(response))
        return self.read(response)

    def _retry_after(self, response: Response) -> float:
        """Return for how many seconds the service asks to wait, in either form of RFC 9110, section 10.2.3; else 0."""
        from email.utils import parsedate_to_datetime

        text = response.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return min(float(text), MAX_RETRY_AFTER_SECONDS)
        try:
            return max(parsedate_to_datetime(text).timestamp() - self._limiter.clock.wall(), 0.0)
        except (ValueError, TypeError, OverflowError):
            return 0.0


def refusal(name: str, response: Response, description: str) -> UpstreamError:
    """Return the error for a service that refuses to answer, or for a web page in place of an answer."""
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
