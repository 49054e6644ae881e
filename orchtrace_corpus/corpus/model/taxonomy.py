"""The vocabulary of a corpus, decoded from `data/taxonomy.yaml`: facets, their terms and levels, and rules across tags.

No code depends on a term: another survey has its own file and changes no Python.
"""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from enum import StrEnum
from types import MappingProxyType

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import Location, Severity, is_noun, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, entries_of, items_of, nodes_of, text_of
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.field_table import (
    CANDIDATE_FIELDS,
    EXCLUSION_FIELDS,
    PAPER_FIELDS,
    Carriers,
    FieldKind,
    RecordField,
    ReviewTopic,
    SearchPart,
    Section,
)

ANY_EVIDENCE = "any"
"""In a rule, the demand for evidence of whatever field."""


class Condition(NamedTuple):
    """A filter of a rule: `rl: [full, partial]` has the field `rl` and two alternatives.

    `field` may end in an operator, as in `added<=`. Filters are checked by `analysis.query`.
    """

    field: str
    alternatives: tuple[str, ...]
    location: Location


class TagRule(NamedTuple):
    """A rule across the fields of a paper: a paper that meets all of `when` must meet all of `require`.

    Attributes:
        evidence: Instead of `require`: fields, at least one of which an item of the paper's evidence must name.
        sparse: Instead of both: fields, each with the most papers of a sparse term; a paper with a sparse term must
            have evidence that names the field.
    """

    id: str
    message: str
    severity: Severity = Severity.ERROR
    when: tuple[Condition, ...] = ()
    require: tuple[Condition, ...] = ()
    evidence: tuple[str, ...] = ()
    sparse: MappingType[str, int] = {}


class Noun(NamedTuple):
    """A survey's name for its records."""

    one: str = "paper"
    many: str = "papers"

    def counted(self, number: int) -> str:
        """Return a number of records, such as `1 paper` or `2,000 papers`."""
        return f"{number:,} {self.one if number == 1 else self.many}"

    @property
    def with_article(self) -> str:
        """One record, such as `a paper` or `an entry`."""
        return f"{'an' if self.one[:1].lower() in 'aeiou' else 'a'} {self.one}"

    @property
    def heading(self) -> str:
        """The records at the beginning of a sentence: `Papers`."""
        return self.many[:1].upper() + self.many[1:]

    @property
    def heading_one(self) -> str:
        """One record at the beginning of a sentence: `Paper`."""
        return self.one[:1].upper() + self.one[1:]


PAPER_NOUN = Noun()
"""The noun of records unless a taxonomy names another."""


class Column(NamedTuple):
    """A column of the published table.

    Attributes:
        column: Its name in the table's first line.
        field: A fixed field, or a facet of kind `single` or `many`.
        spellings: The table's words for terms, if they are not the terms' ids.
        absent: The table's word for a field that a record does not have; without it, the cell is empty.
    """

    column: str
    field: str
    spellings: MappingType[str, str] = MappingProxyType({})
    absent: str = ""

    def spelled(self, term: str) -> str:
        """Return a term in the table's words."""
        return self.spellings.get(term, term)


def _spellings(node: Node, report: Report) -> dict[str, str] | None:
    if type(node) is not Mapping:
        report.add("F103", node.at, "'spellings' must be a mapping from terms to the table's words")
        return None
    words: dict[str, str] = {}
    terms: dict[str, str] = {}
    for term, (_, value) in node.entries.items():
        word = decoders.checked_text("spellings", value, report)
        if word is not None:
            words[term] = word
            if terms.setdefault(word, term) != term:
                message = f"spellings give {quote(word)} to {quote(terms[word])}, too; give each term a word of its own"
                report.add("F108", value.at, message)
    return words if len(words) == len(node.entries) else None


def _check_columns(taxonomy: Mapping, report: Report) -> None:
    """Report repeated columns, fields that no cell can show, and spellings of unknown terms."""
    paper_fields, exclusion_fields = (
        [field.name for field in fixed if field.kind is not FieldKind.PARTS]
        for fixed in (PAPER_FIELDS, EXCLUSION_FIELDS)
    )
    paper_fields += ["first_author", *filter(None, (text_of(field, "field") for field in items_of(taxonomy, "fields")))]
    for section, kind, fixed in (
        ("published", "papers", paper_fields),
        ("published_exclusions", "exclusions", exclusion_fields),
    ):
        facets = {text_of(facet, "field"): facet for facet in items_of(taxonomy, kind)}
        allowed = (*fixed, *(name for name, facet in facets.items() if name and text_of(facet, "kind") != "levels"))
        column_names: set[str] = set()
        for column in items_of(taxonomy, section):
            field = text_of(column, "field")
            report.record = text_of(column, "column")
            _refuse_repeated(section, column, "column", column_names, report)
            if field and field not in allowed:
                hint = suggestion(field, allowed)
                report.add("V101", column.entries["field"][1].at, f"no column can show {quote(field)}{hint}")
            terms = [text_of(term, "id") for term in items_of(facets[field], "terms")] if field in facets else []
            for term, (key_at, _) in entries_of(column, "spellings").items() if field in allowed else ():
                if term not in (*terms, decoders.NOT_APPLICABLE):
                    report.add("V102", key_at, f"{quote(field)} has no term {quote(term)}{suggestion(term, terms)}")
    report.record = ""


class Kind(StrEnum):
    """The number of terms that a record has on a facet."""

    SINGLE = "single"
    MANY = "many"
    LEVELS = "levels"


class Role(StrEnum):
    """The role of a facet: an axis of the survey, or a plain description."""

    AXIS = "axis"
    FACET = "facet"


class Standing(StrEnum):
    """The source that a level of evidence asks for: the record's own work, another primary source, or any."""

    OWN = "own"
    PRIMARY = "primary"
    SECONDARY = "secondary"


class Sketch(NamedTuple):
    """A small picture of a term: rows of boxes, and links between boxes.

    Attributes:
        rows: The text of each box; `*` in front marks the box, `?` at the end leaves it open.
        links: The numbers of two boxes, from 1, and whether the link is an arrow.
    """

    rows: tuple[tuple[str, ...], ...]
    links: tuple[tuple[int, int, bool], ...] = ()


def parse_sketch(text: str) -> Sketch:
    """Read a sketch such as `*lead / worker, worker : 1>2, 1-3`, where `>` is an arrow and `-` a line.

    Raises:
        ValueError: The text is no sketch; the message says why.
    """
    drawn, _, linked = text.partition(":")
    rows = tuple(tuple(box.strip() for box in row.split(",")) for row in drawn.split("/"))
    total = sum(map(len, rows))
    boxes = {str(index) for index in range(1, total + 1)}
    if any(not box.strip("*? ") for row in rows for box in row):
        raise ValueError(f"{quote(text)} is no sketch: write rows of boxes such as *lead / worker, worker : 1>2, 1-3")
    links = []
    for link in linked.split(",") if linked.strip() else []:
        mark = ">" if ">" in link else "-"
        first, _, last = map(str.strip, link.partition(mark))
        if not all(end in boxes for end in (first, last)) or first == last:
            raise ValueError(
                f"{quote(link.strip())} is no link: write 1>2 or 1-2, with numbers of two of {total} boxes"
            )
        links.append((int(first), int(last), mark == ">"))
    return Sketch(rows, tuple(links))


class Term(NamedTuple):
    """A word of a vocabulary. Terms of one facet that share a `code` belong to one family.

    Search finds records by the `synonyms`, too. `standing` is that of a level of evidence. `own_page` moves the term's
    section of the README's list to a page of its own; None leaves it to the size. `typical` are the terms of other
    facets that the survey expects with this term, by facet. `sketch` is its picture.
    """

    id: str
    label: str
    definition: str
    code: str = ""
    standing: Standing = Standing.PRIMARY
    synonyms: tuple[str, ...] = ()
    own_page: bool | None = None
    typical: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sketch: Sketch | None = None

    def typical_of(self, field: str) -> tuple[str, ...]:
        """Return the terms of a facet that the survey expects beside this one."""
        return dict(self.typical).get(field, ())


class Facet(NamedTuple):
    """A field that classifies records by a closed vocabulary.

    Only a facet of kind `levels` has `levels`. Every tag of a `sourced` facet, except NA, should have evidence. The
    list in the README shows the tags of a `listed` facet.
    """

    field: str
    label: str
    kind: Kind
    role: Role
    definition: str
    terms: tuple[Term, ...]
    levels: tuple[Term, ...] = ()
    allows_na: bool = False
    required: bool = True
    sourced: bool = False
    listed: bool = False

    @property
    def values(self) -> tuple[str, ...]:
        """The values that a record can have on it: the ids of the terms, and `NA` where that is allowed."""
        return (*(term.id for term in self.terms), *((decoders.NOT_APPLICABLE,) if self.allows_na else ()))

    @property
    def codes(self) -> dict[str, tuple[str, ...]]:
        """The ids of the terms that share a code, by the code without regard to case."""
        codes_in_use = {term.code.casefold() for term in self.terms if term.code}
        return {code: tuple(term.id for term in self.terms if term.code.casefold() == code) for code in codes_in_use}

    @property
    def families(self) -> dict[str, tuple[Term, ...]]:
        """The terms by code, in order; empty where no two terms share one."""
        grouped: dict[str, list[Term]] = {}
        for term in self.terms:
            grouped.setdefault(term.code, []).append(term)
        if "" in grouped or len(grouped) == len(self.terms):
            return {}
        return {code: tuple(members) for code, members in grouped.items()}


class Taxonomy(NamedTuple):
    """The facets of a corpus, of papers, of exclusions and of evidence, and the rules across them.

    `published` and `published_exclusions` are the columns of the tables that the survey has published. `by_key` sorts
    the file of papers by key. `fields` are the survey's own fields of papers, `omit` the fixed fields that it does not
    use, `optional` the required fields that a paper need not have. A section of the README's list of more than
    `page_above` KiB is a page of its own. The site shows `purpose`, `authors` and `license`.
    """

    title: str
    source: str = ""
    papers: tuple[Facet, ...] = ()
    exclusions: tuple[Facet, ...] = ()
    evidence: tuple[Facet, ...] = ()
    crosstabs: tuple[tuple[str, str], ...] = ()
    rules: tuple[TagRule, ...] = ()
    published: tuple[Column, ...] = ()
    published_exclusions: tuple[Column, ...] = ()
    by_key: bool = False
    page_above: int | float = 64
    noun: Noun = PAPER_NOUN
    fields: tuple[RecordField, ...] = ()
    omit: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    purpose: str = ""
    authors: tuple[str, ...] = ()
    license: str = ""

    @property
    def paper_fields(self) -> tuple[RecordField, ...]:
        """The fields of a paper, tags apart, in canonical order: the fixed ones that are in use, and the survey's."""
        if not self.fields and not self.omit and not self.optional:
            return PAPER_FIELDS
        used = [
            field._replace(required=False) if field.name in self.optional else field
            for field in PAPER_FIELDS
            if field.name not in self.omit
        ]
        behind = next(index for index, field in enumerate(used) if field.section is Section.RECORD)
        return (*used[:behind], *self.fields, *used[behind:])

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the fields that evidence can support, as it does tags."""
        return tuple(field.name for field in self.paper_fields if field.is_fact)

    @property
    def axes(self) -> tuple[Facet, ...]:
        """The facets of papers that are axes of the survey."""
        return tuple(facet for facet in self.papers if facet.role is Role.AXIS)

    @property
    def section(self) -> Facet | None:
        """The facet whose terms are sections of the list: the first required one of a single term that is no axis."""
        plain = (facet for facet in self.papers if facet.role is Role.FACET and facet.kind is Kind.SINGLE)
        return next((facet for facet in plain if facet.required and not facet.allows_na), None)


RESERVED_FIELDS = frozenset(
    (
        *(field.name for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS, *CANDIDATE_FIELDS)),
        *("first_author", "published", "contested", "tags", "note", "location", "verdict", "copy", "more"),
        *("kind", "disputes", "open", "by"),
    )
)
"""Names of fixed fields, which no facet may take."""


def decode_taxonomy(file: YamlFile) -> Taxonomy | None:
    """Decode a taxonomy; None if it has any problem, since no record could then be judged by it."""
    before = len(file.findings)
    node = file.root()
    if node is None:
        return None
    report = Report(file)
    values = decoders.decode_record(node, _TAXONOMY, report)
    report.record = ""
    if type(node) is Mapping:
        _check_names(node, report)
        kinds = {text_of(facet, "field"): text_of(facet, "kind") for facet in items_of(node, "papers")}
        kinds.pop("", None)
        for pair in nodes_of(node, "crosstabs"):
            _refuse_unknown(pair.items if type(pair) is Sequence else (), list(kinds), report)
        _check_rules(node, kinds, report)
        _check_typical(node, report)
        _check_columns(node, report)
    if values is None or len(file.findings) > before:
        return None
    taxonomy = Taxonomy(**values)
    for section, item in _facets(node, report) if type(node) is Mapping else ():
        is_list = section == "papers" and taxonomy.section is not None and report.record == taxonomy.section.field
        for term in (*items_of(item, "levels"), *(() if is_list else items_of(item, "terms"))):
            message = "only a section of the list, a term of the first plain facet, has a page of its own"
            _refuse_field(term, "own_page", message, report)
    return None if len(file.findings) > before else taxonomy


def _check_rules(taxonomy: Mapping, kinds: MappingType[str, str], report: Report) -> None:
    """Report repeated rules, rules without exactly one demand, and unknown facets; `kinds` are those of facets."""
    facet_names = list(kinds)
    counted = [field for field, kind in kinds.items() if kind != "levels"]
    rule_ids: set[str] = set()
    for rule in items_of(taxonomy, "rules"):
        report.record = text_of(rule, "id")
        _refuse_repeated("rules", rule, "id", rule_ids, report)
        demands = [demand for demand in ("require", "evidence", "sparse") if demand in rule.entries]
        if not demands:
            message = "missing field 'require', 'evidence' or 'sparse', which says what the rule demands"
            report.add("F101", rule.at, message)
        if len(demands) > 1:
            message = f"a rule demands {quote(demands[0])} or {quote(demands[1])}, not both; make two"
            report.add("F102", rule.entries[demands[1]][0], message)
        sparse = [Scalar(field, at) for field, (at, _) in entries_of(rule, "sparse").items()]
        _refuse_unknown(sparse, counted, report)
        _refuse_unknown(nodes_of(rule, "evidence"), facet_names, report)
    report.record = ""


def _check_typical(taxonomy: Mapping, report: Report) -> None:
    """Report typical terms of facets that are missing or have levels, unknown ones, and those outside papers."""
    terms = {
        text_of(facet, "field"): [text_of(term, "id") for term in items_of(facet, "terms")]
        for facet in items_of(taxonomy, "papers")
        if text_of(facet, "kind") != Kind.LEVELS
    }
    for section, facet in _facets(taxonomy, report):
        for term in (*items_of(facet, "terms"), *items_of(facet, "levels")):
            for field, (key_at, value) in entries_of(term, "typical").items():
                if section != "papers" or report.record not in terms or field not in terms:
                    message = f"{quote(field)} is not another facet of papers with terms and no levels"
                    report.add("V101", key_at, f"{message}{suggestion(field, list(terms))}")
                    continue
                for item in value.items if type(value) is Sequence else [value]:
                    if type(item) is Scalar and item.text not in terms[field]:
                        hint = suggestion(item.text, terms[field])
                        report.add("V102", item.at, f"{quote(field)} has no term {quote(item.text)}{hint}")


def _facets(taxonomy: Mapping, report: Report) -> Iterator[tuple[str, Mapping]]:
    """Yield each facet with its section of the taxonomy, while the report names it."""
    for section in ("papers", "exclusions", "evidence"):
        for facet in items_of(taxonomy, section):
            report.record = text_of(facet, "field")
            yield section, facet
    report.record = ""


def _refuse_field(item: Mapping, name: str, message: str, report: Report) -> None:
    """Report a field that means nothing where it stands."""
    if name in item.entries:
        report.add("F102", item.entries[name][0], message)


def facet_decoder(facet: Facet) -> Decoder:
    """Return the decoder of a facet's field."""
    allowed = tuple(term.id for term in facet.terms)
    label = facet.label.lower() if facet.label == facet.label.capitalize() else facet.label  # RAG stays RAG
    if facet.kind is Kind.LEVELS:
        level_ids = tuple(level.id for level in facet.levels)
        return fields.levels(facet.field, label, allowed, level_ids, codes=facet.codes)
    decode_term = fields.terms(facet.field, label, allowed, allows_na=facet.allows_na, codes=facet.codes)
    return fields.term_list(facet.field, decode_term) if facet.kind is Kind.MANY else decode_term


def _typical(node: Node, report: Report) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    filters = conditions("typical")(node, report)
    return None if filters is None else tuple((condition.field, condition.alternatives) for condition in filters)


def _pairs(name: str) -> Decoder:
    decode_pair = decoders.text_list(f"a pair of {name}")

    def decode(node: Node, report: Report) -> tuple[tuple[str, ...], ...] | None:
        if type(node) is not Sequence:
            report.add("F103", node.at, f"{quote(name)} must be a list of pairs such as [[one, two]]")
            return None
        pairs = [decode_pair(item, report) for item in node.items]
        for item, pair in zip(node.items, pairs, strict=True):
            if pair is not None and len(pair) != 2:
                count = f"{len(pair)} field{'s' * (len(pair) != 1)}"
                report.add("F103", item.at, f"an item of {name} names {count} instead of two")
        return None if None in pairs else tuple(pairs)

    return decode


_TERM = decoders.schema_of(
    Term, "a term", "id", typical=_typical, sketch=decoders.parsed("sketch", "F122", parse_sketch)
)
_FACET = decoders.schema_of(
    Facet,
    "a facet",
    "field",
    field=fields.field_name("field"),
    **{part: decoders.record_list(part, _TERM, Term) for part in ("terms", "levels")},
)
_RELAXABLE = tuple(field.name for field in PAPER_FIELDS if field.is_relaxable)
_OPTIONAL = tuple(field.name for field in PAPER_FIELDS if not field.required and field.kind is not FieldKind.PARTS)
_KINDS = tuple(kind for kind in FieldKind if kind is not FieldKind.PARTS)
_FIELD = decoders.Schema(
    "a field",
    "field",
    {
        "field": fields.field_name("field"),
        "label": decoders.text("label"),
        "kind": fields.terms("kind", "kind", _KINDS),
        "help": decoders.text("help"),
        "choices": decoders.text_list("choices"),
        "required": decoders.flag("required"),
        "listed": decoders.flag("listed"),
        "bibtex": decoders.formed(
            "bibtex", "F121", fields.is_entry_field, "a field of an entry, or one of the record's"
        ),
        "csl": decoders.formed("csl", "F121", lambda name: name.replace("-", "").isalpha(), "a variable of CSL"),
        "ris": decoders.formed(
            "ris", "F121", lambda tag: re.fullmatch("[A-Z][A-Z0-9]", tag) is not None, "a tag of RIS"
        ),
    },
    ("field", "label", "kind", "help"),
)
_WORDS = "a noun: write words of letters and digits"
_NOUN_FIELDS = {name: decoders.formed(name, "F107", is_noun, _WORDS) for name in Noun._fields}
_NOUN = decoders.Schema("a noun", "", _NOUN_FIELDS, Noun._fields)


def _own_field(
    field: str,
    kind: FieldKind,
    help: str,  # noqa: A002 - as taxonomies have it
    *,
    listed: bool = False,
    bibtex: str = "",
    csl: str = "",
    ris: str = "",
    **more: Any,
) -> RecordField:
    """Return a field that a survey declares: settable, searched and asked for like a fixed one."""
    return RecordField(
        field,
        kind,
        help,
        search=SearchPart.IDENTIFIER if kind is FieldKind.IDENTIFIER else SearchPart.METHOD,
        review=ReviewTopic.LINKS if kind in (FieldKind.URL, FieldKind.URLS) else ReviewTopic.FIELDS,
        question=help,
        is_settable=True,
        is_fact=True,
        is_column=True,
        is_filter=kind in (FieldKind.FLAG, FieldKind.CHOICE, FieldKind.YEAR),
        is_listed=listed,
        carriers=Carriers(bibtex, csl, ris),
        **more,
    )


def conditions(name: str) -> Decoder:
    """Return the decoder of filters written as a mapping, with their places."""

    def decode(node: Node, report: Report) -> tuple[Condition, ...] | None:
        if type(node) is not Mapping:
            report.add("F103", node.at, f"{quote(name)} must be a mapping of filters such as {{field: [one, two]}}")
            return None
        filters = []
        for field, (key_at, value) in node.entries.items():
            items = value.items if type(value) is Sequence else [value]
            if not items or any(type(item) is not Scalar for item in items):
                report.add("F103", value.at, f"{quote(field)} must be a value, or a list of values such as [one, two]")
                return None
            alternatives = tuple(item.text for item in items if type(item) is Scalar)
            filters.append(Condition(field, alternatives, report.file.location(key_at)))
        return tuple(filters)

    return decode


def _evidence_fields(node: Node, report: Report) -> tuple[str, ...] | None:
    if type(node) is Scalar:
        if node.text == ANY_EVIDENCE:
            return (ANY_EVIDENCE,)
        report.add("F103", node.at, f"'evidence' must be a list of fields such as [one, two], or {quote(ANY_EVIDENCE)}")
        return None
    names: tuple[str, ...] | None = decoders.text_list("evidence")(node, report)
    return names


def _sparse(node: Node, report: Report) -> dict[str, int] | None:
    if type(node) is not Mapping or not node.entries:
        report.add("F103", node.at, "'sparse' must be a mapping from fields to numbers of papers such as {one: 2}")
        return None
    limits = {}
    for field, (_, value) in node.entries.items():
        text = decoders.checked_text(field, value, report)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 1000):
            report.add("F103", value.at, f"{quote(text)} is not a number of papers: write 1 or more")
            return None
        limits[field] = int(text)
    return limits


_RULE = decoders.schema_of(
    TagRule,
    "a rule",
    "id",
    id=fields.key("rule id"),
    when=conditions("when"),
    require=conditions("require"),
    evidence=_evidence_fields,
    sparse=_sparse,
)
_TAXONOMY = decoders.schema_of(
    Taxonomy,
    "a taxonomy",
    "title",
    **{name: decoders.record_list(name, _FACET, Facet) for name in ("papers", "exclusions", "evidence")},
    crosstabs=_pairs("crosstabs"),
    rules=decoders.record_list("rules", _RULE, TagRule),
    **{
        name: decoders.records_of(name, Column, "a column", "column", spellings=_spellings)
        for name in ("published", "published_exclusions")
    },
    page_above=fields.number("page_above"),
    noun=decoders.record(_NOUN, Noun),
    fields=decoders.record_list("fields", _FIELD, _own_field),
    omit=fields.term_list("omit", fields.terms("omit", "optional field", _OPTIONAL, code="V101")),
    optional=fields.term_list(
        "optional", fields.terms("optional", "field that can be optional", _RELAXABLE, code="V101")
    ),
)._replace(required=("title", "papers"))


def _check_names(taxonomy: Mapping, report: Report) -> None:
    """Report repeated and reserved names of fields, repeated terms, and parts that a kind of facet cannot have."""
    field_names: set[str] = set()
    for field in items_of(taxonomy, "fields"):
        report.record = text_of(field, "field")
        _check_name(field, "field", field_names, report)
        if text_of(field, "kind") != FieldKind.CHOICE:
            _refuse_field(field, "choices", "only a field of kind 'choice' has 'choices'; remove it", report)
        elif "choices" not in field.entries:
            report.add("F101", field.at, "missing field 'choices', which a field of kind 'choice' needs")
    names_taken: dict[str, set[str]] = {"papers": field_names, "exclusions": set(), "evidence": set()}
    for section, facet in _facets(taxonomy, report):
        kind = text_of(facet, "kind")
        _check_name(facet, "field", names_taken[section], report)
        if kind == Kind.LEVELS:
            if "levels" not in facet.entries:
                report.add("F101", facet.at, f"missing field 'levels', which a facet of kind {quote(kind)} needs")
            message = "a facet of kind 'levels' has no 'allows_na': {} says that none applies"
            _refuse_field(facet, "allows_na", message, report)
        elif kind in (Kind.SINGLE, Kind.MANY):
            _refuse_field(facet, "levels", f"unknown field 'levels' in a facet of kind {quote(kind)}", report)
        for flag in ("sourced", "listed") if section != "papers" else ():
            _refuse_field(facet, flag, f"only a facet of papers can be {quote(flag)}; remove it", report)
        for part in ("terms", "levels"):
            list_node = facet.entries.get(part, (0, None))[1]
            if type(list_node) is Sequence and not list_node.items:
                report.add("F104", list_node.at, f"{quote(part)} is an empty list; name at least one")
            term_ids: set[str] = set()
            for term in items_of(facet, part):
                if (section, report.record) != ("evidence", "level"):
                    message = "only a term of the facet 'level' of evidence has a 'standing'; remove it"
                    _refuse_field(term, "standing", message, report)
                _refuse_repeated(part, term, "id", term_ids, report)
                name = text_of(term, "id")
                if name == decoders.NOT_APPLICABLE:
                    message = "'NA' is not a term: set 'allows_na: true' on the facet"
                    report.add("V104", term.entries["id"][1].at, message)
                if "," in name:
                    report.add("F107", term.entries["id"][1].at, f"{quote(name)} is not a term id: leave out commas")
        if kind == Kind.LEVELS:  # its terms are names to filter by, like those of fields
            for term in items_of(facet, "terms"):
                _check_name(term, "id", names_taken[section], report)


def _check_name(mapping: Mapping, field: str, names_taken: set[str], report: Report) -> None:
    name = text_of(mapping, field)
    if not name:
        return
    at = mapping.entries[field][1].at
    if name in RESERVED_FIELDS:
        report.add("F107", at, f"{quote(name)} is the name of a fixed field; choose another")
    elif name in names_taken:
        other = "another" if field == "field" else "a"
        report.add("F108", at, f"{quote(name)} is the name of {other} field, too; choose another")
    names_taken.add(name)


def _refuse_repeated(owner: str, item: Mapping, field: str, names_before: set[str], report: Report) -> None:
    """Report an item whose name has been seen before; `field` holds the name."""
    name = text_of(item, field)
    if name in names_before:
        report.add("F108", item.entries[field][1].at, f"{owner} names {quote(name)} twice; remove one")
    names_before.update({name} - {""})


def _refuse_unknown(names: Iterable[Node], facet_names: SequenceType[str], report: Report) -> None:
    """Report the texts that name no axis or facet."""
    for item in names:
        if type(item) is Scalar and item.text and item.text not in facet_names:
            report.add("V101", item.at, f"unknown axis or facet {quote(item.text)}{suggestion(item.text, facet_names)}")
