"""Connections of requests whose answers have one total time, headers included.

The timeout of a socket begins anew with each byte that arrives, so a server that sends a byte now and then would be
waited for without end.
"""

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any

from requests.adapters import HTTPAdapter


class TimedAdapter(HTTPAdapter):
    """Sends requests; the time to wait for an answer to begin is also the time in which all of it must arrive."""

    def get_connection_with_tls_context(self, *arguments: Any, **settings: Any) -> Any:
        """Return the connections to a host."""
        pool: Any = super().get_connection_with_tls_context(*arguments, **settings)
        if pool.ConnectionCls.response_class is not _TimedResponse:
            pool.ConnectionCls = type("_TimedConnection", (pool.ConnectionCls,), {"response_class": _TimedResponse})
        return pool


class _TimedStream(io.RawIOBase):
    """The bytes that a socket receives until a deadline."""

    def __init__(self, stream: io.RawIOBase, connection: socket.socket, seconds: float) -> None:
        self._stream = stream
        self._connection = connection
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_seconds = self._deadline - time.monotonic()
        if left_seconds <= 0:
            raise TimeoutError("timed out")
        self._connection.settimeout(left_seconds)
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """An answer that must arrive within the timeout that its socket has at the beginning."""

    def __init__(self, connection: socket.socket, *arguments: Any, **settings: Any) -> None:
        super().__init__(connection, *arguments, **settings)
        seconds = connection.gettimeout()
        if seconds is not None:
            stream: Any = self.fp.detach()
            self.fp = io.BufferedReader(_TimedStream(stream, connection, seconds))
