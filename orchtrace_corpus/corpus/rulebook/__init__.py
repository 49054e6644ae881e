"""Every rule of the corpus explained."""

from orchtrace_corpus.base.findings import Entry
from orchtrace_corpus.corpus.rulebook.records import ENTRIES as RECORDS
from orchtrace_corpus.corpus.rulebook.sources import ENTRIES as SOURCES

ENTRIES: dict[str, Entry] = {**RECORDS, **SOURCES}
"""The explanation of every rule of the corpus, by its code."""
