"""Finds changes that break a claim: other readings of disputed tags, near misses or candidates included, rows removed.

A claim breaks when a sum over records passes a limit. Depending on the claim, the sum counts the records it is about,
or missing and surplus rows, or adds up by how much records raise a share above its limit. The amount that a change adds
to the sum depends on the changed record alone. So the smallest set of changes that breaks a claim is a knapsack problem
with one choice for each record. Dynamic programming over the number of changes solves it exactly.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import accumulate, chain, combinations, islice, product
from math import prod
from typing import TypeAlias

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Severity
from orchtrace_corpus.base.identifiers import recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import Attribute, paper_attributes
from orchtrace_corpus.corpus.analysis.claims import Filters, Judge, Part, Verdict, agreement_of
from orchtrace_corpus.corpus.analysis.query import Filter, breaks, parse_rule
from orchtrace_corpus.corpus.analysis.statistics import ABSENT
from orchtrace_corpus.corpus.model import claim_file
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import Claim, Over, PoolName
from orchtrace_corpus.corpus.model.disputes import Dispute, State, disputable, pool_as_read, with_value
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, ReadingName, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy


class ChangeKind(StrEnum):
    """The kinds of changes, the most plausible first."""

    FLIP = "flip"
    TAKE_IN = "take in"
    LEAVE_OUT = "leave out"


class Change(NamedTuple):
    """A possible change of one record: another value of a disputed tag, or a record that is included or left out.

    Attributes:
        tags: The tags that an exclusion gets when it is included; a claim's filters decide which.
        is_settled: True if the dispute about the tag is settled.
    """

    kind: ChangeKind
    record: str
    tag: str = ""
    value: str = ""
    tags: Mapping[str, Tag] = {}
    is_settled: bool = False

    def __str__(self) -> str:
        if self.kind is ChangeKind.FLIP:
            suffix = " (settled)" if self.is_settled else ""
            return f"{self.record}: {self.tag} read as {self.value}{suffix}"
        if self.kind is ChangeKind.LEAVE_OUT:
            return f"{self.record} left out"
        tags = ", ".join(f"{field} {_tag_text(tag)}" for field, tag in self.tags.items())
        return f"{self.record} taken in with {tags}" if tags else f"{self.record} taken in"


def as_paper(exclusion: Exclusion, tags: Mapping[str, Tag]) -> Paper:
    """Return an exclusion as the paper that it would have been, added on the day of its screening."""
    return Paper(
        exclusion.id,
        exclusion.title,
        year=int(exclusion.screened[:4] or 0),
        urls=(exclusion.url,),
        added=exclusion.screened,
        tags=tags,
        published=exclusion.published,
    )


def near_misses(pool: Pool) -> tuple[Exclusion, ...]:
    """Return the exclusions that were nearly included, and have not been included since."""
    return tuple(exclusion for exclusion in pool.exclusions if exclusion.near_miss and not exclusion.promoted_to)


def possible_tags(
    taxonomy: Taxonomy, filters: Sequence[Filter], by: Attribute | None = None
) -> Iterator[dict[str, Tag]]:
    """Yield the combinations of tags that filters can tell apart, or that a claim that counts `by` an attribute can.

    Combinations that break a rule of the taxonomy are left out. A facet of kind `many` gets at most as many terms as
    there are filters on it, which is enough to pass all of them.
    """
    attributes = paper_attributes(taxonomy)
    rules = []
    for rule in taxonomy.rules:
        if rule.severity is Severity.ERROR and rule.require:
            with suppress(CommandUseError):  # `corpus check data` reports a rule that cannot be applied
                rules.append(parse_rule(rule, attributes))
    names = [condition.attribute.name for condition in filters]
    if by is not None:
        names.append(by.name)
    all_filters = [*filters, *(condition for rule in rules for query in rule for condition in query.filters)]
    open_tags = set(attributes)  # rules do not judge these, since the paper gets no value for them
    domains: dict[str, Iterable[Tag]] = {}  # the possible tags by field
    for facet in taxonomy.papers:
        terms = [term.id for term in facet.terms]
        absent: tuple[Tag, ...] = () if facet.required else (ABSENT,)
        count = names.count(facet.field)  # of filters on the facet
        assigned = {facet.field, *terms}
        if facet.kind is Kind.LEVELS:
            levels = [level.id for level in facet.levels]
            named_terms = [term for term in terms if term in names]
            if count:
                # Each filter on the facet, or on one of its terms, needs at most one term more.
                size = min(count + len(named_terms), len(terms))
                domains[facet.field] = _levels(dict.fromkeys(terms, levels), size)
            elif named_terms:
                assigned = set(named_terms)
                choices = {term: _distinct_levels(facet, term, all_filters) for term in named_terms}
                if by is not None and by.name in choices:
                    choices[by.name] = levels
                domains[facet.field] = _levels(choices, len(named_terms))
        elif facet.kind is Kind.SINGLE and count:
            domains[facet.field] = (*facet.values, *absent)
        elif count:
            term_lists = chain.from_iterable(combinations(terms, size) for size in range(1, count + 1))
            not_applicable = ((NOT_APPLICABLE,),) if facet.allows_na else ()
            domains[facet.field] = (*term_lists, *not_applicable, *absent)
        if facet.field in domains:
            open_tags -= assigned
    for values in product(*domains.values()):
        tags = {field: value for field, value in zip(domains, values, strict=True) if value != ABSENT}
        if not any(breaks(rule, Paper(tags=tags), open_tags) for rule in rules):
            yield tags


def _distinct_levels(facet: Facet, term: str, filters: Sequence[Filter]) -> list[str]:
    """Return the levels of a term that filters tell apart: of levels that all filters treat alike, only the first."""
    on_term = [condition for condition in filters if condition.attribute.name in (term, facet.field)]
    level_by_answers: dict[tuple[bool, ...], str] = {}
    for level in (ABSENT, *(level.id for level in facet.levels)):
        paper = Paper(tags={facet.field: {} if level == ABSENT else {term: level}})
        level_by_answers.setdefault(tuple(condition.matches(paper) for condition in on_term), level)
    return [level for level in level_by_answers.values() if level != ABSENT]


def _levels(choices: Mapping[str, Sequence[str]], size: int) -> Iterator[dict[str, str]]:
    """Yield every way to give a level to each of up to `size` terms."""
    for count in range(size + 1):
        for terms in combinations(choices, count):
            for levels in product(*map(choices.__getitem__, terms)):
                yield dict(zip(terms, levels, strict=True))


def _tag_text(tag: Tag) -> str:
    if isinstance(tag, Mapping):
        return " and ".join(f"{term} {level}" for term, level in tag.items()) or "none"
    return tag if isinstance(tag, str) else " and ".join(tag)


MAX_READINGS = 1024
"""The most combinations of other readings of one record to try; beyond it, only one, two or all tags are changed."""

_KINDS = tuple(ChangeKind)


class Robustness(NamedTuple):
    """The changes that break a claim.

    Attributes:
        holds: True if the claim holds without changes; if not, the other attributes are empty.
        flips: The other readings that break the claim, each by itself.
        breaks_by_all_flips: True if all other readings at once break it; None if no dispute concerns it.
        near_misses: The near misses that break it, each by itself, if they are included.
        breaks_by_all_near_misses: True if all near misses at once break it; None if there are none.
        left_out: The rows that break it, each by itself, if they are removed.
        smallest: A smallest set of changes that breaks it; empty if there is none.
        is_exact: True if there is certainly no smaller set; False if not all combinations were tried.
        near_miss_number: The number of near misses that could be included.
    """

    claim: Claim
    holds: bool
    flips: tuple[Change, ...] = ()
    breaks_by_all_flips: bool | None = None
    near_misses: tuple[Change, ...] = ()
    breaks_by_all_near_misses: bool | None = None
    left_out: tuple[Change, ...] = ()
    smallest: tuple[Change, ...] = ()
    is_exact: bool = True
    near_miss_number: int = 0


def stress(claims: Iterable[Claim], pool: Pool, disputes: Sequence[Dispute]) -> tuple[Robustness, ...]:
    """Return the changes that break each claim."""
    judge = Judge(pool)
    return tuple(_stress_claim(claim, judge, disputes) for claim in claims)


class _Variant(NamedTuple):
    """A record with changes of one kind, or without changes.

    Its contribution to the claim is `part`; None if the record is left out or out of scope.
    """

    changes: tuple[Change, ...]
    part: Part | None

    def has_kind(self, kind: ChangeKind) -> bool:
        return bool(self.changes) and self.changes[0].kind is kind


_Unit: TypeAlias = tuple[str, list[_Variant]]
"""The name of a record, and its variants; the first is the record without changes."""

_Weight: TypeAlias = Callable[[str, Part | None], int]
"""The number that a record, by its name and contribution, adds to a sum."""


def _stress_claim(claim: Claim, judge: Judge, disputes: Sequence[Dispute]) -> Robustness:
    if not judge.verdict(claim).holds:
        return Robustness(claim, holds=False)
    filters = judge.filters(claim)
    papers, is_exact = _paper_units(filters.get(Over.PAPERS), judge.pool, disputes)
    units = [*papers, *_exclusion_units(filters, judge.pool)]
    if Over.SCALE in filters:
        wanted, items = filters[Over.SCALE], judge.records(Over.SCALE, claim)
        units += [(item.name, [_Variant((), wanted.part(item)), _left_out(item.name)]) for item in items]
    ways = [_Way(weight, limit, units, claim) for weight, limit in _weights(claim)]
    sets = [changes for changes in (way.smallest() for way in ways) if changes is not None]
    near_misses = [name for name, variants in units if any(each.has_kind(ChangeKind.TAKE_IN) for each in variants)]
    return Robustness(
        claim,
        holds=True,
        flips=_singles(ways, ChangeKind.FLIP),
        breaks_by_all_flips=_all_at_once(ways, ChangeKind.FLIP),
        near_misses=_singles(ways, ChangeKind.TAKE_IN),
        breaks_by_all_near_misses=_all_at_once(ways, ChangeKind.TAKE_IN),
        left_out=_singles(ways, ChangeKind.LEAVE_OUT),
        smallest=min(sets, key=lambda changes: (len(changes), _kind_ranks(changes)), default=()),
        is_exact=is_exact,
        near_miss_number=len(near_misses),
    )


def _paper_units(filters: Filters | None, pool: Pool, disputes: Sequence[Dispute]) -> tuple[list[_Unit], bool]:
    """Return the papers with all their variants, and True if no combination of readings was skipped."""
    if filters is None:
        return [], True
    units: list[_Unit] = []
    is_exact = True
    facets_by_tag = disputable(pool.taxonomy)
    tags = filters.disputed_tags(facets_by_tag)
    disputes_by_paper: dict[str, list[Dispute]] = {}
    for dispute in disputes:
        if dispute.tag in tags:
            disputes_by_paper.setdefault(dispute.record, []).append(dispute)
    for paper in pool.papers:
        readings, is_complete = _readings(disputes_by_paper.get(paper.key, []))
        is_exact &= is_complete
        variants = [_Variant((), filters.part(paper))]
        for flips in readings:
            other = paper
            for flip in flips:
                other = with_value(other, facets_by_tag[flip.tag], flip.tag, flip.value)
            variants.append(_Variant(flips, filters.part(other)))
        variants.append(_left_out(paper.key))
        units.append((paper.key, variants))
    return units, is_exact


def _readings(disputes: Sequence[Dispute]) -> tuple[list[tuple[Change, ...]], bool]:
    """Return the combinations of other readings of one record, and True if none was skipped."""
    choices: list[list[Change]] = []  # for each dispute, its other values
    for dispute in disputes:
        is_settled = dispute.state is State.SETTLED
        flip = Change(ChangeKind.FLIP, dispute.record, dispute.tag, is_settled=is_settled)
        choices.append([flip._replace(value=value) for value in dispute.alternatives])
    is_complete = prod(len(choice) + 1 for choice in choices) <= MAX_READINGS
    sizes = range(1, len(choices) + 1) if is_complete else {1, 2, len(choices)}  # one, two or all tags
    readings: list[tuple[Change, ...]] = []
    for size in sizes:
        for chosen in combinations(choices, size):
            readings += islice(product(*chosen), MAX_READINGS)
    return readings, is_complete


def _exclusion_units(filters: Mapping[Over, Filters], pool: Pool) -> list[_Unit]:
    """Return the near misses with their variants; for a claim about exclusions, all exclusions."""
    paper_filters, exclusion_filters = filters.get(Over.PAPERS), filters.get(Over.EXCLUSIONS)
    if paper_filters:
        combinations_of_tags = list(possible_tags(pool.taxonomy, paper_filters.conditions, paper_filters.by))
    else:
        combinations_of_tags = [{}]
    includable = near_misses(pool)
    units = []
    for exclusion in pool.exclusions:
        variants = [_Variant((), exclusion_filters.part(exclusion) if exclusion_filters else None)]
        if exclusion in includable:
            changes: dict[Part | None, Change] = {}  # by contribution, so that each is tried once
            for tags in combinations_of_tags:
                part = paper_filters.part(as_paper(exclusion, tags)) if paper_filters else None
                changes.setdefault(part, Change(ChangeKind.TAKE_IN, exclusion.id, tags=tags))
            variants += [_Variant((change,), part) for part, change in changes.items()]
        if exclusion_filters:
            variants.append(_left_out(exclusion.id))
        if len(variants) > 1:
            units.append((exclusion.id, variants))
    return units


def _left_out(name: str) -> _Variant:
    return _Variant((Change(ChangeKind.LEAVE_OUT, name),), None)


def _weights(claim: Claim) -> list[tuple[_Weight, int]]:
    """Return every way to break a claim that holds: the weights of records, and the limit that their sum must pass.

    A lower limit is an upper limit of the negative sum.
    """
    expect = claim.expect
    ways: list[tuple[_Weight, int]] = []
    if isinstance(expect, claim_file.Number):
        ways += _beyond(lambda _, part: int(_is_selected(part)), expect.bounds.low, expect.bounds.high)
    elif isinstance(expect, claim_file.Share):
        low, high = expect.bounds
        ways += _beyond(lambda _, part: int(part is not None and part.counted), 1, None)  # a share needs a record
        if high is not None:
            ways.append((lambda _, part: _excess(part, high), 0))
        if low is not None:
            ways.append((lambda _, part: -_excess(part, low), 0))
    elif isinstance(expect, claim_file.Keys):  # the number of missing and of surplus rows
        ways.append((lambda name, part: int(_is_selected(part) != (name in expect.keys)), 0))
    elif isinstance(expect, claim_file.Counts):
        for value, count in expect.counts.items():
            ways += _beyond(_having(value), count, count)
    elif isinstance(expect, claim_file.Agreement):
        for column, (equal, total) in expect.agreement.items():
            ways += _beyond(_cell_count(column, only_equal=True), equal, equal)
            ways += _beyond(_cell_count(column, only_equal=False), total, total)
    else:  # the number of named records without the expected value
        values = expect.values
        ways.append((lambda name, part: int(name in values and values[name] not in _selected_values(part)), 0))
    return ways


def _beyond(weight: _Weight, low: int | None, high: int | None) -> list[tuple[_Weight, int]]:
    """Return the ways to a sum above `high` or below `low`; None stands for no limit."""
    ways: list[tuple[_Weight, int]] = []
    if high is not None:
        ways.append((weight, high))
    if low is not None:
        ways.append((lambda name, part: -weight(name, part), -low))
    return ways


def _is_selected(part: Part | None) -> bool:
    return part is not None and part.selected and part.counted


def _selected_values(part: Part | None) -> tuple[str, ...]:
    return part.values if part is not None and _is_selected(part) else ()


def _having(value: str) -> _Weight:
    return lambda _, part: int(value in _selected_values(part))


def _cell_count(column: str, *, only_equal: bool) -> _Weight:
    """Return the weight that counts a record's cells in a column that readers coded."""

    def count(_: str, part: Part | None) -> int:
        equal, total = agreement_of(column, Counter(_selected_values(part)))
        return equal if only_equal else total

    return count


def _excess(part: Part | None, limit: int) -> int:
    """Return by how much a record raises a share above a limit; both are in hundredths of a per cent."""
    if part is None or not part.counted:
        return 0
    return 10_000 - limit if part.selected else -limit


class _Way:
    """One way to break a claim.

    Attributes:
        variants: For each record, its variants with the amount that each adds to the sum.
        slack: The amount that can be added to the sum without passing the limit.
    """

    def __init__(self, weight: _Weight, limit: int, units: Sequence[_Unit], claim: Claim) -> None:
        expect = claim.expect
        names: set[str] = set()  # of records that the claim names; a record that the pool does not have counts, too
        if isinstance(expect, claim_file.Keys):
            names.update(expect.keys)
        elif isinstance(expect, claim_file.Values):
            names.update(expect.values)
        total = sum(weight(name, None) for name in names - {name for name, _ in units})
        self.variants: list[list[tuple[_Variant, int]]] = []
        for name, variants in units:
            unchanged = weight(name, variants[0].part)
            total += unchanged
            self.variants.append([(variant, weight(name, variant.part) - unchanged) for variant in variants])
        self.slack = limit - total

    def smallest(self) -> tuple[Change, ...] | None:
        """Return a smallest set of changes that breaks the claim; None if there is none."""
        # A gain is the amount that a variant adds to the sum. Most records have one useful change; among these changes,
        # the largest gains are best. Only records with several useful variants need dynamic programming.
        single: list[tuple[int, _Variant]] = []
        several: list[list[tuple[int, _Variant]]] = []
        for variants in self.variants:
            useful: list[tuple[int, _Variant]] = []  # variants that gain more than all variants with fewer changes
            largest_gain = 0
            for variant, gain in sorted(variants, key=lambda pair: (len(pair[0].changes), -pair[1])):
                if gain > largest_gain:
                    useful.append((gain, variant))
                    largest_gain = gain
            if useful and len(useful[-1][1].changes) == 1:
                single += useful
            elif useful:
                several.append(useful)
        single.sort(key=lambda choice: (-choice[0], _kind_ranks(choice[1].changes)))
        single_gains = [0, *accumulate(gain for gain, _ in single)]  # of the first 0, 1, 2 ... in `single`
        best: dict[int, tuple[int, tuple[Change, ...]]] = {0: (0, ())}  # by number of changes: the most to gain
        for useful in several:
            better = dict(best)
            for count, (gain, changes) in best.items():
                for added, variant in useful:
                    size = count + len(variant.changes)
                    if size not in better or gain + added > better[size][0]:
                        better[size] = (gain + added, (*changes, *variant.changes))
            best = better
        sets = []
        for gain, changes in best.values():
            for count, single_gain in enumerate(single_gains):
                if gain + single_gain > self.slack:
                    sets.append((*changes, *chain.from_iterable(variant.changes for _, variant in single[:count])))
                    break
        return min(sets, key=len, default=None)


def _kind_ranks(changes: Sequence[Change]) -> list[int]:
    """Return the rank of each change's kind, 0 for the most plausible."""
    return [_KINDS.index(change.kind) for change in changes]


def _singles(ways: Sequence[_Way], kind: ChangeKind) -> tuple[Change, ...]:
    """Return the changes of a kind that break a claim alone, one for each tag or record."""
    changes: dict[tuple[str, str], Change] = {}
    for way in ways:
        for variant, gain in chain.from_iterable(way.variants):
            if gain > way.slack and len(variant.changes) == 1 and variant.has_kind(kind):
                (change,) = variant.changes
                changes.setdefault((change.record, change.tag), change)
    return tuple(changes.values())


def _all_at_once(ways: Sequence[_Way], kind: ChangeKind) -> bool | None:
    """Return True if all changes of a kind together break a claim; None if there are no such changes."""
    is_possible = False
    for way in ways:
        total = 0
        for variants in way.variants:
            gains = [(len(variant.changes), gain) for variant, gain in variants if variant.has_kind(kind)]
            if gains:
                is_possible = True
                _, gain = max(gains)  # of the variant with all changes of the record
                total += gain
        if total > way.slack:
            return True
    return False if is_possible else None


class ReadingVerdict(NamedTuple):
    """The verdict on a claim with the published tags, and the disputes that change it.

    `falls_by` are the disputes whose agreed values make the claim fail; with the agreed values of all others it holds.
    """

    published: bool
    falls_by: tuple[Dispute, ...] = ()


def compare_readings(claims: Iterable[Claim], pool: Pool, disputes: Sequence[Dispute]) -> Mapping[str, ReadingVerdict]:
    """Return, by claim id, the verdict with the published tags, and the disputes whose agreed values change it."""
    published, sources = Judge(pool), Judge(pool_as_read(pool, disputes, ReadingName.SOURCES))
    verdicts = {}
    for claim in claims:
        holds = published.verdict(claim).holds
        harmless: list[Dispute] = []
        breaking: list[Dispute] = []
        if holds and not sources.verdict(claim).holds:
            tags = published.filters(claim)[Over.PAPERS].disputed_tags(disputable(pool.taxonomy))
            for dispute in disputes:
                if dispute.agreed is not None and dispute.tag in tags:
                    judge = Judge(pool_as_read(pool, (*harmless, dispute), ReadingName.SOURCES))
                    group = harmless if judge.verdict(claim).holds else breaking
                    group.append(dispute)
        verdicts[claim.id] = ReadingVerdict(holds, tuple(breaking))
    return verdicts


class Cause(NamedTuple):
    """A candidate, and a claim that holds over the current pool and that the candidate makes fail.

    Attributes:
        is_certain: True if the claim fails by decided tags; False if only in some reading of undecided tags.
        tags: The values of the tags that the claim depends on: the decided values, or the values of all readings.
        sources: The URLs at which these values were read.
        copies: The URLs among `sources` that are copies of the paper at another address.
    """

    claim: Claim
    name: str
    is_certain: bool
    tags: Mapping[str, tuple[str, ...]]
    sources: tuple[str, ...]
    copies: tuple[str, ...]
    proposal: Decision


def causes(verdicts: Iterable[Verdict], pool: Pool, candidates: Iterable[Candidate]) -> tuple[Cause, ...]:
    """Return, claim by claim, the candidates that break or could break a claim that holds over the current pool."""
    judge = Judge(pool)
    candidates_by_name = {candidate.name: candidate for candidate in candidates}
    attributes = judge.attributes[Over.PAPERS]
    all_causes = []
    for verdict in verdicts:
        today = verdict.pools.get(PoolName.TODAY)
        with_candidates = verdict.pools.get(PoolName.CANDIDATES)
        if with_candidates is None or today is None or not today.holds:
            continue
        wanted = judge.filters(verdict.claim).get(Over.PAPERS)
        if wanted is None:  # candidates are papers
            continue
        attributes_of_claim = [condition.attribute for condition in wanted.conditions]
        if wanted.by:
            attributes_of_claim.append(wanted.by)
        tags = [name for attribute in attributes_of_claim for name in _tag_names(attribute)]
        for name in (*with_candidates.falls_by, *with_candidates.could_fall_by):
            candidate = candidates_by_name[name]  # only candidates break a claim that holds over the current pool
            values = {}
            for tag in tags:
                decided = attributes[tag].values(candidate.paper)
                if decided:
                    values[tag] = decided
                elif candidate.is_open(tag):
                    values[tag] = candidate.values_in_readings(tag)
            sources: dict[str, None] = {}
            copies = []
            for reading in candidate.readings:
                if any(reading.tags.get(tag) in values[tag] for tag in values):
                    sources |= dict.fromkeys(reading.sources)
                    if reading.copy:  # at the paper's own URLs, or at a URL with an identifier, is no copy
                        paper_urls = candidate.paper.urls
                        copies += [url for url in reading.sources if url not in paper_urls and not recognise_url(url)]
            is_certain = name in with_candidates.falls_by
            urls = tuple(sources or candidate.paper.urls[:1])
            all_causes.append(Cause(verdict.claim, name, is_certain, values, urls, tuple(copies), candidate.proposal))
    return tuple(all_causes)


def _tag_names(attribute: Attribute) -> tuple[str, ...]:
    """Return the tags behind an attribute: its facet, all terms of a facet with levels, or none for a fact."""
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and attribute.name == facet.field:
        return tuple(term.id for term in facet.terms)
    return (attribute.name,) if attribute.terms and attribute.name != "published" else ()
