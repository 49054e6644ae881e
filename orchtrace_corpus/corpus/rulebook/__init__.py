"""Every rule of the corpus explained."""

from orchtrace_corpus.base.findings import Entry
from orchtrace_corpus.corpus.rulebook.across import ENTRIES as ACROSS
from orchtrace_corpus.corpus.rulebook.claims import ENTRIES as CLAIMS
from orchtrace_corpus.corpus.rulebook.drift import ENTRIES as DRIFT
from orchtrace_corpus.corpus.rulebook.fields import ENTRIES as FIELDS
from orchtrace_corpus.corpus.rulebook.links import ENTRIES as LINKS
from orchtrace_corpus.corpus.rulebook.scale import ENTRIES as SCALE
from orchtrace_corpus.corpus.rulebook.sheets import ENTRIES as SHEETS

ENTRIES: dict[str, Entry] = {**FIELDS, **ACROSS, **CLAIMS, **DRIFT, **LINKS, **SCALE, **SHEETS}
"""The explanation of every rule of the corpus, by its code."""
