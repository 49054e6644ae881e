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
from orchtrace_corpus.base.text.layout import pluralize
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
    """Return a table of the fields of one part; `published` are those that the published schema has, too."""
    rows = []
    for field, rule in part["properties"].items():
        required = "yes" if field in part.get("required", ()) else ""
        in_published = "yes" if field in published else ""
        _, _, referred_name = rule.get("$ref", "").rpartition("/")
        referred = schema()["$defs"].get(referred_name, {})
        meaning = rule.get("description") or referred["description"]
        rows.append((f"`{field}`", required, _value(rule), in_published, meaning))
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
        text = f"list of {_value(rule['items'])}"
        return f"{text}, not empty" if rule.get("minItems") else text
    if kinds == ["object"]:
        values = rule.get("additionalProperties")
        return f"object of {_value(values)}" if isinstance(values, dict) else "object"
    text = " or ".join(_TYPES[kind] for kind in kinds)
    if rule.get("minLength"):
        text += ", not empty"
    if "minimum" in rule:
        maximum = rule.get("maximum")
        has_maximum = maximum is not None and maximum < 2**53 - 1  # the largest integer that JSON readers keep exact
        text += f", from {rule['minimum']} to {maximum}" if has_maximum else f", from {rule['minimum']} on"
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
    rows = []
    for definition in DEFINITIONS.values():
        meaning, _, _ = (definition.compute.__doc__ or "").partition("\n")
        rows.append((f"`{definition.name}`", definition.unit, meaning, definition.formula, definition.source))
    return _table(("measure", "unit", "meaning", "formula", "source"), rows)


def credit_units() -> str:
    """Return a table of the units that each method can give credit to."""
    rows = [(f"`{unit}`", *("yes" if unit in units else "" for units in UNITS.values())) for unit in CREDIT_UNITS]
    return _table(("unit", *(f"`{method.value}`" for method in UNITS)), rows)


def checklist() -> str:
    """Return the items of the reporting checklist: the columns or facts behind each, and what to log for it."""
    rows = []
    for item in ITEMS:
        columns = ", ".join(f"`{name}`" for name in item.columns)
        rows.append((item.area.value, item.title, columns or item.rests_on, item.to_log))
    return _table(("about", "report", "rests on", "to log"), rows)


def reward_functions() -> str:
    """Return the functions that can be terms of a reward: their family, range, formula, source and options."""
    rows = []
    for function in FUNCTIONS.values():
        least, most = (f"{bound:g}" if abs(bound) < inf else "" for bound in function.bounds)
        formula = function.formula
        if function.source not in ("ours", "the trace"):
            formula += f" ({function.source})"
        options = ", ".join(f"`{name}`" for name in function.defaults)
        rows.append((f"`{function.name}`", function.family, f"{least}..{most}", function.unit, formula, options))
    return _table(("function", "family", "range", "unit", "formula", "options"), rows)


def _gated(gates: Sequence[str]) -> str:
    return " where the outcome is above 0" if "outcome" in gates else ""


def reward_designs() -> str:
    """Return the published designs: their terms, the numbers of open and omitted points, and their test vectors."""
    rows = []
    for name in published():
        spec = load(name)
        parts = [f"{term.weight:g} `{term.function}`{_gated(term.gates)}" for term in spec.terms]
        points = [*spec.open, *(point for term in spec.terms for point in term.open)]
        checked = pluralize(len(spec.vectors), "test vector") if spec.vectors else "none"
        rows.append((f"`{name}`", ", ".join(parts), str(len(points)), str(len(spec.omitted)), checked))
    return _table(("design", "weight and function of each term", "open", "omitted", "held to released code by"), rows)


def ledger_lines() -> str:
    """Return every line of the token ledger with the importers that write it: a format, a family of formats, or any."""
    folder = Path(importers_file).parent
    writers_by_line: dict[str, set[str]] = {}
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder).with_suffix("").parts
        writer = "any" if parts[0] == "core" else parts[0]
        writer = next((part for part in parts if part in FORMATS), writer)
        for name in re.findall(r"LedgerLine\.([A-Z_]+)", file.read_text(encoding="utf-8")):
            writers_by_line.setdefault(name, set()).add(writer)
    rows = []
    for line in LedgerLine:
        writers = sorted(writers_by_line.get(line.name, ()))
        rows.append((str(line), ", ".join(f"`{writer}`" for writer in writers)))
    return _table(("line of the ledger", "importers"), sorted(rows))


def dataset_columns() -> str:
    """Return the columns of every table of a dataset."""
    sections = []
    for name, columns in TABLES.items():
        rows = [(f"`{column.name}`", column.type, column.meaning) for column in columns]
        sections.append(f"### {name}\n\n{_table(('column', 'type', 'meaning'), rows)}")
    return "\n\n".join(sections)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = []
    for cells in (columns, ["---"] * len(columns), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)
