"""Try the addresses of a corpus, politely and with little traffic.

Each address is asked for once, as by a reader who follows the link. robots.txt is not read, because nothing is crawled.
A host gets one request at a time, with a pause between two, and none after it has answered 429. HEAD is tried first,
then GET without its body: many servers answer HEAD with an error for pages that exist.
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
    """The outcome of trying an address, in a word."""

    OK = "ok"
    MOVED = "moved"
    GONE = "gone"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class LinkOutcome(NamedTuple):
    """The outcome of trying an address.

    Attributes:
        verdict: The outcome in a word.
        reason: The answer in a few words, such as `HTTP 404`.
        address: The new address of a page that has moved; empty for other verdicts.
        answered: True if the server answered at all.
    """

    verdict: Verdict
    reason: str
    address: str = ""
    answered: bool = True


class Link(NamedTuple):
    """An address in a record: the file, the index of the record, the path in the record, and the record's key or id."""

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
"""The code and the message of a verdict."""


def list_links(loaded: Loaded, keys: Collection[str] | None = None) -> Iterator[Link]:
    """Yield every address of papers and exclusions with its place, in file order; with `keys` those of these papers."""
    for index, paper in enumerate(loaded.papers):
        if keys is None or paper.key in keys:
            for position, url in enumerate(paper.urls):
                yield Link(url, loaded.paper_places, index, ("urls", position), paper.key)
            if paper.code is not None:
                yield Link(paper.code, loaded.paper_places, index, ("code",), paper.key)
            for position, item in enumerate(paper.evidence):
                yield Link(item.source, loaded.paper_places, index, ("evidence", position, "source"), paper.key)
    for index, exclusion in enumerate(loaded.exclusions if keys is None else ()):
        if exclusion.url:
            yield Link(exclusion.url, loaded.exclusion_places, index, ("url",), exclusion.id)


def is_arxiv_address(url: str) -> bool:
    """Return True if an address is one of arXiv's, whose terms ask robots to use the API instead."""
    return f".{urlsplit(url).hostname or ''}".endswith(".arxiv.org")


def sample_urls(urls: Collection[str], size: int, seed: str = "") -> tuple[str, ...]:
    """Return the addresses with the smallest hashes, in order: the same ones each time, and others for another seed.

    No host, year or place in the file is preferred. A new address changes the sample by one at most.
    """
    ranked = sorted(set(urls), key=lambda url: (sha256(f"{seed}\n{url}".encode()).digest(), url))
    return tuple(sorted(ranked[:size]))


def find_problems(links: Sequence[Link], outcomes: Mapping[str, LinkOutcome]) -> Iterator[Finding]:
    """Yield the findings at each place of the addresses that were tried; none for those that servers refuse to us."""
    for link in links:
        outcome = outcomes.get(link.url)
        if outcome is not None and outcome.verdict in _FINDINGS:
            code, message = _FINDINGS[outcome.verdict]
            detail = quote(outcome.address) if outcome.verdict is Verdict.MOVED else printable(outcome.reason)
            place = link.places.locate(link.record_index, *link.path)
            yield Finding(code, message.format(quote(link.url), detail), place, link.record)


PAUSE_SECONDS = 2.0
"""Between two requests to one host."""

TIMEOUT_SECONDS = 20.0
"""For a connection, and for the head of an answer."""

MAX_HOPS = 8

LASTS_SECONDS = {Verdict.OK: 14 * 86400, Verdict.MOVED: 7 * 86400, Verdict.REFUSED: 7 * 86400, Verdict.GONE: 86400}
"""The time that an outcome is taken from the cache. An unreachable address is tried again each time."""

_RESOLVERS = ("doi.org", "dx.doi.org", "www.doi.org")


class Sweep:
    """Tries addresses and stores the outcomes in a folder; `asked` counts those that were tried over the network."""

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
        self.asked = 0
        self._cache = AnswerFolder(cache_folder, clock)
        self._refresh = refresh
        self._pause_seconds = PAUSE_SECONDS if pause_seconds is None else pause_seconds
        self._timeout_seconds = timeout_seconds
        self._is_public = is_public or is_public_host
        self._next_at: dict[str, float] = {}
        self._busy_hosts: set[str] = set()

    def try_all(self, urls: Collection[str]) -> Iterator[tuple[str, LinkOutcome]]:
        """Try addresses, hosts in turn, and yield each outcome at once; raise `CacheError` if it cannot be stored."""
        from orchtrace_corpus.corpus.sources.http_session import HttpSession

        by_host: defaultdict[str, list[str]] = defaultdict(list)
        for url in sorted(urls):
            outcome = self._stored(url)
            if outcome is not None:
                yield url, outcome
            else:
                by_host[urlsplit(url).netloc].append(url)
        # The addresses of a host are as far apart as possible.
        shares = [(index / len(alike), url) for alike in by_host.values() for index, url in enumerate(alike)]
        with HttpSession() as session:
            for _, url in sorted(shares):
                self.asked += 1
                outcome = self._try(session, url)
                if outcome.verdict in LASTS_SECONDS and outcome.answered:
                    self._cache.write_answer(url, outcome)
                yield url, outcome

    def _stored(self, url: str) -> LinkOutcome | None:
        """Return the outcome of an earlier run, if it is fresh enough."""
        outcome = self._cache.read_answer(url, LinkOutcome)
        if self._refresh or outcome is None or outcome.verdict not in LASTS_SECONDS:
            return None
        return self._cache.read_answer(url, LinkOutcome, LASTS_SECONDS[outcome.verdict])

    def _try(self, session: "HttpSession", url: str) -> LinkOutcome:
        """Follow the redirects of an address to the end."""
        address, is_permanent = url, True
        deadline = time.monotonic() + REQUEST_SECONDS
        for _ in range(MAX_HOPS):
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
                status, location = self._ask(session, address)
            except (OSError, ValueError) as error:
                return LinkOutcome(Verdict.UNREACHABLE, _describe_error(error), answered=False)
            if not location:
                fragment = urlsplit(url).fragment  # which servers never see
                suffix = f"#{fragment}" if fragment and not urlsplit(address).fragment else ""
                return _judge_answer(status, f"{address}{suffix}" if is_permanent and address != url else "")
            if host in _RESOLVERS:  # the DOI exists; it is cited, wherever it leads today
                return LinkOutcome(Verdict.OK, f"HTTP {status}")
            is_permanent = is_permanent and status in (301, 308)
            try:
                address = urljoin(address, location)
            except ValueError:
                address = ""
        return LinkOutcome(Verdict.UNREACHABLE, f"more than {MAX_HOPS} redirects")

    def _ask(self, session: "HttpSession", url: str) -> tuple[int, str]:
        """Return the status of an address, and the target of a redirect; raise what requests raises."""
        host = urlsplit(url).netloc
        headers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        status, location = 0, ""
        for method in ("HEAD", "GET"):
            time.sleep(max(self._next_at.get(host, 0.0) - time.monotonic(), 0.0))
            try:
                with session.request(method, url, headers=headers, timeout=self._timeout_seconds) as response:
                    status, location = response.status_code, session.get_redirect_target(response) or ""
            except (OSError, ValueError):
                if method == "GET":
                    raise
                continue  # some servers break the connection after a HEAD
            finally:
                self._next_at[host] = time.monotonic() + self._pause_seconds
            if status == 429:
                self._busy_hosts.add(_host(url))
            if status < 400 or status == 429:
                break
        return status, location


def is_public_host(host: str) -> bool:
    """Return True if a host is on the public internet: a record must not make us ask the local network."""
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    if "." not in host.strip(".") or host.rstrip(".").endswith((".local", ".localhost", ".internal", ".home.arpa")):
        return False
    addresses = []
    with suppress(OSError, UnicodeError):  # the request itself shows that a name is unknown
        addresses = [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)]
    return all(ipaddress.ip_address(address.partition("%")[0]).is_global for address in addresses)


def _host(url: str) -> str:
    """Return the host of an address; empty if it is not an http or https address."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "" if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _judge_answer(status: int, moved_to: str) -> LinkOutcome:
    """Return the outcome by the status of the last answer."""
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
    """Return the reason for an error in a few words; those of the libraries are long and name their classes."""
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
