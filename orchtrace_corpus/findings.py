"""Problems found in data, as values: what is wrong, where, and how bad.

Every code a finding can carry is declared in `RULES`, once. The checks live with the layer that can
see the problem (reader, decoder, `pool.rules`); the declaration lives here so that all layers share it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
    """What a finding keeps when lines above it come and go; some messages name a line."""
    message = re.sub(r"\bline \d+", "line", finding.message)
    return finding.code, os.path.basename(finding.location.path), finding.record, message


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


_OBEYED = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def unobeyed(text: str) -> str:
    """JSON, in which a terminal obeys nothing: control characters and those that turn writing round become escapes.

    JSON lets them stand in texts as they are, but for those below U+0020, which every writer of JSON escapes.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_OBEYED, lambda found: f"\\u{ord(found[0]):04x}", text)


def suggestion(wrong: str, allowed: Sequence[str], *, always_list: bool = True) -> str:
    """The end of a message about a word outside a vocabulary: the nearest spelling and what is allowed.

    Returns text that begins with a space or is empty, such as
    ` (did you mean 'debate'? allowed: centralized, debate, swarm)`.
    """
    from difflib import get_close_matches  # only for who has made a mistake

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
        # C: what the corpus claims, and what is disputed in it
        "C101": "claim fails",
        "C102": "claim that cannot be evaluated",
        "C103": "claim about a record that is not there",
        "C104": "reading beyond its claim",
        "C105": "claim id used twice",
        "C201": "dispute about a paper that is not there",
        "C202": "dispute about no tag",
        "C203": "reading that is no term",
        "C204": "disputed tag that has changed",
        "C205": "dispute without two readings",
        "C206": "tag disputed twice",
        # S: what is known of the scale of systems
        "S101": "not an amount",
        "S102": "quantity given twice",
        "S103": "observation of a paper that is not there",
        "S104": "report taken for verified",
        # A: a record and arXiv have drifted apart
        "A101": "arXiv id of another work",
        # K: a coding sheet that cannot be compared as it is
        "K101": "no coding sheet",
        "K102": "unknown column",
        "K103": "unknown record",
        "K104": "record coded twice",
        "K105": "unknown code",
        # T1: a file that is no trace
        "T101": "not JSON",
        "T102": "no trace in the file",
        "T103": "trace not UTF-8",
        "T104": "number that is not finite",
        "T111": "trace without a required field",
        "T112": "wrong type in a trace",
        "T113": "unknown field in a trace",
        "T114": "unknown word in a trace",
        "T115": "empty, or out of range, in a trace",
        # T2: a trace whose parts contradict each other
        "T201": "id used twice",
        "T202": "edge to no event",
        "T203": "edges in a circle",
        "T204": "edge back in time",
        "T205": "spawn of nobody",
        "T207": "act before the spawn",
        "T208": "act after the end",
        "T209": "result without a call",
        "T210": "call id used twice",
        "T212": "return to nobody above",
        "T213": "aggregate of nothing",
        "T214": "act after the stop",
        "T215": "total below the sum",
        "T216": "unknown reward channel",
        "T217": "unknown without a reason",
        "T218": "end before the beginning",
        "T220": "more reasoning than output",
        "T221": "agent above itself",
        "T222": "figure that cannot be computed with",
        "T228": "result before its call",
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
        "M109": "summary to be written",
        "E102": "paper without evidence",
        "E103": "sparse term without evidence",
        "A102": "arXiv id without a paper",
        "A103": "title other than on arXiv",
        "A104": "title in another spelling than on arXiv",
        "A105": "authors other than on arXiv",
        "A106": "names in another form than on arXiv",
        "A107": "new version on arXiv",
        "A108": "suspected withdrawal from arXiv",
        "A109": "withdrawal from arXiv taken back",
        "A110": "journal reference on arXiv",
        "A111": "DOI other than on arXiv",
        "A112": "category on arXiv changed",
        # L: an address that no longer leads where it did
        "L101": "dead link",
        "L102": "link that has moved",
        "L103": "link that cannot be reached",
        "K106": "cell not coded",
        "K107": "record that another sheet has",
        "T206": "spawned agent that never acts",
        "T211": "call without a result",
        "T219": "two parents",
        "T223": "spawned agent that no edge leads to",
        "T224": "return that nothing depends on",
        "T225": "agents that no edge joins",
        "T226": "result of another tool",
        "T227": "trace id used twice",
    },
)

OUTSIDE = ("A", "L")
"""What the codes begin with that only a command which asks others can raise: `fetch` and `links`."""

RULES: dict[str, Rule] = dict(sorted({**_ERRORS, **_WARNINGS}.items()))
"""Every rule by its code."""
