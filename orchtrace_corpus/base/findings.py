"""Problems found in data, as values: what is wrong, where, and how bad.

Every code a finding can carry is declared once, by the part of the project whose findings it is for: the reader of
YAML, the corpus and the traces each `register` theirs when they are imported.
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


class Entry(NamedTuple):
    """The explanation of one rule in a `rules.toml`.

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


class Section(NamedTuple):
    """The rules whose codes begin with one letter.

    Attributes:
        rank: Its place in the rulebook; sections of one rank stand as they were registered.
        title: What the rules are about.
        file: The file that explains them.
    """

    rank: int
    title: str
    file: str


RULES: dict[str, Rule] = {}
"""Every rule that is registered, by its code."""

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
        module: The file of the module that declares them; `rules.toml` beside it explains them.
        errors: The titles of errors, by code.
        warnings: The titles of warnings, by code.
        sections: The titles of the rulebook's sections, by the letter that their codes begin with.
        rank: The place of these sections among others.
        waivable: The sections whose warnings are about records, which can waive them.
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
    import tomllib  # only for who explains

    with open(file, "rb") as handle:
        return {code: Entry(**entry) for code, entry in tomllib.load(handle).items()}


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return True if a finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def ranked(findings: Sequence[Finding], limit: int) -> Sequence[Finding]:
    """Return findings of which `limit` are shown, 0 for all; if that leaves some out, errors come before warnings."""
    if not limit or len(findings) <= limit:
        return findings
    return sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)


def is_malformed(findings: Iterable[Finding]) -> bool:
    """Return True if a finding is one of syntax, so that part of the data could not be read."""
    return any(finding.code.startswith("Y") for finding in findings)


def beyond(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings of `after` that `before` does not have, wherever in their files they stand now.

    With the two exchanged, those that have gone.
    """
    known = Counter(_identity(finding) for finding in before)
    new = []
    for finding in after:
        identity = _identity(finding)
        if known[identity] > 0:
            known[identity] -= 1
        else:
            new.append(finding)
    return tuple(new)


def _identity(finding: Finding) -> tuple[str, ...]:
    """Return what stays of a finding when lines above it change; some messages name a line."""
    message = re.sub(r"\bline \d+", "line", finding.message)
    return finding.code, os.path.basename(finding.location.path), finding.record, message


def is_noun(text: str) -> bool:
    """Return True if a text is words of letters and digits alone, so that it is no markup in any form."""
    return len(text) <= 40 and re.fullmatch(r"[^\W_]+(?:[ -][^\W_]+)*", text) is not None


def printable(text: str, *, limit: int = 80) -> str:
    """Make text from outside safe to print on one line: escape what does not print, cut what is long."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def quote(text: str) -> str:
    """Quote text from outside for a message, escaped and shortened by `printable`."""
    return f"'{printable(text)}'"


def quote_path(path: str) -> str:
    """Quote a path for a message, escaped but whole: what tells paths apart is at their ends."""
    return f"'{printable(path, limit=4096)}'"


def unobeyed(text: str) -> str:
    """JSON, in which a terminal obeys nothing: control characters and those that turn writing round become escapes.

    JSON lets them stand in texts as they are, but for those below U+0020, which every writer of JSON escapes.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    obeyed = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    return re.sub(obeyed, lambda found: f"\\u{ord(found[0]):04x}", text)


def suggestion(wrong: str, allowed: Sequence[str], *, always_list: bool = True) -> str:
    """The end of a message about a word outside a vocabulary: the nearest spelling and what is allowed.

    Returns text that begins with a space or is empty, such as
    ` (did you mean 'debate'? allowed: centralized, debate, swarm)`.
    """
    near = nearest(wrong, allowed)
    parts = [f"did you mean {quote(near)}?"] if near else []
    if allowed and (always_list or not near):
        parts.append(f"allowed: {', '.join(allowed)}")
    return f" ({' '.join(parts)})" if parts else ""


def near_suggestion(wrong: str, allowed: Sequence[str]) -> str:
    """The same about a word outside so large a vocabulary that only the nearest spelling helps; empty without one."""
    return suggestion(wrong, allowed, always_list=False) if nearest(wrong, allowed) else ""


def nearest(wrong: str, allowed: Sequence[str]) -> str:
    """The word of a vocabulary that is spelled most like another one; empty if none is."""
    from difflib import get_close_matches  # only for who has made a mistake

    near = get_close_matches(wrong[:80].lower(), [word.lower() for word in allowed], n=1, cutoff=0.6)
    return next((word for word in allowed if word.lower() in near), "")


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
