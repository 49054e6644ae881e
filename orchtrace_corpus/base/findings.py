"""Problems in data, as values: what is wrong, where, and how severe.

Every code of a finding is declared once: the YAML reader, the corpus and the traces each `register` their codes when
they are imported.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.named_tuples import NamedTuple


class Severity(StrEnum):
    """The severity of a finding: an error fails a command, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Rule(NamedTuple):
    """A kind of problem, under a code that is never reused; `waivable` if a record can waive its findings."""

    code: str
    severity: Severity
    title: str
    waivable: bool = False


class Location(NamedTuple):
    """A place in a file. `line` and `column` start at 1; columns count characters, not bytes."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """A problem at a place; `record` is the key or id of its record, or empty."""

    code: str
    message: str
    location: Location
    record: str = ""

    @property
    def severity(self) -> Severity:
        """The severity of the code in `RULES`."""
        return RULES[self.code].severity

    def __str__(self) -> str:
        severity = "" if self.severity is Severity.ERROR else f"{self.severity}: "
        record = f" [{printable(self.record, limit=60)}]" if self.record else ""
        return f"{self.location}: {self.code} {severity}{self.message}{record}"


class Entry(NamedTuple):
    """The explanation of a rule in a `rules.toml`.

    Attributes:
        why: Why the rule exists, and what it tolerates.
        bad: The shortest YAML that breaks it: fields of a record, records, or files under a comment with their name.
        good: The same, corrected.
        fixable: True if a program can correct it, because that needs no decision.
    """

    why: str
    bad: str
    good: str
    fixable: bool = False


class Section(NamedTuple):
    """The rules whose codes begin with one letter.

    Attributes:
        rank: Its place in the rulebook; sections of equal rank are in the order of registration.
        title: The subject of the rules.
        file: The file that explains them.
    """

    rank: int
    title: str
    file: str


RULES: dict[str, Rule] = {}
"""Every registered rule, by its code."""

SECTIONS: dict[str, Section] = {}
"""Every section of the rulebook, by the first letter of its codes."""


def register(
    module: str,
    errors: Mapping[str, str],
    warnings: Mapping[str, str],
    sections: Mapping[str, str],
    rank: int,
    waivable: Sequence[str] = (),
) -> None:
    """Declare rules.

    Args:
        module: The file of the module that declares them; `rules.toml` in its folder explains them.
        errors: The titles of errors, by code.
        warnings: The titles of warnings, by code.
        sections: The titles of the rulebook's sections, by the first letter of their codes.
        rank: The place of these sections among others.
        waivable: The sections whose warnings a record can waive.
    """
    for severity, titles in ((Severity.ERROR, errors), (Severity.WARNING, warnings)):
        for code, title in titles.items():
            can_be_waived = severity is Severity.WARNING and code[0] in waivable
            RULES[code] = Rule(code, severity, title, can_be_waived)
    ordered = sorted(RULES.items())
    RULES.clear()
    RULES.update(ordered)
    file = os.path.join(os.path.dirname(module), "rules.toml")
    SECTIONS.update({letter: Section(rank, title, file) for letter, title in sections.items()})


def explanation(code: str) -> Entry:
    """Return the explanation of a rule."""
    return explanations(SECTIONS[code[0]].file)[code]


@cache
def explanations(file: str) -> dict[str, Entry]:
    """Return the explanations of a `rules.toml`, by code."""
    import tomllib  # costs start-up

    with open(file, "rb") as handle:
        return {code: Entry(**entry) for code, entry in tomllib.load(handle).items()}


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return True if a finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def ranked(findings: Sequence[Finding], limit: int) -> Sequence[Finding]:
    """Return findings with errors first if only `limit` of them are shown; 0 shows all."""
    if not limit or len(findings) <= limit:
        return findings
    return sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)


def is_malformed(findings: Iterable[Finding]) -> bool:
    """Return True if a finding is a syntax error, so that a part of the data could not be read."""
    return any(finding.code.startswith("Y") for finding in findings)


def beyond(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of `after` that `before` does not have, on whatever lines they are."""
    counts = Counter(_identity(finding) for finding in before)
    new = []
    for finding in after:
        identity = _identity(finding)
        if counts[identity] > 0:
            counts[identity] -= 1
        else:
            new.append(finding)
    return tuple(new)


def _identity(finding: Finding) -> tuple[str, ...]:
    """Return the parts of a finding that do not change with the lines above it; some messages name a line."""
    message = re.sub(r"\bline \d+", "line", finding.message)
    return finding.code, os.path.basename(finding.location.path), finding.record, message


def is_noun(text: str) -> bool:
    """Return True if a text has only words of letters and digits, so that it is not markup in any format."""
    return len(text) <= 40 and re.fullmatch(r"[^\W_]+(?:[ -][^\W_]+)*", text) is not None


def printable(text: str, *, limit: int = 80) -> str:
    """Make text from outside safe to print on one line: escape characters that do not print, and shorten it."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def quote(text: str) -> str:
    """Quote text from outside for a message, escaped and shortened by `printable`."""
    return f"'{printable(text)}'"


def quote_path(path: str) -> str:
    """Quote a path for a message, escaped but whole, because paths often differ only at the end."""
    return f"'{printable(path, limit=4096)}'"


def escape_controls(text: str) -> str:
    """Return JSON that is safe on a terminal: control characters and those that change the direction are escaped.

    Characters below U+0020 need no escape here: every JSON writer escapes them.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    controls = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    return re.sub(controls, lambda match: f"\\u{ord(match[0]):04x}", text)


def suggestion(wrong: str, allowed: Sequence[str], *, always_list: bool = True) -> str:
    """Return the end of a message about an unknown word: the nearest known word and the allowed ones.

    It is empty, or begins with a space: ` (did you mean 'debate'? allowed: centralized, debate, swarm)`.
    """
    near = nearest(wrong, allowed)
    parts = [f"did you mean {quote(near)}?"] if near else []
    if allowed and (always_list or not near):
        parts.append(f"allowed: {', '.join(allowed)}")
    return f" ({' '.join(parts)})" if parts else ""


def near_suggestion(wrong: str, allowed: Sequence[str]) -> str:
    """Return the nearest known word as `suggestion` does, for a vocabulary that is too large to list; else empty."""
    return suggestion(wrong, allowed, always_list=False) if nearest(wrong, allowed) else ""


def nearest(wrong: str, allowed: Sequence[str]) -> str:
    """Return the word of a vocabulary with the most similar spelling; empty if none is similar."""
    from difflib import get_close_matches  # costs start-up

    near = get_close_matches(wrong[:80].lower(), [word.lower() for word in allowed], n=1, cutoff=0.6)
    return next((word for word in allowed if word.lower() in near), "")


def codes(prefix: str) -> tuple[str, ...]:
    """Return the codes that begin with a prefix, in upper or lower case.

    Raises:
        CommandUseError: There is none; the message names the nearest.
    """
    matching = tuple(code for code in RULES if prefix and code.startswith(prefix.upper()))
    if not matching:
        alike = [code for code in RULES if code[0] == prefix[:1].upper()] or list(RULES)
        hint = suggestion(prefix, alike, always_list=False) if len(prefix) > 1 else ""
        raise CommandUseError(f"there is no rule {quote(prefix)}{hint}", "See corpus rule --all.")
    return matching


def select(findings: Iterable[Finding], wanted: Sequence[str], ignored: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings whose code is in `wanted` (or any, if that is empty) and not in `ignored`.

    Syntax errors always stay, because the rest of their file is unread.
    """
    return tuple(
        finding
        for finding in findings
        if finding.code.startswith("Y") or ((finding.code in wanted or not wanted) and finding.code not in ignored)
    )
