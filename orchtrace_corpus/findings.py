"""Problems found in data, as values: what is wrong, where, and how bad.

Every code a finding can carry is declared in `RULES`, once. The checks live with the layer that can
see the problem (reader, decoder, `pool.rules`); the declaration lives here so that all layers share it.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

from orchtrace_corpus.errors import CommandUseError


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


def codes(prefix: str) -> tuple[str, ...]:
    """The codes that begin with a prefix, in capitals or not.

    Raises:
        CommandUseError: There is none; the message names the nearest.
    """
    found = tuple(code for code in RULES if prefix and code.startswith(prefix.upper()))
    if not found:
        alike = [code for code in RULES if code[0] == prefix[:1].upper()] or list(RULES)
        hint = suggestion(prefix, alike, always_list=False) if len(prefix) > 1 else ""
        raise CommandUseError(f"there is no rule {quote(prefix)}{hint}", "See corpus rule --all.")
    return found


def select(findings: Iterable[Finding], wanted: Sequence[str], ignored: Sequence[str]) -> tuple[Finding, ...]:
    """The findings whose code is among `wanted` (if any is) and not among `ignored`.

    Findings of syntax always stay: behind one, nothing is known about the rest of the file.
    """
    return tuple(
        finding
        for finding in findings
        if finding.code.startswith("Y") or ((finding.code in wanted or not wanted) and finding.code not in ignored)
    )


def _rules(severity: Severity, titles: dict[str, str]) -> dict[str, Rule]:
    return {code: Rule(code, severity, title) for code, title in titles.items()}


_ERRORS = _rules(
    Severity.ERROR,
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
        "F113": "waiver of what cannot be waived",
        "F114": "not a web address",
        "F115": "year in the future",
        "F116": "date in the future",
        "F117": "promoted to no paper",
        "F118": "exclusion ids out of order",
        # V: a tag is not in the vocabulary
        "V101": "unknown axis",
        "V102": "unknown term",
        "V103": "unknown level",
        "V104": "NA where it is not allowed, or beside other terms",
        # X: fields that contradict each other, by the taxonomy's own rules
        "X101": "rule of the taxonomy broken",
        "X103": "rule of the taxonomy that cannot be applied",
        # I: identifiers that contradict the rest of the record
        "I101": "identifier other than that of the URL",
        # D: the same thing twice
        "D101": "key used twice",
        "D102": "exclusion id used twice",
        "D103": "identifier used twice",
        "D104": "URL used twice",
        "D106": "identifier excluded twice",
        "D107": "URL excluded twice",
        "D109": "excluded record in the pool",
        # M: text that would not stay text
        "M101": "control or invisible character",
        "M102": "character that turns the direction of writing",
        "M103": "LaTeX in text",
        "M104": "HTML or Markdown in text",
        "M107": "quotation mark without its partner",
        # E: what the tags rest on
        "E101": "tag without its evidence",
        # K: a coding sheet that cannot be compared as it is
        "K101": "no coding sheet",
        "K102": "unknown column",
        "K103": "unknown record",
        "K104": "record coded twice",
        "K105": "unknown code",
    },
)
_WARNINGS = _rules(
    Severity.WARNING,
    {
        "F112": "waiver of nothing",
        "X102": "rule of the taxonomy not met",
        "I105": "year far from that of the arXiv id",
        "D105": "title used twice",
        "D108": "title excluded twice",
        "D110": "excluded title in the pool",
        "M105": "text too long",
        "M106": "no final period",
        "M108": "name taken apart",
        "E102": "paper without evidence",
        "K106": "cell not coded",
        "K107": "record that another sheet has",
    },
)

RULES: dict[str, Rule] = dict(sorted({**_ERRORS, **_WARNINGS}.items()))
"""Every rule by its code."""
