"""Finds changes that break a claim: other readings of disputed tags, near misses or candidates included, rows removed.

A claim is broken when a sum over records passes a limit. The sum counts records, or the rows that are missing or too
many, or adds up the excess of a share. The amount that a change adds to it depends only on its own record. So the
smallest set of changes that breaks a claim is a knapsack with one choice for each record, solved exactly by dynamic
programming over the number of changes.
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
    """The kinds of changes."""

    FLIP = "flip"
    TAKE_IN = "take in"
    LEAVE_OUT = "leave out"


class Change(NamedTuple):
    """A possible change of one record: another value of a disputed tag, or a record that is included or left out.

    An included exclusion gets the `tags` that a claim asks for. `is_settled` says if a rule has decided the dispute.
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
    day, urls = exclusion.screened, (exclusion.url,)
    year = int(day[:4] or 0)
    return Paper(
        exclusion.id, exclusion.title, year=year, urls=urls, added=day, tags=tags, published=exclusion.published
    )


def near_misses(pool: Pool) -> tuple[Exclusion, ...]:
    """Return the exclusions that were nearly included, and have not been included since."""
    return tuple(exclusion for exclusion in pool.exclusions if exclusion.near_miss and not exclusion.promoted_to)


def possible_tags(
    taxonomy: Taxonomy, filters: Sequence[Filter], by: Attribute | None = None
) -> Iterator[dict[str, Tag]]:
    """Yield the combinations of tags that filters, and counts by an attribute, can distinguish; none breaks a rule.

    A facet of kind `many` gets at most as many terms as there are filters on it, which is enough to pass them all.
    """
    attributes = paper_attributes(taxonomy)
    rules = []
    for rule in taxonomy.rules:
        if rule.severity is Severity.ERROR and rule.require:
            with suppress(CommandUseError):  # `corpus check data` reports a rule that cannot be applied
                rules.append(parse_rule(rule, attributes))
    names = [condition.attribute.name for condition in filters] + ([by.name] if by is not None else [])
    asked = [*filters, *(condition for rule in rules for query in rule for condition in query.filters)]
    open_tags = set(attributes)
    domains: dict[str, Iterable[Tag]] = {}
    for facet in taxonomy.papers:
        terms = [term.id for term in facet.terms]
        absent: tuple[Tag, ...] = () if facet.required else (ABSENT,)
        count = names.count(facet.field)
        assigned = {facet.field, *terms}
        if facet.kind is Kind.LEVELS:
            levels = [level.id for level in facet.levels]
            named_terms = [term for term in terms if term in names]
            if count:
                size = min(count + len(named_terms), len(terms))  # a filter asks for at most one more term
                domains[facet.field] = _levels(dict.fromkeys(terms, levels), size)
            elif named_terms:
                assigned = set(named_terms)
                choices = {term: _distinct_levels(facet, term, asked) for term in named_terms}
                if by is not None and by.name in choices:
                    choices[by.name] = levels
                domains[facet.field] = _levels(choices, len(named_terms))
        elif facet.kind is Kind.SINGLE and count:
            domains[facet.field] = (*facet.values, *absent)
        elif count:
            several = (chosen for size in range(1, count + 1) for chosen in combinations(terms, size))
            na_list = ((NOT_APPLICABLE,),) if facet.allows_na else ()
            domains[facet.field] = (*several, *na_list, *absent)
        if facet.field in domains:
            open_tags -= assigned
    for values in product(*domains.values()):
        tags = {field: value for field, value in zip(domains, values, strict=True) if value != ABSENT}
        if not any(breaks(rule, Paper(tags=tags), open_tags) for rule in rules):
            yield tags


def _distinct_levels(facet: Facet, term: str, filters: Sequence[Filter]) -> list[str]:
    """Return one level of a term for each combination of answers that filters on it can give."""
    about = [condition for condition in filters if condition.attribute.name in (term, facet.field)]
    representatives: dict[tuple[bool, ...], str] = {}
    for level in (ABSENT, *(level.id for level in facet.levels)):
        paper = Paper(tags={facet.field: {} if level == ABSENT else {term: level}})
        representatives.setdefault(tuple(condition.matches(paper) for condition in about), level)
    return [level for level in representatives.values() if level != ABSENT]


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
"""The most combinations of other readings of one record to try; of more, only those of one, two or all tags."""

_KINDS = tuple(ChangeKind)


class Robustness(NamedTuple):
    """The changes that break a claim.

    Attributes:
        holds: Whether the claim holds without changes; if not, the other attributes are empty.
        flips: The other readings of which each breaks it alone.
        breaks_by_all_flips: Whether all other readings at once break it; None if no dispute concerns it.
        near_misses: The near misses of which each breaks it alone when it is included.
        breaks_by_all_near_misses: Whether all near misses at once break it; None if there are none.
        left_out: The rows of which each breaks it alone when it is removed.
        smallest: A smallest set of changes that breaks it; empty if there is none.
        is_exact: Whether there is certainly no smaller set.
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
    """A record with changes of one kind, and its contribution to the claim; None if it is left out or out of scope."""

    changes: tuple[Change, ...]
    part: Part | None

    def has_kind(self, kind: ChangeKind) -> bool:
        """Return True if the changes are of a kind."""
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
    if (wanted := filters.get(Over.SCALE)) is not None:
        observations = judge.records(Over.SCALE, claim)
        units += [(item.name, [_Variant((), wanted.part(item)), _left_out(item.name)]) for item in observations]
    ways = [_Way(weight, limit, units, claim) for weight, limit in _weights(claim)]
    sets = [changes for way in ways if (changes := way.smallest()) is not None]
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
        near_miss_number=sum(any(v.has_kind(ChangeKind.TAKE_IN) for v in variants) for _, variants in units),
    )


def _paper_units(filters: Filters | None, pool: Pool, disputes: Sequence[Dispute]) -> tuple[list[_Unit], bool]:
    """Return the papers with all their variants, and True if no combination of readings was skipped."""
    if filters is None:
        return [], True
    units: list[_Unit] = []
    is_exact = True
    known = disputable(pool.taxonomy)
    tags = filters.disputed_tags(known)
    concerning: dict[str, list[Dispute]] = {}
    for dispute in disputes:
        if dispute.tag in tags:
            concerning.setdefault(dispute.record, []).append(dispute)
    for paper in pool.papers:
        readings, is_complete = _readings(concerning.get(paper.key, []))
        is_exact &= is_complete
        variants = [_Variant((), filters.part(paper))]
        for flips in readings:
            other = paper
            for flip in flips:
                other = with_value(other, known[flip.tag], flip.tag, flip.value)
            variants.append(_Variant(flips, filters.part(other)))
        variants.append(_left_out(paper.key))
        units.append((paper.key, variants))
    return units, is_exact


def _readings(disputes: Sequence[Dispute]) -> tuple[list[tuple[Change, ...]], bool]:
    """Return the combinations of other readings of one record, and True if none was skipped."""
    choices = [
        [
            Change(ChangeKind.FLIP, dispute.record, dispute.tag, value, is_settled=dispute.state is State.SETTLED)
            for value in dispute.alternatives
        ]
        for dispute in disputes
    ]
    is_complete = prod(len(choice) + 1 for choice in choices) <= MAX_READINGS
    sizes = range(1, len(choices) + 1) if is_complete else {1, 2, len(choices)}  # one, two or all tags
    products = (product(*chosen) for size in sizes for chosen in combinations(choices, size))
    return [changes for combined in products for changes in islice(combined, MAX_READINGS)], is_complete


def _exclusion_units(filters: Mapping[Over, Filters], pool: Pool) -> list[_Unit]:
    """Return the near misses with their variants; for a claim about exclusions, all exclusions."""
    of_papers, of_exclusions = filters.get(Over.PAPERS), filters.get(Over.EXCLUSIONS)
    asked = (of_papers.conditions, of_papers.by) if of_papers else ((), None)
    possible = list(possible_tags(pool.taxonomy, *asked))
    includable = near_misses(pool)
    units = []
    for exclusion in pool.exclusions:
        variants = [_Variant((), of_exclusions.part(exclusion) if of_exclusions else None)]
        if exclusion in includable:
            parts: dict[Part | None, Change] = {}
            for tags in possible:
                part = of_papers.part(as_paper(exclusion, tags)) if of_papers else None
                parts.setdefault(part, Change(ChangeKind.TAKE_IN, exclusion.id, tags=tags))
            variants += [_Variant((change,), part) for part, change in parts.items()]
        if of_exclusions:
            variants.append(_left_out(exclusion.id))
        if len(variants) > 1:
            units.append((exclusion.id, variants))
    return units


def _left_out(name: str) -> _Variant:
    return _Variant((Change(ChangeKind.LEAVE_OUT, name),), None)


def _weights(claim: Claim) -> list[tuple[_Weight, int]]:
    """Return every way to break a claim that holds: the weights of records, and the limit that their sum must pass."""
    expect = claim.expect
    ways: list[tuple[_Weight, int]] = []
    if isinstance(expect, claim_file.Number):
        ways += _beyond(lambda _, part: int(_is_selected(part)), expect.bounds.low, expect.bounds.high)
    elif isinstance(expect, claim_file.Share):
        low, high = expect.bounds
        ways += _beyond(lambda _, part: int(part is not None and part.counted), 1, None)  # no share of no records
        if high is not None:
            ways.append((lambda _, part: _excess(part, high), 0))
        if low is not None:
            ways.append((lambda _, part: -_excess(part, low), 0))
    elif isinstance(expect, claim_file.Keys):
        ways.append((lambda name, part: int(_is_selected(part) != (name in expect.keys)), 0))
    elif isinstance(expect, claim_file.Counts):
        for value, count in expect.counts.items():
            ways += _beyond(_having(value), count, count)
    elif isinstance(expect, claim_file.Agreement):
        for name, (equal, total) in expect.agreement.items():
            ways += (*_beyond(_cells(name, 0), equal, equal), *_beyond(_cells(name, 1), total, total))
    else:
        values = expect.values
        ways.append((lambda name, part: int(name in values and values[name] not in _selected_values(part)), 0))
    return ways


def _beyond(weight: _Weight, low: int | None, high: int | None) -> list[tuple[_Weight, int]]:
    """Return the ways to a sum above `high` or below `low`."""
    ways = [] if high is None else [(weight, high)]
    return ways if low is None else [*ways, (lambda name, part: -weight(name, part), -low)]


def _is_selected(part: Part | None) -> bool:
    return part is not None and part.selected and part.counted


def _selected_values(part: Part | None) -> tuple[str, ...]:
    return part.values if part is not None and _is_selected(part) else ()


def _having(value: str) -> _Weight:
    return lambda _, part: int(value in _selected_values(part))


def _cells(column: str, index: int) -> _Weight:
    """Count the cells of a record in a column: for index 0 the equal ones, for index 1 all."""
    return lambda _, part: agreement_of(column, Counter(part.values))[index] if part and _is_selected(part) else 0


def _excess(part: Part | None, hundredths: int) -> int:
    """Return the amount by which a record raises a share above a limit in hundredths of a per cent."""
    return 10_000 * part.selected - hundredths if part is not None and part.counted else 0


class _Way:
    """One way to break a claim: what each variant adds to the sum, and the `slack` that the sum has up to the limit."""

    def __init__(self, weight: _Weight, limit: int, units: Sequence[_Unit], claim: Claim) -> None:
        expect = claim.expect
        names: set[str] = set()  # in the claim; records that the pool does not have count, too
        if isinstance(expect, (claim_file.Keys, claim_file.Values)):
            names.update(expect.keys if isinstance(expect, claim_file.Keys) else expect.values)
        total = sum(weight(name, None) for name in names - {name for name, _ in units})
        self.variants: list[list[tuple[_Variant, int]]] = []
        for name, variants in units:
            present = weight(name, variants[0].part)
            total += present
            self.variants.append([(variant, weight(name, variant.part) - present) for variant in variants])
        self.slack = limit - total

    def smallest(self) -> tuple[Change, ...] | None:
        """Return a smallest set of changes that breaks the claim; None if there is none."""
        single: list[tuple[int, _Variant]] = []  # of records that gain most by one change
        several: list[list[tuple[int, _Variant]]] = []  # of each other record, by the number of changes
        for variants in self.variants:
            useful: list[tuple[int, _Variant]] = []  # those that add more than all variants with fewer changes
            for variant, gain in sorted(variants, key=lambda pair: (len(pair[0].changes), -pair[1])):
                if gain > (useful[-1][0] if useful else 0):
                    useful.append((gain, variant))
            if useful and len(useful[-1][1].changes) == 1:
                single += useful
            elif useful:
                several.append(useful)
        single.sort(key=lambda choice: (-choice[0], _kind_ranks(choice[1].changes)))
        single_gains = [0, *accumulate(gain for gain, _ in single)]  # of the first 0, 1, 2 ... in `single`
        best: dict[int, tuple[int, tuple[Change, ...]]] = {0: (0, ())}  # the most to gain, by number of changes
        for useful in several:
            better = dict(best)
            for cost, (gain, changes) in best.items():
                for added, variant in useful:
                    size = cost + len(variant.changes)
                    if size not in better or gain + added > better[size][0]:
                        better[size] = (gain + added, (*changes, *variant.changes))
            best = better
        sets = []
        for gain, changes in best.values():
            count = next((count for count, added in enumerate(single_gains) if gain + added > self.slack), None)
            if count is not None:
                added_changes = chain.from_iterable(variant.changes for _, variant in single[:count])
                sets.append((*changes, *added_changes))
        return min(sets, key=len, default=None)


def _kind_ranks(changes: Sequence[Change]) -> list[int]:
    """Return the rank of each change's kind: other readings are the most plausible, removed rows the least."""
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
            changed = [(len(variant.changes), gain) for variant, gain in variants if variant.has_kind(kind)]
            if changed:
                is_possible = True
                total += max(changed)[1]  # of the variant with the most changes: all those of the record
        if total > way.slack:
            return True
    return False if is_possible else None


class ReadingVerdict(NamedTuple):
    """The verdict on a claim as published, and by the reading of the sources.

    `falls_by` are the disputes whose agreed values make it fail; with the agreed values of all others it holds.
    """

    published: bool
    falls_by: tuple[Dispute, ...] = ()


def compare_readings(claims: Iterable[Claim], pool: Pool, disputes: Sequence[Dispute]) -> Mapping[str, ReadingVerdict]:
    """Return for each claim's id the verdicts as published and with the tags that readers of the sources agree on."""
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
        is_certain: Whether the claim fails by decided tags, not only in some reading of undecided ones.
        tags: The values of the tags that the claim depends on: the decided ones, or those of all readings.
        sources: The addresses at which they were read.
        copies: Those of the addresses that are hosted copies of the paper.
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
    judge, by_name = Judge(pool), {candidate.name: candidate for candidate in candidates}
    attributes = judge.attributes[Over.PAPERS]
    listed = []
    for verdict in verdicts:
        today, with_candidates = (verdict.pools.get(name) for name in (PoolName.TODAY, PoolName.CANDIDATES))
        if with_candidates is None or today is None or not today.holds:
            continue
        wanted = judge.filters(verdict.claim).get(Over.PAPERS)
        if wanted is None:  # candidates are papers
            continue
        attributes_asked = [condition.attribute for condition in wanted.conditions] + ([wanted.by] if wanted.by else [])
        tags = [name for attribute in attributes_asked for name in _tags(attribute)]
        for name in (*with_candidates.falls_by, *with_candidates.could_fall_by):
            candidate = by_name[name]  # no paper of the pool breaks a claim that holds over it
            values = {}
            for tag in tags:
                if settled := attributes[tag].values(candidate.paper):
                    values[tag] = settled
                elif candidate.is_open(tag):
                    values[tag] = candidate.values_in_readings(tag)
            sources: dict[str, None] = {}
            copies = []
            for reading in candidate.readings:
                if any(reading.tags.get(tag) in values[tag] for tag in values):
                    sources |= dict.fromkeys(reading.sources)
                    if reading.copy:  # its addresses, except the paper's own: those listed, or with an identifier
                        paper_urls = candidate.paper.urls
                        copies += [url for url in reading.sources if url not in paper_urls and not recognise_url(url)]
            is_certain = name in with_candidates.falls_by
            urls = tuple(sources or candidate.paper.urls[:1])
            listed.append(Cause(verdict.claim, name, is_certain, values, urls, tuple(copies), candidate.proposal))
    return tuple(listed)


def _tags(attribute: Attribute) -> tuple[str, ...]:
    """Return the tags that an attribute has values of: a facet, or all terms of a facet of levels; none for a fact."""
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and attribute.name == facet.field:
        return tuple(term.id for term in facet.terms)
    return (attribute.name,) if attribute.terms and attribute.name != "published" else ()
