"""The papers of a site: the fields to filter and cross them by, the page that lists them, and a page for each."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, permutations, starmap
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from orchtrace_corpus.base.html import inert_json, join_html, web_address
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import CONTESTED, Attribute, ValueKind, paper_attributes
from orchtrace_corpus.corpus.analysis.search import ENDINGS, searched, texts_beside_tags, texts_of_tag
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, NO_CELLS
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.formats.issue_form import DOES_NOT_ARISE
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, Section, field_label, value_texts
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Paper, Tag, evidence_facets
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Noun, Role, Taxonomy, Term
from orchtrace_corpus.corpus.render.records import evidence_about
from orchtrace_corpus.corpus.rules.tags import cannot_arise
from orchtrace_corpus.corpus.site.metadata import article, citation
from orchtrace_corpus.corpus.site.source import Source, term_label

if TYPE_CHECKING:
    from jinja2 import Environment

PAPERS_PAGE = "papers.html"
CODE = "code"
"""The field that says whether the authors' code is known: `yes` for `--where code!=`, `no` for `--where code=`."""
ROWS_OF_A_PAGE = 100
"""The papers that a page lists; a script shows as many, and more when asked."""
PART_SIZE = 250
"""The papers whose texts are in one file."""
MOST_RELATED = 12


class Group(StrEnum):
    """Under which heading readers find a field."""

    DECISION = "Decision"
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
        return self.id in NO_CELLS


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
        means = "Readers disagree on it."
        fields.append(_marked_field(CONTESTED, "Contested tags", means, papers, fields, contested))
    return tuple(fields)


def grouped(fields: Sequence[Field]) -> list[tuple[Group, list[Field]]]:
    """Return the groups of fields, each with its fields."""
    return [(group, [field for field in fields if field.group is group]) for group in Group]


def _names(papers: Sequence[Paper], taxonomy: Taxonomy) -> Iterator[tuple[str, Group, Facet | None]]:
    for role, group in ((Role.AXIS, Group.AXIS), (Role.FACET, Group.FACET)):
        for facet in taxonomy.papers:
            if facet.role is role and facet.kind is Kind.LEVELS:
                yield from ((term.id, Group.LEVELS, facet) for term in facet.terms)
            elif facet.role is role:
                yield facet.field, group, None
    if any(paper.evidence for paper in papers):
        tags = {facet.field for facet in taxonomy.papers}
        yield from (
            (evidence_facet.field, Group.EVIDENCE, None)
            for evidence_facet in evidence_facets(taxonomy)
            if evidence_facet.field not in tags
        )
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
        values.append(Value(ABSENT, DOES_NOT_ARISE if facet else "Not recorded"))
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


def candidate_fields(candidates: Sequence[Candidate], taxonomy: Taxonomy) -> tuple[Field, ...]:
    """Return the fields of candidates: the proposal, those of papers, and the tags that are open."""
    decisions = [decision for decision in Decision if any(one.proposal is decision for one in candidates)]
    values = tuple(Value(decision.value, decision.value.capitalize()) for decision in decisions)
    proposed = [(decisions.index(candidate.proposal),) for candidate in candidates]
    proposals = Field("proposal", "Proposal", Group.DECISION, values, proposed)
    fields = read_fields([candidate.paper for candidate in candidates], taxonomy)
    tags = frozenset((candidate.name, tag) for candidate in candidates for tag in candidate.open_tags)
    named = [candidate.paper for candidate in candidates]
    is_open = _marked_field("open", "Open tags", "Its value is not settled.", named, fields, tags)
    return (proposals, *fields, *([is_open] if tags else []))


def _marked_field(
    name: str,
    label: str,
    definition: str,
    papers: Sequence[Paper],
    fields: Sequence[Field],
    tags: frozenset[tuple[str, str]],
) -> Field:
    """Return a field whose values are marked tags, called as their fields are; those of a facet with levels last.

    Args:
        name: Its name, also the word that search finds its values by.
        label: Its label.
        definition: What each mark means.
        papers: The papers.
        fields: The fields that tags are looked up in.
        tags: The marked tags, as pairs of a paper's key and a tag.
    """
    names = {tag for _, tag in tags}
    marked = sorted((field for field in fields if field.name in names), key=lambda field: field.facet is not None)
    values = [Value(field.name, field.label, definition, name) for field in marked]
    had = [tuple(at for at, value in enumerate(values) if (paper.key, value.id) in tags) for paper in papers]
    column = [indices or (len(values),) for indices in had]
    return Field(name, label, Group.EVIDENCE, (*values, Value(ABSENT, "None")), column)


def papers_address(*filters: tuple[str, str]) -> str:
    """The address of the papers that pass filters, each a field and a value; the script of the page reads it."""
    # What encodeURIComponent leaves as it is, so that both write the same address.
    pairs = (f"{quote(name, safe='!*()')}={quote(value, safe='!*()')}" for name, value in filters)
    return PAPERS_PAGE + "#" + "&".join(pairs).replace("'", "%27")


class MatrixCell(NamedTuple):
    """The number of papers with a pair of values.

    Attributes:
        heat: 1 to 4 by its part of the largest cell; 0 for none, and where one of the values says nothing.
        is_impossible: True if a rule of the taxonomy forbids the pair.
        is_aside: True if one of the values says nothing, so that nothing is missing where there is no paper.
        address: The page that lists them, or that says what is known of the gap; empty without either.
    """

    number: int
    heat: int
    is_impossible: bool
    is_aside: bool
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


def matrix(
    rows: Field, columns: Field, impossible: frozenset[tuple[str, str]], gap_address: Callable[..., str]
) -> tuple[MatrixRow, ...]:
    """Two fields crossed, for the page as it is before a script runs.

    Args:
        rows: The one field.
        columns: The other.
        impossible: The pairs of values that cannot arise.
        gap_address: Returns the page of a pair that no paper has; empty where it has none.
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
            pair = (rows.name, row.id), (columns.name, column.id)
            if number:
                address = papers_address(*pair)
            elif is_aside:
                address = ""
            else:
                address = gap_address(*pair) or papers_address(*pair)
            cells.append(MatrixCell(number, heat, is_impossible, is_aside, address))
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


class Column(NamedTuple):
    """A column of the table, beside the one of titles.

    Attributes:
        name: As in filters and in `corpus list --columns`.
        fields: The indices of the fields that it shows: one, or the terms of a facet with levels; none for a text.
        is_list: Whether programs read a list from it.
        is_shown: Whether it is shown unless others are chosen.
    """

    name: str
    label: str
    fields: tuple[int, ...] = ()
    is_list: bool = False
    is_levels: bool = False
    is_shown: bool = False


def read_columns(fields: Sequence[Field], taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return the columns that a reader can choose: the axes are shown, with the year and the code."""
    attributes = paper_attributes(taxonomy)
    columns: dict[str, Column] = {}
    for index, field in enumerate(fields):
        if field.facet is not None:
            before = columns.get(field.facet.field)
            indices = (*(before.fields if before else ()), index)
            is_shown = field.facet.role is Role.AXIS
            columns[field.facet.field] = Column(field.facet.field, field.facet.label, indices, True, True, is_shown)
        elif field.name != CODE:
            facet = attributes[field.name].facet if field.name in attributes else None
            is_shown = field.group is Group.AXIS or field.name == "year"
            is_list = field.name == CONTESTED or (facet is not None and facet.kind is Kind.MANY)
            columns[field.name] = Column(field.name, field.label, (index,), is_list, is_shown=is_shown)
    for record_field in taxonomy.paper_fields:
        name = record_field.name
        if record_field.is_column and name not in columns:
            columns[name] = Column(name, field_label(record_field), is_list=record_field.is_list, is_shown=name == CODE)
    order = ["year", *(name for name in columns if name != "year")]
    return tuple(columns[name] for name in order)


def cell_value(field: RecordField, paper: Paper) -> str | int | float | list[str]:
    """Return what the table shows of a field: a text, a number or a list; an empty text for nothing."""
    value = paper.value(field.name)
    if field.is_list:
        return list(map(bare_author, value_texts(value)))
    if field.kind is FieldKind.NUMBER and isinstance(value, (int, float)):
        return value
    return "".join(value_texts(value))


def list_files(source: Source, fields: Sequence[Field], columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    """Yield the data of the table's script: the fields of all papers in one file, then their texts in parts."""
    papers = source.pool.papers
    numbers = {field.name: index for index, field in enumerate(fields)}
    marks: dict[int, list[int]] = {}
    for row, paper in enumerate(papers):
        if places := [numbers[tag] for tag in _contested_of(paper, source) if tag in numbers]:
            marks[row] = places
    first = ("key", "title", "authors")
    named = [field for field in source.taxonomy.paper_fields if field.is_column and field.name not in first]
    names = [*first, *(field.name for field in named)]
    searched_fields = searched(source.taxonomy)
    searched_names = {field.name for fields in searched_fields.values() for field in fields}
    beside = {part: [field for field in fields if field.name not in names] for part, fields in searched_fields.items()}
    parts = [papers[at : at + PART_SIZE] for at in range(0, len(papers), PART_SIZE)]
    data = {
        **filter_data(fields, len(papers), source.taxonomy.noun),
        "columns": [[col.name, col.label, col.fields, col.is_list, col.is_levels, col.is_shown] for col in columns],
        "names": names,
        "searched": [at for at, name in enumerate(names) if name in searched_names],
        "contested": marks,
        "rows": ROWS_OF_A_PAGE,
        "file": "papers-data",
        "parts": len(parts),
        "part_size": PART_SIZE,
    }
    yield "papers-data.js", data_script(data)
    for at, part in enumerate(parts):
        records = [
            [
                *(paper.key, paper.title, list(map(bare_author, paper.authors))),
                *(cell_value(field, paper) for field in named),
                texts_beside_tags(paper, beside),
            ]
            for paper in part
        ]
        yield f"papers-data-{at + 1}.js", f"corpusAdd({at}, {inert_json(records)});\n"


def filter_data(fields: Sequence[Field], size: int, noun: Noun) -> dict[str, Any]:
    """Return what the script needs to filter any list: its fields, its size, and the noun of its records."""
    return {
        "fields": [field.data() for field in fields],
        "size": size,
        "noun": noun,
        "endings": ENDINGS,
        "columns": [],
        "names": [],
        "parts": 0,
    }


def data_script(data: Mapping[str, Any]) -> str:
    """Return the data of a list as a script: a page from the file system may read no other kind of file."""
    return f"window.corpusData = {inert_json(data)};\n"


def _contested_of(paper: Paper, source: Source) -> Iterator[str]:
    tags = (dispute.tag for dispute in source.disputes_of.get(paper.key, ()))
    return (tag for tag in tags if (paper.key, tag) in source.contested)


class Row(NamedTuple):
    """A paper in the table: the head of its row, and its cells as HTML."""

    key: str
    title: str
    byline: str
    cells: str


def table_rows(
    source: Source, fields: Sequence[Field], columns: Sequence[Column], environment: "Environment"
) -> Iterator[Row]:
    """Return the papers as rows of the columns that are shown, as the script shows them.

    A cell of tags is made once for all papers that have the same ones, unless it leads to a dispute of one paper.
    """
    template: Any = environment.get_template("cell.html.jinja").module
    known: dict[tuple[Any, ...], str] = {}
    for number, paper in enumerate(source.pool.papers):
        marks = frozenset(_contested_of(paper, source))
        cells = []
        for column in columns:
            text = "" if column.fields else "; ".join(value_texts(paper.value(column.name)))
            had = (column.name, marks and paper.key, *(fields[index].column[number] for index in column.fields))
            if text:
                cells.append(template.text(column.label, text, paper.title))
            elif had in known:
                cells.append(known[had])
            else:
                labels = list(_labels(column, [fields[index] for index in column.fields], number, marks))
                cells.append(known.setdefault(had, template.tags(column.label, labels, paper.key)))
        yield Row(paper.key, paper.title, byline(paper), join_html(cells))


def _labels(
    column: Column, fields: Sequence[Field], index: int, marks: frozenset[str]
) -> Iterator[tuple[str, str, bool]]:
    """Return the cell of a paper's tags: labels, each with the tag if contested, and True if it is empty."""
    for field in fields:
        for value in (field.values[one] for one in field.column[index]):
            if not (value.is_aside if column.is_levels else not value.id):
                label = f"{field.label} {value.label}" if column.is_levels else value.label
                yield label, field.name if field.name in marks else "", value.is_aside


def byline(paper: Paper) -> str:
    """Return the authors in short: up to three, as the script writes them, too."""
    names = [bare_author(author) for author in paper.authors]
    if "others" in names or len(names) > 3:
        return f"{'; '.join([name for name in names if name != 'others'][:2])} et al."
    return "; ".join(names)


class PaperPages:
    """The pages of single papers; parts that many pages have are made once."""

    def __init__(self, source: Source, environment: "Environment", repository: str) -> None:
        self._source = source
        self._repository = repository
        self._tags = environment.get_template("tag.html.jinja")
        self._metadata = environment.get_template("metadata.html.jinja")
        self._known: dict[tuple[str, str, tuple[str, ...]], str] = {}
        pair = source.taxonomy.crosstabs[0] if source.taxonomy.crosstabs else ()
        self._axes = [facet for facet in source.taxonomy.papers if facet.field in pair and facet.kind is Kind.SINGLE]
        self._related: dict[tuple[tuple[str, str], ...], list[Paper]] = {}
        for paper in source.pool.papers:
            self._related.setdefault(self._cell(paper), []).append(paper)
        self._items: dict[str, str] = {}
        self._bibtex = registry.find("bibtex")
        self._json = json.JSONEncoder(ensure_ascii=False)

    def bibtex(self, paper: Paper) -> str:
        """Return the paper's entry, as `corpus export bibtex` writes it."""
        return str(self._bibtex.write((paper,), self._source.taxonomy, "", self._source.categories))

    def metadata(self, paper: Paper, item: Mapping[str, Any], address: str) -> str:
        """Return what cites the paper in the head of its page, from the paper, its item of CSL and its address."""
        values = {"citation": citation(paper, item, address), "article": article(paper, item, address)}
        return join_html([self._metadata.render(values)])

    def values(self, paper: Paper, bibtex: str, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the template of a paper's page.

        Args:
            paper: The paper.
            bibtex: Its entry.
            item: The same as an item of CSL.
        """
        source = self._source
        cell = self._cell(paper)
        related = self._related[cell] if cell else []
        near = [other for other in related[: MOST_RELATED + 1] if other is not paper][:MOST_RELATED]
        return {
            "paper": paper,
            "authors": [bare_author(author) for author in paper.authors],
            "links": list(_links(paper)),
            "facts": list(_facts(paper, source.taxonomy)),
            "tags": self._tag_rows(paper),
            "evidence": [(item, evidence_about(item, source.tag_labels)) for item in paper.evidence],
            "disputes": source.disputes_of.get(paper.key, ()),
            "claims": [(verdict.claim.id, verdict.claim.claim) for verdict in source.verdicts_of.get(paper.key, ())],
            "near": join_html(map(self._item, near)),
            "related": len(related),
            "cell": (" and ".join(starmap(source.value_label, cell)), papers_address(*cell)),
            "bibtex": bibtex,
            "csl": self._json.encode([item]),
            "issue": issue_address(self._repository, paper.key),
        }

    def _item(self, paper: Paper) -> str:
        """Return a paper in a list of related ones as HTML, made once: a few papers of a cell are in many lists."""
        if paper.key not in self._items:
            self._items[paper.key] = self._tags.module.item(paper.key, paper.title)  # type: ignore[attr-defined]
        return self._items[paper.key]

    def _cell(self, paper: Paper) -> tuple[tuple[str, str], ...]:
        """Return the paper's tags on the two axes that the taxonomy crosses first; empty where one does not apply."""
        tags = tuple((facet.field, str(paper.tags.get(facet.field, NOT_APPLICABLE))) for facet in self._axes)
        return () if NOT_APPLICABLE in dict(tags).values() else tags

    def _tag_rows(self, paper: Paper) -> str:
        """Return the rows of the paper's tags as HTML, those of a facet made once for each value."""
        contested = tuple(_contested_of(paper, self._source))
        rows = []
        for facet in self._source.taxonomy.papers:
            tag = paper.tags.get(facet.field)
            known = (facet.field, tag if isinstance(tag, str) else f"{tag}", contested)
            if known not in self._known:
                shown = list(_meanings(facet, tag, contested))
                made = self._tags.module.rows(facet.label, facet.field, shown)  # type: ignore[attr-defined]
                self._known[known] = made
            rows.append(self._known[known])
        return join_html(rows)


def _meanings(facet: Facet, tag: Any, contested: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each value of a tag: label, meaning, the address of its papers, and the tag if it is contested."""
    own = facet.field if facet.field in contested else ""
    terms = {term.id: term for term in facet.terms}
    if tag is None:
        yield "Not recorded", "", papers_address((facet.field, "")), own
    elif isinstance(tag, dict):
        levels = {level.id: level for level in facet.levels}
        for name, level in tag.items():
            term, how = terms[name], levels[level]
            label, meaning = f"{term_label(term)}: {term_label(how)}", f"{term.definition} {how.definition}"
            yield label, meaning, papers_address((name, level)), name if name in contested else ""
        if not tag:
            yield "None arises", "", "", own
    else:
        for name in tag if isinstance(tag, tuple) else (tag,):
            term = terms.get(name, Term(name, "Not applicable", "The facet does not apply to the record."))
            yield term_label(term), term.definition, papers_address((facet.field, name)), own


def _links(paper: Paper) -> Iterator[tuple[str, str]]:
    """Return the labels and addresses of a paper's pages, each address once."""
    labels = {address: re.sub(r"^https?://(www\.)?|/$", "", address) for address in paper.urls}
    if paper.arxiv_id:
        labels[f"https://arxiv.org/abs/{paper.arxiv_id}"] = f"arXiv {paper.arxiv_id}"
    if paper.doi:
        labels.setdefault(f"https://doi.org/{quote(paper.doi, safe='/')}", f"doi {paper.doi}")
    if paper.openreview_id:
        labels.setdefault(f"https://openreview.net/forum?id={quote(paper.openreview_id)}", "OpenReview")
    if paper.acl_id:
        labels.setdefault(f"https://aclanthology.org/{quote(paper.acl_id)}/", "ACL Anthology")
    if paper.code:
        labels[paper.code] = f"Code: {re.sub(r'^https?://(www[.])?|/$', '', paper.code)}"
    return ((label, address) for address, label in labels.items() if web_address(address))


def _facts(paper: Paper, taxonomy: Taxonomy) -> Iterator[tuple[str, list[tuple[str, str]], list[int]]]:
    """Yield the facts of a paper beside its tags: a field's label, its texts with addresses, and its evidence."""
    for field in taxonomy.paper_fields:
        if field.section is Section.DESCRIPTION and (texts := value_texts(paper.value(field.name))):
            if field.kind is FieldKind.FLAG:
                texts = ("Yes",) if texts == ("true",) else ("No",)
            numbers = [position for position, item in enumerate(paper.evidence, 1) if field.name in item.tags]
            yield field_label(field), [(bare_author(text), web_address(text)) for text in texts], numbers


def issue_address(repository: str, key: str) -> str:
    """Return the address of a new issue about a record, with its words in place; empty without a repository."""
    if not repository:
        return ""
    body = f"Record: {key} (data/papers.yaml)\n\nWhat is wrong:\n\nWhat it should say:\n\nSource (address and place):\n"
    return f"{repository}/issues/new?title={quote(f'Fix {key}: ', safe='')}&body={quote(body, safe='')}"
