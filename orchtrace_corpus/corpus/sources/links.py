"""Check the URLs of a corpus, politely and with little traffic.

Each URL is requested once, as by a reader who follows the link. robots.txt is not read, because nothing is crawled.
A host gets one request at a time, with a pause after each, and none after it has answered 429. The method is HEAD, and
if that fails GET without its body: many servers answer HEAD with an error for pages that exist.
"""

import ipaddress
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from orchtrace_corpus.base.budget import REQUEST_SECONDS
from orchtrace_corpus.base.findings import Finding, printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.records import Loaded, Places
from orchtrace_corpus.corpus.sources.http import REDIRECTS, causes_of
from orchtrace_corpus.corpus.sources.limiter import AnswerFolder

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.sources.http_session import HttpSession


class Verdict(StrEnum):
    """The state of a page."""

    OK = "ok"
    MOVED = "moved"
    GONE = "gone"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class LinkOutcome(NamedTuple):
    """The outcome of a request for a URL.

    Attributes:
        verdict: The state of the page.
        reason: The answer in a few words, such as `HTTP 404`.
        address: The new URL of a page that has moved; empty for other verdicts.
        answered: Whether the server answered at all.
    """

    verdict: Verdict
    reason: str
    address: str = ""
    answered: bool = True


class Link(NamedTuple):
    """A URL in a record: its place (file, index of the record, path in the record), and the record's key or id."""

    url: str
    places: Places
    record_index: int
    path: tuple[str | int, ...]
    record: str


_FINDINGS = {
    Verdict.GONE: ("L101", "{} is gone ({}); find where the page is now, or a copy in an archive"),
    Verdict.MOVED: ("L102", "{} has moved for good; write {}"),
    Verdict.UNREACHABLE: ("L103", "{} cannot be reached ({}); try it in a browser, and again another day"),
}
"""The code and the message of a finding, for the verdicts that are reported."""


def list_links(loaded: Loaded, keys: Collection[str] | None = None) -> Iterator[Link]:
    """Yield the URLs of all papers and exclusions in file order, or only those of the papers with `keys`."""
    for index, paper in enumerate(loaded.papers):
        if keys is None or paper.key in keys:
            for url_index, url in enumerate(paper.urls):
                yield Link(url, loaded.paper_places, index, ("urls", url_index), paper.key)
            if paper.code is not None:
                yield Link(paper.code, loaded.paper_places, index, ("code",), paper.key)
            for item_index, item in enumerate(paper.evidence):
                yield Link(item.source, loaded.paper_places, index, ("evidence", item_index, "source"), paper.key)
    if keys is not None:
        return
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.url:
            yield Link(exclusion.url, loaded.exclusion_places, index, ("url",), exclusion.id)


def is_arxiv_address(url: str) -> bool:
    """Return True for a page of arXiv, whose terms of use ask robots to use the API instead."""
    return f".{urlsplit(url).hostname or ''}".endswith(".arxiv.org")


def sample_urls(urls: Collection[str], size: int, seed: str = "") -> tuple[str, ...]:
    """Return the URLs with the smallest hashes, sorted. The sample is the same each time, and another for another seed.

    No host, year or place in the file is preferred. A new URL changes at most one URL of the sample.
    """
    by_hash = sorted(set(urls), key=lambda url: (sha256(f"{seed}\n{url}".encode()).digest(), url))
    return tuple(sorted(by_hash[:size]))


def find_problems(links: Sequence[Link], outcomes: Mapping[str, LinkOutcome]) -> Iterator[Finding]:
    """Yield the findings about the links whose URL is in `outcomes`. A refusal is not a problem of the link."""
    for link in links:
        outcome = outcomes.get(link.url)
        if outcome is not None and outcome.verdict in _FINDINGS:
            code, message = _FINDINGS[outcome.verdict]
            detail = quote(outcome.address) if outcome.verdict is Verdict.MOVED else printable(outcome.reason)
            place = link.places.locate(link.record_index, *link.path)
            yield Finding(code, message.format(quote(link.url), detail), place, link.record)


PAUSE_SECONDS = 2.0
"""The time between two requests to one host."""

TIMEOUT_SECONDS = 20.0
"""The time limit for a connection, and for the status and headers of an answer."""

MAX_REQUESTS = 8
"""The number of requests for a URL with redirects."""

MAX_AGE_SECONDS = {Verdict.OK: 14 * 86400, Verdict.MOVED: 7 * 86400, Verdict.REFUSED: 7 * 86400, Verdict.GONE: 86400}
"""The age up to which an outcome is taken from the cache. An unreachable URL is requested again each time."""

_DOI_RESOLVERS = ("doi.org", "dx.doi.org", "www.doi.org")


class LinkChecker:
    """Requests URLs and stores the outcomes in a folder; `requested_count` counts the URLs not taken from there."""

    def __init__(
        self,
        cache_folder: str,
        *,
        refresh: bool = False,
        pause_seconds: float | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        is_public: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.requested_count = 0
        self._cache = AnswerFolder(cache_folder, clock)
        self._refresh = refresh
        self._pause_seconds = PAUSE_SECONDS if pause_seconds is None else pause_seconds
        self._timeout_seconds = timeout_seconds
        self._is_public = is_public or is_public_host
        self._next_request_at: dict[str, float] = {}  # by host, on the monotonic clock
        self._busy_hosts: set[str] = set()

    def check_all(self, urls: Collection[str]) -> Iterator[tuple[str, LinkOutcome]]:
        """Check URLs and yield each with its outcome; raise `CacheError` if an outcome cannot be stored."""
        from orchtrace_corpus.corpus.sources.http_session import HttpSession

        urls_by_host: defaultdict[str, list[str]] = defaultdict(list)
        for url in sorted(urls):
            outcome = self._stored_outcome(url)
            if outcome is not None:
                yield url, outcome
            else:
                urls_by_host[urlsplit(url).netloc].append(url)
        # The URLs of each host are spread evenly over the run: from 0, its beginning, to 1.
        moments: list[tuple[float, str]] = []
        for host_urls in urls_by_host.values():
            moments += ((index / len(host_urls), url) for index, url in enumerate(host_urls))
        with HttpSession() as session:
            for _, url in sorted(moments):
                self.requested_count += 1
                outcome = self._check(session, url)
                if outcome.verdict in MAX_AGE_SECONDS and outcome.answered:
                    self._cache.write_answer(url, outcome)
                yield url, outcome

    def _stored_outcome(self, url: str) -> LinkOutcome | None:
        """Return the outcome of an earlier run, if it is fresh enough for its verdict."""
        outcome = self._cache.read_answer(url, LinkOutcome)
        if self._refresh or outcome is None or outcome.verdict not in MAX_AGE_SECONDS:
            return None
        return self._cache.read_answer(url, LinkOutcome, MAX_AGE_SECONDS[outcome.verdict])

    def _check(self, session: "HttpSession", url: str) -> LinkOutcome:
        """Request a URL, follow its redirects, and return the outcome."""
        address, is_permanent = url, True
        deadline = time.monotonic() + REQUEST_SECONDS
        for _ in range(MAX_REQUESTS):
            if time.monotonic() > deadline:
                return LinkOutcome(Verdict.UNREACHABLE, f"no end of redirects in {REQUEST_SECONDS:g} s", answered=False)
            host = _host(address)
            if not host:
                return LinkOutcome(Verdict.UNREACHABLE, "it leads to no web address")
            if not self._is_public(host):
                return LinkOutcome(Verdict.UNREACHABLE, "it leads to an address that is not public", answered=False)
            if host in self._busy_hosts:
                return LinkOutcome(Verdict.REFUSED, "HTTP 429 before", answered=False)
            try:
                status, location = self._request(session, address)
            except (OSError, ValueError) as error:
                return LinkOutcome(Verdict.UNREACHABLE, _describe_error(error), answered=False)
            if not location:
                moved_to = ""
                if is_permanent and address != url:
                    fragment = urlsplit(url).fragment  # redirects do not name it, since servers never see it
                    has_fragment = bool(urlsplit(address).fragment)
                    moved_to = f"{address}#{fragment}" if fragment and not has_fragment else address
                return _outcome_of_status(status, moved_to)
            if host in _DOI_RESOLVERS:  # the DOI exists, and records cite the DOI, not the page
                return LinkOutcome(Verdict.OK, f"HTTP {status}")
            is_permanent = is_permanent and status in (301, 308)
            try:
                address = urljoin(address, location)
            except ValueError:
                address = ""
        return LinkOutcome(Verdict.UNREACHABLE, f"more than {MAX_REQUESTS} redirects")

    def _request(self, session: "HttpSession", url: str) -> tuple[int, str]:
        """Return the status of a URL, and the target of a redirect, or ""; raise the errors of `requests`."""
        host = urlsplit(url).netloc
        headers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        status, location = 0, ""
        for method in ("HEAD", "GET"):
            time.sleep(max(self._next_request_at.get(host, 0.0) - time.monotonic(), 0.0))
            try:
                with session.request(method, url, headers=headers, timeout=self._timeout_seconds) as response:
                    status, location = response.status_code, session.get_redirect_target(response) or ""
            except (OSError, ValueError):
                if method == "GET":
                    raise
                continue  # some servers break the connection after a HEAD
            finally:
                self._next_request_at[host] = time.monotonic() + self._pause_seconds
            if status == 429:
                self._busy_hosts.add(_host(url))
            if status < 400 or status == 429:
                break
        return status, location


def is_public_host(host: str) -> bool:
    """Return True if a host is on the public internet: a URL in a record must not lead to the user's own network."""
    with suppress(ValueError):  # a name, not an IP address
        return ipaddress.ip_address(host).is_global
    if "." not in host.strip(".") or host.rstrip(".").endswith((".local", ".localhost", ".internal", ".home.arpa")):
        return False
    addresses = []
    with suppress(OSError, UnicodeError):  # for an unknown name, the request reports the error
        addresses = [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)]
    return all(ipaddress.ip_address(address.partition("%")[0]).is_global for address in addresses)


def _host(url: str) -> str:
    """Return the host of a URL; empty if it is not an http or https URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.hostname or "" if parts.scheme in ("http", "https") else ""


def _outcome_of_status(status: int, moved_to: str) -> LinkOutcome:
    """Return the outcome for the status of the last answer; `moved_to` is empty without a permanent redirect."""
    reason = f"HTTP {status}"
    if status in (404, 410):
        return LinkOutcome(Verdict.GONE, reason)
    if status >= 500 or status == 408:
        return LinkOutcome(Verdict.UNREACHABLE, reason)
    if status >= 400:
        return LinkOutcome(Verdict.REFUSED, reason)
    if status in REDIRECTS:
        return LinkOutcome(Verdict.UNREACHABLE, f"{reason} to nowhere")
    return LinkOutcome(Verdict.MOVED, reason, moved_to) if moved_to else LinkOutcome(Verdict.OK, reason)


def _describe_error(error: Exception) -> str:
    """Return a short message for an error; the messages of the libraries are long and name classes."""
    from requests import exceptions
    from urllib3.exceptions import NameResolutionError

    if isinstance(error, exceptions.SSLError):
        return "its certificate cannot be trusted"
    if isinstance(error, exceptions.Timeout):
        return "no answer in time"
    if any(isinstance(cause, NameResolutionError) for cause in causes_of(error)):
        return "there is no such host"
    if isinstance(error, ValueError):
        return "it is not a valid address"
    return "the connection failed"
