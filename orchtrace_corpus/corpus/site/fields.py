"""The fields that readers filter, cross and sort papers by, and their columns as pages and scripts have them."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain, permutations
from typing import Any
from urllib.parse import quote

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute, ValueKind, paper_attributes
from orchtrace_corpus.corpus.analysis.search import texts_of_tag
from orchtrace_corpus.corpus.analysis.statistics import ABSENT
from orchtrace_corpus.corpus.formats.issue_form import DOES_NOT_ARISE
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Paper, Tag, evidence_facets
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Role, Taxonomy, Term
from orchtrace_corpus.corpus.rules.tags import cannot_arise

PAPERS_PAGE = "papers.html"

CODE = "code"
"""The field that says whether the authors' code is known: `yes` for `--where code!=`, `no` for `--where code=`."""

CONTESTED = "contested"
"""The field that has a paper's tags in open dispute."""

_NOT_RECORDED = "Not recorded"


class Group(StrEnum):
    """Under which heading readers find a field."""

    AXIS = "Axes"
    LEVELS = "Levels"
    FACET = "Other tags"
    EVIDENCE = "Evidence"
    RECORD = "Record"


class Value(NamedTuple):
    """A value that papers can have in a field.

    Attributes:
        id: As in the data and in filters; empty for papers without a value.
        label: What readers see.
        definition: What it means.
        text: What search finds it by, without case and accents.
    """

    id: str
    label: str
    definition: str = ""
    text: str = ""

    @property
    def is_aside(self) -> bool:
        """Return True if it is "not applicable" or "absent"."""
        return self.id in (ABSENT, NOT_APPLICABLE)


class Field(NamedTuple):
    """A field with a closed list of values, and which of them each paper has.

    Attributes:
        name: As in filters.
        values: Every value that papers have or could have, in the taxonomy's order; the absent one last.
        column: For each paper the indices of its values, at least one.
        facet: The facet of kind `levels` that it is a term of, if it is one.
    """

    name: str
    label: str
    group: Group
    values: tuple[Value, ...]
    column: Sequence[tuple[int, ...]]
    facet: Facet | None = None

    def counts(self) -> list[int]:
        """Return how many papers have each value."""
        counted = [0] * len(self.values)
        for indices in self.column:
            for index in indices:
                counted[index] += 1
        return counted

    def data(self, *, is_short: bool = False) -> dict[str, Any]:
        """Return the field for scripts: a paper with one value has its index alone; `is_short` for no search."""
        values = [[value.id, value.label, "" if is_short else value.text] for value in self.values]
        column = [indices[0] if len(indices) == 1 else list(indices) for indices in self.column]
        return {"name": self.name, "label": self.label, "values": values, "column": column}


def read_fields(
    papers: Sequence[Paper], taxonomy: Taxonomy, contested: frozenset[tuple[str, str]] = frozenset()
) -> tuple[Field, ...]:
    """The fields of a corpus: axes, terms with levels, other facets, those of evidence, and a few fixed ones.

    Args:
        papers: Its papers.
        taxonomy: What they are tagged with.
        contested: The tags in open dispute, by a paper's key and a tag; a field of their own, if there are any.
    """
    attributes = paper_attributes(taxonomy)
    fields = [_field(attributes[name], group, facet, papers) for name, group, facet in _names(papers, taxonomy)]
    if any(paper.code for paper in papers):
        values = (Value("yes", "Available"), Value("no", "Not known"))
        fields.append(Field(CODE, "Code", Group.RECORD, values, [(0,) if paper.code else (1,) for paper in papers]))
    if contested:
        fields.append(_contested_field(papers, fields, contested))
    return tuple(fields)


def _names(papers: Sequence[Paper], taxonomy: Taxonomy) -> Iterator[tuple[str, Group, Facet | None]]:
    for role, group in ((Role.AXIS, Group.AXIS), (Role.FACET, Group.FACET)):
        for facet in taxonomy.papers:
            if facet.role is role and facet.kind is Kind.LEVELS:
                yield from ((term.id, Group.LEVELS, facet) for term in facet.terms)
            elif facet.role is role:
                yield facet.field, group, None
    if any(paper.evidence for paper in papers):
        tags = {facet.field for facet in taxonomy.papers}
        yield from ((one.field, Group.EVIDENCE, None) for one in evidence_facets(taxonomy) if one.field not in tags)
    if any(paper.published is not None for paper in papers):
        yield "published", Group.RECORD, None
    for field in taxonomy.paper_fields:
        if field.is_filter and (field.name == "year" or any(field.name in paper.more for paper in papers)):
            yield field.name, Group.RECORD, None


def _field(attribute: Attribute, group: Group, facet: Facet | None, papers: Sequence[Paper]) -> Field:
    had = [attribute.values(paper) or (ABSENT,) for paper in papers]
    if attribute.terms:
        values = [_value(term, facet, attribute) for term in attribute.terms]
    else:
        given = {value for values in had for value in values} - {ABSENT}
        order = float if attribute.kind is ValueKind.NUMBER else str
        values = [Value(value, value) for value in sorted(given, key=order)]
    if any(ABSENT in terms for terms in had):
        values.append(Value(ABSENT, DOES_NOT_ARISE if facet else _NOT_RECORDED))
    places = {value.id: place for place, value in enumerate(values)}
    known = {terms: tuple(places[term] for term in terms) for terms in set(had)}
    label = next((term_label(term) for term in facet.terms if term.id == attribute.name), "") if facet else ""
    return Field(attribute.name, label or attribute.label, group, tuple(values), [known[terms] for terms in had], facet)


def _value(term: Term, facet: Facet | None, attribute: Attribute) -> Value:
    """A term as a value; a level also has the definition of the term that it is of."""
    own = next((term for term in facet.terms if term.id == attribute.name), None) if facet else None
    definition = f"{own.label}: {own.definition} {term.definition}" if own else term.definition
    tagged = attribute.facet or facet
    tag: Tag = {own.id: term.id} if own else term.id
    return Value(term.id, term_label(term), definition, texts_of_tag(tagged, tag) if tagged else "")


def _contested_field(papers: Sequence[Paper], fields: Sequence[Field], tags: frozenset[tuple[str, str]]) -> Field:
    """The tags in open dispute as values, called as their fields are; those of a facet with levels last."""
    names = {tag for _, tag in tags}
    disputed = sorted((field for field in fields if field.name in names), key=lambda one: one.facet is not None)
    values = [Value(one.name, one.label, "Readers disagree on it.", CONTESTED) for one in disputed]
    had = [tuple(at for at, one in enumerate(values) if (paper.key, one.id) in tags) for paper in papers]
    column = [one or (len(values),) for one in had]
    return Field(CONTESTED, "Contested tags", Group.EVIDENCE, (*values, Value(ABSENT, "None")), column)


def term_label(term: Term) -> str:
    """Return the name of a term for readers: its code and its label."""
    return f"{term.code} {term.label}".strip()


def papers_address(*filters: tuple[str, str]) -> str:
    """The address of the papers that pass filters, each a field and a value; the script of the page reads it."""
    # What encodeURIComponent leaves as it is, so that both write the same address.
    pairs = (f"{quote(name, safe='!*()')}={quote(value, safe='!*()')}" for name, value in filters)
    return PAPERS_PAGE + "#" + "&".join(pairs).replace("'", "%27")


class MatrixCell(NamedTuple):
    """The number of papers with a pair of values.

    Attributes:
        heat: 1 to 4 by its part of the largest cell; 0 for none, and where one of the values says nothing.
        is_impossible: Whether a rule of the taxonomy forbids the pair.
        address: The page that lists them.
    """

    number: int
    heat: int
    is_impossible: bool
    address: str


class MatrixRow(NamedTuple):
    """A value of the one field, with a cell for each value of the other."""

    value: Value
    cells: tuple[MatrixCell, ...]


def count_pairs(rows: Field, columns: Field) -> list[list[int]]:
    """Return how many papers have each pair of values."""
    counted = [[0] * len(columns.values) for _ in rows.values]
    for ours, theirs in zip(rows.column, columns.column, strict=True):
        for row in ours:
            for column in theirs:
                counted[row][column] += 1
    return counted


def matrix(rows: Field, columns: Field, impossible: frozenset[tuple[str, str]]) -> tuple[MatrixRow, ...]:
    """Two fields crossed, for the page as it is before a script runs.

    Args:
        rows: The one field.
        columns: The other.
        impossible: The pairs of values that cannot arise.
    """
    counted = count_pairs(rows, columns)
    aside = [[row.is_aside or column.is_aside for column in columns.values] for row in rows.values]
    flat = zip(chain.from_iterable(counted), chain.from_iterable(aside), strict=True)
    most = max((number for number, is_aside in flat if not is_aside), default=0)
    shown = []
    for row, numbers, asides in zip(rows.values, counted, aside, strict=True):
        cells = []
        for column, number, is_aside in zip(columns.values, numbers, asides, strict=True):
            heat = 0 if is_aside or not number else -(-4 * number // most)
            is_impossible = not number and (row.id, column.id) in impossible
            address = papers_address((rows.name, row.id), (columns.name, column.id))
            cells.append(MatrixCell(number, heat, is_impossible, address))
        shown.append(MatrixRow(row, tuple(cells)))
    return tuple(shown)


def impossible_pairs(fields: Sequence[Field], taxonomy: Taxonomy) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """The pairs of values that a rule forbids, by the names of the two fields; pairs of fields without any left out."""
    attributes = paper_attributes(taxonomy)
    named = [attributes[field.name] for field in fields if field.name in attributes]
    impossible = {}
    for rows, columns in permutations(named, 2):
        if pairs := cannot_arise(taxonomy, rows, columns):
            impossible[rows.name, columns.name] = frozenset(pairs)
    return impossible
