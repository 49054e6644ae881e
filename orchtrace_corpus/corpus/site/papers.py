"""The papers of a site: the page that lists them, with what its script needs, and a page for each."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from orchtrace_corpus.base.html import joined, web_address
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.search import ENDINGS, searched, texts_beside_tags
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.formats.records import csl_item
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, Section, field_label, value_texts
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE, bare_author
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Role, Taxonomy, Term
from orchtrace_corpus.corpus.render.records import evidence_about
from orchtrace_corpus.corpus.site.fields import CODE, CONTESTED, Field, Group, papers_address, term_label
from orchtrace_corpus.corpus.site.source import Source

if TYPE_CHECKING:
    from jinja2 import Environment

ROWS_OF_A_PAGE = 250
"""The papers that a page lists; a script shows as many, and more when asked."""

MOST_RELATED = 12


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
    for record_field in column_fields(taxonomy):
        name = record_field.name
        if name not in columns:
            columns[name] = Column(name, field_label(record_field), is_list=record_field.is_list, is_shown=name == CODE)
    order = ["year", *(name for name in columns if name != "year")]
    return tuple(columns[name] for name in order)


def column_fields(taxonomy: Taxonomy) -> list[RecordField]:
    """Return the fields that can be columns of the table beside the tags."""
    return [field for field in taxonomy.paper_fields if field.is_column]


def cell_value(field: RecordField, paper: Paper) -> str | int | float | list[str]:
    """Return what the table shows of a field: a text, a number or a list; an empty text for nothing."""
    value = paper.value(field.name)
    if field.is_list:
        return list(map(bare_author, value_texts(value)))
    if field.kind is FieldKind.NUMBER and isinstance(value, (int, float)):
        return value
    return "".join(value_texts(value))


def table_data(source: Source, fields: Sequence[Field], columns: Sequence[Column]) -> dict[str, Any]:
    """Return the data of the table's script: every paper with its texts, fields and cells."""
    papers = source.pool.papers
    numbers = {field.name: index for index, field in enumerate(fields)}
    marks: dict[int, list[int]] = {}
    for row, paper in enumerate(papers):
        if places := [numbers[tag] for tag in _contested_of(paper, source) if tag in numbers]:
            marks[row] = places
    texts: dict[str, Sequence[str | int | float | list[str]]] = {
        "key": [paper.key for paper in papers],
        "title": [paper.title for paper in papers],
        "authors": [list(map(bare_author, paper.authors)) for paper in papers],
    }
    texts |= {field.name: [cell_value(field, paper) for paper in papers] for field in column_fields(source.taxonomy)}
    searched_fields = searched(source.taxonomy)
    return {
        "fields": [field.data() for field in fields],
        "columns": [[col.name, col.label, col.fields, col.is_list, col.is_levels, col.is_shown] for col in columns],
        "texts": texts,
        "words": [texts_beside_tags(paper, searched_fields) for paper in papers],
        "endings": ENDINGS,
        "contested": marks,
        "rows": ROWS_OF_A_PAGE,
        "noun": source.taxonomy.noun,
    }


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
        yield Row(paper.key, paper.title, byline(paper), joined(cells))


def _labels(
    column: Column, fields: Sequence[Field], number: int, marks: frozenset[str]
) -> Iterator[tuple[str, str, bool]]:
    """Return the cell of a paper's tags: labels, each with the tag if contested, and True if it is empty."""
    for field in fields:
        for value in (field.values[one] for one in field.column[number]):
            if not (value.is_aside if column.is_levels else not value.id):
                label = f"{field.label} {value.label}" if column.is_levels else value.label
                yield label, field.name if field.name in marks else "", value.is_aside


def byline(paper: Paper) -> str:
    """Return the authors in short: up to three, as the script writes them, too."""
    names = [bare_author(author) for author in paper.authors]
    if "others" in names or len(names) > 3:
        return f"{'; '.join([name for name in names if name != 'others'][:2])} et al."
    return "; ".join(names)


class Related(NamedTuple):
    """The papers that have the same terms on the two axes that the taxonomy crosses first."""

    label: str
    address: str
    papers: list[Paper]


_NOTHING_RELATED = Related("", "", [])


class PaperPages:
    """The pages of single papers; parts that many pages have are made once."""

    def __init__(self, source: Source, environment: "Environment", repository: str) -> None:
        self._source = source
        self._repository = repository
        self._tags = environment.get_template("tag.html.jinja")
        self._known: dict[tuple[str, str, tuple[str, ...]], str] = {}
        pair = source.taxonomy.crosstabs[0] if source.taxonomy.crosstabs else ()
        self._axes = [facet for facet in source.taxonomy.papers if facet.field in pair and facet.kind is Kind.SINGLE]
        self._related: dict[tuple[str, ...], Related] = {}
        for paper in source.pool.papers:
            if cell := self._cell(paper):
                if cell not in self._related:
                    pairs = list(zip(self._axes, cell, strict=True))
                    terms = (term for facet, value in pairs for term in facet.terms if term.id == value)
                    address = papers_address(*((facet.field, value) for facet, value in pairs))
                    self._related[cell] = Related(" and ".join(map(term_label, terms)), address, [])
                self._related[cell].papers.append(paper)
        self._items: dict[str, str] = {}
        self._bibtex = registry.find("bibtex")
        self._json = json.JSONEncoder(ensure_ascii=False)

    def bibtex(self, paper: Paper) -> str:
        """Return the paper's entry, as `corpus export bibtex` writes it."""
        return str(self._bibtex.write((paper,), self._source.taxonomy, "", self._source.categories))

    def values(self, paper: Paper, bibtex: str) -> dict[str, Any]:
        """Return the values of the template of a paper's page.

        Args:
            paper: The paper.
            bibtex: Its entry.
        """
        source = self._source
        related = self._related.get(self._cell(paper), _NOTHING_RELATED)
        near = [other for other in related.papers[: MOST_RELATED + 1] if other is not paper][:MOST_RELATED]
        return {
            "paper": paper,
            "authors": [bare_author(author) for author in paper.authors],
            "links": list(_links(paper)),
            "facts": list(_facts(paper, source.taxonomy)),
            "tags": self._tag_rows(paper),
            "evidence": [(item, evidence_about(item), linked_parts(item.source)) for item in paper.evidence],
            "disputes": [
                (
                    dispute,
                    linked_parts(dispute.source),
                    linked_parts(dispute.agreed.source) if dispute.agreed else (),
                    [(argument, linked_parts(argument.source)) for argument in dispute.arguments],
                )
                for dispute in source.disputes_of.get(paper.key, ())
            ],
            "claims": [(verdict.claim.id, verdict.claim.claim) for verdict in source.verdicts_of.get(paper.key, ())],
            "near": joined(map(self._item, near)),
            "related": related,
            "bibtex": bibtex,
            "csl": self._json.encode([csl_item(paper, source.taxonomy)]),
            "issue": issue_address(self._repository, paper.key),
        }

    def _item(self, paper: Paper) -> str:
        """Return a paper in a list of related ones as HTML, made once: a few papers of a cell are in many lists."""
        if paper.key not in self._items:
            self._items[paper.key] = self._tags.module.item(paper.key, paper.title)  # type: ignore[attr-defined]
        return self._items[paper.key]

    def _cell(self, paper: Paper) -> tuple[str, ...]:
        """Return the paper's terms on the two axes that the taxonomy crosses first; empty where one does not apply."""
        values = tuple(str(paper.tags.get(facet.field, NOT_APPLICABLE)) for facet in self._axes)
        return () if NOT_APPLICABLE in values else values

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
        return joined(rows)


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


def linked_parts(text: str) -> list[tuple[str, str]]:
    """Return the words of a text, each with itself as the address if it is one of the web."""
    return [(part, web_address(part)) for part in text.split(" ")]


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
            numbers = [number for number, item in enumerate(paper.evidence, 1) if field.name in item.tags]
            yield field_label(field), [(bare_author(text), web_address(text)) for text in texts], numbers


def issue_address(repository: str, key: str) -> str:
    """Return the address of a new issue about a record, with its words in place; empty without a repository."""
    if not repository:
        return ""
    body = f"Record: {key} (data/papers.yaml)\n\nWhat is wrong:\n\nWhat it should say:\n\nSource (address and place):\n"
    return f"{repository}/issues/new?title={quote(f'Fix {key}: ', safe='')}&body={quote(body, safe='')}"
