"""A session of `requests` without credentials, cookies and redirects, and with a limit for the time of an answer.

The timeout of a socket starts again with each byte, so a server that sends a byte now and then would never time out.
"""

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from orchtrace_corpus.base import __version__

USER_AGENT = f"orchtrace-corpus/{__version__}"
"""The program's name in requests."""


class HttpSession(requests.Session):
    """A session whose read timeout is the total time for an answer, headers included."""

    def __init__(self) -> None:
        super().__init__()
        self.headers["User-Agent"] = USER_AGENT
        self.stream = True
        self.auth = lambda request: request  # without it, requests looks for credentials in .netrc
        for scheme in ("http", "https"):
            self.mount(f"{scheme}://", _TimedAdapter())

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        """Send a request. `Session.send` would read the whole body of a redirect, even if it does not follow it."""
        del settings["allow_redirects"]
        return self.get_adapter(str(request.url)).send(request, **settings)


class _TimedAdapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *arguments: Any, **settings: Any) -> Any:
        """Return the pool of connections to a host, whose responses are `_TimedResponse`s."""
        pool: Any = super().get_connection_with_tls_context(*arguments, **settings)
        if pool.ConnectionCls.response_class is not _TimedResponse:
            pool.ConnectionCls = type("_TimedConnection", (pool.ConnectionCls,), {"response_class": _TimedResponse})
        return pool


class _TimedResponse(HTTPResponse):
    """An answer that must arrive within the timeout that the socket has when the answer begins."""

    def __init__(self, connection: socket.socket, *arguments: Any, **settings: Any) -> None:
        super().__init__(connection, *arguments, **settings)
        seconds = connection.gettimeout()
        if seconds is not None:
            stream: Any = self.fp.detach()
            self.fp = io.BufferedReader(_TimedStream(stream, connection, seconds))


class _TimedStream(io.RawIOBase):
    """The bytes that a socket receives until a deadline."""

    def __init__(self, stream: io.RawIOBase, connection: socket.socket, seconds: float) -> None:
        self._stream = stream
        self._connection = connection
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining_seconds = self._deadline - time.monotonic()
        if remaining_seconds <= 0:
            raise TimeoutError("timed out")
        self._connection.settimeout(remaining_seconds)
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()
