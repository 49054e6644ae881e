"""Recorded disagreements about tags, decoded from `data/disputes.yaml`.

A paper has one value of every tag. Other values, which sources or readers gave, are recorded in disputes: lists and
figures mark the tag, and `corpus claims --stress` tries the values. If independent readers of the sources agree on
another value, `pool_as_read` returns the corpus with that value.
"""

import re
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
"""The value of a term (of a facet with levels) that a record does not have."""


class State(StrEnum):
    """The state of a dispute: open, or settled by a decision."""

    OPEN = "open"
    SETTLED = "settled"


class Reading(NamedTuple):
    """A value of a tag by one reader or source; several values if the reader cannot decide between them."""

    values: tuple[str, ...]
    by: str

    def __str__(self) -> str:
        return " or ".join(self.values)


class Argument(NamedTuple):
    """The argument of one reader for a value of the tag, with its source."""

    by: str
    why: str
    source: str

    def __str__(self) -> str:
        return f"{self.by}: {self.why} ({self.source})"


class Agreed(NamedTuple):
    """A value other than the paper's, on which independent readers of the sources agree.

    Attributes:
        value: The value.
        source: The URLs that they read, separated by spaces.
        rule: The deciding rule of the codebook: a tag and the number of the rule for it, such as `reward_family 2`.
    """

    value: str
    source: str
    rule: str

    @property
    def parsed_rule(self) -> tuple[str, int] | None:
        """The tag and the number (from 1) of `rule`; None if it does not have this form."""
        parts = re.fullmatch(r"(\S+) ([1-9]\d*)", self.rule, re.ASCII)
        return (parts[1], int(parts[2])) if parts else None

    @property
    def rule_text(self) -> str:
        """The rule in words, such as `rule 2 of the codebook for reward_family`."""
        if self.parsed_rule is None:
            return self.rule
        tag, number = self.parsed_rule
        return f"rule {number} of the codebook for {tag}"


class Dispute(NamedTuple):
    """A disagreement about one tag of one paper.

    Attributes:
        record: The paper's key.
        tag: A facet of a single term, or a term of a facet of kind `levels`, such as `stop`.
        stands: The value that the paper has.
        readings: Every recorded value with its reader; the paper's value is one of them.
        why: The reason for the paper's value.
        source: Where the disagreement is recorded.
        agreed: Another value on which the readers of the sources agree; None if there is no such value.
        arguments: The arguments of the readers.
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
        """The name of the dispute in messages."""
        return f"{self.record}.{self.tag}"

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The different values of the readings that exclude the paper's value."""
        alternatives: dict[str, None] = {}
        for reading in self.readings:
            if self.stands not in reading.values:
                alternatives.update(dict.fromkeys(reading.values))
        return tuple(alternatives)


def decode_disputes(file: YamlFile | None, taxonomy: Taxonomy) -> Entries[Dispute]:
    """Decode the disputes; `check` compares them with the papers."""
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


class _Problem(NamedTuple):
    """An error about a dispute, and the path of the wrong value."""

    code: str
    message: str
    path: tuple[str, ...]


def check(file: Entries[Dispute], pool: Pool, rules: abc.Mapping[str, int] | None = None) -> tuple[Finding, ...]:
    """Return the findings of decoding, and the disputes that papers or the codebook contradict.

    `rules` has the number of the codebook's rules for each tag; None without a codebook.
    """
    findings = list(file.findings)
    papers_by_key = {paper.key: paper for paper in pool.papers}
    facets_by_tag = disputable(pool.taxonomy)
    ids: set[str] = set()
    problem: _Problem | None
    for index, dispute in enumerate(file.items):
        paper = papers_by_key.get(dispute.record)
        if dispute.id in ids:
            message = f"{quote(dispute.tag)} of {quote(dispute.record)} is disputed twice; put all readings into one"
            problem = _Problem("C206", message, ("tag",))
        elif paper is None:
            near = near_suggestion(dispute.record, list(papers_by_key))
            message = f"there is no {pool.taxonomy.noun.one} {quote(dispute.record)}{near}"
            problem = _Problem("C201", message, ("record",))
        else:
            problem = _contradiction(dispute, value_of(paper, facets_by_tag[dispute.tag], dispute.tag), rules)
        ids.add(dispute.id)
        if problem is not None and file.places is not None:
            location = file.places.locate(index, *problem.path)
            findings.append(Finding(problem.code, problem.message, location, dispute.record))
    return tuple(findings)


def _contradiction(dispute: Dispute, value: str, rules: abc.Mapping[str, int] | None) -> _Problem | None:
    """Return the contradiction between a dispute and the paper's value of its tag, or the codebook's `rules`."""
    if value != dispute.stands:
        has = f"{quote(dispute.record)} has {dispute.tag} {quote(value)}"
        message = f"{quote(dispute.stands)} does not stand, for {has}; settle which of the two is right"
        return _Problem("C204", message, ("stands",))
    if dispute.agreed is None or rules is None:
        return None
    message = _rule_problem(dispute.agreed, rules)
    return _Problem("C208", message, ("agreed", "rule")) if message else None


def contested_tags(disputes: Iterable[Dispute]) -> frozenset[tuple[str, str]]:
    """Return the tags in open dispute as pairs of a paper's key and a tag, such as `("puppeteer", "stop")`."""
    return frozenset((dispute.record, dispute.tag) for dispute in disputes if dispute.state is State.OPEN)


def open_tags(file: YamlFile) -> dict[tuple[str, str], bool]:
    """Return the tags of `contested_tags`, and for each True if it has an agreed value; the rest is not decoded."""
    is_agreed_by_tag = {}
    for node in file.records():
        if type(node) is Mapping:
            texts = {name: value.text for name, (_, value) in node.entries.items() if type(value) is Scalar}
            if texts.get("state") != State.SETTLED:
                is_agreed_by_tag[texts.get("record", ""), texts.get("tag", "")] = "agreed" in node.entries
    return is_agreed_by_tag


def count_contested(
    papers: Iterable[Paper], tags: abc.Mapping[tuple[str, str], bool], names: Collection[str], taxonomy: Taxonomy
) -> tuple[int, int]:
    """Count the papers with an open dispute on some tags, and those of them with an agreed value.

    `tags` is the result of `open_tags`; `names` are facets, and terms with levels.
    """
    facets_by_tag = disputable(taxonomy)
    keys = {paper.key for paper in papers}
    is_agreed_by_key: dict[str, bool] = {}
    for (key, tag), is_agreed in tags.items():
        if key in keys and tag in facets_by_tag and (tag in names or facets_by_tag[tag].field in names):
            is_agreed_by_key[key] = is_agreed_by_key.get(key, False) or is_agreed
    return len(is_agreed_by_key), sum(is_agreed_by_key.values())


def pool_as_read(pool: Pool, disputes: Iterable[Dispute], reading: ReadingName) -> Pool:
    """Return the pool with the published tags, or with those on which readers of the sources agree."""
    if reading is ReadingName.PUBLISHED:
        return pool
    facets_by_tag = disputable(pool.taxonomy)
    papers_by_key = {paper.key: paper for paper in pool.papers}
    for dispute in disputes:
        if dispute.agreed is not None and dispute.record in papers_by_key:
            paper = papers_by_key[dispute.record]
            facet = facets_by_tag[dispute.tag]
            papers_by_key[dispute.record] = with_value(paper, facet, dispute.tag, dispute.agreed.value)
    return pool._replace(papers=tuple(papers_by_key[paper.key] for paper in pool.papers))


class Change(NamedTuple):
    """A tag of a paper (its key) with the published value, and the value on which readers of the sources agree."""

    paper: str
    tag: str
    published: str
    sources: str


def tag_changes(pool: Pool, disputes: Iterable[Dispute]) -> list[Change]:
    """Return the tags on whose value readers of the sources disagree with the pool, by paper, then by tag."""
    facets_by_tag = disputable(pool.taxonomy)
    agreed = {(dispute.record, dispute.tag): dispute.agreed.value for dispute in disputes if dispute.agreed is not None}
    changes = []
    for paper in pool.papers:
        for tag, facet in facets_by_tag.items():
            value = agreed.get((paper.key, tag))
            if value is not None and value != value_of(paper, facet, tag):
                changes.append(Change(paper.key, tag, published=value_of(paper, facet, tag), sources=value))
    return changes


def disputes_as_read(disputes: Iterable[Dispute], reading: ReadingName) -> tuple[Dispute, ...]:
    """Return the disputes with `stands` as the pool of `pool_as_read` has it."""
    if reading is ReadingName.PUBLISHED:
        return tuple(disputes)
    return tuple(dispute._replace(stands=dispute.agreed.value) if dispute.agreed else dispute for dispute in disputes)


def disputable(taxonomy: Taxonomy) -> dict[str, Facet]:
    """Return the tags that a dispute can be about, with their facets: single-term facets, then terms with levels."""
    facets_by_tag = {facet.field: facet for facet in taxonomy.papers if facet.kind is Kind.SINGLE}
    for facet in taxonomy.papers:
        if facet.kind is Kind.LEVELS:
            facets_by_tag.update((term.id, facet) for term in facet.terms)
    return facets_by_tag


def value_of(paper: Paper, facet: Facet, tag: str) -> str:
    """Return the value of a disputable tag: a term, `NA`, a level, or `NOT_ARISING`."""
    value = paper.tags.get(facet.field)
    if facet.kind is Kind.LEVELS:
        return value.get(tag, NOT_ARISING) if isinstance(value, dict) else NOT_ARISING
    return value if isinstance(value, str) else ""


def with_value(paper: Paper, facet: Facet, tag: str, value: str) -> Paper:
    """Return the paper with another value of a disputable tag."""
    new_tag: Tag = value
    if facet.kind is Kind.LEVELS:
        levels_by_term = {}
        for term in facet.terms:
            level = value if term.id == tag else value_of(paper, facet, term.id)
            if level != NOT_ARISING:
                levels_by_term[term.id] = level
        new_tag = levels_by_term
    return paper._replace(tags={**paper.tags, facet.field: new_tag})


def values_for(facet: Facet) -> tuple[str, ...]:
    """Return the values that a disputable tag of a facet can have."""
    if facet.kind is Kind.LEVELS:
        return (*(level.id for level in facet.levels), NOT_ARISING)
    return facet.values


def _rule_problem(agreed: Agreed, rules: abc.Mapping[str, int]) -> str:
    """Return the error about the rule of an agreed value; empty if the codebook has the rule."""
    if agreed.parsed_rule is None:
        example = next(iter(rules), "TAG")
        return f"{quote(agreed.rule)} names no rule; give a tag and a number, such as '{example} 1'"
    tag, number = agreed.parsed_rule
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
    for values_text, (_, by_node) in node.entries.items():
        by = decoders.checked_text(f"reading {values_text}", by_node, report)
        if by is not None:
            values = tuple(map(str.strip, values_text.split(",")))
            readings.append(Reading(values, by))
    return tuple(readings) if len(readings) == len(node.entries) else None


def _is_disagreement(facets: abc.Mapping[str, Facet], dispute: Dispute, node: Mapping, report: Report) -> bool:
    """Return True if all values exist, and two readings exclude each other; otherwise report what is wrong."""
    stands_at = node.entries["stands"][1].at
    placed_values = [(stands_at, dispute.stands)]
    places = [key_at for key_at, _ in entries_of(node, "readings").values()]
    for at, reading in zip(places, dispute.readings, strict=True):
        placed_values += [(at, value) for value in reading.values]
    agreed = dispute.agreed
    agreed_at = 0
    if agreed is not None:
        agreed_at = entries_of(node, "agreed")["value"][1].at
        placed_values.append((agreed_at, agreed.value))
    allowed = values_for(facets[dispute.tag])
    wrong = [(at, value) for at, value in placed_values if value not in allowed]
    for at, value in wrong:
        report.add("C203", at, f"{dispute.tag} has no value {quote(value)}{suggestion(value, allowed)}")
    if wrong:
        return False
    if not any(dispute.stands in reading.values for reading in dispute.readings):
        fix = f"name its reader under 'readings', as \"{dispute.stands}: WHO\""
        report.add("C205", stands_at, f"no reading has {quote(dispute.stands)}; {fix}")
        return False
    if not dispute.alternatives:
        message = f"no reading excludes {quote(dispute.stands)}, so there is nothing to dispute"
        report.add("C205", node.entries["readings"][0], message)
        return False
    if agreed is None or agreed.value in dispute.alternatives:
        return True
    if agreed.value == dispute.stands:
        problem = "is the paper's value; leave 'agreed' out"
    else:
        problem = "is in no reading; add it under 'readings'"
    report.add("C207", agreed_at, f"{quote(agreed.value)} {problem}")
    return False
