"""The rulebook as text for the terminal and as docs/rules.md."""

from collections.abc import Iterable

from orchtrace_corpus.base.findings import RULES, SECTIONS, Rule, Section, explanation
from orchtrace_corpus.base.text.layout import Line, line, wrap

_INTRODUCTION = """\
# Rules

<!-- Generated from each wing's rulebook by `corpus build`; do not edit. -->

What `corpus validate` looks for, and in the sections A `corpus fetch`, L `corpus links`, K `corpus audit compare`. An
error fails the command; a warning does so with `--strict` only. Codes are stable and never reused. `corpus rule CODE`
prints one of these sections, `--select` and `--ignore` take codes or their beginnings.

A record can waive a warning that does not apply to it, with the reason:

```yaml
waive: [{code: I105, why: "The journal version came out four years later."}]
```
"""


def lines(codes: Iterable[str], width: int) -> list[Line]:
    """The sections of some rules, wrapped to a width; the excerpts stay as they are."""
    shown: list[Line] = []
    for code in codes:
        rule, entry = RULES[code], explanation(code)
        fixable = ", can be mended by a program" if entry.fixable else ""
        shown += [()] if shown else []
        shown += [line(f"{code} {rule.title}", "heading"), line(f"{rule.severity}{fixable}", "muted"), ()]
        shown += [line(text) for text in wrap(entry.why, width)]
        for label, excerpt in (("Instead of", entry.bad), ("write", entry.good)):
            shown += [(), line(f"{label}:", "muted"), *(line(f"    {text}") for text in _excerpt(excerpt))]
    return shown


def document() -> str:
    """docs/rules.md: a table of all rules, then a section for each."""
    parts = [_INTRODUCTION, _table(), ""]
    for letter, section in _sections():
        parts.append(f"## {letter}: {section.title}\n")
        parts += [_section(rule) for code, rule in RULES.items() if code.startswith(letter)]
    return "\n".join(parts).rstrip("\n") + "\n"


def ordered() -> list[str]:
    """All codes, group by group."""
    return [code for letter, _ in _sections() for code in RULES if code.startswith(letter)]


def _sections() -> list[tuple[str, Section]]:
    return sorted(SECTIONS.items(), key=lambda section: section[1].rank)


def _table() -> str:
    rows = ["| code | severity | what | fixable |", "| --- | --- | --- | --- |"]
    for code in ordered():
        rule = RULES[code]
        fixable = "yes" if explanation(code).fixable else ""
        rows.append(f"| [{code}](#{anchor(rule)}) | {rule.severity} | {rule.title} | {fixable} |")
    return "\n".join(rows)


def _section(rule: Rule) -> str:
    entry = explanation(rule.code)
    why = entry.why.replace("&", "&amp;").replace("<", "&lt;")
    parts = [f"### {rule.code} {rule.title}\n", f"{rule.severity.capitalize()}. {why}\n"]
    for label, excerpt in (("Instead of", entry.bad), ("write", entry.good)):
        parts.append("\n".join((f"{label}\n", "```yaml", *_excerpt(excerpt), "```", "")))
    return "\n".join(parts)


def _excerpt(text: str) -> list[str]:
    """The lines of an excerpt; characters that do not print are shown by their code points."""
    return ["".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in part) for part in text.split("\n")]


def anchor(rule: Rule) -> str:
    """GitHub's anchor of a section: lower case, blanks to hyphens, other punctuation left out."""
    heading = f"{rule.code} {rule.title}".lower()
    return "".join(c for c in heading if c.isalnum() or c in " -").replace(" ", "-")
