"""The papers of a site: the fields to filter and cross them by, the page that lists them, and a page for each."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import islice, permutations, product, starmap
from math import ceil
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from orchtrace_corpus.base.html import inert_json, join_html, web_address
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import CONTESTED, Attribute, ValueKind, paper_attributes
from orchtrace_corpus.corpus.analysis.search import ENDINGS, fields_by_part, text_of_tag, text_without_tags
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, MISSING
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.formats.issue_form import DOES_NOT_ARISE
from orchtrace_corpus.corpus.formats.records import csl_item
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, Section, field_label, value_texts
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Paper, evidence_facets
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Noun, Role, Taxonomy, Term
from orchtrace_corpus.corpus.render.records import evidence_about
from orchtrace_corpus.corpus.rules.tags import cannot_arise
from orchtrace_corpus.corpus.site.metadata import article, citation
from orchtrace_corpus.corpus.site.source import Source, term_label

if TYPE_CHECKING:
    from jinja2 import Environment

PAPERS_PAGE = "papers.html"
CODE = "code"
"""The field of the authors' code: `yes` if its address is known (`--where code!=`), else `no` (`--where code=`)."""
ROWS_OF_A_PAGE = 100
"""The number of papers that a page lists; the page's script shows as many at first."""
PART_SIZE = 250
"""The number of papers whose texts are in one file."""
MAX_RELATED = 12
"""The most papers with the same tags that a paper's page names."""
_FIRST_FIELDS = ("key", "title", "authors")
"""The fields that the script expects first."""


class Group(StrEnum):
    """The heading under which readers find a field."""

    DECISION = "Decision"
    AXIS = "Axes"
    LEVELS = "Levels"
    FACET = "Other tags"
    EVIDENCE = "Evidence"
    RECORD = "Record"


class Value(NamedTuple):
    """A value of a field.

    Attributes:
        id: The value in the data; empty for papers without a value.
        label: The value for readers.
        text: The text in which search finds the value.
    """

    id: str
    label: str
    definition: str = ""
    text: str = ""

    @property
    def is_aside(self) -> bool:
        """Return True for "not applicable" and for papers without a value; such values come after the others."""
        return self.id in MISSING


class Field(NamedTuple):
    """A field with a closed list of values.

    Attributes:
        values: The values; the one for papers without a value is last.
        indices_by_paper: For each paper, the indices of its values.
        facet: If the field is a term to which tags give a level, such as `stop` in `stop=explicit`, the term's facet.
    """

    name: str
    label: str
    group: Group
    values: tuple[Value, ...]
    indices_by_paper: Sequence[tuple[int, ...]]
    facet: Facet | None = None

    def count_by_value(self) -> dict[str, int]:
        """Return the number of papers with each value, by the value's id."""
        counts = Counter(index for indices in self.indices_by_paper for index in indices)
        return {value.id: counts[index] for index, value in enumerate(self.values)}

    def data(self, *, is_short: bool = False) -> dict[str, Any]:
        """Return the field for scripts: for each paper, an index or a list of several; `is_short` omits texts."""
        values = [[value.id, value.label, "" if is_short else value.text] for value in self.values]
        column = [indices[0] if len(indices) == 1 else indices for indices in self.indices_by_paper]
        return {"name": self.name, "label": self.label, "values": values, "column": column}


def read_fields(
    papers: Sequence[Paper], taxonomy: Taxonomy, contested: frozenset[tuple[str, str]] = frozenset()
) -> tuple[Field, ...]:
    """Return the fields of papers: axes, terms with levels, other facets, evidence, facts, code, contested tags.

    Each of the `contested` tags is a pair of a paper's key and a tag.
    """
    attributes = paper_attributes(taxonomy)
    names = _field_names(papers, taxonomy)
    fields = [_field(attributes[name], group, facet, papers) for name, group, facet in names]
    if any(paper.code for paper in papers):
        values = (Value("yes", "Available"), Value("no", "Not known"))
        fields.append(Field(CODE, "Code", Group.RECORD, values, [(0,) if paper.code else (1,) for paper in papers]))
    if contested:
        definition = "Readers disagree on it."
        fields.append(_field_of_tags(CONTESTED, "Contested tags", definition, papers, fields, contested))
    return tuple(fields)


def group_fields(fields: Sequence[Field]) -> list[tuple[Group, list[Field]]]:
    """Return every group with its fields."""
    return [(group, [field for field in fields if field.group is group]) for group in Group]


def _field_names(papers: Sequence[Paper], taxonomy: Taxonomy) -> Iterator[tuple[str, Group, Facet | None]]:
    """Yield the names of fields with their groups, and the facet of a term with levels."""
    for role, group in ((Role.AXIS, Group.AXIS), (Role.FACET, Group.FACET)):
        for facet in taxonomy.papers:
            if facet.role is role and facet.kind is Kind.LEVELS:
                yield from ((term.id, Group.LEVELS, facet) for term in facet.terms)
            elif facet.role is role:
                yield facet.field, group, None
    if any(paper.evidence for paper in papers):
        tags = {facet.field for facet in taxonomy.papers}
        names = (facet.field for facet in evidence_facets(taxonomy))
        yield from ((name, Group.EVIDENCE, None) for name in names if name not in tags)
    if any(paper.published is not None for paper in papers):
        yield "published", Group.RECORD, None
    for field in taxonomy.paper_fields:
        if field.is_filter and (field.name == "year" or any(field.name in paper.more for paper in papers)):
            yield field.name, Group.RECORD, None


def _field(attribute: Attribute, group: Group, facet: Facet | None, papers: Sequence[Paper]) -> Field:
    """Return the field of an attribute; `facet` is given if the attribute is a term with levels."""
    ids_by_paper = [attribute.values(paper) or (ABSENT,) for paper in papers]
    label = attribute.label
    values = []
    if facet is not None:
        term = next(term for term in facet.terms if term.id == attribute.name)
        label = term_label(term)
        for level in attribute.terms:
            definition = f"{term.label}: {term.definition} {level.definition}"
            values.append(Value(level.id, term_label(level), definition, text_of_tag(facet, {term.id: level.id})))
    elif attribute.terms:
        for term in attribute.terms:
            text = text_of_tag(attribute.facet, term.id) if attribute.facet else ""
            values.append(Value(term.id, term_label(term), term.definition, text))
    else:
        present = {value_id for ids in ids_by_paper for value_id in ids} - {ABSENT}
        order = float if attribute.kind is ValueKind.NUMBER else str
        values = [Value(value_id, value_id) for value_id in sorted(present, key=order)]
    if any(ABSENT in ids for ids in ids_by_paper):
        values.append(Value(ABSENT, DOES_NOT_ARISE if facet else "Not recorded"))
    index_by_id = {value.id: index for index, value in enumerate(values)}
    # Papers with the same values share one tuple.
    indices_by_ids = {ids: tuple(index_by_id[value_id] for value_id in ids) for ids in set(ids_by_paper)}
    return Field(attribute.name, label, group, tuple(values), [indices_by_ids[ids] for ids in ids_by_paper], facet)


def candidate_fields(candidates: Sequence[Candidate], taxonomy: Taxonomy) -> tuple[Field, ...]:
    """Return the fields of candidates: the proposal, the fields of papers, and the tags that are open."""
    proposals = [candidate.proposal for candidate in candidates]
    decisions = [decision for decision in Decision if decision in proposals]
    values = tuple(Value(decision.value, decision.value.capitalize()) for decision in decisions)
    indices_by_paper = [(decisions.index(proposal),) for proposal in proposals]
    papers = [candidate.paper for candidate in candidates]
    fields = [Field("proposal", "Proposal", Group.DECISION, values, indices_by_paper), *read_fields(papers, taxonomy)]
    tags = frozenset((candidate.paper.key, tag) for candidate in candidates for tag in candidate.open_tags)
    if tags:
        fields.append(_field_of_tags("open", "Open tags", "Its value is not settled.", papers, fields, tags))
    return tuple(fields)


def _field_of_tags(
    name: str,
    label: str,
    definition: str,
    papers: Sequence[Paper],
    fields: Sequence[Field],
    tags: frozenset[tuple[str, str]],
) -> Field:
    """Return a field whose values are tags, such as the contested ones; `tags` are pairs of a paper's key and a tag.

    The search text of each value is the name of this field, so that a search for `contested` finds these papers.
    """
    names = {tag for _, tag in tags}
    tag_fields = [field for field in fields if field.name in names]
    tag_fields.sort(key=lambda field: field.facet is not None)  # terms with levels come last
    values = [Value(field.name, field.label, definition, name) for field in tag_fields]
    indices_by_paper: list[tuple[int, ...]] = []
    for paper in papers:
        indices = tuple(index for index, value in enumerate(values) if (paper.key, value.id) in tags)
        indices_by_paper.append(indices or (len(values),))
    return Field(name, label, Group.EVIDENCE, (*values, Value(ABSENT, "None")), indices_by_paper)


def papers_address(*filters: tuple[str, str]) -> str:
    """Return the address of the papers that pass filters, each a field and a value."""
    # The script writes the same address: encodeURIComponent keeps these characters, too.
    pairs = (f"{quote(name, safe='!*()')}={quote(value, safe='!*()')}" for name, value in filters)
    return PAPERS_PAGE + "#" + "&".join(pairs)


class MatrixCell(NamedTuple):
    """A pair of values of two fields.

    Attributes:
        number: The number of papers with both values.
        heat: The number in quarters of the largest one, rounded up: 1 to 4. 0 without papers, and if `is_aside`.
        is_impossible: True if a rule of the taxonomy forbids the pair.
        is_aside: True if one of the values is, see `Value.is_aside`.
        address: The page that lists the papers or describes the gap; empty if there is none.
    """

    number: int
    heat: int
    is_impossible: bool
    is_aside: bool
    address: str


class MatrixRow(NamedTuple):
    """A value of one field, with a cell for each value of the other."""

    value: Value
    cells: tuple[MatrixCell, ...]


def count_pairs(rows: Field, columns: Field) -> list[list[int]]:
    """Return the number of papers with each pair of values, by row and column."""
    counts = [[0] * len(columns.values) for _ in rows.values]
    for row_indices, column_indices in zip(rows.indices_by_paper, columns.indices_by_paper, strict=True):
        for row, column in product(row_indices, column_indices):
            counts[row][column] += 1
    return counts


def matrix(
    rows: Field, columns: Field, impossible: frozenset[tuple[str, str]], gap_address: Callable[..., str]
) -> tuple[MatrixRow, ...]:
    """Cross two fields; `gap_address` returns the page of a pair that no paper has, or an empty text."""
    counts = count_pairs(rows, columns)
    largest = 0
    for row, row_counts in zip(rows.values, counts, strict=True):
        for column, count in zip(columns.values, row_counts, strict=True):
            if not row.is_aside and not column.is_aside:
                largest = max(largest, count)
    matrix_rows = []
    for row, row_counts in zip(rows.values, counts, strict=True):
        cells = []
        for column, count in zip(columns.values, row_counts, strict=True):
            is_aside = row.is_aside or column.is_aside
            filters = (rows.name, row.id), (columns.name, column.id)
            address = "" if is_aside and not count else papers_address(*filters)
            if not count and not is_aside:
                address = gap_address(*filters) or address
            heat = 0 if is_aside else heat_level(count, largest)
            is_impossible = not count and (row.id, column.id) in impossible
            cells.append(MatrixCell(count, heat, is_impossible, is_aside, address))
        matrix_rows.append(MatrixRow(row, tuple(cells)))
    return tuple(matrix_rows)


def heat_level(count: int, largest: int) -> int:
    """Return a count in quarters of the largest count, rounded up: 1 to 4; 0 for a count of 0."""
    return ceil(4 * count / largest) if count else 0


def impossible_pairs(fields: Sequence[Field], taxonomy: Taxonomy) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Return the pairs of values that a rule forbids, by the names of their fields."""
    attributes = paper_attributes(taxonomy)
    field_attributes = [attributes[field.name] for field in fields if field.name in attributes]
    impossible = {}
    for rows, columns in permutations(field_attributes, 2):
        pairs = cannot_arise(taxonomy, rows, columns)
        if pairs:
            impossible[rows.name, columns.name] = frozenset(pairs)
    return impossible


class Column(NamedTuple):
    """A column of the table of papers.

    Attributes:
        field_indices: The index of its field, or those of all terms of a facet with levels; empty if it has no field.
        is_list: True if the page exports the values of this column as lists.
        is_levels: True for a facet with levels.
        is_shown: True if the column is shown until readers choose others.
    """

    name: str
    label: str
    field_indices: tuple[int, ...] = ()
    is_list: bool = False
    is_levels: bool = False
    is_shown: bool = False


def read_columns(fields: Sequence[Field], taxonomy: Taxonomy) -> tuple[Column, ...]:
    """Return the columns that readers can choose, the year first; axes, year and code are shown until they choose."""
    attributes = paper_attributes(taxonomy)
    columns: dict[str, Column] = {}
    for index, field in enumerate(fields):
        if field.facet:  # the field is a term with levels; the column is that of its facet
            name, is_axis = field.facet.field, field.facet.role is Role.AXIS
            new_column = Column(name, field.facet.label, is_list=True, is_levels=True, is_shown=is_axis)
            column = columns.get(name, new_column)
            columns[name] = column._replace(field_indices=(*column.field_indices, index))
        elif field.name != CODE:
            facet = attributes[field.name].facet if field.name in attributes else None
            is_shown = field.group is Group.AXIS or field.name == "year"
            is_list = field.name == CONTESTED or (facet is not None and facet.kind is Kind.MANY)
            columns[field.name] = Column(field.name, field.label, (index,), is_list, is_shown=is_shown)
    for record_field in taxonomy.paper_fields:
        name = record_field.name
        if record_field.is_column and name not in columns:
            columns[name] = Column(name, field_label(record_field), is_list=record_field.is_list, is_shown=name == CODE)
    return tuple(sorted(columns.values(), key=lambda column: column.name != "year"))


def cell_value(field: RecordField, paper: Paper) -> str | int | float | list[str]:
    """Return a field for the script: a text, a number or a list; an empty text without a value."""
    value = paper.value(field.name)
    if field.is_list:
        return list(map(bare_author, value_texts(value)))
    if field.kind is FieldKind.NUMBER and isinstance(value, (int, float)):
        return value
    return "".join(value_texts(value))


def data_files(source: Source, fields: Sequence[Field], columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    """Yield the data files of the table's script: one with the fields of all papers, then their texts in parts."""
    papers, paper_fields = source.pool.papers, source.taxonomy.paper_fields
    index_by_name = {field.name: index for index, field in enumerate(fields)}
    contested_by_row = {}  # the indices of the fields of the contested tags
    for row, paper in enumerate(papers):
        tags = [index_by_name[tag] for tag in _contested_tags(paper, source) if tag in index_by_name]
        if tags:
            contested_by_row[row] = tags
    text_fields = [field for name in _FIRST_FIELDS for field in paper_fields if field.name == name]
    text_fields += [field for field in paper_fields if field.is_column and field.name not in _FIRST_FIELDS]
    names = [field.name for field in text_fields]
    searched_names = set()
    other_fields = {}  # searched, but without a column of their own
    for search_part, searched_fields in fields_by_part(source.taxonomy).items():
        searched_names |= {field.name for field in searched_fields}
        other_fields[search_part] = [field for field in searched_fields if field.name not in names]
    parts = [papers[start : start + PART_SIZE] for start in range(0, len(papers), PART_SIZE)]
    data = {
        **filter_data(fields, len(papers), source.taxonomy.noun),
        "columns": columns,
        "names": names,
        "searched": [index for index, name in enumerate(names) if name in searched_names],
        "contested": contested_by_row,
        "rows": ROWS_OF_A_PAGE,
        "file": "papers-data",
        "parts": len(parts),
        "part_size": PART_SIZE,
    }
    yield "papers-data.js", data_script(data)
    for index, part in enumerate(parts):
        records = []
        for paper in part:
            values = [cell_value(field, paper) for field in text_fields]
            records.append([*values, text_without_tags(paper, other_fields)])
        yield f"papers-data-{index + 1}.js", f"corpusAdd({index}, {inert_json(records)});\n"


def filter_data(fields: Sequence[Field], size: int, noun: Noun) -> dict[str, Any]:
    """Return the data with which the script filters a list of records that has no table and no texts."""
    no_table = {"columns": [], "names": [], "parts": 0}
    return {"fields": [field.data() for field in fields], "size": size, "noun": noun, "endings": ENDINGS, **no_table}


def data_script(data: Mapping[str, Any]) -> str:
    """Return the data of a list as a script; pages that are opened from the file system cannot read other files."""
    return f"window.corpusData = {inert_json(data)};\n"


def _contested_tags(paper: Paper, source: Source) -> Iterator[str]:
    tags = (dispute.tag for dispute in source.disputes_by_paper.get(paper.key, ()))
    return (tag for tag in tags if (paper.key, tag) in source.contested)


def table_rows(
    source: Source, fields: Sequence[Field], columns: Sequence[Column], environment: "Environment"
) -> Iterator[tuple[Paper, str, str]]:
    """Yield papers with their authors in short and their cells as HTML; the script makes the same rows."""
    template: Any = environment.get_template("cell.html.jinja").module
    cell_by_tags: dict[tuple[Any, ...], str] = {}  # papers with the same tags share a cell
    for index, paper in enumerate(source.pool.papers):
        contested = frozenset(_contested_tags(paper, source))
        cells = []
        for column in columns:
            text = "" if column.field_indices else "; ".join(value_texts(paper.value(column.name)))
            if text:
                cells.append(template.text(column.label, text, paper.title))
                continue
            column_fields = [fields[field_index] for field_index in column.field_indices]
            own_key = paper.key if contested else ""  # such a cell is not shared: it links to disputes of the paper
            tags = (column.name, own_key, *(field.indices_by_paper[index] for field in column_fields))
            if tags not in cell_by_tags:
                labels = list(_tag_labels(column, column_fields, index, contested))
                cell_by_tags[tags] = template.tags(column.label, labels, paper.key)
            cells.append(cell_by_tags[tags])
        yield paper, byline(paper), join_html(cells)


def _tag_labels(
    column: Column, fields: Sequence[Field], index: int, contested: frozenset[str]
) -> Iterator[tuple[str, str, bool]]:
    """Yield the tags of a paper in a cell: the label, the tag if it is contested, and `Value.is_aside`."""
    for field in fields:
        for value in (field.values[value_index] for value_index in field.indices_by_paper[index]):
            if value.id == ABSENT or (column.is_levels and value.is_aside):
                continue
            label = f"{field.label} {value.label}" if column.is_levels else value.label
            yield label, field.name if field.name in contested else "", value.is_aside


def byline(paper: Paper) -> str:
    """Return up to three authors, or two and `et al.`; the script writes the same."""
    authors = [bare_author(author) for author in paper.authors]
    names = [name for name in authors if name != "others"]
    if len(authors) > 3 or len(names) < len(authors):
        return f"{'; '.join(names[:2])} et al."
    return "; ".join(names)


class PaperPages:
    """Makes the pages of single papers; parts that many pages share are made once."""

    def __init__(self, source: Source, environment: "Environment", repository: str) -> None:
        self._source = source
        self._repository = repository
        macros: Any = environment.get_template("tag.html.jinja").module
        self._tag_row = macros.rows
        self._item = cache(macros.item)  # cached: the pages of papers with the same tags name the same few papers
        self._metadata = environment.get_template("metadata.html.jinja")
        self._rows_by_tag: dict[tuple[str, str, tuple[str, ...]], str] = {}
        pair = source.taxonomy.crosstabs[0] if source.taxonomy.crosstabs else ()
        self._axes = [facet for facet in source.taxonomy.papers if facet.field in pair and facet.kind is Kind.SINGLE]
        self._papers_by_axis_tags: dict[tuple[tuple[str, str], ...], list[Paper]] = {}
        for paper in source.pool.papers:
            self._papers_by_axis_tags.setdefault(self._axis_tags(paper), []).append(paper)
        self._bibtex = registry.find("bibtex")
        self._json = json.JSONEncoder(ensure_ascii=False)

    def page(self, paper: Paper, address: str) -> tuple[str, dict[str, Any], str]:
        """Return a paper's BibTeX entry, the values for the template of its page, and elements for the page's head."""
        source = self._source
        entry = str(self._bibtex.write((paper,), source.taxonomy, "", source.categories))
        item = csl_item(paper, source.taxonomy)
        head = self._metadata.render(citation=citation(paper, item, address), article=article(paper, item, address))
        axis_tags = self._axis_tags(paper)
        verdicts = source.verdicts_by_record.get(paper.key, ())
        related = self._papers_by_axis_tags[axis_tags] if axis_tags else []
        near = islice((other for other in related if other is not paper), MAX_RELATED)
        issue = f"Record: {paper.key} (data/papers.yaml)\n\nWhat is wrong:\n\nWhat it should say:\n\n"
        issue += "Source (address and place):\n"
        values = {
            "paper": paper,
            "authors": [bare_author(author) for author in paper.authors],
            "links": list(_links(paper)),
            "facts": list(_facts(paper, source.taxonomy)),
            "tags": self._tag_rows(paper),
            "evidence": [(evidence, evidence_about(evidence, source.tag_labels)) for evidence in paper.evidence],
            "disputes": source.disputes_by_paper.get(paper.key, ()),
            "claims": [(verdict.claim.id, verdict.claim.claim) for verdict in verdicts],
            "near": join_html(self._item(other.key, other.title) for other in near),
            "related": len(related),  # includes the paper itself, unlike `near`
            "cell": (" and ".join(starmap(source.value_label, axis_tags)), papers_address(*axis_tags)),
            "bibtex": entry,
            "csl": self._json.encode([item]),
            "issue": new_issue(self._repository, f"Fix {paper.key}: ", issue),
        }
        return entry, values, join_html([head])  # joined, so that templates do not escape it

    def _axis_tags(self, paper: Paper) -> tuple[tuple[str, str], ...]:
        """Return the paper's tags on the two axes that the taxonomy crosses first; empty if one does not apply."""
        tags = tuple((facet.field, str(paper.tags.get(facet.field, NOT_APPLICABLE))) for facet in self._axes)
        return () if any(tag == NOT_APPLICABLE for _, tag in tags) else tags

    def _tag_rows(self, paper: Paper) -> str:
        """Return the rows of the paper's tags as HTML; papers with the same tag share its row."""
        contested = tuple(_contested_tags(paper, self._source))
        rows = []
        for facet in self._source.taxonomy.papers:
            tag = paper.tags.get(facet.field)
            key = (facet.field, str(tag), contested)
            if key not in self._rows_by_tag:
                values = list(_tag_values(facet, tag, contested))
                self._rows_by_tag[key] = self._tag_row(facet.label, facet.field, values)
            rows.append(self._rows_by_tag[key])
        return join_html(rows)


def _tag_values(facet: Facet, tag: Any, contested: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each value of a tag: label, meaning, the address of its papers, and the tag's name if it is contested."""
    contested_name = facet.field if facet.field in contested else ""
    terms = {term.id: term for term in facet.terms}
    if tag is None:
        yield "Not recorded", "", papers_address((facet.field, "")), contested_name
    elif isinstance(tag, dict):
        levels = {level.id: level for level in facet.levels}
        for name, level in tag.items():
            label = f"{term_label(terms[name])}: {term_label(levels[level])}"
            definition = f"{terms[name].definition} {levels[level].definition}"
            yield label, definition, papers_address((name, level)), name if name in contested else ""
        if not tag:
            yield "None arises", "", "", contested_name
    else:
        for name in tag if isinstance(tag, tuple) else (tag,):
            term = terms.get(name, Term(name, "Not applicable", "The facet does not apply to the record."))
            yield term_label(term), term.definition, papers_address((facet.field, name)), contested_name


def _links(paper: Paper) -> Iterator[tuple[str, str]]:
    """Yield the labels and addresses of a paper's pages; each address occurs once."""
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
    yield from ((label, address) for address, label in labels.items() if web_address(address))


def new_issue(repository: str, title: str, body: str) -> str:
    """Return the address of the form for a new issue, with a title and a text filled in; empty without a repository."""
    if not repository:
        return ""
    return f"{repository}/issues/new?title={quote(title, safe='')}&body={quote(body, safe='')}"


def _facts(paper: Paper, taxonomy: Taxonomy) -> Iterator[tuple[str, list[tuple[str, str]], list[int]]]:
    """Yield the facts of a paper: a field's label, its texts with addresses, and the numbers of its evidence items."""
    for field in (field for field in taxonomy.paper_fields if field.section is Section.DESCRIPTION):
        texts = value_texts(paper.value(field.name))
        if texts:
            if field.kind is FieldKind.FLAG:
                texts = ("Yes",) if texts == ("true",) else ("No",)
            numbers = [position for position, item in enumerate(paper.evidence, 1) if field.name in item.tags]
            yield field_label(field), [(bare_author(text), web_address(text)) for text in texts], numbers
