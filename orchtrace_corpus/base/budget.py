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
