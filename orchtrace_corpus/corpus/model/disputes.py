"""Recorded disagreements about tags, decoded from `data/disputes.yaml`.

A record has one value of every tag. The other readings by sources or readers are recorded here, so that lists and
figures can mark the tag and `corpus claims --stress` can try them. Where independent readers of the sources agree on
another value, `read_by` returns the corpus with that value.
"""

from collections import abc
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import partial

from orchtrace_corpus.base.findings import Finding, near_suggestion, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Report, entries_of
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.records import Entries, Paper, Pool, ReadingName, Tag, decode_entries
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy

NOT_ARISING = "none"
"""The level of a term that does not arise in a record, and the word for a facet of levels without any term."""


class State(StrEnum):
    """The state of a dispute: open, or settled by a decision."""

    OPEN = "open"
    SETTLED = "settled"


class Reading(NamedTuple):
    """A reading of a source. Several values say "one of these, without telling which"."""

    values: tuple[str, ...]
    by: str

    def __str__(self) -> str:
        return " or ".join(self.values)


class Argument(NamedTuple):
    """The argument of one reader for a reading of the tag, with its source."""

    by: str
    why: str
    source: str

    def __str__(self) -> str:
        return f"{self.by}: {self.why} ({self.source})"


class Agreed(NamedTuple):
    """The other value that independent readers of the sources agree on.

    Attributes:
        value: The value.
        source: One address that they read, or several, separated by spaces.
        rule: The rule of the codebook that decides: its entry's tag and the rule's number, such as `reward_family 2`.
    """

    value: str
    source: str
    rule: str

    @property
    def rule_of(self) -> tuple[str, int] | None:
        """The tag of the rule's entry and the rule's number, from 1; None if it is not written in this form."""
        tag, _, number = self.rule.partition(" ")
        is_number = number.isascii() and number.isdigit() and not number.startswith("0")
        return (tag, int(number)) if tag and is_number else None

    @property
    def rule_text(self) -> str:
        """The rule in words."""
        tag, number = self.rule_of or ("", 0)
        return f"rule {number} of the codebook for {tag}" if tag else self.rule


class Dispute(NamedTuple):
    """A disagreement about one tag of one paper.

    Attributes:
        record: The paper's key.
        tag: A facet of a single term, or a term of a facet of kind `levels`, such as `stop`.
        stands: The value that the paper has; `NOT_ARISING` if it does not have the term.
        readings: Every recorded reading, that of the paper's value included.
        why: The reason for the paper's value.
        source: Where the disagreement is recorded.
        agreed: Another value that the readers of the sources agree on, if there is one.
        arguments: The arguments of readers, one by one.
    """

    record: str
    tag: str
    stands: str
    readings: tuple[Reading, ...]
    why: str
    source: str
    state: State = State.OPEN
    agreed: Agreed | None = None
    arguments: tuple[Argument, ...] = ()

    @property
    def id(self) -> str:
        """Return the name of the dispute in messages."""
        return f"{self.record}.{self.tag}"

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The values of the readings that exclude the paper's value, in their order."""
        others = (reading.values for reading in self.readings if self.stands not in reading.values)
        return tuple(dict.fromkeys(value for values in others for value in values))


def decode_disputes(file: YamlFile | None, taxonomy: Taxonomy) -> Entries[Dispute]:
    """Decode a list of disputes by the taxonomy, if there is one; `check` compares them with the papers."""
    if file is None:
        return Entries("the disputes have")
    facets = disputable(taxonomy)
    schema = decoders.schema_of(
        Dispute,
        "a dispute",
        "record",
        record=fields.key("record"),
        tag=fields.terms("tag", "tag", tuple(facets), code="C202"),
        readings=_readings,
        agreed=decoders.record(decoders.schema_of(Agreed, "what the readers agree on"), Agreed),
        arguments=decoders.records_of("arguments", Argument, "an argument"),
        state=decoders.choice("state", State, code="C203"),
    )
    return decode_entries("the disputes have", file, schema, Dispute, partial(_is_disagreement, facets))


def check(file: Entries[Dispute], pool: Pool, rules: abc.Mapping[str, int] | None = None) -> tuple[Finding, ...]:
    """Return the findings of decoding, and the disputes that papers or the codebook contradict.

    `rules` has the number of rules that the codebook has for each tag; None without a codebook.
    """
    findings = list(file.findings)
    by_key = {paper.key: paper for paper in pool.papers}
    facets = disputable(pool.taxonomy)
    ids: set[str] = set()
    for index, dispute in enumerate(file.items):
        code, message = "", ""
        field: tuple[str, ...] = ()
        paper = by_key.get(dispute.record)
        if dispute.id in ids:
            code, field = "C206", ("tag",)
            message = f"{quote(dispute.tag)} of {quote(dispute.record)} is disputed twice; put all readings into one"
        elif paper is None:
            code, field = "C201", ("record",)
            near = near_suggestion(dispute.record, list(by_key))
            message = f"there is no {pool.taxonomy.noun.one} {quote(dispute.record)}{near}"
        elif (value := value_of(paper, facets[dispute.tag], dispute.tag)) != dispute.stands:
            code, field = "C204", ("stands",)
            has = f"{quote(dispute.record)} has {dispute.tag} {quote(value)}"
            message = f"{quote(dispute.stands)} does not stand, for {has}; settle which of the two is right"
        elif dispute.agreed and rules is not None and (problem := _rule_problem(dispute.agreed, rules)):
            code, field, message = "C208", ("agreed", "rule"), problem
        ids.add(dispute.id)
        if code and file.places is not None:
            findings.append(Finding(code, message, file.places.locate(index, *field), dispute.record))
    return tuple(findings)


def contested(disputes: Iterable[Dispute]) -> frozenset[tuple[str, str]]:
    """Return the tags in open dispute as pairs of a paper's key and a tag, such as `("puppeteer", "stop")`."""
    return frozenset((dispute.record, dispute.tag) for dispute in disputes if dispute.state is State.OPEN)


def open_tags(file: YamlFile) -> dict[tuple[str, str], bool]:
    """Return the tags of `contested`, each with whether it has an agreed value, without decoding the rest."""
    disputed = {}
    for node in file.records():
        if type(node) is Mapping:
            texts = {name: value.text for name, (_, value) in node.entries.items() if type(value) is Scalar}
            if texts.get("state") != State.SETTLED:
                disputed[texts.get("record", ""), texts.get("tag", "")] = "agreed" in node.entries
    return disputed


def contested_among(
    papers: Iterable[Paper], tags: abc.Mapping[tuple[str, str], bool], names: Collection[str], taxonomy: Taxonomy
) -> tuple[int, int]:
    """Count the papers with an open dispute on tags of these names, and those of them with an agreed value.

    `tags` are those of `open_tags`; `names` are facets, and terms with levels.
    """
    fields_of, keys = disputable(taxonomy), {paper.key for paper in papers}
    by_key: dict[str, bool] = {}
    for (key, tag), is_agreed in tags.items():
        if key in keys and tag in fields_of and not {tag, fields_of[tag].field}.isdisjoint(names):
            by_key[key] = by_key.get(key, False) or is_agreed
    return len(by_key), sum(by_key.values())


def read_by(pool: Pool, disputes: Iterable[Dispute], reading: ReadingName) -> Pool:
    """Return the corpus with the tags of a reading: as published, or as the readers of the sources agree."""
    facets = disputable(pool.taxonomy)
    changed = {paper.key: paper for paper in pool.papers}
    for dispute in disputes if reading is ReadingName.SOURCES else ():
        if dispute.agreed is not None and dispute.record in changed:
            paper = changed[dispute.record]
            changed[dispute.record] = with_value(paper, facets[dispute.tag], dispute.tag, dispute.agreed.value)
    return pool._replace(papers=tuple(changed[paper.key] for paper in pool.papers))


class Change(NamedTuple):
    """A tag with the published value, and the other value that readers of the sources agree on."""

    paper: str
    tag: str
    published: str
    sources: str


def changes(pool: Pool, disputes: Iterable[Dispute]) -> list[Change]:
    """Return the tags that change by the reading of the sources, in the order of the papers and of the taxonomy."""
    facets = disputable(pool.taxonomy)
    agreed = {(dispute.record, dispute.tag): dispute.agreed.value for dispute in disputes if dispute.agreed is not None}
    return [
        Change(paper.key, tag, published, value)
        for paper in pool.papers
        for tag, facet in facets.items()
        if (value := agreed.get((paper.key, tag))) and value != (published := value_of(paper, facet, tag))
    ]


def as_read(disputes: Iterable[Dispute], reading: ReadingName) -> tuple[Dispute, ...]:
    """Return the disputes with the values that the corpus of a reading has."""
    is_published = reading is ReadingName.PUBLISHED
    return tuple(
        dispute._replace(stands=dispute.agreed.value) if dispute.agreed and not is_published else dispute
        for dispute in disputes
    )


def disputable(taxonomy: Taxonomy) -> dict[str, Facet]:
    """Return the tags that a dispute can be about, facets of a single term and terms with levels, with their facets."""
    tags = {facet.field: facet for facet in taxonomy.papers if facet.kind is Kind.SINGLE}
    return tags | {term.id: facet for facet in taxonomy.papers if facet.kind is Kind.LEVELS for term in facet.terms}


def value_of(paper: Paper, facet: Facet, tag: str) -> str:
    """Return the value of a disputable tag: a term, `NA`, a level, or `NOT_ARISING`."""
    value = paper.tags.get(facet.field)
    if facet.kind is Kind.LEVELS:
        return value.get(tag, NOT_ARISING) if isinstance(value, dict) else NOT_ARISING
    return value if isinstance(value, str) else ""


def with_value(paper: Paper, facet: Facet, tag: str, value: str) -> Paper:
    """Return the paper with another value of a disputable tag."""
    changed: Tag = value
    if facet.kind is Kind.LEVELS:
        levels = paper.tags.get(facet.field)
        updated = {**(levels if isinstance(levels, dict) else {}), tag: value}
        changed = {
            term.id: updated[term.id] for term in facet.terms if updated.get(term.id, NOT_ARISING) != NOT_ARISING
        }
    return paper._replace(tags={**paper.tags, facet.field: changed})


def values_for(facet: Facet) -> tuple[str, ...]:
    """Return the values that a disputable tag of a facet can have."""
    if facet.kind is Kind.LEVELS:
        return (*(level.id for level in facet.levels), NOT_ARISING)
    return facet.values


def _rule_problem(agreed: Agreed, rules: abc.Mapping[str, int]) -> str:
    """Return the error about the named rule; empty if the codebook has it."""
    tag, number = agreed.rule_of or ("", 0)
    if not tag:
        example = next((name for name, count in rules.items() if count), "TAG")
        return f"{quote(agreed.rule)} names no rule; give a tag and a number, such as '{example} 1'"
    if tag not in rules:
        return f"the codebook has no rules for {quote(tag)}{suggestion(tag, tuple(rules))}"
    if not 1 <= number <= rules[tag]:
        return f"the codebook has no rule {number} for {tag}; the last is rule {rules[tag]}, see corpus terms {tag}"
    return ""


def _readings(node: Node, report: Report) -> tuple[Reading, ...] | None:
    if type(node) is not Mapping:
        form = "such as {implicit: first reader, explicit: second reader}"
        report.add("F103", node.at, f"'readings' must be a mapping {form}, not {decoders.kind_of(node)}")
        return None
    readings = []
    for values, (_, reader) in node.entries.items():
        by = decoders.checked_text(f"reading {values}", reader, report)
        if by is not None:
            readings.append(Reading(tuple(map(str.strip, values.split(","))), by))
    return tuple(readings) if len(readings) == len(node.entries) else None


def _is_disagreement(facets: abc.Mapping[str, Facet], dispute: Dispute, node: Mapping, report: Report) -> bool:
    """Return True if all values exist, and two readings exclude each other; report it if not."""
    allowed = values_for(facets[dispute.tag])
    stands_at, agreed_at = node.entries["stands"][1].at, 0
    placed_values: list[tuple[int, tuple[str, ...]]] = [(stands_at, (dispute.stands,))]
    places = [at for at, _ in entries_of(node, "readings").values()]
    placed_values += [(at, reading.values) for at, reading in zip(places, dispute.readings, strict=True)]
    agreed = dispute.agreed
    if agreed is not None:
        agreed_at = entries_of(node, "agreed")["value"][1].at
        placed_values.append((agreed_at, (agreed.value,)))
    wrong = [(at, value) for at, values in placed_values for value in values if value not in allowed]
    for at, value in wrong:
        report.add("C203", at, f"{dispute.tag} has no value {quote(value)}{suggestion(value, allowed)}")
    is_read = any(dispute.stands in reading.values for reading in dispute.readings)
    if not wrong and not is_read:
        fix = f"name its reader under 'readings', as \"{dispute.stands}: WHO\""
        report.add("C205", stands_at, f"no reading has {quote(dispute.stands)}; {fix}")
    elif not wrong and not dispute.alternatives:
        message = f"no reading excludes {quote(dispute.stands)}, so there is nothing to dispute"
        report.add("C205", node.entries["readings"][0], message)
    if wrong or not is_read or not dispute.alternatives:
        return False
    if agreed is not None and agreed.value not in dispute.alternatives:
        stands = agreed.value == dispute.stands
        problem = "is the paper's value; leave 'agreed' out" if stands else "is in no reading; add it under 'readings'"
        report.add("C207", agreed_at, f"{quote(agreed.value)} {problem}")
        return False
    return True
