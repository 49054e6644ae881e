"""Other forms of the corpus, one module each; `registry` knows them by name."""

from orchtrace_corpus.corpus.formats.item import FormatError, Item, Problem, completed

__all__ = ["FormatError", "Item", "Problem", "completed"]
