"""What each field of a record accepts, and how its YAML node becomes a Python value.

A `Decoder` takes a node and returns the value, or None after reporting what is wrong with it. All
problems of a record are reported, not only the first.
"""

import re
import unicodedata
from collections.abc import Callable
from collections.abc import Mapping as MappingType
from functools import partial
from typing import Any, TypeAlias

from orchtrace_corpus.base.dates import is_iso_date
from orchtrace_corpus.base.findings import RULES, Severity, printable, quote, suggestion
from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile

NOT_APPLICABLE = "NA"
"""The value of a tag that does not apply to a record. An absent tag, in contrast, was not coded yet."""

OTHERS = "others"
"""Ends an author list that is cut short, as in BibTeX."""

TO_BE_WRITTEN = "To be written."
"""Stands for a summary that nobody has written yet. No record stays with it: a rule asks for the real one."""

ACTIVE_ELEMENTS = (
    "script|style|iframe|object|embed|img|svg|link|meta|base|textarea|title|plaintext|xmp|noscript|template|form"
)
"""Elements of HTML that a browser acts on as soon as they are opened, as a pattern."""

PLAIN_ELEMENTS = (
    "a|b|i|u|s|em|strong|sub|sup|br|hr|p|div|span|pre|code|small|big|font|center|table|tr|td|th|ul|ol|li|dl|dt|dd|"
    "h[1-6]|details|summary|video|audio|input|button|select|body|html|head|blockquote"
)
"""Those that need their closing `>`. What is neither, such as the <think> of a reasoning model, is text."""

_JOINERS = "\u200c\u200d"  # invisible, but part of words in some scripts
_TURNERS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


_EXAMPLES = {
    IdentifierKind.ARXIV: "2505.19591",
    IdentifierKind.DOI: "10.1609/aaai.v32i1.11794",
    IdentifierKind.OPENREVIEW: "ur295YVtmt",
    IdentifierKind.ACL: "2025.acl-long.421",
}


class Report:
    """Takes down the problems of one file; `record` names the record being decoded."""

    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.record = ""

    def add(self, code: str, at: int, message: str) -> None:
        """Take down a problem at an index of the file's text, unless the value there was refused already."""
        if at not in self.file.refused:
            self.file.refuse(code, at, message, self.record)


Decoder: TypeAlias = Callable[[Node, Report], Any]


class Schema(NamedTuple):
    """The fields of a kind of record.

    `title_field` names the one that messages call the record by, `omitted` those that the taxonomy switches off,
    `tags` those that it declares.
    """

    noun: str
    title_field: str
    decoders: MappingType[str, Decoder]
    required: tuple[str, ...]
    omitted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def decode_record(node: Node, schema: Schema, report: Report) -> dict[str, Any] | None:
    """Decode a mapping by its schema; None, reported, if it is no mapping.

    The result holds every known field that the record has; the value of a field with a problem is
    None.
    """
    if type(node) is not Mapping:
        report.add("F103", node.at, f"{schema.noun} must be a mapping of fields, not {kind_of(node)}")
        return None
    entries = node.entries
    title = entries.get(schema.title_field) if schema.title_field else None
    if title is not None and type(title[1]) is Scalar:
        report.record = title[1].text
    decoders = schema.decoders
    values: dict[str, Any] = {}
    for name, (key_at, value) in entries.items():
        decoder = decoders.get(name)
        if decoder is not None:
            values[name] = decoder(value, report)
        elif name in schema.omitted:
            report.add("F102", key_at, f"the taxonomy omits the field {quote(name)}; remove it here or there")
        else:
            hint = suggestion(name, list(decoders), always_list=False)
            report.add("F102", key_at, f"unknown field {quote(name)}{hint}")
    for name in schema.required:
        if name not in entries and node.at != report.file.cut_off:
            message = f"missing field {quote(name)}"
            if name in schema.tags and report.record:
                set_tag = f"corpus tag {printable(report.record)} {name}=..."
                message += f"; set it: {set_tag}, or write required: false for it in data/taxonomy.yaml"
            report.add("F101", node.at, message)
    return values


def text(name: str) -> Decoder:
    """One line of text."""
    return partial(checked_text, name)


def parsed(name: str, code: str, parse: Callable[[str], Any]) -> Decoder:
    """Text that `parse` turns into a value; the message of its ValueError says what is wrong with it."""

    def decode(node: Node, report: Report) -> Any:
        value = checked_text(name, node, report)
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            report.add(code, node.at, str(error))
            return None

    return decode


def formed(name: str, code: str, is_formed: Callable[[str], bool], description: str) -> Decoder:
    """Text of a given form."""

    def parse(value: str) -> str:
        if is_formed(value):
            return value
        raise ValueError(f"{quote(value)} is not {description}")

    return parsed(name, code, parse)


def key(name: str) -> Decoder:
    """A record's key."""
    return formed(name, "F107", is_key, "a key: use lower-case letters, digits and single hyphens")


def cite_key(name: str) -> Decoder:
    """A key that BibTeX knows an entry by."""
    return formed(name, "F107", is_cite_key, 'a key to cite: leave out blanks, commas, braces, " and =')


def is_cite_key(value: str) -> bool:
    """Return True if BibTeX takes the text for the key of an entry, even one such as `a#b` that LaTeX hardly cites."""
    return value.isprintable() and re.fullmatch(r"[^\s,{}=\"]+", value) is not None


def is_key(value: str) -> bool:
    """Return True if the text is made of ASCII lower-case letters and digits with single hyphens between them."""
    return value.isascii() and value == value.lower() and all(part.isalnum() for part in value.split("-"))


def exclusion_id(name: str) -> Decoder:
    """The id of an exclusion."""

    def is_id(value: str) -> bool:
        return value[:1] == "E" and len(value) > 3 and value.isascii() and value[1:].isdigit()

    return formed(name, "F110", is_id, "an exclusion id: write E and at least three digits, such as E033")


def field_name(name: str) -> Decoder:
    """The name of a field: what `--where` and column names can be written with."""

    def is_name(value: str) -> bool:
        return value.isascii() and value == value.lower() and value.isidentifier() and value[0] != "_"

    return formed(
        name, "F107", is_name, f"a {name} name: use lower-case letters, digits and underscores, a letter first"
    )


def identifier(kind: IdentifierKind) -> Decoder:
    """An arXiv, DOI, OpenReview or ACL id in its normal form."""

    def parse(value: str) -> str:
        if is_normal(kind, value):
            return value
        meant = recognise(value)
        mend = f"; write {meant.kind}: {meant.value}" if meant else f", such as {_EXAMPLES[kind]}"
        raise ValueError(f"{kind} {quote(value)} is not in its plain form{mend}")

    return parsed(kind.value, "F111", parse)


def year(name: str) -> Decoder:
    """A year of four digits."""

    def parse(value: str) -> int:
        if len(value) == 4 and value.isascii() and value.isdigit() and value[0] != "0":
            return int(value)
        raise ValueError(f"{quote(value)} is not a year: write four digits")

    return parsed(name, "F105", parse)


def iso_date(name: str) -> Decoder:
    """A day as `YYYY-MM-DD`, kept as text, which sorts and compares as the date does."""

    def parse(value: str) -> str:
        if is_iso_date(value):
            return value
        looks_like_date = re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII)
        problem = "is not a day of the calendar" if looks_like_date else "is not a date: write YYYY-MM-DD"
        raise ValueError(f"{quote(value)} {problem}")

    return parsed(name, "F106", parse)


def waived_code(name: str) -> Decoder:
    """The code of a rule whose findings are warnings."""
    warnings = [code for code, rule in RULES.items() if rule.severity is Severity.WARNING]

    def parse(value: str) -> str:
        if value in warnings:
            return value
        if value in RULES:
            raise ValueError(f"{value} is an error, and only warnings can be waived; mend the record")
        raise ValueError(f"unknown code {quote(value)}{suggestion(value, warnings)}")

    return parsed(name, "F113", parse)


def text_list(name: str) -> Decoder:
    """A list of different texts, at least one."""

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        items = _texts(name, node, report)
        return None if items is None else distinct(name, node, items, report)

    return decode


def authors(name: str) -> Decoder:
    """An author list in BibTeX form: `Family, Given`, a collective in braces, `others` at the end."""

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        items = _texts(name, node, report)
        if items is None:
            return None
        problems = {number: problem for number, item in enumerate(items) if (problem := _author_problem(item))}
        if OTHERS in items[:-1]:
            problems = {items.index(OTHERS): f"must end the list of {name}: it stands for the names left out"}
        if problems:
            number = min(problems)
            report.add("F109", _place(node, number), f"{quote(items[number])} {problems[number]}")
            return None
        if items == (OTHERS,):
            report.add("F109", node.at, f"{quote(OTHERS)} alone names nobody; name at least the first of the {name}")
            return None
        return items

    return decode


def is_collective(author: str) -> bool:
    """Return True if an author is marked as a collective: a name in braces, which has no parts."""
    return len(author) > 2 and author[0] == "{" and author[-1] == "}" and set(author[1:-1]).isdisjoint("{}")


def bare_author(author: str) -> str:
    """An author without the braces that mark a collective."""
    return author[1:-1] if is_collective(author) else author


def _author_problem(item: str) -> str:
    """Return the problem that keeps a text from being one author; empty without one."""
    if item.startswith(",") or item.endswith(","):
        return "lacks a part of the name: write Family, Given"
    if item != OTHERS and item.lower().strip(". ") in ("et al", "others", "and others"):
        return f"is not a name; write {OTHERS} for the names left out"
    if " and " in item and "," in item and not is_collective(item):
        return "names several people: give each an item of its own"
    return ""


def record_list(name: str, schema: Schema, build: Callable[..., Any]) -> Decoder:
    """A list of mappings, each decoded by its own schema and handed to `build` if nothing is wrong with it."""
    required = set(schema.required)

    def decode(node: Node, report: Report) -> tuple[Any, ...] | None:
        if type(node) is not Sequence:
            refuse_no_list(name, node, report)
            return None
        built = []
        for item in node.items:
            outer = report.record
            values = decode_record(item, schema, report)
            report.record = outer
            if values is not None and None not in values.values() and values.keys() >= required:
                built.append(build(**values))
        return tuple(built)

    return decode


def kind_of(node: Node) -> str:
    """Return the kind of a node in words."""
    if type(node) is Scalar:
        return "text" if node.text else "nothing"
    return "a list" if type(node) is Sequence else "a mapping"


def refuse_no_list(name: str, node: Node, report: Report) -> None:
    """Report that a node should have been a list."""
    report.add("F103", node.at, f"{quote(name)} must be a list such as [one, two], not {kind_of(node)}")


def checked_text(name: str, node: Node, report: Report) -> str | None:
    """One line of visible text; None, reported, if the node is none."""
    value = node.text if type(node) is Scalar else ""
    if (
        value and (report.file.is_printable or value.isprintable()) and value[0] != " " and value[-1] != " "
    ):  # nearly all
        return value
    if type(node) is not Scalar:
        report.add("F103", node.at, f"{quote(name)} must be text, not {kind_of(node)}")
    elif not value or value.isspace():
        report.add("F104", node.at, f"{quote(name)} is empty; write a value, or remove the field if it is optional")
    elif value != value.strip(" "):
        report.add("M101", node.at, f"{quote(name)} begins or ends with a blank; remove it: {quote(value)}")
    elif not value.isprintable() and (odd := _odd_character(value)):
        code, shown = odd
        report.add(code, node.at, f"{quote(name)} holds {shown}; write one line of visible text: {quote(value)}")
    else:
        return value
    return None


def _odd_character(value: str) -> tuple[str, str] | None:
    """The code and the name of the first character that prints in no version of Unicode: newer letters may be there."""
    allowed = _JOINERS if value.strip(_JOINERS) else ""  # inside a word, not instead of one
    for character in value:
        if not character.isprintable() and unicodedata.category(character) != "Cn" and character not in allowed:
            if character in _TURNERS:
                return "M102", f"U+{ord(character):04X}, which turns the direction of writing"
            return "M101", "a line break" if character == "\n" else f"the invisible character U+{ord(character):04X}"
    return None


def _texts(name: str, node: Node, report: Report) -> tuple[str, ...] | None:
    if type(node) is not Sequence:
        refuse_no_list(name, node, report)
        return None
    if not node.items:
        report.add("F104", node.at, f"{quote(name)} is an empty list; name at least one")
    label = f"an item of {name}"
    values = [checked_text(label, item, report) for item in node.items]
    return tuple(value for value in values if value is not None) if values and None not in values else None


def distinct(name: str, node: Node, items: tuple[str, ...], report: Report) -> tuple[str, ...] | None:
    """The items; None, reported, if one is there twice."""
    if len(set(items)) == len(items):
        return items
    for index, item in enumerate(items):
        if item in items[:index]:
            report.add("F108", _place(node, index), f"{printable(name)} names {quote(item)} twice; remove one")
    return None


def _place(node: Node, index: int) -> int:
    return node.items[index].at if type(node) is Sequence else node.at
