"""Asking over HTTP: every end that a request can have, and where it may never lead."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from urllib3 import exceptions

from orchtrace_corpus import __version__
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.corpus.sources import http
from orchtrace_corpus.corpus.sources.http import (
    BrokenOffError,
    HttpError,
    TooLongError,
    Transport,
    UnreachableError,
)
from tests.corpus.arxiv_server import ArxivServer, Fault, access_denied, busy, redirect, reset, sending, slow
from tests.loopback import loopback_only  # noqa: F401 - guards every test here


@pytest.fixture
def server() -> Iterator[ArxivServer]:
    with ArxivServer() as running:
        running.always = sending(b"hello", content_type="text/plain")
        yield running


@pytest.fixture
def transport() -> Iterator[Transport]:
    with Transport(answer_seconds=0.5, max_body_bytes=10_000) as opened:
        yield opened


def test_an_answer_comes_back_as_it_was_sent(server: ArxivServer, transport: Transport) -> None:
    response = transport.get(f"{server.url}?a=b", accept="text/plain")

    assert (response.status, response.url, response.body) == (200, f"{server.url}?a=b", b"hello")
    assert response.headers["content-type"] == "text/plain"
    sent = server.requests[0].headers
    assert sent["user-agent"] == f"orchtrace-corpus/{__version__}"
    assert (sent["accept"], sent["accept-encoding"]) == ("text/plain", "identity")


@pytest.mark.parametrize(("fault", "status"), [(access_denied(), 403), (busy(), 503), (sending(b"", 404), 404)])
def test_a_status_is_no_error(server: ArxivServer, transport: Transport, fault: Fault, status: int) -> None:
    server.faults = [fault]

    assert transport.get(server.url).status == status


def test_one_connection_serves_all_requests(server: ArxivServer, transport: Transport) -> None:
    for _ in range(3):
        transport.get(server.url)

    assert len({request.port for request in server.requests}) == 1


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (reset(), BrokenOffError, "broke the connection: connection reset by peer"),
        (Fault(body=b"x" * 1000, sent=0.5, is_announced=True), BrokenOffError, "broke the connection: IncompleteRead"),
        (slow(600), BrokenOffError, "no answer from .* in time"),
        (Fault(body=b"x" * 5000, pause_seconds=0.1), BrokenOffError, "had no end after 0.5 s"),
        (sending(b"x" * 10_001), TooLongError, "is larger than 10,000 bytes"),
    ],
    ids=["reset", "cut", "late", "trickle", "overlong"],
)
def test_a_request_without_a_whole_answer_says_why(
    server: ArxivServer, transport: Transport, fault: Fault, error: type[HttpError], message: str
) -> None:
    server.faults = [fault]

    with pytest.raises(error, match=message) as caught:  # and not after the minutes that the answers take
        transport.get(f"{server.url}?secret=1")

    assert caught.value.exit_code is ExitCode.UPSTREAM
    assert "secret" not in str(caught.value)
    assert transport.get(server.url).body == b"hello"


def test_an_endless_answer_is_left_before_it_fills_the_memory(server: ArxivServer, transport: Transport) -> None:
    server.faults = [sending(b"x" * 50_000_000)]

    with pytest.raises(TooLongError):
        transport.get(server.url)


@pytest.mark.parametrize("drop", [b"x", b"a: b\r\n"], ids=["within a line", "line by line"])
def test_headers_have_no_more_time_than_the_answer(drop: bytes) -> None:
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener, Transport(answer_seconds=0.5) as transport:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not done.wait(0.1):
                    connection.sendall(drop)

        server = threading.Thread(target=drip, daemon=True)
        server.start()

        with pytest.raises(BrokenOffError, match=r"no answer from .* in time"):
            transport.get(f"http://127.0.0.1:{listener.getsockname()[1]}/x")

        done.set()
        server.join(10)


def test_redirects_share_the_time_of_a_request(server: ArxivServer) -> None:
    server.always = redirect(server.url)._replace(delay_seconds=0.3)
    with Transport(answer_seconds=0.5) as transport, pytest.raises(BrokenOffError):
        transport.get(server.url)

    assert len(server.requests) == 2


def test_a_caller_can_give_a_request_less_time(server: ArxivServer) -> None:
    server.always = slow(600)
    with Transport() as transport, pytest.raises(BrokenOffError):
        transport.get(server.url, max_seconds=0.2)


def test_nobody_listening_is_said_so(transport: Transport) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        with pytest.raises(
            UnreachableError, match=rf"^no connection to 'http://127.0.0.1:{port}/x': connection refused"
        ):
            transport.get(f"http://127.0.0.1:{port}/x")


def test_a_host_that_is_not_there_is_said_so(transport: Transport, loopback_only: list[str]) -> None:
    with pytest.raises(UnreachableError, match=r"no connection to 'http://mirror.invalid/': name or service not known"):
        transport.get("http://mirror.invalid/")

    assert loopback_only == ["mirror.invalid"]
    loopback_only.clear()


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (requests.exceptions.ConnectTimeout(exceptions.ConnectTimeoutError()), UnreachableError, "no connection to 'http://a/x': nothing came back in 10 s"),
        (requests.exceptions.ConnectionError("odd\n"), BrokenOffError, "the connection to 'http://a/x' failed: odd\\n"),
    ],
)  # fmt: skip
def test_rarer_ends_are_explained_too(error: Exception, kind: type[HttpError], message: str) -> None:
    explained = http._explain(error, "http://a/x?secret", 150)

    assert (type(explained), str(explained)) == (kind, message)


def test_a_server_without_tls_is_not_safe(server: ArxivServer, transport: Transport) -> None:
    with pytest.raises(UnreachableError, match=r"no safe connection to 'https://127.0.0.1"):
        transport.get(server.url.replace("http://", "https://"))


def test_an_answer_that_is_none_of_http_is_said_so(transport: Transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"\x00\x01nonsense\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(HttpError, match=r"broke the connection|cannot be asked"):
            transport.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join()


@pytest.mark.parametrize("url", ["http://", "nonsense", "file:///etc/passwd", "http://[::1", "http://127.0.0.1:99999/"])
def test_what_is_no_web_address_is_not_asked(transport: Transport, url: str) -> None:
    with pytest.raises(HttpError, match="cannot be asked"):
        transport.get(url)


def test_redirects_on_the_same_host_are_followed_and_waited_for(server: ArxivServer, transport: Transport) -> None:
    server.faults = [redirect("/moved?x=1", 307), redirect(f"{server.url}?x=2", 302)]
    asked: list[str] = []

    response = transport.get(server.url, before_request=asked.append)

    assert response.body == b"hello"
    assert response.url == f"{server.url}?x=2"
    assert [url.partition("/api")[2] or url.rpartition("/")[2] for url in asked] == [
        "/query",
        "moved?x=1",
        "/query?x=2",
    ]


@pytest.mark.parametrize(
    "location",
    [
        "https://example.org/x",
        "//example.org/x",
        "http://127.0.0.1:1/other-port",
        "http://user@127.0.0.1/",
        "file:///etc/passwd",
        "http://[broken",
    ],
)
def test_redirects_to_elsewhere_are_refused_without_asking_there(
    server: ArxivServer, transport: Transport, location: str
) -> None:
    server.faults = [redirect(location)]

    with pytest.raises(HttpError, match=r"redirects to .*; it was not asked|redirects to no address") as caught:
        transport.get(server.url)

    assert location.removeprefix("//") in str(caught.value)
    assert len(server.requests) == 1


def test_a_host_that_is_allowed_may_be_redirected_to(server: ArxivServer, transport: Transport) -> None:
    other = server.url.replace("127.0.0.1", "localhost")
    server.faults = [redirect(f"{other}?x=1")]

    assert transport.get(server.url, allowed_hosts={"localhost"}).url == f"{other}?x=1"


def test_redirects_in_circles_end(server: ArxivServer, transport: Transport) -> None:
    server.always = redirect("/moved")

    with pytest.raises(HttpError, match="comes after more than 5 redirects"):
        transport.get(server.url)

    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        ("http://arxiv.org/abs/1", "https://arxiv.org/abs/1", "https://arxiv.org/abs/1"),
        ("http://arxiv.org:80/", "https://ARXIV.org/", "https://ARXIV.org/"),
        ("https://arxiv.org/a/b", "../c", "https://arxiv.org/c"),
        ("https://export.arxiv.org/x", "https://arxiv.org/x", "https://arxiv.org/x"),
    ],
)
def test_encryption_may_be_added_and_allowed_hosts_reached(url: str, location: str, target: str) -> None:
    assert http._redirect_target(requests.Session(), url, location, ("arxiv.org",)) == target


def test_encryption_is_never_given_up() -> None:
    with pytest.raises(HttpError, match="which is not encrypted; it was not asked"):
        http._redirect_target(requests.Session(), "https://arxiv.org/", "http://arxiv.org/", ("arxiv.org",))


def test_the_proxy_of_the_environment_is_used(
    server: ArxivServer, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/api/query"))

    assert transport.get("http://mirror.invalid/api/query").body == b"hello"
    assert server.requests[0].path == "http://mirror.invalid/api/query"


def test_credentials_of_the_user_are_never_sent(
    server: ArxivServer, transport: Transport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    transport.get(server.url)

    assert "authorization" not in server.requests[0].headers


def test_a_whole_feed_that_trickles_in_time_is_read(server: ArxivServer, transport: Transport) -> None:
    server.faults = [Fault(body=b"slowly", pause_seconds=0.01)]

    assert transport.get(server.url).body == b"slowly"


def test_cookies_are_not_kept(server: ArxivServer, transport: Transport) -> None:
    server.faults = [Fault(body=b"x", headers=(("Set-Cookie", "who=me"),))]

    transport.get(server.url)
    transport.get(server.url)

    assert "cookie" not in server.requests[1].headers
