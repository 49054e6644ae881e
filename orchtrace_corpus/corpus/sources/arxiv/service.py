"""The service that is asked: arXiv's own, or a mirror."""

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
        CommandUseError: It is not an http or https address, or has a query, a fragment or credentials.
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
    if _is_arxiv(host):  # it redirects http, at the cost of a request
        return f"https://{host.rstrip('.')}{parts.path.rstrip('/')}"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def service(url: str, spacing_seconds: float | None = None) -> Service:
    """Return the service at an address that `base_url` returned.

    Without `spacing_seconds`, the time between requests is that of `ORCHTRACE_ARXIV_SPACING`, else three seconds; arXiv
    itself never gets a shorter one. Raise `CommandUseError` if the variable is not a number.
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
