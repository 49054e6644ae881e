"""The vocabulary of a corpus, decoded from `data/taxonomy.yaml`: facets, their terms and levels, and rules across tags.

No code depends on a term: another survey needs another file, but no change of Python.
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
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, entries_of, items_of, nodes_of, text_of, value_at
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.field_table import (
    CANDIDATE_FIELDS,
    EXCLUSION_FIELDS,
    PAPER_FIELDS,
    CitationNames,
    FieldKind,
    RecordField,
    ReviewTopic,
    SearchPart,
    Section,
)

ANY_EVIDENCE = "any"
"""The value of `evidence` in a rule that accepts evidence for any field."""


class Condition(NamedTuple):
    """A filter written in YAML: `rl: [full, partial]` has the field `rl` and two alternatives.

    `field` may end in an operator, as in `added<=`. `analysis.query` checks filters against the taxonomy.
    """

    field: str
    alternatives: tuple[str, ...]
    location: Location


class TagRule(NamedTuple):
    """A rule across the fields of a paper: a paper that meets all of `when` must meet all of `require`.

    A rule has either `require` or one of the two attributes below.

    Attributes:
        evidence: Fields; the paper must have evidence that names at least one of them.
        sparse: A limit by field. A term of the field is sparse if no more papers than this number have it: papers
            with a sparse term must have evidence that names the field.
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
        """Return a number with the noun, such as `1 paper` or `2,000 papers`."""
        noun = self.one if number == 1 else self.many
        return f"{number:,} {noun}"

    @property
    def with_article(self) -> str:
        """The singular with its article, such as `a paper` or `an entry`."""
        article = "an" if self.one[:1].lower() in "aeiou" else "a"
        return f"{article} {self.one}"

    @property
    def heading(self) -> str:
        """The plural with a capital letter: `Papers`."""
        return self.many[:1].upper() + self.many[1:]

    @property
    def heading_one(self) -> str:
        """The singular with a capital letter: `Paper`."""
        return self.one[:1].upper() + self.one[1:]


PAPER_NOUN = Noun()
"""The noun of a survey whose taxonomy has none."""


class Column(NamedTuple):
    """A column of the published table.

    Attributes:
        column: The column's name in the table's first line.
        field: A fixed field, or a facet of kind `single` or `many`.
        spellings: The words that the table writes instead of ids of terms, by term.
        absent: The word that the table writes if a record does not have the field.
    """

    column: str
    field: str
    spellings: MappingType[str, str] = MappingProxyType({})
    absent: str = ""

    def spelled(self, term: str) -> str:
        """Return the word that the table writes for a term."""
        return self.spellings.get(term, term)


def _spellings(node: Node, report: Report) -> dict[str, str] | None:
    if type(node) is not Mapping:
        report.add("F103", node.at, "'spellings' must be a mapping from terms to the table's words")
        return None
    words_by_term: dict[str, str] = {}
    terms_by_word: dict[str, str] = {}
    for term, (_, value) in node.entries.items():
        word = decoders.checked_text("spellings", value, report)
        if word is None:
            continue
        words_by_term[term] = word
        other_term = terms_by_word.setdefault(word, term)
        if other_term != term:
            message = f"spellings give {quote(word)} to {quote(other_term)}, too; give each term a word of its own"
            report.add("F108", value.at, message)
    return words_by_term if len(words_by_term) == len(node.entries) else None


def _check_columns(taxonomy: Mapping, report: Report) -> None:
    """Report repeated columns, fields that no cell can show, and spellings of unknown terms."""
    declared_fields = [text_of(field, "field") for field in items_of(taxonomy, "fields")]
    for table, section, fixed_fields, other_fields in (
        ("published", "papers", PAPER_FIELDS, ["first_author", *declared_fields]),
        ("published_exclusions", "exclusions", EXCLUSION_FIELDS, []),
    ):
        facets = {text_of(facet, "field"): facet for facet in items_of(taxonomy, section)}
        allowed = [field.name for field in fixed_fields if field.kind is not FieldKind.NESTED]
        allowed += [name for name in other_fields if name]
        allowed += [name for name, facet in facets.items() if name and text_of(facet, "kind") != "levels"]
        column_names: set[str] = set()
        for column in items_of(taxonomy, table):
            field = text_of(column, "field")
            report.record = text_of(column, "column")
            _refuse_repeated(table, column, "column", column_names, report)
            if field not in allowed:
                if field:
                    hint = suggestion(field, allowed)
                    report.add("V101", value_at(column, "field"), f"no column can show {quote(field)}{hint}")
                continue
            terms = [text_of(term, "id") for term in items_of(facets.get(field), "terms")]
            for term, (key_at, _) in entries_of(column, "spellings").items():
                if term not in terms and term != decoders.NOT_APPLICABLE:
                    report.add("V102", key_at, f"{quote(field)} has no term {quote(term)}{suggestion(term, terms)}")
    report.record = ""


class Kind(StrEnum):
    """The form of a facet's tag: one term, several terms, or terms that have a level each."""

    SINGLE = "single"
    MANY = "many"
    LEVELS = "levels"


class Role(StrEnum):
    """The role of a facet: `AXIS` for an axis of the survey, `FACET` for a plain description."""

    AXIS = "axis"
    FACET = "facet"


class Standing(StrEnum):
    """The source that a term of the evidence facet `level` requires: the paper, another primary source, or any."""

    OWN = "own"
    PRIMARY = "primary"
    SECONDARY = "secondary"


class Sketch(NamedTuple):
    """A small picture of a term: rows of boxes, and links between boxes.

    Attributes:
        rows: The text of each box; `*` in front highlights the box, `?` at the end gives it a dashed border.
        links: The numbers of two boxes, from 1, and True if the link is an arrow.
    """

    rows: tuple[tuple[str, ...], ...]
    links: tuple[tuple[int, int, bool], ...] = ()


def parse_sketch(text: str) -> Sketch:
    """Read a sketch such as `*lead / worker, worker : 1>2, 1-3`, where `>` is an arrow and `-` a line.

    Raise ValueError if the text is no sketch; the message says why.
    """
    rows_text, _, links_text = text.partition(":")
    rows = tuple(tuple(box.strip() for box in row.split(",")) for row in rows_text.split("/"))
    if any(not box.strip("*? ") for row in rows for box in row):
        raise ValueError(f"{quote(text)} is no sketch: write rows of boxes such as *lead / worker, worker : 1>2, 1-3")
    total = sum(map(len, rows))
    box_numbers = {str(number) for number in range(1, total + 1)}
    links = []
    link_texts = links_text.split(",") if links_text.strip() else []
    for link in link_texts:
        mark = ">" if ">" in link else "-"
        first, _, last = map(str.strip, link.partition(mark))
        if first not in box_numbers or last not in box_numbers or first == last:
            form = f"write 1>2 or 1-2, with numbers of two of {total} boxes"
            raise ValueError(f"{quote(link.strip())} is no link: {form}")
        links.append((int(first), int(last), mark == ">"))
    return Sketch(rows, tuple(links))


class Term(NamedTuple):
    """A word of a vocabulary.

    Attributes:
        code: A short name such as `R1`. Terms of one facet that share a code form a family.
        standing: The source that the term requires, if it is a level of evidence.
        synonyms: Other words by which search finds records with this term.
        own_page: Whether the section of this term in the README's list is a page of its own; None decides by size.
        typical: The terms of other facets that the survey expects with this term: pairs of a facet and its terms.
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
        """Return the terms of another facet that the survey expects with this term."""
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
        """The ids of the terms, and `NA` if it is allowed."""
        term_ids = tuple(term.id for term in self.terms)
        return (*term_ids, decoders.NOT_APPLICABLE) if self.allows_na else term_ids

    @property
    def codes(self) -> dict[str, tuple[str, ...]]:
        """The ids of the terms of each code, by the code in lower case."""
        ids_by_code: dict[str, tuple[str, ...]] = {}
        for term in self.terms:
            if term.code:
                code = term.code.casefold()
                ids_by_code[code] = (*ids_by_code.get(code, ()), term.id)
        return ids_by_code

    @property
    def families(self) -> dict[str, tuple[Term, ...]]:
        """The terms by code, in order; empty if a term has no code, or if no two terms share one."""
        terms_by_code: dict[str, list[Term]] = {}
        for term in self.terms:
            terms_by_code.setdefault(term.code, []).append(term)
        if "" in terms_by_code or len(terms_by_code) == len(self.terms):
            return {}
        return {code: tuple(terms) for code, terms in terms_by_code.items()}


class Taxonomy(NamedTuple):
    """The facets of papers, of exclusions and of evidence, the rules across them, and settings of the survey.

    Attributes:
        crosstabs: Pairs of axes that `corpus stats` crosses.
        published, published_exclusions: The columns of the tables that the survey has published.
        by_key: Whether the file of papers is sorted by key.
        page_above: The size in KiB above which a section of the README's list becomes a page of its own.
        fields: Fields of papers that the survey declares.
        omit: Fixed fields that the survey does not use.
        optional: Required fields that a paper of this survey need not have.
        purpose, authors, license: Shown on the site.
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
        """The fields of a paper without its tags, in canonical order: fixed ones that are in use, and declared ones."""
        if not self.fields and not self.omit and not self.optional:
            return PAPER_FIELDS
        fixed_fields: list[RecordField] = []
        for field in PAPER_FIELDS:
            if field.name in self.optional:
                field = field._replace(required=False)
            if field.name not in self.omit:
                fixed_fields.append(field)
        sections = [field.section for field in fixed_fields]
        record_start = sections.index(Section.RECORD)  # declared fields end the section before RECORD
        return (*fixed_fields[:record_start], *self.fields, *fixed_fields[record_start:])

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the fields that evidence can support; it can support every tag, too."""
        return tuple(field.name for field in self.paper_fields if field.is_fact)

    @property
    def axes(self) -> tuple[Facet, ...]:
        """The facets of papers that are axes of the survey."""
        return tuple(facet for facet in self.papers if facet.role is Role.AXIS)

    @property
    def section_facet(self) -> Facet | None:
        """The facet whose terms are the sections of the README's list; None if no facet suits.

        It is the first facet that is no axis and of which every paper has exactly one term.
        """
        for facet in self.papers:
            has_one_term = facet.kind is Kind.SINGLE and facet.required and not facet.allows_na
            if facet.role is Role.FACET and has_one_term:
                return facet
        return None


RESERVED_FIELDS = frozenset(
    (
        *(field.name for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS, *CANDIDATE_FIELDS)),
        *("first_author", "published", "contested", "tags", "note", "location", "verdict", "copy", "more"),
        *("kind", "disputes", "open", "by"),
    )
)
"""Names that no facet can have: fixed fields, and names that filters, columns or JSON use otherwise."""


def decode_taxonomy(file: YamlFile) -> Taxonomy | None:
    """Decode a taxonomy; return None if it has any problem, because records cannot be checked against it then."""
    count_before = len(file.findings)
    node = file.root()
    if node is None:
        return None
    report = Report(file)
    values = decoders.decode_record(node, _TAXONOMY, report)
    report.record = ""
    if type(node) is Mapping:
        _check_names(node, report)
        named_facets = [facet for facet in items_of(node, "papers") if text_of(facet, "field")]
        kinds_by_facet = {text_of(facet, "field"): text_of(facet, "kind") for facet in named_facets}
        for pair in nodes_of(node, "crosstabs"):
            if type(pair) is Sequence:
                _refuse_unknown(pair.items, list(kinds_by_facet), report)
        _check_rules(node, kinds_by_facet, report)
        _check_typical(node, report)
        _check_columns(node, report)
    if values is None or type(node) is not Mapping or len(file.findings) > count_before:
        return None
    taxonomy = Taxonomy(**values)
    section_field = taxonomy.section_facet.field if taxonomy.section_facet else ""
    message = "only a section of the list, a term of the first plain facet, has a page of its own"
    for section, field, facet in _facets(node, report):
        if section == "papers" and field == section_field:
            continue
        for term in (*items_of(facet, "levels"), *items_of(facet, "terms")):
            _refuse_field(term, "own_page", message, report)
    return None if len(file.findings) > count_before else taxonomy


def _check_rules(taxonomy: Mapping, kinds_by_facet: MappingType[str, str], report: Report) -> None:
    """Report repeated rules, rules without exactly one demand, and unknown facets."""
    facet_names = list(kinds_by_facet)
    facets_without_levels = [field for field, kind in kinds_by_facet.items() if kind != "levels"]
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
        sparse_fields = [Scalar(field, key_at) for field, (key_at, _) in entries_of(rule, "sparse").items()]
        _refuse_unknown(sparse_fields, facets_without_levels, report)
        _refuse_unknown(nodes_of(rule, "evidence"), facet_names, report)
    report.record = ""


def _check_typical(taxonomy: Mapping, report: Report) -> None:
    """Report unknown terms in `typical`; only facets of papers without levels have it or are named in it."""
    terms_by_facet = {
        text_of(facet, "field"): [text_of(term, "id") for term in items_of(facet, "terms")]
        for facet in items_of(taxonomy, "papers")
        if text_of(facet, "kind") != Kind.LEVELS
    }
    for section, facet_field, facet in _facets(taxonomy, report):
        can_have_typical = section == "papers" and facet_field in terms_by_facet
        for term in (*items_of(facet, "terms"), *items_of(facet, "levels")):
            for field, (key_at, value) in entries_of(term, "typical").items():
                if not can_have_typical or field not in terms_by_facet:
                    message = f"{quote(field)} is not another facet of papers with terms and no levels"
                    report.add("V101", key_at, f"{message}{suggestion(field, list(terms_by_facet))}")
                    continue
                items = value.items if type(value) is Sequence else [value]
                for item in items:
                    if type(item) is Scalar and item.text not in terms_by_facet[field]:
                        hint = suggestion(item.text, terms_by_facet[field])
                        report.add("V102", item.at, f"{quote(field)} has no term {quote(item.text)}{hint}")


def _facets(taxonomy: Mapping, report: Report) -> Iterator[tuple[str, str, Mapping]]:
    """Yield the section, the field and the node of each facet; `report.record` is the field meanwhile."""
    for section in ("papers", "exclusions", "evidence"):
        for facet in items_of(taxonomy, section):
            report.record = text_of(facet, "field")
            yield section, report.record, facet
    report.record = ""


def _refuse_field(item: Mapping, name: str, message: str, report: Report) -> None:
    """Report a field that has no meaning in this item, if the item has it."""
    if name in item.entries:
        report.add("F102", item.entries[name][0], message)


def facet_decoder(facet: Facet) -> Decoder:
    """Return the decoder of a facet's field."""
    allowed = tuple(term.id for term in facet.terms)
    label = facet.label
    if label == label.capitalize():  # RAG stays RAG
        label = label.lower()
    if facet.kind is Kind.LEVELS:
        level_ids = tuple(level.id for level in facet.levels)
        return fields.levels(facet.field, label, allowed, level_ids, codes=facet.codes)
    decode_term = fields.terms(facet.field, label, allowed, allows_na=facet.allows_na, codes=facet.codes)
    return fields.term_list(facet.field, decode_term) if facet.kind is Kind.MANY else decode_term


def _typical(node: Node, report: Report) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    typical_terms = conditions("typical")(node, report)  # they are written like filters
    if typical_terms is None:
        return None
    return tuple((condition.field, condition.alternatives) for condition in typical_terms)


def _pairs(name: str) -> Decoder:
    """Return the decoder of a list of pairs of texts."""
    decode_pair = decoders.text_list(f"a pair of {name}")

    def decode(node: Node, report: Report) -> tuple[tuple[str, ...], ...] | None:
        if type(node) is not Sequence:
            report.add("F103", node.at, f"{quote(name)} must be a list of pairs such as [[one, two]]")
            return None
        pairs = [decode_pair(item, report) for item in node.items]
        for item, pair in zip(node.items, pairs, strict=True):
            if pair is not None and len(pair) != 2:
                noun = "field" if len(pair) == 1 else "fields"
                report.add("F103", item.at, f"an item of {name} names {len(pair)} {noun} instead of two")
        return None if None in pairs else tuple(pairs)  # a pair of a wrong length is not used: it was reported

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
_CAN_BE_OPTIONAL = tuple(field.name for field in PAPER_FIELDS if field.can_be_optional)
_OMITTABLE_FIELDS = tuple(
    field.name for field in PAPER_FIELDS if not field.required and field.kind is not FieldKind.NESTED
)
_DECLARABLE_KINDS = tuple(kind for kind in FieldKind if kind is not FieldKind.NESTED)
_FIELD = decoders.Schema(
    "a field",
    "field",
    {
        "field": fields.field_name("field"),
        "label": decoders.text("label"),
        "kind": fields.terms("kind", "kind", _DECLARABLE_KINDS),
        "help": decoders.text("help"),
        "choices": decoders.text_list("choices"),
        "required": decoders.flag("required"),
        "listed": decoders.flag("listed"),
        "bibtex": decoders.valid_text(
            "bibtex", "F121", fields.is_entry_field, "a field of an entry, or one of the record's"
        ),
        "csl": decoders.valid_text("csl", "F121", lambda name: name.replace("-", "").isalpha(), "a variable of CSL"),
        "ris": decoders.valid_text(
            "ris", "F121", lambda tag: re.fullmatch("[A-Z][A-Z0-9]", tag) is not None, "a tag of RIS"
        ),
    },
    ("field", "label", "kind", "help"),
)
_NOUN_FORM = "a noun: write words of letters and digits"
_NOUN_FIELDS = {name: decoders.valid_text(name, "F107", is_noun, _NOUN_FORM) for name in Noun._fields}
_NOUN = decoders.Schema("a noun", "", _NOUN_FIELDS, Noun._fields)


def _declared_field(
    field: str,
    kind: FieldKind,
    help: str,  # noqa: A002 - the name of the field in taxonomies
    *,
    listed: bool = False,
    bibtex: str = "",
    csl: str = "",
    ris: str = "",
    **unchanged: Any,  # label, choices and required
) -> RecordField:
    """Return a field that a survey declares; commands, search and the issue form treat it like a fixed field."""
    search = SearchPart.IDENTIFIER if kind is FieldKind.IDENTIFIER else SearchPart.METHOD
    review = ReviewTopic.LINKS if kind in (FieldKind.URL, FieldKind.URLS) else ReviewTopic.FIELDS
    return RecordField(
        field,
        kind,
        help,
        search=search,
        review=review,
        question=help,
        is_settable=True,
        is_fact=True,
        is_column=True,
        is_filter=kind in (FieldKind.FLAG, FieldKind.CHOICE, FieldKind.YEAR),
        is_listed=listed,
        citation_names=CitationNames(bibtex, csl, ris),
        **unchanged,
    )


def conditions(name: str) -> Decoder:
    """Return the decoder of a mapping of filters, such as `{rl: [full, partial]}`."""

    def decode(node: Node, report: Report) -> tuple[Condition, ...] | None:
        if type(node) is not Mapping:
            report.add("F103", node.at, f"{quote(name)} must be a mapping of filters such as {{field: [one, two]}}")
            return None
        filters = []
        for field, (key_at, value) in node.entries.items():
            items = value.items if type(value) is Sequence else [value]
            alternatives = tuple(item.text for item in items if type(item) is Scalar)
            if not items or len(alternatives) < len(items):
                report.add("F103", value.at, f"{quote(field)} must be a value, or a list of values such as [one, two]")
                return None
            filters.append(Condition(field, alternatives, report.file.location(key_at)))
        return tuple(filters)

    return decode


def _evidence_fields(node: Node, report: Report) -> tuple[str, ...] | None:
    """Decode the `evidence` of a rule: a list of fields, or the word `any`."""
    if type(node) is Scalar:
        if node.text == ANY_EVIDENCE:
            return (ANY_EVIDENCE,)
        report.add("F103", node.at, f"'evidence' must be a list of fields such as [one, two], or {quote(ANY_EVIDENCE)}")
        return None
    names: tuple[str, ...] | None = decoders.text_list("evidence")(node, report)
    return names


def _sparse(node: Node, report: Report) -> dict[str, int] | None:
    """Decode the limits of `TagRule.sparse`, numbers of papers by field."""
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
    fields=decoders.record_list("fields", _FIELD, _declared_field),
    omit=fields.term_list("omit", fields.terms("omit", "optional field", _OMITTABLE_FIELDS, code="V101")),
    optional=fields.term_list(
        "optional", fields.terms("optional", "field that can be optional", _CAN_BE_OPTIONAL, code="V101")
    ),
)._replace(required=("title", "papers"))  # `papers`, too, which has a default in Python


def _check_names(taxonomy: Mapping, report: Report) -> None:
    """Report repeated and reserved names of fields, repeated terms, and parts that a kind of facet cannot have."""
    field_names: set[str] = set()
    for declared in items_of(taxonomy, "fields"):
        report.record = text_of(declared, "field")
        _check_name(declared, "field", field_names, report)
        if text_of(declared, "kind") != FieldKind.CHOICE:
            _refuse_field(declared, "choices", "only a field of kind 'choice' has 'choices'; remove it", report)
        elif "choices" not in declared.entries:
            report.add("F101", declared.at, "missing field 'choices', which a field of kind 'choice' needs")
    names_taken: dict[str, set[str]] = {"papers": field_names, "exclusions": set(), "evidence": set()}
    for section, field, facet in _facets(taxonomy, report):
        kind = text_of(facet, "kind")
        _check_name(facet, "field", names_taken[section], report)
        if kind == Kind.LEVELS:
            if "levels" not in facet.entries:
                report.add("F101", facet.at, f"missing field 'levels', which a facet of kind {quote(kind)} needs")
            message = "a facet of kind 'levels' has no 'allows_na': {} says that none applies"  # {} is an empty mapping
            _refuse_field(facet, "allows_na", message, report)
        elif kind in (Kind.SINGLE, Kind.MANY):
            _refuse_field(facet, "levels", f"unknown field 'levels' in a facet of kind {quote(kind)}", report)
        if section != "papers":
            for flag in ("sourced", "listed"):
                _refuse_field(facet, flag, f"only a facet of papers can be {quote(flag)}; remove it", report)
        for part in ("terms", "levels"):
            _, list_node = facet.entries.get(part, (0, None))
            if type(list_node) is Sequence and not list_node.items:
                report.add("F104", list_node.at, f"{quote(part)} is an empty list; name at least one")
            term_ids: set[str] = set()
            is_evidence_level = section == "evidence" and field == "level"
            for term in items_of(facet, part):
                if not is_evidence_level:
                    message = "only a term of the facet 'level' of evidence has a 'standing'; remove it"
                    _refuse_field(term, "standing", message, report)
                _refuse_repeated(part, term, "id", term_ids, report)
                name = text_of(term, "id")
                if name == decoders.NOT_APPLICABLE:
                    report.add("V104", value_at(term, "id"), "'NA' is not a term: set 'allows_na: true' on the facet")
                if "," in name:
                    report.add("F107", value_at(term, "id"), f"{quote(name)} is not a term id: leave out commas")
        if kind == Kind.LEVELS:  # in filters its terms are fields, so that no two can have one name
            for term in items_of(facet, "terms"):
                _check_name(term, "id", names_taken[section], report)


def _check_name(mapping: Mapping, field: str, names_taken: set[str], report: Report) -> None:
    """Report the name in a field if it is reserved or taken, and add it to the names that are taken."""
    name = text_of(mapping, field)
    if not name:
        return
    at = value_at(mapping, field)
    if name in RESERVED_FIELDS:
        report.add("F107", at, f"{quote(name)} is the name of a fixed field; choose another")
    elif name in names_taken:
        other = "another" if field == "field" else "a"  # an id is that of a term, which is no field
        report.add("F108", at, f"{quote(name)} is the name of {other} field, too; choose another")
    names_taken.add(name)


def _refuse_repeated(owner: str, item: Mapping, field: str, names_before: set[str], report: Report) -> None:
    """Report the name in a field of an item if it is in `names_before`, and add it there."""
    name = text_of(item, field)
    if name in names_before:
        report.add("F108", value_at(item, field), f"{owner} names {quote(name)} twice; remove one")
    if name:
        names_before.add(name)


def _refuse_unknown(nodes: Iterable[Node], facet_names: SequenceType[str], report: Report) -> None:
    """Report the texts that name no facet."""
    for node in nodes:
        if type(node) is Scalar and node.text and node.text not in facet_names:
            report.add("V101", node.at, f"unknown axis or facet {quote(node.text)}{suggestion(node.text, facet_names)}")
