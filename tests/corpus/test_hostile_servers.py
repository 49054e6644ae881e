"""Whatever a server does, each command that asks one ends by its own limits, and changes nothing by it."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import LIMITED, ROOT, TOY
from tests.corpus.arxiv_server import ArxivServer
from tests.corpus.files import FIRST_OF_MARCH
from tests.corpus.test_discover import ARXIV, CANDIDATE, PROTOCOL
from tests.effort import mostly_slow

Serve = Callable[[socket.socket, threading.Event], None]
"""Answers one connection until it is broken off or the server closes."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
GUARD_SECONDS = 120
"""After which a command that has no end is killed, and the test fails."""


def silent(_connection: socket.socket, closing: threading.Event) -> None:
    closing.wait()


def drip(connection: socket.socket, closing: threading.Event, data: bytes) -> None:
    while not closing.wait(0.02):
        connection.sendall(data)


def drip_head(connection: socket.socket, closing: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    drip(connection, closing, b"x")


def drip_body(connection: socket.socket, closing: threading.Event) -> None:
    connection.sendall(HEAD + b"\r\n")
    drip(connection, closing, b" ")


def endless_headers(connection: socket.socket, closing: threading.Event) -> None:
    connection.sendall(HEAD)
    drip(connection, closing, b"X-More: more\r\n" * 1000)


def endless_body(connection: socket.socket, closing: threading.Event) -> None:
    connection.sendall(HEAD + b"\r\n")
    while not closing.is_set():
        connection.sendall(b"[" * 100_000)


def redirect_for_ever(connection: socket.socket, _closing: threading.Event) -> None:
    place = time.monotonic_ns()
    connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: /{place}\r\nContent-Length: 0\r\n\r\n".encode())


def come_back_in_a_million_years(connection: socket.socket, _closing: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n")


def noise(connection: socket.socket, _closing: threading.Event) -> None:
    connection.sendall(os.urandom(2000))


def nested(connection: socket.socket, _closing: threading.Event) -> None:
    body = b'{"a":' * 200_000
    connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def entities(connection: socket.socket, _closing: threading.Event) -> None:
    lines = [f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 12)]
    body = f'<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY e0 "x">{"".join(lines)}]><feed>&e11;</feed>'.encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/atom+xml\r\n"
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


SERVERS: dict[str, Serve] = {
    "silent": silent,
    "drip-head": drip_head,
    "drip-body": drip_body,
    "endless-headers": endless_headers,
    "endless-body": endless_body,
    "redirects": redirect_for_ever,
    "far-retry": come_back_in_a_million_years,
    "noise": noise,
    "nested": nested,
    "entities": entities,
}
CLIENTS = {
    "arXiv": ("fetch", "--write"),
    "arXiv search": ("discover",),
    "OpenAlex": ("discover",),
    "links": ("links",),
    "DOI": ("add", "10.5555/moss.1", "--yes"),
    "ACL": ("add", "2023.acl-long.999", "--yes"),
    "OpenReview": ("add", "https://openreview.net/forum?id=aaaaaaaaaa", "--yes"),
    "arXiv id": ("add", "2605.00001", "--yes"),
}


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Start a server that answers as it is asked to, and return its address."""
    serve, closing = SERVERS[request.param], threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            serve(connection, closing)

    def accept() -> None:
        with suppress(OSError):
            while not closing.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    closing.set()
    listener.close()


@pytest.fixture
def arxiv() -> Iterator[ArxivServer]:
    """Start an arXiv that answers."""
    with ArxivServer(ARXIV) as server:
        yield server


def corpus_that_asks(address: str, folder: Path) -> Path:
    """Return a corpus whose links lead to a server."""
    shutil.copytree(TOY, folder)
    papers = folder / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("https://example.org", address), encoding="utf-8")
    (folder / "data" / "protocol.yaml").write_text(PROTOCOL, encoding="utf-8")
    (folder / "data" / "candidates.yaml").write_text(CANDIDATE, encoding="utf-8")
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("address", mostly_slow(SERVERS, ["drip-head", "endless-body", "far-retry"]), indirect=True)
def test_each_client_ends_by_its_own_limits_and_changes_nothing(
    address: str, arxiv: ArxivServer, tmp_path: Path
) -> None:
    services = ("ARXIV", "OPENALEX", "DOI", "ACL", "OPENREVIEW")
    environment = {
        **os.environ,
        **{f"ORCHTRACE_{name}_URL": address for name in services},
        **{f"ORCHTRACE_{name}_SPACING": "0.0001" for name in services},
        "ORCHTRACE_REQUEST_SECONDS": "1",
        "ORCHTRACE_TRIES_SECONDS": "2",
        "OPENALEX_API_KEY": "any",
        "SOURCE_DATE_EPOCH": FIRST_OF_MARCH,
        "PYTHONPATH": str(ROOT),
    }
    running = {}
    for name, words in CLIENTS.items():
        folder = corpus_that_asks(address, tmp_path / name)
        before = files_of(folder)
        own = {"ORCHTRACE_CACHE": str(tmp_path / f"{name} cache")}
        if name == "OpenAlex":  # which is asked once arXiv has answered
            own["ORCHTRACE_ARXIV_URL"] = arxiv.url
        command = [sys.executable, "-c", LIMITED, "1000", "20", "0", "--root", str(folder), *words]
        child = subprocess.Popen(
            command, env={**environment, **own}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
        )
        running[name] = child, folder, before
    wrong = []
    for name, (child, folder, before) in running.items():
        try:
            stdout, stderr = child.communicate(timeout=GUARD_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            wrong.append(f"{name}: no end")
            continue
        is_said = bool((stdout + stderr).strip())
        if child.returncode not in (0, 1, 3, 4) or not is_said or "Traceback" in stderr:
            wrong.append(f"{name}: {child.returncode} {stderr[-400:]}")
        if name != "links" and child.returncode == 0:
            wrong.append(f"{name}: ended with 0: {stdout[-200:]}")
        if name != "OpenAlex" and files_of(folder) != before:  # beside which arXiv's answers are kept
            wrong.append(
                f"{name}: changed {[path for path, data in files_of(folder).items() if before.get(path) != data]}"
            )
    assert not wrong, "\n".join(wrong)
