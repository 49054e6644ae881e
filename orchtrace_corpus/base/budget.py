"""Limits for inputs, so that no input exhausts the machine.

An input that exceeds a limit gives an error that names the limit. For an input that they trust, users can raise some of
the limits in the environment: `ORCHTRACE_MAX_LINE_BYTES=200000000`.
"""

import os

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote


def _limit(name: str, default: int) -> int:
    """Return the limit in the environment, else the default; raise `CommandUseError` if it is not a whole number."""
    variable = f"ORCHTRACE_{name}"
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # 18 digits fit into 64 bits
        message = f"{variable} is {quote(text)}, not a whole number"
        raise CommandUseError(message, f"The limit without it is {default:,}.")
    return int(text)


def how_to_raise(name: str) -> str:
    """Return a hint that says how to raise a limit."""
    return f"Set ORCHTRACE_{name} to a higher number, if you trust the input."


MAX_EXPANDED_CHARACTERS = _limit("MAX_EXPANDED_CHARACTERS", 16 * 1024 * 1024)
"""The number of characters that the string macros of a BibTeX file may expand to; 50,000 entries take 5 million."""

REQUEST_SECONDS = float(_limit("REQUEST_SECONDS", 150))
"""The time for one HTTP request, redirects included. arXiv has taken 124 s to answer with status 429."""

TRIES_SECONDS = float(_limit("TRIES_SECONDS", 600))
"""The time that one command spends on repeated requests after errors, with the waits between them."""

MAX_BODY_BYTES = _limit("MAX_BODY_BYTES", 16 * 1024 * 1024)
"""The number of bytes in the body of an HTTP response; a hundred of arXiv's records take about 300 kB."""

MAX_LINE_BYTES = _limit("MAX_LINE_BYTES", 64 * 1024 * 1024)
"""The number of bytes in a line of a log; a longer line is skipped and reported, because no event is that large."""

MAX_DOCUMENT_BYTES = _limit("MAX_DOCUMENT_BYTES", 1024 * 1024 * 1024)
"""The number of bytes in a JSON document. JSON Lines have no such limit, because they are read line by line."""

MAX_ARCHIVE_MEMBERS = _limit("MAX_ARCHIVE_MEMBERS", 200_000)
"""The number of files in an archive: 100,000 samples, each with a summary. A file takes about a kilobyte of memory."""

MAX_EXPANSION_RATIO = _limit("MAX_EXPANSION_RATIO", 200)
"""The size of the files in an archive divided by the size of the archive; JSON compresses to about a tenth."""

UNCHECKED_EXPANSION_BYTES = 64 * 1024 * 1024
"""The ratio is not checked for archives whose files are smaller than this together."""

MAX_FINDINGS = 10_000
"""The number of problems of one file that are reported; further ones are only counted."""

MAX_COUNTED_FINDINGS = 10_000_000
"""The number of problems of one file that are counted; after them, reading stops."""

MAX_EDIT_TRIES = 25
"""The number of times an edit is repeated if others change the file meanwhile."""
