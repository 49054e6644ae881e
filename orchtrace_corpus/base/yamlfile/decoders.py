"""Decoders: functions that turn YAML nodes into Python values and report problems.

A `Decoder` takes a node and a report. It returns the value, or None after it has reported what is wrong. All problems
of a record are reported, not only the first. Functions such as `text` and `word` return the decoder of a field.
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

_JOINERS = "\u200c\u200d"  # invisible, but needed in words of some scripts
_DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class Report:
    """Collects the problems of one file; `record` is the key of the record that is being decoded, or empty."""

    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.record = ""

    def add(self, code: str, at: int, message: str) -> None:
        """Report a problem at an index of the file's text, unless the value there was refused when it was read."""
        if at not in self.file.refused:
            self.file.refuse(code, at, message, self.record)


Decoder: TypeAlias = Callable[[Node, Report], Any]


class Schema(NamedTuple):
    """The fields of a kind of record.

    Attributes:
        noun: The noun for such a record in messages, with its article.
        title_field: The field whose text names a record in messages; empty if there is none.
        decoders: The decoder of each field.
        required: The fields that a record must have.
        omitted: Fields that a record cannot have here, each with the message that says why.
        fix_hints: By field, the end of the message that the field is missing; `{record}` stands for the record's name.
    """

    noun: str
    title_field: str
    decoders: MappingType[str, Decoder]
    required: tuple[str, ...]
    omitted: MappingType[str, str] = MappingProxyType({})
    fix_hints: MappingType[str, str] = MappingProxyType({})


def decode_record(node: Node, schema: Schema, report: Report) -> dict[str, Any] | None:
    """Return the values of a record by field; None for a field with a problem.

    If the node is no mapping, that is reported and the result is None.
    """
    if type(node) is not Mapping:
        report.add("F103", node.at, f"{schema.noun} must be a mapping of fields, not {kind_of(node)}")
        return None
    entries = node.entries
    if schema.title_field and schema.title_field in entries:
        _, title = entries[schema.title_field]
        if type(title) is Scalar:
            report.record = title.text
    decoders = schema.decoders
    values: dict[str, Any] = {}
    misspelt: list[str] = []  # the names of fields that were probably meant
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
    is_cut_off = node.at == report.file.cut_off  # the missing fields may be after the syntax error
    for name in schema.required:
        if name not in entries and not is_cut_off:
            message = f"missing field {quote(name)}"
            if name in schema.fix_hints and report.record and name not in misspelt:
                message += schema.fix_hints[name].format(record=printable(report.record))
            report.add("F101", node.at, message)
    return values


def decode_value(node: Node, schema: Schema, build: Callable[..., Any], report: Report) -> Any:
    """Return the result of `build` for the fields of a mapping; None if a field is wrong or missing."""
    values = decode_record(node, schema, report)
    if values is None or None in values.values():
        return None
    for name in schema.required:
        if name not in values:
            return None
    return build(**values)


def text(name: str) -> Decoder:
    """Return the decoder of a field with one line of text."""
    return partial(checked_text, name)


def parsed(name: str, code: str, parse: Callable[[str], Any]) -> Decoder:
    """Return the decoder of a field whose text `parse` turns into a value.

    If `parse` raises a `ValueError`, its message is reported under the code.
    """

    def decode(node: Node, report: Report) -> Any:
        value = checked_text(name, node, report)
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            report.add(code, node.at, str(error))
            return None

    return decode


def valid_text(name: str, code: str, is_valid: Callable[[str], bool], description: str) -> Decoder:
    """Return the decoder of a field whose text has a form: `is_valid` tests it, and messages describe it."""

    def parse(value: str) -> str:
        if is_valid(value):
            return value
        raise ValueError(f"{quote(value)} is not {description}")

    return parsed(name, code, parse)


def iso_date(name: str) -> Decoder:
    """Return the decoder of a day as `YYYY-MM-DD`. Its value is the text, because texts of days sort by time."""

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
    """Return the decoder of a field whose text is one of some words.

    Its value is the object in `allowed`, so that equal words are one object and take less memory.

    Args:
        name: The name of the field.
        label: The noun for such a word in messages.
        allowed: The words.
        code: The code for the report of another word.
        refuse: Called with another word, its index and the report. It returns True if it has reported why the word is
            not allowed, and False for the usual report.
    """
    allowed_words = {term: term for term in allowed}

    def decode(node: Node, report: Report) -> str | None:
        if type(node) is Scalar and node.text in allowed_words:
            return allowed_words[node.text]
        value = checked_text(name, node, report)
        if value is None:
            return None
        if value == NOT_APPLICABLE:
            hint = suggestion("", list(allowed_words))  # only the list: no word is similar
            report.add("V104", node.at, f"{quote(value)} is not allowed for {name}{hint}")
        elif refuse is None or not refuse(value, node.at, report):
            report.add(code, node.at, f"unknown {label} {quote(value)}{suggestion(value, list(allowed_words))}")
        return None

    return decode


def choice(name: str, kind: type[StrEnum], *, code: str = "V102") -> Decoder:
    """Return the decoder of a field whose text is a value of an enumeration."""
    return word(name, name, tuple(kind), code=code)


def flag(name: str) -> Decoder:
    """Return the decoder of a field that is `true` or `false`."""
    decode_word = word(name, f"value of {name}", ("true", "false"))

    def decode(node: Node, report: Report) -> bool | None:
        value = decode_word(node, report)
        return None if value is None else value == "true"

    return decode


def text_list(name: str) -> Decoder:
    """Return the decoder of a list of different texts, at least one."""

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        items = texts_of(name, node, report)
        return None if items is None else distinct(name, node, items, report)

    return decode


def record(schema: Schema, build: Callable[..., Any]) -> Decoder:
    """Return the decoder of a mapping with its own schema: the result of `build` if nothing is wrong with it."""

    def decode(node: Node, report: Report) -> Any:
        return decode_value(node, schema, build, report)

    return decode


def record_list(name: str, schema: Schema, build: Callable[..., Any]) -> Decoder:
    """Return the decoder of a list of mappings with a schema.

    The value has the result of `build` for each mapping without problems; the other mappings are left out.
    """

    def decode(node: Node, report: Report) -> tuple[Any, ...] | None:
        if type(node) is not Sequence:
            refuse_no_list(name, node, report)
            return None
        values = []
        for item in node.items:
            outer_record = report.record  # `decode_value` may set that of the item
            value = decode_value(item, schema, build, report)
            report.record = outer_record
            if value is not None:
                values.append(value)
        return tuple(values)

    return decode


def by_name(name: str, decode_item: Decoder) -> Decoder:
    """Return the decoder of a mapping from names to values, at least one."""

    def decode(node: Node, report: Report) -> dict[str, Any] | None:
        if type(node) is not Mapping or not node.entries:
            report.add("F103", node.at, f"{quote(name)} must be a mapping such as {{one: ..., two: ...}}")
            return None
        values: dict[str, Any] = {}
        for key, (key_at, item) in node.entries.items():
            is_valid_name = checked_text(f"a name in {name}", Scalar(key, key_at), report) is not None
            values[key] = decode_item(item, report) if is_valid_name else None
        return None if None in values.values() else values

    return decode


def records_of(name: str, kind: Any, noun: str, title_field: str = "", /, **own: Decoder | None) -> Decoder:
    """Return the decoder of a list of mappings in the field `name`; the other arguments are those of `schema_of`."""
    return record_list(name, schema_of(kind, noun, title_field, **own), kind)


_DECODERS_BY_TYPE: dict[object, Callable[[str], Decoder]] = {str: text, bool: flag, tuple[str, ...]: text_list}


def schema_of(kind: Any, noun: str, title_field: str = "", /, **own: Decoder | None) -> Schema:
    """Return the schema of the mappings that become values of a named tuple.

    The annotation of a field gives its decoder: for a text, several texts, a flag, or a value of an enumeration. A
    field without a default is required.

    Args:
        kind: The class of the named tuple.
        noun: The noun for such a mapping in messages, with its article.
        title_field: The field whose text names such a mapping in messages; empty if there is none.
        own: The decoders of fields with other values; None for an attribute that is no field in the file.
    """
    decoders: dict[str, Decoder] = {}
    for name, annotation in kind.__annotations__.items():
        if name in own:
            decoder = own[name]
            if decoder is not None:
                decoders[name] = decoder
            continue
        if isinstance(annotation, UnionType):  # such as `str | None`
            annotation = annotation.__args__[0]
        if isinstance(annotation, type) and issubclass(annotation, StrEnum):
            decoders[name] = choice(name, annotation)
        else:
            decoders[name] = _DECODERS_BY_TYPE[annotation](name)
    # Some fields of the file are no attributes of the class.
    decoders |= {name: decoder for name, decoder in own.items() if decoder is not None}
    required = tuple(name for name in kind._fields if name not in kind._field_defaults)
    return Schema(noun, title_field, decoders, required)


def kind_of(node: Node) -> str:
    """Return the kind of a node, in words for messages."""
    if type(node) is Scalar:
        return "text" if node.text else "nothing"
    return "a list" if type(node) is Sequence else "a mapping"


def refuse_no_list(name: str, node: Node, report: Report) -> None:
    """Report that the value of a field should be a list."""
    report.add("F103", node.at, f"{quote(name)} must be a list such as [one, two], not {kind_of(node)}")


def checked_text(name: str, node: Node, report: Report) -> str | None:
    """Return the text of a node, one line of visible text; report any other node, and return None for it."""
    value = node.text if type(node) is Scalar else ""
    is_printable = report.file.is_simple or value.isprintable()  # a simple file has only printable texts
    if value and is_printable and value[0] != " " and value[-1] != " ":  # nearly all
        return value
    if type(node) is not Scalar:
        report.add("F103", node.at, f"{quote(name)} must be text, not {kind_of(node)}")
    elif not value or value.isspace():
        report.add("F104", node.at, f"{quote(name)} is empty; write a value, or remove the field if it is optional")
    elif value != value.strip(" "):
        report.add("M101", node.at, f"{quote(name)} begins or ends with a blank; remove it: {quote(value)}")
    elif not value.isprintable() and (problem := _invisible_character(value)):
        code, description = problem
        report.add(code, node.at, f"{quote(name)} holds {description}; write one line of visible text: {quote(value)}")
    else:
        return value
    return None


def _invisible_character(value: str) -> tuple[str, str] | None:
    """Return the code and the description of the first invisible character that is not allowed; None if there is none.

    A character that this version of Unicode does not know is allowed: it may be a newer letter.
    """
    is_only_joiners = not value.strip(_JOINERS)
    allowed = "" if is_only_joiners else _JOINERS
    for character in value:
        if not character.isprintable() and unicodedata.category(character) != "Cn" and character not in allowed:
            if character in _DIRECTION_MARKS:
                return "M102", f"U+{ord(character):04X}, which turns the direction of writing"
            return "M101", "a line break" if character == "\n" else f"the invisible character U+{ord(character):04X}"
    return None


def texts_of(name: str, node: Node, report: Report) -> tuple[str, ...] | None:
    """Return the texts of a list, at least one; report any other node, and return None for it."""
    if type(node) is not Sequence:
        refuse_no_list(name, node, report)
        return None
    if not node.items:
        report.add("F104", node.at, f"{quote(name)} is an empty list; name at least one")
        return None
    values: list[str] = []
    for item in node.items:
        value = checked_text(f"an item of {name}", item, report)
        if value is not None:
            values.append(value)
    return tuple(values) if len(values) == len(node.items) else None


def distinct(name: str, node: Node, items: tuple[str, ...], report: Report) -> tuple[str, ...] | None:
    """Return the items of a list if all are different; else report those that are there twice, and return None."""
    if len(set(items)) == len(items):
        return items
    for index, item in enumerate(items):
        if item in items[:index]:
            report.add("F108", place_of(node, index), f"{printable(name)} names {quote(item)} twice; remove one")
    return None


def place_of(node: Node, index: int) -> int:
    """Return the index in the file's text of an item of a list; of the node itself if it is no list."""
    return node.items[index].at if type(node) is Sequence else node.at


def _field(mapping: Node | None, name: str) -> Node | None:
    """Return the value of a field; None if the node has no such field, or is no mapping."""
    if type(mapping) is not Mapping:
        return None
    _, value = mapping.entries.get(name, (0, None))
    return value


def nodes_of(mapping: Node | None, name: str) -> list[Node]:
    """Return the items of the list in a field; empty if there is no such list."""
    value = _field(mapping, name)
    return value.items if type(value) is Sequence else []


def items_of(mapping: Node | None, name: str) -> list[Mapping]:
    """Return the mappings in the list in a field."""
    return [item for item in nodes_of(mapping, name) if type(item) is Mapping]


def entries_of(mapping: Mapping, name: str) -> MappingType[str, tuple[int, Node]]:
    """Return the entries of the mapping in a field; empty if there is no such mapping."""
    value = _field(mapping, name)
    return value.entries if type(value) is Mapping else {}


def text_of(mapping: Node | None, name: str) -> str:
    """Return the text in a field; empty if there is no such text."""
    value = _field(mapping, name)
    return value.text if type(value) is Scalar else ""


def value_at(mapping: Mapping, name: str) -> int:
    """Return the index in the file's text of the value of a field that the mapping has."""
    return mapping.entries[name][1].at
