"""The paper pool: its model, what is derived from it, and the rules it is held to."""

from orchtrace_corpus.corpus import codes as codes
