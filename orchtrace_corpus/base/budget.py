"""The most that one input may take, so that none exhausts the machine.

What exceeds a limit is a clear error that names the limit. Who trusts an input can raise those that are
read from the environment: `ORCHTRACE_MAX_LINE_BYTES=200000000`.
"""

import os

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote


def _limit(name: str, default: int) -> int:
    """Return a limit: what the environment says, else the default.

    Raises:
        CommandUseError: The environment says something else than a whole number.
    """
    variable = f"ORCHTRACE_{name}"
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise CommandUseError(
            f"{variable} is {quote(text)}, not a whole number", f"The limit without it is {default:,}."
        )
    return int(text)


def how_to_raise(name: str) -> str:
    """Return what to do to have a larger input read."""
    return f"Set ORCHTRACE_{name} to a higher number, if you trust the input."


MAX_EXPANDED_CHARACTERS = _limit("MAX_EXPANDED_CHARACTERS", 16 * 1024 * 1024)
"""The characters that names in one file may be replaced by; a library of 50,000 entries takes about 5 million."""

REQUEST_SECONDS = float(_limit("REQUEST_SECONDS", 150))
"""For one request over HTTP, from the first byte of its answer's head to the last of its body, redirects included.

arXiv has taken 124 s for a 429.
"""

TRIES_SECONDS = float(_limit("TRIES_SECONDS", 600))
"""For all tries of the requests of one run that have met trouble, waits included."""

MAX_BODY_BYTES = _limit("MAX_BODY_BYTES", 16 * 1024 * 1024)
"""The bytes of an answer over HTTP; a hundred of arXiv's records take about 300 kB."""

MAX_LINE_BYTES = _limit("MAX_LINE_BYTES", 64 * 1024 * 1024)
"""The bytes of a line of a log; a longer one is dropped and reported: no event is that large."""

MAX_DOCUMENT_BYTES = _limit("MAX_DOCUMENT_BYTES", 1024 * 1024 * 1024)
"""The bytes of a JSON document; the same as JSON Lines is read line by line."""

MAX_ARCHIVE_MEMBERS = _limit("MAX_ARCHIVE_MEMBERS", 200_000)
"""The members of an archive: 100,000 samples with their summaries. Each takes about a kilobyte of memory."""

MAX_EXPANSION_RATIO = _limit("MAX_EXPANSION_RATIO", 200)
"""The bytes that all members of an archive may expand to, for each byte of the archive; JSON compresses to a tenth."""

UNCHECKED_EXPANSION_BYTES = 64 * 1024 * 1024
"""An archive may expand to so many bytes, however small it is."""

MAX_FINDINGS = 10_000
"""The problems of one file that are kept; more are counted."""

MAX_COUNTED_FINDINGS = 10_000_000
"""The problems of one file that are counted; behind them, no further record is read."""

MAX_EDIT_TRIES = 25
"""The number of times an edit is repeated on a file that others changed meanwhile."""
