"""Papers and exclusions: listings and single records."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.base.text.layout import Line, Span, display_width, entry, line, separated, wrap
from orchtrace_corpus.base.text.table import Cell, Table, markdown_text
from orchtrace_corpus.corpus.analysis.attributes import CONTESTED, Attribute, ValueKind
from orchtrace_corpus.corpus.model import field_table
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, SearchPart, Section
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, Record, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.query import Query
    from orchtrace_corpus.corpus.analysis.search import Hit
    from orchtrace_corpus.corpus.model.candidates import Candidate
    from orchtrace_corpus.corpus.model.disputes import Change, Dispute

_PIPE_WIDTH = 100
_HEAD_FIELDS = ("key", "id", "title")
"""The fields in the head of a card, which are not listed again below it."""
_CAN_BE_OPTIONAL = frozenset(field.name for field in field_table.PAPER_FIELDS if field.can_be_optional)
"""The required fields that a taxonomy can make optional."""
_ADDRESS = re.compile(r"https?://[^\s<>\\]+").fullmatch
_MARK_NOTE = "?: sources or readers disagree; see corpus show KEY."


def captioned(tables: Iterable[Table], query: "Query", caption: str = "") -> list[Table]:
    """Return tables with a caption: the text given, or the filters in words.

    If there are several tables, the caption of each ends with its title, so that all labels differ.
    """
    tables = list(tables)
    if len(tables) == 1 and caption:
        return [tables[0]._replace(caption=caption)]
    if caption:
        return [table._replace(caption=f"{caption}: {table.title or table.name}") for table in tables]
    verbs: dict[str, str] = {"=": "is", "!=": "is not", "~": "contains"}
    parts = []
    for condition in query.filters:
        labels = {term.id: term.label for term in condition.attribute.terms}
        values = " or ".join(labels.get(value, value) or "absent" for value in condition.alternatives)
        verb = verbs.get(condition.operator, condition.operator)
        parts.append(f"{condition.attribute.label} {verb} {values}")
    filters = f": {'; '.join(parts)}" if parts else ""
    return [table._replace(caption=f"{table.title or table.name.capitalize()}{filters}") for table in tables]


def with_published(table: Table, keys: Sequence[str], changes: Iterable["Change"]) -> Table:
    """Add the published tags to a listing by the reading of the sources, next to the tags that differ.

    The rows are the papers with the `keys`.
    """
    texts = {(change.paper, change.tag): f"{change.sources} (published: {change.published})" for change in changes}
    rows = []
    for key, row in zip(keys, table.rows, strict=True):
        rows.append(tuple(texts.get((key, name), cell) for name, cell in zip(table.columns, row, strict=True)))
    return table._replace(rows=tuple(rows))


def listing(
    name: str, records: Sequence[Record], columns: Sequence[Attribute], title: str = "", marked: Collection[str] = ()
) -> Table:
    """Return records as rows and attributes as columns; contested values of `marked` columns have a question mark."""
    rows = []
    notes: tuple[str, ...] = ()
    for record in records:
        contested = {tag for tag in getattr(record, CONTESTED, ()) if tag in marked}
        if contested:
            notes = (_MARK_NOTE,)
        cells = [(column.name, column_value(record, column)) for column in columns]
        rows.append(tuple(f"{cell or 'none'}?" if name in contested else cell for name, cell in cells))
    return Table(name, title, tuple(column.name for column in columns), tuple(rows), notes)


def with_matches(table: Table, hits: "Sequence[Hit[Any]]", position: int) -> Table:
    """Insert columns into a listing: the parts in which words were found, and the missing words if there are any."""
    columns = {"matched": list(map(_match_text, hits))}
    if any(hit.missing for hit in hits):
        columns["missing"] = [", ".join(hit.missing) for hit in hits]
    rows = []
    for row, texts in zip(table.rows, zip(*columns.values(), strict=True), strict=True):
        rows.append((*row[:position], *texts, *row[position:]))
    names = (*table.columns[:position], *columns, *table.columns[position:])
    notes = table.notes
    if any(match.field in getattr(hit.record, CONTESTED, ()) for hit in hits for match in hit.matches):
        notes = (*notes, _MARK_NOTE)
    return table._replace(columns=names, rows=tuple(rows), notes=notes)


def _match_text(hit: "Hit[Any]") -> str:
    """Return the parts in which words were found, such as `title, stop implicit?`; `?` if the tag is contested."""
    parts_by_name: dict[str, set[SearchPart]] = {}
    for match in hit.matches:
        name = f"{match.field} {match.value}".strip() or match.part.value
        if match.field in getattr(hit.record, CONTESTED, ()):
            name += "?"
        parts_by_name.setdefault(name, set()).add(match.part)
    texts = []
    for name, parts in parts_by_name.items():
        indirect = [part.value for part in (SearchPart.SYNONYM, SearchPart.DEFINITION) if part in parts]
        has_only_indirect = len(indirect) == len(parts)
        texts.append(f"{name} ({indirect[0]})" if has_only_indirect else name)
    return ", ".join(texts)


def card(record: Record, taxonomy: Taxonomy, width: int | None, disputes: Sequence["Dispute"] = ()) -> list[Line]:
    """Return one record for the terminal, with its tags, its evidence and the disputes about it."""
    from orchtrace_corpus.corpus.model.disputes import contested_tags  # not needed by listings

    is_paper = isinstance(record, Paper)
    paper_disputes = _disputes_about(record, disputes)
    contested = {tag for _, tag in contested_tags(paper_disputes)}
    tags = []
    facets = taxonomy.papers if is_paper else taxonomy.exclusions
    for facet in facets:
        text = tag_text(record.tags.get(facet.field), facet)
        terms = [term.id for term in facet.terms if facet.kind is Kind.LEVELS and term.id in contested]
        if facet.field in contested:
            text += " (contested)"
        elif terms:
            text += f" (contested: {', '.join(terms)})"
        tags.append((facet.field, text))
    parts: list[tuple[str, Sequence[str]]] = []
    if isinstance(record, Paper):
        parts += [("evidence", evidence_texts(item)) for item in record.evidence]
    for dispute in paper_disputes:
        arguments = map(str, dispute.arguments)
        parts.append(("dispute", (_readings_text(dispute), dispute.why, dispute.source, *arguments)))
    head = (Span(record.name, "key"), Span("" if is_paper else " (excluded)", "warning"))
    return layout_card(head, record.title, field_entries(record, taxonomy), tags, parts, width)


def layout_card(
    head: Line,
    title: str,
    entries: Sequence[tuple[str, str]],
    tags: Sequence[tuple[str, str]],
    parts: Iterable[tuple[str, Sequence[str]]],
    width: int | None,
) -> list[Line]:
    """Return a record for the terminal; blank lines separate fields, tags and parts, which have several texts each."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    lines = [head, *(line(text, "heading") for text in wrap(title, available))]
    label_width = max(display_width(label) for label, _ in (*entries, *tags)) + 2

    def entry_lines(pairs: Iterable[tuple[str, str]]) -> list[Line]:
        return [part for label, text in pairs for part in entry(label, text, label_width, available)]

    blocks = [[*lines, *entry_lines(entries)], entry_lines(tags)]
    blocks += [entry_lines(zip_longest((name,), texts, fillvalue="")) for name, texts in parts]
    return separated(blocks)


def _disputes_about(record: Record, disputes: Sequence["Dispute"]) -> list["Dispute"]:
    return [dispute for dispute in disputes if isinstance(record, Paper) and dispute.record == record.key]


def card_markdown(record: Record, taxonomy: Taxonomy, disputes: Sequence["Dispute"] = ()) -> str:
    """Return one record as a Markdown section."""
    is_paper = isinstance(record, Paper)
    entries = field_entries(record, taxonomy)
    facets = taxonomy.papers if is_paper else taxonomy.exclusions
    entries += [(facet.field, tag_text(record.tags.get(facet.field), facet)) for facet in facets]
    items = markdown_items(entries, taxonomy.paper_fields if is_paper else field_table.EXCLUSION_FIELDS)
    if isinstance(record, Paper):
        for item in record.evidence:
            location = f", {markdown_text(item.location)}" if item.location else ""
            note = markdown_text(f"{evidence_about(item)}: {item.note}")
            items.append(f"- **evidence** for {note} <{item.source}>{location}")
    for dispute in _disputes_about(record, disputes):
        text = f"{_readings_text(dispute)}. {dispute.why} ({dispute.source})"
        items.append(f"- **dispute**: {markdown_text(text)}")
        items += [f"  - {markdown_text(str(argument))}" for argument in dispute.arguments]
    return markdown_section(record.title, record.name, items)


def markdown_section(title: str, name: str, items: Sequence[str]) -> str:
    """Return a section about one record."""
    return "\n".join((f"## {markdown_text(title)}", "", f"`{name}`", "", *items)) + "\n"


def as_mapping(record: Record) -> dict[str, Any]:
    """Return the record as plain mappings, lists, texts and numbers, in the shape of the data file."""
    mapping: dict[str, Any] = {}
    for field, value in record._asdict().items():
        if field in ("more", "tags"):
            mapping.update(value)
        elif field == "evidence":
            from orchtrace_corpus.corpus.model.record_fields import evidence_fields  # not needed by listings

            mapping["evidence"] = [evidence_fields(item) for item in value]
        elif field == "waive" and value:
            mapping["waive"] = [item._asdict() for item in value]
        elif field == "bibtex" and value:
            mapping["bibtex"] = dict(value)
        elif value not in (None, (), {}) and (value or field not in _CAN_BE_OPTIONAL):
            mapping[field] = value
    return {name: list(value) if isinstance(value, tuple) else value for name, value in mapping.items()}


def markdown_items(entries: Iterable[tuple[str, str]], record_fields: Iterable[RecordField]) -> list[str]:
    """Return labels and texts as items of a list in Markdown; URLs in fields of URLs are links."""
    url_fields = {field.name for field in record_fields if field.kind in (FieldKind.URL, FieldKind.URLS)}
    items = []
    for label, text in entries:
        markdown = markdown_text(text)
        if label in url_fields:
            markdown = " ".join(f"<{word}>" if _ADDRESS(word) else markdown_text(word) for word in text.split())
        items.append(f"- **{markdown_text(label)}**: {markdown}")
    return items


def whole_mapping(record: Record, disputes: Sequence["Dispute"] = ()) -> dict[str, Any]:
    """Return the record with its kind (`paper` or `exclusion`) and the disputes about it, if any."""
    kind = "paper" if isinstance(record, Paper) else "exclusion"
    mapping: dict[str, Any] = {"kind": kind, **as_mapping(record)}
    for dispute in _disputes_about(record, disputes):
        readings = [{"values": list(reading.values), "by": reading.by} for reading in dispute.readings]
        fields: dict[str, Any] = {"tag": dispute.tag, "stands": dispute.stands, "readings": readings}
        fields |= {"why": dispute.why, "source": dispute.source, "state": dispute.state.value}
        if dispute.agreed is not None:
            fields["agreed"] = dispute.agreed._asdict()
        if dispute.arguments:
            from orchtrace_corpus.corpus.model.record_fields import argument_fields  # not needed by listings

            fields["arguments"] = argument_fields(dispute.arguments)
        mapping.setdefault("disputes", []).append(fields)
    return mapping


def _readings_text(dispute: "Dispute") -> str:
    """Return the current value, the readings with their readers, and the value that the readers agree on, if any."""
    from orchtrace_corpus.corpus.model.disputes import contested_tags  # not needed by listings

    agreed = dispute.agreed
    parts = [f"{dispute.state}, {dispute.tag}: {dispute.stands} stands"]
    parts += [f"{reading} by {reading.by}" for reading in dispute.readings]
    if agreed is not None:
        parts.append(f"agreed by {agreed.rule_text}: {agreed.value} ({agreed.source})")
    elif contested_tags((dispute,)):
        parts.append(f"not agreed on, so --reading sources keeps {dispute.stands}")
    return "; ".join(parts)


def flat_values(value: Any, path: str = "") -> Iterator[tuple[str, Cell]]:
    """Yield each value with its path; a list of texts is one value, and mappings in a list are numbered from 1."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from flat_values(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for position, part in enumerate(value, 1):
            yield from flat_values(part, f"{path}.{position}")
    else:
        yield path, tuple(value) if isinstance(value, list) else value


def column_value(record: "Record | Candidate", column: Attribute) -> Cell:
    """Return the value of a record in a column: a number, a list or a text; None without a value."""
    if column.facet is not None and column.facet.kind is Kind.LEVELS and column.name == column.facet.field:
        tag = record.tags.get(column.name)
        return tuple(f"{term}={level}" for term, level in tag.items()) if isinstance(tag, dict) else None
    values = column.values(record)
    if not values:
        return None
    if column.kind is ValueKind.NUMBER:
        return int(values[0]) if values[0].isdigit() else float(values[0])
    return values if column.has_several else values[0]


def field_entries(record: Record, taxonomy: Taxonomy) -> list[tuple[str, str]]:
    """Return the fields of a record that have a value, without its tags, as names and texts."""
    record_fields = taxonomy.paper_fields if isinstance(record, Paper) else field_table.EXCLUSION_FIELDS
    listed = [field for field in record_fields if field.kind is not FieldKind.NESTED and field.name not in _HEAD_FIELDS]
    listed.sort(key=lambda field: field.section is Section.BOOKKEEPING)  # at the end
    entries = []
    for field in listed:
        value = record.value(field.name) if isinstance(record, Paper) else getattr(record, field.name)
        texts = field_table.value_texts(value)
        if field.kind is FieldKind.AUTHORS:
            texts = tuple(map(bare_author, texts))
        separator = " " if field.kind is FieldKind.URLS else "; "
        if texts:
            entries.append((field.name, separator.join(texts)))
    if isinstance(record, Paper) and record.bibtex:
        entries.append(("bibtex", ", ".join(f"{name}: {latex}" for name, latex in record.bibtex.items())))
    return entries


def tag_text(tag: Tag | None, facet: Facet) -> str:
    """Return a tag in words, with the codes of its terms."""
    if tag is None:
        return "(absent)"
    if isinstance(tag, str):
        return _term_text(tag, facet.terms)
    if isinstance(tag, tuple):
        return ", ".join(_term_text(term, facet.terms) for term in tag)
    return ", ".join(f"{_term_text(term, facet.terms)} {level}" for term, level in tag.items()) or "none arises"


def _term_text(name: str, terms: Sequence[Term]) -> str:
    for term in terms:
        if term.id == name and term.code:
            return f"{term.code} {name}"
    return name


def evidence_texts(item: Evidence) -> tuple[str, str, str]:
    """Return three lines on an item of evidence: its tags and weight, its note, and its source."""
    source = f"{item.source}, {item.location}" if item.location else item.source
    return f"for {evidence_about(item)}", item.note, source


_VERDICTS = {
    EvidenceVerdict.PARTLY: "the source bears it out in part",
    EvidenceVerdict.NOT_FOUND: "the source does not say",
    EvidenceVerdict.CONTRADICTED: "the source contradicts it",
}
"""The words for verdicts other than `supported`."""


def evidence_about(item: Evidence, labels: Mapping[str, str] = {}) -> str:
    """Return the tags that an item is about, with its level, confidence and verdict; `labels` replace names of tags."""
    weight = f"{item.level}, {item.confidence} confidence"
    if item.copy:
        weight += ", read in a copy"
    if item.verdict in _VERDICTS:
        weight += f"; {_VERDICTS[item.verdict]}"
    return f"{', '.join(labels.get(tag, tag) for tag in item.tags)} ({weight})"
