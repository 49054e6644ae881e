"""What a rulebook says about one rule."""

from typing import NamedTuple


class Entry(NamedTuple):
    """The explanation of a rule.

    Attributes:
        why: Why the rule exists, and what it tolerates.
        bad: The least YAML that breaks it: fields of a record, records, or files under a comment with their name.
        good: The same, mended.
        fixable: Whether the mend needs no decision, so that a program can make it.
    """

    why: str
    bad: str
    good: str
    fixable: bool = False
