"""Which service is asked, and how politely: arXiv's own, or whatever mirror somebody points us at."""

import math
import os
import re
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote

DEFAULT_URL = "https://export.arxiv.org/api/query"
"""arXiv's host for programs."""

SPACING_SECONDS = 3.0
"""The terms of use ask for no more than one request in three seconds (https://info.arxiv.org/help/api/tou.html)."""

_ARXIV_HOSTS = ("arxiv.org", "export.arxiv.org")


class Service(NamedTuple):
    """A service that answers as arXiv's query API does.

    Attributes:
        url: Its address.
        name: What to call it in messages.
        folder: The name of its own folder and lock in the cache. arXiv's hosts share one.
        spacing_seconds: The least time from one request to the next.
        hosts: The hosts that it may redirect to besides its own.
    """

    url: str
    name: str
    folder: str
    spacing_seconds: float
    hosts: tuple[str, ...]


def base_url(option: str = "") -> str:
    """The address to ask: the option's, else that of `ORCHTRACE_ARXIV_URL`, else arXiv's.

    Raises:
        CommandUseError: It is no http or https address, or has a query, a fragment or credentials.
    """
    source, given = "the arXiv URL", option
    if not given:
        source, given = "ORCHTRACE_ARXIV_URL", os.environ.get("ORCHTRACE_ARXIV_URL", "")
    if not given:
        return DEFAULT_URL
    try:
        parts = urlsplit(given)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_plain = given.isascii() and given.isprintable() and set(" ?#@\\").isdisjoint(given)
    if parts.scheme not in ("http", "https") or not is_plain or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
        raise CommandUseError(
            f"{source} is no address of a service: {quote(given)}", f"It looks like {DEFAULT_URL}, without a query."
        )
    if _is_arxiv(host):  # which would redirect, at the price of a request
        return f"https://{host.rstrip('.')}{parts.path.rstrip('/')}"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def service(url: str, spacing_seconds: float | None = None) -> Service:
    """The service at an address that `base_url` gave.

    Args:
        url: Its address.
        spacing_seconds: The time between requests; None for `ORCHTRACE_ARXIV_SPACING`, else arXiv's
            three seconds. For arXiv itself it is never less than that.

    Raises:
        CommandUseError: `ORCHTRACE_ARXIV_SPACING` is no number of seconds.
    """
    host = urlsplit(url).hostname or ""
    wanted = _wanted_spacing() if spacing_seconds is None else spacing_seconds
    if _is_arxiv(host):
        return Service(url, "arXiv", "arxiv.org", max(wanted, SPACING_SECONDS), _ARXIV_HOSTS)
    return Service(url, host, f"{host[:60]}-{sha256(url.encode()).hexdigest()[:12]}", wanted, ())


def _is_arxiv(host: str) -> bool:
    return host.rstrip(".") == "arxiv.org" or host.rstrip(".").endswith(".arxiv.org")


def _wanted_spacing() -> float:
    given = os.environ.get("ORCHTRACE_ARXIV_SPACING", "")
    try:
        seconds = float(given) if given else SPACING_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise CommandUseError(f"ORCHTRACE_ARXIV_SPACING is no number of seconds: {quote(given)}", "Write such as 0.5.")
    return seconds
