"""What a survey has published: the records of its pool, and the columns of its table.

Which records are the published pool is read from `data/published.yaml`: a list, so that a later record
joins the pool by no date. The columns are read from `data/taxonomy.yaml`. A survey's table has names and
spellings of its own, and others read it by them. They are data, so that
`corpus export csv --profile published` writes that table whatever it is called and holds.
"""

from collections.abc import Collection
from collections.abc import Mapping as MappingType
from types import MappingProxyType
from typing import NamedTuple

from orchtrace_corpus.base.findings import Finding, quote, suggestion
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Sequence, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.fields import Report, Schema, checked_text, decode_record
from orchtrace_corpus.corpus.model.tag_rules import items_of, text_of

FIXED = (
    *("key", "title", "first_author", "authors", "affiliation", "year", "venue", "arxiv_id", "doi"),
    *("openreview_id", "acl_id", "urls", "summary", "added", "notes"),
)
"""The fixed fields of a paper that a column can show."""


class PublishedPool(NamedTuple):
    """The records that a survey has published.

    Attributes:
        day: The day of publication, as `YYYY-MM-DD`.
        source: Where it was published.
        papers: The keys of the papers, in the published order.
        exclusions: The ids of the exclusions.
    """

    day: str
    source: str
    papers: tuple[str, ...]
    exclusions: tuple[str, ...] = ()


PUBLISHED_POOL = Schema(
    "the published pool",
    "day",
    {
        "day": fields.iso_date("day"),
        "source": fields.text("source"),
        "papers": fields.text_list("papers"),
        "exclusions": fields.text_list("exclusions"),
    },
    ("day", "source", "papers"),
)


def decode_published(file: YamlFile) -> PublishedPool | None:
    """Decode `data/published.yaml`; problems become findings. None if there are any."""
    node = file.root()
    values = None if node is None else decode_record(node, PUBLISHED_POOL, Report(file))
    return None if values is None or file.findings else PublishedPool(**values)


def missing_records(
    file: YamlFile, pool: PublishedPool, papers: Collection[str] | None, exclusions: Collection[str] | None
) -> tuple[Finding, ...]:
    """The records of the published pool that are not there, each at its place in the list.

    Args:
        file: The file that `pool` was decoded from.
        pool: The published pool.
        papers: The keys that there are; None if that is not known, since a part of the papers cannot be read.
        exclusions: The ids that there are, likewise.
    """
    found = []
    node = file.root()
    for field, noun, known in (("papers", "paper", papers), ("exclusions", "exclusion", exclusions)):
        listed = node.entries[field][1] if type(node) is Mapping and field in node.entries else None
        for name, item in zip(getattr(pool, field), listed.items if type(listed) is Sequence else (), strict=True):
            if known is not None and name not in known:
                message = f"there is no {noun} {quote(name)}, which the published pool has"
                found.append(Finding("F119", message, file.location(item.at), name))
    return tuple(found)


class Column(NamedTuple):
    """A column of the published table.

    Attributes:
        column: Its name in the table's first line.
        field: The field it shows: a fixed one, or a facet of kind `single` or `many`.
        spellings: The table's words for terms, where they are not the terms' ids.
    """

    column: str
    field: str
    spellings: MappingType[str, str] = MappingProxyType({})

    def spelled(self, term: str) -> str:
        """A term in the table's words."""
        return self.spellings.get(term, term)


def _spellings(node: Node, report: Report) -> dict[str, str] | None:
    if type(node) is not Mapping:
        report.add("F103", node.at, "'spellings' must be a mapping from terms to the table's words")
        return None
    words = {term: checked_text("spellings", value, report) for term, (_, value) in node.entries.items()}
    seen: dict[str, str] = {}
    for term, word in words.items():
        if word is not None and seen.setdefault(word, term) != term:
            message = f"spellings give {quote(word)} to {quote(seen[word])}, too; give each term a word of its own"
            report.add("F108", node.entries[term][1].at, message)
    known = {term: word for term, word in words.items() if word is not None}
    return known if len(known) == len(words) else None


COLUMN = Schema(
    "a column",
    "column",
    {"column": fields.text("column"), "field": fields.text("field"), "spellings": _spellings},
    ("column", "field"),
)


def check_columns(taxonomy: Mapping, report: Report) -> None:
    """No column twice, each with a field that a cell can show, spellings for that field's terms only."""
    facets = {text_of(facet, "field"): facet for facet in items_of(taxonomy, "papers")}
    shown = [name for name, facet in facets.items() if name and text_of(facet, "kind") != "levels"]
    taken: set[str] = set()
    for column in items_of(taxonomy, "published"):
        name, field = text_of(column, "column"), text_of(column, "field")
        report.record = name
        if name and name in taken:
            report.add("F108", column.entries["column"][1].at, f"published names {quote(name)} twice; remove one")
        taken.add(name)
        allowed = (*FIXED, *shown)
        if field and field not in allowed:
            hint = suggestion(field, allowed)
            report.add("V101", column.entries["field"][1].at, f"no column can show {quote(field)}{hint}")
        spellings = column.entries.get("spellings")
        if spellings is not None and type(spellings[1]) is Mapping and (field in FIXED or field in shown):
            terms = [text_of(term, "id") for term in items_of(facets[field], "terms")] if field in facets else []
            for term, (key_at, _) in spellings[1].entries.items():
                if term not in (*terms, fields.NOT_APPLICABLE):
                    report.add("V102", key_at, f"{quote(field)} has no term {quote(term)}{suggestion(term, terms)}")
    report.record = ""
