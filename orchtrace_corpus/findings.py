"""Problems found in data, as values: what is wrong, where, and how bad.

Every code a finding can carry is declared in `RULES`, once. The checks live with the layer that can
see the problem (reader, decoder, `pool.rules`); the declaration lives here so that all layers share it.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How bad a finding is: an error fails a command, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Rule(NamedTuple):
    """A kind of problem, under a code that is never reused."""

    code: str
    severity: Severity
    title: str


class Location(NamedTuple):
    """A place in a file. `line` and `column` start at 1; columns count characters, not bytes."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """One problem at one place.

    `record` is the key or id of the record concerned, empty where there is none.
    """

    code: str
    message: str
    location: Location
    record: str = ""

    @property
    def severity(self) -> Severity:
        """The severity that `RULES` gives the code."""
        return RULES[self.code].severity

    def __str__(self) -> str:
        severity = "" if self.severity is Severity.ERROR else f"{self.severity}: "
        record = f" [{printable(self.record, limit=60)}]" if self.record else ""
        return f"{self.location}: {self.code} {severity}{self.message}{record}"


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def is_malformed(findings: Iterable[Finding]) -> bool:
    """Whether any finding is one of syntax, so that part of the data could not be read."""
    return any(finding.code.startswith("Y") for finding in findings)


def printable(text: str, *, limit: int = 80) -> str:
    """Make text from outside safe to print on one line: escape what does not print, cut what is long."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def quote(text: str) -> str:
    """Quote text from outside for a message, escaped and shortened by `printable`."""
    return f"'{printable(text)}'"


def suggestion(wrong: str, allowed: Sequence[str], *, always_list: bool = True) -> str:
    """The end of a message about a word outside a vocabulary: the nearest spelling and what is allowed.

    Returns text that begins with a space or is empty, such as
    ` (did you mean 'debate'? allowed: centralized, debate, swarm)`.
    """
    near = get_close_matches(wrong[:80].lower(), [word.lower() for word in allowed], n=1, cutoff=0.6)
    parts = []
    if near:
        spelled = next(word for word in allowed if word.lower() == near[0])
        parts.append(f"did you mean {quote(spelled)}?")
    if allowed and (always_list or not near):
        parts.append(f"allowed: {', '.join(allowed)}")
    return f" ({' '.join(parts)})" if parts else ""


def _errors(rules: dict[str, str]) -> dict[str, Rule]:
    return {code: Rule(code, Severity.ERROR, title) for code, title in rules.items()}


RULES: dict[str, Rule] = _errors(
    {
        # Y: the file is not the YAML that we read
        "Y101": "not UTF-8",
        "Y102": "byte order mark",
        "Y103": "forbidden character",
        "Y104": "syntax error",
        "Y105": "key given twice",
        "Y106": "anchor",
        "Y107": "alias",
        "Y108": "tag",
        "Y109": "merge key",
        "Y110": "more than one document, or a directive",
        "Y111": "nested too deeply",
        "Y112": "file too large",
        "Y113": "key that is not plain text",
        "Y114": "nothing in the file",
        # F: a field is absent, unknown or of the wrong type
        "F101": "missing field",
        "F102": "unknown field",
        "F103": "wrong type",
        "F104": "empty value",
        "F105": "not a year",
        "F106": "not a date",
        "F107": "not a key",
        "F108": "item given twice",
        "F109": "not an author list",
        "F110": "not an exclusion id",
        "F111": "not an identifier of its kind",
        # V: a tag is not in the vocabulary
        "V101": "unknown axis",
        "V102": "unknown term",
        "V103": "unknown level",
        "V104": "NA where it is not allowed, or beside other terms",
        # D: the same thing twice
        "D101": "key used twice",
        "D102": "exclusion id used twice",
        "D103": "identifier used twice",
        # M: text that would not stay text
        "M101": "control or invisible character",
    }
)
"""Every rule by its code."""
