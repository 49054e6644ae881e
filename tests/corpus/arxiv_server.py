"""A server on loopback that answers as arXiv's query API does, with records made for the test.

    with ArxivServer([record("2401.00001", title="One"), record("2401.00001", version=2)]) as server:
        Client(server.url, cache_folder=..., spacing_seconds=0)    # or ORCHTRACE_ARXIV_URL=server.url
        server.faults = [rate_exceeded(), cut(0.5)]                # the next two requests go wrong
        server.always = busy()                                     # and so does every one after them
        server.requests[0].ids                                     # what was asked, and when

A paper is its `Metadata` in one or more versions; `records_of` makes one of each paper of a corpus. To
try a command by hand, with ORCHTRACE_ARXIV_SPACING=0 to make waits short:

    python -m tests.corpus.arxiv_server --port 8042 --corpus . [--era old] [--fault rate_exceeded --fault reset]
    ORCHTRACE_ARXIV_URL=http://127.0.0.1:8042/api/query corpus fetch

What it does as arXiv does: ids are looked up as they were sent, and refused only where nothing in them
looks like one, the first of them failing the whole request; what is not there is left out; the order is
not that of the request; a search is evaluated (`arxiv_query`), and answered page by page; ten results unless `max_results` says otherwise; a long GET gets 414 from the
web server in front. Feeds come in the shapes of three eras: before November 2025 (`Era.OLD`), on the
day of the change (`Era.LAUNCH`), and since (`Era.CURRENT`).
"""

import argparse
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from orchtrace_corpus.corpus.model.metadata import Metadata
from tests.corpus import arxiv_query
from tests.corpus.arxiv_feeds import Era, error_feed, feed, record, records, records_of

__all__ = ["ArxivServer", "Era", "Fault", "feed", "record", "records", "records_of"]

PATH = "/api/query"
LONGEST_LINE_BYTES = 7000
DEFAULT_RESULTS = 10
MOST_RESULTS = 2000

_ATOM = "application/atom+xml; charset=utf-8"
_HTML = "text/html; charset=utf-8"
_LIKE_AN_ID = r"\d{4}\.\d{4,5}(v\d+)?|[a-z-]+(\.[A-Z]{2})?/\d{7}(v\d+)?"


class Request(NamedTuple):
    """A request as it came in; `time` is that of `time.monotonic`."""

    time: float
    path: str
    ids: tuple[str, ...]
    headers: dict[str, str]
    port: int


class Fault(NamedTuple):
    """How an answer goes wrong; made by the functions below.

    Attributes:
        status: The status code; 0 is that of the right answer.
        body: What is sent; None is the right answer.
        content_type: The media type.
        headers: Further headers.
        delay_seconds: How long the answer takes to begin.
        pause_seconds: How long each further byte of the body takes.
        sent: Which part of the body is sent, from 0 to 1.
        is_announced: Whether Content-Length counts the part that is never sent.
        reset: Break the connection instead of answering.
        empty: Find nothing, whatever was asked.
        no_id_named: Refuse the request without naming an id.
        error_status: The status of a feed that refuses a request, 0 for arXiv's own 400.
        entries: How many entries a page of a search has at most.
    """

    status: int = 0
    body: bytes | None = None
    content_type: str = _ATOM
    headers: tuple[tuple[str, str], ...] = ()
    delay_seconds: float = 0.0
    pause_seconds: float = 0.0
    sent: float = 1.0
    is_announced: bool = False
    reset: bool = False
    empty: bool = False
    no_id_named: bool = False
    error_status: int = 0
    entries: int | None = None


def fine() -> Fault:
    """No fault: the right answer."""
    return Fault()


def rate_exceeded(retry_after: str = "") -> Fault:
    """429, fourteen bytes of text, and no Retry-After unless one is given."""
    headers = (("Retry-After", retry_after),) if retry_after else ()
    return Fault(429, b"Rate exceeded.", "text/plain", headers)


def busy(retry_after: str = "") -> Fault:
    """503 with a page of the web server in front."""
    headers = (("Retry-After", retry_after),) if retry_after else ()
    return Fault(503, b"<html><head><title>503 Service Unavailable</title></head></html>", _HTML, headers)


def slow(seconds: float = 1.0) -> Fault:
    """The right answer, late."""
    return Fault(delay_seconds=seconds)


def trickle(pause_seconds: float = 0.2) -> Fault:
    """The right answer, byte by byte."""
    return Fault(pause_seconds=pause_seconds)


def cut(part: float = 0.5) -> Fault:
    """The connection ends before the announced length."""
    return Fault(sent=part, is_announced=True)


def short(part: float = 0.5) -> Fault:
    """A whole answer of HTTP whose feed ends in the middle."""
    return Fault(sent=part)


def reset() -> Fault:
    """The connection is reset."""
    return Fault(reset=True)


def access_denied(status: int = 403) -> Fault:
    """A page that names our address and our User-Agent."""
    page = b"<!DOCTYPE html>\n<html><head><title>Access Denied</title></head><body>192.0.2.1 python</body></html>"
    return Fault(status, page, _HTML)


def error_feed_200() -> Fault:
    """A malformed id refused in a feed, with status 200."""
    return Fault(error_status=200)


def unreadable_400() -> Fault:
    """A request refused without saying which of its ids is the reason."""
    return Fault(no_id_named=True)


def empty() -> Fault:
    """A feed without entries, whatever was asked."""
    return Fault(empty=True)


def short_page(entries: int) -> Fault:
    """A page of a search with fewer entries than it should have."""
    return Fault(entries=entries)


def redirect(location: str, status: int = 301) -> Fault:
    """Another address to ask."""
    return Fault(status, b"", _HTML, (("Location", location),))


def sending(body: bytes, status: int = 200, content_type: str = _ATOM) -> Fault:
    """Any body."""
    return Fault(status, body, content_type)


FAULTS: dict[str, Callable[[], Fault]] = {
    made.__name__: made
    for made in (fine, rate_exceeded, busy, slow, trickle, cut, short, reset, access_denied, error_feed_200, empty)
}
"""The faults that need no argument, by name."""


class ArxivServer:
    """The server; listens from the beginning of a `with` to its end.

    Attributes:
        papers: By id, the versions of each paper, the newest last.
        era: The shape of its feeds.
        faults: What goes wrong with the next requests, one each.
        always: What goes wrong with every other; None for nothing.
        requests: What was asked, in order.
        refused: Ids that it takes for none, although they look like one.
        longest_line_bytes: A longer address gets 414.
        before_search: Called with the server and the number of the search, from 0, before it is answered: the place
            to change what there is.
        searches: The parameters of every search, in order.
    """

    def __init__(self, papers: Iterable[Metadata] = (), *, era: Era = Era.CURRENT, port: int = 0) -> None:
        self.papers: dict[str, list[Metadata]] = {}
        for paper in sorted(papers, key=lambda paper: paper.version):
            self.papers.setdefault(paper.arxiv_id, []).append(paper)
        self.era = era
        self.faults: list[Fault] = []
        self.always: Fault | None = None
        self.requests: list[Request] = []
        self.refused: set[str] = set()
        self.longest_line_bytes = LONGEST_LINE_BYTES
        self.before_search: Callable[[ArxivServer, int], None] | None = None
        self.searches: list[dict[str, str]] = []
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.arxiv = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """The address to ask, as arXiv's `https://export.arxiv.org/api/query`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{PATH}"

    @property
    def asked(self) -> list[str]:
        """All ids of all requests, in order."""
        return [asked for request in self.requests for asked in request.ids]

    def __enter__(self) -> "ArxivServer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def note(self, request: Request) -> Fault:
        """Log a request, and say what goes wrong with it."""
        with self._lock:
            self.requests.append(request)
            if self.faults:
                return self.faults.pop(0)
        return self.always or fine()

    def answer(self, query: str, fault: Fault) -> tuple[int, str, bytes]:
        """Status, media type and body for a query string."""
        if fault.body is not None:
            return fault.status or 200, fault.content_type, fault.body
        given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        asked = given.get("id_list", "").split(",") if given.get("id_list") else []
        problem = _problem(given, asked, self.refused)
        if fault.no_id_named:
            problem = ("Invalid query string", "invalid_query_string")
        if problem:
            status = fault.error_status or (200 if self.era is Era.OLD else 400)
            return status, _ATOM, error_feed(*problem, self.era)
        limit = int(given.get("max_results", DEFAULT_RESULTS))
        if limit == 0:
            return 500, _HTML, b"<html><title>500 Internal Server Error</title></html>"
        known = [] if fault.empty else [found for each in asked if (found := self.lookup(each)) is not None]
        missing = [] if fault.empty else [each for each in asked if self.lookup(each) is None]
        if "search_query" in given and not asked:
            return self._search(given, limit, fault)
        # Neither the order of the request nor any that means something.
        known.sort(key=lambda paper: hashlib.sha1(f"{paper.arxiv_id}v{paper.version}".encode()).digest())
        query_text = (
            f"search_query={given.get('search_query', '')}&id_list={','.join(asked)}"
            f"&start={given.get('start', '0')}&max_results={limit}"
        )
        return fault.status or 200, _ATOM, feed(known[:limit], missing, self.era, query_text, total=len(known))

    def _search(self, given: dict[str, str], limit: int, fault: Fault) -> tuple[int, str, bytes]:
        """A page of the answers to a search, in the order of submission or the reverse."""
        with self._lock:
            number = len(self.searches)
            self.searches.append(given)
        if self.before_search is not None:
            self.before_search(self, number)
        try:
            matches = arxiv_query.parse(given["search_query"])
        except arxiv_query.QueryError as error:
            return 400, _ATOM, error_feed(str(error), "invalid_query_string", self.era)
        found = [] if fault.empty else [papers[-1] for papers in self.papers.values() if matches(papers[-1])]
        is_reverse = given.get("sortOrder") != "ascending"
        found.sort(key=lambda paper: (paper.published, paper.arxiv_id), reverse=is_reverse)
        start = int(given.get("start", 0))
        size = fault.entries if fault.entries is not None else limit
        page = found[start : start + size]
        query_text = f"search_query={given['search_query']}&id_list=&start={start}&max_results={limit}"
        return fault.status or 200, _ATOM, feed(page, (), self.era, query_text, total=len(found))

    def lookup(self, asked: str) -> Metadata | None:
        """The version asked for, else the newest, of an id as it was sent."""
        match = re.fullmatch(r"(.*?)(?:v(\d+))?", asked, re.DOTALL)
        assert match is not None
        versions = self.papers.get(match[1], [])
        if match[2] is None:
            return versions[-1] if versions else None
        return next((paper for paper in versions if paper.version == int(match[2])), None)


def _problem(given: dict[str, str], asked: Sequence[str], refused: Collection[str]) -> tuple[str, str] | None:
    """The message and the name of the first mistake in a query."""
    for each in asked:
        if not re.search(_LIKE_AN_ID, each) or each in refused:
            return f"incorrect id format for {each}", f"incorrect_id_format_for_{each}"
    for name in ("max_results", "start"):
        value = given.get(name, "0")
        if not re.fullmatch(r"-?\d+", value):
            return f"{name} must be an integer", f"{name}_must_be_an_integer"
        if int(value) < 0:
            return f"{name} must be non-negative", f"{name}_must_be_non-negative"
    if int(given.get("max_results", 0)) > MOST_RESULTS:
        return "max_results must be at most 2000", "max_results_must_be_at_most_2000"
    if not asked and "search_query" not in given:
        message = "Either a search_query or id_list must be specified for the classic API."
        return message, "either_a_search_query_or_id_list_must_be_specified"
    return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    arxiv: ArxivServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no error here; anything else is printed and so fails a test."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        query = urlsplit(self.path).query
        self._answer(query, len(self.requestline.encode("latin-1")))

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(), 0)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing: the requests are in `ArxivServer.requests`."""

    def _answer(self, query: str, line_bytes: int) -> None:
        arxiv = self.server.arxiv
        asked = parse_qs(query, keep_blank_values=True).get("id_list", [""])[-1]
        headers = {name.lower(): value for name, value in self.headers.items()}
        ids = tuple(asked.split(",")) if asked else ()
        fault = arxiv.note(Request(time.monotonic(), self.path, ids, headers, self.client_address[1]))
        arxiv.stopping.wait(fault.delay_seconds)
        if fault.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.rfile.close()
            self.connection.close()
            self.close_connection = True
            return
        status, content_type, body = arxiv.answer(query, fault)
        if line_bytes > arxiv.longest_line_bytes:
            status, content_type, body = 414, _HTML, b"<html><title>414 Request-URI Too Large</title></html>"
        elif urlsplit(self.path).path not in (PATH, f"{PATH}/", "/moved"):
            status, content_type, body = 404, _HTML, b"<html><title>404 Not Found</title></html>"
        sent = body[: int(len(body) * fault.sent)]
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body if fault.is_announced else sent)))
        for name, value in fault.headers:
            self.send_header(name, value)
        self.end_headers()
        if not fault.pause_seconds:
            self.wfile.write(sent)
        for byte in sent if fault.pause_seconds else b"":
            self.wfile.write(bytes([byte]))
            if arxiv.stopping.wait(fault.pause_seconds):
                break
        self.close_connection = self.close_connection or fault.is_announced or bool(fault.pause_seconds)


def _read_records(path: str) -> list[Metadata]:
    with open(path, encoding="utf-8") as file:
        listed: list[dict[str, Any]] = json.load(file)
    return [
        Metadata(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
        for values in listed
    ]


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Answer as arXiv's query API does, on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--records", metavar="FILE", help="a JSON list of objects with the fields of Metadata")
    parser.add_argument("--corpus", metavar="DIR", help="serve the papers of a corpus as they are recorded there")
    parser.add_argument("--era", choices=[era.value for era in Era], default=Era.CURRENT.value)
    parser.add_argument("--fault", action="append", default=[], choices=FAULTS, help="for the next request; repeatable")
    parser.add_argument("--always", choices=FAULTS, help="for every request")
    options = parser.parse_args()
    papers = _read_records(options.records) if options.records else []
    if options.corpus:
        from orchtrace_corpus.corpus.api import load

        papers += records_of(load(options.corpus).papers)
    with ArxivServer(papers or records(20), era=Era(options.era), port=options.port) as server:
        server.faults = [FAULTS[name]() for name in options.fault]
        server.always = FAULTS[options.always]() if options.always else None
        print(f"ORCHTRACE_ARXIV_URL={server.url}", flush=True)  # noqa: T201
        shown = 0
        try:
            while True:
                time.sleep(0.2)
                for request in server.requests[shown:]:
                    print(f"{request.time:.1f} {len(request.ids)} ids {request.path[:100]}", flush=True)  # noqa: T201
                shown = len(server.requests)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
