"""Problems in data, as values: what is wrong, where, and how severe.

Every code of a finding is declared once. The YAML reader, `corpus` and `trace` call `register` with their codes when
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
    """A kind of problem. Its code is never reused; it is `waivable` if a record can waive its findings."""

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
    """A problem at a place. `record` is the key or id of the record with the problem; empty if it is in no record."""

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
        good: The YAML of `bad`, corrected.
        fixable: True if a program can correct the problem, because that needs no decision.
    """

    why: str
    bad: str
    good: str
    fixable: bool = False


class Section(NamedTuple):
    """The rules whose codes begin with one letter.

    Attributes:
        rank: The place of the section in the rulebook; sections of equal rank are in the order of registration.
        title: The subject of the rules.
        file: The path of the `rules.toml` that explains the rules.
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
        module: The `__file__` of the module that declares them; `rules.toml` in its folder explains the rules.
        errors: The titles of errors, by code.
        warnings: The titles of warnings, by code.
        sections: The titles of the rulebook's sections, by the first letter of their codes.
        rank: The place of these sections in the rulebook.
        waivable: The letters of the sections whose warnings a record can waive.
    """
    for severity, titles in ((Severity.ERROR, errors), (Severity.WARNING, warnings)):
        for code, title in titles.items():
            can_be_waived = severity is Severity.WARNING and code[0] in waivable
            RULES[code] = Rule(code, severity, title, can_be_waived)
    sorted_rules = sorted(RULES.items())
    RULES.clear()
    RULES.update(sorted_rules)
    file = os.path.join(os.path.dirname(module), "rules.toml")
    SECTIONS.update({letter: Section(rank, title, file) for letter, title in sections.items()})


def explanation(code: str) -> Entry:
    """Return the explanation of a rule."""
    return explanations(SECTIONS[code[0]].file)[code]


@cache
def explanations(file: str) -> dict[str, Entry]:
    """Return the explanations of a `rules.toml`, by code."""
    import tomllib  # imported here, because most commands explain no rule

    with open(file, "rb") as handle:
        return {code: Entry(**entry) for code, entry in tomllib.load(handle).items()}


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return True if one of the findings is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def errors_first(findings: Sequence[Finding], limit: int) -> Sequence[Finding]:
    """Return findings with errors first if there are more than `limit`; 0 is no limit."""
    if not limit or len(findings) <= limit:
        return findings
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = [finding for finding in findings if finding.severity is Severity.WARNING]
    return errors + warnings


def is_malformed(findings: Iterable[Finding]) -> bool:
    """Return True if one of the findings is a syntax error, so that a part of the data could not be read."""
    return any(finding.code.startswith("Y") for finding in findings)


def new_findings(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of `after` that are not in `before`. A finding on another line is not new."""
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
    """Return the parts of a finding that stay if lines are added above it."""
    message = re.sub(r"\bline \d+", "line", finding.message)  # some messages name a line
    return finding.code, os.path.basename(finding.location.path), finding.record, message


def is_noun(text: str) -> bool:
    """Return True for a short text of words, only letters and digits: in no format can it be read as markup."""
    return len(text) <= 40 and re.fullmatch(r"[^\W_]+(?:[ -][^\W_]+)*", text) is not None


def printable(text: str, *, limit: int = 80) -> str:
    """Return a text that is safe to print on one line: of at most `limit` characters, control characters escaped."""
    shortened = text if len(text) <= limit else text[: limit - 1] + "…"
    if shortened.isprintable():
        return shortened
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shortened)


def quote(text: str) -> str:
    """Return a text in quotes for a message, shortened and escaped by `printable`."""
    return f"'{printable(text)}'"


def quote_path(path: str) -> str:
    """Return a path in quotes for a message. It is escaped but not shortened: paths often differ only at the end."""
    return f"'{printable(path, limit=4096)}'"


def escape_controls(text: str) -> str:
    """Return JSON that is safe to print: control characters, and those that change the writing direction, are escaped.

    Characters below U+0020 need no escape here, because every JSON writer escapes them.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    controls = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    return re.sub(controls, lambda match: f"\\u{ord(match[0]):04x}", text)


def suggestion(wrong: str, allowed: Sequence[str], *, always_list: bool = True) -> str:
    """Return the end of a message about an unknown word: the most similar allowed word, and all allowed words.

    The end is empty, or begins with a space: ` (did you mean 'debate'? allowed: centralized, debate, swarm)`.

    Args:
        wrong: The unknown word.
        allowed: The words that are allowed.
        always_list: False to list the allowed words only if none is similar.
    """
    similar = nearest(wrong, allowed)
    parts = []
    if similar:
        parts.append(f"did you mean {quote(similar)}?")
    if allowed and (always_list or not similar):
        parts.append(f"allowed: {', '.join(allowed)}")
    return f" ({' '.join(parts)})" if parts else ""


def near_suggestion(wrong: str, allowed: Sequence[str]) -> str:
    """Return `suggestion` with only the most similar word; empty if none is similar. It suits large vocabularies."""
    return suggestion(wrong, allowed, always_list=False) if nearest(wrong, allowed) else ""


def nearest(wrong: str, allowed: Sequence[str]) -> str:
    """Return the allowed word with the most similar spelling, whatever its case; empty if none is similar."""
    from difflib import get_close_matches  # imported here, because it is only needed for errors

    matches = get_close_matches(wrong[:80].lower(), [word.lower() for word in allowed], n=1, cutoff=0.6)
    for word in allowed:
        if word.lower() in matches:
            return word
    return ""


def codes_with_prefix(prefix: str) -> tuple[str, ...]:
    """Return the codes of rules that begin with a prefix, which may be in lower case.

    Raises:
        CommandUseError: There is no such rule; the message suggests a similar code.
    """
    matching = tuple(code for code in RULES if prefix and code.startswith(prefix.upper()))
    if matching:
        return matching
    hint = ""
    if len(prefix) > 1:
        of_same_section = [code for code in RULES if code[0] == prefix[0].upper()]
        hint = suggestion(prefix, of_same_section or list(RULES), always_list=False)
    raise CommandUseError(f"there is no rule {quote(prefix)}{hint}", "See corpus rule --all.")


def select(findings: Iterable[Finding], wanted: Sequence[str], ignored: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings with the wanted codes, or all if `wanted` is empty, except those with ignored codes.

    Syntax errors always stay, because the rest of their file could not be read.
    """
    selected = []
    for finding in findings:
        is_syntax_error = finding.code.startswith("Y")
        is_wanted = not wanted or finding.code in wanted
        if is_syntax_error or (is_wanted and finding.code not in ignored):
            selected.append(finding)
    return tuple(selected)
