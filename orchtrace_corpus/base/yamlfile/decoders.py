"""Records as declared: what each field of a mapping accepts, and how its YAML node becomes a Python value.

A `Decoder` takes a node and returns the value, or None after reporting what is wrong with it. All
problems of a record are reported, not only the first.
"""

import re
import unicodedata
from collections.abc import Callable, Collection
from collections.abc import Mapping as MappingType
from enum import StrEnum
from functools import partial
from types import MappingProxyType, UnionType

from orchtrace_corpus.base.annotations import Any, TypeAlias
from orchtrace_corpus.base.dates import is_iso_date
from orchtrace_corpus.base.findings import nearest, printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile

NOT_APPLICABLE = "NA"
"""The value of a field that does not apply to a record. An absent field, in contrast, was not coded yet."""

_JOINERS = "\u200c\u200d"  # invisible, but part of words in some scripts
_TURNERS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


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

    Attributes:
        noun: What messages call such a record.
        title_field: The field that messages call it by.
        decoders: The decoder of each field.
        required: The fields that it must have.
        omitted: Fields that it cannot have here, each with the message that says why.
        mends: How a field that is missing is set, with `{record}` for the record's name, by field.
    """

    noun: str
    title_field: str
    decoders: MappingType[str, Decoder]
    required: tuple[str, ...]
    omitted: MappingType[str, str] = MappingProxyType({})
    mends: MappingType[str, str] = MappingProxyType({})


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
    misspelt: list[str] = []
    for name, (key_at, value) in entries.items():
        decoder = decoders.get(name)
        if decoder is not None:
            values[name] = decoder(value, report)
        elif name in schema.omitted:
            report.add("F102", key_at, schema.omitted[name])
        else:
            hint = suggestion(name, list(decoders), always_list=False)
            misspelt.append(nearest(name, list(decoders)))
            report.add("F102", key_at, f"unknown field {quote(name)}{hint}")
    for name in schema.required:
        if name not in entries and node.at != report.file.cut_off:
            message = f"missing field {quote(name)}"
            if name in schema.mends and report.record and name not in misspelt:
                message += schema.mends[name].format(record=printable(report.record))
            report.add("F101", node.at, message)
    return values


def decode_value(node: Node, schema: Schema, build: Callable[..., Any], report: Report) -> Any:
    """Return what `build` makes of the fields of a mapping; None if any of them is wrong or missing."""
    values = decode_record(node, schema, report)
    if values is None or None in values.values():
        return None
    for name in schema.required:
        if name not in values:
            return None
    return build(**values)


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


def iso_date(name: str) -> Decoder:
    """A day as `YYYY-MM-DD`, kept as text, which sorts and compares as the date does."""

    def parse(value: str) -> str:
        if is_iso_date(value):
            return value
        looks_like_date = re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII)
        problem = "is not a day of the calendar" if looks_like_date else "is not a date: write YYYY-MM-DD"
        raise ValueError(f"{quote(value)} {problem}")

    return parsed(name, "F106", parse)


def word(
    name: str,
    label: str,
    allowed: Collection[str],
    *,
    code: str = "V102",
    refuse: Callable[[str, int, Report], bool] | None = None,
) -> Decoder:
    """One of some words. The result is the very string that is allowed, so that equal words are one object.

    Args:
        name: The field.
        label: What messages call such a word.
        allowed: The words.
        code: The code of the finding of another one.
        refuse: Reports why a word that is not allowed is none, and returns True; False for the usual finding.
    """
    known = {term: term for term in allowed}

    def decode(node: Node, report: Report) -> str | None:
        if type(node) is Scalar and node.text in known:
            return known[node.text]
        value = checked_text(name, node, report)
        if value == NOT_APPLICABLE:
            report.add("V104", node.at, f"{quote(value)} is not allowed for {name}{suggestion('', tuple(known))}")
        elif value is not None and not (refuse and refuse(value, node.at, report)):
            report.add(code, node.at, f"unknown {label} {quote(value)}{suggestion(value, list(known))}")
        return None

    return decode


def choice(name: str, kind: type[StrEnum], *, code: str = "V102") -> Decoder:
    """One of the values of an enumeration."""
    return word(name, name, tuple(kind), code=code)


def flag(name: str) -> Decoder:
    """`true` or `false`."""
    decode_term = word(name, f"value of {name}", ("true", "false"))

    def decode(node: Node, report: Report) -> bool | None:
        term = decode_term(node, report)
        return None if term is None else term == "true"

    return decode


def text_list(name: str) -> Decoder:
    """A list of different texts, at least one."""

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        items = texts_of(name, node, report)
        return None if items is None else distinct(name, node, items, report)

    return decode


def record(schema: Schema, build: Callable[..., Any]) -> Decoder:
    """A mapping that is decoded by its own schema and handed to `build` if nothing is wrong with it."""

    def decode(node: Node, report: Report) -> Any:
        return decode_value(node, schema, build, report)

    return decode


def record_list(name: str, schema: Schema, build: Callable[..., Any]) -> Decoder:
    """A list of mappings, each decoded by its own schema and handed to `build` if nothing is wrong with it."""

    def decode(node: Node, report: Report) -> tuple[Any, ...] | None:
        if type(node) is not Sequence:
            refuse_no_list(name, node, report)
            return None
        built = []
        for item in node.items:
            outer = report.record
            value = decode_value(item, schema, build, report)
            report.record = outer
            if value is not None:
                built.append(value)
        return tuple(built)

    return decode


def by_name(name: str, value: Decoder) -> Decoder:
    """A mapping from names to values, at least one."""

    def decode(node: Node, report: Report) -> dict[str, Any] | None:
        if type(node) is not Mapping or not node.entries:
            report.add("F103", node.at, f"{quote(name)} must be a mapping such as {{one: ..., two: ...}}")
            return None
        values = {}
        for key, (key_at, item) in node.entries.items():
            sound = checked_text(f"a name in {name}", Scalar(key, key_at), report) is not None
            values[key] = value(item, report) if sound else None
        return None if None in values.values() else values

    return decode


def records_of(name: str, kind: Any, noun: str, title_field: str = "", /, **own: Decoder | None) -> Decoder:
    """A list of mappings that become values of a named tuple; arguments as for `schema_of`."""
    return record_list(name, schema_of(kind, noun, title_field, **own), kind)


_BY_ANNOTATION: dict[object, Callable[[str], Decoder]] = {str: text, bool: flag, tuple[str, ...]: text_list}


def schema_of(kind: Any, noun: str, title_field: str = "", /, **own: Decoder | None) -> Schema:
    """Return the schema of the mappings that become values of a named tuple.

    Its annotations say what a field holds: a text, several texts, a flag, or a member of an enumeration. A field
    without a default is required.

    Args:
        kind: The class.
        noun: What messages call such a mapping.
        title_field: The field that they call it by.
        own: The decoders of fields that hold something else; None for an attribute that is no field.
    """
    decoders: dict[str, Decoder] = {}
    for name, held in kind.__annotations__.items():
        if name not in own:
            held = held.__args__[0] if isinstance(held, UnionType) else held
            is_choice = isinstance(held, type) and issubclass(held, StrEnum)
            decoders[name] = choice(name, held) if is_choice else _BY_ANNOTATION[held](name)
        elif (decoder := own[name]) is not None:
            decoders[name] = decoder
    decoders |= {name: decoder for name, decoder in own.items() if decoder is not None}
    return Schema(noun, title_field, decoders, tuple(name for name in kind._fields if name not in kind._field_defaults))


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


def texts_of(name: str, node: Node, report: Report) -> tuple[str, ...] | None:
    """Return the texts of a list of at least one; None, reported, if the node is none."""
    if type(node) is not Sequence:
        refuse_no_list(name, node, report)
        return None
    if not node.items:
        report.add("F104", node.at, f"{quote(name)} is an empty list; name at least one")
    label = f"an item of {name}"
    values = [value for item in node.items if (value := checked_text(label, item, report)) is not None]
    return tuple(values) if values and len(values) == len(node.items) else None


def distinct(name: str, node: Node, items: tuple[str, ...], report: Report) -> tuple[str, ...] | None:
    """The items; None, reported, if one is there twice."""
    if len(set(items)) == len(items):
        return items
    for index, item in enumerate(items):
        if item in items[:index]:
            report.add("F108", place_of(node, index), f"{printable(name)} names {quote(item)} twice; remove one")
    return None


def place_of(node: Node, index: int) -> int:
    """Return the place of an item of a list."""
    return node.items[index].at if type(node) is Sequence else node.at


def nodes_of(mapping: Node | None, name: str) -> list[Node]:
    """Return the items of a list of that name; nothing where there is none."""
    value = mapping.entries.get(name, (0, None))[1] if type(mapping) is Mapping else None
    return value.items if type(value) is Sequence else []


def items_of(mapping: Node | None, name: str) -> list[Mapping]:
    """Return the mappings in a list of that name."""
    return [item for item in nodes_of(mapping, name) if type(item) is Mapping]


def entries_of(mapping: Mapping, name: str) -> MappingType[str, tuple[int, Node]]:
    """Return the entries of a mapping of that name."""
    value = mapping.entries.get(name, (0, None))[1]
    return value.entries if type(value) is Mapping else {}


def text_of(mapping: Node | None, name: str) -> str:
    """Return the text of that name; empty where there is none."""
    value = mapping.entries.get(name, (0, None))[1] if type(mapping) is Mapping else None
    return value.text if type(value) is Scalar else ""
