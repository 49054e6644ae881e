"""The command line of both programs: it parses words, calls commands, shows errors and returns exit codes."""

# `corpus` and `trace` register their rules when they are imported.
from orchtrace_corpus import corpus as corpus
from orchtrace_corpus import trace as trace
