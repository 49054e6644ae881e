"""Decoders by the kind of a field, of web addresses, and of tags: a term, several, or terms with levels."""

import re
from collections.abc import Callable
from collections.abc import Mapping as MappingType
from enum import StrEnum
from types import MappingProxyType, UnionType
from typing import Any

from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.identifiers import IdentifierKind
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, number_of
from orchtrace_corpus.corpus.model.fields import (
    NOT_APPLICABLE,
    Decoder,
    Report,
    Schema,
    authors,
    checked_text,
    distinct,
    formed,
    identifier,
    iso_date,
    key,
    kind_of,
    parsed,
    refuse_no_list,
    text,
    text_list,
    year,
)

Codes = MappingType[str, tuple[str, ...]]
"""The terms that share a code, by the code without regard to case."""


def terms(
    name: str,
    label: str,
    allowed: tuple[str, ...],
    *,
    allows_na: bool = False,
    code: str = "V102",
    codes: Codes = MappingProxyType({}),
) -> Decoder:
    """One term of a vocabulary. The result is the vocabulary's own string, so that equal terms are one object."""
    known = {term: term for term in allowed}
    if allows_na:
        known[NOT_APPLICABLE] = NOT_APPLICABLE

    def decode(node: Node, report: Report) -> str | None:
        if type(node) is Scalar and node.text in known:
            return known[node.text]
        value = checked_text(name, node, report)
        if value is None:
            return None
        if value == NOT_APPLICABLE:
            report.add("V104", node.at, f"{quote(value)} is not allowed for {name}{suggestion('', allowed)}")
        elif named := codes.get(value.casefold()):
            _refuse_code(name, value, named, node.at, report)
        else:
            report.add(code, node.at, f"unknown {label} {quote(value)}{suggestion(value, list(known))}")
        return None

    return decode


def _refuse_code(
    name: str, value: str, named: tuple[str, ...], at: int, report: Report, *, is_given: bool = False
) -> None:
    """Report a code in the place of a term; `is_given` says that the term stands beside it."""
    if len(named) > 1:
        message = f"{quote(value)} is the code of {len(named)} terms of {name}, {' and '.join(named)}; name one of them"
        report.add("V106", at, message)
    elif is_given:
        report.add("V106", at, f"{quote(value)} is the code of {quote(named[0])}, which is given, too; remove one")
    else:
        report.add(
            "V105", at, f"{quote(value)} is the code of {quote(named[0])}; name the term, or run: corpus check --fix"
        )


def choice(name: str, kind: type[StrEnum], *, code: str = "V102") -> Decoder:
    """One of the values of an enumeration."""
    return terms(name, name, tuple(kind), code=code)


def flag(name: str) -> Decoder:
    """`true` or `false`."""
    decode_term = terms(name, f"value of {name}", ("true", "false"))

    def decode(node: Node, report: Report) -> bool | None:
        term = decode_term(node, report)
        return None if term is None else term == "true"

    return decode


def term_list(
    name: str,
    label: str,
    allowed: tuple[str, ...],
    *,
    allows_na: bool = False,
    code: str = "V102",
    codes: Codes = MappingProxyType({}),
) -> Decoder:
    """A list of different terms of a vocabulary; NA only by itself."""
    decode_term = terms(name, label, allowed, allows_na=allows_na, code=code, codes=codes)

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        if type(node) is Scalar and node.text == NOT_APPLICABLE:  # NA may stand bare, as in a field of one term
            value = decode_term(node, report)
            return None if value is None else (value,)
        if type(node) is not Sequence:
            refuse_no_list(name, node, report)
            return None
        if not node.items:
            report.add("F104", node.at, f"{quote(name)} is an empty list; name at least one term, or remove the field")
            return None
        items = [decode_term(item, report) for item in node.items]
        if NOT_APPLICABLE in items and len(items) > 1:
            at = node.items[items.index(NOT_APPLICABLE)].at
            report.add("V104", at, f"{quote(NOT_APPLICABLE)} in {name} must stand alone; remove it or the other terms")
            return None
        return None if None in items else distinct(name, node, tuple(items), report)

    return decode


def levels(
    name: str, label: str, allowed: tuple[str, ...], level_ids: tuple[str, ...], *, codes: Codes = MappingProxyType({})
) -> Decoder:
    """A mapping from terms to levels; an empty one says that no term applies."""
    level = terms(name, f"level of {name}", level_ids, code="V103")
    known = {term: term for term in allowed}

    def decode(node: Node, report: Report) -> dict[str, str] | None:
        if type(node) is not Mapping:
            form = f"such as {{{allowed[0]}: {level_ids[0]}}}, or {{}} where none applies"
            report.add("F103", node.at, f"{quote(name)} must be a mapping {form}, not {kind_of(node)}")
            return None
        values = {}
        for term, (key_at, value) in node.entries.items():
            if term not in known and (named := codes.get(term.casefold())):
                _refuse_code(name, term, named, key_at, report, is_given=named[0] in node.entries)
            elif term not in known and term.partition(":")[0] in known:
                report.add("V102", key_at, f"{quote(term)} lacks a blank after its colon")
                continue
            elif term not in known:
                report.add("V102", key_at, f"unknown {label} {quote(term)}{suggestion(term, allowed)}")
            values[known.get(term, term)] = level(value, report)
        return None if None in values.values() or not values.keys() <= known.keys() else values

    return decode


_IDENTIFIERS = {kind.value: kind for kind in IdentifierKind}
_OWN_FIELDS = frozenset("title author year keywords annotation".split())


def kept_entry(name: str) -> Decoder:
    """The fields of a BibTeX entry that the record has no place for, by name, as LaTeX; its `type` among them."""

    def decode(node: Node, report: Report) -> dict[str, str] | None:
        if type(node) is not Mapping:
            message = f"{quote(name)} must be a mapping such as {{type: article, volume: 4}}, not {kind_of(node)}"
            report.add("F103", node.at, message)
            return None
        if not node.entries:
            report.add("F104", node.at, f"{quote(name)} is empty; name at least one field of the entry, or remove it")
        values: dict[str, str] = {}
        for field, (key_at, value) in node.entries.items():
            latex = checked_text(f"{name}.{field}", value, report)
            if latex is not None and (problem := entry_field_problem(field, latex)):
                report.add("F121", value.at if is_entry_field(field) else key_at, f"{quote(field)} {problem}")
            elif latex is not None:
                values[field] = latex
        return values if values and len(values) == len(node.entries) else None

    return decode


def is_entry_field(name: str) -> bool:
    """Return True if a field of an entry can be kept under this name."""
    return name not in _OWN_FIELDS and re.fullmatch(r"[a-z][a-z0-9_.:+-]*", name) is not None


def entry_field_problem(name: str, latex: str) -> str:
    """Return the problem that keeps a field from being one of a BibTeX entry; empty without one."""
    if name in _OWN_FIELDS:
        return "is said by the record itself; remove it here"
    if not is_entry_field(name):
        return "is not a BibTeX field; write its name in lower-case letters, digits and hyphens"
    if name == "type" and not (latex.isascii() and latex.isalpha() and latex.islower()):
        return f"must be the type of an entry, such as article, not {quote(latex)}"
    depth = 0
    for mark in re.findall(r"\\.|[{}\\]", latex):
        depth += {"{": 1, "}": -1}.get(mark, 0)
        if depth < 0 or mark == "\\":  # at the end, it would act on the brace that closes the field
            break
    else:
        if depth == 0:
            return ""
    return f"holds a brace or backslash without its partner: {quote(latex)}; close it, or remove it"


def number(name: str) -> Decoder:
    """A number in decimal digits."""

    def parse(value: str) -> int | float:
        try:
            return number_of(value)
        except ValueError as error:
            raise ValueError(f"{quote(value)} {error}") from None

    return parsed(name, "F105", parse)


def token(name: str) -> Decoder:
    """An identifier of a registry that we do not know: one word."""
    return formed(name, "F111", lambda value: " " not in value, "an identifier: leave out blanks")


def url(name: str) -> Decoder:
    """A web address."""

    def parse(value: str) -> str:
        problem = url_problem(value)
        if problem:
            raise ValueError(f"{quote(value)} {problem}")
        return value

    return parsed(name, "F114", parse)


def url_list(name: str) -> Decoder:
    """A list of different web addresses, at least one."""
    texts, decode_url = text_list(name), url(name)

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        values = texts(node, report)
        if values is None or type(node) is not Sequence:
            return None
        return None if None in [decode_url(item, report) for item in node.items] else values

    return decode


_BY_KIND: dict[FieldKind, Callable[[str], Decoder]] = {
    FieldKind.TEXT: text,
    FieldKind.TEXTS: text_list,
    FieldKind.AUTHORS: authors,
    FieldKind.YEAR: year,
    FieldKind.DATE: iso_date,
    FieldKind.NUMBER: number,
    FieldKind.FLAG: flag,
    FieldKind.URL: url,
    FieldKind.URLS: url_list,
    FieldKind.IDENTIFIER: token,
    FieldKind.KEY: key,
}


def field_decoder(field: RecordField) -> Decoder:
    """Return the decoder of a field by its kind; fields of the kind `parts` have their own."""
    if field.kind is FieldKind.CHOICE:
        return terms(field.name, field.name, field.choices)
    if field.name in _IDENTIFIERS:
        return identifier(_IDENTIFIERS[field.name])
    return _BY_KIND[field.kind](field.name)


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


def url_problem(value: str) -> str:
    """Return the problem that keeps a text from being a public web address; empty without one."""
    if re.fullmatch(r"https?://\w[^ <>\"`{}|\\^/?#@]*(?:[/?#][^ <>\"`{}|\\^]*)?", value):
        return ""
    scheme, separator, rest = value.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if not separator or scheme.lower() not in ("http", "https"):
        return "is not a web address; begin it with https://"
    odd = next((c for c in value if c in ' <>"`{}|\\^'), "")
    if odd:
        shown = "a blank" if odd == " " else quote(odd)
        return f"holds {shown}, which no web address can; write %{ord(odd):02X}, or remove it"
    if "@" in host:
        return "gives a user name or password; leave out what stands before the @"
    return "" if host.strip(".:") else "names no host; write https://host/path"
