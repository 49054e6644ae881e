"""The command line: parses words, calls the core, renders, exits. It holds no other logic."""

from orchtrace_corpus import corpus as corpus  # both wings register their rules
from orchtrace_corpus import trace as trace
