"""What the documents say of traces, made from the code: fields, rules, measures, labels, columns, lines of the ledger.

`document` puts these tables into the marked regions of docs/traces.md, docs/measures.md, docs/credit.md,
docs/dataset.md, docs/checklist.md and docs/importers.md, and the functions of rewards into docs/rewards.md.
"""

import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from orchtrace_corpus.base.findings import RULES, SECTIONS, Rule
from orchtrace_corpus.base.text.regions import anchor
from orchtrace_corpus.trace.analysis.labels import RULES as LABELS
from orchtrace_corpus.trace.credit.assign import UNITS
from orchtrace_corpus.trace.dataset.columns import TABLES
from orchtrace_corpus.trace.diagnosis.checklist import ITEMS
from orchtrace_corpus.trace.exporters.published import EVENT_FIELDS, TRACE_FIELDS
from orchtrace_corpus.trace.importers import FORMATS
from orchtrace_corpus.trace.importers import __file__ as importers_file
from orchtrace_corpus.trace.measures.definitions import DEFINITIONS
from orchtrace_corpus.trace.model.import_report import LedgerLine
from orchtrace_corpus.trace.model.refusal import schema
from orchtrace_corpus.trace.model.terms import CREDIT_UNITS
from orchtrace_corpus.trace.render.tables import CODES
from orchtrace_corpus.trace.rewards import FUNCTIONS, load, published

_PARTS: Mapping[str, Sequence[str]] = {
    "event": EVENT_FIELDS,
    "tokens": (),
    "source": (),
    "token_refs": (),
    "turn": (),
    "edge": ("src", "dst", "type"),
    "costs": ("tokens", "wall_clock_s", "tool_calls", "messages"),
    "clock": (),
    "agent": (),
    "baseline": (),
    "run": (),
}
"""The parts of a trace, each with its fields that the published schema has, too."""

_TYPES = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false", "null": "null"}


def fields() -> str:
    """Return every field of the schema, with a table for each part of a trace."""
    parts = schema()["$defs"]
    sections = [_part("The trace", schema(), TRACE_FIELDS)]
    sections += [_part(f"`{name}`", parts[name], published) for name, published in _PARTS.items()]
    return "\n\n".join(sections)


def _part(title: str, part: Mapping[str, Any], published: Sequence[str]) -> str:
    rows = []
    for field, rule in part["properties"].items():
        is_required, is_published = ("yes" if field in some else "" for some in (part.get("required", ()), published))
        referred = schema()["$defs"].get(rule.get("$ref", "").rpartition("/")[2], {})
        meaning = rule.get("description") or referred["description"]
        rows.append((f"`{field}`", is_required, _value(rule), is_published, meaning))
    head = f"### {title}\n\n{part['description']}\n\n"
    return head + _table(("field", "required", "value", "published", "meaning"), rows)


def _value(rule: Mapping[str, Any]) -> str:
    """Return the values that a field can have, in words."""
    if "$ref" in rule:
        name = rule["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name})"
    if "enum" in rule:
        return ", ".join(f"`{word}`" for word in rule["enum"])
    kinds = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
    if kinds == ["array"]:
        return f"list of {_value(rule['items'])}{', not empty' if rule.get('minItems') else ''}"
    if kinds == ["object"]:
        of = rule.get("additionalProperties")
        return f"object of {_value(of)}" if isinstance(of, dict) else "object"
    text = " or ".join(_TYPES[kind] for kind in kinds)
    if rule.get("minLength"):
        text += ", not empty"
    if "minimum" in rule:
        most = rule.get("maximum")
        bound = f" to {most}" if most is not None and most < 2**53 - 1 else " on"
        text += f", from {rule['minimum']}{bound}"
    return text


def rule_page(letter: str) -> str:
    """Return the page that explains a group of rules, relative to docs/."""
    return f"rules/{anchor(SECTIONS[letter].title)}.md"


def rule_address(rule: Rule) -> str:
    """Return the address of the explanation of a rule, relative to docs/."""
    return f"{rule_page(rule.code[0])}#{anchor(f'{rule.code} {rule.title}')}"


def graph_rules() -> str:
    """Return the rules that no schema can state."""
    rows = [
        (f"[{code}]({rule_address(rule)})", rule.severity.value, rule.title)
        for code, rule in RULES.items()
        if code.startswith("T2")
    ]
    return _table(("code", "severity", "what"), rows)


def label_rules() -> str:
    """Return the rules by which events are labelled with sub-decisions."""
    rows = [(f"`{name}`", f"{CODES[decision]} {decision.value}", text) for name, (decision, text) in LABELS.items()]
    return _table(("rule", "gives", "fires when"), rows)


def measures() -> str:
    """Return every measure: its unit, meaning, formula and source."""
    rows = [
        (f"`{one.name}`", one.unit, (one.compute.__doc__ or "").partition("\n")[0], one.formula, one.source)
        for one in DEFINITIONS.values()
    ]
    return _table(("measure", "unit", "meaning", "formula", "source"), rows)


def credit_units() -> str:
    """Return a table of the units that each method can give credit to."""
    rows = [(f"`{unit}`", *("yes" if unit in units else "" for units in UNITS.values())) for unit in CREDIT_UNITS]
    return _table(("unit", *(f"`{method.value}`" for method in UNITS)), rows)


def checklist() -> str:
    """The items of the reporting checklist: what each rests on, and what to log for it."""
    rows = []
    for item in ITEMS:
        columns = ", ".join(f"`{name}`" for name in item.columns)
        rows.append((item.area.value, item.title, columns or item.rests_on, item.to_log))
    return _table(("about", "report", "rests on", "to log"), rows)


def reward_functions() -> str:
    """Return the functions that can be terms of a reward: their family, range, formula, source and options."""
    rows = []
    for one in FUNCTIONS.values():
        least, most = (f"{bound:g}" if abs(bound) < inf else "" for bound in one.bounds)
        source = "" if one.source in ("ours", "the trace") else f" ({one.source})"
        options = ", ".join(f"`{name}`" for name in one.options)
        rows.append((f"`{one.name}`", one.family, f"{least}..{most}", one.unit, f"{one.formula}{source}", options))
    return _table(("function", "family", "range", "unit", "formula", "options"), rows)


def _gated(gates: Sequence[str]) -> str:
    return " where the outcome is above 0" if "outcome" in gates else ""


def reward_designs() -> str:
    """The published designs: their terms, how many points are open or omitted, and what holds them to released code."""
    rows = []
    for name in published():
        spec = load(name)
        parts = [f"{term.weight:g} `{term.function}`{_gated(term.gates)}" for term in spec.terms]
        points = [*spec.open, *(point for term in spec.terms for point in term.open)]
        checked = f"{len(spec.vectors)} test vectors" if len(spec.vectors) != 1 else "1 test vector"
        rows.append(
            (
                f"`{name}`",
                ", ".join(parts),
                str(len(points)),
                str(len(spec.omitted)),
                checked if spec.vectors else "none",
            )
        )
    return _table(("design", "weight and function of each term", "open", "omitted", "held to released code by"), rows)


def ledger_lines() -> str:
    """Return every line of the token ledger with the importers that write it: a format, a family of formats, or any."""
    folder = Path(importers_file).parent
    writers: dict[str, set[str]] = {}
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder).with_suffix("").parts
        writer = next((part for part in parts if part in FORMATS), "any" if parts[0] == "core" else parts[0])
        for name in re.findall(r"LedgerLine\.([A-Z_]+)", file.read_text(encoding="utf-8")):
            writers.setdefault(name, set()).add(writer)
    rows = [(str(line), ", ".join(f"`{one}`" for one in sorted(writers.get(line.name, ())))) for line in LedgerLine]
    return _table(("line of the ledger", "importers"), sorted(rows))


def dataset_columns() -> str:
    """Return the columns of every table of a dataset."""
    sections = [
        f"### {name}\n\n"
        + _table(
            ("column", "type", "meaning"), [(f"`{column.name}`", column.type, column.meaning) for column in columns]
        )
        for name, columns in TABLES.items()
    ]
    return "\n\n".join(sections)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
