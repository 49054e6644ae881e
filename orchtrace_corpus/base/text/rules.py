"""The rulebook as text for the terminal; `scripts/document.py` makes the pages of docs/rules from it."""

from collections.abc import Iterable

from orchtrace_corpus.base.findings import RULES, SECTIONS, Rule, Section, Severity, explanation
from orchtrace_corpus.base.text.layout import Line, line, wrap


def lines(codes: Iterable[str], width: int) -> list[Line]:
    """Return the explanations of rules, wrapped to a width; the excerpts of YAML are not wrapped."""
    output: list[Line] = []
    for code in codes:
        rule = RULES[code]
        entry = explanation(code)
        fixable = ", can be fixed automatically" if entry.fixable else ""
        if output:
            output.append(())  # a blank line
        output += [line(f"{code} {rule.title}", "heading"), line(f"{rule.severity}{fixable}", "muted"), ()]
        output += [line(part) for part in wrap(entry.why, width)]
        output += [(), line(waiver(rule))]
        for label, text in (("Instead of", entry.bad), ("write", entry.good)):
            output += [(), line(f"{label}:", "muted")]
            output += [line(f"    {part}") for part in excerpt(text)]
    return output


def waiver(rule: Rule) -> str:
    """Return a sentence that says if and how a record can waive the findings of a rule."""
    if rule.waivable:
        return f"A record can waive it: waive: [{{code: {rule.code}, why: ...}}]"
    if rule.severity is Severity.ERROR:
        return "An error; cannot be waived."
    return "Not about a record's content; cannot be waived."


def all_codes() -> list[str]:
    """Return the codes of all rules, section by section."""
    return [code for letter, _ in sections() for code in RULES if code.startswith(letter)]


def sections() -> list[tuple[str, Section]]:
    """Return each section with its letter, in the order of the rulebook."""
    return sorted(SECTIONS.items(), key=lambda section: section[1].rank)


def excerpt(text: str) -> list[str]:
    """Return the lines of an excerpt, with code points instead of characters that do not print."""
    output = "".join(c if c.isprintable() or c == "\n" else f"<U+{ord(c):04X}>" for c in text)
    return output.split("\n")
