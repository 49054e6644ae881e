"""The most that one input may take, so that none exhausts the machine.

What exceeds a limit is a clear error that names the limit.
"""

MAX_EXPANDED_CHARACTERS = 16 * 1024 * 1024
"""The characters that names in one file may be replaced by; a library of 50,000 entries takes about 5 million."""

REQUEST_SECONDS = 150.0
"""For one request over HTTP, from the first byte of its answer's head to the last of its body, redirects included.

arXiv has taken 124 s for a 429.
"""

TRIES_SECONDS = 600.0
"""For all tries of the requests of one run that have met trouble, waits included."""

MAX_BODY_BYTES = 16 * 1024 * 1024
"""The bytes of an answer over HTTP; a hundred of arXiv's records take about 300 kB."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The bytes of a line of a log; a longer one is dropped and reported: no event is that large."""

MAX_DOCUMENT_BYTES = 1024 * 1024 * 1024
"""The bytes of a JSON document; the same as JSON Lines is read line by line."""

MAX_ARCHIVE_MEMBERS = 200_000
"""The members of an archive: 100,000 samples with their summaries. Each takes about a kilobyte of memory."""

MAX_EXPANSION_RATIO = 200
"""The bytes that all members of an archive may expand to, for each byte of the archive; JSON compresses to a tenth."""

UNCHECKED_EXPANSION_BYTES = 64 * 1024 * 1024
"""An archive may expand to so many bytes, however small it is."""

MAX_FINDINGS = 10_000
"""The problems of one file that are kept; more are counted."""

MAX_COUNTED_FINDINGS = 10_000_000
"""The problems of one file that are counted; behind them, no further record is read."""

MAX_EDIT_TRIES = 25
"""How often an edit is made again for a file that others have changed meanwhile."""
