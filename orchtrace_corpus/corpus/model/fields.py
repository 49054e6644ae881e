"""Decoders of the fields of records: keys, identifiers, years, authors, URLs, and tags."""

import re
from collections.abc import Callable
from collections.abc import Mapping as MappingType
from functools import lru_cache, partial
from types import MappingProxyType

from orchtrace_corpus.base.findings import RULES, Severity, quote, suggestion
from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal, recognise
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE, Decoder, Report, checked_text, parsed, valid_text
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, number_of

OTHERS = "others"
"""The last item of a shortened list of authors, as in BibTeX."""

TO_BE_WRITTEN = "To be written."
"""The placeholder of a missing summary, which a rule reports."""

ACTIVE_ELEMENTS = (
    "script|style|iframe|object|embed|img|svg|link|meta|base|textarea|title|plaintext|xmp|noscript|template|form"
)
"""Elements of HTML that act in a browser even if their tag has no `>`, as a pattern."""

PLAIN_ELEMENTS = (
    "a|b|i|u|s|em|strong|sub|sup|br|hr|p|div|span|pre|code|small|big|font|center|table|tr|td|th|ul|ol|li|dl|dt|dd|"
    "h[1-6]|details|summary|video|audio|input|button|select|body|html|head|blockquote"
)
"""Elements of HTML whose tag needs its `>`, as a pattern. Other tags, such as <think> of reasoning models, are text."""

_EXAMPLES = {
    IdentifierKind.ARXIV: "2505.19591",
    IdentifierKind.DOI: "10.1609/aaai.v32i1.11794",
    IdentifierKind.OPENREVIEW: "ur295YVtmt",
    IdentifierKind.ACL: "2025.acl-long.421",
}

_WRITTEN_FIELDS = frozenset("title author year keywords annotation".split())
"""The fields of a BibTeX entry that are always written from the fields of the record."""

Codes = MappingType[str, tuple[str, ...]]
"""The ids of the terms of each code, by the code in lower case (`Facet.codes`)."""


def key(name: str) -> Decoder:
    """Return the decoder of a record's key."""
    return valid_text(name, "F107", is_key, "a key: use lower-case letters, digits and single hyphens")


def is_cite_key(value: str) -> bool:
    """Return True if BibTeX accepts the text as the key of an entry, even one such as `a#b` that LaTeX cannot cite."""
    return value.isprintable() and re.fullmatch(r"[^\s,{}=\"]+", value) is not None


def is_key(value: str) -> bool:
    """Return True if the text has only ASCII lower-case letters and digits, with single hyphens between them."""
    return value.isascii() and value == value.lower() and all(part.isalnum() for part in value.split("-"))


def _is_exclusion_id(value: str) -> bool:
    return re.fullmatch(r"E\d{3,}", value, re.ASCII) is not None


def field_name(name: str) -> Decoder:
    """Return the decoder of the name of a field, which filters and columns use, too."""

    def is_name(value: str) -> bool:
        return value.isascii() and value == value.lower() and value.isidentifier() and value[0] != "_"

    form = f"a {name} name: use lower-case letters, digits and underscores, a letter first"
    return valid_text(name, "F107", is_name, form)


def _parse_identifier(kind: IdentifierKind, value: str) -> str:
    if is_normal(kind, value):
        return value
    recognised = recognise(value)
    hint = f"; write {recognised.kind}: {recognised.value}" if recognised else f", such as {_EXAMPLES[kind]}"
    raise ValueError(f"{kind} {quote(value)} is not in its plain form{hint}")


def _parse_year(value: str) -> int:
    if len(value) == 4 and value.isascii() and value.isdigit() and value[0] != "0":
        return int(value)
    raise ValueError(f"{quote(value)} is not a year: write four digits")


def _parse_number(value: str) -> int | float:
    try:
        return number_of(value)
    except ValueError as error:
        raise ValueError(f"{quote(value)} {error}") from None


def _parse_url(value: str) -> str:
    problem = url_problem(value)
    if problem:
        raise ValueError(f"{quote(value)} {problem}")
    return value


number = partial(parsed, code="F105", parse=_parse_number)
"""`number("page_above")` returns the decoder of a field that holds a number in decimal digits."""

url = partial(parsed, code="F114", parse=_parse_url)
"""`url("code")` returns the decoder of a field that holds a URL."""


def natural(name: str, code: str, problem: str) -> Decoder:
    """Return the decoder of an integer of at most nine digits; `problem` is the error, with `{}` for the text."""

    def parse(value: str) -> int:
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
        raise ValueError(problem.format(quote(value)))

    return parsed(name, code, parse)


def waived_code(name: str) -> Decoder:
    """Return the decoder of the code of a rule whose findings a record can waive."""
    waivable = [code for code, rule in RULES.items() if rule.waivable]

    def parse(value: str) -> str:
        if value in waivable:
            return value
        if value in RULES and RULES[value].severity is Severity.ERROR:
            raise ValueError(f"{value} is an error, and only warnings can be waived; correct the record")
        if value in RULES:
            raise ValueError(f"{value} is not about the content of a record, so no record can waive it")
        raise ValueError(f"unknown code {quote(value)}{suggestion(value, waivable)}")

    return parsed(name, "F113", parse)


def authors(name: str) -> Decoder:
    """Return the decoder of authors in BibTeX form: `Family, Given`, a collective in braces, `others` at the end."""

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        items = decoders.texts_of(name, node, report)
        if items is None:
            return None
        problems = [_author_problem(item) for item in items]
        if OTHERS in items[:-1]:
            index = items.index(OTHERS)
            problems = [""] * index  # this problem is reported before others
            problems.append(f"must end the list of {name}: it stands for the names left out")
        for index, problem in enumerate(problems):
            if problem:
                report.add("F109", decoders.place_of(node, index), f"{quote(items[index])} {problem}")
                return None
        if items == (OTHERS,):
            report.add("F109", node.at, f"{quote(OTHERS)} alone names nobody; name at least the first of the {name}")
            return None
        return items

    return decode


def is_collective(author: str) -> bool:
    """Return True if an author is a collective, such as a team: its name is in braces."""
    return len(author) > 2 and author[0] == "{" and author[-1] == "}" and set(author[1:-1]).isdisjoint("{}")


def bare_author(author: str) -> str:
    """Return an author without the braces that mark a collective."""
    return author[1:-1] if is_collective(author) else author


def _author_problem(item: str) -> str:
    """Return the error about an item of a list of authors; empty if there is none."""
    if item.startswith(",") or item.endswith(","):
        return "lacks a part of the name: write Family, Given"
    if item != OTHERS and item.lower().strip(". ") in ("et al", "others", "and others"):
        return f"is not a name; write {OTHERS} for the names left out"
    if " and " in item and "," in item and not is_collective(item):
        return "names several people: give each an item of its own"
    return ""


def terms(
    name: str,
    label: str,
    allowed: tuple[str, ...],
    *,
    allows_na: bool = False,
    code: str = "V102",
    codes: Codes = MappingProxyType({}),
) -> Decoder:
    """Return the decoder of one term of a vocabulary.

    `label` is the word for such a term in errors, and `code` the code of the error about an unknown term. `codes` has
    terms by their own codes, such as R1: the error about such a code names its terms.
    """
    allowed_terms = (*allowed, NOT_APPLICABLE) if allows_na else allowed

    def refuse(value: str, at: int, report: Report) -> bool:
        term_ids = codes.get(value.casefold())
        if not term_ids:
            return False
        _refuse_code(name, value, term_ids, at, report)
        return True

    return decoders.word(name, label, allowed_terms, code=code, refuse=refuse)


def _refuse_code(
    name: str, code: str, term_ids: tuple[str, ...], at: int, report: Report, *, is_given: bool = False
) -> None:
    """Report a code that was written instead of a term; `is_given` is True if its term is written, too."""
    subject = f"{quote(code)} is the code of"
    if len(term_ids) > 1:
        message = f"{subject} {len(term_ids)} terms of {name}, {' and '.join(term_ids)}; name one of them"
        report.add("V106", at, message)
    elif is_given:
        report.add("V106", at, f"{subject} {quote(term_ids[0])}, which is given, too; remove one")
    else:
        report.add("V105", at, f"{subject} {quote(term_ids[0])}; name the term, or run: corpus check --fix")


def yes(name: str) -> Decoder:
    """Return the decoder of a field that is `yes` or absent."""
    decode_term = terms(name, f"value of {name}", ("yes",))

    def decode(node: Node, report: Report) -> bool | None:
        return True if decode_term(node, report) else None

    return decode


def term_list(name: str, decode_term: Decoder) -> Decoder:
    """Return the decoder of a list of different terms of a vocabulary, or NA alone."""

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        if type(node) is Scalar and node.text == NOT_APPLICABLE:  # NA needs no brackets
            value = decode_term(node, report)
            return None if value is None else (value,)
        if type(node) is not Sequence:
            decoders.refuse_no_list(name, node, report)
            return None
        if not node.items:
            report.add("F104", node.at, f"{quote(name)} is an empty list; name at least one term, or remove the field")
            return None
        decoded_terms = [decode_term(item, report) for item in node.items]
        if NOT_APPLICABLE in decoded_terms and len(decoded_terms) > 1:
            at = node.items[decoded_terms.index(NOT_APPLICABLE)].at
            report.add("V104", at, f"{quote(NOT_APPLICABLE)} in {name} must stand alone; remove it or the other terms")
            return None
        return None if None in decoded_terms else decoders.distinct(name, node, tuple(decoded_terms), report)

    return decode


def levels(
    name: str, label: str, allowed: tuple[str, ...], level_ids: tuple[str, ...], *, codes: Codes = MappingProxyType({})
) -> Decoder:
    """Return the decoder of a mapping from terms to levels, empty if no term applies; arguments as for `terms`."""
    decode_level = terms(name, f"level of {name}", level_ids, code="V103")
    shared_ids = {term: term for term in allowed}  # equal terms of all records become one string

    def decode(node: Node, report: Report) -> dict[str, str] | None:
        if type(node) is not Mapping:
            form = f"such as {{{allowed[0]}: {level_ids[0]}}}, or {{}} where none applies"
            report.add("F103", node.at, f"{quote(name)} must be a mapping {form}, not {decoders.kind_of(node)}")
            return None
        levels_by_term: dict[str, str] = {}
        for term, (key_at, value) in node.entries.items():
            if term not in shared_ids:
                term_ids = codes.get(term.casefold())
                if term_ids:
                    _refuse_code(name, term, term_ids, key_at, report, is_given=term_ids[0] in node.entries)
                elif term.partition(":")[0] in shared_ids:
                    report.add("V102", key_at, f"{quote(term)} lacks a blank after its colon")
                    continue  # YAML read the level as part of the term: do not report that it is missing, too
                else:
                    report.add("V102", key_at, f"unknown {label} {quote(term)}{suggestion(term, allowed)}")
            levels_by_term[shared_ids.get(term, term)] = decode_level(value, report)
        if None in levels_by_term.values() or not levels_by_term.keys() <= shared_ids.keys():
            return None
        return levels_by_term

    return decode


def bibtex_entry(name: str) -> Decoder:
    """Return the decoder of the type of a BibTeX entry, and its fields without a counterpart in the record."""

    def decode(node: Node, report: Report) -> dict[str, str] | None:
        if type(node) is not Mapping:
            form = "such as {type: article, volume: 4}"
            report.add("F103", node.at, f"{quote(name)} must be a mapping {form}, not {decoders.kind_of(node)}")
            return None
        if not node.entries:
            report.add("F104", node.at, f"{quote(name)} is empty; name at least one field of the entry, or remove it")
        values: dict[str, str] = {}
        for field, (key_at, value) in node.entries.items():
            latex = checked_text(f"{name}.{field}", value, report)
            if latex is None:
                continue
            problem = entry_field_problem(field, latex)
            if problem:
                report.add("F121", value.at if is_entry_field(field) else key_at, f"{quote(field)} {problem}")
            else:
                values[field] = latex
        return values if values and len(values) == len(node.entries) else None

    return decode


def is_entry_field(name: str) -> bool:
    """Return True if `bibtex` of a record can have a field of this name."""
    return name not in _WRITTEN_FIELDS and re.fullmatch(r"[a-z][a-z0-9_.:+-]*", name) is not None


def entry_field_problem(name: str, latex: str) -> str:
    """Return the error about a field in `bibtex` of a record; empty if there is none."""
    if name in _WRITTEN_FIELDS:
        return "is said by the record itself; remove it here"
    if not is_entry_field(name):
        return "is not a BibTeX field; write its name in lower-case letters, digits and hyphens"
    if name == "type" and not (latex.isascii() and latex.isalpha() and latex.islower()):
        return f"must be the type of an entry, such as article, not {quote(latex)}"
    depth = 0  # of braces; -1 as soon as the text cannot be valid
    for mark in re.findall(r"\\.|[{}\\]", latex):  # an escaped character, a brace, or a backslash at the end
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
        if depth < 0 or mark == "\\":  # a last backslash would escape the brace that closes the field
            depth = -1
            break
    if depth:
        return f"holds a brace or backslash without its partner: {quote(latex)}; close it, or remove it"
    return ""


def url_list(name: str) -> Decoder:
    """Return the decoder of a list of different URLs, at least one."""
    decode_texts = decoders.text_list(name)

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        values: tuple[str, ...] | None = decode_texts(node, report)
        if values is None:
            return None
        is_valid = True
        for index, value in enumerate(values):
            problem = url_problem(value)
            if problem:
                is_valid = False
                report.add("F114", decoders.place_of(node, index), f"{quote(value)} {problem}")
        return values if is_valid else None

    return decode


@lru_cache(maxsize=4096)
def url_problem(value: str) -> str:
    """Return the error about a text that is no public URL; empty if it is one."""
    if re.fullmatch(r"https?://\w[^ <>\"`{}|\\^/?#@]*(?:[/?#][^ <>\"`{}|\\^]*)?", value):
        return ""
    scheme, separator, rest = value.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if not separator or scheme.lower() not in ("http", "https"):
        return "is not a web address; begin it with https://"
    forbidden = re.search(r'[ <>"`{}|\\^]', value)
    if forbidden:
        character = forbidden[0]
        name = "a blank" if character == " " else quote(character)
        return f"holds {name}, which no web address can; write %{ord(character):02X}, or remove it"
    if "@" in host:
        return "gives a user name or password; leave out what stands before the @"
    return "" if host.strip(".:") else "names no host; write https://host/path"


_BY_KIND: dict[FieldKind, Callable[[str], Decoder]] = {
    FieldKind.TEXT: decoders.text,
    FieldKind.TEXTS: decoders.text_list,
    FieldKind.AUTHORS: authors,
    FieldKind.YEAR: partial(parsed, code="F105", parse=_parse_year),
    FieldKind.DATE: decoders.iso_date,
    FieldKind.NUMBER: number,
    FieldKind.FLAG: decoders.flag,
    FieldKind.URL: url,
    FieldKind.URLS: url_list,
    # an identifier that a survey declares: its form is unknown
    FieldKind.IDENTIFIER: partial(
        valid_text, code="F111", is_valid=lambda value: " " not in value, description="an identifier: leave out blanks"
    ),
    FieldKind.KEY: key,
}

_BY_NAME: dict[str, Callable[[str], Decoder]] = {
    **{kind.value: partial(parsed, code="F111", parse=partial(_parse_identifier, kind)) for kind in IdentifierKind},
    "id": partial(
        valid_text,
        code="F110",
        is_valid=_is_exclusion_id,
        description="an exclusion id: write E and at least three digits, such as E033",
    ),
    "cite_key": partial(
        valid_text,
        code="F107",
        is_valid=is_cite_key,
        description='a key to cite: leave out blanks, commas, braces, " and =',
    ),
    "bibtex": bibtex_entry,
}
"""The decoders of fixed fields that accept less than other fields of their kind, by the field's name."""


def field_decoder(field: RecordField) -> Decoder:
    """Return the decoder of a field: the one for its name, or the one for its kind."""
    if field.kind is FieldKind.CHOICE:
        return terms(field.name, field.name, field.choices)
    decoder = _BY_NAME.get(field.name) or _BY_KIND[field.kind]
    return decoder(field.name)
