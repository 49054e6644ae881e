"""Every rule explained: why it exists, what breaks it, and the same mended.

`findings.RULES` has each rule's severity and title. The long texts live here, apart from it, because
only `corpus rule`, the SARIF report and the generator of docs/rules.md need them.
"""

from orchtrace_corpus.rulebook.across import ENTRIES as ACROSS
from orchtrace_corpus.rulebook.claims import ENTRIES as CLAIMS
from orchtrace_corpus.rulebook.drift import ENTRIES as DRIFT
from orchtrace_corpus.rulebook.entry import Entry
from orchtrace_corpus.rulebook.fields import ENTRIES as FIELDS
from orchtrace_corpus.rulebook.links import ENTRIES as LINKS
from orchtrace_corpus.rulebook.scale import ENTRIES as SCALE
from orchtrace_corpus.rulebook.sheets import ENTRIES as SHEETS
from orchtrace_corpus.rulebook.syntax import ENTRIES as SYNTAX
from orchtrace_corpus.rulebook.traces import ENTRIES as TRACES

GROUPS = {
    "Y": "Syntax",
    "F": "Fields",
    "V": "Vocabulary",
    "X": "Rules of the taxonomy",
    "I": "Identifiers",
    "D": "Duplicates",
    "M": "Markup and text",
    "E": "Evidence",
    "C": "Claims and disputes",
    "S": "Scale",
    "A": "Drift from arXiv",
    "L": "Links",
    "K": "Coding sheets",
    "T": "Traces",
}
"""What the first letter of a code stands for, in the order of the documentation."""

ENTRIES: dict[str, Entry] = {**SYNTAX, **FIELDS, **ACROSS, **CLAIMS, **DRIFT, **LINKS, **SCALE, **SHEETS, **TRACES}
"""The explanation of every rule, by its code."""

__all__ = ["ENTRIES", "GROUPS", "Entry"]
