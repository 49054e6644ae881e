"""Finds what breaks a claim: disputed tags read the other way, near misses or candidates taken in, rows left out.

Whatever a claim expects is broken when a sum over records passes a limit: the number of records, the tenths of a
share, the rows too many or too few. What a change adds to such a sum depends on its own record alone. So the
smallest set of changes that breaks a claim is found without trying sets: it is a knapsack with one choice for each
record, solved exactly by dynamic programming over the number of changes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import accumulate, chain, combinations, islice, product
from math import prod

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Severity
from orchtrace_corpus.base.identifiers import recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import Attribute, paper_attributes
from orchtrace_corpus.corpus.analysis.claims import Filters, Judge, Part, Verdict, agreement_of
from orchtrace_corpus.corpus.analysis.query import Filter, Query, breaks, parse_rule
from orchtrace_corpus.corpus.analysis.statistics import ABSENT
from orchtrace_corpus.corpus.model import claim_file
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import Claim, Over, PoolName
from orchtrace_corpus.corpus.model.disputes import Dispute, State, disputable, read_by, with_value
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, ReadingName, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy


class ChangeKind(StrEnum):
    """The kinds of changes."""

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


def possible_tags(
    taxonomy: Taxonomy, filters: Sequence[Filter], by: Attribute | None = None
) -> Iterator[dict[str, Tag]]:
    """Yield the tags that some filters can tell apart, as far as the taxonomy allows them together, in its order.

    Of a facet with several terms as many are given as there are filters on it, which is as many as it takes to pass
    them. Rules of the taxonomy count where these tags decide them; other tags are free to meet the rest.
    """
    rules = list(_rules(taxonomy))
    domains = list(_domains(taxonomy, filters, by, rules))
    open_tags = paper_attributes(taxonomy).keys() - {name for domain in domains for name in domain.given}
    for values in product(*(domain.values for domain in domains)):
        tags = {domain.field: value for domain, value in zip(domains, values, strict=True) if value != ABSENT}
        if not any(breaks(rule, Paper(tags=tags), open_tags) for rule in rules):
            yield tags


class _Domain(NamedTuple):
    """The values that a field can have; `given` names the tags that these decide: of all terms, the field, too."""

    field: str
    given: tuple[str, ...]
    values: tuple[Tag, ...]


def _domains(
    taxonomy: Taxonomy, filters: Sequence[Filter], by: Attribute | None, rules: Iterable[tuple[Query, Query]]
) -> Iterator[_Domain]:
    names = [condition.attribute.name for condition in filters] + ([by.name] if by is not None else [])
    asked = [*filters, *(condition for rule in rules for query in rule for condition in query.filters)]
    for facet in taxonomy.papers:
        terms = [term.id for term in facet.terms]
        whole = (facet.field, *terms)
        absent: tuple[Tag, ...] = () if facet.required else (ABSENT,)
        number = names.count(facet.field)
        if facet.kind is Kind.SINGLE and number:
            yield _Domain(facet.field, whole, (*facet.values, *absent))
        elif facet.kind is Kind.MANY and number:
            several = (chosen for size in range(1, number + 1) for chosen in combinations(terms, size))
            na_list = ((NOT_APPLICABLE,),) if facet.allows_na else ()
            yield _Domain(facet.field, whole, (*several, *na_list, *absent))
        elif facet.kind is Kind.LEVELS:
            levels = [level.id for level in facet.levels]
            read = tuple(term for term in terms if term in names)
            if number:
                size = min(number + len(read), len(terms))
                yield _Domain(facet.field, whole, tuple(_levels(dict.fromkeys(terms, levels), size)))
            elif read:
                choices = {term: _levels_told_apart(facet, term, asked) for term in read}
                if by is not None and by.name in choices:
                    choices[by.name] = levels
                yield _Domain(facet.field, read, tuple(_levels(choices, len(read))))


def _levels_told_apart(facet: Facet, term: str, filters: Sequence[Filter]) -> list[str]:
    """Return a level of a term for each answer that filters on it can give, but for that on its absence."""
    about = [condition for condition in filters if condition.attribute.name in (term, facet.field)]
    representatives: dict[tuple[bool, ...], str] = {}
    for level in (ABSENT, *(level.id for level in facet.levels)):
        paper = Paper(tags={facet.field: {} if level == ABSENT else {term: level}})
        representatives.setdefault(tuple(condition.matches(paper) for condition in about), level)
    return [level for level in representatives.values() if level != ABSENT]


def _levels(choices: Mapping[str, Sequence[str]], size: int) -> Iterator[dict[str, str]]:
    """Yield every way to give up to `size` of some terms one of their levels."""
    for count in range(size + 1):
        for chosen in combinations(choices, count):
            for given in product(*map(choices.__getitem__, chosen)):
                yield dict(zip(chosen, given, strict=True))


def _rules(taxonomy: Taxonomy) -> Iterator[tuple[Query, Query]]:
    """The taxonomy's rules that are errors, as filters; one that cannot be applied is for `corpus check data`."""
    attributes = paper_attributes(taxonomy)
    for rule in taxonomy.rules:
        if rule.severity is Severity.ERROR and rule.require:
            with suppress(CommandUseError):
                yield parse_rule(rule, attributes)


def _shown(tag: Tag) -> str:
    if isinstance(tag, str):
        return tag
    if isinstance(tag, tuple):
        return " and ".join(tag)
    return " and ".join(f"{term} {level}" for term, level in tag.items()) or "none"


MOST_READINGS = 1024
"""The most combinations of other readings of one record that are tried; beyond, only those with up to two changes."""

_KINDS = tuple(ChangeKind)


class Robustness(NamedTuple):
    """The changes that break a claim.

    Attributes:
        holds: Whether the claim holds as things are; if not, the rest is empty.
        flips: The readings that break it alone.
        breaks_by_all_flips: Whether it breaks when every dispute that concerns it is read the other way at once;
            None where no dispute concerns it.
        near_misses: The near misses that break it alone, each with the tags that do.
        breaks_by_all_near_misses: Whether it breaks when all are taken in at once, with the tags that serve it
            least; None where there are none.
        near_miss_number: How many near misses there are that could be taken in.
        left_out: The rows whose absence alone breaks it.
        smallest: A smallest set of changes that breaks it; empty if nothing does.
        is_exact: Whether no smaller set can have been missed.
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
    """Ask of each claim what breaks it."""
    judge = Judge(pool)
    return tuple(_stressed(claim, judge, disputes) for claim in claims)


class _Variant(NamedTuple):
    """A record as it could be: the changes that make it so, and what it then contributes."""

    changes: tuple[Change, ...]
    part: Part | None

    def is_all(self, kind: ChangeKind) -> bool:
        """Return True if it comes about by changes of one kind."""
        return bool(self.changes) and all(change.kind is kind for change in self.changes)


class _Unit(NamedTuple):
    """A record with all that it could be; the first variant is what it is. `disputed` counts its disputes."""

    name: str
    variants: tuple[_Variant, ...]
    disputed: int = 0


class _Way(NamedTuple):
    """A way to break a claim: the sum of the weights of all records passes the limit."""

    weight: Callable[[str, Part | None], int]
    limit: int


def _stressed(claim: Claim, judge: Judge, disputes: Sequence[Dispute]) -> Robustness:
    if not judge.verdict(claim).holds:
        return Robustness(claim, holds=False)
    filters = judge.filters(claim)
    papers, is_exact = _paper_units(filters.get(Over.PAPERS), judge.pool, disputes)
    units = [*papers, *_exclusion_units(filters, judge.pool)]
    if (wanted := filters.get(Over.SCALE)) is not None:
        observations = judge.records(Over.SCALE, claim)
        units += [_Unit(item.name, (_Variant((), wanted.part(item)), _left_out(item.name))) for item in observations]
    gains = [_Gains(way, units, claim) for way in _ways(claim)]
    flips, taken, left = (_singles(gains, kind) for kind in (ChangeKind.FLIP, ChangeKind.TAKE_IN, ChangeKind.LEAVE_OUT))
    sets = [found for gain in gains if (found := gain.smallest()) is not None]
    smallest = min(sets, key=lambda found: (len(found), _remoteness(found)), default=())
    all_flips = _all_at_once(gains, units, ChangeKind.FLIP)
    all_taken = _all_at_once(gains, units, ChangeKind.TAKE_IN)
    nearly = sum(any(variant.is_all(ChangeKind.TAKE_IN) for variant in unit.variants) for unit in units)
    return Robustness(claim, True, flips, all_flips, taken, all_taken, left, smallest, is_exact, nearly)


def _paper_units(filters: Filters | None, pool: Pool, disputes: Sequence[Dispute]) -> tuple[list[_Unit], bool]:
    """Return the papers, each as it is, in every other reading and left out; and True if these are all readings."""
    if filters is None:
        return [], True
    units, is_exact = [], True
    known = disputable(pool.taxonomy)
    tags = filters.disputed_tags(known)
    concerning: dict[str, list[Dispute]] = {}
    for dispute in disputes:
        if dispute.tag in tags:
            concerning.setdefault(dispute.record, []).append(dispute)
    for paper in pool.papers:
        own = concerning.get(paper.key, [])
        readings, complete = _readings(own)
        is_exact &= complete
        variants = [_Variant((), filters.part(paper))]
        for flips in readings:
            other = paper
            for flip in flips:
                other = with_value(other, known[flip.tag], flip.tag, flip.value)
            variants.append(_Variant(flips, filters.part(other)))
        variants.append(_left_out(paper.key))
        units.append(_Unit(paper.key, tuple(variants), len(own)))
    return units, is_exact


def _readings(disputes: Sequence[Dispute]) -> tuple[list[tuple[Change, ...]], bool]:
    """Return the combinations of other readings of one record, and True if these are all."""
    choices = [
        [
            Change(ChangeKind.FLIP, dispute.record, dispute.tag, value, is_settled=dispute.state is State.SETTLED)
            for value in dispute.alternatives
        ]
        for dispute in disputes
    ]
    is_complete = prod(len(choice) + 1 for choice in choices) <= MOST_READINGS
    sizes = range(1, len(choices) + 1) if is_complete else {1, 2, len(choices)}
    combined = (product(*chosen) for size in sizes for chosen in combinations(choices, size))
    return [changes for several in combined for changes in islice(several, MOST_READINGS)], is_complete


def _exclusion_units(filters: Mapping[Over, Filters], pool: Pool) -> list[_Unit]:
    """Return the near misses, as they are and taken in; of a claim about exclusions all of them, also left out."""
    of_papers, of_exclusions = filters.get(Over.PAPERS), filters.get(Over.EXCLUSIONS)
    asked = (of_papers.conditions, of_papers.by) if of_papers else ((), None)
    possible = list(possible_tags(pool.taxonomy, *asked))
    nearly = near_misses(pool)
    units = []
    for exclusion in pool.exclusions:
        variants = [_Variant((), of_exclusions.part(exclusion) if of_exclusions else None)]
        if exclusion in nearly:
            parts: dict[Part | None, Change] = {}
            for tags in possible:
                part = of_papers.part(taken_in(exclusion, tags)) if of_papers else None
                parts.setdefault(part, Change(ChangeKind.TAKE_IN, exclusion.id, tags=tags))
            variants += [_Variant((change,), part) for part, change in parts.items()]
        if of_exclusions:
            variants.append(_left_out(exclusion.id))
        if len(variants) > 1:
            units.append(_Unit(exclusion.id, tuple(variants)))
    return units


def _left_out(name: str) -> _Variant:
    return _Variant((Change(ChangeKind.LEAVE_OUT, name),), None)


def _ways(claim: Claim) -> list[_Way]:
    """Return every way to break a claim that holds."""
    expect = claim.expect
    if isinstance(expect, claim_file.Number):
        return _beyond(lambda _, part: int(_is_selected(part)), expect.bounds.low, expect.bounds.high)
    if isinstance(expect, claim_file.Share):
        low, high = expect.bounds
        nothing = _Way(lambda _, part: -int(part is not None and part.counted), -1)  # to take a share of
        above = [] if high is None else [_Way(lambda _, part: _excess(part, high), 0)]
        below = [] if low is None else [_Way(lambda _, part: -_excess(part, low), 0)]
        return [nothing, *above, *below]
    if isinstance(expect, claim_file.Keys):
        return [_Way(lambda name, part: int(_is_selected(part) != (name in expect.keys)), 0)]
    if isinstance(expect, claim_file.Counts):
        return [way for value, number in expect.counts.items() for way in _beyond(_having(value), number, number)]
    if isinstance(expect, claim_file.Agreement):
        ways = []
        for name, (equal, total) in expect.agreement.items():
            for index, number in enumerate((equal, total)):
                ways += _beyond(_cells(name, index), number, number)
        return ways
    return [_Way(lambda name, part: int(name in expect.values and not _having(expect.values[name])(name, part)), 0)]


def _beyond(weight: Callable[[str, Part | None], int], low: int | None, high: int | None) -> list[_Way]:
    """More than `high`, fewer than `low`."""
    ways = [] if high is None else [_Way(weight, high)]
    return ways if low is None else [*ways, _Way(lambda name, part: -weight(name, part), -low)]


def _is_selected(part: Part | None) -> bool:
    return part is not None and part.selected and part.counted


def _having(value: str) -> Callable[[str, Part | None], int]:
    return lambda _, part: int(part is not None and _is_selected(part) and value in part.values)


def _cells(column: str, index: int) -> Callable[[str, Part | None], int]:
    """Count the cells of a column that a record has: by index 0 those that are equal, by index 1 all."""
    return lambda _, part: agreement_of(column, Counter(part.values))[index] if part and _is_selected(part) else 0


def _excess(part: Part | None, hundredths: int) -> int:
    """By how much a record takes a share above so many hundredths of a per cent."""
    return 10_000 * part.selected - hundredths if part is not None and part.counted else 0


class _Gains:
    """The amount that every variant of every record adds to the sum that one way to break a claim goes by."""

    def __init__(self, way: _Way, units: Sequence[_Unit], claim: Claim) -> None:
        expect = claim.expect
        names: set[str] = set()  # of records that may not be there
        if isinstance(expect, (claim_file.Keys, claim_file.Values)):
            names.update(expect.keys if isinstance(expect, claim_file.Keys) else expect.values)
        total = sum(way.weight(name, None) for name in names - {unit.name for unit in units})
        self.variants: list[list[tuple[_Variant, int]]] = []
        for unit in units:
            present = way.weight(unit.name, unit.variants[0].part)
            total += present
            gains = [way.weight(unit.name, variant.part) - present for variant in unit.variants]
            self.variants.append(list(zip(unit.variants, gains, strict=True)))
        self.slack = way.limit - total

    def smallest(self) -> tuple[Change, ...] | None:
        """A smallest set of changes that breaks the claim; None where none does."""
        single: list[tuple[int, _Variant]] = []
        several: list[list[tuple[int, _Variant]]] = []
        for variants in self.variants:
            useful: list[tuple[int, _Variant]] = []  # by number of changes, those that add more than all with fewer
            for variant, gain in sorted(variants, key=lambda pair: (len(pair[0].changes), -pair[1])):
                if gain > (useful[-1][0] if useful else 0):
                    useful.append((gain, variant))
            if useful and len(useful[-1][1].changes) == 1:
                single += useful
            elif useful:
                several.append(useful)
        single.sort(key=lambda choice: (-choice[0], _remoteness(choice[1].changes)))
        reached = [0, *accumulate(gain for gain, _ in single)]
        best: dict[int, tuple[int, tuple[Change, ...]]] = {0: (0, ())}  # the most to gain, by number of changes
        for useful in several:
            better = dict(best)
            for cost, (gain, changes) in best.items():
                for more, variant in useful:
                    size = cost + len(variant.changes)
                    if size not in better or gain + more > better[size][0]:
                        better[size] = (gain + more, (*changes, *variant.changes))
            best = better
        sets = []
        for gain, changes in best.values():
            number = next((index for index, more in enumerate(reached) if gain + more > self.slack), None)
            if number is not None:
                sets.append((*changes, *(change for _, variant in single[:number] for change in variant.changes)))
        return min(sets, key=len, default=None)


def _remoteness(changes: Sequence[Change]) -> list[int]:
    """Rank changes from the nearest to the most far-fetched: another reading on record least, a row left out most."""
    return [_KINDS.index(change.kind) for change in changes]


def _singles(gains: Sequence[_Gains], kind: ChangeKind) -> tuple[Change, ...]:
    """The changes of a kind that break a claim alone, one for each tag or record."""
    found: dict[tuple[str, str], Change] = {}
    for gain in gains:
        for variant, more in chain.from_iterable(gain.variants):
            if more > gain.slack and len(variant.changes) == 1 and variant.is_all(kind):
                (change,) = variant.changes
                found.setdefault((change.record, change.tag), change)
    return tuple(found.values())


def _all_at_once(gains: Sequence[_Gains], units: Sequence[_Unit], kind: ChangeKind) -> bool | None:
    """Return True if all changes of a kind together break a claim; None where there are none."""

    def is_whole(index: int, variant: _Variant) -> bool:
        return variant.is_all(kind) and (kind is not ChangeKind.FLIP or len(variant.changes) == units[index].disputed)

    if not any(is_whole(index, variant) for index, unit in enumerate(units) for variant in unit.variants):
        return None
    for gain in gains:
        possible = (
            [more for variant, more in own if is_whole(index, variant)] for index, own in enumerate(gain.variants)
        )
        if sum(max(added, default=0) for added in possible) > gain.slack:
            return True
    return False


class ReadingVerdict(NamedTuple):
    """The outcome of a claim by the reading of the sources.

    Attributes:
        published: Whether it holds as published.
        falls_by: The disputes whose agreed value makes it fall: taken in one after another, in their order, each
            that breaks it is left out. Empty if it does not fall.
    """

    published: bool
    falls_by: tuple[Dispute, ...] = ()


def compare_readings(claims: Iterable[Claim], pool: Pool, disputes: Sequence[Dispute]) -> Mapping[str, ReadingVerdict]:
    """Hold claims against the tags as published and as the readers of the sources agree on them.

    Args:
        claims: The claims.
        pool: The corpus as published.
        disputes: Its disputes.

    Returns:
        By the id of each claim whether it holds as published, and which agreed values make it fall.
    """
    published, sources = Judge(pool), Judge(read_by(pool, disputes, ReadingName.SOURCES))
    agreed = [dispute for dispute in disputes if dispute.agreed is not None]
    compared = {}
    for claim in claims:
        holds = published.verdict(claim).holds
        harmless: list[Dispute] = []
        breaking: list[Dispute] = []
        if holds and not sources.verdict(claim).holds:
            tags = published.filters(claim)[Over.PAPERS].disputed_tags(disputable(pool.taxonomy))
            for dispute in (dispute for dispute in agreed if dispute.tag in tags):
                judge = Judge(read_by(pool, (*harmless, dispute), ReadingName.SOURCES))
                (harmless if judge.verdict(claim).holds else breaking).append(dispute)
        compared[claim.id] = ReadingVerdict(holds, tuple(breaking))
    return compared


class Cause(NamedTuple):
    """A candidate by which a claim would fall, or could, that holds over the pool of today.

    Attributes:
        claim: The claim.
        name: The candidate's key.
        is_certain: Whether it falls by tags that are settled; else it could, in a reading of tags that are open.
        tags: The values of the tags that the claim looks at: settled ones, or those on record.
        sources: The addresses at which they were read.
        copies: Those of them that are hosted copies of the paper.
        proposal: What is proposed for the candidate.
    """

    claim: Claim
    name: str
    is_certain: bool
    tags: Mapping[str, tuple[str, ...]]
    sources: tuple[str, ...]
    copies: tuple[str, ...]
    proposal: Decision


def causes(verdicts: Iterable[Verdict], pool: Pool, candidates: Iterable[Candidate]) -> tuple[Cause, ...]:
    """Return the candidates by which claims would fall, or could, that hold over the pool of today, claim by claim.

    Args:
        verdicts: The verdicts with these candidates.
        pool: The corpus.
        candidates: The candidates.
    """
    judge, by_name = Judge(pool), {candidate.name: candidate for candidate in candidates}
    attributes = judge.attributes[Over.PAPERS]
    listed = []
    for verdict in verdicts:
        today, awaited = (verdict.pools.get(name) for name in (PoolName.TODAY, PoolName.CANDIDATES))
        if awaited is None or today is None or not today.holds:
            continue
        wanted = judge.filters(verdict.claim).get(Over.PAPERS)
        if wanted is None:  # candidates are papers
            continue
        asked = [condition.attribute for condition in wanted.conditions] + ([wanted.by] if wanted.by else [])
        tags = [name for attribute in asked for name in _tags(attribute)]
        for name in (*awaited.falls_by, *awaited.could_fall_by):
            candidate = by_name[name]  # no other record breaks what holds over the pool of today
            values = {}
            for tag in tags:
                if settled := attributes[tag].values(candidate.paper):
                    values[tag] = settled
                elif candidate.is_open(tag):
                    values[tag] = candidate.read_values(tag)
            sources: dict[str, None] = {}
            copies = []
            for reading in candidate.readings:
                if any(reading.tags.get(tag) in values[tag] for tag in values):
                    sources |= dict.fromkeys(reading.sources)
                    copied = reading.sources if reading.copy else ()
                    copies += [url for url in copied if url not in candidate.paper.urls and not recognise_url(url)]
            is_certain, shown = name in awaited.falls_by, tuple(sources or candidate.paper.urls[:1])
            cause = Cause(verdict.claim, name, is_certain, values, shown, tuple(copies), candidate.proposal)
            listed.append(cause)
    return tuple(listed)


def _tags(attribute: Attribute) -> tuple[str, ...]:
    """Return the tags that a filter looks at: a facet, or all terms of one of levels; none for a field."""
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and attribute.name == facet.field:
        return tuple(term.id for term in facet.terms)
    return (attribute.name,) if attribute.terms and attribute.name != "published" else ()
