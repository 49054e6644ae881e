"""Candidates: a listing, and single ones with proposal, reason and readings; next to papers and exclusions."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.base.text.layout import Line, Span, entry, first_names_and_more, line, separated, wrap
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.corpus.analysis.attributes import Attribute
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision, SourceReading, screening_facets
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING, Dispute
from orchtrace_corpus.corpus.model.records import Exclusion, Record
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy
from orchtrace_corpus.corpus.render import records as records_render

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.reading_order import Score
    from orchtrace_corpus.corpus.intake.screening import Neighbours
    from orchtrace_corpus.corpus.model.codebook import Protocol

_PIPE_WIDTH = 100
_LABEL_WIDTH = 12


def listing(
    candidates: Sequence[Candidate], columns: Sequence[Attribute], title: str = "", scores: "Sequence[Score]" = ()
) -> Table:
    """Return candidates as rows and attributes as columns; `scores` add likelihoods and words."""
    rows = [tuple(records_render.column_value(candidate, column) for column in columns) for candidate in candidates]
    names = tuple(column.name for column in columns)
    if scores:
        names = (*names, "likely", "by_words")
        rows = [(*row, f"{score.likelihood:.2f}", _words_text(score)) for row, score in zip(rows, scores, strict=False)]
    return Table("candidates", title, names, tuple(rows), uncut="key")


def screening_card(
    candidate: Candidate,
    abstract: str,
    neighbours: "Neighbours",
    protocol: "Protocol | None",
    taxonomy: Taxonomy,
    width: int | None,
    score: "Score | None" = None,
) -> list[Line]:
    """Return what a person needs to decide on a candidate: its record, its abstract, similar records, and the rules.

    Without a protocol, rules are not shown. `score` is the candidate's in the likely order.
    """
    available, paper = min(width or _PIPE_WIDTH, _PIPE_WIDTH), candidate.paper
    lines: list[Line] = [line(text, "heading") for text in wrap(paper.title, available)]
    authors = first_names_and_more(list(paper.authors), 6, " and {} more")
    venue = f"{paper.venue or ''} {paper.year or ''}".strip()
    entries = [("key", candidate.name), ("by", "; ".join(part for part in (authors, venue) if part))]
    entries += [("at", url) for url in paper.urls[:2]]
    entries += [("found by", ", ".join(candidate.found_by) or "a search by hand"), ("found", candidate.found)]
    if candidate.proposal is not Decision.UNREAD:
        entries.append(("proposed", f"{candidate.proposal}: {candidate.reason}"))
    if paper.summary:
        entries.append(("summary", paper.summary))
    entries += [("reading", "; ".join(_reading_lines(reading))) for reading in candidate.readings]
    if score:
        entries.append(("likely", f"{score.likelihood:.2f} by {_words_text(score)}"))
    entries.append(("abstract", abstract or "None is stored; corpus discover stores abstracts."))
    for label, similar_records in (("alike", neighbours.papers), ("excluded", neighbours.exclusions)):
        for index, (record, similarity) in enumerate(similar_records):
            if isinstance(record, Exclusion):
                verdict = record.reason
            else:
                facets = [facet for facet in taxonomy.papers if facet.field in record.tags]
                tags = [f"{each.field} {records_render.tag_text(record.tags[each.field], each)}" for each in facets]
                verdict = "; ".join(tags)
            text = f"{similarity:.2f} {record.name}: {record.title}. {verdict}"
            entries.append((label if index == 0 else "", text))
    for label, text in entries:
        lines += entry(label, text, _LABEL_WIDTH, available)
    if protocol:
        lines += rule_lines(protocol, width)
    return lines


def rule_lines(protocol: "Protocol", width: int | None) -> list[Line]:
    """Return the rules of inclusion and exclusion."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    lines: list[Line] = []
    for label, rules in (("include if", protocol.include), ("exclude if", protocol.exclude)):
        for index, rule in enumerate(rules):
            lines += entry("" if index else label, rule.rule, _LABEL_WIDTH, available)
    return lines


def _words_text(score: "Score") -> str:
    """Return the words that explain a score: `+` if they speak for inclusion, else `-`."""
    return ", ".join(f"{'+' if share > 0 else '-'}{word}" for word, share in score.words)


def cards(
    records: Sequence[Record],
    candidates: Sequence[Candidate],
    taxonomy: Taxonomy,
    width: int | None,
    disputes: Sequence[Dispute] = (),
) -> list[Line]:
    """Return records and candidates for the terminal, separated by blank lines."""
    blocks = [records_render.card(record, taxonomy, width, disputes) for record in records]
    for candidate in candidates:
        head = (Span(candidate.name, "key"), Span(f" (candidate: {candidate.proposal})", "warning"))
        tags = [(facet.field, _tag_text(candidate, facet)) for facet in taxonomy.papers]
        entries = list(_field_entries(candidate, taxonomy))
        parts = [("evidence", tuple(records_render.evidence_texts(item))) for item in candidate.paper.evidence]
        parts += [("reading", tuple(_reading_lines(reading))) for reading in candidate.readings]
        blocks.append(records_render.layout_card(head, candidate.paper.title, entries, tags, parts, width))
    return separated(blocks)


def cards_markdown(
    records: Sequence[Record], candidates: Sequence[Candidate], taxonomy: Taxonomy, disputes: Sequence[Dispute] = ()
) -> str:
    """Return records and candidates as Markdown sections."""
    sections = [records_render.card_markdown(record, taxonomy, disputes) for record in records]
    for candidate in candidates:
        entries = [("candidate", candidate.proposal.value), *_field_entries(candidate, taxonomy)]
        entries += [(facet.field, _tag_text(candidate, facet)) for facet in taxonomy.papers]
        entries += [("evidence", ". ".join(records_render.evidence_texts(item))) for item in candidate.paper.evidence]
        entries += [("reading", "; ".join(_reading_lines(reading))) for reading in candidate.readings]
        items = records_render.markdown_items(entries, taxonomy.paper_fields)
        sections.append(records_render.markdown_section(candidate.paper.title, candidate.name, items))
    return "\n".join(sections)


def cards_data(
    records: Sequence[Record], candidates: Sequence[Candidate], disputes: Sequence[Dispute] = ()
) -> list[dict[str, Any]]:
    """Return records and candidates as mappings, each with its kind: `paper`, `exclusion` or `candidate`."""
    mappings = [records_render.whole_mapping(record, disputes) for record in records]
    return [*mappings, *(_mapping(candidate) for candidate in candidates)]


def cards_table(records: Sequence[Record], candidates: Sequence[Candidate], disputes: Sequence[Dispute]) -> Table:
    """Return records and candidates with a row for each value: record, field and value."""
    rows: list[tuple[Cell, ...]] = []
    for record, mapping in zip((*records, *candidates), cards_data(records, candidates, disputes), strict=True):
        values = records_render.flat_values(mapping)
        rows += [(record.name, field, value) for field, value in values if field != "kind"]
    return Table("records", "", ("record", "field", "value"), tuple(rows))


def _mapping(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as plain mappings, lists and texts, with the names of its open tags."""
    paper = records_render.as_mapping(candidate.paper)
    mapping: dict[str, Any] = {"kind": "candidate"}
    mapping |= {name: value for name, value in paper.items() if value not in ([], "")}
    mapping |= {"proposal": candidate.proposal.value, "reason": candidate.reason, "found": candidate.found}
    mapping |= candidate.screening
    readings = []
    for reading in candidate.readings:
        fields = {name: value for name, value in reading._asdict().items() if value}
        if reading.copy:
            fields["copy"] = "yes"
        readings.append({name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()})
    return mapping | {"open": sorted(candidate.open_tags), "readings": readings}


def _field_entries(candidate: Candidate, taxonomy: Taxonomy) -> Iterator[tuple[str, str]]:
    """Yield the fields of a candidate, without its tags and its readings, as names and texts."""
    yield from records_render.field_entries(candidate.paper, taxonomy)
    if candidate.reason:
        yield "reason", candidate.reason
    yield "found", candidate.found
    if candidate.found_by:
        yield "found by", ", ".join(candidate.found_by)
    for facet in screening_facets(taxonomy):
        if facet.field in candidate.screening:
            yield facet.field, records_render.tag_text(candidate.screening[facet.field], facet)


def _tag_text(candidate: Candidate, facet: Facet) -> str:
    """Return a tag in words, or the readings of an open tag."""
    tag = candidate.tags.get(facet.field)
    if facet.kind is not Kind.LEVELS:
        if tag is None:
            return _open_text(candidate, facet.field) or "(absent)"
        return records_render.tag_text(tag, facet)
    levels = tag if isinstance(tag, dict) else {}
    texts = []
    for term in facet.terms:
        level = levels.get(term.id, NOT_ARISING)
        if candidate.is_open(term.id):
            level = _open_text(candidate, term.id) or "(open)"
        texts.append(f"{term.code} {term.id} {level}".strip())
    return ", ".join(texts)


def _open_text(candidate: Candidate, tag: str) -> str:
    """Return the readings of an open tag; empty if there is none."""
    readings = "; ".join(f"{value} by {reader}" for value, reader in candidate.values_with_readers(tag))
    return f"(open: {readings})" if readings else ""


def _reading_lines(reading: SourceReading) -> Iterator[str]:
    proposal = f", {reading.inclusion}" if reading.inclusion else ""
    copy = " (a copy)" if reading.copy else ""
    yield f"{reading.by}{proposal}: {reading.level}{copy}, {reading.confidence} confidence"
    if reading.tags:
        yield ", ".join(f"{tag} {value}" for tag, value in reading.tags.items())
    yield reading.note
    places = [place for place in (*reading.sources, reading.location) if place]
    if places:
        yield ", ".join(places)
