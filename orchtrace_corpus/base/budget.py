"""The most that one input may take, so that none exhausts the machine.

What exceeds a limit is a clear error that names the limit.
"""

MAX_EXPANDED_CHARACTERS = 16 * 1024 * 1024
"""The characters that names in one file may be replaced by; a library of 50,000 entries takes about 5 million."""
