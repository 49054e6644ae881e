"""Ask for addresses over HTTP, politely and within bounds: GET alone, and only from hosts that were meant.

    with Transport() as transport:
        response = transport.get("https://doi.org/10.1000/1", accept="application/json", allowed_hosts={"api.org"})

Any status comes back as a `Response`, a 404 and a 503 too: what they mean is the caller's to say. A request
without an answer is an `HttpError`. Proxies and certificates are those of the environment, as
requests has it; credentials are never sent, whatever a .netrc says.

Redirects are not left to requests: it reads the whole body of each, without a bound, and would follow it to any host.

An `Exchange` asks a service until there is an answer. What a trouble is about decides what happens. About the moment
(busy, broken, cut short): the same again, after a wait that doubles. About the service (refused, unreachable,
redirected elsewhere): an error, since the next request would fare no better. What an answer says is for its `read`.

`urllib3.Retry` cannot take this over. It sees a status and a connection that fails, but no body: an answer that is cut
short or is no feed, which arXiv sends when it is busy, would need this loop all the same. It bounds the number of tries
of one request, not the time of all; and it sleeps without a word, where people see each second what is waited for.
"""

import math
import random
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from urllib.parse import urljoin, urlsplit

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.budget import MAX_BODY_BYTES, REQUEST_SECONDS
from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.sources.limiter import BusyError, Limiter, Service

if TYPE_CHECKING:
    import requests

USER_AGENT = f"orchtrace-corpus/{__version__}"
"""The name that we give to every server."""

CONNECT_SECONDS = 10.0
"""The time to wait for a connection."""

MOST_REDIRECTS = 5

REDIRECTS = (301, 302, 303, 307, 308)
"""The statuses of an answer that sends one elsewhere."""

_SCHEMES = ("http", "https")

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


class HttpError(UpstreamError):
    """A request without a usable answer."""


class UnreachableError(HttpError):
    """There is no connection: no such host, no server, no certificate to trust. Nothing was asked."""


class DroppedError(HttpError):
    """The connection broke before the answer was whole."""


class TimedOutError(HttpError):
    """The answer took too long to begin, or to end."""


class TooLongError(HttpError):
    """The request or its answer is too long; a part of it may not be."""


class RedirectError(HttpError):
    """The server sends us where we may not go: to another host, away from TLS, or round in circles."""


class Response(NamedTuple):
    """A whole answer.

    Attributes:
        status: The status code, such as 200.
        url: Where it came from, after redirects.
        headers: By name in lower case.
        body: The bytes as they were sent; nothing is decoded.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


class Transport(AbstractContextManager["Transport"]):
    """A connection that is kept open between requests to one host; to be closed, or used in a `with`."""

    def __init__(self, *, answer_seconds: float = REQUEST_SECONDS, largest_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._answer_seconds = answer_seconds
        self._largest_body_bytes = largest_body_bytes
        self._session: requests.Session | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def get(
        self,
        url: str,
        *,
        accept: str = "*/*",
        allowed_hosts: Collection[str] = (),
        before_request: Callable[[str], None] | None = None,
        most_seconds: float = math.inf,
    ) -> Response:
        """Ask for an address once, and follow where it redirects us.

        Redirects are followed on the same host (and port), from http to https, and to the hosts
        allowed; never from https to http.

        Args:
            url: An http or https address.
            accept: The media types wanted.
            allowed_hosts: Other hosts, in lower case, that redirects may lead to.
            before_request: Called with the address before each request, redirected ones included; the
                place to wait in.
            most_seconds: For all of it, redirects included and waits before requests left out, where that is less
                than the transport allows.

        Raises:
            UnreachableError: There is no connection.
            DroppedError: It broke.
            TimedOutError: The answer took too long.
            TooLongError: The answer is too large.
            RedirectError: A redirect leads to where we may not go.
            HttpError: The address is none, or the answer is none of HTTP.
        """
        session = self._session = self._session or open_session()  # takes its time, so before anybody is waited for
        allowed_seconds = left_seconds = min(self._answer_seconds, most_seconds)
        for _ in range(MOST_REDIRECTS + 1):
            if before_request is not None:
                before_request(url)
            began = time.monotonic()
            response = self._ask(session, url, accept, left_seconds)
            left_seconds -= time.monotonic() - began
            location = response.headers.get("location", "")
            if response.status not in REDIRECTS or not location:
                return response
            if left_seconds <= 0:
                raise TimedOutError(f"{_shown(url)} had no answer but redirects in {allowed_seconds:g} s")
            url = _redirected(session, url, location, allowed_hosts)
        raise RedirectError(f"{_shown(url)} comes after more than {MOST_REDIRECTS} redirects")

    def _ask(self, session: "requests.Session", url: str, accept: str, seconds: float) -> Response:
        import requests
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        # Uncompressed, so that what is read is what was sent, and its bound is one.
        headers = {"User-Agent": USER_AGENT, "Accept": accept, "Accept-Encoding": "identity"}
        body = bytearray()
        try:
            with begin(session, "GET", url, headers, (min(CONNECT_SECONDS, seconds), seconds)) as answer:
                received = {name.lower(): value for name, value in answer.headers.items()}
                is_redirect = answer.status_code in REDIRECTS and "location" in received
                while not is_redirect and (chunk := answer.raw.read1(65536, decode_content=False)):
                    body += chunk
                    if len(body) > self._largest_body_bytes:
                        answer.raw.close()
                        bound = f"{self._largest_body_bytes:,} bytes"
                        raise TooLongError(f"the answer of {_shown(url)} is larger than {bound}")
                return Response(answer.status_code, url, received, bytes(body))
        except ReadTimeoutError as error:
            self.close()
            raise TimedOutError(f"the answer of {_shown(url)} had no end after {seconds:g} s") from error
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            self.close()
            raise _explained(error, url) from error


def open_session() -> "requests.Session":
    """Open a session that sends no credentials, whatever a .netrc says, and whose answers have one total time."""
    import requests

    from orchtrace_corpus.corpus.sources.timed import TimedAdapter

    session = requests.Session()
    for scheme in _SCHEMES:
        session.mount(f"{scheme}://", TimedAdapter())
    session.auth = lambda request: request  # having one keeps requests from looking one up in .netrc
    return session


def begin(
    session: "requests.Session", method: str, url: str, headers: Mapping[str, str], timeout: tuple[float, float]
) -> "requests.Response":
    """Ask without following a redirect, and read the head of the answer alone; the body waits for who wants it.

    The timeout has the seconds to wait for a connection, and those in which all of the answer must arrive.
    """
    import requests

    # Past the session's own send, which reads the whole body of a redirect even if told not to follow it.
    request = session.prepare_request(requests.Request(method, url, headers=headers))
    settings: dict[str, Any] = {**session.merge_environment_settings(request.url, {}, True, None, None)}
    return session.get_adapter(str(request.url)).send(request, timeout=timeout, **settings)


def _redirected(session: Any, url: str, location: str, allowed_hosts: Collection[str]) -> str:
    """Return where a redirect leads; a `RedirectError` if we may not go there."""
    try:
        target = urljoin(url, location)
        scheme, netloc = urlsplit(target)[:2]
        # Credentials may stay on just those redirects that we follow: on the host and port, and from http to https.
        is_elsewhere = session.should_strip_auth(url, target) and urlsplit(target).hostname not in allowed_hosts
    except ValueError as error:
        raise RedirectError(f"{_shown(url)} redirects to no address: {quote(location)}") from error
    if scheme == "http" and url.startswith("https:"):
        problem = f"redirects to {quote(target)}, which is not encrypted"
    elif scheme not in _SCHEMES or is_elsewhere or "@" in netloc:
        problem = f"redirects to {quote(target)}, which is another host"
    else:
        return target
    raise RedirectError(f"{_shown(url)} {problem}; it was not asked")


def _explained(error: Exception, url: str) -> HttpError:
    """Return the error that says what happened, for one of requests, urllib3 or the system."""
    import requests
    from urllib3 import exceptions

    where = _shown(url)
    causes = causes_of(error)  # those of urllib3 among them, which requests wraps
    reasons = (cause.strerror.lower() for cause in causes if isinstance(cause, OSError) and cause.strerror)
    reason = printable(next(reasons, "") or str(causes[-1]) or type(causes[-1]).__name__)

    def has(*wanted: type[BaseException]) -> bool:
        return any(isinstance(cause, wanted) for cause in causes)

    if has(exceptions.SSLError):
        return UnreachableError(f"no safe connection to {where}: {reason}")
    # Before timeouts: urllib3 has counted a refused connection among them.
    if has(exceptions.NewConnectionError, exceptions.ProxyError):
        return UnreachableError(f"no connection to {where}: {reason}")
    if has(requests.ConnectTimeout, exceptions.ConnectTimeoutError):
        return UnreachableError(f"no connection to {where}: nothing came back in {CONNECT_SECONDS:g} s")
    if has(exceptions.TimeoutError, TimeoutError):
        return TimedOutError(f"no answer from {where} in time")
    if has(exceptions.ProtocolError, ConnectionError):
        return DroppedError(f"{where} broke the connection: {reason}")
    if has(OSError) and not has(ValueError):
        return DroppedError(f"the connection to {where} failed: {reason}")
    return HttpError(f"{where} cannot be asked: {reason}")


def causes_of(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, the outermost first; libraries keep some of that in arguments."""
    causes: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or cause in causes:
            continue
        causes.append(cause)
        waiting += [argument for argument in cause.args if isinstance(argument, BaseException)]
        reason = getattr(cause, "reason", None)
        waiting += [reason if isinstance(reason, BaseException) else None, cause.__cause__, cause.__context__]
    return causes


def _shown(url: str) -> str:
    """Return the address for a message: where it leads, without the query."""
    return quote(url.partition("?")[0])


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

        text = response.headers.get("retry-after", "").strip()
        if re.fullmatch("[0-9]+", text):
            return min(float(text), FURTHEST_SECONDS)
        try:
            return max(parsedate_to_datetime(text).timestamp() - self._limiter.clock.wall(), 0.0)
        except (ValueError, TypeError, OverflowError):
            return 0.0


def refusal(name: str, response: Response, description: str) -> UpstreamError:
    """Return the error that a service refuses us, or that something else, as described, answers in its place."""
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
