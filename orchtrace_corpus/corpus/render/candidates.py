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
    from orchtrace_corpus.corpus.analysis.reading_order import Place
    from orchtrace_corpus.corpus.intake.screening import Neighbours
    from orchtrace_corpus.corpus.model.codebook import Protocol

_PIPE_WIDTH = 100
_LABEL_WIDTH = 12


def listing(
    candidates: Sequence[Candidate], columns: Sequence[Attribute], title: str = "", places: "Sequence[Place]" = ()
) -> Table:
    """Return candidates as rows and attributes as columns; with places in the likely order, their scores and words."""
    rows = [tuple(records_render.column_value(candidate, column) for column in columns) for candidate in candidates]
    names = tuple(column.name for column in columns)
    if places:
        names = (*names, "likely", "by_words")
        rows = [(*row, f"{place.score:.2f}", _words_text(place)) for row, place in zip(rows, places, strict=False)]
    return Table("candidates", title, names, tuple(rows), whole="key")


def screening_card(
    candidate: Candidate,
    abstract: str,
    neighbours: "Neighbours",
    protocol: "Protocol | None",
    taxonomy: Taxonomy,
    width: int | None,
    place: "Place | None" = None,
) -> list[Line]:
    """Return what a person needs to decide on a candidate: its record, its abstract, similar records, and the rules.

    Without a protocol, rules are not shown; `place` is its place in the likely order.
    """
    available, paper = min(width or _PIPE_WIDTH, _PIPE_WIDTH), candidate.paper
    lines: list[Line] = [line(text, "heading") for text in wrap(paper.title, available)]
    authors = first_names_and_more(list(paper.authors), 6, " and {} more")
    venue = " ".join(part for part in (paper.venue, str(paper.year or "")) if part)
    entries = [("key", candidate.name), ("by", "; ".join(part for part in (authors, venue) if part))]
    entries += [("at", url) for url in paper.urls[:2]]
    entries += [("found by", ", ".join(candidate.found_by) or "a search by hand"), ("found", candidate.found)]
    if candidate.proposal is not Decision.UNREAD:
        entries.append(("proposed", f"{candidate.proposal}: {candidate.reason}"))
    entries += [("summary", paper.summary)] if paper.summary else []
    entries += [("reading", "; ".join(_reading(reading))) for reading in candidate.readings]
    entries += [("likely", f"{place.score:.2f} by {_words_text(place)}")] if place else []
    entries.append(("abstract", abstract or "None is stored; corpus discover stores abstracts."))
    for label, records in (("alike", neighbours.papers), ("excluded", neighbours.exclusions)):
        for record, likeness in records:
            if isinstance(record, Exclusion):
                verdict = record.reason
            else:
                facets = {facet.field: facet for facet in taxonomy.papers if facet.field in record.tags}
                texts = {name: records_render.tag_text(record.tags[name], facet) for name, facet in facets.items()}
                verdict = "; ".join(f"{name} {text}" for name, text in texts.items())
            entries.append((label, f"{likeness:.2f} {record.name}: {record.title}. {verdict}"))
            label = ""
    lines += [part for label, text in entries for part in entry(label, text, _LABEL_WIDTH, available)]
    return lines + (rule_lines(protocol, width) if protocol else [])


def rule_lines(protocol: "Protocol", width: int | None) -> list[Line]:
    """Return the rules of inclusion and exclusion."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    lines: list[Line] = []
    for label, rules in (("include if", protocol.include), ("exclude if", protocol.exclude)):
        for index, rule in enumerate(rules):
            lines += entry("" if index else label, rule.rule, _LABEL_WIDTH, available)
    return lines


def _words_text(place: "Place") -> str:
    """Return the words that decide a place in the likely order: a plus for inclusion, a minus against it."""
    return ", ".join(f"{'+' if share > 0 else '-'}{word}" for word, share in place.words)


def cards(
    records: Sequence[Record],
    candidates: Sequence[Candidate],
    taxonomy: Taxonomy,
    width: int | None,
    disputes: Sequence[Dispute] = (),
) -> list[Line]:
    """Return records and candidates for the terminal, separated by blank lines."""
    shown = [records_render.card(record, taxonomy, width, disputes) for record in records]
    for candidate in candidates:
        head = (Span(candidate.name, "key"), Span(f" (candidate: {candidate.proposal})", "warning"))
        tagged = [(facet.field, _tag(candidate, facet)) for facet in taxonomy.papers]
        entries, evidence = list(_entries(candidate, taxonomy)), candidate.paper.evidence
        parts = [("evidence", tuple(records_render.evidence_texts(item))) for item in evidence]
        parts += [("reading", tuple(_reading(reading))) for reading in candidate.readings]
        shown.append(records_render.laid_out(head, candidate.paper.title, entries, tagged, parts, width))
    return separated(shown)


def cards_markdown(
    records: Sequence[Record], candidates: Sequence[Candidate], taxonomy: Taxonomy, disputes: Sequence[Dispute] = ()
) -> str:
    """Return the same as Markdown sections."""
    sections = [records_render.card_markdown(record, taxonomy, disputes) for record in records]
    for candidate in candidates:
        entries = [("candidate", candidate.proposal.value), *_entries(candidate, taxonomy)]
        entries += [(facet.field, _tag(candidate, facet)) for facet in taxonomy.papers]
        entries += [("evidence", ". ".join(records_render.evidence_texts(item))) for item in candidate.paper.evidence]
        entries += [("reading", "; ".join(_reading(reading))) for reading in candidate.readings]
        items = records_render.markdown_items(entries, taxonomy.paper_fields)
        sections.append(records_render.markdown_section(candidate.paper.title, candidate.name, items))
    return "\n".join(sections)


def cards_data(
    records: Sequence[Record], candidates: Sequence[Candidate], disputes: Sequence[Dispute] = ()
) -> list[dict[str, Any]]:
    """Return the same for programs, each with its kind: `paper`, `exclusion` or `candidate`."""
    whole = [records_render.whole_mapping(record, disputes) for record in records]
    return [*whole, *map(_mapping, candidates)]


def cards_table(records: Sequence[Record], candidates: Sequence[Candidate], disputes: Sequence[Dispute]) -> Table:
    """Return the same with a row for each value: record, field and value."""
    rows: list[tuple[Cell, ...]] = []
    for record, mapping in zip((*records, *candidates), cards_data(records, candidates, disputes), strict=True):
        values = records_render.flat_values(mapping)
        rows += [(record.name, field, value) for field, value in values if field != "kind"]
    return Table("records", "", ("record", "field", "value"), tuple(rows))


def _mapping(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as plain mappings, lists and texts, with the names of its open tags."""
    paper = {name: value for name, value in records_render.as_mapping(candidate.paper).items() if value not in ([], "")}
    readings = []
    for reading in candidate.readings:
        fields = {name: value for name, value in reading._asdict().items() if value}
        fields |= {"copy": "yes"} if reading.copy else {}
        readings.append({name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()})
    own = {"proposal": candidate.proposal.value, "reason": candidate.reason, "found": candidate.found}
    awaiting = {"open": sorted(candidate.open_tags), "readings": readings}
    return {"kind": "candidate", **paper, **own, **candidate.screening, **awaiting}


def _entries(candidate: Candidate, taxonomy: Taxonomy) -> Iterator[tuple[str, str]]:
    """Yield the fields of a candidate besides its tags and its readings."""
    yield from records_render.field_entries(candidate.paper, taxonomy)
    if candidate.reason:
        yield "reason", candidate.reason
    yield "found", candidate.found
    if candidate.found_by:
        yield "found by", ", ".join(candidate.found_by)
    for facet in screening_facets(taxonomy):
        if facet.field in candidate.screening:
            yield facet.field, records_render.tag_text(candidate.screening[facet.field], facet)


def _tag(candidate: Candidate, facet: Facet) -> str:
    """Return a tag in words; an open one with its readings."""
    tag = candidate.tags.get(facet.field)
    if facet.kind is not Kind.LEVELS:
        return records_render.tag_text(tag, facet) if tag is not None else _open(candidate, facet.field) or "(absent)"
    levels = tag if isinstance(tag, dict) else {}
    texts = []
    for term in facet.terms:
        level = levels.get(term.id, NOT_ARISING)
        if candidate.is_open(term.id):
            level = _open(candidate, term.id) or "(open)"
        texts.append(f"{term.code} {term.id} {level}".strip())
    return ", ".join(texts)


def _open(candidate: Candidate, tag: str) -> str:
    read = "; ".join(f"{value} by {reader}" for value, reader in candidate.values_with_readers(tag))
    return f"(open: {read})" if read else ""


def _reading(reading: SourceReading) -> Iterator[str]:
    """Yield the lines of a reading."""
    proposes = f", {reading.inclusion}" if reading.inclusion else ""
    yield f"{reading.by}{proposes}: {reading.level}{' (a copy)' * reading.copy}, {reading.confidence} confidence"
    if reading.tags:
        yield ", ".join(f"{tag} {value}" for tag, value in reading.tags.items())
    yield reading.note
    if places := [*reading.sources, *([reading.location] if reading.location else [])]:
        yield ", ".join(places)
