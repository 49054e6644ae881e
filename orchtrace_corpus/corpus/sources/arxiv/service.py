"""The service that is asked: arXiv's own, or the mirror that somebody names."""

import os
import re
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.corpus.sources.limiter import Service, named_service, spacing_of

DEFAULT_URL = "https://export.arxiv.org/api/query"
"""arXiv's host for programs."""

SPACING_SECONDS = 3.0
"""The terms of use ask for no more than one request in three seconds (https://info.arxiv.org/help/api/tou.html)."""


def base_url(option: str = "") -> str:
    """Return the address to ask: the option's, else that of `ORCHTRACE_ARXIV_URL`, else arXiv's.

    Raises:
        CommandUseError: It is no http or https address, or has a query, a fragment or credentials.
    """
    source = "the arXiv URL" if option else "ORCHTRACE_ARXIV_URL"
    given = option or os.environ.get("ORCHTRACE_ARXIV_URL", "")
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
            f"{source} is not the address of a service: {quote(given)}",
            f"It looks like {DEFAULT_URL}, without a query.",
        )
    if _is_arxiv(host):  # which would redirect, at the price of a request
        return f"https://{host.rstrip('.')}{parts.path.rstrip('/')}"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def service(url: str, spacing_seconds: float | None = None) -> Service:
    """Return the service at an address that `base_url` gave.

    Args:
        url: Its address.
        spacing_seconds: The time between requests; None for `ORCHTRACE_ARXIV_SPACING`, else arXiv's
            three seconds. For arXiv itself it is never less than that.

    Raises:
        CommandUseError: `ORCHTRACE_ARXIV_SPACING` is not a number of seconds.
    """
    host = urlsplit(url).hostname or ""
    if spacing_seconds is None:
        spacing_seconds = spacing_of("ORCHTRACE_ARXIV_SPACING", SPACING_SECONDS)
    if _is_arxiv(host):
        hosts = ("arxiv.org", "export.arxiv.org")
        return Service(url, "arXiv", "arxiv.org", max(spacing_seconds, SPACING_SECONDS), hosts)
    return named_service(url, host, spacing_seconds)


def _is_arxiv(host: str) -> bool:
    return f".{host.rstrip('.')}".endswith(".arxiv.org")
