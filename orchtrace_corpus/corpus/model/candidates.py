"""Candidates, which await a decision, decoded from `data/candidates.yaml`.

A candidate is a record of a paper with a proposed decision and with the readings of its sources. The record has the
tags that readers agree on. Other tags are open, and break no claim.
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
from orchtrace_corpus.corpus.model.tagging import drop_not_arising, in_order
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term, facet_decoder

_VERDICTS = {
    EvidenceVerdict.SUPPORTED: {True},
    EvidenceVerdict.PARTLY: {True, False},
    EvidenceVerdict.CONTRADICTED: {False},
}
"""The verdict of a reading on a facet, by the results of comparing its tags with those of the record."""

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


READ = tuple(decision for decision in Decision if decision is not Decision.UNREAD)
"""The decisions that a reader can propose."""

UNDECIDED = Term(NOT_ARISING, "None", "The term does not arise; one that is absent is open.")
"""The level of a term that does not arise in a candidate."""


class SourceReading(NamedTuple):
    """The reading of the sources of a candidate by one reader.

    Attributes:
        note: The content of the sources, in the reader's own words.
        level, confidence: Terms of the taxonomy's facets of evidence.
        inclusion: The decision that this reader proposes, if any.
        tags: The value of every tag that was read: a term, or the level of a term such as `stop`, or `NOT_ARISING`.
        sources: The addresses that were read.
        location: The place in them, or a source without an address.
        copy: Whether a hosted copy of the record's own work was read.
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
    """A paper that was found and is not decided.

    Attributes:
        paper: The record, with the settled tags.
        proposal: The proposed decision, for a `reason`.
        found: The day of the search that found it, as `YYYY-MM-DD`.
        found_by: The names of queries, `cites KEY`, `cited by KEY`, or a file.
        screened: The day on which a person decided to include it, while tags are open.
        screening: Facets of exclusions that are known already, such as the family of the query.
        open_tags: The names of the open tags: facets, and terms of a facet of levels together with that facet.
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

    def paper_with_evidence(self, tags: Mapping[str, Tag], facets: Mapping[str, Facet]) -> Paper:
        """Return the paper with some tags, and with the readings of the tags in `facets` as items of evidence.

        A reading supports a facet if the record has every tag that the reading gives for it, contradicts the facet if
        the record has none of them, and supports it partly in between.
        """
        paper, items = self.paper._replace(tags=tags), []
        for reading in self.readings:
            same: dict[str, set[bool]] = {}
            for tag, value in reading.tags.items():
                if tag in facets and facets[tag].field in tags:
                    same.setdefault(facets[tag].field, set()).add(value_of(paper, facets[tag], tag) == value)
            fields = {
                verdict: tuple([field for field, agreed in same.items() if agreed == agreements])
                for verdict, agreements in _VERDICTS.items()
            }
            for source, (verdict, names) in product(reading.sources, fields.items()):
                if names:
                    item = Evidence(names, reading.note, source, reading.level, reading.confidence, verdict=verdict)
                    items.append(item._replace(location=reading.location, copy=reading.copy))
        return paper._replace(evidence=(*self.paper.evidence, *items))

    def disputed(self, paper: Paper, facets: Mapping[str, Facet]) -> tuple[Dispute, ...]:
        """Return an open dispute for each tag in `facets` that a reader reads differently from the included paper."""
        disputes_left = []
        for tag, facet in facets.items():
            stands = value_of(paper, facet, tag)
            readings = [reading for reading in self.readings if tag in reading.tags]
            readers: dict[str, list[str]] = {stands: []}
            for reading in readings:
                readers.setdefault(reading.tags[tag], []).append(reading.by)
            if stands and len(readers) > 1:
                by = (Reading((value,), " and ".join(names) or _DECISION) for value, names in readers.items())
                places = [place for reading in readings for place in reading.sources or (reading.location or "",)]
                source = " ; ".join(dict.fromkeys(filter(None, places))) or _NO_PLACE
                disputes_left.append(Dispute(paper.key, tag, stands, tuple(by), _CHOSEN, source))
        return tuple(disputes_left)

    def settled_levels(self, facet: Facet) -> dict[str, str]:
        """Return the settled terms of a facet of levels, each with its level or `NOT_ARISING`."""
        held = self.paper.tags.get(facet.field)
        levels = held if isinstance(held, Mapping) else {}
        return {term.id: levels.get(term.id, NOT_ARISING) for term in facet.terms if term.id not in self.open_tags}

    def settle(self, new_tags: Mapping[str, Tag], taxonomy: Taxonomy) -> "Candidate":
        """Return the candidate with the given tags, which are settled now.

        A level settles its own term only; `{}`, by which no term arises, settles all open terms of the facet.
        """
        tags, open_tags = dict(self.paper.tags), set(self.open_tags)
        for facet in taxonomy.papers:
            tag = new_tags.get(facet.field)
            if facet.kind is Kind.LEVELS and isinstance(tag, Mapping):
                every, held = {term.id for term in facet.terms}, tags.get(facet.field)
                open_tags -= tag.keys() or every
                open_tags -= {facet.field} if open_tags.isdisjoint(every) else set()
                levels = {**(held if isinstance(held, Mapping) else {}), **tag}
                tags[facet.field] = drop_not_arising(in_order(facet, levels))
            elif tag is not None:
                tags[facet.field] = tag
                open_tags.discard(facet.field)
        return self._replace(paper=self.paper._replace(tags=tags), open_tags=frozenset(open_tags))

    def readers_of(self, tag: str) -> tuple[tuple[str, str], ...]:
        """Return the values of a tag that were read, each with its reader."""
        return tuple((reading.tags[tag], reading.by) for reading in self.readings if tag in reading.tags)

    def read_values(self, tag: str) -> tuple[str, ...]:
        """Return the values of a tag that were read, in their order."""
        return tuple(dict.fromkeys(value for value, _ in self.readers_of(tag)))

    def open_after(self, reading: SourceReading, facets: Mapping[str, Facet]) -> frozenset[str]:
        """Return the tags that one reading leaves open; a facet of levels is open until all its terms are read."""
        open_tags = self.open_tags - reading.tags.keys()
        for facet in facets.values():
            if facet.kind is Kind.LEVELS and open_tags.isdisjoint(term.id for term in facet.terms):
                open_tags -= {facet.field}
        return open_tags

    def read_by(self, reading: SourceReading, facets: Mapping[str, Facet]) -> Paper:
        """Return the paper with those open tags that a reader reads."""
        paper = self.paper
        for tag, value in reading.tags.items():
            if tag in self.open_tags:
                paper = disputes.with_value(paper, facets[tag], tag, value)
        return paper


def select_proposed(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates that are proposed for inclusion."""
    return tuple(candidate for candidate in candidates if candidate.proposal is Decision.INCLUDE)


def candidate_schema(taxonomy: Taxonomy) -> Schema:
    """Return the fields of a candidate: those of a paper but the day of its addition, the proposal and the readings."""
    evidence = {facet.field: facet_decoder(facet) for facet in taxonomy.evidence}
    reading = decoders.schema_of(
        SourceReading,
        "a reading",
        level=evidence.get("level", decoders.text("level")),
        confidence=evidence.get("confidence", decoders.text("confidence")),
        inclusion=fields.terms("inclusion", "inclusion", READ),
        tags=_read_tags(taxonomy),
        sources=fields.url_list("sources"),
        copy=fields.mark("copy"),
    )
    decoded = dict(paper_schema(taxonomy).decoders)
    decoded |= {facet.field: facet_decoder(facet) for facet in (*open_facets(taxonomy), *screening_facets(taxonomy))}
    decoded |= {field.name: field_decoder(field) for field in CANDIDATE_FIELDS if field.kind is not FieldKind.PARTS}
    decoded["proposal"] = decoders.choice("proposal", Decision)
    decoded["readings"] = decoders.record_list("readings", reading, SourceReading)
    required = ("key", "title", *(field.name for field in CANDIDATE_FIELDS if field.required))
    return Schema("a candidate", "key", {name: decoded[name] for name in candidate_field_names(taxonomy)}, required)


def candidate_field_names(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the names of a candidate's fields and tags in canonical order; waivers come last."""
    of_papers = (field for field in taxonomy.paper_fields if field.in_candidates and field.name != "waive")
    own_names = field_names(CANDIDATE_FIELDS, screening_facets(taxonomy))
    return (*field_names(of_papers, taxonomy.papers), *own_names, "waive")


def screening_facets(taxonomy: Taxonomy) -> tuple[Facet, ...]:
    """Return the facets of exclusions that a candidate can have: those whose name is no facet of papers."""
    paper_fields = {facet.field for facet in taxonomy.papers}
    return tuple(facet for facet in taxonomy.exclusions if facet.field not in paper_fields)


def open_facets(taxonomy: Taxonomy) -> tuple[Facet, ...]:
    """Return the facets of levels with the level of terms that do not arise, since an absent term is open."""
    with_levels = (facet for facet in taxonomy.papers if facet.kind is Kind.LEVELS)
    return tuple(facet._replace(levels=(*facet.levels, UNDECIDED)) for facet in with_levels)


def decode_candidates(file: YamlFile | None, taxonomy: Taxonomy) -> Entries[Candidate]:
    """Decode a list of candidates, if there is one; problems become findings. What cannot be decoded is left out."""
    if file is None:
        return Entries("the candidates have")
    schema, report = candidate_schema(taxonomy), Report(file)
    screening = [facet.field for facet in screening_facets(taxonomy)]
    candidates, starts = [], []
    for node in file.records():
        report.record = ""
        values = decode_record(node, schema, report)
        if values is None:
            continue
        members = {name: value for name, value in values.items() if value is not None}
        tags = {facet.field: members.pop(facet.field) for facet in taxonomy.papers if facet.field in members}
        screened = {name: members.pop(name) for name in screening if name in members}
        own_members = {field.name: members.pop(field.name) for field in CANDIDATE_FIELDS if field.name in members}
        proposal = own_members.setdefault("proposal", Decision.UNCLEAR)
        if proposal is not Decision.UNREAD and "reason" not in values and node.at != file.cut_off:
            report.add("F101", node.at, "missing field 'reason'")
        paper = Paper(tags={field: drop_not_arising(tag) for field, tag in tags.items()}).with_values(members)
        open_tags = _open_tags(tags, taxonomy.papers)
        candidates.append(Candidate(paper, screening=screened, open_tags=open_tags, **own_members))
        starts.append(node.at)
    return Entries("the candidates have", candidates, Places(file, starts), file.findings)


def _open_tags(tags: Mapping[str, Any], facets: Iterable[Facet]) -> frozenset[str]:
    """Return the required facets without a tag, and the terms without a level, each with its facet."""
    open_tags: set[str] = set()
    for facet in facets:
        tag = tags.get(facet.field)
        absent: list[str] = []
        if facet.kind is Kind.LEVELS:
            absent = [term.id for term in facet.terms if term.id not in (tag or {})]
        open_tags.update(absent)
        if absent or (tag is None and facet.required):
            open_tags.add(facet.field)
    return frozenset(open_tags)


def _read_tags(taxonomy: Taxonomy) -> Decoder:
    decoders_by_tag = {
        tag: fields.terms(
            tag, f"value of {tag}", disputes.values_for(facet), codes={} if facet.kind is Kind.LEVELS else facet.codes
        )
        for tag, facet in disputable(taxonomy).items()
    }

    def decode(node: Node, report: Report) -> dict[str, str] | None:
        if type(node) is not reader.Mapping:
            form = "such as {reward_family: shared, stop: none}"
            report.add("F103", node.at, f"'tags' must be a mapping {form}, not {decoders.kind_of(node)}")
            return None
        values: dict[str, str] = {}
        for tag, (key_at, value) in node.entries.items():
            if tag not in decoders_by_tag:
                report.add("V101", key_at, f"unknown tag {quote(tag)}{suggestion(tag, list(decoders_by_tag))}")
            elif (text := decoders_by_tag[tag](value, report)) is not None:
                values[tag] = text
        return values if len(values) == len(node.entries) else None

    return decode
