"""Candidates, which await a decision, decoded from `data/candidates.yaml`.

A candidate is a paper with a proposed decision and with the readings of its sources. The paper has the tags on which
readers agree. The other tags are open; an open tag cannot make a claim fail.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import product

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders, reader
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, Schema, decode_record
from orchtrace_corpus.base.yamlfile.reader import Node, YamlFile
from orchtrace_corpus.corpus.model import disputes, fields
from orchtrace_corpus.corpus.model.decode import field_names, paper_schema
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING, Dispute, Reading, disputable, value_of
from orchtrace_corpus.corpus.model.field_table import CANDIDATE_FIELDS, FieldKind
from orchtrace_corpus.corpus.model.fields import field_decoder
from orchtrace_corpus.corpus.model.records import Entries, Evidence, EvidenceVerdict, Paper, Places, Tag
from orchtrace_corpus.corpus.model.tagging import drop_not_arising, sort_levels
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term, facet_decoder

_COMPARISONS_BY_VERDICT = {
    EvidenceVerdict.SUPPORTED: {True},
    EvidenceVerdict.PARTLY: {True, False},
    EvidenceVerdict.CONTRADICTED: {False},
}
"""The verdict of a reading on a facet, by the results of comparing its tags with the paper's (True for equal tags)."""

# Texts of the disputes that remain when a candidate is included.
_DECISION = "the decision to take it in"
_CHOSEN = (
    "Chosen when the candidate was taken in; a reader of its sources reads otherwise. Not decided by the codebook."
)
_NO_PLACE = "The readings of the candidate, which name no place."


class Decision(StrEnum):
    """A proposed decision on a candidate."""

    INCLUDE = "include"
    UNCLEAR = "unclear"
    EXCLUDE = "exclude"
    UNREAD = "unread"


READER_DECISIONS = tuple(decision for decision in Decision if decision is not Decision.UNREAD)
"""The decisions that a reader can propose."""

NOT_ARISING_LEVEL = Term(NOT_ARISING, "None", "The term does not arise; one that is absent is open.")
"""The level that candidates write for a term that the paper does not have, because an absent term is open."""


class SourceReading(NamedTuple):
    """The tags that one reader reads in the sources of a candidate.

    Attributes:
        by: The reader.
        note: The content of the sources, in the reader's own words.
        level, confidence: Terms of the taxonomy's facets of evidence.
        inclusion: The decision that this reader proposes, if any.
        tags: The value of every tag that was read: a term, or the level of a term such as `stop`, or `NOT_ARISING`.
        sources: The URLs that were read.
        location: The place in the sources, or a source without a URL.
        copy: Whether a copy of the paper itself on another host was read.
    """

    by: str
    note: str
    level: str
    confidence: str
    inclusion: Decision | None = None
    tags: Mapping[str, str] = {}
    sources: tuple[str, ...] = ()
    location: str | None = None
    copy: bool = False


class Candidate(NamedTuple):
    """A paper that was found, and on which nobody has decided.

    Attributes:
        paper: The paper, with the settled tags.
        proposal: The proposed decision, for a `reason`.
        found: The day of the search that found it, as `YYYY-MM-DD`.
        found_by: The names of queries, `cites KEY`, `cited by KEY`, or a file.
        screened: The day on which a person decided to include it although tags were open, as `YYYY-MM-DD`.
        screening: Facets of exclusions that are known already, such as the family of the query.
        open_tags: The open tags: facets, and terms of a facet with levels. The facet of an open term is open, too.
    """

    paper: Paper
    proposal: Decision
    reason: str = ""
    found: str = ""
    found_by: tuple[str, ...] = ()
    screened: str = ""
    screening: Mapping[str, Tag] = {}
    readings: tuple[SourceReading, ...] = ()
    open_tags: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the record: its key."""
        return self.paper.key

    @property
    def tags(self) -> Mapping[str, Tag]:
        """The settled tags."""
        return self.paper.tags

    def is_open(self, tag: str) -> bool:
        """Return True if a facet, or a term with levels, is open."""
        return tag in self.open_tags

    def paper_with_evidence(self, tags: Mapping[str, Tag], facets_by_tag: Mapping[str, Facet]) -> Paper:
        """Return the paper with `tags`, and with the readings of disputable tags as items of evidence.

        A reading supports a facet if the paper has every tag that the reading gives for it, contradicts the facet if
        the paper has none of them, and supports it partly otherwise.
        """
        paper = self.paper._replace(tags=tags)
        items = []
        for reading in self.readings:
            comparisons: dict[str, set[bool]] = {}
            for tag, value in reading.tags.items():
                facet = facets_by_tag.get(tag)
                if facet is not None and facet.field in tags:
                    comparisons.setdefault(facet.field, set()).add(value_of(paper, facet, tag) == value)
            for source, (verdict, expected) in product(reading.sources, _COMPARISONS_BY_VERDICT.items()):
                names = tuple([field for field, results in comparisons.items() if results == expected])
                if names:
                    item = Evidence(names, reading.note, source, reading.level, reading.confidence, verdict=verdict)
                    items.append(item._replace(location=reading.location, copy=reading.copy))
        return paper._replace(evidence=(*self.paper.evidence, *items))

    def remaining_disputes(self, paper: Paper, facets_by_tag: Mapping[str, Facet]) -> tuple[Dispute, ...]:
        """Return an open dispute for each tag on which a reading differs from the paper that was included."""
        remaining = []
        for tag, facet in facets_by_tag.items():
            stands = value_of(paper, facet, tag)
            readings = [reading for reading in self.readings if tag in reading.tags]
            readers_by_value: dict[str, list[str]] = {stands: []}
            places: list[str] = []
            for reading in readings:
                readers_by_value.setdefault(reading.tags[tag], []).append(reading.by)
                places += reading.sources
                if not reading.sources and reading.location:
                    places.append(reading.location)
            if stands and len(readers_by_value) > 1:
                values = []
                for value, readers in readers_by_value.items():
                    values.append(Reading((value,), by=" and ".join(readers) or _DECISION))
                source = " ; ".join(dict.fromkeys(places)) or _NO_PLACE
                remaining.append(Dispute(paper.key, tag, stands, tuple(values), why=_CHOSEN, source=source))
        return tuple(remaining)

    def settled_levels(self, facet: Facet) -> dict[str, str]:
        """Return the settled terms of a facet with levels, each with its level or `NOT_ARISING`."""
        settled_terms = [term.id for term in facet.terms if term.id not in self.open_tags]
        return {term: value_of(self.paper, facet, term) for term in settled_terms}

    def settle(self, new_tags: Mapping[str, Tag], taxonomy: Taxonomy) -> "Candidate":
        """Return the candidate with new tags, which are settled now.

        A mapping of levels settles the terms that it names. An empty mapping says that the paper has no term of the
        facet, and settles all.
        """
        tags = dict(self.paper.tags)
        open_tags = set(self.open_tags)
        for facet in taxonomy.papers:
            tag = new_tags.get(facet.field)
            if facet.kind is Kind.LEVELS and isinstance(tag, Mapping):
                term_ids = {term.id for term in facet.terms}
                open_tags -= tag.keys() if tag else term_ids
                if open_tags.isdisjoint(term_ids):
                    open_tags.discard(facet.field)
                levels = {**self.settled_levels(facet), **tag}
                tags[facet.field] = drop_not_arising(sort_levels(facet, levels))
            elif tag is not None:
                tags[facet.field] = tag
                open_tags.discard(facet.field)
        return self._replace(paper=self.paper._replace(tags=tags), open_tags=frozenset(open_tags))

    def values_with_readers(self, tag: str) -> tuple[tuple[str, str], ...]:
        """Return the value of a tag in each reading that has one, with the reader."""
        return tuple((reading.tags[tag], reading.by) for reading in self.readings if tag in reading.tags)

    def values_in_readings(self, tag: str) -> tuple[str, ...]:
        """Return the different values of a tag in the readings."""
        return tuple(dict.fromkeys(value for value, _ in self.values_with_readers(tag)))

    def open_tags_without(self, reading: SourceReading, facets_by_tag: Mapping[str, Facet]) -> frozenset[str]:
        """Return the open tags that a reading lacks; a facet with levels stays open until all its terms are read."""
        open_tags = self.open_tags - reading.tags.keys()
        for facet in facets_by_tag.values():
            if facet.kind is Kind.LEVELS and open_tags.isdisjoint(term.id for term in facet.terms):
                open_tags -= {facet.field}
        return open_tags

    def paper_as_read(self, reading: SourceReading, facets_by_tag: Mapping[str, Facet]) -> Paper:
        """Return the paper with its open tags as in a reading."""
        paper = self.paper
        for tag, value in reading.tags.items():
            if tag in self.open_tags:
                paper = disputes.with_value(paper, facets_by_tag[tag], tag, value)
        return paper


def select_proposed(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates that are proposed for inclusion."""
    return tuple(candidate for candidate in candidates if candidate.proposal is Decision.INCLUDE)


def candidate_schema(taxonomy: Taxonomy) -> Schema:
    """Return the schema of a candidate, with the fields of `candidate_field_names`."""
    evidence_decoders = {facet.field: facet_decoder(facet) for facet in taxonomy.evidence}
    reading = decoders.schema_of(
        SourceReading,
        "a reading",
        level=evidence_decoders.get("level", decoders.text("level")),
        confidence=evidence_decoders.get("confidence", decoders.text("confidence")),
        inclusion=fields.terms("inclusion", "inclusion", READER_DECISIONS),
        tags=_read_tags(taxonomy),
        sources=fields.url_list("sources"),
        copy=fields.yes("copy"),
    )
    by_name = dict(paper_schema(taxonomy).decoders)
    by_name |= {facet.field: facet_decoder(facet) for facet in (*open_facets(taxonomy), *screening_facets(taxonomy))}
    by_name |= {field.name: field_decoder(field) for field in CANDIDATE_FIELDS if field.kind is not FieldKind.NESTED}
    by_name["proposal"] = decoders.choice("proposal", Decision)
    by_name["readings"] = decoders.record_list("readings", reading, SourceReading)
    decoders_in_order = {name: by_name[name] for name in candidate_field_names(taxonomy)}
    required = ("key", "title", *(field.name for field in CANDIDATE_FIELDS if field.required))
    return Schema("a candidate", "key", decoders_in_order, required)


def candidate_field_names(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the names of a candidate's fields and tags in canonical order; waivers come last."""
    paper_fields = (field for field in taxonomy.paper_fields if field.in_candidates and field.name != "waive")
    paper_names = field_names(paper_fields, taxonomy.papers)
    candidate_names = field_names(CANDIDATE_FIELDS, screening_facets(taxonomy))
    return (*paper_names, *candidate_names, "waive")


def screening_facets(taxonomy: Taxonomy) -> tuple[Facet, ...]:
    """Return the facets of exclusions that a candidate can have: those that are not facets of papers, too."""
    paper_fields = {facet.field for facet in taxonomy.papers}
    return tuple(facet for facet in taxonomy.exclusions if facet.field not in paper_fields)


def open_facets(taxonomy: Taxonomy) -> tuple[Facet, ...]:
    """Return the facets with levels, with `NOT_ARISING_LEVEL` added to their levels."""
    with_levels = (facet for facet in taxonomy.papers if facet.kind is Kind.LEVELS)
    return tuple(facet._replace(levels=(*facet.levels, NOT_ARISING_LEVEL)) for facet in with_levels)


def decode_candidates(file: YamlFile | None, taxonomy: Taxonomy) -> Entries[Candidate]:
    """Decode the candidates; a field with an error is left out."""
    if file is None:
        return Entries("the candidates have")
    schema = candidate_schema(taxonomy)
    report = Report(file)
    tag_names = [facet.field for facet in taxonomy.papers]
    screening_names = [facet.field for facet in screening_facets(taxonomy)]
    candidate_names = [field.name for field in CANDIDATE_FIELDS]
    candidates, starts = [], []
    for node in file.records():
        report.record = ""
        values = decode_record(node, schema, report)
        if values is None:
            continue
        valid = {name: value for name, value in values.items() if value is not None}
        tags = {name: valid.pop(name) for name in tag_names if name in valid}
        screening = {name: valid.pop(name) for name in screening_names if name in valid}
        candidate_values = {name: valid.pop(name) for name in candidate_names if name in valid}
        proposal = candidate_values.setdefault("proposal", Decision.UNCLEAR)
        if proposal is not Decision.UNREAD and "reason" not in values and node.at != file.cut_off:
            report.add("F101", node.at, "missing field 'reason'")
        paper = Paper(tags={name: drop_not_arising(tag) for name, tag in tags.items()}).with_values(valid)
        open_tags = _open_tags(tags, taxonomy.papers)
        candidates.append(Candidate(paper, screening=screening, open_tags=open_tags, **candidate_values))
        starts.append(node.at)
    return Entries("the candidates have", candidates, Places(file, starts), file.findings)


def _open_tags(tags: Mapping[str, Any], facets: Iterable[Facet]) -> frozenset[str]:
    """Return the required facets without a tag, the terms without a level, and the facets of these terms."""
    open_tags: set[str] = set()
    for facet in facets:
        tag = tags.get(facet.field)
        absent_terms: list[str] = []
        if facet.kind is Kind.LEVELS:
            levels = tag or {}
            absent_terms = [term.id for term in facet.terms if term.id not in levels]
        open_tags.update(absent_terms)
        if absent_terms or (tag is None and facet.required):
            open_tags.add(facet.field)
    return frozenset(open_tags)


def _read_tags(taxonomy: Taxonomy) -> Decoder:
    """Return the decoder of `SourceReading.tags`."""
    decoders_by_tag = {}
    for tag, facet in disputable(taxonomy).items():
        codes = {} if facet.kind is Kind.LEVELS else facet.codes
        decoders_by_tag[tag] = fields.terms(tag, f"value of {tag}", disputes.values_for(facet), codes=codes)

    def decode(node: Node, report: Report) -> dict[str, str] | None:
        if type(node) is not reader.Mapping:
            form = "such as {reward_family: shared, stop: none}"
            report.add("F103", node.at, f"'tags' must be a mapping {form}, not {decoders.kind_of(node)}")
            return None
        values: dict[str, str] = {}
        for tag, (key_at, value) in node.entries.items():
            if tag not in decoders_by_tag:
                report.add("V101", key_at, f"unknown tag {quote(tag)}{suggestion(tag, list(decoders_by_tag))}")
                continue
            text = decoders_by_tag[tag](value, report)
            if text is not None:
                values[tag] = text
        return values if len(values) == len(node.entries) else None

    return decode
