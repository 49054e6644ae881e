"""The rulebook as text for the terminal; `scripts/document.py` makes the pages of docs/rules from it."""

from collections.abc import Iterable

from orchtrace_corpus.base.findings import RULES, SECTIONS, Rule, Section, Severity, explanation
from orchtrace_corpus.base.text.layout import Line, line, wrap


def lines(codes: Iterable[str], width: int) -> list[Line]:
    """Return the explanations of rules, wrapped to a width; the excerpts are not wrapped."""
    shown: list[Line] = []
    for code in codes:
        rule, entry = RULES[code], explanation(code)
        fixable = ", can be fixed automatically" if entry.fixable else ""
        shown += [()] if shown else []
        shown += [line(f"{code} {rule.title}", "heading"), line(f"{rule.severity}{fixable}", "muted"), ()]
        shown += [line(part) for part in wrap(entry.why, width)]
        shown += [(), line(waiver(rule))]
        for label, text in (("Instead of", entry.bad), ("write", entry.good)):
            shown += [(), line(f"{label}:", "muted"), *(line(f"    {part}") for part in excerpt(text))]
    return shown


def waiver(rule: Rule) -> str:
    """Return a sentence that says if and how a record can waive the findings of a rule."""
    if rule.waivable:
        return f"A record can waive it: waive: [{{code: {rule.code}, why: ...}}]"
    if rule.severity is Severity.ERROR:
        return "An error; cannot be waived."
    return "Not about a record's content; cannot be waived."


def ordered() -> list[str]:
    """Return all codes, section by section."""
    return [code for letter, _ in sections() for code in RULES if code.startswith(letter)]


def sections() -> list[tuple[str, Section]]:
    """Return the letters and sections in the order of the rulebook."""
    return sorted(SECTIONS.items(), key=lambda section: section[1].rank)


def excerpt(text: str) -> list[str]:
    """Return the lines of an excerpt, with code points for characters that do not print."""
    return ["".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in part) for part in text.split("\n")]
