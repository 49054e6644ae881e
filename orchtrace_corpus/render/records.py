"""Papers and exclusions: listings and single records."""

from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.pool.attributes import Attribute, ValueKind
from orchtrace_corpus.pool.model import Evidence, Exclusion, Paper, Record, Tag
from orchtrace_corpus.pool.taxonomy import Facet, Kind, Taxonomy, Term
from orchtrace_corpus.render.layout import Line, Span, display_width, line, pad, wrap
from orchtrace_corpus.render.table import Cell, Table, csv, envelope, markdown_text

_PIPE_WIDTH = 100


def listing(name: str, records: Sequence[Record], columns: Sequence[Attribute], title: str = "") -> Table:
    """Records as rows, the values of attributes as columns."""
    rows = tuple(tuple(_cell(record, column) for column in columns) for record in records)
    return Table(name, title, tuple(column.name for column in columns), rows)


def card(record: Record, taxonomy: Taxonomy, width: int | None) -> list[Line]:
    """One record for people, with the meaning of its tags."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    name = record.key if isinstance(record, Paper) else record.id
    facets = taxonomy.papers if isinstance(record, Paper) else taxonomy.exclusions
    status = "" if isinstance(record, Paper) else " (excluded)"
    lines: list[Line] = [(Span(name, "key"), Span(status, "warning"))]
    lines += [line(text, "heading") for text in wrap(record.title, available)]
    entries = [(label, text) for label, text in _fixed_entries(record) if text]
    tagged = [(facet.field, _tag_text(record.tags.get(facet.field), facet)) for facet in facets]
    label_width = max(display_width(label) for label, _ in (*entries, *tagged)) + 2
    for label, text in (*entries, ("", ""), *tagged):
        lines += _entry(label, text, label_width, available)
    for item in record.evidence if isinstance(record, Paper) else ():
        lines += [line(), *_evidence(item, label_width, available)]
    return lines


def card_markdown(record: Record, taxonomy: Taxonomy) -> str:
    """One record as a Markdown section."""
    name = record.key if isinstance(record, Paper) else record.id
    facets = taxonomy.papers if isinstance(record, Paper) else taxonomy.exclusions
    entries = [(label, text) for label, text in _fixed_entries(record) if text]
    entries += [(facet.field, _tag_text(record.tags.get(facet.field), facet)) for facet in facets]
    items = [f"- **{markdown_text(label)}**: {markdown_text(text)}" for label, text in entries]
    for item in record.evidence if isinstance(record, Paper) else ():
        about = f"{', '.join(item.tags)} ({item.level}, {item.confidence} confidence)"
        items.append(f"- **evidence** for {markdown_text(f'{about}: {item.note}')} <{item.source}>")
    return "\n".join((f"## {markdown_text(record.title)}", "", f"`{name}`", "", *items)) + "\n"


def records_json(records: Sequence[Record], schema: str) -> str:
    """Records for programs, whole, each with its kind: `paper` or `exclusion`."""
    return envelope(schema, {"records": [{"kind": _kind(record), **as_mapping(record)} for record in records]})


def cards_csv(records: Sequence[Record]) -> str:
    """Records as record, field and value, a line for each value that is no list."""
    rows: list[tuple[Cell, ...]] = []
    for record in records:
        name = record.key if isinstance(record, Paper) else record.id
        rows += [(name, field, value) for field, value in _flat(as_mapping(record))]
    return csv(("record", "field", "value"), rows)


def as_mapping(record: Record) -> dict[str, Any]:
    """The record as plain mappings, lists, texts and numbers, in the data file's shape."""
    mapping: dict[str, Any] = {}
    for field, value in record._asdict().items():
        if field == "tags":
            mapping.update({facet: list(tag) if isinstance(tag, tuple) else tag for facet, tag in value.items()})
        elif field == "evidence":
            mapping["evidence"] = [_evidence_mapping(item) for item in value]
        elif field == "waive":
            mapping.update({"waive": [item._asdict() for item in value]} if value else {})
        elif value is not None:
            mapping[field] = list(value) if isinstance(value, tuple) else value
    return mapping


def _evidence_mapping(item: Evidence) -> dict[str, Any]:
    mapping = {**item._asdict(), **item.more, "tags": list(item.tags)}
    del mapping["more"]
    return mapping


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Cell]]:
    """Values with the path to each; a list of texts is one value, and mappings in a list are numbered from 1."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, part in enumerate(value, 1):
            yield from _flat(part, f"{path}.{number}")
    else:
        yield path, tuple(value) if isinstance(value, list) else value


def _kind(record: Record) -> str:
    return "paper" if isinstance(record, Paper) else "exclusion"


def _cell(record: Record, column: Attribute) -> Cell:
    if column.facet is not None and column.facet.kind is Kind.LEVELS and column.name == column.facet.field:
        tag = record.tags.get(column.name)
        return tuple(f"{term}={level}" for term, level in tag.items()) if isinstance(tag, dict) else None
    values = column.values(record)
    if not values:
        return None
    if column.kind is ValueKind.NUMBER:
        return int(values[0])
    is_list = column.name in ("authors", "urls") or (column.facet is not None and column.facet.kind is Kind.MANY)
    return values if is_list else values[0]


def _fixed_entries(record: Record) -> list[tuple[str, str]]:
    if isinstance(record, Exclusion):
        return [
            ("identifier", record.identifier),
            ("url", record.url),
            ("screened", record.screened),
            ("reason", record.reason),
            ("promoted_to", record.promoted_to or ""),
        ]
    return [
        ("authors", "; ".join(record.authors)),
        ("affiliation", record.affiliation or ""),
        ("year", str(record.year)),
        ("venue", record.venue),
        *((name, getattr(record, name) or "") for name in ("arxiv_id", "doi", "openreview_id", "acl_id")),
        ("urls", " ".join(record.urls)),
        ("summary", record.summary),
        ("notes", record.notes or ""),
        ("added", record.added),
    ]


def _tag_text(tag: Tag | None, facet: Facet) -> str:
    if tag is None:
        return "(absent)"
    if isinstance(tag, str):
        return _term_text(tag, facet.terms)
    if isinstance(tag, tuple):
        return ", ".join(_term_text(term, facet.terms) for term in tag)
    return ", ".join(f"{_term_text(term, facet.terms)} {level}" for term, level in tag.items()) or "none arises"


def _term_text(term: str, terms: Sequence[Term]) -> str:
    code = next((known.code for known in terms if known.id == term), "")
    return f"{code} {term}" if code else term


def _entry(label: str, text: str, label_width: int, width: int) -> list[Line]:
    first, *rest = wrap(text, width, first=pad(label, label_width), rest=" " * label_width)
    return [(Span(first[:label_width], "muted"), Span(first[label_width:])), *(line(part) for part in rest)]


def _evidence(item: Evidence, label_width: int, width: int) -> list[Line]:
    about = f"for {', '.join(item.tags)}: {item.level}, {item.confidence} confidence"
    return [
        *_entry("evidence", about, label_width, width),
        *_entry("", item.note, label_width, width),
        *_entry("", item.source, label_width, width),
    ]
