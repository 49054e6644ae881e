"""What could be otherwise in a corpus: a disputed tag read the other way, a near miss taken in, a row left out.

`analysis.stress` asks which of these changes break a claim.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations, product
from typing import NamedTuple

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Severity
from orchtrace_corpus.corpus.analysis.attributes import Attribute, paper_attributes
from orchtrace_corpus.corpus.analysis.query import Filter, Operator, parse_mapping
from orchtrace_corpus.corpus.analysis.statistics import ABSENT
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy


class ChangeKind(StrEnum):
    """What is changed."""

    FLIP = "flip"
    TAKE_IN = "take in"
    LEAVE_OUT = "leave out"


class Change(NamedTuple):
    """One thing that could be otherwise.

    Attributes:
        record: The key of the paper, or the id of the exclusion.
        tag: The disputed tag that is read the other way.
        value: Its other value.
        tags: The tags with which an exclusion is taken in, as far as they matter.
        is_settled: Whether a rule has decided the dispute about the tag.
    """

    kind: ChangeKind
    record: str
    tag: str = ""
    value: str = ""
    tags: Mapping[str, Tag] = {}
    is_settled: bool = False

    def __str__(self) -> str:
        if self.kind is ChangeKind.FLIP:
            return f"{self.record}: {self.tag} read as {self.value}{' (settled)' * self.is_settled}"
        if self.kind is ChangeKind.LEAVE_OUT:
            return f"{self.record} left out"
        shown = ", ".join(f"{field} {_shown(tag)}" for field, tag in self.tags.items())
        return f"{self.record} taken in" + f" with {shown}" * bool(shown)


def taken_in(exclusion: Exclusion, tags: Mapping[str, Tag]) -> Paper:
    """An exclusion as the paper that it would have been, on the day on which it was screened."""
    day = exclusion.screened
    urls, year = (exclusion.url,), int(day[:4] or 0)
    return Paper(
        exclusion.id, exclusion.title, urls=urls, year=year, added=day, tags=tags, published=exclusion.published
    )


def near_misses(pool: Pool) -> tuple[Exclusion, ...]:
    """The exclusions that came close to being retained, and were not taken in since."""
    return tuple(exclusion for exclusion in pool.exclusions if exclusion.near_miss and not exclusion.promoted_to)


MAX_LEVEL_COMBINATIONS = 4096
"""The ways to give the terms of a facet levels that are all tried; beyond, only those that the filters tell apart."""


class Possibilities:
    """The tags that some filters can tell apart, as far as the taxonomy allows them together.

    Of a facet with several terms as many are given as there are filters on it, which is as many as it takes to pass
    them. Rules of the taxonomy count where these tags decide them; other tags are free to meet the rest.
    """

    def __init__(self, taxonomy: Taxonomy, filters: Sequence[Filter], by: Attribute | None = None) -> None:
        self._domains = list(_domains(taxonomy, filters, by))
        self._rules = list(_rules(taxonomy))

    def __iter__(self) -> Iterator[dict[str, Tag]]:
        """Every combination of tags, in the taxonomy's order."""
        for values in product(*(domain.values for domain in self._domains)):
            pairs = zip(self._domains, values, strict=True)
            tags = {domain.facet.field: value for domain, value in pairs if value != ABSENT}
            paper = Paper(tags=tags)
            if not any(
                all(self._is_met(condition, paper) is True for condition in when)
                and any(self._is_met(condition, paper) is False for condition in require)
                for when, require in self._rules  # broken whatever the other tags are
            ):
                yield tags

    def _is_met(self, condition: Filter, paper: Paper) -> bool | None:
        """Whether the record meets a condition; None where that depends on tags that are not given."""
        name = condition.attribute.name
        domain = next((one for one in self._domains if name == one.facet.field or name in one.facet_terms), None)
        if domain is None:
            return None
        met = condition.matches(paper)
        if domain.terms is None or name in domain.terms:
            return met
        if name != domain.facet.field:
            return None
        # Terms that are not given can only add levels: what has one keeps it.
        comparison, is_of_absence = condition.operator, ABSENT in condition.alternatives
        asks_for_one = comparison is Operator.EQUAL and not is_of_absence
        if asks_for_one or (comparison is Operator.UNEQUAL and condition.alternatives == (ABSENT,)):
            return met or None
        is_ruled_out = comparison is Operator.UNEQUAL and not is_of_absence and not met
        return False if is_ruled_out else None


class _Domain(NamedTuple):
    """The values that a facet of a hypothetical record can have.

    Attributes:
        terms: Of a facet of kind `levels`, the terms that are given; None where any can be.
    """

    facet: Facet
    terms: tuple[str, ...] | None
    values: tuple[Tag, ...]

    @property
    def facet_terms(self) -> tuple[str, ...]:
        """The names by which filters reach into a facet of kind `levels`."""
        return tuple(term.id for term in self.facet.terms) if self.facet.kind is Kind.LEVELS else ()


def _domains(taxonomy: Taxonomy, filters: Sequence[Filter], by: Attribute | None) -> Iterator[_Domain]:
    names = [condition.attribute.name for condition in filters] + ([by.name] if by is not None else [])
    for facet in taxonomy.papers:
        absent: tuple[Tag, ...] = () if facet.required else (ABSENT,)
        number = names.count(facet.field)
        if facet.kind is Kind.SINGLE and number:
            yield _Domain(facet, None, (*facet.values, *absent))
        elif facet.kind is Kind.MANY and number:
            terms = [term.id for term in facet.terms]
            several = (chosen for size in range(1, number + 1) for chosen in combinations(terms, size))
            na_list = ((NOT_APPLICABLE,),) if facet.allows_na else ()
            yield _Domain(facet, None, (*several, *na_list, *absent))
        elif facet.kind is Kind.LEVELS:
            read = tuple(term.id for term in facet.terms if term.id in names)
            if number:
                size = min(number + len(read), len(facet.terms))
                yield _Domain(facet, None, tuple(_levels(facet, [term.id for term in facet.terms], size)))
            elif read and (len(facet.levels) + 1) ** len(read) <= MAX_LEVEL_COMBINATIONS:
                yield _Domain(facet, read, tuple(_levels(facet, read, len(read))))
            elif read:
                is_by = by is not None and by.name in read
                asked = [
                    *filters,
                    *(condition for rule in _rules(taxonomy) for conditions in rule for condition in conditions),
                ]
                levels = {term: _levels_told_apart(facet, term, () if is_by else asked) for term in read}
                given = (dict(zip(read, values, strict=True)) for values in product(*levels.values()))
                yield _Domain(facet, read, tuple(sorted(map(_without_absent, given), key=len)))


def _levels_told_apart(facet: Facet, term: str, filters: Sequence[Filter]) -> list[str]:
    """Return a level of a term, or its absence, for each answer that filters on it can give; all without filters."""
    values = [ABSENT, *(level.id for level in facet.levels)]
    if not filters:
        return values
    representatives: dict[tuple[bool, ...], str] = {}
    for value in values:
        paper = Paper(tags={facet.field: {} if value == ABSENT else {term: value}})
        answers = tuple(condition.matches(paper) for condition in filters if condition.attribute.name == term)
        representatives.setdefault(answers, value)
    return list(representatives.values())


def _without_absent(levels: dict[str, str]) -> dict[str, str]:
    return {term: level for term, level in levels.items() if level != ABSENT}


def _levels(facet: Facet, terms: Sequence[str], size: int) -> Iterator[dict[str, str]]:
    """Every way to give up to `size` of some terms a level."""
    levels = [level.id for level in facet.levels]
    for number in range(size + 1):
        for chosen in combinations(terms, number):
            for given in product(levels, repeat=number):
                yield dict(zip(chosen, given, strict=True))


def _rules(taxonomy: Taxonomy) -> Iterator[tuple[Sequence[Filter], Sequence[Filter]]]:
    """The taxonomy's rules that are errors, as filters; one that cannot be applied is for `corpus validate`."""
    attributes = paper_attributes(taxonomy)
    for rule in taxonomy.rules:
        if rule.severity is Severity.ERROR and rule.require:
            written = ({one.field: one.alternatives for one in conditions} for conditions in (rule.when, rule.require))
            try:
                when, require = (parse_mapping(conditions, attributes).filters for conditions in written)
            except CommandUseError:
                continue
            yield when, require


def _shown(tag: Tag) -> str:
    if isinstance(tag, str):
        return tag
    if isinstance(tag, tuple):
        return " and ".join(tag)
    return " and ".join(f"{term} {level}" for term, level in tag.items()) or "none"
