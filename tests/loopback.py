"""A guard for tests that speak HTTP: nothing may leave this machine, and nothing outside may tell on it."""

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuse every connection and every name that is not loopback's; any attempt fails the test.

    To be imported by the test modules that want it. The environment's proxies and settings are left out.
    """
    attempts: list[str] = []
    connect, getaddrinfo = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not ipaddress.ip_address(address[0]).is_loopback:
            attempts.append(str(address))
            raise ConnectionRefusedError(f"{address} is not on loopback")
        connect(self, address)

    def guarded_getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "::1", "localhost"):
            attempts.append(str(host))
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return getaddrinfo(host, *arguments, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("ORCHTRACE_"):
            monkeypatch.delenv(name)
    yield attempts
    assert attempts == []
