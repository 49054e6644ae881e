"""Orchestration traces: decoded, checked, replayed, measured."""

from orchtrace_corpus.trace import codes as codes
